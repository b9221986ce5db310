/* SIGHUP: reads API keys with their settings (rates, priorities, shares) and the certificate again. Each is replaced as
   a whole or not at all: where a file has a mistake, the old content stays.

   Running requests are not touched: an account outlives its last key, and a connection keeps the certificate it began
   with. Options do not change, since the engine, the caches and the threads were made by them. */
#include <sys/stat.h>

#include "base/log.h"
#include "server/inside.h"

void mt_reload_share(mt_server *server)
{
    const mt_keys *keys = &server->keys;

    for (size_t i = 0; i < keys->account_count; i++) {
        mt_account *a = keys->accounts[i];
        char owner[MT_ACCOUNT_OWNER];

        if (a->store)
            continue;
        mt_account_owner(a, owner);
        a->store = mt_store_view(server->store, owner);
    }
    if (mt_keys_isolated(keys, server->opt))
        server->isolate = true; /* and stays so, for those whose prompts were cached in that belief */
}

static bool reload_keys(mt_server *server)
{
    mt_error err;

    if (server->keys.count == 0)
        return true;
    if (!mt_keys_renew(&server->keys, &server->opt->api_keys, server->opt->keys, &err)) {
        mt_log_error("server.reload", "the keys stay as they are: %s", err.text);
        return false;
    }
    mt_reload_share(server);
    return true;
}

static bool reload_certificate(mt_server *server)
{
    mt_error err;

    if (!server->opt->tls_cert ||
        mt_http_server_certify(server->http, server->opt->tls_cert, server->opt->tls_key, &err))
        return true;
    mt_log_error("server.reload", "the certificate stays as it is: %s", err.text);
    return false;
}

/* Warns where a config file has changed: its options are read only at the start. */
static void warn_of_files(const mt_server *server)
{
    const mt_option_list *files = &server->opt->read;
    struct stat info;

    for (size_t i = 0; i < files->count; i++)
        if (stat(files->at[i], &info) == 0 && (int64_t)info.st_mtime >= server->created)
            mt_log_warn("server.reload", "\"%s\" has changed: its options take effect when the server is restarted",
                        files->at[i]);
}

void mt_reload(mt_server *server)
{
    const bool keys = reload_keys(server), certificate = reload_certificate(server);

    warn_of_files(server);
    server->reloads[keys && certificate]++;
    if (keys && certificate)
        mt_log_info("server.reloaded", "%zu keys%s; what options say stays until the server is restarted",
                    server->keys.count, server->opt->tls_cert ? ", the certificate" : "");
}
