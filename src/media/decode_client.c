/* The server's side of the decoder process (mt_decode_client in decode_process.h). Answers of a process may be forged
   by a malicious picture: sizes are checked against what was agreed, numbers against their ranges, and a process that
   is silent has crashed. */
#include "media/decode_client.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "media/codec.h"
#include "media/decode_inside.h"
#include "media/limits.h"

/* milliseconds between checks whether the request is still wanted; checks after which a process is given up */
enum { LOOK_MS = 50, GRACE = 20 };

static atomic_uint_fast64_t begun, crashed;

uint64_t mt_decode_process_begun(void)
{
    return atomic_load(&begun);
}

uint64_t mt_decode_process_crashed(void)
{
    return atomic_load(&crashed);
}

void mt_decode_count(bool crash)
{
    atomic_fetch_add(crash ? &crashed : &begun, 1);
}

struct mt_decode_client {
    const mt_media_limits *limits;
    const mt_media_watch *watch;
    int socket, leash;
    mt_decode_page *page;
    bool still;       /* it decodes a picture, which must not take long */
    int looks;        /* checks so far */
    int takes;        /* requests for memory since it was told something else */
    bool lost;        /* it has crashed, or was given up */
    mt_error refused; /* why it got no memory; code MT_OK: it got all */
    uint64_t cpu_ns;  /* processor time that it has had: what it said last, or what it may have had since */
    uint64_t begun;   /* mt_clock_ns when it was started */
    uint64_t heard;   /* when the last message went or came */
    mt_decode_message in, out;

    /* of a video: shared memory that frames are written to, and its size */
    uint8_t *frame;
    size_t room;
};

#ifdef __linux__

/* ---- shared memory ---- */

/* Shared memory whose size is sealed: shrinking it would crash the processes that have it mapped. */
static int shared_memory(size_t size)
{
    const int file = memfd_create("motet-picture", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (file < 0)
        return -1;
    if (ftruncate(file, (off_t)size) == 0 && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        return file;
    close(file);
    return -1;
}

static void *map(int file, size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    return at == MAP_FAILED ? NULL : at;
}

static bool no_memory(mt_error *err)
{
    return mt_fail(err, MT_E_BUSY, "the system gives no memory for a picture: try again in a moment");
}

/* ---- the process ---- */

/* Asks the decoder process for a process; false where there is none. */
static bool hire(mt_decode_client *d, size_t memory)
{
    int ends[2] = {-1, -1}, leash[2] = {-1, -1};
    const int page = shared_memory(sizeof(mt_decode_page));
    bool ok = page >= 0 && (d->page = map(page, sizeof(*d->page))) &&
              socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && pipe2(leash, O_CLOEXEC) == 0;

    ok = ok && mt_decode_send(mt_decode_process_socket(), &(mt_decode_order){.memory = memory}, sizeof(mt_decode_order),
                              (const int[MT_DECODE_FILES]){ends[1], page, leash[0]}, MT_DECODE_FILES);
    d->socket = ends[0];
    d->leash = leash[1];
    for (size_t i = 0; i < 3; i++) {
        const int own[] = {ends[1], leash[0], page};

        if (own[i] >= 0)
            close(own[i]);
    }
    return ok;
}

mt_decode_client *mt_decode_client_new(const mt_media_limits *limits, const mt_media_watch *watch, size_t memory,
                                       mt_error *err)
{
    mt_decode_client *d;

    mt_error_clear(err);
    if (!mt_decode_process_is_open())
        return NULL;
    d = mt_alloc(sizeof(*d));
    *d = (mt_decode_client){.limits = limits, .watch = watch, .socket = -1, .leash = -1, .begun = mt_clock_ns()};
    if (hire(d, memory)) {
        atomic_fetch_add(&begun, 1);
        return d;
    }
    mt_decode_client_free(d);
    mt_fail(err, MT_E_IO, "no process can be had that decodes pictures: check the server's log and its limits");
    mt_log_error("media.no_process", "no process can be had that decodes pictures: %s", strerror(errno));
    return NULL;
}

void mt_decode_client_free(mt_decode_client *d)
{
    if (!d)
        return;
    if (d->page)
        munmap(d->page, sizeof(*d->page));
    if (d->frame)
        munmap(d->frame, d->room);
    if (d->socket >= 0)
        close(d->socket);
    if (d->leash >= 0)
        close(d->leash);
    mt_free(d);
}

uint64_t mt_decode_client_cpu_ns(const mt_decode_client *d)
{
    return d ? d->cpu_ns : 0;
}

/* Notes what the process says that it has had, which is never more than has passed. */
static void note_time(mt_decode_client *d)
{
    const uint64_t now = mt_clock_ns(), most = now - d->begun, said = d->in.cpu_ns < most ? d->in.cpu_ns : most;

    if (said > d->cpu_ns)
        d->cpu_ns = said;
    d->heard = now;
}

/* Gives the process up. It cannot say what it has had since its last message: that counts as if it had worked all the
   time. */
static void lose(mt_decode_client *d)
{
    if (!d->lost && d->heard)
        d->cpu_ns += mt_clock_ns() - d->heard;
    d->lost = true;
}

static bool is_lost(mt_decode_client *d, mt_error *err)
{
    if (!d->lost) {
        atomic_fetch_add(&crashed, 1);
        mt_log_warn("media.crashed", "a picture or video made its decoder crash, or took more than it may; its request "
                                     "gets a 400");
    }
    lose(d);
    return mt_fail(err, MT_E_INVALID, "the picture or video cannot be decoded: it made the decoder fail; send another");
}

/* The picture is not wanted any more: that its decoder process is ended is no crash. */
static bool is_cancelled(mt_decode_client *d, mt_error *err)
{
    lose(d);
    return mt_codec_stopped(err);
}

static bool tell(mt_decode_client *d, mt_decode_kind kind, int file, mt_error *err)
{
    d->out.kind = kind;
    d->heard = mt_clock_ns();
    return (!d->lost && mt_decode_send(d->socket, &d->out, sizeof(d->out), &file, file >= 0)) || is_lost(d, err);
}

/* Waits for a message. When the request is cancelled, has the decoder told, and waits only briefly. */
static bool wait(mt_decode_client *d, mt_error *err)
{
    struct pollfd from = {.fd = d->socket, .events = POLLIN};

    for (int late = 0; late < GRACE;) {
        const int came = poll(&from, 1, LOOK_MS);

        if (came == 0 && ++d->looks > MT_LIMIT_DECODE_IMAGE_MS / LOOK_MS && d->still)
            return is_lost(d, err);
        if (came > 0 || (came < 0 && errno != EINTR))
            return true;
        if (mt_media_stopped(d->watch)) {
            atomic_store_explicit(&d->page->stop, true, memory_order_relaxed);
            late++;
        }
    }
    return is_cancelled(d, err);
}

/* Receives messages until one that is not about memory. False: the process has failed or is lost. */
static bool hear(mt_decode_client *d, mt_error *err)
{
    size_t count;

    do {
        if (d->lost)
            return is_lost(d, err);
        if (!wait(d, err))
            return false;
        if (!mt_decode_receive(d->socket, &d->in, sizeof(d->in), NULL, 0, &count))
            return is_lost(d, err);
        note_time(d);
        if (d->in.kind == MT_DECODE_TAKE && mt_media_stopped(d->watch))
            return is_cancelled(d, err); /* it would ask for ever */
        if (d->in.kind == MT_DECODE_TAKE && ++d->takes > MT_LIMIT_DECODE_TAKES)
            return is_lost(d, err); /* likewise */
        if (d->in.kind == MT_DECODE_TAKE &&
            !tell(d, mt_media_take(d->watch, (size_t)d->in.size, &d->refused) ? MT_DECODE_GO : MT_DECODE_NO, -1, err))
            return false;
    } while (d->in.kind == MT_DECODE_TAKE);
    if (d->in.kind == MT_DECODE_SPENT) {
        d->lost = true; /* and no crash */
        return mt_codec_spent(err, d->limits->image_seconds);
    }
    if (d->in.kind != MT_DECODE_FAILED)
        return true;
    if (d->refused.code != MT_OK) {
        *err = d->refused;
        return false;
    }
    d->in.text[sizeof(d->in.text) - 1] = '\0';
    return mt_fail(err, d->in.code == MT_E_UNSUPPORTED || d->in.code == MT_E_MEMORY ? d->in.code : MT_E_INVALID, "%s",
                   d->in.text);
}

/* Sends a picture or video as a file of shared memory. */
static bool send_bytes(mt_decode_client *d, mt_decode_kind kind, const void *data, size_t size, mt_error *err)
{
    const int file = shared_memory(size ? size : 1);
    size_t done = 0;
    bool ok;

    while (file >= 0 && done < size) {
        const ssize_t wrote = write(file, (const char *)data + done, size - done);

        if (wrote <= 0)
            break;
        done += (size_t)wrote;
    }
    if (file < 0 || done < size) {
        if (file >= 0)
            close(file);
        return no_memory(err);
    }
    mt_error_clear(&d->refused);
    d->still = kind == MT_DECODE_IMAGE;
    d->looks = d->takes = 0;
    d->out = (mt_decode_message){.size = size, .limits = *d->limits};
    d->out.limits.root = NULL;
    ok = tell(d, kind, file, err) && hear(d, err);
    close(file);
    return ok && (d->in.kind == MT_DECODE_ABOUT || is_lost(d, err));
}

static void decline(mt_decode_client *d)
{
    mt_error ignored;

    if (!tell(d, MT_DECODE_NO, -1, &ignored))
        lose(d);
}

/* Shared memory for the pixels, lent to the process; mapped here only when it is full, which is cheaper than page by
   page. */
static uint8_t *lend(mt_decode_client *d, size_t size, mt_error *err)
{
    const int file = shared_memory(size);
    void *at = MAP_FAILED;

    if (file < 0)
        decline(d);
    if ((file >= 0 || no_memory(err)) && tell(d, MT_DECODE_GO, file, err) && hear(d, err) &&
        (d->in.kind == MT_DECODE_DONE || is_lost(d, err))) {
        at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
        if (at == MAP_FAILED)
            no_memory(err);
    }
    if (file >= 0)
        close(file);
    return at == MAP_FAILED ? NULL : at;
}

static bool fits(const mt_decode_client *d, const mt_image_info *info, uint64_t most)
{
    (void)d;
    return info->width > 0 && info->height > 0 && info->width <= MT_LIMIT_MEDIA_SIDE &&
           info->height <= MT_LIMIT_MEDIA_SIDE && (uint64_t)info->width * info->height <= most;
}

/* ---- pictures ---- */

static bool image(mt_decode_client *d, mt_image *out, const void *data, size_t size,
                  bool (*look)(void *ctx, const mt_image_info *info, mt_error *err), void *ctx, mt_error *err)
{
    mt_image_info info;
    size_t bytes;

    if (!send_bytes(d, MT_DECODE_IMAGE, data, size, err))
        return false;
    info = d->in.image;
    info.work = mt_image_work(data, size);
    if (!fits(d, &info, d->limits->pixels))
        return is_lost(d, err);
    if (look && !look(ctx, &info, err)) {
        decline(d);
        return false;
    }
    bytes = (size_t)info.width * info.height * 3;
    *out = (mt_image){.pixels = lend(d, bytes, err), .mapped = bytes};
    if (!out->pixels)
        return false;
    out->width = d->in.image.width;
    out->height = d->in.image.height;
    if ((out->width == info.width && out->height == info.height) ||
        (out->width == info.height && out->height == info.width)) /* the EXIF orientation turned it */
        return true;
    mt_image_free(out);
    return is_lost(d, err);
}

bool mt_decode_client_image(mt_decode_client *d, mt_image *out, const void *data, size_t size,
                            bool (*look)(void *ctx, const mt_image_info *info, mt_error *err), void *ctx, mt_error *err)
{
    *out = (mt_image){0};
    if (image(d, out, data, size, look, ctx, err))
        return true;
    *out = (mt_image){0};
    return false;
}

/* ---- videos ---- */

static bool next_frame(void *ctx, int64_t index, mt_image *out, mt_error *err)
{
    mt_decode_client *d = ctx;

    d->out.index = index;
    d->takes = 0;
    if (!tell(d, MT_DECODE_FRAME, -1, err) || !hear(d, err))
        return false;
    if (d->in.kind != MT_DECODE_DONE)
        return is_lost(d, err);
    memcpy(out->pixels, d->frame, (size_t)out->width * out->height * 3);
    return true;
}

static void end_video(void *ctx)
{
    mt_decode_client *d = ctx;

    decline(d);
    munmap(d->frame, d->room);
    d->frame = NULL;
}

static bool is_sane(const mt_decode_client *d, const mt_video_info *v)
{
    const mt_image_info picture = {.width = v->width, .height = v->height};

    return fits(d, &picture, d->limits->video_pixels) && v->frames > 0 && v->frames <= d->limits->video_frames &&
           isfinite(v->fps) && v->fps > 0 && v->fps < 1e5 && isfinite(v->duration) && v->duration >= 0 &&
           v->duration <= d->limits->video_seconds;
}

mt_video *mt_decode_client_video(mt_decode_client *d, const void *data, size_t size, mt_error *err)
{
    mt_video_info about;
    double *times;
    size_t picture, list;

    if (!send_bytes(d, MT_DECODE_VIDEO, data, size, err))
        return NULL;
    about = d->in.video;
    if (!is_sane(d, &about)) {
        is_lost(d, err);
        return NULL;
    }
    picture = (size_t)about.width * about.height * 3;
    list = (size_t)about.frames * sizeof(double);
    d->room = picture > list ? picture : list;
    d->frame = lend(d, d->room, err);
    if (!d->frame)
        return NULL;
    times = mt_alloc_array((size_t)about.frames, sizeof(*times));
    memcpy(times, d->frame, list);
    for (int64_t i = 0; i < about.frames; i++)
        times[i] = isfinite(times[i]) ? times[i] : 0;
    return mt_video_from(&about, times, next_frame, end_video, d);
}

#else

mt_decode_client *mt_decode_client_new(const mt_media_limits *limits, const mt_media_watch *watch, size_t memory,
                                       mt_error *err)
{
    (void)limits, (void)watch, (void)memory;
    mt_error_clear(err);
    return NULL;
}

void mt_decode_client_free(mt_decode_client *d)
{
    (void)d;
}

uint64_t mt_decode_client_cpu_ns(const mt_decode_client *d)
{
    (void)d;
    return 0;
}

bool mt_decode_client_image(mt_decode_client *d, mt_image *out, const void *data, size_t size,
                            bool (*look)(void *ctx, const mt_image_info *info, mt_error *err), void *ctx, mt_error *err)
{
    (void)d, (void)out, (void)data, (void)size, (void)look, (void)ctx;
    return mt_fail(err, MT_E_INTERNAL, "there is no decoder process");
}

mt_video *mt_decode_client_video(mt_decode_client *d, const void *data, size_t size, mt_error *err)
{
    (void)d, (void)data, (void)size;
    mt_fail(err, MT_E_INTERNAL, "there is no decoder process");
    return NULL;
}

#endif
