/* Scoping as Jinja2 compiles it. A scope is a region of the template with variables of its own: the top level, the body
   of a loop, of a macro, of a set block and so on; an if has none. In each scope a name means one variable all along,
   and how the name first appears decides what the variable holds at the beginning:

     loaded first           nothing of its own, when a scope outside has the name; otherwise what the context has
     set first              what the scope outside has under that name; otherwise nothing
     set first, in an if    the same, but otherwise what the context has, since the branch may not be taken

   Names of a scope are collected before those of the scopes in it are looked up. So a name that the top level sets
   anywhere is the top level's variable in every scope, even before it is set: there it is undefined, although the
   context may have it. Looking names up while rendering would find the context's; Jinja2 does not.

   Macros, call blocks, recursive loops and the tests of loops are functions: they may run when the scope around them
   has moved on or been entered again, so their variables live in an activation of their own, and they reach those
   outside by hops from activation to activation. */
#include "template/scope.h"

#include <string.h>

#include "base/limits.h"

/* Code with an activation of its own: nesting depth, and number of variables. */
typedef struct function {
    uint32_t depth, slots;
} function;

/* A scope while it is resolved. */
typedef struct frame {
    struct frame *parent;
    mt_tpl_scope *scope;
    function *fn;
} frame;

typedef struct resolver {
    mt_tpl_run *run;
    frame *root;
    mt_tpl_scope *reads;
    mt_tpl_blocks *blocks;
    bool soft;      /* inside an if of the current scope: unknown filters fail only when they are reached */
    bool loop;      /* break and continue are allowed */
    unsigned loops; /* number of loops around, whatever is between */
} resolver;

static bool resolve(resolver *r, frame *f, mt_tpl_node *node);
static bool resolve_list(resolver *r, frame *f, const mt_tpl_nodes *list);

static mt_tpl_load *find_own(const mt_tpl_scope *scope, const mt_tpl_str *name)
{
    for (size_t i = 0; i < scope->count; i++)
        if (mt_tpl_str_equal(scope->at[i].name, name))
            return &scope->at[i];
    return NULL;
}

static bool find(const frame *f, const mt_tpl_str *name, mt_tpl_ref *out)
{
    for (const frame *at = f; at; at = at->parent) {
        const mt_tpl_load *load = find_own(at->scope, name);

        if (load) {
            *out = (mt_tpl_ref){.hops = f->fn->depth - at->fn->depth, .slot = load->slot};
            return true;
        }
    }
    return false;
}

static mt_tpl_load *add_load(resolver *r, mt_tpl_scope *scope, mt_tpl_load load)
{
    mt_tpl_load *at = mt_tpl_grow(r->run, scope->at, scope->count, 1, &scope->cap, sizeof(*at));

    if (!at)
        return NULL;
    scope->at = at;
    scope->at[scope->count] = load;
    return &scope->at[scope->count++];
}

static mt_tpl_load *define(resolver *r, frame *f, const mt_tpl_str *name, mt_tpl_load_kind kind)
{
    const mt_tpl_load load = {.name = name, .kind = kind, .slot = f->fn->slots++};

    if (f->scope->count == MT_LIMIT_TEMPLATE_NAMES) {
        mt_tpl_fail_limit(r->run, "more than %d variables in one scope", MT_LIMIT_TEMPLATE_NAMES);
        return NULL;
    }
    if (kind == MT_TPL_LOAD_RESOLVE && !add_load(r, r->reads, load))
        return NULL;
    return add_load(r, f->scope, load);
}

/* Adds a variable that holds what its name means outside of the template; in a block, what the top level has set
   wins. */
static mt_tpl_load *define_outer(resolver *r, frame *f, const mt_tpl_str *name)
{
    mt_tpl_load *load = define(r, f, name, MT_TPL_LOAD_RESOLVE), *exported;
    const frame *top = f;

    while (top->parent)
        top = top->parent;
    if (!load || top == r->root)
        return load;
    exported = find_own(r->root->scope, name);
    load->kind = MT_TPL_LOAD_BLOCK;
    load->outer.slot = exported ? exported->slot : MT_TPL_NO_SLOT;
    return load;
}

static bool load_name(resolver *r, frame *f, const mt_tpl_str *name)
{
    mt_tpl_load *load;
    mt_tpl_ref ref;

    if (find(f, name, &ref))
        return true;
    load = define_outer(r, f, name);
    if (load && mt_tpl_str_is(name, "self"))
        load->kind = MT_TPL_LOAD_SELF;
    return load != NULL;
}

static bool store_name(resolver *r, frame *f, const mt_tpl_str *name, bool conditional)
{
    mt_tpl_ref outer = {0};
    mt_tpl_load *load;
    bool known;

    load = find_own(f->scope, name);
    known = !load && f->parent && find(f->parent, name, &outer);
    if (!load && !known && conditional)
        load = define_outer(r, f, name);
    else if (!load) {
        load = define(r, f, name, known ? MT_TPL_LOAD_ALIAS : MT_TPL_LOAD_NOTHING);
        if (known)
            outer.hops += f->fn->depth - f->parent->fn->depth;
        if (load)
            load->outer = outer;
    }
    if (load)
        load->stored = true;
    return load != NULL;
}

static bool declare(resolver *r, frame *f, const mt_tpl_str *name)
{
    mt_tpl_load *load = find_own(f->scope, name);

    if (!load)
        load = define(r, f, name, MT_TPL_LOAD_PARAM);
    else
        load->kind = MT_TPL_LOAD_PARAM;
    if (load)
        load->stored = true;
    return load != NULL;
}

static bool declare_target(resolver *r, frame *f, const mt_tpl_node *target)
{
    if (target->type == MT_TPL_N_NAME)
        return declare(r, f, target->name);
    for (size_t i = 0; i < target->list.count; i++)
        if (!declare_target(r, f, target->list.at[i]))
            return false;
    return true;
}

typedef bool visit_fn(resolver *r, frame *f, mt_tpl_node *node, void *context);

static bool each_of(resolver *r, frame *f, const mt_tpl_nodes *list, visit_fn *visit, void *context)
{
    for (size_t i = 0; i < list->count; i++)
        if (!visit(r, f, list->at[i], context))
            return false;
    return true;
}

static bool each_expression(resolver *r, frame *f, mt_tpl_node *node, visit_fn *visit, void *context)
{
    const mt_tpl_call_args *args = node->args;

    if ((node->left && !visit(r, f, node->left, context)) || (node->right && !visit(r, f, node->right, context)) ||
        (node->third && !visit(r, f, node->third, context)) || !each_of(r, f, &node->list, visit, context))
        return false;
    return !args || (each_of(r, f, &args->at, visit, context) && each_of(r, f, &args->named, visit, context) &&
                     (!args->star || visit(r, f, args->star, context)) &&
                     (!args->star_star || visit(r, f, args->star_star, context)));
}

/* Collects the names of one scope, without those of the scopes inside it. */
static bool collect(resolver *r, frame *f, mt_tpl_node *node, void *context)
{
    bool *conditional = context, inside = true;

    switch (node->type) {
    case MT_TPL_N_NAME: return node->store ? store_name(r, f, node->name, *conditional) : load_name(r, f, node->name);
    case MT_TPL_N_NAMESPACE: return load_name(r, f, node->name);
    case MT_TPL_N_IF:
        return collect(r, f, node->left, conditional) && each_of(r, f, &node->body, collect, &inside) &&
               each_of(r, f, &node->orelse, collect, &inside);
    case MT_TPL_N_SET: return collect(r, f, node->right, conditional) && collect(r, f, node->left, conditional);
    case MT_TPL_N_SET_BLOCK: return collect(r, f, node->left, conditional);
    case MT_TPL_N_MACRO: return store_name(r, f, node->name, *conditional);
    case MT_TPL_N_FOR: return collect(r, f, node->right, conditional);
    case MT_TPL_N_WITH:
        for (size_t i = 1; i < node->list.count; i += 2)
            if (!collect(r, f, node->list.at[i], conditional))
                return false;
        return true;
    case MT_TPL_N_SCOPE:
    case MT_TPL_N_BLOCK: return true;
    default: return each_expression(r, f, node, collect, conditional);
    }
}

static bool collect_list(resolver *r, frame *f, const mt_tpl_nodes *list)
{
    bool conditional = false;

    return each_of(r, f, list, collect, &conditional);
}

static bool collect_node(resolver *r, frame *f, mt_tpl_node *node)
{
    bool conditional = false;

    return collect(r, f, node, &conditional);
}

/* Names that a function has without declaring them; each has a bit. */
static const char *const special[] = {"caller", "varargs", "kwargs"};
enum { CALLER = 1, VARARGS = 2, KWARGS = 4 };

typedef struct mentioned {
    unsigned used, set; /* bits of `special`: used before they are set; set */
} mentioned;

static bool find_mentioned(resolver *r, frame *f, mt_tpl_node *node, void *context)
{
    mentioned *m = context;

    if (node->type == MT_TPL_N_BLOCK)
        return true;
    for (size_t i = 0; node->type == MT_TPL_N_NAME && i < MT_COUNT(special); i++)
        if (mt_tpl_str_is(node->name, special[i])) {
            if (node->store)
                m->set |= 1u << i;
            else if (!(m->set >> i & 1))
                m->used |= 1u << i;
        }
    if (!each_expression(r, f, node, find_mentioned, m))
        return false;
    if (node->params && (!each_of(r, f, &node->params->names, find_mentioned, m) ||
                         !each_of(r, f, &node->params->defaults, find_mentioned, m)))
        return false;
    return each_of(r, f, &node->body, find_mentioned, m) && each_of(r, f, &node->orelse, find_mentioned, m);
}

static bool fail_at(resolver *r, const mt_tpl_node *node)
{
    mt_tpl_locate(r->run, node->line, node->column);
    return false;
}

static mt_tpl_node *special_name(resolver *r, frame *f, const char *word)
{
    mt_tpl_node *node = mt_tpl_alloc(r->run, sizeof(*node));

    if (!node)
        return NULL;
    node->type = MT_TPL_N_NAME;
    node->store = true;
    node->name = mt_tpl_str_lit(r->run, word);
    return node->name && declare(r, f, node->name) ? node : NULL;
}

/* Declares caller, varargs and kwargs where the body of a macro uses them and they are no parameters. */
static bool declare_special(resolver *r, frame *f, mt_tpl_node *node)
{
    mt_tpl_params *params = node->params;
    mentioned m = {0};
    unsigned named = 0;
    size_t caller_at = 0;

    if (!each_of(r, f, &node->body, find_mentioned, &m))
        return false;
    for (size_t i = 0; i < params->names.count; i++)
        for (size_t k = 0; k < MT_COUNT(special); k++)
            if (mt_tpl_str_is(params->names.at[i]->name, special[k])) {
                named |= 1u << k;
                caller_at = k == 0 ? i : caller_at;
            }
    params->explicit_caller = named & CALLER;
    if ((m.used & named & CALLER) && caller_at < params->names.count - params->defaults.count) {
        mt_tpl_fail(r->run, "When defining macros or call blocks the special \"caller\" argument must be omitted or be "
                            "given a default.");
        return fail_at(r, node);
    }
    if (m.used & CALLER)
        params->caller = params->explicit_caller ? params->names.at[caller_at] : special_name(r, f, "caller");
    if (m.used & ~named & KWARGS)
        params->kwargs = special_name(r, f, "kwargs");
    if (m.used & ~named & VARARGS)
        params->varargs = special_name(r, f, "varargs");
    return !r->run->failed;
}

static bool resolve_name(frame *f, mt_tpl_node *node)
{
    return !node || find(f, node->name, &node->ref);
}

/* Resolves a macro, call block or generation block, without the call of a call block. */
static bool resolve_function(resolver *r, frame *f, mt_tpl_node *node)
{
    function fn = {.depth = f->fn->depth + 1};
    frame inner = {.parent = f, .scope = &node->scope, .fn = &fn};
    mt_tpl_params *params = node->params;
    resolver saved = *r;
    bool ok = true;

    r->soft = r->loop = false;
    for (size_t i = 0; ok && i < params->names.count; i++)
        ok = declare(r, &inner, params->names.at[i]->name);
    ok = ok && declare_special(r, &inner, node) && collect_list(r, &inner, &params->defaults) &&
         collect_list(r, &inner, &node->body);
    for (size_t i = 0; ok && i < params->names.count; i++)
        ok = resolve_name(&inner, params->names.at[i]);
    ok = ok && resolve_name(&inner, params->caller) && resolve_name(&inner, params->varargs) &&
         resolve_name(&inner, params->kwargs) && resolve_list(r, &inner, &params->defaults) &&
         resolve_list(r, &inner, &node->body);
    node->slots = fn.slots;
    *r = saved;
    return ok;
}

static bool resolve_loop_test(resolver *r, frame *f, mt_tpl_node *node)
{
    function fn = {.depth = f->fn->depth + 1};
    frame inner = {.parent = f, .scope = &node->test_scope, .fn = &fn};
    bool soft = r->soft, ok;

    r->soft = false;
    ok = declare_target(r, &inner, node->test_target) && collect_node(r, &inner, node->third) &&
         resolve(r, &inner, node->test_target) && resolve(r, &inner, node->third);
    r->soft = soft;
    node->test_slots = fn.slots;
    return ok;
}

static bool resolve_for(resolver *r, frame *f, mt_tpl_node *node)
{
    function fn = {.depth = f->fn->depth + 1};
    frame body = {.parent = f, .scope = &node->scope, .fn = node->recursive ? &fn : f->fn};
    frame orelse = {.parent = f, .scope = &node->else_scope, .fn = body.fn};
    mt_tpl_str *loop = mt_tpl_str_lit(r->run, "loop");
    resolver saved = *r;
    bool ok = loop && resolve(r, f, node->right);

    r->loops++;
    r->soft = false;
    ok = ok && (!node->third || resolve_loop_test(r, f, node)) && declare(r, &body, loop) &&
         declare_target(r, &body, node->left) && collect_list(r, &body, &node->body);
    r->loop = true;
    ok = ok && find(&body, loop, &node->loop_ref) && resolve(r, &body, node->left) &&
         resolve_list(r, &body, &node->body);
    r->loop = saved.loop && !node->recursive;
    ok = ok && collect_list(r, &orelse, &node->orelse) && resolve_list(r, &orelse, &node->orelse);
    if (node->recursive)
        node->slots = fn.slots;
    *r = saved;
    return ok;
}

/* Resolves a body with a scope of its own in the same function. also: a node that belongs to it, or NULL. */
static bool resolve_inner(resolver *r, frame *f, mt_tpl_node *node, mt_tpl_node *also)
{
    frame inner = {.parent = f, .scope = &node->scope, .fn = f->fn};
    bool soft = r->soft, ok = true;

    r->soft = false;
    if (node->type == MT_TPL_N_WITH)
        for (size_t i = 0; ok && i < node->list.count; i += 2)
            ok = declare_target(r, &inner, node->list.at[i]);
    ok = ok && collect_list(r, &inner, &node->body) && (!also || collect_node(r, &inner, also));
    if (node->type == MT_TPL_N_WITH)
        for (size_t i = 0; ok && i < node->list.count; i += 2)
            ok = resolve(r, &inner, node->list.at[i]);
    ok = ok && resolve_list(r, &inner, &node->body) && (!also || resolve(r, &inner, also));
    r->soft = soft;
    return ok;
}

static bool resolve_with(resolver *r, frame *f, mt_tpl_node *node)
{
    for (size_t i = 1; i < node->list.count; i += 2)
        if (!resolve(r, f, node->list.at[i]))
            return false;
    return resolve_inner(r, f, node, NULL);
}

static bool add_block(resolver *r, mt_tpl_node *node)
{
    mt_tpl_blocks *all = r->blocks;

    if (!mt_tpl_charge(r->run, all->count))
        return false;
    if (mt_tpl_block_find(all, node->name)) {
        mt_tpl_fail(r->run, "block '%.*s' defined twice", (int)node->name->len, node->name->data);
        return fail_at(r, node);
    }
    node->next = all->last;
    all->last = node;
    all->count++;
    return true;
}

const mt_tpl_node *mt_tpl_block_find(const mt_tpl_blocks *all, const mt_tpl_str *name)
{
    const mt_tpl_node *node = all->last;

    while (node && !mt_tpl_str_equal(node->name, name))
        node = node->next;
    return node;
}

/* Binds what a `scoped` block sees: everything that is set around it, by the innermost variable of each name. */
static bool bind_outer(resolver *r, const frame *f, mt_tpl_node *node)
{
    for (const frame *at = f; at; at = at->parent)
        for (size_t i = 0; i < at->scope->count; i++) {
            mt_tpl_load load = at->scope->at[i];

            if (!load.stored || find_own(&node->else_scope, load.name))
                continue;
            if (!mt_tpl_charge(r->run, node->else_scope.count) || !find(f, load.name, &load.outer) ||
                !add_load(r, &node->else_scope, load))
                return false;
        }
    return true;
}

static bool resolve_block(resolver *r, const frame *f, mt_tpl_node *node)
{
    function fn = {.depth = 1};
    frame inner = {.scope = &node->scope, .fn = &fn};
    resolver saved = *r;
    bool ok;

    if (!add_block(r, node) || (node->scoped && !bind_outer(r, f, node)))
        return false;
    r->soft = r->loop = false;
    ok = collect_list(r, &inner, &node->body) && resolve_list(r, &inner, &node->body);
    node->slots = fn.slots;
    *r = saved;
    return ok;
}

static bool resolve_builtin(resolver *r, frame *f, mt_tpl_node *node)
{
    const char *what = node->type == MT_TPL_N_FILTER ? "filter" : "test";

    if (!node->builtin && !r->soft) {
        mt_tpl_fail(r->run, "No %s named '%.*s'.", what, (int)node->name->len, node->name->data);
        return fail_at(r, node);
    }
    (void)f;
    return true;
}

static bool resolve_soft(resolver *r, frame *f, mt_tpl_node *node)
{
    bool soft = r->soft, ok;

    r->soft = true;
    ok = (!node->left || resolve(r, f, node->left)) && (!node->right || resolve(r, f, node->right)) &&
         (!node->third || resolve(r, f, node->third)) && resolve_list(r, f, &node->body) &&
         resolve_list(r, f, &node->orelse);
    r->soft = soft;
    return ok;
}

static bool resolve_variable(resolver *r, frame *f, mt_tpl_node *node)
{
    if (node->store && r->loops && mt_tpl_str_is(node->name, "loop")) {
        mt_tpl_fail(r->run, "Can't assign to special loop variable in for-loop target");
        return fail_at(r, node);
    }
    return resolve_name(f, node);
}

static bool visit_resolve(resolver *r, frame *f, mt_tpl_node *node, void *context)
{
    (void)context;
    return resolve(r, f, node);
}

static bool resolve(resolver *r, frame *f, mt_tpl_node *node)
{
    switch (node->type) {
    case MT_TPL_N_NAME: return resolve_variable(r, f, node);
    case MT_TPL_N_NAMESPACE: return resolve_name(f, node);
    case MT_TPL_N_IF:
    case MT_TPL_N_CONDITION: return resolve_soft(r, f, node);
    case MT_TPL_N_FOR: return resolve_for(r, f, node);
    case MT_TPL_N_MACRO: return resolve_name(f, node) && resolve_function(r, f, node);
    case MT_TPL_N_GENERATION: return resolve_function(r, f, node);
    case MT_TPL_N_CALL_BLOCK: return resolve(r, f, node->left) && resolve_function(r, f, node);
    case MT_TPL_N_SET_BLOCK: return resolve(r, f, node->left) && resolve_inner(r, f, node, node->right);
    case MT_TPL_N_FILTER_BLOCK:
    case MT_TPL_N_SCOPE: return resolve_inner(r, f, node, node->left);
    case MT_TPL_N_WITH: return resolve_with(r, f, node);
    case MT_TPL_N_BLOCK: return resolve_block(r, f, node);
    case MT_TPL_N_FILTER:
    case MT_TPL_N_TEST:
        if (!resolve_builtin(r, f, node))
            return false;
        break;
    case MT_TPL_N_BREAK:
    case MT_TPL_N_CONTINUE:
        if (!r->loop) {
            mt_tpl_fail(r->run,
                        node->type == MT_TPL_N_BREAK ? "'break' outside loop" : "'continue' not properly in loop");
            return fail_at(r, node);
        }
        break;
    default: break;
    }
    return each_expression(r, f, node, visit_resolve, NULL);
}

static bool resolve_list(resolver *r, frame *f, const mt_tpl_nodes *list)
{
    return each_of(r, f, list, visit_resolve, NULL);
}

bool mt_tpl_scope_resolve(mt_tpl_run *run, const mt_tpl_nodes *body, mt_tpl_scope *root, uint32_t *slots,
                          mt_tpl_scope *reads, mt_tpl_blocks *blocks)
{
    function fn = {.depth = 0};
    frame top = {.scope = root, .fn = &fn};
    resolver r = {.run = run, .root = &top, .reads = reads, .blocks = blocks};
    bool ok = collect_list(&r, &top, body) && resolve_list(&r, &top, body);

    *slots = fn.slots;
    return ok;
}
