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

/* A request on its way to a prompt. */
typedef struct asked {
    json_t *json;
    mt_chat_templates *set;
    mt_arena *arena;
    mt_prompt_model model;
    mt_chat chat;
    mt_prompt prompt;
    mt_error err;
    bool ok;
} asked;

/* Reads the request and makes its prompt: with tokens when model, which may be NULL, has a tokenizer. */
static inline void ask(asked *a, const char *template, const char *request, const mt_prompt_model *model)
{
    json_error_t why;
    json_t *tokens = json_pack("{s:s, s:s}", "bos_token", "<s>", "eos_token", "</s>");

    *a = (asked){.json = json_loads(request, JSON_ALLOW_NUL | JSON_DECODE_ANY, &why), .arena = mt_arena_new(0)};
    a->set = mt_chat_templates_new(template, strlen(template), tokens, NULL, &a->err);
    if (!a->json || !a->set)
        fail_msg("%s%s", a->json ? "" : why.text, a->err.text);
    if (model)
        a->model = *model;
    a->model.templates = a->set;
    a->ok = mt_chat_read(&a->chat, a->arena, a->json, &a->err) &&
            (a->model.tokenizer ? mt_prompt_make(&a->prompt, &a->chat, &a->model, &a->err)
                                : mt_prompt_render(&a->prompt, &a->chat, &a->model, &a->err));
    json_decref(tokens);
}

static inline void forget(asked *a)
{
    mt_prompt_free(&a->prompt);
    mt_arena_free(a->arena);
    mt_chat_templates_free(a->set);
    json_decref(a->json);
}

/* The prompt of a request, or the error; lives until the next call. Cuts are shown as ^. */
static inline const char *prompt_with(const char *template, const char *request, const mt_prompt_model *model)
{
    static char result[16384];
    size_t len = 0;
    asked a;

    ask(&a, template, request, model);
    if (!a.ok)
        snprintf(result, sizeof(result), "error: %s", a.err.text);
    for (size_t at = 0, cut = 0; a.ok && at < a.prompt.text.len && len + 2 < sizeof(result); at++) {
        if (cut < a.prompt.text_cut_count && a.prompt.text_cuts[cut] == at) {
            result[len++] = '^';
            cut++;
        }
        result[len++] = a.prompt.text.data[at];
    }
    if (a.ok)
        result[len] = '\0';
    forget(&a);
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
