/* Steps that are begun before the one before is settled: no answer depends on it, whoever ends, comes or goes. */
#include "engine_driver.h"

#include "base/clock.h"
#include "engine/inside.h"

#define LEN 50
#define TOKENS 40
#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"
#define RECURRENT FIXTURES "/qwen3next-mlx-4bit" /* its states would have to be turned back where an answer ends */
#define ANSWERS 6

/* What a device may choose by itself: greedy, and nobody wants logprobs. */
static mt_request *plain(driver *d, const uint32_t *prompt, size_t len, size_t tokens, answer *a)
{
    mt_request *r = driver_request(d, prompt, len, tokens, a);
    r->sampling.logprobs = -1;
    return r;
}

/* What the host has to see first, beside what it need not. */
static mt_request *request(driver *d, const uint32_t *prompt, size_t i, answer *a)
{
    mt_request *r = (i % 2 ? driver_request : plain)(d, prompt, LEN - 3 * i, TOKENS - 5 * (i % 3), a);
    driver_vary(r, i < 4 ? 0 : i % KINDS);
    if (i == 1) { /* it is drawn, and ends by chance */
        r->sampling.temperature = 1.1f;
        r->sampling.seed = 5;
        r->sampling.top_k = 30;
    }
    return r;
}

static void run_all(const char *dir, bool ahead, bool together, size_t first, answer *answers, mt_stats *stats)
{
    uint32_t prompt[ANSWERS][LEN];
    draw random = {8};
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.ahead = ahead ? MT_AHEAD_ALWAYS : MT_AHEAD_NEVER;
    driver_start(&d);
    for (size_t i = 0; i < ANSWERS; i++)
        draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
    for (size_t i = first; i < ANSWERS; i++) {
        driver_send(&d, request(&d, prompt[i], i, &answers[i]));
        if (!together)
            driver_wait(&d, 0);
    }
    driver_wait(&d, 0);
    driver_stats(&d, stats);
    driver_close(&d);
}

static void check_answers(const char *dir)
{
    static answer alone[ANSWERS], ahead[ANSWERS];
    mt_stats stats;
    run_all(dir, false, false, 0, alone, &stats);
    assert_int_equal(stats.ahead_steps, 0);
    for (int together = 0; together < 2; together++) {
        run_all(dir, true, together, 0, ahead, &stats);
        for (size_t i = 0; i < ANSWERS; i++)
            expect_same(dir, &alone[i], &ahead[i]);
    }
}

static void an_answer_does_not_depend_on_it(void **state)
{
    (void)state;
    for_each_kind(check_answers);
}

/* Plain answers go ahead nearly always: all but the first step and those behind an end. */
static void check_plain(const char *dir)
{
    static answer a;
    uint32_t prompt[LEN];
    draw random = {4};
    mt_stats stats;
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.ahead = MT_AHEAD_ALWAYS;
    d.params.speculate = MT_SPECULATE_OFF;
    driver_start(&d);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    driver_send(&d, plain(&d, prompt, LEN, TOKENS, &a));
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_int_equal(a.count, TOKENS);
    assert_int_equal(stats.steps, TOKENS); /* none for nothing: where it ends is known */
    assert_int_equal(stats.ahead_steps, TOKENS - 1);
    assert_int_equal(stats.states_held, 0);
    driver_close(&d);
}

static void plain_answers_go_ahead(void **state)
{
    (void)state;
    check_plain(FIXTURE);
    check_plain(RECURRENT);
}

/* Where the end is not known before, a row is computed for nothing, and nothing comes of it: who goes on from the end
   finds all that was computed up to there, as it was. */
static void check_thrown_away(const char *dir)
{
    static answer whole, cut, again, on;
    uint32_t prompt[LEN + TOKENS], stop;
    draw random = {4};
    mt_stats stats;
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.ahead = MT_AHEAD_ALWAYS;
    d.params.speculate = MT_SPECULATE_OFF;
    driver_start(&d);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    driver_send(&d, plain(&d, prompt, LEN, TOKENS, &whole));
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    const uint64_t before = stats.steps;
    size_t at = 20;
    for (size_t i = 0; i < at; i++) /* a token that stands there for the first time */
        if (whole.chosen[i].id == whole.chosen[at].id) {
            at++;
            i = (size_t)-1;
            assert_true(at < TOKENS - 1);
        }
    stop = whole.chosen[at].id;
    mt_request *r = plain(&d, prompt, LEN, TOKENS, &cut);
    r->sampling.stop_ids = &stop;
    r->sampling.stop_count = 1;
    driver_send(&d, r);
    driver_wait(&d, 0);
    assert_int_equal(cut.count, at + 1);
    assert_int_equal(cut.finish, MT_FINISH_STOP);
    for (size_t i = 0; i <= at; i++)
        prompt[LEN + i] = cut.chosen[i].id;
    driver_send(&d, plain(&d, prompt, LEN + at + 1, TOKENS - at - 1, &on));
    driver_wait(&d, 0);
    assert_int_equal(on.cached, LEN + at);
    for (size_t i = 0; i < on.count; i++)
        assert_int_equal(on.chosen[i].id, whole.chosen[at + 1 + i].id);
    driver_send(&d, plain(&d, prompt, LEN, TOKENS, &again));
    driver_wait(&d, 0);
    driver_stats(&d, &stats); /* the step behind the end has been counted by now */
    assert_int_equal(stats.steps - before, at + 2 + TOKENS - at - 1 + TOKENS);
    expect_same("behind what was thrown away", &whole, &again);
    driver_close(&d);
}

static void a_row_behind_the_end_is_thrown_away(void **state)
{
    (void)state;
    check_thrown_away(FIXTURE);
    check_thrown_away(RECURRENT);
}

/* Others come and go while steps are ahead, one is cancelled in the midst of it, and pages and states are short. */
static void check_crowd(const char *dir)
{
    enum { MANY = 12 };
    static answer alone[MANY], crowd[MANY], gone;
    uint32_t prompt[MANY][LEN];
    draw random = {14};
    driver d;
    for (int round = 0; round < 3; round++) {
        answer *to = round ? crowd : alone;
        driver_open(&d, dir, MT_PRECISION_FAST, 2);
        d.params.ahead = round > 0 ? MT_AHEAD_ALWAYS : MT_AHEAD_NEVER;
        d.params.sequences = 4;
        if (round == 2) {
            d.params.cache = 8 * MT_PAGE_TOKENS;
            d.params.state_cache = 1;
        }
        driver_start(&d);
        for (size_t i = 0; i < MANY; i++) {
            if (round == 0)
                draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
            mt_request *r = (i % 4 ? plain : driver_request)(&d, prompt[i], LEN - i, TOKENS - 2 * i, &to[i]);
            driver_vary(r, i % 5 == 4 ? 1 : 0);
            driver_send(&d, r);
            if (round == 0)
                driver_wait(&d, 0);
            if (round && i == 5) {
                mt_request *lost = driver_request(&d, prompt[0], LEN, TOKENS, &gone);
                atomic_store(&lost->cancelled, true);
                driver_send(&d, lost);
            }
            if (round && i % 3 == 2)
                driver_wait(&d, i % 2 ? 3 : 1);
        }
        driver_wait(&d, 0);
        driver_close(&d);
        for (size_t i = 0; round && i < MANY; i++)
            expect_same(round == 1 ? "in company" : "with few pages", &alone[i], &crowd[i]);
    }
}

static void others_come_and_go(void **state)
{
    (void)state;
    check_crowd(FIXTURE);
    check_crowd(RECURRENT);
}

/* Another engine, of one step, which wants its turn when `at` steps of the first have begun. */
typedef struct rival {
    driver *d;
    mt_rota *rota;
    const answer *first;
    size_t steps, at;
    size_t tokens; /* of the first engine's answer when the turn has come */
    pthread_t thread;
} rival;

static void *take_turn(void *ctx)
{
    rival *r = ctx;
    mt_rota_place place = {0};
    mt_rota_begin(r->rota, &place);
    pthread_mutex_lock(&r->d->lock);
    r->tokens = r->first->count;
    pthread_mutex_unlock(&r->d->lock);
    mt_rota_end(r->rota, &place);
    return NULL;
}

static void rival_turn(void *ctx, bool begins)
{
    rival *r = ctx;
    driver_turn(r->d, begins);
    mt_clock_set(mt_clock_ns() + 1000000); /* an engine's turn takes time on the clock */
    if (!begins || ++r->steps != r->at)
        return;
    if (pthread_create(&r->thread, NULL, take_turn, r))
        abort();
    while (mt_rota_wanting(r->rota) < 2)
        usleep(100);
}

/* How many steps are begun ahead where another engine wants a turn when `at` steps have begun; 0: none does. */
static uint64_t ahead_of(rival *r, size_t at)
{
    static answer a;
    uint32_t prompt[LEN];
    draw random = {4};
    mt_stats stats;
    driver d;
    *r = (rival){.d = &d, .rota = mt_rota_new(), .first = &a, .at = at};
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
    mt_clock_set(1);
    d.params.ahead = MT_AHEAD_ALWAYS;
    d.params.speculate = MT_SPECULATE_OFF;
    d.params.rota = r->rota;
    d.params.turn = rival_turn;
    d.params.turn_ctx = r;
    driver_start(&d);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    driver_send(&d, plain(&d, prompt, LEN, TOKENS, &a));
    driver_wait(&d, 0);
    if (at)
        pthread_join(r->thread, NULL);
    driver_stats(&d, &stats);
    driver_close(&d);
    mt_clock_set(0);
    mt_rota_free(r->rota);
    return stats.ahead_steps;
}

/* An engine that shares the device goes ahead while no other wants a turn; one that does has it after the step under
   way. */
static void another_engine_gets_its_turn(void **state)
{
    rival r;
    (void)state;
    assert_int_equal(ahead_of(&r, 0), TOKENS - 1);
    assert_int_equal(ahead_of(&r, 5), TOKENS - 2); /* the step behind the other's turn was planned */
    assert_int_equal(r.tokens, 5);
}

typedef struct lender {
    driver d;
    size_t lent; /* slots that are lent though no step is begun ahead */
} lender;

static void look_at_loans(void *ctx, bool begins)
{
    lender *l = ctx;
    const mt_engine *e = l->d.engine;
    driver_turn(&l->d, begins);
    for (size_t i = 0; !begins && !e->ahead && i < e->running_count; i++)
        l->lent += e->running[i]->seq.state.borrowed;
}

/* Two answers, and pages for less: where the younger needs one and none is left, the step that was begun for the older
   one is taken back, and another is planned. younger: length of its prompt. */
static void check_taken_back(const char *dir, size_t younger)
{
    enum { BOTH = 2 };
    static answer alone[BOTH], got[BOTH];
    const size_t len[BOTH] = {LEN, younger};
    uint32_t prompt[BOTH][LEN];
    draw random = {15};
    lender l = {.lent = 0};
    mt_stats stats;
    for (int round = 0; round < 2; round++) {
        answer *to = round ? got : alone;
        driver_open(&l.d, dir, MT_PRECISION_FAST, 2);
        l.d.params.ahead = round ? MT_AHEAD_ALWAYS : MT_AHEAD_NEVER;
        l.d.params.speculate = MT_SPECULATE_OFF;
        l.d.params.sequences = BOTH;
        if (round)
            l.d.params.cache = 5 * MT_PAGE_TOKENS;
        l.d.params.turn = look_at_loans;
        l.d.params.turn_ctx = &l;
        driver_start(&l.d);
        if (round)
            driver_hold(&l.d);
        for (size_t i = 0; i < BOTH; i++) {
            if (!round)
                draw_tokens(&random, prompt[i], LEN, l.d.o.spec.vocab);
            mt_request *r = plain(&l.d, prompt[i], len[i], TOKENS, &to[i]);
            r->priority = (int32_t)i; /* the shorter prompt would come first */
            driver_send(&l.d, r);
            if (!round)
                driver_wait(&l.d, 0);
        }
        if (round)
            driver_let_go(&l.d);
        driver_wait(&l.d, 0);
        driver_stats(&l.d, &stats);
        assert_true(stats.states_held == 0 && l.lent == 0);
        driver_close(&l.d);
    }
    assert_true(stats.ahead_steps > 0 && stats.preemptions > 0);
    for (size_t i = 0; i < BOTH; i++)
        expect_same("taken back", &alone[i], &got[i]);
}

static void a_step_that_is_taken_back_leaves_nothing(void **state)
{
    (void)state;
    for (size_t len = LEN - 10; len < LEN; len += 3) {
        check_taken_back(FIXTURE, len);
        check_taken_back(RECURRENT, len);
    }
}

/* Does something on the engine's thread when the step `at` has begun. */
typedef struct meddler {
    driver d;
    size_t steps, at;
    void (*act)(struct meddler *m);
    mt_request *first, *second;
    answer answers[2];
    size_t tokens; /* of the first answer when the second began */
} meddler;

static void meddle(void *ctx, bool begins)
{
    meddler *m = ctx;
    driver_turn(&m->d, begins);
    if (m->answers[1].begun_at > 0 && m->tokens == 0)
        m->tokens = m->answers[0].count;
    if (begins && ++m->steps == m->at)
        m->act(m);
}

static void meddler_open(meddler *m, size_t at, void (*act)(meddler *m))
{
    uint32_t prompt[2][LEN];
    draw random = {4};
    memset(m, 0, sizeof(*m));
    driver_open(&m->d, FIXTURE, MT_PRECISION_FAST, 1);
    m->at = at;
    m->act = act;
    m->d.params.ahead = MT_AHEAD_ALWAYS;
    m->d.params.speculate = MT_SPECULATE_OFF;
    m->d.params.turn = meddle;
    m->d.params.turn_ctx = m;
    driver_start(&m->d);
    draw_tokens(&random, prompt[0], 2 * LEN, m->d.o.spec.vocab);
    m->first = plain(&m->d, prompt[0], LEN, TOKENS, &m->answers[0]);
    m->second = plain(&m->d, prompt[1], LEN, 5, &m->answers[1]);
}

static void send_second(meddler *m)
{
    driver_send(&m->d, m->second);
}

/* A new request is part of the next plan, whether the step under way was planned or begun ahead. */
static void a_newcomer_waits_for_one_step(void **state)
{
    static meddler m;
    (void)state;
    for (size_t at = 1; at <= 5; at += 4) {
        meddler_open(&m, at, send_second);
        driver_send(&m.d, m.first);
        driver_wait(&m.d, 0);
        assert_int_equal(m.tokens, at);
        driver_close(&m.d);
    }
}

static void pause_first(meddler *m)
{
    atomic_store(&m->first->paused, true);
}

/* An answer whose client stops reading gets no further step. */
static void who_is_not_read_does_not_go_ahead(void **state)
{
    static meddler m;
    (void)state;
    meddler_open(&m, 5, pause_first);
    driver_send(&m.d, m.first);
    for (bool stands = false; !stands; usleep(100)) { /* until it has nothing to do, or the answer is whole */
        pthread_mutex_lock(&m.d.lock);
        stands = m.answers[0].count >= 5 && (m.d.open == 0 || mt_engine_turn(m.d.engine) == 0);
        pthread_mutex_unlock(&m.d.lock);
    }
    pthread_mutex_lock(&m.d.lock);
    assert_int_equal(m.answers[0].count, 5);
    pthread_mutex_unlock(&m.d.lock);
    atomic_store(&m.first->paused, false);
    mt_engine_poke(m.d.engine);
    driver_wait(&m.d, 0);
    mt_request_free(m.second);
    driver_close(&m.d);
}

static void read_second(meddler *m)
{
    atomic_store(&m->second->paused, false);
}

/* Where one that runs had no part in a step, since nobody read it, the next one is planned: it may have one then. */
static void who_is_read_again_is_planned_again(void **state)
{
    static meddler m;
    (void)state;
    meddler_open(&m, 12, read_second);
    atomic_store(&m.second->paused, true);
    driver_hold(&m.d);
    driver_send(&m.d, m.first);
    driver_send(&m.d, m.second);
    driver_let_go(&m.d);
    driver_wait(&m.d, 0);
    assert_true(m.answers[1].ended_at < m.answers[0].ended_at);
    driver_close(&m.d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_does_not_depend_on_it),
    cmocka_unit_test(plain_answers_go_ahead),
    cmocka_unit_test(a_step_that_is_taken_back_leaves_nothing),
    cmocka_unit_test(a_row_behind_the_end_is_thrown_away),
    cmocka_unit_test(others_come_and_go),
    cmocka_unit_test(another_engine_gets_its_turn),
    cmocka_unit_test(a_newcomer_waits_for_one_step),
    cmocka_unit_test(who_is_not_read_does_not_go_ahead),
    cmocka_unit_test(who_is_read_again_is_planned_again),
};

UNIT_MAIN(tests)
