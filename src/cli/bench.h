/* The parts of motet bench: numbers, a report of tables and charts, what is measured of a model, and of servers. */
#ifndef MT_CLI_BENCH_H
#define MT_CLI_BENCH_H

#include <jansson.h>

#include "base/buf.h"
#include "device/timed.h"
#include "engine/opened.h"
#include "server/options.h"

/* ---- numbers ---- */

#define MT_BENCH_LIST 16 /* numbers of an option */

typedef struct mt_bench_list {
    double at[MT_BENCH_LIST];
    size_t count;
} mt_bench_list;

/* "1,2,4" of an option, or what is usual where text is NULL; each at least `least`, at most `most`. */
bool mt_bench_list_read(mt_bench_list *list, const char *option, const char *text, const char *usual, double least,
                        double most, mt_error *err) MT_NODISCARD;

/* Measured values; zeroed is empty. Free with mt_series_free. */
typedef struct mt_series {
    double *at;
    size_t count, capacity;
    bool sorted;
} mt_series;

void mt_series_add(mt_series *s, double value);
double mt_series_quantile(mt_series *s, double q); /* between the values next to it; NaN of none */
double mt_series_mean(const mt_series *s);
void mt_series_free(mt_series *s);

/* Random numbers that a seed decides. */
typedef struct mt_dice {
    uint64_t state;
} mt_dice;

uint64_t mt_dice_roll(mt_dice *d);
double mt_dice_gap(mt_dice *d, double rate); /* seconds to the next of events that come `rate` times a second */

/* ---- charts ---- */

#define MT_CHART_LINES 8

typedef struct mt_chart_line {
    char label[64];
    size_t colour; /* its number, where nobody says otherwise */
    bool dots;     /* points by themselves, not a line */
    bool dashed;
    bool bare; /* a line without points: a bound rather than what was measured */
    double *x, *y;
    size_t count;
    char (*name)[64]; /* of each point, shown beside it; NULL: they have none */
} mt_chart_line;

typedef struct mt_chart {
    char title[96], x[64], y[64]; /* with units */
    bool log_x, log_y;
    mt_chart_line line[MT_CHART_LINES];
    size_t lines;
} mt_chart;

/* A further line, with room for so many points; NULL where there are enough lines. */
mt_chart_line *mt_chart_add(mt_chart *c, const char *label, size_t capacity);
void mt_chart_point(mt_chart_line *line, double x, double y);
void mt_chart_free(mt_chart *c);
void mt_chart_draw(mt_buf *out, const mt_chart *c); /* as an SVG element */

/* ---- the report ---- */

typedef struct mt_bench_column {
    const char *key;   /* of a row */
    const char *label; /* with its unit */
    int digits;        /* behind the point; MT_BENCH_TEXT: it is no number */
} mt_bench_column;

#define MT_BENCH_TEXT (-1)

typedef struct mt_bench_section {
    const char *name; /* in JSON */
    const char *title;
    char note[512]; /* what the numbers mean */
    const mt_bench_column *columns;
    size_t column_count;
    json_t *rows; /* an array of objects; with more than the columns show, perhaps */
} mt_bench_section;

#define MT_BENCH_SECTIONS 16
#define MT_BENCH_CHARTS 16

typedef struct mt_report {
    char title[256];
    json_t *facts; /* what the whole is about: program, machine, model */
    mt_bench_section section[MT_BENCH_SECTIONS];
    size_t sections;
    mt_chart chart[MT_BENCH_CHARTS];
    size_t charts;
    mt_buf drawings; /* SVG that is no chart */
    bool json;       /* nothing is printed but the whole at the end */
} mt_report;

void mt_report_init(mt_report *r, bool json);
void mt_report_free(mt_report *r);

/* Never NULL: there is room for all that motet bench measures. */
mt_bench_section *mt_report_section(mt_report *r, const char *name, const char *title, const mt_bench_column *columns,
                                    size_t count);
mt_bench_section *mt_report_find(mt_report *r, const char *name); /* NULL: there is none */
mt_chart *mt_report_chart(mt_report *r, const char *title, const char *x, const char *y);

void mt_report_row(mt_bench_section *s, json_t *row);                         /* takes it */
void mt_report_show(mt_report *r, const mt_bench_section *s);                 /* prints the table, where people read */
void mt_report_say(const mt_report *r, const char *fmt, ...) MT_PRINTF(2, 3); /* a sentence between them */

/* At the end: JSON where it is wanted, and the page where `plot` names a file. */
bool mt_report_end(mt_report *r, const char *plot, mt_error *err) MT_NODISCARD;
void mt_report_page(const mt_report *r, mt_buf *out);
bool mt_bench_write(const char *path, const mt_buf *content, mt_error *err) MT_NODISCARD;

/* ---- a model ---- */

typedef struct mt_model_bench {
    const mt_options *opt;
    mt_report *report;
    mt_opened o;
    mt_peaks peaks;
    mt_bench_list prompts, batches, depth_batches, depths, sides;
    size_t tokens, rows; /* of an answer; of a step at most */
} mt_model_bench;

bool mt_bench_server(const mt_options *opt, mt_report *report, mt_error *err) MT_NODISCARD;

bool mt_bench_model(const mt_options *opt, mt_report *report, mt_error *err) MT_NODISCARD;
bool mt_bench_wants(const mt_model_bench *b, const char *part);

/* The parts: steps, depths and operations; the tower; first tokens and company. */
bool mt_bench_steps(mt_model_bench *b, mt_error *err) MT_NODISCARD;
bool mt_bench_tower(mt_model_bench *b, mt_error *err) MT_NODISCARD;
bool mt_bench_engine(mt_model_bench *b, mt_error *err) MT_NODISCARD;

/* Tables of where the time of a step went, and its drawing. */
typedef struct mt_step_times {
    const char *name;  /* "prompt" */
    const char *about; /* "512 tokens of a prompt" */
    mt_timing *at;     /* its calls */
    size_t count;
    uint64_t begin, wall; /* nanoseconds */
} mt_step_times;

void mt_bench_operations(mt_model_bench *b, const mt_step_times *t);

/* FNV-1a over the bits of floats, so that a faster but different result shows. */
#define MT_BENCH_HASH 0xcbf29ce484222325u
uint64_t mt_bench_hash(uint64_t hash, const float *x, size_t count);

#endif
