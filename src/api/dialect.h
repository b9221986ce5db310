/* A dialect is how clients ask and how they want to be told: one file each, this table, and nothing else knows which
   one a call speaks. Between the engine and the dialects lies one stream of events, which mt_answer keeps. */
#ifndef MT_API_DIALECT_H
#define MT_API_DIALECT_H

#include "api/ask.h"
#include "api/failure.h"
#include "base/buf.h"

typedef struct mt_answer mt_answer;
typedef struct mt_choice mt_choice;

typedef struct mt_dialect {
    const char *name;         /* in logs */
    const char *prefix;       /* of ids: "chatcmpl-" */
    const char *stream_type;  /* content type of a stream; NULL: server-sent events */
    const char *object;       /* what answers in OpenAI's shapes call themselves; NULL in others */
    const char *chunk_object; /* and the parts of a stream */

    /* Reads ask->body into ask. On a preparation thread. */
    bool (*read)(mt_ask *ask, mt_failure *why);

    /* On the io thread. Each appends bytes for the client. Streamed answers get begin once a choice, chunk whenever a
       choice has something to say (and once when it is done), and end; others get whole. begin may be NULL. */
    void (*begin)(mt_answer *answer, mt_choice *choice, mt_buf *out);
    void (*chunk)(mt_answer *answer, mt_choice *choice, mt_buf *out);
    void (*end)(mt_answer *answer, mt_buf *out);
    void (*whole)(mt_answer *answer, mt_buf *out);
    void (*fail)(mt_answer *answer, const mt_failure *why, mt_buf *out); /* in the middle of a stream */

    /* The answer as it stands, failed where why is not NULL: for clients that ask while it is being given, and to be
       kept in the end. NULL: nobody can ask for an answer. */
    void (*now)(const mt_answer *answer, const mt_failure *why, mt_buf *out);
    void (*keep)(const mt_answer *answer, const mt_failure *why);

    void (*error)(mt_buf *out, const mt_failure *why); /* the body of an answer that says what is wrong */
    void (*count)(mt_buf *out, size_t tokens);         /* not NULL: only the length of the prompt is wanted */
    /* Not NULL: whether a body wants nothing but that its model be unloaded. On a preparation thread. */
    bool (*unloads)(const json_t *body);
    /* The answer to an ask with nothing to compute. model: as it is called where the client did not name one. */
    void (*nothing)(mt_buf *out, const mt_ask *ask, const char *model);
    bool vectors;     /* embeddings or scores are wanted, not text */
    bool repeats;     /* the end of a stream says again what was streamed */
    const char *idle; /* bytes that say nothing, for a stream that has long been silent */
} mt_dialect;

extern const mt_dialect mt_openai_chat, mt_openai_completions, mt_openai_responses, mt_anthropic_messages,
    mt_anthropic_count_tokens, mt_openai_embeddings, mt_score, mt_rerank, mt_rerank_v1, mt_rerank_v2,
    mt_responses_input_tokens, mt_ollama_chat, mt_ollama_generate, mt_ollama_embed, mt_ollama_embeddings;

#endif
