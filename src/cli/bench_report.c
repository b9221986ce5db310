/* The report of motet bench, see bench.h: tables are printed as soon as they are complete; the JSON document and the
   HTML page come at the end. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cli/bench_svg.h"

enum { CELL = 64, MOST_COLUMNS = 16 };
#define PAGE_BYTES (64u << 20)

void mt_report_init(mt_report *r, bool json)
{
    memset(r, 0, sizeof(*r));
    r->json = json;
    r->facts = json_object();
    mt_buf_init(&r->drawings, PAGE_BYTES);
}

void mt_report_free(mt_report *r)
{
    json_decref(r->facts);
    for (size_t i = 0; i < r->sections; i++)
        json_decref(r->section[i].rows);
    for (size_t i = 0; i < r->charts; i++)
        mt_chart_free(&r->chart[i]);
    mt_buf_free(&r->drawings);
}

mt_bench_section *mt_report_section(mt_report *r, const char *name, const char *title, const mt_bench_column *columns,
                                    size_t count)
{
    mt_bench_section *s = &r->section[r->sections < MT_BENCH_SECTIONS ? r->sections++ : MT_BENCH_SECTIONS - 1];
    *s = (mt_bench_section){
        .name = name, .title = title, .columns = columns, .column_count = count, .rows = json_array()};
    return s;
}

mt_bench_section *mt_report_find(mt_report *r, const char *name)
{
    for (size_t i = 0; i < r->sections; i++)
        if (strcmp(r->section[i].name, name) == 0)
            return &r->section[i];
    return NULL;
}

mt_chart *mt_report_chart(mt_report *r, const char *title, const char *x, const char *y)
{
    mt_chart *c = &r->chart[r->charts < MT_BENCH_CHARTS ? r->charts++ : MT_BENCH_CHARTS - 1];
    snprintf(c->title, sizeof(c->title), "%s", title);
    snprintf(c->x, sizeof(c->x), "%s", x);
    snprintf(c->y, sizeof(c->y), "%s", y);
    return c;
}

void mt_report_row(mt_bench_section *s, json_t *row)
{
    json_array_append_new(s->rows, row);
}

/* The columns of a terminal that a UTF-8 text takes: one for each code point. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_cell(const char *text, size_t width, bool left)
{
    const int blank = (int)(width - width_of(text));
    printf("%*s%s%*s", left ? 0 : blank, "", text, left ? blank : 0, "");
}

void mt_report_show(mt_report *r, const mt_bench_section *s)
{
    size_t width[MOST_COLUMNS], i;
    char cell[CELL];
    json_t *row;
    if (r->json)
        return;
    mt_log_passed();
    for (size_t c = 0; c < s->column_count; c++) {
        width[c] = width_of(s->columns[c].label);
        json_array_foreach(s->rows, i, row) {
            const size_t own = width_of(mt_report_cell(row, &s->columns[c], cell));
            width[c] = own > width[c] ? own : width[c];
        }
    }
    printf("\n%s\n", s->title);
    if (s->note[0])
        printf("  %s\n", s->note);
    for (size_t c = 0; c < s->column_count; c++) {
        printf("  ");
        print_cell(s->columns[c].label, width[c], s->columns[c].digits == MT_BENCH_TEXT);
    }
    printf("\n");
    json_array_foreach(s->rows, i, row) {
        for (size_t c = 0; c < s->column_count; c++) {
            printf("  ");
            print_cell(mt_report_cell(row, &s->columns[c], cell), width[c], s->columns[c].digits == MT_BENCH_TEXT);
        }
        printf("\n");
    }
    fflush(stdout);
}

void mt_report_say(const mt_report *r, const char *fmt, ...)
{
    va_list args;
    if (r->json)
        return;
    mt_log_passed();
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
}

bool mt_bench_write(const char *path, const mt_buf *content, mt_error *err)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return mt_fail(err, MT_E_IO, "\"%s\" cannot be written: %s", path, strerror(errno));
    const bool written = fwrite(content->data, 1, content->len, file) == content->len;
    if ((fclose(file) != 0) | !written)
        return mt_fail(err, MT_E_IO, "\"%s\" cannot be written whole: %s", path, strerror(errno));
    return true;
}

static bool print_json(const mt_report *r, mt_error *err)
{
    json_t *all = json_deep_copy(r->facts);
    for (size_t i = 0; i < r->sections; i++)
        json_object_set(all, r->section[i].name, r->section[i].rows);
    char *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    json_decref(all);
    if (!text)
        return mt_fail(err, MT_E_MEMORY, "the report cannot be written as JSON");
    puts(text);
    mt_free(text);
    return true;
}

bool mt_report_end(mt_report *r, const char *plot, mt_error *err)
{
    mt_log_passed();
    if (r->json && !print_json(r, err))
        return false;
    if (!plot)
        return true;
    mt_buf page;
    mt_buf_init(&page, PAGE_BYTES);
    mt_report_page(r, &page);
    const bool ok = mt_bench_write(plot, &page, err);
    mt_buf_free(&page);
    if (ok)
        mt_report_say(r, "\nThe page with plots is %s.", plot);
    return ok;
}
