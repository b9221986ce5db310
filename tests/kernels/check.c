/* Options, levels, and the list of groups. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned level_bits[] = {
    0,           MT_CPU_NEON,    MT_CPU_DOTPROD, MT_CPU_I8MM,       MT_CPU_BF16,
    MT_CPU_AVX2, MT_CPU_AVXVNNI, MT_CPU_AVX512,  MT_CPU_AVX512VNNI, MT_CPU_AMX,
};
enum { LEVELS = sizeof(level_bits) / sizeof(level_bits[0]) };

#define DECLARE_CHECK(group) void check_##group(check *c);
#define DECLARE_BENCH(group) void bench_##group(bench *b);
CHECK_GROUPS(DECLARE_CHECK)
CHECK_BENCHES(DECLARE_BENCH)

typedef struct options {
    bool bench, quick;
    const char *filter, *level;
    uint64_t seed;
    size_t threads;
} options;

static int usage(FILE *out)
{
    fprintf(out, "usage: checkkernels [--bench] [--quick] [--filter NAME] [--level NAME] [--seed N] [--threads N]\n");
    return out == stdout ? 0 : 2;
}

static bool parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--bench") == 0 || strcmp(name, "--quick") == 0) {
            *(name[2] == 'b' ? &o->bench : &o->quick) = true;
            continue;
        }
        if (++i == argc)
            return false;
        if (strcmp(name, "--filter") == 0)
            o->filter = argv[i];
        else if (strcmp(name, "--level") == 0)
            o->level = argv[i];
        else if (strcmp(name, "--seed") == 0)
            o->seed = strtoull(argv[i], NULL, 0);
        else if (strcmp(name, "--threads") == 0)
            o->threads = (size_t)strtoull(argv[i], NULL, 10);
        else
            return false;
    }
    return o->threads >= 1 && o->threads <= 256;
}

static void check_level(check *c, const options *o)
{
    c->rng = o->seed * 0x9e3779b97f4a7c15u + 1;
#define RUN(group) check_##group(c);
    CHECK_GROUPS(RUN)
#undef RUN
}

static int run_checks(const options *o)
{
    unsigned has = mt_cpu_detect(), mask = 0;
    mt_kernels table[LEVELS];
    check c = {.ref = &table[0], .filter = o->filter, .quick = o->quick && !getenv("MOTET_TEST_FULL")};
    for (size_t i = 0; i < LEVELS; i++) {
        if ((level_bits[i] & has) != level_bits[i])
            continue;
        char name[64];
        mask |= level_bits[i];
        mt_kernels_init(&table[i], mask);
        c.k = &table[i];
        c.level = mt_cpu_names(level_bits[i], name, sizeof(name));
        if (!o->level || strcmp(o->level, c.level) == 0)
            check_level(&c, o);
        c.lower = c.k;
    }
    printf("checkkernels: %u passed, %u failed\n", c.passed, c.failed);
    if (c.failed)
        printf("seed %llu\n", (unsigned long long)o->seed);
    return c.failed || !c.passed ? 1 : 0;
}

static int run_benches(const options *o)
{
    unsigned mask = ~0u;
    if (o->level) {
        mask = 0;
        for (size_t i = 0; i < LEVELS; i++) {
            char name[64];
            mask |= level_bits[i];
            if (strcmp(o->level, mt_cpu_names(level_bits[i], name, sizeof(name))) == 0)
                break;
        }
    }
    mt_kernels k;
    mt_kernels_init(&k, mt_cpu_detect() & mask);
    bench b = {.k = &k, .filter = o->filter, .threads = o->threads};
    char names[128];
    printf("level %s, %zu threads\n", mt_cpu_names(k.cpu, names, sizeof(names)), b.threads);
    bench_peaks(&b);
#define RUN(group) bench_##group(&b);
    CHECK_BENCHES(RUN)
#undef RUN
    return 0;
}

int main(int argc, char **argv)
{
    options o = {.seed = 1, .threads = 2};
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(stdout);
    if (!parse(&o, argc, argv))
        return usage(stderr);
    return o.bench ? run_benches(&o) : run_checks(&o);
}
