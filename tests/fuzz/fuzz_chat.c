/* A request of arbitrary JSON: its messages go through templates that want quite different things. What comes out is a
   prompt whose cuts and ranges are in order, or a sentence. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include <jansson.h>

#include "chat/prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const sources[] = {
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls %}"
    "{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{{ m.reasoning_content }}{{ m.name }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",

    "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% set rest = messages[1:] %}{% else %}"
    "{% set rest = messages %}{% endif %}{% for m in rest %}{% if m.role == 'system' %}{{ raise_exception('no') }}"
    "{% endif %}[{{ m.role }}]{{ m.content|trim }}{% for c in m.tool_calls %}{{ '' + c.function.arguments }}"
    "{% endfor %}{% if loop.last and add_generation_prompt %}[assistant]{% endif %}{% endfor %}",

    "{% for m in messages %}{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
    "{% if p.type == 'image' %}<image>{% elif p.type == 'video_url' %}<video>{% else %}{{ p.text }}{% endif %}"
    "{% endfor %}{% endif %}{{ m.thinking }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",

    ("{% macro all(ms) %}{% for m in ms %}{% for p in m.content %}{{ p['text'] }}{% endfor %}\n{% endfor %}"
     "{% endmacro %}{{ tools|tojson }}{{ all(messages) }}"),
};

#define COUNT (sizeof(sources) / sizeof(sources[0]))

static const mt_chat_template *template_at(size_t i)
{
    static mt_chat_templates *sets[COUNT]; /* probing takes longer than rendering, so they are kept */
    mt_error err;

    if (!sets[i])
        sets[i] = mt_chat_templates_new(sources[i], strlen(sources[i]), NULL, &err);
    assert(sets[i]);
    return mt_chat_templates_pick(sets[i], false);
}

static void check(const mt_prompt *p)
{
    size_t last = 0;

    for (size_t i = 0; i < p->cut_count; i++) {
        assert(p->cuts[i] > last && p->cuts[i] < p->text.len);
        last = p->cuts[i];
    }
    last = 0;
    for (size_t i = 0; i < p->untrusted_count; i++) {
        assert(p->untrusted[i].begin < p->untrusted[i].end && p->untrusted[i].end <= p->text.len);
        assert(i == 0 || p->untrusted[i].begin > last);
        last = p->untrusted[i].end;
    }
    for (size_t i = 0; i < p->media_count; i++)
        assert(json_is_object(p->media[i].source));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const mt_chat_markers markers = {.marker = {[MT_CHAT_IMAGE] = "<image>"}};
    const mt_prompt_options options = {.markers = &markers};
    json_t *request = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);

    for (size_t i = 0; request && i < COUNT; i++) {
        mt_arena *arena = mt_arena_new(16u << 20);
        mt_prompt prompt = {0};
        mt_error err = {0};
        mt_chat chat;

        if (mt_chat_read(&chat, arena, request, &err) &&
            mt_prompt_make(&prompt, &chat, template_at(i), i % 2 ? &options : NULL, &err))
            check(&prompt);
        else
            assert(err.code != MT_OK && strlen(err.text) > 0);
        mt_prompt_free(&prompt);
        mt_arena_free(arena);
    }
    json_decref(request);
    return 0;
}

#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#include "mutate_json.h"

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    static const char *const texts[] = {
        "null",
        "0",
        "\"\"",
        "\"user\"",
        "\"assistant\"",
        "\"system\"",
        "\"developer\"",
        "\"tool\"",
        "\"text\"",
        "\"image\"",
        "\"image_url\"",
        "\"video_url\"",
        "\"a\"",
        "\"<|user|>\"",
        "\"{\\\"a\\\": 1}\"",
        "{}",
        "[]",
        "true",
        "{\"role\": \"user\", \"content\": \"hi\"}",
        "{\"role\": \"system\", \"content\": \"s\"}",
        "{\"type\": \"text\", \"text\": \"t\"}",
        "{\"type\": \"image\"}",
        "[{\"type\": \"text\", \"text\": \"t\"}]",
        "{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\"}}]}",
        "{\"role\": \"tool\", \"tool_call_id\": \"1\", \"content\": \"r\"}"};
    const json_texts odd = {texts, sizeof(texts) / sizeof(texts[0])};

    return mutate_json(data, size, max_size, &odd, seed);
}
#endif
