#include "engine/draft.h"

#define FIRST_CHANCE 0.5
#define LEARNED 0.125 /* of what a guess shows */
#define FORGOTTEN 0.01
#define REACH 16384 /* positions that are looked at */
#define LONGEST 4   /* tokens that have to stand there again, to be preferred over a later place with fewer */
#define SHORTEST 2

void mt_draft_init(mt_draft *d, const uint32_t *expected, size_t expected_count)
{
    *d = (mt_draft){.chance = FIRST_CHANCE, .expected = expected, .expected_count = expected_count};
}

/* Whether the last tokens are those before position `at` of what is expected. One is enough at its beginning. */
static bool arrived(const mt_draft *d, const mt_key *key, size_t known, size_t at)
{
    for (size_t i = 1; i <= SHORTEST && i <= at; i++)
        if (key[known - i] != d->expected[at - i])
            return false;
    return at > 0;
}

/* Where the answer has come to in what is expected: near where it was, or anywhere. */
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

/* How many of the last tokens stand before position `at` too, at most LONGEST. */
static size_t agreeing(const mt_key *key, size_t known, size_t at)
{
    size_t n = 0;
    while (n < LONGEST && n < at && key[at - 1 - n] == key[known - 1 - n])
        n++;
    return n;
}

/* The position after the latest place where the most of the last tokens stand; `known` when there is none. */
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
    /* what repeats itself goes on beyond the end of what is known */
    for (size_t i = 0; i < most && i < MT_LIMIT_DRAFT; i++) {
        const mt_key next = from + i < known ? key[from + i] : d->token[from + i - known];
        if (next & MT_KEY_MEDIUM)
            return;
        d->token[d->count++] = next;
    }
}

void mt_draft_learn(mt_draft *d, size_t tried, size_t right)
{
    if (tried == 0) {
        if (d->chance < FIRST_CHANCE)
            d->chance += FORGOTTEN * (FIRST_CHANCE - d->chance);
        return;
    }
    for (size_t i = 0; i < right; i++)
        d->chance += LEARNED * (1 - d->chance);
    if (right < tried)
        d->chance -= LEARNED * d->chance;
}
