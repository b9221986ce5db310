#include "unit.h"

#include "base/compiler.h"
#include "base/hash_key.h"

/* What Python 3.11 gives, whose strings are hashed by SipHash-1-3, with a key of zeros (PYTHONHASHSEED=0); the empty
   string and another key as Rust's tests have it. */
static void bytes_are_hashed_as_elsewhere(void **state)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } known[] = {{1, 0x68a914128e01e473u}, {7, 0x2f098ab0c751325au},  {8, 0xead411e67ebe2eeau},
                 {9, 0x75927f9d95124362u}, {16, 0x8972188433a5c5b7u}, {31, 0x169739443111d49bu}};
    const mt_hash_key zeros = {0}, counted = {{0x0706050403020100u, 0x0f0e0d0c0b0a0908u}};
    char bytes[32];

    (void)state;
    for (int i = 0; i < 32; i++)
        bytes[i] = (char)i;
    for (size_t i = 0; i < MT_COUNT(known); i++)
        assert_true(mt_hash_bytes(zeros, bytes, known[i].len) == known[i].hash);
    assert_true(mt_hash_bytes(counted, bytes, 0) == 0xabac0158050fc4dcu);
}

static void keys_differ(void **state)
{
    const mt_hash_key a = mt_hash_key_draw(), b = mt_hash_key_draw();

    (void)state;
    assert_memory_not_equal(&a, &b, sizeof(a));
    assert_true(mt_hash_bytes(a, "motet", 5) != mt_hash_bytes(b, "motet", 5));
    assert_true(mt_hash_number(a, 5) != mt_hash_number(b, 5));
    assert_true(mt_hash_number(a, 5) != mt_hash_number(a, 6));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_are_hashed_as_elsewhere),
    cmocka_unit_test(keys_differ),
};
UNIT_MAIN(tests)
