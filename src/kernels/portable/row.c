/* One row of a weight matrix as fp32, for every format. */
#include <math.h>
#include <string.h>

#include "kernels/convert.h"
#include "kernels/levels.h"
#include "kernels/unpack.h"

static void halves(float *y, const uint8_t *p, size_t k, mt_scale_type type)
{
    for (size_t i = 0; i < k; i++)
        y[i] = mt_scale_f32(p, type, i);
}

/* Bytes with a scale per group (MXFP8, and FP8 whose scales may serve 128 rows). */
static void bytes(float *y, const mt_mat *w, const uint8_t *p, const uint8_t *scales)
{
    for (size_t i = 0; i < w->k; i++) {
        float x = w->format == MT_FORMAT_FP8 ? mt_f32_from_fp8(p[i]) : mt_f32_from_e4m3(p[i]);
        y[i] = mt_scale_f32(scales, w->scale_type, i / w->group) * x;
    }
}

static void codes(float *y, const mt_mat *w, size_t r)
{
    const uint8_t *scales = w->scales + r * w->scale_stride;
    const uint8_t *biases = w->biases ? w->biases + r * w->scale_stride : NULL;
    mt_unpacker u = mt_unpacker_of(w, r);
    for (size_t g = 0; g < w->k / w->group; g++) {
        float s = mt_weight_scale(w, scales, g), b = biases ? mt_scale_f32(biases, w->scale_type, g) : 0.0f;
        for (size_t i = g * w->group; i < (g + 1) * w->group; i++) {
            float q = (float)mt_unpack_next(&u, w);
            y[i] = biases ? fmaf(s, q, b) : s * q;
        }
    }
}

void mt_row_f32_portable(float *y, const mt_mat *w, size_t r)
{
    const uint8_t *p = w->w + r * w->stride;
    switch (w->format) {
    case MT_FORMAT_F32: memcpy(y, p, w->k * sizeof(*y)); return;
    case MT_FORMAT_F16: halves(y, p, w->k, MT_SCALE_F16); return;
    case MT_FORMAT_BF16: halves(y, p, w->k, MT_SCALE_BF16); return;
    case MT_FORMAT_FP8: bytes(y, w, p, w->scales + r / w->scale_rows * w->scale_stride); return;
    case MT_FORMAT_MXFP8: bytes(y, w, p, w->scales + r * w->scale_stride); return;
    default: codes(y, w, r); return;
    }
}
