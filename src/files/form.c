/* See form.h. The fields may come before the file or behind it. */
#include "files/form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/words.h"
#include "files/types.h"

enum { LEAST_SECONDS = 3600 }; /* after which a file may be told to expire */

static const char *const purposes[] = {"assistants", "batch", "evals", "fine-tune", "user_data", "vision", NULL};

static bool begin_file(mt_files_form *f, const mt_multipart_head *head, mt_error *err)
{
    if (f->got_file)
        return mt_fail(err, MT_E_INVALID, "the form has more than one file: upload one at a time");
    f->got_file = f->in_file = true;
    snprintf(f->about.name, sizeof(f->about.name), "%s", *head->filename ? head->filename : "file");
    snprintf(f->about.type, sizeof(f->about.type), "%s", mt_files_type(head->type, f->about.name));
    f->part = mt_files_begin(f->files, f->owner, f->size, err);
    return f->part != NULL;
}

static bool begin(void *user, const mt_multipart_head *head, mt_error *err)
{
    mt_files_form *f = user;

    f->in_file = false;
    f->value = NULL;
    if (strcmp(head->name, "file") == 0)
        return begin_file(f, head, err);
    f->value = strcmp(head->name, "purpose") == 0                  ? &f->purpose
               : strcmp(head->name, "expires_after[anchor]") == 0  ? &f->anchor
               : strcmp(head->name, "expires_after[seconds]") == 0 ? &f->seconds
               : strcmp(head->name, "expires_in_seconds") == 0     ? &f->in_seconds
                                                                   : NULL;
    if (f->value)
        *f->value = (mt_files_form_value){.given = true};
    return true;
}

static bool add(void *user, const char *data, size_t len, mt_error *err)
{
    mt_files_form *f = user;

    if (f->in_file)
        return mt_files_add(f->part, data, len, err);
    if (!f->value)
        return true;
    if (len > MT_LIMIT_FORM_VALUE - f->value->len)
        return mt_fail(err, MT_E_TOO_LARGE, "a field of the form has more than %d bytes: shorten it",
                       MT_LIMIT_FORM_VALUE);
    memcpy(f->value->text + f->value->len, data, len);
    f->value->len += len;
    return true;
}

static bool end(void *user, mt_error *err)
{
    const mt_files_form *f = user;

    return !f->value || strlen(f->value->text) == f->value->len ||
           mt_fail(err, MT_E_INVALID, "a field of the form has a NUL character in it: leave it out");
}

static const mt_multipart_sink sink = {.begin = begin, .data = add, .end = end};

bool mt_files_form_init(mt_files_form *f, const char *type, mt_error *err)
{
    return mt_multipart_init(&f->parts, type, &sink, f, err);
}

void mt_files_form_free(mt_files_form *f)
{
    mt_files_drop(f->part);
    f->part = NULL;
    mt_multipart_free(&f->parts);
}

bool mt_files_form_add(mt_files_form *f, const char *data, size_t len, mt_error *err)
{
    return mt_multipart_add(&f->parts, data, len, err);
}

static bool take_purpose(mt_files_form *f, mt_error *err)
{
    if (!f->purpose.given && f->needs_purpose) {
        mt_fail(err, MT_E_INVALID, "\"purpose\" is missing: send what the file is for, such as user_data");
        return mt_fail_about(err, "purpose");
    }
    if (f->purpose.given && !mt_words_have(purposes, f->purpose.text)) {
        mt_fail(err, MT_E_INVALID,
                "\"purpose\" is none that is known: send assistants, batch, evals, fine-tune, user_data or vision");
        return mt_fail_about(err, "purpose");
    }
    snprintf(f->about.purpose, sizeof(f->about.purpose), "%.*s", (int)sizeof(f->about.purpose) - 1,
             f->purpose.given ? f->purpose.text : "user_data");
    return true;
}

/* Reads after how many seconds the file expires. */
static bool read_seconds(const mt_files_form_value *value, int64_t *seconds)
{
    char *end;

    *seconds = strtol(value->text, &end, 10);
    return value->len > 0 && *end == '\0' && *seconds >= LEAST_SECONDS && *seconds <= MT_LIMIT_FILE_SECONDS;
}

/* OpenAI's field for it, and Anthropic's. */
static bool take_expiry(mt_files_form *f, mt_error *err)
{
    if (f->in_seconds.given) {
        if (read_seconds(&f->in_seconds, &f->about.expires))
            return true;
        mt_fail(err, MT_E_INVALID, "\"expires_in_seconds\" is not understood: send from %d to %d seconds",
                LEAST_SECONDS, MT_LIMIT_FILE_SECONDS);
        return mt_fail_about(err, "expires_in_seconds");
    }
    if ((!f->anchor.given && !f->seconds.given) ||
        (strcmp(f->anchor.text, "created_at") == 0 && read_seconds(&f->seconds, &f->about.expires)))
        return true;
    mt_fail(err, MT_E_INVALID,
            "\"expires_after\" is not understood: send the anchor \"created_at\" and from %d to %d seconds",
            LEAST_SECONDS, MT_LIMIT_FILE_SECONDS);
    return mt_fail_about(err, "expires_after");
}

static bool has_file(const mt_files_form *f, mt_error *err)
{
    if (f->got_file)
        return true;
    mt_fail(err, MT_E_INVALID, "\"file\" is missing: send the file as the part of the form that has this name");
    return mt_fail_about(err, "file");
}

bool mt_files_form_end(mt_files_form *f, mt_error *err)
{
    mt_files_part *part = f->part;

    if (!mt_multipart_end(&f->parts, err) || !has_file(f, err) || !take_purpose(f, err) || !take_expiry(f, err))
        return false;
    f->part = NULL;
    return mt_files_end(part, &f->about, err);
}
