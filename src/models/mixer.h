/* The recurrent layers of a decoder: GatedDeltaNet (Qwen3-Next, Qwen3.5), Mamba2 (Granite 4, Nemotron H, Falcon H1) or
   a short convolution (LFM2), which mix a token with those before it through a state. decoder.c calls it. */
#ifndef MT_MODELS_MIXER_H
#define MT_MODELS_MIXER_H

#include "models/model.h"
#include "models/shared.h"

typedef struct mt_mixer mt_mixer;

/* Its device objects are made in `set`. layers: of the whole model; all recurrent ones have the same kind and shape.
   Free with mt_mixer_free. */
mt_mixer *mt_mixer_new(mt_set *set, mt_device *dev, const mt_model_spec *spec, const mt_layer_weights *layers,
                       const mt_model_params *params);
void mt_mixer_free(mt_mixer *mixer); /* NULL is fine */

/* Loads the weights of recurrent layer `index`, counted among the recurrent ones. */
void mt_mixer_load(mt_mixer *mixer, size_t index, const mt_layer_weights *weights);

/* Makes the slots for states, once. */
bool mt_mixer_reserve(mt_mixer *mixer, size_t slots, mt_error *err) MT_NODISCARD;

mt_states *mt_mixer_state(mt_mixer *mixer); /* NULL: other ranks have all heads */

/* y = the layer's result for n rows of h; moves the states of the step's spans on. */
void mt_mixer_run(mt_mixer *mixer, size_t index, const mt_shared *y, const mt_tensor *h, size_t n);

#endif
