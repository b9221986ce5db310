#include "unit.h"

#include "http/http.h"

static void only_the_same_secret_is_equal(void **state)
{
    (void)state;
    assert_true(mt_http_secret_equal("sk-1", "sk-1"));
    assert_false(mt_http_secret_equal("sk-1", "sk-2"));
    assert_false(mt_http_secret_equal("sk-1", "sk-12"));
    assert_false(mt_http_secret_equal("", "sk-1"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_the_same_secret_is_equal),
};
UNIT_MAIN(tests)
