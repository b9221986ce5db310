/* See path.h. */
#include "template/path.h"

#include "template/attr.h"
#include "template/number.h"
#include "template/text.h"

static bool step(mt_tpl_run *run, mt_tpl_value part, mt_tpl_value fallback, mt_tpl_value *item)
{
    if (!mt_tpl_get_item(run, *item, part, item))
        return false;
    if (item->kind == MT_TPL_UNDEFINED && fallback.kind != MT_TPL_MISSING && fallback.kind != MT_TPL_NONE)
        *item = fallback;
    return true;
}

/* Parts that are digits are indexes. */
static bool parse_part(mt_tpl_run *run, const mt_tpl_str *path, size_t begin, size_t end, mt_tpl_value *out)
{
    mt_tpl_str *word = mt_tpl_str_sub(run, path, begin, end);
    bool number = word && word->len > 0, huge;
    int64_t index;

    if (!mt_tpl_set_str(out, word))
        return false;
    for (size_t i = 0; number && i < word->len; i++)
        number = word->data[i] >= '0' && word->data[i] <= '9';
    if (number && mt_tpl_parse_int(word, 10, &index, &huge) && !huge)
        *out = mt_tpl_int(index);
    return true;
}

bool mt_tpl_path_get(mt_tpl_run *run, mt_tpl_value item, mt_tpl_value attribute, mt_tpl_value fallback,
                     mt_tpl_value *out)
{
    const mt_tpl_str *path = attribute.as.str;
    mt_tpl_value part;

    *out = item;
    if (attribute.kind == MT_TPL_MISSING || attribute.kind == MT_TPL_NONE)
        return true;
    if (attribute.kind != MT_TPL_STR)
        return step(run, attribute, fallback, out);
    if (!mt_tpl_charge(run, path->len / 4)) /* it is parsed again for each item */
        return false;
    for (size_t begin = 0, end; begin <= path->len; begin = end + 1) {
        for (end = begin; end < path->len && path->data[end] != '.'; end++)
            ;
        if (!parse_part(run, path, begin, end, &part) || !step(run, part, fallback, out))
            return false;
    }
    return true;
}

bool mt_tpl_ignore_case(mt_tpl_run *run, mt_tpl_value *v)
{
    return v->kind != MT_TPL_STR || mt_tpl_set_str(v, mt_tpl_change_case(run, v->as.str, MT_TPL_LOWER));
}
