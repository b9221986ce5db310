/* A chat: what was asked, in whatever API: messages, tools, and further variables of the chat template. The reader of
   each dialect fills one by the functions here; the template reads it through context.h. Everything lives in the
   request's arena or is borrowed from the request's JSON, which outlives the chat. */
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

/* A part of a message's content. */
typedef struct mt_chat_part {
    mt_chat_part_type type;
    mt_chat_text text;    /* of TEXT */
    const json_t *source; /* of IMAGE and VIDEO, and of TEXT that is yet to be read (document.h): the part as sent */
    const char *place;    /* of these: where it stands in the request, for errors: "messages[0].content[1]" */
    size_t index;         /* in the message's content */
} mt_chat_part;

/* A tool call. */
typedef struct mt_chat_call {
    mt_chat_text id; /* data is NULL where there is none */
    mt_chat_text name;
    /* As sent: an object, a string that should hold one, or anything else; NULL: none. */
    const json_t *arguments;
} mt_chat_call;

/* Arguments that are no object are wrapped as text in an object of our own, under this key. */
#define MT_CHAT_BROKEN "raw_arguments"

typedef struct mt_chat_message {
    size_t index; /* in the request; for errors while it is read */
    mt_chat_role role;
    mt_chat_part *parts;
    size_t part_count;
    size_t sent; /* how many parts were added, reasoning included; parts is shorter by those */
    bool list;   /* the content was sent as a list of parts, not as a string */
    mt_chat_text reasoning;
    size_t reasoning_room; /* bytes allocated at reasoning.data; 0: it is borrowed */
    mt_chat_call *calls;
    size_t call_count;
    mt_chat_text call_id; /* of a tool result; data is NULL where there is none */
    mt_chat_text name;    /* of the tool or the speaker; data is NULL where there is none */
} mt_chat_message;

typedef struct mt_chat {
    mt_arena *arena;   /* borrowed */
    const char *field; /* of the request that has the messages, for errors; a constant */
    mt_chat_message *messages;
    size_t count;
    const json_t *tools; /* an array that is not empty, or NULL */
    /* Variables for the template as they were sent; NULL: not given. kwargs is an object, whose members win over the
       others. */
    const json_t *thinking, *effort, *budget, *documents, *kwargs;
    bool no_generation_prompt;
    bool continues; /* the answer continues the last message */
    bool starved;   /* memory was missing; mt_chat_end reports it */
} mt_chat;

const char *mt_chat_role_name(mt_chat_role role);

const char *mt_chat_kind(const json_t *value); /* the JSON type with its article, for errors; NULL is "missing" */

mt_chat_text mt_chat_text_of(const json_t *string); /* borrowed; data is NULL where it is no string */
bool mt_chat_text_equal(mt_chat_text a, mt_chat_text b);

/* Building a chat. Fill a message that begins as zeroes and a role, then put it at the end of the chat. What is added
   is borrowed. */
void mt_chat_begin(mt_chat *chat, mt_arena *arena, const char *field);
void mt_chat_add_text(mt_chat *chat, mt_chat_message *to, mt_chat_text text);
/* After a blank line where there is some */
void mt_chat_add_reasoning(mt_chat *chat, mt_chat_message *to, mt_chat_text text);
/* place: see mt_chat_part; NULL: there was no memory for it */
void mt_chat_add_medium(mt_chat *chat, mt_chat_message *to, mt_chat_part_type type, const json_t *source,
                        const char *place);
void mt_chat_add_call(mt_chat *chat, mt_chat_message *to, mt_chat_call call);
void mt_chat_put(mt_chat *chat, const mt_chat_message *message);

/* Whether the chat is complete: it has some messages, not too many, and memory sufficed. False: *err, about
   chat->field. */
bool mt_chat_end(const mt_chat *chat, mt_error *err) MT_NODISCARD;

bool mt_chat_has_media(const mt_chat *chat); /* whether a message has pictures or videos */
bool mt_chat_has_video(const mt_chat *chat); /* whether a message has videos */

/* Reads a request in the shape of OpenAI's chat completions: messages, tools, and what mt_chat_read_settings reads;
   other fields are ignored. False: *err, a sentence for a 400. chat borrows arena and request. */
bool mt_chat_read(mt_chat *chat, mt_arena *arena, const json_t *request, mt_error *err) MT_NODISCARD;

/* Parts of mt_chat_read, for dialects that share some of OpenAI's fields. role: overrides the message's own; NULL: does
   not. mt_chat_read_settings reads add_generation_prompt, continue_final_message, chat_template_kwargs,
   enable_thinking, thinking, reasoning_effort, reasoning, thinking_budget and documents; values that the chat has
   already stay. False: *err. */
bool mt_chat_read_message(mt_chat *chat, const json_t *message, const char *role, mt_chat_message *out,
                          mt_error *err) MT_NODISCARD;
bool mt_chat_read_tools(mt_chat *chat, const json_t *tools, mt_error *err) MT_NODISCARD;
bool mt_chat_read_settings(mt_chat *chat, const json_t *request, mt_error *err) MT_NODISCARD;

/* Whether a request in that shape, which need not be valid, has pictures, videos or files. */
bool mt_chat_request_has_media(const json_t *request);

#endif
