/* Parameters of kernels, passed by value: included by the host's compiler and by nvcc. */
#ifndef MT_DEVICE_CUDA_PARAMS_H
#define MT_DEVICE_CUDA_PARAMS_H

#include <stdint.h>

#include "device/limits.h"
#include "device/native.h"
#include "sample/limits.h"

#define MT_CUDA_GROUPS 4 /* MT_KV_GROUPS */
#define MT_CUDA_NONE UINT32_MAX
#define MT_CUDA_TILE 16  /* columns of a weight that are stored together */
#define MT_CUDA_STEP 128 /* elements of k that are stored together */

/* Structs have no padding, whose bytes would be undefined: launches are compared by their bytes (host/launch.c). */
#if defined(__clang__) && !defined(__CUDACC__)
#pragma clang diagnostic push
#pragma clang diagnostic error "-Wpadded"
#endif

/* A pointer to device memory, with a type on both sides. */
#if defined(__CUDACC__)
#define MT_CUDA_PTR(type) type *
#else
#define MT_CUDA_PTR(type) uint64_t
#endif

typedef struct mt_cuda_mat {
    MT_CUDA_PTR(float) data;
    uint32_t rows, cols;
    uint64_t stride;
} mt_cuda_mat;

/* mt_columns of device.h. */
typedef struct mt_cuda_cols {
    mt_cuda_mat x;
    uint32_t base, step;
} mt_cuda_cols;

/* A weight as it lies on the device, but for plain rows in tiles of 16 columns, in the order in which tensor cores or
   the lanes of a warp want them (code_at and half_at in common/common.cuh say where an element is):

       CODES4, CODES8  steps of 128 of k, in them for each half of the columns 32 lanes of 16 or of 32 bytes
       HALVES          bf16; steps of 64 of k, in them a column after the other, whose eight pieces of 16 bytes stand
                       in the order piece ^ column % 8, as those of packed rows do
       BYTES           FP8; steps of 64 of k, in them for each half of the columns 32 lanes of 16 bytes, four elements
                       a word as products/fp8.cuh has them
       NATIVE4, NATIVE8  codes for the arithmetic `native`, in tiles of 64 columns; steps of 64 of k, in them 128 lanes
                       of 16 bytes, or twice that, in the order in which wgmma has its first operand in registers, and
                       behind these a scale and a bias for each column and each of `groups` groups (device/native.h)

   There is memory for an even number of tiles; what is beyond n or k is 0. */
typedef enum mt_cuda_kind {
    MT_CUDA_CODES4,
    MT_CUDA_CODES8,
    MT_CUDA_HALVES,
    MT_CUDA_BYTES,
    MT_CUDA_PLAIN,
    MT_CUDA_NATIVE4,
    MT_CUDA_NATIVE8
} mt_cuda_kind;

typedef struct mt_cuda_weight {
    MT_CUDA_PTR(const uint8_t) w;
    /* codes: [tile][group][16] scale and bias; FP8 and MXFP8: f32, in the file's order */
    MT_CUDA_PTR(const uint8_t) scales;
    MT_CUDA_PTR(const float) bias; /* of the columns; 0: none */
    uint32_t n, k, group;
    uint32_t steps;                /* of k */
    uint32_t groups;               /* of a row; of NATIVE4 and NATIVE8: of a step */
    uint8_t kind, format, biased;  /* format: mt_format; biased: groups have a bias */
    uint8_t pairs;                 /* mt_scale_type of scale and bias: F32, or BF16 or F16, both in one word */
    uint32_t row_bytes, scale_row; /* bytes of a plain row; floats of a row of scales */
    float unit;                    /* of NATIVE4 and NATIVE8: the power of two that a product is multiplied with */
    uint32_t nothing;
} mt_cuda_weight;

typedef struct mt_cuda_span {
    uint32_t row, rows, position;
    uint32_t pages[MT_CUDA_GROUPS]; /* index of its page tables in the step's */
    uint32_t state, piece, pieces;  /* piece: index of its first piece in the step's */
    uint32_t guesses, memo, replay;
} mt_cuda_span;

typedef struct mt_cuda_piece {
    uint32_t rows, slot;
} mt_cuda_piece;

/* Page numbers that a step's tables have at least: kernels read these before they know which they want. */
#define MT_CUDA_PAGES_FIRST 32

/* The batch of a step, copied to the device as one block. */
typedef struct mt_cuda_step {
    uint32_t rows, spans;
    MT_CUDA_PTR(const uint32_t) tokens;
    MT_CUDA_PTR(const uint32_t) positions; /* [rows][3] */
    MT_CUDA_PTR(const uint32_t) span_of;   /* [rows] */
    MT_CUDA_PTR(const uint32_t) features;  /* this and the next two: 0 where the batch has none */
    MT_CUDA_PTR(const uint32_t) seen_from;
    MT_CUDA_PTR(const uint32_t) seen;
    MT_CUDA_PTR(const mt_cuda_span) span;
    MT_CUDA_PTR(const mt_cuda_piece) piece;
    MT_CUDA_PTR(const uint32_t) pages;
} mt_cuda_step;

typedef struct mt_cuda_kv {
    MT_CUDA_PTR(uint8_t) data;
    uint64_t page_bytes, block; /* block: bytes of [page_tokens][head_stride] */
    uint32_t group, layers, heads, query_heads, head_dim, head_stride, page_tokens, f32;
    uint32_t bits; /* of an integer: 8 or 4 (kernels/kvq.h); 0: not integers */
    uint32_t nothing;
} mt_cuda_kv;

typedef struct mt_cuda_states {
    MT_CUDA_PTR(float) data;
    MT_CUDA_PTR(float) memo;
    uint64_t layer, conv, memo_row; /* in floats */
    uint32_t layers, key_heads, value_heads, key_dim, value_dim, taps, columns, blocks;
} mt_cuda_states;

/* ---- one struct for each kernel, or for several that are alike ---- */

typedef enum mt_cuda_binary { MT_CUDA_ADD, MT_CUDA_GATE, MT_CUDA_ADD_GATED, MT_CUDA_SCALE } mt_cuda_binary;

typedef struct mt_cuda_rows { /* rows: elementwise operations, norms */
    mt_cuda_mat y, y2, x, x2, w, bias;
    MT_CUDA_PTR(const uint32_t) index;
    MT_CUDA_PTR(uint32_t) out;
    mt_cuda_step step;
    uint32_t m, first, head_dim, count, kind, pairs;
    float eps, offset, scale, limit;
} mt_cuda_rows;

typedef struct mt_cuda_heads { /* one or two kinds of heads, and where keys and values go */
    mt_cuda_mat x[2], y[2], w[2];
    mt_cuda_mat table; /* of rotations; data 0: none, also in w */
    mt_cuda_mat v; /* values, which are written to the pages with the heads number `keys`; data 0: nothing is written */
    mt_cuda_kv kv;
    mt_cuda_step step;
    uint32_t m, count, head_dim, pairs, keys, layer;
    float eps, offset;
    uint32_t kept_only; /* the y of keys is not read */
    uint32_t apart;     /* floats from a head of x[0] to the next */
    mt_cuda_mat gates;  /* gets what stands behind each head of x[0]; data 0: nothing does */
} mt_cuda_heads;

typedef struct mt_cuda_choice { /* the best of each row of logits; a NaN where one is not finite */
    mt_cuda_mat x;
    MT_CUDA_PTR(uint32_t) out; /* [rows][2]: id, logit, as a mt_best */
    uint32_t vocab, unused;
} mt_cuda_choice;

#define MT_CUDA_CHOOSE_VOCAB (1u << 19) /* most logits of a row that the kernel chooses from */
/* A row's logprobs: that of the token, how many likeliest follow, their ids and logprobs. */
#define MT_CUDA_TOP_WORDS (2 + 2 * MT_LIMIT_TOP_LOGPROBS)

typedef struct mt_cuda_order { /* how a row's token is chosen (docs/sampling.md) */
    uint64_t random;
    float inverse; /* 1 / temperature; 0: the best is taken */
    float least;   /* log(min_p) */
    float top_p;
    uint32_t top_k; /* 0: all */
    float repetition, frequency, presence;
    uint32_t seen_first, seen_count; /* penalised tokens */
    uint32_t mask;                   /* 1 + which; 0: none */
    int32_t logprobs;                /* as in mt_sample_settings */
    uint32_t wanted;                 /* 0: the row's token is not needed */
} mt_cuda_order;

typedef struct mt_cuda_seen { /* a token that was seen, and how often it was generated */
    uint32_t id, count;
} mt_cuda_seen;

typedef struct mt_cuda_choose { /* orders, masks and what was seen: in the host's memory */
    mt_cuda_mat x;
    MT_CUDA_PTR(uint32_t) out;               /* as a mt_cuda_choice has it */
    MT_CUDA_PTR(uint32_t) tops;              /* [rows][MT_CUDA_TOP_WORDS] */
    MT_CUDA_PTR(const mt_cuda_order) orders; /* [rows] */
    MT_CUDA_PTR(const uint32_t) masks;       /* [][(vocab + 31) / 32] */
    MT_CUDA_PTR(const mt_cuda_seen) seen;
    MT_CUDA_PTR(float) penalised; /* room for a logit of each of these */
    uint32_t vocab, unused;
} mt_cuda_choose;

typedef struct mt_cuda_follow { /* tokens of a step that were chosen before */
    MT_CUDA_PTR(uint32_t) tokens;
    MT_CUDA_PTR(const uint32_t) chosen; /* as a mt_cuda_choice has them */
    MT_CUDA_PTR(const uint32_t) from;   /* [m]: of which row; MT_NO_PAGE: of none */
    uint32_t m, unused;
} mt_cuda_follow;

typedef struct mt_cuda_lookup { /* rows of a weight */
    mt_cuda_mat y, factor;
    mt_cuda_weight w;
    MT_CUDA_PTR(const uint32_t) index;
    uint32_t m, count;
    float scale;
    uint32_t nothing;
} mt_cuda_lookup;

/* Rows packed for products, in steps of 128 bytes of k whose rows lie together. For products with codes (R3):

       q      [steps][rows][128] int8; the eight pieces of 16 bytes of a row stand in the order piece ^ row % 8, so that
              eight rows of a column of pieces are in different banks when the step lies in shared memory as it is
       turns  [steps][rows][4] of each block of 32 the mul of its turn (kernels/block.h): that of mt_turn_on for the
              first block of a link, else the block's scale. add follows from it, exactly as on the CPU: turn_on_add and
              turn_end_add in common/common.cuh
       sums   [steps][rows][128 / group] sx of each group of the weight

   For products with bf16, q alone: [steps][rows][64] bf16, pieces in the same order.

   For `native`, where `rows` is the number of rows of a tile, and padded a multiple of MT_NATIVE_CHUNK:

       q      [tiles][padded / 64][rows][64] fp16 numbers, divided by the power of two of their segment; pieces in the
              same order
       turns  [tiles][padded / 256][rows][4] bytes: number i of each segment's unit 2^(-56 + 16 i)

   What is beyond k is 0. Kernels that take many rows may read up to MT_CUDA_SLACK rows beyond the last. */
#define MT_CUDA_SLACK 192

typedef struct mt_cuda_packed {
    MT_CUDA_PTR(uint8_t) q;
    MT_CUDA_PTR(float) turns;
    MT_CUDA_PTR(float) sums;
    uint32_t rows, padded; /* rows: that there is room for; padded: k, rounded up to a multiple of 128 */
} mt_cuda_packed;

typedef struct mt_cuda_pack {
    mt_cuda_mat x;
    MT_CUDA_PTR(const uint32_t) index; /* rows of x; 0: in order */
    mt_cuda_packed to;
    uint32_t m, k, group, wide; /* wide: for weights of 8 bits */
    uint32_t halves, nothing;   /* halves: as bf16 */
} mt_cuda_pack;

typedef struct mt_cuda_made { /* rows that are packed as they are computed */
    mt_cuda_rows rows;
    mt_cuda_pack pack;             /* to.q 0: they are not packed */
    uint32_t packed_only, nothing; /* packed_only: y is not read */
} mt_cuda_made;

#define MT_CUDA_PART 1024                                  /* of a row that a warp gates or packs */
#define MT_CUDA_PART_THREADS 128                           /* of a block of such warps */
#define MT_CUDA_NORM_PARTS 4                               /* of a row that is normed by one block: its warps */
#define MT_CUDA_NORM_WARPS 4                               /* warps of a block of layer_norm: two rows each */
#define MT_CUDA_NORM_STRIDE(n) (((n) + 31) / 32 * 32 + 16) /* floats from one of these rows to the next */

/* Rows sorted by expert: so many neighbouring rows are multiplied with this expert. */
typedef struct mt_cuda_share {
    uint32_t expert, row, rows;
} mt_cuda_share;

/* Experts of a product; experts 0: none, all rows are multiplied with the weight itself. */
typedef struct mt_cuda_shares {
    MT_CUDA_PTR(const mt_cuda_weight) experts; /* all of the same kind */
    MT_CUDA_PTR(const mt_cuda_share) share;
    MT_CUDA_PTR(const uint32_t) count; /* number of shares */
} mt_cuda_shares;

typedef struct mt_cuda_product {
    mt_cuda_mat y, x;
    mt_cuda_weight w;
    mt_cuda_shares shares;           /* of at most 8 rows */
    MT_CUDA_PTR(const uint32_t) row; /* in fp32: the row of x of each; 0: in order */
    mt_cuda_packed from;
    uint32_t m, nothing;
} mt_cuda_product;

#define MT_CUDA_CODES_APART 64 /* bytes between two columns of codes in shared memory, for other banks */
#define MT_CUDA_TOGETHER 4     /* most weights that share their input */

/* Up to 64 rows with codes: columns of all weights in tiles of 16. */
#define MT_CUDA_FEW_ROWS 64
#define MT_CUDA_FEW_WARPS 12  /* warps of a block that multiply; two fewer above 32 rows */
#define MT_CUDA_FEW_STAGES 24 /* most chunks of tiles, and of rows, in shared memory */
#define MT_CUDA_FEW_ROW_STAGES 6

/* Any number of rows in fp32 (products/f32.cu): columns of a tile, elements of k in a chunk, chunks in shared memory;
   the same for many rows. Bytes of shared memory of a block, by rows and columns of a tile and bits of an element. */
#define MT_CUDA_F32_COLUMNS 4
#define MT_CUDA_F32_DEPTH 512
#define MT_CUDA_F32_STAGES 5
#define MT_CUDA_F32_MANY_COLUMNS 32
#define MT_CUDA_F32_MANY_DEPTH 128
#define MT_CUDA_F32_MANY_STAGES 3
#define MT_CUDA_F32_SHARED(rows, columns, depth, stages, bits)                                        \
    ((stages) * ((rows) * (depth)*4 + (columns) * (depth) / 2 + (columns) * ((depth) / 8 * (bits))) + \
     2 * (columns) * ((depth) + 16) * 4)

typedef struct mt_cuda_f32 {
    mt_cuda_weight w[MT_CUDA_TOGETHER]; /* of the same kind, except their columns */
    mt_cuda_mat y[MT_CUDA_TOGETHER];
    mt_cuda_mat x;
    uint32_t first[MT_CUDA_TOGETHER + 1]; /* first tile of columns of each */
    uint32_t m, count, bits;              /* bits: of an element as it is stored */
} mt_cuda_f32;

typedef enum mt_cuda_making { MT_CUDA_PACKED, MT_CUDA_AS_THEY_ARE, MT_CUDA_NORMED } mt_cuda_making;

typedef struct mt_cuda_few {
    mt_cuda_weight w[MT_CUDA_TOGETHER]; /* of the same kind, except their columns */
    mt_cuda_mat y[MT_CUDA_TOGETHER];
    mt_cuda_mat add; /* the first y is added to this, too; data 0: not */
    mt_cuda_packed from;
    uint32_t first[MT_CUDA_TOGETHER + 1]; /* first tile of each */
    uint32_t m, count;
    uint32_t together, chunk, stages, row_stages; /* tiles side by side; steps of a chunk; row: places of a team */
    uint32_t split, nothing;                      /* warps that take turns */
    uint32_t made;                                /* how products/codes_rows1_8.cu gets its row: mt_cuda_making */
    mt_cuda_mat x, out;                           /* its input; where a normed row is written */
    MT_CUDA_PTR(const float) norm;                /* weights of the norm */
    float eps, offset;
    mt_cuda_mat glu; /* where gate and up, combined, go; data 0: nowhere */
    float glu_limit, glu_offset;
    uint32_t act;
    uint32_t unused;
} mt_cuda_few;

/* Up to 8 rows with codes in groups of 64 (products/codes_rows1_8.cu). */
#define MT_CUDA_ROW_ROWS 8
#define MT_CUDA_ROW_WARPS 8 /* of a team */
#define MT_CUDA_ROW_TEAMS 2 /* of a block */
/* Bytes of shared memory for what the warps of all teams leave of their chunks in a round, of one row and of more: two
   steps of a lane, or of 16 columns of 8 rows, and scales with biases. A team has one place for it or two. */
#define MT_CUDA_ROW_LEFT(bits) (MT_CUDA_ROW_TEAMS * MT_CUDA_ROW_WARPS * (8 / (bits)) * 32 * 32)
#define MT_CUDA_ROW_LEFT_MORE(bits) (MT_CUDA_ROW_TEAMS * MT_CUDA_ROW_WARPS * (8 / (bits)) * 16 * (8 + 1) * 16)

/* Shares of at most 8 rows with codes, for one or two parts of each expert that have equally many columns. */
#define MT_CUDA_SHARE_STAGES 6 /* steps in shared memory, for each warp */

typedef struct mt_cuda_few_shares {
    mt_cuda_shares shares[2];
    mt_cuda_mat y[2];
    mt_cuda_packed from;
} mt_cuda_few_shares;

/* Many rows with codes or halves: columns of all weights in tiles of MT_CUDA_MANY. */
#define MT_CUDA_MANY 128
#define MT_CUDA_MANY_STAGES(arch) ((arch) == 89 ? 2 : 4) /* steps in shared memory; some cards have less */
#define MT_CUDA_HALF_STAGES 3
#define MT_CUDA_WIDE_STAGES 6
#define MT_CUDA_PAIR 192 /* rows of two blocks that share them, each with columns of its own */
#define MT_CUDA_PAIR_THREADS 512
#define MT_CUDA_PAIR_STAGES 5
#define MT_CUDA_PAIR_STAGE ((MT_CUDA_PAIR + MT_CUDA_MANY) * 128) /* bytes */

/* The same with warpgroups, for groups of 64 or 128; each: groups in 128 of k. Bytes of shared memory, as broad_stage
   uses them. */
#define MT_CUDA_BROAD_THREADS 512
#define MT_CUDA_BROAD_SHARED(each)                                                       \
    (4 * ((128 * (128 + 16 + (each)*4) + 8 * (1024 + (each)*64) + 1023) / 1024 * 1024) + \
     2 * ((128 * 128 + (each)*1152 + 1023) / 1024 * 1024) + 128 * 144 * 4)
#define MT_CUDA_BROAD_PART (128u << 10) /* bytes of sums that a block leaves to the next */
#define MT_CUDA_BROAD_MARKS 16          /* that they are there: of twelve warps */

typedef struct mt_cuda_many {
    mt_cuda_weight w[MT_CUDA_TOGETHER]; /* of the same kind, except their columns */
    mt_cuda_mat y[MT_CUDA_TOGETHER];
    mt_cuda_packed from;
    mt_cuda_shares shares;                /* of at most MT_CUDA_MANY rows, for one weight */
    uint32_t first[MT_CUDA_TOGETHER + 1]; /* first tile of columns of each */
    uint32_t m, count, nothing;
    MT_CUDA_PTR(float) parts;     /* [blocks][MT_CUDA_BROAD_PART]: sums of tiles that two blocks share */
    MT_CUDA_PTR(uint32_t) counts; /* [blocks][MT_CUDA_BROAD_MARKS]: that they are there; 0 between kernels */
} mt_cuda_many;

/* `native`: columns of a tile of a weight, elements of k in a step; bytes of a step of a tile's codes, and with scales
   and biases of so many groups. */
#define MT_CUDA_NATIVE_TILE 64
#define MT_CUDA_NATIVE_STEP 64
#define MT_CUDA_NATIVE_CODES(bits) (512 * (bits))
#define MT_CUDA_NATIVE_BYTES(bits, groups) (MT_CUDA_NATIVE_CODES(bits) + (groups)*MT_CUDA_NATIVE_TILE * 4)
#define MT_CUDA_NATIVE_CHUNK_STEPS (MT_NATIVE_CHUNK / MT_CUDA_NATIVE_STEP)

/* Up to 64 rows (native/native_few.cuh). X(bits, groups, rows, tiles, blocks): of a weight's codes; groups of a step;
   rows of a tile of packed rows; tiles of a weight in a block; the most blocks of a multiprocessor. A stage of the ring
   has a chunk of 256 of k: the rows, the numbers of their units, and the weights. */
#define MT_CUDA_NATIVE_FEW_4_1(X) \
    X(4, 1, 8, 1, 1)              \
    X(4, 1, 8, 2, 3)              \
    X(4, 1, 16, 1, 2)             \
    X(4, 1, 16, 2, 2)             \
    X(4, 1, 32, 1, 2) X(4, 1, 32, 2, 2) X(4, 1, 64, 1, 2) X(4, 1, 64, 2, 2) X(4, 1, 32, 6, 1) X(4, 1, 64, 6, 1)
#define MT_CUDA_NATIVE_FEW_4_2(X) X(4, 2, 8, 2, 3) X(4, 2, 16, 2, 2) X(4, 2, 32, 2, 2) X(4, 2, 64, 2, 2)
#define MT_CUDA_NATIVE_FEW_4_4(X) X(4, 4, 8, 2, 3) X(4, 4, 16, 2, 2) X(4, 4, 32, 2, 2) X(4, 4, 64, 2, 1)
#define MT_CUDA_NATIVE_FEW_8_1(X) X(8, 1, 8, 2, 2) X(8, 1, 16, 2, 2) X(8, 1, 32, 2, 2) X(8, 1, 64, 2, 1)
#define MT_CUDA_NATIVE_FEW_8_2(X) X(8, 2, 8, 2, 2) X(8, 2, 16, 2, 2) X(8, 2, 32, 2, 2) X(8, 2, 64, 2, 1)
#define MT_CUDA_NATIVE_FEW_8_4(X) X(8, 4, 8, 2, 2) X(8, 4, 16, 2, 2) X(8, 4, 32, 2, 1) X(8, 4, 64, 2, 1)
#define MT_CUDA_NATIVE_FEW(X) \
    MT_CUDA_NATIVE_FEW_4_1(X) \
    MT_CUDA_NATIVE_FEW_4_2(X) \
    MT_CUDA_NATIVE_FEW_4_4(X) MT_CUDA_NATIVE_FEW_8_1(X) MT_CUDA_NATIVE_FEW_8_2(X) MT_CUDA_NATIVE_FEW_8_4(X)
/* Up to so many rows are multiplied by instructions of a warp, more by those of a warpgroup. */
#define MT_CUDA_NATIVE_WARP_ROWS 16
#define MT_CUDA_NATIVE_FEW_UNITS(rows) ((rows)*MT_NATIVE_CHUNK * 2)
#define MT_CUDA_NATIVE_FEW_WEIGHTS(rows) (MT_CUDA_NATIVE_FEW_UNITS(rows) + ((rows)*4 + 127) / 128 * 128)
/* Instructions of a warpgroup read rows from a multiple of 1024 on. */
#define MT_CUDA_NATIVE_FEW_ALIGN(rows) ((rows) <= MT_CUDA_NATIVE_WARP_ROWS ? 128 : 1024)
#define MT_CUDA_NATIVE_FEW_STAGE(bits, groups, rows, tiles)                                                        \
    ((MT_CUDA_NATIVE_FEW_WEIGHTS(rows) + (tiles)*MT_CUDA_NATIVE_CHUNK_STEPS * MT_CUDA_NATIVE_BYTES(bits, groups) + \
      MT_CUDA_NATIVE_FEW_ALIGN(rows) - 1) /                                                                        \
     MT_CUDA_NATIVE_FEW_ALIGN(rows) * MT_CUDA_NATIVE_FEW_ALIGN(rows))
/* Threads: a warpgroup a tile, and a warp that copies, or a warpgroup where registers are handed over. */
#define MT_CUDA_NATIVE_FEW_THREADS(rows, tiles) ((tiles)*128 + ((rows) <= MT_CUDA_NATIVE_WARP_ROWS ? 32 : 128))

/* One row (native/native_row.cu). X(bits, groups, tiles): as above. A stage of its ring has a chunk of 256 of k of a
   block's weights; beside the ring, bytes for the packed row of a group of k with the numbers of its units; blocks that
   a multiprocessor has registers for. */
#define MT_CUDA_NATIVE_ROW(X) \
    X(4, 1, 1)                \
    X(4, 1, 2)                \
    X(4, 2, 1) X(4, 2, 2) X(4, 4, 1) X(4, 4, 2) X(8, 1, 1) X(8, 1, 2) X(8, 2, 1) X(8, 2, 2) X(8, 4, 1) X(8, 4, 2)
#define MT_CUDA_NATIVE_ROW_THREADS(tiles) ((tiles)*128 + 32)
#define MT_CUDA_NATIVE_ROW_STAGE(bits, groups, tiles) \
    ((tiles)*MT_CUDA_NATIVE_CHUNK_STEPS * MT_CUDA_NATIVE_BYTES(bits, groups))
#define MT_CUDA_NATIVE_ROW_OWN (MT_NATIVE_GROUP * 2 + 128)
#define MT_CUDA_NATIVE_ROW_BLOCKS(tiles) ((tiles) == 1 ? 6 : 3)

typedef struct mt_cuda_native {
    mt_cuda_weight w[MT_CUDA_TOGETHER];
    mt_cuda_mat y[MT_CUDA_TOGETHER];
    mt_cuda_mat add; /* the first y is also added to this; data 0: to nothing */
    mt_cuda_packed from;
    uint32_t first[MT_CUDA_TOGETHER + 1]; /* the first block's columns of each, counted in blocks */
    uint32_t m, count, gates;             /* gates: of two weights, gate and up, a block has a tile of each */
    mt_cuda_mat glu;                      /* gets these combined, in place of y; data 0: nothing does */
    mt_cuda_packed gated;                 /* gets the same, packed; q 0: nothing does */
    float glu_limit, glu_offset;
    uint32_t act, packed_only; /* packed_only: glu is not read */
    /* Of one row (native/native_row.cu), which is not packed yet: */
    mt_cuda_mat x, out;            /* out: gets the normed row; data 0: nothing does */
    MT_CUDA_PTR(const float) norm; /* weights of the norm; 0: there is none */
    float eps, offset;
    uint32_t stages, nothing; /* of the ring, of few rows as well */
} mt_cuda_native;

/* Many rows (native/native_prompt.cu), by weights that were decoded to fp16 before: [tiles of 128
   columns][steps][128][64], in pieces as those of packed rows. */
#define MT_CUDA_NATIVE_ROWS 64 /* of a tile of packed rows, and of a warpgroup */
#define MT_CUDA_NATIVE_GROUPS 3
#define MT_CUDA_NATIVE_COLUMNS 128
#define MT_CUDA_NATIVE_STAGES 5
#define MT_CUDA_NATIVE_THREADS (128 * (MT_CUDA_NATIVE_GROUPS + 1))
#define MT_CUDA_NATIVE_STAGE \
    ((MT_CUDA_NATIVE_GROUPS * MT_CUDA_NATIVE_ROWS + MT_CUDA_NATIVE_COLUMNS) * MT_CUDA_NATIVE_STEP * 2)
#define MT_CUDA_NATIVE_SCRATCH (128u << 20) /* bytes of decoded weights, at most */

typedef struct mt_cuda_native_prompt {
    mt_cuda_weight w;
    mt_cuda_mat y;
    mt_cuda_packed from;
    MT_CUDA_PTR(uint8_t) decoded;
    uint32_t column, columns; /* of the weight that are decoded and multiplied: multiples of 128, or to its end */
    uint32_t m, nothing;
} mt_cuda_native_prompt;

/* Few rows with halves or bytes: columns of all weights in tiles of 16. */
#define MT_CUDA_FEW_HALF_STAGES 16 /* most chunks in shared memory */
#define MT_CUDA_HALF_WARPS 12      /* most warps of a block that multiply, and most tiles side by side */

/* Bytes that a warp leaves of two tiles for those that share k with it, for so many times eight rows: sums, scales. */
#define MT_CUDA_HALF_PART(eights) (2 * (eights)*512 + 16)

typedef struct mt_cuda_halves {
    mt_cuda_weight w[MT_CUDA_TOGETHER]; /* of the same kind, except their columns */
    mt_cuda_mat y[MT_CUDA_TOGETHER];
    mt_cuda_packed from;
    uint32_t first[MT_CUDA_TOGETHER + 1]; /* first tile of each */
    uint32_t m, count;
    uint32_t together, chunk, stages; /* tiles side by side; steps of 64 of a chunk */
    mt_cuda_mat add;                  /* the first y is also added to this; data 0: to nothing */
    mt_cuda_mat glu;      /* gets the first y combined with the second as gate and up; data 0: nothing does */
    mt_cuda_packed gated; /* gets the same as bf16; q 0: nothing does */
    float glu_limit, glu_offset;
    uint32_t act, nothing;
} mt_cuda_halves;

/* Attention of many rows on Hopper: warpgroups that compute, of 64 rows each; stages of the ring, of 16 KiB each; KiB
   of shared memory for queries, stages and results, and bytes for all that is small. */
#define MT_CUDA_ATTEND_GROUPS(hd) ((hd) == 64 ? 3 : 2)
#define MT_CUDA_ATTEND_STAGES(hd) ((hd) == 128 ? 8 : 9)
#define MT_CUDA_ATTEND_THREADS(hd) (128 * (1 + MT_CUDA_ATTEND_GROUPS(hd)))
#define MT_CUDA_ATTEND_KIB(hd) \
    (MT_CUDA_ATTEND_GROUPS(hd) * (((hd) + 63) / 64 * 8 + (hd) / 4) + MT_CUDA_ATTEND_STAGES(hd) * 16)
#define MT_CUDA_ATTEND_SMALL 3072

typedef struct mt_cuda_attention {
    mt_cuda_mat y, x, v; /* result; queries, or keys and values to be written */
    mt_cuda_kv kv;
    mt_cuda_step step;
    MT_CUDA_PTR(const float) sinks;
    MT_CUDA_PTR(float) parts;     /* partial results, see part_at */
    MT_CUDA_PTR(uint32_t) counts; /* [span][kv head]: shares of a tile that are done; 0 between kernels */
    uint32_t tile, part_rows;     /* tokens of a tile; rows of a partial result */
    /* most shares of a tile's segments; items: tiles times key heads times shares */
    uint32_t tile_count, shares, items;
    uint32_t layer, window, chunk, causal, heads; /* heads: query heads */
    mt_cuda_packed packed;                        /* gets y packed for `native` as well; q 0: nothing does */
    uint32_t packed_only, nothing;                /* packed_only: y is not read */
    uint32_t apart;                               /* the last tile has one item for two key heads */
    uint32_t alone; /* a tile of few rows is one share if its segments after the first, times its eights of rows, are so
                       many at most */
    float scale, softcap;
} mt_cuda_attention;

typedef struct mt_cuda_asked {   /* attention of few rows that makes its heads itself, and writes keys and values */
    mt_cuda_attention attention; /* first: mt_cuda_attended() takes one for the other */
    mt_cuda_heads heads;
} mt_cuda_asked;

/* Pairs of a row and an expert, sorted by expert; each expert's begin at a multiple of MT_CUDA_ALIGN. */
#define MT_CUDA_ALIGN 8

typedef struct mt_cuda_sort {
    MT_CUDA_PTR(const uint32_t) expert; /* [pairs] */
    MT_CUDA_PTR(uint32_t) place;        /* [pairs]: the place of each pair in sorted order */
    MT_CUDA_PTR(uint32_t) row;          /* [places]: the row of the pair at a place; MT_CUDA_NONE: none */
    MT_CUDA_PTR(mt_cuda_share) share;
    MT_CUDA_PTR(uint32_t) count;                           /* number of shares */
    uint32_t pairs, top_k, experts, places, most, nothing; /* most: rows of a share */
} mt_cuda_sort;

/* Words of shared memory that a warp needs to route a row to so many experts. */
#define MT_CUDA_ROUTE_ROOM(count) (2 * (count) + 4 * MT_LIMIT_EXPERTS_PER_TOKEN)

typedef struct mt_cuda_route {
    mt_cuda_mat router, y, x;
    mt_cuda_mat add;                   /* y is added to this, too; data 0: not */
    MT_CUDA_PTR(uint32_t) expert;      /* [m][top_k] */
    MT_CUDA_PTR(const uint32_t) place; /* [m][top_k]: the row of x of each pair */
    MT_CUDA_PTR(float) weight;         /* [m][top_k] */
    MT_CUDA_PTR(const float) correction;
    MT_CUDA_PTR(const float) scale;
    uint32_t m, count, top_k, kind, renormalise, groups, top_groups;
    float scaling;
} mt_cuda_route;

typedef struct mt_cuda_routed { /* few rows that are routed and sorted by one block */
    mt_cuda_route route;
    mt_cuda_sort sort;
    uint32_t warps, nothing; /* warps of the block that route */
} mt_cuda_routed;

/* Shares of up to 8 rows with codes in groups of 64 (experts/codes_rows2_8.cu): warps of a block, steps of a tile on
   their way, bytes of shared memory of a warp's, and of a block's rows. */
#define MT_CUDA_MEET_WARPS 8
#define MT_CUDA_MEET_STAGES 6
#define MT_CUDA_MEET_RING(bits) (MT_CUDA_MEET_STAGES * ((bits)*256 + 128))
#define MT_CUDA_MEET_SHARED(steps, bits) (MT_CUDA_MEET_WARPS * MT_CUDA_MEET_RING(bits) + (steps)*8 * (128 + 16 + 8))

typedef struct mt_cuda_meet {
    mt_cuda_shares shares[2];        /* of gate and up, or of down */
    mt_cuda_packed from, to;         /* to: gate and up, combined */
    MT_CUDA_PTR(const uint32_t) row; /* of gate and up: which of `from` stands at a place */
    mt_cuda_mat y;                   /* of down */
    uint32_t act, wide;              /* wide: down has codes of 8 bits */
    float limit, offset;
} mt_cuda_meet;

/* Few rows on their way to their experts, by one kernel: their norms, where they are normed here; the router's product,
   of which a block has some columns of one or two rows; codes; and experts, which the last of the blocks that have
   these rows chooses; more than one row are sorted by who is done last of all. */
#define MT_CUDA_ROUTER_THREADS 128 /* for a row */
#define MT_CUDA_ROUTER_COLUMNS 8   /* of a block; two a warp */
#define MT_CUDA_ROUTER_ROWS 2      /* at most, of a block */
#define MT_CUDA_ROUTER_SHARED(rows, k, groups, bits, pair) \
    ((rows) * ((k) / 8 * 9 * 4) + MT_CUDA_ROUTER_COLUMNS * ((k) / 8 * (bits) + MT_CUDA_CODES_APART + (groups) * (pair)))

typedef struct mt_cuda_router {
    mt_cuda_weight w; /* of codes */
    mt_cuda_mat x, y; /* rows, normed where norm is not 0; y: gets that */
    MT_CUDA_PTR(const float) norm;
    mt_cuda_pack pack;
    mt_cuda_route route;
    mt_cuda_sort sort; /* pairs 0: nothing is sorted */
    MT_CUDA_PTR(uint32_t)
    arrived; /* blocks that are done: of all rows that are chosen for, then of each block's rows */
    uint32_t bits, unused;
    float eps, offset;
} mt_cuda_router;

/* The experts of one row (experts/codes_row1.cu): gate and up with what is made of them, then down and the sum. */
#define MT_CUDA_CHOSEN_MOST 16 /* experts of a row */
#define MT_CUDA_CHOSEN_TILES 4 /* of 16 columns of gate, and of up, of a block: what two blocks of 32 of codes have */
#define MT_CUDA_CHOSEN_PARTS 4 /* that a tile comes in */
/* Bytes of shared memory: of a warp's tile, and of a row in codes. */
#define MT_CUDA_CHOSEN_TILE(steps, bits) ((steps) * ((bits)*256 + 128))
#define MT_CUDA_CHOSEN_ROW(steps) ((steps) * (128 + 16 + 8) + 8)
/* The pointers of an expert's part. */
#define MT_CUDA_CHOSEN_POINTERS 3

typedef struct mt_cuda_chosen {
    MT_CUDA_PTR(const mt_cuda_weight) experts[2]; /* of gate and up, or of down: [count], all alike */
    mt_cuda_weight w;                             /* one of them */
    MT_CUDA_PTR(const uint32_t) expert;           /* [top_k] */
    MT_CUDA_PTR(const float) weight;
    mt_cuda_packed from;              /* the row; of down: that of each expert, one after the other */
    mt_cuda_packed to;                /* of gate and up: the same */
    mt_cuda_mat y, add;               /* of down: the sum; it is added to `add`, too; data 0: not */
    uint32_t count, top_k, act, wide; /* wide: down has codes of 8 bits */
    float limit, offset;
} mt_cuda_chosen;

#define MT_CUDA_DELTA_THREADS 160 /* threads for a strip of columns, in a prompt */

typedef struct mt_cuda_recurrent {
    mt_cuda_states st;
    mt_cuda_step step;
    mt_cuda_cols in[3];
    mt_cuda_mat y, x, w, gates, rate;
    uint32_t layer, m, key_heads; /* m: rows of a block of conv_heads, which alone uses it */
    float eps;
} mt_cuda_recurrent;

/* Few rows of a layer, from its projections to what the delta rule reads, by one kernel: the convolution, and what it
   keeps, as conv_heads and conv_keep have it in `conv`; the small projections in fp32 of rows x with codes (w, written
   to `in`), and the gates made of them, which go to conv.gates. */
#define MT_CUDA_MIX_HEADS 4 /* value heads, and rows, whose gates a block makes */
#define MT_CUDA_MIX_ROWS 2
#define MT_CUDA_MIX_SHARED(rows, k, groups, bits, pair) \
    ((rows) * (k)*4 + 2 * MT_CUDA_MIX_HEADS * ((k) / 8 * (bits) + MT_CUDA_CODES_APART + (groups) * (pair)))

typedef struct mt_cuda_mix {
    mt_cuda_recurrent conv;
    mt_cuda_cols in[2]; /* a, b */
    mt_cuda_weight w[2];
    mt_cuda_mat bias;
    uint32_t bits, rows; /* of a code; of x in shared memory */
} mt_cuda_mix;

/* The delta rule of few rows with the norm of its result behind it. */
#define MT_CUDA_NORMED_COLUMNS 128 /* of a head's values */

typedef struct mt_cuda_normed {
    mt_cuda_recurrent delta, norm;
    mt_cuda_pack pack; /* to.q 0: the result is not packed */
} mt_cuda_normed;

typedef struct mt_cuda_pixels {
    mt_cuda_mat y;
    MT_CUDA_PTR(const uint8_t) bytes;
    MT_CUDA_PTR(const uint64_t) at;    /* [m]: offset of a patch's bytes; the highest bit: it is still */
    MT_CUDA_PTR(const uint32_t) level; /* [m]: index of its levels */
    MT_CUDA_PTR(const float) levels;   /* [..][3][256] */
    uint32_t m, frames, area, nothing;
} mt_cuda_pixels;

/* Loops of independent multiply-adds that measure a card's peaks. */
#define MT_CUDA_PEAK_THREADS 256
#define MT_CUDA_PEAK_INT8 524288 /* operations of a warp in a round */
#define MT_CUDA_PEAK_BF16 262144
#define MT_CUDA_PEAK_FP32 32768

typedef struct mt_cuda_peak {
    MT_CUDA_PTR(float) out; /* [1] */
    uint32_t rounds, nothing;
} mt_cuda_peak;

#if defined(__clang__) && !defined(__CUDACC__)
#pragma clang diagnostic pop
#endif

#endif
