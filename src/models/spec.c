#include "models/spec.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "models/bert.h"
#include "models/family.h"
#include "models/vision.h"

static const mt_family *const families[] = {
    &mt_family_llama,      &mt_family_qwen2,        &mt_family_qwen3,        &mt_family_qwen3_moe,
    &mt_family_gemma2,     &mt_family_gemma3_text,  &mt_family_gemma3,       &mt_family_qwen2_vl,
    &mt_family_qwen2_5_vl, &mt_family_qwen3_vl,     &mt_family_qwen3_vl_moe, &mt_family_qwen3_next,
    &mt_family_qwen3_5,    &mt_family_qwen3_5_text, &mt_family_qwen3_5_moe,  &mt_family_qwen3_5_moe_text,
};

static const mt_family *find_family(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(families); i++)
        if (strcmp(families[i]->model_type, name) == 0 || strcmp(families[i]->name, name) == 0)
            return families[i];
    return NULL;
}

static bool fail_unknown(const char *name, mt_error *err)
{
    mt_buf known;
    mt_buf_init(&known, MT_LIMIT_ERROR_TEXT);
    for (size_t i = 0; i < MT_COUNT(families); i++)
        mt_buf_printf(&known, "%s%s", i ? ", " : "", families[i]->model_type);
    mt_fail(err, MT_E_UNSUPPORTED, "model type \"%.64s\" is not known; known are %s", name, known.data);
    mt_buf_free(&known);
    return false;
}

bool mt_size_read(const mt_config *c, const char *key, int64_t fallback, int64_t max, uint32_t *out, mt_error *err)
{
    int64_t value;
    if (!mt_config_int(c, key, fallback, 1, max, &value, err))
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool read_shape(mt_model_spec *s, const mt_config *c, const mt_family_defaults *d, mt_error *err)
{
    if (!mt_size_read(c, "vocab_size", d->vocab, MT_LIMIT_VOCAB, &s->vocab, err) ||
        !mt_size_read(c, "hidden_size", d->hidden, MT_LIMIT_WIDTH, &s->hidden, err) ||
        !mt_size_read(c, "num_hidden_layers", d->layers, MT_LIMIT_LAYERS, &s->layers, err) ||
        !mt_size_read(c, "num_attention_heads", d->heads, MT_LIMIT_WIDTH, &s->heads, err) ||
        !mt_size_read(c, "num_key_value_heads", d->kv_heads ? d->kv_heads : s->heads, s->heads, &s->kv_heads, err) ||
        !mt_size_read(c, "head_dim", d->head_dim ? d->head_dim : s->hidden / s->heads, MT_LIMIT_HEAD_DIM, &s->head_dim,
                      err) ||
        !mt_size_read(c, "intermediate_size", d->ffn, MT_LIMIT_WIDTH, &s->ffn, err) ||
        !mt_size_read(c, "max_position_embeddings", d->context, MT_LIMIT_CONTEXT, &s->context, err))
        return false;
    if (s->heads % s->kv_heads)
        return mt_fail(err, MT_E_INVALID,
                       "\"num_attention_heads\" is %u, which is no multiple of \"num_key_value_heads\" %u", s->heads,
                       s->kv_heads);
    if (s->head_dim % 2)
        return mt_fail(err, MT_E_INVALID, "\"head_dim\" is %u; rotary embeddings need an even number", s->head_dim);
    return true;
}

static bool read_activation(mt_model_spec *s, const mt_config *c, const mt_family_defaults *d, mt_error *err)
{
    const char *name = mt_config_string(c, d->activation_key, d->activation);
    if (strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0)
        s->activation = MT_ACT_SILU;
    else if (strcmp(name, "gelu_pytorch_tanh") == 0)
        s->activation = MT_ACT_GELU_TANH;
    else
        return mt_fail(err, MT_E_UNSUPPORTED, "\"%s\" is \"%.64s\"; known are silu and gelu_pytorch_tanh",
                       d->activation_key, name);
    return true;
}

static bool read_common(mt_model_spec *s, const mt_config *c, const mt_family_defaults *d, mt_error *err)
{
    double eps;
    if (!read_shape(s, c, d, err) || !read_activation(s, c, d, err) ||
        !mt_config_float(c, "rms_norm_eps", d->eps, 0, 1, &eps, err))
        return false;
    s->eps = (float)eps;
    s->attn_scale = 1.0f / sqrtf((float)s->head_dim);
    s->embed_scale = 1.0f;
    s->tied = mt_config_bool(c, "tie_word_embeddings", d->tied);
    return true;
}

bool mt_layer_types_read(const mt_model_spec *spec, mt_layer_spec *layer, const mt_config *c, uint32_t window)
{
    if (mt_config_array(c, "layer_types") != spec->layers)
        return false;
    for (size_t i = 0; i < spec->layers; i++) {
        const char *type = mt_config_array_string(c, "layer_types", i);
        layer[i].window = type && strcmp(type, "sliding_attention") == 0 ? window : 0;
    }
    return true;
}

static size_t find_group(mt_model_spec *spec, uint32_t window)
{
    for (size_t g = 0; g < spec->group_count; g++)
        if (spec->groups[g].window == window)
            return g;
    return spec->group_count;
}

/* The window of the first attention layer, or 0 where one sees everything; false where there is no such layer. */
static bool kept_window(const mt_model_spec *spec, const mt_layer_spec *layer, uint32_t *kept)
{
    bool found = false;
    for (size_t i = 0; i < spec->layers; i++) {
        if (layer[i].recurrent)
            continue;
        if (!found || layer[i].window == 0)
            *kept = layer[i].window;
        found = true;
    }
    return found;
}

/* The group that keeps everything comes first; where no layer sees everything, the first layer's window does. */
static bool declare_groups(mt_model_spec *spec, mt_layer_spec *layer, mt_error *err)
{
    uint32_t kept = 0;
    if (!kept_window(spec, layer, &kept))
        return mt_fail(err, MT_E_UNSUPPORTED, "all layers are recurrent; at least one must have attention");
    spec->group_count = 1;
    spec->groups[0] = (mt_layer_group){.window = kept};
    for (size_t i = 0; i < spec->layers; i++) {
        if (layer[i].recurrent) {
            layer[i].slot = (uint16_t)spec->state.layers++;
            continue;
        }
        const size_t g = find_group(spec, layer[i].window);
        if (g == MT_KV_GROUPS)
            return mt_fail(err, MT_E_UNSUPPORTED, "layers with more than %d different windows are not supported",
                           MT_KV_GROUPS - 1);
        if (g == spec->group_count)
            spec->groups[spec->group_count++] = (mt_layer_group){.window = layer[i].window};
        layer[i].group = (uint8_t)g;
        layer[i].slot = (uint16_t)spec->groups[g].layers++;
    }
    spec->groups[0].window = 0;
    return true;
}

static bool read_vision(mt_model_spec *spec, const mt_family *f, const mt_config *config, mt_arena *arena,
                        mt_error *err)
{
    if (!f->read_vision || !mt_config_object(config, "vision_config"))
        return true;
    mt_vision_spec *vision = mt_arena_alloc(arena, sizeof *vision);
    if (!vision)
        return mt_fail(err, MT_E_MEMORY, "no memory for the tower");
    if (!f->read_vision(vision, spec, config, arena, err))
        return false;
    spec->vision = vision;
    spec->image_blocks = vision->pool;
    spec->deepstack = vision->tap_count < spec->layers ? vision->tap_count : spec->layers;
    return true;
}

bool mt_model_spec_read(mt_model_spec *spec, const mt_config *config, const char *family, mt_arena *arena,
                        mt_error *err)
{
    memset(spec, 0, sizeof *spec);
    const char *type = mt_config_string(config, "model_type", "");
    const mt_family *f = find_family(family ? family : type);
    if (!f && mt_bert_known(config))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "model type \"%.64s\" is an encoder and writes no text; serve it, alone or beside a model as "
                       "--embedding-model",
                       type);
    if (!f)
        return fail_unknown(family ? family : type, err);
    const mt_config *text = mt_config_object(config, "text_config");
    if (!text)
        text = config;
    spec->family = f->name;
    spec->architecture = mt_config_array_string(config, "architectures", 0);
    if (!spec->architecture)
        spec->architecture = type;
    if (!read_common(spec, text, &f->defaults, err))
        return false;
    if (text != config && mt_config_has(config, "tie_word_embeddings"))
        spec->tied = mt_config_bool(config, "tie_word_embeddings", spec->tied);
    mt_layer_spec *layer = mt_arena_alloc(arena, spec->layers * sizeof *layer);
    if (!layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for the layers of the model");
    spec->layer = layer;
    return f->read(spec, layer, text, arena, err) && declare_groups(spec, layer, err) &&
           read_vision(spec, f, config, arena, err);
}
