/* What one render shares: its memory, its bounds and its first error. The compiler uses one as well, for the constants
   it makes. One thread at a time. */
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

struct mt_tpl_dict;
struct mt_tpl_activation;
struct mt_tpl_watch;
struct mt_tpl_blocks;
struct mt_tpl_above;

typedef struct mt_tpl_run {
    const struct mt_tpl_above *above;  /* how to evaluate: above.h */
    mt_arena *arena;                   /* everything made on the way */
    const struct mt_tpl_dict *context; /* what the caller gave */
    struct mt_tpl_activation *root;    /* the variables of the template's top level */
    const struct mt_tpl_blocks *blocks;
    const struct mt_tpl_dict *given; /* what a scoped block was given; NULL: nothing */
    struct mt_tpl_watch *watch;      /* NULL: nothing */
    const struct tm *now;            /* NULL: ask the clock */
    size_t longest;                  /* bytes a string may have */
    uint64_t steps;                  /* left; one is about the work of an addition */
    uint64_t seed;                   /* of hashes */
    unsigned depth;                  /* evaluations inside one another */
    const atomic_bool *stop;         /* NULL: nobody ends it from outside */

    mt_error *err;
    bool failed;  /* err says why; nothing is evaluated any more */
    bool raised;  /* the template asked for it by raise_exception */
    bool located; /* err says where */
} mt_tpl_run;

/* Each sets the first error and returns false, so that callers write `return mt_tpl_fail(...)`. */
bool mt_tpl_fail(mt_tpl_run *run, const char *fmt, ...) MT_PRINTF(2, 3);
bool mt_tpl_fail_limit(mt_tpl_run *run, const char *fmt, ...) MT_PRINTF(2, 3);
bool mt_tpl_fail_raised(mt_tpl_run *run, const char *text, size_t len);

/* Puts "line L, column C: " before the error, unless something inside did already. */
void mt_tpl_locate(mt_tpl_run *run, uint32_t line, uint32_t column);

/* NULL when the memory limit is reached: then the run has failed. */
void *mt_tpl_alloc(mt_tpl_run *run, size_t size) MT_NODISCARD;
void *mt_tpl_alloc_array(mt_tpl_run *run, size_t count, size_t size) MT_NODISCARD;

/* A list of `count` items of `size` bytes with room for one or `more` behind them: the list itself, or a copy with a
   larger *cap. */
void *mt_tpl_grow(mt_tpl_run *run, void *list, size_t count, size_t more, size_t *cap, size_t size) MT_NODISCARD;

/* Pays for work; false when the template has used up its steps. mt_tpl_charge_bytes pays for a pass over text. */
bool mt_tpl_charge(mt_tpl_run *run, uint64_t steps) MT_NODISCARD;
bool mt_tpl_charge_bytes(mt_tpl_run *run, size_t bytes) MT_NODISCARD;

/* Around what recurses: enter is false beyond the depth limit, and leave is called only after a true one. */
bool mt_tpl_enter(mt_tpl_run *run) MT_NODISCARD;
void mt_tpl_leave(mt_tpl_run *run);

#endif
