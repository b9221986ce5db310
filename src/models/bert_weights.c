/* Reads the configs of encoders and finds their tensors (bert.h): BERT and RoBERTa, and what all encoders have. Those
   with rotary embeddings are in bert_rotary.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "device/limits.h"
#include "models/bert_inside.h"
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
    return is_roberta(c) || strcmp(mt_config_string(c, "model_type", ""), "bert") == 0 || mt_bert_rotary_known(c);
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

static bool read_classifier(mt_bert_spec *s, const mt_config *c, mt_error *err)
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
    return s->kind != MT_BERT_GEMMA ||
           mt_fail(err, MT_E_UNSUPPORTED, "\"%.100s\" is not known; known are Gemma encoders that make embeddings",
                   architecture);
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
    s->kv_heads = s->heads;
    s->head_dim = s->hidden / s->heads;
    s->scale = 1.0f / sqrtf((float)s->head_dim);
    s->class_tanh = true;
    const uint32_t first = s->roberta ? s->pad + 1 : 0; /* RoBERTa counts positions from behind its padding's id */
    if (first >= s->positions)
        return mt_fail(err, MT_E_INVALID, "\"max_position_embeddings\" is %u, which leaves no position for a token",
                       s->positions);
    s->context = s->positions - first;
    return true;
}

static bool read_plain(mt_bert_spec *s, const mt_config *c, mt_error *err)
{
    const char *positions = mt_config_string(c, "position_embedding_type", "absolute");
    bool tanh;
    s->roberta = is_roberta(c);
    if (strcmp(positions, "absolute") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED, "\"position_embedding_type\" is \"%.64s\"; known is absolute", positions);
    if (mt_config_bool(c, "is_decoder", false))
        return mt_fail(err, MT_E_UNSUPPORTED, "\"is_decoder\" is true; known are encoders");
    return read_shape(s, c, err) && mt_bert_read_activation(c, "hidden_act", "gelu", &tanh, &s->activation, err) &&
           (!tanh ||
            mt_fail(err, MT_E_UNSUPPORTED, "\"hidden_act\" is \"tanh\"; known are gelu, gelu_new, silu and relu"));
}

bool mt_bert_spec_read(mt_bert_spec *s, const mt_config *c, mt_arena *arena, mt_error *err)
{
    *s = (mt_bert_spec){.embed_scale = 1};
    return (mt_bert_rotary_known(c) ? mt_bert_rotary_read(s, c, arena, err) : read_plain(s, c, err)) &&
           read_classifier(s, c, err);
}

static void dense(mt_bert_names *n, const char *name, size_t rows, size_t cols, mt_bert_dense *out)
{
    mt_bert_bind_dense(n, name, rows, cols, true, out);
}

/* The oldest checkpoints call a norm's weights gamma and beta. */
static void norm(mt_bert_names *n, const char *name, size_t width, mt_bert_norm *out)
{
    const bool old = mt_bind_has(n->b, mt_bert_path(n, name, ".gamma"));
    out->w = mt_bind_vector(n->b, mt_bert_path(n, name, old ? ".gamma" : ".weight"), width);
    out->bias = mt_bind_vector(n->b, mt_bert_path(n, name, old ? ".beta" : ".bias"), width);
}

static void bind_layer(mt_bert_names *n, const mt_bert_spec *s, mt_bert_layer_weights *w)
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
static void bind_classifier(mt_bert_names *n, const mt_bert_spec *s, mt_bert_weights *w)
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
    static const char *const prefixes[] = {"", "bert.", "roberta.", "model.", "nomic_bert.", "encoder."};
    static const char *const tables[] = {"embeddings.word_embeddings", "embeddings.tok_embeddings", "embed_tokens"};
    char name[MT_LIMIT_TENSOR_NAME];
    for (size_t i = 0; i < MT_COUNT(prefixes) * MT_COUNT(tables); i++) {
        const char *prefix = prefixes[i / MT_COUNT(tables)];
        snprintf(name, sizeof(name), "/%s%s", prefix, tables[i % MT_COUNT(tables)]);
        if (mt_bind_has(b, name))
            return prefix;
    }
    return prefixes[0];
}

static void bind_plain(mt_bert_names *n, const mt_bert_spec *s, const char *prefix, mt_bert_weights *w)
{
    snprintf(n->prefix, sizeof(n->prefix), "%sembeddings.", prefix);
    mt_bind_matrix(n->b, mt_bert_path(n, "word_embeddings", ""), s->vocab, s->hidden, &w->words);
    mt_bind_matrix(n->b, mt_bert_path(n, "position_embeddings", ""), s->positions, s->hidden, &w->places);
    mt_bind_matrix(n->b, mt_bert_path(n, "token_type_embeddings", ""), s->types, s->hidden, &w->types);
    norm(n, "LayerNorm", s->hidden, &w->norm);
    for (size_t l = 0; l < s->layers; l++) {
        snprintf(n->prefix, sizeof(n->prefix), "%sencoder.layer.%zu.", prefix, l);
        bind_layer(n, s, &w->layer[l]);
    }
    snprintf(n->prefix, sizeof(n->prefix), "%s", prefix);
    if (s->labels)
        bind_classifier(n, s, w);
}

/* MLX keeps the dense layers behind pooling with the others: "dense.0", "dense.1". A matrix has all its rows, however
   it is stored. */
static void bind_inner_after(mt_bert_names *n, const mt_bert_spec *s, const mt_checkpoint *checkpoint,
                             mt_bert_weights *w)
{
    uint32_t width = s->hidden;
    for (n->prefix[0] = 0; w->after_count < MT_BERT_AFTER; w->after_count++) {
        char name[48];
        snprintf(name, sizeof(name), "dense.%zu.weight", w->after_count);
        const mt_tensor_info *t = mt_checkpoint_find(checkpoint, name);
        if (!t || t->dims != 2 || t->shape[0] == 0 || t->shape[0] > MT_LIMIT_WIDTH)
            return;
        name[strlen(name) - strlen(".weight")] = 0;
        mt_bert_after *after = &w->after[w->after_count];
        *after = (mt_bert_after){.width = (uint32_t)t->shape[0], .activation = MT_ACT_NONE};
        mt_bert_bind_dense(n, name, after->width, width, false, &after->dense);
        width = after->width;
    }
}

bool mt_bert_bind(mt_bert_weights *w, const mt_bert_spec *s, const mt_checkpoint *checkpoint, mt_arena *arena,
                  mt_error *err)
{
    memset(w, 0, sizeof(*w));
    w->layer = mt_arena_alloc(arena, s->layers * sizeof(*w->layer));
    if (!w->layer)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", s->layers);
    memset(w->layer, 0, s->layers * sizeof(*w->layer));
    mt_bert_names n = {.b = mt_binder_new(checkpoint, arena)};
    const char *prefix = find_prefix(n.b);
    (s->kind == MT_BERT_PLAIN ? bind_plain : mt_bert_rotary_bind)(&n, s, prefix, w);
    if (s->kind == MT_BERT_GEMMA)
        bind_inner_after(&n, s, checkpoint, w);
    return mt_binder_finish(n.b, &w->cost, err);
}

/* The activation is a class of PyTorch's, such as "torch.nn.modules.linear.Identity". */
static bool read_after_activation(mt_bert_after *after, const mt_config *c, mt_error *err)
{
    static const struct {
        const char *name;
        mt_activation act;
    } known[] = {{"Identity", MT_ACT_NONE}, {"GELU", MT_ACT_GELU}, {"SiLU", MT_ACT_SILU}, {"ReLU", MT_ACT_RELU}};
    const char *full = mt_config_string(c, "activation_function", "torch.nn.modules.activation.Tanh");
    const char *dot = strrchr(full, '.'), *name = dot ? dot + 1 : full;
    after->tanh = strcmp(name, "Tanh") == 0;
    for (size_t i = 0; i < MT_COUNT(known); i++)
        if (strcmp(name, known[i].name) == 0) {
            after->activation = known[i].act;
            return true;
        }
    return after->tanh ||
           mt_fail(err, MT_E_UNSUPPORTED, "the activation \"%.100s\" of a dense layer is not known", full);
}

bool mt_bert_bind_after(mt_bert_weights *w, const mt_bert_spec *s, const mt_checkpoint *checkpoint, mt_arena *arena,
                        mt_error *err)
{
    const mt_config *c = mt_checkpoint_config(checkpoint);
    const size_t before = w->after_count ? w->after[w->after_count - 1].width : s->hidden;
    mt_bert_after after = {0};
    uint32_t width;
    if (w->after_count == MT_BERT_AFTER)
        return mt_fail(err, MT_E_UNSUPPORTED, "more than %d dense layers behind pooling", MT_BERT_AFTER);
    if (!mt_size_read(c, "in_features", 0, MT_LIMIT_WIDTH, &width, err) ||
        !mt_size_read(c, "out_features", 0, MT_LIMIT_WIDTH, &after.width, err) ||
        !read_after_activation(&after, c, err))
        return false;
    if (width != before)
        return mt_fail(err, MT_E_INVALID, "a dense layer reads %u numbers, and there are %zu", width, before);
    mt_bert_names n = {.b = mt_binder_new(checkpoint, arena)};
    mt_bert_bind_dense(&n, "linear", after.width, width, mt_config_bool(c, "bias", true), &after.dense);
    if (!mt_binder_finish(n.b, NULL, err))
        return false;
    w->after[w->after_count++] = after;
    return true;
}
