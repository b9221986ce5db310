/* Reads the configs of BERT encoders and finds their tensors (bert.h). */
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "device/limits.h"
#include "models/bert.h"
#include "models/family.h"
#include "models/limits.h"
#include "weights/limits.h"

static bool is_roberta(const mt_config *c)
{
    static const char *const names[] = {"roberta", "xlm-roberta", "camembert", NULL};

    return mt_words_have(names, mt_config_string(c, "model_type", ""));
}

bool mt_bert_known(const mt_config *c)
{
    return is_roberta(c) || strcmp(mt_config_string(c, "model_type", ""), "bert") == 0;
}

static bool read_activation(mt_bert_spec *s, const mt_config *c, mt_error *err)
{
    const char *name = mt_config_string(c, "hidden_act", "gelu");
    if (strcmp(name, "gelu") == 0)
        s->activation = MT_ACT_GELU;
    else if (strcmp(name, "gelu_new") == 0 || strcmp(name, "gelu_pytorch_tanh") == 0)
        s->activation = MT_ACT_GELU_TANH;
    else
        return mt_fail(err, MT_E_UNSUPPORTED, "\"hidden_act\" is \"%.64s\"; known are gelu and gelu_new", name);
    return true;
}

/* The keys of "id2label" are "0", "1" and so on. */
static size_t count_labels(const mt_config *c)
{
    const mt_config *labels = mt_config_object(c, "id2label");
    char key[24];

    if (!labels)
        return 2; /* transformers' default */
    for (size_t count = 0; count <= MT_BERT_LABELS; count++) {
        snprintf(key, sizeof(key), "%zu", count);
        if (!mt_config_has(labels, key))
            return count;
    }
    return MT_BERT_LABELS + 1;
}

static bool read_head(mt_bert_spec *s, const mt_config *c, mt_error *err)
{
    const char *architecture = mt_config_array_string(c, "architectures", 0);
    const size_t labels = count_labels(c);

    if (!architecture || !strstr(architecture, "ForSequenceClassification"))
        return true;
    if (labels == 0 || labels > MT_BERT_LABELS)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "the classifier of \"%.100s\" has %s labels; known are those with 1 to %d", architecture,
                       labels ? "too many" : "no", MT_BERT_LABELS);
    s->labels = (uint32_t)labels;
    return true;
}

static bool read_shape(mt_bert_spec *s, const mt_config *c, mt_error *err)
{
    int64_t pad;
    double eps;
    if (!mt_size_read(c, "vocab_size", 0, MT_LIMIT_VOCAB, &s->vocab, err) ||
        !mt_size_read(c, "hidden_size", 0, MT_LIMIT_WIDTH, &s->hidden, err) ||
        !mt_size_read(c, "num_hidden_layers", 0, MT_LIMIT_LAYERS, &s->layers, err) ||
        !mt_size_read(c, "num_attention_heads", 0, MT_LIMIT_WIDTH, &s->heads, err) ||
        !mt_size_read(c, "intermediate_size", 0, MT_LIMIT_WIDTH, &s->ffn, err) ||
        !mt_size_read(c, "max_position_embeddings", 512, MT_LIMIT_ENCODER_CONTEXT, &s->positions, err) ||
        !mt_size_read(c, "type_vocab_size", 2, MT_LIMIT_VOCAB, &s->types, err) ||
        !mt_config_int(c, "pad_token_id", s->roberta ? 1 : 0, 0, s->vocab - 1, &pad, err) ||
        !mt_config_float(c, "layer_norm_eps", 1e-12, 0, 1, &eps, err))
        return false;
    s->pad = (uint32_t)pad;
    /* RoBERTa's tokenizers use one token type, however many the config has */
    s->two_types = !s->roberta && s->types > 1;
    s->eps = (float)eps;
    if (s->hidden % s->heads || s->hidden / s->heads > MT_LIMIT_HEAD_DIM)
        return mt_fail(err, MT_E_INVALID, "\"hidden_size\" is %u, which %u heads cannot share", s->hidden, s->heads);
    s->head_dim = s->hidden / s->heads;
    const uint32_t first = s->roberta ? s->pad + 1 : 0; /* RoBERTa counts positions from behind its padding's id */
    if (first >= s->positions)
        return mt_fail(err, MT_E_INVALID, "\"max_position_embeddings\" is %u, which leaves no position for a token",
                       s->positions);
    s->context = s->positions - first;
    return true;
}

bool mt_bert_spec_read(mt_bert_spec *s, const mt_config *c, mt_error *err)
{
    const char *positions = mt_config_string(c, "position_embedding_type", "absolute");
    *s = (mt_bert_spec){.roberta = is_roberta(c)};
    if (strcmp(positions, "absolute") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"position_embedding_type\" is \"%.64s\"; known is absolute", positions);
    if (mt_config_bool(c, "is_decoder", false))
        return mt_fail(err, MT_E_UNSUPPORTED, "\"is_decoder\" is true; known are encoders");
    return read_shape(s, c, err) && read_activation(s, c, err) && read_head(s, c, err);
}

/* Finds tensors below a prefix. path: the buffer of the last name. */
typedef struct names {
    mt_binder *b;
    char prefix[MT_LIMIT_TENSOR_NAME / 2], path[MT_LIMIT_TENSOR_NAME];
} names;

/* A full name, which the binder knows by the slash before it; valid until the next call. */
static const char *path(names *n, const char *name, const char *suffix)
{
    snprintf(n->path, sizeof(n->path), "/%s%s%s", n->prefix, name, suffix);
    return n->path;
}

static void dense(names *n, const char *name, size_t rows, size_t cols, mt_bert_dense *out)
{
    mt_bind_matrix(n->b, path(n, name, ""), rows, cols, &out->w);
    out->bias = mt_bind_vector(n->b, path(n, name, ".bias"), rows);
}

/* The oldest checkpoints call a norm's weights gamma and beta. */
static void norm(names *n, const char *name, size_t width, mt_bert_norm *out)
{
    const bool old = mt_bind_has(n->b, path(n, name, ".gamma"));
    out->w = mt_bind_vector(n->b, path(n, name, old ? ".gamma" : ".weight"), width);
    out->bias = mt_bind_vector(n->b, path(n, name, old ? ".beta" : ".bias"), width);
}

static void bind_layer(names *n, const mt_bert_spec *s, mt_bert_layer_weights *w)
{
    dense(n, "attention.self.query", s->hidden, s->hidden, &w->q);
    dense(n, "attention.self.key", s->hidden, s->hidden, &w->k);
    dense(n, "attention.self.value", s->hidden, s->hidden, &w->v);
    dense(n, "attention.output.dense", s->hidden, s->hidden, &w->o);
    norm(n, "attention.output.LayerNorm", s->hidden, &w->attn_norm);
    dense(n, "intermediate.dense", s->ffn, s->hidden, &w->up);
    dense(n, "output.dense", s->hidden, s->ffn, &w->down);
    norm(n, "output.LayerNorm", s->hidden, &w->norm);
}

/* The classifier's tensors are outside the encoder's prefix; BERT's classifier reads the result of the encoder's
   pooler. */
static void bind_head(names *n, const mt_bert_spec *s, mt_bert_weights *w)
{
    if (!s->roberta)
        dense(n, "pooler.dense", s->hidden, s->hidden, &w->dense);
    n->prefix[0] = 0;
    if (s->roberta)
        dense(n, "classifier.dense", s->hidden, s->hidden, &w->dense);
    dense(n, s->roberta ? "classifier.out_proj" : "classifier", s->labels, s->hidden, &w->out);
}

/* The prefix of the encoder's tensors. Where no name is found, none: the binder then says what is missing. */
static const char *find_prefix(mt_binder *b)
{
    static const char *const prefixes[] = {"", "bert.", "roberta.", "model."};
    char name[MT_LIMIT_TENSOR_NAME];
    for (size_t i = 0; i < MT_COUNT(prefixes); i++) {
        snprintf(name, sizeof(name), "/%sembeddings.word_embeddings", prefixes[i]);
        if (mt_bind_has(b, name))
            return prefixes[i];
    }
    return prefixes[0];
}

bool mt_bert_bind(mt_bert_weights *w, const mt_bert_spec *s, const mt_checkpoint *checkpoint, mt_arena *arena,
                  mt_error *err)
{
    memset(w, 0, sizeof(*w));
    w->layer = mt_arena_alloc(arena, s->layers * sizeof(*w->layer));
    if (!w->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", s->layers);
    names n = {.b = mt_binder_new(checkpoint, arena)};
    const char *prefix = find_prefix(n.b);
    snprintf(n.prefix, sizeof(n.prefix), "%sembeddings.", prefix);
    mt_bind_matrix(n.b, path(&n, "word_embeddings", ""), s->vocab, s->hidden, &w->words);
    mt_bind_matrix(n.b, path(&n, "position_embeddings", ""), s->positions, s->hidden, &w->places);
    mt_bind_matrix(n.b, path(&n, "token_type_embeddings", ""), s->types, s->hidden, &w->types);
    norm(&n, "LayerNorm", s->hidden, &w->norm);
    for (size_t l = 0; l < s->layers; l++) {
        snprintf(n.prefix, sizeof(n.prefix), "%sencoder.layer.%zu.", prefix, l);
        bind_layer(&n, s, &w->layer[l]);
    }
    snprintf(n.prefix, sizeof(n.prefix), "%s", prefix);
    if (s->labels)
        bind_head(&n, s, w);
    return mt_binder_finish(n.b, &w->cost, err);
}
