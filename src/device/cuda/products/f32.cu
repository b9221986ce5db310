/* Products in fp32 (R6), for every kind of weight whose products are exact: routers, small projections, all of the
   reference precision. A thread has one of the 16 virtual lanes, for some columns and some rows; half a warp has all
   lanes. Codes and rows come to shared memory some chunks of k ahead, those of weights before the kernel that makes the
   rows has ended; a chunk of weights is made fp32 there once, for all warps of the block:

       copies --> codes --decode--> one of two chunks of floats --> sums in registers
       copies --> rows  ------------------------------------------> sums in registers

   A tile of few rows is narrow, so that few columns reach all processors; one of many rows has as many sums a thread
   as it takes to multiply more often than to load. */
#include "device/cuda/products/product.cuh"

/* CT: columns of a thread, of which a warp has twice as many; RT: rows of a warp; WC, WR: warps side by side, one above
   the other; KC: of k in a chunk, S: chunks in shared memory. */
template <int CT_, int RT_, int WC_, int WR_, int KC_, int S_> struct f32_shape {
    enum {
        CT = CT_,
        RT = RT_,
        KC = KC_,
        S = S_,
        WC = WC_,
        WIDE = 32 * WC_ * WR_, /* threads */
        COLUMNS = 2 * CT_ * WC_,
        ROWS_OF = RT_ * WR_,
        EACH = KC_ / 16,   /* threads that fetch and decode a column: 16 elements each */
        STRIDE = KC_ + 16, /* of a column of floats: neighbours are in different banks */
        SCALES = COLUMNS * EACH * 8,
        FLOATS = COLUMNS * STRIDE * 4
    };
    static_assert(COLUMNS * EACH == WIDE, "a thread has a part of a column");
};

/* Codes of a column from k on, and their scales; t: which of the column's threads. What is not there is not copied. */
template <class T>
static __device__ inline void f32_fetch_column(const mt_cuda_weight &w, uint32_t n, uint32_t k, uint32_t t,
                                               unsigned codes, unsigned scales, uint32_t bits)
{
    if (w.kind == MT_CUDA_PLAIN) {
        const uint8_t *row = w.w + (uint64_t)n * w.row_bytes;
        const uint32_t size = bits / 8;
        for (uint32_t i = 0; i < size; i++) {
            const uint32_t piece = t + i * T::EACH, at = k * size + piece * 16;
            if (at < w.row_bytes)
                copy_16(codes + piece * 16, row + at);
        }
        return;
    }
    const uint32_t each = bits,
                   step = k / 128 + t / each; /* of a step, a column has as many pieces as codes have bits */
    const uint64_t block = ((uint64_t)(n / 16) * w.steps + step) * 2 + n % 16 / 8;
    if (t < T::KC / 128 * each && step < w.steps)
        copy_16(codes + t * 16, w.w + block * (bits * 128) + n % 8 * (bits * 16) + t % each * 16);
    const uint32_t g = k / w.group + t, pair = w.pairs == MT_SCALE_F32 ? 8 : 4;
    if (t * w.group < T::KC && g < w.groups)
        copy_small(scales + t * 8, w.scales + (((uint64_t)(n / 16) * w.groups + g) * 16 + n % 16) * pair, pair);
}

/* Rows from k on, zeros up to the next multiple of 16 beyond their end. */
template <class T>
static __device__ inline void f32_fetch_rows(const mt_cuda_f32 &p, uint32_t row, uint32_t k, unsigned to)
{
    const uint32_t end = p.w[0].k, most = (end + 15) / 16 * 16;
    const bool aligned = ((uintptr_t)p.x.data | p.x.stride * 4) % 16 == 0;
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < T::ROWS_OF * (T::KC / 4); i += T::WIDE) {
        const uint32_t r = row + i / (T::KC / 4), at = k + i % (T::KC / 4) * 4;
        if (r >= p.m || at >= most)
            continue;
        const float *x = row_of(p.x, r);
        if (aligned) {
            const uint32_t there = at < end ? end - at : 0;
            copy_some_16(to + i * 16, x + (there ? at : 0), (there < 4 ? there : 4) * 4);
            continue;
        }
        for (uint32_t e = 0; e < 4; e++)
            copy_some_4(to + i * 16 + e * 4, x + (at + e < end ? at + e : 0), at + e < end ? 4 : 0);
    }
}

/* Scale and bias of a group of the chunk. */
static __device__ inline float2 f32_pair(const uint8_t *scales, uint8_t type, uint32_t g)
{
    if (type == MT_SCALE_F32)
        return ((const float2 *)scales)[g];
    return pair_of(scales, type, 2 * g);
}

/* Four bytes as floats. */
static __device__ inline void f32_bytes(float v[4], unsigned word, bool is_signed)
{
    /* the number 2^23 + b has b as its lowest byte; a signed one is 128 more than it should be */
    const float from = is_signed ? 0x1p23f + 128.0f : 0x1p23f;
    word ^= is_signed ? 0x80808080u : 0u;
#pragma unroll
    for (int e = 0; e < 4; e++)
        v[e] = __int_as_float((int)__byte_perm(word, 0x4b000000u, 0x7540u | e)) - from;
}

/* Four neighbours of a plain row, from `at` of the chunk on, which is k of the row. */
static __device__ inline void f32_plain(float v[4], const mt_cuda_weight &w, uint32_t n, uint32_t k,
                                        const uint8_t *codes, uint32_t at)
{
    if (w.format == MT_FORMAT_F32) {
        const float4 four = *(const float4 *)(codes + at * 4);
        v[0] = four.x;
        v[1] = four.y;
        v[2] = four.z;
        v[3] = four.w;
    } else if (w.format == MT_FORMAT_F16 || w.format == MT_FORMAT_BF16) {
        const uint2 two = *(const uint2 *)(codes + at * 2);
        const uint16_t half[4] = {(uint16_t)two.x, (uint16_t)(two.x >> 16), (uint16_t)two.y, (uint16_t)(two.y >> 16)};
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = w.format == MT_FORMAT_F16 ? mt_f32_from_f16(half[e]) : mt_f32_from_bf16(half[e]);
    } else {
        const unsigned word = *(const unsigned *)(codes + at);
        const bool blocks = w.format == MT_FORMAT_FP8; /* of 128 columns */
        const float *scales = (const float *)w.scales + (uint64_t)(blocks ? n / 128 : n) * w.scale_row;
        const float scale = k < w.k ? scales[k / (blocks ? 128 : 32)] : 0;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const uint8_t b = (uint8_t)(word >> 8 * e);
            v[e] = scale * (blocks ? mt_f32_from_fp8(b) : mt_f32_from_e4m3(b));
        }
    }
}

/* A thread's 16 elements of a column as floats, zeros beyond its end: of a step of 128 the lanes q * 4 and three more,
   four times, as codes lie (code_at). */
template <class T>
static __device__ inline void f32_decode(const mt_cuda_weight &w, uint32_t n, uint32_t k, uint32_t t,
                                         const uint8_t *codes, const uint8_t *scales, float *to)
{
    const uint32_t at = t / 8 * 128 + t % 2 * 64 + t / 2 % 4 * 4, shift = 31 - __clz(w.group | 1);
    unsigned word[4] = {0, 0, 0, 0};
    if (w.kind == MT_CUDA_CODES8) {
        const uint4 all = *(const uint4 *)(codes + t * 16);
        word[0] = all.x;
        word[1] = all.y;
        word[2] = all.z;
        word[3] = all.w;
    } else if (w.kind == MT_CUDA_CODES4) {
        const uint2 all = *(const uint2 *)(codes + t * 8);
        word[0] = all.x & 0x0f0f0f0fu;
        word[1] = all.x >> 4 & 0x0f0f0f0fu;
        word[2] = all.y & 0x0f0f0f0fu;
        word[3] = all.y >> 4 & 0x0f0f0f0fu;
    }
    const bool is_signed = w.kind == MT_CUDA_CODES8 && w.format != MT_FORMAT_AFFINE, whole = k + T::KC <= w.k;
#pragma unroll
    for (uint32_t j = 0; j < 4; j++) {
        const uint32_t place = at + j * 16;
        float v[4];
        if (w.kind == MT_CUDA_PLAIN) {
            f32_plain(v, w, n, k + place, codes, place);
        } else {
            const float2 s = f32_pair(scales, w.pairs, place >> shift);
            f32_bytes(v, word[j], is_signed);
#pragma unroll
            for (int e = 0; e < 4; e++)
                v[e] = w.biased ? fmaf(s.x, v[e], s.y) : s.x * v[e];
        }
        if (!whole)
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                v[e] = k + place + e < w.k ? v[e] : 0;
        *(float4 *)(to + place) = make_float4(v[0], v[1], v[2], v[3]);
    }
}

/* The next 16 of k, once for each sum. */
template <class T>
static __device__ inline void f32_step(float sum[T::RT][T::CT], const float *w, const float *x, uint32_t step)
{
    float a[T::CT], b[T::RT];
#pragma unroll
    for (int c = 0; c < T::CT; c++)
        a[c] = w[c * 2 * T::STRIDE + step * 16];
#pragma unroll
    for (int r = 0; r < T::RT; r++)
        b[r] = x[r * T::KC + step * 16];
#pragma unroll
    for (int r = 0; r < T::RT; r++)
#pragma unroll
        for (int c = 0; c < T::CT; c++)
            sum[r][c] = fmaf(a[c], b[r], sum[r][c]);
}

template <class T>
static __device__ inline void f32_multiply(float sum[T::RT][T::CT], const float *w, const float *x, uint32_t left)
{
    constexpr uint32_t SOME = T::RT * T::CT > 16 ? 2 : 8;
    if (left >= T::KC) {
#pragma unroll SOME
        for (uint32_t step = 0; step < T::KC / 16; step++)
            f32_step<T>(sum, w, x, step);
        return;
    }
    for (uint32_t step = 0; step * 16 < left; step++)
        f32_step<T>(sum, w, x, step);
}

template <class T> static __device__ inline void f32_product(const mt_cuda_f32 &p)
{
    extern __shared__ __align__(128) uint8_t memory[];
    const uint32_t thread = threadIdx.x, part = thread % T::EACH, own = thread / T::EACH; /* the column it fetches */
    const uint32_t warp = thread / 32, half = thread % 32 / 16, lane = thread % 16;
    uint32_t tile = blockIdx.x;
    const uint32_t which = weight_of_tile(p, &tile);
    const mt_cuda_weight &w = p.w[which];
    const uint32_t k = w.k, chunks = (k + T::KC - 1) / T::KC, row = blockIdx.y * T::ROWS_OF;
    const uint32_t column = tile * T::COLUMNS + own, n = column < w.n ? column : w.n - 1;
    const uint32_t raw = T::KC / 8 * p.bits, rows = T::ROWS_OF * T::KC * 4, size = rows + T::SCALES + T::COLUMNS * raw;
    float *floats = (float *)(memory + T::S * size);
    const uint32_t scales_at = rows + own * (T::EACH * 8), codes_at = rows + T::SCALES + own * raw;
    start_next();
#pragma unroll
    for (uint32_t c = 0; c < T::S - 1; c++)
        if (c < chunks) {
            const unsigned to = shared_address(memory + c * size);
            f32_fetch_column<T>(w, n, c * T::KC, part, to + codes_at, to + scales_at, p.bits);
        }
    wait_for_last();
#pragma unroll
    for (uint32_t c = 0; c < T::S - 1; c++) {
        if (c < chunks)
            f32_fetch_rows<T>(p, row, c * T::KC, shared_address(memory + c * size));
        copy_commit();
    }
    const uint32_t first_row = warp / T::WC * T::RT, first_column = warp % T::WC * (2 * T::CT) + half;
    const bool there = row + first_row < p.m;
    float sum[T::RT][T::CT] = {};
    uint32_t slot = 0, next = T::S - 1;
    for (uint32_t c = 0; c < chunks; c++) {
        const uint8_t *chunk = memory + slot * size;
        float *now = floats + c % 2 * (T::FLOATS / 4);
        copy_wait<T::S - 2>();
        __syncwarp(); /* what a column's threads have fetched */
        f32_decode<T>(w, n, c * T::KC, part, chunk + codes_at, chunk + scales_at, now + own * T::STRIDE);
        __syncthreads(); /* and all others; the chunk before is done with */
        if (c + T::S - 1 < chunks) {
            const unsigned to = shared_address(memory + next * size);
            f32_fetch_column<T>(w, n, (c + T::S - 1) * T::KC, part, to + codes_at, to + scales_at, p.bits);
            f32_fetch_rows<T>(p, row, (c + T::S - 1) * T::KC, to);
        }
        copy_commit();
        if (there)
            f32_multiply<T>(sum, now + first_column * T::STRIDE + lane, (const float *)chunk + first_row * T::KC + lane,
                            k - c * T::KC);
        slot = slot + 1 < T::S ? slot + 1 : 0;
        next = next + 1 < T::S ? next + 1 : 0;
    }
    if (!there)
        return;
#pragma unroll
    for (uint32_t r = 0; r < T::RT; r++)
#pragma unroll
        for (uint32_t c = 0; c < T::CT; c++) {
            const float y = fold16(sum[r][c]);
            const uint32_t to = tile * T::COLUMNS + first_column + 2 * c;
            if (lane == 0 && to < w.n && row + first_row + r < p.m)
                row_of(p.y[which], row + first_row + r)[to] = w.bias ? y + w.bias[to] : y;
        }
}

#define PRODUCT(name, rows)                                                                                    \
    KERNEL(name)(const __grid_constant__ mt_cuda_f32 p)                                                        \
    {                                                                                                          \
        f32_product<f32_shape<MT_CUDA_F32_COLUMNS / 2, rows, 1, 4, MT_CUDA_F32_DEPTH, MT_CUDA_F32_STAGES>>(p); \
    }
#define PRODUCT_MANY(name, rows)                                                                           \
    extern "C" __global__ void __launch_bounds__(256, 2) mtk_##name(const __grid_constant__ mt_cuda_f32 p) \
    {                                                                                                      \
        f32_product<f32_shape<8, rows, 2, 4, MT_CUDA_F32_MANY_DEPTH, MT_CUDA_F32_MANY_STAGES>>(p);         \
    }

PRODUCT(matmul_f32_rows4, 1)
PRODUCT(matmul_f32_rows8, 2)
PRODUCT(matmul_f32_rows16, 4)
PRODUCT_MANY(matmul_f32_wide_rows16, 4)
PRODUCT_MANY(matmul_f32_wide_rows32, 8)
