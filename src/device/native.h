/* The arithmetic `native` (docs/numerics.md): products with quantised weights in fp16 on tensor cores of sm_90. This is
   the rule as plain C, to the last bit; the CPU device computes by it, slowly, and kernels are held to it. */
#ifndef MT_DEVICE_NATIVE_H
#define MT_DEVICE_NATIVE_H

#include <stdbool.h>

#include "kernels/matrix.h"

enum {
    MT_NATIVE_SEGMENT = 64,   /* neighbours of a row that share a power of two */
    MT_NATIVE_CHUNK = 256,    /* packed rows have a multiple of so many elements */
    MT_NATIVE_GROUP = 2048,   /* of k that tensor cores sum up before the total is rounded */
    MT_NATIVE_MOST_K = 16384, /* of a weight */
    MT_NATIVE_TOP = 14,       /* largest exponent of a number in fp16 */
    /* exponents of a segment's unit: those there are, and that of a segment of zeros */
    MT_NATIVE_EXPONENT_LEAST = -56,
    MT_NATIVE_EXPONENT_STEP = 16,
    MT_NATIVE_EXPONENTS = 6,
    MT_NATIVE_EXPONENT_OF_ZEROS = -8,
    MT_NATIVE_CODE_EXPONENT = 24 /* a code is read as the subnormal fp16 number code * 2^-24 */
};

/* Whether products with the weight go by this rule: codes of any format, in groups of 16, 32 or a multiple of 64. */
bool mt_native_fits(const mt_mat *mat);

/* Whether its codes, less than 2^bits once they are lifted (mt_code_lift), have 4 bits, else 8. */
bool mt_native_narrow(const mt_mat *mat);

/* The power of two, as an exponent, that a matrix is divided by: the least one from 0 on with which all scales are
   below 2^-8 and all biases at most 2^15. */
int mt_native_power(const mt_mat *mat);

/* Scale and bias of a group of a row, divided by 2^power, as the GPU holds them: the scale also times 2^24, and where
   that is below 2^-10 a multiple of 2^-20; where codes are lifted, the bias is minus the lift times that scale. */
typedef struct mt_native_pair {
    mt_f16 scale, bias;
} mt_native_pair;
mt_native_pair mt_native_pair_of(const mt_mat *mat, size_t row, size_t group, int power);

/* Elements of k, rounded up to whole chunks. */
size_t mt_native_padded(size_t k);

/* Weights of a row as fp16: [mt_native_padded(k)], zeros beyond k. */
void mt_native_weights(mt_f16 *to, const mt_mat *mat, size_t row, int power);
/* Up to MT_NATIVE_SEGMENT activations that share a unit, whose exponent is returned. */
int mt_native_pack_segment(mt_f16 *to, const float *x, size_t n);
/* Activations of a row: [mt_native_padded(k)] of fp16, then the exponent of each segment's unit as int. */
void mt_native_pack(void *to, const float *x, size_t k);
/* The product of a packed row with such weights. */
float mt_native_dot(const mt_f16 *weights, const void *packed, size_t k, int power);

#endif
