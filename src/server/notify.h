/* Speaks to whoever started the server as a service: what systemd calls sd_notify(3), a datagram of lines NAME=value to
   the socket that NOTIFY_SOCKET names. Without one, nothing is sent. */
#ifndef MT_SERVER_NOTIFY_H
#define MT_SERVER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/compiler.h"

typedef struct mt_notify {
    int fd; /* -1: nobody listens */
    struct sockaddr_un address;
    socklen_t len;
    uint64_t watchdog_ns; /* how often it has to hear that we are alive; 0: it does not ask */
} mt_notify;

/* env looks a variable up as getenv does. Close with mt_notify_close. */
void mt_notify_open(mt_notify *notify, char *(*env)(const char *name));
void mt_notify_close(mt_notify *notify); /* a zeroed one is fine */

/* Sends one message: lines "READY=1\nSTATUS=...". Any thread. */
void mt_notify_send(const mt_notify *notify, const char *fmt, ...) MT_PRINTF(2, 3);

/* What is said while a model is loaded; for mt_progress_watch. */
void mt_notify_progress(void *notify, const char *what, unsigned percent);

/* Whether an engine is alive, whose turn (mt_engine_turn) began then: it waits for something to do, or it has not been
   at one turn for longer than the watchdog waits. A step takes milliseconds, and the longest that a slow machine makes
   of a large prompt's is far from that. */
bool mt_notify_alive(const mt_notify *notify, uint64_t now, uint64_t turn);

#endif
