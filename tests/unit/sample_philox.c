#include "unit.h"

#include "base/compiler.h"
#include "sample/philox.h"

/* Random123's published vectors: zeros, ones, and the digits of pi. */
static void the_published_answers_come_out(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    (void)state;
    for (size_t i = 0; i < MT_COUNT(known); i++) {
        uint32_t out[4];
        mt_philox(known[i].counter, known[i].key, out);
        assert_memory_equal(out, known[i].out, sizeof(out));
    }
}

static void a_draw_is_the_block_of_its_place(void **state)
{
    const uint32_t counter[4] = {3, 1000, MT_PURPOSE_TOKEN, 0}, key[2] = {0x89abcdef, 0x01234567};
    uint32_t out[4];
    (void)state;
    mt_philox(counter, key, out);
    assert_true(mt_philox_draw(0x0123456789abcdefu, 3, 1000, MT_PURPOSE_TOKEN) == ((uint64_t)out[0] << 32 | out[1]));
}

static void every_part_of_the_place_matters(void **state)
{
    uint64_t draw = mt_philox_draw(5, 6, 7, MT_PURPOSE_TOKEN);
    (void)state;
    assert_true(draw == mt_philox_draw(5, 6, 7, MT_PURPOSE_TOKEN));
    assert_true(draw != mt_philox_draw(4, 6, 7, MT_PURPOSE_TOKEN));
    assert_true(draw != mt_philox_draw(5 | (uint64_t)1 << 32, 6, 7, MT_PURPOSE_TOKEN));
    assert_true(draw != mt_philox_draw(5, 7, 7, MT_PURPOSE_TOKEN));
    assert_true(draw != mt_philox_draw(5, 6, 8, MT_PURPOSE_TOKEN));
    assert_true(draw != mt_philox_draw(5, 6, 7, (mt_purpose)1));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_published_answers_come_out),
    cmocka_unit_test(a_draw_is_the_block_of_its_place),
    cmocka_unit_test(every_part_of_the_place_matters),
};
UNIT_MAIN(tests)
