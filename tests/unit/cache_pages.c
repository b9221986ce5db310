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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pages_come_back),
    cmocka_unit_test(a_page_stays_while_anybody_refers_to_it),
};

UNIT_MAIN(tests)
