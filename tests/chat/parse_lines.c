/* Parses one line at a time, for corpus.py. A line of standard input is an object: "template" tells the formats,
   "prompt" is the end of the prompt, "text" what the model wrote, "tools" are the declared ones. The answer, a line on
   standard output, has the formats, the content, the reasoning and the calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "chat/parse.h"

typedef struct answer {
    mt_buf content, reasoning, arguments;
    json_t *calls;
} answer;

static void note(void *ctx, const mt_parse_event *e)
{
    answer *a = ctx;

    if (e->kind == MT_PARSE_CONTENT) {
        mt_buf_add(&a->content, e->text, e->len);
    } else if (e->kind == MT_PARSE_REASONING) {
        mt_buf_add(&a->reasoning, e->text, e->len);
    } else if (e->kind == MT_PARSE_CALL_BEGIN) {
        json_array_append_new(a->calls, json_pack("{s:s, s:s?}", "name", e->name, "id", e->id));
        mt_buf_free(&a->arguments);
    } else if (e->kind == MT_PARSE_CALL_ARGUMENTS) {
        mt_buf_add(&a->arguments, e->text, e->len);
    } else {
        json_t *call = json_array_get(a->calls, e->index);

        json_object_set_new(call, "arguments",
                            json_stringn(a->arguments.data ? a->arguments.data : "", a->arguments.len));
        json_object_set_new(call, "complete", json_boolean(e->complete));
    }
}

static json_t *text_of(const mt_buf *buf)
{
    return json_stringn(buf->data ? buf->data : "", buf->len);
}

static void parse(const mt_parse_settings *settings, const json_t *text)
{
    mt_error err;
    mt_parser *parser = mt_parser_new(settings, &err);
    answer a = {.calls = json_array()};
    json_t *line;

    if (!parser) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    mt_buf_init(&a.content, 64u << 20);
    mt_buf_init(&a.reasoning, 64u << 20);
    mt_buf_init(&a.arguments, 64u << 20);
    mt_parser_feed(parser, json_string_value(text), json_string_length(text), note, &a);
    mt_parser_finish(parser, note, &a);
    mt_parser_free(parser);
    line = json_pack("{s:s, s:s, s:o, s:o, s:o}", "tool_format", settings->formats.tools, "reasoning_format",
                     settings->formats.reasoning, "content", text_of(&a.content), "reasoning", text_of(&a.reasoning),
                     "calls", a.calls);
    json_dumpf(line, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(line);
    mt_buf_free(&a.content);
    mt_buf_free(&a.reasoning);
    mt_buf_free(&a.arguments);
}

int main(void)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t len;

    while ((len = getline(&text, &cap, stdin)) > 0) {
        json_t *line = json_loadb(text, (size_t)len, 0, NULL);
        const json_t *source = json_object_get(line, "template"), *prompt = json_object_get(line, "prompt");
        const mt_parse_settings settings = {
            .formats = mt_parse_detect(json_string_value(source), json_string_length(source)),
            .tools = json_object_get(line, "tools"),
            .opened = mt_chat_opened_find(json_string_value(prompt), json_string_length(prompt), 0, NULL, 0).state,
        };

        parse(&settings, json_object_get(line, "text"));
        json_decref(line);
    }
    free(text);
    return 0;
}
