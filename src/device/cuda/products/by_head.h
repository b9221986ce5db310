/* Parameters of products by head (products/by_head.cu). */
#ifndef MT_DEVICE_CUDA_PRODUCTS_BY_HEAD_H
#define MT_DEVICE_CUDA_PRODUCTS_BY_HEAD_H

#include "device/cuda/params.h"

/* Head h of y, from column h * y_dim on, is the product of rows [first + h * step, .. + rows) of w, or of their
   transpose, with head h of x. */
typedef struct mt_cuda_by_head {
    mt_cuda_mat y, x;
    mt_cuda_weight w;
    uint32_t m, first, step, rows, x_dim, y_dim;
    uint32_t rounded; /* x is rounded to bf16 */
    uint32_t wide;    /* codes have 8 bits */
} mt_cuda_by_head;

#define MT_CUDA_BY_HEAD_K 64       /* columns of a block that multiplies transposed rows */
#define MT_CUDA_BY_HEAD_COLUMNS 32 /* rows of w of a block that multiplies in fp32 */
#define MT_CUDA_BY_HEAD_CODES 128  /* rows of w of a block that multiplies codes */

#endif
