/* R3 and R4: activations in blocks of 32 that share a scale, and how their dot products become floats.

   Integer sums start from the bits of MT_DOT_START, whose unit in the last place is one: taken as a float, the sum is
   MT_DOT_START + dot. So fma(mul, sum, add) can scale it without a conversion. Two blocks of one group of weights
   make a link: the first block's sum is brought to the second block's scale, as an integer again (mul = xs0 / xs1,
   add = MT_DOT_START * (1 - mul)), and the second block's products are added to it. The end of a link is xs * dot: a
   scale has 22 significant bits, so that mul = xs, add = -(MT_DOT_START * xs) are exact, and the fma rounds once.

   A sum must stay between 2^23 and 2^24. So the second scale of a link is at least a third of the first where weights
   have 8 bits, a fifteenth where they have 6 or fewer, give or take half a percent: |dot| of a block is at most 32 *
   127 * 255 (63), that of a link 4.02 (16.1) times as much, and less than 2^22. */
#ifndef MT_KERNELS_BLOCK_H
#define MT_KERNELS_BLOCK_H

#include <math.h>
#include <stdbool.h>

#include "kernels/convert.h"

#define MT_DOT_START 0x1.8p23f
#define MT_DOT_BITS 0x4b400000 /* of MT_DOT_START */

enum { MT_BLOCK = 32 };

/* Elements whose dot product is taken at once: a block, or a group where groups are smaller. */
MT_LEAF size_t mt_unit(size_t group)
{
    return group < MT_BLOCK ? group : MT_BLOCK;
}

/* Units of a link */
MT_LEAF size_t mt_link(size_t group)
{
    return group % (2 * MT_BLOCK) == 0 ? 2 : 1;
}

/* What becomes of a sum: fma(mul, sum, add) */
typedef struct mt_turn {
    float mul, add;
} mt_turn;

MT_LEAF mt_turn mt_turn_end(float xs)
{
    const mt_turn turn = {xs, -(MT_DOT_START * xs)};
    return turn;
}

MT_LEAF mt_turn mt_turn_on(float from, float to)
{
    const float mul = to > 0.0f ? from / to : 0.0f;
    const mt_turn turn = {mul, fmaf(-MT_DOT_START, mul, MT_DOT_START)};
    return turn;
}

/* A block's scale, what its elements are multiplied with (0 where they cannot be: all are 0 then), and whether the
   scale is the least it may be. */
typedef struct mt_block {
    float xs, factor;
    bool least;
} mt_block;

MT_LEAF float mt_scale_22(float x)
{
    return mt_f32_from_bits(mt_f32_bits(x) & ~3u);
}

/* The least scale of a block behind one of scale `before` in its link; `wide`: for weights of 8 bits */
MT_LEAF float mt_block_least(float before, bool wide)
{
    return mt_scale_22(before * (wide ? 1.0f / 3.0f : 1.0f / 15.0f));
}

/* NaN stays NaN. */
MT_LEAF mt_block mt_block_of(float amax, float least)
{
    mt_block b = {mt_scale_22(amax * (1.0f / 127.0f)), 127.0f / amax, false};
    if (!(b.xs >= least)) {
        b.xs = b.xs != b.xs ? b.xs : least;
        b.factor = 1.0f / least;
        b.least = true;
    }
    b.factor = b.factor <= 0x1.fffffep127f && amax <= 0x1.fffffep127f ? b.factor : 0.0f;
    return b;
}

/* The scale that fits best: xq is the sum of x * q, by R6, and qq that of q * q. It differs from amax / 127 by half a
   percent at most. */
MT_LEAF float mt_block_fit(mt_block b, float xq, float qq)
{
    return b.least || !(qq > 0.0f) ? b.xs : mt_scale_22(xq / qq);
}

#endif
