/* The recorder: two ring buffers, of notes and of ended voices, and a list of live voices.

   1. Engines' threads write and others read, under one lock that is held only while something is copied. A step takes
      the lock a few times for each of its sequences, some tens of nanoseconds each.
   2. All memory is allocated at the start. The oldest entries are overwritten, and readers are told that they missed
      some.
   3. A note is written to its ring when it is complete; until then it grows in its voice: consecutive steps become one
      note, so an hour of answers is thousands of notes, not millions.
   4. A voice is written to its ring when it ends. So a voice that lives long is not lost, however many come and go.

   Rejected: an event for each step. At a thousand steps a second an hour of them would not fit. */
#include "engine/voices.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "engine/limits.h"

#define SHARE 256         /* the recorder gets one part of so many of the engine's memory */
#define LEAST 64          /* but never less than one part of so many of its limits */
#define GAP_US 20000      /* microseconds: steps further apart than this are not one note */
#define FIRST_EXPONENT 10 /* the smallest time that is told from others is 2 to this power: 1024 ns */

/* Most microseconds of one note of each kind: so that slices can be seen as such. */
static const uint32_t longest[MT_NOTE_KINDS] = {
    [MT_NOTE_PICTURES] = 100000, [MT_NOTE_PROMPT] = 50000, [MT_NOTE_ANSWER] = 1000000};

struct mt_voices {
    pthread_mutex_t lock; /* protects all fields below but origin */
    uint64_t origin;      /* mt_clock_ns when the recorder was made; does not change */
    mt_note *notes;
    size_t note_room;
    mt_voice *ended;
    size_t ended_room;
    mt_voice *live;  /* [live_room]; number 0: free */
    mt_voice **free; /* elements of `live` that are free */
    size_t live_room, free_count;
    uint64_t note_count, ended_count; /* written so far */
    uint64_t number, changes;         /* last numbers given: of a voice, of a change */
    size_t seated, waiting;           /* live voices with a seat, and without */
    uint64_t since;                   /* mt_clock_ns until which tempo.running and waiting are summed up */
    mt_tempo tempo;
};

/* ---- times to tokens ---- */

size_t mt_tempo_bucket(uint64_t ns)
{
    size_t exponent = 0;
    if (ns < 1u << FIRST_EXPONENT)
        return 0;
    while (exponent < 63 && ns >> (exponent + 1))
        exponent++;
    const size_t bucket = 8 * (exponent - FIRST_EXPONENT) + ((ns >> (exponent - 3)) & 7);
    return bucket < MT_TEMPO_BUCKETS ? bucket : MT_TEMPO_BUCKETS - 1;
}

double mt_tempo_seconds(size_t bucket)
{
    const double power = (double)(1ull << (bucket / 8 + FIRST_EXPONENT));
    return power * (1 + ((double)(bucket % 8) + 0.5) / 8) * 1e-9;
}

/* ---- beginning and end ---- */

/* The recorder's room is one part of so many of its limits. */
static size_t parts(uint64_t memory)
{
    size_t of = 1;
    while (of < LEAST &&
           (MT_LIMIT_SCORE_NOTES * sizeof(mt_note) + MT_LIMIT_SCORE_VOICES * sizeof(mt_voice)) / of > memory / SHARE)
        of *= 2;
    return of;
}

size_t mt_voices_bytes(uint64_t memory, size_t live)
{
    const size_t of = parts(memory);
    return sizeof(mt_voices) + MT_LIMIT_SCORE_NOTES / of * sizeof(mt_note) +
           (MT_LIMIT_SCORE_VOICES / of + live) * sizeof(mt_voice) + live * sizeof(mt_voice *);
}

mt_voices *mt_voices_new(uint64_t memory, size_t live)
{
    const size_t of = parts(memory);
    mt_voices *v = mt_alloc(sizeof(*v));
    v->origin = mt_clock_ns();
    v->note_room = MT_LIMIT_SCORE_NOTES / of;
    v->ended_room = MT_LIMIT_SCORE_VOICES / of;
    v->live_room = v->free_count = live;
    v->notes = mt_alloc_array(v->note_room, sizeof(*v->notes));
    v->ended = mt_alloc_array(v->ended_room, sizeof(*v->ended));
    v->live = mt_alloc_array(live, sizeof(*v->live));
    v->free = mt_alloc_array(live, sizeof(mt_voice *));
    for (size_t i = 0; i < live; i++)
        v->free[i] = &v->live[live - 1 - i];
    pthread_mutex_init(&v->lock, NULL);
    return v;
}

void mt_voices_free(mt_voices *v)
{
    if (!v)
        return;
    pthread_mutex_destroy(&v->lock);
    mt_free(v->notes);
    mt_free(v->ended);
    mt_free(v->live);
    mt_free(v->free);
    mt_free(v);
}

/* ---- writing ---- */

uint64_t mt_voices_time(const mt_voices *v, uint64_t ns)
{
    return ns > v->origin ? (ns - v->origin) / 1000 : 0;
}

size_t mt_voices_live(const mt_voices *v)
{
    return v->live_room;
}

static uint32_t length(uint64_t begin, uint64_t end)
{
    const uint64_t us = end > begin ? end - begin : 0;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static uint16_t add_up(uint16_t a, size_t b)
{
    return b < (size_t)(UINT16_MAX - a) ? (uint16_t)(a + b) : UINT16_MAX;
}

static void write_note(mt_voices *v, const mt_note *note)
{
    v->notes[v->note_count++ % v->note_room] = *note;
}

/* Writes a note that is complete at once. */
static void write_at(mt_voices *v, mt_voice *voice, mt_note_kind kind, uint64_t begin, uint64_t end, size_t count)
{
    voice->changed = ++v->changes;
    write_note(v, &(mt_note){.voice = voice->number,
                             .client = voice->client,
                             .begin = begin,
                             .length = length(begin, end),
                             .count = (uint32_t)count,
                             .steps = 1,
                             .kind = (uint8_t)kind});
}

static void close_note(mt_voices *v, mt_voice *voice)
{
    if (voice->open.steps > 0)
        write_note(v, &voice->open);
    voice->open.steps = 0;
}

/* Sums up the time since the last call, with as many voices as there were. */
static void pass(mt_voices *v, uint64_t now)
{
    const uint64_t passed = now > v->since ? now - v->since : 0;
    v->tempo.running += v->seated * passed;
    v->tempo.waiting += v->waiting * passed;
    v->since += passed;
}

mt_voice *mt_voices_enter(mt_voices *v, const mt_request *r, size_t model, uint32_t choice, uint64_t now)
{
    pthread_mutex_lock(&v->lock);
    if (v->free_count == 0) {
        pthread_mutex_unlock(&v->lock);
        return NULL;
    }
    mt_voice *voice = v->free[--v->free_count];
    *voice = (mt_voice){.number = ++v->number,
                        .client = r->client.id,
                        .received = mt_voices_time(v, r->received),
                        .entered = mt_voices_time(v, now),
                        .waiting = mt_voices_time(v, now),
                        .model = (uint32_t)model,
                        .choice = choice,
                        .encoder = (uint32_t)r->encoder,
                        .pictures = (uint32_t)r->picture_count,
                        .prompt = (uint32_t)r->prompt_len,
                        .constrained = r->constraint != NULL};
    snprintf(voice->name, sizeof(voice->name), "%s", r->name);
    pass(v, voice->entered);
    v->waiting++;
    write_at(v, voice, MT_NOTE_PREPARED, voice->received, voice->entered, 0);
    pthread_mutex_unlock(&v->lock);
    return voice;
}

void mt_voices_seat(mt_voices *v, mt_voice *voice, uint64_t now)
{
    if (!voice)
        return;
    pthread_mutex_lock(&v->lock);
    const uint64_t at = mt_voices_time(v, now);
    voice->waited += at > voice->waiting ? at - voice->waiting : 0;
    voice->seated = at > 0 ? at : 1;
    pass(v, at);
    v->waiting--;
    v->seated++;
    write_at(v, voice, MT_NOTE_SEATED, at, at, 0);
    pthread_mutex_unlock(&v->lock);
}

void mt_voices_unseat(mt_voices *v, mt_voice *voice, uint64_t now)
{
    if (!voice)
        return;
    pthread_mutex_lock(&v->lock);
    const uint64_t at = mt_voices_time(v, now);
    close_note(v, voice);
    voice->seated = 0;
    voice->waiting = at;
    pass(v, at);
    v->seated--;
    v->waiting++;
    voice->aside++;
    write_at(v, voice, MT_NOTE_ASIDE, at, at, 0);
    pthread_mutex_unlock(&v->lock);
}

void mt_voices_cached(mt_voices *v, mt_voice *voice, size_t tokens, uint64_t now)
{
    if (!voice || tokens == 0)
        return;
    pthread_mutex_lock(&v->lock);
    const uint64_t at = mt_voices_time(v, now);
    voice->cached += (uint32_t)tokens;
    write_at(v, voice, MT_NOTE_CACHED, at, at, tokens);
    pthread_mutex_unlock(&v->lock);
}

void mt_voices_play(mt_voices *v, mt_voice *voice, const mt_sounding *what)
{
    if (!voice)
        return;
    pthread_mutex_lock(&v->lock);
    const uint64_t begin = mt_voices_time(v, what->begin), end = mt_voices_time(v, what->end);
    mt_note *n = &voice->open;
    if (n->steps == 0 || n->kind != what->kind || begin > n->begin + n->length + GAP_US ||
        length(n->begin, end) > longest[what->kind]) {
        close_note(v, voice);
        *n = (mt_note){
            .voice = voice->number, .client = voice->client, .begin = begin, .kind = (uint8_t)what->kind, .steps = 0};
    }
    n->length = length(n->begin, end);
    n->count += (uint32_t)what->count;
    n->steps = add_up(n->steps, 1);
    n->guessed = add_up(n->guessed, what->guessed);
    n->taken = add_up(n->taken, what->taken);
    voice->guessed += (uint32_t)what->guessed;
    voice->taken += (uint32_t)what->taken;
    v->tempo.prompt += what->kind == MT_NOTE_PROMPT ? what->count : 0;
    voice->changed = ++v->changes;
    pthread_mutex_unlock(&v->lock);
}

void mt_voices_token(mt_voices *v, mt_voice *voice, uint64_t after, uint64_t now)
{
    if (!voice)
        return;
    pthread_mutex_lock(&v->lock);
    if (voice->tokens++ == 0) {
        voice->first = mt_voices_time(v, now);
        v->tempo.first[mt_tempo_bucket(after)]++;
    } else {
        v->tempo.between[mt_tempo_bucket(after)]++;
    }
    voice->changed = ++v->changes;
    pthread_mutex_unlock(&v->lock);
}

void mt_voices_end(mt_voices *v, mt_voice *voice, mt_finish finish, uint64_t now)
{
    if (!voice)
        return;
    pthread_mutex_lock(&v->lock);
    close_note(v, voice);
    voice->finish = (uint8_t)finish;
    voice->ended = mt_voices_time(v, now);
    voice->changed = ++v->changes;
    pass(v, voice->ended);
    --*(voice->seated ? &v->seated : &v->waiting);
    v->ended[v->ended_count++ % v->ended_room] = *voice;
    voice->number = 0;
    v->free[v->free_count++] = voice;
    pthread_mutex_unlock(&v->lock);
}

/* ---- reading ---- */

static uint64_t oldest(uint64_t count, size_t room)
{
    return count > room ? count - room : 0;
}

/* Copies `count` items of a ring, from item number `from` on. */
static void copy(void *out, const void *ring, size_t room, size_t size, uint64_t from, size_t count)
{
    const size_t at = (size_t)(from % room), first = MT_MIN(room - at, count);
    if (count == 0)
        return;
    memcpy(out, (const char *)ring + at * size, first * size);
    memcpy((char *)out + first * size, ring, (count - first) * size);
}

/* Sets *count to how many items follow *mark, at most as many as it was, and moves *mark on. False: some were
   overwritten. */
static bool read_on(uint64_t *mark, size_t *count, uint64_t all, size_t room)
{
    const uint64_t from = oldest(all, room);
    const bool whole = *mark >= from;
    if (!whole)
        *mark = from;
    *count = MT_MIN(all - *mark, *count);
    *mark += *count;
    return whole;
}

/* Sets *count to how many items are before *mark, at most as many as it was, and moves *mark back. */
static void read_back(uint64_t *mark, size_t *count, uint64_t all, size_t room)
{
    const uint64_t from = oldest(all, room);
    *count = *mark > from ? MT_MIN(*mark - from, *count) : 0;
    *mark -= *count;
}

static void copy_page(const mt_voices *v, mt_voices_page *page, uint64_t notes, uint64_t ended)
{
    copy(page->notes, v->notes, v->note_room, sizeof(*v->notes), notes, page->notes_count);
    copy(page->ended, v->ended, v->ended_room, sizeof(*v->ended), ended, page->ended_count);
}

mt_voices_mark mt_voices_now(mt_voices *v)
{
    pthread_mutex_lock(&v->lock);
    const mt_voices_mark mark = {.notes = v->note_count, .ended = v->ended_count, .changed = v->changes};
    pthread_mutex_unlock(&v->lock);
    return mark;
}

static size_t copy_live(const mt_voices *v, mt_voice *out, size_t most, uint64_t changed)
{
    size_t count = 0;
    for (size_t i = 0; i < v->live_room && count < most; i++)
        if (v->live[i].number > 0 && v->live[i].changed > changed)
            out[count++] = v->live[i];
    return count;
}

bool mt_voices_read(mt_voices *v, mt_voices_mark *mark, mt_voices_page *page)
{
    pthread_mutex_lock(&v->lock);
    const bool notes = read_on(&mark->notes, &page->notes_count, v->note_count, v->note_room);
    const bool ended = read_on(&mark->ended, &page->ended_count, v->ended_count, v->ended_room);
    copy_page(v, page, mark->notes - page->notes_count, mark->ended - page->ended_count);
    page->live_count = copy_live(v, page->live, page->live_count, mark->changed);
    mark->changed = v->changes;
    pthread_mutex_unlock(&v->lock);
    return notes && ended;
}

bool mt_voices_before(mt_voices *v, mt_voices_mark *mark, mt_voices_page *page)
{
    pthread_mutex_lock(&v->lock);
    read_back(&mark->notes, &page->notes_count, v->note_count, v->note_room);
    read_back(&mark->ended, &page->ended_count, v->ended_count, v->ended_room);
    copy_page(v, page, mark->notes, mark->ended);
    page->live_count = 0;
    pthread_mutex_unlock(&v->lock);
    return page->notes_count > 0 || page->ended_count > 0;
}

void mt_voices_tempo(mt_voices *v, uint64_t now, mt_tempo *out)
{
    pthread_mutex_lock(&v->lock);
    pass(v, mt_voices_time(v, now));
    *out = v->tempo;
    pthread_mutex_unlock(&v->lock);
}
