/* Functions that the Qwen families (qwen2.c, qwen3.c, qwen3_next.c, qwen_vl.c and their vision_*.c) share. */
#ifndef MT_MODELS_QWEN_H
#define MT_MODELS_QWEN_H

#include "models/vision_family.h"

/* Reads the size of windows; 0: none. sliding_window counts only where use_sliding_window is true; it is 4096 where the
   key is missing, and null means none. */
bool mt_qwen_window_read(const mt_config *c, uint32_t *window, mt_error *err) MT_NODISCARD;

/* Gives a window to the layers that layer_types names, else to those from max_window_layers on. usual: what that is
   where the key is missing. */
bool mt_qwen_windows_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, int64_t usual,
                          mt_error *err) MT_NODISCARD;

/* Defaults for a config with experts. renormalise: default of norm_topk_prob; always: renormalised whatever that key
   says. */
typedef struct mt_qwen_experts {
    int64_t experts, top_k, inner;
    bool renormalise, always;
    uint32_t shared; /* as mt_moe_spec.shared_ffn */
} mt_qwen_experts;

/* Reads which layers have experts, how many and how wide. defaults: NULL for Qwen3's. */
bool mt_qwen_experts_read(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, const mt_qwen_experts *defaults,
                          mt_error *err) MT_NODISCARD;

/* Names of the tensors that all Qwen towers have; those of the MLP are the arguments. */
#define MT_QWEN_NAMES(...)                                                                                 \
    {                                                                                                      \
        .patch = "vision.patch_embed.proj", .layer = "vision.blocks.", .norm1 = "norm1", .norm2 = "norm2", \
        .q = "attn.q", .k = "attn.k", .v = "attn.v", .qkv = "attn.qkv", .o = "attn.proj", __VA_ARGS__      \
    }

/* Defaults for a tower's config. */
typedef struct mt_qwen_tower {
    const char *hidden_key;
    int64_t hidden, layers, ffn, patch; /* ffn 0: "mlp_ratio" gives it */
    const char *activation;
} mt_qwen_tower;

bool mt_qwen_tower_read(mt_vision_spec *v, const mt_model_spec *s, const mt_config *c, const mt_qwen_tower *defaults,
                        mt_error *err) MT_NODISCARD;

/* Binds what makes tokens of patches: a norm and two matrices, by these names. joined: the norm is over all patches of
   a token together, not over each. */
void mt_qwen_merger_bind(mt_tower_binder *t, const char *prefix, const char *const names[3], bool joined,
                         mt_merger_weights *w);

/* Reads the processor's files. side: pixels along a token, for video limits that no file gives. newer: videos as
   Qwen3's class has them: levels from -1 to 1, sampled frames, limits given as edges and for all frames together. */
bool mt_qwen_processor_read(const mt_settings *s, int64_t side, bool newer) MT_NODISCARD;

#endif
