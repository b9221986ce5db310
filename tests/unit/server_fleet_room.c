/* Which models make way for another one, and when; and how memory is divided among models. */
#include "unit.h"

#include "base/alloc.h"
#include "server/fleet/fleet_inside.h"

enum { MODELS = 4, WANTED = MODELS, COUNT = MODELS + 1 };

typedef struct room {
    mt_fleet *fleet;
    mt_member *member[COUNT];
} room;

/* 1000 bytes, of which 100 are no model's. Four models have 200 each, and another, which needs `need`, is wanted. Each
   was loaded at 1000, which took 500. */
static void open_room(room *r, uint64_t need)
{
    r->fleet = mt_alloc(sizeof(*r->fleet));
    for (size_t i = 0; i < COUNT; i++) {
        r->member[i] = mt_alloc(sizeof(*r->member[i]));
        if (i == WANTED)
            *r->member[i] = (mt_member){.state = MT_MEMBER_UNLOADED, .need = need, .measured = true};
        else
            *r->member[i] =
                (mt_member){.state = MT_MEMBER_READY, .grant = 200, .used = 2000 + i, .since = 1000, .loading = 500};
    }
    r->fleet->members = r->member;
    r->fleet->count = COUNT;
    r->fleet->memory = 1000;
    r->fleet->for_all = 100;
}

static void close_room(room *r)
{
    for (size_t i = 0; i < COUNT; i++)
        mt_free(r->member[i]);
    mt_free(r->fleet);
}

/* Which members are chosen, as a bit each, and in front of that those that yield. */
static unsigned chosen(const room *r)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < COUNT; i++)
        bits |= (unsigned)r->member[i]->chosen << i | (unsigned)r->member[i]->yields << (8 + i);
    return bits;
}

/* No more models than have to go are chosen, those that no call uses first, and of these the one that was used longest
   ago: that one goes at once. */
static void the_idle_ones_go_first(void **state)
{
    uint64_t next = UINT64_MAX;
    room r;
    (void)state;
    open_room(&r, 300);
    r.member[0]->references = r.member[3]->references = 1;
    r.member[1]->used = 3000;
    r.member[3]->chosen = true; /* for another one, earlier */
    assert_ptr_equal(mt_fleet_make_way(r.fleet, r.member[WANTED], 1500, &next), r.member[2]);
    assert_int_equal(chosen(&r), 0x0404);
    r.member[WANTED]->need = 301;
    assert_ptr_equal(mt_fleet_make_way(r.fleet, r.member[WANTED], 1500, &next), r.member[2]);
    assert_int_equal(chosen(&r), 0x0606);
    r.member[WANTED]->need = 501; /* then those in use, of which the first was used longest ago */
    assert_ptr_equal(mt_fleet_make_way(r.fleet, r.member[WANTED], 1500, &next), r.member[2]);
    assert_int_equal(chosen(&r), 0x0707);
    r.member[2]->state = MT_MEMBER_LOADING;
    r.member[WANTED]->need = 300;
    assert_ptr_equal(mt_fleet_make_way(r.fleet, r.member[WANTED], 1500, &next), r.member[1]);
    r.member[2]->grant = 0;
    assert_null(mt_fleet_make_way(r.fleet, r.member[WANTED], 1500, &next)); /* there is room */
    assert_int_equal(chosen(&r) & 0xff, 0);
    assert_true(next == UINT64_MAX);
    close_room(&r);
}

/* A model that calls use is not unloaded. It yields when it has been there as long as loading it took. */
static void a_busy_one_yields_after_a_while(void **state)
{
    uint64_t next = UINT64_MAX;
    room r;
    (void)state;
    open_room(&r, 500);
    for (size_t i = 0; i < MODELS; i++)
        r.member[i]->references = 1;
    r.member[2]->used = 1;
    r.member[3]->used = 2;
    r.member[3]->loading = 800;
    assert_null(mt_fleet_make_way(r.fleet, r.member[WANTED], 1499, &next));
    assert_int_equal(chosen(&r), 0x000c);
    assert_int_equal(next, 1500);
    next = UINT64_MAX;
    assert_null(mt_fleet_make_way(r.fleet, r.member[WANTED], 1500, &next));
    assert_int_equal(chosen(&r), 0x040c);
    assert_int_equal(next, 1800);
    next = 1600; /* something else is to be done before */
    assert_null(mt_fleet_make_way(r.fleet, r.member[WANTED], 1500, &next));
    assert_int_equal(next, 1600);
    assert_null(mt_fleet_make_way(r.fleet, r.member[WANTED], 1800, &next));
    assert_int_equal(chosen(&r), 0x0c0c);
    close_room(&r);
}

/* Beyond what a model needs it gets an equal part of the rest, less what others that are named and not loaded need. */
static void the_rest_is_shared(void **state)
{
    room r;
    (void)state;
    open_room(&r, 300);
    assert_int_equal(mt_fleet_free(r.fleet), 100);
    for (size_t i = 0; i < MODELS; i++) {
        r.member[i]->state = MT_MEMBER_UNLOADED;
        r.member[i]->grant = 0;
        r.member[i]->need = 700; /* which does not fit beside it */
    }
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 900);
    r.member[1]->need = 200;
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 300 + (900 - 300 - 200) / 2);
    r.member[2]->need = 400; /* all that is left then */
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 300);
    r.member[2]->need = 401;
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 500);
    r.member[1]->state = MT_MEMBER_READY;
    r.member[1]->grant = 100;
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 300 + (900 - 100 - 300 - 401) / 2);
    r.fleet->open = true; /* none is named: there may be another like it */
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 300 + (800 - 300 - 300) / 2);
    r.member[WANTED]->need = 400;
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 400);
    r.member[WANTED]->need = 401;
    assert_int_equal(mt_fleet_grant(r.fleet, r.member[WANTED]), 800);
    close_room(&r);
}

/* What a model needs is a guess before it was loaded: it is tried where it says more than there is. */
static void a_guess_is_not_more_than_there_is(void **state)
{
    mt_error err = {0};
    room r;
    (void)state;
    open_room(&r, 901);
    mt_member *m = r.member[WANTED];
    m->facts.bytes = 900;
    assert_int_equal(mt_fleet_need(r.fleet, m), 901);
    assert_false(mt_fleet_fits(r.fleet, m, &err));
    m->measured = false;
    assert_int_equal(mt_fleet_need(r.fleet, m), 900);
    assert_true(mt_fleet_fits(r.fleet, m, &err));
    m->facts.bytes = 901;
    assert_false(mt_fleet_fits(r.fleet, m, &err));
    r.fleet->alone = true; /* its engine says so itself */
    assert_true(mt_fleet_fits(r.fleet, m, &err));
    close_room(&r);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_idle_ones_go_first),
    cmocka_unit_test(a_busy_one_yields_after_a_while),
    cmocka_unit_test(the_rest_is_shared),
    cmocka_unit_test(a_guess_is_not_more_than_there_is),
};

UNIT_MAIN(tests)
