/* A line: a connection to a hub for one request after the other, with connections kept open. One thread uses it. */
#ifndef MT_HUB_LINE_H
#define MT_HUB_LINE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/error.h"
#include "hub/limits.h"
#include "hub/remote.h"

typedef struct mt_line mt_line;

/* Borrows all three until it is closed; name: the model that messages mention. Once *stop is true, requests end soon
   with MT_LINE_REFUSED. */
mt_line *mt_line_open(mt_remote *remote, const mt_hub_name *name, const atomic_bool *stop, mt_error *err) MT_NODISCARD;
void mt_line_close(mt_line *line); /* NULL is fine */

typedef struct mt_line_answer {
    long status;                    /* of the last response, redirects followed; 0: none */
    char code[64];                  /* the hub's name of an error; "" */
    char digest[72];                /* of the file, from the hub itself; "" */
    char commit[MT_LIMIT_HUB_NAME]; /* the commit that the file is of, from the hub itself; "" */
    int64_t size;                   /* of the whole file; -1: unknown */
    int64_t from;                   /* offset in the file where the body begins */
    int64_t wait;                   /* seconds that the hub asks to wait; -1: none */
} mt_line_answer;

typedef struct mt_line_request {
    const char *url;
    bool head;         /* only the hub's headers about a file: redirects to other hosts are not followed */
    uint64_t from, to; /* bytes from `from` on and, unless `to` is 0, before `to`; both 0: all */
    /* Called with parts of a body of status 200 or 206; false with a sentence ends the request. */
    bool (*body)(void *arg, const mt_line_answer *answer, const char *data, size_t len, mt_error *err);
    void *arg;
} mt_line_request;

typedef enum mt_line_end {
    MT_LINE_DONE,
    MT_LINE_BROKEN, /* may be tried again: no connection, a broken one, or a status that says so */
    MT_LINE_REFUSED /* trying again is of no use */
} mt_line_end;

/* *err is set unless the result is MT_LINE_DONE. The token is sent to the hub itself and to no other host. */
mt_line_end mt_line_ask(mt_line *line, const mt_line_request *request, mt_line_answer *answer,
                        mt_error *err) MT_NODISCARD;

/* Waits before another try: as long as the hub asked, else longer each time. False where that would be too long or too
   often (*tries counts, up to most), and *err is unchanged; or after a stop. */
bool mt_line_pause(const mt_line *line, const mt_line_answer *answer, unsigned *tries, unsigned most,
                   mt_error *err) MT_NODISCARD;

/* Appends the whole of a small response to out; tries again where the connection breaks. */
bool mt_line_get(mt_line *line, const mt_line_request *request, mt_buf *out, mt_line_answer *answer,
                 mt_error *err) MT_NODISCARD;

#endif
