/* Where all models of a server keep cached prompts beyond memory: the folder of --cache-dir, and the store on the
   network of --cache-remote. Opened by the fleet. */
#ifndef MT_SERVER_FLEET_DISK_H
#define MT_SERVER_FLEET_DISK_H

#include <pthread.h>
#include <stdatomic.h>

#include "options/options.h"
#include "tier/disk.h"
#include "tier/remote.h"

typedef struct mt_server_disk {
    mt_disk *disk;           /* NULL: no --cache-dir, or it cannot be used */
    mt_remote_store *remote; /* NULL: no --cache-remote, or it cannot be used */
    pthread_t scanner;       /* reads what earlier runs have left in the folder */
    bool scanning;           /* scanner has to be joined */
    atomic_bool stop;        /* tells scanner to end */
} mt_server_disk;

/* Bytes of memory that both take for their indexes and queues; 0 where neither is wanted. */
uint64_t mt_server_disk_memory(const mt_options *opt);

/* Checks the address and the secret of --cache-remote, without asking the store. False: *err. */
bool mt_server_remote_check(const mt_options *opt, mt_error *err) MT_NODISCARD;

/* Opens what the options want. What cannot be used is logged and left NULL. */
void mt_server_disk_open(mt_server_disk *d, const mt_options *opt);
void mt_server_disk_close(mt_server_disk *d); /* a zeroed one is fine */

#endif
