#include "unit.h"

#include "../text/patterns.h"
#include "base/alloc.h"
#include "base/compiler.h"
#include "text/limits.h"
#include "text/regex.h"

#define SPACES \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

static void patterns_are_translated(void **state)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"", ""},
        {"abc", "abc"},
        {"\\s", "[" SPACES "]"},
        {"\\S+", "[^" SPACES "]+"},
        {"[^\\s\\p{Zs}]", "[^" SPACES "\\p{Zs}]"},
        {"[\\P{Space_Separator}-x]", "[\\P{Zs}\\-x]"},
        {"\\h", "[0-9a-fA-F]"},
        {"[a[bc]]", "[abc]"},
        {"[^a[bc]d]", "[^abcd]"},
        {"[a[^b]]", "(?:(?:[a]|[^b]))"},
        {"[a&&b]", "(?:(?=(?:[a]))(?:[b]))"},
        {"[^a&&[^b]]", "(?:(?!(?=(?:[a]))(?:[^b]))(?s:.))"},
        {"[]a]", "[\\]a]"},
        {"[a^-]", "[a\\^\\-]"},
        {"[\\s-]", "[" SPACES "\\-]"},
        {"[a-z]", "[a-z]"},
        {"[[:space:][:upper:]]", "[" SPACES "[:upper:]]"},
        {"\\u00e9\\x{41}", "\\x{00e9}\\x{41}"},
        {"\\p{^Zs}\\P{^Pc}\\p{Connector_Punctuation}", "\\P{Zs}\\p{Pc}\\p{Pc}"},
        {"a{,3}", "a{0,3}"},
        {"a{2,}?", "a{2,}?"},
        {"xa{1,3}+", "x(?:a{1,3})+"},
        {"(ab){2}?", "(?:(ab){2})?"},
        {"a{x}{", "a\\{x}\\{"},
        {"(?m:.)(?i-m)", "(?s:.)(?i-s)"},
        {"(?<=a)(?!b)(?:c)", "(?<=a)(?!b)(?:c)"},
        {"a(?#note)b", "a(?:)b"},
    };

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        mt_error err;
        mt_buf out;

        mt_buf_init(&out, 10000);
        assert_true(mt_tok_regex_translate(rows[i].from, strlen(rows[i].from), false, &out, &err));
        assert_string_equal(out.data, rows[i].to);
        mt_buf_free(&out);
    }
}

/* The matches of a pattern, with bars around them. */
static void check(const char *pattern, const char *text, const char *wanted)
{
    mt_error err;
    mt_tok_regex *regex = mt_tok_regex_new(pattern, strlen(pattern), &err);
    mt_tok_matcher *matcher = mt_tok_matcher_new(NULL);
    mt_tok_finder finder = {.regex = regex, .matcher = matcher, .text = text, .len = strlen(text)};
    mt_range found;
    mt_buf out;

    assert_non_null(regex);
    mt_buf_init(&out, 1000);
    while (mt_tok_finder_next(&finder, &found, &err))
        mt_buf_printf(&out, "|%.*s|", (int)(found.end - found.begin), text + found.begin);
    assert_false(finder.failed);
    assert_string_equal(out.data ? out.data : "", wanted);
    mt_buf_free(&out);
    mt_tok_matcher_free(matcher);
    mt_tok_regex_free(regex);
}

static void matches_are_those_of_oniguruma(void **state)
{
    (void)state;
    check("\\s", "a \xE1\xA0\x8E\xC2\xA0", "| ||\xC2\xA0|"); /* U+180E is not white space, U+00A0 is */
    check("x*", "axxb", "|||xx|||");                         /* empty, xx, empty */
    check("\\p{N}{1,3}+", "1234567", "|1234567|");
    check("(?i:'s)", "'S '\xC5\xBF", "|'S||'\xC5\xBF|");
    check("^a|b$", "a\nab\nb", "|a||a||b||b|");
    check(".", "\n\r", "|\r|");
    check("[\\p{Lu}\\p{Lo}&&[^\\p{Han}]]+",
          "A\xE6\x97\xA5\xE3\x81\x82"
          "B",
          "|A||\xE3\x81\x82"
          "B|");
}

/* Each character may have to be given back: that takes a stack as long as the text. */
static void long_texts_get_a_longer_stack(void **state)
{
    static const char pattern[] = "(?:(?!\\p{Han})[\\p{L}])*[\\p{L}]+x";
    size_t len = 300000;
    char *text = mt_alloc(len + 1);
    mt_tok_matcher *matcher = mt_tok_matcher_new(NULL);
    mt_tok_regex *regex;
    mt_tok_finder finder;
    mt_range found;
    mt_error err;

    (void)state;
    memset(text, 'a', len);
    regex = mt_tok_regex_new(pattern, strlen(pattern), &err);
    assert_non_null(regex);
    finder = (mt_tok_finder){.regex = regex, .matcher = matcher, .text = text + len - 2, .len = 2};
    assert_false(mt_tok_finder_next(&finder, &found, &err) || finder.failed);
    text[len - 1] = 'x';
    finder = (mt_tok_finder){.regex = regex, .matcher = matcher, .text = text, .len = len};
    assert_true(mt_tok_finder_next(&finder, &found, &err));
    assert_int_equal(found.end, len);
    mt_tok_regex_free(regex);
    mt_tok_matcher_free(matcher);
    mt_free(text);
}

static void a_stack_has_an_end(void **state)
{
    static const char pattern[] = "(?:(?!x)a)*b";
    size_t len = 20 << 20;
    char *text = mt_alloc(len);
    mt_tok_matcher *matcher = mt_tok_matcher_new(NULL);
    mt_error err;
    mt_tok_regex *regex = mt_tok_regex_new(pattern, strlen(pattern), &err);
    mt_tok_finder finder;
    mt_range found;

    (void)state;
    memset(text, 'a', len);
    finder = (mt_tok_finder){.regex = regex, .matcher = matcher, .text = text, .len = len};
    assert_false(mt_tok_finder_next(&finder, &found, &err));
    assert_true(finder.failed);
    assert_string_equal(err.text, "the text is too long for the tokenizer's regular expression; send it in parts");
    mt_tok_regex_free(regex);
    mt_tok_matcher_free(matcher);
    mt_free(text);
}

static void what_cannot_be_read_is_an_error(void **state)
{
    static const struct {
        const char *pattern, *text;
    } rows[] = {
        {"a(b",
         "it has a regular expression that motet cannot read, \"a(b\": missing closing parenthesis; use another file"},
        {"[ab", "it has a regular expression with a set that does not end at byte 3; use another file"},
    };
    char *deep = mt_alloc(MT_LIMIT_REGEX + 2);
    mt_error err;

    (void)state;
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        assert_null(mt_tok_regex_new(rows[i].pattern, strlen(rows[i].pattern), &err));
        assert_string_equal(err.text, rows[i].text);
    }
    memset(deep, '(', MT_LIMIT_REGEX + 1);
    assert_null(mt_tok_regex_new(deep, 100, &err));
    assert_string_equal(
        err.text, "it has a regular expression with too many groups inside one another at byte 32; use another file");
    memset(deep, '[', MT_LIMIT_REGEX + 1);
    assert_null(mt_tok_regex_new(deep, 100, &err));
    assert_string_equal(
        err.text, "it has a regular expression with too many sets inside one another at byte 32; use another file");
    assert_null(mt_tok_regex_new(deep, MT_LIMIT_REGEX + 1, &err));
    assert_string_equal(err.text, "it has a regular expression of 16385 bytes; at most 16384 are read");
    mt_free(deep);
}

#define LETTER "\xf0\x90\xb5\x8a"    /* U+10D4A, of Unicode 16 */
#define IDEOGRAPH "\xf0\xae\xaf\xb0" /* U+2EBF0, of 15.1 */
#define DIGIT "\xf0\x9e\x93\xb0"     /* U+1E4F0, of 15.0 */
#define SIGN "\xf0\x91\xbc\x80"      /* U+11F00, a mark of 15.0 */

/* Whatever the tables of PCRE2 are: properties are those of Unicode 16, as in the library. */
static void properties_are_those_of_unicode_16(void **state)
{
    static const char *const letters[] = {"\\p{L}", "\\p{Lo}", "\\p{Letter}", "\\p{other letter}"};

    (void)state;
    for (size_t i = 0; i < 4; i++)
        check(letters[i], "." LETTER "1" IDEOGRAPH DIGIT, "|" LETTER "||" IDEOGRAPH "|");
    check("[^\\P{L}]+", "." LETTER IDEOGRAPH DIGIT "a", "|" LETTER IDEOGRAPH "||a|");
    check("[\\P{L}]+", "." LETTER IDEOGRAPH DIGIT "a", "|.||" DIGIT "|");
    check("[[:alpha:]]+", "." LETTER IDEOGRAPH DIGIT SIGN "a", "|" LETTER IDEOGRAPH "||" SIGN "a|");
    check("[[:alpha:]]", "\xcd\xa3", "|\xcd\xa3|"); /* U+0363, which is none in Unicode 14 */
    check("\\p{N}|\\P{^Nd}", LETTER DIGIT "7", "|" DIGIT "||7|");
    check("\\d+", LETTER DIGIT "7", "|" DIGIT "7|");
    check("\\D+", LETTER DIGIT "a" SIGN, "|" LETTER "||a" SIGN "|");
    check("\\w+", "." LETTER DIGIT SIGN "a!", "|" LETTER DIGIT SIGN "a|");
    check("[^\\s\\p{L}\\p{N}]+", LETTER DIGIT SIGN "!", "|" SIGN "!|");
    check("\\p{M}", LETTER SIGN, "|" SIGN "|");
    check("\\p{Han}+", "a" IDEOGRAPH "\xe4\xb8\xad\xe3\x80\x82" LETTER, "|" IDEOGRAPH "\xe4\xb8\xad|"); /* not U+3002 */
    check("[\\p{C}]+", "\x01" LETTER DIGIT, "|\x01|");
    check("[^\\p{Cn}]", LETTER, "|" LETTER "|");
    check("\\p{L}?-", LETTER "-", "|" LETTER "-|");
}

/* A pattern that is matched without PCRE2 where a text is ASCII, and the same in brackets, which PCRE2 matches. */
typedef struct twins {
    mt_tok_regex *known, *plain;
    mt_tok_matcher *matcher;
} twins;

static twins make_twins(const char *pattern)
{
    twins t = {.matcher = mt_tok_matcher_new(NULL)};
    mt_error err;
    mt_buf other;

    assert_non_null(mt_tok_known_find(pattern, strlen(pattern)));
    mt_buf_init(&other, MT_LIMIT_REGEX);
    mt_buf_printf(&other, "(?:%s)", pattern);
    assert_null(mt_tok_known_find(other.data, other.len));
    t.known = mt_tok_regex_new(pattern, strlen(pattern), &err);
    t.plain = mt_tok_regex_new(other.data, other.len, &err);
    assert_true(t.known && t.plain);
    mt_buf_free(&other);
    return t;
}

static void free_twins(twins *t)
{
    mt_tok_regex_free(t->known);
    mt_tok_regex_free(t->plain);
    mt_tok_matcher_free(t->matcher);
}

static void check_twins(const twins *t, const char *text, size_t len)
{
    mt_tok_finder a = {.regex = t->known, .matcher = t->matcher, .text = text, .len = len};
    mt_tok_finder b = {.regex = t->plain, .matcher = t->matcher, .text = text, .len = len};
    mt_range one = {0}, other = {0};
    mt_error err;
    bool more;

    do {
        more = mt_tok_finder_next(&a, &one, &err);
        if (more != mt_tok_finder_next(&b, &other, &err) || one.begin != other.begin || one.end != other.end)
            fail_msg("\"%.*s\" matches at %zu to %zu, not to %zu", (int)len, text, other.begin, other.end, one.end);
    } while (more);
}

/* Every text of up to that many of the letters. */
static void check_all(const twins *t, const char *const *letters, size_t count, size_t most)
{
    size_t digits[8] = {0}, used = 1;

    while (used <= most) {
        char text[64];
        size_t len = 0, at = 0;

        for (size_t i = 0; i < used; i++)
            for (const char *c = letters[digits[i]]; *c; c++)
                text[len++] = *c;
        check_twins(t, text, len);
        while (at < used && ++digits[at] == count)
            digits[at++] = 0;
        if (at == used)
            used++;
    }
}

static void known_patterns_match_as_pcre2_does(void **state)
{
    static const char *const kinds[] = {" ", "\n", "\r", "\t",     "a",      "B",     "7",
                                        ".", "/",  "'",  "\u00e9", "\u00a0", "\u0301"};
    static const char *const contracted[] = {"'", "s", "R", "e", "v", "L", "l", "D", "\u017f", "\u00e9", " "};

    (void)state;
    for (size_t i = 0; i < MT_COUNT(known_patterns); i++) {
        twins t = make_twins(known_patterns[i]);

        check_all(&t, kinds, MT_COUNT(kinds), 4);
        check_all(&t, contracted, MT_COUNT(contracted), 4);
        for (unsigned c = 0; c < 128 * 128; c++)
            check_twins(&t, (const char[]){(char)(c & 127), (char)(c >> 7), 'x'}, 3);
        check_twins(&t, "1234567 12 \u0663456", 16);
        free_twins(&t);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_patterns_match_as_pcre2_does),
    cmocka_unit_test(properties_are_those_of_unicode_16),
    cmocka_unit_test(patterns_are_translated),
    cmocka_unit_test(matches_are_those_of_oniguruma),
    cmocka_unit_test(long_texts_get_a_longer_stack),
    cmocka_unit_test(a_stack_has_an_end),
    cmocka_unit_test(what_cannot_be_read_is_an_error),
};
UNIT_MAIN(tests)
