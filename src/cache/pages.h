/* A pool of pages, or of slots for recurrent states: which numbers are free, and how many references each other one
   has. The memory itself is the device's. */
#ifndef MT_CACHE_PAGES_H
#define MT_CACHE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/batch.h"

/* For debugging: called when a page is taken and when it becomes free. pool: mt_pages.pool. */
typedef void mt_pages_watch(void *ctx, size_t pool, uint32_t page, bool freed);

typedef struct mt_pages {
    size_t total, free;
    uint32_t *stack;       /* [total]: stack[0..free) are the free pages */
    uint32_t *refs;        /* [total]: number of references to each page */
    mt_pages_watch *watch; /* NULL: none */
    void *watcher;         /* the ctx of watch */
    size_t pool;           /* the pool's number for the watcher */
} mt_pages;

void mt_pages_init(mt_pages *pages, size_t total); /* free with mt_pages_free */
void mt_pages_free(mt_pages *pages);

/* A free page, with one reference; MT_NO_PAGE when none is free. */
uint32_t mt_pages_take(mt_pages *pages);

void mt_pages_ref(mt_pages *pages, uint32_t page);

/* Drops a reference and returns how many are left; at 0 the page is free. */
uint32_t mt_pages_unref(mt_pages *pages, uint32_t page);

#endif
