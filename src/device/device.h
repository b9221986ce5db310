/* A device: what models compute with. Declares tensors, weights, key/value pages, recurrent states and some forty
   operations on them, for any kind of device. One thread owns a device and everything made from it.

   Operations are enqueued in order and return at once; their inputs and outputs are objects of the device, never the
   host's memory. The host's data come in by calls named "write" and by mt_step_begin; results come out through a
   reading, which is begun and later waited for. The CPU device runs each operation at once, on the host's threads; a
   GPU puts it on a stream.

   All operations follow docs/numerics.md: a row of an output depends only on that row of the input (R1), never on the
   number of rows or threads or on where a tile ends. None allocates: mt_device_plan has allocated for the largest step.

   Every call that backends implement is declared once, in the tables below; backend.h makes a table of functions from
   them, and device.c the functions that call through it. */
#ifndef MT_DEVICE_DEVICE_H
#define MT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "device/batch.h"
#include "device/host.h"
#include "device/params.h"

typedef struct mt_chain mt_chain;       /* sample/chain.h */
typedef struct mt_mat mt_mat;           /* kernels/matrix.h */
typedef struct mt_progress mt_progress; /* base/progress.h */

typedef struct mt_device mt_device;
typedef struct mt_set mt_set;         /* objects that are freed together: a model's, a tower's */
typedef struct mt_tensor mt_tensor;   /* f32 [rows, cols] */
typedef struct mt_index mt_index;     /* a list of numbers, mostly of rows */
typedef struct mt_patches mt_patches; /* pixels of patches of pictures */
typedef struct mt_weight mt_weight;   /* a matrix, and perhaps a bias */
typedef struct mt_experts mt_experts; /* gate, up and down of each expert of a layer */
typedef struct mt_kv mt_kv;           /* a pool of key/value pages */
typedef struct mt_states mt_states;   /* a pool of recurrent states */
typedef struct mt_reading mt_reading; /* a transfer to the host */
typedef struct mt_sending mt_sending; /* a transfer to the device */

/* The arithmetic of products with a weight. */
typedef enum mt_arithmetic { MT_ARITHMETIC_INT8, MT_ARITHMETIC_BF16, MT_ARITHMETIC_FP32 } mt_arithmetic;

typedef enum mt_activation {
    MT_ACT_SILU,
    MT_ACT_GELU_TANH,
    MT_ACT_QUICK_GELU, /* x sigmoid(1.702 x) */
    MT_ACT_GELU,
    MT_ACT_NONE, /* x */
    MT_ACT_RELU
} mt_activation;

/* How gate and up of an MLP are combined: act(gate) * (up + offset). With a limit, gate is first clamped to at most
   limit, and up to [-limit, limit]. */
typedef struct mt_glu {
    mt_activation act;
    float limit, offset; /* limit 0: none */
} mt_glu;

typedef enum mt_route {
    MT_ROUTE_SOFTMAX, /* softmax over all experts, then the best are chosen */
    MT_ROUTE_CHOSEN,  /* the best are chosen, then softmax over these */
    MT_ROUTE_SIGMOID  /* sigmoid of each, then the best are chosen */
} mt_route;

/* How a router's scores become experts and their weights. */
typedef struct mt_routing {
    mt_route kind;
    bool renormalise; /* weights of the chosen experts are divided by their sum */
    float scaling;    /* and then multiplied by this; 0: not */
    /* experts are in so many groups of neighbours, of which the best are chosen from; a group's score is that of its
       two best experts. 0: no groups */
    uint32_t groups, top_groups;
    /* a weight multiplies what its expert reads, not its result: then experts have no biases. It is applied to what
       gate and up give, which is the same, so that all experts of a row read the same numbers */
    bool on_input;
} mt_routing;

/* The experts of a layer: matrices [inner, hidden], [inner, hidden], [hidden, inner] of each; biases [count][n], or
   NULL. */
typedef struct mt_experts_params {
    size_t count, top_k; /* top_k: experts used by a row */
    const mt_mat *gate, *up, *down;
    const float *gate_bias, *up_bias, *down_bias;
    const float *correction; /* [count]: added to scores for choosing only; NULL: none */
    const float *scale;      /* [count]: multiplies each expert's result; NULL: none */
    /* with ranks: inner is divided into so many slices, as for mt_op_share, and gate and up have only this rank's rows;
       0: they have all */
    size_t slices;
    mt_routing routing;
    mt_glu glu;
} mt_experts_params;

/* NULL with a sentence. Free with mt_device_close, after every set. */
mt_device *mt_device_open(const mt_device_params *params, mt_error *err) MT_NODISCARD;
void mt_device_close(mt_device *dev);

/* Opens a failed device again, after every set was freed; mt_device_well is true then. False with a sentence; then it
   may be tried again. */
bool mt_device_renew(mt_device *dev, mt_error *err) MT_NODISCARD;
mt_precision mt_device_precision(const mt_device *dev);
mt_kv_bits mt_device_kv_bits(const mt_device *dev);
mt_numerics mt_device_numerics(const mt_device *dev);
mt_host *mt_device_host(mt_device *dev);
mt_ranks *mt_device_ranks(const mt_device *dev); /* NULL: there is one rank */
uint32_t mt_device_serial(const mt_device *dev); /* unique in the process, also among closed devices */

/* From now on, bytes of weights copied to the device are reported to progress; NULL: no longer. */
void mt_device_watch(mt_device *dev, mt_progress *progress);
const char *mt_device_name(const mt_device *dev); /* "cpu (neon dotprod i8mm bf16), 2 threads" */

/* The operation with number i of those that the device's backend lacks and the CPU computes for it; NULL: there are no
   more. */
const char *mt_device_lacks(const mt_device *dev, size_t i);

/* The names of all kinds of devices, separated by commas. */
const char *mt_device_names(void);

/* Objects live until their set is freed; the device must be planned again after that. */
mt_set *mt_set_new(mt_device *dev);
void mt_set_free(mt_set *set); /* NULL is fine */

typedef enum mt_kv_type { MT_KV_BF16, MT_KV_F32, MT_KV_Q8, MT_KV_Q4 } mt_kv_type;

/* A page is one block [layer][k|v][head][position][head_dim]. With `latent` there is one head and only keys are kept:
   [layer][position][head_dim]; a value is the first `latent` elements of its key. With `top`, attention does not read
   these keys: mt_op_top_keys compares them. */
typedef struct mt_kv_shape {
    size_t group; /* index of its page tables in mt_span.pages */
    size_t layers;
    size_t heads, query_heads; /* query_heads / heads query heads share a key/value head */
    size_t head_dim;
    size_t latent;      /* 0: values are kept beside keys */
    size_t top;         /* so many positions are chosen by these keys, which are all `latent`; 0: they choose nothing */
    size_t page_tokens; /* positions of a page; divides 256 */
    mt_kv_type type;
} mt_kv_shape;

/* Type of keys and values that only the same step reads: as exact as the device computes. */
static inline mt_kv_type mt_kv_type_of(const mt_device *dev)
{
    return mt_device_precision(dev) == MT_PRECISION_REFERENCE ? MT_KV_F32 : MT_KV_BF16;
}

/* Type of keys and values that are cached. */
static inline mt_kv_type mt_kv_cached_type(const mt_device *dev)
{
    const mt_kv_bits bits = mt_device_kv_bits(dev);
    return bits == MT_KV_BITS_16 ? mt_kv_type_of(dev) : bits == MT_KV_BITS_8 ? MT_KV_Q8 : MT_KV_Q4;
}

/* The state of a model's recurrent layers. value_heads / key_heads value heads share a key head. */
typedef struct mt_state_shape {
    size_t layers; /* 0: the model has no such layers */
    /* key_dim 0: the layer is only a convolution, over value_dim columns */
    size_t key_heads, value_heads, key_dim, value_dim;
    size_t taps; /* of the convolution; its last taps - 1 inputs are part of the state */
    bool plain;  /* Mamba2: states forget and add, but do not take away what a key has there; else GatedDeltaNet */
} mt_state_shape;

/* What a layer's queries see besides what the batch says, and how scores are treated. */
typedef struct mt_attention {
    uint32_t window; /* only the last so many keys up to the row's own; 0: all */
    uint32_t chunk;  /* only from the last multiple of this position on; 0: all */
    bool causal;     /* not beyond the row's own position, whatever the batch says */
    float scale, softcap;
    /* one row: a score of each query head that takes part in the softmax and adds nothing; NULL: none */
    const mt_tensor *sinks;
    /* the positions that mt_op_top_keys chose, `top` for each row; a row that sees more than `top` positions attends to
       these alone. NULL: every row attends to all positions that it sees */
    const mt_index *chosen;
    uint32_t top;
} mt_attention;

/* Columns of a matmul's result by key head: head g begins at column base + g * step. */
typedef struct mt_columns {
    const mt_tensor *x;
    size_t base, step;
} mt_columns;

/* Rows of a matrix by head: head h has `rows` of them from row first + h * step on. */
typedef struct mt_head_rows {
    size_t heads, first, step, rows;
    bool across; /* the transpose of a head's rows multiplies: its input has `rows` columns */
} mt_head_rows;

/* A patch of a picture: 3 channels of some frames of some pixels, as bytes; levels gives each byte's value by channel.
   still: it holds one frame, which stands for all. */
typedef struct mt_pixels {
    const uint8_t *bytes;
    const float (*levels)[256];
    bool still;
} mt_pixels;

/* Measured peaks of a device: bytes and operations per second; a multiply-add is two. Where it has no own arithmetic of
   a kind, the value of fp32. */
typedef struct mt_peaks {
    double bandwidth, int8, bf16, fp32;
} mt_peaks;

/* clang-format off */

/* Functions that make objects in a set: X(result, name, parameters, arguments). */
#define MT_DEVICE_OBJECTS(X)                                                                                           \
    /* A tensor of zeros. */                                                                                           \
    X(mt_tensor *, tensor_new, (mt_set *set, size_t rows, size_t cols), (set, rows, cols))                             \
    /* The same for many rows; memory is used only as they are written. NULL with a sentence where there is none. */   \
    X(mt_tensor *, tensor_reserve, (mt_set *set, size_t rows, size_t cols, mt_error *err), (set, rows, cols, err))     \
    /* Rows [row, row + rows) and columns [col, col + cols) of another tensor, sharing its memory. */                  \
    X(mt_tensor *, tensor_part,                                                                                        \
      (mt_set *set, mt_tensor *t, size_t row, size_t rows, size_t col, size_t cols),                                   \
      (set, t, row, rows, col, cols))                                                                                  \
    /* A tensor without memory of its own: mt_tensor_aim makes it some rows of another tensor. */                      \
    X(mt_tensor *, tensor_view, (mt_set *set), (set))                                                                  \
    X(mt_index *, index_new, (mt_set *set, size_t count), (set, count))                                                \
    /* For `rows` patches, each 3 channels of `frames` frames of `area` pixels. */                                     \
    X(mt_patches *, patches_new, (mt_set *set, size_t rows, size_t frames, size_t area), (set, rows, frames, area))    \
    /* Borrows the matrix's memory and bias (n floats or NULL) as long as the set lives. exact: products are           \
       computed in fp32 in every precision (routers). */                                                               \
    X(mt_weight *, weight_new,                                                                                         \
      (mt_set *set, const mt_mat *mat, const float *bias, bool exact),                                                 \
      (set, mat, bias, exact))                                                                                         \
    /* Borrows memory likewise; copies the arrays of matrices. */                                                      \
    X(mt_experts *, experts_new, (mt_set *set, const mt_experts_params *params), (set, params))                        \
    /* NULL with a sentence where the device does not support the shape. */                                            \
    X(mt_kv *, kv_new, (mt_set *set, const mt_kv_shape *shape, mt_error *err), (set, shape, err))                      \
    /* Makes its pages, once, before the first step; all zeros. Memory is used only as they are written. False with    \
       a sentence. */                                                                                                  \
    X(bool, kv_reserve, (mt_set *set, mt_kv *kv, size_t pages, mt_error *err), (set, kv, pages, err))                  \
    /* A slot is one block [layer][inputs of the convolution | matrices of the heads], all fp32. memos: most spans     \
       of a step that end with guesses. state_reserve makes the slots, once; false with a sentence. */                 \
    X(mt_states *, state_new, (mt_set *set, const mt_state_shape *shape, size_t memos), (set, shape, memos))           \
    X(bool, state_reserve, (mt_set *set, mt_states *states, size_t slots, mt_error *err), (set, states, slots, err))   \
    X(mt_chooser *, chooser_new, (mt_set *set, size_t vocab), (set, vocab))                                            \
    /* A reading of at most `bytes` bytes at a time. */                                                                \
    X(mt_reading *, reading_new, (mt_set *set, size_t bytes), (set, bytes))                                            \
    /* A reading for large transfers: operations that are enqueued later do not wait for it. */                        \
    X(mt_reading *, reading_aside, (mt_set *set, size_t bytes), (set, bytes))                                          \
    /* `bytes` bytes of the host's memory, from which pages and slots are written; operations do not wait for it,      \
       either. */                                                                                                      \
    X(mt_sending *, sending_new, (mt_set *set, size_t bytes), (set, bytes))

/* Functions with a result. */
#define MT_DEVICE_ANSWERS(X)                                                                                           \
    /* The fingerprint (R12): numerics version, R5 level, precision and the type of cached keys in one number. */      \
    X(uint32_t, device_fingerprint, (const mt_device *dev), (dev))                                                     \
    /* Whether the device has not failed; false with a sentence from its first fault on: then nothing that is read     \
       is valid. */                                                                                                    \
    X(bool, device_well, (const mt_device *dev, mt_error *err), (dev, err))                                            \
    /* Whether the device has memory of its own: weights are copied to it, and only that memory counts for it. */      \
    X(bool, device_apart, (const mt_device *dev), (dev))                                                               \
    /* Bytes that the device has allocated besides mapped weights, and all memory that it could use. */                \
    X(uint64_t, device_bytes, (const mt_device *dev), (dev))                                                           \
    X(uint64_t, device_memory, (const mt_device *dev), (dev))                                                          \
    /* Allocates working memory for steps of at most `rows` rows with all objects of its sets. Not during a step.      \
       False with a sentence. */                                                                                       \
    X(bool, device_plan, (mt_device *dev, size_t rows, mt_error *err), (dev, rows, err))                               \
    /* Bytes of a page, and of a slot, in memory and when read. */                                                     \
    X(size_t, kv_page_bytes, (const mt_device *dev, const mt_kv_shape *shape), (dev, shape))                           \
    X(size_t, state_slot_bytes, (const mt_device *dev, const mt_state_shape *shape), (dev, shape))                     \
    /* Wait for a reading that was begun. The result is valid until the reading is used again, or its source is        \
       written. */                                                                                                     \
    X(const float *, reading_row, (mt_device *dev, mt_reading *r, size_t row), (dev, r, row))                          \
    X(const void *, reading_data, (mt_device *dev, mt_reading *r), (dev, r))                                           \
    /* Whether a large reading (reading_aside) is complete, so that waiting takes no time. */                          \
    X(bool, reading_come, (mt_device *dev, mt_reading *r), (dev, r))                                                   \
    /* The sending's memory; and whether all transfers from it are complete, so that it may be changed and their       \
       targets used. */                                                                                                \
    X(void *, sending_room, (mt_device *dev, mt_sending *s), (dev, s))                                                 \
    X(bool, sending_gone, (mt_device *dev, mt_sending *s), (dev, s))                                                   \
    /* Properties of objects, for those who count bytes and operations. */                                             \
    X(size_t, tensor_cols, (const mt_device *dev, const mt_tensor *t), (dev, t))                                       \
    X(const mt_mat *, weight_mat, (const mt_device *dev, const mt_weight *w), (dev, w))                                \
    X(mt_arithmetic, weight_arithmetic, (const mt_device *dev, const mt_weight *w), (dev, w))                          \
    /* experts_weight: part 0, 1, 2 is gate, up, down of expert `which`. */                                            \
    X(size_t, experts_count, (const mt_device *dev, const mt_experts *e), (dev, e))                                    \
    X(size_t, experts_top_k, (const mt_device *dev, const mt_experts *e), (dev, e))                                    \
    X(const mt_weight *, experts_weight,                                                                               \
      (const mt_device *dev, const mt_experts *e, size_t which, size_t part),                                          \
      (dev, e, which, part))                                                                                           \
    X(const mt_kv_shape *, kv_shape_of, (const mt_device *dev, const mt_kv *kv), (dev, kv))                            \
    X(const mt_state_shape *, state_shape_of, (const mt_device *dev, const mt_states *states), (dev, states))          \
    /* A good number of rows of a step, where nobody says how many: enough to keep the whole device busy. */           \
    X(size_t, device_rows, (const mt_device *dev), (dev))                                                              \
    /* Up to so many rows of a step are computed by kernels for few rows, and one more makes the step much longer.     \
       0: there is no such number. */                                                                                  \
    X(size_t, device_few, (const mt_device *dev), (dev))                                                               \
    /* Whether a step is computed later than it is enqueued, so that it pays to enqueue one while another runs. */     \
    X(bool, device_ahead, (const mt_device *dev), (dev))                                                               \
    /* Whether the device itself chooses for this chain, so that a step can begin with the token before the host       \
       knows it. */                                                                                                    \
    X(bool, chooses, (const mt_device *dev, const mt_chain *chain), (dev, chain))                                      \
    /* Measures the peaks; takes a quarter of a second or less. Not during a step. */                                  \
    X(mt_peaks, device_peaks, (mt_device *dev), (dev))                                                                 \
    /* For debugging: whether a page, or a slot, is still all NaN. */                                                  \
    X(bool, kv_poisoned, (mt_device *dev, const mt_kv *kv, uint32_t page), (dev, kv, page))                            \
    X(bool, state_poisoned, (mt_device *dev, const mt_states *states, uint32_t slot), (dev, states, slot))

/* Functions without a result. */
#define MT_DEVICE_CALLS(X)                                                                                             \
    /* The calling thread owns the device from here on; before the first call, the thread that opened it does. A       \
       thread that owns several devices calls this before it uses another one of them. */                              \
    X(void, device_enter, (mt_device *dev), (dev))                                                                     \
    /* Sets the batch that the following operations are about. Borrows all of it until the next step begins. */        \
    X(void, step_begin, (mt_device *dev, const mt_batch *batch), (dev, batch))                                         \
    /* Chooses tokens for the rows of logits that each chain names (sample/chain.h). step_choose begins; the results   \
       are in the chains after step_chosen, which waits for them and for nothing that was enqueued later. It may be    \
       called for some of the chains only. Where the device cannot apply a chain's settings, the host chooses in       \
       step_chosen, with the same result; the logits must still be there then. Where there is no such chain, one       \
       more step may be begun and chosen for between the two calls. */                                                 \
    X(void, step_choose,                                                                                               \
      (mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count),                 \
      (dev, c, logits, chains, count))                                                                                 \
    X(void, step_chosen,                                                                                               \
      (mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count),                 \
      (dev, c, logits, chains, count))                                                                                 \
    /* Waits until everything that was enqueued is done. */                                                            \
    X(void, device_wait, (mt_device *dev), (dev))                                                                      \
    /* Write data of the host: rows of `cols` floats; `count` numbers; the pixels of m patches, which are borrowed     \
       until the next write. */                                                                                        \
    X(void, tensor_write,                                                                                              \
      (mt_device *dev, mt_tensor *t, size_t row, size_t rows, const float *data),                                      \
      (dev, t, row, rows, data))                                                                                       \
    X(void, index_write,                                                                                               \
      (mt_device *dev, mt_index *index, const uint32_t *data, size_t count),                                           \
      (dev, index, data, count))                                                                                       \
    X(void, patches_write, (mt_device *dev, mt_patches *p, const mt_pixels *pixels, size_t m), (dev, p, pixels, m))    \
    /* Begin to read rows; the first numbers of a list; a page; a slot. Pages and slots can be written back, to        \
       this device or one of the same fingerprint. */                                                                  \
    X(void, read_rows,                                                                                                 \
      (mt_device *dev, mt_reading *r, const mt_tensor *t, size_t row, size_t rows),                                    \
      (dev, r, t, row, rows))                                                                                          \
    X(void, read_index, (mt_device *dev, mt_reading *r, const mt_index *index, size_t count), (dev, r, index, count))  \
    X(void, read_page, (mt_device *dev, mt_reading *r, const mt_kv *kv, uint32_t page), (dev, r, kv, page))            \
    X(void, read_state,                                                                                                \
      (mt_device *dev, mt_reading *r, const mt_states *states, uint32_t slot),                                         \
      (dev, r, states, slot))                                                                                          \
    /* Begin to write a page or slot back, from byte `at` of a sending on: it must not be used before                  \
       mt_sending_gone. */                                                                                             \
    X(void, kv_restore,                                                                                                \
      (mt_device *dev, mt_kv *kv, uint32_t page, mt_sending *s, size_t at),                                            \
      (dev, kv, page, s, at))                                                                                          \
    X(void, state_restore,                                                                                             \
      (mt_device *dev, mt_states *states, uint32_t slot, mt_sending *s, size_t at),                                    \
      (dev, states, slot, s, at))                                                                                      \
    /* Waits until all transfers of a sending are complete. */                                                         \
    X(void, sending_wait, (mt_device *dev, mt_sending *s), (dev, s))                                                   \
    X(void, tensor_aim,                                                                                               \
      (mt_device *dev, mt_tensor *view, const mt_tensor *t, size_t row, size_t rows),                                  \
      (dev, view, t, row, rows))                                                                                       \
    /* For debugging: fills a page, or a slot, with NaN. */                                                            \
    X(void, kv_poison, (mt_device *dev, mt_kv *kv, uint32_t page), (dev, kv, page))                                    \
    X(void, state_poison, (mt_device *dev, mt_states *states, uint32_t slot), (dev, states, slot))

/* Operations; m is the number of rows. R1, R9 and so on are rules of docs/numerics.md. */
#define MT_DEVICE_OPERATIONS(X)                                                                                        \
    /* Copies of rows: y[to] = x[from]; y = 0; y[i] = x[index[i]]; y[to[i]][column ..] = x[i]; y[to[i]] += x[i], i     \
       ascending. The last two skip rows where to[i] is MT_NO_PAGE. */                                                 \
    X(void, op_copy_row,                                                                                               \
      (mt_device *dev, mt_tensor *y, size_t to, const mt_tensor *x, size_t from),                                      \
      (dev, y, to, x, from))                                                                                           \
    X(void, op_clear, (mt_device *dev, mt_tensor *y, size_t row, size_t m), (dev, y, row, m))                          \
    X(void, op_gather,                                                                                                 \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_index *index, size_t m),                             \
      (dev, y, x, index, m))                                                                                           \
    X(void, op_scatter,                                                                                                \
      (mt_device *dev, mt_tensor *y, const mt_index *to, size_t column, const mt_tensor *x, size_t m),                 \
      (dev, y, to, column, x, m))                                                                                      \
    X(void, op_sum_rows,                                                                                               \
      (mt_device *dev, mt_tensor *y, const mt_index *to, const mt_tensor *x, size_t m),                                \
      (dev, y, to, x, m))                                                                                              \
    /* x[i] = scale * row tokens[i] of w, for every row of the step; w is exact */                                     \
    X(void, op_embed, (mt_device *dev, mt_tensor *x, const mt_weight *w, float scale), (dev, x, w, scale))             \
    /* For the step's rows that have features: x = their features from column `column` on or, where add, x += these */ \
    X(void, op_features,                                                                                               \
      (mt_device *dev, mt_tensor *x, const mt_tensor *features, size_t column, bool add),                              \
      (dev, x, features, column, add))                                                                                 \
    /* y = x / rms(x) * (offset + w), w a tensor of one row */                                                         \
    X(void, op_norm,                                                                                                   \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps, float offset),       \
      (dev, y, x, m, w, eps, offset))                                                                                  \
    /* y += x */                                                                                                       \
    X(void, op_add, (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m), (dev, y, x, m))                      \
    /* y[j] = w[j] x + bias for `count` weights, at most 4, that share their input */                                  \
    X(void, op_matmul,                                                                                                 \
      (mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, const mt_tensor *x, size_t m),    \
      (dev, y, w, count, x, m))                                                                                        \
    /* table = cos and sin of the step's positions times inv_freq, both times scale; it has twice as many columns      \
       as inv_freq. axis: the axis of a position that each frequency turns with; NULL: the first. */                   \
    X(void, op_rope_table,                                                                                             \
      (mt_device *dev, mt_tensor *table, const mt_tensor *inv_freq, const mt_index *axis, float scale),                \
      (dev, table, inv_freq, axis, scale))                                                                             \
    /* y = each head of each row of x: normed (w NULL: not), then rotated by the table (NULL: not). Rotated are        \
       elements i and i + half or, with `pairs`, neighbours. y may be x. */                                            \
    X(void, op_heads,                                                                                                  \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, size_t head_dim, const mt_tensor *w, float eps,     \
       float offset, const mt_tensor *table, bool pairs),                                                              \
      (dev, y, x, m, head_dim, w, eps, offset, table, pairs))                                                          \
    /* The last `count` elements of each head of x, rotated by the table (NULL: not), as the last ones of each head of \
       y; heads have x_dim and y_dim elements. */                                                                      \
    X(void, op_turn_ends,                                                                                              \
      (mt_device *dev, mt_tensor *y, size_t y_dim, const mt_tensor *x, size_t x_dim, size_t count, size_t m,           \
       const mt_tensor *table, bool pairs),                                                                            \
      (dev, y, y_dim, x, x_dim, count, m, table, pairs))                                                               \
    /* Columns of y from h * y_dim on = the rows of w of head h, times columns of x from h * x_dim on, for all heads.  \
       Sums of transposed rows are in fp32, rows ascending, in every precision. */                                     \
    X(void, op_matmul_heads,                                                                                           \
      (mt_device *dev, mt_tensor *y, size_t y_dim, const mt_weight *w, mt_head_rows how, const mt_tensor *x,           \
       size_t x_dim, size_t m),                                                                                        \
      (dev, y, y_dim, w, how, x, x_dim, m))                                                                            \
    /* x = factor[position / every] * x for each of the step's rows, by the first axis of its position; factor is a    \
       tensor of one row, whose last element holds for all positions beyond */                                         \
    X(void, op_stretch,                                                                                                \
      (mt_device *dev, mt_tensor *x, const mt_tensor *factor, size_t every),                                           \
      (dev, x, factor, every))                                                                                         \
    /* Copies page `from` to page `to`. */                                                                             \
    X(void, op_kv_copy, (mt_device *dev, mt_kv *kv, uint32_t to, uint32_t from), (dev, kv, to, from))                  \
    /* Writes K and V of the step's rows to their sequences' pages, rounded once to the pages' type. v is NULL where   \
       values are parts of keys. */                                                                                    \
    X(void, op_kv_write,                                                                                               \
      (mt_device *dev, mt_kv *kv, size_t layer, const mt_tensor *k, const mt_tensor *v),                               \
      (dev, kv, layer, k, v))                                                                                          \
    /* Attention of the step's rows over the positions they see. q and y have the layer's query heads side by side:    \
       their number is a multiple of the pages' heads, at most the shape's query_heads. Where values are parts of keys,\
       heads of y have `latent` elements. */                                                                           \
    X(void, op_attention,                                                                                              \
      (mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer, mt_attention how),                   \
      (dev, y, q, kv, layer, how))                                                                                     \
    /* Chooses positions for each of the step's rows that sees more than shape.top ones: the top ones by score, the    \
       lower of equal ones, ascending in chosen[row * top ..). A score is the sum over heads h of w[h] *               \
       max(q[h] . key, 0) by R9, in every precision; q has the heads side by side, w a column for each. */             \
    X(void, op_top_keys,                                                                                               \
      (mt_device *dev, mt_index *chosen, const mt_tensor *q, const mt_tensor *w, mt_kv *kv, size_t layer),             \
      (dev, chosen, q, w, kv, layer))                                                                                  \
    /* y = act(gate) * up, as glu says; y may be gate or up */                                                         \
    X(void, op_glu,                                                                                                    \
      (mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m, mt_glu glu),                \
      (dev, y, gate, up, m, glu))                                                                                      \
    /* y = sum over a row's experts, best first, of weight * expert(x). Overwrites router. */                          \
    X(void, op_moe,                                                                                                    \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, mt_tensor *router, size_t m, const mt_experts *experts),      \
      (dev, y, x, router, m, experts))                                                                                 \
    /* The columns of x are divided into `slices`, of which each rank has computed its own (mt_ranks_first).           \
       Exchanges them: afterwards every rank has all columns or, where `all` is false, rank 0 has. */                  \
    X(void, op_share,                                                                                                  \
      (mt_device *dev, mt_tensor *x, size_t slices, size_t m, bool all),                                               \
      (dev, x, slices, m, all))                                                                                        \
    /* What x holds is not needed any more: it may be anything until it is written again. A device may then leave      \
       it unwritten. */                                                                                                \
    X(void, op_spend, (mt_device *dev, const mt_tensor *x), (dev, x))                                                  \
    /* x = factor * x */                                                                                               \
    X(void, op_scale, (mt_device *dev, mt_tensor *x, size_t m, float factor), (dev, x, m, factor))                     \
    /* y = silu of a causal convolution over time; then q and k of each head are divided by their length, and q by     \
       sqrt(key_dim). y is [q of all heads | k | v]. in: q, k and v. w: [taps][columns of y], the last tap for the     \
       row itself. Inputs before a span are in its state, which is updated. Where key_dim is 0, y is just the          \
       convolution of v. Where the states are plain, w has one more row, a bias, and q and k keep their lengths. */    \
    X(void, op_conv,                                                                                                   \
      (mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_columns in[3], const mt_tensor *w),     \
      (dev, y, states, layer, in, w))                                                                                  \
    /* gates[i] = [exp(-rate * softplus(a + bias)) | sigmoid(b) | working memory] of each value head: three times      \
       as many columns */                                                                                              \
    X(void, op_gates,                                                                                                  \
      (mt_device *dev, mt_tensor *gates, mt_columns a, mt_columns b, size_t key_heads, const mt_tensor *rate,          \
       const mt_tensor *bias, size_t m),                                                                               \
      (dev, gates, a, b, key_heads, rate, bias, m))                                                                    \
    /* gates[i] = [exp(-rate * s) | s | working memory] of each value head, s = softplus(x + bias) clamped to [low,    \
       high]: what op_gates computes, where states are plain. x has a column for each value head. */                   \
    X(void, op_time_steps,                                                                                             \
      (mt_device *dev, mt_tensor *gates, const mt_tensor *x, const mt_tensor *rate, const mt_tensor *bias, float low,  \
       float high, size_t m),                                                                                          \
      (dev, gates, x, rate, bias, low, high, m))                                                                       \
    /* The gated delta rule (R9), token by token, from each span's state through its pieces. x: result of op_conv;     \
       gates: of op_gates or op_time_steps; y has value_heads * value_dim columns. */                                  \
    X(void, op_delta,                                                                                                  \
      (mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_tensor *x, const mt_tensor *gates),     \
      (dev, y, states, layer, x, gates))                                                                               \
    /* Stores in the memos what the guesses of all spans do to the layer's state. in: as for op_conv. Call behind      \
       op_conv and op_delta. */                                                                                        \
    X(void, op_remember,                                                                                               \
      (mt_device *dev, mt_states *states, size_t layer, const mt_columns in[3], const mt_tensor *x,                    \
       const mt_tensor *gates),                                                                                        \
      (dev, states, layer, in, x, gates))                                                                              \
    /* Each head of x, in place: x / rms(x) * w, times silu(z). */                                                     \
    X(void, op_gated_norm,                                                                                             \
      (mt_device *dev, mt_tensor *x, mt_columns z, size_t key_heads, const mt_tensor *w, float eps, size_t m),         \
      (dev, x, z, key_heads, w, eps, m))                                                                               \
    /* x holds a head of q, then its gate, and so on: splits them */                                                   \
    X(void, op_split_heads,                                                                                            \
      (mt_device *dev, mt_tensor *q, mt_tensor *gate, const mt_tensor *x, size_t head_dim, size_t m),                  \
      (dev, q, gate, x, head_dim, m))                                                                                  \
    /* y = sigmoid(gate) * y */                                                                                        \
    X(void, op_gate, (mt_device *dev, mt_tensor *y, const mt_tensor *gate, size_t m), (dev, y, gate, m))               \
    /* y += sigmoid(gate) * x; gate has one column */                                                                  \
    X(void, op_add_gated,                                                                                              \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *gate, size_t m),                             \
      (dev, y, x, gate, m))                                                                                            \
    /* x = (x - bias) * w by column, then clamped to [low, high]; bias and w are tensors of one row, or NULL */        \
    X(void, op_adjust,                                                                                                 \
      (mt_device *dev, mt_tensor *x, size_t m, const mt_tensor *bias, const mt_tensor *w, float low, float high),      \
      (dev, x, m, bias, w, low, high))                                                                                 \
    /* x = cap * tanh(x / cap) */                                                                                      \
    X(void, op_softcap, (mt_device *dev, mt_tensor *x, size_t m, float cap), (dev, x, m, cap))                         \
    /* ok[i] = 1 where every number of row i is finite, else 0 */                                                      \
    X(void, op_finite, (mt_device *dev, mt_tensor *ok, const mt_tensor *x, size_t m), (dev, ok, x, m))                 \
    /* y[i] = the column of the largest number of row i, the first of equal ones */                                    \
    X(void, op_argmax, (mt_device *dev, mt_index *y, const mt_tensor *x, size_t m), (dev, y, x, m))                    \
                                                                                                                       \
    /* ---- operations of vision towers ---- x = the values of m patches */                                            \
    X(void, op_pixels, (mt_device *dev, mt_tensor *x, const mt_patches *patches, size_t m), (dev, x, patches, m))      \
    /* y = (x - mean) / sqrt(variance + eps) * w + bias */                                                             \
    X(void, op_layer_norm,                                                                                             \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, const mt_tensor *bias,          \
       float eps),                                                                                                     \
      (dev, y, x, m, w, bias, eps))                                                                                    \
    /* x = act(x) */                                                                                                   \
    X(void, op_act, (mt_device *dev, mt_tensor *x, size_t m, mt_activation act), (dev, x, m, act))                     \
    /* x[i] += the sum over j < count of factor[i][j] * row index[i * count + j] of w, which is exact; factor NULL:    \
       all are 1 */                                                                                                    \
    X(void, op_add_rows,                                                                                               \
      (mt_device *dev, mt_tensor *x, const mt_weight *w, const mt_index *index, const mt_tensor *factor,               \
       size_t count, size_t m),                                                                                        \
      (dev, x, w, index, factor, count, m))                                                                            \
    /* y[i] = the `count` rows of x from row count * i on: op_join puts them side by side or, where interleaved,       \
       interleaves their elements (all first elements, then all second ones); op_mean takes their mean */              \
    X(void, op_join,                                                                                                   \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m, bool interleaved),                    \
      (dev, y, x, count, m, interleaved))                                                                              \
    X(void, op_mean,                                                                                                   \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m),                                      \
      (dev, y, x, count, m))

/* clang-format on */

#define MT_DECLARE(result, name, parameters, arguments) result mt_##name parameters;
MT_DEVICE_OBJECTS(MT_DECLARE)
MT_DEVICE_ANSWERS(MT_DECLARE)
MT_DEVICE_CALLS(MT_DECLARE)
MT_DEVICE_OPERATIONS(MT_DECLARE)
#undef MT_DECLARE

/* A new tensor with these floats; NULL where data is NULL. */
mt_tensor *mt_tensor_of(mt_set *set, const float *data, size_t rows, size_t cols);

/* A new list with these numbers. */
mt_index *mt_index_of(mt_set *set, const uint32_t *data, size_t count);

#endif
