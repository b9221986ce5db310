/* The engine's insides, shared by the files of this folder. Everything here is the engine thread's alone, except what
   is said to be otherwise. */
#ifndef MT_ENGINE_INSIDE_H
#define MT_ENGINE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/queue.h"
#include "engine/clients.h"
#include "engine/engine.h"
#include "engine/sequence.h"

struct mt_engine {
    mt_device *dev;
    const mt_model_spec *spec;
    const mt_tokenizer *tokenizer;
    mt_engine_params params;
    size_t context; /* most positions of a sequence */
    mt_model *model;
    mt_tree *tree;
    mt_cost cost;
    mt_clients clients;

    mt_sequence **running, **waiting; /* waiting: by arrival */
    size_t running_count, waiting_count;
    uint64_t company; /* mt_clock_ns when requests last met */
    mt_stats stats;

    /* the step: arrays of the most it may have */
    mt_candidate **candidates, **order;
    mt_sequence **chosen; /* in the batch */
    size_t chosen_count;
    uint32_t *tokens, *wanted;
    mt_position *positions;
    mt_span *spans;
    size_t wanted_count, max_logits;
    mt_batch batch;
    const mt_tensor *logits;
    uint8_t *scratch; /* of the sampler, one a thread */
    size_t scratch_bytes;

    /* other threads' doors */
    pthread_t thread;
    mt_queue *inbox;
    atomic_size_t load; /* choices that wait or run */
    atomic_bool stopping;
    atomic_uint_fast64_t order_next;
    pthread_mutex_t lock; /* over what follows */
    mt_stats shown;
    mt_engine_row *rows;
    size_t row_count;
};

/* Chooses what the next step does and gives it pages: fills chosen. False when there is nothing to do. */
bool mt_engine_plan(mt_engine *e);

/* Runs it, learns what it took and hands out the tokens. */
void mt_engine_step(mt_engine *e);

/* Puts a sequence into the queue, by priority and arrival. */
void mt_engine_queue(mt_engine *e, mt_sequence *s);
void mt_engine_leave(mt_sequence **list, size_t *count, const mt_sequence *s); /* takes it out of a list it is in */

/* Ends a sequence that waits or runs. */
void mt_engine_end(mt_engine *e, mt_sequence *s, mt_finish finish, const mt_error *err);

#endif
