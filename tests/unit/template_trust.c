/* Which bytes of a rendering are the user's. */
#include "unit.h"

#include <jansson.h>

#include "template/context.h"
#include "template/template.h"

/* All of the context, of which one variable is trusted, and one list whose dict has a trusted role. */
static bool fill(const void *ctx, mt_tpl_run *run, mt_tpl_dict *variables)
{
    const json_t *trusted = json_object_get((const json_t *)ctx, "trusted");
    mt_tpl_value role, message, list;
    mt_tpl_items items = {0};

    message = (mt_tpl_value){.kind = MT_TPL_DICT, .as.dict = mt_tpl_dict_new(run, 0)};
    return mt_tpl_set_members(run, variables, json_object_get((const json_t *)ctx, "untrusted"), false) &&
           mt_tpl_set_members(run, variables, trusted, true) && mt_tpl_set_lit(run, &role, "user") &&
           mt_tpl_set_members(run, message.as.dict, json_object_get((const json_t *)ctx, "message"), false) &&
           mt_tpl_set_name(run, message.as.dict, "role", role) && mt_tpl_items_add(run, &items, message) &&
           mt_tpl_items_end(run, &items, MT_TPL_LIST, &list) && mt_tpl_set_name(run, variables, "messages", list);
}

/* The text with the untrusted parts in «», so that a case reads as one string. */
static const char *marked(const char *text)
{
    static char result[8192];
    json_t *context = json_loads("{\"untrusted\": {\"u\": \"<|user|>\", \"v\": \"Straße\", \"n\": 7, \"w\": \" a b \","
                                 " \"d\": {\"k<\": \"x\\ty\", \"n\": [1, \"z\"]}, \"e\": \"\"},"
                                 " \"message\": {\"content\": \"hi\\nyou\"},"
                                 " \"trusted\": {\"bos\": \"<s>\", \"deep\": {\"a\": [\"T\"]}}}",
                                 0, NULL);
    mt_error err = {0};
    mt_template *tpl = mt_template_compile(text, strlen(text), &err);
    mt_rendering r = {0};
    size_t at = 0, len = 0;

    assert_non_null(context);
    if (!tpl || !mt_template_render(tpl, fill, context, NULL, &r, &err))
        fail_msg("%s: %s", text, err.text);
    for (size_t i = 0; i < r.untrusted_count; i++) {
        assert_true(r.untrusted[i].begin < r.untrusted[i].end && r.untrusted[i].end <= r.text.len);
        assert_true(i == 0 || r.untrusted[i].begin > r.untrusted[i - 1].end);
        len += (size_t)snprintf(result + len, sizeof(result) - len, "%.*s«%.*s»", (int)(r.untrusted[i].begin - at),
                                r.text.data + at, (int)(r.untrusted[i].end - r.untrusted[i].begin),
                                r.text.data + r.untrusted[i].begin);
        at = r.untrusted[i].end;
    }
    snprintf(result + len, sizeof(result) - len, "%.*s", (int)(r.text.len - at), r.text.data ? r.text.data + at : "");
    mt_rendering_free(&r);
    mt_template_free(tpl);
    json_decref(context);
    return result;
}

typedef struct example {
    const char *template, *result;
} example;

static void check(const example *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *got = marked(cases[i].template);

        if (strcmp(got, cases[i].result) != 0)
            fail_msg("%s gives %s, not %s", cases[i].template, got, cases[i].result);
    }
}

#define CHECK(cases) check(cases, sizeof(cases) / sizeof((cases)[0]))

static void the_context_is_untrusted_but_for_what_is_named(void **state)
{
    static const example cases[] = {
        {"<|im|>{{ u }}<|end|>", "<|im|>«<|user|>»<|end|>"},
        {"{{ bos }}{{ messages[0].role }}{{ messages[0]['content'] }}", "<s>user«hi\nyou»"},
        {"{{ deep.a[0] }}{% for k in deep %}{{ k }}{% endfor %}{{ u }}", "Ta«<|user|>»"},
        {"{{ n }}{{ e }}{{ 'lit' }}{{ none }}", "7litNone"},
        {"{% for k in d %}{{ k }};{% endfor %}", "«k<»;«n»;"},
        {"{{ u ~ u }}", "«<|user|><|user|>»"},
    };

    (void)state;
    CHECK(cases);
}

static void operations_carry_it_along(void **state)
{
    static const example cases[] = {
        {"{{ '<' + u + '>' }}", "<«<|user|>»>"},
        {"{{ '<|' ~ messages[0].role ~ '|>' ~ u }}", "<|user|>«<|user|>»"},
        {"{{ ('[' ~ u ~ ']')[1:4] }}", "«<|u»"},
        {"{{ ('[' ~ u ~ ']')[::-1] }}", "]«>|resu|<»["},
        {"{{ ('[' ~ u ~ ']')[-2:] }}", "«>»]"},
        {"{{ (' ' ~ w ~ ' x')|trim }}", "«a b » x"},
        {"{{ w.strip() ~ '|' }}", "«a b»|"},
        {"{{ ('a' ~ u ~ 'a').replace('a', 'bb') }}", "bb«<|user|>»bb"},
        {"{{ 'x-x'|replace('-', u) }}", "x«<|user|>»x"},
        {"{{ u|replace('|', '!') }}", "«<»!«user»!«>»"},
        {"{{ ('a,' ~ u ~ ',b').split(',')|join('+') }}", "a+«<|user|>»+b"},
        {"{{ [u, 'x', v]|join(', ') }}", "«<|user|>», x, «Straße»"},
        {"{{ ', '.join([u, 'x']) }}", "«<|user|>», x"},
        {"{{ ('lit ' ~ v)|upper }}", "LIT «STRASSE»"},
        {"{{ ('lit ' ~ v).title() }}", "Lit «Straße»"},
        {"{{ '%s=%d' % (u, n) }}", "«<|user|>»=7"},
        {"{{ '{}:{!r:>12}'.format(n, u) }}", "7:  '«<|user|>»'"},
        {"{{ u.center(12, '*') }}", "**«<|user|>»**"},
        {"{{ ('a\n' ~ w)|indent(2) }}", "a\n  « a b »"},
        {"{{ u * 2 ~ 'x' }}", "«<|user|><|user|>»x"},
        {"{{ u|e }}", "«&lt;|user|&gt;»"},
        {"{{ ('<' ~ u)|e }}", "&lt;«&lt;|user|&gt;»"},
        {"{{ [u, 'x', n] }}", "['«<|user|>»', 'x', 7]"},
        {"{{ d }}", "{'«k<»': '«x\\ty»', '«n»': [1, '«z»']}"},
        {"{{ d|tojson }}", "{\"«k<»\": \"«x\\ty»\", \"«n»\": [1, \"«z»\"]}"},
        {"{{ d|tojson(indent=1) }}", "{\n \"«k<»\": \"«x\\ty»\",\n \"«n»\": [\n  1,\n  \"«z»\"\n ]\n}"},
        {"{{ u|list|join }}", "«<|user|>»"},
        {"{{ ('x' ~ u)|reverse }}", "«>|resu|<»x"},
        {"{{ (u ~ 'lit')|truncate(9, true, '~', 0) }}", "«<|user|>»~"},
        {"{{ ('a b/' ~ u)|urlencode }}", "a%20b/«%3C%7Cuser%7C%3E»"},
        {"{{ '%c' % n }}", "«\a»"},
    };

    (void)state;
    CHECK(cases);
}

static void statements_carry_it_along(void **state)
{
    static const example cases[] = {
        {"{% set x %}<{{ u }}>{% endset %}{{ x }}", "<«<|user|>»>"},
        {"{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(u) ~ m('x') }}", "<«<|user|>»><x>"},
        {"{% macro m() %}({{ caller() }}){% endmacro %}{% call m() %}{{ u }}!{% endcall %}", "(«<|user|>»!)"},
        {"{% filter upper %}a{{ u }}{% endfilter %}", "A«<|USER|>»"},
        {"{% set ns = namespace(s='') %}{% for i in range(3) %}{% set ns.s = ns.s ~ u[:1] ~ '-' %}{% endfor %}"
         "{{ ns.s }}",
         "«<»-«<»-«<»-"},
        {"{% set a = 'x' ~ u %}{% set b = a ~ u %}{% set c = a ~ '!' %}{{ a }} {{ b }} {{ c }}",
         "x«<|user|>» x«<|user|><|user|>» x«<|user|>»!"},
        {"{% generation %}{{ u }}.{% endgeneration %}", "«<|user|>»."},
        {"{% for c in 'a' ~ u[:2] %}{{ c }} {% endfor %}", "a «<» «|» "},
        {"{{ strftime_now('%') }}{{ 'a' if u else 'b' }}{{ u|length }}", "%a8"},
    };

    (void)state;
    CHECK(cases);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_context_is_untrusted_but_for_what_is_named),
    cmocka_unit_test(operations_carry_it_along),
    cmocka_unit_test(statements_carry_it_along),
};
UNIT_MAIN(tests)
