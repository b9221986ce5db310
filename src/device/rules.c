/* Rules that every backend follows (rules.h). */
#include "device/rules.h"

#include "device/native.h"
#include "kernels/format.h"
#include "kernels/kvq.h"

mt_class mt_rules_class(mt_precision precision, mt_numerics numerics, const mt_mat *mat, bool exact)
{
    if (exact || precision == MT_PRECISION_REFERENCE)
        return MT_CLASS_F;
    switch (mt_formats[mat->format].products) {
    case MT_PRODUCTS_INTEGER: return numerics == MT_NUMERICS_NATIVE && mt_native_fits(mat) ? MT_CLASS_N : MT_CLASS_Q;
    case MT_PRODUCTS_BF16: return MT_CLASS_B;
    case MT_PRODUCTS_F32: break;
    }
    return MT_CLASS_F;
}

unsigned mt_rules_kv_bits(mt_kv_type type)
{
    return type == MT_KV_Q8 ? 8 : type == MT_KV_Q4 ? 4 : 0;
}

size_t mt_rules_kv_stride(const mt_kv_shape *shape)
{
    const size_t multiple = mt_rules_kv_bits(shape->type) ? 2 * MT_LANES : MT_LANES;
    return (shape->head_dim + multiple - 1) / multiple * multiple;
}

/* Bytes of page_tokens vectors of this many elements, with padding. */
static size_t vectors(const mt_kv_shape *shape, size_t stride)
{
    const unsigned bits = mt_rules_kv_bits(shape->type);
    if (bits)
        return mt_kvq_block_bytes(shape->page_tokens, stride, bits);
    return shape->page_tokens * stride * (shape->type == MT_KV_F32 ? sizeof(float) : sizeof(mt_bf16));
}

mt_kv_parts mt_rules_kv_parts(const mt_kv_shape *shape)
{
    const size_t multiple = 2 * MT_LANES, rest = shape->head_dim - shape->latent;
    mt_kv_parts p = {.stride[0] = (shape->latent + multiple - 1) / multiple * multiple,
                     .stride[1] = (rest + multiple - 1) / multiple * multiple};
    p.second = vectors(shape, p.stride[0]);
    return p;
}

size_t mt_rules_kv_block(const mt_kv_shape *shape)
{
    const mt_kv_parts p = mt_rules_kv_parts(shape);
    if (shape->latent && mt_rules_kv_bits(shape->type))
        return p.second + (p.stride[1] ? vectors(shape, p.stride[1]) : 0);
    return vectors(shape, mt_rules_kv_stride(shape));
}

size_t mt_rules_kv_blocks(const mt_kv_shape *shape)
{
    return shape->latent ? 1 : 2 * shape->heads;
}

uint32_t mt_rules_fingerprint(const mt_way *way)
{
    return way->version << 16 | (way->level & 0xff) << 8 | (uint32_t)way->native << 3 | (uint32_t)way->kv_bits << 1 |
           (way->precision == MT_PRECISION_REFERENCE);
}

mt_way mt_rules_way(uint32_t fingerprint)
{
    return (mt_way){.version = fingerprint >> 16,
                    .level = fingerprint >> 8 & 0xff,
                    .native = fingerprint >> 3 & 1,
                    .kv_bits = (mt_kv_bits)(fingerprint >> 1 & 3),
                    .precision = fingerprint & 1 ? MT_PRECISION_REFERENCE : MT_PRECISION_FAST};
}
