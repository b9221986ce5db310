/* Variables: where they live while a function runs, and how they are set. Part of eval.h. */
#include "template/eval.h"
#include "template/iter.h"

enum { FEW_TARGETS = 8 }; /* a target with no more names than this needs no allocation */

mt_tpl_activation *mt_tpl_activate(mt_tpl_run *run, mt_tpl_activation *parent, uint32_t slots)
{
    mt_tpl_activation *act = mt_tpl_alloc(run, sizeof(*act) + slots * sizeof(act->slots[0]));

    if (act)
        act->parent = parent;
    return act;
}

mt_tpl_value *mt_tpl_variable(mt_tpl_activation *act, mt_tpl_ref ref)
{
    for (uint32_t i = 0; i < ref.hops; i++)
        act = act->parent;
    return &act->slots[ref.slot];
}

static mt_tpl_value from_context(mt_tpl_run *run, const mt_tpl_str *name)
{
    const mt_tpl_value found = mt_tpl_dict_name(run, run->context, name);
    const mt_tpl_builtin *global = MT_TPL_GIVEN(found) ? NULL : mt_tpl_global(name);

    return global ? (mt_tpl_value){.kind = MT_TPL_FUNCTION, .as.function = global} : found;
}

/* The value of a name in a block that does not set it. */
static mt_tpl_value from_outside(mt_tpl_run *run, const mt_tpl_load *load)
{
    mt_tpl_value found = mt_tpl_dict_name(run, run->given, load->name);

    if (!MT_TPL_GIVEN(found) && load->outer.slot != MT_TPL_NO_SLOT)
        found = run->root->slots[load->outer.slot];
    return MT_TPL_GIVEN(found) ? found : from_context(run, load->name);
}

bool mt_tpl_enter_scope(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_scope *scope)
{
    if (!mt_tpl_charge(run, scope->count))
        return false;
    for (size_t i = 0; i < scope->count; i++) {
        const mt_tpl_load *load = &scope->at[i];
        mt_tpl_value *slot = &act->slots[load->slot];

        switch (load->kind) {
        case MT_TPL_LOAD_PARAM: break;
        case MT_TPL_LOAD_NOTHING: slot->kind = MT_TPL_MISSING; break;
        case MT_TPL_LOAD_ALIAS: *slot = *mt_tpl_variable(act, load->outer); break;
        case MT_TPL_LOAD_RESOLVE: *slot = from_context(run, load->name); break;
        case MT_TPL_LOAD_BLOCK: *slot = from_outside(run, load); break;
        case MT_TPL_LOAD_SELF: slot->kind = MT_TPL_SELF; break;
        }
    }
    return !run->failed;
}

static bool assign_attribute(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *target, mt_tpl_value value)
{
    mt_tpl_value *object = mt_tpl_variable(act, target->ref);

    if (object->kind != MT_TPL_NAMESPACE)
        return mt_tpl_fail_at(run, target->place, "cannot assign attribute on non-namespace object");
    return mt_tpl_dict_set(run, object->as.dict, mt_tpl_const(target->attribute), value);
}

bool mt_tpl_assign(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *target, mt_tpl_value value)
{
    mt_tpl_value few[FEW_TARGETS], *parts = few;
    size_t count = target->list.count;
    bool ok;

    if (target->type == MT_TPL_N_NAME)
        return mt_tpl_set(mt_tpl_variable(act, target->ref), value);
    if (target->type == MT_TPL_N_NAMESPACE)
        return assign_attribute(run, act, target, value);
    if (count > FEW_TARGETS)
        parts = mt_tpl_alloc_array(run, count, sizeof(*parts));
    ok = parts && mt_tpl_unpack(run, value, count, parts);
    for (size_t i = 0; ok && i < count; i++)
        ok = mt_tpl_assign(run, act, target->list.at[i], parts[i]);
    return ok || mt_tpl_locate(run, target->place);
}
