/* How a checkpoint is quantised: what its config says, and what the shapes of its tensors say. Shapes win: a module is
   quantised when its scales are there, and the numbers follow from the sizes; the config decides only what sizes leave
   open. */
#ifndef MT_WEIGHTS_QUANT_H
#define MT_WEIGHTS_QUANT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kernels/matrix.h"
#include "weights/checkpoint.h"

typedef enum mt_quant_method {
    MT_QUANT_NONE,
    MT_QUANT_MLX, /* packed words, scales and perhaps biases */
    MT_QUANT_FP8, /* E4M3 with a scale for each 128 x 128 block, as Qwen and DeepSeek publish it, or for a whole matrix,
                     as Mistral does */
    MT_QUANT_MXFP4 /* experts in blocks of 32, as gpt-oss is published */
} mt_quant_method;

typedef struct mt_quant_params {
    mt_format format; /* AFFINE, MXFP4, NVFP4 or MXFP8 */
    uint8_t bits;
    uint16_t group;
} mt_quant_params;

typedef struct mt_quant {
    mt_quant_method method;
    const mt_config *table; /* MLX: the dictionary with its overrides; borrowed from the config */
    mt_quant_params params; /* MLX: where no override says otherwise */
} mt_quant;

/* Reads config.json's `quantization` or `quantization_config`. Methods motet does not read are MT_E_UNSUPPORTED. */
bool mt_quant_read(mt_quant *q, const mt_config *config, mt_error *err) MT_NODISCARD;

/* What the config says of the module at path ("language_model.model.layers.0.mlp.gate"), the global values where it
   says nothing or nonsense. `false` in the config gives the global values too: only the tensors tell. */
mt_quant_params mt_quant_lookup(const mt_quant *q, const char *path);

/* What packed words [.., words] with scales [.., scales] are. k is the number of columns, or 0 when it is not known:
   then it follows from the group the config gives for path. False when nothing fits. */
bool mt_quant_resolve(const mt_quant *q, const char *path, const mt_tensor_info *words, const mt_tensor_info *scales,
                      uint64_t k, mt_quant_params *out);

/* "affine", "mxfp4", ...; "bf16", "f32", "fp8". */
const char *mt_format_name(mt_format format);

#endif
