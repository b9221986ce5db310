/* A form with which a client uploads a file: read as it comes, the file written to the store meanwhile. One thread at a
   time. */
#ifndef MT_FILES_FORM_H
#define MT_FILES_FORM_H

#include "files/multipart.h"
#include "files/store.h"

/* One value of the form that is no file. */
typedef struct mt_files_form_value {
    bool given;
    size_t len;
    char text[MT_LIMIT_FORM_VALUE + 1];
} mt_files_form_value;

typedef struct mt_files_form {
    mt_files *files;
    const char *owner;
    uint64_t size;      /* bytes that the file has at least, as far as is known */
    bool needs_purpose; /* else a file without one is user data */
    mt_multipart parts;
    mt_files_part *part; /* the file while it is written */
    bool got_file, in_file;
    mt_files_form_value *value; /* the one that is being read; NULL: it is of no interest */
    mt_files_form_value purpose, anchor, seconds, in_seconds;
    mt_files_about about;
} mt_files_form;

/* Sets up a form whose members files, owner, size and needs_purpose are set; type: the body's content type. False:
   *err. Free with mt_files_form_free in any case, after which nothing is left of a file that was not kept. */
bool mt_files_form_init(mt_files_form *form, const char *type, mt_error *err) MT_NODISCARD;
void mt_files_form_free(mt_files_form *form);

bool mt_files_form_add(mt_files_form *form, const char *data, size_t len, mt_error *err) MT_NODISCARD;
bool mt_files_form_end(mt_files_form *form, mt_error *err) MT_NODISCARD; /* keeps the file; form->about: what it is */

#endif
