/* What a choice has said, in the order it was said: reasoning, text, calls of tools. All of it is kept while the answer
   is being given, since some dialects repeat at the end what they streamed; `written` tells what the client has. */
#ifndef MT_API_SPEECH_H
#define MT_API_SPEECH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "chat/parse.h"

typedef enum mt_speech_kind { MT_SPEECH_REASONING, MT_SPEECH_TEXT, MT_SPEECH_CALL } mt_speech_kind;

typedef struct mt_speech_part {
    mt_speech_kind kind;
    char *id, *name; /* of a call */
    mt_buf text;     /* of a call: its arguments, JSON unless the model wrote something else */
    size_t written;  /* bytes of it that were written for the client */
    bool told;       /* the client knows that it began */
    bool ended;      /* nothing will be added */
    bool closed;     /* the client knows that, too */
    bool cut;        /* a call whose arguments end in their midst */
} mt_speech_part;

typedef struct mt_speech {
    mt_speech_part *at;
    size_t count, cap;
    size_t calls; /* parts that are calls */
    size_t bytes; /* of all texts; at most MT_LIMIT_ANSWER_BYTES */
    bool full;    /* something did not fit, and is missing */
} mt_speech;

void mt_speech_free(mt_speech *speech); /* a zeroed one is empty, and is fine */

/* Goes on with the last part where that is of the same kind, and begins another otherwise. Not for calls. */
void mt_speech_add(mt_speech *speech, mt_speech_kind kind, const char *text, size_t len);

/* Whether the answer ends with calls, all of them whole: where one was cut there is nothing to run. */
bool mt_speech_calls(const mt_speech *speech);

/* An event of a parser; ctx is the speech. */
void mt_speech_hear(void *speech, const mt_parse_event *event);

void mt_speech_end(mt_speech *speech); /* nothing will be added to its last part */

/* Whether there is something that has not been written; of one kind only. */
bool mt_speech_news(const mt_speech *speech);
bool mt_speech_news_of(const mt_speech *speech, mt_speech_kind kind);
void mt_speech_written(mt_speech *speech); /* all that is there */

/* Appends all texts of a kind, joined, as a string of that key; news: only what has not been written. */
void mt_speech_write(mt_buf *out, const char *key, const mt_speech *speech, mt_speech_kind kind, bool news);
bool mt_speech_has(const mt_speech *speech, mt_speech_kind kind); /* a part of this kind */

#endif
