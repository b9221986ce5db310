/* A line to a hub: one request after the other, over connections that are kept. One thread uses it. */
#ifndef MT_HUB_LINE_H
#define MT_HUB_LINE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/error.h"
#include "hub/remote.h"

typedef struct mt_line mt_line;

/* Borrows all three until it is closed; name is the model that errors speak of. Once *stop is true, requests end soon,
   as MT_LINE_REFUSED. */
mt_line *mt_line_open(const mt_remote *remote, const mt_hub_name *name, const atomic_bool *stop,
                      mt_error *err) MT_NODISCARD;
void mt_line_close(mt_line *line); /* NULL is fine */

typedef struct mt_line_answer {
    long status;                    /* of the last answer, redirects followed; 0: none came */
    char code[64];                  /* what the hub calls an error; "" */
    char digest[72];                /* of the file, as the hub itself says; "" */
    char commit[MT_LIMIT_HUB_NAME]; /* that the file is of, likewise */
    int64_t size;                   /* of the whole file; -1: not told */
    int64_t from;                   /* where in the file the body begins */
    int64_t wait;                   /* seconds that the hub asks to wait; -1: not told */
} mt_line_answer;

typedef struct mt_line_request {
    const char *url;
    bool head;         /* what the hub says of a file, and not the file: other hosts are not asked */
    uint64_t from, to; /* bytes from and, unless to is 0, up to there; both 0: all */
    /* Takes a part of a body of status 200 or 206; false with a sentence ends the request. */
    bool (*body)(void *arg, const mt_line_answer *answer, const char *data, size_t len, mt_error *err);
    void *arg;
} mt_line_request;

typedef enum mt_line_end {
    MT_LINE_DONE,
    MT_LINE_BROKEN, /* may be tried again: no connection, one that broke off, or a status that says so */
    MT_LINE_REFUSED /* no use in that */
} mt_line_end;

/* *err says what is wrong unless it is done. The token goes to the hub itself and to no other host. */
mt_line_end mt_line_ask(mt_line *line, const mt_line_request *request, mt_line_answer *answer,
                        mt_error *err) MT_NODISCARD;

/* Waits before the next try: as long as the hub asked to, else longer from try to try. False when that were too long,
   or too often (*tries counts, up to most), and *err stays as it is; or after a stop. */
bool mt_line_pause(const mt_line *line, const mt_line_answer *answer, unsigned *tries, unsigned most,
                   mt_error *err) MT_NODISCARD;

/* The whole of a small answer, appended to out, tried again where it breaks off. */
bool mt_line_get(mt_line *line, const mt_line_request *request, mt_buf *out, mt_line_answer *answer,
                 mt_error *err) MT_NODISCARD;

#endif
