/* Tensor-core steps of sm_90 (sm90.h) for several columns at once, with the same bits, in a form of which compilers
   make vectors.

   Operands are widened to fp32 beforehand, each with the power of two that its exponent stands for as it is stored. The
   top of a sum is then the largest product of such powers, an addend over its unit is one product, and converting that
   to an integer cuts it towards zero. This holds for finite operands and tops from 2^-90 to 2^100; the rest goes by
   sm90.c, one sum at a time. */
#ifndef MT_DEVICE_SM90_LANES_H
#define MT_DEVICE_SM90_LANES_H

#include <stdbool.h>

#include "device/sm90.h"

enum { MT_SM90_LANES = 16 }; /* columns of a step */

typedef enum mt_sm90_type { MT_SM90_F16, MT_SM90_BF16 } mt_sm90_type;

/* An operand's value and power of two; 0 has none. False: one of them is an infinity or NaN. */
bool mt_sm90_widen(float *value, float *power, const uint16_t *from, size_t n, mt_sm90_type type);

/* c[l] += the sum over i of value[i * ld + l] * x[i], for one step of MT_SM90_K; x_power: the powers of x; finite: all
   operands are. */
void mt_sm90_step(float c[MT_SM90_LANES], const float *value, const float *power, size_t ld, const float *x,
                  const float *x_power, mt_sm90_type type, bool finite);

#endif
