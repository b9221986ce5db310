/* Sizes that the kernels of the arithmetic `native` (docs/numerics.md) and the program that runs them agree on. */
#ifndef MT_BENCH_CUDA_NATIVE_H
#define MT_BENCH_CUDA_NATIVE_H

enum {
    /* of k */
    NATIVE_CHUNK = 64,    /* weights that share a scale and a bias; 128 bytes of fp16, a row of a swizzled tile */
    NATIVE_SEGMENT = 256, /* activations of a row that share a power of two */
    NATIVE_GROUP = 2048,  /* what tensor cores sum before the total is rounded to fp32 */
    NATIVE_SEGMENT_CHUNKS = NATIVE_SEGMENT / NATIVE_CHUNK,
    NATIVE_GROUP_SEGMENTS = NATIVE_GROUP / NATIVE_SEGMENT,
    /* exponents of a segment's power of two: see "no overflow" in docs/numerics.md */
    NATIVE_EXPONENT_LEAST = -61,
    NATIVE_EXPONENT_MOST = 23,
    NATIVE_EXPONENT_TOP = 14, /* exponent that the largest activation of a segment has in fp16 */
    /* Packed weights: tiles of 64 outputs and a chunk. 128 threads have 16 bytes of codes each, in the order in which
       wgmma has its operand in registers; a scale and a bias for each output follow. */
    NATIVE_TILE_OUTPUTS = 64,
    NATIVE_TILE_CODES = 2048, /* bytes */
    NATIVE_TILE_BYTES = NATIVE_TILE_CODES + NATIVE_TILE_OUTPUTS * 4,
    /* matmul_w4_rows1_64 */
    NATIVE_FEW_ROWS = 64,
    NATIVE_FEW_BLOCKS = 2, /* of a multiprocessor */
    /* matmul_f16_prompt */
    NATIVE_PROMPT_WARPGROUPS = 3, /* of 64 rows */
    NATIVE_PROMPT_ROWS = 64 * NATIVE_PROMPT_WARPGROUPS,
    NATIVE_PROMPT_OUTPUTS = 128,
    NATIVE_PROMPT_STAGES = 5,
    NATIVE_PROMPT_SHARED =
        NATIVE_PROMPT_STAGES * (NATIVE_PROMPT_ROWS + NATIVE_PROMPT_OUTPUTS) * NATIVE_CHUNK * 2 + 1024,
    NATIVE_PROMPT_THREADS = NATIVE_PROMPT_WARPGROUPS * 128 + 128,
    /* peak_f16: operations of a warpgroup in a round */
    NATIVE_PEAK_PRODUCTS = 16,
    NATIVE_PEAK_THREADS = 384
};

/* Bytes of shared memory of matmul_w4_rows1_64: a stage has a segment of rows in fp16, its ratios and powers, and the
   weights of `tiles` warpgroups. Stages begin at multiples of 1024, as swizzled tiles do. */
#define NATIVE_FEW_POWERS_AT(rows) ((rows)*NATIVE_SEGMENT * 2)
#define NATIVE_FEW_WEIGHTS_AT(rows) (NATIVE_FEW_POWERS_AT(rows) + ((rows)*8 + 127) / 128 * 128)
#define NATIVE_FEW_STAGE(rows, tiles) \
    ((NATIVE_FEW_WEIGHTS_AT(rows) + (tiles)*NATIVE_SEGMENT_CHUNKS * NATIVE_TILE_BYTES + 1023) / 1024 * 1024)
#define NATIVE_FEW_SHARED(rows, tiles, stages) ((stages)*NATIVE_FEW_STAGE(rows, tiles) + 1024)
#define NATIVE_FEW_THREADS(tiles) ((tiles)*128 + 128)

/* X(rows, tiles, stages): the kernels of matmul_w4_rows1_64. Up to `rows` rows; blocks of 64 outputs a tile. Stages: as
   many as two blocks of a multiprocessor have room for, and no more than 6, which measured best. */
#define NATIVE_FEW_KERNELS(X) \
    X(8, 1, 6)                \
    X(8, 2, 4)                \
    X(16, 1, 6)               \
    X(16, 2, 4)               \
    X(32, 1, 4)               \
    X(32, 2, 3)               \
    X(64, 1, 2)               \
    X(64, 2, 2)

#endif
