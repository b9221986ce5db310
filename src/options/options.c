/* Parses the command line, the environment and config files: see options.h. Each option is a row of options.def, which
   is included several times here with other macros: for the rows, their numbers and the fields of mt_options. */
#include "options/options.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/limits.h"
#include "base/limits.h"
#include "base/nearest.h"
#include "device/limits.h"
#include "engine/limits.h"
#include "hub/limits.h"
#include "media/limits.h"
#include "options/limits.h"
#include "options/options_table.h"
#include "sample/limits.h"
#include "tier/limits.h"
#include "weights/limits.h"

const mt_command_row mt_command_rows[] = {
    [MT_COMMAND_NONE] = {"motet", "", ""},
#define COMMAND(id, name, operand, help) [MT_COMMAND_##id] = {name, operand, help},
#include "options/options.def"
};
const size_t mt_command_count = MT_COUNT(mt_command_rows);

const mt_option_row mt_option_rows[] = {
#define INT(field, name, env, placeholder, value, least, most, on, help) \
    {MT_OPTION_INT, name, env, placeholder, help, value, least, most, 0, 0, on},
#define SIZE(field, name, env, value, least, most, on, help) \
    {MT_OPTION_SIZE, name, env, "SIZE", help, value, least, most, 0, 0, on},
#define NUMBER(field, name, low, high, on, help) {MT_OPTION_NUMBER, name, NULL, "X", help, 0, 0, 0, low, high, on},
#define TIME(field, name, env, on, help) {MT_OPTION_TIME, name, env, "TIME", help, 0, 0, 0, 0, 0, on},
#define LIST(field, name, env, placeholder, on, help) {MT_OPTION_LIST, name, env, placeholder, help, 0, 0, 0, 0, 0, on},
#define CHOICE(field, type, name, env, choices, value, on, help) \
    {MT_OPTION_CHOICE, name, env, choices, help, value, 0, 0, 0, 0, on},
#define CPUS(field, name, env, on, help) {MT_OPTION_CPUS, name, env, "LIST", help, 0, 0, 0, 0, 0, on},
#define TEXT(field, name, env, placeholder, on, help) {MT_OPTION_TEXT, name, env, placeholder, help, 0, 0, 0, 0, 0, on},
#define FLAG(field, name, on, help) {MT_OPTION_FLAG, name, NULL, NULL, help, 0, 0, 0, 0, 0, on},
#include "options/options.def"
};
const size_t mt_option_count = MT_COUNT(mt_option_rows);

/* The number of each option's row. `store` has a case for each, so that the compiler checks types of fields. */
enum {
#define OPTION(field, ...) ROW_##field,
#include "options/options.def"
};

/* Stores a value in the field of a row. */
/* clang-format off */
static void store(mt_options *opt, size_t row, mt_option_value v)
{
    switch (row) {
#define CASE(field, value) case ROW_##field: opt->field = value; break;
#define INT(field, ...) CASE(field, v.integer)
#define SIZE(field, ...) CASE(field, v.integer)
#define NUMBER(field, ...) CASE(field, v.number)
#define TIME(field, ...) CASE(field, v.number)
#define LIST(field, ...) case ROW_##field: break; /* has no default, and set_option adds to it */
#define CHOICE(field, type, ...) CASE(field, (type)v.integer)
#define CPUS(field, ...) CASE(field, v.mask)
#define TEXT(field, ...) CASE(field, v.text)
#define FLAG(field, ...) CASE(field, v.integer != 0)
#include "options/options.def"
    default: assert(0);
    }
}

/* The list in the field of a row; NULL where it is no list. */
static mt_option_list *list_of(mt_options *opt, size_t row)
{
    switch (row) {
#define LIST(field, ...) case ROW_##field: return &opt->field;
#include "options/options.def"
    default: return NULL;
    }
}
/* clang-format on */

bool mt_option_in_file(const mt_option_row *row)
{
    const size_t i = (size_t)(row - mt_option_rows);

    return mt_option_applies(row, MT_COMMAND_SERVE) && i != ROW_help && i != ROW_config && i != ROW_check;
}

/* The row of an option. Commands may have different options of one name: that of this command wins, then any
   other's. */
static const mt_option_row *find_option(const char *name, size_t len, mt_command command)
{
    const mt_option_row *found = NULL;

    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];

        if (strncmp(row->name, name, len) != 0 || row->name[len] != '\0')
            continue;
        if (mt_option_applies(row, command))
            return row;
        found = found ? found : row;
    }
    return found;
}

static mt_command find_command(const char *name)
{
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++)
        if (strcmp(mt_command_rows[i].name, name) == 0)
            return (mt_command)i;
    return MT_COMMAND_NONE;
}

static bool fail_command(const char *name, mt_error *err)
{
    mt_nearest nearest;

    if (mt_options_foreign_command(name, err))
        return false;
    mt_nearest_init(&nearest, name);
    for (size_t i = MT_COMMAND_NONE + 1; i < mt_command_count; i++)
        mt_nearest_offer(&nearest, mt_command_rows[i].name);
    if (nearest.best)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is not a command: did you mean \"%s\"?", name, nearest.best);
    return mt_fail(err, MT_E_INVALID, "\"%s\" is not a command: see motet help", name);
}

/* name: as given, with dashes and without its value. */
static bool fail_option(mt_command command, const char *name, mt_error *err)
{
    const char *program = command == MT_COMMAND_NONE ? "" : mt_command_rows[command].name;
    mt_nearest nearest;

    if (mt_options_foreign(name, command, err))
        return false;
    mt_nearest_init(&nearest, name + strspn(name, "-"));
    for (size_t i = 0; i < mt_option_count; i++)
        if (mt_option_applies(&mt_option_rows[i], command))
            mt_nearest_offer(&nearest, mt_option_rows[i].name);
    if (nearest.best)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is not an option: did you mean \"--%s\"?", name, nearest.best);
    return mt_fail(err, MT_E_INVALID, "\"%s\" is not an option: see motet %s%s--help", name, program,
                   *program ? " " : "");
}

/* The option exists, but for other commands. label: the option with its dashes. */
static bool fail_elsewhere(const mt_option_row *row, const char *label, mt_command command, mt_error *err)
{
    mt_command owner = MT_COMMAND_NONE;

    if (command != MT_COMMAND_NONE && mt_options_foreign(label, command, err))
        return false;
    while (!mt_option_applies(row, owner))
        owner++;
    if (command == MT_COMMAND_NONE)
        return mt_fail(err, MT_E_INVALID, "\"--%s\" stands before a command: write motet %s --%s", row->name,
                       mt_command_rows[owner].name, row->name);
    return mt_fail(err, MT_E_INVALID, "\"--%s\" is not an option of \"%s\": it belongs to %s%s", row->name,
                   mt_command_rows[command].name, owner == MT_COMMAND_NONE ? "" : "motet ",
                   mt_command_rows[owner].name);
}

/* Where a value comes from. Sources are used in the order of their weight, the line first and config files from the
   last to the first, and a value stays where an earlier source has set it. Each config file is a source of its own,
   from FILES on. */
enum { NOWHERE, LINE, ENVIRONMENT, FILES };

typedef struct parsing {
    mt_options *opt;
    unsigned from[MT_COUNT(mt_option_rows)]; /* for each row: the source that has set it */
} parsing;

/* Sets an option from a source. label: how an error names the option: "--threads", "MOTET_THREADS" or "threads". A
   value is checked even where another source wins. */
static bool set_option(parsing *p, const mt_option_row *row, unsigned from, const char *label, const char *text,
                       mt_error *err)
{
    const size_t i = (size_t)(row - mt_option_rows);
    mt_option_list *list = list_of(p->opt, i);
    mt_option_value v;

    if (!mt_option_value_parse(&v, row, label, text, err))
        return false;
    if (!mt_option_applies(row, p->opt->command) || (p->from[i] != NOWHERE && p->from[i] != from))
        return true;
    if (list && list->count == MT_LIMIT_OPTION_LIST)
        return mt_fail(err, MT_E_TOO_LARGE, "\"%s\" is given more than %d times: leave some out", label,
                       MT_LIMIT_OPTION_LIST);
    p->from[i] = from;
    if (list)
        list->at[list->count++] = v.text;
    else
        store(p->opt, i, v);
    return true;
}

static void set_defaults(mt_options *opt)
{
    *opt = (mt_options){0};
    for (size_t i = 0; i < mt_option_count; i++)
        store(opt, i, (mt_option_value){.integer = mt_option_rows[i].value, .number = NAN, .mask = ~0u, .text = NULL});
}

static bool set_from_environment(parsing *p, char *(*env)(const char *name), mt_error *err)
{
    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];
        const char *text = row->env && mt_option_applies(row, p->opt->command) ? env(row->env) : NULL;

        if (text && *text && !set_option(p, row, ENVIRONMENT, row->env, text, err))
            return false;
    }
    return true;
}

/* The name in a line of a config file is no option of the server. */
static bool fail_setting(const mt_option_line *line, mt_error *err)
{
    mt_nearest nearest;

    if (mt_options_foreign(line->name, MT_COMMAND_SERVE, err))
        return false;
    mt_nearest_init(&nearest, line->name);
    for (size_t i = 0; i < mt_option_count; i++)
        if (mt_option_in_file(&mt_option_rows[i]))
            mt_nearest_offer(&nearest, mt_option_rows[i].name);
    if (nearest.best)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is not an option: did you mean \"%s\"?", line->name, nearest.best);
    return mt_fail(err, MT_E_INVALID, "\"%s\" is not an option of motet serve: see motet help config", line->name);
}

/* Uses one line of a config file. seen: for each row, the line of this file that has set it; 0: none. */
static bool parse_setting(parsing *p, unsigned from, const mt_option_line *line, size_t *seen, mt_error *err)
{
    const mt_option_row *row = find_option(line->name, strlen(line->name), MT_COMMAND_SERVE);
    size_t *before;

    if (!row || !mt_option_in_file(row))
        return fail_setting(line, err);
    if (!line->value && row->type != MT_OPTION_FLAG)
        return mt_fail(err, MT_E_INVALID, "\"%s\" needs a value: %s = %s", row->name, row->name, row->values);
    before = &seen[row - mt_option_rows];
    if (*before && row->type != MT_OPTION_LIST)
        return mt_fail(err, MT_E_INVALID, "\"%s\" stands in line %zu already: take one of them out", row->name,
                       *before);
    *before = line->number;
    return set_option(p, row, from, row->name, line->value, err);
}

/* Uses the text of a config file, which is changed in place. */
static bool parse_file(parsing *p, unsigned from, char *text, const char *path, mt_error *err)
{
    size_t seen[MT_COUNT(mt_option_rows)] = {0};
    mt_option_file file = {.at = text};
    mt_option_line line;

    while (mt_option_file_next(&file, &line, err))
        if (!parse_setting(p, from, &line, seen, err))
            return mt_fail_within(err, "%s:%zu", path, line.number);
    return err->code == MT_OK || mt_fail_within(err, "%s:%zu", path, file.number);
}

/* Reads a file of any kind, a pipe or /dev/null, too. */
static bool read_file(mt_buf *text, const char *path, mt_error *err)
{
    char piece[4096];
    FILE *f = fopen(path, "r");
    bool ok = f != NULL;
    size_t n;

    while (ok && !text->full && (n = fread(piece, 1, sizeof(piece), f)) > 0)
        mt_buf_add(text, piece, n);
    ok = ok && !ferror(f);
    if (!ok)
        mt_fail(err, MT_E_IO, "cannot read \"%s\" (%s): check the path", path, strerror(errno));
    else if (text->full)
        ok = mt_fail(err, MT_E_TOO_LARGE, "\"%s\" has more than %u bytes: is it a config file?", path,
                     MT_LIMIT_OPTION_FILE);
    else if (text->data && strlen(text->data) != text->len)
        ok = mt_fail(err, MT_E_INVALID, "\"%s\" holds a byte of value 0: write it as text", path);
    if (f)
        fclose(f);
    return ok;
}

/* Reads a config file. usual: its path is one of the usual ones and was not given by an option; then it may be missing,
   and one that only the server may read does not keep others from using other commands. */
static bool set_from_file(parsing *p, unsigned from, const char *path, bool usual, mt_error *err)
{
    const bool closed = access(path, R_OK) != 0;
    mt_options *opt = p->opt;
    bool ok;
    mt_buf text = {.limit = MT_LIMIT_OPTION_FILE};

    mt_error_clear(err);
    if (usual && closed && (errno == ENOENT || errno == ENOTDIR || opt->command != MT_COMMAND_SERVE))
        return true;
    opt->files = opt->files ? opt->files : mt_arena_new(0);
    opt->read.at[opt->read.count++] = mt_arena_strdup(opt->files, path);
    ok = read_file(&text, path, err) &&
         (!text.data || parse_file(p, from, mt_arena_strdup(opt->files, text.data), path, err));
    mt_buf_free(&text);
    return ok;
}

/* The path of the user's own config file, by the XDG base directories; false where no variable tells it. */
static bool user_file(char path[MT_LIMIT_PATH], char *(*env)(const char *name))
{
    const char *config = env("XDG_CONFIG_HOME"), *home = env("HOME");
    int len;

    if (config && *config == '/')
        len = snprintf(path, MT_LIMIT_PATH, "%s/motet.conf", config);
    else if (home && *home == '/')
        len = snprintf(path, MT_LIMIT_PATH, "%s/.config/motet.conf", home);
    else
        return false;
    return len > 0 && len < MT_LIMIT_PATH;
}

/* Files that --config names, of which the last wins, or else the user's own and then the system's. */
static bool set_from_files(parsing *p, char *(*env)(const char *name), mt_error *err)
{
    const mt_option_list *named = &p->opt->config;
    char path[MT_LIMIT_PATH];

    for (size_t i = named->count; i-- > 0;)
        if (!set_from_file(p, FILES + (unsigned)i, named->at[i], false, err))
            return false;
    return named->count > 0 || ((!user_file(path, env) || set_from_file(p, FILES + 1, path, true, err)) &&
                                set_from_file(p, FILES, "/etc/motet.conf", true, err));
}

/* Parses the option at argv[*at] and its value, which may be the next word; *at moves to the last word used. */
static bool parse_option(parsing *p, int argc, char *const *argv, int *at, mt_error *err)
{
    const char *word = argv[*at], *name = word + 2, *text = NULL;
    const mt_command command = p->opt->command;
    size_t len = strcspn(name, "=");
    const mt_option_row *row = find_option(name, len, command);
    char label[64];

    snprintf(label, sizeof(label), "%.*s", (int)len + 2, word);
    if (!row)
        return fail_option(command, label, err);
    if (!mt_option_applies(row, command))
        return fail_elsewhere(row, label, command, err);
    if (name[len] == '=')
        text = name + len + 1;
    if (row->type == MT_OPTION_FLAG && text)
        return mt_fail(err, MT_E_INVALID, "\"%s\" takes no value: leave \"=%s\" out", label, text);
    if (row->type != MT_OPTION_FLAG && !text) {
        if (*at + 1 == argc)
            return mt_fail(err, MT_E_INVALID, "\"%s\" needs a value: %s %s", label, label, row->values);
        text = argv[++*at];
    }
    return set_option(p, row, LINE, label, text, err);
}

/* A word that is no option: opt->dir, then opt->input or opt->more, as the command's row has operands; of motet help a
   topic. */
static bool parse_operand(mt_options *opt, const char *word, mt_error *err)
{
    const mt_command_row *row = &mt_command_rows[opt->command];
    const bool two = strchr(row->operand, ' ') != NULL, none = opt->command != MT_COMMAND_NONE && !*row->operand;
    const bool many = strstr(row->operand, "...") != NULL;

    if (many && opt->dir && opt->more.count < MT_LIMIT_OPTION_LIST) {
        opt->more.at[opt->more.count++] = word;
        return true;
    }
    if (none || opt->topic || (opt->dir && (opt->input || !two)))
        return mt_fail(err, MT_E_INVALID, "\"%s\" is one argument too many: motet %s%s%s", word, row->name,
                       none ? "" : " ", row->operand);
    if (opt->command != MT_COMMAND_HELP) {
        *(opt->dir ? &opt->input : &opt->dir) = word;
        return true;
    }
    if (strcmp(word, "config") == 0) {
        opt->help_form = MT_HELP_CONF;
        return true;
    }
    opt->topic = find_command(word);
    return opt->topic != MT_COMMAND_NONE || fail_command(word, err);
}

/* The short options -h and -v. */
static bool parse_letter(mt_options *opt, const char *word, mt_error *err)
{
    const bool help = strcmp(word, "-h") == 0;
    const bool version = strcmp(word, "-v") == 0 && mt_option_applies(&mt_option_rows[ROW_version], opt->command);

    opt->help |= help;
    opt->version |= version;
    return help || version || fail_option(opt->command, word, err);
}

/* Checks that no operand is missing. */
static bool check_complete(const mt_options *opt, mt_error *err)
{
    const mt_command_row *command = &mt_command_rows[opt->command];
    const char *second = strchr(command->operand, ' ');
    const bool two = second && second[1] != '[';

    if (command->operand[0] != '\0' && command->operand[0] != '[' && (!opt->dir || (two && !opt->input)))
        return mt_fail(err, MT_E_INVALID, "\"%s\" needs %s: motet %s %s", command->name,
                       two                                           ? "two files"
                       : strncmp(command->operand, "NAME", 4) == 0   ? "a name"
                       : strncmp(command->operand, "MODEL", 5) == 0  ? "a model's name"
                       : strncmp(command->operand, "ANSWER", 6) == 0 ? "a saved answer"
                                                                     : "a checkpoint folder",
                       command->name, command->operand);
    return true;
}

static bool parse_line(parsing *p, int argc, char *const *argv, int at, mt_error *err)
{
    bool only_operands = false;

    for (; at < argc; at++) {
        const char *word = argv[at];

        if (!only_operands && strcmp(word, "--") == 0)
            only_operands = true;
        else if (!only_operands && word[0] == '-' && word[1] == '-') {
            if (!parse_option(p, argc, argv, &at, err))
                return false;
        } else if (!only_operands && word[0] == '-' && word[1]) {
            if (!parse_letter(p->opt, word, err))
                return false;
        } else if (!parse_operand(p->opt, word, err))
            return false;
    }
    return true;
}

bool mt_options_parse(mt_options *opt, int argc, char *const *argv, char *(*env)(const char *name), mt_error *err)
{
    const bool named = argc > 1 && argv[1][0] != '-';
    parsing p = {.opt = opt};

    set_defaults(opt);
    if (named)
        opt->command = find_command(argv[1]);
    if (named && opt->command == MT_COMMAND_NONE)
        return fail_command(argv[1], err);
    if (!parse_line(&p, argc, argv, named ? 2 : 1, err))
        return false;
    if (opt->help)
        return true;
    if (!set_from_environment(&p, env, err) ||
        (mt_option_applies(&mt_option_rows[ROW_config], opt->command) && !set_from_files(&p, env, err)))
        return false;
    /* Commands that answer one question log less than a server. */
    if (p.from[ROW_log_level] == NOWHERE && opt->command != MT_COMMAND_SERVE)
        opt->log_level = MT_LOG_WARN;
    return check_complete(opt, err);
}

void mt_options_free(mt_options *opt)
{
    mt_arena_free(opt->files);
    opt->files = NULL;
}

mt_device_params mt_options_device(const mt_options *opt)
{
    return (mt_device_params){.name = opt->device,
                              .precision = opt->precision,
                              .kv_bits = opt->kv_bits,
                              .numerics = opt->arithmetic,
                              .host = {.threads = (size_t)opt->threads, .cpu_mask = opt->cpu_mask}};
}

mt_media_limits mt_options_media(const mt_options *opt)
{
    return (mt_media_limits){
        .bytes = (size_t)opt->media_max_bytes,
        .pixels = (uint64_t)opt->media_max_pixels,
        .video_pixels = (uint64_t)opt->video_max_pixels,
        .video_frames = opt->video_max_frames,
        .image_seconds = MT_LIMIT_MEDIA_IMAGE_SECONDS,
        .video_seconds = (double)opt->video_max_seconds,
        .fetch_ms = opt->media_seconds * 1000,
        .allow_private = opt->media_allow_private,
        .root = opt->media_root,
    };
}
