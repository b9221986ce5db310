/* See run.h. */
#include "template/run.h"

#include "base/error.h"
#include "template/limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BYTES_PER_STEP = 16, LIST_FIRST = 64 }; /* bytes of a list that are allocated first */

static bool fail(mt_tpl_run *run, mt_code code, const char *fmt, va_list args)
{
    if (run->failed)
        return false;
    run->failed = true;
    if (run->err) {
        run->err->code = code;
        run->err->field = NULL;
        vsnprintf(run->err->text, sizeof(run->err->text), fmt, args);
        mt_error_tidy(run->err);
    }
    return false;
}

bool mt_tpl_fail(mt_tpl_run *run, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail(run, MT_E_INVALID, fmt, args);
    va_end(args);
    return false;
}

bool mt_tpl_fail_limit(mt_tpl_run *run, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail(run, MT_E_TOO_LARGE, fmt, args);
    va_end(args);
    return false;
}

bool mt_tpl_fail_at(mt_tpl_run *run, mt_tpl_place at, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fail(run, MT_E_INVALID, fmt, args);
    va_end(args);
    return mt_tpl_locate(run, at);
}

bool mt_tpl_fail_raised(mt_tpl_run *run, const char *text, size_t len)
{
    if (run->failed)
        return false;
    run->raised = run->located = true;
    return mt_tpl_fail(run, "%.*s", len < MT_LIMIT_ERROR_TEXT ? (int)len : MT_LIMIT_ERROR_TEXT, text);
}

bool mt_tpl_locate(mt_tpl_run *run, mt_tpl_place at)
{
    if (!run->failed || run->located)
        return !run->failed;
    run->located = true;
    mt_fail_within(run->err, "line %u, column %u", at.line, at.column);
    return false;
}

void *mt_tpl_alloc(mt_tpl_run *run, size_t size)
{
    void *memory = mt_arena_alloc(run->arena, size);

    if (!memory)
        mt_tpl_fail_limit(run,
                          "the template needs more memory than it may have; make it build fewer or shorter values");
    return memory;
}

void *mt_tpl_alloc_array(mt_tpl_run *run, size_t count, size_t size)
{
    return mt_tpl_alloc(run, count > SIZE_MAX / size ? SIZE_MAX : count * size);
}

void *mt_tpl_copy(mt_tpl_run *run, const void *what, size_t size)
{
    void *copy = mt_tpl_alloc(run, size);

    return copy ? memcpy(copy, what, size) : NULL;
}

bool mt_tpl_grow(mt_tpl_run *run, void *list, size_t count, size_t more, size_t *cap, size_t size)
{
    size_t room = *cap ? *cap : MT_MAX(LIST_FIRST / size, 1);
    void *items, *larger;

    if (more <= *cap - count)
        return true;
    while (room - count < more)
        room *= 2;
    larger = mt_tpl_alloc_array(run, room, size);
    if (!larger)
        return false;
    memcpy(&items, list, sizeof(items)); /* by its bytes, since it is a pointer of any type */
    if (count)
        memcpy(larger, items, count * size);
    memcpy(list, &larger, sizeof(larger));
    *cap = room;
    return true;
}

bool mt_tpl_charge(mt_tpl_run *run, uint64_t steps)
{
    if (run->failed)
        return false;
    /* relaxed: read again and again, and no other data depends on it */
    if (run->stop && atomic_load_explicit(run->stop, memory_order_relaxed))
        return mt_tpl_fail(run, "the request was cancelled while its messages were rendered; send it again");
    if (steps > run->steps) {
        run->steps = 0;
        return mt_tpl_fail_limit(run, "the template takes too many steps; make its loops shorter");
    }
    run->steps -= steps;
    return true;
}

bool mt_tpl_charge_bytes(mt_tpl_run *run, size_t bytes)
{
    return mt_tpl_charge(run, 1 + bytes / BYTES_PER_STEP);
}

bool mt_tpl_enter(mt_tpl_run *run)
{
    if (run->depth >= MT_LIMIT_TEMPLATE_DEPTH)
        return mt_tpl_fail_limit(run, "more than %d evaluations inside one another; end the recursion earlier",
                                 MT_LIMIT_TEMPLATE_DEPTH);
    if (!mt_tpl_charge(run, 1))
        return false;
    run->depth++;
    return true;
}

void mt_tpl_leave(mt_tpl_run *run)
{
    run->depth--;
}
