#include "server/disk.h"

#include "base/limits.h"
#include "base/log.h"

#define RECORD_LEAST (16ul << 10) /* bytes of a record, about: there are no more records than bytes over these */
#define ENTRY_BYTES 64            /* of the index, at most */

static size_t entries_of(const mt_options *opt)
{
    const uint64_t most = (uint64_t)opt->cache_disk / RECORD_LEAST;

    return most < MT_LIMIT_DISK_RECORDS ? (size_t)most : MT_LIMIT_DISK_RECORDS;
}

uint64_t mt_server_disk_memory(const mt_options *opt)
{
    return opt->cache_dir ? (uint64_t)entries_of(opt) * ENTRY_BYTES : 0;
}

static void *scan(void *arg)
{
    mt_server_disk *d = arg;

    mt_disk_scan(d->disk, &d->stop);
    return NULL;
}

void mt_server_disk_open(mt_server_disk *d, const mt_options *opt)
{
    const mt_disk_params params = {
        .folder = opt->cache_dir, .bytes = (uint64_t)opt->cache_disk, .entries = entries_of(opt)};
    mt_error err = {0};

    if (!opt->cache_dir)
        return;
    d->disk = mt_disk_open(&params, &err);
    if (!d->disk) {
        mt_log_warn("cache.disk", "%s; what is computed is kept in memory only", err.text);
        return;
    }
    d->scanning = pthread_create(&d->scanner, NULL, scan, d) == 0;
    if (!d->scanning) /* a start that takes longer */
        mt_disk_scan(d->disk, NULL);
}

void mt_server_disk_close(mt_server_disk *d)
{
    atomic_store(&d->stop, true);
    if (d->scanning)
        pthread_join(d->scanner, NULL);
    d->scanning = false;
    mt_disk_close(d->disk);
    d->disk = NULL;
}
