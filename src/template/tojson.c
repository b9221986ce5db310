/* See tojson.h. */
#include "template/tojson.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/float_text.h"
#include "base/utf8.h"
#include "template/sort.h"

typedef struct writer {
    mt_tpl_build b;
    const mt_tpl_json_style *style;
    size_t level;
} writer;

static void write_value(writer *w, mt_tpl_value v);

static void write_escape(writer *w, uint32_t c, bool untrusted)
{
    static const char letters[] = "\"\\\b\f\n\r\t", codes[] = "\"\\bfnrt";
    const char *simple = c && c < 0x80 ? strchr(letters, (int)c) : NULL;
    char text[16];

    if (simple)
        snprintf(text, sizeof(text), "\\%c", codes[simple - letters]);
    else if (c < 0x10000)
        snprintf(text, sizeof(text), "\\u%04x", c);
    else
        snprintf(text, sizeof(text), "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
    mt_tpl_build_add(&w->b, text, strlen(text), untrusted);
}

static bool is_plain(const writer *w, unsigned char c)
{
    return c >= 0x20 && c != '"' && c != '\\' && !(w->style->ascii && c >= 0x7F);
}

static void write_str(writer *w, const mt_tpl_str *s)
{
    mt_tpl_build_lit(&w->b, "\"");
    for (size_t at = 0; at < s->len && !w->b.run->failed;) {
        size_t end = at;

        while (end < s->len && is_plain(w, (unsigned char)s->data[end]))
            end++;
        mt_tpl_build_sub(&w->b, s, at, end);
        at = end;
        if (at < s->len) {
            size_t n = mt_utf8_size(s->data[at]);
            uint32_t c = mt_utf8_at(s->data + at);

            if (c == 0x7F)
                mt_tpl_build_sub(&w->b, s, at, at + 1);
            else
                write_escape(w, c, mt_tpl_str_untrusted(s, at, at + n));
            at += n;
        }
    }
    mt_tpl_build_lit(&w->b, "\"");
}

static void write_float(writer *w, double d)
{
    char text[MT_FLOAT_TEXT];

    mt_float_text(d, text);
    if (isnan(d))
        mt_tpl_build_lit(&w->b, "NaN");
    else if (isinf(d))
        mt_tpl_build_lit(&w->b, d < 0 ? "-Infinity" : "Infinity");
    else
        mt_tpl_build_lit(&w->b, text);
}

static void write_line(writer *w)
{
    if (!w->style->indent)
        return;
    mt_tpl_build_lit(&w->b, "\n");
    mt_tpl_build_fill(&w->b, w->style->indent, w->level);
}

/* The separator before item number i. */
static void write_before(writer *w, size_t i)
{
    if (i > 0 && w->style->item)
        mt_tpl_build_str(&w->b, w->style->item);
    else if (i > 0)
        mt_tpl_build_lit(&w->b, w->style->indent ? "," : ", ");
    write_line(w);
}

static void write_close(writer *w, size_t count, const char *bracket)
{
    w->level--;
    if (count)
        write_line(w);
    mt_tpl_build_lit(&w->b, bracket);
}

static void write_list(writer *w, const mt_tpl_list *list)
{
    mt_tpl_build_lit(&w->b, "[");
    w->level++;
    for (size_t i = 0; i < list->count && !w->b.run->failed; i++) {
        write_before(w, i);
        write_value(w, list->at[i]);
    }
    write_close(w, list->count, "]");
}

static void write_key(writer *w, mt_tpl_value key)
{
    switch (key.kind) {
    case MT_TPL_STR: write_str(w, key.as.str); break;
    case MT_TPL_NONE:
    case MT_TPL_BOOL:
    case MT_TPL_INT:
    case MT_TPL_BIG:
    case MT_TPL_FLOAT:
        mt_tpl_build_lit(&w->b, "\"");
        write_value(w, key);
        mt_tpl_build_lit(&w->b, "\"");
        break;
    default: mt_tpl_fail(w->b.run, "keys must be str, int, float, bool or None, not %s", mt_tpl_type(key)); break;
    }
}

/* The keys in the order in which they are written. */
static const mt_tpl_value *ordered_keys(writer *w, const mt_tpl_dict *dict)
{
    mt_tpl_run *run = w->b.run;
    mt_tpl_value *keys = mt_tpl_alloc_array(run, dict->count, sizeof(*keys));

    if (!keys)
        return NULL;
    for (size_t i = 0; i < dict->count; i++)
        keys[i] = dict->at[i].key;
    return mt_tpl_sort(run, keys, keys, dict->count, false) ? keys : NULL;
}

static void write_dict(writer *w, const mt_tpl_dict *dict)
{
    const mt_tpl_value *keys = NULL;

    if (w->style->sort && !(keys = ordered_keys(w, dict)))
        return;
    mt_tpl_build_lit(&w->b, "{");
    w->level++;
    for (size_t i = 0; i < dict->count && !w->b.run->failed; i++) {
        const mt_tpl_value value = keys ? mt_tpl_dict_get(w->b.run, dict, keys[i]) : dict->at[i].value;

        write_before(w, i);
        write_key(w, keys ? keys[i] : dict->at[i].key);
        if (w->style->pair)
            mt_tpl_build_str(&w->b, w->style->pair);
        else
            mt_tpl_build_lit(&w->b, ": ");
        write_value(w, value);
    }
    write_close(w, dict->count, "}");
}

static void write_any(writer *w, mt_tpl_value v)
{
    switch (v.kind) {
    case MT_TPL_NONE: mt_tpl_build_lit(&w->b, "null"); break;
    case MT_TPL_BOOL: mt_tpl_build_lit(&w->b, v.as.boolean ? "true" : "false"); break;
    case MT_TPL_INT: mt_tpl_build_printf(&w->b, "%" PRId64, v.as.integer); break;
    case MT_TPL_BIG: mt_tpl_build_str(&w->b, v.as.str); break;
    case MT_TPL_FLOAT: write_float(w, v.as.real); break;
    case MT_TPL_STR: write_str(w, v.as.str); break;
    case MT_TPL_LIST:
    case MT_TPL_TUPLE: write_list(w, v.as.list); break;
    case MT_TPL_DICT: write_dict(w, v.as.dict); break;
    default: mt_tpl_fail(w->b.run, "Object of type %s is not JSON serializable", mt_tpl_type(v)); break;
    }
}

static void write_value(writer *w, mt_tpl_value v)
{
    if (!mt_tpl_enter(w->b.run))
        return;
    write_any(w, v);
    mt_tpl_leave(w->b.run);
}

mt_tpl_str *mt_tpl_to_json(mt_tpl_run *run, mt_tpl_value v, const mt_tpl_json_style *style)
{
    writer w = {.b = {.run = run}, .style = style};

    write_value(&w, v);
    return mt_tpl_build_end(&w.b);
}
