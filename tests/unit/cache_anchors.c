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

static uint32_t lowest_idle(const mt_anchors *a)
{
    uint32_t lowest = MT_NO_PAGE;
    for (uint32_t i = 0; i < a->slots.total; i++)
        if (a->of[i].list && a->slots.refs[i] == 1 && (lowest == MT_NO_PAGE || a->of[i].rank < a->of[lowest].rank))
            lowest = i;
    return lowest;
}

/* Each eviction takes the lowest of all that nobody holds, while others are used, held, dropped and let go. */
static void the_lowest_of_many_goes(void **state)
{
    enum { MANY = 300 };
    mt_anchor_list list[MANY];
    mt_anchors a;
    uint64_t random = 17;
    (void)state;
    mt_anchors_init(&a, MANY, 0);
    for (uint32_t i = 0; i < MANY; i++) {
        list[i] = MT_NO_PAGE;
        assert_int_equal(add(&a, &list[i], 1, 1 + i * 37 % 101), i);
    }
    for (size_t i = 0; i < 10 * MANY; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t drawn = (size_t)(random >> 33);
        const uint32_t other = (uint32_t)(drawn / 7 % MANY);
        if (drawn % 3 == 0)
            mt_anchors_use(&a, other);
        mt_anchors_ref(&a, other);
        const uint32_t lowest = lowest_idle(&a);
        assert_int_equal(mt_anchors_take(&a), lowest);
        assert_int_equal(mt_anchors_held(&a), 2);
        mt_anchors_add(&a, &list[lowest], 1, 1 + drawn % 101, lowest);
        mt_anchors_release(&a, lowest);
        if (drawn % 5 == 0) { /* its list forgets it before its holder does */
            mt_anchors_drop(&a, &list[other]);
            mt_anchors_add(&a, &list[other], 1, 1 + drawn % 53, other);
        }
        mt_anchors_release(&a, other);
        assert_int_equal(mt_anchors_held(&a), 0);
    }
    assert_int_equal(a.evictions, 10 * MANY);
    assert_int_equal(a.count, MANY);
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
    cmocka_unit_test(the_deepest_that_fits_is_found),
    cmocka_unit_test(what_saves_least_goes_first),
    cmocka_unit_test(use_raises_and_age_sinks),
    cmocka_unit_test(the_lowest_of_many_goes),
    cmocka_unit_test(what_is_held_stays),
    cmocka_unit_test(spare_slots_are_only_lent),
};

UNIT_MAIN(tests)
