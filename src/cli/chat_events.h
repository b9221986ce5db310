/* Reads the server-sent events of a streamed chat completion (OpenAI's API) and puts the answer together. Nothing is
   assumed about the server: memory is bounded whatever it sends. */
#ifndef MT_CLI_CHAT_EVENTS_H
#define MT_CLI_CHAT_EVENTS_H

#include <jansson.h>

#include "base/buf.h"
#include "cli/chat_wrap.h"

#define MT_CHAT_ANSWER_BYTES (64u << 20)
#define MT_CHAT_EVENT_BYTES (16u << 20)
#define MT_CHAT_CALLS 256
#define MT_CHAT_CALL_BYTES (1u << 20)

/* An answer, as far as it has come. Free with mt_chat_answer_free. */
typedef struct mt_chat_answer {
    /* Called with every piece of text. `reasoning`: the piece is part of the reasoning, not of the answer. */
    void (*piece)(struct mt_chat_answer *answer, bool reasoning, const char *text);
    mt_buf text; /* all pieces of the answer */
    mt_buf reasoning;
    json_t *calls;        /* tool calls, in the form that a message of the assistant has; NULL: none; owned */
    char finish[32];      /* finish_reason, why the answer ended; empty: it has not */
    bool interrupted;     /* the user pressed Ctrl-C */
    long prompt, tokens;  /* tokens of the prompt and of the answer, as the server counts them; -1: it does not say */
    long cached;          /* tokens of the prompt that the server had cached; -1: it does not say */
    bool colours;         /* print for a terminal: dim reasoning, and break lines between words */
    bool shows_reasoning; /* what was printed last was reasoning */
    mt_chat_wrap wrap;    /* where the output stands in its line */
} mt_chat_answer;

void mt_chat_answer_free(mt_chat_answer *answer);

/* The state of the reader. */
typedef struct mt_chat_events {
    mt_chat_answer *answer;
    mt_buf line;   /* the current line, as far as it has come */
    mt_buf error;  /* the data of an event that reports an error; empty: there was none */
    bool too_much; /* the stream was larger than the limits above */
} mt_chat_events;

/* Borrows the answer, of which the caller sets only piece, colours and wrap. Free with mt_chat_events_free, which does
   not free the answer. */
void mt_chat_events_init(mt_chat_events *events, mt_chat_answer *answer);
void mt_chat_events_free(mt_chat_events *events);

/* Reads the next bytes of the stream. False: too_much is true, and further bytes are not read. */
bool mt_chat_events_feed(mt_chat_events *events, const char *data, size_t len) MT_NODISCARD;

#endif
