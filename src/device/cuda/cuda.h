/* The CUDA device's data structures and functions, shared by the files of this folder. */
#ifndef MT_DEVICE_CUDA_CUDA_H
#define MT_DEVICE_CUDA_CUDA_H

#include "base/arena.h"
#include "device/backend.h"
#include "device/cuda/host/driver.h"
#include "device/cuda/kernels.h"
#include "device/cuda/native/sorted.h"
#include "device/rules.h"
#include "sample/chain.h"

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
typedef struct mt_cuda_fusion mt_cuda_fusion;     /* fusion.c */

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
#define MT_CUDA_SPAN_FEW 8          /* spans with fewer rows than this, on average, take the delta rule for answers */
#define MT_CUDA_FUSIONS 32          /* most fusions (fusion.c) */
#define MT_CUDA_PARTS (64u << 20)   /* bytes for partial results: of attention, or of products of up to 512 blocks */
#define MT_CUDA_COUNTS (1u << 18)   /* marks that partial results are there */
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
    const mt_cuda_fusion *fusions; /* what the launcher makes of neighbours (fusion.c) */
    CUstream aside;                /* a second stream, see host/aside.c */
    CUevent so_far;                /* marks what was enqueued on the first stream */
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

/* A kernel to be started, but for its parameter struct. */
typedef struct mt_cuda_call {
    mt_cuda_kernel kernel;
    uint32_t grid[3], threads, shared;
    uint32_t cluster;  /* blocks of a cluster; 0 or 1: each is by itself */
    uint32_t at, size; /* offset and bytes of its parameter, in the list */
} mt_cuda_call;

/* Adds a kernel with one parameter struct, which is copied, to the list; or, where a fusion takes it in, changes the
   list instead. */
void mt_cuda_list(mt_device *dev, const mt_cuda_call *call, const void *parameter);
#define mt_cuda_launch(dev, kernel_, x, y, z, threads_, shared_, parameter)             \
    mt_cuda_list(dev,                                                                   \
                 &(mt_cuda_call){.kernel = (kernel_),                                   \
                                 .grid = {(uint32_t)(x), (uint32_t)(y), (uint32_t)(z)}, \
                                 .threads = (uint32_t)(threads_),                       \
                                 .shared = (uint32_t)(shared_),                         \
                                 .size = sizeof(*(parameter))},                         \
                 parameter)

/* The same on x by y blocks, of which each `cluster` neighbours read each other's shared memory. */
#define mt_cuda_launch_cluster(dev, kernel_, x, y, cluster_, threads_, shared_, parameter) \
    mt_cuda_list(dev,                                                                      \
                 &(mt_cuda_call){.kernel = (kernel_),                                      \
                                 .grid = {(uint32_t)(x), (uint32_t)(y), 1},                \
                                 .threads = (uint32_t)(threads_),                          \
                                 .shared = (uint32_t)(shared_),                            \
                                 .cluster = (uint32_t)(cluster_),                          \
                                 .size = sizeof(*(parameter))},                            \
                 parameter)

/* Of the kernels in the list that are not started: the parameter of the last, to be changed, where that kernel is
   between first and last, else NULL; that of the one which stands `back` before the last, NULL where there is none; and
   the last is removed. For fusions. */
void *mt_cuda_last(mt_device *dev, mt_cuda_kernel first, mt_cuda_kernel last);
void *mt_cuda_listed(mt_device *dev, size_t back, mt_cuda_kernel *kernel);
void mt_cuda_drop(mt_device *dev);

/* A pattern of neighbours in the list that become one kernel. `fuse` is called before a kernel of the families `next`
   is listed, where the last kernel in the list that is not of the families `over` is of those in `first`. It looks at
   both parameters, changes the list, and returns true: then the kernel is not listed. Families are bits:
   MT_CUDA_FAMILY. */
struct mt_cuda_fusion {
    const char *name;
    uint64_t first, over, next; /* next 0: what is spent (mt_cuda_spend) */
    bool (*fuse)(mt_device *dev, void *first, const mt_cuda_call *call, const void *next);
};
#define MT_CUDA_FAMILY(name) (1ull << MT_F_##name)
extern const mt_cuda_fusion mt_cuda_fusions[]; /* ends with one without a name */

/* Only kernels that are listed already still read x. All fusions of what is spent are tried, with x as `next`. */
void mt_cuda_spend(mt_device *dev, mt_cuda_mat x);
/* How often a fusion was found, by its place in the table. */
size_t mt_cuda_fused(const mt_device *dev, size_t fusion);

/* Packs rows of x (by index, where given) as the weight needs them. */
void mt_cuda_pack_rows(mt_device *dev, const mt_weight *w, mt_cuda_mat x, CUdeviceptr index, size_t m);

/* Products y[i] = x w[i]' of m rows, with weights that are alike. */
typedef struct mt_cuda_products {
    mt_tensor *const *y;
    const mt_weight *const *w;
    size_t count;
    mt_cuda_mat x;
    size_t m;
} mt_cuda_products;

/* Whether two weights need rows packed alike. */
bool mt_cuda_same_rows(const mt_weight *a, const mt_weight *b);
/* The kernel that the table of products.c has for m rows. */
mt_cuda_kernel mt_cuda_product_kernel(const mt_device *dev, const mt_weight *w, size_t m);
/* y = w x by a kernel for any weight and any number of rows; with experts: in at most `shares` shares. */
void mt_cuda_any_launch(mt_device *dev, const mt_weight *w, mt_cuda_product p, size_t shares);

/* What the table's rows list; false, and nothing is listed, where the kernel does not take these products. The rows are
   packed (dev->packed), but in fp32, and where a kernel for one row with codes packs it itself. */
bool mt_cuda_list_f32(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p);
bool mt_cuda_list_row(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p);
bool mt_cuda_list_rows(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p);
bool mt_cuda_list_few(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p);
bool mt_cuda_list_bf16(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p);
bool mt_cuda_list_many(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p);
/* The parameter of kernels for few rows with codes, but for how their work is divided. */
mt_cuda_few mt_cuda_few_of(const mt_device *dev, const mt_cuda_products *p);

/* Whether there is a kernel for many rows with such a weight; and its product of sorted rows with experts like w, in at
   most `most` shares. */
bool mt_cuda_many_can(const mt_weight *w);
void mt_cuda_many_experts(mt_device *dev, mt_cuda_kernel kernel, mt_cuda_mat y, const mt_weight *w,
                          mt_cuda_shares shares, size_t most);

/* y = the experts of one row; false, and nothing is done, where there are no kernels for that. */
bool mt_cuda_row_experts(mt_device *dev, const mt_cuda_route *route, mt_cuda_mat x, const mt_experts *e);
/* Whether the kernels of experts/codes_rows2_8.cu, and those of experts/codes_row1.cu, know an expert's parts. */
bool mt_cuda_chosen_can(const mt_device *dev, const mt_experts *e);

/* Norms, rotates and writes heads as p says; attention that makes its heads itself (fusion.c). */
void mt_cuda_heads_launch(mt_device *dev, const mt_cuda_heads *p);
void mt_cuda_asked_launch(mt_device *dev, const mt_cuda_asked *p);

/* Cuts spans into tiles of `tile` tokens, and the segments of spans with one tile into shares, enough to keep `blocks`
   blocks busy. width: elements of a partial result. few: rows are few, and one round of blocks is best. */
void mt_cuda_attention_cut(mt_device *dev, mt_cuda_attention *p, uint32_t tile, uint32_t blocks, uint32_t width,
                           bool few);
/* Latents: whether the device has room for such keys; keys into pages; attention. */
bool mt_cuda_latent_fits(const mt_device *dev, const mt_kv_shape *shape);
void mt_cuda_latent_write(mt_device *dev, const mt_kv *kv, const mt_cuda_attention *p);
void mt_cuda_latent_attend(mt_device *dev, const mt_kv *kv, const mt_cuda_attention *p);

/* Places of so many sorted pairs, where each expert's begin at a multiple of MT_CUDA_ALIGN. */
size_t mt_cuda_places(size_t pairs, size_t experts);

/* y = gate and up combined as glu says. */
void mt_cuda_run_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);

/* Packs rows of x for weights of `native`, of which the first `count` are multiplied together; whether two such weights
   can be multiplied together; y = w x for rows that are packed and weights that can. */
void mt_cuda_native_pack(mt_device *dev, const mt_weight *const *w, size_t count, mt_cuda_mat x, size_t m);
bool mt_cuda_native_alike(const mt_weight *a, const mt_weight *b);
void mt_cuda_native_launch(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, size_t m);
/* The same for one row that is not packed; false: it does not fit. And with the norm of this row as part of it. */
bool mt_cuda_native_row(mt_device *dev, const mt_cuda_products *p);
bool mt_cuda_native_norm(mt_device *dev, const mt_cuda_rows *norm, const mt_cuda_native *product);
/* Has the last of these products in the list, if it makes x of few rows, also add it to y; if it makes gate and up of
   few rows, also combine them; else false. */
bool mt_cuda_native_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m);
bool mt_cuda_native_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu);
/* For experts: rows of a share of so many sorted pairs, and rows that all shares have room for together, at most. Packs
   rows of shares, of which there are `most` at most: by index, where given, of m rows of x. Products of these with
   experts, as p says, and where they go if they are packed at once for products with w. */
uint32_t mt_cuda_native_share(size_t pairs, size_t experts);
size_t mt_cuda_native_places(size_t pairs, size_t experts);
void mt_cuda_native_pack_shares(mt_device *dev, const mt_weight *w, mt_cuda_mat x, CUdeviceptr index, size_t m,
                                uint32_t rows, size_t most);
void mt_cuda_native_experts(mt_device *dev, mt_cuda_native_few *few, size_t most);
mt_cuda_packed mt_cuda_native_beside(const mt_device *dev, const mt_weight *w, uint32_t rows, size_t most);
/* Only products that read x packed still read it: if the last kernel before these products makes x, it no longer stores
   it unpacked. */
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
