/* Parses a model's text into reasoning, content and tool calls. A parser is fed the text as it comes, in pieces cut
   anywhere, and calls back with events; joined, these are the same however the text was cut. docs/parsers.md lists the
   formats. Used by one thread at a time. A parser never fails: text that is no valid call is content, or, once the
   call's name is known, its arguments. */
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

/* An event. Its strings are borrowed until the callback returns. Calls do not overlap: BEGIN, any number of ARGUMENTS,
   END. */
typedef struct mt_parse_event {
    mt_parse_kind kind;
    const char *text; /* never empty; does not end within a character unless the model's text does */
    size_t len;
    size_t index;     /* of the call: 0, 1, ... */
    const char *name; /* of the tool, which need not be declared */
    const char *id;   /* as the model wrote it; NULL: it wrote none */
    bool complete;    /* false: the text ended before the call did; its arguments may be incomplete */
} mt_parse_event;

typedef void mt_parse_fn(void *ctx, const mt_parse_event *event);

/* Names of formats of tool calls and of reasoning, from options or mt_parse_detect. NULL is "none". */
typedef struct mt_parse_formats {
    const char *tools, *reasoning;
} mt_parse_formats;

typedef struct mt_parse_settings {
    mt_parse_formats formats;
    /* The request's tools, as OpenAI's API has them; NULL or empty: no calls are looked for. Borrowed. */
    const json_t *tools;
    mt_chat_opened_state opened; /* what the prompt's end has begun */
} mt_parse_settings;

/* Whether a parser is needed: false where all text would be content. */
bool mt_parse_needed(const mt_parse_settings *settings);

/* NULL: *err, a format's name is unknown. Free with mt_parser_free. */
mt_parser *mt_parser_new(const mt_parse_settings *settings, mt_error *err) MT_NODISCARD;
void mt_parser_free(mt_parser *parser); /* NULL is fine */

void mt_parser_feed(mt_parser *parser, const char *text, size_t len, mt_parse_fn *fn, void *ctx);

/* The text has ended: sends the events that were held back and ends an open call. Nothing may be fed afterwards. */
void mt_parser_finish(mt_parser *parser, mt_parse_fn *fn, void *ctx);

/* The formats that a chat template (its source) uses; "none" where it uses no known one. */
mt_parse_formats mt_parse_detect(const char *source, size_t len);

/* Names of all formats, "none" included, for help and options; NULL from the count on. */
const char *mt_parse_tool_name(size_t i);
const char *mt_parse_reasoning_name(size_t i);

#endif
