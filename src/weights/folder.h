/* Files of a model by name ("config.json", "tokenizer.json"), whether they are in its folder or made of the keys of its
   GGUF file. The path of a model is a folder, a GGUF file or a manifest (weights/gguf_place.h). */
#ifndef MT_WEIGHTS_FOLDER_H
#define MT_WEIGHTS_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/limits.h"
#include "weights/config.h"

typedef struct mt_folder_file {
    const char *data; /* never NULL */
    size_t len;
    mt_file map; /* of a file in the folder */
    mt_buf made; /* of a text that was made */
} mt_folder_file;

/* Whether the model has a file of that name. True also where this cannot be told: opening it says why. */
bool mt_folder_has(const char *path, const char *name);

/* Opens it. False with a sentence. Undo with mt_folder_close. */
bool mt_folder_open(mt_folder_file *file, const char *path, const char *name, mt_error *err) MT_NODISCARD;
void mt_folder_close(mt_folder_file *file);

/* Reads it as a JSON object. NULL with MT_OK where there is none, else with a sentence. Free with mt_config_free. */
mt_config *mt_folder_config(const char *path, const char *name, mt_error *err) MT_NODISCARD;

/* Files that are kept open, so that a GGUF file's header is read once while much is read of it. */
typedef struct mt_folder_held {
    struct mt_gguf *model, *projector; /* NULL of a folder without, and where they cannot be opened */
} mt_folder_held;

void mt_folder_hold(mt_folder_held *held, const char *path);
void mt_folder_release(mt_folder_held *held);

/* Writes which file of the disk it comes from: itself, or the GGUF file; for messages, times and sizes. */
void mt_folder_source(char out[MT_LIMIT_PATH], const char *path, const char *name);

#endif
