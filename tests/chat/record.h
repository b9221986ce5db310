/* What a parser told, as one text: the same text for the same events, however they were cut. */
#ifndef MT_TESTS_CHAT_RECORD_H
#define MT_TESTS_CHAT_RECORD_H

#include <assert.h>

#include "base/buf.h"
#include "chat/parse.h"

typedef struct record {
    mt_buf text;
    mt_parse_kind last;
    bool any, open;
    size_t calls;
} record;

static inline void record_init(record *r)
{
    *r = (record){0};
    mt_buf_init(&r->text, 64u << 20);
}

static inline void record_text(record *r, mt_parse_kind kind, const char *text, size_t len)
{
    static const char *const names[] = {
        [MT_PARSE_REASONING] = "reasoning", [MT_PARSE_CONTENT] = "content", [MT_PARSE_CALL_ARGUMENTS] = "arguments"};

    if (!r->any || r->last != kind)
        mt_buf_printf(&r->text, "\n%s: ", names[kind]);
    mt_buf_add(&r->text, text, len);
}

/* Also holds events to their order: calls do not overlap, and are counted. */
static inline void record_event(void *ctx, const mt_parse_event *e)
{
    record *r = ctx;

    if (e->kind == MT_PARSE_CALL_BEGIN) {
        assert(!r->open && e->index == r->calls && e->name && e->name[0]);
        mt_buf_printf(&r->text, "\ncall: %s id %s", e->name, e->id ? e->id : "-");
        r->open = true;
        r->calls++;
    } else if (e->kind == MT_PARSE_CALL_END) {
        assert(r->open && e->index == r->calls - 1);
        mt_buf_puts(&r->text, e->complete ? "\nend" : "\ncut");
        r->open = false;
    } else {
        assert(e->len > 0 && r->open == (e->kind == MT_PARSE_CALL_ARGUMENTS));
        assert(!r->open || e->index == r->calls - 1);
        record_text(r, e->kind, e->text, e->len);
    }
    r->last = e->kind;
    r->any = true;
}

#endif
