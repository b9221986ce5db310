/* The CUDA device's insides, shared by the files of this folder. */
#ifndef MT_DEVICE_CUDA_CUDA_H
#define MT_DEVICE_CUDA_CUDA_H

#include "base/arena.h"
#include "device/backend.h"
#include "device/cuda/driver.h"
#include "device/cuda/params.h"
#include "device/rules.h"

/* clang-format off */
/* X(name): products of few rows, mtk_few_<bits>_<rows at most>_<group; 0: any>, in the order of product_few.c, those of
   product_some.c, and of one row */
#define MT_CUDA_FEW_KERNELS(X)                                                                                         \
    X(few_4_8_64) X(few_8_8_64) X(few_8_16_64) X(few_8_32_64) X(few_8_64_64)                                           \
    X(few_4_8_0) X(few_4_16_0) X(few_4_32_0) X(few_4_64_0) X(few_8_8_0) X(few_8_16_0) X(few_8_32_0) X(few_8_64_0)      \
    X(some_1_2) X(some_3_2) X(some_2_4) X(turns_1_2) X(turns_2_2) X(row_4_1) X(row_4_8) X(row_8_1) X(row_8_8)

/* X(name): every kernel of the images, mtk_<name>, by file */
#define MT_CUDA_KERNELS(X)                                                                                             \
    X(copy_rows) X(scatter_rows) X(sum_rows) X(features) X(norm) X(layer_norm) X(heads) X(binary) X(glu) X(softcap)    \
    X(split_heads) X(finite) X(argmax) X(rope_table) X(stretch) X(act) X(join) X(mean) X(pixels) X(embed) X(add_rows)  \
    X(adjust) X(shortlist) X(pack_codes) X(norm_pack) X(glu_pack) X(product_codes4) X(product_codes8) X(product_f32)   \
    MT_CUDA_FEW_KERNELS(X)                                                                                             \
    X(many_4_32) X(many_4_64) X(many_4_128) X(many_8_32) X(many_8_64) X(many_8_128) X(many_signed)                     \
    X(many_4_32_b) X(many_4_64_b) X(many_4_128_b) X(many_8_32_b) X(many_8_64_b) X(many_8_128_b)                        \
    X(broad_64) X(broad_128)                                                                                           \
    X(shares_4_32) X(shares_4_64) X(shares_4_128) X(shares_8_32) X(shares_8_64) X(shares_8_128)                        \
    X(pack_bf16) X(product_bf16) X(many_halves) X(many_bytes) X(wide_halves)                                           \
    X(few_halves_1) X(few_halves_2) X(few_halves_4) X(few_bytes_1) X(few_bytes_2) X(few_bytes_4)                       \
    X(route) X(sort_pairs) X(combine) X(peak_int8) X(peak_bf16) X(peak_fp32)                                           \
    MT_CUDA_ATTENTION_KERNELS(X)                                                                                       \
    MT_CUDA_RECURRENT_KERNELS(X)
#define MT_CUDA_ATTENTION_KERNELS(X)                                                                                   \
    X(kv_write) X(kv_write_q) X(attention) X(attention_64_1) X(attention_64_4) X(attention_128_1) X(attention_128_4)   \
    X(attention_256_1) X(attention_256_2) X(attention_merge) X(attention_q8) X(attention_q4) X(attention_merge_q)      \
    MT_CUDA_HOPPER_KERNELS(X)
#define MT_CUDA_HOPPER_KERNELS(X)                                                                                      \
    X(attention_few_64) X(attention_many_64) X(attention_few_80) X(attention_many_80) X(attention_few_96)              \
    X(attention_many_96) X(attention_few_128) X(attention_many_128) X(attention_few_256) X(attention_many_256)
#define MT_CUDA_RECURRENT_KERNELS(X)                                                                                   \
    X(conv) X(conv_heads) X(conv_keep) X(gates) X(delta) X(delta_few) X(delta_many) X(remember) X(gated_norm)
/* clang-format on */

typedef enum mt_cuda_kernel {
#define MT_CUDA_NUMBER(name) MT_K_##name,
    MT_CUDA_KERNELS(MT_CUDA_NUMBER)
#undef MT_CUDA_NUMBER
        MT_K_COUNT
} mt_cuda_kernel;

/* Those that start while the kernel before them runs, and wait for it by themselves. */
/* clang-format off */
#define MT_CUDA_WAITING_KERNELS(X)                                                                                     \
    MT_CUDA_FEW_KERNELS(X)                                                                                             \
    X(copy_rows) X(scatter_rows) X(sum_rows) X(features) X(norm) X(layer_norm) X(heads) X(binary) X(glu) X(softcap)    \
    X(split_heads) X(finite) X(argmax) X(rope_table) X(stretch) X(act) X(join) X(mean) X(pixels) X(embed) X(add_rows)  \
    X(adjust) X(shortlist) X(pack_codes) X(norm_pack) X(glu_pack) X(wide_halves)                                       \
    MT_CUDA_HOPPER_KERNELS(X)
/* clang-format on */

struct mt_tensor {
    mt_cuda_mat m;
};

struct mt_index {
    size_t count;
    CUdeviceptr data;
};

struct mt_patches {
    size_t rows, frames, area;
    CUdeviceptr bytes, at, level, levels;
};

struct mt_reading {
    uint8_t *host; /* pinned */
    size_t bytes, stride;
    CUevent aside; /* it has come; NULL: it comes with all else */
};

struct mt_sending {
    uint8_t *host; /* pinned */
    size_t bytes;
    CUevent gone;
    bool begun; /* and nobody has seen that it is gone */
};

struct mt_chooser {
    size_t vocab, scratch_bytes, rows;
    uint8_t *scratch;  /* [threads][scratch_bytes] */
    float *sparse;     /* [threads][vocab], all -inf between choices */
    float *logits;     /* pinned: [rows][vocab] */
    CUdeviceptr lists; /* [rows][MT_CUDA_SHORT_WORDS] */
    uint32_t *read;    /* the same, pinned */
};

struct mt_weight {
    mt_mat mat; /* where it came from */
    mt_class class;
    mt_cuda_weight d;
};

struct mt_experts {
    size_t count, top_k, hidden, inner;
    mt_routing routing;
    mt_glu glu;
    CUdeviceptr correction, scale; /* 0: none */
    mt_weight *part[3];            /* [count]: gate, up, down */
    CUdeviceptr device[3];         /* the same, for kernels */
};

struct mt_kv {
    mt_kv_shape shape;
    mt_cuda_kv d;
    size_t pages;
};

struct mt_states {
    mt_state_shape shape;
    mt_cuda_states d;
    size_t slots, slot_bytes;
};

typedef struct mt_cuda_launcher mt_cuda_launcher; /* launch.c */

/* How kernels are started: see ways.c. */
typedef struct mt_cuda_ways {
    uint32_t graphs, early, row;
} mt_cuda_ways;

/* What the objects of a set need of a plan. */
typedef struct mt_cuda_needs {
    size_t k, top_k, experts, hidden, inner;
} mt_cuda_needs;

struct mt_set {
    mt_set_head head;
    mt_set *next, **link;
    mt_arena *arena;
    uint64_t bytes;
    mt_cuda_needs needs;
};

#define MT_CUDA_PARTS (64u << 20)   /* bytes of parts of attention */
#define MT_CUDA_COUNTS (1u << 18)   /* of tiles whose parts are counted */
#define MT_CUDA_IMAGES 32           /* of kernels, at most */
#define MT_CUDA_SHARED (226u << 10) /* of a block on Hopper */

struct mt_device {
    mt_device_head head;
    mt_cuda_driver cu;
    CUdevice device;
    CUcontext context;
    CUmodule module[MT_CUDA_IMAGES]; /* NULL behind the last */
    CUfunction kernel[MT_K_COUNT];
    mt_cuda_launcher *launcher;
    CUstream aside; /* see aside.c */
    CUevent so_far;
    char name[160];
    mt_cuda_ways ways;
    int number;     /* of the driver's GPUs */
    int capability; /* of the card: 90 for compute capability 9.0 */
    int code;       /* what its kernels were compiled for, likewise; never more */
    int processors;
    int shared;             /* bytes of shared memory that a block may have */
    uint64_t memory, bytes; /* free when it was opened; taken since */
    mt_set *sets;
    bool waited; /* nothing was enqueued since the host has waited */
    bool failed; /* a call went wrong: nothing is computed any more. Why: */
    mt_error fault;

    /* what the host wants to hand over: a ring of pinned memory */
    uint8_t *staging;
    size_t staged;
    CUdeviceptr step_memory; /* as large: what the step points into */

    /* the plan, in a set of its own */
    mt_set *plan;
    size_t rows;
    mt_cuda_packed packed;               /* rows of the product to come */
    CUdeviceptr expert, place, weight;   /* [rows][top_k] */
    CUdeviceptr row, share, share_count; /* of pairs sorted by expert (mt_cuda_sort) */
    mt_cuda_mat gate, up, down;          /* theirs */
    CUdeviceptr parts, counts;           /* of attention whose segments are taken apart */
    mt_cuda_step step;
    const mt_batch *batch; /* the host's, until the next step begins */
};

#define MT_CUDA_GRAPH_ROWS 64       /* steps of so many at most are replayed as graphs */
#define MT_CUDA_STAGING (64u << 20) /* at least all that a step hands over */

/* Every function of the backend, as device.h declares it. */
#define MT_CUDA_DECLARE(result, name, parameters, arguments) result mt_cuda_##name parameters;
MT_DEVICE_OBJECTS(MT_CUDA_DECLARE)
MT_DEVICE_ANSWERS(MT_CUDA_DECLARE)
MT_DEVICE_CALLS(MT_CUDA_DECLARE)
MT_DEVICE_OPERATIONS(MT_CUDA_DECLARE)
#undef MT_CUDA_DECLARE

/* The GPU of dev->number with its kernels; gpu.c. Closing leaves what the device was told, and the plan and all sets
   must be gone. */
bool mt_cuda_open_gpu(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_cuda_close_gpu(mt_device *dev);

/* What the variable MOTET_CUDA says; NULL: nothing. */
bool mt_cuda_ways_read(mt_cuda_ways *ways, const char *text, mt_error *err) MT_NODISCARD;

/* Notes a call that went wrong, once, and that memory is too small; false then. */
bool mt_cuda_ok(mt_device *dev, CUresult error, const char *what);
void mt_cuda_lack(mt_device *dev, size_t bytes);

/* A call of the driver's on a device that is well: mt_cuda_do(dev, "wait", stream_wait, stream). */
#define mt_cuda_do(dev, what, call, ...) ((dev)->failed ? false : mt_cuda_ok(dev, (dev)->cu.call(__VA_ARGS__), what))

/* Memory that lives as long as the set. Of the host; of the host, never moved, so that the GPU reads and writes it; of
   the GPU, zeros: without enough of it the device is lost, but for mt_cuda_reserve, which gives 0. */
void *mt_cuda_host(mt_set *set, size_t bytes);
void *mt_cuda_pinned(mt_set *set, size_t bytes);
void mt_cuda_defer(mt_set *set, void (*end)(void *object), void *object); /* when the set goes */
CUdeviceptr mt_cuda_memory(mt_set *set, size_t bytes);
CUdeviceptr mt_cuda_reserve(mt_set *set, size_t bytes);

/* Copies bytes to the device, in order with everything else; they may change as soon as it returns. */
void mt_cuda_send(mt_device *dev, CUdeviceptr to, const void *from, size_t bytes);

/* Room of the ring for at most MT_CUDA_STAGING bytes, and its way to the device. */
uint8_t *mt_cuda_stage(mt_device *dev, size_t bytes);
void mt_cuda_flush(mt_device *dev, CUdeviceptr to, const uint8_t *staged, size_t bytes);

/* Kernels are listed before they are started (launch.c). */
bool mt_cuda_launcher_open(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_cuda_launcher_close(mt_device *dev); /* after what was started is done */

/* The stream, with all that was listed on it: for everything that is not a kernel. */
CUstream mt_cuda_stream(mt_device *dev);

/* A second stream, for copies that no step waits for (aside.c): what is begun there comes after all that was enqueued
   before. */
bool mt_cuda_aside_open(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_cuda_aside_close(mt_device *dev); /* after what was started is done */
void mt_cuda_aside_wait(mt_device *dev);
CUstream mt_cuda_aside(mt_device *dev);
void mt_cuda_send_aside(mt_device *dev, CUdeviceptr to, mt_sending *s, size_t at, size_t bytes);

/* Enqueues a kernel with one parameter, which is copied. */
void mt_cuda_list(mt_device *dev, mt_cuda_kernel kernel, size_t x, size_t y, size_t z, size_t threads, size_t shared,
                  const void *parameter, size_t size);
#define mt_cuda_launch(dev, kernel, x, y, z, threads, shared, parameter) \
    mt_cuda_list(dev, kernel, x, y, z, threads, shared, parameter, sizeof(*(parameter)))

/* The parameter of the last kernel that is listed and not started, to be changed, where it is between these two; NULL
   elsewhere. Drops that kernel. */
void *mt_cuda_last(mt_device *dev, mt_cuda_kernel first, mt_cuda_kernel last);
void mt_cuda_drop(mt_device *dev);

/* Rows of x as a weight wants them, where index says which. */
void mt_cuda_pack_rows(mt_device *dev, const mt_weight *w, mt_cuda_mat x, CUdeviceptr index, size_t m);
/* Whether they want rows packed alike. */
bool mt_cuda_same_rows(const mt_weight *a, const mt_weight *b);
/* y = w x for rows that are packed; with experts in so many shares at most. */
void mt_cuda_multiply(mt_device *dev, const mt_weight *w, mt_cuda_product p, size_t shares);

/* Whether products of m rows with b and a, that share them, are one of many rows; and that product. */
bool mt_cuda_many_can(const mt_weight *a, const mt_weight *b, size_t m);
void mt_cuda_many_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);
/* The same for sorted rows that meet experts like w, in so many shares at most. */
void mt_cuda_many_experts(mt_device *dev, mt_cuda_mat y, const mt_weight *w, mt_cuda_shares shares, size_t most);

/* The same for few bf16 rows. */
bool mt_cuda_halves_can(const mt_device *dev, const mt_weight *a, const mt_weight *b, size_t m);
void mt_cuda_halves_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);

/* Places of so many pairs, sorted, each expert's at a multiple of MT_CUDA_ALIGN. */
size_t mt_cuda_places(size_t pairs, size_t experts);

/* y = gate and up as glu says */
void mt_cuda_run_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);

/* Whether products of m rows with b and a, that share them, are one of few rows. */
bool mt_cuda_few_can(const mt_device *dev, const mt_weight *a, const mt_weight *b, size_t m);
/* y = w x for rows that are packed; false, and nothing done, where there is no room for them. */
bool mt_cuda_few_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);
/* The same for more than 8 rows and weights it knows. */
bool mt_cuda_some_launch(mt_device *dev, mt_cuda_few *p);
/* Has the last kernel, if it made these keys, take them and the values to their pages, too. */
bool mt_cuda_heads_keep(mt_device *dev, const mt_kv *kv, size_t layer, mt_cuda_mat k, mt_cuda_mat v);
/* The same for up to 8 rows that are packed and weights it knows; and for a row that it packs itself, and norms where
   the last kernel would. */
bool mt_cuda_row_launch(mt_device *dev, mt_cuda_few *p);
bool mt_cuda_row_make(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, mt_cuda_mat x);
/* Has the last product, if it made gate and up, gate them, too. */
bool mt_cuda_row_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);
/* Has the last product of few rows, if it made x, add it to y, too. */
bool mt_cuda_few_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m);

static inline size_t mt_cuda_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

#endif
