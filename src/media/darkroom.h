/* The darkroom: pictures and videos are decoded in processes of their own, one for each request, which have no files,
   no network and little memory. What they are sent may crash them, and nothing else. See darkroom.c. */
#ifndef MT_MEDIA_DARKROOM_H
#define MT_MEDIA_DARKROOM_H

#include "media/image.h"
#include "media/video.h"

/* Starts the process that others are forked from. Once, before there are threads: a fork has none of them. False where
   the system has no such thing; then, and where it is never opened, pictures are decoded by who asks. */
bool mt_darkroom_open(void);
void mt_darkroom_close(void);
bool mt_darkroom_is_open(void);
bool mt_darkroom_is_filtered(void); /* the kernel refuses what its processes may not do (seccomp) */

/* How many processes were begun, and how many of them crashed or had to be ended. */
uint64_t mt_darkroom_begun(void);
uint64_t mt_darkroom_crashed(void);

/* The process of a request; NULL is one that decodes here. */
typedef struct mt_developer mt_developer;

/* Borrows limits and watch until mt_developer_free. memory: bytes that it may have in all. NULL with *err where there
   is no process to be had; NULL without where there is no darkroom. */
mt_developer *mt_developer_new(const mt_media_limits *limits, const mt_media_watch *watch, size_t memory,
                               mt_error *err) MT_NODISCARD;
void mt_developer_free(mt_developer *developer); /* whatever it is at */

/* As mt_image_decode. look (may be NULL) is asked when the header is known, before anything is decoded. */
bool mt_developer_image(mt_developer *d, mt_image *image, const void *data, size_t size,
                        bool (*look)(void *ctx, const mt_image_info *info, mt_error *err), void *ctx,
                        mt_error *err) MT_NODISCARD;

/* As mt_video_open. Of one video at a time; close it before the developer is used for something else. */
mt_video *mt_developer_video(mt_developer *d, const void *data, size_t size, mt_error *err) MT_NODISCARD;

#endif
