/* The rows of options.def as data; shared by options.c and the options_*.c only. */
#ifndef MT_SERVER_OPTIONS_TABLE_H
#define MT_SERVER_OPTIONS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/options.h"

typedef struct mt_command_row {
    const char *name, *operand, *help;
} mt_command_row;

typedef enum mt_option_type {
    MT_OPTION_INT,
    MT_OPTION_SIZE,
    MT_OPTION_NUMBER,
    MT_OPTION_TIME,
    MT_OPTION_CHOICE,
    MT_OPTION_CPUS,
    MT_OPTION_LIST,
    MT_OPTION_TEXT,
    MT_OPTION_FLAG
} mt_option_type;

typedef struct mt_option_row {
    mt_option_type type;
    const char *name, *env, *values, *help; /* values: the placeholder, or the choices */
    int64_t value, least, most;             /* value: the default */
    double low, high;                       /* of NUMBER */
    unsigned commands;                      /* bits 1 << mt_command */
} mt_option_row;

typedef struct mt_option_value {
    int64_t integer;
    double number;
    unsigned mask;
    const char *text; /* borrowed */
} mt_option_value;

/* label: how the sentence names the source, "--threads", "MOTET_THREADS" or "threads". text: NULL for a flag that is
   just named. */
bool mt_option_value_parse(mt_option_value *v, const mt_option_row *row, const char *label, const char *text,
                           mt_error *err) MT_NODISCARD;

/* A number of bytes as people write it: "64M" rather than 67108864. Returns text. */
const char *mt_option_size_text(int64_t bytes, char text[24]);

/* A line of a config file. */
typedef struct mt_option_line {
    char *name, *value; /* value: NULL where the name stands alone */
    size_t number;
} mt_option_line;

typedef struct mt_option_file {
    char *at; /* what is left of the text, which is written to */
    size_t number;
} mt_option_file;

/* The next line that is neither empty nor a comment. False at the end, or with a sentence in *err. */
bool mt_option_file_next(mt_option_file *file, mt_option_line *line, mt_error *err) MT_NODISCARD;

/* Whether config files may have it: what motet serve takes, and has a meaning there. */
bool mt_option_in_file(const mt_option_row *row);

/* Appends the default as it is typed; nothing where there is none. */
void mt_option_default(mt_buf *out, const mt_option_row *row);

extern const mt_command_row mt_command_rows[]; /* by mt_command; MT_COMMAND_NONE is motet itself */
extern const size_t mt_command_count;
extern const mt_option_row mt_option_rows[]; /* in the order of options.def */
extern const size_t mt_option_count;

static inline bool mt_option_applies(const mt_option_row *row, mt_command command)
{
    return row->commands >> command & 1;
}

#endif
