/* Latent attention on the host's side: which kernel runs, with which parameters, on how many blocks. */
#include "device/cuda/attention/latents.h"

#include <assert.h>

#include "device/cuda/cuda.h"

#define THREADS 256
#define SMALL 1024 /* bytes of shared memory of a block besides MT_CUDA_LATENT_SHARED, at most */

static mt_cuda_latents latents_of(const mt_kv *kv, const mt_cuda_attention *p)
{
    mt_cuda_latents l = {.p = *p, .latent = (uint32_t)kv->shape.latent};
    const mt_kv_parts parts = mt_rules_kv_parts(&kv->shape);
    for (size_t i = 0; i < MT_COUNT(l.stride) && kv->d.bits; i++)
        l.stride[i] = (uint32_t)parts.stride[i];
    l.second = kv->d.bits ? parts.second : 0;
    return l;
}

bool mt_cuda_latent_fits(const mt_device *dev, const mt_kv_shape *shape)
{
    const size_t second = mt_rules_kv_bits(shape->type) ? mt_rules_kv_parts(shape).stride[1] : 0;
    return shape->latent <= MT_LIMIT_HEAD_DIM &&
           MT_CUDA_LATENT_SHARED(mt_rules_kv_stride(shape), second) + SMALL <= (size_t)dev->shared;
}

void mt_cuda_latent_write(mt_device *dev, const mt_kv *kv, const mt_cuda_attention *p)
{
    const mt_cuda_latents l = latents_of(kv, p);
    if (kv->d.bits)
        mt_cuda_launch(dev, MT_K_latent_write_q, dev->step.rows, 1, 1, 64, (l.stride[0] + l.stride[1]) * sizeof(float),
                       &l);
    else
        mt_cuda_launch(dev, MT_K_latent_write, dev->step.rows, 1, 1, THREADS, 0, &l);
}

/* The shapes that have a kernel on tensor cores. Independent of the batch: from step to step only kernels may differ
   that give the same bits. */
typedef struct form {
    mt_cuda_kernel kernel;
    size_t head_dim, latent;
} form;

static const form *find_form(const mt_device *dev, const mt_kv *kv)
{
    static const form forms[] = {{MT_K_latent_512_64, 576, 512}, {MT_K_latent_256_64, 320, 256}};
    for (size_t i = 0; i < MT_COUNT(forms) && kv->shape.type == MT_KV_BF16; i++)
        if (forms[i].head_dim == kv->shape.head_dim && forms[i].latent == kv->shape.latent &&
            MT_CUDA_LATENT_TILE_SHARED(kv->d.head_stride) <= (uint32_t)dev->shared)
            return &forms[i];
    return NULL;
}

void mt_cuda_latent_attend(mt_device *dev, const mt_kv *kv, const mt_cuda_attention *p)
{
    const form *f = find_form(dev, kv);
    const uint32_t rows = f ? MT_CUDA_LATENT_TILE : MT_CUDA_LATENT_ROWS, stride = p->kv.head_stride;
    const uint32_t pieces = (p->heads + rows - 1) / rows, blocks = (uint32_t)dev->processors * (f ? 1 : 2) / pieces;
    mt_cuda_latents l = latents_of(kv, p);
    l.heads = p->heads < rows ? p->heads : rows;
    mt_cuda_attention_cut(dev, &l.p, rows / l.heads, blocks ? blocks : 1, l.latent, true);
    if (f)
        mt_cuda_launch(dev, f->kernel, l.p.tile_count, pieces, l.p.shares, 32 * MT_CUDA_LATENT_WARPS,
                       MT_CUDA_LATENT_TILE_SHARED(stride), &l);
    else
        mt_cuda_launch(dev, MT_K_latent_any, l.p.tile_count, pieces, l.p.shares, MT_CUDA_LATENT_THREADS,
                       MT_CUDA_LATENT_SHARED(stride, l.stride[1]), &l);
    if (l.p.shares > 1)
        mt_cuda_launch(dev, MT_K_latent_merge, (size_t)l.p.tile_count * l.p.tile, l.p.heads, 1,
                       mt_cuda_up(l.latent, 32), 0, &l);
}

void mt_cuda_op_turn_ends(mt_device *dev, mt_tensor *y, size_t y_dim, const mt_tensor *x, size_t x_dim, size_t count,
                          size_t m, const mt_tensor *table, bool pairs)
{
    mt_cuda_ends p = {.y = y->m,
                      .x = x->m,
                      .x_dim = (uint32_t)x_dim,
                      .y_dim = (uint32_t)y_dim,
                      .count = (uint32_t)count,
                      .pairs = pairs};
    if (table)
        p.table = table->m;
    mt_cuda_launch(dev, MT_K_turn_ends, m, 1, 1, THREADS, 0, &p);
}
