#include "unit.h"

#include "cache/pages.h"

static void pages_come_back(void **state)
{
    mt_pages pool;
    (void)state;
    mt_pages_init(&pool, 2);
    const uint32_t a = mt_pages_take(&pool), b = mt_pages_take(&pool);
    assert_int_not_equal(a, b);
    assert_int_equal(mt_pages_take(&pool), MT_NO_PAGE);
    assert_int_equal(mt_pages_unref(&pool, a), 0);
    assert_int_equal(pool.free, 1);
    assert_int_equal(mt_pages_take(&pool), a);
    mt_pages_free(&pool);
}

static void a_page_stays_while_anybody_refers_to_it(void **state)
{
    mt_pages pool;
    (void)state;
    mt_pages_init(&pool, 1);
    const uint32_t a = mt_pages_take(&pool);
    mt_pages_ref(&pool, a);
    assert_int_equal(mt_pages_unref(&pool, a), 1);
    assert_int_equal(pool.free, 0);
    assert_int_equal(mt_pages_unref(&pool, a), 0);
    assert_int_equal(pool.free, 1);
    mt_pages_free(&pool);
}

static void note(void *ctx, size_t pool, uint32_t page, bool freed)
{
    char *said = ctx;
    snprintf(said + strlen(said), 100 - strlen(said), "%zu:%c%u ", pool, freed ? '-' : '+', (unsigned)page);
}

/* The lowest number first, and who watches is told of each. */
static void pages_are_watched(void **state)
{
    char said[100] = "";
    mt_pages pool;
    (void)state;
    mt_pages_init(&pool, 4);
    pool.watch = note;
    pool.watcher = said;
    pool.pool = 7;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(mt_pages_take(&pool), i);
    mt_pages_ref(&pool, 2);
    mt_pages_unref(&pool, 2);
    mt_pages_unref(&pool, 2);
    assert_string_equal(said, "7:+0 7:+1 7:+2 7:+3 7:-2 ");
    mt_pages_free(&pool);
    assert_null(pool.stack);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pages_come_back),
    cmocka_unit_test(a_page_stays_while_anybody_refers_to_it),
    cmocka_unit_test(pages_are_watched),
};

UNIT_MAIN(tests)
