/* The polynomials of R7 (docs/numerics.md), used by every level, so that all give the same bits. Coefficients are
   listed from the highest power down, for Horner's rule. */
#ifndef MT_KERNELS_POLY_H
#define MT_KERNELS_POLY_H

#define MT_ROUND_MAGIC 0x1.8p23f /* adding it rounds to an integer, which is then in the low bits */
#define MT_ROUND_BITS 0x4b400000u

#define MT_LOG2E 0x1.715476p+0f
#define MT_LN2_HIGH 0x1.62e43p-1f
#define MT_LN2_LOW (-0x1.05c61p-29f)

/* exp(r) = 1 + r + r^2 P(r), |r| <= ln 2 / 2. Relative error of the polynomial 4.4e-9. */
#define MT_EXP_MIN (-105.0f) /* gives 0 */
#define MT_EXP_MAX 89.0f     /* gives infinity */
#define MT_EXP_C4 0x1.6ff33cp-10f
#define MT_EXP_C3 0x1.12593cp-7f
#define MT_EXP_C2 0x1.5552fap-5f
#define MT_EXP_C1 0x1.555464p-3f
#define MT_EXP_C0 0x1p-1f

/* log(1 + f) = f - f^2 / 2 + f^3 P(f), sqrt(1/2) <= 1 + f < sqrt(2). Relative error of the polynomial 2.7e-9. */
#define MT_LOG_SQRT_HALF 0x3f3504f3u /* bits */
#define MT_LOG_C8 0x1.b76e2ep-5f
#define MT_LOG_C7 (-0x1.bf723ep-4f)
#define MT_LOG_C6 0x1.eff3dep-4f
#define MT_LOG_C5 (-0x1.010572p-3f)
#define MT_LOG_C4 0x1.23032p-3f
#define MT_LOG_C3 (-0x1.552f04p-3f)
#define MT_LOG_C2 0x1.99a542p-3f
#define MT_LOG_C1 (-0x1.00007p-2f)
#define MT_LOG_C0 0x1.555548p-2f

/* tanh(x) = x + x^3 P(x^2) below MT_TANH_SMALL, 1 - 2 / (exp(2 x) + 1) from there. Relative error of the polynomial
   4.5e-9. */
#define MT_TANH_SMALL 0.625f
#define MT_TANH_C4 (-0x1.750ce4p-8f)
#define MT_TANH_C3 0x1.51f8cep-6f
#define MT_TANH_C2 (-0x1.b835a4p-5f)
#define MT_TANH_C1 0x1.1106f6p-3f
#define MT_TANH_C0 (-0x1.555532p-2f)

/* gelu(x) = x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)), the tanh form without its cancellation */
#define MT_GELU_CUBE 0.044715f
#define MT_GELU_SCALE 0x1.988454p+0f

#endif
