/* Quantised weights as integers with a scale: AFFINE codes as they are; E2M1 codes doubled, with half the scale. */
#ifndef MT_KERNELS_UNPACK_H
#define MT_KERNELS_UNPACK_H

#include "kernels/convert.h"

/* Reads the codes of a row: a little-endian bit stream. */
typedef struct mt_unpacker {
    const uint8_t *p; /* next byte */
    uint32_t stream;
    unsigned have; /* bits in stream */
} mt_unpacker;

static inline int mt_unpack_next(mt_unpacker *u, const mt_mat *w)
{
    if (u->have < w->bits) {
        u->stream |= (uint32_t)*u->p++ << u->have;
        u->have += 8;
    }
    unsigned code = u->stream & ((1u << w->bits) - 1);
    u->stream >>= w->bits;
    u->have -= w->bits;
    return w->format == MT_FORMAT_AFFINE ? (int)code : mt_e2m1_doubled(code);
}

/* The scale of the integers of group g; `scales`: those of the row. */
static inline float mt_weight_scale(const mt_mat *w, const uint8_t *scales, size_t g)
{
    float s = mt_scale_f32(scales, w->scale_type, g);
    if (w->format == MT_FORMAT_AFFINE)
        return s;
    return w->format == MT_FORMAT_NVFP4 ? 0.5f * s * w->global : 0.5f * s;
}

#endif
