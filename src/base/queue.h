/* A bounded queue of pointers between threads, with a wake-up file descriptor for event loops. */
#ifndef MT_BASE_QUEUE_H
#define MT_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

typedef struct mt_queue mt_queue;

/* NULL when the process has no file descriptor left. Free with mt_queue_free; what is still inside is the caller's. */
mt_queue *mt_queue_new(size_t capacity) MT_NODISCARD;
void mt_queue_free(mt_queue *queue); /* NULL is fine */

/* Takes item (never NULL) on success; false when the queue is full or closed. Any thread. */
bool mt_queue_push(mt_queue *queue, void *item) MT_NODISCARD;

/* NULL when empty. Any thread. */
void *mt_queue_pop(mt_queue *queue) MT_NODISCARD;

/* Blocks until an item comes, the queue is closed (NULL once drained), or timeout_ms passes (< 0: never). */
void *mt_queue_wait(mt_queue *queue, int timeout_ms) MT_NODISCARD;

void mt_queue_close(mt_queue *queue);
size_t mt_queue_len(mt_queue *queue);

/* Readable while the queue holds items or is closed; mt_queue_pop until NULL clears it. The queue's own: do not read
   or close it. */
int mt_queue_fd(mt_queue *queue);

#endif
