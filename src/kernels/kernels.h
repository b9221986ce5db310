/* Kernels: single-thread loops on plain pointers. Each is declared once, in MT_KERNELS; the table is filled with
   portable C, then overlaid level by level with what the processor supports. The rules R1 to R12 in docs/numerics.md
   make every level, except the bf16 products (R5), equal to the last bit.

   Conventions: sizes count elements; pointers may have any alignment unless said otherwise; input and output may be the
   same array where the comment says "in place"; nothing allocates; `scratch` is 64-byte aligned. */
#ifndef MT_KERNELS_KERNELS_H
#define MT_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/matrix.h"

#define MT_SEGMENT 256    /* R8: keys are processed in segments of so many absolute positions */
#define MT_LANES 16       /* R6: virtual lanes of an fp32 reduction */
#define MT_LSE_BLOCK 4096 /* R9: elements of a block of a log-sum-exp */
#define MT_ROW_PAD 32     /* rows of activations are padded with zeros to a multiple of this */

/* Processor features, as bits. The order is the order in which levels overlay each other. */
enum {
    MT_CPU_NEON = 1u << 0,
    MT_CPU_DOTPROD = 1u << 1,
    MT_CPU_FP16 = 1u << 2, /* detected and shown; no rule uses 16-bit arithmetic */
    MT_CPU_I8MM = 1u << 3,
    MT_CPU_BF16 = 1u << 4,
    MT_CPU_AVX2 = 1u << 8,   /* with FMA and F16C */
    MT_CPU_AVX512 = 1u << 9, /* F, BW, VL, DQ */
    MT_CPU_AVX512VNNI = 1u << 10,
    MT_CPU_AMX = 1u << 11, /* tiles of int8 and bf16 */
    MT_CPU_AVXVNNI = 1u << 12
};

/* Activations packed for a matmul; the layout of data (64-byte aligned) is private to a level. */
typedef struct mt_rows {
    size_t m, k;
    size_t group; /* group of the weights (mt_mat.group); 0 for bf16 rows */
    bool wide;    /* packed for weights of 8 bits; rows packed for fewer bits cannot be used with these */
    uint8_t *data;
} mt_rows;

/* Attention of some query rows over one key/value head (R8). A row is one query head of one token; it sees the keys lo
   <= position < hi. Position p is in page pages[p / page_tokens], at slot p % page_tokens; a page has a block of
   page_tokens vectors of head_stride elements at base + page * page_stride + k_offset (v_offset). f32 blocks are plain
   arrays; the order within a bf16 block is the level's own (kv_put_bf16 writes it); kvq.h describes blocks of 8 or 4
   bits. head_stride is head_dim rounded up to a multiple of 16, or of 32 for 8 and 4 bits; the padding is zero in q, K
   and V. */
typedef struct mt_attn {
    const uint8_t *base;
    size_t page_stride, k_offset, v_offset; /* bytes */
    const uint32_t *pages;
    size_t page_tokens; /* a multiple of MT_LANES that divides MT_SEGMENT */
    size_t head_stride;
    unsigned bits; /* bits of an element for attn_q: 8 or 4 */
    float scale;
    float softcap; /* s = cap * tanh(s / cap) after scaling; 0: none */
    size_t rows;
    const void *q;      /* [rows][head_stride], bf16 or f32 like the pages; for 8 and 4 bits the result of kv_query */
    const uint32_t *lo; /* [rows] */
    const uint32_t *hi; /* [rows] */
} mt_attn;

/* The result of one segment for one row: o = sum of p v, l = sum of p, with p = exp(s - m). */
typedef struct mt_attn_part {
    float m, l; /* m = -inf and l = 0 where the row sees nothing of the segment */
} mt_attn_part;

#define MT_DELTA_COLUMNS 32 /* columns of a recurrent state that are stored together */

/* The gated delta rule (R9) for some columns of one head's state and some tokens, in order. The state is
   [dk][MT_DELTA_COLUMNS]; columns n and beyond are zeros and stay so. Token t has q, k, v, decay and beta at
   t * stride (of decay and beta: t * gate_stride) and gives n elements at o + t * o_stride. For each column:
       d = beta * fma(-decay, m, v), m = the sum over i, ascending, of fma(S[i], k[i], m) from zero
       S[i] = fma(k[i], d, decay * S[i]);  o = the sum over i, ascending, of fma(S[i], q[i], o) from zero
   With `plain`, as Mamba2 has it, nothing is taken away from v: d = beta * v. */
typedef struct mt_delta {
    size_t tokens, dk, n;
    bool plain;
    const float *q, *k, *v;
    size_t stride;
    const float *decay, *beta;
    size_t gate_stride;
    float *o;
    size_t o_stride;
} mt_delta;

/* X(result, name, arguments) */
/* clang-format off */
#define MT_KERNELS(X)                                                                                                  \
    /* y[i] = x[i] rounded to nearest even bf16; NaN stays NaN */                                                      \
    X(void, to_bf16, (mt_bf16 * y, const float *x, size_t n))                                                          \
    /* y[0..k) = row r of w, exact: fmaf(scale, q, bias) for AFFINE, products elsewhere */                             \
    X(void, row_f32, (float *y, const mt_mat *w, size_t r))                                                            \
    /* y += x */                                                                                                       \
    X(void, add, (float *y, const float *x, size_t n))                                                                 \
    /* y = fma(a, x, y) */                                                                                             \
    X(void, axpy, (float *y, float a, const float *x, size_t n))                                                       \
    /* y = a * x, in place allowed */                                                                                  \
    X(void, scale, (float *y, float a, const float *x, size_t n))                                                      \
    /* reductions by R6; max carries NaN */                                                                            \
    X(float, dot, (const float *x, const float *y, size_t n))                                                          \
    X(float, sum, (const float *x, size_t n))                                                                          \
    X(float, max, (const float *x, size_t n))                                                                          \
    /* sum of exp(x[i] - m) by R6 */                                                                                   \
    X(float, sum_exp, (const float *x, float m, size_t n))                                                             \
    /* y = (x * r) * (offset + w), r = 1 / sqrtf(dot(x, x) / n + eps); in place allowed */                             \
    X(void, rmsnorm, (float *y, const float *x, const float *w, size_t n, float eps, float offset))                    \
    /* rotates pairs (i, i + half), in place: fma(x[i], c, -(x[i+half] * s)), fma(x[i+half], c, x[i] * s) */           \
    X(void, rope, (float *x, const float *c, const float *s, size_t half))                                             \
    /* exp, log and others by R7; all may be in place */                                                               \
    X(void, exp, (float *y, const float *x, size_t n))                                                                 \
    X(void, log, (float *y, const float *x, size_t n))                                                                 \
    X(void, sigmoid, (float *y, const float *x, size_t n))                                                             \
    X(void, tanh, (float *y, const float *x, size_t n))                                                                \
    X(void, sincos, (float *s, float *c, const float *x, size_t n))                                                    \
    /* y = silu(g) * u = (g * sigmoid(g)) * u; in place with g or u allowed */                                         \
    X(void, silu_mul, (float *y, const float *g, const float *u, size_t n))                                            \
    /* y = sigmoid(g) * u; in place with g or u allowed */                                                             \
    X(void, sigmoid_mul, (float *y, const float *g, const float *u, size_t n))                                         \
    /* y = gelu_tanh(g) * u; in place with g allowed */                                                                \
    X(void, gelu_mul, (float *y, const float *g, const float *u, size_t n))                                            \
    /* x = cap * tanh(x / cap), in place */                                                                            \
    X(void, softcap, (float *x, float cap, size_t n))                                                                  \
    /* x = softmax(x), in place: m = max, e = exp(x - m), e / (R6 sum of e) */                                         \
    X(void, softmax, (float *x, size_t n))                                                                             \
    /* y[c] = a, a = w[0][c] * x[0][c], then ascending j: a = fma(w[j][c], x[j][c], a); w is [taps][ldw] */            \
    X(void, conv,                                                                                                      \
      (float *y, const float *const *x, const float *w, size_t ldw, size_t taps, size_t n))                            \
    /* d->tokens steps of mt_delta from state `from` (NULL: zeros) to state `to`, which may be the same */             \
    X(void, delta, (float *to, const float *from, const mt_delta *d))                                                  \
                                                                                                                       \
    /* Integer products (R3, R4) with AFFINE, MXFP4 and NVFP4 weights. Bytes of packed rows: */                        \
    X(size_t, q_rows_bytes, (size_t m, size_t k, size_t group))                                                        \
    /* Quantises rows [i0, i1) into rows->data; row i is x + index[i] * ldx (x + i * ldx when index is NULL). i0 is    \
       a multiple of MT_ROW_TILE, i1 too or rows->m; threads may pack disjoint ranges at once. */                      \
    X(void, q_pack, (mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1))          \
    X(size_t, q_scratch_bytes, (size_t k))                                                                             \
    /* y[i * ldy + j] = W[j] . x[i] for all rows i and n0 <= j < n1 */                                                 \
    X(void, q_matmul,                                                                                                  \
      (float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows, uint8_t *scratch))            \
                                                                                                                       \
    /* bf16 products (R5) with BF16, FP8 and MXFP8 weights; functions as above. FP8: the dot product of each block     \
       of 128 in k by R5 from zero, then blocks ascending: acc = fma(scale, dot, acc). */                              \
    X(size_t, b_rows_bytes, (size_t m, size_t k))                                                                      \
    X(void, b_pack, (mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1))          \
    X(size_t, b_scratch_bytes, (size_t k))                                                                             \
    X(void, b_matmul,                                                                                                  \
      (float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows, uint8_t *scratch))            \
                                                                                                                       \
    /* fp32 products (R6) with weights of any format; rows of W are widened as by row_f32. Row i of x is plain f32     \
       at x + (index ? index[i] : i) * ldx; k is padded with zeros to MT_LANES in the arithmetic, not in memory. */    \
    X(size_t, f_scratch_bytes, (size_t k))                                                                             \
    X(void, f_matmul,                                                                                                  \
      (float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const float *x, size_t ldx, const uint32_t *index, \
       size_t m, uint8_t *scratch))                                                                                    \
                                                                                                                       \
    /* Writes a key, or a value, of n elements to slot `slot` of a page's bf16 block: rounded to nearest even,         \
       zeros from n to head_stride. Threads may write different slots at once. */                                      \
    X(void, kv_put_bf16, (uint8_t *block, size_t slot, size_t head_stride, const float *x, size_t n, bool value))      \
    /* Attention (R8) over segment `seg`, for each of a->rows rows. o is [rows][head_stride] f32, overwritten.         \
       Pages must exist for all positions below the largest hi; no position from there on affects a result. */         \
    X(size_t, attn_scratch_bytes, (size_t rows, size_t head_stride))                                                   \
    X(void, attn_bf16, (float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch))                 \
    X(void, attn_f32, (float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch))                  \
    /* attn_bf16 over blocks that are plain arrays at every level, with the same bits: k_offset may be v_offset */     \
    X(void, attn_plain, (float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch))                \
    /* Keys and values in 8 or 4 bits (kvq.h); head_stride is a multiple of 32. kv_turn rotates a vector, or (back)    \
       inverts that: pairs (i, i + h) become (a + b, a - b), h = n / 2, ..., 2, 1. */                                  \
    X(void, kv_turn, (float *x, size_t head_stride, bool back))                                                        \
    /* Stores a rotated key or value with the scale d = bf16(amax / 127) and the integers round-to-even(x * (1 /       \
       d)), at most 127; with 4 bits d = bf16(amax / 112), and sixteen times round-to-even(x * (0.0625 / d)), at       \
       most 7. All are zero where that factor is not finite; amax carries NaN, so that d shows it. */                  \
    X(void, kv_put_q,                                                                                                  \
      (uint8_t *block, size_t tokens, size_t slot, size_t head_stride, unsigned bits, const float *x, size_t n,        \
       bool value))                                                                                                    \
    /* y[0..head_stride) = a stored vector, rotated back */                                                            \
    X(void, kv_get_q,                                                                                                  \
      (float *y, const uint8_t *block, size_t tokens, size_t slot, size_t head_stride, unsigned bits, bool value))     \
    /* A query, rotated and divided by the number of channels that are rotated together, in int8 by R3 with one        \
       scale */                                                                                                        \
    X(void, kv_query, (uint8_t *q, const float *x, size_t n, size_t head_stride))                                      \
    X(size_t, attn_q_scratch_bytes, (size_t rows, size_t head_stride))                                                 \
    /* R8 over these, with exact integer sums. s = (dot * kd) * (qd * scale); m = max, p = exp(max(s - m, -80)),       \
       invisible p = +0, l by R6 over p; w = p * vd, t = the largest w, u = round-to-even(w * (65535 / t)), zero       \
       where that factor is not finite; o = (t / 65535) * (the sum of u v, as fp32), still rotated. */                 \
    X(void, attn_q, (float *o, mt_attn_part *part, const mt_attn *a, size_t seg, uint8_t *scratch))                    \
    /* Adds a segment's result to the accumulator (acc, acc_o): M' = max(M, m), O = fma(O, exp(M - M'), o * exp(m -    \
       M')), L likewise; a part with l == 0 and m == -inf changes nothing. Start: m = -inf, l = 0, o = 0. */           \
    X(void, attn_merge, (float *acc_o, mt_attn_part *acc, const float *o, const mt_attn_part *part, size_t n))
/* clang-format on */

#define MT_ROW_TILE 8  /* rows are packed in multiples of so many; every level's row tile divides it */
#define MT_COL_TILE 32 /* matmuls are fastest on column ranges [n0, n1) that are multiples of this */

typedef struct mt_kernels {
#define MT_KERNEL_FIELD(result, name, args) result(*name) args;
    MT_KERNELS(MT_KERNEL_FIELD)
#undef MT_KERNEL_FIELD
    unsigned cpu; /* the features in use */
} mt_kernels;

/* The MT_CPU_ bits of this processor. */
unsigned mt_cpu_detect(void);

/* Writes "neon,dotprod,..." to buf, or "portable" when cpu is 0. Returns buf. */
const char *mt_cpu_names(unsigned cpu, char *buf, size_t size);

/* Parses a --cpu-mask list ("all", "portable", "neon,dotprod"). False on an unknown name. */
bool mt_cpu_parse(const char *list, unsigned *mask);

/* Fills the table with portable C, overlaid by the levels of cpu (MT_CPU_ bits); a level whose requirements are not all
   in the set is skipped. */
void mt_kernels_init(mt_kernels *k, unsigned cpu);

/* The R5 level of a table: 0 where bf16 products are computed in fp32 (R6), 1 with BFMMLA, 2 with AMX. Part of the
   fingerprint (R12). */
unsigned mt_kernels_r5_level(const mt_kernels *k);

#endif
