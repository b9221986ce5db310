/* Counts tensors by how they are stored (census.h). */
#include "weights/census.h"

#include "weights/limits.h"

#include "kernels/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *s, size_t len, const char *suffix)
{
    size_t end = strlen(suffix);
    return len >= end && memcmp(s + len - end, suffix, end) == 0;
}

/* The tensor whose name is the first `stem` bytes of name, followed by suffix. */
static const mt_tensor_info *sibling(const mt_checkpoint *c, const char *name, size_t stem, const char *suffix)
{
    char full[MT_LIMIT_TENSOR_NAME + 32];
    snprintf(full, sizeof(full), "%.*s%s", (int)stem, name, suffix);
    return mt_checkpoint_find(c, full);
}

/* Whether a tensor belongs to a quantised matrix: its scales, zero points and the like. */
static bool is_companion(const mt_checkpoint *c, const mt_tensor_info *t)
{
    static const char *const suffixes[] = {".scales",
                                           ".biases",
                                           "_scale_inv",
                                           ".activation_scale",
                                           "_scales",
                                           ".qzeros",
                                           ".g_idx",
                                           ".weight_scale",
                                           ".weight_scale_2",
                                           ".weight_zero_point",
                                           ".weight_shape",
                                           ".weight_g_idx",
                                           ".weight_global_scale",
                                           ".input_global_scale",
                                           ".input_scale",
                                           ".SCB",
                                           ".weight_format",
                                           ".weight.absmax",
                                           ".weight.quant_map",
                                           ".weight.nested_absmax",
                                           ".weight.nested_quant_map",
                                           ".weight.quant_state.bitsandbytes__nf4",
                                           ".weight.quant_state.bitsandbytes__fp4"};
    static const char *const owners[] = {".weight", "", "_blocks", ".qweight", ".weight_packed"};
    size_t len = strlen(t->name);
    for (size_t i = 0; i < MT_COUNT(suffixes); i++) {
        for (size_t o = 0; o < MT_COUNT(owners) && ends_with(t->name, len, suffixes[i]); o++) {
            if (sibling(c, t->name, len - strlen(suffixes[i]), owners[o]))
                return true;
        }
    }
    return false;
}

/* Whether it holds MXFP4 blocks, with two elements a byte and exponents beside them. */
static bool is_blocks(const mt_checkpoint *c, const mt_tensor_info *t)
{
    static const char suffix[] = "_blocks";
    const size_t len = strlen(t->name);
    return t->dtype == MT_DTYPE_U8 && ends_with(t->name, len, suffix) &&
           sibling(c, t->name, len - strlen(suffix), "_scales");
}

/* How many columns packed words stand for, and how they are packed; 0 where t is not packed. */
static uint64_t packed_columns(const mt_checkpoint *c, const mt_quant *q, const mt_tensor_info *t, mt_quant_params *p)
{
    size_t len = strlen(t->name), stem = ends_with(t->name, len, ".weight") ? len - strlen(".weight") : len;
    const mt_tensor_info *scales = t->dtype == MT_DTYPE_U32 ? sibling(c, t->name, stem, ".scales") : NULL;
    char path[MT_LIMIT_TENSOR_NAME + 1];
    snprintf(path, sizeof(path), "%.*s", (int)stem, t->name);
    if (!scales || !mt_quant_resolve(q, path, t, scales, 0, p))
        return 0;
    return scales->shape[scales->dims - 1] * p->group;
}

/* The scales of an FP8 matrix, under any of their names. */
static const mt_tensor_info *fp8_scales(const mt_checkpoint *c, const mt_tensor_info *t)
{
    const mt_tensor_info *scales = sibling(c, t->name, strlen(t->name), "_scale_inv");
    return scales ? scales : sibling(c, t->name, strlen(t->name), "_scale");
}

static const char *fp8_label(const mt_checkpoint *c, const mt_tensor_info *t)
{
    const mt_tensor_info *scales = fp8_scales(c, t);
    const uint64_t rows = t->dims > 1 ? t->shape[t->dims - 2] : 1;
    if (scales && scales->dtype != MT_DTYPE_F32 && scales->dtype != MT_DTYPE_F16 && scales->dtype != MT_DTYPE_BF16)
        return "mxfp8";
    if (scales && (scales->dims == 0 || (scales->dims == 1 && scales->shape[0] == 1)))
        return "fp8 with one scale a matrix";
    if (scales && rows > 1 && scales->shape[scales->dims > t->dims - 1 ? t->dims - 2 : 0] == rows)
        return "fp8 with one scale a row";
    return "fp8 in 128 x 128 blocks";
}

static void label_plain(const mt_checkpoint *c, const mt_tensor_info *t, mt_census_kind *kind)
{
    static const struct {
        mt_dtype dtype;
        const char *label;
    } labels[] = {{MT_DTYPE_F32, "f32"}, {MT_DTYPE_F16, "f16"}, {MT_DTYPE_BF16, "bf16"}};
    const char *label = t->dtype_name;
    for (size_t i = 0; i < MT_COUNT(labels); i++) {
        if (labels[i].dtype == t->dtype)
            label = labels[i].label;
    }
    kind->quantised = t->dtype == MT_DTYPE_F8_E4M3 || t->dtype == MT_DTYPE_BLOCKS;
    if (t->dtype == MT_DTYPE_F8_E4M3)
        label = fp8_label(c, t);
    snprintf(kind->label, sizeof(kind->label), "%s", label);
}

static void label_packed(mt_quant_params p, mt_census_kind *kind)
{
    kind->quantised = true;
    if (mt_formats[p.format].biased)
        snprintf(kind->label, sizeof(kind->label), "affine %u-bit group %u", p.bits, p.group);
    else
        snprintf(kind->label, sizeof(kind->label), "%s", mt_formats[p.format].name);
}

/* ---- other quantisers' layouts ---- */

/* Names codes in groups; `groups` of them have `columns`. */
static void label_groups(mt_census_kind *kind, const char *who, unsigned bits, uint64_t columns, uint64_t groups)
{
    if (groups > 1)
        snprintf(kind->label, sizeof(kind->label), "%s %u-bit group %llu", who, bits,
                 (unsigned long long)((columns + groups - 1) / groups));
    else
        snprintf(kind->label, sizeof(kind->label), "%s %u-bit, one scale a row", who, bits);
}

/* GPTQ packs columns and AWQ outputs. */
static uint64_t count_qweight(const mt_checkpoint *c, const mt_quant *q, const mt_tensor_info *t, size_t stem,
                              mt_census_kind *kind)
{
    const mt_tensor_info *scales = sibling(c, t->name, stem, ".scales"), *index = sibling(c, t->name, stem, ".g_idx");
    const uint64_t n = scales && scales->dims == 2 ? scales->shape[1] : 0;
    if (t->dims != 2 || n == 0)
        return 0;
    const bool awq = t->shape[1] != n;
    unsigned bits = awq || q->bits == 0 ? 4 : q->bits;
    uint64_t k = awq ? t->shape[0] : t->shape[0] * 32 / bits;
    if (!awq && index && index->dims == 1 && index->shape[0] > 0) {
        k = index->shape[0];
        bits = (unsigned)(t->shape[0] * 32 / k);
    }
    label_groups(kind, awq ? "awq" : "gptq", bits, k, scales->shape[0]);
    return n * k;
}

static uint64_t count_packed(const mt_checkpoint *c, const mt_quant *q, const mt_tensor_info *t, size_t stem,
                             mt_census_kind *kind)
{
    const mt_tensor_info *scales = sibling(c, t->name, stem, ".weight_scale");
    const unsigned bits = t->dtype == MT_DTYPE_U8 || q->bits < 2 || q->bits > 8 ? 4 : q->bits;
    const uint64_t columns = t->dims ? t->shape[t->dims - 1] * (t->dtype == MT_DTYPE_U8 ? 2 : 32 / bits) : 0;
    if (!scales || columns == 0 || (t->dtype != MT_DTYPE_U8 && t->dtype != MT_DTYPE_I32))
        return 0;
    if (t->dtype == MT_DTYPE_U8)
        label_packed((mt_quant_params){.format = scales->dtype == MT_DTYPE_F8_E4M3 ? MT_FORMAT_NVFP4 : MT_FORMAT_MXFP4},
                     kind);
    else
        label_groups(kind, "int", bits, columns, scales->dims ? scales->shape[scales->dims - 1] : 1);
    return kind->parameters / t->shape[t->dims - 1] * columns;
}

static uint64_t count_bnb(const mt_checkpoint *c, const mt_tensor_info *t, size_t stem, mt_census_kind *kind)
{
    const bool nf4 = sibling(c, t->name, stem, ".weight.quant_state.bitsandbytes__nf4") != NULL;
    snprintf(kind->label, sizeof(kind->label), "bitsandbytes %s", nf4 ? "nf4" : "fp4");
    return 2 * kind->parameters;
}

/* The parameters of a matrix in one of these layouts, with its label; 0 where t is none. */
static uint64_t count_layout(const mt_checkpoint *c, const mt_quant *q, const mt_tensor_info *t, mt_census_kind *kind)
{
    static const char qweight[] = ".qweight", packed[] = ".weight_packed", plain[] = ".weight";
    const size_t len = strlen(t->name);
    if (t->dtype == MT_DTYPE_I32 && ends_with(t->name, len, qweight))
        return count_qweight(c, q, t, len - strlen(qweight), kind);
    if (ends_with(t->name, len, packed))
        return count_packed(c, q, t, len - strlen(packed), kind);
    if (!ends_with(t->name, len, plain))
        return 0;
    const size_t stem = len - strlen(plain);
    if (t->dtype == MT_DTYPE_U8 && sibling(c, t->name, stem, ".weight.absmax"))
        return count_bnb(c, t, stem, kind);
    if (t->dtype == MT_DTYPE_U8)
        return count_packed(c, q, t, stem, kind);
    const bool bnb = sibling(c, t->name, stem, ".SCB") != NULL;
    if (t->dtype != MT_DTYPE_I8 || (!bnb && !sibling(c, t->name, stem, ".weight_scale")))
        return 0;
    snprintf(kind->label, sizeof(kind->label), "%s", bnb ? "bitsandbytes int8" : "int8");
    return kind->parameters;
}

/* The kind of one tensor, with its counts. */
static mt_census_kind kind_of(const mt_checkpoint *c, const mt_quant *q, const mt_tensor_info *t)
{
    mt_census_kind kind = {.tensors = 1, .parameters = 1};
    mt_quant_params p;
    uint64_t columns = packed_columns(c, q, t, &p);
    for (unsigned i = 0; i < t->dims; i++)
        kind.parameters *= columns && i + 1 == t->dims ? columns : t->shape[i];
    const uint64_t other = columns ? 0 : count_layout(c, q, t, &kind);
    if (other) {
        kind.parameters = other;
        kind.quantised = true;
    } else if (is_blocks(c, t)) {
        kind.parameters *= 2;
        label_packed((mt_quant_params){.format = MT_FORMAT_MXFP4}, &kind);
    } else if (columns) {
        label_packed(p, &kind);
    } else {
        label_plain(c, t, &kind);
    }
    return kind;
}

/* Whether no layout has matrices of that type by themselves. */
static bool is_unread(const mt_tensor_info *t, const mt_census_kind *kind)
{
    return t->dtype == MT_DTYPE_OTHER ||
           (!kind->quantised && (t->dtype == MT_DTYPE_I8 || t->dtype == MT_DTYPE_I32 || t->dtype == MT_DTYPE_F8_E8M0));
}

static void add_kind(mt_census *out, const mt_census_kind *kind)
{
    size_t i = 0;
    while (i < out->count && strcmp(out->kind[i].label, kind->label) != 0)
        i++;
    if (i == MT_CENSUS_KINDS) {
        i--;
        snprintf(out->kind[i].label, sizeof(out->kind[i].label), "of other kinds");
    } else if (i == out->count) {
        out->kind[out->count++] = *kind;
        return;
    }
    out->kind[i].tensors += kind->tensors;
    out->kind[i].parameters += kind->parameters;
}

/* Quantised kinds come first: in small models the plain embedding has more parameters. */
static int by_weight(const void *a, const void *b)
{
    const mt_census_kind *x = a, *y = b;
    if (x->quantised != y->quantised)
        return x->quantised ? -1 : 1;
    if (x->parameters != y->parameters)
        return x->parameters < y->parameters ? 1 : -1;
    return strcmp(x->label, y->label);
}

void mt_census_make(mt_census *out, const mt_checkpoint *c, const mt_quant *q)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < mt_checkpoint_count(c); i++) {
        const mt_tensor_info *t = mt_checkpoint_at(c, i);
        if (is_companion(c, t))
            continue;
        mt_census_kind kind = kind_of(c, q, t);
        out->parameters += kind.parameters;
        if (is_unread(t, &kind)) {
            out->unread++;
            snprintf(out->unread_dtype, sizeof(out->unread_dtype), "%s", t->dtype_name);
        }
        if (t->dims >= 2)
            add_kind(out, &kind);
        if (ends_with(t->name, strlen(t->name), "embed_tokens.weight"))
            snprintf(out->embedding, sizeof(out->embedding), "%s", kind.label);
    }
    qsort(out->kind, out->count, sizeof(*out->kind), by_weight);
}

void mt_census_summary(const mt_census *census, mt_buf *out)
{
    bool quantised = false;
    for (size_t i = 0; i < census->count; i++)
        quantised |= census->kind[i].quantised;
    mt_buf_puts(out, quantised ? "" : "none (");
    mt_buf_puts(out, census->count ? census->kind[0].label : "no matrices");
    for (size_t i = 1; i < census->count; i++) {
        const mt_census_kind *kind = &census->kind[i];
        size_t tensors = kind->tensors - (strcmp(kind->label, census->embedding) == 0 ? 1 : 0);
        if (tensors > 0)
            mt_buf_printf(out, "; %zu tensor%s %s", tensors, tensors == 1 ? "" : "s", kind->label);
    }
    if (census->count && census->embedding[0] && strcmp(census->embedding, census->kind[0].label) != 0)
        mt_buf_printf(out, "; embeddings %s", census->embedding);
    mt_buf_puts(out, quantised ? "" : ")");
}
