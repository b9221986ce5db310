/* See proxies.h. */
#include "http/proxies.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/http.h"
#include "http/limits.h"

enum { WHOLE = 128, CLIENT_BITS = 64, MAPPED_BITS = 96 }; /* bits of an address */

static const uint8_t mapped[MAPPED_BITS / 8] = {[10] = 0xff, [11] = 0xff};

/* Parses an address as headers have it: 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], [2001:db8::1]:80. */
static bool read_address(const char *text, size_t len, uint8_t bytes[16])
{
    char copy[INET6_ADDRSTRLEN + 8]; /* with brackets and a port */
    char *begin = copy, *port;

    if (len >= sizeof(copy))
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    port = strchr(copy, ':');
    if (*copy == '[') {
        begin++;
        begin[strcspn(begin, "]")] = '\0';
    } else if (port && !strchr(port + 1, ':')) {
        *port = '\0';
    }
    memcpy(bytes, mapped, sizeof(mapped));
    return inet_pton(AF_INET, begin, bytes + sizeof(mapped)) == 1 || inet_pton(AF_INET6, begin, bytes) == 1;
}

static bool is_v4(const uint8_t bytes[16])
{
    return memcmp(bytes, mapped, sizeof(mapped)) == 0;
}

static bool is_in(const mt_http_network *network, const uint8_t bytes[16])
{
    const unsigned whole = network->bits / 8, rest = network->bits % 8;

    return memcmp(network->bytes, bytes, whole) == 0 &&
           (rest == 0 || (network->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0);
}

static bool is_proxy(const mt_http_proxies *p, const uint8_t bytes[16])
{
    bool found = false;

    for (size_t i = 0; !found && i < p->count; i++)
        found = is_in(&p->at[i], bytes);
    return found;
}

static bool add(mt_http_proxies *p, const char *text, size_t len, mt_error *err)
{
    const char *slash = memchr(text, '/', len);
    const size_t address = slash ? (size_t)(slash - text) : len;
    mt_http_network *network = &p->at[p->count];
    char *end = (char *)text + len;
    unsigned long bits, most;

    if (len == 4 && memcmp(text, "unix", 4) == 0) {
        p->unix_socket = true;
        return true;
    }
    if (p->count == MT_LIMIT_HTTP_PROXIES)
        return mt_fail(err, MT_E_INVALID, "there are more than %d trusted proxies; give a network instead of each",
                       MT_LIMIT_HTTP_PROXIES);
    if (!read_address(text, address, network->bytes))
        return mt_fail(
            err, MT_E_INVALID,
            "\"%.*s\" is not the address of a proxy; give one such as 10.0.0.7, 10.0.0.0/8, fd00::/8 or unix", (int)len,
            text);
    most = is_v4(network->bytes) ? WHOLE - MAPPED_BITS : WHOLE;
    bits = slash && slash[1] >= '0' && slash[1] <= '9' ? strtoul(slash + 1, &end, 10) : slash ? most + 1 : most;
    if (bits > most || end != text + len)
        return mt_fail(err, MT_E_INVALID, "\"%.*s\" is not a network; give at most %lu bits behind the slash", (int)len,
                       text, most);
    network->bits = (unsigned)(bits + (WHOLE - most));
    p->count++;
    return true;
}

bool mt_http_proxies_add(mt_http_proxies *p, const char *list, mt_error *err)
{
    for (;; list++) {
        const size_t len = strcspn(list, ",");

        if (!add(p, list, len, err))
            return false;
        list += len;
        if (*list == '\0')
            return true;
    }
}

/* The hops of a header from left to right: keeps the last that is no proxy. After one that cannot be parsed (such as
   "unknown"), the next proxy counts as the client. */
typedef struct hops {
    const mt_http_proxies *proxies;
    bool seen;  /* the header is there */
    bool known; /* bytes is set */
    uint8_t bytes[16];
} hops;

/* Adds a hop. */
static void add_hop(hops *h, const char *text, size_t len)
{
    uint8_t bytes[16];

    if (!read_address(text, len, bytes)) {
        h->known = false;
    } else if (!h->known || !is_proxy(h->proxies, bytes)) {
        h->known = true;
        memcpy(h->bytes, bytes, sizeof(bytes));
    }
}

/* x-forwarded-for: 192.0.2.1, 198.51.100.2 */
static void add_list(hops *h, const char *value)
{
    h->seen = true;
    while (*value) {
        size_t len;

        value += strspn(value, " \t,");
        len = strcspn(value, " \t,");
        if (len > 0)
            add_hop(h, value, len);
        value += len;
    }
}

/* Copies a value, quoted or not, as far as it fits. Returns where it ends. */
static const char *unquote(const char *at, char *out, size_t size)
{
    const bool quoted = *at == '"';
    size_t len = 0;

    for (at += quoted; *at && (quoted ? *at != '"' : !strchr(" \t,;", *at)); at++) {
        if (quoted && *at == '\\' && at[1])
            at++;
        if (len + 1 < size)
            out[len++] = *at;
    }
    out[len] = '\0';
    return at + (quoted && *at);
}

/* forwarded: for=192.0.2.1;proto=https, For="[2001:db8::1]:80" */
static void add_forwarded(hops *h, const char *value)
{
    h->seen = true;
    while (*value) {
        char node[MT_HTTP_CLIENT_SIZE] = "";

        for (value += strspn(value, " \t,"); *value && *value != ',';) {
            const size_t name = strcspn(value, "=;, \t");
            char other[MT_HTTP_CLIENT_SIZE];
            const bool is_for = name == 3 && strncasecmp(value, "for", 3) == 0;

            value += name;
            if (*value == '=')
                value = unquote(value + 1, is_for ? node : other, sizeof(node));
            value += strspn(value, " \t;");
        }
        add_hop(h, node, strlen(node));
    }
}

static void write_name(const uint8_t bytes[16], char name[MT_HTTP_CLIENT_SIZE])
{
    uint8_t network[16] = {0};
    char text[INET6_ADDRSTRLEN];

    if (is_v4(bytes)) {
        inet_ntop(AF_INET, bytes + sizeof(mapped), name, MT_HTTP_CLIENT_SIZE);
        return;
    }
    memcpy(network, bytes, CLIENT_BITS / 8);
    inet_ntop(AF_INET6, network, text, sizeof(text));
    snprintf(name, MT_HTTP_CLIENT_SIZE, "%s/%d", text, CLIENT_BITS);
}

void mt_http_client(const mt_http_proxies *p, const char *peer, const mt_http_header *headers, size_t count,
                    char name[MT_HTTP_CLIENT_SIZE])
{
    uint8_t bytes[16];
    const bool is_address = read_address(peer, strlen(peer), bytes);
    hops list = {.proxies = p}, forwarded = list;
    const hops *told;

    snprintf(name, MT_HTTP_CLIENT_SIZE, "%s", peer);
    if (is_address)
        write_name(bytes, name);
    if (!p || !(is_address ? is_proxy(p, bytes) : p->unix_socket))
        return;
    for (size_t i = 0; i < count; i++)
        if (strcmp(headers[i].name, "x-forwarded-for") == 0)
            add_list(&list, headers[i].value);
        else if (strcmp(headers[i].name, "forwarded") == 0)
            add_forwarded(&forwarded, headers[i].value);
    told = list.seen ? &list : &forwarded;
    if (list.seen && forwarded.seen &&
        (list.known != forwarded.known || memcmp(list.bytes, forwarded.bytes, sizeof(list.bytes)) != 0))
        return;
    if (told->known)
        write_name(told->bytes, name);
}
