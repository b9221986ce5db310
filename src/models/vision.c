/* Runs a vision tower (vision.h) as a cursor's passes (cursor.h). A job is some pictures; their patches are the rows of
   one tensor, in the tower's order. A layer has two passes over all rows: keys and values into pages, then everything
   else, which reads them. Queries are made in the second pass, so that only the residual stream and one layer's keys
   and values are kept for the whole job; or in the first, where one slice has all rows. Where patches are squeezed in
   the middle of the tower, the job has a quarter of its rows from there on, stored where its first rows were.

   Used by the device's thread. Invariants:
   1. a slice holds whole tokens (squares of merge * merge patches), or the square of a view's summary;
   2. each view is a sequence of its own: its pages begin at position 0, and no row sees another view. */
#include "models/vision.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "models/vision_inside.h"

#define MORE_PAGES 64 /* pages beyond those that all patches fill, for views that end in the middle of a page */

enum { PASS_EMBED, PASS_KEYS, PASS_REST, PASS_TAP, PASS_NEAR_KEYS, PASS_NEAR, PASS_MERGE };

static const mt_cursor_kind passes;

size_t mt_vision_width(const mt_vision_spec *spec)
{
    return (size_t)spec->out * (1 + spec->tap_count);
}

/* Loads the weights of a layer. */
static void load_layer(mt_vision *v, mt_tower_layer *l, const mt_vision_layer_weights *w)
{
    mt_set *set = v->set;
    const size_t hidden = v->spec->hidden, normed = v->spec->row_eps > 0 ? hidden : v->spec->head_dim;
    l->norm1 = mt_tensor_of(set, w->norm1, 1, hidden);
    l->norm1_bias = mt_tensor_of(set, w->norm1_bias, 1, hidden);
    l->norm2 = mt_tensor_of(set, w->norm2, 1, hidden);
    l->norm2_bias = mt_tensor_of(set, w->norm2_bias, 1, hidden);
    l->post1 = mt_tensor_of(set, w->post1, 1, hidden);
    l->post2 = mt_tensor_of(set, w->post2, 1, hidden);
    l->scale1 = mt_tensor_of(set, w->scale1, 1, hidden);
    l->scale2 = mt_tensor_of(set, w->scale2, 1, hidden);
    l->q_norm = mt_tensor_of(set, w->q_norm, 1, normed);
    l->k_norm = mt_tensor_of(set, w->k_norm, 1, normed);
    l->product[MT_TOWER_Q] = mt_tower_weight(set, &w->q, w->q_bias);
    l->product[MT_TOWER_K] = mt_tower_weight(set, &w->k, w->k_bias);
    l->product[MT_TOWER_V] = mt_tower_weight(set, &w->v, w->v_bias);
    l->product[MT_TOWER_O] = mt_tower_weight(set, &w->o, w->o_bias);
    l->product[MT_TOWER_GATE] = mt_tower_weight(set, &w->gate, w->gate_bias);
    l->product[MT_TOWER_UP] = mt_tower_weight(set, &w->up, w->up_bias);
    l->product[MT_TOWER_DOWN] = mt_tower_weight(set, &w->down, w->down_bias);
    memcpy(l->clip, w->clip, sizeof(l->clip));
}

/* Loads all weights of the tower. */
static void load(mt_vision *v, const mt_vision_weights *w)
{
    const mt_vision_spec *s = v->spec;
    v->patch = mt_weight_new(v->set, &w->patch, w->patch_bias, false);
    v->table = w->table.n ? mt_weight_new(v->set, &w->table, NULL, true) : NULL; /* its rows are looked up */
    v->pixel_norm = mt_tensor_of(v->set, w->pixel_norm, 1, w->patch.k);
    v->pixel_norm_bias = mt_tensor_of(v->set, w->pixel_norm_bias, 1, w->patch.k);
    v->patch_norm = mt_tensor_of(v->set, w->patch_norm, 1, s->hidden);
    v->patch_norm_bias = mt_tensor_of(v->set, w->patch_norm_bias, 1, s->hidden);
    v->first_norm = mt_tensor_of(v->set, w->first_norm, 1, s->hidden);
    v->first_norm_bias = mt_tensor_of(v->set, w->first_norm_bias, 1, s->hidden);
    v->v_norm = s->head_norms ? mt_tower_plain_norm(v->set, s->head_dim) : NULL;
    v->summary = mt_tensor_of(v->set, w->summary, 1, s->hidden);
    v->norm = mt_tensor_of(v->set, w->norm, 1, s->hidden);
    v->norm_bias = mt_tensor_of(v->set, w->norm_bias, 1, s->hidden);
    for (size_t i = 0; i < s->layers; i++)
        load_layer(v, &v->layers[i], &w->layer[i]);
    if (s->squeezed) {
        load_layer(v, &v->near, &w->near);
        mt_tower_merger_load(v, &v->squeeze, &w->squeeze, s->hidden);
    }
    mt_tower_merger_load(v, &v->merger, &w->merger, s->hidden);
    for (size_t i = 0; i < s->tap_count; i++)
        mt_tower_merger_load(v, &v->taps[i], &w->tap[i], v->joint * s->hidden);
}

static size_t key_heads(const mt_vision_spec *s)
{
    return s->kv_heads ? s->kv_heads : s->heads;
}

/* Makes the tensors that only layers need. */
static void new_layer_tensors(mt_vision *v, size_t rows)
{
    const mt_vision_spec *s = v->spec;
    const size_t query = (size_t)s->heads * s->head_dim, key = key_heads(s) * s->head_dim;
    mt_set *set = v->set;
    v->q = mt_tensor_new(set, rows, query);
    v->asked = mt_tensor_view(set);
    v->k = mt_tensor_new(set, rows, key);
    v->v = mt_tensor_new(set, rows, key);
    v->attended = mt_tensor_new(set, rows, query);
    v->y = mt_tensor_new(set, rows, s->hidden);
    v->up = mt_tensor_new(set, rows, s->ffn);
    v->gate = s->gated ? mt_tensor_new(set, rows, s->ffn) : NULL;
    v->rope = s->theta > 0 ? mt_tensor_new(set, rows, s->head_dim) : NULL;
}

/* Makes the tensors of the job and of slices. */
static void new_tensors(mt_vision *v, size_t patches, size_t rows)
{
    const mt_vision_spec *s = v->spec;
    mt_set *set = v->set;
    v->x = mt_tensor_new(set, patches, s->hidden);
    v->view = mt_tensor_view(set);
    v->pixels = mt_tensor_new(set, rows, (size_t)3 * s->frames * s->patch * s->patch);
    v->h = mt_tensor_new(set, rows, s->hidden);
    if (s->layers)
        new_layer_tensors(v, rows);
    mt_tower_merger_tensors(v, rows);
    v->patches = mt_patches_new(set, rows, s->frames, (size_t)s->patch * s->patch);
    if (v->table) {
        v->table_index = mt_index_new(set, v->layout.taps * rows);
        v->table_factor = s->places ? NULL : mt_tensor_new(set, rows, v->layout.taps);
    }
}

/* Makes the rotary frequencies: a quarter of a head's elements turns with the patch's row, and a quarter with its
   column. */
static void new_frequencies(mt_vision *v)
{
    const size_t half = v->spec->head_dim / 2, quarter = half / 2;
    if (v->spec->theta <= 0)
        return;
    float *inv_freq = mt_alloc_array(half, sizeof(*inv_freq));
    uint32_t *axis = mt_alloc_array(half, sizeof(*axis));
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

/* Rows for so many patches, and for the summaries of views that are as large as the table of positions. */
static size_t rows_of(const mt_vision_spec *s, size_t patches)
{
    const size_t cell = (size_t)s->merge * s->merge, squares = (patches + cell - 1) / cell;
    const size_t view = (size_t)s->table * s->table;
    return (squares + (s->summary ? patches / (view ? view : cell) + 1 : 0)) * cell;
}

mt_vision *mt_vision_new(mt_device *dev, const mt_vision_spec *spec, const mt_vision_weights *weights,
                         const mt_vision_params *params, mt_error *err)
{
    mt_vision *v = mt_alloc(sizeof(*v));
    v->dev = dev;
    v->set = mt_set_new(dev);
    v->spec = spec;
    v->cell = (size_t)spec->merge * spec->merge;
    v->joint = spec->squeezed ? v->cell / MT_SQUEEZED : v->cell;
    v->cursor = (mt_cursor){.kind = &passes, .whole = v->cell, .most = params->rows / v->cell * v->cell};
    v->layers = mt_alloc_array(spec->layers, sizeof(*v->layers));
    new_frequencies(v);
    const size_t patches = rows_of(spec, params->patches);
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

/* How many of the job's first rows became one row of the present pass. */
static size_t shrink(const mt_vision *v)
{
    const mt_cursor *c = &v->cursor;
    const bool in_layer = c->pass == PASS_KEYS || c->pass == PASS_REST;
    return v->spec->squeezed && (c->pass == PASS_MERGE || (in_layer && c->layer > v->spec->squeeze)) ? MT_SQUEEZED : 1;
}

static double row_cost(const mt_vision *v)
{
    const mt_vision_spec *s = v->spec;
    const double hidden = s->hidden, query = (double)s->heads * s->head_dim, key = (double)key_heads(s) * s->head_dim;
    switch (v->cursor.pass) {
    case PASS_EMBED: return 3.0 * s->frames * s->patch * s->patch * hidden;
    case PASS_KEYS:
    case PASS_NEAR_KEYS: return 2 * hidden * key;
    case PASS_REST: return 2 * hidden * query + (s->gated ? 3 : 2) * hidden * s->ffn;
    case PASS_NEAR: return 2 * (hidden + MT_SQUEEZED) * query + (MT_SQUEEZED + 1) * hidden * s->ffn;
    default: return mt_tower_merger_cost(v);
    }
}

static double slice_cost(const mt_cursor *c, size_t first, size_t rows)
{
    const mt_vision *v = (const mt_vision *)c;
    const size_t each = shrink(v);
    double cost = row_cost(v) * (double)rows;
    if (c->pass == PASS_REST)
        cost += 2.0 * v->spec->heads * v->spec->head_dim *
                mt_vision_layout_keys(&v->layout, first * each, rows * each, c->layer) / (double)(each * each);
    return cost;
}

/* ---- passes over a slice of n rows, which v->layout describes ---- */

static void add_places(mt_vision *v, size_t n)
{
    mt_vision_layout_table(&v->layout, v->cursor.row, n);
    const size_t taps = v->layout.taps;
    mt_index_write(v->dev, v->table_index, v->layout.table_index, taps * n);
    if (v->table_factor)
        mt_tensor_write(v->dev, v->table_factor, 0, n, v->layout.table_factor);
    mt_op_add_rows(v->dev, v->view, v->table, v->table_index, v->table_factor, taps, n);
}

/* The first pass: pixels become the residual stream, with learned positions added. */
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
    for (size_t i = 0; v->summary && i < n; i += v->cell)
        if (mt_vision_layout_is_summary(&v->layout, v->cursor.row + i))
            mt_op_copy_row(v->dev, v->view, i, v->summary, 0);
    if (s->layered)
        mt_op_layer_norm(v->dev, v->view, v->view, n, v->first_norm, v->first_norm_bias, s->layer_eps);
}

/* Angles of the slice's rows, which are the same in all layers. */
static void make_angles(mt_vision *v, size_t n)
{
    if (v->turns == n && v->turn_row == v->cursor.row && v->turn_shrink == v->layout.shrink)
        return;
    mt_op_rope_table(v->dev, v->rope, v->inv_freq, v->axis, 1);
    v->turns = n;
    v->turn_row = v->cursor.row;
    v->turn_shrink = v->layout.shrink;
}

/* Norms the heads of x where w is given, by head or all together, and turns them. */
static void turn(mt_vision *v, mt_tensor *x, size_t n, const mt_tensor *w)
{
    const mt_vision_spec *s = v->spec;
    if (w && s->row_eps > 0) {
        mt_op_norm(v->dev, x, x, n, w, s->row_eps, 0);
        w = NULL;
    }
    if (v->rope)
        make_angles(v, n);
    if (v->rope || w)
        mt_op_heads(v->dev, x, x, n, s->head_dim, w, s->eps, 0, v->rope, false);
}

static void cut(mt_vision *v, mt_tensor *x, size_t n, const float between[2])
{
    if (v->spec->clipped && (isfinite(between[0]) || isfinite(between[1])))
        mt_op_adjust(v->dev, x, n, NULL, NULL, between[0], between[1]);
}

/* y = a product of x; input and result are clamped where the tower is clipped. Overwrites x with the clamped input. */
static void product(mt_vision *v, const mt_tower_layer *l, mt_tower_product which, mt_tensor *y, mt_tensor *x, size_t n)
{
    cut(v, x, n, l->clip[which].in);
    mt_op_matmul(v->dev, &y, (const mt_weight *[]){l->product[which]}, 1, x, n);
    cut(v, y, n, l->clip[which].out);
}

/* `count` products of the normed stream. Where they clamp their input, the norm is computed again for each. */
static void products(mt_vision *v, const mt_tower_layer *l, mt_tower_product first, size_t count, mt_tensor *const *y,
                     const mt_tensor *w, const mt_tensor *bias, size_t n)
{
    if (!v->spec->clipped) {
        mt_tower_norm_rows(v, v->h, v->view, n, w, bias);
        mt_op_matmul(v->dev, y, (const mt_weight *const *)&l->product[first], count, v->h, n);
        mt_op_spend(v->dev, v->h);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        mt_tower_norm_rows(v, v->h, v->view, n, w, bias);
        product(v, l, (mt_tower_product)(first + i), y[i], v->h, n);
    }
}

/* x += y, which is normed or scaled first where the tower has it so. */
static void grow(mt_vision *v, const mt_tensor *post, const mt_tensor *scale, size_t n)
{
    if (post)
        mt_op_norm(v->dev, v->y, v->y, n, post, v->spec->eps, 0);
    if (scale)
        mt_op_adjust(v->dev, v->y, n, NULL, scale, -INFINITY, INFINITY);
    mt_op_add(v->dev, v->view, v->y, n);
}

/* Keys and values of a slice, and queries of one that has all rows: the stream is normed once for both. */
static void keys(mt_vision *v, const mt_tower_layer *l, size_t n)
{
    const mt_vision_spec *s = v->spec;
    mt_tensor *y[] = {v->q, v->k, v->v};
    v->whole = n == v->cursor.rows && !s->clipped;
    products(v, l, v->whole ? MT_TOWER_Q : MT_TOWER_K, v->whole ? 3 : 2, v->whole ? y : y + 1, l->norm1, l->norm1_bias,
             n);
    if (v->whole)
        turn(v, v->q, n, l->q_norm);
    turn(v, v->k, n, l->k_norm);
    if (v->v_norm)
        mt_op_heads(v->dev, v->v, v->v, n, s->head_dim, v->v_norm, s->eps, 0, NULL, false);
    mt_op_kv_write(v->dev, v->kv, 0, v->k, v->v);
    mt_op_spend(v->dev, v->k);
}

static void mlp(mt_vision *v, const mt_tower_layer *l, size_t n)
{
    if (l->product[MT_TOWER_GATE]) {
        products(v, l, MT_TOWER_GATE, 2, (mt_tensor *[]){v->gate, v->up}, l->norm2, l->norm2_bias, n);
        mt_op_glu(v->dev, v->up, v->gate, v->up, n, (mt_glu){.act = v->spec->activation});
    } else {
        products(v, l, MT_TOWER_UP, 1, &v->up, l->norm2, l->norm2_bias, n);
        mt_op_act(v->dev, v->up, n, v->spec->activation);
    }
    product(v, l, MT_TOWER_DOWN, v->y, v->up, n);
    mt_op_spend(v->dev, v->up);
    grow(v, l->post2, l->scale2, n);
}

static void attend(mt_vision *v, const mt_tower_layer *l, size_t n)
{
    const mt_vision_spec *s = v->spec;
    if (!v->whole) {
        products(v, l, MT_TOWER_Q, 1, &v->q, l->norm1, l->norm1_bias, n);
        turn(v, v->q, n, l->q_norm);
    }
    mt_tensor_aim(v->dev, v->asked, v->q, v->whole ? v->cursor.row : 0, n);
    mt_op_attention(v->dev, v->attended, v->asked, v->kv, 0,
                    (mt_attention){.scale = s->head_norms ? 1 : 1.0f / sqrtf((float)s->head_dim)});
    product(v, l, MT_TOWER_O, v->y, v->attended, n);
    grow(v, l->post1, l->scale1, n);
}

static size_t tap_of(const mt_vision_spec *spec, size_t at)
{
    size_t i = 0;
    while (i < spec->tap_count && spec->taps[i] != at)
        i++;
    return i;
}

/* Runs the present pass over the next n rows. */
static void run_slice(mt_cursor *c, size_t n)
{
    mt_vision *v = (mt_vision *)c;
    mt_batch batch;
    const bool near = c->pass == PASS_NEAR_KEYS || c->pass == PASS_NEAR;
    const mt_tower_layer *l = near ? &v->near : &v->layers[c->layer];
    mt_tensor_aim(v->dev, v->view, v->x, c->row, n);
    if (near || c->pass == PASS_KEYS || c->pass == PASS_REST) {
        v->layout.shrink = shrink(v);
        v->layout.near = near;
        mt_vision_layout_batch(&v->layout, c->row, n, c->layer, &batch);
        mt_step_begin(v->dev, &batch);
    }
    switch (c->pass) {
    case PASS_EMBED: embed(v, n); break;
    case PASS_KEYS:
    case PASS_NEAR_KEYS: keys(v, l, n); break;
    case PASS_REST:
        attend(v, l, n);
        mlp(v, l, n);
        break;
    case PASS_TAP: mt_tower_tap_tokens(v, tap_of(v->spec, c->layer), n); break;
    case PASS_NEAR:
        attend(v, l, n);
        mt_tower_squeeze(v, n);
        break;
    default: mt_tower_tokens(v, n);
    }
}

/* ---- the cursor ---- */

static void next_layer(mt_cursor *c, size_t layers)
{
    const bool last = c->layer + 1 == layers;
    c->pass = last ? PASS_MERGE : PASS_KEYS;
    c->layer += !last;
}

/* Goes on to the next pass or layer. */
static bool next_pass(mt_cursor *c)
{
    const mt_vision_spec *spec = ((const mt_vision *)c)->spec;
    switch (c->pass) {
    case PASS_MERGE: return false;
    case PASS_EMBED: c->pass = spec->layers ? PASS_KEYS : PASS_MERGE; break;
    case PASS_KEYS:
    case PASS_NEAR_KEYS: c->pass++; break;
    case PASS_NEAR:
        c->rows /= MT_SQUEEZED;
        next_layer(c, spec->layers);
        break;
    default:
        if (c->pass == PASS_REST && tap_of(spec, c->layer) < spec->tap_count)
            c->pass = PASS_TAP;
        else if (spec->squeezed && c->layer == spec->squeeze)
            c->pass = PASS_NEAR_KEYS;
        else
            next_layer(c, spec->layers);
    }
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
    v->turns = 0;
    mt_cursor_begin(c, v->layout.rows);
}

mt_tower mt_vision_tower(mt_vision *v)
{
    return (mt_tower){.cursor = &v->cursor, .width = mt_vision_width(v->spec), .fits = fits, .begin = begin};
}
