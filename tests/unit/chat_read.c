/* Requests that are wrong, and the sentences that say so. */
#include "chat_common.h"

static void errors_say_which_message_and_why(void **state)
{
    static const struct {
        const char *request, *error;
    } cases[] = {
        {"[]", "the request is a list; send an object with messages"},
        {"{}", "messages is missing; send a list of messages"},
        {"{\"messages\": \"hi\"}", "messages is a string; send a list of messages"},
        {"{\"messages\": []}", "messages is empty; send at least one message"},
        {MESSAGES(SAYS("user", "a") ", \"b\""), "messages[1] is a string; send an object with a role and content"},
        {MESSAGES("{\"content\": \"a\"}"),
         "the role of messages[0] is missing; send system, developer, user, assistant or tool"},
        {MESSAGES(SAYS("user", "a") "," SAYS("critic", "b")),
         "the role \"critic\" of messages[1] is not known; send system, developer, user, assistant or tool"},
        {MESSAGES("{\"role\": \"user\", \"content\": 5}"),
         "the content of messages[0] is a number; send a string or a list of parts"},
        {MESSAGES("{\"role\": \"user\"}"),
         "messages[0] is the user's and has no content; send a string or a list of parts"},
        {MESSAGES("{\"role\": \"developer\", \"content\": null}"),
         "messages[0] is the system's and has no content; send a string or a list of parts"},
        {MESSAGES("{\"role\": \"user\", \"content\": [\"a\", 5]}"),
         "messages[0].content[1] is a number; send an object with a type"},
        {MESSAGES("{\"role\": \"assistant\", \"content\": \"a\", \"partial\": 1}"),
         "the partial of messages[0] is a number; send true or false"},
        {MESSAGES("{\"role\": \"user\", \"content\": \"a\", \"prefix\": true}"),
         "the prefix of messages[0] is true, but only the last message can be continued, and only text of the "
         "assistant's; leave it out"},
        {MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"smell\"}]}"),
         "the type \"smell\" of messages[0].content[1] is not known; send text, image_url or video_url"},
        {MESSAGES("{\"role\": \"user\", \"content\": [{\"text\": \"a\"}]}"),
         "the type of messages[0].content[0] is missing; send text, image_url or video_url"},
        {MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": null}]}"),
         "the text of messages[0].content[0] is null; send a string"},
        {MESSAGES("{\"role\": \"assistant\", \"tool_calls\": {}}"),
         "the tool_calls of messages[0] are an object; send a list"},
        {MESSAGES("{\"role\": \"assistant\", \"tool_calls\": [1]}"),
         "messages[0].tool_calls[0] is a number; send an object with a function"},
        {MESSAGES("{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {}}]}"),
         "the name of messages[0].tool_calls[0].function is missing; send a string"},
        {MESSAGES("{\"role\": \"user\", \"content\": \"a\", \"tool_calls\": [{\"function\": {\"name\": \"f\"}}]}"),
         "messages[0] has tool_calls, but its role is user; only the assistant calls tools"},
        {MESSAGES("{\"role\": \"tool\", \"content\": \"a\", \"tool_call_id\": 3}"),
         "the tool_call_id of messages[0] is a number; send a string"},
        {"{\"messages\": [" SAYS("user", "a") "], \"tools\": {}}", "tools is an object; send a list of objects"},
        {"{\"messages\": [" SAYS("user", "a") "], \"tools\": [\"f\"]}", "tools[0] is a string; send an object"},
        {"{\"messages\": [" SAYS("user", "a") "], \"tools\": [{\"function\": {}}]}",
         "the function of tools[0] has no name; send a string that is not empty"},
        {"{\"messages\": [" SAYS("user", "a") "], \"chat_template_kwargs\": 1}",
         "chat_template_kwargs is a number; send an object"},
        {"{\"messages\": [" SAYS("user", "a") "], \"chat_template_kwargs\": {\"messages\": []}}",
         "chat_template_kwargs cannot set \"messages\", which comes from the request itself or from the model; leave "
         "it out"},
        {"{\"messages\": [" SAYS("user", "a") "], \"chat_template_kwargs\": {\"bos_token\": \"<|im_start|>\"}}",
         "chat_template_kwargs cannot set \"bos_token\", which comes from the request itself or from the model; leave "
         "it out"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *got = prompt_of(PLAIN, cases[i].request);

        assert_memory_equal(got, "error: ", 7);
        assert_string_equal(got + 7, cases[i].error);
    }
}

static void what_may_be_null_or_missing(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"user\", \"content\": \"\"}")), "<user:>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"assistant\", \"content\": null}")),
                        "<assistant:>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"assistant\"}")), "<assistant:>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"tool\"}")), "<tool:#=>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"assistant\", \"content\": \"a\", \"tool_calls\": null,"
                                                  " \"name\": null, \"reasoning_content\": null}")),
                        "<assistant:a>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"assistant\", \"content\": \"a\", \"tool_calls\": []}")),
                        "<assistant:a>^<assistant:");
    assert_string_equal(
        prompt_of("{{ tools is none }}{{ messages|length }}", "{\"messages\": [" SAYS("user", "a") "], \"tools\": []}"),
        "True1");
}

static void an_error_of_the_template_is_told(void **state)
{
    (void)state;
    assert_string_equal(prompt_of("{{ raise_exception('No.') }}", MESSAGES(SAYS("user", "a"))),
                        "error: the chat template refuses these messages: No.");
    assert_string_equal(
        prompt_of("{{ messages[0].x.y }}", MESSAGES(SAYS("user", "a"))),
        "error: the chat template cannot render these messages: line 1, column 17: 'dict object' has no "
        "attribute 'x'");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(errors_say_which_message_and_why),
    cmocka_unit_test(what_may_be_null_or_missing),
    cmocka_unit_test(an_error_of_the_template_is_told),
};
UNIT_MAIN(tests)
