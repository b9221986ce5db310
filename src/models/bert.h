/* Encoders of the BERT family (BERT, RoBERTa, XLM-R): what they are, where their weights lie, and how a few texts go
   through one. See bert.c. */
#ifndef MT_MODELS_BERT_H
#define MT_MODELS_BERT_H

#include "device/device.h"
#include "models/cursor.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"

#define MT_BERT_TEXTS 64 /* of one job */

typedef struct mt_bert_spec {
    bool roberta; /* positions begin behind that of padding; the classifier is RoBERTa's */
    bool scores;  /* it has a classifier with one label */
    uint32_t vocab, hidden, layers, heads, head_dim, ffn, positions, types, pad;
    bool two_types;   /* the second part of a text is of another type than the first */
    uint32_t context; /* most tokens of a text */
    float eps;
    mt_activation activation;
} mt_bert_spec;

/* Numbers of a text's vector. */
static inline size_t mt_bert_width(const mt_bert_spec *spec)
{
    return spec->scores ? 1 : spec->hidden;
}

/* Whether config.json is that of such an encoder. */
bool mt_bert_known(const mt_config *config);
bool mt_bert_spec_read(mt_bert_spec *spec, const mt_config *config, mt_error *err) MT_NODISCARD;

typedef struct mt_bert_dense {
    mt_mat w;
    const float *bias;
} mt_bert_dense;

typedef struct mt_bert_norm {
    const float *w, *bias;
} mt_bert_norm;

typedef struct mt_bert_layer_weights {
    mt_bert_dense q, k, v, o, up, down;
    mt_bert_norm attn_norm, norm;
} mt_bert_layer_weights;

typedef struct mt_bert_weights {
    mt_mat words, places, types;
    mt_bert_norm norm;
    mt_bert_layer_weights *layer;
    mt_bert_dense dense, out; /* of the classifier */
    mt_bind_cost cost;
} mt_bert_weights;

/* Finds every tensor; what is converted lives in the arena. False with one sentence that names all that is missing. */
bool mt_bert_bind(mt_bert_weights *weights, const mt_bert_spec *spec, const mt_checkpoint *checkpoint, mt_arena *arena,
                  mt_error *err) MT_NODISCARD;

typedef struct mt_bert mt_bert;

typedef struct mt_bert_params {
    size_t rows;  /* of a job, at least spec->context */
    size_t slice; /* most rows that are computed at a time */
} mt_bert_params;

/* Makes the encoder's objects, in a set of its own; the device is to be planned for its slices. Borrows everything it
   is given; free with mt_bert_free before closing the device. */
mt_bert *mt_bert_new(mt_device *dev, const mt_bert_spec *spec, const mt_bert_weights *weights,
                     const mt_bert_params *params, mt_error *err) MT_NODISCARD;
void mt_bert_free(mt_bert *bert);

typedef struct mt_bert_text {
    const uint32_t *tokens; /* all within the vocabulary */
    size_t count;           /* from 1 to spec->context */
    size_t second;          /* where its second part begins; 0: it has none */
} mt_bert_text;

/* Starts a job of at most MT_BERT_TEXTS texts, together at most params->rows tokens. Tokens are borrowed until it is
   done or dropped. What else is in the job changes no bit of a text's rows. */
void mt_bert_begin(mt_bert *bert, const mt_bert_text *texts, size_t count);
mt_cursor *mt_bert_cursor(mt_bert *bert); /* that runs it */

/* Of a job that is done: a row of the last hidden state, spec->hidden floats, valid until the next call; and what the
   classifier says. */
const float *mt_bert_hidden(mt_bert *bert, size_t text, size_t row);
float mt_bert_score(mt_bert *bert, size_t text);

#endif
