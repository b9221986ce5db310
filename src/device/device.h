/* What a model computes with: tensors, weights, key/value pages, recurrent states, and some fifty operations on them,
   for any kind of device. One thread owns a device and everything made from it.

   Operations enqueue in order and return; nothing they take lies in the host's memory, and nothing they give. What the
   host knows comes in by calls named "write" and by mt_step_begin; what it wants to know comes out through a reading,
   which is begun and later waited for. The CPU device runs each operation at once, on the host's threads; a GPU would
   put it on a stream.

   All operations obey docs/numerics.md: a row of an output depends on that row of the input alone (R1), never on
   how many rows there are, how many threads run, or where a tile ends. None of them allocates: mt_device_plan has
   reserved the worst case.

   Every call that devices answer differently is declared once, in the tables below; backend.h makes a table of
   functions of them, and device.c the functions that look into it. */
#ifndef MT_DEVICE_DEVICE_H
#define MT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/progress.h"
#include "device/host.h"
#include "kernels/matrix.h"
#include "ranks/ranks.h"
#include "sample/chain.h"

typedef struct mt_device mt_device;
typedef struct mt_set mt_set;         /* objects that come and go together: a model's, a tower's */
typedef struct mt_tensor mt_tensor;   /* f32 [rows, cols] */
typedef struct mt_index mt_index;     /* a list of numbers, of rows mostly */
typedef struct mt_patches mt_patches; /* pixels of patches of pictures */
typedef struct mt_weight mt_weight;   /* a matrix and perhaps a bias */
typedef struct mt_experts mt_experts; /* gate, up and down of each expert of a layer */
typedef struct mt_kv mt_kv;           /* a pool of key/value pages */
typedef struct mt_states mt_states;   /* a pool of recurrent states */
typedef struct mt_chooser mt_chooser; /* what choosing tokens needs */
typedef struct mt_reading mt_reading; /* something on its way to the host */
typedef struct mt_sending mt_sending; /* something on its way to the device */

typedef enum mt_precision {
    MT_PRECISION_FAST,     /* int8 against quantised weights, bf16 against bf16; fp32 elsewhere */
    MT_PRECISION_REFERENCE /* fp32 against exactly dequantised weights */
} mt_precision;

/* What products with a weight are made of. */
typedef enum mt_arithmetic { MT_ARITHMETIC_INT8, MT_ARITHMETIC_BF16, MT_ARITHMETIC_FP32 } mt_arithmetic;

typedef enum mt_activation {
    MT_ACT_SILU,
    MT_ACT_GELU_TANH,
    MT_ACT_QUICK_GELU, /* x sigmoid(1.702 x) */
    MT_ACT_GELU,
    MT_ACT_NONE /* x */
} mt_activation;

/* How gate and up of an MLP meet: act(gate) * (up + offset). Where there is a limit, gate is cut at it from above and
   up at it and its negative, before. */
typedef struct mt_glu {
    mt_activation act;
    float limit, offset; /* limit 0: none */
} mt_glu;

typedef enum mt_route {
    MT_ROUTE_SOFTMAX, /* probabilities of all experts; the best are chosen */
    MT_ROUTE_CHOSEN,  /* the best are chosen; probabilities of them alone */
    MT_ROUTE_SIGMOID  /* each expert by itself; the best are chosen */
} mt_route;

/* From a router's numbers to experts and what each counts. */
typedef struct mt_routing {
    mt_route kind;
    bool renormalise;            /* what the chosen count is divided by their sum */
    float scaling;               /* and then multiplied by this; 0: by nothing */
    uint32_t groups, top_groups; /* so many groups of neighbours, of which the best are chosen from: a group counts by
                                    its two best experts. 0: no groups */
} mt_routing;

/* The experts of a layer: matrices [inner, hidden], [inner, hidden], [hidden, inner] of each, biases [count][n] or
   NULL. */
typedef struct mt_experts_params {
    size_t count, top_k; /* top_k of them a row */
    const mt_mat *gate, *up, *down;
    const float *gate_bias, *up_bias, *down_bias;
    const float *correction; /* [count], added for choosing alone; NULL: nothing */
    const float *scale;      /* [count]: of each expert's result, after all else; NULL: nothing */
    size_t slices; /* of ranks: inner is cut into so many, as mt_op_share has it, and gate and up have the rows
                                of this one's; 0: it has all */
    mt_routing routing;
    mt_glu glu;
} mt_experts_params;

/* What cached keys and values are kept in: 16 bits, fp32 in reference precision, or integers with a scale for each
   vector, which every precision reads as they are. */
typedef enum mt_kv_bits { MT_KV_BITS_16, MT_KV_BITS_8, MT_KV_BITS_4 } mt_kv_bits;

typedef struct mt_device_params {
    const char *name; /* "cpu", "cuda", "cuda:1" for the second of several; NULL, "auto": a GPU that works here, or the
                         CPU */
    int number;       /* which of several; mt_device_open has it from the name */
    mt_precision precision;
    mt_kv_bits kv_bits;
    mt_host_params host; /* all that the CPU device has to know */
    mt_ranks *ranks;     /* that compute together, of which this is one; borrowed; NULL: it is alone */
    mt_host *shared;     /* instead of a host of its own; borrowed: devices of one host compute one at a time */
} mt_device_params;

/* NULL on failure. Free with mt_device_close, after every set. */
mt_device *mt_device_open(const mt_device_params *params, mt_error *err) MT_NODISCARD;
void mt_device_close(mt_device *dev);

/* Opens the same device again, after every set was freed: what it lost (mt_device_well) is whole then. False with a
   sentence; then it may be tried again. */
bool mt_device_renew(mt_device *dev, mt_error *err) MT_NODISCARD;
mt_precision mt_device_precision(const mt_device *dev);
mt_kv_bits mt_device_kv_bits(const mt_device *dev);
mt_host *mt_device_host(mt_device *dev);
mt_ranks *mt_device_ranks(const mt_device *dev); /* NULL: it is alone */
uint32_t mt_device_serial(const mt_device *dev); /* no other device of the process has or had this number */

/* Bytes of weights that are copied to the device are told to progress, until this is called with NULL. */
void mt_device_watch(mt_device *dev, mt_progress *progress);
const char *mt_device_name(const mt_device *dev); /* "cpu (neon dotprod i8mm bf16), 2 threads" */

/* The names of all devices there are, a comma between. */
const char *mt_device_names(void);

/* Objects live in a set until it is freed; the device must be planned anew after that. */
mt_set *mt_set_new(mt_device *dev);
void mt_set_free(mt_set *set); /* NULL is fine */

#define MT_KV_GROUPS 4 /* pools of pages of a model: layers whose keys and values are kept alike share one */
#define MT_NO_PAGE UINT32_MAX
#define MT_PAGE_TOKENS 32 /* positions of a page */
#define MT_KV_SEGMENT 256 /* attention reads keys in whole segments of this many positions (R8) */

typedef enum mt_kv_type { MT_KV_BF16, MT_KV_F32, MT_KV_Q8, MT_KV_Q4 } mt_kv_type;

/* A page is one block [layer][k|v][head][position][head_dim]. */
typedef struct mt_kv_shape {
    size_t group; /* which of a span's page tables */
    size_t layers;
    size_t heads, query_heads; /* query_heads / heads of them share a head */
    size_t head_dim;
    size_t page_tokens; /* positions of a page; divides 256 */
    mt_kv_type type;
} mt_kv_shape;

/* What keys and values are written as that the same step reads and nobody later: as exact as the device computes. */
static inline mt_kv_type mt_kv_type_of(const mt_device *dev)
{
    return mt_device_precision(dev) == MT_PRECISION_REFERENCE ? MT_KV_F32 : MT_KV_BF16;
}

/* What those are written as that stay: as the device was told. */
static inline mt_kv_type mt_kv_cached_type(const mt_device *dev)
{
    const mt_kv_bits bits = mt_device_kv_bits(dev);
    return bits == MT_KV_BITS_16 ? mt_kv_type_of(dev) : bits == MT_KV_BITS_8 ? MT_KV_Q8 : MT_KV_Q4;
}

/* The recurrent layers of a model. value_heads / key_heads of them share a key head. */
typedef struct mt_state_shape {
    size_t layers;                                     /* 0: the model has none */
    size_t key_heads, value_heads, key_dim, value_dim; /* key_dim 0: nothing but the convolution, over value_dim */
    size_t taps; /* of the convolution, whose last taps - 1 inputs are part of the state */
} mt_state_shape;

/* ---- one step's view of its sequences ---- */

/* Some rows of a span: the recurrent state after them goes to a slot, and the next piece goes on from there. */
typedef struct mt_piece {
    uint32_t rows, slot;
} mt_piece;

typedef struct mt_span {
    uint32_t row, rows;                  /* rows [row, row + rows) of the batch */
    uint32_t position;                   /* of the first of them */
    const uint32_t *pages[MT_KV_GROUPS]; /* page tables of the sequence, up to its last row */
    uint32_t state;                      /* slot of the state before the first row; MT_NO_PAGE: zeros */
    uint32_t pieces;                     /* of models with recurrent layers: they have all rows but the guesses */
    const mt_piece *piece;               /* slots differ, but the last may be `state` */
    /* The last rows may be guesses. No state is kept of them, but what it needs to move on: in a memo, from where the
       next step of the sequence takes as many as turned out right. */
    uint32_t guesses, memo; /* at most MT_LIMIT_MEMO_ROWS */
    uint32_t replay;        /* of the memo's rows, that stand between `state` and the first row */
} mt_span;

/* Where a row stands for rotary angles: in time, from the top, from the left. All the same for text. */
typedef struct mt_position {
    uint32_t axis[3];
} mt_position;

typedef struct mt_batch {
    size_t rows;
    const uint32_t *tokens;       /* [rows] */
    const mt_position *positions; /* [rows] */
    size_t spans;
    const mt_span *span; /* [spans], rows ascending and without gaps */

    /* What only some batches have; NULL elsewhere. */
    const uint32_t *features;         /* [rows]: which row of the features stands for the embedding of a row's token;
                                         MT_NO_PAGE: none, it has its own */
    const uint32_t *seen_from, *seen; /* [rows]: the positions of its sequence that a row sees, [seen_from, seen); where
                                         NULL, from the first, and up to the row's own */
} mt_batch;

/* What a layer's queries see of their sequence, besides what the batch says, and how scores become shares. */
typedef struct mt_attention {
    uint32_t window; /* the last so many keys up to the row's own; 0: all */
    uint32_t chunk;  /* from the last multiple of this on; 0: all */
    bool causal;     /* no further than the row's own, whatever the batch says */
    float scale, softcap;
    const mt_tensor *sinks; /* one row: of each query head a score that takes a share and gives nothing; NULL: none */
} mt_attention;

/* Columns of a matmul's result by key head: those of head g begin at base + g * step. */
typedef struct mt_columns {
    const mt_tensor *x;
    size_t base, step;
} mt_columns;

/* A patch of a picture: 3 channels of some frames of some pixels, each a byte that its channel's levels give a value.
   A still one holds one frame, which stands for all. */
typedef struct mt_pixels {
    const uint8_t *bytes;
    const float (*levels)[256];
    bool still;
} mt_pixels;

/* What a device can do at most, measured: bytes and operations a second, a multiply-add being two. Where it has no
   arithmetic of its own for one, that of fp32. */
typedef struct mt_peaks {
    double bandwidth, int8, bf16, fp32;
} mt_peaks;

/* clang-format off */

/* Objects, made in a set: X(result, name, parameters, arguments) */
#define MT_DEVICE_OBJECTS(X)                                                                                           \
    /* Zeros. */                                                                                                       \
    X(mt_tensor *, tensor_new, (mt_set *set, size_t rows, size_t cols), (set, rows, cols))                             \
    /* The same for many rows, whose memory is used as they are written; NULL without memory. */                       \
    X(mt_tensor *, tensor_reserve, (mt_set *set, size_t rows, size_t cols, mt_error *err), (set, rows, cols, err))     \
    /* Rows [row, row + rows) and columns [col, col + cols) of another: what is written to one is in both. */          \
    X(mt_tensor *, tensor_part,                                                                                        \
      (mt_set *set, mt_tensor *t, size_t row, size_t rows, size_t col, size_t cols),                                   \
      (set, t, row, rows, col, cols))                                                                                  \
    /* A tensor that is some rows of another: those it was last told to look at. */                                    \
    X(mt_tensor *, tensor_view, (mt_set *set), (set))                                                                  \
    X(mt_index *, index_new, (mt_set *set, size_t count), (set, count))                                                \
    /* Of so many patches, each 3 channels of `frames` frames of `area` pixels. */                                     \
    X(mt_patches *, patches_new, (mt_set *set, size_t rows, size_t frames, size_t area), (set, rows, frames, area))    \
    /* Borrows the matrix's memory and bias (n floats or NULL) for the life of the set. exact: fp32 arithmetic         \
       in every precision (routers). */                                                                                \
    X(mt_weight *, weight_new,                                                                                         \
      (mt_set *set, const mt_mat *mat, const float *bias, bool exact),                                                 \
      (set, mat, bias, exact))                                                                                         \
    /* Borrows memory as above; copies the arrays of matrices. */                                                      \
    X(mt_experts *, experts_new, (mt_set *set, const mt_experts_params *params), (set, params))                        \
    /* NULL with a sentence for a shape that the device has not. */                                                    \
    X(mt_kv *, kv_new, (mt_set *set, const mt_kv_shape *shape, mt_error *err), (set, shape, err))                      \
    /* Gives it pages, once, before the first step; all zeros. Memory is used as they are written. */                  \
    X(bool, kv_reserve, (mt_set *set, mt_kv *kv, size_t pages, mt_error *err), (set, kv, pages, err))                  \
    /* A slot is one block [layer][inputs of the convolution | head's matrices], all fp32. memos: spans of a           \
       step that may end with guesses. */                                                                              \
    X(mt_states *, state_new, (mt_set *set, const mt_state_shape *shape, size_t memos), (set, shape, memos))           \
    X(bool, state_reserve, (mt_set *set, mt_states *states, size_t slots, mt_error *err), (set, states, slots, err))   \
    X(mt_chooser *, chooser_new, (mt_set *set, size_t vocab), (set, vocab))                                            \
    /* Takes at most so many bytes at a time. */                                                                       \
    X(mt_reading *, reading_new, (mt_set *set, size_t bytes), (set, bytes))                                            \
    /* The same for what takes its time: what is enqueued later does not wait for it. */                               \
    X(mt_reading *, reading_aside, (mt_set *set, size_t bytes), (set, bytes))                                          \
    /* So many bytes of the host's memory, from which pages and slots are written; likewise. */                        \
    X(mt_sending *, sending_new, (mt_set *set, size_t bytes), (set, bytes))

/* What a device is asked and answers */
#define MT_DEVICE_ANSWERS(X)                                                                                           \
    /* Numerics version, R5 level, precision and the type of cached keys in one number (R12). */                       \
    X(uint32_t, device_fingerprint, (const mt_device *dev), (dev))                                                     \
    /* Whether all that was waited for went well; false with a sentence from the first fault on, when nothing that is  \
       read is true any more. */                                                                                       \
    X(bool, device_well, (const mt_device *dev, mt_error *err), (dev, err))                                            \
    /* Whether its memory is its own: weights are copied there, and nothing else of the host's counts. */              \
    X(bool, device_apart, (const mt_device *dev), (dev))                                                               \
    /* Memory the device holds besides mapped weights, and all that it could have. */                                  \
    X(uint64_t, device_bytes, (const mt_device *dev), (dev))                                                           \
    X(uint64_t, device_memory, (const mt_device *dev), (dev))                                                          \
    /* Reserves working memory for steps of at most `rows` rows of all that is in its sets now. Not during a           \
       step. */                                                                                                        \
    X(bool, device_plan, (mt_device *dev, size_t rows, mt_error *err), (dev, rows, err))                               \
    /* Bytes of a page and of a slot, as they are held and as they are read. */                                        \
    X(size_t, kv_page_bytes, (const mt_device *dev, const mt_kv_shape *shape), (dev, shape))                           \
    X(size_t, state_slot_bytes, (const mt_device *dev, const mt_state_shape *shape), (dev, shape))                     \
    /* Wait for what was begun. Valid until the reading is used again, or what was read is written. */                 \
    X(const float *, reading_row, (mt_device *dev, mt_reading *r, size_t row), (dev, r, row))                          \
    X(const void *, reading_data, (mt_device *dev, mt_reading *r), (dev, r))                                           \
    /* Whether it has come, so that nobody waits for it; of one that is read aside. */                                 \
    X(bool, reading_come, (mt_device *dev, mt_reading *r), (dev, r))                                                   \
    /* Its memory; and whether what was begun is done, so that both this and what was written may be used. */          \
    X(void *, sending_room, (mt_device *dev, mt_sending *s), (dev, s))                                                 \
    X(bool, sending_gone, (mt_device *dev, mt_sending *s), (dev, s))                                                   \
    /* What an object is, for those who count bytes and operations. */                                                 \
    X(size_t, tensor_cols, (const mt_device *dev, const mt_tensor *t), (dev, t))                                       \
    X(const mt_mat *, weight_mat, (const mt_device *dev, const mt_weight *w), (dev, w))                                \
    X(mt_arithmetic, weight_arithmetic, (const mt_device *dev, const mt_weight *w), (dev, w))                          \
    /* Expert `which` has the weights [gate, up, down]. */                                                             \
    X(size_t, experts_count, (const mt_device *dev, const mt_experts *e), (dev, e))                                    \
    X(size_t, experts_top_k, (const mt_device *dev, const mt_experts *e), (dev, e))                                    \
    X(const mt_weight *, experts_weight,                                                                               \
      (const mt_device *dev, const mt_experts *e, size_t which, size_t part),                                          \
      (dev, e, which, part))                                                                                           \
    X(const mt_kv_shape *, kv_shape_of, (const mt_device *dev, const mt_kv *kv), (dev, kv))                            \
    X(const mt_state_shape *, state_shape_of, (const mt_device *dev, const mt_states *states), (dev, states))          \
    /* Rows of a step where nobody says how many: enough to keep all of the device busy. */                            \
    X(size_t, device_rows, (const mt_device *dev), (dev))                                                              \
    /* Takes a quarter of a second or less. Not during a step. */                                                      \
    X(mt_peaks, device_peaks, (mt_device *dev), (dev))                                                                 \
    /* For debugging: whether a page, or a slot, is still NaN all over. */                                             \
    X(bool, kv_poisoned, (mt_device *dev, const mt_kv *kv, uint32_t page), (dev, kv, page))                            \
    X(bool, state_poisoned, (mt_device *dev, const mt_states *states, uint32_t slot), (dev, states, slot))

/* What a device is told */
#define MT_DEVICE_CALLS(X)                                                                                             \
    /* The calling thread is the one that owns the device from here on; who opened it was until now. A thread that     \
       has several enters the one that it is about to use. */                                                          \
    X(void, device_enter, (mt_device *dev), (dev))                                                                     \
    /* What the operations that follow are about. Borrows all of it until the next step begins. */                     \
    X(void, step_begin, (mt_device *dev, const mt_batch *batch), (dev, batch))                                         \
    /* Has tokens chosen for the rows of the logits that each chain names (sample/chain.h). What was chosen            \
       stands in the chains after mt_device_wait. A chain whose settings the device lacks is chosen by the host,       \
       with the same result. */                                                                                        \
    X(void, step_choose,                                                                                               \
      (mt_device *dev, mt_chooser *c, const mt_tensor *logits, mt_chain *const *chains, size_t count),                 \
      (dev, c, logits, chains, count))                                                                                 \
    /* Until all that was enqueued is done. */                                                                         \
    X(void, device_wait, (mt_device *dev), (dev))                                                                      \
    /* What the host knows: rows of `cols` floats; `count` numbers; the pixels of m patches, borrowed until they       \
       are written again. */                                                                                           \
    X(void, tensor_write,                                                                                              \
      (mt_device *dev, mt_tensor *t, size_t row, size_t rows, const float *data),                                      \
      (dev, t, row, rows, data))                                                                                       \
    X(void, index_write,                                                                                               \
      (mt_device *dev, mt_index *index, const uint32_t *data, size_t count),                                           \
      (dev, index, data, count))                                                                                       \
    X(void, patches_write, (mt_device *dev, mt_patches *p, const mt_pixels *pixels, size_t m), (dev, p, pixels, m))    \
    /* Begin to read some rows; the first numbers of a list; a page; a slot. Pages and slots can be written            \
       back, by this device or one of the same fingerprint. */                                                         \
    X(void, read_rows,                                                                                                 \
      (mt_device *dev, mt_reading *r, const mt_tensor *t, size_t row, size_t rows),                                    \
      (dev, r, t, row, rows))                                                                                          \
    X(void, read_index, (mt_device *dev, mt_reading *r, const mt_index *index, size_t count), (dev, r, index, count))  \
    X(void, read_page, (mt_device *dev, mt_reading *r, const mt_kv *kv, uint32_t page), (dev, r, kv, page))            \
    X(void, read_state,                                                                                                \
      (mt_device *dev, mt_reading *r, const mt_states *states, uint32_t slot),                                         \
      (dev, r, states, slot))                                                                                          \
    /* Begin to write one back, from byte `at` of a sending on: nobody may use it before that is gone. */              \
    X(void, kv_restore,                                                                                                \
      (mt_device *dev, mt_kv *kv, uint32_t page, mt_sending *s, size_t at),                                            \
      (dev, kv, page, s, at))                                                                                          \
    X(void, state_restore,                                                                                             \
      (mt_device *dev, mt_states *states, uint32_t slot, mt_sending *s, size_t at),                                    \
      (dev, states, slot, s, at))                                                                                      \
    /* Until all that it has begun is gone. */                                                                         \
    X(void, sending_wait, (mt_device *dev, mt_sending *s), (dev, s))                                                   \
    X(void, tensor_aim,                                                                                               \
      (mt_device *dev, mt_tensor *view, const mt_tensor *t, size_t row, size_t rows),                                  \
      (dev, view, t, row, rows))                                                                                       \
    /* For debugging: makes a page, or a slot, NaN all over. */                                                        \
    X(void, kv_poison, (mt_device *dev, mt_kv *kv, uint32_t page), (dev, kv, page))                                    \
    X(void, state_poison, (mt_device *dev, mt_states *states, uint32_t slot), (dev, states, slot))

/* Operations; m counts rows */
#define MT_DEVICE_OPERATIONS(X)                                                                                        \
    /* Rows as they are: y[to] = x[from]; y = 0; y[i] = x[index[i]]; y[to[i]][column ..] = x[i]; y[to[i]] +=           \
       x[i], i ascending. Of the last two, not where to[i] is MT_NO_PAGE. */                                           \
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
    /* x = scale * the row of w that is the token, of every row of the step */                                         \
    X(void, op_embed, (mt_device *dev, mt_tensor *x, const mt_weight *w, float scale), (dev, x, w, scale))             \
    /* The step's rows that have features: x = those from a column on, or x += them */                                 \
    X(void, op_features,                                                                                               \
      (mt_device *dev, mt_tensor *x, const mt_tensor *features, size_t column, bool add),                              \
      (dev, x, features, column, add))                                                                                 \
    /* y = x / rms(x) * (offset + w), w a tensor of one row */                                                         \
    X(void, op_norm,                                                                                                   \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps, float offset),       \
      (dev, y, x, m, w, eps, offset))                                                                                  \
    /* y += x */                                                                                                       \
    X(void, op_add, (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m), (dev, y, x, m))                      \
    /* y[j] = w[j] x + bias for `count` weights that share their input */                                              \
    X(void, op_matmul,                                                                                                 \
      (mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, const mt_tensor *x, size_t m),    \
      (dev, y, w, count, x, m))                                                                                        \
    /* table = cos and sin of the step's positions times inv_freq, times scale; twice as many columns. axis says       \
       which of a position's axes each frequency belongs to; NULL: all to the first. */                                \
    X(void, op_rope_table,                                                                                             \
      (mt_device *dev, mt_tensor *table, const mt_tensor *inv_freq, const mt_index *axis, float scale),                \
      (dev, table, inv_freq, axis, scale))                                                                             \
    /* y = each head of each row of x: norm (w may be NULL), then rotation by the table (NULL: none), of elements      \
       i and i + half, or of neighbours (pairs). y may be x. */                                                        \
    X(void, op_heads,                                                                                                  \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, size_t head_dim, const mt_tensor *w, float eps,     \
       float offset, const mt_tensor *table, bool pairs),                                                              \
      (dev, y, x, m, head_dim, w, eps, offset, table, pairs))                                                          \
    /* x = factor[position / every] * x of each of the step's rows, by the first axis of its position; the last of the \
       factors, which are a tensor of one row, for all that is beyond */                                               \
    X(void, op_stretch,                                                                                                \
      (mt_device *dev, mt_tensor *x, const mt_tensor *factor, size_t every),                                           \
      (dev, x, factor, every))                                                                                         \
    /* Page `to` becomes a copy of page `from`. */                                                                     \
    X(void, op_kv_copy, (mt_device *dev, mt_kv *kv, uint32_t to, uint32_t from), (dev, kv, to, from))                  \
    /* K and V of the step's rows into their sequences' pages, rounded once to the pages' type */                      \
    X(void, op_kv_write,                                                                                               \
      (mt_device *dev, mt_kv *kv, size_t layer, const mt_tensor *k, const mt_tensor *v),                               \
      (dev, kv, layer, k, v))                                                                                          \
    /* Attention of the step's rows over what they see of their sequences' pages. q and y have as many columns as      \
       the layer's query heads have elements: a multiple of the pages' heads, at most the shape's query_heads. */      \
    X(void, op_attention,                                                                                              \
      (mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer, mt_attention how),                   \
      (dev, y, q, kv, layer, how))                                                                                     \
    /* y = act(gate) * up, as glu says; y may be gate or up */                                                         \
    X(void, op_glu,                                                                                                    \
      (mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m, mt_glu glu),                \
      (dev, y, gate, up, m, glu))                                                                                      \
    /* y = sum over a row's experts, by rank, of what each counts times expert(x). The router's numbers are lost. */   \
    X(void, op_moe,                                                                                                    \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, mt_tensor *router, size_t m, const mt_experts *experts),      \
      (dev, y, x, router, m, experts))                                                                                 \
    /* The columns of x are cut into so many slices, of which each rank of the device has computed its own             \
       (mt_ranks_first). From here on every rank has all of them, or rank 0 alone where `all` is not set. */           \
    X(void, op_share,                                                                                                  \
      (mt_device *dev, mt_tensor *x, size_t slices, size_t m, bool all),                                               \
      (dev, x, slices, m, all))                                                                                        \
    /* x = factor * x */                                                                                               \
    X(void, op_scale, (mt_device *dev, mt_tensor *x, size_t m, float factor), (dev, x, m, factor))                     \
    /* y = silu of a causal convolution over time, then q and k of each head divided by their length and q by          \
       sqrt(key_dim): y is [q of all heads | k | v]. in: q, k and v. w: [taps][columns of y], the last tap for         \
       the row itself. What came before a span is in its state, and moves on there. Where key_dim is 0, y is the       \
       convolution of v as it is. */                                                                                   \
    X(void, op_conv,                                                                                                   \
      (mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_columns in[3], const mt_tensor *w),     \
      (dev, y, states, layer, in, w))                                                                                  \
    /* gates[i] = [exp(-rate * softplus(a + bias)) | sigmoid(b) | room] of each value head; three times as many        \
       columns */                                                                                                      \
    X(void, op_gates,                                                                                                  \
      (mt_device *dev, mt_tensor *gates, mt_columns a, mt_columns b, size_t key_heads, const mt_tensor *rate,          \
       const mt_tensor *bias, size_t m),                                                                               \
      (dev, gates, a, b, key_heads, rate, bias, m))                                                                    \
    /* The gated delta rule (R9), token by token, from each span's state through its pieces. x and gates as            \
       above; y has value_heads * value_dim columns. */                                                                \
    X(void, op_delta,                                                                                                  \
      (mt_device *dev, mt_tensor *y, mt_states *states, size_t layer, const mt_tensor *x, const mt_tensor *gates),     \
      (dev, y, states, layer, x, gates))                                                                               \
    /* Puts what the guesses of all spans did to the layer into their memos. in: as mt_op_conv had it. After           \
       both. */                                                                                                        \
    X(void, op_remember,                                                                                               \
      (mt_device *dev, mt_states *states, size_t layer, const mt_columns in[3], const mt_tensor *x,                    \
       const mt_tensor *gates),                                                                                        \
      (dev, states, layer, in, x, gates))                                                                              \
    /* Each head of x, in place: x / rms(x) * w, then times silu(z). */                                                \
    X(void, op_gated_norm,                                                                                             \
      (mt_device *dev, mt_tensor *x, mt_columns z, size_t key_heads, const mt_tensor *w, float eps, size_t m),         \
      (dev, x, z, key_heads, w, eps, m))                                                                               \
    /* x holds a head of q and its gate by turns */                                                                    \
    X(void, op_split_heads,                                                                                            \
      (mt_device *dev, mt_tensor *q, mt_tensor *gate, const mt_tensor *x, size_t head_dim, size_t m),                  \
      (dev, q, gate, x, head_dim, m))                                                                                  \
    /* y = sigmoid(gate) * y */                                                                                        \
    X(void, op_gate, (mt_device *dev, mt_tensor *y, const mt_tensor *gate, size_t m), (dev, y, gate, m))               \
    /* y += sigmoid(gate) * x, gate of one column */                                                                   \
    X(void, op_add_gated,                                                                                              \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *gate, size_t m),                             \
      (dev, y, x, gate, m))                                                                                            \
    /* x = (x - bias) * w by column, each a tensor of one row or NULL for nothing, cut off at low and high */          \
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
    /* Operations of towers. x = the values of m patches */                                                            \
    X(void, op_pixels, (mt_device *dev, mt_tensor *x, const mt_patches *patches, size_t m), (dev, x, patches, m))      \
    /* y = (x - mean) / sqrt(variance + eps) * w + bias */                                                             \
    X(void, op_layer_norm,                                                                                             \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, const mt_tensor *bias,          \
       float eps),                                                                                                     \
      (dev, y, x, m, w, bias, eps))                                                                                    \
    /* x = act(x) */                                                                                                   \
    X(void, op_act, (mt_device *dev, mt_tensor *x, size_t m, mt_activation act), (dev, x, m, act))                     \
    /* x[i] += the sum over j < count of factor[i][j] * row index[i * count + j] of w; factors are 1 where NULL */     \
    X(void, op_add_rows,                                                                                               \
      (mt_device *dev, mt_tensor *x, const mt_weight *w, const mt_index *index, const mt_tensor *factor,               \
       size_t count, size_t m),                                                                                        \
      (dev, x, w, index, factor, count, m))                                                                            \
    /* y[i] = rows count * i .. of x, `count` of them: side by side, or woven, all their first elements before their   \
       second ones; their mean */                                                                                      \
    X(void, op_join,                                                                                                   \
      (mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m, bool woven),                          \
      (dev, y, x, count, m, woven))                                                                                    \
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

/* A tensor that begins as a copy of these floats; NULL for none. */
mt_tensor *mt_tensor_of(mt_set *set, const float *data, size_t rows, size_t cols);

/* The same of a list. */
mt_index *mt_index_of(mt_set *set, const uint32_t *data, size_t count);

#endif
