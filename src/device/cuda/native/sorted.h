/* Parameters of the kernels of `native` that also multiply rows sorted by expert (experts/experts.c). Then each tile of
   packed rows is a share of one expert's rows, and rows that are not packed are in the sorted order. */
#ifndef MT_DEVICE_CUDA_NATIVE_SORTED_H
#define MT_DEVICE_CUDA_NATIVE_SORTED_H

#include "device/cuda/params.h"

typedef struct mt_cuda_native_few { /* few rows (native/native_few.cuh) */
    mt_cuda_native p;               /* first, as native.c takes one for the other */
    mt_cuda_shares shares[2]; /* experts in place of p.w[0] and p.w[1], which are one of each; 0: there are none */
} mt_cuda_native_few;

typedef struct mt_cuda_native_packing {
    mt_cuda_pack p;       /* index: of sorted rows; 0: they are x */
    mt_cuda_shares share; /* its shares are packed; count 0: rows are in order */
} mt_cuda_native_packing;

#endif
