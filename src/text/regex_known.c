/* Matches the patterns of the most common tokenizers without PCRE2, ten times as fast, as far as ASCII decides.
   Each pattern matches at every character: a word with an optional character before it, a number, other signs, or
   blanks. Where a character beyond ASCII matters for a match, the functions return NOT_KNOWN and PCRE2 decides.
   tests/unit/text_regex.c compares each pattern with PCRE2 over all short texts. */
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "text/regex.h"

/* The kinds of words in the patterns. */
typedef enum form {
    OF_GPT2, /* a blank may precede a word or number; contractions are in lower case */
    PLAIN,   /* any character but a newline, letter or digit may precede a word */
    CASED    /* as PLAIN, but a word ends before an upper-case letter that follows a lower-case one */
} form;

struct mt_tok_known {
    const char *pattern;
    form form;
    bool contractions; /* "'s" and the like are matches of their own; if CASED, part of the word before */
    size_t digits;     /* most digits of a number */
    const char *tail;  /* characters that may follow signs in the same match */
};

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define NOT_HAN "&&[^\\p{Han}]"
#define BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* upper, lower: what a set contains; end: what may end a word */
#define CASED_WORDS(upper, lower, end) LEAD "[" upper "]*[" lower "]+" end "|" LEAD "[" upper "]+[" lower "]*" end

static const mt_tok_known all[] = {
    {MT_TOK_GPT2_PATTERN, OF_GPT2, true, SIZE_MAX, ""},
    /* Llama 3 */
    {CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS, PLAIN, true, 3, "\r\n"},
    /* Qwen 2 and 3, then 3.5 */
    {CONTRACTIONS "|" LEAD "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS, PLAIN, true, 1, "\r\n"},
    {CONTRACTIONS "|" LEAD "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" BLANKS, PLAIN, true, 1,
     "\r\n"},
    /* gpt-oss, Mistral, Kimi */
    {CASED_WORDS(UPPER, LOWER, CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS, CASED, true, 3,
     "\r\n/"},
    {CASED_WORDS(UPPER, LOWER, "") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" BLANKS, CASED, false, 1, "\r\n/"},
    {"[\\p{Han}]+|" CASED_WORDS(UPPER NOT_HAN, LOWER NOT_HAN,
                                CONTRACTIONS "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" BLANKS,
     CASED, true, 3, "\r\n"},
};

const mt_tok_known *mt_tok_known_find(const char *pattern, size_t len)
{
    for (size_t i = 0; i < MT_COUNT(all); i++)
        if (strlen(all[i].pattern) == len && memcmp(all[i].pattern, pattern, len) == 0)
            return &all[i];
    return NULL;
}

/* The kind of each ASCII character: s space, n newline, d digit, u upper-case, l lower-case letter, o other. */
static const char ascii[128 + 1] = "ooooooooosnssnoooooooooooooooooosooooooooooooooo"
                                   "ddddddddddooooooouuuuuuuuuuuuuuuuuuuuuuuuuuoooooo"
                                   "llllllllllllllllllllllllllooooo";

enum { END = 'e', FOREIGN = 'f' }; /* kinds of positions without an ASCII character */

typedef struct subject {
    const char *text;
    size_t len;
} subject;

static char kind_at(const subject *s, size_t at)
{
    if (at >= s->len)
        return END;
    return (unsigned char)s->text[at] < 0x80 ? ascii[(unsigned char)s->text[at]] : FOREIGN;
}

static bool is_letter(char kind)
{
    return kind == 'u' || kind == 'l';
}

static bool is_space(char kind)
{
    return kind == 's' || kind == 'n';
}

/* The end of the run of characters of this kind. */
static size_t skip(const subject *s, size_t at, char kind)
{
    while (kind_at(s, at) == kind)
        at++;
    return at;
}

enum { NOT_KNOWN = 0 }; /* 0 is never the end of a match */

/* The end of the contraction at an apostrophe; `at` if it is none. */
static size_t contraction_end(const mt_tok_known *known, const subject *s, size_t at)
{
    const char fold = known->form == OF_GPT2 ? 0 : 0x20;
    char c, second;

    if (kind_at(s, at + 1) == FOREIGN)
        return NOT_KNOWN; /* U+017F, long s, matches "s" without regard to case */
    if (!is_letter(kind_at(s, at + 1)))
        return at;
    c = s->text[at + 1] | fold;
    if (strchr("stmd", c))
        return at + 2;
    second = c == 'l' ? 'l' : 'e';
    if (!strchr("rvl", c) || kind_at(s, at + 2) == END)
        return at;
    if (kind_at(s, at + 2) == FOREIGN)
        return NOT_KNOWN;
    return (s->text[at + 2] | fold) == second ? at + 3 : at;
}

static size_t word_end(const mt_tok_known *known, const subject *s, size_t at)
{
    if (known->form == CASED) {
        at = skip(s, skip(s, at, 'u'), 'l');
    } else {
        while (is_letter(kind_at(s, at)))
            at++;
    }
    if (kind_at(s, at) == FOREIGN)
        return NOT_KNOWN;
    if (known->form == CASED && known->contractions && at < s->len && s->text[at] == '\'')
        return contraction_end(known, s, at);
    return at;
}

static size_t number_end(const mt_tok_known *known, const subject *s, size_t at)
{
    const size_t most = known->digits < s->len - at ? at + known->digits : s->len;

    while (at < most && kind_at(s, at) == 'd')
        at++;
    return at < most && kind_at(s, at) == FOREIGN ? NOT_KNOWN : at;
}

static size_t signs_end(const mt_tok_known *known, const subject *s, size_t at)
{
    at = skip(s, at, 'o');
    if (kind_at(s, at) == FOREIGN)
        return NOT_KNOWN;
    while (at < s->len && s->text[at] && strchr(known->tail, s->text[at]))
        at++;
    return at;
}

/* Blanks end after their last newline if they have one; else before the last blank, if a character follows that it may
   precede; else after all blanks. */
static size_t blanks_end(const mt_tok_known *known, const subject *s, size_t begin)
{
    size_t at = begin, line = begin;

    for (; is_space(kind_at(s, at)); at++)
        if (kind_at(s, at) == 'n')
            line = at + 1;
    if (kind_at(s, at) == FOREIGN)
        return NOT_KNOWN;
    if (known->form != OF_GPT2 && line > begin)
        return line;
    return at < s->len && at > begin + 1 ? at - 1 : at;
}

size_t mt_tok_known_match(const mt_tok_known *known, const char *text, size_t len, size_t from)
{
    const subject s = {text, len};
    const char first = kind_at(&s, from);
    char next;

    if (first == FOREIGN || first == END)
        return NOT_KNOWN;
    if (is_letter(first))
        return word_end(known, &s, from);
    if (first == 'd')
        return number_end(known, &s, from);
    if (text[from] == '\'' && known->contractions && known->form != CASED) {
        const size_t end = contraction_end(known, &s, from);

        if (end != from)
            return end;
    }
    next = kind_at(&s, from + 1);
    if (next == FOREIGN)
        return NOT_KNOWN;
    if (is_letter(next) && (text[from] == ' ' || (known->form != OF_GPT2 && first != 'n')))
        return word_end(known, &s, from + 1);
    if (next == 'd' && text[from] == ' ' && known->form == OF_GPT2)
        return number_end(known, &s, from + 1);
    if (first == 'o' || (text[from] == ' ' && next == 'o'))
        return signs_end(known, &s, from + (first != 'o'));
    return blanks_end(known, &s, from);
}
