/* Opens an encoder's checkpoint folder (encoder.h). */
#include "engine/encoder.h"

#include "weights/folder.h"

bool mt_encoder_known(const char *dir, bool *known, mt_error *err)
{
    mt_error why = {0};
    mt_config *config = mt_folder_config(dir, "config.json", &why);
    *known = config && mt_bert_known(config);
    mt_config_free(config);
    return why.code != MT_E_IO || mt_fail(err, MT_E_IO, "%s", why.text);
}

static bool bind(mt_encoder *n, const char *dir, mt_error *err)
{
    const mt_config *config = mt_checkpoint_config(n->checkpoint);
    if (!mt_bert_known(config))
        return mt_fail(
            err, MT_E_UNSUPPORTED,
            "\"%.200s\" is no encoder but of type \"%.64s\"; known are bert, roberta, xlm-roberta, camembert, "
            "nomic_bert, modernbert, eurobert and gemma3_text where it sees in both directions",
            dir, mt_config_string(config, "model_type", ""));
    return mt_bert_spec_read(&n->spec, config, n->arena, err) &&
           mt_bert_bind(&n->weights, &n->spec, n->checkpoint, n->arena, err);
}

bool mt_encoder_open(mt_encoder *n, const char *dir, mt_error *err)
{
    *n = (mt_encoder){.arena = mt_arena_new(0), .checkpoint = mt_checkpoint_open(dir, err)};
    if (n->checkpoint && bind(n, dir, err))
        return true;
    mt_encoder_close(n);
    return false;
}

bool mt_encoder_add(mt_encoder *n, const char *dir, mt_error *err)
{
    mt_checkpoint *c;
    if (n->after_count == MT_BERT_AFTER)
        return mt_fail(err, MT_E_UNSUPPORTED, "more than %d dense layers behind pooling", MT_BERT_AFTER);
    c = mt_checkpoint_open(dir, err);
    if (!c)
        return false;
    n->after[n->after_count++] = c;
    return mt_bert_bind_after(&n->weights, &n->spec, c, n->arena, err);
}

void mt_encoder_close(mt_encoder *n)
{
    for (size_t i = 0; i < n->after_count; i++)
        mt_checkpoint_close(n->after[i]);
    mt_checkpoint_close(n->checkpoint);
    mt_arena_free(n->arena);
    *n = (mt_encoder){0};
}

uint64_t mt_encoder_weights(const mt_encoder *n)
{
    uint64_t bytes = mt_checkpoint_bytes(n->checkpoint) + n->weights.cost.copied_bytes;
    for (size_t i = 0; i < n->after_count; i++)
        bytes += mt_checkpoint_bytes(n->after[i]);
    return bytes;
}
