/* See listen.h. */
#include "http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "http/limits.h"

enum { BACKLOG = 1024 }; /* connections that the system queues */

static bool fail_to_listen(mt_error *err, const char *host, int port)
{
    switch (errno) {
    case EADDRINUSE:
        return mt_fail(err, MT_E_IO, "port %d of \"%s\" is in use by another program: stop it or choose another port",
                       port, host);
    case EACCES:
    case EPERM:
        return mt_fail(err, MT_E_IO, "port %d of \"%s\" needs a permission we do not have: choose one above 1023", port,
                       host);
    case EADDRNOTAVAIL:
        return mt_fail(err, MT_E_IO, "\"%s\" is not an address of this machine: choose one that is, or 0.0.0.0 for all",
                       host);
    default: return mt_fail(err, MT_E_IO, "cannot listen at \"%s\" port %d: %s", host, port, strerror(errno));
    }
}

static int open_socket(int family)
{
    int fd = socket(family, SOCK_STREAM, 0), one = 1;

    if (fd < 0)
        return -1;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (family != AF_UNIX) /* so that a server can start while old connections still close */
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    return fd;
}

static int close_keeping_errno(int fd)
{
    int saved = errno;

    close(fd);
    errno = saved;
    return -1;
}

static int bound_socket(const struct sockaddr *address, socklen_t len)
{
    int fd = open_socket(address->sa_family);

    if (fd < 0)
        return -1;
    if (bind(fd, address, len) || listen(fd, BACKLOG))
        return close_keeping_errno(fd);
    return fd;
}

static int port_of(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &len))
        return 0;
    if (address.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

/* A name may have addresses of a family that this machine lacks; one that works suffices. */
static bool is_missing_family(int error)
{
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
}

static bool open_all(mt_http_sockets *sockets, const struct addrinfo *found, const char *host, int port, mt_error *err)
{
    for (; found && sockets->count < MT_LIMIT_HTTP_SOCKETS; found = found->ai_next) {
        int fd = bound_socket(found->ai_addr, found->ai_addrlen);

        if (fd >= 0)
            sockets->fds[sockets->count++] = fd;
        else if (!is_missing_family(errno) || (!found->ai_next && sockets->count == 0))
            return fail_to_listen(err, host, port);
        if (fd >= 0 && port == 0) /* another address would get another port */
            break;
    }
    sockets->port = port_of(sockets->fds[0]);
    return true;
}

static bool open_inet(mt_http_sockets *sockets, const char *host, int port, mt_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
    char service[16];
    int status;
    bool ok;

    if (port < 0 || port > 65535)
        return mt_fail(err, MT_E_INVALID, "port %d does not exist: choose one from 1 to 65535, or 0 for any", port);
    snprintf(service, sizeof(service), "%d", port);
    status = getaddrinfo(host, service, &hints, &found);
    if (status)
        return mt_fail(err, MT_E_INVALID,
                       "host \"%s\" is not known (%s): give an address of this machine, or 0.0.0.0 for all", host,
                       gai_strerror(status));
    ok = open_all(sockets, found, host, port, err);
    freeaddrinfo(found);
    return ok;
}

/* Removes the socket's file of a server that was killed; not one that a program listens at. */
static void remove_stale(const struct sockaddr_un *address)
{
    struct stat status;
    int fd;

    if (lstat(address->sun_path, &status) || !S_ISSOCK(status.st_mode))
        return;
    fd = open_socket(AF_UNIX);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) && errno == ECONNREFUSED)
        unlink(address->sun_path);
    close(fd);
}

static bool open_unix(mt_http_sockets *sockets, const char *path, mt_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat made;
    int fd;

    if (strlen(path) == 0 || strlen(path) >= sizeof(address.sun_path))
        return mt_fail(err, MT_E_INVALID, "socket path \"%s\" must have 1 to %zu bytes", path,
                       sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    remove_stale(&address);
    fd = bound_socket((const struct sockaddr *)&address, sizeof(address));
    if (fd < 0 && errno == EADDRINUSE)
        return mt_fail(err, MT_E_IO, "socket \"%s\" is in use by another program: stop it or choose another path",
                       path);
    if (fd < 0)
        return mt_fail(err, MT_E_IO, "cannot listen at socket \"%s\": %s", path, strerror(errno));
    sockets->fds[sockets->count++] = fd;
    sockets->unix_path = mt_strdup(path);
    if (lstat(path, &made) == 0) {
        sockets->unix_device = (uint64_t)made.st_dev;
        sockets->unix_inode = made.st_ino;
    }
    return true;
}

/* Removes the socket's file; not one that another server has made at its place since. */
static void remove_own(const mt_http_sockets *sockets)
{
    struct stat now;

    if (lstat(sockets->unix_path, &now) == 0 && (uint64_t)now.st_dev == sockets->unix_device &&
        now.st_ino == sockets->unix_inode)
        unlink(sockets->unix_path);
}

bool mt_http_sockets_open(mt_http_sockets *sockets, const char *host, int port, mt_error *err)
{
    bool ok;

    *sockets = (mt_http_sockets){0};
    ok = strncmp(host, "unix:", 5) == 0 ? open_unix(sockets, host + 5, err) : open_inet(sockets, host, port, err);
    if (!ok)
        mt_http_sockets_close(sockets);
    return ok;
}

void mt_http_sockets_close(mt_http_sockets *sockets)
{
    for (size_t i = 0; i < sockets->count; i++)
        if (sockets->fds[i] >= 0)
            close(sockets->fds[i]);
    if (sockets->unix_path)
        remove_own(sockets);
    mt_free(sockets->unix_path);
    *sockets = (mt_http_sockets){0};
}
