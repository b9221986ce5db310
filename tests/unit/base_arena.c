#include "unit.h"

#include "base/arena.h"

static char order[16];

static void note(void *object)
{
    strncat(order, object, 1);
}

static void memory_is_zeroed_aligned_and_apart(void **state)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 4000, 100, 5000, 3, 1 << 20, 2 << 20, 8};
    mt_arena *arena = mt_arena_new(0);
    unsigned char *p[MT_COUNT(sizes)];

    (void)state;
    for (size_t i = 0; i < MT_COUNT(sizes); i++) {
        p[i] = mt_arena_alloc(arena, sizes[i]);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(p[i][k], 0);
        memset(p[i], (int)i + 1, sizes[i]);
    }
    for (size_t i = 0; i < MT_COUNT(sizes); i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(p[i][k], i + 1);
    mt_arena_free(arena);
}

static void the_limit_is_exact(void **state)
{
    mt_arena *arena = mt_arena_new(64);

    (void)state;
    assert_null(mt_arena_alloc(arena, 65));
    assert_int_equal(mt_arena_used(arena), 0);
    assert_non_null(mt_arena_alloc(arena, 33));
    assert_int_equal(mt_arena_used(arena), 48);
    assert_null(mt_arena_alloc(arena, 17));
    assert_null(mt_arena_alloc(arena, SIZE_MAX));
    assert_non_null(mt_arena_alloc(arena, 16));
    assert_null(mt_arena_alloc(arena, 0));
    assert_null(mt_arena_strdup(arena, "x"));
    assert_null(mt_arena_printf(arena, "%d", 1));
    assert_int_equal(mt_arena_defer(arena, note, order), 0);
    assert_int_equal(mt_arena_used(arena), 64);
    mt_arena_free(arena);
    assert_string_equal(order, "");
}

static void absurd_sizes_fail(void **state)
{
    mt_arena *arena = mt_arena_new(0);

    (void)state;
    assert_null(mt_arena_alloc(arena, SIZE_MAX));
    assert_null(mt_arena_alloc(arena, SIZE_MAX - 8));
    mt_arena_free(arena);
}

static void strings(void **state)
{
    mt_arena *arena = mt_arena_new(0);
    char *copy = mt_arena_strdup(arena, "alto"), *text = mt_arena_printf(arena, "%s %d", copy, 42);

    (void)state;
    assert_string_equal(copy, "alto");
    assert_string_equal(text, "alto 42");
    mt_arena_free(arena);
}

static void hooks_run_newest_first(void **state)
{
    mt_arena *arena = mt_arena_new(0);
    char a[] = "a", b[] = "b", c[] = "c";

    (void)state;
    order[0] = '\0';
    assert_int_equal(mt_arena_defer(arena, note, a), 1);
    assert_int_equal(mt_arena_defer(arena, note, b), 1);
    assert_int_equal(mt_arena_defer(arena, note, c), 1);
    assert_string_equal(order, "");
    mt_arena_free(arena);
    assert_string_equal(order, "cba");
}

static void hooks_see_the_arena_alive(void **state)
{
    mt_arena *arena = mt_arena_new(0);
    char *inside = mt_arena_strdup(arena, "z");

    (void)state;
    order[0] = '\0';
    assert_int_equal(mt_arena_defer(arena, note, inside), 1);
    mt_arena_free(arena);
    assert_string_equal(order, "z");
    mt_arena_free(NULL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(memory_is_zeroed_aligned_and_apart),
    cmocka_unit_test(the_limit_is_exact),
    cmocka_unit_test(absurd_sizes_fail),
    cmocka_unit_test(strings),
    cmocka_unit_test(hooks_run_newest_first),
    cmocka_unit_test(hooks_see_the_arena_alive),
};
UNIT_MAIN(tests)
