/* Put before the C library by the loader, it is a resolver that answers as an attacker's would, and a network in which
   some public and private addresses are this machine's:

       MOTET_TEST_NAMES  "NAME=ADDRESS[,ADDRESS...] ...": what a name is resolved to, the first time, the second time,
                         and so on; the last address is repeated. Other names are resolved as ever.
       MOTET_TEST_HERE   "ADDRESS ...": IPv4 addresses whose connections go to the loopback address instead. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MOST 64 /* names */

/* How often each name of the list was looked up. */
static unsigned looks[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* C has no other way from one kind of pointer to the other. */
static void find(const char *name, void *function)
{
    void *next = dlsym(RTLD_NEXT, name);

    memcpy(function, &next, sizeof(next));
}

/* The address number `count` of "A,B,C", or its last. */
static void choose(const char *list, unsigned count, char out[64])
{
    size_t len = strcspn(list, ", ");

    while (count-- > 0 && list[len] == ',') {
        list += len + 1;
        len = strcspn(list, ", ");
    }
    snprintf(out, 64, "%.*s", (int)len, list);
}

/* Whether the name is on the list; then out is its address this time. */
static int answer(const char *name, char out[64])
{
    const char *at = getenv("MOTET_TEST_NAMES");
    const size_t len = strlen(name);

    for (size_t i = 0; at && *at && i < MOST; i++) {
        if (strncmp(at, name, len) == 0 && at[len] == '=') {
            pthread_mutex_lock(&lock);
            choose(at + len + 1, looks[i]++, out);
            pthread_mutex_unlock(&lock);
            return 1;
        }
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return 0;
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    char address[64];

    find("getaddrinfo", &real);
    return real(node && answer(node, address) ? address : node, service, hints, found);
}

/* Whether an address is one of those that are here. */
static int is_here(const struct in_addr *address)
{
    const char *at = getenv("MOTET_TEST_HERE");
    char text[INET_ADDRSTRLEN];
    const size_t len = inet_ntop(AF_INET, address, text, sizeof(text)) ? strlen(text) : 0;

    while (len && at && *at) {
        if (strncmp(at, text, len) == 0 && (at[len] == ' ' || !at[len]))
            return 1;
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return 0;
}

int connect(int fd, const struct sockaddr *address, socklen_t len)
{
    int (*real)(int, const struct sockaddr *, socklen_t);
    struct sockaddr_in v4;

    find("connect", &real);
    if (len >= sizeof(v4) && address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof(v4));
        if (is_here(&v4.sin_addr)) {
            v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            return real(fd, (const struct sockaddr *)&v4, sizeof(v4));
        }
    }
    return real(fd, address, len);
}
