/* See bench_svg.h. */
#include "cli/bench_svg.h"

#include <math.h>
#include <stdio.h>

void mt_svg_text(mt_buf *out, const char *text)
{
    for (; *text; text++)
        if (*text == '<')
            mt_buf_puts(out, "&lt;");
        else if (*text == '>')
            mt_buf_puts(out, "&gt;");
        else if (*text == '&')
            mt_buf_puts(out, "&amp;");
        else if (*text == '"')
            mt_buf_puts(out, "&quot;");
        else
            mt_buf_add(out, text, 1);
}

void mt_svg_number(char *text, size_t size, double value)
{
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    for (size_t i = 0; i < MT_COUNT(units); i++)
        if (fabs(value) >= units[i].unit) {
            snprintf(text, size, "%.4g%s", value / units[i].unit, units[i].name);
            return;
        }
    snprintf(text, size, "%.4g", fabs(value) < 1e-9 ? 0 : value);
}

const char *mt_report_cell(const json_t *row, const mt_bench_column *column, char cell[64])
{
    const json_t *value = json_object_get(row, column->key);
    if (json_is_string(value))
        snprintf(cell, 64, "%s", json_string_value(value));
    else if (json_is_number(value))
        snprintf(cell, 64, "%.*f", column->digits > 0 ? column->digits : 0, json_number_value(value));
    else
        snprintf(cell, 64, "-");
    return cell;
}
