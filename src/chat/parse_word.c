/* Names, ids and keys while they are read, and finding a tool by its name. */
#include <string.h>

#include "chat/parse_core.h"
#include "constraint/limits.h"

void mt_parse_word_clear(mt_parse_word *word)
{
    word->len = 0;
    word->text[0] = '\0';
}

bool mt_parse_word_add(mt_parse_word *word, char b)
{
    if (word->len == MT_LIMIT_PARSE_NAME || b == '\0')
        return false;
    word->text[word->len++] = b;
    word->text[word->len] = '\0';
    return true;
}

void mt_parse_word_set(mt_parse_word *word, const char *text, size_t len)
{
    mt_parse_word_clear(word);
    for (size_t i = 0; i < len; i++)
        mt_parse_word_add(word, text[i]);
}

const json_t *mt_parse_tool(const mt_parser *p, const char *name)
{
    size_t i;
    json_t *tool;

    json_array_foreach(p->tools, i, tool) {
        const json_t *function = json_object_get(tool, "function");
        const char *own = json_string_value(json_object_get(function ? function : tool, "name"));

        if (own && strcmp(own, name) == 0)
            return function ? function : tool;
    }
    return NULL;
}
