/* Compiled constraints are found again, and all of them are within their bytes. */
#include "unit.h"

#include <pthread.h>

#include "../constraint/follow.h"

#include "constraint/limits.h"
#include "engine/limits.h"
#include "server/limits.h"
#include "server/prepare/constraints.h"

typedef struct fixture {
    mt_tokenizer *tokenizer;
    mt_constraints *constraints;
    const uint8_t *owner;
} fixture;

static const uint32_t ends[] = {CONSTRAINT_END};

static fixture begin(size_t limit)
{
    mt_error err = {0};
    fixture f = {.tokenizer = constraint_tokenizer(NULL, 0)};

    f.constraints = mt_constraints_new(f.tokenizer, mt_tokenizer_size(f.tokenizer), ends, 1, limit, &err);
    assert_non_null(f.constraints);
    return f;
}

static void end(fixture *f)
{
    mt_constraints_free(f->constraints);
    mt_tokenizer_free(f->tokenizer);
}

/* The constraint of a choice between one word and nothing else. */
static mt_constraint *get_patiently(fixture *f, const char *word, const mt_patience *patience, mt_error *err)
{
    json_t *words = json_pack("[s]", word);
    const mt_shape shape = {.source = {.kind = MT_SOURCE_CHOICE, .value = words},
                            .formats = {.tools = "none", .reasoning = "none"}};
    mt_constraint *c = mt_constraints_get(f->constraints, f->owner, &shape, patience, err);

    json_decref(words);
    return c;
}

static mt_constraint *get(fixture *f, const char *word, mt_error *err)
{
    return get_patiently(f, word, NULL, err);
}

static mt_constraints_stats look(const fixture *f)
{
    mt_constraints_stats stats;

    mt_constraints_stats_read(f->constraints, &stats);
    return stats;
}

/* The vocabulary and one constraint. */
static size_t bytes_of_one(void)
{
    fixture f = begin(MT_LIMIT_CONSTRAINT_BYTES);
    mt_error err = {0};
    mt_constraint *c = get(&f, "a", &err);
    const size_t bytes = look(&f).bytes;

    assert_non_null(c);
    mt_constraint_release(c);
    end(&f);
    return bytes;
}

static void what_was_compiled_is_found_again(void **state)
{
    fixture f = begin(MT_LIMIT_CONSTRAINT_BYTES);
    mt_error err = {0};
    mt_constraint *a = get(&f, "a", &err), *again = get(&f, "a", &err), *b = get(&f, "b", &err);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_ptr_equal(a, again);
    assert_ptr_not_equal(a, b);
    assert_true(constraint_fits(b, "b", 1) && !constraint_fits(b, "a", 1));
    assert_int_equal(look(&f).asked, 3);
    assert_int_equal(look(&f).compiled, 2);
    assert_int_equal(look(&f).kept, 2);
    mt_constraint_release(a);
    mt_constraint_release(again);
    mt_constraint_release(b);
    assert_int_equal(look(&f).kept, 2);
    end(&f);
}

static void what_one_compiled_is_not_known_to_another(void **state)
{
    static const uint8_t one[32] = {1}, two[32] = {2};
    const uint8_t *const owners[] = {NULL, one, two};
    fixture f = begin(MT_LIMIT_CONSTRAINT_BYTES);
    mt_error err = {0};

    (void)state;
    for (size_t i = 0; i < 2 * MT_COUNT(owners); i++) {
        f.owner = owners[i % MT_COUNT(owners)];
        mt_constraint_release(get(&f, "a", &err));
        assert_int_equal(look(&f).compiled, i < MT_COUNT(owners) ? i + 1 : MT_COUNT(owners));
    }
    end(&f);
}

static void all_bytes_are_counted(void **state)
{
    fixture f = begin(MT_LIMIT_CONSTRAINT_BYTES);
    mt_error err = {0};
    mt_constraint *a = get(&f, "a", &err);
    const size_t vocabulary = mt_vocabulary_memory(mt_constraint_vocabulary(a));
    json_t *ahead = json_string("(?=a)");
    const mt_shape impossible = {.source = {.kind = MT_SOURCE_REGEX, .value = ahead},
                                 .formats = {.tools = "none", .reasoning = "none"}};

    (void)state;
    assert_int_equal(look(&f).bytes, vocabulary + mt_constraint_bytes(a));
    assert_null(mt_constraints_get(f.constraints, NULL, &impossible, NULL, &err));
    assert_int_equal(look(&f).bytes, vocabulary + mt_constraint_bytes(a));
    assert_int_equal(look(&f).refused, 1);
    json_decref(ahead);
    mt_constraint_release(a);
    end(&f);
}

static void those_that_nobody_uses_make_room(void **state)
{
    enum { COUNT = 2 * MT_LIMIT_CONSTRAINTS };
    const size_t limit = 5 * bytes_of_one();
    fixture f = begin(limit);
    mt_error err = {0};

    (void)state;
    for (int i = 0; i < (unit_quick() ? 20 : COUNT); i++) {
        char word[16];
        mt_constraint *c;

        snprintf(word, sizeof(word), "%d", i);
        c = get(&f, word, &err);
        assert_non_null(c);
        assert_true(look(&f).bytes <= limit);
        mt_constraint_release(c);
    }
    assert_true(look(&f).kept > 1);
    assert_int_equal(look(&f).busy, 0);
    end(&f);
}

static void those_in_use_do_not(void **state)
{
    fixture f = begin(bytes_of_one() / 2);
    mt_error err = {0};
    mt_constraint *a = get(&f, "a", &err), *b;

    (void)state;
    assert_non_null(a); /* one alone always has room */
    assert_null(get(&f, "b", &err));
    assert_int_equal(err.code, MT_E_BUSY);
    assert_string_equal(
        err.text, "the constraints of other requests take all the memory that there is for them; try again later");
    assert_int_equal(look(&f).busy, 1);
    assert_true(constraint_fits(a, "a", 1));
    mt_constraint_release(a);
    b = get(&f, "b", &err);
    assert_non_null(b);
    assert_int_equal(look(&f).kept, 1);
    mt_constraint_release(b);
    end(&f);
}

static void *ask_often(void *arg)
{
    fixture *f = arg;

    for (int i = 0; i < 40; i++) {
        const char word[] = {(char)('a' + i * 7 % 10), '\0'};
        mt_error err = {0};
        mt_constraint *c = get(f, word, &err);

        if (c)
            mt_constraint_release(c);
        else if (err.code != MT_E_BUSY)
            return "refused";
    }
    return NULL;
}

static void threads_share_the_room(void **state)
{
    const size_t limit = 3 * bytes_of_one();
    fixture f = begin(limit);
    pthread_t threads[4];

    (void)state;
    for (size_t i = 0; i < MT_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &f), 0);
    for (size_t i = 0; i < MT_COUNT(threads); i++) {
        void *wrong;

        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(look(&f).asked, 160);
    assert_true(look(&f).bytes <= limit);
    end(&f); /* which finds that nobody has taken room and kept it */
}

/* What takes more bytes than one may is refused, and what nobody waits for is not compiled; neither keeps its room. */
static void what_is_too_large_or_too_late_takes_no_room(void **state)
{
    fixture f = begin(MT_LIMIT_CONSTRAINT_BYTES);
    const atomic_bool left = true;
    const mt_patience gone = {.stop = &left}, late = {.until = 1};
    json_t *many = json_array(), *word = json_pack("[s]", "a");
    const mt_shape large = {.source = {.kind = MT_SOURCE_CHOICE, .value = many},
                            .formats = {.tools = "none", .reasoning = "none"}},
                   small = {.source = {.kind = MT_SOURCE_CHOICE, .value = word},
                            .formats = {.tools = "none", .reasoning = "none"}};
    mt_constraint *a;
    mt_error err = {0};
    uint64_t seed = 3;

    (void)state;
    for (int i = 0; i < 150000; i++) {
        char text[160];

        snprintf(text, sizeof(text), "%08llx%0120llx", (unsigned long long)constraint_random(&seed),
                 (unsigned long long)constraint_random(&seed));
        json_array_append_new(many, json_string(text));
    }
    assert_null(mt_constraints_get(f.constraints, NULL, &large, NULL, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_non_null(strstr(err.text, "make it smaller, for 32 MiB at most"));
    assert_null(mt_constraints_get(f.constraints, NULL, &small, &gone, &err));
    assert_null(mt_constraints_get(f.constraints, NULL, &small, &late, &err));
    a = mt_constraints_get(f.constraints, NULL, &small, NULL, &err);
    assert_non_null(a);
    assert_int_equal(look(&f).bytes, mt_vocabulary_memory(mt_constraint_vocabulary(a)) + mt_constraint_bytes(a));
    assert_int_equal(look(&f).refused, 1); /* the others are asked for again, or by nobody */
    mt_constraint_release(a);
    json_decref(many);
    json_decref(word);
    end(&f);
}

/* A schema that takes minutes: each of many values is held against many patterns. */
static json_t *endless(void)
{
    json_t *values = json_array(), *any = json_array();
    uint64_t seed = 5;
    char text[32];

    for (int i = 0; i < 100000; i++) {
        snprintf(text, sizeof(text), "%016llx", (unsigned long long)constraint_random(&seed));
        json_array_append_new(values, json_string(text));
    }
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "x%d", i);
        json_array_append_new(any, json_pack("{s:s}", "pattern", text));
    }
    return json_pack("{s:o, s:o}", "enum", values, "anyOf", any);
}

/* What takes too much processor time is refused, however long the caller would wait; a small one is not. */
static void compiling_has_its_processor_time(void **state)
{
    fixture f = begin(MT_LIMIT_CONSTRAINT_BYTES);
    json_t *schema = endless();
    const mt_shape shape = {.source = {.kind = MT_SOURCE_SCHEMA, .value = schema},
                            .formats = {.tools = "none", .reasoning = "none"}};
    const mt_patience patience = {.work_until = mt_clock_thread_ns() + UINT64_C(100000000)},
                      limit = {.work_until = mt_clock_thread_ns() + MT_LIMIT_CONSTRAINT_MS * UINT64_C(1000000)};
    mt_error err = {0};
    mt_constraint *a;

    (void)state;
    a = get_patiently(&f, "a", &limit, &err);
    assert_non_null(a);
    assert_null(mt_constraints_get(f.constraints, NULL, &shape, &patience, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_string_equal(err.text, "the constraint takes more than 2 seconds of processor time to compile; make it "
                                  "smaller, or tell the alternatives of each \"oneOf\" apart by a required property "
                                  "with a constant");
    assert_null(get_patiently(&f, "b", &patience, &err));
    assert_int_equal(look(&f).asked, 3); /* it is not asked for again, in another lane */
    assert_int_equal(look(&f).refused, 2);
    assert_int_equal(look(&f).bytes, mt_vocabulary_memory(mt_constraint_vocabulary(a)) + mt_constraint_bytes(a));
    mt_constraint_release(a);
    json_decref(schema);
    end(&f);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_was_compiled_is_found_again),
    cmocka_unit_test(all_bytes_are_counted),
    cmocka_unit_test(what_one_compiled_is_not_known_to_another),
    cmocka_unit_test(those_that_nobody_uses_make_room),
    cmocka_unit_test(those_in_use_do_not),
    cmocka_unit_test(threads_share_the_room),
    cmocka_unit_test(what_is_too_large_or_too_late_takes_no_room),
    cmocka_unit_test(compiling_has_its_processor_time),
};

UNIT_MAIN(tests)
