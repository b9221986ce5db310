/* The parts of the command motet bench: statistics, charts, the report, the measurements of a model in this process,
   and those of servers. Included by the files bench*.c. */
#ifndef MT_CLI_BENCH_H
#define MT_CLI_BENCH_H

#include <jansson.h>

#include "base/buf.h"
#include "device/timed.h"
#include "engine/opened.h"
#include "options/options.h"

/* ---- numbers ---- */

#define MT_BENCH_LIST 16 /* most numbers that one option may list */

typedef struct mt_bench_list {
    double at[MT_BENCH_LIST];
    size_t count;
} mt_bench_list;

/* Parses the comma-separated numbers of `text`, or of `usual` where `text` is NULL. Each must lie in least..most.
   False: *err names `option`. */
bool mt_bench_list_read(mt_bench_list *list, const char *option, const char *text, const char *usual, double least,
                        double most, mt_error *err) MT_NODISCARD;

/* Measured values in a growing array; all zero bytes is an empty series. Free with mt_series_free. */
typedef struct mt_series {
    double *at;
    size_t count, capacity;
    bool sorted;
} mt_series;

void mt_series_add(mt_series *s, double value);
/* The value below which the share `q` (0..1) of the values lies, interpolated between the two nearest values; NaN for
   an empty series. Sorts the values. */
double mt_series_quantile(mt_series *s, double q);
double mt_series_mean(const mt_series *s);
void mt_series_free(mt_series *s);

/* A generator of pseudo-random numbers: the same first state gives the same numbers. */
typedef struct mt_dice {
    uint64_t state;
} mt_dice;

uint64_t mt_dice_roll(mt_dice *d);
/* A random time in seconds until the next event, where events are independent and come `rate` times a second on
   average. */
double mt_dice_gap(mt_dice *d, double rate);

/* ---- charts ---- */

#define MT_CHART_LINES 8

/* One set of points of a chart. Owned by the chart. */
typedef struct mt_chart_line {
    char label[64];
    size_t colour; /* index of the colour; mt_chart_add gives every line another */
    bool dots;     /* draw single points, not connected ones */
    bool dashed;
    bool bare; /* draw no points, only the line: for a bound that was not measured */
    double *x, *y;
    size_t count;
    char (*name)[64]; /* [count] the label beside each point; NULL: no labels */
} mt_chart_line;

/* A diagram with two axes. Free with mt_chart_free. */
typedef struct mt_chart {
    char title[96], x[64], y[64]; /* the texts of the head and of the two axes, with units */
    bool log_x, log_y;
    mt_chart_line line[MT_CHART_LINES];
    size_t lines;
} mt_chart;

/* Adds a line that can have up to `capacity` points. NULL: the chart already has MT_CHART_LINES. */
mt_chart_line *mt_chart_add(mt_chart *c, const char *label, size_t capacity);
void mt_chart_point(mt_chart_line *line, double x, double y);
void mt_chart_free(mt_chart *c);
/* Appends the chart as an SVG element. */
void mt_chart_draw(mt_buf *out, const mt_chart *c);

/* ---- the report ---- */

/* One column of a table. */
typedef struct mt_bench_column {
    const char *key;   /* the member of a row that the column shows */
    const char *label; /* the head of the column, with the unit */
    int digits;        /* digits after the decimal point; MT_BENCH_TEXT: the member is a string */
} mt_bench_column;

#define MT_BENCH_TEXT (-1)

/* One table of the report. */
typedef struct mt_bench_section {
    const char *name; /* the key of the table in the JSON output */
    const char *title;
    char note[512]; /* a sentence above the table that says what the numbers mean */
    const mt_bench_column *columns;
    size_t column_count;
    json_t *rows; /* an array of objects; they may have members that no column shows; owned */
} mt_bench_section;

#define MT_BENCH_SECTIONS 16
#define MT_BENCH_CHARTS 16

/* All that one run of motet bench has to tell. Free with mt_report_free. */
typedef struct mt_report {
    char title[256];
    json_t *facts; /* an object about the whole run: program, machine, model; owned */
    mt_bench_section section[MT_BENCH_SECTIONS];
    size_t sections;
    mt_chart chart[MT_BENCH_CHARTS];
    size_t charts;
    mt_buf drawings; /* further SVG elements, which are not charts */
    bool json;       /* print only the JSON document at the end, no tables */
} mt_report;

void mt_report_init(mt_report *r, bool json);
void mt_report_free(mt_report *r);

/* Adds a table. Never NULL: MT_BENCH_SECTIONS is more than motet bench has tables. Borrows all texts and the columns
   until mt_report_free. */
mt_bench_section *mt_report_section(mt_report *r, const char *name, const char *title, const mt_bench_column *columns,
                                    size_t count);
mt_bench_section *mt_report_find(mt_report *r, const char *name); /* NULL: no table of that name */
mt_chart *mt_report_chart(mt_report *r, const char *title, const char *x, const char *y);

/* Adds a row to a table. Owns `row`. */
void mt_report_row(mt_bench_section *s, json_t *row);
/* Prints a table to standard output, unless the report is JSON. */
void mt_report_show(mt_report *r, const mt_bench_section *s);
/* Prints a sentence to standard output, unless the report is JSON. */
void mt_report_say(const mt_report *r, const char *fmt, ...) MT_PRINTF(2, 3);

/* Ends the report: prints the JSON document if the report is JSON, and writes the HTML page to the file `plot` unless
   that is NULL. False: a file could not be written. */
bool mt_report_end(mt_report *r, const char *plot, mt_error *err) MT_NODISCARD;
/* Appends the report as an HTML page. */
void mt_report_page(const mt_report *r, mt_buf *out);
bool mt_bench_write(const char *path, const mt_buf *content, mt_error *err) MT_NODISCARD;

/* ---- a model ---- */

/* The measurement of one model in this process. */
typedef struct mt_model_bench {
    const mt_options *opt;
    mt_report *report;
    mt_opened o;    /* the open checkpoint */
    mt_peaks peaks; /* the measured speed of the machine */
    /* What the options list: lengths of prompts in tokens, sequences that are answered together, the same for the
       measurement at depths, the depths (tokens already in the cache), and sides of pictures in pixels. */
    mt_bench_list prompts, batches, depth_batches, depths, sides;
    size_t tokens, rows; /* of an answer; most rows of a step */
} mt_model_bench;

/* Measures the servers that the options --url and --compare name. False: *err says why. */
bool mt_bench_server(const mt_options *opt, mt_report *report, mt_error *err) MT_NODISCARD;

/* Measures the model that the options name. */
bool mt_bench_model(const mt_options *opt, mt_report *report, mt_error *err) MT_NODISCARD;
/* Whether the option --only (or its default) includes the part of that name. */
bool mt_bench_wants(const mt_model_bench *b, const char *part);

/* The parts of the measurement of a model: steps, depths and operations; the vision tower; the time to the first token
   and requests beside each other. */
bool mt_bench_steps(mt_model_bench *b, mt_error *err) MT_NODISCARD;
bool mt_bench_tower(mt_model_bench *b, mt_error *err) MT_NODISCARD;
bool mt_bench_engine(mt_model_bench *b, mt_error *err) MT_NODISCARD;

/* Where the time of one step went, operation by operation. */
typedef struct mt_step_times {
    const char *name;  /* "prompt" */
    const char *about; /* "512 tokens of a prompt" */
    mt_timing *at;     /* [count] the operations, in the order in which they ran; borrowed */
    size_t count;
    uint64_t begin, wall; /* nanoseconds on the monotonic clock: when the step began, and how long it took */
} mt_step_times;

/* Adds the tables and the drawing of one step to the report. */
void mt_bench_operations(mt_model_bench *b, const mt_step_times *t);

/* FNV-1a over the bits of floats. The report shows this hash, so that a change that makes results different is seen.
   Start with MT_BENCH_HASH. */
#define MT_BENCH_HASH 0xcbf29ce484222325u
uint64_t mt_bench_hash(uint64_t hash, const float *x, size_t count);

#endif
