/* A pool of cache pages: which are free, and how many refer to each of the others. Numbers only: the pages' memory is
   the device's. */
#ifndef MT_CACHE_PAGES_H
#define MT_CACHE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/device.h"

/* Told of every page that is taken or becomes free; for debugging. */
typedef void mt_pages_watch(void *ctx, size_t pool, uint32_t page, bool freed);

typedef struct mt_pages {
    size_t total, free;
    uint32_t *stack;       /* [total]: the free ones lie in [0, free) */
    uint32_t *refs;        /* [total] */
    mt_pages_watch *watch; /* NULL: nobody */
    void *watcher;
    size_t pool; /* what the watcher calls it */
} mt_pages;

void mt_pages_init(mt_pages *pages, size_t total); /* free with mt_pages_free */
void mt_pages_free(mt_pages *pages);

/* A free page with one reference to it; MT_NO_PAGE when there is none. */
uint32_t mt_pages_take(mt_pages *pages);

void mt_pages_ref(mt_pages *pages, uint32_t page);

/* Returns how many references are left; at 0 the page is free. */
uint32_t mt_pages_unref(mt_pages *pages, uint32_t page);

#endif
