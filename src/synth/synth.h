/* Random checkpoints with the shapes of real models, for benchmarks and large tests: models.c has the shapes, config.c
   writes config.json, plan.c lists the tensors, fill.c makes their numbers, write.c writes files, memory.c makes a
   checkpoint in memory. */
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
    MT_SYNTH_LFM2_MOE,
    MT_SYNTH_GLM_LITE
} mt_synth_family;

typedef struct mt_synth_vision {
    size_t depth, hidden, inter, heads;
    size_t deepstack[3]; /* layers that feed the text model (DeepStack); all 0: none */
} mt_synth_vision;

/* Widths of latent attention, as mt_latent_spec has them (models/spec.h). */
typedef struct mt_synth_latent {
    size_t width, queries, plain, turned, value;
} mt_synth_latent;

typedef struct mt_synth_model {
    const char *name, *about;
    mt_synth_family family;
    size_t hidden, inter, layers, heads, kv_heads, head_dim, vocab, context;
    bool tied;                                    /* the output head is the embedding */
    double theta;                                 /* base of the rotary embedding */
    size_t experts, experts_per_token, moe_inter; /* of families with experts */
    size_t window, period;                        /* gemma4: the last layer of each period has full attention */
    /* gemma4: head size and key heads of layers with full attention; with wide_kv_heads, values are keys */
    size_t wide_dim, wide_kv_heads;
    size_t aside;           /* gemma4: width of each layer's own embedding */
    size_t shared_in_14;    /* gemma4: the last so many of 14 layers read keys of earlier ones */
    bool wide_mlp;          /* gemma4: the MLP of these is twice as wide */
    uint32_t attend;        /* lfm2: a bit for each layer with attention; the others have a convolution */
    size_t value_heads;     /* of qwen3_5's recurrent layers; 0: as many as key heads */
    mt_synth_latent latent; /* of families with latent attention */
    mt_synth_vision vision; /* depth 0: none */
    bool echo;              /* layers add nothing, so every token is followed by itself, also by the drafting head */
} mt_synth_model;

/* Sizes that are the same in every model here: of Qwen3.5's recurrent layers, LFM2's convolutions and dense layers, and
   towers. */
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
    /* 4 or 8: MLX names and affine quantisation; 0: Hugging Face names, all bf16. gpt-oss's experts are MXFP4 in
       both */
    unsigned bits;
    size_t group;
    bool fp8; /* where bits is 0: the products of layers are E4M3 with a scale for each 128 x 128 */
} mt_synth_layout;

#define MT_SYNTH_E4M3_SPREAD 107.2 /* of the values of random bytes */
enum { MT_SYNTH_FP8_BLOCK = 128 }; /* rows and columns that share a scale */
enum { MT_SYNTH_ROUTER_BITS = 8 }; /* MLX conversions give routers more bits */

/* A model by index, NULL behind the last; by name, NULL: there is none. */
const mt_synth_model *mt_synth_model_at(size_t index);
const mt_synth_model *mt_synth_model_named(const char *name);
size_t mt_synth_value_heads(const mt_synth_model *model);
bool mt_synth_is_recurrent(const mt_synth_model *model, size_t layer);
bool mt_synth_is_sparse(const mt_synth_model *model, size_t layer); /* has experts */
bool mt_synth_is_full(const mt_synth_model *model, size_t layer);   /* gemma4: full attention */
bool mt_synth_is_short(const mt_synth_model *model, size_t layer);  /* lfm2: a convolution */
bool mt_synth_is_lfm2(const mt_synth_model *model);                 /* with experts or without */
size_t mt_synth_shared(const mt_synth_model *model);                /* gemma4: how many last layers read earlier keys */
bool mt_synth_has_head_norms(const mt_synth_model *model);          /* of queries and keys */

/* Appends a config.json that transformers accepts. */
void mt_synth_config(mt_buf *out, const mt_synth_model *model, const mt_synth_layout *layout);

typedef enum mt_synth_kind {
    MT_SYNTH_NORMAL,    /* normal distribution with mean and spread; bf16 or f32 */
    MT_SYNTH_ONES,      /* ones on the diagonal, zeros elsewhere; bf16 */
    MT_SYNTH_CODES,     /* random bits */
    MT_SYNTH_E4M3,      /* random bytes, of which none is NaN */
    MT_SYNTH_EXPONENTS, /* bytes: exponents plus 127 such that E2M1 codes have about the spread */
    MT_SYNTH_SCALES,    /* around `spread` */
    MT_SYNTH_BIASES     /* minus mean times the scale of the same group, so that codes spread around 0 */
} mt_synth_kind;

typedef struct mt_synth_tensor {
    char name[144];
    const char *dtype;   /* safetensors' name of it */
    size_t element_size; /* bytes */
    size_t dims[5], ndim;
    mt_synth_kind kind;
    float mean, spread;
    uint64_t stream; /* selects the random numbers; scales and biases of one matrix share a stream */
} mt_synth_tensor;

typedef struct mt_synth_plan {
    mt_synth_tensor *tensors;
    size_t count, capacity;
} mt_synth_plan;

/* Lists the tensors of a model. Free with mt_synth_plan_free. */
void mt_synth_plan_init(mt_synth_plan *plan, const mt_synth_model *model, const mt_synth_layout *layout);
void mt_synth_plan_free(mt_synth_plan *plan);
uint64_t mt_synth_tensor_bytes(const mt_synth_tensor *tensor);

/* Makes elements [begin, begin + count) of a tensor; begin is a multiple of 4. The result depends only on seed and
   position, so that a tensor can be made in pieces. */
typedef struct mt_synth_filler mt_synth_filler;
mt_synth_filler *mt_synth_filler_new(uint64_t seed); /* free with mt_synth_filler_free */
void mt_synth_filler_free(mt_synth_filler *filler);
void mt_synth_fill(mt_synth_filler *filler, const mt_synth_tensor *tensor, uint64_t begin, size_t count, void *out);

/* Writes the tensors to dir as one safetensors file, or as several of about shard_bytes with an index. False with a
   sentence. */
bool mt_synth_write(const char *dir, const mt_synth_plan *plan, const char *format, uint64_t seed, uint64_t shard_bytes,
                    mt_error *err) MT_NODISCARD;
bool mt_synth_write_one(int fd, const mt_synth_plan *plan, const char *format, uint64_t seed,
                        mt_error *err) MT_NODISCARD; /* all tensors into one open file */
bool mt_synth_write_file(const char *dir, const char *name, const mt_buf *content, mt_error *err) MT_NODISCARD;

/* A checkpoint in memory. Its folder exists until mt_synth_vanish, which is called as soon as the checkpoint was
   opened; what is mapped stays. Signals that would end the program are blocked meanwhile, so that nothing is left
   behind. */
typedef struct mt_synth_drawn {
    char dir[64];
    int fd; /* of the weights */
    sigset_t signals;
} mt_synth_drawn;

bool mt_synth_draw(mt_synth_drawn *drawn, const mt_synth_model *model, const mt_synth_layout *layout, uint64_t seed,
                   mt_error *err) MT_NODISCARD;
void mt_synth_vanish(mt_synth_drawn *drawn);

#endif
