/* GPTQ: qweight [k * bits / 32, n], where a column is the bit stream of an output row; qzeros [groups, n * bits / 32];
   scales [groups, n]; g_idx [k], the group of each column of k. Rows of AFFINE are the same streams, transposed. */
#include <string.h>

#include "weights/bind_internal.h"

enum { LAY_ROWS = 16 /* words of a cache line */ };

typedef struct gptq {
    const mt_wish *w;
    const mt_tensor_info *codes, *zeros, *scales;
    unsigned bits;
    const uint32_t *add; /* to stored words of zeros: [3], by turns */
    uint32_t add_each;   /* to each zero */
} gptq;

static uint32_t word_at(const uint8_t *p, size_t i)
{
    uint32_t word;
    memcpy(&word, p + 4 * i, sizeof(word));
    return word;
}

static void lay(const void *ctx, uint8_t *to, size_t stride, size_t first, size_t rows)
{
    const gptq *q = ctx;
    const size_t words = q->codes->shape[0], n = q->w->n;
    for (size_t i = 0; i < words; i++) {
        for (size_t r = 0; r < rows; r++) {
            const uint32_t word = word_at(q->codes->data, i * n + first + r);
            memcpy(to + r * stride + 4 * i, &word, sizeof(word));
        }
    }
}

/* Element i of a stream of words, to each of which its constant is added first, and 1 to elements. */
static uint32_t stored_zero(const gptq *q, const uint8_t *stream, size_t i)
{
    const size_t bit = i * q->bits, at = bit / 32, shift = bit % 32;
    uint64_t both = word_at(stream, at) + q->add[at % 3];
    if (shift + q->bits > 32)
        both = (uint32_t)both | (uint64_t)(uint32_t)(word_at(stream, at + 1) + q->add[(at + 1) % 3]) << 32;
    return (uint32_t)((both >> shift) + q->add_each) & ((1u << q->bits) - 1);
}

static void pair(const void *ctx, size_t row, size_t group, float *scale, float *zero)
{
    const gptq *q = ctx;
    *scale = mt_tensor_float(q->scales, group * q->w->n + row);
    *zero = (float)(1u << (q->bits - 1));
    if (q->zeros)
        *zero = (float)stored_zero(q, q->zeros->data + group * q->zeros->shape[1] * 4, row);
}

/* Version 1 stores zeros less 1. GPTQModel subtracts the ones from whole words, and adds them again, so that a zero of
   0 borrows from its neighbour; its constants for 3 bits are not a 1 for each element. Others subtract from each 3
   bits. */
static void set_addends(gptq *q, const mt_quant *quant)
{
    static const uint32_t none[3],
        two[] = {0x55555555, 0x55555555, 0x55555555}, three[] = {0x24924924, 0x92492492, 0x49249249},
        four[] = {0x11111111, 0x11111111, 0x11111111}, eight[] = {0x01010101, 0x01010101, 0x01010101};
    const bool each = q->bits == 3 && !quant->gptqmodel;
    q->add_each = !quant->zeros_whole && each;
    q->add = quant->zeros_whole || each ? none
             : q->bits == 2             ? two
             : q->bits == 3             ? three
             : q->bits == 4             ? four
                                        : eight;
}

/* Bits of an element, by the rows of qweight; 0 where none fit. */
static unsigned bits_of(const mt_wish *w, const mt_tensor_info *t)
{
    static const unsigned known[] = {4, 8, 3, 2};
    for (size_t i = 0; i < MT_COUNT(known); i++) {
        if (w->k * known[i] % 32 == 0 && t->dims == 2 && t->shape[0] == w->k * known[i] / 32 && t->shape[1] == w->n)
            return known[i];
    }
    return 0;
}

bool mt_bind_gptq(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    mt_binder *b = w->b;
    const mt_tensor_info *scales = mt_binder_take(b, w->name, ".scales"),
                         *zeros = mt_binder_take(b, w->name, ".qzeros");
    const mt_tensor_info *index = mt_binder_take(b, w->name, ".g_idx");
    gptq q = {.w = w, .codes = t, .zeros = b->quant.symmetric ? NULL : zeros, .scales = scales};
    q.bits = w->stack ? 0 : bits_of(w, t);
    mt_binder_copied(b, t);
    if (q.bits == 0)
        return mt_wish_miss(w, "", t, NULL);
    if (!scales || (!zeros && !b->quant.symmetric))
        return mt_wish_miss(w, scales ? " without qzeros" : " without scales", t, NULL);
    set_addends(&q, &b->quant);
    const size_t groups = scales->shape[0], group = mt_group_size(w->k, groups, b->quant.group);
    if (!mt_wish_fits(w, scales, groups, w->n) || group == 0 || mt_dtype_size(scales->dtype) == 0)
        return mt_wish_miss(w, " with scales ", t, scales);
    if (q.zeros &&
        (!mt_wish_fits(w, zeros, groups, w->n * q.bits / 32) || w->n * q.bits % 32 || zeros->dtype != MT_DTYPE_I32))
        return mt_wish_miss(w, " with qzeros ", t, zeros);
    mt_integers in = {.w = w,
                      .bits = q.bits,
                      .group = group,
                      .dtype = scales->dtype,
                      .symmetric = !q.zeros,
                      .lay = lay,
                      .lay_rows = LAY_ROWS,
                      .pair = pair,
                      .ctx = &q};
    return mt_bind_group_index(w, index, group, groups, &in.group_of) && mt_bind_integers(&in, out);
}
