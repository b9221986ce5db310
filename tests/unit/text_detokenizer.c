#include "unit.h"

#include <dirent.h>

#include "base/compiler.h"
#include "base/utf8.h"
#include "text/decoder.h"
#include "text/detokenizer.h"

#define FOLDER "tests/text/tokenizers/"

static mt_tokenizer *load(const char *name)
{
    mt_error err;
    char path[512];
    mt_tokenizer *t;

    snprintf(path, sizeof(path), FOLDER "%s", name);
    t = mt_tokenizer_load(path, &err);
    if (!t)
        fail_msg("%s", err.text);
    return t;
}

static bool is_utf8(const char *s, size_t len)
{
    for (size_t at = 0, size; at < len; at += size)
        if ((size = mt_utf8_length(s + at, len - at)) == 0)
            return false;
    return true;
}

/* Random tokens, one by one; now and then some are taken back. */
static void check_random(const mt_tokenizer *t, const char *name)
{
    uint32_t ids[40];
    size_t count = (size_t)rand() % MT_COUNT(ids);
    bool skip = rand() % 2;
    mt_detokenizer d;
    mt_buf whole, parts;

    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)rand() % (uint32_t)(mt_tokenizer_size(t) + 2);
    mt_buf_init(&whole, 1 << 20);
    mt_buf_init(&parts, 1 << 20);
    assert_true(mt_tokenizer_decode(t, ids, count, skip, &whole));
    mt_detokenizer_init(&d, t, skip);
    for (size_t i = 0; i < count; i++) {
        size_t before = parts.len;

        if (rand() % 4 == 0) { /* tokens that were drafted and not accepted */
            mt_detokenizer kept = d;

            for (int k = rand() % 4; k > 0; k--)
                assert_true(mt_detokenizer_add(&d, (uint32_t)rand() % (uint32_t)mt_tokenizer_size(t), &parts));
            d = kept;
            parts.len = before;
        }
        assert_true(mt_detokenizer_add(&d, ids[i], &parts));
        if (parts.len > before && !is_utf8(parts.data + before, parts.len - before))
            fail_msg("%s: half a character", name);
    }
    assert_true(mt_detokenizer_finish(&d, &parts));
    if (parts.len != whole.len || (whole.len > 0 && memcmp(parts.data, whole.data, whole.len) != 0))
        fail_msg("%s: \"%s\" and \"%s\"", name, whole.data, parts.data);
    mt_buf_free(&whole);
    mt_buf_free(&parts);
}

static void any_split_gives_the_same_text(void **state)
{
    DIR *folder = opendir(FOLDER);
    struct dirent *entry;

    (void)state;
    assert_non_null(folder);
    srand(1);
    while ((entry = readdir(folder))) {
        mt_tokenizer *t;

        if (entry->d_name[0] == '.')
            continue;
        t = load(entry->d_name);
        for (int i = 0; i < 60; i++)
            check_random(t, entry->d_name);
        mt_tokenizer_free(t);
    }
    closedir(folder);
}

typedef struct step {
    const char *token, *out; /* out: what comes at once */
} step;

static void check_steps(const char *name, const step *steps, size_t count, const char *rest)
{
    mt_tokenizer *t = load(name);
    mt_detokenizer d;
    mt_buf out;

    mt_detokenizer_init(&d, t, false);
    for (size_t i = 0; i < count; i++) {
        uint32_t id = mt_tokenizer_find(t, steps[i].token, strlen(steps[i].token));

        mt_buf_init(&out, 1000);
        assert_int_not_equal(id, MT_TOKEN_NONE);
        assert_true(mt_detokenizer_add(&d, id, &out));
        assert_string_equal(out.data ? out.data : "", steps[i].out);
        mt_buf_free(&out);
    }
    mt_buf_init(&out, 1000);
    assert_true(mt_detokenizer_finish(&d, &out));
    assert_string_equal(out.data ? out.data : "", rest);
    mt_buf_free(&out);
    mt_tokenizer_free(t);
}

/* Characters of two to four bytes, each byte a token, come with their last byte; broken ones as soon as they are. */
static void characters_come_when_they_are_whole(void **state)
{
    static const step level[] = {
        {"\xC3\xB0", ""},
        {"\xC5\x81", ""},
        {"\xC4\xBA", ""},
        {"\xC4\xA2", "\xF0\x9F\x98\x80"}, /* U+1F600 */
        {"a", "a"},
        {"\xC3\x83", ""},
        {"b", "\xEF\xBF\xBD"
              "b"},
        {"\xC3\xA2", ""},
        {"\xC4\xA4", ""},
        {"\xC3\x83", "\xEF\xBF\xBD"},
        {"\xC2\xA9", "\xC3\xA9"},
        {"\xC2\xA9", "\xEF\xBF\xBD"},
        {"\xC3\xB0", ""},
    };
    static const step fallback[] = {
        {"<0xF0>", ""},
        {"<0x9F>", ""},
        {"<0x98>", ""},
        {"<0x80>", "\xF0\x9F\x98\x80"},
        {"<0x41>", "A"},
        {"<0xE2>", ""},
        {"<0x82>", ""},
        {"a", "\xEF\xBF\xBD\xEF\xBF\xBD"
              "a"},
        {"<0xFF>", "\xEF\xBF\xBD"},
        {"<0xC3>", ""},
    };

    (void)state;
    check_steps("bpe-gpt2.json", level, MT_COUNT(level), "\xEF\xBF\xBD");
    check_steps("bpe-fallback.json", fallback, MT_COUNT(fallback), "\xEF\xBF\xBD");
}

/* A blank may be one of the last two, which go: it waits until something else follows. */
static void what_may_be_stripped_is_held_back(void **state)
{
    static const step steps[] = {{" x", "x"}, {"x ", "x"}, {" x", "  x"}, {"x ", "x"}, {"x ", " x"}};

    (void)state;
    check_steps("decode-strip-fused.json", steps, MT_COUNT(steps), "");
}

static void the_first_token_is_the_first_not_skipped(void **state)
{
    mt_tokenizer *t = load("decode-metaspace.json");
    uint32_t ids[] = {mt_tokenizer_find(t, "<s>", 3),
                      mt_tokenizer_find(t,
                                        "\xE2\x96\x81"
                                        "a",
                                        4),
                      9999, 1};
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 100);
    assert_true(mt_tokenizer_decode(t, ids, MT_COUNT(ids), true, &out));
    assert_string_equal(out.data, "a a");
    mt_buf_free(&out);
    assert_true(mt_tokenizer_decode(t, ids, MT_COUNT(ids), false, &out));
    assert_string_equal(out.data, "<s> a a");
    mt_buf_free(&out);
    mt_tokenizer_free(t);
}

/* Both ends are counted for themselves. */
static void strips_as_much_as_is_said(void **state)
{
    static const struct {
        size_t start, stop;
        const char *text;
    } cases[] = {{0, 0, "__a__"}, {0, 1, "__a_"}, {0, 5, "__a"}, {1, 0, "_a__"}, {5, 0, "a__"}, {1, 2, "_a"}};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        const mt_tok_step strip = {
            .kind = MT_TOK_STEP_STRIP, .from = "_", .from_len = 1, .start = cases[i].start, .stop = cases[i].stop};
        mt_buf out;

        mt_buf_init(&out, 100);
        assert_true(mt_buf_puts(&out, "_<__a__"));
        mt_tok_steps_apply(&strip, 1, false, &out, 2);
        assert_string_equal(out.data + 2, cases[i].text);
        mt_buf_free(&out);
    }
}

static void a_full_buffer_is_told(void **state)
{
    mt_tokenizer *t = load("bpe-gpt2.json");
    uint32_t ids[] = {'a' - 33, 'b' - 33};
    mt_buf out;

    (void)state;
    mt_buf_init(&out, 1);
    assert_false(mt_tokenizer_decode(t, ids, MT_COUNT(ids), true, &out));
    mt_buf_free(&out);
    mt_tokenizer_free(t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(any_split_gives_the_same_text),     cmocka_unit_test(characters_come_when_they_are_whole),
    cmocka_unit_test(what_may_be_stripped_is_held_back), cmocka_unit_test(the_first_token_is_the_first_not_skipped),
    cmocka_unit_test(strips_as_much_as_is_said),         cmocka_unit_test(a_full_buffer_is_told),
};
UNIT_MAIN(tests)
