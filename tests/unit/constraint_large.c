/* Constraints that are large: they work, or a sentence says what is too large. None ends the process. */
#include "constraint/limits.h"
#include "constraint_tests.h"
#include "server/limits.h"

static mt_constraint *compile(mt_source_kind kind, json_t *value, mt_error *err)
{
    mt_constraint *c = constraint_compile(vocabulary, kind, value, err);

    json_decref(value);
    return c;
}

/* GBNF: a text so often, behind a beginning. */
static mt_constraint *repeated(const char *begin, const char *text, size_t times, mt_error *err)
{
    mt_constraint *c;
    mt_buf all;

    mt_buf_init(&all, 64u << 20);
    mt_buf_puts(&all, begin);
    for (size_t i = 0; i < times; i++)
        mt_buf_puts(&all, text);
    c = compile(MT_SOURCE_GBNF, json_stringn(all.data, all.len), err);
    mt_buf_free(&all);
    return c;
}

/* The i-th of many names: some begin alike, some end alike, some begin with others. */
static void name_of(size_t i, char *out, size_t size)
{
    static const char *const ends[] = {"", " large", " small", "\xc3\xa9", " \"x\""};
    uint64_t seed = i / MT_COUNT(ends) * 77 + 5;

    snprintf(out, size, "%c%llx%s", (char)('A' + i / MT_COUNT(ends) % 26), (unsigned long long)constraint_random(&seed),
             ends[i % MT_COUNT(ends)]);
}

static json_t *names_of(size_t count)
{
    json_t *list = json_array();
    char name[64];

    for (size_t i = 0; i < count; i++) {
        name_of(i, name, sizeof(name));
        json_array_append_new(list, json_string(name));
    }
    return list;
}

static bool fits_json(mt_constraint *c, const char *text)
{
    char *spelled;
    json_t *value = json_string(text);
    bool fits;

    spelled = json_dumps(value, JSON_ENCODE_ANY);
    fits = constraint_fits(c, spelled, strlen(spelled));
    free(spelled);
    json_decref(value);
    return fits;
}

static void walk(mt_constraint *c, size_t times)
{
    uint64_t seed = 7;

    for (size_t i = 0; i < times; i++) {
        mt_buf text;

        mt_buf_init(&text, 1 << 20);
        assert_true(constraint_walk(c, tokenizer, &seed, 500, &text));
        assert_true(constraint_fits(c, text.data, text.len));
        mt_buf_free(&text);
    }
}

/* As schema, as a list of choices and as GBNF. Every mask on some ways through them is held against the automaton. */
static void lists_of_names_work(void **state)
{
    const size_t count = unit_full() ? 100000 : 20000;
    mt_error err = {0};
    mt_constraint *c = compile(MT_SOURCE_SCHEMA, json_pack("{s:o}", "enum", names_of(count)), &err);
    char name[64];

    (void)state;
    if (!c)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < count; i += 997) {
        name_of(i, name, sizeof(name));
        assert_true(fits_json(c, name));
        name[0] = '#';
        assert_false(fits_json(c, name));
    }
    assert_true(mt_constraint_bytes(c) < MT_LIMIT_CONSTRAINT_ONE);
    walk(c, 3);
    mt_constraint_release(c);
    c = compile(MT_SOURCE_CHOICE, names_of(count), &err);
    assert_non_null(c);
    name_of(count - 1, name, sizeof(name));
    assert_true(constraint_fits(c, name, strlen(name)));
    walk(c, 1);
    mt_constraint_release(c);
}

static void lists_of_numbers_are_small(void **state)
{
    json_t *list = json_array();
    mt_error err = {0};
    mt_constraint *c, *one;

    (void)state;
    for (int i = 0; i < 8200; i++)
        json_array_append_new(list, json_integer(3 * i));
    c = compile(MT_SOURCE_SCHEMA, json_pack("{s:o}", "enum", list), &err);
    one = compile(MT_SOURCE_SCHEMA, json_pack("{s:[i]}", "enum", 1), &err);
    assert_non_null(c);
    assert_true(constraint_fits(c, "24597", 5) && constraint_fits(c, "0", 1));
    assert_false(constraint_fits(c, "24598", 5) || constraint_fits(c, "24600", 5) || constraint_fits(c, "", 0));
    walk(c, 5);
    assert_true(mt_constraint_bytes(c) < mt_constraint_bytes(one) + (1 << 20));
    mt_constraint_release(one);
    mt_constraint_release(c);
}

/* Some are texts, some begin with one, some do not; one is a rule that is a text. */
static void grammars_with_many_alternatives_work(void **state)
{
    mt_error err = {0};
    mt_constraint *c;
    char rule[64];
    mt_buf all;

    (void)state;
    mt_buf_init(&all, 64u << 20);
    mt_buf_puts(&all, "word ::= \"k7\"\nroot ::= word | [0-9]{2} \"!\"");
    for (int i = 0; i < 8300; i++) {
        snprintf(rule, sizeof(rule),
                 i % 3 == 0   ? " | \"k%d\""
                 : i % 3 == 1 ? " | \"k%d\" [a-c]"
                              : " | [xy] \"k%d\"",
                 10 * i);
        mt_buf_puts(&all, rule);
    }
    c = compile(MT_SOURCE_GBNF, json_stringn(all.data, all.len), &err);
    mt_buf_free(&all);
    if (!c)
        fail_msg("%s", err.text);
    assert_true(constraint_fits(c, "k7", 2) && constraint_fits(c, "42!", 3) && constraint_fits(c, "k82980", 6));
    assert_true(constraint_fits(c, "k10a", 4) && constraint_fits(c, "xk82970", 7));
    assert_false(constraint_fits(c, "k10", 3) || constraint_fits(c, "k0a", 3) || constraint_fits(c, "xk0", 3));
    walk(c, 3);
    mt_constraint_release(c);
}

static void what_may_be_left_out_is_counted(void **state)
{
    mt_error err = {0};
    mt_constraint *c = repeated("root ::= \"b\" ", "\"a\"? ", 8200, &err);
    mt_run run;

    (void)state;
    assert_non_null(c);
    mt_run_begin(&run, c);
    assert_true(mt_run_token(&run, 'b'));
    for (int i = 0; i < 8200; i++)
        assert_true(mt_run_token(&run, 'a'));
    assert_true(run.over);
    mt_run_end(&run);
    mt_constraint_release(c);
}

/* What a rule is only its successor knows, down to the last. */
static void long_chains_of_rules_work(void **state)
{
    mt_error err = {0};
    mt_constraint *c;
    mt_buf all;

    (void)state;
    mt_buf_init(&all, 1 << 20);
    mt_buf_puts(&all, "root ::= r0 \"!\"\n");
    for (int i = 0; i < 5000; i++)
        mt_buf_printf(&all, "r%d ::= r%d | \"a\"\n", i, i + 1);
    mt_buf_puts(&all, "r5000 ::= \"\" | \"b\"");
    c = compile(MT_SOURCE_GBNF, json_stringn(all.data, all.len), &err);
    mt_buf_free(&all);
    if (!c)
        fail_msg("%s", err.text);
    assert_true(constraint_fits(c, "!", 1) && constraint_fits(c, "a!", 2) && constraint_fits(c, "b!", 2));
    assert_false(constraint_fits(c, "c!", 2));
    mt_constraint_release(c);
}

/* Nothing here is a choice of texts, so that each alternative is a place of its own, from the first to the last. */
static void what_is_too_large_is_said(void **state)
{
    json_t *lists = json_array();
    mt_error err = {0};

    (void)state;
    assert_null(repeated("root ::= [0-9] \"x\"", " | [a-z] \"a\" | [b-y] \"b\"", 40000, &err));
    assert_string_equal(err.text,
                        "the constraint needs more than 65536 places at once to find its first token; make it simpler");
    assert_null(repeated("root ::= ", "\"a\"? \"b\"? ", 10000, &err));
    assert_string_equal(err.text,
                        "the constraint needs more than 16384 places at once to find its first token; make it simpler");
    for (int i = 0; i < 500; i++) {
        json_t *values = names_of(2 * (size_t)i + 1);

        json_array_append_new(values, json_integer(i)); /* so that no two are the same, and few are apart */
        json_array_append_new(lists, json_pack("{s:o}", "enum", values));
    }
    assert_null(compile(MT_SOURCE_SCHEMA, json_pack("{s:o}", "oneOf", lists), &err));
    assert_string_equal(err.text,
                        "the constraint has more than 67108864 steps in telling its schemas apart; make it smaller");
    assert_null(repeated("root ::= ", ". ", 600000, &err));
    assert_string_equal(err.text, "the constraint has more than 1048576 parts; make it smaller");
}

/* What may come may be cancelled at any time: whoever waits for it no longer does. */
static void nobody_compiles_what_nobody_wants(void **state)
{
    const atomic_bool left = true;
    const mt_patience stop = {.stop = &left};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    json_t *list = names_of(5000);
    const mt_source source = {.kind = MT_SOURCE_CHOICE, .value = list};
    mt_error err = {0};
    mt_program *program;
    mt_expr e;

    (void)state;
    assert_true(mt_source_expr(&source, &j, &e, &err));
    mt_grammar_define(g, MT_GRAMMAR_START, e);
    program = mt_program_new(g, &vocabulary->covered, &err);
    assert_non_null(program);
    assert_null(mt_constraint_make(program, vocabulary, &stop, &err));
    assert_string_equal(err.text, "the request was cancelled while its constraint was compiled");
    mt_grammar_watch(g, &stop);
    mt_error_clear(&err);
    assert_null(mt_program_new(g, &vocabulary->covered, &err));
    assert_string_equal(err.text, "the request was cancelled while its constraint was compiled");
    mt_grammar_free(g);
    json_decref(list);
}

static void signs_behind_signs_end(void **state)
{
    mt_error err = {0};

    (void)state;
    assert_null(repeated("root ::= \"a\"", "?", 200000, &err));
    assert_string_equal(err.text, "the grammar repeats what is repeated, more than 8 times over in line 1");
}

static mt_constraint *regex(const char *text, mt_error *err)
{
    return compile(MT_SOURCE_REGEX, json_string(text), err);
}

/* Whether so many of something are from least to most times from inner[0] to inner[1] of it. */
static bool counted(unsigned n, const unsigned *inner, const unsigned *outer)
{
    for (unsigned times = outer[0]; times <= outer[1]; times++)
        if (times * inner[0] <= n && n <= times * inner[1])
            return true;
    return false;
}

/* A repetition of a repetition is one of the same texts, whether it becomes one repetition or stays two. Borders of
   words make an automaton of the expression, which is another way to the same. */
static void repetitions_of_repetitions_count(void **state)
{
    static const unsigned bounds[][2] = {{0, 0}, {0, 1}, {0, 3}, {1, 1}, {1, 2},
                                         {2, 2}, {2, 3}, {3, 4}, {5, 5}, {4, 9}};
    static const char *const ways[] = {"a{%u,%u}{%u,%u}", "(?:a{%u,%u}){%u,%u}", "\\ba{%u,%u}{%u,%u}|"};
    char text[64];

    (void)state;
    for (size_t k = 0; k < MT_COUNT(ways) * MT_COUNT(bounds) * MT_COUNT(bounds); k++) {
        const size_t way = k % MT_COUNT(ways);
        const unsigned *inner = bounds[k / MT_COUNT(ways) % MT_COUNT(bounds)];
        const unsigned *outer = bounds[k / MT_COUNT(ways) / MT_COUNT(bounds)];
        mt_error err = {0};
        mt_constraint *c;

        snprintf(text, sizeof(text), ways[way], inner[0], inner[1], outer[0], outer[1]);
        c = regex(text, &err);
        if (!c)
            fail_msg("%s: %s", text, err.text);
        for (unsigned n = 0; n <= 20; n++)
            if (constraint_fits(c, "aaaaaaaaaaaaaaaaaaaa", n) != (counted(n, inner, outer) || (way == 2 && n == 0)))
                fail_msg("%s and %u times", text, n);
        mt_constraint_release(c);
    }
}

/* Each of these took seconds, minutes or years once. */
static void expressions_that_go_in_circles_end(void **state)
{
    static const char *const texts[] = {
        "\\b.{0,3}++++++++++++++++++++++++++++++++",
        "\\b(?:(?:()){999999}){999999}a?",
        "\\b(?:x|y|a{0,9}|(?:a|b?)+){3,9}+",
        "(?:\\b|\\B){200}a?",
        "\\b(((((((((a?b?)*c?)*d?)*e?)*f?)*g?)*h?)*i?)*j?)*",
        "(?:a?b?){0,6}{0,8}",
    };
    mt_error err = {0};
    mt_constraint *c;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(texts); i++) {
        mt_error_clear(&err);
        c = regex(texts[i], &err);
        if (!c)
            fail_msg("%s: %s", texts[i], err.text);
        assert_true(constraint_fits(c, "a", 1));
        mt_constraint_release(c);
    }
    mt_error_clear(&err);
    assert_null(regex("(?:(?:\\b|\\B){30}a?)*", &err)); /* borders in circles: more work than may be done */
    assert_string_equal(err.text, "the regular expression takes too many states; simplify it");
}

/* Whether one constraint with so many patterns that are too much work leaves out one that is little. */
static bool leaves_out(unsigned heavy)
{
    json_t *schema = json_pack("{s:s, s:{}, s:b}", "type", "object", "properties", "additionalProperties", 0);
    json_t *members = json_object_get(schema, "properties"), *required = json_array();
    const mt_source source = {.kind = MT_SOURCE_SCHEMA, .value = schema};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_error err = {0};
    mt_constraint *c;
    char name[16];
    mt_expr e;
    bool out;

    for (unsigned i = 0; i <= heavy; i++) {
        snprintf(name, sizeof(name), "%u", i);
        json_object_set_new(members, name,
                            json_pack("{s:s, s:s}", "type", "string", "pattern",
                                      i < heavy ? "^(?:(?:\\b|\\B){30}a?)*$" : "^(?=.b)(?:ab|ac)$"));
        json_array_append_new(required, json_string(name));
    }
    json_object_set_new(schema, "required", required);
    assert_true(mt_source_expr(&source, &j, &e, &err));
    assert_true(g->regex_work <= MT_LIMIT_REGEX_WORK_ALL + 2 * MT_LIMIT_REGEX_WORK);
    mt_grammar_define(g, MT_GRAMMAR_START, e);
    c = mt_constraint_new(g, vocabulary, &err);
    assert_non_null(c);
    out = strstr(mt_constraint_left_out(c), "pattern") != NULL;
    if (heavy) { /* which it is for the heavy ones: look at what may be written */
        mt_buf text;

        mt_buf_init(&text, 4096);
        mt_buf_puts(&text, "{");
        for (unsigned i = 0; i <= heavy; i++)
            mt_buf_printf(&text, "%s\"%u\":\"%s\"", i ? "," : "", i, i < heavy ? "" : "ac");
        mt_buf_puts(&text, "}");
        out = constraint_fits(c, text.data, text.len);
        mt_buf_free(&text);
    }
    mt_constraint_release(c);
    mt_grammar_free(g);
    json_decref(schema);
    return out;
}

static void patterns_share_their_work(void **state)
{
    (void)state;
    assert_false(leaves_out(0));
    assert_false(leaves_out(1));
    assert_true(leaves_out(MT_LIMIT_REGEX_WORK_ALL / MT_LIMIT_REGEX_WORK + 1));
}

/* Patterns of names that take too large an automaton are left out where that is allowed. What was written of the
   automaton until then is removed, and nothing that is written later refers to it. */
static void patterns_of_names_that_are_too_large_are_left_out(void **state)
{
    static const char *const texts[] = {
        /* values with rules of their own, and values that are any JSON */
        "{'type':'object','patternProperties':{'a.{40}$':{'type':'string'},'^b':{'type':'boolean'}},"
        "'additionalProperties':{'type':'integer'}}",
        "{'type':'object','properties':{'n':{'type':'object','properties':{'q':{}}}},"
        "'patternProperties':{'a.{40}$':{'type':'string'},'^b':{}},'additionalProperties':{'type':'integer'}}",
    };
    static const char *const fits[] = {"{\"c\":7}", "{\"n\":{\"q\":[true,{\"x\":null}]},\"c\":7}"};
    static const char *const other[] = {"{\"c\":true}", "{\"n\":{\"q\":[true,{\"x\":null}]},\"c\":true}"};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(texts); i++) {
        json_t *schema = load(texts[i]);
        const mt_source source = {.kind = MT_SOURCE_SCHEMA, .value = schema};
        mt_grammar *g = mt_grammar_new();
        mt_json j = {.g = g};
        mt_error err = {0};
        mt_constraint *c;
        mt_expr e;

        assert_true(mt_source_expr(&source, &j, &e, &err));
        mt_grammar_define(g, MT_GRAMMAR_START, e);
        c = mt_constraint_new(g, vocabulary, &err);
        assert_non_null(c);
        assert_string_equal(mt_constraint_left_out(c), "patternProperties");
        assert_true(constraint_fits(c, fits[i], strlen(fits[i])));
        assert_false(constraint_fits(c, other[i], strlen(other[i])));
        mt_constraint_release(c);
        mt_grammar_free(g);
        json_decref(schema);
    }
}

/* A schema that is not strict: what is left out of it, or why it is refused. Takes the schema. */
static void expect_left_out(json_t *schema, const char *left_out, const char *refused)
{
    const mt_source source = {.kind = MT_SOURCE_SCHEMA, .value = schema};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_error err = {0};
    mt_constraint *c = NULL;
    mt_expr e;

    if (mt_source_expr(&source, &j, &e, &err)) {
        mt_grammar_define(g, MT_GRAMMAR_START, e);
        c = mt_constraint_new(g, vocabulary, &err);
    }
    if (refused)
        assert_string_equal(err.text, refused);
    else if (!c)
        fail_msg("%s", err.text);
    else
        assert_string_equal(mt_constraint_left_out(c), left_out);
    mt_constraint_release(c);
    mt_grammar_free(g);
    json_decref(schema);
}

/* {"$ref": ...} to a schema that applies another twice, which does the same, and so on, down to the leaf. */
static json_t *twice_over(json_t *leaf)
{
    json_t *defs = json_object();
    char name[16], next[32];

    for (int i = 0; i < 24; i++) {
        snprintf(name, sizeof(name), "%d", i);
        snprintf(next, sizeof(next), "#/$defs/%d", i + 1);
        json_object_set_new(defs, name, json_pack("{s:[{s:s}, {s:s}]}", "allOf", "$ref", next, "$ref", next));
    }
    json_object_set_new(defs, "24", leaf);
    return json_pack("{s:s, s:o}", "$ref", "#/$defs/0", "$defs", defs);
}

static json_t *zeros_and(size_t zeros, json_t *last)
{
    json_t *list = json_array();

    for (size_t i = 0; i < zeros; i++)
        json_array_append_new(list, json_integer(0));
    json_array_append_new(list, last);
    return list;
}

/* Values, names and types that are held against each other. Each of these took minutes or hours once. */
static void comparing_much_ends(void **state)
{
    enum { MANY = 90000, LONG = 1000000 };
    json_t *schema, *list = json_array(), *other = json_array(), *names = json_object();
    char name[32], *text = mt_alloc(LONG + 1);

    (void)state;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        json_array_append_new(list, json_integer(i));
        json_array_append_new(other, json_string(name));
        json_object_set_new(names, name, json_true());
    }
    json_array_append_new(list, json_integer(1));
    expect_left_out(json_pack("{s:[o], s:b}", "enum", list, "uniqueItems", 1), "",
                    "the constraint allows no answer at all; loosen it");
    expect_left_out(json_pack("{s:s, s:b, s:{s:O}}", "type", "array", "uniqueItems", 1, "items", "enum", other),
                    "uniqueItems", NULL);
    expect_left_out(json_pack("{s:{s:O}, s:{}}", "propertyNames", "enum", other, "additionalProperties"),
                    "propertyNames", NULL);
    expect_left_out(json_pack("{s:o, s:o}", "properties", names, "required", other), "",
                    "\"properties\" at \"#\" of the schema are too many: use fewer");

    list = json_array();
    other = json_array();
    for (int i = 0; i < MANY; i++) {
        json_array_append_new(list, json_pack("{s:i}", "a", i));
        json_array_append_new(other, json_string("a"));
    }
    expect_left_out(json_pack("{s:o, s:o}", "enum", list, "required", other), "",
                    "the constraint has more than 1048576 parts; make it smaller");

    memset(text, 'a', LONG);
    schema = twice_over(json_pack("{s:i}", "maxLength", 2 * LONG));
    json_object_set_new(schema, "const", json_string(text));
    expect_left_out(schema, "const", NULL);
    mt_free(text);
    schema = twice_over(json_pack("{s:o}", "const", zeros_and(LONG / 10, json_integer(1))));
    json_object_set_new(schema, "const", zeros_and(LONG / 10, json_integer(1)));
    expect_left_out(schema, "const", NULL);
}

/* A value of which cannot be said whether it is valid may be said, or the schema is refused; one that is invalid may
   not. */
static void listed_values_are_never_lost_in_silence(void **state)
{
    enum { VALUES = 1000, NAMES = 20000 };
    json_t *list = json_array(), *names = json_array();
    mt_source source = {.kind = MT_SOURCE_SCHEMA};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_error err = {0};
    mt_constraint *c;
    mt_expr e;

    (void)state;
    json_array_append_new(list, json_integer(5));
    for (int i = 0; i < VALUES; i++)
        json_array_append_new(list, json_pack("{s:i}", "a", i));
    for (int i = 0; i < NAMES; i++)
        json_array_append_new(names, json_string("a"));
    source.value = json_pack("{s:o, s:s, s:o}", "enum", list, "type", "object", "required", names);
    assert_true(mt_source_expr(&source, &j, &e, &err));
    mt_grammar_define(g, MT_GRAMMAR_START, e);
    c = mt_constraint_new(g, vocabulary, &err);
    if (!c)
        fail_msg("%s", err.text);
    assert_string_equal(mt_constraint_left_out(c), "enum");
    assert_true(constraint_fits(c, "{\"a\":0}", 7) && constraint_fits(c, "{\"a\":999}", 9));
    assert_false(constraint_fits(c, "{\"a\":1000}", 10) || constraint_fits(c, "5", 1));
    source.strict = true;
    assert_false(mt_source_expr(&source, &j, &e, &err));
    assert_string_equal(err.text, "\"enum\" at \"#\" of the schema stands beside keywords of which cannot be said "
                                  "whether they allow its values: leave them out");
    mt_constraint_release(c);
    mt_grammar_free(g);
    json_decref((json_t *)source.value);
}

/* Each of them is the opposite of all others, too: more schemas than one place may have. */
static void many_alternatives_that_overlap_are_any_of_them(void **state)
{
    json_t *list = json_array();
    char name[16];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "k%d", i);
        json_array_append_new(list,
                              json_pack("{s:s, s:{s:{s:s}}}", "type", "object", "properties", name, "type", "string"));
    }
    expect_left_out(json_pack("{s:o}", "oneOf", list), "oneOf", NULL);
}

/* Each reference by a name has the whole schema searched, which took minutes where both were many. */
static void names_are_sought_in_large_schemas_for_a_while(void **state)
{
    json_t *schema = load("{'type':'object','$defs':{'a':{'$anchor':'here','type':'integer'}}}");
    json_t *members = json_object();
    char name[16];

    (void)state;
    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        json_object_set_new(members, name, json_pack("{s:s}", "$ref", i ? "nowhere" : "#here"));
    }
    json_object_set_new(schema, "properties", members);
    json_object_set_new(schema, "unknown", zeros_and(1000000, json_null()));
    expect_left_out(schema, "$ref", NULL);
}

/* Numbers are equal by value within arrays and objects too. Arrays that differ in nothing else had one hash once, and
   were not equal. */
static void numbers_within_values_are_equal_by_value(void **state)
{
    json_t *list = json_array();
    mt_error err = {0};
    mt_constraint *c;

    (void)state;
    c = compile(MT_SOURCE_SCHEMA, load("{'allOf':[{'enum':[[1.0],{'a':2},3]},{'enum':[[1],{'a':2.0}]}]}"), &err);
    assert_non_null(c);
    assert_true(constraint_fits(c, "{\"a\":2}", 7) && !constraint_fits(c, "3", 1));
    assert_true(constraint_fits(c, "[1.0]", 5) || constraint_fits(c, "[1]", 3));
    mt_constraint_release(c);
    c = compile(MT_SOURCE_SCHEMA, load("{'enum':[[1,2],[1,1.0],[[3],[3]]],'uniqueItems':true}"), &err);
    assert_non_null(c);
    assert_true(constraint_fits(c, "[1,2]", 5));
    assert_false(constraint_fits(c, "[1,1.0]", 7) || constraint_fits(c, "[[3],[3]]", 9));
    mt_constraint_release(c);
    for (int i = 0; i < 1 << 17; i++) {
        json_t *row = json_array();

        for (int bit = 0; bit < 17; bit++)
            json_array_append_new(row, i >> bit & 1 ? json_integer(1) : json_real(1));
        json_array_append_new(list, row);
    }
    expect_left_out(json_pack("{s:[{s:O}, {s:o}]}", "allOf", "enum", list, "enum", list), "",
                    "the constraint has more than 1048576 parts; make it smaller");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(lists_of_names_work, setup, teardown),
    cmocka_unit_test_setup_teardown(lists_of_numbers_are_small, setup, teardown),
    cmocka_unit_test_setup_teardown(grammars_with_many_alternatives_work, setup, teardown),
    cmocka_unit_test_setup_teardown(what_may_be_left_out_is_counted, setup, teardown),
    cmocka_unit_test_setup_teardown(long_chains_of_rules_work, setup, teardown),
    cmocka_unit_test_setup_teardown(what_is_too_large_is_said, setup, teardown),
    cmocka_unit_test_setup_teardown(nobody_compiles_what_nobody_wants, setup, teardown),
    cmocka_unit_test_setup_teardown(signs_behind_signs_end, setup, teardown),
    cmocka_unit_test_setup_teardown(repetitions_of_repetitions_count, setup, teardown),
    cmocka_unit_test_setup_teardown(expressions_that_go_in_circles_end, setup, teardown),
    cmocka_unit_test_setup_teardown(patterns_share_their_work, setup, teardown),
    cmocka_unit_test_setup_teardown(patterns_of_names_that_are_too_large_are_left_out, setup, teardown),
    cmocka_unit_test_setup_teardown(comparing_much_ends, setup, teardown),
    cmocka_unit_test_setup_teardown(listed_values_are_never_lost_in_silence, setup, teardown),
    cmocka_unit_test_setup_teardown(many_alternatives_that_overlap_are_any_of_them, setup, teardown),
    cmocka_unit_test_setup_teardown(names_are_sought_in_large_schemas_for_a_while, setup, teardown),
    cmocka_unit_test_setup_teardown(numbers_within_values_are_equal_by_value, setup, teardown),
};

UNIT_MAIN(tests)
