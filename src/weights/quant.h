/* How a checkpoint is quantised, by its config and by the shapes of its tensors. Shapes count more: a module is
   quantised if its scales exist, and its parameters follow from the sizes; the config decides only what sizes leave
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
    MT_QUANT_MLX,   /* packed words, scales and perhaps biases */
    MT_QUANT_FP8,   /* E4M3 with a scale for each 128 x 128 block (Qwen, DeepSeek), or for a whole matrix (Mistral) */
    MT_QUANT_MXFP4, /* experts in blocks of 32 (gpt-oss) */
    MT_QUANT_GPTQ,
    MT_QUANT_AWQ,
    MT_QUANT_COMPRESSED, /* compressed-tensors: packed integers, int8, FP8, NVFP4, MXFP4 */
    MT_QUANT_MODELOPT,   /* NVIDIA's: NVFP4, FP8 */
    MT_QUANT_BNB         /* bitsandbytes: NF4, FP4, int8 */
} mt_quant_method;

typedef struct mt_quant_params {
    mt_format format; /* AFFINE, MXFP4, NVFP4 or MXFP8 */
    uint8_t bits;
    uint16_t group; /* elements with one scale */
} mt_quant_params;

typedef struct mt_quant {
    mt_quant_method method;
    /* MLX: the config's dictionary, which may have overrides for modules; borrowed from the config */
    const mt_config *table;
    mt_quant_params params;        /* MLX: for modules without an override */
    size_t block_rows, block_cols; /* FP8: of a block with one scale; 0: not said */
    unsigned bits;                 /* GPTQ, compressed-tensors: of a code; 0: not said */
    int64_t group;                 /* GPTQ, AWQ: columns of a group; -1: all; 0: not said */
    bool symmetric;                /* GPTQ: every zero point is half of the range, whatever is stored */
    bool zeros_whole;              /* GPTQ version 2: zero points are stored as they are, not less 1 */
    bool gptqmodel;                /* GPTQ written by GPTQModel */
    bool activation_order;         /* GPTQ, compressed-tensors: columns of a group need not be neighbours */
} mt_quant;

/* Reads `quantization` or `quantization_config` of config.json. False with a sentence; MT_E_UNSUPPORTED for unknown
   methods. */
bool mt_quant_read(mt_quant *q, const mt_config *config, mt_error *err) MT_NODISCARD;

/* The parameters that the config gives the module at path ("language_model.model.layers.0.mlp.gate"), or the global
   values where it says nothing valid. `false` also gives the global values: whether a module is quantised is decided by
   its tensors. */
mt_quant_params mt_quant_lookup(const mt_quant *q, const char *path);

/* Finds the parameters that packed words [.., words] with scales [.., scales] have. k: number of columns, or 0 where it
   is not known: then it follows from the config's group for path. False where nothing fits. */
bool mt_quant_resolve(const mt_quant *q, const char *path, const mt_tensor_info *words, const mt_tensor_info *scales,
                      uint64_t k, mt_quant_params *out);

#endif
