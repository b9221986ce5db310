/* The packets of a video in memory. FFmpeg gets nothing but these bytes: no protocol, no other file, and only the
   demuxers and decoders named in demux.c. */
#ifndef MT_MEDIA_DEMUX_H
#define MT_MEDIA_DEMUX_H

#include <stddef.h>
#include <stdint.h>

#include <libavformat/avformat.h>

#include "base/error.h"
#include "media/watch.h"

typedef struct mt_demux {
    const uint8_t *data; /* borrowed */
    size_t size, at;
    const mt_media_watch *watch; /* may be NULL; borrowed */
    AVFormatContext *file;
    AVStream *stream; /* the video stream; only its packets are read */
} mt_demux;

/* Opens the video from its beginning; what was open before is closed. Undo with mt_demux_close. */
bool mt_demux_open(mt_demux *d, mt_error *err) MT_NODISCARD;
void mt_demux_close(mt_demux *d); /* a zeroed one is fine */

bool mt_demux_cancelled(const mt_demux *d);

/* Sets the error: what failed, or that it was cancelled; code is FFmpeg's, or 0 without memory. Returns false. */
bool mt_demux_fail(const mt_demux *d, mt_error *err, const char *what, int code);

#endif
