/* Whether motet could run a model that has not been downloaded yet: a folder like the model's, in which weights have
   their headers and their sizes and are otherwise holes, so that whatever reads checkpoints tells. */
#ifndef MT_HUB_PROBE_H
#define MT_HUB_PROBE_H

#include <stdint.h>

#include "base/error.h"
#include "hub/names.h"
#include "weights/shards.h"

typedef struct mt_probe {
    char folder[MT_LIMIT_PATH];
    const char *id; /* what sentences call it */
} mt_probe;

/* Makes an empty folder for temporary files. Borrows id until mt_probe_close, which removes it. */
bool mt_probe_open(mt_probe *probe, const char *id, mt_error *err) MT_NODISCARD;
void mt_probe_close(mt_probe *probe);

/* Puts a file into it: one that is here, or one that is empty and is filled in later. */
bool mt_probe_link(const mt_probe *probe, const char *name, const char *path, mt_error *err) MT_NODISCARD;
bool mt_probe_note(const mt_probe *probe, const char *name, mt_error *err) MT_NODISCARD;
bool mt_probe_fill(const mt_probe *probe, const char *name, const void *header, size_t len, uint64_t size,
                   mt_error *err) MT_NODISCARD;

/* Which of the weights make up the checkpoint, as mt_shards_find has it. */
bool mt_probe_shards(const mt_probe *probe, mt_shards *out, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* False with the sentence that motet info would give, or as MT_E_MEMORY where the model does not fit into so many
   bytes; 0: as many as motet serve takes by itself. */
bool mt_probe_judge(const mt_probe *probe, uint64_t memory, mt_error *err) MT_NODISCARD;

#endif
