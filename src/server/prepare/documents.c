/* See documents.h. */
#include "server/prepare/documents.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "chat/document.h"
#include "files/store.h"
#include "files/text.h"
#include "media/source.h"
#include "server/calls/account.h"
#include "server/limits.h"

/* The documents of one chat while they are read. */
typedef struct reader {
    mt_chat *chat;
    mt_media_limits limits;
    const mt_prep *prep;
    mt_media_watch watch;
    size_t left; /* bytes that the texts may still have */
} reader;

static bool fail_memory(mt_error *err)
{
    return mt_fail(err, MT_E_TOO_LARGE, "the documents need more memory than a request may have: send less");
}

/* Reads all that is behind a descriptor. */
static bool read_all(int fd, size_t len, mt_buf *bytes, mt_error *err)
{
    char piece[16384];

    while (bytes->len < len) {
        const ssize_t n = read(fd, piece, sizeof(piece));

        if (n <= 0)
            return mt_fail(err, MT_E_IO, "the file cannot be read to its end");
        if (!mt_buf_add(bytes, piece, (size_t)n))
            return mt_fail(err, MT_E_MEMORY, "there is no memory for the file: try again in a moment");
    }
    return true;
}

bool mt_documents_load(const mt_prep *prep, const char *id, size_t len, size_t most, const mt_media_watch *watch,
                       mt_buf *bytes, mt_chat_text *name, mt_arena *arena, mt_error *err)
{
    char owner[MT_ACCOUNT_OWNER], text[MT_RANDOM_ID + 1];
    mt_files_about about;
    bool ok;
    int fd;

    mt_buf_init(bytes, most);
    if (!prep->files)
        return mt_fail(err, MT_E_INVALID, "files are not kept here: start the server with --files-dir FOLDER");
    snprintf(text, sizeof(text), "%.*s", (int)MT_MIN(len, sizeof(text) - 1), id);
    mt_account_owner(prep->account, owner);
    fd = mt_files_read(prep->files, owner, text, &about, err);
    if (fd < 0) {
        if (err->code == MT_E_NOT_FOUND)
            err->code = MT_E_INVALID; /* what was not found is not what the path names */
        return false;
    }
    ok = (about.bytes <= most ||
          mt_fail(err, MT_E_INVALID, "the file \"%s\" has more than the %zu bytes allowed here", about.id, most)) &&
         mt_media_take(watch, (size_t)about.bytes + 1, err) && read_all(fd, (size_t)about.bytes, bytes, err);
    close(fd);
    if (ok && name) {
        *name = (mt_chat_text){.data = mt_arena_strdup(arena, about.name), .len = strlen(about.name)};
        ok = name->data || fail_memory(err);
    }
    return ok;
}

/* Writes a document's text, behind the line with its name where it has one. */
static bool put_text(reader *r, mt_chat_part *part, mt_chat_text name, const mt_buf *bytes, mt_error *err)
{
    const size_t head = name.len ? name.len + 1 : 0;
    size_t begin, len;
    char *text;

    if (!mt_files_text(bytes->len ? bytes->data : "", bytes->len, &begin, err))
        return false;
    len = bytes->len - begin;
    if (head + len > r->left)
        return mt_fail(err, MT_E_TOO_LARGE, "the documents of the request have more than %u bytes of text: send less",
                       MT_LIMIT_DOCUMENT_BYTES);
    r->left -= head + len;
    text = mt_arena_alloc(r->chat->arena, head + len + 1);
    if (!text)
        return fail_memory(err);
    if (head) {
        memcpy(text, name.data, name.len);
        text[name.len] = '\n';
    }
    if (len)
        memcpy(text + head, bytes->data + begin, len);
    part->text = (mt_chat_text){.data = text, .len = head + len};
    part->source = NULL;
    return true;
}

static bool fill(reader *r, mt_chat_part *part, mt_error *err)
{
    mt_chat_document document;
    mt_buf bytes = {.limit = 0};
    bool ok;

    if (!mt_chat_document_read(&document, r->chat->arena, part, err))
        return false;
    if (document.id.data)
        ok = mt_documents_load(r->prep, document.id.data, document.id.len, r->limits.bytes, &r->watch, &bytes,
                               document.name.data ? NULL : &document.name, r->chat->arena, err);
    else
        ok = mt_media_load(&bytes, document.url.data, document.url.len, &r->limits, &r->watch, err);
    ok = (ok && put_text(r, part, document.name, &bytes, err)) || mt_fail_within(err, "%s", part->place);
    mt_buf_free(&bytes);
    return ok;
}

/* What is read takes no room of the pictures, which a model without eyes has none of: a thread reads one document at a
   time, and the limit is small. */
bool mt_documents_fill(mt_chat *chat, const mt_media_limits *limits, const mt_prep *prep, mt_error *err)
{
    reader r = {.chat = chat, .limits = *limits, .prep = prep, .left = MT_LIMIT_DOCUMENT_BYTES};

    r.limits.bytes = MT_LIMIT_DOCUMENT_BYTES;
    r.watch = (mt_media_watch){.stop = prep->stop};
    for (size_t i = 0; i < chat->count; i++)
        for (size_t k = 0; k < chat->messages[i].part_count; k++) {
            mt_chat_part *part = &chat->messages[i].parts[k];

            if (part->type == MT_CHAT_TEXT && part->source && !fill(&r, part, err)) {
                err->field = part->place;
                return false;
            }
        }
    return true;
}
