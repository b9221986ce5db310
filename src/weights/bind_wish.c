/* What every layout's file needs: whether a tensor fits what is wanted, what is said where it does not, and small parts
   of a mt_mat. */
#include "weights/bind_internal.h"

mt_mat mt_mat_plain(mt_dtype dtype, const uint8_t *data, size_t n, size_t k)
{
    size_t size = mt_dtype_size(dtype);
    mt_format format = dtype == MT_DTYPE_F32 ? MT_FORMAT_F32 : dtype == MT_DTYPE_F16 ? MT_FORMAT_F16 : MT_FORMAT_BF16;
    return (mt_mat){
        .format = format, .bits = (uint8_t)(size * 8), .n = n, .k = k, .w = data, .stride = k * size, .global = 1};
}

mt_scale_type mt_dtype_scale(mt_dtype dtype)
{
    switch (dtype) {
    case MT_DTYPE_F32: return MT_SCALE_F32;
    case MT_DTYPE_F16: return MT_SCALE_F16;
    case MT_DTYPE_BF16: return MT_SCALE_BF16;
    default: return MT_SCALE_NONE;
    }
}

size_t mt_wish_rows(const mt_wish *w)
{
    return (w->stack ? w->stack : 1) * w->n;
}

bool mt_wish_fits(const mt_wish *w, const mt_tensor_info *t, size_t rows, size_t cols)
{
    unsigned lead = w->stack > 0;
    return t->dims == lead + 2 && (!lead || t->shape[0] == w->stack) && t->shape[lead] == rows &&
           t->shape[lead + 1] == cols;
}

bool mt_wish_miss(const mt_wish *w, const char *what, const mt_tensor_info *t, const mt_tensor_info *companion)
{
    char wanted[MT_SHAPE_TEXT], found[MT_SHAPE_TEXT], with[MT_SHAPE_TEXT];
    const uint64_t shape[] = {w->stack, w->n, w->k};
    unsigned lead = w->stack > 0;
    mt_shape_text(wanted, shape + !lead, 2 + lead);
    if (!t)
        return mt_binder_miss(w->b, w->name, wanted, "absent");
    mt_shape_text(found, t->shape, t->dims);
    if (!companion)
        return mt_binder_miss(w->b, t->name, wanted, "found %s %s%s", t->dtype_name, found, what);
    mt_shape_text(with, companion->shape, companion->dims);
    return mt_binder_miss(w->b, t->name, wanted, "found %s %s%s%s %s", t->dtype_name, found, what,
                          companion->dtype_name, with);
}
