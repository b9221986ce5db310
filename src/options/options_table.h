/* The rows of options.def as data, and what options.c and the files options_*.c share. */
#ifndef MT_OPTIONS_OPTIONS_TABLE_H
#define MT_OPTIONS_OPTIONS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "options/options.h"

/* The bit of each command, for the set of commands that an option belongs to. */
enum {
    ON_TOP = 1u << MT_COMMAND_NONE,
#define COMMAND(id, ...) ON_##id = 1u << MT_COMMAND_##id,
#include "options/options.def"
};

/* A command of motet: its name, its operands as the help names them, and its help. */
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

/* An option. */
typedef struct mt_option_row {
    mt_option_type type;
    const char *name;   /* without dashes */
    const char *env;    /* its environment variable, or NULL */
    const char *values; /* the placeholder of its value, such as FILE, or its choices: "a|b"; NULL: it has none */
    const char *help;
    int64_t value, least, most; /* of INT, SIZE, CHOICE and FLAG: the default; of INT and SIZE: the range */
    double low, high;           /* of NUMBER: the range */
    unsigned commands;          /* which commands have it: bits 1 << mt_command */
} mt_option_row;

/* A parsed value; the option's type says which member counts. */
typedef struct mt_option_value {
    int64_t integer;
    double number;
    unsigned mask;
    const char *text; /* borrowed */
} mt_option_value;

/* Parses a value. label: how an error names the option: "--threads", "MOTET_THREADS" or "threads". text: NULL for a
   flag that stands alone. False: *err. */
bool mt_option_value_parse(mt_option_value *v, const mt_option_row *row, const char *label, const char *text,
                           mt_error *err) MT_NODISCARD;

/* Writes a number of bytes as people do: "64M" rather than 67108864. Returns text. */
const char *mt_option_size_text(int64_t bytes, char text[24]);

/* A line of a config file. Its strings point into the file's text. */
typedef struct mt_option_line {
    char *name, *value; /* value: NULL where the name stands alone */
    size_t number;      /* of the line, from 1 */
} mt_option_line;

typedef struct mt_option_file {
    char *at;      /* the rest of the text, which is changed in place */
    size_t number; /* of lines read so far */
} mt_option_file;

/* Reads the next line that is neither empty nor a comment. False: the end, with err->code MT_OK, or *err. */
bool mt_option_file_next(mt_option_file *file, mt_option_line *line, mt_error *err) MT_NODISCARD;

/* Whether the option may stand in config files: those of motet serve, except some that make no sense there. */
bool mt_option_in_file(const mt_option_row *row);

/* Appends the default as one would type it, between two texts; nothing where the option has none. */
void mt_option_default(mt_buf *out, const char *before, const mt_option_row *row, const char *behind);

extern const mt_command_row mt_command_rows[]; /* by mt_command; MT_COMMAND_NONE is motet without a command */
extern const size_t mt_command_count;
extern const mt_option_row mt_option_rows[]; /* in the order of options.def */
extern const size_t mt_option_count;

/* Whether a name is an option of other programs (options_foreign.def), of which *err says what motet has instead.
   name: with its dashes, or without them in a config file. */
bool mt_options_foreign(const char *name, mt_command command, mt_error *err);

/* Whether a name is a command of other programs, or a word that people try; *err as above. */
bool mt_options_foreign_command(const char *name, mt_error *err);

/* Whether the command has the option. */
static inline bool mt_option_applies(const mt_option_row *row, mt_command command)
{
    return row->commands >> command & 1;
}

#endif
