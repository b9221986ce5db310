/* Makes tokens of patches, behind a tower's last layer and behind tapped layers (mt_merge in vision.h); and squeezes
   four patches into one row in the middle of some towers. */
#include <math.h>

#include "base/alloc.h"
#include "models/vision_inside.h"

mt_weight *mt_tower_weight(mt_set *set, const mt_mat *mat, const float *bias)
{
    return mat->n > 0 ? mt_weight_new(set, mat, bias, false) : NULL;
}

mt_tensor *mt_tower_plain_norm(mt_set *set, size_t n)
{
    float *ones = mt_alloc_array(n, sizeof(*ones));
    for (size_t i = 0; i < n; i++)
        ones[i] = 1;
    mt_tensor *t = mt_tensor_of(set, ones, 1, n);
    mt_free(ones);
    return t;
}

void mt_tower_merger_load(mt_vision *v, mt_tower_merger *m, const mt_merger_weights *w, size_t norm)
{
    m->norm = w->norm ? mt_tensor_of(v->set, w->norm, 1, norm) : mt_tower_plain_norm(v->set, norm);
    m->norm_bias = mt_tensor_of(v->set, w->norm_bias, 1, norm);
    const bool gated = v->spec->merge_kind == MT_MERGE_GATED;
    const size_t joined = gated ? v->spec->out : v->joint * v->spec->hidden;
    m->joined_norm = mt_tensor_of(v->set, w->joined_norm, 1, joined);
    m->joined_norm_bias = mt_tensor_of(v->set, w->joined_norm_bias, 1, joined);
    m->join = mt_tower_weight(v->set, &w->join, w->join_bias);
    m->proj = mt_tower_weight(v->set, &w->proj, NULL);
    m->gate = mt_tower_weight(v->set, &w->gate, NULL);
    m->standard_bias = mt_tensor_of(v->set, w->standard_bias, 1, norm);
    m->standard_scale = mt_tensor_of(v->set, w->standard_scale, 1, norm);
    m->up = mt_tower_weight(v->set, &w->up, w->up_bias);
    m->down = mt_tower_weight(v->set, &w->down, w->down_bias);
}

/* Width of the merger's MLP. */
static size_t middle(const mt_vision_spec *s)
{
    if (s->merge_kind == MT_MERGE_INTERLEAVED)
        return s->out;
    return s->middle ? s->middle : (size_t)s->merge * s->merge * s->hidden;
}

static bool has_means(const mt_vision_spec *s)
{
    return s->merge_kind == MT_MERGE_MEAN || s->merge_kind == MT_MERGE_PLAIN;
}

void mt_tower_norm_rows(mt_vision *v, mt_tensor *y, const mt_tensor *x, size_t n, const mt_tensor *w,
                        const mt_tensor *bias)
{
    if (bias)
        mt_op_layer_norm(v->dev, y, x, n, w, bias, v->spec->eps);
    else
        mt_op_norm(v->dev, y, x, n, w, v->spec->eps, 0);
}

static void new_squeeze_tensors(mt_vision *v, size_t squares)
{
    const mt_vision_spec *s = v->spec;
    v->square = mt_tensor_new(v->set, squares, (size_t)MT_SQUEEZED * s->hidden);
    v->square_middle = mt_tensor_new(v->set, squares, (size_t)MT_SQUEEZED * s->ffn);
    v->square_out = mt_tensor_new(v->set, squares, s->hidden);
    v->mean = mt_tensor_new(v->set, squares, s->hidden);
    v->square_to = mt_index_new(v->set, squares);
}

void mt_tower_merger_tensors(mt_vision *v, size_t rows)
{
    const mt_vision_spec *s = v->spec;
    mt_set *set = v->set;
    const size_t tokens = rows / v->joint;
    v->joined = mt_tensor_new(set, tokens, has_means(s) ? s->hidden : v->joint * s->hidden);
    if (s->merge_kind == MT_MERGE_INTERLEAVED)
        v->one = mt_tensor_new(set, tokens, s->hidden);
    if (s->merge_kind == MT_MERGE_GATED) {
        v->one = mt_tensor_new(set, tokens, s->out);
        v->opened = mt_tensor_new(set, tokens, middle(s));
    }
    if (!has_means(s))
        v->middle = mt_tensor_new(set, tokens, middle(s));
    v->out = mt_tensor_new(set, tokens, s->out);
    v->to = mt_index_new(set, tokens);
    if (s->squeezed)
        new_squeeze_tensors(v, rows / MT_SQUEEZED);
}

double mt_tower_merger_cost(const mt_vision *v)
{
    const mt_vision_spec *s = v->spec;
    const double hidden = s->hidden, joint = (double)v->joint, wide = joint * hidden;
    switch (s->merge_kind) {
    case MT_MERGE_MEAN:
    case MT_MERGE_PLAIN: return hidden * s->out / joint;
    case MT_MERGE_INTERLEAVED: return (wide * hidden + hidden * s->out + (double)s->out * s->out) / joint;
    case MT_MERGE_GATED: return s->out * (wide + s->out + 3.0 * (double)middle(s)) / joint;
    default: return (double)middle(s) * (wide + s->out) / joint;
    }
}

/* Earlier rows are not read again, so that the results may overwrite them. */
void mt_tower_squeeze(mt_vision *v, size_t n)
{
    const mt_tower_merger *m = &v->squeeze;
    const size_t squares = n / MT_SQUEEZED;
    mt_op_join(v->dev, v->square, v->view, MT_SQUEEZED, squares, false);
    mt_op_mean(v->dev, v->mean, v->view, MT_SQUEEZED, squares);
    mt_op_layer_norm(v->dev, v->square, v->square, squares, m->joined_norm, m->joined_norm_bias, v->spec->eps);
    mt_op_matmul(v->dev, &v->square_middle, (const mt_weight *[]){m->up}, 1, v->square, squares);
    mt_op_act(v->dev, v->square_middle, squares, MT_ACT_GELU_TANH);
    mt_op_matmul(v->dev, &v->square_out, (const mt_weight *[]){m->down}, 1, v->square_middle, squares);
    mt_op_add(v->dev, v->mean, v->square_out, squares);
    for (size_t i = 0; i < squares; i++)
        v->layout.to[i] = (uint32_t)(v->cursor.row / MT_SQUEEZED + i);
    mt_index_write(v->dev, v->square_to, v->layout.to, squares);
    mt_op_scatter(v->dev, v->x, v->square_to, 0, v->mean, squares);
}

/* Makes tokens of n rows and writes them to columns `offset` and following of the job's features. */
static void write_tokens(mt_vision *v, size_t n, size_t offset)
{
    const size_t tokens = n / v->joint;
    for (size_t i = 0; i < tokens; i++)
        v->layout.to[i] = mt_vision_layout_token(&v->layout, v->cursor.row / v->joint + i);
    mt_index_write(v->dev, v->to, v->layout.to, tokens);
    mt_op_scatter(v->dev, v->features, v->to, offset, v->out, tokens);
}

static void merge(mt_vision *v, const mt_tower_merger *m, size_t n, size_t offset, bool joined_norm)
{
    const size_t tokens = n / v->joint;
    if (joined_norm) {
        mt_op_join(v->dev, v->joined, v->view, v->joint, tokens, false);
        mt_tower_norm_rows(v, v->joined, v->joined, tokens, m->norm, m->norm_bias);
    } else {
        if (!v->spec->merge_bare)
            mt_tower_norm_rows(v, v->h, v->view, n, v->norm ? v->norm : m->norm, v->norm ? v->norm_bias : m->norm_bias);
        if (v->norm) /* the tower's own norm, then the merger's */
            mt_op_layer_norm(v->dev, v->h, v->h, n, m->norm, m->norm_bias, v->spec->merge_eps);
        mt_op_join(v->dev, v->joined, v->spec->merge_bare ? v->view : v->h, v->joint, tokens, false);
        if (m->joined_norm)
            mt_op_layer_norm(v->dev, v->joined, v->joined, tokens, m->joined_norm, m->joined_norm_bias,
                             v->spec->merge_eps);
    }
    if (m->up) {
        mt_op_matmul(v->dev, &v->middle, (const mt_weight *[]){m->up}, 1, v->joined, tokens);
        mt_op_spend(v->dev, v->joined);
        mt_op_act(v->dev, v->middle, tokens, v->spec->merge_activation);
    }
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, m->up ? v->middle : v->joined, tokens);
    mt_op_spend(v->dev, m->up ? v->middle : v->joined);
    write_tokens(v, n, offset);
}

static void merge_interleaved(mt_vision *v, size_t n)
{
    const mt_tower_merger *m = &v->merger;
    const size_t tokens = n / v->joint;
    mt_op_norm(v->dev, v->h, v->view, n, m->norm, v->spec->merge_eps, 0);
    mt_op_join(v->dev, v->joined, v->h, v->joint, tokens, true);
    mt_op_matmul(v->dev, &v->one, (const mt_weight *[]){m->join}, 1, v->joined, tokens);
    mt_op_matmul(v->dev, &v->middle, (const mt_weight *[]){m->up}, 1, v->one, tokens);
    mt_op_act(v->dev, v->middle, tokens, v->spec->merge_activation);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, v->middle, tokens);
    write_tokens(v, n, 0);
}

static void merge_gated(mt_vision *v, size_t n)
{
    const mt_tower_merger *m = &v->merger;
    const size_t tokens = n / v->joint;
    mt_tower_norm_rows(v, v->h, v->view, n, m->norm, m->norm_bias);
    mt_op_join(v->dev, v->joined, v->h, v->joint, tokens, true);
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
    const size_t tokens = n / v->joint;
    mt_op_layer_norm(v->dev, v->h, v->view, n, v->norm, v->norm_bias, v->spec->eps);
    mt_op_mean(v->dev, v->joined, v->h, v->joint, tokens);
    mt_op_norm(v->dev, v->joined, v->joined, tokens, v->merger.norm, v->spec->eps, 1);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){v->merger.down}, 1, v->joined, tokens);
    write_tokens(v, n, 0);
}

static void pool_plain(mt_vision *v, size_t n)
{
    const mt_tower_merger *m = &v->merger;
    const size_t tokens = n / v->joint;
    mt_op_mean(v->dev, v->joined, v->view, v->joint, tokens);
    if (v->spec->merge_scale != 1)
        mt_op_scale(v->dev, v->joined, tokens, v->spec->merge_scale);
    if (m->standard_scale)
        mt_op_adjust(v->dev, v->joined, tokens, m->standard_bias, m->standard_scale, -INFINITY, INFINITY);
    mt_op_norm(v->dev, v->joined, v->joined, tokens, m->norm, v->spec->eps, 0);
    mt_op_matmul(v->dev, &v->out, (const mt_weight *[]){m->down}, 1, v->joined, tokens);
    write_tokens(v, n, 0);
}

void mt_tower_tap_tokens(mt_vision *v, size_t tap, size_t n)
{
    merge(v, &v->taps[tap], n, (1 + tap) * v->spec->out, true);
}

void mt_tower_tokens(mt_vision *v, size_t n)
{
    switch (v->spec->merge_kind) {
    case MT_MERGE_MLP: merge(v, &v->merger, n, 0, false); break;
    case MT_MERGE_MEAN: pool(v, n); break;
    case MT_MERGE_PLAIN: pool_plain(v, n); break;
    case MT_MERGE_INTERLEAVED: merge_interleaved(v, n); break;
    case MT_MERGE_GATED: merge_gated(v, n); break;
    }
}
