/* Binds tensors that only vision towers have: a convolution over patches, and a transposed projection. Both are copied
   to the row order that kernels read. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/levels.h"
#include "weights/bind_internal.h"

/* Element (row, i) of the copy is element source(row, i) of the tensor. */
typedef struct reorder {
    size_t n, k;
    size_t channels, inner; /* of a convolution stored with channels last: k = channels * inner */
    bool transposed;
} reorder;

static size_t source(const reorder *r, size_t row, size_t i)
{
    return r->transposed ? i * r->n + row : row * r->k + i % r->inner * r->channels + i / r->inner;
}

static bool copy(mt_binder *b, const mt_tensor_info *t, const reorder *r, mt_mat *out)
{
    const size_t size = mt_dtype_size(t->dtype);
    mt_binder_copied(b, t);
    if (b->headers_only) {
        b->cost.copied_bytes += r->n * r->k * size;
        *out = mt_mat_plain(t->dtype, t->data, r->n, r->k);
        return true;
    }
    const uint64_t start = mt_clock_ns();
    uint8_t *to = mt_binder_copy(b, r->n * r->k * size);
    for (size_t row = 0; to && row < r->n; row++)
        for (size_t i = 0; i < r->k; i++)
            memcpy(to + (row * r->k + i) * size, t->data + source(r, row, i) * size, size);
    *out = mt_mat_plain(t->dtype, to, r->n, r->k);
    b->cost.seconds += (double)(mt_clock_ns() - start) * 1e-9;
    return to != NULL;
}

/* The same for a quantised matrix, which becomes plain by it. */
static bool unpack(mt_binder *b, const char *name, const reorder *r, mt_mat *out)
{
    mt_mat packed;
    if (!mt_bind_module(b, name, 0, r->n, r->k, &packed))
        return false;
    if (b->headers_only) {
        b->cost.copied_bytes += r->n * r->k * sizeof(float);
        *out = mt_mat_plain(MT_DTYPE_F32, packed.w, r->n, r->k);
        return true;
    }
    float *to = mt_binder_copy(b, r->n * r->k * sizeof(*to)), *row = mt_alloc_array(r->k, sizeof(*row));
    for (size_t i = 0; to && i < r->n; i++) {
        mt_row_f32_portable(row, &packed, i);
        for (size_t j = 0; j < r->k; j++)
            to[i * r->k + j] = row[source(r, 0, j)];
    }
    mt_free(row);
    *out = mt_mat_plain(MT_DTYPE_F32, (const uint8_t *)to, r->n, r->k);
    return to != NULL;
}

static bool has_shape(const mt_tensor_info *t, const uint64_t *shape, unsigned dims)
{
    return t->dims == dims && memcmp(t->shape, shape, dims * sizeof(*shape)) == 0;
}

static bool miss(mt_binder *b, const char *name, const uint64_t *shape, unsigned dims, const mt_tensor_info *t)
{
    char wanted[MT_SHAPE_TEXT], found[MT_SHAPE_TEXT];
    mt_shape_text(wanted, shape, dims);
    if (!t)
        return mt_binder_miss(b, name, wanted, "absent");
    mt_shape_text(found, t->shape, t->dims);
    return mt_binder_miss(b, t->name, wanted, "found %s %s", t->dtype_name, found);
}

static const mt_tensor_info *find(mt_binder *b, const char *path, char *name)
{
    mt_binder_name(b, path, name);
    const mt_tensor_info *t = mt_binder_use(b, name, ".weight");
    return t ? t : mt_binder_use(b, name, "");
}

/* Joins the frames of a convolution, which GGUF files have as tensors of their own: the first is `t`, the others follow
   its name with a number. */
static bool join_frames(mt_binder *b, const char *name, const mt_tensor_info *t, size_t channels, size_t frames,
                        mt_mat *out)
{
    const size_t n = t->shape[0], area = t->shape[2] * t->shape[3] * mt_dtype_size(t->dtype), k = channels * frames;
    uint8_t *to = mt_binder_copy(b, n * k * area);
    mt_binder_copied(b, t);
    for (size_t f = 0; f < frames; f++) {
        char full[MT_BIND_NAME + 32];
        snprintf(full, sizeof(full), "%s.weight.%zu", name, f);
        const mt_tensor_info *from = f ? mt_binder_use(b, full, "") : t;
        if (!from || from->dtype != t->dtype || !has_shape(from, t->shape, t->dims))
            return miss(b, full, t->shape, t->dims, from);
        mt_binder_copied(b, from);
        for (size_t i = 0; to && !b->headers_only && i < n * channels; i++)
            memcpy(to + (i * frames + f) * area, from->data + i * area, area);
    }
    *out = mt_mat_plain(t->dtype, to, n, k * t->shape[2] * t->shape[3]);
    return to != NULL;
}

bool mt_bind_patches(mt_binder *b, const char *path, size_t n, size_t channels, size_t frames, size_t side, mt_mat *out)
{
    char name[MT_BIND_NAME];
    const uint64_t first[] = {n, channels, frames, side, side}, last[] = {n, frames, side, side, channels};
    const uint64_t still_first[] = {n, channels, side, side}, still_last[] = {n, side, side, channels},
                   flat[] = {n, channels * frames * side * side};
    const mt_tensor_info *t = find(b, path, name);
    const size_t k = channels * frames * side * side;
    memset(out, 0, sizeof(*out));
    if (mt_binder_find(b, name, ".scales") || (!t && mt_bind_has(b, path)) ||
        (t && t->dims == 2 && mt_dtype_size(t->dtype) == 0))
        return unpack(b, name, &(reorder){.n = n, .k = k, .channels = channels, .inner = k / channels}, out);
    if (!t || mt_dtype_size(t->dtype) == 0)
        return miss(b, name, first, 5, t);
    if (has_shape(t, first, 5) || (frames == 1 && has_shape(t, still_first, 4))) {
        *out = mt_mat_plain(t->dtype, t->data, n, k);
        return true;
    }
    if (has_shape(t, still_first, 4))
        return join_frames(b, name, t, channels, frames, out);
    if (has_shape(t, last, 5) || (frames == 1 && has_shape(t, still_last, 4)) || has_shape(t, flat, 2))
        return copy(b, t, &(reorder){.n = n, .k = k, .channels = channels, .inner = k / channels}, out);
    return miss(b, name, first, 5, t);
}

/* The rows of a tensor [second, first, k] in the order of [first, second, k]. */
static bool swap_planes(mt_binder *b, const mt_tensor_info *t, mt_mat *out)
{
    const size_t second = t->shape[0], first = t->shape[1], row = t->shape[2] * mt_dtype_size(t->dtype);
    uint8_t *to = mt_binder_copy(b, first * second * row);
    mt_binder_copied(b, t);
    for (size_t i = 0; to && !b->headers_only && i < first * second; i++)
        memcpy(to + i * row, t->data + (i % second * first + i / second) * row, row);
    *out = mt_mat_plain(t->dtype, to, first * second, t->shape[2]);
    return to != NULL;
}

bool mt_bind_planes(mt_binder *b, const char *path, size_t first, size_t second, size_t k, mt_mat *out)
{
    char name[MT_BIND_NAME];
    const uint64_t shape[] = {first, second, k}, turned[] = {second, first, k};
    const mt_tensor_info *t = find(b, path, name);
    memset(out, 0, sizeof(*out));
    if (t && mt_dtype_size(t->dtype) && has_shape(t, turned, 3) && first != second)
        return swap_planes(b, t, out);
    if (!t || mt_dtype_size(t->dtype) == 0 || !has_shape(t, shape, 3))
        return miss(b, name, shape, 3, t);
    *out = mt_mat_plain(t->dtype, t->data, first * second, k);
    return true;
}

const float *mt_bind_first_rows(mt_binder *b, const mt_mat *one, const mt_mat *other)
{
    const size_t n = one->k;
    float *sum = mt_binder_copy(b, n * sizeof(*sum)), *row = mt_alloc_array(n, sizeof(*row));
    for (size_t m = 0; sum && !b->headers_only && m < 2; m++) {
        const mt_mat *from = m ? other : one;
        if (from->n == 0)
            continue;
        mt_row_f32_portable(row, from, 0);
        for (size_t i = 0; i < n; i++)
            sum[i] = m ? sum[i] + row[i] : row[i];
    }
    mt_free(row);
    return sum;
}

bool mt_bind_transposed(mt_binder *b, const char *path, size_t n, size_t k, mt_mat *out)
{
    char name[MT_BIND_NAME];
    const uint64_t shape[] = {k, n};
    const mt_tensor_info *t = find(b, path, name);
    memset(out, 0, sizeof(*out));
    if (!t || mt_dtype_size(t->dtype) == 0 || !has_shape(t, shape, 2))
        return miss(b, name, shape, 2, t);
    return copy(b, t, &(reorder){.n = n, .k = k, .transposed = true}, out);
}
