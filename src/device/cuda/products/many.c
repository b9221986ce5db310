/* How products of many rows are divided for codes_many.cu, codes_many_hopper.cu and bf16.cu. */
#include "device/cuda/cuda.h"

bool mt_cuda_many_can(const mt_weight *w)
{
    const uint32_t group = w->d.group;
    return w->class == MT_CLASS_Q   ? group == 32 || group == 64 || group == 128
           : w->class == MT_CLASS_B ? w->d.kind != MT_CUDA_PLAIN
                                    : false;
}

/* What a block of a kernel needs; beside: blocks on a multiprocessor. */
typedef struct needs {
    size_t threads, shared, beside;
} needs;

/* Bytes of a step are those of stage and half_stage in the kernels' files. */
static needs needs_of(const mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_weight *w)
{
    const size_t each = w->group ? 128 / w->group : 0;
    switch (kernel) {
    case MT_K_matmul_w4_g64_hopper_rows65:
    case MT_K_matmul_w4_g128_hopper_rows65: return (needs){MT_CUDA_BROAD_THREADS, MT_CUDA_BROAD_SHARED(each), 1};
    case MT_K_matmul_bf16_hopper_rows65:
        return (needs){384, (size_t)MT_CUDA_WIDE_STAGES * 2 * MT_CUDA_MANY * 128 + 1024, 1};
    case MT_K_matmul_bf16_rows65: return (needs){128, (size_t)MT_CUDA_HALF_STAGES * (MT_CUDA_MANY * 128 + 8 * 2048), 2};
    case MT_K_matmul_fp8_rows65: return (needs){256, (size_t)MT_CUDA_HALF_STAGES * (MT_CUDA_MANY * 128 + 8 * 1024), 1};
    default:
        return (needs){256,
                       (size_t)MT_CUDA_MANY_STAGES(dev->code) *
                           (MT_CUDA_MANY * (128 + 16 + each * 4) +
                            8 * ((w->kind == MT_CUDA_CODES4 ? 1024u : 2048u) + each * 16 * 8)),
                       1};
    }
}

static void launch(mt_device *dev, mt_cuda_kernel kernel, mt_cuda_many p, size_t rows)
{
    const needs by = needs_of(dev, kernel, &p.w[0]);
    const size_t places = by.beside * (size_t)dev->processors, tiles = p.first[p.count] * rows;
    p.parts = dev->parts;
    p.counts = dev->counts;
    mt_cuda_launch(dev, kernel, tiles < places ? tiles : places, 1, 1, by.threads, by.shared, &p);
}

/* Tiles of columns, of which none has those of two weights. */
static void divide(mt_cuda_many *p)
{
    for (size_t i = 0; i < p->count; i++)
        p->first[i + 1] = p->first[i] + (p->w[i].n + MT_CUDA_MANY - 1) / MT_CUDA_MANY;
}

/* Two blocks for each two tiles of columns (bf16_many_hopper.cu). */
static void launch_pairs(mt_device *dev, const mt_cuda_many *p)
{
    const size_t pairs = (p->first[p->count] + 1) / 2, places = (size_t)dev->processors / 2;
    const size_t tiles = (p->m + MT_CUDA_PAIR - 1) / MT_CUDA_PAIR * pairs;
    mt_cuda_launch(dev, MT_K_matmul_bf16_pairs_rows65, 2 * (tiles < places ? tiles : places), 1, 1,
                   MT_CUDA_PAIR_THREADS, MT_CUDA_PAIR_STAGES * MT_CUDA_PAIR_STAGE + 1024, p);
}

bool mt_cuda_list_many(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *from)
{
    mt_cuda_many p = {.from = dev->packed, .m = (uint32_t)from->m, .count = (uint32_t)from->count};
    for (size_t i = 0; i < from->count; i++) {
        p.w[i] = from->w[i]->d;
        p.y[i] = from->y[i]->m;
    }
    divide(&p);
    if (kernel == MT_K_matmul_bf16_hopper_rows65 && dev->ways.pair)
        launch_pairs(dev, &p);
    else
        launch(dev, kernel, p, (from->m + MT_CUDA_MANY - 1) / MT_CUDA_MANY);
    return true;
}

void mt_cuda_many_experts(mt_device *dev, mt_cuda_kernel kernel, mt_cuda_mat y, const mt_weight *w,
                          mt_cuda_shares shares, size_t most)
{
    mt_cuda_many p = {.w = {w->d}, .y = {y}, .from = dev->packed, .shares = shares, .m = dev->packed.rows, .count = 1};
    divide(&p);
    launch(dev, kernel, p, most);
}
