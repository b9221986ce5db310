/* Blocks of quantised activations (R3 and R4 of docs/numerics.md): 32 activations share a scale. This file defines how
   their integer dot products become floats.

   Integer sums start from the bits of MT_DOT_START, whose unit in the last place is 1: read as a float, such a sum is
   MT_DOT_START + dot. So fma(mul, sum, add), here called a turn, can scale it without a conversion. Two blocks of one
   group of weights make a link: the first block's sum is brought to the second block's scale, as an integer again (mul
   = xs0 / xs1, add = MT_DOT_START * (1 - mul)), and the second block's products are added to it. The turn at the end of
   a link gives xs * dot: a scale has 22 significant bits, so mul = xs and add = -(MT_DOT_START * xs) are exact, and the
   fma rounds once.

   A sum must stay between 2^23 and 2^24. So the second scale of a link is at least a third of the first where weights
   have 8 bits, and a fifteenth where they have 6 or fewer, within half a percent: |dot| of a block is at most 32 * 127
   * 255 (or 63), that of a link 4.02 (or 16.1) times as much, and less than 2^22. */
#ifndef MT_KERNELS_BLOCK_H
#define MT_KERNELS_BLOCK_H

#include <math.h>
#include <stdbool.h>

#include "kernels/convert.h"

#define MT_DOT_START 0x1.8p23f
#define MT_DOT_BITS 0x4b400000 /* the bits of MT_DOT_START */

enum { MT_BLOCK = 32 };

/* A unit: elements whose dot product is computed at once: a block, or a group where groups are smaller. */
MT_LEAF size_t mt_unit(size_t group)
{
    return group < MT_BLOCK ? group : MT_BLOCK;
}

/* How many units a link has. */
MT_LEAF size_t mt_link(size_t group)
{
    return group % (2 * MT_BLOCK) == 0 ? 2 : 1;
}

/* How a sum is scaled: fma(mul, sum, add). */
typedef struct mt_turn {
    float mul, add;
} mt_turn;

/* The turn at the end of a link; xs: the scale of its last block. */
MT_LEAF mt_turn mt_turn_end(float xs)
{
    const mt_turn turn = {xs, -(MT_DOT_START * xs)};
    return turn;
}

/* The turn that brings a sum from scale `from` to scale `to`. */
MT_LEAF mt_turn mt_turn_on(float from, float to)
{
    const float mul = to > 0.0f ? from / to : 0.0f;
    const mt_turn turn = {mul, fmaf(-MT_DOT_START, mul, MT_DOT_START)};
    return turn;
}

/* A block's scale xs; the factor that its elements are multiplied with (0 where that is not finite: then all are 0);
   whether xs is the least scale allowed. */
typedef struct mt_block {
    float xs, factor;
    bool least;
} mt_block;

/* x with 22 significant bits. */
MT_LEAF float mt_scale_22(float x)
{
    return mt_f32_from_bits(mt_f32_bits(x) & ~3u);
}

/* The least scale of a block that follows one of scale `before` in a link; wide: for weights of 8 bits. */
MT_LEAF float mt_block_least(float before, bool wide)
{
    return mt_scale_22(before * (wide ? 1.0f / 3.0f : 1.0f / 15.0f));
}

/* amax: largest magnitude of the block. NaN stays NaN. */
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

/* The scale that fits best in the least-squares sense; xq: sum of x * q, by R6; qq: sum of q * q. It differs from amax
   / 127 by at most half a percent. */
MT_LEAF float mt_block_fit(mt_block b, float xq, float qq)
{
    return b.least || !(qq > 0.0f) ? b.xs : mt_scale_22(xq / qq);
}

#endif
