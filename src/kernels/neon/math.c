/* exp, log, tanh and others (R7 of docs/numerics.md) on NEON. */
#include "kernels/neon/math.h"

#include "kernels/levels.h"

static mt_lanes4 log16(mt_lanes4 x)
{
    for (int i = 0; i < 4; i++)
        x.v[i] = mt_log4(x.v[i]);
    return x;
}

static mt_lanes4 tanh16(mt_lanes4 x)
{
    for (int i = 0; i < 4; i++)
        x.v[i] = mt_tanh4(x.v[i]);
    return x;
}

#define MAP(kernel, f)                                                                \
    void mt_##kernel##_neon(float *y, const float *x, size_t n)                       \
    {                                                                                 \
        size_t i = 0;                                                                 \
        for (; i + MT_LANES <= n; i += MT_LANES)                                      \
            mt_lanes4_store(y + i, f(mt_lanes4_load(x + i)));                         \
        if (i < n)                                                                    \
            mt_lanes4_store_part(y + i, f(mt_lanes4_load_part(x + i, n - i)), n - i); \
    }

MAP(exp, mt_exp16)
MAP(log, log16)
MAP(sigmoid, mt_sigmoid16)
MAP(tanh, tanh16)

#define MAP_MUL(kernel, f)                                                                          \
    void mt_##kernel##_neon(float *y, const float *g, const float *u, size_t n)                     \
    {                                                                                               \
        size_t i = 0;                                                                               \
        for (; i + MT_LANES <= n; i += MT_LANES)                                                    \
            mt_lanes4_store(y + i, mt_lanes4_mul(f(mt_lanes4_load(g + i)), mt_lanes4_load(u + i))); \
        if (i == n)                                                                                 \
            return;                                                                                 \
        mt_lanes4 a = f(mt_lanes4_load_part(g + i, n - i)), b = mt_lanes4_load_part(u + i, n - i);  \
        mt_lanes4_store_part(y + i, mt_lanes4_mul(a, b), n - i);                                    \
    }

MAP_MUL(silu_mul, mt_silu16)
MAP_MUL(sigmoid_mul, mt_sigmoid16)
MAP_MUL(gelu_mul, mt_gelu16)

void mt_softcap_neon(float *x, float cap, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i, mt_softcap4(vld1q_f32(x + i), cap));
    if (i < n)
        mt_store_part(x + i, mt_softcap4(mt_load_part(x + i, n - i, 0.0f), cap), n - i);
}
