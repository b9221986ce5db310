/* The server's side of poppler's programs (pdf.h): sends the PDF, waits for the program's end, and says what went
   wrong. A malicious PDF may forge the output: it is text or PNGs, and is checked like a client's. */
#include "media/pdf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "media/codec.h"
#include "media/decode_client.h"
#include "media/decode_inside.h"
#include "media/limits.h"

bool mt_pdf_is(const void *data, size_t size)
{
    static const char mark[] = "%PDF-";

    /* Readers of PDFs accept the mark anywhere in the first 1024 bytes: some files have a mail's headers before it */
    return size >= sizeof(mark) - 1 && memmem(data, size < 1024 ? size : 1024, mark, sizeof(mark) - 1) != NULL;
}

static bool is_png(const unsigned char *data, size_t size)
{
    static const unsigned char mark[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

    return size >= sizeof(mark) && memcmp(data, mark, sizeof(mark)) == 0;
}

size_t mt_pdf_picture_size(const void *data, size_t size)
{
    const unsigned char *p = data;
    size_t at = 8;

    if (!is_png(p, size))
        return 0;
    while (size - at >= 12) {
        const uint64_t len = (uint64_t)p[at] << 24 | (uint64_t)p[at + 1] << 16 | (uint64_t)p[at + 2] << 8 | p[at + 3];
        const bool last = memcmp(p + at + 4, "IEND", 4) == 0;

        if (len + 12 > size - at)
            return 0;
        at += (size_t)len + 12;
        if (last)
            return at;
    }
    return 0;
}

#ifdef __linux__

enum { LOOK_MS = 50 };

/* A running program: the descriptors that the server holds. */
typedef struct running {
    int socket, leash, input, output;
} running;

static bool no_memory(mt_error *err)
{
    return mt_fail(err, MT_E_BUSY, "the system gives no memory for a PDF: try again in a moment");
}

static int shared_memory(const void *data, size_t size)
{
    const int file = memfd_create("motet-pdf", MFD_CLOEXEC);

    for (size_t done = 0; file >= 0 && done < size;) {
        const ssize_t n = pwrite(file, (const char *)data + done, size - done, (off_t)done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(file);
            return -1;
        }
        done += (size_t)n;
    }
    return file;
}

static void let_go(running *r)
{
    const int all[] = {r->socket, r->leash, r->input, r->output};

    for (size_t i = 0; i < MT_COUNT(all); i++)
        if (all[i] >= 0)
            close(all[i]);
}

static bool start(running *r, const mt_decode_order *order, const void *data, size_t size, mt_error *err)
{
    int ends[2] = {-1, -1}, leash[2] = {-1, -1};
    bool ok;

    *r = (running){.socket = -1, .leash = -1, .input = shared_memory(data, size), .output = shared_memory(NULL, 0)};
    if (r->input < 0 || r->output < 0)
        return no_memory(err);
    ok = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0 && pipe2(leash, O_CLOEXEC) == 0 &&
         mt_decode_send(mt_decode_process_socket(), order, sizeof(*order),
                        (const int[MT_DECODE_MOST]){ends[1], r->input, leash[0], r->output}, MT_DECODE_MOST);
    r->socket = ends[0];
    r->leash = leash[1];
    if (ends[1] >= 0)
        close(ends[1]);
    if (leash[0] >= 0)
        close(leash[0]);
    if (ok)
        mt_decode_count(false);
    else
        mt_fail(err, MT_E_IO, "no process can be had that reads PDFs: check the server's log and its limits");
    return ok;
}

static bool too_much(mt_error *err)
{
    return mt_fail(err, MT_E_INVALID,
                   "the PDF takes more time, memory or room than one may: send fewer pages of it, or its text");
}

/* Waits for the program's end. */
static bool wait_for(const running *r, const mt_media_watch *watch, mt_decode_message *in, mt_error *err)
{
    const uint64_t until = mt_clock_ns() + MT_LIMIT_PDF_MS * UINT64_C(1000000);
    struct pollfd from = {.fd = r->socket, .events = POLLIN};
    size_t count;

    for (;;) {
        const int came = poll(&from, 1, LOOK_MS);

        if (came > 0)
            break;
        if (mt_media_stopped(watch))
            return mt_codec_stopped(err);
        if (mt_clock_ns() > until)
            return too_much(err);
    }
    in->text[0] = '\0';
    if (!mt_decode_receive(r->socket, in, sizeof(*in), NULL, 0, &count) || in->kind != MT_DECODE_DONE)
        return mt_fail(err, MT_E_IO, "the program that reads PDFs could not be run: look at the server's log");
    in->text[sizeof(in->text) - 1] = '\0';
    return true;
}

/* Whether the program ended well; else *err says why not. */
static bool judge(const mt_decode_message *in, uint64_t wrote, mt_error *err)
{
    const int status = (int)in->size;

    if (WIFSIGNALED(status) &&
        (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGXFSZ || WTERMSIG(status) == SIGKILL))
        return too_much(err);
    if (WIFSIGNALED(status)) {
        mt_decode_count(true);
        return mt_fail(err, MT_E_INVALID, "the PDF cannot be read: it made its reader fail; send another, or its text");
    }
    if (WEXITSTATUS(status) == 127)
        return mt_fail(err, MT_E_IO, "the program that reads PDFs could not be run here: is poppler-utils whole?");
    if (strstr(in->text, "Incorrect password"))
        return mt_fail(err, MT_E_INVALID, "the PDF is encrypted: send it without a password");
    if (strstr(in->text, "out of memory") || strstr(in->text, "bad_alloc") || strstr(in->text, "Out of memory"))
        return too_much(err);
    if (WEXITSTATUS(status) != 0 || wrote == 0)
        return mt_fail(
            err, MT_E_INVALID,
            "the file is a PDF that cannot be read: it is damaged, cut off, or has no pages; send another, or its "
            "text");
    return true;
}

static bool collect(const running *r, uint64_t bytes, mt_buf *out, mt_error *err)
{
    char piece[65536];

    for (uint64_t at = 0; at < bytes;) {
        const ssize_t n = pread(r->output, piece, sizeof(piece), (off_t)at);

        if (n <= 0 || !mt_buf_add(out, piece, (size_t)n))
            return n > 0 && !out->refused ? too_much(err) : no_memory(err);
        at += (uint64_t)n;
    }
    return true;
}

static bool run(mt_decode_order *order, const void *data, size_t size, const mt_media_watch *watch, mt_buf *out,
                uint64_t *cpu_ns, mt_error *err)
{
    static mt_decode_message none;
    mt_decode_message in = none;
    struct stat st = {.st_size = 0};
    running r;
    bool ok;

    if (!mt_decode_process_is_open())
        return mt_fail(err, MT_E_INVALID,
                       "PDFs are read in processes of their own, which this server does not have (--sandbox): send "
                       "text, or pictures of the pages");
    if (!mt_pdf_path(order->program))
        return mt_fail(
            err, MT_E_INVALID,
            "PDFs are read by the programs of poppler-utils, which are not installed here: install them and start the "
            "server again, or send text or pictures of the pages");
    order->memory = MT_LIMIT_PDF_MEMORY;
    order->seconds = MT_LIMIT_PDF_SECONDS;
    ok = start(&r, order, data, size, err) && wait_for(&r, watch, &in, err);
    *cpu_ns += in.cpu_ns;
    ok = ok && (fstat(r.output, &st) == 0 || no_memory(err)) && judge(&in, (uint64_t)st.st_size, err) &&
         collect(&r, (uint64_t)st.st_size, out, err);
    let_go(&r);
    return ok;
}

#else

static bool run(mt_decode_order *order, const void *data, size_t size, const mt_media_watch *watch, mt_buf *out,
                uint64_t *cpu_ns, mt_error *err)
{
    (void)order, (void)data, (void)size, (void)watch, (void)out, (void)cpu_ns;
    return mt_fail(err, MT_E_INVALID, "PDFs are read on Linux alone: send text, or pictures of the pages");
}

#endif

bool mt_pdf_text(const void *data, size_t size, uint32_t pages, const mt_media_watch *watch, mt_buf *out,
                 uint64_t *cpu_ns, mt_error *err)
{
    mt_decode_order order = {.program = MT_PDF_TEXT, .first = 1, .last = pages, .output = MT_LIMIT_PDF_TEXT};

    return run(&order, data, size, watch, out, cpu_ns, err);
}

bool mt_pdf_pictures(const void *data, size_t size, uint32_t pages, uint32_t side, const mt_media_watch *watch,
                     mt_buf *out, uint64_t *cpu_ns, mt_error *err)
{
    mt_decode_order order = {.program = MT_PDF_PICTURES,
                             .first = 1,
                             .last = pages,
                             .side = side < MT_LIMIT_PDF_SIDE ? side : MT_LIMIT_PDF_SIDE,
                             .output = MT_LIMIT_PDF_PICTURES};

    return run(&order, data, size, watch, out, cpu_ns, err);
}
