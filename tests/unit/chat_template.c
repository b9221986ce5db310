/* Which file of a folder the chat template comes from. */
#include "folder.h"

#include "chat/chat_template.h"

/* What the template picked writes for an empty context but for the tokens; or the error. */
static const char *text_of(const char *file, bool tools)
{
    static char result[1024];
    mt_error err = {0};
    mt_chat_templates *set = mt_chat_templates_open(folder, file, &err);
    mt_rendering r = {0};

    if (!set)
        snprintf(result, sizeof(result), "%s", err.text);
    else {
        const mt_chat_template *tpl = mt_chat_templates_pick(set, tools);

        assert_true(mt_template_render_json(tpl->tpl, tpl->tokens, NULL, &r, &err));
        snprintf(result, sizeof(result), "%s", r.text.data ? r.text.data : "");
        mt_rendering_free(&r);
    }
    mt_chat_templates_free(set);
    return result;
}

static void the_first_of_the_files_is_taken(void **state)
{
    char path[128];

    (void)state;
    assert_non_null(strstr(text_of(NULL, false), "has no chat template; give one with --chat-template FILE"));
    put("tokenizer_config.json", "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"</s>\", \"pad_token\": null,"
                                 " \"model_max_length\": 1000000000000000019884624838656}");
    assert_non_null(strstr(text_of(NULL, false), "has no chat template"));
    put("tokenizer_config.json",
        "{\"bos_token\": {\"content\": \"<s>\"}, \"eos_token\": \"</s>\", \"additional_special_tokens\":"
        " [\"<a>\", {\"content\": \"<b>\"}], \"chat_template\": \"config {{ bos_token }}{{ eos_token }}"
        "{{ additional_special_tokens }}\"}");
    assert_string_equal(text_of(NULL, false), "config <s></s>['<a>', '<b>']");
    put("chat_template.json", "{\"chat_template\": \"json {{ bos_token }}\"}");
    assert_string_equal(text_of(NULL, false), "json <s>");
    put("chat_template.jinja", "jinja {{ bos_token }}\n");
    assert_string_equal(text_of(NULL, false), "jinja <s>");
    assert_string_equal(text_of(NULL, true), "jinja <s>");
    put("additional_chat_templates/tool_use.jinja", "tools {{ bos_token }}");
    assert_string_equal(text_of(NULL, true), "tools <s>");
    assert_string_equal(text_of(NULL, false), "jinja <s>");
    put("own.jinja", "own {{ bos_token }}");
    snprintf(path, sizeof(path), "%s/own.jinja", folder);
    assert_string_equal(text_of(path, true), "own <s>");
}

/* The second template loops without end where messages have calls, which is probed first. It would show parts, too. */
static void a_template_made_to_harm_is_not_probed_again(void **state)
{
#define PARTS "{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}"
    static const char endless[] =
        "{% if messages | length == 3 and messages[1].tool_calls %}{% for a in range(100000) %}"
        "{% for b in range(100000) %}{% endfor %}{% endfor %}{% endif %}" PARTS;
    mt_error err;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const char *text = i == 0 ? PARTS : endless;
        mt_chat_templates *set = mt_chat_templates_new(text, strlen(text), NULL, NULL, &err);

        assert_non_null(set);
        assert_int_equal(mt_chat_templates_pick(set, false)->profile.content[MT_CHAT_USER].parts, i == 0);
        mt_chat_templates_free(set);
    }
}

static void named_templates(void **state)
{
    (void)state;
    put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"default\", \"template\": \"plain\"},"
                                 " {\"name\": \"tool_use\", \"template\": \"with tools\"}, {\"name\": \"rag\","
                                 " \"template\": \"{{ broken\"}]}");
    assert_string_equal(text_of(NULL, false), "plain");
    assert_string_equal(text_of(NULL, true), "with tools");
    put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"x\"}]}");
    assert_non_null(strstr(text_of(NULL, false), "has named chat templates, but none is called \"default\""));
}

static void what_is_wrong_is_told(void **state)
{
    char expected[256];

    (void)state;
    put("tokenizer_config.json", "{\"chat_template\": \"{% if %}\"}");
    snprintf(
        expected, sizeof(expected),
        "the chat template in \"%s/tokenizer_config.json\": line 1, column 7: unexpected 'end of statement block'; an "
        "expression should be here",
        folder);
    assert_string_equal(text_of(NULL, false), expected);
    put("tokenizer_config.json", "{");
    assert_non_null(strstr(text_of(NULL, false), "tokenizer_config.json\": line 1"));
    assert_non_null(strstr(text_of("/no/such/file.jinja", false), "/no/such/file.jinja"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(the_first_of_the_files_is_taken, make_folder, remove_folder),
    cmocka_unit_test(a_template_made_to_harm_is_not_probed_again),
    cmocka_unit_test_setup_teardown(named_templates, make_folder, remove_folder),
    cmocka_unit_test_setup_teardown(what_is_wrong_is_told, make_folder, remove_folder),
};
UNIT_MAIN(tests)
