/* Gathers what `motet info` shows (info.h). */
#include "models/info.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "models/vision_family.h"

#define THOUSAND 1024 /* tokens that the sizes are given for */

MT_PRINTF(2, 3) static void remark(mt_info *info, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    const char *kept = info->remarks < MT_INFO_REMARKS ? mt_arena_strdup(info->arena, text) : NULL;
    if (kept)
        info->remark[info->remarks++] = kept;
}

/* Bytes of one sequence's states: a matrix for each value head of each layer, and the last inputs of its
   convolution. */
static uint64_t state_bytes(const mt_state_shape *s)
{
    const uint64_t columns = 2 * s->key_heads * s->key_dim + s->value_heads * s->value_dim;
    const uint64_t matrices = (uint64_t)s->value_heads * s->key_dim * s->value_dim;
    return s->layers * ((s->taps - 1) * columns + matrices) * sizeof(float);
}

static void count_cache(mt_info *info)
{
    const mt_model_spec *s = &info->spec;
    uint64_t token = 0;
    if (s->state.layers)
        info->state_bytes = state_bytes(&s->state);
    for (size_t i = 0; i < s->layers; i++) {
        const mt_attn_spec *a = &s->layer[i].attn;
        const uint32_t window = a->window;
        if (s->layer[i].kind != MT_LAYER_ATTENTION)
            continue;
        info->windowed_layers += window > 0;
        info->window = window > info->window ? window : info->window;
        if (a->keys == MT_KEYS_EARLIER)
            continue;
        token = (uint64_t)a->kv_heads * a->head_dim * (a->latent.width ? 1 : 2) * sizeof(mt_bf16);
        info->cache_bytes += token * THOUSAND;
        if (window == 0) {
            info->cache_full_bytes += token * THOUSAND;
            continue;
        }
        info->window_caches++;
        info->cache_window_bytes += token * window;
    }
    if (s->mtp) { /* the drafting head's layer */
        info->cache_bytes += token * THOUSAND;
        info->cache_full_bytes += token * THOUSAND;
    }
}

/* Tensors with a common prefix. */
typedef struct share {
    size_t tensors;
    uint64_t bytes;
} share;

/* Adds the tensors whose names begin with prefix, also behind "model." or "language_model.". */
static void add_share(const mt_info *info, const char *prefix, share *sum)
{
    static const char *const leads[] = {"", "model.", "language_model."};
    for (size_t l = 0; l < MT_COUNT(leads); l++) {
        char full[64];
        snprintf(full, sizeof(full), "%s%s", leads[l], prefix);
        for (size_t i = mt_checkpoint_lower(info->checkpoint, full); i < mt_checkpoint_count(info->checkpoint); i++) {
            const mt_tensor_info *t = mt_checkpoint_at(info->checkpoint, i);
            if (strncmp(t->name, full, strlen(full)) != 0)
                break;
            sum->tensors++;
            sum->bytes += t->bytes;
        }
    }
}

static void remark_share(mt_info *info, const char *what, const char *why, share s, size_t *explained)
{
    char size[MT_UNITS_TEXT];
    if (s.tensors == 0)
        return;
    *explained += s.tensors;
    remark(info, "%s: %zu tensor%s, %s, which %s", what, s.tensors, s.tensors == 1 ? "" : "s",
           mt_bytes_text(s.bytes, size), why);
}

static void remark_unused(mt_info *info)
{
    static const char *const vision[] = {"visual.", "vision_tower.", "vision_model.", "multi_modal_projector.",
                                         "embed_vision."};
    static const char *const audio[] = {"audio_tower.", "embed_audio."};
    share see = {0}, hear = {0}, draft = {0};
    size_t explained = 0;
    for (size_t i = 0; i < MT_COUNT(vision) && !info->spec.vision; i++)
        add_share(info, vision[i], &see);
    for (size_t i = 0; i < MT_COUNT(audio); i++)
        add_share(info, audio[i], &hear);
    if (!info->spec.mtp)
        add_share(info, "mtp.", &draft);
    remark_share(info, "a vision tower", "the text model does not use", see, &explained);
    remark_share(info, "an audio tower", "the text model does not use", hear, &explained);
    remark_share(info, "a multi-token prediction head", "the text model does not use", draft, &explained);
    if (info->cost.unused_tensors > explained && info->problem.code == MT_OK)
        remark(info, "tensors that the model does not use: %zu more (--log-level debug lists them)",
               info->cost.unused_tensors - explained);
}

static void remark_weights(mt_info *info, bool tied_by_config, const mt_quant *quant)
{
    char size[MT_UNITS_TEXT];
    const mt_census *census = &info->census;
    bool quantised = false;
    for (size_t i = 0; i < census->count; i++)
        quantised |= census->kind[i].quantised;
    if (census->unread > 0)
        remark(info, "tensors of a dtype that motet does not compute with: %zu, such as %s", census->unread,
               census->unread_dtype);
    if (quant->method != MT_QUANT_NONE && !quantised)
        remark(info, "the config speaks of quantisation, but no tensor is quantised");
    if (quant->method == MT_QUANT_NONE && quantised)
        remark(info, "the weights are quantised, but the config does not say so");
    if (info->spec.tied && !tied_by_config)
        remark(info, "no lm_head although the config does not tie it: the embeddings are used");
    if (!info->spec.tied && tied_by_config)
        remark(info, "an lm_head although the config ties it: it is used");
    if (info->cost.copied_bytes <= info->cost.mapped_bytes / 8)
        return;
    if (quant->method >= MT_QUANT_GPTQ)
        remark(info, "the weights are laid out anew for the kernels: %s at every load",
               mt_bytes_text(info->cost.copied_bytes, size));
    else if (mt_model_spec_sparse(&info->spec))
        remark(info, "experts lie transposed in the files: %s are repacked at every load",
               mt_bytes_text(info->cost.copied_bytes, size));
}

/* Remarks on what differs from layer to layer. */
static void remark_layers(mt_info *info)
{
    const mt_model_spec *s = &info->spec;
    size_t same = 0, shared = 0, unturned = 0;
    for (size_t i = 0; i < s->layers; i++) {
        unturned += s->layer[i].kind == MT_LAYER_ATTENTION && s->layer[i].attn.rope == MT_NO_ROPE;
        same += s->layer[i].attn.keys == MT_KEYS_VALUES;
        shared += s->layer[i].attn.keys == MT_KEYS_EARLIER;
    }
    if (unturned)
        remark(info, "%zu of %u layers do not turn queries and keys", unturned, s->layers);
    if (s->layer[0].bare)
        remark(info, "norms stand behind attention and MLP, and none in front");
    if (s->layer[0].parallel)
        remark(info, "MLPs stand beside attention, not behind it");
    if (same)
        remark(info, "values are keys before their norm in %zu of %u layers", same, s->layers);
    if (shared)
        remark(info, "%zu of %u layers have no keys and values, but read those of earlier ones", shared, s->layers);
    if (s->group_count > 1 && !s->groups[1].top && s->groups[0].head_dim != s->groups[1].head_dim)
        remark(info, "heads have %u elements where all is seen and %u elsewhere", s->groups[0].head_dim,
               s->groups[1].head_dim);
    if (s->layer[0].beside)
        remark(info, "experts stand beside a dense MLP, each with norms of its own");
    if (s->aside)
        remark(info, "each layer is given an embedding of its own, of %u elements", s->aside);
}

static void remark_spec(mt_info *info)
{
    const mt_model_spec *s = &info->spec;
    const mt_attn_spec *a = &mt_model_spec_attention(s)->attn;
    const mt_layer_spec *sparse = mt_model_spec_sparse(s);
    if (s->rope_count && mt_rope_is_long(s->ropes[0].type))
        remark(info, "texts are limited to the original context of LongRoPE, %u tokens", s->context);
    if (a->qk_norm == MT_QK_NORM_WHOLE)
        remark(info, "queries and keys are normed over all heads together");
    if (s->centred)
        remark(info, "norms subtract the mean");
    if (s->layer[0].residual != 0)
        remark(info, "what attention and MLPs give is multiplied by %g", (double)s->layer[0].residual);
    if (s->logit_scale != 0)
        remark(info, "logits are multiplied by %g", (double)s->logit_scale);
    if (a->softcap > 0)
        remark(info, "attention scores are capped at %g", (double)a->softcap);
    if (s->final_softcap > 0)
        remark(info, "logits are capped at %g", (double)s->final_softcap);
    if (a->sinks)
        remark(info, "each head has a sink, which takes a share of attention and gives nothing");
    if (s->stretch.factor)
        remark(info, "queries are multiplied by up to %.3g as their position grows, from %u on",
               (double)s->stretch.factor[s->stretch.count - 1], s->stretch.every);
    if (s->layer[0].mlp.glu.limit > 0)
        remark(info, "what an expert's gate and up give is cut off at %g", (double)s->layer[0].mlp.glu.limit);
    if (sparse && sparse->moe.routing.kind != MT_ROUTE_CHOSEN && !sparse->moe.routing.renormalise)
        remark(info, "the weights of the chosen experts are not normalised");
    if (sparse && sparse->moe.routing.kind == MT_ROUTE_SIGMOID)
        remark(info, "experts are weighed by sigmoids%s",
               sparse->moe.correction ? ", and chosen with a correction" : "");
    if (sparse && sparse->moe.routing.on_input)
        remark(info, "the weights of experts multiply what they read");
    if (sparse && sparse->moe.routing.groups)
        remark(info, "experts are chosen from the best %u of %u groups", sparse->moe.routing.top_groups,
               sparse->moe.routing.groups);
    if (s->rope_count && s->ropes[0].pairs)
        remark(info, "neighbouring elements of a head are turned, not its halves");
}

/* Remarks on how a tower knows where its patches are, where that is not by rotary embedding alone. */
static void remark_places(mt_info *info, const mt_vision_spec *v)
{
    static const char *const how[] = {
        [MT_SPREAD_ENDS] = NULL,
        [MT_SPREAD_STEPS] = "looked up by a patch's share of the side",
        [MT_SPREAD_SHARES] = "looked up by a patch's share of the side",
        [MT_SPREAD_CUBIC] = "weighed between sixteen neighbours",
        [MT_SPREAD_SMOOTH] = "resized as a picture is",
    };
    if (v->table && how[v->spread])
        remark(info, "learned positions of the tower are %s", how[v->spread]);
    if (v->table && v->theta > 0)
        remark(info, "the tower has learned positions, and turns queries and keys besides");
}

/* Remarks on what only few towers have. */
static void remark_tower(mt_info *info)
{
    const mt_vision_spec *v = info->spec.vision;
    if (v && v->family->image)
        remark(info, "large images may be seen in several views, with tokens for each");
    if (v)
        remark_places(info, v);
    if (v && v->merge_kind == MT_MERGE_INTERLEAVED)
        remark(info, "patches of a token become as wide as one of them before the text model's width");
    if (v && v->summary)
        remark(info, "the tower has a row for each view besides its patches, of which no token is made");
    if (v && v->row_eps > 0)
        remark(info, "queries and keys of the tower are normed by row, all heads together");
    if (v && v->squeezed)
        remark(info, "%d patches become one row after layer %u of the tower", MT_SQUEEZED, v->squeeze);
}

static void take_census(mt_info *info, const mt_quant *quant)
{
    mt_buf text;
    mt_buf_init(&text, sizeof(info->quantisation) - 1);
    mt_census_make(&info->census, info->checkpoint, quant);
    mt_census_summary(&info->census, &text);
    snprintf(info->quantisation, sizeof(info->quantisation), "%s", text.data ? text.data : "");
    mt_buf_free(&text);
}

/* An encoder keeps no keys and values, so its weights are all that it needs. */
static bool gather_encoder(mt_info *info, const mt_config *config, mt_error *err)
{
    mt_bert_weights weights = {0};
    info->encodes = true;
    if (!mt_bert_spec_read(&info->encoder, config, info->arena, err))
        return false;
    if (!mt_bert_bind(&weights, &info->encoder, info->checkpoint, info->arena, &info->problem) &&
        info->problem.code == MT_OK)
        mt_fail(&info->problem, MT_E_INTERNAL, "the weights cannot be bound");
    info->cost = weights.cost;
    take_census(info, &(mt_quant){0});
    return true;
}

/* A drafter keeps no keys and values, either. */
static bool gather_drafter(mt_info *info, const mt_config *config, mt_error *err)
{
    mt_guess_weights weights;
    mt_quant quant;
    mt_error said; /* mt_drafter_bind has reported the same error */
    info->drafts = true;
    if (!mt_drafter_spec_read(&info->drafter, config, info->arena, err))
        return false;
    info->spec = info->drafter.model;
    if (!mt_drafter_bind(&weights, &info->drafter, info->checkpoint, &info->cost, info->arena, &info->problem) &&
        info->problem.code == MT_OK)
        mt_fail(&info->problem, MT_E_INTERNAL, "the weights cannot be bound");
    (void)!mt_quant_read(&quant, config, &said);
    take_census(info, &quant);
    if (info->drafter.clusters)
        remark(info, "of %u clusters of tokens, the best %u are looked at", info->drafter.clusters,
               info->drafter.top_clusters);
    return true;
}

bool mt_info_gather(mt_info *info, const char *dir, mt_error *err)
{
    memset(info, 0, sizeof(*info));
    info->arena = mt_arena_new(0);
    info->checkpoint = mt_checkpoint_inspect(dir, err);
    if (!info->checkpoint)
        return false;
    const mt_config *config = mt_checkpoint_config(info->checkpoint);
    if (mt_bert_known(config))
        return gather_encoder(info, config, err);
    if (mt_drafter_known(config))
        return gather_drafter(info, config, err);
    if (!mt_model_spec_read(&info->spec, config, NULL, info->arena, err))
        return false;
    const bool tied = info->spec.tied;
    mt_model_weights weights;
    if (!mt_model_bind(&weights, &info->spec, info->checkpoint, info->arena, &info->problem) &&
        info->problem.code == MT_OK)
        mt_fail(&info->problem, MT_E_INTERNAL, "the weights cannot be bound");
    info->cost = weights.cost;
    mt_quant quant;
    mt_error said; /* mt_model_bind has reported the same error */
    (void)!mt_quant_read(&quant, config, &said);
    take_census(info, &quant);
    count_cache(info);
    remark_spec(info);
    remark_layers(info);
    remark_tower(info);
    remark_weights(info, tied, &quant);
    remark_unused(info);
    return true;
}

void mt_info_free(mt_info *info)
{
    mt_checkpoint_close(info->checkpoint);
    mt_arena_free(info->arena);
}
