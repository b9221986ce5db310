#include "unit.h"

#include "cache/pages.h"

static void pages_come_back(void **state)
{
    mt_pages pool;
    mt_seq a, b;
    (void)state;
    mt_pages_init(&pool, 4);
    mt_seq_init(&a, 100, 32);
    mt_seq_init(&b, 64, 32);
    assert_true(mt_seq_grow(&a, &pool, 33));
    assert_int_equal(a.pages, 2);
    assert_true(mt_seq_grow(&b, &pool, 1));
    assert_int_equal(pool.free, 1);
    for (size_t i = 0; i < a.pages; i++)
        assert_int_not_equal(a.page[i], b.page[0]);
    mt_seq_free(&a, &pool);
    mt_seq_free(&b, &pool);
    assert_int_equal(pool.free, pool.total);
    mt_pages_free(&pool);
}

static void growing_is_idempotent_and_bounded(void **state)
{
    mt_pages pool;
    mt_seq a;
    (void)state;
    mt_pages_init(&pool, 8);
    mt_seq_init(&a, 64, 32);
    assert_true(mt_seq_grow(&a, &pool, 64));
    assert_true(mt_seq_grow(&a, &pool, 10));
    assert_int_equal(a.pages, 2);
    assert_false(mt_seq_grow(&a, &pool, 65)); /* its own limit */
    assert_int_equal(pool.free, 6);
    mt_seq_free(&a, &pool);
    mt_pages_free(&pool);
}

static void a_dry_pool_changes_nothing(void **state)
{
    mt_pages pool;
    mt_seq a;
    (void)state;
    mt_pages_init(&pool, 2);
    mt_seq_init(&a, 1000, 32);
    assert_true(mt_seq_grow(&a, &pool, 32));
    assert_false(mt_seq_grow(&a, &pool, 128));
    assert_int_equal(a.pages, 1);
    assert_int_equal(pool.free, 1);
    mt_seq_free(&a, &pool);
    mt_pages_free(&pool);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(pages_come_back),
    cmocka_unit_test(growing_is_idempotent_and_bounded),
    cmocka_unit_test(a_dry_pool_changes_nothing),
};

UNIT_MAIN(tests)
