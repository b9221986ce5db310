/* See disk.h. */
#include "server/fleet/disk.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "server/limits.h"
#include "tier/wire.h"

#define RECORD_LEAST (16ul << 10) /* about how many bytes a record has: the index is sized for a disk full of such */
#define ENTRY_BYTES 64            /* bytes of memory that the index takes for a record, at most */
#define KNOWN_BYTES (4ul << 20)   /* bytes of memory for the set of keys that a shared store is known to have */
enum { SECRET_LEAST = 16 };       /* bytes */

/* Records that the index has room for. */
static size_t entries_of(const mt_options *opt)
{
    const uint64_t most = (uint64_t)opt->cache_disk / RECORD_LEAST;

    return most < MT_LIMIT_DISK_RECORDS ? (size_t)most : MT_LIMIT_DISK_RECORDS;
}

uint64_t mt_server_disk_memory(const mt_options *opt)
{
    return (opt->cache_dir ? (uint64_t)entries_of(opt) * ENTRY_BYTES : 0) +
           (opt->cache_remote ? MT_LIMIT_REMOTE_QUEUE + KNOWN_BYTES : 0);
}

static void *scan(void *arg)
{
    mt_server_disk *d = arg;

    mt_disk_scan(d->disk, &d->stop);
    return NULL;
}

/* Reads the file of --cache-remote-key, without line ends at its end; empty where the option is not given. */
static bool read_secret(mt_buf *secret, const mt_options *opt, mt_error *err)
{
    mt_buf_init(secret, MT_REMOTE_STORE_SECRET);
    if (!opt->cache_remote_key)
        return true;
    if (!mt_file_read(secret, opt->cache_remote_key, err))
        return false;
    while (secret->len > 0 && (secret->data[secret->len - 1] == '\n' || secret->data[secret->len - 1] == '\r'))
        secret->len--;
    return secret->len >= SECRET_LEAST ||
           mt_fail(err, MT_E_INVALID,
                   "\"--cache-remote-key\" has %zu bytes; give it %d or more, as openssl rand -hex 32 does",
                   secret->len, SECRET_LEAST);
}

bool mt_server_remote_check(const mt_options *opt, mt_error *err)
{
    mt_wire_address address;
    mt_buf secret = {0};

    if (!opt->cache_remote)
        return true;
    const bool ok = mt_wire_address_read(&address, opt->cache_remote, err) && read_secret(&secret, opt, err);
    mt_buf_free(&secret);
    return ok;
}

static void open_remote(mt_server_disk *d, const mt_options *opt)
{
    mt_error err = {0};
    mt_buf secret = {0};

    if (!opt->cache_remote)
        return;
    if (read_secret(&secret, opt, &err)) {
        const mt_remote_store_params params = {.url = opt->cache_remote,
                                               .secret = secret.len ? secret.data : NULL,
                                               .secret_len = secret.len,
                                               .queue = MT_LIMIT_REMOTE_QUEUE,
                                               .rate = (uint64_t)opt->cache_remote_rate};
        d->remote = mt_remote_store_open(&params, &err);
    }
    mt_buf_free(&secret);
    if (!d->remote)
        mt_log_warn("cache.remote", "%s; nothing is shared", err.text);
}

void mt_server_disk_open(mt_server_disk *d, const mt_options *opt)
{
    const mt_disk_params params = {
        .folder = opt->cache_dir, .bytes = (uint64_t)opt->cache_disk, .entries = entries_of(opt)};
    mt_error err = {0};

    open_remote(d, opt);
    if (!opt->cache_dir)
        return;
    d->disk = mt_disk_open(&params, &err);
    if (!d->disk) {
        mt_log_warn("cache.disk", "%s; what is computed is kept in memory only", err.text);
        return;
    }
    d->scanning = pthread_create(&d->scanner, NULL, scan, d) == 0;
    if (!d->scanning) /* then scan here, and start later */
        mt_disk_scan(d->disk, NULL);
}

void mt_server_disk_close(mt_server_disk *d)
{
    atomic_store(&d->stop, true);
    if (d->scanning)
        pthread_join(d->scanner, NULL);
    d->scanning = false;
    mt_disk_close(d->disk);
    mt_remote_store_close(d->remote);
    d->disk = NULL;
    d->remote = NULL;
}
