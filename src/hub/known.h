/* Short names of popular models: "qwen3" stands for "Qwen/Qwen3-8B" (known.def). */
#ifndef MT_HUB_KNOWN_H
#define MT_HUB_KNOWN_H

#include <stddef.h>

#include "hub/names.h"

typedef struct mt_hub_short {
    const char *name, *repository;
} mt_hub_short;

extern const mt_hub_short mt_hub_shorts[];
extern const size_t mt_hub_short_count;

/* The repository that a short name stands for, in letters of either case and with or without ":latest"; NULL: the name
   is not in the table. */
const char *mt_hub_known(const char *name);

/* Reads a name as mt_hub_name_read does, or the repository's where it is a short one. */
bool mt_hub_name_read_known(mt_hub_name *out, const char *text);

#endif
