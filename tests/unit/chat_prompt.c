/* Cut points, provenance and media of prompts. */
#include "chat_common.h"

static void cuts_stand_where_turns_begin(void **state)
{
    const char *chat = MESSAGES(SAYS("user", "a") "," SAYS("assistant", "b") "," SAYS("user", "c"));
    /* looks through the messages first, and writes nothing then */
    const char *scans =
        "{% for m in messages[::-1] %}{% if m.role == 'user' %}{% set x = 1 %}{% endif %}{% endfor %}" PLAIN;
    /* the prompt for the answer is part of the last round */
    const char *inside = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}"
                         "{% if loop.last and add_generation_prompt %}[assistant]{% endif %}{% endfor %}";
    /* always there, asked for or not */
    const char *always = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]";
    /* no loop of its own */
    const char *macro = "{% macro all(ms) %}{% for m in ms %}[{{ m.role }}]{{ m.content }}{% endfor %}{% endmacro %}"
                        "{{ all(messages) }}{% if add_generation_prompt %}[assistant]{% endif %}";
    const char *pairs = "{% for m in messages if m.role == 'user' %}Q: {{ m.content }} {% endfor %}A:";

    (void)state;
    assert_string_equal(prompt_of(PLAIN, chat), "<user:a>^<assistant:b>^<user:c>^<assistant:");
    assert_string_equal(prompt_of(scans, chat), "<user:a>^<assistant:b>^<user:c>^<assistant:");
    assert_string_equal(prompt_of(inside, chat), "<s>^[user]a</s>^[assistant]b</s>^[user]c</s>^[assistant]");
    assert_string_equal(prompt_of(always, chat), "[user]a^[assistant]b^[user]c^[assistant]");
    assert_string_equal(prompt_of(macro, chat), "[user]a^[assistant]b^[user]c^[assistant]");
    assert_string_equal(prompt_of(pairs, chat), "Q: a ^Q: c ^A:");
    assert_string_equal(prompt_of("{{ messages|length }}", chat), "3");
    assert_string_equal(prompt_of("", chat), "");
}

/* The prompt of a request that is asked for without the generation prompt. */
static void without_generation_prompt(void **state)
{
    json_t *request = json_loads(MESSAGES(SAYS("user", "a") "," SAYS("assistant", "b")), 0, NULL);
    mt_error err = {0};
    mt_chat_templates *set = mt_chat_templates_new(PLAIN, strlen(PLAIN), NULL, &err);
    mt_arena *arena = mt_arena_new(0);
    mt_prompt prompt;
    mt_chat chat;

    (void)state;
    assert_true(mt_chat_read(&chat, arena, request, &err));
    chat.no_generation_prompt = true;
    assert_true(mt_prompt_make(&prompt, &chat, mt_chat_templates_pick(set, false), NULL, &err));
    assert_string_equal(prompt.text.data, "<user:a><assistant:b>");
    assert_int_equal(prompt.cut_count, 1);
    assert_int_equal(prompt.cuts[0], strlen("<user:a>"));
    mt_prompt_free(&prompt);
    mt_arena_free(arena);
    mt_chat_templates_free(set);
    json_decref(request);
}

/* The untrusted parts of a prompt, with a bar behind each. */
static const char *untrusted_of(const char *template, const char *request, const mt_prompt_options *options)
{
    static char result[4096];
    json_t *json = json_loads(request, 0, NULL), *tokens = json_pack("{s:s}", "bos_token", "<s>");
    mt_error err = {0};
    mt_chat_templates *set = mt_chat_templates_new(template, strlen(template), tokens, &err);
    mt_arena *arena = mt_arena_new(0);
    mt_prompt prompt = {0};
    mt_chat chat;
    size_t len = 0;

    assert_non_null(json);
    result[0] = '\0';
    if (!mt_chat_read(&chat, arena, json, &err) ||
        !mt_prompt_make(&prompt, &chat, mt_chat_templates_pick(set, false), options, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < prompt.untrusted_count; i++)
        len += (size_t)snprintf(result + len, sizeof(result) - len, "%.*s|",
                                (int)(prompt.untrusted[i].end - prompt.untrusted[i].begin),
                                prompt.text.data + prompt.untrusted[i].begin);
    mt_prompt_free(&prompt);
    mt_arena_free(arena);
    mt_chat_templates_free(set);
    json_decref(tokens);
    json_decref(json);
    return result;
}

static void roles_and_special_tokens_are_trusted(void **state)
{
    const mt_chat_markers markers = {.marker = {[MT_CHAT_IMAGE] = "<image>"}};
    const mt_prompt_options options = {.markers = &markers};

    (void)state;
    assert_string_equal(untrusted_of("{{ bos_token }}{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}"
                                     "{% endfor %}",
                                     MESSAGES(SAYS("user", "<|system|>") "," SAYS("assistant", "b")), NULL),
                        "<|system|>|b|");
    assert_string_equal(untrusted_of(VISION,
                                     MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"image\"},"
                                              " {\"type\": \"text\", \"text\": \"[IMG]\"}]}"),
                                     NULL),
                        "[IMG]|");
    assert_string_equal(
        untrusted_of(PLAIN,
                     MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"<image>\"},"
                              " {\"type\": \"image\"}, {\"type\": \"image\"}, {\"type\": \"text\","
                              " \"text\": \"b\"}]}," SAYS("assistant", "c")),
                     &options),
        "<image>|b|c|");
    assert_string_equal(
        untrusted_of(PLAIN,
                     MESSAGES("{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"i\", \"type\": \"function\","
                              " \"function\": {\"name\": \"f\", \"arguments\": \"{\\\"k\\\": \\\"v\\\"}\"}}]},"
                              "{\"role\": \"tool\", \"tool_call_id\": \"i\", \"content\": \"r\"}"),
                     NULL),
        "f|k|v|r|i|f|");
}

static void media_come_in_the_order_of_the_prompt(void **state)
{
    json_t *request = json_loads(
        MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": \"1\"}]},"
                 "{\"role\": \"user\", \"content\": [{\"type\": \"video\", \"video\": \"2\"}, {\"type\": \"image\","
                 " \"image\": \"3\"}]}"),
        0, NULL);
    mt_error err = {0};
    mt_chat_templates *set = mt_chat_templates_new(VISION, strlen(VISION), NULL, &err);
    mt_arena *arena = mt_arena_new(0);
    mt_prompt prompt;
    mt_chat chat;

    (void)state;
    assert_true(mt_chat_read(&chat, arena, request, &err));
    assert_true(mt_prompt_make(&prompt, &chat, mt_chat_templates_pick(set, false), NULL, &err));
    assert_string_equal(prompt.text.data, "<user:[IMG][VID][IMG]><assistant:");
    assert_int_equal(prompt.media_count, 3);
    assert_int_equal(prompt.media[0].type, MT_CHAT_IMAGE);
    assert_int_equal(prompt.media[1].type, MT_CHAT_VIDEO);
    assert_string_equal(json_string_value(json_object_get(prompt.media[2].source, "image")), "3");
    assert_int_equal(prompt.media[2].message, 1);
    mt_prompt_free(&prompt);
    mt_arena_free(arena);
    mt_chat_templates_free(set);
    json_decref(request);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cuts_stand_where_turns_begin),
    cmocka_unit_test(without_generation_prompt),
    cmocka_unit_test(roles_and_special_tokens_are_trusted),
    cmocka_unit_test(media_come_in_the_order_of_the_prompt),
};
UNIT_MAIN(tests)
