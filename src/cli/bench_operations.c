/* Adds to the report where the time of one step went: its operations beside the peak speed of the machine, and the time
   that was lost between and inside them. Busy time is divided by the number of threads, so that the parts add up to the
   duration of the step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/bench.h"
#include "cli/bench_svg.h"

enum { KINDS = 128, COLOURS = 8 };

/* Operations of the same name and the same sizes, added up. */
typedef struct kind {
    const char *name;
    char label[64];
    mt_work work; /* the sizes of one call; bytes and operations are sums */
    size_t calls;
    uint64_t ns;       /* duration of all calls */
    mt_host_work host; /* what the threads of the host did meanwhile */
    size_t colour;     /* index of the colour in the drawing */
} kind;

typedef struct tally {
    mt_model_bench *b;
    const mt_step_times *t;
    kind kind[KINDS]; /* the last entry adds up all kinds that find no room */
    size_t kinds;
    uint64_t in_calls; /* nanoseconds inside of operations */
    mt_host_work host;
} tally;

static const char *plain_name(const char *name)
{
    return strncmp(name, "op_", 3) == 0 ? name + 3 : name;
}

static void label_kind(const tally *y, kind *k, const mt_timing *t)
{
    const char *name = plain_name(t->name);
    if (t->work.n && t->work.n == y->b->o.spec.vocab)
        snprintf(k->label, sizeof(k->label), "%s of the output, %zu to %zu", name, t->work.k, t->work.n);
    else if (t->work.n)
        snprintf(k->label, sizeof(k->label), "%s %zu to %zu", name, t->work.k, t->work.n);
    else
        snprintf(k->label, sizeof(k->label), "%s", name);
}

static kind *kind_of(tally *y, const mt_timing *t)
{
    for (size_t i = 0; i < y->kinds; i++) {
        kind *k = &y->kind[i];
        if (k->name == t->name && k->work.n == t->work.n && k->work.k == t->work.k &&
            k->work.arithmetic == t->work.arithmetic)
            return k;
    }
    if (y->kinds == KINDS)
        return &y->kind[KINDS - 1];
    kind *k = &y->kind[y->kinds++];
    *k = (kind){.name = t->name, .work = t->work};
    k->work.bytes = k->work.ops = 0;
    label_kind(y, k, t);
    return k;
}

static void add_host(mt_host_work *sum, const mt_host_work *w)
{
    sum->wall += w->wall;
    sum->busy += w->busy;
    sum->late += w->late;
    sum->idle += w->idle;
    sum->claims += w->claims;
}

static int longest_first(const void *a, const void *b)
{
    const kind *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Replaces all kinds that take less than a thousandth of the step by one, which becomes the last. */
static void fold(tally *y)
{
    size_t first = 0;
    while (first < y->kinds && (double)y->kind[first].ns >= 1e-3 * (double)y->t->wall)
        first++;
    if (y->kinds - first < 2)
        return;
    kind *rest = &y->kind[first];
    snprintf(rest->label, sizeof(rest->label), "%zu kinds of others", y->kinds - first);
    rest->work = (mt_work){0};
    rest->name = "others";
    for (size_t i = first + 1; i < y->kinds; i++) {
        rest->calls += y->kind[i].calls;
        rest->ns += y->kind[i].ns;
        add_host(&rest->host, &y->kind[i].host);
    }
    y->kinds = first + 1;
}

static void add_up(tally *y)
{
    for (size_t i = 0; i < y->t->count; i++) {
        const mt_timing *t = &y->t->at[i];
        kind *k = kind_of(y, t);
        k->calls++;
        k->ns += t->end - t->begin;
        k->work.bytes += t->work.bytes;
        k->work.ops += t->work.ops;
        add_host(&k->host, &t->host);
        add_host(&y->host, &t->host);
        y->in_calls += t->end - t->begin;
    }
    qsort(y->kind, y->kinds, sizeof(*y->kind), longest_first);
    fold(y);
    for (size_t i = 0; i < y->kinds; i++)
        y->kind[i].colour = i < COLOURS - 1 ? i : COLOURS - 1;
}

static double peak_of(const mt_peaks *p, mt_arithmetic arithmetic)
{
    switch (arithmetic) {
    case MT_ARITHMETIC_INT8: return p->int8;
    case MT_ARITHMETIC_BF16: return p->bf16;
    case MT_ARITHMETIC_FP32: return p->fp32;
    }
    return 0;
}

static const mt_bench_column operation_columns[] = {
    {"step", "step of", MT_BENCH_TEXT},
    {"operation", "operation", MT_BENCH_TEXT},
    {"calls", "calls", 0},
    {"ms", "ms", 3},
    {"share", "% of step", 1},
    {"memory_rate", "GB/s", 1},
    {"memory_share", "% of memory", 0},
    {"rate", "GOP/s", 1},
    {"rate_share", "% of peak", 0},
    {"threads", "% of threads", 0},
};

static json_t *row_of(const tally *y, const kind *k)
{
    static const char *const names[] = {"int8", "bf16", "fp32"};
    const double seconds = 1e-9 * (double)k->ns;
    const double threads = (double)mt_host_threads(mt_device_host(y->b->o.dev));
    const double alone = (double)(k->ns - k->host.wall);
    json_t *row =
        json_pack("{s:s, s:s, s:I, s:f, s:f}", "step", y->t->name, "operation", k->label, "calls", (json_int_t)k->calls,
                  "ms", 1e3 * seconds, "share", 100 * (double)k->ns / (double)y->t->wall);
    if (k->work.bytes > 0) {
        json_object_set_new(row, "bytes", json_real(k->work.bytes));
        json_object_set_new(row, "memory_rate", json_real(k->work.bytes / seconds * 1e-9));
        json_object_set_new(row, "memory_share", json_real(100 * k->work.bytes / seconds / y->b->peaks.bandwidth));
    }
    if (k->work.ops > 0) {
        const double peak = peak_of(&y->b->peaks, k->work.arithmetic);
        json_object_set_new(row, "operations", json_real(k->work.ops));
        json_object_set_new(row, "arithmetic", json_string(names[k->work.arithmetic]));
        json_object_set_new(row, "rate", json_real(k->work.ops / seconds * 1e-9));
        if (peak > 0)
            json_object_set_new(row, "rate_share", json_real(100 * k->work.ops / seconds / peak));
    }
    json_object_set_new(row, "threads", json_real(100 * ((double)k->host.busy + alone) / threads / (double)k->ns));
    return row;
}

/* The table of that name, made if needed: the steps of all kinds add rows to the same table. */
static mt_bench_section *section(mt_report *r, const char *name, const char *title, const mt_bench_column *columns,
                                 size_t count)
{
    mt_bench_section *known = mt_report_find(r, name);
    return known ? known : mt_report_section(r, name, title, columns, count);
}

static void report_operations(const tally *y)
{
    mt_bench_section *s =
        section(y->b->report, "operations", "Operations of a step", operation_columns, MT_COUNT(operation_columns));
    snprintf(
        s->note, sizeof(s->note),
        "Bytes and operations that each cannot do without, over the machine's peaks: near 100 %% of either, it is as "
        "fast as the machine. %% of threads: how much of the threads' time was work.");
    for (size_t i = 0; i < y->kinds; i++)
        mt_report_row(s, row_of(y, &y->kind[i]));
}

static const mt_bench_column loss_columns[] = {
    {"step", "step of", MT_BENCH_TEXT},
    {"what", "time", MT_BENCH_TEXT},
    {"ms", "ms", 3},
    {"share", "% of step", 1},
};

static void report_losses(const tally *y)
{
    const double threads = (double)mt_host_threads(mt_device_host(y->b->o.dev)), wall = (double)y->t->wall;
    const mt_host_work *h = &y->host;
    const struct {
        const char *what;
        double ns;
    } rows[] = {
        {"threads work", (double)h->busy / threads},
        {"threads wait for the last one (tails)", (double)h->idle / threads},
        {"threads begin late (barriers)", (double)h->late / threads},
        {"threads take their next item", (double)h->claims / threads},
        {"one thread works, others wait", (double)(y->in_calls - h->wall)},
        {"between operations", wall - (double)y->in_calls},
        {"the step", wall},
    };
    mt_bench_section *s =
        section(y->b->report, "losses", "What is lost around the work", loss_columns, MT_COUNT(loss_columns));
    snprintf(s->note, sizeof(s->note),
             "A step's time by what its threads do, which adds up to the step; all but the first line could be less.");
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        mt_report_row(s, json_pack("{s:s, s:s, s:f, s:f}", "step", y->t->name, "what", rows[i].what, "ms",
                                   1e-6 * rows[i].ns, "share", 100 * rows[i].ns / wall));
}

/* ---- drawings ---- */

enum { WIDTH = 1300, HEIGHT = 150, BAR = 90, TOP = 14 };

static size_t colour_of(const tally *y, const mt_timing *t)
{
    for (size_t i = 0; i < y->kinds; i++)
        if (y->kind[i].name == t->name && y->kind[i].work.n == t->work.n && y->kind[i].work.k == t->work.k)
            return y->kind[i].colour;
    return COLOURS - 1;
}

/* Draws the step from left to right: the width of an operation is its time, its height the share of the threads that
   worked. */
static void draw_step(const tally *y)
{
    mt_buf *out = &y->b->report->drawings;
    const double threads = (double)mt_host_threads(mt_device_host(y->b->o.dev));
    const uint64_t begin = y->t->begin, wall = y->t->wall;
    uint64_t end = begin;
    for (size_t i = 0; i < y->t->count; i++)
        end = y->t->at[i].end;
    const double scale = WIDTH / (double)(end - begin > wall ? end - begin : wall);
    mt_buf_printf(out, "<figure class=\"wide\"><figcaption>One step: %s, %.2f ms</figcaption><p class=\"legend\">",
                  y->t->about, 1e-6 * (double)wall);
    for (size_t i = 0; i < y->kinds && i < COLOURS; i++) {
        mt_buf_printf(out, "<span><i class=\"b%zu\"></i>", i);
        mt_svg_text(out, i < COLOURS - 1 ? y->kind[i].label : "others");
        mt_buf_puts(out, "</span> ");
    }
    mt_buf_printf(out, "</p><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Operations of one step by time\">",
                  WIDTH, HEIGHT);
    for (size_t i = 0; i < y->t->count; i++) {
        const mt_timing *t = &y->t->at[i];
        const double ns = (double)(t->end - t->begin), alone = ns - (double)t->host.wall;
        const double used = fmin(1, ((double)t->host.busy + alone) / threads / ns), high = used * BAR;
        mt_buf_printf(out, "<rect class=\"c%zu\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"><title>",
                      colour_of(y, t), scale * (double)(t->begin - begin), TOP + BAR - high, fmax(scale * ns, 0.3),
                      high);
        mt_svg_text(out, plain_name(t->name));
        if (t->work.n)
            mt_buf_printf(out, " %zu to %zu", t->work.k, t->work.n);
        mt_buf_printf(out, ": %.3f ms, %.0f %% of threads</title></rect>", 1e-6 * ns, 100 * used);
    }
    for (int i = 0; i <= 10; i++)
        mt_buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"%s\">%.3g%s</text>", WIDTH * i / 10.0,
                      TOP + BAR + 18,
                      i == 0    ? "start"
                      : i == 10 ? "end"
                                : "middle",
                      1e-6 * WIDTH / scale * i / 10, i == 10 ? " ms" : "");
    mt_buf_puts(out, "</svg></figure>\n");
}

static void add_roof(mt_chart *c, const char *name, double peak, double bandwidth, double low, double high)
{
    char label[64];
    if (peak <= 0)
        return;
    snprintf(label, sizeof(label), "%s: %.0f GOP/s", name, peak * 1e-9);
    mt_chart_line *line = mt_chart_add(c, label, 3);
    if (!line)
        return;
    line->dashed = line->bare = true;
    mt_chart_point(line, low, low * bandwidth * 1e-9);
    mt_chart_point(line, peak / bandwidth, peak * 1e-9);
    mt_chart_point(line, high, peak * 1e-9);
}

static void draw_roofs(const tally *y)
{
    const mt_peaks *p = &y->b->peaks;
    char title[96];
    double low = INFINITY, high = 0;
    snprintf(title, sizeof(title), "Roofline: %s", y->t->about);
    mt_chart *c = mt_report_chart(y->b->report, title, "operations for each byte", "GOP/s");
    c->log_x = c->log_y = true;
    mt_chart_line *dots = mt_chart_add(c, "operations that take 1 % of the step and more", KINDS);
    dots->dots = true;
    dots->name = mt_alloc_array(KINDS, sizeof(*dots->name));
    for (size_t i = 0; i < y->kinds; i++) {
        const kind *k = &y->kind[i];
        if (k->work.ops <= 0 || k->work.bytes <= 0 || (double)k->ns < 0.01 * (double)y->t->wall)
            continue;
        snprintf(dots->name[dots->count], sizeof(dots->name[0]), "%s", k->label);
        mt_chart_point(dots, k->work.ops / k->work.bytes, k->work.ops / (double)k->ns);
        low = fmin(low, k->work.ops / k->work.bytes);
        high = fmax(high, k->work.ops / k->work.bytes);
    }
    if (dots->count == 0)
        low = high = 1;
    high = fmax(high, 2 * p->int8 / p->bandwidth);
    low = pow(10, floor(log10(low)));
    add_roof(c, "int8", p->int8, p->bandwidth, low, high);
    if (p->bf16 < p->int8)
        add_roof(c, "bf16", p->bf16, p->bandwidth, low, high);
    if (p->fp32 < p->bf16)
        add_roof(c, "fp32", p->fp32, p->bandwidth, low, high);
}

void mt_bench_operations(mt_model_bench *b, const mt_step_times *t)
{
    tally *y = mt_alloc(sizeof(*y));
    y->b = b;
    y->t = t;
    add_up(y);
    report_operations(y);
    report_losses(y);
    draw_step(y);
    draw_roofs(y);
    mt_free(y);
}
