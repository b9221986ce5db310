/* Many rows against codes of 4 bits with scales in bf16 (R4), on the tensor cores of Hopper's warpgroups. A block has
   128 rows and 128 columns, and goes from tile to tile as those of codes_many.cu do, with the same sums in the same
   order.

   What bounds products with a turn or a fold every 32 of k is reading registers: a fused multiply-add of three operands
   none of which the instruction before had takes two cycles, and operands of mma.sync come out of registers as well.
   Here both factors are in shared memory, and four warpgroups have a part each: one copies, some steps ahead, and
   unpacks codes to bytes; two have 64 rows each and their sums; one adds up what the groups' biases give, which waits
   for no product, and hands it over at the end of a tile.

   Tiles seldom go evenly into blocks, and most blocks would wait for those that have one more. So the last tiles are
   divided by steps: a block ends in the middle of one, and the block behind it goes on with its sums, in the order of k
   as ever. Each has such a beginning of a tile first of all, and the end of another last: so nobody waits as a rule,
   and if so, for a block before it, which was started before. */
#include "device/cuda/products/product.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/common/mma.cuh"

enum {
    BROAD_STAGES = 4,  /* steps of 128 of k that are copied */
    BROAD_CODES = 2,   /* that are unpacked */
    BIAS_STRIDE = 144, /* floats of a row of what is handed over: two rows' 64 bytes are in different banks */
    BROAD_PLACES = 8,  /* tiles that are copied, summed or stored: with a step each, six */
    LEAST_SAVED = 6,   /* steps that a block must have less, or no tile is divided */
    PLANE_LANE = 36,   /* scales of one of the four lanes that share a row: 32, apart from the others' banks */
    PLANE = 4 * PLANE_LANE,
    HALF = 64 * 128 >> 4, /* from 64 unpacked columns to the next, as products count */
    START_PIECES = 17 * 8 /* what dots are counted from, see product_start */
};

/* What is copied: rows, turns, sums, codes, scales as they lie. What is unpacked: codes as bytes, then for each group
   the scales' plane and the biases'. Both begin at multiples of 1024. */
template <int GROUP> struct broad_stage {
    enum {
        EACH = 128 / GROUP,
        TURNS = MT_CUDA_MANY * 128,
        SUMS = TURNS + MT_CUDA_MANY * 16,
        CODES = SUMS + MT_CUDA_MANY * EACH * 4,
        SCALES = CODES + 8 * 1024,
        BYTES = SCALES + 8 * EACH * 64,
        COPIED = (BYTES + 1023) / 1024 * 1024,
        PLANES = MT_CUDA_MANY * 128,
        UNPACKED = (PLANES + EACH * 2 * PLANE * 4 + 1023) / 1024 * 1024,
        ALL = BROAD_STAGES * COPIED + BROAD_CODES * UNPACKED + MT_CUDA_MANY * BIAS_STRIDE * 4
    };
};

/* A tile, and where its result begins where it is whole: no element has to be asked whether it is there, and rows take
   16 bytes at a time. */
typedef struct broad_place {
    many_tile tile;
    float *y; /* NULL: not whole */
    uint64_t stride;
} broad_place;

/* A block's share of the tiles: some that are whole, each gridDim.x behind the one before, and of those that are
   divided all from step `begin` of the first to step `end` of the last. */
typedef struct broad_share {
    uint32_t whole, first, begin, last, end;
    uint32_t pieces; /* in all: a tile, or a part of one, each */
} broad_share;

typedef struct broad_barriers {
    broad_share share;
    broad_place places[BROAD_PLACES]; /* of tiles: the copying warpgroup writes them, the storing ones read them */
    __align__(128) uint4 start[START_PIECES];
    uint64_t full[BROAD_STAGES];  /* a step is copied */
    uint64_t empty[BROAD_STAGES]; /* the stage, and what was unpacked of it, has been read */
    uint64_t ready[BROAD_CODES];  /* it is unpacked */
    uint64_t given, taken;        /* what biases give */
} broad_barriers;

/* Where things are. */
typedef struct broad_block {
    uint8_t *ring, *codes;
    float *bias;
    broad_barriers *at;
    uint32_t steps, tiles;
} broad_block;

/* ---- what a block has ---- */

/* A tile, or the steps of it that the block has. */
typedef struct broad_piece {
    uint32_t tile, begin, end;
} broad_piece;

static __device__ inline broad_share broad_share_of(uint32_t tiles, uint32_t steps)
{
    const uint32_t blocks = gridDim.x, over = tiles % blocks;
    broad_share s = {tiles / blocks + (blockIdx.x < over), 0, 0, 0, 0, 0};
    if (tiles > blocks && over && (blocks - over) * steps >= LEAST_SAVED * blocks) {
        const uint64_t divided = (uint64_t)(blocks + over) * steps;
        const uint32_t from = divided * blockIdx.x / blocks, to = divided * (blockIdx.x + 1) / blocks;
        s.whole = tiles / blocks - 1;
        s.first = s.whole * blocks + from / steps, s.begin = from % steps;
        s.last = s.whole * blocks + to / steps, s.end = to % steps;
    }
    s.pieces = s.whole + s.last - s.first + (s.end > 0);
    return s;
}

/* Tiles that the block has stored before that piece: all but the beginning of one. */
static __device__ inline uint32_t broad_stored(const broad_block &b, uint32_t turn)
{
    return turn - (b.at->share.end > 0);
}

/* All lanes of a warp have the same, which the compiler does not see of what lies in shared memory: only so it keeps
   what is reckoned with in registers of the whole warp. */
static __device__ inline uint32_t same_for_all(uint32_t x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}

/* Piece number `turn` of the block: a tile's beginning, whole tiles, a tile's end. */
static __device__ inline broad_piece broad_piece_at(const broad_block &b, uint32_t turn)
{
    const broad_share s = b.at->share;
    if (turn == 0 && s.end)
        return {s.last, 0, s.end};
    turn = broad_stored(b, turn);
    if (turn < s.whole)
        return {blockIdx.x + turn * gridDim.x, 0, b.steps};
    const uint32_t tile = s.first + (s.begin > 0) + turn - s.whole;
    return tile < s.last ? broad_piece{tile, 0, b.steps} : broad_piece{s.first, s.begin, b.steps};
}

/* Where a warp of a block leaves N sums a lane for the same warp of the next block. */
template <int N> static __device__ inline float4 *broad_left(const mt_cuda_many &p, uint32_t block)
{
    static_assert(N == 64 || N == 128, "the first eight warps have 64, the next four 128");
    const uint32_t warp = threadIdx.x / 32 - (N == 64 ? 0 : 4);
    return (float4 *)p.parts + (block * (MT_CUDA_BROAD_PART / 16) + warp * (N * 8) + threadIdx.x % 32);
}

static __device__ inline uint32_t *broad_mark(const mt_cuda_many &p, uint32_t block)
{
    return p.counts + block * MT_CUDA_BROAD_MARKS + threadIdx.x / 32;
}

template <int N> static __device__ inline void broad_leave(const mt_cuda_many &p, const float (&sum)[N])
{
    float4 *to = broad_left<N>(p, blockIdx.x);
#pragma unroll
    for (int i = 0; i < N; i += 4)
        __stcg(to + i * 8, make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
    __threadfence();
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        atomicExch(broad_mark(p, blockIdx.x), 1);
}

/* The sums that the block before has left, or zeros where a tile begins. */
template <int N>
static __device__ inline void broad_begin(const mt_cuda_many &p, const broad_piece &at, float (&sum)[N])
{
    if (at.begin == 0) {
#pragma unroll
        for (int i = 0; i < N; i++)
            sum[i] = 0;
        return;
    }
    if (threadIdx.x % 32 == 0)
        while (atomicExch(broad_mark(p, blockIdx.x - 1), 0) == 0)
            __nanosleep(100);
    __syncwarp();
    __threadfence();
    const float4 *from = broad_left<N>(p, blockIdx.x - 1);
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        const float4 four = __ldcg(from + i * 8);
        sum[i] = four.x, sum[i + 1] = four.y, sum[i + 2] = four.z, sum[i + 3] = four.w;
    }
}

/* ---- products ---- */

/* Both operands of product_start: 16 bytes of bf16 are 2048, 1024, 1024 and five times 0, all alike, so that blocks of
   eight rows may overlap (each begins 128 bytes after the one before, in both directions). */
static __device__ inline uint4 start_piece(void)
{
    return make_uint4(0x44804500u, 0x4480u, 0, 0);
}

static __device__ inline uint64_t start_at(const uint4 *pieces)
{
    return (uint64_t)((shared_address(pieces) & 0x3ffff) >> 4) | 8ull << 16 | 8ull << 32;
}

#define R4(how, i) how(d[i]), how(d[i + 1]), how(d[i + 2]), how(d[i + 3])
#define R16(how, i) R4(how, i), R4(how, i + 4), R4(how, i + 8), R4(how, i + 12)

/* Begins d = MT_DOT_BITS, the bits of MT_DOT_START = 2 (2048^2 + 1024^2 + 1024^2), which nothing rounds: set by tensor
   cores, 32 registers take no loads. */
static __device__ inline void product_start(int (&d)[32], uint64_t start)
{
    products_begin();
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" D32 "}, %32, %32, p, 1, 1, 0, 0;\n"
                 "}"
                 : R16("=r", 0), R16("=r", 16)
                 : "l"(start));
    products_commit();
}

/* Begins d += a b': 64 rows of int8 and 64 columns of bytes, 32 of k. */
static __device__ inline void product_codes(int (&d)[32], uint64_t a, uint64_t b)
{
    products_begin();
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.b32 p, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.u8 {" D32 "}, %32, %33, p;\n"
                 "}"
                 : R16("+r", 0), R16("+r", 16)
                 : "l"(a), "l"(b));
    products_commit();
}

#undef R16
#undef R4

/* Waits for what was begun of d. BUT 1: what was begun last is of the other half, and goes on. */
template <int BUT> static __device__ inline void product_wait(int (&d)[32])
{
    products_wait<BUT>();
#pragma unroll
    for (int i = 0; i < 32; i++)
        asm volatile("" : "+r"(d[i])::"memory");
}

/* ---- copying and unpacking ---- */

/* The tile of piece number `turn`. Finding it takes divisions: the copying warpgroup does so some steps ahead, for all.
   */
static __device__ inline many_tile broad_next(const mt_cuda_many &p, const broad_block &b, uint32_t turn,
                                              const broad_piece &piece)
{
    const many_tile t = many_tile_at(p, piece.tile, b.tiles);
    if (threadIdx.x % 128 == 0) {
        const mt_cuda_weight &w = many_weight(p, t);
        const mt_cuda_mat &y = p.y[p.shares.experts ? 0 : t.weight];
        const bool whole = !w.bias && t.row + MT_CUDA_MANY <= t.end && t.column * 16 + MT_CUDA_MANY <= w.n &&
                           y.stride % 4 == 0 && (uintptr_t)y.data % 16 == 0;
        b.at->places[turn % BROAD_PLACES] = {t, whole ? row_of(y, t.row) + t.column * 16 : NULL, y.stride};
    }
    return t;
}

/* Where the next copies of a thread begin. */
typedef struct broad_source {
    const uint8_t *q, *turns, *sums, *codes, *scales;
    uint64_t tile;     /* bytes of codes of a tile of 16 columns */
    int tiles, groups; /* that there are from the thread's piece on */
} broad_source;

template <int GROUP>
static __device__ inline broad_source broad_source_at(const mt_cuda_many &p, const many_tile &t, uint32_t step)
{
    enum { EACH = broad_stage<GROUP>::EACH, PIECES = 4 * EACH }; /* PIECES: of scales of a tile */
    const mt_cuda_weight &w = many_weight(p, t);
    const uint32_t n = threadIdx.x % 128, there = (w.n + 31) / 32 * 2 - t.column;
    const uint64_t row = (uint64_t)step * p.from.rows + t.row;
    broad_source f;
    f.q = p.from.q + row * 128 + n * 16;
    f.turns = (const uint8_t *)p.from.turns + row * 16 + n * 16;
    f.sums = (const uint8_t *)p.from.sums + row * (4 * EACH) + n * 16;
    f.tile = (uint64_t)w.steps * 1024;
    f.codes = w.w + (t.column + n / 64) * f.tile + step * 1024 + n % 64 * 16;
    f.scales = w.scales + ((uint64_t)(t.column + n / PIECES) * w.groups * 4 + step * PIECES + n % PIECES) * 16;
    f.tiles = (int)there - (int)(n / 64);
    f.groups = n / PIECES < there ? (int)w.groups - (int)(step * EACH + n % PIECES / 4) : 0;
    return f;
}

/* A step, then on to the next. */
template <int GROUP>
static __device__ inline void broad_fetch(const mt_cuda_many &p, broad_source *f, unsigned to, uint64_t *full)
{
    typedef broad_stage<GROUP> S;
    const uint32_t n = threadIdx.x % 128;
    to += n * 16;
#pragma unroll
    for (int i = 0; i < 8; i++)
        copy_16(to + i * 2048, f->q + i * 2048);
    copy_16(to + S::TURNS, f->turns);
    if (n < MT_CUDA_MANY * S::EACH / 4)
        copy_16(to + S::SUMS, f->sums);
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (i * 2 < f->tiles)
            copy_16(to + S::CODES + i * 2048, f->codes + i * 2 * f->tile);
    if (n < 8 * 4 * S::EACH)
        copy_or_clear(to + S::SCALES, f->scales, f->groups > 0);
    barrier_copied(full);
    f->q += p.from.rows * 128ull;
    f->turns += p.from.rows * 16ull;
    f->sums += p.from.rows * (4ull * S::EACH);
    f->codes += 1024;
    f->scales += S::EACH * 64;
    f->groups -= S::EACH;
}

/* Codes become rows of 128 bytes, a column each, as products want them. Of 16 columns, 4 i to 4 i + 3 become rows 2 i,
   2 i + 1, 2 i + 8 and 2 i + 9: so they are lane i's, of the four that share a row of the result. A lane's scales come
   to lie together, as fp32, so that they are made of bf16 once and not by every warp. Of two biases the second is the
   first: so their registers are in other banks than those of the sums they are for. */
template <int GROUP> static __device__ inline void broad_unpack(const uint8_t *from, uint8_t *to)
{
    typedef broad_stage<GROUP> S;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, thread = threadIdx.x % 128;
    const uint32_t row = shared_address(to) + (warp * 32 + lane % 8) * 128 + (lane / 8 ^ lane % 8) * 16;
#pragma unroll
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t column = warp * 32 + i / 2 * 16 + lane / 8 * 4 + i % 2 * 2 + lane / 4 % 2;
        const uint4 raw = *(const uint4 *)(from + S::CODES + column * 64 + lane % 4 * 16);
        const unsigned word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (uint32_t ks = 0; ks < 4; ks += 2) {
            const unsigned four[4] = {word[ks] & 0x0f0f0f0fu, word[ks] >> 4 & 0x0f0f0f0fu, word[ks + 1] & 0x0f0f0f0fu,
                                      word[ks + 1] >> 4 & 0x0f0f0f0fu};
            store_rows((row ^ ks * 32) + i * 1024, four);
        }
    }
    if (thread < S::EACH * 64) {
        const uint32_t g = thread / 64, pair = thread % 64; /* of columns */
        const uint2 two = *(const uint2 *)(from + S::SCALES + ((pair / 8 * S::EACH + g) * 16 + pair % 8 * 2) * 4);
        float *plane =
            (float *)(to + S::PLANES) + g * (2 * PLANE) + pair % 8 / 2 * PLANE_LANE + pair / 8 * 4 + pair % 2 * 2;
        *(float2 *)plane = make_float2(__uint_as_float(two.x << 16), __uint_as_float(two.y << 16));
        *(float2 *)(plane + PLANE) =
            make_float2(__uint_as_float(two.y & 0xffff0000u), __uint_as_float(two.x & 0xffff0000u));
    }
}

template <int GROUP> static __device__ inline void broad_feed(const mt_cuda_many &p, const broad_block &b)
{
    typedef broad_stage<GROUP> S;
    const broad_share &s = b.at->share;
    const uint32_t total = (s.whole + s.last - s.first) * b.steps + s.end - s.begin;
    uint32_t turn = 0, left = 0, fetched = 0; /* left: steps of the piece */
    broad_source from;
    const auto find_next = [&]() {
        const broad_piece piece = broad_piece_at(b, turn);
        from = broad_source_at<GROUP>(p, broad_next(p, b, turn++, piece), piece.begin);
        left = piece.end - piece.begin;
    };
    find_next();
    const auto fetch_next = [&]() {
        if (fetched >= total)
            return;
        const uint32_t slot = fetched++ % BROAD_STAGES;
        broad_fetch<GROUP>(p, &from, shared_address(b.ring) + slot * S::COPIED, &b.at->full[slot]);
        if (--left == 0)
            find_next();
    };
    for (int i = 0; i < BROAD_STAGES - 1; i++)
        fetch_next();
    for (uint32_t n = 0; n < total; n++) {
        const uint32_t slot = n % BROAD_STAGES;
        barrier_wait(&b.at->full[slot], n / BROAD_STAGES & 1);
        broad_unpack<GROUP>(b.ring + slot * S::COPIED, b.codes + n % BROAD_CODES * S::UNPACKED);
        products_see();
        barrier_arrive(&b.at->ready[n % BROAD_CODES]);
        if (n) /* the step before is done with: its stage is free, and the next but one may be unpacked over it */
            barrier_wait(&b.at->empty[(n - 1) % BROAD_STAGES], (n - 1) / BROAD_STAGES & 1);
        fetch_next();
    }
}

/* ---- biases ---- */

/* A warp has 128 rows of 32 columns; a lane every eighth row from lane / 4 on, of each 16 columns four from
   lane % 4 * 4 on. */
template <int GROUP>
static __device__ inline void broad_bias(float (&sum)[128], const uint8_t *copied, const uint8_t *unpacked)
{
    typedef broad_stage<GROUP> S;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const float *sums = (const float *)(copied + S::SUMS) + lane / 4 * S::EACH;
#pragma unroll 1 /* biases of one group at a time: nearly all registers are for sums */
    for (int g = 0; g < S::EACH; g++) {
        const float4 *plane = (const float4 *)((const float *)(unpacked + S::PLANES) + (2 * g + 1) * PLANE +
                                               lane % 4 * PLANE_LANE + warp * 8);
        const float4 low = plane[0], high = plane[1];
        const float bias[8] = {low.y, low.x, low.w, low.z, high.y, high.x, high.w, high.z};
#pragma unroll
        for (int r = 0; r < 16; r++) {
            const float sx = sums[r * 8 * S::EACH + g];
#pragma unroll
            for (int c = 0; c < 8; c++)
                sum[r * 8 + c] = fmaf(bias[c], sx, sum[r * 8 + c]);
        }
    }
}

template <int GROUP> static __device__ inline void broad_biases(const mt_cuda_many &p, const broad_block &b)
{
    typedef broad_stage<GROUP> S;
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    uint32_t n = 0;
#pragma unroll 1
    for (uint32_t turn = 0, pieces = same_for_all(b.at->share.pieces); turn < pieces; turn++) {
        const broad_piece piece = broad_piece_at(b, turn);
        float sum[128];
        broad_begin(p, piece, sum);
#pragma unroll 1
        for (uint32_t s = same_for_all(piece.end - piece.begin); s > 0; s--, n++) {
            const uint32_t slot = n % BROAD_STAGES;
            barrier_wait(&b.at->ready[n % BROAD_CODES], n / BROAD_CODES & 1);
            broad_bias<GROUP>(sum, b.ring + slot * S::COPIED, b.codes + n % BROAD_CODES * S::UNPACKED);
            barrier_arrive(&b.at->empty[slot]);
        }
        if (piece.end < b.steps) {
            broad_leave(p, sum);
            continue;
        }
        const uint32_t given = broad_stored(b, turn);
        if (given)
            barrier_wait(&b.at->taken, (given - 1) & 1);
        float *to = b.bias + lane / 4 * BIAS_STRIDE + warp * 32 + lane % 4 * 4;
#pragma unroll
        for (int r = 0; r < 16; r++)
#pragma unroll
            for (int c = 0; c < 8; c += 4)
                *(float4 *)(to + r * 8 * BIAS_STRIDE + c * 4) =
                    make_float4(sum[r * 8 + c], sum[r * 8 + c + 1], sum[r * 8 + c + 2], sum[r * 8 + c + 3]);
        barrier_arrive(&b.at->given);
    }
}

/* ---- sums ---- */

/* All elements of a row, then those of the other: factors that the instruction before had are not read again. */
static __device__ inline void broad_turn(int (&d)[32], const float (&mul)[2], const float (&add)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++)
#pragma unroll
        for (int j = 0; j < 16; j++) {
            const int i = j / 2 * 4 + r * 2 + j % 2;
            d[i] = __float_as_int(fmaf(mul[r], __int_as_float(d[i]), add[r]));
        }
}

/* 64 of k, which is a link, of 64 rows: a thread has rows lane / 4 and + 8 of its warp's 16, of each 16 columns four
   from lane % 4 * 4 on. low and high: the link's turns for both. Columns are multiplied by halves: while tensor cores
   have one, the other is turned on or folded. */
static __device__ inline void broad_link(float (&a)[64], uint64_t rows, uint64_t columns, float2 low, float2 high,
                                         const float *plane, uint64_t start)
{
    const float mul[2] = {low.x, high.x}, xs[2] = {low.y, high.y};
    const float on[2] = {turn_on_add(mul[0]), turn_on_add(mul[1])};
    const float end[2] = {turn_end_add(xs[0]), turn_end_add(xs[1])};
    int d[2][32];
    product_start(d[0], start);
    product_start(d[1], start);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        product_wait<1>(d[half]);
        product_codes(d[half], rows, columns + half * HALF);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        product_wait<1>(d[half]);
        broad_turn(d[half], mul, on);
        product_codes(d[half], rows + 2, columns + half * HALF + 2);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        if (half == 0)
            product_wait<1>(d[0]);
        else
            product_wait<0>(d[1]);
        broad_turn(d[half], xs, end);
#pragma unroll
        for (int q = 0; q < 4; q++) {
            const float4 w = *(const float4 *)(plane + half * 16 + q * 4);
            const float ws[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int j = 0; j < 8; j++) { /* two rows with the scale that they share */
                const int i = q * 8 + j / 4 * 4 + j / 2 % 2 + j % 2 * 2;
                a[half * 32 + i] = fmaf(ws[j / 2], __int_as_float(d[half][i]), a[half * 32 + i]);
            }
        }
    }
}

/* Four neighbours of row h of a thread, of 16 columns j, with what biases give. */
static __device__ inline float4 broad_four(const float (&a)[64], const float *bias, int h, int j)
{
    const float4 c = *(const float4 *)(bias + h * 8 * BIAS_STRIDE + j * 16);
    const float *of = a + j * 8 + h * 2;
    return make_float4(of[0] + c.x, of[1] + c.y, of[4] + c.z, of[5] + c.w);
}

/* To global memory, which a pointer out of shared memory does not say. */
static __device__ inline void store_four(float *to, float4 y)
{
    asm volatile("st.global.v4.f32 [%0],{%1,%2,%3,%4};" ::"l"(to), "f"(y.x), "f"(y.y), "f"(y.z), "f"(y.w));
}

/* A thread's sums. Nearly all tiles are whole. */
static __device__ inline void broad_store(const mt_cuda_many &p, const broad_place &at, const float (&a)[64],
                                          const float *bias, uint32_t row)
{
    const uint32_t first = threadIdx.x % 4 * 4;
    const uint64_t stride = at.stride;
    if (float *y = at.y) {
        y += row * stride + first;
#pragma unroll
        for (int h = 0; h < 2; h++, y += 8 * stride)
#pragma unroll
            for (int j = 0; j < 8; j++)
                store_four(y + j * 16, broad_four(a, bias, h, j));
        return;
    }
    const many_tile t = at.tile;
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const uint32_t n = t.column * 16 + first + j * 16;
            const float4 four = broad_four(a, bias, h, j);
            many_store(p, t, t.row + row + h * 8, n, make_float2(four.x, four.y));
            many_store(p, t, t.row + row + h * 8, n + 2, make_float2(four.z, four.w));
        }
}

template <int GROUP>
static __device__ inline void broad_sums(const mt_cuda_many &p, const broad_block &b, uint32_t group)
{
    typedef broad_stage<GROUP> S;
    const uint32_t lane = threadIdx.x % 32, row = group * 64 + threadIdx.x / 32 % 4 * 16 + lane / 4;
    uint32_t n = 0;
#pragma unroll 1
    for (uint32_t turn = 0, pieces = same_for_all(b.at->share.pieces); turn < pieces; turn++) {
        const broad_piece piece = broad_piece_at(b, turn);
        float a[64];
        broad_begin(p, piece, a);
#pragma unroll 1
        for (uint32_t s = same_for_all(piece.end - piece.begin); s > 0; s--, n++) {
            const uint32_t slot = n % BROAD_STAGES;
            const uint8_t *copied = b.ring + slot * S::COPIED, *unpacked = b.codes + n % BROAD_CODES * S::UNPACKED;
            barrier_wait(&b.at->ready[n % BROAD_CODES], n / BROAD_CODES & 1);
            const uint64_t rows = along(shared_address(copied) + group * 8192),
                           columns = along(shared_address(unpacked));
            const uint8_t *turns = copied + S::TURNS + row * 16;
            const float *plane = (const float *)(unpacked + S::PLANES) + lane % 4 * PLANE_LANE;
#pragma unroll 1 /* the next link's loads would only take registers */
            for (uint32_t link = 0; link < 2; link++)
                broad_link(a, rows + link * 4, columns + link * 4, *(const float2 *)(turns + link * 8),
                           *(const float2 *)(turns + 8 * 16 + link * 8), plane + link * ((S::EACH - 1) * (2 * PLANE)),
                           start_at(b.at->start));
            barrier_arrive(&b.at->empty[slot]);
        }
        if (piece.end < b.steps) {
            broad_leave(p, a);
            continue;
        }
        const float *bias = b.bias + row * BIAS_STRIDE + lane % 4 * 4;
        barrier_wait(&b.at->given, broad_stored(b, turn) & 1);
        broad_store(p, b.at->places[turn % BROAD_PLACES], a, bias, row);
        barrier_arrive(&b.at->taken);
    }
}

template <int GROUP> static __device__ inline void broad(const mt_cuda_many &p)
{
    typedef broad_stage<GROUP> S;
    static_assert(S::ALL == MT_CUDA_BROAD_SHARED(S::EACH), "what the host gives");
    extern __shared__ __align__(1024) uint8_t ring[];
    __shared__ broad_barriers at;
    const uint32_t group = same_for_all(threadIdx.x / 128);
    if (threadIdx.x < START_PIECES) {
        at.start[threadIdx.x] = start_piece();
        products_see();
    }
    if (threadIdx.x == 0) {
        for (int i = 0; i < BROAD_STAGES; i++) {
            barrier_init(&at.full[i], 128);
            barrier_init(&at.empty[i], 3 * 128);
        }
        for (int i = 0; i < BROAD_CODES; i++)
            barrier_init(&at.ready[i], 128);
        barrier_init(&at.given, 128);
        barrier_init(&at.taken, 256);
        barriers_are_made();
    }
    __syncthreads();
    follow_last();
    if (threadIdx.x == 0)
        at.share = broad_share_of(many_tiles(p), p.from.padded / 128);
    __syncthreads();
    uint8_t *codes = ring + BROAD_STAGES * S::COPIED;
    const broad_block b = {ring,         codes, (float *)(codes + BROAD_CODES * S::UNPACKED), &at, p.from.padded / 128,
                           many_tiles(p)};
    if (group == 3) {
        fewer_registers<56>();
        broad_feed<GROUP>(p, b);
    } else if (group == 2) {
        more_registers<152>();
        broad_biases<GROUP>(p, b);
    } else {
        more_registers<152>();
        broad_sums<GROUP>(p, b, group);
    }
}

#define BROAD(group)                                                                   \
    extern "C" __global__ void __launch_bounds__(MT_CUDA_BROAD_THREADS, 1)             \
        mtk_matmul_w4_g##group##_hopper_rows65(const __grid_constant__ mt_cuda_many p) \
    {                                                                                  \
        broad<group>(p);                                                               \
    }
#else
#define BROAD(group)                                                                   \
    KERNEL(matmul_w4_g##group##_hopper_rows65)(const __grid_constant__ mt_cuda_many p) \
    {                                                                                  \
    }
#endif

BROAD(64)
BROAD(128)
