/* A letter is one block of memory: the struct, the headers' table, and the strings and bytes behind it. The sender
   makes it, the queue hands it over, the loop opens and frees it. The loop opens a bounded number at a time, so that
   clients are served while threads post without end. */
#include "http/mailbox.h"

#include <stdatomic.h>
#include <string.h>

#include <event2/event.h>

#include "base/alloc.h"
#include "base/queue.h"
#include "http/server.h"

typedef enum letter_kind { LETTER_ANSWER, LETTER_BEGIN, LETTER_WRITE, LETTER_CALL } letter_kind;

typedef struct letter {
    letter_kind kind;
    bool last;
    mt_http_handle handle;
    mt_http_response response;
    void (*call)(void *user);
    void *user;
    const char *data;
    size_t len;
    size_t size; /* of the block */
} letter;

struct mt_http_mailbox {
    mt_http_server *server;
    mt_queue *queue;
    struct event *event;
    atomic_size_t bytes; /* relaxed: it bounds memory, the queue's lock publishes the letters */
    atomic_bool closed;  /* relaxed: who posts at the moment of closing may hear either */
};

static void open_letter(mt_http_server *server, const letter *l)
{
    switch (l->kind) {
    case LETTER_ANSWER: mt_http_answer(server, l->handle, &l->response, l->data, l->len); break;
    case LETTER_BEGIN: mt_http_begin(server, l->handle, &l->response); break;
    case LETTER_WRITE:
        if (mt_http_write(server, l->handle, l->data, l->len) && l->last)
            mt_http_end(server, l->handle);
        break;
    case LETTER_CALL: l->call(l->user); break;
    }
}

static void on_letters(evutil_socket_t fd, short what, void *arg)
{
    mt_http_mailbox *mailbox = arg;
    letter *l;

    (void)fd, (void)what;
    for (int i = 0; i < MT_LIMIT_HTTP_LETTERS_TURN && (l = mt_queue_pop(mailbox->queue)); i++) {
        atomic_fetch_sub_explicit(&mailbox->bytes, l->size, memory_order_relaxed);
        open_letter(mailbox->server, l);
        mt_free(l);
    }
}

mt_http_mailbox *mt_http_mailbox_new(mt_http_server *server)
{
    mt_http_mailbox *mailbox = mt_alloc(sizeof(*mailbox));

    mailbox->server = server;
    mailbox->queue = mt_queue_new(server->limits.mailbox);
    if (!mailbox->queue) {
        mt_free(mailbox);
        return NULL;
    }
    mailbox->event = event_new(server->loop, mt_queue_fd(mailbox->queue), EV_READ | EV_PERSIST, on_letters, mailbox);
    event_add(mailbox->event, NULL);
    return mailbox;
}

void mt_http_mailbox_close(mt_http_mailbox *mailbox)
{
    atomic_store_explicit(&mailbox->closed, true, memory_order_relaxed);
    event_del(mailbox->event); /* a closed queue stays readable */
    mt_queue_close(mailbox->queue);
}

void mt_http_mailbox_free(mt_http_mailbox *mailbox)
{
    letter *l;

    if (!mailbox)
        return;
    while ((l = mt_queue_pop(mailbox->queue)))
        mt_free(l);
    event_free(mailbox->event);
    mt_queue_free(mailbox->queue);
    mt_free(mailbox);
}

static size_t response_size(const mt_http_response *response)
{
    size_t size =
        response->header_count * sizeof(*response->headers) + (response->type ? strlen(response->type) + 1 : 0);

    for (size_t i = 0; i < response->header_count; i++)
        size += strlen(response->headers[i].name) + 1 + strlen(response->headers[i].value) + 1;
    return size;
}

static const char *put(char **at, const char *s)
{
    char *copy = *at;
    size_t size = strlen(s) + 1;

    memcpy(copy, s, size);
    *at += size;
    return copy;
}

/* Copies response into the memory behind the letter. */
static char *put_response(letter *l, const mt_http_response *response)
{
    mt_http_header *headers = (mt_http_header *)(l + 1);
    char *at = (char *)(headers + response->header_count);

    l->response = *response;
    l->response.headers = headers;
    if (response->type)
        l->response.type = put(&at, response->type);
    for (size_t i = 0; i < response->header_count; i++) {
        headers[i].name = put(&at, response->headers[i].name);
        headers[i].value = put(&at, response->headers[i].value);
    }
    return at;
}

/* response may be NULL. */
static letter *letter_new(letter_kind kind, mt_http_handle handle, const mt_http_response *response, const void *data,
                          size_t len)
{
    size_t size = sizeof(letter) + (response ? response_size(response) : 0) + len;
    letter *l = mt_alloc(size);
    char *at = (char *)(l + 1);

    l->kind = kind;
    l->handle = handle;
    l->size = size;
    if (response)
        at = put_response(l, response);
    if (len > 0)
        memcpy(at, data, len);
    l->data = at;
    l->len = len;
    return l;
}

/* Takes l. */
static mt_http_posted post(mt_http_mailbox *mailbox, letter *l)
{
    size_t size = l->size, before = atomic_fetch_add_explicit(&mailbox->bytes, size, memory_order_relaxed);

    /* A letter larger than the limit fits an empty mailbox, or it would never go. */
    if ((before == 0 || before + size <= mailbox->server->limits.mailbox_bytes) && mt_queue_push(mailbox->queue, l))
        return MT_HTTP_POSTED;
    atomic_fetch_sub_explicit(&mailbox->bytes, size, memory_order_relaxed);
    mt_free(l);
    return atomic_load_explicit(&mailbox->closed, memory_order_relaxed) ? MT_HTTP_CLOSED : MT_HTTP_FULL;
}

mt_http_posted mt_http_post_answer(mt_http_server *server, mt_http_handle handle, const mt_http_response *response,
                                   const void *body, size_t len)
{
    return post(server->mailbox, letter_new(LETTER_ANSWER, handle, response, body, len));
}

mt_http_posted mt_http_post_begin(mt_http_server *server, mt_http_handle handle, const mt_http_response *response)
{
    return post(server->mailbox, letter_new(LETTER_BEGIN, handle, response, NULL, 0));
}

mt_http_posted mt_http_post_write(mt_http_server *server, mt_http_handle handle, const void *data, size_t len,
                                  bool last)
{
    letter *l = letter_new(LETTER_WRITE, handle, NULL, data, len);

    l->last = last;
    return post(server->mailbox, l);
}

mt_http_posted mt_http_post_call(mt_http_server *server, void (*call)(void *user), void *user)
{
    letter *l = letter_new(LETTER_CALL, (mt_http_handle){0}, NULL, NULL, 0);

    l->call = call;
    l->user = user;
    return post(server->mailbox, l);
}
