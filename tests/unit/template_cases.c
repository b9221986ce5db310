/* The cases that tests/template/make.py recorded with Jinja2: the same text, or a failure of the same kind, which is
   told in the same words as a rule. */
#include "unit.h"

#include <dirent.h>

#include <jansson.h>

#include "template/template.h"

static const char *const folder = "tests/template/cases";

typedef struct tally {
    size_t passed, failed, worded; /* worded: failures in Jinja2's words */
} tally;

enum { WORDED = 433 }; /* at least: raise it with new cases */

static void show(tally *t, const char *template, const char *expected, const char *got)
{
    t->failed++;
    printf("template: %s\nexpected: %s\ngot:      %s\n", template, expected, got);
}

static void check_error(tally *t, const json_t *item, const char *got_kind, const mt_error *err)
{
    const char *template = json_string_value(json_object_get(item, "template"));
    const json_t *error = json_object_get(item, "error");
    const char *kind = json_string_value(json_object_get(error, "kind"));
    const char *message = json_string_value(json_object_get(error, "message"));

    if (!error)
        show(t, template, json_string_value(json_object_get(item, "expected")), err->text);
    else if (strcmp(kind, got_kind) != 0)
        show(t, template, kind, got_kind);
    else if (strcmp(kind, "raised") == 0 && strcmp(message, err->text) != 0)
        show(t, template, message, err->text);
    else {
        t->passed++;
        t->worded += strstr(err->text, message) != NULL;
    }
}

static void check_text(tally *t, const json_t *item, const mt_rendering *r)
{
    const json_t *expected = json_object_get(item, "expected");
    const char *template = json_string_value(json_object_get(item, "template"));
    const char *text = r->text.data ? r->text.data : "";

    if (!expected)
        show(t, template, "an error", text);
    else if (r->text.len != json_string_length(expected) || memcmp(text, json_string_value(expected), r->text.len) != 0)
        show(t, template, json_string_value(expected), text);
    else
        t->passed++;
}

static void check_case(tally *t, const json_t *item, const json_t *context)
{
    const json_t *template = json_object_get(item, "template");
    const struct tm now = {
        .tm_year = 126, .tm_mday = 2, .tm_hour = 3, .tm_min = 4, .tm_sec = 5, .tm_wday = 5, .tm_yday = 1};
    const mt_template_options options = {.now = &now};
    mt_error err = {0};
    mt_template *tpl = mt_template_compile(json_string_value(template), json_string_length(template), &err);
    mt_rendering r;

    if (!tpl) {
        check_error(t, item, "compile", &err);
        return;
    }
    if (mt_template_render_json(tpl, context, &options, &r, &err))
        check_text(t, item, &r);
    else
        check_error(t, item, r.raised ? "raised" : "runtime", &err);
    mt_rendering_free(&r);
    mt_template_free(tpl);
}

static void check_file(tally *t, const char *name)
{
    char path[512];
    json_error_t why;
    json_t *file, *item;
    size_t i;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = json_load_file(path, JSON_ALLOW_NUL, &why);
    if (!file)
        fail_msg("%s: %s", path, why.text);
    json_array_foreach(json_object_get(file, "cases"), i, item)
        check_case(t, item, json_object_get(file, "context"));
    json_decref(file);
}

static void all_cases_are_as_recorded(void **state)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    tally t = {0};

    (void)state;
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (strstr(entry->d_name, ".json"))
            check_file(&t, entry->d_name);
    closedir(dir);
    printf("%zu cases as recorded, %zu otherwise, %zu failures in the same words\n", t.passed, t.failed, t.worded);
    assert_int_equal(t.failed, 0);
    assert_true(t.passed > 1000);
    assert_true(t.worded >= WORDED);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_cases_are_as_recorded),
};
UNIT_MAIN(tests)
