/* Random checkpoints of real shapes, for benches and for tests that need size: models.c knows the shapes, config.c
   writes config.json, plan.c lists the tensors, fill.c makes their numbers, write.c puts them into files, memory.c into
   none. */
#ifndef MT_SYNTH_H
#define MT_SYNTH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

typedef enum mt_synth_family {
    MT_SYNTH_LLAMA,
    MT_SYNTH_QWEN3,
    MT_SYNTH_QWEN3_MOE,
    MT_SYNTH_QWEN3_VL,
    MT_SYNTH_QWEN3_5,
    MT_SYNTH_GEMMA3,
    MT_SYNTH_GPT_OSS,
    MT_SYNTH_MINISTRAL3,
    MT_SYNTH_GLM,
    MT_SYNTH_GLM_MOE,
    MT_SYNTH_GLM_OCR,
    MT_SYNTH_GEMMA4,
    MT_SYNTH_MISTRAL,
    MT_SYNTH_PADDLEOCR,
    MT_SYNTH_LFM2,
    MT_SYNTH_LFM2_MOE
} mt_synth_family;

typedef struct mt_synth_vision {
    size_t depth, hidden, inter, heads;
    size_t deepstack[3]; /* blocks that feed the text layers; all 0: none */
} mt_synth_vision;

typedef struct mt_synth_model {
    const char *name, *about;
    mt_synth_family family;
    size_t hidden, inter, layers, heads, kv_heads, head_dim, vocab, context;
    bool tied;
    double theta;
    size_t experts, experts_per_token, moe_inter; /* qwen3_moe, gpt_oss, glm_moe, gemma4 and lfm2_moe */
    size_t window, period;                        /* gemma4: the last of each period sees everything */
    size_t wide_dim, wide_kv_heads;               /* gemma4: there; with kv heads of their own values are keys */
    size_t aside;                                 /* gemma4: of the embedding that each layer has besides */
    size_t shared_in_14;                          /* gemma4: of 14 layers so many, the last ones, read earlier keys */
    bool wide_mlp;                                /* gemma4: twice as wide in these */
    uint32_t attend;        /* lfm2: a bit for each layer with attention; the others have a convolution */
    size_t value_heads;     /* qwen3_5's recurrent layers; 0: as many as for keys */
    mt_synth_vision vision; /* qwen3_vl, qwen3_5 and ministral3; depth 0: none */
    bool echo; /* blocks add nothing, and every token is followed by itself, also in the opinion of the draft head */
} mt_synth_model;

/* Qwen3.5's recurrent layers, LFM2's convolutions and dense layers, and the towers: the same in every size this
   program knows. */
enum {
    MT_SYNTH_LINEAR_HEADS = 16,
    MT_SYNTH_LINEAR_DIM = 128,
    MT_SYNTH_LINEAR_CONV = 4,
    MT_SYNTH_FULL_EVERY = 4,
    MT_SYNTH_SHORT_TAPS = 3,
    MT_SYNTH_SHORT_DENSE = 2,
    MT_SYNTH_PATCH = 16,
    MT_SYNTH_PIXTRAL_PATCH = 14,
    MT_SYNTH_PIXTRAL_SIDE = 1540,
    MT_SYNTH_POSITIONS = 2304
};

/* How the numbers are stored. */
typedef struct mt_synth_layout {
    unsigned bits; /* 4 or 8: MLX names and affine quantisation; 0: Hugging Face names, all bf16. gpt-oss's experts are
                      MXFP4 in both */
    size_t group;
} mt_synth_layout;

enum { MT_SYNTH_ROUTER_BITS = 8 }; /* MLX conversions keep the router finer than the rest */

/* The models by index, NULL beyond the last; by name, NULL when there is none. */
const mt_synth_model *mt_synth_model_at(size_t index);
const mt_synth_model *mt_synth_model_named(const char *name);
size_t mt_synth_value_heads(const mt_synth_model *model);
bool mt_synth_is_recurrent(const mt_synth_model *model, size_t layer);
bool mt_synth_is_sparse(const mt_synth_model *model, size_t layer); /* has experts */
bool mt_synth_is_full(const mt_synth_model *model, size_t layer);   /* of gemma4: sees everything */
bool mt_synth_is_short(const mt_synth_model *model, size_t layer);  /* of lfm2: a convolution */
bool mt_synth_is_lfm2(const mt_synth_model *model);                 /* with experts or without */
size_t mt_synth_shared(const mt_synth_model *model);                /* of gemma4: last layers that read earlier keys */
bool mt_synth_has_head_norms(const mt_synth_model *model);          /* of queries and keys */

/* Appends config.json, complete enough for transformers. */
void mt_synth_config(mt_buf *out, const mt_synth_model *model, const mt_synth_layout *layout);

typedef enum mt_synth_kind {
    MT_SYNTH_NORMAL,    /* mean and spread; bf16 or f32 */
    MT_SYNTH_ONES,      /* on the diagonal, zeros elsewhere; bf16 */
    MT_SYNTH_CODES,     /* random bits */
    MT_SYNTH_EXPONENTS, /* bytes: the power of two, above 127, that gives E2M1 codes about the spread */
    MT_SYNTH_SCALES,    /* around spread */
    MT_SYNTH_BIASES     /* minus mean times the scale at the same place, so that codes spread around 0 */
} mt_synth_kind;

typedef struct mt_synth_tensor {
    char name[144];
    const char *dtype;   /* as safetensors names it */
    size_t element_size; /* bytes */
    size_t dims[5], ndim;
    mt_synth_kind kind;
    float mean, spread;
    uint64_t stream; /* which random numbers; scales and biases of one matrix share theirs */
} mt_synth_tensor;

typedef struct mt_synth_plan {
    mt_synth_tensor *tensors;
    size_t count, capacity;
} mt_synth_plan;

/* Lists the tensors of a model. Free with mt_synth_plan_free. */
void mt_synth_plan_init(mt_synth_plan *plan, const mt_synth_model *model, const mt_synth_layout *layout);
void mt_synth_plan_free(mt_synth_plan *plan);
uint64_t mt_synth_tensor_bytes(const mt_synth_tensor *tensor);

/* Makes elements [begin, begin + count) of a tensor; begin is a multiple of 4. The same for a seed wherever it starts,
   so that a tensor can be made in pieces. */
typedef struct mt_synth_filler mt_synth_filler;
mt_synth_filler *mt_synth_filler_new(uint64_t seed); /* free with mt_synth_filler_free */
void mt_synth_filler_free(mt_synth_filler *filler);
void mt_synth_fill(mt_synth_filler *filler, const mt_synth_tensor *tensor, uint64_t begin, size_t count, void *out);

/* Writes the tensors into dir as one safetensors file, or as several of about shard_bytes with an index. */
bool mt_synth_write(const char *dir, const mt_synth_plan *plan, const char *format, uint64_t seed, uint64_t shard_bytes,
                    mt_error *err) MT_NODISCARD;
bool mt_synth_write_one(int fd, const mt_synth_plan *plan, const char *format, uint64_t seed,
                        mt_error *err) MT_NODISCARD; /* the file of all tensors, into an open one */
bool mt_synth_write_file(const char *dir, const char *name, const mt_buf *content, mt_error *err) MT_NODISCARD;

/* A checkpoint in memory. Its folder is there until mt_synth_vanish, which comes as soon as it has been opened and
   leaves what was mapped. Signals that would end the program wait meanwhile, so that nothing is left behind. */
typedef struct mt_synth_drawn {
    char dir[64];
    int fd; /* of the weights */
    sigset_t signals;
} mt_synth_drawn;

bool mt_synth_draw(mt_synth_drawn *drawn, const mt_synth_model *model, const mt_synth_layout *layout, uint64_t seed,
                   mt_error *err) MT_NODISCARD;
void mt_synth_vanish(mt_synth_drawn *drawn);

#endif
