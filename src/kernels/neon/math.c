/* R7 on NEON. */
#include "kernels/neon/math.h"

#include "kernels/levels.h"
#include "kernels/neon/lanes.h"

#define MAP(kernel, f)                                                                                                 \
    void mt_##kernel##_neon(float *y, const float *x, size_t n)                                                        \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        for (; i + 4 <= n; i += 4)                                                                                     \
            vst1q_f32(y + i, f(vld1q_f32(x + i)));                                                                     \
        if (i < n)                                                                                                     \
            mt_store_part(y + i, f(mt_load_part(x + i, n - i, 0.0f)), n - i);                                          \
    }

MAP(exp, mt_exp4)
MAP(log, mt_log4)
MAP(sigmoid, mt_sigmoid4)
MAP(tanh, mt_tanh4)

#define MAP_MUL(kernel, f)                                                                                             \
    void mt_##kernel##_neon(float *y, const float *g, const float *u, size_t n)                                        \
    {                                                                                                                  \
        size_t i = 0;                                                                                                  \
        for (; i + 4 <= n; i += 4)                                                                                     \
            vst1q_f32(y + i, vmulq_f32(f(vld1q_f32(g + i)), vld1q_f32(u + i)));                                        \
        if (i == n)                                                                                                    \
            return;                                                                                                    \
        float32x4_t a = f(mt_load_part(g + i, n - i, 0.0f)), b = mt_load_part(u + i, n - i, 0.0f);                     \
        mt_store_part(y + i, vmulq_f32(a, b), n - i);                                                                  \
    }

MAP_MUL(silu_mul, mt_silu4)
MAP_MUL(gelu_mul, mt_gelu4)

void mt_softcap_neon(float *x, float cap, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(x + i, mt_softcap4(vld1q_f32(x + i), cap));
    if (i < n)
        mt_store_part(x + i, mt_softcap4(mt_load_part(x + i, n - i, 0.0f), cap), n - i);
}
