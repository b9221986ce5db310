/* Scores of a segment's keys in registers, as products of bf16 leave them: s[i][j][h * 2 + e] is of row
   16 i + 8 h + lane / 4 and of the warp's key 8 j + 2 (lane % 4) + e. `room` is the kernel's shared memory: `seen` by
   row, `most` by warp and row. */
#ifndef MT_DEVICE_CUDA_ATTENTION_SCORES_CUH
#define MT_DEVICE_CUDA_ATTENTION_SCORES_CUH

#include "device/cuda/attention/attention.cuh"

/* Scales and masks; each row's largest score among this warp's keys. */
template <int MT, int EIGHTS, typename room_type>
static __device__ inline void mask(float (&s)[MT][EIGHTS][4], room_type &room, const mt_cuda_attention &p,
                                   uint32_t first)
{
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int i = 0; i < MT; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t row = i * 16 + h * 8 + lane / 4;
            const range seen = room.seen[row];
            float most = -INFINITY;
#pragma unroll
            for (int j = 0; j < EIGHTS; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const uint32_t at = first + warp * (EIGHTS * 8) + j * 8 + lane % 4 * 2 + e;
                    float x = s[i][j][h * 2 + e] * p.scale;
                    x = p.softcap != 0.0f ? mt_softcap1(x, p.softcap) : x;
                    x = at >= seen.lo && at < seen.hi ? x : -INFINITY;
                    s[i][j][h * 2 + e] = x;
                    most = mt_max1(most, x);
                }
            most = mt_max1(most, __shfl_xor_sync(0xffffffffu, most, 1));
            most = mt_max1(most, __shfl_xor_sync(0xffffffffu, most, 2));
            if (lane % 4 == 0)
                room.most[warp][row] = most;
        }
}

#endif
