/* Shared by decode_process.c and decode_client.c only. */
#ifndef MT_MEDIA_DECODE_CLIENT_H
#define MT_MEDIA_DECODE_CLIENT_H

#include <stdbool.h>

#include <sys/socket.h>

#ifdef MSG_CMSG_CLOEXEC
#define MT_DECODE_CLOEXEC MSG_CMSG_CLOEXEC
#else
#define MT_DECODE_CLOEXEC 0
#endif

/* Counts a process that was started; one that crashed, or had to be killed. */
void mt_decode_count(bool crash);

int mt_decode_process_socket(void); /* where requests for a process are sent; -1: there is no decoder process */

#endif
