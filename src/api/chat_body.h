/* Shared by readers of bodies, above all those about messages (OpenAI's chat, Anthropic, Responses, Ollama,
   Gemini). Each of
   these fills ask->chat from its own body, and reads the fields that all of them have by the same tables. Where the
   memory for JSON runs out, values are silently missing: callers use mt_json_guard_begin and mt_json_guard_end
   (json_body.h), which notice it. */
#ifndef MT_API_CHAT_BODY_H
#define MT_API_CHAT_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "api/ask.h"
#include "api/failure.h"

json_t *mt_body_share(const json_t *value); /* a reference for the caller; NULL is fine */

/* The member of an object; NULL where it is missing or null. */
const json_t *mt_body_get(const json_t *object, const char *key);

/* The member of an object as a string; "" where it is missing or no string. */
const char *mt_body_text(const json_t *object, const char *key);

/* Copies a reference to a member that is there and not null. */
void mt_body_copy(json_t *to, const json_t *from, const char *name);

/* A new {"type":"image_url","image_url":{"url":..}}. */
json_t *mt_body_image_part(const json_t *url);

/* A new {"type":"function","function":{..}} with the tool's name and description, and the schema as its parameters. */
json_t *mt_body_tool(const json_t *tool, const json_t *schema);

/* The arguments of an earlier call. Where those were no JSON object, we sent them as text under MT_CHAT_BROKEN: that
   text is used again. */
const json_t *mt_body_arguments(const json_t *sent);

/* Calls that have no result yet, for dialects whose results may not say which call they answer: those of the last
   message with calls. A call that has got its result loses its name here. Zeroed: none. */
typedef struct mt_body_calls {
    mt_chat_call *open;
    size_t count;
} mt_body_calls;

/* Keeps the calls of a message; calls without an id get one, so that results can refer to it. at: number of the
   message. */
void mt_body_open_calls(mt_ask *ask, mt_body_calls *calls, mt_chat_message *message, size_t at);

/* Sets the tool's name and the call's id of a result that has none: the call is the first open one of the named tool;
   where no tool is named (data is NULL), the first open one. */
void mt_body_close_call(mt_body_calls *calls, mt_chat_message *result, mt_chat_text tool);

/* Reads the fields that all chats have, except those named in `own` (ends with NULL; may be NULL), which the dialect
   reads itself. False: *why. In openai_chat.c. */
bool mt_body_fields(mt_ask *ask, const char *const *own, mt_failure *why) MT_NODISCARD;

/* Notes members that nothing reads of messages, of the parts of their content, of what a part has inside (such as
   image_url), and of tool calls: fields that would have changed the answer. field: that of the body that has the
   messages. Each list ends with NULL. */
void mt_body_note(mt_ask *ask, const char *field, const json_t *messages, const char *const *message_members,
                  const char *const *part_members);

/* Members of the parts that src/chat reads, for mt_body_note. */
extern const char *const mt_body_part_members[];

/* Refuses fields that only OpenAI's chat can answer. False: *why. */
bool mt_body_refuse(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* Ends the reading of a chat whose messages and tools are read: checks it, and reads settings for the template. False:
   *why. */
bool mt_body_end(mt_ask *ask, mt_failure *why) MT_NODISCARD;

#endif
