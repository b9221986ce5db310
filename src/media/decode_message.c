/* Sends and receives the messages of decoder processes, which carry open files (decode_inside.h). */
#include "media/decode_inside.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>

#include "media/decode_client.h"

typedef union ancillary {
    struct cmsghdr head; /* for alignment */
    char bytes[CMSG_SPACE(MT_DECODE_MOST * sizeof(int))];
} ancillary;

uint64_t mt_decode_cpu_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

bool mt_decode_send(int socket, const void *data, size_t size, const int *files, size_t count)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    ancillary more = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t sent;

    if (count > 0) {
        message.msg_control = more.bytes;
        message.msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = (socklen_t)CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), files, count * sizeof(int));
    }
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

/* The system closes files that do not fit. */
bool mt_decode_receive(int socket, void *data, size_t size, int *files, size_t most, size_t *received)
{
    struct iovec part = {.iov_base = data, .iov_len = size};
    ancillary more = {.bytes = {0}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = most ? more.bytes : NULL,
                             .msg_controllen = most ? (socklen_t)CMSG_SPACE(most * sizeof(int)) : 0};
    ssize_t got;

    *received = 0;
    do
        got = recvmsg(socket, &message, MT_DECODE_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head))
        if (head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
            *received = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            memcpy(files, CMSG_DATA(head), *received * sizeof(int));
        }
    return got == (ssize_t)size;
}
