/* Parameters of the kernels of latent attention (attention/latents.cu, latents_bf16.cu). */
#ifndef MT_DEVICE_CUDA_ATTENTION_LATENTS_H
#define MT_DEVICE_CUDA_ATTENTION_LATENTS_H

#include "device/cuda/params.h"

/* Keys of all heads, whose first `latent` elements are the values. */
typedef struct mt_cuda_latents {
    mt_cuda_attention p; /* first, as attention.cuh takes one for the other */
    uint64_t second;     /* of integers (mt_kv_parts): offset of the second vectors in a block */
    uint32_t latent;
    uint32_t stride[2]; /* of integers: elements of the latent's vector and of the other; 0: there is no other */
    uint32_t heads;     /* most query heads of a tile */
} mt_cuda_latents;

#define MT_CUDA_LATENT_ROWS 16     /* of a tile: tokens times heads */
#define MT_CUDA_LATENT_THREADS 512 /* a column of the values each */
#define MT_CUDA_LATENT_SHARED(stride, second) \
    (MT_CUDA_LATENT_ROWS * (2 * ((stride) + 16) + MT_KV_SEGMENT + 4 + (second)) * sizeof(float))

/* On tensor cores. */
#define MT_CUDA_LATENT_TILE 64
#define MT_CUDA_LATENT_WARPS 8
#define MT_CUDA_LATENT_TILE_SHARED(stride) \
    (MT_CUDA_LATENT_TILE * (((stride) + 8) * 2 + (MT_KV_SEGMENT + 8) * 2 + 2 * 4 * MT_CUDA_LATENT_WARPS + 24) + 64)

/* The last elements of each head of x, turned by the table, to the last of each head of y. */
typedef struct mt_cuda_ends {
    mt_cuda_mat y, x, table;
    uint32_t x_dim, y_dim, count, pairs;
} mt_cuda_ends;

#endif
