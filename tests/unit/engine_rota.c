/* Turns: one at a time, to who had the least; and engines of two models that share threads answer as each does
   alone. */
#include "engine_driver.h"

#include "base/clock.h"

#define FIRST FIXTURES "/qwen3-mlx-4bit-g32"
#define SECOND FIXTURES "/llama-mlx-4bit"

enum { PLAYERS = 3, TURNS = 40, COMPANY = 4, PROMPT = 40, TOKENS = 16 };

typedef struct player {
    mt_rota *rota;
    pthread_t thread;
    unsigned length_us;
    size_t turns;
} player;

static int playing; /* no atomic: a turn has to protect it */
static atomic_bool over;

/* Plays until somebody has had all his turns. */
static void *play(void *ctx)
{
    player *p = ctx;
    mt_rota_place place = {0};
    while (!atomic_load(&over)) {
        mt_rota_begin(p->rota, &place);
        assert_int_equal(playing++, 0);
        const uint64_t until = mt_clock_ns() + p->length_us * 1000u;
        while (mt_clock_ns() < until)
            ;
        playing--;
        if (++p->turns == TURNS)
            atomic_store(&over, true);
        mt_rota_end(p->rota, &place);
    }
    return NULL;
}

/* Who takes four times as long has a fourth of the turns, or so: a busy machine makes turns longer than they are. */
static void turns_are_shared_by_time(void **state)
{
    mt_rota *rota = mt_rota_new();
    player players[PLAYERS] = {{.length_us = 1000}, {.length_us = 1000}, {.length_us = 4000}};
    (void)state;
    for (size_t i = 0; i < PLAYERS; i++) {
        players[i].rota = rota;
        assert_int_equal(pthread_create(&players[i].thread, NULL, play, &players[i]), 0);
    }
    for (size_t i = 0; i < PLAYERS; i++)
        pthread_join(players[i].thread, NULL);
    assert_true(players[2].turns > 0 && players[2].turns < TURNS);
    assert_int_equal(mt_rota_wanting(rota), 0);
    mt_rota_free(rota);
}

#define SECOND_NS UINT64_C(1000000000)

/* One that comes back has no more than the others had since: it does not keep them waiting for all that it missed. */
static void nobody_saves_up_turns(void **state)
{
    mt_rota *rota = mt_rota_new();
    mt_rota_place worker = {0}, sleeper = {0};
    (void)state;
    for (uint64_t i = 1; i <= 10; i++) {
        mt_clock_set(i * SECOND_NS);
        mt_rota_begin(rota, &worker);
        mt_clock_set((i + 1) * SECOND_NS);
        assert_int_equal(mt_rota_wanting(rota), 1);
        mt_rota_end(rota, &worker);
    }
    assert_true(worker.had > 9.99 && worker.had < 10.01);
    mt_rota_begin(rota, &sleeper);
    mt_rota_end(rota, &sleeper);
    assert_true(sleeper.had > 8.99 && sleeper.had < 9.01); /* as the worker when it was let in last */
    mt_rota_begin(rota, &worker);
    mt_rota_end(rota, &worker); /* and the worker pays nothing for the time it had alone */
    mt_rota_begin(rota, &sleeper);
    mt_rota_end(rota, &sleeper);
    assert_true(sleeper.had > 9.99 && sleeper.had < 10.01);
    mt_clock_set(0);
    mt_rota_free(rota);
}

/* ---- engines ---- */

typedef struct band {
    driver d;
    answer alone[COMPANY], among[COMPANY];
    uint32_t prompts[COMPANY][PROMPT];
} band;

static void open_shared(band *b, const char *dir, mt_host *host, mt_rota *rota, mt_voices *voices, size_t number)
{
    const mt_device_params device = {.shared = host, .kv_bits = driver_kv_bits()};
    mt_error err = {0};
    draw dice = {number + 1};
    driver_init(&b->d);
    if (!mt_opened_open(&b->d.o, dir, &device, &(mt_open_wish){0}, &err))
        fail_msg("%s: %s", dir, err.text);
    b->d.params.cache = 4096;
    b->d.params.rota = rota;
    b->d.params.voices = voices;
    b->d.params.model = number;
    driver_start(&b->d);
    for (size_t i = 0; i < COMPANY; i++)
        draw_tokens(&dice, b->prompts[i], PROMPT, (uint32_t)b->d.o.spec.vocab);
}

static void two_engines_answer_as_each_alone(void **state)
{
    static const char *const dirs[] = {FIRST, SECOND};
    mt_error err = {0};
    mt_host *host = mt_host_open(&(mt_host_params){.threads = 2, .cpu_mask = ~0u}, &err);
    mt_rota *rota = mt_rota_new();
    mt_voices *voices = mt_voices_new(0, 64);
    band *bands = mt_alloc_array(2, sizeof(*bands));
    mt_voice *ended = mt_alloc_array(64, sizeof(*ended));
    mt_note *notes = mt_alloc_array(4096, sizeof(*notes));
    mt_voices_page page = {.ended = ended, .ended_count = 64, .notes = notes, .notes_count = 4096};
    mt_voices_mark mark = {0};
    size_t of[2] = {0};
    (void)state;
    assert_non_null(host);
    for (size_t i = 0; i < 2; i++) {
        driver alone;
        open_shared(&bands[i], dirs[i], host, rota, voices, i);
        driver_open(&alone, dirs[i], MT_PRECISION_FAST, 2);
        alone.params.cache = 4096;
        driver_start(&alone);
        for (size_t a = 0; a < COMPANY; a++)
            driver_ask(&alone, bands[i].prompts[a], PROMPT, TOKENS, &bands[i].alone[a]);
        driver_close(&alone);
    }
    for (size_t a = 0; a < COMPANY; a++)
        for (size_t i = 0; i < 2; i++)
            driver_send(&bands[i].d,
                        driver_request(&bands[i].d, bands[i].prompts[a], PROMPT, TOKENS, &bands[i].among[a]));
    for (size_t i = 0; i < 2; i++) {
        driver_wait(&bands[i].d, 0);
        for (size_t a = 0; a < COMPANY; a++)
            expect_same(dirs[i], &bands[i].alone[a], &bands[i].among[a]);
        driver_close(&bands[i].d);
    }
    assert_true(mt_voices_read(voices, &mark, &page)); /* all of them are recorded in one place */
    assert_int_equal(page.ended_count, 2 * COMPANY);
    for (size_t i = 0; i < page.ended_count; i++)
        of[ended[i].model]++;
    assert_int_equal(of[0], COMPANY);
    mt_free(notes);
    mt_free(ended);
    mt_free(bands);
    mt_voices_free(voices);
    mt_rota_free(rota);
    mt_host_close(host);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(turns_are_shared_by_time),
    cmocka_unit_test(nobody_saves_up_turns),
    cmocka_unit_test(two_engines_answer_as_each_alone),
};

UNIT_MAIN(tests)
