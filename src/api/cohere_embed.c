/* The dialect of POST /v2/embed, as Cohere defines it: vectors of texts in one or several forms. */
#include <string.h>

#include "api/answer.h"
#include "api/chat_body.h"
#include "api/fields.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "base/words.h"
#include "weights/limits.h"

/* One bit for each number, set where it is above 0, the first in the highest bit; numbers that fill no byte are left
   out. offset: what is taken away from each byte. */
static void add_bits(mt_buf *out, const float *vector, size_t count, int offset)
{
    mt_json_write(out, "[");
    for (size_t i = 0; i + 8 <= count; i += 8) {
        int byte = 0;

        for (size_t k = 0; k < 8; k++)
            byte = 2 * byte + (vector[i + k] > 0);
        mt_json_write(out, "%d", byte - offset);
    }
    mt_json_write(out, "]");
}

static void add_signed(mt_buf *out, const float *vector, size_t count)
{
    add_bits(out, vector, count, 128);
}

static void add_unsigned(mt_buf *out, const float *vector, size_t count)
{
    add_bits(out, vector, count, 0);
}

/* The forms of a vector. Cohere's int8 and uint8 need ranges that only Cohere knows for its models. */
static const struct {
    const char *name;
    void (*write)(mt_buf *out, const float *vector, size_t count);
} forms[] = {
    {"float", mt_write_floats}, {"base64", mt_write_base64}, {"binary", add_signed}, {"ubinary", add_unsigned}};

static bool is_form(const char *name)
{
    for (size_t i = 0; name && i < MT_COUNT(forms); i++)
        if (strcmp(name, forms[i].name) == 0)
            return true;
    return false;
}

static bool read_forms(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const size_t count = json_array_size(value);

    if (!json_is_array(value))
        return mt_failure_type(why, name, value, "a list of float, base64, binary and ubinary");
    if (count == 0)
        return mt_failure_value(why, name, "is empty: send float, base64, binary or ubinary in it");
    for (size_t i = 0; i < count; i++) {
        const char *form = mt_json_word(json_array_get(value, i));

        if (!is_form(form))
            return mt_failure_unsupported(why, name,
                                          "has a type that is not supported: send float, base64, binary or ubinary");
        json_object_set_new(ask->extra, form, json_true());
    }
    return true;
}

/* Models that want a prefix for each purpose get it from the client, in the text, as in /v1/embeddings. */
static bool read_purpose(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    static const char *const purposes[] = {"search_document", "search_query", "classification", "clustering", NULL};

    (void)ask;
    return mt_words_have(purposes, mt_json_word(value)) ||
           mt_failure_unsupported(why, name,
                                  "is not supported: send search_document, search_query, classification or clustering");
}

static const mt_field fields[] = {
    MT_FIELD_OTHER_ROW("embedding_types", read_forms),
    MT_FIELD_OTHER_ROW("input_type", read_purpose),
    MT_FIELD_INT_ROW("output_dimension", dimensions, 1, MT_LIMIT_WIDTH),
    MT_FIELD_REFUSED_ROW("images", 0),
    MT_FIELD_REFUSED_ROW("inputs", 0),
};

/* The texts, which the answer repeats. */
static bool read_texts(mt_ask *ask, mt_failure *why)
{
    const json_t *texts = mt_body_get(ask->body, "texts");

    if (!texts)
        return mt_failure_field(why, "missing_required_parameter", "texts", "is missing: send a list of strings");
    for (size_t i = 0; i < json_array_size(texts); i++)
        if (!json_is_string(json_array_get(texts, i)))
            return mt_failure_field(why, "invalid_type", "texts", "has an element that is no string: send strings");
    if (!json_is_array(texts))
        return mt_failure_type(why, "texts", texts, "a list of strings");
    json_object_set(ask->extra, "texts", (json_t *)(uintptr_t)texts);
    return mt_openai_prompts_read(ask, "texts", texts, why);
}

/* A text that is too long is cut at its end by default. */
static bool read(mt_ask *ask, mt_failure *why)
{
    static const char *const elsewhere[] = {"texts", NULL};
    const mt_field_table tables[] = {mt_fields_vectors, {fields, MT_COUNT(fields)}};

    ask->form.vectors = true;
    ask->text_field = "texts";
    ask->truncate = MT_TRUNCATE_FIT;
    ask->side = MT_TRUNCATE_RIGHT;
    ask->extra = json_object();
    if (!mt_fields_read(ask, tables, MT_COUNT(tables), elsewhere, NULL, why) || !read_texts(ask, why))
        return false;
    if (!json_object_get(ask->body, "embedding_types"))
        json_object_set_new(ask->extra, "float", json_true());
    return true;
}

static void whole(mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_usage(a).prompt;
    size_t width = 0;

    for (size_t i = 0; i < a->choice_count; i++)
        width = mt_answer_embedding(a, &a->choices[i]);
    mt_json_write(out, "{'id':%s,'response_type':'embeddings_by_type','embeddings':{", a->id);
    for (size_t k = 0; k < MT_COUNT(forms); k++) {
        if (!json_object_get(a->extra, forms[k].name))
            continue;
        mt_json_write(out, "%s:[", forms[k].name);
        for (size_t i = 0; i < a->choice_count; i++)
            forms[k].write(out, a->choices[i].vector, width);
        mt_json_write(out, "]");
    }
    mt_json_write(out, "},'texts':");
    mt_json_tree_write(out, json_object_get(a->extra, "texts"));
    mt_json_write(out,
                  "'meta':{'api_version':{'version':'2'},'billed_units':{'input_tokens':%zu,'image_tokens':0},"
                  "'tokens':{'input_tokens':%zu}}}",
                  tokens, tokens);
}

const mt_dialect mt_cohere_embed = {
    .name = "embeddings", .prefix = "embd-", .vectors = true, .read = read, .whole = whole, .error = mt_failure_write};
