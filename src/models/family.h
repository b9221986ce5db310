/* What the family files share: reading the keys that all configs have, and rotary embeddings. */
#ifndef MT_MODELS_FAMILY_H
#define MT_MODELS_FAMILY_H

#include "models/spec.h"

/* Values a config may leave out, as the family's class in transformers has them; 0 where it must be given. */
typedef struct mt_family_defaults {
    int64_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context;
    double eps;
    bool tied;
    const char *activation_key, *activation; /* NULL: hidden_act, which is silu */
} mt_family_defaults;

typedef struct mt_family {
    const char *name; /* "qwen3": model_type of config.json */
    mt_family_defaults defaults;
    /* Fills what is the family's own, after the common keys, which every layer has been given. layer is spec->layer,
       writable: what all layers have goes to the first, mt_layers_repeat, then what only some have. */
    bool (*read)(mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err);
    bool drafts;                           /* it guesses for another model, and is none by itself */
    const struct mt_vision_family *vision; /* its eyes (vision_family.h); NULL: none */
    /* Families that its text model may be of, by the "model_type" of "text_config": theirs are defaults and read. The
       first where it names none; NULL: it is its own. */
    const struct mt_family *beneath[6];
    /* Keys of the outer config that name tokens which are embedded as "pad_token_id" of the text model's, wherever they
       are written, and what they are where it does not. */
    struct {
        const char *key;
        uint32_t id;
    } blanks[3];
} mt_family;

/* All of them; who is listed here is known. */
#define MT_FAMILIES(X)                                                                                                 \
    X(llama), X(qwen2), X(qwen3), X(qwen3_moe), X(gemma2), X(gemma3_text), X(gemma3), X(qwen2_vl), X(qwen2_5_vl),      \
        X(qwen3_vl), X(qwen3_vl_moe), X(qwen3_next), X(qwen3_5), X(qwen3_5_text), X(qwen3_5_moe), X(qwen3_5_moe_text), \
        X(gpt_oss), X(mistral), X(ministral3), X(mistral3), X(gemma4), X(gemma4_text), X(gemma4_unified),              \
        X(gemma4_unified_text), X(gemma4_assistant), X(gemma4_unified_assistant), X(lfm2), X(lfm2_moe), X(lfm2_vl),    \
        X(glm4v), X(glm46v), X(glm4v_moe), X(glm_ocr), X(paddleocr_vl), X(smolvlm), X(internvl), X(minicpmv4_6)
#define MT_FAMILY(name) mt_family_##name
extern const mt_family MT_FAMILIES(MT_FAMILY);

/* Eyes that several of them have, or that stand in another file. */
extern const struct mt_vision_family mt_vision_qwen2, mt_vision_qwen2_5, mt_vision_qwen3, mt_vision_qwen3_5,
    mt_vision_gemma3, mt_vision_pixtral, mt_vision_lfm2, mt_vision_gemma4, mt_vision_gemma4_unified, mt_vision_glm4v,
    mt_vision_glm46v, mt_vision_glm4v_moe, mt_vision_glm_ocr, mt_vision_paddleocr, mt_vision_smolvlm,
    mt_vision_internvl, mt_vision_minicpm;

/* A count of at least one; missing and without a default (0) is an error. */
bool mt_size_read(const mt_config *c, const char *key, int64_t fallback, int64_t max, uint32_t *out,
                  mt_error *err) MT_NODISCARD;

/* The object in c that holds rope_type, factor, ...; NULL: none. The older name wins where a config has both. */
const mt_config *mt_rope_parameters(const mt_config *c);

/* Reads one rotary embedding of dimension dim of config c. parameters is the object that holds rope_type, factor, ...
   (NULL: none); theta is used unless parameters has rope_theta. context is the model's, for scalings that need it. */
bool mt_rope_read(mt_rope *rope, const mt_config *c, const mt_config *parameters, double theta, uint32_t dim,
                  uint32_t context, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Without a config: of a head's pairs only the first `part` turn, by the frequencies of a whole head. */
bool mt_rope_read_part(mt_rope *rope, double theta, double part, uint32_t dim, mt_arena *arena,
                       mt_error *err) MT_NODISCARD;

/* The usual case: one rotary embedding for all layers, from mt_rope_parameters and rope_theta. */
bool mt_rope_read_one(mt_model_spec *spec, const mt_config *c, double default_theta, mt_arena *arena,
                      mt_error *err) MT_NODISCARD;

/* The same where only the first part of a head turns: "partial_rotary_factor", or the given one. */
bool mt_rope_read_first(mt_model_spec *spec, const mt_config *c, double default_theta, double default_part,
                        mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Shares the frequencies of spec's only rotary embedding among the axes of a position, by "mrope_section" or the
   fallback: in sections one after the other, or taking turns where interleaved (M-RoPE). */
bool mt_rope_axes_read(mt_model_spec *spec, const mt_config *c, const uint32_t fallback[3], bool interleaved,
                       mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Makes all layers what the first is. */
void mt_layers_repeat(const mt_model_spec *spec, mt_layer_spec *layer);

/* Windows of layers whose entry in layer_types is "sliding_attention"; false when the config has no such list. */
bool mt_layer_types_read(const mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c, uint32_t window);

#endif
