/* Drafting: guesses at the next tokens of an answer, so that one step may give several. A guess is used only where the
   sampler chooses the same token: guessing changes how fast an answer comes, never what it says. */
#ifndef MT_ENGINE_DRAFT_H
#define MT_ENGINE_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/text.h"
#include "sample/limits.h"

typedef enum mt_speculation {
    MT_SPECULATE_OFF,
    MT_SPECULATE_NGRAM, /* the tokens that followed when the last few tokens occurred before */
    MT_SPECULATE_MTP /* the model's own head or its drafter guesses, where there is one; else as MT_SPECULATE_NGRAM */
} mt_speculation;

typedef enum mt_draft_source {
    MT_DRAFT_TEXT,  /* what the client expects, or what followed the last few tokens earlier in the text */
    MT_DRAFT_MODEL, /* the model's own head or its drafter */
    MT_DRAFT_SOURCES
} mt_draft_source;

typedef struct mt_draft {
    uint32_t token[MT_LIMIT_DRAFT]; /* the guesses */
    size_t count;
    mt_draft_source source;          /* where these guesses come from */
    double chance[MT_DRAFT_SOURCES]; /* how likely a guess of each source is right, averaged over its last ones */
    /* mt_request.expected; borrowed */
    const uint32_t *expected;
    size_t expected_count, at; /* at: the position in `expected` that the answer has reached */
    size_t depth;              /* how many guesses the head or the drafter is asked for */
    size_t unasked;            /* steps since the head or the drafter was asked for guesses */
} mt_draft;

void mt_draft_init(mt_draft *d, const uint32_t *expected, size_t expected_count);

/* Guesses up to `most` tokens after key[0..known): from what the client expects, else by looking for the last tokens
   earlier in the text. Positions of pictures are never guessed. Sets token, count and source. */
void mt_draft_guess(mt_draft *d, const mt_key *key, size_t known, size_t most);

/* The same only from what the client expects. False when the answer does not follow `expected`. */
bool mt_draft_follow(mt_draft *d, const mt_key *key, size_t known, size_t most);

/* Whether guesses from the text come before those of the head or the drafter: they have been right more often lately.
   Now and then the head or the drafter comes first all the same. */
bool mt_draft_prefers_text(const mt_draft *d);

/* A step of the answer is over: `tried` guesses had rows in it, the first `right` of them proved right, and there are
   none left. Adjusts the chance of their source. Of a source that was not tried, a low chance rises slowly, so that it
   is tried again now and then. */
void mt_draft_learn(mt_draft *d, size_t tried, size_t right);

#endif
