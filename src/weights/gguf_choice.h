/* Chooses among GGUF files by their names: a folder or a repository often has one model in a dozen quantisations,
   some of them in several files (shards), and a projector ("mmproj") for pictures. Works on names and sizes alone,
   so that a hub's list is chosen from as a folder is. */
#ifndef MT_WEIGHTS_GGUF_CHOICE_H
#define MT_WEIGHTS_GGUF_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MT_GGUF_LABEL 32 /* bytes of a quantisation's name with its end */

typedef struct mt_gguf_file {
    const char *name; /* may have folders before it */
    uint64_t bytes;
} mt_gguf_file;

/* Whether the name ends with ".gguf"; whether it is that of a projector; whether it is that of a model's first or only
   file. */
bool mt_gguf_named(const char *name);
bool mt_gguf_is_projector(const char *name);
bool mt_gguf_is_first(const char *name);

/* Writes the quantisation that a file's name tells, in capitals: "Q4_K_M", "UD-Q4_K_XL", "BF16"; "" where it tells
   none. */
void mt_gguf_label(const char *name, char out[MT_GGUF_LABEL]);

/* Whether that is the tag, in any case. */
bool mt_gguf_has_label(const char *name, const char *tag);

/* The name without folders, shard numbers and ".gguf"; its length. */
const char *mt_gguf_stem(const char *name, size_t *len);

/* Whether a model whose first file has this name has a shard of this number, counted from 1; rewrites the first
   file's name into that shard's. */
bool mt_gguf_shard(const char *first, unsigned number);
void mt_gguf_set_shard(char *first, unsigned number);

/* Whether two names are files of one model: equal, or shards of one count. */
bool mt_gguf_same(const char *name, const char *other);

/* Writes which of the files is the first of the chosen model to *out. tag: a quantisation, in any case; "" or NULL:
   the first of Q4_K_M and its neighbours that takes at most `memory` bytes (0: any number), else the largest that
   does. False with a sentence that lists what there is. */
bool mt_gguf_choose(const mt_gguf_file *files, size_t count, const char *tag, uint64_t memory, size_t *out,
                    mt_error *err) MT_NODISCARD;

/* The projector of a model among the files, F16 before others; `count` where there is none. Where there are several
   models, a projector belongs to the one whose name is part of its own. */
size_t mt_gguf_choose_projector(const mt_gguf_file *files, size_t count, const char *model);

#endif
