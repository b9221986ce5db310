/* Encoders: BERT and its kin (RoBERTa, XLM-R, nomic BERT, ModernBERT), EuroBERT and EmbeddingGemma. Their shape, their
   weights, and a job that runs some texts through one. engine/texts.c calls them. See bert.c. */
#ifndef MT_MODELS_BERT_H
#define MT_MODELS_BERT_H

#include "device/device.h"
#include "models/cursor.h"
#include "models/spec.h"
#include "weights/bind.h"
#include "weights/checkpoint.h"

#define MT_BERT_TEXTS 64    /* most texts of a job */
#define MT_BERT_LABELS 1000 /* most labels of a classifier */

#define MT_BERT_AFTER 4 /* most dense layers behind pooling */

typedef enum mt_bert_kind { MT_BERT_PLAIN, MT_BERT_NOMIC, MT_BERT_MODERN, MT_BERT_EURO, MT_BERT_GEMMA } mt_bert_kind;

/* Of which rows a classifier's input is made: the first, their mean, or the mean of what its dense layer makes of
   each. */
typedef enum mt_bert_view { MT_BERT_FIRST, MT_BERT_MEAN, MT_BERT_LATE } mt_bert_view;

typedef struct mt_bert_spec {
    mt_bert_kind kind;
    bool roberta;    /* RoBERTa: positions are counted from behind that of padding, and its classifier is used */
    uint32_t labels; /* of its classifier; one label: it scores pairs of texts. 0: it has none, and makes embeddings */
    uint32_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, positions, types, pad;
    bool two_types;   /* the second text of a pair has another token type than the first */
    uint32_t context; /* most tokens of a text */
    float eps;
    mt_activation activation;
    /* Norms stand in front of attention and MLP, and one behind the last layer; else behind each. */
    bool before;
    bool rms;                 /* they divide by the root of the mean square, and multiply by norm_offset + w */
    float norm_offset;        /* with rms */
    float embed_scale, scale; /* of embeddings, and of attention's scores */
    bool gated;               /* MLPs have a gate, which the activation is of */
    /* Rotary embeddings, of layers that see all and of local ones; without, positions have embeddings. */
    mt_rope rope[2];
    const bool *local; /* [layers]: its tokens see tokens at most `reach` positions away; NULL: no layer is local */
    uint32_t reach;
    /* of the classifier */
    mt_bert_view view;
    mt_activation class_activation;
    bool class_tanh; /* instead of class_activation */
} mt_bert_spec;

/* How many numbers the classifier gives for a text, or a row of the last hidden state has. */
static inline size_t mt_bert_width(const mt_bert_spec *spec)
{
    return spec->labels ? spec->labels : spec->hidden;
}

/* Whether config.json is that of such an encoder. mt_bert_spec_read: false with a sentence; lists are in the arena. */
bool mt_bert_known(const mt_config *config);
bool mt_bert_spec_read(mt_bert_spec *spec, const mt_config *config, mt_arena *arena, mt_error *err) MT_NODISCARD;

typedef struct mt_bert_dense {
    mt_mat w;
    const float *bias;
} mt_bert_dense;

typedef struct mt_bert_norm {
    const float *w, *bias; /* w NULL: there is none; bias NULL: zeros */
} mt_bert_norm;

typedef struct mt_bert_layer_weights {
    mt_bert_dense q, k, v, o, gate, up, down; /* gate: where the spec says so */
    mt_bert_norm attn_norm, norm;             /* of attention, and of the MLP: in front or behind, as the spec says */
    mt_bert_norm attn_after, after;           /* norms of what attention and the MLP add, where they have some */
    const float *q_norm, *k_norm;             /* of each head; NULL: none */
} mt_bert_layer_weights;

/* A dense layer behind pooling, as sentence-transformers has it. */
typedef struct mt_bert_after {
    mt_bert_dense dense;
    uint32_t width; /* of its result */
    bool tanh;
    mt_activation activation; /* where it is not tanh */
} mt_bert_after;

typedef struct mt_bert_weights {
    /* tables of embeddings: of tokens, of positions, of token types; of the latter two, none where there are no rows */
    mt_mat words, places, types;
    mt_bert_norm norm, last; /* of embeddings, and behind the last layer */
    mt_bert_layer_weights *layer;
    mt_bert_dense dense, out; /* of the classifier, where the spec has labels */
    mt_bert_norm class_norm;
    mt_bert_after after[MT_BERT_AFTER];
    size_t after_count;
    mt_bind_cost cost;
} mt_bert_weights;

/* How many numbers a text's vector has. */
static inline size_t mt_bert_vector(const mt_bert_spec *spec, const mt_bert_weights *weights)
{
    return !spec->labels && weights->after_count ? weights->after[weights->after_count - 1].width : mt_bert_width(spec);
}

/* Adds a dense layer behind pooling: the checkpoint is that of its own folder, and must stay open. */
bool mt_bert_bind_after(mt_bert_weights *weights, const mt_bert_spec *spec, const mt_checkpoint *checkpoint,
                        mt_arena *arena, mt_error *err) MT_NODISCARD;

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

/* What the dense layers behind pooling make of a vector of spec->hidden numbers, valid until the next call. */
const float *mt_bert_densed(mt_bert *bert, const float *vector);

#endif
