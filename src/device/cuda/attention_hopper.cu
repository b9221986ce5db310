/* Attention over bf16 pages (R8) on Hopper for many rows: tensor cores of a warpgroup, keys and values through shared
   memory.

   A block goes from item to item: a tile of query rows, a key head and the segments it sees, or some of them. One
   warpgroup copies keys and values into a ring of stages, half a segment each, as far ahead as the ring reaches, over
   the borders of segments and items. Each of the others has 64 rows: the scores of a whole segment stay in its
   registers, for R8 wants their maximum before p = bf16(exp(s - m)); p becomes the operand of the second product
   without leaving them.

   What a row gets depends on itself alone: not on the other rows of its tile, nor on whether one block takes all
   segments or several do, nor on whether it comes here or to attention_few.cu.

   What a thread has of the segments before is in shared memory meanwhile, for registers are for scores. exp is R7's,
   with one thing left out: below -88 it gives less than 2^-126, which rounds to 0 as bf16 or counts for nothing. */
#include "device/cuda/attention.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/attention_hopper.cuh"

enum { HALF = MT_SEGMENT / 2, GROUPS = 2, COMPUTING = GROUPS * 128 }; /* GROUPS: warpgroups that compute */

template <int HD> struct hopper_room {
    static const int blocks = (HD + 63) / 64; /* of 64 columns */
    static const int stages = blocks == 1 ? 8 : 4;
    uint8_t q[GROUPS][blocks][64][128];
    uint8_t stage[stages][blocks][HALF][128];
    float4 acc[GROUPS][HD / 8][128]; /* what a thread has of its rows over the segments of an item */
    uint64_t full[stages], empty[stages];
    item item[GROUPS];
    float scale;
};

/* The queries of 64 rows as bf16; zeros where there are none. */
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
    products_see();
    named_barrier(1 + who, 128);
}

/* Scores of 64 rows and 128 keys. */
template <int HD> static __device__ inline void score_half(float (&s)[64], hopper_room<HD> &room, const ring &r)
{
    const uint32_t who = (threadIdx.x - PRODUCERS) / 128;
    const uint32_t q = shared_address(room.q[who]), k = shared_address(room.stage[r.stage]);
    barrier_wait(&room.full[r.stage], r.parity);
    products_see();
    products_begin();
#pragma unroll
    for (int d = 0; d < HD / 16; d++)
        product_scores(s, along(q + d / 4 * (64 * 128) + d % 4 * 32), along(k + d / 4 * (HALF * 128) + d % 4 * 32),
                       d > 0);
    products_commit();
}

/* The largest of a row's, over the four threads that have it. */
static __device__ inline float most_of(const float (&s0)[64], const float (&s1)[64], int h)
{
    float m[4] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
#pragma unroll
    for (int j = 0; j < 16; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            m[e] = max_nan(m[e], s0[j * 4 + h * 2 + e]);
            m[2 + e] = max_nan(m[2 + e], s1[j * 4 + h * 2 + e]);
        }
    return quad_most(max_nan(max_nan(m[0], m[1]), max_nan(m[2], m[3])));
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

template <int HD>
static __device__ inline void value_half(float (&o)[HD / 2], const uint32_t (&p)[8][4], hopper_room<HD> &room,
                                         const ring &r, bool add)
{
    const uint32_t v = shared_address(room.stage[r.stage]);
    barrier_wait(&room.full[r.stage], r.parity);
    products_see();
    products_begin();
#pragma unroll
    for (int k = 0; k < HALF / 16; k++)
        product_values(o, p[k], across(v + k * 16 * 128, HALF * 128), k > 0 || add);
    products_commit();
}

/* A segment that this warpgroup has no rows for: its stages go by as they come, so that none is freed too early. */
template <int HD> static __device__ inline void pass_segment(hopper_room<HD> &room, ring &r)
{
    for (int i = 0; i < 2 * MT_SEGMENT / HALF; i++) {
        barrier_wait(&room.full[r.stage], r.parity);
        release(&room.empty[r.stage]);
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

/* Scores of a segment. */
template <int HD>
static __device__ inline void score_segment(float (&s0)[64], float (&s1)[64], hopper_room<HD> &room, ring &r)
{
    score_half<HD>(s0, room, r);
    step_ring<hopper_room<HD>::stages>(r);
    score_half<HD>(s1, room, r);
    step_ring<hopper_room<HD>::stages>(r);
    products_wait();
    settle(s0);
    settle(s1);
    release_two(room.empty, r.stage);
}

/* A segment whose scores are there, and the scores of the next one, if there is MORE. Products that are begun in a
   branch would wait for each other, so both cases are compiled. */
template <int HD, bool MORE>
static __device__ inline void compute_segment(const mt_cuda_attention &p, hopper_room<HD> &room, const item &it,
                                              ring &r, uint32_t seg, float (&s0)[64], float (&s1)[64], whole (&w)[2])
{
    const uint32_t first = seg * MT_SEGMENT;
    const float scale = p.scale;
    if (first < it.seen.all.lo || first + MT_SEGMENT > it.seen.all.hi) {
        const own_rows own = find_rows<false>(p, it, slab_of(it));
        mask_scores<false, HALF>(s0, own, first);
        mask_scores<false, HALF>(s1, own, first + HALF);
    }
    uint32_t weights[2][8][4];
    float m[2], l[2][2] = {{0, 0}, {0, 0}}, o[HD / 2], used[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        used[h] = scaled_most(most_of(s0, s1, h), scale, m[h]);
    weigh(weights[0], s0, used, scale, l);
    settle(weights[0]);
    value_half<HD>(o, weights[0], room, r, false);
    step_ring<hopper_room<HD>::stages>(r);
    /* the scale is read once more, lest the other half's weights be made before this product is begun */
    weigh(weights[1], s1, used, *(volatile float *)&room.scale, l);
    settle(weights[1]);
    value_half<HD>(o, weights[1], room, r, true);
    step_ring<hopper_room<HD>::stages>(r);
    products_wait();
    settle(o);
    settle(weights[0]);
    settle(weights[1]);
    release_two(room.empty, r.stage);
    take_segment<HD>(p, room, it, seg, w, o, m, l);
    if (MORE && it.apart)
        pass_segment<HD>(room, r);
    if constexpr (MORE)
        score_segment<HD>(s0, s1, room, r);
}

/* All segments of an item. Where warpgroups are apart, one passes by what the other computes. */
template <int HD>
static __device__ inline void compute_item(const mt_cuda_attention &p, hopper_room<HD> &room, const item &it, ring &r)
{
    const bool second = threadIdx.x >= PRODUCERS + 128;
    whole w[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
    float s0[64], s1[64];
#pragma unroll
    for (int i = 0; i < HD / 8; i++)
        sums_of<HD>(room, i) = make_float4(0, 0, 0, 0);
    load_queries<HD>(p, room, it);
    if (it.apart && second)
        pass_segment<HD>(room, r);
    score_segment<HD>(s0, s1, room, r);
    uint32_t seg = it.seg0;
    for (; seg + 1 < it.seg1; seg++)
        compute_segment<HD, true>(p, room, it, r, seg, s0, s1, w);
    compute_segment<HD, false>(p, room, it, r, seg, s0, s1, w);
    if (it.apart && !second)
        pass_segment<HD>(room, r);
    if (!it.parts)
        finish_rows<HD>(p, room, it, w);
}

template <int HD> static __device__ inline void compute_all(const mt_cuda_attention &p, hopper_room<HD> &room)
{
    const uint32_t who = (threadIdx.x - PRODUCERS) / 128, group = p.heads / p.kv.heads;
    ring r = {0, 0};
    item &it = room.item[who]; /* registers are for scores */
    for (uint32_t round = 0; round * gridDim.x < p.items; round++) {
        {
            item next;
            if (!find_item(p, item_of(p, round), next))
                continue;
            named_barrier(1 + who, 128); /* all are done with the last */
            next.kv_head += next.apart ? who : 0;
            if (threadIdx.x % 128 == 0)
                it = next;
            named_barrier(1 + who, 128);
        }
        if (!it.apart && who * 64 >= it.at.tokens * group) {
            for (uint32_t seg = it.seg0; seg < it.seg1; seg++)
                pass_segment<HD>(room, r);
        } else if (it.seg0 < it.seg1) {
            compute_item<HD>(p, room, it, r);
        }
        if (it.parts && last_of_all<COMPUTING>(p, it))
            for (uint32_t row = (threadIdx.x - PRODUCERS) / 32; row < it.at.tokens * group; row += GROUPS * 4)
                merge_row<HD, 2>(p, it, row);
    }
}

template <int HD> static __device__ inline void attend_hopper(const mt_cuda_attention &p)
{
    extern __shared__ uint8_t raw[];
    hopper_room<HD> &room = *(hopper_room<HD> *)(((uintptr_t)raw + 1023) / 1024 * 1024);
    if (threadIdx.x == 0)
        room.scale = p.scale;
    start_barriers<hopper_room<HD>::stages>(room, COMPUTING / 32);
    if (threadIdx.x < PRODUCERS) {
        fewer_registers<24>();
        copy_all<HD, HALF, hopper_room<HD>::stages>(p, room);
    } else {
        more_registers<240>();
        wait_for_last();
        compute_all<HD>(p, room);
    }
}

#define HOPPER(hd)                                                                                    \
    extern "C" __global__ void __launch_bounds__(384, 1) mtk_attention_many_##hd(mt_cuda_attention p) \
    {                                                                                                 \
        attend_hopper<hd>(p);                                                                         \
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
