/* Parameters and sizes of Mamba2's kernels that others do not have (recurrent/mamba.cu). */
#ifndef MT_DEVICE_CUDA_RECURRENT_MAMBA_H
#define MT_DEVICE_CUDA_RECURRENT_MAMBA_H

#include "device/cuda/params.h"

typedef struct mt_cuda_time_steps {
    mt_cuda_mat y, x, rate, bias;
    float low, high;
} mt_cuda_time_steps;

#define MT_CUDA_MAMBA_WARPS 8 /* most warps of a block, each with some keys of a head's state */

/* Keys of a warp, and tokens of a chunk, of heads of up to 8 * 32 keys and of larger ones. */
#define MT_CUDA_MAMBA_KEYS(wide) ((wide) ? 128 : 32)
#define MT_CUDA_MAMBA_CHUNK(wide) ((wide) ? 4 : 8)

/* Bytes of a block's shared memory: two chunks of tokens a warp, and sums on their way to the next warp. */
#define MT_CUDA_MAMBA_SHARED(wide, warps) \
    ((warps)*MT_CUDA_MAMBA_CHUNK(wide) * 2 * (2 * MT_CUDA_MAMBA_KEYS(wide) + 32 + 4 + 32) * sizeof(float))

#endif
