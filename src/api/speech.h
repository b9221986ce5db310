/* Speech: what a choice has generated so far, as a list of parts in their order: reasoning, text, tool calls. All of it
   is kept until the answer is complete, since some dialects repeat at the end what they streamed; each part knows how
   much of it the client has. */
#ifndef MT_API_SPEECH_H
#define MT_API_SPEECH_H

#include <stdbool.h>
#include <stddef.h>

#include "api/limits.h"
#include "base/buf.h"
#include "chat/parse.h"

typedef enum mt_speech_kind { MT_SPEECH_REASONING, MT_SPEECH_TEXT, MT_SPEECH_CALL } mt_speech_kind;

typedef struct mt_speech_part {
    mt_speech_kind kind;
    char *id, *name; /* of a call; owned */
    mt_buf text;     /* of a call: its arguments, an object in JSON unless the model wrote something else */
    size_t written;  /* bytes of text that were written for the client */
    bool told;       /* its beginning was written for the client */
    bool ended;      /* nothing will be added to it */
    bool closed;     /* its end was written for the client */
    bool cut;        /* a call whose arguments are incomplete */
} mt_speech_part;

typedef struct mt_speech {
    mt_speech_part *at;
    size_t count, cap;
    size_t calls; /* how many parts are calls */
    size_t bytes; /* of all texts; at most MT_LIMIT_ANSWER_BYTES */
    bool full;    /* something did not fit and is missing */
} mt_speech;

void mt_speech_free(mt_speech *speech); /* a zeroed one is empty, and is fine */

/* Appends text to the last part where that is of the same kind, else begins a new part. Not for calls. */
void mt_speech_add(mt_speech *speech, mt_speech_kind kind, const char *text, size_t len);

/* Whether the answer has calls and all of them are complete, so that the client can run them. */
bool mt_speech_callable(const mt_speech *speech);

/* Adds an event of a parser. The first parameter is the mt_speech. */
void mt_speech_hear(void *speech, const mt_parse_event *event);

void mt_speech_end(mt_speech *speech); /* nothing will be added to the last part */

/* Whether something was not written for the client yet. That a part has ended is no news by itself: dialects that tell
   it do so with what comes next. */
bool mt_speech_news(const mt_speech *speech);
void mt_speech_written(mt_speech *speech); /* marks all as written */

/* Appends "key":"all texts of a kind, joined"; news: only what was not written. */
void mt_speech_write(mt_buf *out, const char *key, const mt_speech *speech, mt_speech_kind kind, bool news);

/* Whether there is a part of this kind; news: one of which something was not written. */
bool mt_speech_has(const mt_speech *speech, mt_speech_kind kind, bool news);

#endif
