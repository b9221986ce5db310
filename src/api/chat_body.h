/* A body in the shape of OpenAI's chat completions, made of one in another: every dialect about messages is read by the
   one reader that knows chats (openai_chat.c, chat/chat_read.c), after its own file has put things where that looks for
   them. Values are shared, not copied. Where memory runs out values are missing; who began with mt_json_guard_begin
   learns of it at the end. */
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

/* Shares all members but those of these names, which the dialect reads itself, so that a chat's fields mean in it what
   they mean in a chat. Those that its answers have no place for are refused. */
bool mt_body_share_others(mt_ask *ask, json_t *chat, const char *const *own, size_t count,
                          mt_failure *why) MT_NODISCARD;

json_t *mt_body_text_part(const char *text, size_t len);
json_t *mt_body_image_part(const json_t *url);

/* {"id":..,"type":"function","function":{..}}; takes arguments */
json_t *mt_body_call(const json_t *id, const json_t *name, json_t *arguments);

/* {"type":"function","function":{..}} of members name, description and the schema; takes none. */
json_t *mt_body_tool(const json_t *tool, const json_t *schema);

/* {"type":"function","function":{"name":..}}: a tool that must be called. */
json_t *mt_body_named(const json_t *name);

/* Appends {"role":..,"content":..} and returns it, borrowed. Takes content. */
json_t *mt_body_message(json_t *messages, const char *role, json_t *content);

/* Makes `chat` what the ask is read from, and reads it. Takes chat. */
bool mt_body_read(mt_ask *ask, json_t *chat, mt_failure *why) MT_NODISCARD;

#endif
