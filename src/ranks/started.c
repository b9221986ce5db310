/* How many ranks were started (ranks.h); separate, as it works without MPI. */
#include <stdlib.h>

#include "ranks/ranks.h"

/* Reads the variables of Open MPI, and of others that use the PMI interface. */
size_t mt_ranks_started(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        const char *text = getenv(names[i]);
        const unsigned long count = text ? strtoul(text, NULL, 10) : 0;
        if (count > 0)
            return count;
    }
    return 1;
}
