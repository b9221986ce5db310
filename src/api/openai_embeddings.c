/* The dialect of POST /v1/embeddings, as OpenAI defines it. */
#include <string.h>

#include "api/answer.h"
#include "api/fields.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "base/words.h"
#include "weights/limits.h"

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

static const mt_field fields[] = {
    MT_FIELD_INT_ROW("dimensions", dimensions, 1, MT_LIMIT_WIDTH),
    MT_FIELD_BOOL_ROW("add_special_tokens", add_special_tokens),
    MT_FIELD_OTHER_ROW("encoding_format", read_format),
    MT_FIELD_OTHER_ROW("embed_dtype", read_spelling),
    MT_FIELD_OTHER_ROW("endianness", read_spelling),
};

static bool read(mt_ask *ask, mt_failure *why)
{
    static const char *const elsewhere[] = {"input", NULL};
    const mt_field_table tables[] = {mt_fields_vectors, {fields, MT_COUNT(fields)}};

    ask->form.vectors = true;
    ask->text_field = "input";
    ask->extra = json_object();
    return mt_fields_read(ask, tables, MT_COUNT(tables), elsewhere, NULL, why) &&
           mt_openai_prompts_read(ask, "input", json_object_get(ask->body, "input"), why);
}

static void add_embedding(const mt_answer *a, mt_choice *c, mt_buf *out)
{
    const size_t count = mt_answer_embedding(a, c);

    mt_json_write(out, "{'object':'embedding','index':%zu,'embedding':", c->index);
    (json_object_get(a->extra, "base64") ? mt_write_base64 : mt_write_floats)(out, c->vector, count);
    mt_json_write(out, "}");
}

static void whole(mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_usage(a).prompt;

    mt_json_write(out, "{'id':%s,'object':'list','data':[", a->id);
    for (size_t i = 0; i < a->choice_count; i++)
        add_embedding(a, &a->choices[i], out);
    mt_json_write(out, "],'model':%s,'usage':{'prompt_tokens':%zu,'total_tokens':%zu}}", a->model, tokens, tokens);
}

const mt_dialect mt_openai_embeddings = {
    .name = "embeddings", .prefix = "embd-", .vectors = true, .read = read, .whole = whole, .error = mt_failure_write};
