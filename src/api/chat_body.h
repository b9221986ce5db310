/* What the readers of dialects about messages share. Each fills ask->chat from its own body (chat/chat.h), and reads
   the fields that a chat has in all of them by the same tables. Where memory for JSON runs out values are missing; who
   began with mt_json_guard_begin learns of it at the end. */
#ifndef MT_API_CHAT_BODY_H
#define MT_API_CHAT_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "api/ask.h"
#include "api/failure.h"

json_t *mt_body_share(const json_t *value); /* a reference of the caller's own; NULL is fine */

/* A member that is there and not null, or NULL. */
const json_t *mt_body_get(const json_t *object, const char *key);

/* A member that is a string, or "" where it is missing or something else. */
const char *mt_body_text(const json_t *object, const char *key);

/* Shares the members of these names. */
void mt_body_copy(json_t *to, const json_t *from, const char *const *names, size_t count);

/* {"type":"image_url","image_url":{"url":..}}; a new reference. */
json_t *mt_body_image_part(const json_t *url);

/* {"type":"function","function":{..}} of members name, description and the schema; takes none. */
json_t *mt_body_tool(const json_t *tool, const json_t *schema);

/* The fields of chats, but those of these names (up to a NULL), which the dialect reads itself; NULL: none. In
   openai_chat.c. */
bool mt_body_fields(mt_ask *ask, const char *const *own, mt_failure *why) MT_NODISCARD;

/* Refuses those that answers of other dialects have no place for. */
bool mt_body_refuse(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Ends a chat whose messages and tools are read: what else templates are told is read from the body. */
bool mt_body_end(mt_ask *ask, mt_failure *why) MT_NODISCARD;

#endif
