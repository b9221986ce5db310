/* The lines of a batch: checked one by one, copied to the batch's own file, because the client may delete the uploaded
   one, and read again when they are answered. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/limits.h"
#include "base/alloc.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "media/digest.h"
#include "server/batches/bulk.h"

enum { PIECE = 256 << 10 };

/* ---- one line ---- */

static bool is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    return text[strspn(text, letters)] == '\0';
}

static bool read_custom(const mt_bulk *b, const json_t *line, const char **custom, mt_failure *why)
{
    const json_t *value = json_object_get(line, "custom_id");

    *custom = mt_json_word(value);
    if (!value)
        return mt_failure_set(why, 400, "missing_required_parameter", "custom_id",
                              "\"custom_id\" is missing: give each line a name of its own");
    if (!*custom || !**custom || strlen(*custom) > MT_LIMIT_BATCH_NAME)
        return mt_failure_value(why, "custom_id", "is no name: send a string of 1 to %d bytes", MT_LIMIT_BATCH_NAME);
    return !b->anthropic || (strlen(*custom) <= 64 && is_name(*custom)) ||
           mt_failure_value(why, "custom_id", "is no name: send 1 to 64 letters, digits, \"_\" and \"-\"");
}

/* Checks the members that only OpenAI's lines have. */
static bool read_request(const mt_bulk *b, const json_t *line, mt_failure *why)
{
    const char *method = mt_json_word(json_object_get(line, "method")),
               *url = mt_json_word(json_object_get(line, "url"));

    if (!method || strcmp(method, "POST") != 0)
        return mt_failure_set(why, 400, method ? "invalid_method" : "missing_required_parameter", "method",
                              "\"method\" must be \"POST\"");
    return (url && strcmp(url, b->endpoint) == 0) ||
           mt_failure_set(why, 400, url ? "mismatched_url" : "missing_required_parameter", "url",
                          "\"url\" must be the batch's endpoint, \"%s\"", b->endpoint);
}

bool mt_bulk_line_read(const mt_bulk *b, const json_t *line, const char **custom, const json_t **body, mt_failure *why)
{
    const char *field = b->anthropic ? "params" : "body";

    if (!json_is_object(line))
        return mt_failure_set(why, 400, "invalid_json_line", NULL, "the line is no JSON object");
    *body = json_object_get(line, field);
    return read_custom(b, line, custom, why) && (b->anthropic || read_request(b, line, why)) &&
           (json_is_object(*body) || mt_failure_set(why, 400, *body ? "invalid_value" : "missing_required_parameter",
                                                    field, "\"%s\" must be an object: the body of a request", field));
}

static void name_of(mt_bulk_name *out, const char *custom, size_t line)
{
    uint8_t digest[MT_DIGEST_BYTES];

    mt_digest(digest, &(mt_digest_part){custom, strlen(custom)}, 1);
    memcpy(out->digest, digest, sizeof(out->digest));
    out->line = (uint32_t)line;
}

static int by_digest(const void *a, const void *b)
{
    const mt_bulk_name *x = a, *y = b;
    const int order = memcmp(x->digest, y->digest, sizeof(x->digest));

    return order ? order : (x->line > y->line) - (x->line < y->line);
}

/* The first line with the custom_id of an earlier line; 0: there is none. */
static size_t find_twin(mt_bulk_name *names, size_t count)
{
    size_t first = 0;

    if (count > 1)
        qsort(names, count, sizeof(*names), by_digest);
    for (size_t i = 1; i < count; i++)
        if (memcmp(names[i].digest, names[i - 1].digest, sizeof(names[i].digest)) == 0 &&
            (!first || names[i].line < first))
            first = names[i].line;
    return first;
}

/* ---- the batch's own file ---- */

typedef struct writer {
    mt_bulk *batch;
    int fd;
    mt_buf out; /* lines that are not written yet */
} writer;

static bool fail_write(mt_error *err)
{
    return mt_fail(err, MT_E_IO, "the lines of the batch cannot be written: %s", strerror(errno));
}

static bool flush(writer *w, mt_error *err)
{
    size_t done = 0;

    if (!mt_files_claim_more(w->batch->claim, w->out.len, false, err))
        return false;
    while (done < w->out.len) {
        const ssize_t n = write(w->fd, w->out.data + done, w->out.len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_write(err);
        done += (size_t)n;
    }
    w->out.len = 0;
    return true;
}

static bool put(writer *w, const char *line, size_t len, mt_error *err)
{
    w->batch->total++;
    if (!mt_buf_add(&w->out, line, len) || !mt_buf_add(&w->out, "\n", 1))
        return mt_fail(err, MT_E_MEMORY, "there is no memory for the batch: try again in a moment");
    return w->out.len < PIECE || flush(w, err);
}

static bool begin(writer *w, mt_bulk *b, int folder, mt_files *files, mt_error *err)
{
    mt_bulk_path path;

    *w = (writer){.batch = b, .fd = -1, .out = {.limit = SIZE_MAX}};
    b->total = 0;
    mt_files_drop(b->claim);
    b->claim = mt_files_claim(files, b->owner, false, err);
    if (!b->claim)
        return false;
    w->fd = openat(folder, mt_bulk_path_of(path, b, MT_BULK_LINES),
                   O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return w->fd >= 0 || fail_write(err);
}

/* Syncs and closes the file; drop: removes it instead. False: *err, and the file is removed. */
static bool end(writer *w, int folder, bool drop, mt_error *err)
{
    bool ok = drop || w->fd < 0 || (flush(w, err) && (fsync(w->fd) == 0 || fail_write(err)));
    mt_bulk_path path;

    if (w->fd >= 0)
        close(w->fd);
    mt_buf_free(&w->out);
    if (ok && !drop)
        return true;
    unlinkat(folder, mt_bulk_path_of(path, w->batch, MT_BULK_LINES), 0);
    mt_files_drop(w->batch->claim);
    w->batch->claim = NULL;
    return ok;
}

/* ---- OpenAI's file ---- */

typedef struct checker {
    writer w;
    size_t number; /* of the current line in the client's file, from 1 on */
    size_t faults;
    mt_buf *errors;
    mt_bulk_name *names;
    size_t name_count, name_cap;
    size_t line_most;
} checker;

static void blame(checker *c, size_t line, const mt_failure *why)
{
    c->faults++;
    mt_json_write(c->errors, "{'code':%s,'message':%s,'param':%s", why->code, why->text,
                  *why->param ? why->param : NULL);
    if (line)
        mt_json_write(c->errors, "'line':%zu}", line);
    else
        mt_json_write(c->errors, "'line':null}");
}

static bool is_blank(const char *line, size_t len)
{
    while (len > 0 && strchr(" \t\r", line[len - 1]) && line[len - 1])
        len--;
    return len == 0;
}

static bool check_line(checker *c, const char *line, size_t len, mt_error *err)
{
    const mt_bulk *b = c->w.batch;
    const char *custom = NULL;
    const json_t *body;
    mt_failure why;
    json_t *object;
    bool ok;

    c->number++;
    if (is_blank(line, len))
        return true;
    object = mt_json_tree_try(line, len);
    ok = (object || mt_failure_set(&why, 400, "invalid_json_line", NULL, "the line is not JSON")) &&
         mt_bulk_line_read(b, object, &custom, &body, &why);
    if (ok && b->total == MT_LIMIT_BATCH_LINES)
        ok = mt_failure_set(&why, 400, "too_many_tasks", NULL, "the file has more than %d lines: make several batches",
                            MT_LIMIT_BATCH_LINES);
    if (ok) {
        c->names = mt_grow(c->names, &c->name_cap, c->name_count + 1, sizeof(*c->names));
        name_of(&c->names[c->name_count++], custom, c->number);
    } else
        blame(c, c->number, &why);
    json_decref(object);
    return !ok || c->faults > 0 || put(&c->w, line, len, err);
}

/* Reads the file line by line. */
static bool check_all(checker *c, FILE *in, const atomic_bool *stop, mt_error *err)
{
    mt_buf line = {.limit = c->line_most};
    char *piece = mt_alloc(PIECE);
    bool ok = true;
    size_t n;

    while (ok && c->faults < MT_LIMIT_BATCH_ERRORS && (n = fread(piece, 1, PIECE, in)) > 0) {
        for (size_t at = 0; ok && at < n && c->faults < MT_LIMIT_BATCH_ERRORS;) {
            const char *end = memchr(piece + at, '\n', n - at);
            const size_t len = end ? (size_t)(end - piece) - at : n - at;

            if (!mt_buf_add(&line, piece + at, len))
                ok = mt_fail(err, MT_E_TOO_LARGE, "line %zu has more than %zu bytes", c->number + 1, c->line_most);
            else if (end) {
                ok = check_line(c, line.len ? line.data : "", line.len, err);
                line.len = 0;
            }
            at += len + 1;
        }
        if (atomic_load(stop))
            ok = mt_fail(err, MT_E_AWAY, "the server ends");
    }
    if (ok && line.len > 0 && c->faults < MT_LIMIT_BATCH_ERRORS)
        ok = check_line(c, line.data, line.len, err);
    if (ok && ferror(in))
        ok = mt_fail(err, MT_E_IO, "the file cannot be read to its end");
    mt_buf_free(&line);
    mt_free(piece);
    return ok;
}

bool mt_bulk_copy(mt_bulk *b, int folder, mt_files *files, size_t line_most, const atomic_bool *stop, mt_buf *errors,
                  mt_error *err)
{
    checker c = {.errors = errors, .line_most = line_most};
    mt_files_about about;
    const int fd = mt_files_read(files, b->owner, b->input, &about, err);
    FILE *in = fd >= 0 ? fdopen(fd, "rb") : NULL;
    bool ok = in && begin(&c.w, b, folder, files, err);
    mt_failure why;
    mt_error later;
    size_t twin;

    mt_json_write(errors, "[");
    ok = ok && check_all(&c, in, stop, err);
    if (ok && c.faults == 0 && (twin = find_twin(c.names, c.name_count))) {
        mt_failure_set(&why, 400, "duplicate_custom_id", "custom_id", "a line before this one has the same custom_id");
        blame(&c, twin, &why);
    }
    if (ok && c.faults == 0 && b->total == 0) {
        mt_failure_set(&why, 400, "empty_file", NULL, "the file has no lines");
        blame(&c, 0, &why);
    }
    mt_json_write(errors, "]");
    if (in && b->claim && !end(&c.w, folder, !ok || c.faults > 0, ok ? err : &later))
        ok = false;
    if (in)
        fclose(in);
    else if (fd >= 0)
        close(fd);
    if (!ok || c.faults == 0)
        mt_buf_free(errors);
    mt_free(c.names);
    return ok;
}

/* ---- Anthropic's list ---- */

static bool spell_one(writer *w, const json_t *request, size_t number, mt_bulk_name *name, mt_failure *why)
{
    mt_buf line = {.limit = SIZE_MAX};
    char place[2 * MT_FAILURE_PARAM];
    const char *custom;
    const json_t *body;
    mt_error err = {0};
    bool ok;

    if (!mt_bulk_line_read(w->batch, request, &custom, &body, why)) {
        snprintf(place, sizeof(place), "requests.%zu%s%s", number, *why->param ? "." : "", why->param);
        mt_failure_rename(why, place);
        return false;
    }
    name_of(name, custom, number + 1);
    ok = mt_json_tree_write(&line, request) ? put(w, line.data, line.len, &err)
                                            : mt_fail(&err, MT_E_MEMORY, "there is no memory for the batch");
    mt_buf_free(&line);
    return ok || mt_failure_from(why, &err, "requests");
}

bool mt_bulk_spell(mt_bulk *b, int folder, mt_files *files, const json_t *requests, mt_failure *why)
{
    const size_t count = json_array_size(requests);
    mt_bulk_name *names;
    mt_error err = {0};
    writer w;
    bool ok;
    size_t twin;

    if (!json_is_array(requests))
        return mt_failure_type(why, "requests", requests, "a list");
    if (count == 0 || count > MT_LIMIT_BATCH_LINES)
        return mt_failure_value(why, "requests", "has %zu requests: send 1 to %d", count, MT_LIMIT_BATCH_LINES);
    names = mt_alloc_array(count, sizeof(*names));
    ok = begin(&w, b, folder, files, &err) || mt_failure_from(why, &err, "requests");
    for (size_t i = 0; ok && i < count; i++)
        ok = spell_one(&w, json_array_get(requests, i), i, &names[i], why);
    if (ok && (twin = find_twin(names, count)))
        ok = mt_failure_value(why, "requests", "has the same custom_id twice, the second time as number %zu", twin - 1);
    if (b->claim && !end(&w, folder, !ok, &err) && ok)
        ok = mt_failure_from(why, &err, "requests");
    mt_free(names);
    return ok;
}

/* ---- reading them again ---- */

bool mt_bulk_index(mt_bulk *b, int folder, mt_error *err)
{
    mt_bulk_path path;
    char *piece = mt_alloc(PIECE);
    uint64_t at = 0, begin = 0;
    size_t count = 0;
    ssize_t n = 0;

    b->lines_fd = openat(folder, mt_bulk_path_of(path, b, MT_BULK_LINES), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    b->lines = mt_alloc_array(b->total, sizeof(*b->lines));
    while (b->lines_fd >= 0 && (n = read(b->lines_fd, piece, PIECE)) > 0) {
        for (const char *p = piece, *end; (end = memchr(p, '\n', (size_t)(piece + n - p))); p = end + 1) {
            const uint64_t here = at + (uint64_t)(end - piece);

            if (count < b->total)
                b->lines[count] = (mt_bulk_line){.begin = begin, .len = (uint32_t)(here - begin)};
            count++;
            begin = here + 1;
        }
        at += (uint64_t)n;
    }
    mt_free(piece);
    return (n == 0 && count == b->total) ||
           mt_fail(err, MT_E_IO, "the lines of the batch \"%s\" cannot be read: they are not as they were written",
                   b->id);
}

json_t *mt_bulk_load(const mt_bulk *b, size_t line, mt_error *err)
{
    const mt_bulk_line *l = &b->lines[line];
    char *text = mt_alloc((size_t)l->len + 1);
    json_t *object = NULL;

    if (pread(b->lines_fd, text, l->len, (off_t)l->begin) == (ssize_t)l->len)
        object = mt_json_tree_try(text, l->len);
    mt_free(text);
    if (!object)
        mt_fail(err, MT_E_IO, "line %zu of the batch \"%s\" cannot be read", line + 1, b->id);
    return object;
}
