/* Operations that treat each row by itself: one block for each row, or several that share its columns (gridDim.y). */
#include "device/cuda/rows/activation.cuh"
#include "device/cuda/rows/pack.cuh"

/* The columns that a thread has: from the first on, so many apart; or fours of them. */
static __device__ inline uint32_t first_column(void)
{
    return blockIdx.y * blockDim.x + threadIdx.x;
}

static __device__ inline uint32_t column_stride(void)
{
    return gridDim.y * blockDim.x;
}

KERNEL(copy_rows)(mt_cuda_rows p) /* y[i] = x[index[i]] */
{
    follow_last();
    const float *x = row_of(p.x, p.index[blockIdx.x]);
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = first_column() * 4; c < p.x.cols; c += column_stride() * 4) {
        float v[4];
        load_four(v, x, c, p.x.cols);
        store_four(y, c, p.x.cols, v);
    }
}

KERNEL(scatter_rows)(mt_cuda_rows p) /* y[index[i]][first ..] = x[i] */
{
    follow_last();
    if (p.index[blockIdx.x] == MT_CUDA_NONE)
        return;
    const float *x = row_of(p.x, blockIdx.x);
    float *y = row_of(p.y, p.index[blockIdx.x]) + p.first;
    for (uint32_t c = threadIdx.x; c < p.x.cols; c += blockDim.x)
        y[c] = x[c];
}

KERNEL(sum_rows)(mt_cuda_rows p) /* a column a thread: rows may meet in one sum */
{
    follow_last();
    const uint32_t c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= p.x.cols)
        return;
    for (uint32_t i = 0; i < p.m; i++)
        if (p.index[i] != MT_CUDA_NONE)
            row_of(p.y, p.index[i])[c] += row_of(p.x, i)[c];
}

KERNEL(features)(mt_cuda_rows p) /* kind 1: added */
{
    follow_last();
    const uint32_t from = p.step.features[blockIdx.x];
    if (from == MT_CUDA_NONE)
        return;
    const float *x = row_of(p.x, from) + p.first;
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x)
        y[c] = p.kind ? y[c] + x[c] : x[c];
}

/* A block a row, which goes through shared memory, since a lane's sum is one chain of additions. All that a thread
   reads comes at once; what the row is multiplied with before the row is there. Packed as bf16 where pack says so. */
KERNEL(norm)(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float row[];
    constexpr uint32_t FOURS = 4, SPAN = THREADS * 4; /* fours at once; how far apart those of a thread are */
    const uint32_t n = p.rows.x.cols, padded = (n + MT_CUDA_STEP - 1) / MT_CUDA_STEP * MT_CUDA_STEP;
    const uint32_t own = threadIdx.x * 4;
    const float *x = row_of(p.rows.x, blockIdx.x);
    float *y = row_of(p.rows.y, blockIdx.x);
    float w[FOURS][4];
    start_next();
#pragma unroll
    for (uint32_t f = 0; f < FOURS; f++)
        load_four(w[f], p.rows.w.data, own + f * SPAN, n);
    wait_for_last();
    for (uint32_t first = own; first < padded; first += FOURS * SPAN) {
        float v[FOURS][4];
#pragma unroll
        for (uint32_t f = 0; f < FOURS; f++)
            load_four(v[f], x, first + f * SPAN, n);
#pragma unroll
        for (uint32_t f = 0; f < FOURS; f++)
            if (first + f * SPAN < padded)
                *(float4 *)(row + apart(first + f * SPAN)) = make_float4(v[f][0], v[f][1], v[f][2], v[f][3]);
    }
    const float r = rms_of_block(row, n, padded, p.rows.eps);
    for (uint32_t first = own; first < padded; first += FOURS * SPAN)
#pragma unroll
        for (uint32_t f = 0; f < FOURS; f++) {
            const uint32_t c = first + f * SPAN;
            if (c >= padded)
                break;
            if (first >= FOURS * SPAN)
                load_four(w[f], p.rows.w.data, c, n);
            const float4 from = *(const float4 *)(row + apart(c));
            const float some[4] = {from.x, from.y, from.z, from.w};
            float v[4];
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                v[e] = c + e < n ? (some[e] * r) * (p.rows.offset + w[f][e]) : 0;
            store_four(y, c, n, v);
            if (p.pack.to.q)
                *(uint2 *)(p.pack.to.q + piece_at(p.pack.to, c / 64, blockIdx.x, c % 64 / 8) + c % 8 * 2) =
                    make_uint2(two_halves(v[0], v[1]), two_halves(v[2], v[3]));
        }
}

KERNEL(binary)(mt_cuda_rows p)
{
    follow_last();
    float *y = row_of(p.y, blockIdx.x);
    const float *a = p.x.data ? row_of(p.x, blockIdx.x) : NULL, *b = p.x2.data ? row_of(p.x2, blockIdx.x) : NULL;
    const float share = p.kind == MT_CUDA_ADD_GATED ? mt_sigmoid1(b[0]) : 0;
    const uint32_t n = p.y.cols;
    for (uint32_t c = first_column() * 4; c < n; c += column_stride() * 4) {
        float v[4], with[4] = {0, 0, 0, 0};
        load_four(v, y, c, n);
        if (a)
            load_four(with, a, c, n);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            switch (p.kind) {
            case MT_CUDA_ADD: v[e] = v[e] + with[e]; break;
            case MT_CUDA_GATE: v[e] = mt_sigmoid1(with[e]) * v[e]; break;
            case MT_CUDA_ADD_GATED: v[e] = fmaf(share, with[e], v[e]); break;
            case MT_CUDA_SCALE: v[e] = p.scale * v[e]; break;
            }
        store_four(y, c, n, v);
    }
}

KERNEL(glu)(mt_cuda_rows p) /* x: gate, x2: up */
{
    follow_last();
    const float *gate = row_of(p.x, blockIdx.x), *up = row_of(p.x2, blockIdx.x);
    const uint32_t n = p.y.cols;
    for (uint32_t c = first_column() * 4; c < n; c += column_stride() * 4) {
        float g[4], u[4];
        load_four(g, gate, c, n);
        load_four(u, up, c, n);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            g[e] = glu_of(p.kind, p.limit, p.offset, g[e], u[e]);
        store_four(row_of(p.y, blockIdx.x), c, n, g);
    }
}

KERNEL(softcap)(mt_cuda_rows p)
{
    follow_last();
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = first_column(); c < p.y.cols; c += column_stride())
        y[c] = mt_softcap1(y[c], p.scale);
}

KERNEL(adjust)(mt_cuda_rows p) /* cut off at offset and at limit */
{
    follow_last();
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
        float x = y[c];
        x = p.bias.data ? x - p.bias.data[c] : x;
        x = p.w.data ? x * p.w.data[c] : x;
        y[c] = x > p.limit ? p.limit : x < p.offset ? p.offset : x;
    }
}

KERNEL(split_heads)(mt_cuda_rows p)
{
    follow_last();
    const float *x = row_of(p.x, blockIdx.x);
    for (uint32_t c = first_column(); c < p.y.cols; c += column_stride()) {
        const uint32_t at = c / p.head_dim * 2 * p.head_dim + c % p.head_dim;
        row_of(p.y, blockIdx.x)[c] = x[at];
        row_of(p.y2, blockIdx.x)[c] = x[at + p.head_dim];
    }
}

KERNEL(finite)(mt_cuda_rows p)
{
    follow_last();
    const uint32_t n = p.x.cols;
    int bad = 0;
#pragma unroll 4
    for (uint32_t c = threadIdx.x * 4; c < n; c += blockDim.x * 4) {
        float v[4];
        load_four(v, row_of(p.x, blockIdx.x), c, n);
#pragma unroll
        for (uint32_t e = 0; e < 4; e++)
            bad |= (mt_f32_bits(v[e]) & 0x7f800000u) == 0x7f800000u;
    }
    bad = __syncthreads_or(bad);
    if (threadIdx.x == 0)
        *row_of(p.y, blockIdx.x) = bad ? 0.0f : 1.0f;
}

KERNEL(argmax)(mt_cuda_rows p) /* the first column that is not below the largest; the last where none is */
{
    follow_last();
    __shared__ float room[THREADS / 32];
    __shared__ uint32_t first;
    const float *x = row_of(p.x, blockIdx.x);
    float most = -INFINITY;
    for (uint32_t c = threadIdx.x; c < p.x.cols; c += blockDim.x)
        most = mt_max1(most, x[c]);
    most = max_of_block(most, room);
    if (threadIdx.x == 0)
        first = p.x.cols - 1;
    __syncthreads();
    for (uint32_t c = threadIdx.x; c < p.x.cols; c += blockDim.x)
        if (x[c] >= most) {
            atomicMin(&first, c);
            break;
        }
    __syncthreads();
    if (threadIdx.x == 0)
        p.out[blockIdx.x] = first;
}

KERNEL(rope_table)(mt_cuda_rows p) /* x: inv_freq */
{
    follow_last();
    const uint32_t half = p.y.cols / 2, *at = p.step.positions + 3 * blockIdx.x;
    float *c = row_of(p.y, blockIdx.x), *s = c + half;
    for (uint32_t f = threadIdx.x; f < half; f += blockDim.x) {
        const float angle = (float)at[p.index ? p.index[f] : 0] * p.x.data[f];
        float sine, cosine;
        mt_sincos1(&sine, &cosine, angle);
        c[f] = p.scale != 1.0f ? p.scale * cosine : cosine;
        s[f] = p.scale != 1.0f ? p.scale * sine : sine;
    }
}

KERNEL(stretch)(mt_cuda_rows p) /* w: a factor for every `first` positions */
{
    follow_last();
    const uint32_t at = p.step.positions[3 * blockIdx.x] / p.first, last = p.w.cols - 1;
    const float factor = p.w.data[at < last ? at : last];
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; factor != 1.0f && c < p.y.cols; c += blockDim.x)
        y[c] = factor * y[c];
}

/* ---- towers ---- */

KERNEL(join)(mt_cuda_rows p) /* kind 1: interleaved */
{
    follow_last();
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
        const uint32_t row = p.kind ? c % p.count : c / p.x.cols, column = p.kind ? c / p.count : c % p.x.cols;
        row_of(p.y, blockIdx.x)[c] = row_of(p.x, (uint64_t)blockIdx.x * p.count + row)[column];
    }
}

KERNEL(mean)(mt_cuda_rows p)
{
    follow_last();
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
        float sum = row_of(p.x, (uint64_t)blockIdx.x * p.count)[c];
        for (uint32_t j = 1; j < p.count; j++)
            sum += row_of(p.x, (uint64_t)blockIdx.x * p.count + j)[c];
        row_of(p.y, blockIdx.x)[c] = 1.0f / (float)p.count * sum;
    }
}

KERNEL(pixels)(mt_cuda_pixels p)
{
    follow_last();
    const uint64_t at = p.at[blockIdx.x];
    const bool still = at >> 63;
    const uint8_t *bytes = p.bytes + (at & ~(1ull << 63));
    const uint32_t each = p.frames * p.area, stored = still ? p.area : each;
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
        const uint32_t channel = c / each, within = c % each;
        const float *level = p.levels + (p.level[blockIdx.x] * 3 + channel) * 256;
        row_of(p.y, blockIdx.x)[c] = level[bytes[channel * stored + (still ? within % p.area : within)]];
    }
}

/* ---- rows of a weight ---- */

KERNEL(embed)(mt_cuda_lookup p)
{
    follow_last();
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = first_column(); c < p.y.cols; c += column_stride()) {
        const float x = weight_at(p.w, p.index[blockIdx.x], c);
        y[c] = p.scale != 1.0f ? p.scale * x : x;
    }
}

KERNEL(add_rows)(mt_cuda_lookup p)
{
    follow_last();
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
        float sum = y[c];
        for (uint32_t j = 0; j < p.count; j++) {
            const float factor = p.factor.data ? row_of(p.factor, blockIdx.x)[j] : 1.0f;
            if (factor != 0.0f)
                sum = fmaf(factor, weight_at(p.w, p.index[blockIdx.x * p.count + j], c), sum);
        }
        y[c] = sum;
    }
}
