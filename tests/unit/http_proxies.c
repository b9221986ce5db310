#include "unit.h"

#include "http/http.h"
#include "http/limits.h"
#include "http/proxies.h"

/* Who it is that comes from `peer` through the proxies of a list; headers are given as name and value, up to NULL. */
static const char *client(const char *proxies, const char *peer, ...)
{
    static char name[MT_HTTP_CLIENT_SIZE];
    mt_http_header headers[4];
    mt_http_proxies trusted = {0};
    size_t count = 0;
    mt_error err;
    va_list args;

    assert_true(!proxies || mt_http_proxies_add(&trusted, proxies, &err));
    va_start(args, peer);
    while ((headers[count].name = va_arg(args, const char *)))
        headers[count++].value = va_arg(args, const char *);
    va_end(args);
    mt_http_client(proxies ? &trusted : NULL, peer, headers, count, name);
    return name;
}

#define LIST "x-forwarded-for"
#define STANDARD "forwarded"

static void an_address_is_a_client(void **state)
{
    (void)state;
    assert_string_equal(client(NULL, "192.0.2.7", NULL), "192.0.2.7");
    assert_string_equal(client(NULL, "::ffff:192.0.2.7", NULL), "192.0.2.7");
    assert_string_equal(client(NULL, "2001:db8:1:2:3:4:5:6", NULL), "2001:db8:1:2::/64");
    assert_string_equal(client(NULL, "2001:db8:1:2::9", NULL), "2001:db8:1:2::/64");
    assert_string_equal(client(NULL, "2001:db8:1:3::9", NULL), "2001:db8:1:3::/64");
    assert_string_equal(client(NULL, "unix", NULL), "unix");
}

static void headers_of_strangers_say_nothing(void **state)
{
    (void)state;
    assert_string_equal(client(NULL, "192.0.2.7", LIST, "203.0.113.1", NULL), "192.0.2.7");
    assert_string_equal(client("10.0.0.0/8", "192.0.2.7", LIST, "203.0.113.1", NULL), "192.0.2.7");
    assert_string_equal(client("10.0.0.0/8", "11.0.0.1", STANDARD, "for=203.0.113.1", NULL), "11.0.0.1");
    assert_string_equal(client("10.0.0.0/8", "unix", LIST, "203.0.113.1", NULL), "unix");
    assert_string_equal(client("10.0.0.0/9", "10.128.0.1", LIST, "203.0.113.1", NULL), "10.128.0.1");
    assert_string_equal(client("172.16.0.0/12", "172.32.0.1", LIST, "203.0.113.1", NULL), "172.32.0.1");
}

static void a_proxy_that_is_trusted_names_its_client(void **state)
{
    (void)state;
    assert_string_equal(client("10.0.0.1", "10.0.0.1", LIST, "203.0.113.1", NULL), "203.0.113.1");
    assert_string_equal(client("10.0.0.1", "10.0.0.1", NULL), "10.0.0.1");
    assert_string_equal(client("unix", "unix", LIST, "203.0.113.1:4711", NULL), "203.0.113.1");
    assert_string_equal(client("::1,10.0.0.0/9", "10.127.9.9", LIST, "[2001:db8::5]:80", NULL), "2001:db8::/64");
    assert_string_equal(client("fd00::/8", "fd12::1", LIST, "2001:db8::5", NULL), "2001:db8::/64");
    assert_string_equal(client("10.0.0.1", "::ffff:10.0.0.1", STANDARD, "for=203.0.113.1;proto=https", NULL),
                        "203.0.113.1");
    assert_string_equal(
        client("10.0.0.1", "10.0.0.1", STANDARD, "proto=https; By=\"a,;b\\\"\"; For=\"[2001:db8::5]:80\"", NULL),
        "2001:db8::/64");
    assert_string_equal(client("172.16.0.0/12", "172.31.0.1", STANDARD, "for=\"203.0.113.\\1\"", NULL), "203.0.113.1");
    assert_string_equal(client("::/0", "10.0.0.1", LIST, "203.0.113.1", NULL), "203.0.113.1");
    assert_string_equal(
        client("10.0.0.1", "10.0.0.1", STANDARD, "for=203.0.113.1;far=198.51.100.1;forth=198.51.100.2", NULL),
        "203.0.113.1");
}

/* Only what the nearest proxies wrote is true. */
static void what_a_client_writes_itself_is_passed_over(void **state)
{
    const char *const proxies = "10.0.0.0/8";

    (void)state;
    assert_string_equal(client(proxies, "10.0.0.1", LIST, "198.51.100.1, 203.0.113.1", NULL), "203.0.113.1");
    assert_string_equal(client(proxies, "10.0.0.1", LIST, "198.51.100.1", LIST, "203.0.113.1,,10.0.0.2 ", NULL),
                        "203.0.113.1");
    assert_string_equal(client(proxies, "10.0.0.1", STANDARD, "for=198.51.100.1, for=203.0.113.1, for=10.0.0.2", NULL),
                        "203.0.113.1");
    assert_string_equal(client(proxies, "10.0.0.1", LIST, "10.0.0.3, 10.0.0.2", NULL), "10.0.0.3");
    /* nor does one that cannot be read hide behind what stands before it */
    assert_string_equal(client(proxies, "10.0.0.1", LIST, "198.51.100.1, unknown, 10.0.0.2", NULL), "10.0.0.2");
    assert_string_equal(client(proxies, "10.0.0.1", STANDARD, "for=198.51.100.1, for=_hidden", NULL), "10.0.0.1");
    assert_string_equal(client(proxies, "10.0.0.1", STANDARD, "for=198.51.100.1, proto=http", NULL), "10.0.0.1");
    assert_string_equal(client(proxies, "10.0.0.1", LIST, "", NULL), "10.0.0.1");
}

/* A proxy writes one of them, and may pass on the other as it came. */
static void headers_that_contradict_each_other_are_not_believed(void **state)
{
    (void)state;
    assert_string_equal(client("10.0.0.1", "10.0.0.1", LIST, "203.0.113.1", STANDARD, "for=198.51.100.1", NULL),
                        "10.0.0.1");
    assert_string_equal(client("10.0.0.1", "10.0.0.1", LIST, "203.0.113.1", STANDARD, "for=203.0.113.1", NULL),
                        "203.0.113.1");
}

static void what_is_no_network_is_an_error(void **state)
{
    static const struct {
        const char *list, *sentence;
    } wrong[] = {
        {"proxy.example", "\"proxy.example\" is not the address of a proxy; give one such as 10.0.0.7, 10.0.0.0/8, "
                          "fd00::/8 or unix"},
        {"", "\"\" is not the address of a proxy; give one such as 10.0.0.7, 10.0.0.0/8, fd00::/8 or unix"},
        {"::1,10.0.0.0/33", "\"10.0.0.0/33\" is not a network; give at most 32 bits behind the slash"},
        {"::1/129", "\"::1/129\" is not a network; give at most 128 bits behind the slash"},
        {"10.0.0.0/", "\"10.0.0.0/\" is not a network; give at most 32 bits behind the slash"},
        {"10.0.0.0/-1", "\"10.0.0.0/-1\" is not a network; give at most 32 bits behind the slash"},
        {"10.0.0.0/8x", "\"10.0.0.0/8x\" is not a network; give at most 32 bits behind the slash"},
    };
    mt_http_proxies proxies = {0};
    mt_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_false(mt_http_proxies_add(&proxies, wrong[i].list, &err));
        assert_string_equal(err.text, wrong[i].sentence);
    }
    proxies.count = 0;
    for (size_t i = 0; i < MT_LIMIT_HTTP_PROXIES; i++)
        assert_true(mt_http_proxies_add(&proxies, "10.0.0.1", &err));
    assert_false(mt_http_proxies_add(&proxies, "10.0.0.1", &err));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_address_is_a_client),
    cmocka_unit_test(headers_of_strangers_say_nothing),
    cmocka_unit_test(a_proxy_that_is_trusted_names_its_client),
    cmocka_unit_test(what_a_client_writes_itself_is_passed_over),
    cmocka_unit_test(headers_that_contradict_each_other_are_not_believed),
    cmocka_unit_test(what_is_no_network_is_an_error),
};
UNIT_MAIN(tests)
