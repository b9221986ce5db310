/* What a rank other than 0 does (docs/architecture.md, Ranks): it opens the checkpoints that rank 0 opens and repeats
   each call that rank 0 makes to their models. */
#ifndef MT_ENGINE_FOLLOW_H
#define MT_ENGINE_FOLLOW_H

#include "device/device.h"

/* Serves until rank 0 tells it to end (true), or until something fails that leaves rank 0 waiting (false with a
   sentence). params: this rank's threads and kernels; number formats are rank 0's choice. */
bool mt_follow(mt_ranks *ranks, const mt_device_params *params, mt_error *err) MT_NODISCARD;

#endif
