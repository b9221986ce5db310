/* See format.h; format_spec.c writes single values. */
#include "template/format.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "template/attr.h"
#include "template/number.h"
#include "template/repr.h"

/* A format string while it is processed, with the arguments of % or of str.format. */
typedef struct formatter {
    mt_tpl_run *run;
    const mt_tpl_str *format;
    size_t at; /* position in format */
    mt_tpl_build out;

    mt_tpl_value value;      /* of %: where the next argument comes from */
    mt_tpl_value right;      /* of %: what stands on its right, in which %(key) looks */
    const mt_tpl_args *args; /* of str.format */
    size_t next;             /* index of the next argument */
    bool single;             /* of %: value is one argument, even if it is a tuple */
    bool by_position;        /* of str.format: fields have had numbers */
    bool counted;            /* of str.format: fields without a number have been counted */
    unsigned depth;          /* of str.format: 1 in the spec of a field, 2 in the spec of a field there */
} formatter;

/* Escapes a repr as Python's ascii() does. */
static mt_tpl_str *ascii_text(mt_tpl_run *run, mt_tpl_str *text)
{
    mt_tpl_build b = {.run = run};

    for (size_t at = 0, n; !run->failed && at < text->len; at += n) {
        const uint32_t c = mt_utf8_at(text->data + at);

        n = mt_utf8_size(text->data[at]);
        if (c < 0x80)
            mt_tpl_build_sub(&b, text, at, at + n);
        else
            mt_tpl_build_printf(&b, c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    }
    return mt_tpl_build_end(&b);
}

/* Python's str(), repr() or ascii() of an argument: its conversion is s, r or a. */
static mt_tpl_str *convert(mt_tpl_run *run, mt_tpl_value v, char conversion)
{
    mt_tpl_str *text = conversion == 's' ? mt_tpl_text(run, v) : mt_tpl_repr(run, v);

    return conversion == 'a' ? ascii_text(run, text) : text;
}

static char peek(const formatter *f)
{
    return f->at < f->format->len ? f->format->data[f->at] : '\0';
}

/* The next argument of %. */
static bool next_argument(formatter *f, mt_tpl_value *out)
{
    bool many = f->value.kind == MT_TPL_TUPLE && !f->single;

    if (f->next >= (many ? f->value.as.list->count : 1))
        return mt_tpl_fail(f->run, "not enough arguments for format string");
    *out = many ? f->value.as.list->at[f->next] : f->value;
    f->next++;
    return true;
}

/* %(key)s: the dict's item becomes the only argument. */
static bool read_key(formatter *f)
{
    size_t begin = ++f->at, depth = 1;
    mt_tpl_value key;

    for (; f->at < f->format->len && depth > 0; f->at++)
        depth += peek(f) == '(' ? 1 : peek(f) == ')' ? (size_t)-1 : 0;
    if (depth > 0)
        return mt_tpl_fail(f->run, "incomplete format key");
    if (f->right.kind != MT_TPL_DICT)
        return mt_tpl_fail(f->run, "format requires a mapping");
    if (!mt_tpl_set_str(&key, mt_tpl_str_sub(f->run, f->format, begin, f->at - 1)))
        return false;
    f->value = mt_tpl_dict_get(f->run, f->right.as.dict, key);
    if (!MT_TPL_GIVEN(f->value))
        return mt_tpl_fail(f->run, "'%.*s' is not a key of the dict", (int)key.as.str->len, key.as.str->data);
    f->single = true;
    f->next = 0;
    return true;
}

/* A width or precision: digits, or * for an argument. */
static int64_t read_count(formatter *f)
{
    mt_tpl_value v;
    int64_t value = 0;

    if (peek(f) == '*') {
        f->at++;
        if (next_argument(f, &v) && MT_TPL_IS_INT(v))
            return mt_tpl_as_int(v);
        mt_tpl_fail(f->run, "* wants int");
    }
    for (; isdigit((unsigned char)peek(f)); f->at++)
        if (value < INT64_MAX / 100)
            value = value * 10 + (peek(f) - '0');
    return value;
}

static bool percent_int(formatter *f, mt_tpl_value v, mt_tpl_spec *spec)
{
    int64_t value;

    if (v.kind == MT_TPL_FLOAT && spec->type == 'd') {
        if (!mt_tpl_float_to_int(f->run, v.as.real, &value))
            return false;
    } else if (v.kind == MT_TPL_BIG)
        return mt_tpl_fail_huge(f->run);
    else if (MT_TPL_IS_INT(v))
        value = mt_tpl_as_int(v);
    else
        return mt_tpl_fail(f->run, "%%%c format: %s is required, not %s", spec->type,
                           spec->type == 'd' ? "a real number" : "an integer", mt_tpl_type(v));
    return mt_tpl_format_int(&f->out, value, spec);
}

static bool percent_char(formatter *f, mt_tpl_value v, mt_tpl_spec *spec)
{
    spec->precision = -1; /* a precision cuts texts, but not a character: %.0c writes it */
    if (v.kind == MT_TPL_STR && mt_tpl_str_chars(v.as.str) == 1)
        return mt_tpl_format_text(&f->out, v.as.str, spec);
    if (!MT_TPL_IS_INT(v))
        return mt_tpl_fail(f->run, "%%c requires int or char");
    return mt_tpl_format_char(&f->out, mt_tpl_as_int(v), spec);
}

static bool percent_value(formatter *f, mt_tpl_value v, mt_tpl_spec *spec)
{
    const uint32_t code = mt_utf8_at(f->format->data + f->at - 1);
    mt_tpl_str *text;

    if (spec->type == 'i' || spec->type == 'u')
        spec->type = 'd';
    if (strchr("sra", spec->type)) {
        text = convert(f->run, v, spec->type);
        if (text && f->format->markup && !text->markup)
            text = mt_tpl_str_escape(f->run, text);
        return text && mt_tpl_format_text(&f->out, text, spec);
    }
    if (spec->type == 'c')
        return percent_char(f, v, spec);
    if (strchr("doxX", spec->type))
        return percent_int(f, v, spec);
    if (!strchr("eEfFgG", spec->type))
        return mt_tpl_fail(f->run, "unsupported format character '%c' (0x%x)", code < 0x7F ? (char)code : '?', code);
    if (!MT_TPL_IS_NUMBER(v))
        return mt_tpl_fail(f->run, "must be real number, not %s", mt_tpl_type(v));
    return mt_tpl_format_float(&f->out, mt_tpl_as_float(v), spec);
}

/* Processes the field after a %. */
static bool percent_field(formatter *f)
{
    mt_tpl_spec spec = {.fill = MT_TPL_LIT(" "), .align = '>', .precision = -1};
    mt_tpl_value v;
    bool left = false, zero = false;

    if (peek(f) == '%') {
        f->at++;
        mt_tpl_build_lit(&f->out, "%");
        return true;
    }
    if (peek(f) == '(' && !read_key(f))
        return false;
    for (; peek(f) && strchr("#0- +", peek(f)); f->at++) {
        left = left || peek(f) == '-';
        zero = zero || peek(f) == '0';
        spec.alternate = spec.alternate || peek(f) == '#';
        if (peek(f) == '+' || (peek(f) == ' ' && !spec.sign))
            spec.sign = peek(f);
    }
    spec.width = read_count(f);
    if (spec.width < 0) {
        left = true;
        spec.width = spec.width == INT64_MIN ? INT64_MAX : -spec.width;
    }
    if (peek(f) == '.') {
        f->at++;
        spec.precision = read_count(f);
        spec.precision = spec.precision < 0 ? 0 : spec.precision;
    }
    if (peek(f) == 'l' || peek(f) == 'h' || peek(f) == 'L')
        f->at++;
    spec.type = peek(f);
    if (!spec.type)
        return mt_tpl_fail(f->run, "incomplete format");
    f->at++;
    if (zero && !left && strchr("diuoxXeEfFgG", spec.type)) {
        spec.fill.data = "0";
        spec.align = '=';
    }
    if (left)
        spec.align = '<';
    return next_argument(f, &v) && percent_value(f, v, &spec);
}

bool mt_tpl_format_percent(mt_tpl_run *run, const mt_tpl_str *format, mt_tpl_value value, mt_tpl_value *out)
{
    formatter f = {.run = run, .format = format, .out = {.run = run}, .value = value, .right = value};
    /* A value that Python can index may be left over, for it could be what %(key) looks in. */
    bool spare = value.kind == MT_TPL_DICT || value.kind == MT_TPL_LIST || value.kind == MT_TPL_RANGE ||
                 value.kind == MT_TPL_UNDEFINED;
    size_t given = value.kind == MT_TPL_TUPLE ? value.as.list->count : 1;

    while (f.at < format->len) {
        const char *sign = memchr(format->data + f.at, '%', format->len - f.at);
        size_t end = sign ? (size_t)(sign - format->data) : format->len;

        mt_tpl_build_sub(&f.out, format, f.at, end);
        f.at = end + 1;
        if (sign && !percent_field(&f))
            return false;
    }
    if (f.next < given && !spare)
        return mt_tpl_fail(run, "not all arguments converted during string formatting");
    return mt_tpl_set_str(out, mt_tpl_build_end_like(&f.out, format));
}

/* A part of a field's name that is all digits is a number; any other is -1. */
static bool field_number(formatter *f, const mt_tpl_str *word, int64_t *out)
{
    int64_t value = 0;

    *out = -1;
    for (size_t i = 0; i < word->len; i++) {
        if (!isdigit((unsigned char)word->data[i]))
            return true;
        if (MT_MUL_OVERFLOWS(value, (int64_t)10, &value) ||
            MT_ADD_OVERFLOWS(value, (int64_t)(word->data[i] - '0'), &value))
            return mt_tpl_fail(f->run, "Too many decimal digits in format string");
    }
    if (word->len > 0)
        *out = value;
    return true;
}

/* The first part of a field's name: a number, a name, or nothing for the next argument. whole: it is the whole name. As
   in Jinja2's sandbox, a number that is not the whole name may stand beside counted fields. */
static bool field_base(formatter *f, const mt_tpl_str *name, bool whole, mt_tpl_value *out)
{
    int64_t index;

    if (!field_number(f, name, &index))
        return false;
    if (name->len > 0 && index < 0) {
        *out = mt_tpl_dict_name(f->run, f->args->named, name);
        return MT_TPL_GIVEN(*out) ||
               mt_tpl_fail(f->run, "'%.*s' is not among the arguments", (int)name->len, name->data);
    }
    if (name->len == 0) {
        f->counted = true;
        index = (int64_t)f->next++;
    } else {
        f->by_position |= whole;
    }
    if (f->counted && f->by_position)
        return mt_tpl_fail(f->run, "cannot switch between automatic field numbering and manual field specification");
    if ((size_t)index >= f->args->count)
        return mt_tpl_fail(f->run, "Replacement index %" PRId64 " out of range for positional args tuple", index);
    *out = f->args->at[index];
    return true;
}

/* Follows one .attribute or [key]; *at moves behind it. */
static bool field_step(formatter *f, const mt_tpl_str *name, size_t *at, mt_tpl_value *out)
{
    bool bracket = name->data[*at] == '[';
    size_t begin = ++*at;
    mt_tpl_str *word;
    int64_t index;

    while (*at < name->len && (bracket ? name->data[*at] != ']' : name->data[*at] != '.' && name->data[*at] != '['))
        ++*at;
    word = mt_tpl_str_sub(f->run, name, begin, *at);
    if (!word)
        return false;
    if (word->len == 0)
        return mt_tpl_fail(f->run, "Empty attribute in format string");
    if (!bracket)
        return mt_tpl_get_attribute(f->run, *out, word, out);
    if (*at == name->len)
        return mt_tpl_fail(f->run, "Missing ']' in format string");
    ++*at;
    if (!field_number(f, word, &index))
        return false;
    return mt_tpl_get_item(f->run, *out, index >= 0 ? mt_tpl_int(index) : mt_tpl_const(word), out);
}

static bool field_value(formatter *f, const mt_tpl_str *name, mt_tpl_value *out)
{
    size_t at = 0;
    mt_tpl_str *base;

    while (at < name->len && name->data[at] != '.' && name->data[at] != '[')
        at++;
    base = mt_tpl_str_sub(f->run, name, 0, at);
    if (!base || !field_base(f, base, at == name->len, out))
        return false;
    while (at < name->len) {
        if (name->data[at] != '.' && name->data[at] != '[')
            return mt_tpl_fail(f->run, "Only '.' or '[' may follow ']' in format field specifier");
        if (!field_step(f, name, &at, out))
            return false;
    }
    return true;
}

/* *end: where the name of a field ends, which is at a colon, a ! or the brace that closes the field. A key in brackets
   may contain any of these. */
static bool field_name_end(formatter *f, size_t *end)
{
    bool key = false;

    for (*end = f->at; *end < f->format->len; ++*end) {
        const char c = f->format->data[*end];

        if (key || c == '[')
            key = c != ']';
        else if (c == '{')
            return mt_tpl_fail(f->run, "unexpected '{' in field name");
        else if (c == ':' || c == '!' || c == '}')
            return true;
    }
    return mt_tpl_fail(f->run, "expected '}' before end of string");
}

/* *end: where the brace stands that closes the field whose spec begins at f->at. */
static bool field_end(formatter *f, size_t *end)
{
    size_t depth = 1;

    for (*end = f->at; *end < f->format->len; ++*end) {
        char c = f->format->data[*end];

        depth += c == '{' ? 1 : c == '}' ? (size_t)-1 : 0;
        if (depth == 0)
            return true;
    }
    return mt_tpl_fail(f->run, "expected '}' before end of string");
}

static bool write_fields(formatter *f);

/* A field's spec, which may contain fields itself. These are counted together with the others. */
static mt_tpl_str *field_spec(formatter *f, size_t begin, size_t end)
{
    mt_tpl_str *spec = mt_tpl_str_sub(f->run, f->format, begin, end);
    formatter inner = *f;

    if (!spec || !memchr(spec->data, '{', spec->len))
        return spec;
    inner.format = spec;
    inner.at = 0;
    inner.depth++;
    inner.out = (mt_tpl_build){.run = f->run};
    if (!write_fields(&inner))
        return NULL;
    f->next = inner.next;
    f->by_position = inner.by_position;
    f->counted = inner.counted;
    return mt_tpl_build_end(&inner.out);
}

/* Appends format(value, spec). A format that is markup escapes that, unless the value is markup as well. */
static bool write_value(formatter *f, mt_tpl_value value, const mt_tpl_str *spec)
{
    mt_tpl_build b = {.run = f->run};
    mt_tpl_str *text;

    if (!f->format->markup)
        return mt_tpl_format_value(&f->out, value, spec);
    if (value.kind == MT_TPL_STR && value.as.str->markup) {
        mt_tpl_build_str(&f->out, value.as.str);
        return spec->len == 0 || mt_tpl_fail(f->run, "Unsupported format specification for Markup.");
    }
    text = mt_tpl_format_value(&b, value, spec) ? mt_tpl_build_end(&b) : NULL;
    text = text ? mt_tpl_str_escape(f->run, text) : NULL;
    if (text)
        mt_tpl_build_str(&f->out, text);
    return text != NULL;
}

/* Processes {name!conversion:spec} from behind its first brace on. */
static bool brace_field(formatter *f)
{
    size_t begin = f->at, end;
    char conversion = '\0';
    mt_tpl_value value;
    mt_tpl_str *name, *spec, *text;

    if (f->depth > 1)
        return mt_tpl_fail(f->run, "Max string recursion exceeded");
    if (!field_name_end(f, &end))
        return false;
    name = mt_tpl_str_sub(f->run, f->format, begin, end);
    f->at = end;
    if (peek(f) == '!') {
        f->at++;
        conversion = peek(f);
        if (!conversion || !strchr("rsa", conversion))
            return mt_tpl_fail(f->run, "Unknown conversion specifier: use r, s or a");
        f->at++;
        if (peek(f) != ':' && peek(f) != '}')
            return mt_tpl_fail(f->run, "expected ':' after conversion specifier");
    }
    f->at += peek(f) == ':';
    begin = f->at;
    if (!field_end(f, &end) || !name || !field_value(f, name, &value))
        return false;
    spec = field_spec(f, begin, end);
    if (!spec)
        return false;
    f->at = end + 1;
    if (conversion) {
        text = convert(f->run, value, conversion);
        if (!text || !mt_tpl_set_str(&value, mt_tpl_str_plain(f->run, text)))
            return false;
    }
    return write_value(f, value, spec);
}

/* Appends the format with its fields replaced. */
static bool write_fields(formatter *f)
{
    const mt_tpl_str *format = f->format;

    while (f->at < format->len && !f->run->failed) {
        size_t begin = f->at;
        char brace;

        while (f->at < format->len && format->data[f->at] != '{' && format->data[f->at] != '}')
            f->at++;
        mt_tpl_build_sub(&f->out, format, begin, f->at);
        if (f->at == format->len)
            break;
        brace = format->data[f->at++];
        if (peek(f) == brace) { /* {{ and }} */
            mt_tpl_build_sub(&f->out, format, f->at, f->at + 1);
            f->at++;
        } else if (brace == '}')
            return mt_tpl_fail(f->run, "Single '}' encountered in format string");
        else if (f->at == format->len)
            return mt_tpl_fail(f->run, "Single '{' encountered in format string");
        else if (!brace_field(f))
            return false;
    }
    return true;
}

bool mt_tpl_format_braces(mt_tpl_run *run, const mt_tpl_str *format, const mt_tpl_args *args, mt_tpl_value *out)
{
    formatter f = {.run = run, .format = format, .out = {.run = run}, .args = args};

    return write_fields(&f) && mt_tpl_set_str(out, mt_tpl_build_end_like(&f.out, format));
}

bool mt_tpl_percent(mt_tpl_run *run, mt_tpl_value a, mt_tpl_value b, mt_tpl_value *out)
{
    return a.kind == MT_TPL_STR ? mt_tpl_format_percent(run, a.as.str, b, out) : mt_tpl_arithmetic(run, '%', a, b, out);
}
