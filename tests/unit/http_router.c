#include "unit.h"

#include "base/alloc.h"
#include "http/limits.h"
#include "http/router.h"

static const mt_http_route routes[] = {
    {.method = MT_HTTP_GET, .pattern = "/"},
    {.method = MT_HTTP_GET, .pattern = "/v1/models"},
    {.method = MT_HTTP_POST, .pattern = "/v1/models/load"},
    {.method = MT_HTTP_GET, .pattern = "/v1/models/{id*}"},
    {.method = MT_HTTP_GET, .pattern = "/v1/files/{id}"},
    {.method = MT_HTTP_DELETE, .pattern = "/v1/files/{id}"},
    {.method = MT_HTTP_DELETE, .pattern = "/v1/cache"},
    {.method = MT_HTTP_GET, .pattern = "/a/{x}/b/{y}"},
    {.method = MT_HTTP_POST, .pattern = "/slash/"},
    {.method = MT_HTTP_POST, .pattern = "/g/{id*}:read"},
    {.method = MT_HTTP_POST, .pattern = "/g/{id*}:readAll"},
    {.method = MT_HTTP_POST, .pattern = "/one/{id}:do/{x}"},
};

/* "pattern(param,param)" of the route found, or the methods that would be, or "none". */
static const char *find(mt_http_method method, const char *path)
{
    static char text[512];
    mt_http_match match;
    size_t len;

    mt_http_router_match(routes, MT_COUNT(routes), method, path, strlen(path), &match);
    if (match.route) {
        len = (size_t)snprintf(text, sizeof(text), "%s(", match.route->pattern);
        for (size_t i = 0; i < match.param_count; i++)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "," : "", match.params[i]);
        snprintf(text + len, sizeof(text) - len, ")");
    } else if (match.allowed) {
        assert_int_equal(match.param_count, 0);
        mt_http_allow_format(match.allowed, text, sizeof(text));
    } else {
        snprintf(text, sizeof(text), "none");
    }
    mt_free(match.text);
    return text;
}

static void literal_paths(void **state)
{
    (void)state;
    assert_string_equal(find(MT_HTTP_GET, "/"), "/()");
    assert_string_equal(find(MT_HTTP_GET, "/v1/models"), "/v1/models()");
    assert_string_equal(find(MT_HTTP_GET, "/v1/%6dodels"), "/v1/models()");
    assert_string_equal(find(MT_HTTP_GET, "/v1/models/"), "none");
    assert_string_equal(find(MT_HTTP_GET, "/v1//models"), "none");
    assert_string_equal(find(MT_HTTP_GET, "//"), "none");
    assert_string_equal(find(MT_HTTP_GET, "/V1/models"), "none");
    assert_string_equal(find(MT_HTTP_GET, "/v1"), "none");
    assert_string_equal(find(MT_HTTP_GET, "/v1%2Fmodels"), "none");
    assert_string_equal(find(MT_HTTP_POST, "/slash/"), "/slash/()");
    assert_string_equal(find(MT_HTTP_POST, "/slash"), "none");
}

static void parameters(void **state)
{
    (void)state;
    assert_string_equal(find(MT_HTTP_GET, "/v1/files/a%20b"), "/v1/files/{id}(a b)");
    assert_string_equal(find(MT_HTTP_GET, "/v1/files/a%2Fb"), "/v1/files/{id}(a/b)");
    assert_string_equal(find(MT_HTTP_GET, "/v1/files/"), "none");
    assert_string_equal(find(MT_HTTP_GET, "/v1/files/a/b"), "none");
    assert_string_equal(find(MT_HTTP_GET, "/a/1/b/2"), "/a/{x}/b/{y}(1,2)");
    assert_string_equal(find(MT_HTTP_GET, "/v1/models/org/name"), "/v1/models/{id*}(org/name)");
    assert_string_equal(find(MT_HTTP_GET, "/v1/models/org%2Fname"), "/v1/models/{id*}(org/name)");
    assert_string_equal(find(MT_HTTP_GET, "/v1/models/load"), "/v1/models/{id*}(load)");
    assert_string_equal(find(MT_HTTP_POST, "/v1/models/load"), "/v1/models/load()");
}

/* How a parameter ends may be a part of the pattern. */
static void tails(void **state)
{
    (void)state;
    assert_string_equal(find(MT_HTTP_POST, "/g/a:read"), "/g/{id*}:read(a)");
    assert_string_equal(find(MT_HTTP_POST, "/g/a/b:c:read"), "/g/{id*}:read(a/b:c)");
    assert_string_equal(find(MT_HTTP_POST, "/g/a%2Fb%3Aread"), "/g/{id*}:read(a/b)");
    assert_string_equal(find(MT_HTTP_POST, "/g/a:readAll"), "/g/{id*}:readAll(a)");
    assert_string_equal(find(MT_HTTP_POST, "/g/:read"), "none");
    assert_string_equal(find(MT_HTTP_POST, "/g/read"), "none");
    assert_string_equal(find(MT_HTTP_POST, "/g/a:rea"), "none");
    assert_string_equal(find(MT_HTTP_POST, "/g/a:Read"), "none");
    assert_string_equal(find(MT_HTTP_POST, "/g/"), "none");
    assert_string_equal(find(MT_HTTP_GET, "/g/a:read"), "POST, OPTIONS");
    assert_string_equal(find(MT_HTTP_POST, "/one/a:do/b"), "/one/{id}:do/{x}(a,b)");
    assert_string_equal(find(MT_HTTP_POST, "/one/a/b"), "none");
    /* a verb that is not known is not posted to what has the name */
    assert_string_equal(find(MT_HTTP_POST, "/v1/models/a:rea"), "none");
    assert_string_equal(find(MT_HTTP_POST, "/v1/models/a:b/c"), "GET, HEAD, OPTIONS");
    assert_string_equal(find(MT_HTTP_PUT, "/v1/models/a:rea"), "GET, HEAD, OPTIONS");
    assert_string_equal(find(MT_HTTP_GET, "/v1/models/a:rea"), "/v1/models/{id*}(a:rea)");
}

static void methods(void **state)
{
    (void)state;
    assert_string_equal(find(MT_HTTP_HEAD, "/v1/models"), "/v1/models()");
    assert_string_equal(find(MT_HTTP_POST, "/v1/models"), "GET, HEAD, OPTIONS");
    assert_string_equal(find(MT_HTTP_PUT, "/v1/files/x"), "GET, HEAD, DELETE, OPTIONS");
    assert_string_equal(find(MT_HTTP_OPTIONS, "/v1/models/load"), "GET, HEAD, POST, OPTIONS");
    assert_string_equal(find(MT_HTTP_HEAD, "/slash/"), "POST, OPTIONS");
}

static void the_names_of_all_methods_fit(void **state)
{
    char text[MT_HTTP_ALLOW_SIZE];

    (void)state;
    mt_http_allow_format(~0u, text, sizeof(text));
    assert_string_equal(text, "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
}

static void paths_are_decoded_or_refused(void **state)
{
    static const struct {
        const char *in, *out; /* NULL: refused */
    } rows[] = {
        {"/", "/"},
        {"/a%20b+c", "/a b+c"},
        {"/%E2%82%AC", "/\xe2\x82\xac"},
        {"/a%2fb", "/a/b"},
        {"/...", "/..."},
        {"/.a/b.", "/.a/b."},
        {"/%", NULL},
        {"/%4", NULL},
        {"/%4g", NULL},
        {"/%00", NULL},
        {"/%0a", NULL},
        {"/%7f", NULL},
        {"/..", NULL},
        {"/../a", NULL},
        {"/a/./b", NULL},
        {"/a/%2e%2E/b", NULL},
        {"/a%2f..", NULL},
    };
    char out[100];

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_int_equal(mt_http_path_decode(rows[i].in, strlen(rows[i].in), out), rows[i].out != NULL);
        if (rows[i].out)
            assert_string_equal(out, rows[i].out);
    }
}

static const char *nearest(const char *path)
{
    const mt_http_route *found = mt_http_router_nearest(routes, MT_COUNT(routes), path);

    return found ? found->pattern : "none";
}

static void the_nearest_path(void **state)
{
    char path[5 * MT_LIMIT_HTTP_NEAREST] = "/v1/modles/";

    (void)state;
    assert_string_equal(nearest("/v1/model"), "/v1/models");
    assert_string_equal(nearest("/V1/models"), "/v1/models");
    assert_string_equal(nearest("/v1/modles/some/long/name"), "/v1/models/{id*}");
    assert_string_equal(nearest("/v1/file/a-long-id-of-a-file"), "/v1/files/{id}");
    assert_string_equal(nearest("/v1/modles/"), "/v1/models");
    assert_string_equal(nearest("/models"), "/v1/models"); /* without its first segment */
    assert_string_equal(nearest("/slahs"), "/slash/");
    assert_string_equal(nearest("/g/a/b:readall"), "/g/{id*}:readAll");
    assert_string_equal(nearest("/g/a/b:raed"), "/g/{id*}:read");
    assert_string_equal(nearest("/g/a:write"), "none");
    assert_string_equal(nearest("/v1/modles/a:latest"), "/v1/models/{id*}");
    assert_string_equal(nearest("/one/a:dow/b"), "/one/{id}:do/{x}");
    assert_string_equal(nearest("/nowhere/at/all"), "none");
    assert_string_equal(nearest("/x"), "none");
    assert_string_equal(nearest(""), "none");
    memset(path + strlen(path), 'x', MT_LIMIT_HTTP_NEAREST - strlen(path));
    assert_string_equal(nearest(path), "/v1/models/{id*}");
    memset(path + strlen(path), 'x', 2 * MT_LIMIT_HTTP_NEAREST); /* longer than what is compared: a part is */
    assert_string_equal(nearest(path), "/v1/models/{id*}");
    memcpy(path, "/g/a/", 5);
    memcpy(path + strlen(path), ":raed", 6);
    assert_string_equal(nearest(path), "/g/{id*}:read");
    memset(strchr(path, ':') + 1, 'y', MT_LIMIT_HTTP_NEAREST - 1); /* such a verb is compared with nothing */
    assert_string_equal(nearest(path), "none");
    assert_string_equal(nearest("/v1/batches"), "none"); /* not "/v1/cache" */
}

static void tables_are_checked(void **state)
{
    static const struct {
        const char *pattern;
        bool ok;
    } rows[] = {{"/a", true},      {"/{a}/{b}/{c}/{d}", true}, {"/{a*}", true},
                {"/{a*}:b", true}, {"/{a*}:b/c", false},       {"a", false},
                {"", false},       {"/{a*}/b", false},         {"/{a}/{b}/{c}/{d}/{e}", false}};
    mt_error err;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_http_route route = {.pattern = rows[i].pattern};

        assert_int_equal(mt_http_router_check(&route, 1, &err), rows[i].ok);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(literal_paths),
    cmocka_unit_test(parameters),
    cmocka_unit_test(tails),
    cmocka_unit_test(methods),
    cmocka_unit_test(the_names_of_all_methods_fit),
    cmocka_unit_test(paths_are_decoded_or_refused),
    cmocka_unit_test(the_nearest_path),
    cmocka_unit_test(tables_are_checked),
};
UNIT_MAIN(tests)
