/* What the tests of src/chat share: templates made for them, and a way from JSON to a prompt. */
#ifndef MT_TESTS_CHAT_COMMON_H
#define MT_TESTS_CHAT_COMMON_H

#include "unit.h"

#include "chat/prompt.h"

/* Shows everything: each message as <role:content>, parts and calls in full. */
#define PLAIN                                                                                                    \
    "{% for m in messages %}<{{ m.role }}:{{ m.content }}{% if m.reasoning_content %}|{{ m.reasoning_content }}" \
    "{% endif %}{% for c in m.tool_calls %}!{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}"  \
    "{% if m.role == 'tool' %}#{{ m.tool_call_id }}={{ m.name }}{% endif %}>{% endfor %}"                        \
    "{% if add_generation_prompt %}<assistant:{% endif %}"

/* The same, but system messages only at the front. */
#define FRONT                                                                                             \
    "{% if messages[0].role == 'system' %}<<{{ messages[0].content }}>>{% set rest = messages[1:] %}"     \
    "{% else %}{% set rest = messages %}{% endif %}"                                                      \
    "{% for m in rest %}{% if m.role == 'system' %}{{ raise_exception('only at the front') }}{% endif %}" \
    "<{{ m.role }}:{{ m.content }}>{% endfor %}{% if add_generation_prompt %}<assistant:{% endif %}"

/* Takes parts: images and videos have markers. */
#define VISION                                                                                   \
    "{% for m in messages %}<{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}" \
    "{% for p in m.content %}{% if p.type == 'image' %}[IMG]{% elif p.type == 'video' %}[VID]"   \
    "{% else %}({{ p.text }}){% endif %}{% endfor %}{% endif %}>{% endfor %}"                    \
    "{% if add_generation_prompt %}<assistant:{% endif %}"

/* The prompt of a request, or the error; lives until the next call. Cuts are shown as ^. */
static inline const char *prompt_with(const char *template, const char *request, const mt_prompt_options *options)
{
    static char result[16384];
    json_error_t why;
    json_t *json = json_loads(request, JSON_ALLOW_NUL | JSON_DECODE_ANY, &why);
    json_t *tokens = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");
    mt_error err = {0};
    mt_chat_templates *set = mt_chat_templates_new(template, strlen(template), tokens, &err);
    mt_arena *arena = mt_arena_new(0);
    mt_prompt prompt = {0};
    mt_chat chat;
    size_t len = 0;

    if (!json || !set)
        fail_msg("%s%s", json ? "" : why.text, err.text);
    if (!mt_chat_read(&chat, arena, json, &err) ||
        !mt_prompt_make(&prompt, &chat, mt_chat_templates_pick(set, chat.tools != NULL), options, &err))
        snprintf(result, sizeof(result), "error: %s", err.text);
    else {
        for (size_t at = 0, cut = 0; at < prompt.text.len && len + 2 < sizeof(result); at++) {
            if (cut < prompt.cut_count && prompt.cuts[cut] == at) {
                result[len++] = '^';
                cut++;
            }
            result[len++] = prompt.text.data[at];
        }
        result[len] = '\0';
    }
    mt_prompt_free(&prompt);
    mt_arena_free(arena);
    mt_chat_templates_free(set);
    json_decref(tokens);
    json_decref(json);
    return result;
}

static inline const char *prompt_of(const char *template, const char *request)
{
    return prompt_with(template, request, NULL);
}

/* A request with these messages. */
#define MESSAGES(list) "{\"messages\": [" list "]}"
#define SAYS(role, content) "{\"role\": \"" role "\", \"content\": \"" content "\"}"

#endif
