/* See notify.h. */
#include "server/notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"

#define PATIENCE_S 60 /* seconds that the service manager shall wait for the next sign of progress */

/* The address is a path, or "@NAME" for a socket that is no file. */
static bool set_address(mt_notify *n, const char *name)
{
    const size_t len = strlen(name);

    if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof(n->address.sun_path))
        return false;
    n->address.sun_family = AF_UNIX;
    memcpy(n->address.sun_path, name, len + 1);
    n->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    if (name[0] == '@') {
        n->address.sun_path[0] = '\0';
        n->len--; /* such a name is not ended by a NUL */
    }
    return true;
}

/* Nanoseconds; 0 where the variable is not set or meant for another process. */
static uint64_t watchdog(char *(*env)(const char *name))
{
    const char *time = env("WATCHDOG_USEC"), *pid = env("WATCHDOG_PID");
    char *end;
    long long us;

    if (!time || (pid && strtoll(pid, NULL, 10) != getpid()))
        return 0;
    us = strtoll(time, &end, 10);
    return *end || us <= 0 || us > INT64_MAX / 1000 ? 0 : (uint64_t)us * 1000;
}

void mt_notify_open(mt_notify *n, char *(*env)(const char *name))
{
    const struct timeval soon = {.tv_sec = 1}; /* how long a full socket can hold up a thread */
    const char *name = env("NOTIFY_SOCKET");

    *n = (mt_notify){.fd = -1};
    if (!name || !*name)
        return;
    if (!set_address(n, name)) {
        mt_log_warn("server.notify", "NOTIFY_SOCKET \"%s\" is neither a path nor @NAME: nobody is told", name);
        return;
    }
    n->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (n->fd < 0)
        return;
    setsockopt(n->fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof(soon));
    n->watchdog_ns = watchdog(env);
}

void mt_notify_close(mt_notify *n)
{
    if (n->len && n->fd >= 0)
        close(n->fd);
    *n = (mt_notify){.fd = -1};
}

void mt_notify_send(const mt_notify *n, const char *fmt, ...)
{
    char text[MT_LIMIT_ERROR_TEXT];
    va_list args;
    int len;

    if (!n->len || n->fd < 0)
        return;
    va_start(args, fmt);
    len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len < 0)
        return;
    if ((size_t)len >= sizeof(text))
        len = (int)sizeof(text) - 1;
    if (sendto(n->fd, text, (size_t)len, 0, (const struct sockaddr *)&n->address, n->len) < 0)
        mt_log_debug("server.notify", "the service manager does not listen");
}

void mt_notify_progress(void *notify, const char *what, unsigned percent)
{
    mt_notify_send(notify, "STATUS=%s: %u %%\nEXTEND_TIMEOUT_USEC=%d000000", what, percent, PATIENCE_S);
}

bool mt_notify_alive(const mt_notify *n, uint64_t now, uint64_t turn)
{
    return turn == 0 || now < turn || now - turn <= n->watchdog_ns;
}
