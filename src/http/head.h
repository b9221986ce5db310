/* The head of a request: its line and its headers, once all of its bytes are there. */
#ifndef MT_HTTP_HEAD_H
#define MT_HTTP_HEAD_H

#include <stdint.h>

#include "http/http.h"

/* Why a request is not served: a status and a sentence that lives as long as the program. */
typedef struct mt_http_fault {
    int status;
    const char *sentence;
} mt_http_fault;

typedef struct mt_http_head {
    char *text;              /* what everything below points into; mt_free */
    mt_http_header *headers; /* mt_free */
    size_t header_count;
    mt_http_method method;
    const char *target; /* path and query, starting with '/'; or "*" */
    bool http10;
    bool keep_alive;      /* what the client wants */
    bool expect_continue; /* it waits for a word before it sends the body */
    bool chunked;         /* else the body has length bytes */
    uint64_t length;
} mt_http_head;

/* Takes text: len bytes of lines that end in CRLF, an empty one last, NUL-terminated. False with *fault; *head is then
   to be freed as well. */
bool mt_http_head_parse(mt_http_head *head, char *text, size_t len, size_t max_headers, mt_http_fault *fault);
void mt_http_head_free(mt_http_head *head); /* leaves it empty */

/* Checks the lines of a trailer section; text is written into. */
bool mt_http_trailers_check(char *text, size_t len, size_t max_headers, mt_http_fault *fault);

#endif
