#include "unit.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/limits.h"

static bool all_zero(const unsigned char *p, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (p[i])
            return false;
    return true;
}

static void memory_is_zeroed(void **state)
{
    unsigned char *p = mt_alloc(1000), *q = mt_alloc_array(10, 100);

    (void)state;
    assert_true(all_zero(p, 1000));
    assert_true(all_zero(q, 1000));
    mt_free(p);
    mt_free(q);
}

static void nothing_is_something(void **state)
{
    void *p = mt_alloc(0), *q = mt_alloc_array(0, 8), *r = mt_alloc_aligned(64, 0);

    (void)state;
    assert_non_null(p);
    assert_non_null(q);
    assert_non_null(r);
    mt_free(p);
    mt_free(q);
    mt_free(r);
    mt_free(NULL);
}

static void aligned_is_aligned(void **state)
{
    (void)state;
    for (size_t align = 1; align <= 4096; align *= 2) {
        unsigned char *p = mt_alloc_aligned(align, 77);

        assert_int_equal((uintptr_t)p % align, 0);
        assert_true(all_zero(p, 77));
        mt_free(p);
    }
}

static void realloc_zeroes_the_new_part(void **state)
{
    unsigned char *p = mt_realloc(NULL, 0, 8);

    (void)state;
    assert_true(all_zero(p, 8));
    memset(p, 1, 8);
    p = mt_realloc(p, 8, 5000);
    assert_int_equal(p[7], 1);
    assert_true(all_zero(p + 8, 4992));
    p = mt_realloc(p, 5000, 4);
    assert_int_equal(p[3], 1);
    mt_free(p);
}

static void strdup_copies(void **state)
{
    char text[] = "voices", *copy = mt_strdup(text);

    (void)state;
    text[0] = 'V';
    assert_string_equal(copy, "voices");
    mt_free(copy);
}

static void allocate_inside_a_step(void *arg)
{
    (void)arg;
    signal(SIGABRT, SIG_DFL);
    mt_alloc_forbid();
    mt_alloc_forbid();
    mt_alloc_permit();
    mt_free(mt_alloc(48)); /* still forbidden once */
}

static void the_guard_aborts(void **state)
{
    struct rlimit none = {0, 0};
    char text[256];
    int status;

    (void)state;
    setrlimit(RLIMIT_CORE, &none);
    status = unit_in_child(allocate_inside_a_step, NULL, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "motet: bug: 48 bytes allocated inside a step, where nothing may be"));
}

static void the_guard_nests_and_ends(void **state)
{
    (void)state;
    assert_false(mt_alloc_forbidden());
    mt_alloc_forbid();
    mt_alloc_forbid();
    mt_alloc_permit();
    assert_true(mt_alloc_forbidden());
    const unsigned suspended = mt_alloc_suspend();
    mt_free(mt_alloc(48)); /* a library's, within a step */
    mt_alloc_resume(suspended);
    assert_true(mt_alloc_forbidden());
    mt_alloc_permit();
    assert_false(mt_alloc_forbidden());
    mt_free(mt_alloc(1));
}

static void what_a_thread_holds_is_counted(void **state)
{
    const int64_t before = mt_alloc_held();
    void *a = mt_alloc(1000), *b = mt_alloc_aligned(64, 1 << 20);

    (void)state;
    if (mt_alloc_held() == before)
        skip(); /* the C library does not tell */
    assert_true(mt_alloc_held() - before >= 1000 + (1 << 20));
    a = mt_realloc(a, 1000, 1 << 20);
    assert_true(mt_alloc_held() - before >= 2 << 20);
    mt_free(a);
    mt_free(b);
    mt_free(NULL);
    assert_int_equal(mt_alloc_held(), before);
}

static void overflow(void *arg)
{
    (void)arg;
    mt_free(mt_alloc_array(SIZE_MAX / 4, 5));
}

static void an_array_too_large_ends_the_program(void **state)
{
    char text[256];
    int status = unit_in_child(overflow, NULL, text, sizeof(text));

    (void)state;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    assert_string_equal(
        text, "motet: the system refused 18446744073709551615 bytes of memory: free some or use a smaller model\n");
}

/* Where the system gives no more: what is small comes from the reserve, what is large is refused, and nobody ends. */
static void a_reserve_is_there_when_memory_is_refused(void **state)
{
    const uint64_t before = mt_alloc_refused();
    struct rlimit limit, least;
    unsigned long pages = 0;
    void *small, *grown;
    FILE *f = MT_SANITIZED ? NULL : fopen("/proc/self/statm", "r");

    (void)state;
    if (!f || fscanf(f, "%lu", &pages) != 1)
        skip(); /* no such file, or all addresses are taken already */
    fclose(f);
    assert_false(mt_alloc_scarce()); /* there is none yet */
    mt_alloc_reserve();
    assert_false(mt_alloc_scarce());
    assert_int_equal(0, getrlimit(RLIMIT_AS, &limit));
    least = limit;
    least.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + MT_LIMIT_RESERVE_PIECES * MT_LIMIT_RESERVE_PIECE;
    assert_int_equal(0, setrlimit(RLIMIT_AS, &least));
    small = mt_alloc(MT_LIMIT_RESERVE_PIECE / 2);
    grown = mt_realloc(NULL, 0, MT_LIMIT_RESERVE_PIECE);
    assert_null(mt_alloc_try((size_t)1 << 30));
    assert_null(mt_realloc_try(small, MT_LIMIT_RESERVE_PIECE / 2, (size_t)1 << 30)); /* it is as it was */
    assert_true(mt_alloc_scarce());
    assert_true(mt_alloc_refused() >= before + 3);
    mt_alloc_reserve();
    assert_true(mt_alloc_scarce()); /* there is no memory for it still */
    mt_free(small);
    mt_free(grown);
    assert_int_equal(0, setrlimit(RLIMIT_AS, &limit));
    mt_alloc_reserve();
    assert_false(mt_alloc_scarce());
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_zeroed),
    cmocka_unit_test(nothing_is_something),
    cmocka_unit_test(aligned_is_aligned),
    cmocka_unit_test(realloc_zeroes_the_new_part),
    cmocka_unit_test(strdup_copies),
    cmocka_unit_test(the_guard_aborts),
    cmocka_unit_test(the_guard_nests_and_ends),
    cmocka_unit_test(what_a_thread_holds_is_counted),
    cmocka_unit_test(an_array_too_large_ends_the_program),
    cmocka_unit_test(a_reserve_is_there_when_memory_is_refused),
};
UNIT_MAIN(tests)
