/* Finds the safetensors files (shards) of a checkpoint folder. */
#ifndef MT_WEIGHTS_SHARDS_H
#define MT_WEIGHTS_SHARDS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/limits.h"

#define MT_SHARD_INDEX "model.safetensors.index.json"

typedef struct mt_shard_entry {
    const char *tensor;
    size_t shard; /* index into mt_shards.names */
} mt_shard_entry;

typedef struct mt_shards {
    const char **names; /* names of files in the folder, sorted */
    size_t count;
    const mt_shard_entry *entries; /* tensors by file, as the index says; none without an index */
    size_t entry_count;
} mt_shards;

/* Finds model.safetensors where it exists and no index names other files; else the files in
   model.safetensors.index.json; else every *.safetensors of the folder. Also the separate file of a drafting head,
   where there is one. False with a sentence that names missing files. What *out points to lives in the arena. */
bool mt_shards_find(mt_shards *out, const char *dir, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Reads the folder's index, whether or not the files exist. */
bool mt_shard_index_load(mt_shards *out, const char *dir, mt_arena *arena, mt_error *err) MT_NODISCARD;

bool mt_shard_index_parse(mt_shards *out, const char *text, size_t len, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* Writes "dir/name" to out, which has MT_LIMIT_PATH bytes; false where it does not fit. */
bool mt_shards_path(char *out, const char *dir, const char *name, mt_error *err) MT_NODISCARD;

#endif
