/* Guessing ahead: faster or slower, an answer is the same to the last bit. */
#include "engine_driver.h"

#include "engine/draft.h"
#include "sample/limits.h"

#define LEN 60
#define TOKENS 48
#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"

static void the_last_tokens_are_looked_for_in_what_stands_before(void **state)
{
    const mt_key key[] = {1, 2, 3, 4, 5, 9, 9, 2, 3, 7, 8, 6, 1, 2, 3};
    mt_draft d;
    (void)state;
    mt_draft_init(&d, NULL, 0);
    mt_draft_guess(&d, key, 15, 4); /* 1 2 3 was followed by 4, though 2 3 stands later too */
    assert_int_equal(d.count, 4);
    assert_int_equal(d.token[0], 4);
    assert_int_equal(d.token[3], 9);
    mt_draft_guess(&d, key, 9, 8); /* 2 3 */
    assert_int_equal(d.count, 8);
    assert_int_equal(d.token[0], 4);
    assert_int_equal(d.token[6], 4); /* and so on in a circle */
    mt_draft_guess(&d, key, 9, 100);
    assert_int_equal(d.count, MT_LIMIT_DRAFT);
    mt_draft_guess(&d, key, 7, 8); /* 9 9 stands there once */
    assert_int_equal(d.count, 0);
    mt_draft_guess(&d, key, 15, 0);
    assert_int_equal(d.count, 0);
}

static void media_are_not_guessed(void **state)
{
    const mt_key key[] = {1, 2, 3, 4 | MT_KEY_MEDIUM, 5, 1, 2};
    mt_draft d;
    (void)state;
    mt_draft_init(&d, NULL, 0);
    mt_draft_guess(&d, key, 7, 8);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.token[0], 3);
}

static void what_is_expected_is_followed(void **state)
{
    const uint32_t expected[] = {20, 21, 22, 23, 24, 25, 26, 27, 28, 29};
    const mt_key key[] = {1, 2, 20, 21, 22, 50, 26, 27, 60, 61};
    mt_draft d;
    (void)state;
    mt_draft_init(&d, expected, 10);
    mt_draft_guess(&d, key, 3, 2);
    assert_int_equal(d.count, 2);
    assert_int_equal(d.token[0], 21);
    mt_draft_guess(&d, key, 5, 3);
    assert_int_equal(d.token[0], 23);
    mt_draft_guess(&d, key, 6, 3); /* it has left the way */
    assert_int_equal(d.count, 0);
    mt_draft_guess(&d, key, 8, 8); /* and come back */
    assert_int_equal(d.count, 2);
    assert_int_equal(d.token[0], 28);
    mt_draft_guess(&d, key, 10, 8);
    assert_int_equal(d.count, 0);
}

static void what_gains_nothing_is_given_up_and_tried_again_later(void **state)
{
    mt_draft d;
    (void)state;
    mt_draft_init(&d, NULL, 0);
    const double *chance = &d.chance[MT_DRAFT_TEXT], first = *chance;
    for (int i = 0; i < 30; i++)
        mt_draft_learn(&d, 4, 0);
    assert_true(*chance < 0.02);
    for (int i = 0; i < 300; i++)
        mt_draft_learn(&d, 0, 0);
    assert_true(*chance > 0.3 && *chance <= first);
    for (int i = 0; i < 30; i++)
        mt_draft_learn(&d, 4, 4);
    assert_true(*chance > 0.98);
}

/* What is learned of one source says nothing about the other, whose low chance rises meanwhile. */
static void each_source_has_its_own_chance(void **state)
{
    mt_draft d;
    (void)state;
    mt_draft_init(&d, NULL, 0);
    d.source = MT_DRAFT_MODEL;
    const double first = d.chance[MT_DRAFT_TEXT];
    for (int i = 0; i < 30; i++)
        mt_draft_learn(&d, 4, 0);
    const double low = d.chance[MT_DRAFT_MODEL];
    assert_true(low < 0.02 && d.chance[MT_DRAFT_TEXT] >= first && d.chance[MT_DRAFT_TEXT] <= first);
    d.source = MT_DRAFT_TEXT;
    for (int i = 0; i < 30; i++)
        mt_draft_learn(&d, 4, 4);
    assert_true(d.chance[MT_DRAFT_TEXT] > 0.98);
    assert_true(d.chance[MT_DRAFT_MODEL] > 0.1 && d.chance[MT_DRAFT_MODEL] < first);
}

/* How often the model is asked in 1000 steps where so many of four guesses of each source are right. */
static size_t count_asked(mt_draft *d, size_t text, size_t model)
{
    size_t count = 0;
    for (int i = 0; i < 1000; i++) {
        d->source = mt_draft_prefers_text(d) ? MT_DRAFT_TEXT : MT_DRAFT_MODEL;
        if (d->source == MT_DRAFT_MODEL) {
            d->unasked = 0;
            count++;
        }
        mt_draft_learn(d, 4, d->source == MT_DRAFT_MODEL ? model : text);
    }
    return count;
}

/* A head that is wrong gives way to the text, and has one more try now and then: if it is right by then, it stays. */
static void what_is_wrong_gives_way_and_is_tried_now_and_then(void **state)
{
    mt_draft d;
    (void)state;
    mt_draft_init(&d, NULL, 0);
    assert_false(mt_draft_prefers_text(&d)); /* nothing is known of either */
    assert_in_range(count_asked(&d, 4, 0), 10, 20);
    assert_in_range(count_asked(&d, 1, 4), 900, 1000);
    mt_draft_init(&d, NULL, 0);
    assert_int_equal(count_asked(&d, 4, 4), 1000);
}

typedef struct setting {
    size_t depth, wrong; /* every `wrong`-th expected token is another; 0: none */
} setting;

/* Expects the answer that is known to come, with some wrong tokens in it. */
static void ask_expecting(driver *d, const uint32_t *prompt, size_t kind, const answer *known, setting how, answer *to)
{
    uint32_t expected[TOKENS];
    for (size_t i = 0; i < TOKENS; i++)
        expected[i] = how.wrong && i % how.wrong == how.wrong - 1 ? 3 : known->chosen[i].id;
    mt_request *r = driver_request(d, prompt, LEN, TOKENS, to);
    driver_vary(r, kind);
    uint32_t *copy = mt_arena_alloc(r->arena, sizeof(expected));
    memcpy(copy, expected, sizeof(expected));
    r->expected = copy;
    r->expected_count = TOKENS;
    driver_send(d, r);
}

static void check_drafts(const char *dir)
{
    static answer plain[KINDS], guessed[KINDS];
    static const setting settings[] = {{1, 0}, {2, 3}, {4, 5}, {8, 0}, {8, 7}};
    uint32_t prompt[KINDS][LEN];
    draw random = {strlen(dir)};
    driver d;
    mt_stats stats;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.speculate = MT_SPECULATE_OFF;
    driver_start(&d);
    for (size_t k = 0; k < KINDS; k++) {
        draw_tokens(&random, prompt[k], LEN, d.o.spec.vocab);
        mt_request *r = driver_request(&d, prompt[k], LEN, TOKENS, &plain[k]);
        driver_vary(r, k);
        driver_send(&d, r);
    }
    driver_wait(&d, 0);
    driver_close(&d);
    for (size_t i = 0; i < MT_COUNT(settings); i++) {
        char what[256];
        driver_open(&d, dir, MT_PRECISION_FAST, 2);
        d.params.draft = settings[i].depth;
        d.params.draft_all = true;
        driver_start(&d);
        for (size_t k = 0; k < KINDS; k++)
            ask_expecting(&d, prompt[k], k, &plain[k], settings[i], &guessed[k]);
        driver_wait(&d, 0);
        driver_stats(&d, &stats);
        assert_true(stats.draft_accepted > 0);
        driver_close(&d);
        for (size_t k = 0; k < KINDS; k++) {
            snprintf(what, sizeof(what), "%s, depth %zu, every %zu wrong, kind %zu", dir, settings[i].depth,
                     settings[i].wrong, k);
            expect_same(what, &plain[k], &guessed[k]);
        }
    }
}

static void an_answer_does_not_depend_on_guesses(void **state)
{
    (void)state;
    for_each_kind(check_drafts);
}

/* Right guesses save steps. */
static void right_guesses_save_steps(void **state)
{
    static answer plain, guessed;
    uint32_t prompt[LEN];
    draw random = {5};
    driver d;
    mt_stats stats;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
    d.params.draft = 4;
    d.params.draft_all = true;
    driver_start(&d);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    driver_ask(&d, prompt, LEN, TOKENS, &plain);
    driver_stats(&d, &stats);
    const uint64_t before = stats.steps;
    ask_expecting(&d, prompt, 0, &plain, (setting){4, 0}, &guessed);
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    expect_same("guessed", &plain, &guessed);
    assert_true(stats.steps - before <= 2 + TOKENS / 5 + 1);
    assert_true(stats.answer_steps < stats.generated_tokens);
    driver_close(&d);
}

/* Guesses never cost another answer its place. */
static void guesses_do_without_pages_that_are_not_there(void **state)
{
    static answer alone[2], tight[2];
    uint32_t prompt[2][LEN];
    draw random = {6};
    mt_stats stats;
    driver d;
    (void)state;
    for (int round = 0; round < 2; round++) {
        answer *to = round ? tight : alone;
        driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
        if (round) /* both just fit, with the page that may be copied from */
            d.params.cache = 2 * 128 + 2 * MT_PAGE_TOKENS;
        d.params.draft_all = true;
        driver_start(&d);
        for (size_t i = 0; i < 2; i++) {
            if (round == 0)
                draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
            if (round)
                ask_expecting(&d, prompt[i], 0, &alone[i], (setting){8, 5}, &to[i]);
            else
                driver_send(&d, driver_request(&d, prompt[i], LEN, TOKENS, &to[i]));
        }
        driver_wait(&d, 0);
        driver_stats(&d, &stats);
        driver_close(&d);
    }
    assert_int_equal(stats.preemptions, 0);
    for (size_t i = 0; i < 2; i++)
        expect_same("tight", &alone[i], &tight[i]);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_last_tokens_are_looked_for_in_what_stands_before),
    cmocka_unit_test(media_are_not_guessed),
    cmocka_unit_test(what_is_expected_is_followed),
    cmocka_unit_test(what_gains_nothing_is_given_up_and_tried_again_later),
    cmocka_unit_test(each_source_has_its_own_chance),
    cmocka_unit_test(what_is_wrong_gives_way_and_is_tried_now_and_then),
    cmocka_unit_test(an_answer_does_not_depend_on_guesses),
    cmocka_unit_test(right_guesses_save_steps),
    cmocka_unit_test(guesses_do_without_pages_that_are_not_there),
};

UNIT_MAIN(tests)
