/* Two backends for tests of the fallback (src/device/fallback.h): "bare" has what a backend must have and nothing else;
   "mixed" has a few operations and weights of its own as well. */
#ifndef DEVICE_BARE_H
#define DEVICE_BARE_H

#include "device/backend.h"

extern const mt_backend bare_backend, mixed_backend;

#endif
