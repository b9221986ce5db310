/* The rules of docs/messages.md, one by one. */
#include "chat_common.h"

#include <stdlib.h>

static void developer_is_system(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, MESSAGES(SAYS("developer", "d") "," SAYS("user", "u"))),
                        "<system:d>^<user:u>^<assistant:");
}

static void leading_system_messages_become_one(void **state)
{
    (void)state;
    assert_string_equal(
        prompt_of(FRONT, MESSAGES(SAYS("system", "a") "," SAYS("developer", "b") "," SAYS("user", "u"))),
        "<<a\n\nb>>^<user:u>^<assistant:");
}

static void later_system_messages_stay_where_the_template_shows_them(void **state)
{
    const char *request = MESSAGES(SAYS("system", "a") "," SAYS("user", "u") "," SAYS("assistant", "v") "," SAYS(
        "system", "b") "," SAYS("user", "w"));

    (void)state;
    assert_string_equal(prompt_of(PLAIN, request), "<system:a>^<user:u>^<assistant:v>^<system:b>^<user:w>^<assistant:");
    assert_string_equal(prompt_of(FRONT, request), "<<a\n\nb>>^<user:u>^<assistant:v>^<user:w>^<assistant:");
    assert_string_equal(prompt_of(FRONT, MESSAGES(SAYS("user", "u") "," SAYS("system", "b"))),
                        "<<b>>^<user:u>^<assistant:");
    /* a template that shows them in place, but not behind the result of a tool */
    assert_string_equal(prompt_of("{% for m in messages %}{% if loop.index0 and m.role == 'system' and"
                                  " messages[loop.index0 - 1].role == 'tool' %}{% continue %}{% endif %}"
                                  "<{{ m.role }}:{{ m.content }}>{% endfor %}",
                                  MESSAGES(SAYS("user", "u") "," SAYS("system", "b"))),
                        "<system:b>^<user:u>");
}

static void system_messages_become_the_users_where_the_template_has_none(void **state)
{
    const char *refuses = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" PLAIN;
    const char *drops = "{% for m in messages if m.role != 'system' %}<{{ m.role }}:{{ m.content }}>{% endfor %}";
    const char *request = MESSAGES(SAYS("system", "a") "," SAYS("user", "u") "," SAYS("system", "b"));

    (void)state;
    assert_string_equal(prompt_of(refuses, request), "<user:a\n\nb\n\nu>^<assistant:");
    assert_string_equal(prompt_of(drops, request), "<user:a\n\nb\n\nu>");
    assert_string_equal(prompt_of(drops, MESSAGES(SAYS("system", "a"))), "<user:a>");
}

static void neighbours_of_one_role_become_one(void **state)
{
    (void)state;
    assert_string_equal(prompt_of(PLAIN, MESSAGES(SAYS("user", "a") "," SAYS("user", "b") "," SAYS("user", "c"))),
                        "<user:a\n\nb\n\nc>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES(SAYS("user", "") "," SAYS("user", "b"))), "<user:b>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES(SAYS("assistant", "a") "," SAYS("assistant", "b"))),
                        "<assistant:a\n\nb>^<assistant:");
    assert_string_equal(
        prompt_of(PLAIN, MESSAGES("{\"role\": \"assistant\", \"content\": \"a\", \"reasoning_content\": \"r\"},"
                                  "{\"role\": \"assistant\", \"content\": \"b\", \"reasoning_content\": \"q\"}")),
        "<assistant:a\n\nb|r\n\nq>^<assistant:");
    /* moving system messages away makes neighbours */
    assert_string_equal(prompt_of(FRONT, MESSAGES(SAYS("user", "a") "," SAYS("system", "s") "," SAYS("user", "b"))),
                        "<<s>>^<user:a\n\nb>^<assistant:");
}

static void calls_and_results_are_never_merged(void **state)
{
    (void)state;
    assert_string_equal(
        prompt_of(
            PLAIN,
            MESSAGES(SAYS(
                "assistant",
                "a") ","
                     "{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\"}}]},"
                     "{\"role\": \"tool\", \"content\": \"x\", \"tool_call_id\": \"1\"},"
                     "{\"role\": \"tool\", \"content\": \"y\"}")),
        "<assistant:a>^<assistant:!f{}>^<tool:x#1=f>^<tool:y#=>^<assistant:");
}

static void parts_stay_parts(void **state)
{
    (void)state;
    assert_string_equal(
        prompt_of(VISION, MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"},"
                                   " {\"type\": \"image_url\", \"image_url\": {\"url\": \"x\"}}]}," SAYS("user", "b"))),
        "<user:(a)[IMG](b)>^<assistant:");
    assert_string_equal(
        prompt_of(VISION,
                  MESSAGES(SAYS("user",
                                "a") ", {\"role\": \"user\", \"content\": ["
                                     "{\"type\": \"text\", \"text\": \"b\"}, {\"type\": \"text\", \"text\": \"c\"}]}")),
        "<user:(a\n\nb)(c)>^<assistant:");
}

static void text_parts_are_flattened_for_templates_of_strings(void **state)
{
    const char *request = MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"},"
                                   " {\"type\": \"input_text\", \"text\": \"b\"}]}");

    (void)state;
    assert_string_equal(prompt_of(PLAIN, request), "<user:a\nb>^<assistant:");
    assert_string_equal(prompt_of(VISION, request), "<user:(a)(b)>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"user\", \"content\": []}")), "<user:>^<assistant:");
    /* and strings are made parts where nothing else is taken */
    assert_string_equal(
        prompt_of("{% for m in messages %}{% for p in m.content %}{{ p['text'] }};{% endfor %}{% endfor %}",
                  MESSAGES(SAYS("user", "a"))),
        "a;");
}

static void images_and_videos_take_the_form_of_the_template(void **state)
{
    const char *request =
        MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {\"url\": \"u\"}},"
                 "{\"type\": \"input_image\", \"image_url\": \"u\"}, {\"type\": \"image\", \"image\": \"u\"},"
                 "{\"type\": \"video_url\", \"video_url\": {\"url\": \"u\"}}, {\"type\": \"text\", \"text\": \"t\"}]}");
    const char *by_url =
        "{% for m in messages %}{% for p in m.content %}{% if p.type == 'image_url' %}<i>"
        "{% elif p.type == 'video_url' %}<v>{% else %}{{ p['text'] }}{% endif %}{% endfor %}{% endfor %}";
    const char *by_field = "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
                           "{% for p in m.content %}{% if 'image' in p %}<i>{% elif 'video' in p %}<v>{% else %}"
                           "{{ p.text }}{% endif %}{% endfor %}{% endif %}{% endfor %}";

    (void)state;
    assert_string_equal(prompt_of(VISION, request), "<user:[IMG][IMG][IMG][VID](t)>^<assistant:");
    assert_string_equal(prompt_of(by_url, request), "<i><i><i><v>t");
    assert_string_equal(prompt_of(by_field, request), "<i><i><i><v>t");
    assert_string_equal(prompt_of(PLAIN, request),
                        "error: messages[0].content[0]: the chat template of this model has no place for images in a "
                        "message of role user; send text only");
}

static void markers_stand_for_images_where_there_are_no_parts(void **state)
{
    const mt_prompt_model model = {.marks.of[MT_CHAT_IMAGE].marker = "<image>"};

    (void)state;
    assert_string_equal(prompt_with(PLAIN,
                                    MESSAGES("{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"},"
                                             "{\"type\": \"image\"}, {\"type\": \"text\", \"text\": \"b\"}]}"),
                                    &model),
                        "<user:a<image>b>^<assistant:");
}

static void arguments_become_objects(void **state)
{
#define CALL(arguments)                                                                                          \
    MESSAGES("{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"1\", \"type\": \"function\", \"function\": " \
             "{\"name\": \"f\", \"arguments\": " arguments "}}]}")
    const char *prints = "{% for m in messages %}{% for c in m.tool_calls %}{{ '<' + c.function.arguments + '>' }}"
                         "{% endfor %}{% endfor %}";

    (void)state;
    assert_string_equal(prompt_of(PLAIN, CALL("\"{\\\"b\\\": 1.0, \\\"a\\\": [\\\"x\\\"]}\"")),
                        "<assistant:!f{\"b\": 1.0, \"a\": [\"x\"]}>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, CALL("{\"b\": 2, \"a\": null}")),
                        "<assistant:!f{\"b\": 2, \"a\": null}>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, CALL("\"{broken\"")), "<assistant:!f\"{broken\">^<assistant:");
    assert_string_equal(prompt_of(PLAIN, CALL("\"[1]\"")), "<assistant:!f\"[1]\">^<assistant:");
    assert_string_equal(prompt_of(PLAIN, CALL("null")), "<assistant:!f{}>^<assistant:");
    /* a template that adds them to strings gets strings */
    assert_string_equal(prompt_of(prints, CALL("{\"b\": 0.1, \"a\": \"\\u00e9\"}")), "<{\"b\": 0.1, \"a\": \"é\"}>");
    assert_string_equal(prompt_of(prints, CALL("\"{\\\"b\\\":1}\"")), "<{\"b\":1}>");
    assert_string_equal(prompt_of(prints, CALL("null")), "<{}>");
}

/* A call that max_tokens cut comes back with every later turn: it must render, and its text must be seen. */
static void broken_arguments_are_shown_as_they_are(void **state)
{
#define BEGINNING "{% for m in messages %}{% for c in m.tool_calls %}{% set a = c.function.arguments %}"
#define ENDING "{% endfor %}{% endfor %}"
    const char *walks = BEGINNING "{% for k, v in a|items %}{{ k }}={{ v }};{% endfor %}" ENDING;
    const char *methods = BEGINNING "{% for k, v in a.items() %}{{ k }}={{ v|tojson }};{% endfor %}" ENDING;
    const char *strict =
        BEGINNING "{% if a is not mapping %}{{ raise_exception('no') }}{% endif %}{{ a|tojson }}" ENDING;
    const char *hides = BEGINNING "{% if a is mapping %}{{ a|tojson }}{% endif %}" ENDING;
    const char *either = BEGINNING "{% if a is string %}{{ a }}{% else %}{{ a|tojson }}{% endif %}" ENDING;
    const char *cut = CALL("\"{\\\"path\\\": \\\"/tm\"");

    (void)state;
    assert_string_equal(prompt_of(walks, cut), "raw_arguments={\"path\": \"/tm;");
    assert_string_equal(prompt_of(methods, cut), "raw_arguments=\"{\\\"path\\\": \\\"/tm\";");
    assert_string_equal(prompt_of(strict, cut), "{\"raw_arguments\": \"{\\\"path\\\": \\\"/tm\"}");
    assert_string_equal(prompt_of(hides, cut), "{\"raw_arguments\": \"{\\\"path\\\": \\\"/tm\"}");
    assert_string_equal(prompt_of(either, cut), "{\"path\": \"/tm");
    assert_string_equal(prompt_of(walks, CALL("\"[1]\"")), "raw_arguments=[1];");
    assert_string_equal(prompt_of(walks, CALL("[1, {\"a\": null}]")), "raw_arguments=[1, {\"a\": null}];");
    assert_string_equal(prompt_of(either, CALL("[1, {\"a\": null}]")), "[1, {\"a\": null}]");
    assert_string_equal(prompt_of(either, CALL("7")), "7");
    assert_string_equal(prompt_of(walks, CALL("\"{\\\"k\\\": 1}\"")), "k=1;");
    assert_string_equal(prompt_of(walks, CALL("\"\"")), "");
}

static void results_stand_in_the_order_of_their_calls(void **state)
{
#define CALLS                                                                                                      \
    "{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"1\", \"function\": {\"name\": \"f\"}}, {\"id\": \"2\"," \
    " \"function\": {\"name\": \"g\"}}]}"
#define RESULT(id, content) "{\"role\": \"tool\", \"tool_call_id\": \"" id "\", \"content\": \"" content "\"}"

    (void)state;
    assert_string_equal(prompt_of(PLAIN, MESSAGES(CALLS "," RESULT("2", "b") "," RESULT("1", "a"))),
                        "<assistant:!f{}!g{}>^<tool:a#1=f>^<tool:b#2=g>^<assistant:");
    assert_string_equal(
        prompt_of(PLAIN, MESSAGES(CALLS "," RESULT("9", "c") "," RESULT("2", "b") "," RESULT("1", "a"))),
        "<assistant:!f{}!g{}>^<tool:a#1=f>^<tool:b#2=g>^<tool:c#9=>^<assistant:");
}

static void reasoning_goes_under_the_name_the_template_reads(void **state)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking"};

    (void)state;
    for (size_t sent = 0; sent < 3; sent++)
        for (size_t read = 0; read < 3; read++) {
            char template[256], request[256];

            snprintf(template, sizeof(template), "{%% for m in messages %%}{{ m.%s }}/{{ m.content }};{%% endfor %%}",
                     names[read]);
            snprintf(request, sizeof(request),
                     "{\"messages\": [{\"role\": \"assistant\", \"content\": \"c\", \"%s\": \"r\"}]}", names[sent]);
            assert_string_equal(prompt_of(template, request), "r/c;");
        }
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"assistant\", \"content\": [{\"type\": \"thinking\","
                                                  " \"thinking\": \"r\"}, {\"type\": \"text\", \"text\": \"c\"}]}")),
                        "<assistant:c|r>^<assistant:");
    assert_string_equal(prompt_of(PLAIN, MESSAGES("{\"role\": \"assistant\", \"content\": [{\"type\": \"reasoning\","
                                                  " \"text\": \"r\"}, {\"type\": \"text\", \"text\": \"c\"},"
                                                  " {\"type\": \"thinking\", \"thinking\": \"s\"}]}")),
                        "<assistant:c|r\n\ns>^<assistant:");
}

#define THINKS_AND_CALLS                                                                                             \
    MESSAGES("{\"role\": \"assistant\", \"content\": \"c\", \"reasoning_content\": \"r\", \"tool_calls\": [{\"id\":" \
             " \"call_abcdefgh\", \"function\": {\"name\": \"f\", \"arguments\": {\"k\": \"v\"}}}]},"                \
             "{\"role\": \"tool\", \"tool_call_id\": \"call_abcdefgh\", \"content\": \"x\"}")

static void reasoning_becomes_a_part_where_the_template_reads_it_there(void **state)
{
    const char *parts = "{% for m in messages %}<{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}"
                        "{% for p in m.content %}{% if p.type == 'thinking' %}[THINK]{{ p.thinking }}[/THINK]"
                        "{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}>{% endfor %}";

    (void)state;
    assert_string_equal(
        prompt_of(parts, MESSAGES("{\"role\": \"assistant\", \"content\": \"c\", \"thinking\": \"r\"}")),
        "<assistant:[THINK]r[/THINK]c>");
    assert_string_equal(prompt_of(parts, MESSAGES(SAYS("assistant", "c"))), "<assistant:c>");
}

static void reasoning_and_content_of_a_call_become_one_where_only_one_is_taken(void **state)
{
    const char *one = "{% for m in messages %}{% if m.tool_calls and m.content and m.thinking %}"
                      "{{ raise_exception('one of them') }}{% endif %}<{{ m.thinking }}|{{ m.content }}"
                      "{% for c in m.tool_calls %}!{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}>"
                      "{% endfor %}";

    (void)state;
    assert_string_equal(prompt_of(one, THINKS_AND_CALLS), "<r\n\nc|!f{\"k\": \"v\"}>^<|x>");
    assert_string_equal(prompt_of(PLAIN, THINKS_AND_CALLS),
                        "<assistant:c|r!f{\"k\": \"v\"}>^<tool:x#call_abcdefgh=f>^<assistant:");
}

static void calls_stand_in_a_message_without_content_where_the_template_looks_there_only(void **state)
{
    const char *without =
        "{% for m in messages %}<{{ m.role }}:{% if m.content is none %}{% for c in m.tool_calls %}"
        "{{ c.function.name + c.function.arguments }}{% endfor %}{% else %}{{ m.content }}{% endif %}>"
        "{% endfor %}";

    (void)state;
    assert_string_equal(prompt_of(without, THINKS_AND_CALLS), "<assistant:c>^<assistant:f{\"k\": \"v\"}>^<tool:x>");
    assert_string_equal(prompt_of(without, MESSAGES("{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\":"
                                                    " [{\"function\": {\"name\": \"f\"}}]}")),
                        "<assistant:f{}>");
}

static void ids_are_shortened_where_the_template_takes_only_short_ones(void **state)
{
    const char *nine = "{% for m in messages %}{% for c in m.tool_calls %}{% if c.id|length != 9 %}"
                       "{{ raise_exception('nine') }}{% endif %}{{ c.id }}{{ c.function.name }}"
                       "{{ c.function.arguments|tojson }}{% endfor %}{% if m.role == 'tool' %}={{ m.tool_call_id }}"
                       "{% endif %}{{ m.content }};{% endfor %}";
    const char *made = prompt_of(nine, THINKS_AND_CALLS);
    char id[10];

    (void)state;
    snprintf(id, sizeof(id), "%s", made);
    assert_int_equal(strspn(id, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"), 9);
    assert_non_null(strstr(made, "="));
    assert_memory_equal(strstr(made, "=") + 1, id, 9); /* the result still answers the call */
    assert_string_equal(prompt_of(nine, MESSAGES("{\"role\": \"assistant\", \"tool_calls\": [{\"id\": \"abcDEF123\","
                                                 " \"function\": {\"name\": \"f\"}}]}")),
                        "abcDEF123f{};");
}

static void variables_reach_the_template(void **state)
{
    const char *shows = "{{ enable_thinking }} {{ reasoning_effort }} {{ custom }} {{ documents|length }}";
    static const char *const efforts[][2] = {
        {"\"reasoning_effort\": \"low\"", "True low"},
        {"\"reasoning_effort\": \"none\"", "False none"},
        {"\"reasoning_effort\": \"high\", \"enable_thinking\": false", "False high"},
        {"\"thinking\": {\"type\": \"enabled\"}", "True "},
        {"\"reasoning_effort\": \"high\", \"thinking\": {\"type\": \"disabled\"}", "False high"},
        {"\"reasoning\": {\"effort\": \"low\"}", "True low"},
        {"\"reasoning\": {\"effort\": \"none\"}", "False none"},
        {"\"reasoning\": {\"max_tokens\": 5}", "True "},
        {"\"reasoning\": {\"enabled\": true}", "True "},
        {"\"reasoning\": {\"effort\": \"low\", \"enabled\": false}", "False low"},
        {"\"reasoning\": {\"enabled\": true}, \"enable_thinking\": false", "False "},
        {"\"reasoning\": {}", " "},
    };

    (void)state;
    assert_string_equal(
        prompt_of(shows, "{\"messages\": [" SAYS("user", "a") "], \"enable_thinking\": false,"
                                                              " \"reasoning_effort\": \"high\", \"documents\": [{}],"
                                                              " \"chat_template_kwargs\": {\"custom\": [1]}}"),
        "False high [1] 1");
    assert_string_equal(
        prompt_of(shows, "{\"messages\": [" SAYS(
                             "user", "a") "], \"enable_thinking\": false,"
                                          " \"documents\": [], \"chat_template_kwargs\": {\"enable_thinking\": true}}"),
        "True   0");
    assert_string_equal(
        prompt_of("{{ thinking }}", "{\"messages\": [" SAYS("user", "a") "], \"enable_thinking\": true}"), "True");
    for (size_t i = 0; i < MT_COUNT(efforts); i++) {
        char request[200];

        snprintf(request, sizeof(request), "{\"messages\": [" SAYS("user", "a") "], %s}", efforts[i][0]);
        assert_string_equal(prompt_of("{{ thinking }} {{ reasoning_effort }}", request), efforts[i][1]);
        assert_string_equal(prompt_of("{{ enable_thinking }} {{ reasoning_effort }}", request), efforts[i][1]);
    }
    assert_string_equal(
        prompt_of("{{ thinking_budget }}", "{\"messages\": [" SAYS("user", "a") "], \"thinking_budget\": 7}"), "7");
    assert_string_equal(prompt_of("{{ bos_token }}{{ tools[0].name }}{{ eos_token }}",
                                  "{\"messages\": [" SAYS("user", "a") "], \"tools\": [{\"name\": \"f\"}]}"),
                        "<s>f</s>");
}

static void many_messages_take_little_time(void **state)
{
    mt_buf request;

    (void)state;
    mt_buf_init(&request, 64u << 20);
    mt_buf_puts(&request, "{\"messages\": [" SAYS("user", "x"));
    for (int i = 0; i < 20000; i++)
        mt_buf_puts(&request, "," SAYS("user", "some text that is repeated"));
    mt_buf_puts(&request, "]}");
    assert_string_equal(prompt_of("{{ messages|length }} {{ messages[0].content|length }}", request.data), "1 560001");
    mt_buf_free(&request);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(developer_is_system),
    cmocka_unit_test(leading_system_messages_become_one),
    cmocka_unit_test(later_system_messages_stay_where_the_template_shows_them),
    cmocka_unit_test(system_messages_become_the_users_where_the_template_has_none),
    cmocka_unit_test(neighbours_of_one_role_become_one),
    cmocka_unit_test(calls_and_results_are_never_merged),
    cmocka_unit_test(parts_stay_parts),
    cmocka_unit_test(text_parts_are_flattened_for_templates_of_strings),
    cmocka_unit_test(images_and_videos_take_the_form_of_the_template),
    cmocka_unit_test(markers_stand_for_images_where_there_are_no_parts),
    cmocka_unit_test(arguments_become_objects),
    cmocka_unit_test(broken_arguments_are_shown_as_they_are),
    cmocka_unit_test(results_stand_in_the_order_of_their_calls),
    cmocka_unit_test(reasoning_goes_under_the_name_the_template_reads),
    cmocka_unit_test(reasoning_becomes_a_part_where_the_template_reads_it_there),
    cmocka_unit_test(reasoning_and_content_of_a_call_become_one_where_only_one_is_taken),
    cmocka_unit_test(calls_stand_in_a_message_without_content_where_the_template_looks_there_only),
    cmocka_unit_test(ids_are_shortened_where_the_template_takes_only_short_ones),
    cmocka_unit_test(variables_reach_the_template),
    cmocka_unit_test(many_messages_take_little_time),
};
UNIT_MAIN(tests)
