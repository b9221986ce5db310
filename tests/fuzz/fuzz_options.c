/* A config file of arbitrary bytes: lines come in order, names and values lie within the text, and a line that is
   refused has a sentence. What is read is then taken as values of every option. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "options/options_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_values(const mt_option_line *line)
{
    mt_option_value v;
    mt_error err = {0};

    for (size_t i = 0; i < mt_option_count; i++) {
        const mt_option_row *row = &mt_option_rows[i];

        if ((!line->value && row->type != MT_OPTION_FLAG) || strncmp(line->name, row->name, 1) != 0)
            continue;
        if (!mt_option_value_parse(&v, row, row->name, line->value, &err))
            assert(err.code != MT_OK && strlen(err.text) > 0);
        else if (row->type == MT_OPTION_INT || row->type == MT_OPTION_SIZE)
            assert(v.integer >= row->least && v.integer <= row->most);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    mt_option_file file = {.at = text};
    mt_option_line line;
    mt_error err;
    size_t last = 0;

    memcpy(text, data, size);
    text[size] = '\0';
    while (mt_option_file_next(&file, &line, &err)) {
        assert(line.number > last && line.number == file.number && line.name >= text && line.name < text + size);
        assert(strlen(line.name) > 0 && line.name[0] != '#' && !strpbrk(line.name, " \t=\n"));
        assert(!line.value || (line.value > line.name && line.value + strlen(line.value) <= text + size));
        last = line.number;
        try_values(&line);
    }
    assert(err.code == MT_OK || strlen(err.text) > 0);
    free(text);
    return 0;
}
