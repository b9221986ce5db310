/* Decoder processes: pictures and videos are decoded in separate processes, one for each request, that have no files,
   no network and little memory, so that a malicious file can crash only such a process. See decode_process.c. */
#ifndef MT_MEDIA_DECODE_PROCESS_H
#define MT_MEDIA_DECODE_PROCESS_H

#include "media/image.h"
#include "media/video.h"

/* Starts the process from which the others are forked. Once, before there are threads, since a fork copies none of
   them. False where the system does not support it; then, and where it is not opened, pictures are decoded by the
   caller. */
bool mt_decode_process_open(void);
void mt_decode_process_close(void);
bool mt_decode_process_is_open(void);
bool mt_decode_process_is_filtered(void); /* the kernel blocks forbidden system calls of its processes (seccomp) */

/* How many processes were started, and how many of them crashed or had to be killed. */
uint64_t mt_decode_process_begun(void);
uint64_t mt_decode_process_crashed(void);

/* The decoding process of one request; NULL means that the caller decodes. */
typedef struct mt_decode_client mt_decode_client;

/* Borrows limits and watch until mt_decode_client_free. memory: most bytes that the process may have. NULL with *err
   set where no process can be started; NULL without where there is no decoder process. */
mt_decode_client *mt_decode_client_new(const mt_media_limits *limits, const mt_media_watch *watch, size_t memory,
                                       mt_error *err) MT_NODISCARD;
void mt_decode_client_free(mt_decode_client *decoder); /* kills the process, whatever it does */

/* Processor time that the process has had so far for all that was decoded, in nanoseconds, whether it succeeded or not:
   what its messages said. Where it crashed or was given up, the time by the clock since its last message is added. 0
   for NULL: then the caller decodes, and mt_clock_thread_ns tells. */
uint64_t mt_decode_client_cpu_ns(const mt_decode_client *decoder);

/* As mt_image_decode. look (may be NULL) is called when the header is known, before the pixels are decoded; false
   refuses the picture. */
bool mt_decode_client_image(mt_decode_client *d, mt_image *image, const void *data, size_t size,
                            bool (*look)(void *ctx, const mt_image_info *info, mt_error *err), void *ctx,
                            mt_error *err) MT_NODISCARD;

/* As mt_video_open. One video at a time; close it before the decoder process is used for something else. */
mt_video *mt_decode_client_video(mt_decode_client *d, const void *data, size_t size, mt_error *err) MT_NODISCARD;

#endif
