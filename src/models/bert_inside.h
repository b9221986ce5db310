/* What the files that read encoders share: bert_names.c for bert_rotary.c and bert_weights.c, which is BERT itself and
   calls the others. */
#ifndef MT_MODELS_BERT_INSIDE_H
#define MT_MODELS_BERT_INSIDE_H

#include "models/bert.h"
#include "weights/limits.h"

/* Finds tensors below a prefix. path: the buffer of the last name. */
typedef struct mt_bert_names {
    mt_binder *b;
    char prefix[MT_LIMIT_TENSOR_NAME / 2], path[MT_LIMIT_TENSOR_NAME];
} mt_bert_names;

/* A full name, which the binder knows by the slash before it; valid until the next call. */
const char *mt_bert_path(mt_bert_names *n, const char *name, const char *suffix);

/* A matrix, with its bias where `biased`, or where the checkpoint has one. */
void mt_bert_bind_dense(mt_bert_names *n, const char *name, size_t rows, size_t cols, bool biased, mt_bert_dense *out);

/* Encoders with rotary embeddings: whether model_type names one, their specs, and their tensors; prefix: of all but the
   classifier's. */
bool mt_bert_rotary_known(const mt_config *c);
bool mt_bert_rotary_read(mt_bert_spec *s, const mt_config *c, mt_arena *arena, mt_error *err) MT_NODISCARD;
void mt_bert_rotary_bind(mt_bert_names *n, const mt_bert_spec *s, const char *prefix, mt_bert_weights *w);

/* Reads an activation by transformers' name of it. */
bool mt_bert_read_activation(const mt_config *c, const char *key, const char *usual, bool *tanh, mt_activation *out,
                             mt_error *err) MT_NODISCARD;

#endif
