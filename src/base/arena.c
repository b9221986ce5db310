/* Memory comes in blocks that double from 4 KiB to 1 MiB; an allocation that is too large for the current block gets a
   block of its own. Blocks and hooks are lists, newest first.

   Invariants:
   1. used <= limit. used counts what was handed out, rounded up to 16; block headers and unused ends of blocks do not
      count, so whether an allocation fits does not depend on the order of those before it.
   2. Memory in a block beyond `at` was never handed out and is still zero from mt_alloc. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { ALIGN = 16, BLOCK_FIRST = 4096, BLOCK_LAST = 1 << 20 };

typedef struct block {
    struct block *next;
    size_t size; /* of data */
    size_t at;   /* bytes handed out */
    MT_ALIGNED(16) unsigned char data[];
} block;

typedef struct hook {
    struct hook *next;
    void (*dispose)(void *object);
    void *object;
} hook;

struct mt_arena {
    size_t limit;
    size_t used;
    size_t next_block; /* size of the next block */
    block *blocks;
    hook *hooks;
};

mt_arena *mt_arena_new(size_t limit)
{
    mt_arena *arena = mt_alloc(sizeof(*arena));

    arena->limit = limit ? limit : SIZE_MAX;
    arena->next_block = BLOCK_FIRST;
    return arena;
}

void mt_arena_free(mt_arena *arena)
{
    if (!arena)
        return;
    for (hook *h = arena->hooks; h; h = h->next)
        h->dispose(h->object);
    for (block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        mt_free(b);
    }
    mt_free(arena);
}

static block *add_block(mt_arena *arena, size_t size)
{
    block *b;

    if (size < arena->next_block)
        size = arena->next_block;
    if (arena->next_block < BLOCK_LAST)
        arena->next_block *= 2;
    b = size > BLOCK_LAST ? mt_alloc_try(sizeof(*b) + size) : mt_alloc(sizeof(*b) + size);
    if (!b)
        return NULL;
    b->size = size;
    b->next = arena->blocks;
    arena->blocks = b;
    return b;
}

void *mt_arena_alloc(mt_arena *arena, size_t size)
{
    block *b = arena->blocks;
    void *ptr;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = size ? (size + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (size > arena->limit - arena->used)
        return NULL;
    if (!b || size > b->size - b->at)
        b = add_block(arena, size);
    if (!b)
        return NULL; /* a large block may be refused, which counts as beyond the limit */
    ptr = b->data + b->at;
    b->at += size;
    arena->used += size;
    return ptr;
}

void *mt_arena_copy(mt_arena *arena, const void *data, size_t size)
{
    void *copy = mt_arena_alloc(arena, size + 1);

    return copy && size ? memcpy(copy, data, size) : copy;
}

char *mt_arena_strdup(mt_arena *arena, const char *s)
{
    return mt_arena_copy(arena, s, strlen(s));
}

char *mt_arena_printf(mt_arena *arena, const char *fmt, ...)
{
    va_list args;
    char *text;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    text = len < 0 ? NULL : mt_arena_alloc(arena, (size_t)len + 1);
    if (!text)
        return NULL;
    va_start(args, fmt);
    vsnprintf(text, (size_t)len + 1, fmt, args);
    va_end(args);
    return text;
}

int mt_arena_defer(mt_arena *arena, void (*dispose)(void *object), void *object)
{
    hook *h = mt_arena_alloc(arena, sizeof(*h));

    if (!h)
        return 0;
    h->dispose = dispose;
    h->object = object;
    h->next = arena->hooks;
    arena->hooks = h;
    return 1;
}

size_t mt_arena_used(const mt_arena *arena)
{
    return arena->used;
}
