/* Parses bodies as JSON within bounds: of nesting, as in limits.h, and of memory, since a list of short numbers takes
   twenty times its length. */
#ifndef MT_API_JSON_BODY_H
#define MT_API_JSON_BODY_H

#include <stdatomic.h>

#include <jansson.h>

#include "api/failure.h"
#include "api/limits.h"

/* Called once, before any thread uses jansson: makes it allocate by base/alloc.h, within budgets. */
void mt_json_body_setup(void);

/* Sets how much memory a parsed body may take: from MT_LIMIT_JSON_LEAST to MT_LIMIT_JSON_MEMORY. Not while a body is
   parsed. */
void mt_json_body_bound(size_t bytes);

/* The JSON object of a body; free with mt_json_body_free. NULL: *why, a 400 or 413, or a 409 where another thread has
   set *stop (may be NULL). Any thread. */
json_t *mt_json_body_parse(const char *body, size_t len, const atomic_bool *stop, mt_failure *why) MT_NODISCARD;

void mt_json_body_free(json_t *json, size_t len); /* NULL is fine; len: of the body it was made from */

/* Between these two calls, JSON that this thread makes may take as much memory as a body: beyond that, jansson's
   functions fail, and mt_json_guard_end returns false. */
void mt_json_guard_begin(void);
bool mt_json_guard_end(void) MT_NODISCARD;

#endif
