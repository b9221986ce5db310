/* A template that asks for too much ends with an error, soon. */
#include "unit.h"

#include <pthread.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "template/template.h"
#include "weights/limits.h"

static mt_code render(const char *text, const mt_template_options *options, char *message, size_t size)
{
    json_t *context = json_pack("{s:s, s:[i,i,i]}", "s", "some text", "l", 1, 2, 3);
    mt_error err = {0};
    mt_template *tpl = mt_template_compile(text, strlen(text), &err);
    mt_rendering r;

    if (tpl) {
        if (mt_template_render_json(tpl, context, options, &r, &err))
            assert_int_equal(err.code, MT_OK);
        mt_rendering_free(&r);
    }
    mt_template_free(tpl);
    json_decref(context);
    snprintf(message, size, "%s", err.text);
    return err.code;
}

static void hostile_templates_end(void **state)
{
    static const struct {
        const char *template, *part;
    } cases[] = {
        {"{% for a in range(99999) %}{% for b in range(99999) %}{{ a }}{% endfor %}{% endfor %}", "too many steps"},
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "too many steps"},
        {"{% set ns = namespace(x='aaaaaaaa') %}{% for a in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
         "a text of more than"},
        {"{% set ns = namespace(x=[1]) %}{% for a in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
         "more memory than it may have"},
        {"{{ 'a' * 9223372036854775807 }}", "a text of more than"},
        {"{{ [1] * 9223372036854775807 }}", "more memory than it may have"},
        {"{{ 'a'.center(9223372036854775807) }}", "a text of more than"},
        {"{{ '%9223372036854775807d' % 1 }}", "a text of more than"},
        {"{{ '{:999999999999}'.format(1) }}", "a text of more than"},
        {"{{ '%.999999f' % 1 }}", "a precision of more than"},
        {"{{ range(9999999999) }}", "Range too big"},
        {"{{ ('ab' * 9999999).replace('a', 'b' * 9999) }}", "a text of more than"},
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "evaluations inside one another"},
        {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "evaluations inside one another"},
        {"{% set ns = namespace(x=[]) %}{% for a in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
         "evaluations inside one another"},
        {"{% set ns = namespace(x={}) %}{% for a in range(9999) %}{% set ns.x = {1: ns.x} %}{% endfor %}"
         "{{ ns.x|tojson }}",
         "evaluations inside one another"},
        {"{% set ns = namespace(x=[], y=[]) %}{% for a in range(9999) %}{% set ns.x = [ns.x] %}{% set ns.y = [ns.y] %}"
         "{% endfor %}{{ ns.x == ns.y }}",
         "evaluations inside one another"},
        {"{% set ns = namespace(x=l) %}{% for a in range(9999) %}{% set ns.x = ns.x|map('string') %}{% endfor %}"
         "{{ ns.x|list }}",
         "evaluations inside one another"},
        {"{% set x = 'a' * 999999 %}{% for a in range(99999) %}{% if x.rfind('b' ~ x[:9999]) %}{% endif %}{% endfor %}",
         "too many steps"},
        {"{% set x = 'é' * 999999 %}{% for a in range(99999) %}{% if x[a] == 'x' %}{% endif %}{% endfor %}",
         "too many steps"},
        {"{% set x = range(99999)|list %}{% set y = x[:] %}{% for a in range(99999) %}{% if x != y %}{% endif %}"
         "{% endfor %}",
         "too many steps"},
        {"{% set x = 'ab' * 999999 %}{% set y = 'ab' * 999999 %}{% for a in range(99999) %}{% if x != y or x < y %}"
         "{% endif %}{% endfor %}",
         "too many steps"},
        {"{% set x = 'ab' * 999999 %}{% set d = {} %}{% for a in range(99999) %}{% if x in d %}{% endif %}{% endfor %}",
         "too many steps"},
    };
    char message[MT_LIMIT_ERROR_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(render(cases[i].template, NULL, message, sizeof(message)), MT_E_TOO_LARGE);
        if (!strstr(message, cases[i].part))
            fail_msg("%s: %s", cases[i].template, message);
    }
}

/* prefix, then part n times, then suffix. */
static mt_code render_repeated(const char *prefix, const char *part, size_t n, const char *suffix, char *message,
                               size_t size)
{
    mt_buf text;
    mt_code code;

    mt_buf_init(&text, 64u << 20);
    mt_buf_puts(&text, prefix);
    for (size_t i = 0; i < n; i++)
        mt_buf_puts(&text, part);
    mt_buf_puts(&text, suffix);
    code = render(text.data, NULL, message, size);
    mt_buf_free(&text);
    return code;
}

static void deep_templates_are_refused(void **state)
{
    char message[MT_LIMIT_ERROR_TEXT];
    static const struct {
        const char *prefix, *part, *suffix;
    } cases[] = {
        {"{{ ", "(", "1"},
        {"{{ ", "[", "1"},
        {"{{ ", "not ", "1 }}"},
        {"{{ ", "-", "1 }}"},
        {"{{ 1", "|abs", " }}"},
        {"{{ l", "[0]", " }}"},
        {"{{ 1", " + 1", " }}"},
        {"{{ l", ".x", " }}"},
        {"", "{% if 1 %}", ""},
        {"", "{% for x in l %}", ""},
        {"{{ 1", " if 1 else 1", " }}"},
        {"{{ l", "()", " }}"},
        {"{% if 1 %}", "{% elif 1 %}", "{% endif %}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(
            render_repeated(cases[i].prefix, cases[i].part, 50000, cases[i].suffix, message, sizeof(message)),
            MT_E_TOO_LARGE);
    assert_int_equal(render_repeated("", "{{ s }}", 100000, "", message, sizeof(message)), MT_OK);
    assert_int_equal(render_repeated("{{ 1", " ~ 1", 100000, " }}", message, sizeof(message)), MT_OK);
    assert_int_equal(render_repeated("", "x", MT_LIMIT_TEMPLATE_BYTES + 1, "", message, sizeof(message)),
                     MT_E_TOO_LARGE);
}

static void bounds_can_be_lowered(void **state)
{
    const mt_template_options few_steps = {.steps = 100}, little_memory = {.memory = 4096}, short_text = {.output = 10};
    char message[MT_LIMIT_ERROR_TEXT];

    (void)state;
    assert_int_equal(render("{% for i in range(10) %}{{ i }}{% endfor %}", &few_steps, message, sizeof(message)),
                     MT_OK);
    assert_int_equal(render("{% for i in range(100) %}{{ i }}{% endfor %}", &few_steps, message, sizeof(message)),
                     MT_E_TOO_LARGE);
    assert_int_equal(render("{{ range(1000)|list }}", &little_memory, message, sizeof(message)), MT_E_TOO_LARGE);
    assert_int_equal(render("0123456789", &short_text, message, sizeof(message)), MT_OK);
    assert_int_equal(render("0123456789x", &short_text, message, sizeof(message)), MT_E_TOO_LARGE);
}

static void what_nobody_waits_for_is_not_rendered(void **state)
{
    atomic_bool stop = false;
    const mt_template_options options = {.stop = &stop};
    char message[MT_LIMIT_ERROR_TEXT];

    (void)state;
    assert_int_equal(render("{{ s }}", &options, message, sizeof(message)), MT_OK);
    atomic_store(&stop, true);
    assert_int_equal(render("{{ s }}", &options, message, sizeof(message)), MT_E_INVALID);
    assert_non_null(strstr(message, "the request was cancelled while its messages were rendered; send it again"));
}

/* A loop that adds to a string or list is no slower for each round. */
static void building_up_is_linear(void **state)
{
    char message[MT_LIMIT_ERROR_TEXT];
    const char *text = "{% set ns = namespace(s='', l=[]) %}{% for i in range(100000) %}"
                       "{% set ns.s = ns.s ~ 'some more text' %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.s }}";

    (void)state;
    assert_int_equal(render(text, NULL, message, sizeof(message)), MT_OK);
}

static void deep_contexts_are_refused(void **state)
{
    json_t *context = json_object(), *at = context;
    mt_error err = {0};
    mt_template *tpl = mt_template_compile("x", 1, &err);
    mt_rendering r;

    (void)state;
    for (size_t i = 0; i < 5000; i++) {
        json_t *inner = json_object();

        json_object_set_new(at, "a", inner);
        at = inner;
    }
    assert_false(mt_template_render_json(tpl, context, NULL, &r, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    mt_rendering_free(&r);
    assert_false(mt_template_render_json(tpl, json_object_get(context, "none"), NULL, &r, &err));
    mt_rendering_free(&r);
    mt_template_free(tpl);
    json_decref(context);
}

typedef struct shared {
    const mt_template *tpl;
    const json_t *context;
    bool same;
} shared;

static void *render_many(void *arg)
{
    static const char expected[] = "é 2 4 6 SOMÉ.";
    shared *s = arg;
    mt_error err = {0};

    s->same = true;
    for (int i = 0; i < 200; i++) {
        mt_rendering r;

        s->same = s->same && mt_template_render_json(s->tpl, s->context, NULL, &r, &err) &&
                  strcmp(r.text.data, expected) == 0;
        mt_rendering_free(&r);
    }
    return NULL;
}

static void a_template_is_shared_between_threads(void **state)
{
    const char *text = "{% set x = 'é' %}{% macro m(a) %}{{ a * 2 }} {% endmacro %}{{ x[0] }} "
                       "{% for i in [1,2,3] %}{{ m(i) }}{% endfor %}{{ (s ~ x)|upper }}.";
    json_t *context = json_pack("{s:s}", "s", "som");
    mt_error err = {0};
    mt_template *tpl = mt_template_compile(text, strlen(text), &err);
    shared s[4];
    pthread_t threads[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        s[i] = (shared){.tpl = tpl, .context = context};
        assert_int_equal(pthread_create(&threads[i], NULL, render_many, &s[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_true(s[i].same);
    }
    mt_template_free(tpl);
    json_decref(context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hostile_templates_end),
    cmocka_unit_test(deep_templates_are_refused),
    cmocka_unit_test(bounds_can_be_lowered),
    cmocka_unit_test(what_nobody_waits_for_is_not_rendered),
    cmocka_unit_test(building_up_is_linear),
    cmocka_unit_test(deep_contexts_are_refused),
    cmocka_unit_test(a_template_is_shared_between_threads),
};
UNIT_MAIN(tests)
