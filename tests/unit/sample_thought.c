/* When a thought has to end, token by token. */
#include "unit.h"

#include <string.h>

#include "sample/sampler.h"
#include "sample/thought.h"

enum { END = 100, START, FINAL };

static const uint32_t end[] = {END, START, FINAL};

static const mt_thought_rule plain = {
    .budget = 3, .open = "<think>", .close = "</think>", .end = end, .end_count = 1, .end_once = 1};
static const mt_thought_rule framed = {.budget = 3,
                                       .open = "<|analysis|>",
                                       .close = "<|end|>",
                                       .anywhere = true,
                                       .end = end,
                                       .end_count = 3,
                                       .end_once = 2};

/* The answer goes on with texts, each a token, the last of which is followed by NULL. Before each but the first, and
   behind the last, any token may come. */
static void say(mt_thought *t, const mt_thought_rule *how, const char *const *texts)
{
    for (; *texts; texts++) {
        mt_thought_token(t, how, 1, *texts, strlen(*texts));
        if (texts[1])
            assert_int_equal(mt_thought_next(t, how), MT_SAMPLE_ANY);
    }
}

#define SAY(t, how, ...) say(t, how, (const char *const[]){__VA_ARGS__, NULL})

static mt_thought opened(void)
{
    return (mt_thought){.thinking = true};
}

static void a_thought_ends_when_its_budget_is_spent(void **state)
{
    (void)state;
    for (size_t budget = 0; budget < 6; budget++) {
        mt_thought_rule how = plain;
        mt_thought t = opened();
        how.budget = budget;
        for (size_t i = 0; i < budget; i++) {
            assert_int_equal(mt_thought_next(&t, &how), MT_SAMPLE_ANY);
            mt_thought_token(&t, &how, 1, "word", 4);
        }
        assert_int_equal(mt_thought_next(&t, &how), END);
        mt_thought_token(&t, &how, END, "</think>", 8);
        assert_true(t.cut && t.over);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(mt_thought_next(&t, &how), MT_SAMPLE_ANY);
            SAY(&t, &how, "<think>"); /* is text by now */
        }
    }
}

static void a_thought_that_ends_by_itself_is_not_ended(void **state)
{
    static const char *const ends[][4] = {
        {"</think>"}, {"</", "think", ">"}, {"a</t", "hink>b"}, {"</", "</think>"}, {"<</think>"}};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(ends); i++) {
        mt_thought t = opened();
        say(&t, &plain, ends[i]);
        assert_true(t.over && !t.cut);
        SAY(&t, &plain, "a", "b", "c", "d", "e");
        assert_int_equal(mt_thought_next(&t, &plain), MT_SAMPLE_ANY);
    }
}

static void the_model_may_open_it_where_its_answer_begins(void **state)
{
    static const char *const opens[][4] = {{"<think>"}, {"\n\n", " <think>"}, {"<", "thi", "nk>"}};
    static const char *const others[][4] = {{"a", "<think>"}, {"<th", "<think>"}, {"<thinks>", "<think>"}};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(opens); i++) {
        mt_thought t = {0};
        say(&t, &plain, opens[i]);
        assert_true(t.thinking);
        SAY(&t, &plain, "a", "b", "c");
        assert_int_equal(mt_thought_next(&t, &plain), END);
    }
    for (size_t i = 0; i < MT_COUNT(others); i++) {
        mt_thought t = {0};
        say(&t, &plain, others[i]);
        assert_true(t.over);
    }
}

/* The budget is that of all thoughts together; the second time the answer is begun as well. */
static void thoughts_anywhere_share_the_budget(void **state)
{
    mt_thought t = {0};
    (void)state;
    SAY(&t, &framed, "<|ana", "lysis|>", "a", "<|end|>", "text", "<|analysis|>", "b", "c");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(mt_thought_next(&t, &framed), end[i]);
        mt_thought_token(&t, &framed, end[i], "<|end|>", 7);
    }
    assert_true(t.cut && !t.thinking && !t.over);
    SAY(&t, &framed, "<|analysis|>");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(mt_thought_next(&t, &framed), end[i]);
        mt_thought_token(&t, &framed, end[i], "", 0);
    }
    assert_int_equal(mt_thought_next(&t, &framed), MT_SAMPLE_ANY);
}

static void a_call_may_end_it(void **state)
{
    mt_thought_rule how = plain;
    mt_thought t = opened();
    (void)state;
    how.breaks = "<call>";
    SAY(&t, &how, "a", "b<", "call>");
    assert_true(t.over && !t.cut);
}

/* What follows a marker that was begun and not ended is followed from its beginning. */
static void a_token_that_was_not_the_wanted_one_begins_anew(void **state)
{
    mt_thought t = {.thinking = true, .tokens = 3};
    (void)state;
    mt_thought_token(&t, &framed, END, "", 0);
    assert_int_equal(mt_thought_next(&t, &framed), START);
    mt_thought_token(&t, &framed, 1, "a", 1);
    assert_int_equal(mt_thought_next(&t, &framed), END);
}

/* Where a step is begun before the token before it is known, whatever that is must not decide. */
static void it_is_known_a_token_ahead_that_none_is_forced(void **state)
{
    static const char *const tokens[] = {"a", "<think>", "</think>", "\n", "</", "think>"};
    size_t free = 0;
    (void)state;
    for (size_t seed = 0; seed < 3000; seed++) {
        mt_thought_rule how = seed % 2 ? plain : framed;
        mt_thought t = {.thinking = seed % 3 == 0};
        size_t random = seed;
        how.budget = seed % 5;
        for (size_t i = 0; i < 12; i++) {
            const bool soon = mt_thought_ends_soon(&t, &how);
            const uint32_t next = mt_thought_next(&t, &how);
            const char *text = tokens[(random = random * 7919 + 13) % MT_COUNT(tokens)];
            mt_thought_token(&t, &how, next == MT_SAMPLE_ANY ? 1 : next, text, strlen(text));
            assert_true(soon || mt_thought_next(&t, &how) == MT_SAMPLE_ANY);
            free += !soon;
        }
    }
    assert_true(free > 1000);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_thought_ends_when_its_budget_is_spent),
    cmocka_unit_test(a_thought_that_ends_by_itself_is_not_ended),
    cmocka_unit_test(the_model_may_open_it_where_its_answer_begins),
    cmocka_unit_test(thoughts_anywhere_share_the_budget),
    cmocka_unit_test(a_call_may_end_it),
    cmocka_unit_test(a_token_that_was_not_the_wanted_one_begins_anew),
    cmocka_unit_test(it_is_known_a_token_ahead_that_none_is_forced),
};
UNIT_MAIN(tests)
