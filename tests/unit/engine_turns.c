/* Seats are shared by client: who has many gives way to who has few, and every answer is what it is alone. */
#include "engine_driver.h"

#include <unistd.h>

#include "engine/inside.h"

#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"
#define HYBRID FIXTURES "/qwen35-mlx-4bit"

enum { PROMPT = 50, GREEDY = 6 };

/* At a token of its own it sends what others ask: when it is certain that it has a seat, and goes on for long. */
typedef struct host {
    asked inner; /* what driver_event takes */
    mt_request *client_records[GREEDY];
    size_t count, at;
} host;

static void host_event(void *ctx, const mt_event *ev)
{
    host *h = ctx;
    mt_error err = {0};
    driver_event(&h->inner, ev);
    if (ev->kind != MT_EVENT_TOKEN || h->inner.answers->count != h->at)
        return;
    for (size_t i = 0; i < h->count; i++)
        if (!mt_engine_submit(h->inner.d->engine, h->client_records[i], &err))
            abort();
}

static void open_seats(driver *d, const char *dir, size_t seats, size_t cache)
{
    driver_open(d, dir, MT_PRECISION_FAST, 2);
    d->params.sequences = seats;
    d->params.cache = cache;
    driver_start(d);
}

static mt_request *request_of(driver *d, const uint32_t *prompt, size_t tokens, uint64_t client, answer *to)
{
    mt_request *r = driver_request(d, prompt, PROMPT, tokens, to);
    r->client.id = client;
    return r;
}

static void draw_prompts(uint32_t prompt[][PROMPT], size_t count, uint32_t vocab)
{
    draw random = {count};
    for (size_t i = 0; i < count; i++)
        draw_tokens(&random, prompt[i], PROMPT, vocab);
}

/* Until it has a seat: while the engine is held, whoever comes from now on is seen by its next plan, not by this. */
static void wait_for_begin(driver *d, const answer *a)
{
    for (bool begun = false; !begun; usleep(100)) {
        pthread_mutex_lock(&d->lock);
        begun = a->begun_at > 0;
        pthread_mutex_unlock(&d->lock);
    }
}

/* What each answers alone, whole and from an empty cache. */
static void ask_alone(const char *dir, const uint32_t prompt[][PROMPT], size_t count, answer *alone)
{
    for (size_t i = 0; i < count; i++) {
        driver d;
        open_seats(&d, dir, 1, 0);
        driver_ask(&d, prompt[i], PROMPT, ANSWER_TOKENS, &alone[i]);
        driver_close(&d);
    }
}

/* All seats are one client's, and more of it wait, when another comes with a short request. `seats` are all there are,
   `cache` is what they fill. */
static void check_newcomer(const char *dir, size_t seats, size_t cache)
{
    static uint32_t prompt[GREEDY + 1][PROMPT];
    static answer alone[GREEDY + 1], got[GREEDY + 1];
    driver d;
    mt_stats stats;
    open_seats(&d, dir, seats, cache);
    draw_prompts(prompt, GREEDY + 1, d.o.spec.vocab);
    host h = {.inner = {&d, &got[0]}, .count = 1, .at = 8};
    h.client_records[0] = request_of(&d, prompt[GREEDY], 4, 2, &got[GREEDY]);
    d.open = d.sent = 1; /* the client's record */
    driver_hold(&d);
    for (size_t i = 0; i < GREEDY; i++) {
        mt_request *r = request_of(&d, prompt[i], ANSWER_TOKENS, 1, &got[i]);
        r->priority = -5; /* which counts among its own */
        if (i == 0) {
            r->event = host_event;
            r->ctx = &h;
        }
        driver_send(&d, r);
    }
    driver_let_go(&d);
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_true(stats.yields > 0);
    assert_int_equal(stats.pages_held[0], 0);
    assert_int_equal(stats.states_held, 0);
    driver_close(&d);
    for (size_t i = 0; i < GREEDY; i++) /* no answer of theirs had ended before it */
        assert_true(got[GREEDY].ended_at < got[i].ended_at);
    ask_alone(dir, (const uint32_t(*)[PROMPT])prompt, GREEDY + 1, alone);
    alone[GREEDY].count = 4;
    for (size_t i = 0; i <= GREEDY; i++)
        expect_same("among others", &alone[i], &got[i]);
}

static void a_newcomer_gets_a_seat_at_once(void **state)
{
    (void)state;
    check_newcomer(FIXTURE, 2, 0);
    check_newcomer(HYBRID, 2, 0);
}

/* Seats are left, but the others' answers have all pages. */
static void a_newcomer_gets_pages_at_once(void **state)
{
    (void)state;
    check_newcomer(FIXTURE, 8, 12 * MT_PAGE_TOKENS);
}

/* Lines of a batch have both seats when a client sends two requests: they take both at once, where of another client's
   they would have one. */
static void lines_of_batches_leave_all_seats(void **state)
{
    static uint32_t prompt[GREEDY + 2][PROMPT];
    static answer alone[GREEDY + 2], got[GREEDY + 2];
    driver d;
    (void)state;
    open_seats(&d, FIXTURE, 2, 0);
    draw_prompts(prompt, GREEDY + 2, d.o.spec.vocab);
    host h = {.inner = {&d, &got[0]}, .count = 2, .at = 8};
    for (size_t i = 0; i < 2; i++)
        h.client_records[i] = request_of(&d, prompt[GREEDY + i], 4, 2, &got[GREEDY + i]);
    d.open = d.sent = 2;
    driver_hold(&d);
    for (size_t i = 0; i < GREEDY; i++) {
        mt_request *r = request_of(&d, prompt[i], ANSWER_TOKENS, 1, &got[i]);
        r->client.last = true;
        if (i == 0) {
            r->event = host_event;
            r->ctx = &h;
        }
        driver_send(&d, r);
    }
    driver_let_go(&d);
    driver_wait(&d, 0);
    driver_close(&d);
    assert_true(got[GREEDY + 1].begun_at < got[GREEDY].ended_at); /* side by side */
    for (size_t i = 0; i < GREEDY; i++)
        assert_true(got[GREEDY].ended_at < got[i].ended_at && got[GREEDY + 1].ended_at < got[i].ended_at);
    ask_alone(FIXTURE, (const uint32_t(*)[PROMPT])prompt, GREEDY + 2, alone);
    for (size_t i = 0; i < GREEDY + 2; i++) {
        alone[i].count = i < GREEDY ? alone[i].count : 4;
        expect_same("beside a batch", &alone[i], &got[i]);
    }
}

/* Two of each client have a seat, though one came first with all it has. */
static void free_seats_go_to_who_has_fewest(void **state)
{
    static uint32_t prompt[2 * GREEDY][PROMPT];
    static answer got[2 * GREEDY];
    driver d;
    uint64_t last = 0;
    (void)state;
    open_seats(&d, FIXTURE, 4, 0);
    draw_prompts(prompt, 2 * GREEDY, d.o.spec.vocab);
    driver_hold(&d);
    /* one that is under way while the others come: they are all there when seats are given out */
    driver_send(&d, request_of(&d, prompt[0], ANSWER_TOKENS, 3, &got[0]));
    wait_for_begin(&d, &got[0]);
    for (size_t i = 1; i < 2 * GREEDY; i++)
        driver_send(&d, request_of(&d, prompt[i], ANSWER_TOKENS, i <= GREEDY ? 1 : 2, &got[i]));
    driver_let_go(&d);
    driver_wait(&d, 0);
    for (size_t i = 1; i <= GREEDY; i++) /* the newcomers' first before anybody's third */
        last = i > 2 && (last == 0 || got[i].begun_at < last) ? got[i].begun_at : last;
    assert_true(got[GREEDY + 1].begun_at < last);
    driver_close(&d);
}

/* An answer without end, which nobody keeps: it is cancelled when another has ended. */
typedef struct endless {
    driver *d;
    mt_request *request;
    const answer *until;
    mt_finish finish;
} endless;

static void endless_event(void *ctx, const mt_event *ev)
{
    endless *x = ctx;
    pthread_mutex_lock(&x->d->lock);
    if (x->until->ended_at > 0)
        atomic_store(&x->request->cancelled, true);
    if (ev->kind == MT_EVENT_DONE) {
        x->finish = ev->finish;
        x->d->open--;
        pthread_cond_broadcast(&x->d->ended);
    }
    pthread_mutex_unlock(&x->d->lock);
    usleep(ev->kind == MT_EVENT_TOKEN ? 500 : 0); /* which makes turns long, compared with what it takes to begin one */
}

/* More clients than seats: a seat goes round, and nobody waits for the end of an answer that has none. */
static void a_seat_goes_round(void **state)
{
    enum { CLIENTS = 3, CONTEXT = 4096 };
    static uint32_t prompt[CLIENTS + 1][PROMPT];
    static answer alone, got, ignored[CLIENTS];
    static endless others[CLIENTS];
    driver d;
    mt_stats stats;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    draw_prompts(prompt, CLIENTS + 1, d.o.spec.vocab);
    d.params.sequences = 1;
    d.params.context = CONTEXT;
    d.params.turn_ms = 0;
    driver_start(&d);
    driver_ask(&d, prompt[CLIENTS], PROMPT, ANSWER_TOKENS, &alone);
    driver_hold(&d);
    mt_request *last = request_of(&d, prompt[CLIENTS], ANSWER_TOKENS, CLIENTS, &got); /* zeroes what others look at */
    for (size_t i = 0; i < CLIENTS; i++) {
        mt_request *r = request_of(&d, prompt[i], CONTEXT, i, &ignored[i]);
        others[i] = (endless){.d = &d, .request = r, .until = &got};
        r->event = endless_event;
        r->ctx = &others[i];
        driver_send(&d, r);
    }
    driver_send(&d, last);
    driver_let_go(&d);
    driver_wait(&d, 0);
    assert_int_equal(got.count, ANSWER_TOKENS);
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(others[i].finish, MT_FINISH_CANCELLED);
    driver_stats(&d, &stats);
    assert_true(stats.yields > 0);
    expect_same("turn by turn", &alone, &got);
    driver_close(&d);
}

/* One client alone is served as ever: nobody makes way, in whatever order they come. */
static void one_client_alone_is_not_disturbed(void **state)
{
    static uint32_t prompt[GREEDY][PROMPT];
    static answer got[GREEDY];
    driver d;
    mt_stats stats;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    d.params.sequences = 2;
    d.params.turn_ms = 0;
    driver_start(&d);
    draw_prompts(prompt, GREEDY, d.o.spec.vocab);
    for (size_t i = 0; i < GREEDY; i++)
        driver_send(&d, request_of(&d, prompt[i], ANSWER_TOKENS, 1, &got[i]));
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_int_equal(stats.preemptions, 0);
    driver_close(&d);
}

/* When pages run dry: the youngest of the lowest priority of the client with the most seats. */
static void who_makes_way_is_the_youngest_of_the_lowest_priority(void **state)
{
    static mt_engine e;
    static mt_sequence s[4];
    static mt_request r[4];
    mt_sequence *running[4];
    mt_client_record many = {.client = {.share = 1}, .running = 3}, few = {.client = {.share = 1}, .running = 1};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        r[i] = (mt_request){.order = i, .client_record = i < 3 ? &many : &few};
        s[i] = (mt_sequence){.request = &r[i]};
        running[i] = &s[i];
    }
    e.running = running;
    e.running_count = 4;
    assert_ptr_equal(mt_engine_victim(&e), &s[2]);
    r[0].priority = 1;
    assert_ptr_equal(mt_engine_victim(&e), &s[0]);
    r[1].priority = 1;
    assert_ptr_equal(mt_engine_victim(&e), &s[1]);
    few.running = 4;
    assert_ptr_equal(mt_engine_victim(&e), &s[3]);
}

/* A client with one seat and another that waits for it. */
typedef struct pair {
    mt_engine e;
    mt_client_record client_record[2];
    mt_request request[2];
    mt_sequence sequence[2], *running[1], *waiting[1];
} pair;

static void init_pair(pair *p)
{
    *p = (pair){.client_record = {{.client = {.share = 1}, .running = 1, .seconds = 2},
                                  {.client = {.share = 1}, .seconds = 1}}};
    for (size_t i = 0; i < 2; i++) {
        p->request[i] = (mt_request){.order = i, .client_record = &p->client_record[i]};
        p->sequence[i].request = &p->request[i];
    }
    p->running[0] = &p->sequence[0];
    p->waiting[0] = &p->sequence[1];
    p->e.clients = (mt_clients){.client_record = p->client_record, .count = 2};
    p->e.running = p->running;
    p->e.waiting = p->waiting;
    p->e.running_count = p->e.waiting_count = p->e.params.sequences = 1;
}

/* The first time from `from` on, in steps of a millisecond, at which the seat changes hands; 0: not within a second. */
static unsigned changes_at(pair *p, unsigned from)
{
    for (unsigned ms = from; ms < from + 1000; ms++)
        if (mt_engine_share_seats(&p->e, ms * UINT64_C(1000000)))
            return ms;
    return 0;
}

/* A turn begins with the answer. It lasts turn_ms, and longer where the sequence took longer to begin. */
static void a_turn_lasts_as_long_as_its_beginning(void **state)
{
    static pair p;
    (void)state;
    init_pair(&p);
    p.e.params.turn_ms = 100;
    p.sequence[0].seated = 1000 * UINT64_C(1000000);
    assert_int_equal(changes_at(&p, 1000), 0); /* it does not answer yet */
    p.sequence[0].answering = 1050 * UINT64_C(1000000);
    assert_int_equal(changes_at(&p, 1050), 1151);
    p.sequence[0].answering = 1300 * UINT64_C(1000000);
    assert_int_equal(changes_at(&p, 1300), 1601);
    p.client_record[1].seconds = 2; /* and nobody takes over who has had as much */
    assert_int_equal(changes_at(&p, 1300), 0);
    p.client_record[1].seconds = 1;
    p.client_record[1].running = 1; /* or has as many seats */
    assert_int_equal(changes_at(&p, 1300), 0);
}

/* Of clients with as many seats, the one that has had the most makes way; it does not make way for itself. */
static void who_has_had_most_makes_way(void **state)
{
    static pair p;
    mt_sequence *running[] = {&p.sequence[0], &p.sequence[1]};
    mt_request newcomer = {.order = 2};
    mt_sequence waits = {.request = &newcomer, .seq = {0}}, *waiting[] = {&waits};
    mt_client_record client_record[3];
    (void)state;
    init_pair(&p);
    for (size_t i = 0; i < 3; i++)
        client_record[i] =
            (mt_client_record){.client = {.share = 1}, .running = i < 2 ? 2 : 0, .seconds = i == 0 ? 2 : 1};
    p.request[0].client_record = &client_record[0];
    p.request[1].client_record = &client_record[1];
    newcomer.client_record = &client_record[2];
    p.e.clients = (mt_clients){.client_record = client_record, .count = 3};
    p.e.running = running;
    p.e.waiting = waiting;
    p.e.running_count = p.e.params.sequences = 2;
    assert_ptr_equal(mt_engine_share_seats(&p.e, 1), &p.sequence[0]);
    client_record[1].seconds = 3;
    assert_ptr_equal(mt_engine_share_seats(&p.e, 1), &p.sequence[1]);
    newcomer.client_record = &client_record[1];
    client_record[0].running = 0;
    assert_null(mt_engine_share_seats(&p.e, 1));
}

enum { LINE = 100 };

/* `count` sequences wait, of which every `other`th is of the second client, and there are `seats` seats. */
static void share_line(mt_client_record client_record[2], size_t count, size_t other, size_t seats, size_t paused)
{
    static mt_engine e;
    static mt_request request[LINE];
    static mt_sequence sequence[LINE], *waiting[LINE];
    for (size_t i = 0; i < count; i++) {
        request[i] = (mt_request){.order = i, .client_record = &client_record[(i + 1) % other == 0]};
        atomic_store(&request[i].paused, i < paused);
        sequence[i] = (mt_sequence){.request = &request[i], .generated = 1};
        waiting[i] = &sequence[i];
    }
    e = (mt_engine){
        .clients = {.client_record = client_record, .count = 2}, .waiting = waiting, .waiting_count = count};
    e.params.sequences = seats;
    assert_null(mt_engine_share_seats(&e, 1));
}

/* Of a long line as many sequences are looked at as is useful: 64, in equal parts of each client that may take a seat,
   and at least as many as it may take. */
static void a_long_line_is_not_looked_through(void **state)
{
    mt_client_record g[2] = {{.client = {.share = 1}}, {.client = {.share = 1}}};
    (void)state;
    share_line(g, LINE, LINE + 1, 3, 0);
    assert_true(g[0].places == 3 && g[0].looks == 64);
    share_line(g, LINE, LINE + 1, LINE, 0);
    assert_true(g[0].places == 64 && g[0].looks == 64);
    share_line(g, LINE, 2, 4, 0);
    assert_true(g[0].places == 2 && g[1].places == 2 && g[0].looks == 32 && g[1].looks == 32);
    share_line(g, LINE, 20, 45, 0); /* the second has five */
    assert_true(g[0].places == 40 && g[1].places == 5 && g[0].looks == 40 && g[1].looks == 32);
    share_line(g, LINE, 2, 1, 0); /* of equals, the one that waits first */
    assert_true(g[0].places == 1 && g[1].places == 0 && g[1].looks == 0);
    share_line(g, LINE, 2, 1, 1); /* and whose client does not read does not wait */
    assert_true(g[0].places == 0 && g[1].places == 1);
}

/* Where pages are short, seats are taken only if that is enough: all that the sequences which may be set aside have,
   and what was promised to them. */
static void nobody_makes_way_in_vain(void **state)
{
    static mt_engine e;
    static mt_sequence s[4];
    static mt_request r[4];
    mt_sequence *running[3];
    mt_client_record many = {.client = {.share = 1}, .running = 2},
                     few = {.client = {.share = 1}, .running = 1, .debt = 1}, none = {.client = {.share = 1}};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        r[i] = (mt_request){.order = i, .client_record = i < 2 ? &many : i == 2 ? &few : &none};
        s[i] = (mt_sequence){
            .request = &r[i], .seq = {.pages = 3, .known = 4 * MT_PAGE_TOKENS}, .seated = 1, .answering = 2};
        if (i < 3)
            running[i] = &s[i];
    }
    e.running = running;
    e.running_count = 3;
    assert_ptr_equal(mt_engine_yields_pages(&e, &s[3], 8), &s[1]); /* four pages each of the two of one client */
    assert_null(mt_engine_yields_pages(&e, &s[3], 9));             /* a turn that is over counts for seats alone */
    assert_null(mt_engine_yields_pages(&e, &s[2], 1));             /* its client would have more then */
}

/* Whose rows a step had is charged for it: see mt_client_record_debt. */
static void steps_are_charged_to_their_client(void **state)
{
    static uint32_t prompt[1][PROMPT];
    static answer got;
    driver d;
    (void)state;
    open_seats(&d, FIXTURE, 1, 0);
    draw_prompts(prompt, 1, d.o.spec.vocab);
    driver_send(&d, request_of(&d, prompt[0], 4, 7, &got));
    driver_wait(&d, 0);
    assert_int_equal(d.engine->clients.count, 1);
    assert_int_equal(d.engine->clients.client_record[0].client.id, 7);
    assert_true(d.engine->clients.client_record[0].seconds > 0);
    driver_close(&d);
}

/* Who watches over a server sees that the engine is at a turn, since when, and that it waits for something to do. */
static void how_long_a_turn_lasts_can_be_seen(void **state)
{
    static uint32_t prompt[1][PROMPT];
    static answer got;
    uint64_t since;
    driver d;
    (void)state;
    open_seats(&d, FIXTURE, 1, 0);
    draw_prompts(prompt, 1, d.o.spec.vocab);
    while (mt_engine_turn(d.engine) != 0)
        usleep(100);
    driver_hold(&d);
    driver_send(&d, request_of(&d, prompt[0], 2, 1, &got));
    wait_for_begin(&d, &got); /* the plan is made, and its step has to wait */
    while ((since = mt_engine_turn(d.engine)) == 0)
        usleep(100);
    usleep(1000);
    assert_int_equal(mt_engine_turn(d.engine), since);
    driver_let_go(&d);
    driver_wait(&d, 0);
    while (mt_engine_turn(d.engine) != 0)
        usleep(100);
    driver_close(&d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(how_long_a_turn_lasts_can_be_seen),
    cmocka_unit_test(who_makes_way_is_the_youngest_of_the_lowest_priority),
    cmocka_unit_test(a_turn_lasts_as_long_as_its_beginning),
    cmocka_unit_test(nobody_makes_way_in_vain),
    cmocka_unit_test(who_has_had_most_makes_way),
    cmocka_unit_test(a_long_line_is_not_looked_through),
    cmocka_unit_test(steps_are_charged_to_their_client),
    cmocka_unit_test(a_newcomer_gets_a_seat_at_once),
    cmocka_unit_test(a_newcomer_gets_pages_at_once),
    cmocka_unit_test(lines_of_batches_leave_all_seats),
    cmocka_unit_test(free_seats_go_to_who_has_fewest),
    cmocka_unit_test(a_seat_goes_round),
    cmocka_unit_test(one_client_alone_is_not_disturbed),
};

UNIT_MAIN(tests)
