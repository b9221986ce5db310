/* The hub's address, URLs and errors (remote.h). */
#include "hub/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/limits.h"
#include "hub/limits.h"

#define HUB "https://huggingface.co"

static bool is_true(const char *value)
{
    static const char *const words[] = {"1", "on", "yes", "true"};

    for (size_t i = 0; value && i < MT_COUNT(words); i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

static bool read_endpoint(mt_remote *remote, mt_hub_env *env, mt_error *err)
{
    const char *given = env("HF_ENDPOINT");
    size_t len;

    given = given && *given ? given : HUB;
    len = strlen(given);
    while (len > 0 && given[len - 1] == '/')
        len--;
    if ((strncmp(given, "https://", 8) != 0 && strncmp(given, "http://", 7) != 0) || len >= sizeof(remote->endpoint) ||
        strcspn(given, " \t\r\n?#@\"") < len)
        return mt_fail(err, MT_E_INVALID, "HF_ENDPOINT is \"%.200s\", which is no address of a hub: write it as " HUB,
                       given);
    memcpy(remote->endpoint, given, len);
    return true;
}

/* Trims the token. It goes into a header, so it may only have visible characters. */
static bool set_token(mt_remote *remote, const char *text, const char *from, mt_error *err)
{
    size_t len;

    text += strspn(text, " \t\r\n");
    len = strcspn(text, " \t\r\n");
    if (len >= sizeof(remote->token) || text[len + strspn(text + len, " \t\r\n")])
        return mt_fail(err, MT_E_INVALID, "\"%s\" holds no token: set HF_TOKEN to one, or run: hf auth login", from);
    for (size_t i = 0; i < len; i++)
        if (text[i] < 0x21 || text[i] > 0x7e)
            return mt_fail(err, MT_E_INVALID, "\"%s\" holds no token: set HF_TOKEN to one, or run: hf auth login",
                           from);
    memcpy(remote->token, text, len);
    return true;
}

static bool read_token(mt_remote *remote, mt_hub_env *env, mt_error *err)
{
    const char *given = env("HF_TOKEN"), *file = env("HF_TOKEN_PATH");
    char path[MT_LIMIT_PATH];
    struct stat st;
    mt_buf text;
    bool ok;

    if (!given || !*given)
        given = env("HUGGING_FACE_HUB_TOKEN"); /* the older name */
    if (given && *given)
        return set_token(remote, given, "HF_TOKEN", err);
    if (file && *file)
        snprintf(path, sizeof(path), "%s", file);
    else if (!mt_hub_home_file(path, "token", env))
        return true;
    if (stat(path, &st) != 0)
        return true;
    mt_buf_init(&text, MT_LIMIT_HUB_NAME);
    ok = mt_file_read(&text, path, err) && set_token(remote, text.len ? text.data : "", path, err);
    mt_buf_free(&text);
    return ok;
}

static bool read_patience(mt_remote *remote, mt_hub_env *env, mt_error *err)
{
    const char *given = env("HF_HUB_DOWNLOAD_TIMEOUT");
    char *end;
    long seconds;

    remote->patience_ms = MT_LIMIT_PULL_STALL_MS;
    if (!given || !*given)
        return true;
    seconds = strtol(given, &end, 10);
    if (*end || seconds < 1 || seconds > 86400)
        return mt_fail(err, MT_E_INVALID, "HF_HUB_DOWNLOAD_TIMEOUT is \"%.50s\": give seconds, from 1 to 86400", given);
    remote->patience_ms = seconds * 1000;
    return true;
}

bool mt_remote_read(mt_remote *remote, mt_hub_env *env, mt_error *err)
{
    const char *file = env("SSL_CERT_FILE");

    *remote = (mt_remote){.authorities = file && *file ? file : NULL, .reach = -1};
    if (is_true(env("HF_HUB_OFFLINE")))
        return mt_fail(err, MT_E_INVALID, "HF_HUB_OFFLINE is set, so nothing is downloaded: unset it");
    if (!mt_hub_cache(remote->cache, env))
        return mt_fail(err, MT_E_INVALID, "there is no folder to download into: set HF_HUB_CACHE or HOME");
    return read_endpoint(remote, env, err) && read_token(remote, env, err) && read_patience(remote, env, err);
}

/* Appends a path, with bytes escaped that a URL may not have. */
static void add_escaped(mt_buf *out, const char *text, bool slashes)
{
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.~", c) ||
            (slashes && c == '/'))
            mt_buf_add(out, text, 1);
        else
            mt_buf_printf(out, "%%%02X", c);
    }
}

void mt_remote_list_url(mt_buf *out, const mt_remote *remote, const mt_hub_name *name)
{
    mt_buf_printf(out, "%s/api/models/%s/revision/", remote->endpoint, name->id);
    add_escaped(out, *name->revision ? name->revision : "main", false);
    mt_buf_puts(out, "?blobs=true");
}

void mt_remote_file_url(mt_buf *out, const mt_remote *remote, const mt_hub_name *name, const char *commit,
                        const char *file)
{
    mt_buf_printf(out, "%s/%s/resolve/%s/", remote->endpoint, name->id, commit);
    add_escaped(out, file, true);
}

static bool explain_missing(const mt_remote *remote, const mt_hub_name *name, const char *code, mt_error *err)
{
    if (strcmp(code, "RevisionNotFound") == 0)
        return mt_fail(err, MT_E_NOT_FOUND, "\"%s\" has no revision \"%s\": look at %s/%s/tree/main", name->id,
                       *name->revision ? name->revision : "main", remote->endpoint, name->id);
    if (strcmp(code, "EntryNotFound") == 0)
        return mt_fail(err, MT_E_NOT_FOUND, "\"%s\" lacks a file that the hub lists: try again later", name->id);
    return mt_fail(err, MT_E_NOT_FOUND, "there is no \"%s\" at %s: check the name%s", name->id, remote->endpoint,
                   *remote->token ? "" : "; if it is private, set HF_TOKEN");
}

/* The hub answers 401 for what is private, gated or missing, and does not tell which. */
static bool explain_denied(const mt_remote *remote, const mt_hub_name *name, long status, const char *code,
                           mt_error *err)
{
    const bool gated = strcmp(code, "GatedRepo") == 0;

    if (!*remote->token && gated)
        return mt_fail(err, MT_E_INVALID,
                       "\"%s\" is gated: accept its terms at %s/%s, then set HF_TOKEN to a token of yours or run: hf "
                       "auth login",
                       name->id, remote->endpoint, name->id);
    if (!*remote->token)
        return mt_fail(err, MT_E_INVALID,
                       "\"%s\" is private, gated or not at %s: check the name; if it is there, set HF_TOKEN to a token "
                       "that may read it or run: hf auth login",
                       name->id, remote->endpoint);
    if (gated)
        return mt_fail(err, MT_E_INVALID,
                       "\"%s\" is gated, and the token's owner may not read it yet: ask for access at %s/%s", name->id,
                       remote->endpoint, name->id);
    if (status == 401)
        return mt_fail(err, MT_E_INVALID,
                       "%s does not accept the token, or has no \"%s\" for it: check HF_TOKEN and the name, or run: hf "
                       "auth login",
                       remote->endpoint, name->id);
    return mt_fail(err, MT_E_INVALID, "the token may not read \"%s\": give it that right, or set HF_TOKEN to another",
                   name->id);
}

bool mt_remote_explain(const mt_remote *remote, const mt_hub_name *name, long status, const char *code, int64_t wait,
                       mt_error *err)
{
    if (status == 401 || status == 403)
        return explain_denied(remote, name, status, code, err);
    if (status == 404)
        return explain_missing(remote, name, code, err);
    if (status == 429 && wait > 0)
        return mt_fail(err, MT_E_BUSY, "%s asks to wait %lld seconds: try again then%s", remote->endpoint,
                       (long long)wait, *remote->token ? "" : ", or set HF_TOKEN, with which it allows more");
    if (status == 429)
        return mt_fail(err, MT_E_BUSY, "%s has been asked too much: try again later%s", remote->endpoint,
                       *remote->token ? "" : ", or set HF_TOKEN, with which it allows more");
    if (status >= 500)
        return mt_fail(err, MT_E_IO, "%s is out of order (status %ld): try again later", remote->endpoint, status);
    return mt_fail(err, MT_E_IO, "%s answered with status %ld: check that HF_ENDPOINT is a hub's", remote->endpoint,
                   status);
}
