/* Steps that are begun before the one before is settled: no answer depends on it, whoever ends, comes or goes. */
#include "engine_driver.h"

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
    for_each_fixture(check_answers);
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_does_not_depend_on_it),
    cmocka_unit_test(plain_answers_go_ahead),
    cmocka_unit_test(a_row_behind_the_end_is_thrown_away),
    cmocka_unit_test(others_come_and_go),
};

UNIT_MAIN(tests)
