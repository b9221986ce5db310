/* Sampling settings of a request. docs/sampling.md says what each does and in which order. */
#ifndef MT_SAMPLE_SETTINGS_H
#define MT_SAMPLE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "sample/limits.h"

typedef struct mt_logit_bias {
    uint32_t id;
    float bias;
} mt_logit_bias;

/* A forbidden sequence of tokens: behind all but the last of them, the last is not chosen. */
typedef struct mt_bad_word {
    const uint32_t *ids;
    size_t count; /* 1 to MT_LIMIT_BAD_TOKENS */
} mt_bad_word;

/* The lists are borrowed as long as the settings are used. */
typedef struct mt_sample_settings {
    float temperature; /* below MT_SAMPLE_GREEDY_BELOW: the likeliest token is chosen */
    float top_p;
    float min_p;
    float typical_p;
    float presence_penalty, frequency_penalty; /* on generated tokens */
    float repetition_penalty;                  /* on prompt and generated tokens */
    uint32_t penalty_window;                   /* penalties count only the last so many tokens; 0: all */
    int32_t top_k;                             /* 0 and -1: off */
    int32_t logprobs;            /* -1: none; 0: of the chosen token; else also of so many likeliest tokens */
    const uint32_t *logprob_ids; /* where there are logprobs: of these tokens, in place of the likeliest */
    size_t logprob_count;        /* at most MT_LIMIT_TOP_LOGPROBS; 0: of the likeliest */
    uint32_t min_tokens;         /* before so many tokens, no stop id and no end token of the model is chosen */
    bool ignore_eos;             /* the model's end tokens do not end the answer */
    uint64_t seed;
    const mt_logit_bias *bias;
    size_t bias_count;
    const uint32_t *only; /* token mask: bit id % 32 of word id / 32 is set for tokens that may be chosen; NULL: all */
    const mt_bad_word *bad;
    size_t bad_count;
    const uint32_t *stop_ids; /* of the request */
    size_t stop_count;
    const uint32_t *eos_ids; /* the model's end tokens; ids outside the vocabulary are ignored */
    size_t eos_count;
} mt_sample_settings;

#define MT_SAMPLE_GREEDY_BELOW 1e-5f

/* Everything off: plain sampling at temperature 1, without logprobs. */
void mt_sample_settings_init(mt_sample_settings *s);

/* False with a sentence that names the field, its value and its range. */
MT_NODISCARD bool mt_sample_settings_check(const mt_sample_settings *s, size_t vocab, mt_error *err);

bool mt_sample_settings_greedy(const mt_sample_settings *s);

/* Whether penalties need mt_counts, and whether the prompt counts for them. */
bool mt_sample_settings_penalise(const mt_sample_settings *s);
bool mt_sample_settings_penalise_prompt(const mt_sample_settings *s);

/* Whether this token ends the answer: a stop id, or an end token of the model that is not ignored. */
bool mt_sample_settings_ends(const mt_sample_settings *s, uint32_t token);

#endif
