/* The cache on disk that all models of a server share (--cache-dir), and the store that servers share
   (--cache-remote). */
#ifndef MT_SERVER_DISK_H
#define MT_SERVER_DISK_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/options.h"
#include "tier/depot.h"
#include "tier/disk.h"

typedef struct mt_server_disk {
    mt_disk *disk;    /* NULL: there is none */
    mt_depot *remote; /* likewise */
    pthread_t scanner;
    bool scanning; /* the thread has to be joined */
    atomic_bool stop;
} mt_server_disk;

/* Bytes of memory that it takes; 0 where none is wanted. */
uint64_t mt_server_disk_memory(const mt_options *opt);

/* What makes --cache-remote unusable, whatever the store is like: its address, the secret. False with a sentence. */
bool mt_server_remote_check(const mt_options *opt, mt_error *err) MT_NODISCARD;

/* What cannot be used is told in the log, and there is none then. A thread reads what was left in it. */
void mt_server_disk_open(mt_server_disk *d, const mt_options *opt);
void mt_server_disk_close(mt_server_disk *d); /* a zeroed one is fine */

#endif
