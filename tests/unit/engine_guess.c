/* A head of the model's own or a drafter guesses ahead, and so does what clients expect: no answer depends on any. */
#include "engine_driver.h"
#include "head.h"

#include <jansson.h>
#include <unistd.h>

#include "../constraint/follow.h"
#include "device/limits.h"
#include "engine/inside.h"

#define LEN 60
#define TOKENS 48
#define VOCAB 256 /* of the fixtures, whose tokens are taken for bytes */

enum { ASKED = 8, CHOICES = 2 };

static const char schema[] =
    "{\"type\":\"object\",\"required\":[\"a\",\"b\"],\"additionalProperties\":false,\"properties\":{"
    "\"a\":{\"type\":\"string\",\"minLength\":8,\"maxLength\":12},"
    "\"b\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":6}}}";

typedef struct guessing {
    size_t depth; /* 0: nothing is guessed */
    size_t wrong; /* every so-manieth expected token is another; 0: nothing is expected */
} guessing;

static struct {
    const char *draft; /* the folder of the drafter; NULL: the model has a head */
    mt_tokenizer *tokenizer;
    mt_vocabulary *vocabulary;
    uint32_t prompt[ASKED][LEN];
    answer plain[ASKED][CHOICES], guessed[ASKED][CHOICES];
} now;

static int set_up(void **state)
{
    now.tokenizer = constraint_tokenizer(NULL, 0);
    now.vocabulary = mt_vocabulary_new(now.tokenizer, VOCAB, &(uint32_t){0}, 1);
    return make_folder(state);
}

static int tear_down(void **state)
{
    mt_vocabulary_free(now.vocabulary);
    mt_tokenizer_free(now.tokenizer);
    return remove_folder(state);
}

static void release(void *constraint)
{
    mt_constraint_release(constraint);
}

static void constrain(mt_request *r)
{
    mt_error err = {0};
    json_t *value = json_loads(schema, 0, NULL);
    assert_non_null(value);
    r->constraint = constraint_compile(now.vocabulary, MT_SOURCE_SCHEMA, value, &err);
    if (!r->constraint)
        fail_msg("%s", err.text);
    json_decref(value);
    assert_true(mt_arena_defer(r->arena, release, r->constraint));
}

/* ---- readers that fall asleep now and then ---- */

static struct {
    pthread_mutex_t lock;
    mt_request *request[ASKED]; /* that are paused */
} asleep = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct sleeper {
    void *awake; /* what driver_event takes */
    mt_request *request;
    size_t number, tokens;
} sleeper;

static void sleeper_event(void *ctx, const mt_event *ev)
{
    sleeper *s = ctx;
    pthread_mutex_lock(&asleep.lock);
    if (ev->kind == MT_EVENT_TOKEN && ++s->tokens % 5 == 0) {
        atomic_store(&s->request->paused, true);
        asleep.request[s->number] = s->request;
    }
    if (ev->kind == MT_EVENT_DONE && ev->last)
        asleep.request[s->number] = NULL;
    pthread_mutex_unlock(&asleep.lock);
    driver_event(s->awake, ev);
}

static void fall_asleep(mt_request *r, size_t number)
{
    sleeper *s = mt_arena_alloc(r->arena, sizeof(*s));
    *s = (sleeper){.awake = r->ctx, .request = r, .number = number};
    r->ctx = s;
    r->event = sleeper_event;
}

static bool wake_all(driver *d)
{
    pthread_mutex_lock(&asleep.lock);
    for (size_t i = 0; i < ASKED; i++)
        if (asleep.request[i]) {
            atomic_store(&asleep.request[i]->paused, false);
            asleep.request[i] = NULL;
        }
    pthread_mutex_unlock(&asleep.lock);
    mt_engine_poke(d->engine);
    pthread_mutex_lock(&d->lock);
    const bool open = d->open > 0;
    pthread_mutex_unlock(&d->lock);
    return open;
}

/* ---- answers ---- */

/* Greedy and seeded, with penalties and biases; each third follows a schema, each fourth has two answers. */
static void ask(driver *d, size_t i, const guessing *how, answer *to)
{
    memset(to, 0, CHOICES * sizeof(*to));
    mt_request *r = driver_request(d, now.prompt[i], LEN, TOKENS, to);
    driver_vary(r, i % KINDS);
    if (i % 3 == 2)
        constrain(r);
    r->choices = i % 4 == 1 ? CHOICES : 1;
    if (how->depth && i % 2 == 0)
        fall_asleep(r, i);
    if (how->wrong) {
        const answer *known = now.plain[i];
        uint32_t *expected = mt_arena_alloc(r->arena, (known->count + 1) * sizeof(*expected));
        for (size_t t = 0; t < known->count; t++)
            expected[t] = t % how->wrong == how->wrong - 1 ? 3 : known->chosen[t].id;
        r->expected = expected;
        r->expected_count = known->count;
    }
    driver_send(d, r);
}

static void compare(const char *name, const guessing *how, size_t again)
{
    char what[160];
    for (size_t i = 0; i < ASKED; i++)
        for (size_t c = 0; c < CHOICES; c++) {
            snprintf(what, sizeof(what), "%s, depth %zu, every %zu wrong, time %zu, request %zu, choice %zu", name,
                     how->depth, how->wrong, again, i, c);
            expect_same(what, &now.plain[i][c], &now.guessed[i][c]);
            assert_int_equal(now.guessed[i][c].finish, now.plain[i][c].finish);
        }
}

/* All together, twice: the second time the prompts are known. */
static void ask_all(const char *name, const guessing *how, mt_stats *stats)
{
    driver d;
    driver_open_with(&d, folder, now.draft, MT_PRECISION_FAST, 2);
    assert_true(d.o.spec.vocab == VOCAB && (now.draft ? d.o.spec.drafter != NULL : d.o.spec.mtp));
    d.params.speculate = how->depth ? MT_SPECULATE_MTP : MT_SPECULATE_OFF;
    d.params.draft = how->depth;
    d.params.draft_all = true;
    d.params.sequences = 6;
    if (how->depth) { /* short of pages and of states */
        d.params.cache = 16 * MT_PAGE_TOKENS;
        d.params.state_cache = how->depth % 2 ? 1 : 0;
        d.params.chunk = how->depth == 2 ? 7 : 0;
    }
    driver_start(&d);
    for (size_t again = 0; again < 2; again++) {
        driver_hold(&d);
        for (size_t i = 0; i < ASKED; i++)
            ask(&d, i, how, how->depth ? now.guessed[i] : now.plain[i]);
        driver_let_go(&d);
        while (wake_all(&d))
            usleep(500);
        if (how->depth)
            compare(name, how, again);
    }
    driver_stats(&d, stats);
    assert_int_equal(stats->pages_held[0] + stats->states_held, 0);
    driver_close(&d);
}

static void draw_prompts(void)
{
    draw random = {12};
    for (size_t i = 0; i < ASKED; i++) {
        draw_tokens(&random, now.prompt[i], LEN, VOCAB);
        memcpy(now.prompt[i], now.prompt[0], i % 2 * 40 * sizeof(uint32_t));
    }
}

static void check(const char *name, size_t step)
{
    static const size_t wrongs[] = {0, TOKENS + 1, 3};
    uint64_t preemptions = 0;
    mt_stats stats;
    draw_prompts();
    ask_all(name, &(guessing){0}, &stats);
    for (size_t depth = 1; depth <= MT_LIMIT_MEMO_ROWS; depth += step)
        for (size_t w = 0; w < MT_COUNT(wrongs); w += step) {
            ask_all(name, &(guessing){depth, wrongs[w]}, &stats);
            assert_true(stats.draft_tokens > 0);
            assert_true(stats.draft_accepted > 0 || wrongs[w] == 0);
            preemptions += stats.preemptions;
        }
    assert_true(preemptions > 0);
}

static void check_head(const char *dir)
{
    const char *name = strrchr(dir, '/') + 1;
    now.draft = NULL;
    put_head(name);
    check(name, unit_races() ? 2 : 1);
}

static void put_checkpoint(const char *name)
{
    char command[512];
    snprintf(command, sizeof(command), "rm -rf '%s'/* && cp " FIXTURES "/%s/* '%s'", folder, name, folder);
    assert_int_equal(system(command), 0);
}

/* Two are enough: one whose model shares keys, with clusters of tokens, and one without either. */
static void check_draft(const char *dir)
{
    const char *name = strrchr(dir, '/') + 1;
    if (!strstr("gemma4-aside-bf16 gemma4-bf16", name))
        return;
    put_checkpoint(name);
    now.draft = dir;
    check(name, 2);
}

/* Together, preempted and paused, in chunks, from the cache, with states taken away: whatever the head says. */
static void a_head_changes_no_answer(void **state)
{
    (void)state;
    for_each_folder(HEADS, check_head);
}

static void a_drafter_changes_no_answer(void **state)
{
    (void)state;
    for_each_folder(DRAFTS, check_draft);
}

/* ---- which of the two guesses ---- */

/* How an answer of ANSWER_TOKENS tokens to one prompt is guessed, with every guess tried. words: how many different
   tokens it may have, so that it repeats itself; 0: it avoids tokens that it has had. */
static void ask_guessed(mt_speculation speculate, size_t words, answer *a, mt_stats *stats)
{
    static const mt_logit_bias likely[] = {{5, 50}, {9, 50}, {17, 50}, {101, 50}};
    driver d;
    driver_open_with(&d, folder, now.draft, MT_PRECISION_FAST, 2);
    d.params.speculate = speculate;
    d.params.draft = MT_LIMIT_MEMO_ROWS;
    d.params.draft_all = true;
    driver_start(&d);
    mt_request *r = driver_request(&d, now.prompt[0], LEN, ANSWER_TOKENS, a);
    r->sampling.bias = likely;
    r->sampling.bias_count = words;
    r->sampling.presence_penalty = r->sampling.frequency_penalty = words ? 0 : 2;
    driver_send(&d, r);
    driver_wait(&d, 0);
    driver_stats(&d, stats);
    driver_close(&d);
}

/* Heads and drafters of the fixtures have random weights, and hardly ever guess right. */
static void check_sources(const char *name)
{
    static answer plain, guessed;
    mt_stats text, both;
    draw_prompts();
    for (size_t words = 2; words <= 4; words++) {
        ask_guessed(MT_SPECULATE_OFF, words, &plain, &text);
        ask_guessed(MT_SPECULATE_NGRAM, words, &guessed, &text);
        expect_same(name, &plain, &guessed);
        ask_guessed(MT_SPECULATE_MTP, words, &guessed, &both);
        expect_same(name, &plain, &guessed);
        if (both.draft_accepted + 4 < text.draft_accepted || text.draft_accepted < ANSWER_TOKENS / 2 ||
            both.model_draft_tokens > ANSWER_TOKENS / 2)
            fail_msg("%s, %zu words: %d guesses right, %d from the text alone; %d of the model's tried", name, words,
                     (int)both.draft_accepted, (int)text.draft_accepted, (int)both.model_draft_tokens);
    }
    ask_guessed(MT_SPECULATE_NGRAM, 0, &guessed, &text);
    ask_guessed(MT_SPECULATE_MTP, 0, &guessed, &both);
    assert_true(text.draft_tokens < ANSWER_TOKENS && both.model_draft_tokens > 2 * ANSWER_TOKENS);
}

/* Where the text repeats itself, and the model is asked all the same where the text has nothing to say. */
static void the_text_takes_over_where_a_model_guesses_wrong(void **state)
{
    (void)state;
    now.draft = NULL;
    put_head("qwen35-mlx-4bit");
    check_sources("qwen35-mlx-4bit");
    put_head("qwen3next-bf16");
    check_sources("qwen3next-bf16");
    put_checkpoint("gemma4-bf16");
    now.draft = DRAFTS "/gemma4-bf16";
    check_sources("gemma4-bf16");
}

/* ---- what guesses may cost ---- */

#define SMALL FIXTURES "/qwen3-mlx-4bit-g32" /* one group of layers, and no states */

/* Another sequence, which has all pages of the cache but those that the answer's next token needs. */
typedef struct greedy {
    driver d;
    mt_seq others;
    bool there;
} greedy;

/* On the engine's thread: a step has ended, and the next is not planned yet. */
static void take_the_rest(void *ctx, bool begins)
{
    static const uint8_t salt[32] = {1};
    greedy *g = ctx;
    mt_engine *e = g->d.engine;
    driver_turn(&g->d, begins);
    if (begins)
        return;
    if (g->there)
        mt_seq_free(&g->others);
    g->there = e->running_count > 0 && mt_sequence_left(e->running[0]) > 1;
    if (!g->there)
        return;
    const mt_seq *seq = &e->running[0]->seq;
    const size_t rest = mt_tree_available(e->tree, 0) - mt_seq_wants(seq, seq->known);
    mt_seq_init(&g->others, 1, mt_tree_total(e->tree, 0) * MT_PAGE_TOKENS);
    mt_seq_attach(&g->others, e->tree, salt);
    if (!mt_seq_grow(&g->others, rest * MT_PAGE_TOKENS))
        abort();
}

/* Guesses behind the last page that an answer can have are not computed; they cost no other answer its seat, and this
   one not its end. */
static void guesses_cost_nobody_a_page(void **state)
{
    static const mt_logit_bias likely[] = {{5, 50}, {9, 50}};
    static answer plain, guessed;
    mt_stats stats;
    (void)state;
    draw_prompts();
    for (int guesses = 0; guesses < 2; guesses++) {
        static greedy g;
        answer *to = guesses ? &guessed : &plain;
        driver_open(&g.d, SMALL, MT_PRECISION_FAST, 1);
        g.d.params.context = 512;
        g.d.params.sequences = 2;
        g.d.params.cache = 512;
        g.d.params.ahead = MT_AHEAD_NEVER;
        g.d.params.speculate = guesses ? MT_SPECULATE_NGRAM : MT_SPECULATE_OFF;
        g.d.params.draft = MT_LIMIT_MEMO_ROWS;
        g.d.params.draft_all = true;
        g.d.params.turn = take_the_rest;
        g.d.params.turn_ctx = &g;
        driver_start(&g.d);
        mt_request *r = driver_request(&g.d, now.prompt[0], LEN, ANSWER_TOKENS, to);
        r->sampling.bias = likely; /* a text that repeats itself */
        r->sampling.bias_count = MT_COUNT(likely);
        driver_send(&g.d, r);
        driver_wait(&g.d, 0);
        driver_stats(&g.d, &stats);
        driver_close(&g.d);
        assert_int_equal(to->finish, MT_FINISH_LENGTH);
    }
    assert_true(stats.draft_accepted > ANSWER_TOKENS / 2);
    expect_same(SMALL, &plain, &guessed);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(a_head_changes_no_answer, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_drafter_changes_no_answer, set_up, tear_down),
    cmocka_unit_test_setup_teardown(the_text_takes_over_where_a_model_guesses_wrong, set_up, tear_down),
    cmocka_unit_test(guesses_cost_nobody_a_page),
};

UNIT_MAIN(tests)
