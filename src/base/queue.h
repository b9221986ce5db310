/* A bounded queue of pointers between threads, with a file descriptor that wakes event loops. */
#ifndef MT_BASE_QUEUE_H
#define MT_BASE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

typedef struct mt_queue mt_queue;

/* NULL: the process has no file descriptor left. Free with mt_queue_free; items that are still inside belong to the
   caller. */
mt_queue *mt_queue_new(size_t capacity) MT_NODISCARD;
void mt_queue_free(mt_queue *queue); /* NULL is fine */

/* Adds an item (not NULL). False: the queue is full or closed. Any thread. */
bool mt_queue_push(mt_queue *queue, void *item) MT_NODISCARD;

/* NULL: the queue is empty. Any thread. */
void *mt_queue_pop(mt_queue *queue) MT_NODISCARD;

/* Blocks until there is an item, the queue is closed and empty (NULL), or timeout_ms have passed (NULL; below 0: no
   timeout). */
void *mt_queue_wait(mt_queue *queue, int timeout_ms) MT_NODISCARD;

void mt_queue_close(mt_queue *queue);
size_t mt_queue_len(mt_queue *queue);

/* A descriptor that is readable while the queue has items or is closed; popping until NULL clears it. It belongs to the
   queue: do not read or close it. */
int mt_queue_fd(mt_queue *queue);

#endif
