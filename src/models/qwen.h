/* What the Qwen families share. */
#ifndef MT_MODELS_QWEN_H
#define MT_MODELS_QWEN_H

#include "models/spec.h"
#include "models/vision.h"

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

/* The tower of Qwen3-VL and later, but for the layers that DeepStack taps. */
bool mt_qwen_tower_read(mt_vision_spec *v, const mt_model_spec *s, const mt_config *c, mt_arena *arena,
                        mt_error *err) MT_NODISCARD;

#endif
