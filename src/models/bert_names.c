/* What the files that read encoders share (bert_inside.h). */
#include <stdio.h>
#include <string.h>

#include "models/bert_inside.h"

bool mt_bert_read_activation(const mt_config *c, const char *key, const char *usual, bool *tanh, mt_activation *out,
                             mt_error *err)
{
    static const struct {
        const char *name;
        mt_activation act;
    } known[] = {{"gelu", MT_ACT_GELU}, {"gelu_new", MT_ACT_GELU_TANH}, {"gelu_pytorch_tanh", MT_ACT_GELU_TANH},
                 {"silu", MT_ACT_SILU}, {"swish", MT_ACT_SILU},         {"swiglu", MT_ACT_SILU},
                 {"relu", MT_ACT_RELU}, {"linear", MT_ACT_NONE},        {"quick_gelu", MT_ACT_QUICK_GELU}};
    const char *name = mt_config_string(c, key, usual);
    *tanh = strcmp(name, "tanh") == 0;
    *out = MT_ACT_NONE;
    for (size_t i = 0; i < MT_COUNT(known); i++)
        if (strcmp(name, known[i].name) == 0) {
            *out = known[i].act;
            return true;
        }
    return *tanh ||
           mt_fail(err, MT_E_UNSUPPORTED, "\"%s\" is \"%.64s\"; known are gelu, gelu_new, silu and relu", key, name);
}

const char *mt_bert_path(mt_bert_names *n, const char *name, const char *suffix)
{
    snprintf(n->path, sizeof(n->path), "/%s%s%s", n->prefix, name, suffix);
    return n->path;
}

void mt_bert_bind_dense(mt_bert_names *n, const char *name, size_t rows, size_t cols, bool biased, mt_bert_dense *out)
{
    mt_bind_matrix(n->b, mt_bert_path(n, name, ""), rows, cols, &out->w);
    if (biased || mt_bind_has(n->b, mt_bert_path(n, name, ".bias")))
        out->bias = mt_bind_vector(n->b, mt_bert_path(n, name, ".bias"), rows);
}
