/* See text.h. */
#include "template/text.h"

#include <string.h>

#include "base/utf8.h"
#include "template/repr.h"
#include "template/unicode.h"

static bool add_part(mt_tpl_run *run, const mt_tpl_str *s, size_t begin, size_t end, mt_tpl_items *out)
{
    mt_tpl_value part;

    return mt_tpl_charge(run, 1) && mt_tpl_set_str(&part, mt_tpl_str_sub(run, s, begin, end)) &&
           mt_tpl_items_add(run, out, part);
}

static bool has_char(const mt_tpl_str *chars, const char *at)
{
    size_t n = mt_utf8_size(*at);

    if (!chars)
        return mt_tpl_is_space(mt_utf8_at(at));
    for (size_t i = 0; i < chars->len; i += mt_utf8_size(chars->data[i]))
        if (mt_utf8_size(chars->data[i]) == n && memcmp(chars->data + i, at, n) == 0)
            return true;
    return false;
}

mt_tpl_str *mt_tpl_strip(mt_tpl_run *run, mt_tpl_str *s, const mt_tpl_str *chars, mt_tpl_sides sides)
{
    size_t begin = 0, end = s ? s->len : 0, cost = chars ? chars->len / 4 + 1 : 1;

    while ((sides & MT_TPL_LEFT) && begin < end && has_char(chars, s->data + begin)) {
        begin += mt_utf8_size(s->data[begin]);
        if (!mt_tpl_charge(run, cost))
            return NULL;
    }
    while ((sides & MT_TPL_RIGHT) && end > begin) {
        size_t before = mt_utf8_before(s->data, end);

        if (!has_char(chars, s->data + before))
            break;
        end = before;
        if (!mt_tpl_charge(run, cost))
            return NULL;
    }
    return !s || (begin == 0 && end == s->len) ? s : mt_tpl_str_sub(run, s, begin, end);
}

size_t mt_tpl_find(const mt_tpl_str *s, const mt_tpl_str *what, size_t begin, size_t end)
{
    const char *at;

    if (begin > end || what->len > end - begin)
        return MT_TPL_UNCOUNTED;
    if (what->len == 0)
        return begin;
    at = memmem(s->data + begin, end - begin, what->data, what->len);
    return at ? (size_t)(at - s->data) : MT_TPL_UNCOUNTED;
}

size_t mt_tpl_find_last(mt_tpl_run *run, const mt_tpl_str *s, const mt_tpl_str *what, size_t begin, size_t end)
{
    if (begin > end || what->len > end - begin)
        return MT_TPL_UNCOUNTED;
    if (what->len == 0)
        return end;
    for (size_t at = end - what->len + 1; at-- > begin;)
        if (s->data[at] == what->data[0]) {
            if (!mt_tpl_charge_bytes(run, what->len)) /* each candidate may be compared to its end */
                break;
            if (memcmp(s->data + at, what->data, what->len) == 0)
                return at;
        }
    return MT_TPL_UNCOUNTED;
}

mt_tpl_str *mt_tpl_replace(mt_tpl_run *run, const mt_tpl_str *s, const mt_tpl_str *from, const mt_tpl_str *to,
                           int64_t count)
{
    mt_tpl_build b = {.run = run};
    size_t at = 0;

    if (!s || !from || !to || !mt_tpl_charge_bytes(run, s->len))
        return NULL;
    while (count != 0 && !run->failed) {
        size_t found = mt_tpl_find(s, from, at, s->len);

        if (found == MT_TPL_UNCOUNTED)
            break;
        mt_tpl_build_sub(&b, s, at, found);
        mt_tpl_build_str(&b, to);
        at = found + from->len;
        count -= count > 0;
        if (from->len == 0) { /* it is found before every character and at the end */
            size_t n = at < s->len ? mt_utf8_size(s->data[at]) : 0;

            mt_tpl_build_sub(&b, s, at, at + n);
            at += n;
            if (n == 0 || !mt_tpl_charge(run, 1))
                break;
        }
    }
    mt_tpl_build_sub(&b, s, at, s->len);
    return mt_tpl_build_end_like(&b, s);
}

/* Whether a capital sigma gets its final lower-case form: after a letter and before none, ignoring other characters. */
static bool is_final_sigma(const mt_tpl_str *s, size_t at)
{
    size_t before = at, after = at + 2;
    bool cased = false;

    while (before > 0) {
        before = mt_utf8_before(s->data, before);
        cased = mt_tpl_is_cased(mt_utf8_at(s->data + before));
        if (cased || !mt_tpl_is_case_ignorable(mt_utf8_at(s->data + before)))
            break;
    }
    if (!cased)
        return false;
    for (; after < s->len; after += mt_utf8_size(s->data[after])) {
        uint32_t c = mt_utf8_at(s->data + after);

        if (mt_tpl_is_cased(c) && !mt_tpl_is_case_ignorable(c))
            return false;
        if (!mt_tpl_is_case_ignorable(c))
            break;
    }
    return true;
}

bool mt_tpl_is_all_case(const mt_tpl_str *s, bool upper)
{
    bool cased = false;

    for (size_t at = 0; at < s->len; at += mt_utf8_size(s->data[at])) {
        uint32_t c = mt_utf8_at(s->data + at);

        if (mt_tpl_is_title(c) || (upper ? mt_tpl_is_lower(c) : mt_tpl_is_upper(c)))
            return false;
        cased = cased || (upper ? mt_tpl_is_upper(c) : mt_tpl_is_lower(c));
    }
    return cased;
}

static size_t map_char(const mt_tpl_str *s, size_t at, mt_tpl_case to, bool first, uint32_t out[MT_TPL_CASE_MAX])
{
    uint32_t c = mt_utf8_at(s->data + at);

    switch (to) {
    case MT_TPL_UPPER: return mt_tpl_to_upper(c, out);
    case MT_TPL_FOLD: return mt_tpl_to_folded(c, out);
    case MT_TPL_TITLE:
    case MT_TPL_CAPITAL:
        if (first)
            return mt_tpl_to_title(c, out);
        break;
    case MT_TPL_SWAP:
        if (mt_tpl_is_lower(c))
            return mt_tpl_to_upper(c, out);
        if (!mt_tpl_is_upper(c)) {
            out[0] = c;
            return 1;
        }
        break;
    case MT_TPL_LOWER: break;
    }
    if (c == 0x3A3) {
        out[0] = is_final_sigma(s, at) ? 0x3C2 : 0x3C3;
        return 1;
    }
    return mt_tpl_to_lower(c, out);
}

mt_tpl_str *mt_tpl_change_case(mt_tpl_run *run, const mt_tpl_str *s, mt_tpl_case to)
{
    mt_tpl_build b = {.run = run};
    bool first = true; /* of the string, or in title case of a word */

    if (!s || !mt_tpl_charge(run, s->len))
        return NULL;
    for (size_t at = 0, n; at < s->len; at += n) {
        uint32_t mapped[MT_TPL_CASE_MAX];
        size_t count = map_char(s, at, to, first, mapped);

        n = mt_utf8_size(s->data[at]);
        for (size_t i = 0; i < count; i++)
            mt_tpl_build_char(&b, mapped[i], mt_tpl_str_untrusted(s, at, at + n));
        first = to == MT_TPL_TITLE && !mt_tpl_is_cased(mt_utf8_at(s->data + at));
    }
    return mt_tpl_build_end_like(&b, s);
}

mt_tpl_str *mt_tpl_pad(mt_tpl_run *run, mt_tpl_str *s, int64_t width, const mt_tpl_str *fill, mt_tpl_sides text_at)
{
    size_t chars = s ? mt_tpl_str_chars(s) : 0, missing, left;
    mt_tpl_build b = {.run = run};

    if (!s || width <= 0 || (uint64_t)width <= chars)
        return s;
    missing = (size_t)width - chars;
    left = missing / 2 + (missing & (size_t)width & 1); /* as CPython centres */
    if (text_at == MT_TPL_LEFT)
        left = 0;
    if (text_at == MT_TPL_RIGHT)
        left = missing;
    mt_tpl_build_fill(&b, fill, left);
    mt_tpl_build_str(&b, s);
    mt_tpl_build_fill(&b, fill, missing - left);
    return mt_tpl_build_end_like(&b, s);
}

mt_tpl_str *mt_tpl_join(mt_tpl_run *run, const mt_tpl_str *separator, const mt_tpl_value *items, size_t count)
{
    mt_tpl_build b = {.run = run};

    for (size_t i = 0; i < count && !run->failed; i++) {
        if (i > 0)
            mt_tpl_build_str(&b, separator);
        mt_tpl_build_text(&b, items[i]);
    }
    return mt_tpl_build_end(&b);
}

mt_tpl_str *mt_tpl_reverse_text(mt_tpl_run *run, const mt_tpl_str *s)
{
    mt_tpl_build b = {.run = run};

    for (size_t end = s->len; end > 0 && !run->failed;) {
        size_t begin = mt_utf8_before(s->data, end);

        mt_tpl_build_sub(&b, s, begin, end);
        end = begin;
    }
    return mt_tpl_build_end_like(&b, s);
}

static size_t skip_space(const mt_tpl_str *s, size_t at)
{
    while (at < s->len && mt_tpl_is_space(mt_utf8_at(s->data + at)))
        at += mt_utf8_size(s->data[at]);
    return at;
}

static bool split_space(mt_tpl_run *run, const mt_tpl_str *s, int64_t most, mt_tpl_items *out)
{
    size_t at = skip_space(s, 0);

    while (at < s->len) {
        size_t end = at;

        if (most == 0)
            return add_part(run, s, at, s->len, out);
        while (end < s->len && !mt_tpl_is_space(mt_utf8_at(s->data + end)))
            end += mt_utf8_size(s->data[end]);
        if (!add_part(run, s, at, end, out))
            return false;
        most -= most > 0;
        at = skip_space(s, end);
    }
    return true;
}

bool mt_tpl_split(mt_tpl_run *run, mt_tpl_str *s, const mt_tpl_str *separator, int64_t most, mt_tpl_items *out)
{
    size_t at = 0;

    if (!mt_tpl_charge_bytes(run, s->len))
        return false;
    if (!separator)
        return split_space(run, s, most, out);
    if (separator->len == 0)
        return mt_tpl_fail(run, "empty separator");
    for (; most != 0; most -= most > 0) {
        size_t found = mt_tpl_find(s, separator, at, s->len);

        if (found == MT_TPL_UNCOUNTED)
            break;
        if (!add_part(run, s, at, found, out))
            return false;
        at = found + separator->len;
    }
    return add_part(run, s, at, s->len, out);
}

static size_t skip_space_back(const mt_tpl_str *s, size_t end, bool space)
{
    while (end > 0 && mt_tpl_is_space(mt_utf8_at(s->data + mt_utf8_before(s->data, end))) == space)
        end = mt_utf8_before(s->data, end);
    return end;
}

static bool rsplit_space(mt_tpl_run *run, const mt_tpl_str *s, int64_t most, mt_tpl_items *out)
{
    size_t end = skip_space_back(s, s->len, true);

    while (end > 0) {
        size_t begin = most == 0 ? 0 : skip_space_back(s, end, false);

        if (!add_part(run, s, begin, end, out))
            return false;
        end = most == 0 ? 0 : skip_space_back(s, begin, true);
        most -= most > 0;
    }
    return true;
}

bool mt_tpl_rsplit(mt_tpl_run *run, mt_tpl_str *s, const mt_tpl_str *separator, int64_t most, mt_tpl_items *out)
{
    size_t end = s->len, first = out->count;
    bool ok = mt_tpl_charge(run, 1 + s->len / 4);

    if (separator && separator->len == 0)
        return mt_tpl_fail(run, "empty separator");
    if (!separator)
        ok = ok && rsplit_space(run, s, most, out);
    for (; ok && separator; most -= most > 0) {
        size_t found = most == 0 ? MT_TPL_UNCOUNTED : mt_tpl_find_last(run, s, separator, 0, end);

        if (found == MT_TPL_UNCOUNTED) {
            ok = add_part(run, s, 0, end, out);
            break;
        }
        ok = add_part(run, s, found + separator->len, end, out);
        end = found;
    }
    ok = ok && !run->failed;
    for (size_t i = first, k = out->count; ok && i + 1 < k; i++) { /* they were found from the right */
        mt_tpl_value other = out->at[--k];

        out->at[k] = out->at[i];
        out->at[i] = other;
    }
    return ok;
}

bool mt_tpl_split_lines(mt_tpl_run *run, mt_tpl_str *s, bool keep_ends, mt_tpl_items *out)
{
    size_t begin = 0, at = 0;

    if (!mt_tpl_charge(run, 1 + s->len / 4))
        return false;
    while (at < s->len) {
        uint32_t c = mt_utf8_at(s->data + at);
        size_t end = at;

        at += mt_utf8_size(s->data[at]);
        if (!mt_tpl_is_line_break(c))
            continue;
        if (c == '\r' && at < s->len && s->data[at] == '\n')
            at++;
        if (!add_part(run, s, begin, keep_ends ? at : end, out))
            return false;
        begin = at;
    }
    return begin == s->len || add_part(run, s, begin, s->len, out);
}
