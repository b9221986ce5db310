/* Pools of pages and of slots for recurrent states (pages.h). */
#include "cache/pages.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void mt_pages_init(mt_pages *pages, size_t total)
{
    assert(total < MT_NO_PAGE);
    *pages = (mt_pages){.total = total, .free = total};
    pages->stack = mt_alloc_array(total, sizeof(*pages->stack));
    pages->refs = mt_alloc_array(total, sizeof(*pages->refs));
    for (size_t i = 0; i < total; i++)
        pages->stack[i] = (uint32_t)(total - 1 - i); /* the lowest number is handed out first */
}

void mt_pages_free(mt_pages *pages)
{
    mt_free(pages->stack);
    mt_free(pages->refs);
    memset(pages, 0, sizeof(*pages));
}

uint32_t mt_pages_take(mt_pages *pages)
{
    if (pages->free == 0)
        return MT_NO_PAGE;
    const uint32_t page = pages->stack[--pages->free];
    assert(pages->refs[page] == 0);
    pages->refs[page] = 1;
    if (pages->watch)
        pages->watch(pages->watcher, pages->pool, page, false);
    return page;
}

void mt_pages_ref(mt_pages *pages, uint32_t page)
{
    assert(page < pages->total && pages->refs[page] > 0);
    pages->refs[page]++;
}

uint32_t mt_pages_unref(mt_pages *pages, uint32_t page)
{
    assert(page < pages->total && pages->refs[page] > 0);
    const uint32_t left = --pages->refs[page];
    if (left > 0)
        return left;
    pages->stack[pages->free++] = page;
    if (pages->watch)
        pages->watch(pages->watcher, pages->pool, page, true);
    return left;
}
