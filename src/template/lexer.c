/* See lexer.h. */
#include "template/lexer.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "template/limits.h"
#include "template/number.h"
#include "template/unicode.h"

enum { NUMBER_MAX = 400 }; /* bytes of a number */

typedef struct lexer {
    mt_tpl_run *run;
    const char *text; /* its line breaks are \n, with none at the end */
    size_t len, at;   /* at: the position */
    size_t place_at;  /* the position that place belongs to */
    mt_tpl_place place;
    mt_tpl_token *tokens;
    size_t count, cap;
    mt_tpl_token none;                    /* stands for a token that there is no memory for: the run has failed */
    char open[MT_LIMIT_TEMPLATE_NESTING]; /* open brackets, each as the bracket that closes it */
    size_t open_count;
} lexer;

/* Those of two characters come first, in the order of their numbers from MT_TPL_FLOORDIV on. */
static const char *const operators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

static mt_tpl_token_type operator_type(size_t i)
{
    return operators[i][1] ? MT_TPL_FLOORDIV + (unsigned)i : (unsigned char)operators[i][0];
}

const char *mt_tpl_token_text(mt_tpl_token_type type)
{
    switch (type) {
    case MT_TPL_T_EOF: return "end of template";
    case MT_TPL_T_DATA: return "template data / text";
    case MT_TPL_T_BLOCK_BEGIN: return "begin of statement block";
    case MT_TPL_T_BLOCK_END: return "end of statement block";
    case MT_TPL_T_VARIABLE_BEGIN: return "begin of print statement";
    case MT_TPL_T_VARIABLE_END: return "end of print statement";
    case MT_TPL_T_NAME: return "name";
    case MT_TPL_T_STRING: return "string";
    case MT_TPL_T_INTEGER: return "integer";
    case MT_TPL_T_FLOAT: return "float";
    default: break;
    }
    for (size_t i = 0; i < MT_COUNT(operators); i++)
        if (operator_type(i) == type)
            return operators[i];
    return "token";
}

/* The place of a position; positions are asked for in ascending order. */
static mt_tpl_place place_of(lexer *lx, size_t at)
{
    for (; lx->place_at < at; lx->place_at++) {
        unsigned char c = (unsigned char)lx->text[lx->place_at];

        lx->place.column += (c & 0xC0) != 0x80;
        if (c == '\n')
            lx->place = (mt_tpl_place){.line = lx->place.line + 1, .column = 1};
    }
    return lx->place;
}

static mt_tpl_token *add(lexer *lx, mt_tpl_token_type type, size_t at)
{
    if (!mt_tpl_grow(lx->run, &lx->tokens, lx->count, 1, &lx->cap, sizeof(*lx->tokens)))
        return &lx->none;
    lx->tokens[lx->count] = (mt_tpl_token){.type = type, .place = place_of(lx, at)};
    return &lx->tokens[lx->count++];
}

/* Counts the characters now: constants are shared by threads, so nothing may be computed later. */
static mt_tpl_str *counted(mt_tpl_str *s)
{
    if (s)
        mt_tpl_str_chars(s);
    return s;
}

static void add_text(lexer *lx, mt_tpl_token_type type, size_t begin, size_t end)
{
    add(lx, type, begin)->str = counted(mt_tpl_str_new(lx->run, lx->text + begin, end - begin, false));
}

static void add_data(lexer *lx, size_t begin, size_t end)
{
    if (begin < end)
        add_text(lx, MT_TPL_T_DATA, begin, end);
}

static bool is_at(const lexer *lx, size_t at, const char *word)
{
    size_t n = strlen(word);

    return lx->len - at >= n && memcmp(lx->text + at, word, n) == 0;
}

static size_t skip_space(const lexer *lx, size_t at)
{
    while (at < lx->len && mt_tpl_is_space(mt_utf8_at(lx->text + at)))
        at += mt_utf8_size(lx->text[at]);
    return at;
}

/* The end of the text before a tag without trailing white space: all of it for the sign '-'; for strip_line without
   '+', white space that stands alone on the tag's line. */
static size_t strip_before(const lexer *lx, size_t begin, size_t end, char sign, bool strip_line)
{
    size_t at = end;

    if (sign == '+' || (sign != '-' && !strip_line))
        return end;
    while (at > begin) {
        size_t before = mt_utf8_before(lx->text, at);

        if (!mt_tpl_is_space(mt_utf8_at(lx->text + before)) || (sign != '-' && lx->text[before] == '\n'))
            break;
        at = before;
    }
    if (sign == '-')
        return at;
    return at == 0 || lx->text[at - 1] == '\n' ? at : end;
}

/* The sign after a tag's opening at `at`; 0: none. */
static char sign_at(const lexer *lx, size_t at)
{
    return at < lx->len && (lx->text[at] == '-' || lx->text[at] == '+') ? lx->text[at] : '\0';
}

/* Whether a tag ends at `at`. *next: what follows it. trim: a line break right after the tag is dropped. */
static bool tag_end(const lexer *lx, size_t at, const char *close, bool plus, bool trim, size_t *next)
{
    if (at < lx->len && lx->text[at] == '-' && is_at(lx, at + 1, close)) {
        *next = skip_space(lx, at + 3);
        return true;
    }
    if (plus && at < lx->len && lx->text[at] == '+' && is_at(lx, at + 1, close)) {
        *next = at + 3;
        return true;
    }
    if (!is_at(lx, at, close))
        return false;
    *next = at + 2 + (trim && at + 2 < lx->len && lx->text[at + 2] == '\n');
    return true;
}

/* Whether a tag has only that word, such as {%- raw %}. */
static bool word_tag(const lexer *lx, size_t at, const char *word, bool plus, bool trim, size_t *next)
{
    at += 2;
    if (sign_at(lx, at))
        at++;
    at = skip_space(lx, at);
    return is_at(lx, at, word) && tag_end(lx, skip_space(lx, at + strlen(word)), "%}", plus, trim, next);
}

static void lex_raw(lexer *lx, size_t begin)
{
    size_t next = begin;

    for (size_t at = begin; at < lx->len; at++) {
        if (!is_at(lx, at, "{%") || !word_tag(lx, at, "endraw", true, true, &next))
            continue;
        lx->at = next;
        add_data(lx, begin, strip_before(lx, begin, at, sign_at(lx, at + 2), true));
        return;
    }
    lx->at = lx->len;
    if (begin < lx->len)
        mt_tpl_fail_at(lx->run, place_of(lx, begin), "Missing end of raw directive");
}

static void lex_comment(lexer *lx, size_t begin)
{
    for (size_t at = begin; at < lx->len; at++)
        if (tag_end(lx, at, "#}", true, true, &lx->at))
            return;
    lx->at = lx->len;
    if (begin < lx->len)
        mt_tpl_fail_at(lx->run, place_of(lx, begin), "Missing end of comment tag");
}

static void lex_name(lexer *lx)
{
    size_t begin = lx->at;

    while (lx->at < lx->len && mt_tpl_is_name(mt_utf8_at(lx->text + lx->at)))
        lx->at += mt_utf8_size(lx->text[lx->at]);
    add_text(lx, MT_TPL_T_NAME, begin, lx->at);
}

/* Skips digits with single underscores between them. Returns the position after them; `at` where there is no digit. */
static size_t skip_digits(const lexer *lx, size_t at, int base)
{
    size_t end = at;

    while (at < lx->len) {
        unsigned char c = (unsigned char)lx->text[at];

        if (base == 16 ? isxdigit(c) : c >= '0' && c < '0' + base)
            end = ++at;
        else if (c == '_' && end == at && at > 0 && lx->text[at - 1] != '_')
            at++;
        else
            break;
    }
    return end;
}

/* Where a float that begins at `at` ends; `at`: it is none. */
static size_t float_end(const lexer *lx, size_t at)
{
    size_t digits = skip_digits(lx, at, 10), end = digits, exponent;

    if (digits == at || (at > 0 && lx->text[at - 1] == '.'))
        return at;
    if (end < lx->len && lx->text[end] == '.') {
        size_t fraction = skip_digits(lx, end + 1, 10);

        end = fraction > end + 1 ? fraction : end;
    }
    if (end < lx->len && (lx->text[end] == 'e' || lx->text[end] == 'E')) {
        exponent = end + 1;
        if (exponent < lx->len && (lx->text[exponent] == '+' || lx->text[exponent] == '-'))
            exponent++;
        if (skip_digits(lx, exponent, 10) > exponent)
            end = skip_digits(lx, exponent, 10);
    }
    return end > digits ? end : at;
}

static size_t integer_end(const lexer *lx, size_t at)
{
    char second = at + 1 < lx->len ? (char)tolower((unsigned char)lx->text[at + 1]) : '\0';
    int base = second == 'b' ? 2 : second == 'o' ? 8 : second == 'x' ? 16 : 0;
    size_t end;

    if (lx->text[at] != '0')
        return skip_digits(lx, at, 10);
    end = base ? skip_digits(lx, at + 2, base) : at;
    return base && end > at + 2 ? end : skip_digits(lx, at, 1);
}

static void lex_number(lexer *lx)
{
    size_t begin = lx->at, end = float_end(lx, begin);
    mt_tpl_token *token = add(lx, end > begin ? MT_TPL_T_FLOAT : MT_TPL_T_INTEGER, begin);
    mt_tpl_str number = {.data = lx->text + begin, .chars = MT_TPL_UNCOUNTED};
    bool huge = false, ok;

    lx->at = token->type == MT_TPL_T_FLOAT ? end : integer_end(lx, begin);
    number.len = lx->at - begin;
    ok = token->type == MT_TPL_T_FLOAT ? mt_tpl_parse_float(&number, &token->real)
                                       : mt_tpl_parse_int(&number, 0, &token->integer, &huge);
    if (huge)
        mt_tpl_fail_huge(lx->run);
    else if (!ok)
        mt_tpl_fail(lx->run, "a number of more than %d digits; write it shorter", NUMBER_MAX);
    mt_tpl_locate(lx->run, place_of(lx, begin));
}

static void lex_string(lexer *lx)
{
    size_t begin = lx->at, at = begin + 1;
    char quote = lx->text[begin];

    while (at < lx->len && lx->text[at] != quote)
        at += lx->text[at] == '\\' ? 2 : 1;
    if (at >= lx->len)
        mt_tpl_fail(lx->run, "unexpected char %c at %zu; the string has no end", quote, begin);
    else
        add(lx, MT_TPL_T_STRING, begin)->str =
            counted(mt_tpl_lex_unescape(lx->run, lx->text + begin + 1, at - begin - 1));
    mt_tpl_locate(lx->run, place_of(lx, begin));
    lx->at = at + 1;
}

static void balance(lexer *lx, char c)
{
    if (c == '(' || c == '[' || c == '{') {
        if (lx->open_count == sizeof(lx->open))
            mt_tpl_fail_limit(lx->run, "more than %zu brackets inside one another", sizeof(lx->open));
        else
            lx->open[lx->open_count++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        if (lx->open_count == 0)
            mt_tpl_fail(lx->run, "unexpected '%c'", c);
        else if (lx->open[--lx->open_count] != c)
            mt_tpl_fail(lx->run, "unexpected '%c', expected '%c'", c, lx->open[lx->open_count]);
    }
}

static void lex_operator(lexer *lx)
{
    size_t i = 0;

    while (i < MT_COUNT(operators) && !is_at(lx, lx->at, operators[i]))
        i++;
    if (i == MT_COUNT(operators)) {
        mt_tpl_fail_at(lx->run, place_of(lx, lx->at), "unexpected char '%.*s'", (int)mt_utf8_size(lx->text[lx->at]),
                       lx->text + lx->at);
        return;
    }
    add(lx, operator_type(i), lx->at);
    balance(lx, operators[i][0]);
    mt_tpl_locate(lx->run, place_of(lx, lx->at));
    lx->at += strlen(operators[i]);
}

static void lex_token(lexer *lx)
{
    const char c = lx->text[lx->at];

    if (isdigit((unsigned char)c))
        lex_number(lx);
    else if (c == '"' || c == '\'')
        lex_string(lx);
    else if (mt_tpl_is_name_start(mt_utf8_at(lx->text + lx->at)))
        lex_name(lx);
    else
        lex_operator(lx);
}

/* Reads from after {{ or {% to after its end. */
static void lex_tag(lexer *lx, bool block)
{
    size_t next;

    while (!lx->run->failed && (lx->at = skip_space(lx, lx->at)) < lx->len) {
        if (lx->open_count == 0 && tag_end(lx, lx->at, block ? "%}" : "}}", block, block, &next)) {
            add(lx, block ? MT_TPL_T_BLOCK_END : MT_TPL_T_VARIABLE_END, lx->at);
            lx->at = next;
            return;
        }
        lex_token(lx);
    }
}

/* The position of the next {%, {{ or {#; lx->len: none. */
static size_t find_tag(const lexer *lx, size_t at)
{
    for (; at + 1 < lx->len; at++)
        if (lx->text[at] == '{' && (lx->text[at + 1] == '%' || lx->text[at + 1] == '{' || lx->text[at + 1] == '#'))
            return at;
    return lx->len;
}

static void lex_all(lexer *lx)
{
    while (!lx->run->failed && lx->at < lx->len) {
        size_t begin = lx->at, tag = find_tag(lx, begin), next;
        char kind, sign;

        if (tag == lx->len) {
            add_data(lx, begin, lx->len);
            return;
        }
        kind = lx->text[tag + 1];
        sign = sign_at(lx, tag + 2);
        add_data(lx, begin, strip_before(lx, begin, tag, sign, kind != '{'));
        lx->at = tag + 2 + (sign != '\0');
        if (kind == '%' && word_tag(lx, tag, "raw", false, false, &next)) {
            lex_raw(lx, next);
        } else if (kind == '#') {
            lex_comment(lx, lx->at);
        } else {
            add(lx, kind == '%' ? MT_TPL_T_BLOCK_BEGIN : MT_TPL_T_VARIABLE_BEGIN, tag);
            lex_tag(lx, kind == '%');
        }
    }
}

/* A copy with \n for every line break, without one at the end. */
static char *normalise(mt_tpl_run *run, const char *text, size_t len, size_t *out_len)
{
    char *copy = mt_tpl_alloc(run, len + 1);
    size_t n = 0;

    if (!copy)
        return NULL;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\r')
            copy[n++] = text[i];
        else if (i + 1 == len || text[i + 1] != '\n')
            copy[n++] = '\n';
    }
    *out_len = n - (n > 0 && copy[n - 1] == '\n');
    return copy;
}

static bool check_utf8(lexer *lx)
{
    for (size_t at = 0, n; at < lx->len; at += n) {
        n = mt_utf8_length(lx->text + at, lx->len - at);
        if (n == 0)
            return mt_tpl_fail_at(lx->run, place_of(lx, at), "a byte that is not UTF-8; save the template as UTF-8");
    }
    return true;
}

bool mt_tpl_lex(mt_tpl_run *run, const char *text, size_t len, mt_tpl_token **out)
{
    lexer lx = {.run = run, .place = {1, 1}};

    lx.text = normalise(run, text, len, &lx.len);
    if (!lx.text || !check_utf8(&lx))
        return false;
    lex_all(&lx);
    add(&lx, MT_TPL_T_EOF, lx.len);
    *out = lx.tokens;
    return !run->failed;
}
