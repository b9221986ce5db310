/* The dialects of POST /v1beta/models/{model}:embedContent and :batchEmbedContents, as Google defines them. */
#include <string.h>

#include "api/chat_body.h"
#include "api/dialect.h"
#include "api/fields.h"
#include "api/gemini.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "api/openai_prompt.h"
#include "api/write.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "weights/limits.h"

static const mt_field fields[] = {
    MT_FIELD_INT_ROW("dimensions", dimensions, 1, MT_LIMIT_WIDTH),
};

/* A new string of the texts of a content's parts, without anything between them; NULL: *why. place: of the content, for
   errors. */
static json_t *text_of(const json_t *content, const char *place, mt_failure *why)
{
    const json_t *parts = mt_body_get(content, "parts");
    mt_buf text = {.limit = MT_LIMIT_REQUEST_MEMORY};
    bool ok = json_array_size(parts) > 0;
    json_t *made;

    for (size_t i = 0; ok && i < json_array_size(parts); i++) {
        const json_t *piece = mt_body_get(json_array_get(parts, i), "text");

        ok = json_is_string(piece);
        mt_buf_add(&text, json_string_value(piece) ? json_string_value(piece) : "", json_string_length(piece));
    }
    made = ok && !text.full ? json_stringn(text.data ? text.data : "", text.len) : NULL;
    mt_buf_free(&text);
    if (!ok)
        mt_failure_value(why, place, "is no content whose parts are all text: send such");
    else if (!made)
        mt_failure_memory(why, place);
    return made;
}

/* How many numbers a vector is to have, of a request or of its "embedContentConfig". Notes what else they have. */
static const json_t *dimensions_of(mt_ask *ask, const char *prefix, const json_t *request)
{
    static const char *const names[] = {"content", "embedContentConfig", "model", "outputDimensionality", "timeout",
                                        NULL},
                             *const inside[] = {"outputDimensionality", NULL};
    const json_t *config = mt_body_get(request, "embedContentConfig"),
                 *dimensions = mt_body_get(request, "outputDimensionality");

    mt_fields_note(ask, prefix, request, NULL, 0, (const char *const *const[3]){names});
    mt_fields_note(ask, "embedContentConfig.", config, NULL, 0, (const char *const *const[3]){inside});
    return dimensions ? dimensions : mt_body_get(config, "outputDimensionality");
}

/* Reads the texts, whose content stands in `field`, and how many numbers each vector is to have (NULL: all). */
static bool read_texts(mt_ask *ask, const json_t *body, const char *field, const json_t *texts,
                       const json_t *dimensions, mt_failure *why)
{
    const mt_field_table tables[] = {mt_fields_vectors, {fields, MT_COUNT(fields)}};
    json_t *settings = json_object();

    ask->body = mt_ask_own(ask, settings);
    ask->form.vectors = true;
    ask->text_field = field;
    mt_body_copy(settings, body, "model");
    if (dimensions)
        json_object_set_new(settings, "dimensions", mt_body_share(dimensions));
    for (size_t i = 0; i < MT_COUNT(tables); i++)
        if (!mt_fields_read_table(ask, &tables[i], why)) {
            if (strcmp(why->param, "dimensions") == 0)
                mt_failure_rename(why, "outputDimensionality");
            return false;
        }
    return mt_openai_prompts_read(ask, field, texts, why);
}

static bool read_one(mt_ask *ask, const json_t *body, mt_failure *why)
{
    json_t *text = text_of(mt_body_get(body, "content"), "content", why);

    if (!text)
        return false;
    mt_ask_own(ask, text);
    return read_texts(ask, body, "content", text, dimensions_of(ask, "", body), why);
}

/* Whether a request of a batch asks the model that the path names; it may begin with "models/", and be missing. */
static bool is_model(const json_t *request, const char *model)
{
    static const char prefix[] = "models/";
    const char *name = mt_body_text(request, "model");

    if (strncmp(name, prefix, sizeof(prefix) - 1) == 0)
        name += sizeof(prefix) - 1;
    return !*name || strcmp(name, model) == 0;
}

/* All requests of a batch have to want vectors of one length, of one model. */
static bool read_batch(mt_ask *ask, const json_t *body, mt_failure *why)
{
    static const char *const names[] = {"model", "requests", "timeout", NULL};
    const json_t *requests = mt_body_get(body, "requests"), *dimensions = NULL;
    json_t *texts = json_array();

    mt_ask_own(ask, texts);
    mt_fields_note(ask, "", body, NULL, 0, (const char *const *const[3]){names});
    if (!json_is_array(requests))
        return mt_failure_type(why, "requests", requests, "a list of requests");
    for (size_t i = 0; i < json_array_size(requests); i++) {
        const json_t *request = json_array_get(requests, i), *wanted = dimensions_of(ask, "requests[].", request);
        json_t *text = text_of(mt_body_get(request, "content"), "requests[].content", why);

        if (!text)
            return false;
        json_array_append_new(texts, text);
        if (!is_model(request, mt_body_text(body, "model")))
            return mt_failure_value(why, "requests[].model", "is another than the path has: send one request for each");
        if (i > 0 && !(wanted ? json_equal(wanted, dimensions) : !dimensions))
            return mt_failure_value(why, "requests[].outputDimensionality",
                                    "differs within the list: send one request for each");
        dimensions = wanted;
    }
    return read_texts(ask, body, "requests", texts, dimensions, why);
}

static bool read_guarded(mt_ask *ask, bool (*read)(mt_ask *ask, const json_t *body, mt_failure *why), mt_failure *why)
{
    bool ok;

    mt_json_guard_begin();
    ok = read(ask, mt_ask_own(ask, mt_gemini_camel(ask->body)), why);
    return mt_json_guard_end() ? ok : mt_failure_memory(why, NULL);
}

static bool read_embed(mt_ask *ask, mt_failure *why)
{
    return read_guarded(ask, read_one, why);
}

static bool read_embed_batch(mt_ask *ask, mt_failure *why)
{
    return read_guarded(ask, read_batch, why);
}

static void add_vector(mt_answer *a, mt_choice *c, mt_buf *out)
{
    const size_t count = mt_answer_embedding(a, c);

    mt_json_write(out, "{'values':");
    mt_write_floats(out, c->vector, count);
    mt_json_write(out, "}");
}

static void close_answer(const mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_usage(a).prompt;

    mt_json_write(out, "'usageMetadata':{'promptTokenCount':%zu,'totalTokenCount':%zu}}", tokens, tokens);
}

static void whole_embed(mt_answer *a, mt_buf *out)
{
    mt_json_write(out, "{'embedding':");
    add_vector(a, &a->choices[0], out);
    close_answer(a, out);
}

static void whole_batch(mt_answer *a, mt_buf *out)
{
    mt_json_write(out, "{'embeddings':[");
    for (size_t i = 0; i < a->choice_count; i++)
        add_vector(a, &a->choices[i], out);
    mt_json_write(out, "]");
    close_answer(a, out);
}

#define DIALECT(reader, writer) \
    .vectors = true, .prefix = "gemini-", .read = reader, .whole = writer, .error = mt_gemini_error

const mt_dialect mt_gemini_embed = {.name = "gemini-embed", DIALECT(read_embed, whole_embed)};
const mt_dialect mt_gemini_embed_batch = {.name = "gemini-embed-batch", DIALECT(read_embed_batch, whole_batch)};
