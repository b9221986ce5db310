/* Shared by the kernels of attention on Hopper: items of work, the ring of stages that one warpgroup fills and others
   read, exp, masks, partial results. bf16_many_hopper.cu and bf16_few_hopper.cu say how these work together. */
#ifndef MT_DEVICE_CUDA_ATTENTION_HOPPER_CUH
#define MT_DEVICE_CUDA_ATTENTION_HOPPER_CUH

#include "device/cuda/attention/attention.cuh"
#include "device/cuda/common/ring.cuh"
#include "device/cuda/native/native.cuh"

enum { PRODUCERS = 128 }; /* threads that copy: the first warpgroup */

/* The item's tile, segments and whether they are all of them. */
typedef struct item {
    tile_at at;
    tile_range seen;
    uint32_t kv_head, seg0, seg1;
    bool parts;
    bool apart; /* its 64 rows are those of two key heads: each of two warpgroups has one */
} item;

/* The segments of an item whose tile is found, and what that sees: share number `share` of the tile's. False: nothing
   to do. */
static __device__ inline bool find_segments(const mt_cuda_attention &p, item &it, uint32_t share)
{
    const uint32_t shares = shares_of(p, it.at, it.seen), from = it.seen.any.lo / MT_SEGMENT;
    const uint32_t n = segments_of(it.seen);
    it.parts = shares > 1;
    it.seg0 = from + n * share / shares;
    it.seg1 = from + n * (share + 1) / shares;
    return share < shares && it.at.tokens;
}

/* Items: shares, tiles, key heads; only few tiles have more than the first share. The tiles of a prompt from the last
   to the first, since that sees most; where rows see what the step says, as they come, since the last may have fewer
   rows. False: nothing to do. */
static __device__ inline bool find_item(const mt_cuda_attention &p, uint32_t number, item &it)
{
    if (number >= p.items)
        return false;
    const uint32_t pairs = p.items / p.shares, share = number / pairs, rest = number % pairs;
    const uint32_t full = p.apart ? (p.tile_count - 1) * p.kv.heads : pairs;
    it.apart = rest >= full;
    it.kv_head = it.apart ? (rest - full) * 2 : rest % p.kv.heads;
    const uint32_t tile = it.apart ? p.tile_count - 1 : rest / p.kv.heads;
    it.at = find_tile(p, p.step.seen && !p.causal ? tile : p.tile_count - 1 - tile);
    it.seen = tile_seen(p, it.at);
    return find_segments(p, it, share);
}

/* The item of a block in a round: up and down by turns, so that blocks which are last in one round are first in the
   next. Where the last items are short, as those of a tile that is not full, they go to blocks that have had less. */
static __device__ inline uint32_t item_of(const mt_cuda_attention &p, uint32_t round)
{
    return round * gridDim.x + (round % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x);
}

/* ---- the ring ---- */

/* `users`: threads that free a stage. __syncthreads follows. */
template <int STAGES, typename room_type> static __device__ inline void make_barriers(room_type &room, unsigned users)
{
    if (threadIdx.x == 0) {
        init_ring(room.full, room.empty, STAGES, PRODUCERS, users);
        barriers_are_made();
    }
}

/* The first thing of all. */
template <int STAGES, typename room_type> static __device__ inline void start_barriers(room_type &room, unsigned users)
{
    make_barriers<STAGES>(room, users);
    __syncthreads();
    start_next();
}

/* The first numbers of the step's tables of pages, one a lane. */
static __device__ inline uint32_t load_first(const mt_cuda_attention &p)
{
    static_assert(MT_CUDA_PAGES_FIRST == 32, "one a lane");
    return p.step.pages[threadIdx.x % 32];
}

/* The numbers of a segment's pages, a page a lane: to look each up when it is copied would take longer than to copy it.
   Any page that is there where nothing is seen. FIRST: `known` is what load_first gave. Nothing is computed here with
   what is loaded, so that nothing waits for it before it is needed. */
template <bool FIRST>
static __device__ inline uint32_t find_pages(const mt_cuda_attention &p, const item &it, uint32_t seg, uint32_t known)
{
    const uint32_t tokens = p.kv.page_tokens, count = MT_SEGMENT / tokens, page = seg * count + threadIdx.x % 32;
    const bool there =
        threadIdx.x % 32 < count && page * tokens < it.seen.any.hi && (page + 1) * tokens > it.seen.any.lo;
    const uint32_t index = it.at.span.pages + page;
    uint32_t number = FIRST ? __shfl_sync(0xffffffffu, known, index % 32) : 0;
    if (there && (!FIRST || index >= MT_CUDA_PAGES_FIRST))
        number = p.step.pages[index];
    return number;
}

/* Where the layer's blocks of a page are. */
static __device__ inline unsigned long long page_at(const mt_cuda_attention &p, uint32_t number)
{
    return (unsigned long long)(p.kv.data + number * p.kv.page_bytes + (uint64_t)p.layer * 2 * p.kv.heads * p.kv.block);
}

/* Positions [first, first + N) of a segment into a stage; zeros where the tile sees nothing. For whole warps. */
template <int HD, int N>
static __device__ inline void copy_stage(const mt_cuda_attention &p, void *stage, const item &it,
                                         unsigned long long pages, uint32_t segment, uint32_t first, uint32_t block)
{
    constexpr uint32_t chunks = HD / 8; /* of 16 bytes */
    const uint32_t thread = threadIdx.x % PRODUCERS, within = p.kv.page_tokens - 1, shift = __popc(within);
    const uint32_t unseen = it.seen.any.lo - segment, seen = it.seen.any.hi - it.seen.any.lo;
    pages += block * p.kv.block;
    if constexpr (32 % chunks == 0) { /* a warp has neighbours, eight at a time, which are of one page */
        constexpr uint32_t rows = 32 / chunks, own = N / (PRODUCERS / 32);
        const uint32_t lane = thread % 32, chunk = lane % chunks, key0 = thread / 32 * own;
        const uint32_t to = shared_address(stage) + chunk / 8 * (N * 128) + (key0 + lane / chunks) * 128;
        const uint32_t turned = (chunk % 8 ^ lane / chunks) * 16;
#pragma unroll 1
        for (uint32_t i = 0; i < own; i += 8) {
            const uint32_t slot = first + key0 + i;
            const uint8_t *from = (const uint8_t *)__shfl_sync(0xffffffffu, pages, slot >> shift) +
                                  (((slot & within) + lane / chunks) * (HD * 2) + chunk * 16);
#pragma unroll
            for (uint32_t j = 0; j < 8; j += rows)
                copy_or_clear(to + (i + j) * 128 + (turned ^ j * 16), from + j * (HD * 2),
                              slot + lane / chunks + j - unseen < seen);
        }
    } else {
        constexpr uint32_t rows = PRODUCERS / chunks, used = rows * chunks; /* at a time */
        const uint32_t chunk = thread % chunks, to = shared_address(stage) + chunk / 8 * (N * 128);
#pragma unroll 4
        for (uint32_t i = 0; i < (N + rows - 1) / rows; i++) {
            const uint32_t key = thread / chunks + i * rows, slot = first + key;
            const uint8_t *page = (const uint8_t *)__shfl_sync(0xffffffffu, pages, slot >> shift);
            if (key < N && thread < used)
                copy_or_clear(to + key * 128 + ((chunk % 8) ^ (key % 8)) * 16,
                              page + ((slot & within) * (HD * 2) + chunk * 16), slot - unseen < seen);
        }
    }
}

/* Halves of a segment that something is seen of: what comes after them has p = 0, which adds nothing. */
static __device__ inline uint32_t halves_of(const item &it, uint32_t seg)
{
    return it.seen.any.hi > seg * MT_SEGMENT + MT_SEGMENT / 2 ? 2 : 1;
}

/* Whether the item's segments hold positions of this step. */
static __device__ inline bool holds_new(const item &it)
{
    return it.seg0 < it.seg1 && min(it.seg1 * MT_SEGMENT, it.seen.any.hi) > it.at.span.position;
}

/* Whether kernels shortly before may have written some of a segment: where the step says what is seen, as in towers,
   all of it. */
static __device__ inline bool may_be_new(const mt_cuda_attention &p, const item &it, uint32_t seg)
{
    return p.step.seen || min((seg + 1) * MT_SEGMENT, it.seen.any.hi) > it.at.span.position;
}

/* Everything a block needs, in the order in which it does, N positions a stage: keys of a segment, then its values; or,
   TWICE, the keys of halves that are seen, then them once more, each followed by its values. What this step has not
   written is fetched while the kernel before still runs: pages of earlier positions were written before the step's
   tables were copied, and that copy waits for all kernels. */
template <int HD, int N, int STAGES, bool TWICE, typename room_type>
static __device__ inline void copy_all(const mt_cuda_attention &p, room_type &room)
{
    ring r = {0, 1}; /* parity 1: all stages are empty at first */
    item it;
    for (uint32_t round = 0; round * gridDim.x < p.items; round++) {
        if (!find_item(p, item_of(p, round), it))
            continue;
        uint32_t next = find_pages<false>(p, it, it.seg0, 0);
        for (uint32_t seg = it.seg0; seg < it.seg1; seg++) {
            const unsigned long long pages = page_at(p, next);
            const uint32_t keys = TWICE ? halves_of(it, seg) * (MT_SEGMENT / 2 / N) : MT_SEGMENT / N; /* stages */
            const uint32_t each = (TWICE ? 3 : 2) * keys;
            if (seg + 1 < it.seg1)
                next = find_pages<false>(p, it, seg + 1, 0);
            if (may_be_new(p, it, seg))
                wait_for_last();
            for (uint32_t part = 0; part < (it.apart ? 2 : 1) * each; part++) {
                const uint32_t head = part >= each, at = part - head * each, later = at >= keys ? at - keys : 0;
                const uint32_t value = TWICE ? later % 2 : at >= keys;
                const uint32_t from = at < keys ? at : TWICE ? later / 2 : later;
                barrier_wait(&room.empty[r.stage], r.parity);
                copy_stage<HD, N>(p, room.stage[r.stage], it, pages, seg * MT_SEGMENT, from * N,
                                  value * p.kv.heads + it.kv_head + head);
                barrier_copied(&room.full[r.stage]);
                step_ring<STAGES>(r);
            }
        }
    }
}

/* ---- rows ---- */

/* This thread's rows: lane / 4 of its warp's 16, and 8 after it where rows are not few. */
typedef struct own_rows {
    uint32_t row[2]; /* of the tile */
    range seen[2];
    bool there[2];
} own_rows;

/* Which 16 rows of a tile a warp has. */
static __device__ inline uint32_t slab_of(const item &it)
{
    const uint32_t warp = (threadIdx.x - PRODUCERS) / 32;
    return it.apart ? warp % 4 : warp;
}

/* Number `slab` of 16 rows. */
template <bool FEW>
static __device__ inline own_rows find_rows(const mt_cuda_attention &p, const item &it, uint32_t slab)
{
    const uint32_t lane = threadIdx.x % 32, group = p.heads / p.kv.heads;
    const uint32_t first = slab * (FEW ? 8 : 16), rows = it.at.tokens * group;
    own_rows own;
#pragma unroll
    for (int h = 0; h < (FEW ? 1 : 2); h++) {
        own.row[h] = first + lane / 4 + h * 8;
        own.there[h] = own.row[h] < rows;
        own.seen[h].lo = own.seen[h].hi = 0;
        if (own.there[h])
            own.seen[h] = seen_by(p, it.at, it.at.token + own.row[h] / group);
    }
    return own;
}

/* R7's exp for eight x <= 0 at a time, since each by itself is a chain, where less than 2^-126 is as good as 0. */
static __device__ inline void exp_exact(float (&x)[8])
{
    float z[8], r[8], p[8];
#define EACH(...) _Pragma("unroll") for (int i = 0; i < 8; i++) __VA_ARGS__
    EACH(x[i] = max_nan(x[i], -88.029f);) /* 2^-127, and then a little: a subnormal number that rounds to 0 */
    EACH(z[i] = fmaf(x[i], MT_LOG2E, MT_ROUND_MAGIC);)
    EACH(p[i] = z[i] - MT_ROUND_MAGIC;)
    EACH(r[i] = fmaf(p[i], -MT_LN2_HIGH, x[i]);)
    EACH(r[i] = fmaf(p[i], -MT_LN2_LOW, r[i]);)
    EACH(p[i] = fmaf(MT_EXP_C4, r[i], MT_EXP_C3);)
    EACH(p[i] = fmaf(p[i], r[i], MT_EXP_C2);)
    EACH(p[i] = fmaf(p[i], r[i], MT_EXP_C1);)
    EACH(p[i] = fmaf(p[i], r[i], MT_EXP_C0);)
    EACH(x[i] = r[i] * r[i];)
    EACH(p[i] = fmaf(x[i], p[i], r[i]);)
    EACH(p[i] = p[i] + 1.0f;)
    EACH(x[i] =
             mt_f32_from_bits(mt_f32_bits(p[i]) + (mt_f32_bits(z[i]) << 23));) /* p in [0.7, 1.5): takes the exponent */
#undef EACH
}

/* bf16(exp(x)) of R7 for finite x <= 0, eight at a time, as pairs; less than 2^-126 is 0.

   What is wanted is a number of 8 bits, for which the card's own power of 2 is good enough nearly always: with one step
   that makes good what x log2(e) lost in rounding, it differs from R7's by less than NEAR in the last place. That
   matters where it is so close to the middle between two numbers of 8 bits. Where one of a warp's is, its eight are
   computed anew by R7, so that a result depends on x alone. Every x was tried on the card. */
#define NEAR 8u
#define BOTH 0x10001u /* times a half: two of it */

/* Quickly; `doubt` is shifted by a bit in each half, of which the highest then says whether this is to be done anew. */
static __device__ inline void weigh_quickly(uint32_t (&p)[4], const float *x, uint32_t &doubt)
{
    float e[8];
    uint32_t near = 0x7fff * BOTH;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const float y = x[i] * MT_LOG2E;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e[i]) : "f"(y));
        e[i] = fmaf(e[i], fmaf(y, -MT_LN2_HIGH, x[i]), e[i]);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        p[i] = two_halves(e[i * 2], e[i * 2 + 1]);
        const uint32_t low = __byte_perm(mt_f32_bits(e[i * 2]), mt_f32_bits(e[i * 2 + 1]), 0x5410);
        near = __viaddmin_u16x2(low, (0x8000 + NEAR) * BOTH, near);
    }
    doubt = (doubt >> 1 & 0x7fff7fffu) | (~(near + (0x7fff - 2 * NEAR) * BOTH) & 0x80008000u);
}

/* The same for K times eight. For whole warps. What is done anew is compiled once: code is fetched more slowly than it
   is executed. */
template <int K> static __device__ inline void weights_of(uint32_t (&p)[K][4], const float (&x)[8 * K])
{
    uint32_t doubt = 0;
#pragma unroll
    for (int k = 0; k < K; k++)
        weigh_quickly(p[k], x + k * 8, doubt);
    doubt = __reduce_or_sync(0xffffffffu, doubt | doubt >> 16) >> (16 - K);
#pragma unroll 1
    for (; doubt; doubt &= doubt - 1) {
        const int which = __ffs((int)doubt) - 1;
        float e[8];
        uint32_t now[4];
#pragma unroll
        for (int k = 0; k < K; k++)
            if (k == which) {
#pragma unroll
                for (int i = 0; i < 8; i++)
                    e[i] = x[k * 8 + i];
#pragma unroll
                for (int i = 0; i < 4; i++)
                    now[i] = p[k][i];
            }
        exp_exact(e);
#pragma unroll
        for (int i = 0; i < 4; i++)
            now[i] = two_halves(now[i] & 0xffffu ? e[i * 2] : 0.0f, now[i] >> 16 ? e[i * 2 + 1] : 0.0f);
#pragma unroll
        for (int k = 0; k < K; k++)
            if (k == which)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    p[k][i] = now[i];
    }
}

/* The score of what is not seen: finite, and far below all others. */
#define UNSEEN (-0x1p100f)

/* The number to subtract from a row's scores, of which `most` is the largest; m becomes R8's. A row that sees nothing
   has p = 0. */
static __device__ inline float scaled_most(float most, float scale, float &m)
{
    m = most == UNSEEN ? -INFINITY : most * scale;
    return most == UNSEEN ? 0.0f : m;
}

/* Masks N keys. */
template <bool FEW, int N>
static __device__ inline void mask_scores(float (&s)[N / 2], const own_rows &own, uint32_t first)
{
    const uint32_t c = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int e = 0; e < (FEW ? 2 : 4); e++) {
            const uint32_t at = first + j * 8 + c + e % 2;
            s[j * 4 + e] = at >= own.seen[e / 2].lo && at < own.seen[e / 2].hi ? s[j * 4 + e] : UNSEEN;
        }
}

/* The sum or the largest of what the four threads of a row have. */
static __device__ inline float quad_most(float x)
{
    x = max_nan(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return max_nan(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

static __device__ inline float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/* Row h of a thread as it lies in registers, N columns, of which there are n. */
template <int N>
static __device__ inline void store_row(float *to, const float (&o)[N / 2], int h, float factor, uint32_t n)
{
    const uint32_t c = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < N / 8; j++)
        if (j * 8 + c < n)
            *(float2 *)(to + j * 8 + c) = make_float2(factor * o[j * 4 + h * 2], factor * o[j * 4 + h * 2 + 1]);
}

/* ---- parts ---- */

/* Adds 1; what there was. What the block's threads wrote before a barrier that this thread came from is there for the
   threads of who adds later, after a barrier of theirs. */
static __device__ inline uint32_t count_block(uint32_t *count)
{
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0,[%1],1;" : "=r"(before) : "l"(count) : "memory");
    return before;
}

/* Whether all other blocks have left their parts. All computing threads; the barrier itself tells them what the one
   that counts has found. */
template <int THREADS_C> static __device__ inline bool last_of_all(const mt_cuda_attention &p, const item &it)
{
    uint32_t last = 0;
    named_barrier(3, THREADS_C);
    if (threadIdx.x == PRODUCERS) {
        uint32_t *count = p.counts + it.at.index * p.kv.heads + it.kv_head;
        last = count_block(count) == shares_of(p, it.at, it.seen) - 1;
        if (last)
            *count = 0;
    }
    return any_at_barrier(3, THREADS_C, last);
}

/* Four columns of row i, from `column` on, packed for `native`; sixteen lanes have a segment. For whole warps; there:
   whether the lane's columns are. */
static __device__ inline void pack_four(const mt_cuda_packed &to, uint32_t i, uint32_t column, const float (&x)[4],
                                        bool there)
{
    float most = fmaxf(fmaxf(fabsf(x[0]), fabsf(x[1])), fmaxf(fabsf(x[2]), fabsf(x[3])));
#pragma unroll
    for (int width = 8; width > 0; width /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, width));
    const uint32_t unit = unit_of(most), segment = column / MT_NATIVE_SEGMENT;
    const float factor = into_unit(unit);
    if (!there)
        return;
    __half2 both[2] = {__floats2half2_rn(x[0] * factor, x[1] * factor),
                       __floats2half2_rn(x[2] * factor, x[3] * factor)};
    *(uint2 *)(segment_at(to, i, segment) + swizzled(i % to.rows, column / 8 % 8) + column % 8 * 2) = *(uint2 *)both;
    if (column % MT_NATIVE_SEGMENT == 0)
        units_at(to, i, segment / 4)[segment % 4] = (uint8_t)unit;
}

/* Merges the partial results of a row. By one warp. */
template <int HD, int AHEAD>
static __device__ inline void merge_row(const mt_cuda_attention &p, const item &it, uint32_t row)
{
    const uint32_t group = p.heads / p.kv.heads, head = it.kv_head * group + row % group, hd = p.kv.head_dim;
    const float *parts = part_at(p, it.at, it.kv_head, it.seen.any.lo / MT_SEGMENT, row, HD);
    const uint32_t i = it.at.span.row + it.at.token + row / group;
    float *y = row_of(p.y, i) + head * hd;
    for (uint32_t column = threadIdx.x % 32 * 4; column < (HD + 127) / 128 * 128; column += 128) {
        float4 acc;
        whole w = merge_columns<AHEAD>(p, parts, segments_of(it.seen), column, HD, acc);
        const float old = take_sink(w, p.sinks, head);
        float x[4] = {acc.x, acc.y, acc.z, acc.w};
#pragma unroll
        for (int e = 0; e < 4; e++) {
            x[e] = 1.0f / w.l * (p.sinks ? fmaf(x[e], old, 0.0f) : x[e]);
            if (column + e < hd && !p.packed_only)
                y[column + e] = x[e];
        }
        if (p.packed.q) /* where heads have no columns beyond hd */
            pack_four(p.packed, i, head * hd + column, x, column < hd);
    }
}

#endif
