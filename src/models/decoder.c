/* The one decoder that runs every text family, as its spec says. The residual stream is fp32 (R2).

   Owns the device objects of a model: weights, working tensors, cache pages. Driven by the device's thread. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "models/decoder_inside.h"

/* Tokens that are guessed at all. Vocabularies begin with what is frequent, and a head of a quarter of a million rows
   takes as long as some layers. */
#define GUESSED_TOKENS 65536

mt_kv_shape mt_model_kv_shape(const mt_model_spec *spec, size_t group, mt_kv_type type)
{
    const mt_layer_group *g = &spec->groups[group];
    return (mt_kv_shape){.group = group,
                         .layers = g->layers + (group == 0 && spec->mtp),
                         .heads = g->kv_heads,
                         .query_heads = g->heads,
                         .head_dim = g->head_dim,
                         .page_tokens = MT_PAGE_TOKENS,
                         .type = type};
}

/* transformers rounds the embedding's scale to the type the model runs in: the weights' own in fast precision, fp32
   in reference. */
static float embed_scale(const mt_device *dev, float scale, const mt_mat *embed)
{
    const bool bf16 = embed->format == MT_FORMAT_BF16 || embed->scale_type == MT_SCALE_BF16;
    if (!bf16 || mt_device_precision(dev) == MT_PRECISION_REFERENCE)
        return scale;
    uint32_t bits;
    float rounded;
    memcpy(&bits, &scale, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
}

static void load_guess(mt_model *m, const mt_model_weights *weights, const mt_model_params *params)
{
    const mt_guess_weights *w = &weights->guess;
    const size_t hidden = m->spec->hidden, tokens = m->spec->vocab < GUESSED_TOKENS ? m->spec->vocab : GUESSED_TOKENS;
    const mt_mat head = mt_mat_rows(&weights->head, 0, tokens);
    mt_set *set = m->set;
    mt_guess *g = m->guess = mt_alloc(sizeof *g);
    g->fc = mt_weight_new(set, &w->fc, NULL, false);
    g->head = mt_weight_new(set, &head, NULL, false);
    g->embed_norm = mt_tensor_of(set, w->embed_norm, 1, hidden);
    g->hidden_norm = mt_tensor_of(set, w->hidden_norm, 1, hidden);
    g->norm = mt_tensor_of(set, w->norm, 1, hidden);
    g->spec = mt_model_guess_layer(m->spec);
    mt_decoder_layer_load(m, &g->layer, &w->layer, &g->spec);
    g->places = params->places;
    g->hidden = mt_tensor_new(set, 1 + params->places + params->rows, hidden);
    g->rows = mt_tensor_part(set, g->hidden, 1 + params->places, params->rows, 0, hidden);
    g->out = mt_tensor_new(set, params->memos, hidden);
    g->logits = mt_tensor_new(set, params->memos, tokens);
    g->tokens = mt_index_new(set, params->memos);
    g->reading = mt_reading_new(set, params->memos * sizeof(uint32_t));
    g->before_index = mt_index_new(set, params->rows);
    g->both = mt_tensor_new(set, params->rows, 2 * hidden);
    g->left = mt_tensor_part(set, g->both, 0, params->rows, 0, hidden);
    g->right = mt_tensor_part(set, g->both, 0, params->rows, hidden, hidden);
    g->before = mt_alloc_array(params->rows, sizeof *g->before);
    g->from = mt_alloc_array(params->memos, sizeof *g->from);
    for (size_t i = 0; i < params->memos; i++)
        g->from[i] = 1;
}

static void new_ropes(mt_model *m, size_t rows)
{
    const mt_model_spec *s = m->spec;
    for (size_t i = 0; i < s->rope_count; i++) {
        const mt_rope *r = &s->ropes[i];
        uint32_t *axis = r->axis ? mt_alloc_array(r->half, sizeof *axis) : NULL;
        for (size_t f = 0; axis && f < r->half; f++)
            axis[f] = r->axis[f];
        m->ropes[i] = (mt_rope_table){.inv_freq = mt_tensor_of(m->set, r->inv_freq, 1, r->half),
                                      .table = mt_tensor_new(m->set, rows, 2 * (size_t)r->half),
                                      .axis = axis ? mt_index_of(m->set, axis, r->half) : NULL,
                                      .scale = r->scale,
                                      .pairs = r->pairs};
        mt_free(axis);
    }
}

/* What each layer is given besides is (norm(projection) + embedding) / sqrt(2); both are made with that factor. */
static void load_aside(mt_model *m, const mt_model_weights *w)
{
    const size_t width = m->spec->aside, all = m->spec->layers * width;
    const float share = sqrtf(0.5f);
    float *norm = mt_alloc_array(width, sizeof *norm);
    for (size_t i = 0; i < width; i++)
        norm[i] = w->aside_norm[i] * share;
    m->aside_norm = mt_tensor_of(m->set, norm, 1, width);
    mt_free(norm);
    m->aside_scale = embed_scale(m->dev, sqrtf((float)width), &w->aside) * share;
    m->aside_table = mt_weight_new(m->set, &w->aside, NULL, false);
    m->aside_projection = mt_weight_new(m->set, &w->aside_projection, NULL, false);
    m->aside = mt_tensor_new(m->set, m->max_rows, all);
    m->aside_projected = mt_tensor_new(m->set, m->max_rows, all);
    for (size_t i = 0; i < m->spec->layers; i++)
        m->layers[i].aside = mt_tensor_part(m->set, m->aside, 0, m->max_rows, i * width, width);
}

static void new_tensors(mt_model *m, size_t rows, size_t logits)
{
    const mt_model_spec *s = m->spec;
    mt_set *set = m->set;
    m->x = mt_tensor_new(set, rows, s->hidden);
    m->h = mt_tensor_new(set, rows, s->hidden);
    m->y = mt_tensor_new(set, rows, s->hidden);
    new_ropes(m, rows);
    m->stretch = mt_tensor_of(set, s->stretch.factor, 1, s->stretch.count);
    m->wanted = mt_index_new(set, logits);
    m->last = mt_tensor_new(set, logits, s->hidden);
    m->logits = mt_tensor_new(set, logits, s->vocab);
    m->sound = mt_tensor_new(set, rows, 1);
    m->sound_reading = mt_reading_new(set, rows * sizeof(float));
    m->pool_to = mt_index_new(set, rows);
    m->pooled = mt_tensor_new(set, m->max_places, s->hidden);
    m->pooled_reading = mt_reading_new(set, s->hidden * sizeof(float));
}

mt_model *mt_model_new(mt_device *dev, const mt_model_spec *spec, const mt_model_weights *weights,
                       const mt_model_params *params, mt_error *err)
{
    mt_model *m = mt_alloc(sizeof *m);
    m->dev = dev;
    m->set = mt_set_new(dev);
    m->spec = spec;
    m->max_rows = params->rows;
    m->max_logits = params->logits;
    m->max_places = params->places;
    m->layers = mt_alloc(spec->layers * sizeof *m->layers);
    m->work = mt_alloc_array((spec->layers + 1) * MT_ROLES, sizeof *m->work);
    m->ropes = mt_alloc_array(spec->rope_count, sizeof *m->ropes);
    for (size_t g = 0; g < spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(spec, g, mt_kv_cached_type(dev));
        m->kv[g] = mt_kv_new(m->set, &shape, err);
        if (!m->kv[g])
            goto fail;
    }
    if (spec->state.layers)
        m->mixer = mt_mixer_new(m->set, dev, spec, weights->layer, params);
    m->embed_scale = embed_scale(dev, spec->embed_scale, &weights->embed);
    m->embed = mt_weight_new(m->set, &weights->embed, NULL, false);
    m->head = mt_weight_new(m->set, &weights->head, NULL, false);
    m->norm = mt_tensor_of(m->set, weights->norm, 1, spec->hidden);
    for (size_t i = 0; i < spec->layers; i++)
        mt_decoder_layer_load(m, &m->layers[i], &weights->layer[i], &spec->layer[i]);
    if (spec->aside)
        load_aside(m, weights);
    if (spec->mtp)
        load_guess(m, weights, params);
    new_tensors(m, params->rows, params->logits);
    if (spec->blank.count)
        m->tokens = mt_alloc_array(params->rows, sizeof *m->tokens);
    if (mt_device_plan(dev, params->rows, err))
        return m;
fail:
    mt_model_free(m);
    return NULL;
}

void mt_model_free(mt_model *m)
{
    if (!m)
        return;
    mt_mixer_free(m->mixer);
    if (m->guess) {
        mt_free(m->guess->before);
        mt_free(m->guess->from);
    }
    mt_free(m->guess);
    mt_free(m->layers);
    mt_free(m->work);
    mt_free(m->tokens);
    mt_free(m->ropes);
    mt_set_free(m->set);
    mt_free(m);
}

bool mt_model_reserve(mt_model *m, const size_t pages[MT_KV_GROUPS], size_t states, mt_error *err)
{
    if (m->mixer && !mt_mixer_reserve(m->mixer, states, err))
        return false;
    for (size_t g = 0; g < m->spec->group_count; g++)
        if (!mt_kv_reserve(m->set, m->kv[g], pages[g], err))
            return false;
    return true;
}

void mt_model_poison(mt_model *m, size_t group, uint32_t page)
{
    if (group == MT_KV_GROUPS)
        mt_state_poison(m->dev, mt_mixer_state(m->mixer), page);
    else
        mt_kv_poison(m->dev, m->kv[group], page);
}

bool mt_model_poisoned(mt_model *m, size_t group, uint32_t page)
{
    return group == MT_KV_GROUPS ? mt_state_poisoned(m->dev, mt_mixer_state(m->mixer), page)
                                 : mt_kv_poisoned(m->dev, m->kv[group], page);
}

void mt_model_show(mt_model *m, const mt_tensor *features)
{
    m->features = features;
}

bool mt_model_sound(mt_model *m, size_t row)
{
    return *mt_reading_row(m->dev, m->sound_reading, row) != 0;
}

void mt_model_copy_pages(mt_model *m, const uint32_t to[MT_KV_GROUPS], const uint32_t from[MT_KV_GROUPS])
{
    for (size_t g = 0; g < m->spec->group_count; g++)
        if (to[g] != MT_NO_PAGE)
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

void mt_model_restore_page(mt_model *m, size_t group, uint32_t page, const void *data)
{
    mt_kv_restore(m->dev, m->kv[group], page, data);
}

void mt_model_restore_state(mt_model *m, uint32_t slot, const void *data)
{
    mt_state_restore(m->dev, mt_mixer_state(m->mixer), slot, data);
}

static void make_ropes(mt_model *m)
{
    for (size_t i = 0; i < m->spec->rope_count; i++)
        mt_op_rope_table(m->dev, m->ropes[i].table, m->ropes[i].inv_freq, m->ropes[i].axis, m->ropes[i].scale);
}

/* ---- guessing ahead ---- */

/* x = fc of each row's embedding and the hidden state before it, which is before[row] of `hidden`. */
static void join(mt_model *m, const mt_batch *batch, const mt_tensor *hidden)
{
    const mt_guess *g = m->guess;
    const size_t n = batch->rows;
    mt_op_embed(m->dev, m->x, m->embed, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, m->features, 0, false);
    mt_model_norm(m, g->left, m->x, n, g->embed_norm);
    mt_index_write(m->dev, g->before_index, g->before, n);
    mt_op_gather(m->dev, m->y, hidden, g->before_index, n);
    mt_model_norm(m, g->right, m->y, n, g->hidden_norm);
    mt_op_matmul(m->dev, &m->x, (const mt_weight *[]){g->fc}, 1, g->both, n);
}

/* The head's keys and values of all rows; whether any of them is a guess itself is decided later. */
static void enter(mt_model *m, const mt_batch *batch)
{
    mt_guess *g = m->guess;
    const mt_decoder_layer *l = &g->layer;
    const size_t n = batch->rows;
    mt_model_norm(m, g->rows, m->x, n, m->norm);
    for (size_t i = 0; i < batch->spans; i++) {
        const mt_span *span = &batch->span[i];
        assert(span->memo < g->places);
        g->before[span->row] = 1 + span->memo;
        for (uint32_t r = 1; r < span->rows; r++)
            g->before[span->row + r] = (uint32_t)(1 + g->places) + span->row + r - 1;
    }
    join(m, batch, g->hidden);
    mt_model_norm(m, m->h, m->x, n, l->attn_norm);
    mt_decoder_layer_enter(m, l, &g->spec, n);
}

void mt_model_carry(mt_model *m, size_t place, uint32_t row)
{
    mt_guess *g = m->guess;
    assert(place < g->places);
    mt_op_copy_row(m->dev, g->hidden, 1 + place, g->hidden, row == MT_NO_PAGE ? 0 : 1 + g->places + row);
}

/* Nothing stands before the first token of all, and a head was never trained with its entry: it is not looked at. */
void mt_model_guess(mt_model *m, const mt_batch *rows, bool chained, uint32_t *tokens)
{
    mt_guess *g = m->guess;
    const size_t n = rows->rows;
    mt_batch all = *rows;
    const mt_batch *batch = &all;
    all.seen_from = g->from;
    assert(n == batch->spans);
    mt_alloc_forbid();
    mt_step_begin(m->dev, batch);
    make_ropes(m);
    for (size_t i = 0; i < n; i++)
        g->before[i] = chained ? (uint32_t)i : 1 + batch->span[i].memo;
    join(m, batch, chained ? g->out : g->hidden);
    mt_decoder_layer_run(m, &g->layer, &g->spec, n);
    mt_model_norm(m, g->out, m->x, n, g->norm);
    mt_op_matmul(m->dev, &g->logits, (const mt_weight *[]){g->head}, 1, g->out, n);
    mt_op_argmax(m->dev, g->tokens, g->logits, n);
    mt_read_index(m->dev, g->reading, g->tokens, n);
    memcpy(tokens, mt_reading_data(m->dev, g->reading), n * sizeof *tokens);
    mt_alloc_permit();
}

/* ---- the step ---- */

/* The projection is of x / sqrt(hidden), which a norm feels only beside its eps. */
static void make_aside(mt_model *m, size_t n)
{
    const mt_model_spec *s = m->spec;
    mt_op_embed(m->dev, m->aside, m->aside_table, m->aside_scale);
    mt_op_matmul(m->dev, &m->aside_projected, (const mt_weight *[]){m->aside_projection}, 1, m->x, n);
    mt_op_heads(m->dev, m->aside_projected, m->aside_projected, n, s->aside, m->aside_norm, s->eps * (float)s->hidden,
                0, NULL, false);
    mt_op_add(m->dev, m->aside, m->aside_projected, n);
}

/* The step's tokens, those that are embedded as another being that one. */
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
    const size_t n = batch->rows;
    assert(n <= m->max_rows && count <= m->max_logits);
    mt_alloc_forbid();
    const mt_batch embedded = as_embedded(m, batch);
    mt_step_begin(m->dev, &embedded);
    if (count) /* all that is handed over goes first, and what is read back comes last: nothing waits in between */
        mt_index_write(m->dev, m->wanted, rows, count);
    mt_op_embed(m->dev, m->x, m->embed, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, m->features, 0, false);
    if (s->aside)
        make_aside(m, n);
    make_ropes(m);
    for (size_t i = 0; i < s->layers; i++) {
        mt_decoder_layer_run(m, &m->layers[i], &s->layer[i], n);
        if (batch->features && i < s->deepstack)
            mt_op_features(m->dev, m->x, m->features, (i + 1) * s->hidden, true);
    }
    mt_op_finite(m->dev, m->sound, m->x, n);
    if (count) {
        mt_op_gather(m->dev, m->last, m->x, m->wanted, count);
        mt_model_norm(m, m->last, m->last, count, m->norm);
        mt_op_matmul(m->dev, &m->logits, (const mt_weight *[]){m->head}, 1, m->last, count);
        if (s->final_softcap > 0)
            mt_op_softcap(m->dev, m->logits, count, s->final_softcap);
    }
    if (m->guess)
        enter(m, batch);
    mt_read_rows(m->dev, m->sound_reading, m->sound, 0, n);
    mt_alloc_permit();
    return m->logits;
}

/* A head that guesses has the final states already, and has used x for its own ends. */
void mt_model_pool(mt_model *m, const uint32_t *to, size_t rows)
{
    const mt_tensor *hidden = m->guess ? m->guess->rows : m->h;
    assert(rows <= m->max_rows);
    if (!m->guess)
        mt_model_norm(m, m->h, m->x, rows, m->norm);
    mt_index_write(m->dev, m->pool_to, to, rows);
    mt_op_sum_rows(m->dev, m->pooled, m->pool_to, hidden, rows);
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
