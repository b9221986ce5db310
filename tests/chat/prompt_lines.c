/* Makes the prompt of one request at a time, for bare_tools.py. A line of standard input is an object: "template" and
   "request". The answer, a line on standard output, has the text of the prompt, or the error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "chat/prompt.h"

/* {"text"} or {"error"}. */
static json_t *answer(const json_t *source, const json_t *request)
{
    json_t *tokens = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>"), *made;
    mt_arena *arena = mt_arena_new(0);
    mt_chat chat;
    mt_prompt prompt = {0};
    mt_error err;
    mt_chat_templates *set =
        mt_chat_templates_new(json_string_value(source), json_string_length(source), tokens, NULL, &err);
    const mt_prompt_model model = {.templates = set};

    if (set && mt_chat_read(&chat, arena, request, &err) && mt_prompt_render(&prompt, &chat, &model, &err))
        made = json_pack("{s:o}", "text", json_stringn(prompt.text.data ? prompt.text.data : "", prompt.text.len));
    else
        made = json_pack("{s:s}", "error", err.text);
    mt_prompt_free(&prompt);
    mt_chat_templates_free(set);
    mt_arena_free(arena);
    json_decref(tokens);
    return made;
}

int main(void)
{
    char *text = NULL;
    size_t cap = 0;
    ssize_t len;

    while ((len = getline(&text, &cap, stdin)) > 0) {
        json_t *line = json_loadb(text, (size_t)len, 0, NULL);
        json_t *said = answer(json_object_get(line, "template"), json_object_get(line, "request"));

        json_dumpf(said, stdout, JSON_COMPACT);
        putchar('\n');
        fflush(stdout);
        json_decref(said);
        json_decref(line);
    }
    free(text);
    return 0;
}
