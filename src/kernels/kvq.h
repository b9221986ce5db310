/* Keys and values in 8 or 4 bits. A vector has one scale d, which is bf16; an element is d times an integer of at most
   127, or of at most 112 where 4 bits hold its sixteenth.

   Some channels of a key are often much larger than the rest, and would leave nothing of it. So vectors are turned
   first, queries like keys, which leaves products as they are: x becomes H D x, with D the signs of mt_kvq_signs and H
   Hadamard's matrix of ones of either sign, for each mt_kvq_turned(stride) channels by themselves. That spreads every
   channel over all of them; D does so for what channels have in common. Turned back, x is D H x / n.

   A block of `tokens` positions holds their scales, and behind them the integers, in the order in which products of
   matrices want them, the same at every level:

       keys    [position / 8][channel / 8][position % 8][channel % 8]
       values  [channel / 32][position / 8][channel % 32][position % 8]

   Where an integer has 4 bits, there are half as many bytes in each 32 channels, and the upper half of a byte belongs
   to the channel 16 after that of the lower one: a position never shares a byte with another, which a thread may be
   writing. */
#ifndef MT_KERNELS_KVQ_H
#define MT_KERNELS_KVQ_H

#include <float.h>

#include "kernels/convert.h"
#include "kernels/kernels.h"

#define MT_KVQ_STRIDE 1024         /* the widest head */
#define MT_KVQ_WEIGHT_MAX 65535.0f /* weights of values are integers up to this one */
#define MT_KVQ_EXP_MIN (-80.0f)    /* p is not less than exp of this: nobody notices, and exp is simpler */

/* Channels that are turned together: the largest power of two that divides head_stride, but no more than 256. */
MT_LEAF size_t mt_kvq_turned(size_t head_stride)
{
    const size_t n = head_stride & (~head_stride + 1);
    return n < 256 ? n : 256;
}

/* Bits i, i + 1, ... to the next multiple of 32 of the Rudin-Shapiro sequence: whether a number has an odd count of
   neighbouring ones. Of channels that are all alike Hadamard's matrix makes one that is large; of these signs, none. */
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

/* Bytes of a query: int8 [head_stride], then its scale, fp32. */
MT_LEAF size_t mt_kvq_query_bytes(size_t head_stride)
{
    return head_stride + sizeof(float);
}

/* Where in its block the byte of channel c of 32 lies; of 4 bits, that of c + 16 too. */
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

/* The integers of a position, [head_stride]. */
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
