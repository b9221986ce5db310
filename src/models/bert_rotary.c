/* Encoders with rotary embeddings: nomic BERT, ModernBERT, EuroBERT and EmbeddingGemma, which is Gemma 3's text model
   where each token sees those behind it, too. Their configs and the names of their tensors (bert.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/limits.h"
#include "models/bert_inside.h"
#include "models/family.h"
#include "models/limits.h"
#include "sample/limits.h"

/* A family: its name, and what holds where its config does not say, as the classes in transformers have it. other: a
   key that older configs have instead. */
typedef struct kin {
    const char *type;
    mt_bert_kind kind;
    int64_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context;
    const char *eps_key, *act_key, *act;
    double eps, theta;
} kin;

static const kin all_kin[] = {
    {"nomic_bert", MT_BERT_NOMIC, 30528, 768, 12, 12, 0, 0, 3072, 2048, "layer_norm_eps", "hidden_act", "silu", 1e-12,
     1000},
    {"modernbert", MT_BERT_MODERN, 50368, 768, 22, 12, 0, 0, 1152, 8192, "norm_eps", "hidden_activation", "gelu", 1e-5,
     160000},
    {"eurobert", MT_BERT_EURO, 128256, 768, 12, 12, 0, 0, 3072, 8192, "rms_norm_eps", "hidden_act", "silu", 1e-5,
     10000},
    {"gemma3_text", MT_BERT_GEMMA, 262208, 2304, 26, 8, 4, 256, 9216, 131072, "rms_norm_eps", "hidden_activation",
     "gelu_pytorch_tanh", 1e-6, 1e6},
};

static const kin *kin_of(const mt_config *c)
{
    for (size_t i = 0; i < MT_COUNT(all_kin); i++)
        if (strcmp(mt_config_string(c, "model_type", ""), all_kin[i].type) == 0)
            return all_kin[i].kind != MT_BERT_GEMMA || mt_config_bool(c, "use_bidirectional_attention", false)
                       ? &all_kin[i]
                       : NULL;
    return NULL;
}

bool mt_bert_rotary_known(const mt_config *c)
{
    return kin_of(c) != NULL;
}

/* The key, or the one that nomic's own class has instead. */
static const char *key_of(const mt_config *c, const char *key, const char *other)
{
    return !mt_config_has(c, key) && mt_config_has(c, other) ? other : key;
}

static bool read_shape(mt_bert_spec *s, const kin *k, const mt_config *c, mt_error *err)
{
    double eps;
    if (!mt_size_read(c, "vocab_size", k->vocab, MT_LIMIT_VOCAB, &s->vocab, err) ||
        !mt_size_read(c, key_of(c, "hidden_size", "n_embd"), k->hidden, MT_LIMIT_WIDTH, &s->hidden, err) ||
        !mt_size_read(c, key_of(c, "num_hidden_layers", "n_layer"), k->layers, MT_LIMIT_LAYERS, &s->layers, err) ||
        !mt_size_read(c, key_of(c, "num_attention_heads", "n_head"), k->heads, MT_LIMIT_WIDTH, &s->heads, err) ||
        !mt_size_read(c, key_of(c, "intermediate_size", "n_inner"), k->ffn, MT_LIMIT_WIDTH, &s->ffn, err) ||
        !mt_size_read(c, key_of(c, "max_position_embeddings", "n_positions"), k->context, MT_LIMIT_CONTEXT,
                      &s->positions, err) ||
        !mt_config_float(c, key_of(c, k->eps_key, "layer_norm_epsilon"), k->eps, 0, 1, &eps, err))
        return false;
    const bool grouped = k->kind == MT_BERT_EURO || k->kind == MT_BERT_GEMMA;
    s->kv_heads = s->heads;
    if (grouped && !mt_size_read(c, "num_key_value_heads", k->kv_heads ? k->kv_heads : s->heads, MT_LIMIT_WIDTH,
                                 &s->kv_heads, err))
        return false;
    s->head_dim = s->hidden / s->heads;
    if (k->kind != MT_BERT_MODERN && !mt_size_read(c, "head_dim", k->head_dim ? k->head_dim : MT_MAX(s->head_dim, 1),
                                                   MT_LIMIT_HEAD_DIM, &s->head_dim, err))
        return false;
    if (s->heads % s->kv_heads || s->head_dim < 2 || s->head_dim % 2 || s->head_dim > MT_LIMIT_HEAD_DIM)
        return mt_fail(err, MT_E_INVALID, "\"hidden_size\" is %u, which %u heads cannot share", s->hidden, s->heads);
    s->eps = (float)eps;
    s->scale = 1.0f / sqrtf((float)s->head_dim);
    s->context = MT_MIN(s->positions, MT_LIMIT_ENCODER_CONTEXT);
    return true;
}

/* The layers that see all: those of "layer_types", or every `every`-th, from number `first` on. */
static bool read_layers(mt_bert_spec *s, const mt_config *c, int64_t every, int64_t first, mt_arena *arena,
                        mt_error *err)
{
    bool *local = mt_arena_alloc(arena, s->layers * sizeof(*local));
    if (!local)
        return mt_fail(err, MT_E_MEMORY, "no memory for %u layers", s->layers);
    const bool listed = mt_config_has(c, "layer_types");
    for (size_t i = 0; i < s->layers; i++) {
        const char *type = mt_config_array_string(c, "layer_types", i);
        if (listed && (!type || (strcmp(type, "sliding_attention") && strcmp(type, "full_attention"))))
            return mt_fail(err, MT_E_INVALID, "\"layer_types\" does not say how layer %zu of %u sees", i, s->layers);
        local[i] = listed ? strcmp(type, "sliding_attention") == 0 : ((int64_t)i + first) % every != 0;
    }
    s->local = local;
    return true;
}

/* Two rotary embeddings: of layers that see all, and of local ones. Older configs have keys of their own for the bases
   of their angles. */
static bool read_two_ropes(mt_bert_spec *s, const mt_config *c, const char *key, double theta, const char *local_key,
                           mt_arena *arena, mt_error *err)
{
    static const char *const types[] = {"full_attention", "sliding_attention"};
    const mt_config *parameters = mt_config_object(c, "rope_parameters"), *older = mt_config_object(c, "rope_scaling");
    double base[2];
    if (!mt_config_float(c, key, theta, 1, 1e12, &base[0], err) ||
        !mt_config_float(c, local_key, 1e4, 1, 1e12, &base[1], err))
        return false;
    for (size_t i = 0; i < 2; i++) {
        const mt_config *p = parameters ? mt_config_object(parameters, types[i]) : NULL;
        if (p && !mt_config_float(p, "rope_theta", base[i], 1, 1e12, &base[i], err))
            return false;
        if (older && (i == 0 || s->kind == MT_BERT_MODERN))
            p = older;
        if (!mt_rope_read(&s->rope[i], c, p, base[i], s->head_dim, s->positions, arena, err))
            return false;
    }
    return true;
}

static bool read_one_rope(mt_bert_spec *s, const mt_config *c, double usual, mt_arena *arena, mt_error *err)
{
    double theta;
    return mt_config_float(c, key_of(c, "rope_theta", "rotary_emb_base"), usual, 1, 1e12, &theta, err) &&
           mt_rope_read(&s->rope[0], c, mt_rope_parameters(c), theta, s->head_dim, s->positions, arena, err);
}

static bool read_nomic(mt_bert_spec *s, const kin *k, const mt_config *c, mt_arena *arena, mt_error *err)
{
    s->class_tanh = true;
    if (!mt_size_read(c, "type_vocab_size", 2, MT_LIMIT_VOCAB, &s->types, err))
        return false;
    s->two_types = s->types > 1;
    return read_one_rope(s, c, k->theta, arena, err);
}

static bool read_view(mt_bert_spec *s, const mt_config *c, const char *usual, mt_error *err)
{
    const char *view = mt_config_string(c, "classifier_pooling", usual);
    if (strcmp(view, s->kind == MT_BERT_MODERN ? "cls" : "bos") == 0)
        s->view = MT_BERT_FIRST;
    else if (strcmp(view, "mean") == 0)
        s->view = MT_BERT_MEAN;
    else if (s->kind == MT_BERT_EURO && strcmp(view, "late") == 0)
        s->view = MT_BERT_LATE;
    else
        return mt_fail(err, MT_E_UNSUPPORTED, "\"classifier_pooling\" is \"%.64s\"; known are cls, bos, mean and late",
                       view);
    return true;
}

static bool read_modern(mt_bert_spec *s, const kin *k, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t every, window;
    s->before = true;
    if (!mt_config_int(c, "global_attn_every_n_layers", 3, 1, INT64_MAX, &every, err) ||
        !mt_config_int(c, "local_attention", 128, 0, INT64_MAX, &window, err))
        return false;
    s->reach = (uint32_t)MT_MIN(window / 2, s->positions);
    return read_view(s, c, "cls", err) &&
           mt_bert_read_activation(c, "classifier_activation", "gelu", &s->class_tanh, &s->class_activation, err) &&
           read_layers(s, c, every, 0, arena, err) &&
           read_two_ropes(s, c, "global_rope_theta", k->theta, "local_rope_theta", arena, err);
}

static bool read_euro(mt_bert_spec *s, const kin *k, const mt_config *c, mt_arena *arena, mt_error *err)
{
    s->before = s->rms = true;
    s->class_activation = MT_ACT_GELU;
    return read_view(s, c, "late", err) && read_one_rope(s, c, k->theta, arena, err);
}

static bool read_gemma(mt_bert_spec *s, const kin *k, const mt_config *c, mt_arena *arena, mt_error *err)
{
    int64_t every, window;
    double scalar;
    s->before = s->rms = true;
    s->norm_offset = 1;
    s->embed_scale = (float)sqrt((double)s->hidden);
    if (!mt_config_float(c, "query_pre_attn_scalar", 256, 1e-6, 1e9, &scalar, err) ||
        !mt_config_int(c, key_of(c, "sliding_window_pattern", "_sliding_window_pattern"), 6, 1, INT64_MAX, &every,
                       err) ||
        !mt_config_int(c, "sliding_window", 4096, 0, INT64_MAX, &window, err))
        return false;
    s->scale = (float)(1 / sqrt(scalar));
    s->reach = (uint32_t)MT_MIN(window / 2, s->positions);
    return read_layers(s, c, every, 1, arena, err) &&
           read_two_ropes(s, c, "rope_theta", k->theta, "rope_local_base_freq", arena, err);
}

bool mt_bert_rotary_read(mt_bert_spec *s, const mt_config *c, mt_arena *arena, mt_error *err)
{
    static bool (*const reads[])(mt_bert_spec *, const kin *, const mt_config *, mt_arena *, mt_error *) = {
        [MT_BERT_NOMIC] = read_nomic,
        [MT_BERT_MODERN] = read_modern,
        [MT_BERT_EURO] = read_euro,
        [MT_BERT_GEMMA] = read_gemma,
    };
    const kin *k = kin_of(c);
    bool tanh;
    s->kind = k->kind;
    s->gated = true;
    return read_shape(s, k, c, err) &&
           mt_bert_read_activation(c, key_of(c, k->act_key, "activation_function"), k->act, &tanh, &s->activation,
                                   err) &&
           (!tanh || mt_fail(err, MT_E_UNSUPPORTED, "\"%s\" is \"tanh\"; known are gelu, gelu_new, silu and relu",
                             k->act_key)) &&
           reads[k->kind](s, k, c, arena, err);
}

/* ---- tensors ---- */

/* The first of two names that the checkpoint has; the first of all where it has neither. */
static const char *either(mt_bert_names *n, const char *name, const char *other)
{
    return !mt_bind_has(n->b, mt_bert_path(n, name, "")) && mt_bind_has(n->b, mt_bert_path(n, other, "")) ? other
                                                                                                          : name;
}

static void norm(mt_bert_names *n, const char *name, size_t width, mt_bert_norm *out)
{
    out->w = mt_bind_vector(n->b, mt_bert_path(n, name, ".weight"), width);
    if (mt_bind_has(n->b, mt_bert_path(n, name, ".bias")))
        out->bias = mt_bind_vector(n->b, mt_bert_path(n, name, ".bias"), width);
}

static void plain(mt_bert_names *n, const char *name, size_t rows, size_t cols, mt_bert_dense *out)
{
    mt_bert_bind_dense(n, name, rows, cols, false, out);
}

/* Several matrices of `rows` rows that are stored as one. */
static void joined(mt_bert_names *n, const char *name, size_t count, size_t rows, size_t cols,
                   mt_bert_dense *const *out)
{
    mt_bert_dense all = {0};
    plain(n, name, count * rows, cols, &all);
    for (size_t i = 0; i < count && all.w.n; i++)
        *out[i] =
            (mt_bert_dense){.w = mt_mat_rows(&all.w, i * rows, rows), .bias = all.bias ? all.bias + i * rows : NULL};
}

static void attention(mt_bert_names *n, const mt_bert_spec *s, mt_bert_layer_weights *w)
{
    const size_t query = (size_t)s->heads * s->head_dim, key = (size_t)s->kv_heads * s->head_dim;
    if (mt_bind_has(n->b, mt_bert_path(n, "attn.Wqkv", ""))) {
        joined(n, "attn.Wqkv", 3, query, s->hidden, (mt_bert_dense *[]){&w->q, &w->k, &w->v});
    } else {
        plain(n, "self_attn.q_proj", query, s->hidden, &w->q);
        plain(n, "self_attn.k_proj", key, s->hidden, &w->k);
        plain(n, "self_attn.v_proj", key, s->hidden, &w->v);
    }
    plain(n, either(n, "self_attn.o_proj", s->kind == MT_BERT_MODERN ? "attn.Wo" : "attn.out_proj"), s->hidden, query,
          &w->o);
}

static void modern_layer(mt_bert_names *n, const mt_bert_spec *s, mt_bert_layer_weights *w)
{
    /* none in front of the first layer's attention */
    if (mt_bind_has(n->b, mt_bert_path(n, "attn_norm", "")))
        norm(n, "attn_norm", s->hidden, &w->attn_norm);
    norm(n, "mlp_norm", s->hidden, &w->norm);
    joined(n, "mlp.Wi", 2, s->ffn, s->hidden, (mt_bert_dense *[]){&w->gate, &w->up});
    plain(n, "mlp.Wo", s->hidden, s->ffn, &w->down);
}

static void nomic_layer(mt_bert_names *n, const mt_bert_spec *s, mt_bert_layer_weights *w)
{
    norm(n, either(n, "post_attention_layernorm", "norm1"), s->hidden, &w->attn_norm);
    norm(n, either(n, "post_mlp_layernorm", "norm2"), s->hidden, &w->norm);
    plain(n, either(n, "mlp.gate_proj", "mlp.fc12"), s->ffn, s->hidden, &w->gate);
    plain(n, either(n, "mlp.up_proj", "mlp.fc11"), s->ffn, s->hidden, &w->up);
    plain(n, either(n, "mlp.down_proj", "mlp.fc2"), s->hidden, s->ffn, &w->down);
}

/* EuroBERT's layers are Llama's; Gemma's have more norms. */
static void llama_layer(mt_bert_names *n, const mt_bert_spec *s, mt_bert_layer_weights *w)
{
    const bool gemma = s->kind == MT_BERT_GEMMA;
    norm(n, "input_layernorm", s->hidden, &w->attn_norm);
    norm(n, gemma ? "pre_feedforward_layernorm" : "post_attention_layernorm", s->hidden, &w->norm);
    plain(n, "mlp.gate_proj", s->ffn, s->hidden, &w->gate);
    plain(n, "mlp.up_proj", s->ffn, s->hidden, &w->up);
    plain(n, "mlp.down_proj", s->hidden, s->ffn, &w->down);
    if (!gemma)
        return;
    norm(n, "post_attention_layernorm", s->hidden, &w->attn_after);
    norm(n, "post_feedforward_layernorm", s->hidden, &w->after);
    w->q_norm = mt_bind_vector(n->b, mt_bert_path(n, "self_attn.q_norm", ".weight"), s->head_dim);
    w->k_norm = mt_bind_vector(n->b, mt_bert_path(n, "self_attn.k_norm", ".weight"), s->head_dim);
}

static void classifier(mt_bert_names *n, const mt_bert_spec *s, mt_bert_weights *w)
{
    if (s->kind == MT_BERT_NOMIC)
        plain(n, "pooler.dense", s->hidden, s->hidden, &w->dense);
    n->prefix[0] = 0;
    if (s->kind != MT_BERT_NOMIC)
        plain(n, s->kind == MT_BERT_MODERN ? "head.dense" : "dense", s->hidden, s->hidden, &w->dense);
    if (s->kind == MT_BERT_MODERN)
        norm(n, "head.norm", s->hidden, &w->class_norm);
    plain(n, "classifier", s->labels, s->hidden, &w->out);
}

/* The embeddings, and the norm behind the last layer. */
static void ends(mt_bert_names *n, const mt_bert_spec *s, mt_bert_weights *w)
{
    static const char *const words[] = {[MT_BERT_NOMIC] = "embeddings.word_embeddings",
                                        [MT_BERT_MODERN] = "embeddings.tok_embeddings",
                                        [MT_BERT_EURO] = "embed_tokens",
                                        [MT_BERT_GEMMA] = "embed_tokens"};
    mt_bind_matrix(n->b, mt_bert_path(n, words[s->kind], ""), s->vocab, s->hidden, &w->words);
    if (s->kind == MT_BERT_NOMIC) {
        mt_bind_matrix(n->b, mt_bert_path(n, "embeddings.token_type_embeddings", ""), s->types, s->hidden, &w->types);
        norm(n, either(n, "embeddings.LayerNorm", "emb_ln"), s->hidden, &w->norm);
    } else if (s->kind == MT_BERT_MODERN) {
        norm(n, "embeddings.norm", s->hidden, &w->norm);
        norm(n, "final_norm", s->hidden, &w->last);
    } else {
        norm(n, "norm", s->hidden, &w->last);
    }
}

void mt_bert_rotary_bind(mt_bert_names *n, const mt_bert_spec *s, const char *prefix, mt_bert_weights *w)
{
    static void (*const layers[])(mt_bert_names *, const mt_bert_spec *, mt_bert_layer_weights *) = {
        [MT_BERT_NOMIC] = nomic_layer,
        [MT_BERT_MODERN] = modern_layer,
        [MT_BERT_EURO] = llama_layer,
        [MT_BERT_GEMMA] = llama_layer,
    };
    snprintf(n->prefix, sizeof(n->prefix), "%s", prefix);
    ends(n, s, w);
    const bool within = mt_bind_has(n->b, mt_bert_path(n, "encoder.layers.0.norm1", ""));
    for (size_t l = 0; l < s->layers; l++) {
        snprintf(n->prefix, sizeof(n->prefix), "%s%slayers.%zu.", prefix, within ? "encoder." : "", l);
        attention(n, s, &w->layer[l]);
        layers[s->kind](n, s, &w->layer[l]);
    }
    snprintf(n->prefix, sizeof(n->prefix), "%s", prefix);
    if (s->labels)
        classifier(n, s, w);
}
