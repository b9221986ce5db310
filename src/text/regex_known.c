/* The patterns of most tokenizers, matched without PCRE2 wherever ASCII alone decides, which is ten times as fast.

   Each of them matches at every character: a word with what may lead it, a number, signs, or blanks. What a character
   beyond ASCII is remains PCRE2's to know: where one has a say in a match, there is no answer here, and PCRE2 is asked.
   tests/unit/text_regex.c holds each pattern to PCRE2 over all short texts. */
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "text/regex.h"

typedef enum form {
    OF_GPT2, /* a blank may lead a word or a number, and contractions are in small letters */
    PLAIN,   /* any character but a newline, a letter or a digit may lead a word */
    CASED    /* the same, but a word ends before a capital behind a small letter */
} form;

struct mt_tok_known {
    const char *pattern;
    form form;
    bool contractions; /* are matches of their own; where the form is CASED, ends of words */
    size_t digits;     /* of a number, at most */
    const char *tail;  /* characters that may follow signs */
};

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LEAD "[^\\r\\n\\p{L}\\p{N}]?"
#define UPPER "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LOWER "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define NOT_HAN "&&[^\\p{Han}]"
#define BLANKS "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* upper, lower: characters of sets; end: of a word */
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

/* Other signs, spaces, newlines, digits, upper- and lower-case letters of ASCII, in its order. */
static const char ascii[128 + 1] = "ooooooooosnssnoooooooooooooooooosooooooooooooooo"
                                   "ddddddddddooooooouuuuuuuuuuuuuuuuuuuuuuuuuuoooooo"
                                   "llllllllllllllllllllllllllooooo";

enum { END = 'e', FOREIGN = 'f' }; /* kinds of what is no character of ASCII */

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

/* Where characters of a kind end. */
static size_t skip(const subject *s, size_t at, char kind)
{
    while (kind_at(s, at) == kind)
        at++;
    return at;
}

enum { NOT_KNOWN = 0 }; /* no match ends there */

/* Where the contraction at an apostrophe ends: there, if it is none. */
static size_t contraction_end(const mt_tok_known *known, const subject *s, size_t at)
{
    const char fold = known->form == OF_GPT2 ? 0 : 0x20;
    char c, second;

    if (kind_at(s, at + 1) == FOREIGN)
        return NOT_KNOWN; /* a long s is an s, too */
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

/* Blanks end behind the last newline among them, where there is one; before the last of them, if something follows that
   it may lead; or together. */
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
