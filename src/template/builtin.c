/* See builtin.h. */
#include "template/builtin.h"

const mt_tpl_builtin *mt_tpl_table_find(const mt_tpl_builtin *table, const mt_tpl_str *name)
{
    for (; table->name; table++)
        if (mt_tpl_str_is(name, table->name))
            return table;
    return NULL;
}

/* Puts named arguments where their parameters stand in a, after those that were given by position. */
static bool bind_named(mt_tpl_run *run, const mt_tpl_builtin *builtin, const mt_tpl_dict *named, mt_tpl_value *a)
{
    for (size_t i = 0; i < named->count; i++) {
        const mt_tpl_str *name = named->at[i].key.as.str;
        size_t p = 0;

        while (p < builtin->most && !(builtin->names[p] && mt_tpl_str_is(name, builtin->names[p])))
            p++;
        if (p == builtin->most)
            return mt_tpl_fail(run, "%s() got an unexpected keyword argument '%.*s'", builtin->name, (int)name->len,
                               name->data);
        if (MT_TPL_GIVEN(a[p]))
            return mt_tpl_fail(run, "%s() got multiple values for argument '%s'", builtin->name, builtin->names[p]);
        a[p] = named->at[i].value;
    }
    return true;
}

bool mt_tpl_call_builtin(mt_tpl_run *run, const mt_tpl_builtin *builtin, mt_tpl_value self, const mt_tpl_args *args,
                         mt_tpl_value *out)
{
    mt_tpl_value a[MT_TPL_PARAMS] = {0}; /* all MISSING */
    const char *missing;

    if (!mt_tpl_charge(run, 1))
        return false;
    if (builtin->most == MT_TPL_ANY)
        return builtin->call(run, self, builtin->which, a, args, out) && !run->failed;
    if (args->count > builtin->most)
        return mt_tpl_fail(run, "%s() takes at most %d argument%s (%zu given)", builtin->name, builtin->most,
                           builtin->most == 1 ? "" : "s", args->count);
    for (size_t i = 0; i < args->count; i++)
        a[i] = args->at[i];
    if (args->named && !bind_named(run, builtin, args->named, a))
        return false;
    for (size_t i = 0; i < builtin->least; i++)
        if (!MT_TPL_GIVEN(a[i])) {
            missing = builtin->names[i];
            return mt_tpl_fail(run, "%s() is missing argument %zu%s%s%s", builtin->name, i + 1, missing ? ", '" : "",
                               missing ? missing : "", missing ? "'" : "");
        }
    return builtin->call(run, self, builtin->which, a, args, out) && !run->failed;
}

/* Of an undefined value the error says which name is undefined; Python only says that it is no integer. */
int64_t mt_tpl_arg_int(mt_tpl_run *run, mt_tpl_value v, int64_t otherwise)
{
    if (v.kind == MT_TPL_UNDEFINED)
        mt_tpl_fail_undefined(run, v);
    else if (MT_TPL_GIVEN(v) && !MT_TPL_IS_INT(v))
        mt_tpl_fail(run, "'%s' object cannot be interpreted as an integer", mt_tpl_type(v));
    return MT_TPL_IS_INT(v) ? mt_tpl_as_int(v) : otherwise;
}

mt_tpl_str *mt_tpl_arg_str(mt_tpl_run *run, mt_tpl_value v, mt_tpl_str *otherwise)
{
    if (MT_TPL_GIVEN(v) && v.kind != MT_TPL_STR)
        mt_tpl_fail(run, "must be str, not %s", mt_tpl_type(v));
    return v.kind == MT_TPL_STR ? v.as.str : otherwise;
}

mt_tpl_value mt_tpl_not_none(mt_tpl_value v)
{
    return v.kind == MT_TPL_NONE ? (mt_tpl_value){.kind = MT_TPL_MISSING} : v;
}
