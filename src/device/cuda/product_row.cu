/* Up to 8 rows against codes with groups of 64, at the memory's pace.

   A block has the multiprocessor to itself, and two teams, which have the rows in common; each takes tile after tile of
   16 columns. Its warps share k: chunks of some steps of 128 go round them. Codes come from memory straight to
   registers: those of the next chunk are on their way while this one's sums are folded, those of the first while the
   kernel before still runs.

   One row is made here, too (taken, or normed, and packed, R3), by every block for itself: less than a kernel of its
   own would take. And what is gated is gated as soon as both are there: tiles of the two weights take turns.

   A warp makes xs * dot of every link of its chunk by itself. Of one row, all warps leave theirs in shared memory, and
   one of them folds them in R4's order. Of more rows, a warp takes the sums of the chunk before from the warp that has
   it, folds its own in and hands them on. Dots are exact integers and folding has one order: the bits are those of
   every other kernel. Columns are the left operand (16 x 32), rows the right one (32 x 8). */
#include "device/cuda/activation.cuh"
#include "device/cuda/barrier.cuh"
#include "device/cuda/pack.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

enum { ROW_WARPS = MT_CUDA_ROW_WARPS, TEAMS = MT_CUDA_ROW_TEAMS };

/* y[16 columns][8 rows] = from + codes (16 x 32) times q (32 x 8) */
static __device__ inline void multiply_columns(int y[4], const unsigned w[4], unsigned x0, unsigned x1,
                                               const int from[4], bool is_signed)
{
    if (is_signed)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
            : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
            : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x0), "r"(x1), "r"(from[0]), "r"(from[1]), "r"(from[2]),
              "r"(from[3]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
            : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
            : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(x0), "r"(x1), "r"(from[0]), "r"(from[1]), "r"(from[2]),
              "r"(from[3]));
}

static __device__ inline void copy_piece(unsigned to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(to), "l"(from) : "memory");
}

/* Which weight a tile of 16 columns is of; the tile becomes one of its own. */
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

/* A chunk on its way: codes of both halves of the columns, and of each step word l of its 32 pairs. */
template <int BITS> struct row_chunk {
    uint4 code[row_form<BITS>::PER][2][row_form<BITS>::WORDS];
    unsigned pair[row_form<BITS>::PER];
};

/* `left` steps of a tile, from `first` on. */
template <int BITS>
static __device__ inline void load_chunk(row_chunk<BITS> *c, const mt_cuda_few &p, uint32_t tile, uint32_t first,
                                         uint32_t left, uint32_t steps)
{
    constexpr int PER = row_form<BITS>::PER, WORDS = row_form<BITS>::WORDS;
    const uint32_t lane = threadIdx.x % 32;
    const mt_cuda_weight &w = p.w[row_weight(p, &tile)];
    const uint4 *codes = (const uint4 *)(w.w + ((uint64_t)tile * steps + first) * (BITS * 256)) + lane * WORDS;
    const unsigned *pairs = (const unsigned *)w.scales + ((uint64_t)tile * steps + first) * 32 + lane;
#pragma unroll
    for (uint32_t i = 0; i < PER; i++)
        if (i < left) {
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int word = 0; word < WORDS; word++)
                    c->code[i][half][word] = __ldcs(codes + i * (BITS * 16) + half * (BITS * 8) + word);
            c->pair[i] = __ldcs(pairs + i * 32);
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

/* The rows in shared memory, as they are packed. */
typedef struct row_room {
    uint8_t *q;
    float *turns, *sums;
} row_room;

static __device__ inline row_room row_room_of(const mt_cuda_few &p, uint8_t *raw, uint32_t steps)
{
    row_room room;
    room.q = raw;
    room.turns = (float *)(raw + steps * p.m * 128);
    room.sums = room.turns + steps * p.m * 4;
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
            copy_piece(shared_address(room.q + at * 128 + i * 16), p.from.q + (uint64_t)at * 128 + i * 16);
        for (uint32_t i = lane; i < rows; i += 32)
            copy_piece(shared_address(room.turns + (at + i) * 4), p.from.turns + (uint64_t)(at + i) * 4);
        for (uint32_t i = lane; i < rows; i += 32)
            asm volatile("cp.async.ca.shared.global [%0],[%1],8;" ::"r"(shared_address(room.sums + (at + i) * 2)),
                         "l"(p.from.sums + (uint64_t)(at + i) * 2)
                         : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* Of a row that is normed, what a thread multiplies with: on its way before the row is there. */
enum { ROW_FACTORS = 2 }; /* times four; the rest is read when it is wanted */

static __device__ inline void load_factors(const mt_cuda_few &p, float4 w[ROW_FACTORS])
{
#pragma unroll
    for (uint32_t i = 0; i < ROW_FACTORS; i++) {
        const uint32_t c = (i * blockDim.x + threadIdx.x) * 4;
        w[i] = c < p.w[0].k ? *(const float4 *)(p.norm + c) : make_float4(0, 0, 0, 0);
    }
}

static __device__ inline void norm_four(const mt_cuda_few &p, float *row, uint32_t c, float4 w, float by)
{
    float4 x = *(const float4 *)(row + apart(c));
    x.x = (x.x * by) * (p.offset + w.x);
    x.y = (x.y * by) * (p.offset + w.y);
    x.z = (x.z * by) * (p.offset + w.z);
    x.w = (x.w * by) * (p.offset + w.w);
    *(float4 *)(row + apart(c)) = x;
    if (blockIdx.x == 0)
        *(float4 *)(p.out.data + c) = x;
}

/* The row into shared memory, normed where it is told; the first block of all keeps that. All of the block must come
   along. */
static __device__ inline void take_row(const mt_cuda_few &p, float *row, const float4 w[ROW_FACTORS], float *r)
{
    const uint32_t k = p.w[0].k, stride = blockDim.x * 4;
#pragma unroll 4
    for (uint32_t c = threadIdx.x * 4; c < k; c += stride)
        copy_piece(shared_address(row + apart(c)), p.x.data + c);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    if (p.made != MT_CUDA_NORMED)
        return;
    if (threadIdx.x < 32) {
        const float by = rms_apart(row, k, k, p.eps);
        if (threadIdx.x == 0)
            *r = by;
    }
    __syncthreads();
    const float by = *r;
#pragma unroll
    for (uint32_t i = 0; i < ROW_FACTORS; i++)
        if (i * stride + threadIdx.x * 4 < k)
            norm_four(p, row, i * stride + threadIdx.x * 4, w[i], by);
    for (uint32_t c = ROW_FACTORS * stride + threadIdx.x * 4; c < k; c += stride)
        norm_four(p, row, c, *(const float4 *)(p.norm + c), by);
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

/* What of a step waits until its turn comes to be folded: of both links xs * dot, and pairs.
   VALUES 4: of columns lane / 4 and + 8 for rows lane % 4 * 2 and + 1.
   VALUES 1: of the only row each column is four lanes', which would all do the same. So even lanes have column
   lane / 4, odd ones + 8, the lower two of four xs * dot and scales, the upper two sums of groups and biases. */
template <int VALUES> struct row_step {
    static constexpr int COLUMNS = VALUES == 1 ? 1 : 2;
    float t[2][VALUES];
    unsigned pair[2][COLUMNS];
};

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

/* The sums of both groups of a step, of a row that a lane has. */
static __device__ inline float2 step_sums(const row_room &room, uint32_t step, uint32_t m, uint32_t row)
{
    return ((const float2 *)room.sums)[step * m + min(row, m - 1)];
}

template <int BITS, int VALUES>
static __device__ inline void make_step(row_step<VALUES> *s, const uint4 code[2][row_form<BITS>::WORDS], unsigned pairs,
                                        const row_room &room, uint32_t step, uint32_t m, bool is_signed)
{
    const uint32_t lane = threadIdx.x % 32;
    step_links<BITS, VALUES>(s->t, code, room, step, m, is_signed);
#pragma unroll
    for (int link = 0; link < 2; link++)
#pragma unroll
        for (int c = 0; c < row_step<VALUES>::COLUMNS; c++)
            s->pair[link][c] = __shfl_sync(0xffffffffu, pairs, link * 16 + (VALUES == 1 ? lane % 2 : c) * 8 + lane / 4);
    if (VALUES == 1) {
        const float2 sx = step_sums(room, step, m, 0);
        const bool biases = lane % 4 >= 2;
#pragma unroll
        for (int link = 0; link < 2; link++) {
            s->pair[link][0] = __byte_perm(s->pair[link][0], 0, biases ? 0x3244 : 0x1044);
            s->t[link][0] = !biases ? s->t[link][0] : link ? sx.y : sx.x;
        }
    }
}

/* Sums of a tile on their way from warp to warp: scales times links, then biases times sums of groups. */
template <int VALUES> struct row_sums {
    static constexpr int COUNT = VALUES == 1 ? 1 : 2 * VALUES;
    float sum[COUNT];
};

template <int VALUES>
static __device__ inline void fold_step(row_sums<VALUES> *y, const row_step<VALUES> &s, const row_room &room,
                                        uint32_t step, uint32_t m)
{
    float2 sx[2];
#pragma unroll
    for (uint32_t r = 0; r < 2; r++)
        sx[r] = step_sums(room, step, m, threadIdx.x % 4 * 2 + r);
#pragma unroll
    for (int link = 0; link < 2; link++)
#pragma unroll
        for (int v = 0; v < VALUES; v++) {
            const unsigned both = s.pair[link][v / 2];
            float &a = y->sum[v], &b = y->sum[VALUES + v];
            a = fmaf(__uint_as_float(both << 16), s.t[link][v], a);
            b = fmaf(__uint_as_float(both & 0xffff0000u), link ? sx[v % 2].y : sx[v % 2].x, b);
        }
}

/* What the sums of a tile are added to, of one row: on its way before they are there. */
static __device__ inline float load_old(const mt_cuda_few &p, uint32_t tile)
{
    const uint32_t lane = threadIdx.x % 32, n = tile * 16 + lane % 2 * 8 + lane / 4;
    return p.add.data && n < p.w[0].n ? p.add.data[n] : 0;
}

/* What became of a tile, into y; what is gated waits in `gate` for what it is gated with. old: see load_old. */
template <int VALUES>
static __device__ inline void put_tile(const mt_cuda_few &p, const row_sums<VALUES> &y, uint32_t tile,
                                       float gate[VALUES], float old)
{
    const uint32_t lane = threadIdx.x % 32, which = row_weight(p, &tile);
    const mt_cuda_weight &w = p.w[which];
    const float above = VALUES == 1 ? __shfl_xor_sync(0xffffffffu, y.sum[0], 2) : 0;
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
        const uint32_t row = VALUES == 1 ? lane % 4 / 2 : lane % 4 * 2 + v % 2;
        const uint32_t n = tile * 16 + (VALUES == 1 ? lane % 2 : v / 2) * 8 + lane / 4;
        if (row >= p.m || n >= w.n)
            continue;
        const float b = VALUES == 1 ? above : y.sum[(VALUES + v) % row_sums<VALUES>::COUNT];
        float sum = w.biased ? y.sum[v] + b : y.sum[v];
        sum = w.bias ? sum + w.bias[n] : sum;
        if (p.glu.data && which == 1)
            row_of(p.glu, row)[n] = glu_of(p.act, p.glu_limit, p.glu_offset, gate[v], sum);
        gate[v] = sum;
        if (which != 0 || p.glu.data != p.y[0].data)
            row_of(p.y[which], row)[n] = sum;
        if (p.add.data)
            row_of(p.add, row)[n] = (VALUES == 1 ? old : row_of(p.add, row)[n]) + sum;
    }
}

/* What a warp hands to the next one, lane by lane, in two places in turns. Every lane speaks for itself: what is there,
   and that it may be written over. */
template <int VALUES> struct row_handing {
    float sum[2][row_sums<VALUES>::COUNT][32];
    uint64_t full[2], empty[2];
};

/* number: of what was handed over there before. */
template <int VALUES>
static __device__ inline void take_sums(row_sums<VALUES> *y, row_handing<VALUES> *from, uint32_t number)
{
    const uint32_t lane = threadIdx.x % 32, place = number % 2;
    barrier_wait(&from->full[place], number / 2 % 2);
#pragma unroll
    for (int i = 0; i < row_sums<VALUES>::COUNT; i++)
        y->sum[i] = from->sum[place][i][lane];
    barrier_arrive(&from->empty[place]);
}

/* The place must be empty. */
template <int VALUES>
static __device__ inline void hand_sums(const row_sums<VALUES> &y, row_handing<VALUES> *to, uint32_t number)
{
    const uint32_t lane = threadIdx.x % 32, place = number % 2;
#pragma unroll
    for (int i = 0; i < row_sums<VALUES>::COUNT; i++)
        to->sum[place][i][lane] = y.sum[i];
    barrier_arrive(&to->full[place]);
}

/* Steps of chunk c: `per` each, fewer at the end, none beyond it. */
static __device__ inline uint32_t steps_of(uint32_t c, uint32_t per, uint32_t steps)
{
    return c * per < steps ? min(per, steps - c * per) : 0;
}

/* ---- one row ---- */

/* What the warps of a team leave of a round of chunks, lane by lane (row_step<1>): two steps a word of four. */
template <int BITS> struct row_left {
    static constexpr int WORDS = row_form<BITS>::PER / 2;
    float4 t[ROW_WARPS][WORDS][32], factor[ROW_WARPS][WORDS][32];
};

template <int BITS>
static __device__ inline void leave_chunk(row_left<BITS> *to, const row_step<1> step[row_form<BITS>::PER])
{
    const uint32_t warp = threadIdx.x / 32 % ROW_WARPS, lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < row_left<BITS>::WORDS; i++) {
        const row_step<1> &a = step[2 * i], &b = step[2 * i + 1];
        to->t[warp][i][lane] = make_float4(a.t[0][0], a.t[1][0], b.t[0][0], b.t[1][0]);
        to->factor[warp][i][lane] = make_float4(__uint_as_float(a.pair[0][0]), __uint_as_float(a.pair[1][0]),
                                                __uint_as_float(b.pair[0][0]), __uint_as_float(b.pair[1][0]));
    }
}

/* A round's chunks, in their order, into a sum; c: the first of them. The next one is read while one is folded. */
template <int BITS>
static __device__ inline float fold_round(float sum, const row_left<BITS> &from, uint32_t c, uint32_t per,
                                          uint32_t steps)
{
    constexpr int WORDS = row_left<BITS>::WORDS;
    const uint32_t lane = threadIdx.x % 32;
    float4 t[WORDS], factor[WORDS], next_t[WORDS], next_factor[WORDS];
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        t[i] = from.t[0][i][lane];
        factor[i] = from.factor[0][i][lane];
    }
#pragma unroll
    for (uint32_t warp = 0; warp < ROW_WARPS; warp++) {
        const uint32_t left = steps_of(c + warp, per, steps);
#pragma unroll
        for (int i = 0; i < WORDS && warp + 1 < ROW_WARPS; i++) {
            next_t[i] = from.t[warp + 1][i][lane];
            next_factor[i] = from.factor[warp + 1][i][lane];
        }
#pragma unroll
        for (uint32_t i = 0; i < WORDS; i++) {
            if (i * 2 < left) {
                sum = fmaf(factor[i].x, t[i].x, sum);
                sum = fmaf(factor[i].y, t[i].y, sum);
            }
            if (i * 2 + 1 < left) {
                sum = fmaf(factor[i].z, t[i].z, sum);
                sum = fmaf(factor[i].w, t[i].w, sum);
            }
            t[i] = next_t[i];
            factor[i] = next_factor[i];
        }
    }
    return sum;
}

/* All warps of a team, and no others. */
static __device__ inline void meet_team(uint32_t team)
{
    if (team) /* each with a number of its own: a number that is found out would take all there are */
        asm volatile("bar.sync 2, %0;" ::"n"(ROW_WARPS * 32) : "memory");
    else
        asm volatile("bar.sync 1, %0;" ::"n"(ROW_WARPS * 32) : "memory");
}

/* The tiles of a team. In a round each warp has a chunk, or none where k ends, and leaves it in one of two places; the
   one whose turn it is folds what all have left, while the others are at their next. `chunk` is what a warp has on its
   way, the first of the first tile. */
template <int BITS>
static __device__ inline void multiply_row(const mt_cuda_few &p, const row_room &room, row_left<BITS> *left_by,
                                           row_chunk<BITS> &chunk, uint32_t per, uint32_t steps)
{
    constexpr uint32_t PER = row_form<BITS>::PER;
    const uint32_t team = threadIdx.x / 32 / ROW_WARPS, warp = threadIdx.x / 32 % ROW_WARPS;
    const uint32_t tiles = p.first[p.count], chunks = (steps + per - 1) / per;
    const bool is_signed = p.w[0].format != MT_FORMAT_AFFINE;
    uint32_t place = 0;
    float gate[1] = {};
    row_left<BITS> *own = left_by + team * 2;
    for (uint32_t n = 0, tile = row_tile(p, team, 0), next; tile < tiles; n++, tile = next) {
        const bool folds = (p.glu.data ? n / 2 : n) % ROW_WARPS == warp;
        const float old = folds ? load_old(p, tile) : 0;
        row_sums<1> y = {};
        next = row_tile(p, team, n + 1);
        for (uint32_t c = 0; c < chunks; c += ROW_WARPS, place ^= 1) {
            const uint32_t mine = c + warp, left = steps_of(mine, per, steps);
            if (left) {
                row_step<1> step[PER] = {};
#pragma unroll
                for (uint32_t i = 0; i < PER; i++)
                    if (i < left)
                        make_step<BITS, 1>(&step[i], chunk.code[i], chunk.pair[i], room, mine * per + i, 1, is_signed);
                const bool goes_on = mine + ROW_WARPS < chunks;
                const uint32_t to = goes_on ? mine + ROW_WARPS : warp, of = goes_on ? tile : next;
                if (of < tiles)
                    load_chunk<BITS>(&chunk, p, of, to * per, steps_of(to, per, steps), steps);
                leave_chunk<BITS>(&own[place], step);
            }
            meet_team(team);
            if (folds)
                y.sum[0] = fold_round<BITS>(y.sum[0], own[place], c, per, steps);
        }
        if (folds)
            put_tile<1>(p, y, tile, gate, old);
    }
}

/* ---- more rows ---- */

template <int BITS>
static __device__ inline void multiply_rows(const mt_cuda_few &p, const row_room &room, row_handing<4> *handing,
                                            row_chunk<BITS> &chunk, uint32_t steps)
{
    constexpr uint32_t PER = row_form<BITS>::PER;
    const uint32_t team = threadIdx.x / 32 / ROW_WARPS, warp = threadIdx.x / 32 % ROW_WARPS;
    const uint32_t tiles = p.first[p.count], chunks = (steps + PER - 1) / PER;
    const bool is_signed = p.w[0].format != MT_FORMAT_AFFINE;
    row_handing<4> *before = &handing[(warp + ROW_WARPS - 1) % ROW_WARPS];
    uint32_t n = 0, c = warp, tile = warp < chunks ? row_tile(p, team, 0) : tiles, taken = 0, given = 0;
    float gate[4] = {};
    while (tile < tiles) {
        const uint32_t now = tile, at = c, first = c * PER, left = steps - first;
        row_step<4> step[PER];
#pragma unroll
        for (uint32_t i = 0; i < PER; i++)
            if (i < left)
                make_step<BITS, 4>(&step[i], chunk.code[i], chunk.pair[i], room, first + i, p.m, is_signed);
        c += ROW_WARPS;
        if (c >= chunks) {
            c = warp;
            tile = row_tile(p, team, ++n);
        }
        if (tile < tiles)
            load_chunk<BITS>(&chunk, p, tile, c * PER, steps - c * PER, steps);
        row_sums<4> y = {};
        if (at + 1 < chunks) /* long true; now, when nobody waits for what comes behind */
            barrier_wait(&handing[warp].empty[given % 2], given / 2 % 2 ^ 1);
        if (at > 0)
            take_sums<4>(&y, before, taken++);
#pragma unroll
        for (uint32_t i = 0; i < PER; i++)
            if (i < left)
                fold_step<4>(&y, step[i], room, first + i, p.m);
        if (at + 1 < chunks)
            hand_sums<4>(y, &handing[warp], given++);
        else
            put_tile<4>(p, y, now, gate, 0);
    }
}

template <int BITS, int VALUES> static __device__ inline void row_product(const mt_cuda_few &p)
{
    constexpr uint32_t PER = row_form<BITS>::PER;
    extern __shared__ __align__(16) uint8_t row_raw[];
    const uint32_t team = threadIdx.x / 32 / ROW_WARPS, warp = threadIdx.x / 32 % ROW_WARPS, lane = threadIdx.x % 32;
    const uint32_t steps = p.from.padded / 128, most = (steps + ROW_WARPS - 1) / ROW_WARPS;
    const uint32_t per = VALUES == 1 && most < PER ? most : PER; /* so that no warp of a team is idle */
    const uint32_t left = steps_of(warp, per, steps), tile = row_tile(p, team, 0);
    const row_room room = row_room_of(p, row_raw, steps);
    float *row = room.sums + (steps * p.m * 2 + 3) / 4 * 4;
    row_chunk<BITS> chunk;
    if (left && tile < p.first[p.count])
        load_chunk<BITS>(&chunk, p, tile, warp * per, left, steps);
    start_next();
    if constexpr (VALUES == 1) {
        __shared__ float shared_r;
        float4 factors[ROW_FACTORS] = {};
        if (p.made == MT_CUDA_NORMED)
            load_factors(p, factors);
        wait_for_last();
        if (p.made != MT_CUDA_PACKED) {
            take_row(p, row, factors, &shared_r);
            make_row<BITS>(p, room, row);
        } else {
            take_rows<BITS>(p, room, steps);
        }
        __syncthreads();
        multiply_row<BITS>(p, room, (row_left<BITS> *)(p.made ? row + steps * 144 : row), chunk, per, steps);
    } else {
        __shared__ row_handing<4> handings[TEAMS][ROW_WARPS];
        if (lane == 0)
            for (uint32_t i = 0; i < 2; i++) {
                barrier_init(&handings[team][warp].full[i], 32);
                barrier_init(&handings[team][warp].empty[i], 32);
            }
        wait_for_last();
        take_rows<BITS>(p, room, steps);
        __syncthreads();
        multiply_rows<BITS>(p, room, handings[team], chunk, steps);
    }
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
ROW(row_4_1, 4, 1)
ROW(row_4_8, 4, 4)
ROW(row_8_1, 8, 1)
ROW(row_8_8, 8, 4)
