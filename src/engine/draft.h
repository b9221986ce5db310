/* Drafting: guesses at the next tokens of an answer, so that one step may give several. A guess is used only where the
   sampler chooses the same token: guessing changes how fast an answer comes, never what it says. */
#ifndef MT_ENGINE_DRAFT_H
#define MT_ENGINE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "cache/tree.h"

typedef enum mt_speculation {
    MT_SPECULATE_OFF,
    MT_SPECULATE_NGRAM, /* the tokens that followed when the last few tokens occurred before */
    MT_SPECULATE_MTP /* the model's own head or its drafter guesses, where there is one; else as MT_SPECULATE_NGRAM */
} mt_speculation;

typedef struct mt_draft {
    uint32_t token[MT_LIMIT_DRAFT]; /* the guesses */
    size_t count;
    double chance; /* how likely a guess is right, averaged over the last ones */
    /* mt_request.expected; borrowed */
    const uint32_t *expected;
    size_t expected_count, at; /* at: the position in `expected` that the answer has reached */
    size_t depth;              /* how many guesses the head or the drafter is asked for */
} mt_draft;

void mt_draft_init(mt_draft *d, const uint32_t *expected, size_t expected_count);

/* Guesses up to `most` tokens after key[0..known): from what the client expects, else by looking for the last tokens
   earlier in the text. Positions of pictures are never guessed. Sets token and count. */
void mt_draft_guess(mt_draft *d, const mt_key *key, size_t known, size_t most);

/* Guesses only from what the client expects. False when the answer does not follow `expected`. */
bool mt_draft_follow(mt_draft *d, const mt_key *key, size_t known, size_t most);

/* `tried` guesses had rows in a step, and the first `right` of them proved right. Adjusts chance; a chance too low to
   be tried rises slowly again. */
void mt_draft_learn(mt_draft *d, size_t tried, size_t right);

#endif
