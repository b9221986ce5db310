/* A parser has two state machines in a row: the first separates reasoning, the second finds calls in the rest. It
   allocates memory only for text that it holds back. */
#include "chat/parse.h"

#include "base/alloc.h"
#include "base/nearest.h"
#include "chat/format.h"
#include "chat/limits.h"

static bool unknown(const char *what, const char *name, const char *(*at)(size_t i), mt_error *err)
{
    mt_nearest nearest;

    mt_nearest_init(&nearest, name);
    for (size_t i = 0; at(i); i++)
        mt_nearest_offer(&nearest, at(i));
    if (nearest.best)
        return mt_fail(err, MT_E_INVALID, "\"%s\" is no format of %s; did you mean \"%s\"?", name, what, nearest.best);
    return mt_fail(err, MT_E_INVALID, "\"%s\" is no format of %s; docs/parsers.md lists those that are", name, what);
}

/* Chooses the tables of the two machines. That for calls is used only where the request has tools, unless the format
   has headers, which must be removed in any case. */
static bool choose(mt_parser *p, const mt_parse_formats *formats, mt_error *err)
{
    const mt_format *calls = mt_format_find_tools(formats->tools),
                    *thoughts = mt_format_find_reasoning(formats->reasoning);
    const mt_parse_table *reasoning, *tools;

    if (!calls)
        return unknown("tool calls", formats->tools, mt_parse_tool_name, err);
    if (!thoughts)
        return unknown("reasoning", formats->reasoning, mt_parse_reasoning_name, err);
    tools = calls->read;
    reasoning = thoughts->read;
    p->reasons = reasoning != NULL;
    if (reasoning && reasoning->framed) { /* one table for both */
        tools = reasoning;
        reasoning = NULL;
    } else if (tools && !tools->framed && !p->tools) {
        tools = NULL;
    }
    p->machines[0].table = reasoning;
    p->machines[1].table = tools;
    return true;
}

/* Sets the first state of a machine, by what the prompt's end has begun. */
static void start(mt_parser *p, mt_parse_machine *m, mt_chat_opened_state opened)
{
    const mt_parse_table *table = m->table;

    if (!table)
        return;
    if (p->reasons && opened == MT_CHAT_OPENED_REASONING && table->opened) {
        mt_parse_text_begin(p, MT_PARSE_REASONING);
        mt_parse_go(p, m, table->opened);
    } else if (p->reasons && opened == MT_CHAT_OPENED_ANSWER && table->answer) {
        mt_parse_go(p, m, table->answer);
    } else {
        mt_parse_go(p, m, table->start);
    }
}

bool mt_parse_needed(const mt_parse_settings *settings)
{
    const mt_format *tools = mt_format_find_tools(settings->formats.tools);
    const mt_format *reasoning = mt_format_find_reasoning(settings->formats.reasoning);

    return !tools || !reasoning || reasoning->read ||
           (tools->read && (tools->read->framed || json_array_size(settings->tools) > 0));
}

mt_parser *mt_parser_new(const mt_parse_settings *settings, mt_error *err)
{
    mt_parser *p = mt_alloc(sizeof(*p));

    p->text_kind = p->out_kind = MT_PARSE_CONTENT;
    p->tools = json_array_size(settings->tools) > 0 ? settings->tools : NULL;
    mt_buf_init(&p->held, MT_LIMIT_PARSE_HELD);
    mt_buf_init(&p->raw, MT_LIMIT_PARSE_HELD);
    if (!choose(p, &settings->formats, err)) {
        mt_parser_free(p);
        return NULL;
    }
    start(p, &p->machines[0], settings->opened);
    start(p, &p->machines[1], settings->opened);
    return p;
}

void mt_parser_free(mt_parser *parser)
{
    if (!parser)
        return;
    mt_buf_free(&parser->held);
    mt_buf_free(&parser->raw);
    mt_free(parser);
}

void mt_parser_feed(mt_parser *parser, const char *text, size_t len, mt_parse_fn *fn, void *ctx)
{
    mt_parse_machine *first = &parser->machines[parser->machines[0].table ? 0 : 1];

    parser->fn = fn;
    parser->ctx = ctx;
    if (!first->table)
        mt_parse_text(parser, MT_PARSE_CONTENT, text, len);
    for (size_t i = 0; first->table && i < len; i++)
        mt_parse_byte(parser, first, text[i]);
    mt_parse_flush(parser, false);
}

void mt_parser_finish(mt_parser *parser, mt_parse_fn *fn, void *ctx)
{
    parser->fn = fn;
    parser->ctx = ctx;
    mt_parse_end(parser, &parser->machines[0]);
    mt_parse_end(parser, &parser->machines[1]);
    mt_parse_text_end(parser);
}
