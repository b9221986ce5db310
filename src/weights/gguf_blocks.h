/* Block types of GGUF files: some weights of a row with their scales, one block behind the other. */
#ifndef MT_WEIGHTS_GGUF_BLOCKS_H
#define MT_WEIGHTS_GGUF_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/matrix.h"
#include "weights/bind.h"
#include "weights/gguf.h"

/* Types of tensors, as numbered in the file. */
enum {
    MT_GGML_F32 = 0,
    MT_GGML_F16 = 1,
    MT_GGML_Q4_0 = 2,
    MT_GGML_Q4_1 = 3,
    MT_GGML_Q5_0 = 6,
    MT_GGML_Q5_1 = 7,
    MT_GGML_Q8_0 = 8,
    MT_GGML_Q2_K = 10,
    MT_GGML_Q3_K = 11,
    MT_GGML_Q4_K = 12,
    MT_GGML_Q5_K = 13,
    MT_GGML_Q6_K = 14,
    MT_GGML_IQ4_NL = 20,
    MT_GGML_IQ4_XS = 23,
    MT_GGML_BF16 = 30,
    MT_GGML_MXFP4 = 39,
    MT_GGML_NVFP4 = 40
};
#define MT_GGUF_BLOCK_MOST 256 /* most elements of a block */

/* NULL where weights of this type can be used; else the reason, as the end of a sentence. */
const char *mt_gguf_type_refused(uint32_t type);

/* Widens whole blocks to fp32, with the bits that the gguf package's dequantize gives. The type is one that is not
   refused, `elements` a multiple of the block's. */
void mt_gguf_block_floats(uint32_t type, const uint8_t *from, size_t elements, float *to);

/* A tensor of blocks, `stack` matrices [n, k] one behind the other (0: one matrix), laid out anew for the kernels in
   the binder's arena. *out is the first; the others follow by mt_mat_item. Row i is row row_order[i] of the file, in
   each matrix alike; NULL: as they are. Reports what is wrong. */
bool mt_gguf_blocks_bind(mt_binder *b, const mt_tensor_info *t, size_t stack, size_t n, size_t k,
                         const uint32_t *row_order, mt_mat *out);

/* A block taken apart, shared by the files gguf_*.c and bind_gguf.c. */
typedef struct mt_gguf_block {
    uint8_t code[MT_GGUF_BLOCK_MOST]; /* unsigned, in the order of the elements */
    int8_t scale[16], least[16];      /* of each group, times d and dmin; 1 and 1 where blocks have no groups */
    uint8_t byte[4];                  /* MXFP4: E8M0; NVFP4: E4M3 of each group */
    uint16_t d, dmin; /* f16; dmin is the bias of Q4_1 and Q5_1, and what is subtracted in Q2_K, Q4_K, Q5_K */
} mt_gguf_block;

/* How a type's weights are made of its codes. */
typedef struct mt_gguf_layout {
    mt_format format;
    uint8_t bits;
    uint16_t group;
    bool two_level; /* scales of groups are integers times one f16 of the block */
    bool minimum;   /* dmin times an integer is subtracted; else, where AFFINE, dmin is added */
    void (*open)(mt_gguf_block *o, const uint8_t *from);
} mt_gguf_layout;

/* NULL for plain types and refused ones. */
const mt_gguf_layout *mt_gguf_layout_of(uint32_t type);

#endif
