/* What the checks share: guarded memory, random data, comparison, counting. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { GUARD = 128, SHOWN = 5 };

/* [mapping ... guard | bytes | slack][unmapped page] */
typedef struct check_block {
    struct check_block *next;
    uint8_t *mapping, *data;
    size_t mapped, bytes, slack;
    uint8_t guard;
} check_block;

static void die(const char *what)
{
    perror(what);
    exit(2);
}

void *check_alloc(check *c, size_t bytes, size_t align)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    check_block *b = calloc(1, sizeof(*b));
    if (!b)
        die("calloc");
    b->mapped = (bytes + GUARD + align + page - 1) / page * page + page;
    b->mapping = mmap(NULL, b->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->mapping == MAP_FAILED || mprotect(b->mapping + b->mapped - page, page, PROT_NONE) != 0)
        die("mmap");
    uint8_t *end = b->mapping + b->mapped - page;
    b->slack = (size_t)((uintptr_t)(end - bytes) & (align - 1));
    b->data = end - bytes - b->slack;
    b->bytes = bytes;
    b->guard = (uint8_t)(check_rand(c) | 1);
    memset(b->data, 0xff, bytes); /* NaN in every type: what a kernel reads before it writes it shows */
    memset(b->data - GUARD, b->guard, GUARD);
    memset(b->data + bytes, b->guard, b->slack);
    b->next = c->blocks;
    c->blocks = b;
    return b->data;
}

static bool intact(const uint8_t *p, size_t n, uint8_t value)
{
    while (n > 0 && p[n - 1] == value)
        n--;
    return n == 0;
}

void check_release(check *c)
{
    while (c->blocks) {
        check_block *b = c->blocks;
        c->blocks = b->next;
        if (!intact(b->data - GUARD, GUARD, b->guard) || !intact(b->data + b->bytes, b->slack, b->guard))
            check_fail(c, "wrote outside a buffer of %zu bytes", b->bytes);
        munmap(b->mapping, b->mapped);
        free(b);
    }
}

bool check_begin(check *c, bool is_new, const char *kernel)
{
    if (!is_new || (c->filter && !strstr(kernel, c->filter)))
        return false;
    c->kernel = kernel;
    c->cases = c->case_failures = 0;
    return true;
}

void check_end(check *c)
{
    check_release(c);
    bool ok = c->case_failures == 0;
    c->passed += ok;
    c->failed += !ok;
    printf("  %-16s %-10s %7u cases  %s\n", c->kernel, c->level, c->cases, ok ? "ok" : "FAILED");
    if (!ok)
        printf("    %u cases failed\n", c->case_failures);
    fflush(stdout);
}

static void fail(check *c, const char *format, va_list args)
{
    if (c->case_failures++ >= SHOWN)
        return;
    printf("    %s %s: ", c->kernel, c->level);
    vprintf(format, args);
    printf("\n");
}

void check_fail(check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail(c, format, args);
    va_end(args);
}

bool check_that(check *c, bool ok, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c->cases++;
    if (!ok)
        fail(c, format, args);
    va_end(args);
    return ok;
}

static bool same(float a, float b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

bool check_f32(check *c, const float *want, const float *got, size_t rows, size_t cols, size_t ld, const char *format,
               ...)
{
    va_list args;
    c->cases++;
    for (size_t i = 0; i < rows; i++) {
        for (size_t j = 0; j < cols; j++) {
            float w = want[i * ld + j], g = got[i * ld + j];
            if (same(w, g))
                continue;
            va_start(args, format);
            fail(c, format, args);
            va_end(args);
            if (c->case_failures <= SHOWN)
                printf("      [%zu][%zu]: want %.9g (%a), got %.9g (%a)\n", i, j, (double)w, (double)w, (double)g,
                       (double)g);
            return false;
        }
    }
    return true;
}

bool check_bytes(check *c, const void *want, const void *got, size_t bytes, const char *format, ...)
{
    const uint8_t *w = want, *g = got;
    va_list args;
    c->cases++;
    if (bytes == 0 || memcmp(w, g, bytes) == 0)
        return true;
    size_t i = 0;
    while (w[i] == g[i])
        i++;
    va_start(args, format);
    fail(c, format, args);
    va_end(args);
    if (c->case_failures <= SHOWN)
        printf("      byte %zu: want %02x, got %02x\n", i, w[i], g[i]);
    return false;
}

uint32_t check_rand(check *c)
{
    c->rng ^= c->rng << 13;
    c->rng ^= c->rng >> 7;
    c->rng ^= c->rng << 17;
    return (uint32_t)((c->rng * 0x2545f4914f6cdd1du) >> 32);
}

size_t check_below(check *c, size_t n)
{
    return (size_t)(((uint64_t)check_rand(c) * n) >> 32);
}

const char *check_data_name(check_data kind)
{
    static const char *const names[CHECK_DATA_KINDS] = {"normal", "wide", "tiny", "huge", "special", "zero"};
    return names[kind];
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static float special(check *c)
{
    static const uint32_t values[] = {0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u,
                                      0x7f800001u, 0x80000000u, 0x7f7fffffu};
    return from_bits(values[check_below(c, sizeof(values) / sizeof(values[0]))]);
}

float check_float(check *c, check_data kind)
{
    uint32_t bits = check_rand(c), fraction = bits & 0x807fffffu;
    switch (kind) {
    case CHECK_NORMAL:
        return from_bits(fraction | 0x3f800000u) + from_bits((check_rand(c) & 0x007fffffu) | 0x3f800000u) - 1.5f;
    case CHECK_WIDE: return from_bits(fraction | (uint32_t)(107 + check_below(c, 41)) << 23);
    case CHECK_TINY:
        return bits % 5 == 0 ? from_bits(bits & 0x80000000u) : from_bits(fraction | (uint32_t)check_below(c, 4) << 23);
    case CHECK_HUGE: return from_bits(fraction | (uint32_t)(250 + check_below(c, 5)) << 23);
    case CHECK_SPECIAL: return check_below(c, 50) == 0 ? special(c) : check_float(c, CHECK_WIDE);
    case CHECK_ZERO:
    case CHECK_DATA_KINDS: break;
    }
    return 0.0f;
}

void check_fill_f32(check *c, float *x, size_t n, check_data kind)
{
    for (size_t i = 0; i < n; i++)
        x[i] = check_float(c, kind);
}

void check_fill_bytes(check *c, void *x, size_t bytes)
{
    uint8_t *p = x;
    for (size_t i = 0; i < bytes; i++)
        p[i] = (uint8_t)(check_rand(c) >> 11);
}
