/* What was computed is there after a restart: the same bits come from a disk as from the model, for every kind of
   model, and whatever the disk does, nobody gets anything else. */
#include "engine_driver.h"
#include "folder.h"
#include "head.h"

#include <fcntl.h>

#include "engine/keep_inside.h"
#include "tier/limits.h"

#define TOKENS 6

/* An engine on a folder, which knows what is in it. */
static mt_disk *open_kept_with(driver *d, const char *dir, uint8_t identity, mt_numerics numerics)
{
    const mt_device_params device = {.name = unit_device(),
                                     .host = {.threads = 2, .cpu_mask = ~0u},
                                     .kv_bits = driver_kv_bits(),
                                     .numerics = numerics};
    mt_error err = {0};
    const mt_disk_params params = {.folder = folder, .bytes = MT_LIMIT_DISK_LEAST, .entries = 10000};
    mt_disk *disk = mt_disk_open(&params, &err);
    if (!disk)
        fail_msg("%s", err.text);
    mt_disk_scan(disk, NULL);
    driver_init(d);
    if (!mt_opened_open(&d->o, dir, &device, &(mt_open_wish){0}, &err))
        fail_msg("%s: %s", dir, err.text);
    d->params.context = 2048;
    d->params.sequences = 4;
    d->params.disk = disk;
    d->params.identity[0] = identity;
    d->params.keep_all = true;
    driver_start(d);
    return disk;
}

static mt_disk *open_kept(driver *d, const char *dir, uint8_t identity)
{
    return open_kept_with(d, dir, identity, driver_numerics());
}

static void close_kept(driver *d, mt_disk *disk)
{
    driver_close(d);
    mt_disk_close(disk);
}

static void wipe(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -f '%s'/*", folder);
    assert_int_equal(system(command), 0);
}

/* Positions that come back of a prompt: whole pages, or up to a state that was kept. */
static void check_restart(const char *dir)
{
    enum { LEN = 700 };
    static answer cold, warm;
    uint32_t prompt[LEN + TOKENS];
    draw random = {31};
    driver d;
    wipe();
    mt_disk *disk = open_kept(&d, dir, 1);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    driver_ask(&d, prompt, LEN, TOKENS, &cold);
    close_kept(&d, disk);
    disk = open_kept(&d, dir, 1);
    driver_ask(&d, prompt, LEN, TOKENS, &warm);
    expect_same(dir, &cold, &warm);
    const bool state = d.o.spec.state.layers > 0;
    if (warm.cached < (state ? LEN - 1u : (LEN - 1u) / MT_PAGE_TOKENS * MT_PAGE_TOKENS))
        fail_msg("%s: %zu tokens came back", dir, warm.cached);
    for (size_t i = 0; i < TOKENS; i++) /* the next turn */
        prompt[LEN + i] = cold.chosen[i].id;
    driver_ask(&d, prompt, LEN + TOKENS, TOKENS, &warm);
    close_kept(&d, disk);
    wipe();
    disk = open_kept(&d, dir, 1);
    driver_ask(&d, prompt, LEN + TOKENS, TOKENS, &cold);
    expect_same(dir, &cold, &warm);
    assert_int_equal(cold.cached, 0);
    close_kept(&d, disk);
}

static void the_same_bits_after_a_restart(void **state)
{
    (void)state;
    for_each_kind(check_restart);
}

/* What depends on other weights, another salt or a device with another fingerprint (R12) is not found. */
static void what_differs_shares_nothing(void **state)
{
    enum { LEN = 200 };
    static answer a, b;
    uint32_t prompt[LEN];
    draw random = {32};
    driver d;
    (void)state;
    mt_disk *disk = open_kept(&d, FIXTURES "/qwen3-mlx-4bit-g32", 1);
    draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
    driver_ask(&d, prompt, LEN, TOKENS, &a);
    close_kept(&d, disk);
    disk = open_kept(&d, FIXTURES "/qwen3-mlx-4bit-g32", 2);
    driver_ask(&d, prompt, LEN, TOKENS, &b);
    assert_int_equal(b.cached, 0);
    close_kept(&d, disk);
    const bool native = driver_numerics() == MT_NUMERICS_NATIVE; /* then the other, with pages as large */
    disk = open_kept_with(&d, FIXTURES "/qwen3-mlx-4bit-g32", 1, native ? MT_NUMERICS_PORTABLE : MT_NUMERICS_NATIVE);
    driver_ask(&d, prompt, LEN, TOKENS, &b);
    assert_int_equal(b.cached, 0);
    close_kept(&d, disk);
    disk = open_kept(&d, FIXTURES "/qwen3-mlx-4bit-g32", 1);
    mt_request *r = driver_request(&d, prompt, LEN, TOKENS, &b);
    r->salt[5] = 1;
    driver_send(&d, r);
    driver_wait(&d, 0);
    assert_int_equal(b.cached, 0);
    prompt[130] ^= 1;
    driver_ask(&d, prompt, LEN, TOKENS, &b);
    assert_int_equal(b.cached, 128);
    close_kept(&d, disk);
}

/* Pages and states that a tier has are not read from the device for it again. */
static void check_stored_once(const char *dir)
{
    enum { LEN = 200 };
    static answer a;
    uint32_t prompt[LEN];
    draw random = {38};
    mt_stats stats;
    driver d;
    wipe();
    for (int again = 0; again < 2; again++) {
        mt_disk *disk = open_kept(&d, dir, 1);
        if (!again)
            draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
        driver_ask(&d, prompt, LEN, TOKENS, &a);
        driver_stats(&d, &stats);
        if (again)
            assert_int_equal(stats.keep.stored_pages + stats.keep.stored_states, 0);
        close_kept(&d, disk); /* what waits is stored */
    }
}

static void what_is_there_is_not_stored_again(void **state)
{
    (void)state;
    check_stored_once(FIXTURES "/qwen3-mlx-4bit-g32");
    check_stored_once(FIXTURES "/qwen35-mlx-4bit");
}

/* The end of an answer is stored, too: the last page becomes whole, and the state is kept, with its last token. */
static void check_next_turn(const char *dir)
{
    enum { DONE = 7 * MT_PAGE_TOKENS, LEN = DONE + 1 - TOKENS, NEWS = 8 }; /* the last token is not computed */
    static answer cold, warm;
    uint32_t talk[LEN + TOKENS + NEWS];
    draw random = {39};
    driver d;
    wipe();
    mt_disk *disk = open_kept(&d, dir, 1);
    draw_tokens(&random, talk, MT_COUNT(talk), d.o.spec.vocab);
    driver_ask(&d, talk, LEN, TOKENS, &cold);
    for (size_t i = 0; i < TOKENS; i++)
        talk[LEN + i] = cold.chosen[i].id;
    close_kept(&d, disk);
    disk = open_kept(&d, dir, 1);
    driver_ask(&d, talk, MT_COUNT(talk), TOKENS, &warm);
    assert_int_equal(warm.cached, DONE);
    close_kept(&d, disk);
}

static void an_answer_comes_back_to_its_end(void **state)
{
    (void)state;
    check_next_turn(FIXTURES "/qwen3-mlx-4bit-g32");
    check_next_turn(FIXTURES "/qwen35-mlx-4bit");
}

/* Pages that are stored of a prompt whose answer is one token, which is not computed. */
static uint64_t pages_stored(size_t len, bool guesses)
{
    static answer a;
    uint32_t prompt[100];
    draw random = {40};
    mt_stats stats;
    driver d;
    driver_open(&d, folder, MT_PRECISION_FAST, 1);
    assert_true(d.o.spec.mtp);
    d.params.context = 512;
    d.params.speculate = guesses ? MT_SPECULATE_MTP : MT_SPECULATE_OFF;
    d.params.host_cache = 64u << 20;
    driver_start(&d);
    draw_tokens(&random, prompt, MT_COUNT(prompt), d.o.spec.vocab);
    driver_ask(&d, prompt, len, 1, &a);
    do { /* its state is stored behind its pages */
        driver_ask(&d, prompt + len, 3, 1, &a);
        driver_stats(&d, &stats);
    } while (stats.keep.stored_states == 0);
    driver_close(&d);
    return stats.keep.stored_pages;
}

/* A head that guesses writes its part of a position one step later than the model: the page that a prompt ends with is
   not whole before. */
static void a_page_is_stored_when_the_head_has_written_it(void **state)
{
    (void)state;
    put_head("qwen35-mlx-4bit");
    assert_int_equal(pages_stored(2 * MT_PAGE_TOKENS, false), 2);
    assert_int_equal(pages_stored(2 * MT_PAGE_TOKENS - 1, false), 1);
    assert_int_equal(pages_stored(2 * MT_PAGE_TOKENS, true), 1);
    assert_int_equal(pages_stored(2 * MT_PAGE_TOKENS + 1, true), 2);
}

/* A few bytes of the first file are not what they were. */
static void damage(draw *random, int bytes)
{
    char path[128];
    struct stat info;
    snprintf(path, sizeof(path), "%s/%016x.motet", folder, 0);
    const int fd = open(path, O_RDWR);
    assert_int_equal(fstat(fd, &info), 0);
    for (int i = 0; i < bytes; i++) {
        const off_t at = (off_t)draw_below(random, (uint32_t)info.st_size);
        uint8_t byte;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= 0x20;
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

static void check_damage(const char *dir)
{
    enum { LEN = 1300 }; /* with several states */
    const int times = unit_quick() ? 2 : 8;
    static answer cold, warm;
    uint32_t prompt[LEN];
    draw random = {33};
    driver d;
    size_t cached = 0, broken = 0;
    for (int round = 0; round < times; round++) {
        wipe();
        mt_disk *disk = open_kept(&d, dir, 1);
        if (round == 0)
            draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
        driver_ask(&d, prompt, LEN, TOKENS, &cold);
        close_kept(&d, disk);
        damage(&random, 1 + round % 4);
        disk = open_kept(&d, dir, 1);
        driver_ask(&d, prompt, LEN, TOKENS, &warm);
        expect_same(dir, &cold, &warm);
        cached += warm.cached;
        broken += mt_disk_look(disk).broken;
        close_kept(&d, disk);
    }
    assert_true(cached > 0 && broken > 0);
}

static void damage_is_never_an_answer(void **state)
{
    (void)state;
    check_damage(FIXTURES "/gemma3-mlx-4bit");
    check_damage(FIXTURES "/qwen35-mlx-4bit");
}

/* Several at once, of one beginning and of others, while some are cancelled, with a cache that holds two of them. */
static void a_crowd_after_a_restart(void **state)
{
    enum { LEN = 400, MANY = 12 };
    static answer cold[MANY], warm[MANY];
    static uint32_t prompt[MANY][LEN];
    static const char *const dirs[] = {FIXTURES "/qwen3-mlx-4bit-g32", FIXTURES "/qwen35-mlx-4bit",
                                       FIXTURES "/gemma3-mlx-4bit"};
    draw random = {34};
    driver d;
    (void)state;
    for (size_t k = 0; k < MT_COUNT(dirs); k++) {
        wipe();
        for (int round = 0; round < 3; round++) {
            answer *to = round ? warm : cold;
            mt_disk *disk = open_kept(&d, dirs[k], 1);
            if (round == 0)
                for (size_t i = 0; i < MANY; i++) {
                    draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
                    if (i % 3)
                        memcpy(prompt[i], prompt[0], LEN / 2 * sizeof(**prompt));
                }
            for (size_t i = 0; i < MANY; i++) {
                mt_request *r = driver_request(&d, prompt[i], LEN, TOKENS, &to[i]);
                driver_send(&d, r);
            }
            driver_wait(&d, 0);
            for (size_t i = 0; round && i < MANY; i++)
                expect_same(dirs[k], &cold[i], &warm[i]);
            close_kept(&d, disk);
        }
    }
}

/* Ends requests while what they wait for is on its way. */
typedef struct canceller {
    driver *d;
    mt_request *request[3];
    size_t next;
} canceller;

static void cancel_next(void *ctx, bool begins)
{
    canceller *c = ctx;
    if (begins && c->next < MT_COUNT(c->request))
        atomic_store(&c->request[c->next++]->cancelled, true);
    driver_turn(c->d, begins);
}

static void who_goes_is_waited_for_by_nobody(void **state)
{
    enum { LEN = 600 };
    static answer cold, warm, gone[3], beside;
    static uint32_t prompt[LEN];
    static const char *const dirs[] = {FIXTURES "/qwen3-mlx-4bit-g32", FIXTURES "/qwen35-mlx-4bit"};
    draw random = {36};
    driver d;
    (void)state;
    for (size_t k = 0; k < MT_COUNT(dirs); k++) {
        canceller c = {.d = &d};
        wipe();
        mt_disk *disk = open_kept(&d, dirs[k], 1);
        draw_tokens(&random, prompt, LEN, d.o.spec.vocab);
        driver_ask(&d, prompt, LEN, TOKENS, &cold);
        close_kept(&d, disk);
        disk = open_kept(&d, dirs[k], 1);
        mt_request *longer = driver_request(&d, prompt + 300, 20, 40, &beside);
        for (size_t i = 0; i < 3; i++)
            c.request[i] = driver_request(&d, prompt, LEN, 50, &gone[i]);
        driver_close(&d);
        driver_open(&d, dirs[k], MT_PRECISION_FAST, 2);
        d.params.context = 2048;
        d.params.sequences = 4;
        d.params.disk = disk;
        d.params.identity[0] = 1;
        d.params.keep_all = true;
        d.params.turn = cancel_next;
        d.params.turn_ctx = &c;
        driver_start(&d);
        for (size_t i = 0; i < 3; i++)
            driver_send(&d, c.request[i]);
        driver_send(&d, longer);
        driver_wait(&d, 0);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(gone[i].finish, MT_FINISH_CANCELLED);
        driver_ask(&d, prompt, LEN, TOKENS, &warm);
        expect_same(dirs[k], &cold, &warm);
        close_kept(&d, disk);
    }
}

/* Whether something came back. What the thread that stores has no time for is computed again, which is no fault. */
static bool came_back(driver *d)
{
    mt_stats stats;
    driver_stats(d, &stats);
    return stats.keep.restored_pages > 0 && stats.host_store.read > 0;
}

/* Memory beside the device's: what went from there for lack of room comes back, the same bits; no disk is needed. */
static void check_host_memory(const char *dir)
{
    enum { LEN = 330, MANY = 6, ROUNDS = 3, MOST = 500 };
    static answer cold[MANY], warm;
    static uint32_t prompt[MANY][LEN];
    draw random = {35};
    mt_stats stats;
    driver d;
    for (int host_store = 0; host_store < 2; host_store++) {
        driver_open(&d, dir, MT_PRECISION_FAST, 2);
        d.params.context = 512;
        d.params.sequences = 2;
        d.params.cache = 1024;
        d.params.keep_all = true;
        d.params.host_cache = host_store ? 64u << 20 : 0;
        driver_start(&d);
        for (size_t i = 0; i < MANY && !host_store; i++)
            draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
        for (size_t i = 0; i < MANY && !host_store; i++)
            driver_ask(&d, prompt[i], LEN, TOKENS, &cold[i]);
        for (size_t i = 0; host_store && i < MANY * MOST && (i < MANY * ROUNDS || !came_back(&d)); i++) {
            driver_ask(&d, prompt[i % MANY], LEN, TOKENS, &warm);
            expect_same(dir, &cold[i % MANY], &warm);
        }
        driver_stats(&d, &stats);
        assert_true(stats.evictions > 0);
        assert_true(host_store ? stats.keep.restored_pages > 0 && stats.host_store.read > 0
                               : stats.keep.stored_pages == 0);
        driver_close(&d);
    }
}

static void memory_below_the_devices(void **state)
{
    (void)state;
    check_host_memory(FIXTURES "/qwen3-mlx-4bit-g32");
    check_host_memory(FIXTURES "/qwen35-mlx-4bit");
    check_host_memory(FIXTURES "/gemma3-mlx-4bit");
}

/* A tier that stores nothing any more: pages and states wait for it, but no running sequence loses its seat to them. */
static void check_slow_tier(const char *dir)
{
    enum { LEN = 200, MANY = 24, TOGETHER = 4 };
    static answer answers[MANY], alone;
    static uint32_t prompt[MANY][LEN];
    draw random = {37};
    mt_stats stats;
    driver d;
    driver_open(&d, dir, MT_PRECISION_FAST, 2);
    d.params.context = 512;
    d.params.sequences = TOGETHER;
    d.params.keep_all = true;
    d.params.cache = TOGETHER * (LEN + ANSWER_TOKENS + MT_PAGE_TOKENS);
    d.params.state_cache = 1; /* as few as there can be: two */
    d.params.host_cache = 64u << 20;
    driver_start(&d);
    mt_keep *k = d.engine->keep;
    for (size_t i = 0; i < MT_KEEP_STORES; i++)
        mt_keep_transfer_set(k, &k->transfer[i], MT_KEEP_TRANSFER_UNDER_WAY);
    for (size_t i = 0; i < MANY; i++) {
        draw_tokens(&random, prompt[i], LEN, d.o.spec.vocab);
        driver_send(&d, driver_request(&d, prompt[i], LEN, ANSWER_TOKENS, &answers[i]));
    }
    driver_wait(&d, 0);
    driver_stats(&d, &stats);
    assert_int_equal(stats.preemptions, 0);
    assert_true(stats.keep.skipped > 0);
    size_t states = 0;
    for (size_t i = 0; i < k->backlog_count; i++)
        states += k->backlog[(k->backlog_first + i) % k->backlog_most].held.slot != MT_NO_PAGE;
    assert_true(states <= 1);
    for (size_t i = 0; i < MT_KEEP_STORES; i++)
        mt_keep_transfer_set(k, &k->transfer[i], MT_KEEP_TRANSFER_FREE);
    driver_ask(&d, prompt[MANY - 1], LEN, ANSWER_TOKENS, &alone);
    expect_same(dir, &answers[MANY - 1], &alone);
    driver_close(&d);
}

static void a_slow_tier_takes_nobodys_seat(void **state)
{
    (void)state;
    check_slow_tier(FIXTURES "/qwen3-mlx-4bit-g32");
    check_slow_tier(FIXTURES "/qwen35-mlx-4bit");
}

/* ---- what comes back is taken in the order in which it was asked for ---- */

/* Where every lock is watched, fewer do: both sides wait by taking it. */
static unsigned rounds(void)
{
    return unit_quick() ? 50 : 500;
}

/* Ends transfers as the thread for them does: one after the other, in order. */
static void *end_in_order(void *arg)
{
    mt_keep *k = arg;
    for (unsigned round = 0; round < rounds(); round++)
        for (size_t i = 0; i < MT_KEEP_FETCHES;) {
            mt_keep_transfer *x = &k->transfer[MT_KEEP_STORES + i];
            pthread_mutex_lock(&k->lock);
            if (x->state == MT_KEEP_TRANSFER_GIVEN) {
                x->state = MT_KEEP_TRANSFER_DONE;
                i++;
            }
            pthread_mutex_unlock(&k->lock);
        }
    return NULL;
}

static void two_that_end_together_are_taken_in_order(void **state)
{
    mt_keep *k = mt_alloc(sizeof(*k));
    mt_keep_transfer *x;
    pthread_t thread;
    (void)state;
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->given, NULL);
    assert_int_equal(pthread_create(&thread, NULL, end_in_order, k), 0);
    for (unsigned round = 0; round < rounds(); round++) {
        const uint64_t first = k->order;
        for (size_t i = 0; i < MT_KEEP_FETCHES; i++)
            mt_keep_transfer_give(k, &k->transfer[MT_KEEP_STORES + i]);
        for (uint64_t i = 0; i < MT_KEEP_FETCHES; i++) {
            while (!(x = mt_keep_transfer_first(k, MT_KEEP_TRANSFER_DONE))) {}
            assert_int_equal(x->order, first + i);
            pthread_mutex_lock(&k->lock);
            x->state = MT_KEEP_TRANSFER_FREE;
            pthread_mutex_unlock(&k->lock);
        }
    }
    pthread_join(thread, NULL);
    pthread_cond_destroy(&k->given);
    pthread_mutex_destroy(&k->lock);
    mt_free(k);
}

/* A page of the remote store comes later than those behind it that a disk has: they wait for it. */
static void a_page_waits_for_those_before_it(void **state)
{
    mt_keep *k = mt_alloc(sizeof(*k));
    mt_keep_transfer *page = &k->transfer[MT_KEEP_STORES], *first;
    mt_sequence one = {0}, other = {0};
    (void)state;
    pthread_mutex_init(&k->lock, NULL);
    for (size_t i = 0; i < 4; i++)
        page[i] = (mt_keep_transfer){.kind = MT_KEEP_PAGE,
                                     .s = i < 3 ? &one : &other,
                                     .at = 7 + i % 3,
                                     .order = i,
                                     .state = i == 0 ? MT_KEEP_TRANSFER_UNDER_WAY : MT_KEEP_TRANSFER_DONE};
    assert_ptr_equal(mt_keep_transfer_first(k, MT_KEEP_TRANSFER_DONE), &page[3]); /* another sequence's does not wait */
    page[3].state = MT_KEEP_TRANSFER_FREE;
    assert_null(mt_keep_transfer_first(k, MT_KEEP_TRANSFER_DONE));
    page[0].state = MT_KEEP_TRANSFER_DONE;
    for (size_t i = 0; i < 3; i++) {
        first = mt_keep_transfer_first(k, MT_KEEP_TRANSFER_DONE);
        assert_ptr_equal(first, &page[i]);
        first->state = MT_KEEP_TRANSFER_SENDING;
    }
    pthread_mutex_destroy(&k->lock);
    mt_free(k);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
static const struct CMUnitTest tests[] = {TEST(the_same_bits_after_a_restart),
                                          TEST(what_differs_shares_nothing),
                                          TEST(what_is_there_is_not_stored_again),
                                          TEST(an_answer_comes_back_to_its_end),
                                          TEST(a_page_is_stored_when_the_head_has_written_it),
                                          TEST(damage_is_never_an_answer),
                                          TEST(a_crowd_after_a_restart),
                                          TEST(who_goes_is_waited_for_by_nobody),
                                          TEST(two_that_end_together_are_taken_in_order),
                                          cmocka_unit_test(a_page_waits_for_those_before_it),
                                          cmocka_unit_test(a_slow_tier_takes_nobodys_seat),
                                          cmocka_unit_test(memory_below_the_devices)};
UNIT_MAIN(tests)
