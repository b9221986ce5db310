/* Models with recurrent layers: a state that was cut, kept, continued from, taken away or left behind gives the same
   bits. */
#include "engine_driver.h"

#include <unistd.h>

#define LEN 150
#define TOKENS 5

static void check_chunks(const char *dir)
{
    static answer whole, cut;
    uint32_t prompt[LEN];
    draw random = {31};
    char what[600];
    for (size_t chunk = 0; chunk <= 40; chunk++) {
        driver d;
        driver_open(&d, dir, MT_PRECISION_FAST, chunk % 3 == 0 ? 1 : chunk % 3 == 1 ? 2 : 7);
        if (d.o.spec.state.layers == 0) {
            mt_opened_close(&d.o);
            return;
        }
        d.params.chunk = chunk;
        d.params.sequences = 2;
        driver_start(&d);
        if (chunk == 0)
            draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
        driver_ask(&d, prompt, LEN, TOKENS, chunk ? &cut : &whole);
        snprintf(what, sizeof(what), "%s in chunks of %zu", dir, chunk);
        if (chunk > 0)
            expect_same(what, &whole, &cut);
        driver_close(&d);
    }
}

static void every_size_of_chunk_gives_the_same_bits(void **state)
{
    (void)state;
    for_each_kind(check_chunks);
}

static void ask_with_cuts(driver *d, const uint32_t *prompt, const uint32_t *cuts, size_t count, answer *a)
{
    mt_request *r = driver_request(d, prompt, LEN, TOKENS, a);
    r->cuts = cuts;
    r->cut_count = count;
    driver_send(d, r);
    driver_wait(d, 0);
}

/* One prompt leaves states at its cuts. Others that part from it behind each cut continue there. */
static void check_checkpoints(const char *dir)
{
    static const uint32_t cuts[] = {17, 64, 110}; /* within a page, at the end of one */
    static answer cold[3], warm;
    uint32_t prompt[LEN], other[3][LEN];
    char what[600];
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    if (d.o.spec.state.layers == 0) {
        mt_opened_close(&d.o);
        return;
    }
    draw random = {32};
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    for (size_t i = 0; i < 3; i++) {
        memcpy(other[i], prompt, sizeof(prompt));
        draw_tokens(&random, other[i] + cuts[i], LEN - cuts[i], d.o.spec.vocab);
        other[i][cuts[i]] = (prompt[cuts[i]] + 1) % d.o.spec.vocab;
    }
    mt_opened_close(&d.o);
    for (size_t i = 0; i <= 3; i++) { /* each cold in an engine of its own; then all after the one with cuts */
        driver_open(&d, dir, MT_PRECISION_FAST, 2);
        d.params.sequences = 2;
        driver_start(&d);
        if (i == 3)
            ask_with_cuts(&d, prompt, cuts, 3, &warm);
        for (size_t k = i < 3 ? i : 0; k < (i < 3 ? i + 1 : 3); k++) {
            ask_with_cuts(&d, other[k], cuts, 3, i < 3 ? &cold[k] : &warm);
            if (i < 3)
                continue;
            snprintf(what, sizeof(what), "%s from %u", dir, cuts[k]);
            expect_same(what, &cold[k], &warm);
            assert_int_equal(warm.cached, cuts[k]);
        }
        driver_close(&d);
    }
}

static void every_checkpoint_gives_the_same_bits(void **state)
{
    (void)state;
    for_each_kind(check_checkpoints);
}

#define FIXTURE FIXTURES "/qwen3next-mlx-4bit"

/* Hardly more slots than sequences: they take states from each other, and from what is kept. Steps that are begun ahead
   have slots beside these. */
static void scarce_slots_change_nothing(void **state)
{
    enum { CROWD = 24 };
    static answer alone[CROWD], together[CROWD];
    static uint32_t prompt[CROWD][LEN];
    static const uint32_t cuts[] = {20, 50, 90, 120};
    char what[64];
    draw random = {33};
    driver d;
    mt_stats stats;
    (void)state;
    for (int company = 0; company < 3; company++) {
        driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
        d.params.ahead = company == 2 ? MT_AHEAD_ALWAYS : MT_AHEAD_NEVER;
        d.params.sequences = company ? 6 : 1;
        d.params.state_cache = 1;
        driver_start(&d);
        for (size_t i = 0; i < CROWD; i++) {
            if (!company) {
                draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
                memcpy(prompt[i], prompt[0], cuts[i % 4] * sizeof(uint32_t));
            }
            mt_request *r = driver_request(&d, prompt[i], LEN, TOKENS + i, company ? &together[i] : &alone[i]);
            r->cuts = cuts;
            r->cut_count = MT_COUNT(cuts);
            driver_send(&d, r);
            if (!company)
                driver_wait(&d, 0);
        }
        driver_wait(&d, 0);
        driver_stats(&d, &stats);
        assert_int_equal(stats.states_held, 0);
        assert_int_equal(stats.states_total, company == 2 ? 14 : company ? 8 : 3);
        assert_int_equal(stats.ahead_steps > 0, company == 2);
        driver_close(&d);
        for (size_t i = 0; company && i < CROWD; i++) {
            snprintf(what, sizeof(what), "request %zu in round %d", i, company);
            expect_same(what, &alone[i], &together[i]);
        }
    }
}

enum { TALKS = 120, QUESTION = 40, REPLY = 6 };

static struct {
    uint32_t prompt[TALKS][QUESTION + REPLY];
    answer first[TALKS], again;
} talks;

/* A question of two turns. */
static void ask_talk(driver *d, size_t i, size_t len, answer *a)
{
    static const uint32_t cuts[] = {12, QUESTION - 3};
    mt_request *r = driver_request(d, talks.prompt[i], len, REPLY, a);
    r->cuts = cuts;
    r->cut_count = MT_COUNT(cuts);
    driver_send(d, r);
    driver_wait(d, 0);
}

static void check_talks(const char *dir)
{
    char what[600];
    draw random = {36};
    driver d;
    mt_stats stats;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.sequences = 4;
    d.params.memory = 1u << 30;
    d.params.state_cache = 0;
    d.params.speculate = MT_SPECULATE_OFF; /* behind guesses, the last state is up to four tokens before the end */
    d.params.cache = 4 * TALKS * MT_PAGE_TOKENS;
    driver_start(&d);
    for (size_t i = 0; i < TALKS; i++) {
        draw_tokens(&random, talks.prompt[i], QUESTION, d.o.spec.vocab);
        ask_talk(&d, i, QUESTION, &talks.first[i]);
    }
    for (size_t i = 0; i < TALKS; i++) {
        snprintf(what, sizeof(what), "%s, conversation %zu", dir, i);
        ask_talk(&d, i, QUESTION, &talks.again);
        expect_same(what, &talks.first[i], &talks.again);
        assert_int_equal(talks.again.cached, QUESTION - 1);
    }
    for (size_t i = 0; i < TALKS; i++) { /* the last token of an answer was sampled, not computed */
        for (size_t t = 0; t < REPLY; t++)
            talks.prompt[i][QUESTION + t] = talks.first[i].chosen[t].id;
        ask_talk(&d, i, QUESTION + REPLY, &talks.again);
        assert_int_equal(talks.again.cached, QUESTION + REPLY - 1);
    }
    driver_stats(&d, &stats);
    assert_int_equal(stats.state_evictions, 0);
    driver_close(&d);
}

/* Repeated and continued, each conversation begins at its own last state. */
static void many_conversations_find_their_last_states(void **state)
{
    (void)state;
    check_talks(FIXTURES "/qwen35-mlx-4bit");
    check_talks(FIXTURES "/lfm2-mlx-4bit");
}

/* Kept states have an eighth of what weights and working memory leave, whether few sequences run or many; but no more
   than all pages of the cache could have a use for. */
static void kept_states_have_their_share(void **state)
{
    (void)state;
    if (getenv("MOTET_TEST_QUICK"))
        skip(); /* the process counts, which a sanitizer makes large */
    for (int round = 0; round < 3; round++) {
        driver d;
        mt_stats s;
        driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
        d.params.sequences = round == 1 ? 16 : 2;
        d.params.memory = 128u << 20;
        d.params.state_cache = 0;
        d.params.cache = round == 2 ? 8 * MT_PAGE_TOKENS : 0;
        d.params.ahead = MT_AHEAD_NEVER;
        driver_start(&d);
        driver_stats(&d, &s);
        const size_t slot = mt_state_slot_bytes(d.o.dev, &d.o.spec.state), kept = s.states_total - d.params.sequences;
        const uint64_t left = s.bytes_memory - s.bytes_weights - s.bytes_working - s.bytes_constraints;
        if (round < 2)
            assert_int_equal(kept, left / 8 / slot);
        else
            assert_int_equal(kept, 4 * 8);
        driver_close(&d);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_size_of_chunk_gives_the_same_bits),
    cmocka_unit_test(every_checkpoint_gives_the_same_bits),
    cmocka_unit_test(scarce_slots_change_nothing),
    cmocka_unit_test(many_conversations_find_their_last_states),
    cmocka_unit_test(kept_states_have_their_share),
};

UNIT_MAIN(tests)
