/* POST /v1/rerank, as Cohere defined it and Jina and vLLM have it: how well each document answers a query. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer.h"
#include "api/fields.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/alloc.h"
#include "base/limits.h"

static bool read_query(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    ask->query = (mt_chat_text){.data = json_string_value(value), .len = json_string_length(value)};
    return ask->query.data ||
           mt_failure_set(why, 400, "invalid_type", name, "\"%s\" is %s: send a string", name, mt_json_kind(value));
}

static bool read_top(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1)
        return mt_failure_set(why, 400, "invalid_value", name, "\"%s\" is no positive integer: send one", name);
    json_object_set_new(ask->extra, name, json_integer(json_integer_value(value)));
    return true;
}

static bool read_return(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_boolean(value))
        return mt_failure_set(why, 400, "invalid_type", name, "\"%s\" is %s: send true or false", name,
                              mt_json_kind(value));
    if (json_is_true(value))
        json_object_set_new(ask->extra, "texts", json_array());
    return true;
}

static const mt_field fields[] = {
    MT_FIELD_STRING_ROW("model", model),
    MT_FIELD_STRING_ROW("user", user),
    MT_FIELD_INT_ROW("priority", priority, INT32_MIN, INT32_MAX),
    MT_FIELD_OTHER_ROW("query", read_query),
    MT_FIELD_OTHER_ROW("top_n", read_top),
    MT_FIELD_OTHER_ROW("return_documents", read_return),
};

/* Texts, or objects that have one. What is sent back is kept until then. */
static json_t *texts_of(mt_ask *ask, const json_t *documents)
{
    json_t *kept = json_object_get(ask->extra, "texts"), *texts = json_array();

    for (size_t i = 0; i < json_array_size(documents); i++) {
        json_t *document = json_array_get(documents, i), *text = json_object_get(document, "text");

        json_array_append(texts, text ? text : document);
        if (kept)
            json_array_append(kept, text ? text : document);
    }
    return texts;
}

/* Of the documents' strings only references are taken, which the body outlives. */
static bool read_documents(mt_ask *ask, mt_failure *why)
{
    const json_t *documents = json_object_get(ask->body, "documents");
    json_t *texts;
    bool ok = true;

    if (!json_is_array(documents))
        return mt_failure_set(why, 400, "invalid_type", "documents", "\"documents\" is %s: send a list of strings",
                              mt_json_kind(documents));
    texts = texts_of(ask, documents);
    for (size_t i = 0; ok && i < json_array_size(texts); i++)
        ok = json_is_string(json_array_get(texts, i)) ||
             mt_failure_set(why, 400, "invalid_type", "documents", "\"documents\" has %s in it: send strings",
                            mt_json_kind(json_array_get(texts, i)));
    ok = ok && mt_openai_prompts_read(ask, "documents", texts, why);
    json_decref(texts);
    return ok;
}

static bool read(mt_ask *ask, mt_failure *why)
{
    static const char *const elsewhere[] = {"documents", NULL};

    ask->vectors = true;
    ask->extra = json_object();
    if (!mt_fields_read(ask, &(mt_field_table){fields, MT_COUNT(fields)}, 1, elsewhere, why))
        return false;
    if (!ask->query.data)
        return mt_failure_set(why, 400, "missing_required_parameter", "query", "\"query\" is missing: send a string");
    return read_documents(ask, why);
}

static int compare(const void *x, const void *y)
{
    const mt_choice *a = *(const mt_choice *const *)x, *b = *(const mt_choice *const *)y;

    if (a->vector[0] != b->vector[0])
        return a->vector[0] > b->vector[0] ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static void add_result(const mt_answer *a, const mt_choice *c, mt_buf *out)
{
    const json_t *text = json_array_get(json_object_get(a->extra, "texts"), c->index);

    mt_buf_printf(out, "{\"index\":%zu,\"relevance_score\":%.9g", c->index, 1 / (1 + exp(-(double)c->vector[0])));
    if (text) {
        mt_buf_puts(out, ",\"document\":{\"text\":");
        mt_buf_json_string(out, json_string_value(text), json_string_length(text));
        mt_buf_puts(out, "}");
    }
    mt_buf_puts(out, "}");
}

static void whole(mt_answer *a, mt_buf *out)
{
    const json_t *given = json_object_get(a->extra, "top_n");
    const size_t top = given ? (size_t)json_integer_value(given) : a->choice_count, tokens = mt_answer_prompt_tokens(a);
    const mt_choice **order = mt_alloc_array(a->choice_count, sizeof(*order));

    for (size_t i = 0; i < a->choice_count; i++)
        order[i] = &a->choices[i];
    qsort(order, a->choice_count, sizeof(*order), compare);
    mt_buf_printf(out, "{\"id\":\"%s\"", a->id);
    mt_write_string(out, "model", a->model);
    mt_buf_puts(out, ",\"results\":[");
    for (size_t i = 0; i < a->choice_count && i < top; i++) {
        mt_buf_puts(out, i ? "," : "");
        add_result(a, order[i], out);
    }
    mt_buf_printf(out, "],\"usage\":{\"prompt_tokens\":%zu,\"total_tokens\":%zu}}", tokens, tokens);
    mt_free(order);
}

const mt_dialect mt_rerank = {
    .name = "rerank", .prefix = "rerank-", .read = read, .whole = whole, .error = mt_failure_write};
