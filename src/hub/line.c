/* Requests to a hub through libcurl (line.h), one transfer a redirect, so that each URL is checked before it is
   requested.

   A hub's files are on other hosts: digest, size and commit are taken only from the hub's own response, and no other
   host is sent the token. Proxies are those of the environment, as for every client of the hub.

   A hub on the internet must not lead to services of this machine or of a private network. The address decides, just
   before its socket is made, so that it does not matter how a name is written or what a resolver answers the second
   time: no connection of a pull reaches nearer (media/address.h) than its first one, which is the hub's own. Where that
   one is a proxy's, the hub counts as one on the internet, and connections to the proxy's port may reach as near as the
   proxy is. */
#include "hub/line.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "hub/limits.h"
#include "hub/pull.h"
#include "media/address.h"
#include "media/transfer.h"

#define MS UINT64_C(1000000)
#define LONGEST 30000 /* longest pause in milliseconds that the hub has not asked for */
#define STOPPED "the download was stopped"

const bool mt_pull_present = true;

struct mt_line {
    mt_remote *remote;
    const mt_hub_name *name;
    const atomic_bool *stop;
    CURL *curl;
    mt_address_reach reach; /* of the address of the last connection */
    int port;               /* and its port */
    /* of the present request */
    const mt_line_request *request;
    mt_line_answer *answer;
    mt_error *err;
    bool home;      /* the present response is from the hub itself */
    bool refused;   /* an error was set */
    bool near;      /* the present URL leads nearer than the hub is */
    bool enough;    /* all that was asked for has come */
    uint64_t at;    /* offset in the file of the next byte of the body */
    uint64_t alive; /* mt_clock_ns when something last came */
    curl_off_t came;
    char url[MT_LIMIT_PULL_URL];
};

static void setup_curl(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

mt_line *mt_line_open(mt_remote *remote, const mt_hub_name *name, const atomic_bool *stop, mt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    mt_line *line = mt_alloc(sizeof(*line));

    pthread_once(&once, setup_curl);
    *line = (mt_line){.remote = remote, .name = name, .stop = stop, .curl = curl_easy_init()};
    if (line->curl)
        return line;
    mt_free(line);
    mt_fail(err, MT_E_MEMORY, "no memory for a connection: try again later");
    return NULL;
}

void mt_line_close(mt_line *line)
{
    if (line)
        curl_easy_cleanup(line->curl);
    mt_free(line);
}

static bool is_stopped(const mt_line *line)
{
    /* relaxed: no other data depend on the flag */
    return line->stop && atomic_load_explicit(line->stop, memory_order_relaxed);
}

static bool refuse(mt_line *line)
{
    line->refused = true;
    return false;
}

static int64_t read_number(const char *text)
{
    char *end;
    const long long value = *text >= '0' && *text <= '9' ? strtoll(text, &end, 10) : -1;

    return value;
}

/* Reads a digest from an ETag; other kinds of ETag are ignored. */
static void read_digest(mt_line_answer *a, const char *value, bool linked)
{
    size_t len;

    value += strncmp(value, "W/", 2) == 0 ? 2 : 0;
    value += *value == '"';
    len = strcspn(value, "\"");
    if (len >= sizeof(a->digest) || (a->digest[0] && !linked))
        return;
    for (size_t i = 0; i < len; i++)
        a->digest[i] = value[i] >= 'A' && value[i] <= 'F' ? (char)(value[i] - 'A' + 'a') : value[i];
    a->digest[len] = '\0';
}

/* Reads "bytes 100-199/200". */
static void read_range(mt_line_answer *a, const char *value)
{
    const char *total = strchr(value, '/');

    if (strncasecmp(value, "bytes ", 6) != 0)
        return;
    a->from = read_number(value + 6);
    if (total && a->size < 0)
        a->size = read_number(total + 1);
}

/* Reads "api";r=0;t=55: the limit is used up for 55 seconds. */
static void read_limit(mt_line_answer *a, const char *value)
{
    const char *reset = strstr(value, ";t=");

    if (reset && a->wait < 0)
        a->wait = read_number(reset + 3);
}

static void copy(char *out, size_t size, const char *value)
{
    const size_t len = strlen(value) < size ? strlen(value) : size - 1;

    memcpy(out, value, len);
    out[len] = '\0';
}

static void take_header(mt_line *line, const char *name, const char *value)
{
    mt_line_answer *a = line->answer;

    if (strcasecmp(name, "retry-after") == 0)
        a->wait = read_number(value);
    else if (strcasecmp(name, "ratelimit") == 0)
        read_limit(a, value);
    else if (strcasecmp(name, "content-range") == 0)
        read_range(a, value);
    if (!line->home)
        return;
    if (strcasecmp(name, "x-error-code") == 0)
        copy(a->code, sizeof(a->code), value);
    else if (strcasecmp(name, "x-repo-commit") == 0)
        copy(a->commit, sizeof(a->commit), value);
    else if (strcasecmp(name, "x-linked-size") == 0)
        a->size = read_number(value);
    else if (strcasecmp(name, "x-linked-etag") == 0)
        read_digest(a, value, true);
    else if (strcasecmp(name, "etag") == 0 &&
             !mt_transfer_is_redirect(mt_transfer_status(line->curl))) /* a redirect's ETag would be its own */
        read_digest(a, value, false);
    else if (strcasecmp(name, "content-length") == 0 && a->size < 0 && mt_transfer_status(line->curl) == 200)
        a->size = read_number(value);
}

/* libcurl calls this for each header of a response. */
static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    char name[64], value[512];
    const char *colon;

    size *= count;
    colon = memchr(data, ':', size);
    if (colon && (size_t)(colon - data) < sizeof(name)) {
        const size_t head = (size_t)(colon - data);
        size_t begin = head + 1, end = size;

        while (begin < end && (data[begin] == ' ' || data[begin] == '\t'))
            begin++;
        while (end > begin && strchr(" \t\r\n", data[end - 1]))
            end--;
        snprintf(name, sizeof(name), "%.*s", (int)head, data);
        snprintf(value, sizeof(value), "%.*s", (int)(end - begin < sizeof(value) ? end - begin : sizeof(value) - 1),
                 data + begin);
        take_header(arg, name, value);
    }
    return size;
}

/* Passes on what was asked for of a body: servers without ranges send all. */
static bool hand_over(mt_line *line, const char *data, size_t len)
{
    const mt_line_request *r = line->request;
    const uint64_t from = r->to ? r->from : 0, to = r->to ? r->to : UINT64_MAX;
    const uint64_t begin = line->at, end = line->at + len;

    line->at = end;
    line->enough = end >= to;
    if (end <= from || begin >= to)
        return true;
    const size_t skip = from > begin ? (size_t)(from - begin) : 0;
    const size_t most = (size_t)((end < to ? end : to) - begin) - skip;
    return r->body(r->arg, line->answer, data + skip, most, line->err) || refuse(line);
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    mt_line *line = arg;
    const long status = mt_transfer_status(line->curl);

    size *= count;
    if (status != 200 && status != 206) /* bodies of errors and redirects are not used */
        return size;
    if (!line->answer->status) { /* the first part */
        line->answer->status = status;
        line->answer->from = status == 206 ? line->answer->from : 0;
        line->at = (uint64_t)line->answer->from;
    }
    return hand_over(line, data, size) && !line->enough ? size : 0;
}

static int on_progress(void *arg, curl_off_t total, curl_off_t came, curl_off_t b, curl_off_t c)
{
    mt_line *line = arg;
    const uint64_t now = mt_clock_ns();

    (void)total, (void)b, (void)c;
    if (came != line->came) {
        line->came = came;
        line->alive = now;
    }
    return is_stopped(line) || now - line->alive > (uint64_t)line->remote->patience_ms * MS;
}

static int port_of(const struct sockaddr *address)
{
    struct sockaddr_in v4;

    memcpy(&v4, address, sizeof(v4)); /* IPv6 has its port at the same place */
    return ntohs(v4.sin_port);
}

/* Whether a connection may be made. Where the hub was reached through a proxy, that may have several addresses. */
static bool may_connect(const mt_line *line, const struct sockaddr *address)
{
    const mt_remote *r = line->remote;
    const int reach = (int)mt_address_reach_of(address);
    /* acquire: the proxy is known before this is */
    const int hub = atomic_load_explicit(&r->reach, memory_order_acquire);

    return hub < 0 ? line->home : reach <= hub || (r->proxy_port == port_of(address) && reach <= r->proxy_reach);
}

/* libcurl calls this for each connection, with the address that a name was resolved to. */
static curl_socket_t on_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    mt_line *line = arg;
    int fd;

    (void)purpose;
    line->near = !may_connect(line, &address->addr);
    if (line->near)
        return CURL_SOCKET_BAD;
    line->reach = mt_address_reach_of(&address->addr);
    line->port = port_of(&address->addr);
    fd = socket(address->family, address->socktype, address->protocol);
    if (fd >= 0)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* Whether the last transfer went through a proxy. Versions of libcurl that cannot tell know it of https alone. */
static bool used_proxy(const mt_line *line)
{
    long status = 0;
#if LIBCURL_VERSION_NUM >= 0x080700
    long used = 0;

    if (curl_easy_getinfo(line->curl, CURLINFO_USED_PROXY, &used) == CURLE_OK)
        return used != 0;
#endif
    curl_easy_getinfo(line->curl, CURLINFO_HTTP_CONNECTCODE, &status);
    return status != 0;
}

/* Once the hub itself has answered for the first time, it is known where it is. The list of files is that answer: one
   line alone asks for it, before others are opened. */
static void note_reach(const mt_line *line)
{
    mt_remote *r = line->remote;

    /* relaxed: no other thread has set it yet */
    if (!line->home || atomic_load_explicit(&r->reach, memory_order_relaxed) >= 0)
        return;
    if (used_proxy(line)) {
        r->proxy_port = line->port;
        r->proxy_reach = (int)line->reach;
    }
    /* release: the proxy is known before this is */
    atomic_store_explicit(&r->reach, used_proxy(line) ? (int)MT_ADDRESS_PUBLIC : (int)line->reach,
                          memory_order_release);
}

/* Checks a URL; line->home: scheme, host and port are the hub's. */
static bool look_at_url(mt_line *line, const char *url)
{
    CURLU *ours = curl_url(), *theirs = curl_url();
    const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    bool ok = ours && theirs && curl_url_set(ours, CURLUPART_URL, line->remote->endpoint, 0) == CURLUE_OK &&
              curl_url_set(theirs, CURLUPART_URL, url, 0) == CURLUE_OK;

    line->home = ok;
    for (size_t i = 0; ok && i < MT_COUNT(parts); i++) {
        char *a = NULL, *b = NULL;

        ok = curl_url_get(ours, parts[i], &a, CURLU_DEFAULT_PORT) == CURLUE_OK &&
             curl_url_get(theirs, parts[i], &b, CURLU_DEFAULT_PORT) == CURLUE_OK;
        if (ok && strcasecmp(a, b) != 0)
            line->home = false;
        if (ok && parts[i] == CURLUPART_SCHEME) /* not from https to http, which others could read and change */
            ok = strcasecmp(b, "https") == 0 || (strcasecmp(b, "http") == 0 && strcmp(a, "https") != 0);
        curl_free(a);
        curl_free(b);
    }
    curl_url_cleanup(ours);
    curl_url_cleanup(theirs);
    return ok;
}

static bool add_header(struct curl_slist **headers, const char *text)
{
    struct curl_slist *more = curl_slist_append(*headers, text);

    if (more)
        *headers = more;
    return more != NULL;
}

static bool set_headers(mt_line *line, struct curl_slist **headers)
{
    const mt_line_request *r = line->request;
    char text[MT_LIMIT_HUB_NAME + 32];
    bool ok = true;

    if (line->home && *line->remote->token) {
        snprintf(text, sizeof(text), "Authorization: Bearer %s", line->remote->token);
        ok = add_header(headers, text);
    }
    if (r->from || r->to) {
        if (r->to)
            snprintf(text, sizeof(text), "Range: bytes=%llu-%llu", (unsigned long long)r->from,
                     (unsigned long long)r->to - 1);
        else
            snprintf(text, sizeof(text), "Range: bytes=%llu-", (unsigned long long)r->from);
        ok = ok && add_header(headers, text);
    }
    return ok && add_header(headers, "Accept-Encoding: identity");
}

static bool set_options(mt_line *line, struct curl_slist *headers)
{
    CURL *c = line->curl;
    unsigned failed = 0;

    curl_easy_reset(c);
    failed |= curl_easy_setopt(c, CURLOPT_URL, line->url);
    failed |= curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    failed |= curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    failed |= curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    failed |= curl_easy_setopt(c, CURLOPT_USERAGENT, "motet/" MT_VERSION);
    failed |= curl_easy_setopt(c, CURLOPT_NOBODY, line->request->head ? 1L : 0L);
    failed |= curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    failed |= curl_easy_setopt(c, CURLOPT_HEADERDATA, line);
    failed |= curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    failed |= curl_easy_setopt(c, CURLOPT_WRITEDATA, line);
    failed |= curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_socket);
    failed |= curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, line);
    failed |= curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    failed |= curl_easy_setopt(c, CURLOPT_XFERINFODATA, line);
    failed |= curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    failed |= curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L); /* signals would hit other threads */
    failed |= curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)line->remote->patience_ms);
    /* only a wish: libcurl refuses it for a handle whose last transfer ended before it had a connection */
    (void)curl_easy_setopt(c, CURLOPT_BUFFERSIZE, 256L << 10);
    if (line->remote->authorities)
        failed |= curl_easy_setopt(c, CURLOPT_CAINFO, line->remote->authorities);
    return failed == 0;
}

static CURLcode perform(mt_line *line)
{
    struct curl_slist *headers = NULL;
    CURLcode code = CURLE_OUT_OF_MEMORY;

    line->alive = mt_clock_ns();
    line->came = 0;
    line->near = false;
    line->answer->status = 0;
    if (set_headers(line, &headers) && set_options(line, headers))
        code = curl_easy_perform(line->curl);
    curl_slist_free_all(headers);
    return code;
}

/* Sets the error for a host whose name has no address; what came of it before says nothing of the next try. */
static void fail_name(mt_line *line)
{
    CURLU *url = curl_url();
    char *host = NULL;

    if (url && curl_url_set(url, CURLUPART_URL, line->url, 0) == CURLUE_OK)
        (void)curl_url_get(url, CURLUPART_HOST, &host, 0);
    mt_fail(line->err, MT_E_IO,
            "the name \"%.200s\" has no address (DNS): check the network and HF_ENDPOINT, or try again later",
            host ? host : line->url);
    curl_free(host);
    curl_url_cleanup(url);
}

/* Sets the error for a transfer that failed, and says whether it may be tried again. */
static mt_line_end explain(mt_line *line, CURLcode code)
{
    if (is_stopped(line)) {
        mt_fail(line->err, MT_E_IO, STOPPED);
        return MT_LINE_REFUSED;
    }
    if (line->refused)
        return MT_LINE_REFUSED;
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
        mt_fail(
            line->err, MT_E_IO,
            "the certificate of \"%.200s\" is not trusted: check the clock and the address, or set SSL_CERT_FILE to "
            "the authority's",
            line->url);
        return MT_LINE_REFUSED;
    }
    if (code == CURLE_COULDNT_RESOLVE_HOST)
        fail_name(line);
    else if (code == CURLE_ABORTED_BY_CALLBACK)
        mt_fail(line->err, MT_E_IO, "nothing has come for %lld seconds: check the network, or try again later",
                (long long)line->remote->patience_ms / 1000);
    else
        mt_fail(line->err, MT_E_IO, "the connection failed (%s): check the network and HF_ENDPOINT, or try again later",
                curl_easy_strerror(code));
    return MT_LINE_BROKEN;
}

static mt_line_end judge(mt_line *line)
{
    const mt_line_answer *a = line->answer;
    const long status = a->status;

    if (status == 200 || status == 206)
        return MT_LINE_DONE;
    mt_remote_explain(line->remote, line->name, status, a->code, a->wait, line->err);
    return status == 408 || status == 429 || status >= 500 ? MT_LINE_BROKEN : MT_LINE_REFUSED;
}

static mt_line_end fail_url(mt_line *line, const char *why)
{
    mt_fail(line->err, MT_E_INVALID, "the hub leads to \"%.200s\", %s: check HF_ENDPOINT", line->url, why);
    return MT_LINE_REFUSED;
}

mt_line_end mt_line_ask(mt_line *line, const mt_line_request *request, mt_line_answer *answer, mt_error *err)
{
    line->request = request;
    line->answer = answer;
    line->err = err;
    line->refused = line->enough = false;
    *answer = (mt_line_answer){.size = -1, .wait = -1};
    if (snprintf(line->url, sizeof(line->url), "%s", request->url) >= (int)sizeof(line->url))
        return fail_url(line, "which is too long");
    for (int hops = 0; hops <= MT_LIMIT_PULL_REDIRECTS; hops++) {
        const char *next = NULL;

        if (!look_at_url(line, line->url))
            return fail_url(line, "which is not safe to follow");
        if (request->head && !line->home) /* the hub has said all it knows */
            return MT_LINE_DONE;
        const CURLcode code = perform(line);
        if (code != CURLE_OK && line->near && !line->enough)
            return fail_url(line, "which is on this machine or in a private network");
        if (code != CURLE_OK && !line->enough)
            return explain(line, code);
        note_reach(line);
        answer->status = mt_transfer_status(line->curl);
        if (!mt_transfer_is_redirect(answer->status))
            return judge(line);
        curl_easy_getinfo(line->curl, CURLINFO_REDIRECT_URL, &next);
        if (!next || snprintf(line->url, sizeof(line->url), "%s", next) >= (int)sizeof(line->url))
            return fail_url(line, "and from there nowhere");
    }
    return fail_url(line, "and on and on");
}

static bool sleep_ms(const mt_line *line, int64_t ms)
{
    const struct timespec part = {.tv_nsec = 50 * 1000000};
    const uint64_t end = mt_clock_ns() + (uint64_t)ms * MS;

    while (mt_clock_ns() < end && !is_stopped(line))
        nanosleep(&part, NULL);
    return !is_stopped(line);
}

bool mt_line_pause(const mt_line *line, const mt_line_answer *answer, unsigned *tries, unsigned most, mt_error *err)
{
    int64_t ms = answer->wait >= 0 ? answer->wait * 1000 : INT64_C(250) << 2 * *tries;

    if (++*tries >= most || answer->wait > MT_LIMIT_PULL_WAIT_S)
        return false;
    ms = ms < LONGEST || answer->wait >= 0 ? ms : LONGEST;
    if (answer->wait > 0)
        mt_log_warn("pull.waiting", "%s asks to wait %lld seconds", line->remote->endpoint, (long long)answer->wait);
    return sleep_ms(line, ms) || mt_fail(err, MT_E_IO, STOPPED);
}

static bool collect(void *arg, const mt_line_answer *answer, const char *data, size_t len, mt_error *err)
{
    mt_buf *out = arg;

    (void)answer;
    return mt_buf_add(out, data, len) ||
           mt_fail(err, MT_E_TOO_LARGE,
                   "the hub's answer has more than the %zu bytes allowed for it: check that "
                   "HF_ENDPOINT is a hub's",
                   out->limit);
}

bool mt_line_get(mt_line *line, const mt_line_request *request, mt_buf *out, mt_line_answer *answer, mt_error *err)
{
    mt_line_request own = *request;
    const size_t before = out->len;
    mt_line_end end;
    unsigned tries = 0;

    own.body = collect;
    own.arg = out;
    do {
        out->len = before;
        end = mt_line_ask(line, &own, answer, err);
    } while (end == MT_LINE_BROKEN && mt_line_pause(line, answer, &tries, MT_LIMIT_PULL_TRIES, err));
    return end == MT_LINE_DONE;
}
