/* A checkpoint folder opened for computing: mapped, understood, bound, with a device to run it on. */
#ifndef MT_ENGINE_OPENED_H
#define MT_ENGINE_OPENED_H

#include "base/arena.h"
#include "device/device.h"
#include "models/model.h"
#include "models/processor.h"
#include "weights/checkpoint.h"

typedef struct mt_opened {
    mt_arena *arena;
    mt_checkpoint *checkpoint;
    mt_model_spec spec;
    mt_model_weights weights;
    const mt_processor *processor; /* NULL: the model takes no pictures, or none are wanted */
    mt_device *dev;
    mt_checkpoint *draft; /* of what guesses for it; NULL: none */
    mt_drafter_spec drafter;
    mt_bind_cost draft_cost;
    bool told;          /* the other ranks have it open, too */
    uint64_t elsewhere; /* bytes of its weights that they have and this one has not */
} mt_opened;

/* What of a checkpoint is opened. */
typedef struct mt_open_wish {
    const char *family; /* to read it as; NULL: what its config says */
    bool text_only;     /* leave the tower of a model that sees out */
    const char *draft;  /* the folder of what guesses for it; NULL: none */
    bool alone;         /* by this rank, be there others; for tests */
} mt_open_wish;

/* False with a sentence; then nothing is left open. Close with mt_opened_close, after every model made from it. */
bool mt_opened_open(mt_opened *o, const char *dir, const mt_device_params *params, const mt_open_wish *wish,
                    mt_error *err) MT_NODISCARD;
void mt_opened_close(mt_opened *o);

#endif
