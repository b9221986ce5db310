/* Short names of popular models, and families that motet does not run. */
#include "unit.h"

#include <string.h>

#include "hub/known.h"
#include "models/family.h"
#include "weights/elsewhere.h"

static void each_short_name_stands_for_one_repository(void **state)
{
    (void)state;
    assert_true(mt_hub_short_count > 50);
    for (size_t i = 0; i < mt_hub_short_count; i++) {
        const mt_hub_short *s = &mt_hub_shorts[i];
        mt_hub_name name;

        assert_true(mt_hub_name_read(&name, s->repository) && name.owned && !*name.revision && !*name.tag);
        assert_true(mt_hub_name_read(&name, s->name) && !name.owned && !*name.revision);
        assert_string_equal(mt_hub_known(s->name), s->repository);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(mt_hub_shorts[k].name, s->name);
    }
}

static void letters_and_the_latest_make_no_difference(void **state)
{
    mt_hub_name name;

    (void)state;
    assert_string_equal(mt_hub_known("Qwen3:4B"), "Qwen/Qwen3-4B");
    assert_string_equal(mt_hub_known("qwen3:latest"), "Qwen/Qwen3-8B");
    assert_null(mt_hub_known("qwen3:4"));
    assert_null(mt_hub_known("qwen"));
    assert_null(mt_hub_known(""));
    assert_null(mt_hub_known("Qwen/Qwen3-4B"));
    assert_true(mt_hub_name_read_known(&name, "qwen3:4b"));
    assert_string_equal(name.id, "Qwen/Qwen3-4B");
    assert_true(mt_hub_name_read_known(&name, "o/m@r:Q8_0"));
    assert_string_equal(name.id, "o/m");
}

static const struct {
    const char *types, *whose, *instead;
} rows[] = {
#define ELSEWHERE(types, whose, instead) {types, whose, instead},
#include "weights/elsewhere.def"
};

#define NAME(family) #family
static const char *const families[] = {MT_FAMILIES(NAME)};

/* The name that follows in a list, in out; where the next one begins. */
static const char *next_type(const char *types, char out[64])
{
    const size_t len = strcspn(types, ",");

    assert_true(len > 0 && len < 64);
    memcpy(out, types, len);
    out[len] = '\0';
    return types[len] ? types + len + 2 : NULL;
}

static void families_of_others_are_told_with_what_to_take(void **state)
{
    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        char type[64];

        for (const char *at = rows[i].types; at;) {
            mt_error err = {0};

            at = next_type(at, type);
            for (size_t k = 0; k < MT_COUNT(families); k++)
                assert_string_not_equal(type, families[k]);
            assert_false(mt_fail_elsewhere("model type", type, "", &err));
            assert_int_equal(err.code, MT_E_UNSUPPORTED);
            assert_non_null(strstr(err.text, rows[i].whose));
            assert_non_null(strstr(err.text, rows[i].instead));
        }
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_short_name_stands_for_one_repository),
    cmocka_unit_test(letters_and_the_latest_make_no_difference),
    cmocka_unit_test(families_of_others_are_told_with_what_to_take),
};

UNIT_MAIN(tests)
