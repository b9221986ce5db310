/* Ranks: the processes that compute one model together, on one machine or several; rank 0 to count - 1, started by
   mpirun. Rank 0 leads: it tells the others what to do, and they do the same as it. A matrix is divided over its
   outputs only: each rank computes its columns of a result, and all exchange them. So no sum is divided, and every bit
   is the same as in one process.

   Messages go from rank to rank, without collective calls of MPI, as those do not tell which rank is missing. Once a
   rank does not answer, nothing is exchanged any more, and mt_ranks_well tells why. A rank other than 0 that finds
   another missing ends its process.

   One thread at a time uses the ranks: between mt_ranks_enter and mt_ranks_leave. */
#ifndef MT_RANKS_RANKS_H
#define MT_RANKS_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

typedef struct mt_ranks mt_ranks;

extern const bool mt_ranks_present; /* false in a build without MPI */

/* How many processes mpirun has started, by the environment; 1: this one was started alone. */
size_t mt_ranks_started(void);

/* Connects to the other ranks; fine where there are none. seconds: how long a rank may take within a step. Call once,
   before there are other threads. False with a sentence. */
bool mt_ranks_join(double seconds, mt_error *err) MT_NODISCARD;

/* The ranks of this process; NULL: there is one rank, or mt_ranks_join was not called. */
mt_ranks *mt_ranks_all(void);

/* At the end: rank 0 tells the others to end. Where one is missing, all processes are ended with status 1. */
void mt_ranks_part(void);

/* The number of ranks, and this rank's number. */
size_t mt_ranks_count(const mt_ranks *ranks);
size_t mt_ranks_own(const mt_ranks *ranks);

/* Whether all ranks have answered so far; false with a sentence that names the missing one. */
bool mt_ranks_well(const mt_ranks *ranks, mt_error *err); /* NULL is fine */

/* From any thread: checks whether ranks on this machine still run, while nothing is exchanged. Others are found missing
   when they are needed. NULL is fine. */
void mt_ranks_check(mt_ranks *ranks);

/* The first of `slices` slices that a rank has; it has those up to the next rank's first. Where they cannot be divided
   evenly, lower ranks have more. */
static inline size_t mt_ranks_first(size_t slices, size_t rank, size_t count)
{
    return (slices * rank + count - 1) / count;
}

void mt_ranks_enter(mt_ranks *ranks);
void mt_ranks_leave(mt_ranks *ranks);

/* Allocates for exchanges of so many floats; not during a step. */
void mt_ranks_reserve(mt_ranks *ranks, size_t floats);

/* Of m rows of `cols` floats, `stride` apart, each rank has computed the columns of its slices. Exchanges them:
   afterwards every rank has all columns or, where `all` is false, rank 0 has. */
void mt_ranks_share(mt_ranks *ranks, float *data, size_t stride, size_t cols, size_t slices, size_t m, bool all);

/* Rank 0: sends a message to the others. Other ranks: wait for it without limit; the result is valid until the next
   call; NULL when rank 0 is gone. */
void mt_ranks_tell(mt_ranks *ranks, const uint32_t *words, size_t count);
const uint32_t *mt_ranks_hear(mt_ranks *ranks, size_t *count);

/* Other ranks: answer whether they could do what the message said. Rank 0: waits for these answers; false with the
   first rank's sentence that could not. Loading takes long, so the wait is longer than within a step. */
void mt_ranks_answer(mt_ranks *ranks, const mt_error *err);
bool mt_ranks_agree(mt_ranks *ranks, mt_error *err) MT_NODISCARD;

/* From any thread: counters of this rank. */
typedef struct mt_ranks_stats {
    uint64_t sent, received; /* bytes */
    uint64_t exchanges;
    uint64_t waited_ns; /* waiting for others within exchanges */
} mt_ranks_stats;

void mt_ranks_count_up(const mt_ranks *ranks, mt_ranks_stats *out);

#endif
