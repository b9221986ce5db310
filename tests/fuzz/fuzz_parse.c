/* A model's text in a format: the first byte picks the format of calls, the second that of reasoning and what the
   prompt opened, the third how the text behind them is cut. What is told must be the same in one piece, in pieces and
   byte by byte, and the arguments of formats that are translated to JSON must be JSON. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "../chat/record.h"
#include "base/json_tree.h"
#include "base/utf8.h"
#include "chat/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct listener {
    record record;
    mt_buf arguments;
    bool json; /* they have to be good; but a tree takes no NUL in keys */
} listener;

static void listen(void *ctx, const mt_parse_event *e)
{
    listener *l = ctx;

    record_event(&l->record, e);
    if (e->kind == MT_PARSE_CALL_BEGIN)
        mt_buf_free(&l->arguments);
    if (e->kind == MT_PARSE_CALL_ARGUMENTS)
        mt_buf_add(&l->arguments, e->text, e->len);
    if (e->kind == MT_PARSE_CALL_END && e->complete && l->json && !strstr(l->arguments.data, "\\u0000")) {
        json_t *value = mt_json_tree_try(l->arguments.data, l->arguments.len);

        assert(json_is_object(value));
        json_decref(value);
    }
}

/* Formats whose arguments are translated, never passed on. */
static bool translated(const char *format)
{
    static const char *const names[] = {"seed_oss", "minimax_m2", "minicpm5", "deepseek_v32", "pythonic", "gemma3"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], format) == 0)
            return true;
    return false;
}

static bool is_utf8(const char *text, size_t len)
{
    size_t size = 1;

    for (; len > 0 && size > 0; text += size, len -= size)
        size = mt_utf8_length(text, len);
    return size > 0;
}

static const json_t *tools(void)
{
    static json_t *made;

    if (!made)
        made = json_loads("[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {"
                          "\"a\": {\"type\": \"string\"}, \"b\": {\"type\": \"integer\"}, \"c\": {\"type\": "
                          "[\"boolean\", \"null\"]}, \"d\": {\"anyOf\": [{\"type\": \"object\"}, {\"enum\": [1]}]}}}}},"
                          "{\"type\": \"function\", \"function\": {\"name\": \"g\"}}]",
                          0, NULL);
    assert(made);
    return made;
}

static const char *pick(const char *(*at)(size_t i), uint8_t number)
{
    size_t count = 0;

    while (at(count))
        count++;
    return at(number % count);
}

/* Pieces of at most `most` bytes, as the seed has it. */
static listener parse(const mt_parse_settings *settings, const char *text, size_t len, size_t most, bool json)
{
    listener l = {.json = json};
    mt_error err;
    mt_parser *parser = mt_parser_new(settings, &err);
    uint32_t seed = (uint32_t)most;

    assert(parser);
    record_init(&l.record);
    mt_buf_init(&l.arguments, 64u << 20);
    for (size_t at = 0; at < len;) {
        size_t piece;

        seed = seed * 1664525u + 1013904223u;
        piece = 1 + (seed >> 8) % most;
        piece = piece < len - at ? piece : len - at;
        mt_parser_feed(parser, text + at, piece, listen, &l);
        at += piece;
    }
    mt_parser_finish(parser, listen, &l);
    assert(!l.record.open && l.record.calls <= MT_LIMIT_PARSE_CALLS && !l.record.text.full);
    mt_parser_free(parser);
    mt_buf_free(&l.arguments);
    return l;
}

static void expect_same(const record *a, record b)
{
    assert(a->text.len == b.text.len && (a->text.len == 0 || memcmp(a->text.data, b.text.data, a->text.len) == 0));
    mt_buf_free(&b.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_parse_settings settings = {0};
    const char *text = (const char *)data + 3;
    size_t len = size - 3;
    listener whole;
    bool json;

    if (size < 3)
        return 0;
    settings.formats.tools = pick(mt_parse_tool_name, data[0]);
    settings.formats.reasoning = pick(mt_parse_reasoning_name, data[1] & 15);
    settings.opened = (mt_chat_opened_state)((data[1] >> 4 & 3) % 3);
    settings.tools = data[1] & 128 ? NULL : tools();
    json =
        translated(settings.formats.tools) && strcmp(settings.formats.reasoning, "harmony") != 0 && is_utf8(text, len);
    whole = parse(&settings, text, len, SIZE_MAX, json);
    expect_same(&whole.record, parse(&settings, text, len, 1, json).record);
    expect_same(&whole.record, parse(&settings, text, len, 1 + data[2] % 32u, json).record);
    mt_buf_free(&whole.record.text);
    return 0;
}
