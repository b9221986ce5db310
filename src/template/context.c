/* See context.h. */
#include "template/context.h"

#include <math.h>
#include <string.h>

#include "base/json_tree.h"

static bool read_array(mt_tpl_run *run, const json_t *json, bool trusted, mt_tpl_value *out)
{
    mt_tpl_items items = {0};
    mt_tpl_value v;

    for (size_t i = 0; i < json_array_size(json); i++)
        if (!mt_tpl_from_json(run, json_array_get(json, i), trusted, &v) || !mt_tpl_items_add(run, &items, v))
            return false;
    return mt_tpl_items_end(run, &items, MT_TPL_LIST, out);
}

/* Sets the members of a JSON object in a dict. names, values: whether they are trusted. */
static bool set_members(mt_tpl_run *run, mt_tpl_dict *to, const json_t *json, bool names, bool values)
{
    json_t *object = (json_t *)(uintptr_t)json, *item; /* not const for jansson's macro; nothing is changed */
    const char *name;

    json_object_foreach(object, name, item) {
        mt_tpl_value key, value;

        if (!mt_tpl_set_str(&key, mt_tpl_str_new(run, name, strlen(name), !names)) ||
            !mt_tpl_from_json(run, item, values, &value) || !mt_tpl_dict_set(run, to, key, value))
            return false;
    }
    return true;
}

static bool read_object(mt_tpl_run *run, const json_t *json, bool trusted, mt_tpl_value *out)
{
    mt_tpl_dict *dict = mt_tpl_dict_new(run, json_object_size(json));

    return dict && mt_tpl_set(out, mt_tpl_dict_value(dict)) && set_members(run, dict, json, trusted, trusted);
}

/* An integer of more than 64 bits, or a number that is out of a double's range. */
static bool read_wide(mt_tpl_run *run, const char *text, mt_tpl_value *out)
{
    if (!mt_json_wide_is_int(text))
        return mt_tpl_set(out, mt_tpl_float(*text == '-' ? -INFINITY : INFINITY));
    *out = (mt_tpl_value){.kind = MT_TPL_BIG, .as.str = mt_tpl_str_new(run, text, strlen(text), false)};
    return out->as.str != NULL;
}

static bool read_any(mt_tpl_run *run, const json_t *json, bool trusted, mt_tpl_value *out)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT: return read_object(run, json, trusted, out);
    case JSON_ARRAY: return read_array(run, json, trusted, out);
    case JSON_STRING:
        return mt_tpl_set_str(out, mt_tpl_str_new(run, json_string_value(json), json_string_length(json), !trusted));
    case JSON_INTEGER: return mt_tpl_set(out, mt_tpl_int(json_integer_value(json)));
    case JSON_REAL:
        return mt_json_wide(json) ? read_wide(run, mt_json_wide(json), out)
                                  : mt_tpl_set(out, mt_tpl_float(json_real_value(json)));
    case JSON_TRUE:
    case JSON_FALSE: return mt_tpl_set(out, mt_tpl_bool(json_is_true(json)));
    default: return mt_tpl_set(out, mt_tpl_none());
    }
}

bool mt_tpl_from_json(mt_tpl_run *run, const json_t *json, bool trusted, mt_tpl_value *out)
{
    bool ok = mt_tpl_enter(run);

    if (ok) {
        ok = read_any(run, json, trusted, out);
        mt_tpl_leave(run);
    }
    return ok;
}

bool mt_tpl_set_members(mt_tpl_run *run, mt_tpl_dict *to, const json_t *object, bool trusted)
{
    return set_members(run, to, object, true, trusted);
}

bool mt_tpl_set_name(mt_tpl_run *run, mt_tpl_dict *to, const char *name, mt_tpl_value value)
{
    mt_tpl_value key;

    return mt_tpl_set_str(&key, mt_tpl_str_lit(run, name)) && mt_tpl_dict_set(run, to, key, value);
}
