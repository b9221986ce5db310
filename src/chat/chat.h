/* What was asked, whatever API it was asked by: messages, tools, and what else the chat template is told. Everything
   lives in the request's arena or is borrowed from the request's JSON, which outlives it. */
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
    const json_t *id; /* a string, or NULL */
    const json_t *name;
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
    bool list; /* the content was a list of parts, not a string */
    mt_chat_text reasoning;
    mt_chat_call *calls;
    size_t call_count;
    const json_t *call_id; /* of a tool result: a string, or NULL */
    const json_t *name;    /* a string, or NULL */
} mt_chat_message;

typedef struct mt_chat {
    mt_arena *arena; /* borrowed */
    mt_chat_message *messages;
    size_t count;
    const json_t *tools;  /* an array that is not empty, or NULL */
    const json_t *kwargs; /* an object: variables for the template */
    bool no_generation_prompt;
    bool continues; /* the answer goes on with what the last message says */
} mt_chat;

const char *mt_chat_role_name(mt_chat_role role);

/* Whether some message of a request, which need not be right otherwise, has images or videos. */
bool mt_chat_shows(const json_t *request);
/* The same of videos alone. */
bool mt_chat_shows_video(const json_t *request);

/* Reads a request in the shape of OpenAI's chat completions: messages, tools, add_generation_prompt,
   continue_final_message, chat_template_kwargs, enable_thinking, thinking, reasoning_effort, documents. Other fields
   are not looked at. An error is a sentence for a 400: it says which message is wrong, and why. chat borrows arena and
   request. */
bool mt_chat_read(mt_chat *chat, mt_arena *arena, const json_t *request, mt_error *err) MT_NODISCARD;

#endif
