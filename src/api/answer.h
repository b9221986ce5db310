/* The answer to one call while it is computed: what the engine's events mean for each choice, until it is written in
   the call's dialect. A streamed answer is written event by event and keeps its text (not its tokens); any other keeps
   everything until the end. Made on a preparation thread; then only the io thread uses it. */
#ifndef MT_API_ANSWER_H
#define MT_API_ANSWER_H

#include "api/dialect.h"
#include "api/random.h"
#include "api/speech.h"
#include "chat/parse.h"
#include "engine/request.h"
#include "text/tokenizer.h"

/* A token that was generated, or of the prompt. Its most likely alternatives are top[top_begin ...] of its
   list. */
typedef struct mt_said {
    uint32_t id;
    bool has_logprob;
    float logprob;
    size_t rank; /* of the prompt's tokens: see mt_event */
    size_t top_begin, top_count;
    size_t part; /* index of the speech part whose text the token belongs to; SIZE_MAX: none */
} mt_said;

/* Tokens with their logprobs. */
typedef struct mt_said_list {
    mt_said *at;
    size_t count, cap;
    /* How many were written already, where the dialect repeats them at the end; else those are removed */
    size_t told;
    size_t placed;   /* how many have their `part` */
    mt_logprob *top; /* alternatives of all tokens */
    size_t top_count, top_cap;
} mt_said_list;

/* One of the n texts that are generated for a prompt. */
struct mt_choice {
    size_t index, prompt; /* number among all choices; number of its prompt */
    bool begun, done;     /* its first event has come; its last has */
    bool echoed;          /* the prompt was written before it (echo) */
    mt_parser *parser;    /* NULL: all output is plain text */
    mt_speech speech;     /* all its text so far: reasoning, content, calls */
    mt_said_list said;    /* its tokens that are not written yet, kept where ids or logprobs are wanted */
    uint32_t *ids;        /* all its tokens, where form.context is set */
    size_t id_count, id_cap;
    size_t offset;           /* characters of the text before the first token of `said` */
    size_t tokens, cached;   /* generated so far; prompt tokens that came from the cache */
    size_t reasoning_tokens; /* of tokens: those of reasoning */
    uint64_t waited, spoke;  /* nanoseconds: see mt_event */
    size_t guessed, taken;   /* tokens that were guessed ahead, and how many of them were right */
    bool hide_reasoning;     /* reasoning is counted, but neither kept in the speech nor written */
    bool reasons;            /* the latest event of the parser was reasoning */
    mt_finish finish;
    float *vector; /* the embedding or score; free with mt_free */
    size_t vector_len;
    char *stop;          /* the stop string that ended it, or NULL; free with mt_free */
    size_t stop_len;     /* of stop, which may contain NULs */
    uint32_t stop_token; /* the token that ended it, or MT_TOKEN_NONE */
    bool repeated;       /* was ended since it repeated itself */
    size_t due;          /* tokens at which a dialect that repeats all in every chunk writes the next */
};

typedef struct mt_answer_prompt {
    const uint32_t *ids; /* in the answer's arena */
    size_t count;
    mt_chat_text echo; /* its text, where the answer repeats it */
    mt_said_list said; /* its tokens, where their logprobs are wanted */
} mt_answer_prompt;

struct mt_answer {
    const mt_dialect *dialect;
    mt_arena *arena; /* owned; the answer itself lies in it */
    char id[MT_RANDOM_ID];
    int64_t created, ended; /* seconds since 1970; ended: 0 until all choices are done */
    uint64_t began;         /* mt_clock_ns when the request came */
    uint64_t loading;       /* of that, nanoseconds that the call waited for its model to be loaded */
    const char *model;      /* the model's name; outlives the answer */
    struct {
        const char *family, *quantisation; /* of the model; outlive the answer; NULL: not known */
        size_t context;
        const char *size; /* number of parameters in short; outlives the answer */
        uint64_t bytes;   /* of its files */
        int64_t longest;  /* the context that it was trained for; 0: not known */
        bool gguf, vision, tools;
    } about;                       /* for dialects that tell it (mt_dialect.more) */
    const mt_tokenizer *tokenizer; /* borrowed; NULL: tokens have no text */
    uint32_t fingerprint;          /* of how it is computed (R12 of docs/numerics.md) */
    const uint32_t *eos;           /* the model's end tokens; borrowed */
    size_t eos_count;
    mt_form form;     /* the ask's */
    int64_t logprobs; /* how many alternatives per token; -1: no logprobs */
    bool listed;      /* the alternatives are tokens that the client has named (logprob_token_ids) */
    bool normalise;   /* vectors are scaled to length 1 */
    /* How many of the first choices are queries, where embeddings are compared for scores; 0: none */
    size_t queries;
    size_t width;             /* numbers of a vector as the model gives it; 0: the whole vector of a choice */
    const json_t *labels;     /* names of a classifier's labels; borrowed; NULL: the vectors are no classes */
    bool apart;               /* each of the labels has a probability of its own */
    size_t dimensions;        /* numbers of a vector that are written; 0: all */
    size_t n;                 /* choices for each prompt */
    json_t *tools;            /* of the chat, for parsers; a reference of its own, or NULL */
    json_t *extra;            /* as in mt_ask; a reference of its own, or NULL */
    struct mt_store *store;   /* where the answer is kept; borrowed; NULL: it is not kept */
    struct mt_recent *recent; /* as in mt_ask */
    size_t events;            /* how many were written for the client, where the dialect numbers them */
    /* The events, for clients that come back to a background answer; data may be NULL */
    mt_buf log;
    mt_answer_prompt *prompts;
    size_t prompt_count;
    mt_choice *choices; /* n for each prompt */
    size_t choice_count;
    size_t open;    /* how many choices are not done */
    bool failed;    /* `why` says why; further events are ignored */
    bool cancelled; /* cancelled by a client; its last events are still to come */
    mt_failure why;
};

/* An answer to an ask with so many prompts. On success the answer owns the arena, in which the ask may lie. NULL: the
   arena is full. Free with mt_answer_free. */
mt_answer *mt_answer_new(const mt_dialect *dialect, mt_arena *arena, const mt_ask *ask,
                         size_t prompt_count) MT_NODISCARD;
void mt_answer_free(mt_answer *answer); /* NULL is fine */

/* Gives each choice a parser for reasoning and tool calls. On the preparation thread, before the first event. False:
   *err. */
bool mt_answer_parse(mt_answer *answer, const mt_parse_settings *settings, mt_error *err) MT_NODISCARD;

/* Handles an event of the request number `prompt`, and appends to out the bytes for the client, if any. Where the event
   ends the answer with an error, answer->failed is set and nothing is appended. */
void mt_answer_feed(mt_answer *answer, size_t prompt, const mt_event *event, mt_buf *out);

/* Scales the vector of a choice as the ask wants it; only once. Returns how many of its numbers are to be written.
   Where there is one for each token, each is scaled and they lie one behind the other; the number is that of all. */
size_t mt_answer_embedding(const mt_answer *answer, mt_choice *choice);

/* Makes probabilities of what a classifier gave for a choice, unless the ask wants it as it is; only once. Returns the
   number of the likeliest label. */
size_t mt_answer_classes(const mt_answer *answer, mt_choice *choice);

/* Tokens of all prompts and choices together. */
typedef struct mt_usage {
    size_t prompt, cached;    /* of prompts; of these, those that came from the cache */
    size_t tokens, reasoning; /* generated; of these, those of reasoning */
} mt_usage;
mt_usage mt_answer_usage(const mt_answer *answer);

#endif
