/* The recorder by itself, and what an engine writes into it. */
#include "engine_driver.h"

#include <math.h>

#include "base/clock.h"
#include "engine/limits.h"
#include "engine/voices.h"

#define FIXTURE FIXTURES "/qwen3-mlx-4bit-g32"
#define MS 1000000u /* nanoseconds */

enum { LIVE = 8, ROOM = 4096, PROMPT = 80, TOKENS = 12 };

typedef struct reader {
    mt_voices_mark mark;
    mt_voice live[ROOM], ended[ROOM];
    mt_note notes[ROOM];
    mt_voices_page page;
} reader;

static bool read_on(reader *r, mt_voices *v)
{
    r->page = (mt_voices_page){r->live, r->ended, r->notes, ROOM, ROOM, ROOM};
    return mt_voices_read(v, &r->mark, &r->page);
}

static bool read_back(reader *r, mt_voices *v, size_t most)
{
    r->page = (mt_voices_page){r->live, r->ended, r->notes, 0, most, most};
    return mt_voices_before(v, &r->mark, &r->page);
}

static void sound(mt_voices *v, mt_voice *voice, mt_note_kind kind, uint64_t begin, uint64_t end, size_t count)
{
    mt_voices_play(v, voice, &(mt_sounding){.kind = kind, .begin = begin, .end = end, .count = count});
}

static const mt_note *find(const reader *r, mt_note_kind kind, size_t from)
{
    for (size_t i = from; i < r->page.notes_count; i++)
        if (r->notes[i].kind == kind)
            return &r->notes[i];
    return NULL;
}

/* Steps that follow each other are one note, up to its longest; what stands apart, or is something else, another. */
static void steps_become_notes(void **state)
{
    mt_voices *v = mt_voices_new(0, LIVE);
    reader *r = mt_alloc(sizeof(*r));
    const uint64_t now = mt_clock_ns() + 1000 * MS;
    const mt_request request = {.name = "chatcmpl-1", .client.id = 7, .received = now - 20 * MS, .prompt_len = 30};
    mt_voice *voice = mt_voices_enter(v, &request, 0, 0, now);

    (void)state;
    mt_voices_seat(v, voice, now + 5 * MS);
    mt_voices_cached(v, voice, 16, now + 5 * MS);
    mt_voices_cached(v, voice, 0, now + 5 * MS);
    sound(v, voice, MT_NOTE_PROMPT, now + 6 * MS, now + 26 * MS, 14);
    for (unsigned i = 0; i < 10; i++)
        sound(v, voice, MT_NOTE_ANSWER, now + (30 + 10 * i) * MS, now + (38 + 10 * i) * MS, 1);
    assert_true(read_on(r, v));
    assert_int_equal(r->page.live_count, 1);
    assert_int_equal(r->live[0].open.kind, MT_NOTE_ANSWER);
    assert_int_equal(r->live[0].open.steps, 10);
    assert_int_equal(r->live[0].open.count, 10);
    assert_int_equal(r->live[0].open.length, 98000);
    assert_int_equal(r->live[0].waited, 5000);
    assert_int_equal(r->page.notes_count, 4);
    assert_int_equal(r->notes[0].kind, MT_NOTE_PREPARED);
    assert_int_equal(r->notes[0].length, 20000);
    assert_int_equal(r->notes[1].kind, MT_NOTE_SEATED);
    assert_int_equal(r->notes[2].kind, MT_NOTE_CACHED);
    assert_int_equal(r->notes[2].count, 16);
    assert_int_equal(r->notes[3].kind, MT_NOTE_PROMPT);
    assert_int_equal(r->notes[3].client, 7);

    /* nothing has changed since */
    assert_true(read_on(r, v));
    assert_int_equal(r->page.live_count + r->page.notes_count + r->page.ended_count, 0);

    /* a rest, then more than a note may be long */
    for (unsigned i = 0; i < 300; i++)
        sound(v, voice, MT_NOTE_ANSWER, now + (500 + 5 * i) * MS, now + (505 + 5 * i) * MS, 1);
    assert_true(read_on(r, v));
    assert_int_equal(r->page.notes_count, 2);
    assert_int_equal(r->notes[0].steps, 10);
    assert_int_equal(r->notes[1].length, 1000000);
    assert_int_equal(r->live[0].open.steps, 100);

    mt_voices_unseat(v, voice, now + 3000 * MS);
    mt_voices_seat(v, voice, now + 3500 * MS);
    mt_voices_end(v, voice, MT_FINISH_LENGTH, now + 3600 * MS);
    assert_true(read_on(r, v));
    assert_int_equal(r->page.live_count, 0);
    assert_int_equal(r->page.ended_count, 1);
    assert_int_equal(r->ended[0].waited, 505000);
    assert_int_equal(r->ended[0].aside, 1);
    assert_int_equal(r->ended[0].finish, MT_FINISH_LENGTH);
    assert_string_equal(r->ended[0].name, "chatcmpl-1");
    assert_non_null(find(r, MT_NOTE_ASIDE, 0));
    mt_free(r);
    mt_voices_free(v);
}

static void come_and_go(mt_voices *v, size_t count, uint64_t now)
{
    const mt_request request = {.name = "x", .received = now};
    for (size_t i = 0; i < count; i++)
        mt_voices_end(v, mt_voices_enter(v, &request, 0, 0, now), MT_FINISH_STOP, now);
}

/* The oldest gives way; who has not read it by then is told; a voice that lives for long is never lost. */
static void rings_wrap(void **state)
{
    const size_t notes = MT_LIMIT_SCORE_NOTES / 64,
                 voices = MT_LIMIT_SCORE_VOICES / 64; /* with no memory to speak of */
    mt_voices *v = mt_voices_new(0, LIVE);
    reader *r = mt_alloc(sizeof(*r));
    const uint64_t now = mt_clock_ns();
    const mt_request lasting = {.name = "lasting", .received = now};
    mt_voice *old = mt_voices_enter(v, &lasting, 0, 0, now);
    size_t seen = 0;

    (void)state;
    assert_true(read_on(r, v));
    come_and_go(v, voices, now);
    assert_true(read_on(r, v));
    assert_int_equal(r->page.ended_count, voices);
    come_and_go(v, voices + 1, now);
    assert_false(read_on(r, v));
    assert_int_equal(r->page.ended_count, voices);
    assert_int_equal(r->ended[voices - 1].number, 2 * voices + 2);
    assert_true(read_on(r, v));
    for (size_t i = 0; i < 2 * notes; i++)
        mt_voices_cached(v, old, 1, now);
    assert_false(read_on(r, v));
    mt_voices_end(v, old, MT_FINISH_STOP, now);
    assert_true(r->mark.notes > notes);
    while (r->page.notes_count > 0)
        read_on(r, v);

    /* and back, in pages, to the oldest that there is */
    mt_voices_mark end = r->mark;
    while (read_back(r, v, 100)) {
        seen += r->page.notes_count;
        for (size_t i = 0; i < r->page.notes_count; i++)
            assert_int_equal(r->notes[i].voice, 1);
    }
    assert_int_equal(seen, notes);
    assert_int_equal(end.notes - r->mark.notes, notes);
    assert_int_equal(end.ended - r->mark.ended, voices);
    mt_free(r);
    mt_voices_free(v);
}

static void bytes_are_what_the_memory_allows(void **state)
{
    (void)state;
    const size_t whole = mt_voices_bytes(16ull << 30, 320), little = mt_voices_bytes(64 << 20, 320);
    assert_true(whole > MT_LIMIT_SCORE_NOTES * sizeof(mt_note) && whole < 10u << 20);
    assert_true(little < (2u << 20));
    assert_true(mt_voices_bytes(0, 320) <= little);
}

static void times_are_told_apart(void **state)
{
    (void)state;
    size_t last = 0;
    for (uint64_t ns = 1; ns < 3600ull * 1000 * MS; ns += 1 + ns / 50) {
        const size_t bucket = mt_tempo_bucket(ns);
        assert_true(bucket >= last && bucket <= last + 1);
        last = bucket;
        if (ns >= 1024)
            assert_true(fabs(mt_tempo_seconds(bucket) * 1e9 - (double)ns) <= 0.0626 * (double)ns);
    }
    assert_int_equal(mt_tempo_bucket(UINT64_MAX), MT_TEMPO_BUCKETS - 1);
}

typedef struct looker {
    mt_voices *voices;
    atomic_bool over;
    size_t notes, ended;
} looker;

static void *look_on(void *ctx)
{
    looker *l = ctx;
    reader *r = mt_alloc(sizeof(*r));
    mt_tempo tempo;
    for (bool last = false; !last;) {
        last = atomic_load(&l->over); /* what was written before is read below */
        do {
            read_on(r, l->voices);
            l->notes += r->page.notes_count;
            l->ended += r->page.ended_count;
        } while (r->page.notes_count + r->page.ended_count > 0);
        mt_voices_tempo(l->voices, mt_clock_ns(), &tempo);
    }
    mt_free(r);
    return NULL;
}

/* While one thread writes, another reads: it gets each note and each voice once. */
static void readers_disturb_nobody(void **state)
{
    enum { ROUNDS = 200, EACH = 3 }; /* of notes: prepared, seated, and one of an answer */
    looker l = {.voices = mt_voices_new(1ull << 40, LIVE)};
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, look_on, &l), 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        const uint64_t now = mt_clock_ns();
        const mt_request request = {.name = "x", .received = now};
        mt_voice *voice = mt_voices_enter(l.voices, &request, 0, 0, now);
        mt_voices_seat(l.voices, voice, now);
        sound(l.voices, voice, MT_NOTE_ANSWER, now, now + 1000, 1);
        mt_voices_token(l.voices, voice, 1000, now);
        mt_voices_end(l.voices, voice, MT_FINISH_STOP, now + 1000);
    }
    atomic_store(&l.over, true);
    pthread_join(thread, NULL);
    assert_int_equal(l.notes, ROUNDS * EACH);
    assert_int_equal(l.ended, ROUNDS);
    mt_voices_free(l.voices);
}

static const mt_voice *voice_of(const reader *r, const char *name)
{
    for (size_t i = 0; i < r->page.ended_count; i++)
        if (strcmp(r->ended[i].name, name) == 0)
            return &r->ended[i];
    fail_msg("%s is not there", name);
    return NULL;
}

static size_t count_of(const reader *r, uint64_t voice, mt_note_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < r->page.notes_count; i++)
        if (r->notes[i].voice == voice && r->notes[i].kind == kind)
            count += r->notes[i].count;
    return count;
}

/* What the engine writes: every token of every prompt is found or computed, every token of an answer given. */
static void an_engine_records_all_it_does(void **state)
{
    driver d;
    uint32_t prompt[PROMPT];
    answer first = {0}, again[2] = {0};
    reader *r = mt_alloc(sizeof(*r));
    draw random = {5};

    (void)state;
    driver_open(&d, FIXTURE, MT_PRECISION_FAST, 2);
    driver_start(&d);
    draw_tokens(&random, prompt, PROMPT, (uint32_t)d.o.spec.vocab);
    mt_request *a = driver_request(&d, prompt, PROMPT, TOKENS, &first);
    a->name = "first";
    driver_send(&d, a);
    driver_wait(&d, 0);
    mt_request *b = driver_request(&d, prompt, PROMPT, TOKENS, again);
    b->name = "again";
    b->choices = 2;
    driver_send(&d, b);
    driver_wait(&d, 0);
    assert_true(read_on(r, mt_engine_voices(d.engine)));
    assert_int_equal(r->page.live_count, 0);
    assert_int_equal(r->page.ended_count, 3);

    const mt_voice *one = voice_of(r, "first"), *two = voice_of(r, "again");
    assert_int_equal(one->prompt, PROMPT);
    assert_int_equal(one->tokens, first.count);
    assert_int_equal(one->cached, 0);
    assert_int_equal(count_of(r, one->number, MT_NOTE_PROMPT), PROMPT);
    assert_int_equal(count_of(r, one->number, MT_NOTE_ANSWER), first.count - 1); /* the prompt gave the first */
    assert_int_equal(two->cached, again[two->choice].cached);
    assert_true(two->cached > 0);
    assert_int_equal(count_of(r, two->number, MT_NOTE_CACHED), two->cached);
    assert_int_equal(count_of(r, two->number, MT_NOTE_CACHED) + count_of(r, two->number, MT_NOTE_PROMPT), PROMPT);
    assert_true(one->received <= one->entered && one->entered <= one->seated && one->seated < one->first &&
                one->first < one->ended);
    mt_tempo tempo;
    mt_voices_tempo(mt_engine_voices(d.engine), mt_clock_ns(), &tempo);
    uint64_t seats = 0;
    for (size_t i = 0; i < 3; i++)
        seats += r->ended[i].ended - r->ended[i].seated;
    assert_int_equal(tempo.running, seats);
    assert_true(tempo.waiting > 0);
    size_t firsts = 0, others = 0;
    for (size_t i = 0; i < MT_TEMPO_BUCKETS; i++) {
        firsts += tempo.first[i];
        others += tempo.between[i];
    }
    assert_int_equal(firsts, 3);
    assert_int_equal(firsts + others, first.count + again[0].count + again[1].count);
    mt_free(r);
    driver_close(&d);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(steps_become_notes),
    cmocka_unit_test(rings_wrap),
    cmocka_unit_test(bytes_are_what_the_memory_allows),
    cmocka_unit_test(times_are_told_apart),
    cmocka_unit_test(readers_disturb_nobody),
    cmocka_unit_test(an_engine_records_all_it_does),
};
UNIT_MAIN(tests)
