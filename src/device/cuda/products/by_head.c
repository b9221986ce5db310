/* Products by head on the host's side: which kernel runs, on how many blocks. */
#include "device/cuda/products/by_head.h"

#include <assert.h>

#include "device/cuda/cuda.h"

#define THREADS 256
#define FEW 8 /* rows of kernels for few */

static void launch(mt_device *dev, mt_cuda_kernel kernel, size_t columns, size_t heads, uint32_t rows,
                   const mt_cuda_by_head *p)
{
    mt_cuda_launch(dev, kernel, columns, heads, (p->m + rows - 1) / rows, THREADS, 0, p);
}

void mt_cuda_op_matmul_heads(mt_device *dev, mt_tensor *y, size_t y_dim, const mt_weight *w, mt_head_rows how,
                             const mt_tensor *x, size_t x_dim, size_t m)
{
    const mt_cuda_by_head p = {.y = y->m,
                               .x = x->m,
                               .w = w->d,
                               .m = (uint32_t)m,
                               .first = (uint32_t)how.first,
                               .step = (uint32_t)how.step,
                               .rows = (uint32_t)how.rows,
                               .x_dim = (uint32_t)x_dim,
                               .y_dim = (uint32_t)y_dim,
                               .rounded = w->class == MT_CLASS_B,
                               .wide = w->mat.bits == 8};
    const bool few = m <= FEW;
    assert(!w->d.bias && how.first + (how.heads - 1) * how.step + how.rows <= w->mat.n);
    if (how.across) {
        launch(dev, few ? MT_K_heads_across_rows8 : MT_K_heads_across_rows64,
               (p.w.k + MT_CUDA_BY_HEAD_K - 1) / MT_CUDA_BY_HEAD_K, how.heads, few ? FEW : 64, &p);
    } else if (w->class == MT_CLASS_Q) {
        const bool narrow = p.w.kind == MT_CUDA_CODES4;
        const mt_cuda_kernel kernel = narrow ? few ? MT_K_heads_w4_rows8 : MT_K_heads_w4_rows32
                                      : few  ? MT_K_heads_w8_rows8
                                             : MT_K_heads_w8_rows32;
        /* a head may begin within a tile of 16 */
        launch(dev, kernel, (p.rows + 15 + 15 + MT_CUDA_BY_HEAD_CODES - 1) / MT_CUDA_BY_HEAD_CODES, how.heads,
               few ? FEW : 32, &p);
    } else {
        launch(dev, few ? MT_K_heads_f32_rows8 : MT_K_heads_f32_rows64,
               (p.rows + MT_CUDA_BY_HEAD_COLUMNS - 1) / MT_CUDA_BY_HEAD_COLUMNS, how.heads, few ? FEW : 64, &p);
    }
}
