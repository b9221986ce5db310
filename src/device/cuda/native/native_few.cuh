/* y = x W' for 1 to 64 rows in the arithmetic `native` (device/native.h), W in codes, for up to four weights that share
   the rows. native_few_*.cu compile it for weights of one kind each.

   Tiles: a block has 64 TILES columns, a tile of rows (ROWS: 8, 16, 32 or 64; nearly always all of them) and one group
   of 2,048 of k; the blocks of a cluster have the groups of the same columns. Stages of 256 of k in a ring. Two blocks
   a multiprocessor, where shared memory suffices; one of six tiles where gate and up meet 32 or 64 rows, since each
   block copies all rows, which are more bytes than its weights (14 and 16 % faster). Warps: TILES times four warps
   multiply, 16 columns each: codes come from the ring, are decoded in registers and are the first operand of a product;
   rows are the second. Up to 16 rows are multiplied by each warp for itself (mma.sync, 12 % faster there), more by
   warpgroups (wgmma, 15 % faster for 32), with the same bits. One thread more begins all copies. Units: segments of a
   row nearly always have the same unit. Where one of a stage's has another than the one before, sums are brought to it
   before they go on. End: rows are dealt out among the blocks of the cluster. Each block sends its sums, times their
   units, to the one that has the row, 16 bytes a thread; that one adds them in the order of the groups. Where the block
   has tiles of gate and of up, it combines them, and packs what comes out for the next product: 64 columns are a
   segment.

   Roofline, H200, 64 rows, the four products of a layer of an 8B model (193 million weights): 109 MB at 4.2 TB/s are 26
   us; 24.7 GFLOP at 790 TFLOP/s are 31 us; decoding takes about 12 instructions for 8 weights of a lane, 10 us of all
   schedulers. For 8 rows memory alone bounds it.

   Rejected: rows shared by blocks of other columns (multicast: 2 to 70 % slower), one block for all groups (gate and up
   3 % faster for 8 rows, the others up to 5 times slower), 4 tiles a block (10 % slower for gate and up, 7 to 15 % for
   down), 6 tiles for the head (5 % slower) and for 8 rows (gate and up 11 % faster, but down 38 % slower, as there is
   no room for its first weights meanwhile); sums read from the other blocks (64 rows 15 % slower) or sent 8 bytes at a
   time (10 % slower); for 8 rows smaller rings and up to five blocks a multiprocessor (10 % faster alone, 7 % slower
   one behind the other, as less is copied while the kernel before still runs). */
#ifndef MT_DEVICE_CUDA_NATIVE_FEW_CUH
#define MT_DEVICE_CUDA_NATIVE_FEW_CUH

#include "device/cuda/common/ring.cuh"
#include "device/cuda/native/native.cuh"
#include "device/cuda/native/sorted.h"
#include "device/cuda/rows/activations.cuh"

#if __CUDA_ARCH__ >= 900

/* What a block does, and where the parts of its stages are. */
template <int BITS, int GROUPS, int ROWS, int TILES, int EACH> struct few_shape {
    static const int STEP = MT_CUDA_NATIVE_BYTES(BITS, GROUPS), TILE = CHUNK_STEPS * STEP; /* bytes of weights */
    static const int STAGE = MT_CUDA_NATIVE_FEW_STAGE(BITS, GROUPS, ROWS, TILES);
    static const int UNITS_AT = MT_CUDA_NATIVE_FEW_UNITS(ROWS), WEIGHTS_AT = MT_CUDA_NATIVE_FEW_WEIGHTS(ROWS);
    static const int ROWS_BYTES = ROWS * MT_NATIVE_CHUNK * 2, UNITS_BYTES = ROWS * 4;
    static const int COLUMNS = TILES * MT_CUDA_NATIVE_TILE, LANES = (ROWS + 31) / 32; /* rows that a lane looks at */
    static const bool WARPS = ROWS <= MT_CUDA_NATIVE_WARP_ROWS;                       /* each by itself */
    /* Registers that warpgroups have from the start, and what those that multiply get of the one that copies. */
    static const int COPIER = TILES > 4 ? 24 : 32;
    static const int START = 65536 / EACH / MT_CUDA_NATIVE_FEW_THREADS(ROWS, TILES) / 8 * 8;
    static const int ALL = (START * (TILES + 1) - COPIER) / TILES / 8 * 8, MORE = ALL > 240 ? 240 : ALL;
};

/* What a block multiplies; and which expert, where rows are sorted. */
struct few_place : native_place {
    uint32_t expert;
};

/* Weight i of this launch. If rows are sorted by expert, its codes, bias and unit are those of the block's expert. */
static __device__ inline mt_cuda_weight weight_of(const mt_cuda_native_few &f, const few_place &at, uint32_t i)
{
    mt_cuda_weight w = f.p.w[i];
    if (f.shares[0].experts) {
        const mt_cuda_weight &own = f.shares[i].experts[at.expert];
        w.w = own.w;
        w.bias = own.bias;
        w.unit = own.unit;
    }
    return w;
}

/* Begins the copies of a block: weights of the first stages at once, rows once the kernel before has written them. */
template <typename shape>
static __device__ inline void copy_stages(const mt_cuda_native_few &f, const few_place &at, uint8_t *ring_at,
                                          uint64_t *full, uint64_t *empty)
{
    const mt_cuda_native &p = f.p;
    constexpr int TILES = shape::COLUMNS / MT_CUDA_NATIVE_TILE;
    const uint64_t first = (uint64_t)blockIdx.y * (p.from.padded / MT_NATIVE_CHUNK) + at.group * GROUP_CHUNKS;
    const uint8_t *x = p.from.q + first * shape::ROWS_BYTES,
                  *units = (const uint8_t *)p.from.turns + first * shape::UNITS_BYTES;
    const uint8_t *w[TILES]; /* a tile behind a weight's last pair of tiles is a copy of the last */
    for (int t = 0; t < TILES; t++) {
        const tile_place of = place_of_tile<TILES>(p, at, t);
        const mt_cuda_weight v = weight_of(f, at, of.weight);
        const uint32_t pairs = (v.n + 2 * MT_CUDA_NATIVE_TILE - 1) / (2 * MT_CUDA_NATIVE_TILE);
        w[t] = native_step(v, min(of.column, (2 * pairs - 1) * MT_CUDA_NATIVE_TILE), at.group * MT_NATIVE_GROUP,
                           shape::STEP);
    }
    const auto copy_weights = [&](int i, uint32_t stage) {
        barrier_expect(&full[stage], shape::ROWS_BYTES + shape::UNITS_BYTES + TILES * shape::TILE);
        for (int t = 0; t < TILES; t++)
            fetch(ring_at + stage * shape::STAGE + shape::WEIGHTS_AT + t * shape::TILE,
                  w[t] + (uint64_t)i * shape::TILE, shape::TILE, &full[stage]);
    };
    for (int i = 0; i < (int)p.stages && i < at.count; i++)
        copy_weights(i, (uint32_t)i);
    wait_for_last();
    ring to = {0, 1};
    for (int i = 0; i < at.count; i++) {
        uint8_t *stage = ring_at + to.stage * shape::STAGE;
        if (i >= (int)p.stages) {
            barrier_wait(&empty[to.stage], to.parity);
            copy_weights(i, to.stage);
        }
        fetch(stage, x + (uint64_t)i * shape::ROWS_BYTES, shape::ROWS_BYTES, &full[to.stage]);
        fetch(stage + shape::UNITS_AT, units + (uint64_t)i * shape::UNITS_BYTES, shape::UNITS_BYTES, &full[to.stage]);
        step_ring(to, p.stages);
    }
}

/* part[j * 4 + h]: row 8 j + 2 (lane % 4) + h % 2, column lane / 4 + h / 2 * 8 of the warp's 16. Lane l has the factors
   of rows l and l + 32. */
template <int N, int LANES> static __device__ inline void scale_parts(float (&part)[N], const float (&factor)[LANES])
{
    const uint32_t pair = threadIdx.x % 4 * 2;
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
        const float a = __shfl_sync(0xffffffffu, factor[j / 4], j % 4 * 8 + pair);
        const float b = __shfl_sync(0xffffffffu, factor[j / 4], j % 4 * 8 + pair + 1);
        part[j * 4] *= a, part[j * 4 + 1] *= b, part[j * 4 + 2] *= a, part[j * 4 + 3] *= b;
    }
}

/* Brings sums from the unit of the last segment to that of segment c of a chunk, for rows where it is another. units:
   of a lane's rows in this chunk, four each; last: the number of the last segment's, and then of this one's. */
template <int N, int LANES>
static __device__ inline void change_units(float (&part)[N], const uint32_t (&units)[LANES], uint32_t (&last)[LANES],
                                           int c)
{
    const uint32_t pair = threadIdx.x % 4 * 2;
    float ratio[LANES];
    uint32_t other[LANES];
#pragma unroll
    for (int i = 0; i < LANES; i++) {
        const uint32_t now = units[i] >> c * 8 & 255;
        ratio[i] = __uint_as_float((127u << 23) + unit_bits(last[i]) - unit_bits(now));
        other[i] = __ballot_sync(0xffffffffu, now != last[i]);
        last[i] = now;
    }
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
        if (!(other[j / 4] >> j % 4 * 8 & 255))
            continue;
        const float a = __shfl_sync(0xffffffffu, ratio[j / 4], j % 4 * 8 + pair);
        const float b = __shfl_sync(0xffffffffu, ratio[j / 4], j % 4 * 8 + pair + 1);
        part[j * 4] *= a, part[j * 4 + 1] *= b, part[j * 4 + 2] *= a, part[j * 4 + 3] *= b;
    }
}

/* Adds the products of a chunk. `weights`: the warpgroup's, in shared memory as `rows`. before: numbers of the units of
   the last segment; same: whether all of the chunk are equal to them. */
template <int BITS, int GROUPS, int ROWS, int LANES>
static __device__ inline void multiply_by_warp(float (&part)[ROWS / 2], const uint8_t *rows, const uint8_t *weights,
                                               const uint32_t (&units)[LANES], const uint32_t (&before)[LANES],
                                               bool same)
{
    constexpr int STEP = MT_CUDA_NATIVE_BYTES(BITS, GROUPS);
    const uint32_t thread = threadIdx.x % 128, lane = thread % 32;
    const uint32_t piece = swizzled(lane % 8, lane / 8), x = shared_address(rows); /* of eight rows: four pieces of k */
    lane_step<BITS, GROUPS> s[2];
    uint32_t last[LANES];
#pragma unroll
    for (int i = 0; i < LANES; i++)
        last[i] = before[i];
    load_step(s[0], weights, thread);
#pragma unroll
    for (int c = 0; c < CHUNK_STEPS; c++) {
        uint32_t b[ROWS / 8][8];
#pragma unroll
        for (int r = 0; r < ROWS / 8; r++) {
            load_rows(b[r], x + (c * ROWS + r * 8) * 128 + piece);
            load_rows(b[r] + 4, x + (c * ROWS + r * 8) * 128 + (piece ^ 64)); /* the other four */
        }
        if (c + 1 < CHUNK_STEPS)
            load_step(s[(c + 1) & 1], weights + (c + 1) * STEP, thread);
        if (!same)
            change_units(part, units, last, c);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            uint32_t a[4];
            decode(a, s[c & 1], j);
#pragma unroll
            for (int r = 0; r < ROWS / 8; r++)
                multiply_warp(part + r * 4, a, b[r][j * 2], b[r][j * 2 + 1]);
        }
    }
}

/* The same by a warpgroup; a step is decoded while tensor cores have the one before. */
template <int BITS, int GROUPS, int ROWS, int TILES, int LANES>
static __device__ inline void multiply_by_group(float (&part)[ROWS / 2], uint64_t rows, const uint8_t *weights,
                                                const uint32_t (&units)[LANES], const uint32_t (&before)[LANES],
                                                bool same)
{
    constexpr int STEP = MT_CUDA_NATIVE_BYTES(BITS, GROUPS);
    const uint32_t thread = threadIdx.x % 128;
    uint32_t last[LANES];
    lane_step<BITS, GROUPS> s;
#pragma unroll
    for (int i = 0; i < LANES; i++)
        last[i] = before[i];
    if (TILES > 4) { /* few registers: half a step is decoded while tensor cores have what other warpgroups decoded */
        uint32_t half[2][4];
        load_step(s, weights, thread);
#pragma unroll
        for (int h = 0; h < 2 * CHUNK_STEPS; h++) {
            const int c = h / 2, j = h % 2 * 2;
            decode(half[0], s, j);
            decode(half[1], s, j + 1);
            if (h % 2 && c + 1 < CHUNK_STEPS)
                load_step(s, weights + (c + 1) * STEP, thread);
            if (!same && h % 2 == 0)
                change_units(part, units, last, c);
            products_begin();
            product_f16(part, half[0], rows + (c * ROWS * 128 + j * 32) / 16, 1);
            product_f16(part, half[1], rows + (c * ROWS * 128 + j * 32 + 32) / 16, 1);
            products_commit();
            products_wait();
            settle(part);
        }
        return;
    }
    uint32_t a[2][4][4];
    if (ROWS == 64 && same) { /* tensor cores go on from step to step */
#pragma unroll
        for (int c = 0; c < CHUNK_STEPS; c++) {
            load_step(s, weights + c * STEP, thread);
#pragma unroll
            for (int j = 0; j < 4; j++)
                decode(a[c & 1][j], s, j);
            products_begin();
#pragma unroll
            for (int j = 0; j < 4; j++)
                product_f16(part, a[c & 1][j], rows + (c * ROWS * 128 + j * 32) / 16, 1);
            products_commit();
            if (c + 1 < CHUNK_STEPS)
                products_wait<1>();
            else
                products_wait();
        }
        settle(part);
        return;
    }
    load_step(s, weights, thread);
#pragma unroll
    for (int j = 0; j < 4; j++)
        decode(a[0][j], s, j);
    load_step(s, weights + STEP, thread);
#pragma unroll
    for (int c = 0; c < CHUNK_STEPS; c++) {
        if (!same)
            change_units(part, units, last, c);
        products_begin();
#pragma unroll
        for (int j = 0; j < 4; j++)
            product_f16(part, a[c & 1][j], rows + (c * ROWS * 128 + j * 32) / 16, 1);
        products_commit();
        if (c + 1 < CHUNK_STEPS) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                decode(a[(c + 1) & 1][j], s, j);
            if (c + 2 < CHUNK_STEPS)
                load_step(s, weights + (c + 2) * STEP, thread);
        }
        products_wait();
        settle(part);
    }
}

/* ---- the end ---- */

/* How rows are dealt out among the blocks of a cluster: `each` to a block, and to the last ones what is left. A block's
   own sums lie at the beginning of its ring, rows of COLUMNS and four more floats, for other banks; behind these are
   those that come to it, [group][own rows]. */
static __device__ inline uint32_t rows_of_block(uint32_t m, uint32_t each, uint32_t block)
{
    return block * each < m ? min(each, m - block * each) : 0;
}

template <typename shape, int N> static __device__ inline void put_parts(const float (&part)[N], float *sums)
{
    constexpr uint32_t STRIDE = shape::COLUMNS + 4;
    const uint32_t lane = threadIdx.x % 32;
    float *own = sums + lane % 4 * 2 * STRIDE + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < N; i++)
        own[(i / 4 * 8 + i % 2) * STRIDE + i / 2 % 2 * 8] = part[i];
}

/* Sends each row to the block that has it, 16 bytes a thread. */
template <typename shape>
static __device__ inline void send_parts(const native_place &at, const float *sums, uint32_t to, uint32_t come,
                                         uint32_t m, uint32_t each)
{
    constexpr uint32_t STRIDE = shape::COLUMNS + 4, FOURS = shape::COLUMNS / 4, THREADS_M = shape::COLUMNS * 2;
    for (uint32_t i = threadIdx.x; i < m * FOURS; i += THREADS_M) {
        const uint32_t row = i / FOURS, column = i % FOURS * 4, block = row / each;
        const uint32_t place = at.group * rows_of_block(m, each, block) + row - block * each;
        send_four(block, to + (place * STRIDE + column) * 4, come, *(const float4 *)(sums + row * STRIDE + column));
    }
}

/* y of the block's rows, 32 columns a warp at a time. What sums are added to is read some strips ahead, first while the
   other blocks' sums are on their way. */
template <typename shape>
static __device__ inline void store_sums(const mt_cuda_native_few &f, const few_place &at, const float *sums,
                                         uint64_t *come, uint32_t first, uint32_t rows)
{
    constexpr uint32_t STRIDE = shape::COLUMNS + 4, STRIPS = shape::COLUMNS / 32, WARPS = shape::COLUMNS / 16;
    constexpr uint32_t AHEAD = 2; /* more is more code, which is read from memory once a kernel */
    const mt_cuda_native &p = f.p;
    const uint32_t j = at.weight, lane = threadIdx.x % 32;
    const mt_cuda_weight w = weight_of(f, at, j);
    const bool adds = p.add.data;
#pragma unroll 1
    for (uint32_t base = threadIdx.x / 32; base < rows * STRIPS; base += WARPS * AHEAD) {
        float old[AHEAD];
#pragma unroll
        for (uint32_t u = 0; u < AHEAD; u++) {
            const uint32_t i = base + u * WARPS, n = at.column + i % STRIPS * 32 + lane;
            old[u] = 0;
            if (adds && i < rows * STRIPS && n < w.n)
                old[u] = row_of(p.add, first + i / STRIPS)[n];
        }
        if (at.blocks > 1)
            barrier_wait(come, 0);
#pragma unroll
        for (uint32_t u = 0; u < AHEAD; u++) {
            const uint32_t i = base + u * WARPS, r = i / STRIPS, column = i % STRIPS * 32 + lane;
            const uint32_t n = at.column + column;
            if (i >= rows * STRIPS || n >= w.n)
                continue;
            const float y = finished(sum_groups(sums + r * STRIDE + column, at.blocks, rows * STRIDE), w, n);
            row_of(p.y[j], first + r)[n] = y;
            if (adds)
                row_of(p.add, first + r)[n] = old[u] + y;
        }
    }
}

/* Gate and up of the block's rows combined, a tile of a row a warp, two columns a lane. packed: the first of these rows
   among packed ones. */
template <typename shape>
static __device__ inline void store_gated(const mt_cuda_native_few &f, const few_place &at, const float *sums,
                                          uint64_t *come, uint32_t first, uint32_t packed, uint32_t rows)
{
    constexpr uint32_t STRIDE = shape::COLUMNS + 4, WARPS = shape::COLUMNS / 16, TILE = MT_CUDA_NATIVE_TILE;
    constexpr uint32_t PAIRS = (shape::COLUMNS / TILE + 1) / 2; /* of a tile of gate and one of up */
    const uint32_t lane = threadIdx.x % 32, apart = rows * STRIDE;
    const mt_cuda_native &p = f.p;
    const mt_cuda_weight w[2] = {weight_of(f, at, 0), weight_of(f, at, 1)};
    if (at.blocks > 1)
        barrier_wait(come, 0);
    for (uint32_t pair = threadIdx.x / 32; pair < rows * PAIRS; pair += WARPS) {
        const uint32_t r = pair / PAIRS, tile = pair % PAIRS, i = first + r;
        const uint32_t begin = at.column + tile * TILE, n = begin + lane * 2;
        float gate[2], up[2];
        if (begin >= p.w[0].n && tile > 0) /* behind the last tile */
            continue;
#pragma unroll
        for (uint32_t e = 0; e < 2; e++) {
            const float *from = sums + r * STRIDE + tile * TILE + lane * 2 + e;
            gate[e] = finished(sum_groups(from, at.blocks, apart), w[0], n + e);
            up[e] = finished(sum_groups(from + PAIRS * TILE, at.blocks, apart), w[1], n + e);
            if (p.y[0].data && n + e < p.w[0].n)
                row_of(p.y[0], i)[n + e] = gate[e];
            if (p.y[1].data && n + e < p.w[0].n)
                row_of(p.y[1], i)[n + e] = up[e];
        }
        gate_all(gate, up, p.act, p.glu_limit, p.glu_offset);
#pragma unroll
        for (uint32_t e = 0; e < 2; e++) {
            gate[e] = n + e < p.w[0].n ? gate[e] : 0;
            if (!p.packed_only && n + e < p.w[0].n)
                row_of(p.glu, i)[n + e] = gate[e];
        }
        if (!p.gated.q)
            continue;
        float most = fmaxf(fabsf(gate[0]), fabsf(gate[1]));
#pragma unroll
        for (int width = 16; width > 0; width /= 2)
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, width));
        const uint32_t unit = unit_of(most), segment = begin / MT_NATIVE_SEGMENT;
        const float factor = into_unit(unit);
        const uint32_t to = packed + r;
        *(__half2 *)(segment_at(p.gated, to, segment) + swizzled(to % p.gated.rows, lane / 4) + lane % 4 * 4) =
            __floats2half2_rn(gate[0] * factor, gate[1] * factor);
        if (lane == 0)
            units_at(p.gated, to, segment / 4)[segment % 4] = (uint8_t)unit;
    }
}

/* ---- a block ---- */

template <int BITS, int GROUPS, int ROWS, int TILES, int EACH>
static __device__ inline void multiply(const mt_cuda_native_few &f)
{
    const mt_cuda_native &p = f.p;
    typedef few_shape<BITS, GROUPS, ROWS, TILES, EACH> shape;
    constexpr int LANES = shape::LANES;
    __shared__ uint64_t full[GROUP_CHUNKS], empty[GROUP_CHUNKS], come;
    uint8_t *ring_at = swizzled_memory();
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, warpgroup = warp / 4;
    const bool sorted = f.shares[0].experts;
    mt_cuda_share share = {0, blockIdx.y * ROWS, min(p.m - blockIdx.y * ROWS, (uint32_t)ROWS)};
    if (sorted) { /* shares are there: the kernel before has let this one start when those before it had ended */
        if (blockIdx.y >= *f.shares[0].count)
            return;
        share = f.shares[0].share[blockIdx.y];
    }
    const few_place at = {place_of_block(p, shape::COLUMNS), share.expert};
    const uint32_t m = share.rows;
    const uint32_t each = (m + at.blocks - 1) / at.blocks, own = rows_of_block(m, each, at.group);
    if (threadIdx.x == 0) {
        init_ring(full, empty, p.stages, 1, TILES * 128);
        barrier_init(&come, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        barrier_expect(&come, own * at.blocks * shape::COLUMNS * 4);
    }
    __syncthreads();
    if (!sorted)
        start_next();
    if (warpgroup == TILES) { /* or the one warp of it */
        if (!shape::WARPS)
            fewer_registers<shape::COPIER>();
        if (warp == TILES * 4 && lane == 0)
            copy_stages<shape>(f, at, ring_at, full, empty);
        __syncwarp();
        cluster_meet();
        return;
    }
    if (!shape::WARPS)
        more_registers<shape::MORE>();
    float part[ROWS / 2];
#pragma unroll
    for (int i = 0; i < ROWS / 2; i++)
        part[i] = 0;
    uint32_t before[LANES]; /* numbers of units of rows lane and lane + 32 */
#pragma unroll
    for (int i = 0; i < LANES; i++)
        before[i] = 0;
    ring from = {0, 0};
    wait_for_last();
    if (sorted)
        start_next();
#pragma unroll 1
    for (int i = 0; i < at.count; i++) {
        const uint8_t *stage = ring_at + from.stage * shape::STAGE, *units = stage + shape::UNITS_AT;
        const uint8_t *weights = stage + shape::WEIGHTS_AT + warpgroup * shape::TILE;
        uint32_t now[LANES];
        bool same = true;
        barrier_wait(&full[from.stage], from.parity);
#pragma unroll
        for (int l = 0; l < LANES; l++) {
            const bool there = lane + l * 32 < m;
            now[l] = there ? ((const uint32_t *)units)[lane + l * 32] : 0;
            before[l] = i ? before[l] : now[l] & 255;
            same = same && now[l] == before[l] * 0x01010101u;
        }
        /* Rows are the same for all warps, and so is what they find. */
        same = __all_sync(0xffffffffu, same);
        if (shape::WARPS)
            multiply_by_warp<BITS, GROUPS, ROWS>(part, stage, weights, now, before, same);
        else
            multiply_by_group<BITS, GROUPS, ROWS, TILES>(part, along(shared_address(stage)), weights, now, before,
                                                         same);
#pragma unroll
        for (int l = 0; l < LANES; l++)
            before[l] = now[l] >> 24;
        barrier_arrive(&empty[from.stage]);
        step_ring(from, p.stages);
    }
    float unit[LANES];
#pragma unroll
    for (int l = 0; l < LANES; l++)
        unit[l] = __uint_as_float(unit_bits(before[l]));
    scale_parts(part, unit);
    float *sums = (float *)ring_at, *came = at.blocks > 1 ? sums + m * (shape::COLUMNS + 4) : sums;
    named_barrier(1, TILES * 128); /* all warps have read what came to the ring */
    put_parts<shape>(part, sums);
    cluster_meet();
    if (at.blocks > 1) {
        send_parts<shape>(at, sums, shared_address(came), shared_address(&come), m, each);
        if (own == 0)
            return;
    }
    const uint32_t first = at.group * each;
    if (p.gates)
        store_gated<shape>(f, at, came, &come, share.row + first, blockIdx.y * ROWS + first, own);
    else
        store_sums<shape>(f, at, came, &come, share.row + first, own);
}

#else
template <int BITS, int GROUPS, int ROWS, int TILES, int EACH>
static __device__ inline void multiply(const mt_cuda_native_few &)
{
}
#endif

#define MT_KERNEL_OF(bits, groups, rows, tiles, blocks)                                                   \
    extern "C" __global__ void __launch_bounds__(MT_CUDA_NATIVE_FEW_THREADS(rows, tiles), blocks)         \
        mtk_native_few_##bits##_##groups##_##rows##_##tiles(const __grid_constant__ mt_cuda_native_few p) \
    {                                                                                                     \
        multiply<bits, groups, rows, tiles, blocks>(p);                                                   \
    }

#endif
