/* Lines are collected until an empty one and then parsed at once (head.c); bodies are passed on as they come.

   1. Which event comes next, and at which byte it ends, does not depend on how the bytes were cut.
   2. Lines end in CRLF. A single CR or LF, or any control character but a tab, is refused at that byte: so no other
      server on the way can see more or fewer lines than we do, and a client of another protocol gets an error at once.
   3. Memory: text is bounded by limits.head_bytes; the rest is a few numbers. */
#include "http/parser.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "http/limits.h"

void mt_http_parser_init(mt_http_parser *parser, const mt_http_limits *limits)
{
    *parser = (mt_http_parser){.limits = limits, .body_limit = limits->body_bytes};
    mt_buf_init(&parser->text, limits->head_bytes);
}

void mt_http_parser_free(mt_http_parser *parser)
{
    mt_http_head_free(&parser->head);
    mt_buf_free(&parser->text);
}

bool mt_http_parser_idle(const mt_http_parser *parser)
{
    return parser->state == MT_HTTP_IN_HEAD && parser->text.len == 0 && !parser->skipped_line;
}

static mt_http_event bad(mt_http_parser *parser, int status, const char *sentence)
{
    parser->fault = (mt_http_fault){status, sentence};
    parser->state = MT_HTTP_IS_BAD;
    return MT_HTTP_BAD;
}

/* Follows one byte of a line. False: it may not stand there. *ended: it ends the line. */
static bool line_byte(mt_http_parser *parser, unsigned char c, bool *ended)
{
    *ended = parser->after_cr && c == '\n';
    if (parser->after_cr != (c == '\n'))
        return false;
    parser->after_cr = c == '\r';
    if (c == '\r' || c == '\n')
        return true;
    parser->line_len++;
    return c == '\t' || (c >= 0x20 && c != 0x7F);
}

/* Adds bytes to text up to and including an empty line; *whole: that was found. */
static mt_http_event gather(mt_http_parser *parser, const char *data, size_t len, size_t *used, bool *whole)
{
    size_t room = parser->text.limit - parser->text.len, n;
    bool ended = false;

    *whole = false;
    for (n = 0; n < len && !*whole; n++) {
        if (n == room)
            return parser->lines == 0 && parser->state == MT_HTTP_IN_HEAD
                       ? bad(parser, 414, "the request's path is too long")
                       : bad(parser, 431, "the request's headers are too large");
        if (!line_byte(parser, (unsigned char)data[n], &ended))
            return bad(parser, 400, "the request has a control character or a line that does not end in CRLF");
        if (ended) {
            *whole = parser->line_len == 0;
            parser->line_len = 0;
            parser->lines++;
        }
    }
    mt_buf_add(&parser->text, data, n);
    *used += n;
    return MT_HTTP_NEED;
}

/* Moves the collected text out of the parser. */
static mt_buf move_text(mt_http_parser *parser)
{
    const mt_buf text = parser->text;

    mt_buf_init(&parser->text, text.limit);
    parser->lines = 0;
    return text;
}

static mt_http_event read_head(mt_http_parser *parser, const char *data, size_t len, size_t *used)
{
    bool whole;
    const mt_http_event event = gather(parser, data, len, used, &whole);
    mt_buf text;

    if (!whole)
        return event;
    if (parser->text.len == 2) { /* an empty line before the request: old clients send one after a body */
        if (parser->skipped_line)
            return bad(parser, 400, "the request begins with empty lines");
        parser->skipped_line = true;
        parser->lines = 0;
        mt_buf_free(&parser->text);
        return MT_HTTP_NEED;
    }
    text = move_text(parser);
    if (!mt_http_head_parse(&parser->head, text.data, text.len, parser->limits->headers, &parser->fault))
        return bad(parser, parser->fault.status, parser->fault.sentence);
    parser->skipped_line = false;
    parser->chunked = parser->head.chunked;
    parser->left = parser->head.length;
    parser->body_limit = parser->limits->body_bytes;
    parser->body_len = 0;
    parser->digits = parser->extension_len = 0;
    parser->state = MT_HTTP_AT_BODY;
    return MT_HTTP_GOT_HEAD;
}

static mt_http_event begin_body(mt_http_parser *parser)
{
    mt_http_head_free(&parser->head);
    if (!parser->chunked && parser->left > parser->body_limit)
        return bad(parser, 413, "the request's body is too large");
    if (parser->chunked)
        parser->left = 0;
    parser->state = parser->chunked ? MT_HTTP_IN_CHUNK_SIZE : parser->left ? MT_HTTP_IN_BODY : MT_HTTP_AT_END;
    return MT_HTTP_NEED;
}

static mt_http_event read_bytes(mt_http_parser *parser, const char *data, size_t len, size_t *used)
{
    if (len == 0)
        return MT_HTTP_NEED;
    parser->piece = data;
    parser->piece_len = len < parser->left ? len : (size_t)parser->left;
    parser->left -= parser->piece_len;
    *used += parser->piece_len;
    if (parser->left == 0)
        parser->state = parser->chunked ? MT_HTTP_AT_CHUNK_CR : MT_HTTP_AT_END;
    return MT_HTTP_GOT_BODY;
}

static mt_http_event chunk_digit(mt_http_parser *parser, char c)
{
    int digit = mt_hex_digit(c);

    if (digit >= 0) {
        if (++parser->digits > 16)
            return bad(parser, 400, "a chunk's size has too many digits");
        parser->left = parser->left << 4 | (uint64_t)digit;
        return MT_HTTP_NEED;
    }
    if (parser->digits == 0 || (c != ';' && c != '\r'))
        return bad(parser, 400, "a chunk's size is not a hexadecimal number");
    parser->state = c == ';' ? MT_HTTP_IN_CHUNK_EXTENSION : MT_HTTP_AT_CHUNK_SIZE_LF;
    return MT_HTTP_NEED;
}

/* Chunk extensions are ignored; those of a body are bounded together. */
static mt_http_event chunk_extension(mt_http_parser *parser, char c)
{
    if (c == '\r') {
        parser->state = MT_HTTP_AT_CHUNK_SIZE_LF;
        return MT_HTTP_NEED;
    }
    if (c != '\t' && ((unsigned char)c < 0x20 || c == 0x7F))
        return bad(parser, 400, "a chunk's extension has a control character in it");
    if (++parser->extension_len > MT_LIMIT_HTTP_CHUNK_EXTENSIONS)
        return bad(parser, 400, "the chunks' extensions are too long");
    return MT_HTTP_NEED;
}

static mt_http_event begin_chunk(mt_http_parser *parser)
{
    parser->digits = 0;
    if (parser->left > parser->body_limit - parser->body_len)
        return bad(parser, 413, "the request's body is too large");
    parser->body_len += parser->left;
    parser->state = parser->left ? MT_HTTP_IN_CHUNK : MT_HTTP_IN_TRAILERS;
    return MT_HTTP_NEED;
}

static mt_http_event expect(mt_http_parser *parser, char c, char wanted, mt_http_parser_state next)
{
    if (c != wanted)
        return bad(parser, 400, "a chunk does not end in CRLF where its size says");
    parser->state = next;
    return MT_HTTP_NEED;
}

/* A byte of the framing around the data of chunks. */
static mt_http_event chunk_frame(mt_http_parser *parser, char c)
{
    switch (parser->state) {
    case MT_HTTP_IN_CHUNK_SIZE: return chunk_digit(parser, c);
    case MT_HTTP_IN_CHUNK_EXTENSION: return chunk_extension(parser, c);
    case MT_HTTP_AT_CHUNK_CR: return expect(parser, c, '\r', MT_HTTP_AT_CHUNK_LF);
    case MT_HTTP_AT_CHUNK_LF: return expect(parser, c, '\n', MT_HTTP_IN_CHUNK_SIZE);
    default: return c == '\n' ? begin_chunk(parser) : expect(parser, c, '\n', parser->state);
    }
}

static mt_http_event read_trailers(mt_http_parser *parser, const char *data, size_t len, size_t *used)
{
    bool whole;
    mt_http_event event = gather(parser, data, len, used, &whole);

    if (!whole)
        return event;
    mt_buf text = move_text(parser);
    if (mt_http_trailers_check(text.data, text.len, parser->limits->headers, &parser->fault))
        parser->state = MT_HTTP_AT_END;
    else
        event = bad(parser, parser->fault.status, parser->fault.sentence);
    mt_buf_free(&text);
    return event;
}

static mt_http_event step(mt_http_parser *parser, const char *data, size_t len, size_t *used)
{
    switch (parser->state) {
    case MT_HTTP_IN_HEAD: return read_head(parser, data, len, used);
    case MT_HTTP_AT_BODY: return begin_body(parser);
    case MT_HTTP_IN_BODY:
    case MT_HTTP_IN_CHUNK: return read_bytes(parser, data, len, used);
    case MT_HTTP_IN_TRAILERS: return read_trailers(parser, data, len, used);
    case MT_HTTP_AT_END: parser->state = MT_HTTP_IN_HEAD; return MT_HTTP_GOT_END;
    case MT_HTTP_IS_BAD: return MT_HTTP_BAD;
    default:
        if (len == 0)
            return MT_HTTP_NEED;
        ++*used;
        return chunk_frame(parser, *data);
    }
}

/* Whether the state advances without a byte. */
static bool moves_alone(const mt_http_parser *parser)
{
    return parser->state == MT_HTTP_AT_BODY || parser->state == MT_HTTP_AT_END;
}

mt_http_event mt_http_parser_next(mt_http_parser *parser, const char *data, size_t len, size_t *used)
{
    mt_http_event event;

    *used = 0;
    do
        event = step(parser, data + *used, len - *used, used);
    while (event == MT_HTTP_NEED && (*used < len || moves_alone(parser)));
    assert(*used <= len);
    return event;
}
