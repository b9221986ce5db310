/* Norms, activation functions and gates of one value or row, shared by several kernels. */
#ifndef MT_DEVICE_CUDA_ROWS_ACTIVATION_CUH
#define MT_DEVICE_CUDA_ROWS_ACTIVATION_CUH

#include "device/cuda/common/common.cuh"

/* The first sixteen threads of each warp hold the same lanes, so that all have the sum. */
static __device__ inline float rms(const float *x, uint32_t n, float eps)
{
    return 1.0f / sqrtf(dot16(x, x, n) / (float)n + eps);
}

/* The same of a row whose mean is taken from it first. */
static __device__ inline float rms_about(const float *x, float mean, uint32_t n, float eps)
{
    const uint32_t l = threadIdx.x % 16;
    float lane = 0;
#pragma unroll 16
    for (uint32_t i = l; i - l < n; i += 16) {
        const float d = i < n ? x[i] - mean : 0.0f;
        lane = i < n ? fmaf(d, d, lane) : lane + 0.0f;
    }
    return 1.0f / sqrtf(fold16(lane) / (float)n + eps);
}

/* A head of 16 N numbers that turns as a whole. Sixteen threads have N of them each, sixteen apart: so a thread has
   both of what turns together, and its lane of R6. */
template <uint32_t N>
static __device__ inline void turn_head(float (&x)[N], bool normed, const float (&factor)[N], float eps, bool turned,
                                        const float (&cosine)[N / 2], const float (&sine)[N / 2])
{
    float lane = 0;
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
        lane = fmaf(x[i], x[i], lane);
    const float r = 1.0f / sqrtf(fold16(lane) / (float)(16 * N) + eps);
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
        x[i] = normed ? (x[i] * r) * factor[i] : x[i];
#pragma unroll
    for (uint32_t i = 0; i < N / 2; i++) {
        const float a = x[i], b = x[i + N / 2];
        x[i] = turned ? fmaf(a, cosine[i], -(b * sine[i])) : a;
        x[i + N / 2] = turned ? fmaf(b, cosine[i], a * sine[i]) : b;
    }
}

/* x = x / 2 erfc(-x / sqrt 2) */
static __device__ inline float gelu(float x)
{
    const float z = fabsf(x) * 0.70710678118654752f, t = 1.0f / fmaf(0.5f, z, 1.0f);
    const float tail = 0.5f * (t * mt_exp1(fmaf(-z, z, mt_erfc_exponent1(t))));
    return x * (x < 0 ? tail : 1.0f - tail);
}

static __device__ inline float activate(float x, uint32_t act)
{
    switch (act) {
    case MT_ACT_SILU: return mt_silu1(x) * 1.0f;
    case MT_ACT_GELU_TANH: return mt_gelu1(x) * 1.0f;
    case MT_ACT_QUICK_GELU: return x * mt_sigmoid1(1.702f * x);
    case MT_ACT_NONE: return x;
    case MT_ACT_RELU: return x < 0 ? 0.0f : x;
    }
    return gelu(x);
}

/* NaN stays. */
static __device__ inline float clamp(float x, float low, float high)
{
    return x > high ? high : x < low ? low : x;
}

/* act(gate) * (up + offset), cut at limits first where there are some */
static __device__ inline float glu_of(uint32_t act, float limit, float offset, float gate, float up)
{
    const float most = limit != 0 ? limit : INFINITY;
    const float g = activate(clamp(gate, -INFINITY, most), act), u = clamp(up, -most, most);
    return g * (limit == 0 && offset == 0 ? u : u + offset);
}

#endif
