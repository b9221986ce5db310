/* Makes a mt_mat of the tensors of one module, single or stacked. Plain ones, MLX's and MXFP4 blocks are here; every
   other layout has its file bind_*.c. The tensors that are there decide which layout it is, never the config. */
#include <string.h>

#include "kernels/format.h"
#include "weights/bind_internal.h"
#include "weights/gguf_blocks.h"

static size_t scale_rows(const mt_mat *m, size_t rows)
{
    return m->scale_rows > 1 ? (rows + m->scale_rows - 1u) / m->scale_rows : rows;
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

bool mt_mat_cuts_scales(const mt_mat *m, size_t row)
{
    return m->scale_rows > 1 && row % m->scale_rows != 0;
}

mt_mat mt_mat_rows(const mt_mat *m, size_t first, size_t count)
{
    mt_mat out = shift(m, first, scale_rows(m, first));
    out.n = count;
    return out;
}

/* Copies a row with its columns in pieces that are in another order. */
static void copy_row(uint8_t *to, const uint8_t *from, const mt_tensor_fix *fix, size_t row_bytes, size_t element)
{
    const size_t piece = fix->columns ? fix->piece * element : row_bytes;
    for (size_t p = 0; p * piece < row_bytes; p++)
        memcpy(to + p * piece, from + (fix->columns ? fix->columns[p] : p) * piece, piece);
}

/* A copy of the tensor, put right; NULL: no memory. */
static const uint8_t *mend(const mt_wish *w, const mt_tensor_info *t)
{
    const size_t size = mt_dtype_size(t->dtype), bytes = w->k * size;
    uint8_t *to = mt_binder_copy(w->b, w->n * bytes);
    mt_binder_copied(w->b, t);
    for (size_t r = 0; to && !w->b->headers_only && r < w->n; r++) {
        const size_t from = t->fix->rows ? t->fix->rows[r] : r;
        if (from == MT_TENSOR_NO_ROW)
            memset(to + r * bytes, 0, bytes);
        else
            copy_row(to + r * bytes, t->data + from * bytes, t->fix, bytes, size);
    }
    return to;
}

static bool bind_plain(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    if (mt_dtype_size(t->dtype) == 0 || !mt_wish_fits(w, t, w->n, w->k))
        return mt_wish_miss(w, "", t, NULL);
    *out = mt_mat_plain(t->dtype, t->fix ? mend(w, t) : t->data, w->n, w->k);
    return out->w != NULL;
}

/* As gpt-oss is published: bytes [.., k / 32, 16] and their exponents [.., k / 32]. */
static bool bind_blocks(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    const mt_tensor_info *scales = mt_binder_use(w->b, w->name, "_scales");
    const size_t groups = w->k / MT_MXFP4_GROUP, bytes = MT_MXFP4_GROUP / 2;
    const unsigned lead = w->stack > 0;
    if (!scales)
        return mt_wish_miss(w, " without scales", t, NULL);
    mt_tensor_info rows = *t; /* the same shape with the blocks of a row joined */
    rows.dims--;
    rows.shape[lead + 1] *= bytes;
    if (w->k % MT_MXFP4_GROUP || t->dims != lead + 3 || t->shape[lead + 2] != bytes || t->dtype != MT_DTYPE_U8 ||
        scales->dtype != MT_DTYPE_U8 || !mt_wish_fits(w, &rows, w->n, groups * bytes) ||
        !mt_wish_fits(w, scales, w->n, groups))
        return mt_wish_miss(w, " with scales ", t, scales);
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

/* Binds packed words with scales (MLX). */
static bool bind_packed(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    const mt_tensor_info *scales = mt_binder_use(w->b, w->name, ".scales");
    const mt_tensor_info *biases = mt_binder_use(w->b, w->name, ".biases");
    mt_quant_params p;
    if (!scales)
        return mt_wish_miss(w, " without scales", t, NULL);
    if (!mt_quant_resolve(&w->b->quant, w->name, t, scales, w->k, &p))
        return mt_wish_miss(w, " with scales ", t, scales);
    size_t words = w->k * p.bits / 32, groups = w->k / p.group;
    if (!mt_wish_fits(w, t, w->n, words) || !mt_wish_fits(w, scales, w->n, groups))
        return mt_wish_miss(w, " with scales ", t, scales);
    const mt_format_traits *traits = &mt_formats[p.format];
    if (traits->biased && !biases)
        return mt_wish_miss(w, " without biases", t, NULL);
    if (traits->biased && (!mt_wish_fits(w, biases, w->n, groups) || biases->dtype != scales->dtype))
        return mt_wish_miss(w, " with biases ", t, biases);
    *out = (mt_mat){.format = p.format,
                    .scale_type = traits->scale_type ? traits->scale_type : mt_dtype_scale(scales->dtype),
                    .bits = p.bits,
                    .group = p.group,
                    .n = w->n,
                    .k = w->k,
                    .w = t->data,
                    .stride = words * 4,
                    .scales = scales->data,
                    .biases = traits->biased ? biases->data : NULL,
                    .scale_stride = groups * (traits->biased ? mt_dtype_size(scales->dtype) : 1),
                    .global = 1};
    return true;
}

/* AWQ has a row of qweight for each column, GPTQ fewer. */
static bool bind_qweight(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    if (t->dtype != MT_DTYPE_I32)
        return mt_wish_miss(w, "", t, NULL);
    const bool awq = !w->stack && w->n % 8 == 0 && mt_wish_fits(w, t, w->k, w->n / 8);
    return (awq ? mt_bind_awq : mt_bind_gptq)(w, t, out);
}

/* A module without a tensor of its own name, or `weight`. */
static bool bind_otherwise(const mt_wish *w, mt_mat *out)
{
    static const struct {
        const char *suffix;
        bool (*bind)(const mt_wish *w, const mt_tensor_info *t, mt_mat *out);
    } layouts[] = {{"_blocks", bind_blocks}, {".qweight", bind_qweight}, {".weight_packed", mt_bind_packed_weight}};
    for (size_t i = 0; i < MT_COUNT(layouts); i++) {
        const mt_tensor_info *t = mt_binder_use(w->b, w->name, layouts[i].suffix);
        if (t)
            return layouts[i].bind(w, t, out);
    }
    return mt_wish_miss(w, "", NULL, NULL);
}

static bool bind_weight(const mt_wish *w, const mt_tensor_info *t, mt_mat *out)
{
    switch (t->dtype) {
    case MT_DTYPE_BLOCKS: return mt_gguf_blocks_bind(w->b, t, w->stack, w->n, w->k, t->fix ? t->fix->rows : NULL, out);
    case MT_DTYPE_U32: return bind_packed(w, t, out);
    case MT_DTYPE_F8_E4M3: return mt_bind_fp8(w, t, out);
    case MT_DTYPE_U8:
        return (mt_binder_find(w->b, w->name, ".weight.absmax") ? mt_bind_bnb4 : mt_bind_float4)(w, t, out);
    case MT_DTYPE_I8: return (mt_binder_find(w->b, w->name, ".SCB") ? mt_bind_bnb8 : mt_bind_int8)(w, t, out);
    default: return bind_plain(w, t, out);
    }
}

bool mt_bind_module(mt_binder *b, const char *name, size_t stack, size_t n, size_t k, mt_mat *out)
{
    const mt_wish w = {.b = b, .name = name, .stack = stack, .n = n, .k = k};
    memset(out, 0, sizeof(*out));
    const mt_tensor_info *t = mt_binder_use(b, name, ".weight");
    if (!t)
        t = mt_binder_use(b, name, "");
    const bool ok = t ? bind_weight(&w, t, out) : bind_otherwise(&w, out);
    if (!ok)
        memset(out, 0, sizeof(*out));
    return ok;
}

static const uint8_t *in_order(mt_binder *b, const uint8_t *from, size_t stride, const uint32_t *order, size_t n)
{
    uint8_t *to = mt_binder_copy(b, n * stride);
    for (size_t r = 0; to && !b->headers_only && r < n; r++)
        memcpy(to + r * stride, from + order[r] * stride, stride);
    return to;
}

/* FP8 with several rows of blocks is refused: a block's 128 rows share scales and cannot be reordered. Where all rows
   share them, their order is no matter. */
bool mt_bind_ordered(mt_binder *b, const char *path, size_t n, size_t k, const uint32_t *order, mt_mat *out)
{
    if (!mt_bind_matrix(b, path, n, k, out))
        return false;
    const bool shared = out->scale_rows > 1;
    if (shared && out->scale_stride > 0 && n > out->scale_rows)
        return mt_binder_miss(b, path, "rows with scales of their own", "found blocks of FP8");
    out->w = in_order(b, out->w, out->stride, order, n);
    if (out->scales && !shared)
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

bool mt_bind_stack(mt_binder *b, const char *path, size_t count, size_t n, size_t k, mt_mat *out)
{
    char name[MT_BIND_NAME];
    mt_binder_name(b, path, name);
    if (!mt_bind_module(b, name, count, n, k, out))
        return false;
    if (out->globals || mt_mat_cuts_scales(out, n)) {
        memset(out, 0, sizeof(*out));
        return mt_binder_miss(b, name, "matrices that are one", "found each with scales of its own");
    }
    out->n = count * n;
    return true;
}
