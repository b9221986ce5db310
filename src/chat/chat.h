/* What was asked, whatever API it was asked by: messages, tools, and what else the chat template is told. Everything
   lives in the request's arena or is borrowed from the request's JSON, which outlives it. Each dialect's reader fills
   one by the functions here; templates read it as it is (context.h). */
#ifndef MT_CHAT_CHAT_H
#define MT_CHAT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/error.h"

typedef enum mt_chat_role { MT_CHAT_SYSTEM, MT_CHAT_USER, MT_CHAT_ASSISTANT, MT_CHAT_TOOL } mt_chat_role;
#define MT_CHAT_ROLES 4

typedef enum mt_chat_part_type { MT_CHAT_TEXT, MT_CHAT_IMAGE, MT_CHAT_VIDEO } mt_chat_part_type;
#define MT_CHAT_PART_TYPES 3

/* UTF-8, not NUL-terminated. */
typedef struct mt_chat_text {
    const char *data;
    size_t len;
} mt_chat_text;

typedef struct mt_chat_part {
    mt_chat_part_type type;
    mt_chat_text text;    /* of TEXT */
    const json_t *source; /* of the others: the part as it was sent */
    size_t message;       /* its index in the request */
    size_t index;         /* its own in the message's content */
} mt_chat_part;

typedef struct mt_chat_call {
    mt_chat_text id; /* data is NULL where there is none */
    mt_chat_text name;
    const json_t
        *arguments; /* as sent: an object, a string that should be one, or anything; NULL when there are none */
} mt_chat_call;

/* The name of the text of arguments that are no object, in an object made for it. */
#define MT_CHAT_BROKEN "raw_arguments"

typedef struct mt_chat_message {
    size_t index; /* where it stood in the request, for sentences about it */
    mt_chat_role role;
    mt_chat_part *parts;
    size_t part_count;
    size_t sent; /* parts that its content had so far, reasoning among them */
    bool list;   /* the content was a list of parts, not a string */
    mt_chat_text reasoning;
    size_t reasoning_room; /* bytes at its data that are the chat's to write; 0: it is borrowed */
    mt_chat_call *calls;
    size_t call_count;
    mt_chat_text call_id; /* of a tool result; data is NULL where there is none, as that of name */
    mt_chat_text name;
} mt_chat_message;

typedef struct mt_chat {
    mt_arena *arena; /* borrowed */
    mt_chat_message *messages;
    size_t count;
    const json_t *tools; /* an array that is not empty, or NULL */
    /* Variables for the template, as they were sent; NULL: not given. kwargs is an object, and has the last word. */
    const json_t *thinking, *effort, *documents, *kwargs;
    bool no_generation_prompt;
    bool continues; /* the answer goes on with what the last message says */
    bool starved;   /* there was no memory for something: mt_chat_end tells */
} mt_chat;

const char *mt_chat_role_name(mt_chat_role role);

const char *mt_chat_kind(const json_t *value); /* what a value is, with its article; NULL is "missing" */

mt_chat_text mt_chat_text_of(const json_t *string); /* borrowed; data is NULL where it is no string */
bool mt_chat_text_equal(mt_chat_text a, mt_chat_text b);

/* Building. A message is filled first and put behind the others then; it begins as zeroes and a role. What is added is
   borrowed. */
void mt_chat_begin(mt_chat *chat, mt_arena *arena);
void mt_chat_add_text(mt_chat *chat, mt_chat_message *to, mt_chat_text text);
void mt_chat_add_reasoning(mt_chat *chat, mt_chat_message *to, mt_chat_text text); /* behind a blank line */
void mt_chat_add_medium(mt_chat *chat, mt_chat_message *to, mt_chat_part_type type, const json_t *source);
void mt_chat_add_call(mt_chat *chat, mt_chat_message *to, mt_chat_call call);
void mt_chat_put(mt_chat *chat, const mt_chat_message *message);

/* Whether there are as many messages as there may be, and was memory for all of them. An error is about "messages". */
bool mt_chat_end(const mt_chat *chat, mt_error *err) MT_NODISCARD;

bool mt_chat_has_media(const mt_chat *chat); /* whether some message has images or videos */
bool mt_chat_has_video(const mt_chat *chat); /* the same of videos alone */

/* Reads a request in the shape of OpenAI's chat completions: messages, tools, and what mt_chat_read_settings reads.
   Other fields are not looked at. An error is a sentence for a 400: it says which message is wrong, and why. chat
   borrows arena and request. */
bool mt_chat_read(mt_chat *chat, mt_arena *arena, const json_t *request, mt_error *err) MT_NODISCARD;

/* Parts of it, for dialects that have some of OpenAI's fields. role: what the message is read as; NULL: what it says.
   Of the settings (add_generation_prompt, continue_final_message, chat_template_kwargs, enable_thinking, thinking,
   reasoning_effort, documents) those that the chat has already stay. */
bool mt_chat_read_message(mt_chat *chat, const json_t *message, const char *role, mt_chat_message *out,
                          mt_error *err) MT_NODISCARD;
bool mt_chat_read_tools(mt_chat *chat, const json_t *tools, mt_error *err) MT_NODISCARD;
bool mt_chat_read_settings(mt_chat *chat, const json_t *request, mt_error *err) MT_NODISCARD;

/* Whether some message of a request in that shape, which need not be right otherwise, has images or videos. */
bool mt_chat_request_has_media(const json_t *request);

#endif
