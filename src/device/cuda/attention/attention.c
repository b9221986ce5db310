/* Attention and its pages on the host's side: which kernel runs, with which parameters, on how many blocks.

   Nothing decided here changes a bit and, where possible, nothing depends on the length of sequences: so steps with
   equally many rows are lists of the same launches (host/launch.c). */
#include "device/cuda/cuda.h"

#define THREADS 256
#define WARPGROUP_ROWS 64
/* How many further segments, times eights of rows, a block takes alone rather than that each of several blocks leaves
   parts which one of them merges. Eight rows of another segment take a block about 1 us, half of one a little less,
   and 2 where its copies are waited for; to leave parts, count and merge takes 2.5. So 2 pays where the copies of both
   segments come before they are waited for: where the last one is half a segment. */
#ifndef MT_ATTENTION_ALONE
#define MT_ATTENTION_ALONE 1
#endif

void mt_cuda_op_kv_write(mt_device *dev, mt_kv *kv, size_t layer, const mt_tensor *k, const mt_tensor *v)
{
    mt_cuda_attention p = {.x = k->m, .kv = kv->d, .step = dev->step, .layer = (uint32_t)layer};
    if (kv->shape.latent) {
        mt_cuda_latent_write(dev, kv, &p);
        return;
    }
    p.v = v->m;
    if (kv->d.bits)
        mt_cuda_launch(dev, MT_K_kv_write_q, dev->step.rows, 1, 1, THREADS,
                       THREADS / 32 * kv->d.head_stride * sizeof(float), &p);
    else
        mt_cuda_launch(dev, MT_K_kv_write, dev->step.rows, 1, 1, THREADS, 0, &p);
}

/* Whether each span is one tile. */
static bool few_rows(const mt_batch *b, uint32_t tile)
{
    for (size_t i = 0; i < b->spans; i++)
        if (b->span[i].rows == 0 || b->span[i].rows > tile)
            return false;
    return true;
}

/* ---- Hopper ---- */

typedef struct hopper {
    uint32_t head_stride;
    mt_cuda_kernel kernel[2]; /* for few rows, for many */
    uint32_t rows[2], threads[2];
    uint32_t shared[2]; /* KiB of shared memory for queries, stages and other large data */
} hopper;

static const hopper *find_hopper(const mt_device *dev, const mt_cuda_attention *p)
{
#define HEADS(hd)                                                                                                  \
    {                                                                                                              \
        hd, {MT_K_attention_few_##hd, MT_K_attention_many_##hd}, {32, WARPGROUP_ROWS * MT_CUDA_ATTEND_GROUPS(hd)}, \
            {384, MT_CUDA_ATTEND_THREADS(hd)},                                                                     \
        {                                                                                                          \
            (hd) == 64 ? 105 : 208, MT_CUDA_ATTEND_KIB(hd)                                                         \
        }                                                                                                          \
    }
    static const hopper all[] = {
        HEADS(64),
        HEADS(80),
        HEADS(96),
        HEADS(128),
        {256, {MT_K_attention_few_256, MT_K_attention_many_256}, {32, 64}, {384, 384}, {224, 224}}};
#undef HEADS
    const bool able = dev->code >= 90 && !p->kv.f32 && !p->kv.bits && p->scale > 0 && p->softcap == 0.0f &&
                      p->kv.head_dim % 2 == 0 && p->kv.page_tokens >= MT_KV_SEGMENT / 32;
    for (size_t i = 0; i < MT_COUNT(all) && able; i++)
        if (all[i].head_stride == p->kv.head_stride && p->heads / p->kv.heads <= all[i].rows[1])
            return &all[i];
    return NULL;
}

/* Whether the last tile of rows is at most half full: then two key heads are one item, with a warpgroup each. */
static bool takes_apart(const mt_device *dev, const mt_cuda_attention *p)
{
    const uint32_t rest = dev->batch->span[0].rows % p->tile;
    return dev->batch->spans == 1 && p->shares == 1 && p->step.seen && !p->causal && p->kv.heads % 2 == 0 && rest > 0 &&
           rest * (p->heads / p->kv.heads) <= WARPGROUP_ROWS;
}

/* Bytes of shared memory of a block, which has the multiprocessor to itself. */
static uint32_t shared_of(const hopper *h, bool many)
{
    return (h->shared[many] << 10) + MT_CUDA_ATTEND_SMALL;
}

static void attend_hopper(mt_device *dev, const hopper *h, mt_cuda_attention p)
{
    const uint32_t group = p.heads / p.kv.heads;
    const bool many = group > h->rows[0] || !few_rows(dev->batch, h->rows[0] / group);
    const uint32_t blocks = (uint32_t)dev->processors;
    mt_cuda_attention_cut(dev, &p, h->rows[many] / group, blocks, h->head_stride, !many);
    p.alone = many || h->head_stride > 128 ? 0 : MT_ATTENTION_ALONE;
    p.apart = many && h->rows[many] > WARPGROUP_ROWS && takes_apart(dev, &p);
    p.items -= p.apart ? p.kv.heads / 2 : 0;
    mt_cuda_launch(dev, h->kernel[many], p.items < blocks ? p.items : blocks, 1, 1, h->threads[many],
                   shared_of(h, many), &p);
}

void mt_cuda_asked_launch(mt_device *dev, const mt_cuda_asked *p)
{
    const hopper *h = find_hopper(dev, &p->attention);
    const uint32_t blocks = (uint32_t)dev->processors;
    mt_cuda_launch(dev, h->head_stride == 64 ? MT_K_attention_asked_64 : MT_K_attention_asked_128,
                   p->attention.items < blocks ? p->attention.items : blocks, 1, 1, h->threads[0], shared_of(h, false),
                   p);
}

/* ---- other heads, other cards ---- */

/* The kernels of a shape, for few rows and for many, and how many tiles of 16 rows they take. Independent of the batch:
   from step to step only kernels may differ that give the same bits. */
typedef struct form {
    mt_cuda_kernel kernel[2];
    uint32_t head_dim, tiles[2];
} form;

static const form *find_form(const mt_cuda_kv *kv, uint32_t group)
{
    static const form forms[] = {{{MT_K_attention_64_1, MT_K_attention_64_4}, 64, {1, 4}},
                                 {{MT_K_attention_128_1, MT_K_attention_128_4}, 128, {1, 4}},
                                 {{MT_K_attention_256_1, MT_K_attention_256_2}, 256, {1, 2}}};
    for (size_t i = 0; i < MT_COUNT(forms) && !kv->f32 && !kv->bits; i++)
        if (forms[i].head_dim == kv->head_dim && group <= 16 * forms[i].tiles[1])
            return &forms[i];
    return NULL;
}

static void attend_tiles(mt_device *dev, const form *f, mt_cuda_attention p)
{
    const uint32_t group = p.heads / p.kv.heads;
    const bool few = group <= 16 && few_rows(dev->batch, 16 / group);
    const uint32_t rows = 16 * f->tiles[!few], hd = f->head_dim;
    const size_t shared = rows * ((hd + 8) * 2 + (MT_KV_SEGMENT + 8) * 2 + 4 * 12 + 8) + 64;
    mt_cuda_attention_cut(dev, &p, rows / group, 2 * (uint32_t)dev->processors, hd, false);
    mt_cuda_launch(dev, f->kernel[!few], p.tile_count, p.kv.heads, p.shares, 128, shared, &p);
    if (p.shares > 1)
        mt_cuda_launch(dev, MT_K_attention_merge, (size_t)p.tile_count * p.tile, p.heads, 1, hd, 0, &p);
}

/* ---- keys and values in 8 and 4 bits ---- */

#define ROWS 16 /* of a block */

static void attend_integers(mt_device *dev, mt_cuda_attention p)
{
    const uint32_t stride = p.kv.head_stride, group = p.heads / p.kv.heads, heads = group < ROWS ? group : ROWS;
    const size_t row =
        stride + 16 + 2 * stride * sizeof(float) + (MT_KV_SEGMENT + 4) * sizeof(float) + 2 * (MT_KV_SEGMENT + 16);
    const size_t blocks = p.kv.heads * ((group + ROWS - 1) / ROWS);
    mt_cuda_attention_cut(dev, &p, ROWS / heads, 2 * (uint32_t)dev->processors, stride, false);
    mt_cuda_launch(dev, p.kv.bits == 8 ? MT_K_attention_q8 : MT_K_attention_q4, p.tile_count, blocks, p.shares, THREADS,
                   ROWS * row + 4096, &p);
    if (p.shares > 1)
        mt_cuda_launch(dev, MT_K_attention_merge_q, (size_t)p.tile_count * p.tile, p.heads, 1,
                       mt_cuda_up(stride / 4, 32), stride * sizeof(float), &p);
}

void mt_cuda_op_attention(mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer, mt_attention how)
{
    mt_cuda_attention p = {.y = y->m,
                           .x = q->m,
                           .kv = kv->d,
                           .step = dev->step,
                           .sinks = how.sinks ? how.sinks->m.data : 0,
                           .layer = (uint32_t)layer,
                           .window = how.window,
                           .chunk = how.chunk,
                           .causal = how.causal,
                           .heads = q->m.cols / kv->d.head_dim,
                           .scale = how.scale,
                           .softcap = how.softcap};
    const uint32_t group = p.heads / kv->d.heads;
    if (kv->shape.latent) {
        mt_cuda_latent_attend(dev, kv, &p);
        return;
    }
    const hopper *h = find_hopper(dev, &p);
    const form *f = find_form(&kv->d, group);
    if (h)
        attend_hopper(dev, h, p);
    else if (f)
        attend_tiles(dev, f, p);
    else if (kv->d.bits && dev->head.precision == MT_PRECISION_FAST)
        attend_integers(dev, p);
    else
        mt_cuda_launch(dev, MT_K_attention, dev->step.rows, p.heads, 1, THREADS,
                       (18 * kv->d.head_stride + MT_KV_SEGMENT) * sizeof(float), &p);
}
