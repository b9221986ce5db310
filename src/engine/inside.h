/* The engine's insides, shared by the files of this folder. Everything here is the engine thread's alone, except what
   is said to be otherwise. */
#ifndef MT_ENGINE_INSIDE_H
#define MT_ENGINE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/queue.h"
#include "cache/gallery.h"
#include "engine/clients.h"
#include "engine/engine.h"
#include "engine/keep.h"
#include "engine/sequence.h"
#include "engine/step.h"
#include "engine/voices.h"

#define MT_JOB_PARTS 64          /* of a job: parts of pictures, texts */
#define MT_FEATURES_LOOKED_AT 64 /* rows of features that are checked at a time */

typedef struct mt_job mt_job;

/* What a cursor is at, and for whom. See job.c. */
struct mt_job {
    mt_cursor *cursor;
    void (*done)(mt_engine *e, mt_job *j); /* takes what has come out, and empties the job */
    mt_rate rate;
    mt_candidate candidate;
    mt_request *request[MT_JOB_PARTS]; /* whose each part is */
    double size[MT_JOB_PARTS], whole;  /* of each part beside the others, and of all */
    size_t count;                      /* 0: there is none */
    uint64_t began;
    double seconds, work; /* of all jobs so far */
    double sizes;         /* of all parts of those that were done */
};

/* What stands in the job of the tower, part by part. */
typedef struct mt_shown {
    mt_sight *sight[MT_JOB_PARTS];
    const mt_picture *picture[MT_JOB_PARTS];
    const uint32_t *to[MT_JOB_PARTS];  /* rows of features */
    mt_request *unsound[MT_JOB_PARTS]; /* of a job that has ended: who brought what has no finite features */
    size_t unsound_count;
} mt_shown;

/* An encoder, and the texts that wait for it. See texts.c. */
typedef struct mt_desk {
    mt_job job; /* the first member */
    const mt_encoder *encoder;
    mt_bert *bert;
    size_t rows; /* of a job */
    mt_places places;
    mt_request **waiting;
    size_t waiting_count;
    mt_encoder_stats stats; /* under the engine's lock */
} mt_desk;

/* Features of pictures on the device, and what looking at some of them needs. */
typedef struct mt_features {
    size_t count;     /* rows */
    mt_tensor *rows;  /* the gallery knows whose */
    mt_tensor *some;  /* copies of a few */
    mt_tensor *sound; /* whether each of these is finite */
    mt_index *which;
    mt_reading *reading;
} mt_features;

struct mt_engine {
    mt_device *dev;
    mt_opened *opened; /* what is loaded; the caller's */
    const mt_model_spec *spec;
    const mt_tokenizer *tokenizer;
    mt_engine_params params;
    size_t context;  /* most positions of a sequence */
    mt_model *model; /* NULL: there are encoders only */
    size_t memos;    /* sequences with a recurrent state that may guess */
    mt_tree *tree;
    mt_shelf *shelf;     /* NULL: there is no other memory than the device's */
    mt_keep *keep;       /* NULL: what is computed lives in the device's memory only */
    mt_vision *vision;   /* the model's tower */
    mt_tower tower;      /* this, or a test's; its cursor is NULL where the model takes no pictures */
    mt_gallery *gallery; /* likewise */
    mt_set *set;         /* what the engine has on the device besides the model */
    mt_features features;
    mt_shown pictures;
    mt_job job;                     /* of the tower */
    mt_desk *desks;                 /* of the encoders */
    size_t desk_count, text_places; /* of all desks */
    mt_job **jobs;                  /* all of them, the tower's first */
    size_t job_count;
    mt_past past;
    mt_step step; /* the one that is being planned or run */
    mt_clients clients;

    mt_sequence **running, **waiting; /* waiting: by arrival */
    size_t running_count, waiting_count;
    mt_stats stats;
    mt_voices *voices;   /* has a lock of its own */
    mt_rota_place place; /* where it shares the device */

    mt_masks *masks; /* NULL until an answer is constrained */

    /* other threads' doors */
    pthread_t thread;
    bool halted; /* the thread has ended */
    mt_queue *inbox;
    mt_places places;
    atomic_bool stopping;
    atomic_bool poked; /* a poke is in the inbox */
    atomic_uint_fast64_t order_next;
    atomic_uint_fast64_t turn; /* when it began; 0: there is none. Relaxed: nothing else is read by it */
    pthread_rwlock_t door;     /* who submits reads what is loaded; taken for writing while that is made anew */
    mt_error lost;             /* under it: why there is nothing loaded. MT_OK: there is */
    bool measured;
    uint64_t own;         /* memory that is neither weights nor cache, as it was at the start */
    uint64_t renewed;     /* when that was tried last */
    pthread_mutex_t lock; /* over what follows */
    mt_stats shown;
    mt_engine_row *rows;
    size_t row_count;
    mt_engine_batch batch; /* with room for all that may run */
};

/* The request that came next, NULL where there is none; waits for one or for a poke so many milliseconds, and for ever
   where that is less than 0. */
mt_request *mt_inbox_next(mt_engine *e, int wait);

/* Puts everything on the device, with room for the steps to come; takes it away, as far as it is there. See load.c. */
bool mt_engine_load(mt_engine *e, mt_error *err) MT_NODISCARD;
void mt_engine_unload(mt_engine *e);

/* Opens the device anew and loads; where that fails, `lost` says why. Nobody runs or waits, and the door is shut. */
void mt_engine_renew(mt_engine *e);

/* Poisons all that is free, and from now on what becomes free. */
void mt_engine_canary(mt_engine *e);

/* Chooses what the step does and gives it pages: fills its parts. False when there is nothing to do. */
bool mt_engine_plan(mt_engine *e, mt_step *step);

/* Shares the memory there is among cache, states and features, and has the device hold them. weights: bytes of those
   that are mapped, the encoders' among them. See memory.c. */
bool mt_engine_reserve(mt_engine *e, uint64_t weights, mt_error *err) MT_NODISCARD;

/* Has the model's head guess what follows, for the next step. */
void mt_engine_guess(mt_engine *e, mt_step *step);

/* Gives jobs their slices, has the device compute the step and choose tokens, and learns what that took. */
void mt_engine_run(mt_engine *e, mt_step *step);

/* Hands out the tokens, and has the head guess. */
void mt_engine_settle(mt_engine *e, mt_step *step);

/* ---- jobs: job.c ---- */

void mt_job_init(mt_job *job, mt_cursor *cursor, void (*done)(mt_engine *e, mt_job *j));

/* One part more, the first of which begins it; the cursor is started afterwards. size: beside other parts' */
void mt_job_add(mt_job *job, mt_request *request, double size);

void mt_job_clear(mt_job *job); /* it is over */

/* What the scheduler is to give it; first: of the requests that wait for it, NULL: the one that began it. */
mt_candidate *mt_job_offer(mt_job *job, const mt_request *first, uint64_t now);

static inline bool mt_job_planned(const mt_job *job) /* the scheduler gave it something */
{
    return job->count > 0 && job->candidate.worked > 0;
}

/* A slice of each: what the scheduler gave. */
void mt_jobs_run(mt_engine *e);

/* ---- encoders: texts.c ---- */

void mt_texts_open(mt_engine *e);
void mt_texts_close(mt_engine *e);

/* Puts encoders on the device, and takes them away again. */
bool mt_texts_load(mt_engine *e, mt_error *err) MT_NODISCARD;
void mt_texts_unload(mt_engine *e);

/* Ends all texts that wait or are worked on. */
void mt_texts_end(mt_engine *e, mt_finish finish, const mt_error *err);

/* Ends those that are cancelled, or all when it is stopping; then each desk where texts wait has a job. */
void mt_texts_advance(mt_engine *e, bool stopping);

/* ---- lists: roster.c ---- */

/* Puts a sequence into the queue, by priority and arrival. */
void mt_engine_queue(mt_engine *e, mt_sequence *s);
void mt_engine_leave(mt_sequence **list, size_t *count, const mt_sequence *s); /* takes it out of a list it is in */

/* Tells that a sequence begins: what of its prompt is cached is known. Once. */
void mt_engine_announce(mt_engine *e, mt_sequence *s);

/* Back to the queue, where its arrival puts it. What it has computed stays in the tree as long as there is room. */
void mt_engine_preempt(mt_engine *e, mt_sequence *s);

/* Ends a sequence that waits or runs. */
void mt_engine_end(mt_engine *e, mt_sequence *s, mt_finish finish, const mt_error *err);

/* ---- seats: turns.c ---- */

/* Says how many of the free seats each client may take. Where there is none, who would make way for the client whose
   turn it is, which has one place then; NULL: nobody. */
mt_sequence *mt_engine_share_seats(mt_engine *e, uint64_t now);

/* Who makes way when the pool is dry: the youngest of the lowest priority of the client with the most seats. */
mt_sequence *mt_engine_victim(const mt_engine *e);

/* Who makes way for one that has a seat but lacks so many pages, because its client has fewer seats; NULL: nobody, or
   all of them together would not do. */
mt_sequence *mt_engine_yields_pages(const mt_engine *e, const mt_sequence *to, size_t pages);

/* ---- pictures: encode.c ---- */

/* Positions of s from `done` on that can be computed with the pictures there are; 0: it is blind. */
size_t mt_engine_sees(mt_engine *e, mt_sequence *s, size_t done, bool running);

/* Whether the job encodes what s is blind for. */
bool mt_engine_awaits(const mt_engine *e, const mt_sequence *s);

/* Whether features that s is blind for are on their way from a tier. */
bool mt_engine_expects(const mt_engine *e, const mt_sequence *s);

/* Has what a tier has of the parts that others are blind for come back; features that nobody has pinned may go. */
void mt_engine_call_back(mt_engine *e);

/* Starts a job for the viewer and others, where there is room for it; features that nobody has pinned may go. */
void mt_engine_encode_begin(mt_engine *e, mt_sequence *viewer);

/* The job is done: its features serve everybody. Who brought pictures whose features are not finite stands in
   pictures.unsound. */
void mt_engine_encoded(mt_engine *e, mt_job *job);

/* s needs no features any more, or not now. */
void mt_engine_unsee(mt_engine *e, mt_sequence *s);

/* A request goes. */
void mt_engine_forget(mt_engine *e, mt_request *r);

#endif
