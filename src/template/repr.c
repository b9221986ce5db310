/* See repr.h. */
#include "template/repr.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/float_text.h"
#include "base/utf8.h"
#include "template/builtin.h"
#include "template/iter.h"
#include "template/loop.h"
#include "template/macro.h"
#include "template/unicode.h"

static void repr_char(mt_tpl_build *b, uint32_t c, char quote, bool untrusted)
{
    char code[16];

    if (c == (uint32_t)quote || c == '\\')
        snprintf(code, sizeof(code), "\\%c", (char)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        snprintf(code, sizeof(code), "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (mt_tpl_is_printable(c)) {
        mt_tpl_build_char(b, c, untrusted);
        return;
    } else if (c < 0x100)
        snprintf(code, sizeof(code), "\\x%02x", c);
    else
        snprintf(code, sizeof(code), c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
    mt_tpl_build_add(b, code, strlen(code), untrusted);
}

static void repr_str(mt_tpl_build *b, const mt_tpl_str *s)
{
    char quote = s->len && memchr(s->data, '\'', s->len) && !memchr(s->data, '"', s->len) ? '"' : '\'';

    if (!mt_tpl_charge(b->run, s->len))
        return;
    mt_tpl_build_lit(b, s->markup ? "Markup(" : "");
    mt_tpl_build_add(b, &quote, 1, false);
    for (size_t at = 0, n; at < s->len; at += n) {
        n = mt_utf8_size(s->data[at]);
        repr_char(b, mt_utf8_at(s->data + at), quote, mt_tpl_str_untrusted(s, at, at + n));
    }
    mt_tpl_build_add(b, &quote, 1, false);
    mt_tpl_build_lit(b, s->markup ? ")" : "");
}

static void repr_items(mt_tpl_build *b, const char *open, const mt_tpl_value *items, size_t count, const char *close)
{
    mt_tpl_build_lit(b, open);
    for (size_t i = 0; i < count && !b->run->failed; i++) {
        mt_tpl_build_lit(b, i ? ", " : "");
        mt_tpl_build_repr(b, items[i]);
    }
    mt_tpl_build_lit(b, close);
}

static void repr_dict(mt_tpl_build *b, const mt_tpl_dict *d)
{
    mt_tpl_build_lit(b, "{");
    for (size_t i = 0; i < d->count && !b->run->failed; i++) {
        mt_tpl_build_lit(b, i ? ", " : "");
        mt_tpl_build_repr(b, d->at[i].key);
        mt_tpl_build_lit(b, ": ");
        mt_tpl_build_repr(b, d->at[i].value);
    }
    mt_tpl_build_lit(b, "}");
}

static void repr_view(mt_tpl_build *b, mt_tpl_value view)
{
    mt_tpl_items items = {0};

    mt_tpl_build_lit(b, mt_tpl_type(view));
    if (mt_tpl_collect(b->run, view, &items))
        repr_items(b, "([", items.at, items.count, "])");
}

static void repr_range(mt_tpl_build *b, const mt_tpl_range *range)
{
    mt_tpl_build_printf(b, "range(%" PRId64 ", %" PRId64, range->start, range->stop);
    if (range->step != 1)
        mt_tpl_build_printf(b, ", %" PRId64, range->step);
    mt_tpl_build_lit(b, ")");
}

static void repr_float(mt_tpl_build *b, double d)
{
    char text[MT_FLOAT_TEXT];

    mt_float_text(d, text);
    mt_tpl_build_lit(b, text);
}

/* Values that Python shows with their address, or that templates have no reason to print. */
static void repr_object(mt_tpl_build *b, mt_tpl_value v)
{
    switch (v.kind) {
    case MT_TPL_NAMESPACE:
        mt_tpl_build_lit(b, "<Namespace ");
        repr_dict(b, v.as.dict);
        mt_tpl_build_lit(b, ">");
        break;
    case MT_TPL_SELF: mt_tpl_build_lit(b, "<TemplateReference None>"); break;
    case MT_TPL_MACRO: mt_tpl_macro_repr(b, v.as.macro); break;
    case MT_TPL_LOOP: mt_tpl_loop_repr(b, v.as.loop); break;
    case MT_TPL_FUNCTION: mt_tpl_build_printf(b, "<function %s>", v.as.function->name); break;
    case MT_TPL_METHOD:
        mt_tpl_build_printf(b, "<built-in method %s of %s object>", v.as.method->call->name,
                            mt_tpl_type(v.as.method->self));
        break;
    default: mt_tpl_build_printf(b, "<%s object>", mt_tpl_type(v)); break;
    }
}

static void repr_value(mt_tpl_build *b, mt_tpl_value v)
{
    switch (v.kind) {
    case MT_TPL_UNDEFINED: mt_tpl_build_lit(b, "Undefined"); break;
    case MT_TPL_NONE: mt_tpl_build_lit(b, "None"); break;
    case MT_TPL_BOOL: mt_tpl_build_lit(b, v.as.boolean ? "True" : "False"); break;
    case MT_TPL_INT: mt_tpl_build_printf(b, "%" PRId64, v.as.integer); break;
    case MT_TPL_BIG: mt_tpl_build_str(b, v.as.str); break;
    case MT_TPL_FLOAT: repr_float(b, v.as.real); break;
    case MT_TPL_STR: repr_str(b, v.as.str); break;
    case MT_TPL_LIST: repr_items(b, "[", v.as.list->at, v.as.list->count, "]"); break;
    case MT_TPL_TUPLE: repr_items(b, "(", v.as.list->at, v.as.list->count, v.as.list->count == 1 ? ",)" : ")"); break;
    case MT_TPL_DICT: repr_dict(b, v.as.dict); break;
    case MT_TPL_RANGE: repr_range(b, v.as.range); break;
    case MT_TPL_VIEW: repr_view(b, v); break;
    default: repr_object(b, v); break;
    }
}

void mt_tpl_build_repr(mt_tpl_build *b, mt_tpl_value v)
{
    if (!mt_tpl_enter(b->run))
        return;
    repr_value(b, v);
    mt_tpl_leave(b->run);
}

void mt_tpl_build_text(mt_tpl_build *b, mt_tpl_value v)
{
    if (v.kind == MT_TPL_STR)
        mt_tpl_build_str(b, v.as.str);
    else if (v.kind != MT_TPL_UNDEFINED)
        mt_tpl_build_repr(b, v);
}

mt_tpl_str *mt_tpl_text(mt_tpl_run *run, mt_tpl_value v)
{
    mt_tpl_build b = {.run = run};

    if (v.kind == MT_TPL_STR)
        return v.as.str;
    mt_tpl_build_text(&b, v);
    return mt_tpl_build_end(&b);
}

mt_tpl_str *mt_tpl_repr(mt_tpl_run *run, mt_tpl_value v)
{
    mt_tpl_build b = {.run = run};

    mt_tpl_build_repr(&b, v);
    return mt_tpl_build_end(&b);
}

/* The type as in "str object", for errors about undefined values. */
static const char *type_long(mt_tpl_value v, char out[64])
{
    const char *module = "";

    if (v.kind == MT_TPL_NONE) {
        snprintf(out, 64, "None");
        return out;
    }
    if (v.kind == MT_TPL_STR && v.as.str->markup)
        module = "markupsafe.";
    else if (v.kind == MT_TPL_TUPLE && v.as.list->group)
        module = "jinja2.filters.";
    else if (v.kind == MT_TPL_NAMESPACE || v.kind == MT_TPL_CYCLER || v.kind == MT_TPL_JOINER)
        module = "jinja2.utils.";
    else if (v.kind == MT_TPL_MACRO || v.kind == MT_TPL_LOOP || v.kind == MT_TPL_UNDEFINED || v.kind == MT_TPL_SELF ||
             v.kind == MT_TPL_BLOCK)
        module = "jinja2.runtime.";
    snprintf(out, 64, "%s%s object", module, mt_tpl_type(v));
    return out;
}

bool mt_tpl_fail_undefined(mt_tpl_run *run, mt_tpl_value v)
{
    const mt_tpl_undefined *why = v.as.undefined;
    char type[64];
    mt_tpl_str *name;

    if (why->hint)
        return mt_tpl_fail(run, "%s", why->hint);
    name = mt_tpl_repr(run, why->name);
    if (!name)
        return false;
    if (why->object.kind == MT_TPL_MISSING)
        return mt_tpl_fail(run, "%.*s is undefined", (int)name->len, name->data);
    type_long(why->object, type);
    if (why->name.kind != MT_TPL_STR)
        return mt_tpl_fail(run, "%s has no element %.*s", type, (int)name->len, name->data);
    return mt_tpl_fail(run, "'%s' has no attribute %.*s", type, (int)name->len, name->data);
}
