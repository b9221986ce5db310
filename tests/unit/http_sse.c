#include "unit.h"

#include "http/http.h"

static void assert_event(const char *name, const char *data, const char *expected)
{
    mt_buf out;

    mt_buf_init(&out, 1000);
    assert_true(mt_http_sse_format(&out, name, data, strlen(data)));
    assert_string_equal(out.data, expected);
    mt_buf_free(&out);
}

static void events(void **state)
{
    (void)state;
    assert_event(NULL, "[DONE]", "data: [DONE]\n\n");
    assert_event("ping", "{}", "event: ping\ndata: {}\n\n");
    assert_event(NULL, "", "data: \n\n");
}

static void no_data_can_end_an_event(void **state)
{
    (void)state;
    assert_event(NULL, "a\nb", "data: a\ndata: b\n\n");
    assert_event(NULL, "a\r\nb\rc\n", "data: a\ndata: b\ndata: c\ndata: \n\n");
    assert_event("x\ndata: y", "z", "event: x\ndata: z\n\n");
}

static void an_event_that_does_not_fit_is_refused(void **state)
{
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 10);
    assert_false(mt_http_sse_format(&out, NULL, "too long", 8));
    mt_buf_free(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(events),
    cmocka_unit_test(no_data_can_end_an_event),
    cmocka_unit_test(an_event_that_does_not_fit_is_refused),
};
UNIT_MAIN(tests)
