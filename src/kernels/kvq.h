/* Keys and values stored in 8 or 4 bits. A vector has one scale d, in bf16; an element is d times an integer of at most
   127 or, with 4 bits, d times 16 times an integer of at most 7.

   Some channels of a key are often much larger than the others, which would then be rounded to nothing. So vectors are
   first rotated ("turned" in names here), queries like keys, which does not change their products: x becomes H D x,
   with D the signs of mt_kvq_signs and H the Hadamard matrix, for each mt_kvq_turned(stride) channels separately. That
   spreads every channel over all of them; D does so for what the channels have in common. The inverse is D H x / n.

   A block of `tokens` positions has their scales, followed by the integers in the order that matrix instructions want,
   the same at every level:

       keys    [position / 8][channel / 8][position % 8][channel % 8]
       values  [channel / 32][position / 8][channel % 32][position % 8]

   With 4 bits, there are half as many bytes for each 32 channels, and the upper half of a byte belongs to the channel
   16 after that of the lower half: so positions never share a byte, and threads may write different positions. */
#ifndef MT_KERNELS_KVQ_H
#define MT_KERNELS_KVQ_H

#include <float.h>

#include "kernels/convert.h"
#include "kernels/kernels.h"

#define MT_KVQ_STRIDE 1024         /* the widest head */
#define MT_KVQ_WEIGHT_MAX 65535.0f /* largest integer weight of a value */
#define MT_KVQ_EXP_MIN (-80.0f)    /* least exponent of p: the difference is negligible, and exp is simpler */

/* Channels that are rotated together: the largest power of two that divides head_stride, at most 256. */
MT_LEAF size_t mt_kvq_turned(size_t head_stride)
{
    const size_t n = head_stride & (~head_stride + 1);
    return n < 256 ? n : 256;
}

/* Bits i, i + 1, ... up to the next multiple of 32 of the Rudin-Shapiro sequence (whether a number has an odd count of
   neighbouring ones), as signs. The Hadamard matrix alone would map channels that are all alike to one large channel;
   with these signs, none is large. */
MT_LEAF uint32_t mt_kvq_signs(size_t i)
{
    static const uint32_t bits[8] = {0x4748b848u, 0xb8b7b848u, 0x4748b848u, 0x474847b7u,
                                     0x4748b848u, 0xb8b7b848u, 0xb8b747b7u, 0xb8b7b848u};
    return bits[i / 32 % 8] >> i % 32;
}

MT_LEAF size_t mt_kvq_block_bytes(size_t tokens, size_t head_stride, unsigned bits)
{
    return tokens * (sizeof(mt_bf16) + head_stride * bits / 8);
}

/* Bytes of a query: int8 [head_stride], then its scale in fp32. */
MT_LEAF size_t mt_kvq_query_bytes(size_t head_stride)
{
    return head_stride + sizeof(float);
}

/* Offset in the block of the byte of channel c of the 32 channels `group`; with 4 bits, c + 16 is in the same byte. */
MT_LEAF size_t mt_kvq_key_at(size_t tokens, size_t head_stride, unsigned bits, size_t slot, size_t group, size_t c)
{
    return tokens * sizeof(mt_bf16) + slot / 8 * head_stride * bits + group * 32 * bits + c / 8 * 64 + slot % 8 * 8 +
           c % 8;
}

MT_LEAF size_t mt_kvq_value_at(size_t tokens, unsigned bits, size_t slot, size_t group, size_t c)
{
    return tokens * sizeof(mt_bf16) + group * 4 * bits * tokens + slot / 8 * 32 * bits + c * 8 + slot % 8;
}

MT_LEAF float mt_kvq_scale(const uint8_t *block, size_t slot)
{
    mt_bf16 d;
    memcpy(&d, block + slot * sizeof(d), sizeof(d));
    return mt_f32_from_bf16(d);
}

/* Reads the integers of a position, [head_stride]. */
MT_LEAF void mt_kvq_integers(int8_t *q, const uint8_t *block, size_t tokens, size_t head_stride, unsigned bits,
                             size_t slot, bool value)
{
    for (size_t g = 0; g < head_stride / 32; g++, q += 32)
        for (size_t c = 0; c < 4 * bits; c++) {
            const uint8_t x = block[value ? mt_kvq_value_at(tokens, bits, slot, g, c)
                                          : mt_kvq_key_at(tokens, head_stride, bits, slot, g, c)];
            q[c] = (int8_t)(bits == 8 ? x : (uint8_t)(x << 4));
            if (bits == 4)
                q[c + 16] = (int8_t)(x & 0xf0u);
        }
}

#endif
