/* Never the wrong picture: requests that show the model something, with a stand-in for the encoder whose features are a
   function of all bytes of a picture and of nothing else. Any text model takes them. */
#include "engine_encoders.h"
#include "folder.h"

#include <math.h>
#include <unistd.h>

#include "engine/inside.h"
#include "tier/limits.h"

#define SIDE 6               /* patches */
#define TOKENS (SIDE * SIDE) /* one a patch */
#define PATCH 12             /* bytes */
#define BEFORE 40            /* tokens of text before the picture, and behind it */
#define BEHIND 21
#define LENGTH (BEFORE + TOKENS + BEHIND)
#define NEW_TOKENS 5
#define PLACEHOLDER 5
#define PICTURES 20
#define WIDTH_MOST 1024 /* floats of a row of features */

/* ---- the stand-in ---- */

typedef struct stand_in {
    mt_cursor cursor;
    mt_tower tower;
    const mt_picture *picture[64];
    mt_device *dev;
    mt_tensor *features;
    const uint32_t *to[64];
    size_t count; /* the passes are pictures */
    size_t most;  /* patches of a job */
    atomic_size_t jobs, pictures, runs;
    atomic_bool hold; /* nothing gets done while it is set */
} stand_in;

static uint64_t content(const mt_picture *p)
{
    uint64_t hash = 1469598103934665603u;
    for (size_t i = 0; i < mt_picture_patches(p) * p->patch_bytes; i++)
        hash = (hash ^ p->patches[i]) * 1099511628211u;
    return hash;
}

static bool fits(const mt_cursor *c, const mt_picture *const *pictures, size_t count)
{
    const stand_in *s = (const stand_in *)c;
    size_t patches = 0;
    for (size_t i = 0; i < count; i++)
        patches += mt_picture_patches(pictures[i]);
    return patches <= s->most;
}

static void begin(mt_cursor *c, mt_tensor *features, const mt_picture *const *pictures, const uint32_t *const *to,
                  size_t count)
{
    stand_in *s = (stand_in *)c;
    assert_true(count > 0 && count <= 64 && fits(c, pictures, count));
    memcpy(s->picture, pictures, count * sizeof(*pictures));
    memcpy(s->to, to, count * sizeof(*to));
    s->features = features;
    s->count = count;
    s->jobs++;
    s->pictures += count;
    mt_cursor_begin(c, TOKENS);
}

static double cost(const mt_cursor *c, size_t first, size_t rows)
{
    (void)c, (void)first;
    return 1e6 * (double)rows;
}

static bool next(mt_cursor *c)
{
    return ++c->pass < ((const stand_in *)c)->count;
}

/* A picture whose first byte is 255 breaks the encoder. */
static void slice(mt_cursor *c, size_t rows)
{
    stand_in *s = (stand_in *)c;
    const mt_picture *p = s->picture[c->pass];
    float to[WIDTH_MOST];
    s->runs++;
    if (s->hold) {
        c->row -= rows;
        return;
    }
    for (size_t row = c->row; row < c->row + rows; row++) {
        draw random = {content(p) + row};
        for (size_t i = 0; i < s->tower.width; i++)
            to[i] = ((float)draw_below(&random, 2001) - 1000) * 0.0005f;
        if (p->patches[0] == 255 && row == 3)
            to[s->tower.width - 1] = NAN;
        mt_tensor_write(s->dev, s->features, s->to[c->pass][row], 1, to);
    }
}

static const mt_cursor_kind kind = {.slice = slice, .cost = cost, .next = next};

static void stand_in_init(stand_in *s, size_t width)
{
    assert_true(width <= WIDTH_MOST);
    memset(s, 0, sizeof(*s));
    s->most = 100000;
    s->cursor = (mt_cursor){.kind = &kind, .most = 4, .whole = 1};
    s->tower = (mt_tower){.cursor = &s->cursor, .width = width, .fits = fits, .begin = begin};
}

/* ---- requests ---- */

typedef struct shown {
    driver d;
    stand_in encoder;
    bool block;
} shown;

/* With params that the test may change before driver_start. */
static void shown_open(shown *w, const char *name)
{
    char dir[512];
    snprintf(dir, sizeof(dir), FIXTURES "/%s", name);
    driver_open(&w->d, dir, MT_PRECISION_FAST, 2);
    stand_in_init(&w->encoder, w->d.o.spec.hidden);
    w->encoder.dev = w->d.o.dev;
    w->d.params.tower = &w->encoder.tower;
    w->d.params.sequences = 16;
    w->d.params.rows = 128;
    w->d.params.cache = 8192;
    w->d.params.media_cache = PICTURES * TOKENS * w->encoder.tower.width * sizeof(float);
    w->block = false;
}

static void make_picture(mt_picture *p, mt_arena *arena, unsigned which, uint32_t views)
{
    uint8_t *patches = mt_arena_alloc(arena, (size_t)views * TOKENS * PATCH);
    draw random = {which + 1};
    *p = (mt_picture){.views = views,
                      .height = SIDE,
                      .width = SIDE,
                      .tokens = views * TOKENS,
                      .frames = 1,
                      .patch_bytes = PATCH,
                      .patches = patches};
    for (size_t i = 0; i < (size_t)views * TOKENS * PATCH; i++)
        patches[i] = (uint8_t)draw_below(&random, 255);
    if (which >= 1000)
        patches[0] = 255;
    mt_digest(p->digest, &(mt_digest_part){patches, (size_t)views * TOKENS * PATCH}, 1);
}

/* `seed` decides the text: BEFORE tokens, the picture, BEHIND tokens. */
static mt_request *show(shown *w, unsigned which, uint64_t seed, size_t before, answer *a)
{
    uint32_t prompt[512];
    draw random = {seed};
    const size_t len = before + TOKENS + BEHIND;
    draw_tokens(&random, prompt, before, w->d.o.spec.vocab);
    for (size_t i = 0; i < TOKENS; i++)
        prompt[before + i] = PLACEHOLDER;
    draw_tokens(&random, prompt + before + TOKENS, BEHIND, w->d.o.spec.vocab);
    mt_request *r = driver_request(&w->d, prompt, len, NEW_TOKENS, a);
    mt_picture *p = mt_arena_alloc(r->arena, sizeof(*p));
    mt_media_span *span = mt_arena_alloc(r->arena, sizeof(*span));
    make_picture(p, r->arena, which, 1);
    *span = (mt_media_span){.first = (uint32_t)before,
                            .count = TOKENS,
                            .grid = true,
                            .block = w->block,
                            .height = SIDE,
                            .width = SIDE,
                            .begin = (uint32_t)before,
                            .after = (uint32_t)before + SIDE};
    r->pictures = p;
    r->picture_count = 1;
    r->spans = span;
    r->span_count = 1;
    return r;
}

static void ask(shown *w, unsigned which, uint64_t seed, answer *a)
{
    driver_send(&w->d, show(w, which, seed, BEFORE, a));
    driver_wait(&w->d, 0);
    if (a->finish == MT_FINISH_ERROR)
        fail_msg("%s", a->error.text);
}

/* In an engine that has seen nothing. */
static void ask_alone(const char *name, bool block, unsigned which, answer *a)
{
    shown w;
    shown_open(&w, name);
    w.block = block;
    driver_start(&w.d);
    ask(&w, which, 1, a);
    driver_close(&w.d);
}

static const char *const models[] = {"qwen3-mlx-4bit-g32", "qwen2-window-bf16"};

/* ---- tests ---- */

/* 200 requests in random order over 20 pictures of one size with one text, and text between them. */
static void crowd(const char *name, const answer *alone, size_t positions, size_t features)
{
    enum { REQUESTS = 200 };
    static answer answers[REQUESTS], texts[REQUESTS];
    shown w;
    draw random = {positions + features};
    unsigned which[REQUESTS];
    mt_stats stats;
    char what[160];
    shown_open(&w, name);
    w.d.params.queue = 4 * REQUESTS;
    w.d.params.cache = positions;
    w.d.params.media_cache = features * TOKENS * w.encoder.tower.width * sizeof(float);
    driver_start(&w.d);
    for (size_t i = 0; i < REQUESTS; i++) {
        uint32_t prompt[30];
        which[i] = draw_below(&random, PICTURES);
        driver_send(&w.d, show(&w, which[i], 1, BEFORE, &answers[i]));
        draw_tokens(&random, prompt, 30, w.d.o.spec.vocab);
        if (i % 5 == 0)
            driver_send(&w.d, driver_request(&w.d, prompt, 30, NEW_TOKENS, &texts[i]));
        if (i % 50 == 49)
            driver_wait(&w.d, 20);
    }
    driver_wait(&w.d, 0);
    driver_stats(&w.d, &stats);
    if (features < PICTURES)
        assert_true(stats.media_evictions > 0 && stats.evictions > 0);
    for (size_t i = 0; i < REQUESTS; i++) {
        snprintf(what, sizeof(what), "%s, request %zu of picture %u in a crowd", name, i, which[i]);
        expect_same(what, &alone[which[i]], &answers[i]);
    }
    driver_close(&w.d);
}

static void every_answer_is_that_of_its_picture_alone(void **state)
{
    static answer alone[PICTURES];
    (void)state;
    for (size_t m = 0; m < MT_COUNT(models); m++) {
        for (unsigned i = 0; i < PICTURES; i++)
            ask_alone(models[m], false, i, &alone[i]);
        assert_memory_not_equal(&alone[0].top, &alone[1].top, sizeof(alone[0].top));
        crowd(models[m], alone, 8192, PICTURES);
        crowd(models[m], alone, 700, 2); /* both caches too small for all */
    }
}

static void another_picture_is_missed_at_the_picture(void **state)
{
    shown w;
    answer first, again, other;
    mt_stats stats;
    (void)state;
    shown_open(&w, models[0]);
    driver_start(&w.d);
    ask(&w, 0, 1, &first);
    ask(&w, 0, 1, &again);
    assert_int_equal(again.cached, LENGTH - 1);
    expect_same("the same again", &first, &again);
    assert_int_equal(w.encoder.pictures, 1);
    ask(&w, 1, 1, &other);
    assert_int_equal(other.cached, BEFORE);
    driver_stats(&w.d, &stats);
    assert_int_equal(stats.misses[MT_MISS_MEDIA], 1);
    assert_int_equal(stats.media_misses, 2);
    assert_int_equal(stats.media_hits, 0);
    driver_close(&w.d);
}

/* Elsewhere in another prompt: nothing of it is cached, but the picture is known. */
static void a_picture_is_encoded_once(void **state)
{
    shown w;
    answer first, moved, cold;
    mt_stats stats;
    (void)state;
    shown_open(&w, models[0]);
    driver_start(&w.d);
    ask(&w, 3, 1, &first);
    driver_send(&w.d, show(&w, 3, 2, BEFORE + 13, &moved));
    driver_wait(&w.d, 0);
    assert_int_equal(moved.cached, 0);
    assert_int_equal(w.encoder.pictures, 1);
    driver_stats(&w.d, &stats);
    assert_int_equal(stats.media_hits, 1);
    driver_close(&w.d);
    shown_open(&w, models[0]);
    driver_start(&w.d);
    driver_send(&w.d, show(&w, 3, 2, BEFORE + 13, &cold));
    driver_wait(&w.d, 0);
    expect_same("a picture that was known", &cold, &moved);
    driver_close(&w.d);
}

static void salts_share_no_pictures(void **state)
{
    shown w;
    answer a, b;
    (void)state;
    shown_open(&w, models[0]);
    driver_start(&w.d);
    ask(&w, 3, 1, &a);
    mt_request *r = show(&w, 3, 1, BEFORE, &b);
    r->salt[5] = 1;
    driver_send(&w.d, r);
    driver_wait(&w.d, 0);
    assert_int_equal(b.cached, 0);
    assert_int_equal(w.encoder.pictures, 2);
    expect_same("another salt", &a, &b);
    driver_close(&w.d);
}

/* Whole blocks, and pictures that are cut anywhere. */
static void chunks_change_nothing(void **state)
{
    static const size_t chunks[] = {1, 7, 33, 64};
    (void)state;
    for (size_t m = 0; m < MT_COUNT(models); m++)
        for (size_t block = 0; block < 2; block++) {
            answer alone;
            ask_alone(models[m], block, 4, &alone);
            for (size_t c = 0; c < MT_COUNT(chunks); c++) {
                answer a, again, other;
                shown w;
                char what[160];
                shown_open(&w, models[m]);
                w.block = block;
                w.d.params.chunk = chunks[c];
                driver_start(&w.d);
                ask(&w, 5, 1, &other); /* up to the picture it is the same */
                ask(&w, 4, 1, &a);
                ask(&w, 4, 1, &again);
                snprintf(what, sizeof(what), "%s in chunks of %zu%s", models[m], chunks[c], block ? ", a block" : "");
                expect_same(what, &alone, &a);
                expect_same(what, &alone, &again);
                driver_close(&w.d);
            }
        }
}

/* Where positions of a picture see all of it, the answer is another one. */
static void a_block_sees_ahead(void **state)
{
    answer block, plain;
    (void)state;
    ask_alone(models[0], true, 4, &block);
    ask_alone(models[0], false, 4, &plain);
    assert_memory_not_equal(&block.top, &plain.top, sizeof(block.top));
}

static void an_encoder_that_breaks_ends_one_request(void **state)
{
    static answer good[4], alone[4];
    answer bad, after;
    shown w;
    (void)state;
    for (unsigned i = 0; i < 4; i++)
        ask_alone(models[0], false, i, &alone[i]);
    shown_open(&w, models[0]);
    driver_start(&w.d);
    w.encoder.hold = true; /* until all are there, so that they are encoded together */
    for (unsigned i = 0; i < 4; i++) {
        driver_send(&w.d, show(&w, i, 1, BEFORE, &good[i]));
        if (i == 1)
            driver_send(&w.d, show(&w, 1000, 1, BEFORE, &bad));
    }
    w.encoder.hold = false;
    driver_wait(&w.d, 0);
    assert_int_equal(bad.finish, MT_FINISH_ERROR);
    assert_non_null(strstr(bad.error.text, "not finite"));
    for (unsigned i = 0; i < 4; i++)
        expect_same("beside a broken picture", &alone[i], &good[i]);
    ask(&w, 2, 1, &after);
    expect_same("after a broken picture", &alone[2], &after);
    driver_close(&w.d);
}

static void wait_for_jobs(shown *w, size_t jobs)
{
    while (w->encoder.jobs < jobs)
        usleep(1000);
}

/* Whoever goes while its picture is being encoded holds nobody up, not even one with the same picture. */
static void a_request_may_go_while_its_picture_is_encoded(void **state)
{
    answer gone, same, other, alone;
    shown w;
    (void)state;
    ask_alone(models[0], false, 6, &alone);
    shown_open(&w, models[0]);
    driver_start(&w.d);
    w.encoder.hold = true;
    mt_request *r = show(&w, 6, 1, BEFORE, &gone);
    driver_send(&w.d, r);
    wait_for_jobs(&w, 1);
    driver_send(&w.d, show(&w, 6, 1, BEFORE, &same));
    driver_send(&w.d, show(&w, 7, 1, BEFORE, &other));
    r->cancelled = true;
    driver_wait(&w.d, 2);
    w.encoder.hold = false;
    driver_wait(&w.d, 0);
    assert_int_equal(gone.finish, MT_FINISH_CANCELLED);
    assert_int_equal(w.encoder.jobs, 2);
    expect_same("whose twin was cancelled", &alone, &same);
    assert_int_equal(other.finish, MT_FINISH_LENGTH);
    driver_close(&w.d);
}

/* While a picture is being encoded, text is answered. */
static void text_goes_on_beside_the_encoder(void **state)
{
    answer seen, text;
    mt_engine_row rows[2];
    uint32_t prompt[20] = {1, 2, 3};
    shown w;
    (void)state;
    shown_open(&w, models[0]);
    driver_start(&w.d);
    w.encoder.hold = true;
    driver_send(&w.d, show(&w, 6, 1, BEFORE, &seen));
    wait_for_jobs(&w, 1);
    driver_send(&w.d, driver_request(&w.d, prompt, 20, NEW_TOKENS, &text));
    driver_wait(&w.d, 1);
    assert_int_equal(text.count, NEW_TOKENS);
    assert_int_equal(seen.count, 0);
    assert_true(mt_engine_list(w.d.engine, NULL, rows, 2) >= 1);
    assert_int_equal(rows[0].phase, MT_PHASE_ENCODE);
    w.encoder.hold = false;
    driver_wait(&w.d, 0);
    assert_int_equal(seen.count, NEW_TOKENS);
    driver_close(&w.d);
}

/* Each job has its slices: a text does not wait for the tower's, nor an answer for either. */
static void an_encoder_goes_on_beside_the_tower(void **state)
{
    answer seen, answered, alone;
    sent_text before, beside;
    uint32_t prompt[20] = {1, 2, 3};
    mt_encoder encoder;
    shown w;
    (void)state;
    ask_alone(models[0], false, 6, &alone);
    encoder_open(&encoder, VECTORS "bert-mean-f32");
    shown_open(&w, models[0]);
    w.d.params.encoders = (const mt_encoder *[]){&encoder};
    w.d.params.encoder_count = 1;
    driver_start(&w.d);
    text_send(&w.d, text_request(&w.d, 1, MT_POOL_MEAN, 3, 300, &before));
    driver_wait(&w.d, 0);
    w.encoder.hold = true;
    driver_send(&w.d, show(&w, 6, 1, BEFORE, &seen));
    wait_for_jobs(&w, 1);
    text_send(&w.d, text_request(&w.d, 1, MT_POOL_MEAN, 3, 300, &beside));
    driver_send(&w.d, driver_request(&w.d, prompt, 20, NEW_TOKENS, &answered));
    driver_wait(&w.d, 1);
    assert_int_equal(answered.count, NEW_TOKENS);
    assert_memory_equal(before.vector, beside.vector, sizeof(before.vector));
    assert_int_equal(seen.count, 0);
    w.encoder.hold = false;
    driver_wait(&w.d, 0);
    expect_same("a picture beside an encoder", &alone, &seen);
    driver_close(&w.d);
    mt_encoder_close(&encoder);
}

/* It had no row of any step, but the encoder's time. */
static void the_encoders_work_is_charged_to_a_client(void **state)
{
    answer gone;
    shown w;
    (void)state;
    shown_open(&w, models[0]);
    driver_start(&w.d);
    w.encoder.hold = true;
    mt_request *r = show(&w, 6, 1, 0, &gone);
    r->client.id = 7;
    driver_send(&w.d, r);
    while (w.encoder.runs < 2)
        usleep(1000);
    r->cancelled = true;
    driver_wait(&w.d, 0);
    assert_int_equal(w.d.engine->stats.step_rows, 0);
    assert_int_equal(w.d.engine->clients.client_record[0].client.id, 7);
    assert_true(w.d.engine->clients.client_record[0].seconds > 0);
    driver_close(&w.d);
}

/* Small pictures of several requests are encoded in one job. */
static void pictures_are_encoded_together(void **state)
{
    static answer answers[8];
    answer first;
    shown w;
    (void)state;
    shown_open(&w, models[0]);
    driver_start(&w.d);
    w.encoder.hold = true;
    driver_send(&w.d, show(&w, 9, 1, BEFORE, &first));
    wait_for_jobs(&w, 1);
    for (unsigned i = 0; i < 8; i++)
        driver_send(&w.d, show(&w, i, 10 + i, BEFORE, &answers[i]));
    w.encoder.hold = false;
    driver_wait(&w.d, 0);
    assert_int_equal(w.encoder.pictures, 9);
    assert_true(w.encoder.jobs < 9);
    driver_close(&w.d);
}

static void what_is_never_possible_is_refused_at_once(void **state)
{
    shown w;
    answer a;
    mt_error err = {0};
    mt_request *r;
    (void)state;
    shown_open(&w, models[0]);
    w.encoder.most = TOKENS - 1;
    driver_start(&w.d);
    r = show(&w, 0, 1, BEFORE, &a);
    assert_false(mt_engine_submit(w.d.engine, r, &err));
    assert_int_equal(err.code, MT_E_TOO_LARGE);
    assert_non_null(strstr(err.text, "patches"));
    mt_request_free(r);
    driver_close(&w.d);

    shown_open(&w, models[0]);
    w.d.params.media_cache = 1000;
    driver_start(&w.d);
    r = show(&w, 0, 1, BEFORE, &a);
    assert_false(mt_engine_submit(w.d.engine, r, &err));
    assert_non_null(strstr(err.text, "--media-cache"));
    mt_request_free(r);
    driver_close(&w.d);

    shown_open(&w, models[0]);
    w.d.params.tower = NULL;
    driver_start(&w.d);
    r = show(&w, 0, 1, BEFORE, &a);
    assert_false(mt_engine_submit(w.d.engine, r, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    assert_non_null(strstr(err.text, "takes no pictures"));
    mt_request_free(r);
    driver_close(&w.d);
}

/* ---- after a restart ---- */

static mt_disk *kept_open(shown *w)
{
    const mt_disk_params params = {.folder = folder, .bytes = MT_LIMIT_DISK_LEAST, .entries = 1000};
    mt_error err = {0};
    mt_disk *disk = mt_disk_open(&params, &err);
    if (!disk)
        fail_msg("%s", err.text);
    mt_disk_scan(disk, NULL);
    shown_open(w, models[0]);
    w->d.params.disk = disk;
    w->d.params.keep_all = true;
    driver_start(&w->d);
    return disk;
}

static void kept_close(shown *w, mt_disk *disk)
{
    driver_close(&w->d);
    mt_disk_close(disk);
}

/* A byte in the middle of what was kept is another one: of the only record there is. */
static void damage(void)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%016x.motet", folder, 0);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 128 + 128 + 1000, SEEK_SET);
    const int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 4, file);
    assert_int_equal(fclose(file), 0);
}

/* Features come from a disk: no encoder is needed for them, by the tenant whose they are; and where they are damaged,
   it is. Short prompts, of which no page is kept. */
static void no_encoder_is_needed_after_a_restart(void **state)
{
    shown w;
    answer cold, warm, damaged, foreign;
    mt_stats stats;
    (void)state;
    mt_disk *disk = kept_open(&w);
    driver_send(&w.d, show(&w, 3, 1, 2, &cold));
    driver_wait(&w.d, 0);
    kept_close(&w, disk);
    disk = kept_open(&w);
    driver_send(&w.d, show(&w, 3, 2, 7, &warm)); /* another text */
    driver_wait(&w.d, 0);
    assert_int_equal(w.encoder.pictures, 0);
    driver_stats(&w.d, &stats);
    assert_int_equal(stats.keep.restored_features, 1);
    assert_int_equal(stats.media_misses, 0);
    mt_request *r = show(&w, 3, 2, 7, &foreign);
    r->salt[5] = 1;
    driver_send(&w.d, r);
    driver_wait(&w.d, 0);
    assert_int_equal(w.encoder.pictures, 1);
    expect_same("another salt", &foreign, &warm);
    kept_close(&w, disk);
    ask_alone(models[0], false, 3, &cold);
    damage();
    disk = kept_open(&w);
    ask(&w, 3, 1, &damaged);
    expect_same("damaged features", &cold, &damaged);
    assert_int_equal(mt_disk_look(disk).broken, 1);
    assert_int_equal(w.encoder.pictures, 1);
    kept_close(&w, disk);
}

/* Many at once, who come and go, with room for two: every answer is that of its picture. */
static void a_crowd_of_pictures_after_a_restart(void **state)
{
    enum { REQUESTS = 40, MOST = 6 };
    static answer alone[MOST], answers[REQUESTS];
    shown w;
    draw random = {91};
    unsigned which[REQUESTS];
    (void)state;
    for (unsigned i = 0; i < MOST; i++)
        ask_alone(models[0], false, i, &alone[i]);
    for (int round = 0; round < 2; round++) {
        mt_disk *disk = kept_open(&w);
        driver_close(&w.d);
        shown_open(&w, models[0]);
        w.d.params.disk = disk;
        w.d.params.keep_all = true;
        w.d.params.cache = 700;
        w.d.params.media_cache = 2 * TOKENS * w.encoder.tower.width * sizeof(float);
        driver_start(&w.d);
        for (size_t i = 0; i < REQUESTS; i++) {
            which[i] = draw_below(&random, MOST);
            mt_request *r = show(&w, which[i], 1, BEFORE, &answers[i]);
            if (i % 7 == 6)
                atomic_store(&r->cancelled, true);
            driver_send(&w.d, r);
        }
        driver_wait(&w.d, 0);
        for (size_t i = 0; i < REQUESTS; i++)
            if (answers[i].finish != MT_FINISH_CANCELLED)
                expect_same("a picture in a crowd, after a restart", &alone[which[i]], &answers[i]);
        if (round)
            assert_true(w.encoder.pictures < MOST);
        kept_close(&w, disk);
    }
}

#define KEPT(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
static const struct CMUnitTest tests[] = {
    KEPT(no_encoder_is_needed_after_a_restart),
    KEPT(a_crowd_of_pictures_after_a_restart),
    cmocka_unit_test(another_picture_is_missed_at_the_picture),
    cmocka_unit_test(a_picture_is_encoded_once),
    cmocka_unit_test(salts_share_no_pictures),
    cmocka_unit_test(chunks_change_nothing),
    cmocka_unit_test(a_block_sees_ahead),
    cmocka_unit_test(an_encoder_that_breaks_ends_one_request),
    cmocka_unit_test(a_request_may_go_while_its_picture_is_encoded),
    cmocka_unit_test(text_goes_on_beside_the_encoder),
    cmocka_unit_test(an_encoder_goes_on_beside_the_tower),
    cmocka_unit_test(the_encoders_work_is_charged_to_a_client),
    cmocka_unit_test(pictures_are_encoded_together),
    cmocka_unit_test(what_is_never_possible_is_refused_at_once),
    cmocka_unit_test(every_answer_is_that_of_its_picture_alone),
};

UNIT_MAIN(tests)
