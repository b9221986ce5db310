/* GET /v1/responses/{id}/input_items: the items that a response answered. They are kept as they were sent; members that
   clients may leave out are added here. */
#include <stdlib.h>
#include <string.h>

#include "api/chat_body.h"
#include "api/json_body.h"
#include "api/limits.h"
#include "api/recent.h"
#include "api/responses.h"
#include "api/store.h"
#include "base/json_tree.h"
#include "base/json_write.h"

bool mt_responses_missing(const char *id, mt_failure *why)
{
    return mt_failure_set(why, 404, "response_not_found", NULL, "no response \"%.60s\" is kept here", id);
}

static const char *type_of(const json_t *item)
{
    return json_object_get(item, "type") ? mt_body_text(item, "type") : "message";
}

/* An id by which find_item of responses_items.c finds the item again. */
static json_t *make_id(const json_t *item, const char *response, size_t index)
{
    static const char *const prefixes[][2] = {
        {"message", "msg"}, {"function_call", "fc"}, {"custom_tool_call", "ctc"}, {"reasoning", "rs"}};
    const char *random = strchr(response, '_'), *prefix = "item";

    for (size_t i = 0; i < MT_COUNT(prefixes); i++)
        if (strcmp(type_of(item), prefixes[i][0]) == 0)
            prefix = prefixes[i][1];
    return json_sprintf("%s_%s_i%zu", prefix, random ? random + 1 : response, index);
}

/* The content of a message that was sent as a string: a list with one part. */
static json_t *make_content(const char *role, const json_t *text)
{
    if (strcmp(role, "assistant") == 0)
        return json_pack("[{s:s, s:[], s:O}]", "type", "output_text", "annotations", "text", text);
    return json_pack("[{s:s, s:O}]", "type", "input_text", "text", text);
}

static json_t *make_item(const json_t *item, const char *response, size_t index)
{
    json_t *made = json_copy((json_t *)(uintptr_t)item);

    json_object_set_new(made, "type", json_string(type_of(item)));
    if (!json_is_string(json_object_get(made, "id")))
        json_object_set_new(made, "id", make_id(item, response, index));
    if (!json_object_get(made, "status"))
        json_object_set_new(made, "status", json_string("completed"));
    if (json_is_string(json_object_get(made, "content")))
        json_object_set_new(made, "content",
                            make_content(mt_body_text(item, "role"), json_object_get(made, "content")));
    return made;
}

json_t *mt_responses_inputs(const json_t *kept)
{
    const char *response = mt_body_text(json_object_get(kept, "response"), "id");
    const json_t *input = json_object_get(kept, "input");
    json_t *items = json_array(), *text;

    for (size_t i = 0; i < json_array_size(input); i++)
        if (strcmp(type_of(json_array_get(input, i)), "item_reference") != 0)
            json_array_append_new(items, make_item(json_array_get(input, i), response, i));
    if (json_is_string(input)) {
        text = json_pack("{s:s, s:O}", "role", "user", "content", input);
        json_array_append_new(items, make_item(text, response, 0));
        json_decref(text);
    }
    return items;
}

/* All items of a chain of responses, except the output of the last one. */
static json_t *all_items(const json_t *chain)
{
    json_t *all = json_array();

    for (size_t i = 0; i < json_array_size(chain); i++) {
        const json_t *kept = json_array_get(chain, i);
        json_t *inputs = mt_responses_inputs(kept);

        json_array_extend(all, inputs);
        json_decref(inputs);
        if (i + 1 < json_array_size(chain))
            json_array_extend(all, json_object_get(json_object_get(kept, "response"), "output"));
    }
    return all;
}

/* Which items a page has. */
typedef struct range {
    size_t count, begin, end; /* indexes in the order that is asked for */
    bool down;                /* newest first */
} range;

/* Item number i in the order that is asked for. */
static const json_t *at(const json_t *items, const range *r, size_t i)
{
    return json_array_get(items, r->down ? r->count - 1 - i : i);
}

static bool read_page(const mt_responses_page *page, const json_t *items, range *r, mt_failure *why)
{
    char *end = NULL;
    const long limit = page->limit ? strtol(page->limit, &end, 10) : MT_LIMIT_ITEMS_PAGE_DEFAULT;

    *r = (range){.count = json_array_size(items), .down = !page->order || strcmp(page->order, "desc") == 0};
    if (!r->down && strcmp(page->order, "asc") != 0)
        return mt_failure_value(why, "order", "is neither asc nor desc: send one of these");
    if (end && (end == page->limit || *end || limit < 1 || limit > MT_LIMIT_ITEMS_PAGE))
        return mt_failure_value(why, "limit", "is \"%.20s\": send a value from 1 to %d", page->limit,
                                MT_LIMIT_ITEMS_PAGE);
    while (page->after && r->begin < r->count && strcmp(mt_body_text(at(items, r, r->begin), "id"), page->after) != 0)
        r->begin++;
    if (page->after && r->begin == r->count)
        return mt_failure_set(why, 404, "item_not_found", "after", "no item \"%.60s\" is among those of the response",
                              page->after);
    r->begin += page->after != NULL;
    r->end = r->count - r->begin > (size_t)limit ? r->begin + (size_t)limit : r->count;
    return true;
}

static void write_page(mt_buf *out, const json_t *items, const range *r)
{
    const bool some = r->begin < r->end, more = r->end < r->count;

    mt_json_write(out, "{'object':'list','data':[");
    for (size_t i = r->begin; i < r->end; i++)
        mt_json_tree_write(out, at(items, r, i));
    mt_json_write(out, "],'first_id':%s,'last_id':%s,'has_more':%hhd}",
                  some ? mt_body_text(at(items, r, r->begin), "id") : NULL,
                  some ? mt_body_text(at(items, r, r->end - 1), "id") : NULL, more);
}

bool mt_responses_list(struct mt_store *store, const char *id, json_t *running, const mt_responses_page *page,
                       mt_buf *out, mt_failure *why)
{
    json_t *chain, *items = NULL;
    range r;
    bool ok, fits;

    mt_json_guard_begin();
    chain = json_array();
    if (running)
        json_array_append(chain, running);
    ok = mt_responses_chain(NULL, store, running ? mt_body_text(running, "previous") : id, chain, why);
    if (!ok && json_array_size(chain) == 0)
        mt_responses_missing(id, why);
    if (ok)
        items = all_items(chain);
    ok = ok && read_page(page, items, &r, why);
    fits = mt_json_guard_end();
    if (ok && fits)
        write_page(out, items, &r);
    json_decref(items);
    json_decref(chain);
    return fits ? ok
                : mt_failure_set(why, 413, "request_too_large", NULL,
                                 "the items need more memory than a request may have: ask for each response");
}

/* Responses are found newest first, so each is inserted at the front. */
bool mt_responses_chain(struct mt_recent *recent, struct mt_store *store, const char *id, json_t *chain,
                        mt_failure *why)
{
    while (*id) {
        json_t *kept = mt_recent_get(recent, id);

        if (!kept && json_array_size(chain) < MT_LIMIT_STORE_CHAIN)
            kept = mt_store_get(store, id);
        if (!kept)
            return mt_failure_set(why, 400, "previous_response_not_found", "previous_response_id",
                                  "the previous response \"%.60s\" was not found here: send all items of the "
                                  "conversation",
                                  id);
        json_array_insert_new(chain, 0, kept);
        id = mt_body_text(kept, "previous");
    }
    return true;
}
