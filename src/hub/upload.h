/* Files that clients upload to make models of. They lie in a folder of the hub's cache:

       motet-uploads/DIGEST.new        whole, and no model has been made of it yet
       motet-uploads/DIGEST            a model was made of it, which has it by a hard link
       motet-uploads/DIGEST.N.part     is being written

   A model made of them has the layout of repo.h. Any thread; several processes may share the folder. */
#ifndef MT_HUB_UPLOAD_H
#define MT_HUB_UPLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MT_UPLOAD_DIGITS 64 /* hexadecimal digits of a digest, SHA-256 */

typedef struct mt_upload mt_upload; /* one file that is being written */

/* Reads "sha256:DIGITS", or with a dash. False: it is something else. */
bool mt_upload_digest(const char *text, char digest[MT_UPLOAD_DIGITS + 1]);

/* Begins a file of that digest. size: its bytes; UINT64_MAX: not known. NULL: *err. Free with mt_upload_free. */
mt_upload *mt_upload_new(const char *cache, const char *digest, uint64_t size, mt_error *err) MT_NODISCARD;
bool mt_upload_add(mt_upload *upload, const void *data, size_t len, mt_error *err) MT_NODISCARD;

/* All was added: where it has the digest, the file gets its name. False: *err. */
bool mt_upload_end(mt_upload *upload, mt_error *err) MT_NODISCARD;

/* Removes a file that has no name yet. NULL is fine. */
void mt_upload_free(mt_upload *upload);

/* Whether a file of that digest is there. */
bool mt_upload_has(const char *cache, const char *digest);

/* Removes files of which no model is left, and those of which none was made within a day. */
void mt_upload_sweep(const char *cache);

typedef struct mt_upload_file {
    const char *name; /* within the model's folder */
    char digest[MT_UPLOAD_DIGITS + 1];
} mt_upload_file;

/* Whether a file of a model may have that name. */
bool mt_upload_name_ok(const char *name);

/* Makes a model of files in the cache, under an id as mt_hub_name_read takes it. False: *err; MT_E_NOT_FOUND: a file is
   not there. */
bool mt_upload_model(const char *cache, const char *id, const mt_upload_file *files, size_t count,
                     mt_error *err) MT_NODISCARD;

#endif
