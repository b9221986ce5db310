/* Attention over bf16 pages (R8) on Hopper for heads of 256, whose results are too wide for one warpgroup's registers.

   Two warpgroups have the same 64 rows. For the scores each takes every other 64 keys of a segment, for the results
   half of the head's columns; rows' maxima and sums, and p as bf16, go from one to the other through shared memory.
   Copying, merging and the distribution of few rows are those of bf16_many_hopper.cu. */
#include "device/cuda/attention/attention.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/attention/hopper.cuh"

enum { WIDTH = 256, BLOCKS = WIDTH / 64, KEYS = 64, COMPUTING = 256, STAGES = 5, QUARTERS = MT_SEGMENT / KEYS };

typedef struct wide_room {
    uint8_t q[BLOCKS][64][128];
    uint8_t p[QUARTERS][64][128];
    uint8_t stage[STAGES][BLOCKS][KEYS][128];
    float most[2][64], sum[2][64];
    uint64_t full[STAGES], empty[STAGES];
    item item;
} wide_room;

/* The queries of 64 rows as bf16; zeros where there are none. */
template <bool FEW> static __device__ inline void load_wide(const mt_cuda_attention &p, wide_room &room, const item &it)
{
    const uint32_t group = p.heads / p.kv.heads, rows = it.at.tokens * group;
    for (uint32_t i = threadIdx.x - PRODUCERS; i < 64 * (WIDTH / 8); i += COMPUTING) {
        const uint32_t r = i / (WIDTH / 8), chunk = i % (WIDTH / 8), row = FEW ? r / 16 * 8 + r % 16 : r;
        uint32_t word[4] = {0, 0, 0, 0};
        if (row < rows && (!FEW || r % 16 < 8)) {
            const float *x = row_of(p.x, it.at.span.row + it.at.token + row / group) +
                             (it.kv_head * group + row % group) * p.kv.head_dim + chunk * 8;
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                word[e] = two_halves(chunk * 8 + e * 2 < p.kv.head_dim ? x[e * 2] : 0.0f,
                                     chunk * 8 + e * 2 + 1 < p.kv.head_dim ? x[e * 2 + 1] : 0.0f);
        }
        *(uint4 *)&room.q[chunk / 8][r][((chunk % 8) ^ (r % 8)) * 16] = make_uint4(word[0], word[1], word[2], word[3]);
    }
    products_see();
    named_barrier(3, COMPUTING);
}

/* Scores of this warpgroup's keys: two quarters of a segment. */
static __device__ inline void score_wide(float (&s)[2][32], wide_room &room, ring &r, uint32_t who)
{
    uint32_t stage[QUARTERS];
#pragma unroll
    for (int i = 0; i < QUARTERS; i++) {
        stage[i] = r.stage;
        if (i % 2 == (int)who) {
            const uint32_t q = shared_address(room.q), k = shared_address(room.stage[r.stage]);
            barrier_wait(&room.full[r.stage], r.parity);
            products_see();
            products_begin();
#pragma unroll
            for (int d = 0; d < WIDTH / 16; d++)
                product_scores(s[i / 2], along(q + d / 4 * (64 * 128) + d % 4 * 32),
                               along(k + d / 4 * (KEYS * 128) + d % 4 * 32), d > 0);
            products_commit();
        }
        step_ring<STAGES>(r);
    }
    products_wait();
#pragma unroll
    for (int i = 0; i < QUARTERS; i++)
        barrier_arrive(&room.empty[stage[i]]);
}

/* p of this warpgroup's keys into shared memory; returns their sum, for row h. */
static __device__ inline float weigh_wide(wide_room &room, const float (&s)[2][32], int h, float m, float scale,
                                          uint32_t who)
{
    const uint32_t row = (threadIdx.x / 32 % 4) * 16 + threadIdx.x % 32 / 4 + h * 8, c = threadIdx.x % 4;
    float l[2] = {0, 0};
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float x[KEYS / 4];
        uint32_t both[2][4];
#pragma unroll
        for (int e = 0; e < KEYS / 4; e++)
            x[e] = fmaf(s[i][e / 2 * 4 + h * 2 + e % 2], scale, -m);
        weights_of(both, x);
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++) {
            const uint32_t two = both[j / 4][j % 4];
            l[0] += mt_f32_from_bits(two << 16);
            l[1] += mt_f32_from_bits(two & 0xffff0000u);
            *(uint32_t *)&room.p[i * 2 + who][row][((uint32_t)j ^ (row % 8)) * 16 + c * 4] = two;
        }
    }
    return quad_sum(l[0] + l[1]);
}

/* o of this warpgroup's 128 columns. */
static __device__ inline void value_wide(float (&o)[64], wide_room &room, ring &r, uint32_t who)
{
    uint32_t stage[QUARTERS];
#pragma unroll
    for (int i = 0; i < QUARTERS; i++) {
        const uint32_t p = shared_address(room.p[i]), v = shared_address(room.stage[r.stage][who * 2]);
        stage[i] = r.stage;
        barrier_wait(&room.full[r.stage], r.parity);
        products_see();
        products_begin();
#pragma unroll
        for (int k = 0; k < KEYS / 16; k++)
            product_values(o, along(p + k * 32), across(v + k * 16 * 128, KEYS * 128), i > 0 || k > 0);
        products_commit();
        step_ring<STAGES>(r);
    }
    products_wait();
#pragma unroll
    for (int i = 0; i < QUARTERS; i++)
        barrier_arrive(&room.empty[stage[i]]);
}

template <bool FEW> static __device__ inline void compute_wide(const mt_cuda_attention &p, wide_room &room)
{
    constexpr int H = FEW ? 1 : 2;
    const uint32_t thread = threadIdx.x - PRODUCERS, who = thread / 128, slab = thread / 32 % 4;
    const uint32_t base = slab * 16 + thread % 32 / 4; /* of its rows among the 64 */
    const float scale = p.scale;
    ring r = {0, 0};
    item &it = room.item;
    for (uint32_t round = 0; round * gridDim.x < p.items; round++) {
        {
            item next;
            if (!find_item(p, item_of(p, round), next))
                continue;
            named_barrier(3, COMPUTING); /* all are done with the last */
            if (thread == 0)
                it = next;
            named_barrier(3, COMPUTING);
        }
        const uint32_t group = p.heads / p.kv.heads;
        const own_rows own = find_rows<FEW>(p, it, slab);
        whole w[2] = {{-INFINITY, 0}, {-INFINITY, 0}};
        float acc[64];
#pragma unroll
        for (int i = 0; i < 64; i++)
            acc[i] = 0;
        load_wide<FEW>(p, room, it);
        for (uint32_t seg = it.seg0; seg < it.seg1; seg++) {
            const uint32_t first = seg * MT_SEGMENT;
            float m[2];
            {
                float s[2][32];
                score_wide(s, room, r, who);
                if (first < it.seen.all.lo || first + MT_SEGMENT > it.seen.all.hi)
#pragma unroll
                    for (int i = 0; i < 2; i++)
                        mask_scores<FEW, KEYS>(s[i], own, first + (i * 2 + who) * KEYS);
#pragma unroll
                for (int h = 0; h < H; h++) {
                    float most = -INFINITY;
#pragma unroll
                    for (int i = 0; i < 2 * KEYS / 4; i++) /* 16 pairs of two times 32 */
                        most = max_nan(most, s[i / 16][i % 16 / 2 * 4 + h * 2 + i % 2]);
                    most = quad_most(most);
                    if (threadIdx.x % 4 == 0)
                        room.most[who][base + h * 8] = most;
                }
                named_barrier(3, COMPUTING);
#pragma unroll
                for (int h = 0; h < H; h++) {
                    const float most = max_nan(room.most[0][base + h * 8], room.most[1][base + h * 8]);
                    const float used = scaled_most(most, scale, m[h]);
                    const float sum = weigh_wide(room, s, h, used, scale, who);
                    if (threadIdx.x % 4 == 0)
                        room.sum[who][base + h * 8] = sum;
                }
            }
            products_see();
            named_barrier(3, COMPUTING);
            float o[64];
            value_wide(o, room, r, who);
#pragma unroll
            for (int h = 0; h < H; h++) {
                const float sum = room.sum[0][base + h * 8] + room.sum[1][base + h * 8];
                float old, now;
                if (it.parts) {
                    if (own.there[h]) {
                        float *part = part_at(p, it.at, it.kv_head, seg, own.row[h], WIDTH);
                        if (threadIdx.x % 4 == 0 && who == 0)
                            *(float2 *)part = make_float2(m[h], sum);
                        store_row<128>(part + 4 + who * 128, o, h, 1.0f, 128);
                    }
                } else if (take_part(w[h], m[h], sum, old, now)) {
#pragma unroll
                    for (int j = 0; j < 16; j++)
#pragma unroll
                        for (int e = 0; e < 2; e++) {
                            float &a = acc[j * 4 + h * 2 + e];
                            a = fmaf(a, old, o[j * 4 + h * 2 + e] * now);
                        }
                }
            }
        }
        if (it.parts) {
            if (last_of_all<COMPUTING>(p, it))
                for (uint32_t row = thread / 32; row < it.at.tokens * group; row += COMPUTING / 32)
                    merge_row<WIDTH, FEW ? 8 : 2>(p, it, row);
            continue;
        }
#pragma unroll
        for (int h = 0; h < H; h++) {
            if (!own.there[h])
                continue;
            const uint32_t head = it.kv_head * group + own.row[h] % group;
            const float old = take_sink(w[h], p.sinks, head);
            if (p.sinks)
#pragma unroll
                for (int i = 0; i < 64; i++)
                    acc[i] = i % 4 / 2 == h ? fmaf(acc[i], old, 0.0f) : acc[i];
            store_row<128>(row_of(p.y, it.at.span.row + it.at.token + own.row[h] / group) + head * WIDTH + who * 128,
                           acc, h, 1.0f / w[h].l, 128);
        }
    }
}

template <bool FEW> static __device__ inline void attend_wide(const mt_cuda_attention &p)
{
    extern __shared__ uint8_t raw[];
    wide_room &room = *(wide_room *)(((uintptr_t)raw + 1023) / 1024 * 1024);
    start_barriers<STAGES>(room, COMPUTING);
    wait_for_last();
    if (threadIdx.x < PRODUCERS) {
        fewer_registers<40>();
        copy_all<WIDTH, KEYS, STAGES, false>(p, room);
    } else {
        more_registers<232>();
        compute_wide<FEW>(p, room);
    }
}

extern "C" __global__ void __launch_bounds__(384, 1) mtk_attention_few_256(mt_cuda_attention p)
{
    attend_wide<true>(p);
}

extern "C" __global__ void __launch_bounds__(384, 1) mtk_attention_many_256(mt_cuda_attention p)
{
    attend_wide<false>(p);
}
#else
KERNEL(attention_few_256)(mt_cuda_attention p)
{
}
KERNEL(attention_many_256)(mt_cuda_attention p)
{
}
#endif
