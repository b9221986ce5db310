/* Who begins when: requests that share a beginning, answers that nobody reads, and large requests among small ones. The
   clock stands unless a test moves it, between steps and on the engine's thread. */
#include "engine_driver.h"

#include "base/clock.h"
#include "engine/inside.h"

#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"
#define HYBRID FIXTURES "/qwen35-mlx-4bit"
#define WINDOW FIXTURES "/gemma3-mlx-4bit"
#define START UINT64_C(1000000000000000)
#define PATIENCE UINT64_C(2000000000) /* nanoseconds, of plan.c */
#define CONCURRENT UINT64_C(10000000000)

enum { LONGEST = 1024, MANY = 6 };

typedef struct scene {
    driver d;
    size_t steps; /* that have ended */
    void (*between)(struct scene *x);
    uint32_t prompt[LONGEST];
    mt_request *request[MANY];
    answer answers[MANY];
    size_t begun[MANY];  /* number of the step that it began with; 0: it has not */
    size_t rows;         /* of the first step */
    const char *noticed; /* what was not so; NULL: all is well */
} scene;

/* For what is looked at on the engine's thread: the test fails at its end where it is not so. */
#define NOTICE(x, is) ((x)->noticed = (x)->noticed || (is) ? (x)->noticed : #is)

/* Called on the engine's thread: a step is planned, or has ended and the next is not planned yet. */
static void scene_turn(void *ctx, bool begins)
{
    scene *x = ctx;
    driver_turn(&x->d, begins);
    x->steps += begins;
    for (size_t i = 0; i < MANY; i++)
        if (x->begun[i] == 0 && x->answers[i].begun_at > 0)
            x->begun[i] = x->steps;
    if (!begins && x->between)
        x->between(x);
}

/* chunk: most rows of a prompt in a step */
static void scene_open(scene *x, const char *dir, size_t seats, size_t cache, size_t chunk, void (*between)(scene *x))
{
    draw random = {3};
    memset(x, 0, sizeof(*x));
    driver_open(&x->d, dir, MT_PRECISION_FAST, 1);
    x->between = between;
    x->d.params.context = LONGEST;
    x->d.params.sequences = seats;
    x->d.params.cache = cache;
    x->d.params.chunk = chunk;
    x->d.params.speculate = MT_SPECULATE_OFF;
    x->d.params.ahead = MT_AHEAD_NEVER; /* a step that is begun ahead has no plan */
    x->d.params.turn = scene_turn;
    x->d.params.turn_ctx = x;
    mt_clock_set(START);
    driver_start(&x->d);
    draw_tokens(&random, x->prompt, LONGEST, x->d.o.spec.vocab);
}

static void scene_close(scene *x)
{
    driver_wait(&x->d, 0);
    driver_close(&x->d);
    mt_clock_set(0);
    if (x->noticed)
        fail_msg("it is not so that %s", x->noticed);
}

/* Request i: the first `common` tokens of the scene's prompt, then its own. Not sent yet. */
static mt_request *ask(scene *x, size_t i, size_t common, size_t len, size_t tokens)
{
    uint32_t prompt[LONGEST];
    draw random = {100 + i};
    draw_tokens(&random, prompt, len, x->d.o.spec.vocab);
    memcpy(prompt, x->prompt, common * sizeof(*prompt));
    if (common < len)
        prompt[common] = x->prompt[common] ? 0 : 1;
    return x->request[i] = driver_request(&x->d, prompt, len, tokens, &x->answers[i]);
}

/* ---- a beginning that several share ---- */

typedef struct shared {
    const char *what, *dir;
    size_t chunk, after;            /* rows that the leader computes in a step; its steps before the follower comes */
    size_t leader_len, common, len; /* of the leader's prompt, what both share, of the follower's prompt */
    int32_t leader_priority, priority; /* the lower comes first */
    uint8_t salt;                      /* the follower's */
    bool evicts;                       /* pages that windows have left are evicted before the follower comes */
    uint32_t cut;                      /* a turn begins there in the leader's prompt; 0: nowhere */
    size_t begins, cached;             /* the step that the follower begins with, and what it finds then */
} shared;

static const shared *story;

/* Takes all pages of the second group that no sequence holds, and gives them back. */
static void evict_windows(mt_tree *tree)
{
    uint32_t page[8 * LONGEST / MT_PAGE_TOKENS];
    size_t count = mt_tree_available(tree, 1);
    assert_true(count <= MT_COUNT(page));
    for (size_t i = 0; i < count; i++)
        page[i] = mt_tree_take(tree, 1);
    while (count-- > 0)
        mt_tree_release(tree, 1, page[count], false);
}

static void send_follower(scene *x)
{
    if (x->steps != story->after)
        return;
    if (story->evicts)
        evict_windows(x->d.engine->tree);
    driver_send(&x->d, x->request[1]);
}

static void check_shared(const shared *c)
{
    static scene x;
    story = c;
    scene_open(&x, c->dir, 4, 0, c->chunk, send_follower);
    mt_request *leader = ask(&x, 0, c->leader_len, c->leader_len, 40), *follower = ask(&x, 1, c->common, c->len, 2);
    leader->priority = c->leader_priority;
    leader->cuts = &c->cut;
    leader->cut_count = c->cut > 0;
    follower->priority = c->priority;
    follower->salt[0] = c->salt;
    driver_send(&x.d, leader);
    scene_close(&x);
    if (x.begun[1] != c->begins || x.answers[1].cached != c->cached)
        fail_msg("%s: began with step %zu and %zu cached, not %zu and %zu", c->what, x.begun[1], x.answers[1].cached,
                 c->begins, c->cached);
}

/* A request waits for one that is computing the next page of both, if that one is at least as important; not for a page
   whose last position it has to compute itself, and not for one that nobody is going to compute. */
static void who_shares_pages_waits_for_them(void **state)
{
    static const shared rows[] = {
        {"of one priority", FIXTURE, 32, 1, 256, 200, 220, .begins = 7, .cached = 192},
        {"a more important leader", FIXTURE, 32, 1, 256, 200, 220, -1, 0, .begins = 7, .cached = 192},
        {"a less important leader", FIXTURE, 32, 1, 256, 200, 220, 1, 0, .begins = 2, .cached = 32},
        {"another salt", FIXTURE, 16, 1, 256, 200, 220, .salt = 1, .begins = 2, .cached = 0},
        {"another text", FIXTURE, 32, 1, 256, 40, 220, .begins = 2, .cached = 32},
        {"a leader that ends with the page", FIXTURE, 32, 1, 64, 64, 104, .begins = 3, .cached = 64},
        {"one position behind the page", FIXTURE, 32, 1, 100, 65, 65, .begins = 3, .cached = 64},
        {"its last position is in the page", FIXTURE, 32, 1, 100, 64, 64, .begins = 2, .cached = 32},
        {"pages that the leader's window has left", WINDOW, 64, 10, 800, 64, 100, .evicts = true, .begins = 11,
         .cached = 0},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        check_shared(&rows[i]);
}

/* The same of a model with recurrent layers: a request waits for the state at the end of what both share, where that is
   more than a page beyond what is cached and the other one is not past it. */
static void who_shares_a_state_waits_for_it(void **state)
{
    static const shared rows[] = {
        {"of one priority", HYBRID, 32, 1, 256, 200, 220, .begins = 8, .cached = 200},
        {"a more important leader", HYBRID, 32, 1, 256, 200, 220, -1, 0, .begins = 8, .cached = 200},
        {"a less important leader", HYBRID, 32, 1, 256, 200, 220, 1, 0, .begins = 2, .cached = 0},
        {"another salt", HYBRID, 16, 1, 256, 200, 220, .salt = 1, .begins = 2, .cached = 0},
        {"a page in common", HYBRID, 16, 1, 256, 32, 220, .begins = 2, .cached = 0},
        {"more than a page in common", HYBRID, 16, 1, 256, 33, 220, .begins = 4, .cached = 33},
        {"a page behind a state that is there", HYBRID, 16, 5, 256, 96, 220, .cut = 64, .begins = 6, .cached = 64},
        {"more than a page behind it", HYBRID, 16, 5, 256, 97, 220, .cut = 64, .begins = 8, .cached = 97},
        {"all of it but the last position", HYBRID, 32, 1, 256, 100, 100, .begins = 5, .cached = 99},
        {"the leader is there", HYBRID, 32, 3, 256, 96, 220, .begins = 4, .cached = 0},
        {"the leader is past it", HYBRID, 32, 4, 256, 100, 220, .begins = 5, .cached = 0},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        check_shared(&rows[i]);
}

/* ---- patience ---- */

static bool is_seated(const scene *x, size_t i)
{
    const mt_engine *e = x->d.engine;
    for (size_t k = 0; k < e->running_count; k++)
        if (e->running[k]->request == x->request[i])
            return true;
    return false;
}

enum { SLOW, BUSY, NEXT };

/* Nobody reads SLOW, and later NEXT; BUSY is answered all the time, so that there are steps. */
static void nobody_reads(scene *x)
{
    const uint64_t last = START + PATIENCE / 2; /* when SLOW gave its last token, of the second step */
    switch (x->steps) {
    case 1: mt_clock_set(last); break;
    case 3:
        NOTICE(x, is_seated(x, SLOW) && x->answers[SLOW].count == 1);
        mt_clock_set(last + PATIENCE);
        break;
    case 4:
        NOTICE(x, is_seated(x, SLOW) && !is_seated(x, NEXT));
        mt_clock_set(last + PATIENCE + 1);
        break;
    case 5:
        NOTICE(x, !is_seated(x, SLOW) && is_seated(x, BUSY) && is_seated(x, NEXT));
        atomic_store(&x->request[NEXT]->paused, true);
        mt_clock_set(last + 3 * PATIENCE);
        break;
    case 7: /* who waits is not read either, so that nobody makes way for it */
        NOTICE(x, !is_seated(x, SLOW) && is_seated(x, NEXT));
        atomic_store(&x->request[SLOW]->paused, false);
        break;
    case 8:
        NOTICE(x, is_seated(x, SLOW) && !is_seated(x, NEXT));
        atomic_store(&x->request[NEXT]->paused, false);
        mt_clock_set(last + 6 * PATIENCE);
        break;
    case 9: /* answers that are read keep their seats, however long the last step took */
        NOTICE(x, is_seated(x, SLOW) && is_seated(x, BUSY));
        break;
    }
}

/* An answer that its client does not read keeps its seat for two seconds after its last token, and longer where no
   request that could go on waits. */
static void an_unread_answer_keeps_its_seat_for_a_while(void **state)
{
    static scene x;
    (void)state;
    scene_open(&x, FIXTURE, 2, 0, 32, nobody_reads);
    atomic_store(&ask(&x, SLOW, 0, 40, 4)->paused, true); /* which counts from the first token on */
    driver_hold(&x.d);
    driver_send(&x.d, x.request[SLOW]);
    driver_send(&x.d, ask(&x, BUSY, 0, 10, 40));
    driver_send(&x.d, ask(&x, NEXT, 0, 10, 4));
    driver_let_go(&x.d);
    scene_close(&x);
    assert_true(x.steps > 8 && x.answers[SLOW].count == 4 && x.answers[NEXT].count == 4);
}

static void nobody_waits(scene *x)
{
    if (x->steps == 3)
        mt_clock_set(START + 100 * PATIENCE);
    if (x->steps == 5) {
        NOTICE(x, is_seated(x, SLOW));
        atomic_store(&x->request[SLOW]->paused, false);
    }
}

static void where_nobody_waits_it_keeps_it_for_ever(void **state)
{
    static scene x;
    (void)state;
    scene_open(&x, FIXTURE, 2, 0, 32, nobody_waits);
    atomic_store(&ask(&x, SLOW, 0, 10, 4)->paused, true);
    driver_hold(&x.d);
    driver_send(&x.d, x.request[SLOW]);
    driver_send(&x.d, ask(&x, BUSY, 0, 10, 40));
    driver_let_go(&x.d);
    scene_close(&x);
    assert_int_equal(x.answers[SLOW].count, 4);
}

enum { FIRST, LARGE, SMALL }; /* FIRST has so many pages that LARGE does not fit beside it; each SMALL does */

/* Small requests come one after the other. */
static void small_ones_come(scene *x)
{
    switch (x->steps) {
    case 2:
        driver_send(&x->d, ask(x, LARGE, 0, 250, 2));
        driver_send(&x->d, ask(x, SMALL, 0, 10, 2));
        break;
    case 4:
        NOTICE(x, x->begun[SMALL] == 3); /* it will be done sooner */
        mt_clock_set(START + PATIENCE);
        driver_send(&x->d, ask(x, SMALL + 1, 0, 10, 2));
        break;
    case 6:
        NOTICE(x, x->begun[SMALL + 1] == 5);
        mt_clock_set(START + PATIENCE + 1);
        driver_send(&x->d, ask(x, SMALL + 2, 0, 10, 2));
        ask(x, SMALL + 3, 0, 10, 2)->client.id = 1; /* a client without a seat: patience is among one's own */
        driver_send(&x->d, x->request[SMALL + 3]);
        break;
    }
}

/* A request that has waited for more than two seconds comes before smaller ones of its client: nothing else takes the
   pages that it needs. */
static void who_has_waited_long_comes_first(void **state)
{
    static scene x;
    (void)state;
    scene_open(&x, FIXTURE, 8, 10 * MT_PAGE_TOKENS, 128, small_ones_come);
    driver_send(&x.d, ask(&x, FIRST, 0, 90, 30));
    scene_close(&x);
    assert_int_equal(x.begun[SMALL + 3], 7);
    assert_true(x.begun[LARGE] > 30);
    assert_true(x.answers[LARGE].begun_at < x.answers[SMALL + 2].begun_at);
}

/* ---- a seat for another client ---- */

enum { LEADER, NEIGHBOUR, FOLLOWER };

static void all_seats_are_one_clients(scene *x)
{
    const bool seated = is_seated(x, LEADER) && is_seated(x, NEIGHBOUR);
    mt_request *follower = x->request[FOLLOWER];
    if (!follower && x->steps < 6)
        NOTICE(x, seated && x->d.engine->stats.yields == 0);
    if (follower && seated) { /* the first step may have begun between the two requests */
        x->request[FOLLOWER] = NULL;
        driver_send(&x->d, follower);
    }
}

/* A client without a seat gets one when its request may begin; as long as that waits for pages which another is
   computing, nobody makes way. */
static void no_seat_is_left_to_who_may_not_begin(void **state)
{
    static scene x;
    mt_stats stats;
    (void)state;
    scene_open(&x, FIXTURE, 2, 0, 32, all_seats_are_one_clients);
    ask(&x, FOLLOWER, 200, 220, 2)->client.id = 1;
    driver_hold(&x.d);
    driver_send(&x.d, ask(&x, LEADER, 256, 256, 40));
    driver_send(&x.d, ask(&x, NEIGHBOUR, 0, 10, 40));
    driver_let_go(&x.d);
    driver_wait(&x.d, 0);
    driver_stats(&x.d, &stats);
    assert_int_equal(stats.yields, 1);
    scene_close(&x);
    assert_int_equal(x.answers[FOLLOWER].cached, 192);
    assert_true(x.answers[FOLLOWER].ended_at < x.answers[LEADER].ended_at);
}

/* ---- concurrent requests ---- */

static void note_rows(scene *x)
{
    if (x->steps == 1)
        x->rows = x->d.engine->step.batch.rows;
}

/* Rows of the first step of a long prompt that is alone, `after` nanoseconds after two requests were there together, or
   where there never were (0). step_ms: as the option, 0 where it is not given. A step takes a millisecond, and one more
   for each row. */
static size_t rows_alone(uint64_t after, double step_ms)
{
    static scene x;
    mt_stats stats;
    scene_open(&x, FIXTURE, 4, 0, 0, note_rows);
    for (size_t i = 0; i < 3; i++)
        x.d.engine->past.cost.term[i] = 1e-3;
    x.d.engine->params.step_ms = step_ms;
    driver_hold(&x.d);
    for (size_t i = 0; i < 2 && after; i++)
        driver_send(&x.d, ask(&x, i, 0, 10, 4));
    driver_let_go(&x.d);
    driver_wait(&x.d, 0);
    driver_stats(&x.d, &stats); /* the last step is over */
    mt_clock_set(START + after);
    x.steps = 0;
    driver_send(&x.d, ask(&x, 2, 0, 800, 1));
    scene_close(&x);
    return x.rows;
}

/* A step of prompts takes 120 ms where requests do not meet, and 20 ms for ten seconds after they have met: whoever
   comes next waits less. --step-ms bounds it where it is less. */
static void a_step_is_short_where_requests_meet(void **state)
{
    (void)state;
    assert_in_range(rows_alone(0, 0), 110, 119);
    assert_in_range(rows_alone(CONCURRENT - 1, 0), 10, 19);
    assert_in_range(rows_alone(CONCURRENT, 0), 110, 119);
    assert_in_range(rows_alone(0, 10), 5, 9);
    assert_in_range(rows_alone(0, 1000), 110, 119);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_shares_pages_waits_for_them),
    cmocka_unit_test(who_shares_a_state_waits_for_it),
    cmocka_unit_test(an_unread_answer_keeps_its_seat_for_a_while),
    cmocka_unit_test(where_nobody_waits_it_keeps_it_for_ever),
    cmocka_unit_test(who_has_waited_long_comes_first),
    cmocka_unit_test(no_seat_is_left_to_who_may_not_begin),
    cmocka_unit_test(a_step_is_short_where_requests_meet),
};

UNIT_MAIN(tests)
