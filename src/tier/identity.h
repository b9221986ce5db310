/* The identity of a checkpoint: a digest of its weights, which is part of every key in the tiers, as cached numbers
   depend on every byte of the weights. */
#ifndef MT_TIER_IDENTITY_H
#define MT_TIER_IDENTITY_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/* out: digest of config.json and of all files with weights in the checkpoint's folder. The digest of each file is
   remembered in a file of the folder `memos` and reused while the system reports the same size and times: so large
   files are read once, not at every start. memos NULL: nothing is remembered. False with a sentence. */
bool mt_identity(const char *dir, const char *memos, uint8_t out[32], mt_error *err) MT_NODISCARD;

#endif
