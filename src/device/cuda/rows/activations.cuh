/* Activations of several values at once, with the bits of activation.cuh: fewer instructions, and no branch among them.
   Where a value is far from 0, all of them go the way of one. */
#ifndef MT_DEVICE_CUDA_ROWS_ACTIVATIONS_CUH
#define MT_DEVICE_CUDA_ROWS_ACTIVATIONS_CUH

#include "device/cuda/rows/activation.cuh"

/* The quotient to the bit, for d between 1 and 2^100 and n between 2^-100 and 1; or, where d is 1, any n. */
static __device__ inline float divide(float n, float d)
{
    float r;
    asm("rcp.approx.ftz.f32 %0,%1;" : "=f"(r) : "f"(d));
    r = fmaf(r, fmaf(-d, r, 1.0f), r);
    float q = n * r;
    q = fmaf(fmaf(-d, q, n), r, q);
    return fmaf(fmaf(-d, q, n), r, q);
}

/* mt_exp1 for -87 <= x <= 1: what it gives is no subnormal number, so that its exponent can be added to. */
static __device__ inline float exp_near(float x)
{
    const float z = fmaf(x, MT_LOG2E, MT_ROUND_MAGIC), n = z - MT_ROUND_MAGIC;
    const float r = fmaf(n, -MT_LN2_LOW, fmaf(n, -MT_LN2_HIGH, x));
    float p = fmaf(MT_EXP_C4, r, MT_EXP_C3);
    p = fmaf(p, r, MT_EXP_C2);
    p = fmaf(p, r, MT_EXP_C1);
    p = fmaf(p, r, MT_EXP_C0);
    p = fmaf(r * r, p, r) + 1.0f;
    return mt_f32_from_bits(mt_f32_bits(p) + (mt_f32_bits(z) << 23));
}

/* mt_sigmoid1 for |x| <= 87 */
static __device__ inline float sigmoid_near(float x)
{
    const float e = exp_near(-fabsf(x));
    return divide(x < 0.0f ? e : 1.0f, 1.0f + e);
}

/* gelu for |x| <= 13 */
static __device__ inline float gelu_near(float x)
{
    const float z = fabsf(x) * 0.70710678118654752f, t = divide(1.0f, fmaf(0.5f, z, 1.0f));
    const float tail = 0.5f * (t * exp_near(fmaf(-z, z, mt_erfc_exponent1(t))));
    return x * (x < 0 ? tail : 1.0f - tail);
}

/* The argument of an activation's sigmoid. */
static __device__ inline float gelu_argument(float x)
{
    return MT_GELU_SCALE * fmaf(MT_GELU_CUBE * (x * x), x, x);
}

/* Whether all are so near to 0; NaN is not. */
template <int N> static __device__ inline bool near(const float (&x)[N], float most)
{
    bool all = true;
#pragma unroll
    for (int i = 0; i < N; i++)
        all = all && fabsf(x[i]) <= most;
    return all;
}

/* The rare case, in a function of its own, so that it is compiled once. */
static __device__ __noinline__ float activate_far(float x, uint32_t act)
{
    return activate(x, act);
}

/* x = activate(x, act) */
template <int N> static __device__ inline void activate_all(float (&x)[N], uint32_t act)
{
    if (act == MT_ACT_SILU && near(x, 87.0f)) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = x[i] * sigmoid_near(x[i]);
    } else if (act == MT_ACT_GELU_TANH && near(x, 10.0f - 0x1p-4f)) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = x[i] * sigmoid_near(gelu_argument(x[i]));
    } else if (act == MT_ACT_GELU && near(x, 13.0f)) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = gelu_near(x[i]);
    } else if (act != MT_ACT_NONE) {
#pragma unroll
        for (int i = 0; i < N; i++)
            x[i] = activate_far(x[i], act);
    }
}

/* gate = glu_of(act, limit, offset, gate, up) of each */
template <int N>
static __device__ inline void gate_all(float (&gate)[N], float (&up)[N], uint32_t act, float limit, float offset)
{
    if (limit != 0)
#pragma unroll
        for (int i = 0; i < N; i++) {
            gate[i] = clamp(gate[i], -INFINITY, limit);
            up[i] = clamp(up[i], -limit, limit) + offset;
        }
    else if (offset != 0)
#pragma unroll
        for (int i = 0; i < N; i++)
            up[i] = up[i] + offset;
    activate_all(gate, act);
#pragma unroll
    for (int i = 0; i < N; i++)
        gate[i] = gate[i] * up[i];
}

#endif
