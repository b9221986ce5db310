/* Writes the report as one HTML page that refers to no other file: tables, charts, and colours for light and dark. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench_svg.h"

static const char style[] =
    ":root{--ink:#1d2430;--dim:#5c6675;--paper:#fff;--line:#dfe3e8;--soft:#f5f7f9;--c0:#2b6cb0;--c1:#c05621;"
    "--c2:#2f855a;--c3:#805ad5;--c4:#b83280;--c5:#718096;--c6:#975a16;--c7:#319795}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--dim:#9aa5b5;--paper:#14181f;--line:#2c333e;"
    "--soft:#1b212a;--c0:#63b3ed;--c1:#f6ad55;--c2:#68d391;--c3:#b794f4;--c4:#f687b3;--c5:#a0aec0;--c6:#ecc94b;"
    "--c7:#4fd1c5}}body{margin:0 auto;max-width:1360px;padding:24px;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}h1{font-size:24px;margin:0 0 4px}h2{font-size:18px;margin:32px 0 4px}p{"
    "margin:4px 0;color:var(--dim);max-width:80ch}.scroll{overflow-x:auto}table{border-collapse:collapse;"
    "margin:8px 0;font-variant-numeric:tabular-nums}th,td{padding:3px 9px;text-align:right;"
    "border-bottom:1px solid var(--line);white-space:nowrap}th{color:var(--dim);font-weight:500;"
    "vertical-align:bottom;white-space:normal;max-width:8em}th.t,td.t{text-align:left}tr:hover td{"
    "background:var(--soft)}.charts{display:grid;"
    "grid-template-columns:repeat(auto-fit,minmax(min(100%,560px),1fr));gap:20px;margin-top:24px}figure{margin:0;"
    "padding:12px 14px;border:1px solid var(--line);border-radius:8px}figure.wide{grid-column:1/-1}figcaption{"
    "font-weight:600}svg{width:100%;height:auto;display:block}.legend{max-width:none}.legend span{"
    "margin-right:14px;white-space:nowrap}.legend i{display:inline-block;width:10px;height:10px;"
    "border-radius:2px;margin-right:5px}svg text{fill:var(--dim);font:12px system-ui,sans-serif}svg text.point{"
    "font-size:11px;fill:var(--ink)}svg .grid{stroke:var(--line)}polyline{fill:none;stroke-width:2}.half{"
    "opacity:.45}.dashed{stroke-dasharray:5 4;stroke-width:1.5}";

static void add_table(mt_buf *out, const mt_bench_section *s)
{
    json_t *row;
    size_t i;
    char cell[64];
    mt_buf_puts(out, "<h2>");
    mt_svg_text(out, s->title);
    mt_buf_puts(out, "</h2><p>");
    mt_svg_text(out, s->note);
    mt_buf_puts(out, "</p><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    mt_svg_text(out, s->title);
    mt_buf_puts(out, "\"><table><tr>");
    for (size_t c = 0; c < s->column_count; c++) {
        mt_buf_puts(out, s->columns[c].digits == MT_BENCH_TEXT ? "<th class=\"t\">" : "<th>");
        mt_svg_text(out, s->columns[c].label);
        mt_buf_puts(out, "</th>");
    }
    mt_buf_puts(out, "</tr>\n");
    json_array_foreach(s->rows, i, row) {
        mt_buf_puts(out, "<tr>");
        for (size_t c = 0; c < s->column_count; c++) {
            mt_buf_puts(out, s->columns[c].digits == MT_BENCH_TEXT ? "<td class=\"t\">" : "<td>");
            mt_svg_text(out, mt_report_cell(row, &s->columns[c], cell));
            mt_buf_puts(out, "</td>");
        }
        mt_buf_puts(out, "</tr>\n");
    }
    mt_buf_puts(out, "</table></div>\n");
}

static void add_facts(mt_buf *out, const json_t *facts)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)facts, key, value) {
        if (!json_is_string(value))
            continue;
        mt_buf_puts(out, "<p>");
        mt_svg_text(out, key);
        mt_buf_puts(out, ": ");
        mt_svg_text(out, json_string_value(value));
        mt_buf_puts(out, "</p>");
    }
}

void mt_report_page(const mt_report *r, mt_buf *out)
{
    mt_buf_puts(out, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                     "content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\"><title>");
    mt_svg_text(out, r->title);
    mt_buf_printf(out, "</title><style>%s", style);
    for (int i = 0; i < MT_CHART_LINES; i++)
        mt_buf_printf(out, ".s%d{stroke:var(--c%d)}.c%d{fill:var(--c%d)}.b%d{background:var(--c%d)}", i, i, i, i, i, i);
    mt_buf_puts(out, "</style></head><body><main><h1>");
    mt_svg_text(out, r->title);
    mt_buf_puts(out, "</h1>");
    add_facts(out, r->facts);
    mt_buf_puts(out, "<div class=\"charts\">\n");
    if (r->drawings.len)
        mt_buf_add(out, r->drawings.data, r->drawings.len);
    for (size_t i = 0; i < r->charts; i++)
        mt_chart_draw(out, &r->chart[i]);
    mt_buf_puts(out, "</div>\n");
    for (size_t i = 0; i < r->sections; i++)
        add_table(out, &r->section[i]);
    mt_buf_puts(out, "</main></body></html>\n");
}
