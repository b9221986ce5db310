/* What the kernels of latent attention share: which part of it a block computes. */
#ifndef MT_DEVICE_CUDA_ATTENTION_LATENTS_CUH
#define MT_DEVICE_CUDA_ATTENTION_LATENTS_CUH

#include "device/cuda/attention/attention.cuh"
#include "device/cuda/attention/latents.h"

/* The rows of a block are `heads` query heads from head0 on, for each token of a tile. */
typedef struct latent_work {
    tile_at at;
    tile_range seen;
    const uint32_t *pages;
    uint32_t head0, heads, rows, tiles, shares, seg0, seg1; /* tiles: of 16 rows */
} latent_work;

static __device__ inline latent_work find_work(const mt_cuda_latents &l)
{
    const mt_cuda_attention &p = l.p;
    latent_work w;
    w.head0 = blockIdx.y * l.heads;
    w.heads = min(p.heads - w.head0, l.heads);
    w.at = find_tile(p, blockIdx.x);
    w.seen = tile_seen(p, w.at);
    w.pages = p.step.pages + w.at.span.pages;
    w.rows = w.at.tokens * w.heads;
    w.tiles = (w.rows + 15) / 16;
    w.shares = shares_of(p, w.at, w.seen);
    const uint32_t from = w.seen.any.lo / MT_SEGMENT, n = segments_of(w.seen);
    w.seg0 = from + n * blockIdx.z / w.shares;
    w.seg1 = from + n * (blockIdx.z + 1) / w.shares;
    return w;
}

#endif
