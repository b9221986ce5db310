/* The messages between the server and the processes of the darkroom. Included by the files darkroom*.c only. */
#ifndef MT_MEDIA_DARKROOM_INSIDE_H
#define MT_MEDIA_DARKROOM_INSIDE_H

#include <stdatomic.h>

#include "media/darkroom.h"

typedef enum mt_dark_kind {
    /* to the process */
    MT_DARK_IMAGE, /* decode this picture; with a file that holds its bytes */
    MT_DARK_VIDEO, /* open this video; with a file that holds its bytes */
    MT_DARK_GO,    /* go on; after ABOUT with a file where the pixels are written */
    /* refused */
    MT_DARK_NO,
    /* decode a frame */
    MT_DARK_FRAME,

    /* from the process */
    MT_DARK_ABOUT, /* size and kind of the picture or video */
    MT_DARK_TAKE,  /* asks for memory */
    MT_DARK_DONE,
    MT_DARK_FAILED,
    MT_DARK_SPENT /* the picture took too much processor time; the process ends */
} mt_dark_kind;

/* One datagram. The kind decides which members are used. */
typedef struct mt_dark_letter {
    mt_dark_kind kind;
    uint64_t size;          /* bytes of the picture or video; of TAKE: bytes that are asked for */
    int64_t index;          /* number of a frame */
    mt_media_limits limits; /* without `root` */
    mt_image_info image;    /* of DONE: the final size */
    mt_video_info video;
    uint64_t cpu_ns; /* from the process: processor time that it has had since it began */
    mt_code code;    /* of FAILED */
    char text[MT_LIMIT_ERROR_TEXT];
} mt_dark_letter;

/* The message that starts a process; it carries MT_DARK_FILES open files. */
typedef struct mt_dark_order {
    /* most bytes it may have */
    uint64_t memory;
} mt_dark_order;

enum {
    MT_DARK_SOCKET, /* for further messages */
    MT_DARK_PAGE,   /* shared memory: an mt_dark_page */
    MT_DARK_LEASH,  /* a pipe whose other end the server closes when the process must end */
    MT_DARK_FILES
};

typedef struct mt_dark_page {
    /* set by the server: stop decoding */
    atomic_bool stop;
} mt_dark_page;

/* Processor time of the calling process. */
uint64_t mt_dark_cpu_ns(void);

/* Send and receive a datagram with open files. *received: how many files came, of at most `most`. False where the other
   side has gone. */
bool mt_dark_send(int socket, const void *data, size_t size, const int *files, size_t count);
bool mt_dark_receive(int socket, void *data, size_t size, int *files, size_t most, size_t *received);

/* The main loop of a process: obeys messages until the other side closes. Never returns. */
_Noreturn void mt_dark_work(int socket, const mt_dark_page *page);

/* From here on the calling process may only compute, and read and write what it has open. False where the kernel has no
   such filters. See darkroom_filter.c. */
bool mt_dark_filter(void);
bool mt_dark_can_filter(void);

#endif
