/* Bodies as JSON, within bounds: nesting as in limits.h, and memory as a budget, since a list of two-byte numbers takes
   twenty times its length. */
#ifndef MT_API_JSON_BODY_H
#define MT_API_JSON_BODY_H

#include <stdatomic.h>

#include <jansson.h>

#include "api/failure.h"

/* Once, before any thread uses jansson: its memory comes from base/alloc.h and is counted. */
void mt_json_body_setup(void);

/* How much memory a parsed body may take, from MT_LIMIT_JSON_LEAST to MT_LIMIT_JSON_MEMORY; while nobody parses one. */
void mt_json_body_bound(size_t bytes);

/* The object a body holds; free with mt_json_body_free. NULL with a 400 or 413, or a 409 once another thread has set
   *stop, which may be NULL. Any thread. */
json_t *mt_json_body_parse(const char *body, size_t len, const atomic_bool *stop, mt_failure *why) MT_NODISCARD;

void mt_json_body_free(json_t *json, size_t len); /* NULL is fine; len: of the body it was made from */

/* Between these the thread's JSON may take as much memory as a body: where it does not fit, jansson's functions fail,
   and the end says false. */
void mt_json_guard_begin(void);
bool mt_json_guard_end(void) MT_NODISCARD;

#endif
