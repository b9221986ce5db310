/* The CPU device's data structures and functions, shared by the files of this folder. */
#ifndef MT_DEVICE_CPU_CPU_H
#define MT_DEVICE_CPU_CPU_H

#include "base/arena.h"
#include "base/pool.h"
#include "device/backend.h"
#include "device/limits.h"
#include "device/rules.h"
#include "kernels/kernels.h"

#define MT_CPU_ROW_BLOCK 128 /* rows that are packed together, so few that they stay in the second-level cache */
#define MT_CPU_ATTN_ROWS 64  /* most query rows (tokens x heads of a group) of an attention tile */
/* FULL: as many as kernels process at once, for groups of at most SOME heads; larger groups have tiles of up to ROWS */
#if defined(__x86_64__)
#define MT_CPU_ATTN_FULL 48
#define MT_CPU_ATTN_SOME 24
#else
#define MT_CPU_ATTN_FULL 60 /* a multiple of twelve */
#define MT_CPU_ATTN_SOME 7
#endif
#define MT_CPU_INLINE 16384 /* work on fewer elements is not worth waking the pool's threads */

struct mt_tensor {
    size_t rows, cols, stride; /* stride: cols rounded up to MT_ROW_PAD; the padding stays zero */
    float *data;
};

struct mt_index {
    size_t count;
    uint32_t *data;
};

struct mt_patches {
    size_t rows, frames, area; /* most patches; frames and pixels of each */
    const mt_pixels *pixels;   /* as written last; borrowed */
};

struct mt_reading {
    const uint8_t *data; /* the source itself: the device's memory is the host's */
    size_t stride;       /* bytes of a row */
};

struct mt_sending {
    uint8_t *data;
};

struct mt_chooser {
    size_t vocab, scratch_bytes;
    uint8_t *scratch; /* [threads][scratch_bytes] */
    uint32_t *token;  /* [MT_LIMIT_BATCH_ROWS]: the first that was chosen last from each row of logits */
};

struct mt_weight {
    mt_mat mat;
    const float *bias;
    mt_class class; /* how it is multiplied (device/rules.h) */
    int power;      /* of MT_CLASS_N: see native.h */
};

struct mt_experts {
    size_t count, top_k, hidden, inner;
    size_t slices;               /* with ranks: slices of inner; 0: all columns are here */
    mt_weight *gate, *up, *down; /* [count] */
    const float *correction, *scale;
    mt_routing routing;
    mt_glu glu;
};

struct mt_kv {
    mt_kv_shape shape;
    size_t head_stride, pages; /* elements from one vector to the next; number of pages */
    unsigned bits;             /* 8 or 4 where elements are integers with scales (kernels/kvq.h); else 0 */
    bool widened;              /* such elements are converted to fp32 before use */
    size_t query;              /* bytes of a query vector */
    size_t block;              /* bytes of a head's keys in a page, [page_tokens][head_stride] */
    mt_kv_parts parts;         /* of a block of integers with latents */
    size_t page_bytes;         /* layers * blocks * block, plus padding */
    uint8_t *data;
};

struct mt_states {
    mt_state_shape shape;
    size_t columns;     /* columns of the convolution: q, k and v of all heads */
    size_t blocks;      /* blocks of MT_DELTA_COLUMNS columns of a head's matrix */
    size_t conv, layer; /* floats of the convolution's inputs, padded; floats of a layer */
    size_t slots;
    float *data, *zeros, *ones; /* zeros, ones: [columns]; ones only where states are plain */
    size_t memo_row; /* floats of [inputs of the convolution | its results | decay and beta of each value head] */
    float *memo;     /* [memo][layer][row] */
    float *room; /* [threads][room_each]: a block of a state and its output, for guesses, whose states are dropped */
    size_t room_each;
};

/* Working memory of mt_op_moe. A slot is a (row, expert) pair; slots are ordered by expert. */
typedef struct mt_moe_plan {
    uint32_t *expert; /* [rows][top_k]: best first */
    float *weight;    /* [rows][top_k] */
    uint32_t *slot;   /* [rows][top_k]: the slot of each pair */
    uint32_t *row;    /* [slots]: the row of each slot */
    float *factor;    /* [slots]: of what the slot's expert reads, where weights are on inputs */
    uint32_t *first;  /* [experts + 1]: first slot of each expert */
    uint32_t *active; /* [experts]: experts that have rows */
    uint8_t *packed;  /* packed rows of all experts, first for gate and up, then for down */
    size_t packed_bytes;
    float *gate, *up; /* [slots][inner, padded] */
    float *down;      /* [slots][hidden, padded] */
} mt_moe_plan;

/* The working memory that the objects of a set need. */
typedef struct mt_cpu_needs {
    size_t k;             /* widest matmul input */
    size_t head_stride;   /* largest padded head size */
    size_t query;         /* most query heads times padded head size */
    bool widened;         /* some pages are converted to fp32, or keys of a row are gathered */
    size_t top, compared; /* most positions chosen, and query heads that choose; 0: none are chosen */
    size_t experts, top_k, hidden, inner;
} mt_cpu_needs;

struct mt_set {
    mt_set_head head;
    mt_set *next, **link; /* list of the device's sets */
    mt_arena *arena;      /* frees the set's memory */
    uint64_t bytes;       /* of tensors, pages and scratch memory */
    mt_cpu_needs needs;
};

struct mt_device {
    mt_device_head head;
    mt_kernels k;
    bool sm90; /* adds as tensor cores of sm_90 do where R5 leaves that open */
    char name[160];
    mt_set *sets;     /* all sets, the plan's included */
    uint64_t bytes;   /* of all sets */
    mt_batch batch;   /* of the present step */
    uint32_t *tokens; /* [rows]: tokens of the present step, where some come from a chooser */

    /* working memory, in a set of its own */
    mt_set *plan;
    mt_cpu_needs needs;
    size_t rows;         /* most rows of a step */
    uint8_t *packed;     /* packed rows of mt_op_matmul, one region for each row block */
    size_t packed_block; /* bytes of a region */
    uint8_t *scratch;    /* [threads][scratch_bytes] */
    size_t scratch_bytes;
    uint8_t *queries;        /* queries in the type that kernels read */
    uint8_t *parts;          /* partial results of attention that is split by segments */
    uint64_t *choices;       /* [2 * threads][mt_cpu_choice_room]: positions that parts of a sequence would choose */
    uint32_t *choice_counts; /* [2 * threads] */
    mt_moe_plan moe;
};

/* Every function of the backend. */
#define MT_CPU_DECLARE(result, name, parameters, arguments) result mt_cpu_##name parameters;
MT_DEVICE_OBJECTS(MT_CPU_DECLARE)
MT_DEVICE_ANSWERS(MT_CPU_DECLARE)
MT_DEVICE_CALLS(MT_CPU_DECLARE)
MT_DEVICE_OPERATIONS(MT_CPU_DECLARE)
#undef MT_CPU_DECLARE

mt_set *mt_cpu_set_new(mt_device *dev);
void mt_cpu_set_free(mt_set *set);

/* Zeroed memory, 64-byte aligned, counted, freed with the set. */
void *mt_cpu_alloc(mt_set *set, size_t bytes);

/* Zeroed memory that is used only as it is written, on large pages where the system has them. NULL where there is
   none. */
void *mt_cpu_map(mt_set *set, size_t count, size_t bytes_each);

/* Set every byte to 0xff, which is NaN in each type of pages and states; tell whether every byte still is. */
void mt_cpu_poison(void *data, size_t bytes);
bool mt_cpu_poisoned(const void *data, size_t bytes);

static inline float *mt_cpu_row(const mt_tensor *t, size_t i)
{
    return t->data + i * t->stride;
}

static inline size_t mt_cpu_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Rounds up to a multiple of a power of two. */
static inline size_t mt_cpu_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) & ~(multiple - 1);
}

/* Calls fn for items [0, items), on this thread where the work is small. elements: a measure of the work. */
void mt_cpu_run(mt_device *dev, mt_pool_fn *fn, void *ctx, size_t items, size_t elements);

/* Scratch memory of a thread. */
uint8_t *mt_cpu_scratch(mt_device *dev, size_t worker);

/* Bytes of m packed rows of width k for a weight of this class and group. */
size_t mt_cpu_rows_bytes(const mt_device *dev, mt_class class, size_t m, size_t k, size_t group);

/* Whether two weights of the same width can multiply the same packed rows. */
bool mt_cpu_same_rows(const mt_weight *a, const mt_weight *b);

/* Packs rows [i0, i1) as the weight needs them; does nothing for MT_CLASS_F. */
void mt_cpu_pack(const mt_device *dev, const mt_weight *w, mt_rows *rows, const float *x, size_t ldx,
                 const uint32_t *index, size_t i0, size_t i1);

/* y[i][n0..n1) = products of all rows with the weight, plus bias. rows: packed for w; x, ldx and index are used for
   MT_CLASS_F. */
void mt_cpu_matmul(const mt_device *dev, const mt_weight *w, float *y, size_t ldy, size_t n0, size_t n1,
                   const mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, uint8_t *scratch);

/* x = act(x); y = act(gate) * up, of n elements. y may be gate or up. */
void mt_cpu_activate(const mt_kernels *k, mt_activation act, float *x, size_t n);
void mt_cpu_glu(const mt_kernels *k, const mt_glu *glu, float *y, const float *gate, const float *up, size_t n);

/* How many columns one work item has when m rows are multiplied with this weight. */
size_t mt_cpu_columns(const mt_device *dev, const mt_weight *w, size_t m);

#define MT_CPU_SM90_STRIDE 576 /* largest padded head that its kernels for tensor cores take */

/* Tensor cores of sm_90: products (sm90_products.c), in whose working memory a row of the weight's width is packed, and
   kernels of bf16 that are replaced by them; attention over pages in bf16 (sm90_attention.c), where the GPU has kernels
   for tensor cores: MT_CPU_SM90_NONE where it computes by R6. */
typedef enum mt_cpu_sm90_form {
    MT_CPU_SM90_NONE,
    MT_CPU_SM90_TILES,  /* heads of 64, 128 and 256, capped scores, too */
    MT_CPU_SM90_HEADS,  /* heads that are padded to 64, 80, 96 or 128 */
    MT_CPU_SM90_WIDE,   /* to 256 */
    MT_CPU_SM90_LATENTS /* latents of 512 or 256, which keys have 64 elements behind */
} mt_cpu_sm90_form;
size_t mt_cpu_sm90_row_bytes(size_t k);
size_t mt_cpu_sm90_scratch(size_t k);
void mt_cpu_sm90_overlay(mt_kernels *k);
void mt_cpu_native_pack(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1);
void mt_cpu_native_matmul(float *y, size_t ldy, const mt_weight *w, size_t n0, size_t n1, const mt_rows *rows,
                          uint8_t *scratch);
mt_cpu_sm90_form mt_cpu_sm90_form_of(const mt_kv *kv, size_t group, const mt_attention *how);
size_t mt_cpu_sm90_attend_scratch(size_t head_stride);
void mt_cpu_sm90_attend(mt_cpu_sm90_form form, float *o, mt_attn_part *part, const mt_attn *a, size_t seg,
                        uint8_t *scratch);

/* Parts of mt_device_plan. matmul: scratch memory of a product. */
size_t mt_cpu_heads_scratch(const mt_device *dev, size_t matmul);
size_t mt_cpu_attention_scratch(const mt_device *dev);
void mt_cpu_plan_attention(mt_device *dev);
size_t mt_cpu_choice_scratch(const mt_device *dev);
void mt_cpu_plan_choice(mt_device *dev);
void mt_cpu_plan_moe(mt_device *dev);

#endif
