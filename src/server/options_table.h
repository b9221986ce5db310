/* The rows of options.def as data; shared by options.c and options_help.c only. */
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
    MT_OPTION_CHOICE,
    MT_OPTION_CPUS,
    MT_OPTION_TEXT,
    MT_OPTION_FLAG
} mt_option_type;

typedef struct mt_option_row {
    mt_option_type type;
    const char *name, *env, *values, *help; /* values: the placeholder, or the choices */
    int64_t value, least, most;             /* value: the default */
    unsigned commands, needed;              /* bits 1 << mt_command */
} mt_option_row;

extern const mt_command_row mt_command_rows[]; /* by mt_command; MT_COMMAND_NONE is motet itself */
extern const size_t mt_command_count;
extern const mt_option_row mt_option_rows[]; /* in the order of options.def */
extern const size_t mt_option_count;

static inline bool mt_option_applies(const mt_option_row *row, mt_command command)
{
    return row->commands >> command & 1;
}

#endif
