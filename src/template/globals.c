/* The global functions: range, dict, namespace, raise_exception, strftime_now and others. */
#include <string.h>
#include <time.h>

#include "template/builtin.h"
#include "template/iter.h"
#include "template/repr.h"

enum { FIELD_MAX = 128 }; /* bytes of one field of a date */

MT_TPL_BODY(range)
{
    int64_t first = mt_tpl_arg_int(run, a[0], 0), stop = mt_tpl_arg_int(run, a[1], first);
    int64_t step = mt_tpl_arg_int(run, a[2], 1);

    if (step == 0)
        return mt_tpl_fail(run, "range() arg 3 must not be zero");
    return mt_tpl_set_range(run, out, MT_TPL_GIVEN(a[1]) ? first : 0, stop, step);
}

/* Fills a dict as dict(mapping or pairs, name=value ...) does. name: of the function, for errors. */
static bool make_dict(mt_tpl_run *run, const char *name, const mt_tpl_args *args, mt_tpl_dict *dict)
{
    mt_tpl_items pairs = {0};
    mt_tpl_value pair[2];

    if (args->count > 1)
        return mt_tpl_fail(run, "%s expected at most 1 argument, got %zu", name, args->count);
    if (args->count == 1 && args->at[0].kind == MT_TPL_UNDEFINED)
        return mt_tpl_fail_undefined(run, args->at[0]);
    if (args->count == 1 && args->at[0].kind == MT_TPL_DICT) {
        if (!mt_tpl_dict_update(run, dict, args->at[0].as.dict))
            return false;
    } else if (args->count == 1 && !mt_tpl_collect(run, args->at[0], &pairs))
        return false;
    for (size_t i = 0; i < pairs.count; i++)
        if (!mt_tpl_unpack(run, pairs.at[i], 2, pair) || !mt_tpl_dict_set(run, dict, pair[0], pair[1]))
            return false;
    return !args->named || mt_tpl_dict_update(run, dict, args->named);
}

MT_TPL_BODY(dict)
{
    mt_tpl_dict *made = mt_tpl_dict_new(run, 0);

    if (!made || !make_dict(run, which == MT_TPL_DICT ? "dict" : "namespace", args, made))
        return false;
    return mt_tpl_set(out, (mt_tpl_value){.kind = which, .as.dict = made});
}

MT_TPL_BODY(cycler)
{
    mt_tpl_value items;

    if (args->count == 0)
        return mt_tpl_fail(run, "at least one item has to be provided");
    return mt_tpl_set_list(run, &items, MT_TPL_TUPLE, args->at, args->count) &&
           mt_tpl_set_new(run, out, MT_TPL_CYCLER, &(mt_tpl_cycler){.items = items.as.list}, sizeof(mt_tpl_cycler));
}

MT_TPL_BODY(joiner)
{
    mt_tpl_joiner made = {.separator = a[0]};

    return (MT_TPL_GIVEN(a[0]) || mt_tpl_set_lit(run, &made.separator, ", ")) &&
           mt_tpl_set_new(run, out, MT_TPL_JOINER, &made, sizeof(made));
}

MT_TPL_BODY(raise_exception)
{
    mt_tpl_str *text = mt_tpl_text(run, a[0]);

    return text && mt_tpl_fail_raised(run, text->data, text->len);
}

/* One directive of strftime. The time has no zone, so %z and %Z are empty, and no fraction of a second. */
static void add_field(mt_tpl_build *b, const struct tm *now, const char *directive, size_t len)
{
    char format[8] = {0}, text[FIELD_MAX];
    char letter = directive[len - 1];

    if (letter == 'f') {
        mt_tpl_build_lit(b, "000000");
        return;
    }
    if (letter == 'z' || letter == 'Z')
        return;
    memcpy(format, directive, len);
    mt_tpl_build_add(b, text, strftime(text, sizeof(text), format, now), false);
}

/* The time of the rendering as Python's datetime.strftime writes it. */
static mt_tpl_str *date(mt_tpl_run *run, const mt_tpl_str *format)
{
    struct tm now = {0};
    mt_tpl_build b = {.run = run};
    time_t clock;

    if (run->now)
        now = *run->now;
    else {
        clock = time(NULL);
        localtime_r(&clock, &now);
    }
    for (size_t at = 0; at < format->len && !run->failed;) {
        const char *sign = memchr(format->data + at, '%', format->len - at);
        size_t end = sign ? (size_t)(sign - format->data) : format->len, len = 2;

        mt_tpl_build_sub(&b, format, at, end);
        at = end;
        if (!sign)
            break;
        if (at + 2 < format->len && strchr("-_0^#", sign[1])) /* a flag of the C library's strftime */
            len = 3;
        if (at + len > format->len) {
            mt_tpl_build_sub(&b, format, at, format->len);
            break;
        }
        if ((unsigned char)sign[len - 1] < 0x80)
            add_field(&b, &now, sign, len);
        else
            mt_tpl_build_sub(&b, format, at, at + --len);
        at += len;
    }
    return mt_tpl_build_end(&b);
}

MT_TPL_BODY(strftime_now)
{
    return mt_tpl_set_str(out, date(run, mt_tpl_arg_str(run, a[0], &MT_TPL_LIT(""))));
}

MT_TPL_BODY(lipsum)
{
    return mt_tpl_fail(run, "lipsum is not supported; write the text into the template");
}

static const mt_tpl_builtin globals[] = {
    {"range", range, 0, 1, 3, {0}},
    {"dict", dict, MT_TPL_DICT, 0, MT_TPL_ANY, {0}},
    {"namespace", dict, MT_TPL_NAMESPACE, 0, MT_TPL_ANY, {0}},
    {"cycler", cycler, 0, 0, MT_TPL_ANY, {0}},
    {"joiner", joiner, 0, 0, 1, {"sep"}},
    {"raise_exception", raise_exception, 0, 1, 1, {"message"}},
    {"strftime_now", strftime_now, 0, 1, 1, {"format"}},
    {"lipsum", lipsum, 0, 0, MT_TPL_ANY, {0}},
    {0},
};

const mt_tpl_builtin *mt_tpl_global(const mt_tpl_str *name)
{
    return mt_tpl_table_find(globals, name);
}
