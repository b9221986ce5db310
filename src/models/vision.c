/* The passes of a tower's cursor (cursor.h). A job is some pictures one after the other; its patches are rows of one
   tensor, in the order in which the tower takes them. A layer has two passes over all rows: keys and values into pages,
   then everything else, which reads them. Queries are made in the second pass, so that nothing but the residual stream
   and one layer's keys and values is kept for the whole job.

   Owned by the device's thread. Invariants:
   1. a slice holds whole tokens (squares of merge * merge patches);
   2. each view is a sequence of its own: its pages begin at position 0, and no row sees another view. */
#include "models/vision.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "models/vision_layout.h"

#define MORE_PAGES 64 /* than patches fill, for views that leave a page half empty */

typedef struct layer {
    mt_tensor *norm1, *norm1_bias, *norm2, *norm2_bias, *post1, *post2, *q_norm, *k_norm;
    mt_weight *product[MT_TOWER_PRODUCTS];
    mt_clip clip[MT_TOWER_PRODUCTS];
} layer;

typedef struct merger {
    mt_tensor *norm, *norm_bias, *joined_norm, *joined_norm_bias, *standard_bias, *standard_scale;
    mt_weight *join, *proj, *gate, *up, *down;
} merger;

enum { PASS_EMBED, PASS_KEYS, PASS_REST, PASS_TAP, PASS_MERGE };

struct mt_vision {
    mt_cursor cursor;
    mt_device *dev;
    mt_set *set;
    const mt_vision_spec *spec;
    mt_weight *patch, *table;
    mt_tensor *pixel_norm, *pixel_norm_bias, *patch_norm, *patch_norm_bias;
    mt_tensor *first_norm, *first_norm_bias, *norm, *norm_bias;
    mt_tensor *v_norm; /* of values by head: ones */
    layer *layers;
    merger merger, taps[MT_VISION_TAPS];
    mt_kv *kv;
    mt_tensor *x, *view; /* all rows, and those of the slice */
    /* a slice's values, [rows, ...] */
    mt_tensor *pixels, *h, *q, *k, *v, *attended, *y, *gate, *up, *rope;
    mt_patches *patches;
    mt_index *table_index;
    mt_tensor *table_factor;                         /* [rows, taps] */
    mt_tensor *joined, *one, *middle, *opened, *out; /* [tokens, ...] */
    mt_index *to;                                    /* [tokens]: rows of features */
    mt_tensor *features;                             /* of the job */
    mt_tensor *inv_freq;                             /* [1, head_dim / 2] */
    mt_index *axis;
    size_t cell; /* patches of a token */
    mt_vision_layout layout;
};

static const mt_cursor_kind passes;

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
    l->post1 = mt_tensor_of(set, w->post1, 1, hidden);
    l->post2 = mt_tensor_of(set, w->post2, 1, hidden);
    l->q_norm = mt_tensor_of(set, w->q_norm, 1, v->spec->head_dim);
    l->k_norm = mt_tensor_of(set, w->k_norm, 1, v->spec->head_dim);
    l->product[MT_TOWER_Q] = weight(set, &w->q, w->q_bias);
    l->product[MT_TOWER_K] = weight(set, &w->k, w->k_bias);
    l->product[MT_TOWER_V] = weight(set, &w->v, w->v_bias);
    l->product[MT_TOWER_O] = weight(set, &w->o, w->o_bias);
    l->product[MT_TOWER_GATE] = weight(set, &w->gate, w->gate_bias);
    l->product[MT_TOWER_UP] = weight(set, &w->up, w->up_bias);
    l->product[MT_TOWER_DOWN] = weight(set, &w->down, w->down_bias);
    memcpy(l->clip, w->clip, sizeof l->clip);
}

/* A norm without weights is one whose weights are 1. */
static mt_tensor *plain_norm(mt_set *set, size_t n)
{
    float *ones = mt_alloc_array(n, sizeof *ones);
    for (size_t i = 0; i < n; i++)
        ones[i] = 1;
    mt_tensor *t = mt_tensor_of(set, ones, 1, n);
    mt_free(ones);
    return t;
}

static void load_merger(mt_vision *v, merger *m, const mt_merger_weights *w, size_t norm)
{
    m->norm = w->norm ? mt_tensor_of(v->set, w->norm, 1, norm) : plain_norm(v->set, norm);
    m->norm_bias = mt_tensor_of(v->set, w->norm_bias, 1, norm);
    const bool gated = v->spec->merge_kind == MT_MERGE_GATED;
    const size_t joined = gated ? v->spec->out : v->cell * v->spec->hidden;
    m->joined_norm = mt_tensor_of(v->set, w->joined_norm, 1, joined);
    m->joined_norm_bias = mt_tensor_of(v->set, w->joined_norm_bias, 1, joined);
    m->join = weight(v->set, &w->join, w->join_bias);
    m->proj = weight(v->set, &w->proj, NULL);
    m->gate = weight(v->set, &w->gate, NULL);
    m->standard_bias = mt_tensor_of(v->set, w->standard_bias, 1, norm);
    m->standard_scale = mt_tensor_of(v->set, w->standard_scale, 1, norm);
    m->up = weight(v->set, &w->up, w->up_bias);
    m->down = weight(v->set, &w->down, w->down_bias);
}

static void load(mt_vision *v, const mt_vision_weights *w)
{
    const mt_vision_spec *s = v->spec;
    v->patch = mt_weight_new(v->set, &w->patch, w->patch_bias, false);
    v->table = weight(v->set, &w->table, NULL);
    v->pixel_norm = mt_tensor_of(v->set, w->pixel_norm, 1, w->patch.k);
    v->pixel_norm_bias = mt_tensor_of(v->set, w->pixel_norm_bias, 1, w->patch.k);
    v->patch_norm = mt_tensor_of(v->set, w->patch_norm, 1, s->hidden);
    v->patch_norm_bias = mt_tensor_of(v->set, w->patch_norm_bias, 1, s->hidden);
    v->first_norm = mt_tensor_of(v->set, w->first_norm, 1, s->hidden);
    v->first_norm_bias = mt_tensor_of(v->set, w->first_norm_bias, 1, s->hidden);
    v->v_norm = s->head_norms ? plain_norm(v->set, s->head_dim) : NULL;
    v->norm = mt_tensor_of(v->set, w->norm, 1, s->hidden);
    v->norm_bias = mt_tensor_of(v->set, w->norm_bias, 1, s->hidden);
    for (size_t i = 0; i < s->layers; i++)
        load_layer(v, &v->layers[i], &w->layer[i]);
    load_merger(v, &v->merger, &w->merger, s->hidden);
    for (size_t i = 0; i < s->tap_count; i++)
        load_merger(v, &v->taps[i], &w->tap[i], v->cell * s->hidden);
}

/* Of the merger's MLP. */
static size_t middle(const mt_vision_spec *s)
{
    if (s->merge_kind == MT_MERGE_WOVEN)
        return s->out;
    return s->middle ? s->middle : (size_t)s->merge * s->merge * s->hidden;
}

static bool has_means(const mt_vision_spec *s)
{
    return s->merge_kind == MT_MERGE_MEAN || s->merge_kind == MT_MERGE_PLAIN;
}

static size_t key_heads(const mt_vision_spec *s)
{
    return s->kv_heads ? s->kv_heads : s->heads;
}

/* What only layers need. */
static void new_layer_tensors(mt_vision *v, size_t rows)
{
    const mt_vision_spec *s = v->spec;
    const size_t query = (size_t)s->heads * s->head_dim, key = key_heads(s) * s->head_dim;
    mt_set *set = v->set;
    v->q = mt_tensor_new(set, rows, query);
    v->k = mt_tensor_new(set, rows, key);
    v->v = mt_tensor_new(set, rows, key);
    v->attended = mt_tensor_new(set, rows, query);
    v->y = mt_tensor_new(set, rows, s->hidden);
    v->up = mt_tensor_new(set, rows, s->ffn);
    v->gate = s->gated ? mt_tensor_new(set, rows, s->ffn) : NULL;
    v->rope = s->theta > 0 ? mt_tensor_new(set, rows, s->head_dim) : NULL;
}

static void new_tensors(mt_vision *v, size_t patches, size_t rows)
{
    const mt_vision_spec *s = v->spec;
    mt_set *set = v->set;
    const size_t tokens = rows / v->cell, joined = has_means(s) ? s->hidden : v->cell * s->hidden;
    v->x = mt_tensor_new(set, patches, s->hidden);
    v->view = mt_tensor_view(set);
    v->pixels = mt_tensor_new(set, rows, (size_t)3 * s->frames * s->patch * s->patch);
    v->h = mt_tensor_new(set, rows, s->hidden);
    if (s->layers)
        new_layer_tensors(v, rows);
    v->joined = mt_tensor_new(set, tokens, joined);
    if (s->merge_kind == MT_MERGE_WOVEN)
        v->one = mt_tensor_new(set, tokens, s->hidden);
    if (s->merge_kind == MT_MERGE_GATED) {
        v->one = mt_tensor_new(set, tokens, s->out);
        v->opened = mt_tensor_new(set, tokens, middle(s));
    }
    if (!has_means(s))
        v->middle = mt_tensor_new(set, tokens, middle(s));
    v->out = mt_tensor_new(set, tokens, s->out);
    v->to = mt_index_new(set, tokens);
    v->patches = mt_patches_new(set, rows, s->frames, (size_t)s->patch * s->patch);
    if (v->table) {
        v->table_index = mt_index_new(set, v->layout.taps * rows);
        v->table_factor = s->places ? NULL : mt_tensor_new(set, rows, v->layout.taps);
    }
}

/* A quarter of a head's elements turns with the row, and as many with the column. */
static void new_frequencies(mt_vision *v)
{
    const size_t half = v->spec->head_dim / 2, quarter = half / 2;
    if (v->spec->theta <= 0)
        return;
    float *inv_freq = mt_alloc_array(half, sizeof *inv_freq);
    uint32_t *axis = mt_alloc_array(half, sizeof *axis);
    for (size_t i = 0; i < half; i++) {
        const double step = (double)(i % quarter) + (v->spec->by_turns && i >= quarter ? 0.5 : 0);
        inv_freq[i] = (float)pow(v->spec->theta, -2.0 * step / (double)half);
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
    v->cursor = (mt_cursor){.kind = &passes, .whole = v->cell, .most = params->rows / v->cell * v->cell};
    v->layers = mt_alloc_array(spec->layers, sizeof *v->layers);
    new_frequencies(v);
    const size_t patches = (params->patches + v->cell - 1) / v->cell * v->cell;
    const size_t more = patches / v->cell < MORE_PAGES ? patches / v->cell : MORE_PAGES;
    const size_t pages = patches / MT_PAGE_TOKENS + more;
    mt_vision_layout_init(&v->layout, spec, patches, pages, v->cursor.most);
    const mt_kv_shape shape = {.layers = 1,
                               .heads = key_heads(spec),
                               .query_heads = spec->heads,
                               .head_dim = spec->head_dim,
                               .page_tokens = MT_PAGE_TOKENS,
                               .type = mt_kv_type_of(dev)};
    if (v->cursor.most == 0) {
        mt_fail(err, MT_E_INVALID, "slices of %zu patches are too small for tokens of %zu", params->rows, v->cell);
        goto fail;
    }
    v->kv = spec->layers ? mt_kv_new(v->set, &shape, err) : NULL;
    if (spec->layers && (!v->kv || !mt_kv_reserve(v->set, v->kv, pages, err)))
        goto fail;
    load(v, weights);
    new_tensors(v, patches, v->cursor.most);
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

static double row_cost(const mt_vision *v)
{
    const mt_vision_spec *s = v->spec;
    const double hidden = s->hidden, cell = (double)v->cell, wide = cell * hidden;
    const double query = (double)s->heads * s->head_dim, key = (double)key_heads(s) * s->head_dim;
    switch (v->cursor.pass) {
    case PASS_EMBED: return 3.0 * s->frames * s->patch * s->patch * hidden;
    case PASS_KEYS: return 2 * hidden * key;
    case PASS_REST: return 2 * hidden * query + (s->gated ? 3 : 2) * hidden * s->ffn;
    default: break;
    }
    switch (s->merge_kind) {
    case MT_MERGE_MEAN:
    case MT_MERGE_PLAIN: return hidden * s->out / cell;
    case MT_MERGE_WOVEN: return (wide * hidden + hidden * s->out + (double)s->out * s->out) / cell;
    case MT_MERGE_GATED: return s->out * (wide + s->out + 3.0 * (double)middle(s)) / cell;
    default: return (double)middle(s) * (wide + s->out) / cell;
    }
}

static double slice_cost(const mt_cursor *c, size_t first, size_t rows)
{
    const mt_vision *v = (const mt_vision *)c;
    double cost = row_cost(v) * (double)rows;
    if (c->pass == PASS_REST)
        cost += 2.0 * v->spec->heads * v->spec->head_dim * mt_vision_layout_keys(&v->layout, first, rows, c->layer);
    return cost;
}

/* ---- passes over a slice of n rows, which `slice` describes ---- */

static void norm(mt_vision *v, mt_tensor *y, const mt_tensor *x, size_t n, const mt_tensor *w, const mt_tensor *bias)
{
    if (v->spec->rms)
        mt_op_norm(v->dev, y, x, n, w, v->spec->eps, 0);
    else
        mt_op_layer_norm(v->dev, y, x, n, w, bias, v->spec->eps);
}

static void add_places(mt_vision *v, size_t n)
{
    mt_vision_layout_table(&v->layout, v->cursor.row, n);
    const size_t taps = v->layout.taps;
    mt_index_write(v->dev, v->table_index, v->layout.table_index, taps * n);
    if (v->table_factor)
        mt_tensor_write(v->dev, v->table_factor, 0, n, v->layout.table_factor);
    mt_op_add_rows(v->dev, v->view, v->table, v->table_index, v->table_factor, taps, n);
}

static void embed(mt_vision *v, size_t n)
{
    const mt_vision_spec *s = v->spec;
    mt_vision_layout_pixels(&v->layout, v->cursor.row, n);
    mt_patches_write(v->dev, v->patches, v->layout.pixels, n);
    mt_op_pixels(v->dev, v->pixels, v->patches, n);
    if (s->layered)
        mt_op_layer_norm(v->dev, v->pixels, v->pixels, n, v->pixel_norm, v->pixel_norm_bias, s->layer_eps);
    mt_op_matmul(v->dev, &v->view, (const mt_weight *[]){v->patch}, 1, v->pixels, n);
    if (s->layered)
        mt_op_layer_norm(v->dev, v->view, v->view, n, v->patch_norm, v->patch_norm_bias, s->layer_eps);
    else if (v->first_norm)
        mt_op_norm(v->dev, v->view, v->view, n, v->first_norm, s->eps, 0);
    if (v->table)
        add_places(v, n);
    if (s->layered)
        mt_op_layer_norm(v->dev, v->view, v->view, n, v->first_norm, v->first_norm_bias, s->layer_eps);
}

/* Heads of x, normed where w is given, and turned. */
static void turn(mt_vision *v, mt_tensor *x, size_t n, const mt_tensor *w)
{
    const mt_vision_spec *s = v->spec;
    if (v->rope)
        mt_op_rope_table(v->dev, v->rope, v->inv_freq, v->axis, 1);
    if (v->rope || w)
        mt_op_heads(v->dev, x, x, n, s->head_dim, w, s->eps, 0, v->rope, false);
}

static void cut(mt_vision *v, mt_tensor *x, size_t n, const float between[2])
{
    if (v->spec->clipped && (isfinite(between[0]) || isfinite(between[1])))
        mt_op_adjust(v->dev, x, n, NULL, NULL, between[0], between[1]);
}

/* y = a product of x, each cut off as it says; what is cut off of x is lost */
static void product(mt_vision *v, const layer *l, mt_tower_product which, mt_tensor *y, mt_tensor *x, size_t n)
{
    cut(v, x, n, l->clip[which].in);
    mt_op_matmul(v->dev, &y, (const mt_weight *[]){l->product[which]}, 1, x, n);
    cut(v, y, n, l->clip[which].out);
}

/* Two products of the normed stream, which is made once more where the first may have cut it off. */
static void two_products(mt_vision *v, const layer *l, mt_tower_product first, mt_tensor *const y[2],
                         const mt_tensor *w, const mt_tensor *bias, size_t n)
{
    norm(v, v->h, v->view, n, w, bias);
    if (!v->spec->clipped) {
        mt_op_matmul(v->dev, y, (const mt_weight *[]){l->product[first], l->product[first + 1]}, 2, v->h, n);
        return;
    }
    product(v, l, first, y[0], v->h, n);
    norm(v, v->h, v->view, n, w, bias);
    product(v, l, first + 1, y[1], v->h, n);
}

/* The stream grows by y, normed where the tower has it so. */
static void grow(mt_vision *v, const mt_tensor *post, size_t n)
{
    if (post)
        mt_op_norm(v->dev, v->y, v->y, n, post, v->spec->eps, 0);
    mt_op_add(v->dev, v->view, v->y, n);
}

static void keys(mt_vision *v, const layer *l, size_t n)
{
    const mt_vision_spec *s = v->spec;
    two_products(v, l, MT_TOWER_K, (mt_tensor *[]){v->k, v->v}, l->norm1, l->norm1_bias, n);
    turn(v, v->k, n, l->k_norm);
    if (v->v_norm)
        mt_op_heads(v->dev, v->v, v->v, n, s->head_dim, v->v_norm, s->eps, 0, NULL, false);
    mt_op_kv_write(v->dev, v->kv, 0, v->k, v->v);
}

static void mlp(mt_vision *v, const layer *l, size_t n)
{
    if (l->product[MT_TOWER_GATE]) {
        two_products(v, l, MT_TOWER_GATE, (mt_tensor *[]){v->gate, v->up}, l->norm2, l->norm2_bias, n);
        mt_op_glu(v->dev, v->up, v->gate, v->up, n, (mt_glu){.act = v->spec->activation});
    } else {
        norm(v, v->h, v->view, n, l->norm2, l->norm2_bias);
        product(v, l, MT_TOWER_UP, v->up, v->h, n);
        mt_op_act(v->dev, v->up, n, v->spec->activation);
    }
    product(v, l, MT_TOWER_DOWN, v->y, v->up, n);
    grow(v, l->post2, n);
}

static void rest(mt_vision *v, const layer *l, size_t n)
{
    const mt_vision_spec *s = v->spec;
    norm(v, v->h, v->view, n, l->norm1, l->norm1_bias);
    product(v, l, MT_TOWER_Q, v->q, v->h, n);
    turn(v, v->q, n, l->q_norm);
    mt_op_attention(v->dev, v->attended, v->q, v->kv, 0,
                    (mt_attention){.scale = s->head_norms ? 1 : 1.0f / sqrtf((float)s->head_dim)});
    product(v, l, MT_TOWER_O, v->y, v->attended, n);
    grow(v, l->post1, n);
    mlp(v, l, n);
}

/* Tokens of patches, to the job's features from column `offset` on. */
static void write_tokens(mt_vision *v, size_t n, size_t offset)
{
    const size_t tokens = n / v->cell;
    for (size_t i = 0; i < tokens; i++)
        v->layout.to[i] = mt_vision_layout_token(&v->layout, v->cursor.row / v->cell + i);
    mt_index_write(v->dev, v->to, v->layout.to, tokens);
    mt_op_scatter(v->dev, v->features, v->to, offset, v->out, tokens);
}

static void merge(mt_vision *v, const merger *m, size_t n, size_t offset, bool joined_norm)
{
    const size_t tokens = n / v->cell;
    if (joined_norm) {
        mt_op_join(v->dev, v->joined, v->view, v->cell, tokens, false);
        norm(v, v->joined, v->joined, tokens, m->norm, m->norm_bias);
    } else {
        norm(v, v->h, v->view, n, v->norm ? v->norm : m->norm, v->norm ? v->norm_bias : m->norm_bias);
        if (v->norm) /* the tower's own, and then the merger's */
            mt_op_layer_norm(v->dev, v->h, v->h, n, m->norm, m->norm_bias, v->spec->merge_eps);
        mt_op_join(v->dev, v->joined, v->h, v->cell, tokens, false);
        if (m->joined_norm)
            mt_op_layer_norm(v->dev, v->joined, v->joined, tokens, m->joined_norm, m->joined_norm_bias,
                             v->spec->merge_eps);
    }
    if (m->up) {
        mt_op_matmul(v->dev, &v->middle, (const mt_weight *[]){m->up}, 1, v->joined, tokens);
        mt_op_act(v->dev, v->middle, tokens, v->spec->merge_activation);
    }
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, m->up ? v->middle : v->joined, tokens);
    write_tokens(v, n, offset);
}

static void merge_woven(mt_vision *v, size_t n)
{
    const merger *m = &v->merger;
    const size_t tokens = n / v->cell;
    mt_op_norm(v->dev, v->h, v->view, n, m->norm, v->spec->merge_eps, 0);
    mt_op_join(v->dev, v->joined, v->h, v->cell, tokens, true);
    mt_op_matmul(v->dev, &v->one, (const mt_weight *[]){m->join}, 1, v->joined, tokens);
    mt_op_matmul(v->dev, &v->middle, (const mt_weight *[]){m->up}, 1, v->one, tokens);
    mt_op_act(v->dev, v->middle, tokens, v->spec->merge_activation);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, v->middle, tokens);
    write_tokens(v, n, 0);
}

static void merge_gated(mt_vision *v, size_t n)
{
    const merger *m = &v->merger;
    const size_t tokens = n / v->cell;
    norm(v, v->h, v->view, n, m->norm, m->norm_bias);
    mt_op_join(v->dev, v->joined, v->h, v->cell, tokens, true);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->join}, 1, v->joined, tokens);
    mt_op_matmul(v->dev, &v->one, (const mt_weight *[]){m->proj}, 1, v->out, tokens);
    mt_op_layer_norm(v->dev, v->one, v->one, tokens, m->joined_norm, m->joined_norm_bias, v->spec->merge_eps);
    mt_op_act(v->dev, v->one, tokens, MT_ACT_GELU);
    mt_op_matmul(v->dev, (mt_tensor *[]){v->opened, v->middle}, (const mt_weight *[]){m->gate, m->up}, 2, v->one,
                 tokens);
    mt_op_glu(v->dev, v->middle, v->opened, v->middle, tokens, (mt_glu){.act = v->spec->merge_activation});
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, v->middle, tokens);
    write_tokens(v, n, 0);
}

static void pool(mt_vision *v, size_t n)
{
    const size_t tokens = n / v->cell;
    mt_op_layer_norm(v->dev, v->h, v->view, n, v->norm, v->norm_bias, v->spec->eps);
    mt_op_mean(v->dev, v->joined, v->h, v->cell, tokens);
    mt_op_norm(v->dev, v->joined, v->joined, tokens, v->merger.norm, v->spec->eps, 1);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){v->merger.down}, 1, v->joined, tokens);
    write_tokens(v, n, 0);
}

static void pool_plain(mt_vision *v, size_t n)
{
    const merger *m = &v->merger;
    const size_t tokens = n / v->cell;
    mt_op_mean(v->dev, v->joined, v->view, v->cell, tokens);
    if (v->spec->merge_scale != 1)
        mt_op_scale(v->dev, v->joined, tokens, v->spec->merge_scale);
    if (m->standard_scale)
        mt_op_adjust(v->dev, v->joined, tokens, m->standard_bias, m->standard_scale, -INFINITY, INFINITY);
    mt_op_norm(v->dev, v->joined, v->joined, tokens, m->norm, v->spec->eps, 0);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, v->joined, tokens);
    write_tokens(v, n, 0);
}

static void make_tokens(mt_vision *v, size_t n)
{
    switch (v->spec->merge_kind) {
    case MT_MERGE_MLP: merge(v, &v->merger, n, 0, false); break;
    case MT_MERGE_MEAN: pool(v, n); break;
    case MT_MERGE_PLAIN: pool_plain(v, n); break;
    case MT_MERGE_WOVEN: merge_woven(v, n); break;
    case MT_MERGE_GATED: merge_gated(v, n); break;
    }
}

static size_t tap_of(const mt_vision_spec *spec, size_t at)
{
    size_t i = 0;
    while (i < spec->tap_count && spec->taps[i] != at)
        i++;
    return i;
}

static void run_slice(mt_cursor *c, size_t n)
{
    mt_vision *v = (mt_vision *)c;
    const size_t tap = tap_of(v->spec, c->layer);
    mt_batch batch;
    mt_tensor_look(v->dev, v->view, v->x, c->row, n);
    switch (c->pass) {
    case PASS_EMBED: embed(v, n); break;
    case PASS_KEYS:
    case PASS_REST:
        mt_vision_layout_batch(&v->layout, c->row, n, c->layer, &batch);
        mt_step_begin(v->dev, &batch);
        (c->pass == PASS_KEYS ? keys : rest)(v, &v->layers[c->layer], n);
        break;
    case PASS_TAP: merge(v, &v->taps[tap], n, (1 + tap) * v->spec->out, true); break;
    default: make_tokens(v, n);
    }
}

/* ---- the cursor ---- */

static void next_layer(mt_cursor *c, size_t layers)
{
    const bool last = c->layer + 1 == layers;
    c->pass = last ? PASS_MERGE : PASS_KEYS;
    c->layer += !last;
}

static bool next_pass(mt_cursor *c)
{
    const mt_vision_spec *spec = ((const mt_vision *)c)->spec;
    if (c->pass == PASS_MERGE)
        return false;
    if (c->pass == PASS_EMBED && spec->layers == 0)
        c->pass = PASS_MERGE;
    else if (c->pass < PASS_REST || (c->pass == PASS_REST && tap_of(spec, c->layer) < spec->tap_count))
        c->pass++;
    else
        next_layer(c, spec->layers);
    return true;
}

static const mt_cursor_kind passes = {.slice = run_slice, .cost = slice_cost, .next = next_pass};

static bool fits(const mt_cursor *c, const mt_picture *const *pictures, size_t count)
{
    return mt_vision_layout_fits(&((const mt_vision *)c)->layout, pictures, count);
}

static void begin(mt_cursor *c, mt_tensor *features, const mt_picture *const *pictures, const uint32_t *const *to,
                  size_t count)
{
    mt_vision *v = (mt_vision *)c;
    assert(!c->busy && fits(c, pictures, count));
    mt_vision_layout_begin(&v->layout, pictures, to, count);
    v->features = features;
    mt_cursor_begin(c, v->layout.rows);
}

mt_tower mt_vision_tower(mt_vision *v)
{
    return (mt_tower){.cursor = &v->cursor, .width = mt_vision_width(v->spec), .fits = fits, .begin = begin};
}
