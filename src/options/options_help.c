/* Writes the text of --help, and docs/options.md. */
#include <string.h>

#include "options/options.h"
#include "options/options_table.h"

enum { COLUMN = 28 }; /* where the help of an option begins */

void mt_option_default(mt_buf *out, const char *before, const mt_option_row *row, const char *behind)
{
    const char *choice = row->values;

    if (row->type == MT_OPTION_INT)
        mt_buf_printf(out, "%s%lld%s", before, (long long)row->value, behind);
    if (row->type == MT_OPTION_SIZE)
        mt_buf_printf(out, "%s%s%s", before, mt_option_size_text(row->value, (char[24]){0}), behind);
    if (row->type == MT_OPTION_CPUS)
        mt_buf_printf(out, "%sall%s", before, behind);
    if (row->type == MT_OPTION_CHOICE) {
        for (int64_t i = 0; i < row->value; i++)
            choice += strcspn(choice, "|") + 1;
        mt_buf_printf(out, "%s%.*s%s", before, (int)strcspn(choice, "|"), choice, behind);
    }
}

static void add_option_help(mt_buf *out, const mt_option_row *row)
{
    size_t start = out->len, width;

    mt_buf_printf(out, "  --%s%s%s", row->name, row->values ? " " : "", row->values ? row->values : "");
    width = out->len - start;
    if (width + 2 > COLUMN) {
        mt_buf_puts(out, "\n");
        width = 0;
    }
    mt_buf_printf(out, "%*s%s", (int)(COLUMN - width), "", row->help);
    mt_option_default(out, " [", row, "]");
    mt_buf_puts(out, "\n");
}

static void add_options_help(mt_buf *out, mt_command command)
{
    mt_buf_puts(out, "\noptions [default]:\n");
    for (size_t i = 0; i < mt_option_count; i++)
        if (mt_option_applies(&mt_option_rows[i], command))
            add_option_help(out, &mt_option_rows[i]);
}

static void add_environment_help(mt_buf *out, mt_command command)
{
    bool first = true;

    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];

        if (!row->env || !mt_option_applies(row, command))
            continue;
        mt_buf_puts(out, first ? "\nenvironment, where the option is not given:\n" : "");
        mt_buf_printf(out, "  %-*s--%s\n", COLUMN - 2, row->env, row->name);
        first = false;
    }
}

void mt_options_help(mt_buf *out, mt_command command)
{
    const mt_command_row *row = &mt_command_rows[command];

    if (command != MT_COMMAND_NONE) {
        mt_buf_printf(out, "motet %s %s [options]: %s\n", row->name, row->operand, row->help);
        add_options_help(out, command);
        add_environment_help(out, command);
        return;
    }
    mt_buf_puts(out, "motet runs language models from the checkpoint folders people already have.\n\n"
                     "usage: motet COMMAND [options]\n\ncommands:\n");
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++) {
        size_t start = out->len;

        row = &mt_command_rows[i];
        mt_buf_printf(out, "  %s %s", row->name, row->operand);
        mt_buf_printf(out, "%*s%s\n", (int)(COLUMN - (out->len - start)), "", row->help);
    }
    add_options_help(out, command);
    mt_buf_puts(out, "\nmotet COMMAND --help explains a command.\n");
}

/* One row of the table. A '|' between choices becomes a comma, since it would end the cell. */
static void add_option_markdown(mt_buf *out, const mt_option_row *row)
{
    mt_buf_printf(out, "| `--%s` | ", row->name);
    if (row->type == MT_OPTION_INT)
        mt_buf_printf(out, "%lld to %lld", (long long)row->least, (long long)row->most);
    if (row->type == MT_OPTION_NUMBER)
        mt_buf_printf(out, "%g to %g", row->low, row->high);
    for (const char *p = row->type == MT_OPTION_INT || row->type == MT_OPTION_NUMBER || !row->values ? "" : row->values;
         *p; p++)
        mt_buf_puts(out, *p == '|' ? ", " : (char[]){*p, '\0'});
    mt_buf_puts(out, " | ");
    mt_option_default(out, "", row, "");
    mt_buf_printf(out, " | %s%s%s | %s |\n", row->env ? "`" : "", row->env ? row->env : "", row->env ? "`" : "",
                  row->help);
}

static void add_command_markdown(mt_buf *out, mt_command command)
{
    const mt_command_row *row = &mt_command_rows[command];

    if (command == MT_COMMAND_NONE)
        mt_buf_puts(out, "\n## motet\n\n");
    else
        mt_buf_printf(out, "\n## motet %s %s\n\nTo %s.\n\n", row->name, row->operand, row->help);
    mt_buf_puts(out, "| option | values | default | environment | meaning |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < mt_option_count; i++)
        if (mt_option_applies(&mt_option_rows[i], command))
            add_option_markdown(out, &mt_option_rows[i]);
}

void mt_options_markdown(mt_buf *out)
{
    mt_buf_puts(out,
                "# Options\n\nWritten by `make docs` from `src/options/options.def`: change that file, not this one.\n"
                "An option is written `--name value` or `--name=value`. It wins over its environment variable, and "
                "that over\na [config file](config.md), which may have all options of `motet serve`.\n");
    for (size_t i = 0; i < mt_command_count; i++)
        add_command_markdown(out, (mt_command)i);
}
