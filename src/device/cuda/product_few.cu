/* Products of up to 64 rows with codes, at the memory's pace: every code is read once. Blocks stay and take tiles of 16
   columns, up to TILES of them side by side, chunk after chunk of k. Two warps fetch chunks into rings in shared
   memory, one those of the weights, which may begin before the kernel that makes the rows has ended, one those of the
   rows; two warps a tile multiply:

       weights --full--> two warps of each tile --empty--> weights
       rows    --full--> all warps              --empty--> rows

   A warp has all of k of its columns and rows, so that a sum stays in its registers from the first group to the last,
   in R4's order. Up to 16 rows, it has 8 of the tile's columns and all rows; beyond, all columns and half of the
   rows. Rows are the left operand (16 x 32), columns the right one (32 x 8). */
#include "device/cuda/barrier.cuh"
#include "device/cuda/common.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* y[16 rows][8 columns] = from + q (16 x 32) times codes (32 x 8) */
static __device__ inline void multiply_rows(int y[4], const unsigned x[4], const unsigned w[2], const int from[4],
                                            bool is_signed)
{
    if (is_signed)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
            : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]), "r"(from[0]), "r"(from[1]),
              "r"(from[2]), "r"(from[3]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};"
            : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(w[0]), "r"(w[1]), "r"(from[0]), "r"(from[1]),
              "r"(from[2]), "r"(from[3]));
}

/* Four blocks of 8 rows of 16 bytes; lane l says where row l % 8 of block l / 8 lies, and gets 4 bytes of each. */
static __device__ inline void load_blocks(unsigned x[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
}

typedef struct few_room {
    uint64_t full[MT_CUDA_FEW_STAGES], empty[MT_CUDA_FEW_STAGES];
    uint64_t rows_full[MT_CUDA_FEW_ROW_STAGES], rows_empty[MT_CUDA_FEW_ROW_STAGES];
} few_room;

/* Where things lie and how they are shared out: the same for all warps of a block. */
typedef struct few_plan {
    uint32_t group, each, pair_bytes, step_bytes; /* each: groups of a step; step_bytes: codes of a tile */
    uint32_t slot, row_slot;                      /* bytes of a chunk of a tile; of the rows */
    uint32_t steps, chunks, mine, rounds;
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
    f.ring = raw;
    f.rows = raw + p.stages * f.slot;
    return f;
}

static __device__ inline uint32_t few_min(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Which weight a tile is of; the tile becomes one of its own. */
static __device__ inline uint32_t few_weight(const mt_cuda_few &p, uint32_t *tile)
{
    uint32_t i = 0;
    while (i + 1 < p.count && *tile >= p.first[i + 1])
        i++;
    *tile -= p.first[i];
    return i;
}

static __device__ void fetch_weights(const mt_cuda_few &p, const few_plan &f, few_room *room)
{
    uint32_t s = 0, phase = 1;
    for (uint32_t r = 0; r < f.rounds; r++)
        for (uint32_t c = 0; c < f.chunks; c++)
            for (uint32_t j = r * p.together; j < f.mine && j < (r + 1) * p.together; j++) {
                const uint32_t first = c * p.chunk, size = few_min(p.chunk, f.steps - first);
                uint32_t tile = blockIdx.x + j * gridDim.x;
                const mt_cuda_weight &w = p.w[few_weight(p, &tile)];
                const uint32_t groups = few_min((first + size) * f.each, w.groups) - first * f.each;
                const uint32_t pairs = groups * 16 * f.pair_bytes;
                uint8_t *slot = f.ring + s * f.slot;
                barrier_wait(&room->empty[s], phase);
                barrier_expect(&room->full[s], size * f.step_bytes + pairs);
                fetch(slot, w.w + ((uint64_t)tile * f.steps + first) * f.step_bytes, size * f.step_bytes,
                      &room->full[s]);
                fetch(slot + p.chunk * f.step_bytes,
                      w.scales + ((uint64_t)tile * w.groups + first * f.each) * 16 * f.pair_bytes, pairs,
                      &room->full[s]);
                if (++s == p.stages) {
                    s = 0;
                    phase ^= 1;
                }
            }
}

/* A chunk of the rows: q, turns and sums of its steps. Every round takes them anew. */
static __device__ void fetch_rows(const mt_cuda_few &p, const few_plan &f, few_room *room)
{
    uint32_t s = 0, phase = 1;
    for (uint32_t n = 0; n < f.rounds * f.chunks; n++) {
        const uint32_t first = n % f.chunks * p.chunk, size = few_min(p.chunk, f.steps - first);
        const uint32_t each = f.each * 4, sums = (size * p.m * each + 15) / 16 * 16; /* as copies are counted */
        uint8_t *slot = f.rows + s * f.row_slot;
        barrier_wait(&room->rows_empty[s], phase);
        barrier_expect(&room->rows_full[s], size * p.m * (128 + 16) + sums);
        fetch(slot, p.from.q + (uint64_t)first * p.m * 128, size * p.m * 128, &room->rows_full[s]);
        fetch(slot + p.chunk * p.m * 128, p.from.turns + (uint64_t)first * p.m * 4, size * p.m * 16,
              &room->rows_full[s]);
        fetch(slot + p.chunk * p.m * 144, p.from.sums + (uint64_t)first * p.m * f.each, sums, &room->rows_full[s]);
        if (++s == p.row_stages) {
            s = 0;
            phase ^= 1;
        }
    }
}

/* What a warp makes: COLS blocks of 8 columns and TILES blocks of 16 rows, of which up to 8 rows leave the second half
   out. */
template <int ROWS> struct few_form {
    static constexpr int COLS = ROWS > 16 ? 2 : 1, TILES = ROWS > 16 ? ROWS / 32 : 1, VALUES = ROWS <= 8 ? 2 : 4;
};

template <int ROWS> struct few_sums {
    float a[few_form<ROWS>::TILES][few_form<ROWS>::COLS][4], b[few_form<ROWS>::TILES][few_form<ROWS>::COLS][4];
};

/* One step of 128 of k. All that is read comes first, so that nothing waits for it one by one. left: of k. */
template <int BITS, int ROWS, int GROUP>
static __device__ inline void few_step(few_sums<ROWS> *y, const mt_cuda_few &p, const few_plan &f, const uint8_t *slot,
                                       const uint8_t *rows, uint32_t step, uint32_t col0, uint32_t row0, uint32_t left,
                                       bool is_signed)
{
    constexpr int COLS = few_form<ROWS>::COLS, TILES = few_form<ROWS>::TILES, VALUES = few_form<ROWS>::VALUES;
    const uint32_t lane = threadIdx.x % 32, group = GROUP ? GROUP : f.group, each = 128 / group;
    const bool linked = group % 64 == 0;
    unsigned codes[COLS][BITS], x[TILES][4][4];
    float mul[TILES][2][4];
    const float *sx[TILES][2];
#pragma unroll
    for (int c = 0; c < COLS; c++)
#pragma unroll
        for (int i = 0; i < BITS / 4; i++) {
            const uint4 q =
                ((const uint4 *)(slot + step * (BITS * 256) + (col0 / 8 + c) * (BITS * 128) + lane * (BITS * 4)))[i];
            codes[c][i * 4] = q.x, codes[c][i * 4 + 1] = q.y, codes[c][i * 4 + 2] = q.z, codes[c][i * 4 + 3] = q.w;
        }
#pragma unroll
    for (int t = 0; t < TILES; t++)
        if (VALUES == 2) {
            const uint32_t row = few_min(lane % 8, p.m - 1);
            const unsigned at = shared_address(rows + (step * p.m + row) * 128);
#pragma unroll
            for (int ks = 0; ks < 4; ks += 2) {
                unsigned two[4];
                load_blocks(two, at + ((ks * 2 + lane / 8) ^ row) * 16);
                x[t][ks][0] = two[0], x[t][ks][1] = 0, x[t][ks][2] = two[1], x[t][ks][3] = 0;
                x[t][ks + 1][0] = two[2], x[t][ks + 1][1] = 0, x[t][ks + 1][2] = two[3], x[t][ks + 1][3] = 0;
            }
        } else {
            const uint32_t row = few_min(row0 + t * 16 + lane % 16, p.m - 1);
            const unsigned at = shared_address(rows + (step * p.m + row) * 128);
#pragma unroll
            for (int ks = 0; ks < 4; ks++)
                load_blocks(x[t][ks], at + ((ks * 2 + lane / 16) ^ row % 8) * 16);
        }
        /* of this lane's rows lane / 4 and, in the second half, + 8 */
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int h = 0; h < VALUES / 2; h++) {
            const uint32_t row = few_min(row0 + t * 16 + h * 8 + lane / 4, p.m - 1), at = step * p.m + row;
            const float4 m = ((const float4 *)(rows + p.chunk * p.m * 128))[at];
            sx[t][h] = (const float *)(rows + p.chunk * p.m * 144) + at * each;
            mul[t][h][0] = m.x, mul[t][h][1] = m.y, mul[t][h][2] = m.z, mul[t][h][3] = m.w;
        }
    int sum[TILES][COLS][4];
#pragma unroll
    for (int ks = 0; ks < 4; ks++) {
        const bool ends = !linked || ks % 2, last = (ks + 1) * 32 % group == 0, there = GROUP || ks * 32 < (int)left;
        float2 pair[COLS][2];
#pragma unroll
        for (int c = 0; ends && c < COLS; c++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                pair[c][e] = there ? pair_of(slot + p.chunk * (BITS * 256), GROUP ? MT_SCALE_BF16 : p.w[0].pairs,
                                             (step * each + ks * 32 / group) * 16 + col0 + c * 8 + lane % 4 * 2 + e)
                                   : make_float2(0, 0);
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int c = 0; c < COLS; c++) {
                const unsigned w[2] = {BITS == 4 ? codes[c][ks] & 0x0f0f0f0fu : codes[c][ks * 2 % BITS],
                                       BITS == 4 ? codes[c][ks] >> 4 & 0x0f0f0f0fu : codes[c][(ks * 2 + 1) % BITS]};
                const int start[4] = {MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS};
                int from[4];
#pragma unroll
                for (int e = 0; e < 4; e++)
                    from[e] = linked && ks % 2 ? sum[t][c][e] : start[e];
                multiply_rows(sum[t][c], x[t][ks], w, from, BITS == 4 || is_signed);
#pragma unroll
                for (int e = 0; e < VALUES; e++) {
                    const float m = mul[t][e / 2][ks], value = __int_as_float(sum[t][c][e]);
                    if (!ends) {
                        sum[t][c][e] = __float_as_int(fmaf(m, value, turn_on_add(m)));
                        continue;
                    }
                    y->a[t][c][e] = fmaf(pair[c][e % 2].x, fmaf(m, value, turn_end_add(m)), y->a[t][c][e]);
                    if (last)
                        y->b[t][c][e] = fmaf(pair[c][e % 2].y, sx[t][e / 2][ks * 32 / group], y->b[t][c][e]);
                }
            }
    }
}

/* Sums of a tile into y, and onto the residual stream where it is told. */
template <int ROWS>
static __device__ inline void few_put(const mt_cuda_few &p, const few_sums<ROWS> &sums, uint32_t tile, uint32_t col0,
                                      uint32_t row0)
{
    constexpr int COLS = few_form<ROWS>::COLS, TILES = few_form<ROWS>::TILES, VALUES = few_form<ROWS>::VALUES;
    const uint32_t lane = threadIdx.x % 32, which = few_weight(p, &tile);
    const mt_cuda_weight &w = p.w[which];
#pragma unroll
    for (int t = 0; t < TILES; t++)
#pragma unroll
        for (int c = 0; c < COLS; c++)
#pragma unroll
            for (int e = 0; e < VALUES; e++) {
                const uint32_t row = row0 + t * 16 + e / 2 * 8 + lane / 4;
                const uint32_t column = tile * 16 + col0 + c * 8 + lane % 4 * 2 + e % 2;
                if (row >= p.m || column >= w.n)
                    continue;
                float y = w.biased ? sums.a[t][c][e] + sums.b[t][c][e] : sums.a[t][c][e];
                y = w.bias ? y + w.bias[column] : y;
                row_of(p.y[which], row)[column] = y;
                if (p.add.data)
                    row_of(p.add, row)[column] += y;
            }
}

template <int BITS, int ROWS, int GROUP> static __device__ void few(const mt_cuda_few &p)
{
    extern __shared__ __align__(16) uint8_t raw[];
    __shared__ few_room room;
    const few_plan f = few_plan_of(p, raw, BITS);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = 2 * p.together;
    if (threadIdx.x == 0) {
        for (uint32_t s = 0; s < p.stages; s++) {
            barrier_init(&room.full[s], 1);
            barrier_init(&room.empty[s], 2);
        }
        for (uint32_t s = 0; s < p.row_stages; s++) {
            barrier_init(&room.rows_full[s], 1);
            barrier_init(&room.rows_empty[s], warps);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    start_next();
    if (warp >= warps) {
        if (warp == warps && lane == 0)
            fetch_weights(p, f, &room);
        if (warp > warps && lane == 0) {
            wait_for_last();
            fetch_rows(p, f, &room);
        }
        return;
    }
    const uint32_t j = warp / 2, half = warp % 2, col0 = ROWS > 16 ? 0 : half * 8,
                   row0 = ROWS > 16 ? half * (ROWS / 2) : 0;
    const bool is_signed = p.w[0].format != MT_FORMAT_AFFINE;
    for (uint32_t r = 0; r < f.rounds; r++) {
        const uint32_t some = few_min(f.mine - r * p.together, p.together);
        uint32_t n = r * p.together * f.chunks + j, rn = r * f.chunks;
        few_sums<ROWS> sums = {};
        for (uint32_t c = 0; c < f.chunks; c++, n += some, rn++) {
            const uint32_t s = n % p.stages, rs = rn % p.row_stages, size = few_min(p.chunk, f.steps - c * p.chunk);
            barrier_wait(&room.rows_full[rs], rn / p.row_stages & 1);
            if (j < some) {
                barrier_wait(&room.full[s], n / p.stages & 1);
#pragma unroll(ROWS > 32 ? 1 : 2)
                for (uint32_t step = 0; step < size; step++)
                    few_step<BITS, ROWS, GROUP>(&sums, p, f, f.ring + s * f.slot, f.rows + rs * f.row_slot, step, col0,
                                                row0, p.w[0].k - (c * p.chunk + step) * 128, is_signed);
            }
            __syncwarp();
            if (lane == 0) {
                if (j < some)
                    barrier_arrive(&room.empty[s]);
                barrier_arrive(&room.rows_empty[rs]);
            }
        }
        wait_for_last(); /* long over; what it wrote can be read and overwritten by this thread, too */
        if (j < some)
            few_put<ROWS>(p, sums, blockIdx.x + (r * p.together + j) * gridDim.x, col0, row0);
    }
}

#else
template <int BITS, int ROWS, int GROUP> static __device__ void few(const mt_cuda_few &p)
{
}
#endif

/* Two blocks of the smallest share a multiprocessor, so that one can fetch while the other one still works. */
#define FEW(bits, rows, group, blocks)                                           \
    extern "C" __global__ void __launch_bounds__(MT_CUDA_FEW_THREADS, blocks)    \
        mtk_few_##bits##_##rows##_##group(const __grid_constant__ mt_cuda_few p) \
    {                                                                            \
        few<bits, rows, group>(p);                                               \
    }
FEW(4, 8, 64, 2)
FEW(4, 16, 64, 1)
FEW(4, 32, 64, 1)
FEW(4, 64, 64, 1)
FEW(8, 8, 64, 2)
FEW(8, 16, 64, 1)
FEW(8, 32, 64, 1)
FEW(8, 64, 64, 1)
FEW(4, 8, 0, 2)
FEW(4, 16, 0, 1)
FEW(4, 32, 0, 1)
FEW(4, 64, 0, 1)
FEW(8, 8, 0, 2)
FEW(8, 16, 0, 1)
FEW(8, 32, 0, 1)
FEW(8, 64, 0, 1)
