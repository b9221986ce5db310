/* Sends the parser's events: text without the white space around blocks, and calls from beginning to end, in pieces
   that end at whole characters. */
#include <string.h>

#include "base/utf8.h"
#include "chat/limits.h"
#include "chat/parse_core.h"

/* How many bytes at the end are the beginning of a character that is not complete. */
static size_t unfinished(const char *text, size_t len)
{
    for (size_t back = 1; back < MT_UTF8_MAX && back <= len; back++) {
        unsigned char b = (unsigned char)text[len - back];
        size_t size = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 1;

        if (b >= 0xc0 || b < 0x80)
            return size > back ? back : 0;
    }
    return 0;
}

void mt_parse_flush(mt_parser *p, bool all)
{
    size_t rest = all ? 0 : unfinished(p->out, p->out_len);
    const mt_parse_event event = {
        .kind = p->out_kind,
        .text = p->out,
        .len = p->out_len - rest,
        .index = p->out_kind == MT_PARSE_CALL_ARGUMENTS ? p->calls - 1 : 0,
    };

    if (event.len == 0)
        return;
    p->fn(p->ctx, &event);
    memmove(p->out, p->out + event.len, rest);
    p->out_len = rest;
}

/* Adds text to the pending event, which is sent first where it is of another kind. */
static void put(mt_parser *p, mt_parse_kind kind, const char *text, size_t len)
{
    if (len > 0 && kind != p->out_kind) {
        mt_parse_flush(p, true);
        p->out_kind = kind;
    }
    for (size_t i = 0; i < len; i++) {
        if (p->out_len == sizeof(p->out))
            mt_parse_flush(p, false);
        p->out[p->out_len++] = text[i];
    }
}

static void put_space(mt_parser *p)
{
    put(p, p->text_kind, p->space, p->space_len);
    p->space_len = 0;
}

void mt_parse_text_begin(mt_parser *p, mt_parse_kind kind)
{
    if (kind == p->text_kind)
        return;
    p->text_kind = kind;
    p->space_len = 0;
    p->lead = true;
}

void mt_parse_text(mt_parser *p, mt_parse_kind kind, const char *text, size_t len)
{
    if (len > 0)
        mt_parse_text_begin(p, kind);
    for (size_t i = 0; i < len; i++) {
        if (!mt_parse_space(text[i])) {
            put_space(p);
            put(p, kind, text + i, 1);
            p->lead = false;
        } else if (!p->lead) {
            if (p->space_len == sizeof(p->space))
                put_space(p);
            p->space[p->space_len++] = text[i];
        }
    }
}

void mt_parse_text_end(mt_parser *p)
{
    put_space(p);
    mt_parse_flush(p, true);
}

static void trim_name(mt_parse_word *name)
{
    char text[sizeof(name->text)];
    size_t begin = 0, end = name->len;

    while (begin < end && mt_parse_space(name->text[begin]))
        begin++;
    while (end > begin && mt_parse_space(name->text[end - 1]))
        end--;
    memcpy(text, name->text + begin, end - begin);
    mt_parse_word_set(name, text, end - begin);
}

void mt_parse_call_begin(mt_parser *p)
{
    mt_parse_event event = {.kind = MT_PARSE_CALL_BEGIN, .index = p->calls, .name = p->name.text};

    mt_parse_call_end(p, true);
    trim_name(&p->name);
    trim_name(&p->id);
    if (p->machines[1].table->named)
        p->machines[1].table->named(p);
    if (p->name.len == 0 || p->calls == MT_LIMIT_PARSE_CALLS)
        return;
    p->space_len = 0;
    mt_parse_flush(p, true);
    p->calls++;
    p->open = true;
    p->begun_arguments = p->listed = p->streaming = false;
    p->gap_len = 0;
    p->object = (mt_parse_object){0};
    p->schema = json_object_get(mt_parse_tool(p, p->name.text), "parameters");
    event.id = p->id.len ? p->id.text : NULL;
    p->fn(p->ctx, &event);
}

void mt_parse_call_arguments(mt_parser *p, const char *text, size_t len)
{
    if (!p->open || len == 0)
        return;
    put(p, MT_PARSE_CALL_ARGUMENTS, text, len);
    p->begun_arguments = true;
}

void mt_parse_call_end(mt_parser *p, bool complete)
{
    const mt_parse_event event = {.kind = MT_PARSE_CALL_END, .index = p->calls - 1, .complete = complete};

    if (!p->open)
        return;
    if (complete && !p->begun_arguments)
        mt_parse_call_arguments(p, "{}", 2);
    else if (complete && p->listed)
        mt_parse_call_arguments(p, "}", 1);
    mt_parse_flush(p, true);
    p->fn(p->ctx, &event);
    p->open = false;
    p->text_kind = MT_PARSE_CONTENT;
    p->lead = true;
}
