/* See loop.h; also the statement for. */
#include "template/loop.h"

#include <inttypes.h>

#include "template/eval.h"
#include "template/iter.h"
#include "template/watch.h"

/* *more: whether there is a next item, which is fetched from the iterator and kept. */
static bool look_ahead(mt_tpl_run *run, mt_tpl_loop *loop, bool *more)
{
    mt_tpl_value v;
    mt_tpl_step step = MT_TPL_ITEM;

    if (!MT_TPL_GIVEN(loop->after)) {
        step = mt_tpl_next(run, loop->iter, &v);
        if (step == MT_TPL_ITEM)
            loop->after = v;
    }
    *more = step == MT_TPL_ITEM;
    return step != MT_TPL_FAILED;
}

static mt_tpl_step next_item(mt_tpl_run *run, mt_tpl_loop *loop)
{
    bool more;

    if (!look_ahead(run, loop, &more))
        return MT_TPL_FAILED;
    if (!more)
        return MT_TPL_END;
    loop->before = loop->current;
    loop->current = loop->after;
    loop->after.kind = MT_TPL_MISSING;
    loop->index0++;
    return MT_TPL_ITEM;
}

/* Finds the number of items. A generator has no length: its remaining items are fetched and counted. */
static bool find_length(mt_tpl_run *run, mt_tpl_loop *loop)
{
    mt_tpl_items rest = {0};
    mt_tpl_value from = {.kind = MT_TPL_ITER, .as.iter = loop->iter}, list;
    size_t count;

    if (loop->length >= 0)
        return true;
    if (mt_tpl_length(loop->iterable, &count)) {
        loop->length = (int64_t)count;
        return true;
    }
    if (!mt_tpl_collect(run, from, &rest) || !mt_tpl_items_end(run, &rest, MT_TPL_LIST, &list))
        return false;
    loop->iter = mt_tpl_iterate(run, list);
    loop->length = (int64_t)rest.count + loop->index0 + 1 + MT_TPL_GIVEN(loop->after);
    return loop->iter != NULL;
}

static bool neighbour(mt_tpl_run *run, mt_tpl_loop *loop, bool next, mt_tpl_value *out)
{
    bool is = loop->index0 > 0;

    if (next && !look_ahead(run, loop, &is))
        return false;
    if (!is)
        return mt_tpl_set_undefined(run, out, next ? "there is no next item" : "there is no previous item");
    return mt_tpl_set(out, next ? loop->after : loop->before);
}

bool mt_tpl_loop_attribute(mt_tpl_run *run, mt_tpl_loop *loop, const mt_tpl_str *name, mt_tpl_value *out)
{
    bool more;

    mt_tpl_offer(out, name, "index", mt_tpl_int(loop->index0 + 1));
    mt_tpl_offer(out, name, "index0", mt_tpl_int(loop->index0));
    mt_tpl_offer(out, name, "first", mt_tpl_bool(loop->index0 == 0));
    mt_tpl_offer(out, name, "depth", mt_tpl_int(loop->depth0 + 1));
    mt_tpl_offer(out, name, "depth0", mt_tpl_int(loop->depth0));
    if (mt_tpl_str_is(name, "previtem") || mt_tpl_str_is(name, "nextitem"))
        return neighbour(run, loop, name->data[0] == 'n', out);
    if (mt_tpl_str_is(name, "last"))
        return look_ahead(run, loop, &more) && mt_tpl_set(out, mt_tpl_bool(!more));
    if (mt_tpl_str_is(name, "length") || mt_tpl_str_is(name, "revindex") || mt_tpl_str_is(name, "revindex0")) {
        if (!find_length(run, loop))
            return false;
        *out = mt_tpl_int(name->data[0] == 'l' ? loop->length : loop->length - loop->index0 - (name->len > 8 ? 1 : 0));
    }
    return true;
}

void mt_tpl_loop_repr(mt_tpl_build *b, mt_tpl_loop *loop)
{
    if (find_length(b->run, loop))
        mt_tpl_build_printf(b, "<LoopContext %" PRId64 "/%" PRId64 ">", loop->index0 + 1, loop->length);
}

/* The state of a loop with a test: `for x in xs if test`. */
typedef struct tested {
    const mt_tpl_node *node;
    mt_tpl_activation *act; /* of the test, which is a function of its own */
} tested;

/* The value of a target after it was set. */
static bool target_value(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *target, mt_tpl_value *out)
{
    mt_tpl_items items = {0};
    mt_tpl_value v;

    if (target->type == MT_TPL_N_NAME)
        return mt_tpl_set(out, *mt_tpl_variable(act, target->ref));
    for (size_t i = 0; i < target->list.count; i++)
        if (!target_value(run, act, target->list.at[i], &v) || !mt_tpl_items_add(run, &items, v))
            return false;
    return mt_tpl_items_end(run, &items, MT_TPL_TUPLE, out);
}

static mt_tpl_step next_tested(mt_tpl_run *run, mt_tpl_iter *iter, mt_tpl_value *out)
{
    const tested *t = iter->state;
    mt_tpl_value v, test;
    mt_tpl_step step;

    if (!iter->inner && !(iter->inner = mt_tpl_iterate(run, iter->source)))
        return MT_TPL_FAILED;
    while ((step = mt_tpl_next(run, iter->inner, &v)) == MT_TPL_ITEM) {
        if (!mt_tpl_assign(run, t->act, t->node->test_target, v) || !mt_tpl_eval(run, t->act, t->node->third, &test))
            return MT_TPL_FAILED;
        if (mt_tpl_truth(test))
            return target_value(run, t->act, t->node->test_target, out) ? MT_TPL_ITEM : MT_TPL_FAILED;
    }
    return step;
}

static bool with_test(mt_tpl_run *run, mt_tpl_activation *outer, const mt_tpl_node *node, mt_tpl_value *items)
{
    const tested t = {.node = node, .act = mt_tpl_activate(run, outer, node->test_slots)};

    return t.act && mt_tpl_enter_scope(run, t.act, &node->test_scope) &&
           mt_tpl_generator(run, *items, next_tested, &t, sizeof(t), items);
}

/* outer: activation around the loop; act: the one with the loop's variables, which differs in a recursive loop. */
static mt_tpl_flow run_loop(mt_tpl_run *run, mt_tpl_activation *outer, mt_tpl_activation *act, const mt_tpl_node *node,
                            mt_tpl_value items, int64_t depth0, mt_tpl_build *out)
{
    mt_tpl_loop *loop = mt_tpl_alloc(run, sizeof(*loop));
    mt_tpl_flow flow = MT_TPL_GO_ON;
    mt_tpl_step step = MT_TPL_END;
    bool finished_one = false;
    size_t mark;

    if (!loop || (node->third && !with_test(run, outer, node, &items)))
        return MT_TPL_STOP;
    *loop = (mt_tpl_loop){.iterable = items, .index0 = -1, .depth0 = depth0, .length = -1};
    loop->node = node->recursive ? node : NULL;
    loop->outer = outer;
    loop->iter = mt_tpl_iterate(run, items);
    if (!loop->iter)
        return MT_TPL_STOP;
    while (flow != MT_TPL_DO_BREAK && (step = next_item(run, loop)) == MT_TPL_ITEM) {
        *mt_tpl_variable(act, node->loop_ref) = (mt_tpl_value){.kind = MT_TPL_LOOP, .as.loop = loop};
        if (!mt_tpl_assign(run, act, node->left, loop->current) || !mt_tpl_enter_scope(run, act, &node->scope))
            return MT_TPL_STOP;
        mark = mt_tpl_watch_begin(run, run->watch, loop->current, out);
        flow = mt_tpl_exec(run, act, &node->body, out);
        if (flow == MT_TPL_STOP)
            return MT_TPL_STOP;
        mt_tpl_watch_end(run->watch, mark);
        finished_one = finished_one || flow == MT_TPL_GO_ON; /* as in Jinja2, a round with `continue` does not count */
    }
    if (step == MT_TPL_FAILED)
        return MT_TPL_STOP;
    if (finished_one || node->orelse.count == 0)
        return MT_TPL_GO_ON;
    return mt_tpl_enter_scope(run, act, &node->else_scope) ? mt_tpl_exec(run, act, &node->orelse, out) : MT_TPL_STOP;
}

/* Each level of a recursive loop is a call with variables of its own. */
static bool run_recursive(mt_tpl_run *run, mt_tpl_activation *outer, const mt_tpl_node *node, mt_tpl_value items,
                          int64_t depth0, mt_tpl_build *out)
{
    mt_tpl_activation *act = mt_tpl_activate(run, outer, node->slots);

    return act && run_loop(run, outer, act, node, items, depth0, out) != MT_TPL_STOP;
}

mt_tpl_flow mt_tpl_exec_for(mt_tpl_run *run, mt_tpl_activation *act, const mt_tpl_node *node, mt_tpl_build *out)
{
    mt_tpl_value items;

    if (!mt_tpl_eval(run, act, node->right, &items))
        return MT_TPL_STOP;
    if (node->recursive)
        return run_recursive(run, act, node, items, 0, out) ? MT_TPL_GO_ON : MT_TPL_STOP;
    return run_loop(run, act, act, node, items, 0, out);
}

bool mt_tpl_call_loop(mt_tpl_run *run, mt_tpl_loop *loop, const mt_tpl_args *args, mt_tpl_value *out)
{
    mt_tpl_build text = {.run = run};

    if (args->count != 1 || args->named)
        return mt_tpl_fail(run, "loop() takes the items to go on with, and nothing else");
    if (!loop->node)
        return mt_tpl_fail(run, "The loop must have the 'recursive' marker to be called recursively.");
    return run_recursive(run, loop->outer, loop->node, args->at[0], loop->depth0 + 1, &text) &&
           mt_tpl_set_str(out, mt_tpl_build_end(&text));
}
