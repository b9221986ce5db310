/* Models that clients have created: their names, files and limits. */
#include "folder.h"

#include "base/alloc.h"
#include "server/fleet/created.h"
#include "server/limits.h"

static mt_created opened(const char *cache)
{
    mt_created all = {.count = 0};

    mt_created_open(&all, cache);
    return all;
}

static bool keep(mt_created *all, const char *name, const char *system, mt_error *err)
{
    json_t *model = json_pack("{s:s, s:s, s:s}", "name", name, "from", "base", "system", system);
    const bool ok = mt_created_put(all, model, err);

    json_decref(model);
    return ok;
}

/* The system message of a model; "": there is none of that name. */
static const char *system_of(mt_created *all, const char *name)
{
    static char text[64];
    json_t *model = mt_created_get(all, name);

    snprintf(text, sizeof(text), "%s", model ? json_string_value(json_object_get(model, "system")) : "");
    json_decref(model);
    return text;
}

static void names(void **state)
{
    static const char *const good[] = {"a", "mario", "llama3.2:1b", "owner/name", "A-b_c.d:e/f"};
    static const char *const bad[] = {"",     ".",   "..", "a/../b", "/a",   "a/",
                                      "a//b", "a b", "-a", "a:",     "a\nb", "\xc3\xa9"};
    char name[MT_LIMIT_CREATED_NAME + 2] = "";

    (void)state;
    for (size_t i = 0; i < MT_COUNT(good); i++)
        assert_true(mt_created_name_ok(good[i]));
    for (size_t i = 0; i < MT_COUNT(bad); i++)
        assert_false(mt_created_name_ok(bad[i]));
    memset(name, 'a', MT_LIMIT_CREATED_NAME);
    assert_true(mt_created_name_ok(name));
    name[MT_LIMIT_CREATED_NAME] = 'a';
    assert_false(mt_created_name_ok(name));
}

static void they_stay(void **state)
{
    mt_created all = opened(folder);
    mt_error err;
    size_t count;

    (void)state;
    assert_true(keep(&all, "mario", "You are Mario.", &err));
    assert_true(keep(&all, "luigi:8b", "You are Luigi.", &err));
    assert_true(keep(&all, "mario", "You are another.", &err)); /* in place of the first */
    mt_created_close(&all);

    all = opened(folder);
    assert_string_equal(system_of(&all, "mario"), "You are another.");
    assert_string_equal(system_of(&all, "mario:latest"), "You are another.");
    assert_string_equal(system_of(&all, "luigi:8b"), "You are Luigi.");
    assert_string_equal(system_of(&all, "luigi"), "");
    mt_created_name *list = mt_created_list(&all, &count);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].name, "luigi:8b");
    assert_string_equal(list[1].from, "base");
    mt_free(list);
    assert_true(mt_created_remove(&all, "mario:latest", &err));
    assert_false(mt_created_remove(&all, "mario", &err));
    assert_int_equal(err.code, MT_OK);
    mt_created_close(&all);

    all = opened(folder);
    assert_string_equal(system_of(&all, "mario"), "");
    assert_int_equal(all.count, 1);
    mt_created_close(&all);
}

/* A file that is broken, of another kind or half written does no harm, and stays where it is. */
static void broken_files(void **state)
{
    static const char *const texts[] = {
        "", "{", "[]", "{\"name\":\"x\"}", "{\"name\":\"../x\",\"from\":\"base\"}", "{\"name\":3,\"from\":\"base\"}"};
    mt_created all = opened(folder);
    char path[64];
    mt_error err;

    (void)state;
    assert_true(keep(&all, "good", "yes", &err));
    mt_created_close(&all);
    for (size_t i = 0; i < MT_COUNT(texts); i++) {
        snprintf(path, sizeof(path), "motet-created/%zu.json", i);
        put(path, texts[i]);
    }
    put("motet-created/00.new", "{");
    all = opened(folder);
    assert_int_equal(all.count, 1);
    assert_string_equal(system_of(&all, "good"), "yes");
    mt_created_close(&all);
}

static void limits(void **state)
{
    char name[32], *long_text = mt_alloc(MT_LIMIT_CREATED_BYTES + 1);
    mt_created all = opened(folder);
    mt_error err;

    (void)state;
    memset(long_text, 'x', MT_LIMIT_CREATED_BYTES);
    assert_false(keep(&all, "long", long_text, &err));
    assert_non_null(strstr(err.text, "bytes"));
    long_text[MT_LIMIT_CREATED_BYTES - 100] = '\0';
    assert_true(keep(&all, "long", long_text, &err));
    for (size_t i = 1; i < MT_LIMIT_CREATED; i++) {
        snprintf(name, sizeof(name), "model%zu", i);
        assert_true(keep(&all, name, "", &err));
    }
    assert_false(keep(&all, "one-more", "", &err));
    assert_non_null(strstr(err.text, "delete one"));
    assert_true(keep(&all, "long", "short", &err)); /* in place of another */
    mt_created_close(&all);
    mt_free(long_text);
}

static void no_folder(void **state)
{
    mt_created all = opened(NULL);
    mt_error err;

    (void)state;
    assert_false(keep(&all, "mario", "", &err));
    assert_int_equal(err.code, MT_E_UNSUPPORTED);
    assert_string_equal(system_of(&all, "mario"), "");
    mt_created_close(&all);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(names),
    cmocka_unit_test_setup_teardown(they_stay, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(broken_files, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(limits, make_folder, remove_folder),
    cmocka_unit_test(no_folder),
};
UNIT_MAIN(tests)
