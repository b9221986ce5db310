#include "unit.h"

#include "base/alloc.h"
#include "http/limits.h"
#include "http/parser.h"

/* What a run of the parser gave, as text: [head]body; for each request, and !400 for a fault. */
static void transcribe_head(mt_buf *out, const mt_http_parser *p)
{
    const mt_http_head *head = &p->head;

    mt_buf_printf(out, "[%s %s%s%s%s", mt_http_method_name(head->method), head->target, head->http10 ? " 1.0" : "",
                  head->keep_alive ? "" : " close", head->expect_continue ? " expect" : "");
    for (size_t i = 0; i < head->header_count; i++)
        mt_buf_printf(out, "|%s=%s", head->headers[i].name, head->headers[i].value);
    mt_buf_puts(out, "]");
}

static bool transcribe(mt_buf *out, mt_http_parser *p, mt_http_event event)
{
    switch (event) {
    case MT_HTTP_NEED: return false;
    case MT_HTTP_GOT_HEAD: transcribe_head(out, p); return true;
    case MT_HTTP_GOT_BODY: mt_buf_add(out, p->piece, p->piece_len); return true;
    case MT_HTTP_GOT_END: mt_buf_puts(out, ";"); return true;
    case MT_HTTP_BAD: mt_buf_printf(out, "!%d", p->fault.status); return false;
    }
    return false;
}

static bool feed(mt_buf *out, mt_http_parser *p, const char *data, size_t len)
{
    mt_http_event event;
    size_t used;

    do {
        event = mt_http_parser_next(p, data, len, &used);
        data += used;
        len -= used;
    } while (transcribe(out, p, event));
    assert_true(len == 0 || event == MT_HTTP_BAD);
    return event != MT_HTTP_BAD;
}

static mt_http_limits small_limits(void)
{
    mt_http_limits limits = mt_http_limits_default();

    limits.head_bytes = 256;
    limits.headers = 5;
    limits.body_bytes = 100;
    return limits;
}

/* In a first piece of one size and further ones of another. */
static void parse_cut(mt_buf *out, const char *data, size_t len, size_t first, size_t each)
{
    mt_http_limits limits = small_limits();
    mt_http_parser p;

    mt_http_parser_init(&p, &limits);
    for (size_t at = 0, n = first; at < len; at += n, n = each) {
        if (n > len - at)
            n = len - at;
        if (!feed(out, &p, data + at, n))
            break;
    }
    mt_http_parser_free(&p);
}

static void assert_parses_len(const char *data, size_t len, const char *expected)
{
    for (size_t each = 1; each <= len; each += each < 4 ? 1 : len - each ? len - each : 1)
        for (size_t first = 1; first <= len; first++) {
            mt_buf out;

            mt_buf_init(&out, 100000);
            parse_cut(&out, data, len, first, each);
            assert_string_equal(out.data ? out.data : "", expected);
            mt_buf_free(&out);
        }
}

static void assert_parses(const char *data, const char *expected)
{
    assert_parses_len(data, strlen(data), expected);
}

static void requests_without_bodies(void **state)
{
    (void)state;
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "[GET /|host=a];");
    assert_parses("\r\nGET /x?y=%20z HTTP/1.1\r\nHOST:a\r\nX-Y: \t b c \t\r\nEmpty:\r\n\r\n",
                  "[GET /x?y=%20z|host=a|x-y=b c|empty=];");
    assert_parses("GET / HTTP/1.0\r\n\r\n", "[GET / 1.0 close];");
    assert_parses("GET / HTTP/1.0\r\nConnection: foo, Keep-Alive\r\n\r\n", "[GET / 1.0|connection=foo, Keep-Alive];");
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "[GET / close|host=a|connection=close];");
    assert_parses("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "[OPTIONS *|host=a];");
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\nx: \xc3\xa9\r\n\r\n", "[GET /|host=a|x=\xc3\xa9];");
}

static void targets_with_a_host_agree_with_the_header(void **state)
{
    (void)state;
    assert_parses("GET http://h:1/p?q HTTP/1.1\r\nHost: h:1\r\n\r\n", "[GET /p?q|host=h:1];");
    assert_parses("GET http://h HTTP/1.1\r\nHost: H.\r\n\r\n", "[GET /|host=H.];");
    assert_parses("GET http://h?q HTTP/1.1\r\nHost: h:80\r\n\r\n", "[GET /?q|host=h:80];");
    assert_parses("GET HTTPS://[::1]:443/ HTTP/1.1\r\nHost: [::1]\r\n\r\n", "[GET /|host=[::1]];");
    assert_parses("GET http://h/p HTTP/1.0\r\n\r\n", "[GET /p 1.0 close];");
    assert_parses("GET http://h/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET http://h/ HTTP/1.1\r\nHost: h:81\r\n\r\n", "!400");
    assert_parses("GET https://h/ HTTP/1.1\r\nHost: h:80\r\n\r\n", "!400");
    assert_parses("GET http://h/ HTTP/1.1\r\nHost:\r\n\r\n", "!400");
    assert_parses("GET http://h/ HTTP/1.0\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
    assert_parses("GET http://h:x/ HTTP/1.0\r\n\r\n", "!400");
    assert_parses("GET http://[::1]h/ HTTP/1.1\r\nHost: [::1]\r\n\r\n", "!400");
    assert_parses("GET http:// HTTP/1.1\r\nHost: h\r\n\r\n", "!400");
}

static void bodies_by_length(void **state)
{
    (void)state;
    assert_parses("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
                  "[POST /|host=a|content-length=5]hello;");
    assert_parses("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n", "[POST /|host=a|content-length=00];");
    assert_parses("POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi", "[POST / 1.0 close|content-length=2]hi;");
    assert_parses("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\nhi",
                  "[PUT / expect|host=a|content-length=2|expect=100-Continue]hi;");
}

static void bodies_in_chunks(void **state)
{
    (void)state;
#define CHUNKED "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n"
#define CHUNKED_SEEN "[POST /|host=a|transfer-encoding=Chunked]"
    assert_parses(CHUNKED "5\r\nhello\r\n0\r\n\r\n", CHUNKED_SEEN "hello;");
    assert_parses(CHUNKED "0\r\n\r\n", CHUNKED_SEEN ";");
    assert_parses(CHUNKED "003\r\nabc\r\nA; name\t=\"v\"\r\n0123456789\r\n0;x\r\nTrailer: y\r\n\r\n",
                  CHUNKED_SEEN "abc0123456789;");
}

static void requests_in_a_row(void **state)
{
    (void)state;
    assert_parses("POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi\r\n"
                  "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n" CHUNKED "1\r\nx\r\n0\r\n\r\n"
                  "GET /4 HTTP/1.0\r\n\r\nbad",
                  "[POST /1|host=a|content-length=2]hi;[GET /2|host=a];" CHUNKED_SEEN "x;[GET /4 1.0 close];");
}

static void lines_that_could_be_read_in_two_ways(void **state)
{
    (void)state;
    assert_parses("GET / HTTP/1.1\nHost: a\n\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\n Host: a\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost : a\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", "!400");
    assert_parses_len("GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n", 28, "!400");
    assert_parses("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("\x16\x03\x01 a client of TLS", "!400");
}

/* A proxy may check the first of two, and we believe the second. */
static void headers_that_must_be_single(void **state)
{
    static const char *const names[] = {"Host",      "Content-Type", "Content-Encoding", "Authorization",
                                        "X-API-Key", "Expect",       "Origin",           "Content-Length"};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(names); i++) {
        char text[200];

        snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n%s: 1\r\n%s: 1\r\n\r\n", names[i], names[i]);
        assert_parses(text, "!400");
    }
    assert_parses("GET / HTTP/1.1\r\nHost: a\r\nCookie: 1\r\nCookie: 2\r\n\r\n", "[GET /|host=a|cookie=1|cookie=2];");
}

static void lengths_that_could_be_read_in_two_ways(void **state)
{
#define POST_WITH(headers) "POST / HTTP/1.1\r\nHost: a\r\n" headers "\r\n\r\n0\r\n\r\n"
    (void)state;
    assert_parses(POST_WITH("Content-Length: 5\r\nTransfer-Encoding: chunked"), "!400");
    assert_parses(POST_WITH("Transfer-Encoding: chunked\r\nContent-Length: 5"), "!400");
    assert_parses(POST_WITH("Content-Length: 5\r\nContent-Length: 5"), "!400");
    assert_parses(POST_WITH("Content-Length: 5, 5"), "!400");
    assert_parses(POST_WITH("Content-Length: +5"), "!400");
    assert_parses(POST_WITH("Content-Length: -5"), "!400");
    assert_parses(POST_WITH("Content-Length: 0x5"), "!400");
    assert_parses(POST_WITH("Content-Length: 5 5"), "!400");
    assert_parses(POST_WITH("Content-Length:"), "!400");
    assert_parses(POST_WITH("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), "!400");
    assert_parses(POST_WITH("Transfer-Encoding: gzip, chunked"), "!501");
    assert_parses(POST_WITH("Transfer-Encoding: chunked, identity"), "!501");
    assert_parses(POST_WITH("Transfer-Encoding: xchunked"), "!501");
    assert_parses(POST_WITH("Transfer-Encoding:\x0b"
                            "chunked"),
                  "!400");
    assert_parses(POST_WITH("Transfer-Encoding : chunked"), "!400");
    assert_parses("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "!400");
    assert_parses(POST_WITH("Host: b"), "!400");
    assert_parses(POST_WITH("Expect: magic"), "!417");
}

static void chunks_that_could_be_read_in_two_ways(void **state)
{
    (void)state;
    assert_parses(CHUNKED "\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "-1\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "0x1\r\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED " 1\r\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "1 \r\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "1\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "1\r\nxy\r\n", CHUNKED_SEEN "x!400");
    assert_parses(CHUNKED "1\r\nx\n0\r\n\r\n", CHUNKED_SEEN "x!400");
    assert_parses(CHUNKED "1;a\nb\r\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "1;a\x1F\r\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "1;a\x7F\r\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "1\r\rx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "10000000000000001\r\nx\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "FFFFFFFFFFFFFFFF\r\nx\r\n", CHUNKED_SEEN "!413");
    assert_parses(CHUNKED "0\r\n bad: x\r\n\r\n", CHUNKED_SEEN "!400");
    assert_parses(CHUNKED "0\r\nbad\r\n\r\n", CHUNKED_SEEN "!400");
}

static void request_lines_that_are_none(void **state)
{
    (void)state;
    assert_parses("GET /\r\n\r\n", "!400");
    assert_parses("GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET x HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET * HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET / http/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET / HTTP/2.0\r\nHost: a\r\n\r\n", "!505");
    assert_parses("GET / HTTP/1.2\r\nHost: a\r\n\r\n", "!505");
    assert_parses("get / HTTP/1.1\r\nHost: a\r\n\r\n", "!501");
    assert_parses("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "!501");
    assert_parses("G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: [::1]evil.example\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.0\r\nHost: [::1\r\n\r\n", "!400");
    assert_parses("GET / HTTP/1.1\r\nHost: localhost:80:evil\r\n\r\n", "!400");
}

static void limits_are_exact(void **state)
{
    char text[600];

    (void)state;
    for (int length = 99; length <= 101; length++) {
        snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", length);
        assert_parses(text, length == 99    ? "[POST /|host=a|content-length=99]"
                            : length == 100 ? "[POST /|host=a|content-length=100]"
                                            : "[POST /|host=a|content-length=101]!413");
    }
    assert_parses(POST_WITH("Content-Length: 99999999999999999999"), "!413");
    assert_parses(CHUNKED "64\r\n", CHUNKED_SEEN);
    assert_parses(CHUNKED "65\r\n", CHUNKED_SEEN "!413");
    assert_parses(CHUNKED "1\r\nx\r\n64\r\n", CHUNKED_SEEN "x!413");
    assert_parses("GET / HTTP/1.1\r\nhost:\r\nb:\r\nc:\r\nd:\r\ne:\r\n\r\n", "[GET /|host=|b=|c=|d=|e=];");
    assert_parses("GET / HTTP/1.1\r\nhost:\r\nb:\r\nc:\r\nd:\r\ne:\r\nf:\r\n\r\n", "!431");
    snprintf(text, sizeof(text), "GET /%0300d HTTP/1.1\r\nhost:\r\n\r\n", 0);
    assert_parses(text, "!414");
    snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nhost:\r\nx: %0300d\r\n\r\n", 0);
    assert_parses(text, "!431");
    snprintf(text, sizeof(text), CHUNKED "0\r\nx: %0300d\r\n\r\n", 0);
    assert_parses(text, CHUNKED_SEEN "!431");
}

static void a_head_of_just_the_limit_fits(void **state)
{
    char text[600], seen[600];

    (void)state;
    snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nx: %0233d\r\n\r\n", 0);
    snprintf(seen, sizeof(seen), "[GET / 1.0 close|x=%0233d];", 0);
    assert_int_equal(strlen(text), 256);
    assert_parses(text, seen);
    snprintf(text, sizeof(text), "GET / HTTP/1.0\r\nx: %0234d\r\n\r\n", 0);
    assert_parses(text, "!431");
}

/* All of a body together: two chunks share what there is. The next body has as much. */
static void extensions_are_bounded(void **state)
{
    (void)state;
    for (int more = 0; more <= 1; more++) {
        mt_buf text, seen;

        mt_buf_init(&text, 100000);
        mt_buf_init(&seen, 100000);
        mt_buf_printf(&text, CHUNKED "0;%0*d\r\n\r\n", MT_LIMIT_HTTP_CHUNK_EXTENSIONS, 0);
        mt_buf_printf(&text, CHUNKED "1;%0*d\r\nx\r\n", 99, 0);
        mt_buf_printf(&text, "1;%0*d\r\nx\r\n0\r\n\r\n", MT_LIMIT_HTTP_CHUNK_EXTENSIONS - 99 + more, 0);
        parse_cut(&seen, text.data, text.len, 1, 1);
        assert_string_equal(seen.data,
                            more ? CHUNKED_SEEN ";" CHUNKED_SEEN "x!400" : CHUNKED_SEEN ";" CHUNKED_SEEN "xx;");
        mt_buf_free(&text);
        mt_buf_free(&seen);
    }
}

static void idle_means_that_nothing_was_read(void **state)
{
    mt_http_limits limits = small_limits();
    mt_http_parser p;
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 1000);
    mt_http_parser_init(&p, &limits);
    assert_true(mt_http_parser_idle(&p));
    assert_true(feed(&out, &p, "G", 1));
    assert_false(mt_http_parser_idle(&p));
    assert_true(feed(&out, &p, "ET / HTTP/1.0\r\n\r\n", 17));
    assert_true(mt_http_parser_idle(&p));
    mt_http_parser_free(&p);
    mt_buf_free(&out);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(requests_without_bodies),
    cmocka_unit_test(targets_with_a_host_agree_with_the_header),
    cmocka_unit_test(bodies_by_length),
    cmocka_unit_test(bodies_in_chunks),
    cmocka_unit_test(requests_in_a_row),
    cmocka_unit_test(lines_that_could_be_read_in_two_ways),
    cmocka_unit_test(headers_that_must_be_single),
    cmocka_unit_test(lengths_that_could_be_read_in_two_ways),
    cmocka_unit_test(chunks_that_could_be_read_in_two_ways),
    cmocka_unit_test(request_lines_that_are_none),
    cmocka_unit_test(limits_are_exact),
    cmocka_unit_test(a_head_of_just_the_limit_fits),
    cmocka_unit_test(extensions_are_bounded),
    cmocka_unit_test(idle_means_that_nothing_was_read),
};
UNIT_MAIN(tests)
