/* What was computed for whom, and when: the last hour, or less of it where more has happened than there is room for.
   A voice is an answer in the making, or a text at an encoder; a note is what was done for it at a time. See voices.c.

   Times are microseconds since the recorder was made. */
#ifndef MT_ENGINE_VOICES_H
#define MT_ENGINE_VOICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/request.h"

typedef enum mt_note_kind {
    MT_NOTE_PREPARED, /* from its arrival until the engine had it */
    MT_NOTE_SEATED,   /* a moment: it takes part in steps from here on */
    MT_NOTE_ASIDE,    /* a moment: no more; it goes on when it has a seat again */
    MT_NOTE_CACHED,   /* a moment: so many tokens of its prompt were found */
    MT_NOTE_PICTURES, /* slices of encoding its pictures */
    MT_NOTE_PROMPT,   /* slices of so many of its prompt's tokens */
    MT_NOTE_ANSWER,   /* steps that gave so many tokens */
    MT_NOTE_KINDS
} mt_note_kind;

typedef struct mt_note {
    uint64_t voice, client; /* numbers */
    uint64_t begin;
    uint32_t length;
    uint32_t count;          /* tokens; parts of pictures */
    uint16_t steps;          /* that it was made of */
    uint16_t guessed, taken; /* of an answer: tokens guessed ahead, and those that were right */
    uint8_t kind;            /* mt_note_kind */
} mt_note;

typedef struct mt_voice {
    uint64_t number; /* from 1 on, by arrival */
    uint64_t client;
    char name[48];              /* as clients know it, cut if need be */
    uint64_t received, entered; /* by the server, by the engine */
    uint64_t seated;            /* 0: it waits */
    uint64_t first, ended;      /* its first token, its end; 0: not yet */
    uint64_t waiting, waited;   /* since when, where it has no seat; how long before it had one */
    uint64_t changed;           /* of mt_voices_mark */
    uint32_t model, choice, encoder, pictures;
    uint32_t prompt, cached, tokens; /* how many */
    uint32_t guessed, taken, aside;  /* aside: times it was set aside */
    bool constrained;
    uint8_t finish; /* mt_finish, once it has ended */
    mt_note open;   /* what it is at and may go on with; steps is 0 where it is at nothing */
} mt_voice;

#define MT_TEMPO_BUCKETS 256 /* eight for each power of two of nanoseconds, from 1024 on */

/* What has happened so far. */
typedef struct mt_tempo {
    uint32_t first[MT_TEMPO_BUCKETS]; /* times to the first token, see mt_tempo_bucket */
    uint32_t between[MT_TEMPO_BUCKETS];
    uint64_t prompt;           /* tokens of prompts that were computed */
    uint64_t running, waiting; /* microseconds of all voices, with a seat and without one */
} mt_tempo;

size_t mt_tempo_bucket(uint64_t ns);
double mt_tempo_seconds(size_t bucket); /* the middle of it */

typedef struct mt_voices mt_voices;

/* Bytes of a recorder that takes no more than a part of the memory. */
size_t mt_voices_bytes(uint64_t memory, size_t live);

/* Room for so many voices that have not ended, and for as many that have, and notes, as mt_voices_bytes allows. Free
   with mt_voices_free. */
mt_voices *mt_voices_new(uint64_t memory, size_t live);
void mt_voices_free(mt_voices *v); /* NULL is fine */

/* ---- on an engine's thread; times are mt_clock_ns ---- */

/* model: the number of the engine's, where several engines have one recorder. NULL where as many live as there is room
   for: then it is not recorded, and the calls below do nothing for it. */
mt_voice *mt_voices_enter(mt_voices *v, const mt_request *r, size_t model, uint32_t choice, uint64_t now);

void mt_voices_seat(mt_voices *v, mt_voice *voice, uint64_t now);
void mt_voices_unseat(mt_voices *v, mt_voice *voice, uint64_t now);
void mt_voices_cached(mt_voices *v, mt_voice *voice, size_t tokens, uint64_t now);

/* A slice of pictures or a prompt, or a step of an answer. */
typedef struct mt_sounding {
    mt_note_kind kind;
    uint64_t begin, end;
    size_t count, guessed, taken;
} mt_sounding;

void mt_voices_play(mt_voices *v, mt_voice *voice, const mt_sounding *what);

/* A token of an answer, so long after the one before; of the first, after it was received. Tokens that came together
   have had the same time each. */
void mt_voices_token(mt_voices *v, mt_voice *voice, uint64_t after, uint64_t now);

/* voice is nothing any more afterwards. */
void mt_voices_end(mt_voices *v, mt_voice *voice, mt_finish finish, uint64_t now);

/* ---- on any thread ---- */

uint64_t mt_voices_time(const mt_voices *v, uint64_t ns); /* of mt_clock_ns */
size_t mt_voices_live(const mt_voices *v);                /* most that have not ended */

/* How far somebody has read: all before it. Zeros: nothing. */
typedef struct mt_voices_mark {
    uint64_t notes, ended, changed;
} mt_voices_mark;

mt_voices_mark mt_voices_now(mt_voices *v); /* everything */

/* Lists that reading fills: each has room for so many and then so many in it. */
typedef struct mt_voices_page {
    mt_voice *live, *ended;
    mt_note *notes;
    size_t live_count, ended_count, notes_count;
} mt_voices_page;

/* Voices that have not ended and changed since, those that ended since, and notes that are complete, the oldest first,
   as many as there is room for; moves the mark on. False: some behind the mark were dropped meanwhile. */
bool mt_voices_read(mt_voices *v, mt_voices_mark *mark, mt_voices_page *page);

/* Those that ended, and notes, before the mark: the newest of them, the oldest first. Moves it back; true while there
   may be more. */
bool mt_voices_before(mt_voices *v, mt_voices_mark *mark, mt_voices_page *page);

void mt_voices_tempo(mt_voices *v, uint64_t now, mt_tempo *out);

#endif
