/* SmolVLM: Llama's text model with eyes. */
#include <string.h>

#include "models/family.h"

static bool read_smolvlm(mt_model_spec *s, mt_layer_spec *layer, const mt_config *c, mt_arena *arena, mt_error *err)
{
    const char *type = mt_config_string(c, "model_type", "llama");
    if (strcmp(type, "llama") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "the text model of smolvlm has the type \"%.64s\"; llama is known", type);
    return mt_family_llama.read(s, layer, c, arena, err);
}

const mt_family mt_family_smolvlm = {
    .name = "smolvlm",
    .defaults = {.vocab = 32000, .hidden = 4096, .layers = 32, .heads = 32, .ffn = 11008, .context = 2048, .eps = 1e-6},
    .read = read_smolvlm,
    .vision = &mt_vision_smolvlm};
