/* Filters on text. Other values are converted to strings first. */
#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "template/builtin.h"
#include "template/format.h"
#include "template/iter.h"
#include "template/repr.h"
#include "template/text.h"
#include "template/tojson.h"
#include "template/unicode.h"

MT_TPL_BODY(recase)
{
    return mt_tpl_set_str(out, mt_tpl_change_case(run, mt_tpl_text(run, self), which));
}

static bool ends_word(const char *at)
{
    return memchr("-({[<", *at, 5) || mt_tpl_is_space(mt_utf8_at(at));
}

/* Unlike str.title, only white space and opening brackets separate words. */
MT_TPL_BODY(title)
{
    mt_tpl_str *s = mt_tpl_text(run, self);
    mt_tpl_build b = {.run = run};

    for (size_t at = 0, end; !run->failed && at < s->len; at = end) {
        bool separator = ends_word(s->data + at);
        size_t second = at + mt_utf8_size(s->data[at]);

        for (end = second; end < s->len && ends_word(s->data + end) == separator;)
            end += mt_utf8_size(s->data[end]);
        if (separator) {
            mt_tpl_build_sub(&b, s, at, end);
            continue;
        }
        mt_tpl_build_str(&b, mt_tpl_change_case(run, mt_tpl_str_sub(run, s, at, second), MT_TPL_UPPER));
        mt_tpl_build_str(&b, mt_tpl_change_case(run, mt_tpl_str_sub(run, s, second, end), MT_TPL_LOWER));
    }
    return mt_tpl_set_str(out, mt_tpl_build_end(&b));
}

MT_TPL_BODY(string)
{
    return mt_tpl_set_str(out, mt_tpl_text(run, self));
}

MT_TPL_BODY(safe)
{
    mt_tpl_str *text = mt_tpl_text(run, self), *marked;

    if (!text)
        return false;
    marked = mt_tpl_str_sub(run, text, 0, text->len);
    if (marked)
        marked->markup = true;
    return mt_tpl_set_str(out, marked);
}

/* "escape", and where which is not 0 "forceescape", which escapes markup again. */
MT_TPL_BODY(escape)
{
    mt_tpl_str *text = mt_tpl_text(run, self);

    if (which || self.kind != MT_TPL_STR || !self.as.str->markup)
        text = mt_tpl_str_escape(run, text);
    return mt_tpl_set_str(out, text);
}

MT_TPL_BODY(trim)
{
    mt_tpl_str *chars = mt_tpl_arg_str(run, mt_tpl_not_none(a[0]), NULL);

    return mt_tpl_set_str(out, mt_tpl_strip(run, mt_tpl_text(run, self), chars, MT_TPL_BOTH));
}

MT_TPL_BODY(replace)
{
    mt_tpl_str *text = mt_tpl_text(run, self), *from = mt_tpl_text(run, a[0]), *to = mt_tpl_text(run, a[1]);
    int64_t count = mt_tpl_arg_int(run, mt_tpl_not_none(a[2]), -1);

    return mt_tpl_set_str(out, mt_tpl_replace(run, mt_tpl_str_plain(run, text), from, to, count));
}

MT_TPL_BODY(center)
{
    int64_t width = mt_tpl_arg_int(run, a[0], 80);

    return mt_tpl_set_str(out, mt_tpl_pad(run, mt_tpl_text(run, self), width, &MT_TPL_LIT(" "), MT_TPL_BOTH));
}

MT_TPL_BODY(format)
{
    mt_tpl_str *text = mt_tpl_text(run, self);
    mt_tpl_value values = {.kind = MT_TPL_DICT, .as.any = args->named};

    if (!text)
        return false;
    if (args->named && args->count)
        return mt_tpl_fail(run, "can't handle positional and keyword arguments at the same time");
    return (args->named || mt_tpl_set_list(run, &values, MT_TPL_TUPLE, args->at, args->count)) &&
           mt_tpl_format_percent(run, text, values, out);
}

/* The indentation: a number of spaces, or a string. */
static mt_tpl_str *indentation(mt_tpl_run *run, mt_tpl_value width)
{
    mt_tpl_build b = {.run = run};
    int64_t count;

    if (width.kind == MT_TPL_STR)
        return width.as.str;
    count = mt_tpl_arg_int(run, width, 4);
    mt_tpl_build_fill(&b, &MT_TPL_LIT(" "), count > 0 ? (size_t)count : 0);
    return mt_tpl_build_end(&b);
}

MT_TPL_BODY(indent)
{
    mt_tpl_str *by = indentation(run, a[0]), *whole;
    bool first = mt_tpl_truth(a[1]), blank = mt_tpl_truth(a[2]);
    mt_tpl_items lines = {0};
    mt_tpl_build b = {.run = run};

    if (!by)
        return false;
    if (self.kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, self);
    if (self.kind != MT_TPL_STR)
        return mt_tpl_fail(run, "unsupported operand type(s) for +=: '%s' and 'str'", mt_tpl_type(self));
    whole = mt_tpl_str_concat(run, self.as.str, &MT_TPL_LIT("\n"));
    if (!whole || !mt_tpl_split_lines(run, whole, false, &lines))
        return false;
    for (size_t i = 0; i < lines.count && !run->failed; i++) {
        mt_tpl_build_lit(&b, i ? "\n" : "");
        if (i == 0 ? first : blank || lines.at[i].as.str->len > 0)
            mt_tpl_build_str(&b, by);
        mt_tpl_build_str(&b, lines.at[i].as.str);
    }
    return mt_tpl_set_str(out, mt_tpl_build_end_like(&b, self.as.str));
}

MT_TPL_BODY(truncate)
{
    int64_t length = mt_tpl_arg_int(run, a[0], 255);
    mt_tpl_str *end = mt_tpl_arg_str(run, a[2], &MT_TPL_LIT("..."));
    int64_t leeway = mt_tpl_arg_int(run, mt_tpl_not_none(a[3]), 5);
    mt_tpl_str *s = self.as.str; /* valid where it is a string */
    size_t cut, count;

    if (self.kind == MT_TPL_UNDEFINED)
        return mt_tpl_set(out, self);
    if (length < (int64_t)mt_tpl_str_chars(end) || leeway < 0)
        return mt_tpl_fail(run, "expected length >= %zu and leeway >= 0", mt_tpl_str_chars(end));
    if (mt_tpl_length(self, &count) && (int64_t)count - leeway <= length) /* a short list is left alone as well */
        return mt_tpl_set(out, self);
    if (self.kind != MT_TPL_STR)
        return mt_tpl_fail(run, "truncate wants a string, not %s", mt_tpl_type(self));
    cut = mt_tpl_str_offset(s, (size_t)length - mt_tpl_str_chars(end));
    if (!mt_tpl_truth(a[1])) {
        size_t word = mt_tpl_find_last(run, s, &MT_TPL_LIT(" "), 0, cut);

        cut = word == MT_TPL_UNCOUNTED ? cut : word;
    }
    return mt_tpl_set_str(out, mt_tpl_str_concat(run, mt_tpl_str_sub(run, s, 0, cut), end));
}

MT_TPL_BODY(wordcount)
{
    mt_tpl_str *s = mt_tpl_text(run, self);
    int64_t count = 0;
    bool inside = false;

    if (!s || !mt_tpl_charge(run, s->len / 4))
        return false;
    for (size_t at = 0; at < s->len; at += mt_utf8_size(s->data[at])) {
        bool word = mt_tpl_is_word(mt_utf8_at(s->data + at));

        count += word && !inside;
        inside = word;
    }
    return mt_tpl_set(out, mt_tpl_int(count));
}

/* indent: None, a number of spaces, or a string. */
static const mt_tpl_str *json_indent(mt_tpl_run *run, mt_tpl_value v)
{
    return MT_TPL_GIVEN(mt_tpl_not_none(v)) ? indentation(run, v) : NULL;
}

static bool json_separators(mt_tpl_run *run, mt_tpl_value v, mt_tpl_json_style *style)
{
    mt_tpl_value pair[2];

    if (!MT_TPL_GIVEN(mt_tpl_not_none(v)))
        return true;
    if (!mt_tpl_unpack(run, v, 2, pair))
        return false;
    if (pair[0].kind != MT_TPL_STR || pair[1].kind != MT_TPL_STR)
        return mt_tpl_fail(run, "separators must be two strings");
    style->item = pair[0].as.str;
    style->pair = pair[1].as.str;
    return true;
}

MT_TPL_BODY(tojson)
{
    mt_tpl_json_style style = {
        .ascii = mt_tpl_truth(a[0]), .sort = mt_tpl_truth(a[3]), .indent = json_indent(run, a[1])};

    return json_separators(run, a[2], &style) && mt_tpl_set_str(out, mt_tpl_to_json(run, self, &style));
}

static void quote_url(mt_tpl_build *b, const mt_tpl_str *s, bool query)
{
    for (size_t at = 0; at < s->len && !b->run->failed; at++) {
        unsigned char c = (unsigned char)s->data[at];
        bool untrusted = mt_tpl_str_untrusted(s, at, at + 1);
        char code[4] = {'%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15], '\0'};

        if ((c < 0x80 && isalnum(c)) || (c && strchr("_.-~", c)) || (c == '/' && !query))
            mt_tpl_build_add(b, s->data + at, 1, untrusted);
        else if (c == ' ' && query)
            mt_tpl_build_add(b, "+", 1, untrusted);
        else
            mt_tpl_build_add(b, code, 3, untrusted);
    }
}

static void quote_pairs(mt_tpl_build *b, const mt_tpl_items *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        mt_tpl_value pair[2];
        mt_tpl_str *key, *value;

        if (!mt_tpl_unpack(b->run, pairs->at[i], 2, pair))
            return;
        key = mt_tpl_text(b->run, pair[0]);
        value = mt_tpl_text(b->run, pair[1]);
        if (!key || !value)
            return;
        mt_tpl_build_lit(b, i ? "&" : "");
        quote_url(b, key, true);
        mt_tpl_build_lit(b, "=");
        quote_url(b, value, true);
    }
}

MT_TPL_BODY(urlencode)
{
    mt_tpl_items pairs = {0};
    mt_tpl_str *text;
    mt_tpl_build b = {.run = run};

    if (self.kind == MT_TPL_STR || !mt_tpl_is_iterable(self)) {
        text = mt_tpl_text(run, self);
        if (text)
            quote_url(&b, text, false);
    } else if (self.kind == MT_TPL_DICT ? mt_tpl_collect_pairs(run, self.as.dict, &pairs)
                                        : mt_tpl_collect(run, self, &pairs)) {
        quote_pairs(&b, &pairs);
    }
    return mt_tpl_set_str(out, mt_tpl_build_end(&b));
}

MT_TPL_BODY(xmlattr)
{
    bool space = !MT_TPL_GIVEN(a[0]) || mt_tpl_truth(a[0]);
    mt_tpl_build b = {.run = run};

    if (self.kind != MT_TPL_DICT)
        return mt_tpl_fail(run, "'%s' object has no attribute 'items'", mt_tpl_type(self));
    for (size_t i = 0; i < self.as.dict->count && !run->failed; i++) {
        const mt_tpl_entry *entry = &self.as.dict->at[i];
        mt_tpl_str *key = mt_tpl_text(run, entry->key), *value = mt_tpl_text(run, entry->value);

        if (entry->value.kind == MT_TPL_NONE || entry->value.kind == MT_TPL_UNDEFINED)
            continue;
        for (size_t k = 0; key && k < key->len; k++)
            if (isspace((unsigned char)key->data[k]) || memchr("/>=", key->data[k], 3))
                return mt_tpl_fail(run, "Invalid character in attribute name: '%.*s'", (int)key->len, key->data);
        mt_tpl_build_lit(&b, b.len || space ? " " : "");
        mt_tpl_build_str(&b, mt_tpl_str_escape(run, key));
        mt_tpl_build_lit(&b, "=\"");
        mt_tpl_build_str(&b, value && value->markup ? value : mt_tpl_str_escape(run, value));
        mt_tpl_build_lit(&b, "\"");
    }
    return mt_tpl_set_str(out, mt_tpl_build_end(&b));
}

MT_TPL_BODY(unsupported)
{
    return mt_tpl_fail(run, "the filters pprint, random, striptags, urlize and wordwrap are not supported; write what "
                            "they would do into the template");
}

const mt_tpl_builtin mt_tpl_text_filters[] = {
    {"capitalize", recase, MT_TPL_CAPITAL, 0, 0, {0}},
    {"center", center, 0, 0, 1, {"width"}},
    {"e", escape, 0, 0, 0, {0}},
    {"escape", escape, 0, 0, 0, {0}},
    {"forceescape", escape, true, 0, 0, {0}},
    {"format", format, 0, 0, MT_TPL_ANY, {0}},
    {"indent", indent, 0, 0, 3, {"width", "first", "blank"}},
    {"lower", recase, MT_TPL_LOWER, 0, 0, {0}},
    {"replace", replace, 0, 2, 3, {"old", "new", "count"}},
    {"safe", safe, 0, 0, 0, {0}},
    {"string", string, 0, 0, 0, {0}},
    {"title", title, 0, 0, 0, {0}},
    {"tojson", tojson, 0, 0, 4, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    {"trim", trim, 0, 0, 1, {"chars"}},
    {"truncate", truncate, 0, 0, 4, {"length", "killwords", "end", "leeway"}},
    {"upper", recase, MT_TPL_UPPER, 0, 0, {0}},
    {"urlencode", urlencode, 0, 0, 0, {0}},
    {"wordcount", wordcount, 0, 0, 0, {0}},
    {"xmlattr", xmlattr, 0, 0, 1, {"autospace"}},
    {"pprint", unsupported, 0, 0, MT_TPL_ANY, {0}},
    {"random", unsupported, 0, 0, MT_TPL_ANY, {0}},
    {"striptags", unsupported, 0, 0, MT_TPL_ANY, {0}},
    {"urlize", unsupported, 0, 0, MT_TPL_ANY, {0}},
    {"wordwrap", unsupported, 0, 0, MT_TPL_ANY, {0}},
    {0},
};
