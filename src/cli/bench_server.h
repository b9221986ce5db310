/* The measurements of one or two servers: filled by bench_server.c, shown by bench_server_tables.c. */
#ifndef MT_CLI_BENCH_SERVER_H
#define MT_CLI_BENCH_SERVER_H

#include "cli/bench_load.h"

enum { MT_BENCH_SERVERS = 2, MT_BENCH_ROUNDS = 1000 };

/* The numbers that two servers are compared by. */
typedef enum mt_metric {
    MT_METRIC_RATE,    /* tokens of all answers a second */
    MT_METRIC_FIRST,   /* median to the first token, ms */
    MT_METRIC_BETWEEN, /* median between tokens, ms */
    MT_METRIC_WHOLE,   /* median of whole answers, s */
    MT_METRICS
} mt_metric;

/* One load on one server, over all rounds. */
typedef struct mt_cell {
    mt_load_result result;       /* the requests of all rounds */
    mt_series round[MT_METRICS]; /* a value for each round */
} mt_cell;

/* The state of motet bench --url and --compare. */
typedef struct mt_server_bench {
    const mt_options *opt;
    mt_report *report;
    mt_chat_server server[MT_BENCH_SERVERS];
    size_t servers;
    mt_workload work[MT_BENCH_SERVERS]; /* what each server is asked; differs in how it counts tokens */
    /* Each load: clients that ask at the same time, or requests a second */
    mt_bench_list loads;
    bool open; /* the loads are requests a second */
    mt_cell cell[MT_BENCH_SERVERS][MT_BENCH_LIST];
} mt_server_bench;

/* Adds a table of the loads, with charts, to the report. */
void mt_bench_load_tables(mt_server_bench *b);
/* Adds a table that compares the first server with the second. */
void mt_bench_ratio_table(mt_server_bench *b);
/* Writes one line for each request to the file that --csv names. False: it could not be written. */
bool mt_bench_csv(const mt_server_bench *b, mt_error *err) MT_NODISCARD;

#endif
