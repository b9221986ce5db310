/* y = x W' for 1 to 64 rows, W in codes of 4 or 8 bits in groups of 32, 64 or 128 (R4).

   Roofline: memory. Every code is read once.
   Tiles: 16 columns by all rows. As many blocks as multiprocessors; a block computes `together` tiles at a time, chunk
   after chunk of k.
   Warps: one warp copies weights, which may begin before the kernel that makes the rows has ended; one copies rows; the
   others multiply. Each has a ring of stages in shared memory:

       weights --full--> warps of each tile --empty--> weights
       rows    --full--> all warps          --empty--> rows

   Tiles side by side have rings of their own, since copies complete in any order: a warp that waits for the next chunk
   of a stage must have seen the chunk before it, as a barrier tells only odd phases from even ones.
   Up to 16 rows, two warps share a tile by columns, 8 each; beyond, by rows. Where there are few columns, several warps
   (`split`) take the chunks of a tile in turn: each computes the links of its chunk, receives the sums from the warp
   before it, folds its links in, in R4's order, and hands the sums on. Otherwise sums stay in registers from the first
   group to the last.
   Operands: rows on the left (16 x 32), columns on the right (32 x 8). */
#include "device/cuda/common/ring.cuh"
#include "device/cuda/products/product.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* y[16 rows][8 columns] = from + q (16 x 32) times codes (32 x 8) */
static __device__ inline void multiply_rows(int y[4], const unsigned x[4], const unsigned w[2], const int from[4],
                                            bool is_signed)
{
    if (is_signed)
        mma_s8_s8(y, x, w[0], w[1], from);
    else
        mma_s8_u8(y, x, w[0], w[1], from);
}

typedef struct few_room {
    uint64_t full[MT_CUDA_FEW_STAGES], empty[MT_CUDA_FEW_STAGES];
    uint64_t rows_full[MT_CUDA_FEW_ROW_STAGES], rows_empty[MT_CUDA_FEW_ROW_STAGES];
    uint64_t turn[MT_CUDA_FEW_WARPS]; /* it is the warp's */
} few_room;

/* Addresses, and how the block's work is divided: the same for all warps. */
typedef struct few_plan {
    uint32_t group, each, pair_bytes, step_bytes; /* each: groups of a step; step_bytes: codes of a tile */
    uint32_t slot, row_slot;                      /* bytes of a chunk of a tile; of the rows */
    uint32_t steps, chunks, mine, rounds;
    uint32_t depth; /* slots of each tile side by side */
    uint8_t *ring, *rows;
} few_plan;

static __device__ inline few_plan few_plan_of(const mt_cuda_few &p, uint8_t *raw, uint32_t bits)
{
    few_plan f;
    f.group = p.w[0].group;
    f.each = 128 / f.group;
    f.pair_bytes = p.w[0].pairs == MT_SCALE_F32 ? 8 : 4;
    f.step_bytes = bits * 256;
    f.slot = p.chunk * (f.step_bytes + f.each * 16 * f.pair_bytes);
    f.row_slot = p.chunk * p.m * (128 + 16 + f.each * 4);
    f.steps = p.from.padded / 128;
    f.chunks = (f.steps + p.chunk - 1) / p.chunk;
    const uint32_t tiles = p.first[p.count];
    f.mine = blockIdx.x < tiles ? (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    f.rounds = (f.mine + p.together - 1) / p.together;
    f.depth = p.stages / p.together;
    f.ring = raw;
    f.rows = raw + p.stages * f.slot;
    return f;
}

static __device__ inline uint32_t few_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The warp that copies weights: lane j copies those of tile j of the tiles side by side. */
static __device__ void fetch_weights(const mt_cuda_few &p, const few_plan &f, few_room *room)
{
    const uint32_t j = threadIdx.x % 32;
    ring at = {0, 1};
    for (uint32_t r = 0; r < f.rounds; r++)
        for (uint32_t c = 0; c < f.chunks; c++) {
            const uint32_t first = c * p.chunk, size = few_min(p.chunk, f.steps - first);
            if (j < p.together && r * p.together + j < f.mine) {
                uint32_t tile = blockIdx.x + (r * p.together + j) * gridDim.x;
                const mt_cuda_weight &w = p.w[weight_of_tile(p, &tile)];
                const uint32_t groups = few_min((first + size) * f.each, w.groups) - first * f.each;
                const uint32_t pairs = groups * 16 * f.pair_bytes, s = j * f.depth + at.stage;
                uint8_t *slot = f.ring + s * f.slot;
                barrier_wait(&room->empty[s], at.parity);
                barrier_expect(&room->full[s], size * f.step_bytes + pairs);
                fetch(slot, w.w + ((uint64_t)tile * f.steps + first) * f.step_bytes, size * f.step_bytes,
                      &room->full[s]);
                fetch(slot + p.chunk * f.step_bytes,
                      w.scales + ((uint64_t)tile * w.groups + first * f.each) * 16 * f.pair_bytes, pairs,
                      &room->full[s]);
            }
            step_ring(at, f.depth);
        }
}

/* The warp that copies rows: q, turns and sums of each chunk, again in every round of tiles. */
static __device__ void fetch_rows(const mt_cuda_few &p, const few_plan &f, few_room *room)
{
    ring at = {0, 1};
    for (uint32_t n = 0; n < f.rounds * f.chunks; n++) {
        const uint32_t first = n % f.chunks * p.chunk, size = few_min(p.chunk, f.steps - first);
        const uint32_t each = f.each * 4, sums = (size * p.m * each + 15) / 16 * 16; /* as copies are counted */
        uint8_t *slot = f.rows + at.stage * f.row_slot;
        barrier_wait(&room->rows_empty[at.stage], at.parity);
        barrier_expect(&room->rows_full[at.stage], size * p.m * (128 + 16) + sums);
        fetch(slot, p.from.q + (uint64_t)first * p.m * 128, size * p.m * 128, &room->rows_full[at.stage]);
        fetch(slot + p.chunk * p.m * 128, p.from.turns + (uint64_t)first * p.m * 4, size * p.m * 16,
              &room->rows_full[at.stage]);
        fetch(slot + p.chunk * p.m * 144, p.from.sums + (uint64_t)first * p.m * f.each, sums,
              &room->rows_full[at.stage]);
        step_ring(at, p.row_stages);
    }
}

/* What a warp makes: COLS blocks of 8 columns and TILES times 16 rows, of which up to 8 rows leave the second half out.
   Two warps have a tile, or as many more as take turns, for which most rows leave no registers; these make up to STEPS
   steps at once. */
template <int ROWS> struct few_form {
    static constexpr int COLS = ROWS > 16 ? 2 : 1, VALUES = ROWS <= 8 ? 2 : 4, TILES = ROWS > 32 ? 2 : 1,
                         STEPS = ROWS > 16 ? 2 : 4;
    static constexpr bool TURNS = ROWS <= 32;
};

template <int ROWS> struct few_sums {
    float a[few_form<ROWS>::COLS][4], b[few_form<ROWS>::COLS][4];
};

/* xs * dot of the links of a step, by the block of 32 that each ends with. */
template <int ROWS> struct few_links {
    float t[4][few_form<ROWS>::COLS][few_form<ROWS>::VALUES];
};

/* Where a warp is: its first column of the tile and its first row. */
typedef struct few_place {
    uint32_t col0, row0;
} few_place;

/* The links of one step of 128 of k. All loads come first, so that their latencies overlap. */
template <int BITS, int ROWS, int GROUP>
static __device__ inline void few_step(few_links<ROWS> *links, const mt_cuda_few &p, const few_plan &f,
                                       const uint8_t *slot, const uint8_t *rows, uint32_t step, few_place at,
                                       bool is_signed)
{
    constexpr int COLS = few_form<ROWS>::COLS, VALUES = few_form<ROWS>::VALUES;
    const uint32_t lane = threadIdx.x % 32, group = GROUP ? GROUP : f.group;
    const bool linked = group % 64 == 0;
    unsigned codes[COLS][BITS], x[4][4];
    float mul[2][4];
#pragma unroll
    for (int c = 0; c < COLS; c++)
#pragma unroll
        for (int i = 0; i < BITS / 4; i++) {
            const uint4 q =
                ((const uint4 *)(slot + step * (BITS * 256) + (at.col0 / 8 + c) * (BITS * 128) + lane * (BITS * 4)))[i];
            codes[c][i * 4] = q.x, codes[c][i * 4 + 1] = q.y, codes[c][i * 4 + 2] = q.z, codes[c][i * 4 + 3] = q.w;
        }
    const uint32_t row = few_min(at.row0 + lane % (VALUES * 4), p.m - 1);
    const unsigned pieces = shared_address(rows + (step * p.m + row) * 128);
    if (VALUES == 2) {
#pragma unroll
        for (int ks = 0; ks < 4; ks += 2) {
            unsigned two[4];
            load_rows(two, pieces + ((ks * 2 + lane / 8) ^ row) * 16);
            x[ks][0] = two[0], x[ks][1] = 0, x[ks][2] = two[1], x[ks][3] = 0;
            x[ks + 1][0] = two[2], x[ks + 1][1] = 0, x[ks + 1][2] = two[3], x[ks + 1][3] = 0;
        }
    } else {
#pragma unroll
        for (int ks = 0; ks < 4; ks++)
            load_rows(x[ks], pieces + ((ks * 2 + lane / 16) ^ row % 8) * 16);
    }
    /* of this lane's rows lane / 4 and, in the second half, + 8 */
#pragma unroll
    for (int h = 0; h < VALUES / 2; h++) {
        const uint32_t own = few_min(at.row0 + h * 8 + lane / 4, p.m - 1);
        const float4 m = ((const float4 *)(rows + p.chunk * p.m * 128))[step * p.m + own];
        mul[h][0] = m.x, mul[h][1] = m.y, mul[h][2] = m.z, mul[h][3] = m.w;
    }
    int sum[COLS][4];
#pragma unroll
    for (int ks = 0; ks < 4; ks++)
#pragma unroll
        for (int c = 0; c < COLS; c++) {
            const bool second = linked && ks % 2, ends = !linked || ks % 2;
            const unsigned w[2] = {BITS == 4 ? codes[c][ks] & 0x0f0f0f0fu : codes[c][ks * 2 % BITS],
                                   BITS == 4 ? codes[c][ks] >> 4 & 0x0f0f0f0fu : codes[c][(ks * 2 + 1) % BITS]};
            int from[4];
#pragma unroll
            for (int e = 0; e < 4; e++)
                from[e] = second ? sum[c][e] : MT_DOT_BITS;
            multiply_rows(sum[c], x[ks], w, from, BITS == 4 || is_signed);
#pragma unroll
            for (int e = 0; e < VALUES; e++) {
                const float m = mul[e / 2][ks], value = __int_as_float(sum[c][e]);
                if (ends)
                    links->t[ks][c][e] = fmaf(m, value, turn_end_add(m));
                else
                    sum[c][e] = __float_as_int(fmaf(m, value, turn_on_add(m)));
            }
        }
}

/* Folds a step's links into sums. left: of k. */
template <int BITS, int ROWS, int GROUP>
static __device__ inline void few_fold(few_sums<ROWS> *y, const few_links<ROWS> *links, const mt_cuda_few &p,
                                       const few_plan &f, const uint8_t *slot, const uint8_t *rows, uint32_t step,
                                       few_place at, uint32_t left)
{
    constexpr int COLS = few_form<ROWS>::COLS, VALUES = few_form<ROWS>::VALUES;
    const uint32_t lane = threadIdx.x % 32, group = GROUP ? GROUP : f.group, each = 128 / group;
    const bool linked = group % 64 == 0;
    const float *sx[2];
#pragma unroll
    for (int h = 0; h < VALUES / 2; h++)
        sx[h] = (const float *)(rows + p.chunk * p.m * 144) +
                (step * p.m + few_min(at.row0 + h * 8 + lane / 4, p.m - 1)) * each;
#pragma unroll
    for (int ks = 0; ks < 4; ks++) {
        const bool last = (ks + 1) * 32 % group == 0, there = GROUP || ks * 32 < (int)left;
        if (linked && ks % 2 == 0)
            continue;
#pragma unroll
        for (int c = 0; c < COLS; c++) {
            float2 pair[2];
#pragma unroll
            for (int e = 0; e < 2; e++)
                pair[e] = there ? pair_of(slot + p.chunk * (BITS * 256), GROUP ? MT_SCALE_BF16 : p.w[0].pairs,
                                          (step * each + ks * 32 / group) * 16 + at.col0 + c * 8 + lane % 4 * 2 + e)
                                : make_float2(0, 0);
#pragma unroll
            for (int e = 0; e < VALUES; e++) {
                y->a[c][e] = fmaf(pair[e % 2].x, links->t[ks][c][e], y->a[c][e]);
                if (last)
                    y->b[c][e] = fmaf(pair[e % 2].y, sx[e / 2][ks * 32 / group], y->b[c][e]);
            }
        }
    }
}

/* Stores the sums of a tile in y and, where p.add is set, adds them to the residual stream. */
template <int ROWS>
static __device__ inline void few_put(const mt_cuda_few &p, const few_sums<ROWS> &sums, uint32_t tile, few_place at)
{
    constexpr int COLS = few_form<ROWS>::COLS, VALUES = few_form<ROWS>::VALUES;
    const uint32_t lane = threadIdx.x % 32, which = weight_of_tile(p, &tile);
    const mt_cuda_weight &w = p.w[which];
#pragma unroll
    for (int c = 0; c < COLS; c++)
#pragma unroll
        for (int e = 0; e < VALUES; e++) {
            const uint32_t row = at.row0 + e / 2 * 8 + lane / 4;
            const uint32_t column = tile * 16 + at.col0 + c * 8 + lane % 4 * 2 + e % 2;
            if (row >= p.m || column >= w.n)
                continue;
            float y = w.biased ? sums.a[c][e] + sums.b[c][e] : sums.a[c][e];
            y = w.bias ? y + w.bias[column] : y;
            row_of(p.y[which], row)[column] = y;
            if (p.add.data)
                row_of(p.add, row)[column] += y;
        }
}

/* Sums are handed from the warp with a chunk to the warp with the next chunk, lane by lane. The first does not wait for
   the second: it hands over again only after all other warps had their turn. */
template <int ROWS>
static __device__ inline void few_take(few_sums<ROWS> *y, float (*handed)[32], uint64_t *turn, uint32_t phase, bool any)
{
    constexpr int COLS = few_form<ROWS>::COLS, VALUES = few_form<ROWS>::VALUES;
    const uint32_t lane = threadIdx.x % 32;
    barrier_wait(turn, phase);
#pragma unroll
    for (int i = 0; any && i < COLS * VALUES; i++) {
        y->a[i / VALUES][i % VALUES] = handed[i][lane];
        y->b[i / VALUES][i % VALUES] = handed[COLS * VALUES + i][lane];
    }
}

template <int ROWS>
static __device__ inline void few_hand(const few_sums<ROWS> &y, float (*handed)[32], uint64_t *next, bool any)
{
    constexpr int COLS = few_form<ROWS>::COLS, VALUES = few_form<ROWS>::VALUES;
    const uint32_t lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; any && i < COLS * VALUES; i++) {
        handed[i][lane] = y.a[i / VALUES][i % VALUES];
        handed[COLS * VALUES + i][lane] = y.b[i / VALUES][i % VALUES];
    }
    barrier_arrive(next);
}

/* One chunk for a warp that owns its columns (no other warp takes turns with it). */
template <int BITS, int ROWS, int GROUP>
static __device__ inline void few_chunk(few_sums<ROWS> sums[few_form<ROWS>::TILES], const mt_cuda_few &p,
                                        const few_plan &f, const uint8_t *slot, const uint8_t *rows, uint32_t size,
                                        few_place at, uint32_t left, bool is_signed)
{
#pragma unroll(ROWS > 32 ? 1 : 2)
    for (uint32_t step = 0; step < size; step++)
#pragma unroll
        for (int t = 0; t < few_form<ROWS>::TILES; t++) {
            const few_place here = {at.col0, at.row0 + t * 16};
            few_links<ROWS> links;
            few_step<BITS, ROWS, GROUP>(&links, p, f, slot, rows, step, here, is_signed);
            few_fold<BITS, ROWS, GROUP>(&sums[t], &links, p, f, slot, rows, step, here, left - step * 128);
        }
}

/* One chunk for a warp that takes turns with others. handed NULL: there is no warp before it; begins: this is the first
   chunk of a tile. */
template <int BITS, int ROWS, int GROUP>
static __device__ inline void few_turn(few_sums<ROWS> *sums, const mt_cuda_few &p, const few_plan &f,
                                       const uint8_t *slot, const uint8_t *rows, uint32_t size, few_place at,
                                       uint32_t left, bool is_signed, bool active, bool begins, float (*handed)[32],
                                       uint64_t *turn, uint32_t phase)
{
    few_links<ROWS> links[few_form<ROWS>::STEPS];
#pragma unroll
    for (uint32_t step = 0; step < few_form<ROWS>::STEPS; step++)
        if (active && step < size)
            few_step<BITS, ROWS, GROUP>(&links[step], p, f, slot, rows, step, at, is_signed);
    if (handed)
        few_take<ROWS>(sums, handed, turn, phase, active && !begins);
    if (begins)
        *sums = {};
#pragma unroll
    for (uint32_t step = 0; step < few_form<ROWS>::STEPS; step++)
        if (active && step < size)
            few_fold<BITS, ROWS, GROUP>(sums, &links[step], p, f, slot, rows, step, at, left - step * 128);
}

/* A warp that multiplies: of the chunks of k it has every p.split-th. */
template <int BITS, int ROWS, int GROUP>
static __device__ inline void few_multiply(const mt_cuda_few &p, const few_plan &f, few_room *room, float (*handed)[32])
{
    constexpr int TILES = few_form<ROWS>::TILES;
    const uint32_t warp = threadIdx.x / 32, chains = 2 * p.together;
    const uint32_t chain = warp % chains, j = chain / 2, part = chain % 2, turn = warp / chains;
    const few_place at = {ROWS > 16 ? 0 : part * 8, ROWS > 16 ? part * (TILES * 16) : 0};
    const bool is_signed = p.w[0].format != MT_FORMAT_AFFINE, turns = few_form<ROWS>::TURNS && p.split > 1;
    const uint32_t total = f.rounds * f.chunks;
    uint64_t *next = &room->turn[(turn + 1 == p.split ? 0 : turn + 1) * chains + chain];
    uint32_t turn_phase = 0, s = turn, phase = 0, rs = turn, row_phase = 0, r = turn / f.chunks, c = turn % f.chunks;
    few_sums<ROWS> sums[TILES] = {};
    for (uint32_t i = turn; i < total; i += p.split) {
        const uint32_t size = few_min(p.chunk, f.steps - c * p.chunk), left = p.w[0].k - c * p.chunk * 128;
        const bool active = r * p.together + j < f.mine;
        const uint8_t *slot = f.ring + (j * f.depth + s) * f.slot, *rows = f.rows + rs * f.row_slot;
        barrier_wait(&room->rows_full[rs], row_phase);
        if (active)
            barrier_wait(&room->full[j * f.depth + s], phase);
        if (turns)
            few_turn<BITS, ROWS, GROUP>(sums, p, f, slot, rows, size, at, left, is_signed, active, c == 0,
                                        i ? handed + chain * 16 : NULL, &room->turn[warp], turn_phase);
        else if (active)
            few_chunk<BITS, ROWS, GROUP>(sums, p, f, slot, rows, size, at, left, is_signed);
        if (turns && i + 1 < total)
            few_hand<ROWS>(*sums, handed + chain * 16, next, active && c + 1 < f.chunks);
        turn_phase ^= i > 0;
        __syncwarp();
        if (active)
            barrier_arrive(&room->empty[j * f.depth + s]);
        barrier_arrive(&room->rows_empty[rs]);
        if (c + 1 == f.chunks) {
            wait_for_last(); /* has long ended; this thread may now read and overwrite its results */
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                if (active)
                    few_put<ROWS>(p, sums[t], blockIdx.x + (r * p.together + j) * gridDim.x,
                                  {at.col0, at.row0 + t * 16});
                sums[t] = {};
            }
        }
        for (c += p.split; c >= f.chunks; c -= f.chunks)
            r++;
        if ((s += p.split) >= f.depth) {
            s -= f.depth;
            phase ^= 1;
        }
        if ((rs += p.split) >= p.row_stages) {
            rs -= p.row_stages;
            row_phase ^= 1;
        }
    }
}

template <int BITS, int ROWS, int GROUP> static __device__ void few(const mt_cuda_few &p)
{
    extern __shared__ __align__(16) uint8_t raw[];
    __shared__ few_room room;
    __shared__ float handed[few_form<ROWS>::TURNS ? MT_CUDA_FEW_WARPS / 2 * 16 : 1][32]; /* of those that take turns */
    const few_plan f = few_plan_of(p, raw, BITS);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, chains = 2 * p.together;
    const uint32_t warps = chains * p.split;
    if (threadIdx.x == 0) {
        init_ring(room.full, room.empty, p.stages, 1, 2 * 32);
        init_ring(room.rows_full, room.rows_empty, p.row_stages, 1, chains * 32);
        for (uint32_t w = 0; w < warps; w++)
            barrier_init(&room.turn[w], 32);
        barriers_are_made();
    }
    __syncthreads();
    start_next();
    if (warp == warps) {
        fetch_weights(p, f, &room);
    } else if (warp > warps) {
        wait_for_last();
        if (lane == 0)
            fetch_rows(p, f, &room);
    } else {
        few_multiply<BITS, ROWS, GROUP>(p, f, &room, handed);
    }
}

#else
template <int BITS, int ROWS, int GROUP> static __device__ void few(const mt_cuda_few &p)
{
}
#endif

#define FEW(name, bits, rows, group)                                                               \
    extern "C" __global__ void __launch_bounds__(32 * (MT_CUDA_FEW_WARPS + ((rows) > 32 ? 0 : 2))) \
        mtk_##name(const __grid_constant__ mt_cuda_few p)                                          \
    {                                                                                              \
        few<bits, rows, group>(p);                                                                 \
    }
FEW(matmul_w4_g64_ring_rows1_8, 4, 8, 64)
FEW(matmul_w8_g64_ring_rows1_8, 8, 8, 64)
FEW(matmul_w8_g64_ring_rows9_16, 8, 16, 64)
FEW(matmul_w8_g64_ring_rows17_32, 8, 32, 64)
FEW(matmul_w8_g64_ring_rows33_64, 8, 64, 64)
FEW(matmul_w4_ring_rows1_8, 4, 8, 0)
FEW(matmul_w4_ring_rows9_16, 4, 16, 0)
FEW(matmul_w4_ring_rows17_32, 4, 32, 0)
FEW(matmul_w4_ring_rows33_64, 4, 64, 0)
FEW(matmul_w8_ring_rows1_8, 8, 8, 0)
FEW(matmul_w8_ring_rows9_16, 8, 16, 0)
FEW(matmul_w8_ring_rows17_32, 8, 32, 0)
FEW(matmul_w8_ring_rows33_64, 8, 64, 0)
