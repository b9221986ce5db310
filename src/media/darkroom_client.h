/* Shared by darkroom.c and darkroom_client.c only. */
#ifndef MT_MEDIA_DARKROOM_CLIENT_H
#define MT_MEDIA_DARKROOM_CLIENT_H

#include <sys/socket.h>

#ifdef MSG_CMSG_CLOEXEC
#define MT_DARK_CLOEXEC MSG_CMSG_CLOEXEC
#else
#define MT_DARK_CLOEXEC 0
#endif

int mt_darkroom_socket(void); /* where requests for a process are sent; -1: there is no darkroom */

#endif
