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

static const mt_chat_templates *templates_at(size_t i)
{
    static mt_chat_templates *sets[COUNT]; /* probing takes longer than rendering, so they are kept */
    mt_error err;

    if (!sets[i])
        sets[i] = mt_chat_templates_new(sources[i], strlen(sources[i]), NULL, NULL, &err);
    assert(sets[i]);
    return sets[i];
}

/* Every byte is a token, and so are some markers. */
static const mt_tokenizer *tokenizer(void)
{
    static const char *const special[] = {"<s>", "<|user|>", "<|assistant|>", "<|system|>", "<image>", "<video>"};
    static mt_tokenizer *made;
    mt_error err;
    mt_buf json;

    if (made)
        return made;
    mt_buf_init(&json, 1u << 20);
    mt_buf_puts(&json, "{\"added_tokens\": [");
    for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
        mt_buf_printf(&json,
                      "%s{\"id\": %zu, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, "
                      "\"rstrip\": false, \"normalized\": false, \"special\": true}",
                      i ? "," : "", 256 + i, special[i]);
    mt_buf_puts(&json, "], \"decoder\": {\"type\": \"ByteFallback\"}, "
                       "\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"unk_token\": null, \"vocab\": {");
    for (int i = 0; i < 256; i++)
        mt_buf_printf(&json, "%s\"<0x%02X>\": %d", i ? "," : "", i, i);
    mt_buf_puts(&json, "}, \"merges\": []}}");
    made = mt_tokenizer_parse(json.data, json.len, &err);
    assert(made);
    mt_buf_free(&json);
    return made;
}

static void check_places(const size_t *at, size_t count, size_t end)
{
    size_t last = 0;

    for (size_t i = 0; i < count; i++) {
        assert(at[i] > last && at[i] < end);
        last = at[i];
    }
}

static void check(const mt_prompt *p)
{
    size_t last = 0;

    check_places(p->text_cuts, p->text_cut_count, p->text.len);
    for (size_t i = 0; i < p->cut_count; i++)
        assert(p->cuts[i] > (i ? p->cuts[i - 1] : 0) && p->cuts[i] < p->ids.count);
    assert(p->generation <= p->text.len);
    for (size_t i = 0; i < p->untrusted_count; i++) {
        assert(p->untrusted[i].begin < p->untrusted[i].end && p->untrusted[i].end <= p->text.len);
        assert(i == 0 || p->untrusted[i].begin > last);
        last = p->untrusted[i].end;
    }
    for (size_t i = 0; i < p->media_count; i++) {
        assert(json_is_object(p->media[i].source));
        assert(memcmp(p->text.data + p->media[i].marker.begin,
                      p->media[i].type == MT_CHAT_IMAGE ? "<image>" : "<video>", 7) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *request = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);

    for (size_t i = 0; request && i < COUNT; i++) {
        const mt_prompt_model model = {
            .templates = templates_at(i),
            .tokenizer = tokenizer(),
            .marks.of = {[MT_CHAT_IMAGE] = {.token = "<image>", .marker = i % 2 ? "<image>" : NULL},
                         [MT_CHAT_VIDEO] = {.token = "<video>"}},
            .allow_special = i == 2};
        mt_arena *arena = mt_arena_new(16u << 20);
        mt_prompt prompt = {0};
        mt_error err = {0};
        mt_chat chat;

        if (mt_chat_read(&chat, arena, request, &err) && mt_prompt_make(&prompt, &chat, &model, &err))
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
