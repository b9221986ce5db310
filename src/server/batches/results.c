/* Lines of results in the shape of the batch's API, and OpenAI's files of them. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json_write.h"
#include "server/batches/bulk.h"

void mt_bulk_tell_response(mt_buf *out, const mt_bulk *b, const char *custom, const char *request, int status,
                           const char *body)
{
    char id[MT_RANDOM_ID];

    if (b->anthropic && status == 200)
        mt_json_write(out, "{'custom_id':%s,'result':{'type':'succeeded','message':%-s}}", custom, body);
    else if (b->anthropic)
        mt_json_write(out, "{'custom_id':%s,'result':{'type':'errored','error':%-s}}", custom, body);
    else {
        mt_random_id(id, "batch_req_");
        mt_json_write(out,
                      "{'id':%s,'custom_id':%s,'response':{'status_code':%d,'request_id':%s,'body':%-s},'error':null}",
                      id, custom, status, request, body);
    }
}

void mt_bulk_tell_none(mt_buf *out, const mt_bulk *b, const char *custom, mt_bulk_result result)
{
    const bool lapsed = result == MT_BULK_LAPSED;
    char id[MT_RANDOM_ID];

    if (b->anthropic) {
        mt_json_write(out, "{'custom_id':%s,'result':{'type':%s}}", custom, lapsed ? "expired" : "canceled");
        return;
    }
    mt_random_id(id, "batch_req_");
    mt_json_write(out, "{'id':%s,'custom_id':%s,'response':null,'error':{'code':%s,'message':%s}}", id, custom,
                  lapsed ? "batch_expired" : "batch_cancelled",
                  lapsed ? "the time of the batch was over before this line was answered"
                         : "the batch was cancelled before this line was answered");
}

/* A file of results while it is made from the journal. */
typedef struct file {
    mt_files_part *part;
    mt_error *err;
    bool errors; /* takes all results but answers; else answers alone */
} file;

static bool add_record(void *ctx, const mt_journal_record *r)
{
    file *f = ctx;

    if ((r->kind != MT_BULK_KINDS[MT_BULK_ANSWERED]) != f->errors)
        return true;
    return mt_files_add(f->part, r->text, r->len, f->err) && mt_files_add(f->part, "\n", 1, f->err);
}

/* Makes one of the files, whose id is noted first, unless the file exists. */
static bool publish(mt_bulk *b, int folder, mt_files *files, bool errors, const char *id, mt_bulk_noter *note,
                    void *ctx, mt_error *err)
{
    mt_files_about about = {.expires = b->output_seconds};
    file f = {.errors = errors, .err = err};
    mt_bulk_path path;

    if (*id && mt_files_find(files, b->owner, id, &about))
        return true;
    f.part = mt_files_begin(files, b->owner, 0, err);
    if (!f.part)
        return false;
    snprintf(about.purpose, sizeof(about.purpose), "batch_output");
    snprintf(about.type, sizeof(about.type), "application/jsonl");
    snprintf(about.name, sizeof(about.name), "%s_%s.jsonl", b->id, errors ? "error" : "output");
    if (!mt_journal_read(folder, mt_bulk_path_of(path, b, MT_BULK_JOURNAL), add_record, &f, err) ||
        !note(ctx, b, errors, mt_files_part_id(f.part), err)) {
        mt_files_drop(f.part);
        return false;
    }
    return mt_files_end(f.part, &about, err);
}

bool mt_bulk_publish(mt_bulk *b, int folder, mt_files *files, mt_bulk_noter *note, void *ctx, mt_error *err)
{
    const size_t answered = b->counts[MT_BULK_ANSWERED];
    const bool others = b->counts[MT_BULK_ERRED] + b->counts[MT_BULK_LAPSED] + b->counts[MT_BULK_DROPPED] > 0;

    if (answered > 0 && !publish(b, folder, files, false, b->output, note, ctx, err))
        return false;
    return !others || publish(b, folder, files, true, b->errors_file, note, ctx, err);
}
