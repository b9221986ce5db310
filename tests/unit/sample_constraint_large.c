/* Constraints that are large: they work, or a sentence says what is too large. None ends the process. */
#include "unit.h"

#include "../constraint/follow.h"

#include "base/limits.h"

static mt_tokenizer *tokenizer;
static mt_vocabulary *vocabulary;

static int setup(void **state)
{
    (void)state;
    tokenizer = constraint_tokenizer(NULL, 0);
    vocabulary = constraint_vocabulary(tokenizer);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mt_vocabulary_free(vocabulary);
    mt_tokenizer_free(tokenizer);
    return 0;
}

/* What a text repeated so often, behind a beginning, comes to. */
static mt_constraint *repeated(const char *begin, const char *text, size_t times, mt_error *err)
{
    mt_constraint *c;
    json_t *value;
    mt_buf all;

    mt_buf_init(&all, 64u << 20);
    mt_buf_puts(&all, begin);
    for (size_t i = 0; i < times; i++)
        mt_buf_puts(&all, text);
    value = json_stringn(all.data, all.len);
    c = constraint_compile(vocabulary, MT_SOURCE_GBNF, value, err);
    json_decref(value);
    mt_buf_free(&all);
    return c;
}

/* Nothing here is a choice of texts, so that each alternative is a place of its own. */
static void too_many_places_are_refused(void **state)
{
    mt_error err = {0};

    (void)state;
    assert_null(repeated("root ::= [0-9] \"x\"", " | [a-z] \"a\" | [b-y] \"b\"", 6000, &err));
    assert_string_equal(err.text, "the constraint has too many ways to begin: it may be at most at 8192 places at "
                                  "once; make it simpler");
}

static void signs_behind_signs_end(void **state)
{
    mt_error err = {0};

    (void)state;
    assert_null(repeated("root ::= \"a\"", "?", 200000, &err));
    assert_string_equal(err.text, "the grammar repeats what is repeated, more than 8 times over in line 1");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(too_many_places_are_refused, setup, teardown),
    cmocka_unit_test_setup_teardown(signs_behind_signs_end, setup, teardown),
};

UNIT_MAIN(tests)
