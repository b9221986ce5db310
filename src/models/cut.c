/* Cuts a model for ranks (cut.h). A width is divided into slices, and each rank has some of them: the first ranks have
   one more where they cannot be divided evenly, the last ones none where there are too few. A slice is a power of two
   of columns, at most SLICE, so small that there are enough for all ranks; or one key/value head with all its queries;
   or one key head of a recurrent layer with its value heads. An FP8 scale covers 128 rows: where a model has any, all
   its slices are multiples of 128.

   Each expert is divided, rather than experts distributed: so all ranks have equal work whatever the router chooses,
   and what is exchanged for a row is its experts' inner widths and one result, not a result of each expert. */
#include "models/cut.h"
#include "ranks/ranks.h"

#include <assert.h>
#include <string.h>

#define SLICE 32      /* columns: a multiple of the panel width of every kernel level */
#define FP8_ROWS 128u /* rows that share a scale */

/* The rank that the model is cut for, and sums over what was cut. */
typedef struct cutter {
    size_t rank, ranks;
    bool fp8;   /* some matrix has a scale for 128 rows */
    bool joint; /* some layer norms all its queries as one vector: then one rank has all heads of each layer */
    mt_arena *arena;
    double whole, own; /* bytes of the divided weights: of all ranks, and of this one */
} cutter;

/* The part of a width that a rank has. */
typedef struct range {
    size_t first, count;
} range;

static range range_of(const cutter *c, size_t n, size_t slices)
{
    const size_t each = slices ? n / slices : 0, first = mt_ranks_first(slices, c->rank, c->ranks);
    return (range){first * each, (mt_ranks_first(slices, c->rank + 1, c->ranks) - first) * each};
}

/* How many slices n columns have. */
static uint32_t columns(const cutter *c, size_t n)
{
    size_t each = SLICE;
    if (c->fp8)
        return n % FP8_ROWS ? 1 : (uint32_t)(n / FP8_ROWS);
    while (each > 1 && (n % each || n / each < c->ranks))
        each /= 2;
    return (uint32_t)(n / each);
}

/* How many slices `count` heads have, each with `dim` columns in some matrices. */
static uint32_t heads(const cutter *c, size_t count, size_t dim)
{
    size_t each = c->joint ? count : 1;
    while (c->fp8 && each < count && (count % each || each * dim % FP8_ROWS))
        each++;
    return (uint32_t)(count / each);
}

static void cut(cutter *c, mt_mat *m, range rows)
{
    const double bytes = (double)m->stride + (m->biases ? 2 : 1) * (double)m->scale_stride;
    c->whole += (double)m->n * bytes;
    c->own += (double)rows.count * bytes;
    if (m->n && rows.count == 0)
        m->n = 0;
    else if (m->n)
        *m = mt_mat_rows(m, rows.first, rows.count);
    mt_mat_read_ahead(m);
}

/* Cuts a matrix and its bias. */
static void cut_with(cutter *c, mt_mat *m, const float **bias, uint32_t slices)
{
    const range r = range_of(c, m->n, slices);
    if (*bias)
        *bias += r.first;
    cut(c, m, r);
}

static void cut_rows(cutter *c, mt_mat *m, uint32_t slices)
{
    cut(c, m, range_of(c, m->n, slices));
}

static void *allocate(const cutter *c, size_t bytes)
{
    void *p = mt_arena_alloc(c->arena, bytes ? bytes : 1);
    assert(p); /* arenas here have no limit */
    return p;
}

/* Copies the columns of the given ranges from `rows` rows of n floats. */
static const float *pick(const cutter *c, const float *from, size_t rows, size_t n, const range *r, size_t count)
{
    size_t cols = 0, at = 0;
    if (!from)
        return NULL;
    for (size_t i = 0; i < count; i++)
        cols += r[i].count;
    float *to = allocate(c, rows * cols * sizeof(*to));
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < count; i++) {
            memcpy(to + at, from + row * n + r[i].first, r[i].count * sizeof(*to));
            at += r[i].count;
        }
    return to;
}

/* ---- layers ---- */

static void cut_attention(cutter *c, const mt_model_spec *spec, mt_attn_spec *a, mt_layer_weights *w)
{
    const size_t share = a->heads / a->kv_heads;
    a->slices = heads(c, a->kv_heads, a->head_dim);
    const range r = range_of(c, a->kv_heads, a->slices);
    cut_with(c, &w->q, &w->q_bias, a->slices);
    cut_with(c, &w->k, &w->k_bias, a->slices);
    cut_with(c, &w->v, &w->v_bias, a->slices);
    cut_with(c, &w->o, &w->o_bias, spec->hidden_slices);
    if (w->sinks)
        w->sinks += r.first * share;
    a->kv_heads = (uint32_t)r.count;
    a->heads = (uint32_t)(r.count * share);
}

/* Of latents every rank makes and keeps all: they are narrow. A slice is a head. */
static void cut_latent(cutter *c, const mt_model_spec *spec, mt_attn_spec *a, mt_layer_weights *w)
{
    a->slices = heads(c, a->heads, a->latent.plain + a->latent.turned);
    const range r = range_of(c, a->heads, a->slices);
    cut_rows(c, &w->q, a->slices);
    cut_with(c, &w->o, &w->o_bias, spec->hidden_slices);
    w->key_rows.first += r.first * w->key_rows.step;
    w->value_rows.first += r.first * w->value_rows.step;
    w->key_rows.heads = w->value_rows.heads = r.count;
    a->heads = (uint32_t)r.count;
    a->kv_heads = r.count > 0;
}

static void cut_dense(cutter *c, const mt_model_spec *spec, mt_mlp_spec *mlp, mt_layer_weights *w)
{
    mlp->slices = columns(c, mlp->ffn);
    cut_with(c, &w->gate, &w->gate_bias, mlp->slices);
    cut_with(c, &w->up, &w->up_bias, mlp->slices);
    cut_with(c, &w->down, &w->down_bias, spec->hidden_slices);
    mlp->ffn = (uint32_t)range_of(c, mlp->ffn, mlp->slices).count;
}

static mt_mat *cut_each(cutter *c, const mt_mat *m, size_t count, uint32_t slices)
{
    mt_mat *out = allocate(c, count * sizeof(*out));
    for (size_t i = 0; i < count; i++) {
        out[i] = m[i];
        cut_rows(c, &out[i], slices);
    }
    return out;
}

static void cut_shared(cutter *c, const mt_model_spec *spec, mt_moe_spec *moe, mt_layer_weights *w)
{
    if (moe->shared_ffn == 0)
        return;
    moe->shared_slices = columns(c, moe->shared_ffn);
    cut_rows(c, &w->shared_gate, moe->shared_slices);
    cut_rows(c, &w->shared_up, moe->shared_slices);
    cut_rows(c, &w->shared_down, spec->hidden_slices);
    moe->shared_ffn = (uint32_t)range_of(c, moe->shared_ffn, moe->shared_slices).count;
}

/* Cuts the experts of a layer. */
static void cut_experts(cutter *c, const mt_model_spec *spec, mt_moe_spec *moe, mt_layer_weights *w)
{
    const size_t n = moe->experts;
    if (moe->latent) { /* every rank computes all experts */
        cut_rows(c, &w->expert_out, spec->hidden_slices);
        cut_shared(c, spec, moe, w);
        return;
    }
    moe->slices = columns(c, moe->ffn);
    const range inner = range_of(c, moe->ffn, moe->slices), hidden = range_of(c, spec->hidden, spec->hidden_slices);
    w->expert_gate = cut_each(c, w->expert_gate, n, moe->slices);
    w->expert_up = cut_each(c, w->expert_up, n, moe->slices);
    w->expert_down = cut_each(c, w->expert_down, n, spec->hidden_slices);
    w->expert_gate_bias = pick(c, w->expert_gate_bias, n, moe->ffn, &inner, 1);
    w->expert_up_bias = pick(c, w->expert_up_bias, n, moe->ffn, &inner, 1);
    w->expert_down_bias = pick(c, w->expert_down_bias, n, spec->hidden, &hidden, 1);
    moe->ffn = (uint32_t)inner.count;
    cut_shared(c, spec, moe, w);
}

/* Replaces qkv of all heads by q, k and v of the rank's. Where the rank has all of them, qkv stays one matrix. */
static void cut_qkv(cutter *c, mt_layer_weights *w, const range part[3])
{
    const mt_mat all = w->mix_qkv;
    size_t rows = 0;
    for (size_t i = 0; i < 3; i++)
        rows += part[i].count;
    if (rows == all.n || rows == 0) {
        cut(c, &w->mix_qkv, (range){0, rows});
        return;
    }
    mt_mat *const to[] = {&w->mix_qkv, &w->mix_k, &w->mix_v};
    for (size_t i = 0; i < 3; i++) {
        *to[i] = all;
        cut(c, to[i], part[i]);
    }
    c->whole -= 2 * (double)all.n * ((double)all.stride + (all.biases ? 2 : 1) * (double)all.scale_stride);
}

static void cut_short(cutter *c, const mt_model_spec *spec, const mt_state_shape *all, mt_layer_weights *w)
{
    const size_t n = all->value_dim;
    const range r = range_of(c, n, spec->state_slices);
    const range part[] = {r, {n + r.first, r.count}, {2 * n + r.first, r.count}};
    cut_qkv(c, w, part);
    cut_with(c, &w->mix_out, &w->mix_out_bias, spec->hidden_slices);
    w->mix_in_bias = pick(c, w->mix_in_bias, 1, 3 * n, part, 3);
    w->mix_conv = pick(c, w->mix_conv, all->taps, n, &r, 1);
    if (w->mix_conv_bias)
        w->mix_conv_bias += r.first;
}

/* A layer of Mamba2's kind is not divided: one rank has all of it. */
static void cut_mamba(cutter *c, const mt_model_spec *spec, mt_layer_weights *w)
{
    cut_rows(c, &w->mix_qkv, spec->state_slices);
    cut_rows(c, &w->mix_z, spec->state_slices);
    cut_rows(c, &w->mix_a, spec->state_slices);
    cut_with(c, &w->mix_out, &w->mix_out_bias, spec->hidden_slices);
}

/* Cuts a GatedDeltaNet layer. */
static void cut_delta(cutter *c, const mt_model_spec *spec, const mt_state_shape *all, mt_layer_weights *w)
{
    const size_t share = all->value_heads / all->key_heads, keys = all->key_heads * all->key_dim;
    const range r = range_of(c, all->key_heads, spec->state_slices);
    const range key = {r.first * all->key_dim, r.count * all->key_dim};
    const range value = {r.first * share * all->value_dim, r.count * share * all->value_dim};
    const range part[] = {key, {keys + key.first, key.count}, {2 * keys + value.first, value.count}};
    if (w->mix_z.n)
        cut_qkv(c, w, part);
    else
        cut_rows(c, &w->mix_qkv, spec->state_slices);
    cut_rows(c, &w->mix_z, spec->state_slices);
    cut_rows(c, &w->mix_b, spec->state_slices);
    cut_rows(c, &w->mix_a, spec->state_slices);
    cut_rows(c, &w->mix_out, spec->hidden_slices);
    w->mix_conv = pick(c, w->mix_conv, all->taps, 2 * keys + all->value_heads * all->value_dim, part, 3);
    w->mix_rate += r.first * share;
    w->mix_bias += r.first * share;
}

static void cut_layer(cutter *c, const mt_model_spec *spec, const mt_state_shape *all, mt_layer_spec *l,
                      mt_layer_weights *w)
{
    if (l->kind == MT_LAYER_ATTENTION && l->attn.latent.width)
        cut_latent(c, spec, &l->attn, w);
    else if (l->kind == MT_LAYER_ATTENTION)
        cut_attention(c, spec, &l->attn, w);
    if (l->kind != MT_LAYER_RECURRENT && !l->paired)
        ;
    else if (all->plain)
        cut_mamba(c, spec, w);
    else if (all->key_dim)
        cut_delta(c, spec, all, w);
    else
        cut_short(c, spec, all, w);
    if (l->no_mlp)
        return;
    if (!l->sparse || l->beside)
        cut_dense(c, spec, &l->mlp, w);
    if (l->sparse)
        cut_experts(c, spec, &l->moe, w);
    if (spec->aside)
        cut_rows(c, &w->aside_out, spec->hidden_slices);
}

/* ---- the model ---- */

static bool is_fp8(const mt_mat *m)
{
    return m->n && m->scale_rows > 1;
}

static bool has_fp8(const mt_layer_weights *w)
{
    return is_fp8(&w->q) || is_fp8(&w->k) || is_fp8(&w->v) || is_fp8(&w->o) || is_fp8(&w->gate) || is_fp8(&w->up) ||
           is_fp8(&w->down) || (w->expert_gate && (is_fp8(w->expert_gate) || is_fp8(w->expert_down))) ||
           is_fp8(&w->shared_gate) || is_fp8(&w->shared_down) || is_fp8(&w->mix_qkv) || is_fp8(&w->mix_z) ||
           is_fp8(&w->mix_b) || is_fp8(&w->mix_a) || is_fp8(&w->mix_out) || is_fp8(&w->aside_out);
}

/* How many slices the heads or channels of recurrent layers have. */
static uint32_t state_slices(const cutter *c, const mt_state_shape *s)
{
    if (s->plain)
        return 1;
    if (!s->key_dim)
        return columns(c, s->value_dim);
    const size_t values = s->value_heads / s->key_heads * s->value_dim;
    if (c->fp8 && (s->key_heads * s->key_dim % FP8_ROWS || values % FP8_ROWS))
        return 1;
    return heads(c, s->key_heads, s->key_dim);
}

/* Most heads that this rank has in a layer of a group of latents. */
static uint32_t own_heads(const mt_model_spec *spec, const mt_layer_spec *layer, size_t group)
{
    uint32_t most = 0;
    for (size_t i = 0; i < spec->layers; i++)
        if (layer[i].kind == MT_LAYER_ATTENTION && layer[i].group == group && layer[i].attn.heads > most)
            most = layer[i].attn.heads;
    return most;
}

/* layer: the rank's. */
static void cut_groups(cutter *c, mt_model_spec *spec, const mt_layer_spec *layer)
{
    for (size_t g = 0; g < spec->group_count; g++) {
        mt_layer_group *group = &spec->groups[g];
        if (group->top) { /* every rank with heads chooses by itself */
            group->kv_heads = spec->groups[0].kv_heads;
            continue;
        }
        if (group->latent) {
            group->heads = own_heads(spec, layer, g);
            group->kv_heads = group->heads > 0;
            continue;
        }
        const size_t share = group->heads / group->kv_heads;
        const range r = range_of(c, group->kv_heads, heads(c, group->kv_heads, group->head_dim));
        group->kv_heads = (uint32_t)r.count;
        group->heads = (uint32_t)(r.count * share);
    }
}

static mt_state_shape cut_states(cutter *c, const mt_model_spec *spec)
{
    mt_state_shape s = spec->state;
    const size_t share = s.key_dim ? s.value_heads / s.key_heads : 0;
    if (!s.layers)
        return s;
    if (!s.key_dim) {
        s.value_dim = range_of(c, s.value_dim, spec->state_slices).count;
        return s;
    }
    s.key_heads = range_of(c, s.key_heads, spec->state_slices).count;
    s.value_heads = share * s.key_heads;
    return s;
}

static void cut_head(cutter *c, mt_model_spec *spec, mt_model_weights *w, mt_layer_spec *layer)
{
    cut_rows(c, &w->guess.fc, spec->hidden_slices);
    cut_layer(c, spec, &spec->state, layer, w->guess.layer);
}

/* A drafter's queries go with the model's key/value heads that this rank has; its widths are divided as the model's. */
static void cut_drafter(cutter *c, mt_model_spec *spec, mt_model_weights *w)
{
    mt_drafter_spec *d = allocate(c, sizeof(*d));
    *d = *spec->drafter;
    d->layer = allocate(c, d->model.layers * sizeof(*d->layer));
    memcpy(d->layer, d->model.layer, d->model.layers * sizeof(*d->layer));
    d->model.layer = d->layer;
    d->model.hidden_slices = columns(c, d->model.hidden);
    for (size_t i = 0; i < d->model.layers; i++)
        cut_layer(c, &d->model, &d->model.state, &d->layer[i], &w->guess.layer[i]);
    cut_rows(c, &w->guess.fc, d->model.hidden_slices);
    cut_rows(c, &w->guess.back, spec->hidden_slices);
    spec->drafter = d;
}

static void cut_guess(cutter *c, mt_model_spec *spec, mt_model_weights *w, mt_layer_spec *layer)
{
    if (!mt_model_guesses(spec))
        return;
    spec->guess_slices = columns(c, w->guess.head.n);
    cut_rows(c, &w->guess.head, spec->guess_slices);
    if (spec->drafter)
        cut_drafter(c, spec, w);
    else
        cut_head(c, spec, w, layer);
}

static bool guess_has_fp8(const mt_model_spec *spec, const mt_guess_weights *g)
{
    bool found = is_fp8(&g->fc) || is_fp8(&g->back) || is_fp8(&g->head);
    for (size_t i = 0; mt_model_guesses(spec) && i < (spec->drafter ? spec->drafter->model.layers : 1); i++)
        found |= has_fp8(&g->layer[i]);
    return found;
}

uint64_t mt_model_cut(mt_model_spec *spec, mt_model_weights *w, size_t rank, size_t ranks, mt_arena *arena)
{
    cutter c = {.rank = rank, .ranks = ranks, .arena = arena};
    mt_layer_spec guess = mt_model_guess_layer(spec), *layer = allocate(&c, spec->layers * sizeof(*layer));
    memcpy(layer, spec->layer, spec->layers * sizeof(*layer));
    for (size_t i = 0; i < spec->layers; i++) {
        c.fp8 |= has_fp8(&w->layer[i]);
        c.joint |= spec->layer[i].attn.qk_norm == MT_QK_NORM_WHOLE;
    }
    c.fp8 |= is_fp8(&w->head) || is_fp8(&w->aside_projection) || guess_has_fp8(spec, &w->guess);
    spec->hidden_slices = columns(&c, spec->hidden);
    spec->vocab_slices = columns(&c, spec->vocab);
    if (spec->state.layers)
        spec->state_slices = state_slices(&c, &spec->state);
    cut_guess(&c, spec, w, &guess);
    for (size_t i = 0; i < spec->layers; i++)
        cut_layer(&c, spec, &spec->state, &layer[i], &w->layer[i]);
    if (spec->aside) {
        spec->aside_slices = columns(&c, w->aside_projection.n);
        cut_rows(&c, &w->aside_projection, spec->aside_slices);
    }
    cut_rows(&c, &w->head, spec->vocab_slices);
    cut_groups(&c, spec, layer);
    spec->state = cut_states(&c, spec);
    spec->layer = layer;
    return (uint64_t)(c.whole - c.own);
}
