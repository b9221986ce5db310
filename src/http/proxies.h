/* Which client a request comes from, for fair shares: the address of its connection, or the one that trusted proxies
   name. A whole IPv6 network of 64 bits counts as one client, since the owner of one of its addresses has all. */
#ifndef MT_HTTP_PROXIES_H
#define MT_HTTP_PROXIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "http/limits.h"

enum { MT_HTTP_CLIENT_SIZE = 64 };

typedef struct mt_http_network {
    uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
    unsigned bits;     /* how many of the bits count */
} mt_http_network;

typedef struct mt_http_proxies {
    mt_http_network at[MT_LIMIT_HTTP_PROXIES];
    size_t count;
    bool unix_socket; /* connections through the unix socket come from a proxy */
} mt_http_proxies;

struct mt_http_header;

/* Adds the networks of a list: "10.0.0.0/8,2001:db8::1,unix". False: *err. */
bool mt_http_proxies_add(mt_http_proxies *proxies, const char *list, mt_error *err) MT_NODISCARD;

/* Writes the client's name: "192.0.2.7", "2001:db8:1:2::/64", "unix". Where the peer is a trusted proxy, it is the last
   address in the header x-forwarded-for, or else forwarded, that is no trusted proxy; addresses before it may be
   forged. Where both headers name different clients, a proxy has passed on one that it does not know, and neither is
   believed. proxies may be NULL. */
void mt_http_client(const mt_http_proxies *proxies, const char *peer, const struct mt_http_header *headers,
                    size_t count, char name[MT_HTTP_CLIENT_SIZE]);

#endif
