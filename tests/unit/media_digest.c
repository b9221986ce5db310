#include "unit.h"

#include "media/digest.h"

static void hex_of(char hex[65], const mt_digest_part *parts, size_t count)
{
    uint8_t digest[MT_DIGEST_BYTES];

    mt_digest(digest, parts, count);
    for (int i = 0; i < MT_DIGEST_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* printf '\003\0\0\0\0\0\0\0abc\0\0\0\0\0\0\0\0' | sha256sum */
static void it_is_sha256_over_sizes_and_parts(void **state)
{
    const mt_digest_part parts[] = {{"abc", 3}, {"", 0}};
    char hex[65];

    (void)state;
    hex_of(hex, parts, 2);
    assert_string_equal(hex, "3e2f8940c3a0e0fd6f6e07bbf07f015dd7c147431e5fa14bf3f225d782641540");
}

static void the_same_bytes_cut_elsewhere_differ(void **state)
{
    const mt_digest_part one[] = {{"ab", 2}, {"c", 1}}, other[] = {{"a", 1}, {"bc", 2}}, whole[] = {{"abc", 3}};
    char a[65], b[65], c[65];

    (void)state;
    hex_of(a, one, 2);
    hex_of(b, other, 2);
    hex_of(c, whole, 1);
    assert_string_not_equal(a, b);
    assert_string_not_equal(a, c);
    assert_string_not_equal(b, c);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(it_is_sha256_over_sizes_and_parts),
    cmocka_unit_test(the_same_bytes_cut_elsewhere_differ),
};
UNIT_MAIN(tests)
