/* Which calls a server takes that needs no key. */
#include "unit.h"

#include "server/calls/guard.h"

static bool admits(const mt_guard *guard, const char *host, const char *origin)
{
    const mt_http_header headers[] = {{host ? "host" : "accept", host ? host : "x"},
                                      {origin ? "origin" : "accept", origin ? origin : "x"}};
    const mt_http_request request = {.headers = headers, .header_count = 2};
    mt_http_refusal refusal = {.status = 0};
    const bool admitted = mt_guard_admit(guard, &request, &refusal);

    if (!admitted) {
        assert_int_equal(refusal.status, 403);
        assert_non_null(strstr(refusal.text, strncmp(refusal.text, "the host", 8) == 0 ? "--allowed-host" : "--cors"));
    }
    return admitted;
}

static mt_guard guard_of(const mt_options *opt, bool keys)
{
    mt_guard guard;
    mt_error err = {0};

    assert_true(mt_guard_init(&guard, opt, keys, &err));
    return guard;
}

static void addresses_and_names_of_this_machine_are_ours(void **state)
{
    static const char *const ours[] = {
        "127.0.0.1", "127.0.0.1:8000", "10.1.2.3:80",     "[::1]:8000",    "[fe80::1%eth0]",
        "localhost", "LocalHost:1",    "localhost.:8000", "app.localhost", ""};
    static const char *const others[] = {"evil.example",
                                         "evil.example:8000",
                                         "127.0.0.1.evil.example",
                                         "localhost.evil.x",
                                         "xlocalhost",
                                         "127.1",
                                         "[evil]:1",
                                         "[::1]evil.example",
                                         "[::1",
                                         "localhost:80:evil",
                                         ".",
                                         "0x7f.1"};
    const mt_options opt = {.host = NULL};
    const mt_guard guard = guard_of(&opt, false);
    char name[MT_GUARD_NAME + 16], longest[600];

    (void)state;
    for (size_t i = 0; i < MT_COUNT(ours); i++)
        if (!admits(&guard, ours[i], NULL))
            fail_msg("%s is refused", ours[i]);
    for (size_t i = 0; i < MT_COUNT(others); i++)
        if (admits(&guard, others[i], NULL))
            fail_msg("%s is admitted", others[i]);
    assert_true(admits(&guard, NULL, NULL)); /* HTTP/1.0 */
    snprintf(name, sizeof(name), "%s:8000", guard.name);
    assert_true(admits(&guard, name, NULL));
    snprintf(name, sizeof(name), "%s.local", guard.name);
    assert_true(admits(&guard, name, NULL));
    memset(longest, 'a', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    assert_false(admits(&guard, longest, NULL));
}

static void names_that_are_given_are_ours_too(void **state)
{
    const mt_options opt = {.host = "motet.lan", .allowed_hosts = {.at = {"llm.example,b", "*.corp"}, .count = 2}};
    const mt_options all = {.allowed_hosts = {.at = {"*"}, .count = 1}};
    mt_guard guard = guard_of(&opt, false);

    (void)state;
    assert_true(admits(&guard, "motet.lan", NULL) && admits(&guard, "LLM.example:80", NULL) &&
                admits(&guard, "b", NULL) && admits(&guard, "x.y.corp", NULL));
    assert_false(admits(&guard, "corp", NULL) || admits(&guard, "xcorp", NULL) || admits(&guard, "llm", NULL));
    guard = guard_of(&all, false);
    assert_true(admits(&guard, "evil.example", NULL));
    assert_false(admits(&guard, "evil.example", "https://other.example"));
}

static void the_full_name_is_ours_once_it_is_known(void **state)
{
    const mt_options opt = {.host = "0.0.0.0"};
    mt_guard guard = guard_of(&opt, false);

    (void)state;
    snprintf(guard.full, sizeof(guard.full), "box.corp.example");
    assert_false(admits(&guard, "box.corp.example", NULL));
    atomic_store(&guard.full_is_known, true);
    assert_true(admits(&guard, "box.corp.example:8000", NULL));
}

static void pages_of_others_are_refused_unless_they_are_named(void **state)
{
    const mt_options none = {.host = NULL}, some = {.origins = {.at = {"https://app.example"}, .count = 1}},
                     all = {.origins = {.at = {"*"}, .count = 1}};
    mt_guard guard = guard_of(&none, false);

    (void)state;
    assert_true(admits(&guard, "127.0.0.1:8000", "http://127.0.0.1:8000"));
    assert_true(admits(&guard, "127.0.0.1:8000", "http://localhost:8000"));
    assert_true(admits(&guard, "localhost", "https://[::1]:443"));
    assert_true(admits(&guard, "127.0.0.1:80", "http://localhost"));
    assert_false(admits(&guard, "127.0.0.1:443", "http://localhost"));
    assert_true(admits(&guard, "10.0.0.1", "https://10.0.0.1")); /* behind what speaks TLS for us */
    assert_false(admits(&guard, "127.0.0.1:8000", "http://localhost:3000"));
    assert_false(admits(&guard, "127.0.0.1:8000", "https://app.example"));
    assert_false(admits(&guard, "127.0.0.1:8000", "null"));
    assert_false(admits(&guard, "127.0.0.1:8000", "ftp://127.0.0.1:8000"));
    assert_false(admits(&guard, NULL, "http://127.0.0.1"));
    assert_false(admits(&guard, "127.0.0.1:8000", "http://[::1]evil.example:8000"));
    assert_false(admits(&guard, "127.0.0.1:8000", "http://localhost:8000:evil"));
    guard = guard_of(&some, false);
    assert_true(admits(&guard, "127.0.0.1:8000", "https://app.example"));
    assert_false(admits(&guard, "127.0.0.1:8000", "https://app.example.evil") ||
                 admits(&guard, "evil.example", "https://app.example"));
    guard = guard_of(&all, false);
    assert_true(admits(&guard, "127.0.0.1:8000", "null") && admits(&guard, "evil.example", "https://evil.example"));
}

static void where_something_else_protects_names_do_not_matter(void **state)
{
    const mt_options opt = {.host = NULL}, tls = {.tls_cert = "x"}, file = {.host = "unix:/tmp/x"};
    mt_guard guard = guard_of(&opt, true);

    (void)state;
    assert_true(admits(&guard, "evil.example", "https://other.example"));
    guard = guard_of(&tls, false);
    assert_true(admits(&guard, "llm.example", NULL));
    assert_false(admits(&guard, "llm.example", "https://other.example"));
    guard = guard_of(&file, false);
    assert_true(admits(&guard, "motet", NULL));
    assert_false(admits(&guard, "motet", "https://other.example"));
}

static void what_is_no_name_is_said_at_once(void **state)
{
    static const char *const wrong[] = {"", "http://llm.example", "llm.example:80", "a b"};
    mt_guard guard;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(wrong); i++) {
        const mt_options opt = {.allowed_hosts = {.at = {wrong[i]}, .count = 1}};
        mt_error err = {0};

        assert_false(mt_guard_init(&guard, &opt, false, &err));
        assert_non_null(strstr(err.text, "--allowed-host"));
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(addresses_and_names_of_this_machine_are_ours),
    cmocka_unit_test(names_that_are_given_are_ours_too),
    cmocka_unit_test(the_full_name_is_ours_once_it_is_known),
    cmocka_unit_test(pages_of_others_are_refused_unless_they_are_named),
    cmocka_unit_test(where_something_else_protects_names_do_not_matter),
    cmocka_unit_test(what_is_no_name_is_said_at_once),
};
UNIT_MAIN(tests)
