/* Reads a video's packets from memory through FFmpeg (demux.h). */
#include "media/demux.h"

#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavutil/opt.h>

#include "media/container.h"
#include "media/limits.h"

bool mt_demux_cancelled(const mt_demux *d)
{
    return mt_media_stopped(d->watch);
}

bool mt_demux_fail(const mt_demux *d, mt_error *err, const char *what, int code)
{
    char text[AV_ERROR_MAX_STRING_SIZE] = "no memory";

    if (mt_demux_cancelled(d))
        return mt_fail(err, MT_E_INVALID, "the video was not read to its end: its request was cancelled");
    if (code < 0)
        av_strerror(code, text, sizeof(text));
    return mt_fail(err, MT_E_INVALID, "the video is damaged or cut off (%s: %s): send an intact file", what, text);
}

static int on_read(void *opaque, uint8_t *buffer, int size)
{
    mt_demux *d = opaque;
    size_t left = d->size - d->at, step = left < (size_t)size ? left : (size_t)size;

    if (step == 0 || mt_demux_cancelled(d))
        return AVERROR_EOF;
    memcpy(buffer, d->data + d->at, step);
    d->at += step;
    return (int)step;
}

static int64_t on_seek(void *opaque, int64_t offset, int whence)
{
    mt_demux *d = opaque;
    int64_t base = whence == SEEK_CUR ? (int64_t)d->at : whence == SEEK_END ? (int64_t)d->size : 0;

    if (whence & AVSEEK_SIZE)
        return (int64_t)d->size;
    if (offset < -base || offset > (int64_t)d->size - base)
        return AVERROR(EINVAL);
    d->at = (size_t)(base + offset);
    return (int64_t)d->at;
}

/* A file may name other files; they are not opened. */
static int on_open_other(AVFormatContext *file, AVIOContext **io, const char *url, int flags, AVDictionary **options)
{
    (void)file, (void)io, (void)url, (void)flags, (void)options;
    return AVERROR(EPERM);
}

static int on_interrupt(void *opaque)
{
    return mt_demux_cancelled(opaque);
}

void mt_demux_close(mt_demux *d)
{
    AVIOContext *io = d->file ? d->file->pb : NULL;

    avformat_close_input(&d->file);
    if (io)
        av_freep(&io->buffer);
    avio_context_free(&io);
}

static AVFormatContext *new_file(mt_demux *d)
{
    enum { BUFFER = 32768 };
    AVFormatContext *file = avformat_alloc_context();
    uint8_t *buffer = av_malloc(BUFFER);

    if (file && buffer)
        file->pb = avio_alloc_context(buffer, BUFFER, 0, d, on_read, NULL, on_seek);
    if (!file || !file->pb) {
        av_free(buffer);
        avformat_free_context(file);
        return NULL;
    }
    file->io_open = on_open_other;
    file->interrupt_callback = (AVIOInterruptCB){on_interrupt, d};
    file->max_streams = MT_LIMIT_MEDIA_STREAMS;
    file->flags |= AVFMT_FLAG_CUSTOM_IO;
    av_opt_set(file, "codec_whitelist", "h264,hevc,vp8,vp9,libvpx,libvpx-vp9,av1,libdav1d,libaom-av1", 0);
    av_opt_set(file, "protocol_whitelist", "none", 0);
    return file;
}

/* Chooses the first video stream that is not a cover picture, which FFmpeg also lists as a video. */
static bool choose_stream(mt_demux *d, mt_error *err)
{
    d->stream = NULL;
    for (unsigned i = 0; i < d->file->nb_streams; i++) {
        AVStream *stream = d->file->streams[i];

        stream->discard = AVDISCARD_ALL;
        if (!d->stream && stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
            !(stream->disposition & AV_DISPOSITION_ATTACHED_PIC))
            d->stream = stream;
    }
    if (!d->stream)
        return mt_fail(err, MT_E_INVALID, "the video has no moving pictures in it: send one that has");
    d->stream->discard = AVDISCARD_DEFAULT;
    return true;
}

bool mt_demux_open(mt_demux *d, mt_error *err)
{
    const AVInputFormat *format = av_find_input_format(mt_container_name(d->data, d->size));
    AVIOContext *io;
    int code;

    mt_demux_close(d);
    d->at = 0;
    d->file = new_file(d);
    if (!d->file || !format)
        return mt_demux_fail(d, err, "opening", 0);
    io = d->file->pb;
    code = avformat_open_input(&d->file, NULL, format, NULL);
    if (code < 0) { /* this frees the context, but not its input */
        av_freep(&io->buffer);
        avio_context_free(&io);
        return mt_demux_fail(d, err, "opening", code);
    }
    return choose_stream(d, err);
}
