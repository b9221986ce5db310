/* The processes that compute one model together, on one machine or on several: ranks 0 to count - 1, started by mpirun.
   Rank 0 leads: it tells the others what to do, and they do the same as it. A matrix is cut over its outputs only, each
   rank computes its columns of a result, and all exchange them; so no sum is cut, and every bit is that of one process.

   What is exchanged goes from rank to rank, without collective calls of MPI: those do not say who is missing. After the
   first rank that does not answer nothing is exchanged any more; mt_ranks_well tells why. A rank other than 0 that
   finds another missing ends the process.

   One thread at a time uses the ranks: between mt_ranks_enter and mt_ranks_leave. */
#ifndef MT_RANKS_RANKS_H
#define MT_RANKS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

typedef struct mt_ranks mt_ranks;

extern const bool mt_ranks_present; /* whether this build has MPI */

/* How many processes mpirun has started together, as the environment tells; 1: this one was started by itself. */
size_t mt_ranks_started(void);

/* Finds the others; fine where there are none. seconds: what a rank is waited for within a step. Once, before there are
   other threads. False with a sentence. */
bool mt_ranks_join(double seconds, mt_error *err) MT_NODISCARD;

/* All of them; NULL: there is one, or mt_ranks_join was not called. */
mt_ranks *mt_ranks_all(void);

/* The end: rank 0 sends the others home. Where one is missing, all processes are ended with status 1. */
void mt_ranks_part(void);

size_t mt_ranks_count(const mt_ranks *ranks);
size_t mt_ranks_own(const mt_ranks *ranks);

/* Whether everybody has answered so far; false with a sentence that names who has not. */
bool mt_ranks_well(const mt_ranks *ranks, mt_error *err); /* NULL is fine */

/* From any thread: looks whether processes on this machine are still there, while nobody exchanges anything. Others are
   missed when they are needed. NULL is fine. */
void mt_ranks_check(mt_ranks *ranks);

/* The first of `slices` slices that a rank has; it has those up to the next rank's first. Ranks with lower numbers have
   more, where they cannot all have as many. */
static inline size_t mt_ranks_first(size_t slices, size_t rank, size_t count)
{
    return (slices * rank + count - 1) / count;
}

void mt_ranks_enter(mt_ranks *ranks);
void mt_ranks_leave(mt_ranks *ranks);

/* Room for exchanges of so many floats; not during a step. */
void mt_ranks_reserve(mt_ranks *ranks, size_t floats);

/* Of m rows of `cols` floats, `stride` apart, each rank has computed the columns of its slices. Afterwards every rank
   has all of them, or rank 0 alone where `all` is not set. */
void mt_ranks_share(mt_ranks *ranks, float *data, size_t stride, size_t cols, size_t slices, size_t m, bool all);

/* Rank 0: tells the others something. They: wait for it, for as long as it takes; valid until the next call. NULL when
   rank 0 is gone. */
void mt_ranks_tell(mt_ranks *ranks, const uint32_t *words, size_t count);
const uint32_t *mt_ranks_hear(mt_ranks *ranks, size_t *count);

/* The others: whether what they were told worked out. Rank 0: waits for that; false with the sentence of the first with
   which it did not. Loading takes its time: they are waited for longer than within a step. */
void mt_ranks_answer(mt_ranks *ranks, const mt_error *err);
bool mt_ranks_agree(mt_ranks *ranks, mt_error *err) MT_NODISCARD;

/* From any thread: what this rank has exchanged. */
typedef struct mt_ranks_stats {
    uint64_t sent, received; /* bytes */
    uint64_t exchanges;
    uint64_t waited_ns; /* for others, within exchanges */
} mt_ranks_stats;

void mt_ranks_count_up(const mt_ranks *ranks, mt_ranks_stats *out);

#endif
