/* Fields that calls for embeddings and for scores share. */
#include <string.h>

#include "api/fields.h"
#include "base/json_tree.h"
#include "base/words.h"
#include "sample/limits.h"
#include "weights/limits.h"

/* Cohere's words, or a boolean: whether a text that is too long is cut at its start or its end. */
static bool read_truncate(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    static const struct {
        const char *word;
        int64_t truncate;
        mt_truncation_side side;
    } words[] = {{"NONE", MT_TRUNCATE_NONE, MT_TRUNCATE_DEFAULT},
                 {"START", MT_TRUNCATE_FIT, MT_TRUNCATE_LEFT},
                 {"END", MT_TRUNCATE_FIT, MT_TRUNCATE_RIGHT}};
    const char *word = json_is_boolean(value) ? json_is_true(value) ? "END" : "NONE" : mt_json_word(value);

    for (size_t i = 0; word && i < MT_COUNT(words); i++)
        if (strcmp(word, words[i].word) == 0) {
            ask->truncate = words[i].truncate;
            ask->side = words[i].side;
            return true;
        }
    return mt_failure_value(why, name, "is none of NONE, START and END: send one");
}

static bool read_activation(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_boolean(value))
        return mt_failure_type(why, name, value, "true or false");
    ask->form.scaling = json_is_true(value) ? MT_SCALING_ON : MT_SCALING_OFF;
    return true;
}

static const mt_field fields[] = {
    MT_FIELD_STRING_ROW("model", model),
    MT_FIELD_STRING_ROW("user", user),
    MT_FIELD_STRING_ROW("cache_salt", cache_salt),
    MT_FIELD_INT_ROW("priority", priority, INT32_MIN, INT32_MAX),
    MT_FIELD_OTHER_ROW("truncate", read_truncate),
    MT_FIELD_OTHER_ROW("truncate_prompt_tokens", mt_read_truncate),
    MT_FIELD_OTHER_ROW("truncation_side", mt_read_truncation_side),
    MT_FIELD_OTHER_ROW("use_activation", read_activation),
    MT_FIELD_OTHER_ROW("normalize", read_activation), /* as vLLM had it before */
    MT_FIELD_OTHER_ROW("activation", read_activation),
    MT_FIELD_OTHER_ROW("softmax", read_activation),
    MT_FIELD_REFUSED_ROW("messages", 0),
    MT_FIELD_REFUSED_ROW("instruction", 0),
    MT_FIELD_REFUSED_ROW("chat_template", 0),
    MT_FIELD_REFUSED_ROW("chat_template_kwargs", 0),
    MT_FIELD_REFUSED_ROW("mm_processor_kwargs", 0),
};
const mt_field_table mt_fields_vectors = {fields, MT_COUNT(fields)};

static bool read_format(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const char *format = mt_json_word(value);

    if (!format || (strcmp(format, "float") != 0 && strcmp(format, "base64") != 0))
        return mt_failure_value(why, name, "is neither \"float\" nor \"base64\": send one");
    if (strcmp(format, "base64") == 0)
        json_object_set_new(ask->extra, "base64", json_true());
    return true;
}

/* vLLM's fields for the byte format of base64: only the usual one is supported. */
static bool read_spelling(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    static const char *const taken[] = {"float32", "native", "little", NULL};

    (void)ask;
    return mt_words_have(taken, mt_json_word(value)) ||
           mt_failure_unsupported(why, name,
                                  "is not supported: leave it out, and take 32-bit floats, the lowest byte first");
}

static const mt_field encoding[] = {
    MT_FIELD_INT_ROW("dimensions", dimensions, 1, MT_LIMIT_WIDTH),
    MT_FIELD_BOOL_ROW("add_special_tokens", add_special_tokens),
    MT_FIELD_OTHER_ROW("encoding_format", read_format),
    MT_FIELD_OTHER_ROW("embed_dtype", read_spelling),
    MT_FIELD_OTHER_ROW("endianness", read_spelling),
};
const mt_field_table mt_fields_encoding = {encoding, MT_COUNT(encoding)};

static const mt_field scored[] = {
    MT_FIELD_INT_ROW("max_tokens_per_doc", max_document, 0, MT_LIMIT_CONTEXT),
    MT_FIELD_INT_ROW("max_tokens_per_query", max_query, 0, MT_LIMIT_CONTEXT),
};
const mt_field_table mt_fields_scores = {scored, MT_COUNT(scored)};
