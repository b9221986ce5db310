/* Greedy generation for a fixed set of sequences that run side by side: prompts in chunks, then a token each a step. */
#ifndef MT_ENGINE_GENERATE_H
#define MT_ENGINE_GENERATE_H

#include "device/device.h"
#include "models/model.h"
#include "sample/logprobs.h"

/* What one sequence asks and gets. */
typedef struct mt_generation {
    const uint32_t *prompt;
    size_t prompt_len; /* at least 1 */
    size_t max_tokens;
    size_t top; /* logprobs reported a token, 0 to MT_LIMIT_TOP_LOGPROBS */
    /* Called once a token, in order; tops has `count` entries, chosen is the greedy choice. */
    void (*token)(void *ctx, const mt_logprob *chosen, const mt_logprob *tops, size_t count);
    void *ctx;
} mt_generation;

typedef struct mt_generator mt_generator;

typedef struct mt_generator_params {
    size_t sequences; /* most of them side by side */
    size_t positions; /* most positions of one of them, prompt and answer */
    size_t chunk;     /* most prompt tokens of one sequence in a step */
} mt_generator_params;

/* Loads the model of a bound checkpoint on a device. Borrows all it is given. Free with mt_generator_free. */
mt_generator *mt_generator_new(mt_device *dev, const mt_model_spec *spec, const mt_model_weights *weights,
                               const mt_generator_params *params, mt_error *err) MT_NODISCARD;
void mt_generator_free(mt_generator *g);

/* Runs `count` generations to their ends. False with a sentence when a request does not fit or the model's answer
   is not finite. */
bool mt_generator_run(mt_generator *g, const mt_generation *requests, size_t count, mt_error *err) MT_NODISCARD;

#endif
