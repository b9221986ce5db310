/* Detects an answer that repeats the same few tokens over and over. Depends on the answer's tokens alone, so the answer
   ends at the same token whether it was computed alone or with others, guessed ahead or not. */
#ifndef MT_ENGINE_REPEAT_H
#define MT_ENGINE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/limits.h"

/* Zeroed at the start of an answer. */
typedef struct mt_repeat {
    size_t count;                          /* tokens so far */
    uint32_t last[MT_LIMIT_REPEAT_PERIOD]; /* the last tokens: token i is at i % MT_LIMIT_REPEAT_PERIOD */
    /* [p - 1]: length of the run of last tokens that each equal the token p before them */
    uint32_t same[MT_LIMIT_REPEAT_PERIOD];
} mt_repeat;

/* Adds a token. True when the answer's last tokens repeat a cycle of at most MT_LIMIT_REPEAT_PERIOD tokens: the cycle
   occurred at least three times, and its repetitions make up `limit` tokens or more. A phrase that occurs twice is not
   counted. */
bool mt_repeat_add(mt_repeat *repeat, uint32_t token, uint32_t limit);

#endif
