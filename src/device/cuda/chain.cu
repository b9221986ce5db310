/* Products of up to 8 rows with codes, one after the other, in one kernel that stays on every multiprocessor.

   A stage makes its rows (takes, norms or gates them, and packs them, R3), multiplies them with some weights that share
   them (R4), and may add the result to the residual stream. Between stages all blocks meet at a barrier in the device's
   memory. Meanwhile, and while the kernel before still runs, a warp of each block goes on to fetch the weights to come
   into a ring in shared memory: memory never waits for what lies between two products.

   Weights are cut into tiles of 16 columns, tiles into chunks of CHUNK steps of 128 of k. A block's chunks go round its
   warps. A warp makes t = xs * dot of each link of its chunk by itself; then it waits for the warp that has the chunk
   before, takes that one's sums, folds its own in, in R4's order, and hands them on. So dots are made side by side,
   and sums are those of every other kernel. Columns are the left operand (16 x 32), rows the right one (32 x 8). */
#include "device/cuda/activation.cuh"
#include "device/cuda/barrier.cuh"
#include "device/cuda/pack.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

enum { WARPS_C = MT_CUDA_CHAIN_WARPS, TILES_C = MT_CUDA_CHAIN_TILES };

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

/* Four blocks of 8 rows of 16 bytes; lane l says where row l % 8 of block l / 8 lies, and gets 4 bytes of each. */
static __device__ inline void load_blocks(unsigned x[4], unsigned at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
}

/* Sums of a tile on their way from warp to warp. `folded` counts the chunks of all tiles that had this place. */
typedef struct chain_sums {
    float a[16][8], b[16][8];
} chain_sums;

typedef struct chain_room {
    uint64_t full[MT_CUDA_CHAIN_STAGES], empty[MT_CUDA_CHAIN_STAGES];
    uint32_t folded[TILES_C];
    float r; /* of a norm */
    chain_sums sums[TILES_C];
} chain_room;

/* How a stage's columns are shared out. */
typedef struct chain_cut {
    uint32_t steps, chunks, mine; /* mine: tiles of this block */
} chain_cut;

template <int CHUNK> static __device__ inline chain_cut cut_of(const mt_cuda_chain_stage &s)
{
    chain_cut c;
    const uint32_t tiles = s.first[s.count];
    c.steps = s.pack.to.padded / 128;
    c.chunks = (c.steps + CHUNK - 1) / CHUNK;
    c.mine = blockIdx.x < tiles ? (tiles - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    return c;
}

/* Chunk number n of a block: rounds of up to TILES_C tiles, in them chunks ascending, in them tiles. */
typedef struct chain_item {
    uint32_t round, chunk, place, tile;
} chain_item;

static __device__ inline chain_item item_at(const chain_cut &c, uint32_t n)
{
    chain_item i;
    const uint32_t whole = TILES_C * c.chunks;
    i.round = n / whole;
    const uint32_t left = c.mine - i.round * TILES_C, some = left < TILES_C ? left : TILES_C,
                   within = n - i.round * whole;
    i.chunk = within / some;
    i.place = within - i.chunk * some;
    i.tile = blockIdx.x + (i.round * TILES_C + i.place) * gridDim.x;
    return i;
}

static __device__ inline uint32_t weight_of(const mt_cuda_chain_stage &s, uint32_t *tile)
{
    uint32_t i = 0;
    while (i + 1 < s.count && *tile >= s.first[i + 1])
        i++;
    *tile -= s.first[i];
    return i;
}

template <int BITS, int CHUNK>
static __device__ void fetch_chain(const mt_cuda_chain &p, uint8_t *ring, chain_room *room)
{
    const mt_cuda_weight &w0 = p.stage[0].w[0];
    const uint32_t pair_bytes = w0.pairs == MT_SCALE_F32 ? 8 : 4, each = 128 / w0.group;
    uint32_t slot = 0, phase = 1;
    for (uint32_t i = 0; i < p.count; i++) {
        const mt_cuda_chain_stage &s = p.stage[i];
        const chain_cut c = cut_of<CHUNK>(s);
        for (uint32_t n = 0; n < c.mine * c.chunks; n++) {
            const chain_item item = item_at(c, n);
            uint32_t tile = item.tile;
            const mt_cuda_weight &w = s.w[weight_of(s, &tile)];
            const uint32_t first = item.chunk * CHUNK, size = min(CHUNK, (int)(c.steps - first));
            const uint32_t groups = min((first + size) * each, w.groups) - first * each;
            uint8_t *to = ring + slot * p.slot;
            barrier_wait(&room->empty[slot], phase);
            barrier_expect(&room->full[slot], size * (BITS * 256) + groups * 16 * pair_bytes);
            fetch(to, w.w + ((uint64_t)tile * c.steps + first) * (BITS * 256), size * (BITS * 256), &room->full[slot]);
            fetch(to + CHUNK * (BITS * 256), w.scales + ((uint64_t)tile * w.groups + first * each) * 16 * pair_bytes,
                  groups * 16 * pair_bytes, &room->full[slot]);
            if (++slot == p.slots) {
                slot = 0;
                phase ^= 1;
            }
        }
    }
}

/* ---- rows ---- */

static __device__ inline void meet_warps(void)
{
    asm volatile("bar.sync 1,%0;" ::"n"(WARPS_C * 32) : "memory");
}

/* All blocks come here before any goes on. */
static __device__ inline void meet_blocks(uint32_t *count, uint32_t target)
{
    meet_warps();
    if (threadIdx.x == 0) {
        uint32_t now;
        asm volatile("red.release.gpu.global.add.u32 [%0],1;" ::"l"(count) : "memory");
        do
            asm volatile("ld.acquire.gpu.global.u32 %0,[%1];" : "=r"(now) : "l"(count) : "memory");
        while (now < target);
    }
    meet_warps();
}

/* Row i of a stage normed, by the whole block, and packed. Shared memory: a row. */
static __device__ void norm_row(const mt_cuda_chain_stage &s, const mt_cuda_pack &pack, uint32_t i, float *row,
                                chain_room *room, bool writes)
{
    const uint32_t n = pack.k, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float *x = row_of(s.pack.x, i);
    float *y = row_of(s.out, i);
    for (uint32_t c = threadIdx.x; c < n; c += WARPS_C * 32)
        row[c] = x[c];
    meet_warps();
    if (warp == 0) {
        const float r = rms(row, n, s.eps);
        if (lane == 0)
            room->r = r;
    }
    meet_warps();
    const float r = room->r;
    for (uint32_t step = warp; step < pack.to.padded / 128; step += WARPS_C) {
        const uint32_t k = step * 128 + lane * 4;
        float value[4], factor[4];
        load_four(value, row, k, n);
        load_four(factor, s.norm, k, n);
#pragma unroll
        for (uint32_t c = 0; c < 4; c++)
            value[c] = k + c < n ? (value[c] * r) * (s.offset + factor[c]) : 0;
        if (writes)
            store_four(y, k, n, value);
        pack_step(pack, i, step, value);
    }
    meet_warps();
}

/* One step of a row, as it is or gated. */
static __device__ inline void pack_item(const mt_cuda_chain_stage &s, const mt_cuda_pack &pack, uint32_t item,
                                        bool writes)
{
    const uint32_t steps = pack.to.padded / 128, i = item / steps, step = item % steps,
                   k = step * 128 + threadIdx.x % 32 * 4;
    float value[4];
    if (s.made == MT_CUDA_GATED) {
        float gate[4], up[4];
        load_four(gate, row_of(s.pack.x, i), k, pack.k);
        load_four(up, row_of(s.up, i), k, pack.k);
#pragma unroll
        for (uint32_t c = 0; c < 4; c++)
            value[c] = k + c < pack.k ? glu_of(s.act, s.limit, s.offset, gate[c], up[c]) : 0;
        if (writes)
            store_four(row_of(s.out, i), k, pack.k, value);
    } else {
        load_four(value, row_of(pack.x, i), k, pack.k);
    }
    pack_step(pack, i, step, value);
}

/* The rows of a stage, packed, into this block's shared memory: made by each block for itself, or by all together. */
static __device__ void make_rows(const mt_cuda_chain &p, const mt_cuda_chain_stage &s, const mt_cuda_packed &own,
                                 float *row, chain_room *room, uint32_t *target)
{
    const uint32_t warp = threadIdx.x / 32, blocks = s.together ? gridDim.x : 1, block = s.together ? blockIdx.x : 0;
    const uint32_t steps = own.padded / 128, m = own.rows, each = 128 / s.pack.group;
    const bool writes = s.together || blockIdx.x == 0;
    mt_cuda_pack pack = s.pack;
    if (!s.together)
        pack.to = own;
    if (s.made == MT_CUDA_NORMED)
        for (uint32_t i = block; i < m; i += blocks)
            norm_row(s, pack, i, row, room, writes);
    else
        for (uint32_t item = block * WARPS_C + warp; item < m * steps; item += blocks * WARPS_C)
            pack_item(s, pack, item, writes);
    if (s.together) {
        meet_blocks(p.meetings, *target += gridDim.x);
        for (uint32_t i = threadIdx.x; i < m * steps * 8; i += WARPS_C * 32)
            ((uint4 *)own.q)[i] = __ldcg((const uint4 *)s.pack.to.q + i);
        for (uint32_t i = threadIdx.x; i < m * steps; i += WARPS_C * 32)
            ((float4 *)own.turns)[i] = __ldcg((const float4 *)s.pack.to.turns + i);
        for (uint32_t i = threadIdx.x; i < m * steps * each; i += WARPS_C * 32)
            own.sums[i] = __ldcg(s.pack.to.sums + i);
    }
    meet_warps();
}

/* ---- products ---- */

/* t of every link of a chunk: [step][block of k] of VALUES sums, of columns lane / 4 and + 8; of one row VALUES is 2,
   else 4: rows lane % 4 * 2 and + 1 of both columns. */
template <int BITS, int VALUES, int GROUP, int CHUNK>
static __device__ inline void make_dots(float t[CHUNK][4][VALUES], const uint8_t *slot, const mt_cuda_packed &x,
                                        uint32_t first, uint32_t size, uint32_t group, bool is_signed)
{
    const uint32_t lane = threadIdx.x % 32, m = x.rows;
    const uint32_t row = VALUES == 2 ? 0 : lane % 8 < m ? lane % 8 : m - 1;
    const uint32_t rows[2] = {VALUES == 2 ? 0 : min(lane % 4 * 2, m - 1),
                              VALUES == 2 ? 0 : min(lane % 4 * 2 + 1, m - 1)};
    const bool linked = (GROUP ? GROUP : group) % 64 == 0;
    const int start[4] = {MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS, MT_DOT_BITS};
#pragma unroll
    for (int step = 0; step < CHUNK; step++) {
        if (step >= (int)size)
            break;
        const uint8_t *codes = slot + step * (BITS * 256) + lane * (BITS * 4);
        unsigned low[BITS], high[BITS], q[8];
#pragma unroll
        for (int i = 0; i < BITS / 4; i++) {
            const uint4 l = ((const uint4 *)codes)[i], h = ((const uint4 *)(codes + BITS * 128))[i];
            low[i * 4] = l.x, low[i * 4 + 1] = l.y, low[i * 4 + 2] = l.z, low[i * 4 + 3] = l.w;
            high[i * 4] = h.x, high[i * 4 + 1] = h.y, high[i * 4 + 2] = h.z, high[i * 4 + 3] = h.w;
        }
        const unsigned at = shared_address(x.q + ((first + step) * m + row) * 128);
        load_blocks(q, at + ((lane / 8) ^ row) * 16);
        load_blocks(q + 4, at + ((4 + lane / 8) ^ row) * 16);
        float mul[2][4];
#pragma unroll
        for (int r = 0; r < VALUES / 2; r++) {
            const float4 f = ((const float4 *)x.turns)[(first + step) * m + rows[r]];
            mul[r][0] = f.x, mul[r][1] = f.y, mul[r][2] = f.z, mul[r][3] = f.w;
        }
        int sum[4];
#pragma unroll
        for (int ks = 0; ks < 4; ks++) {
            unsigned w[4];
            if (BITS == 4) {
                w[0] = low[ks] & 0x0f0f0f0fu;
                w[1] = high[ks] & 0x0f0f0f0fu;
                w[2] = low[ks] >> 4 & 0x0f0f0f0fu;
                w[3] = high[ks] >> 4 & 0x0f0f0f0fu;
            } else {
                w[0] = low[ks * 2 % BITS];
                w[1] = high[ks * 2 % BITS];
                w[2] = low[(ks * 2 + 1) % BITS];
                w[3] = high[(ks * 2 + 1) % BITS];
            }
            const bool second = linked && ks % 2;
            const int from[4] = {second ? sum[0] : start[0], second ? sum[1] : start[1], second ? sum[2] : start[2],
                                 second ? sum[3] : start[3]};
            multiply_columns(sum, w, q[ks * 2], q[ks * 2 + 1], from, BITS == 4 || is_signed);
#pragma unroll
            for (int v = 0; v < VALUES; v++) {
                const int e = VALUES == 2 ? v * 2 : v;
                const float f = mul[VALUES == 2 ? 0 : v % 2][ks], value = __int_as_float(sum[e]);
                if (linked && ks % 2 == 0)
                    sum[e] = __float_as_int(fmaf(f, value, turn_on_add(f)));
                else
                    t[step][ks][v] = fmaf(f, value, turn_end_add(f));
            }
        }
    }
}

/* Folds a chunk's links into sums, groups ascending. left: of k, from the chunk's first element on. */
template <int BITS, int VALUES, int GROUP, int CHUNK>
static __device__ inline void fold_chunk(float a[VALUES], float b[VALUES], const float t[CHUNK][4][VALUES],
                                         const uint8_t *pairs, uint8_t type, const mt_cuda_packed &x, uint32_t first,
                                         uint32_t size, uint32_t group, uint32_t left)
{
    const uint32_t lane = threadIdx.x % 32, m = x.rows, g = GROUP ? GROUP : group, each = 128 / g;
    const uint32_t rows[2] = {VALUES == 2 ? 0 : min(lane % 4 * 2, m - 1),
                              VALUES == 2 ? 0 : min(lane % 4 * 2 + 1, m - 1)};
#pragma unroll
    for (int step = 0; step < CHUNK; step++) {
        if (step >= (int)size)
            break;
#pragma unroll
        for (int ks = 0; ks < 4; ks++) {
            if ((g % 64 == 0 && ks % 2 == 0) || (!GROUP && (uint32_t)(step * 128 + ks * 32) >= left))
                continue;
            const uint32_t at = (step * each + ks * 32 / g) * 16 + lane / 4;
            const float2 p0 = pair_of(pairs, GROUP ? MT_SCALE_BF16 : type, at),
                         p1 = pair_of(pairs, GROUP ? MT_SCALE_BF16 : type, at + 8);
            const bool last = (ks + 1) * 32 % g == 0;
#pragma unroll
            for (int v = 0; v < VALUES; v++) {
                const bool right = VALUES == 2 ? v : v / 2;
                a[v] = fmaf(right ? p1.x : p0.x, t[step][ks][v], a[v]);
                if (last) {
                    const float sx = x.sums[((first + step) * m + rows[VALUES == 2 ? 0 : v % 2]) * each + ks * 32 / g];
                    b[v] = fmaf(right ? p1.y : p0.y, sx, b[v]);
                }
            }
        }
    }
}

template <int VALUES>
static __device__ inline void put_columns(const mt_cuda_chain_stage &s, uint32_t tile, const float a[VALUES],
                                          const float b[VALUES], uint32_t m)
{
    const uint32_t lane = threadIdx.x % 32, which = weight_of(s, &tile);
    const mt_cuda_weight &w = s.w[which];
#pragma unroll
    for (int v = 0; v < VALUES; v++) {
        const uint32_t row = lane % 4 * 2 + (VALUES == 2 ? 0 : v % 2);
        const uint32_t column = tile * 16 + lane / 4 + (VALUES == 2 ? v : v / 2) * 8;
        if (row >= m || column >= w.n)
            continue;
        float y = w.biased ? a[v] + b[v] : a[v];
        y = w.bias ? y + w.bias[column] : y;
        row_of(s.y[which], row)[column] = y;
        if (s.add.data)
            row_of(s.add, row)[column] += y;
    }
}

template <int BITS, int VALUES, int GROUP, int CHUNK>
static __device__ void multiply_stage(const mt_cuda_chain &p, const mt_cuda_chain_stage &s, const mt_cuda_packed &x,
                                      const uint8_t *ring, chain_room *room, uint32_t *before, uint32_t *folded)
{
    const chain_cut c = cut_of<CHUNK>(s);
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, total = c.mine * c.chunks, group = s.w[0].group;
    const bool is_signed = s.w[0].format != MT_FORMAT_AFFINE;
    for (uint32_t n = (warp + WARPS_C - *before % WARPS_C) % WARPS_C; n < total; n += WARPS_C) {
        const chain_item item = item_at(c, n);
        const uint32_t at = *before + n, slot = at % p.slots, first = item.chunk * CHUNK, left = c.steps - first;
        const uint32_t size = left < CHUNK ? left : CHUNK, turn = *folded + item.round * c.chunks + item.chunk;
        const uint8_t *codes = ring + slot * p.slot;
        float t[CHUNK][4][VALUES], a[VALUES], b[VALUES];
        barrier_wait(&room->full[slot], at / p.slots & 1);
        make_dots<BITS, VALUES, GROUP, CHUNK>(t, codes, x, first, size, group, is_signed);
        volatile uint32_t *turns = &room->folded[item.place];
        while (*turns != turn)
            ;
        __threadfence_block();
        chain_sums *sums = &room->sums[item.place];
#pragma unroll
        for (int v = 0; v < VALUES; v++) {
            const uint32_t col = lane / 4 + (VALUES == 2 ? v : v / 2) * 8,
                           row = lane % 4 * 2 + (VALUES == 2 ? 0 : v % 2);
            a[v] = item.chunk ? sums->a[col][row] : 0;
            b[v] = item.chunk ? sums->b[col][row] : 0;
        }
        fold_chunk<BITS, VALUES, GROUP, CHUNK>(a, b, t, codes + CHUNK * (BITS * 256), s.w[0].pairs, x, first, size,
                                               group, s.w[0].k - first * 128);
        const bool ends = item.chunk + 1 == c.chunks;
#pragma unroll
        for (int v = 0; v < VALUES; v++) {
            const uint32_t col = lane / 4 + (VALUES == 2 ? v : v / 2) * 8,
                           row = lane % 4 * 2 + (VALUES == 2 ? 0 : v % 2);
            if (!ends) {
                sums->a[col][row] = a[v];
                sums->b[col][row] = b[v];
            }
        }
        __threadfence_block();
        __syncwarp();
        if (lane == 0) {
            *turns = turn + 1;
            barrier_arrive(&room->empty[slot]);
        }
        if (ends)
            put_columns<VALUES>(s, item.tile, a, b, x.rows);
    }
    /* A place that has no tile in the last round is not told of it; all count on as if it had. */
    const uint32_t rounds = (c.mine + TILES_C - 1) / TILES_C;
    meet_warps();
    *before += total;
    *folded += rounds * c.chunks;
    if (threadIdx.x < TILES_C)
        room->folded[threadIdx.x] = *folded;
    meet_warps();
}

template <int BITS, int VALUES, int GROUP> static __device__ void chain(const mt_cuda_chain &p)
{
    constexpr int CHUNK = GROUP ? MT_CUDA_CHAIN_CHUNK : MT_CUDA_CHAIN_CHUNK / 2;
    extern __shared__ __align__(16) uint8_t raw[];
    __shared__ chain_room room;
    uint8_t *ring = raw, *own = raw + p.slots * p.slot;
    const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (uint32_t s = 0; s < p.slots; s++) {
            barrier_init(&room.full[s], 1);
            barrier_init(&room.empty[s], 1);
        }
        for (uint32_t i = 0; i < TILES_C; i++)
            room.folded[i] = 0;
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    start_next();
    if (warp == WARPS_C) {
        if (lane == 0)
            fetch_chain<BITS, CHUNK>(p, ring, &room);
        return;
    }
    wait_for_last();
    uint32_t target = 0, before = 0, folded = 0;
    for (uint32_t i = 0; i < p.count; i++) {
        const mt_cuda_chain_stage &s = p.stage[i];
        const uint32_t m = s.pack.to.rows, steps = s.pack.to.padded / 128;
        mt_cuda_packed x = s.pack.to;
        x.q = own;
        x.turns = (float *)(own + m * steps * 128);
        x.sums = x.turns + m * steps * 4;
        float *row = x.sums + m * steps * (128 / s.pack.group);
        if (i)
            meet_blocks(p.meetings, target += gridDim.x);
        make_rows(p, s, x, row, &room, &target);
        multiply_stage<BITS, VALUES, GROUP, CHUNK>(p, s, x, ring, &room, &before, &folded);
    }
    /* the last block to leave makes the meetings' count 0 again */
    if (target && threadIdx.x == 0) {
        uint32_t left;
        asm volatile("atom.add.relaxed.gpu.global.u32 %0,[%1],1;" : "=r"(left) : "l"(p.meetings + 1) : "memory");
        if (left == gridDim.x - 1) {
            p.meetings[0] = 0;
            p.meetings[1] = 0;
        }
    }
}

#else
template <int BITS, int VALUES, int GROUP> static __device__ void chain(const mt_cuda_chain &p)
{
}
#endif

#define CHAIN(bits, rows, group)                                                     \
    extern "C" __global__ void __launch_bounds__(32 * (MT_CUDA_CHAIN_WARPS + 1), 1)  \
        mtk_chain_##bits##_##rows##_##group(const __grid_constant__ mt_cuda_chain p) \
    {                                                                                \
        chain<bits, rows == 1 ? 2 : 4, group>(p);                                    \
    }
CHAIN(4, 1, 64)
CHAIN(4, 8, 64)
CHAIN(8, 1, 64)
CHAIN(8, 8, 64)
CHAIN(4, 1, 0)
CHAIN(4, 8, 0)
CHAIN(8, 1, 0)
CHAIN(8, 8, 0)
