/* Products of 9 to 64 rows with codes of 4 bits in groups of 64. What limits them is not the memory but how many
   instructions R4 takes, so little is done besides.

   Blocks stay and take tiles of 16 columns, p.together of them side by side, chunk after chunk of k. What a chunk needs
   of the rows and of all these tiles lies in one slot of a ring and comes with one barrier. Nobody fetches for others
   all the time: the slot of a chunk that all have had is filled again by one warp of those that come to a later chunk,
   by each in its turn.

   A warp has ROWS times 16 rows and COLS times 8 columns, whole tiles: what is made of rows (factors) serves all its
   columns, what is made of columns (codes, scales) all its rows. Rows beyond p.m are whatever lies behind: a row
   depends on itself alone, and they are not put. Rows are the left operand (16 x 32), columns the right one (32 x 8).

   Where columns are many, a warp has its own from the first group to the last, and sums stay in registers. Where they
   are few, p.split warps have the same and take turns (TURNS): each makes xs * dot of all links of its chunk, takes the
   sums from the one before, folds its own in, in R4's order, and hands them on.

   Where gate and up are gated (p.pairs), a block has neighbouring tiles of gate, each followed by that of up with the
   same columns, and a warp two of them: what it writes is act(gate) * up. Where that is packed, too, who is last to
   write some of a link of 64 columns packs it (R3). */
#include "device/cuda/common/barrier.cuh"
#include "device/cuda/rows/activations.cuh"
#include "device/cuda/rows/pack.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

#define TILE_BYTES(chunk) ((chunk) * (1024 + 128)) /* of a tile, in a slot */

/* y[16 rows][8 columns] = from + q (16 x 32) times codes (32 x 8) */
static __device__ inline void multiply_rows(int y[4], const unsigned x[4], const unsigned w[2], const int from[4])
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
        : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]), "r"(from[0]), "r"(from[1]), "r"(from[2]),
          "r"(from[3]));
}

typedef struct some_room {
    uint64_t full[MT_CUDA_SOME_STAGES], empty[MT_CUDA_SOME_STAGES];
    uint64_t turn[MT_CUDA_SOME_TURNING]; /* it is the warp's */
} some_room;

/* Where things lie, in bytes: of a slot q, tiles, turns and sums. */
typedef struct some_plan {
    uint32_t steps, chunks, mine, rounds;
    uint32_t tiles, turns, sums, slot;
} some_plan;

static __device__ inline some_plan some_plan_of(const mt_cuda_few &p, uint32_t chunk)
{
    some_plan f;
    const uint32_t tiles = p.first[p.count];
    f.steps = p.from.padded / 128;
    f.chunks = (f.steps + chunk - 1) / chunk;
    f.mine = blockIdx.x < tiles ? (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    if (p.pairs)
        f.mine = 2 * min(p.pairs, p.first[1] - min(blockIdx.x * p.pairs, p.first[1]));
    f.rounds = (f.mine + p.together - 1) / p.together;
    f.tiles = chunk * p.m * 128;
    f.turns = f.tiles + p.together * TILE_BYTES(chunk);
    f.sums = f.turns + chunk * p.m * 16;
    f.slot = MT_CUDA_SOME_SLOT(p.m, p.together, chunk);
    return f;
}

/* Which weight a block's tile of a number is of, and which of its tiles. */
static __device__ inline uint32_t some_weight(const mt_cuda_few &p, uint32_t number, uint32_t *tile)
{
    uint32_t i = 0;
    if (p.pairs) {
        *tile = blockIdx.x * p.pairs + number / 2;
        return number % 2;
    }
    *tile = blockIdx.x + number * gridDim.x;
    while (i + 1 < p.count && *tile >= p.first[i + 1])
        i++;
    *tile -= p.first[i];
    return i;
}

/* A chunk of the tiles of a round, lane j those of tile j, and how much there will be of all. */
static __device__ inline void fetch_tiles(const mt_cuda_few &p, const some_plan &f, uint32_t most, uint8_t *slot,
                                          uint64_t *full, uint32_t round, uint32_t chunk)
{
    const uint32_t j = threadIdx.x % 32, first = chunk * most, size = min(most, f.steps - first);
    const uint32_t here = min(p.together, f.mine - round * p.together);
    if (j == 0)
        barrier_expect(full, size * (here * 1152 + p.m * 144) + (size * p.m * 8 + 15) / 16 * 16);
    __syncwarp();
    if (j < here) {
        uint32_t tile;
        const mt_cuda_weight &w = p.w[some_weight(p, round * p.together + j, &tile)];
        uint8_t *to = slot + f.tiles + j * TILE_BYTES(most);
        const uint64_t step = (uint64_t)tile * f.steps + first;
        fetch(to, w.w + step * 1024, size * 1024, full);
        fetch(to + most * 1024, w.scales + step * 128, size * 128, full);
    }
    __syncwarp();
}

/* The same of the rows, by three lanes. Copies are counted in 16 bytes. */
static __device__ inline void fetch_rows(const mt_cuda_few &p, const some_plan &f, uint32_t most, uint8_t *slot,
                                         uint64_t *full, uint32_t chunk)
{
    const uint32_t lane = threadIdx.x % 32, size = min(most, f.steps - chunk * most);
    const uint64_t at = (uint64_t)chunk * most * p.m;
    if (lane == 0)
        fetch(slot, p.from.q + at * 128, size * p.m * 128, full);
    if (lane == 1)
        fetch(slot + f.turns, p.from.turns + at * 4, size * p.m * 16, full);
    if (lane == 2)
        fetch(slot + f.sums, p.from.sums + at * 2, (size * p.m * 8 + 15) / 16 * 16, full);
    __syncwarp();
}

template <int ROWS, int COLS> struct some_sums {
    float a[ROWS][COLS][4], b[ROWS][COLS][4];
};

/* Where a lane finds its own in a slot, at a step: a piece of a row (of the first block of 32 of k; see piece_of),
   factors and sums of rows, codes and scales of columns. */
typedef struct some_place {
    const uint8_t *piece, *turns, *sums, *codes, *scales;
} some_place;

/* The same of another block: rows begin at multiples of 128 bytes, in which pieces are exchanged by xor. */
static __device__ inline unsigned piece_of(const some_place &at, int block)
{
    return shared_address(at.piece) ^ block * 32;
}

/* xs * dot of a group's link with 16 rows; w: codes of its two blocks of 32. */
template <int COLS>
static __device__ inline void some_links(float link[COLS][4], const some_place &at, const unsigned w[COLS][2][2], int g,
                                         int t, const int start[4])
{
    unsigned x[2][4];
    load_rows(x[0], piece_of(at, g * 2) + t * 2048);
    load_rows(x[1], piece_of(at, g * 2 + 1) + t * 2048);
    float on[2], on_add[2], end[2], end_add[2]; /* of rows lane / 4 and + 8 */
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const float2 mul = *(const float2 *)(at.turns + t * 256 + h * 128 + g * 8);
        on[h] = mul.x, on_add[h] = turn_on_add(mul.x);
        end[h] = mul.y, end_add[h] = turn_end_add(mul.y);
    }
    int dot[COLS][4];
#pragma unroll
    for (int c = 0; c < COLS; c++)
        multiply_rows(dot[c], x[0], w[c][0], start);
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int c = 0; c < COLS; c++)
#pragma unroll
            for (int e = h * 2; e < h * 2 + 2; e++)
                dot[c][e] = __float_as_int(fmaf(on[h], __int_as_float(dot[c][e]), on_add[h]));
#pragma unroll
    for (int c = 0; c < COLS; c++)
        multiply_rows(dot[c], x[1], w[c][1], dot[c]);
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int c = 0; c < COLS; c++)
#pragma unroll
            for (int e = h * 2; e < h * 2 + 2; e++)
                link[c][e] = fmaf(end[h], __int_as_float(dot[c][e]), end_add[h]);
}

/* Codes of a group, of which a step has two. */
template <int COLS> static __device__ inline void some_codes(unsigned w[COLS][2][2], const uint4 codes[COLS], int g)
{
#pragma unroll
    for (int c = 0; c < COLS; c++) {
        const unsigned word[2] = {g ? codes[c].z : codes[c].x, g ? codes[c].w : codes[c].y};
#pragma unroll
        for (int i = 0; i < 2; i++) {
            w[c][i][0] = word[i] & 0x0f0f0f0fu;
            w[c][i][1] = word[i] >> 4 & 0x0f0f0f0fu;
        }
    }
}

template <int COLS, int CHUNK> static __device__ inline void some_load(uint4 codes[COLS], const some_place &at)
{
#pragma unroll
    for (int c = 0; c < COLS; c++)
        codes[c] = *(const uint4 *)(at.codes + c / 2 * TILE_BYTES(CHUNK) + c % 2 * 512);
}

/* Scales and biases of a group's columns. */
template <int COLS, int CHUNK>
static __device__ inline void some_scales(float2 pair[COLS][2], const some_place &at, int g)
{
#pragma unroll
    for (int c = 0; c < COLS; c++) {
        const uint2 both = *(const uint2 *)(at.scales + c / 2 * TILE_BYTES(CHUNK) + c % 2 * 32 + g * 64);
        pair[c][0] = make_float2(__uint_as_float(both.x << 16), __uint_as_float(both.x & 0xffff0000u));
        pair[c][1] = make_float2(__uint_as_float(both.y << 16), __uint_as_float(both.y & 0xffff0000u));
    }
}

/* Folds a group's links with 16 rows into sums. */
template <int ROWS, int COLS>
static __device__ inline void some_fold(some_sums<ROWS, COLS> *y, const float link[COLS][4], const some_place &at,
                                        const float2 pair[COLS][2], int g, int t)
{
    float sx[2];
#pragma unroll
    for (int h = 0; h < 2; h++)
        sx[h] = *(const float *)(at.sums + t * 128 + h * 64 + g * 4);
#pragma unroll
    for (int i = 0; i < 4 * COLS; i++) { /* a column's two rows one after the other */
        const int c = i / 4, e = i % 4 / 2 + i % 2 * 2;
        y->a[t][c][e] = fmaf(pair[c][e % 2].x, link[c][e], y->a[t][c][e]);
    }
#pragma unroll
    for (int i = 0; i < 4 * COLS; i++) {
        const int c = i / 4, e = i % 4 / 2 + i % 2 * 2;
        y->b[t][c][e] = fmaf(pair[c][e % 2].y, sx[e / 2], y->b[t][c][e]);
    }
}

static __device__ inline some_place some_next(some_place at, uint32_t m)
{
    at.piece += m * 128;
    at.turns += m * 16, at.sums += m * 8;
    at.codes += 1024, at.scales += 128;
    return at;
}

/* A step of who has its columns by itself. */
template <int ROWS, int COLS, int CHUNK>
static __device__ inline void some_step(some_sums<ROWS, COLS> *sums, const some_place &at, const int start[4])
{
    uint4 codes[COLS];
    some_load<COLS, CHUNK>(codes, at);
#pragma unroll
    for (int g = 0; g < 2; g++) {
        unsigned w[COLS][2][2];
        float2 pair[COLS][2];
        some_codes<COLS>(w, codes, g);
        some_scales<COLS, CHUNK>(pair, at, g);
#pragma unroll
        for (int t = 0; t < ROWS; t++) {
            float link[COLS][4];
            some_links<COLS>(link, at, w, g, t, start);
            some_fold<ROWS, COLS>(sums, link, at, pair, g, t);
        }
    }
}

/* The same of one that takes turns with others: it makes all links, takes the sums from the one before, folds its own
   in, and hands them on. handed: the lane's, of the chain. */
template <int ROWS, int COLS, int CHUNK>
static __device__ inline void some_turn(some_sums<ROWS, COLS> *sums, const some_place &first, uint32_t m, uint32_t size,
                                        const int start[4], float4 *handed, uint64_t *turn, uint32_t phase,
                                        uint64_t *next, bool begins, bool ends)
{
    constexpr int SUMS = sizeof(*sums) / sizeof(float4);
    float *all = (float *)sums;
    float link[CHUNK][2][ROWS][COLS][4];
    some_place at = first;
#pragma unroll
    for (uint32_t step = 0; step < CHUNK; step++) {
        if (step < size) {
            uint4 codes[COLS];
            some_load<COLS, CHUNK>(codes, at);
#pragma unroll
            for (int g = 0; g < 2; g++) {
                unsigned w[COLS][2][2];
                some_codes<COLS>(w, codes, g);
#pragma unroll
                for (int t = 0; t < ROWS; t++)
                    some_links<COLS>(link[step][g][t], at, w, g, t, start);
            }
        }
        at = some_next(at, m);
    }
    if (turn)
        barrier_wait(turn, phase);
    if (begins) {
        *sums = {};
    } else {
#pragma unroll
        for (int i = 0; i < SUMS; i++) {
            const float4 four = handed[i * 32];
            all[i * 4] = four.x, all[i * 4 + 1] = four.y, all[i * 4 + 2] = four.z, all[i * 4 + 3] = four.w;
        }
    }
    at = first;
#pragma unroll
    for (uint32_t step = 0; step < CHUNK; step++) {
        if (step < size) {
#pragma unroll
            for (int g = 0; g < 2; g++) {
                float2 pair[COLS][2];
                some_scales<COLS, CHUNK>(pair, at, g);
#pragma unroll
                for (int t = 0; t < ROWS; t++)
                    some_fold<ROWS, COLS>(sums, link[step][g][t], at, pair, g, t);
            }
        }
        at = some_next(at, m);
    }
#pragma unroll
    for (int i = 0; !ends && i < SUMS; i++)
        handed[i * 32] = make_float4(all[i * 4], all[i * 4 + 1], all[i * 4 + 2], all[i * 4 + 3]);
    if (next)
        barrier_arrive(next);
}

/* Two neighbouring columns of a row. */
static __device__ inline float2 some_value(const mt_cuda_weight &w, const float a[4], const float b[4], int h,
                                           float2 bias)
{
    float2 y = make_float2(a[h * 2], a[h * 2 + 1]);
    if (w.biased)
        y.x = y.x + b[h * 2], y.y = y.y + b[h * 2 + 1];
    if (w.bias)
        y.x = y.x + bias.x, y.y = y.y + bias.y;
    return y;
}

static __device__ inline float2 some_bias(const mt_cuda_weight &w, uint32_t n)
{
    return w.bias && n < w.n ? make_float2(w.bias[n], w.bias[n + 1]) : make_float2(0, 0);
}

/* Sums of a tile, or of two, into y, and onto the residual stream where it is told: what that has is read at once, not
   one after the other. number: of the first tile among the block's; row, column: the lane's first. */
template <int ROWS, int COLS>
static __device__ inline void some_put(const mt_cuda_few &p, const some_sums<ROWS, COLS> &sums, uint32_t number,
                                       uint32_t mine, uint32_t row, uint32_t column)
{
#pragma unroll
    for (int half = 0; half < COLS / 2; half++) {
        if (number + half >= mine)
            break;
        uint32_t tile;
        const uint32_t which = some_weight(p, number + half, &tile), n = tile * 16 + column;
        const mt_cuda_weight &w = p.w[which];
        float *to = row_of(p.y[which], row) + n, *onto = p.add.data ? row_of(p.add, row) + n : NULL;
        const float2 bias[2] = {some_bias(w, n), some_bias(w, n + 8)};
        float2 before[ROWS * 2][2];
#pragma unroll
        for (int i = 0; i < ROWS * 2; i++)
#pragma unroll
            for (int c = 0; c < 2; c++)
                if (onto && row + i * 8 < p.m && n + c * 8 < w.n)
                    before[i][c] = *(const float2 *)(onto + i * 8 * p.add.stride + c * 8);
#pragma unroll
        for (int i = 0; i < ROWS * 2; i++)
#pragma unroll
            for (int c = 0; c < 2; c++) {
                const int at = half * 2 + c;
                const float2 y = some_value(w, sums.a[i / 2][at], sums.b[i / 2][at], i % 2, bias[c]);
                if (row + i * 8 >= p.m || n + c * 8 >= w.n)
                    continue;
                *(float2 *)(to + i * 8 * p.y[which].stride + c * 8) = y;
                if (onto)
                    *(float2 *)(onto + i * 8 * p.add.stride + c * 8) =
                        make_float2(before[i][c].x + y.x, before[i][c].y + y.y);
            }
    }
}

/* The same of a tile of gate and one of up: what is made of both, and both as far as nothing else is written there. */
template <int ROWS>
static __device__ inline void some_gate(const mt_cuda_few &p, const some_sums<ROWS, 4> &sums, uint32_t number,
                                        uint32_t row, uint32_t column)
{
    uint32_t tile;
    some_weight(p, number, &tile);
    const uint32_t n = tile * 16 + column;
    const mt_cuda_weight &gate = p.w[0], &up = p.w[1];
#pragma unroll
    for (int c = 0; c < 2; c++) {
        if (n + c * 8 >= gate.n)
            break;
        const float2 bias[2] = {some_bias(gate, n + c * 8), some_bias(up, n + c * 8)};
        float *to = row_of(p.glu, row) + n + c * 8, *gates = row_of(p.y[0], row) + n + c * 8;
        float *ups = row_of(p.y[1], row) + n + c * 8;
        float g[ROWS * 4], u[ROWS * 4];
#pragma unroll
        for (int i = 0; i < ROWS * 2; i++) {
            const float2 one = some_value(gate, sums.a[i / 2][c], sums.b[i / 2][c], i % 2, bias[0]);
            const float2 other = some_value(up, sums.a[i / 2][c + 2], sums.b[i / 2][c + 2], i % 2, bias[1]);
            g[i * 2] = one.x, g[i * 2 + 1] = one.y, u[i * 2] = other.x, u[i * 2 + 1] = other.y;
            if (row + i * 8 >= p.m)
                continue;
            *(float2 *)(ups + i * 8 * p.y[1].stride) = other;
            if (p.glu.data != p.y[0].data)
                *(float2 *)(gates + i * 8 * p.y[0].stride) = one;
        }
        gate_all(g, u, p.act, p.glu_limit, p.glu_offset);
#pragma unroll
        for (int i = 0; i < ROWS * 2; i++)
            if (row + i * 8 < p.m)
                *(float2 *)(to + i * 8 * p.glu.stride) = make_float2(g[i * 2], g[i * 2 + 1]);
    }
}

/* Packs the links of which this block has written the last tile. */
static __device__ inline void some_pack(const mt_cuda_few &p)
{
    enum { TILES = 4 }; /* of a link */
    __shared__ uint32_t complete;
    const uint32_t all = p.first[1], begin = min(blockIdx.x * p.pairs, all), end = min(begin + p.pairs, all);
    const uint32_t first = begin / TILES, lane = threadIdx.x % 32, items = 2 * p.m;
    __threadfence();
    __syncthreads();
    if (threadIdx.x < 32) {
        const uint32_t link = first + lane;
        bool last = false;
        if (link * TILES < end) {
            const uint32_t own = min(end, link * TILES + TILES) - max(begin, link * TILES);
            last = atomicAdd(p.links + link, own) + own == TILES;
            if (last)
                p.links[link] = 0;
        }
        const unsigned mask = __ballot_sync(0xffffffffu, last);
        if (lane == 0)
            complete = mask;
    }
    __syncthreads();
    const uint32_t mask = complete, count = __popc(mask) * items;
    __threadfence();
    for (uint32_t base = threadIdx.x - lane; base < count; base += blockDim.x) {
        const uint32_t item = min(base + lane, count - 1), row = item % items / 2;
        uint32_t left = mask;
        for (uint32_t i = item / items; i > 0; i--)
            left &= left - 1;
        const uint32_t block = (first + __ffs(left) - 1) * 2 + item % 2;
        const float4 *from = (const float4 *)(row_of(p.glu, row) + block * 32);
        float x[32];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float4 four = __ldcg(from + i);
            x[i * 4] = four.x, x[i * 4 + 1] = four.y, x[i * 4 + 2] = four.z, x[i * 4 + 3] = four.w;
        }
        pack_block(p.gated, row, block, x, base + lane < count);
    }
}

/* Sums of a round to where they go. */
template <int ROWS, int COLS>
static __device__ inline void some_end(const mt_cuda_few &p, const some_sums<ROWS, COLS> &sums, uint32_t number,
                                       uint32_t mine, uint32_t row, uint32_t column)
{
    if (number >= mine)
        return;
    if constexpr (COLS == 4) {
        if (p.pairs) {
            some_gate<ROWS>(p, sums, number, row, column);
            return;
        }
    }
    some_put<ROWS, COLS>(p, sums, number, mine, row, column);
}

template <int ROWS, int COLS, int CHUNK, bool TURNS> static __device__ void some(const mt_cuda_few &p)
{
    extern __shared__ __align__(128) uint8_t raw[];
    __shared__ some_room room;
    const some_plan f = some_plan_of(p, CHUNK);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, turns = TURNS ? p.split : 1;
    const uint32_t chains = blockDim.x / 32 / turns, turn = TURNS ? warp / chains : 0, chain = warp - turn * chains;
    const uint32_t total = f.rounds * f.chunks, lag = TURNS ? turns + 1 : p.stages > 3 ? 2 : 1;
    if (threadIdx.x == 0) {
        for (uint32_t s = 0; s < p.stages; s++) {
            barrier_init(&room.full[s], 1);
            barrier_init(&room.empty[s], chains * 32);
        }
        for (uint32_t w = 0; TURNS && w < chains * turns; w++)
            barrier_init(&room.turn[w], 32);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    start_next();
    const uint32_t begin = min(p.stages, total);
#pragma unroll 1
    for (uint32_t i = warp; i < begin; i += chains * turns)
        fetch_tiles(p, f, CHUNK, raw + i * f.slot, &room.full[i], i / f.chunks, i % f.chunks);
    wait_for_last(); /* what it wrote can be read and overwritten by this thread from now on */
#pragma unroll 1
    for (uint32_t i = warp; i < begin; i += chains * turns)
        fetch_rows(p, f, CHUNK, raw + i * f.slot, &room.full[i], i % f.chunks);
    const uint32_t parts = (p.m + ROWS * 16 - 1) / (ROWS * 16), unit = chain / parts, part = chain % parts;
    const uint32_t j = unit * (COLS / 2);
    const uint32_t row0 = part * (ROWS * 16), row = row0 + lane % 16;
    float4 *handed = (float4 *)(raw + p.stages * f.slot) + chain * (ROWS * COLS * 2 * 32) + lane;
    uint64_t *next_turn = &room.turn[(turn + 1 == turns ? 0 : turn + 1) * chains + chain];
    some_place own;
    own.piece = raw + row * 128 + (lane / 16 ^ row % 8) * 16;
    own.turns = raw + f.turns + (row0 + lane / 4) * 16;
    own.sums = raw + f.sums + (row0 + lane / 4) * 8;
    own.codes = raw + f.tiles + j * TILE_BYTES(CHUNK) + lane * 16;
    own.scales = raw + f.tiles + j * TILE_BYTES(CHUNK) + CHUNK * 1024 + lane % 4 * 8;
    int start[4]; /* made where nobody sees, or it is made again for each product */
#pragma unroll
    for (int e = 0; e < 4; e++)
        asm volatile("mov.b32 %0,%1;" : "=r"(start[e]) : "n"(MT_DOT_BITS));
    uint32_t mine = turn + chain * turns; /* when this warp fills a slot again */
    /* At chunk number i, which is number c of round r and lies in slot s: the slot of the one `lag` before gets what
       comes p.stages after that. Nothing is divided, which would take as long as the rest. */
    const auto refill = [&](uint32_t i, uint32_t r, uint32_t c, uint32_t s, uint32_t phase) {
        if (i != mine)
            return;
        mine += chains * turns;
        for (c += p.stages - lag; c >= f.chunks; c -= f.chunks)
            r++;
        if (i < lag || r >= f.rounds)
            return;
        const bool same = s >= lag; /* as often round the ring as this chunk */
        const uint32_t at = same ? s - lag : s + p.stages - lag;
        uint8_t *slot = raw + at * f.slot;
        barrier_wait(&room.empty[at], same ? phase : phase ^ 1);
        fetch_tiles(p, f, CHUNK, slot, &room.full[at], r, c);
        fetch_rows(p, f, CHUNK, slot, &room.full[at], c);
    };
    const auto place = [&](uint32_t slot) {
        some_place at;
        at.piece = own.piece + slot;
        at.turns = own.turns + slot, at.sums = own.sums + slot;
        at.codes = own.codes + slot, at.scales = own.scales + slot;
        return at;
    };
    some_sums<ROWS, COLS> sums = {};
    uint32_t s = turn, phase = 0;
    if constexpr (!TURNS) { /* one loop over steps, so that sums stay in their registers from chunk to chunk */
        uint32_t i = 0;
        for (uint32_t r = 0; r < f.rounds; r++) {
            sums = {};
            uint32_t left = 0;
            some_place at = own;
#pragma unroll 1
            for (uint32_t step = 0; step < f.steps; step++) {
                if (left == 0) {
                    refill(i++, r, step / CHUNK, s, phase);
                    left = min((uint32_t)CHUNK, f.steps - step);
                    at = place(s * f.slot);
                    barrier_wait(&room.full[s], phase);
                }
                some_step<ROWS, COLS, CHUNK>(&sums, at, start);
                at = some_next(at, p.m);
                if (--left == 0) {
                    barrier_arrive(&room.empty[s]);
                    if (++s == p.stages)
                        s = 0, phase ^= 1;
                }
            }
            some_end<ROWS, COLS>(p, sums, r * p.together + j, f.mine, row0 + lane / 4, lane % 4 * 2);
        }
    }
    uint32_t r = turn / f.chunks, c = turn % f.chunks, turn_phase = 0;
    for (uint32_t i = turn; TURNS && i < total; i += turns) {
        refill(i, r, c, s, phase);
        const uint32_t size = min((uint32_t)CHUNK, f.steps - c * CHUNK);
        const some_place at = place(s * f.slot);
        barrier_wait(&room.full[s], phase);
        some_turn<ROWS, COLS, CHUNK>(&sums, at, p.m, size, start, handed, i ? &room.turn[warp] : NULL, turn_phase,
                                     i + 1 < total ? next_turn : NULL, c == 0, c + 1 == f.chunks);
        turn_phase ^= i > 0;
        barrier_arrive(&room.empty[s]);
        if ((s += turns) >= p.stages) {
            s -= p.stages;
            phase ^= 1;
        }
        if (c + 1 == f.chunks)
            some_end<ROWS, COLS>(p, sums, r * p.together + j, f.mine, row0 + lane / 4, lane % 4 * 2);
        for (c += turns; c >= f.chunks; c -= f.chunks)
            r++;
    }
    if constexpr (COLS == 4)
        if (p.gated.to.q)
            some_pack(p);
}

#else
template <int ROWS, int COLS, int CHUNK, bool TURNS> static __device__ void some(const mt_cuda_few &p)
{
}
#endif

#define SOME(name, rows, cols, chunk, turns, warps)                         \
    extern "C" __global__ void __launch_bounds__(32 * (warps))              \
        mtk_##name##_##rows##_##cols(const __grid_constant__ mt_cuda_few p) \
    {                                                                       \
        some<rows, cols, chunk, turns>(p);                                  \
    }
SOME(some, 1, 2, 4, false, 16)
SOME(some, 2, 2, 2, false, 12)
SOME(some, 3, 2, 2, false, 12)
SOME(some, 1, 4, 2, false, 12)
SOME(some, 2, 4, 2, false, 12)
SOME(turns, 1, 2, 4, true, MT_CUDA_SOME_TURNING)
SOME(turns, 2, 2, 2, true, MT_CUDA_SOME_TURNING)
SOME(turns, 1, 4, 2, true, MT_CUDA_SOME_TURNING)
