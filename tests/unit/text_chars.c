/* Characters are classed by the versions of Unicode that the tokenizers library has, whatever those of other libraries
   are. */
#include "unit.h"

#include "base/compiler.h"
#include "text/chars.h"
#include "text/normalizer.h"

static void classes_have_their_versions(void **state)
{
    static const struct {
        bool (*is)(uint32_t c);
        uint32_t yes, no;
    } rows[] = {
        {mt_tok_is_numeric, 0x1E5F1, 0x1E5FB}, /* a digit of Unicode 16, and what is none */
        {mt_tok_is_numeric, 0xB2, 0x2B0},      {mt_tok_is_word, 0x105C0, 0x11B00}, /* a letter and a sign of 16 */
        {mt_tok_is_word, 0x200D, 0x2014},      {mt_tok_is_word, 0x24B6, 0x24EA},
        {mt_tok_is_punct, 0x2014, 0x11B00}, /* punctuation that Unicode 8 does not know */
        {mt_tok_is_punct, 0x166D, 0x2E43},  /* was punctuation then; came with 9 */
        {mt_tok_is_punct, '$', '5'},           {mt_tok_is_mark, 0x301, 0x897}, /* a mark of 16 */
        {mt_tok_is_mark, 0x1CF2, 0x0898},                                      /* was a mark in 9; came with 14 */
        {mt_tok_is_overlay, 0x1734, 0x903},    {mt_tok_is_other, 0xAD, 0x13439},
        {mt_tok_is_other, 0xE000, 0x378},      {mt_tok_is_later, 0x897, 0x1E943},
        {mt_tok_is_later, 0x9FD6, 0x9FD5},     {mt_tok_is_new, 0x2EBF0, 0x9FFD},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_true(rows[i].is(rows[i].yes));
        assert_false(rows[i].is(rows[i].no));
    }
}

static void lower_case_is_that_of_unicode_16(void **state)
{
    static const uint32_t rows[][2] = {{'A', 'a'},          {'@', '@'},         {0xC0, 0xE0},       {0xD7, 0xD7},
                                       {0x100, 0x101},      {0x101, 0x101},     {0x178, 0xFF},      {0x1C89, 0x1C8A},
                                       {0xA7DC, 0x19B},     {0x10D50, 0x10D70}, {0x10D70, 0x10D70}, {0x1E921, 0x1E943},
                                       {0x10FFFF, 0x10FFFF}};
    uint32_t out[MT_TOK_LOWER_MAX];

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_int_equal(mt_tok_lower(rows[i][0], out), 1);
        assert_int_equal(out[0], rows[i][1]);
    }
    assert_int_equal(mt_tok_lower(0x130, out), 2);
}

static void check(mt_tok_change form, const char *from, const char *to)
{
    const mt_tok_view in = {.data = from, .len = strlen(from), .head = true};
    mt_tok_text out;

    mt_tok_text_init(&out, false, mt_tok_text_limit(strlen(from)));
    assert_int_equal(mt_tok_change_form(form, &in, &out), strcmp(from, to) != 0);
    if (strcmp(from, to) != 0) {
        assert_int_equal(out.len, strlen(to));
        assert_memory_equal(out.data, to, out.len);
    }
    mt_tok_text_free(&out);
}

static void forms_are_those_of_unicode_9(void **state)
{
    (void)state;
    check(MT_TOK_NFC, "e\xcc\x81", "\xc3\xa9");
    check(MT_TOK_NFD, "\xc3\xa9", "e\xcc\x81");
    check(MT_TOK_NFC, "a\xcc\x81\xcc\xa3", "\xe1\xba\xa1\xcc\x81"); /* marks are put in order */
    /* U+11935 and U+11930 make U+11938 since Unicode 13 */
    check(MT_TOK_NFC, "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0", "\xf0\x91\xa4\xb5\xf0\x91\xa4\xb0");
    check(MT_TOK_NFD, "\xf0\x91\xa4\xb8", "\xf0\x91\xa4\xb8");
    /* nothing combines across such a character, and the rest does */
    check(MT_TOK_NFC,
          "\xf0\x91\xa4\xb0"
          "e\xcc\x81\xf0\x91\xa4\xb0o\xcc\x88",
          "\xf0\x91\xa4\xb0\xc3\xa9\xf0\x91\xa4\xb0\xc3\xb6");
    check(MT_TOK_NFKC, "\xf0\x9e\x80\xb0", "\xf0\x9e\x80\xb0"); /* U+1E030, a small letter of 15 that decomposes */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(classes_have_their_versions),
    cmocka_unit_test(lower_case_is_that_of_unicode_16),
    cmocka_unit_test(forms_are_those_of_unicode_9),
};
UNIT_MAIN(tests)
