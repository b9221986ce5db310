/* The command motet batch: has the requests of a file answered, by a server at a URL or by one that it starts for a
   model, and writes the results beside the file. The server keeps the results of lines that are done (docs/batches.md),
   so after Ctrl-C, a crash, or the server's end the same command goes on where it stopped. It finds its batch by the
   digest of the file, which it puts in the batch's metadata. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/json_body.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/json_tree.h"
#include "base/json_write.h"
#include "base/limits.h"
#include "cli/chat.h"
#include "cli/cli.h"
#include "hub/find.h"
#include "media/digest.h"

enum { EXIT_INTERRUPTED = 130, LOOK_MS = 500 };

#define MARK "motet_batch" /* the member of the metadata with the digest */
#define MOST (600ul << 20) /* bytes of a file */

typedef struct work {
    mt_chat_server server;
    const char *file;
    char digest[2 * MT_DIGEST_BYTES + 1];
    char results[MT_LIMIT_PATH], errors[MT_LIMIT_PATH], kept[MT_LIMIT_PATH];
    bool shows; /* standard error is a terminal */
    bool own;   /* the server was started by this command */
    bool made;  /* there is a batch, whose lines are counted below */
    long long done, total;
} work;

/* Sends a request; the JSON of the answer, a new reference. NULL: *err. */
static json_t *ask(const work *w, const char *path, const char *sent, mt_error *err)
{
    mt_buf body = {.limit = 64u << 20};
    const long status = sent ? mt_chat_post(&w->server, path, sent, &body) : mt_chat_get(&w->server, path, &body);
    json_t *answer = json_loads(body.data ? body.data : "", 0, NULL);
    const char *said = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));

    if (status == 0)
        mt_fail(err, MT_E_IO, "the server does not answer: start it again, and then this command");
    else if (status != 200 || !answer)
        mt_fail(err, MT_E_INVALID, "the server says: %s", said ? said : "nothing that can be read");
    mt_buf_free(&body);
    if (status == 200 && answer)
        return answer;
    json_decref(answer);
    return NULL;
}

static const char *word(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

/* Names of the files that are written: those of the results end ".results.jsonl" where the lines' ends ".jsonl". */
static bool name_files(work *w, mt_error *err)
{
    static const char ending[] = ".jsonl";
    const size_t len = strlen(w->file);
    const bool plain = len > sizeof(ending) - 1 && strcmp(w->file + len - (sizeof(ending) - 1), ending) == 0;
    const int stem = (int)(plain ? len - (sizeof(ending) - 1) : len);

    if (snprintf(w->results, sizeof(w->results), "%.*s.results.jsonl", stem, w->file) >= (int)sizeof(w->results) ||
        snprintf(w->errors, sizeof(w->errors), "%.*s.errors.jsonl", stem, w->file) >= (int)sizeof(w->errors) ||
        snprintf(w->kept, sizeof(w->kept), "%.*s.motet", stem, w->file) >= (int)sizeof(w->kept))
        return mt_fail(err, MT_E_INVALID, "the name \"%.200s\" is too long", w->file);
    return true;
}

/* Reads the file: its digest, and the path that its first line is for. */
static bool look_at(work *w, char url[64], mt_error *err)
{
    mt_buf text = {.limit = MOST};
    uint8_t digest[MT_DIGEST_BYTES];
    const char *end, *begin;
    json_t *line;
    bool ok;

    if (!mt_file_read(&text, w->file, err))
        return false;
    mt_digest(digest, &(mt_digest_part){text.data, text.len}, 1);
    mt_hex_text(digest, sizeof(digest), w->digest);
    begin = text.data ? text.data + strspn(text.data, " \t\r\n") : "";
    end = begin + strcspn(begin, "\n");
    line = mt_json_tree_try(begin, (size_t)(end - begin));
    snprintf(url, 64, "%s", word(line, "url"));
    ok = *url ||
         mt_fail(err, MT_E_INVALID,
                 "the first line of \"%.200s\" is no request: write a line of JSON for each, with \"custom_id\", "
                 "\"method\", \"url\" and \"body\" (docs/batches.md)",
                 w->file);
    json_decref(line);
    mt_buf_free(&text);
    return ok;
}

/* Whether a batch is one of this file that runs or is completed. */
static bool is_ours(const work *w, const json_t *b)
{
    const char *status = word(b, "status");

    return strcmp(word(json_object_get(b, "metadata"), MARK), w->digest) == 0 && strcmp(status, "failed") != 0 &&
           strncmp(status, "cancel", 6) != 0 && strcmp(status, "expired") != 0;
}

/* The batch of this file that the server has; "" where it has none. */
static bool find(const work *w, char id[64], mt_error *err)
{
    char path[128] = "/v1/batches?limit=100";
    bool more = true;

    *id = '\0';
    while (more && !*id) {
        json_t *list = ask(w, path, NULL, err), *data = json_object_get(list, "data");

        if (!list)
            return false;
        for (size_t i = 0; i < json_array_size(data) && !*id; i++)
            if (is_ours(w, json_array_get(data, i)))
                snprintf(id, 64, "%s", word(json_array_get(data, i), "id"));
        more = json_is_true(json_object_get(list, "has_more"));
        snprintf(path, sizeof(path), "/v1/batches?limit=100&after=%.64s", word(list, "last_id"));
        json_decref(list);
    }
    return true;
}

static bool create(const work *w, const char *url, char id[64], mt_error *err)
{
    mt_buf body = {.limit = 1u << 20};
    json_t *uploaded = NULL, *made = NULL;
    const char *said;
    long status;

    status = mt_chat_upload(&w->server, "/v1/files", "batch", w->file, &body);
    uploaded = json_loads(body.data ? body.data : "", 0, NULL);
    said = json_string_value(json_object_get(json_object_get(uploaded, "error"), "message"));
    if (status != 200)
        mt_fail(err, MT_E_INVALID, "the server says: %s", said ? said : "nothing that can be read");
    else {
        body.len = 0;
        mt_json_write(&body, "{'input_file_id':%s,'endpoint':%s,'completion_window':'7d','metadata':{'" MARK "':%s}}",
                      word(uploaded, "id"), url, w->digest);
        made = ask(w, "/v1/batches", body.data, err);
    }
    if (made)
        snprintf(id, 64, "%s", word(made, "id"));
    json_decref(uploaded);
    json_decref(made);
    mt_buf_free(&body);
    return made != NULL;
}

static void show(work *w, const json_t *batch, bool last)
{
    const json_t *counts = json_object_get(batch, "request_counts");
    const long long answered = json_integer_value(json_object_get(counts, "completed")),
                    errors = json_integer_value(json_object_get(counts, "failed"));

    w->made = true;
    w->done = answered + errors;
    w->total = json_integer_value(json_object_get(counts, "total"));
    if (!w->shows && !last)
        return;
    fprintf(stderr, "%s%s: %lld of %lld lines answered, %lld errors%s", w->shows ? "\r" : "", word(batch, "status"),
            answered, w->total, errors, last ? "\n" : "   ");
}

/* Waits for the end of a batch: a new reference. NULL: *err, or the user has pressed Ctrl-C. */
static json_t *wait_for(work *w, const char *id, mt_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    char path[128];
    json_t *batch;

    snprintf(path, sizeof(path), "/v1/batches/%s", id);
    while (!mt_chat_interrupted() && (batch = ask(w, path, NULL, err))) {
        const char *status = word(batch, "status");
        const bool over = strcmp(status, "completed") == 0 || strcmp(status, "failed") == 0 ||
                          strcmp(status, "expired") == 0 || strcmp(status, "cancelled") == 0;

        show(w, batch, over);
        if (over)
            return batch;
        json_decref(batch);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Writes a file of results; "" is none, and leaves none there. */
static bool fetch(const work *w, const char *id, const char *to, mt_error *err)
{
    char path[128], fresh[MT_LIMIT_PATH + 8];
    FILE *out;
    long status;
    bool ok;

    if (!*id)
        return remove(to) == 0 || errno == ENOENT || mt_fail(err, MT_E_IO, "\"%.200s\" cannot be removed", to);
    snprintf(path, sizeof(path), "/v1/files/%s/content", id);
    snprintf(fresh, sizeof(fresh), "%s.part", to);
    out = fopen(fresh, "wb");
    if (!out)
        return mt_fail(err, MT_E_IO, "\"%.200s\" cannot be written: %s", fresh, strerror(errno));
    status = mt_chat_fetch(&w->server, path, out);
    ok = fclose(out) == 0 && status == 200;
    if (ok && rename(fresh, to) == 0)
        return true;
    remove(fresh);
    if (status == 404)
        return mt_fail(err, MT_E_INVALID,
                       "the results have expired: add an empty line to \"%.200s\", and they are made anew", w->file);
    return mt_fail(err, MT_E_IO, "\"%.200s\" cannot be written", to);
}

static void tell_faults(const json_t *batch)
{
    const json_t *data = json_object_get(json_object_get(batch, "errors"), "data");

    for (size_t i = 0; i < json_array_size(data); i++) {
        const json_t *fault = json_array_get(data, i), *line = json_object_get(fault, "line");

        if (json_is_integer(line))
            fprintf(stderr, "motet: line %lld: %s\n", (long long)json_integer_value(line), word(fault, "message"));
        else
            fprintf(stderr, "motet: %s\n", word(fault, "message"));
    }
}

/* Whether all lines have answers. */
static bool end(const work *w, const json_t *batch, mt_error *err)
{
    const char *good = word(batch, "output_file_id"), *bad = word(batch, "error_file_id");

    tell_faults(batch);
    if (strcmp(word(batch, "status"), "failed") == 0)
        return mt_fail(err, MT_E_INVALID, "no line was answered: mend the file");
    if (!fetch(w, good, w->results, err) || !fetch(w, bad, w->errors, err))
        return false;
    if (*good)
        printf("%s\n", w->results);
    return !*bad || mt_fail(err, MT_E_INVALID, "lines without answers are in \"%s\"", w->errors);
}

/* Removes the files of a folder, and the folder where that leaves it empty. */
static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    char path[MT_LIMIT_PATH + 300];

    if (!dir)
        return;
    for (const struct dirent *d = readdir(dir); d; d = readdir(dir)) {
        snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
        (void)!unlink(path);
    }
    closedir(dir);
    (void)!rmdir(folder);
}

/* Removes what a server of our own has kept. */
static void clean(const work *w)
{
    char path[MT_LIMIT_PATH + 16];

    snprintf(path, sizeof(path), "%s/batches", w->kept);
    remove_folder(path);
    remove_folder(w->kept);
}

static bool run(work *w, const mt_options *opt, mt_error *err)
{
    mt_options own = *opt;
    char url[64], id[64], *folder = NULL;
    json_t *batch = NULL;
    bool ok;

    own.dir = opt->input;
    if (!name_files(w, err) || !look_at(w, url, err))
        return false;
    if (own.dir && !mt_is_url(own.dir) && !mt_is_address(own.dir)) {
        folder = mt_hub_find(own.dir, opt->models_dir, getenv, err);
        if (!folder)
            return false;
        own.dir = folder;
    }
    own.files_dir = w->kept;
    own.any_model = true;
    ok = mt_chat_server_open(&w->server, &own, err);
    w->own = w->server.pid != 0;
    ok = ok && find(w, id, err) && (*id || create(w, url, id, err)) && (batch = wait_for(w, id, err)) &&
         end(w, batch, err);
    mt_chat_server_close(&w->server);
    if (w->own && batch)
        clean(w);
    json_decref(batch);
    mt_free(folder);
    return ok;
}

/* Says after Ctrl-C how to go on. */
static void tell_stopped(const work *w)
{
    if (!w->made)
        fprintf(stderr, "\nmotet: stopped before the first line; the same command begins anew\n");
    else if (w->own)
        fprintf(stderr, "\nmotet: stopped with %lld of %lld lines done; the same command goes on from there\n", w->done,
                w->total);
    else
        fprintf(
            stderr,
            "\nmotet: %lld of %lld lines are done, and the server goes on; the same command waits for the results\n",
            w->done, w->total);
}

int mt_cmd_batch(const mt_options *opt)
{
    work w = {.file = opt->dir, .shows = isatty(STDERR_FILENO)};
    mt_error err = {0};
    bool ok, interrupted;

    mt_json_body_setup();
    mt_chat_interruptible(true);
    ok = run(&w, opt, &err);
    interrupted = mt_chat_interrupted();
    mt_chat_interruptible(false);
    if (interrupted) {
        tell_stopped(&w);
        return EXIT_INTERRUPTED;
    }
    if (!ok)
        fprintf(stderr, "motet: %s\n", err.text);
    return ok ? 0 : 1;
}
