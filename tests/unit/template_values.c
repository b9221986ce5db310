/* What the recorded cases cannot say: bounds of numbers, what changed in Jinja2 after 3.1.2, what is not supported. */
#include "unit.h"

#include <jansson.h>

#include "base/json_tree.h"
#include "template/template.h"

/* The text or the error, which lives until the next call. */
static const char *render_with(const char *text, const json_t *context)
{
    static char result[4096];
    mt_error err = {0};
    mt_template *tpl = mt_template_compile(text, strlen(text), &err);
    mt_rendering r;

    if (!tpl)
        snprintf(result, sizeof(result), "%s", err.text);
    else {
        bool ok = mt_template_render_json(tpl, context, NULL, &r, &err);

        snprintf(result, sizeof(result), "%s", !ok ? err.text : r.text.data ? r.text.data : "");
        mt_rendering_free(&r);
    }
    mt_template_free(tpl);
    return result;
}

/* With an empty context. */
static const char *render(const char *text)
{
    json_t *context = json_object();
    const char *result = render_with(text, context);

    json_decref(context);
    return result;
}

static void integers_have_64_bits(void **state)
{
    static const char *const huge = "an integer beyond 64 bits; use a float, or smaller numbers";
    static const char *const cases[] = {"{{ 9223372036854775807 + 1 }}",
                                        "{{ -9223372036854775807 - 2 }}",
                                        "{{ 9223372036854775808 }}",
                                        "{{ 3037000500 * 3037000500 }}",
                                        "{{ 2 ** 63 }}",
                                        "{{ 1e19|int }}",
                                        "{{ '9223372036854775808'|int }}",
                                        "{{ -(-9223372036854775807 - 1) }}",
                                        "{{ [9223372036854775807, 1]|sum }}",
                                        "{{ (-9223372036854775807 - 1) // -1 }}"};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_non_null(strstr(render(cases[i]), huge));
    assert_string_equal(render("{{ 9223372036854775807 }} {{ -9223372036854775807 - 1 }}"),
                        "9223372036854775807 -9223372036854775808");
    assert_string_equal(render("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
    assert_string_equal(render("{{ '-9223372036854775808'|int }}"), "-9223372036854775808");
    assert_non_null(strstr(render("{{ '{0[9223372036854775808]}'.format([1]) }}"), "Too many decimal digits"));
    assert_non_null(strstr(render("{{ '{9223372036854775808}'.format(1) }}"), "Too many decimal digits"));
    assert_string_equal(render("{{ range(9223372036854775806, 9223372036854775807)|list }}"), "[9223372036854775806]");
}

static void later_releases_of_jinja2_are_followed(void **state)
{
    (void)state;
    assert_non_null(strstr(render("{{ [1].pop() }}"), "access to attribute 'pop' of 'list' object is unsafe."));
    assert_string_equal(render("{{ 'inf'|int }} {{ 'nan'|int(3) }}"), "0 3");
    assert_string_equal(render("{{ ('<b>'|safe).replace('<', '[') }}"), "[b>");
    assert_string_equal(render("{% set ns = namespace(a=1) %}{% set ns.a, ns.b = 3, 4 %}{{ ns.a }}{{ ns.b }}"), "34");
}

static void what_is_not_supported_says_so(void **state)
{
    (void)state;
    assert_non_null(strstr(render("{{ 'a'.encode() }}"), "not supported"));
    assert_non_null(strstr(render("{{ 'a'|wordwrap }}"), "not supported"));
    assert_non_null(strstr(render("{{ lipsum() }}"), "not supported"));
    assert_non_null(strstr(render("{% include 'x' %}"), "other templates cannot be loaded"));
    assert_non_null(strstr(render("{% autoescape true %}{% endautoescape %}"), "autoescape is not supported"));
    assert_non_null(strstr(render("{{ (-8) ** 0.5 }}"), "complex"));
    assert_string_equal(render("{% if false %}{{ 'a'|wordwrap }}{% include 'x' %}{% endif %}ok"), "ok");
}

static void errors_say_line_and_column(void **state)
{
    static const struct {
        const char *template, *text;
    } cases[] = {
        {"{{ x.y }}", "line 1, column 5: 'x' is undefined"},
        {"a\n  {{ none + 1 }}", "line 2, column 11: unsupported operand type(s) for +: 'NoneType' and 'int'"},
        {"a\r\nb\r\n{% if 1 %}", "line 3, column 11: Unexpected end of template. Jinja was looking for the following "
                                 "tags: 'elif' or 'else' or 'endif'."},
        {"é😀{{ 'a' + 1 }}", "line 1, column 10: can only concatenate str (not \"int\") to str"},
        {"{% for a, b in [1] %}{% endfor %}", "line 1, column 8: cannot unpack non-iterable int object"},
        {"{{ 1|nosuch }}", "line 1, column 6: No filter named 'nosuch'."},
        {"{%\n  foo %}", "line 2, column 3: Encountered unknown tag 'foo'."},
        {"{{ 'abc }}", "line 1, column 4: unexpected char ' at 3; the string has no end"},
        {"{{ (1] }}", "line 1, column 6: unexpected ']', expected ')'"},
        {"{{ '\\xZZ' }}", "line 1, column 4: truncated \\xXX escape"},
        {"{{ '\\ud800' }}",
         "line 1, column 4: a surrogate is no character; write the character itself, or \\U and its eight digits"},
        {"\xFF", "line 1, column 1: a byte that is not UTF-8; save the template as UTF-8"},
        {"{% macro m(x) %}\n{{ x.y }}{% endmacro %}{{ m() }}", "line 2, column 5: parameter 'x' was not provided"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(render(cases[i].template), cases[i].text);
}

static void numbers_read_back_as_they_print(void **state)
{
    static const double values[] = {0.1,    1.0 / 3,
                                    1e-5,   123456789012345680.0,
                                    5e-324, 1.7976931348623157e308,
                                    1e15,   1e16,
                                    -2.5,   0.0001,
                                    1e22,   9007199254740993.0,
                                    1e-310, 100.0,
                                    1.1};
    mt_error err = {0};
    mt_template *tpl = mt_template_compile("{{ x }} {{ x|tojson }}", 22, &err);

    (void)state;
    assert_non_null(tpl);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        json_t *context = json_pack("{s:f}", "x", values[i]);
        mt_rendering r;
        char *end;

        assert_true(mt_template_render_json(tpl, context, NULL, &r, &err));
        assert_true(strtod(r.text.data, &end) == values[i]);
        assert_true(strtod(end, NULL) == values[i]);
        mt_rendering_free(&r);
        json_decref(context);
    }
    mt_template_free(tpl);
}

/* Numbers of the context that 64 bits do not hold; what Python makes of the same JSON. */
static void wide_numbers_are_shown_and_compared(void **state)
{
    static const char given[] =
        "{\"b\": 9223372036854775808, \"n\": -123456789012345678901234567890, \"i\": 1e999, \"f\": 1.10, \"g\": "
        "1e22, \"e\": 100000000000000000000, \"d\": {\"k\": [18446744073709551616]}, \"p\": [98765432109876543210, "
        "98765432109876543212, -98765432109876543212, -98765432109876543210]}";
    static const char *const cases[][2] = {
        {"{{ b }} {{ n }} {{ i }} {{ f }} {{ g }}",
         "9223372036854775808 -123456789012345678901234567890 inf 1.1 1e+22"},
        {"{{ [b, n, -i, f, g]|tojson }}",
         "[9223372036854775808, -123456789012345678901234567890, -Infinity, 1.1, 1e+22]"},
        {"{{ d|tojson }} {{ d }}", "{\"k\": [18446744073709551616]} {'k': [18446744073709551616]}"},
        {"{{ b is integer }} {{ b is number }} {{ b is float }} {{ b is string }} {{ i is float }}",
         "True True False False True"},
        {"{{ b == b }} {{ b == n }} {{ b > n }} {{ n < 0 }} {{ b > 5 }} {{ b < i }} {{ b == "
         "9223372036854775808.0 }} {{ e == 1e20 }} {{ e < 1.5e20 }} {{ 1 < b }}",
         "True False True True True True True True True True"},
        {"{{ p[1] > p[0] }} {{ p[1] >= p[0] }} {{ p[0] < p[1] }} {{ p[3] > p[2] }} {{ p[3] >= p[2] }} "
         "{{ p[0] > p[1] }}",
         "True True True True True False"},
        {"{{ [b, 1, n, 2.5, e]|sort }} {{ [b, n]|max }}",
         "[-123456789012345678901234567890, 1, 2.5, 9223372036854775808, 100000000000000000000] 9223372036854775808"},
        {"{{ {b: 1}[b] }} {{ 1e20 in [e] }} {{ {1e20: 'x'}[e] }}", "1 True x"},
        {"{{ b|int }} {{ b|float }} {{ b|string|length }} {{ 'y' if b else 'n' }} {{ '%s' % b }} {{ "
         "'{}'.format(n) }} {{ b ~ 1 }} {{ b + 0.5 }} {{ b|abs }}",
         "9223372036854775808 9.223372036854776e+18 19 y 9223372036854775808 -123456789012345678901234567890 "
         "92233720368547758081 9.223372036854776e+18 9223372036854775808"},
    };
    static const char *const computed[] = {"{{ b + 1 }}", "{{ -b }}",       "{{ b % 2 }}",
                                           "{{ 2 * b }}", "{{ '%d' % b }}", "{{ '{:d}'.format(b) }}"};
    json_t *context = mt_json_tree_try(given, strlen(given));

    (void)state;
    assert_non_null(context);
    for (size_t i = 0; i < MT_COUNT(cases); i++)
        assert_string_equal(render_with(cases[i][0], context), cases[i][1]);
    for (size_t i = 0; i < MT_COUNT(computed); i++)
        assert_non_null(strstr(render_with(computed[i], context), "an integer beyond 64 bits"));
    json_decref(context);
}

static void operators_give_what_python_gives(void **state)
{
    static const struct {
        const char *template, *said;
    } cases[] = {{"{{ 'a' < 1 }}", "'<' not supported between instances of 'str' and 'int'"},
                 {"{{ 'a' <= 1 }}", "'<=' not supported between instances of 'str' and 'int'"},
                 {"{{ none > [] }}", "'>' not supported between instances of 'NoneType' and 'list'"},
                 {"{{ none >= [] }}", "'>=' not supported between instances of 'NoneType' and 'list'"},
                 {"{{ [1] * 'a' }}", "can't multiply sequence by non-int of type 'str'"},
                 {"{{ 1.5 * [1] }}", "can't multiply sequence by non-int of type 'float'"},
                 {"{{ '%f' % 'a' }}", "must be real number, not str"},
                 {"{{ 'abc%y' % 1 }}", "unsupported format character 'y' (0x79)"},
                 {"{{ ('<{}>'|safe).format('<b>'|safe) }}", "<<b>>"},
                 {"{{ {'a': 1, 'b': 2} == {'a': 1, 'b': 3} }}", "False"},
                 {"{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1.0} }}", "True"},
                 {"{{ {'a': 1}.keys() == {'a': 2}.keys() }}", "True"}};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++)
        if (!strstr(render(cases[i].template), cases[i].said))
            fail_msg("%s: %s", cases[i].template, render(cases[i].template));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(operators_give_what_python_gives),
    cmocka_unit_test(integers_have_64_bits),
    cmocka_unit_test(later_releases_of_jinja2_are_followed),
    cmocka_unit_test(what_is_not_supported_says_so),
    cmocka_unit_test(errors_say_line_and_column),
    cmocka_unit_test(numbers_read_back_as_they_print),
    cmocka_unit_test(wide_numbers_are_shown_and_compared),
};
UNIT_MAIN(tests)
