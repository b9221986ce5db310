/* When readers are told what, and when all of it again: with a publisher of the test's own, which does not send. */
#include "unit.h"

#include "base/alloc.h"
#include "cache/seq.h"
#include "events/kv_events.h"
#include "events/publisher.h"

enum { PAGES = 8 };

static struct {
    mt_publisher_stats stats;
    bool full;                  /* messages are dropped */
    size_t cleared, told, gone; /* events of the message that came last */
} fake;

/* How often a text stands in a message. */
static size_t times(const char *text, const char *data, size_t size)
{
    const size_t len = strlen(text);
    size_t count = 0;
    for (size_t i = 0; i + len <= size; i++)
        count += memcmp(data + i, text, len) == 0;
    return count;
}

bool mt_publisher_send(mt_publisher *p, const char *topic, const void *data, size_t size)
{
    (void)p;
    assert_string_equal(topic, "kv");
    fake.cleared = times("AllBlocksCleared", data, size);
    fake.told = times("BlockStored", data, size);
    fake.gone = times("BlockRemoved", data, size);
    fake.stats.numbered++;
    fake.stats.dropped += fake.full;
    return !fake.full;
}

mt_publisher_stats mt_publisher_look(mt_publisher *p)
{
    (void)p;
    return fake.stats;
}

typedef struct scene {
    mt_tree *tree;
    mt_kv_events *events;
} scene;

static void open_scene(scene *x)
{
    static const uint8_t seed[32] = {7};
    const mt_cache_groups groups = {.count = 1};
    memset(&fake, 0, sizeof(fake));
    x->tree = mt_tree_new(&groups, (const size_t[]){PAGES}, 4);
    x->events = mt_kv_events_new(NULL, "kv", MT_KV_EVENTS_MAP);
    mt_tree_tell(x->tree, seed, mt_kv_events_tell, x->events);
}

static void close_scene(scene *x)
{
    mt_tree_free(x->tree);
    mt_kv_events_free(x->events);
}

/* Computes pages that nobody has computed. */
static void compute(scene *x, uint32_t first, size_t pages)
{
    uint32_t token[PAGES * MT_PAGE_TOKENS];
    mt_page_copy copy;
    mt_hit hit;
    mt_seq s;
    for (uint32_t i = 0; i < pages * MT_PAGE_TOKENS; i++)
        token[i] = first + i;
    mt_seq_init(&s, 1, PAGES * MT_PAGE_TOKENS);
    mt_seq_prompt(&s, token, pages * MT_PAGE_TOKENS, NULL, 0);
    mt_seq_attach(&s, x->tree, (const uint8_t[32]){0});
    mt_seq_resume(&s, &copy, &hit);
    assert_true(mt_seq_grow(&s, pages * MT_PAGE_TOKENS));
    mt_seq_commit(&s, pages * MT_PAGE_TOKENS);
    mt_seq_free(&s);
}

/* Flushes; the message that this sends has so many events of each kind. No number: nothing is sent. */
static void expect_sent(scene *x, size_t messages, size_t cleared, size_t told)
{
    const uint64_t before = fake.stats.numbered;
    mt_kv_events_flush(x->events, x->tree);
    assert_int_equal(fake.stats.numbered - before, messages);
    if (messages == 0)
        return;
    assert_int_equal(fake.cleared, cleared);
    assert_int_equal(fake.told, told);
    assert_int_equal(fake.gone, 0);
}

static void only_what_is_new_is_sent(void **state)
{
    scene x;
    (void)state;
    open_scene(&x);
    expect_sent(&x, 0, 0, 0);
    compute(&x, 0, 2);
    expect_sent(&x, 1, 0, 2);
    compute(&x, 1000, 3);
    expect_sent(&x, 1, 0, 3);
    expect_sent(&x, 0, 0, 0);
    close_scene(&x);
}

/* A lost message is made good as soon as none waits, and not before: a queue that is still full would lose it again. */
static void what_was_lost_is_told_once_none_waits(void **state)
{
    scene x;
    (void)state;
    open_scene(&x);
    compute(&x, 0, 2);
    fake.full = true;
    fake.stats.waiting = 100;
    expect_sent(&x, 1, 0, 2);
    fake.full = false; /* there is room for a little, but messages wait */
    expect_sent(&x, 0, 0, 0);
    compute(&x, 1000, 1);
    expect_sent(&x, 0, 0, 0);
    fake.stats.waiting = 1;
    expect_sent(&x, 0, 0, 0);
    fake.stats.waiting = 0;
    expect_sent(&x, 1, 1, 3);
    expect_sent(&x, 0, 0, 0);
    close_scene(&x);
}

/* Readers who were told to forget everything miss nothing, whatever was lost before. */
static void nothing_is_lost_after_all_is_cleared(void **state)
{
    scene x;
    (void)state;
    open_scene(&x);
    compute(&x, 0, 2);
    fake.full = true;
    expect_sent(&x, 1, 0, 2);
    fake.full = false;
    mt_kv_events_clear(x.events);
    assert_true(fake.stats.numbered == 2 && fake.cleared == 1 && fake.told == 0);
    expect_sent(&x, 0, 0, 0);
    compute(&x, 1000, 1);
    expect_sent(&x, 1, 0, 1);
    close_scene(&x);
}

/* Unless that message is lost, too. */
static void a_clearing_that_is_lost_is_told_again(void **state)
{
    scene x;
    (void)state;
    open_scene(&x);
    fake.full = true;
    mt_kv_events_clear(x.events);
    fake.full = false;
    compute(&x, 0, 2);
    expect_sent(&x, 1, 1, 2);
    close_scene(&x);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_what_is_new_is_sent),
    cmocka_unit_test(what_was_lost_is_told_once_none_waits),
    cmocka_unit_test(nothing_is_lost_after_all_is_cleared),
    cmocka_unit_test(a_clearing_that_is_lost_is_told_again),
};

UNIT_MAIN(tests)
