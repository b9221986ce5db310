/* Runs recurrent layers (mixer.h). GatedDeltaNet has its projections in one matrix by key head (Qwen3-Next) or in
   several (Qwen3.5); only the columns where their results are differ. Mamba2 has one projection to gates, values
   (x), keys (B), queries (C) and time steps. A short convolution (LFM2) has one projection to three parts: part 1
   times part 3 goes through the convolution, the result times part 2 through the output projection. */
#include "models/mixer.h"

#include <math.h>

#include "base/alloc.h"
#include "kernels/kernels.h"

/* The weights of a recurrent layer on the device. */
typedef struct layer {
    mt_weight *qkv, *z, *b, *a, *out; /* z and a are NULL where they are in qkv and b */
    mt_weight *k, *v;                 /* of a rank whose qkv is not one matrix: qkv is q then; else NULL */
    mt_tensor *conv, *rate, *bias, *norm, *skip;
    mt_tensor **norms;    /* of Mamba2: its parts, one a group */
    mt_weight *conv_bias; /* one row; NULL: none */
} layer;

struct mt_mixer {
    mt_device *dev;
    mt_set *set;
    mt_state_shape shape;
    float eps;
    layer *layers;
    mt_states *state;
    /* values of one step, [rows, ...] */
    mt_tensor *qkv, *z, *b, *a;
    mt_tensor *mixed, *gates;
    mt_tensor *third[3]; /* columns of `qkv` for q, k and v, where three products write them */
    mt_shared y;
    bool idle; /* other ranks have all heads */
    mt_columns in_qkv[3], in_z, in_b, in_a;
    /* of a short convolution only */
    mt_tensor *part[3];  /* the three parts of qkv */
    mt_index *first_row; /* zeros: the row of conv_bias that every row gets */
    /* of Mamba2 only */
    mt_mamba_spec mamba;
    mt_tensor *values, **group; /* x behind the convolution, in `mixed`; the groups' columns of y */
    mt_tensor *scaled[4];       /* x, B, C as projected */
};

/* Sets which columns hold q, k, v, z, b and a; together: by key head, each followed by what its value heads have. */
static void place_columns(mt_mixer *m, bool together)
{
    const mt_state_shape *s = &m->shape;
    const size_t keys = s->key_heads * s->key_dim, share = s->value_heads / s->key_heads, values = share * s->value_dim;
    if (together) {
        const size_t step = 2 * s->key_dim + 2 * values;
        m->in_qkv[0] = (mt_columns){m->qkv, 0, step};
        m->in_qkv[1] = (mt_columns){m->qkv, s->key_dim, step};
        m->in_qkv[2] = (mt_columns){m->qkv, 2 * s->key_dim, step};
        m->in_z = (mt_columns){m->qkv, 2 * s->key_dim + values, step};
        m->in_b = (mt_columns){m->b, 0, 2 * share};
        m->in_a = (mt_columns){m->b, share, 2 * share};
        return;
    }
    m->in_qkv[0] = (mt_columns){m->qkv, 0, s->key_dim};
    m->in_qkv[1] = (mt_columns){m->qkv, keys, s->key_dim};
    m->in_qkv[2] = (mt_columns){m->qkv, 2 * keys, values};
    m->in_z = (mt_columns){m->z, 0, values};
    m->in_b = (mt_columns){m->b, 0, share};
    m->in_a = (mt_columns){m->a, 0, share};
}

static bool is_short(const mt_mixer *m)
{
    return m->shape.key_dim == 0;
}

static void new_short(mt_mixer *m, size_t rows)
{
    const size_t n = m->shape.value_dim;
    m->qkv = mt_tensor_new(m->set, rows, 3 * n);
    for (size_t i = 0; i < 3; i++)
        m->part[i] = mt_tensor_part(m->set, m->qkv, 0, rows, i * n, n);
    for (size_t i = 0; i < 3; i++) /* it has no keys */
        m->in_qkv[i] = (mt_columns){m->part[0], 0, i < 2 ? 0 : n};
    m->gates = mt_tensor_new(m->set, rows, 3 * m->shape.value_heads); /* not computed, but memos store it */
    m->first_row = mt_index_new(m->set, rows);
}

static void new_delta(mt_mixer *m, size_t rows, bool together)
{
    const mt_state_shape *s = &m->shape;
    const size_t keys = 2 * s->key_heads * s->key_dim, values = s->value_heads * s->value_dim;
    m->qkv = mt_tensor_new(m->set, rows, keys + values + (together ? values : 0));
    m->b = mt_tensor_new(m->set, rows, (together ? 2 : 1) * s->value_heads);
    if (!together) {
        m->z = mt_tensor_new(m->set, rows, values);
        m->a = mt_tensor_new(m->set, rows, s->value_heads);
    }
    m->mixed = mt_tensor_new(m->set, rows, keys + values);
    m->gates = mt_tensor_new(m->set, rows, 3 * s->value_heads);
    place_columns(m, together);
}

/* What is projected lies in qkv as [x | B | C]; `mixed` has [C | B | x], as queries, keys and values. */
static void new_mamba(mt_mixer *m, size_t rows)
{
    const mt_state_shape *s = &m->shape;
    const size_t keys = s->key_heads * s->key_dim, values = s->value_heads * s->value_dim;
    const size_t share = s->value_heads / s->key_heads;
    m->qkv = mt_tensor_new(m->set, rows, 2 * keys + values);
    m->z = mt_tensor_new(m->set, rows, values);
    m->a = mt_tensor_new(m->set, rows, s->value_heads);
    m->mixed = mt_tensor_new(m->set, rows, 2 * keys + values);
    m->gates = mt_tensor_new(m->set, rows, 3 * s->value_heads);
    m->in_qkv[0] = (mt_columns){m->qkv, values + keys, s->key_dim};
    m->in_qkv[1] = (mt_columns){m->qkv, values, s->key_dim};
    m->in_qkv[2] = (mt_columns){m->qkv, 0, share * s->value_dim};
    m->values = mt_tensor_part(m->set, m->mixed, 0, rows, 2 * keys, values);
    m->scaled[0] = m->z;
    m->scaled[1] = mt_tensor_part(m->set, m->qkv, 0, rows, 0, values);
    m->scaled[2] = mt_tensor_part(m->set, m->qkv, 0, rows, values, keys);
    m->scaled[3] = mt_tensor_part(m->set, m->qkv, 0, rows, values + keys, keys);
    m->group = mt_alloc_array(m->mamba.groups, sizeof(*m->group));
    for (size_t g = 0; g < m->mamba.groups; g++)
        m->group[g] =
            mt_tensor_part(m->set, m->y.own, 0, rows, g * (values / m->mamba.groups), values / m->mamba.groups);
}

/* Makes the parts of qkv that three products write. */
static void new_thirds(mt_mixer *m, size_t rows)
{
    const mt_state_shape *s = &m->shape;
    const size_t keys = s->key_heads * s->key_dim, values = s->value_heads * s->value_dim;
    const size_t width[3] = {is_short(m) ? values : keys, is_short(m) ? values : keys, values};
    for (size_t i = 0, at = 0; i < 3; at += width[i++])
        m->third[i] = mt_tensor_part(m->set, m->qkv, 0, rows, at, width[i]);
}

mt_mixer *mt_mixer_new(mt_set *set, mt_device *dev, const mt_model_spec *spec, const mt_layer_weights *layers,
                       const mt_model_params *params)
{
    mt_mixer *m = mt_alloc(sizeof(*m));
    const mt_state_shape *s = &spec->state;
    const mt_layer_weights *w = layers;
    for (size_t i = 0; spec->layer[i].kind != MT_LAYER_RECURRENT && !spec->layer[i].paired; i++)
        w = &layers[i + 1];
    m->dev = dev;
    m->set = set;
    m->shape = *s;
    m->mamba = spec->mamba;
    m->eps = spec->eps;
    m->layers = mt_alloc_array(s->layers, sizeof(*m->layers));
    m->idle = s->value_heads * s->value_dim == 0;
    m->y = mt_shared_new(set, dev, NULL, params->rows, w->mix_out.k, spec->state_slices);
    if (m->idle)
        return m;
    m->state = mt_state_new(set, s, params->memos);
    if (s->plain) {
        new_mamba(m, params->rows);
        return m;
    }
    if (is_short(m))
        new_short(m, params->rows);
    else
        new_delta(m, params->rows, w->mix_z.n == 0);
    new_thirds(m, params->rows);
    return m;
}

void mt_mixer_free(mt_mixer *m)
{
    if (!m)
        return;
    for (size_t i = 0; m->group && i < m->shape.layers; i++)
        mt_free(m->layers[i].norms);
    mt_free(m->group);
    mt_free(m->layers);
    mt_free(m);
}

/* The decay rates, exp(A_log): checkpoints have their logarithms. */
static mt_tensor *rate(mt_mixer *m, const float *log_rate, size_t n)
{
    float *rates = mt_alloc_array(n, sizeof(*rates));
    mt_host_kernels(mt_device_host(m->dev))->exp(rates, log_rate, n);
    mt_tensor *t = mt_tensor_of(m->set, rates, 1, n);
    mt_free(rates);
    return t;
}

static void load_delta(mt_mixer *m, layer *l, const mt_layer_weights *w)
{
    const mt_state_shape *s = &m->shape;
    mt_set *set = m->set;
    l->b = mt_weight_new(set, &w->mix_b, NULL, true); /* exact: these are small, and the gates act on states for long */
    if (m->z) {
        l->z = mt_weight_new(set, &w->mix_z, NULL, false);
        l->a = mt_weight_new(set, &w->mix_a, NULL, true);
    }
    l->rate = rate(m, w->mix_rate, s->value_heads);
    l->bias = mt_tensor_of(set, w->mix_bias, 1, s->value_heads);
    l->norm = mt_tensor_of(set, w->mix_norm, 1, s->value_dim);
}

static void load_mamba(mt_mixer *m, layer *l, const mt_layer_weights *w)
{
    const mt_state_shape *s = &m->shape;
    const size_t values = s->value_heads * s->value_dim, columns = 2 * s->key_heads * s->key_dim + values;
    const size_t each = values / m->mamba.groups;
    float *skip = mt_alloc_array(values, sizeof(*skip));
    for (size_t i = 0; i < values; i++)
        skip[i] = w->mix_skip[i / s->value_dim];
    l->z = mt_weight_new(m->set, &w->mix_z, w->mix_z_bias, false);
    l->a = mt_weight_new(m->set, &w->mix_a, w->mix_a_bias, true); /* exact: they act on states for long */
    l->conv = mt_tensor_of(m->set, w->mix_conv, s->taps + 1, columns);
    l->rate = rate(m, w->mix_rate, s->value_heads);
    l->bias = mt_tensor_of(m->set, w->mix_bias, 1, s->value_heads);
    l->skip = mt_tensor_of(m->set, skip, 1, values);
    l->norms = mt_alloc_array(m->mamba.groups, sizeof(*l->norms));
    for (size_t g = 0; w->mix_norm && g < m->mamba.groups; g++)
        l->norms[g] = mt_tensor_of(m->set, w->mix_norm + g * each, 1, each);
    mt_free(skip);
}

void mt_mixer_load(mt_mixer *m, size_t index, const mt_layer_weights *w)
{
    const mt_state_shape *s = &m->shape;
    const size_t columns = 2 * s->key_heads * s->key_dim + s->value_heads * s->value_dim;
    layer *l = &m->layers[index];
    const float *bias = w->mix_in_bias;
    l->out = mt_weight_new(m->set, &w->mix_out, w->mix_out_bias, false);
    if (m->idle)
        return;
    l->qkv = mt_weight_new(m->set, &w->mix_qkv, bias, false);
    if (s->plain) {
        load_mamba(m, l, w);
        return;
    }
    if (w->mix_k.n) {
        l->k = mt_weight_new(m->set, &w->mix_k, bias ? bias + w->mix_qkv.n : NULL, false);
        l->v = mt_weight_new(m->set, &w->mix_v, bias ? bias + w->mix_qkv.n + w->mix_k.n : NULL, false);
    }
    l->conv = mt_tensor_of(m->set, w->mix_conv, s->taps, columns);
    if (!is_short(m))
        load_delta(m, l, w);
    else if (w->mix_conv_bias)
        l->conv_bias = mt_weight_new(m->set,
                                     &(mt_mat){.format = MT_FORMAT_F32,
                                               .bits = 32,
                                               .n = 1,
                                               .k = columns,
                                               .w = (const uint8_t *)w->mix_conv_bias,
                                               .stride = columns * sizeof(float)},
                                     NULL, true);
}

bool mt_mixer_reserve(mt_mixer *m, size_t slots, mt_error *err)
{
    return m->idle || mt_state_reserve(m->set, m->state, slots, err);
}

mt_states *mt_mixer_state(mt_mixer *m)
{
    return m->state;
}

/* Computes qkv of h, and z where it has its own matrix. */
static void project(mt_mixer *m, const layer *l, const mt_tensor *h, size_t n)
{
    mt_tensor *y[4] = {l->k ? m->third[0] : m->qkv, m->third[1], m->third[2]};
    const mt_weight *w[4] = {l->qkv, l->k, l->v};
    size_t count = l->k ? 3 : 1;
    if (l->z) {
        y[count] = m->z;
        w[count++] = l->z;
    }
    mt_op_matmul(m->dev, y, w, count, h, n);
}

static void run_short(mt_mixer *m, size_t index, const mt_tensor *h, size_t n)
{
    static const mt_glu product = {.act = MT_ACT_NONE};
    const layer *l = &m->layers[index];
    mt_tensor *y = m->y.own;
    project(m, l, h, n);
    mt_op_glu(m->dev, m->part[0], m->part[0], m->part[2], n, product);
    mt_op_conv(m->dev, y, m->state, index, m->in_qkv, l->conv);
    mt_op_remember(m->dev, m->state, index, m->in_qkv, y, m->gates);
    if (l->conv_bias)
        mt_op_add_rows(m->dev, y, l->conv_bias, m->first_row, NULL, 1, n);
    mt_op_glu(m->dev, y, m->part[1], y, n, product);
}

static void run_delta(mt_mixer *m, size_t index, const mt_tensor *h, size_t n)
{
    const layer *l = &m->layers[index];
    const size_t heads = m->shape.key_heads;
    project(m, l, h, n);
    mt_op_matmul(m->dev, (mt_tensor *[]){m->b, m->a}, (const mt_weight *[]){l->b, l->a}, m->a ? 2 : 1, h, n);
    mt_op_conv(m->dev, m->mixed, m->state, index, m->in_qkv, l->conv);
    mt_op_gates(m->dev, m->gates, m->in_a, m->in_b, heads, l->rate, l->bias, n);
    mt_op_delta(m->dev, m->y.own, m->state, index, m->mixed, m->gates);
    mt_op_remember(m->dev, m->state, index, m->in_qkv, m->mixed, m->gates);
    mt_op_gated_norm(m->dev, m->y.own, m->in_z, heads, l->norm, m->eps, n);
}

static void norm_groups(mt_mixer *m, const layer *l, size_t n)
{
    for (size_t g = 0; m->mamba.norm && g < m->mamba.groups; g++)
        mt_op_norm(m->dev, m->group[g], m->group[g], n, l->norms[g], m->eps, 0);
}

static void scale_projected(mt_mixer *m, size_t n)
{
    const float *factor = m->mamba.factor;
    if (factor[0] == 0)
        return;
    for (size_t i = 0; i < MT_COUNT(m->scaled); i++)
        mt_op_scale(m->dev, m->scaled[i], n, factor[i]);
    mt_op_scale(m->dev, m->a, n, factor[4]);
}

static void run_mamba(mt_mixer *m, size_t index, const mt_tensor *h, size_t n)
{
    static const mt_glu gated = {.act = MT_ACT_SILU};
    const layer *l = &m->layers[index];
    mt_tensor *y = m->y.own;
    project(m, l, h, n);
    mt_op_matmul(m->dev, &m->a, (const mt_weight *[]){l->a}, 1, h, n);
    scale_projected(m, n);
    mt_op_conv(m->dev, m->mixed, m->state, index, m->in_qkv, l->conv);
    mt_op_time_steps(m->dev, m->gates, m->a, l->rate, l->bias, m->mamba.low, m->mamba.high, n);
    mt_op_delta(m->dev, y, m->state, index, m->mixed, m->gates);
    mt_op_remember(m->dev, m->state, index, m->in_qkv, m->mixed, m->gates);
    mt_op_adjust(m->dev, m->values, n, NULL, l->skip, -INFINITY, INFINITY);
    mt_op_add(m->dev, y, m->values, n);
    if (m->mamba.norm_first)
        norm_groups(m, l, n);
    mt_op_glu(m->dev, y, m->z, y, n, gated);
    if (!m->mamba.norm_first)
        norm_groups(m, l, n);
}

void mt_mixer_run(mt_mixer *m, size_t index, const mt_shared *y, const mt_tensor *h, size_t n)
{
    if (m->idle)
        ; /* other ranks compute it */
    else if (m->shape.plain)
        run_mamba(m, index, h, n);
    else if (is_short(m))
        run_short(m, index, h, n);
    else
        run_delta(m, index, h, n);
    mt_shared_unite(m->dev, &m->y, n);
    mt_shared_product(m->dev, y, m->layers[index].out, m->y.all, n);
    if (m->mamba.result != 0)
        mt_op_scale(m->dev, y->all, n, m->mamba.result);
}
