/* All parts are checked, also after one has failed, so that all mistakes of a config file can be corrected at once.
   Models that are named are loaded, as a start would do, and unloaded; the port is opened for a moment, as the
   server would open it; a folder that is to be written gets a file that is removed. Nothing is left changed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/store.h"
#include "base/alloc.h"
#include "chat/chat_template.h"
#include "chat/parse.h"
#include "files/store.h"
#include "http/listen.h"
#include "http/proxies.h"
#include "http/tls.h"
#include "server/calls/guard.h"
#include "server/calls/keys.h"
#include "server/fleet/fleet.h"
#include "server/fleet/warm.h"
#include "server/routes/web.h"
#include "server/server.h"

typedef bool checker(const mt_options *opt, mt_error *err);

static bool check_formats(const mt_options *opt, mt_error *err)
{
    const mt_parse_formats formats = {.tools = opt->tool_format, .reasoning = opt->reasoning_format};
    mt_parser *parser = mt_parser_new(&(mt_parse_settings){.formats = formats}, err);
    mt_chat_templates *templates;

    mt_parser_free(parser);
    if (!parser || !opt->chat_template || !opt->dir)
        return parser != NULL;
    templates = mt_chat_templates_open(opt->dir, opt->chat_template, err);
    mt_chat_templates_free(templates);
    return templates != NULL;
}

static bool check_folder(const char *option, const char *path, int mode, mt_error *err)
{
    struct stat info;

    if (stat(path, &info) != 0 || (S_ISDIR(info.st_mode) && access(path, mode) != 0))
        return mt_fail(err, MT_E_IO, "\"--%s\" cannot use \"%s\": %s", option, path, strerror(errno));
    return S_ISDIR(info.st_mode) || mt_fail(err, MT_E_INVALID, "\"--%s\" needs a folder: \"%s\" is none", option, path);
}

/* Whether a file or folder can be used, or, where it does not exist, can be made. */
static bool check_path(const char *option, const char *path, mt_error *err)
{
    char *folder;
    bool ok;

    if (access(path, R_OK | W_OK) == 0)
        return true;
    if (errno != ENOENT)
        return mt_fail(err, MT_E_IO, "\"--%s\" cannot use \"%s\": %s", option, path, strerror(errno));
    folder = mt_strdup(path);
    *(strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder) = '\0';
    ok = check_folder(option, *folder ? folder : ".", W_OK | X_OK, err);
    mt_free(folder);
    return ok;
}

/* Cuts a path down to what of it exists: the server makes the folders below. */
static void cut_to_existing(char *path)
{
    while (*path && access(path, F_OK) != 0 && errno == ENOENT) {
        char *const slash = strrchr(path, '/');

        *(slash ? slash + (slash == path && slash[1]) : path) = '\0';
    }
}

/* Whether files can be made in a folder, or in the one that it would be made in. Permissions do not say so of every
   file system. */
static bool check_written(const char *option, const char *path, mt_error *err)
{
    char folder[MT_LIMIT_PATH], file[MT_LIMIT_PATH + 16];
    int fd = -1, error = ENAMETOOLONG;

    if (snprintf(folder, sizeof(folder), "%s", path) < (int)sizeof(folder)) {
        cut_to_existing(folder);
        snprintf(file, sizeof(file), "%s/check-XXXXXX", *folder ? folder : ".");
        fd = mkstemp(file);
        error = errno;
    }
    if (fd >= 0) {
        close(fd);
        unlink(file);
    }
    return fd >= 0 || mt_fail(err, MT_E_IO, "\"--%s\" cannot use \"%s\": %s", option, path, strerror(error));
}

/* Batches have a folder in that of the files. */
static bool check_files_dir(const char *path, mt_error *err)
{
    char batches[MT_LIMIT_PATH];

    return check_written("files-dir", path, err) && mt_files_check(path, err) &&
           (snprintf(batches, sizeof(batches), "%s/batches", path) < (int)sizeof(batches)
                ? check_written("files-dir", batches, err)
                : mt_fail(err, MT_E_INVALID, "the name of the folder \"%.200s\" is too long", path));
}

static bool check_files(const mt_options *opt, mt_error *err)
{
    return (!opt->store || (check_path("store", opt->store, err) && mt_store_check(opt->store, err))) &&
           (!opt->cache_dir || check_written("cache-dir", opt->cache_dir, err)) &&
           (!opt->files_dir || check_files_dir(opt->files_dir, err)) && mt_server_remote_check(opt, err) &&
           (!opt->media_root || check_folder("media-root", opt->media_root, R_OK | X_OK, err));
}

static bool check_warm(const mt_options *opt, mt_error *err)
{
    mt_warm_list prompts = {0};
    const bool ok = !opt->warm_prompts || mt_warm_read(&prompts, opt->warm_prompts, err);

    mt_warm_free(&prompts);
    return ok;
}

static bool check_keys(const mt_options *opt, mt_error *err)
{
    mt_keys keys = {0};
    mt_guard guard;
    const bool ok = mt_keys_read(&keys, &opt->api_keys, opt->keys, err) && mt_warm_may(opt, &keys, err) &&
                    mt_guard_init(&guard, opt, keys.count > 0, err);

    mt_keys_free(&keys);
    return ok;
}

static bool check_proxies(const mt_options *opt, mt_error *err)
{
    mt_http_proxies proxies = {0};

    for (size_t i = 0; i < opt->trusted_proxies.count; i++)
        if (!mt_http_proxies_add(&proxies, opt->trusted_proxies.at[i], err))
            return false;
    return true;
}

static bool check_origins(const mt_options *opt, mt_error *err)
{
    for (size_t i = 0; i < opt->web_connect.count; i++)
        if (!mt_web_may_connect(opt->web_connect.at[i], err))
            return false;
    return true;
}

static bool check_tls(const mt_options *opt, mt_error *err)
{
    mt_http_tls *tls;

    if (!opt->tls_cert && !opt->tls_key)
        return true;
    if (!opt->tls_cert || !opt->tls_key)
        return mt_fail(err, MT_E_INVALID, "TLS needs a certificate file and a key file: give both");
    tls = mt_http_tls_new(opt->tls_cert, opt->tls_key, err);
    mt_http_tls_free(tls);
    return tls != NULL;
}

static bool check_address(const mt_options *opt, mt_error *err)
{
    mt_http_sockets sockets = {0};
    const bool ok = mt_http_sockets_open(&sockets, opt->host ? opt->host : "127.0.0.1", (int)opt->port, err);

    mt_http_sockets_close(&sockets);
    return ok;
}

/* What a start, or what comes after it, does beyond the check. */
static void write_rest(const mt_options *opt, mt_buf *out)
{
    const struct {
        bool here;
        const char *what;
    } rest[] = {{!opt->dir, "the models that were found, which are loaded when they are asked for; motet serve NAME "
                            "--check loads one"},
                {opt->warm_prompts, "whether the model accepts the prompts to warm: a server logs those it does not"},
                {opt->store, "the answers in the store"},
                {opt->files_dir, "the files and batches of --files-dir: a server leaves damaged ones out"},
                {opt->cache_dir, "the records of --cache-dir: a server reads each as it is needed"},
                {opt->cache_remote, "whether --cache-remote answers: a server tries again until it does"}};

    for (size_t i = 0; i < MT_COUNT(rest); i++)
        if (rest[i].here)
            mt_buf_printf(out, "-       not looked at: %s\n", rest[i].what);
}

bool mt_serve_check(const mt_options *opt, mt_buf *out)
{
    static const struct {
        const char *name;
        checker *check;
    } parts[] = {{"model and memory", mt_fleet_check}, {"chat template and formats", check_formats},
                 {"store and folders", check_files},   {"keys and names", check_keys},
                 {"prompts to warm", check_warm},      {"proxies", check_proxies},
                 {"origins", check_origins},           {"certificate", check_tls},
                 {"address and port", check_address},  {"KV events", mt_fleet_check_events}};
    bool all = true;

    for (size_t i = 0; i < opt->read.count; i++)
        /* A config file that could not be read would have ended the program before */
        mt_buf_printf(out, "ok      %s\n", opt->read.at[i]);
    for (size_t i = 0; i < MT_COUNT(parts); i++) {
        mt_error err = {0};
        const bool ok = parts[i].check(opt, &err);

        mt_buf_printf(out, "%s%s%s%s\n", ok ? "ok      " : "FAILED  ", parts[i].name, ok ? "" : ": ",
                      ok ? "" : err.text);
        all = all && ok;
    }
    write_rest(opt, out);
    return all;
}
