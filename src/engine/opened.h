/* A checkpoint folder opened for computing: mapped, understood, bound, with a device to run it on. */
#ifndef MT_ENGINE_OPENED_H
#define MT_ENGINE_OPENED_H

#include "base/arena.h"
#include "device/device.h"
#include "models/model.h"
#include "weights/checkpoint.h"

typedef struct mt_opened {
    mt_arena *arena;
    mt_checkpoint *checkpoint;
    mt_model_spec spec;
    mt_model_weights weights;
    mt_device *dev;
} mt_opened;

/* False with a sentence; then nothing is left open. Close with mt_opened_close, after every model made from it. */
bool mt_opened_open(mt_opened *o, const char *dir, const mt_device_params *params, mt_error *err) MT_NODISCARD;
void mt_opened_close(mt_opened *o);

#endif
