/* The CUDA device's data structures and functions, shared by the files of this folder. */
#ifndef MT_DEVICE_CUDA_CUDA_H
#define MT_DEVICE_CUDA_CUDA_H

#include "base/arena.h"
#include "device/backend.h"
#include "device/cuda/host/driver.h"
#include "device/cuda/params.h"
#include "device/rules.h"
#include "sample/chain.h"

/* clang-format off */
/* X(name): kernels for products of few rows, mtk_few_<bits>_<most rows>_<group; 0: any>, in the order of
   products/codes_rows1_64.c; then those of up to 8 rows. */
#define MT_CUDA_FEW_KERNELS(X)                                                                                         \
    X(few_4_8_64) X(few_8_8_64) X(few_8_16_64) X(few_8_32_64) X(few_8_64_64)                                           \
    X(few_4_8_0) X(few_4_16_0) X(few_4_32_0) X(few_4_64_0) X(few_8_8_0) X(few_8_16_0) X(few_8_32_0) X(few_8_64_0)      \
    X(row_4_1) X(row_4_8) X(row_8_1) X(row_8_8)

/* X(name): the arithmetic `native` (native/native.c): products of few rows, native_few_<bits>_<groups of a step>_<most
   rows>_<tiles>; kernels that start while the one before still runs; then the others. */
#define MT_CUDA_NATIVE_FEW_KERNELS(X)                                                                                  \
    X(native_few_4_1_8_1) X(native_few_4_1_8_2) X(native_few_4_1_16_1) X(native_few_4_1_16_2) X(native_few_4_1_32_1)   \
    X(native_few_4_1_32_2) X(native_few_4_1_64_1) X(native_few_4_1_64_2) X(native_few_4_2_8_2) X(native_few_4_2_16_2)  \
    X(native_few_4_2_32_2) X(native_few_4_2_64_2) X(native_few_4_4_8_2) X(native_few_4_4_16_2) X(native_few_4_4_32_2)  \
    X(native_few_4_4_64_2) X(native_few_8_1_8_2) X(native_few_8_1_16_2) X(native_few_8_1_32_2) X(native_few_8_1_64_2)  \
    X(native_few_8_2_8_2) X(native_few_8_2_16_2) X(native_few_8_2_32_2) X(native_few_8_2_64_2) X(native_few_8_4_8_2)   \
    X(native_few_8_4_16_2) X(native_few_8_4_32_2) X(native_few_8_4_64_2)
#define MT_CUDA_NATIVE_EARLY_KERNELS(X) X(native_pack) X(native_norm) X(native_glu) MT_CUDA_NATIVE_FEW_KERNELS(X)
#define MT_CUDA_NATIVE_KERNELS(X)                                                                                      \
    MT_CUDA_NATIVE_EARLY_KERNELS(X) X(native_decode_4_1) X(native_decode_4_2) X(native_decode_4_4)                     \
    X(native_decode_8_1) X(native_decode_8_2) X(native_decode_8_4) X(native_prompt)

/* X(name): products in fp32 with so many rows per warp; `many` for many rows (products/f32.cu). */
#define MT_CUDA_F32_KERNELS(X) X(f32_1) X(f32_2) X(f32_4) X(f32_many_4) X(f32_many_8)

/* X(name): products with shares of experts, mtk_shares_<bits>_<group>. */
#define MT_CUDA_SHARE_KERNELS(X)                                                                                       \
    X(shares_4_32) X(shares_4_64) X(shares_4_128) X(shares_8_32) X(shares_8_64) X(shares_8_128)

/* X(name): experts of a row, and of few, by bits (experts/codes_row1.cu, experts/codes_rows2_8.cu). */
#define MT_CUDA_CHOSEN_KERNELS(X)                                                                                      \
    X(chosen_up_4) X(chosen_up_8) X(chosen_down_4) X(chosen_down_8)                                                    \
    X(meet_up_4) X(meet_up_8) X(meet_down_4) X(meet_down_8)

/* X(name): every kernel of the images, mtk_<name>, by file. */
#define MT_CUDA_KERNELS(X)                                                                                             \
    X(copy_rows) X(scatter_rows) X(sum_rows) X(features) X(norm) X(heads) X(heads_64) X(heads_128) X(binary) X(glu)    \
    X(norm_many) X(layer_norm) X(act) X(glu_many) X(pack_many) X(softcap) X(split_heads) X(finite) X(argmax)           \
    X(rope_table) X(stretch) X(join) X(mean) X(pixels) X(embed) X(add_rows)                                            \
    X(adjust) X(choose) X(best) X(follow)                                                                           \
    X(pack_codes) X(norm_pack) X(glu_pack) X(product_codes4) X(product_codes8) X(product_f32)                          \
    MT_CUDA_F32_KERNELS(X)                                                                                             \
    MT_CUDA_FEW_KERNELS(X)                                                                                             \
    X(many_4_32) X(many_4_64) X(many_4_128) X(many_8_32) X(many_8_64) X(many_8_128) X(many_signed)                     \
    X(many_4_32_b) X(many_4_64_b) X(many_4_128_b) X(many_8_32_b) X(many_8_64_b) X(many_8_128_b)                        \
    X(broad_64) X(broad_128)                                                                                           \
    MT_CUDA_SHARE_KERNELS(X)                                                                                           \
    X(pack_bf16) X(product_bf16) X(many_halves) X(many_bytes) X(wide_halves) X(pair_halves)                            \
    X(few_halves_1) X(few_halves_2) X(few_halves_4) X(few_bytes_1) X(few_bytes_2) X(few_bytes_4)                       \
    X(few_split_1_4) X(few_split_1_8) X(few_split_2_2) X(few_split_2_4) X(few_split_2_8) X(few_split_4_2)              \
    X(few_split_4_4) X(few_split_4_8) X(route) X(sort_pairs) X(route_and_sort) X(router) X(combine)                    \
    MT_CUDA_CHOSEN_KERNELS(X) X(peak_int8) X(peak_bf16) X(peak_fp32)                                                   \
    MT_CUDA_NATIVE_KERNELS(X)                                                                                          \
    MT_CUDA_ATTENTION_KERNELS(X)                                                                                       \
    MT_CUDA_RECURRENT_KERNELS(X)
#define MT_CUDA_ATTENTION_KERNELS(X)                                                                                   \
    X(kv_write) X(kv_write_q) X(attention) X(attention_64_1) X(attention_64_4) X(attention_128_1) X(attention_128_4)   \
    X(attention_256_1) X(attention_256_2) X(attention_merge) X(attention_q8) X(attention_q4) X(attention_merge_q)      \
    MT_CUDA_HOPPER_KERNELS(X)
#define MT_CUDA_HOPPER_KERNELS(X)                                                                                      \
    X(attention_few_64) X(attention_many_64) X(attention_few_80) X(attention_many_80) X(attention_few_96)              \
    X(attention_many_96) X(attention_few_128) X(attention_many_128) X(attention_few_256) X(attention_many_256)    \
    X(attention_asked_64) X(attention_asked_128)
#define MT_CUDA_RECURRENT_KERNELS(X)                                                                                   \
    X(conv) X(conv_heads) X(conv_keep) X(gates) X(mix) X(delta) X(delta_few) X(delta_many) X(delta_normed)             \
    X(remember) X(gated_norm)
/* clang-format on */

typedef enum mt_cuda_kernel {
#define MT_CUDA_NUMBER(name) MT_K_##name,
    MT_CUDA_KERNELS(MT_CUDA_NUMBER)
#undef MT_CUDA_NUMBER
        MT_K_COUNT
} mt_cuda_kernel;

/* Kernels that start while the kernel before still runs, and wait for it themselves (host/launch.c). */
/* clang-format off */
#define MT_CUDA_WAITING_KERNELS(X)                                                                                     \
    MT_CUDA_F32_KERNELS(X)                                                                                             \
    MT_CUDA_FEW_KERNELS(X)                                                                                             \
    X(copy_rows) X(scatter_rows) X(sum_rows) X(features) X(norm) X(heads) X(heads_64) X(heads_128) X(binary) X(glu)    \
    X(norm_many) X(layer_norm) X(act) X(glu_many) X(pack_many) X(softcap) X(split_heads) X(finite) X(argmax)           \
    X(rope_table) X(stretch) X(join) X(mean) X(pixels) X(embed) X(add_rows)                                            \
    X(adjust) X(choose) X(best) X(follow)                                                                           \
    X(pack_codes) X(norm_pack) X(glu_pack) X(pack_bf16) X(wide_halves) X(pair_halves) X(broad_64) X(broad_128)         \
    X(few_halves_1) X(few_halves_2) X(few_halves_4) X(few_bytes_1) X(few_bytes_2) X(few_bytes_4)                       \
    X(few_split_1_4) X(few_split_1_8) X(few_split_2_2) X(few_split_2_4) X(few_split_2_8) X(few_split_4_2)              \
    X(few_split_4_4) X(few_split_4_8) X(route) X(sort_pairs) X(route_and_sort) X(router) X(combine)                    \
    MT_CUDA_CHOSEN_KERNELS(X)                                                                                          \
    MT_CUDA_NATIVE_EARLY_KERNELS(X)                                                                                    \
    MT_CUDA_SHARE_KERNELS(X)                                                                                           \
    MT_CUDA_RECURRENT_KERNELS(X)                                                                                       \
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
    /* on the GPU: bytes of all patches; offset of each; which levels each has; tables of levels */
    CUdeviceptr bytes, at, level, levels;
};

struct mt_reading {
    uint8_t *host; /* pinned host memory */
    size_t bytes, stride;
    CUevent come; /* set when the transfer is complete */
    bool aside;   /* the transfer runs beside the steps; else it is in order with all else */
    bool here;    /* the host has waited for it */
};

struct mt_sending {
    uint8_t *host; /* pinned host memory */
    size_t bytes;
    CUevent gone; /* set when the transfer is complete */
    bool begun;   /* a transfer is under way, as far as the host knows */
};

struct mt_chooser {
    size_t vocab, scratch_bytes;
    uint8_t *scratch;                  /* [threads][scratch_bytes] */
    float *logits;                     /* pinned: some rows, complete */
    CUdeviceptr best, tops, penalised; /* on the GPU, see mt_cuda_choose */
    /* of the host, pinned: choices use them alternately */
    struct {
        mt_cuda_order *orders; /* [rows] */
        uint32_t *masks;       /* [rows][(vocab + 31) / 32] */
        mt_cuda_seen *seen;
        mt_best *best; /* copies of what was found */
        mt_tops *tops;
        CUevent come;
        bool plain; /* all rows are greedy: there are no orders */
    } turn[2];
    uint32_t begun, ended; /* number of choices */
};

struct mt_weight {
    mt_mat mat; /* the matrix in the checkpoint */
    mt_class class;
    mt_cuda_weight d; /* the copy on the GPU */
};

struct mt_experts {
    size_t count, top_k, hidden, inner;
    mt_routing routing;
    mt_glu glu;
    CUdeviceptr correction, scale; /* 0: none */
    mt_weight *part[3];            /* [count]: gate, up, down */
    CUdeviceptr device[3];         /* the same as arrays of mt_cuda_weight, for kernels */
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

typedef struct mt_cuda_launcher mt_cuda_launcher; /* host/launch.c */

/* How kernels are started; see host/ways.c. */
typedef struct mt_cuda_ways {
    uint32_t graphs, early, row, pair, ahead;
} mt_cuda_ways;

/* What the objects of a set need in working memory. */
typedef struct mt_cuda_needs {
    size_t k, top_k, experts, hidden, inner;
    size_t decoded; /* bytes of the largest weight of `native`, once it is decoded */
} mt_cuda_needs;

struct mt_set {
    mt_set_head head;
    mt_set *next, **link;
    mt_arena *arena;
    uint64_t bytes;
    mt_cuda_needs needs;
};

#define MT_CUDA_ROUTED 32           /* most rows whose routes are sorted by the kernel that finds them */
#define MT_CUDA_PARTS (64u << 20)   /* bytes for partial results: of attention, or of products of up to 512 blocks */
#define MT_CUDA_COUNTS (1u << 18)   /* of who has left some */
#define MT_CUDA_IMAGES 40           /* most images of kernels */
#define MT_CUDA_SHARED (226u << 10) /* bytes of shared memory of a block on Hopper */

struct mt_device {
    mt_device_head head;
    mt_cuda_driver cu;
    CUdevice device;
    CUcontext context;
    CUmodule module[MT_CUDA_IMAGES]; /* NULL behind the last */
    CUfunction kernel[MT_K_COUNT];
    mt_cuda_launcher *launcher;
    CUstream aside; /* a second stream, see host/aside.c */
    CUevent so_far; /* marks what was enqueued on the first stream */
    char name[160];
    mt_cuda_ways ways;
    int number;             /* index among the driver's GPUs */
    int capability;         /* compute capability of the card: 90 for 9.0 */
    int code;               /* compute capability that the loaded kernels were compiled for; at most that of the card */
    int processors;         /* multiprocessors */
    int shared;             /* most bytes of shared memory of a block */
    uint64_t memory, bytes; /* bytes free when it was opened, and allocated since */
    size_t vocab;           /* most tokens that one of its choosers chooses among */
    mt_set *sets;
    bool waited; /* nothing was enqueued since the host last waited */
    bool failed; /* a driver call has failed: nothing is computed any more; fault says why */
    mt_error fault;

    /* host memory that is copied to the GPU: a ring of pinned memory */
    uint8_t *staging;
    size_t staged;
    CUdeviceptr step_memory; /* on the GPU: the data that `step` points into */

    /* working memory, in a set of its own */
    mt_set *plan;
    size_t rows;
    mt_cuda_packed packed;     /* packed rows of the next product */
    mt_cuda_packed packed_any; /* memory for them */
    CUdeviceptr packed_gated;  /* the same for few rows that a product has gated, or attention has made */
    CUdeviceptr decoded;       /* weights of `native`, for many rows */
    size_t decoded_bytes;
    CUdeviceptr expert, place, weight;   /* [rows][top_k] */
    CUdeviceptr row, share, share_count; /* pairs of rows and experts, sorted by expert (mt_cuda_sort) */
    CUdeviceptr arrived;                 /* blocks of a router that are done; 0 between kernels (mt_cuda_router) */
    mt_cuda_mat gate, up, down;          /* values of these pairs */
    CUdeviceptr parts, counts; /* partial results: of attention that is split by segments, of products' tiles */
    mt_cuda_step step;
    const uint8_t *step_staged; /* in the ring: what step_memory holds; NULL: no longer there */
    size_t step_bytes;
    const mt_batch *batch; /* of the host, valid until the next step begins */
};

#define MT_CUDA_GRAPH_ROWS 64       /* most rows of a step that is replayed as a graph */
#define MT_CUDA_STAGING (64u << 20) /* bytes of the ring: at least all that a step hands over */

/* Every function of the backend. */
#define MT_CUDA_DECLARE(result, name, parameters, arguments) result mt_cuda_##name parameters;
MT_DEVICE_OBJECTS(MT_CUDA_DECLARE)
MT_DEVICE_ANSWERS(MT_CUDA_DECLARE)
MT_DEVICE_CALLS(MT_CUDA_DECLARE)
MT_DEVICE_OPERATIONS(MT_CUDA_DECLARE)
#undef MT_CUDA_DECLARE

/* host/gpu.c: opens GPU number dev->number with its kernels. Close it only after the plan and all sets were freed; the
   device keeps its parameters. */
bool mt_cuda_open_gpu(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_cuda_close_gpu(mt_device *dev);

/* Reads the environment variable MOTET_CUDA; text NULL: not set. False with a sentence. */
bool mt_cuda_ways_read(mt_cuda_ways *ways, const char *text, mt_error *err) MT_NODISCARD;

/* mt_cuda_ok records a failed driver call, the first only; false then. mt_cuda_lack records that memory is too
   small, mt_cuda_refuse that there is no kernel for what is wanted. */
bool mt_cuda_ok(mt_device *dev, CUresult error, const char *what);
void mt_cuda_lack(mt_device *dev, size_t bytes);
void mt_cuda_refuse(mt_device *dev, const char *what);

/* Calls the driver unless the device has failed: mt_cuda_do(dev, "wait", stream_wait, stream). */
#define mt_cuda_do(dev, what, call, ...) ((dev)->failed ? false : mt_cuda_ok(dev, (dev)->cu.call(__VA_ARGS__), what))

/* Memory that is freed with the set: of the host; of the host, pinned, so that the GPU can read and write it; of the
   GPU, zeroed. Without enough of it the device fails, except in mt_cuda_reserve, which returns 0. */
void *mt_cuda_host(mt_set *set, size_t bytes);
void *mt_cuda_pinned(mt_set *set, size_t bytes);
CUevent mt_cuda_event(mt_set *set);                                       /* an event that is freed with the set */
void mt_cuda_defer(mt_set *set, void (*end)(void *object), void *object); /* calls end(object) when the set is freed */
CUdeviceptr mt_cuda_memory(mt_set *set, size_t bytes);
CUdeviceptr mt_cuda_reserve(mt_set *set, size_t bytes);

/* Copies bytes to the device, in order with all else; they may change as soon as it returns. */
void mt_cuda_send(mt_device *dev, CUdeviceptr to, const void *from, size_t bytes);

/* Room of the ring for at most MT_CUDA_STAGING bytes; and its copy to the device. */
uint8_t *mt_cuda_stage(mt_device *dev, size_t bytes);
void mt_cuda_flush(mt_device *dev, CUdeviceptr to, const uint8_t *staged, size_t bytes);

/* Kernels are collected in a list before they are started (host/launch.c). */
bool mt_cuda_launcher_open(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_cuda_launcher_close(mt_device *dev); /* after what was started is done */

/* The stream, after starting all kernels in the list: for everything that is not a kernel. */
CUstream mt_cuda_stream(mt_device *dev);
/* The host has waited for all of it: what comes next is better started soon than together. */
void mt_cuda_idle(mt_device *dev);

/* A second stream for copies that no step waits for (host/aside.c): what is enqueued there runs after all that was
   enqueued on the first stream before. */
bool mt_cuda_aside_open(mt_device *dev, mt_error *err) MT_NODISCARD;
void mt_cuda_aside_close(mt_device *dev); /* after what was started is done */
void mt_cuda_aside_wait(mt_device *dev);
CUstream mt_cuda_aside(mt_device *dev);
void mt_cuda_send_aside(mt_device *dev, CUdeviceptr to, mt_sending *s, size_t at, size_t bytes);

/* Adds a kernel with one parameter struct, which is copied, to the list. */
void mt_cuda_list(mt_device *dev, mt_cuda_kernel kernel, size_t x, size_t y, size_t z, size_t threads, size_t shared,
                  const void *parameter, size_t size);
#define mt_cuda_launch(dev, kernel, x, y, z, threads, shared, parameter) \
    mt_cuda_list(dev, kernel, x, y, z, threads, shared, parameter, sizeof(*(parameter)))

/* The same on x blocks, of which each `cluster` neighbours read each other's shared memory. */
void mt_cuda_list_cluster(mt_device *dev, mt_cuda_kernel kernel, size_t x, size_t cluster, size_t threads,
                          size_t shared, const void *parameter, size_t size);
#define mt_cuda_launch_cluster(dev, kernel, x, cluster, threads, shared, parameter) \
    mt_cuda_list_cluster(dev, kernel, x, cluster, threads, shared, parameter, sizeof(*(parameter)))

/* mt_cuda_last: the parameter of the last kernel in the list that is not started, to be changed, where that kernel is
   between first and last; else NULL. mt_cuda_drop removes that kernel. */
void *mt_cuda_last(mt_device *dev, mt_cuda_kernel first, mt_cuda_kernel last);
/* The same of the one that stands `back` before the last, whatever it is; NULL: there is none. */
void *mt_cuda_listed(mt_device *dev, size_t back, mt_cuda_kernel *kernel);
void mt_cuda_drop(mt_device *dev);

/* Packs rows of x (by index, where given) as the weight needs them. */
void mt_cuda_pack_rows(mt_device *dev, const mt_weight *w, mt_cuda_mat x, CUdeviceptr index, size_t m);
/* Whether two weights need rows packed alike. */
bool mt_cuda_same_rows(const mt_weight *a, const mt_weight *b);
/* y = w x for packed rows; with experts: in at most `shares` shares. */
void mt_cuda_multiply(mt_device *dev, const mt_weight *w, mt_cuda_product p, size_t shares);

/* Whether products of m rows with a and b, which share the rows, can be one kernel for many rows; and that kernel. */
bool mt_cuda_many_can(const mt_weight *a, const mt_weight *b, size_t m);
void mt_cuda_many_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);
/* The same for sorted rows with experts like w, in at most `most` shares. */
void mt_cuda_many_experts(mt_device *dev, mt_cuda_mat y, const mt_weight *w, mt_cuda_shares shares, size_t most);

/* The same for few bf16 rows. */
bool mt_cuda_halves_can(const mt_device *dev, const mt_weight *a, const mt_weight *b, size_t m);
void mt_cuda_halves_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);
/* Has the last product of few bf16 rows in the list, if it makes x, also add it to y; if it makes gate and up, also
   combine them; else false. */
bool mt_cuda_halves_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m);
bool mt_cuda_halves_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);
/* Has it also pack what it combines, if p asks for these rows; dev->packed is these then. Else false. */
bool mt_cuda_halves_pack(mt_device *dev, const mt_cuda_pack *p);

/* Has the last kernel in the list, if it norms these rows of a recurrent layer, also pack them; else false. */
bool mt_cuda_normed_pack(mt_device *dev, const mt_cuda_pack *p);

/* y = w x in fp32 for some of the weights together, from the first on: returns how many; 0, and nothing is done, where
   there is no kernel for the first. */
size_t mt_cuda_f32_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, mt_cuda_mat x,
                          size_t m);

/* If the last kernel in the list makes the router's product of rows x, and perhaps the one before norms them, one
   kernel does all of it instead, chooses experts, sorts where `sort` is given, and packs the rows for gate and up;
   else false. */
bool mt_cuda_router_absorb(mt_device *dev, const mt_cuda_route *route, const mt_cuda_sort *sort, mt_cuda_mat x,
                           const mt_experts *e);
/* y = the experts of one row; false, and nothing is done, where there are no kernels for that. */
bool mt_cuda_row_experts(mt_device *dev, const mt_cuda_route *route, mt_cuda_mat x, const mt_experts *e);
/* Whether the kernels of experts/codes_rows2_8.cu, and those of experts/codes_row1.cu, know an expert's parts. */
bool mt_cuda_chosen_can(const mt_device *dev, const mt_experts *e);

/* Places of so many sorted pairs, where each expert's begin at a multiple of MT_CUDA_ALIGN. */
size_t mt_cuda_places(size_t pairs, size_t experts);

/* y = gate and up combined as glu says. */
void mt_cuda_run_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);

/* Whether products of m rows with a and b, which share the rows, can be one kernel for few rows. */
bool mt_cuda_few_can(const mt_device *dev, const mt_weight *a, const mt_weight *b, size_t m);
/* y = w x for packed rows; false, and nothing is done, where shared memory does not suffice. */
bool mt_cuda_few_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);
/* If the last two kernels in the list make heads, that nobody else reads, and ask with them, one does both. */
void mt_cuda_attention_spend(mt_device *dev, mt_cuda_mat q);
/* Has the last kernel in the list, if it makes these keys, also write them and the values to their pages; else
   false. */
bool mt_cuda_heads_keep(mt_device *dev, const mt_kv *kv, size_t layer, mt_cuda_mat k, mt_cuda_mat v);
/* The same for up to 8 packed rows and weights that products/codes_rows1_8.cu supports; and for one row that the kernel
   packs itself, and norms where the last kernel in the list would. */
bool mt_cuda_row_launch(mt_device *dev, mt_cuda_few *p);
bool mt_cuda_row_make(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, mt_cuda_mat x);
/* Has the last product in the list, if it makes gate and up, also combine them; else false. */
bool mt_cuda_row_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);
/* Has the last product of few rows in the list, if it makes x, also add it to y; else false. */
bool mt_cuda_few_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m);

/* Packs rows of x for a weight of `native`; whether two such weights can be multiplied together; y = w x for rows that
   are packed and weights that can. */
void mt_cuda_native_pack(mt_device *dev, const mt_weight *w, mt_cuda_mat x, size_t m);
bool mt_cuda_native_alike(const mt_weight *a, const mt_weight *b);
void mt_cuda_native_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);
/* Has the last of these products in the list, if it makes x of few rows, also add it to y; if it makes gate and up of
   few rows, also combine them; else false. */
bool mt_cuda_native_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m);
bool mt_cuda_native_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);
/* Nobody reads x but products that have it packed: if the last kernel before these made it, it does not write it. */
void mt_cuda_native_spend(mt_device *dev, mt_cuda_mat x);

/* Whether neighbouring columns from an even one on can be read and written two at a time. */
static inline bool mt_cuda_in_twos(mt_cuda_mat t)
{
    return t.data % (2 * sizeof(float)) == 0 && t.stride % 2 == 0;
}

static inline size_t mt_cuda_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

#endif
