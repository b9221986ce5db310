/* Decodes videos through FFmpeg's libraries (video.h).

   A file is read twice. The first reading counts the frames, as headers may be wrong, and keeps the time of each; the
   second decodes from the first frame on, so that frame numbers are the same as for a program that decodes all. Seeking
   was rejected: where it lands depends on the file. Used by one thread, which opened it.

   Memory: decoders keep frames as references, and their number depends on the stream. So each buffer of a decoder is
   counted while it exists, and a stream that needs more than was granted is refused. What FFmpeg decodes to inspect a
   file, before the first frame is wanted, has the size that the container says. */
#include "media/video.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "base/alloc.h"
#include "media/container.h"
#include "media/demux.h"
#include "media/limits.h"

enum {
    KEPT = 20,     /* frames in a decoder: H.264 has up to 16, one being decoded, one given out, and two to spare */
    PIXEL = 4,     /* bytes of a pixel in them: 3 for 4:2:0 with 16 bits a sample, and one for data of its block */
    RGB_PIXEL = 6, /* bytes of a pixel of the last frame, which exists as RGB twice */
    EDGE = 128,    /* pixels that block sizes and borders add to a side */
};

const bool mt_video_present = true;

struct mt_video {
    const mt_media_limits *limits; /* valid while the video is being opened */
    mt_video_info info;
    mt_demux demux;
    AVCodecContext *codec;
    struct SwsContext *scaler;
    AVPacket *packet;
    AVFrame *frame;  /* the last frame decoded */
    AVFrame *rgb;    /* the same as RGB, with the padding behind rows that swscale needs */
    int64_t decoded; /* frames so far */
    bool flushing;   /* the decoder was told that no packet follows */
    double *times;   /* of each frame, ascending, in seconds */
    size_t live;     /* bytes of frames that the decoder has now */
    size_t most;     /* most that it may have */

    /* Of a video that is decoded elsewhere (mt_video_from); all fields of FFmpeg are unused then */
    bool (*next)(void *ctx, int64_t index, mt_image *image, mt_error *err);
    void (*end)(void *ctx);
    void *ctx;
};

static bool check_size(int width, int height, const mt_media_limits *limits, mt_error *err)
{
    uint64_t pixels = width > 0 && height > 0 ? (uint64_t)width * (uint64_t)height : 0;

    if (pixels == 0)
        return mt_fail(err, MT_E_INVALID, "the video is %dx%d pixels: send one that has some", width, height);
    if (width > MT_LIMIT_MEDIA_SIDE || height > MT_LIMIT_MEDIA_SIDE || pixels > limits->video_pixels)
        return mt_fail(err, MT_E_INVALID,
                       "the video is %dx%d pixels, and %" PRIu64 " in all are allowed: send a smaller one", width,
                       height, limits->video_pixels);
    return true;
}

/* Asks the watch for the memory to decode frames of `pixel` bytes a pixel, less what was granted before. */
static bool take_memory(mt_video *v, size_t pixel, mt_error *err)
{
    const AVCodecParameters *p = v->demux.stream->codecpar;
    const size_t area = ((size_t)p->width + EDGE) * ((size_t)p->height + EDGE), before = v->info.memory;

    v->most = area * KEPT * pixel;
    v->info.memory = area * RGB_PIXEL + v->most;
    return v->info.memory <= before || mt_media_take(v->demux.watch, v->info.memory - before, err);
}

/* Has FFmpeg decode the first frames to find the format; they must not be larger than the container says, except for
   whole blocks. */
static int look_into(const mt_video *v)
{
    const AVCodecParameters *p = v->demux.stream->codecpar;
    const unsigned streams = v->demux.file->nb_streams;
    AVDictionary **options = mt_alloc_array(streams, sizeof(AVDictionary *));
    int code;

    for (unsigned i = 0; i < streams; i++)
        av_dict_set_int(&options[i], "max_pixels", (int64_t)(p->width + EDGE) * (p->height + EDGE), 0);
    code = avformat_find_stream_info(v->demux.file, options);
    for (unsigned i = 0; i < streams; i++)
        av_dict_free(&options[i]);
    mt_free(options);
    return code;
}

/* Bytes of a pixel: its own, and one for data of its block. */
static size_t pixel_bytes(int format)
{
    const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(format);

    return d ? 1 + ((size_t)av_get_padded_bits_per_pixel(d) + 7) / 8 : 0;
}

/* Opens the file and reads its properties. */
static bool read_head(mt_video *v, mt_error *err)
{
    AVCodecParameters *p;
    int code;

    if (!mt_demux_open(&v->demux, err))
        return false;
    p = v->demux.stream->codecpar;
    if (p->codec_id != AV_CODEC_ID_H264 && p->codec_id != AV_CODEC_ID_HEVC && p->codec_id != AV_CODEC_ID_VP8 &&
        p->codec_id != AV_CODEC_ID_VP9 && p->codec_id != AV_CODEC_ID_AV1)
        return mt_fail(err, MT_E_INVALID, "the video is compressed as \"%s\": send H.264, HEVC, VP8, VP9 or AV1",
                       avcodec_get_name(p->codec_id));
    if (!check_size(p->width, p->height, v->limits, err))
        return false;
    if (!take_memory(v, PIXEL, err))
        return false;
    code = look_into(v);
    if (code < 0 || mt_demux_cancelled(&v->demux))
        return mt_demux_fail(&v->demux, err, "looking into it", code);
    if (!check_size(p->width, p->height, v->limits, err))
        return false;
    v->info.width = (uint32_t)p->width;
    v->info.height = (uint32_t)p->height;
    return take_memory(v, pixel_bytes(p->format) > PIXEL ? pixel_bytes(p->format) : PIXEL, err);
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void keep_time(mt_video *v, const AVPacket *packet)
{
    int64_t stamp = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts;
    size_t old = (size_t)v->info.frames;

    if ((old & (old - 1)) == 0) /* the array is full at powers of two, and at 0 */
        v->times = mt_realloc(v->times, old * sizeof(double), (old ? 2 * old : 1) * sizeof(double));
    v->times[old] = stamp != AV_NOPTS_VALUE ? (double)stamp * av_q2d(v->demux.stream->time_base) : 0;
    v->info.frames++;
}

/* Reads every packet and decodes none. */
static bool count_frames(mt_video *v, mt_error *err)
{
    int64_t most = v->limits->video_frames;
    int code;

    while ((code = av_read_frame(v->demux.file, v->packet)) >= 0 && v->info.frames <= most) {
        if (v->packet->stream_index == v->demux.stream->index && !(v->packet->flags & AV_PKT_FLAG_DISCARD))
            keep_time(v, v->packet);
        av_packet_unref(v->packet);
    }
    av_packet_unref(v->packet);
    if (v->info.frames > most)
        return mt_fail(err, MT_E_INVALID, "the video has more than the %" PRId64 " frames allowed: send a shorter one",
                       most);
    if (code != AVERROR_EOF || mt_demux_cancelled(&v->demux))
        return mt_demux_fail(&v->demux, err, "reading", code);
    if (v->info.frames == 0)
        return mt_fail(err, MT_E_INVALID, "the video has no frame: send one that has some");
    qsort(v->times, (size_t)v->info.frames, sizeof(*v->times), compare_times);
    return true;
}

static bool find_rate(mt_video *v, mt_error *err)
{
    AVStream *stream = v->demux.stream;
    double span = v->times[v->info.frames - 1] - v->times[0];
    uint64_t pixels = (uint64_t)v->info.width * v->info.height;

    v->info.fps = av_q2d(stream->avg_frame_rate.den ? stream->avg_frame_rate : stream->r_frame_rate);
    if (!(v->info.fps > 0 && v->info.fps < 1e5)) /* also NaN: the file has no rate */
        v->info.fps = v->info.frames > 1 && span > 0 ? (double)(v->info.frames - 1) / span : 1;
    v->info.duration = (double)v->info.frames / v->info.fps;
    if (v->info.duration > v->limits->video_seconds)
        return mt_fail(err, MT_E_INVALID, "the video lasts %.1f seconds, and %.1f are allowed: send a shorter one",
                       v->info.duration, v->limits->video_seconds);
    if (pixels * (uint64_t)v->info.frames > MT_LIMIT_MEDIA_VIDEO_WORK)
        return mt_fail(err, MT_E_INVALID,
                       "the video has %" PRId64 " frames of %" PRIu32 "x%" PRIu32
                       " pixels, which takes too long to look through: send a shorter or smaller one",
                       v->info.frames, v->info.width, v->info.height);
    return true;
}

/* Counts a frame's buffer until FFmpeg frees it. */
typedef struct counted {
    mt_video *video;
    AVBufferRef *inner;
    size_t bytes;
} counted;

static void on_buffer_free(void *opaque, uint8_t *data)
{
    counted *c = opaque;

    (void)data;
    c->video->live -= c->bytes;
    av_buffer_unref(&c->inner);
    mt_free(c);
}

/* Allocates a frame's buffers for the decoder, within the memory that was granted. The first buffer is wrapped, so that
   its end, with which all of the frame's are freed, is noticed. A frame counts for a byte a pixel more than its buffers
   have: the decoder's data of its blocks. */
static int on_buffer(AVCodecContext *codec, AVFrame *frame, int flags)
{
    mt_video *v = codec->opaque;
    const int code = avcodec_default_get_buffer2(codec, frame, flags);
    counted *c;
    AVBufferRef *ref;

    if (code < 0 || !frame->buf[0])
        return code;
    c = mt_alloc(sizeof(*c));
    *c = (counted){.video = v, .inner = frame->buf[0], .bytes = (size_t)frame->width * (size_t)frame->height};
    for (size_t i = 0; i < MT_COUNT(frame->buf) && frame->buf[i]; i++)
        c->bytes += (size_t)frame->buf[i]->size;
    ref = av_buffer_create(c->inner->data, c->inner->size, on_buffer_free, c, 0);
    if (!ref) {
        mt_free(c);
        return AVERROR(ENOMEM);
    }
    v->live += c->bytes;
    frame->buf[0] = ref;
    return v->live <= v->most ? code : AVERROR(ENOMEM);
}

static bool open_codec(mt_video *v, mt_error *err)
{
    const AVCodec *decoder = avcodec_find_decoder(v->demux.stream->codecpar->codec_id);
    int code;

    if (!decoder)
        return mt_fail(err, MT_E_INVALID,
                       "the video is compressed as \"%s\", which FFmpeg cannot decode here: send H.264",
                       avcodec_get_name(v->demux.stream->codecpar->codec_id));
    v->codec = avcodec_alloc_context3(decoder);
    if (!v->codec)
        return mt_demux_fail(&v->demux, err, "decoding", 0);
    code = avcodec_parameters_to_context(v->codec, v->demux.stream->codecpar);
    v->codec->thread_count = 1; /* one thread: requests run in parallel already */
    v->codec->opaque = v;
    v->codec->get_buffer2 = on_buffer;
    v->codec->max_pixels = (int64_t)v->limits->video_pixels;
    v->codec->pkt_timebase = v->demux.stream->time_base;
    if (code >= 0)
        code = avcodec_open2(v->codec, decoder, NULL);
    return code >= 0 || mt_demux_fail(&v->demux, err, "decoding", code);
}

/* Opens a video: counts its frames, then opens it again to decode. */
static bool open_video(mt_video *v, mt_error *err)
{
    if (v->demux.size > v->limits->bytes)
        return mt_fail(err, MT_E_INVALID, "the video has %zu bytes, and %zu are allowed: send a smaller one",
                       v->demux.size, v->limits->bytes);
    if (!mt_container_name(v->demux.data, v->demux.size))
        return mt_fail(err, MT_E_INVALID, "the %zu bytes are no video that is known here: send MP4 or WebM",
                       v->demux.size);
    if (!mt_container_claims(v->demux.data, v->demux.size, err))
        return false;
    v->packet = av_packet_alloc();
    v->frame = av_frame_alloc();
    v->rgb = av_frame_alloc();
    if (!v->packet || !v->frame || !v->rgb)
        return mt_demux_fail(&v->demux, err, "opening", 0);
    return read_head(v, err) && count_frames(v, err) && find_rate(v, err) && open_codec(v, err) &&
           mt_demux_open(&v->demux, err);
}

mt_video *mt_video_open(const void *data, size_t size, const mt_media_limits *limits, const mt_media_watch *watch,
                        mt_error *err)
{
    mt_video *v = mt_alloc(sizeof(*v));

    av_log_set_level(AV_LOG_QUIET); /* errors in a client's file are reported to the client only */
    *v = (mt_video){.limits = limits, .demux = {.data = data, .size = size, .watch = watch}};
    if (open_video(v, err)) {
        v->limits = NULL;
        return v;
    }
    mt_video_close(v);
    return NULL;
}

mt_video *mt_video_from(const mt_video_info *about, double *times,
                        bool (*next)(void *ctx, int64_t index, mt_image *image, mt_error *err), void (*end)(void *ctx),
                        void *ctx)
{
    mt_video *v = mt_alloc(sizeof(*v));

    *v = (mt_video){.info = *about, .times = times, .next = next, .end = end, .ctx = ctx};
    return v;
}

void mt_video_close(mt_video *v)
{
    if (!v)
        return;
    if (v->end)
        v->end(v->ctx);
    sws_freeContext(v->scaler);
    avcodec_free_context(&v->codec);
    mt_demux_close(&v->demux);
    av_packet_free(&v->packet);
    av_frame_free(&v->frame);
    av_frame_free(&v->rgb);
    mt_free(v->times);
    mt_free(v);
}

mt_video_info mt_video_about(const mt_video *v)
{
    return v->info;
}

double mt_video_time(const mt_video *v, int64_t index)
{
    return v->times[index] - v->times[0];
}

/* Gives the decoder the next packet, or tells it that there are none. */
static bool feed(mt_video *v, mt_error *err)
{
    int code = av_read_frame(v->demux.file, v->packet);

    if (mt_demux_cancelled(&v->demux) || (code < 0 && code != AVERROR_EOF)) {
        av_packet_unref(v->packet);
        return mt_demux_fail(&v->demux, err, "reading", code);
    }
    if (code == AVERROR_EOF) {
        v->flushing = true;
        code = avcodec_send_packet(v->codec, NULL);
    } else if (v->packet->stream_index == v->demux.stream->index) {
        code = avcodec_send_packet(v->codec, v->packet);
    }
    av_packet_unref(v->packet);
    return code >= 0 || code == AVERROR_EOF || mt_demux_fail(&v->demux, err, "decoding", code);
}

/* Decodes the next frame to v->frame. Where a file has fewer frames than packets, the last one stays. */
static bool decode_next(mt_video *v, mt_error *err)
{
    AVFrame *next = av_frame_alloc();
    bool ok = true;
    int code = 0;

    if (!next)
        return mt_demux_fail(&v->demux, err, "decoding", AVERROR(ENOMEM));
    while (ok && (code = avcodec_receive_frame(v->codec, next)) == AVERROR(EAGAIN) && !v->flushing)
        ok = feed(v, err);
    if (ok && code >= 0) {
        av_frame_unref(v->frame);
        av_frame_move_ref(v->frame, next);
    } else if (ok && (code != AVERROR_EOF || v->decoded == 0)) {
        ok = mt_demux_fail(&v->demux, err, "decoding", code);
    }
    v->decoded++;
    av_frame_free(&next);
    return ok;
}

/* Converts with swscale's defaults as PyAV does, so by BT.601 whatever the file says. */
static bool convert(mt_video *v, mt_image *image, mt_error *err)
{
    const AVFrame *frame = v->frame;

    if (frame->width != (int)v->info.width || frame->height != (int)v->info.height)
        return mt_fail(err, MT_E_INVALID,
                       "the video changes its size from %" PRIu32 "x%" PRIu32 " to %dx%d: send one that keeps it",
                       v->info.width, v->info.height, frame->width, frame->height);
    v->scaler = sws_getCachedContext(v->scaler, frame->width, frame->height, frame->format, frame->width, frame->height,
                                     AV_PIX_FMT_RGB24, SWS_BILINEAR, NULL, NULL, NULL);
    if (!v->rgb->data[0]) {
        v->rgb->format = AV_PIX_FMT_RGB24;
        v->rgb->width = frame->width;
        v->rgb->height = frame->height;
        if (av_frame_get_buffer(v->rgb, 0) < 0)
            return mt_demux_fail(&v->demux, err, "converting", 0);
    }
    if (!v->scaler || sws_scale(v->scaler, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
                                v->rgb->data, v->rgb->linesize) != frame->height)
        return mt_demux_fail(&v->demux, err, "converting", AVERROR_INVALIDDATA);
    mt_image_new(image, v->info.width, v->info.height);
    av_image_copy_plane(image->pixels, frame->width * 3, v->rgb->data[0], v->rgb->linesize[0], frame->width * 3,
                        frame->height);
    return true;
}

bool mt_video_frame(mt_video *v, int64_t index, mt_image *image, mt_error *err)
{
    assert(index >= 0 && index < v->info.frames && index >= v->decoded - 1);
    *image = (mt_image){0};
    if (v->next) {
        v->decoded = index + 1;
        mt_image_new(image, v->info.width, v->info.height);
        if (v->next(v->ctx, index, image, err))
            return true;
        mt_image_free(image);
        return false;
    }
    while (v->decoded <= index)
        if (!decode_next(v, err))
            return false;
    return convert(v, image, err);
}
