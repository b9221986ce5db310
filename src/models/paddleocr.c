/* PaddleOCR-VL: ERNIE's small text model with M-RoPE. Published configs are flat; newer ones have a "text_config". */
#include "models/family.h"

static bool read_paddleocr(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static const uint32_t sections[3] = {16, 24, 24};
    layer->attn.qkv_bias = layer->attn.o_bias = layer->mlp.bias = mt_config_bool(c, "use_bias", false);
    mt_layers_repeat(s, layer);
    return mt_rope_read_one(s, c, 5e5, arena, err) && mt_rope_axes_read(s, c, sections, false, arena, err);
}

const mt_family mt_family_paddleocr_vl = {.name = "paddleocr_vl",
                                          .defaults = {.vocab = 103424,
                                                       .hidden = 1024,
                                                       .layers = 18,
                                                       .heads = 16,
                                                       .kv_heads = 2,
                                                       .head_dim = 128,
                                                       .ffn = 3072,
                                                       .context = 131072,
                                                       .eps = 1e-5,
                                                       .tied = true},
                                          .read = read_paddleocr,
                                          .vision = &mt_vision_paddleocr};
