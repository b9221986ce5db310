/* Writes the man pages motet(1) and motet.conf(5), and a config file with every option as a comment. */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "options/options_table.h"

enum { WIDTH = 78 }; /* columns of a comment in a config file */

/* Escapes text for roff: backslashes, and hyphens, which would become dashes. */
static void add_roff(mt_buf *out, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p == '\\')
            mt_buf_puts(out, "\\e");
        else if (*p == '-')
            mt_buf_puts(out, "\\-");
        else
            mt_buf_add(out, p, 1);
    }
}

static void add_title(mt_buf *out, const char *name, const char *section, const char *manual)
{
    const char *day = strchr(mt_version_source, ' ');

    mt_buf_printf(out, ".\\\" Written by motet help from its table of options.\n.TH %s %s \"%s\" \"motet %s\" \"%s\"\n",
                  name, section, day ? day + 1 : "", mt_version, manual);
}

static void add_values(mt_buf *out, const mt_option_row *row)
{
    if (!row->values)
        return;
    mt_buf_puts(out, "\\fI");
    for (const char *p = row->values; *p; p++)
        mt_buf_puts(out, *p == '|' ? "\\fR|\\fI" : *p == '-' ? "\\-" : (char[]){*p, '\0'});
    mt_buf_puts(out, "\\fR");
}

/* The range, the default and, where `variable` is true, the environment variable, a sentence each. */
static void add_facts(mt_buf *out, const mt_option_row *row, bool variable)
{
    char least[24], most[24];
    mt_buf def = {.limit = 256};

    if (row->type == MT_OPTION_INT)
        mt_buf_printf(out, "From %lld to %lld.\n", (long long)row->least, (long long)row->most);
    if (row->type == MT_OPTION_SIZE && row->most < INT64_MAX)
        mt_buf_printf(out, "From %s to %s.\n", mt_option_size_text(row->least, least),
                      mt_option_size_text(row->most, most));
    if (row->type == MT_OPTION_NUMBER) {
        char range[64];

        snprintf(range, sizeof(range), "From %g to %g.\n", row->low, row->high);
        add_roff(out, range);
    }
    mt_option_default(&def, "Default: ", row, ".\n");
    add_roff(out, def.len ? def.data : "");
    mt_buf_free(&def);
    if (variable && row->env)
        mt_buf_printf(out, "Variable: \\fB%s\\fR.\n", row->env);
}

/* The commands that have the option. */
static void add_commands(mt_buf *out, const mt_option_row *row)
{
    const char *before = "Of ";

    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++)
        if (mt_option_applies(row, (mt_command)i)) {
            mt_buf_printf(out, "%s\\fB%s\\fR", before, mt_command_rows[i].name);
            before = ", ";
        }
    mt_buf_puts(out, ".\n");
}

/* A help text as a sentence. */
static void add_help(mt_buf *out, const char *help)
{
    const size_t start = out->len;

    add_roff(out, help);
    if (out->len > start && out->data[start] >= 'a' && out->data[start] <= 'z')
        out->data[start] = (char)(out->data[start] - 'a' + 'A');
    mt_buf_puts(out, ".\n");
}

/* An entry of a page: of motet(1), or (file) of motet.conf(5). */
static void add_option(mt_buf *out, const mt_option_row *row, bool file)
{
    static const char *const between[2][2] = {{"\\fR", "\\fR "}, {"\\fR = \\fIyes\\fR|\\fIno\\fR", "\\fR = "}};

    mt_buf_puts(out, file ? ".TP\n\\fB" : ".TP\n\\fB\\-\\-");
    add_roff(out, row->name);
    mt_buf_puts(out, between[file][row->values != NULL]);
    add_values(out, row);
    mt_buf_puts(out, "\n");
    add_help(out, row->help);
    add_facts(out, row, !file);
    if (!file)
        add_commands(out, row);
}

static void add_command(mt_buf *out, const mt_command_row *row)
{
    mt_buf_printf(out, ".TP\n\\fBmotet %s\\fR", row->name);
    if (*row->operand) {
        mt_buf_puts(out, " \\fI");
        add_roff(out, row->operand);
        mt_buf_puts(out, "\\fR");
    }
    mt_buf_puts(out, "\n");
    add_help(out, row->help);
}

void mt_options_man(mt_buf *out)
{
    add_title(out, "MOTET", "1", "User Commands");
    mt_buf_puts(
        out,
        ".SH NAME\nmotet \\- serve vision\\-language models from the checkpoint folders people have\n"
        ".SH SYNOPSIS\n.B motet\n.I command\n.RI [ operand ...]\n.RI [ option ...]\n"
        ".SH DESCRIPTION\n.B motet\nserves vision\\-language models to many clients at once, from "
        "checkpoints in Hugging Face's and MLX's formats,\nover the APIs of OpenAI, Anthropic, Google and Ollama.\n"
        "It also fetches them, runs them for one question, says what a checkpoint holds, and measures how fast it is.\n"
        ".SH COMMANDS\n");
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++)
        add_command(out, &mt_command_rows[i]);
    mt_buf_puts(out, ".SH OPTIONS\nAn option is written\n.BI \\-\\-name \\~value\nor\n.BI \\-\\-name= value .\n"
                     "It wins over its environment variable, and that over a config file.\n");
    for (size_t i = 0; i < mt_option_count; i++)
        add_option(out, &mt_option_rows[i], false);
    mt_buf_puts(out,
                ".SH FILES\n.TP\n.IR /etc/motet.conf ,\\~ ~/.config/motet.conf\nOptions of\n.BR \"motet serve\" ;\n"
                "other commands use those that are theirs, too.\nSee\n.BR motet.conf (5).\n"
                ".SH EXIT STATUS\n.TP\n.B 0\nAll is well.\n.TP\n.B 1\nSomething failed, and a sentence on standard "
                "error says what.\n.TP\n.B 2\nThe command line, a variable or a config file is wrong.\n.TP\n.B 3\n"
                "A file of weights was changed or could not be read any more while it was in use.\n"
                ".SH SIGNALS\n.B SIGTERM\nand\n.B SIGINT\nend a server once its answers are given, or after\n"
                ".BR \\-\\-drain\\-seconds ;\na second one ends it at once.\n"
                ".SH EXAMPLES\nA server for a folder:\n.PP\n.RS\n.nf\nmotet serve models/box --port 8000\n.fi\n.RE\n"
                ".PP\nOne question about a picture:\n.PP\n.RS\n.nf\n"
                "motet run models/box \"What do you see?\" --image examples/shapes.png\n.fi\n.RE\n"
                ".SH SEE ALSO\n.BR motet.conf (5)\n");
}

void mt_options_man_conf(mt_buf *out)
{
    add_title(out, "MOTET.CONF", "5", "File Formats");
    mt_buf_puts(out,
                ".SH NAME\nmotet.conf \\- options of motet serve\n"
                ".SH SYNOPSIS\n.I /etc/motet.conf\n.br\n.I ~/.config/motet.conf\n"
                ".SH DESCRIPTION\nA line is a setting,\n.IB name \\~=\\~ value ,\n"
                "a comment that begins with #, or empty.\n"
                "Names are those of the options of\n.BR \"motet serve\" ,\nwithout their hyphens.\n"
                "A flag may stand alone, or be\n.BR yes \" or \" no .\n"
                "What may be given often is written once for each value.\n"
                "A value in double quotes may hold # and blanks at its ends;\n"
                "there \\e\\(dq stands for a quote and \\e\\e for a backslash.\n"
                "Paths are taken as they stand: relative ones begin at the folder in which motet was started.\n.PP\n"
                "The file in the user's configuration folder counts more than the one in\n.IR /etc ,\n"
                "environment variables more than both, and options on the command line most.\n"
                ".B \\-\\-config\nor\n.B MOTET_CONFIG\nnames a file to read instead of these two.\n"
                "A name that does not exist, a value that is wrong and a setting that stands twice are errors.\n"
                ".B motet serve \\-\\-check\nsays whether a server would start.\n"
                ".B motet help config\nprints a file with every setting.\n.SH SETTINGS\n");
    for (size_t i = 0; i < mt_option_count; i++)
        if (mt_option_in_file(&mt_option_rows[i]))
            add_option(out, &mt_option_rows[i], true);
    mt_buf_puts(out, ".SH EXAMPLES\n.nf\n# for a few machines of this network\nhost = 0.0.0.0\nkeys = /etc/motet/keys\n"
                     "memory = 12G\nalias = gpt\\-4o\nalias = default\n.fi\n.SH SEE ALSO\n.BR motet (1)\n");
}

/* A text as comment lines of at most WIDTH columns. */
static void add_comment(mt_buf *out, const char *text)
{
    size_t column = 0;

    while (*text) {
        const size_t len = strcspn(text, " ");

        if (column == 0 || column + 1 + len > WIDTH) {
            mt_buf_puts(out, column ? "\n#" : "#");
            column = 1;
        }
        mt_buf_puts(out, " ");
        mt_buf_add(out, text, len);
        column += 1 + len;
        text += len + strspn(text + len, " ");
    }
    mt_buf_puts(out, "\n");
}

void mt_options_conf(mt_buf *out)
{
    mt_buf_puts(out, "# Options of motet serve: see motet.conf(5). What stands behind #name = is the default, or in\n"
                     "# capitals what to write. Say motet serve --check after a change.\n");
    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];
        size_t before;

        if (!mt_option_in_file(row))
            continue;
        mt_buf_puts(out, "\n");
        add_comment(out, row->help);
        if (row->type == MT_OPTION_CHOICE)
            mt_buf_printf(out, "# %s\n", row->values);
        mt_buf_printf(out, "#%s = ", row->name);
        before = out->len;
        mt_option_default(out, "", row, "");
        if (out->len == before)
            mt_buf_puts(out, row->type == MT_OPTION_FLAG ? "no" : row->values);
        mt_buf_puts(out, "\n");
    }
}
