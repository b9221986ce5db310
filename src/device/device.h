/* What a model computes with: tensors, weights, key/value pages and some thirty operations on them. One thread owns a
   device and everything made from it. Operations enqueue in order; mt_tensor_read waits for what it needs. The CPU
   device runs each operation at once, on its pool; a GPU would put it on a stream.

   All operations obey docs/numerics.md: a row of an output depends on that row of the input alone (R1), never on
   how many rows there are, how many threads run, or where a tile ends. None of them allocates: mt_device_plan has
   reserved the worst case. */
#ifndef MT_DEVICE_DEVICE_H
#define MT_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernels/matrix.h"

typedef struct mt_device mt_device;
typedef struct mt_tensor mt_tensor;   /* f32 [rows, cols] */
typedef struct mt_weight mt_weight;   /* a matrix and perhaps a bias */
typedef struct mt_experts mt_experts; /* gate, up and down of each expert of a layer */
typedef struct mt_kv mt_kv;           /* a pool of key/value pages */
typedef struct mt_states mt_states;   /* a pool of recurrent states */

typedef enum mt_precision {
    MT_PRECISION_FAST,     /* int8 against quantised weights, bf16 against bf16; fp32 elsewhere */
    MT_PRECISION_REFERENCE /* fp32 against exactly dequantised weights */
} mt_precision;

typedef enum mt_activation {
    MT_ACT_SILU,
    MT_ACT_GELU_TANH,
    MT_ACT_QUICK_GELU, /* x sigmoid(1.702 x) */
    MT_ACT_GELU
} mt_activation;

typedef struct mt_device_params {
    size_t threads;    /* 0: the machine's performance cores */
    unsigned cpu_mask; /* features that may be used; ~0u for all */
    mt_precision precision;
} mt_device_params;

/* NULL on failure. Free with mt_device_close, after everything made from it. */
mt_device *mt_device_open(const mt_device_params *params, mt_error *err) MT_NODISCARD;
void mt_device_close(mt_device *dev);
mt_precision mt_device_precision(const mt_device *dev);
size_t mt_device_threads(const mt_device *dev);

/* "cpu (neon dotprod i8mm bf16), 2 threads" */
const char *mt_device_name(const mt_device *dev);

/* Numerics version, R5 level, precision and KV type in one number (R12). */
uint32_t mt_device_fingerprint(const mt_device *dev);

/* Memory the device holds besides mapped weights. */
uint64_t mt_device_bytes(const mt_device *dev);

/* Runs fn for items [0, items) on the device's threads; worker is below mt_device_threads. */
void mt_device_run(mt_device *dev, void (*fn)(void *ctx, size_t item, size_t worker), void *ctx, size_t items);

/* The kernels of the host, for work that is not the device's own. */
const struct mt_kernels *mt_device_kernels(const mt_device *dev);

/* ---- objects; each lives until the device is closed ---- */

mt_tensor *mt_tensor_new(mt_device *dev, size_t rows, size_t cols);

/* Rows [row, row + rows) and columns [col, col + cols) of another: what is written to one is in both. */
mt_tensor *mt_tensor_part(mt_device *dev, mt_tensor *t, size_t row, size_t rows, size_t col, size_t cols);

/* Copies `cols` floats into a row. */
void mt_tensor_write(mt_device *dev, mt_tensor *t, size_t row, const float *data);

/* A tensor that begins as a copy of these floats; NULL for none. */
static inline mt_tensor *mt_tensor_of(mt_device *dev, const float *data, size_t rows, size_t cols)
{
    mt_tensor *t = data ? mt_tensor_new(dev, rows, cols) : NULL;
    for (size_t i = 0; t && i < rows; i++)
        mt_tensor_write(dev, t, i, data + i * cols);
    return t;
}

/* Waits; the row stays valid until the next operation that writes the tensor. */
const float *mt_tensor_read(mt_device *dev, const mt_tensor *t, size_t row);

/* A tensor that is some rows of another: those it was last told to look at. */
mt_tensor *mt_tensor_view(mt_device *dev);
void mt_tensor_look(mt_device *dev, mt_tensor *view, const mt_tensor *t, size_t row, size_t rows);

/* Borrows the matrix's memory and bias (n floats or NULL) for the life of the device. exact: fp32 arithmetic in
   every precision (routers). */
mt_weight *mt_weight_new(mt_device *dev, const mt_mat *mat, const float *bias, bool exact);

/* count experts, top_k of them a row, with matrices [inner, hidden], [inner, hidden], [hidden, inner]. Borrows
   memory as above; copies the arrays. */
mt_experts *mt_experts_new(mt_device *dev, size_t count, size_t top_k, const mt_mat *gate, const mt_mat *up,
                           const mt_mat *down);

#define MT_KV_GROUPS 4 /* pools of pages of a model: layers whose keys and values are kept alike share one */
#define MT_NO_PAGE UINT32_MAX
#define MT_PAGE_TOKENS 32 /* positions of a page */
#define MT_KV_SEGMENT 256 /* attention reads keys in whole segments of this many positions (R8) */

/* A page is one block [layer][k|v][head][position][head_dim]. */
typedef struct mt_kv_shape {
    size_t group; /* which of a span's page tables */
    size_t layers;
    size_t heads, query_heads; /* query_heads / heads of them share a head */
    size_t head_dim;
    size_t page_tokens; /* positions of a page; divides 256 */
} mt_kv_shape;

mt_kv *mt_kv_new(mt_device *dev, const mt_kv_shape *shape, mt_error *err) MT_NODISCARD;
size_t mt_kv_page_bytes(const mt_device *dev, const mt_kv_shape *shape);

/* Gives it pages, once, before the first step; all zeros. Memory is used as they are written. */
bool mt_kv_reserve(mt_device *dev, mt_kv *kv, size_t pages, mt_error *err) MT_NODISCARD;

/* Page `to` becomes a copy of page `from`. */
void mt_op_kv_copy(mt_device *dev, mt_kv *kv, uint32_t to, uint32_t from);

/* For debugging: makes a page NaN all over, and says whether it still is. */
void mt_kv_poison(mt_device *dev, mt_kv *kv, uint32_t page);
bool mt_kv_poisoned(mt_device *dev, const mt_kv *kv, uint32_t page);

/* The recurrent layers of a model. value_heads / key_heads of them share a key head. */
typedef struct mt_state_shape {
    size_t layers; /* 0: the model has none */
    size_t key_heads, value_heads, key_dim, value_dim;
    size_t taps; /* of the convolution, whose last taps - 1 inputs are part of the state */
} mt_state_shape;

/* A slot is one block [layer][inputs of the convolution | head's matrices], all fp32. memos: spans of a step that may
   end with guesses. */
mt_states *mt_state_new(mt_device *dev, const mt_state_shape *shape, size_t memos);
size_t mt_state_slot_bytes(const mt_state_shape *shape);
bool mt_state_reserve(mt_device *dev, mt_states *state, size_t slots, mt_error *err) MT_NODISCARD;
void mt_state_poison(mt_device *dev, mt_states *state, uint32_t slot);
bool mt_state_poisoned(mt_device *dev, const mt_states *state, uint32_t slot);

/* Reserves working memory for steps of at most `rows` rows. After the last mt_*_new. */
bool mt_device_plan(mt_device *dev, size_t rows, mt_error *err) MT_NODISCARD;

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
    const float *const *features;     /* [rows]: what stands for the embedding of a row's token; NULL for its own */
    const uint32_t *seen_from, *seen; /* [rows]: the positions of its sequence that a row sees, [seen_from, seen); where
                                         NULL, from the first, and up to the row's own */
} mt_batch;

/* ---- operations; m counts rows ---- */

/* x[i] = scale * row tokens[i] of w */
void mt_op_embed(mt_device *dev, mt_tensor *x, const mt_weight *w, const uint32_t *tokens, size_t m, float scale);

/* y = x / rms(x) * (offset + w), w a tensor of one row */
void mt_op_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps,
                float offset);

/* y += x */
void mt_op_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m);

/* y[j] = w[j] x + bias for `count` weights that share their input */
void mt_op_matmul(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, const mt_tensor *x,
                  size_t m);

/* table[i] = cos and sin of positions[i] * inv_freq, times scale; table has 2 * half columns. axis[f] says which of a
   position's axes frequency f belongs to; NULL: all to the first. */
void mt_op_rope_table(mt_device *dev, mt_tensor *table, const mt_position *positions, size_t m, const float *inv_freq,
                      const uint8_t *axis, size_t half, float scale);

/* x[i] = features[i][offset ..], or x[i] += it, where features[i] is not NULL */
void mt_op_features(mt_device *dev, mt_tensor *x, const float *const *features, size_t m, size_t offset, bool add);

/* Each head of each row: norm (w may be NULL), then rotation by the table (NULL: none). In place. */
void mt_op_heads(mt_device *dev, mt_tensor *x, size_t m, size_t heads, size_t head_dim, const mt_tensor *w, float eps,
                 float offset, const mt_tensor *table);

/* K and V of every row into its sequence's pages, rounded once to the pages' type */
void mt_op_kv_write(mt_device *dev, mt_kv *kv, size_t layer, const mt_tensor *k, const mt_tensor *v,
                    const mt_batch *batch);

/* Attention of every row over what it sees of its sequence's pages; window 0 is all of it, else what is not further
   back than the last `window` keys up to the row's own. y has heads * head_dim columns. */
void mt_op_attention(mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer, const mt_batch *batch,
                     uint32_t window, float scale, float softcap);

/* y = act(gate) * up */
void mt_op_silu_mul(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m);
void mt_op_gelu_mul(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m);

/* y = sum over the top_k experts of softmax(router), by rank, of probability times expert(x); renormalise divides the
   probabilities by their sum. `gelu` picks the experts' activation. */
void mt_op_moe(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *router, size_t m,
               const mt_experts *experts, bool renormalise, bool gelu);

/* Columns of a matmul's result by key head: those of head g begin at base + g * step. */
typedef struct mt_columns {
    const mt_tensor *x;
    size_t base, step;
} mt_columns;

/* y = silu of a causal convolution over time, then q and k of each head divided by their length and q by sqrt(key_dim):
   y is [q of all heads | k | v]. in: q, k and v. w: [taps][columns of y], the last tap for the row itself. What came
   before a span is in its state, and moves on there. */
void mt_op_conv(mt_device *dev, mt_tensor *y, mt_states *state, size_t layer, const mt_columns in[3],
                const mt_tensor *w, const mt_batch *batch);

/* gates[i] = [exp(-rate * softplus(a + bias)) | sigmoid(b) | room] of each value head; three times as many columns */
void mt_op_gates(mt_device *dev, mt_tensor *gates, mt_columns a, mt_columns b, size_t key_heads, const mt_tensor *rate,
                 const mt_tensor *bias, size_t m);

/* The gated delta rule (R9), token by token, from each span's state through its pieces. x and gates as above; y has
   value_heads * value_dim columns. */
void mt_op_delta(mt_device *dev, mt_tensor *y, mt_states *state, size_t layer, const mt_tensor *x,
                 const mt_tensor *gates, const mt_batch *batch);

/* Puts what the guesses of all spans did to the layer into their memos. in: as mt_op_conv had it. After both. */
void mt_op_remember(mt_device *dev, mt_states *state, size_t layer, const mt_columns in[3], const mt_tensor *x,
                    const mt_tensor *gates, const mt_batch *batch);

/* Each head of x, in place: x / rms(x) * w, then times silu(z). */
void mt_op_gated_norm(mt_device *dev, mt_tensor *x, mt_columns z, size_t key_heads, const mt_tensor *w, float eps,
                      size_t m);

/* x holds a head of q and its gate by turns */
void mt_op_split_heads(mt_device *dev, mt_tensor *q, mt_tensor *gate, const mt_tensor *x, size_t head_dim, size_t m);

/* y = sigmoid(gate) * y */
void mt_op_gate(mt_device *dev, mt_tensor *y, const mt_tensor *gate, size_t m);

/* y += sigmoid(gate) * x, gate of one column */
void mt_op_add_gated(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *gate, size_t m);

/* y[i] = x[index[i]] */
void mt_op_gather(mt_device *dev, mt_tensor *y, const mt_tensor *x, const uint32_t *index, size_t m);

/* x = cap * tanh(x / cap) */
void mt_op_softcap(mt_device *dev, mt_tensor *x, size_t m, float cap);

/* ---- operations of towers ---- */

/* A patch of a picture: 3 channels of some frames of some pixels, each a byte that its channel's levels give a value.
   A still one holds one frame, which stands for all. */
typedef struct mt_pixels {
    const uint8_t *bytes;
    const float (*levels)[256];
    bool still;
} mt_pixels;

/* x[i] = the values of patch i, of `frames` frames of `area` pixels */
void mt_op_pixels(mt_device *dev, mt_tensor *x, const mt_pixels *pixels, size_t m, size_t frames, size_t area);

/* y = (x - mean) / sqrt(variance + eps) * w + bias */
void mt_op_layer_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w,
                      const mt_tensor *bias, float eps);

/* x = act(x) */
void mt_op_act(mt_device *dev, mt_tensor *x, size_t m, mt_activation act);

/* x[i] += the sum over j < count of factor[i][j] * row index[i][j] of w */
void mt_op_add_rows(mt_device *dev, mt_tensor *x, const mt_weight *w, const uint32_t *index, const float *factor,
                    size_t count, size_t m);

/* y[i] = rows count * i .. of x, `count` of them: side by side; their mean */
void mt_op_join(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m);
void mt_op_mean(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m);

/* ---- faults ---- */

/* ok[i]: whether every number of row i is finite. */
void mt_op_finite(mt_device *dev, const mt_tensor *x, size_t m, bool *ok);

#endif
