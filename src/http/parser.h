/* Parses the bytes of a connection into requests, in whatever pieces they come. Knows nothing of sockets. */
#ifndef MT_HTTP_PARSER_H
#define MT_HTTP_PARSER_H

#include "base/buf.h"
#include "http/head.h"
#include "http/http.h"

typedef enum mt_http_event {
    MT_HTTP_NEED,     /* all bytes are used, and more are needed */
    MT_HTTP_GOT_HEAD, /* parser.head is filled and may be moved away; body_limit may be changed now */
    MT_HTTP_GOT_BODY, /* piece and piece_len are the next bytes of the body, within the given data */
    MT_HTTP_GOT_END,  /* the request is complete; the next call begins the next one */
    MT_HTTP_BAD       /* fault says why; nothing can be read any more */
} mt_http_event;

typedef enum mt_http_parser_state {
    MT_HTTP_IN_HEAD,
    MT_HTTP_AT_BODY, /* the head was reported; no byte of the body is read */
    MT_HTTP_IN_BODY,
    MT_HTTP_IN_CHUNK_SIZE,
    MT_HTTP_IN_CHUNK_EXTENSION,
    MT_HTTP_AT_CHUNK_SIZE_LF,
    MT_HTTP_IN_CHUNK,
    MT_HTTP_AT_CHUNK_CR,
    MT_HTTP_AT_CHUNK_LF,
    MT_HTTP_IN_TRAILERS,
    MT_HTTP_AT_END,
    MT_HTTP_IS_BAD
} mt_http_parser_state;

typedef struct mt_http_parser {
    mt_http_head head;   /* its taker leaves it zeroed */
    uint64_t body_limit; /* bytes of this request's body; set anew with each head, from limits.body_bytes */
    const char *piece;
    size_t piece_len;
    mt_http_fault fault;

    /* Private. */
    const mt_http_limits *limits;
    mt_http_parser_state state;
    mt_buf text;          /* lines of the head or the trailers so far */
    size_t lines;         /* in it */
    size_t line_len;      /* bytes of the line being read, without CR */
    bool after_cr;        /* the last byte of the line was CR */
    bool skipped_line;    /* an empty line stood before the head; a second one is refused */
    bool chunked;         /* the body comes in chunks */
    uint64_t left;        /* bytes of the body, or of its chunk, to come */
    uint64_t body_len;    /* bytes of all chunks so far, the one that is being read included */
    size_t digits;        /* of the chunk size that is being read */
    size_t extension_len; /* bytes of all chunk extensions of the request */
} mt_http_parser;

/* Borrows limits until mt_http_parser_free. */
void mt_http_parser_init(mt_http_parser *parser, const mt_http_limits *limits);
void mt_http_parser_free(mt_http_parser *parser);

/* Reads up to the next event; *used: how many bytes that took. len may be 0. */
mt_http_event mt_http_parser_next(mt_http_parser *parser, const char *data, size_t len, size_t *used);

bool mt_http_parser_idle(const mt_http_parser *parser); /* no byte of a request was read */

#endif
