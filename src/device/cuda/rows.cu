/* Operations that treat each row by itself: one block for each row. */
#include "device/cuda/activation.cuh"
#include "device/cuda/pack.cuh"

KERNEL(copy_rows)(mt_cuda_rows p) /* y[i] = x[index[i]] */
{
    follow_last();
    const float *x = row_of(p.x, p.index[blockIdx.x]);
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.x.cols; c += blockDim.x)
        y[c] = x[c];
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

/* Eight neighbours of a row, zeros beyond its end: to y, and packed as bf16 where pack says so. */
static __device__ inline void put_eight(const mt_cuda_made &p, uint32_t row, uint32_t c, const float v[8])
{
    const uint32_t n = p.rows.y.cols;
    store_four(row_of(p.rows.y, row), c, n, v);
    store_four(row_of(p.rows.y, row), c + 4, n, v + 4);
    if (p.pack.to.q)
        *(uint4 *)(p.pack.to.q + piece_at(p.pack.to, c / 64, row, c % 64 / 8)) =
            make_uint4(two_halves(v[0], v[1]), two_halves(v[2], v[3]), two_halves(v[4], v[5]), two_halves(v[6], v[7]));
}

/* The row goes through shared memory, since a lane's sum is one chain of additions. */
KERNEL(norm)(mt_cuda_rows p)
{
    follow_last();
    extern __shared__ float row[];
    __shared__ float shared_r;
    const float *x = row_of(p.x, blockIdx.x);
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.x.cols; c += blockDim.x)
        row[c] = x[c];
    __syncthreads();
    if (threadIdx.x < 32) {
        const float r = rms(row, p.x.cols, p.eps);
        if (threadIdx.x == 0)
            shared_r = r;
    }
    __syncthreads();
    const float r = shared_r;
    for (uint32_t c = threadIdx.x; c < p.x.cols; c += blockDim.x)
        y[c] = (row[c] * r) * (p.offset + p.w.data[c]);
}

/* A warp's row of n floats to shared memory, as many at a time as it takes to keep the memory busy. */
static __device__ inline void fetch_row(float *to, const float *x, uint32_t n)
{
    const uint32_t lane = threadIdx.x % 32;
    uint32_t c = lane * 4;
    if ((uintptr_t)x % 16 == 0)
        for (; c - lane * 4 + 1024 <= n; c += 1024) {
            float4 v[8];
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] = *(const float4 *)(x + c + i * 128);
#pragma unroll
            for (int i = 0; i < 8; i++)
                *(float4 *)(to + c + i * 128) = v[i];
        }
    for (; c < n; c += 128) {
        __align__(16) float v[4];
        load_four(v, x, c, n);
        *(float4 *)(to + c) = *(const float4 *)v;
    }
}

/* Sixteen lanes a row, which is a chain of additions each (R6), so a warp has two rows and a block several warps; rows
   lie in shared memory meanwhile, in different banks. Packed for the product to come where pack says so. */
KERNEL(layer_norm)(const __grid_constant__ mt_cuda_made p)
{
    extern __shared__ __align__(16) float room[];
    const uint32_t n = p.rows.x.cols, stride = MT_CUDA_NORM_STRIDE(n), lane = threadIdx.x % 32;
    const uint32_t first = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * 2;
    float *rows = room + threadIdx.x / 32 * 2 * stride, *own = rows + lane / 16 * stride;
    follow_last();
    for (uint32_t r = 0; r < 2 && first + r < p.rows.m; r++)
        fetch_row(rows + r * stride, row_of(p.rows.x, first + r), n);
    __syncwarp();
    const float mean = sum16(own, n) / (float)n, r_own = rms_about(own, mean, n, p.rows.eps);
    const float means[2] = {__shfl_sync(0xffffffffu, mean, 0), __shfl_sync(0xffffffffu, mean, 16)};
    const float factors[2] = {__shfl_sync(0xffffffffu, r_own, 0), __shfl_sync(0xffffffffu, r_own, 16)};
    const uint32_t end = p.pack.to.q ? p.pack.to.padded : n;
    for (uint32_t c = lane * 8; c < end; c += 256) {
        __align__(16) float w[8], b[8], v[8];
#pragma unroll
        for (uint32_t i = 0; i < 8; i += 4) {
            load_four(w + i, p.rows.w.data, c + i, n);
            load_four(b + i, p.rows.bias.data, c + i, n);
        }
#pragma unroll
        for (uint32_t r = 0; r < 2; r++) {
            if (first + r >= p.rows.m)
                break;
#pragma unroll
            for (uint32_t i = 0; i < 8; i++)
                v[i] = c + i < n ? ((rows[r * stride + c + i] - means[r]) * factors[r]) * (0.0f + w[i]) + b[i] : 0;
            put_eight(p, first + r, c, v);
        }
    }
}

typedef enum binary { ADD, GATE, ADD_GATED, SCALE } binary;

KERNEL(binary)(mt_cuda_rows p)
{
    follow_last();
    float *y = row_of(p.y, blockIdx.x);
    const float *a = p.x.data ? row_of(p.x, blockIdx.x) : NULL, *b = p.x2.data ? row_of(p.x2, blockIdx.x) : NULL;
    const float share = p.kind == ADD_GATED ? mt_sigmoid1(b[0]) : 0;
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x)
        switch (p.kind) {
        case ADD: y[c] += a[c]; break;
        case GATE: y[c] = mt_sigmoid1(a[c]) * y[c]; break;
        case ADD_GATED: y[c] = fmaf(share, a[c], y[c]); break;
        case SCALE: y[c] = p.scale * y[c]; break;
        }
}

KERNEL(glu)(mt_cuda_rows p) /* x: gate, x2: up */
{
    follow_last();
    const float *gate = row_of(p.x, blockIdx.x), *up = row_of(p.x2, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x)
        row_of(p.y, blockIdx.x)[c] = glu_of(p.kind, p.limit, p.offset, gate[c], up[c]);
}

KERNEL(softcap)(mt_cuda_rows p)
{
    follow_last();
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x)
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
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
        const uint32_t at = c / p.head_dim * 2 * p.head_dim + c % p.head_dim;
        row_of(p.y, blockIdx.x)[c] = x[at];
        row_of(p.y2, blockIdx.x)[c] = x[at + p.head_dim];
    }
}

KERNEL(finite)(mt_cuda_rows p)
{
    follow_last();
    int bad = 0;
    for (uint32_t c = threadIdx.x; c < p.x.cols; c += blockDim.x)
        bad |= (mt_f32_bits(row_of(p.x, blockIdx.x)[c]) & 0x7f800000u) == 0x7f800000u;
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

KERNEL(act)(const __grid_constant__ mt_cuda_made p)
{
    follow_last();
    const float *x = row_of(p.rows.y, blockIdx.x);
    const uint32_t n = p.rows.y.cols, end = p.pack.to.q ? p.pack.to.padded : n;
    for (uint32_t c = threadIdx.x * 8; c < end; c += blockDim.x * 8) {
        __align__(16) float v[8];
        load_four(v, x, c, n);
        load_four(v + 4, x, c + 4, n);
#pragma unroll
        for (uint32_t i = 0; i < 8; i++)
            v[i] = c + i < n ? activate(v[i], p.rows.kind) : 0;
        put_eight(p, blockIdx.x, c, v);
    }
}

KERNEL(join)(mt_cuda_rows p) /* kind 1: woven */
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
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
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
