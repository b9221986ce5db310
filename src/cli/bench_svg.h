/* What charts, drawings and the page of motet bench share. */
#ifndef MT_CLI_BENCH_SVG_H
#define MT_CLI_BENCH_SVG_H

#include <jansson.h>

#include "base/buf.h"
#include "cli/bench.h"

/* Text as HTML and SVG take it. */
void mt_svg_text(mt_buf *out, const char *text);

/* A number as short as it is exact enough for an axis: 0.25, 12, 4k, 2M. */
void mt_svg_number(char *text, size_t size, double value);

/* What stands in a column of a row; "-" where there is nothing. Returns cell. */
const char *mt_report_cell(const json_t *row, const mt_bench_column *column, char cell[64]);

#endif
