/* How products of many rows are divided for codes_many.cu, codes_many_hopper.cu and bf16.cu. */
#include "device/cuda/cuda.h"

static bool alike(const mt_weight *a, const mt_weight *b)
{
    const mt_cuda_weight *p = &a->d, *q = &b->d;
    return a->class == b->class && p->kind == q->kind && p->format == q->format && p->group == q->group &&
           p->pairs == q->pairs && p->biased == q->biased && p->k == q->k && (a->mat.bits == 8) == (b->mat.bits == 8);
}

bool mt_cuda_many_can(const mt_weight *a, const mt_weight *b, size_t m)
{
    const mt_cuda_weight *w = &b->d;
    const bool codes = b->class == MT_CLASS_Q && (w->group == 32 || w->group == 64 || w->group == 128);
    const bool halves = b->class == MT_CLASS_B && w->kind != MT_CUDA_PLAIN;
    return m > MT_CUDA_FEW_ROWS && (codes || halves) && alike(a, b);
}

/* A kernel, and what a block of it needs; beside: blocks on a multiprocessor. */
typedef struct way {
    mt_cuda_kernel kernel;
    size_t threads, shared, beside;
} way;

static mt_cuda_kernel codes_kernel(const mt_cuda_weight *w)
{
    static const mt_cuda_kernel kernels[2][2][3] = {
        {{MT_K_many_4_32, MT_K_many_4_64, MT_K_many_4_128}, {MT_K_many_8_32, MT_K_many_8_64, MT_K_many_8_128}},
        {{MT_K_many_4_32_b, MT_K_many_4_64_b, MT_K_many_4_128_b},
         {MT_K_many_8_32_b, MT_K_many_8_64_b, MT_K_many_8_128_b}}};
    const size_t group = w->group == 32 ? 0 : w->group == 64 ? 1 : 2;
    if (w->format != MT_FORMAT_AFFINE)
        return MT_K_many_signed;
    return kernels[w->pairs == MT_SCALE_BF16][w->kind == MT_CUDA_CODES8][group];
}

/* Whether kernels of warpgroups support the weight. */
static bool broad(const mt_device *dev, const mt_cuda_weight *w)
{
    return dev->code >= 90 && w->kind == MT_CUDA_CODES4 && w->format == MT_FORMAT_AFFINE && w->biased &&
           w->pairs == MT_SCALE_BF16 && w->group >= 64;
}

/* Bytes of a step are those of stage and half_stage in the kernels' files. */
static way way_of(const mt_device *dev, const mt_cuda_weight *w)
{
    const size_t each = w->group ? 128 / w->group : 0;
    if (broad(dev, w))
        return (way){w->group == 64 ? MT_K_broad_64 : MT_K_broad_128, MT_CUDA_BROAD_THREADS, MT_CUDA_BROAD_SHARED(each),
                     1};
    switch (w->kind) {
    case MT_CUDA_HALVES:
        if (dev->code >= 90)
            return (way){MT_K_wide_halves, 384, (size_t)MT_CUDA_WIDE_STAGES * 2 * MT_CUDA_MANY * 128 + 1024, 1};
        return (way){MT_K_many_halves, 128, (size_t)MT_CUDA_HALF_STAGES * (MT_CUDA_MANY * 128 + 8 * 2048), 2};
    case MT_CUDA_BYTES:
        return (way){MT_K_many_bytes, 256, (size_t)MT_CUDA_HALF_STAGES * (MT_CUDA_MANY * 128 + 8 * 1024), 1};
    default:
        return (way){codes_kernel(w), 256,
                     (size_t)MT_CUDA_MANY_STAGES(dev->code) *
                         (MT_CUDA_MANY * (128 + 16 + each * 4) +
                          8 * ((w->kind == MT_CUDA_CODES4 ? 1024u : 2048u) + each * 16 * 8)),
                     1};
    }
}

static void launch(mt_device *dev, mt_cuda_many p, size_t rows)
{
    const way by = way_of(dev, &p.w[0]);
    const size_t places = by.beside * (size_t)dev->processors, tiles = p.first[p.count] * rows;
    p.parts = dev->parts;
    p.counts = dev->counts;
    mt_cuda_launch(dev, by.kernel, tiles < places ? tiles : places, 1, 1, by.threads, by.shared, &p);
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
    mt_cuda_launch(dev, MT_K_pair_halves, 2 * (tiles < places ? tiles : places), 1, 1, MT_CUDA_PAIR_THREADS,
                   MT_CUDA_PAIR_STAGES * MT_CUDA_PAIR_STAGE + 1024, p);
}

void mt_cuda_many_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m)
{
    mt_cuda_many p = {.from = dev->packed, .m = (uint32_t)m, .count = (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        p.w[i] = w[i]->d;
        p.y[i] = y[i]->m;
    }
    divide(&p);
    if (p.w[0].kind == MT_CUDA_HALVES && dev->code >= 90 && dev->ways.pair)
        launch_pairs(dev, &p);
    else
        launch(dev, p, (m + MT_CUDA_MANY - 1) / MT_CUDA_MANY);
}

void mt_cuda_many_experts(mt_device *dev, mt_cuda_mat y, const mt_weight *w, mt_cuda_shares shares, size_t most)
{
    mt_cuda_many p = {.w = {w->d}, .y = {y}, .from = dev->packed, .shares = shares, .m = dev->packed.rows, .count = 1};
    divide(&p);
    launch(dev, p, most);
}
