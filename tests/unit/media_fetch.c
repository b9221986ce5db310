#include "media_server.h"

#include "media/fetch.h"
#include "media/limits.h"
#include "media/source.h"

static media_server server, other;

static int start(void **state)
{
    (void)state;
    server_start(&other, "127.0.0.2", 0);
    server_start(&server, "127.0.0.1", other.port);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    server_stop(&server);
    server_stop(&other);
    return 0;
}

/* Stands in for what is public: one address of this machine. */
static bool is_first(const struct sockaddr *address)
{
    struct sockaddr_in v4;

    memcpy(&v4, address, sizeof(v4));
    return address->sa_family == AF_INET && v4.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

static const char *url_of(const char *path)
{
    static char url[1024];

    snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", server.port, path);
    return url;
}

static void expect_body(const char *path, const char *body)
{
    mt_fetch_rules rules = {.ms = 600000, .allowed = is_first};
    mt_error err;
    mt_buf bytes;

    mt_buf_init(&bytes, 100);
    if (!mt_fetch(&bytes, url_of(path), &rules, &err))
        fail_msg("%s: %s", path, err.text);
    assert_string_equal(bytes.data, body);
    mt_buf_free(&bytes);
}

static void expect_refusal(const char *path, const char *sentence)
{
    mt_fetch_rules rules = {.ms = 600000, .allowed = is_first};
    mt_error err;
    mt_buf bytes;
    char wanted[1200];

    mt_buf_init(&bytes, 100);
    assert_false(mt_fetch(&bytes, url_of(path), &rules, &err));
    assert_int_equal(err.code, MT_E_INVALID);
    snprintf(wanted, sizeof(wanted), "\"%s\" %s", url_of(path), sentence);
    assert_string_equal(err.text, wanted);
    mt_buf_free(&bytes);
}

static void pictures_and_videos_are_fetched(void **state)
{
    (void)state;
    expect_body("/ok", "pixels");
    expect_body("/video", "frames");
}

static void redirects_are_followed_up_to_a_limit(void **state)
{
    (void)state;
    expect_body("/hops/5", "pixels");
    expect_refusal("/hops/6", "is moved too often: name where it leads to");
}

static void what_is_no_media_is_refused(void **state)
{
    (void)state;
    expect_refusal("/text", "is of type \"text/html\": name a picture (image/...) or a video (video/...)");
    expect_refusal("/untyped", "is of type \"\": name a picture (image/...) or a video (video/...)");
    expect_refusal("/missing", "answered with status 404: check that everyone may read it");
    expect_refusal("/empty", "is empty: name a file that is not");
    expect_refusal("/short",
                   "could not be fetched (Transferred a partial file): check it, or send the bytes as a data URL");
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    expect_refusal("/large", "has more than the 100 bytes allowed: name a smaller file");
    expect_refusal("/flood", "has more than the 100 bytes allowed: name a smaller file");
}

static void redirects_may_not_leave_the_web(void **state)
{
    (void)state;
    expect_refusal("/to/file:///etc/passwd", "does not lead to http or https: name one that begins with https://");
    expect_refusal("/to/ftp://127.0.0.1/x", "does not lead to http or https: name one that begins with https://");
    expect_refusal("/to/gopher://127.0.0.1/x", "does not lead to http or https: name one that begins with https://");
    expect_refusal("/to/http://u:p@127.0.0.1/", "has a user or password in it: leave it out");
    expect_refusal("/to/http://127.0.0.1:22/",
                   "names a port that is some other service's: name 80, 443 or one from 1024 on");
}

static void redirects_may_not_lead_to_closed_addresses(void **state)
{
    (void)state;
    atomic_store(&other.visitors, 0);
    expect_refusal("/elsewhere",
                   "does not lead to a public address: name another, or start with --media-allow-private");
    assert_int_equal(atomic_load(&other.visitors), 0);
}

static void waiting_has_an_end(void **state)
{
    mt_fetch_rules rules = {.ms = 100};
    mt_error err;
    mt_buf bytes;

    (void)state;
    mt_buf_init(&bytes, 100);
    assert_false(mt_fetch(&bytes, url_of("/slow"), &rules, &err));
    assert_non_null(strstr(err.text, "takes too long: name a faster server, or send the bytes as a data URL"));
    mt_buf_free(&bytes);
}

static void waiting_can_be_cancelled(void **state)
{
    atomic_bool cancel = true;
    const mt_media_watch watch = {.stop = &cancel};
    mt_fetch_rules rules = {.ms = 600000, .watch = &watch};
    mt_error err;
    mt_buf bytes;

    (void)state;
    mt_buf_init(&bytes, 100);
    assert_false(mt_fetch(&bytes, url_of("/slow"), &rules, &err));
    assert_non_null(strstr(err.text, "was not fetched: its request was cancelled"));
    mt_buf_free(&bytes);
}

/* A proxy of the environment would be asked in our name. */
static void the_environment_names_no_proxy(void **state)
{
    char proxy[64];

    (void)state;
    snprintf(proxy, sizeof(proxy), "http://127.0.0.2:%d", other.port);
    atomic_store(&other.visitors, 0);
    setenv("http_proxy", proxy, 1);
    setenv("all_proxy", proxy, 1);
    expect_body("/ok", "pixels");
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    assert_int_equal(atomic_load(&other.visitors), 0);
}

/* %d is the port of a server that nobody may reach. */
static const char *const closed[] = {
    "http://127.0.0.1:%d/ok",
    "HTTP://LOCALHOST:%d/ok",
    "http://localhost:%d/ok",
    "http://localhost.:%d/ok",
    "http://127.1:%d/ok",
    "http://127.0.1:%d/ok",
    "http://127.0.0.1.:%d/ok",
    "http://2130706433:%d/ok",
    "http://0x7f000001:%d/ok",
    "http://0x7f.0x0.0x0.0x1:%d/ok",
    "http://017700000001:%d/ok",
    "http://0177.0.0.1:%d/ok",
    "http://0177.0.0.01:%d/ok",
    "http://127.%%30.0.1:%d/ok",
    "http://%%31%%32%%37.0.0.1:%d/ok",
    "http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1:%d/ok", /* digits of full width */
    "http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1:%d/ok", /* in circles */
    "http://0.0.0.0:%d/ok",
    "http://0:%d/ok",
    "http://[::1]:%d/ok",
    "http://[::]:%d/ok",
    "http://[0:0:0:0:0:0:0:1]:%d/ok",
    "http://[::ffff:127.0.0.1]:%d/ok",
    "http://[::ffff:7f00:1]:%d/ok",
    "http://[0:0:0:0:0:ffff:7f00:0001]:%d/ok",
    "http://[::127.0.0.1]:%d/ok",
    "http://[64:ff9b::7f00:1]:%d/ok",
    "http://[64:ff9b:1::7f00:1]:%d/ok",
    "http://[2002:7f00:1::1]:%d/ok",
    "http://[fe80::1]:%d/ok",
    "http://[fe80::1%%25lo]:%d/ok",
    "http://[fd00::1]:%d/ok",
    "http://[ff02::1]:%d/ok",
    "http://[fec0::1]:%d/ok",
    "http://10.0.0.1:%d/ok",
    "http://172.16.0.1:%d/ok",
    "http://192.168.1.1:%d/ok",
    "http://100.64.0.1:%d/ok",
    "http://100.100.100.200:%d/latest/meta-data",
    "http://169.254.169.254:%d/latest/meta-data/",
    "http://[fd00:ec2::254]:%d/latest/meta-data/",
    "http://192.0.0.192:%d/opc/v2/instance/",
    "http://198.18.0.1:%d/ok",
    "http://224.0.0.1:%d/ok",
    "http://255.255.255.255:%d/ok",
    "https://127.0.0.1:%d/ok",
    "http://user@127.0.0.1:%d/ok",
    "http://example.com@127.0.0.1:%d/ok",
    "http://example.com:80@127.0.0.1:%d/ok",
    "http://127.0.0.1:%d#@example.com/ok",
    "http://127.0.0.1:%d\\@example.com/ok",
    "http://127.0.0.1:%d/ok\r\nHost: example.com",
    " http://127.0.0.1:%d/ok",
    "http:127.0.0.1:%d/ok",
    "http:/127.0.0.1:%d/ok",
    "http:///127.0.0.1:%d/ok",
    "http:////127.0.0.1:%d/ok",
    "//127.0.0.1:%d/ok",
    "127.0.0.1:%d/ok",
    "gopher://127.0.0.1:%d/_GET",
    "dict://127.0.0.1:%d/x",
    "ftp://127.0.0.1:%d/ok",
    "ws://127.0.0.1:%d/ok",
    "jar:http://127.0.0.1:%d/ok",
    "url:http://127.0.0.1:%d/ok",
};

static void nothing_is_fetched_from_closed_addresses(void **state)
{
    mt_media_limits limits = mt_media_limits_default();
    char url[512];

    (void)state;
    atomic_store(&server.visitors, 0);
    for (size_t i = 0; i < MT_COUNT(closed); i++) {
        mt_error err = {0};
        mt_buf bytes;

        snprintf(url, sizeof(url), closed[i], server.port);
        if (mt_media_load(&bytes, url, strlen(url), &limits, NULL, &err))
            fail_msg("%s was fetched", url);
        if (err.code != MT_E_INVALID || strlen(err.text) < 20)
            fail_msg("%s: %s", url, err.text);
        if (atomic_load(&server.visitors) != 0)
            fail_msg("%s was connected to", url);
    }
}

static void an_operator_may_open_them(void **state)
{
    mt_media_limits limits = mt_media_limits_default();
    const char *url = url_of("/ok");
    mt_error err;
    mt_buf bytes;

    (void)state;
    limits.allow_private = true;
    assert_true(mt_media_load(&bytes, url, strlen(url), &limits, NULL, &err));
    assert_string_equal(bytes.data, "pixels");
    mt_buf_free(&bytes);
}

static void long_urls_are_refused(void **state)
{
    static char url[MT_LIMIT_MEDIA_URL + 100];
    mt_media_limits limits = mt_media_limits_default();
    mt_error err;
    mt_buf bytes;

    (void)state;
    memset(url, 'x', sizeof(url));
    memcpy(url, "http://", 7);
    assert_false(mt_media_load(&bytes, url, sizeof(url), &limits, NULL, &err));
    assert_non_null(strstr(err.text, "is too long: name a shorter URL"));
    assert_false(mt_media_load(&bytes, "http://a\0b", 10, &limits, NULL, &err));
    assert_string_equal(err.text, "the URL has a zero byte in it: leave it out");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(pictures_and_videos_are_fetched, start, stop),
    cmocka_unit_test_setup_teardown(redirects_are_followed_up_to_a_limit, start, stop),
    cmocka_unit_test_setup_teardown(what_is_no_media_is_refused, start, stop),
    cmocka_unit_test_setup_teardown(what_is_too_large_is_refused, start, stop),
    cmocka_unit_test_setup_teardown(redirects_may_not_leave_the_web, start, stop),
    cmocka_unit_test_setup_teardown(redirects_may_not_lead_to_closed_addresses, start, stop),
    cmocka_unit_test_setup_teardown(waiting_has_an_end, start, stop),
    cmocka_unit_test_setup_teardown(waiting_can_be_cancelled, start, stop),
    cmocka_unit_test_setup_teardown(the_environment_names_no_proxy, start, stop),
    cmocka_unit_test_setup_teardown(nothing_is_fetched_from_closed_addresses, start, stop),
    cmocka_unit_test_setup_teardown(an_operator_may_open_them, start, stop),
    cmocka_unit_test(long_urls_are_refused),
};
UNIT_MAIN_IF(mt_fetch_present, "libcurl", tests)
