/* Recurrent layers on the host's side: which kernel runs, with which parameters, on how many blocks. */
#include "device/cuda/cuda.h"
#include "kernels/kernels.h"

#define THREADS 256
#define CONV_ROWS 8 /* rows of a block of the convolution, as in recurrent.cu */
#define FEW 8       /* spans with fewer rows than this, on average, take the recurrence for answers: see delta.cu */

static mt_cuda_cols columns(mt_columns c)
{
    return (mt_cuda_cols){.x = c.x->m, .base = (uint32_t)c.base, .step = (uint32_t)c.step};
}

static mt_cuda_recurrent recurrent(const mt_device *dev, const mt_states *st, size_t layer, const mt_columns *in,
                                   size_t count)
{
    mt_cuda_recurrent p = {.step = dev->step, .layer = (uint32_t)layer};
    if (st)
        p.st = st->d;
    for (size_t i = 0; i < count; i++)
        p.in[i] = columns(in[i]);
    return p;
}

void mt_cuda_op_conv(mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_columns in[3],
                     const mt_tensor *w)
{
    mt_cuda_recurrent p = recurrent(dev, states, layer, in, 3);
    p.y = y->m;
    p.w = w->m;
    p.m = dev->step.rows <= MT_CUDA_FEW_ROWS ? 1 : CONV_ROWS; /* rows of a block of conv_heads */
    const uint32_t dim = states->d.key_dim, keys = states->d.key_heads * dim;
    /* conv_heads needs blocks of THREADS columns that are whole heads of queries and keys, or only values */
    if (dim >= 16 && THREADS % dim == 0 && 2 * keys % THREADS == 0 && states->d.columns % THREADS == 0)
        mt_cuda_launch(dev, MT_K_conv_heads, states->d.columns / THREADS, (dev->step.rows + p.m - 1) / p.m, 1, THREADS,
                       0, &p);
    else
        mt_cuda_launch(dev, MT_K_conv, dev->step.rows, 1, 1, THREADS, 0, &p);
    mt_cuda_launch(dev, MT_K_conv_keep, dev->step.spans, (states->d.columns + THREADS - 1) / THREADS, 1, THREADS, 0,
                   &p);
}

static bool same_columns(const mt_cuda_cols *a, const mt_cuda_mat *y)
{
    return a->x.data == y->data && a->x.stride == y->stride && a->x.cols == y->cols;
}

/* The last three kernels in the list, if they are the small projections of few rows, which make a and b, and the
   convolution, become one with the gates; else false. */
static bool mix(mt_device *dev, const mt_cuda_recurrent *gates, size_t m)
{
    mt_cuda_kernel kernel[3];
    const mt_cuda_recurrent *keep = mt_cuda_listed(dev, 0, &kernel[0]), *conv = mt_cuda_listed(dev, 1, &kernel[1]);
    const mt_cuda_f32 *small = mt_cuda_listed(dev, 2, &kernel[2]);
    if (!keep || !conv || !small || kernel[0] != MT_K_conv_keep || kernel[1] != MT_K_conv_heads ||
        kernel[2] < MT_K_f32_1 || kernel[2] > MT_K_f32_4)
        return false;
    const mt_cuda_weight *w = &small->w[0];
    if (small->m != m || m != dev->step.rows || m >= FEW * dev->step.spans || conv->st.taps != 4 ||
        w->kind == MT_CUDA_PLAIN || w->k % MT_CUDA_STEP || w->group < 16 || small->x.data % 16 || small->x.stride % 4)
        return false;
    mt_cuda_mix p = {.conv = *conv, .in = {gates->in[0], gates->in[1]}, .bias = gates->w, .bits = small->bits};
    for (size_t i = 0; i < 2; i++) {
        uint32_t which = 0;
        while (which < small->count && !same_columns(&p.in[i], &small->y[which]))
            which++;
        if (which == small->count)
            return false;
        p.w[i] = small->w[which];
    }
    p.conv.x = small->x;
    p.conv.m = (uint32_t)m;
    p.conv.gates = gates->y;
    p.conv.rate = gates->rate;
    p.conv.key_heads = gates->key_heads;
    p.rows = m < MT_CUDA_MIX_ROWS ? (uint32_t)m : MT_CUDA_MIX_ROWS;
    const size_t shared = MT_CUDA_MIX_SHARED(p.rows, w->k, w->groups, p.bits, w->pairs == MT_SCALE_F32 ? 8u : 4u);
    if (shared + THREADS * sizeof(float) > (size_t)dev->shared)
        return false;
    const size_t heads = (p.conv.rate.cols + MT_CUDA_MIX_HEADS - 1) / MT_CUDA_MIX_HEADS;
    const size_t rows = (m + MT_CUDA_MIX_ROWS - 1) / MT_CUDA_MIX_ROWS;
    const size_t spans = dev->step.spans * (conv->st.columns / THREADS);
    for (size_t i = 0; i < 3; i++)
        mt_cuda_drop(dev);
    mt_cuda_launch(dev, MT_K_mix, heads * rows + spans, 1, 1, THREADS, shared, &p);
    return true;
}

void mt_cuda_op_gates(mt_device *dev, mt_tensor *gates, mt_columns a, mt_columns b, size_t key_heads,
                      const mt_tensor *rate, const mt_tensor *bias, size_t m)
{
    mt_cuda_recurrent p = recurrent(dev, NULL, 0, (const mt_columns[]){a, b}, 2);
    p.y = gates->m;
    p.rate = rate->m;
    p.w = bias->m; /* the kernel has no weights and reads it there */
    p.key_heads = (uint32_t)key_heads;
    if (!mix(dev, &p, m))
        mt_cuda_launch(dev, MT_K_gates, m, 1, 1, THREADS, 0, &p);
}

void mt_cuda_op_delta(mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_tensor *x,
                      const mt_tensor *gates)
{
    mt_cuda_recurrent p = recurrent(dev, states, layer, NULL, 0);
    p.y = y->m;
    p.x = x->m;
    p.gates = gates->m;
    const bool few = dev->step.rows < FEW * dev->step.spans;
    /* delta.cu is for heads of 128 keys; MT_K_delta takes any */
    const mt_cuda_kernel kernel = states->d.key_dim != 128 ? MT_K_delta : few ? MT_K_delta_few : MT_K_delta_many;
    mt_cuda_launch(dev, kernel, states->d.blocks, states->d.value_heads, dev->step.spans,
                   kernel == MT_K_delta_many ? MT_CUDA_DELTA_THREADS : MT_DELTA_COLUMNS,
                   kernel == MT_K_delta ? states->d.key_dim * MT_DELTA_COLUMNS * sizeof(float) : 0, &p);
}

void mt_cuda_op_remember(mt_device *dev, mt_states *states, size_t layer, const mt_columns in[3], const mt_tensor *x,
                         const mt_tensor *gates)
{
    mt_cuda_recurrent p = recurrent(dev, states, layer, in, 3);
    size_t guesses = 0;
    for (size_t i = 0; i < dev->batch->spans; i++)
        guesses += dev->batch->span[i].guesses;
    if (!guesses)
        return;
    p.x = x->m;
    p.gates = gates->m;
    mt_cuda_launch(dev, MT_K_remember, dev->step.spans, 1, 1, THREADS, 0, &p);
}

/* The last kernel in the list, if it is the delta rule of few rows and makes these, also norms them; else false. */
static bool norm_answers(mt_device *dev, const mt_cuda_recurrent *norm, size_t m)
{
    const mt_cuda_recurrent *last = mt_cuda_last(dev, MT_K_delta_few, MT_K_delta_few);
    if (!last || m != dev->step.rows || last->y.data != norm->y.data || last->y.cols != norm->y.cols ||
        last->st.value_dim != MT_CUDA_NORMED_COLUMNS || norm->w.cols != MT_CUDA_NORMED_COLUMNS)
        return false;
    const mt_cuda_normed p = {.delta = *last, .norm = *norm};
    mt_cuda_drop(dev);
    mt_cuda_launch(dev, MT_K_delta_normed, 1, p.delta.st.value_heads, dev->step.spans, MT_CUDA_NORMED_COLUMNS, 0, &p);
    return true;
}

bool mt_cuda_normed_pack(mt_device *dev, const mt_cuda_pack *pack)
{
    mt_cuda_normed *p = mt_cuda_last(dev, MT_K_delta_normed, MT_K_delta_normed);
    if (!p || p->pack.to.q || pack->index || pack->halves || p->norm.y.data != pack->x.data ||
        p->norm.y.cols != pack->k || pack->k % MT_CUDA_NORMED_COLUMNS || pack->m != dev->step.rows)
        return false;
    p->pack = *pack;
    return true;
}

void mt_cuda_op_gated_norm(mt_device *dev, mt_tensor *x, mt_columns z, size_t key_heads, const mt_tensor *w, float eps,
                           size_t m)
{
    mt_cuda_recurrent p = recurrent(dev, NULL, 0, &z, 1);
    p.y = x->m;
    p.w = w->m;
    p.eps = eps;
    p.key_heads = (uint32_t)key_heads;
    if (norm_answers(dev, &p, m))
        return;
    const size_t heads = x->m.cols / w->m.cols; /* each has 16 threads */
    mt_cuda_launch(dev, MT_K_gated_norm, m, (heads + THREADS / 16 - 1) / (THREADS / 16), 1, THREADS, 0, &p);
}
