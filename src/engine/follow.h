/* A rank other than 0: opens the checkpoints that rank 0 opens and does with their models what it does. */
#ifndef MT_ENGINE_FOLLOW_H
#define MT_ENGINE_FOLLOW_H

#include "device/device.h"

/* Until rank 0 sends it home: true; or until something fails that leaves rank 0 waiting: false with a sentence. params:
   its threads and kernels; what numbers look like is rank 0's choice. */
bool mt_follow(mt_ranks *ranks, const mt_device_params *params, mt_error *err) MT_NODISCARD;

#endif
