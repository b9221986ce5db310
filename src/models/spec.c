/* Reads config.json into a spec (spec.h): finds the family, reads the common keys, calls the family's reader, and
   divides the layers into groups. */
#include "models/spec.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "device/limits.h"
#include "models/bert.h"
#include "models/family.h"
#include "models/vision_family.h"
#include "sample/limits.h"
#include "weights/elsewhere.h"
#include "weights/limits.h"

#define LISTED(name) &mt_family_##name
static const mt_family *const families[] = {MT_FAMILIES(LISTED)};

static const mt_family *find_family(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(families); i++)
        if (strcmp(families[i]->name, name) == 0)
            return families[i];
    return NULL;
}

/* Says what to do about a model type that is not known. */
static bool fail_unknown(const char *name, mt_error *err)
{
    char advice[128] = MT_ELSEWHERE_ADVICE;
    mt_nearest nearest;

    if (!*name)
        return mt_fail(err, MT_E_INVALID, "\"model_type\" is missing in config.json: name the family with --family");
    mt_nearest_init(&nearest, name);
    for (size_t i = 0; i < MT_COUNT(families); i++)
        if (!families[i]->drafts)
            mt_nearest_offer(&nearest, families[i]->name);
    if (nearest.best)
        snprintf(advice, sizeof(advice), "if it is like %s, --family %s reads it so", nearest.best, nearest.best);
    return mt_fail_elsewhere("model type", name, advice, err);
}

/* Reads the number and size of heads. */
static bool read_heads(mt_attn_spec *a, uint32_t hidden, const mt_config *c, const mt_family_defaults *d, mt_error *err)
{
    if (!mt_size_read(c, "num_attention_heads", d->heads, MT_LIMIT_WIDTH, &a->heads, err) ||
        !mt_size_read(c, "num_key_value_heads", d->kv_heads ? d->kv_heads : a->heads, a->heads, &a->kv_heads, err) ||
        !mt_size_read(c, "head_dim", d->head_dim ? d->head_dim : hidden / a->heads, MT_LIMIT_HEAD_DIM, &a->head_dim,
                      err))
        return false;
    if (a->heads % a->kv_heads)
        return mt_fail(err, MT_E_INVALID,
                       "\"num_attention_heads\" is %u, which is no multiple of \"num_key_value_heads\" %u", a->heads,
                       a->kv_heads);
    if (a->head_dim % 2)
        return mt_fail(err, MT_E_INVALID, "\"head_dim\" is %u; rotary embeddings need an even number", a->head_dim);
    a->scale = 1.0f / sqrtf((float)a->head_dim);
    return true;
}

static bool read_activation(mt_mlp_spec *mlp, const mt_config *c, const mt_family_defaults *d, mt_error *err)
{
    const char *key = d->activation_key ? d->activation_key : "hidden_act";
    const char *name = mt_config_string(c, key, d->activation ? d->activation : "silu");
    if (strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0)
        mlp->glu.act = MT_ACT_SILU;
    else if (strcmp(name, "gelu_pytorch_tanh") == 0)
        mlp->glu.act = MT_ACT_GELU_TANH;
    else if (strcmp(name, "relu2") == 0 && d->activation &&
             strcmp(d->activation, name) == 0) /* the square of relu: relu(up) times up, without a gate */
        *mlp = (mt_mlp_spec){.ffn = mlp->ffn, .glu.act = MT_ACT_RELU, .single = true};
    else
        return mt_fail(err, MT_E_UNSUPPORTED, "\"%s\" is \"%.64s\"; known are silu and gelu_pytorch_tanh", key, name);
    return true;
}

/* Reads the keys that all configs have: of the model, and of a layer unless its family says otherwise. */
static bool read_common(mt_model_spec *s, mt_layer_spec *usual, const mt_config *c, const mt_family_defaults *d,
                        mt_error *err)
{
    double eps;
    if (!mt_size_read(c, "vocab_size", d->vocab, MT_LIMIT_VOCAB, &s->vocab, err) ||
        !mt_size_read(c, "hidden_size", d->hidden, MT_LIMIT_WIDTH, &s->hidden, err) ||
        !mt_size_read(c, "num_hidden_layers", d->layers, MT_LIMIT_LAYERS, &s->layers, err) ||
        !read_heads(&usual->attn, s->hidden, c, d, err) ||
        !mt_size_read(c, "intermediate_size", d->ffn, MT_LIMIT_WIDTH, &usual->mlp.ffn, err) ||
        !mt_size_read(c, "max_position_embeddings", d->context, MT_LIMIT_CONTEXT, &s->context, err) ||
        !read_activation(&usual->mlp, c, d, err) || !mt_config_float(c, "rms_norm_eps", d->eps, 0, 1, &eps, err))
        return false;
    s->eps = (float)eps;
    s->embed_scale = 1.0f;
    s->tied = mt_config_bool(c, "tie_word_embeddings", d->tied);
    return true;
}

/* Most keys that a layer's queries see; 0: all. */
static uint32_t reach(const mt_attn_spec *a)
{
    return a->chunk && (!a->window || a->chunk < a->window) ? a->chunk : a->window;
}

/* Gives the keys by which layers choose positions a group and slots. */
static bool group_indexes(mt_model_spec *spec, mt_layer_spec *layer, mt_error *err)
{
    const size_t g = spec->group_count;
    for (size_t i = 0; i < spec->layers; i++) {
        mt_index_spec *index = &layer[i].attn.index;
        if (index->top == 0)
            continue;
        if (index->heads == 0 && spec->group_count == g)
            return mt_fail(err, MT_E_INVALID, "layer %zu attends to what an earlier layer chose, and none chooses", i);
        if (index->heads == 0)
            continue;
        if (g == MT_KV_GROUPS)
            return mt_fail(err, MT_E_UNSUPPORTED, "layers of %d windows or shapes of keys cannot choose positions",
                           MT_KV_GROUPS);
        spec->group_count = (uint32_t)g + 1;
        spec->groups[g].kv_heads = 1;
        spec->groups[g].head_dim = spec->groups[g].latent = index->head_dim;
        spec->groups[g].heads = index->heads;
        spec->groups[g].top = index->top;
        index->group = (uint8_t)g;
        index->slot = (uint16_t)spec->groups[g].layers++;
    }
    return true;
}

static bool keeps_alike(const mt_layer_group *g, const mt_attn_spec *a)
{
    return g->window == reach(a) && g->kv_heads == a->kv_heads && g->head_dim == a->head_dim &&
           g->latent == a->latent.width;
}

/* Adds a layer to the group it fits, or to a new one; MT_KV_GROUPS: there are too many groups. */
static size_t join_group(mt_model_spec *spec, const mt_attn_spec *a)
{
    size_t g = 0;
    while (g < spec->group_count && !keeps_alike(&spec->groups[g], a))
        g++;
    if (g == MT_KV_GROUPS)
        return g;
    if (g == spec->group_count)
        spec->groups[spec->group_count++] =
            (mt_layer_group){.window = reach(a), .kv_heads = a->kv_heads, .head_dim = a->head_dim};
    spec->groups[g].latent = a->latent.width;
    if (a->heads > spec->groups[g].heads)
        spec->groups[g].heads = a->heads;
    return g;
}

/* The first attention layer that sees everything or, where none does, the first with attention; NULL: there is none. */
static const mt_layer_spec *widest(const mt_model_spec *spec)
{
    const mt_layer_spec *found = NULL;
    for (size_t i = spec->layers; i-- > 0;)
        if (spec->layer[i].kind == MT_LAYER_ATTENTION &&
            (!found || !reach(&spec->layer[i].attn) || reach(&found->attn)))
            found = &spec->layer[i];
    return found;
}

/* Gives a layer that reads another's keys the group and slot of that one. */
static bool share_keys(mt_model_spec *spec, mt_layer_spec *layer, size_t i, mt_error *err)
{
    const mt_attn_spec *a = &layer[i].attn, *from = &layer[a->source].attn;
    if (a->source >= i || layer[a->source].kind != MT_LAYER_ATTENTION || from->keys == MT_KEYS_EARLIER ||
        from->kv_heads != a->kv_heads || from->head_dim != a->head_dim ||
        (reach(from) && (!reach(a) || reach(a) > reach(from))))
        return mt_fail(err, MT_E_INVALID, "layer %zu cannot read the keys of layer %u: their shapes or windows differ",
                       i, a->source);
    mt_layer_group *g = &spec->groups[layer[a->source].group];
    layer[i].group = layer[a->source].group;
    layer[i].slot = layer[a->source].slot;
    g->heads = a->heads > g->heads ? a->heads : g->heads;
    return true;
}

/* The group of the layer that sees most comes first, and keeps all positions even where that layer has a window. */
bool mt_model_spec_group(mt_model_spec *spec, mt_layer_spec *layer, mt_error *err)
{
    const mt_layer_spec *first = widest(spec);
    if (!first)
        return mt_fail(err, MT_E_UNSUPPORTED, "all layers are recurrent; at least one must have attention");
    join_group(spec, &first->attn);
    for (size_t i = 0; i < spec->layers; i++) {
        if (layer[i].kind == MT_LAYER_RECURRENT) {
            layer[i].slot = (uint16_t)spec->state.layers++;
            continue;
        }
        if (layer[i].kind == MT_LAYER_ALONE)
            continue;
        if (layer[i].paired)
            layer[i].state_slot = (uint16_t)spec->state.layers++;
        if (layer[i].attn.keys == MT_KEYS_EARLIER) {
            if (!share_keys(spec, layer, i, err))
                return false;
            continue;
        }
        const size_t g = join_group(spec, &layer[i].attn);
        if (g == MT_KV_GROUPS)
            return mt_fail(err, MT_E_UNSUPPORTED,
                           "layers with more than %d different windows or shapes of keys are not supported",
                           MT_KV_GROUPS - 1);
        layer[i].group = (uint8_t)g;
        layer[i].slot = (uint16_t)spec->groups[g].layers++;
    }
    if (spec->state.layers && spec->group_count > 1)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "recurrent layers beside attention of different windows or shapes are not supported");
    spec->groups[0].window = 0;
    return group_indexes(spec, layer, err);
}

const mt_layer_spec *mt_model_spec_attention(const mt_model_spec *spec)
{
    const mt_layer_spec *layer = spec->layer;
    while (layer->kind != MT_LAYER_ATTENTION)
        layer++;
    return layer;
}

const mt_layer_spec *mt_model_spec_sparse(const mt_model_spec *spec)
{
    for (size_t i = 0; i < spec->layers; i++)
        if (spec->layer[i].sparse)
            return &spec->layer[i];
    return NULL;
}

static bool check_tower(const mt_family *f, const mt_config *tower, mt_error *err)
{
    const char *const *known = f->vision->types, *type = mt_config_string(tower, "model_type", known[0]);
    if (!known[0] || strcmp(type, known[0]) == 0 || (known[1] && strcmp(type, known[1]) == 0))
        return true;
    return mt_fail(err, MT_E_UNSUPPORTED, "the tower of %s has the type \"%.64s\"; %s%s%s", f->name, type, known[0],
                   known[1] ? " is known, and " : " is known", known[1] ? known[1] : "");
}

static bool read_vision(mt_model_spec *spec, const mt_family *f, const mt_config *config, mt_arena *arena,
                        mt_error *err)
{
    if (!f->vision || !mt_config_object(config, "vision_config"))
        return true;
    mt_vision_spec *vision = mt_arena_alloc(arena, sizeof(*vision));
    if (!vision)
        return mt_fail(err, MT_E_MEMORY, "no memory for the tower");
    if (!check_tower(f, mt_config_object(config, "vision_config"), err) ||
        !f->vision->read_tower(vision, spec, config, arena, err))
        return false;
    vision->family = f->vision;
    spec->vision = vision;
    spec->deepstack = vision->tap_count < spec->layers ? vision->tap_count : spec->layers;
    return true;
}

/* Ids outside the vocabulary are ignored. */
static bool read_blanks(mt_model_spec *spec, const mt_family *f, const mt_config *config, const mt_config *text,
                        mt_error *err)
{
    int64_t id;
    for (size_t i = 0; text != config && i < MT_COUNT(f->blanks) && f->blanks[i].key; i++) {
        if (!mt_config_int(config, f->blanks[i].key, f->blanks[i].id, 0, INT32_MAX, &id, err))
            return false;
        if (id < spec->vocab)
            spec->blank.token[spec->blank.count++] = (uint32_t)id;
    }
    if (spec->blank.count == 0)
        return true;
    if (!mt_config_int(text, "pad_token_id", 0, 0, (int64_t)spec->vocab - 1, &id, err))
        return false;
    spec->blank.as = (uint32_t)id;
    return true;
}

/* The family of the text model (mt_family.beneath); NULL: unknown. */
static const mt_family *find_beneath(const mt_family *f, const mt_config *text, bool inner, mt_error *err)
{
    if (!f->beneath[0])
        return f;
    const char *type = mt_config_string(text, "model_type", f->beneath[0]->name);
    char known[256] = "";
    size_t len = 0, count = 0;
    while (count < MT_COUNT(f->beneath) && f->beneath[count])
        count++;
    for (size_t i = 0; i < count; i++) {
        if (!inner || strcmp(f->beneath[i]->name, type) == 0)
            return f->beneath[i];
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s",
                                i == 0          ? ""
                                : i + 1 < count ? ", "
                                                : " and ",
                                f->beneath[i]->name);
    }
    mt_fail(err, MT_E_UNSUPPORTED, "the text model of %s has the type \"%.64s\"; %s%s%s", f->name, type,
            count > 1 ? "known are " : "", known, count > 1 ? "" : " is known");
    return NULL;
}

/* Reads the text model, except its groups. */
static bool read_text(mt_model_spec *spec, const mt_family *f, const mt_config *config, const mt_config *text,
                      mt_layer_spec **layer, mt_arena *arena, mt_error *err)
{
    memset(spec, 0, sizeof(*spec));
    const mt_family *beneath = find_beneath(f, text, text != config, err);
    if (!beneath)
        return false;
    spec->family = f->name;
    spec->architecture = mt_config_array_string(config, "architectures", 0);
    if (!spec->architecture)
        spec->architecture = mt_config_string(config, "model_type", "");
    mt_layer_spec usual = {0};
    if (!read_common(spec, &usual, text, &beneath->defaults, err))
        return false;
    if (text != config && mt_config_has(config, "tie_word_embeddings"))
        spec->tied = mt_config_bool(config, "tie_word_embeddings", spec->tied);
    *layer = mt_arena_alloc(arena, spec->layers * sizeof(**layer));
    if (!*layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for the layers of the model");
    spec->layer = *layer;
    **layer = usual;
    mt_layers_repeat(spec, *layer);
    return beneath->read(spec, *layer, text, arena, err);
}

/* The model type of a config. LLaVA joins any text model and any tower: with Pixtral's tower it is Pixtral. */
static const char *type_of(const mt_config *config)
{
    const char *type = mt_config_string(config, "model_type", "");
    const mt_config *tower = strcmp(type, "llava") == 0 ? mt_config_object(config, "vision_config") : NULL;
    const bool pixtral = tower && strcmp(mt_config_string(tower, "model_type", ""), "pixtral") == 0;
    return pixtral ? "pixtral" : type;
}

bool mt_model_spec_read(mt_model_spec *spec, const mt_config *config, const char *family, mt_arena *arena,
                        mt_error *err)
{
    const char *type = type_of(config);
    const mt_family *f = find_family(family ? family : type);
    if ((!f || !family) && mt_bert_known(config))
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "model type \"%.64s\" is an encoder and writes no text; serve it, alone or beside a model as "
                       "--embedding-model",
                       type);
    if (!f)
        return fail_unknown(family ? family : type, err);
    if (f->drafts)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "model type \"%s\" guesses for another model and answers nothing by itself; give it beside "
                       "that model, as --draft",
                       f->name);
    const mt_config *text = mt_config_object(config, "text_config");
    mt_layer_spec *layer;
    text = text ? text : config;
    return read_text(spec, f, config, text, &layer, arena, err) && mt_model_spec_group(spec, layer, err) &&
           read_blanks(spec, f, config, text, err) && read_vision(spec, f, config, arena, err);
}

/* ---- drafters ---- */

/* Finds the layer whose keys and values a drafter's layer reads: the last with the same window that has its own. */
static bool borrow_keys(mt_model_spec *spec, mt_layer_spec *layer, size_t i, mt_error *err)
{
    const mt_attn_spec *a = &layer[i].attn;
    size_t from = spec->layers;
    while (from > 0 &&
           (spec->layer[from - 1].kind != MT_LAYER_ATTENTION || spec->layer[from - 1].attn.keys == MT_KEYS_EARLIER ||
            !spec->layer[from - 1].attn.window != !a->window))
        from--;
    const mt_layer_spec *source = from > 0 ? &spec->layer[from - 1] : NULL;
    if (!source || source->attn.kv_heads != a->kv_heads || source->attn.head_dim != a->head_dim ||
        a->window > source->attn.window)
        return mt_fail(err, MT_E_INVALID,
                       "layer %zu of the draft has %u key heads of %u elements and a window of %u, as no layer of the "
                       "model; it is for another one",
                       i, a->kv_heads, a->head_dim, a->window);
    mt_layer_group *g = &spec->groups[source->group];
    g->heads = a->heads > g->heads ? a->heads : g->heads;
    layer[i].group = source->group;
    layer[i].slot = source->slot;
    return true;
}

static bool read_clusters(mt_drafter_spec *d, const mt_config *c, mt_error *err)
{
    if (!mt_config_bool(c, "use_ordered_embeddings", false))
        return true;
    if (!mt_size_read(c, "num_centroids", 2048, d->model.vocab, &d->clusters, err) ||
        !mt_size_read(c, "centroid_intermediate_top_k", 32, d->clusters, &d->top_clusters, err))
        return false;
    return d->model.vocab % d->clusters == 0 ||
           mt_fail(err, MT_E_INVALID, "\"num_centroids\" is %u, which does not divide the %u tokens", d->clusters,
                   d->model.vocab);
}

bool mt_drafter_known(const mt_config *config)
{
    const mt_family *f = find_family(type_of(config));
    return f && f->drafts;
}

bool mt_drafter_spec_read(mt_drafter_spec *d, const mt_config *config, mt_arena *arena, mt_error *err)
{
    const char *type = type_of(config);
    const mt_config *text = mt_config_object(config, "text_config");
    memset(d, 0, sizeof(*d));
    if (!mt_drafter_known(config) || !text)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "model type \"%.64s\" is none that guesses for another; --draft takes a gemma4_assistant", type);
    return read_text(&d->model, find_family(type), config, text, &d->layer, arena, err) &&
           mt_size_read(config, "backbone_hidden_size", 0, MT_LIMIT_WIDTH, &d->backbone, err) &&
           read_clusters(d, config, err);
}

bool mt_drafter_join(mt_drafter_spec *d, mt_model_spec *spec, mt_error *err)
{
    if (d->backbone != spec->hidden || d->model.vocab != spec->vocab)
        return mt_fail(err, MT_E_INVALID, "the draft is for a model of width %u with %u tokens; this one has %u and %u",
                       d->backbone, d->model.vocab, spec->hidden, spec->vocab);
    for (size_t i = 0; i < d->model.layers; i++)
        if (!borrow_keys(spec, d->layer, i, err))
            return false;
    spec->mtp = false;
    spec->drafter = d;
    return true;
}
