/* The answer to one call while it is being given: what the engine's events mean for each choice, kept until it is
   written. Streamed answers are written event by event and keep what was said, without tokens; others keep all.
   Made on a preparation thread, then the io thread's. */
#ifndef MT_API_ANSWER_H
#define MT_API_ANSWER_H

#include "api/dialect.h"
#include "api/speech.h"
#include "chat/parse.h"
#include "engine/request.h"
#include "text/tokenizer.h"

#define MT_ANSWER_ID 48 /* bytes of an id, NUL included */

/* A token with its logprobs, which are top[top_begin ...] of its choice. */
typedef struct mt_said {
    uint32_t id;
    bool has_logprob;
    float logprob;
    size_t top_begin, top_count;
    size_t part; /* of the speech whose text it wrote; SIZE_MAX: none */
} mt_said;

typedef struct mt_said_list {
    mt_said *at;
    size_t count, cap;
    size_t told;   /* of them, where the dialect repeats them; otherwise they are forgotten */
    size_t placed; /* those that it is known of what part they wrote */
    mt_logprob *top;
    size_t top_count, top_cap;
} mt_said_list;

struct mt_choice {
    size_t index, prompt;
    bool begun, done;
    bool echoed;       /* the prompt was written before it */
    mt_parser *parser; /* NULL: all it says is text */
    mt_speech speech;  /* all of it */
    mt_said_list said; /* its tokens that are not written yet, where ids or logprobs are wanted */
    size_t offset;     /* characters of the text that `said` begins at */
    size_t tokens, cached;
    size_t reasoning_tokens; /* of them */
    uint64_t waited, spoke;  /* as the engine's event says, and the next two */
    size_t guessed, taken;
    bool hide_reasoning; /* it is counted, and not told */
    bool reasons;        /* what it said last is reasoning */
    mt_finish finish;
    float *vector; /* of an embedding or a score; free with mt_free */
    size_t vector_len;
    char *stop;          /* the stop string that was met, or NULL; free with mt_free */
    uint32_t stop_token; /* or MT_TOKEN_NONE */
    bool repeated;       /* it was ended since it went in circles */
};

typedef struct mt_answer_prompt {
    const uint32_t *ids; /* kept where return_token_ids wants them */
    size_t count;
    mt_chat_text echo; /* its text, where it is to be repeated */
    mt_said_list said; /* its tokens, where their logprobs are wanted */
} mt_answer_prompt;

struct mt_answer {
    const mt_dialect *dialect;
    mt_arena *arena; /* its own; the answer lies in it */
    char id[MT_ANSWER_ID];
    int64_t created, ended;        /* seconds since 1970; ended: 0 until it has */
    uint64_t began;                /* mt_clock_ns when it was asked for */
    uint64_t loading;              /* nanoseconds of these that its model was loaded for it */
    const char *model;             /* as clients know it; outlives the answer */
    const mt_tokenizer *tokenizer; /* borrowed; NULL: tokens have no text */
    const uint32_t *eos;           /* the model's ends; borrowed */
    size_t eos_count;
    bool stream, include_usage, continuous_usage, return_token_ids, tokens_as_ids, echo, background, timings;
    bool old_calls;                    /* calls are told in the form of functions */
    bool hide_reasoning;               /* of all choices */
    int64_t logprobs, prompt_logprobs; /* -1: none */
    bool vectors;                      /* each choice brings one */
    bool normalise;                    /* to length 1 */
    size_t queries;                    /* the first choices, where vectors are compared to give scores; 0: none */
    mt_scaling scaling;
    size_t dimensions;      /* of them that are told; 0: all */
    size_t n;               /* choices a prompt */
    json_t *tools;          /* the parsers'; a reference of its own, or NULL */
    json_t *extra;          /* the ask's; a reference of its own, or NULL */
    struct mt_store *store; /* where the answer is kept; borrowed; NULL: nowhere */
    size_t sequence;        /* events that were written, where the dialect numbers them */
    mt_buf log;             /* these events, of an answer that clients may come back to; data may be NULL */
    mt_answer_prompt *prompts;
    size_t prompt_count;
    mt_choice *choices; /* n a prompt */
    size_t choice_count;
    size_t open;    /* choices that are not done */
    bool failed;    /* why says so; nothing more is fed */
    bool cancelled; /* its end is yet to come */
    mt_failure why;
};

/* An answer to an ask with so many prompts. Takes arena on success, in which the ask may lie. NULL when it is full.
   Free with mt_answer_free. */
mt_answer *mt_answer_new(const mt_dialect *dialect, mt_arena *arena, const mt_ask *ask,
                         size_t prompt_count) MT_NODISCARD;
void mt_answer_free(mt_answer *answer); /* NULL is fine */

/* From here on all that is said is parsed. tools may be NULL. On the preparation thread, before the first event. */
bool mt_answer_parse(mt_answer *answer, const mt_parse_settings *settings, mt_error *err) MT_NODISCARD;

/* A new id with the dialect's prefix: random, so that nobody can guess another's. */
void mt_answer_name(char id[MT_ANSWER_ID], const char *prefix);

/* Takes in an event of the request for one prompt, and appends what it makes of it for the client. After an event that
   ends the whole in an error, failed is set and nothing has been written. */
void mt_answer_feed(mt_answer *answer, size_t prompt, const mt_event *event, mt_buf *out);

/* Gives the vector of a choice the length that is wanted; how many of its numbers are told. Once. */
size_t mt_answer_embedding(const mt_answer *answer, mt_choice *choice);

size_t mt_answer_prompt_tokens(const mt_answer *answer); /* of all prompts */
size_t mt_answer_tokens(const mt_answer *answer);        /* of all choices */
size_t mt_answer_reasoning_tokens(const mt_answer *answer);
size_t mt_answer_cached(const mt_answer *answer); /* prompt tokens that were not computed */

#endif
