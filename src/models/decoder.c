/* The one decoder that runs every text family, as its spec says. The residual stream is fp32 (R2).

   Owns the device objects of a model: weights, working tensors, cache pages. Driven by the device's thread. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "kernels/kernels.h"
#include "models/mixer.h"
#include "models/model.h"

typedef struct layer {
    mt_tensor *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm, *q_norm, *k_norm;
    mt_weight *q, *k, *v, *o;
    mt_weight *gate, *up, *down, *router;
    mt_weight *shared_router, *shared_gate, *shared_up, *shared_down;
    mt_experts *experts;
} layer;

/* Tokens that are guessed at all. Vocabularies begin with what is frequent, and a head of a quarter of a million rows
   takes as long as some layers. */
#define GUESSED_TOKENS 65536

/* A head that guesses ahead. Its keys and values lie in the pages with those of the layers; the entry of a position
   comes from its token and the hidden state before, so that like theirs it depends on what leads up to it alone. */
typedef struct guess {
    mt_weight *fc, *head; /* head: the first rows of the model's */
    mt_tensor *embed_norm, *hidden_norm, *norm;
    layer layer;
    mt_layer_spec spec;
    /* Final hidden states: [0] zeros, [1 + place] carried from the step before, then those of the rows. */
    mt_tensor *hidden, *rows;       /* rows: the last part of it */
    mt_tensor *out, *logits;        /* of the last guesses */
    mt_tensor *both, *left, *right; /* what fc takes: the embedding, the hidden state */
    uint32_t *before;               /* [rows]: of hidden, or of out */
    uint32_t *from;                 /* [memos]: the first position that is looked at */
    size_t places, tokens;
} guess;

struct mt_model {
    mt_device *dev;
    const mt_model_spec *spec;
    float embed_scale;
    mt_weight *embed, *head;
    mt_tensor *norm;
    layer *layers;
    mt_kv *kv[MT_KV_GROUPS];
    /* one step's values, [rows, ...] */
    mt_tensor *x, *h, *y; /* residual stream, normed input, what a block adds */
    mt_tensor *q, *k, *v, *attn;
    mt_tensor *gate, *up;
    mt_tensor *gated_q, *attn_gate; /* where attention is gated */
    mt_tensor *router;
    mt_tensor *shared, *shared_gate, *shared_up, *shared_router; /* of the expert that every row gets */
    mt_mixer *mixer;                                             /* the recurrent layers; NULL where there are none */
    mt_tensor **rope;                                            /* one table a rotary embedding */
    mt_tensor *last, *logits;
    mt_tensor *row, *hidden; /* a row of x, and what the last norm makes of it */
    size_t max_rows, max_logits;
    bool *sound;  /* [rows] */
    guess *guess; /* NULL: the model has none */
};

mt_kv_shape mt_model_kv_shape(const mt_model_spec *spec, size_t group)
{
    return (mt_kv_shape){.group = group,
                         .layers = spec->groups[group].layers + (group == 0 && spec->mtp),
                         .heads = spec->kv_heads,
                         .query_heads = spec->heads,
                         .head_dim = spec->head_dim,
                         .page_tokens = MT_PAGE_TOKENS};
}

static void load_shared(mt_device *dev, layer *l, const mt_layer_weights *w)
{
    l->shared_router = mt_weight_new(dev, &w->shared_router, NULL, true);
    l->shared_gate = mt_weight_new(dev, &w->shared_gate, NULL, false);
    l->shared_up = mt_weight_new(dev, &w->shared_up, NULL, false);
    l->shared_down = mt_weight_new(dev, &w->shared_down, NULL, false);
}

static void load_attention(mt_model *m, layer *l, const mt_layer_weights *w)
{
    mt_device *dev = m->dev;
    l->q_norm = mt_tensor_of(dev, w->q_norm, 1, m->spec->head_dim);
    l->k_norm = mt_tensor_of(dev, w->k_norm, 1, m->spec->head_dim);
    l->q = mt_weight_new(dev, &w->q, w->q_bias, false);
    l->k = mt_weight_new(dev, &w->k, w->k_bias, false);
    l->v = mt_weight_new(dev, &w->v, w->v_bias, false);
    l->o = mt_weight_new(dev, &w->o, w->o_bias, false);
}

static void load_layer(mt_model *m, layer *l, const mt_layer_weights *w, const mt_layer_spec *ls)
{
    const mt_model_spec *s = m->spec;
    mt_device *dev = m->dev;
    l->attn_norm = mt_tensor_of(dev, w->attn_norm, 1, s->hidden);
    l->attn_post_norm = mt_tensor_of(dev, w->attn_post_norm, 1, s->hidden);
    l->mlp_norm = mt_tensor_of(dev, w->mlp_norm, 1, s->hidden);
    l->mlp_post_norm = mt_tensor_of(dev, w->mlp_post_norm, 1, s->hidden);
    if (ls->recurrent)
        mt_mixer_load(m->mixer, ls->slot, w);
    else
        load_attention(m, l, w);
    if (ls->sparse) {
        if (s->shared_ffn)
            load_shared(dev, l, w);
        l->router = mt_weight_new(dev, &w->router, NULL, true); /* R9: routers are exact */
        l->experts =
            mt_experts_new(dev, s->experts, s->experts_per_token, w->expert_gate, w->expert_up, w->expert_down);
    } else {
        l->gate = mt_weight_new(dev, &w->gate, w->gate_bias, false);
        l->up = mt_weight_new(dev, &w->up, w->up_bias, false);
        l->down = mt_weight_new(dev, &w->down, w->down_bias, false);
    }
}

/* transformers rounds the embedding's scale to the type the model runs in: the weights' own in fast precision, fp32
   in reference. */
static float embed_scale(const mt_device *dev, const mt_model_spec *spec, const mt_mat *embed)
{
    const bool bf16 = embed->format == MT_FORMAT_BF16 || embed->scale_type == MT_SCALE_BF16;
    if (!bf16 || mt_device_precision(dev) == MT_PRECISION_REFERENCE)
        return spec->embed_scale;
    uint32_t bits;
    float rounded;
    memcpy(&bits, &spec->embed_scale, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&rounded, &bits, sizeof rounded);
    return rounded;
}

static void load_guess(mt_model *m, const mt_model_weights *weights, const mt_model_params *params)
{
    const mt_guess_weights *w = &weights->guess;
    const size_t hidden = m->spec->hidden, tokens = m->spec->vocab < GUESSED_TOKENS ? m->spec->vocab : GUESSED_TOKENS;
    const mt_mat head = mt_mat_rows(&weights->head, 0, tokens);
    mt_device *dev = m->dev;
    guess *g = m->guess = mt_alloc(sizeof *g);
    g->fc = mt_weight_new(dev, &w->fc, NULL, false);
    g->head = mt_weight_new(dev, &head, NULL, false);
    g->embed_norm = mt_tensor_of(dev, w->embed_norm, 1, hidden);
    g->hidden_norm = mt_tensor_of(dev, w->hidden_norm, 1, hidden);
    g->norm = mt_tensor_of(dev, w->norm, 1, hidden);
    g->spec = mt_model_guess_layer(m->spec);
    load_layer(m, &g->layer, &w->layer, &g->spec);
    g->places = params->places;
    g->hidden = mt_tensor_new(dev, 1 + params->places + params->rows, hidden);
    g->rows = mt_tensor_part(dev, g->hidden, 1 + params->places, params->rows, 0, hidden);
    g->out = mt_tensor_new(dev, params->memos, hidden);
    g->logits = mt_tensor_new(dev, params->memos, tokens);
    g->tokens = tokens;
    g->both = mt_tensor_new(dev, params->rows, 2 * hidden);
    g->left = mt_tensor_part(dev, g->both, 0, params->rows, 0, hidden);
    g->right = mt_tensor_part(dev, g->both, 0, params->rows, hidden, hidden);
    g->before = mt_alloc_array(params->rows, sizeof *g->before);
    g->from = mt_alloc_array(params->memos, sizeof *g->from);
    for (size_t i = 0; i < params->memos; i++)
        g->from[i] = 1;
}

static void new_tensors(mt_model *m, size_t rows, size_t logits)
{
    const mt_model_spec *s = m->spec;
    mt_device *dev = m->dev;
    const size_t query = (size_t)s->heads * s->head_dim, key = (size_t)s->kv_heads * s->head_dim;
    m->x = mt_tensor_new(dev, rows, s->hidden);
    m->h = mt_tensor_new(dev, rows, s->hidden);
    m->y = mt_tensor_new(dev, rows, s->hidden);
    m->q = mt_tensor_new(dev, rows, query);
    m->attn = mt_tensor_new(dev, rows, query);
    m->k = mt_tensor_new(dev, rows, key);
    m->v = mt_tensor_new(dev, rows, key);
    m->gate = mt_tensor_new(dev, rows, s->ffn);
    m->up = mt_tensor_new(dev, rows, s->ffn);
    if (s->attn_gate) {
        m->gated_q = mt_tensor_new(dev, rows, 2 * query);
        m->attn_gate = mt_tensor_new(dev, rows, query);
    }
    if (s->experts)
        m->router = mt_tensor_new(dev, rows, s->experts);
    if (s->shared_ffn) {
        m->shared = mt_tensor_new(dev, rows, s->hidden);
        m->shared_gate = mt_tensor_new(dev, rows, s->shared_ffn);
        m->shared_up = mt_tensor_new(dev, rows, s->shared_ffn);
        m->shared_router = mt_tensor_new(dev, rows, 1);
    }
    for (size_t i = 0; i < s->rope_count; i++)
        m->rope[i] = mt_tensor_new(dev, rows, 2 * (size_t)s->ropes[i].half);
    m->last = mt_tensor_new(dev, logits, s->hidden);
    m->logits = mt_tensor_new(dev, logits, s->vocab);
    m->row = mt_tensor_view(dev);
    m->hidden = mt_tensor_new(dev, 1, s->hidden);
}

mt_model *mt_model_new(mt_device *dev, const mt_model_spec *spec, const mt_model_weights *weights,
                       const mt_model_params *params, mt_error *err)
{
    mt_model *m = mt_alloc(sizeof *m);
    m->dev = dev;
    m->spec = spec;
    m->max_rows = params->rows;
    m->max_logits = params->logits;
    m->layers = mt_alloc(spec->layers * sizeof *m->layers);
    m->sound = mt_alloc_array(params->rows, sizeof *m->sound);
    m->rope = mt_alloc(spec->rope_count * sizeof(mt_tensor *));
    for (size_t g = 0; g < spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(spec, g);
        m->kv[g] = mt_kv_new(dev, &shape, err);
        if (!m->kv[g])
            goto fail;
    }
    if (spec->state.layers)
        m->mixer = mt_mixer_new(dev, spec, weights->layer, params);
    m->embed_scale = embed_scale(dev, spec, &weights->embed);
    m->embed = mt_weight_new(dev, &weights->embed, NULL, false);
    m->head = mt_weight_new(dev, &weights->head, NULL, false);
    m->norm = mt_tensor_of(dev, weights->norm, 1, spec->hidden);
    for (size_t i = 0; i < spec->layers; i++)
        load_layer(m, &m->layers[i], &weights->layer[i], &spec->layer[i]);
    if (spec->mtp)
        load_guess(m, weights, params);
    new_tensors(m, params->rows, params->logits);
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
    mt_free(m->rope);
    mt_free(m->sound);
    mt_free(m);
}

bool mt_model_reserve(mt_model *m, const size_t pages[MT_KV_GROUPS], size_t states, mt_error *err)
{
    if (m->mixer && !mt_mixer_reserve(m->mixer, states, err))
        return false;
    for (size_t g = 0; g < m->spec->group_count; g++)
        if (!mt_kv_reserve(m->dev, m->kv[g], pages[g], err))
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

bool mt_model_sound(const mt_model *m, size_t row)
{
    return m->sound[row];
}

void mt_model_copy_pages(mt_model *m, const uint32_t to[MT_KV_GROUPS], const uint32_t from[MT_KV_GROUPS])
{
    for (size_t g = 0; g < m->spec->group_count; g++)
        if (to[g] != MT_NO_PAGE)
            mt_op_kv_copy(m->dev, m->kv[g], to[g], from[g]);
}

static void norm(mt_model *m, mt_tensor *y, const mt_tensor *x, size_t rows, const mt_tensor *w)
{
    mt_op_norm(m->dev, y, x, rows, w, m->spec->eps, m->spec->norm_offset);
}

static void attention(mt_model *m, const layer *l, const mt_layer_spec *ls, const mt_batch *batch)
{
    const mt_model_spec *s = m->spec;
    const size_t n = batch->rows;
    mt_op_matmul(m->dev, (mt_tensor *[]){s->attn_gate ? m->gated_q : m->q, m->k, m->v},
                 (const mt_weight *[]){l->q, l->k, l->v}, 3, m->h, n);
    if (s->attn_gate)
        mt_op_split_heads(m->dev, m->q, m->attn_gate, m->gated_q, s->head_dim, n);
    mt_op_heads(m->dev, m->q, n, s->heads, s->head_dim, l->q_norm, s->eps, s->norm_offset, m->rope[ls->rope]);
    mt_op_heads(m->dev, m->k, n, s->kv_heads, s->head_dim, l->k_norm, s->eps, s->norm_offset, m->rope[ls->rope]);
    mt_op_kv_write(m->dev, m->kv[ls->group], ls->slot, m->k, m->v, batch);
    mt_op_attention(m->dev, m->attn, m->q, m->kv[ls->group], ls->slot, batch, ls->window, s->attn_scale,
                    s->attn_softcap);
    if (s->attn_gate)
        mt_op_gate(m->dev, m->attn, m->attn_gate, n);
    mt_op_matmul(m->dev, &m->y, (const mt_weight *[]){l->o}, 1, m->attn, n);
}

/* y = down(act(gate(h)) * up(h)) */
static void glu(mt_model *m, const mt_weight *const in[2], const mt_weight *down, mt_tensor *const inner[2],
                mt_tensor *y, size_t rows)
{
    mt_op_matmul(m->dev, inner, in, 2, m->h, rows);
    if (m->spec->activation == MT_ACT_SILU)
        mt_op_silu_mul(m->dev, inner[0], inner[0], inner[1], rows);
    else
        mt_op_gelu_mul(m->dev, inner[0], inner[0], inner[1], rows);
    mt_op_matmul(m->dev, &y, &down, 1, inner[0], rows);
}

static void dense(mt_model *m, const layer *l, size_t rows)
{
    glu(m, (const mt_weight *[]){l->gate, l->up}, l->down, (mt_tensor *[]){m->gate, m->up}, m->y, rows);
}

/* The expert that every row gets, weighed by a gate of its own, comes last (R9). */
static void add_shared(mt_model *m, const layer *l, size_t rows)
{
    mt_op_matmul(m->dev, &m->shared_router, (const mt_weight *[]){l->shared_router}, 1, m->h, rows);
    glu(m, (const mt_weight *[]){l->shared_gate, l->shared_up}, l->shared_down,
        (mt_tensor *[]){m->shared_gate, m->shared_up}, m->shared, rows);
    mt_op_add_gated(m->dev, m->y, m->shared, m->shared_router, rows);
}

static void sparse(mt_model *m, const layer *l, size_t rows)
{
    mt_op_matmul(m->dev, &m->router, (const mt_weight *[]){l->router}, 1, m->h, rows);
    mt_op_moe(m->dev, m->y, m->h, m->router, rows, l->experts, m->spec->renormalise,
              m->spec->activation == MT_ACT_GELU_TANH);
    if (l->shared_router)
        add_shared(m, l, rows);
}

static void run_layer(mt_model *m, const layer *l, const mt_layer_spec *ls, const mt_batch *batch)
{
    const size_t n = batch->rows;
    norm(m, m->h, m->x, n, l->attn_norm);
    if (ls->recurrent)
        mt_mixer_run(m->mixer, ls->slot, m->y, m->h, batch);
    else
        attention(m, l, ls, batch);
    if (l->attn_post_norm)
        norm(m, m->y, m->y, n, l->attn_post_norm);
    mt_op_add(m->dev, m->x, m->y, n);
    norm(m, m->h, m->x, n, l->mlp_norm);
    if (l->experts)
        sparse(m, l, n);
    else
        dense(m, l, n);
    if (l->mlp_post_norm)
        norm(m, m->y, m->y, n, l->mlp_post_norm);
    mt_op_add(m->dev, m->x, m->y, n);
}

static void make_ropes(mt_model *m, const mt_batch *batch)
{
    const mt_model_spec *s = m->spec;
    for (size_t i = 0; i < s->rope_count; i++)
        mt_op_rope_table(m->dev, m->rope[i], batch->positions, batch->rows, s->ropes[i].inv_freq, s->ropes[i].axis,
                         s->ropes[i].half, s->ropes[i].scale);
}

/* ---- guessing ahead ---- */

/* x = fc of each row's embedding and the hidden state before it, which is before[row] of `hidden`. */
static void join(mt_model *m, const mt_batch *batch, const mt_tensor *hidden)
{
    const guess *g = m->guess;
    const size_t n = batch->rows;
    mt_op_embed(m->dev, m->x, m->embed, batch->tokens, n, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, batch->features, n, 0, false);
    norm(m, g->left, m->x, n, g->embed_norm);
    mt_op_gather(m->dev, m->y, hidden, g->before, n);
    norm(m, g->right, m->y, n, g->hidden_norm);
    mt_op_matmul(m->dev, &m->x, (const mt_weight *[]){g->fc}, 1, g->both, n);
}

/* The head's keys and values of all rows; whether any of them is a guess itself is decided later. */
static void enter(mt_model *m, const mt_batch *batch)
{
    guess *g = m->guess;
    const layer *l = &g->layer;
    const mt_model_spec *s = m->spec;
    const size_t n = batch->rows;
    norm(m, g->rows, m->x, n, m->norm);
    for (size_t i = 0; i < batch->spans; i++) {
        const mt_span *span = &batch->span[i];
        assert(span->memo < g->places);
        g->before[span->row] = 1 + span->memo;
        for (uint32_t r = 1; r < span->rows; r++)
            g->before[span->row + r] = (uint32_t)(1 + g->places) + span->row + r - 1;
    }
    join(m, batch, g->hidden);
    norm(m, m->h, m->x, n, l->attn_norm);
    mt_op_matmul(m->dev, (mt_tensor *[]){m->k, m->v}, (const mt_weight *[]){l->k, l->v}, 2, m->h, n);
    mt_op_heads(m->dev, m->k, n, s->kv_heads, s->head_dim, l->k_norm, s->eps, s->norm_offset, m->rope[g->spec.rope]);
    mt_op_kv_write(m->dev, m->kv[0], g->spec.slot, m->k, m->v, batch);
}

void mt_model_carry(mt_model *m, size_t place, uint32_t row)
{
    guess *g = m->guess;
    assert(place < g->places);
    mt_tensor_write(m->dev, g->hidden, 1 + place,
                    mt_tensor_read(m->dev, g->hidden, row == MT_NO_PAGE ? 0 : 1 + g->places + row));
}

typedef struct choosing {
    mt_model *m;
    uint32_t *tokens;
} choosing;

/* The likeliest token, the first of equal ones. */
static void choose(void *ctx, size_t row, size_t worker)
{
    (void)worker;
    const choosing *c = ctx;
    const guess *g = c->m->guess;
    const float *logits = mt_tensor_read(c->m->dev, g->logits, row);
    const float most = mt_device_kernels(c->m->dev)->max(logits, g->tokens);
    uint32_t at = 0;
    while (at + 1 < g->tokens && !(logits[at] >= most))
        at++;
    c->tokens[row] = at;
}

/* Nothing stands before the first token of all, and a head was never trained with its entry: it is not looked at. */
void mt_model_guess(mt_model *m, const mt_batch *rows, bool chained, uint32_t *tokens)
{
    guess *g = m->guess;
    const size_t n = rows->rows;
    mt_batch all = *rows;
    const mt_batch *batch = &all;
    all.seen_from = g->from;
    assert(n == batch->spans);
    mt_alloc_forbid();
    make_ropes(m, batch);
    for (size_t i = 0; i < n; i++)
        g->before[i] = chained ? (uint32_t)i : 1 + batch->span[i].memo;
    join(m, batch, chained ? g->out : g->hidden);
    run_layer(m, &g->layer, &g->spec, batch);
    norm(m, g->out, m->x, n, g->norm);
    mt_op_matmul(m->dev, &g->logits, (const mt_weight *[]){g->head}, 1, g->out, n);
    mt_device_run(m->dev, choose, &(choosing){m, tokens}, n);
    mt_alloc_permit();
}

/* ---- the step ---- */

const mt_tensor *mt_model_step(mt_model *m, const mt_batch *batch, const uint32_t *rows, size_t count)
{
    const mt_model_spec *s = m->spec;
    assert(batch->rows <= m->max_rows && count <= m->max_logits);
    mt_alloc_forbid();
    mt_op_embed(m->dev, m->x, m->embed, batch->tokens, batch->rows, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, batch->features, batch->rows, 0, false);
    make_ropes(m, batch);
    for (size_t i = 0; i < s->layers; i++) {
        run_layer(m, &m->layers[i], &s->layer[i], batch);
        if (batch->features && i < s->deepstack)
            mt_op_features(m->dev, m->x, batch->features, batch->rows, (i + 1) * s->hidden, true);
    }
    mt_op_finite(m->dev, m->x, batch->rows, m->sound);
    if (count) {
        mt_op_gather(m->dev, m->last, m->x, rows, count);
        norm(m, m->last, m->last, count, m->norm);
        mt_op_matmul(m->dev, &m->logits, (const mt_weight *[]){m->head}, 1, m->last, count);
        if (s->final_softcap > 0)
            mt_op_softcap(m->dev, m->logits, count, s->final_softcap);
    }
    if (m->guess)
        enter(m, batch);
    mt_alloc_permit();
    return m->logits;
}

/* A head that guesses has them already, and has used x for its own ends. */
const float *mt_model_hidden(mt_model *m, size_t row)
{
    assert(row < m->max_rows);
    if (m->guess)
        return mt_tensor_read(m->dev, m->guess->hidden, 1 + m->guess->places + row);
    mt_tensor_look(m->dev, m->row, m->x, row, 1);
    norm(m, m->hidden, m->row, 1, m->norm);
    return mt_tensor_read(m->dev, m->hidden, 0);
}
