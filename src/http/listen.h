/* Sockets that listen. */
#ifndef MT_HTTP_LISTEN_H
#define MT_HTTP_LISTEN_H

#include <stddef.h>

#include "base/error.h"

typedef struct mt_http_sockets {
    int fds[MT_LIMIT_HTTP_SOCKETS];
    size_t count;
    int port;        /* the one that was taken; 0 for a unix socket */
    char *unix_path; /* removed by mt_http_sockets_close; NULL: none */
} mt_http_sockets;

/* host: a name (all of its addresses), an address, or "unix:PATH". port 0: any. */
bool mt_http_sockets_open(mt_http_sockets *sockets, const char *host, int port, mt_error *err) MT_NODISCARD;

/* Closes those whose fds entry is not -1 (who takes one sets it so), removes a unix socket's file. */
void mt_http_sockets_close(mt_http_sockets *sockets);

#endif
