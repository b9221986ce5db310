/* exp, log, tanh and others (R7 of docs/numerics.md): one register at a time, tails padded. */
#include "kernels/levels.h"
#include "kernels/x86/math.h"

#define MAP(kernel, f)                                        \
    void MT_LEVEL(kernel)(float *y, const float *x, size_t n) \
    {                                                         \
        for (size_t i = 0; i < n; i += VL)                    \
            vf_put(y, i, n, f(vf_get(x, i, n)));              \
    }

MAP(exp, vf_exp)
MAP(log, vf_log)
MAP(sigmoid, vf_sigmoid)
MAP(tanh, vf_tanh)

#define MAP_MUL(kernel, f)                                                    \
    void MT_LEVEL(kernel)(float *y, const float *g, const float *u, size_t n) \
    {                                                                         \
        for (size_t i = 0; i < n; i += VL)                                    \
            vf_put(y, i, n, vf_mul(f(vf_get(g, i, n)), vf_get(u, i, n)));     \
    }

MAP_MUL(silu_mul, vf_silu)
MAP_MUL(sigmoid_mul, vf_sigmoid)
MAP_MUL(gelu_mul, vf_gelu)

void MT_LEVEL(softcap)(float *x, float cap, size_t n)
{
    for (size_t i = 0; i < n; i += VL)
        vf_put(x, i, n, vf_softcap(vf_get(x, i, n), vf_set1(cap)));
}
