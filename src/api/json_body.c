/* Bounds the memory of jansson by its allocator: see json_body.h. */
#include "api/json_body.h"

#include <stdint.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/json_tree.h"

/* Bytes that the thread may still allocate for JSON; SIZE_MAX: no bound. Freed memory is not added back, since parsing
   only allocates. */
static MT_THREAD_LOCAL size_t budget = SIZE_MAX;
static size_t most = MT_LIMIT_JSON_MEMORY;        /* bytes that a body may take */
static MT_THREAD_LOCAL bool denied;               /* an allocation was refused */
static MT_THREAD_LOCAL const atomic_bool *ending; /* true: parsing is to stop; NULL: nothing stops it */

/* jansson can be stopped only by refusing it memory. */
static bool stopped(void)
{
    /* relaxed: read again and again, and no other data depends on it */
    return ending && atomic_load_explicit(ending, memory_order_relaxed);
}

/* jansson's malloc. */
static void *allocate(size_t size)
{
    if (stopped())
        return NULL;
    denied = denied || size > budget;
    if (size > budget)
        return NULL;
    if (budget != SIZE_MAX)
        budget -= size;
    return size > MT_LIMIT_JSON_SURE ? mt_alloc_try(size) : mt_alloc(size);
}

void mt_json_guard_begin(void)
{
    budget = most;
    denied = false;
}

bool mt_json_guard_end(void)
{
    budget = SIZE_MAX;
    return !denied;
}

void mt_json_body_bound(size_t bytes)
{
    most = bytes < MT_LIMIT_JSON_LEAST    ? MT_LIMIT_JSON_LEAST
           : bytes < MT_LIMIT_JSON_MEMORY ? bytes
                                          : MT_LIMIT_JSON_MEMORY;
}

void mt_json_body_setup(void)
{
    json_set_alloc_funcs(allocate, mt_free);
    json_object_seed(0); /* now, by one thread: later it would be a race */
}

json_t *mt_json_body_parse(const char *body, size_t len, const atomic_bool *stop, mt_failure *why)
{
    mt_error error;
    json_t *json;

    ending = stop;
    mt_json_guard_begin();
    json = mt_json_tree_read(body, len, &error);
    const bool fits = mt_json_guard_end(), cancelled = stopped();
    ending = NULL;
    if (json_is_object(json))
        return json;
    if (json)
        mt_failure_set(why, 400, "invalid_json", NULL, "the body is %s: send a JSON object", mt_json_kind(json));
    else if (cancelled)
        mt_failure_set(why, 409, "cancelled", NULL, "the request was cancelled while it was read");
    else if (!fits)
        mt_failure_set(why, 413, "request_too_large", NULL, "the body holds too many values: send less in one request");
    else if (len == 0)
        mt_failure_set(why, 400, "invalid_json", NULL, "the body is empty: send a JSON object");
    else
        mt_failure_set(why, 400, "invalid_json", NULL, "the body: %s", error.text);
    mt_json_body_free(json, len);
    return NULL;
}

/* After a large body, memory that the C library keeps is given back to the system: it would be kept for millions of
   small blocks. */
void mt_json_body_free(json_t *json, size_t len)
{
    json_decref(json);
    if (len >= MT_LIMIT_JSON_TRIM)
        mt_alloc_trim();
}
