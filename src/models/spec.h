/* What a family declares: a decoder as data. A family file maps config.json to this; decoder.c runs it. */
#ifndef MT_MODELS_SPEC_H
#define MT_MODELS_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "device/device.h"
#include "weights/config.h"

/* Layers whose keys and values are kept alike: as far back, as many heads, of one size. */
typedef struct mt_layer_group {
    uint32_t window; /* 0: all keys are kept */
    uint32_t layers;
    uint32_t kv_heads, head_dim;
    uint32_t heads; /* the most that any of its layers asks with */
} mt_layer_group;

/* One rotary embedding: angle of frequency i at position p is p * inv_freq[i]; cos and sin are both times scale. */
typedef struct mt_rope {
    const char *type; /* as the config names it */
    double theta;
    uint32_t half; /* rotated pairs (i, i + half) */
    bool pairs;    /* or rather (2 i, 2 i + 1) */
    const float *inv_freq;
    const uint8_t *axis; /* [half]: which axis of a position a frequency turns with (M-RoPE); NULL: the first */
    float scale;
} mt_rope;

/* What queries of far positions are multiplied by: factor[position / every], the last one for all that is beyond. */
typedef struct mt_stretch {
    const float *factor; /* NULL: nothing */
    uint32_t count, every;
} mt_stretch;

/* What mixes a token with those before it. */
typedef enum mt_layer_kind {
    MT_LAYER_ATTENTION,
    MT_LAYER_RECURRENT /* keeps a state instead of keys and values */
} mt_layer_kind;

#define MT_NO_ROPE UINT8_MAX

/* Where the keys and values of a layer come from. */
typedef enum mt_key_source {
    MT_KEYS_OWN,    /* projections of its own */
    MT_KEYS_VALUES, /* one for both: values are the keys before their norm and rotation */
    MT_KEYS_EARLIER /* another layer has written them */
} mt_key_source;

typedef enum mt_v_norm { MT_V_NORM_NONE, MT_V_NORM_PLAIN, MT_V_NORM_WEIGHTS } mt_v_norm;

/* Where several ranks compute a model, a spec is of what one of them has (models/cut.h): its heads, its part of each
   width. `slices` says into how many the whole is cut, as mt_op_share has it; 0: it is not. */
typedef struct mt_attn_spec {
    uint32_t heads, kv_heads, head_dim;
    uint32_t slices; /* of the heads */
    uint32_t window; /* keys a query sees, itself included; 0 is all */
    uint32_t chunk;  /* it sees from the last multiple of this on; 0: from the first */
    bool causal;     /* nothing that comes later, even of its own picture */
    uint8_t rope;    /* index into mt_model_spec.ropes; MT_NO_ROPE: none */
    mt_key_source keys;
    uint16_t source;      /* the earlier layer whose keys and values it reads */
    float scale, softcap; /* softcap 0: none */
    bool qkv_bias, o_bias;
    bool qk_norm;
    mt_v_norm v_norm;
    bool stretched; /* queries, by mt_model_spec.stretch */
    bool sinks;     /* of each head a score that takes its share and gives nothing */
    bool gate;      /* q_proj has a gate behind each head; attention's result is multiplied by its sigmoid */
} mt_attn_spec;

typedef struct mt_mlp_spec {
    uint32_t ffn, slices;
    mt_glu glu; /* of experts too */
    bool bias;
} mt_mlp_spec;

typedef struct mt_moe_spec {
    uint32_t experts, top_k, ffn; /* so many, so many of them a row, each so wide */
    uint32_t slices;              /* of each expert's width */
    bool bias;                    /* of each expert's three products */
    bool woven;                   /* where gate and up are one matrix, their rows alternate, else gate comes first */
    mt_routing routing;
    bool router_bias;    /* of the router's product */
    bool router_norm;    /* the router has a norm of its own, of the residual stream */
    bool correction;     /* a number of each expert counts for choosing alone */
    bool scale;          /* a number of each expert is what its result is multiplied by */
    uint32_t shared_ffn; /* of an expert that every row gets besides; 0: none */
    uint32_t shared_slices;
    bool shared_gated; /* weighed by the sigmoid of a product of its own */
} mt_moe_spec;

typedef struct mt_layer_spec {
    mt_layer_kind kind;
    bool sparse;     /* experts instead of a dense MLP */
    bool beside;     /* or rather both, each with norms of its own, added */
    bool scaled;     /* a number of the layer multiplies the residual stream after it */
    bool post_norms; /* norms after attention and after the MLP, before the residual is added */
    uint8_t group;   /* index into mt_model_spec.groups; of a recurrent layer not used */
    uint16_t slot;   /* which of the group's layers it is, or of the recurrent ones */
    mt_attn_spec attn;
    mt_mlp_spec mlp;
    mt_moe_spec moe; /* where the layer is sparse */
} mt_layer_spec;

/* Tokens that are embedded as another: those that stand for pictures and sounds, wherever they are written. */
typedef struct mt_blank {
    uint32_t count, token[3], as;
} mt_blank;

/* What tensors are called, of the model and of a layer, where a family has names of its own. */
typedef struct mt_tensor_names {
    const char *norm; /* the model's last */
    const char *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm;
    const char *q_norm, *k_norm, *o;
    const char *gate, *up, *down;
    const char *mlp;        /* the module that all of these are in, and experts; NULL: "mlp" */
    const char *correction; /* of a router's choice; NULL: "mlp.gate.e_score_correction_bias" */
    const char *gate_up; /* gate above up in one matrix; NULL: they are apart. What cannot be cut is missed as gate. */
} mt_tensor_names;

typedef struct mt_model_spec {
    const char *family;           /* "llama", "qwen2", "qwen3", "qwen3_moe", "gemma3" */
    const char *architecture;     /* as config.json says it */
    const mt_tensor_names *names; /* NULL: those that most have */
    uint32_t vocab, hidden, layers, context;
    float eps;
    float norm_offset;                   /* 1 where norms multiply by (1 + w) */
    float final_softcap;                 /* 0: none */
    float embed_scale;                   /* 1: none */
    bool tied;                           /* the head is the embedding */
    const struct mt_vision_spec *vision; /* the tower of a model that sees; NULL: none, or none wanted */
    uint32_t deepstack;          /* of the first layers, each adds a part of an image's features to its output */
    uint32_t aside, aside_vocab; /* width and rows of the embedding that each layer has besides; 0: none */
    mt_blank blank;
    bool mtp;                              /* the checkpoint has a head that guesses the token after the next one */
    const struct mt_drafter_spec *drafter; /* another checkpoint does so; NULL: none */
    uint32_t rope_count;
    const mt_rope *ropes;
    mt_stretch stretch;
    const mt_layer_spec *layer; /* [layers] */
    mt_state_shape state;       /* of the recurrent layers; has no layers where there are none */
    bool state_bias;            /* where these are nothing but convolutions: they and their projections have biases */
    uint32_t hidden_slices, vocab_slices, aside_slices, state_slices; /* what no layer has of its own */
    uint32_t guess_slices;                                            /* of the tokens that are guessed at all */
    uint32_t group_count;
    mt_layer_group groups[MT_KV_GROUPS]; /* the first keeps all keys, whatever its layers see of them */
} mt_model_spec;

/* A small model that guesses for another. It has no keys and values, but reads those of the other's last layers, and
   takes the place of its head. */
typedef struct mt_drafter_spec {
    mt_model_spec model;             /* groups and slots of its layers are those of the other */
    mt_layer_spec *layer;            /* model.layer, which joins the other */
    uint32_t backbone;               /* width of the other */
    uint32_t clusters, top_clusters; /* of tokens, of which only the best are looked at; 0: all are */
} mt_drafter_spec;

static inline bool mt_model_guesses(const mt_model_spec *spec)
{
    return spec->mtp || spec->drafter;
}

/* The first layer of attention, and the first that is sparse (NULL: there is none), for who says a word of all. */
const mt_layer_spec *mt_model_spec_attention(const mt_model_spec *spec);
const mt_layer_spec *mt_model_spec_sparse(const mt_model_spec *spec);

/* Shares spec->layer (layer is the same, writable) among groups and gives each its slot. */
bool mt_model_spec_group(mt_model_spec *spec, mt_layer_spec *layer, mt_error *err) MT_NODISCARD;

/* Reads config.json (top level given) into *spec; what it points to lives in the arena. family may be NULL (detect).
   Errors name the key, or the architecture and those that are known. */
bool mt_model_spec_read(mt_model_spec *spec, const mt_config *config, const char *family, mt_arena *arena,
                        mt_error *err) MT_NODISCARD;

/* The same for a drafter; and makes it the drafter of *spec, which it must be made for. */
bool mt_drafter_known(const mt_config *config);
bool mt_drafter_spec_read(mt_drafter_spec *drafter, const mt_config *config, mt_arena *arena,
                          mt_error *err) MT_NODISCARD;
bool mt_drafter_join(mt_drafter_spec *drafter, mt_model_spec *spec, mt_error *err) MT_NODISCARD;

#endif
