/* The recurrent layers of a decoder: GatedDeltaNet, or a short convolution, which mix a token with those before it
   through a state. */
#ifndef MT_MODELS_MIXER_H
#define MT_MODELS_MIXER_H

#include "models/model.h"
#include "models/shared.h"

typedef struct mt_mixer mt_mixer;

/* Its objects go into the set. layers: of the model; the recurrent ones have one form. Free with mt_mixer_free. */
mt_mixer *mt_mixer_new(mt_set *set, mt_device *dev, const mt_model_spec *spec, const mt_layer_weights *layers,
                       const mt_model_params *params);
void mt_mixer_free(mt_mixer *mixer); /* NULL is fine */

/* Gives recurrent layer `index` its weights. */
void mt_mixer_load(mt_mixer *mixer, size_t index, const mt_layer_weights *weights);

/* Slots for states, once. */
bool mt_mixer_reserve(mt_mixer *mixer, size_t slots, mt_error *err) MT_NODISCARD;

mt_states *mt_mixer_state(mt_mixer *mixer); /* NULL: other ranks have all of them */

/* y = what the layer makes of the step's n rows of h; the spans' states move on. */
void mt_mixer_run(mt_mixer *mixer, size_t index, const mt_shared *y, const mt_tensor *h, size_t n);

#endif
