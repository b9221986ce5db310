/* How a checkpoint is quantised (quant.h). */
#include "weights/quant.h"

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

const char *mt_format_name(mt_format format)
{
    static const char *const names[] = {
        [MT_FORMAT_F32] = "f32",     [MT_FORMAT_F16] = "f16",       [MT_FORMAT_BF16] = "bf16",
        [MT_FORMAT_FP8] = "fp8",     [MT_FORMAT_AFFINE] = "affine", [MT_FORMAT_MXFP4] = "mxfp4",
        [MT_FORMAT_NVFP4] = "nvfp4", [MT_FORMAT_MXFP8] = "mxfp8",   [MT_FORMAT_SIGNED] = "signed",
        [MT_FORMAT_IQ4] = "iq4",
    };
    return names[format];
}

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
        if (rows != 128 || cols != 128 || mt_config_array(table, "weight_block_size") != 2)
            return mt_fail(
                err, MT_E_UNSUPPORTED,
                "the weights are FP8 in blocks of %lld x %lld, which motet does not read; it reads 128 x 128",
                (long long)rows, (long long)cols);
    }
    q->method = MT_QUANT_FP8;
    return true;
}

static bool read_table(mt_quant *q, const mt_config *table, mt_error *err)
{
    const char *method = mt_config_string(table, "quant_method", NULL);
    if (method && strcmp(method, "fp8") == 0)
        return read_fp8(q, table, err);
    if (method && strcmp(method, "mxfp4") == 0) {
        q->method = MT_QUANT_MXFP4;
        return true;
    }
    if (method && strcmp(method, "mlx") != 0)
        return mt_fail(
            err, MT_E_UNSUPPORTED,
            "the weights are quantised by \"%.60s\", which motet does not read; use the original checkpoint, its "
            "block FP8 version or an MLX conversion",
            method);
    return read_mlx(q, table, err);
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
