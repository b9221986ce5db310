/* A run: what one rendering shares: its memory, its bounds and its first error. The compiler uses one as well, for
   constants. One thread at a time. */
#ifndef MT_TEMPLATE_RUN_H
#define MT_TEMPLATE_RUN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"

/* A place in a template's text: from 1; columns count characters. */
typedef struct mt_tpl_place {
    uint32_t line, column;
} mt_tpl_place;

typedef struct mt_tpl_run {
    mt_arena *arena;                   /* for all values that are made */
    const struct mt_tpl_dict *context; /* the caller's variables */
    struct mt_tpl_activation *root;    /* the variables of the template's top level */
    const struct mt_tpl_blocks *blocks;
    const struct mt_tpl_dict *given; /* what a scoped block was given; NULL: nothing */
    struct mt_tpl_watch *watch;      /* records what loops over the watched list write; NULL: nothing does */
    const struct tm *now;            /* for strftime_now; NULL: ask the clock */
    size_t longest;                  /* bytes that a string may have */
    uint64_t steps;                  /* left; a step is about the work of an addition */
    uint64_t seed;                   /* of hashes */
    unsigned depth;                  /* nesting of evaluations */
    const atomic_bool *stop;         /* true: rendering fails; may be NULL */

    mt_error *err;
    bool failed;  /* err says why; nothing is evaluated any more */
    bool raised;  /* by raise_exception of the template */
    bool located; /* err says where */
} mt_tpl_run;

/* Each of these sets the run's error, if it is the first, and returns false. */
bool mt_tpl_fail(mt_tpl_run *run, const char *fmt, ...) MT_PRINTF(2, 3);
bool mt_tpl_fail_limit(mt_tpl_run *run, const char *fmt, ...) MT_PRINTF(2, 3);
bool mt_tpl_fail_at(mt_tpl_run *run, mt_tpl_place at, const char *fmt, ...) MT_PRINTF(3, 4);
bool mt_tpl_fail_raised(mt_tpl_run *run, const char *text, size_t len);

/* Puts "line L, column C: " before the error, if there is one and that was not done already. Returns whether there is
   none: what fails can end with `return ok || mt_tpl_locate(...)`. */
bool mt_tpl_locate(mt_tpl_run *run, mt_tpl_place at);

/* NULL: the memory limit is reached, and the run has failed. */
void *mt_tpl_alloc(mt_tpl_run *run, size_t size) MT_NODISCARD;
void *mt_tpl_alloc_array(mt_tpl_run *run, size_t count, size_t size) MT_NODISCARD;
void *mt_tpl_copy(mt_tpl_run *run, const void *what, size_t size) MT_NODISCARD; /* size is not 0 */

/* Makes space for `more` items after the first `count` of a list, which may move. list: the address of the pointer to
   its items, of `size` bytes each; cap: how many it has space for. False: the run has failed. */
bool mt_tpl_grow(mt_tpl_run *run, void *list, size_t count, size_t more, size_t *cap, size_t size) MT_NODISCARD;

/* Uses up steps; false: none are left, and the run has failed. mt_tpl_charge_bytes: for a pass over text. */
bool mt_tpl_charge(mt_tpl_run *run, uint64_t steps) MT_NODISCARD;
bool mt_tpl_charge_bytes(mt_tpl_run *run, size_t bytes) MT_NODISCARD;

/* Around recursion: mt_tpl_enter is false beyond the depth limit; call mt_tpl_leave only after a true one. */
bool mt_tpl_enter(mt_tpl_run *run) MT_NODISCARD;
void mt_tpl_leave(mt_tpl_run *run);

#endif
