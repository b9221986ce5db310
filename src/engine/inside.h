/* The engine's state and the functions that the files of this folder call in each other. Everything belongs to the
   engine's thread, except the fields that struct mt_engine marks as shared. */
#ifndef MT_ENGINE_INSIDE_H
#define MT_ENGINE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/queue.h"
#include "cache/feature_cache.h"
#include "engine/clients.h"
#include "engine/engine.h"
#include "engine/keep.h"
#include "engine/sequence.h"
#include "engine/step.h"
#include "engine/voices.h"

#define MT_JOB_PARTS 64          /* most parts of pictures, or texts, in one job */
#define MT_FEATURES_LOOKED_AT 64 /* rows of features whose finiteness is checked by one reading from the device */

typedef struct mt_job mt_job;

/* A job: work on the device that the engine runs in slices between steps, for one or several requests. See job.c. */
struct mt_job {
    mt_cursor *cursor; /* does the work */
    /* called when the cursor is at its end: hands out the results and clears the job */
    void (*done)(mt_engine *e, mt_job *j);
    mt_rate rate;                      /* predicts what a slice takes */
    mt_candidate candidate;            /* how the scheduler sees the job */
    mt_request *request[MT_JOB_PARTS]; /* the request that each part belongs to */
    double size[MT_JOB_PARTS], whole;  /* weight of each part among the others, and the sum of the weights */
    size_t count;                      /* parts in the job; 0: no job is under way */
    /* mt_clock_ns when the first part was added */
    uint64_t began;
    /* totals over this job and all before it since the model or encoder was loaded; mt_job_clear keeps them */
    double seconds, work; /* what all slices took, and their multiplications */
    double sizes;         /* the tower's only: the weights of all parts that were finished */
};

/* The parts of pictures in the vision tower's job: element i of each array belongs to part i. */
typedef struct mt_shown {
    mt_media_part *part[MT_JOB_PARTS];
    const mt_picture *picture[MT_JOB_PARTS];
    const uint32_t *to[MT_JOB_PARTS];  /* numbers of the rows of mt_features where the part's features go */
    mt_request *unsound[MT_JOB_PARTS]; /* after a job: requests whose picture gave features that are not finite */
    size_t unsound_count;
} mt_shown;

/* An encoder, with the texts that wait for it and its job. See texts.c. */
typedef struct mt_text_queue {
    mt_job job; /* must be the first member: the job's callback casts it to mt_text_queue */
    const mt_encoder *encoder;
    mt_bert *bert;
    size_t rows;   /* most rows of a job */
    float *pooled; /* a text's vector in front of the encoder's dense layers; NULL: it has none */
    /* bounds the texts that wait or are in the job */
    mt_places places;
    mt_request **waiting;
    size_t waiting_count;
    mt_encoder_stats stats; /* protected by mt_engine.lock */
} mt_text_queue;

/* Features of pictures, kept on the device, and the objects with which some of them are read back to be checked. */
typedef struct mt_features {
    size_t count;        /* rows */
    mt_tensor *rows;     /* [count]; the feature cache knows which picture each row belongs to */
    mt_tensor *some;     /* [MT_FEATURES_LOOKED_AT]: copies of the rows that are being checked */
    mt_tensor *sound;    /* for each row of `some`: whether all its numbers are finite */
    mt_index *which;     /* the rows that are copied to `some` */
    mt_reading *reading; /* reads `sound` */
} mt_features;

struct mt_engine {
    mt_device *dev;
    uint32_t fingerprint; /* of dev, for any thread: dev itself may be reopened meanwhile */
    mt_opened *opened;    /* the checkpoint that is loaded; owned by the caller */
    const mt_model_spec *spec;
    const mt_tokenizer *tokenizer;
    mt_engine_params params;
    size_t context;  /* most positions of a sequence, prompt and answer */
    mt_model *model; /* NULL where the engine runs encoders only */
    size_t memos;    /* how many running sequences have room for guesses beside their recurrent state */
    mt_tree *tree;   /* the prefix cache */
    /* a cache tier in the host's memory; NULL where the device's memory is the host's, or none was wanted */
    mt_host_store *host_store;
    mt_keep *keep;     /* moves cache entries to tiers and back; NULL where there is no tier */
    mt_vision *vision; /* the model's vision tower; NULL: it has none */
    /* how the engine runs the tower, or a test's substitute; its cursor is NULL where the model takes no pictures */
    mt_tower tower;
    mt_feature_cache
        *feature_cache; /* which picture each row of `features` belongs to; NULL where the model takes no pictures */
    mt_set *set;        /* device objects of the engine besides the model's */
    mt_features features;
    mt_shown pictures;
    mt_job job;                           /* of the vision tower */
    mt_text_queue *text_queues;           /* one for each encoder */
    size_t text_queue_count, text_places; /* text_places: places of all queues together */
    mt_job **jobs;                        /* every job there is, the tower's first */
    size_t job_count;
    mt_past past; /* what was learned from earlier steps */
    mt_step step; /* the step that is being planned, run or settled */
    mt_step next; /* the step after it, where `ahead`; else it has no parts */
    bool ahead;   /* `next` is enqueued on the device already (ahead.c) */
    mt_clients clients;

    mt_sequence **running, **waiting; /* `waiting` is ordered by priority and arrival */
    size_t running_count, waiting_count;
    mt_stats stats;
    mt_voices *voices;   /* the dashboard's recorder; locks itself */
    mt_rota_place place; /* this engine's place in params.rota, where several engines share the device */

    mt_masks *masks; /* token masks of constraints; NULL until a request has a constraint */

    uint64_t renewed; /* mt_clock_ns when the device was last reopened */
    bool measured;    /* `own` has been measured: when the engine started, by the thread that started it */
    uint64_t own;     /* bytes of this process that are neither weights nor cache */
    uint64_t page_bytes[MT_KV_GROUPS], state_bytes; /* of a page of each group; of a recurrent state */

    /* of the threads that start and halt the engine, one at a time */
    pthread_t thread;
    bool halted; /* the thread has been joined */

    /* shared with other threads */
    mt_queue *inbox;                 /* submitted requests */
    mt_places places;                /* places of the model's choices */
    atomic_bool stopping;            /* mt_engine_halt was called */
    atomic_bool poked;               /* a wake-up is in the inbox (inbox.c) */
    atomic_bool reset;               /* mt_engine_reset was called (reset.c) */
    atomic_uint_fast64_t order_next; /* the `order` of the next request */
    /* mt_clock_ns when the current turn of the thread's loop began; 0: the thread waits. Relaxed: no other
       data depends on it */
    atomic_uint_fast64_t turn;
    pthread_rwlock_t door; /* read-locked by mt_engine_submit, write-locked while the device is reopened */
    mt_error lost;         /* under `door`: why nothing is loaded; code MT_OK: all is loaded */
    pthread_mutex_t lock;  /* protects the fields below, and mt_text_queue.stats */
    mt_stats shown;        /* a copy of `stats` for other threads */
    mt_engine_row *rows;   /* a list of all sequences for other threads */
    size_t row_count;
    mt_engine_batch batch; /* the step under way, for other threads; part has room for all that may run */
};

/* The next submitted request, or NULL. Waits up to `wait` milliseconds for a request or a poke; below 0: without a
   limit. */
mt_request *mt_inbox_next(mt_engine *e, int wait);

/* Forgets what is cached where mt_engine_reset was called; between two steps. See reset.c. */
void mt_engine_clear(mt_engine *e);

/* Puts encoders, tower, model and cache on the device, sized for the largest step; and takes them off again, also after
   loading failed halfway. See load.c. */
bool mt_engine_load(mt_engine *e, mt_error *err) MT_NODISCARD;
void mt_engine_unload(mt_engine *e);

/* Reopens the device and loads; where that fails, e->lost says why. Call with no sequence running or waiting and
   e->door write-locked. */
void mt_engine_renew(mt_engine *e);

/* Debugging: fills free pages and states with NaN, now and whenever one becomes free. See canary.c. */
void mt_engine_canary(mt_engine *e);

/* Chooses which sequences have how many rows in the step, and gives them pages: fills step->part. False when there is
   nothing to compute. */
bool mt_engine_plan(mt_engine *e, mt_step *step);

/* Divides the memory among cache, recurrent states and features, and has the device allocate them. weights: bytes of
   all mapped weights, the encoders' included. See memory.c. */
bool mt_engine_reserve(mt_engine *e, uint64_t weights, mt_error *err) MT_NODISCARD;

/* After a step: has the model's drafting head, or the drafter, guess tokens for the next one, where it should. See
   guess.c. */
void mt_engine_guess(mt_engine *e, mt_step *step);

/* Runs the slices of jobs, makes the batch of what was planned, and launches the step. */
void mt_engine_begin(mt_engine *e, mt_step *step);

/* Has the device run the model over the step's batch and choose tokens. Does not wait for it. */
void mt_engine_launch(mt_engine *e, mt_step *step);

/* Waits for the step and its tokens; learns what the step took. */
void mt_engine_finish(mt_engine *e, mt_step *step);

/* Sends the step's tokens to their requests, ends sequences that are complete, then calls mt_engine_guess. */
void mt_engine_settle(mt_engine *e, mt_step *step);

/* Whether steps can be begun ahead at all; the rest depends on the running sequences. */
bool mt_engine_can_go_ahead(const mt_engine *e);

/* Begins the next step while this one runs, where all running answers can go on without the host; see ahead.c. */
bool mt_engine_go_ahead(mt_engine *e);

/* The step is settled: the one that was begun behind it is the step now. */
void mt_engine_step_on(mt_engine *e);

/* How many guesses could go with the next row of s: those that are made already, else from the text. See guess.c. */
size_t mt_engine_drafts(mt_engine *e, mt_sequence *s);

/* ---- jobs: job.c ---- */

void mt_job_init(mt_job *job, mt_cursor *cursor, void (*done)(mt_engine *e, mt_job *j));

/* Adds a part; the first one begins the job. The caller starts the cursor afterwards. size: the weight of the part
   among the others, by which the job's time is charged to clients. */
void mt_job_add(mt_job *job, mt_request *request, double size);

void mt_job_clear(mt_job *job); /* after the last slice, or to give the job up */

/* Fills the job's candidate for the scheduler and returns it. first: the request whose priority and arrival the job
   has; NULL: the request of its first part. */
mt_candidate *mt_job_offer(mt_job *job, const mt_request *first, uint64_t now);

static inline bool mt_job_planned(const mt_job *job) /* whether the scheduler gave it a slice of this step */
{
    return job->count > 0 && job->candidate.worked > 0;
}

/* Runs the slice that the scheduler gave to each job. */
void mt_jobs_run(mt_engine *e);

/* ---- encoders: texts.c ---- */

/* Makes and frees the queues. */
void mt_texts_open(mt_engine *e);
void mt_texts_close(mt_engine *e);

/* Puts the encoders on the device, and takes them off again. */
bool mt_texts_load(mt_engine *e, mt_error *err) MT_NODISCARD;
void mt_texts_unload(mt_engine *e);

/* Ends all texts that wait or are in a job. */
void mt_texts_end(mt_engine *e, mt_finish finish, const mt_error *err);

/* Ends the texts that are cancelled, or all where `stopping`; then begins a job at each queue where texts wait and none
   is under way. */
void mt_texts_advance(mt_engine *e, bool stopping);

/* ---- lists: roster.c ---- */

/* Puts a sequence into the queue, by priority and arrival. */
void mt_engine_queue(mt_engine *e, mt_sequence *s);

/* Removes s from a list that contains it. */
void mt_engine_leave(mt_sequence **list, size_t *count, const mt_sequence *s);

/* Sends BEGUN for a sequence, once, as soon as it is known how much of its prompt was cached. */
void mt_engine_announce(mt_engine *e, mt_sequence *s);

/* Puts a running sequence back into the queue, at the place its arrival gives it. What it has computed stays in the
   prefix tree as long as there is room. */
void mt_engine_preempt(mt_engine *e, mt_sequence *s);

/* Ends a sequence that waits or runs. */
void mt_engine_end(mt_engine *e, mt_sequence *s, mt_finish finish, const mt_error *err);

/* ---- seats: turns.c ---- */

/* Sets how many of the free seats each client may take (mt_client_record.places). Where no seat is free, returns the
   sequence that should leave its seat to the client whose turn it is, which may take one seat then; NULL: none
   should. */
mt_sequence *mt_engine_share_seats(mt_engine *e, uint64_t now);

/* The sequence that goes back to the queue when no page is free: the youngest of the lowest priority, of the client
   with the most seats. */
mt_sequence *mt_engine_victim(const mt_engine *e);

/* The sequence that goes back to the queue because `to`, which has a seat, lacks `pages` pages and its client has fewer
   seats; NULL: there is none, or all of them together would not free enough. */
mt_sequence *mt_engine_yields_pages(const mt_engine *e, const mt_sequence *to, size_t pages);

/* ---- pictures: encode.c ---- */

/* How many positions of s, from `done` on, can be computed with the features that exist: SIZE_MAX where none are
   missing, 0 where s needs features before it can go on. Sets s->lacks_features, and s->missing where the request has
   pictures. running: pins the features that s will use, and unpins those of parts that it has passed. */
size_t mt_engine_media_reach(mt_engine *e, mt_sequence *s, size_t done, bool running);

/* Whether the tower's job encodes the part of a picture whose features s lacks. */
bool mt_engine_awaits(const mt_engine *e, const mt_sequence *s);

/* Whether the features that s lacks are being read from a tier. */
bool mt_engine_expects(const mt_engine *e, const mt_sequence *s);

/* Begins to read from the tiers what they have of the features that sequences lack. May evict features that no
   sequence has pinned. */
void mt_engine_fetch_features(mt_engine *e);

/* Starts a job of the tower for s, and small pictures of others with it, where there is room for the features.
   May evict features that no sequence has pinned. */
void mt_engine_encode_begin(mt_engine *e, mt_sequence *s);

/* The tower's job is done: its features become usable. Requests whose features are not finite are listed in
   e->pictures.unsound. */
void mt_engine_encoded(mt_engine *e, mt_job *job);

/* Unpins the features that s holds: it has ended or goes back to the queue. */
void mt_engine_unpin(mt_engine *e, mt_sequence *s);

/* A request ends: it no longer holds the feature cache's entries of its parts, and a job that reads its pictures is
   given up. Features that are complete stay in the feature cache as long as there is room. */
void mt_engine_forget(mt_engine *e, mt_request *r);

#endif
