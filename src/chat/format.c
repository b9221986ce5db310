/* The lists of formats, and which of them a template has: see format.h. */
#include "chat/format.h"

#include <string.h>

/* Templates with this marker write calls and reasoning in a way that no parser here reads. They also have words that
   are signs of other formats; "none" stands before those in the lists, so that what such a model writes is content. */
const mt_format mt_format_none = {.name = "none", .signs = {{"]<]minimax[>["}}};

static const mt_format *const tools[] = {
#define X(name) &mt_format_##name,
#include "chat/formats.def"
#undef X
};

static bool has(const char *source, size_t len, const char *word)
{
    return !word || memmem(source, len, word, strlen(word)) != NULL;
}

/* Whether a template has a format: it writes calls and reasoning of earlier turns as the model does. */
static bool writes(const mt_format *f, const char *source, size_t len)
{
    for (size_t i = 0; i < MT_COUNT(f->signs) && f->signs[i][0]; i++)
        if (has(source, len, f->signs[i][0]) && has(source, len, f->signs[i][1]))
            return true;
    return false;
}

mt_parse_formats mt_parse_detect(const char *source, size_t len)
{
    mt_parse_formats found = {.tools = "none", .reasoning = "none"};

    /* from the last to the first, without a stop: so the first of the list that fits is the one that stays */
    for (size_t i = MT_COUNT(tools); i-- > 0;)
        if (writes(tools[i], source, len))
            found.tools = tools[i]->name;
    for (size_t i = mt_format_reasoning_count; i-- > 0;)
        if (writes(&mt_format_reasoning[i], source, len))
            found.reasoning = mt_format_reasoning[i].name;
    return found;
}

const mt_format *mt_format_find_tools(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(tools); i++)
        if (strcmp(tools[i]->name, name ? name : "none") == 0)
            return tools[i];
    return NULL;
}

const mt_format *mt_format_find_reasoning(const char *name)
{
    for (size_t i = 0; i < mt_format_reasoning_count; i++)
        if (strcmp(mt_format_reasoning[i].name, name ? name : "none") == 0)
            return &mt_format_reasoning[i];
    return NULL;
}

bool mt_format_markers(const mt_format *reasoning, const char **open, const char **close)
{
    const mt_parse_table *table = reasoning ? reasoning->read : NULL;

    if (!table || table->framed || !table->opened)
        return false;
    *open = table->states[table->opened].rules[0].marker;
    *close = table->states[table->opened].rules[1].marker;
    return true;
}

const char *mt_parse_tool_name(size_t i)
{
    return i < MT_COUNT(tools) ? tools[i]->name : NULL;
}

const char *mt_parse_reasoning_name(size_t i)
{
    return i < mt_format_reasoning_count ? mt_format_reasoning[i].name : NULL;
}
