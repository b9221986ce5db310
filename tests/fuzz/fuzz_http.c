/* A connection's bytes to requests. The same bytes in other pieces must give the same requests and the same fault; what
   is accepted must be routable or refused, never more than the limits allow. The first byte chooses the pieces. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "http/parser.h"
#include "http/request.h"
#include "server/calls/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 512, BODY_BYTES = 200, HEADERS = 8 };

static void route(mt_http_parser *parser)
{
    static const mt_http_route routes[] = {{.method = MT_HTTP_GET, .pattern = "/a/{x}/{y*}"},
                                           {.method = MT_HTTP_POST, .pattern = "/{x}"}};
    static const mt_http_proxies proxies = {.unix_socket = true};
    mt_http_request *request = mt_http_request_new(&parser->head, "unix", &proxies);
    static const mt_options opt = {.allowed_hosts = {.at = {"a,*.b"}, .count = 1}};
    const mt_guard guard = {.hosts = true, .pages = true, .opt = &opt};
    mt_http_refusal refusal;
    mt_http_match match;
    size_t len;
    const char *path;

    if (!request)
        return;
    assert(mt_guard_admit(&guard, request, &refusal) || strlen(refusal.text) < sizeof(refusal.text));
    path = mt_http_request_raw_path(request, &len);
    if (*path == '/') {
        mt_http_router_match(routes, MT_COUNT(routes), request->method, path, len, &match);
        mt_http_request_set_match(request, &match);
    }
    mt_http_request_free(request);
}

static void note_head(mt_buf *notes, mt_http_parser *parser)
{
    const mt_http_head *head = &parser->head;

    assert(head->header_count <= HEADERS);
    mt_buf_printf(notes, "[%d %s %d%d%d", (int)head->method, head->target, head->http10, head->keep_alive,
                  head->chunked);
    for (size_t i = 0; i < head->header_count; i++)
        mt_buf_printf(notes, "|%s=%s", head->headers[i].name, head->headers[i].value);
    mt_buf_puts(notes, "]");
    route(parser);
}

/* False when the parser can go no further. */
static bool feed(mt_http_parser *parser, const char *data, size_t len, mt_buf *notes)
{
    size_t used;

    for (;; data += used, len -= used)
        switch (mt_http_parser_next(parser, data, len, &used)) {
        case MT_HTTP_NEED: assert(used == len); return true;
        case MT_HTTP_GOT_HEAD: note_head(notes, parser); break;
        case MT_HTTP_GOT_BODY:
            assert(parser->piece_len > 0 && parser->piece_len <= len);
            mt_buf_add(notes, parser->piece, parser->piece_len);
            break;
        case MT_HTTP_GOT_END: mt_buf_puts(notes, ";"); break;
        case MT_HTTP_BAD:
            assert(strlen(parser->fault.sentence) > 0);
            mt_buf_printf(notes, "!%d", parser->fault.status);
            return false;
        }
}

static void run(const char *data, size_t size, size_t piece, mt_buf *notes)
{
    mt_http_limits limits = mt_http_limits_default();
    mt_http_parser parser;

    limits.head_bytes = HEAD_BYTES;
    limits.body_bytes = BODY_BYTES;
    limits.headers = HEADERS;
    mt_http_parser_init(&parser, &limits);
    for (size_t at = 0; at < size; at += piece)
        if (!feed(&parser, data + at, size - at < piece ? size - at : piece, notes))
            break;
    mt_http_parser_free(&parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mt_buf whole, cut;

    if (size < 2)
        return 0;
    mt_buf_init(&whole, SIZE_MAX / 4);
    mt_buf_init(&cut, SIZE_MAX / 4);
    run((const char *)data + 1, size - 1, size, &whole);
    run((const char *)data + 1, size - 1, (size_t)data[0] % 64 + 1, &cut);
    assert(whole.len == cut.len && (whole.len == 0 || memcmp(whole.data, cut.data, whole.len) == 0));
    mt_buf_free(&whole);
    mt_buf_free(&cut);
    return 0;
}
