/* Guesses at what an answer says next, so that one step may give several tokens. A guess counts only where it is what
   the sampler chooses in any case: guessing changes how fast an answer comes, never what it says. */
#ifndef MT_ENGINE_DRAFT_H
#define MT_ENGINE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "cache/tree.h"

typedef enum mt_speculation {
    MT_SPECULATE_OFF,
    MT_SPECULATE_NGRAM, /* what followed the last time that the last tokens stood there */
    MT_SPECULATE_MTP    /* what the model's own head or its drafter says, where it has one; else as above */
} mt_speculation;

typedef struct mt_draft {
    uint32_t token[MT_LIMIT_DRAFT];
    size_t count;
    double chance; /* that a guess is right, as it has been lately */
    /* what the client expects the answer to be; borrowed */
    const uint32_t *expected;
    size_t expected_count, at; /* at: how far the answer has come in it */
    size_t depth;              /* guesses that the head or the drafter is asked for */
} mt_draft;

void mt_draft_init(mt_draft *d, const uint32_t *expected, size_t expected_count);

/* Guesses at most `most` tokens after key[0..known), from what is expected or from what stands before. Media are never
   guessed. */
void mt_draft_guess(mt_draft *d, const mt_key *key, size_t known, size_t most);

/* The first half of that: false when the answer is not on the way of what is expected. */
bool mt_draft_follow(mt_draft *d, const mt_key *key, size_t known, size_t most);

/* `tried` of the guesses went into a step, and the first `right` of them were what was chosen. One that was not worth
   trying becomes so again after a while. */
void mt_draft_learn(mt_draft *d, size_t tried, size_t right);

#endif
