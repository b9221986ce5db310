/* The body of a decoder process: decodes what messages bring, one after the other, into shared memory of the
   server. It asks for memory by message where a thread would ask its watch, so the server decides how much it gets. */
#include "media/decode_inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/crash.h"

/* The state of a decoding process. */
typedef struct text_queue {
    int socket;
    mt_media_watch watch;
    mt_decode_message in, out;
    const void *data; /* the encoded picture or video */
    size_t size;
    uint8_t *to; /* where pixels are written */
    size_t room;
    mt_video *video;
} text_queue;

/* Has SIGPROF end the process after so many seconds of processor time (decode_process.c); 0: never. Most decoders
   notice themselves that a picture has had its time (mt_image_decode); the timer, which gives a second more, is for the
   others. */
static void limit_time(double seconds)
{
    const struct itimerval timer = {
        .it_value = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)((seconds - floor(seconds)) * 1e6)}};

    setitimer(ITIMER_PROF, &timer, NULL);
}

/* Sends a message; exits where the server has gone. No timer ends the process once it has answered. */
static void tell(text_queue *d, mt_decode_kind kind)
{
    if (kind == MT_DECODE_DONE || kind == MT_DECODE_FAILED)
        limit_time(0);
    d->out.kind = kind;
    d->out.cpu_ns = mt_decode_cpu_ns();
    if (!mt_decode_send(d->socket, &d->out, sizeof(d->out), NULL, 0))
        _exit(0);
}

static int hear(text_queue *d)
{
    size_t count;
    int file = -1;

    if (!mt_decode_receive(d->socket, &d->in, sizeof(d->in), &file, 1, &count))
        _exit(0);
    return file;
}

static bool take(void *ctx, size_t bytes, mt_error *err)
{
    text_queue *d = ctx;

    d->out.size = bytes;
    tell(d, MT_DECODE_TAKE);
    hear(d);
    return d->in.kind == MT_DECODE_GO || mt_fail(err, MT_E_INVALID, "there is no room");
}

static void fail(text_queue *d, const mt_error *err)
{
    d->out.code = err->code;
    snprintf(d->out.text, sizeof(d->out.text), "%s", err->text);
    tell(d, MT_DECODE_FAILED);
}

static void *map(int file, size_t size, int protection)
{
    void *at = size ? mmap(NULL, size, protection, MAP_SHARED, file, 0) : MAP_FAILED;

    close(file);
    return at == MAP_FAILED ? NULL : at;
}

static void fail_memory(text_queue *d)
{
    mt_error err;

    mt_fail(&err, MT_E_MEMORY, "the system gives no memory for the picture or video: try again in a moment");
    fail(d, &err);
}

/* Tells the size of what was found, and receives memory for the pixels. False: the server refused, or there is none. */
static bool announce(text_queue *d, size_t room)
{
    int file;

    tell(d, MT_DECODE_ABOUT);
    file = hear(d);
    if (d->in.kind != MT_DECODE_GO || file < 0)
        return false;
    d->to = map(file, room, PROT_READ | PROT_WRITE);
    d->room = room;
    if (!d->to)
        fail_memory(d);
    return d->to != NULL;
}

static void leave(text_queue *d)
{
    if (d->to)
        munmap(d->to, d->room);
    d->to = NULL;
}

/* Decodes the picture that came. */
static void image(text_queue *d)
{
    const mt_media_limits limits = d->in.limits;
    mt_error err;

    if (!mt_image_probe(&d->out.image, d->data, d->size, &limits, &err)) {
        fail(d, &err);
        return;
    }
    if (!announce(d, (size_t)d->out.image.width * d->out.image.height * 3))
        return;
    if (mt_image_decode_to(d->to, &d->out.image, d->data, d->size, &limits, &d->watch, &err))
        tell(d, MT_DECODE_DONE);
    else
        fail(d, &err);
    leave(d);
}

static bool frame(text_queue *d, mt_error *err)
{
    mt_image decoded;

    if (!mt_video_frame(d->video, d->in.index, &decoded, err))
        return false;
    memcpy(d->to, decoded.pixels, (size_t)decoded.width * decoded.height * 3);
    mt_image_free(&decoded);
    return true;
}

/* Decodes frames until another message comes. */
static void frames(text_queue *d)
{
    mt_error err;

    for (hear(d); d->in.kind == MT_DECODE_FRAME; hear(d))
        if (frame(d, &err))
            tell(d, MT_DECODE_DONE);
        else
            fail(d, &err);
}

/* Opens the video that came, and decodes frames as they are asked for. */
static void video(text_queue *d)
{
    const mt_media_limits limits = d->in.limits;
    mt_error err;

    d->video = mt_video_open(d->data, d->size, &limits, &d->watch, &err);
    if (!d->video) {
        fail(d, &err);
        return;
    }
    d->out.video = mt_video_about(d->video);
    const size_t picture = (size_t)d->out.video.width * d->out.video.height * 3;
    const size_t times = (size_t)d->out.video.frames * sizeof(double);
    if (announce(d, picture > times ? picture : times)) {
        double *to = (double *)(void *)d->to;
        for (int64_t i = 0; i < d->out.video.frames; i++)
            to[i] = mt_video_time(d->video, i);
        tell(d, MT_DECODE_DONE);
        frames(d);
    }
    mt_video_close(d->video);
    d->video = NULL;
    leave(d);
}

_Noreturn void mt_decode_work(int socket, const mt_decode_page *page)
{
    static text_queue d; /* static: too large for the stack */

    d.socket = socket;
    d.watch = (mt_media_watch){.stop = &page->stop, .take = take, .ctx = &d};
    for (;;) {
        const int file = hear(&d);
        const size_t mapped = d.in.size ? (size_t)d.in.size : 1; /* nothing at all is sent as a file of one byte */

        if (file < 0)
            continue; /* a message without a file ends a video */
        d.size = (size_t)d.in.size;
        d.data = map(file, mapped, PROT_READ);
        d.out = (mt_decode_message){0};
        if (!d.data) {
            fail_memory(&d);
            continue;
        }
        limit_time(d.in.kind == MT_DECODE_IMAGE ? d.in.limits.image_seconds + 1 : 0);
        mt_crash_plant("decoder");
        (d.in.kind == MT_DECODE_IMAGE ? image : video)(&d);
        munmap((void *)(uintptr_t)d.data, mapped);
    }
}
