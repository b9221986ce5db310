/* Attention over bf16 pages (R8) on Hopper for few rows, as answers have: at most 32 of a key head.

   Items are those of bf16_many_hopper.cu, one warpgroup copies for the other as there, and every sum is the same: 16
   elements or positions at a time, ascending; l has those of four threads. But here the tensor cores' rows are keys,
   then columns of the head, and their columns are eight rows of queries, so that eight warps share what few rows there
   are: for scores and exp each has an eighth of a segment's keys, for results sixteen columns. p goes from one to the
   other through shared memory. What a row gets does not depend on the rows beside it.

   The copying warpgroup finds a block's items and hands them to the other in shared memory: the next one as soon as the
   first segment of the present one is on its way. So its copies follow without a gap, and its queries are loaded before
   the last segment of the present one is computed.

   A stage is half a segment's keys or values. Halves of which no row sees anything have no stages: their p is 0, and
   sums that begin with +0 stay what they are when 0 is added.

   Where heads are made here, too (attention_asked), all of a segment but this step's own keys and values is copied
   while the kernel before still runs and the heads are made; those go from the threads that make them to the stage, and
   to their pages, which only later steps read. */
#include "device/cuda/attention/attention.cuh"
#include "device/cuda/rows/activation.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/attention/hopper.cuh"

enum { HALF = MT_SEGMENT / 2, COMPUTING = 256, WARPS = COMPUTING / 32, EIGHTS = 4 }; /* EIGHTS: of rows */

template <int HD> constexpr int RING = 6; /* stages: a segment has four, or two */

/* How many items shared memory has places for: those whose keys or values are in the ring, at most three, since each
   item takes two stages or more, and the item that comes next. Earlier items are computed, and their places free. */
template <int HD> constexpr int ITEMS = RING<HD> / 2 + 1;

template <int HD> struct few_room {
    static const int blocks = (HD + 63) / 64; /* of 64 columns */
    uint8_t stage[RING<HD>][blocks][HALF][128];
    uint8_t q[EIGHTS * 8][HD * 2 + 16]; /* rows apart by 16 bytes more: neighbours are in different banks */
    uint8_t p[8][MT_SEGMENT * 2 + 16];
    float most[WARPS][8];
    float largest[2][WARPS][8];                /* of results, for eights by turns */
    uint8_t made[2][MT_CUDA_ROW_ROWS][HD * 2]; /* keys and values of this step, where they are made here */
    uint64_t full[RING<HD>], empty[RING<HD>], found[ITEMS<HD>];
    item items[ITEMS<HD>];
};

/* The results that a thread holds for eight rows: two rows, and of its warp's sixteen columns lane / 4 and the eighth
   behind it, first of one row, then of the other. Where a head has fewer than 128 columns, the last warps have none. */
typedef struct few_result {
    float o[4];
} few_result;

/* What a thread keeps of its rows from segment to segment of an item. */
typedef struct few_progress {
    whole w[2];
    few_result acc;
} few_progress;

/* The number of this warp among those that compute. */
static __device__ inline uint32_t own_warp(void)
{
    return (threadIdx.x - PRODUCERS) / 32;
}

/* all[which], where a register cannot be an index. */
template <typename type> static __device__ inline type pick(const type (&all)[EIGHTS], uint32_t which)
{
    type one = all[0];
#pragma unroll
    for (uint32_t i = 1; i < EIGHTS; i++)
        if (i == which)
            one = all[i];
    return one;
}

template <typename type> static __device__ inline void put(type (&all)[EIGHTS], uint32_t which, const type &one)
{
#pragma unroll
    for (uint32_t i = 0; i < EIGHTS; i++)
        if (i == which)
            all[i] = one;
}

/* Which halves of a segment some row may see something of: from lo to before hi, at least one. */
static __device__ inline range halves_seen(const range &any, uint32_t seg)
{
    const uint32_t middle = seg * MT_SEGMENT + HALF;
    range halves = {any.lo >= middle && any.hi > middle, any.hi > middle ? 2u : 1u};
    return halves;
}

/* ---- copying ---- */

/* Keys of a segment's halves, then their values. */
template <int HD>
static __device__ inline void copy_segment(const mt_cuda_attention &p, few_room<HD> &room, const item &it,
                                           const range &halves, uint32_t seg, unsigned long long pages, ring &r)
{
    const uint32_t count = halves.hi - halves.lo;
#pragma unroll 1
    for (uint32_t i = 0; i < 2 * count; i++) {
        const uint32_t value = i >= count, half = halves.lo + i - value * count;
        barrier_wait(&room.empty[r.stage], r.parity);
        copy_stage<HD, HALF>(p, room.stage[r.stage], it, pages, seg * MT_SEGMENT, half * HALF,
                             value * p.kv.heads + it.kv_head);
        barrier_copied(&room.full[r.stage]);
        step_ring<RING<HD>>(r);
    }
}

/* As find_item does, but here each span is one tile (few_rows in attention.c). Each lane reads a span while it is
   computed which one is the item's. */
static __device__ inline bool find_few(const mt_cuda_attention &p, uint32_t number, item &it)
{
    const mt_cuda_span *own = &p.step.span[min(threadIdx.x % 32, p.step.spans - 1)];
    uint32_t rows = own->rows, row = own->row, position = own->position, pages = own->pages[p.kv.group];
    if (number >= p.items)
        return false;
    const uint32_t pairs = p.tile_count * p.kv.heads, share = number < pairs ? 0 : number / pairs;
    const uint32_t rest = number - share * pairs, tile = rest / p.kv.heads;
    const uint32_t index = p.step.seen && !p.causal ? tile : p.tile_count - 1 - tile;
    if (index >= 32) {
        own = &p.step.span[index];
        rows = own->rows, row = own->row, position = own->position, pages = own->pages[p.kv.group];
    }
    it.apart = false;
    it.kv_head = rest - tile * p.kv.heads;
    it.at.index = index;
    it.at.token = 0;
    it.at.span.rows = it.at.tokens = __shfl_sync(0xffffffffu, rows, index % 32);
    it.at.span.row = __shfl_sync(0xffffffffu, row, index % 32);
    it.at.span.position = __shfl_sync(0xffffffffu, position, index % 32);
    it.at.span.pages = __shfl_sync(0xffffffffu, pages, index % 32);
    if (it.at.tokens == 1)
        it.seen.any = it.seen.all = seen_by(p, it.at, 0);
    else
        it.seen = tile_seen(p, it.at);
    return find_segments(p, it, share);
}

/* The block's next item that has segments, from a round on, which becomes the one after it. None is left: an item
   without tokens. */
static __device__ inline void next_item(const mt_cuda_attention &p, uint32_t &round, item &it)
{
    while (round * gridDim.x < p.items)
        if (find_few(p, item_of(p, round++), it) && it.seg0 < it.seg1)
            return;
    it.at.tokens = 0;
}

/* As copy_all does, from the first item on, and finds all others. Where the block's other threads make this step's keys
   and values (MADE), they put these where zeros come here. known: what load_first gave. */
template <int HD, bool MADE>
static __device__ inline void copy_few(const mt_cuda_attention &p, few_room<HD> &room, item it, uint32_t round,
                                       uint32_t known)
{
    ring r = {0, 1}, items = {0, 0}; /* parity 1: all stages are empty at first */
    item after;
    range seen, seen_after;
    uint32_t next, next_after; /* pages of the next segment */
    const auto begin = [&](item &one, range &any, uint32_t &pages) {
        any = one.seen.any;
        if (MADE)
            one.seen.any.hi = max(any.lo, min(any.hi, one.at.span.position));
        pages = one.at.tokens ? find_pages<MADE>(p, one, one.seg0, known) : 0;
    };
    begin(it, seen, next);
    while (it.at.tokens) {
        for (uint32_t seg = it.seg0; seg < it.seg1; seg++) {
            const unsigned long long pages = page_at(p, next);
            if (seg + 1 < it.seg1)
                next = find_pages<MADE>(p, it, seg + 1, known);
            if (!MADE && may_be_new(p, it, seg))
                wait_for_last();
            copy_segment<HD>(p, room, it, halves_seen(seen, seg), seg, pages, r);
            if (seg > it.seg0)
                continue;
            next_item(p, round, after);
            if (threadIdx.x == 0) {
                room.items[items.stage] = after;
                barrier_arrive(&room.found[items.stage]);
            }
            step_ring<ITEMS<HD>>(items);
            begin(after, seen_after, next_after);
        }
        it = after;
        seen = seen_after;
        next = next_after;
    }
}

/* ---- a segment ---- */

/* Eight numbers of a query, one of HD / 8 pieces of a row; zeros where there is none. */
template <int HD>
static __device__ inline void load_piece(float (&x)[8], const mt_cuda_attention &p, const item &it, uint32_t piece)
{
    const uint32_t group = p.heads / p.kv.heads, hd = p.kv.head_dim, row = piece / (HD / 8), d = piece % (HD / 8) * 8;
    const bool there = row < it.at.tokens * group;
    const float *from =
        row_of(p.x, it.at.span.row + it.at.token + row / group) + (it.kv_head * group + row % group) * hd + d;
#pragma unroll
    for (uint32_t e = 0; e < 8; e++)
        x[e] = there && d + e / 2 * 2 < hd ? from[e] : 0;
}

template <int HD> static __device__ inline void put_piece(few_room<HD> &room, const float (&x)[8], uint32_t piece)
{
    *(uint4 *)&room.q[piece / (HD / 8)][piece % (HD / 8) * 16] =
        make_uint4(two_halves(x[0], x[1]), two_halves(x[2], x[3]), two_halves(x[4], x[5]), two_halves(x[6], x[7]));
}

/* The queries as bf16; zeros where there are none. Of the first eight rows each thread has its piece already. */
template <int HD>
static __device__ inline void put_queries(const mt_cuda_attention &p, few_room<HD> &room, const item &it,
                                          const float (&first)[8])
{
    const uint32_t rows = it.at.tokens * (p.heads / p.kv.heads), thread = threadIdx.x - PRODUCERS;
    named_barrier(1, COMPUTING); /* all are done with the last */
    put_piece<HD>(room, first, thread);
#pragma unroll 1
    for (uint32_t piece = thread + COMPUTING; piece < (rows + 7) / 8 * HD; piece += COMPUTING) {
        float x[8];
        load_piece<HD>(x, p, it, piece);
        put_piece<HD>(room, x, piece);
    }
    named_barrier(1, COMPUTING);
}

/* Which head sixteen threads make, number n of an item's `all`: queries, then keys of this step, then values. */
typedef struct head_at {
    uint32_t token, number; /* of all query heads, or of all key heads */
    bool there, query, value;
} head_at;

static __device__ inline head_at find_head(const mt_cuda_attention &a, const item &it, uint32_t n, uint32_t all)
{
    const uint32_t group = a.heads / a.kv.heads, tokens = it.at.tokens, rows = tokens * group;
    head_at h;
    h.there = n < all;
    h.query = n < rows;
    h.value = n >= rows + tokens;
    h.token = !h.there ? 0 : h.query ? n / group : n - rows - (h.value ? tokens : 0);
    h.number = h.query ? it.kv_head * group + n % group : it.kv_head;
    return h;
}

/* What a thread reads for a head: its lane of R6. */
template <int HD> struct head_in {
    static const uint32_t count = HD / 16;
    const float *from, *table; /* table: NULL: it is not turned */
    bool normed;
    float x[count], w[count], cosine[count / 2], sine[count / 2];
    uint32_t page; /* where keys and values go */
};

/* What no kernel of this step writes, and where the rest is. Nothing is computed with what is loaded here, so that
   wait_for_last does not wait for it as well; and addresses are there before it. */
template <int HD>
static __device__ inline void load_fixed(head_in<HD> &in, const mt_cuda_asked &p, const item &it, const head_at &at)
{
    const mt_cuda_attention &a = p.attention;
    const mt_cuda_heads &h = p.heads;
    const uint32_t l = threadIdx.x % 16, row = it.at.span.row + at.token, position = it.at.span.position + at.token;
    const float *q = row_of(h.x[0], row), *k = row_of(h.x[1], row), *v = row_of(h.v, row);
    const float *wq = h.w[0].data, *wk = h.w[1].data, *w = at.value ? NULL : at.query ? wq : wk;
    in.from = (at.query ? q : at.value ? v : k) + at.number * HD + l;
    in.table = !at.value && h.table.data ? row_of(h.table, row) + l : NULL;
    in.normed = w;
    in.page = at.there && !at.query ? a.step.pages[it.at.span.pages + position / a.kv.page_tokens] : 0;
#pragma unroll
    for (uint32_t i = 0; i < in.count; i++)
        in.w[i] = w ? w[l + i * 16] : 0;
}

template <int HD> static __device__ inline void load_head(head_in<HD> &in, const head_at &at)
{
#pragma unroll
    for (uint32_t i = 0; i < in.count; i++)
        in.x[i] = at.there ? in.from[i * 16] : 0;
#pragma unroll
    for (uint32_t i = 0; i < in.count / 2; i++) {
        in.cosine[i] = in.table ? in.table[i * 16] : 0;
        in.sine[i] = in.table ? in.table[i * 16 + HD / 2] : 0;
    }
}

/* Queries to where they are multiplied; keys and values to where put_made finds them, and to their pages, for steps to
   come, if their positions are the item's. */
template <int HD>
static __device__ inline void put_head(const head_in<HD> &in, const mt_cuda_attention &a, few_room<HD> &room,
                                       const item &it, const head_at &at)
{
    const uint32_t l = threadIdx.x % 16, position = it.at.span.position + at.token;
    if (!at.there)
        return;
    if (at.query) {
        const uint32_t group = a.heads / a.kv.heads;
        uint8_t *to = room.q[at.token * group + at.number - it.kv_head * group];
#pragma unroll
        for (uint32_t i = 0; i < in.count; i++)
            *(uint16_t *)(to + (l + i * 16) * 2) = (uint16_t)two_halves(in.x[i], 0);
        return;
    }
    uint16_t *to = (uint16_t *)(a.kv.data + (uint64_t)in.page * a.kv.page_bytes +
                                ((a.layer * 2 + at.value) * (uint64_t)a.kv.heads + it.kv_head) * a.kv.block +
                                (uint64_t)(position % a.kv.page_tokens) * HD * 2);
    const bool own = position >= it.seg0 * MT_SEGMENT && position < it.seg1 * MT_SEGMENT;
#pragma unroll
    for (uint32_t i = 0; i < in.count; i++) {
        const uint16_t half = mt_bf16_from_f32(in.x[i]);
        ((uint16_t *)room.made[at.value][at.token])[l + i * 16] = half;
        if (own)
            to[l + i * 16] = half;
    }
}

/* The queries, normed and turned here, and, where the item's segments hold positions of this step, its keys and values.
   Sixteen threads have a head; data of the next head are loaded meanwhile. */
template <int HD> static __device__ inline void make_heads(const mt_cuda_asked &p, few_room<HD> &room, const item &it)
{
    constexpr uint32_t AT_ONCE = COMPUTING / 16, CHUNKS = HD / 8;
    const mt_cuda_attention &a = p.attention;
    const uint32_t thread = threadIdx.x - PRODUCERS, tokens = it.at.tokens, rows = tokens * (a.heads / a.kv.heads);
    const uint32_t all = rows + (holds_new(it) ? 2 * tokens : 0);
    head_at at = find_head(a, it, thread / 16, all);
    head_in<HD> in;
    load_fixed(in, p, it, at);
    wait_for_last();
    load_head(in, at);
    named_barrier(1, COMPUTING); /* all are done with the last */
#pragma unroll 1
    for (uint32_t i = rows * CHUNKS + thread; i < (rows + 7) / 8 * 8 * CHUNKS; i += COMPUTING)
        *(uint4 *)&room.q[i / CHUNKS][i % CHUNKS * 16] = make_uint4(0, 0, 0, 0);
#pragma unroll 1
    for (uint32_t first = 0; first < all; first += AT_ONCE) {
        head_at after;
        head_in<HD> next;
        if (first + AT_ONCE < all) {
            after = find_head(a, it, first + AT_ONCE + thread / 16, all);
            load_fixed(next, p, it, after);
            load_head(next, after);
        }
        float factor[in.count];
#pragma unroll
        for (uint32_t i = 0; i < in.count; i++)
            factor[i] = p.heads.offset + in.w[i];
        turn_head(in.x, in.normed, factor, p.heads.eps, in.table, in.cosine, in.sine);
        put_head(in, a, room, it, at);
        at = after;
        in = next;
    }
    named_barrier(1, COMPUTING);
}

/* Keys or values of this step into a stage that is full but for them; `first`: position of its first key. Each warp
   puts what it alone reads there: keys of its own, or its columns of values. */
template <int HD>
static __device__ inline void put_made(few_room<HD> &room, const item &it, uint32_t stage, uint32_t first, bool value)
{
    constexpr uint32_t CHUNKS = HD / 8;
    const uint32_t lane = threadIdx.x % 32, warp = own_warp(), chunk = lane % CHUNKS;
    if (first + HALF <= it.at.span.position)
        return;
    for (uint32_t i = lane / CHUNKS; i < it.at.tokens; i += 32 / CHUNKS) {
        const uint32_t position = it.at.span.position + i, key = position - first;
        if (position >= first && key < HALF && position >= it.seen.any.lo && (value ? chunk / 2 : key / 16) == warp)
            *(uint4 *)&room.stage[stage][chunk / 8][key][(chunk % 8 ^ key % 8) * 16] =
                *(const uint4 *)&room.made[value][i][chunk * 16];
    }
    __syncwarp();
}

/* Which key of a segment a warp's sixteen of a half begin with; a thread has lane / 4 after it, and 8 more. */
static __device__ inline uint32_t key_of(uint32_t half)
{
    return half * HALF + own_warp() * 16;
}

/* Scores of eight rows and this warp's keys of the halves that are seen, whose stages are next in the ring. MADE:
   put_made is to be called, by the first eight. The last ones free the stages. */
template <int HD, bool MADE>
static __device__ inline void score_keys(float (&s)[2][4], few_room<HD> &room, const item &it, const range &halves,
                                         uint32_t first, uint32_t eight, bool last, ring &r)
{
    const uint32_t lane = threadIdx.x % 32;
    uint32_t q[HD / 16][2];
#pragma unroll
    for (int d = 0; d < HD / 16; d++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            q[d][h] = *(const uint32_t *)&room.q[eight * 8 + lane / 4][d * 32 + h * 16 + lane % 4 * 4];
#pragma unroll
    for (uint32_t half = 0; half < 2; half++) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            s[half][i] = 0;
        if (half < halves.lo || half >= halves.hi)
            continue; /* mask_keys masks them */
        barrier_wait(&room.full[r.stage], r.parity);
        if (MADE && eight == 0)
            put_made(room, it, r.stage, first + half * HALF, false);
        const uint32_t k = shared_address(room.stage[r.stage]) + (key_of(0) + lane % 16) * 128;
#pragma unroll
        for (int d = 0; d < HD / 16; d++) {
            uint32_t a[4];
            load_rows_ordered(a, k + d / 4 * (HALF * 128) + ((d % 4 * 2 + lane / 16) ^ (lane % 8)) * 16);
            mma_bf16_ordered(s[half], a, q[d][0], q[d][1]);
        }
        if (last)
            barrier_arrive(&room.empty[r.stage]);
        step_ring<RING<HD>>(r);
    }
}

/* Masks what is not seen. */
static __device__ inline void mask_keys(float (&s)[2][4], const mt_cuda_attention &p, const item &it, uint32_t row,
                                        uint32_t first)
{
    const uint32_t lane = threadIdx.x % 32, group = p.heads / p.kv.heads;
#pragma unroll
    for (uint32_t e = 0; e < 2; e++) {
        range seen = {0, 0};
        if (row + e < it.at.tokens * group)
            seen = seen_by(p, it.at, it.at.token + (row + e) / group);
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t at = first + key_of(i / 2) + lane / 4 + i % 2 * 8;
            float &x = s[i / 2][i % 2 * 2 + e];
            x = at >= seen.lo && at < seen.hi ? x : UNSEEN;
        }
    }
}

/* The largest of each row's over all warps. */
template <int HD> static __device__ inline void find_most(float (&most)[2], const float (&s)[2][4], few_room<HD> &room)
{
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        most[e] = -INFINITY;
#pragma unroll
        for (int i = 0; i < 4; i++)
            most[e] = max_nan(most[e], s[i / 2][i % 2 * 2 + e]);
#pragma unroll
        for (uint32_t d = 4; d < 32; d *= 2)
            most[e] = max_nan(most[e], __shfl_xor_sync(0xffffffffu, most[e], d));
        if (lane < 4)
            room.most[own_warp()][lane * 2 + e] = most[e];
    }
    named_barrier(1, COMPUTING);
#pragma unroll
    for (int i = 0; i < WARPS; i++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            most[e] = max_nan(most[e], room.most[i][lane % 4 * 2 + e]);
}

/* p of this warp's keys, for all warps. */
template <int HD>
static __device__ inline void weigh_keys(const float (&s)[2][4], few_room<HD> &room, const float (&m)[2], float scale)
{
    const uint32_t lane = threadIdx.x % 32;
    float x[8];
    uint32_t all[1][4];
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = fmaf(s[i / 4][i % 4], scale, -m[i % 2]);
    weights_of(all, x);
    store_columns(shared_address(&room.p[lane % 8][(key_of(lane / 16) + lane / 8 % 2 * 8) * 2]), all[0]);
    named_barrier(1, COMPUTING);
}

/* The results of this warp's columns; returns the sum of p of row lane / 4. Stages are those of score_keys. */
template <int HD, bool MADE>
static __device__ inline float weigh_values(few_result &y, few_room<HD> &room, const item &it, const range &halves,
                                            uint32_t first, uint32_t eight, bool last, ring &r)
{
    const uint32_t lane = threadIdx.x % 32, warp = own_warp();
    float l[2] = {0, 0};
    y.o[0] = y.o[1] = y.o[2] = y.o[3] = 0;
#pragma unroll 1
    for (uint32_t half = halves.lo; half < halves.hi; half++) {
        barrier_wait(&room.full[r.stage], r.parity);
        if (MADE && eight == 0)
            put_made(room, it, r.stage, first + half * HALF, true);
        const uint32_t v = shared_address(room.stage[r.stage]) + warp / 4 * (HALF * 128) +
                           (lane / 16 * 8 + lane % 8) * 128 + ((warp % 4 * 2 + lane / 8 % 2) ^ (lane % 8)) * 16;
        const uint8_t *p = &room.p[lane / 4][half * (HALF * 2) + lane % 4 * 4];
#pragma unroll
        for (int k = 0; k < HALF / 16; k++) {
            const uint32_t b[2] = {*(const uint32_t *)(p + k * 32), *(const uint32_t *)(p + k * 32 + 16)};
#pragma unroll
            for (int h = 0; h < 2; h++) {
                l[0] += mt_f32_from_bits(b[h] << 16);
                l[1] += mt_f32_from_bits(b[h] & 0xffff0000u);
            }
            if (HD < 128 && warp >= HD / 16)
                continue;
            uint32_t a[4];
            load_columns(a, v + k * (16 * 128));
            mma_bf16_ordered(y.o, a, b[0], b[1]);
        }
        if (last)
            barrier_arrive(&room.empty[r.stage]);
        step_ring<RING<HD>>(r);
    }
    return quad_sum(l[0] + l[1]);
}

/* Row e of a thread's two, n columns of it. */
static __device__ inline void store_few(float *to, const few_result &y, int e, float factor, uint32_t n)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const uint32_t d = own_warp() * 16 + h * 8 + threadIdx.x % 32 / 4;
        if (d < n)
            to[d] = factor * y.o[h * 2 + e];
    }
}

/* Eight rows of a segment, whose keys are next in the ring, then its values: taken in, or left as parts. The last ones
   free the stages. */
template <int HD, bool MADE>
static __device__ inline void compute_eight(const mt_cuda_attention &p, few_room<HD> &room, const item &it, ring r,
                                            uint32_t seg, uint32_t eight, bool last, few_progress &so)
{
    const uint32_t first = seg * MT_SEGMENT, group = p.heads / p.kv.heads, c = threadIdx.x % 4 * 2, row = eight * 8 + c;
    const range halves = halves_seen(it.seen.any, seg);
    const float scale = p.scale;
    float s[2][4], most[2], m[2], used[2];
    few_result y;
    score_keys<HD, MADE>(s, room, it, halves, first, eight, last, r);
    if (first < it.seen.all.lo || first + MT_SEGMENT > it.seen.all.hi)
        mask_keys(s, p, it, row, first);
    find_most<HD>(most, s, room);
#pragma unroll
    for (int e = 0; e < 2; e++)
        used[e] = scaled_most(most[e], scale, m[e]);
    weigh_keys<HD>(s, room, used, scale);
    const float l = weigh_values<HD, MADE>(y, room, it, halves, first, eight, last, r);
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const float sum = __shfl_sync(0xffffffffu, l, (int)(c + e) * 4);
        float old, now;
        if (it.parts) {
            if (row + e >= it.at.tokens * group)
                continue;
            float *part = part_at(p, it.at, it.kv_head, seg, row, HD) + e * (HD + 4);
            if (threadIdx.x - PRODUCERS < 4)
                *(float2 *)part = make_float2(m[e], sum);
            store_few(part + 4, y, e, 1.0f, HD);
        } else if (take_part(so.w[e], m[e], sum, old, now)) {
#pragma unroll
            for (int h = 0; h < 2; h++)
                so.acc.o[h * 2 + e] = fmaf(so.acc.o[h * 2 + e], old, y.o[h * 2 + e] * now);
        }
    }
}

/* Results of eight rows packed for `native`: `factor` times y of each of a thread's two. Four warps have the columns of
   a segment. All computing threads. */
template <int HD>
static __device__ inline void pack_eight(const mt_cuda_attention &p, few_room<HD> &room, const item &it, uint32_t eight,
                                         const few_result &y, const float (&factor)[2])
{
    const uint32_t lane = threadIdx.x % 32, warp = own_warp(), group = p.heads / p.kv.heads;
    const uint32_t first = eight * 8 + lane % 4 * 2;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float most = fmaxf(fabsf(factor[e] * y.o[e]), fabsf(factor[e] * y.o[2 + e]));
#pragma unroll
        for (uint32_t d = 4; d < 32; d *= 2)
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, d));
        if (lane < 4)
            room.largest[eight % 2][warp][lane * 2 + e] = most;
    }
    named_barrier(1, COMPUTING);
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const uint32_t row = first + e, i = it.at.span.row + it.at.token + row / group;
        if (row >= it.at.tokens * group || warp >= HD / 16)
            continue;
        const uint32_t segment = (it.kv_head * group + row % group) * (HD / MT_NATIVE_SEGMENT) + warp / 4;
        float most = 0;
#pragma unroll
        for (int w = 0; w < 4; w++)
            most = fmaxf(most, room.largest[eight % 2][warp / 4 * 4 + w][lane % 4 * 2 + e]);
        const uint32_t unit = unit_of(most);
        const float into = into_unit(unit);
        uint8_t *to = segment_at(p.packed, i, segment);
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(__half *)(to + swizzled(i % p.packed.rows, warp % 4 * 2 + h) + lane / 4 * 2) =
                __float2half_rn(factor[e] * y.o[h * 2 + e] * into);
        if (warp % 4 == 0 && lane < 4)
            units_at(p.packed, i, segment / 4)[segment % 4] = (uint8_t)unit;
    }
}

/* Eight rows of an item are done. */
template <int HD>
static __device__ inline void finish_eight(const mt_cuda_attention &p, few_room<HD> &room, const item &it,
                                           uint32_t eight, few_progress so)
{
    const uint32_t group = p.heads / p.kv.heads;
    float factor[2];
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const uint32_t row = eight * 8 + threadIdx.x % 4 * 2 + e, head = it.kv_head * group + row % group;
        factor[e] = 0;
        if (row >= it.at.tokens * group)
            continue;
        const float old = take_sink(so.w[e], p.sinks, head);
        if (p.sinks)
#pragma unroll
            for (int h = 0; h < 2; h++)
                so.acc.o[h * 2 + e] = fmaf(so.acc.o[h * 2 + e], old, 0.0f);
        factor[e] = 1.0f / so.w[e].l;
        if (!p.packed_only)
            store_few(row_of(p.y, it.at.span.row + it.at.token + row / group) + head * p.kv.head_dim, so.acc, e,
                      factor[e], p.kv.head_dim);
    }
    if (HD % 64 == 0 && p.packed.q)
        pack_eight<HD>(p, room, it, eight, so.acc, factor);
}

/* MADE: the heads are made here, else there are queries as they are. */
template <int HD, bool MADE>
static __device__ inline void compute_few(const mt_cuda_attention &p, const mt_cuda_asked *made, few_room<HD> &room,
                                          item it)
{
    ring r = {0, 0}, items = {0, 0}; /* items: where the next is handed over */
    float first[8];                  /* of the next item's queries */
    if (!MADE && it.at.tokens) {
        wait_for_last();
        load_piece<HD>(first, p, it, threadIdx.x - PRODUCERS);
    }
    while (it.at.tokens) {
        const uint32_t rows = it.at.tokens * (p.heads / p.kv.heads), eights = (rows + 7) / 8;
        few_progress so[EIGHTS];
#pragma unroll
        for (int i = 0; i < EIGHTS; i++)
            so[i] = {{{-INFINITY, 0}, {-INFINITY, 0}}, {}};
        if constexpr (MADE)
            make_heads<HD>(*made, room, it);
        else
            put_queries<HD>(p, room, it, first);
        for (uint32_t seg = it.seg0; seg < it.seg1; seg++) {
            if (!MADE && seg + 1 == it.seg1) {
                barrier_wait(&room.found[items.stage], items.parity);
                load_piece<HD>(first, p, room.items[items.stage], threadIdx.x - PRODUCERS);
            }
#pragma unroll 1
            for (uint32_t i = 0; i < eights; i++) {
                few_progress one = pick(so, i);
                compute_eight<HD, MADE>(p, room, it, r, seg, i, i + 1 == eights, one);
                put(so, i, one);
            }
            const range halves = halves_seen(it.seen.any, seg);
            for (uint32_t i = 0; i < 2 * (halves.hi - halves.lo); i++)
                step_ring<RING<HD>>(r);
        }
#pragma unroll 1
        for (uint32_t i = 0; !it.parts && i < eights; i++)
            finish_eight<HD>(p, room, it, i, pick(so, i));
        if (it.parts && last_of_all<COMPUTING>(p, it))
            for (uint32_t row = own_warp(); row < rows; row += WARPS)
                merge_row<HD, 16>(p, it, row);
        barrier_wait(&room.found[items.stage], items.parity);
        it = room.items[items.stage];
        step_ring<ITEMS<HD>>(items);
    }
}

template <int HD, bool MADE>
static __device__ inline void attend_few(const mt_cuda_attention &p, const mt_cuda_asked *made)
{
    extern __shared__ uint8_t raw[];
    few_room<HD> &room = *(few_room<HD> *)(((uintptr_t)raw + 127) / 128 * 128);
    static_assert(sizeof(room) + 127 <= (HD == 64 ? 105 : 208) * 1024 + MT_CUDA_ATTEND_SMALL,
                  "the host reserves so much");
    start_next();
    if (threadIdx.x == 0)
        for (uint32_t i = 0; i < ITEMS<HD>; i++)
            barrier_init(&room.found[i], 1);
    make_barriers<RING<HD>>(room, COMPUTING);
    /* loaded while the item is found that says which of them are needed, and all of it while barriers are made */
    const uint32_t known = MADE ? load_first(p) : 0;
    uint32_t round = 0;
    item it;
    next_item(p, round, it);
    __syncthreads();
    if (threadIdx.x < PRODUCERS) {
        copy_few<HD, MADE>(p, room, it, round, known);
    } else {
        compute_few<HD, MADE>(p, made, room, it);
    }
}

#define FEW(hd)                                                                                      \
    extern "C" __global__ void __launch_bounds__(384, 1) mtk_attention_few_##hd(mt_cuda_attention p) \
    {                                                                                                \
        attend_few<hd, false>(p, NULL);                                                              \
    }
#define ASKED(hd)                                                         \
    extern "C" __global__ void __launch_bounds__(384, 1)                  \
        mtk_attention_asked_##hd(const __grid_constant__ mt_cuda_asked p) \
    {                                                                     \
        attend_few<hd, true>(p.attention, &p);                            \
    }
#else
#define FEW(hd)                                     \
    KERNEL(attention_few_##hd)(mt_cuda_attention p) \
    {                                               \
    }
#define ASKED(hd)                                 \
    KERNEL(attention_asked_##hd)(mt_cuda_asked p) \
    {                                             \
    }
#endif

FEW(64)
FEW(80)
FEW(96)
FEW(128)
ASKED(64)
ASKED(128)
