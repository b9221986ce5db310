/* Prompts that end within the last message. */
#include "chat_common.h"

#define GO_ON(list) "{\"continue_final_message\": true, \"messages\": [" list "]}"
#define BEGUN SAYS("user", "a") "," SAYS("assistant", "b c")

/* Shows reasoning before the answer, and trims both. */
#define THINKS                                                                                                   \
    "{% for m in messages %}<{{ m.role }}:{% if m.role == 'assistant' and (m.reasoning_content or loop.last) %}" \
    "<think>{{ (m.reasoning_content or '')|trim }}</think>{% endif %}{{ m.content|trim }}>{% endfor %}"          \
    "{% if add_generation_prompt %}<assistant:{% endif %}"

static void the_last_turn_stays_open(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, GO_ON(BEGUN)), "<user:a>^<assistant:b c");
    assert_string_equal(prompt_of(PLAIN, "{\"add_generation_prompt\": false, \"continue_final_message\": true,"
                                         " \"messages\": [" BEGUN "]}"),
                        "<user:a>^<assistant:b c");
    assert_string_equal(prompt_of(PLAIN, "{\"continue_final_message\": false, \"messages\": [" BEGUN "]}"),
                        "<user:a>^<assistant:b c>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, "{\"add_generation_prompt\": false, \"messages\": [" BEGUN "]}"),
                        "<user:a>^<assistant:b c>");
    assert_string_equal(prompt_of(PLAIN, GO_ON(SAYS("user", "a"))), "<user:a");
}

static void the_tag_of_a_client_is_text(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, GO_ON(SAYS("user", "{the answer goes on here} ") "," SAYS("assistant", "b"))),
                        "<user:{the answer goes on here} >^<assistant:b");
    assert_string_equal(prompt_of(PLAIN, GO_ON(SAYS("user", "a") "," SAYS("assistant", "{the answer goes on here} c"))),
                        "<user:a>^<assistant:{the answer goes on here} c");
}

static void neighbours_are_one_message_first(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, GO_ON(BEGUN "," SAYS("assistant", "d"))), "<user:a>^<assistant:b c\n\nd");
    assert_string_equal(prompt_of(FRONT, GO_ON(SAYS("user", "a") "," SAYS("system", "s") "," SAYS("assistant", "b"))),
                        "<<s>>^<user:a>^<assistant:b");
}

static void white_space_goes_where_the_template_trims(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, GO_ON(SAYS("user", "a") "," SAYS("assistant", "b \\n"))),
                        "<user:a>^<assistant:b \n");
    assert_string_equal(prompt_of(THINKS, GO_ON(SAYS("user", "a") "," SAYS("assistant", "b \\n"))),
                        "<user:a>^<assistant:<think></think>b");
}

static void parts_end_with_their_last_text(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(VISION, GO_ON("{\"role\": \"assistant\", \"content\": [{\"type\": \"text\","
                                                " \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}]}")),
                        "<assistant:(a)(b");
    assert_string_equal(
        prompt_of(VISION, GO_ON("{\"role\": \"user\", \"content\": [{\"type\": \"image\", \"image\": \"1\"}]}")),
        "error: continue_final_message is true, but the last message has no text; send some");
}

/* What is left of the reasoning is written first, where there is no content yet. */
static void reasoning_goes_on(void **state)
{
    asked a;

    (void)state;
    ask(&a, THINKS,
        GO_ON(SAYS("user", "a") ",{\"role\": \"assistant\", \"content\": \"\", \"reasoning_content\": \"hm\"}"), NULL);
    assert_true(a.ok);
    assert_string_equal(a.prompt.text.data, "<user:a><assistant:<think>hm");
    assert_int_equal(a.prompt.opened.state, MT_CHAT_OPENED_REASONING);
    forget(&a);
    ask(&a, THINKS,
        GO_ON(SAYS("user", "a") ",{\"role\": \"assistant\", \"content\": \"b\", \"reasoning_content\": \"hm\"}"), NULL);
    assert_string_equal(a.prompt.text.data, "<user:a><assistant:<think>hm</think>b");
    assert_int_equal(a.prompt.opened.state, MT_CHAT_OPENED_ANSWER);
    assert_int_equal(a.prompt.untrusted_count, 3);
    assert_int_equal(a.prompt.untrusted[2].end, a.prompt.text.len);
    forget(&a);
}

static void what_cannot_go_on_is_refused(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, "{\"add_generation_prompt\": true, \"continue_final_message\": true,"
                                         " \"messages\": [" BEGUN "]}"),
                        "error: continue_final_message and add_generation_prompt are both true; send one of them");
    assert_string_equal(prompt_of(PLAIN, "{\"continue_final_message\": 1, \"messages\": [" BEGUN "]}"),
                        "error: continue_final_message is no boolean; send true or false");
    assert_string_equal(prompt_of(PLAIN, GO_ON(SAYS("user", "a") "," SAYS("system", "b"))),
                        "error: continue_final_message is true, but the role of the last message is system; let it be "
                        "the assistant's");
    assert_string_equal(
        prompt_of(PLAIN, GO_ON("{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {\"name\": \"f\"}}]}")),
        "error: continue_final_message is true, but the last message calls tools; send what they answered, and leave "
        "it out");
    assert_string_equal(prompt_of("{% for m in messages %}{{ m.role }}{% endfor %}", GO_ON(BEGUN)),
                        "error: the chat template does not show the end of the last message, so that no answer can go "
                        "on with it; leave continue_final_message out");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_last_turn_stays_open),         cmocka_unit_test(the_tag_of_a_client_is_text),
    cmocka_unit_test(neighbours_are_one_message_first), cmocka_unit_test(white_space_goes_where_the_template_trims),
    cmocka_unit_test(parts_end_with_their_last_text),   cmocka_unit_test(reasoning_goes_on),
    cmocka_unit_test(what_cannot_go_on_is_refused),
};
UNIT_MAIN(tests)
