/* Encoders of the BERT family (BERT, RoBERTa, XLM-R): their shape, their weights, and a job that runs some texts
   through one. engine/texts.c calls them. See bert.c. */
#ifndef MT_MODELS_BERT_H
#define MT_MODELS_BERT_H

#include "device/device.h"
#include "models/cursor.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"

#define MT_BERT_TEXTS 64    /* most texts of a job */
#define MT_BERT_LABELS 1000 /* most labels of a classifier */

typedef struct mt_bert_spec {
    bool roberta;    /* RoBERTa: positions are counted from behind that of padding, and its classifier is used */
    uint32_t labels; /* of its classifier; one label: it scores pairs of texts. 0: it has none, and makes embeddings */
    uint32_t vocab, hidden, layers, heads, head_dim, ffn, positions, types, pad;
    bool two_types;   /* the second text of a pair has another token type than the first */
    uint32_t context; /* most tokens of a text */
    float eps;
    mt_activation activation;
} mt_bert_spec;

/* How many numbers a text's vector has. */
static inline size_t mt_bert_width(const mt_bert_spec *spec)
{
    return spec->labels ? spec->labels : spec->hidden;
}

/* Whether config.json is that of such an encoder. mt_bert_spec_read: false with a sentence. */
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
    mt_bert_norm attn_norm, norm; /* behind attention, and behind the MLP */
} mt_bert_layer_weights;

typedef struct mt_bert_weights {
    /* tables of embeddings: of tokens, of positions, of token types */
    mt_mat words, places, types;
    mt_bert_norm norm;
    mt_bert_layer_weights *layer;
    mt_bert_dense dense, out; /* of the classifier, where the spec has labels */
    mt_bind_cost cost;
} mt_bert_weights;

/* Finds every tensor; tensors that are converted live in the arena. False with one sentence that names all that is
   missing. */
bool mt_bert_bind(mt_bert_weights *weights, const mt_bert_spec *spec, const mt_checkpoint *checkpoint, mt_arena *arena,
                  mt_error *err) MT_NODISCARD;

typedef struct mt_bert mt_bert;

typedef struct mt_bert_params {
    size_t rows;  /* most rows of a job, at least spec->context */
    size_t slice; /* most rows that are computed at a time */
} mt_bert_params;

/* Makes the encoder's device objects, in a set of its own; the device must be planned for params->slice rows. All that
   is passed is borrowed; free with mt_bert_free before closing the device. */
mt_bert *mt_bert_new(mt_device *dev, const mt_bert_spec *spec, const mt_bert_weights *weights,
                     const mt_bert_params *params, mt_error *err) MT_NODISCARD;
void mt_bert_free(mt_bert *bert);

typedef struct mt_bert_text {
    const uint32_t *tokens; /* all within the vocabulary */
    size_t count;           /* from 1 to spec->context */
    size_t second;          /* position where the second text of a pair begins; 0: there is one text */
} mt_bert_text;

/* Starts a job of at most MT_BERT_TEXTS texts, together at most params->rows tokens. Tokens are borrowed until the job
   is done or dropped. A text's result does not depend on the other texts in the job. */
void mt_bert_begin(mt_bert *bert, const mt_bert_text *texts, size_t count);
mt_cursor *mt_bert_cursor(mt_bert *bert); /* runs the job */

/* After the job is done: one row of the last hidden state, spec->hidden floats, valid until the next call; and what
   the classifier says of a text, spec->labels floats, valid until the next call. */
const float *mt_bert_hidden(mt_bert *bert, size_t text, size_t row);
const float *mt_bert_classes(mt_bert *bert, size_t text);

#endif
