/* The checksum of files, against published values. */
#include "unit.h"

#include "base/crc32c.h"

static void known_sums(void **state)
{
    uint8_t zeros[32] = {0}, ones[32], rising[32];
    (void)state;
    for (size_t i = 0; i < sizeof(rising); i++) {
        ones[i] = 0xff;
        rising[i] = (uint8_t)i;
    }
    assert_int_equal(mt_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(mt_crc32c(0, zeros, sizeof(zeros)), 0x8a9136aau); /* RFC 3720, B.4 */
    assert_int_equal(mt_crc32c(0, ones, sizeof(ones)), 0x62a8ab43u);
    assert_int_equal(mt_crc32c(0, rising, sizeof(rising)), 0x46dd794eu);
    assert_int_equal(mt_crc32c(0, "", 0), 0);
}

static void pieces_come_to_the_same(void **state)
{
    uint8_t data[300];
    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * i * 7 + i);
    const uint32_t whole = mt_crc32c(0, data, sizeof(data));
    for (size_t cut = 0; cut <= sizeof(data); cut++)
        assert_int_equal(mt_crc32c(mt_crc32c(0, data, cut), data + cut, sizeof(data) - cut), whole);
}

/* Of any length, wherever it begins. */
static void an_instruction_and_tables_come_to_the_same(void **state)
{
    uint8_t data[200];
    (void)state;
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * i * 11 + 3 * i);
    for (size_t begin = 0; begin < 9; begin++)
        for (size_t size = 0; begin + size <= sizeof(data); size++)
            assert_int_equal(mt_crc32c((uint32_t)size, data + begin, size),
                             mt_crc32c_by_table((uint32_t)size, data + begin, size));
    assert_int_equal(mt_crc32c_by_table(0, "123456789", 9), 0xe3069283u);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(known_sums), cmocka_unit_test(pieces_come_to_the_same),
                                          cmocka_unit_test(an_instruction_and_tables_come_to_the_same)};
UNIT_MAIN(tests)
