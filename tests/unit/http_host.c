/* Hosts as headers have them. */
#include "unit.h"

#include "http/host.h"

static void hosts_are_taken_apart(void **state)
{
    static const struct {
        const char *text, *name;
        bool address;
        unsigned port;
    } rows[] = {
        {"localhost", "localhost", false, 0},
        {"LocalHost.:80", "LocalHost", false, 80},
        {"a-b_c.example:65535", "a-b_c.example", false, 65535},
        {"xn--bcher-kva.example", "xn--bcher-kva.example", false, 0},
        {"%2Ftmp%2Fs", "%2Ftmp%2Fs", false, 0},
        {"localhost:", "localhost", false, 0},
        {"localhost:0080", "localhost", false, 80},
        {"127.0.0.1:8000", "127.0.0.1", true, 8000},
        {"127.1", "127.1", false, 0},
        {"1.2.3.4.", "1.2.3.4", false, 0},
        {"[::1]", "::1", true, 0},
        {"[FE80::1%eth0]:1", "FE80::1", true, 1},
        {"[::ffff:1.2.3.4]", "::ffff:1.2.3.4", true, 0},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_http_host host;

        if (!mt_http_host_read(&host, rows[i].text))
            fail_msg("%s is refused", rows[i].text);
        assert_string_equal(host.name, rows[i].name);
        assert_int_equal(host.address, rows[i].address);
        assert_int_equal(host.port, rows[i].port);
    }
}

static void what_no_browser_could_send_is_no_host(void **state)
{
    static const char *const wrong[] = {"",
                                        ":80",
                                        "[::1]evil.example",
                                        "[::1",
                                        "[]",
                                        "[::1]]",
                                        "[[::1]]",
                                        "[::1]:80x",
                                        "[evil]",
                                        "[1.2.3.4]",
                                        "[::1%]",
                                        "[::1%a b]",
                                        "[v1.x]",
                                        "::1",
                                        "[::1]:1:2",
                                        "localhost:80:evil",
                                        "a:80 ",
                                        "a:-1",
                                        "a:+1",
                                        "a:65536",
                                        "a:99999999999999999999",
                                        "a:0x50",
                                        "a b",
                                        "a,b",
                                        "a@b",
                                        "a/b",
                                        "a\\b",
                                        "a?b",
                                        "a#b",
                                        "<a>",
                                        "b\xc3\xbc.example",
                                        "a\x7f",
                                        "a]",
                                        "a[",
                                        "\"a\"",
                                        "a|b",
                                        "a^b",
                                        "`a`",
                                        "{a}"};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(wrong); i++) {
        mt_http_host host = {.name = "x", .port = 1};

        if (mt_http_host_read(&host, wrong[i]))
            fail_msg("%s is taken", wrong[i]);
        assert_true(host.name[0] == '\0' && host.port == 0 && !host.address);
    }
}

static bool same(const char *a, const char *b, unsigned usual)
{
    mt_http_host one, other;

    assert_true(mt_http_host_read(&one, a) && mt_http_host_read(&other, b));
    assert_int_equal(mt_http_host_equal(&one, &other, usual), mt_http_host_equal(&other, &one, usual));
    return mt_http_host_equal(&one, &other, usual);
}

static void a_port_that_is_not_given_is_the_usual_one(void **state)
{
    (void)state;
    assert_true(same("a", "A.", 80) && same("a:80", "a", 80) && same("[::1]:443", "[::1]", 443));
    assert_false(same("a:80", "a", 443) || same("a", "b", 80) || same("a:1", "a:2", 80));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(hosts_are_taken_apart),
    cmocka_unit_test(what_no_browser_could_send_is_no_host),
    cmocka_unit_test(a_port_that_is_not_given_is_the_usual_one),
};
UNIT_MAIN(tests)
