/* A dialect: an API as clients speak it, given as a table of functions that read bodies and write answers. Nothing
   outside of a dialect's files knows which one a call speaks. Between the engine and the dialects lies one stream of
   events, which mt_answer keeps. */
#ifndef MT_API_DIALECT_H
#define MT_API_DIALECT_H

#include "api/ask.h"
#include "api/failure.h"
#include "base/buf.h"

typedef struct mt_answer mt_answer;
typedef struct mt_choice mt_choice;

typedef struct mt_dialect {
    const char *name;         /* for logs */
    const char *prefix;       /* of the ids of answers: "chatcmpl-" */
    const char *stream_type;  /* content type of a stream; NULL: server-sent events */
    const char *object;       /* value of "object" in answers, where the dialect has it */
    const char *chunk_object; /* the same in chunks of a stream */

    /* Preparation thread: reads ask->body into ask. False: *why. */
    bool (*read)(mt_ask *ask, mt_failure *why);

    /* Io thread: each appends bytes for the client. For a streamed answer: begin (may be NULL) once for each choice;
       chunk whenever a choice has something new, and once when it is done; end at last. For any other answer: whole. */
    void (*begin)(mt_answer *answer, mt_choice *choice, mt_buf *out);
    void (*chunk)(mt_answer *answer, mt_choice *choice, mt_buf *out);
    void (*end)(mt_answer *answer, mt_buf *out);
    void (*whole)(mt_answer *answer, mt_buf *out);
    void (*fail)(mt_answer *answer, const mt_failure *why, mt_buf *out); /* an error in the middle of a stream */
    /* Io thread: appends further members to the object of a whole answer, or to the last of a stream. NULL: none */
    void (*more)(mt_buf *out, const mt_answer *answer);

    /* Io thread: `now` writes the answer as it is at this moment, for clients that ask while it is computed; `keep`
       puts it into the store at the end. why: not NULL where the answer has failed. Both NULL: answers of this dialect
       cannot be asked for by id. */
    void (*now)(const mt_answer *answer, const mt_failure *why, mt_buf *out);
    void (*keep)(const mt_answer *answer, const mt_failure *why);

    void (*error)(mt_buf *out, const mt_failure *why); /* the body of an error response */
    void (*count)(mt_buf *out, size_t tokens);         /* not NULL: only the number of the prompt's tokens is wanted */
    /* Preparation thread: whether a body only wants its model to be unloaded. NULL: no body does. */
    bool (*unloads)(const struct mt_dialect *dialect, const json_t *body);
    /* Preparation thread: writes the answer to an ask with ask->nothing. model: its name, where the client did not give
       one. */
    void (*nothing)(const struct mt_dialect *dialect, mt_buf *out, const mt_ask *ask, const char *model);
    /* Preparation thread: writes the answer to an ask with ask->renders. model: as above; pictures: how many the prompt
       has. */
    void (*rendered)(const struct mt_dialect *dialect, mt_buf *out, const mt_ask *ask, const char *model,
                     mt_chat_text prompt, size_t pictures);
    /* Preparation thread: what of a body names its model; NULL: its member "model". The function NULL: always that. */
    const json_t *(*model)(const json_t *body);
    bool named;       /* a body must name its model, even where one is served alone */
    bool vectors;     /* embeddings or scores are wanted, not text */
    bool joins;       /* the chunk of a choice's last token also ends the choice */
    bool repeats;     /* the end of a stream repeats what was streamed */
    bool lines;       /* each event of a stream is a line, for WebSockets, and not a server-sent event */
    const char *idle; /* bytes without meaning, sent on streams that are silent for long */
} mt_dialect;

extern const mt_dialect mt_cohere_embed, mt_sglang_generate, mt_sglang_score, mt_vllm_score;

extern const mt_dialect mt_openai_chat, mt_openai_chat_batch, mt_openai_completions, mt_openai_responses,
    mt_anthropic_messages, mt_anthropic_count_tokens, mt_openai_embeddings, mt_pooling, mt_classify, mt_score,
    mt_rerank, mt_rerank_v1, mt_rerank_v2, mt_responses_input_tokens, mt_responses_socket, mt_responses_compact,
    mt_ollama_chat, mt_ollama_generate, mt_ollama_embed, mt_ollama_embeddings, mt_llama_completion, mt_llama_infill,
    mt_lmstudio_chat, mt_lmstudio_completions, mt_lmstudio_predict, mt_lmstudio_template, mt_lmstudio_embed,
    mt_lmstudio_call, mt_lmstudio_vectors, mt_gemini_generate, mt_gemini_stream, mt_gemini_list, mt_gemini_count,
    mt_gemini_embed, mt_gemini_embed_batch;

#endif
