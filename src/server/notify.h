/* Tells the service manager that started the server how it is doing, as sd_notify(3) of systemd: a datagram with lines
   NAME=value to the socket that the variable NOTIFY_SOCKET names. Without that variable nothing is sent. */
#ifndef MT_SERVER_NOTIFY_H
#define MT_SERVER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/compiler.h"

typedef struct mt_notify {
    int fd; /* -1: nothing is sent */
    struct sockaddr_un address;
    socklen_t len;        /* of address; 0 in a zeroed object: never opened */
    uint64_t watchdog_ns; /* the service manager wants a sign of life this often; 0: it wants none */
} mt_notify;

/* env is called as getenv. Close with mt_notify_close. */
void mt_notify_open(mt_notify *notify, char *(*env)(const char *name));
void mt_notify_close(mt_notify *notify); /* a zeroed one is fine */

/* Sends one message: lines "READY=1\nSTATUS=...". Any thread. */
void mt_notify_send(const mt_notify *notify, const char *fmt, ...) MT_PRINTF(2, 3);

/* Tells how far the loading of a model is; has the signature that mt_progress_watch wants. */
void mt_notify_progress(void *notify, const char *what, unsigned percent);

/* Whether an engine is alive. turn: when its current turn began (mt_engine_turn; 0: it waits for work). A turn that
   takes longer than the watchdog's time is taken for a hang: even a slow machine needs far less for a step. */
bool mt_notify_alive(const mt_notify *notify, uint64_t now, uint64_t turn);

#endif
