/* What the Qwen families share. */
#ifndef MT_MODELS_QWEN_H
#define MT_MODELS_QWEN_H

#include "models/vision_family.h"

/* sliding_window counts only when use_sliding_window is set, and from layer max_window_layers on. */
bool mt_qwen_windows_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_error *err) MT_NODISCARD;

/* What a config of experts may leave out; renormalise is norm_topk_prob, which `always` overrules. */
typedef struct mt_qwen_experts {
    int64_t experts, top_k, inner;
    bool renormalise, always;
    uint32_t shared; /* as mt_moe_spec has it */
} mt_qwen_experts;

/* Which layers have experts, how many of them and of what size. defaults: NULL for Qwen3's. */
bool mt_qwen_experts_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, const mt_qwen_experts *defaults,
                          mt_error *err) MT_NODISCARD;

/* Names of the tensors that all towers have; the MLP's are given. */
#define MT_QWEN_NAMES(...)                                                                                 \
    {                                                                                                      \
        .patch = "vision.patch_embed.proj", .layer = "vision.blocks.", .norm1 = "norm1", .norm2 = "norm2", \
        .q = "attn.q", .qkv = "attn.qkv", .o = "attn.proj", __VA_ARGS__                                    \
    }

/* What a config of a tower may leave out. */
typedef struct mt_qwen_tower {
    const char *hidden_key;
    int64_t hidden, layers, ffn, patch; /* ffn 0: "mlp_ratio" says it */
    const char *activation;
} mt_qwen_tower;

bool mt_qwen_tower_read(mt_vision_spec *v, const mt_model_spec *s, const mt_config *c, const mt_qwen_tower *defaults,
                        mt_error *err) MT_NODISCARD;

/* What makes tokens of patches: its norm and its two matrices. joined: the norm's width is a token's, not a patch's. */
void mt_qwen_merger_bind(mt_tower_binder *t, const char *prefix, const char *const names[3], bool joined,
                         mt_merger_weights *w);

/* side: pixels of the token that a video's limits are multiples of where no file gives them. newer: videos as Qwen3's
   class takes them, which has levels from -1 to 1, only some frames, and limits as edges and of all frames together. */
bool mt_qwen_processor_read(const mt_settings *s, int64_t side, bool newer) MT_NODISCARD;

#endif
