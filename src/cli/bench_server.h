/* The measurements of one or two servers, between those who take them and those who show them. */
#ifndef MT_CLI_BENCH_SERVER_H
#define MT_CLI_BENCH_SERVER_H

#include "cli/bench_load.h"

enum { MT_BENCH_SERVERS = 2, MT_BENCH_ROUNDS = 1000 };

typedef enum mt_metric {
    MT_METRIC_RATE,    /* tokens of all answers a second */
    MT_METRIC_FIRST,   /* median to the first token, ms */
    MT_METRIC_BETWEEN, /* median between tokens, ms */
    MT_METRIC_WHOLE,   /* median of whole answers, s */
    MT_METRICS
} mt_metric;

/* One load on one server. */
typedef struct mt_cell {
    mt_load_result result;       /* of all rounds */
    mt_series round[MT_METRICS]; /* a value for each round */
} mt_cell;

typedef struct mt_server_bench {
    const mt_options *opt;
    mt_report *report;
    mt_chat_server server[MT_BENCH_SERVERS];
    size_t servers;
    mt_workload work[MT_BENCH_SERVERS]; /* as each counts tokens */
    mt_bench_list loads;                /* clients, or requests a second */
    bool open;                          /* they are the latter */
    mt_cell cell[MT_BENCH_SERVERS][MT_BENCH_LIST];
} mt_server_bench;

void mt_bench_load_tables(mt_server_bench *b); /* of each server, with charts */
void mt_bench_ratio_table(mt_server_bench *b); /* of the first to the second */
bool mt_bench_csv(const mt_server_bench *b, mt_error *err) MT_NODISCARD;

#endif
