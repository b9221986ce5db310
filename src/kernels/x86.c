/* Which kernels each x86-64 level has. A level replaces what the one below it gave. */
#include "kernels/levels.h"

#if defined(__x86_64__)

void mt_kernels_init_x86(mt_kernels *k)
{
    if (!(k->cpu & MT_CPU_AVX2))
        return;

    if (!(k->cpu & MT_CPU_AVX512))
        return;

    if (!(k->cpu & MT_CPU_AVX512VNNI))
        return;
}

#endif
