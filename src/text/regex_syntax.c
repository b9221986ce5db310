/* Translates regular expressions from the syntax of Oniguruma (Ruby's), which tokenizer.json uses, to that of PCRE2.

   Most of the two syntaxes is the same. These forms differ and occur:

     \s \d \w \h and their opposites   Unicode's White_Space, Nd, words; hexadecimal digits
     [a[bc]] [a&&[^b]]                 sets inside sets: a union, an intersection
     [[:alpha:]]                       Alphabetic, where PCRE2 means letters
     x{,n} x{n}+ x{n}?                 {0,n}; repeated once more, not possessive; optional, not lazy
     \uHHHH, \p{^L}, (?m)              \x{HHHH}, \P{L}, (?s)
     \p{L} \p{Letter} \p{Han}          \p{L} \p{L} \p{sc:Han}; if `newer`, with the characters of Unicode 16, since
                                       PCRE2's tables may be older

   A set becomes one bracket expression if possible. Otherwise it becomes an expression that still matches exactly one
   character: alternatives for a union with a negated set, lookaheads for an intersection.

   ^ and $ match at every line; regex.c sets that as an option of PCRE2. */
#include "base/utf8.h"
#include "text/regex.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "text/limits.h"
#include "text/unicode_data.h"

#define SPACES \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define NOT_SPACES                                                                                                     \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{10ffff}"
#define WORDS                                                                                        \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}" \
    "\\x{1f170}-\\x{1f189}"
#define HEXES "0-9a-fA-F"

enum { MOST_DEPTH = 32 };

typedef struct syntax {
    const char *in;
    size_t len, at;
    mt_buf *out;
    size_t atom;               /* the offset in `out` of the last item, which a quantifier may follow */
    size_t groups[MOST_DEPTH]; /* the offset in `out` of each open group */
    size_t depth;
    bool newer; /* write properties as Unicode 16 has them */
    mt_error *err;
} syntax;

/* An escape for a class of characters: the inside of its bracket expression, and that of its complement. */
typedef struct shorthand {
    char letter, opposite;
    const char *inside, *outside; /* outside is NULL: the complement can only be written as a negated class */
} shorthand;

static const shorthand shorthands[] = {
    {'s', 'S', SPACES, NOT_SPACES},
    {'d', 'D', "\\p{Nd}", NULL},
    {'w', 'W', WORDS, NULL},
    {'h', 'H', HEXES, NULL},
};

/* The named classes that PCRE2 defines differently. */
static const struct {
    const char *name, *inside;
} classes[] = {
    {"[:alpha:]", "\\p{Alphabetic}"},
    {"[:alnum:]", "\\p{Alphabetic}\\p{Nd}"},
    {"[:digit:]", "\\p{Nd}"},
    {"[:space:]", SPACES},
    {"[:word:]", WORDS},
};

static const shorthand *find_shorthand(char letter)
{
    for (size_t i = 0; i < MT_COUNT(shorthands); i++)
        if (shorthands[i].letter == letter || shorthands[i].opposite == letter)
            return &shorthands[i];
    return NULL;
}

static bool fail_syntax(syntax *x, const char *what)
{
    return mt_fail(x->err, MT_E_UNSUPPORTED, "it has a regular expression with %s at byte %zu; use another file", what,
                   x->at);
}

static char peek(const syntax *x, size_t ahead)
{
    return x->len - x->at > ahead ? x->in[x->at + ahead] : '\0';
}

static bool at_text(const syntax *x, const char *text)
{
    size_t len = strlen(text);

    return x->len - x->at >= len && memcmp(x->in + x->at, text, len) == 0;
}

/* Copies n bytes of the pattern, or all that is left. */
static void copy(syntax *x, mt_buf *out, size_t n)
{
    n = n < x->len - x->at ? n : x->len - x->at;
    mt_buf_add(out, x->in + x->at, n);
    x->at += n;
}

static void copy_through(syntax *x, mt_buf *out, const char *last)
{
    while (x->at < x->len && !at_text(x, last))
        copy(x, out, 1);
    copy(x, out, strlen(last));
}

/* Whether the name denotes the property. Case, "_", "-" and blanks do not matter. */
static bool same_name(const char *name, size_t len, const char *property)
{
    for (size_t i = 0; i < len; i++) {
        if (name[i] == '_' || name[i] == '-' || name[i] == ' ')
            continue;
        property += *property == '_';
        if (tolower((unsigned char)name[i]) != tolower((unsigned char)*property++))
            return false;
    }
    return *property == '\0';
}

/* The property of that name; NULL: it is not in the table of properties that changed. */
static const mt_unicode_property *find_property(const char *name, size_t len)
{
    for (size_t i = 0; i < mt_unicode_property_count; i++) {
        const mt_unicode_property *p = &mt_unicode_properties[i];

        if (same_name(name, len, p->native + (strncmp(p->native, "sc:", 3) == 0 ? 3 : 0)) ||
            (p->longer && same_name(name, len, p->longer)))
            return p;
    }
    return NULL;
}

/* Whether one of the words equals the property, or belongs to the group of categories that it is. */
static bool is_named(const char *words, const char *property)
{
    for (size_t len; *words; words += len + (words[len] == ' ')) {
        len = strcspn(words, " ");
        if (strlen(property) == len && memcmp(words, property, len) == 0)
            return true;
        if (len == 2 && (strcmp(property, "LC") == 0 ? words[0] == 'L' && strchr("ult", words[1])
                                                     : property[0] == words[0] && property[1] == '\0'))
            return true;
    }
    return false;
}

/* Writes the characters that the property has gained (or lost, if not `gained`) from Unicode 14 to 16, as the inside of
   a bracket expression. `out` may be NULL. Returns whether there are any. */
static bool put_changes(const syntax *x, mt_buf *out, const mt_unicode_property *p, bool gained)
{
    bool any = false;

    for (size_t i = 0; x->newer && i < mt_unicode_change_count; i++) {
        const mt_unicode_change *c = &mt_unicode_changes[i];
        const bool now = is_named(c->now, p->native), was = is_named(c->was, p->native);

        if (now == was || now != gained)
            continue;
        any = true;
        if (out)
            mt_buf_printf(out, "\\x{%" PRIX32 "}-\\x{%" PRIX32 "}", c->of.first, c->of.last);
    }
    return any;
}

/* Writes the inside of a shorthand or named class, whose properties have only gained characters. */
static void put_inside(const syntax *x, mt_buf *out, const char *inside)
{
    for (const char *end; *inside; inside = end) {
        const mt_unicode_property *property = NULL;

        end = inside + 1;
        if (strncmp(inside, "\\p{", 3) == 0) {
            end = strchr(inside, '}') + 1;
            property = find_property(inside + 3, (size_t)(end - inside) - 4);
        }
        mt_buf_add(out, inside, (size_t)(end - inside));
        if (property)
            put_changes(x, out, property, true);
    }
}

/* Writes an expression for one character that has the property or, if negated, has it not. */
static void put_property(const syntax *x, mt_buf *out, const mt_unicode_property *p, bool negated)
{
    const bool loses = put_changes(x, NULL, p, false);

    if (!loses && !put_changes(x, NULL, p, true)) {
        mt_buf_printf(out, negated ? "\\P{%s}" : "\\p{%s}", p->native);
        return;
    }
    if (loses) {
        mt_buf_puts(out, negated ? "(?:(?!(?![" : "(?:(?![");
        put_changes(x, out, p, false);
        mt_buf_puts(out, "])");
    }
    mt_buf_printf(out, negated && !loses ? "[^\\p{%s}" : "[\\p{%s}", p->native);
    put_changes(x, out, p, true);
    mt_buf_puts(out, !loses ? "]" : negated ? "])(?s:.))" : "])");
}

/* Reads a property such as \p{name} or \P{^name}. NULL: there is none that has to be changed; then nothing is read. */
static const mt_unicode_property *read_property(syntax *x, bool *negated)
{
    const bool opposite = peek(x, 3) == '^';
    const size_t begin = 3 + (size_t)opposite;
    const mt_unicode_property *property;
    size_t end = begin;

    if (!at_text(x, "\\p{") && !at_text(x, "\\P{"))
        return NULL;
    while (peek(x, end) && peek(x, end) != '}')
        end++;
    property = peek(x, end) ? find_property(x->in + x->at + begin, end - begin) : NULL;
    *negated = (peek(x, 1) == 'P') != opposite;
    x->at += property ? end + 1 : 0;
    return property;
}

/* Copies an escape that is the same in both syntaxes or nearly so; x is at its backslash. */
static void copy_escape(syntax *x, mt_buf *out)
{
    char letter = peek(x, 1);

    if (letter == 'u') {
        mt_buf_puts(out, "\\x{");
        x->at += 2;
        copy(x, out, 4);
        mt_buf_puts(out, "}");
    } else if ((letter == 'p' || letter == 'P') && at_text(x, letter == 'p' ? "\\p{^" : "\\P{^")) {
        mt_buf_puts(out, letter == 'p' ? "\\P{" : "\\p{");
        x->at += 4;
        copy_through(x, out, "}");
    } else if ((letter == 'p' || letter == 'P' || letter == 'x') && peek(x, 2) == '{') {
        copy_through(x, out, "}");
    } else {
        copy(x, out, 1);
        copy(x, out, x->at < x->len ? mt_utf8_size(x->in[x->at]) : 0);
    }
}

/* Copies a named class; x is at its bracket. */
static void copy_class(syntax *x, mt_buf *out)
{
    for (size_t i = 0; i < MT_COUNT(classes); i++) {
        if (at_text(x, classes[i].name)) {
            put_inside(x, out, classes[i].inside);
            x->at += strlen(classes[i].name);
            return;
        }
    }
    copy_through(x, out, ":]");
}

/* A set that is being read. */
typedef struct set {
    bool negated;
    mt_buf items;  /* the items that one bracket expression can hold */
    mt_buf others; /* all others: expressions for one character, separated by "|" */
    mt_buf tests;  /* lookaheads for the operands of && that are complete */
} set;

static void init_set(set *s)
{
    *s = (set){0};
    mt_buf_init(&s->items, 16 * (size_t)MT_LIMIT_REGEX);
    mt_buf_init(&s->others, 16 * (size_t)MT_LIMIT_REGEX);
    mt_buf_init(&s->tests, 16 * (size_t)MT_LIMIT_REGEX);
}

static void free_set(set *s)
{
    mt_buf_free(&s->items);
    mt_buf_free(&s->others);
    mt_buf_free(&s->tests);
}

static void put(mt_buf *out, const mt_buf *text)
{
    if (text->len > 0)
        mt_buf_add(out, text->data, text->len);
}

static void put_term(const set *s, mt_buf *out)
{
    if (s->items.len == 0 && s->others.len == 0) {
        mt_buf_puts(out, "(?!)");
        return;
    }
    mt_buf_puts(out, "(?:");
    if (s->items.len > 0) {
        mt_buf_puts(out, "[");
        put(out, &s->items);
        mt_buf_puts(out, s->others.len > 0 ? "]|" : "]");
    }
    put(out, &s->others);
    mt_buf_puts(out, ")");
}

static bool is_simple(const set *s)
{
    return s->others.len == 0 && s->tests.len == 0 && s->items.len > 0;
}

static void put_set(const set *s, mt_buf *out)
{
    if (is_simple(s)) {
        mt_buf_puts(out, s->negated ? "[^" : "[");
        put(out, &s->items);
        mt_buf_puts(out, "]");
        return;
    }
    mt_buf_puts(out, s->negated ? "(?:(?!" : "(?:");
    put(out, &s->tests);
    put_term(s, out);
    mt_buf_puts(out, s->negated ? ")(?s:.))" : ")");
}

static void add_other(set *s, const char *text, size_t len)
{
    if (s->others.len > 0)
        mt_buf_puts(&s->others, "|");
    mt_buf_add(&s->others, text, len);
}

static void add_set(set *s, const set *inner)
{
    mt_buf text;

    if (is_simple(inner) && !inner->negated) {
        put(&s->items, &inner->items);
        return;
    }
    mt_buf_init(&text, 16 * (size_t)MT_LIMIT_REGEX);
    put_set(inner, &text);
    add_other(s, text.data, text.len);
    mt_buf_free(&text);
}

/* Called after an operand and its &&. */
static void end_term(set *s)
{
    mt_buf_puts(&s->tests, "(?=");
    put_term(s, &s->tests);
    mt_buf_puts(&s->tests, ")");
    mt_buf_free(&s->items);
    mt_buf_free(&s->others);
}

static void add_shorthand(const syntax *x, set *s, const shorthand *known, bool opposite)
{
    mt_buf text;

    if (!opposite || known->outside) {
        put_inside(x, &s->items, opposite ? known->outside : known->inside);
        return;
    }
    mt_buf_init(&text, 16 * (size_t)MT_LIMIT_REGEX);
    mt_buf_puts(&text, "[^");
    put_inside(x, &text, known->inside);
    mt_buf_puts(&text, "]");
    add_other(s, text.data, text.len);
    mt_buf_free(&text);
}

static void add_property(const syntax *x, set *s, const mt_unicode_property *property, bool negated)
{
    mt_buf text;

    if (!put_changes(x, NULL, property, false) && (!negated || !put_changes(x, NULL, property, true))) {
        mt_buf_printf(&s->items, negated ? "\\P{%s}" : "\\p{%s}", property->native);
        put_changes(x, &s->items, property, true);
        return;
    }
    mt_buf_init(&text, 16 * (size_t)MT_LIMIT_REGEX);
    put_property(x, &text, property, negated);
    add_other(s, text.data, text.len);
    mt_buf_free(&text);
}

/* Whether the hyphen at x is a character and not part of a range. */
static bool lone_hyphen(const syntax *x, bool after_many)
{
    return after_many || peek(x, 1) == ']' || peek(x, 1) == '[' || (peek(x, 1) == '&' && peek(x, 2) == '&') ||
           (peek(x, 1) == '\\' && (find_shorthand(peek(x, 2)) || peek(x, 2) == 'p' || peek(x, 2) == 'P'));
}

static bool read_set(syntax *x, set *s, size_t depth);

/* Reads one item of a set. *many: it stands for many characters, so that it cannot begin a range. */
static bool read_item(syntax *x, set *s, bool *many, size_t depth)
{
    const shorthand *known = peek(x, 0) == '\\' ? find_shorthand(peek(x, 1)) : NULL;
    const mt_unicode_property *property;
    bool after_many = *many, negated, ok;
    set inner;

    *many = true;
    property = read_property(x, &negated);
    if (property) {
        add_property(x, s, property, negated);
    } else if (at_text(x, "[:")) {
        copy_class(x, &s->items);
    } else if (peek(x, 0) == '[') {
        init_set(&inner);
        ok = read_set(x, &inner, depth + 1);
        if (ok)
            add_set(s, &inner);
        free_set(&inner);
        return ok;
    } else if (at_text(x, "&&")) {
        end_term(s);
        x->at += 2;
    } else if (known) {
        add_shorthand(x, s, known, peek(x, 1) == known->opposite);
        x->at += 2;
    } else {
        *many = false;
        if (peek(x, 0) == '\\') {
            copy_escape(x, &s->items);
        } else if (peek(x, 0) == '^' || (peek(x, 0) == '-' && lone_hyphen(x, after_many))) {
            mt_buf_puts(&s->items, "\\");
            copy(x, &s->items, 1);
        } else {
            copy(x, &s->items, mt_utf8_size(peek(x, 0)));
        }
    }
    return true;
}

/* Reads a set; x is at its opening bracket. */
static bool read_set(syntax *x, set *s, size_t depth)
{
    bool many = true;

    if (depth == MOST_DEPTH)
        return fail_syntax(x, "too many sets inside one another");
    x->at++;
    if (peek(x, 0) == '^') {
        s->negated = true;
        x->at++;
    }
    if (peek(x, 0) == ']') {
        mt_buf_puts(&s->items, "\\]");
        x->at++;
    }
    while (x->at < x->len && peek(x, 0) != ']')
        if (!read_item(x, s, &many, depth))
            return false;
    if (x->at == x->len)
        return fail_syntax(x, "a set that does not end");
    x->at++;
    return true;
}

static bool translate_set(syntax *x)
{
    set s;
    bool ok;

    init_set(&s);
    ok = read_set(x, &s, 0);
    if (ok)
        put_set(&s, x->out);
    free_set(&s);
    return ok;
}

/* Puts a group around the last item and its quantifier, so that another quantifier may follow. */
static void wrap_atom(syntax *x)
{
    static const char open[] = "(?:";
    size_t len = sizeof(open) - 1;

    mt_buf_puts(x->out, ")");
    if (!mt_buf_puts(x->out, open))
        return;
    memmove(x->out->data + x->atom + len, x->out->data + x->atom, x->out->len - len - x->atom);
    memcpy(x->out->data + x->atom, open, len);
}

static size_t skip_digits(const syntax *x, size_t ahead)
{
    while (peek(x, ahead) >= '0' && peek(x, ahead) <= '9')
        ahead++;
    return ahead;
}

/* Translates {n}, {n,}, {n,m} or {,m}, or a literal brace; x is at the brace. */
static void translate_brace(syntax *x)
{
    size_t first = skip_digits(x, 1), last = first;
    bool exact = peek(x, first) == '}';

    if (peek(x, first) == ',')
        last = skip_digits(x, first + 1);
    if (peek(x, last) != '}' || last == 1 || (first == 1 && last == 2)) {
        x->atom = x->out->len;
        mt_buf_puts(x->out, "\\");
        copy(x, x->out, 1);
        return;
    }
    if (first == 1) {
        mt_buf_puts(x->out, "{0");
        x->at++;
        copy(x, x->out, last);
    } else {
        copy(x, x->out, last + 1);
    }
    if (peek(x, 0) == '+' || (peek(x, 0) == '?' && exact))
        wrap_atom(x);
}

/* Translates the letters of options after "(?": Ruby's m is s in PCRE2. */
static void translate_options(syntax *x)
{
    size_t ahead = 2;

    while (peek(x, ahead) && strchr("imx-", peek(x, ahead)))
        ahead++;
    if (ahead == 2 || (peek(x, ahead) != ':' && peek(x, ahead) != ')')) {
        copy(x, x->out, 2);
        return;
    }
    for (size_t i = 0; i < ahead; i++, x->at++)
        mt_buf_add(x->out, peek(x, 0) == 'm' ? "s" : x->in + x->at, 1);
}

static bool open_group(syntax *x)
{
    if (x->depth == MOST_DEPTH)
        return fail_syntax(x, "too many groups inside one another");
    x->groups[x->depth++] = x->out->len;
    if (at_text(x, "(?#"))
        while (x->at < x->len && peek(x, 0) != ')')
            x->at++;
    if (at_text(x, "(?"))
        translate_options(x);
    else if (peek(x, 0) == '(')
        copy(x, x->out, 1);
    else
        mt_buf_puts(x->out, "(?:"); /* in place of the comment */
    return true;
}

static bool translate_next(syntax *x)
{
    const shorthand *known = peek(x, 0) == '\\' ? find_shorthand(peek(x, 1)) : NULL;
    const mt_unicode_property *property;
    bool negated;

    switch (peek(x, 0)) {
    case '{': translate_brace(x); return true;
    case '*':
    case '+':
    case '?':
    case '|': copy(x, x->out, 1); return true;
    case '(': return open_group(x);
    case ')':
        copy(x, x->out, 1);
        x->atom = x->depth > 0 ? x->groups[--x->depth] : 0;
        return true;
    default: break;
    }
    x->atom = x->out->len;
    if (peek(x, 0) == '[')
        return translate_set(x);
    property = read_property(x, &negated);
    if (property) {
        put_property(x, x->out, property, negated);
    } else if (known) {
        mt_buf_puts(x->out, peek(x, 1) == known->letter ? "[" : "[^");
        put_inside(x, x->out, known->inside);
        mt_buf_puts(x->out, "]");
        x->at += 2;
    } else if (peek(x, 0) == '\\') {
        copy_escape(x, x->out);
    } else {
        copy(x, x->out, mt_utf8_size(x->in[x->at]));
    }
    return true;
}

bool mt_tok_regex_translate(const char *pattern, size_t len, bool newer, mt_buf *out, mt_error *err)
{
    syntax x = {.in = pattern, .len = len, .out = out, .newer = newer, .err = err};

    if (len > MT_LIMIT_REGEX)
        return mt_fail(err, MT_E_TOO_LARGE, "it has a regular expression of %zu bytes; at most %d are read", len,
                       MT_LIMIT_REGEX);
    mt_buf_add(out, "", 0);
    while (x.at < x.len)
        if (!translate_next(&x))
            return false;
    return !out->full || fail_syntax(&x, "too much in it");
}
