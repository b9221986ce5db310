/* How a checkpoint is quantised (quant.h). */
#include "weights/quant.h"

#include "weights/limits.h"

#include <stdio.h>
#include <string.h>

typedef struct mode_row {
    const char *name;
    mt_quant_params defaults;
} mode_row;

static const mode_row modes[] = {
    {"affine", {.format = MT_FORMAT_AFFINE, .bits = 4, .group = 64}},
    {"mxfp4", {.format = MT_FORMAT_MXFP4, .bits = 4, .group = 32}},
    {"nvfp4", {.format = MT_FORMAT_NVFP4, .bits = 4, .group = 16}},
    {"mxfp8", {.format = MT_FORMAT_MXFP8, .bits = 8, .group = 32}},
};

static const mode_row *find_mode(const char *name)
{
    for (size_t i = 0; i < MT_COUNT(modes); i++) {
        if (strcmp(modes[i].name, name) == 0)
            return &modes[i];
    }
    return NULL;
}

static bool known_bits(uint64_t bits)
{
    return bits >= 2 && bits <= 8 && bits != 7;
}

static bool known_group(uint64_t group)
{
    return group == 16 || group == 32 || group == 64 || group == 128;
}

/* Reads bits and group. Missing fields come from `base` where the mode is the same, else from the mode's defaults.
   Without a mode it is affine, even beside modules that name one. */
static bool read_params(const mt_config *table, mt_quant_params base, mt_quant_params *out, mt_error *err)
{
    const char *name = mt_config_string(table, "mode", modes[0].name);
    const mode_row *mode = find_mode(name);
    if (!mode)
        return mt_fail(
            err, MT_E_UNSUPPORTED,
            "the weights are quantised in mode \"%.60s\", which motet does not read; it reads affine, mxfp4, nvfp4 "
            "and mxfp8",
            name);
    if (mode->defaults.format != base.format)
        base = mode->defaults;
    int64_t bits = 0, group = 0;
    if (!mt_config_int(table, "bits", base.bits, 2, 8, &bits, err) ||
        !mt_config_int(table, "group_size", base.group, 16, 128, &group, err))
        return false;
    if (!known_bits((uint64_t)bits) || !known_group((uint64_t)group))
        return mt_fail(
            err, MT_E_UNSUPPORTED,
            "the weights are quantised to %d bits in groups of %d, which motet does not read; it reads 2, 3, "
            "4, 5, 6 and 8 bits in groups of 16, 32, 64 and 128",
            (int)bits, (int)group);
    *out = (mt_quant_params){.format = base.format, .bits = (uint8_t)bits, .group = (uint16_t)group};
    return true;
}

static bool read_mlx(mt_quant *q, const mt_config *table, mt_error *err)
{
    q->method = MT_QUANT_MLX;
    q->table = table;
    return read_params(table, modes[0].defaults, &q->params, err);
}

static bool read_fp8(mt_quant *q, const mt_config *table, mt_error *err)
{
    const char *fmt = mt_config_string(table, "fmt", "e4m3");
    if (strcmp(fmt, "e4m3") != 0)
        return mt_fail(err, MT_E_UNSUPPORTED,
                       "the weights are FP8 in format \"%.60s\", which motet does not read; it reads e4m3", fmt);
    if (mt_config_has(table, "weight_block_size")) {
        int64_t rows = mt_config_array_int(table, "weight_block_size", 0, 0);
        int64_t cols = mt_config_array_int(table, "weight_block_size", 1, 0);
        if (rows < 1 || cols < 1 || mt_config_array(table, "weight_block_size") != 2)
            return mt_fail(err, MT_E_INVALID,
                           "\"weight_block_size\" says FP8 in blocks of %lld x %lld; it has to be two sizes from 1 on",
                           (long long)rows, (long long)cols);
        q->block_rows = (size_t)rows;
        q->block_cols = (size_t)cols;
    }
    q->method = MT_QUANT_FP8;
    return true;
}

static bool read_mxfp4(mt_quant *q, const mt_config *table, mt_error *err)
{
    (void)table, (void)err;
    q->method = MT_QUANT_MXFP4;
    return true;
}

/* Refuses a variant of a method, which a key of the config names. */
static bool refuse(const char *method, const char *key, const char *value, const char *instead, mt_error *err)
{
    return mt_fail(err, MT_E_UNSUPPORTED,
                   "the weights are quantised by %s with %s \"%.60s\", which motet does not read; use %s", method, key,
                   value, instead);
}

static bool read_gptq(mt_quant *q, const mt_config *table, mt_error *err)
{
    const char *format = mt_config_string(table, "checkpoint_format", "gptq");
    const mt_config *meta = mt_config_object(table, "meta");
    const char *quantizer = meta ? mt_config_string(meta, "quantizer", NULL) : NULL;
    if (!quantizer)
        quantizer = meta ? mt_config_array_string(meta, "quantizer", 0) : NULL;
    q->method = MT_QUANT_GPTQ;
    q->symmetric = mt_config_bool(table, "sym", false);
    q->zeros_whole = strcmp(format, "gptq_v2") == 0;
    q->gptqmodel = quantizer && strncmp(quantizer, "gptqmodel", strlen("gptqmodel")) == 0;
    q->activation_order = mt_config_bool(table, "desc_act", false);
    int64_t bits = 0;
    if (!mt_config_int(table, "bits", 4, 2, 8, &bits, err))
        return false;
    q->bits = (unsigned)bits;
    if (!q->zeros_whole && strcmp(format, "gptq") != 0)
        return refuse("GPTQ", "checkpoint_format", format, "a checkpoint in the formats \"gptq\" or \"gptq_v2\"", err);
    return mt_config_int(table, "group_size", 0, -1, INT32_MAX, &q->group, err);
}

static bool read_awq(mt_quant *q, const mt_config *table, mt_error *err)
{
    const char *version = mt_config_string(table, "version", "gemm");
    q->method = MT_QUANT_AWQ;
    if (strcmp(version, "gemm") != 0 && strcmp(version, "GEMM") != 0)
        return refuse("AWQ", "version", version, "a checkpoint of version \"gemm\"", err);
    return mt_config_int(table, "group_size", 0, -1, INT32_MAX, &q->group, err);
}

/* Which of its formats a module has is told by the module's tensors; `ignore` and `targets` count for nothing here. */
static bool read_compressed(mt_quant *q, const mt_config *table, mt_error *err)
{
    static const char *const known[] = {"pack-quantized",  "int-quantized",        "float-quantized",
                                        "naive-quantized", "nvfp4-pack-quantized", "mxfp4-pack-quantized",
                                        "mxfp8-quantized", "mixed-precision",      "dense"};
    const char *format = mt_config_string(table, "format", known[0]);
    const mt_config *sparsity = mt_config_object(table, "sparsity_config");
    const char *sparse = sparsity ? mt_config_string(sparsity, "format", "dense") : "dense";
    const mt_config *transforms = mt_config_object(table, "transform_config");
    const mt_config *groups = mt_config_object(table, "config_groups");
    const mt_config *first = groups ? mt_config_object(groups, "group_0") : NULL;
    const mt_config *weights = first ? mt_config_object(first, "weights") : NULL;
    size_t i = 0;
    while (i < MT_COUNT(known) && strcmp(known[i], format) != 0)
        i++;
    if (i == MT_COUNT(known))
        return refuse("compressed-tensors", "format", format, "a checkpoint without sparsity", err);
    if (strcmp(sparse, "dense") != 0)
        return refuse("compressed-tensors", "sparsity_config", sparse, "a checkpoint without sparsity", err);
    if (transforms && mt_config_object(transforms, "config_groups") &&
        !mt_config_empty(mt_config_object(transforms, "config_groups")))
        return refuse("compressed-tensors", "transform_config", "config_groups", "a checkpoint without transforms",
                      err);
    q->method = MT_QUANT_COMPRESSED;
    int64_t bits = 0;
    if (weights && !mt_config_int(weights, "num_bits", 4, 1, 32, &bits, err))
        return false;
    q->bits = (unsigned)bits;
    q->activation_order = weights && strcmp(mt_config_string(weights, "actorder", ""), "group") == 0;
    if (weights && mt_config_array(weights, "block_structure") == 2) {
        const int64_t rows = mt_config_array_int(weights, "block_structure", 0, 0);
        const int64_t cols = mt_config_array_int(weights, "block_structure", 1, 0);
        q->block_rows = rows > 0 ? (size_t)rows : 0;
        q->block_cols = cols > 0 ? (size_t)cols : 0;
    }
    return true;
}

static bool read_modelopt(mt_quant *q, const mt_config *table, mt_error *err)
{
    static const char *const known[] = {
        "NVFP4", "FP8", "FP8_PB_WO", "FP8_PER_CHANNEL_PER_TOKEN", "MXFP8", "MIXED_PRECISION", "NVFP4_FP8_MIXED"};
    const char *algorithm = mt_config_string(table, "quant_algo", known[0]);
    q->method = MT_QUANT_MODELOPT;
    for (size_t i = 0; i < MT_COUNT(known); i++) {
        if (strcmp(known[i], algorithm) == 0)
            return true;
    }
    return refuse("ModelOpt", "quant_algo", algorithm, "a checkpoint in NVFP4 or FP8", err);
}

static bool read_bnb(mt_quant *q, const mt_config *table, mt_error *err)
{
    (void)table, (void)err;
    q->method = MT_QUANT_BNB;
    return true;
}

/* AutoRound writes other methods' layouts, and says whose. */
static bool read_auto_round(mt_quant *q, const mt_config *table, mt_error *err)
{
    const char *packing = mt_config_string(table, "packing_format", "auto_round");
    if (strcmp(packing, "auto_round:auto_gptq") == 0)
        return read_gptq(q, table, err);
    if (strcmp(packing, "auto_round:auto_awq") == 0)
        return read_awq(q, table, err);
    return refuse("AutoRound", "packing_format", packing, "an export in GPTQ's or AWQ's format", err);
}

static bool read_table(mt_quant *q, const mt_config *table, mt_error *err)
{
    static const struct {
        const char *name;
        bool (*read)(mt_quant *q, const mt_config *table, mt_error *err);
    } methods[] = {{"mlx", read_mlx},
                   {"fp8", read_fp8},
                   {"fbgemm_fp8", read_fp8},
                   {"compressed-tensors", read_compressed},
                   {"modelopt", read_modelopt},
                   {"bitsandbytes", read_bnb},
                   {"mxfp4", read_mxfp4},
                   {"gptq", read_gptq},
                   {"awq", read_awq},
                   {"auto-round", read_auto_round},
                   {"intel/auto-round", read_auto_round}};
    const char *method = mt_config_string(table, "quant_method", methods[0].name);
    for (size_t i = 0; i < MT_COUNT(methods); i++) {
        if (strcmp(method, methods[i].name) == 0)
            return methods[i].read(q, table, err);
    }
    return mt_fail(
        err, MT_E_UNSUPPORTED,
        "the weights are quantised by \"%.60s\", which motet does not read; use the original checkpoint, or one in "
        "FP8, GPTQ, AWQ, compressed-tensors or an MLX conversion",
        method);
}

/* MLX writes both keys; `quantization` is true for its tensors, the other may be left from the original. */
bool mt_quant_read(mt_quant *q, const mt_config *config, mt_error *err)
{
    *q = (mt_quant){.params = modes[0].defaults};
    const mt_config *places[] = {config, mt_config_object(config, "text_config")};
    for (size_t i = 0; i < MT_COUNT(places) && places[i]; i++) {
        const mt_config *mlx = mt_config_object(places[i], "quantization");
        if (mlx)
            return read_mlx(q, mlx, err);
        const mt_config *any = mt_config_object(places[i], "quantization_config");
        if (any)
            return read_table(q, any, err);
    }
    return true;
}

/* The module's override. Conversions differ in whether its path begins with "language_model." like the tensors. */
static const mt_config *find_override(const mt_config *table, const char *path)
{
    static const char lead[] = "language_model.";
    const mt_config *found = mt_config_object(table, path);
    if (!found && strncmp(path, lead, sizeof(lead) - 1) == 0)
        return mt_config_object(table, path + sizeof(lead) - 1);
    if (!found) {
        char longer[MT_LIMIT_TENSOR_NAME + sizeof(lead)];
        int len = snprintf(longer, sizeof(longer), "%s%s", lead, path);
        found = len > 0 && (size_t)len < sizeof(longer) ? mt_config_object(table, longer) : NULL;
    }
    return found;
}

mt_quant_params mt_quant_lookup(const mt_quant *q, const char *path)
{
    const mt_config *override = q->table ? find_override(q->table, path) : NULL;
    mt_quant_params params;
    if (override && read_params(override, q->params, &params, NULL))
        return params;
    return q->params;
}

/* The format of rows with `words` 32-bit words and `scales` scales for k columns; dtype: of the scales. */
static bool fits(uint64_t words, uint64_t scales, mt_dtype dtype, uint64_t k, mt_quant_params *out)
{
    if (k == 0 || scales == 0 || k % scales != 0 || k > MT_LIMIT_WIDTH * (uint64_t)16 || words > k ||
        words * 32 % k != 0)
        return false;
    uint64_t group = k / scales, bits = words * 32 / k;
    *out = (mt_quant_params){.bits = (uint8_t)bits, .group = (uint16_t)group};
    if (dtype == MT_DTYPE_F32 || dtype == MT_DTYPE_F16 || dtype == MT_DTYPE_BF16) {
        out->format = MT_FORMAT_AFFINE;
        return known_bits(bits) && known_group(group) && group != 16;
    }
    if (dtype != MT_DTYPE_U8)
        return false;
    out->format = group == 16 ? MT_FORMAT_NVFP4 : bits == 8 ? MT_FORMAT_MXFP8 : MT_FORMAT_MXFP4;
    return (group == 16 && bits == 4) || (group == 32 && (bits == 4 || bits == 8));
}

bool mt_quant_resolve(const mt_quant *q, const char *path, const mt_tensor_info *words, const mt_tensor_info *scales,
                      uint64_t k, mt_quant_params *out)
{
    if (words->dtype != MT_DTYPE_U32 || words->dims == 0 || words->dims != scales->dims)
        return false;
    uint64_t w = words->shape[words->dims - 1], s = scales->shape[scales->dims - 1];
    if (k != 0)
        return fits(w, s, scales->dtype, k, out);
    mt_quant_params said = mt_quant_lookup(q, path);
    const uint16_t groups[] = {said.group, 64, 32, 128, 16};
    for (size_t i = 0; i < MT_COUNT(groups); i++) {
        if (s <= MT_LIMIT_WIDTH && fits(w, s, scales->dtype, s * groups[i], out))
            return true;
    }
    return false;
}
