/* Parses the head of a request, its request line and headers, once all of its bytes are there. */
#ifndef MT_HTTP_HEAD_H
#define MT_HTTP_HEAD_H

#include <stdint.h>

#include "http/http.h"

/* Why a request is refused: a status, and a sentence that is a constant. */
typedef struct mt_http_fault {
    int status;
    const char *sentence;
} mt_http_fault;

typedef struct mt_http_head {
    char *text;              /* all strings below point into it; mt_free */
    mt_http_header *headers; /* mt_free */
    size_t header_count;
    mt_http_method method;
    const char *target;    /* path and query, beginning with '/'; or "*" */
    const char *authority; /* "host:port" of a target such as "http://host:port/path"; NULL: it has none */
    unsigned usual_port;   /* of that target's scheme */
    bool http10;
    bool keep_alive;      /* the client wants the connection to stay open */
    bool expect_continue; /* the client waits for "100 Continue" before it sends the body */
    bool chunked;         /* else the body has `length` bytes */
    uint64_t length;
} mt_http_head;

/* Owns text: len bytes of lines that end in CRLF, the last one empty, NUL-terminated. False: *fault; *head must be
   freed all the same. */
bool mt_http_head_parse(mt_http_head *head, char *text, size_t len, size_t max_headers, mt_http_fault *fault);
void mt_http_head_free(mt_http_head *head); /* leaves it empty */

/* Checks the lines of a trailer section; text is changed. False: *fault. */
bool mt_http_trailers_check(char *text, size_t len, size_t max_headers, mt_http_fault *fault);

#endif
