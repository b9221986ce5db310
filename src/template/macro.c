/* See macro.h. */
#include "template/macro.h"

#include "template/eval.h"
#include "template/repr.h"

bool mt_tpl_set_macro(mt_tpl_run *run, mt_tpl_activation *outer, const mt_tpl_node *node, mt_tpl_value *out)
{
    return mt_tpl_set_new(run, out, MT_TPL_MACRO, &(mt_tpl_macro){.node = node, .outer = outer}, sizeof(mt_tpl_macro));
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

/* Whether a named argument is bound to a parameter. given: how many parameters have positional arguments; a name of one
   of those is not bound a second time. */
static bool is_taken(const mt_tpl_params *params, size_t given, const mt_tpl_str *name)
{
    for (size_t i = given; i < params->names.count; i++)
        if (mt_tpl_str_equal(params->names.at[i]->name, name))
            return true;
    return params->caller && !params->explicit_caller && mt_tpl_str_is(name, "caller");
}

/* Refuses a named argument that is no parameter. `caller` is none where the body of the macro does not use it: that is
   what Jinja2 says when such a macro is called by a call block. */
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
        *mt_tpl_variable(b->act, params->kwargs->ref) = mt_tpl_dict_value(rest);
    return true;
}

static bool bind_varargs(binding *b)
{
    const mt_tpl_params *params = b->macro->node->params;
    const size_t more = b->args->count > params->names.count ? b->args->count - params->names.count : 0;
    int len;
    const char *macro = name_of(b->macro, &len);

    if (!params->varargs)
        return more == 0 ||
               mt_tpl_fail(b->run, "macro '%.*s' takes not more than %zu argument(s)", len, macro, params->names.count);
    return mt_tpl_set_list(b->run, mt_tpl_variable(b->act, params->varargs->ref), MT_TPL_TUPLE,
                           more ? &b->args->at[params->names.count] : NULL, more);
}

/* Where `caller` is a parameter that the macro itself names, it is bound as any other. */
static bool bind_caller(binding *b)
{
    const mt_tpl_params *params = b->macro->node->params;
    mt_tpl_value *caller;

    if (!params->caller || params->explicit_caller)
        return true;
    caller = mt_tpl_variable(b->act, params->caller->ref);
    *caller = mt_tpl_dict_name(b->run, b->args->named, &MT_TPL_LIT("caller"));
    return (MT_TPL_GIVEN(*caller) && caller->kind != MT_TPL_NONE) ||
           mt_tpl_set_undefined(b->run, caller, "No caller defined");
}

static bool bind(binding *b)
{
    const mt_tpl_params *params = b->macro->node->params;
    size_t given = b->args->count < params->names.count ? b->args->count : params->names.count;

    for (size_t i = 0; i < params->names.count; i++) {
        const mt_tpl_node *name = params->names.at[i];

        *mt_tpl_variable(b->act, name->ref) =
            i < given ? b->args->at[i] : mt_tpl_dict_name(b->run, b->args->named, name->name);
    }
    return !b->run->failed && bind_caller(b) && bind_rest(b, given) && bind_varargs(b);
}

/* Gives parameters that got no argument their defaults. */
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
            if (!mt_tpl_eval(b->run, b->act, params->defaults.at[i - first], &v))
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
    mt_tpl_build text = {.run = run};

    /* Entering the scope leaves parameters as they are and sets its other variables, which defaults may read */
    if (!act || !bind(&b) || !mt_tpl_enter_scope(run, act, &macro->node->scope) || !bind_defaults(&b))
        return false;
    return mt_tpl_exec(run, act, &macro->node->body, &text) != MT_TPL_STOP &&
           mt_tpl_set_str(out, mt_tpl_build_end(&text));
}

bool mt_tpl_macro_attribute(mt_tpl_run *run, const mt_tpl_macro *macro, const mt_tpl_str *name, mt_tpl_value *out)
{
    const mt_tpl_params *params = macro->node->params;
    mt_tpl_items items = {0};

    mt_tpl_offer(out, name, "name", macro->node->name ? mt_tpl_const(macro->node->name) : mt_tpl_none());
    mt_tpl_offer(out, name, "catch_kwargs", mt_tpl_bool(params->kwargs != NULL));
    mt_tpl_offer(out, name, "catch_varargs", mt_tpl_bool(params->varargs != NULL));
    mt_tpl_offer(out, name, "caller", mt_tpl_bool(params->caller != NULL));
    if (!mt_tpl_str_is(name, "arguments"))
        return true;
    for (size_t i = 0; i < params->names.count; i++)
        if (!mt_tpl_items_add(run, &items, mt_tpl_const(params->names.at[i]->name)))
            return false;
    return mt_tpl_items_end(run, &items, MT_TPL_TUPLE, out);
}

void mt_tpl_macro_repr(mt_tpl_build *b, const mt_tpl_macro *macro)
{
    mt_tpl_build_lit(b, "<Macro ");
    if (macro->node->name)
        mt_tpl_build_repr(b, mt_tpl_const(macro->node->name));
    else
        mt_tpl_build_lit(b, "anonymous");
    mt_tpl_build_lit(b, ">");
}
