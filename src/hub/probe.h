/* Checks whether motet could run a model before its weights are downloaded: makes a folder like the model's, in which
   weight files have their headers and sizes and are otherwise holes, so that the usual code for checkpoints can
   judge. */
#ifndef MT_HUB_PROBE_H
#define MT_HUB_PROBE_H

#include <stdint.h>

#include "base/error.h"
#include "base/limits.h"
#include "hub/names.h"
#include "weights/shards.h"

typedef struct mt_probe {
    char folder[MT_LIMIT_PATH];
    const char *id; /* the model's name in messages */
} mt_probe;

/* Makes an empty temporary folder. Borrows id until mt_probe_close, which removes the folder. */
bool mt_probe_open(mt_probe *probe, const char *id, mt_error *err) MT_NODISCARD;
void mt_probe_close(mt_probe *probe);

/* Adds a file: a link to an existing one, an empty one, or (mt_probe_fill) a header with a hole behind it. */
bool mt_probe_link(const mt_probe *probe, const char *name, const char *path, mt_error *err) MT_NODISCARD;
bool mt_probe_note(const mt_probe *probe, const char *name, mt_error *err) MT_NODISCARD;
bool mt_probe_fill(const mt_probe *probe, const char *name, const void *header, size_t len, uint64_t size,
                   mt_error *err) MT_NODISCARD;

/* Which of the weights belong to the checkpoint, as mt_shards_find decides. */
bool mt_probe_shards(const mt_probe *probe, mt_shards *out, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Whether the model could run: false with the sentence that motet info would give, or MT_E_MEMORY where it does not fit
   `memory` bytes; 0: as many as motet serve would use. */
bool mt_probe_judge(const mt_probe *probe, uint64_t memory, mt_error *err) MT_NODISCARD;

/* The same for a GGUF model, whose first bytes are in the probe: by its architecture and the size of its files. */
bool mt_probe_judge_gguf(const mt_probe *probe, const char *file, uint64_t weights, uint64_t memory,
                         mt_error *err) MT_NODISCARD;

/* How many bytes a model may take: `memory`, or where it is 0 as many as motet serve would use. */
uint64_t mt_probe_memory(uint64_t memory);

#endif
