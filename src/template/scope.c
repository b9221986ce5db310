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

#include "template/limits.h"

#include <string.h>

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
    bool conditional; /* names are collected inside an if */
    bool soft;        /* inside an if of the current scope: unknown filters fail only when they are reached */
    bool loop;        /* break and continue are allowed */
    unsigned loops;   /* number of loops around, whatever is between */
    unsigned used;    /* bits of `special`: names that a function uses before it sets them */
    unsigned set;     /* bits of `special`: names that it sets */
} resolver;

static bool resolve(resolver *r, frame *f, mt_tpl_node *node);

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
    if (!mt_tpl_grow(r->run, &scope->at, scope->count, 1, &scope->cap, sizeof(*scope->at)))
        return NULL;
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

static bool store_name(resolver *r, frame *f, const mt_tpl_str *name)
{
    mt_tpl_load *load = find_own(f->scope, name);
    mt_tpl_ref outer = {0};
    bool known = !load && f->parent && find(f->parent, name, &outer);

    if (!load && !known && r->conditional)
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

    load = load ? load : define(r, f, name, MT_TPL_LOAD_PARAM);
    if (!load)
        return false;
    load->kind = MT_TPL_LOAD_PARAM;
    load->stored = true;
    return true;
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

typedef bool visit_fn(resolver *r, frame *f, mt_tpl_node *node);

static bool each_of(resolver *r, frame *f, const mt_tpl_nodes *list, visit_fn *visit)
{
    for (size_t i = 0; i < list->count; i++)
        if (!visit(r, f, list->at[i]))
            return false;
    return true;
}

/* Visits a node; NULL: there is nothing to visit. */
static bool maybe(resolver *r, frame *f, mt_tpl_node *node, visit_fn *visit)
{
    return !node || visit(r, f, node);
}

static bool each_expression(resolver *r, frame *f, mt_tpl_node *node, visit_fn *visit)
{
    const mt_tpl_call_args *args = node->args;

    return maybe(r, f, node->left, visit) && maybe(r, f, node->right, visit) && maybe(r, f, node->third, visit) &&
           each_of(r, f, &node->list, visit) &&
           (!args || (each_of(r, f, &args->at, visit) && each_of(r, f, &args->named, visit) &&
                      maybe(r, f, args->star, visit) && maybe(r, f, args->star_star, visit)));
}

/* Collects the names of one scope, without those of the scopes inside it. */
static bool collect(resolver *r, frame *f, mt_tpl_node *node)
{
    const bool conditional = r->conditional;
    bool ok = true;

    switch (node->type) {
    case MT_TPL_N_NAME: return node->store ? store_name(r, f, node->name) : load_name(r, f, node->name);
    case MT_TPL_N_NAMESPACE: return load_name(r, f, node->name);
    case MT_TPL_N_IF:
        ok = collect(r, f, node->left);
        r->conditional = true;
        ok = ok && each_of(r, f, &node->body, collect) && each_of(r, f, &node->orelse, collect);
        r->conditional = conditional;
        return ok;
    case MT_TPL_N_SET: return collect(r, f, node->right) && collect(r, f, node->left);
    case MT_TPL_N_SET_BLOCK: return collect(r, f, node->left);
    case MT_TPL_N_MACRO: return store_name(r, f, node->name);
    case MT_TPL_N_FOR: return collect(r, f, node->right);
    case MT_TPL_N_WITH:
        for (size_t i = 1; ok && i < node->list.count; i += 2)
            ok = collect(r, f, node->list.at[i]);
        return ok;
    case MT_TPL_N_AUTOESCAPE:
    case MT_TPL_N_BLOCK: return true;
    default: return each_expression(r, f, node, collect);
    }
}

/* Names that a function has without declaring them; each has a bit. */
static const char *const special[] = {"caller", "varargs", "kwargs"};
enum { CALLER = 1, VARARGS = 2, KWARGS = 4 };

/* Finds out which special names are used and set: r->used and r->set. */
static bool find_special(resolver *r, frame *f, mt_tpl_node *node)
{
    const mt_tpl_params *params = node->params;

    if (node->type == MT_TPL_N_BLOCK)
        return true;
    for (size_t i = 0; node->type == MT_TPL_N_NAME && i < MT_COUNT(special); i++)
        if (mt_tpl_str_is(node->name, special[i])) {
            if (node->store)
                r->set |= 1u << i;
            else if (!(r->set >> i & 1))
                r->used |= 1u << i;
        }
    return each_expression(r, f, node, find_special) &&
           (!params ||
            (each_of(r, f, &params->names, find_special) && each_of(r, f, &params->defaults, find_special))) &&
           each_of(r, f, &node->body, find_special) && each_of(r, f, &node->orelse, find_special);
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
    unsigned named = 0;
    size_t caller_at = 0;

    r->used = r->set = 0;
    if (!each_of(r, f, &node->body, find_special))
        return false;
    for (size_t i = 0; i < params->names.count; i++)
        for (size_t k = 0; k < MT_COUNT(special); k++)
            if (mt_tpl_str_is(params->names.at[i]->name, special[k])) {
                named |= 1u << k;
                caller_at = k == 0 ? i : caller_at;
            }
    params->explicit_caller = named & CALLER;
    if ((r->used & named & CALLER) && caller_at < params->names.count - params->defaults.count)
        return mt_tpl_fail_at(
            r->run, node->place,
            "When defining macros or call blocks the special \"caller\" argument must be omitted or be "
            "given a default.");
    if (r->used & CALLER)
        params->caller = params->explicit_caller ? params->names.at[caller_at] : special_name(r, f, "caller");
    if (r->used & ~named & KWARGS)
        params->kwargs = special_name(r, f, "kwargs");
    if (r->used & ~named & VARARGS)
        params->varargs = special_name(r, f, "varargs");
    return !r->run->failed;
}

static bool resolve_name(resolver *r, frame *f, mt_tpl_node *node)
{
    (void)r;
    return find(f, node->name, &node->ref);
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
    ok = ok && declare_special(r, &inner, node) && each_of(r, &inner, &params->defaults, collect) &&
         each_of(r, &inner, &node->body, collect) && each_of(r, &inner, &params->names, resolve_name) &&
         maybe(r, &inner, params->caller, resolve_name) && maybe(r, &inner, params->varargs, resolve_name) &&
         maybe(r, &inner, params->kwargs, resolve_name) && each_of(r, &inner, &params->defaults, resolve) &&
         each_of(r, &inner, &node->body, resolve);
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
    ok = declare_target(r, &inner, node->test_target) && collect(r, &inner, node->third) &&
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
         declare_target(r, &body, node->left) && each_of(r, &body, &node->body, collect);
    r->loop = true;
    ok = ok && find(&body, loop, &node->loop_ref) && resolve(r, &body, node->left) &&
         each_of(r, &body, &node->body, resolve);
    r->loop = saved.loop && !node->recursive;
    ok = ok && each_of(r, &orelse, &node->orelse, collect) && each_of(r, &orelse, &node->orelse, resolve);
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
    ok = ok && each_of(r, &inner, &node->body, collect) && maybe(r, &inner, also, collect);
    if (node->type == MT_TPL_N_WITH)
        for (size_t i = 0; ok && i < node->list.count; i += 2)
            ok = resolve(r, &inner, node->list.at[i]);
    ok = ok && each_of(r, &inner, &node->body, resolve) && maybe(r, &inner, also, resolve);
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
    if (mt_tpl_block_find(all, node->name))
        return mt_tpl_fail_at(r->run, node->place, "block '%.*s' defined twice", (int)node->name->len,
                              node->name->data);
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
    ok = each_of(r, &inner, &node->body, collect) && each_of(r, &inner, &node->body, resolve);
    node->slots = fn.slots;
    *r = saved;
    return ok;
}

static bool resolve_soft(resolver *r, frame *f, mt_tpl_node *node)
{
    bool soft = r->soft, ok;

    r->soft = true;
    ok = each_expression(r, f, node, resolve) && each_of(r, f, &node->body, resolve) &&
         each_of(r, f, &node->orelse, resolve);
    r->soft = soft;
    return ok;
}

static bool resolve_variable(resolver *r, frame *f, mt_tpl_node *node)
{
    if (node->store && r->loops && mt_tpl_str_is(node->name, "loop"))
        return mt_tpl_fail_at(r->run, node->place, "Can't assign to special loop variable in for-loop target");
    return resolve_name(r, f, node);
}

static bool resolve(resolver *r, frame *f, mt_tpl_node *node)
{
    switch (node->type) {
    case MT_TPL_N_NAME: return resolve_variable(r, f, node);
    case MT_TPL_N_NAMESPACE: return resolve_name(r, f, node);
    case MT_TPL_N_IF:
    case MT_TPL_N_CONDITION: return resolve_soft(r, f, node);
    case MT_TPL_N_FOR: return resolve_for(r, f, node);
    case MT_TPL_N_MACRO: return resolve_name(r, f, node) && resolve_function(r, f, node);
    case MT_TPL_N_GENERATION: return resolve_function(r, f, node);
    case MT_TPL_N_CALL_BLOCK: return resolve(r, f, node->left) && resolve_function(r, f, node);
    case MT_TPL_N_SET_BLOCK: return resolve(r, f, node->left) && resolve_inner(r, f, node, node->right);
    case MT_TPL_N_FILTER_BLOCK:
    case MT_TPL_N_AUTOESCAPE: return resolve_inner(r, f, node, node->left);
    case MT_TPL_N_WITH: return resolve_with(r, f, node);
    case MT_TPL_N_BLOCK: return resolve_block(r, f, node);
    case MT_TPL_N_FILTER:
    case MT_TPL_N_TEST:
        if (!node->builtin && !r->soft)
            return mt_tpl_fail_at(r->run, node->place, "No %s named '%.*s'.",
                                  node->type == MT_TPL_N_FILTER ? "filter" : "test", (int)node->name->len,
                                  node->name->data);
        break;
    case MT_TPL_N_BREAK:
    case MT_TPL_N_CONTINUE:
        if (!r->loop)
            return mt_tpl_fail_at(r->run, node->place, "%s",
                                  node->type == MT_TPL_N_BREAK ? "'break' outside loop"
                                                               : "'continue' not properly in loop");
        break;
    default: break;
    }
    return each_expression(r, f, node, resolve);
}

bool mt_tpl_scope_resolve(mt_tpl_run *run, const mt_tpl_nodes *body, mt_tpl_scope *root, uint32_t *slots,
                          mt_tpl_scope *reads, mt_tpl_blocks *blocks)
{
    function fn = {.depth = 0};
    frame top = {.scope = root, .fn = &fn};
    resolver r = {.run = run, .root = &top, .reads = reads, .blocks = blocks};
    bool ok = each_of(&r, &top, body, collect) && each_of(&r, &top, body, resolve);

    *slots = fn.slots;
    return ok;
}
