/* Methods of str that cut, search and join. */
#include <string.h>

#include "template/builtin.h"
#include "template/format.h"
#include "template/iter.h"
#include "template/text.h"

/* `which` of a method that searches: the first occurrence, or the last; OR_FAIL: it is an error where there is none. */
enum { FIRST = 0, LAST = 1, OR_FAIL = 2 };

/* An optional string; None means not given. */
static mt_tpl_str *optional_str(mt_tpl_run *run, mt_tpl_value v)
{
    return mt_tpl_arg_str(run, mt_tpl_not_none(v), NULL);
}

/* A string that must be given. */
static mt_tpl_str *needed_str(mt_tpl_run *run, mt_tpl_value v)
{
    static mt_tpl_str empty = {.data = ""}; /* never changed: its characters are counted */

    return mt_tpl_arg_str(run, v, &empty);
}

/* Escapes a string that is put into markup. */
static bool into(mt_tpl_run *run, const mt_tpl_str *self, mt_tpl_str **s)
{
    if (self->markup && !(*s)->markup)
        *s = mt_tpl_str_escape(run, *s);
    return *s != NULL;
}

MT_TPL_BODY(str_strip)
{
    return mt_tpl_set_str(out, mt_tpl_strip(run, self.as.str, optional_str(run, a[0]), which));
}

MT_TPL_BODY(str_split)
{
    mt_tpl_items parts = {0};
    mt_tpl_str *separator = optional_str(run, a[0]);
    int64_t most = mt_tpl_arg_int(run, a[1], -1);

    return (which == LAST ? mt_tpl_rsplit : mt_tpl_split)(run, self.as.str, separator, most, &parts) &&
           mt_tpl_items_end(run, &parts, MT_TPL_LIST, out);
}

MT_TPL_BODY(str_splitlines)
{
    mt_tpl_items parts = {0};

    return mt_tpl_split_lines(run, self.as.str, mt_tpl_truth(a[0]), &parts) &&
           mt_tpl_items_end(run, &parts, MT_TPL_LIST, out);
}

static bool set_parts(mt_tpl_run *run, mt_tpl_value self, size_t at, size_t len, mt_tpl_value *out)
{
    const size_t ends[] = {0, at, at + len, self.as.str->len};
    mt_tpl_value parts[3];

    for (size_t i = 0; i < 3; i++)
        if (!mt_tpl_set_str(&parts[i], mt_tpl_str_sub(run, self.as.str, ends[i], ends[i + 1])))
            return false;
    return mt_tpl_set_list(run, out, MT_TPL_TUPLE, parts, 3);
}

MT_TPL_BODY(str_parts)
{
    mt_tpl_str *separator = needed_str(run, a[0]), *s = self.as.str;
    size_t at;

    if (!mt_tpl_charge_bytes(run, s->len))
        return false;
    if (separator->len == 0)
        return mt_tpl_fail(run, "empty separator");
    at = which == LAST ? mt_tpl_find_last(run, s, separator, 0, s->len) : mt_tpl_find(s, separator, 0, s->len);
    if (at == MT_TPL_UNCOUNTED)
        return set_parts(run, self, which == LAST ? 0 : s->len, 0, out);
    return set_parts(run, self, at, separator->len, out);
}

MT_TPL_BODY(str_replace)
{
    mt_tpl_str *from = needed_str(run, a[0]), *to = needed_str(run, a[1]);
    int64_t count = mt_tpl_arg_int(run, a[2], -1);

    return into(run, self.as.str, &to) && mt_tpl_set_str(out, mt_tpl_replace(run, self.as.str, from, to, count));
}

MT_TPL_BODY(str_join)
{
    mt_tpl_items items = {0};

    if (a[0].kind != MT_TPL_UNDEFINED && !mt_tpl_is_iterable(a[0]))
        return mt_tpl_fail(run, "can only join an iterable");
    if (!mt_tpl_collect(run, a[0], &items))
        return false;
    for (size_t i = 0; i < items.count; i++) {
        if (items.at[i].kind != MT_TPL_STR)
            return mt_tpl_fail(run, "sequence item %zu: expected str instance, %s found", i, mt_tpl_type(items.at[i]));
        if (!into(run, self.as.str, &items.at[i].as.str))
            return false;
    }
    if (!mt_tpl_set_str(out, mt_tpl_join(run, self.as.str, items.at, items.count)))
        return false;
    out->as.str->markup = self.as.str->markup;
    return true;
}

/* The bytes of a search whose optional start and end are characters; begin > end: nothing is left. */
static mt_range window(mt_tpl_run *run, mt_tpl_str *s, mt_tpl_value from, mt_tpl_value to)
{
    int64_t chars = (int64_t)mt_tpl_str_chars(s);
    int64_t first = mt_tpl_arg_int(run, mt_tpl_not_none(from), 0);
    int64_t last = mt_tpl_arg_int(run, mt_tpl_not_none(to), chars);

    if (!mt_tpl_charge_bytes(run, s->len))
        return (mt_range){.begin = 1, .end = 0};
    if (first < 0)
        first = first + chars < 0 ? 0 : first + chars;
    if (last < 0)
        last = last + chars < 0 ? 0 : last + chars;
    return (mt_range){.begin = first > chars ? s->len + 1 : mt_tpl_str_offset(s, (size_t)first),
                      .end = mt_tpl_str_offset(s, (size_t)MT_MIN(last, chars))};
}

/* The number of characters in a range of a string. */
static int64_t chars_in(const mt_tpl_str *s, size_t begin, size_t end)
{
    mt_tpl_str part = {.data = s->data + begin, .len = end - begin, .chars = MT_TPL_UNCOUNTED};

    return (int64_t)mt_tpl_str_chars(&part);
}

static bool affix_at(const mt_tpl_str *s, const mt_tpl_str *affix, mt_range in, bool at_end)
{
    if (in.begin > in.end || affix->len > in.end - in.begin)
        return false;
    return affix->len == 0 || memcmp(s->data + (at_end ? in.end - affix->len : in.begin), affix->data, affix->len) == 0;
}

MT_TPL_BODY(str_has_affix)
{
    const bool at_end = which == LAST;
    const char *name = at_end ? "endswith" : "startswith";
    mt_range in;
    bool found = false;

    if (a[0].kind != MT_TPL_STR && a[0].kind != MT_TPL_TUPLE)
        return mt_tpl_fail(run, "%s first arg must be str or a tuple of str, not %s", name, mt_tpl_type(a[0]));
    in = window(run, self.as.str, a[1], a[2]);
    if (a[0].kind == MT_TPL_STR)
        found = affix_at(self.as.str, a[0].as.str, in, at_end);
    for (size_t i = 0; a[0].kind == MT_TPL_TUPLE && !found && i < a[0].as.list->count; i++) {
        mt_tpl_value affix = a[0].as.list->at[i];

        if (affix.kind != MT_TPL_STR)
            return mt_tpl_fail(run, "tuple for %s must only contain str, not %s", name, mt_tpl_type(affix));
        found = affix_at(self.as.str, affix.as.str, in, at_end);
    }
    return mt_tpl_set(out, mt_tpl_bool(found));
}

MT_TPL_BODY(str_find)
{
    mt_tpl_str *s = self.as.str, *what = needed_str(run, a[0]);
    const mt_range in = window(run, s, a[1], a[2]);
    const size_t at =
        which & LAST ? mt_tpl_find_last(run, s, what, in.begin, in.end) : mt_tpl_find(s, what, in.begin, in.end);

    *out = mt_tpl_int(at == MT_TPL_UNCOUNTED ? -1 : chars_in(s, 0, at));
    return at != MT_TPL_UNCOUNTED || !(which & OR_FAIL) || mt_tpl_fail(run, "substring not found");
}

MT_TPL_BODY(str_count)
{
    mt_tpl_str *s = self.as.str, *what = needed_str(run, a[0]);
    mt_range in = window(run, s, a[1], a[2]);
    int64_t count = 0;

    if (what->len == 0 && in.begin <= in.end)
        count = chars_in(s, in.begin, in.end) + 1;
    while (what->len && (in.begin = mt_tpl_find(s, what, in.begin, in.end)) != MT_TPL_UNCOUNTED) {
        count++;
        in.begin += what->len;
        if (!mt_tpl_charge(run, 1))
            return false;
    }
    return mt_tpl_set(out, mt_tpl_int(count));
}

MT_TPL_BODY(str_remove_affix)
{
    mt_tpl_str *s = self.as.str, *affix = needed_str(run, a[0]);

    if (affix_at(s, affix, (mt_range){0, s->len}, which == LAST))
        s = mt_tpl_str_sub(run, s, which == LAST ? 0 : affix->len, s->len - (which == LAST ? affix->len : 0));
    return mt_tpl_set_str(out, s);
}

MT_TPL_BODY(str_format)
{
    return mt_tpl_format_braces(run, self.as.str, args, out);
}

MT_TPL_BODY(str_format_map)
{
    if (a[0].kind != MT_TPL_DICT)
        return mt_tpl_fail(run, "format_map() wants a dict, not %s", mt_tpl_type(a[0]));
    return mt_tpl_format_braces(run, self.as.str, &(mt_tpl_args){.named = a[0].as.dict}, out);
}

const mt_tpl_builtin mt_tpl_str_methods[] = {
    {"strip", str_strip, MT_TPL_BOTH, 0, 1, {0}},
    {"lstrip", str_strip, MT_TPL_LEFT, 0, 1, {0}},
    {"rstrip", str_strip, MT_TPL_RIGHT, 0, 1, {0}},
    {"split", str_split, FIRST, 0, 2, {"sep", "maxsplit"}},
    {"rsplit", str_split, LAST, 0, 2, {"sep", "maxsplit"}},
    {"splitlines", str_splitlines, 0, 0, 1, {"keepends"}},
    {"partition", str_parts, FIRST, 1, 1, {0}},
    {"rpartition", str_parts, LAST, 1, 1, {0}},
    {"replace", str_replace, 0, 2, 3, {0}},
    {"join", str_join, 0, 1, 1, {0}},
    {"startswith", str_has_affix, FIRST, 1, 3, {0}},
    {"endswith", str_has_affix, LAST, 1, 3, {0}},
    {"find", str_find, FIRST, 1, 3, {0}},
    {"rfind", str_find, LAST, 1, 3, {0}},
    {"index", str_find, FIRST | OR_FAIL, 1, 3, {0}},
    {"rindex", str_find, LAST | OR_FAIL, 1, 3, {0}},
    {"count", str_count, 0, 1, 3, {0}},
    {"removeprefix", str_remove_affix, FIRST, 1, 1, {0}},
    {"removesuffix", str_remove_affix, LAST, 1, 1, {0}},
    {"format", str_format, 0, 0, MT_TPL_ANY, {0}},
    {"format_map", str_format_map, 0, 1, 1, {0}},
    {0},
};
