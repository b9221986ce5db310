/* Downloads through libcurl (fetch.h), one transfer a redirect, so that each URL is checked before it is requested.

   Whether a connection is allowed is decided by the address itself, just before its socket is made. So it does not
   matter how a name or number is written, what a resolver answers the second time, or where a redirect leads. Proxies,
   cookies, passwords and reused connections are not used. */
#include "media/fetch.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "media/limits.h"
#include "media/transfer.h"

enum { SHOWN = 200 }; /* bytes of a URL that messages show */

const bool mt_fetch_present = true;

/* A download under way. */
typedef struct transfer {
    const mt_fetch_rules *rules;
    mt_buf *bytes;
    const char *url; /* as in the request */
    CURL *curl;
    mt_error *err;
    size_t taken; /* bytes that the watch has granted for the body */
    bool wanted;  /* status and type are such that the body is kept */
    bool refused; /* an error has been set */
} transfer;

static void setup_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static bool refuse(transfer *t, const char *why, const char *remedy)
{
    t->refused = true;
    return mt_fail(t->err, MT_E_INVALID, "\"%.*s\" %s: %s", SHOWN, t->url, why, remedy);
}

static bool is_cancelled(const transfer *t)
{
    return mt_media_stopped(t->rules->watch);
}

static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    transfer *t = arg;
    int fd;

    (void)purpose;
    if (t->rules->allowed && !t->rules->allowed(&address->addr)) {
        refuse(t, "does not lead to a public address", "name another, or start with --media-allow-private");
        return CURL_SOCKET_BAD;
    }
    fd = socket(address->family, address->socktype, address->protocol);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a, (void)b, (void)c, (void)d;
    return is_cancelled(arg);
}

static bool is_media_type(const char *type)
{
    return type && (strncasecmp(type, "image/", 6) == 0 || strncasecmp(type, "video/", 6) == 0);
}

/* Checks status and type; where they are wrong, the transfer ends at its first byte. */
static bool check_head(transfer *t)
{
    const char *type = NULL;
    char why[160];

    if (mt_transfer_status(t->curl) != 200) {
        snprintf(why, sizeof(why), "answered with status %ld", mt_transfer_status(t->curl));
        return refuse(t, why, "check that everyone may read it");
    }
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_TYPE, &type);
    if (is_media_type(type))
        return true;
    snprintf(why, sizeof(why), "is of type \"%.100s\"", type ? type : "");
    return refuse(t, why, "name a picture (image/...) or a video (video/...)");
}

static bool too_large(transfer *t)
{
    char why[80];

    snprintf(why, sizeof(why), "has more than the %zu bytes allowed", t->bytes->limit);
    return refuse(t, why, "name a smaller file");
}

/* Asks the watch for memory as the buffer doubles, since a body's length is known only at its end. */
static bool take_memory(transfer *t, size_t more)
{
    const size_t least = t->bytes->len + more + 1, most = t->bytes->limit + 1;
    size_t wanted = t->taken ? t->taken : 1 << 16;

    while (wanted < least)
        wanted *= 2;
    wanted = wanted < most ? wanted : most;
    if (wanted <= t->taken)
        return true;
    if (!mt_media_take(t->rules->watch, wanted - t->taken, t->err)) {
        t->refused = true;
        return false;
    }
    t->taken = wanted;
    return true;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    transfer *t = arg;

    size *= count;
    if (mt_transfer_is_redirect(mt_transfer_status(t->curl))) /* the body of a redirect is not used */
        return size;
    if (!t->wanted && !check_head(t))
        return 0;
    t->wanted = true;
    if (!take_memory(t, size))
        return 0;
    if (!mt_buf_add(t->bytes, data, size)) {
        too_large(t);
        return 0;
    }
    return size;
}

static bool check_port(transfer *t, const char *port)
{
    long number = strtol(port, NULL, 10);

    return number == 80 || number == 443 || number >= 1024 ||
           refuse(t, "names a port that is some other service's", "name 80, 443 or one from 1024 on");
}

/* Checks scheme, name and port; addresses are checked when they are resolved. */
static bool check_url(transfer *t, const char *url)
{
    CURLU *parts = curl_url();
    char *scheme = NULL, *user = NULL, *password = NULL, *port = NULL;
    bool ok = false;

    if (!parts || curl_url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
        refuse(t, "is or leads to no URL of a kind that is known here", "name one that begins with https://");
    else if (strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0)
        refuse(t, "does not lead to http or https", "name one that begins with https://");
    else if (curl_url_get(parts, CURLUPART_USER, &user, 0) == CURLUE_OK ||
             curl_url_get(parts, CURLUPART_PASSWORD, &password, 0) == CURLUE_OK)
        refuse(t, "has a user or password in it", "leave it out");
    else
        ok = !t->rules->allowed || check_port(t, port);
    curl_free(scheme);
    curl_free(user);
    curl_free(password);
    curl_free(port);
    curl_url_cleanup(parts);
    return ok;
}

static bool set_options(transfer *t, const char *url, long ms, struct curl_slist *headers)
{
    CURL *c = t->curl;
    unsigned failed = 0;

    curl_easy_reset(c);
    failed |= curl_easy_setopt(c, CURLOPT_URL, url);
    failed |= curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    failed |= curl_easy_setopt(c, CURLOPT_PROXY, ""); /* no proxy, whatever the environment says */
    failed |= curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    failed |= curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    failed |= curl_easy_setopt(c, CURLOPT_USERAGENT, "motet/" MT_VERSION);
    failed |= curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L); /* on_socket is not called for a reused connection */
    failed |= curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
    failed |= curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    failed |= curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
    failed |= curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    failed |= curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    failed |= curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    failed |= curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
    failed |= curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    failed |= curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L); /* signals would hit other threads */
    failed |= curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ms);
    failed |= curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->bytes->limit);
    return failed == 0;
}

static bool explain(transfer *t, CURLcode code)
{
    char why[200];

    if (is_cancelled(t))
        return refuse(t, "was not fetched", "its request was cancelled");
    if (t->refused)
        return false;
    if (code == CURLE_FILESIZE_EXCEEDED)
        return too_large(t);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return refuse(t, "takes too long", "name a faster server, or send the bytes as a data URL");
    snprintf(why, sizeof(why), "could not be fetched (%s)", curl_easy_strerror(code));
    return refuse(t, why, "check it, or send the bytes as a data URL");
}

/* One request. Where the answer is a redirect, *next is its target, valid until the handle is used again; else NULL. */
static bool ask(transfer *t, const char *url, long ms, const char **next)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: image/*,video/*");
    CURLcode code = CURLE_OUT_OF_MEMORY;

    *next = NULL;
    if (headers && set_options(t, url, ms, headers))
        code = curl_easy_perform(t->curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        return explain(t, code);
    if (!mt_transfer_is_redirect(mt_transfer_status(t->curl)))
        return t->wanted || (check_head(t) && refuse(t, "is empty", "name a file that is not"));
    curl_easy_getinfo(t->curl, CURLINFO_REDIRECT_URL, next);
    return *next || refuse(t, "is moved, but does not say where to", "check it");
}

/* Follows redirects until a body has come. */
static bool follow(transfer *t, char *url)
{
    uint64_t end = mt_clock_ns() + (uint64_t)t->rules->ms * 1000000;

    for (int hops = 0; hops <= MT_LIMIT_MEDIA_REDIRECTS; hops++) {
        int64_t left = ((int64_t)(end - mt_clock_ns()) + 999999) / 1000000;
        const char *next;

        if (left <= 0)
            return explain(t, CURLE_OPERATION_TIMEDOUT);
        if (!check_url(t, url) || !ask(t, url, (long)left, &next))
            return false;
        if (!next)
            return true;
        if (strlen(next) > MT_LIMIT_MEDIA_URL)
            return refuse(t, "leads to a URL that is too long", "name a shorter one");
        memcpy(url, next, strlen(next) + 1);
    }
    return refuse(t, "is moved too often", "name where it leads to");
}

bool mt_fetch(mt_buf *bytes, const char *url, const mt_fetch_rules *rules, mt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    transfer t = {.rules = rules, .bytes = bytes, .url = url, .err = err};
    char at[MT_LIMIT_MEDIA_URL + 1];
    bool ok;

    pthread_once(&once, setup_curl);
    if (strlen(url) > MT_LIMIT_MEDIA_URL)
        return refuse(&t, "is too long", "name a shorter URL, or send the bytes as a data URL");
    memcpy(at, url, strlen(url) + 1);
    t.curl = curl_easy_init();
    ok = t.curl ? follow(&t, at) : refuse(&t, "could not be fetched (no memory)", "try again later");
    curl_easy_cleanup(t.curl);
    return ok;
}
