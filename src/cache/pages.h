/* Which cache pages are free, and which a sequence holds. Indices only: the pages' memory is the device's. */
#ifndef MT_CACHE_PAGES_H
#define MT_CACHE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct mt_pages {
    size_t total, free;
    uint32_t *stack; /* [total]: the free ones lie in [0, free) */
} mt_pages;

void mt_pages_init(mt_pages *pages, size_t total);
void mt_pages_free(mt_pages *pages);

/* A sequence's place in the cache. */
typedef struct mt_seq {
    uint32_t *page; /* [limit]: its page table */
    size_t pages, limit;
    size_t page_tokens;
} mt_seq;

/* A sequence of at most `positions` positions. */
void mt_seq_init(mt_seq *seq, size_t positions, size_t page_tokens);

/* Makes room for positions [0, positions). False when the pool is dry (nothing changes) or the sequence's limit is
   passed. */
bool mt_seq_grow(mt_seq *seq, mt_pages *pages, size_t positions) MT_NODISCARD;

/* Returns its pages to the pool and frees the table. */
void mt_seq_free(mt_seq *seq, mt_pages *pages);

#endif
