/* Draws charts as SVG: see mt_chart in bench.h. The colours are CSS classes of the page (bench_page.c). */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "cli/bench.h"
#include "cli/bench_svg.h"

enum {
    WIDTH = 640,
    HEIGHT = 360,
    LEFT = 64,
    RIGHT = 16,
    TOP = 34,
    BOTTOM = 44,
    TICKS = 8,
    LABEL = 11 /* height of a point's label in pixels */
};

mt_chart_line *mt_chart_add(mt_chart *c, const char *label, size_t capacity)
{
    if (c->lines == MT_CHART_LINES)
        return NULL;
    mt_chart_line *line = &c->line[c->lines];
    line->colour = c->lines++;
    snprintf(line->label, sizeof(line->label), "%s", label);
    line->x = mt_alloc_array(capacity ? capacity : 1, sizeof(*line->x));
    line->y = mt_alloc_array(capacity ? capacity : 1, sizeof(*line->y));
    return line;
}

void mt_chart_point(mt_chart_line *line, double x, double y)
{
    if (!line || !isfinite(x) || !isfinite(y))
        return;
    line->x[line->count] = x;
    line->y[line->count++] = y;
}

void mt_chart_free(mt_chart *c)
{
    for (size_t i = 0; i < c->lines; i++) {
        mt_free(c->line[i].x);
        mt_free(c->line[i].y);
        mt_free(c->line[i].name);
    }
    *c = (mt_chart){0};
}

/* One axis: maps values low..high to pixels begin..end. */
typedef struct axis {
    bool log;
    double low, high, begin, end;
} axis;

static double place(const axis *a, double value)
{
    const double share =
        a->log ? (log(value) - log(a->low)) / (log(a->high) - log(a->low)) : (value - a->low) / (a->high - a->low);
    return a->begin + share * (a->end - a->begin);
}

/* 1, 2 or 5 times a power of ten, so that at most TICKS of them fit. */
static double round_step(double range)
{
    const double power = pow(10, floor(log10(range / TICKS)));
    static const double round[] = {1, 2, 5, 10};
    for (size_t i = 0; i < MT_COUNT(round); i++)
        if (range / (round[i] * power) <= TICKS)
            return round[i] * power;
    return 10 * power;
}

static axis axis_of(const mt_chart *c, bool vertical)
{
    axis a = {.log = vertical ? c->log_y : c->log_x, .low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < c->lines; i++)
        for (size_t k = 0; k < c->line[i].count; k++) {
            const double value = vertical ? c->line[i].y[k] : c->line[i].x[k];
            if (a.log && value <= 0)
                continue;
            a.low = fmin(a.low, value);
            a.high = fmax(a.high, value);
        }
    if (a.low > a.high)
        a.low = a.high = 1;
    if (a.log) {
        a.low = pow(10, floor(log10(a.low)));
        a.high = pow(10, ceil(log10(a.high * 1.0001)));
    } else {
        a.low = vertical || a.low > 0 ? 0 : a.low;
        a.high = a.high > a.low ? a.high : a.low + 1;
        const double step = round_step(a.high - a.low);
        a.high = ceil(a.high / step * 0.9999) * step;
    }
    a.begin = vertical ? HEIGHT - BOTTOM : LEFT;
    a.end = vertical ? TOP : WIDTH - RIGHT;
    return a;
}

static void tick(mt_buf *out, const axis *a, double value, bool vertical)
{
    const double at = place(a, value);
    char text[32];
    mt_svg_number(text, sizeof(text), value);
    if (vertical)
        mt_buf_printf(out,
                      "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"tick\" x=\"%d\" "
                      "y=\"%.1f\" text-anchor=\"end\">%s</text>",
                      LEFT, WIDTH - RIGHT, at, at, LEFT - 6, at + 4, text);
    else
        mt_buf_printf(out,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/><text class=\"tick\" "
                      "x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>",
                      at, at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 16, text);
}

static void draw_axis(mt_buf *out, const axis *a, bool vertical, const char *label)
{
    if (a->log)
        for (double value = a->low; value <= a->high * 1.0001; value *= 10)
            tick(out, a, value, vertical);
    else {
        const double step = round_step(a->high - a->low);
        for (double value = ceil(a->low / step) * step; value <= a->high + step / 1000; value += step)
            tick(out, a, value, vertical);
    }
    if (vertical)
        mt_buf_printf(out, "<text class=\"axis\" x=\"%d\" y=\"%d\">", LEFT - 56, TOP - 12);
    else
        mt_buf_printf(out, "<text class=\"axis\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - RIGHT, HEIGHT - 8);
    mt_svg_text(out, label);
    mt_buf_puts(out, "</text>");
}

/* The heights of labels that are already drawn, so that further labels do not cover them. */
typedef struct labels {
    double at[64];
    size_t count;
} labels;

static double free_place(labels *l, double y)
{
    for (size_t tries = 0, i = 0; tries < MT_COUNT(l->at) && i < l->count; i++)
        if (fabs(l->at[i] - y) < LABEL) {
            y = l->at[i] + LABEL + 1;
            tries++;
            i = (size_t)-1; /* the label was moved: compare it with all of them again */
        }
    if (l->count < MT_COUNT(l->at))
        l->at[l->count++] = y;
    return y;
}

static void draw_dots(mt_buf *out, const mt_chart_line *line, const axis *x, const axis *y)
{
    labels used = {0};
    for (size_t i = 0; i < line->count; i++) {
        const double px = place(x, line->x[i]), py = place(y, line->y[i]);
        mt_buf_printf(out, "<circle class=\"c%zu\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>", line->colour, px, py,
                      line->dots ? "4" : "3");
        mt_svg_text(out, line->name ? line->name[i] : line->label);
        mt_buf_printf(out, ": %.4g, %.4g</title></circle>", line->x[i], line->y[i]);
        if (!line->name || !line->name[i][0])
            continue;
        const bool right = px > WIDTH * 3 / 4.0;
        mt_buf_printf(out, "<text class=\"point\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", px + (right ? -7 : 7),
                      free_place(&used, py + 4), right ? "end" : "start");
        mt_svg_text(out, line->name[i]);
        mt_buf_puts(out, "</text>");
    }
}

static void draw_line(mt_buf *out, const mt_chart_line *line, const axis *x, const axis *y)
{
    if (!line->dots) {
        mt_buf_printf(out, "<polyline class=\"s%zu%s\" points=\"", line->colour, line->dashed ? " dashed" : "");
        for (size_t i = 0; i < line->count; i++)
            mt_buf_printf(out, "%.1f,%.1f ", place(x, line->x[i]), place(y, line->y[i]));
        mt_buf_puts(out, "\"/>");
    }
    if (!line->bare)
        draw_dots(out, line, x, y);
}

void mt_chart_draw(mt_buf *out, const mt_chart *c)
{
    const axis x = axis_of(c, false), y = axis_of(c, true);
    mt_buf_puts(out, "<figure><figcaption>");
    mt_svg_text(out, c->title);
    mt_buf_puts(out, "</figcaption><p class=\"legend\">");
    for (size_t i = 0; i < c->lines; i++) {
        mt_buf_printf(out, "<span><i class=\"b%zu%s\"></i>", c->line[i].colour, c->line[i].dashed ? " half" : "");
        mt_svg_text(out, c->line[i].label);
        mt_buf_puts(out, "</span> ");
    }
    mt_buf_printf(out, "</p><svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
    mt_svg_text(out, c->title);
    mt_buf_puts(out, ": ");
    mt_svg_text(out, c->y);
    mt_buf_puts(out, " by ");
    mt_svg_text(out, c->x);
    mt_buf_puts(out, "\">");
    draw_axis(out, &x, false, c->x);
    draw_axis(out, &y, true, c->y);
    for (size_t i = 0; i < c->lines; i++)
        draw_line(out, &c->line[i], &x, &y);
    mt_buf_puts(out, "</svg></figure>\n");
}
