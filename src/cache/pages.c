#include "cache/pages.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void mt_pages_init(mt_pages *pages, size_t total)
{
    assert(total <= UINT32_MAX);
    pages->total = pages->free = total;
    pages->stack = mt_alloc(total * sizeof *pages->stack);
    for (size_t i = 0; i < total; i++)
        pages->stack[i] = (uint32_t)(total - 1 - i); /* the lowest is handed out first */
}

void mt_pages_free(mt_pages *pages)
{
    mt_free(pages->stack);
    memset(pages, 0, sizeof *pages);
}

static size_t pages_for(size_t positions, size_t page_tokens)
{
    return (positions + page_tokens - 1) / page_tokens;
}

void mt_seq_init(mt_seq *seq, size_t positions, size_t page_tokens)
{
    *seq = (mt_seq){.limit = pages_for(positions, page_tokens), .page_tokens = page_tokens};
    seq->page = mt_alloc(seq->limit * sizeof *seq->page);
}

bool mt_seq_grow(mt_seq *seq, mt_pages *pages, size_t positions)
{
    const size_t wanted = pages_for(positions, seq->page_tokens);
    if (wanted <= seq->pages)
        return true;
    if (wanted > seq->limit || wanted - seq->pages > pages->free)
        return false;
    while (seq->pages < wanted)
        seq->page[seq->pages++] = pages->stack[--pages->free];
    return true;
}

void mt_seq_free(mt_seq *seq, mt_pages *pages)
{
    while (seq->pages > 0)
        pages->stack[pages->free++] = seq->page[--seq->pages];
    mt_free(seq->page);
    memset(seq, 0, sizeof *seq);
}
