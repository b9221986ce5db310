/* JSON as a grammar (json.h). */
#include "constraint/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/json_tree.h"
#include "constraint/charset.h"

/* most spaces of an indentation; most digits of a number */
enum { INDENT = 24, DIGITS = 18 };

static mt_expr text(mt_json *j, const char *s)
{
    return mt_grammar_text(j->g, s);
}

static mt_expr list(mt_json *j, const mt_expr *parts, size_t count)
{
    return mt_grammar_list(j->g, parts, count);
}

#define LIST(j, ...) list(j, (const mt_expr[]){__VA_ARGS__}, sizeof((const mt_expr[]){__VA_ARGS__}) / sizeof(mt_expr))
#define ANY(j, ...) \
    mt_grammar_any((j)->g, (const mt_expr[]){__VA_ARGS__}, sizeof((const mt_expr[]){__VA_ARGS__}) / sizeof(mt_expr))

static mt_expr one_of(mt_json *j, const char *bytes)
{
    mt_byteset set = {0};

    for (; *bytes; bytes++)
        mt_byteset_add(&set, (unsigned char)*bytes, (unsigned char)*bytes);
    return mt_grammar_bytes(j->g, &set);
}

static mt_expr digits(mt_json *j, uint32_t least, uint32_t most)
{
    return mt_grammar_repeat(j->g, one_of(j, "0123456789"), least, most);
}

mt_expr mt_json_space(mt_json *j)
{
    mt_expr line;

    if (j->notation == MT_NOTATION_GEMMA)
        return mt_grammar_empty(j->g);
    line = LIST(j, text(j, "\n"), mt_grammar_repeat(j->g, one_of(j, " \t"), 0, INDENT));
    return ANY(j, text(j, " "), line, mt_grammar_empty(j->g));
}

mt_expr mt_json_comma(mt_json *j)
{
    return mt_grammar_seq(j->g, text(j, ","), mt_json_space(j));
}

mt_expr mt_json_colon(mt_json *j)
{
    const mt_expr colon = text(j, ":");

    return j->notation == MT_NOTATION_GEMMA ? colon : mt_grammar_seq(j->g, colon, mt_grammar_maybe(j->g, text(j, " ")));
}

mt_expr mt_json_quote(mt_json *j)
{
    return j->notation == MT_NOTATION_GEMMA ? j->quotes : text(j, "\"");
}

static mt_expr word(mt_json *j, const char *json, const char *python)
{
    return text(j, j->notation == MT_NOTATION_PYTHON ? python : json);
}

static mt_expr boolean(mt_json *j)
{
    return mt_grammar_or(j->g, word(j, "true", "True"), word(j, "false", "False"));
}

mt_expr mt_json_null(mt_json *j)
{
    return word(j, "null", "None");
}

static mt_expr hex(mt_json *j, const char *first)
{
    return LIST(j, one_of(j, first), mt_grammar_repeat(j->g, one_of(j, "0123456789abcdefABCDEF"), 3, 3));
}

/* \uXXXX for one character, or two for a surrogate pair; not NUL, which few parsers accept. */
static mt_expr unicode_escape(mt_json *j)
{
    const mt_expr any = one_of(j, "0123456789abcdefABCDEF"), some = one_of(j, "123456789abcdefABCDEF");
    const mt_expr zeros =
        LIST(j, text(j, "0"),
             ANY(j, LIST(j, some, any, any), LIST(j, text(j, "0"), some, any), LIST(j, text(j, "00"), some)));
    const mt_expr d = one_of(j, "dD");
    const mt_expr low = LIST(j, d, one_of(j, "01234567"), any, any);
    const mt_expr pair = j->notation == MT_NOTATION_JSON ? LIST(j, d, one_of(j, "89abAB"), any, any, text(j, "\\u"), d,
                                                                one_of(j, "cdefCDEF"), any, any)
                                                         : mt_grammar_never(j->g);

    return LIST(j, text(j, "u"), ANY(j, zeros, hex(j, "123456789abcABCefEF"), low, pair));
}

static mt_expr free_char(mt_json *j)
{
    static const mt_char_range raw[] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, MT_CHAR_MAX}};
    const char *names = j->notation == MT_NOTATION_JSON ? "\"\\/bfnrt" : "\"\\bfnrt";
    const mt_expr escape = LIST(j, text(j, "\\"), ANY(j, one_of(j, names), unicode_escape(j)));

    return mt_grammar_or(j->g, mt_grammar_chars(j->g, raw, 3), escape);
}

/* A string's end in Gemma's notation has several characters. Where characters are counted or must match a pattern, its
   first character is excluded from strings. */
#define GEMMA_QUOTES "<|\"|>"

/* A character of a string in Gemma's notation. */
static mt_expr raw_char(mt_grammar *g, const mt_char_range *ranges, size_t count)
{
    mt_charset raw = {0};
    mt_expr e;

    for (size_t i = 0; i < count; i++) {
        const uint32_t low = ranges[i].low ? ranges[i].low : 1, high = ranges[i].high;
        const bool cut = low <= '<' && high >= '<';

        if (cut && low < '<')
            mt_charset_add(&raw, low, '<' - 1);
        if (cut ? high > '<' : high >= low)
            mt_charset_add(&raw, cut ? '<' + 1 : low, high);
    }
    e = mt_grammar_chars(g, raw.at, raw.count);
    mt_charset_free(&raw);
    return e;
}

static mt_expr string_inside(mt_json *j, uint32_t least, uint32_t most)
{
    if (j->notation != MT_NOTATION_GEMMA)
        return mt_grammar_repeat_plain(j->g, free_char(j), least, most);
    if (least == 0 && most == MT_GRAMMAR_UNLIMITED)
        return mt_grammar_without(j->g, (const char *const[]){GEMMA_QUOTES}, 1);
    return mt_grammar_repeat_plain(j->g, raw_char(j->g, &(mt_char_range){1, MT_CHAR_MAX}, 1), least, most);
}

mt_expr mt_json_string(mt_json *j, uint32_t least, uint32_t most)
{
    const bool shared = least == 0 && most == MT_GRAMMAR_UNLIMITED;
    mt_expr string;

    if (shared && j->has_string)
        return mt_grammar_call(j->g, j->string);
    string = LIST(j, mt_json_quote(j), string_inside(j, least, most), mt_json_quote(j));
    if (!shared)
        return string;
    j->has_string = true;
    j->string = mt_grammar_rule(j->g);
    mt_grammar_define(j->g, j->string, string);
    return mt_grammar_call(j->g, j->string);
}

static bool holds(const mt_char_range *ranges, size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].low && code <= ranges[i].high)
            return true;
    return false;
}

/* A character that must be escaped. */
static mt_expr escaped(mt_grammar *g, uint32_t code)
{
    static const char codes[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *at = code ? strchr(codes, (int)code) : NULL;
    char spelled[8];

    if (at)
        snprintf(spelled, sizeof(spelled), "\\%c", names[at - codes]);
    else
        snprintf(spelled, sizeof(spelled), "\\u%04x", (unsigned)code);
    return mt_grammar_text(g, spelled);
}

static mt_expr json_char(mt_grammar *g, const mt_char_range *ranges, size_t count)
{
    mt_charset raw = {0};
    mt_expr parts[36];
    size_t part_count = 0;

    for (size_t i = 0; i < count; i++) /* divided at characters that need an escape */
        for (uint32_t low = ranges[i].low < 0x20 ? 0x20 : ranges[i].low; low <= ranges[i].high;) {
            uint32_t high = ranges[i].high;

            if (low <= '"' && high >= '"')
                high = '"' - 1;
            else if (low <= '\\' && high >= '\\')
                high = '\\' - 1;
            if (high >= low)
                mt_charset_add(&raw, low, high);
            low = high == ranges[i].high ? high + 1 : high + 2;
        }
    parts[part_count++] = mt_grammar_chars(g, raw.at, raw.count);
    mt_charset_free(&raw);
    for (uint32_t code = 1; code < 0x20; code++) /* never NUL */
        if (holds(ranges, count, code))
            parts[part_count++] = escaped(g, code);
    if (holds(ranges, count, '"'))
        parts[part_count++] = escaped(g, '"');
    if (holds(ranges, count, '\\'))
        parts[part_count++] = escaped(g, '\\');
    return mt_grammar_any(g, parts, part_count);
}

mt_char_writer *mt_json_chars(const mt_json *j)
{
    return j->notation == MT_NOTATION_GEMMA ? raw_char : json_char;
}

mt_expr mt_json_integer(mt_json *j)
{
    const mt_expr some =
        LIST(j, mt_grammar_maybe(j->g, text(j, "-")), one_of(j, "123456789"), digits(j, 0, DIGITS - 1));

    return ANY(j, text(j, "0"), some);
}

static mt_expr fraction(mt_json *j)
{
    return LIST(j, text(j, "."), digits(j, 1, DIGITS));
}

mt_expr mt_json_number(mt_json *j)
{
    mt_expr whole, power;

    if (!j->has_number) {
        whole = ANY(j, text(j, "0"), LIST(j, one_of(j, "123456789"), digits(j, 0, DIGITS - 1)));
        power = LIST(j, one_of(j, "eE"), mt_grammar_maybe(j->g, one_of(j, "+-")), digits(j, 1, 2));
        j->has_number = true;
        j->number = mt_grammar_rule(j->g);
        mt_grammar_define(j->g, j->number,
                          LIST(j, mt_grammar_maybe(j->g, text(j, "-")), whole, mt_grammar_maybe(j->g, fraction(j)),
                               mt_grammar_maybe(j->g, power)));
    }
    return mt_grammar_call(j->g, j->number);
}

/* Items separated by commas within brackets; or nothing between them. */
static mt_expr enclosed(mt_json *j, const char *open, mt_expr item, const char *close)
{
    const mt_expr more = mt_grammar_repeat(j->g, mt_grammar_seq(j->g, mt_json_comma(j), item), 0, MT_GRAMMAR_UNLIMITED);
    const mt_expr some = LIST(j, mt_json_space(j), item, more, mt_json_space(j));

    return LIST(j, text(j, open), mt_grammar_maybe(j->g, some), text(j, close));
}

mt_expr mt_json_object(mt_json *j)
{
    mt_expr member;

    if (!j->has_object) {
        j->has_object = true;
        j->object = mt_grammar_rule(j->g);
        member = LIST(j, mt_json_string(j, 0, MT_GRAMMAR_UNLIMITED), mt_json_colon(j), mt_json_value(j));
        mt_grammar_define(j->g, j->object, enclosed(j, "{", member, "}"));
    }
    return mt_grammar_call(j->g, j->object);
}

static mt_expr array_of_any(mt_json *j)
{
    if (!j->has_array) {
        j->has_array = true;
        j->array = mt_grammar_rule(j->g);
        mt_grammar_define(j->g, j->array, enclosed(j, "[", mt_json_value(j), "]"));
    }
    return mt_grammar_call(j->g, j->array);
}

mt_expr mt_json_value(mt_json *j)
{
    if (!j->has_value) {
        j->has_value = true;
        j->value = mt_grammar_rule(j->g);
        mt_grammar_define(j->g, j->value,
                          ANY(j, mt_json_string(j, 0, MT_GRAMMAR_UNLIMITED), mt_json_number(j), mt_json_object(j),
                              array_of_any(j), boolean(j), mt_json_null(j)));
    }
    return mt_grammar_call(j->g, j->value);
}

/* A string as JSON has it, without its first bytes. */
static mt_expr quoted(mt_json *j, const char *s, size_t len, size_t skip)
{
    mt_buf out;
    mt_expr e;

    mt_buf_init(&out, 8 * len + 16);
    mt_buf_json_string(&out, s, len);
    e = mt_grammar_literal(j->g, out.data + skip, out.len - skip);
    mt_buf_free(&out);
    return e;
}

static mt_expr constant_string(mt_json *j, const char *s, size_t len)
{
    mt_expr e;

    if (j->notation != MT_NOTATION_GEMMA)
        return quoted(j, s, len, 0);
    e = strstr(s, GEMMA_QUOTES) ? mt_grammar_never(j->g) : mt_grammar_literal(j->g, s, len);
    return LIST(j, j->quotes, e, j->quotes);
}

/* Whether a name needs no quotes in Gemma's notation. */
static bool bare(const char *name)
{
    size_t len = 0;

    while ((name[len] >= '0' && name[len] <= '9') || (name[len] >= 'a' && name[len] <= 'z') ||
           (name[len] >= 'A' && name[len] <= 'Z') || name[len] == '_' || name[len] == '-')
        len++;
    return len > 0 && name[len] == '\0';
}

static mt_expr key(mt_json *j, const char *name)
{
    if (j->notation == MT_NOTATION_GEMMA && bare(name))
        return text(j, name);
    return constant_string(j, name, strlen(name));
}

mt_expr mt_json_key_begin(mt_json *j)
{
    return j->notation == MT_NOTATION_GEMMA ? mt_grammar_empty(j->g) : mt_json_quote(j);
}

mt_expr mt_json_key_rest(mt_json *j, const char *name)
{
    return j->notation == MT_NOTATION_GEMMA ? key(j, name) : quoted(j, name, strlen(name), 1);
}

mt_expr mt_json_key_open(mt_json *j)
{
    return j->notation == MT_NOTATION_GEMMA ? mt_json_quote(j) : mt_grammar_empty(j->g);
}

/* The shortest decimal that is read as the same number. */
static mt_expr constant_real(mt_json *j, double value)
{
    char spelled[40];

    for (int precision = 15; precision <= 17; precision++) {
        snprintf(spelled, sizeof(spelled), "%.*g", precision, value);
        if (strtod(spelled, NULL) == value)
            break;
    }
    return text(j, spelled);
}

/* Members of an object or items of an array; `items` include their keys and what precedes each. */
static mt_expr constant_list(mt_json *j, const char *open, const mt_expr *items, size_t count, const char *close)
{
    const mt_expr space = count ? mt_json_space(j) : mt_grammar_empty(j->g);

    return LIST(j, text(j, open), list(j, items, count), space, text(j, close));
}

mt_expr mt_json_constant(mt_json *j, const json_t *value)
{
    const size_t count = json_is_object(value) ? json_object_size(value) : json_array_size(value);
    mt_expr *items, all;
    char spelled[24];
    const char *name;
    json_t *item;
    size_t i = 0;

    switch (json_typeof(value)) {
    case JSON_NULL: return mt_json_null(j);
    case JSON_TRUE: return word(j, "true", "True");
    case JSON_FALSE: return word(j, "false", "False");
    case JSON_REAL:
        return mt_json_wide(value) ? text(j, mt_json_wide(value)) : constant_real(j, json_real_value(value));
    case JSON_STRING: return constant_string(j, json_string_value(value), json_string_length(value));
    case JSON_INTEGER:
        snprintf(spelled, sizeof(spelled), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return text(j, spelled);
    default: break;
    }
    items = mt_alloc_array(count + 1, sizeof(*items));
    if (json_is_array(value)) {
        for (; i < count; i++)
            items[i] = mt_grammar_seq(j->g, i ? mt_json_comma(j) : mt_json_space(j),
                                      mt_json_constant(j, json_array_get(value, i)));
        all = constant_list(j, "[", items, count, "]");
    } else {
        json_object_foreach((json_t *)value, name, item) {
            items[i] = LIST(j, i ? mt_json_comma(j) : mt_json_space(j), key(j, name), mt_json_colon(j),
                            mt_json_constant(j, item));
            i++;
        }
        all = constant_list(j, "{", items, count, "}");
    }
    mt_free(items);
    return all;
}
