/* Writes safetensors files (synth.h) as a stream: length, JSON header, then the tensors. Within a file those with wide
   elements come first, so that every tensor is aligned without gaps. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "base/progress.h"
#include "synth/synth.h"
#include "weights/limits.h"

enum { PIECE = 4 << 20 }; /* bytes made and written at a time */

/* The state of writing all files. */
typedef struct writer {
    const char *dir, *format;
    const mt_synth_plan *plan;
    mt_synth_filler *filler;
    unsigned char *piece;
    uint64_t total;
    mt_progress progress;
    size_t shards;
    mt_error *err;
} writer;

typedef struct shard {
    size_t begin, end; /* range of tensors in the plan */
    int fd;
    char name[64], path[MT_LIMIT_PATH];
} shard;

static bool put(writer *w, const shard *s, const void *data, size_t size)
{
    const char *at = data;

    while (size) {
        ssize_t n = write(s->fd, at, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return mt_fail(w->err, MT_E_IO, "cannot write '%s': %s", s->path, n ? strerror(errno) : "no progress");
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bool put_tensor(writer *w, const shard *s, const mt_synth_tensor *t)
{
    uint64_t count = mt_synth_tensor_bytes(t) / t->element_size;
    size_t piece = PIECE / t->element_size;

    for (uint64_t begin = 0; begin < count; begin += piece) {
        size_t n = count - begin < piece ? (size_t)(count - begin) : piece;
        mt_synth_fill(w->filler, t, begin, n, w->piece);
        if (!put(w, s, w->piece, n * t->element_size))
            return false;
        mt_progress_add(&w->progress, n * t->element_size);
    }
    return true;
}

/* Calls visit for the shard's tensors in their order in the file. */
typedef bool visit_fn(writer *w, const shard *s, const mt_synth_tensor *t, void *ctx);

static bool each_tensor(writer *w, const shard *s, visit_fn *visit, void *ctx)
{
    static const size_t widths[] = {4, 2, 1};

    for (size_t k = 0; k < MT_COUNT(widths); k++)
        for (size_t i = s->begin; i < s->end; i++) {
            const mt_synth_tensor *t = &w->plan->tensors[i];
            if (t->element_size == widths[k] && !visit(w, s, t, ctx))
                return false;
        }
    return true;
}

typedef struct header {
    mt_buf text;
    uint64_t offset;
} header;

static bool visit_header(writer *w, const shard *s, const mt_synth_tensor *t, void *ctx)
{
    header *h = ctx;

    (void)w;
    (void)s;
    mt_json_write(&h->text, "%s:{'dtype':%s,'shape':[", t->name, t->dtype);
    for (size_t i = 0; i < t->ndim; i++)
        mt_json_write(&h->text, "%zu", t->dims[i]);
    mt_json_write(&h->text, "],'data_offsets':[%" PRIu64 ",%" PRIu64 "]}", h->offset,
                  h->offset + mt_synth_tensor_bytes(t));
    h->offset += mt_synth_tensor_bytes(t);
    return !h->text.full;
}

/* Writes a shard's header. */
static bool put_header(writer *w, const shard *s)
{
    header h = {.offset = 0};
    unsigned char length[8];
    bool ok;

    mt_buf_init(&h.text, MT_LIMIT_HEADER_BYTES);
    mt_json_write(&h.text, "{'__metadata__':{'format':%s}", w->format);
    ok = each_tensor(w, s, visit_header, &h) && mt_buf_puts(&h.text, "}");
    while (ok && h.text.len % 8)
        ok = mt_buf_puts(&h.text, " ");
    for (unsigned i = 0; i < sizeof(length); i++)
        length[i] = (unsigned char)((uint64_t)h.text.len >> 8 * i);
    if (!ok)
        mt_fail(w->err, MT_E_TOO_LARGE, "the header of '%s' is too large: use smaller shards", s->path);
    else
        ok = put(w, s, length, sizeof(length)) && put(w, s, h.text.data, h.text.len);
    mt_buf_free(&h.text);
    return ok;
}

static bool visit_data(writer *w, const shard *s, const mt_synth_tensor *t, void *ctx)
{
    (void)ctx;
    return put_tensor(w, s, t);
}

static bool open_new(int *fd, char path[MT_LIMIT_PATH], const char *dir, const char *name, mt_error *err)
{
    int n = snprintf(path, MT_LIMIT_PATH, "%s/%s", dir, name);

    if (n < 0 || n >= MT_LIMIT_PATH)
        return mt_fail(err, MT_E_INVALID, "the path '%s' is too long: choose a shorter one", dir);
    *fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (*fd < 0)
        return mt_fail(err, MT_E_IO, "cannot create '%s': %s", path, strerror(errno));
    return true;
}

static bool close_written(int fd, const char *path, bool ok, mt_error *err)
{
    if (close(fd) && ok)
        return mt_fail(err, MT_E_IO, "cannot finish '%s': %s", path, strerror(errno));
    return ok;
}

static bool write_shard(writer *w, shard *s)
{
    bool ok;

    if (!open_new(&s->fd, s->path, w->dir, s->name, w->err))
        return false;
    ok = put_header(w, s) && each_tensor(w, s, visit_data, NULL);
    return close_written(s->fd, s->path, ok, w->err);
}

/* The end of the tensors from begin on that fit a shard; at least one. */
static size_t shard_end(const mt_synth_plan *plan, size_t begin, uint64_t shard_bytes)
{
    uint64_t bytes = 0;
    size_t end = begin;

    do
        bytes += mt_synth_tensor_bytes(&plan->tensors[end++]);
    while (end < plan->count && bytes + mt_synth_tensor_bytes(&plan->tensors[end]) <= shard_bytes);
    return end;
}

static size_t count_shards(const mt_synth_plan *plan, uint64_t shard_bytes)
{
    size_t shards = 0;

    for (size_t begin = 0; begin < plan->count; begin = shard_end(plan, begin, shard_bytes))
        shards++;
    return shards;
}

static void index_shard(mt_buf *index, const writer *w, const shard *s)
{
    for (size_t i = s->begin; i < s->end; i++)
        mt_buf_printf(index, "%s\n    \"%s\": \"%s\"", i ? "," : "", w->plan->tensors[i].name, s->name);
}

/* Writes all shards and the index. */
static bool write_shards(writer *w, uint64_t shard_bytes)
{
    mt_buf index;
    size_t number = 0;
    bool ok = true;

    mt_buf_init(&index, MT_LIMIT_HEADER_BYTES);
    mt_buf_printf(&index, "{\n  \"metadata\": {\"total_size\": %" PRIu64 "},\n  \"weight_map\": {", w->total);
    for (size_t begin = 0; ok && begin < w->plan->count;) {
        shard s = {.begin = begin, .end = shard_end(w->plan, begin, shard_bytes)};
        if (w->shards == 1)
            snprintf(s.name, sizeof(s.name), "model.safetensors");
        else
            snprintf(s.name, sizeof(s.name), "model-%05zu-of-%05zu.safetensors", ++number, w->shards);
        ok = write_shard(w, &s);
        index_shard(&index, w, &s);
        begin = s.end;
    }
    mt_buf_puts(&index, "\n  }\n}\n");
    if (ok && w->shards > 1)
        ok = mt_synth_write_file(w->dir, "model.safetensors.index.json", &index, w->err);
    mt_buf_free(&index);
    return ok;
}

static void begin(writer *w)
{
    for (size_t i = 0; i < w->plan->count; i++)
        w->total += mt_synth_tensor_bytes(&w->plan->tensors[i]);
    mt_progress_begin(&w->progress, "weights.drawing", "drawing weights", w->total);
    w->piece = mt_alloc(PIECE);
}

static bool end(writer *w, bool ok)
{
    mt_progress_end();
    mt_free(w->piece);
    mt_synth_filler_free(w->filler);
    return ok;
}

bool mt_synth_write(const char *dir, const mt_synth_plan *plan, const char *format, uint64_t seed, uint64_t shard_bytes,
                    mt_error *err)
{
    writer w = {.dir = dir, .format = format, .plan = plan, .err = err, .shards = count_shards(plan, shard_bytes)};

    w.filler = mt_synth_filler_new(seed);
    begin(&w);
    return end(&w, write_shards(&w, shard_bytes));
}

bool mt_synth_write_one(int fd, const mt_synth_plan *plan, const char *format, uint64_t seed, mt_error *err)
{
    writer w = {.format = format, .plan = plan, .err = err, .shards = 1};
    shard s = {.end = plan->count, .fd = fd, .path = "the weights"};

    w.filler = mt_synth_filler_new(seed);
    begin(&w);
    return end(&w, put_header(&w, &s) && each_tensor(&w, &s, visit_data, NULL));
}

bool mt_synth_write_file(const char *dir, const char *name, const mt_buf *content, mt_error *err)
{
    writer w = {.err = err};
    shard s;

    if (!open_new(&s.fd, s.path, dir, name, err))
        return false;
    return close_written(s.fd, s.path, put(&w, &s, content->data, content->len), err);
}
