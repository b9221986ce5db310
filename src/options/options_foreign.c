/* Options of other programs, from options_foreign.def: what an error says of one, and the tables of
   docs/coming-from.md. */
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "options/options_table.h"

enum {
#define PROGRAM(id, ...) NUMBER_##id,
#include "options/options_foreign.def"
};

/* The bit of each program in foreign_row.programs. */
enum {
#define PROGRAM(id, ...) id = 1u << NUMBER_##id,
#include "options/options_foreign.def"
};

static const struct {
    const char *name, *command;
} programs[] = {
#define PROGRAM(id, name, command) {name, command},
#include "options/options_foreign.def"
};

typedef struct foreign_row {
    unsigned programs, commands; /* bits: 1 << the number of a program, 1 << mt_command */
    const char *theirs, *ours, *remark;
} foreign_row;

static const foreign_row rows[] = {
#define FOREIGN(set, on, theirs, ours, remark) {set, on, theirs, ours, remark},
#include "options/options_foreign.def"
};

/* The subject of a row. */
typedef enum foreign_kind { OPTIONS, VARIABLES, COMMANDS } foreign_kind;

static foreign_kind kind_of(const foreign_row *row)
{
    return row->theirs[0] == '-' ? OPTIONS : row->theirs[0] <= 'Z' ? VARIABLES : COMMANDS;
}

/* Whether a spelling of an option, up to its value, is a name of len bytes. vLLM accepts '_' for '-'. */
static bool is_spelled(const char *theirs, const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (theirs[i] != name[i] && (i < 2 || theirs[i] != '-' || name[i] != '_'))
            return false;
    return strchr(" ,=", theirs[len]) != NULL; /* strchr also finds the NUL at the end */
}

/* Whether a row has an option of that name. dashed: the name has its dashes. */
static bool row_has(const foreign_row *row, const char *name, bool dashed)
{
    for (const char *at = row->theirs; at; at = strstr(at, ", ")) {
        at += *at == ',' ? 2 : 0;
        if (is_spelled(at + (dashed ? 0 : strspn(at, "-")), name, strlen(name)))
            return true;
    }
    return false;
}

/* The names of the programs that have a row's option: "vLLM and vllm-mlx". */
static void add_programs(mt_buf *out, unsigned set)
{
    for (size_t i = 0; i < MT_COUNT(programs); i++) {
        if (!(set >> i & 1))
            continue;
        set &= ~(1u << i);
        mt_buf_printf(out, "%s%s", programs[i].name, !set ? "" : set & (set - 1) ? ", " : " and ");
    }
}

/* Text for a terminal: without backticks. */
static void add_plain(mt_buf *out, const char *text)
{
    for (; *text; text++)
        if (*text != '`')
            mt_buf_add(out, text, 1);
}

/* The option or command of motet to use instead of a row's. */
static void add_advice(mt_buf *out, const foreign_row *row)
{
    mt_buf_puts(out, *row->ours ? "use " : "");
    add_plain(out, row->ours);
    mt_buf_puts(out, *row->ours && *row->remark ? " (" : "");
    add_plain(out, row->remark);
    mt_buf_puts(out, *row->ours && *row->remark ? ")" : "");
}

/* Whether a row is about an option of that name, given to that command. */
static bool is_about(const foreign_row *row, const char *name, bool dashed, mt_command command)
{
    return (command == MT_COMMAND_NONE || (row->commands >> command & 1)) && row_has(row, name, dashed);
}

static bool advise_alike(const foreign_row *a, const foreign_row *b)
{
    return strcmp(a->ours, b->ours) == 0 && strcmp(a->remark, b->remark) == 0;
}

/* Appends what to use instead of an option that other programs have. Programs may give one name different meanings, so
   several rows may have it: rows with the same advice become one clause, which names all their programs. */
static void add_sentence(mt_buf *out, const char *name, bool dashed, mt_command command)
{
    const char *before = " is not an option of motet but of ";
    bool said[MT_COUNT(rows)] = {false};

    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        unsigned set = 0;

        if (said[i] || !is_about(&rows[i], name, dashed, command))
            continue;
        for (size_t k = i; k < MT_COUNT(rows); k++) {
            if (!advise_alike(&rows[i], &rows[k]) || !is_about(&rows[k], name, dashed, command))
                continue;
            set |= rows[k].programs;
            said[k] = true;
        }
        mt_buf_puts(out, before);
        add_programs(out, set);
        mt_buf_puts(out, ": ");
        add_advice(out, &rows[i]);
        before = "; of ";
    }
}

bool mt_options_foreign_command(const char *name, mt_error *err)
{
    mt_buf text = {.limit = MT_LIMIT_ERROR_TEXT};
    bool found = false;

    for (size_t i = 0; i < MT_COUNT(rows) && !found; i++) {
        found = kind_of(&rows[i]) == COMMANDS && row_has(&rows[i], name, true);
        if (!found)
            continue;
        mt_buf_puts(&text, rows[i].programs ? " but of " : "");
        add_programs(&text, rows[i].programs);
        mt_buf_puts(&text, ": ");
        add_advice(&text, &rows[i]);
        mt_fail(err, MT_E_INVALID, "\"%s\" is not a command of motet%s", name, text.data);
    }
    mt_buf_free(&text);
    return found;
}

bool mt_options_foreign(const char *name, mt_command command, mt_error *err)
{
    mt_buf text = {.limit = MT_LIMIT_ERROR_TEXT};
    bool found;

    add_sentence(&text, name, *name == '-', command);
    found = text.len > 0;
    if (found)
        mt_fail(err, MT_E_INVALID, "\"%s\"%s", name, text.data);
    mt_buf_free(&text);
    return found;
}

/* Text for a page: docs/NAME.md becomes a link, and what would end a cell is escaped. */
static void add_linked(mt_buf *out, const char *text)
{
    while (*text) {
        const char *page = strstr(text, "docs/");
        const size_t before = page ? (size_t)(page - text) : strlen(text);
        const size_t len = page ? strcspn(page + 5, " ),;") : 0;

        mt_buf_add(out, text, before);
        text += before;
        if (page) {
            mt_buf_printf(out, "[%.*s](%.*s)", (int)len, page + 5, (int)len, page + 5);
            text += 5 + len;
        }
    }
}

/* The options of others in a row, each between backticks. */
static void add_theirs(mt_buf *out, const char *theirs)
{
    while (*theirs) {
        const char *end = strstr(theirs, ", ");
        const size_t len = end ? (size_t)(end - theirs) : strlen(theirs);

        mt_buf_printf(out, "`%.*s`%s", (int)len, theirs, end ? ", " : "");
        theirs += len + (end ? 2 : 0);
    }
}

static void add_row(mt_buf *out, const foreign_row *row)
{
    const bool runs = !(row->commands >> MT_COMMAND_SERVE & 1) && kind_of(row) == OPTIONS;

    mt_buf_puts(out, "| ");
    add_theirs(out, row->theirs);
    mt_buf_puts(out, runs && *row->ours && strncmp(row->ours, "`motet", 6) != 0 ? " | `motet run`: " : " | ");
    mt_buf_puts(out, row->ours);
    mt_buf_puts(out, " | ");
    add_linked(out, row->remark);
    mt_buf_puts(out, " |\n");
}

/* The table of a program's options, environment variables or commands. Rows of motet serve come first. */
static void add_table(mt_buf *out, size_t program, foreign_kind kind)
{
    bool any = false;

    for (size_t i = 0; i < 2 * MT_COUNT(rows); i++) {
        const foreign_row *row = &rows[i % MT_COUNT(rows)];
        const bool serves = row->commands >> MT_COMMAND_SERVE & 1;

        if (!(row->programs >> program & 1) || kind_of(row) != kind || serves != (i < MT_COUNT(rows)))
            continue;
        if (!any && kind != OPTIONS)
            mt_buf_printf(out, "\n| %s | motet | |\n|---|---|---|\n", kind == VARIABLES ? "variable" : "command");
        else if (!any)
            mt_buf_printf(out, "| %s | motet | |\n|---|---|---|\n", programs[program].command);
        any = true;
        add_row(out, row);
    }
}

void mt_options_foreign_markdown(mt_buf *out)
{
    for (size_t i = 0; i < MT_COUNT(programs); i++) {
        mt_buf_printf(out, "<!-- %s: from src/options/options_foreign.def, by `make docs` -->\n\n", programs[i].name);
        add_table(out, i, OPTIONS);
        add_table(out, i, VARIABLES);
        add_table(out, i, COMMANDS);
        mt_buf_puts(out, "\n<!-- end -->\n");
    }
}
