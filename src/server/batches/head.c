/* The head of a batch: JSON, written to a new file that then replaces the old one. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "server/batches/bulk.h"

#define NEW ".new"

const char *mt_bulk_path_of(mt_bulk_path path, const mt_bulk *batch, const char *end)
{
    snprintf(path, sizeof(mt_bulk_path), "%s%s", batch->id, end);
    return path;
}

const char *mt_bulk_endpoint(const char *path, const mt_dialect **dialect)
{
    static const struct {
        const char *path;
        const mt_dialect *dialect;
    } known[] = {{"/v1/chat/completions", &mt_openai_chat},
                 {"/v1/completions", &mt_openai_completions},
                 {"/v1/responses", &mt_openai_responses},
                 {"/v1/embeddings", &mt_openai_embeddings},
                 {"/v1/messages", &mt_anthropic_messages}};

    for (size_t i = 0; path && i < MT_COUNT(known); i++)
        if (strcmp(known[i].path, path) == 0) {
            *dialect = known[i].dialect;
            return known[i].path;
        }
    return NULL;
}

void mt_bulk_head_write(mt_buf *out, const mt_bulk *b)
{
    mt_json_write(out, "{'id':%s,'owner':%s,'anthropic':%hhd,'endpoint':%s,'input':%s,'metadata':%-s,'window':%s",
                  b->id, b->owner, b->anthropic, b->endpoint, b->input, b->metadata ? b->metadata : "null", b->window);
    mt_json_write(out, "'output_seconds':%" PRId64 ",'state':%d,'expires':%" PRId64 ",'output':%s,'errors_file':%s",
                  b->output_seconds, (int)b->state, b->expires, b->output, b->errors_file);
    mt_json_write(out, "'errors':%-s,'total':%zu,'cancel':%" PRId64 ",'at':[", b->errors ? b->errors : "null", b->total,
                  b->cancel);
    for (size_t i = 0; i < MT_BULK_STATES; i++)
        mt_json_write(out, "%" PRId64, b->at[i]);
    mt_json_write(out, "],'counts':[");
    for (size_t i = 0; i < MT_BULK_RESULTS; i++)
        mt_json_write(out, "%zu", b->counts[i]);
    mt_json_write(out, "]}");
}

static bool fail_write(mt_error *err)
{
    return mt_fail(err, MT_E_IO, "the batch cannot be written: %s", strerror(errno));
}

bool mt_bulk_head_keep(int folder, const char *id, const mt_buf *head, mt_error *err)
{
    char path[MT_RANDOM_ID + sizeof(MT_BULK_HEAD)], fresh[MT_RANDOM_ID + sizeof(NEW)];
    bool ok;
    int fd;

    snprintf(path, sizeof(path), "%s" MT_BULK_HEAD, id);
    snprintf(fresh, sizeof(fresh), "%s" NEW, id);
    fd = openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fail_write(err);
    ok = write(fd, head->data, head->len) == (ssize_t)head->len && fsync(fd) == 0;
    close(fd);
    if (!ok || renameat(folder, fresh, folder, path) != 0)
        return fail_write(err);
    (void)!fsync(folder); /* some file systems have none for folders */
    return true;
}

static bool copy(char *out, size_t size, const json_t *object, const char *key)
{
    const char *text = mt_json_word(json_object_get(object, key));

    return text && (size_t)snprintf(out, size, "%s", text) < size;
}

/* The text of a member; NULL where it is null. */
static char *copy_json(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    mt_buf text = {.limit = SIZE_MAX};

    if (!value || json_is_null(value) || !mt_json_tree_write(&text, value))
        mt_buf_free(&text);
    return text.data;
}

static bool read_json(mt_bulk *b, const json_t *o)
{
    const json_t *at = json_object_get(o, "at");
    const json_int_t state = json_integer_value(json_object_get(o, "state")),
                     total = json_integer_value(json_object_get(o, "total"));

    b->endpoint = mt_bulk_endpoint(mt_json_word(json_object_get(o, "endpoint")), &b->dialect);
    b->anthropic = json_is_true(json_object_get(o, "anthropic"));
    b->cancel = json_integer_value(json_object_get(o, "cancel"));
    b->output_seconds = json_integer_value(json_object_get(o, "output_seconds"));
    b->expires = json_integer_value(json_object_get(o, "expires"));
    b->state = (mt_bulk_state)state;
    b->total = (size_t)total;
    b->metadata = copy_json(o, "metadata");
    b->errors = copy_json(o, "errors");
    for (size_t i = 0; i < MT_BULK_STATES; i++)
        b->at[i] = json_integer_value(json_array_get(at, i));
    for (size_t i = 0; i < MT_BULK_RESULTS; i++)
        b->counts[i] = (size_t)json_integer_value(json_array_get(json_object_get(o, "counts"), i));
    return b->endpoint && state >= 0 && state < MT_BULK_STATES && total >= 0 && total <= MT_LIMIT_BATCH_LINES &&
           json_array_size(at) == MT_BULK_STATES && copy(b->id, sizeof(b->id), o, "id") &&
           copy(b->owner, sizeof(b->owner), o, "owner") && copy(b->input, sizeof(b->input), o, "input") &&
           copy(b->window, sizeof(b->window), o, "window") && copy(b->output, sizeof(b->output), o, "output") &&
           copy(b->errors_file, sizeof(b->errors_file), o, "errors_file");
}

mt_bulk *mt_bulk_head_read(int folder, const char *id)
{
    char path[MT_RANDOM_ID + sizeof(MT_BULK_HEAD)], piece[4096];
    mt_buf text = {.limit = MT_LIMIT_BATCH_HEAD};
    mt_bulk *b = mt_alloc(sizeof(*b));
    json_t *object;
    ssize_t n = 0;
    bool ok;
    int fd;

    *b = (mt_bulk){.lines_fd = -1};
    snprintf(path, sizeof(path), "%s" MT_BULK_HEAD, id);
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    while (fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0)
        mt_buf_add(&text, piece, (size_t)n);
    if (fd >= 0)
        close(fd);
    object = fd >= 0 && n == 0 && text.len && !text.full ? mt_json_tree_try(text.data, text.len) : NULL;
    ok = object && read_json(b, object) && strcmp(b->id, id) == 0;
    json_decref(object);
    mt_buf_free(&text);
    if (ok)
        return b;
    mt_bulk_free(b);
    return NULL;
}

void mt_bulk_free(mt_bulk *b)
{
    if (b->lines_fd >= 0)
        close(b->lines_fd);
    mt_journal_close(b->journal);
    mt_files_drop(b->claim);
    mt_free(b->lines);
    mt_free(b->metadata);
    mt_free(b->errors);
    mt_free(b);
}
