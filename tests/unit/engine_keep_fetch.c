/* How much of a prompt comes back from a disk: the furthest state or page that is there and worth it, whatever of them
   turns out to be broken. */
#include "engine_driver.h"
#include "folder.h"

#include <fcntl.h>

#include "base/clock.h"
#include "engine/keep_inside.h"
#include "tier/limits.h"
#include "tier/segment.h"

#define PAGED FIXTURES "/qwen3-mlx-4bit-g32"
#define HYBRID FIXTURES "/qwen35-mlx-4bit"

enum { LONGEST = 1200, CUTS = 6 };

/* A prompt: `common` tokens of the story, then others. Turns begin at the cuts, up to the first 0. */
typedef struct piece {
    size_t common, len;
    uint32_t cuts[CUTS];
} piece;

/* What was computed before the restart; what is spoilt in the files; what is asked then, and comes back. */
typedef struct tale {
    const char *what, *dir;
    piece before[2], after;
    size_t near;                 /* of `after`, so many tokens are asked for first after the restart, and computed */
    uint32_t broken[CUTS], hole; /* positions of states; number of a page, 0: none */
    size_t cached;
} tale;

static const tale *now;
static uint8_t spoilt[CUTS + 1][MT_TIER_KEY];
static size_t spoilt_count;
static mt_request *request;

/* On the engine's thread: what is to be spoilt, as keys. */
static void note_keys(void *ctx, bool begins)
{
    driver *d = ctx;
    driver_turn(d, begins);
    if (!begins || spoilt_count > 0 || request->prompt_len < now->before[1].len) /* the last one's text has them all */
        return;
    mt_sequence *s = &request->sequences[0];
    for (size_t i = 0; i < CUTS && now->broken[i]; i++)
        mt_keep_state_key(d->engine->keep, s, now->broken[i], spoilt[spoilt_count++]);
    if (now->hole) {
        mt_keep_seal(d->engine->keep, s, now->hole + 1);
        memcpy(spoilt[spoilt_count++], s->kept.digest[now->hole], MT_TIER_KEY);
    }
}

/* Changes a byte of each record whose key was noted. */
static void spoil(void)
{
    char path[128];
    mt_segment segment;
    mt_record r;
    mt_error err = {0};
    size_t found = 0;
    const int at = open(folder, O_RDONLY | O_DIRECTORY);
    snprintf(path, sizeof(path), "%s/%016x.motet", folder, 0);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && mt_segment_open(&segment, at, path + strlen(folder) + 1, &err));
    for (uint64_t from = 0; mt_segment_next(&segment, &from, &r);)
        for (size_t i = 0; i < spoilt_count; i++)
            if (memcmp(r.key, spoilt[i], MT_TIER_KEY) == 0) {
                uint8_t byte;
                assert_int_equal(pread(fd, &byte, 1, (off_t)r.at + MT_RECORD_HEADER), 1);
                byte ^= 1;
                assert_int_equal(pwrite(fd, &byte, 1, (off_t)r.at + MT_RECORD_HEADER), 1);
                found++;
            }
    assert_int_equal(found, spoilt_count);
    mt_segment_close(&segment);
    close(fd);
    close(at);
}

static void wipe(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -f '%s'/*", folder);
    assert_int_equal(system(command), 0);
}

static mt_disk *open_tale(driver *d, const char *dir)
{
    mt_error err = {0};
    mt_disk *disk =
        mt_disk_open(&(mt_disk_params){.folder = folder, .bytes = MT_LIMIT_DISK_LEAST, .entries = 10000}, &err);
    assert_non_null(disk);
    mt_disk_scan(disk, NULL);
    driver_open(d, dir, MT_PRECISION_FAST, 1);
    d->params.context = 2048;
    d->params.sequences = 2;
    d->params.disk = disk;
    d->params.keep_all = true;
    return disk;
}

static void close_tale(driver *d, mt_disk *disk)
{
    driver_close(d);
    mt_disk_close(disk);
}

static void ask(driver *d, const piece *p, size_t len, answer *a)
{
    uint32_t prompt[LONGEST];
    draw random = {7}, own = {8};
    draw_tokens(&own, prompt, len, d->o.spec.vocab);
    draw_tokens(&random, prompt, p->common < len ? p->common : len, d->o.spec.vocab);
    request = driver_request(d, prompt, len, 1, a);
    request->cuts = p->cuts;
    while (request->cut_count < CUTS && p->cuts[request->cut_count])
        request->cut_count++;
    driver_send(d, request);
    driver_wait(d, 0);
}

static void check(const tale *t)
{
    static answer a;
    driver d;
    wipe();
    now = t;
    spoilt_count = 0;
    mt_disk *disk = open_tale(&d, t->dir);
    d.params.turn = note_keys;
    driver_start(&d);
    for (size_t i = 0; i < 2 && t->before[i].len; i++)
        ask(&d, &t->before[i], t->before[i].len, &a);
    close_tale(&d, disk);
    if (spoilt_count)
        spoil();
    disk = open_tale(&d, t->dir);
    driver_start(&d);
    if (t->near)
        ask(&d, &t->after, t->near, &a);
    ask(&d, &t->after, t->after.len, &a);
    close_tale(&d, disk);
    if (a.cached != t->cached)
        fail_msg("%s: %zu positions came back, not %zu", t->what, a.cached, t->cached);
}

/* Whole pages, as far as there are any without a gap, if they save 64 positions or more; the last position is computed
   in any case. */
static void pages_come_back_where_they_are_worth_it(void **state)
{
    static const tale tales[] = {
        {"all but the last position", PAGED, {{300, 300, {0}}}, {300, 300, {0}}, .cached = 288},
        {"a page less, as it ends with the last position", PAGED, {{300, 300, {0}}}, {300, 288, {0}}, .cached = 256},
        {"two pages are enough", PAGED, {{300, 300, {0}}}, {64, 120, {0}}, .cached = 64},
        {"one is not", PAGED, {{300, 300, {0}}}, {63, 120, {0}}, .cached = 0},
        {"two pages behind one that is here", PAGED, {{300, 300, {0}}}, {96, 150, {0}}, .near = 32, .cached = 96},
        {"one page behind one that is here", PAGED, {{300, 300, {0}}}, {95, 150, {0}}, .near = 32, .cached = 32},
        {"up to a page that is broken", PAGED, {{300, 300, {0}}}, {300, 300, {0}}, .hole = 4, .cached = 128},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(tales); i++)
        check(&tales[i]);
}

/* The last state up to which all pages are there, among ends of pages, beginnings of turns and the prompt's end, if it
   saves 64 positions or more. Where it does not come, the next one; after four that did not, all is computed. */
static void the_last_state_comes_back(void **state)
{
    static const tale tales[] = {
        {"all but the last position", HYBRID, {{300, 300, {0}}}, {300, 300, {0}}, .cached = 299},
        {"no state", HYBRID, {{300, 300, {0}}}, {200, 300, {0}}, .cached = 0},
        {"a turn", HYBRID, {{300, 300, {100}}}, {200, 300, {100}}, .cached = 100},
        {"a turn in the middle of others", HYBRID, {{300, 300, {100}}}, {130, 300, {40, 100, 150, 160}}, .cached = 100},
        {"the later turn", HYBRID, {{300, 300, {100, 150}}}, {200, 300, {100, 150}}, .cached = 150},
        {"the end of a page", HYBRID, {{1100, 1100, {0}}}, {600, 700, {0}}, .cached = 512},
        {"64 positions are enough", HYBRID, {{300, 300, {64}}}, {200, 300, {64}}, .cached = 64},
        {"63 are not", HYBRID, {{300, 300, {63}}}, {200, 300, {63}}, .cached = 0},
        {"63 behind what is here are not", HYBRID, {{300, 300, {133}}}, {200, 300, {133}}, .near = 70, .cached = 70},
        {"64 behind what is here", HYBRID, {{300, 300, {134}}}, {200, 300, {134}}, .near = 70, .cached = 134},
        {"not a turn before the end", HYBRID, {{300, 300, {100}}}, {300, 300, {100}}, .cached = 299},
        {"a state whose last page is missing",
         HYBRID,
         {{300, 300, {70, 128}}},
         {300, 300, {70, 128}},
         .hole = 3,
         .cached = 70},
        {"a state whose pages have a hole", HYBRID, {{300, 300, {100}}}, {300, 300, {100}}, .hole = 4, .cached = 100},
        {"the page that a state ends in is in its record",
         HYBRID,
         {{300, 300, {100}}},
         {300, 300, {100}},
         .hole = 3,
         .cached = 100},
        {"and the prompt ends behind it",
         HYBRID,
         {{300, 300, {70, 128}}},
         {129, 129, {70, 128}},
         .hole = 3,
         .cached = 70},
        {"three broken states",
         HYBRID,
         {{900, 900, {70, 600, 700}}, {1100, 1100, {0}}},
         {1100, 1150, {70, 600, 700, 899, 1099}},
         .broken = {1099, 899, 700},
         .cached = 600},
        {"four broken states",
         HYBRID,
         {{900, 900, {70, 600, 700}}, {1100, 1100, {0}}},
         {1100, 1150, {70, 600, 700, 899, 1099}},
         .broken = {1099, 899, 700, 600},
         .cached = 0},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(tales); i++)
        check(&tales[i]);
}

/* ---- what it takes ---- */

/* A transfer that has brought 1000 bytes in two parts within so many milliseconds. */
static mt_keep_transfer brought(uint64_t ms, bool ok)
{
    return (mt_keep_transfer){
        .ok = ok, .tier = MT_TIER_DISK, .took = ms * 1000000, .part = {{NULL, 600}, {NULL, 400}}, .parts = 2};
}

/* The first transfer says what a byte takes, each further one changes that by an eighth of the difference. */
static void what_a_byte_takes_is_learned(void **state)
{
    mt_keep *k = mt_alloc(sizeof(*k));
    const mt_keep_transfer first = brought(1000, true), lost = brought(5000, false), second = brought(9000, true);
    (void)state;
    assert_true(mt_keep_time(k, MT_TIER_DISK, 500) == 0);
    mt_keep_learn(k, &lost); /* which says nothing */
    assert_true(mt_keep_time(k, MT_TIER_DISK, 500) == 0);
    mt_keep_learn(k, &first);
    assert_float_equal(mt_keep_time(k, MT_TIER_DISK, 500), 0.5, 1e-9);
    mt_keep_learn(k, &second);
    assert_float_equal(mt_keep_time(k, MT_TIER_DISK, 500), 1, 1e-9);
    assert_true(mt_keep_time(k, MT_TIER_HOST, 500) == 0 && mt_keep_time(k, MT_TIER_COUNT, 500) == 0);
    mt_free(k);
}

/* A tier that was slow once is doubted a little less each time that it is passed over, and tried again in the end. */
static void a_slow_tier_is_tried_again(void **state)
{
    mt_engine *e = mt_alloc(sizeof(*e));
    mt_keep *k = mt_alloc(sizeof(*k));
    unsigned times = 0;
    (void)state;
    k->engine = e;
    k->pace[MT_TIER_HOST] = 1;
    k->pace[MT_TIER_DISK] = 2;
    assert_false(mt_keep_is_quicker(k, 1, 1));
    assert_float_equal(k->pace[MT_TIER_HOST], 0.97, 1e-9);
    assert_float_equal(k->pace[MT_TIER_DISK], 1.94, 1e-9);
    assert_true(mt_keep_is_quicker(k, 0.99, 1));
    assert_float_equal(k->pace[MT_TIER_DISK], 1.94, 1e-9); /* as it was */
    while (!mt_keep_is_quicker(k, mt_keep_time(k, MT_TIER_DISK, 1), 1))
        assert_true(++times < 100);
    assert_int_equal(times, 22); /* 1.94 * 0.97^22 is below 1 */
    e->params.keep_all = true;
    assert_true(mt_keep_is_quicker(k, 2, 1));
    mt_free(k);
    mt_free(e);
}

/* What comes back of 300 positions where a row takes a millisecond and all that is to be read `times` as long as to
   compute it; the clock stands, so that nothing is learned. */
static size_t back_within(const char *dir, double times)
{
    static const piece p = {300, 300, {0}};
    static answer a;
    driver d;
    wipe();
    mt_disk *disk = open_tale(&d, dir);
    driver_start(&d);
    ask(&d, &p, p.len, &a);
    close_tale(&d, disk);
    disk = open_tale(&d, dir);
    d.params.keep_all = false;
    mt_clock_set(UINT64_C(1000000000000));
    driver_start(&d);
    mt_keep *k = d.engine->keep;
    for (size_t i = 0; i < MT_COST_TERMS; i++)
        d.engine->past.cost.term[i] = i == 1 || i == 2 ? 1e-3 : 0;
    k->pace[MT_TIER_DISK] = times * 0.288 / (double)(9 * k->all_bytes + k->state_bytes);
    ask(&d, &p, p.len, &a);
    close_tale(&d, disk);
    mt_clock_set(0);
    return a.cached;
}

static void what_takes_longer_is_computed(void **state)
{
    (void)state;
    assert_int_equal(back_within(PAGED, 0.99), 288);
    assert_int_equal(back_within(PAGED, 1.01), 0);
    assert_int_equal(back_within(HYBRID, 0.99), 299);
    assert_int_equal(back_within(HYBRID, 1.01), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
static const struct CMUnitTest tests[] = {
    TEST(pages_come_back_where_they_are_worth_it), TEST(the_last_state_comes_back),
    TEST(what_takes_longer_is_computed),           cmocka_unit_test(what_a_byte_takes_is_learned),
    cmocka_unit_test(a_slow_tier_is_tried_again),
};
UNIT_MAIN(tests)
