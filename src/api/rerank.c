/* The dialects of POST /v1/rerank and /v2/rerank as Cohere has them, and of /rerank as vLLM and Jina have it: scores of
   how well each document answers a query, best first. They differ in their defaults. */
#include <stdlib.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/fields.h"
#include "api/pairs.h"
#include "base/alloc.h"
#include "base/json_tree.h"
#include "base/json_write.h"

#define SEARCH_UNIT 100    /* documents that Cohere counts as one search */
#define LONG_DOCUMENT 4096 /* tokens of a document that are used by default in Cohere's second version */

/* 0 means all, as with vLLM. */
static bool read_top(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return mt_failure_value(why, name, "is no positive integer: send one");
    if (json_integer_value(value) > 0)
        json_object_set_new(ask->extra, name, json_integer(json_integer_value(value)));
    return true;
}

static bool read_return(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    if (!json_is_boolean(value))
        return mt_failure_type(why, name, value, "true or false");
    json_object_set_new(ask->extra, "returned", json_boolean(json_is_true(value)));
    return true;
}

/* Of documents that are objects only "text" is used, so rank_fields may name only that. */
static bool read_fields(mt_ask *ask, const char *name, const json_t *value, mt_failure *why)
{
    const char *only = mt_json_word(json_array_get(value, 0));

    (void)ask;
    if (json_array_size(value) == 1 && only && strcmp(only, "text") == 0)
        return true;
    return mt_failure_unsupported(why, name, "is not supported: put what counts into \"text\", and leave it out");
}

static const mt_field fields[] = {
    MT_FIELD_OTHER_ROW("top_n", read_top),
    MT_FIELD_OTHER_ROW("return_documents", read_return),
    MT_FIELD_OTHER_ROW("rank_fields", read_fields),
    MT_FIELD_REFUSED_ROW("max_chunks_per_doc", 1),
};

/* Keeps the documents for the answer, where they are to be returned: objects as they are, texts as {"text":..}. */
static void keep_documents(mt_ask *ask)
{
    const json_t *documents = json_object_get(ask->body, "documents");
    json_t *kept = json_array();

    json_object_set_new(ask->extra, "documents", kept);
    for (size_t i = 0; i < ask->prompt_count; i++) {
        json_t *document = json_is_array(documents) ? json_array_get(documents, i) : (json_t *)(uintptr_t)documents;

        if (json_is_object(document))
            json_array_append(kept, document);
        else
            json_array_append_new(kept, json_pack("{s:O}", "text", document));
    }
}

static bool read_query(const mt_ask *ask, mt_failure *why)
{
    const json_t *query = mt_body_get(ask->body, "query");

    if (!query)
        return mt_failure_field(why, "missing_required_parameter", "query", "is missing: send a string");
    return json_is_string(query) || mt_failure_type(why, "query", query, "a string");
}

static bool read(mt_ask *ask, mt_failure *why)
{
    static const char *const names[] = {"query", "documents", NULL};
    const mt_field_table tables[] = {mt_fields_vectors, mt_fields_scores, {fields, MT_COUNT(fields)}};

    ask->form.vectors = ask->scores = true;
    if (!mt_fields_read(ask, tables, MT_COUNT(tables), names, NULL, why) || !read_query(ask, why) ||
        !mt_pairs_read(ask, names, why))
        return false;
    if (json_is_true(json_object_get(ask->extra, "returned")))
        keep_documents(ask);
    return true;
}

static bool read_plain(mt_ask *ask, mt_failure *why)
{
    ask->extra = json_pack("{s:b}", "returned", 1);
    return read(ask, why);
}

static bool read_first(mt_ask *ask, mt_failure *why)
{
    ask->extra = json_pack("{s:s}", "version", "1");
    return read(ask, why);
}

/* A text that is too long is cut by default. */
static bool read_second(mt_ask *ask, mt_failure *why)
{
    ask->extra = json_pack("{s:s}", "version", "2");
    ask->truncate = MT_TRUNCATE_FIT;
    ask->max_document = LONG_DOCUMENT;
    return read(ask, why);
}

typedef struct ranked {
    size_t index;
    double score;
} ranked;

static int compare(const void *x, const void *y)
{
    const ranked *a = x, *b = y;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static void add_result(const mt_answer *a, const ranked *r, mt_buf *out)
{
    const json_t *document = json_array_get(json_object_get(a->extra, "documents"), r->index);

    mt_json_write(out, "{'index':%zu,'relevance_score':%.9g", r->index, r->score);
    if (document) {
        mt_json_write(out, "'document':");
        mt_json_tree_write(out, document);
    }
    mt_json_write(out, "}");
}

static void add_results(const mt_answer *a, mt_buf *out)
{
    const json_t *given = json_object_get(a->extra, "top_n");
    const size_t count = mt_pairs_count(a), top = given ? (size_t)json_integer_value(given) : count;
    ranked *order = mt_alloc_array(count, sizeof(*order));

    for (size_t i = 0; i < count; i++)
        order[i] = (ranked){.index = i, .score = mt_pairs_score(a, i)};
    qsort(order, count, sizeof(*order), compare);
    for (size_t i = 0; i < count && i < top; i++)
        add_result(a, &order[i], out);
    mt_free(order);
}

static void whole(mt_answer *a, mt_buf *out)
{
    const size_t tokens = mt_answer_usage(a).prompt;
    const char *version = json_string_value(json_object_get(a->extra, "version"));

    mt_json_write(out, "{'id':%s,'model':%s,'results':[", a->id, a->model);
    add_results(a, out);
    mt_json_write(out, "],'usage':{'prompt_tokens':%zu,'total_tokens':%zu}", tokens, tokens);
    if (version)
        mt_json_write(out,
                      "'meta':{'api_version':{'version':%s},'billed_units':{'search_units':%zu},"
                      "'tokens':{'input_tokens':%zu}}",
                      version, (mt_pairs_count(a) + SEARCH_UNIT - 1) / SEARCH_UNIT, tokens);
    mt_json_write(out, "}");
}

#define DIALECT(reader)                                                                         \
    {                                                                                           \
        .name = "rerank", .prefix = "rerank-", .read = reader, .vectors = true, .whole = whole, \
        .error = mt_failure_write                                                               \
    }

const mt_dialect mt_rerank = DIALECT(read_plain), mt_rerank_v1 = DIALECT(read_first),
                 mt_rerank_v2 = DIALECT(read_second);
