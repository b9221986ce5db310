/* Which safetensors files of a folder make up its checkpoint. */
#ifndef MT_WEIGHTS_SHARDS_H
#define MT_WEIGHTS_SHARDS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

#define MT_SHARD_INDEX "model.safetensors.index.json"

typedef struct mt_shard_entry {
    const char *tensor;
    size_t shard; /* index into mt_shards.names */
} mt_shard_entry;

typedef struct mt_shards {
    const char **names; /* of files in the folder, sorted */
    size_t count;
    const mt_shard_entry *entries; /* what the index says; none without an index */
    size_t entry_count;
} mt_shards;

/* model.safetensors when it is there and no index names other files beside it; else what
   model.safetensors.index.json names; else every *.safetensors of the folder. And the file of a head that guesses
   ahead, where it lies apart. Missing files are one error that names
   them. What *out points to lives in the arena. */
bool mt_shards_find(mt_shards *out, const char *dir, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* What the index of the folder says, whether or not the files are there. */
bool mt_shard_index_load(mt_shards *out, const char *dir, mt_arena *arena, mt_error *err) MT_NODISCARD;

bool mt_shard_index_parse(mt_shards *out, const char *text, size_t len, mt_arena *arena, mt_error *err) MT_NODISCARD;

/* "dir/name" into out, which has MT_LIMIT_PATH bytes; false when it does not fit. */
bool mt_shards_path(char *out, const char *dir, const char *name, mt_error *err) MT_NODISCARD;

#endif
