/* See documents.h. */
#include "server/prepare/documents.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "chat/document.h"
#include "files/html.h"
#include "files/store.h"
#include "files/text.h"
#include "media/pdf.h"
#include "media/source.h"
#include "models/processor.h"
#include "server/calls/account.h"
#include "server/limits.h"

/* The state of reading the documents of one chat. */
typedef struct reader {
    mt_chat *chat;
    mt_media_limits limits;
    const mt_processor *processor; /* of a model that sees; else NULL */
    mt_prep *prep;
    mt_media_watch watch;
    size_t left;                      /* bytes of text that may still come */
    size_t left_pages, left_pictures; /* pages of PDFs that may still come, and pages that may still become pictures */
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
            err->code = MT_E_INVALID; /* a 404 would be about the path of the request */
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

/* Counts bytes of text against the limit of the request. */
static bool take_bytes(reader *r, size_t bytes, mt_error *err)
{
    if (bytes > r->left)
        return mt_fail(err, MT_E_TOO_LARGE, "the documents of the request have more than %u bytes of text: send less",
                       MT_LIMIT_DOCUMENT_BYTES);
    r->left -= bytes;
    return true;
}

/* Makes *part the text of a document, behind the line with its name where it has one. */
static bool put_text(reader *r, mt_chat_part *part, mt_chat_text name, const char *from, size_t len, mt_error *err)
{
    const size_t head = name.len ? name.len + 1 : 0;
    char *text;

    if (!take_bytes(r, head + len, err))
        return false;
    text = mt_arena_alloc(r->chat->arena, head + len + 1);
    if (!text)
        return fail_memory(err);
    if (head) {
        memcpy(text, name.data, name.len);
        text[name.len] = '\n';
    }
    if (len)
        memcpy(text + head, from, len);
    part->text = (mt_chat_text){.data = text, .len = head + len};
    part->source = NULL;
    return true;
}

/* A document that is text as it is, or a page of HTML. */
static bool put_plain(reader *r, mt_chat_part *part, mt_chat_text name, const mt_buf *bytes, mt_error *err)
{
    const char *data = bytes->len ? bytes->data : "";
    mt_buf page = {.limit = bytes->len + 1};
    size_t begin;
    bool ok;

    if (!mt_files_text(data, bytes->len, &begin, err))
        return false;
    if (!mt_files_is_html(data, bytes->len, name.data, name.len))
        return put_text(r, part, name, data + begin, bytes->len - begin, err);
    ok = (mt_files_html(&page, data + begin, bytes->len - begin) || fail_memory(err)) &&
         put_text(r, part, name, page.len ? page.data : "", page.len, err);
    mt_buf_free(&page);
    return ok;
}

/* ---- PDFs ---- */

/* The text of the pages of a PDF, and pictures of the first of them. */
typedef struct pages {
    mt_buf text, pictures;
    const char *at;  /* the text of the next page */
    const char *png; /* the picture of the next page */
    size_t count, shown;
} pages;

static size_t count_pages(const mt_buf *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\f';
    return count;
}

static bool is_blank(const mt_buf *text)
{
    for (size_t i = 0; i < text->len; i++)
        if (!strchr(" \t\r\n\f", text->data[i]) || !text->data[i])
            return false;
    return true;
}

/* The text of all pages, from the memory of documents or from pdftotext, which is asked for one page more than may be
   sent: so a longer PDF is noticed. */
static bool read_text(reader *r, const mt_buf *bytes, pages *p, mt_error *err)
{
    const uint32_t most = (uint32_t)MT_MIN(r->prep->pdf_pages, MT_LIMIT_PDF_PAGES);
    uint8_t key[MT_DIGEST_BYTES];
    uint64_t cpu_ns = 0;
    bool ok;

    mt_rendered_key(key, bytes, most, 0);
    ok = mt_rendered_find(r->prep->rendered, key, &p->text);
    if (!ok) {
        if (r->prep->takes_long)
            r->prep->takes_long(r->prep->lane);
        ok = mt_pdf_text(bytes->data, bytes->len, most + 1, &r->watch, &p->text, &cpu_ns, err);
        r->prep->decoding += (double)cpu_ns * 1e-9;
        if (ok)
            mt_rendered_keep(r->prep->rendered, key, &p->text, count_pages(&p->text));
    }
    p->count = ok ? count_pages(&p->text) : 0;
    if (ok && p->count == 0)
        return mt_fail(err, MT_E_INVALID, "the PDF has no pages: send another, or its text");
    if (ok && p->count > r->left_pages)
        return mt_fail(err, MT_E_TOO_LARGE,
                       "the PDFs of the request have more than %lld pages, which is the most here (--pdf-pages): send "
                       "fewer of them",
                       (long long)r->prep->pdf_pages);
    r->left_pages -= ok ? p->count : 0;
    return ok;
}

/* The longer side in pixels of a page's picture, for about as many pixels as the model uses. */
static uint32_t side_of(const mt_processor *processor)
{
    const double pixels = (double)mt_processor_pixels(processor);
    const double side = sqrt(pixels * sqrt(2)); /* as long as a page is wide, on most paper */

    return (uint32_t)fmin(fmax(side, 64), MT_LIMIT_PDF_SIDE);
}

static bool read_pictures(reader *r, const mt_buf *bytes, pages *p, mt_error *err)
{
    const uint32_t most = (uint32_t)MT_MIN(p->count, r->left_pictures);
    uint8_t key[MT_DIGEST_BYTES];
    uint64_t cpu_ns = 0;
    uint32_t side;
    bool ok;

    if (!r->processor || most == 0)
        return true;
    side = side_of(r->processor);
    mt_rendered_key(key, bytes, most, side);
    ok = mt_rendered_find(r->prep->rendered, key, &p->pictures);
    if (!ok) {
        ok = mt_pdf_pictures(bytes->data, bytes->len, most, side, &r->watch, &p->pictures, &cpu_ns, err);
        r->prep->decoding += (double)cpu_ns * 1e-9;
        if (ok)
            mt_rendered_keep(r->prep->rendered, key, &p->pictures, 0);
    }
    p->shown = ok ? most : 0;
    r->left_pictures -= p->shown;
    return ok;
}

static void free_json(void *json)
{
    json_decref(json);
}

/* A picture of the next page as a part of a message: its bytes as a data URL. NULL: *err. */
static const json_t *picture_part(reader *r, pages *p, mt_error *err)
{
    const size_t left = (size_t)(p->pictures.data + p->pictures.len - p->png);
    const size_t size = mt_pdf_picture_size(p->png, left);
    mt_buf url = {.limit = SIZE_MAX};
    json_t *part;

    if (size == 0) {
        mt_fail(err, MT_E_INVALID, "the PDF cannot be shown: one of its pages gave no picture");
        return NULL;
    }
    mt_buf_puts(&url, "data:image/png;base64,");
    mt_base64_add(&url, p->png, size);
    p->png += size;
    part = url.full ? NULL : json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url.data);
    mt_buf_free(&url);
    if (part && mt_arena_defer(r->chat->arena, free_json, part))
        return part;
    json_decref(part);
    fail_memory(err);
    return NULL;
}

/* Copies the text of a page; bytes that are not UTF-8 and control characters become blanks. */
static size_t copy_page(char *to, const char *from, size_t len)
{
    size_t done = 0;

    for (size_t i = 0; i < len;) {
        const size_t size = mt_utf8_length(from + i, len - i);
        const unsigned char c = (unsigned char)from[i];
        const bool good = size > 1 || (size == 1 && c != 0x7F && (c >= ' ' || strchr("\n\r\t", c)) && c);

        if (good)
            memcpy(to + done, from + i, size);
        else
            to[done] = ' ';
        done += good ? size : 1;
        i += good ? size : 1;
    }
    return done;
}

enum { PAGE_LINE = 64 }; /* bytes that are enough for the line above a page */

/* The parts that a PDF becomes, while they are made. */
typedef struct parts {
    mt_chat_part *at;
    size_t count;
    char *text; /* where text is written, and where that of the part begins that is not finished */
    char *begin;
} parts;

static void end_text(parts *to, const mt_chat_part *like)
{
    mt_chat_part *part = &to->at[to->count++];

    *part = *like;
    part->source = NULL;
    part->text = (mt_chat_text){.data = to->begin, .len = (size_t)(to->text - to->begin)};
    to->begin = to->text;
}

/* Writes the next page: a line with its number, unless it is the only one, its picture where it has one, and its
   text. */
static bool put_page(reader *r, pages *p, size_t number, parts *to, const mt_chat_part *like, mt_error *err)
{
    const char *end = memchr(p->at, '\f', (size_t)(p->text.data + p->text.len - p->at));

    if (p->count > 1)
        to->text += snprintf(to->text, PAGE_LINE, "[page %zu of %zu]\n", number, p->count);
    if (number <= p->shown) {
        const json_t *picture = picture_part(r, p, err);

        if (!picture)
            return false;
        end_text(to, like);
        to->at[to->count] = *like;
        to->at[to->count].type = MT_CHAT_IMAGE;
        to->at[to->count].text = (mt_chat_text){.data = NULL};
        to->at[to->count++].source = picture;
    }
    to->text += copy_page(to->text, p->at, (size_t)(end - p->at));
    p->at = end + 1;
    return true;
}

/* Puts the pages in the place of the part number `at`. */
static bool put_pages(reader *r, mt_chat_message *m, size_t at, mt_chat_text name, pages *p, mt_error *err)
{
    const mt_chat_part like = m->parts[at];
    const size_t most = m->part_count + 2 * p->shown, bytes = name.len + 1 + p->text.len + PAGE_LINE * p->count;
    parts to = {.count = 0};

    if (!take_bytes(r, bytes, err))
        return false;
    to.at = mt_arena_alloc(r->chat->arena, most * sizeof(*to.at));
    to.text = mt_arena_alloc(r->chat->arena, bytes);
    if (!to.at || !to.text)
        return fail_memory(err);
    memcpy(to.at, m->parts, at * sizeof(*to.at));
    to.count = at;
    to.begin = to.text;
    p->at = p->text.data;
    p->png = p->pictures.data;
    if (name.len) {
        memcpy(to.text, name.data, name.len);
        to.text += name.len;
        *to.text++ = '\n';
    }
    for (size_t i = 1; i <= p->count; i++)
        if (!put_page(r, p, i, &to, &like, err))
            return false;
    end_text(&to, &like);
    memcpy(to.at + to.count, m->parts + at + 1, (m->part_count - at - 1) * sizeof(*to.at));
    m->part_count += to.count - at - 1;
    m->parts = to.at;
    m->list = m->list || p->shown > 0;
    return true;
}

static bool put_pdf(reader *r, mt_chat_message *m, size_t at, mt_chat_text name, const mt_buf *bytes, mt_error *err)
{
    pages p = {.text = {.limit = MT_LIMIT_PDF_TEXT}, .pictures = {.limit = MT_LIMIT_PDF_PICTURES}};
    bool ok = read_text(r, bytes, &p, err) && read_pictures(r, bytes, &p, err);

    if (ok && p.shown < p.count && is_blank(&p.text))
        ok = mt_fail(err, MT_E_INVALID,
                     r->processor ? "the PDF has no text, and more than %lld pages, of which pictures are made "
                                    "(--pdf-pictures): send fewer pages of it"
                                  : "the PDF has no text, only pictures, and this model takes none: send its text",
                     (long long)r->prep->pdf_pictures);
    ok = ok && put_pages(r, m, at, name, &p, err);
    if (ok && r->processor && p.shown < p.count && !*r->prep->told)
        snprintf(r->prep->told, sizeof(r->prep->told),
                 "of the PDFs, %lld pages are shown as pictures, too; the others are text alone",
                 (long long)r->prep->pdf_pictures);
    mt_buf_free(&p.text);
    mt_buf_free(&p.pictures);
    return ok;
}

static bool fill(reader *r, mt_chat_message *m, size_t at, mt_error *err)
{
    mt_chat_part *part = &m->parts[at];
    const char *place = part->place;
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
    if (ok && mt_pdf_is(bytes.data, bytes.len))
        ok = put_pdf(r, m, at, document.name, &bytes, err);
    else if (ok)
        ok = put_plain(r, part, document.name, &bytes, err);
    if (!ok)
        mt_fail_within(err, "%s", place);
    mt_buf_free(&bytes);
    return ok;
}

/* What is read takes no room of the pictures, which a model without eyes has none of: a thread reads one document at a
   time. */
bool mt_documents_fill(mt_chat *chat, const mt_media_limits *limits, const mt_processor *processor, mt_prep *prep,
                       mt_error *err)
{
    reader r = {.chat = chat,
                .limits = *limits,
                .processor = processor,
                .prep = prep,
                .left = MT_LIMIT_DOCUMENT_BYTES,
                .left_pages = (size_t)prep->pdf_pages,
                .left_pictures = (size_t)prep->pdf_pictures};

    r.watch = (mt_media_watch){.stop = prep->stop};
    for (size_t i = 0; i < chat->count; i++)
        for (size_t k = 0; k < chat->messages[i].part_count; k++) {
            const mt_chat_part part = chat->messages[i].parts[k];

            if (part.type == MT_CHAT_TEXT && part.source && !fill(&r, &chat->messages[i], k, err)) {
                err->field = part.place;
                return false;
            }
        }
    return true;
}
