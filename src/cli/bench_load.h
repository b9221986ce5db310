/* Requests to a server, many at once, and how long each took. */
#ifndef MT_CLI_BENCH_LOAD_H
#define MT_CLI_BENCH_LOAD_H

#include "cli/bench.h"
#include "cli/chat.h"

/* What requests say. */
typedef struct mt_workload {
    uint64_t seed;
    double prompt, prefix;   /* tokens: of each request's own, and of those that all share */
    size_t tokens;           /* of an answer */
    size_t side;             /* of a picture that goes with each; 0: none */
    size_t turns;            /* of a conversation; 1: single requests */
    double per_word, beside; /* tokens of a word and of what stands around a message; as a server has counted them */
} mt_workload;

/* The messages of a request without others before it. The same number says the same. Free with json_decref. */
json_t *mt_workload_begin(const mt_workload *w, uint64_t number);

/* Adds an answer and what is said next. */
void mt_workload_go_on(const mt_workload *w, json_t *messages, const char *answer, uint64_t number, size_t turn);

/* So many words. */
void mt_workload_words(mt_buf *out, mt_dice *dice, size_t count);

/* One request, over. Seconds are since the load began. */
typedef struct mt_load_record {
    size_t client, turn;
    double start, first, last, end;
    size_t pieces;               /* in which the answer came */
    long prompt, tokens, cached; /* as the server counts them; -1: it does not say */
    char error[160];             /* empty: none */
} mt_load_record;

typedef struct mt_load {
    const mt_chat_server *server;
    const mt_workload *work;
    size_t clients; /* that ask again when they are answered; 0: requests come at the rate */
    double rate;    /* a second */
    size_t requests;
    uint64_t number; /* of the first request */
    double timeout;  /* seconds */
    const char *label;
} mt_load;

typedef struct mt_load_result {
    mt_load_record *record; /* [count], in the order of their ends */
    size_t count, capacity;
    mt_series between; /* seconds from a piece of an answer to the next */
    double seconds;    /* of all of them together */
    bool interrupted;
} mt_load_result;

/* Adds to what is in the result. False with a sentence when nothing can be sent at all. */
bool mt_load_run(const mt_load *load, mt_load_result *result, mt_error *err) MT_NODISCARD;
void mt_load_result_free(mt_load_result *result);

/* Tokens of an answer: as the server counts them, else the pieces it came in. */
double mt_load_tokens(const mt_load_record *r);

#endif
