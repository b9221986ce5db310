/* AWQ in its layout "gemm": qweight [k, n / 8], qzeros [groups, n / 8] and scales [groups, n]. A word has eight
   neighbouring outputs in the order 0, 2, 4, 6, 1, 3, 5, 7. */
#include <string.h>

#include "weights/bind_internal.h"

enum { BITS = 4, EACH = 8 /* outputs of a word */ };

typedef struct awq {
    const mt_wish *w;
    const mt_tensor_info *codes, *zeros, *scales;
} awq;

static uint32_t word_at(const mt_tensor_info *t, size_t i)
{
    uint32_t word;
    memcpy(&word, t->data + 4 * i, sizeof(word));
    return word;
}

/* The code of output i of the eight. */
static uint32_t code(uint32_t word, size_t i)
{
    static const uint8_t shifts[EACH] = {0, 16, 4, 20, 8, 24, 12, 28};
    return word >> shifts[i] & 15;
}

static void lay(const void *ctx, uint8_t *to, size_t stride, size_t first, size_t rows)
{
    const awq *a = ctx;
    const size_t words = a->w->n / EACH;
    memset(to, 0, rows * stride);
    for (size_t k = 0; k < a->w->k; k++) {
        const uint32_t word = word_at(a->codes, k * words + first / EACH);
        for (size_t r = 0; r < rows; r++)
            to[r * stride + k / 2] |= (uint8_t)(code(word, r) << k % 2 * BITS);
    }
}

static void pair(const void *ctx, size_t row, size_t group, float *scale, float *zero)
{
    const awq *a = ctx;
    *scale = mt_tensor_float(a->scales, group * a->w->n + row);
    *zero = (float)code(word_at(a->zeros, group * (a->w->n / EACH) + row / EACH), row % EACH);
}

bool mt_bind_awq(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    mt_binder *b = w->b;
    const mt_tensor_info *scales = mt_binder_take(b, w->name, ".scales"),
                         *zeros = mt_binder_take(b, w->name, ".qzeros");
    const awq a = {.w = w, .codes = t, .zeros = zeros, .scales = scales};
    mt_binder_copied(b, t);
    if (!scales || !zeros)
        return mt_wish_miss(w, scales ? " without qzeros" : " without scales", t, NULL);
    const size_t groups = scales->shape[0], group = mt_group_size(w->k, groups, b->quant.group);
    if (!mt_wish_fits(w, scales, groups, w->n) || group == 0 || mt_dtype_size(scales->dtype) == 0)
        return mt_wish_miss(w, " with scales ", t, scales);
    if (!mt_wish_fits(w, zeros, groups, w->n / EACH) || zeros->dtype != MT_DTYPE_I32)
        return mt_wish_miss(w, " with qzeros ", t, zeros);
    const mt_integers in = {.w = w,
                            .bits = BITS,
                            .group = group,
                            .dtype = scales->dtype,
                            .lay = lay,
                            .lay_rows = EACH,
                            .pair = pair,
                            .ctx = &a};
    return mt_bind_integers(&in, out);
}
