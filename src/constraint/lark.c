/* Reads Lark's notation (lark.h) by recursive descent, straight into a grammar.

   Lark cuts a text into terminals first, always the longest, and then parses these. Here a terminal is any of its
   matches, so a text is allowed where some cut of it can be parsed: priorities and the order of alternatives do not
   matter. Ignored terminals may stand before each terminal of a rule and at the end.

   A rule that begins with itself, as in  sum: term | sum "+" term,  is read as  term ("+" term)*;  other ways to begin
   with itself are refused when the grammar is compiled. */
#include "constraint/lark.h"

#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "constraint/grammar_names.h"
#include "constraint/limits.h"

typedef struct reader {
    mt_grammar *g;
    const mt_lark_text *how;
    mt_arena *arena; /* of regular expressions */
    const char *text;
    size_t len, at, depth;
    mt_grammar_names names;
    mt_grammar_parts ignored;
    mt_rule skip;     /* what may stand before a terminal */
    bool skips;       /* there is such */
    bool terminal;    /* a terminal is being defined, not a rule */
    const char *self; /* the name of the rule that is being defined */
    size_t self_len;
    mt_error *err;
} reader;

static bool fail(const reader *r, const char *what)
{
    return mt_grammar_fail("the Lark grammar", what, r->text, r->at < r->len ? r->at : r->len, r->err);
}

static char look(const reader *r, size_t ahead)
{
    return r->at + ahead < r->len ? r->text[r->at + ahead] : '\0';
}

static bool begins(const reader *r, const char *text)
{
    return r->len - r->at >= strlen(text) && memcmp(r->text + r->at, text, strlen(text)) == 0;
}

static bool accept(reader *r, const char *text)
{
    const bool there = begins(r, text);

    r->at += there ? strlen(text) : 0;
    return there;
}

/* Skips blanks and comments; lines: and line breaks. */
static void skip_space(reader *r, bool lines)
{
    for (;; r->at++) {
        const char c = look(r, 0);

        if (c == '#' || begins(r, "//"))
            while (r->at < r->len && look(r, 0) != '\n')
                r->at++;
        if (r->at == r->len || (look(r, 0) == '\n' ? !lines : !strchr(" \t\r", look(r, 0)) || !look(r, 0)))
            return;
    }
}

/* Moves to the next thing of a definition; false: it ends here. A line that begins with "|" goes on with it, and so
   does any within brackets. */
static bool more(reader *r)
{
    size_t end;

    skip_space(r, r->depth > 0);
    if (look(r, 0) != '\n')
        return r->at < r->len;
    end = r->at;
    skip_space(r, true);
    if (look(r, 0) == '|')
        return true;
    r->at = end;
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t name_length(const reader *r)
{
    size_t len = 0;

    while (is_letter(look(r, len)) || (len > 0 && is_digit(look(r, len))))
        len++;
    return len;
}

/* Whether a name is a terminal's: its first letter is a capital. */
static bool is_terminal(const char *name, size_t len)
{
    while (len > 1 && *name == '_')
        name++, len--;
    return *name >= 'A' && *name <= 'Z';
}

/* An anonymous or a named terminal, within a rule. */
static mt_expr with_skip(reader *r, mt_expr e)
{
    return r->terminal || !r->skips ? e : mt_grammar_seq(r->g, mt_grammar_call(r->g, r->skip), e);
}

/* ---- texts and regular expressions ---- */

static bool read_escape(reader *r, uint32_t *code)
{
    static const char names[] = "nrtfv0", values[] = "\n\r\t\f\v\0";
    const char c = look(r, 0), *name = c ? strchr(names, c) : NULL;
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;

    *code = name ? (unsigned char)values[name - names] : (unsigned char)c;
    r->at++;
    if (digits)
        *code = 0;
    for (size_t i = 0; i < digits; i++, r->at++) {
        const int digit = mt_hex_digit(look(r, 0));

        if (digit < 0)
            return fail(r, "has an escape without its digits");
        *code = *code << 4 | (uint32_t)digit;
    }
    return (*code <= MT_CHAR_MAX && !(*code >= 0xd800 && *code < 0xe000)) ||
           fail(r, "has an escape that is no character");
}

static mt_expr one_char(const reader *r, uint32_t code, bool both_cases)
{
    const uint32_t lower = code | 0x20, upper = code & ~0x20u;
    const bool letter = both_cases && lower >= 'a' && lower <= 'z' && code < 0x80;
    const mt_char_range ranges[] = {{letter ? upper : code, letter ? upper : code}, {lower, lower}};

    return r->how->write(r->g, ranges, letter ? 2 : 1);
}

/* The end of the text that begins behind a quote, or len. */
static size_t find_quote(const reader *r)
{
    size_t at = r->at;

    while (at < r->len && r->text[at] != '"' && r->text[at] != '\n')
        at += r->text[at] == '\\' ? 2 : 1;
    return at < r->len && r->text[at] == '"' ? at : r->len;
}

/* Adds the characters of a text up to its end. *last: the last of them. */
static bool read_chars(reader *r, size_t end, bool both_cases, mt_grammar_parts *parts, uint32_t *last)
{
    bool ok = true;

    while (ok && r->at < end) {
        const size_t len = mt_utf8_length(r->text + r->at, end - r->at);
        uint32_t code;

        if (len == 0)
            return fail(r, "is not UTF-8");
        code = mt_utf8_at(r->text + r->at);
        r->at += len;
        ok = code != '\\' || read_escape(r, &code);
        *last = code;
        if (ok)
            mt_grammar_parts_add(parts, one_char(r, code, both_cases));
    }
    return ok;
}

/* Reads what follows the first text of a range "a".."z". count: characters of that text. */
static bool read_range(reader *r, uint32_t low, size_t count, mt_expr *out)
{
    const size_t end = find_quote(r);
    mt_grammar_parts parts = {0};
    uint32_t high = 0;
    const bool ok =
        end < r->len && read_chars(r, end, false, &parts, &high) && count == 1 && parts.count == 1 && high >= low;

    mt_free(parts.at);
    if (!ok)
        return fail(r, "has a range that is not of two characters in their order");
    r->at = end + 1;
    *out = r->how->write(r->g, &(mt_char_range){low, high}, 1);
    return true;
}

/* Called behind the opening quote. */
static bool read_text(reader *r, mt_expr *out)
{
    const size_t end = find_quote(r);
    const bool both_cases = end + 1 < r->len && r->text[end + 1] == 'i';
    mt_grammar_parts parts = {0};
    uint32_t low = 0;
    bool ok;

    if (end == r->len)
        return fail(r, "has a text without its end");
    ok = read_chars(r, end, both_cases, &parts, &low);
    if (ok) {
        r->at = end + 1 + both_cases;
        *out = mt_grammar_list(r->g, parts.at, parts.count);
        ok = !accept(r, "..\"") || read_range(r, low, parts.count, out);
        *out = ok ? with_skip(r, *out) : 0;
    }
    mt_free(parts.at);
    return ok;
}

/* A regular expression that matches the text, in the arena. */
static const char *escape(reader *r, const char *text)
{
    mt_buf out = {.limit = MT_LIMIT_GRAMMAR_TEXT};
    const char *copy;

    for (; *text; text++) {
        mt_buf_puts(&out, strchr("\\^$.|?*+()[]{}/", *text) ? "\\" : "");
        mt_buf_add(&out, text, 1);
    }
    copy = mt_arena_printf(r->arena, "%s", out.data ? out.data : "");
    mt_buf_free(&out);
    return copy;
}

static bool regex_expr(reader *r, const char *pattern, size_t len, mt_expr *out)
{
    mt_error why = {0};
    const mt_regex *all = mt_regex_read(r->arena, pattern, len, false, &why), *none = NULL;
    const char *without = r->how->without ? escape(r, r->how->without) : NULL;
    const mt_regex_query query = {
        .all = &all, .all_count = 1, .none = &none, .none_count = without ? 1 : 0, .most = MT_GRAMMAR_UNLIMITED};

    if (without)
        none = mt_regex_read(r->arena, without, strlen(without), true, &why);
    if (!all || (without && !none))
        return mt_fail(r->err, MT_E_INVALID, "the Lark grammar has an expression that cannot be followed: %s",
                       why.text);
    if (!all->aware && !without)
        *out = mt_regex_expr(all, r->g, r->how->write);
    else if (!mt_regex_query_expr(&query, r->g, r->how->write, out))
        return mt_grammar_stopped(r->g) ? mt_grammar_say_stopped(r->g->patience, r->err)
                                        : fail(r, "has an expression that takes too many states");
    return true;
}

/* The expression with each dot outside of classes as any character, as the flag s has it. */
static const char *with_dots(reader *r, const char *pattern, size_t len, size_t *out_len)
{
    mt_buf out = {.limit = 8 * len + 1};
    const char *copy;
    bool class = false;

    for (size_t i = 0; i < len; i++) {
        if (pattern[i] == '\\' && i + 1 < len) {
            mt_buf_add(&out, pattern + i++, 2);
            continue;
        }
        class = class ? pattern[i] != ']' : pattern[i] == '[';
        if (pattern[i] == '.' && !class)
            mt_buf_puts(&out, "[\\s\\S]");
        else
            mt_buf_add(&out, pattern + i, 1);
    }
    *out_len = out.len;
    copy = mt_arena_copy(r->arena, out.data ? out.data : "", out.len);
    mt_buf_free(&out);
    return copy;
}

/* Called behind the opening slash. */
static bool read_regex(reader *r, mt_expr *out)
{
    const char *pattern = r->text + r->at;
    size_t len = 0, flags = 0;
    bool dots = false;

    while (r->at + len < r->len && pattern[len] != '/' && pattern[len] != '\n')
        len += pattern[len] == '\\' ? 2 : 1;
    if (r->at + len >= r->len || pattern[len] != '/' || len == 0)
        return fail(r, "has a regular expression without its end");
    r->at += len + 1;
    for (; look(r, flags) && strchr("imslux", look(r, flags)); flags++) {
        dots |= look(r, flags) == 's';
        if (!strchr("su", look(r, flags)))
            return fail(r, "has a regular expression with a flag other than s and u, which is not supported:");
    }
    r->at += flags;
    if (dots)
        pattern = with_dots(r, pattern, len, &len);
    if (!regex_expr(r, pattern, len, out))
        return false;
    *out = with_skip(r, *out);
    return true;
}

/* ---- rules ---- */

static bool read_any(reader *r, mt_expr *out);

static bool read_group(reader *r, const char *close, mt_expr *out)
{
    bool ok;

    if (++r->depth > MT_LIMIT_GRAMMAR_NESTING)
        return fail(r, "has too many groups within one another");
    ok = read_any(r, out);
    r->depth--;
    return ok && (accept(r, close) || fail(r, "has a bracket that is not closed"));
}

static bool read_name(reader *r, mt_expr *out)
{
    const char *name = r->text + r->at;
    const size_t len = name_length(r);

    if (look(r, len) == '{')
        return fail(r, "uses a template, which is not supported: write it out,");
    if (r->terminal && !is_terminal(name, len))
        return fail(r, "has a terminal that uses a rule");
    r->at += len;
    *out = mt_grammar_call(r->g, mt_grammar_names_find(&r->names, name, len)->rule);
    if (is_terminal(name, len))
        *out = with_skip(r, *out);
    return true;
}

static bool read_item(reader *r, mt_expr *out)
{
    if (mt_grammar_full(r->g))
        return false;
    if (accept(r, "\""))
        return read_text(r, out);
    if (accept(r, "/"))
        return read_regex(r, out);
    if (accept(r, "("))
        return read_group(r, ")", out);
    if (accept(r, "[")) {
        const bool ok = read_group(r, "]", out);

        *out = ok ? mt_grammar_maybe(r->g, *out) : 0;
        return ok;
    }
    return name_length(r) ? read_name(r, out) : fail(r, "has something that is no text, expression, group or name");
}

static bool read_number(reader *r, uint32_t *out)
{
    const size_t begin = r->at;

    for (*out = 0; is_digit(look(r, 0)); r->at++)
        *out = *out < MT_LIMIT_GRAMMAR_NODES ? *out * 10 + (uint32_t)(look(r, 0) - '0') : *out;
    return (r->at > begin && *out < MT_LIMIT_GRAMMAR_NODES) || fail(r, "has bounds that are no numbers or too large");
}

/* Reads what may follow an item: * + ? ~ 3 ~ 2..5 */
static bool read_repeated(reader *r, mt_expr *out, bool *bare)
{
    uint32_t least = 0, most = MT_GRAMMAR_UNLIMITED;

    if (!read_item(r, out))
        return false;
    skip_space(r, false);
    *bare = false;
    if (accept(r, "~")) {
        skip_space(r, false);
        if (!read_number(r, &least))
            return false;
        most = least;
        skip_space(r, false);
        if (accept(r, "..")) {
            skip_space(r, false);
            if (!read_number(r, &most))
                return false;
        }
        if (most < least)
            return fail(r, "has bounds in the wrong order");
    } else if (accept(r, "+"))
        least = 1;
    else if (accept(r, "?"))
        most = 1;
    else if (!accept(r, "*")) {
        *bare = true;
        return true;
    }
    *out = mt_grammar_repeat(r->g, *out, least, most);
    return true;
}

/* Skips the name that a tree would have, -> name. */
static bool read_alias(reader *r)
{
    if (!accept(r, "->"))
        return true;
    skip_space(r, false);
    r->at += name_length(r);
    return (more(r), look(r, 0) == '|' || look(r, 0) == '\n' || r->at == r->len) ||
           fail(r, "has something behind the name of an alternative");
}

/* Reads an alternative. *again: it begins with the rule itself, and *out is the rest. */
static bool read_list(reader *r, mt_expr *out, bool *again)
{
    mt_grammar_parts list = {0};
    bool ok = true;

    *again = false;
    while (ok && more(r) && !strchr("|)]", look(r, 0)) && !begins(r, "->")) {
        const bool self = list.count == 0 && !*again && r->depth == 0 && !r->terminal && r->self_len > 0 &&
                          name_length(r) == r->self_len && memcmp(r->text + r->at, r->self, r->self_len) == 0;
        mt_expr item = 0;
        bool bare = false;

        ok = read_repeated(r, &item, &bare);
        if (self && bare)
            *again = true;
        else
            mt_grammar_parts_add(&list, item);
    }
    *out = mt_grammar_list(r->g, list.at, list.count);
    mt_free(list.at);
    return ok && read_alias(r);
}

/* Reads alternatives, separated by "|". */
static bool read_any(reader *r, mt_expr *out)
{
    mt_grammar_parts first = {0}, rest = {0};
    bool ok, again;

    do {
        mt_expr one = 0;

        ok = read_list(r, &one, &again);
        mt_grammar_parts_add(again ? &rest : &first, one);
    } while (ok && more(r) && accept(r, "|"));
    *out = mt_grammar_any(r->g, first.at, first.count);
    if (rest.count)
        *out = mt_grammar_seq(
            r->g, *out, mt_grammar_repeat(r->g, mt_grammar_any(r->g, rest.at, rest.count), 0, MT_GRAMMAR_UNLIMITED));
    mt_free(first.at);
    mt_free(rest.at);
    return ok;
}

static bool define(reader *r, const char *name, size_t len, mt_expr value)
{
    mt_grammar_name *s = mt_grammar_names_find(&r->names, name, len);

    if (s->defined)
        return fail(r, "defines a name twice");
    s->defined = true;
    mt_grammar_define(r->g, s->rule, value);
    return true;
}

/* Reads  name: ...,  with the marks and the priority that a name may have. */
static bool read_rule(reader *r)
{
    const char *name;
    size_t len;
    mt_expr value = 0;

    while (look(r, 0) == '?' || look(r, 0) == '!')
        r->at++;
    name = r->text + r->at;
    len = name_length(r);
    if (len == 0)
        return fail(r, "has something that is no rule (name: ...)");
    r->at += len;
    if (look(r, 0) == '{')
        return fail(r, "defines a template, which is not supported: write it out,");
    if (accept(r, "."))
        r->at += look(r, 0) == '-';
    while (is_digit(look(r, 0)))
        r->at++;
    skip_space(r, false);
    if (!accept(r, ":"))
        return fail(r, "has something that is no rule (name: ...)");
    r->terminal = is_terminal(name, len);
    r->self = name;
    r->self_len = len;
    return read_any(r, &value) && define(r, name, len, value);
}

/* ---- directives ---- */

static const char *common(const char *name, size_t len)
{
#define EXPONENT "[eE][+-]?[0-9]+"
#define DECIMAL "(?:[0-9]+\\.[0-9]*|\\.[0-9]+)"
#define FLOAT "(?:[0-9]+" EXPONENT "|" DECIMAL "(?:" EXPONENT ")?)"
    static const char *const rows[][2] = {
        {"DIGIT", "[0-9]"},
        {"HEXDIGIT", "[0-9a-fA-F]"},
        {"INT", "[0-9]+"},
        {"SIGNED_INT", "[+-]?[0-9]+"},
        {"DECIMAL", DECIMAL},
        {"FLOAT", FLOAT},
        {"SIGNED_FLOAT", "[+-]?" FLOAT},
        {"NUMBER", FLOAT "|[0-9]+"},
        {"SIGNED_NUMBER", "[+-]?(?:" FLOAT "|[0-9]+)"},
        {"ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\[^\\n])*\""},
        {"LCASE_LETTER", "[a-z]"},
        {"UCASE_LETTER", "[A-Z]"},
        {"LETTER", "[a-zA-Z]"},
        {"WORD", "[a-zA-Z]+"},
        {"CNAME", "[_a-zA-Z][_a-zA-Z0-9]*"},
        {"WS_INLINE", "[ \\t]+"},
        {"WS", "[ \\t\\f\\r\\n]+"},
        {"CR", "\\r"},
        {"LF", "\\n"},
        {"NEWLINE", "(?:\\r?\\n)+"},
        {"SH_COMMENT", "#[^\\n]*"},
        {"CPP_COMMENT", "\\/\\/[^\\n]*"},
        {"C_COMMENT", "\\/\\*(?:[^*]|\\*+[^*\\/])*\\*+\\/"},
        {"SQL_COMMENT", "--[^\\n]*"},
    };

    for (size_t i = 0; i < MT_COUNT(rows); i++)
        if (strlen(rows[i][0]) == len && memcmp(rows[i][0], name, len) == 0)
            return rows[i][1];
    return NULL;
}

/* Reads the name of a terminal of Lark's module common, perhaps with another name for it: NAME -> OTHER. */
static bool import_one(reader *r)
{
    const char *name = r->text + r->at, *pattern;
    size_t len = name_length(r);
    mt_expr value = 0;

    r->at += len;
    pattern = common(name, len);
    if (!pattern)
        return fail(r, "imports something that Lark's common terminals do not have");
    skip_space(r, false);
    if (accept(r, "->")) {
        skip_space(r, false);
        name = r->text + r->at;
        len = name_length(r);
        r->at += len;
    }
    r->terminal = true;
    return (len > 0 || fail(r, "has an import without a name")) && regex_expr(r, pattern, strlen(pattern), &value) &&
           define(r, name, len, value);
}

static bool read_import(reader *r)
{
    bool ok = true;

    if (!accept(r, "common"))
        return fail(r, "imports from something else than common, which is not supported: write it out,");
    if (accept(r, "."))
        return import_one(r);
    skip_space(r, false);
    if (!accept(r, "("))
        return fail(r, "has an import without a name");
    do {
        skip_space(r, true);
        ok = import_one(r);
        skip_space(r, true);
    } while (ok && accept(r, ","));
    return ok && (accept(r, ")") || fail(r, "has a bracket that is not closed"));
}

static bool read_directive(reader *r)
{
    mt_expr value = 0;

    r->self_len = 0;
    if (accept(r, "%import")) {
        skip_space(r, false);
        return read_import(r);
    }
    if (!accept(r, "%ignore"))
        return fail(r, "has a directive other than %import and %ignore, which is not supported,");
    r->terminal = true;
    if (!read_any(r, &value))
        return false;
    mt_grammar_parts_add(&r->ignored, value);
    return true;
}

static bool read_all(reader *r, mt_expr *out)
{
    mt_rule start;
    bool ok = true;

    for (skip_space(r, true); ok && r->at < r->len && !mt_grammar_full(r->g); skip_space(r, true)) {
        ok = look(r, 0) == '%' ? read_directive(r) : read_rule(r);
        if (ok && more(r))
            ok = fail(r, "has something behind the end of a rule");
    }
    *out = mt_grammar_never(r->g);
    if (mt_grammar_full(r->g)) /* compiling reports it */
        return true;
    if (!ok || !mt_grammar_names_check(&r->names, r->err))
        return false;
    if (!mt_grammar_names_rule(&r->names, "start", &start))
        return mt_fail(r->err, MT_E_INVALID, "the Lark grammar has no rule \"start\"; add one");
    mt_grammar_define(
        r->g, r->skip,
        mt_grammar_repeat(r->g, mt_grammar_any(r->g, r->ignored.at, r->ignored.count), 0, MT_GRAMMAR_UNLIMITED));
    *out = mt_grammar_seq(r->g, mt_grammar_call(r->g, start), mt_grammar_call(r->g, r->skip));
    return true;
}

static bool has(const char *text, size_t len, const char *word)
{
    return memmem(text, len, word, strlen(word)) != NULL;
}

bool mt_lark_expr(mt_grammar *g, const mt_lark_text *how, const char *text, size_t len, mt_expr *out, mt_error *err)
{
    reader r = {.g = g, .how = how, .text = text, .len = len, .names = {.g = g}, .err = err};
    bool ok;

    if (len > MT_LIMIT_GRAMMAR_TEXT)
        return mt_fail(err, MT_E_INVALID, "the grammar has %zu bytes; write at most %u", len, MT_LIMIT_GRAMMAR_TEXT);
    r.arena = mt_arena_new(0);
    r.skips = has(text, len, "%ignore");
    r.skip = mt_grammar_rule(g);
    ok = read_all(&r, out);
    mt_grammar_names_free(&r.names);
    mt_free(r.ignored.at);
    mt_arena_free(r.arena);
    return ok;
}

bool mt_lark_is(const char *text, size_t len)
{
    return !has(text, len, "::=") && has(text, len, "start") && has(text, len, ":");
}
