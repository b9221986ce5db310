/* Attention over bf16 pages on tensor cores (R8), for cards before Hopper and heads that its kernels do not know. A
   block takes a tile of query rows (tokens times the query heads of
   one key head) and a segment after the other, or one segment alone; four warps share the segment's keys for the
   scores and the head's columns for the values, so that neither K nor V goes through shared memory. What a row gets
   does not depend on the other rows of its tile, nor on whether segments are taken by one block or by many.

   Elements of a head stand for each other in an order of their own: the four threads of a column hold eight neighbours
   each, of which a product of 16 takes four. Queries and keys are permuted alike, so that only the order of additions
   is another one, the same for every row. */
#include "device/cuda/attention/attention.cuh"
#include "device/cuda/attention/scores.cuh"
#include "device/cuda/common/mma.cuh"

enum { WARPS_A = 4, KEYS = MT_SEGMENT / WARPS_A, P_STRIDE = MT_SEGMENT + 8 };

static __device__ inline unsigned pack_bf16(float low, float high)
{
    return (unsigned)mt_bf16_from_f32(low) | (unsigned)mt_bf16_from_f32(high) << 16;
}

template <int HD, int MT> struct shared_room {
    uint16_t q[16 * MT][HD + 8]; /* queries, bf16 */
    uint16_t p[16 * MT][P_STRIDE];
    float most[WARPS_A][16 * MT], sum[WARPS_A][16 * MT];
    float m[16 * MT], l[16 * MT], old[16 * MT], now[16 * MT];
    range seen[16 * MT];
    range all;
};

/* Scores of 16 * MT rows against this warp's keys of a segment: s[i][j] are rows 16 i, keys 8 j. */
template <int HD, int MT>
static __device__ inline void score(float s[MT][KEYS / 8][4], const shared_room<HD, MT> &room,
                                    const mt_cuda_attention &p, const uint32_t *pages, uint32_t first, uint32_t kv_head)
{
    const uint32_t lane = threadIdx.x % 32, c = lane % 4, last = room.all.hi - 1;
    const mt_cuda_kv &kv = p.kv;
    const uint64_t block = ((uint64_t)p.layer * 2 * kv.heads + kv_head) * kv.block;
#pragma unroll
    for (int j = 0; j < KEYS / 8; j++) {
        uint32_t at = first + (threadIdx.x / 32) * KEYS + j * 8 + lane / 4;
        at = at < last ? at : last; /* beyond what is seen: any that is there, it is masked */
        const uint4 *k = (const uint4 *)(kv.data + pages[at / kv.page_tokens] * kv.page_bytes + block +
                                         (uint64_t)(at % kv.page_tokens) * (HD * 2)) +
                         c;
#pragma unroll
        for (int i = 0; i < MT; i++)
            for (int r = 0; r < 4; r++)
                s[i][j][r] = 0;
#pragma unroll
        for (int d = 0; d < HD / 32; d++) {
            const uint4 b = k[d * 4];
#pragma unroll
            for (int i = 0; i < MT; i++) {
                const uint2 *low = (const uint2 *)&room.q[i * 16 + lane / 4][d * 32 + c * 8];
                const uint2 *high = (const uint2 *)&room.q[i * 16 + lane / 4 + 8][d * 32 + c * 8];
                const unsigned a0[4] = {low[0].x, high[0].x, low[0].y, high[0].y};
                const unsigned a1[4] = {low[1].x, high[1].x, low[1].y, high[1].y};
                mma_bf16_ordered(s[i][j], a0, b.x, b.y);
                mma_bf16_ordered(s[i][j], a1, b.z, b.w);
            }
        }
    }
}

/* p = bf16(exp(s - m)) into shared memory, and sums of them by warp. */
template <int HD, int MT>
static __device__ inline void weigh(const float s[MT][KEYS / 8][4], shared_room<HD, MT> &room, uint32_t first)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < MT; i++)
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
                *(unsigned *)&room.p[row][warp * KEYS + j * 8 + lane % 4 * 2] = pack_bf16(x[0], x[1]);
            }
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (lane % 4 == 0)
                room.sum[warp][row] = sum;
        }
}

/* o = p V for this warp's columns, HD / 4 of them: n-tile j holds columns lane / 4 * N + j of them. */
template <int HD, int MT>
static __device__ inline void values(float o[MT][HD / 32][4], const shared_room<HD, MT> &room,
                                     const mt_cuda_attention &p, const uint32_t *pages, uint32_t first,
                                     uint32_t kv_head)
{
    constexpr int N = HD / 32;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const mt_cuda_kv &kv = p.kv;
    const uint64_t block = (((uint64_t)p.layer * 2 + 1) * kv.heads + kv_head) * kv.block;
#pragma unroll
    for (int i = 0; i < MT; i++)
        for (int j = 0; j < N; j++)
            for (int r = 0; r < 4; r++)
                o[i][j][r] = 0;
    const uint32_t begin = room.all.lo > first ? (room.all.lo - first) / 16 * 16 : 0;
    const uint32_t left = room.all.hi - first, end = left < MT_SEGMENT ? left : MT_SEGMENT;
    for (uint32_t k = begin; k < end; k += 16) {
        uint16_t v[4][N]; /* positions c * 2, + 1, + 8, + 9 */
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const uint32_t at = first + k + lane % 4 * 2 + (r & 1) + (r >> 1) * 8;
            const bool there = at >= room.all.lo && at < room.all.hi;
            const uint32_t page = there ? pages[at / kv.page_tokens] : 0;
            const uint16_t *from = (const uint16_t *)(kv.data + page * kv.page_bytes + block +
                                                      (uint64_t)(at % kv.page_tokens) * (HD * 2)) +
                                   warp * (HD / 4) + lane / 4 * N;
            if (N == 4) {
                const uint2 x = there ? *(const uint2 *)from : make_uint2(0, 0);
                *(uint2 *)v[r] = x;
            } else if (N == 8) {
                const uint4 x = there ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);
                *(uint4 *)v[r] = x;
            } else {
#pragma unroll
                for (int j = 0; j < N; j += 2)
                    *(unsigned *)&v[r][j] = there ? *(const unsigned *)(from + j) : 0u;
            }
        }
#pragma unroll
        for (int i = 0; i < MT; i++) {
            const uint16_t *low = &room.p[i * 16 + lane / 4][k + lane % 4 * 2];
            const uint16_t *high = &room.p[i * 16 + lane / 4 + 8][k + lane % 4 * 2];
            const unsigned a[4] = {*(const unsigned *)low, *(const unsigned *)high, *(const unsigned *)(low + 8),
                                   *(const unsigned *)(high + 8)};
#pragma unroll
            for (int j = 0; j < N; j++)
                mma_bf16_ordered(o[i][j], a, (unsigned)v[0][j] | (unsigned)v[1][j] << 16,
                                 (unsigned)v[2][j] | (unsigned)v[3][j] << 16);
        }
    }
}

/* grid: (tiles, key heads, shares). Where there are shares each block leaves its parts; else it merges them itself. */
template <int HD, int MT> static __device__ void attend(const mt_cuda_attention &p)
{
    extern __shared__ __align__(16) uint8_t raw[];
    shared_room<HD, MT> &room = *(shared_room<HD, MT> *)raw;
    constexpr int N = HD / 32, ROWS_A = 16 * MT;
    const uint32_t kv_head = blockIdx.y, group = p.heads / p.kv.heads, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const tile_at at = find_tile(p, blockIdx.x);
    const span_at span = at.span;
    const tile_range all = tile_seen(p, at);
    const uint32_t rows = at.tokens * group, shares = shares_of(p, at, all), n = segments_of(all);
    const bool parts = shares > 1;
    const uint32_t *pages = p.step.pages + span.pages;
    for (uint32_t r = threadIdx.x; r < ROWS_A; r += blockDim.x) {
        range none;
        none.lo = none.hi = 0;
        room.seen[r] = r < rows ? seen_by(p, at, at.token + r / group) : none;
        room.l[r] = 0;
        room.m[r] = -INFINITY;
    }
    for (uint32_t i = threadIdx.x; i < ROWS_A * HD; i += blockDim.x) {
        const uint32_t r = i / HD, d = i % HD;
        const float x =
            r < rows ? row_of(p.x, span.row + at.token + r / group)[(kv_head * group + r % group) * HD + d] : 0;
        room.q[r][d] = mt_bf16_from_f32(x);
    }
    if (threadIdx.x == 0)
        room.all = all.any;
    __syncthreads();
    if (blockIdx.z >= shares)
        return;
    float acc[MT][N][4];
    float whole_m = -INFINITY, whole_l = 0; /* of row threadIdx.x */
#pragma unroll
    for (int i = 0; i < MT; i++)
        for (int j = 0; j < N; j++)
            for (int r = 0; r < 4; r++)
                acc[i][j][r] = 0;
    const uint32_t from = room.all.lo / MT_SEGMENT, seg0 = from + n * blockIdx.z / shares;
    const uint32_t seg1 = from + n * (blockIdx.z + 1) / shares;
    for (uint32_t seg = seg0; seg < seg1; seg++) {
        const uint32_t first = seg * MT_SEGMENT;
        {
            float s[MT][KEYS / 8][4];
            score<HD, MT>(s, room, p, pages, first, kv_head);
            mask(s, room, p, first);
            __syncthreads();
            if (threadIdx.x < ROWS_A) {
                const uint32_t r = threadIdx.x;
                room.m[r] =
                    mt_max1(mt_max1(room.most[0][r], room.most[1][r]), mt_max1(room.most[2][r], room.most[3][r]));
            }
            __syncthreads();
            weigh<HD, MT>(s, room, first);
        }
        __syncthreads();
        if (threadIdx.x < ROWS_A) {
            const uint32_t r = threadIdx.x;
            const float l = ((room.sum[0][r] + room.sum[1][r]) + room.sum[2][r]) + room.sum[3][r], m = room.m[r];
            room.old[r] = 1;
            room.now[r] = 0;
            if (!(l == 0.0f && m == -INFINITY)) {
                const float most = mt_max1(whole_m, m);
                room.old[r] = mt_exp1(whole_m - most);
                room.now[r] = mt_exp1(m - most);
                whole_l = fmaf(whole_l, room.old[r], l * room.now[r]);
                whole_m = most;
            }
            if (parts && r < rows) {
                float *part = part_at(p, at, kv_head, seg, r, HD);
                part[0] = m;
                part[1] = l;
            }
        }
        __syncthreads();
        float o[MT][N][4];
        values<HD, MT>(o, room, p, pages, first, kv_head);
#pragma unroll
        for (int i = 0; i < MT; i++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const uint32_t row = i * 16 + h * 8 + lane / 4;
                const float old = room.old[row], now = room.now[row];
                const bool nothing = old == 1 && now == 0;
#pragma unroll
                for (int j = 0; j < N; j++)
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const float x = o[i][j][h * 2 + e];
                        if (parts) { /* columns of n-tile j: (lane % 4 * 2 + e) * N + j */
                            if (row < rows)
                                part_at(p, at, kv_head, seg, row,
                                        HD)[4 + warp * (HD / 4) + (lane % 4 * 2 + e) * N + j] = x;
                        } else if (!nothing) {
                            acc[i][j][h * 2 + e] = fmaf(acc[i][j][h * 2 + e], old, x * now);
                        }
                    }
            }
        __syncthreads();
    }
    if (parts)
        return;
    if (threadIdx.x < ROWS_A) {
        const uint32_t r = threadIdx.x;
        room.old[r] = 1;
        if (p.sinks && r < rows) {
            const float sink = p.sinks[kv_head * group + r % group], most = mt_max1(whole_m, sink);
            room.old[r] = mt_exp1(whole_m - most);
            whole_l = fmaf(whole_l, room.old[r], mt_exp1(sink - most));
        }
        room.l[r] = 1.0f / whole_l;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t row = i * 16 + h * 8 + lane / 4;
            if (row >= rows)
                continue;
            float *y =
                row_of(p.y, span.row + at.token + row / group) + (kv_head * group + row % group) * HD + warp * (HD / 4);
#pragma unroll
            for (int j = 0; j < N; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const float x = acc[i][j][h * 2 + e];
                    y[(lane % 4 * 2 + e) * N + j] = room.l[row] * (p.sinks ? fmaf(x, room.old[row], 0.0f) : x);
                }
        }
}

/* Parts of one row and head, ascending: a block each, a thread a column. */
KERNEL(attention_merge)(mt_cuda_attention p)
{
    const uint32_t group = p.heads / p.kv.heads, kv_head = blockIdx.y / group, hd = p.kv.head_dim, d = threadIdx.x;
    const tile_at at = find_tile(p, blockIdx.x / p.tile);
    const span_at span = at.span;
    const uint32_t token = at.token + blockIdx.x % p.tile, row = blockIdx.x % p.tile * group + blockIdx.y % group;
    const tile_range all = tile_seen(p, at);
    if (blockIdx.x % p.tile >= at.tokens || shares_of(p, at, all) == 1)
        return;
    const uint32_t from = all.any.lo / MT_SEGMENT;
    whole w = {-INFINITY, 0};
    float acc = 0;
    for (uint32_t seg = from; seg < from + segments_of(all); seg++) {
        const float *part = part_at(p, at, kv_head, seg, row, hd);
        float old, now;
        if (take_part(w, part[0], part[1], old, now))
            acc = fmaf(acc, old, part[4 + d] * now);
    }
    const float old = take_sink(w, p.sinks, blockIdx.y);
    if (p.sinks)
        acc = fmaf(acc, old, 0.0f);
    row_of(p.y, span.row + token)[blockIdx.y * hd + d] = 1.0f / w.l * acc;
}

#define ATTEND(hd, mt)                                 \
    KERNEL(attention_##hd##_##mt)(mt_cuda_attention p) \
    {                                                  \
        attend<hd, mt>(p);                             \
    }
ATTEND(64, 1)
ATTEND(64, 4)
ATTEND(128, 1)
ATTEND(128, 4)
ATTEND(256, 1)
ATTEND(256, 2)
