/* Matrix products of any size (R1 to R6 of docs/numerics.md). A warp computes 16 columns of 8 rows, all of k in order:
   one sequence of roundings, however many rows there are (R1). Integer dot products are exact, so that R3 and R4 give
   the CPU's bits. */
#include "device/cuda/products/product.cuh"

/* Codes of a lane for one step of 32: the four registers of the left operand. */
template <int BITS> static __device__ inline void unpack(unsigned a[4], const uint8_t *at, uint32_t ks)
{
    if (BITS == 4) {
        const unsigned low = ((const unsigned *)at)[ks], high = ((const unsigned *)(at + 512))[ks];
        a[0] = low & 0x0f0f0f0fu;
        a[1] = high & 0x0f0f0f0fu;
        a[2] = low >> 4 & 0x0f0f0f0fu;
        a[3] = high >> 4 & 0x0f0f0f0fu;
    } else {
        a[0] = ((const unsigned *)at)[2 * ks];
        a[1] = ((const unsigned *)(at + 1024))[2 * ks];
        a[2] = ((const unsigned *)at)[2 * ks + 1];
        a[3] = ((const unsigned *)(at + 1024))[2 * ks + 1];
    }
}

/* The sums of a link at its end, with the scales of the weight's group. */
static __device__ inline void fold_link(tile *t, const int sum[4], const mt_cuda_weight &w, uint32_t tile_at,
                                        uint32_t g, const float xs[2])
{
    for (int r = 0; r < 4; r++) {
        const float2 ws = scale_at(w, tile_at * 16 + t->column + (r >> 1) * 8, g);
        const float mul = xs[r & 1];
        t->a[r] = fmaf(ws.x, fmaf(mul, __int_as_float(sum[r]), turn_end_add(mul)), t->a[r]);
    }
}

static __device__ inline void fold_bias(tile *t, const mt_cuda_weight &w, uint32_t tile_at, uint32_t g,
                                        const float sx[2])
{
    for (int r = 0; w.biased && r < 4; r++)
        t->b[r] = fmaf(scale_at(w, tile_at * 16 + t->column + (r >> 1) * 8, g).y, sx[r & 1], t->b[r]);
}

static __device__ inline void start(int sum[4])
{
    for (int r = 0; r < 4; r++)
        sum[r] = MT_DOT_BITS;
}

template <int BITS> static __device__ void product_codes(const mt_cuda_product &p)
{
    const mt_cuda_weight *of = weight_of(p);
    if (!of)
        return;
    const mt_cuda_weight w = *of;
    const uint32_t tile_at = blockIdx.x * WARPS + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (tile_at * 16 >= w.n)
        return;
    tile t = {{0}, {0}, lane / 4, lane % 4 * 2};
    bool there, mine;
    const uint32_t from = row_at(p, lane / 4, &there), each = 128 / w.group; /* groups of a step */
    const uint32_t row[2] = {row_at(p, t.row, &mine), row_at(p, t.row + 1, &mine)};
    const uint8_t *at = w.w + (uint64_t)tile_at * w.steps * 2 * (BITS * 128) + lane * (BITS * 4);
    const bool is_signed = w.format != MT_FORMAT_AFFINE;
    int sum[4];
    start(sum);
    for (uint32_t k = 0; k < w.k; k += 32) {
        const uint32_t step = k / 128, block = k % 128 / 32, g = k / w.group;
        const uint64_t place[2] = {(uint64_t)step * p.from.rows + row[0], (uint64_t)step * p.from.rows + row[1]};
        const float mul[2] = {p.from.turns[place[0] * 4 + block], p.from.turns[place[1] * 4 + block]};
        unsigned a[4], b[2] = {0, 0};
        unpack<BITS>(a, at + (uint64_t)step * 2 * (BITS * 128), block);
        if (there) {
            b[0] = ((const unsigned *)(p.from.q + piece_at(p.from, step, from, block * 2)))[lane % 4];
            b[1] = ((const unsigned *)(p.from.q + piece_at(p.from, step, from, block * 2 + 1)))[lane % 4];
        }
        const float *const sums[2] = {p.from.sums + place[0] * each + g % each,
                                      p.from.sums + place[1] * each + g % each};
        if (w.group == 16) {
            const unsigned first[4] = {a[0], a[1], 0, 0}, second[4] = {0, 0, a[2], a[3]};
            int other[4];
            start(other);
            multiply_codes(sum, first, b, is_signed);
            multiply_codes(other, second, b, is_signed);
            for (uint32_t half = 0; half < 2 && k + half * 16 < w.k; half++) {
                const float sx[2] = {sums[0][half], sums[1][half]};
                fold_link(&t, half ? other : sum, w, tile_at, g + half, mul);
                fold_bias(&t, w, tile_at, g + half, sx);
            }
            start(sum);
            continue;
        }
        multiply_codes(sum, a, b, is_signed);
        if (w.group % 64 == 0 && block % 2 == 0) {
            for (int r = 0; r < 4; r++)
                sum[r] = __float_as_int(fmaf(mul[r & 1], __int_as_float(sum[r]), turn_on_add(mul[r & 1])));
            continue;
        }
        fold_link(&t, sum, w, tile_at, g, mul);
        start(sum);
        if ((k + 32) % w.group == 0) {
            const float sx[2] = {*sums[0], *sums[1]};
            fold_bias(&t, w, tile_at, g, sx);
        }
    }
    float y[4];
    for (int r = 0; r < 4; r++)
        y[r] = w.biased ? t.a[r] + t.b[r] : t.a[r];
    put(p, w, &t, tile_at, y);
}

KERNEL(matmul_w4_any)(mt_cuda_product p)
{
    product_codes<4>(p);
}

KERNEL(matmul_w8_any)(mt_cuda_product p)
{
    product_codes<8>(p);
}

/* ---- fp32: R6, half a warp a column ---- */

KERNEL(matmul_f32_any)(mt_cuda_product p)
{
    const mt_cuda_weight *of = weight_of(p);
    if (!of)
        return;
    const mt_cuda_weight w = *of;
    const uint32_t l = threadIdx.x % 16, n = blockIdx.x * (blockDim.x / 16) + threadIdx.x / 16;
    const uint32_t column = n < w.n ? n : w.n - 1;
    float lane[ROWS] = {0};
    const float *x[ROWS];
    bool there[ROWS];
    for (uint32_t r = 0; r < ROWS; r++) {
        const uint32_t i = row_at(p, r, &there[r]);
        x[r] = row_of(p.x, p.row ? p.row[i] : i);
    }
    for (uint32_t k = l; k - l < w.k; k += 16) {
        const float v = k < w.k ? weight_at(w, column, k) : 0;
        for (uint32_t r = 0; r < ROWS; r++)
            lane[r] = k < w.k ? fmaf(v, x[r][k], lane[r]) : lane[r] + 0.0f;
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        const float y = fold16(lane[r]);
        if (l == 0 && n < w.n && there[r])
            row_of(p.y, row_at(p, r, &there[r]))[n] = w.bias ? y + w.bias[n] : y;
    }
}
