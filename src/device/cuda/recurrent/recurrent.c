/* Recurrent layers on the host's side: which kernel runs, with which parameters, on how many blocks. */
#include "device/cuda/cuda.h"
#include "device/cuda/recurrent/mamba.h"
#include "kernels/kernels.h"

#define THREADS 256
#define CONV_ROWS 8 /* rows of a block of the convolution, as in recurrent.cu */

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
    p.m = dev->step.rows <= MT_CUDA_FEW_ROWS ? 1 : CONV_ROWS; /* rows of a block of conv_heads and mamba_conv */
    const uint32_t dim = states->d.key_dim, keys = states->d.key_heads * dim;
    /* conv_heads needs blocks of THREADS columns that are whole heads of queries and keys, or only values */
    if (states->shape.plain)
        mt_cuda_launch(dev, MT_K_mamba_conv, (states->d.columns + THREADS - 1) / THREADS,
                       (dev->step.rows + p.m - 1) / p.m, 1, THREADS, 0, &p);
    else if (dim >= 16 && THREADS % dim == 0 && 2 * keys % THREADS == 0 && states->d.columns % THREADS == 0)
        mt_cuda_launch(dev, MT_K_conv_heads, states->d.columns / THREADS, (dev->step.rows + p.m - 1) / p.m, 1, THREADS,
                       0, &p);
    else
        mt_cuda_launch(dev, MT_K_conv, dev->step.rows, 1, 1, THREADS, 0, &p);
    mt_cuda_launch(dev, MT_K_conv_keep, dev->step.spans, (states->d.columns + THREADS - 1) / THREADS, 1, THREADS, 0,
                   &p);
}

void mt_cuda_op_gates(mt_device *dev, mt_tensor *gates, mt_columns a, mt_columns b, size_t key_heads,
                      const mt_tensor *rate, const mt_tensor *bias, size_t m)
{
    mt_cuda_recurrent p = recurrent(dev, NULL, 0, (const mt_columns[]){a, b}, 2);
    p.y = gates->m;
    p.rate = rate->m;
    p.w = bias->m; /* the kernel has no weights and reads it there */
    p.key_heads = (uint32_t)key_heads;
    mt_cuda_launch(dev, MT_K_gates, m, 1, 1, THREADS, 0, &p);
}

void mt_cuda_op_time_steps(mt_device *dev, mt_tensor *gates, const mt_tensor *x, const mt_tensor *rate,
                           const mt_tensor *bias, float low, float high, size_t m)
{
    const mt_cuda_time_steps p = {.y = gates->m, .x = x->m, .rate = rate->m, .bias = bias->m, .low = low, .high = high};
    mt_cuda_launch(dev, MT_K_time_steps, m, 1, 1, THREADS, 0, &p);
}

/* A block for 32 columns of a head of a span, a warp for some of its keys. */
static void recur_plain(mt_device *dev, const mt_cuda_recurrent *p)
{
    const bool wide = p->st.key_dim > MT_CUDA_MAMBA_WARPS * MT_CUDA_MAMBA_KEYS(false);
    const uint32_t keys = wide ? MT_CUDA_MAMBA_KEYS(true) : MT_CUDA_MAMBA_KEYS(false);
    const uint32_t warps = (p->st.key_dim + keys - 1) / keys;
    mt_cuda_launch(dev, wide ? MT_K_mamba_wide : MT_K_mamba, p->st.blocks, p->st.value_heads, dev->step.spans,
                   32 * warps, wide ? MT_CUDA_MAMBA_SHARED(true, warps) : MT_CUDA_MAMBA_SHARED(false, warps), p);
}

void mt_cuda_op_delta(mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_tensor *x,
                      const mt_tensor *gates)
{
    mt_cuda_recurrent p = recurrent(dev, states, layer, NULL, 0);
    p.y = y->m;
    p.x = x->m;
    p.gates = gates->m;
    if (states->shape.plain) {
        recur_plain(dev, &p);
        return;
    }
    const bool few = dev->step.rows < MT_CUDA_SPAN_FEW * dev->step.spans;
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

void mt_cuda_op_gated_norm(mt_device *dev, mt_tensor *x, mt_columns z, size_t key_heads, const mt_tensor *w, float eps,
                           size_t m)
{
    mt_cuda_recurrent p = recurrent(dev, NULL, 0, &z, 1);
    p.y = x->m;
    p.w = w->m;
    p.eps = eps;
    p.key_heads = (uint32_t)key_heads;
    const size_t heads = x->m.cols / w->m.cols; /* each has 16 threads */
    mt_cuda_launch(dev, MT_K_gated_norm, m, (heads + THREADS / 16 - 1) / (THREADS / 16), 1, THREADS, 0, &p);
}
