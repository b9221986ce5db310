/* A store on this machine for fuzzers of what one answers: it says what it is told to and hangs up. */
#ifndef MT_FUZZ_STORE_H
#define MT_FUZZ_STORE_H

#include <assert.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

static int store_socket = -1;

/* Its port. */
static inline int store_open(void)
{
    static int port;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);

    if (store_socket < 0) {
        store_socket = socket(AF_INET, SOCK_STREAM, 0);
        assert(store_socket >= 0 && bind(store_socket, (struct sockaddr *)&at, sizeof(at)) == 0);
        assert(listen(store_socket, 16) == 0 && getsockname(store_socket, (struct sockaddr *)&at, &size) == 0);
        port = ntohs(at.sin_port);
    }
    return port;
}

/* Answers the next who has come. Give what it returns to store_hang_up. */
static inline int store_say(const void *data, size_t size)
{
    const int peer = accept(store_socket, NULL, NULL);

    assert(peer >= 0 && send(peer, data, size, MSG_NOSIGNAL) == (ssize_t)size);
    shutdown(peer, SHUT_WR);
    return peer;
}

static inline void store_hang_up(int peer)
{
    const struct linger at_once = {.l_onoff = 1}; /* so that no ports wait */

    setsockopt(peer, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(peer);
}

#endif
