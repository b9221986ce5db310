/* Tables, charts and the CSV file of the measurements of servers, see bench_server.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench_server.h"

#define CSV_BYTES (256u << 20)

/* The key of the load in a row. */
static const char *load_name(const mt_server_bench *b)
{
    return b->open ? "request_rate" : "clients";
}

static const char *load_text(const mt_server_bench *b, size_t number, char text[32])
{
    const double load = b->loads.at[number];
    snprintf(text, 32, "%g %s%s", load, b->open ? "requests/s" : "client", b->open || load < 2 ? "" : "s");
    return text;
}

static const mt_bench_column columns[] = {
    {"server", "server", 0},        {"load", "load", MT_BENCH_TEXT}, {"requests", "answered", 0},
    {"failed", "failed", 0},        {"prompt", "prompt tokens", 0},  {"cached", "% cached", 0},
    {"tokens", "answer tokens", 0}, {"rate", "tokens/s", 1},         {"first_p50", "first token ms: p50", 0},
    {"first_p90", "p90", 0},        {"first_p99", "p99", 0},         {"between_p50", "between tokens ms: p50", 1},
    {"between_p90", "p90", 1},      {"between_p99", "p99", 1},       {"whole_p50", "whole s: p50", 2},
};

static void put(json_t *row, const char *key, double value)
{
    if (isfinite(value))
        json_object_set_new(row, key, json_real(value));
}

static json_t *load_row(const mt_server_bench *b, size_t server, size_t number, mt_cell *cell)
{
    const mt_load_result *r = &cell->result;
    mt_series first = {0}, whole = {0}, prompt = {0}, cached = {0}, tokens = {0};
    size_t failed = 0;
    char load[32];
    double all = 0;
    for (size_t i = 0; i < r->count; i++) {
        const mt_load_record *x = &r->record[i];
        if (x->error[0]) {
            failed++;
            continue;
        }
        mt_series_add(&first, 1e3 * (x->first - x->start));
        mt_series_add(&whole, x->end - x->start);
        mt_series_add(&tokens, mt_load_tokens(x));
        all += mt_load_tokens(x);
        if (x->prompt > 0)
            mt_series_add(&prompt, (double)x->prompt);
        if (x->prompt > 0 && x->cached >= 0)
            mt_series_add(&cached, 100 * (double)x->cached / (double)x->prompt);
    }
    load_text(b, number, load);
    json_t *row = json_pack("{s:I, s:s, s:s, s:f, s:I, s:I}", "server", (json_int_t)server + 1, "url",
                            b->server[server].url, "load", load, load_name(b), b->loads.at[number], "requests",
                            (json_int_t)(r->count - failed), "failed", (json_int_t)failed);
    put(row, "prompt", mt_series_mean(&prompt));
    put(row, "cached", mt_series_mean(&cached));
    put(row, "tokens", mt_series_mean(&tokens));
    put(row, "seconds", r->seconds);
    put(row, "rate", all / r->seconds);
    put(row, "answered_rate", (double)(r->count - failed) / r->seconds);
    put(row, "first_p50", mt_series_quantile(&first, 0.5));
    put(row, "first_p90", mt_series_quantile(&first, 0.9));
    put(row, "first_p99", mt_series_quantile(&first, 0.99));
    put(row, "between_p50", 1e3 * mt_series_quantile(&cell->result.between, 0.5));
    put(row, "between_p90", 1e3 * mt_series_quantile(&cell->result.between, 0.9));
    put(row, "between_p99", 1e3 * mt_series_quantile(&cell->result.between, 0.99));
    put(row, "whole_p50", mt_series_quantile(&whole, 0.5));
    put(row, "whole_p99", mt_series_quantile(&whole, 0.99));
    mt_series_free(&first);
    mt_series_free(&whole);
    mt_series_free(&prompt);
    mt_series_free(&cached);
    mt_series_free(&tokens);
    return row;
}

/* Adds a chart of one or two members of the rows over the load. */
static void chart_of(mt_server_bench *b, const mt_bench_section *s, const char *title, const char *unit,
                     const char *const keys[2], const char *const names[2])
{
    mt_chart *c = mt_report_chart(b->report, title, b->open ? "requests a second" : "clients at a time", unit);
    for (size_t k = 0; k < b->servers; k++)
        for (size_t j = 0; j < 2 && keys[j]; j++) {
            char label[64];
            json_t *row;
            size_t i;
            if (b->servers > 1)
                snprintf(label, sizeof(label), "server %zu%s%s", k + 1, names[j][0] ? ", " : "", names[j]);
            else
                snprintf(label, sizeof(label), "%s", names[j][0] ? names[j] : "tokens of all answers");
            mt_chart_line *line = mt_chart_add(c, label, b->loads.count);
            line->colour = k;
            line->dashed = j > 0;
            json_array_foreach(s->rows, i, row)
                if ((size_t)json_integer_value(json_object_get(row, "server")) == k + 1)
                    mt_chart_point(line, json_number_value(json_object_get(row, load_name(b))),
                                   json_is_number(json_object_get(row, keys[j]))
                                       ? json_number_value(json_object_get(row, keys[j]))
                                       : NAN);
        }
}

/* Prints why requests failed, each reason once. */
static void tell_faults(mt_server_bench *b)
{
    for (size_t k = 0; k < b->servers; k++) {
        const char *known[8];
        size_t count[8] = {0}, kinds = 0;
        for (size_t i = 0; i < b->loads.count; i++)
            for (size_t j = 0; j < b->cell[k][i].result.count; j++) {
                const char *error = b->cell[k][i].result.record[j].error;
                size_t at = 0;
                while (at < kinds && strcmp(known[at], error) != 0)
                    at++;
                if (!error[0] || at == MT_COUNT(known))
                    continue;
                known[at] = error;
                kinds += at == kinds;
                count[at]++;
            }
        json_t *list = json_array();
        for (size_t i = 0; i < kinds; i++) {
            mt_report_say(b->report, "%zu request%s to %s failed: %s", count[i], count[i] > 1 ? "s" : "",
                          b->server[k].url, known[i]);
            json_array_append_new(list, json_pack("{s:s, s:I}", "error", known[i], "count", (json_int_t)count[i]));
        }
        if (kinds)
            json_object_set(b->report->facts, k ? "errors 2" : "errors", list);
        json_decref(list);
    }
}

static const mt_bench_column turn_columns[] = {
    {"server", "server", 0},        {"load", "load", MT_BENCH_TEXT}, {"turn", "turn", 0},
    {"prompt", "prompt tokens", 0}, {"cached", "% cached", 0},       {"first_p50", "first token ms: p50", 0},
    {"first_p90", "p90", 0},
};

/* A table of conversations by turn: shows whether the server computes earlier turns again. */
static void turn_table(mt_server_bench *b)
{
    mt_bench_section *s =
        mt_report_section(b->report, "turns", "Turns of conversations", turn_columns, MT_COUNT(turn_columns));
    snprintf(s->note, sizeof(s->note), "Each turn sends all that was said before it.");
    for (size_t k = 0; k < b->servers; k++)
        for (size_t i = 0; i < b->loads.count; i++)
            for (size_t turn = 0; turn < b->work[k].turns; turn++) {
                const mt_load_result *r = &b->cell[k][i].result;
                mt_series first = {0}, prompt = {0}, cached = {0};
                char load[32];
                for (size_t j = 0; j < r->count; j++) {
                    const mt_load_record *x = &r->record[j];
                    if (x->turn != turn || x->error[0])
                        continue;
                    mt_series_add(&first, 1e3 * (x->first - x->start));
                    if (x->prompt > 0)
                        mt_series_add(&prompt, (double)x->prompt);
                    if (x->prompt > 0 && x->cached >= 0)
                        mt_series_add(&cached, 100 * (double)x->cached / (double)x->prompt);
                }
                load_text(b, i, load);
                json_t *row = json_pack("{s:I, s:s, s:I}", "server", (json_int_t)k + 1, "load", load, "turn",
                                        (json_int_t)turn + 1);
                put(row, "prompt", mt_series_mean(&prompt));
                put(row, "cached", mt_series_mean(&cached));
                put(row, "first_p50", mt_series_quantile(&first, 0.5));
                put(row, "first_p90", mt_series_quantile(&first, 0.9));
                mt_report_row(s, row);
                mt_series_free(&first);
                mt_series_free(&prompt);
                mt_series_free(&cached);
            }
    mt_report_show(b->report, s);
}

void mt_bench_load_tables(mt_server_bench *b)
{
    mt_bench_section *s = mt_report_section(b->report, "loads", "Loads", columns, MT_COUNT(columns));
    if (b->servers == 1) { /* leaves out the first column, the name of the server */
        s->columns++;
        s->column_count--;
    }
    snprintf(
        s->note, sizeof(s->note),
        "tokens/s: of all answers together. First token: from sending a request to the first word. p90: nine of ten "
        "were at most so long.");
    for (size_t i = 0; i < b->loads.count; i++)
        for (size_t k = 0; k < b->servers; k++)
            mt_report_row(s, load_row(b, k, i, &b->cell[k][i]));
    mt_report_show(b->report, s);
    tell_faults(b);
    if (b->work[0].turns > 1)
        turn_table(b);
    chart_of(b, s, "Tokens a second", "tokens/s", (const char *const[]){"rate", NULL}, (const char *const[]){"", ""});
    chart_of(b, s, "Time to the first token", "ms", (const char *const[]){"first_p50", "first_p99"},
             (const char *const[]){"p50", "p99"});
    chart_of(b, s, "Time between tokens", "ms", (const char *const[]){"between_p50", "between_p99"},
             (const char *const[]){"p50", "p99"});
}

static const mt_bench_column ratio_columns[] = {
    {"load", "load", MT_BENCH_TEXT},
    {"what", "measured", MT_BENCH_TEXT},
    {"first", "server 1", 2},
    {"second", "server 2", 2},
    {"ratio", "ratio 1 : 2", 2},
    {"least", "least", 2},
    {"most", "most", 2},
};

/* Prints a sentence for each load: by how much the first server is faster. */
static void say_ratio(mt_server_bench *b, size_t number, mt_series *ratio)
{
    char load[32], key[64], text[160];
    const double r = mt_series_quantile(ratio, 0.5);
    if (!isfinite(r))
        return;
    snprintf(key, sizeof(key), "with %s", load_text(b, number, load));
    snprintf(text, sizeof(text), "server 1 gives %.2f times the tokens/s of server 2 (%.2f to %.2f in %zu rounds)", r,
             mt_series_quantile(ratio, 0), mt_series_quantile(ratio, 1), ratio->count);
    json_object_set_new(b->report->facts, key, json_string(text));
}

void mt_bench_ratio_table(mt_server_bench *b)
{
    static const char *const names[MT_METRICS] = {"tokens/s", "first token, ms", "between tokens, ms",
                                                  "whole answer, s"};
    mt_bench_section *s =
        mt_report_section(b->report, "ratios", "Server 1 beside server 2", ratio_columns, MT_COUNT(ratio_columns));
    mt_chart *c = mt_report_chart(b->report, "Server 1 beside server 2: tokens/s, each round",
                                  b->open ? "requests a second" : "clients at a time", "ratio 1 : 2");
    mt_chart_line *dots = mt_chart_add(c, "one round", b->loads.count * (size_t)b->opt->bench_rounds);
    dots->dots = true;
    snprintf(s->note, sizeof(s->note),
             "Medians of %lld rounds in which both were asked the same by turns; least and most: the ratio of single "
             "rounds. Of tokens/s more is better, of times less.",
             (long long)b->opt->bench_rounds);
    for (size_t i = 0; i < b->loads.count; i++)
        for (mt_metric m = 0; m < MT_METRICS; m++) {
            mt_series *one = &b->cell[0][i].round[m], *two = &b->cell[1][i].round[m], ratio = {0};
            char load[32];
            for (size_t j = 0; j < one->count && j < two->count; j++)
                if (isfinite(one->at[j] / two->at[j])) {
                    mt_series_add(&ratio, one->at[j] / two->at[j]);
                    if (m == MT_METRIC_RATE)
                        mt_chart_point(dots, b->loads.at[i], one->at[j] / two->at[j]);
                }
            load_text(b, i, load);
            json_t *row = json_pack("{s:s, s:s}", "load", load, "what", names[m]);
            put(row, "ratio", mt_series_quantile(&ratio, 0.5));
            put(row, "least", mt_series_quantile(&ratio, 0));
            put(row, "most", mt_series_quantile(&ratio, 1));
            /* Sorts the series, so only after the values of the rounds were paired */
            put(row, "first", mt_series_quantile(one, 0.5));
            put(row, "second", mt_series_quantile(two, 0.5));
            mt_report_row(s, row);
            if (m == MT_METRIC_RATE)
                say_ratio(b, i, &ratio);
            mt_series_free(&ratio);
        }
    mt_report_show(b->report, s);
    for (size_t i = 0; i < b->loads.count; i++) {
        char load[32], key[64];
        snprintf(key, sizeof(key), "with %s", load_text(b, i, load));
        if (json_object_get(b->report->facts, key))
            mt_report_say(b->report, "%s%s, %s.", i ? "" : "\n", key,
                          json_string_value(json_object_get(b->report->facts, key)));
    }
}

static void add_number(mt_buf *out, double value)
{
    if (isfinite(value))
        mt_buf_printf(out, ",%.6f", value);
    else
        mt_buf_puts(out, ",");
}

bool mt_bench_csv(const mt_server_bench *b, mt_error *err)
{
    mt_buf out;
    if (!b->opt->bench_csv)
        return true;
    mt_buf_init(&out, CSV_BYTES);
    mt_buf_printf(&out,
                  "server,%s,client,turn,start_s,first_token_s,whole_s,pieces,prompt_tokens,cached_tokens,"
                  "answer_tokens,error\n",
                  b->open ? "requests_per_s" : "clients");
    for (size_t k = 0; k < b->servers; k++)
        for (size_t i = 0; i < b->loads.count; i++)
            for (size_t j = 0; j < b->cell[k][i].result.count; j++) {
                const mt_load_record *r = &b->cell[k][i].result.record[j];
                mt_buf_printf(&out, "%s,%g,%zu,%zu", b->server[k].url, b->loads.at[i], r->client + 1, r->turn + 1);
                add_number(&out, r->start);
                add_number(&out, r->first - r->start);
                add_number(&out, r->end - r->start);
                mt_buf_printf(&out, ",%zu,%ld,%ld,%ld,\"", r->pieces, r->prompt, r->cached, r->tokens);
                for (const char *p = r->error; *p; p++)
                    mt_buf_puts(&out, *p == '"' ? "\"\"" : (char[]){*p == '\n' ? ' ' : *p, '\0'});
                mt_buf_puts(&out, "\"\n");
            }
    const bool ok = !out.full && mt_bench_write(b->opt->bench_csv, &out, err);
    mt_buf_free(&out);
    return ok;
}
