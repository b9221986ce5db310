/* A weight matrix as stored in a checkpoint file: W[n,k], row-major, y = W x. The memory is borrowed, of any
   alignment. */
#ifndef MT_KERNELS_MATRIX_H
#define MT_KERNELS_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint16_t mt_bf16; /* bits */
typedef uint16_t mt_f16;  /* bits */

typedef enum mt_format {
    MT_FORMAT_F32,
    MT_FORMAT_F16,
    MT_FORMAT_BF16,
    /* E4M3 bytes; a scale for 128 columns of 128 rows, or of one: w = e4m3 * scale[r/scale_rows][c/128] */
    MT_FORMAT_FP8,
    /* codes of 2, 3, 4, 5, 6 or 8 bits, a row as one little-endian bit stream; w = scale[g] * q + bias[g] */
    MT_FORMAT_AFFINE,
    MT_FORMAT_MXFP4,  /* E2M1 nibbles, low first; group 32; scale E8M0 */
    MT_FORMAT_NVFP4,  /* E2M1 nibbles, low first; group 16; scale E4M3, times `global` */
    MT_FORMAT_MXFP8,  /* E4M3 bytes; group 32; scale E8M0 */
    MT_FORMAT_SIGNED, /* codes as in AFFINE; w = scale[g] * (q - 2^(bits - 1)) */
    MT_FORMAT_IQ4     /* nibbles, low first, each the number of one of 16 integers; w = scale[g] * integer */
} mt_format;

typedef enum mt_scale_type {
    MT_SCALE_NONE,
    MT_SCALE_F32,
    MT_SCALE_F16,
    MT_SCALE_BF16,
    MT_SCALE_E8M0, /* 2^(byte-127) */
    MT_SCALE_E4M3,
    MT_SCALE_8_OF_F16, /* an f16, then 8 signed bytes: 8 scales, which are its products with these */
    MT_SCALE_16_OF_F16 /* the same with 16 */
} mt_scale_type;

typedef struct mt_mat {
    mt_format format;
    mt_scale_type scale_type; /* type of scales and biases */
    uint8_t bits;             /* of an element of w */
    uint16_t group;           /* elements of k that share a scale; 128 for FP8; 0 for plain formats */
    bool split;               /* AFFINE and SIGNED of 5 or 6 bits: unpack.h says how bits above the fourth lie apart */
    uint8_t scale_rows;       /* FP8: rows that share their scales, 128 or 1 */
    size_t n, k;
    const uint8_t *w;
    size_t stride; /* bytes from one row of w to the next */
    /* row r, group g at scales + r * scale_stride + mt_scale_bytes(g); FP8: r / scale_rows */
    const uint8_t *scales;
    const uint8_t *biases; /* AFFINE only; same shape as scales */
    size_t scale_stride;   /* bytes from one row of scales (and biases) to the next */
    float global;          /* NVFP4: factor of the whole tensor, 1 where the file has none */
    const float *globals;  /* those of the items of a stack, where each has its own; NULL: global is all items' */
} mt_mat;

#endif
