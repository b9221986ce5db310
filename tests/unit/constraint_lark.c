/* Grammars in Lark's notation, and structural tags: which texts they allow, and what is refused. */
#include "unit.h"

#include "../constraint/follow.h"
#include "text/tokenizer.h"

static mt_tokenizer *tokenizer;
static mt_vocabulary *vocabulary;

static int set_up(void **state)
{
    (void)state;
    tokenizer = constraint_tokenizer(NULL, 0);
    vocabulary = constraint_vocabulary(tokenizer);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mt_vocabulary_free(vocabulary);
    mt_tokenizer_free(tokenizer);
    return 0;
}

/* What agents are told to write patches in. */
static const char patch[] = "start: begin hunk+ end\n"
                            "begin: \"*** Begin\" LF\n"
                            "end: \"*** End\" LF?\n"
                            "\n"
                            "hunk: add | delete | update // three kinds\n"
                            "add: \"*** Add: \" filename LF add_line+\n"
                            "delete: \"*** Delete: \" filename LF\n"
                            "update: \"*** Update: \" filename LF change?\n"
                            "filename: /(.+)/\n"
                            "add_line: \"+\" /(.*)/ LF -> line\n"
                            "change: (context | change_line)+\n"
                            "context: (\"@@\" | \"@@ \" /(.+)/) LF\n"
                            "change_line: (\"+\" | \"-\" | \" \") /(.*)/ LF\n"
                            "\n"
                            "%import common.LF\n";

static const char sums[] = "?start: sum\n"
                           "?sum: product\n"
                           "    | sum \"+\" product -> add\n"
                           "    | sum \"-\" product -> sub\n"
                           "?product: atom\n"
                           "    | product \"*\" atom\n"
                           "?atom: NUMBER | \"-\" atom | NAME | \"(\" sum \")\"\n"
                           "%import common.CNAME -> NAME\n"
                           "%import common (NUMBER, WS_INLINE)\n"
                           "%ignore WS_INLINE\n";

static const struct row {
    const char *grammar;
    const char *good[6], *bad[6]; /* NULL: no more */
} rows[] = {
    {"start: \"a\" \"b\"i", {"ab", "aB"}, {"a", "Ab", "abb", ""}},
    {"start: A+\nA: \"x\"..\"z\"", {"x", "zyx"}, {"", "w", "xa"}},
    {"start: A ~ 2..3 B ~ 2\nA: \"a\"\nB: \"b\"", {"aabb", "aaabb"}, {"abb", "aab", "aaaabb"}},
    {"start: [\"-\"] INT [\".\" INT]\n%import common.INT", {"5", "-12.0"}, {"", "-", "5.", "--1"}},
    {"start: list\nlist: \"[\" [item (\",\" item)*] \"]\"\nitem: list | \"x\"\n",
     {"[]", "[x]", "[[x],x]"},
     {"[", "[,]", "x"}},
    {"!start.2: WORD | \n WORD.10: /[a-c]{2}/ | \"\\u00e9\\n\"", {"ab", "\xc3\xa9\n", ""}, {"a", "abc"}},
    {"start: /a.c/ /a.c/s", {"abca\nc", "axcabc"}, {"a\ncabc", "abc"}},
    {"start: /\\/[a-z]*\\//", {"//", "/ab/"}, {"/", "ab"}},
    {"start: NUMBER \";\"\n%import common.SIGNED_NUMBER -> NUMBER", {"1;", "-1.5e3;", "+.5;"}, {";", "1", "e;"}},
    {"start: ESCAPED_STRING\n%import common.ESCAPED_STRING", {"\"a\"", "\"a\\\"b\""}, {"\"a", "a", "\"a\"\""}},
    {"# a comment\nstart: (\"a\"\n  | \"b\") // one\n  | \"c\"\n\nrest: start", {"a", "b", "c"}, {"ab", ""}},
    {sums, {"1", "1+2*x", " ( 1 - -y ) * 3 ", "a\t+b", "1-2-3"}, {"", "1+", "(1", "1\n+2", "+1"}},
    {patch,
     {"*** Begin\n*** Add: a.c\n+int x;\n+\n*** End", "*** Begin\n*** Delete: a b\n*** End\n",
      "*** Begin\n*** Update: x\n@@ f()\n-<b>\n+\"q\\\"\n same\n*** End\n"},
     {"*** Begin\n*** End", "*** Begin\n*** Add: \n+x\n*** End", "*** Add: a\n+x\n",
      "*** Begin\n*** Add: a\nx\n*** End"}},
};

static void check(mt_source_kind kind, const json_t *value, const char *what, const char *const *good,
                  const char *const *bad)
{
    mt_error err = {0};
    mt_constraint *c = constraint_compile(vocabulary, kind, value, &err);

    if (!c)
        fail_msg("%s: %s", what, err.text);
    for (size_t i = 0; i < 6; i++) {
        if (good[i] && !constraint_fits(c, good[i], strlen(good[i])))
            fail_msg("%s does not allow %s", what, good[i]);
        if (bad[i] && constraint_fits(c, bad[i], strlen(bad[i])))
            fail_msg("%s allows %s", what, bad[i]);
    }
    mt_constraint_release(c);
}

static void grammars_allow_their_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        json_t *value = json_string(rows[i].grammar);

        check(MT_SOURCE_GBNF, value, rows[i].grammar, rows[i].good, rows[i].bad);
        json_decref(value);
    }
}

/* A text of a grammar as a string of JSON. */
static void strings_may_have_a_grammar(void **state)
{
    static const char *const good[6] = {"\"*** Begin\\n*** Add: a\\n+\\\"<\\\\\\n*** End\""},
                             *const bad[6] = {"\"*** Begin\"", "*** Begin", "\"*** Begin\n*** Add: a\n+x\n*** End\""};
    json_t *schema =
        json_pack("{s:s, s:{s:s, s:s}}", "type", "string", "x-grammar", "syntax", "lark", "definition", patch);

    (void)state;
    check(MT_SOURCE_SCHEMA, schema, "a string", good, bad);
    json_decref(schema);
}

static const char *const refused[][2] = {
    {"start: a\n", "uses the rule \"a\" and does not define it"},
    {"a: \"start:\"\n", "has no rule \"start\""},
    {"start: \"a\nb: \"c\"", "a text without its end in line 1"},
    {"start: /a\n", "a regular expression without its end in line 1"},
    {"start: /a/i", "a flag other than s and u, which is not supported: in line 1"},
    {"start: /(?<=a)b/", "an expression that cannot be followed"},
    {"start: _sep{a, b}\na: \"a\"", "uses a template, which is not supported: write it out, in line 1"},
    {"_sep{x, y}: x (y x)*\nstart: \"a\"", "defines a template, which is not supported: write it out, in line 1"},
    {"start: A\nA: b\nb: \"b\"", "a terminal that uses a rule in line 2"},
    {"start: \"a\"\nstart: \"b\"", "defines a name twice in line 2"},
    {"start: (\"a\"", "a bracket that is not closed in line 1"},
    {"start: \"a\" ~ 3..2", "bounds in the wrong order in line 1"},
    {"start: \"a\" ~ x", "bounds that are no numbers or too large in line 1"},
    {"start: \"z\"..\"a\"", "a range that is not of two characters in their order in line 1"},
    {"start: \"ab\"..\"c\"", "a range that is not of two characters in their order in line 1"},
    {"start: \"\\ud800\"", "an escape that is no character in line 1"},
    {"start: \"a\" $", "something that is no text, expression, group or name in line 1"},
    {"start: \"a\"\n%import python.NAME\n",
     "imports from something else than common, which is not supported: write it out"},
    {"start: \"a\"\n%import common.NOTHING\n", "imports something that Lark's common terminals do not have in line 2"},
    {"start: \"a\"\n%declare A\n", "a directive other than %import and %ignore, which is not supported, in line 2"},
    {"start: \"a\"\nstop\n", "something that is no rule (name: ...) in line 2"},
    {"start: a\na: b\nb: a \"x\" | \"y\"", "itself"},
};

static void what_cannot_be_followed_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(refused); i++) {
        json_t *value = json_string(refused[i][0]);
        mt_error err = {0};

        if (constraint_compile(vocabulary, MT_SOURCE_GBNF, value, &err))
            fail_msg("%s is taken", refused[i][0]);
        if (!strstr(err.text, refused[i][1]))
            fail_msg("%s: %s", refused[i][0], err.text);
        json_decref(value);
    }
}

static json_t *load(const char *text)
{
    json_error_t why;
    json_t *value = json_loads(text, 0, &why);

    if (!value)
        fail_msg("%s: %s", text, why.text);
    return value;
}

#define NUMBERS "{\"type\":\"json_schema\",\"json_schema\":{\"type\":\"integer\"}}"

static const struct row tags[] = {
    {"{\"triggers\":[\"<f\"],\"structures\":[{\"begin\":\"<f=a>\",\"schema\":{\"type\":\"integer\"},\"end\":\"</f>\"},"
     "{\"begin\":\"<f=b>\",\"schema\":{\"enum\":[\"x\"]},\"end\":\"</f>\"}]}",
     {"", "just text < here", "so <f=a>5</f> and <f=b>\"x\"</f>.", "<f=a>-1</f>"},
     {"<f", "<f=c>5</f>", "<f=a>x</f>", "a <f=b>\"y\"</f>", "<f=a>5"}},
    {"{\"format\":{\"type\":\"triggered_tags\",\"triggers\":[\"<\",\"[[\"],\"at_least_one\":true,"
     "\"stop_after_first\":true,\"tags\":[{\"begin\":\"<n>\",\"content\":" NUMBERS ",\"end\":\"</n>\"},"
     "{\"begin\":\"[[\",\"content\":{\"type\":\"any_text\"},\"end\":\"]]\"}]}}",
     {"<n>5</n>", "well <n>7</n>", "a [[b]]"},
     {"", "text", "<n>5</n> more", "<m>", "a [[b]] c"}},
    {"{\"format\":{\"type\":\"sequence\",\"elements\":[{\"type\":\"const_string\",\"value\":\"A: \"},"
     "{\"type\":\"or\",\"elements\":[" NUMBERS ",{\"type\":\"regex\",\"pattern\":\"[xy]{2}\"},"
     "{\"type\":\"grammar\",\"grammar\":\"root ::= \\\"q\\\"+\"}]},{\"type\":\"optional\",\"content\":"
     "{\"type\":\"const_string\",\"value\":\".\"}}]}}",
     {"A: 5", "A: xy.", "A: qqq"},
     {"A: ", "5", "A: xyx", "A: q.."}},
    {"{\"format\":{\"type\":\"tags_with_separator\",\"separator\":\", \",\"tags\":[{\"begin\":\"<\","
     "\"content\":" NUMBERS ",\"end\":[\">\"]}]}}",
     {"", "<1>", "<1>, <2>"},
     {"<1>,", "<1><2>", "text"}},
    {"{\"format\":{\"type\":\"plus\",\"content\":{\"type\":\"tag\",\"begin\":\"(\",\"content\":{\"type\":\"star\","
     "\"content\":{\"type\":\"const_string\",\"value\":\"a\"}},\"end\":\")\"}}}",
     {"()", "(aa)(a)"},
     {"", "(b)"}},
    {"{\"format\":{\"type\":\"any_text\"}}", {"", "anything"}, {NULL}},
};

static void structural_tags_are_followed(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(tags); i++) {
        json_t *value = load(tags[i].grammar);

        check(MT_SOURCE_TAGS, value, tags[i].grammar, tags[i].good, tags[i].bad);
        json_decref(value);
    }
}

static void bad_structural_tags_are_refused(void **state)
{
    static const char *const bad[][2] = {
        {"{}", "has no triggers that are strings"},
        {"{\"triggers\":[\"\"],\"structures\":[]}", "has no triggers that are strings"},
        {"{\"triggers\":[\"<\"],\"structures\":[]}", "no structural tag begins with the trigger \"<\""},
        {"{\"triggers\":[\"<\"],\"structures\":[{\"begin\":\"<a\",\"schema\":{}}]}", "has no begin or end"},
        {"{\"triggers\":[\"<\"],\"structures\":[{\"begin\":\"<a\",\"end\":\"\"}]}", "has no schema"},
        {"{\"format\":{}}", "a format without a type"},
        {"{\"format\":{\"type\":\"qwen_xml_parameter\"}}", "a format \"qwen_xml_parameter\", which is not supported"},
        {"{\"format\":{\"type\":\"sequence\"}}", "\"sequence\" has no elements"},
        {"{\"format\":{\"type\":\"const_string\"}}", "\"const_string\" has no text"},
        {"{\"format\":{\"type\":\"tags_with_separator\",\"tags\":[]}}", "has no separator"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(bad); i++) {
        json_t *value = load(bad[i][0]);
        mt_error err = {0};

        if (constraint_compile(vocabulary, MT_SOURCE_TAGS, value, &err))
            fail_msg("%s is taken", bad[i][0]);
        if (!strstr(err.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], err.text);
        json_decref(value);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(grammars_allow_their_texts, set_up, tear_down),
    cmocka_unit_test_setup_teardown(strings_may_have_a_grammar, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_cannot_be_followed_is_named, set_up, tear_down),
    cmocka_unit_test_setup_teardown(structural_tags_are_followed, set_up, tear_down),
    cmocka_unit_test_setup_teardown(bad_structural_tags_are_refused, set_up, tear_down),
};

UNIT_MAIN(tests)
