/* Into how many shares the segments of a step's tiles are cut, for attention of every kind. As in attention.c, nothing
   decided here changes a bit. */
#include "device/cuda/cuda.h"

#define SHARES 64 /* most shares of a tile's segments */

static uint32_t count_tiles(const mt_batch *b, uint32_t tile)
{
    size_t tiles = 0;
    for (size_t i = 0; i < b->spans; i++)
        tiles += (b->span[i].rows + tile - 1) / tile;
    return (uint32_t)tiles;
}

/* Most rows of a span that is one tile, as only those have partial results; 0: there is none. */
static uint32_t most_rows(const mt_batch *b, uint32_t tile)
{
    uint32_t most = 0;
    for (size_t i = 0; i < b->spans; i++)
        most = b->span[i].rows > most && b->span[i].rows <= tile ? b->span[i].rows : most;
    return most;
}

/* Whether there is room for the partial results of all tiles, see part_at. */
static bool parts_fit(const mt_batch *b, const mt_cuda_attention *p, uint32_t width)
{
    size_t segments = 1;
    for (size_t i = 0; i < b->spans; i++) {
        segments++;
        for (size_t g = 0; g < MT_KV_GROUPS; g++)
            if (b->span[i].pages[g])
                segments += (b->span[i].position + b->span[i].rows) / MT_KV_SEGMENT + 1;
    }
    return b->spans * p->kv.heads <= MT_CUDA_COUNTS &&
           segments * p->kv.heads * p->part_rows * (width + 4) * sizeof(float) <= MT_CUDA_PARTS;
}

/* Into how many shares the segments of each of so many tiles and key heads are cut, so that nearly all blocks are busy
   in all rounds. */
static uint32_t fill_rounds(uint32_t pairs, uint32_t blocks)
{
    uint32_t shares = 1;
    for (; shares < SHARES && pairs * shares < 4 * blocks; shares++) {
        const uint32_t idle = (blocks - pairs * shares % blocks) % blocks; /* blocks that are idle in the last round */
        if (idle * 16 <= pairs * shares)
            break;
    }
    return shares;
}

/* The same for few rows: two or more shares in one round, if they have two thirds of the blocks, which read memory as
   fast as all of them. An item of a second round makes or loads its queries anew. */
static uint32_t fill_one(uint32_t pairs, uint32_t blocks)
{
    const uint32_t shares = blocks / pairs < SHARES ? blocks / pairs : SHARES;
    return shares > 1 && 3 * pairs * shares >= 2 * blocks ? shares : fill_rounds(pairs, blocks);
}

void mt_cuda_attention_cut(mt_device *dev, mt_cuda_attention *p, uint32_t tile, uint32_t blocks, uint32_t width,
                           bool few)
{
    p->tile = tile;
    p->part_rows = most_rows(dev->batch, tile) * (p->heads / p->kv.heads);
    p->tile_count = count_tiles(dev->batch, p->tile);
    p->parts = dev->parts;
    p->counts = dev->counts;
    const uint32_t pairs = p->tile_count * p->kv.heads;
    p->shares = 1;
    if (p->part_rows && parts_fit(dev->batch, p, width))
        p->shares = few ? fill_one(pairs, blocks) : fill_rounds(pairs, blocks);
    p->items = pairs * p->shares;
}
