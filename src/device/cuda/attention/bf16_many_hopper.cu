/* Attention over bf16 pages (R8) on Hopper for many rows: tensor cores of a warpgroup, keys and values through shared
   memory.

   A block goes from item to item: a tile of query rows, a key head and the segments it sees, or some of them. One
   warpgroup copies keys and values into a ring of stages, as far ahead as the ring reaches, over the borders of
   segments and items. Each of two or three others has 64 rows.

   R8 wants the maximum of a segment's scores before p = bf16(exp(s - m)). To keep them all until then would take half
   of all registers, and code without a loop, which would be executed faster than it can be fetched. So scores are made
   twice, since tensor cores have the time: for the maximum, then 64 keys at a time for p, which becomes the operand of
   the second product without leaving registers. While one warpgroup waits for tensor cores, others have work.

   What a row gets depends on itself alone: not on the other rows of its tile, nor on whether one block takes all
   segments or several do, nor on whether it comes here or to bf16_few_hopper.cu.

   What a thread has of the segments before is in shared memory meanwhile. exp is R7's, with one thing left out: below
   -88 it gives less than 2^-126, which rounds to 0 as bf16 or counts for nothing. */
#include "device/cuda/attention/attention.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/attention/hopper.cuh"

enum { PART = 64 }; /* keys whose weights are made at a time */

template <int HD> struct hopper_room {
    static const int blocks = (HD + 63) / 64; /* of 64 columns */
    static const int keys = blocks == 1 ? 2 * PART : PART;
    static const int groups = MT_CUDA_ATTEND_GROUPS(HD), computing = groups * 128; /* warpgroups, threads */
    static const int stages = MT_CUDA_ATTEND_STAGES(HD);
    uint8_t q[groups][blocks][64][128];
    uint8_t stage[stages][blocks][keys][128];
    float4 acc[groups][HD / 8][128]; /* what a thread has of its rows over the segments of an item */
    uint64_t full[stages], empty[stages];
    item item[groups];
    range seen[groups][64]; /* by rows */
};

static __device__ inline uint32_t own_group(void)
{
    return (threadIdx.x - PRODUCERS) / 128;
}

/* Threads of a warpgroup. */
static __device__ inline void group_barrier(void)
{
    named_barrier(4 + own_group(), 128);
}

/* The queries of 64 rows as bf16, zeros where there are none, and what the rows see. */
template <int HD>
static __device__ inline void load_queries(const mt_cuda_attention &p, hopper_room<HD> &room, const item &it)
{
    constexpr uint32_t CHUNKS = HD / 8, EACH = 64 * CHUNKS / 128; /* of a thread */
    const uint32_t thread = threadIdx.x - PRODUCERS, who = thread / 128, group = p.heads / p.kv.heads;
    const uint32_t rows = it.at.tokens * group, hd = p.kv.head_dim;
    const bool whole = hd == HD && p.x.stride % 4 == 0 && (uintptr_t)p.x.data % 16 == 0;
#pragma unroll 4
    for (uint32_t i = 0; i < EACH; i++) {
        const uint32_t at = thread % 128 + i * 128, r = at / CHUNKS, chunk = at % CHUNKS;
        const uint32_t row = (it.apart ? 0 : who * 64) + r;
        __align__(16) float x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (row < rows) {
            const float *from = row_of(p.x, it.at.span.row + it.at.token + row / group) +
                                (it.kv_head * group + row % group) * hd + chunk * 8;
            if (whole) {
                *(float4 *)x = *(const float4 *)from;
                *(float4 *)(x + 4) = *(const float4 *)(from + 4);
            } else {
#pragma unroll
                for (uint32_t e = 0; e < 8; e++)
                    x[e] = chunk * 8 + e < hd ? from[e] : 0.0f;
            }
        }
        *(uint4 *)&room.q[who][chunk / 8][r][((chunk % 8) ^ (r % 8)) * 16] =
            make_uint4(two_halves(x[0], x[1]), two_halves(x[2], x[3]), two_halves(x[4], x[5]), two_halves(x[6], x[7]));
    }
    if (thread % 128 < 64) {
        const uint32_t row = (it.apart ? 0 : who * 64) + thread % 128;
        range seen = {0, 0};
        if (row < rows)
            seen = seen_by(p, it.at, it.at.token + row / group);
        room.seen[who][thread % 128] = seen;
    }
    products_see();
    group_barrier();
}

/* Scores of a warpgroup's rows and of keys in shared memory, as many as `s` has room for. */
template <int HD, typename scores> static __device__ inline void score(scores &s, hopper_room<HD> &room, uint32_t keys)
{
    const uint32_t q = shared_address(room.q[own_group()]);
#pragma unroll
    for (int d = 0; d < HD / 16; d++)
        product_scores(s, along(q + d / 4 * (64 * 128) + d % 4 * 32),
                       along(keys + d / 4 * (hopper_room<HD>::keys * 128) + d % 4 * 32), d > 0);
}

/* Waits for a stage; where it is. */
template <int HD> static __device__ inline uint32_t await_stage(hopper_room<HD> &room, const ring &r)
{
    barrier_wait(&room.full[r.stage], r.parity);
    products_see();
    return shared_address(room.stage[0]) + r.stage * (uint32_t)sizeof(room.stage[0]);
}

/* Masks a part of a segment, whose first key is `first`. */
template <int HD> static __device__ inline void mask_part(float (&s)[32], hopper_room<HD> &room, uint32_t first)
{
    own_rows own;
#pragma unroll
    for (int h = 0; h < 2; h++)
        own.seen[h] = room.seen[own_group()][threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4 + h * 8];
    mask_scores<false, PART>(s, own, first);
}

/* The largest scores of a thread's two rows in a segment. */
template <int HD>
static __device__ inline void find_most(float (&most)[2], hopper_room<HD> &room, ring &r, uint32_t first,
                                        uint32_t halves, bool masked)
{
    constexpr int STAGES = hopper_room<HD>::stages;
    float m[2][2] = {{UNSEEN, UNSEEN}, {UNSEEN, UNSEEN}};
#pragma unroll 1
    for (uint32_t half = 0; half < halves; half++, first += 2 * PART) {
        float s[2][32];
        const ring one = r;
        uint32_t keys = await_stage<HD>(room, r);
        if constexpr (hopper_room<HD>::keys == 2 * PART) {
            products_begin();
            score<HD>(s, room, keys);
        } else {
            step_ring<STAGES>(r);
            const uint32_t more = await_stage<HD>(room, r);
            products_begin();
            score<HD>(s[0], room, keys);
            score<HD>(s[1], room, more);
        }
        products_commit();
        products_wait();
        settle(s[0]);
        settle(s[1]);
        barrier_arrive(&room.empty[one.stage]);
        if (hopper_room<HD>::keys == PART)
            barrier_arrive(&room.empty[r.stage]);
        step_ring<STAGES>(r);
        if (masked) {
            mask_part<HD>(s[0], room, first);
            mask_part<HD>(s[1], room, first + PART);
        }
#pragma unroll
        for (int i = 0; i < 64; i++) {
            float &so_far = m[i / 2 % 2][i % 2];
            so_far = max_nan(so_far, s[i / 32][i % 32]);
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
        most[h] = quad_most(max_nan(m[h][0], m[h][1]));
}

/* p of K times 16 keys as operands of products of 16 of them; `l` gets their sum. */
template <int K>
static __device__ inline void weigh(uint32_t (&p)[K][4], float (&s)[8 * K], const float (&m)[2], float scale,
                                    float (&l)[2][2])
{
#pragma unroll
    for (int i = 0; i < 8 * K; i++)
        s[i] = fmaf(s[i], scale, -m[i / 2 % 2]);
    weights_of(p, s);
#pragma unroll
    for (int i = 0; i < 4 * K; i++) {
        l[i % 2][0] += mt_f32_from_bits(p[i / 4][i % 4] << 16);
        l[i % 2][1] += mt_f32_from_bits(p[i / 4][i % 4] & 0xffff0000u);
    }
}

/* o += p v, or o = p v, for a part. */
template <int HD>
static __device__ inline void weigh_values(float (&o)[HD / 2], const uint32_t (&p)[4][4], uint32_t values, bool add)
{
#pragma unroll
    for (int k = 0; k < PART / 16; k++)
        product_values(o, p[k], across(values + k * 16 * 128, hopper_room<HD>::keys * 128), k > 0 || add);
}

/* Stages that a warpgroup has no rows for go by as they come, so that none is freed too early. */
template <int HD> static __device__ inline void pass_stages(hopper_room<HD> &room, ring &r, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        barrier_wait(&room.full[r.stage], r.parity);
        barrier_arrive(&room.empty[r.stage]);
        step_ring<hopper_room<HD>::stages>(r);
    }
}

/* This thread's results of all segments so far, a piece of four: columns of its two rows, two of each. */
template <int HD> static __device__ inline float4 &sums_of(hopper_room<HD> &room, int piece)
{
    const uint32_t thread = threadIdx.x - PRODUCERS;
    return room.acc[thread / 128][piece][thread % 128];
}

/* Takes a segment's result in, or leaves it as a part. */
template <int HD>
static __device__ inline void take_segment(const mt_cuda_attention &p, hopper_room<HD> &room, const item &it,
                                           uint32_t seg, whole (&w)[2], const float (&o)[HD / 2], const float (&m)[2],
                                           const float (&l)[2][2])
{
    float sum[2], old[2], now[2];
    bool takes[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        sum[h] = quad_sum(l[h][0] + l[h][1]);
    if (it.parts) {
        const own_rows own = find_rows<false>(p, it, slab_of(it));
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (own.there[h]) {
                float *part = part_at(p, it.at, it.kv_head, seg, own.row[h], HD);
                if (threadIdx.x % 4 == 0)
                    *(float2 *)part = make_float2(m[h], sum[h]);
                store_row<HD>(part + 4, o, h, 1.0f, HD);
            }
        return;
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
        takes[h] = take_part(w[h], m[h], sum[h], old[h], now[h]);
#pragma unroll
    for (int i = 0; i < HD / 2; i += 4) {
        float4 a = sums_of<HD>(room, i / 4);
        a.x = takes[0] ? fmaf(a.x, old[0], o[i] * now[0]) : a.x;
        a.y = takes[0] ? fmaf(a.y, old[0], o[i + 1] * now[0]) : a.y;
        a.z = takes[1] ? fmaf(a.z, old[1], o[i + 2] * now[1]) : a.z;
        a.w = takes[1] ? fmaf(a.w, old[1], o[i + 3] * now[1]) : a.w;
        sums_of<HD>(room, i / 4) = a;
    }
}

/* A row of an item is done. */
template <int HD>
static __device__ inline void finish_rows(const mt_cuda_attention &p, hopper_room<HD> &room, const item &it,
                                          whole (&w)[2])
{
    const uint32_t group = p.heads / p.kv.heads;
    float acc[HD / 2];
#pragma unroll
    for (int i = 0; i < HD / 2; i += 4) {
        const float4 a = sums_of<HD>(room, i / 4);
        acc[i] = a.x, acc[i + 1] = a.y, acc[i + 2] = a.z, acc[i + 3] = a.w;
    }
    const own_rows own = find_rows<false>(p, it, slab_of(it));
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (!own.there[h])
            continue;
        const uint32_t head = it.kv_head * group + own.row[h] % group;
        const float old = take_sink(w[h], p.sinks, head);
        if (p.sinks)
#pragma unroll
            for (int i = 0; i < HD / 2; i++)
                acc[i] = i % 4 / 2 == h ? fmaf(acc[i], old, 0.0f) : acc[i];
        store_row<HD>(row_of(p.y, it.at.span.row + it.at.token + own.row[h] / group) + head * p.kv.head_dim, acc, h,
                      1.0f / w[h].l, p.kv.head_dim);
    }
}

/* A segment, whose keys are next in the ring, then keys and values by turns. */
template <int HD>
static __device__ inline void compute_segment(const mt_cuda_attention &p, hopper_room<HD> &room, const item &it,
                                              ring &r, uint32_t seg, whole (&w)[2])
{
    constexpr int STAGES = hopper_room<HD>::stages;
    constexpr uint32_t EACH = hopper_room<HD>::keys / PART; /* parts of a stage */
    const uint32_t first = seg * MT_SEGMENT, halves = halves_of(it, seg);
    const bool masked = first < it.seen.all.lo || first + MT_SEGMENT > it.seen.all.hi;
    const float scale = p.scale;
    float most[2], m[2], used[2], l[2][2] = {{0, 0}, {0, 0}}, o[HD / 2];
    find_most<HD>(most, room, r, first, halves, masked);
#pragma unroll
    for (int h = 0; h < 2; h++)
        used[h] = scaled_most(most[h], scale, m[h]);
#pragma unroll
    for (int i = 0; i < HD / 2; i++)
        o[i] = 0;
    uint32_t weights[4][4] = {}, done = 0; /* done: the stage of values that are being multiplied */
    ring values = r;
    step_ring<STAGES>(values);
#pragma unroll 1
    for (uint32_t part = 0; part < 2 * halves; part++) {
        const uint32_t within = part % EACH * (PART * 128);
        const bool begins = part % EACH == 0, ends = part % EACH == EACH - 1;
        float s[32];
        const uint32_t keys = await_stage<HD>(room, r);
        products_begin();
        score<HD>(s, room, keys + within);
        products_commit();
        products_wait(); /* for the part before, too */
        settle(s);
        settle(weights);
        if (begins && part)
            barrier_arrive(&room.empty[done]);
        if (ends)
            barrier_arrive(&room.empty[r.stage]);
        if (masked)
            mask_part<HD>(s, room, first + part * PART);
        weigh(weights, s, used, scale, l);
        settle(weights);
        const uint32_t at = await_stage<HD>(room, values);
        products_begin();
        weigh_values<HD>(o, weights, at + within, part > 0);
        products_commit();
        done = values.stage;
        if (ends) {
            r = values;
            step_ring<STAGES>(r);
            values = r;
            step_ring<STAGES>(values);
        }
    }
    products_wait();
    settle(o);
    settle(weights);
    barrier_arrive(&room.empty[done]);
    take_segment<HD>(p, room, it, seg, w, o, m, l);
}

/* All segments of an item. Where warpgroups are apart, each passes by what another computes; one without rows all. */
template <int HD>
static __device__ inline void compute_item(const mt_cuda_attention &p, hopper_room<HD> &room, const item &it, ring &r,
                                           bool works)
{
    const uint32_t who = own_group(), heads = it.apart ? 2 : 1;
    whole w[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    if (works) {
#pragma unroll
        for (int i = 0; i < HD / 8; i++)
            sums_of<HD>(room, i) = make_float4(0, 0, 0, 0);
        load_queries<HD>(p, room, it);
    }
#pragma unroll 1
    for (uint32_t seg = it.seg0; seg < it.seg1; seg++)
#pragma unroll 1
        for (uint32_t head = 0; head < heads; head++)
            if (works && (heads == 1 || head == who))
                compute_segment<HD>(p, room, it, r, seg, w);
            else
                pass_stages<HD>(room, r, 3 * halves_of(it, seg) * (2 * PART / hopper_room<HD>::keys));
    if (works && !it.parts)
        finish_rows<HD>(p, room, it, w);
}

template <int HD> static __device__ inline void compute_all(const mt_cuda_attention &p, hopper_room<HD> &room)
{
    const uint32_t who = own_group(), group = p.heads / p.kv.heads;
    ring r = {0, 0};
    item &it = room.item[who]; /* registers are for scores */
    for (uint32_t round = 0; round * gridDim.x < p.items; round++) {
        {
            item next;
            if (!find_item(p, item_of(p, round), next))
                continue;
            group_barrier(); /* all are done with the last */
            next.kv_head += next.apart ? who : 0;
            if (threadIdx.x % 128 == 0)
                it = next;
            group_barrier();
        }
        if (it.seg0 < it.seg1)
            compute_item<HD>(p, room, it, r, it.apart ? who < 2 : who * 64 < it.at.tokens * group);
        if (it.parts && last_of_all<hopper_room<HD>::computing>(p, it))
            for (uint32_t row = (threadIdx.x - PRODUCERS) / 32; row < it.at.tokens * group;
                 row += hopper_room<HD>::groups * 4)
                merge_row<HD, 2>(p, it, row);
    }
}

template <int HD> static __device__ inline void attend_hopper(const mt_cuda_attention &p)
{
    extern __shared__ uint8_t raw[];
    hopper_room<HD> &room = *(hopper_room<HD> *)(((uintptr_t)raw + 1023) / 1024 * 1024);
    static_assert(sizeof(room) + 1024 <= (MT_CUDA_ATTEND_KIB(HD) << 10) + MT_CUDA_ATTEND_SMALL, "what the host gives");
    start_barriers<hopper_room<HD>::stages>(room, hopper_room<HD>::computing);
    if (threadIdx.x < PRODUCERS) {
        fewer_registers<hopper_room<HD>::groups == 3 ? 56 : 40>();
        copy_all<HD, hopper_room<HD>::keys, hopper_room<HD>::stages, true>(p, room);
    } else {
        more_registers<hopper_room<HD>::groups == 3 ? 152 : 232>();
        wait_for_last();
        compute_all<HD>(p, room);
    }
}

#define HOPPER(hd)                                                              \
    extern "C" __global__ void __launch_bounds__(MT_CUDA_ATTEND_THREADS(hd), 1) \
        mtk_attention_many_##hd(mt_cuda_attention p)                            \
    {                                                                           \
        attend_hopper<hd>(p);                                                   \
    }
#else
#define HOPPER(hd)                                   \
    KERNEL(attention_many_##hd)(mt_cuda_attention p) \
    {                                                \
    }
#endif

HOPPER(64)
HOPPER(80)
HOPPER(96)
HOPPER(128)
