/* What both sides of the darkroom's sockets know; nobody else includes this. */
#ifndef MT_MEDIA_DARKROOM_INSIDE_H
#define MT_MEDIA_DARKROOM_INSIDE_H

#include <stdatomic.h>

#include "media/darkroom.h"

typedef enum mt_dark_kind {
    /* to the process */
    MT_DARK_IMAGE, /* with a file of the bytes */
    MT_DARK_VIDEO, /* likewise */
    MT_DARK_GO,    /* yes; after ABOUT with a file for what comes out */
    MT_DARK_NO,
    MT_DARK_FRAME,

    /* and from it */
    MT_DARK_ABOUT, /* what there is to see */
    MT_DARK_TAKE,  /* it wants memory */
    MT_DARK_DONE,
    MT_DARK_FAILED
} mt_dark_kind;

/* One datagram. Which members count is a matter of the kind. */
typedef struct mt_dark_letter {
    mt_dark_kind kind;
    uint64_t size;          /* of the bytes that come; bytes that it wants */
    int64_t index;          /* of a frame */
    mt_media_limits limits; /* without the root */
    mt_image_info image;    /* of DONE: the size that it has in the end */
    mt_video_info video;
    mt_code code; /* of FAILED */
    char text[MT_LIMIT_ERROR_TEXT];
} mt_dark_letter;

/* What a new process is told, with the files of this order. */
typedef struct mt_dark_order {
    uint64_t memory;
} mt_dark_order;

enum {
    MT_DARK_SOCKET, /* for letters */
    MT_DARK_PAGE,   /* an mt_dark_page */
    MT_DARK_LEASH,  /* a pipe whose other end is closed when the process is to end */
    MT_DARK_FILES
};

typedef struct mt_dark_page {
    atomic_bool stop;
} mt_dark_page;

/* Datagrams with files. received: how many came, of at most `most`; -1 where there is nothing to be had. */
bool mt_dark_send(int socket, const void *data, size_t size, const int *files, size_t count);
bool mt_dark_receive(int socket, void *data, size_t size, int *files, size_t most, size_t *received);

/* The process: reads letters until the other side leaves. Never returns. */
_Noreturn void mt_dark_work(int socket, const mt_dark_page *page);

/* From here on the calling process may compute, read and write what it has open, and nothing else. False where the
   kernel has no filters. See darkroom_filter.c. */
bool mt_dark_filter(void);
bool mt_dark_can_filter(void);

#endif
