/* The one decoder that runs every text family, as its spec says. The residual stream is fp32 (R2).

   Owns the device objects of a model: weights, working tensors, cache pages. Driven by the device's thread. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "models/mixer.h"
#include "models/model.h"

/* Working tensors whose width is a matter of the layer; those of one role and width are one. Keys and values, gate and
   up stand together, as products write them. */
typedef enum role {
    QUERIES,
    GATED_QUERIES, /* with a gate behind each head */
    QUERY_GATES,
    KEYS,
    VALUES,
    ATTENDED,
    GATE,
    UP,
    ROUTER,
    SHARED_GATE, /* of the expert that every row gets */
    SHARED_UP,
    ROLES
} role;

typedef struct work {
    role role;
    size_t cols;
    mt_tensor *tensor;
} work;

typedef struct layer {
    mt_tensor *attn_norm, *attn_post_norm, *mlp_norm, *mlp_post_norm, *q_norm, *k_norm;
    mt_weight *q, *k, *v, *o;
    mt_weight *gate, *up, *down, *router;
    mt_weight *shared_router, *shared_gate, *shared_up, *shared_down;
    mt_experts *experts;
    mt_tensor *in[ROLES]; /* its working tensors */
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
    mt_index *before_index;         /* the same on the device */
    mt_index *tokens;               /* that were guessed */
    mt_reading *reading;            /* of these */
    uint32_t *from;                 /* [memos]: the first position that is looked at */
    size_t places;
} guess;

/* A rotary embedding: its frequencies, whose axes they turn with, and the step's table. */
typedef struct rope {
    mt_tensor *inv_freq, *table;
    mt_index *axis; /* NULL: all with the first */
    float scale;
} rope;

struct mt_model {
    mt_device *dev;
    mt_set *set;
    const mt_model_spec *spec;
    float embed_scale;
    mt_weight *embed, *head;
    mt_tensor *norm;
    layer *layers;
    mt_kv *kv[MT_KV_GROUPS];
    /* one step's values, [rows, ...] */
    mt_tensor *x, *h, *y;              /* residual stream, normed input, what a block adds */
    mt_tensor *shared, *shared_router; /* of the expert that every row gets */
    work *work;
    size_t works;
    mt_mixer *mixer; /* the recurrent layers; NULL where there are none */
    rope *ropes;
    const mt_tensor *features; /* of pictures; NULL: there are none */
    mt_index *wanted;          /* rows whose logits are */
    mt_tensor *last, *logits;
    mt_tensor *sound; /* [rows, 1]: whether a row is finite */
    mt_reading *sound_reading;
    mt_index *pool_to;
    mt_tensor *pooled; /* [places, hidden] */
    mt_reading *pooled_reading;
    size_t max_rows, max_logits, max_places;
    guess *guess; /* NULL: the model has none */
};

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

static void make_work(mt_model *m, layer *l, role what, size_t cols)
{
    size_t i = 0;
    while (i < m->works && (m->work[i].role != what || m->work[i].cols != cols))
        i++;
    if (i == m->works)
        m->work[m->works++] = (work){what, cols, mt_tensor_new(m->set, m->max_rows, cols)};
    l->in[what] = m->work[i].tensor;
}

static void load_shared(mt_model *m, layer *l, const mt_layer_weights *w, size_t ffn)
{
    mt_set *set = m->set;
    make_work(m, l, SHARED_GATE, ffn);
    make_work(m, l, SHARED_UP, ffn);
    if (!m->shared) {
        m->shared = mt_tensor_new(set, m->max_rows, m->spec->hidden);
        m->shared_router = mt_tensor_new(set, m->max_rows, 1);
    }
    l->shared_router = mt_weight_new(set, &w->shared_router, NULL, true);
    l->shared_gate = mt_weight_new(set, &w->shared_gate, NULL, false);
    l->shared_up = mt_weight_new(set, &w->shared_up, NULL, false);
    l->shared_down = mt_weight_new(set, &w->shared_down, NULL, false);
}

static void load_attention(mt_model *m, layer *l, const mt_layer_weights *w, const mt_attn_spec *a)
{
    const size_t query = (size_t)a->heads * a->head_dim, key = (size_t)a->kv_heads * a->head_dim;
    mt_set *set = m->set;
    make_work(m, l, QUERIES, query);
    make_work(m, l, ATTENDED, query);
    make_work(m, l, KEYS, key);
    make_work(m, l, VALUES, key);
    if (a->gate) {
        make_work(m, l, GATED_QUERIES, 2 * query);
        make_work(m, l, QUERY_GATES, query);
    }
    l->q_norm = mt_tensor_of(set, w->q_norm, 1, a->head_dim);
    l->k_norm = mt_tensor_of(set, w->k_norm, 1, a->head_dim);
    l->q = mt_weight_new(set, &w->q, w->q_bias, false);
    l->k = mt_weight_new(set, &w->k, w->k_bias, false);
    l->v = mt_weight_new(set, &w->v, w->v_bias, false);
    l->o = mt_weight_new(set, &w->o, w->o_bias, false);
}

static void load_layer(mt_model *m, layer *l, const mt_layer_weights *w, const mt_layer_spec *ls)
{
    const mt_model_spec *s = m->spec;
    mt_set *set = m->set;
    l->attn_norm = mt_tensor_of(set, w->attn_norm, 1, s->hidden);
    l->attn_post_norm = mt_tensor_of(set, w->attn_post_norm, 1, s->hidden);
    l->mlp_norm = mt_tensor_of(set, w->mlp_norm, 1, s->hidden);
    l->mlp_post_norm = mt_tensor_of(set, w->mlp_post_norm, 1, s->hidden);
    if (ls->kind == MT_LAYER_RECURRENT)
        mt_mixer_load(m->mixer, ls->slot, w);
    else
        load_attention(m, l, w, &ls->attn);
    if (ls->sparse) {
        if (ls->moe.shared_ffn)
            load_shared(m, l, w, ls->moe.shared_ffn);
        make_work(m, l, ROUTER, ls->moe.experts);
        l->router = mt_weight_new(set, &w->router, NULL, true); /* R9: routers are exact */
        l->experts = mt_experts_new(set, &(mt_experts_params){.count = ls->moe.experts,
                                                              .top_k = ls->moe.top_k,
                                                              .gate = w->expert_gate,
                                                              .up = w->expert_up,
                                                              .down = w->expert_down,
                                                              .routing = ls->moe.routing,
                                                              .glu = ls->mlp.glu});
    } else {
        make_work(m, l, GATE, ls->mlp.ffn);
        make_work(m, l, UP, ls->mlp.ffn);
        l->gate = mt_weight_new(set, &w->gate, w->gate_bias, false);
        l->up = mt_weight_new(set, &w->up, w->up_bias, false);
        l->down = mt_weight_new(set, &w->down, w->down_bias, false);
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
    mt_set *set = m->set;
    guess *g = m->guess = mt_alloc(sizeof *g);
    g->fc = mt_weight_new(set, &w->fc, NULL, false);
    g->head = mt_weight_new(set, &head, NULL, false);
    g->embed_norm = mt_tensor_of(set, w->embed_norm, 1, hidden);
    g->hidden_norm = mt_tensor_of(set, w->hidden_norm, 1, hidden);
    g->norm = mt_tensor_of(set, w->norm, 1, hidden);
    g->spec = mt_model_guess_layer(m->spec);
    load_layer(m, &g->layer, &w->layer, &g->spec);
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
        m->ropes[i] = (rope){.inv_freq = mt_tensor_of(m->set, r->inv_freq, 1, r->half),
                             .table = mt_tensor_new(m->set, rows, 2 * (size_t)r->half),
                             .axis = axis ? mt_index_of(m->set, axis, r->half) : NULL,
                             .scale = r->scale};
        mt_free(axis);
    }
}

static void new_tensors(mt_model *m, size_t rows, size_t logits)
{
    const mt_model_spec *s = m->spec;
    mt_set *set = m->set;
    m->x = mt_tensor_new(set, rows, s->hidden);
    m->h = mt_tensor_new(set, rows, s->hidden);
    m->y = mt_tensor_new(set, rows, s->hidden);
    new_ropes(m, rows);
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
    m->work = mt_alloc_array((spec->layers + 1) * ROLES, sizeof *m->work);
    m->ropes = mt_alloc_array(spec->rope_count, sizeof *m->ropes);
    for (size_t g = 0; g < spec->group_count; g++) {
        const mt_kv_shape shape = mt_model_kv_shape(spec, g, mt_kv_type_of(dev));
        m->kv[g] = mt_kv_new(m->set, &shape, err);
        if (!m->kv[g])
            goto fail;
    }
    if (spec->state.layers)
        m->mixer = mt_mixer_new(m->set, dev, spec, weights->layer, params);
    m->embed_scale = embed_scale(dev, spec, &weights->embed);
    m->embed = mt_weight_new(m->set, &weights->embed, NULL, false);
    m->head = mt_weight_new(m->set, &weights->head, NULL, false);
    m->norm = mt_tensor_of(m->set, weights->norm, 1, spec->hidden);
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
    mt_free(m->work);
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

static void norm(mt_model *m, mt_tensor *y, const mt_tensor *x, size_t rows, const mt_tensor *w)
{
    mt_op_norm(m->dev, y, x, rows, w, m->spec->eps, m->spec->norm_offset);
}

/* Keys and values of the rows, which have been projected, into the pages. */
static void keep(mt_model *m, const layer *l, const mt_layer_spec *ls, size_t n)
{
    const mt_attn_spec *a = &ls->attn;
    mt_op_heads(m->dev, l->in[KEYS], l->in[KEYS], n, a->head_dim, l->k_norm, m->spec->eps, m->spec->norm_offset,
                m->ropes[a->rope].table, false);
    mt_op_kv_write(m->dev, m->kv[ls->group], ls->slot, l->in[KEYS], l->in[VALUES]);
}

static void attention(mt_model *m, const layer *l, const mt_layer_spec *ls, size_t n)
{
    const mt_attn_spec *a = &ls->attn;
    mt_tensor *const *in = l->in;
    mt_op_matmul(m->dev, (mt_tensor *[]){in[a->gate ? GATED_QUERIES : QUERIES], in[KEYS], in[VALUES]},
                 (const mt_weight *[]){l->q, l->k, l->v}, 3, m->h, n);
    if (a->gate)
        mt_op_split_heads(m->dev, in[QUERIES], in[QUERY_GATES], in[GATED_QUERIES], a->head_dim, n);
    mt_op_heads(m->dev, in[QUERIES], in[QUERIES], n, a->head_dim, l->q_norm, m->spec->eps, m->spec->norm_offset,
                m->ropes[a->rope].table, false);
    keep(m, l, ls, n);
    mt_op_attention(m->dev, in[ATTENDED], in[QUERIES], m->kv[ls->group], ls->slot,
                    (mt_attention){.window = a->window, .scale = a->scale, .softcap = a->softcap});
    if (a->gate)
        mt_op_gate(m->dev, in[ATTENDED], in[QUERY_GATES], n);
    mt_op_matmul(m->dev, &m->y, (const mt_weight *[]){l->o}, 1, in[ATTENDED], n);
}

/* y = down(act(gate(h)) * up(h)) */
static void glu(mt_model *m, mt_glu how, const mt_weight *const in[2], const mt_weight *down, mt_tensor *const inner[2],
                mt_tensor *y, size_t rows)
{
    mt_op_matmul(m->dev, inner, in, 2, m->h, rows);
    mt_op_glu(m->dev, inner[0], inner[0], inner[1], rows, how);
    mt_op_matmul(m->dev, &y, &down, 1, inner[0], rows);
}

static void dense(mt_model *m, const layer *l, const mt_layer_spec *ls, size_t rows)
{
    glu(m, ls->mlp.glu, (const mt_weight *[]){l->gate, l->up}, l->down, &l->in[GATE], m->y, rows);
}

/* The expert that every row gets, weighed by a gate of its own, comes last (R9). */
static void add_shared(mt_model *m, const layer *l, const mt_layer_spec *ls, size_t rows)
{
    mt_op_matmul(m->dev, &m->shared_router, (const mt_weight *[]){l->shared_router}, 1, m->h, rows);
    glu(m, ls->mlp.glu, (const mt_weight *[]){l->shared_gate, l->shared_up}, l->shared_down, &l->in[SHARED_GATE],
        m->shared, rows);
    mt_op_add_gated(m->dev, m->y, m->shared, m->shared_router, rows);
}

static void sparse(mt_model *m, const layer *l, const mt_layer_spec *ls, size_t rows)
{
    mt_op_matmul(m->dev, &l->in[ROUTER], (const mt_weight *[]){l->router}, 1, m->h, rows);
    mt_op_moe(m->dev, m->y, m->h, l->in[ROUTER], rows, l->experts);
    if (ls->moe.shared_ffn)
        add_shared(m, l, ls, rows);
}

static void run_layer(mt_model *m, const layer *l, const mt_layer_spec *ls, size_t n)
{
    norm(m, m->h, m->x, n, l->attn_norm);
    if (ls->kind == MT_LAYER_RECURRENT)
        mt_mixer_run(m->mixer, ls->slot, m->y, m->h, n);
    else
        attention(m, l, ls, n);
    if (l->attn_post_norm)
        norm(m, m->y, m->y, n, l->attn_post_norm);
    mt_op_add(m->dev, m->x, m->y, n);
    norm(m, m->h, m->x, n, l->mlp_norm);
    if (ls->sparse)
        sparse(m, l, ls, n);
    else
        dense(m, l, ls, n);
    if (l->mlp_post_norm)
        norm(m, m->y, m->y, n, l->mlp_post_norm);
    mt_op_add(m->dev, m->x, m->y, n);
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
    const guess *g = m->guess;
    const size_t n = batch->rows;
    mt_op_embed(m->dev, m->x, m->embed, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, m->features, 0, false);
    norm(m, g->left, m->x, n, g->embed_norm);
    mt_index_write(m->dev, g->before_index, g->before, n);
    mt_op_gather(m->dev, m->y, hidden, g->before_index, n);
    norm(m, g->right, m->y, n, g->hidden_norm);
    mt_op_matmul(m->dev, &m->x, (const mt_weight *[]){g->fc}, 1, g->both, n);
}

/* The head's keys and values of all rows; whether any of them is a guess itself is decided later. */
static void enter(mt_model *m, const mt_batch *batch)
{
    guess *g = m->guess;
    const layer *l = &g->layer;
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
    mt_op_matmul(m->dev, &l->in[KEYS], (const mt_weight *[]){l->k, l->v}, 2, m->h, n);
    keep(m, l, &g->spec, n);
}

void mt_model_carry(mt_model *m, size_t place, uint32_t row)
{
    guess *g = m->guess;
    assert(place < g->places);
    mt_op_copy_row(m->dev, g->hidden, 1 + place, g->hidden, row == MT_NO_PAGE ? 0 : 1 + g->places + row);
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
    mt_step_begin(m->dev, batch);
    make_ropes(m);
    for (size_t i = 0; i < n; i++)
        g->before[i] = chained ? (uint32_t)i : 1 + batch->span[i].memo;
    join(m, batch, chained ? g->out : g->hidden);
    run_layer(m, &g->layer, &g->spec, n);
    norm(m, g->out, m->x, n, g->norm);
    mt_op_matmul(m->dev, &g->logits, (const mt_weight *[]){g->head}, 1, g->out, n);
    mt_op_argmax(m->dev, g->tokens, g->logits, n);
    mt_read_index(m->dev, g->reading, g->tokens, n);
    memcpy(tokens, mt_reading_data(m->dev, g->reading), n * sizeof *tokens);
    mt_alloc_permit();
}

/* ---- the step ---- */

const mt_tensor *mt_model_step(mt_model *m, const mt_batch *batch, const uint32_t *rows, size_t count)
{
    const mt_model_spec *s = m->spec;
    const size_t n = batch->rows;
    assert(n <= m->max_rows && count <= m->max_logits);
    mt_alloc_forbid();
    mt_step_begin(m->dev, batch);
    mt_op_embed(m->dev, m->x, m->embed, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, m->features, 0, false);
    make_ropes(m);
    for (size_t i = 0; i < s->layers; i++) {
        run_layer(m, &m->layers[i], &s->layer[i], n);
        if (batch->features && i < s->deepstack)
            mt_op_features(m->dev, m->x, m->features, (i + 1) * s->hidden, true);
    }
    mt_op_finite(m->dev, m->sound, m->x, n);
    mt_read_rows(m->dev, m->sound_reading, m->sound, 0, n);
    if (count) {
        mt_index_write(m->dev, m->wanted, rows, count);
        mt_op_gather(m->dev, m->last, m->x, m->wanted, count);
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

/* A head that guesses has the final states already, and has used x for its own ends. */
void mt_model_pool(mt_model *m, const uint32_t *to, size_t rows)
{
    const mt_tensor *hidden = m->guess ? m->guess->rows : m->h;
    assert(rows <= m->max_rows);
    if (!m->guess)
        norm(m, m->h, m->x, rows, m->norm);
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
