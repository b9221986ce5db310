/* The part of a model that one of several ranks has: some heads with their keys and values, some columns of each MLP
   and expert, some heads of recurrent layers, some rows of the output head. Every matrix is cut over its rows, which
   are outputs, never over the dimension that is summed. */
#ifndef MT_MODELS_CUT_H
#define MT_MODELS_CUT_H

#include "models/model.h"

/* Changes a spec and its weights to the part of one rank. Every rank keeps embeddings (of which few rows are read),
   norms, routers and other small tensors, and the tower as a whole. Returns the bytes of weights that only other ranks
   have. Asks the system to read the rank's part of the files into memory. */
uint64_t mt_model_cut(mt_model_spec *spec, mt_model_weights *weights, size_t rank, size_t ranks, mt_arena *arena);

#endif
