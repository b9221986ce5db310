/* What a step makes of a sequence's past: which tokens bad words are compared with, and which positions of a prompt
   were told already. */
#include "engine_driver.h"
#include "sample/limits.h"

#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"

enum { PROMPT = 90, CHUNK = 7, TOKENS = MT_LIMIT_BAD_TOKENS + 40 };

/* ---- bad words ---- */

/* An answer that is longer than a bad word may be. */
typedef struct speech {
    driver *d;
    uint32_t said[TOKENS];
    size_t count;
} speech;

static void speech_event(void *ctx, const mt_event *ev)
{
    speech *s = ctx;
    pthread_mutex_lock(&s->d->lock);
    if (ev->kind == MT_EVENT_TOKEN)
        s->said[s->count++] = ev->token;
    if (ev->kind == MT_EVENT_DONE) {
        s->d->open--;
        pthread_cond_broadcast(&s->d->ended);
    }
    pthread_mutex_unlock(&s->d->lock);
}

/* Draws an answer, so that it hardly repeats itself; without the word, where there is one. */
static void draw_answer(driver *d, const uint32_t *prompt, const mt_bad_word *word, speech *s)
{
    answer ignored;
    mt_request *r = driver_request(d, prompt, PROMPT, TOKENS, &ignored);
    *s = (speech){.d = d};
    r->event = speech_event;
    r->ctx = s;
    r->sampling.temperature = 1.5f;
    r->sampling.seed = 11;
    r->sampling.bad = word;
    r->sampling.bad_count = word != NULL;
    driver_send(d, r);
    driver_wait(d, 0);
    assert_int_equal(s->count, TOKENS);
}

/* How many tokens two answers begin with alike. */
static size_t alike(const speech *a, const speech *b)
{
    size_t n = 0;
    while (n < TOKENS && a->said[n] == b->said[n])
        n++;
    return n;
}

/* How many tokens an answer has before the last one of a word that stands in it. */
static size_t tokens_before(const speech *s, const mt_bad_word *word)
{
    size_t end = word->count;
    while (memcmp(s->said + end - word->count, word->ids, word->count * sizeof(*word->ids)) != 0)
        end++;
    return end - 1;
}

/* A word that stands in an answer and is forbidden changes the answer at the word's last token, wherever that is and
   however long the word is; or before, where the word's other tokens stand and that one is not drawn any more. Tokens
   of the prompt do not count. */
static void a_bad_word_is_met_in_the_answer(void **state)
{
    static const size_t lengths[] = {2, 3, MT_LIMIT_BAD_TOKENS - 1, MT_LIMIT_BAD_TOKENS};
    static speech whole, without;
    uint32_t prompt[PROMPT];
    draw random = {5};
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 1);
    driver_start(&d);
    draw_tokens(&random, prompt, PROMPT, d.o.spec.vocab);
    draw_answer(&d, prompt, NULL, &whole);
    for (size_t i = 0; i < MT_COUNT(lengths); i++) {
        const size_t len = lengths[i];
        const size_t ends[] = {len, len + 1, MT_LIMIT_BAD_TOKENS, MT_LIMIT_BAD_TOKENS + 1, TOKENS};
        for (size_t k = 0; k < MT_COUNT(ends); k++) {
            const mt_bad_word word = {whole.said + ends[k] - len, len};
            draw_answer(&d, prompt, &word, &without);
            assert_in_range(alike(&whole, &without), tokens_before(&whole, &(mt_bad_word){word.ids, len - 1}) + 1,
                            tokens_before(&whole, &word));
        }
    }
    const uint32_t across[] = {prompt[PROMPT - 1], whole.said[0]};
    draw_answer(&d, prompt, &(mt_bad_word){across, 2}, &without);
    assert_int_equal(alike(&whole, &without), TOKENS);
    driver_close(&d);
}

/* ---- logprobs of prompts ---- */

typedef struct visit {
    driver d;
    mt_request *newcomer; /* it comes after `at` steps; NULL: none does */
    size_t steps, at;
} visit;

static void visit_turn(void *ctx, bool begins)
{
    visit *v = ctx;
    driver_turn(&v->d, begins);
    if (!begins && ++v->steps == v->at && v->newcomer)
        driver_send(&v->d, v->newcomer);
}

/* Two prompts of one client are computed a few rows a step; where `at`, a client without a seat comes after so many
   steps, and one of them loses its seat and begins anew. */
static void tell_prompts(size_t at, answer told[2], float logprob[2][2 * PROMPT])
{
    static answer other;
    static visit v;
    uint32_t prompt[3][PROMPT];
    draw random = {6};
    mt_stats stats;
    v = (visit){.at = at};
    driver_open(&v.d, FIXTURE, MT_PRECISION_FAST, 1);
    v.d.params.sequences = 2;
    v.d.params.chunk = CHUNK;
    v.d.params.turn = visit_turn;
    v.d.params.turn_ctx = &v;
    driver_start(&v.d);
    draw_tokens(&random, prompt[0], MT_COUNT(prompt) * PROMPT, v.d.o.spec.vocab);
    if (at) {
        v.newcomer = driver_request(&v.d, prompt[2], PROMPT, 4, &other);
        v.newcomer->client.id = 2;
    }
    driver_hold(&v.d);
    for (size_t i = 0; i < 2; i++) {
        mt_request *r = driver_request(&v.d, prompt[i], PROMPT, 2, &told[i]);
        told[i].prompt_logprob = logprob[i];
        r->prompt_logprobs = true;
        r->client.id = 1;
        driver_send(&v.d, r);
    }
    driver_let_go(&v.d);
    driver_wait(&v.d, 0);
    driver_stats(&v.d, &stats);
    assert_int_equal(stats.yields, at > 0);
    driver_close(&v.d);
}

/* A sequence that loses its seat computes its prompt anew, as nothing of it may come from the cache; what it has told
   before it does not tell again. */
static void a_position_is_told_once(void **state)
{
    static answer want[2], got[2];
    static float logprob[2][2 * PROMPT], again[2][2 * PROMPT];
    (void)state;
    tell_prompts(0, want, logprob);
    for (size_t at = 2; at < PROMPT / CHUNK; at += 4) { /* both have a seat, and no logprob of the last is told */
        tell_prompts(at, got, again);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(want[i].prompt_count, PROMPT);
            assert_int_equal(got[i].prompt_count, PROMPT);
            assert_memory_equal(again[i] + 1, logprob[i] + 1, (PROMPT - 1) * sizeof(float)); /* the first has none */
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_bad_word_is_met_in_the_answer),
    cmocka_unit_test(a_position_is_told_once),
};

UNIT_MAIN(tests)
