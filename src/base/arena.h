/* A bump allocator with one owner and one end of life. */
#ifndef MT_BASE_ARENA_H
#define MT_BASE_ARENA_H

#include <stddef.h>

#include "base/compiler.h"

typedef struct mt_arena mt_arena;

/* limit: bytes the arena may ever hold; 0 means none. Free with mt_arena_free. */
mt_arena *mt_arena_new(size_t limit);
void mt_arena_free(mt_arena *arena); /* runs dispose hooks, newest first; NULL is fine */

/* Zeroed memory aligned to 16, living as long as the arena; NULL only when the limit is reached. */
void *mt_arena_alloc(mt_arena *arena, size_t size) MT_NODISCARD;
char *mt_arena_strdup(mt_arena *arena, const char *s) MT_NODISCARD;
char *mt_arena_printf(mt_arena *arena, const char *fmt, ...) MT_PRINTF(2, 3) MT_NODISCARD;

/* Calls dispose(object) when the arena is freed. Returns 0 when the limit is reached (nothing is registered). */
int mt_arena_defer(mt_arena *arena, void (*dispose)(void *object), void *object) MT_NODISCARD;

size_t mt_arena_used(const mt_arena *arena);

#endif
