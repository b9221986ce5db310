/* Shared by the kernels of products. */
#ifndef MT_DEVICE_CUDA_PRODUCT_CUH
#define MT_DEVICE_CUDA_PRODUCT_CUH

#include "device/cuda/common.cuh"

/* ---- a warp with 16 columns and 8 rows ---- */

enum { ROWS = 8, WARPS = 4 }; /* of a block */

/* What a thread holds of the result: columns `column` and column + 8, rows `row` and row + 1. */
typedef struct tile {
    float a[4], b[4];
    uint32_t column, row; /* of the tile */
} tile;

/* A block has eight rows, or those of a share: number r of them, the first where it is not there. */
static __device__ inline uint32_t row_at(const mt_cuda_product &p, uint32_t r, bool *there)
{
    const uint32_t first = p.shares.experts ? p.shares.share[blockIdx.y].row : blockIdx.y * ROWS;
    const uint32_t rows = p.shares.experts ? p.shares.share[blockIdx.y].rows : p.m - first;
    *there = r < rows;
    return first + (*there ? r : 0);
}

/* What the block's rows meet; NULL: there is no such share. */
static __device__ inline const mt_cuda_weight *weight_of(const mt_cuda_product &p)
{
    if (!p.shares.experts)
        return &p.w;
    return blockIdx.y < *p.shares.count ? &p.shares.experts[p.shares.share[blockIdx.y].expert] : NULL;
}

static __device__ inline void put(const mt_cuda_product &p, const mt_cuda_weight &w, const tile *t, uint32_t tile_at,
                                  const float y[4])
{
    for (int r = 0; r < 4; r++) {
        const uint32_t n = tile_at * 16 + t->column + (r >> 1) * 8, row = t->row + (r & 1);
        bool there;
        const uint32_t i = row_at(p, row, &there);
        if (n < w.n && there)
            row_of(p.y, i)[n] = w.bias ? y[r] + w.bias[n] : y[r];
    }
}

/* ---- a block with 128 rows and 128 columns ---- */

#if defined(__CUDA_ARCH__)
#define ARCH (__CUDA_ARCH__ / 10)
#else
#define ARCH 90
#endif

/* Steps in shared memory; tiles of rows that a column of tiles meets one by one. */
enum { MANY_STAGES = MT_CUDA_MANY_STAGES(ARCH), BAND = 8 };

/* Where a tile lies: which weight, or expert, its first tile of 16 columns there, its first row and the end of rows. */
typedef struct many_tile {
    uint32_t weight, column, row, end;
} many_tile;

static __device__ inline const mt_cuda_weight &many_weight(const mt_cuda_many &p, const many_tile &t)
{
    return p.shares.experts ? p.shares.experts[t.weight] : p.w[t.weight];
}

static __device__ inline uint32_t many_tiles(const mt_cuda_many &p)
{
    return (p.shares.experts ? *p.shares.count : (p.m + MT_CUDA_MANY - 1) / MT_CUDA_MANY) * p.first[p.count];
}

static __device__ inline many_tile many_tile_at(const mt_cuda_many &p, uint32_t id, uint32_t tiles)
{
    const uint32_t columns = p.first[p.count], rows = (p.m + MT_CUDA_MANY - 1) / MT_CUDA_MANY;
    id = id < tiles ? id : 0; /* beyond the last: anything that is there */
    if (p.shares.experts) {
        const mt_cuda_share s = p.shares.share[id / columns];
        return {s.expert, id % columns * 8, s.row, s.row + s.rows};
    }
    const uint32_t band = id / (BAND * columns), height = rows - band * BAND < BAND ? rows - band * BAND : BAND;
    const uint32_t within = id - band * BAND * columns;
    many_tile t = {0, within / height, (band * BAND + within % height) * MT_CUDA_MANY, p.m};
    while (t.weight + 1 < p.count && t.column >= p.first[t.weight + 1])
        t.weight++;
    t.column = (t.column - p.first[t.weight]) * 8;
    return t;
}

/* Copies of 16 bytes to shared memory: some, then a mark; and a wait for all but the last so many marks. */
static __device__ inline void copy_16(unsigned to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(to), "l"(from) : "memory");
}

/* Zeros where it is not there. */
static __device__ inline void copy_or_clear(unsigned to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}

static __device__ inline void copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int BUT> static __device__ inline void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(BUT) : "memory");
}

/* c[16 columns of w][8 rows] += codes (16 x 32) times q (32 x 8) */
static __device__ inline void multiply_codes(int c[4], const unsigned a[4], const unsigned b[2], bool is_signed)
{
    if (is_signed)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Two neighbours of a row of the result. */
static __device__ inline void many_store(const mt_cuda_many &p, const many_tile &t, uint32_t row, uint32_t n, float2 y)
{
    const mt_cuda_weight &w = many_weight(p, t);
    if (row >= t.end || n >= w.n)
        return;
    float *to = row_of(p.y[p.shares.experts ? 0 : t.weight], row) + n;
    const bool both = n + 1 < w.n;
    if (w.bias) {
        y.x = y.x + w.bias[n];
        y.y = both ? y.y + w.bias[n + 1] : 0;
    }
    if (both)
        *(float2 *)to = y;
    else
        *to = y.x;
}

#endif
