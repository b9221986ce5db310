/* Answers fed with events by hand: what no engine would do at a convenient moment. */
#include "unit.h"

#include "api/answer.h"

typedef struct fixture {
    mt_answer *answer;
    mt_buf out;
} fixture;

static void set_up(fixture *f, const mt_dialect *dialect, bool stream, int64_t n, size_t prompts)
{
    mt_arena *arena = mt_arena_new(1 << 20);
    mt_ask_defaults defaults;
    mt_ask ask;

    mt_ask_defaults_init(&defaults);
    mt_ask_init(&ask, arena, NULL, &defaults);
    ask.form.stream = stream;
    ask.n = n;
    f->answer = mt_answer_new(dialect, arena, &ask, prompts);
    assert_non_null(f->answer);
    snprintf(f->answer->id, sizeof(f->answer->id), "id");
    f->answer->model = "m";
    f->answer->created = 1;
    mt_buf_init(&f->out, 1 << 20);
}

static void tear_down(fixture *f)
{
    mt_answer_free(f->answer);
    mt_buf_free(&f->out);
}

static void feed_token(fixture *f, size_t prompt, uint32_t choice, const char *text)
{
    const mt_event event = {
        .kind = MT_EVENT_TOKEN, .choice = choice, .token = 5, .text = text, .text_len = strlen(text)};

    mt_answer_feed(f->answer, prompt, &event, &f->out);
}

static void feed_done(fixture *f, size_t prompt, uint32_t choice, size_t cached)
{
    const mt_event event = {.kind = MT_EVENT_DONE,
                            .choice = choice,
                            .finish = MT_FINISH_STOP,
                            .stop_token = MT_TOKEN_NONE,
                            .cached = cached,
                            .tokens = 2};

    mt_answer_feed(f->answer, prompt, &event, &f->out);
}

static void nothing_is_written_before_a_whole_answer_is_whole(void **state)
{
    fixture f;

    (void)state;
    set_up(&f, &mt_openai_completions, false, 2, 1);
    feed_token(&f, 0, 1, "b");
    feed_token(&f, 0, 0, "a");
    feed_done(&f, 0, 0, 3);
    assert_int_equal(f.out.len, 0);
    feed_token(&f, 0, 1, "\"");
    feed_done(&f, 0, 1, 9);
    assert_string_equal(
        f.out.data, "{\"id\":\"id\",\"object\":\"text_completion\",\"created\":1,\"model\":\"m\","
                    "\"system_fingerprint\":\"fp_00000000\",\"choices\":["
                    "{\"index\":0,\"text\":\"a\",\"logprobs\":null,\"finish_reason\":\"stop\",\"stop_reason\":null,"
                    "\"matched_stop\":null,\"prompt_logprobs\":null,\"prompt_token_ids\":null},"
                    "{\"index\":1,\"text\":\"b\\\"\",\"logprobs\":null,\"finish_reason\":\"stop\",\"stop_reason\":null,"
                    "\"matched_stop\":null,\"prompt_logprobs\":null,\"prompt_token_ids\":null}],"
                    "\"usage\":{\"prompt_tokens\":0,\"total_tokens\":4,\"completion_tokens\":4,"
                    "\"prompt_tokens_details\":{\"cached_tokens\":3}}}");
    tear_down(&f);
}

/* What the answer says of a stop string is all of it, with its NUL. */
static void a_stop_string_may_have_a_nul(void **state)
{
    static const struct {
        const mt_dialect *dialect;
        const char *wanted;
    } cases[] = {{&mt_openai_chat, "\"stop_reason\":\"a\\u0000b\""},
                 {&mt_anthropic_messages, "\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"a\\u0000b\","}};
    const mt_event event = {.kind = MT_EVENT_DONE,
                            .finish = MT_FINISH_STOP,
                            .stop = {.str = "a\0b", .len = 3},
                            .stop_token = MT_TOKEN_NONE,
                            .tokens = 2};
    fixture f;

    (void)state;
    for (size_t i = 0; i < 2 * MT_COUNT(cases); i++) {
        set_up(&f, cases[i / 2].dialect, i % 2, 1, 1);
        mt_answer_feed(f.answer, 0, &event, &f.out);
        assert_non_null(strstr(f.out.data, cases[i / 2].wanted));
        tear_down(&f);
    }
}

static void an_empty_token_says_nothing_in_a_stream(void **state)
{
    fixture f;

    (void)state;
    set_up(&f, &mt_openai_completions, true, 1, 1);
    feed_token(&f, 0, 0, "");
    assert_int_equal(f.out.len, 0);
    feed_token(&f, 0, 0, "x");
    assert_non_null(strstr(f.out.data, "\"text\":\"x\""));
    f.out.len = 0;
    feed_done(&f, 0, 0, 0);
    assert_non_null(strstr(f.out.data, "\"text\":\"\",\"logprobs\":null,\"finish_reason\":\"stop\""));
    assert_non_null(strstr(f.out.data, "data: [DONE]\n\n"));
    tear_down(&f);
}

static void choices_of_several_prompts_are_numbered_through(void **state)
{
    fixture f;

    (void)state;
    set_up(&f, &mt_openai_completions, true, 2, 3);
    feed_token(&f, 2, 1, "z");
    assert_non_null(strstr(f.out.data, "\"index\":5,\"text\":\"z\""));
    assert_int_equal(f.answer->open, 6);
    tear_down(&f);
}

static void an_error_ends_the_whole_and_nothing_follows(void **state)
{
    const mt_error error = {.code = MT_E_INTERNAL, .text = "numbers are not finite"};
    const mt_event event = {.kind = MT_EVENT_DONE, .finish = MT_FINISH_ERROR, .error = &error};
    fixture f;

    (void)state;
    set_up(&f, &mt_openai_chat, true, 2, 1);
    feed_token(&f, 0, 1, "x");
    f.out.len = 0;
    mt_answer_feed(f.answer, 0, &event, &f.out);
    assert_true(f.answer->failed);
    assert_int_equal(f.answer->why.status, 500);
    feed_token(&f, 0, 1, "y");
    feed_done(&f, 0, 1, 0);
    assert_int_equal(f.out.len, 0);
    (f.answer->dialect->fail)(f.answer, &f.answer->why, &f.out); /* fail is a macro of cmocka */
    assert_string_equal(f.out.data,
                        "data: {\"error\":{\"message\":\"numbers are not finite\",\"type\":\"server_error\","
                        "\"param\":null,\"code\":null}}\n\ndata: [DONE]\n\n");
    tear_down(&f);
}

/* What a model that thinks and calls a tool writes, in pieces that cut its markers: the first `count` of them. */
static void feed_pieces(fixture *f, size_t count)
{
    static const char *const pieces[] = {
        "<thi", "nk>why",         "</think>Sure.<tool", "_call>\n{\"name\": \"f\", \"argu", "ments\": {\"x\"",
        ": 1}", "}\n</tool_call>"};
    json_t *tools = json_loads("[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]", 0, NULL);
    const mt_parse_settings settings = {.formats = {.tools = "hermes", .reasoning = "think"}, .tools = tools};
    mt_error err = {0};

    assert_true(mt_answer_parse(f->answer, &settings, &err));
    json_decref(tools);
    for (size_t i = 0; i < count; i++)
        feed_token(f, 0, 0, pieces[i]);
    feed_done(f, 0, 0, 0);
}

static void feed_call(fixture *f)
{
    feed_pieces(f, 7);
}

static bool ends_with(const mt_dialect *dialect, bool stream, size_t pieces, const char *words)
{
    fixture f;
    bool found;

    set_up(&f, dialect, stream, 1, 1);
    feed_pieces(&f, pieces);
    found = strstr(f.out.data, words) != NULL;
    tear_down(&f);
    return found;
}

/* There is nothing to run where a stop string or the model itself ended within the arguments. What only lacks its
   closing marks is a call. */
static void a_call_that_was_cut_is_no_call_to_run(void **state)
{
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        assert_true(ends_with(&mt_openai_chat, stream, 5, "\"finish_reason\":\"stop\""));
        assert_true(ends_with(&mt_openai_chat, stream, 6, "\"finish_reason\":\"tool_calls\""));
        assert_true(ends_with(&mt_openai_chat, stream, 7, "\"finish_reason\":\"tool_calls\""));
        assert_true(ends_with(&mt_anthropic_messages, stream, 5, "\"stop_reason\":\"end_turn\""));
        assert_true(ends_with(&mt_anthropic_messages, stream, 7, "\"stop_reason\":\"tool_use\""));
        assert_true(ends_with(&mt_openai_responses, stream, 5,
                              "\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\","
                              "\"status\":\"incomplete\""));
        assert_true(ends_with(&mt_openai_responses, stream, 7, "1}\",\"status\":\"completed\""));
    }
}

static void reasoning_and_calls_stand_beside_the_content(void **state)
{
    fixture f;

    (void)state;
    set_up(&f, &mt_openai_chat, false, 1, 1);
    feed_call(&f);
    assert_non_null(strstr(f.out.data,
                           "\"content\":\"Sure.\",\"refusal\":null,\"reasoning\":\"why\",\"reasoning_content\":\"why\","
                           "\"tool_calls\":[{\"id\":\"call_"));
    assert_non_null(strstr(f.out.data, "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":"
                                       "\"{\\\"x\\\": 1}\"}}]}"));
    assert_non_null(strstr(f.out.data, "\"finish_reason\":\"tool_calls\""));
    tear_down(&f);
}

/* Appends what a key of every chunk's delta says to `joined`. */
static void join(const char *stream, const char *key, char *joined)
{
    char start[64];

    snprintf(start, sizeof(start), "\"%s\":\"", key);
    for (const char *at = strstr(stream, "\"delta\":"); at; at = strstr(at + 1, "\"delta\":")) {
        const char *end = strstr(at, "\"finish_reason\""), *found = strstr(at, start);

        if (!found || found > end)
            continue;
        for (found += strlen(start); *found != '"' || found[-1] == '\\'; found++)
            strncat(joined, found, 1);
    }
}

static void a_stream_of_calls_leaks_no_markup(void **state)
{
    char content[100] = "", reasoning[100] = "", name[100] = "", arguments[100] = "";
    fixture f;

    (void)state;
    set_up(&f, &mt_openai_chat, true, 1, 1);
    feed_call(&f);
    join(f.out.data, "content", content);
    join(f.out.data, "reasoning_content", reasoning);
    join(f.out.data, "name", name);
    join(f.out.data, "arguments", arguments);
    assert_string_equal(content, "Sure.");
    assert_string_equal(reasoning, "why");
    assert_string_equal(name, "f");
    assert_string_equal(arguments, "{\\\"x\\\": 1}");
    assert_null(strstr(f.out.data, "tool_call>"));
    assert_null(strstr(f.out.data, "think>"));
    assert_non_null(strstr(f.out.data, "\"finish_reason\":\"tool_calls\""));
    tear_down(&f);
}

static void ids_are_never_the_same(void **state)
{
    char a[MT_RANDOM_ID], b[MT_RANDOM_ID];

    (void)state;
    mt_random_id(a, "chatcmpl-");
    mt_random_id(b, "chatcmpl-");
    assert_int_equal(strlen(a), 33);
    assert_string_not_equal(a, b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nothing_is_written_before_a_whole_answer_is_whole),
    cmocka_unit_test(a_stop_string_may_have_a_nul),
    cmocka_unit_test(an_empty_token_says_nothing_in_a_stream),
    cmocka_unit_test(choices_of_several_prompts_are_numbered_through),
    cmocka_unit_test(an_error_ends_the_whole_and_nothing_follows),
    cmocka_unit_test(reasoning_and_calls_stand_beside_the_content),
    cmocka_unit_test(a_call_that_was_cut_is_no_call_to_run),
    cmocka_unit_test(a_stream_of_calls_leaks_no_markup),
    cmocka_unit_test(ids_are_never_the_same),
};
UNIT_MAIN(tests)
