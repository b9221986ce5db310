/* Elementwise kernels, R6 reductions and R7 functions: equal bits on every level, all tails; functions within their
   bounds of the C library in double. */
#include <math.h>
#include <string.h>

#include "check.h"

void check_elementwise(check *c);

enum { SMALL = 70, LARGE = 4099 };

/* 0 .. SMALL, then some beyond */
static size_t next_size(size_t n)
{
    return n < SMALL ? n + 1 : n == SMALL ? 1000 : n == 1000 ? LARGE : SIZE_MAX;
}

#define EACH_CASE(n, kind)                                     \
    for (check_data kind = 0; kind < CHECK_DATA_KINDS; kind++) \
        for (size_t n = 0; n != SIZE_MAX; n = next_size(n))

static float *filled(check *c, size_t n, check_data kind)
{
    float *x = check_alloc(c, n * sizeof(*x), sizeof(*x));
    check_fill_f32(c, x, n, kind);
    return x;
}

static float *copied(check *c, const float *x, size_t n)
{
    float *y = check_alloc(c, n * sizeof(*y), sizeof(*y));
    if (n > 0)
        memcpy(y, x, n * sizeof(*y));
    return y;
}

static void same(check *c, const float *want, const float *got, size_t n, check_data kind)
{
    check_f32(c, want, got, 1, n, n, "n=%zu data=%s", n, check_data_name(kind));
    check_release(c);
}

/* y = f(x), then in place */
typedef void map_fn(float *y, const float *x, size_t n);
static void check_map(check *c, map_fn *ref, map_fn *k)
{
    EACH_CASE(n, kind) {
        const float *x = filled(c, n, kind);
        float *want = copied(c, x, n), *got = copied(c, x, n), *inside = copied(c, x, n);
        ref(want, x, n);
        k(got, x, n);
        k(inside, inside, n);
        check_f32(c, want, inside, 1, n, n, "in place n=%zu data=%s", n, check_data_name(kind));
        same(c, want, got, n, kind);
    }
}

typedef void map2_fn(float *y, const float *g, const float *u, size_t n);
static void check_map2(check *c, map2_fn *ref, map2_fn *k)
{
    EACH_CASE(n, kind) {
        const float *g = filled(c, n, kind), *u = filled(c, n, kind);
        float *want = copied(c, g, n), *got = copied(c, g, n);
        ref(want, g, u, n);
        k(got, got, u, n);
        same(c, want, got, n, kind);
    }
}

/* y += x; y = fma(a, x, y); y = a * x */
static void add_(const mt_kernels *k, float *y, const float *x, float a, size_t n)
{
    (void)a;
    k->add(y, x, n);
}

static void axpy_(const mt_kernels *k, float *y, const float *x, float a, size_t n)
{
    k->axpy(y, a, x, n);
}

static void scale_(const mt_kernels *k, float *y, const float *x, float a, size_t n)
{
    k->scale(y, a, x, n);
}

static void softcap_(const mt_kernels *k, float *y, const float *x, float a, size_t n)
{
    (void)x;
    k->softcap(y, 20.0f + 10.0f * fabsf(a), n);
}

static void softmax_(const mt_kernels *k, float *y, const float *x, float a, size_t n)
{
    (void)x, (void)a;
    k->softmax(y, n);
}

static void rmsnorm_(const mt_kernels *k, float *y, const float *x, float a, size_t n)
{
    k->rmsnorm(y, y, x, n, 1e-6f, a);
}

static void rope_(const mt_kernels *k, float *y, const float *x, float a, size_t n)
{
    (void)a;
    k->rope(y, x, x + n / 4, n / 2);
}

typedef void update_fn(const mt_kernels *k, float *y, const float *x, float a, size_t n);
static void check_update(check *c, update_fn *f)
{
    EACH_CASE(n, kind) {
        const float *x = filled(c, n, kind);
        float *want = filled(c, n, kind), *got = copied(c, want, n), a = check_float(c, kind);
        f(c->ref, want, x, a, n);
        f(c->k, got, x, a, n);
        same(c, want, got, n, kind);
    }
}

static float dot_(const mt_kernels *k, const float *x, const float *y, size_t n)
{
    return k->dot(x, y, n);
}

static float sum_(const mt_kernels *k, const float *x, const float *y, size_t n)
{
    (void)y;
    return k->sum(x, n);
}

static float max_(const mt_kernels *k, const float *x, const float *y, size_t n)
{
    (void)y;
    return k->max(x, n);
}

static float sum_exp_(const mt_kernels *k, const float *x, const float *y, size_t n)
{
    return k->sum_exp(x, n ? y[0] : 0.0f, n);
}

typedef float reduce_fn(const mt_kernels *k, const float *x, const float *y, size_t n);
static void check_reduce(check *c, reduce_fn *f)
{
    EACH_CASE(n, kind) {
        const float *x = filled(c, n, kind), *y = filled(c, n, kind);
        float want = f(c->ref, x, y, n), got = f(c->k, x, y, n);
        check_f32(c, &want, &got, 1, 1, 1, "n=%zu data=%s", n, check_data_name(kind));
        check_release(c);
    }
}

static void check_to_bf16(check *c)
{
    EACH_CASE(n, kind) {
        const float *x = filled(c, n, kind);
        mt_bf16 *want = check_alloc(c, n * sizeof(*want), 2), *got = check_alloc(c, n * sizeof(*got), 2);
        c->ref->to_bf16(want, x, n);
        c->k->to_bf16(got, x, n);
        check_bytes(c, want, got, n * sizeof(*want), "n=%zu data=%s", n, check_data_name(kind));
        check_release(c);
    }
    static const float x[] = {1.0f, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, 3.4e38f, -0x1p-149f, 0x1.8p-134f};
    static const mt_bf16 want[] = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x8000, 0x0001};
    mt_bf16 got[7];
    c->k->to_bf16(got, x, 7);
    check_bytes(c, want, got, sizeof(want), "known values");
}

/* ---- R7 against double ---- */

static double sigmoid_double(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* In units of the last place of the exact value rounded to float. */
static double ulps(float got, double want)
{
    float rounded = (float)want;
    if (isnan(want) || isinf(rounded))
        return isnan(want) ? (isnan(got) ? 0.0 : 1e9) : got == rounded ? 0.0 : 1e9;
    int e;
    frexpf(rounded, &e);
    return fabs((double)got - want) / ldexp(1.0, (e < -125 ? -125 : e) - 24);
}

/* Every 4099th float, specials among them. */
static void check_accuracy(check *c, map_fn *f, double (*exact)(double), double bound)
{
    enum { STEP = 4099, CHUNK = 64 };
    for (uint64_t bits = 0; bits < 0x100000000u; bits += (uint64_t)STEP * CHUNK) {
        float x[CHUNK], y[CHUNK];
        for (size_t i = 0; i < CHUNK; i++)
            x[i] = from_bits((uint32_t)(bits + i * STEP));
        static const float edges[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN,     0x1p-149f,
                                      1.0f, -1.0f, -88.0f,   -103.97f,  88.7229f};
        if (bits == 0)
            memcpy(x, edges, sizeof(edges));
        f(y, x, CHUNK);
        for (size_t i = 0; i < CHUNK; i++)
            if (!(ulps(y[i], exact((double)x[i])) <= bound)) {
                check_fail(c, "x=%a: %a, %.2f ulp from %a", (double)x[i], (double)y[i], ulps(y[i], exact((double)x[i])),
                           exact((double)x[i]));
                return;
            }
    }
    check_that(c, true, "accuracy");
}

/* Angles up to 2^24, the multiples of pi / 2 among them. */
static void check_sincos(check *c)
{
    for (size_t i = 0; i < 200000; i++) {
        float x = (float)i * (i % 2 ? 83.886f : -0.0125f), s, o;
        if (i % 5 == 0)
            x = (float)((double)check_below(c, 10000000) * 1.5707963267948966);
        c->k->sincos(&s, &o, &x, 1);
        if (fabs((double)s - sin((double)x)) > 6e-8 || fabs((double)o - cos((double)x)) > 6e-8) {
            check_fail(c, "x=%a: %a %a", (double)x, (double)s, (double)o);
            return;
        }
    }
    EACH_CASE(n, kind) {
        const float *x = filled(c, n, kind);
        float *s = copied(c, x, n), *o = copied(c, x, n), *s2 = copied(c, x, n), *o2 = copied(c, x, n);
        c->ref->sincos(s, o, x, n);
        c->k->sincos(s2, o2, x, n);
        check_f32(c, s, s2, 1, n, n, "sin n=%zu data=%s", n, check_data_name(kind));
        same(c, o, o2, n, kind);
    }
}

#define CHECK(name, body)                            \
    if (check_begin(c, CHECK_NEW(c, name), #name)) { \
        body;                                        \
        check_end(c);                                \
    }
#define CHECK_R7(name, exact, bound) \
    CHECK(name, check_map(c, c->ref->name, c->k->name); check_accuracy(c, c->k->name, exact, bound))

void check_elementwise(check *c)
{
    CHECK(to_bf16, check_to_bf16(c))
    CHECK(add, check_update(c, add_))
    CHECK(axpy, check_update(c, axpy_))
    CHECK(scale, check_update(c, scale_))
    CHECK(dot, check_reduce(c, dot_))
    CHECK(sum, check_reduce(c, sum_))
    CHECK(max, check_reduce(c, max_))
    CHECK(sum_exp, check_reduce(c, sum_exp_))
    CHECK(rmsnorm, check_update(c, rmsnorm_))
    CHECK(rope, check_update(c, rope_))
    CHECK(softmax, check_update(c, softmax_))
    CHECK(softcap, check_update(c, softcap_))
    CHECK(silu_mul, check_map2(c, c->ref->silu_mul, c->k->silu_mul))
    CHECK(sigmoid_mul, check_map2(c, c->ref->sigmoid_mul, c->k->sigmoid_mul))
    CHECK(gelu_mul, check_map2(c, c->ref->gelu_mul, c->k->gelu_mul))
    CHECK_R7(exp, exp, 1.1)
    CHECK_R7(log, log, 1.0)
    CHECK_R7(sigmoid, sigmoid_double, 2.5)
    CHECK_R7(tanh, tanh, 1.5)
    CHECK(sincos, check_sincos(c))
}
