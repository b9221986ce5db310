/* Reads what a server streams, in OpenAI's events, and puts the answer together. The server may be anybody's: whatever
   it sends, memory is bounded, and what it sends is data. */
#ifndef MT_CLI_CHAT_EVENTS_H
#define MT_CLI_CHAT_EVENTS_H

#include <jansson.h>

#include "base/buf.h"
#include "cli/chat_wrap.h"

#define MT_CHAT_ANSWER_BYTES (64u << 20)
#define MT_CHAT_EVENT_BYTES (16u << 20)
#define MT_CHAT_CALLS 256
#define MT_CHAT_CALL_BYTES (1u << 20)

/* What was answered so far, and what to do with each piece. */
typedef struct mt_chat_answer {
    void (*piece)(struct mt_chat_answer *answer, bool reasoning, const char *text);
    mt_buf text; /* of the answer, without its reasoning */
    mt_buf reasoning;
    json_t *calls;        /* of tools, as an assistant's message has them; NULL: none. Free with json_decref */
    char finish[32];      /* why it ended */
    bool interrupted;     /* by Ctrl-C */
    long prompt, tokens;  /* as the server counts them; -1: it does not say */
    long cached;          /* of the prompt; -1: it does not say */
    bool colours;         /* are for a terminal, as are whole words at its edge */
    bool shows_reasoning; /* of what was printed last */
    mt_chat_wrap wrap;
} mt_chat_answer;

void mt_chat_answer_free(mt_chat_answer *answer);

typedef struct mt_chat_events {
    mt_chat_answer *answer;
    mt_buf line;
    mt_buf error;  /* the JSON of an event that is one; empty: there was none */
    bool too_much; /* it was more than an answer may be */
} mt_chat_events;

/* Borrows the answer, of which only piece, colours and wrap need to be set. Free with mt_chat_events_free, which leaves
   the answer. */
void mt_chat_events_init(mt_chat_events *events, mt_chat_answer *answer);
void mt_chat_events_free(mt_chat_events *events);

/* The next bytes. False where nothing more is taken. */
bool mt_chat_events_feed(mt_chat_events *events, const char *data, size_t len) MT_NODISCARD;

#endif
