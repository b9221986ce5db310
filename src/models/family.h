/* Declarations that the family files (llama.c, qwen3.c, ...) share: the table that describes a family, functions that
   read keys which all configs have, and rotary embeddings. */
#ifndef MT_MODELS_FAMILY_H
#define MT_MODELS_FAMILY_H

#include "models/spec.h"

/* Values that a config may leave out, with the defaults of the family's class in transformers; 0: the key must be
   there. */
typedef struct mt_family_defaults {
    int64_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context;
    double eps;
    bool tied;
    const char *activation_key, *activation; /* key of the activation and its default; NULL: hidden_act, silu */
} mt_family_defaults;

typedef struct mt_family {
    const char *name; /* "qwen3": model_type of config.json */
    mt_family_defaults defaults;
    /* Sets what is special to the family, after the common keys were read into every layer. layer is spec->layer,
       writable. Set what all layers have in the first one, call mt_layers_repeat, then set what differs from layer to
       layer. */
    bool (*read)(mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err);
    bool drafts;                           /* it is a drafter: it guesses for another model and cannot run alone */
    const struct mt_vision_family *vision; /* how the family sees pictures (vision_family.h); NULL: it does not */
    /* Families that its text model may belong to, chosen by "model_type" of "text_config", or the first where it names
       none; their defaults and read are used. NULL: its text model is its own. */
    const struct mt_family *beneath[6];
    /* Tokens that are embedded as the text model's "pad_token_id": keys of the outer config that name them, and their
       ids where the config does not. */
    struct {
        const char *key;
        uint32_t id;
    } blanks[3];
} mt_family;

/* Every family there is; a new one is added to this list. */
#define MT_FAMILIES(X)                                                                                                 \
    X(llama), X(seed_oss), X(smollm3), X(granite), X(phi3), X(gemma), X(olmo2), X(olmo3), X(olmoe), X(exaone4),        \
        X(exaone_moe), X(llama4), X(llama4_text), X(ernie4_5), X(ernie4_5_moe), X(mixtral), X(minimax_m2), X(glm),     \
        X(glm4), X(glm4_moe), X(qwen2_moe), X(cohere), X(cohere2), X(hy_v3), X(qwen2), X(qwen3), X(qwen3_moe),         \
        X(gemma2), X(gemma3_text), X(gemma3), X(qwen2_vl), X(qwen2_5_vl), X(qwen3_vl), X(qwen3_vl_moe), X(qwen3_next), \
        X(qwen3_5), X(qwen3_5_text), X(qwen3_5_moe), X(qwen3_5_moe_text), X(gpt_oss), X(mistral), X(ministral3),       \
        X(mistral4), X(mistral3), X(pixtral), X(gemma4), X(gemma4_text), X(gemma4_unified), X(gemma4_unified_text),    \
        X(gemma4_assistant), X(gemma4_unified_assistant), X(lfm2), X(lfm2_moe), X(lfm2_vl), X(glm4v), X(glm46v),       \
        X(glm4v_moe), X(glm_ocr), X(paddleocr_vl), X(smolvlm), X(idefics3), X(internvl), X(minicpmv4_6),               \
        X(deepseek_v3), X(kimi_k2), X(kimi_k25), X(glm4_moe_lite), X(deepseek_v32), X(glm_moe_dsa),                    \
        X(granitemoehybrid), X(nemotron_h), X(falcon_h1)
#define MT_FAMILY(name) mt_family_##name
extern const mt_family MT_FAMILIES(MT_FAMILY);

/* How families see pictures, where several share it or it is in another file. */
extern const struct mt_vision_family mt_vision_qwen2, mt_vision_qwen2_5, mt_vision_qwen3, mt_vision_qwen3_5,
    mt_vision_gemma3, mt_vision_pixtral, mt_vision_pixtral_alone, mt_vision_lfm2, mt_vision_gemma4,
    mt_vision_gemma4_unified, mt_vision_glm4v, mt_vision_glm46v, mt_vision_glm4v_moe, mt_vision_glm_ocr,
    mt_vision_paddleocr, mt_vision_smolvlm, mt_vision_idefics3, mt_vision_internvl, mt_vision_minicpm;

/* Reads a number of at least 1 and at most max. False with a sentence where it is not, or is missing and fallback is
   0. */
bool mt_size_read(const mt_config *c, const char *key, int64_t fallback, int64_t max, uint32_t *out,
                  mt_error *err) MT_NODISCARD;

/* The object of c with rope_type, factor and so on; NULL: none. Where a config has both names, the older one counts. */
const mt_config *mt_rope_parameters(const mt_config *c);

/* Reads one rotary embedding of dimension dim from config c. parameters: the object with rope_type, factor and so on
   (NULL: none); theta is used unless it has rope_theta. context: the model's, which some scalings need. */
bool mt_rope_read(mt_rope *rope, const mt_config *c, const mt_config *parameters, double theta, uint32_t dim,
                  uint32_t context, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Makes a rotary embedding without a config: only the first `part` of a head's pairs turn, with the frequencies of a
   whole head. */
bool mt_rope_read_part(mt_rope *rope, double theta, double part, uint32_t dim, mt_arena *arena,
                       mt_error *err) MT_NODISCARD;

/* The usual case: one rotary embedding for all layers, by mt_rope_parameters and rope_theta. */
bool mt_rope_read_one(mt_model_spec *spec, const mt_config *c, double default_theta, mt_arena *arena,
                      mt_error *err) MT_NODISCARD;

/* The same where only the first part of a head turns: "partial_rotary_factor", or default_part. */
bool mt_rope_read_first(mt_model_spec *spec, const mt_config *c, double default_theta, double default_part,
                        mt_arena *arena, mt_error *err) MT_NODISCARD;

/* M-RoPE: divides the frequencies of spec's only rotary embedding among the three axes of a position, by
   "mrope_section" or the fallback: in sections one after the other or, where interleaved, in turns. */
bool mt_rope_axes_read(mt_model_spec *spec, const mt_config *c, const uint32_t fallback[3], bool interleaved,
                       mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Reads latent attention into the first layer, and the rotary embedding. defaults: its widths, where the config does
   not say. */
bool mt_latent_read(mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c, const mt_latent_spec *defaults,
                    mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Reads experts that are weighed by sigmoids and chosen with a correction, or by a softmax without one, from the best
   of some groups, with a shared one beside them. The first layers have a dense MLP instead, or those that
   "mlp_layer_types" names. */
typedef struct mt_expert_defaults {
    int64_t experts, top_k, ffn, groups, top_groups, dense;
    double scaling;
    bool softmax;
    /* what the config calls the numbers of experts and of shared ones; NULL: "n_routed_experts" or "num_local_experts",
       and "n_shared_experts" */
    const char *experts_key, *shared_key;
} mt_expert_defaults;
bool mt_scored_experts_read(const mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c,
                            const mt_expert_defaults *defaults, mt_error *err) MT_NODISCARD;

/* The keys by which a config says how large layers of Mamba2's kind are, and what holds where it does not say. */
typedef struct mt_mamba_keys {
    const char *heads, *head_dim, *groups, *state, *taps, *conv_bias;
    int64_t usual_heads, usual_groups, usual_state;
    uint32_t width; /* of all heads together, for a config that gives no size of a head; 0: the size is usual_dim */
    int64_t usual_dim;
} mt_mamba_keys;

/* Reads spec->state and spec->mamba, whose norm and biases of projections the family sets. */
bool mt_mamba_read(mt_model_spec *spec, const mt_config *c, const mt_mamba_keys *keys, mt_error *err) MT_NODISCARD;

/* Copies the first layer's spec to all layers. */
void mt_layers_repeat(const mt_model_spec *spec, mt_layer_spec *layer);

/* Sets the window of each layer whose entry in layer_types is "sliding_attention"; false when the config has no such
   list. */
bool mt_layer_types_read(const mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c, uint32_t window);

#endif
