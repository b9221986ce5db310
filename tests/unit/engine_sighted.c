/* Every fixture that sees: answers to pictures are the same to the last bit alone and in any company, whole and in
   chunks, cold and cached, encoded alone and beside others, and never those of another picture. */
#include "engine_driver.h"
#include "engine_pictures.h"
#include "folder.h"

#define NEW_TOKENS 5
#define PICTURES 20

static const size one_size = {100, 72};

static mt_request *show(sighted *w, unsigned which, size_t pictures, size s, uint64_t words, answer *a)
{
    return show_for(w, which, pictures, s, words, NEW_TOKENS, a);
}

static void ask(sighted *w, unsigned which, size_t pictures, size s, uint64_t words, answer *a)
{
    driver_send(&w->d, show(w, which, pictures, s, words, a));
    driver_wait(&w->d, 0);
    if (a->finish == MT_FINISH_ERROR)
        fail_msg("%s", a->error.text);
}

/* In an engine that has seen nothing, on one thread. */
static void ask_alone(const char *dir, mt_precision precision, unsigned which, size_t pictures, size s, answer *a)
{
    sighted w;
    open_sighted(&w, dir, precision, 1);
    driver_start(&w.d);
    ask(&w, which, pictures, s, 1, a);
    driver_close(&w.d);
}

static const size sizes[] = {{100, 72}, {150, 50}, {50, 150}, {5, 9}};

static void check_ways(const char *dir, mt_precision precision)
{
    static const size_t chunks[] = {7, 0, 1, 33};
    const size_t ways = unit_races() ? 1 : unit_quick() ? 2 : MT_COUNT(chunks);
    static answer alone[MT_COUNT(sizes)], other[MT_COUNT(sizes)], again[MT_COUNT(sizes)], text[MT_COUNT(sizes)];
    const uint32_t words[40] = {1, 2, 3};
    char what[640];
    for (size_t i = 0; i < MT_COUNT(sizes); i++)
        ask_alone(dir, precision, (unsigned)i, 1 + i % 2, sizes[i], &alone[i]);
    for (size_t c = 0; c < ways; c++) {
        sighted w;
        open_sighted(&w, dir, precision, 2);
        w.d.params.chunk = chunks[c];
        driver_start(&w.d);
        for (size_t i = 0; i < MT_COUNT(sizes); i++) {
            driver_send(&w.d, show(&w, (unsigned)i, 1 + i % 2, sizes[i], 1, &other[i]));
            driver_send(&w.d, driver_request(&w.d, words, 40, NEW_TOKENS, &text[i]));
            driver_wait(&w.d, i % 2 ? 0 : 2);
        }
        for (size_t i = 0; i < MT_COUNT(sizes); i++) {
            ask(&w, (unsigned)i, 1 + i % 2, sizes[i], 1, &again[i]);
            snprintf(what, sizeof(what), "%s, size %zu in chunks of %zu", dir, i, chunks[c]);
            expect_same(what, &alone[i], &other[i]);
            expect_same(what, &alone[i], &again[i]);
            assert_true(again[i].cached > WORDS);
        }
        driver_close(&w.d);
    }
}

static uint64_t preempted; /* of all fixtures: it is up to the machine's pace which of them meet often enough */

/* Answers outgrow the cache: some go back to the queue, and need their pictures again, which others have pushed out. */
static void check_preempted(const char *dir)
{
    enum { TOGETHER = 6 };
    static answer alone[TOGETHER], other[TOGETHER];
    char what[640];
    size_t positions = 0;
    mt_stats stats;
    sighted w;
    for (unsigned i = 0; i < TOGETHER; i++) {
        open_sighted(&w, dir, MT_PRECISION_FAST, 1);
        driver_start(&w.d);
        mt_request *r = show_for(&w, i, 1, one_size, i + 1, ANSWER_TOKENS, &alone[i]);
        positions = r->prompt_len;
        driver_send(&w.d, r);
        driver_wait(&w.d, 0);
        driver_close(&w.d);
    }
    open_sighted(&w, dir, MT_PRECISION_FAST, 2);
    w.d.params.cache = 3 * (positions + 2 * MT_PAGE_TOKENS);
    w.d.params.media_cache = 1 << 16;
    driver_start(&w.d);
    driver_hold(&w.d);
    for (unsigned i = 0; i < TOGETHER; i++)
        driver_send(&w.d, show_for(&w, i, 1, one_size, i + 1, ANSWER_TOKENS, &other[i]));
    driver_let_go(&w.d);
    driver_wait(&w.d, 0);
    driver_stats(&w.d, &stats);
    driver_close(&w.d);
    snprintf(what, sizeof(what), "%s, preempted %d times", dir, (int)stats.preemptions);
    preempted += stats.preemptions;
    for (unsigned i = 0; i < TOGETHER; i++)
        expect_same(what, &alone[i], &other[i]);
}

static void check_exact(const char *dir)
{
    check_ways(dir, MT_PRECISION_FAST);
    if (fixture_is_quantised(dir) || fixture_is_alike(dir))
        return;
    check_ways(dir, MT_PRECISION_REFERENCE);
    check_preempted(dir);
}

/* 200 requests in random order, all with the same words, for 20 pictures of one size. */
static void crowd(const char *dir, const answer *alone, size_t positions, size_t features)
{
    enum { REQUESTS = 200 };
    const size_t requests = unit_quick() ? REQUESTS / 4 : REQUESTS;
    static answer answers[REQUESTS];
    unsigned which[REQUESTS];
    draw random = {positions + features};
    mt_stats stats;
    sighted w;
    char what[640];
    open_sighted(&w, dir, MT_PRECISION_FAST, 2);
    w.d.params.cache = positions;
    w.d.params.media_cache = features;
    driver_start(&w.d);
    for (size_t i = 0; i < requests; i++) {
        which[i] = draw_below(&random, PICTURES);
        driver_send(&w.d, show(&w, which[i], 1, one_size, 1, &answers[i]));
        if (i % 40 == 39)
            driver_wait(&w.d, 10);
    }
    driver_wait(&w.d, 0);
    driver_stats(&w.d, &stats);
    if (features < 64 << 20)
        assert_true(stats.media_evictions > 0 && stats.evictions > 0);
    for (size_t i = 0; i < requests; i++) {
        snprintf(what, sizeof(what), "%s, request %zu of picture %u in a crowd", dir, i, which[i]);
        expect_same(what, &alone[which[i]], &answers[i]);
    }
    driver_close(&w.d);
}

/* Bytes of features of one picture. */
static size_t bytes_of_one(const char *dir, size_t *positions)
{
    sighted w;
    answer a;
    open_sighted(&w, dir, MT_PRECISION_FAST, 1);
    mt_request *r = show(&w, 0, 1, one_size, 1, &a);
    size_t bytes = 0;
    for (size_t i = 0; i < r->picture_count; i++)
        bytes += r->pictures[i].tokens * mt_vision_width(w.d.o.spec.vision) * sizeof(float);
    *positions = r->prompt_len + NEW_TOKENS;
    mt_request_free(r);
    mt_opened_close(&w.d.o);
    return bytes;
}

static void check_isolation(const char *dir)
{
    static answer alone[PICTURES];
    size_t positions;
    if (fixture_is_quantised(dir) || fixture_is_alike(dir))
        return;
    const size_t bytes = bytes_of_one(dir, &positions);
    for (unsigned i = 0; i < PICTURES; i++)
        ask_alone(dir, MT_PRECISION_FAST, i, 1, one_size, &alone[i]);
    assert_memory_not_equal(&alone[0].top, &alone[1].top, sizeof(alone[0].top));
    crowd(dir, alone, 16384, 64 << 20);
    crowd(dir, alone, 5 * (positions + MT_PAGE_TOKENS), 2 * bytes);
}

static void every_fixture_that_sees_is_exact(void **state)
{
    (void)state;
    for_each_folder(SIGHTED, check_exact);
    assert_true(preempted > 0 || unit_quick());
}

static void every_fixture_that_sees_keeps_pictures_apart(void **state)
{
    (void)state;
    for_each_folder(SIGHTED, check_isolation);
}

/* ---- guesses ---- */

#define ECHOES "tests/oracle/echoes" /* what guesses the last token again, in folders with the fixtures' names */

enum { TALKERS = 4, SAID = 40 };

static struct {
    answer plain[TALKERS], guessed[TALKERS];
} said;

/* Questions about pictures, all at once, whose answers have few words and so repeat themselves. */
static void ask_to_repeat(sighted *w, answer *answers)
{
    static const mt_logit_bias words[] = {{5, 50}, {9, 50}};
    driver_hold(&w->d);
    for (unsigned i = 0; i < TALKERS; i++) {
        mt_request *r = show_for(w, i, 1 + i % 2, sizes[i], i + 1, SAID, &answers[i]);
        r->sampling.bias = words;
        r->sampling.bias_count = 1 + i % 2;
        driver_send(&w->d, r);
    }
    driver_let_go(&w->d);
    driver_wait(&w->d, 0);
}

/* With and without guesses, cold and from the cache. */
static void guess(const char *dir, const char *draft, mt_stats *stats)
{
    sighted w;
    char what[640];
    open_sighted_with(&w, dir, draft, MT_PRECISION_FAST, 2);
    w.d.params.speculate = MT_SPECULATE_OFF;
    driver_start(&w.d);
    ask_to_repeat(&w, said.plain);
    driver_close(&w.d);
    open_sighted_with(&w, dir, draft, MT_PRECISION_FAST, 2);
    w.d.params.draft_all = true;
    driver_start(&w.d);
    for (int again = 0; again < 2; again++) {
        ask_to_repeat(&w, said.guessed);
        for (unsigned i = 0; i < TALKERS; i++) {
            snprintf(what, sizeof(what), "%s, guessed, time %d, request %u", dir, again, i);
            expect_same(what, &said.plain[i], &said.guessed[i]);
        }
    }
    driver_stats(&w.d, stats);
    driver_close(&w.d);
}

static void check_guessed(const char *dir)
{
    mt_stats stats;
    if (fixture_is_rewritten(dir))
        return;
    guess(dir, NULL, &stats);
    if (stats.draft_accepted < TALKERS * SAID / 2)
        fail_msg("%s: %d guesses were right", dir, (int)stats.draft_accepted);
}

static void answers_about_pictures_are_guessed_from_the_text(void **state)
{
    (void)state;
    for_each_folder(SIGHTED, check_guessed);
}

static void expect_echoes(const char *dir, const char *draft)
{
    mt_stats stats;
    guess(dir, draft, &stats);
    if (stats.model_draft_accepted < TALKERS * SAID / 2)
        fail_msg("%s: %d of the model's %d guesses were right", dir, (int)stats.model_draft_accepted,
                 (int)stats.model_draft_tokens);
}

static void answers_about_pictures_are_guessed_by_heads_and_drafters(void **state)
{
    char command[512];
    (void)state;
    snprintf(command, sizeof(command), "cp " SIGHTED "/qwen35-bf16/* " ECHOES "/qwen35-bf16/* '%s'", folder);
    assert_int_equal(system(command), 0);
    expect_echoes(folder, NULL);
    expect_echoes(SIGHTED "/gemma4vl-bf16", ECHOES "/gemma4vl-bf16");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_fixture_that_sees_is_exact),
    cmocka_unit_test(every_fixture_that_sees_keeps_pictures_apart),
    cmocka_unit_test(answers_about_pictures_are_guessed_from_the_text),
    cmocka_unit_test_setup_teardown(answers_about_pictures_are_guessed_by_heads_and_drafters, make_folder,
                                    remove_folder),
};

UNIT_MAIN(tests)
