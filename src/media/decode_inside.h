/* The messages between the server and its decoder processes. Included by the files decode_*.c only. */
#ifndef MT_MEDIA_DECODE_INSIDE_H
#define MT_MEDIA_DECODE_INSIDE_H

#include <stdatomic.h>

#include "base/error.h"
#include "media/decode_process.h"
#include "media/pdf.h"

typedef enum mt_decode_kind {
    /* to the process */
    MT_DECODE_IMAGE, /* decode this picture; with a file that holds its bytes */
    MT_DECODE_VIDEO, /* open this video; with a file that holds its bytes */
    MT_DECODE_GO,    /* go on; after ABOUT with a file where the pixels are written */
    /* refused */
    MT_DECODE_NO,
    /* decode a frame */
    MT_DECODE_FRAME,

    /* from the process */
    MT_DECODE_ABOUT, /* size and kind of the picture or video */
    MT_DECODE_TAKE,  /* asks for memory */
    MT_DECODE_DONE,
    MT_DECODE_FAILED,
    MT_DECODE_SPENT /* the picture took too much processor time; the process ends */
} mt_decode_kind;

/* One datagram. The kind decides which members are used. */
typedef struct mt_decode_message {
    mt_decode_kind kind;
    uint64_t size;          /* bytes of the picture or video; of TAKE: bytes that are asked for */
    int64_t index;          /* number of a frame */
    mt_media_limits limits; /* without `root` */
    mt_image_info image;    /* of DONE: the final size */
    mt_video_info video;
    uint64_t cpu_ns; /* from the process: processor time that it has had since it began */
    mt_code code;    /* of FAILED */
    char text[MT_LIMIT_ERROR_TEXT];
} mt_decode_message;

/* The message that starts a process; it carries MT_DECODE_FILES open files, or MT_DECODE_MOST for a program. */
typedef struct mt_decode_order {
    uint64_t memory; /* most bytes it may have */
    /* A program that is run instead (decode_program.c) */
    mt_pdf_program program;
    uint64_t output; /* most bytes that it may write */
    uint32_t seconds, first, last, side;
} mt_decode_order;

enum {
    MT_DECODE_SOCKET, /* for further messages */
    MT_DECODE_PAGE,   /* shared memory: an mt_decode_page; of a program, what it reads */
    MT_DECODE_LEASH,  /* a pipe whose other end the server closes when the process must end */
    MT_DECODE_FILES,
    MT_DECODE_OUTPUT = MT_DECODE_FILES, /* what a program writes */
    MT_DECODE_MOST
};

/* Runs a program as the order says, and tells what became of it: DONE with its exit status in `size` (as of waitpid)
   and the beginning of what it wrote to standard error in `text`. See decode_program.c. */
_Noreturn void mt_decode_run(const mt_decode_order *order, const int files[MT_DECODE_MOST]);

/* Finds the programs, before the processes are forked. */
void mt_decode_find_programs(void);

typedef struct mt_decode_page {
    /* set by the server: stop decoding */
    atomic_bool stop;
} mt_decode_page;

/* Processor time of the calling process. */
uint64_t mt_decode_cpu_ns(void);

/* Send and receive a datagram with open files. *received: how many files came, of at most `most`. False where the other
   side has gone. */
bool mt_decode_send(int socket, const void *data, size_t size, const int *files, size_t count);
bool mt_decode_receive(int socket, void *data, size_t size, int *files, size_t most, size_t *received);

/* The main loop of a process: obeys messages until the other side closes. Never returns. */
_Noreturn void mt_decode_work(int socket, const mt_decode_page *page);

/* From here on the calling process may only compute, and read and write what it has open. False where the kernel has no
   such filters. See decode_filter.c. */
bool mt_decode_filter(void);
bool mt_decode_can_filter(void);

#endif
