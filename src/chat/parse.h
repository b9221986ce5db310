/* From the model's text to what it means: reasoning, content, tool calls. A parser is fed the text as it comes, in
   pieces cut anywhere, and tells events; joined, they are the same however the text was cut. docs/parsers.md has the
   formats. One thread at a time; a parser never fails: text that is no valid call is content, or, once the name of a
   call is known, the arguments of that call. */
#ifndef MT_CHAT_PARSE_H
#define MT_CHAT_PARSE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/error.h"
#include "chat/opened.h"

typedef struct mt_parser mt_parser;

typedef enum mt_parse_kind {
    MT_PARSE_REASONING,      /* text */
    MT_PARSE_CONTENT,        /* text */
    MT_PARSE_CALL_BEGIN,     /* index, name, id */
    MT_PARSE_CALL_ARGUMENTS, /* index, text: a piece of JSON */
    MT_PARSE_CALL_END        /* index, complete */
} mt_parse_kind;

/* Everything is borrowed until the callback returns. Calls do not overlap: BEGIN, any number of ARGUMENTS, END. */
typedef struct mt_parse_event {
    mt_parse_kind kind;
    const char *text; /* never empty; does not end within a character unless the model's text does */
    size_t len;
    size_t index;     /* of the call: 0, 1, ... */
    const char *name; /* of the tool; it need not be a declared one */
    const char *id;   /* as the model wrote it, NULL where it wrote none */
    bool complete;    /* false: the text ended within the call, and its arguments are what came until then */
} mt_parse_event;

typedef void mt_parse_fn(void *ctx, const mt_parse_event *event);

/* Names of formats, as lists and detection give them. "none" and NULL are none. */
typedef struct mt_parse_formats {
    const char *tools, *reasoning;
} mt_parse_formats;

typedef struct mt_parse_settings {
    mt_parse_formats formats;
    const json_t *tools; /* the request's, in OpenAI's shape; NULL or empty: no calls are looked for. Borrowed while
                               the parser lives */
    mt_chat_opened_state opened; /* what the prompt ended with */
} mt_parse_settings;

/* Whether there is anything to look for. */
bool mt_parse_needed(const mt_parse_settings *settings);

/* NULL with a sentence when a name is not known. Free with mt_parser_free. */
mt_parser *mt_parser_new(const mt_parse_settings *settings, mt_error *err) MT_NODISCARD;
void mt_parser_free(mt_parser *parser); /* NULL is fine */

void mt_parser_feed(mt_parser *parser, const char *text, size_t len, mt_parse_fn *fn, void *ctx);

/* The text has ended: tells what was held back and ends the call that is open. Nothing may be fed afterwards. */
void mt_parser_finish(mt_parser *parser, mt_parse_fn *fn, void *ctx);

/* The formats a chat template speaks of; "none" where it speaks of none that is known. */
mt_parse_formats mt_parse_detect(const char *source, size_t len);

/* Names for help and options, "none" among them; NULL from count on. */
const char *mt_parse_tool_name(size_t i);
const char *mt_parse_reasoning_name(size_t i);

#endif
