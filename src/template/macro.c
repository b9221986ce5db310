/* See macro.h. */
#include "template/macro.h"

#include "template/above.h"
#include "template/repr.h"

bool mt_tpl_set_macro(mt_tpl_run *run, mt_tpl_activation *outer, const mt_tpl_node *node, mt_tpl_value *out)
{
    mt_tpl_macro *macro = mt_tpl_alloc(run, sizeof(*macro));

    if (!macro)
        return false;
    *macro = (mt_tpl_macro){.node = node, .outer = outer};
    *out = (mt_tpl_value){.kind = MT_TPL_MACRO, .as.macro = macro};
    return true;
}

static const char *name_of(const mt_tpl_macro *macro, int *len)
{
    *len = macro->node->name ? (int)macro->node->name->len : 4;
    return macro->node->name ? macro->node->name->data : "None";
}

/* A call of a macro while its arguments are bound to parameters. */
typedef struct binding {
    mt_tpl_run *run;
    const mt_tpl_macro *macro;
    mt_tpl_activation *act;
    const mt_tpl_args *args;
} binding;

/* Finds the named argument of that name; *out is MISSING where there is none. */
static bool find_named(binding *b, const char *name, size_t len, mt_tpl_value *out)
{
    const mt_tpl_dict *named = b->args->named;

    *out = (mt_tpl_value){.kind = MT_TPL_MISSING};
    if (!named)
        return true;
    *out = mt_tpl_dict_name(b->run, named, name, len);
    return !b->run->failed;
}

static bool is_taken(const mt_tpl_params *params, size_t given, const mt_tpl_str *name)
{
    for (size_t i = given; i < params->names.count; i++)
        if (mt_tpl_str_equal(params->names.at[i]->name, name))
            return true;
    return params->caller && !params->explicit_caller && mt_tpl_str_is(name, "caller");
}

static bool fail_named(const binding *b, const mt_tpl_str *name)
{
    int len;
    const char *macro = name_of(b->macro, &len);

    if (mt_tpl_str_is(name, "caller"))
        return mt_tpl_fail(b->run,
                           "macro '%.*s' was invoked with two values for the special caller argument. This is most "
                           "likely a bug.",
                           len, macro);
    return mt_tpl_fail(b->run, "macro '%.*s' takes no keyword argument '%.*s'", len, macro, (int)name->len, name->data);
}

/* Named arguments that are no parameters go to kwargs, or are refused. */
static bool bind_rest(binding *b, size_t given)
{
    const mt_tpl_params *params = b->macro->node->params;
    const mt_tpl_dict *named = b->args->named;
    mt_tpl_dict *rest = mt_tpl_dict_new(b->run, 0);

    if (!rest)
        return false;
    for (size_t i = 0; named && i < named->count; i++) {
        if (is_taken(params, given, named->at[i].key.as.str))
            continue;
        if (!params->kwargs)
            return fail_named(b, named->at[i].key.as.str);
        if (!mt_tpl_dict_set(b->run, rest, named->at[i].key, named->at[i].value))
            return false;
    }
    if (params->kwargs)
        *mt_tpl_variable(b->act, params->kwargs->ref) = (mt_tpl_value){.kind = MT_TPL_DICT, .as.dict = rest};
    return true;
}

static bool bind_varargs(binding *b)
{
    const mt_tpl_params *params = b->macro->node->params;
    mt_tpl_items items = {0};
    int len;
    const char *macro = name_of(b->macro, &len);

    if (!params->varargs && b->args->count > params->names.count)
        return mt_tpl_fail(b->run, "macro '%.*s' takes not more than %zu argument(s)", len, macro, params->names.count);
    if (!params->varargs)
        return true;
    for (size_t i = params->names.count; i < b->args->count; i++)
        if (!mt_tpl_items_add(b->run, &items, b->args->at[i]))
            return false;
    return mt_tpl_items_end(b->run, &items, MT_TPL_TUPLE, mt_tpl_variable(b->act, params->varargs->ref));
}

static bool bind_caller(binding *b)
{
    const mt_tpl_params *params = b->macro->node->params;
    mt_tpl_value *caller;

    if (!params->caller || params->explicit_caller)
        return true;
    caller = mt_tpl_variable(b->act, params->caller->ref);
    if (!find_named(b, "caller", 6, caller))
        return false;
    if (!MT_TPL_GIVEN(*caller) || caller->kind == MT_TPL_NONE)
        return mt_tpl_set_undefined(b->run, caller, "No caller defined");
    return true;
}

static bool bind(binding *b)
{
    const mt_tpl_params *params = b->macro->node->params;
    size_t given = b->args->count < params->names.count ? b->args->count : params->names.count;

    for (size_t i = 0; i < params->names.count; i++) {
        const mt_tpl_node *name = params->names.at[i];
        mt_tpl_value *variable = mt_tpl_variable(b->act, name->ref);

        if (i < given)
            *variable = b->args->at[i];
        else if (!find_named(b, name->name->data, name->name->len, variable))
            return false;
    }
    return bind_caller(b) && bind_rest(b, given) && bind_varargs(b);
}

static bool bind_defaults(binding *b)
{
    const mt_tpl_params *params = b->macro->node->params;
    size_t first = params->names.count - params->defaults.count;

    for (size_t i = 0; i < params->names.count; i++) {
        const mt_tpl_node *name = params->names.at[i];
        mt_tpl_value *variable = mt_tpl_variable(b->act, name->ref), v;
        char *hint;

        if (MT_TPL_GIVEN(*variable))
            continue;
        if (i >= first) {
            if (!b->run->above->eval(b->run, b->act, params->defaults.at[i - first], &v))
                return false;
            *variable = v;
            continue;
        }
        hint =
            mt_arena_printf(b->run->arena, "parameter '%.*s' was not provided", (int)name->name->len, name->name->data);
        if (!mt_tpl_set_undefined(b->run, variable, hint ? hint : "a parameter was not provided"))
            return false;
    }
    return true;
}

bool mt_tpl_call_macro(mt_tpl_run *run, const mt_tpl_macro *macro, const mt_tpl_args *args, mt_tpl_value *out)
{
    mt_tpl_activation *act = mt_tpl_activate(run, macro->outer, macro->node->slots);
    binding b = {.run = run, .macro = macro, .act = act, .args = args};
    mt_tpl_build text;

    if (!act || !bind(&b) || !mt_tpl_enter_scope(run, act, &macro->node->scope) || !bind_defaults(&b))
        return false;
    mt_tpl_build_init(&text, run);
    return run->above->exec(run, act, &macro->node->body, &text) != MT_TPL_STOP &&
           mt_tpl_set_str(out, mt_tpl_build_end(&text));
}

bool mt_tpl_macro_attribute(mt_tpl_run *run, const mt_tpl_macro *macro, const mt_tpl_str *name, mt_tpl_value *out)
{
    const mt_tpl_params *params = macro->node->params;
    mt_tpl_items items = {0};

    if (mt_tpl_str_is(name, "name")) {
        *out = mt_tpl_none();
        return !macro->node->name || mt_tpl_set_str(out, (mt_tpl_str *)(uintptr_t)macro->node->name);
    }
    if (mt_tpl_str_is(name, "catch_kwargs"))
        *out = mt_tpl_bool(params->kwargs != NULL);
    else if (mt_tpl_str_is(name, "catch_varargs"))
        *out = mt_tpl_bool(params->varargs != NULL);
    else if (mt_tpl_str_is(name, "caller"))
        *out = mt_tpl_bool(params->caller != NULL);
    if (!mt_tpl_str_is(name, "arguments"))
        return true;
    for (size_t i = 0; i < params->names.count; i++) {
        mt_tpl_value v = {.kind = MT_TPL_STR, .as.str = (mt_tpl_str *)(uintptr_t)params->names.at[i]->name};

        if (!mt_tpl_items_add(run, &items, v))
            return false;
    }
    return mt_tpl_items_end(run, &items, MT_TPL_TUPLE, out);
}

void mt_tpl_macro_repr(mt_tpl_build *b, const mt_tpl_macro *macro)
{
    mt_tpl_value name = {.kind = MT_TPL_STR, .as.str = (mt_tpl_str *)(uintptr_t)macro->node->name};

    mt_tpl_build_lit(b, "<Macro ");
    if (macro->node->name)
        mt_tpl_build_repr(b, name);
    else
        mt_tpl_build_lit(b, "anonymous");
    mt_tpl_build_lit(b, ">");
}
