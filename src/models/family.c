/* Functions that several family files use (family.h). */
#include "models/family.h"

#include <string.h>

bool mt_size_read(const mt_config *c, const char *key, int64_t fallback, int64_t max, uint32_t *out, mt_error *err)
{
    int64_t value;
    if (!mt_config_int(c, key, fallback, 1, max, &value, err))
        return false;
    *out = (uint32_t)value;
    return true;
}

void mt_layers_repeat(const mt_model_spec *spec, mt_layer_spec *layer)
{
    for (size_t i = 1; i < spec->layers; i++)
        layer[i] = layer[0];
}

bool mt_layer_types_read(const mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c, uint32_t window)
{
    if (mt_config_array(c, "layer_types") != spec->layers)
        return false;
    for (size_t i = 0; i < spec->layers; i++) {
        const char *type = mt_config_array_string(c, "layer_types", i);
        layer[i].attn.window = type && strcmp(type, "sliding_attention") == 0 ? window : 0;
    }
    return true;
}
