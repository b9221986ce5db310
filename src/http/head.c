/* See head.h. */
#include "http/head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "http/field.h"
#include "http/host.h"

static const char *const method_names[MT_HTTP_METHODS] = {
    [MT_HTTP_GET] = "GET",     [MT_HTTP_HEAD] = "HEAD",     [MT_HTTP_POST] = "POST",       [MT_HTTP_PUT] = "PUT",
    [MT_HTTP_PATCH] = "PATCH", [MT_HTTP_DELETE] = "DELETE", [MT_HTTP_OPTIONS] = "OPTIONS",
};

const char *mt_http_method_name(mt_http_method method)
{
    return method_names[method];
}

static bool refuse(mt_http_fault *fault, int status, const char *sentence)
{
    *fault = (mt_http_fault){status, sentence};
    return false;
}

/* Cuts the first line off *text and returns it; *len: its length without CRLF. */
static char *next_line(char **text, size_t *len)
{
    char *line = *text, *end = strstr(line, "\r\n");

    assert(end);
    *end = '\0';
    *len = (size_t)(end - line);
    *text = end + 2;
    return line;
}

static bool read_method(mt_http_head *head, const char *name, mt_http_fault *fault)
{
    for (int m = 0; m < MT_HTTP_METHODS; m++)
        if (strcmp(name, method_names[m]) == 0) {
            head->method = (mt_http_method)m;
            return true;
        }
    if (!mt_http_is_token(name, strlen(name)))
        return refuse(fault, 400, "the request line has no method: send \"METHOD PATH HTTP/1.1\"");
    return refuse(fault, 501,
                  "the request's method is not supported: use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
}

static bool read_version(mt_http_head *head, const char *version, mt_http_fault *fault)
{
    bool well_formed = strlen(version) == 8 && strncmp(version, "HTTP/", 5) == 0 && version[6] == '.' &&
                       version[5] >= '0' && version[5] <= '9' && version[7] >= '0' && version[7] <= '9';

    if (!well_formed)
        return refuse(fault, 400, "the request line does not end in a version: send \"METHOD PATH HTTP/1.1\"");
    if (version[5] != '1' || version[7] > '1')
        return refuse(fault, 505, "the request's version is not supported: use HTTP/1.1 or HTTP/1.0");
    head->http10 = version[7] == '0';
    return true;
}

/* Clients of proxies send "http://host/path": takes the host out of it and returns the path. */
static char *cut_authority(mt_http_head *head, char *target)
{
    size_t scheme = strncasecmp(target, "http://", 7) == 0 ? 7 : strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
    size_t len = scheme ? strcspn(target + scheme, "/?") : 0;
    char *path = target + scheme + len;

    if (len == 0)
        return target;
    memmove(target, target + scheme, len); /* over the scheme, so that there is room for a NUL and a slash */
    target[len] = '\0';
    head->authority = target;
    head->usual_port = scheme == 8 ? 443 : 80;
    if (*path != '/')
        *--path = '/';
    return path;
}

static bool read_target(mt_http_head *head, char *target, mt_http_fault *fault)
{
    for (const char *c = target; *c; c++)
        if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7F || *c == '#')
            return refuse(fault, 400, "the request's path has bytes that must be percent-encoded");
    target = cut_authority(head, target);
    if (*target != '/' && !(head->method == MT_HTTP_OPTIONS && strcmp(target, "*") == 0))
        return refuse(fault, 400, "the request's path does not start with \"/\"");
    head->target = target;
    return true;
}

static bool read_request_line(mt_http_head *head, char *line, mt_http_fault *fault)
{
    char *target = strchr(line, ' '), *version = target ? strchr(target + 1, ' ') : NULL;

    if (!version || strchr(version + 1, ' '))
        return refuse(fault, 400, "the request line is not three words: send \"METHOD PATH HTTP/1.1\"");
    *target++ = '\0';
    *version++ = '\0';
    return read_method(head, line, fault) && read_version(head, version, fault) && read_target(head, target, fault);
}

/* Splits "Name: value" in place; the name becomes lower case. */
static bool read_field(mt_http_header *field, char *line, size_t len, mt_http_fault *fault)
{
    char *colon = strchr(line, ':'), *value, *end = line + len;

    if (*line == ' ' || *line == '\t')
        return refuse(fault, 400, "a header is continued on the next line, which is obsolete: send it on one");
    if (!colon || !mt_http_is_token(line, (size_t)(colon - line)))
        return refuse(fault, 400, "a header is not \"name: value\"");
    for (char *c = line; c < colon; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c + ('a' - 'A'));
    *colon = '\0';
    value = colon + 1 + strspn(colon + 1, " \t");
    while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    for (const char *c = value; c < end; c++)
        if (!mt_http_is_value_byte((unsigned char)*c))
            return refuse(fault, 400, "a header has a control character in it");
    *field = (mt_http_header){line, value};
    return true;
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; (text = strstr(text, "\r\n")); text += 2)
        lines++;
    return lines;
}

static bool read_fields(mt_http_head *head, char *text, size_t max_headers, mt_http_fault *fault)
{
    size_t lines = count_lines(text), len;

    assert(lines > 0); /* the last line is empty */
    if (lines - 1 > max_headers)
        return refuse(fault, 431, "the request has too many headers");
    head->headers = mt_alloc_array(lines, sizeof(*head->headers));
    for (size_t i = 0; i + 1 < lines; i++) {
        char *line = next_line(&text, &len);

        if (!read_field(&head->headers[i], line, len, fault))
            return false;
        head->header_count++;
    }
    return true;
}

/* Headers that two servers on the way could read in two ways may stand in a request only once. */
static bool check_repeats(const mt_http_head *head, mt_http_fault *fault)
{
    static const char *const single[] = {
        "host",          "content-length", "transfer-encoding", "content-type", "content-encoding",
        "authorization", "x-api-key",      "x-goog-api-key",    "expect",       "origin"};

    for (size_t s = 0; s < MT_COUNT(single); s++) {
        size_t seen = 0;

        for (size_t i = 0; i < head->header_count; i++)
            seen += strcmp(head->headers[i].name, single[s]) == 0;
        if (seen > 1)
            return refuse(fault, 400, "a header that must be single is repeated");
    }
    return true;
}

/* The router decides whether an empty host is allowed. Where the target has a host, another one in the header
   is refused: a server on the way may have looked at either. */
static bool check_host(const mt_http_head *head, mt_http_fault *fault)
{
    const char *text = mt_http_field_get(head->headers, head->header_count, "host");
    mt_http_host host = {0}, target;

    if (!text && !head->http10)
        return refuse(fault, 400, "the request has no host header, which HTTP/1.1 requires");
    if (text && *text && !mt_http_host_read(&host, text))
        return refuse(fault, 400, "the request's host header is not a host: send a name or an address, and a port");
    if (!head->authority)
        return true;
    if (!mt_http_host_read(&target, head->authority))
        return refuse(fault, 400, "the host in the request's target is not a host: send a name or an address");
    if (text && !mt_http_host_equal(&host, &target, head->usual_port))
        return refuse(fault, 400, "the request's target and its host header name different hosts: send one");
    return true;
}

/* Only digits: no sign, no list, no blank inside. */
static bool read_length(mt_http_head *head, const char *value, mt_http_fault *fault)
{
    size_t digits = strspn(value, "0123456789");

    if (digits == 0 || value[digits])
        return refuse(fault, 400, "the request's content-length is not a number");
    for (; *value; value++)
        if (MT_MUL_OVERFLOWS(head->length, (uint64_t)10, &head->length) ||
            MT_ADD_OVERFLOWS(head->length, (uint64_t)(*value - '0'), &head->length))
            return refuse(fault, 413, "the request's content-length is too large");
    return true;
}

/* The length of the body must have only one reading: what is ambiguous is refused, since another server on the way may
   have understood it differently (request smuggling). */
static bool read_framing(mt_http_head *head, mt_http_fault *fault)
{
    const char *length = mt_http_field_get(head->headers, head->header_count, "content-length");
    const char *coding = mt_http_field_get(head->headers, head->header_count, "transfer-encoding");

    if (coding && length)
        return refuse(fault, 400, "the request has both content-length and transfer-encoding: send one");
    if (coding && head->http10)
        return refuse(fault, 400, "the request has a transfer-encoding, which HTTP/1.0 does not know");
    if (coding && strcasecmp(coding, "chunked") != 0)
        return refuse(fault, 501, "the request's transfer-encoding is not supported: use chunked alone");
    head->chunked = coding != NULL;
    return !length || read_length(head, length, fault);
}

static bool read_options(mt_http_head *head, mt_http_fault *fault)
{
    const char *expect = mt_http_field_get(head->headers, head->header_count, "expect");
    bool wants_close = false, wants_open = !head->http10;

    for (size_t i = 0; i < head->header_count; i++)
        if (strcmp(head->headers[i].name, "connection") == 0) {
            wants_close |= mt_http_list_has(head->headers[i].value, "close");
            wants_open |= mt_http_list_has(head->headers[i].value, "keep-alive");
        }
    head->keep_alive = wants_open && !wants_close;
    if (expect && !head->http10) {
        if (strcasecmp(expect, "100-continue") != 0)
            return refuse(fault, 417, "the request's expect header is not supported: use 100-continue");
        head->expect_continue = true;
    }
    return true;
}

bool mt_http_head_parse(mt_http_head *head, char *text, size_t len, size_t max_headers, mt_http_fault *fault)
{
    char *rest = text, *line;
    size_t line_len;

    *head = (mt_http_head){.text = text};
    assert(len >= 4 && strlen(text) == len);
    line = next_line(&rest, &line_len);
    return read_request_line(head, line, fault) && read_fields(head, rest, max_headers, fault) &&
           check_repeats(head, fault) && check_host(head, fault) && read_framing(head, fault) &&
           read_options(head, fault);
}

void mt_http_head_free(mt_http_head *head)
{
    mt_free(head->text);
    mt_free(head->headers);
    *head = (mt_http_head){0};
}

bool mt_http_trailers_check(char *text, size_t len, size_t max_headers, mt_http_fault *fault)
{
    mt_http_head head = {0};
    bool ok;

    assert(strlen(text) == len);
    ok = read_fields(&head, text, max_headers, fault);
    mt_free(head.headers);
    return ok;
}
