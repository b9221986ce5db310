/* What one of several ranks has of a model: heads with their keys and values, columns of MLPs and of each expert, heads
   of recurrent layers, rows of the head. Every matrix is cut over its rows, which are outputs, never over k. */
#ifndef MT_MODELS_CUT_H
#define MT_MODELS_CUT_H

#include "models/model.h"

/* Makes a spec and its weights those of a rank. Whole stay on every rank: embeddings, of which few rows are read,
   norms, routers and other small things, and the tower. Returns the bytes of all weights that others have. The system
   begins to read what of the rank's is not in memory. */
uint64_t mt_model_cut(mt_model_spec *spec, mt_model_weights *weights, size_t rank, size_t ranks, mt_arena *arena);

#endif
