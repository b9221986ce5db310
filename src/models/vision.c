/* The cursor over a tower's work. A job is some pictures one after the other; its patches are rows of one tensor, in
   the order in which the tower takes them. A layer has two passes over all rows: keys and values into pages, then
   everything else, which reads them; each pass goes in slices of rows, and between any two slices the device may do
   other work. Queries are made in the second pass, so that nothing but the residual stream and one layer's keys and
   values is kept for the whole job.

   Owned by the device's thread. Invariants:
   1. rows [0, row) of the current pass are done, and those of all earlier passes;
   2. a slice holds whole tokens (squares of merge * merge patches), and no row depends on where slices end (R1);
   3. each view is a sequence of its own: its pages begin at position 0, and no row sees another view. */
#include "models/vision.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"
#include "models/vision_layout.h"

#define FEW_ROWS 16   /* of the smallest slice */
#define MORE_PAGES 64 /* than patches fill, for views that leave a page half empty */

typedef struct layer {
    mt_tensor *norm1, *norm1_bias, *norm2, *norm2_bias;
    mt_weight *q, *k, *v, *o, *gate, *up, *down;
} layer;

typedef struct merger {
    mt_tensor *norm, *norm_bias;
    mt_weight *up, *down;
} merger;

typedef enum pass { PASS_EMBED, PASS_KEYS, PASS_REST, PASS_TAP, PASS_MERGE, PASS_DONE } pass;

struct mt_vision {
    mt_device *dev;
    mt_set *set;
    const mt_vision_spec *spec;
    mt_weight *patch, *table;
    mt_tensor *norm, *norm_bias;
    layer *layers;
    merger merger, taps[MT_VISION_TAPS];
    mt_kv *kv;
    mt_tensor *x, *view; /* all rows, and those of the slice */
    /* a slice's values, [rows, ...] */
    mt_tensor *pixels, *h, *q, *k, *v, *y, *gate, *up, *rope;
    mt_patches *patches;
    mt_index *table_index;
    mt_tensor *table_factor;          /* [rows, 4] */
    mt_tensor *joined, *middle, *out; /* [tokens, ...] */
    mt_index *to;                     /* [tokens]: rows of features */
    mt_tensor *features;              /* of the job */
    mt_tensor *inv_freq;              /* [1, head_dim / 2] */
    mt_index *axis;
    size_t max_rows, cell; /* cell: patches of a token */
    mt_vision_layout layout;
    /* the cursor */
    pass pass;
    size_t at, row; /* layer, first row to do */
    double left;
};

size_t mt_vision_width(const mt_vision_spec *spec)
{
    return (size_t)spec->out * (1 + spec->tap_count);
}

static mt_weight *weight(mt_set *set, const mt_mat *mat, const float *bias)
{
    return mat->n > 0 ? mt_weight_new(set, mat, bias, false) : NULL;
}

static void load_layer(mt_vision *v, layer *l, const mt_vision_layer_weights *w)
{
    mt_set *set = v->set;
    const size_t hidden = v->spec->hidden;
    l->norm1 = mt_tensor_of(set, w->norm1, 1, hidden);
    l->norm1_bias = mt_tensor_of(set, w->norm1_bias, 1, hidden);
    l->norm2 = mt_tensor_of(set, w->norm2, 1, hidden);
    l->norm2_bias = mt_tensor_of(set, w->norm2_bias, 1, hidden);
    l->q = weight(set, &w->q, w->q_bias);
    l->k = weight(set, &w->k, w->k_bias);
    l->v = weight(set, &w->v, w->v_bias);
    l->o = weight(set, &w->o, w->o_bias);
    l->gate = weight(set, &w->gate, w->gate_bias);
    l->up = weight(set, &w->up, w->up_bias);
    l->down = weight(set, &w->down, w->down_bias);
}

static void load_merger(mt_vision *v, merger *m, const mt_merger_weights *w, size_t norm)
{
    m->norm = mt_tensor_of(v->set, w->norm, 1, norm);
    m->norm_bias = mt_tensor_of(v->set, w->norm_bias, 1, norm);
    m->up = weight(v->set, &w->up, w->up_bias);
    m->down = weight(v->set, &w->down, w->down_bias);
}

static void load(mt_vision *v, const mt_vision_weights *w)
{
    const mt_vision_spec *s = v->spec;
    v->patch = mt_weight_new(v->set, &w->patch, w->patch_bias, false);
    v->table = weight(v->set, &w->table, NULL);
    v->norm = mt_tensor_of(v->set, w->norm, 1, s->hidden);
    v->norm_bias = mt_tensor_of(v->set, w->norm_bias, 1, s->hidden);
    for (size_t i = 0; i < s->layers; i++)
        load_layer(v, &v->layers[i], &w->layer[i]);
    load_merger(v, &v->merger, &w->merger, s->hidden);
    for (size_t i = 0; i < s->tap_count; i++)
        load_merger(v, &v->taps[i], &w->tap[i], v->cell * s->hidden);
}

static void new_tensors(mt_vision *v, size_t patches, size_t rows)
{
    const mt_vision_spec *s = v->spec;
    mt_set *set = v->set;
    const size_t tokens = rows / v->cell, joined = s->pool ? s->hidden : v->cell * s->hidden;
    v->x = mt_tensor_new(set, patches, s->hidden);
    v->view = mt_tensor_view(set);
    v->pixels = mt_tensor_new(set, rows, (size_t)3 * s->frames * s->patch * s->patch);
    v->h = mt_tensor_new(set, rows, s->hidden);
    v->q = mt_tensor_new(set, rows, s->hidden);
    v->k = mt_tensor_new(set, rows, s->hidden);
    v->v = mt_tensor_new(set, rows, s->hidden);
    v->y = mt_tensor_new(set, rows, s->hidden);
    v->up = mt_tensor_new(set, rows, s->ffn);
    v->gate = s->gated ? mt_tensor_new(set, rows, s->ffn) : NULL;
    v->rope = s->rotary ? mt_tensor_new(set, rows, s->head_dim) : NULL;
    v->joined = mt_tensor_new(set, tokens, joined);
    v->middle = s->pool ? NULL : mt_tensor_new(set, tokens, joined);
    v->out = mt_tensor_new(set, tokens, s->out);
    v->to = mt_index_new(set, tokens);
    v->patches = mt_patches_new(set, rows, s->frames, (size_t)s->patch * s->patch);
    if (v->table) {
        v->table_index = mt_index_new(set, 4 * rows);
        v->table_factor = mt_tensor_new(set, rows, 4);
    }
}

/* A quarter of a head's elements turns with the row, and as many with the column, by the same frequencies. */
static void new_frequencies(mt_vision *v)
{
    const size_t half = v->spec->head_dim / 2, quarter = half / 2;
    if (!v->spec->rotary)
        return;
    float *inv_freq = mt_alloc_array(half, sizeof *inv_freq);
    uint32_t *axis = mt_alloc_array(half, sizeof *axis);
    for (size_t i = 0; i < half; i++) {
        inv_freq[i] = (float)pow(10000, -2.0 * (double)(i % quarter) / (double)half);
        axis[i] = i < quarter ? 1 : 2;
    }
    v->inv_freq = mt_tensor_of(v->set, inv_freq, 1, half);
    v->axis = mt_index_of(v->set, axis, half);
    mt_free(inv_freq);
    mt_free(axis);
}

mt_vision *mt_vision_new(mt_device *dev, const mt_vision_spec *spec, const mt_vision_weights *weights,
                         const mt_vision_params *params, mt_error *err)
{
    mt_vision *v = mt_alloc(sizeof *v);
    v->dev = dev;
    v->set = mt_set_new(dev);
    v->spec = spec;
    v->cell = (size_t)spec->merge * spec->merge;
    v->max_rows = params->rows / v->cell * v->cell;
    v->pass = PASS_DONE;
    v->layers = mt_alloc_array(spec->layers, sizeof *v->layers);
    new_frequencies(v);
    const size_t patches = (params->patches + v->cell - 1) / v->cell * v->cell;
    const size_t more = patches / v->cell < MORE_PAGES ? patches / v->cell : MORE_PAGES;
    const size_t pages = patches / MT_PAGE_TOKENS + more;
    mt_vision_layout_init(&v->layout, spec, patches, pages, v->max_rows);
    const mt_kv_shape shape = {.layers = 1,
                               .heads = spec->heads,
                               .query_heads = spec->heads,
                               .head_dim = spec->head_dim,
                               .page_tokens = MT_PAGE_TOKENS,
                               .type = mt_kv_type_of(dev)};
    if (v->max_rows == 0) {
        mt_fail(err, MT_E_INVALID, "slices of %zu patches are too small for tokens of %zu", params->rows, v->cell);
        goto fail;
    }
    v->kv = mt_kv_new(v->set, &shape, err);
    if (!v->kv || !mt_kv_reserve(v->set, v->kv, pages, err))
        goto fail;
    load(v, weights);
    new_tensors(v, patches, v->max_rows);
    return v;
fail:
    mt_vision_free(v);
    return NULL;
}

void mt_vision_free(mt_vision *v)
{
    if (!v)
        return;
    mt_vision_layout_free(&v->layout);
    mt_set_free(v->set);
    mt_free(v->layers);
    mt_free(v);
}

/* ---- costs ---- */

static double row_cost(const mt_vision *v, pass which)
{
    const mt_vision_spec *s = v->spec;
    const double hidden = s->hidden, cell = (double)v->cell, wide = cell * hidden;
    switch (which) {
    case PASS_EMBED: return 3.0 * s->frames * s->patch * s->patch * hidden;
    case PASS_KEYS: return 2 * hidden * hidden;
    case PASS_REST: return 2 * hidden * hidden + (s->gated ? 3 : 2) * hidden * s->ffn;
    case PASS_TAP:
    case PASS_MERGE: return (s->pool ? hidden * s->out : wide * wide + wide * s->out) / cell;
    case PASS_DONE: break;
    }
    return 0;
}

/* Of rows [first, first + rows), in the pass the cursor stands in. */
static double slice_cost(const mt_vision *v, size_t first, size_t rows)
{
    double cost = row_cost(v, v->pass) * (double)rows;
    if (v->pass == PASS_REST)
        cost += 2.0 * v->spec->hidden * mt_vision_layout_keys(&v->layout, first, rows, v->at);
    return cost;
}

static double job_cost(const mt_vision *v)
{
    const double rows = (double)v->layout.rows;
    double cost = rows * (row_cost(v, PASS_EMBED) + row_cost(v, PASS_MERGE));
    for (size_t l = 0; l < v->spec->layers; l++)
        cost += rows * (row_cost(v, PASS_KEYS) + row_cost(v, PASS_REST)) +
                2.0 * v->spec->hidden * mt_vision_layout_keys(&v->layout, 0, v->layout.rows, l);
    return cost + rows * v->spec->tap_count * row_cost(v, PASS_TAP);
}

/* ---- passes over a slice of n rows, which `slice` describes ---- */

static void norm(mt_vision *v, mt_tensor *y, const mt_tensor *x, size_t n, const mt_tensor *w, const mt_tensor *bias)
{
    if (v->spec->rms)
        mt_op_norm(v->dev, y, x, n, w, v->spec->eps, 0);
    else
        mt_op_layer_norm(v->dev, y, x, n, w, bias, v->spec->eps);
}

static void embed(mt_vision *v, size_t n)
{
    mt_vision_layout_pixels(&v->layout, v->row, n);
    mt_patches_write(v->dev, v->patches, v->layout.pixels, n);
    mt_op_pixels(v->dev, v->pixels, v->patches, n);
    mt_op_matmul(v->dev, &v->view, (const mt_weight *[]){v->patch}, 1, v->pixels, n);
    if (v->table) {
        mt_vision_layout_table(&v->layout, v->row, n);
        mt_index_write(v->dev, v->table_index, v->layout.table_index, 4 * n);
        for (size_t i = 0; i < n; i++)
            mt_tensor_write(v->dev, v->table_factor, i, v->layout.table_factor + 4 * i);
        mt_op_add_rows(v->dev, v->view, v->table, v->table_index, v->table_factor, 4, n);
    }
}

static void turn(mt_vision *v, mt_tensor *x, size_t n)
{
    const mt_vision_spec *s = v->spec;
    if (!s->rotary)
        return;
    mt_op_rope_table(v->dev, v->rope, v->inv_freq, v->axis, 1);
    mt_op_heads(v->dev, x, n, s->heads, s->head_dim, NULL, 0, 0, v->rope);
}

static void keys(mt_vision *v, const layer *l, size_t n)
{
    norm(v, v->h, v->view, n, l->norm1, l->norm1_bias);
    mt_op_matmul(v->dev, (mt_tensor *[]){v->k, v->v}, (const mt_weight *[]){l->k, l->v}, 2, v->h, n);
    turn(v, v->k, n);
    mt_op_kv_write(v->dev, v->kv, 0, v->k, v->v);
}

static void mlp(mt_vision *v, const layer *l, size_t n)
{
    if (l->gate) {
        mt_op_matmul(v->dev, (mt_tensor *[]){v->gate, v->up}, (const mt_weight *[]){l->gate, l->up}, 2, v->h, n);
        mt_op_silu_mul(v->dev, v->up, v->gate, v->up, n);
    } else {
        mt_op_matmul(v->dev, &v->up, (const mt_weight *[]){l->up}, 1, v->h, n);
        mt_op_act(v->dev, v->up, n, v->spec->activation);
    }
    mt_op_matmul(v->dev, &v->y, (const mt_weight *[]){l->down}, 1, v->up, n);
    mt_op_add(v->dev, v->view, v->y, n);
}

static void rest(mt_vision *v, const layer *l, size_t n)
{
    norm(v, v->h, v->view, n, l->norm1, l->norm1_bias);
    mt_op_matmul(v->dev, &v->q, (const mt_weight *[]){l->q}, 1, v->h, n);
    turn(v, v->q, n);
    mt_op_attention(v->dev, v->h, v->q, v->kv, 0, 0, 1.0f / sqrtf((float)v->spec->head_dim), 0);
    mt_op_matmul(v->dev, &v->y, (const mt_weight *[]){l->o}, 1, v->h, n);
    mt_op_add(v->dev, v->view, v->y, n);
    norm(v, v->h, v->view, n, l->norm2, l->norm2_bias);
    mlp(v, l, n);
}

/* Tokens of patches, to the job's features from column `offset` on. */
static void write_tokens(mt_vision *v, size_t n, size_t offset)
{
    const size_t tokens = n / v->cell;
    for (size_t i = 0; i < tokens; i++)
        v->layout.to[i] = mt_vision_layout_token(&v->layout, v->row / v->cell + i);
    mt_index_write(v->dev, v->to, v->layout.to, tokens);
    mt_op_scatter(v->dev, v->features, v->to, offset, v->out, tokens);
}

static void merge(mt_vision *v, const merger *m, size_t n, size_t offset, bool joined_norm)
{
    const size_t tokens = n / v->cell;
    if (joined_norm) {
        mt_op_join(v->dev, v->joined, v->view, v->cell, tokens);
        norm(v, v->joined, v->joined, tokens, m->norm, m->norm_bias);
    } else {
        norm(v, v->h, v->view, n, m->norm, m->norm_bias);
        mt_op_join(v->dev, v->joined, v->h, v->cell, tokens);
    }
    mt_op_matmul(v->dev, &v->middle, (const mt_weight *[]){m->up}, 1, v->joined, tokens);
    mt_op_act(v->dev, v->middle, tokens, MT_ACT_GELU);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, v->middle, tokens);
    write_tokens(v, n, offset);
}

/* Gemma: the norm of the last layer, means, and a norm by 1 + w before the projection. */
static void pool(mt_vision *v, size_t n)
{
    const size_t tokens = n / v->cell;
    mt_op_layer_norm(v->dev, v->h, v->view, n, v->norm, v->norm_bias, v->spec->eps);
    mt_op_mean(v->dev, v->joined, v->h, v->cell, tokens);
    mt_op_norm(v->dev, v->joined, v->joined, tokens, v->merger.norm, v->spec->eps, 1);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){v->merger.down}, 1, v->joined, tokens);
    write_tokens(v, n, 0);
}

static size_t tap_of(const mt_vision *v, size_t at)
{
    size_t i = 0;
    while (i < v->spec->tap_count && v->spec->taps[i] != at)
        i++;
    return i;
}

static void run_slice(mt_vision *v, size_t n)
{
    const layer *l = &v->layers[v->at];
    mt_batch batch;
    mt_tensor_look(v->dev, v->view, v->x, v->row, n);
    switch (v->pass) {
    case PASS_EMBED: embed(v, n); break;
    case PASS_KEYS:
    case PASS_REST:
        mt_vision_layout_batch(&v->layout, v->row, n, v->at, &batch);
        mt_step_begin(v->dev, &batch);
        (v->pass == PASS_KEYS ? keys : rest)(v, l, n);
        break;
    case PASS_TAP: {
        const size_t tap = tap_of(v, v->at);
        merge(v, &v->taps[tap], n, (1 + tap) * v->spec->out, true);
        break;
    }
    case PASS_MERGE:
        if (v->spec->pool)
            pool(v, n);
        else
            merge(v, &v->merger, n, 0, false);
        break;
    case PASS_DONE: break;
    }
}

/* ---- the cursor ---- */

static void next_layer(mt_vision *v)
{
    const bool last = v->at + 1 == v->spec->layers;
    v->pass = last ? PASS_MERGE : PASS_KEYS;
    v->at += !last;
}

static void next_pass(mt_vision *v)
{
    v->row = 0;
    switch (v->pass) {
    case PASS_EMBED: v->pass = PASS_KEYS; break;
    case PASS_KEYS: v->pass = PASS_REST; break;
    case PASS_REST:
        if (tap_of(v, v->at) < v->spec->tap_count)
            v->pass = PASS_TAP;
        else
            next_layer(v);
        break;
    case PASS_TAP: next_layer(v); break;
    case PASS_MERGE:
    case PASS_DONE: v->pass = PASS_DONE; break;
    }
}

bool mt_vision_fits(const mt_vision *v, const mt_picture *const *pictures, size_t count)
{
    return mt_vision_layout_fits(&v->layout, pictures, count);
}

void mt_vision_begin(mt_vision *v, mt_tensor *features, const mt_picture *const *pictures, const uint32_t *const *to,
                     size_t count)
{
    assert(v->pass == PASS_DONE && mt_vision_fits(v, pictures, count));
    mt_vision_layout_begin(&v->layout, pictures, to, count);
    v->features = features;
    v->pass = PASS_EMBED;
    v->at = v->row = 0;
    v->left = job_cost(v);
}

void mt_vision_drop(mt_vision *v)
{
    v->pass = PASS_DONE;
    v->left = 0;
}

double mt_vision_left(const mt_vision *v)
{
    return v->pass == PASS_DONE ? 0 : fmax(v->left, 1);
}

/* Rows of the next slice: what the rest of a budget allows, but at least a few where `must`. */
static size_t slice_rows(const mt_vision *v, double budget, bool must)
{
    const size_t left = v->layout.rows - v->row, most = left < v->max_rows ? left : v->max_rows;
    size_t few = (FEW_ROWS + v->cell - 1) / v->cell * v->cell;
    few = few < most ? few : most;
    const double fit = budget * (double)few / slice_cost(v, v->row, few);
    if (fit >= (double)most)
        return most;
    if (fit < (double)few)
        return must ? few : 0;
    return (size_t)fit / v->cell * v->cell;
}

double mt_vision_run(mt_vision *v, double budget)
{
    double spent = 0;
    mt_alloc_forbid();
    while (v->pass != PASS_DONE) {
        const size_t rows = slice_rows(v, budget - spent, spent == 0);
        if (rows == 0)
            break;
        spent += slice_cost(v, v->row, rows);
        run_slice(v, rows);
        v->row += rows;
        if (v->row == v->layout.rows)
            next_pass(v);
    }
    mt_alloc_permit();
    v->left -= spent;
    return spent;
}
