/* What is worth most stays. */
#include "unit.h"

#include "cache/anchors.h"

static uint32_t add(mt_anchors *a, mt_anchor_list *list, size_t offset, size_t gain)
{
    const uint32_t slot = mt_anchors_take(a);
    assert_int_not_equal(slot, MT_NO_PAGE);
    mt_anchors_add(a, list, offset, gain, slot);
    mt_anchors_release(a, slot);
    return slot;
}

static void the_deepest_that_fits_is_found(void **state)
{
    mt_anchors a;
    mt_anchor_list list = MT_NO_PAGE;
    (void)state;
    mt_anchors_init(&a, 4, 0);
    assert_int_equal(mt_anchors_find(&a, &list, 32), MT_NO_PAGE);
    const uint32_t low = add(&a, &list, 3, 3), high = add(&a, &list, 20, 17);
    assert_int_equal(mt_anchors_find(&a, &list, 2), MT_NO_PAGE);
    assert_int_equal(mt_anchors_find(&a, &list, 19), low);
    assert_int_equal(mt_anchors_find(&a, &list, 32), high);
    add(&a, &list, 20, 17); /* there is one already */
    assert_int_equal(a.count, 2);
    assert_int_equal(a.slots.free, 2);
    mt_anchors_drop(&a, &list);
    assert_int_equal(a.slots.free, 4);
    mt_anchors_free(&a);
}

static void what_saves_least_goes_first(void **state)
{
    mt_anchors a;
    mt_anchor_list list = MT_NO_PAGE;
    (void)state;
    mt_anchors_init(&a, 3, 0);
    add(&a, &list, 1, 50);
    add(&a, &list, 2, 4);
    add(&a, &list, 3, 30);
    assert_int_equal(mt_anchors_take_for(&a, 3), MT_NO_PAGE); /* worth less than all that is there */
    add(&a, &list, 4, 100);
    assert_int_equal(mt_anchors_find(&a, &list, 2), mt_anchors_find(&a, &list, 1));
    assert_int_equal(a.evictions, 1);
    mt_anchors_free(&a);
}

/* Used ones stay above others of the same gain; what is not used any more sinks below what comes. */
static void use_raises_and_age_sinks(void **state)
{
    mt_anchors a;
    mt_anchor_list list = MT_NO_PAGE;
    (void)state;
    mt_anchors_init(&a, 2, 0);
    const uint32_t used = add(&a, &list, 1, 10);
    mt_anchors_use(&a, used);
    add(&a, &list, 2, 10);
    for (size_t i = 3; i < 6; i++) {
        assert_int_equal(mt_anchors_find(&a, &list, 1), i < 5 ? used : MT_NO_PAGE);
        add(&a, &list, i, 11);
    }
    mt_anchors_free(&a);
}

static void what_is_held_stays(void **state)
{
    mt_anchors a;
    mt_anchor_list list = MT_NO_PAGE, other = MT_NO_PAGE;
    (void)state;
    mt_anchors_init(&a, 2, 0);
    const uint32_t held = add(&a, &list, 1, 1);
    mt_anchors_ref(&a, held);
    assert_false(mt_anchors_own(&a, held));
    add(&a, &list, 2, 99);
    add(&a, &list, 3, 5); /* at the cost of the second */
    assert_int_equal(mt_anchors_find(&a, &list, 2), held);
    mt_anchors_move(&a, &list, &other);
    assert_int_equal(mt_anchors_find(&a, &list, 32), MT_NO_PAGE);
    assert_int_equal(mt_anchors_find(&a, &other, 2), held);
    mt_anchors_drop(&a, &other);
    assert_true(mt_anchors_own(&a, held)); /* the list forgot it, its holder did not */
    assert_int_equal(mt_anchors_held(&a), 1);
    mt_anchors_release(&a, held);
    assert_int_equal(mt_anchors_held(&a), 0);
    mt_anchors_free(&a);
}

/* Spare slots are for who borrows, however many anchors want them. */
static void spare_slots_are_only_lent(void **state)
{
    mt_anchors a;
    mt_anchor_list list = MT_NO_PAGE;
    (void)state;
    mt_anchors_init(&a, 2, 2);
    add(&a, &list, 1, 50);
    add(&a, &list, 2, 60);
    assert_int_equal(mt_anchors_take_for(&a, 3), MT_NO_PAGE);
    const uint32_t one = mt_anchors_borrow(&a), two = mt_anchors_borrow(&a);
    assert_true(one != MT_NO_PAGE && two != MT_NO_PAGE && one != two);
    assert_int_equal(a.evictions, 0);
    assert_int_equal(mt_anchors_borrow(&a), MT_NO_PAGE);
    assert_int_equal(mt_anchors_held(&a), 2);

    /* Who borrowed keeps that slot for good, and lets go of an anchor instead: the next that takes one pays for it. */
    mt_anchors_repay(&a);
    mt_anchors_release(&a, two);
    mt_anchors_repay(&a);
    assert_int_equal(a.slots.free, 1);
    const uint32_t taken = mt_anchors_take(&a);
    assert_int_not_equal(taken, MT_NO_PAGE);
    assert_int_equal(a.evictions, 2);
    assert_int_equal(mt_anchors_take(&a), MT_NO_PAGE);
    assert_int_equal(a.slots.free, 2);
    mt_anchors_release(&a, one);
    mt_anchors_release(&a, taken);
    mt_anchors_free(&a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_deepest_that_fits_is_found), cmocka_unit_test(what_saves_least_goes_first),
    cmocka_unit_test(use_raises_and_age_sinks),       cmocka_unit_test(what_is_held_stays),
    cmocka_unit_test(spare_slots_are_only_lent),
};

UNIT_MAIN(tests)
