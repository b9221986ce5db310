/* Who comes next, and how many may wait: counts alone, without an engine. */
#include "unit.h"

#include "base/alloc.h"
#include "engine/clients.h"
#include "engine/places.h"

#define SECOND 1000000000ull

static mt_client_record *enter(mt_clients *c, uint64_t id, uint32_t share, size_t running, size_t eager)
{
    mt_client_record *g = mt_clients_enter(c, &(mt_client){.id = id, .share = share}, running + eager, 0);
    g->running = running;
    g->eager = eager;
    return g;
}

/* Gives out seats one by one and counts whose they are. */
static void give(mt_clients *c, size_t seats)
{
    for (mt_client_record *g; seats > 0 && (g = mt_clients_next(c)); seats--)
        g->places++;
}

static void the_fewest_seats_come_first(void **state)
{
    mt_clients c;
    (void)state;
    mt_clients_init(&c, 100);
    mt_client_record *greedy = enter(&c, 1, 1, 10, 50), *modest = enter(&c, 2, 1, 1, 3),
                     *fresh = enter(&c, 3, 1, 0, 20);
    give(&c, 4);
    assert_int_equal(fresh->places, 2);
    assert_int_equal(modest->places, 2);
    assert_int_equal(greedy->places, 0);
    give(&c, 30);
    assert_int_equal(modest->places, 3); /* it wants no more */
    assert_int_equal(greedy->places + fresh->places, 31);
    assert_true(greedy->running + greedy->places <= fresh->places + 1);
    assert_true(fresh->places <= greedy->running + greedy->places + 1);
    mt_clients_free(&c);
}

static void a_share_of_three_has_three_times_as_many(void **state)
{
    mt_clients c;
    (void)state;
    mt_clients_init(&c, 100);
    mt_client_record *small = enter(&c, 1, 1, 0, 50), *large = enter(&c, 2, 3, 0, 50);
    give(&c, 40);
    assert_int_equal(small->places, 10);
    assert_int_equal(large->places, 30);
    mt_clients_free(&c);
}

static void who_is_last_has_what_nobody_else_wants(void **state)
{
    mt_clients c;
    (void)state;
    mt_clients_init(&c, 100);
    mt_client_record *many = enter(&c, 1, 1, 60, 3),
                     *last = mt_clients_enter(&c, &(mt_client){.id = 2, .share = 9, .last = true}, 5, 0);
    last->eager = 5;
    give(&c, 3);
    assert_int_equal(many->places, 3);
    assert_int_equal(last->places, 0);
    give(&c, 9);
    assert_int_equal(last->places, 5);
    assert_true(mt_client_record_compare(many, 1, last, -1) < 0); /* it yields a seat at once, and takes none */
    assert_true(mt_client_record_compare(last, 1, many, -1) > 0);
    mt_clients_free(&c);
}

static void of_equals_who_has_had_less_comes_first(void **state)
{
    mt_clients c;
    (void)state;
    mt_clients_init(&c, 100);
    mt_client_record *a = enter(&c, 1, 1, 1, 1), *b = enter(&c, 2, 1, 1, 1);
    mt_client_record_charge(a, 4, SECOND);
    mt_client_record_charge(b, 1, SECOND);
    a->debt = mt_client_record_debt(a, 6 * SECOND);
    b->debt = mt_client_record_debt(b, 6 * SECOND);
    assert_true(a->debt > 1.99 && a->debt < 2.01); /* half of it is forgotten */
    assert_ptr_equal(mt_clients_next(&c), b);
    b->eager = 0;
    assert_ptr_equal(mt_clients_next(&c), a);
    a->eager = 0;
    assert_null(mt_clients_next(&c));
    mt_clients_free(&c);
}

/* Half of what a client has had is forgotten in five seconds; the rest counts by its share, and more is added to it. */
static void a_debt_is_divided_by_the_share(void **state)
{
    mt_client_record g = {.client = {.share = 4}};
    (void)state;
    mt_client_record_charge(&g, 8, SECOND);
    assert_float_equal(mt_client_record_debt(&g, SECOND), 2, 1e-9);
    assert_float_equal(mt_client_record_debt(&g, 6 * SECOND), 1, 1e-9);
    mt_client_record_charge(&g, 4, 6 * SECOND);
    assert_float_equal(mt_client_record_debt(&g, 6 * SECOND), 2, 1e-9);
    assert_float_equal(mt_client_record_debt(&g, 16 * SECOND), 0.5, 1e-9);
}

/* Those that have gone are remembered, until there are too many; those that are here are never forgotten. */
static void debts_outlive_requests(void **state)
{
    mt_clients c;
    (void)state;
    mt_clients_init(&c, 10);
    mt_client_record *here = enter(&c, 1, 1, 1, 0), *gone = enter(&c, 2, 1, 1, 0);
    mt_client_record_charge(gone, 3, 0);
    gone->here = 0;
    for (uint64_t id = 10; id < 1000; id++) {
        mt_client_record *g = enter(&c, id, 1, 0, 0);
        mt_client_record_charge(g, 1, 0);
    }
    assert_true(c.count <= c.most);
    assert_ptr_equal(enter(&c, 1, 1, 1, 0), here);
    assert_int_equal(here->here, 2);
    assert_ptr_equal(enter(&c, 2, 1, 1, 0), gone);
    assert_true(mt_client_record_debt(gone, 0) == 3);
    mt_clients_free(&c);
}

/* As many as it gets, one after the other. */
static size_t take_all(mt_places *p, const mt_client *client)
{
    mt_error err;
    size_t got = 0;
    while (mt_places_take(p, client, 1, 1, &err))
        got++;
    return got;
}

static void one_client_leaves_places_to_others(void **state)
{
    const mt_client first = {.id = 1, .share = 1}, second = {.id = 2, .share = 1}, large = {.id = 3, .share = 4};
    mt_places p;
    mt_error err;
    (void)state;
    mt_places_init(&p, 120);
    assert_int_equal(take_all(&p, &first), 120);
    assert_int_equal(mt_places_take(&p, &first, 1, 16, &err), 0);
    assert_int_equal(err.code, MT_E_BUSY);
    assert_string_equal(err.text, "120 requests wait or run already, 120 of them yours, and no more of yours may; "
                                  "try again later");
    assert_int_equal(take_all(&p, &second), 30);
    assert_int_equal(mt_places_take(&p, &large, 1, 5, &err), 5); /* however many clients have come */
    mt_places_give(&p, &large, 5);
    mt_places_give(&p, &first, 100); /* and when there is room, who has fewer may have more */
    assert_int_equal(take_all(&p, &second), 75);
    mt_places_give(&p, &first, 20);
    mt_places_give(&p, &second, 105);
    assert_int_equal(p.taken + p.count, 0);
    assert_true(take_all(&p, &large) > 120); /* a larger share */
    mt_places_free(&p);
}

/* The smallest queue has as many places for one as it says, and one for somebody else. */
static void the_last_place_is_for_who_has_none(void **state)
{
    (void)state;
    for (size_t most = 1; most < 50; most++) {
        mt_places p;
        mt_error err;
        mt_places_init(&p, most);
        assert_int_equal(take_all(&p, &(mt_client){.id = 1, .share = 1}), most);
        assert_int_equal(mt_places_take(&p, &(mt_client){.id = 2, .share = 1}, 1, 1, &err), 1);
        mt_places_free(&p);
    }
}

/* Of those that are away the one that owes least is forgotten for a newcomer, wherever its record stands. */
static void the_least_debt_is_forgotten(void **state)
{
    static const size_t places[] = {0, 1, MT_CLIENTS - 1};
    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        mt_clients c;
        mt_clients_init(&c, 100);
        for (size_t k = 0; k < MT_CLIENTS; k++) {
            mt_client_record *g = enter(&c, k + 1, 1, 0, 1);
            mt_client_record_charge(g, k == places[i] ? 2 : k == (places[i] + 1) % MT_CLIENTS ? 1 : 3, 0);
            g->here = k == (places[i] + 1) % MT_CLIENTS; /* who owes less, but is here */
        }
        const mt_client_record *g = enter(&c, 1000, 1, 0, 1);
        assert_int_equal(g - c.client_record, places[i]);
        assert_int_equal(c.count, MT_CLIENTS);
        assert_true(g->seconds == 0);
        mt_clients_free(&c);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_fewest_seats_come_first),
    cmocka_unit_test(a_share_of_three_has_three_times_as_many),
    cmocka_unit_test(a_debt_is_divided_by_the_share),
    cmocka_unit_test(who_is_last_has_what_nobody_else_wants),
    cmocka_unit_test(of_equals_who_has_had_less_comes_first),
    cmocka_unit_test(debts_outlive_requests),
    cmocka_unit_test(the_least_debt_is_forgotten),
    cmocka_unit_test(one_client_leaves_places_to_others),
    cmocka_unit_test(the_last_place_is_for_who_has_none),
};

UNIT_MAIN(tests)
