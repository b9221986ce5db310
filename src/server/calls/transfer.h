/* A transfer: a request whose body, or whose answer, is a file. It has a thread of its own, since it waits for the
   disk: that takes the body as it comes, or gives the answer as the client reads it. transfer.c has the rules. */
#ifndef MT_SERVER_CALLS_TRANSFER_H
#define MT_SERVER_CALLS_TRANSFER_H

#include "api/dialect.h"
#include "base/buf.h"
#include "base/error.h"
#include "http/http.h"

typedef struct mt_server mt_server;
typedef struct mt_transfer mt_transfer;

/* What is done with it. job: what mt_transfer_start was given. */
typedef struct mt_transfer_kind {
    /* The transfer's thread: all the work. False: *err. It is called once. */
    bool (*run)(mt_transfer *transfer, void *job, mt_error *err);
    /* Io thread, where run has succeeded and has given nothing: answers. False: the client has left. */
    bool (*tell)(mt_server *server, mt_http_handle handle, void *job);
    /* Io thread, before the first bytes that run gives: begins the answer. NULL: it gives none */
    bool (*begin)(mt_server *server, mt_http_handle handle, void *job);
    void (*free)(void *job);
    const char *done;  /* what happens to files, in sentences: "uploaded" */
    const char *field; /* that errors are about, where they do not say; may be NULL */
    size_t most, own;  /* transfers of this kind at a time: of all, and of one client */
} mt_transfer_kind;

/* Io thread: starts a transfer. Of a route with MT_HTTP_STREAMED, the thread gets the body. dialect: of errors; NULL:
   OpenAI's. Owns job in any case. False: *why, and the request is not answered. */
bool mt_transfer_start(mt_server *server, const mt_http_request *request, const mt_transfer_kind *kind, void *job,
                       const mt_dialect *dialect, mt_failure *why) MT_NODISCARD;

/* The transfer's thread: waits for a part of the body, which replaces what is in taken. False: there is no more; then
   mt_transfer_whole tells whether all has come, or *err. */
bool mt_transfer_take(mt_transfer *transfer, mt_buf *taken) MT_NODISCARD;
bool mt_transfer_whole(mt_transfer *transfer, mt_error *err) MT_NODISCARD;

/* The transfer's thread: sends bytes, once those before them are on their way. False: the client has left. */
bool mt_transfer_give(mt_transfer *transfer, const char *data, size_t len) MT_NODISCARD;

/* Io thread: ends all transfers; and waits for their threads, when the event loop has ended. */
void mt_transfer_cancel_all(mt_server *server);
void mt_transfer_stop_all(mt_server *server);

#endif
