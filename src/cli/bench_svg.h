/* Text, numbers and table cells as the charts, drawings and the page of motet bench write them. */
#ifndef MT_CLI_BENCH_SVG_H
#define MT_CLI_BENCH_SVG_H

#include <jansson.h>

#include "base/buf.h"
#include "cli/bench.h"

/* Appends text with the characters escaped that HTML and SVG reserve. */
void mt_svg_text(mt_buf *out, const char *text);

/* Writes a number in the short form that axes show: 0.25, 12, 4k, 2M. */
void mt_svg_number(char *text, size_t size, double value);

/* Writes the text that a table shows for a column of a row, "-" where the row has no such member. Returns cell. */
const char *mt_report_cell(const json_t *row, const mt_bench_column *column, char cell[64]);

#endif
