#include "unit.h"

#include <pthread.h>

#include "server/limits.h"
#include "server/prepare/own_templates.h"

static const mt_chat_templates *get(mt_own_templates *own, mt_arena *arena, const char *text)
{
    mt_error err = {0};
    const mt_chat_templates *set = mt_own_templates_get(own, arena, text, strlen(text), NULL, &err);

    if (!set)
        fail_msg("%s", err.text);
    return set;
}

static void a_text_is_compiled_once(void **state)
{
    mt_own_templates *own = mt_own_templates_new(NULL);
    mt_arena *one = mt_arena_new(0), *other = mt_arena_new(0);
    const mt_chat_templates *set = get(own, one, "{{ messages }}");

    (void)state;
    assert_ptr_equal(get(own, one, "{{ messages }}"), set);
    assert_ptr_equal(get(own, other, "{{ messages }}"), set);
    assert_ptr_not_equal(get(own, other, "{{ messages }} "), set);
    mt_arena_free(one);
    assert_ptr_equal(get(own, other, "{{ messages }}"), set);
    mt_own_templates_free(own);
    assert_non_null(mt_chat_templates_pick(set, false)->tpl); /* the arena holds it */
    mt_arena_free(other);
}

static void a_few_are_kept_and_those_in_use_stay(void **state)
{
    mt_own_templates *own = mt_own_templates_new(NULL);
    mt_arena *arena = mt_arena_new(0), *brief;
    const mt_chat_templates *first = get(own, arena, "first");
    char text[32];

    (void)state;
    for (int i = 0; i < 3 * MT_LIMIT_OWN_TEMPLATES; i++) {
        brief = mt_arena_new(0);
        snprintf(text, sizeof(text), "{{ %d }}", i);
        get(own, brief, text);
        mt_arena_free(brief);
    }
    assert_non_null(mt_chat_templates_pick(first, true)->tpl);
    assert_ptr_not_equal(get(own, arena, "first"), first); /* it was forgotten, and so is made anew */
    mt_arena_free(arena);
    mt_own_templates_free(own);
}

static void what_is_no_template_is_said(void **state)
{
    mt_own_templates *own = mt_own_templates_new(NULL);
    mt_arena *arena = mt_arena_new(0);
    char *large = malloc(MT_LIMIT_OWN_TEMPLATE_BYTES + 1);
    atomic_bool stop = true;
    mt_error err = {0};

    (void)state;
    assert_null(mt_own_templates_get(own, arena, "{{", 2, NULL, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    memset(large, 'x', MT_LIMIT_OWN_TEMPLATE_BYTES + 1);
    assert_null(mt_own_templates_get(own, arena, large, MT_LIMIT_OWN_TEMPLATE_BYTES + 1, NULL, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    assert_non_null(mt_own_templates_get(own, arena, large, MT_LIMIT_OWN_TEMPLATE_BYTES, NULL, &err));
    assert_null(mt_own_templates_get(own, arena, "new", 3, &stop, &err)); /* not kept half probed */
    free(large);
    mt_arena_free(arena);
    mt_own_templates_free(own);
}

static void *ask_often(void *own)
{
    char text[32];

    for (int i = 0; i < 60; i++) {
        mt_arena *arena = mt_arena_new(0);

        snprintf(text, sizeof(text), "{{ messages }}%d", i % (2 * MT_LIMIT_OWN_TEMPLATES));
        assert_non_null(mt_chat_templates_pick(get(own, arena, text), false)->tpl);
        mt_arena_free(arena);
    }
    return NULL;
}

static void threads_share_them(void **state)
{
    mt_own_templates *own = mt_own_templates_new(NULL);
    pthread_t threads[3];

    (void)state;
    for (size_t i = 0; i < MT_COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ask_often, own), 0);
    for (size_t i = 0; i < MT_COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    mt_own_templates_free(own);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_text_is_compiled_once),
    cmocka_unit_test(a_few_are_kept_and_those_in_use_stay),
    cmocka_unit_test(what_is_no_template_is_said),
    cmocka_unit_test(threads_share_them),
};
UNIT_MAIN(tests)
