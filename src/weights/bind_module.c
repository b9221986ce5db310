/* Makes a mt_mat of the tensors of one module: plain, FP8, MLX-quantised or MXFP4 blocks, single or stacked. */
#include <string.h>

#include "weights/bind_internal.h"
#include "weights/gguf_blocks.h"

/* The module that is wanted: `stack` matrices [n, k]. */
typedef struct wish {
    mt_binder *b;
    const char *name;
    size_t stack, n, k;
} wish;

mt_mat mt_mat_plain(mt_dtype dtype, const uint8_t *data, size_t n, size_t k)
{
    size_t size = mt_dtype_size(dtype);
    mt_format format = dtype == MT_DTYPE_F32 ? MT_FORMAT_F32 : dtype == MT_DTYPE_F16 ? MT_FORMAT_F16 : MT_FORMAT_BF16;
    return (mt_mat){
        .format = format, .bits = (uint8_t)(size * 8), .n = n, .k = k, .w = data, .stride = k * size, .global = 1};
}

static size_t scale_rows(const mt_mat *m, size_t rows)
{
    return m->format == MT_FORMAT_FP8 ? (rows + MT_FP8_BLOCK - 1) / MT_FP8_BLOCK : rows;
}

static mt_mat shift(const mt_mat *m, size_t rows, size_t of_scales)
{
    mt_mat out = *m;
    out.w += rows * m->stride;
    if (m->scales)
        out.scales += of_scales * m->scale_stride;
    if (m->biases)
        out.biases += of_scales * m->scale_stride;
    return out;
}

mt_mat mt_mat_item(const mt_mat *m, size_t i)
{
    mt_mat out = shift(m, i * m->n, i * scale_rows(m, m->n));
    out.global = m->globals ? m->globals[i] : m->global;
    return out;
}

mt_mat mt_mat_rows(const mt_mat *m, size_t first, size_t count)
{
    mt_mat out = shift(m, first, scale_rows(m, first));
    out.n = count;
    return out;
}

static mt_scale_type scale_type(mt_dtype dtype)
{
    switch (dtype) {
    case MT_DTYPE_F32: return MT_SCALE_F32;
    case MT_DTYPE_F16: return MT_SCALE_F16;
    case MT_DTYPE_BF16: return MT_SCALE_BF16;
    default: return MT_SCALE_NONE;
    }
}

static bool has_shape(const wish *w, const mt_tensor_info *t, size_t rows, size_t cols)
{
    unsigned lead = w->stack > 0;
    return t->dims == lead + 2 && (!lead || t->shape[0] == w->stack) && t->shape[lead] == rows &&
           t->shape[lead + 1] == cols;
}

static bool miss(const wish *w, const char *what, const mt_tensor_info *t, const mt_tensor_info *companion)
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

/* Copies a row with its columns in pieces that are in another order. */
static void copy_row(uint8_t *to, const uint8_t *from, const mt_tensor_fix *fix, size_t row_bytes, size_t element)
{
    const size_t piece = fix->columns ? fix->piece * element : row_bytes;
    for (size_t p = 0; p * piece < row_bytes; p++)
        memcpy(to + p * piece, from + (fix->columns ? fix->columns[p] : p) * piece, piece);
}

/* A copy of the tensor, put right; NULL: no memory. */
static const uint8_t *mend(const wish *w, const mt_tensor_info *t)
{
    const size_t size = mt_dtype_size(t->dtype), bytes = w->k * size;
    uint8_t *to = mt_binder_copy(w->b, w->n * bytes);
    mt_binder_copied(w->b, t);
    for (size_t r = 0; to && !w->b->headers_only && r < w->n; r++)
        copy_row(to + r * bytes, t->data + (t->fix->rows ? t->fix->rows[r] : r) * bytes, t->fix, bytes, size);
    return to;
}

static bool bind_plain(const wish *w, const mt_tensor_info *t, mt_mat *out)
{
    if (mt_dtype_size(t->dtype) == 0 || !has_shape(w, t, w->n, w->k))
        return miss(w, "", t, NULL);
    *out = mt_mat_plain(t->dtype, t->fix ? mend(w, t) : t->data, w->n, w->k);
    return out->w != NULL;
}

/* One scale for a whole matrix: copies it as often as a row has blocks; all rows share the copies. */
static const uint8_t *spread_scale(const wish *w, const mt_tensor_info *scale, size_t count)
{
    const size_t size = mt_dtype_size(scale->dtype);
    uint8_t *copies = mt_binder_copy(w->b, count * size);
    mt_binder_copied(w->b, scale);
    for (size_t i = 0; i < count && copies && !w->b->headers_only; i++)
        memcpy(copies + i * size, scale->data, size);
    return copies;
}

/* activation_scale is ignored: it is for kernels that round activations to FP8, and these here do not. */
static bool bind_fp8(const wish *w, const mt_tensor_info *t, mt_mat *out)
{
    const mt_tensor_info *scales = mt_binder_use(w->b, w->name, ".weight_scale_inv");
    if (!scales)
        scales = mt_binder_use(w->b, w->name, "_scale_inv");
    (void)mt_binder_use(w->b, w->name, ".activation_scale");
    if (!has_shape(w, t, w->n, w->k))
        return miss(w, "", t, NULL);
    if (!scales)
        return miss(w, " without weight_scale_inv", t, NULL);
    size_t rows = (w->n + MT_FP8_BLOCK - 1) / MT_FP8_BLOCK, cols = (w->k + MT_FP8_BLOCK - 1) / MT_FP8_BLOCK;
    const bool single = !w->stack && scales->dims == 0;
    if ((!single && !has_shape(w, scales, rows, cols)) || scale_type(scales->dtype) == MT_SCALE_NONE)
        return miss(w, " with weight_scale_inv ", t, scales);
    *out = (mt_mat){.format = MT_FORMAT_FP8,
                    .scale_type = scale_type(scales->dtype),
                    .bits = 8,
                    .group = MT_FP8_BLOCK,
                    .n = w->n,
                    .k = w->k,
                    .w = t->data,
                    .stride = w->k,
                    .scales = single ? spread_scale(w, scales, cols) : scales->data,
                    .scale_stride = single ? 0 : cols * mt_dtype_size(scales->dtype),
                    .global = 1};
    return out->scales != NULL;
}

/* As gpt-oss is published: bytes [.., k / 32, 16] and their exponents [.., k / 32]. */
static bool bind_blocks(const wish *w, const mt_tensor_info *t, mt_mat *out)
{
    const mt_tensor_info *scales = mt_binder_use(w->b, w->name, "_scales");
    const size_t groups = w->k / MT_MXFP4_GROUP, bytes = MT_MXFP4_GROUP / 2;
    const unsigned lead = w->stack > 0;
    if (!scales)
        return miss(w, " without scales", t, NULL);
    mt_tensor_info rows = *t; /* the same shape with the blocks of a row joined */
    rows.dims--;
    rows.shape[lead + 1] *= bytes;
    if (w->k % MT_MXFP4_GROUP || t->dims != lead + 3 || t->shape[lead + 2] != bytes || t->dtype != MT_DTYPE_U8 ||
        scales->dtype != MT_DTYPE_U8 || !has_shape(w, &rows, w->n, groups * bytes) ||
        !has_shape(w, scales, w->n, groups))
        return miss(w, " with scales ", t, scales);
    *out = (mt_mat){.format = MT_FORMAT_MXFP4,
                    .scale_type = MT_SCALE_E8M0,
                    .bits = 4,
                    .group = MT_MXFP4_GROUP,
                    .n = w->n,
                    .k = w->k,
                    .w = t->data,
                    .stride = groups * bytes,
                    .scales = scales->data,
                    .scale_stride = groups,
                    .global = 1};
    return true;
}

/* Scales of MXFP and NVFP formats are bytes; the format says how to read them. */
static mt_scale_type packed_scale_type(mt_format format, mt_dtype dtype)
{
    if (format == MT_FORMAT_AFFINE)
        return scale_type(dtype);
    return format == MT_FORMAT_NVFP4 ? MT_SCALE_E4M3 : MT_SCALE_E8M0;
}

/* Binds packed words with scales (MLX). */
static bool bind_packed(const wish *w, const mt_tensor_info *t, mt_mat *out)
{
    const mt_tensor_info *scales = mt_binder_use(w->b, w->name, ".scales");
    const mt_tensor_info *biases = mt_binder_use(w->b, w->name, ".biases");
    mt_quant_params p;
    if (!scales)
        return miss(w, " without scales", t, NULL);
    if (!mt_quant_resolve(&w->b->quant, w->name, t, scales, w->k, &p))
        return miss(w, " with scales ", t, scales);
    size_t words = w->k * p.bits / 32, groups = w->k / p.group;
    if (!has_shape(w, t, w->n, words) || !has_shape(w, scales, w->n, groups))
        return miss(w, " with scales ", t, scales);
    bool affine = p.format == MT_FORMAT_AFFINE;
    if (affine && !biases)
        return miss(w, " without biases", t, NULL);
    if (affine && (!has_shape(w, biases, w->n, groups) || biases->dtype != scales->dtype))
        return miss(w, " with biases ", t, biases);
    *out = (mt_mat){.format = p.format,
                    .scale_type = packed_scale_type(p.format, scales->dtype),
                    .bits = p.bits,
                    .group = p.group,
                    .n = w->n,
                    .k = w->k,
                    .w = t->data,
                    .stride = words * 4,
                    .scales = scales->data,
                    .biases = affine ? biases->data : NULL,
                    .scale_stride = groups * (affine ? mt_dtype_size(scales->dtype) : 1),
                    .global = 1};
    return true;
}

bool mt_bind_module(mt_binder *b, const char *name, size_t stack, size_t n, size_t k, mt_mat *out)
{
    wish w = {.b = b, .name = name, .stack = stack, .n = n, .k = k};
    memset(out, 0, sizeof(*out));
    const mt_tensor_info *t = mt_binder_use(b, name, ".weight");
    if (!t)
        t = mt_binder_use(b, name, "");
    const mt_tensor_info *blocks = t ? NULL : mt_binder_use(b, name, "_blocks");
    if (blocks)
        return bind_blocks(&w, blocks, out);
    if (!t)
        return miss(&w, "", NULL, NULL);
    if (t->dtype == MT_DTYPE_BLOCKS)
        return mt_gguf_blocks_bind(b, t, stack, n, k, t->fix ? t->fix->rows : NULL, out);
    if (t->dtype == MT_DTYPE_U32)
        return bind_packed(&w, t, out);
    if (t->dtype == MT_DTYPE_F8_E4M3)
        return bind_fp8(&w, t, out);
    return bind_plain(&w, t, out);
}

static const uint8_t *in_order(mt_binder *b, const uint8_t *from, size_t stride, const uint32_t *order, size_t n)
{
    uint8_t *to = mt_binder_copy(b, n * stride);
    for (size_t r = 0; to && !b->headers_only && r < n; r++)
        memcpy(to + r * stride, from + order[r] * stride, stride);
    return to;
}

/* FP8 with blocks is refused: a block's 128 rows share scales and cannot be reordered. */
bool mt_bind_ordered(mt_binder *b, const char *path, size_t n, size_t k, const uint32_t *order, mt_mat *out)
{
    if (!mt_bind_matrix(b, path, n, k, out))
        return false;
    if (out->format == MT_FORMAT_FP8)
        return mt_binder_miss(b, path, "rows with scales of their own", "found blocks of FP8");
    out->w = in_order(b, out->w, out->stride, order, n);
    if (out->scales)
        out->scales = in_order(b, out->scales, out->scale_stride, order, n);
    if (out->biases)
        out->biases = in_order(b, out->biases, out->scale_stride, order, n);
    return out->w != NULL;
}

bool mt_bind_matrix(mt_binder *b, const char *path, size_t n, size_t k, mt_mat *out)
{
    char name[MT_BIND_NAME];
    mt_binder_name(b, path, name);
    return mt_bind_module(b, name, 0, n, k, out);
}
