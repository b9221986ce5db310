/* Whose numbers they are: what a model computes depends on every byte of its weights. */
#ifndef MT_TIER_IDENTITY_H
#define MT_TIER_IDENTITY_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"

/* A digest of config.json and of all files with weights of a checkpoint's folder. That of each file is remembered in
   a file of the folder `memos`, and holds as long as the system says that the file was not touched: so large ones are
   read once, and not at every start; NULL: they are not. False with a sentence. */
bool mt_identity(const char *dir, const char *memos, uint8_t out[32], mt_error *err) MT_NODISCARD;

#endif
