/* What each kind of constraint allows, that masks say the same as the automaton, and that no memory is ever needed
   beyond what was reserved. */
#include "constraint_tests.h"

#include "constraint/limits.h"
#include "constraint/masks.h"

typedef struct row {
    mt_source_kind kind;
    const char *value;     /* JSON with ' for " */
    const char *fits[6];   /* texts that are allowed */
    const char *others[8]; /* and that are not */
} row;

static const row rows[] = {
    {MT_SOURCE_CHOICE, "['yes','yesterday','no']", {"yes", "yesterday", "no"}, {"", "ye", "yesn", "maybe"}},
    {MT_SOURCE_REGEX, "'[a-c]{2,3}|\\\\d+'", {"ab", "cca", "7", "123"}, {"", "a", "abca", "1a"}},
    {MT_SOURCE_REGEX, "'^(?:x|yé)*?$'", {"", "xx", "yé", "xyéx"}, {"y", "é"}},
    {MT_SOURCE_REGEX, "'[^a-y]\\\\p{Lu}.'", {"zAa", "日Ä語"}, {"aAa", "zaa", "zA\n"}},
    {MT_SOURCE_REGEX,
     "'.{2}.{0,3}'",
     {"ab", "hello"},
     {"a", "helloo"}}, /* tokens reach over the end of the first dots */
    {MT_SOURCE_REGEX, "'(.{0,3}+-){2}'", {"hello-call-", "--"}, {"hello-call"}},
    {MT_SOURCE_GBNF,
     "'root ::= expr # a sum\\nexpr ::= term (\\'+\\' term)*\\nterm ::= [0-9]{1,2} | \\'(\\' expr \\')\\''",
     {"1", "1+22", "(1+(2))"},
     {"", "1+", "123", "(1"}},
    {MT_SOURCE_GBNF, "'root ::= \\'a\\' root | .'", {"aaab", "é", "aa"}, {"", "ab1"}},
    {MT_SOURCE_JSON,
     "null",
     {"{}", "{\"a\":[1,{\"b\":null}]}", "{ \"é\\n\": -0.5e+3 }"},
     {"[]", "{", "{}x", "{\"a\":01}"}},
    {MT_SOURCE_SCHEMA, "true", {"1", "\"a\"", "[]", "null"}, {"", "nul", "{,}"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'object','properties':{'a':{'type':'integer'},'b':{'type':'string'}},'required':['a']}",
     {"{\"a\":1}", "{ \"a\": -3, \"b\": \"\"}", "{\n  \"a\":0\n}"},
     {"{}", "{\"b\":\"\"}", "{\"b\":\"\",\"a\":1}", "{\"a\":1,\"c\":2}", "{\"a\":1,}", "{\"a\":-0}", "{\"a\":1.0}"}},
    {MT_SOURCE_SCHEMA,
     "{'properties':{'a':{}},'additionalProperties':{'type':'null'}}",
     {"{}", "{\"b\":null}", "{\"a\":5,\"ab\":null,\"é\":null}"},
     {"{\"b\":1}", "{\"b\":null,\"a\":1}", "{\"a\":1,\"a\":null}"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'array','items':{'enum':[1,'x']},'minItems':1,'maxItems':3}",
     {"[1]", "[1,\"x\", 1]"},
     {"[]", "[2]", "[1,1,1,1]", "[1,]"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'array','prefixItems':[{'type':'integer'},{'type':'boolean'}],'items':false,'minItems':1}",
     {"[1]", "[1,true]"},
     {"[]", "[true]", "[1,true,1]"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'integer','minimum':-12,'maximum':305}",
     {"-12", "-9", "0", "99", "305"},
     {"-13", "306", "1000", "-0"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'number','exclusiveMinimum':0,'maximum':2}",
     {"0.01", "1", "1.999", "2", "2.0"},
     {"0", "0.0", "-1", "2.01", "3", "1e9"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'string','minLength':2,'maxLength':3}",
     {"\"ab\"", "\"é日x\"", "\"\\n\\u00e9\""},
     {"\"a\"", "\"abcd\"", "\"\\ud800a\""}},
    {MT_SOURCE_SCHEMA,
     "{'type':'string','pattern':'^[a-z]+\\\\d?$','maxLength':4}",
     {"\"abc\"", "\"abc1\"", "\"a1\""},
     {"\"\"", "\"abcde\"", "\"abcd1\"", "\"1\""}},
    {MT_SOURCE_SCHEMA, "{'type':'string','pattern':'b'}", {"\"b\"", "\"abc\""}, {"\"\"", "\"ac\""}},
    {MT_SOURCE_SCHEMA,
     "{'type':'string','format':'date'}",
     {"\"2024-02-29\"", "\"1999-12-31\""},
     {"\"2023-02-29\"", "\"2024-13-01\"", "\"1900-02-29\""}},
    {MT_SOURCE_SCHEMA, "{'type':['string','null'],'enum':['a',null,5]}", {"\"a\"", "null"}, {"5", "\"b\""}},
    {MT_SOURCE_SCHEMA, "{'const':{'a':[1,2]}}", {"{\"a\":[1,2]}", "{ \"a\": [ 1, 2 ] }"}, {"{\"a\":[1]}", "{}"}},
    {MT_SOURCE_SCHEMA, "{'type':'integer','nullable':true}", {"1", "null"}, {"\"1\""}},
    {MT_SOURCE_SCHEMA,
     "{'anyOf':[{'type':'boolean'},{'type':'array','items':{'$ref':'#'}}]}",
     {"true", "[]", "[[true],false]"},
     {"1", "[1]"}},
    {MT_SOURCE_SCHEMA,
     "{'allOf':[{'properties':{'a':{'minimum':3}}},{'properties':{'a':{'type':'integer','maximum':5},'b':{}}}]}",
     {"{\"a\":4}", "{\"b\":1}"},
     {"{\"a\":6}", "{\"a\":2}", "{\"c\":1}"}},
    {MT_SOURCE_SCHEMA,
     "{'oneOf':[{'type':'object','properties':{'k':{'const':'x'},'v':{'type':'integer'}},'required':['k','v']},"
     "{'type':'object','properties':{'k':{'const':'y'}},'required':['k']}]}",
     {"{\"k\":\"x\",\"v\":1}", "{\"k\":\"y\"}"},
     {"{\"k\":\"x\"}", "{\"k\":\"z\"}"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'object','patternProperties':{'^n[0-9]$':{'type':'integer'}},'additionalProperties':false}",
     {"{}", "{\"n1\":5,\"n2\":6}"},
     {"{\"m1\":5}", "{\"n1\":\"\"}"}},
    {MT_SOURCE_SCHEMA,
     "{'type':'object','properties':{'a':{},'b':{},'c':{}},'minProperties':2,'maxProperties':2}",
     {"{\"a\":1,\"c\":1}", "{\"b\":1,\"c\":1}"},
     {"{}", "{\"a\":1}", "{\"a\":1,\"b\":1,\"c\":1}"}},
};

static void constraints_allow_what_they_should_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        json_t *value = load(rows[i].value);
        mt_error err = {0};
        mt_constraint *c = constraint_compile(vocabulary, rows[i].kind, value, &err);

        if (!c)
            fail_msg("%s: %s", rows[i].value, err.text);
        for (size_t k = 0; k < MT_COUNT(rows[i].fits) && rows[i].fits[k]; k++)
            if (!constraint_fits(c, rows[i].fits[k], strlen(rows[i].fits[k])))
                fail_msg("%s does not allow %s", rows[i].value, rows[i].fits[k]);
        for (size_t k = 0; k < MT_COUNT(rows[i].others) && rows[i].others[k]; k++)
            if (constraint_fits(c, rows[i].others[k], strlen(rows[i].others[k])))
                fail_msg("%s allows %s", rows[i].value, rows[i].others[k]);
        mt_constraint_release(c);
        json_decref(value);
    }
}

/* constraint_walk holds every mask against the automaton; what it makes must fit when it is read byte by byte. */
static void walks_stay_within_and_masks_are_exact(void **state)
{
    uint64_t seed = 11;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        json_t *value = load(rows[i].value);
        mt_error err = {0};
        mt_constraint *c = constraint_compile(vocabulary, rows[i].kind, value, &err);

        for (int k = 0; k < (unit_quick() ? 2 : 10); k++) {
            mt_buf text;

            mt_buf_init(&text, 1 << 20);
            if (constraint_walk(c, tokenizer, &seed, 500, &text))
                assert_true(constraint_fits(c, text.len ? text.data : "", text.len));
            mt_buf_free(&text);
        }
        mt_constraint_release(c);
        json_decref(value);
    }
}

static void what_is_not_supported_is_named_with_its_place(void **state)
{
    static const struct {
        mt_source_kind kind;
        const char *value, *sentence;
    } wrong[] = {
        {MT_SOURCE_SCHEMA, "{'properties':{'a':{'items':{'uniqueItems':true}}}}",
         "\"uniqueItems\" at \"#/properties/a/items\" of the schema is supported for listed values only (\"enum\", "
         "\"const\"): leave it out"},
        {MT_SOURCE_SCHEMA, "{'$ref':'#/$defs/x'}",
         "\"$ref\" at \"#\" of the schema refers to a place that the schema does not have"},
        {MT_SOURCE_SCHEMA, "{'$ref':'other.json'}",
         "\"$ref\" at \"#\" of the schema refers to a place that the schema does not have"},
        {MT_SOURCE_SCHEMA, "{'type':'strin'}",
         "\"type\" at \"#\" of the schema names something that is no type of JSON"},
        {MT_SOURCE_SCHEMA, "{'type':'string','pattern':'(?i)a'}",
         "\"pattern\" at \"#\" of the schema: the regular expression \"(?i)a\" sets flags, which is not supported"},
        {MT_SOURCE_SCHEMA, "{'type':'integer','minimum':5,'maximum':4}",
         "the constraint allows no answer at all; loosen it"},
        {MT_SOURCE_SCHEMA, "{'type':'object','properties':{'a':{'$ref':'#'}},'required':['a']}",
         "the constraint allows no answer at all; loosen it"},
        {MT_SOURCE_SCHEMA, "false", "the constraint allows no answer at all; loosen it"},
        {MT_SOURCE_REGEX, "'a('", "the regular expression \"a(\" has a \"(\" without its \")\""},
        {MT_SOURCE_REGEX, "'(a)\\\\1'", "the regular expression \"(a)\\1\" refers back, which is not supported"},
        {MT_SOURCE_REGEX, "'(a?b?){1,500}'",
         "something that may be empty is repeated up to 500 times; repeat something that is not empty"},
        {MT_SOURCE_GBNF, "'root ::= root \\'a\\' | \\'b\\''",
         "a rule of the grammar begins with itself; write it the other way round"},
        {MT_SOURCE_GBNF, "'root ::= x'", "the grammar uses the rule \"x\" and does not define it"},
        {MT_SOURCE_GBNF, "'main ::= \\'a\\''", "the grammar has no rule \"root\"; add one"},
        {MT_SOURCE_GBNF, "'root ::= \\'a'", "the grammar has a text without its end in line 1"},
        {MT_SOURCE_CHOICE, "[]", "there are 0 choices; give a list of 1 to 1048576"},
        {MT_SOURCE_CHOICE, "['a',1]", "a choice is no string; give a list of strings"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(wrong); i++) {
        json_t *value = load(wrong[i].value);
        mt_error err = {0};
        mt_constraint *c = constraint_compile(vocabulary, wrong[i].kind, value, &err);

        if (c)
            fail_msg("%s is taken", wrong[i].value);
        assert_string_equal(err.text, wrong[i].sentence);
        json_decref(value);
    }
}

/* More states than there is room for: those of the runs are carried over, again and again. */
static void runs_survive_that_states_are_forgotten(void **state)
{
    json_t *value = load("{'type':'string','minLength':20000,'maxLength':30000}");
    mt_error err = {0};
    mt_constraint *c = constraint_compile(vocabulary, MT_SOURCE_SCHEMA, value, &err);
    mt_run runs[2];

    (void)state;
    assert_non_null(c);
    mt_run_begin(&runs[0], c);
    mt_run_begin(&runs[1], c);
    mt_alloc_forbid();
    assert_true(mt_run_token(&runs[0], '"') && mt_run_token(&runs[1], '"'));
    for (int i = 0; i < 20000; i++) {
        assert_false(mt_run_token(&runs[0], '"'));
        assert_true(mt_run_token(&runs[0], 'a'));
    }
    assert_true(mt_run_token(&runs[0], '"') && runs[0].over);
    assert_false(mt_run_token(&runs[1], '"'));
    assert_true(mt_run_token(&runs[1], 'b'));
    mt_alloc_permit();
    mt_run_end(&runs[0]);
    mt_run_end(&runs[1]);
    mt_constraint_release(c);
    json_decref(value);
}

static void nesting_ends_before_the_frames_do(void **state)
{
    json_t *value = load("{'anyOf':[{'type':'null'},{'type':'array','items':{'$ref':'#'}}]}");
    mt_error err = {0};
    mt_constraint *c = constraint_compile(vocabulary, MT_SOURCE_SCHEMA, value, &err);
    size_t depth = 0;
    mt_run run;

    (void)state;
    mt_run_begin(&run, c);
    while (depth < 1000 && mt_run_token(&run, '['))
        depth++;
    assert_true(depth > 50 && depth <= MT_LIMIT_GRAMMAR_FRAMES + 1);
    for (size_t i = 0; i < depth; i++)
        assert_true(mt_run_token(&run, ']'));
    assert_true(run.over);
    mt_run_end(&run);
    mt_constraint_release(c);
    json_decref(value);
}

static void masks_are_kept_and_make_room(void **state)
{
    json_t *value = load("{'type':'string','maxLength':200}");
    mt_error err = {0};
    mt_constraint *c = constraint_compile(vocabulary, MT_SOURCE_SCHEMA, value, &err);
    uint32_t *mask = mt_alloc_array(vocabulary->words, sizeof(*mask));
    mt_masks *masks = mt_masks_new(vocabulary->words, 3, 0);

    (void)state;
    for (int round = 0; round < 2; round++) {
        mt_run run;

        mt_run_begin(&run, c);
        mt_run_token(&run, '"');
        for (int i = 0; i < 100; i++) {
            const uint32_t *kept;

            mt_masks_round(masks);
            kept = mt_masks_get(masks, &run);
            assert_true(mt_run_mask(&run, mask));
            assert_memory_equal(kept, mask, vocabulary->words * sizeof(*mask));
            assert_ptr_equal(mt_masks_get(masks, &run), kept);
            assert_true(mt_masks_room(masks));
            assert_true(mt_run_token(&run, 'x'));
        }
        mt_run_end(&run);
    }
    assert_int_equal(mt_masks_stats_of(masks)->asked, 400);
    assert_true(mt_masks_stats_of(masks)->computed < 200); /* far from the bound they are alike */
    mt_masks_free(masks);
    mt_free(mask);
    mt_constraint_release(c);
    json_decref(value);
}

static void a_copy_goes_its_own_way(void **state)
{
    json_t *value = load("['abc','abd']");
    mt_error err = {0};
    mt_constraint *c = constraint_compile(vocabulary, MT_SOURCE_CHOICE, value, &err);
    mt_run run, copy;

    (void)state;
    mt_run_begin(&run, c);
    assert_true(mt_run_token(&run, 'a') && mt_run_token(&run, 'b'));
    mt_run_copy(&copy, &run);
    assert_true(mt_run_token(&copy, 'c') && copy.over);
    assert_false(run.over);
    assert_true(mt_run_token(&run, 'd') && run.over);
    mt_run_end(&copy);
    mt_run_end(&run);
    mt_constraint_release(c);
    json_decref(value);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(constraints_allow_what_they_should_and_nothing_else, setup, teardown),
    cmocka_unit_test_setup_teardown(walks_stay_within_and_masks_are_exact, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_not_supported_is_named_with_its_place, setup, teardown),
    cmocka_unit_test_setup_teardown(runs_survive_that_states_are_forgotten, setup, teardown),
    cmocka_unit_test_setup_teardown(nesting_ends_before_the_frames_do, setup, teardown),
    cmocka_unit_test_setup_teardown(masks_are_kept_and_make_room, setup, teardown),
    cmocka_unit_test_setup_teardown(a_copy_goes_its_own_way, setup, teardown),
};

UNIT_MAIN(tests)
