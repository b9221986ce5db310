/* Opens listening sockets. */
#ifndef MT_HTTP_LISTEN_H
#define MT_HTTP_LISTEN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "http/limits.h"

typedef struct mt_http_sockets {
    int fds[MT_LIMIT_HTTP_SOCKETS];
    size_t count;
    int port;        /* the port in use; 0 for a unix socket */
    char *unix_path; /* removed by mt_http_sockets_close, unless another file has its place by then; NULL: none */
    uint64_t unix_device, unix_inode; /* of the file that was made there */
} mt_http_sockets;

/* host: a name (all of its addresses), an address, or "unix:PATH". port 0: any free one. False: *err. */
bool mt_http_sockets_open(mt_http_sockets *sockets, const char *host, int port, mt_error *err) MT_NODISCARD;

/* Closes the sockets whose entry is not -1 (set it so to keep one), and removes a unix socket's file. */
void mt_http_sockets_close(mt_http_sockets *sockets);

#endif
