/* Budgets of thinking: an answer thinks as it would without one, until the budget is spent; then the end marker comes,
   and the answer goes on as one whose prompt ends so, alone or with others, whatever is guessed. */
#include "engine_driver.h"

#include "../constraint/follow.h"
#include "sample/thought.h"

#define LEN 50
#define TOKENS 40
#define VOCAB 256 /* of the fixtures, whose tokens are taken for bytes */
#define ASKED 8
#define CHOICES 2
#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"
#define RECURRENT FIXTURES "/qwen35-bf16"

static const char close_text[] = "#!?";
static const uint32_t end[] = {'#', '!', '?'};
enum { END = 3 };

static const size_t budgets[ASKED] = {0, 1, 5, 12, TOKENS - 1, TOKENS, 2, 7};
enum { CUT = 8 }; /* answers of these that have the whole marker; every third request has two answers */

static struct {
    mt_tokenizer *tokenizer;
    mt_vocabulary *vocabulary;
    uint32_t prompt[ASKED][LEN];
    answer plain[ASKED][CHOICES], limited[ASKED][CHOICES], got[ASKED][CHOICES];
} now;

static int set_up(void **state)
{
    draw random = {31};
    (void)state;
    now.tokenizer = constraint_tokenizer(NULL, 0);
    now.vocabulary = mt_vocabulary_new(now.tokenizer, VOCAB, &(uint32_t){0}, 1);
    for (size_t i = 0; i < ASKED; i++)
        draw_tokens(&random, now.prompt[i], LEN, VOCAB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mt_vocabulary_free(now.vocabulary);
    mt_tokenizer_free(now.tokenizer);
    return 0;
}

static void start(driver *d)
{
    mt_error err = {0};
    assert_int_equal(d->o.spec.vocab, VOCAB);
    d->engine = mt_engine_start(&d->o, now.tokenizer, &d->params, &err);
    if (!d->engine)
        fail_msg("%s", err.text);
}

static mt_thought_rule *limit(mt_request *r, size_t budget)
{
    mt_thought_rule *how = mt_arena_alloc(r->arena, sizeof(*how));
    *how = (mt_thought_rule){.budget = budget,
                             .open = "<<",
                             .close = close_text,
                             .opened = true,
                             .end = end,
                             .end_count = END,
                             .end_once = END};
    r->thinking = how;
    return how;
}

/* Request i: greedy or seeded, with penalties and biases, some with two answers. */
static mt_request *request(driver *d, size_t i, answer *to)
{
    memset(to, 0, CHOICES * sizeof(*to));
    mt_request *r = driver_request(d, now.prompt[i], LEN, TOKENS, to);
    driver_vary(r, i % KINDS);
    r->choices = i % 3 == 1 ? CHOICES : 1;
    return r;
}

/* ---- alone: what is right ---- */

/* Budget tokens as without a budget, then the marker, then as goes on behind a prompt of all that. */
static void check_limited(driver *d, size_t i, size_t choice)
{
    const answer *plain = &now.plain[i][choice], *limited = &now.limited[i][choice];
    const size_t budget = MT_MIN(budgets[i], TOKENS), shown = MT_MIN(budget + END, TOKENS);
    static answer rest;
    uint32_t prompt[LEN + TOKENS];
    assert_int_equal(limited->count, TOKENS);
    for (size_t t = 0; t < budget; t++)
        assert_memory_equal(&limited->chosen[t], &plain->chosen[t], sizeof(plain->chosen[t]));
    for (size_t t = budget; t < shown; t++)
        assert_int_equal(limited->chosen[t].id, end[t - budget]);
    if (i % KINDS || shown == TOKENS) /* drawn: by the number of the token */
        return;
    memcpy(prompt, now.prompt[i], sizeof(now.prompt[i]));
    for (size_t t = 0; t < shown; t++)
        prompt[LEN + t] = limited->chosen[t].id;
    driver_ask(d, prompt, LEN + shown, TOKENS - shown, &rest);
    for (size_t t = 0; t < rest.count; t++)
        assert_memory_equal(&rest.chosen[t], &limited->chosen[shown + t], sizeof(rest.chosen[t]));
}

static void answer_alone(const char *dir)
{
    mt_stats stats;
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.speculate = MT_SPECULATE_OFF;
    start(&d);
    for (size_t i = 0; i < ASKED; i++) {
        driver_send(&d, request(&d, i, now.plain[i]));
        driver_wait(&d, 0);
        mt_request *r = request(&d, i, now.limited[i]);
        limit(r, budgets[i]);
        driver_send(&d, r);
        driver_wait(&d, 0);
        for (size_t c = 0; c < (i % 3 == 1 ? CHOICES : 1); c++)
            check_limited(&d, i, c);
    }
    driver_stats(&d, &stats);
    assert_int_equal(stats.thinking_cut, CUT);
    driver_close(&d);
}

static void thinking_ends_at_its_budget(void **state)
{
    (void)state;
    answer_alone(FIXTURE);
}

/* ---- in any company ---- */

typedef struct company {
    size_t depth;      /* of guesses; 0: nothing is guessed */
    bool past;         /* what is expected has no end of thinking in it: the guesses go past the budget */
    bool ahead, tight; /* steps begin ahead; pages are short, so that answers are set aside */
} company;

static void expect(mt_request *r, const answer *known)
{
    uint32_t *expected = mt_arena_alloc(r->arena, TOKENS * sizeof(*expected));
    for (size_t t = 0; t < known->count; t++)
        expected[t] = known->chosen[t].id;
    r->expected = expected;
    r->expected_count = known->count;
}

static void compare(const char *dir, const company *how, size_t again)
{
    char what[200];
    for (size_t i = 0; i < ASKED; i++)
        for (size_t c = 0; c < CHOICES; c++) {
            snprintf(what, sizeof(what), "%s, depth %zu%s%s%s, time %zu, request %zu, choice %zu", dir, how->depth,
                     how->past ? ", past" : "", how->ahead ? ", ahead" : "", how->tight ? ", tight" : "", again, i, c);
            expect_same(what, &now.limited[i][c], &now.got[i][c]);
        }
}

/* All together, twice: the second time the prompts are known. */
static void answer_together(const char *dir, const company *how)
{
    mt_stats stats;
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.speculate = how->depth ? MT_SPECULATE_NGRAM : MT_SPECULATE_OFF;
    d.params.draft = how->depth;
    d.params.draft_all = true;
    d.params.ahead = how->ahead ? MT_AHEAD_ALWAYS : MT_AHEAD_NEVER;
    if (how->tight)
        d.params.cache = 16 * MT_PAGE_TOKENS;
    start(&d);
    for (size_t again = 0; again < 2; again++) {
        driver_hold(&d);
        for (size_t i = 0; i < ASKED; i++) {
            mt_request *r = request(&d, i, now.got[i]);
            limit(r, budgets[i]);
            if (how->depth)
                expect(r, how->past ? now.plain[i] : now.limited[i]);
            driver_send(&d, r);
        }
        driver_let_go(&d);
        driver_wait(&d, 0);
        compare(dir, how, again);
    }
    driver_stats(&d, &stats);
    assert_int_equal(stats.thinking_cut, 2 * CUT);
    assert_true(how->depth == 0 || stats.draft_accepted > 0);
    assert_true(!how->tight || stats.preemptions > 0);
    driver_close(&d);
}

static void check_company(const char *dir)
{
    static const company companies[] = {{0},
                                        {.ahead = true},
                                        {.tight = true},
                                        {.depth = 1},
                                        {.depth = 4, .past = true},
                                        {.depth = 8, .tight = true},
                                        {.depth = 8, .past = true, .ahead = true}};
    answer_alone(dir);
    for (size_t i = 0; i < MT_COUNT(companies); i++)
        answer_together(dir, &companies[i]);
}

static void no_company_moves_the_end(void **state)
{
    (void)state;
    check_company(FIXTURE);
    check_company(RECURRENT);
}

/* A device that goes ahead does so until the budget is nearly spent, and again behind the marker. */
static void steps_are_begun_ahead_around_it(void **state)
{
    static answer a[CHOICES];
    mt_stats stats;
    driver d;
    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    d.params.ahead = MT_AHEAD_ALWAYS;
    d.params.speculate = MT_SPECULATE_OFF;
    start(&d);
    mt_request *r = request(&d, 0, a);
    r->sampling.logprobs = -1;
    limit(r, 12);
    driver_send(&d, r);
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_int_equal(a[0].chosen[12].id, end[0]);
    assert_in_range(stats.ahead_steps, TOKENS - 10, TOKENS - 2);
    driver_close(&d);
}

/* ---- markers that the model writes ---- */

/* The bytes of tokens [from, to) of a plain answer, as a marker. */
static const char *marker(mt_request *r, const answer *a, size_t from, size_t to)
{
    char *text = mt_arena_alloc(r->arena, to - from + 1);
    for (size_t t = from; t < to; t++)
        text[t - from] = (char)a->chosen[t].id;
    return text;
}

/* The first answer whose tokens are letters enough to be a marker. */
static size_t find_markers(void)
{
    for (size_t i = 0; i < ASKED; i++) {
        bool fits = true;
        for (size_t t = 0; t < 8; t++)
            fits = fits && now.plain[i][0].chosen[t].id > ' ';
        if (fits)
            return i;
    }
    fail_msg("no answer begins with anything like a marker");
    return 0;
}

static const answer *ask_ruled(driver *d, size_t i, mt_request *r)
{
    driver_send(d, r);
    driver_wait(d, 0);
    return &now.got[i][0];
}

static void what_the_model_writes_begins_and_ends_it(void **state)
{
    mt_thought_rule *how;
    driver d;
    (void)state;
    answer_alone(FIXTURE);
    const size_t i = find_markers();
    const answer *plain = &now.plain[i][0], *got;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    start(&d);

    mt_request *r = request(&d, i, now.got[i]); /* it opens: two tokens, and four of the thought */
    how = limit(r, 4);
    how->opened = false;
    how->open = marker(r, plain, 0, 2);
    got = ask_ruled(&d, i, r);
    for (size_t t = 0; t < 6; t++)
        assert_int_equal(got->chosen[t].id, plain->chosen[t].id);
    assert_int_equal(got->chosen[6].id, end[0]);

    r = request(&d, i, now.got[i]); /* it opens later, where it may */
    how = limit(r, 1);
    how->opened = false;
    how->anywhere = true;
    how->open = marker(r, plain, 3, 5);
    got = ask_ruled(&d, i, r);
    assert_int_equal(got->chosen[5].id, plain->chosen[5].id);
    assert_int_equal(got->chosen[6].id, end[0]);

    r = request(&d, i, now.got[i]); /* it opens nothing */
    how = limit(r, 0);
    how->opened = false;
    expect_same("not opened", plain, ask_ruled(&d, i, r));

    r = request(&d, i, now.got[i]); /* it closes in time */
    how = limit(r, 8);
    how->close = marker(r, plain, 3, 6);
    expect_same("closed", plain, ask_ruled(&d, i, r));
    driver_close(&d);
}

/* ---- a constraint that begins behind it ---- */

static void release(void *constraint)
{
    mt_constraint_release(constraint);
}

/* Bytes without the marker, the marker, six letters from a to c. characters: whole characters instead of bytes, in the
   midst of which no marker may begin. */
static void constrain(mt_request *r, bool characters)
{
    static const mt_char_range any[] = {{1, '#' - 1}, {'#' + 1, 0x10ffff}};
    static const char *const markers[] = {close_text};
    const mt_byteset letters = {{0, UINT64_C(7) << ('a' - 64)}};
    mt_grammar *g = mt_grammar_new();
    mt_error err = {0};
    const mt_expr thought = characters ? mt_grammar_repeat(g, mt_grammar_chars(g, any, 2), 0, MT_GRAMMAR_UNLIMITED)
                                       : mt_grammar_without(g, markers, 1);
    const mt_expr parts[] = {thought, mt_grammar_text(g, close_text),
                             mt_grammar_repeat(g, mt_grammar_bytes(g, &letters), 6, 6)};
    mt_grammar_define(g, MT_GRAMMAR_START, mt_grammar_list(g, parts, MT_COUNT(parts)));
    r->constraint = mt_constraint_new(g, now.vocabulary, &err);
    if (!r->constraint)
        fail_msg("%s", err.text);
    mt_grammar_free(g);
    assert_true(mt_arena_defer(r->arena, release, r->constraint));
}

static void check_constrained(const answer *a, size_t least, size_t most)
{
    size_t at = least;
    assert_int_equal(a->finish, MT_FINISH_STOP);
    while (at < a->count && a->chosen[at].id != end[0])
        at++;
    assert_in_range(at, least, most);
    assert_int_equal(a->count, at + END + 6);
    for (size_t t = 0; t < END; t++)
        assert_int_equal(a->chosen[at + t].id, end[t]);
    for (size_t t = at + END; t < a->count; t++)
        assert_in_range(a->chosen[t].id, 'a', 'c');
}

static void ask_constrained(size_t depth, bool characters, answer (*to)[CHOICES])
{
    driver d;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    d.params.speculate = depth ? MT_SPECULATE_NGRAM : MT_SPECULATE_OFF;
    d.params.draft = depth;
    d.params.draft_all = true;
    start(&d);
    driver_hold(&d);
    for (size_t i = 0; i < 4; i++) {
        mt_request *r = request(&d, i, to[i]);
        limit(r, budgets[i]);
        constrain(r, characters);
        if (depth)
            expect(r, now.limited[i]);
        driver_send(&d, r);
    }
    driver_let_go(&d);
    driver_wait(&d, 0);
    driver_close(&d);
}

static void a_constraint_goes_on_behind_the_marker(void **state)
{
    (void)state;
    for (int characters = 0; characters < 2; characters++) {
        ask_constrained(0, characters, now.limited);
        for (size_t i = 0; i < 4; i++)
            for (size_t c = 0; c < (i % 3 == 1 ? CHOICES : 1); c++)
                check_constrained(&now.limited[i][c], budgets[i], budgets[i] + (characters ? 3 : 0));
        ask_constrained(8, characters, now.got);
        for (size_t i = 0; i < 4; i++)
            expect_same("constrained, with guesses", &now.limited[i][0], &now.got[i][0]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
static const struct CMUnitTest tests[] = {
    TEST(thinking_ends_at_its_budget),
    TEST(no_company_moves_the_end),
    TEST(steps_are_begun_ahead_around_it),
    TEST(what_the_model_writes_begins_and_ends_it),
    TEST(a_constraint_goes_on_behind_the_marker),
};
UNIT_MAIN(tests)
