/* One pass over the bytes, without a tree. An element that is not closed, or closed twice, changes only where lines
   begin; a comment, a script or a quoted value that is not closed takes the rest of the page with it, as in a
   browser. */
#include "files/html.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "base/utf8.h"

enum { NAME = 12, ENTITY = 10 }; /* longest names of elements and entities below, in bytes */

typedef struct page {
    mt_buf *out;
    const char *at, *end;
    size_t pre;    /* open <pre> and <textarea> */
    bool blank;    /* white space came since the last character */
    bool line;     /* a line begins before the next character */
    bool tab;      /* a cell ended */
    bool anything; /* something was written */
} page;

static bool is_letter(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}

/* Writes the white space that is due, and a character. */
static void put(page *p, const char *text, size_t len)
{
    if (p->line && p->anything)
        mt_buf_add(p->out, "\n", 1);
    else if (p->tab && p->anything)
        mt_buf_add(p->out, "\t", 1);
    else if (p->blank && p->anything)
        mt_buf_add(p->out, " ", 1);
    p->line = p->tab = p->blank = false;
    p->anything = true;
    mt_buf_add(p->out, text, len);
}

/* Skips to the byte after the next `word`, or to the end of the page. */
static void skip_to(page *p, const char *word)
{
    const size_t len = strlen(word);

    while ((size_t)(p->end - p->at) >= len && strncasecmp(p->at, word, len) != 0)
        p->at++;
    p->at = (size_t)(p->end - p->at) >= len ? p->at + len : p->end;
}

/* Skips to the byte after the '>' that ends a tag; quoted values may have others. */
static void skip_tag(page *p)
{
    char quote = '\0';

    for (; p->at < p->end; p->at++) {
        if (quote)
            quote = *p->at == quote ? '\0' : quote;
        else if ((*p->at == '"' || *p->at == '\'') && p->at[-1] == '=')
            quote = *p->at;
        else if (*p->at == '>') {
            p->at++;
            return;
        }
    }
}

static void read_tag(page *p)
{
    static const char *const blocks[] = {
        "address", "article",  "aside",      "blockquote", "br",     "dd",       "details", "div", "dl",
        "dt",      "fieldset", "figcaption", "figure",     "footer", "form",     "h1",      "h2",  "h3",
        "h4",      "h5",       "h6",         "header",     "hr",     "li",       "main",    "nav", "ol",
        "option",  "p",        "pre",        "section",    "table",  "textarea", "title",   "tr",  "ul"};
    static const char *const hidden[] = {"script", "style", "template", "noscript", "svg"};
    char name[NAME + 1] = "", closing[NAME + 3];
    const bool ends = p->at < p->end && *p->at == '/';
    size_t len = 0;

    p->at += ends;
    for (; p->at < p->end && len < NAME && (is_letter(*p->at) || is_digit(*p->at)); p->at++)
        name[len++] = (char)(*p->at | 32); /* digits have this bit */
    name[len] = '\0';
    skip_tag(p);
    if (!ends && in(name, hidden, MT_COUNT(hidden))) {
        closing[0] = '<';
        closing[1] = '/';
        memcpy(closing + 2, name, len + 1);
        skip_to(p, closing);
        skip_tag(p);
        return;
    }
    if (strcmp(name, "pre") == 0 || strcmp(name, "textarea") == 0)
        p->pre += ends ? (p->pre > 0 ? (size_t)-1 : 0) : 1;
    p->line = p->line || in(name, blocks, MT_COUNT(blocks));
    p->tab = p->tab || (ends && (strcmp(name, "td") == 0 || strcmp(name, "th") == 0));
}

/* The character of an entity, given without "&" and ";". 0: there is none of that name. */
static uint32_t entity(const char *text, size_t len)
{
    static const struct {
        const char *name;
        uint32_t c;
    } known[] = {{"amp", '&'},      {"lt", '<'},       {"gt", '>'},       {"quot", '"'},     {"apos", '\''},
                 {"nbsp", ' '},     {"shy", 0xAD},     {"ndash", 0x2013}, {"mdash", 0x2014}, {"hellip", 0x2026},
                 {"lsquo", 0x2018}, {"rsquo", 0x2019}, {"ldquo", 0x201C}, {"rdquo", 0x201D}, {"laquo", 0xAB},
                 {"raquo", 0xBB},   {"bull", 0x2022},  {"middot", 0xB7},  {"copy", 0xA9},    {"reg", 0xAE},
                 {"trade", 0x2122}, {"euro", 0x20AC},  {"pound", 0xA3},   {"sect", 0xA7},    {"deg", 0xB0},
                 {"plusmn", 0xB1},  {"times", 0xD7},   {"divide", 0xF7},  {"auml", 0xE4},    {"ouml", 0xF6},
                 {"uuml", 0xFC},    {"Auml", 0xC4},    {"Ouml", 0xD6},    {"Uuml", 0xDC},    {"szlig", 0xDF},
                 {"eacute", 0xE9},  {"egrave", 0xE8},  {"agrave", 0xE0},  {"ccedil", 0xE7},  {"larr", 0x2190},
                 {"rarr", 0x2192}};
    char number[ENTITY + 1];
    unsigned long c;

    if (len > 1 && text[0] == '#') {
        const bool hex = (text[1] | 32) == 'x';
        const size_t begin = 1 + hex;

        memcpy(number, text, len);
        number[len] = '\0';
        if (strspn(number + begin, hex ? "0123456789abcdefABCDEF" : "0123456789") != len - begin)
            return 0;
        c = strtoul(number + begin, NULL, hex ? 16 : 10);
        return c >= ' ' && c <= 0x10FFFF && c != 0x7F && (c < 0xD800 || c > 0xDFFF) ? (uint32_t)c : 0;
    }
    for (size_t i = 0; i < MT_COUNT(known); i++)
        if (strlen(known[i].name) == len && memcmp(known[i].name, text, len) == 0)
            return known[i].c;
    return 0;
}

static void read_entity(page *p)
{
    const size_t most = MT_MIN((size_t)(p->end - p->at), ENTITY + 1);
    const char *stop = memchr(p->at, ';', most);
    const uint32_t c = stop ? entity(p->at, (size_t)(stop - p->at)) : 0;
    char text[MT_UTF8_MAX];

    if (c == ' ')
        p->blank = true;
    else if (c && c != 0xAD)
        put(p, text, mt_utf8_encode(c, text));
    else if (!c)
        put(p, "&", 1);
    if (c)
        p->at = stop + 1;
}

static void read_text(page *p)
{
    const char c = *p->at++;

    if (c == '&')
        read_entity(p);
    else if (p->pre && c == '\n') {
        mt_buf_add(p->out, "\n", p->anything);
        p->line = p->tab = p->blank = false;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
        if (p->pre)
            put(p, &c, 1);
        p->blank = p->blank || !p->pre;
    } else
        put(p, &c, 1);
}

bool mt_files_html(mt_buf *out, const char *bytes, size_t len)
{
    page p = {.out = out, .at = bytes, .end = bytes + len};

    while (p.at < p.end && !out->full) {
        const size_t left = (size_t)(p.end - p.at);

        if (left >= 4 && memcmp(p.at, "<!--", 4) == 0) {
            p.at += 4;
            skip_to(&p, "-->");
        } else if (left >= 2 && p.at[0] == '<' && (p.at[1] == '!' || p.at[1] == '?')) {
            p.at += 2;
            skip_tag(&p);
        } else if (left >= 2 && p.at[0] == '<' && (p.at[1] == '/' || is_letter(p.at[1]))) {
            p.at++;
            read_tag(&p);
        } else
            read_text(&p);
    }
    if (p.anything)
        mt_buf_add(out, "\n", 1);
    return !out->full;
}

bool mt_files_is_html(const char *bytes, size_t len, const char *name, size_t name_len)
{
    static const char *const starts[] = {"<!doctype html", "<html", "<head", "<body"};
    static const char *const endings[] = {".html", ".htm", ".xhtml"};
    size_t at = len >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;

    while (at < len && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    for (size_t i = 0; i < MT_COUNT(starts); i++)
        if (len - at >= strlen(starts[i]) && strncasecmp(bytes + at, starts[i], strlen(starts[i])) == 0)
            return true;
    for (size_t i = 0; name && i < MT_COUNT(endings); i++)
        if (name_len > strlen(endings[i]) &&
            strncasecmp(name + name_len - strlen(endings[i]), endings[i], strlen(endings[i])) == 0)
            return true;
    return false;
}
