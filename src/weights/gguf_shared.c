/* GGUF files that are open: opening one of them again gives the same mt_gguf, so that a file is parsed once while any
   caller holds it. A file is known by its name, and is another one when its number, size or time has changed.
   The list belongs to all threads, under one lock, which is never held while a file is read. */
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "weights/gguf_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of holders and next in it */
static mt_gguf *list;

/* macOS has other names for the times of a file. */
#ifdef __APPLE__
#define MODIFIED st_mtimespec
#else
#define MODIFIED st_mtim
#endif

bool mt_gguf_stamp_take(mt_gguf_stamp *stamp, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    *stamp = (mt_gguf_stamp){mt_strdup(path), (uint64_t)info.st_dev, (uint64_t)info.st_ino, (uint64_t)info.st_size,
                             info.MODIFIED};
    return true;
}

static bool unchanged(const mt_gguf_stamp *before)
{
    mt_gguf_stamp now;
    if (!mt_gguf_stamp_take(&now, before->path))
        return false;
    mt_free(now.path);
    return now.device == before->device && now.inode == before->inode && now.size == before->size &&
           now.modified.tv_sec == before->modified.tv_sec && now.modified.tv_nsec == before->modified.tv_nsec;
}

static bool is(const mt_gguf *g, const char *path)
{
    bool same = strcmp(g->path, path) == 0;
    for (size_t i = 0; same && i < g->mapped; i++)
        same = unchanged(&g->stamps[i]);
    return same;
}

mt_gguf *mt_gguf_shared_find(const char *path)
{
    pthread_mutex_lock(&lock);
    mt_gguf *g = list;
    while (g && !is(g, path))
        g = g->next;
    if (g)
        g->holders++;
    pthread_mutex_unlock(&lock);
    return g;
}

void mt_gguf_shared_add(mt_gguf *g, const char *path)
{
    g->path = mt_strdup(path);
    g->holders = 1;
    pthread_mutex_lock(&lock);
    g->next = list;
    list = g;
    pthread_mutex_unlock(&lock);
}

bool mt_gguf_shared_drop(mt_gguf *g)
{
    pthread_mutex_lock(&lock);
    const bool last = --g->holders == 0;
    if (last) {
        mt_gguf **at = &list;
        while (*at != g)
            at = &(*at)->next;
        *at = g->next;
    }
    pthread_mutex_unlock(&lock);
    return last;
}
