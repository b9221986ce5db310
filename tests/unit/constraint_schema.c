/* Keywords of JSON Schema one by one: what is allowed, what is not, what is said of those that cannot be followed. */
#include "constraint_tests.h"

static bool fits(mt_constraint *c, const char *text)
{
    char *json = quoted(text);
    const bool ok = constraint_fits(c, json, strlen(json));

    mt_free(json);
    return ok;
}

typedef struct row {
    const char *schema;    /* JSON with ' for ", as are all texts */
    const char *fits[8];   /* texts that are allowed */
    const char *others[8]; /* and that are not */
} row;

static const row rows[] = {
    /* records */
    {"{'type':'object','propertyNames':{'pattern':'^[a-c]+$'},'additionalProperties':{'type':'integer'}}",
     {"{}", "{'ab':1}", "{'a':1,'cc':2}"},
     {"{'d':1}", "{'':1}", "{'a':'x'}", "{'ad':1}"}},
    {"{'type':'object','propertyNames':{'enum':['x','y']},'additionalProperties':{'type':'integer'},'required':['y']}",
     {"{'y':1}", "{'x':1,'y':2}"},
     {"{}", "{'x':1}", "{'y':1,'z':2}", "{'y':null}"}},
    {"{'type':'object','propertyNames':{'maxLength':2}}", {"{'ab':1}", "{'':[]}"}, {"{'abc':1}"}},
    /* patternProperties */
    {"{'type':'object','patternProperties':{'^s':{'type':'string'},'t$':{'minLength':2}},'additionalProperties':false}",
     {"{}", "{'s':'a'}", "{'st':'ab'}", "{'at':'ab'}"},
     {"{'s':1}", "{'st':'a'}", "{'a':'ab'}", "{'at':'a'}"}},
    {"{'type':'object','properties':{'s1':{'maxLength':1}},'patternProperties':{'^s':{'type':'string'}},"
     "'additionalProperties':{'type':'null'}}",
     {"{'s1':'a'}", "{'s1':'a','s2':'abc','x':null}", "{'x':null,'s2':''}"},
     {"{'s1':'ab'}", "{'s1':1}", "{'s2':1}", "{'x':1}"}},
    /* how many properties */
    {"{'type':'object','additionalProperties':{'type':'integer'},'minProperties':1}",
     {"{'a':1}", "{'a':1,'b':2}"},
     {"{}"}},
    {"{'type':'object','properties':{'a':{},'b':{}},'additionalProperties':true,'minProperties':2}",
     {"{'a':1,'b':2}", "{'a':1,'c':2}", "{'a':1,'b':2,'c':3}"},
     {"{}", "{'a':1}", "{'c':1}", "{'c':1,'c':2}"}},
    /* numbers */
    {"{'type':'integer','multipleOf':7,'minimum':-14,'maximum':30}",
     {"-14", "-7", "0", "7", "28"},
     {"-21", "1", "35", "27", "70"}},
    {"{'type':'integer','multipleOf':100,'minimum':50}", {"100", "1200"}, {"0", "50", "10", "150", "-100"}},
    {"{'type':'number','multipleOf':0.25,'maximum':1}", {"0.25", "1", "1.0", "-0.75", "0.5"}, {"0.3", "1.25", "0.125"}},
    {"{'type':'number','minimum':0.5,'exclusiveMaximum':1.25}",
     {"0.5", "0.50", "1", "1.249", "0.99"},
     {"0.49", "1.25", "1.250", "0", "2", "-0.7", "1.3"}},
    {"{'type':'number','exclusiveMinimum':-2.5,'maximum':-0.1}",
     {"-2.4", "-0.1", "-1"},
     {"-2.5", "0", "-0.05", "-3", "1"}},
    {"{'type':'integer','maximum':305}", {"305", "99", "-1000"}, {"306", "310", "400", "999", "1000", "3050", "30500"}},
    {"{'type':'integer','minimum':1600000000000000000}",
     {"1600000000000000000", "1763370000000000000"},
     {"1599999999999999999", "9", "16000000000000000000"}},
    {"{'type':'integer','minimum':-1700000000000000000,'maximum':-1600000000000000000}",
     {"-1600000000000000000", "-1650000000000000000"},
     {"-1800000000000000000", "-1", "1650000000000000000"}},
    {"{'type':'integer','exclusiveMinimum':999999999999999999}", {"1000000000000000000"}, {"999999999999999999"}},
    {"{'type':'integer','minimum':-305}", {"-305", "-99", "1000"}, {"-306", "-1000", "-3050"}},
    {"{'type':'number','maximum':9.5}", {"9.5", "9.49", "0.1"}, {"9.51", "10", "95", "10.1", "9.6", "100"}},
    {"{'type':'integer','minimum':0.5,'maximum':3.5}", {"1", "3"}, {"0", "4"}},
    {"{'type':'integer','minimum':3,'exclusiveMinimum':true}", {"4"}, {"3", "2"}},
    {"{'type':'integer','format':'int32'}", {"2147483647", "-2147483648"}, {"2147483648", "-2147483649"}},
    {"{'type':'number','format':'uint8'}", {"255", "0"}, {"256", "-1", "1.5"}},
    /* strings */
    {"{'type':'string','format':'something'}", {"''", "'abc'"}, {"1"}},
    {"{'type':'string','pattern':'^(?!ab)[a-c]+$'}", {"'a'", "'ba'", "'acb'"}, {"'ab'", "'abc'", "''"}},
    {"{'type':'string','pattern':'^(?=.*[0-9])(?=.*[a-z]).{3,}$'}", {"'a1b'", "'12x'"}, {"'abc'", "'123'", "'a1'"}},
    {"{'type':'string','pattern':'^(?:(?!--)[a-z-])*$'}", {"'a-b'", "''"}, {"'a--b'", "'--'"}},
    {"{'type':'string','pattern':'^a$|^b|c$'}", {"'a'", "'bx'", "'xc'"}, {"'ax'", "'x'"}},
    {"{'type':'string','pattern':'(^a|x)b$'}", {"'ab'", "'zxb'"}, {"'zab'", "'abz'"}},
    {"{'type':'string','pattern':'\\\\bcat\\\\b'}", {"'cat'", "'a cat!'"}, {"'cats'", "'scat'"}},
    {"{'type':'string','pattern':'^[a-z]+$','minLength':2,'maxLength':3}", {"'ab'", "'abc'"}, {"'a'", "'abcd'"}},
    {"{'type':'string','pattern':'^x[a-z]*$','maxLength':100000}", {"'x'", "'xab'"}, {"''", "'a'"}},
    {"{'type':'string','format':'uri','maxLength':20}", {"'http://ab.c/x'"}, {"'http://ab.c/xxxxxxxxxxxxx'", "'ab'"}},
    {"{'type':'string','format':'uri','maxLength':2083}", {"'https://ab.c/x?y=1'"}, {"'ab'"}},
    {"{'type':'string','format':'email','maxLength':9}", {"'a@bc.de'"}, {"'abcde@bc.de'", "'a@bc'"}},
    /* oneOf */
    {"{'oneOf':[{'type':'integer'},{'minimum':2}]}", {"1", "2.5"}, {"2", "3", "1.5"}},
    {"{'type':'object','oneOf':[{'required':['a']},{'required':['b']}],'properties':{'a':{},'b':{}}}",
     {"{'a':1}", "{'b':1}"},
     {"{}", "{'a':1,'b':2}"}},
    {"{'oneOf':[{'type':'object','properties':{'k':{'const':'x'},'v':{'type':'integer'}},'required':['k']},"
     "{'type':'object','properties':{'k':{'enum':['y','z']}},'required':['k']}]}",
     {"{'k':'x','v':1}", "{'k':'y'}"},
     {"{'k':'y','v':1}", "{}", "{'k':'w'}"}},
    {"{'oneOf':[{'type':'object','properties':{'a':{'type':'string'}},'additionalProperties':false},"
     "{'type':'object','properties':{'b':{'type':'string'}},'additionalProperties':false}]}",
     {"{'a':'x'}", "{'b':'x'}"},
     {"{}", "{'a':'x','b':'y'}"}},
    {"{'type':'string','oneOf':[{'pattern':'a'},{'pattern':'b'}]}", {"'a'", "'xb'"}, {"'ab'", "'c'"}},
    /* constants tell only objects apart that require them, and only where they differ */
    {"{'oneOf':[{'type':['object','null'],'properties':{'k':{'const':1}},'required':['k']},"
     "{'type':['object','null'],'properties':{'k':{'const':2}},'required':['k']}]}",
     {"{'k':1}", "{'k':2}"},
     {"null", "{}", "{'k':3}"}},
    {"{'oneOf':[{'type':'object','properties':{'k':{'const':1},'a':{'const':5}},'required':['k']},"
     "{'type':'object','properties':{'k':{'const':1.0},'b':{'const':6}},'required':['k']},"
     "{'type':'object','properties':{'k':{'const':2}},'required':['k']}]}",
     {"{'k':2}"},
     {"{'k':1}", "{'k':1,'a':5}", "{'k':1.0}"}},
    {"{'oneOf':[{'type':'object','properties':{'k':{'const':1}}},{'type':'object','properties':{'k':{'const':2}}}]}",
     {"{'k':1}", "{'k':2}"},
     {"{}", "{'k':3}"}},
    {"{'oneOf':[{'type':'object','properties':{'k':{'const':1},'v':{'const':7}},'required':['k','v']},"
     "{'type':'object','properties':{'k':{'const':2},'v':{'const':7}},'required':['v']}]}",
     {"{'k':1,'v':7}", "{'k':2,'v':7}", "{'v':7}"},
     {"{'k':1}", "{'k':3,'v':7}"}},
    {"{'oneOf':[{'allOf':[{'type':'object','properties':{'k':{'const':1}}},{'required':['k']}]},"
     "{'allOf':[{'type':'object','required':['k']},{'properties':{'k':{'enum':[2]}}}]},{'type':'null'}]}",
     {"{'k':1}", "{'k':2}", "null"},
     {"{}", "{'k':3}"}},
    /* what is about objects alone is true of all other values */
    {"{'type':['object','string'],'oneOf':[{'properties':{'k':{'const':1}},'required':['k']},"
     "{'properties':{'k':{'const':2}},'required':['k']}]}",
     {"{'k':1}", "{'k':2}"},
     {"'x'", "{}", "{'k':3}"}},
    {"{'type':['object','string'],'oneOf':[{'properties':{'k':{'const':1}},'required':['k']}]}",
     {"{'k':1}", "'x'"},
     {"{}", "{'k':2}"}},
    /* the end of an object, and what is counted before it */
    {"{'type':'object','properties':{'a':{},'b':{}},'required':['b'],'maxProperties':1}",
     {"{'b':1}"},
     {"{'a':1,'b':1}"}},
    {"{'type':'object','properties':{'a':{},'b':{}},'additionalProperties':{'const':0},'maxProperties':3}",
     {"{}", "{'a':1,'x':0,'y':0}", "{'x':0,'y':0,'z':0}", "{'a':1,'b':1}"},
     {"{'a':1,'b':1,'x':0,'y':0}", "{'x':1}", "{'b':1,'a':1}", "{'a':1,}", "{,'a':1}"}},
    {"{'type':'string','oneOf':[{'format':'hostname'},{'format':'ipv4'},{'format':'ipv6'}]}",
     {"'ab.c'", "'a1'", "'1::'", "'::2'"},
     {"'1.2.3.4'", "''", "'a:b'"}},
    /* not */
    {"{'type':'string','not':{'format':'email'},'maxLength':9}", {"''", "'abc'"}, {"'a@b.cd'", "'@'"}},
    {"{'not':{'type':'string'}}", {"1", "null", "[]", "{}"}, {"'a'"}},
    {"{'type':'integer','not':{'enum':[1,2]}}", {"0", "3", "12"}, {"1", "2"}},
    {"{'type':'string','not':{'enum':['a','b.']}}", {"''", "'aa'", "'b'", "'bx'"}, {"'a'", "'b.'"}},
    {"{'type':'string','not':{'pattern':'^x'}}", {"''", "'ax'"}, {"'x'", "'xa'", "1"}},
    {"{'type':'object','properties':{'a':{},'b':{}},'not':{'required':['a','b']}}",
     {"{}", "{'a':1}", "{'b':1}"},
     {"{'a':1,'b':1}"}},
    {"{'type':'boolean','not':{'const':true}}", {"false"}, {"true"}},
    {"{'type':'number','not':{'type':'integer'}}", {"0.5", "-3.25"}, {"1", "1.0", "0"}},
    {"{'type':['array','null'],'not':{'const':[]}}", {"null", "[1]"}, {"[]"}},
    {"{'type':['object','null'],'not':{'enum':[{},1]}}", {"null", "{'a':1}"}, {"{}"}},
    {"{'not':{'const':[1,2]}}", {"1", "'a'", "{}", "null"}, {"[1,2]", "[1, 2]"}},
    {"{'not':{'enum':['a',[1,2],{'a':1}]}}", {"1", "'b'", "true"}, {"'a'", "[1,2]", "{'a':1}", "{ 'a': 1 }"}},
    {"{'type':'array','items':{'type':'integer'},'not':{'items':{'minimum':5}}}", {"[4]", "[7,1]"}, {"[]", "[5]"}},
    /* if */
    {"{'type':'object','properties':{'k':{'enum':['a','b']},'x':{'type':'integer'}},'required':['k'],"
     "'if':{'properties':{'k':{'const':'a'}}},'then':{'required':['x']},'else':{'properties':{'x':false}}}",
     {"{'k':'a','x':1}", "{'k':'b'}"},
     {"{'k':'a'}", "{'k':'b','x':1}"}},
    {"{'type':'integer','if':{'minimum':10},'then':{'multipleOf':5}}", {"1", "9", "10", "15"}, {"11", "12"}},
    /* dependencies */
    {"{'type':'object','properties':{'a':{},'b':{}},'dependentRequired':{'a':['b']}}",
     {"{}", "{'b':1}", "{'a':1,'b':2}"},
     {"{'a':1}"}},
    {"{'type':'object','properties':{'a':{},'b':{}},'dependentSchemas':{'a':{'properties':{'b':{'type':'null'}}}}}",
     {"{'b':1}", "{'a':1,'b':null}", "{'a':1}"},
     {"{'a':1,'b':2}"}},
    {"{'type':'object','properties':{'a':{},'b':{}},'dependencies':{'a':['b'],'b':{'required':['a']}}}",
     {"{}", "{'a':1,'b':2}"},
     {"{'a':1}", "{'b':1}"}},
    /* arrays */
    {"{'type':'array','items':{'type':'integer'},'contains':{'minimum':5}}",
     {"[5]", "[1,9,2]"},
     {"[]", "[1,2]", "['x',5]"}},
    {"{'type':'array','contains':{'const':1},'minContains':2,'maxContains':2,'items':{'enum':[1,2]}}",
     {"[1,1]", "[2,1,1]", "[1,2,1,2]"},
     {"[1]", "[1,1,1]", "[2,2]"}},
    {"{'type':'array','items':{'enum':['a','b',1]},'uniqueItems':true,'minItems':1}",
     {"['a']", "['b','a']", "[1,'b','a']"},
     {"[]", "['a','a']", "['a','b','a']", "['c']"}},
    {"{'type':'array','items':{'enum':['a','b','c','d','e','f','g','h']},'uniqueItems':true,'maxItems':2}",
     {"[]", "['h']", "['a','c']"},
     {"['a','a']", "['a','b','c']"}},
    {"{'type':'array','items':{'type':'boolean'},'uniqueItems':true}",
     {"[true,false]", "[false,true]"},
     {"[true,true]"}},
    {"{'type':'array','prefixItems':[{'type':'integer'}],'unevaluatedItems':false}", {"[]", "[1]"}, {"[1,2]"}},
    {"{'allOf':[{'properties':{'a':{'type':'integer'}}}],'type':'object','properties':{'b':{}},"
     "'unevaluatedProperties':false}",
     {"{'b':1}", "{'b':1,'a':2}"},
     {"{'c':1}", "{'a':'x'}"}},
    /* values beside other keywords */
    {"{'enum':['a','abc',3,5],'minLength':2,'maximum':4}", {"'abc'", "3"}, {"'a'", "5"}},
    {"{'enum':[1,2,3],'not':{'const':2}}", {"1", "3"}, {"2"}},
    /* references */
    {"{'$defs':{'x':{'$anchor':'here','type':'integer'}},'$ref':'#here'}", {"1"}, {"'a'"}},
    {"{'$id':'http://a/b.json','$defs':{'x':{'$id':'c.json','type':'null'}},'$ref':'c.json'}", {"null"}, {"1"}},
    {"{'$defs':{'a/b':{'type':'integer'},'c~d':{'type':'null'},'e%f':{'type':'boolean'},'~2%4x':{'const':'x'}},"
     "'anyOf':[{'$ref':'#/$defs/a~1b'},{'$ref':'#/$defs/c~0d'},{'$ref':'#/$defs/%65%25f'},{'$ref':'#/$defs/~2%4x'}]}",
     {"1", "null", "true", "'x'"},
     {"'a'", "[]"}},
    {"{'$defs':{'x':[{'type':'null'},{'type':'integer'}]},'$ref':'#/%24defs/x/1'}", {"1"}, {"null"}},
    /* values that are equal */
    {"{'allOf':[{'enum':[[1,2],[3,2],{'a':1,'e':1},{'a':2},{'b':1},[],{},'',0]},"
     "{'enum':[[3,2],[0,2],{'a':3},{'c':1},{'b':1},{'a':1},{'b':1,'d':1},[]]}]}",
     {"[3,2]", "{'b':1}", "[]"},
     {"[0,2]", "{'a':3}", "{'c':1}", "{'a':1}", "{'b':1,'d':1}", "[1,2]", "{}", "0"}},
    {"{'allOf':[{'enum':[0,1,'',[]]},{'enum':[null,false,1,{}]}]}", {"1"}, {"0", "''", "null", "false", "[]", "{}"}},
};

static mt_constraint *compile(const json_t *schema, bool strict, char *left_out, mt_error *err)
{
    const mt_source source = {.kind = MT_SOURCE_SCHEMA, .value = schema, .strict = strict};
    mt_grammar *g = mt_grammar_new();
    mt_json j = {.g = g};
    mt_constraint *c = NULL;
    mt_expr e;

    if (mt_source_expr(&source, &j, &e, err)) {
        mt_grammar_define(g, MT_GRAMMAR_START, e);
        c = mt_constraint_new(g, vocabulary, err);
    }
    mt_grammar_free(g);
    if (c)
        snprintf(left_out, MT_GRAMMAR_LEFT_OUT, "%s", mt_constraint_left_out(c));
    return c;
}

static void keywords_allow_what_they_should_and_nothing_else(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        json_t *schema = load(rows[i].schema);
        char left_out[MT_GRAMMAR_LEFT_OUT];
        mt_error err = {0};
        mt_constraint *c = compile(schema, true, left_out, &err);

        if (!c)
            fail_msg("%s: %s", rows[i].schema, err.text);
        assert_string_equal(left_out, "");
        for (size_t k = 0; k < MT_COUNT(rows[i].fits) && rows[i].fits[k]; k++)
            if (!fits(c, rows[i].fits[k]))
                fail_msg("%s does not allow %s", rows[i].schema, rows[i].fits[k]);
        for (size_t k = 0; k < MT_COUNT(rows[i].others) && rows[i].others[k]; k++)
            if (fits(c, rows[i].others[k]))
                fail_msg("%s allows %s", rows[i].schema, rows[i].others[k]);
        mt_constraint_release(c);
        json_decref(schema);
    }
}

static const struct {
    const char *schema, *sentence; /* where all of it has to be followed */
    const char *left_out;          /* where not */
    const char *fits, *other;      /* what is then allowed, and not */
} loose[] = {
    {"{'type':'array','items':{'type':'string'},'uniqueItems':true,'maxItems':2}",
     "\"uniqueItems\" at \"#\" of the schema is supported for listed values only (\"enum\", \"const\"): leave it out",
     "uniqueItems", "['a','a']", "['a','b','c']"},
    {"{'type':'object','additionalProperties':{'type':'integer'},'minProperties':2}",
     "\"minProperties\" at \"#\" of the schema counts properties that are not declared, beyond the first of them, "
     "which is not supported: leave it out",
     "minProperties", "{'a':1}", "{'a':'x'}"},
    {"{'type':'string','pattern':'(a)\\\\1','maxLength':3}",
     "\"pattern\" at \"#\" of the schema: the regular expression \"(a)\\1\" refers back, which is not supported",
     "pattern", "'xyz'", "'wxyz'"},
    {"{'type':'string','pattern':'(?<=a)b'}",
     "\"pattern\" at \"#\" of the schema: the regular expression \"(?<=a)b\" looks behind or names a group in an "
     "unknown way, which is not supported",
     "pattern", "'b'", "1"},
    {"{'type':'string','pattern':'^(?=.*a.{10}b)(?=.*c.{9}d).*$'}",
     "\"pattern\" at \"#\" of the schema is too large together with the bounds on the length, or with another one: "
     "simplify it",
     "pattern", "'x'", "1"},
    {"{'type':'integer','not':{'multipleOf':3}}",
     "\"not\" at \"#\" of the schema is about keywords whose opposite is not supported: leave it out", "not", "3",
     "'a'"},
    {"{'type':'array','not':{'const':[1,2]},'items':{'type':'integer'}}",
     "\"not\" at \"#\" of the schema excludes an array or object that is not empty, which is supported only where "
     "other types are allowed too: leave it out",
     "not", "[]", "['a']"},
    {"{'type':['array','object'],'not':{'enum':[{'a':1},[1]]},'properties':{'a':{'type':'integer'}}}",
     "\"not\" at \"#\" of the schema excludes an array or object that is not empty, which is supported only where "
     "other types are allowed too: leave it out",
     "not", "{}", "{'a':'x'}"},
    {"{'type':'array','contains':{'const':1},'minContains':200,'maxItems':100}",
     "\"contains\" at \"#/contains\" of the schema takes too many states together with the numbers of items: make them "
     "smaller",
     "contains", "[2]", "2"},
    {"{'type':'integer','oneOf':[{'multipleOf':2},{'multipleOf':3}]}",
     "\"oneOf\" at \"#\" of the schema has alternatives that a value may satisfy together: use \"anyOf\", or give each "
     "another type or a required property with another constant",
     "oneOf", "6", "'a'"},
    {"{'type':'object','properties':{'a':{'$ref':'http://x/y.json'},'b':{'type':'integer','multipleOf':9973}}}",
     "\"$ref\" at \"#/properties/a\" of the schema refers to a place that the schema does not have", "$ref, multipleOf",
     "{'a':[],'b':1}", "{'b':'x'}"},
    {"{'$dynamicRef':'#x'}", "\"$dynamicRef\" at \"#\" of the schema is not supported: use \"$ref\"", "$dynamicRef",
     "1", "x"},
};

static void what_cannot_be_followed_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(loose); i++) {
        json_t *schema = load(loose[i].schema);
        char left_out[MT_GRAMMAR_LEFT_OUT] = "";
        mt_error err = {0};
        mt_constraint *c = compile(schema, true, left_out, &err);

        if (c)
            fail_msg("%s is taken", loose[i].schema);
        assert_string_equal(err.text, loose[i].sentence);
        c = compile(schema, false, left_out, &err);
        if (!c)
            fail_msg("%s: %s", loose[i].schema, err.text);
        assert_string_equal(left_out, loose[i].left_out);
        if (!fits(c, loose[i].fits) || fits(c, loose[i].other))
            fail_msg("%s is wrong about %s or %s", loose[i].schema, loose[i].fits, loose[i].other);
        mt_constraint_release(c);
        json_decref(schema);
    }
}

/* Many values, each at most once, up to half of them: too many states to count. */
static void too_many_different_items_are_named(void **state)
{
    json_t *values = json_array(), *schema;
    char left_out[MT_GRAMMAR_LEFT_OUT];
    mt_error err = {0};
    mt_constraint *c;

    (void)state;
    for (int i = 0; i < 200; i++)
        json_array_append_new(values, json_integer(i));
    schema =
        json_pack("{s:s,s:{s:o},s:b,s:i}", "type", "array", "items", "enum", values, "uniqueItems", 1, "maxItems", 100);
    assert_null(compile(schema, true, left_out, &err));
    assert_string_equal(err.text,
                        "\"uniqueItems\" at \"#\" of the schema takes too many states together with the number "
                        "of values and of items: make them smaller");
    c = compile(schema, false, left_out, &err);
    assert_non_null(c);
    assert_string_equal(left_out, "uniqueItems");
    assert_true(fits(c, "[7,7]"));
    assert_false(fits(c, "[200]"));
    mt_constraint_release(c);
    json_decref(schema);
}

/* What is wrong in the schema of an item is an error whatever may be left out, and is told as what it is. */
static void wrong_schemas_of_items_are_named(void **state)
{
    static const char *const schemas[] = {
        "{'type':'array','contains':{'allOf':1}}",
        "{'type':'array','contains':{'type':'integer'},'items':{'allOf':1}}",
        "{'type':'array','contains':{'type':'integer'},'maxContains':2,'prefixItems':[{'allOf':1}]}",
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(schemas); i++)
        for (int strict = 0; strict < 2; strict++) {
            json_t *schema = load(schemas[i]);
            char left_out[MT_GRAMMAR_LEFT_OUT];
            mt_error err = {0};

            if (compile(schema, strict, left_out, &err))
                fail_msg("%s is taken", schemas[i]);
            if (!strstr(err.text, "\"allOf\"") || !strstr(err.text, "is not a list: give a list of schemas"))
                fail_msg("%s: %s", schemas[i], err.text);
            json_decref(schema);
        }
}

/* Alternatives that overlap multiply; what they take stays within bounds. */
static void many_alternatives_stay_small(void **state)
{
    json_t *list = json_array(), *schema;
    char left_out[MT_GRAMMAR_LEFT_OUT];
    mt_error err = {0};
    mt_constraint *c;

    (void)state;
    for (int i = 0; i < 40; i++) {
        char name[16];

        snprintf(name, sizeof(name), "p%d", i);
        json_array_append_new(list, json_pack("{s:s,s:{s:{s:s},s:{s:s}},s:[s]}", "type", "object", "properties", name,
                                              "type", "string", "n", "type", "integer", "required", name));
    }
    schema = json_pack("{s:o}", "oneOf", list);
    c = compile(schema, true, left_out, &err);
    if (!c)
        fail_msg("%s", err.text);
    assert_true(fits(c, "{'p7':'x','n':1}"));
    assert_false(fits(c, "{'n':1}"));
    assert_false(fits(c, "{'p7':'x','p8':'y'}"));
    mt_constraint_release(c);
    json_decref(schema);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(keywords_allow_what_they_should_and_nothing_else, setup, teardown),
    cmocka_unit_test_setup_teardown(what_cannot_be_followed_is_named, setup, teardown),
    cmocka_unit_test_setup_teardown(too_many_different_items_are_named, setup, teardown),
    cmocka_unit_test_setup_teardown(wrong_schemas_of_items_are_named, setup, teardown),
    cmocka_unit_test_setup_teardown(many_alternatives_stay_small, setup, teardown),
};

UNIT_MAIN(tests)
