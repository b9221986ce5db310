/* A checkpoint folder opened for computing: its files are mapped, its config is read, its tensors are found and
   checked, and the device that runs it is open. */
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
    const mt_processor *processor; /* NULL: the model takes no pictures, or text_only was asked for */
    mt_device *dev;
    mt_checkpoint *draft;    /* checkpoint of a small model that guesses ahead for this one; NULL: none */
    mt_drafter_spec drafter; /* of that model */
    mt_bind_cost draft_cost; /* memory that its weights take beside its files */
    bool told;               /* the other ranks have opened it, too */
    uint64_t elsewhere;      /* bytes of its weights that only other ranks have */
} mt_opened;

/* Options of opening. */
typedef struct mt_open_wish {
    const char *family; /* read the checkpoint as this family; NULL: as its config.json says */
    bool text_only;     /* leave out the vision tower */
    const char *draft;  /* folder of the model that guesses ahead; NULL: none */
    bool alone;         /* for tests: only this rank opens it, although there are others */
} mt_open_wish;

/* False with a sentence; then nothing is left open. Close with mt_opened_close, after every model made from it. */
bool mt_opened_open(mt_opened *o, const char *dir, const mt_device_params *params, const mt_open_wish *wish,
                    mt_error *err) MT_NODISCARD;
void mt_opened_close(mt_opened *o);

#endif
