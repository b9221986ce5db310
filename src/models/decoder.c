/* The one decoder that runs every text family, as its spec says (model.h). The residual stream is fp32 (R2 of
   docs/numerics.md).

   Owns the device objects of a model: weights, working tensors, pages. Used by the device's thread. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "models/decoder_inside.h"

mt_kv_shape mt_model_kv_shape(const mt_model_spec *spec, size_t group, mt_kv_type type)
{
    const mt_layer_group *g = &spec->groups[group];
    if (g->top > 0 && type == MT_KV_Q4) /* what 4 bits would leave of a score chooses too badly */
        type = MT_KV_Q8;
    return (mt_kv_shape){.group = group,
                         .layers = g->layers + (group == 0 && spec->mtp),
                         .heads = g->kv_heads,
                         .query_heads = g->heads,
                         .head_dim = g->head_dim,
                         .latent = g->latent,
                         .top = g->top,
                         .page_tokens = MT_PAGE_TOKENS,
                         .type = type};
}

/* transformers rounds the embedding's scale to the type that the model runs in: that of the weights in fast precision,
   fp32 in reference precision. This does the same. */
static float embed_scale(const mt_device *dev, float scale, const mt_mat *embed)
{
    const bool bf16 = embed->format == MT_FORMAT_BF16 || embed->scale_type == MT_SCALE_BF16;
    if (!bf16 || mt_device_precision(dev) == MT_PRECISION_REFERENCE)
        return scale;
    uint32_t bits;
    float rounded;
    memcpy(&bits, &scale, sizeof(bits));
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&rounded, &bits, sizeof(rounded));
    return rounded;
}

/* A layer's own embedding is (norm(projection) + table entry) / sqrt(2); both terms are made with that factor here. */
static void load_aside(mt_model *m, const mt_model_weights *w)
{
    const size_t width = m->spec->aside, all = m->spec->layers * width;
    const float share = sqrtf(0.5f);
    float *norm = mt_alloc_array(width, sizeof(*norm));
    for (size_t i = 0; i < width; i++)
        norm[i] = w->aside_norm[i] * share;
    m->aside_norm = mt_tensor_of(m->set, norm, 1, width);
    mt_free(norm);
    m->aside_scale = embed_scale(m->dev, sqrtf((float)width), &w->aside) * share;
    m->aside_table = mt_weight_new(m->set, &w->aside, NULL, true);
    m->aside_projection = mt_weight_new(m->set, &w->aside_projection, NULL, false);
    m->aside = mt_tensor_new(m->set, m->max_rows, all);
    m->aside_projected = mt_shared_new(m->set, m->dev, NULL, m->max_rows, all, m->spec->aside_slices);
    for (size_t i = 0; i < m->spec->layers; i++)
        m->layers[i].aside = mt_tensor_part(m->set, m->aside, 0, m->max_rows, i * width, width);
}

static void new_tensors(mt_model *m, size_t rows, size_t logits)
{
    const mt_model_spec *s = m->spec;
    mt_set *set = m->set;
    mt_decoder_streams_new(m, rows);
    mt_decoder_ropes_new(m, rows);
    m->stretch = mt_tensor_of(set, s->stretch.factor, 1, s->stretch.count);
    m->wanted = mt_index_new(set, logits);
    m->last = mt_tensor_new(set, logits, s->hidden);
    m->logits = mt_shared_new(set, m->dev, NULL, logits, s->vocab, s->vocab_slices);
    for (size_t i = 0; i < MT_COUNT(m->sound); i++) {
        m->sound[i] = mt_tensor_new(set, rows, 1);
        m->sound_reading[i] = mt_reading_new(set, rows * sizeof(float));
    }
    m->pool_to = mt_index_new(set, rows);
    m->pooled = mt_tensor_new(set, m->max_places, s->hidden);
    m->pooled_reading = mt_reading_new(set, s->hidden * sizeof(float));
}

mt_model *mt_model_new(mt_device *dev, const mt_model_spec *spec, const mt_model_weights *weights,
                       const mt_model_params *params, mt_error *err)
{
    mt_model *m = mt_alloc(sizeof(*m));
    m->dev = dev;
    m->set = mt_set_new(dev);
    m->spec = spec;
    if (!mt_relay_new(&m->relay, dev, spec, params, err))
        goto fail;
    m->max_rows = params->rows;
    m->max_logits = params->logits;
    m->max_places = params->places;
    m->layers = mt_alloc(spec->layers * sizeof(*m->layers));
    m->work = mt_alloc_array((spec->layers + 1) * MT_ROLES, sizeof(*m->work));
    m->ropes = mt_alloc_array(spec->rope_count, sizeof(*m->ropes));
    for (size_t g = 0; g < spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(spec, g, mt_kv_cached_type(dev));
        if (shape.heads == 0) /* other ranks have all its heads */
            continue;
        m->kv[g] = mt_kv_new(m->set, &shape, err);
        if (!m->kv[g])
            goto fail;
    }
    if (spec->state.layers)
        m->mixer = mt_mixer_new(m->set, dev, spec, weights->layer, params);
    m->embed_scale = embed_scale(dev, spec->embed_scale, &weights->embed);
    m->embed = mt_weight_new(m->set, &weights->embed, NULL, true);
    m->head = mt_weight_new(m->set, &weights->head, NULL, false);
    m->norm = mt_tensor_of(m->set, weights->norm, 1, spec->hidden);
    m->no_bias = spec->centred ? mt_tensor_new(m->set, 1, spec->hidden) : NULL; /* new tensors are zeros */
    for (size_t i = 0; i < spec->layers; i++)
        mt_decoder_layer_load(m, &m->layers[i], &weights->layer[i], &spec->layer[i]);
    if (spec->aside)
        load_aside(m, weights);
    if (mt_model_guesses(spec))
        m->guess = mt_guess_new(m, weights, params);
    new_tensors(m, params->rows, params->logits);
    if (spec->blank.count)
        m->tokens = mt_alloc_array(params->rows, sizeof(*m->tokens));
    if (mt_device_plan(dev, params->rows, err) && mt_relay_agree(&m->relay, err))
        return m;
fail:
    mt_model_free(m);
    return NULL;
}

void mt_model_free(mt_model *m)
{
    if (!m)
        return;
    mt_relay_free(&m->relay);
    mt_mixer_free(m->mixer);
    mt_guess_free(m->guess);
    mt_free(m->layers);
    mt_free(m->work);
    mt_free(m->tokens);
    mt_free(m->ropes);
    mt_set_free(m->set);
    mt_free(m);
}

bool mt_model_reserve(mt_model *m, const size_t pages[MT_KV_GROUPS], size_t states, mt_error *err)
{
    mt_relay_reserve(&m->relay, pages, states);
    if (m->mixer && !mt_mixer_reserve(m->mixer, states, err))
        return false;
    for (size_t g = 0; g < m->spec->group_count; g++)
        if (m->kv[g] && !mt_kv_reserve(m->set, m->kv[g], pages[g], err))
            return false;
    return mt_relay_agree(&m->relay, err);
}

void mt_model_poison(mt_model *m, size_t group, uint32_t page)
{
    mt_states *states = group == MT_KV_GROUPS ? mt_mixer_state(m->mixer) : NULL;
    mt_relay_poison(&m->relay, group, page);
    if (states)
        mt_state_poison(m->dev, states, page);
    else if (group < MT_KV_GROUPS && m->kv[group])
        mt_kv_poison(m->dev, m->kv[group], page);
}

bool mt_model_poisoned(mt_model *m, size_t group, uint32_t page)
{
    return group == MT_KV_GROUPS ? mt_state_poisoned(m->dev, mt_mixer_state(m->mixer), page)
                                 : mt_kv_poisoned(m->dev, m->kv[group], page);
}

void mt_model_set_features(mt_model *m, const mt_tensor *features)
{
    m->features = features;
    mt_relay_set_features(&m->relay, m->set, m->dev, features);
}

bool mt_model_sound(mt_model *m, size_t ago, size_t row)
{
    return *mt_reading_row(m->dev, m->sound_reading[(m->steps - 1 - ago) % MT_COUNT(m->sound)], row) != 0;
}

void mt_model_copy_pages(mt_model *m, const uint32_t to[MT_KV_GROUPS], const uint32_t from[MT_KV_GROUPS])
{
    mt_relay_copy(&m->relay, to, from);
    for (size_t g = 0; g < m->spec->group_count; g++)
        if (to[g] != MT_NO_PAGE && m->kv[g])
            mt_op_kv_copy(m->dev, m->kv[g], to[g], from[g]);
}

void mt_model_read_page(mt_model *m, mt_reading *reading, size_t group, uint32_t page)
{
    mt_read_page(m->dev, reading, m->kv[group], page);
}

void mt_model_read_state(mt_model *m, mt_reading *reading, uint32_t slot)
{
    mt_read_state(m->dev, reading, mt_mixer_state(m->mixer), slot);
}

void mt_model_restore_page(mt_model *m, size_t group, uint32_t page, mt_sending *s, size_t at)
{
    mt_kv_restore(m->dev, m->kv[group], page, s, at);
}

void mt_model_restore_state(mt_model *m, uint32_t slot, mt_sending *s, size_t at)
{
    mt_state_restore(m->dev, mt_mixer_state(m->mixer), slot, s, at);
}

/* ---- the step ---- */

/* The projection should read x / sqrt(hidden); the norm behind it cancels that factor, except beside its eps, which is
   scaled instead. */
static void make_aside(mt_model *m, size_t n)
{
    const mt_model_spec *s = m->spec;
    mt_op_embed(m->dev, m->aside, m->aside_table, m->aside_scale);
    mt_tensor *projected = m->aside_projected.all;
    mt_shared_product(m->dev, &m->aside_projected, m->aside_projection, m->x, n);
    mt_op_heads(m->dev, projected, projected, n, s->aside, m->aside_norm, s->eps * (float)s->hidden, 0, NULL, false);
    mt_op_add(m->dev, m->aside, projected, n);
}

/* The batch with its tokens replaced where they are embedded as another (mt_model_spec.blank). */
static mt_batch as_embedded(mt_model *m, const mt_batch *batch)
{
    const mt_blank *blank = &m->spec->blank;
    mt_batch out = *batch;
    for (size_t i = 0; m->tokens && i < batch->rows; i++) {
        m->tokens[i] = batch->tokens[i];
        for (size_t j = 0; j < blank->count; j++)
            if (batch->tokens[i] == blank->token[j])
                m->tokens[i] = blank->as;
        out.tokens = m->tokens;
    }
    return out;
}

const mt_tensor *mt_model_step(mt_model *m, const mt_batch *batch, const uint32_t *rows, size_t count)
{
    const mt_model_spec *s = m->spec;
    const size_t n = batch->rows, turn = m->steps++ % MT_COUNT(m->sound);
    assert(n <= m->max_rows && count <= m->max_logits && !(batch->chooser && m->tokens));
    mt_relay_step(&m->relay, batch, rows, count);
    mt_alloc_forbid();
    const mt_batch embedded = as_embedded(m, batch);
    mt_step_begin(m->dev, &embedded);
    if (count) /* all inputs are handed over first and results are read last, so that nothing waits in between */
        mt_index_write(m->dev, m->wanted, rows, count);
    mt_op_embed(m->dev, m->x, m->embed, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, m->features, 0, false);
    if (s->aside)
        make_aside(m, n);
    mt_decoder_ropes_fill(m);
    for (size_t i = 0; i < s->layers; i++) {
        mt_decoder_layer_run(m, &m->layers[i], &s->layer[i], n);
        if (batch->features && i < s->deepstack)
            mt_op_features(m->dev, m->x, m->features, (i + 1) * s->hidden, true);
    }
    mt_op_finite(m->dev, m->sound[turn], m->x, n);
    if (count) {
        mt_op_gather(m->dev, m->last, m->x, m->wanted, count);
        mt_model_norm(m, m->last, m->last, count, m->norm);
        mt_decoder_logits(m, &m->logits, m->head, m->last, count, s->final_softcap);
        if (s->logit_scale != 0)
            mt_op_scale(m->dev, m->logits.all, count, s->logit_scale);
    }
    if (m->guess)
        mt_guess_enter(m, batch);
    mt_read_rows(m->dev, m->sound_reading[turn], m->sound[turn], 0, n);
    mt_alloc_permit();
    mt_relay_done(&m->relay);
    return m->logits.all;
}

/* Where the model guesses ahead, the final states are in guess->rows, and x has been overwritten. */
void mt_model_pool(mt_model *m, const uint32_t *to, size_t rows)
{
    const mt_tensor *hidden = m->guess ? m->guess->rows : m->h;
    assert(rows <= m->max_rows);
    if (!m->guess)
        mt_model_norm(m, m->h, m->x, rows, m->norm);
    mt_index_write(m->dev, m->pool_to, to, rows);
    mt_op_sum_rows(m->dev, m->pooled, m->pool_to, hidden, rows);
}

const float *mt_model_state(mt_model *m, size_t row)
{
    mt_read_rows(m->dev, m->pooled_reading, m->guess ? m->guess->rows : m->h, row, 1);
    return mt_reading_row(m->dev, m->pooled_reading, 0);
}

void mt_model_pool_begin(mt_model *m, size_t place)
{
    mt_op_clear(m->dev, m->pooled, place, 1);
}

const float *mt_model_pooled(mt_model *m, size_t place)
{
    mt_read_rows(m->dev, m->pooled_reading, m->pooled, place, 1);
    return mt_reading_row(m->dev, m->pooled_reading, 0);
}
