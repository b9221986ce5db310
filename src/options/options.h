/* The options of motet: the command line, environment variables and config files, parsed by the table in
   options.def. */
#ifndef MT_OPTIONS_OPTIONS_H
#define MT_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "device/params.h"
#include "engine/draft.h"
#include "events/kv_events.h"
#include "media/limits.h"
#include "options/limits.h"

typedef enum mt_command {
    MT_COMMAND_NONE,
#define COMMAND(id, name, operand, help) MT_COMMAND_##id,
#include "options/options.def"
} mt_command;

/* What random weights are drawn in: 16 is bf16. */
typedef enum mt_bench_bits { MT_BENCH_BITS_4, MT_BENCH_BITS_8, MT_BENCH_BITS_16, MT_BENCH_BITS_FP8 } mt_bench_bits;
typedef enum mt_thinking { MT_THINK_AUTO, MT_THINK_ON, MT_THINK_OFF } mt_thinking;
typedef enum mt_web { MT_WEB_ON, MT_WEB_OFF } mt_web;
typedef enum mt_sandbox { MT_SANDBOX_AUTO, MT_SANDBOX_OFF } mt_sandbox;
typedef enum mt_isolation { MT_ISOLATE_AUTO, MT_ISOLATE_ON, MT_ISOLATE_OFF } mt_isolation;

typedef enum mt_help_form {
    MT_HELP_TEXT,
    MT_HELP_MARKDOWN,
    MT_HELP_CONF,
    MT_HELP_MAN,
    MT_HELP_MAN_CONF,
    MT_HELP_BASH,
    MT_HELP_ZSH,
    MT_HELP_FISH,
    MT_HELP_FOREIGN
} mt_help_form;

/* Values of an option that may be given several times. */
typedef struct mt_option_list {
    const char *at[MT_LIMIT_OPTION_LIST];
    size_t count;
} mt_option_list;

/* All options of a command. Strings are borrowed from argv, the environment and `files`. A value on the command line
   wins over the environment, and that over config files. */
typedef struct mt_options {
    mt_arena *files;     /* owned: texts and names of config files; NULL: none were read */
    mt_option_list read; /* names of the config files that were read, the one that wins first */
    mt_command command;
    /* The first operand: for most commands a folder or model; for render its template */
    const char *dir;
    const char *input;   /* the second operand; for render its context */
    mt_option_list more; /* further operands, for commands that accept any number */
    mt_command topic;    /* for help: the command to explain */
#define INT(field, ...) int64_t field;
#define CHOICE(field, type, ...) type field;
#define SIZE(field, ...) int64_t field;
#define NUMBER(field, ...) double field; /* NaN when not given */
#define TIME(field, ...) double field;   /* NaN when not given */
#define LIST(field, ...) mt_option_list field;
#define CPUS(field, ...) unsigned field;    /* a set of MT_CPU_ bits */
#define TEXT(field, ...) const char *field; /* NULL when not given */
#define FLAG(field, ...) bool field;
#include "options/options.def"
} mt_options;

/* Parses the command line; env is called as getenv. True: every value in *opt is within its range. False: *err. Free
   with mt_options_free in any case. */
bool mt_options_parse(mt_options *opt, int argc, char *const *argv, char *(*env)(const char *name),
                      mt_error *err) MT_NODISCARD;
void mt_options_free(mt_options *opt);

/* The options about the device; borrows its name from opt. */
mt_device_params mt_options_device(const mt_options *opt);

/* The options about pictures and videos; borrows the folder's name from opt. */
mt_media_limits mt_options_media(const mt_options *opt);

/* Appends what --help prints for a command (MT_COMMAND_NONE: for motet). */
void mt_options_help(mt_buf *out, mt_command command);

/* Append what `motet help --as ...` prints: docs/options.md; a config file with every option in comments; the man pages
   motet(1) and motet.conf(5); completions for shells. */
void mt_options_markdown(mt_buf *out);
void mt_options_conf(mt_buf *out);
void mt_options_man(mt_buf *out);
void mt_options_man_conf(mt_buf *out);
void mt_options_bash(mt_buf *out);
void mt_options_zsh(mt_buf *out);
void mt_options_fish(mt_buf *out);
void mt_options_foreign_markdown(mt_buf *out); /* the tables of docs/coming-from.md */

#endif
