/* Architectures of GGUF files (general.architecture) and what their converter does to a checkpoint: gguf_config.c and
   gguf_names.c undo it, so that a file is the checkpoint it was made from. */
#ifndef MT_WEIGHTS_GGUF_ARCH_H
#define MT_WEIGHTS_GGUF_ARCH_H

#include "base/arena.h"
#include "base/buf.h"
#include "weights/gguf.h"

enum {
    MT_GGUF_TURNED = 1,    /* rows of q and k are ordered so that neighbouring elements of a head turn together */
    MT_GGUF_HALVED = 2,    /* the reverse, where there is M-RoPE: neighbours became halves of a head */
    MT_GGUF_PLUS_ONE = 4,  /* norms have 1 added */
    MT_GGUF_RECURRENT = 8, /* GatedDeltaNet */
    MT_GGUF_TILED = 16,    /* its value heads are ordered by their number within a key head */
    MT_GGUF_DENSE = 32,    /* with experts, it is a family that motet does not have */
    MT_GGUF_DRAFTS = 64,   /* layers behind the last are a drafting head */
    MT_GGUF_ENCODER = 128  /* it makes vectors of texts, and has a config of its own (gguf_encoder.c) */
};

typedef struct mt_gguf_rename {
    const char *from, *to;
} mt_gguf_rename;

typedef struct mt_gguf_arch {
    const char *name; /* "qwen35" */
    const char *type; /* model_type of its config.json */
    unsigned flags;
    const mt_gguf_rename *renames; /* names of its own, before the usual ones; ends with an empty one; NULL: none */
    unsigned wide; /* of this many layers, the published model scales queries by hidden / heads, not by head_dim */
} mt_gguf_arch;

/* Whether motet runs models of the architecture of that name, and whether these are encoders. */
bool mt_gguf_arch_known(const char *name);
bool mt_gguf_arch_encodes(const char *name);

/* The file's architecture; NULL with a sentence where it has none or one that motet does not run. */
const mt_gguf_arch *mt_gguf_arch_of(const mt_gguf *g, mt_error *err) MT_NODISCARD;

/* A number of the architecture's own keys, "qwen35.block_count" for "block_count"; of an array, the largest. The
   fallback where there is none. */
int64_t mt_gguf_own_int(const mt_gguf *g, const mt_gguf_arch *arch, const char *key, int64_t fallback);
bool mt_gguf_own_float(const mt_gguf *g, const mt_gguf_arch *arch, const char *key, double *out);
const mt_gguf_array *mt_gguf_own_array(const mt_gguf *g, const mt_gguf_arch *arch, const char *key);

/* Layers of the text model, without those of a drafting head. */
int64_t mt_gguf_layers(const mt_gguf *g, const mt_gguf_arch *arch);

/* A tensor of a layer, "attn_v.weight"; NULL: none. */
const mt_tensor_info *mt_gguf_of_layer(const mt_gguf *g, int64_t layer, const char *name);

/* Appends the text of config.json. */
bool mt_gguf_config(const mt_gguf *g, mt_buf *out, mt_error *err) MT_NODISCARD;

/* The same of an encoder, of an architecture with MT_GGUF_ENCODER. */
bool mt_gguf_encoder_config(const mt_gguf *g, const mt_gguf_arch *arch, mt_buf *out, mt_error *err) MT_NODISCARD;

/* Rows of zeros that belong before the file's table of positions: RoBERTa's are counted from behind padding's id, and
   the converter leaves out those that no token has. */
uint64_t mt_gguf_encoder_rows(const mt_gguf *g);

/* How vectors of tokens become one, as the files that sentence-transformers saves: modules.json and
   1_Pooling/config.json. */
bool mt_gguf_has_pooling(const mt_gguf *g);
bool mt_gguf_modules(const mt_gguf *g, mt_buf *out, mt_error *err) MT_NODISCARD;
bool mt_gguf_pooling(const mt_gguf *g, mt_buf *out, mt_error *err) MT_NODISCARD;

/* The tensors under the names of a checkpoint, in the arena, with what has to be put right (mt_tensor_fix). */
bool mt_gguf_names(const mt_gguf *g, mt_arena *arena, mt_tensor_info **out, size_t *count, mt_error *err) MT_NODISCARD;

#endif
