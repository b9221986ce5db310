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

static void without_generation_prompt(void **state)
{
    asked a;

    (void)state;
    ask(&a, PLAIN, MESSAGES(SAYS("user", "a") "," SAYS("assistant", "b")), NULL);
    a.chat.no_generation_prompt = true;
    mt_prompt_free(&a.prompt);
    assert_true(mt_prompt_render(&a.prompt, &a.chat, &a.model, &a.err));
    assert_string_equal(a.prompt.text.data, "<user:a><assistant:b>");
    assert_int_equal(a.prompt.text_cut_count, 1);
    assert_int_equal(a.prompt.text_cuts[0], strlen("<user:a>"));
    assert_int_equal(a.prompt.generation, a.prompt.text.len);
    forget(&a);
}

/* The untrusted parts of a prompt, with a bar behind each. */
static const char *untrusted_of(const char *template, const char *request, const mt_prompt_model *model)
{
    static char result[4096];
    size_t len = 0;
    asked a;

    ask(&a, template, request, model);
    if (!a.ok)
        fail_msg("%s", a.err.text);
    result[0] = '\0';
    for (size_t i = 0; i < a.prompt.untrusted_count; i++)
        len += (size_t)snprintf(result + len, sizeof(result) - len, "%.*s|",
                                (int)(a.prompt.untrusted[i].end - a.prompt.untrusted[i].begin),
                                a.prompt.text.data + a.prompt.untrusted[i].begin);
    forget(&a);
    return result;
}

static void roles_and_special_tokens_are_trusted(void **state)
{
    const mt_prompt_model model = {.marks.of[MT_CHAT_IMAGE].marker = "<image>"};

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
                     &model),
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
    asked a;

    (void)state;
    ask(&a, VISION,
        MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": \"1\"}]},"
                 "{\"role\": \"user\", \"content\": [{\"type\": \"video\", \"video\": \"2\"}, {\"type\": \"image\","
                 " \"image\": \"3\"}]}"),
        NULL);
    assert_true(a.ok);
    assert_string_equal(a.prompt.text.data, "<user:[IMG][VID][IMG]><assistant:");
    assert_int_equal(a.prompt.media_count, 3);
    assert_int_equal(a.prompt.media[0].type, MT_CHAT_IMAGE);
    assert_int_equal(a.prompt.media[1].type, MT_CHAT_VIDEO);
    assert_string_equal(json_string_value(json_object_get(a.prompt.media[2].source, "image")), "3");
    assert_string_equal(a.prompt.media[2].place, "messages[1].content[1]");
    forget(&a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(cuts_stand_where_turns_begin),
    cmocka_unit_test(without_generation_prompt),
    cmocka_unit_test(roles_and_special_tokens_are_trusted),
    cmocka_unit_test(media_come_in_the_order_of_the_prompt),
};
UNIT_MAIN(tests)
