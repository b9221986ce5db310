/* The recorder behind the dashboard's timeline: what was computed for which request, and when, in the last hour, or in
   less where the room is used up sooner. A voice is one answer in the making, or a text at an encoder; a note is what
   was done for a voice in some span of time. Engines' threads write, the server's threads read. See voices.c.

   Times in these structs are microseconds since the recorder was made, where nothing else is said. */
#ifndef MT_ENGINE_VOICES_H
#define MT_ENGINE_VOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/request.h"

typedef enum mt_note_kind {
    MT_NOTE_PREPARED, /* from the arrival at the server until the engine had the request */
    MT_NOTE_SEATED,   /* a moment: the sequence got a seat, and takes part in steps from here on */
    MT_NOTE_ASIDE,    /* a moment: it lost its seat and waits for another */
    MT_NOTE_CACHED,   /* a moment: `count` tokens of its prompt came from the cache */
    MT_NOTE_PICTURES, /* slices of a job that encoded its pictures */
    MT_NOTE_PROMPT,   /* steps that computed `count` tokens of its prompt */
    MT_NOTE_ANSWER,   /* steps that gave `count` tokens */
    MT_NOTE_KINDS
} mt_note_kind;

typedef struct mt_note {
    uint64_t voice, client; /* their numbers */
    uint64_t begin;
    uint32_t length;         /* microseconds */
    uint32_t count;          /* tokens, or parts of pictures */
    uint16_t steps;          /* how many steps or slices the note stands for */
    uint16_t guessed, taken; /* of MT_NOTE_ANSWER: tokens guessed ahead, and how many were right */
    uint8_t kind;            /* mt_note_kind */
} mt_note;

typedef struct mt_voice {
    uint64_t number; /* from 1 on, by arrival */
    uint64_t client;
    char name[48];              /* the request's name for clients, cut off where it is longer */
    uint64_t received, entered; /* when the server had it, and when the engine had it */
    uint64_t seated;            /* when it got its present seat; 0: it has none */
    uint64_t first, ended;      /* when its first token came, and when it ended; 0: not yet */
    /* without a seat: since when it waits; and how long it had waited before its present seat */
    uint64_t waiting, waited;
    uint64_t changed; /* number of its last change, compared with mt_voices_mark.changed */
    uint32_t model, choice, encoder, pictures;
    uint32_t prompt, cached, tokens; /* tokens of each */
    uint32_t guessed, taken, aside;  /* guesses, and how many were right; aside: how often it lost its seat */
    bool constrained;
    uint8_t finish; /* mt_finish, once ended */
    mt_note open;   /* the note that is still growing; its steps is 0 where there is none */
} mt_voice;

#define MT_TEMPO_BUCKETS 256 /* eight buckets for each power of two of nanoseconds, from 1024 ns on */

/* Sums since the recorder was made. */
typedef struct mt_tempo {
    uint32_t first[MT_TEMPO_BUCKETS]; /* how many times to the first token fell into each bucket, see mt_tempo_bucket */
    uint32_t between[MT_TEMPO_BUCKETS]; /* the same for the times between tokens */
    uint64_t prompt;                    /* tokens of prompts that were computed */
    uint64_t running, waiting;          /* microseconds, summed over all voices: with a seat, without one */
} mt_tempo;

/* The bucket of a duration, and the duration in the middle of a bucket. */
size_t mt_tempo_bucket(uint64_t ns);
double mt_tempo_seconds(size_t bucket);

typedef struct mt_voices mt_voices;

/* Bytes of a recorder for an engine with so much memory; live: as below. */
size_t mt_voices_bytes(uint64_t memory, size_t live);

/* live: most voices that have not ended. Room for ended voices and notes is what mt_voices_bytes allows. Free with
   mt_voices_free. */
mt_voices *mt_voices_new(uint64_t memory, size_t live);
void mt_voices_free(mt_voices *v); /* NULL is fine */

/* ---- on an engine's thread; times are mt_clock_ns ---- */

/* Begins a voice. model: number of the engine, where several share the recorder. NULL where `live` voices have not
   ended: then this one is not recorded, and the calls below ignore it. */
mt_voice *mt_voices_enter(mt_voices *v, const mt_request *r, size_t model, uint32_t choice, uint64_t now);

/* The sequence gets a seat; loses it; had `tokens` of its prompt in the cache. */
void mt_voices_seat(mt_voices *v, mt_voice *voice, uint64_t now);
void mt_voices_unseat(mt_voices *v, mt_voice *voice, uint64_t now);
void mt_voices_cached(mt_voices *v, mt_voice *voice, size_t tokens, uint64_t now);

/* A slice of a job, or what one step did for a voice; begin and end are mt_clock_ns. */
typedef struct mt_sounding {
    mt_note_kind kind;
    uint64_t begin, end;
    size_t count, guessed, taken;
} mt_sounding;

/* Adds it to the voice's open note, or begins a new note. */
void mt_voices_play(mt_voices *v, mt_voice *voice, const mt_sounding *what);

/* A token of an answer came `after` nanoseconds after the token before, or, if it is the first, after the request was
   received. Tokens that came in one step have an equal part of its time each. */
void mt_voices_token(mt_voices *v, mt_voice *voice, uint64_t after, uint64_t now);

/* The pointer is invalid afterwards. */
void mt_voices_end(mt_voices *v, mt_voice *voice, mt_finish finish, uint64_t now);

/* ---- on any thread ---- */

uint64_t mt_voices_time(const mt_voices *v, uint64_t ns); /* converts mt_clock_ns to the recorder's time */
size_t mt_voices_live(const mt_voices *v);                /* most voices that have not ended */

/* How far a reader has read: numbers of the next note, ended voice and change. Zeros: nothing was read. */
typedef struct mt_voices_mark {
    uint64_t notes, ended, changed;
} mt_voices_mark;

mt_voices_mark mt_voices_now(mt_voices *v); /* a mark behind all there is now */

/* Arrays that a read fills. The counts say how much room there is before the call, and how much was filled after it. */
typedef struct mt_voices_page {
    mt_voice *live, *ended;
    mt_note *notes;
    size_t live_count, ended_count, notes_count;
} mt_voices_page;

/* Copies the live voices that changed since the mark, the voices that ended since, and the notes completed since, the
   oldest first, as many as there is room for; moves the mark on. False: some of them were overwritten before they were
   read. */
bool mt_voices_read(mt_voices *v, mt_voices_mark *mark, mt_voices_page *page);

/* Copies the newest ended voices and notes before the mark, in the order oldest first, and moves the mark back. True
   while there may be more before it. */
bool mt_voices_before(mt_voices *v, mt_voices_mark *mark, mt_voices_page *page);

/* Copies the sums, brought up to `now` (mt_clock_ns). */
void mt_voices_tempo(mt_voices *v, uint64_t now, mt_tempo *out);

#endif
