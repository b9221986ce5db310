/* y = x W' for 1 to 8 rows, W in codes of 4 or 8 bits in groups of 64, scales and biases in bf16 (R4).

   Roofline: memory. Every code is read once, from memory straight into registers.
   Tiles: 16 columns by all rows. One block a multiprocessor; its two teams of warps share the rows, and each team takes
   tile after tile.
   Warps: the warps of a team share k, in chunks of some steps of 128. Codes of the next chunk are loaded while sums of
   this one are folded, those of the first chunk while the kernel before still runs. A warp leaves xs * dot of every
   link of its chunk in shared memory, where warps of the team fold all chunks in R4's order: one warp for one row, else
   a warp for each row. Dots are exact integers and folding has one order, so the bits are those of every other kernel.
   One row: every block also packs the row (R3), and norms it where that is asked for, which takes less time than a
   kernel of its own. Gate and up: tiles of the two weights alternate, and a team combines them as soon as it has both.
   Operands: columns on the left (16 x 32), rows on the right (32 x 8). */
#include "device/cuda/common/mma.cuh"
#include "device/cuda/rows/activation.cuh"
#include "device/cuda/rows/pack.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

enum { ROW_WARPS = MT_CUDA_ROW_WARPS, TEAMS = MT_CUDA_ROW_TEAMS };

/* y[16 columns][8 rows] = from + codes (16 x 32) times q (32 x 8) */
static __device__ inline void multiply_columns(int y[4], const unsigned w[4], unsigned x0, unsigned x1,
                                               const int from[4], bool is_signed)
{
    if (is_signed)
        mma_s8_s8(y, w, x0, x1, from);
    else
        mma_u8_s8(y, w, x0, x1, from);
}

/* weight_of_tile without a loop: the first codes wait for it. */
static __device__ inline uint32_t row_weight(const mt_cuda_few &p, uint32_t *tile)
{
    uint32_t which = 0, first = 0;
#pragma unroll
    for (uint32_t i = 1; i < MT_CUDA_TOGETHER; i++)
        if (i < p.count && *tile >= p.first[i]) {
            which = i;
            first = p.first[i];
        }
    *tile -= first;
    return which;
}

/* Steps of a chunk: as many as leave registers for what is folded. */
template <int BITS> struct row_form {
    static constexpr int PER = BITS == 4 ? 4 : 2, WORDS = BITS / 4;
};

/* A chunk that is being loaded into registers: codes of both halves of the columns, and of each step word l of its 32
   pairs. */
template <int BITS> struct row_chunk {
    uint4 code[row_form<BITS>::PER][2][row_form<BITS>::WORDS];
    unsigned pair[row_form<BITS>::PER];
};

/* Where the codes and pairs of a lane begin, of a tile's steps from one on. */
typedef struct row_from {
    const uint4 *codes;
    const unsigned *pairs;
    uint32_t left; /* steps; 0: nothing */
} row_from;

template <int BITS>
static __device__ inline row_from find_chunk(const mt_cuda_few &p, uint32_t tile, uint32_t first, uint32_t left,
                                             uint32_t steps)
{
    const uint32_t lane = threadIdx.x % 32;
    const mt_cuda_weight &w = p.w[row_weight(p, &tile)];
    const uint64_t at = (uint64_t)tile * steps + first;
    return {(const uint4 *)(w.w + at * (BITS * 256)) + lane * row_form<BITS>::WORDS,
            (const unsigned *)w.scales + at * 32 + lane, left};
}

/* Two steps of a chunk, or what there is of them. */
template <int BITS> static __device__ inline void load_two(row_chunk<BITS> *c, const row_from &from, uint32_t two)
{
#pragma unroll
    for (uint32_t i = two * 2; i < two * 2 + 2; i++)
        if (i < from.left) {
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int word = 0; word < row_form<BITS>::WORDS; word++)
                    c->code[i][half][word] = __ldcs(from.codes + i * (BITS * 16) + half * (BITS * 8) + word);
            c->pair[i] = __ldcs(from.pairs + i * 32);
        }
}

/* Where a team's tile number n is: of two that are gated, tile after tile in turns. Beyond the last: tiles. */
static __device__ inline uint32_t row_tile(const mt_cuda_few &p, uint32_t team, uint32_t n)
{
    const uint32_t first = blockIdx.x + team * gridDim.x, all = TEAMS * gridDim.x;
    if (!p.glu.data)
        return first + n * all;
    const uint32_t tile = first + n / 2 * all;
    return tile < p.first[1] ? tile + n % 2 * p.first[1] : p.first[2];
}

/* The rows in shared memory, as they are packed, but for their sums: those of a row stand together. */
typedef struct row_room {
    uint8_t *q;
    float *turns, *sums;
    uint32_t apart; /* sums of a row and the next */
} row_room;

static __device__ inline row_room row_room_of(const mt_cuda_few &p, uint8_t *raw, uint32_t steps)
{
    row_room room;
    room.q = raw;
    room.turns = (float *)(raw + steps * p.m * 128);
    room.sums = room.turns + steps * p.m * 4;
    room.apart = (steps * 2 + 3) / 4 * 4;
    return room;
}

/* A warp takes some chunks of the rows. */
template <int BITS> static __device__ inline void take_rows(const mt_cuda_few &p, const row_room &room, uint32_t steps)
{
    constexpr uint32_t PER = row_form<BITS>::PER;
    const uint32_t lane = threadIdx.x % 32, m = p.m;
    for (uint32_t first = threadIdx.x / 32 * PER; first < steps; first += TEAMS * ROW_WARPS * PER) {
        const uint32_t rows = (steps - first < PER ? steps - first : PER) * m, at = first * m;
        for (uint32_t i = lane; i < rows * 8; i += 32)
            copy_16(shared_address(room.q + at * 128 + i * 16), p.from.q + (uint64_t)at * 128 + i * 16);
        for (uint32_t i = lane; i < rows; i += 32)
            copy_16(shared_address(room.turns + (at + i) * 4), p.from.turns + (uint64_t)(at + i) * 4);
        for (uint32_t i = lane; i < rows; i += 32) {
            const float *to = room.sums + (at + i) % m * room.apart + (at + i) / m * 2;
            copy_small(shared_address(to), p.from.sums + (uint64_t)(at + i) * 2, 8);
        }
    }
    copy_wait_all();
}

/* The norm's weights for a thread's part of the row: loaded before the row is there. */
enum { ROW_FACTORS = 2 }; /* times four; the rest is read when it is wanted */

static __device__ inline void load_factors(const mt_cuda_few &p, float4 w[ROW_FACTORS])
{
#pragma unroll
    for (uint32_t i = 0; i < ROW_FACTORS; i++)
        w[i] = *(const float4 *)(p.norm + (i * blockDim.x + threadIdx.x) * 4);
}

static __device__ inline float4 norm_four(const mt_cuda_few &p, float4 x, float4 w, float by)
{
    x.x = (x.x * by) * (p.offset + w.x);
    x.y = (x.y * by) * (p.offset + w.y);
    x.z = (x.z * by) * (p.offset + w.z);
    x.w = (x.w * by) * (p.offset + w.w);
    return x;
}

/* 1 / rms of the row in shared memory, by the first warp for the whole block. */
static __device__ inline float find_rms(const mt_cuda_few &p, const float *row, float *r)
{
    if (threadIdx.x < 32) {
        const float by = rms_apart(row, p.w[0].k, p.w[0].k, p.eps);
        if (threadIdx.x == 0)
            *r = by;
    }
    __syncthreads();
    return *r;
}

/* The row into shared memory, normed where it is told; the first block of all keeps that. All of the block must come
   along. */
static __device__ inline void take_row(const mt_cuda_few &p, float *row, const float4 w[ROW_FACTORS], float *r)
{
    const uint32_t k = p.w[0].k, stride = blockDim.x * 4;
#pragma unroll 4
    for (uint32_t c = threadIdx.x * 4; c < k; c += stride)
        copy_16(shared_address(row + apart(c)), p.x.data + c);
    copy_wait_all();
    __syncthreads();
    if (p.made != MT_CUDA_NORMED)
        return;
    const float by = find_rms(p, row, r);
    const auto norm = [&](uint32_t c, float4 factor) {
        float4 *at = (float4 *)(row + apart(c));
        const float4 x = *at = norm_four(p, *at, factor, by);
        if (blockIdx.x == 0)
            *(float4 *)(p.out.data + c) = x;
    };
#pragma unroll
    for (uint32_t i = 0; i < ROW_FACTORS; i++)
        norm(i * stride + threadIdx.x * 4, w[i]); /* k is more: see make_quarters */
    for (uint32_t c = ROW_FACTORS * stride + threadIdx.x * 4; c < k; c += stride)
        norm(c, *(const float4 *)(p.norm + c));
    __syncthreads();
}

/* A lane a block of 32, of rows that stand in shared memory. */
template <int BITS> static __device__ inline void make_row(const mt_cuda_few &p, const row_room &room, const float *row)
{
    mt_cuda_pack pack;
    pack.to = {room.q, room.turns, room.sums, 1, p.w[0].k};
    pack.group = 64;
    pack.wide = BITS == 8;
    for (uint32_t first = threadIdx.x / 32 * 32; first < p.w[0].k / 32; first += blockDim.x) {
        const uint32_t block = min(first + threadIdx.x % 32, p.w[0].k / 32 - 1);
        float x[32];
        load_apart(x, row, block);
        pack_block(pack, 0, block, x, first + threadIdx.x % 32 < p.w[0].k / 32);
    }
}

/* The same from memory on, for a row of which each thread has a quarter of a block of 32 (pack_quarter): it stays in
   registers, and stands in shared memory only to be normed. */
template <int BITS>
static __device__ inline void make_quarters(const mt_cuda_few &p, const row_room &room, float *row, float *r)
{
    const bool normed = p.made == MT_CUDA_NORMED;
    const uint32_t k = p.w[0].k, blocks = k / 32, block = min(threadIdx.x / 4, blocks - 1);
    const uint32_t at = block * 32 + threadIdx.x % 4 * 4;
    const bool there = threadIdx.x / 4 < blocks, busy = threadIdx.x / 32 * 8 < blocks; /* busy: some of the warp is */
    float4 w[2] = {}, x[2] = {};
#pragma unroll
    for (uint32_t i = 0; i < 2 && busy && normed; i++)
        w[i] = *(const float4 *)(p.norm + at + i * 16);
    wait_for_last();
#pragma unroll
    for (uint32_t i = 0; i < 2 && busy; i++)
        x[i] = __ldcg((const float4 *)(p.x.data + at + i * 16));
    if (normed) {
#pragma unroll
        for (uint32_t i = 0; i < 2 && there; i++)
            *(float4 *)(row + apart(at + i * 16)) = x[i];
        __syncthreads();
        const float by = find_rms(p, row, r);
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            x[i] = norm_four(p, x[i], w[i], by);
            if (blockIdx.x == 0 && there)
                *(float4 *)(p.out.data + at + i * 16) = x[i];
        }
    }
    const float all[QUARTER] = {x[0].x, x[0].y, x[0].z, x[0].w, x[1].x, x[1].y, x[1].z, x[1].w};
    mt_cuda_pack pack;
    pack.to = {room.q, room.turns, room.sums, 1, k};
    pack.group = 64;
    pack.wide = BITS == 8;
    if (busy)
        pack_quarter(pack, 0, block, all, there);
}

/* xs * dot of both links of a step.
   VALUES 4: of columns lane / 4 and + 8 for rows lane % 4 * 2 and + 1.
   VALUES 1: of the only row each column is four lanes', of which even ones have column lane / 4, odd ones + 8. */
template <int BITS, int VALUES>
static __device__ inline void step_links(float t[2][VALUES], const uint4 code[2][row_form<BITS>::WORDS],
                                         const row_room &room, uint32_t step, uint32_t m, bool is_signed)
{
    constexpr int ROWS = VALUES == 1 ? 1 : 2;
    const uint32_t lane = threadIdx.x % 32, row = min(lane % 8, m - 1);
    const unsigned at = shared_address(room.q + (step * m + row) * 128);
    unsigned x[2][4];
    load_rows(x[0], at + (lane / 8 ^ row) * 16);
    load_rows(x[1], at + ((4 + lane / 8) ^ row) * 16);
    float4 mul[ROWS];
#pragma unroll
    for (uint32_t r = 0; r < ROWS; r++)
        mul[r] = ((const float4 *)room.turns)[step * m + min(lane % 4 * 2 + r, m - 1)];
#pragma unroll
    for (int link = 0; link < 2; link++) {
        int sum[4] = {MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS};
#pragma unroll
        for (int second = 0; second < 2; second++) {
            unsigned w[4];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int block = link * 2 + second;
                if (BITS == 4) {
                    const uint4 &c = code[half][0];
                    const unsigned word = block == 0 ? c.x : block == 1 ? c.y : block == 2 ? c.z : c.w;
                    w[half] = word & 0x0f0f0f0fu;
                    w[2 + half] = word >> 4 & 0x0f0f0f0fu;
                } else {
                    const uint4 &c = code[half][link % row_form<BITS>::WORDS];
                    w[half] = second ? c.z : c.x;
                    w[2 + half] = second ? c.w : c.y;
                }
            }
            int from[4] = {sum[0], sum[1], sum[2], sum[3]};
            multiply_columns(sum, w, x[link][second * 2], x[link][second * 2 + 1], from, BITS == 4 || is_signed);
            if (VALUES == 1 && second)
                sum[0] = lane % 2 ? sum[2] : sum[0];
#pragma unroll
            for (int e = 0; e < 4; e += VALUES == 1 ? 2 : 1) {
                const int r = e % ROWS;
                const float by = link ? second ? mul[r].w : mul[r].z : second ? mul[r].y : mul[r].x;
                if (!second)
                    sum[e] = __float_as_int(fmaf(by, __int_as_float(sum[e]), turn_on_add(by)));
                else if (e < VALUES)
                    t[link][e] = fmaf(by, __int_as_float(sum[e]), turn_end_add(by));
            }
        }
    }
}

/* A column of a tile, of a row: what a lane that folds has. Other lanes fold its biases, and follow. */
typedef struct row_place {
    uint32_t row, column;
    bool biases;
} row_place;

/* The residual stream at a place: loaded before the sum is there. */
static __device__ inline float load_old(const mt_cuda_few &p, uint32_t tile, const row_place &at)
{
    const uint32_t n = tile * 16 + at.column;
    return p.add.data && !at.biases && n < p.w[0].n ? row_of(p.add, at.row)[n] : 0;
}

/* What became of it, into y; what is gated waits in `gate` for what it is gated with. old: see load_old. */
static __device__ inline void put_sum(const mt_cuda_few &p, uint32_t tile, const row_place &at, float a, float b,
                                      float &gate, float old)
{
    const uint32_t which = row_weight(p, &tile), n = tile * 16 + at.column;
    const mt_cuda_weight &w = p.w[which];
    if (at.biases || n >= w.n)
        return;
    float sum = w.biased ? a + b : a;
    sum = w.bias ? sum + w.bias[n] : sum;
    if (p.glu.data && which == 1)
        row_of(p.glu, at.row)[n] = glu_of(p.act, p.glu_limit, p.glu_offset, gate, sum);
    gate = sum;
    if (which != 0 || p.glu.data != p.y[0].data)
        row_of(p.y[which], at.row)[n] = sum;
    if (p.add.data)
        row_of(p.add, at.row)[n] = old + sum;
}

/* Steps of chunk c: `per` each, fewer at the end, none beyond it. */
static __device__ inline uint32_t steps_of(uint32_t c, uint32_t per, uint32_t steps)
{
    return c * per < steps ? min(per, steps - c * per) : 0;
}

/* All warps of a team, and no others. */
static __device__ inline void meet_team(uint32_t team)
{
    if (team) /* each with a number of its own: a number that is found out would take all there are */
        named_barrier<2, ROW_WARPS * 32>();
    else
        named_barrier<1, ROW_WARPS * 32>();
}

static __device__ inline float fold_four(float sum, const float4 &factor, const float4 &t, uint32_t steps)
{
    if (steps > 0) {
        sum = fmaf(factor.x, t.x, sum);
        sum = fmaf(factor.y, t.y, sum);
    }
    if (steps > 1) {
        sum = fmaf(factor.z, t.z, sum);
        sum = fmaf(factor.w, t.w, sum);
    }
    return sum;
}

/* What the warps of a team leave of a round of chunks, in words of two steps. Of one row: lane by lane what is folded,
   the lower two of four lanes have xs * dot and scales, the upper two sums of groups and biases. */
template <int BITS, int VALUES> struct row_left {
    static constexpr int WORDS = row_form<BITS>::PER / 2;
    float4 t[ROW_WARPS][WORDS][32], factor[ROW_WARPS][WORDS][32];

    static __device__ inline row_place place(void)
    {
        const uint32_t lane = threadIdx.x % 32;
        return {0, lane % 2 * 8 + lane / 4, lane % 4 >= 2};
    }

    /* Two steps of this warp's chunk, the first of which is `first` of all. */
    __device__ inline void leave(uint32_t two, const float (&step)[2][2][1], const unsigned (&pairs)[2],
                                 const row_room &room, uint32_t first)
    {
        const uint32_t warp = threadIdx.x / 32 % ROW_WARPS, lane = threadIdx.x % 32;
        const bool biases = lane % 4 >= 2;
        const unsigned which = biases ? 0x3244 : 0x1044;
        float by[4], of[4];
#pragma unroll
        for (uint32_t i = 0; i < 2; i++) {
            const float2 sx = ((const float2 *)room.sums)[first + i];
#pragma unroll
            for (uint32_t link = 0; link < 2; link++) {
                const unsigned pair = __shfl_sync(0xffffffffu, pairs[i], link * 16 + lane % 2 * 8 + lane / 4);
                by[i * 2 + link] = __uint_as_float(__byte_perm(pair, 0, which));
                of[i * 2 + link] = !biases ? step[i][link][0] : link ? sx.y : sx.x;
            }
        }
        t[warp][two][lane] = make_float4(of[0], of[1], of[2], of[3]);
        factor[warp][two][lane] = make_float4(by[0], by[1], by[2], by[3]);
    }

    /* A round's chunks, in their order, into a sum; c: the first of them. The next is read while one is folded. */
    __device__ inline float fold(float sum, const row_room &room, uint32_t c, uint32_t per, uint32_t steps) const
    {
        const uint32_t lane = threadIdx.x % 32;
        float4 now[WORDS], by[WORDS];
#pragma unroll
        for (uint32_t i = 0; i < WORDS; i++) {
            now[i] = t[0][i][lane];
            by[i] = factor[0][i][lane];
        }
#pragma unroll
        for (uint32_t warp = 0; warp < ROW_WARPS; warp++) {
            const uint32_t left = steps_of(c + warp, per, steps);
            float4 next[WORDS], next_by[WORDS];
#pragma unroll
            for (uint32_t i = 0; i < WORDS; i++) {
                next[i] = t[min(warp + 1, ROW_WARPS - 1)][i][lane];
                next_by[i] = factor[min(warp + 1, ROW_WARPS - 1)][i][lane];
            }
#pragma unroll
            for (uint32_t i = 0; i < WORDS; i++) {
                sum = fold_four(sum, by[i], now[i], left > i * 2 ? left - i * 2 : 0);
                now[i] = next[i];
                by[i] = next_by[i];
            }
        }
        return sum;
    }
};

/* Of more rows: xs * dot of all rows and columns, and scales with biases of the columns. The warp of a row's number
   folds it, its lower lanes xs * dot of a column each, the upper ones sums of groups. Words are exchanged by xor, so
   that neighbouring lanes find theirs in different banks, who leaves them as who folds. */
template <int BITS> struct row_left<BITS, 4> {
    static constexpr int WORDS = row_form<BITS>::PER / 2;
    float4 t[ROW_WARPS][8 * 16 * WORDS];
    uint4 pair[ROW_WARPS][16 * WORDS];

    static __device__ inline row_place place(void)
    {
        return {threadIdx.x / 32 % ROW_WARPS, threadIdx.x % 16, threadIdx.x % 32 >= 16};
    }

    static __device__ inline uint32_t t_at(uint32_t row, uint32_t column, uint32_t word)
    {
        const uint32_t at = (row * 16 + column) * WORDS + word;
        return WORDS == 1 ? at ^ (row >> 1 & 3) << 1 : at ^ ((row >> 1 ^ column >> 2) & 1) ^ (row >> 2 & 1) << 2;
    }

    static __device__ inline uint32_t pair_at(uint32_t column, uint32_t word)
    {
        return WORDS == 1 ? column : (column * WORDS + word) ^ (column >> 2 & 1);
    }

    __device__ inline void leave(uint32_t two, const float (&step)[2][2][4], const unsigned (&pairs)[2],
                                 const row_room &, uint32_t)
    {
        const uint32_t warp = threadIdx.x / 32 % ROW_WARPS, lane = threadIdx.x % 32;
#pragma unroll
        for (uint32_t v = 0; v < 4; v++)
            t[warp][t_at(lane % 4 * 2 + v % 2, v / 2 * 8 + lane / 4, two)] =
                make_float4(step[0][0][v], step[0][1][v], step[1][0][v], step[1][1][v]);
#pragma unroll
        for (uint32_t i = 0; i < 2; i++)
            ((unsigned *)&pair[warp][pair_at(lane % 16, two)])[i * 2 + lane / 16] = pairs[i];
    }

    __device__ inline float fold(float sum, const row_room &room, uint32_t c, uint32_t per, uint32_t steps) const
    {
        const row_place own = place();
        const unsigned which = own.biases ? 0x3244 : 0x1044;
        const float4 *sums = (const float4 *)(room.sums + own.row * room.apart) + c * WORDS;
#pragma unroll 4
        for (uint32_t warp = 0; warp < ROW_WARPS; warp++) {
            const uint32_t left = steps_of(c + warp, per, steps);
#pragma unroll
            for (uint32_t i = 0; i < WORDS; i++) {
                const float4 *from = own.biases ? sums + warp * WORDS + i : t[warp] + t_at(own.row, own.column, i);
                const float4 of = left > i * 2 ? *from : make_float4(0, 0, 0, 0);
                const uint4 both = pair[warp][pair_at(own.column, i)];
                const float4 by = make_float4(
                    __uint_as_float(__byte_perm(both.x, 0, which)), __uint_as_float(__byte_perm(both.y, 0, which)),
                    __uint_as_float(__byte_perm(both.z, 0, which)), __uint_as_float(__byte_perm(both.w, 0, which)));
                sum = fold_four(sum, by, of, left > i * 2 ? left - i * 2 : 0);
            }
        }
        return sum;
    }
};

/* The tiles of a team. In a round each warp has a chunk, or none where k ends, and leaves it, in one of two places
   where there are two; who folds does it while the others are at their next. `chunk` is what a warp has on its way, the
   first of the first tile. */
template <int BITS, int VALUES>
static __device__ inline void multiply_tiles(const mt_cuda_few &p, const row_room &room,
                                             row_left<BITS, VALUES> *left_by, row_chunk<BITS> &chunk, uint32_t per,
                                             uint32_t steps)
{
    constexpr uint32_t PER = row_form<BITS>::PER;
    const uint32_t team = threadIdx.x / 32 / ROW_WARPS, warp = threadIdx.x / 32 % ROW_WARPS;
    const uint32_t tiles = p.first[p.count], chunks = (steps + per - 1) / per;
    const bool is_signed = p.w[0].format != MT_FORMAT_AFFINE;
    const row_place own = row_left<BITS, VALUES>::place();
    uint32_t place = team * p.stages;
    float gate = 0;
    for (uint32_t n = 0, tile = row_tile(p, team, 0), next; tile < tiles; n++, tile = next) {
        const bool folds = VALUES > 1 ? warp < p.m : (p.glu.data ? n / 2 : n) % ROW_WARPS == warp;
        const float old = folds ? load_old(p, tile, own) : 0;
        float sum = 0;
        next = row_tile(p, team, n + 1);
        for (uint32_t c = 0; c < chunks; c += ROW_WARPS) {
            const uint32_t mine = c + warp, left = steps_of(mine, per, steps);
            if (p.stages == 1) /* until who folds is done with the round before */
                meet_team(team);
            if (left) {
                const bool goes_on = mine + ROW_WARPS < chunks;
                const uint32_t to = goes_on ? mine + ROW_WARPS : warp, of = goes_on ? tile : next;
                const row_from from =
                    find_chunk<BITS>(p, of, to * per, of < tiles ? steps_of(to, per, steps) : 0, steps);
#pragma unroll
                for (uint32_t two = 0; two < PER / 2; two++) {
                    float step[2][2][VALUES] = {};
                    unsigned pairs[2] = {};
#pragma unroll
                    for (uint32_t i = 0; i < 2; i++)
                        if (two * 2 + i < left) {
                            step_links<BITS, VALUES>(step[i], chunk.code[two * 2 + i], room, mine * per + two * 2 + i,
                                                     p.m, is_signed);
                            pairs[i] = chunk.pair[two * 2 + i];
                        }
                    load_two<BITS>(&chunk, from, two);
                    left_by[place].leave(two, step, pairs, room, mine * per + two * 2);
                }
            }
            meet_team(team);
            if (folds)
                sum = left_by[place].fold(sum, room, c, per, steps);
            place = p.stages == 1 ? place : place ^ 1;
        }
        const float b = __shfl_xor_sync(0xffffffffu, sum, VALUES > 1 ? 16 : 2);
        if (folds)
            put_sum(p, tile, own, sum, b, gate, old);
    }
}

template <int BITS, int VALUES> static __device__ inline void row_product(const mt_cuda_few &p)
{
    constexpr uint32_t PER = row_form<BITS>::PER;
    static_assert(ROW_FACTORS * 4 == QUARTER, "a row that is no quarter of a block for each has all factors");
    static_assert(TEAMS * sizeof(row_left<BITS, VALUES>) ==
                      (VALUES == 1 ? MT_CUDA_ROW_LEFT(BITS) : MT_CUDA_ROW_LEFT_MORE(BITS)),
                  "the host reserves what warps leave");
    extern __shared__ __align__(16) uint8_t row_raw[];
    const uint32_t team = threadIdx.x / 32 / ROW_WARPS, warp = threadIdx.x / 32 % ROW_WARPS;
    const uint32_t steps = p.from.padded / 128, most = (steps + ROW_WARPS - 1) / ROW_WARPS;
    const uint32_t per = VALUES == 1 && most < PER ? most : PER; /* so that no warp of a team is idle */
    const uint32_t left = steps_of(warp, per, steps), tile = row_tile(p, team, 0);
    const row_room room = row_room_of(p, row_raw, steps);
    float *row = room.sums + p.m * room.apart, *behind = row;
    row_chunk<BITS> chunk;
    const row_from from = find_chunk<BITS>(p, tile, warp * per, tile < p.first[p.count] ? left : 0, steps);
#pragma unroll
    for (uint32_t two = 0; two < PER / 2; two++)
        load_two<BITS>(&chunk, from, two);
    start_next();
    if (VALUES == 1 && p.made != MT_CUDA_PACKED) {
        __shared__ float shared_r;
        if (p.w[0].k <= blockDim.x * QUARTER) {
            make_quarters<BITS>(p, room, row, &shared_r);
        } else {
            float4 factors[ROW_FACTORS] = {};
            if (p.made == MT_CUDA_NORMED)
                load_factors(p, factors);
            wait_for_last();
            take_row(p, row, factors, &shared_r);
            make_row<BITS>(p, room, row);
        }
        behind += steps * 144;
    } else {
        wait_for_last();
        take_rows<BITS>(p, room, steps);
    }
    __syncthreads();
    multiply_tiles<BITS, VALUES>(p, room, (row_left<BITS, VALUES> *)behind, chunk, per, steps);
}

#else
template <int BITS, int VALUES> static __device__ inline void row_product(const mt_cuda_few &p)
{
}
#endif

#define ROW(name, bits, values)                                                                 \
    extern "C" __global__ void __launch_bounds__(32 * MT_CUDA_ROW_TEAMS * MT_CUDA_ROW_WARPS, 1) \
        mtk_##name(const __grid_constant__ mt_cuda_few p)                                       \
    {                                                                                           \
        row_product<bits, values>(p);                                                           \
    }
ROW(matvec_w4_g64, 4, 1)
ROW(matmul_w4_g64_rows2_8, 4, 4)
ROW(matvec_w8_g64, 8, 1)
ROW(matmul_w8_g64_rows2_8, 8, 4)
