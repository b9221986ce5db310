/* What a server streams to motet chat: the same answer however it is cut, and no more of it than fits. */
#include "unit.h"

#include "cli/chat_events.h"

static size_t shown;

static void count(mt_chat_answer *answer, bool reasoning, const char *text)
{
    (void)answer, (void)reasoning;
    shown += strlen(text);
}

typedef struct heard {
    mt_chat_answer answer;
    mt_chat_events events;
} heard;

static void begin(heard *h)
{
    h->answer = (mt_chat_answer){.piece = count};
    mt_chat_events_init(&h->events, &h->answer);
    shown = 0;
}

static void end(heard *h)
{
    mt_chat_events_free(&h->events);
    mt_chat_answer_free(&h->answer);
}

static bool say(heard *h, const char *text)
{
    return mt_chat_events_feed(&h->events, text, strlen(text));
}

static const char *argument_of(const heard *h, size_t call, const char *key)
{
    return json_string_value(json_object_get(json_object_get(json_array_get(h->answer.calls, call), "function"), key));
}

static const char whole[] =
    ": a comment\n"
    "event: chunk\r\n"
    "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"let me \"}}], \"error\": null}\r\n\r\n"
    "data:{\"choices\": [{\"delta\": {\"reasoning\": \"see\"}}]}\n\n"
    "data: {\"choices\": [{\"delta\": {\"content\": \"h\xC3\xA9llo \"}}]}\n\n"
    "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 0, \"id\": \"a\", \"function\": {\"name\": \"f\", "
    "\"arguments\": \"{\\\"x\\\"\"}}]}}]}\n\n"
    "data: {\"choices\": [{\"delta\": {\"content\": \"world\", \"tool_calls\": [{\"index\": 0, \"function\": "
    "{\"arguments\": \":1}\"}}]}, \"finish_reason\": \"stop\"}]}\n\n"
    "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 7, \"completion_tokens\": 3, \"prompt_tokens_details\": "
    "{\"cached_tokens\": 2}}}\n\n"
    "data: [DONE]\n\n";

static void it_may_come_in_any_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < sizeof(whole); piece += piece < 9 ? 1 : 37) {
        heard h;
        begin(&h);
        for (size_t at = 0; at < sizeof(whole) - 1; at += piece) {
            const size_t left = sizeof(whole) - 1 - at;
            assert_true(mt_chat_events_feed(&h.events, whole + at, piece < left ? piece : left));
        }
        assert_string_equal(h.answer.text.data, "h\xC3\xA9llo world");
        assert_string_equal(h.answer.reasoning.data, "let me see");
        assert_int_equal(shown, h.answer.text.len + h.answer.reasoning.len);
        assert_string_equal(h.answer.finish, "stop");
        assert_int_equal(json_array_size(h.answer.calls), 1);
        assert_string_equal(argument_of(&h, 0, "name"), "f");
        assert_string_equal(argument_of(&h, 0, "arguments"), "{\"x\":1}");
        assert_int_equal(h.answer.prompt, 7);
        assert_int_equal(h.answer.tokens, 3);
        assert_int_equal(h.answer.cached, 2);
        assert_int_equal(h.events.error.len, 0);
        end(&h);
    }
}

static void what_is_no_event_is_passed_over(void **state)
{
    heard h;
    (void)state;
    begin(&h);
    assert_true(say(&h, "\n\ndata:\ndata: {\ndata: 3\ndata: [[[[\ndata: {\"choices\": 4}\ndata: {\"choices\": [5]}\n"));
    assert_true(say(&h, "data: {\"choices\": [{\"delta\": {\"content\": 7, \"tool_calls\": [8, {\"index\": -1}, "
                        "{\"index\": 3, \"id\": \"far\"}]}, \"finish_reason\": {}}], \"usage\": []}\n"));
    assert_true(mt_chat_events_feed(&h.events, "data: {\"choices\"\0: []}\n", 23));
    assert_true(say(&h, "data: {\"choices\": [{\"delta\": {\"content\": \"never ended\"}}]}"));
    assert_int_equal(h.answer.text.len + h.answer.reasoning.len + h.events.error.len + shown, 0);
    assert_int_equal(json_array_size(h.answer.calls), 1); /* 8 has no number, which is the first */
    assert_int_equal(h.answer.tokens, -1);
    end(&h);
}

static void an_error_is_kept_as_it_is(void **state)
{
    heard h;
    (void)state;
    begin(&h);
    assert_true(say(&h, "data: {\"error\": {\"message\": \"no\"}}\n\n"));
    assert_string_equal(h.events.error.data, " {\"error\": {\"message\": \"no\"}}");
    end(&h);
}

/* Says it until it is too much, or so often. */
static size_t repeat(heard *h, const char *text, size_t most)
{
    size_t n = 0;
    while (n < most && say(h, text))
        n++;
    return n;
}

static void nothing_grows_for_ever(void **state)
{
    static char event[(1 << 20) + 256];
    heard h;
    (void)state;
    begin(&h); /* a line that does not end */
    memset(event, 'x', 1 << 20);
    assert_int_equal(repeat(&h, event, 100), MT_CHAT_EVENT_BYTES >> 20);
    assert_false(say(&h, "\n"));
    end(&h);

    begin(&h); /* calls */
    for (int i = 0; i < MT_CHAT_CALLS; i++) {
        snprintf(event, sizeof(event), "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": %d}]}}]}\n", i);
        assert_true(say(&h, event));
    }
    assert_false(say(&h, "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"index\": 256}]}}]}\n"));
    assert_int_equal(json_array_size(h.answer.calls), MT_CHAT_CALLS);
    end(&h);

    begin(&h); /* what a call is called with */
    const int head = snprintf(event, sizeof(event),
                              "data: {\"choices\": [{\"delta\": {\"tool_calls\": [{\"function\": "
                              "{\"arguments\": \"");
    memset(event + head, 'x', 1 << 18);
    snprintf(event + head + (1 << 18), 16, "\"}}]}}]}\n");
    assert_int_equal(repeat(&h, event, 100), 4);
    assert_int_equal(strlen(argument_of(&h, 0, "arguments")), 1 << 20);
    end(&h);

    begin(&h); /* what it says */
    assert_int_equal(h.answer.text.limit, MT_CHAT_ANSWER_BYTES);
    h.answer.text.limit = 3 << 20; /* so that it is soon there */
    const int start = snprintf(event, sizeof(event), "data: {\"choices\": [{\"delta\": {\"content\": \"");
    memset(event + start, 'x', 1 << 20);
    snprintf(event + start + (1 << 20), 16, "\"}}]}\n");
    assert_int_equal(repeat(&h, event, 100), 3);
    assert_true(h.events.too_much);
    end(&h);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_may_come_in_any_pieces),
    cmocka_unit_test(what_is_no_event_is_passed_over),
    cmocka_unit_test(an_error_is_kept_as_it_is),
    cmocka_unit_test(nothing_grows_for_ever),
};
UNIT_MAIN(tests)
