/* A web server for tests of fetching: it answers by path and counts who comes. */
#ifndef MT_TESTS_MEDIA_SERVER_H
#define MT_TESTS_MEDIA_SERVER_H

#include "unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

typedef struct media_server {
    int fd;
    int port;
    int other;           /* port that /elsewhere leads to */
    atomic_int visitors; /* connections so far */
    pthread_t thread;
} media_server;

static inline void server_send(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static inline void server_puts(int fd, const char *text)
{
    server_send(fd, text, strlen(text));
}

static inline void server_move(int fd, const char *where)
{
    server_puts(fd, "HTTP/1.1 302 Found\r\nLocation: ");
    server_puts(fd, where);
    server_puts(fd, "\r\nContent-Length: 5\r\n\r\nmoved");
}

/* More than anyone wants, without saying so before. */
static inline void server_flood(int fd)
{
    static char part[4096];
    struct timeval second = {.tv_sec = 1};

    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
    server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n");
    for (int i = 0; i < 4096; i++)
        if (send(fd, part, sizeof(part), MSG_NOSIGNAL) <= 0)
            return;
}

static inline void server_answer(const media_server *s, int fd, const char *path)
{
    char text[512];
    int hops;

    if (strcmp(path, "/ok") == 0)
        server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 6\r\n\r\npixels");
    else if (strcmp(path, "/video") == 0)
        server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Type: Video/MP4; x=y\r\nContent-Length: 6\r\n\r\nframes");
    else if (strcmp(path, "/text") == 0)
        server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nsecret");
    else if (strcmp(path, "/untyped") == 0)
        server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret");
    else if (strcmp(path, "/empty") == 0)
        server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(path, "/large") == 0)
        server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 99999999999\r\n\r\n");
    else if (strcmp(path, "/short") == 0)
        server_puts(fd, "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 60\r\n\r\npixels");
    else if (strcmp(path, "/flood") == 0)
        server_flood(fd);
    else if (strcmp(path, "/slow") == 0)
        (void)!read(fd, text, 1); /* until the client goes */
    else if (sscanf(path, "/hops/%d", &hops) == 1) {
        snprintf(text, sizeof(text), hops > 1 ? "/hops/%d" : "/ok", hops - 1);
        server_move(fd, text);
    } else if (strcmp(path, "/elsewhere") == 0) {
        snprintf(text, sizeof(text), "http://127.0.0.2:%d/ok", s->other);
        server_move(fd, text);
    } else if (strncmp(path, "/to/", 4) == 0)
        server_move(fd, path + 4);
    else
        server_puts(fd, "HTTP/1.1 404 Not Found\r\nContent-Type: image/png\r\nContent-Length: 6\r\n\r\nsecret");
}

static inline void *server_run(void *arg)
{
    media_server *s = arg;
    int fd;

    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        char text[8192], path[4096] = "";
        size_t len = 0;
        ssize_t n;

        atomic_fetch_add(&s->visitors, 1);
        while (len + 1 < sizeof(text) && (n = read(fd, text + len, sizeof(text) - 1 - len)) > 0) {
            len += (size_t)n;
            text[len] = '\0';
            if (strstr(text, "\r\n\r\n"))
                break;
        }
        text[len] = '\0';
        if (sscanf(text, "GET %4095s", path) == 1)
            server_answer(s, fd, path);
        shutdown(fd, SHUT_WR);
        close(fd);
    }
    return NULL;
}

static inline void server_start(media_server *s, const char *address, int other)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t len = sizeof(at);

    *s = (media_server){.fd = socket(AF_INET, SOCK_STREAM, 0), .other = other};
    inet_pton(AF_INET, address, &at.sin_addr);
    assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(listen(s->fd, 16), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
    s->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, server_run, s), 0);
}

static inline void server_stop(media_server *s)
{
    shutdown(s->fd, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->fd);
}

#endif
