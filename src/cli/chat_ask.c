/* Sends HTTP requests to a server with libcurl and reads the answers, see chat.h. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/chat.h"

#define CONNECT_SECONDS 10L

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
    (void)number;
    interrupts = 1;
}

void mt_chat_interruptible(bool on)
{
    struct sigaction action = {.sa_handler = on ? on_interrupt : SIG_DFL};

    interrupts = 0;
    sigaction(SIGINT, &action, NULL);
}

bool mt_chat_interrupted(void)
{
    return interrupts != 0;
}

/* Receives the body of a response: the events of a stream, or any other body. */
typedef struct reader {
    mt_chat_events events; /* events.answer is NULL: the response is no stream, all of it goes to body */
    mt_buf body;
    long status;
    CURL *curl;
} reader;

/* Gets the next bytes from libcurl. Less than size * count ends the transfer. */
static size_t receive(char *data, size_t size, size_t count, void *user)
{
    reader *r = user;
    const size_t len = size * count;

    curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &r->status);
    if (!r->events.answer || r->status != 200)
        return mt_buf_add(&r->body, data, len) ? len : 0;
    return mt_chat_events_feed(&r->events, data, len) ? len : 0;
}

/* Called by libcurl during a transfer. Not 0 ends it. */
static int on_progress(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)user, (void)a, (void)b, (void)c, (void)d;
    return mt_chat_interrupted();
}

/* Whether the URL leads to this machine, so that the proxies of the environment must not be used. */
static bool is_here(const char *url)
{
    const char *host = strstr(url, "://");
    size_t len;

    if (!host)
        return false;
    host += 3;
    len = strcspn(host, *host == '[' ? "/" : ":/");
    return (len == 9 && strncmp(host, "localhost", len) == 0) || strncmp(host, "[::1]", 5) == 0 ||
           (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len);
}

/* A libcurl handle for a request to url/path. */
static CURL *prepare(const mt_chat_server *server, const char *path, reader *r, struct curl_slist **headers)
{
    char url[1024], key[1024];
    CURL *curl = curl_easy_init();

    snprintf(url, sizeof(url), "%s%s", server->url, path);
    *headers = curl_slist_append(NULL, "content-type: application/json");
    *headers = curl_slist_append(*headers, "expect:"); /* no "Expect: 100-continue": send large bodies without a wait */
    if (server->key && snprintf(key, sizeof(key), "authorization: Bearer %s", server->key) < (int)sizeof(key))
        *headers = curl_slist_append(*headers, key);
    r->curl = curl;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, *headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, receive);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, r);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (is_here(server->url))
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (server->socket[0])
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, server->socket);
    return curl;
}

static void reader_free(reader *r, struct curl_slist *headers)
{
    curl_easy_cleanup(r->curl);
    curl_slist_free_all(headers);
    mt_chat_events_free(&r->events);
    mt_buf_free(&r->body);
}

/* seconds: 0: as long as it takes. */
static long exchange(const mt_chat_server *server, const char *path, const char *sent, long seconds, mt_buf *body)
{
    reader r = {0};
    struct curl_slist *headers;
    CURL *curl = prepare(server, path, &r, &headers);

    mt_buf_init(&r.body, body->limit);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, seconds);
    if (sent)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, sent);
    if (curl_easy_perform(curl) != CURLE_OK)
        r.status = 0;
    else
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &r.status);
    if (r.body.len)
        mt_buf_add(body, r.body.data, r.body.len);
    reader_free(&r, headers);
    return r.status;
}

/* Headers of a request that is no JSON. */
static struct curl_slist *bare_headers(const mt_chat_server *server)
{
    struct curl_slist *headers = curl_slist_append(NULL, "expect:");
    char key[1024];

    if (server->key && snprintf(key, sizeof(key), "authorization: Bearer %s", server->key) < (int)sizeof(key))
        headers = curl_slist_append(headers, key);
    return headers;
}

long mt_chat_upload(const mt_chat_server *server, const char *path, const char *purpose, const char *file, mt_buf *body)
{
    reader r = {0};
    struct curl_slist *headers, *own = bare_headers(server);
    CURL *curl = prepare(server, path, &r, &headers);
    curl_mime *form = curl_mime_init(curl);
    curl_mimepart *part = curl_mime_addpart(form);

    mt_buf_init(&r.body, body->limit);
    curl_mime_name(part, "purpose");
    curl_mime_data(part, purpose, CURL_ZERO_TERMINATED);
    part = curl_mime_addpart(form);
    curl_mime_name(part, "file");
    curl_mime_filedata(part, file);
    curl_easy_setopt(curl, CURLOPT_MIMEPOST, form);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, own);
    if (curl_easy_perform(curl) != CURLE_OK)
        r.status = 0;
    if (r.body.len)
        mt_buf_add(body, r.body.data, r.body.len);
    curl_mime_free(form);
    curl_slist_free_all(own);
    reader_free(&r, headers);
    return r.status;
}

long mt_chat_fetch(const mt_chat_server *server, const char *path, FILE *to)
{
    reader r = {0};
    struct curl_slist *headers;
    CURL *curl = prepare(server, path, &r, &headers);

    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, fwrite);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, to);
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &r.status);
    reader_free(&r, headers);
    return r.status;
}

long mt_chat_send(const mt_chat_server *server, const char *path, const char *sent, mt_buf *body)
{
    return exchange(server, path, sent, CONNECT_SECONDS, body);
}

long mt_chat_post(const mt_chat_server *server, const char *path, const char *sent, mt_buf *body)
{
    return exchange(server, path, sent, 0, body);
}

long mt_chat_get(const mt_chat_server *server, const char *path, mt_buf *body)
{
    return mt_chat_send(server, path, NULL, body);
}

/* Sets *err from the body of an error response: its message, or a general sentence where the body has no JSON in
   OpenAI's form. Always false. */
static bool refused(const reader *r, mt_error *err)
{
    const mt_buf *said = r->events.error.len ? &r->events.error : &r->body;
    json_t *body = said->len ? json_loads(said->data, 0, NULL) : NULL;
    const char *sentence = json_string_value(json_object_get(json_object_get(body, "error"), "message"));

    if (sentence)
        mt_fail(err, MT_E_INVALID, "the server says: %s", sentence);
    else
        mt_fail(err, MT_E_INVALID, "the server answers %ld: %.200s", r->status, said->len ? said->data : "");
    json_decref(body);
    return false;
}

static char *request_of(const mt_chat_server *server, const json_t *messages)
{
    json_t *request = json_pack("{s:s, s:O, s:b, s:{s:b}}", "model", server->model, "messages", messages, "stream", 1,
                                "stream_options", "include_usage", 1);
    char *text;

    if (server->settings)
        json_object_update(request, server->settings);
    text = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_decref(request);
    return text;
}

struct mt_chat_call {
    reader r;
    const mt_chat_server *server;
    struct curl_slist *headers;
    char *request, why[CURL_ERROR_SIZE];
};

mt_chat_call *mt_chat_call_new(const mt_chat_server *server, const json_t *messages, mt_chat_answer *answer,
                               mt_error *err)
{
    char *request = request_of(server, messages);
    mt_chat_call *c;

    if (!request) {
        mt_fail(err, MT_E_MEMORY, "the messages are more than memory holds");
        return NULL;
    }
    c = mt_alloc(sizeof(*c));
    mt_chat_events_init(&c->r.events, answer);
    c->server = server;
    c->request = request;
    prepare(server, "/v1/chat/completions", &c->r, &c->headers);
    mt_buf_init(&c->r.body, MT_CHAT_EVENT_BYTES);
    curl_easy_setopt(c->r.curl, CURLOPT_ERRORBUFFER, c->why);
    curl_easy_setopt(c->r.curl, CURLOPT_POSTFIELDS, c->request);
    return c;
}

CURL *mt_chat_call_handle(mt_chat_call *call)
{
    return call->r.curl;
}

bool mt_chat_call_end(mt_chat_call *c, CURLcode code, mt_error *err)
{
    mt_chat_answer *answer = c->r.events.answer;
    bool ok;

    answer->interrupted = code == CURLE_ABORTED_BY_CALLBACK;
    ok = answer->interrupted || code == CURLE_OK ||
         mt_fail(err, MT_E_IO, "the server at %s broke off: %s", c->server->url,
                 c->r.events.too_much ? "it says more than an answer may have"
                 : c->why[0]          ? c->why
                                      : curl_easy_strerror(code));
    if (ok && !answer->interrupted && (c->r.status != 200 || c->r.events.error.len))
        ok = refused(&c->r, err);
    reader_free(&c->r, c->headers);
    mt_free(c->request);
    mt_free(c);
    return ok;
}

bool mt_chat_ask(const mt_chat_server *server, const json_t *messages, mt_chat_answer *answer, mt_error *err)
{
    mt_chat_call *call = mt_chat_call_new(server, messages, answer, err);

    return call && mt_chat_call_end(call, curl_easy_perform(call->r.curl), err);
}
