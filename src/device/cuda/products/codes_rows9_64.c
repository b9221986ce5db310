/* How products of 9 to 64 rows with codes of 4 bits in groups of 64 are divided for codes_rows9_64.cu. */
#include <assert.h>

#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define OWN 1024u /* bytes of shared memory that the kernels use besides */
#define LEAST 3u  /* least slots, or slots beyond the warps that take turns: one being loaded, one still in use */
/* most tiles times steps of 128 of k that a block may have beyond its share, so that no kernel has to gate and pack */
#define MORE 48u

/* What a warp has: rows times 16, cols times 8; and most warps of a block. */
typedef struct form {
    mt_cuda_kernel kernel;
    uint32_t rows, cols, chunk, warps;
    bool turns;
} form;

static const form some_1_2 = {.kernel = MT_K_some_1_2, .rows = 1, .cols = 2, .chunk = 4, .warps = 16};
static const form some_2_2 = {.kernel = MT_K_some_2_2, .rows = 2, .cols = 2, .chunk = 2, .warps = 12};
static const form some_3_2 = {.kernel = MT_K_some_3_2, .rows = 3, .cols = 2, .chunk = 2, .warps = 12};
static const form some_1_4 = {.kernel = MT_K_some_1_4, .rows = 1, .cols = 4, .chunk = 2, .warps = 12};
static const form some_2_4 = {.kernel = MT_K_some_2_4, .rows = 2, .cols = 4, .chunk = 2, .warps = 12};
static const form turns_1_2 = {
    .kernel = MT_K_turns_1_2, .rows = 1, .cols = 2, .chunk = 4, .warps = MT_CUDA_SOME_TURNING, .turns = true};
static const form turns_2_2 = {
    .kernel = MT_K_turns_2_2, .rows = 2, .cols = 2, .chunk = 2, .warps = MT_CUDA_SOME_TURNING, .turns = true};
static const form turns_1_4 = {
    .kernel = MT_K_turns_1_4, .rows = 1, .cols = 4, .chunk = 2, .warps = MT_CUDA_SOME_TURNING, .turns = true};

/* The largest form that leaves a block a dozen warps, as large ones need columns; measured on an H200. each: tiles of a
   block. */
static const form *choose(uint32_t m, uint32_t each)
{
    if (m <= 16)
        return &turns_1_2;
    if (m <= 32)
        return each < 6 ? &turns_1_2 : &some_2_2;
    if (each > 8)
        return m <= 48 ? &some_3_2 : &some_2_4;
    if (each > 2)
        return &some_1_2;
    return m <= 48 ? &turns_1_2 : &turns_2_2;
}

/* Whether columns can be written two at a time. */
static bool in_twos(const mt_cuda_few *p)
{
    bool all = true;
    for (uint32_t i = 0; i < p->count; i++)
        all = all && p->w[i].n % 2 == 0 && mt_cuda_in_twos(p->y[i]);
    return all;
}

/* Lists the kernel of a form with so many blocks, of which each has at most `each` tiles; false where shared memory
   does not suffice. */
static bool list(mt_device *dev, mt_cuda_few *p, const form *f, uint32_t blocks, uint32_t each)
{
    const uint32_t parts = (p->m + f->rows * 16 - 1) / (f->rows * 16); /* warps with the same columns and other rows */
    const uint32_t most = f->warps / (f->turns ? 2 : 1) / parts * f->cols / 2, rounds = (each + most - 1) / most;
    p->together = (each + rounds - 1) / rounds;
    if (f->cols == 4)
        p->together = (p->together + 1) / 2 * 2;
    const uint32_t chains = p->together * 2 / f->cols * parts;
    const uint32_t handed = f->turns ? chains * f->rows * f->cols * 1024 : 0;
    const uint32_t slot = MT_CUDA_SOME_SLOT(p->m, p->together, f->chunk), all = (uint32_t)dev->shared - OWN;
    p->stages = all > handed ? MT_MIN((all - handed) / slot, MT_CUDA_SOME_STAGES) : 0;
    if (p->stages < LEAST + (f->turns ? 1 : 0))
        return false;
    p->chunk = f->chunk;
    p->split = f->turns ? MT_MIN(MT_MIN(f->warps / chains, chains > 1 ? 4 : 6), p->stages - LEAST) : 1;
    mt_cuda_launch(dev, f->kernel, blocks, 1, 1, 32 * chains * p->split, p->stages * slot + handed, p);
    return true;
}

bool mt_cuda_some_launch(mt_device *dev, mt_cuda_few *p)
{
    const mt_cuda_weight *w = &p->w[0];
    if (w->kind != MT_CUDA_CODES4 || w->group != 64 || w->k % MT_CUDA_STEP || w->pairs != MT_SCALE_BF16 || !in_twos(p))
        return false;
    const uint32_t tiles = p->first[p->count], blocks = MT_MIN(tiles, (uint32_t)dev->processors);
    const uint32_t each = (tiles + blocks - 1) / blocks;
    return list(dev, p, choose(p->m, each), blocks, each);
}

bool mt_cuda_some_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu)
{
    const mt_cuda_few *last = mt_cuda_last(dev, MT_K_some_1_2, MT_K_turns_1_4);
    if (!last || last->count != 2 || last->m != m || last->add.data || last->glu.data || last->y[0].data != gate.data ||
        last->y[1].data != up.data || last->w[0].n != last->w[1].n || last->w[0].n != y.cols || y.data == up.data ||
        !mt_cuda_in_twos(y))
        return false;
    mt_cuda_few p = *last;
    const uint32_t tiles = p.first[2], all = (uint32_t)dev->processors, each = (tiles + all - 1) / all;
    p.pairs = (tiles / 2 + all - 1) / all;
    if (p.pairs > MT_CUDA_SOME_PAIRS || (2 * p.pairs - each) * p.w[0].steps > MORE)
        return false;
    p.glu = y;
    p.glu_limit = glu->limit;
    p.glu_offset = glu->offset;
    p.act = glu->act;
    mt_cuda_drop(dev);
    const form *f = m <= 16 ? &turns_1_4 : m <= 32 ? &some_1_4 : &some_2_4;
    if (list(dev, &p, f, (tiles / 2 + p.pairs - 1) / p.pairs, 2 * p.pairs))
        return true;
    p.pairs = 0;
    p.glu = (mt_cuda_mat){0};
    const bool listed = mt_cuda_some_launch(dev, &p); /* as before */
    assert(listed);
    return false;
}

bool mt_cuda_some_pack(mt_device *dev, const mt_cuda_pack *x)
{
    mt_cuda_few *p = mt_cuda_last(dev, MT_K_some_1_2, MT_K_turns_1_4);
    if (!p || !p->pairs || p->gated.to.q || x->index || p->glu.data != x->x.data || p->glu.cols != x->k ||
        p->m != x->m || x->k % MT_CUDA_STEP || p->glu.data % 16 || p->glu.stride % 4 || p->from.q == dev->packed_gated)
        return false;
    const CUdeviceptr at = dev->packed_gated;
    const size_t bytes = (size_t)p->m * x->k;
    dev->packed.q = at;
    dev->packed.turns = at + bytes;
    dev->packed.sums = at + bytes + bytes / MT_CUDA_STEP * 4 * sizeof(float);
    p->gated = *x;
    p->gated.to = dev->packed;
    p->links = dev->links;
    return true;
}
