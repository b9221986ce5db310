/* Reads mapped weights into memory before they are used (mt_binder_warm, mt_mat_read_ahead). */
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "weights/bind_internal.h"

#define PIECE ((size_t)16 << 20) /* bytes read between two steps of the progress bar */

/* Whether all pages of memory in the range are resident. True where the system does not tell: then they are read when
   used. */
static bool is_warm(char *start, size_t bytes, unsigned char *pages, size_t page)
{
#ifdef __linux__
    const size_t count = (bytes + page - 1) / page;
    if (mincore(start, bytes, pages))
        return true;
    for (size_t i = 0; i < count; i++)
        if (!(pages[i] & 1))
            return false;
    return true;
#else
    (void)start, (void)bytes, (void)pages, (void)page;
    return true;
#endif
}

/* Asks the system to read a range. Failures are ignored: base/mapping.c reports a page that cannot be read when it is
   used. */
static void read_in(char *start, size_t bytes)
{
    (void)madvise(start, bytes, MADV_WILLNEED);
#ifdef MADV_POPULATE_READ
    (void)madvise(start, bytes, MADV_POPULATE_READ);
#endif
}

static void warm_tensor(const mt_tensor_info *t, mt_progress *progress, unsigned char *pages, size_t page)
{
    const uintptr_t first = (uintptr_t)t->data / page * page, end = (uintptr_t)t->data + t->bytes;
    for (uintptr_t at = first; at < end; at += PIECE) {
        const size_t bytes = end - at < PIECE ? end - at : PIECE;
        if (!is_warm((char *)at, bytes, pages, page))
            read_in((char *)at, bytes);
        mt_progress_add(progress, bytes);
    }
}

void mt_mat_read_ahead(const mt_mat *m)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)m->w / page * page;
    if (m->n > 0)
        (void)madvise((void *)first, (uintptr_t)m->w + m->n * m->stride - first, MADV_WILLNEED);
}

void mt_binder_warm(const mt_binder *b)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages = mt_alloc(PIECE / page + 1);
    mt_progress progress;
    if (b->cost.mapped_bytes < mt_memory_total()) {
        mt_progress_begin(&progress, "weights.reading", "reading weights", b->cost.mapped_bytes);
        for (size_t i = 0; i < mt_checkpoint_count(b->c); i++)
            if (b->state[i] == MT_BIND_IN_PLACE)
                warm_tensor(mt_checkpoint_at(b->c, i), &progress, pages, page);
        mt_progress_end();
    }
    mt_free(pages);
}
