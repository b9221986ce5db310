/* See host.h. The syntax is that of RFC 3986, without a comma, by which a proxy joins two headers to one. */
#include "http/host.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
#define OTHERS "!$&'()*+;=%"

enum { MOST_PORT = 65535 };

/* Parses what follows a name or an address: nothing, or ":port", whose number may be missing. */
static bool read_port(mt_http_host *host, const char *text)
{
    if (*text == '\0')
        return true;
    if (*text++ != ':' || text[strspn(text, "0123456789")])
        return false;
    for (; *text; text++) {
        host->port = host->port * 10 + (unsigned)(*text - '0');
        if (host->port > MOST_PORT)
            return false;
    }
    return true;
}

static bool copy_name(mt_http_host *host, const char *text, size_t len)
{
    if (len == 0 || len >= sizeof(host->name))
        return false;
    memcpy(host->name, text, len);
    host->name[len] = '\0';
    return true;
}

/* Parses "[address]" or "[address%zone]"; the zone says which network of the client's machine is meant. */
static bool read_bracketed(mt_http_host *host, const char *text)
{
    const size_t len = strspn(++text, "0123456789abcdefABCDEF:.");
    const size_t zone = text[len] == '%' ? strspn(text + len + 1, LETTERS) : 0;
    const char *end = text + len + (zone ? 1 + zone : 0);
    unsigned char bytes[16];

    host->address = true;
    return *end == ']' && copy_name(host, text, len) && inet_pton(AF_INET6, host->name, bytes) == 1 &&
           read_port(host, end + 1);
}

static bool read_name(mt_http_host *host, const char *text)
{
    const size_t len = strspn(text, LETTERS OTHERS);
    unsigned char bytes[4];

    if (!copy_name(host, text, len))
        return false;
    host->address = inet_pton(AF_INET, host->name, bytes) == 1;
    if (len > 1 && host->name[len - 1] == '.')
        host->name[len - 1] = '\0'; /* a final dot says that the name is complete */
    return read_port(host, text + len);
}

bool mt_http_host_read(mt_http_host *host, const char *text)
{
    *host = (mt_http_host){.port = 0};
    if (*text == '[' ? read_bracketed(host, text) : read_name(host, text))
        return true;
    *host = (mt_http_host){.port = 0};
    return false;
}

bool mt_http_host_equal(const mt_http_host *a, const mt_http_host *b, unsigned usual)
{
    return strcasecmp(a->name, b->name) == 0 && a->address == b->address &&
           (a->port ? a->port : usual) == (b->port ? b->port : usual);
}
