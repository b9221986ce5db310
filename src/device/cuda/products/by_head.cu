/* Products by head, of latent attention: each head of a row with rows of a weight that are its own (R3 and R4 with
   codes, R6 with all else), or with their transpose (fp32, rows of the weight ascending). A block has a head, some rows
   of x, and some columns of its result; where many rows share a weight's elements, these are widened once for all of
   them, in shared memory. */
#include "device/cuda/products/by_head.h"
#include "device/cuda/products/product.cuh"
#include "device/cuda/rows/pack.cuh"

enum { H_THREADS = 256 };

/* ---- elements of weights ---- */

/* a * b + c, rounded once to fp16. */
static __device__ inline uint16_t fma_f16(uint16_t a, uint16_t b, uint16_t c)
{
    uint16_t d;
    asm("fma.rn.f16 %0,%1,%2,%3;" : "=h"(d) : "h"(a), "h"(b), "h"(c));
    return d;
}

static __device__ inline bool is_native(const mt_cuda_weight &w)
{
    return w.kind == MT_CUDA_NATIVE4 || w.kind == MT_CUDA_NATIVE8;
}

/* 32 rows from n0 on, as many as there are of them in `count`, of 64 columns from k0 on, as fp32; zeros beyond k. */
enum { W_ROWS = 32, W_K = MT_CUDA_NATIVE_STEP };

/* Of NATIVE4 and NATIVE8 as they are multiplied there, without the weight's unit: a code is read as the subnormal
   number code * 2^-24. A thread takes a word of codes at a time: two neighbours of k and those 8 behind them, of one
   row or, of 4 bits, of two that are 8 apart. */
template <int STRIDE, int BITS>
static __device__ inline void fill_native(float *to, const mt_cuda_weight &w, uint32_t n0, uint32_t count, uint32_t k0)
{
    constexpr uint32_t WORDS = BITS * 32; /* of 16 rows */
    const uint32_t first = n0 / 16, tiles = (n0 + count + 15) / 16 - first;
    for (uint32_t i = threadIdx.x; i < tiles * WORDS; i += H_THREADS) {
        const uint32_t tile = first + i / WORDS, at = i % WORDS,
                       product = BITS == 4 ? at % 4 : at / 128 * 2 + at % 4 / 2;
        const uint32_t thread = tile % 4 * 32 + at % 128 / 4,
                       row = tile * 16 + thread % 32 / 4 + (BITS == 8 && at % 2) * 8;
        const uint8_t *step = native_step(w, tile * 16, k0, MT_CUDA_NATIVE_BYTES(BITS, w.groups));
        const uint32_t codes = *(const uint32_t *)(step + at / 128 * 2048 + thread * 16 + at % 4 * 4);
        const uint32_t *pairs =
            (const uint32_t *)(step + MT_CUDA_NATIVE_CODES(BITS)) + product * w.groups / 4 * MT_CUDA_NATIVE_TILE;
        const uint32_t k = product * 16 + thread % 4 * 2;
#pragma unroll
        for (uint32_t c = 0; c < (BITS == 4 ? 2 : 1); c++) {
            const uint32_t n = row + c * 8, pair = pairs[n % MT_CUDA_NATIVE_TILE];
            if (n < n0 || n >= n0 + count)
                continue;
#pragma unroll
            for (uint32_t e = 0; e < 4; e++) { /* k, k + 1, then those 8 behind */
                const uint32_t odd = e % 2, high = e / 2;
                const uint32_t code =
                    BITS == 4 ? codes >> (odd * 16 + c * 8 + high * 4) & 15 : codes >> (odd * 16 + high * 8) & 255;
                to[(n - n0) * STRIDE + k + odd + high * 8] =
                    mt_f32_from_f16(fma_f16((uint16_t)code, (uint16_t)pair, (uint16_t)(pair >> 16)));
            }
        }
    }
}

template <int STRIDE>
static __device__ inline void fill_weights(float *to, const mt_cuda_weight &w, uint32_t n0, uint32_t count, uint32_t k0)
{
    if (w.kind == MT_CUDA_NATIVE4) {
        fill_native<STRIDE, 4>(to, w, n0, count, k0);
        return;
    }
    if (w.kind == MT_CUDA_NATIVE8) {
        fill_native<STRIDE, 8>(to, w, n0, count, k0);
        return;
    }
    for (uint32_t i = threadIdx.x; i < count * W_K; i += H_THREADS)
        to[i / W_K * STRIDE + i % W_K] = k0 + i % W_K < w.k ? weight_at(w, n0 + i / W_K, k0 + i % W_K) : 0.0f;
}

/* ---- transposed: y[64 columns of k] = sum over a head's rows ---- */

/* grid: (64 columns of k, heads, ROWS of x). A thread has four columns and ROWS / 16 rows. */
template <int ROWS_H> static __device__ inline void across_heads(const mt_cuda_by_head &p)
{
    constexpr uint32_t N = W_K, DEPTH = W_ROWS, EACH = ROWS_H < 16 ? 1 : ROWS_H / 16;
    __shared__ __align__(16) float w[DEPTH][N];
    __shared__ float x[DEPTH][ROWS_H + 1];
    const uint32_t k0 = blockIdx.x * N, head = blockIdx.y, row0 = blockIdx.z * ROWS_H;
    const uint32_t first = p.first + head * p.step, column = threadIdx.x % 16 * 4, row = threadIdx.x / 16 * EACH;
    float acc[EACH][4] = {{0}};
    follow_last();
    for (uint32_t r0 = 0; r0 < p.rows; r0 += DEPTH) {
        const uint32_t depth = min(DEPTH, p.rows - r0);
        __syncthreads();
        fill_weights<N>(w[0], p.w, first + r0, depth, k0);
        for (uint32_t i = threadIdx.x; i < DEPTH * ROWS_H; i += H_THREADS)
            if (i % DEPTH < depth)
                x[i % DEPTH][i / DEPTH] =
                    row0 + i / DEPTH < p.m ? row_of(p.x, row0 + i / DEPTH)[head * p.x_dim + r0 + i % DEPTH] : 0.0f;
        __syncthreads();
        if (row >= ROWS_H)
            continue;
#pragma unroll 8
        for (uint32_t r = 0; r < depth; r++) {
            const float4 v = *(const float4 *)&w[r][column];
#pragma unroll
            for (uint32_t i = 0; i < EACH; i++) {
                const float a = x[r][row + i];
                acc[i][0] = fmaf(a, v.x, acc[i][0]);
                acc[i][1] = fmaf(a, v.y, acc[i][1]);
                acc[i][2] = fmaf(a, v.z, acc[i][2]);
                acc[i][3] = fmaf(a, v.w, acc[i][3]);
            }
        }
    }
    for (uint32_t i = 0; i < EACH; i++)
        for (uint32_t c = 0; c < 4; c++)
            if (row < ROWS_H && row0 + row + i < p.m && k0 + column + c < p.w.k)
                row_of(p.y, row0 + row + i)[head * p.y_dim + k0 + column + c] =
                    is_native(p.w) ? acc[i][c] * p.w.unit : acc[i][c];
}

extern "C" __global__ void __launch_bounds__(H_THREADS)
    mtk_heads_across_rows8(const __grid_constant__ mt_cuda_by_head p)
{
    across_heads<8>(p);
}

extern "C" __global__ void __launch_bounds__(H_THREADS)
    mtk_heads_across_rows64(const __grid_constant__ mt_cuda_by_head p)
{
    across_heads<64>(p);
}

/* ---- fp32: R6, half a warp has a sum, its sixteen threads being the lanes ---- */

/* grid: (32 rows of a head, heads, ROWS of x). The sixteen halves of warps share the block's sums: R of rows, which
   are 8 apart, or one, and C of columns. */
template <int ROWS_H> static __device__ inline void f32_heads(const mt_cuda_by_head &p)
{
    constexpr uint32_t N = W_ROWS, DEPTH = W_K, APART = DEPTH + 16;
    constexpr uint32_t GROUPS = ROWS_H == 64 ? 8 : 1, R = ROWS_H / GROUPS, C = N * GROUPS / 16; /* groups of rows */
    __shared__ float w[N][APART], x[ROWS_H][APART];
    const uint32_t n0 = blockIdx.x * N, head = blockIdx.y, row0 = blockIdx.z * ROWS_H, l = threadIdx.x % 16;
    const uint32_t half = threadIdx.x / 16, row = half % GROUPS, column = half / GROUPS * C;
    const uint32_t first = p.first + head * p.step + n0, columns = min(N, p.rows - n0);
    float acc[R][C] = {{0}};
    follow_last();
    for (uint32_t k0 = 0; k0 < p.w.k; k0 += DEPTH) {
        const uint32_t depth = min(DEPTH, p.w.k - k0);
        __syncthreads();
        fill_weights<APART>(w[0], p.w, first, columns, k0);
        for (uint32_t i = threadIdx.x; i < ROWS_H * DEPTH; i += H_THREADS) {
            const uint32_t r = row0 + i / DEPTH;
            const bool there = r < p.m && i % DEPTH < depth;
            const float v = there ? row_of(p.x, r)[head * p.x_dim + k0 + i % DEPTH] : 0.0f;
            x[i / DEPTH][i % DEPTH] = p.rounded ? mt_bf16_rounded(v) : v;
        }
        __syncthreads();
        for (uint32_t k = l; k - l < depth; k += 16) {
            float a[R], b[C];
#pragma unroll
            for (uint32_t i = 0; i < R; i++)
                a[i] = x[row + i * GROUPS][k];
#pragma unroll
            for (uint32_t j = 0; j < C; j++)
                b[j] = w[column + j][k];
#pragma unroll
            for (uint32_t i = 0; i < R; i++)
#pragma unroll
                for (uint32_t j = 0; j < C; j++)
                    acc[i][j] = fmaf(b[j], a[i], acc[i][j]);
        }
    }
#pragma unroll
    for (uint32_t i = 0; i < R; i++)
#pragma unroll
        for (uint32_t j = 0; j < C; j++) {
            const float y = fold16(acc[i][j]);
            const uint32_t r = row0 + row + i * GROUPS;
            if (l == 0 && r < p.m && column + j < columns)
                row_of(p.y, r)[head * p.y_dim + n0 + column + j] = is_native(p.w) ? y * p.w.unit : y;
        }
}

extern "C" __global__ void __launch_bounds__(H_THREADS) mtk_heads_f32_rows8(const __grid_constant__ mt_cuda_by_head p)
{
    f32_heads<8>(p);
}

extern "C" __global__ void __launch_bounds__(H_THREADS) mtk_heads_f32_rows64(const __grid_constant__ mt_cuda_by_head p)
{
    f32_heads<64>(p);
}

/* ---- codes: R3, R4 ---- */

/* Sums of a tile of 16 columns and 8 rows, as products/any.cu has them. */
typedef struct sums {
    int sum[4];
    tile t;
} sums;

static __device__ inline void start(int sum[4])
{
    for (int r = 0; r < 4; r++)
        sum[r] = MT_DOT_BITS;
}

/* Codes of a lane for one block of 32: the four registers of the left operand. */
template <int BITS> static __device__ inline void unpack(unsigned a[4], const uint8_t *at, uint32_t block)
{
    if (BITS == 4) {
        const unsigned low = ((const unsigned *)at)[block], high = ((const unsigned *)(at + 512))[block];
        a[0] = low & 0x0f0f0f0fu;
        a[1] = high & 0x0f0f0f0fu;
        a[2] = low >> 4 & 0x0f0f0f0fu;
        a[3] = high >> 4 & 0x0f0f0f0fu;
    } else {
        a[0] = ((const unsigned *)at)[2 * block];
        a[1] = ((const unsigned *)(at + 1024))[2 * block];
        a[2] = ((const unsigned *)at)[2 * block + 1];
        a[3] = ((const unsigned *)(at + 1024))[2 * block + 1];
    }
}

/* The end of a link with the scales of the weight's group; and its bias, where a group ends. */
static __device__ inline void fold_link(tile &t, const int sum[4], const float2 ws[2], const float xs[2])
{
    for (int r = 0; r < 4; r++) {
        const float mul = xs[r & 1];
        t.a[r] = fmaf(ws[r >> 1].x, fmaf(mul, __int_as_float(sum[r]), turn_end_add(mul)), t.a[r]);
    }
}

static __device__ inline void fold_bias(tile &t, const float2 ws[2], const float sx[2])
{
    for (int r = 0; r < 4; r++)
        t.b[r] = fmaf(ws[r >> 1].y, sx[r & 1], t.b[r]);
}

/* A block of 32 of k: number `block` of a step that is packed in `from`. */
template <int J>
static __device__ inline void multiply_block(sums (&s)[J], const unsigned a[4], const mt_cuda_packed &from,
                                             const mt_cuda_weight &w, uint32_t column, uint32_t k, bool is_signed)
{
    const uint32_t lane = threadIdx.x % 32, block = k % 128 / 32, g = k / w.group, each = 128 / w.group;
    const bool end = (k + 32) % w.group == 0 || w.group == 16, turns = w.group % 64 == 0 && block % 2 == 0;
    float2 ws[2] = {{0, 0}, {0, 0}}, other_ws[2] = {{0, 0}, {0, 0}};
    for (int i = 0; i < 2 && !turns; i++) {
        ws[i] = scale_at(w, column + i * 8, g);
        if (w.group == 16 && k + 16 < w.k)
            other_ws[i] = scale_at(w, column + i * 8, g + 1);
    }
#pragma unroll
    for (int j = 0; j < J; j++) {
        const uint32_t own = j * 8 + lane / 4, row = j * 8 + s[j].t.row;
        const unsigned b[2] = {((const unsigned *)(from.q + piece_at(from, 0, own, block * 2)))[lane % 4],
                               ((const unsigned *)(from.q + piece_at(from, 0, own, block * 2 + 1)))[lane % 4]};
        const float mul[2] = {from.turns[row * 4 + block], from.turns[(row + 1) * 4 + block]};
        const float *const sx[2] = {from.sums + row * each + g % each, from.sums + (row + 1) * each + g % each};
        if (w.group == 16) {
            const unsigned first[4] = {a[0], a[1], 0, 0}, second[4] = {0, 0, a[2], a[3]};
            int other[4];
            start(other);
            multiply_codes(s[j].sum, first, b, is_signed);
            multiply_codes(other, second, b, is_signed);
            const float sums0[2] = {sx[0][0], sx[1][0]}, sums1[2] = {sx[0][1], sx[1][1]};
            fold_link(s[j].t, s[j].sum, ws, mul);
            if (w.biased)
                fold_bias(s[j].t, ws, sums0);
            if (k + 16 < w.k) {
                fold_link(s[j].t, other, other_ws, mul);
                if (w.biased)
                    fold_bias(s[j].t, other_ws, sums1);
            }
            start(s[j].sum);
            continue;
        }
        multiply_codes(s[j].sum, a, b, is_signed);
        if (turns) {
            for (int r = 0; r < 4; r++)
                s[j].sum[r] = __float_as_int(fmaf(mul[r & 1], __int_as_float(s[j].sum[r]), turn_on_add(mul[r & 1])));
            continue;
        }
        fold_link(s[j].t, s[j].sum, ws, mul);
        start(s[j].sum);
        if (end && w.biased) {
            const float sums[2] = {*sx[0], *sx[1]};
            fold_bias(s[j].t, ws, sums);
        }
    }
}

/* grid: (8 tiles of 16 columns that a head has some of, heads, 8 J rows of x). Rows are packed step by step in shared
   memory; a warp multiplies them with its tile. */
template <int BITS, int J> static __device__ inline void codes_heads(const mt_cuda_by_head &p)
{
    constexpr uint32_t ROWS_H = 8 * J;
    __shared__ __align__(16) uint8_t q[ROWS_H * 128];
    __shared__ float turns[ROWS_H * 4], group_sums[ROWS_H * 8];
    const mt_cuda_weight &w = p.w;
    const uint32_t lane = threadIdx.x % 32, head = blockIdx.y, row0 = blockIdx.z * ROWS_H;
    const uint32_t first = p.first + head * p.step, end = first + p.rows;
    const uint32_t tile_at = first / 16 + blockIdx.x * (H_THREADS / 32) + threadIdx.x / 32;
    const uint8_t *at = w.w + (uint64_t)tile_at * w.steps * 2 * (BITS * 128) + lane * (BITS * 4);
    const bool is_signed = w.format != MT_FORMAT_AFFINE, works = tile_at * 16 < end;
    mt_cuda_pack pack;
    pack.to.q = q;
    pack.to.turns = turns;
    pack.to.sums = group_sums;
    pack.to.rows = ROWS_H;
    pack.group = w.group;
    pack.wide = p.wide;
    sums s[J];
#pragma unroll
    for (int j = 0; j < J; j++) {
        s[j].t = {{0}, {0}, lane / 4, lane % 4 * 2};
        start(s[j].sum);
    }
    follow_last();
    for (uint32_t step = 0; step < w.steps; step++) {
        __syncthreads();
        for (uint32_t i = threadIdx.x / 4; i < max(ROWS_H * 4, H_THREADS / 4); i += H_THREADS / 4) {
            const bool there = i < ROWS_H * 4 && row0 + i / 4 < p.m; /* else zeros: packing needs all lanes */
            float x[QUARTER] = {0};
            if (there)
                load_quarter(x, row_of(p.x, row0 + i / 4) + head * p.x_dim, step * 4 + i % 4, w.k);
            pack_quarter(pack, i / 4, i % 4, x, i < ROWS_H * 4);
        }
        __syncthreads();
        for (uint32_t k = step * 128; works && k < min(w.k, (step + 1) * 128); k += 32) {
            unsigned a[4];
            unpack<BITS>(a, at + (uint64_t)step * 2 * (BITS * 128), k % 128 / 32);
            multiply_block<J>(s, a, pack.to, w, tile_at * 16 + lane / 4, k, is_signed);
        }
    }
    for (int j = 0; j < J && works; j++)
        for (int r = 0; r < 4; r++) {
            const uint32_t n = tile_at * 16 + lane / 4 + (r >> 1) * 8, row = row0 + j * 8 + lane % 4 * 2 + (r & 1);
            if (n >= first && n < end && row < p.m)
                row_of(p.y, row)[head * p.y_dim + n - first] = w.biased ? s[j].t.a[r] + s[j].t.b[r] : s[j].t.a[r];
        }
}

#define HEADS_CODES(bits, rows)                                                   \
    extern "C" __global__ void __launch_bounds__(H_THREADS)                       \
        mtk_heads_w##bits##_rows##rows(const __grid_constant__ mt_cuda_by_head p) \
    {                                                                             \
        codes_heads<bits, rows / 8>(p);                                           \
    }
HEADS_CODES(4, 8)
HEADS_CODES(4, 32)
HEADS_CODES(8, 8)
HEADS_CODES(8, 32)
