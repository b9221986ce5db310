/* Whether an answer goes in circles: the same few tokens again and again. Depends on its tokens alone, so an answer
   ends at the same one whether it was computed alone or among others, guessed ahead or not. */
#ifndef MT_ENGINE_REPEAT_H
#define MT_ENGINE_REPEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"

/* Zeroed at first. */
typedef struct mt_repeat {
    size_t count;                          /* tokens so far */
    uint32_t last[MT_LIMIT_REPEAT_PERIOD]; /* of them, token i at i % MT_LIMIT_REPEAT_PERIOD */
    uint32_t same[MT_LIMIT_REPEAT_PERIOD]; /* [p - 1]: how many in a row are the one that stood p before them */
} mt_repeat;

/* Adds a token. True when the last ones, `limit` or more of them, all stand for the second time or more in a cycle of
   at most MT_LIMIT_REPEAT_PERIOD tokens, which has come at least three times: a phrase that is said twice is none. */
bool mt_repeat_add(mt_repeat *repeat, uint32_t token, uint32_t limit);

#endif
