/* Latent attention over bf16 pages on tensor cores (R8), for keys of 512 + 64 and 256 + 64 elements, whose first 512 or
   256 are the values. A block takes a tile of 64 rows, tokens times query heads, and a segment after the other, or one
   share of them. Each of eight warps multiplies all rows with 32 keys of the segment; then each has an eighth of the
   values' columns. Neither goes through shared memory: a warp reads what it multiplies, once for all rows, and the
   second reading finds it in the L2 cache. Elements of a key are permuted as in bf16.cu.

   64 rows of a segment are 36 million operations and 540 KB from the L2 cache, which takes half as long again as the
   products. */
#include "device/cuda/attention/latents.cuh"
#include "device/cuda/attention/scores.cuh"
#include "device/cuda/common/mma.cuh"

enum {
    T_WARPS = MT_CUDA_LATENT_WARPS,
    T_ROWS = MT_CUDA_LATENT_TILE,
    TILES = T_ROWS / 16,
    KEYS = MT_SEGMENT / T_WARPS,
    P_STRIDE = MT_SEGMENT + 8
};

template <int DIM> struct latent_room {
    uint16_t q[T_ROWS][DIM + 8];
    uint16_t p[T_ROWS][P_STRIDE];
    float most[T_WARPS][T_ROWS], sum[T_WARPS][T_ROWS];
    float m[T_ROWS], l[T_ROWS], old[T_ROWS], now[T_ROWS]; /* now below 0: nothing comes */
    range seen[T_ROWS];
};

static __device__ inline const uint16_t *key_at(const mt_cuda_attention &p, const uint32_t *pages, uint32_t at,
                                                uint32_t dim)
{
    return (const uint16_t *)(p.kv.data + pages[at / p.kv.page_tokens] * p.kv.page_bytes + p.layer * p.kv.block) +
           (uint64_t)(at % p.kv.page_tokens) * dim;
}

/* Scores of the rows against this warp's keys of a segment: s[i][j] are rows 16 i, keys 8 j. */
template <int DIM>
static __device__ inline void score(float (&s)[TILES][KEYS / 8][4], const latent_room<DIM> &room,
                                    const mt_cuda_attention &p, const latent_work &w, uint32_t first)
{
    const uint32_t lane = threadIdx.x % 32, c = lane % 4, last = w.seen.any.hi - 1;
    const uint4 *k[KEYS / 8];
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++) {
        const uint32_t at = first + threadIdx.x / 32 * KEYS + j * 8 + lane / 4;
        k[j] = (const uint4 *)key_at(p, w.pages, min(at, last), DIM) + c; /* what is not seen is masked */
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                s[i][j][r] = 0;
    }
#pragma unroll 3
    for (int d = 0; d < DIM / 32; d++) {
        uint4 b[KEYS / 8];
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
            b[j] = k[j][d * 4];
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            if ((uint32_t)i >= w.tiles)
                break;
            const uint2 *low = (const uint2 *)&room.q[i * 16 + lane / 4][d * 32 + c * 8];
            const uint2 *high = (const uint2 *)&room.q[i * 16 + lane / 4 + 8][d * 32 + c * 8];
            const unsigned a0[4] = {low[0].x, high[0].x, low[0].y, high[0].y};
            const unsigned a1[4] = {low[1].x, high[1].x, low[1].y, high[1].y};
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
                mma_bf16(s[i][j], a0, b[j].x, b[j].y);
                mma_bf16(s[i][j], a1, b[j].z, b[j].w);
            }
        }
    }
}

/* p = bf16(exp(s - m)) into shared memory, and sums of them by warp. */
template <int DIM>
static __device__ inline void weigh(const float (&s)[TILES][KEYS / 8][4], latent_room<DIM> &room, uint32_t first)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t row = i * 16 + h * 8 + lane / 4;
            const range seen = room.seen[row];
            const float m = room.m[row];
            float sum = 0;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++) {
                float x[2];
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const uint32_t at = first + warp * KEYS + j * 8 + lane % 4 * 2 + e;
                    x[e] = at >= seen.lo && at < seen.hi ? mt_bf16_rounded(mt_exp1(s[i][j][h * 2 + e] - m)) : 0.0f;
                    sum += x[e];
                }
                *(unsigned *)&room.p[row][warp * KEYS + j * 8 + lane % 4 * 2] =
                    mt_f32_bits(x[0]) >> 16 | mt_f32_bits(x[1]); /* which are bf16 already */
            }
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (lane % 4 == 0)
                room.sum[warp][row] = sum;
        }
}

/* o = p V for N tiles of eight columns from `column` on: tile j holds columns lane / 4 * N + j of them. */
template <int DIM, int N>
static __device__ inline void values(float (&o)[TILES][N][4], const latent_room<DIM> &room, const mt_cuda_attention &p,
                                     const latent_work &w, uint32_t first, uint32_t column)
{
    const uint32_t lane = threadIdx.x % 32, c = lane % 4;
    const range any = w.seen.any;
#pragma unroll
    for (int i = 0; i < TILES; i++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int r = 0; r < 4; r++)
                o[i][j][r] = 0;
    const uint32_t begin = any.lo > first ? (any.lo - first) / 16 * 16 : 0, end = min(any.hi - first, MT_SEGMENT);
#pragma unroll 2
    for (uint32_t k = begin; k < end; k += 16) {
        uint2 v[4]; /* positions c * 2, + 1, + 8, + 9 */
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const uint32_t at = first + k + c * 2 + (r & 1) + (r >> 1) * 8;
            const bool there = at >= any.lo && at < any.hi;
            v[r] = make_uint2(0, 0);
            if (there)
                v[r] = *(const uint2 *)(key_at(p, w.pages, at, DIM) + column + lane / 4 * N);
        }
        unsigned b[N][2]; /* of each column, two positions a word */
#pragma unroll
        for (int j = 0; j < N; j++) {
            const unsigned pick = j % 2 ? 0x7632 : 0x5410;
            b[j][0] = __byte_perm(j < 2 ? v[0].x : v[0].y, j < 2 ? v[1].x : v[1].y, pick);
            b[j][1] = __byte_perm(j < 2 ? v[2].x : v[2].y, j < 2 ? v[3].x : v[3].y, pick);
        }
#pragma unroll
        for (int i = 0; i < TILES; i++) {
            if ((uint32_t)i >= w.tiles)
                break;
            const uint16_t *low = &room.p[i * 16 + lane / 4][k + c * 2], *high = low + 8 * P_STRIDE;
            const unsigned a[4] = {*(const unsigned *)low, *(const unsigned *)high, *(const unsigned *)(low + 8),
                                   *(const unsigned *)(high + 8)};
#pragma unroll
            for (int j = 0; j < N; j++)
                mma_bf16(o[i][j], a, b[j][0], b[j][1]);
        }
    }
}

/* Largest scores and sums of all warps; what is there counts and what comes. */
template <int DIM>
static __device__ inline void merge_rows(latent_room<DIM> &room, const mt_cuda_latents &l, const latent_work &w,
                                         uint32_t seg, whole &sum)
{
    const uint32_t r = threadIdx.x;
    const float m = room.m[r];
    float all = room.sum[0][r], old = 1, now = 0;
#pragma unroll
    for (int i = 1; i < T_WARPS; i++)
        all += room.sum[i][r];
    const bool there = take_part(sum, m, all, old, now);
    room.old[r] = old;
    room.now[r] = there ? now : -1.0f;
    if (w.shares > 1 && r < w.rows) {
        float *part = part_at(l.p, w.at, 0, seg, r / w.heads * l.p.heads + w.head0 + r % w.heads, l.latent);
        part[0] = m;
        part[1] = all;
    }
}

/* grid: (tiles, pieces of the heads, shares). */
template <int DIM, int LATENT> static __device__ inline void attend(const mt_cuda_latents &l)
{
    constexpr int EACH = LATENT / T_WARPS, N = 4, GROUPS = EACH / (8 * N); /* columns of a warp; those at a time */
    extern __shared__ __align__(16) uint8_t raw[];
    latent_room<DIM> &room = *(latent_room<DIM> *)raw;
    const mt_cuda_attention &p = l.p;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const latent_work w = find_work(l);
    const bool parts = w.shares > 1;
    if (blockIdx.z >= w.shares)
        return;
    if (threadIdx.x < T_ROWS) {
        const uint32_t r = threadIdx.x;
        room.seen[r].lo = room.seen[r].hi = 0;
        if (r < w.rows)
            room.seen[r] = seen_by(p, w.at, w.at.token + r / w.heads);
    }
    for (uint32_t i = threadIdx.x; i < T_ROWS * (DIM / 2); i += 32 * T_WARPS) {
        const uint32_t r = i / (DIM / 2), d = i % (DIM / 2) * 2;
        float2 x = make_float2(0, 0);
        if (r < w.rows)
            x = *(const float2 *)(row_of(p.x, w.at.span.row + w.at.token + r / w.heads) +
                                  (w.head0 + r % w.heads) * DIM + d);
        *(unsigned *)&room.q[r][d] = (unsigned)mt_bf16_from_f32(x.x) | (unsigned)mt_bf16_from_f32(x.y) << 16;
    }
    __syncthreads();
    float acc[GROUPS][TILES][N][4];
    whole sum = {-INFINITY, 0}; /* of row threadIdx.x */
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int j = 0; j < N; j++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    acc[g][i][j][r] = 0;
    for (uint32_t seg = w.seg0; seg < w.seg1; seg++) {
        const uint32_t first = seg * MT_SEGMENT;
        {
            float s[TILES][KEYS / 8][4];
            score<DIM>(s, room, p, w, first);
            mask(s, room, p, first);
            __syncthreads();
            if (threadIdx.x < T_ROWS) {
                float m = room.most[0][threadIdx.x];
#pragma unroll
                for (int i = 1; i < T_WARPS; i++)
                    m = mt_max1(m, room.most[i][threadIdx.x]);
                room.m[threadIdx.x] = m;
            }
            __syncthreads();
            weigh<DIM>(s, room, first);
        }
        __syncthreads();
        if (threadIdx.x < T_ROWS)
            merge_rows<DIM>(room, l, w, seg, sum);
        __syncthreads();
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            const uint32_t column = warp * EACH + g * 8 * N;
            float o[TILES][N][4];
            values<DIM, N>(o, room, p, w, first, column);
#pragma unroll
            for (int i = 0; i < TILES; i++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const uint32_t row = i * 16 + h * 8 + lane / 4;
                    const float old = room.old[row], now = room.now[row];
                    if (parts && row < w.rows) { /* columns (lane % 4 * 2 + e) * N + j */
                        float *to =
                            part_at(p, w.at, 0, seg, row / w.heads * p.heads + w.head0 + row % w.heads, LATENT) + 4 +
                            column + lane % 4 * 2 * N;
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            *(float4 *)(to + e * N) = make_float4(o[i][0][h * 2 + e], o[i][1][h * 2 + e],
                                                                  o[i][2][h * 2 + e], o[i][3][h * 2 + e]);
                    }
#pragma unroll
                    for (int j = 0; j < N; j++)
#pragma unroll
                        for (int e = 0; e < 2; e++)
                            if (now >= 0)
                                acc[g][i][j][h * 2 + e] = fmaf(acc[g][i][j][h * 2 + e], old, o[i][j][h * 2 + e] * now);
                }
        }
        __syncthreads();
    }
    if (parts)
        return;
    if (threadIdx.x < w.rows) {
        const uint32_t r = threadIdx.x;
        room.old[r] = take_sink(sum, p.sinks, w.head0 + r % w.heads);
        room.l[r] = 1.0f / sum.l;
    }
    __syncthreads();
#pragma unroll
    for (int g = 0; g < GROUPS; g++)
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const uint32_t row = i * 16 + h * 8 + lane / 4;
                if (row >= w.rows)
                    continue;
                float *y = row_of(p.y, w.at.span.row + w.at.token + row / w.heads) +
                           (w.head0 + row % w.heads) * LATENT + warp * EACH + g * 8 * N;
#pragma unroll
                for (int j = 0; j < N; j++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const float x = acc[g][i][j][h * 2 + e];
                        y[(lane % 4 * 2 + e) * N + j] = room.l[row] * (p.sinks ? fmaf(x, room.old[row], 0.0f) : x);
                    }
            }
}

extern "C" __global__ void __launch_bounds__(32 * T_WARPS) mtk_latent_512_64(const __grid_constant__ mt_cuda_latents p)
{
    follow_last();
    attend<576, 512>(p);
}

extern "C" __global__ void __launch_bounds__(32 * T_WARPS) mtk_latent_256_64(const __grid_constant__ mt_cuda_latents p)
{
    follow_last();
    attend<320, 256>(p);
}
