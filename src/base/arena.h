/* An arena: memory for objects that are freed all at once. */
#ifndef MT_BASE_ARENA_H
#define MT_BASE_ARENA_H

#include <stddef.h>

#include "base/compiler.h"

typedef struct mt_arena mt_arena;

/* limit: bytes that the arena may hand out; 0: no limit. Free with mt_arena_free. */
mt_arena *mt_arena_new(size_t limit);
void mt_arena_free(mt_arena *arena); /* calls the deferred functions, newest first; NULL is fine */

/* Zeroed memory aligned to 16 bytes, which lives as long as the arena. NULL: the limit is reached. */
void *mt_arena_alloc(mt_arena *arena, size_t size) MT_NODISCARD;
char *mt_arena_strdup(mt_arena *arena, const char *s) MT_NODISCARD;
void *mt_arena_copy(mt_arena *arena, const void *data, size_t size) MT_NODISCARD; /* with a NUL behind it */
char *mt_arena_printf(mt_arena *arena, const char *fmt, ...) MT_PRINTF(2, 3) MT_NODISCARD;

/* Has dispose(object) called when the arena is freed. 0: the limit is reached, and nothing is registered. */
int mt_arena_defer(mt_arena *arena, void (*dispose)(void *object), void *object) MT_NODISCARD;

size_t mt_arena_used(const mt_arena *arena); /* bytes handed out */

#endif
