/* Puts load on a server: sends many chat requests at once and measures each. Used by bench_server.c. */
#ifndef MT_CLI_BENCH_LOAD_H
#define MT_CLI_BENCH_LOAD_H

#include "cli/bench.h"
#include "cli/chat.h"

/* The contents of a load's requests. */
typedef struct mt_workload {
    uint64_t seed;
    /* Tokens of a prompt: the part that differs between requests, and the part that all share */
    double prompt, prefix;
    size_t tokens; /* most tokens of an answer */
    size_t side;   /* pixels, of a picture that every request has; 0: no picture */
    size_t turns;  /* questions of one conversation; 1: every request stands alone */
    /* Tokens of a word, and tokens of a message besides its words; as measured at this server */
    double per_word, beside;
} mt_workload;

/* The messages of the first request of the conversation `number`. The same number gives the same messages. Free with
   json_decref. */
json_t *mt_workload_begin(const mt_workload *w, uint64_t number);

/* Adds the answer of the assistant and the next question, which is question `turn` of the conversation. */
void mt_workload_go_on(const mt_workload *w, json_t *messages, const char *answer, uint64_t number, size_t turn);

/* Appends `count` random words. */
void mt_workload_words(mt_buf *out, mt_dice *dice, size_t count);

/* The measurement of one request that is over. Times are in seconds since the start of the load. */
typedef struct mt_load_record {
    size_t client, turn;
    /* When the request was sent, when the first and the last piece of the answer came, when the transfer ended */
    double start, first, last, end;
    size_t pieces;               /* pieces of text in which the answer came */
    long prompt, tokens, cached; /* as the server counts them; -1: it does not say */
    char error[160];             /* why the request failed; empty: it did not */
} mt_load_record;

/* What load to put on which server. Borrows all pointers. */
typedef struct mt_load {
    const mt_chat_server *server;
    const mt_workload *work;
    /* Requests under way at any time: each is followed by the next when it is answered; 0: requests start at `rate`
       whatever is under way */
    size_t clients;
    double rate; /* requests a second, at random times */
    size_t requests;
    uint64_t number;   /* of the first conversation, see mt_workload_begin */
    double timeout;    /* seconds for one request */
    const char *label; /* the name of the load in messages on the terminal */
} mt_load;

/* All zero bytes is an empty result. Free with mt_load_result_free. */
typedef struct mt_load_result {
    mt_load_record *record; /* [count], in the order of their ends */
    size_t count, capacity;
    mt_series between; /* seconds from a piece of an answer to the next */
    double seconds;    /* duration of the load */
    bool interrupted;  /* the user pressed Ctrl-C */
} mt_load_result;

/* Runs the load and adds its measurements to the result. A request that fails is a record with an error. False: no
   request could be sent at all. */
bool mt_load_run(const mt_load *load, mt_load_result *result, mt_error *err) MT_NODISCARD;
void mt_load_result_free(mt_load_result *result);

/* Tokens of an answer: as the server counts them, else the pieces it came in. */
double mt_load_tokens(const mt_load_record *r);

#endif
