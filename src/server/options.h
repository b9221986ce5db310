/* The command line and the environment, parsed by the table in options.def. */
#ifndef MT_SERVER_OPTIONS_H
#define MT_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "device/device.h"
#include "engine/draft.h"
#include "media/limits.h"

typedef enum mt_command {
    MT_COMMAND_NONE,
#define COMMAND(id, name, operand, help) MT_COMMAND_##id,
#include "server/options.def"
} mt_command;

typedef enum mt_thinking { MT_THINK_AUTO, MT_THINK_ON, MT_THINK_OFF } mt_thinking;
typedef enum mt_web { MT_WEB_ON, MT_WEB_OFF } mt_web;
typedef enum mt_isolation { MT_ISOLATE_AUTO, MT_ISOLATE_ON, MT_ISOLATE_OFF } mt_isolation;

/* Of an option that may be given often. */
typedef struct mt_option_list {
    const char *at[MT_LIMIT_OPTION_LIST];
    size_t count;
} mt_option_list;

/* Strings are borrowed from argv and the environment. A value on the command line wins over the environment's. */
typedef struct mt_options {
    mt_command command;
    const char *dir;   /* of commands that take one; render: its template */
    const char *input; /* the second operand; render: its context */
    mt_command topic;  /* of help */
#define INT(field, ...) int64_t field;
#define CHOICE(field, type, ...) type field;
#define SIZE(field, ...) int64_t field;
#define NUMBER(field, ...) double field; /* NaN when not given */
#define LIST(field, ...) mt_option_list field;
#define CPUS(field, ...) unsigned field;    /* a set of MT_CPU_ bits */
#define TEXT(field, ...) const char *field; /* NULL when not given */
#define FLAG(field, ...) bool field;
#include "server/options.def"
} mt_options;

/* env looks a variable up as getenv does. Every value in *opt is within its range when this succeeds. */
bool mt_options_parse(mt_options *opt, int argc, char *const *argv, char *(*env)(const char *name),
                      mt_error *err) MT_NODISCARD;

/* What they say of the device; borrows its name. */
mt_device_params mt_options_device(const mt_options *opt);

/* What the options say of pictures and videos; borrows the folder's name. */
mt_media_limits mt_options_media(const mt_options *opt);

/* Appends what --help prints for a command (MT_COMMAND_NONE: for motet), or docs/options.md. */
void mt_options_help(mt_buf *out, mt_command command);
void mt_options_markdown(mt_buf *out);

#endif
