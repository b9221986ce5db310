/* Methods of str that change case, pad, and test classes of characters. */

#include "base/utf8.h"
#include "template/builtin.h"
#include "template/text.h"
#include "template/unicode.h"

MT_TPL_BODY(str_recase)
{
    return mt_tpl_set_str(out, mt_tpl_change_case(run, self.as.str, which));
}

/* Whether all characters are of a class. empty: the answer for the empty string. */
static bool all_are(mt_tpl_run *run, mt_tpl_value self, bool (*is)(uint32_t c), bool empty, mt_tpl_value *out)
{
    const mt_tpl_str *s = self.as.str;
    bool all = empty || s->len > 0;

    for (size_t at = 0; all && at < s->len; at += mt_utf8_size(s->data[at]))
        all = is(mt_utf8_at(s->data + at));
    return mt_tpl_set(out, mt_tpl_bool(all)) && mt_tpl_charge(run, s->len / 4);
}

#define CLASS_METHOD(name, is, empty)              \
    MT_TPL_BODY(name)                              \
    {                                              \
        return all_are(run, self, is, empty, out); \
    }

static bool is_ascii(uint32_t c)
{
    return c < 0x80;
}

CLASS_METHOD(str_isspace, mt_tpl_is_space, false)
CLASS_METHOD(str_isalpha, mt_tpl_is_alpha, false)
CLASS_METHOD(str_isalnum, mt_tpl_is_alnum, false)
CLASS_METHOD(str_isdigit, mt_tpl_is_digit, false)
CLASS_METHOD(str_isdecimal, mt_tpl_is_decimal, false)
CLASS_METHOD(str_isnumeric, mt_tpl_is_numeric, false)
CLASS_METHOD(str_isprintable, mt_tpl_is_printable, true)
CLASS_METHOD(str_isascii, is_ascii, true)

MT_TPL_BODY(str_isidentifier)
{
    const mt_tpl_str *s = self.as.str;

    if (!all_are(run, self, mt_tpl_is_name, false, out))
        return false;
    if (s->len && !mt_tpl_is_name_start(mt_utf8_at(s->data)))
        *out = mt_tpl_bool(false);
    return true;
}

MT_TPL_BODY(str_iscase)
{
    *out = mt_tpl_bool(mt_tpl_is_all_case(self.as.str, which == MT_TPL_UPPER));
    return mt_tpl_charge(run, self.as.str->len / 4);
}

MT_TPL_BODY(str_istitle)
{
    const mt_tpl_str *s = self.as.str;
    bool cased = false, inside = false, ok = true;

    for (size_t at = 0; ok && at < s->len; at += mt_utf8_size(s->data[at])) {
        uint32_t c = mt_utf8_at(s->data + at);
        bool big = mt_tpl_is_upper(c) || mt_tpl_is_title(c), small = mt_tpl_is_lower(c);

        ok = big ? !inside : !small || inside;
        inside = big || small;
        cased = cased || inside;
    }
    *out = mt_tpl_bool(ok && cased);
    return mt_tpl_charge(run, s->len / 4);
}

MT_TPL_BODY(str_pad)
{
    int64_t width = mt_tpl_arg_int(run, a[0], 0);
    mt_tpl_str *fill = mt_tpl_arg_str(run, a[1], &MT_TPL_LIT(" "));

    if (mt_tpl_str_chars(fill) != 1)
        return mt_tpl_fail(run, "The fill character must be exactly one character long");
    return mt_tpl_set_str(out, mt_tpl_pad(run, self.as.str, width, fill, which));
}

MT_TPL_BODY(str_zfill)
{
    mt_tpl_str *s = self.as.str;
    size_t sign = s->len && (s->data[0] == '+' || s->data[0] == '-'), chars = mt_tpl_str_chars(s);
    int64_t width = mt_tpl_arg_int(run, a[0], 0);
    mt_tpl_build b = {.run = run};

    mt_tpl_build_sub(&b, s, 0, sign);
    if (width > 0 && (uint64_t)width > chars)
        mt_tpl_build_fill(&b, &MT_TPL_LIT("0"), (size_t)width - chars);
    mt_tpl_build_sub(&b, s, sign, s->len);
    return mt_tpl_set_str(out, mt_tpl_build_end(&b));
}

MT_TPL_BODY(str_expandtabs)
{
    const mt_tpl_str *s = self.as.str;
    int64_t size = mt_tpl_arg_int(run, a[0], 8), column = 0;
    mt_tpl_build b = {.run = run};

    for (size_t at = 0, n; at < s->len && !run->failed; at += n) {
        n = mt_utf8_size(s->data[at]);
        if (s->data[at] == '\t') {
            int64_t spaces = size > 0 ? size - column % size : 0;

            mt_tpl_build_fill(&b, &MT_TPL_LIT(" "), (size_t)spaces);
            column += spaces;
            continue;
        }
        mt_tpl_build_sub(&b, s, at, at + n);
        column = s->data[at] == '\n' || s->data[at] == '\r' ? 0 : column + 1;
    }
    return mt_tpl_set_str(out, mt_tpl_build_end_like(&b, s));
}

MT_TPL_BODY(str_unsupported)
{
    return mt_tpl_fail(run, "str.encode, str.translate and str.maketrans are not supported; use replace");
}

const mt_tpl_builtin mt_tpl_str_class_methods[] = {
    {"upper", str_recase, MT_TPL_UPPER, 0, 0, {0}},
    {"lower", str_recase, MT_TPL_LOWER, 0, 0, {0}},
    {"title", str_recase, MT_TPL_TITLE, 0, 0, {0}},
    {"capitalize", str_recase, MT_TPL_CAPITAL, 0, 0, {0}},
    {"swapcase", str_recase, MT_TPL_SWAP, 0, 0, {0}},
    {"casefold", str_recase, MT_TPL_FOLD, 0, 0, {0}},
    {"isspace", str_isspace, 0, 0, 0, {0}},
    {"isalpha", str_isalpha, 0, 0, 0, {0}},
    {"isalnum", str_isalnum, 0, 0, 0, {0}},
    {"isdigit", str_isdigit, 0, 0, 0, {0}},
    {"isdecimal", str_isdecimal, 0, 0, 0, {0}},
    {"isnumeric", str_isnumeric, 0, 0, 0, {0}},
    {"isprintable", str_isprintable, 0, 0, 0, {0}},
    {"isascii", str_isascii, 0, 0, 0, {0}},
    {"isidentifier", str_isidentifier, 0, 0, 0, {0}},
    {"isupper", str_iscase, MT_TPL_UPPER, 0, 0, {0}},
    {"islower", str_iscase, MT_TPL_LOWER, 0, 0, {0}},
    {"istitle", str_istitle, 0, 0, 0, {0}},
    {"center", str_pad, MT_TPL_BOTH, 1, 2, {0}},
    {"ljust", str_pad, MT_TPL_LEFT, 1, 2, {0}},
    {"rjust", str_pad, MT_TPL_RIGHT, 1, 2, {0}},
    {"zfill", str_zfill, 0, 1, 1, {0}},
    {"expandtabs", str_expandtabs, 0, 0, 1, {"tabsize"}},
    {"encode", str_unsupported, 0, 0, MT_TPL_ANY, {0}},
    {"translate", str_unsupported, 0, 0, MT_TPL_ANY, {0}},
    {"maketrans", str_unsupported, 0, 0, MT_TPL_ANY, {0}},
    {0},
};
