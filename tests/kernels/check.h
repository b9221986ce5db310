/* checkkernels: every kernel at every level this processor has, against portable C; and, with --bench, its speed
   beside the machine's measured peaks. One file per group of kernels; a group is added to CHECK_GROUPS or
   CHECK_BENCHES below. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

/* X(group): void check_<group>(check *c), called once per level. */
#define CHECK_GROUPS(X) \
    X(row)              \
    X(elementwise)      \
    X(qmatmul)          \
    X(bmatmul)          \
    X(attn)             \
    X(attnq)            \
    X(delta)

/* X(group): void bench_<group>(bench *b), called once, with the best level. */
#define CHECK_BENCHES(X) \
    X(qmatmul)           \
    X(bmatmul)           \
    X(attn)              \
    X(delta)

typedef struct check {
    const mt_kernels *ref;   /* portable: the definition */
    const mt_kernels *k;     /* the level under test */
    const mt_kernels *lower; /* the level below; NULL when k is portable */
    const char *level;
    const char *filter; /* part of a kernel's name, or NULL */
    bool quick;         /* each kind of case once */
    const char *kernel; /* being checked */
    uint64_t rng;
    unsigned cases, case_failures; /* of this kernel */
    unsigned passed, failed;       /* kernels */
    struct check_block *blocks;
} check;

/* One kernel:
       if (check_begin(c, CHECK_NEW(c, dot), "dot")) {
           for (...) {
               float *x = check_alloc(c, n * sizeof(*x), 4);
               ...
               check_f32(c, want, got, 1, n, n, "n=%zu data=%s", n, check_data_name(d));
               check_release(c);
           }
           check_end(c);
       } */
#define CHECK_NEW(c, name) ((c)->lower == NULL || (c)->k->name != (c)->lower->name)

/* False when the kernel is the same function as on the level below, or filtered out. */
bool check_begin(check *c, bool is_new, const char *kernel);
void check_end(check *c);

/* A case fails: prints the kernel, level and parameters. */
void check_fail(check *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Counts a case; fails it unless ok. Returns ok. */
bool check_that(check *c, bool ok, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Counts a case; fails it unless all want[i * ld + j] and got[i * ld + j] have equal bits or are both NaN. */
bool check_f32(check *c, const float *want, const float *got, size_t rows, size_t cols, size_t ld, const char *format,
               ...) __attribute__((format(printf, 7, 8)));
bool check_bytes(check *c, const void *want, const void *got, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Memory that ends as near to an unmapped page as `align` (a power of two) permits, random bytes around it, zeros
   in it. align 1 or the element size tests unaligned pointers and reads beyond the end. */
void *check_alloc(check *c, size_t bytes, size_t align);

/* Frees all of it; fails the case if bytes outside were written. */
void check_release(check *c);

uint32_t check_rand(check *c);
size_t check_below(check *c, size_t n); /* 0 .. n-1 */

typedef enum check_data {
    CHECK_NORMAL,  /* near 1 */
    CHECK_WIDE,    /* exponents of -20 .. 20 */
    CHECK_TINY,    /* zeros, subnormals, the smallest normals */
    CHECK_HUGE,    /* up to FLT_MAX */
    CHECK_SPECIAL, /* the above with a few NaN and infinities */
    CHECK_ZERO,
    CHECK_DATA_KINDS
} check_data;

const char *check_data_name(check_data kind);
float check_float(check *c, check_data kind);
void check_fill_f32(check *c, float *x, size_t n, check_data kind);
void check_fill_bytes(check *c, void *x, size_t bytes);

/* A random matrix of any format; rows of w and of the scales lie one after the other, unaligned, up to an unmapped
   page. Scales (and F32, F16, BF16 elements) are of the given kind. */
void check_matrix(check *c, mt_mat *w, const mt_mat *shape, check_data kind);

/* "affine 4-bit g64 bf16" of a matrix's format, in a static buffer. */
const char *check_matrix_name(const mt_mat *w);

/* Benchmarks. */
typedef struct bench {
    const mt_kernels *k;
    const char *filter;
    size_t threads;
    double bandwidth, int8, bf16, fp32; /* measured peaks: bytes/s; operations/s, a multiply-add is two */
} bench;

/* Best seconds of repeated runs of fn(arg, thread, threads) on b->threads threads at once. */
typedef void bench_fn(void *arg, size_t thread, size_t threads);
double bench_time(const bench *b, bench_fn *fn, void *arg);

/* The share of [0, n) of one thread, in multiples of step. */
void bench_share(size_t n, size_t step, size_t thread, size_t threads, size_t *begin, size_t *end);

/* 64-byte aligned; filled with random bytes; abort on failure; free with free(). */
void *bench_alloc(size_t bytes);
void *bench_alloc_large(size_t bytes); /* on large pages, as the cache of keys and values */

/* Whether the filter, which begins with a kernel's name ("q_matmul 4-bit g64 m=64"), asks for a kernel at all, and for
   one measurement. */
bool bench_wants(const bench *b, const char *kernel);
bool bench_picks(const bench *b, const char *what);

/* One line: time, GB/s with its fraction of bandwidth, GOP/s with its fraction of ops_peak (0: not shown). */
void bench_report(const bench *b, const char *what, double seconds, double bytes, double ops, double ops_peak);

/* peak.c */
void bench_peaks(bench *b);

#endif
