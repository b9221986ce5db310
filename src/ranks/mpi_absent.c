/* Replaces mpi.c in a build without MPI: there is one rank, and starting several is an error. */
#include <assert.h>

#include "ranks/ranks.h"

const bool mt_ranks_present = false;

bool mt_ranks_join(double seconds, mt_error *err)
{
    (void)seconds;
    return mt_ranks_started() == 1 ||
           mt_fail(err, MT_E_UNSUPPORTED,
                   "%zu processes were started together, and this motet was built without MPI: start one, or build it "
                   "with -Dmpi=enabled",
                   mt_ranks_started());
}

mt_ranks *mt_ranks_all(void)
{
    return NULL;
}

void mt_ranks_part(void)
{
}

size_t mt_ranks_count(const mt_ranks *ranks)
{
    (void)ranks;
    return 1;
}

size_t mt_ranks_own(const mt_ranks *ranks)
{
    (void)ranks;
    return 0;
}

bool mt_ranks_well(const mt_ranks *ranks, mt_error *err)
{
    (void)ranks, (void)err;
    return true;
}

void mt_ranks_check(mt_ranks *ranks)
{
    (void)ranks;
}

void mt_ranks_enter(mt_ranks *ranks)
{
    (void)ranks;
}

void mt_ranks_leave(mt_ranks *ranks)
{
    (void)ranks;
}

void mt_ranks_reserve(mt_ranks *ranks, size_t floats)
{
    (void)ranks, (void)floats;
}

void mt_ranks_share(mt_ranks *ranks, float *data, size_t stride, size_t cols, size_t slices, size_t m, bool all)
{
    (void)ranks, (void)data, (void)stride, (void)cols, (void)slices, (void)m, (void)all;
}

void mt_ranks_tell(mt_ranks *ranks, const uint32_t *words, size_t count)
{
    (void)ranks, (void)words, (void)count;
}

const uint32_t *mt_ranks_hear(mt_ranks *ranks, size_t *count)
{
    (void)ranks;
    *count = 0;
    return NULL;
}

void mt_ranks_answer(mt_ranks *ranks, const mt_error *err)
{
    (void)ranks, (void)err;
}

bool mt_ranks_agree(mt_ranks *ranks, mt_error *err)
{
    (void)ranks, (void)err;
    return true;
}

void mt_ranks_count_up(const mt_ranks *ranks, mt_ranks_stats *out)
{
    (void)ranks;
    *out = (mt_ranks_stats){0};
}
