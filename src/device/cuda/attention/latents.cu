/* Latent attention: keys into pages, attention over pages of any kind by R8 with every sum by R6, and the merging of
   partial results. All heads share a position's key, whose first elements are its value.

   A block takes 16 rows of a tile, tokens times query heads, and a segment after the other, or one share of them. It
   gathers 16 positions at a time as fp32: once for the scores of all rows, once for the values of each four rows. */
#include "device/cuda/attention/kvq.cuh"
#include "device/cuda/attention/latents.cuh"

enum { L_ROWS = MT_CUDA_LATENT_ROWS, L_THREADS = MT_CUDA_LATENT_THREADS, L_STRIDE = MT_SEGMENT + 4, SOME = 4 };
enum { APART = 16, COLUMNS_EACH = MT_LIMIT_HEAD_DIM / L_THREADS }; /* APART: two keys of a warp in different banks */

static __device__ inline uint8_t *block_at(const mt_cuda_attention &p, const uint32_t *pages, uint32_t position)
{
    return p.kv.data + pages[position / p.kv.page_tokens] * p.kv.page_bytes + p.layer * p.kv.block;
}

KERNEL(latent_write)(mt_cuda_latents l) /* x: keys; a block a row */
{
    follow_last();
    const mt_cuda_attention &p = l.p;
    const mt_cuda_kv &kv = p.kv;
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const uint32_t position = span.position + blockIdx.x - span.row, slot = position % kv.page_tokens;
    uint8_t *to = block_at(p, p.step.pages + span.pages[kv.group], position);
    for (uint32_t d = threadIdx.x; d < kv.head_stride; d += blockDim.x) {
        const float x = d < kv.head_dim ? row_of(p.x, blockIdx.x)[d] : 0.0f;
        if (kv.f32)
            ((float *)to)[(uint64_t)slot * kv.head_stride + d] = x;
        else
            ((uint16_t *)to)[(uint64_t)slot * kv.head_stride + d] = mt_bf16_from_f32(x);
    }
}

KERNEL(latent_write_q)(mt_cuda_latents l) /* two warps a row: the latent, and what else the key has */
{
    extern __shared__ float shared[];
    follow_last();
    const mt_cuda_attention &p = l.p;
    const mt_cuda_kv &kv = p.kv;
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const uint32_t position = span.position + blockIdx.x - span.row, second = threadIdx.x / 32;
    const uint32_t stride = l.stride[second], n = second ? kv.head_dim - l.latent : l.latent;
    float *y = shared + second * l.stride[0];
    if (n == 0)
        return;
    const float most = turned_from(y, row_of(p.x, blockIdx.x) + (second ? l.latent : 0), n, stride, 1.0f);
    put_integers(block_at(p, p.step.pages + span.pages[kv.group], position) + (second ? l.second : 0), kv.page_tokens,
                 position % kv.page_tokens, stride, kv.bits, y, most, false);
}

/* The key of a slot as fp32, or as much of it as is its value, from integers: by a warp, whose room is for the second
   vector. */
static __device__ inline void get_key(float *y, float *room, const mt_cuda_latents &l, const uint8_t *block,
                                      uint32_t slot, bool value)
{
    const mt_cuda_kv &kv = l.p.kv;
    const uint32_t lane = threadIdx.x % 32;
    get_integers(y, block, kv.page_tokens, slot, l.stride[0], kv.bits, false);
    if (value)
        return;
    if (l.stride[1])
        get_integers(room, block + l.second, kv.page_tokens, slot, l.stride[1], kv.bits, false);
    for (uint32_t d = l.latent + lane; d < kv.head_stride; d += 32)
        y[d] = d < kv.head_dim ? room[d - l.latent] : 0.0f;
}

/* 16 positions as fp32, a warp each; zeros where they are not seen. */
static __device__ inline void gather(float *y, float *room, const mt_cuda_latents &l, const uint32_t *pages,
                                     uint32_t first, range seen, bool value)
{
    const mt_cuda_kv &kv = l.p.kv;
    const uint32_t warp = threadIdx.x / 32, at = first + warp, slot = at % kv.page_tokens, stride = kv.head_stride;
    const bool there = at >= seen.lo && at < seen.hi;
    const uint8_t *block = there ? block_at(l.p, pages, at) : NULL;
    y += warp * (stride + APART);
    if (there && kv.bits) {
        get_key(y, room + warp * l.stride[1], l, block, slot, value);
        return;
    }
    for (uint32_t d = threadIdx.x % 32; d < (value ? l.latent : stride); d += 32)
        y[d] = !there   ? 0.0f
               : kv.f32 ? ((const float *)block)[(uint64_t)slot * stride + d]
                        : mt_f32_from_bf16(((const uint16_t *)block)[(uint64_t)slot * stride + d]);
}

typedef struct rows_seen {
    range row[L_ROWS];
    float old[L_ROWS], now[L_ROWS]; /* what is there counts, what comes; now below 0: nothing comes */
} rows_seen;

/* Scores of all rows and the 16 positions from t0 on: half a warp a position and eight rows. */
static __device__ inline void score(float *s, const float *q, const float *keys, const mt_cuda_attention &p,
                                    uint32_t t0)
{
    constexpr uint32_t EACH = L_ROWS / 2;
    const uint32_t half = threadIdx.x / 16, stride = p.kv.head_stride, row = half / 16 * EACH;
    const float *k = keys + half % 16 * (stride + APART), *x = q + row * (stride + APART);
    float lane[EACH] = {0};
    for (uint32_t i = threadIdx.x % 16; i < stride; i += 16) {
        const float v = k[i];
#pragma unroll
        for (uint32_t r = 0; r < EACH; r++)
            lane[r] = fmaf(x[r * (stride + APART) + i], v, lane[r]);
    }
#pragma unroll
    for (uint32_t r = 0; r < EACH; r++) {
        const float sum = fold16(lane[r]) * p.scale;
        if (threadIdx.x % 16 == 0)
            s[(row + r) * L_STRIDE + t0 + half % 16] = p.softcap != 0.0f ? mt_softcap1(sum, p.softcap) : sum;
    }
}

/* p of a row, by sixteen threads; returns m and l. */
static __device__ inline whole weigh(float *s, range seen, uint32_t first, bool rounded)
{
    const uint32_t lane = threadIdx.x % 16;
    whole part = {-INFINITY, 0};
    for (uint32_t t = lane; t < MT_SEGMENT; t += 16)
        if (first + t >= seen.lo && first + t < seen.hi)
            part.m = mt_max1(part.m, s[t]);
    for (int width = 8; width > 0; width /= 2)
        part.m = mt_max1(part.m, __shfl_xor_sync(0xffffffffu, part.m, width));
    for (uint32_t t = lane; t < MT_SEGMENT; t += 16) {
        const float x = first + t >= seen.lo && first + t < seen.hi ? mt_exp1(s[t] - part.m) : 0.0f;
        s[t] = rounded ? mt_bf16_rounded(x) : x;
        part.l += s[t];
    }
    part.l = fold16(part.l);
    return part;
}

static __device__ inline float *part_of(const mt_cuda_latents &l, const latent_work &w, uint32_t seg, uint32_t row)
{
    return part_at(l.p, w.at, 0, seg, row / w.heads * l.p.heads + w.head0 + row % w.heads, l.latent);
}

/* grid: (tiles, pieces of the heads, shares). Shared memory: queries and some keys [16][head_stride + 16] each, p
   [16][260], room for second vectors [16][stride[1]]. */
extern "C" __global__ void __launch_bounds__(L_THREADS) mtk_latent_any(const __grid_constant__ mt_cuda_latents l)
{
    extern __shared__ __align__(16) float shared[];
    __shared__ rows_seen rows;
    follow_last();
    const mt_cuda_attention &p = l.p;
    const uint32_t apart = p.kv.head_stride + APART, row = threadIdx.x / 16;
    const latent_work w = find_work(l);
    const bool rounded = !p.kv.f32 && !p.kv.bits, parts = w.shares > 1, owns = row < L_ROWS;
    float *q = shared, *some = q + L_ROWS * apart, *s = some + MT_LANES * apart, *room = s + L_ROWS * L_STRIDE;
    float acc[COLUMNS_EACH][L_ROWS] = {{0}};
    whole sum = {-INFINITY, 0}; /* of this thread's row */
    if (blockIdx.z >= w.shares)
        return;
    for (uint32_t i = threadIdx.x; i < L_ROWS * apart; i += L_THREADS) {
        const uint32_t r = i / apart, d = i % apart;
        const bool there = r < w.rows && d < p.kv.head_dim;
        const float x =
            there ? row_of(p.x, w.at.span.row + w.at.token + r / w.heads)[(w.head0 + r % w.heads) * p.kv.head_dim + d]
                  : 0.0f;
        q[i] = rounded ? mt_bf16_rounded(x) : x;
    }
    if (threadIdx.x < L_ROWS) {
        rows.row[threadIdx.x].lo = rows.row[threadIdx.x].hi = 0;
        if (threadIdx.x < w.rows)
            rows.row[threadIdx.x] = seen_by(p, w.at, w.at.token + threadIdx.x / w.heads);
    }
    for (uint32_t seg = w.seg0; seg < w.seg1; seg++) {
        const uint32_t first = seg * MT_SEGMENT, begin = w.seen.any.lo > first ? w.seen.any.lo - first : 0;
        const uint32_t from = begin / MT_LANES * MT_LANES, stop = min(w.seen.any.hi - first, (uint32_t)MT_SEGMENT);
        for (uint32_t t0 = from; t0 < stop; t0 += MT_LANES) {
            __syncthreads();
            gather(some, room, l, w.pages, first + t0, w.seen.any, false);
            __syncthreads();
            score(s, q, some, p, t0);
        }
        __syncthreads();
        if (owns) { /* whole warps */
            const whole part = weigh(s + row * L_STRIDE, rows.row[row], first, rounded);
            float old = 1, now = 0;
            const bool there = take_part(sum, part.m, part.l, old, now);
            if (threadIdx.x % 16 == 0) {
                rows.old[row] = old;
                rows.now[row] = there ? now : -1.0f;
                if (parts && row < w.rows) {
                    float *to = part_of(l, w, seg, row);
                    to[0] = part.m;
                    to[1] = part.l;
                }
            }
        }
#pragma unroll
        for (uint32_t c = 0; c < COLUMNS_EACH; c++) {
            const uint32_t d = c * L_THREADS + threadIdx.x;
#pragma unroll
            for (uint32_t r0 = 0; r0 < L_ROWS; r0 += SOME) {
                float lane[SOME][MT_LANES] = {{0}};
                for (uint32_t t0 = from; c * L_THREADS < l.latent && r0 < w.rows && t0 < stop; t0 += MT_LANES) {
                    __syncthreads();
                    gather(some, room, l, w.pages, first + t0, w.seen.any, true);
                    __syncthreads();
#pragma unroll
                    for (uint32_t i = 0; i < MT_LANES; i += 4) {
                        float v[4];
#pragma unroll
                        for (uint32_t j = 0; j < 4; j++)
                            v[j] = d < l.latent ? some[(i + j) * apart + d] : 0.0f;
#pragma unroll
                        for (uint32_t r = 0; r < SOME; r++) {
                            const float4 x = *(const float4 *)(s + (r0 + r) * L_STRIDE + t0 + i);
                            lane[r][i] = fmaf(x.x, v[0], lane[r][i]);
                            lane[r][i + 1] = fmaf(x.y, v[1], lane[r][i + 1]);
                            lane[r][i + 2] = fmaf(x.z, v[2], lane[r][i + 2]);
                            lane[r][i + 3] = fmaf(x.w, v[3], lane[r][i + 3]);
                        }
                    }
                }
                if (r0 >= w.rows || d >= l.latent)
                    continue;
#pragma unroll
                for (uint32_t r = 0; r < SOME; r++) {
                    const float o = mt_fold(lane[r]) + 0.0f;
                    if (parts && r0 + r < w.rows)
                        part_of(l, w, seg, r0 + r)[4 + d] = o;
                    if (rows.now[r0 + r] >= 0)
                        acc[c][r0 + r] = fmaf(acc[c][r0 + r], rows.old[r0 + r], o * rows.now[r0 + r]);
                }
            }
        }
    }
    if (parts)
        return;
    __syncthreads();
    if (owns && threadIdx.x % 16 == 0 && row < w.rows) {
        rows.old[row] = take_sink(sum, p.sinks, w.head0 + row % w.heads);
        rows.now[row] = 1.0f / sum.l;
    }
    __syncthreads();
#pragma unroll
    for (uint32_t c = 0; c < COLUMNS_EACH; c++) {
        const uint32_t d = c * L_THREADS + threadIdx.x;
#pragma unroll
        for (uint32_t r = 0; r < L_ROWS; r++)
            if (r < w.rows && d < l.latent)
                row_of(p.y, w.at.span.row + w.at.token + r / w.heads)[(w.head0 + r % w.heads) * l.latent + d] =
                    rows.now[r] * (p.sinks ? fmaf(acc[c][r], rows.old[r], 0.0f) : acc[c][r]);
    }
}

/* Parts of one row and head, ascending: a block each, a thread a column. */
KERNEL(latent_merge)(mt_cuda_latents l)
{
    follow_last();
    const mt_cuda_attention &p = l.p;
    const tile_at at = find_tile(p, blockIdx.x / p.tile);
    const uint32_t token = blockIdx.x % p.tile, head = blockIdx.y, d = threadIdx.x;
    const tile_range all = tile_seen(p, at);
    if (token >= at.tokens || shares_of(p, at, all) == 1 || d >= l.latent)
        return;
    const uint32_t from = all.any.lo / MT_SEGMENT;
    whole w = {-INFINITY, 0};
    float acc = 0;
#pragma unroll 4
    for (uint32_t seg = from; seg < from + segments_of(all); seg++) {
        const float *part = part_at(p, at, 0, seg, token * p.heads + head, l.latent);
        float old, now;
        if (take_part(w, part[0], part[1], old, now))
            acc = fmaf(acc, old, part[4 + d] * now);
    }
    const float old = take_sink(w, p.sinks, head);
    row_of(p.y, at.span.row + at.token + token)[head * l.latent + d] =
        1.0f / w.l * (p.sinks ? fmaf(acc, old, 0.0f) : acc);
}

/* The last elements of each head, turned; a block a row, a thread a pair or what is not turned. */
KERNEL(turn_ends)(const __grid_constant__ mt_cuda_ends p)
{
    follow_last();
    const uint32_t heads = p.x.cols / p.x_dim, half = p.table.data ? p.table.cols / 2 : 0;
    const uint32_t each = p.count - half; /* pairs, then single elements */
    for (uint32_t i = threadIdx.x; i < heads * each; i += blockDim.x) {
        const uint32_t h = i / each, j = i % each;
        const float *x = row_of(p.x, blockIdx.x) + (h + 1) * p.x_dim - p.count;
        float *y = row_of(p.y, blockIdx.x) + (h + 1) * p.y_dim - p.count;
        if (j >= half) {
            y[half + j] = x[half + j];
            continue;
        }
        const uint32_t low = p.pairs ? 2 * j : j, high = p.pairs ? 2 * j + 1 : j + half;
        const float *table = row_of(p.table, blockIdx.x), c = table[j], s = table[half + j];
        const float a = x[low], b = x[high];
        y[low] = fmaf(a, c, -(b * s));
        y[high] = fmaf(b, c, a * s);
    }
}
