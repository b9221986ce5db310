/* Guesses tokens from the text itself (draft.h); a drafting head's guesses are made in guess.c. */
#include "engine/draft.h"

#include "sample/limits.h"

#define FIRST_CHANCE 0.5 /* of a new answer, that a guess is right */
#define LEARNED 0.125    /* weight of the newest guess in the running average */
#define FORGOTTEN 0.01   /* part of the way back to FIRST_CHANCE that an untried chance goes at each step */
#define ASKED_AGAIN 64   /* steps after which a head or a drafter that was right less often than the text is asked */
#define REACH 16384      /* positions before the end that are searched */
#define LONGEST 4        /* a match of so many tokens is best; shorter ones are used where there is none */
#define SHORTEST 2       /* tokens that must match at least */

void mt_draft_init(mt_draft *d, const uint32_t *expected, size_t expected_count)
{
    *d = (mt_draft){.expected = expected, .expected_count = expected_count};
    for (size_t i = 0; i < MT_DRAFT_SOURCES; i++)
        d->chance[i] = FIRST_CHANCE;
}

/* Whether the answer's last SHORTEST tokens equal those before position `at` of d->expected; fewer where `at` is
   smaller. */
static bool arrived(const mt_draft *d, const mt_key *key, size_t known, size_t at)
{
    for (size_t i = 1; i <= SHORTEST && i <= at; i++)
        if (key[known - i] != d->expected[at - i])
            return false;
    return at > 0;
}

/* Moves d->at to where the answer is in d->expected: first near where it was, then anywhere. False when it is
   nowhere. */
static bool follow(mt_draft *d, const mt_key *key, size_t known)
{
    for (size_t at = d->at; at < d->expected_count && at <= d->at + MT_LIMIT_DRAFT + 1; at++)
        if (arrived(d, key, known, at)) {
            d->at = at;
            return true;
        }
    for (size_t at = SHORTEST; at < d->expected_count; at++)
        if (arrived(d, key, known, at)) {
            d->at = at;
            return true;
        }
    return false;
}

/* How many of the last tokens stand before position `at` as well, at most LONGEST. */
static size_t agreeing(const mt_key *key, size_t known, size_t at)
{
    size_t n = 0;
    while (n < LONGEST && n < at && key[at - 1 - n] == key[known - 1 - n])
        n++;
    return n;
}

/* The position behind the longest match of the last tokens, the latest of equals; `known` when there is none. */
static size_t find(const mt_key *key, size_t known)
{
    size_t best = known, length = SHORTEST - 1;
    const size_t end = known > REACH ? known - REACH : 0;
    for (size_t at = known - 1; at > end && length < LONGEST; at--) {
        if (key[at - 1] != key[known - 1])
            continue;
        const size_t n = agreeing(key, known, at);
        if (n > length) {
            length = n;
            best = at;
        }
    }
    return best;
}

bool mt_draft_follow(mt_draft *d, const mt_key *key, size_t known, size_t most)
{
    d->count = 0;
    d->source = MT_DRAFT_TEXT;
    if (most == 0 || known < SHORTEST + 1 || !follow(d, key, known))
        return false;
    while (d->count < most && d->count < MT_LIMIT_DRAFT && d->at + d->count < d->expected_count) {
        d->token[d->count] = d->expected[d->at + d->count];
        d->count++;
    }
    return true;
}

void mt_draft_guess(mt_draft *d, const mt_key *key, size_t known, size_t most)
{
    if (mt_draft_follow(d, key, known, most) || most == 0 || known < SHORTEST + 1)
        return;
    const size_t from = find(key, known);
    if (from == known)
        return;
    /* where the text repeats itself, the guesses continue with guesses */
    for (size_t i = 0; i < most && i < MT_LIMIT_DRAFT; i++) {
        const mt_key next = from + i < known ? key[from + i] : d->token[from + i - known];
        if (next & MT_KEY_MEDIUM)
            return;
        d->token[d->count++] = next;
    }
}

bool mt_draft_prefers_text(const mt_draft *d)
{
    return d->chance[MT_DRAFT_MODEL] < d->chance[MT_DRAFT_TEXT] && d->unasked < ASKED_AGAIN;
}

/* The chance of a source that was not tried. */
static double recovered(double chance)
{
    return chance < FIRST_CHANCE ? chance + FORGOTTEN * (FIRST_CHANCE - chance) : chance;
}

static double learned(double chance, size_t tried, size_t right)
{
    for (size_t i = 0; i < right; i++)
        chance += LEARNED * (1 - chance);
    return right < tried ? chance - LEARNED * chance : chance;
}

void mt_draft_learn(mt_draft *d, size_t tried, size_t right)
{
    for (size_t i = 0; i < MT_DRAFT_SOURCES; i++)
        d->chance[i] = tried > 0 && i == d->source ? learned(d->chance[i], tried, right) : recovered(d->chance[i]);
    d->unasked++;
    d->count = 0;
}
