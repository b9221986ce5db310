/* Finds the best logits of each row, from which a token is chosen (choose.c), so that the host need not read a whole
   vocabulary; and hands chosen tokens to the next step. */
#include "device/cuda/common.cuh"

enum { BLOCK_S = 256 }; /* logits whose largest is looked at */

/* A block a row: every logit that is no less than the MT_CUDA_SHORT-th largest of the blocks' largest, which are at
   least so many, in any order. A NaN or +inf is told instead of all. Shared memory: the largest of each block. */
KERNEL(shortlist)(mt_cuda_short p)
{
    extern __shared__ float peak[];
    __shared__ float low;
    __shared__ uint32_t count;
    const uint32_t blocks = (p.vocab + BLOCK_S - 1) / BLOCK_S, lane = threadIdx.x % 32;
    const float *x = row_of(p.x, blockIdx.x);
    uint32_t *out = p.out + (uint64_t)blockIdx.x * MT_CUDA_SHORT_WORDS;
    follow_last();
    bool bad = false;
    for (uint32_t b = threadIdx.x / 32; b < blocks; b += blockDim.x / 32) {
        float most = -INFINITY;
        for (uint32_t i = b * BLOCK_S + lane; i < (b + 1) * BLOCK_S && i < p.vocab; i += 32) {
            bad = bad || !(x[i] < INFINITY);
            most = fmaxf(most, x[i]);
        }
        for (int width = 16; width > 0; width /= 2)
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, width));
        if (lane == 0)
            peak[b] = most;
    }
    if (threadIdx.x == 0) {
        low = -INFINITY;
        count = 0;
    }
    if (__syncthreads_or(bad)) {
        if (threadIdx.x == 0) {
            out[0] = 1;
            out[2] = 0;
            out[3] = mt_f32_bits(NAN);
        }
        return;
    }
    for (uint32_t b = threadIdx.x; b < blocks; b += blockDim.x) {
        uint32_t above = 0, as_high = 0;
        for (uint32_t i = 0; i < blocks; i++) {
            above += peak[i] > peak[b];
            as_high += peak[i] >= peak[b];
        }
        if (above < MT_CUDA_SHORT && as_high >= MT_CUDA_SHORT)
            low = peak[b]; /* all that come here have the same */
    }
    __syncthreads();
    for (uint32_t b = threadIdx.x / 32; b < blocks; b += blockDim.x / 32)
        for (uint32_t i = b * BLOCK_S + lane; peak[b] >= low && i < (b + 1) * BLOCK_S && i < p.vocab; i += 32)
            if (x[i] >= low && x[i] > -INFINITY) {
                const uint32_t at = atomicAdd(&count, 1);
                if (at < MT_CUDA_SHORT_MOST) {
                    out[2 + at * 2] = i;
                    out[3 + at * 2] = mt_f32_bits(x[i]);
                }
            }
    __syncthreads();
    if (threadIdx.x == 0)
        out[0] = count;
}

/* A block a row: the best logit, of equals the first; a NaN where one is NaN or +inf. As one number that is the larger
   the better: the logit in the order of integers, then the id, turned round. */
KERNEL(best)(mt_cuda_choice p)
{
    __shared__ unsigned long long room[32];
    const float *x = row_of(p.x, blockIdx.x);
    unsigned long long most = 0;
    bool bad = false;
    follow_last();
    for (uint32_t i = threadIdx.x; i < p.vocab; i += blockDim.x) {
        const float logit = x[i] + 0.0f; /* makes one zero of two */
        const uint32_t bits = mt_f32_bits(logit), ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
        const unsigned long long key = (unsigned long long)ascending << 32 | ~i;
        bad = bad || !(logit < INFINITY);
        most = key > most ? key : most;
    }
    for (int width = 16; width > 0; width /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffffu, most, width);
        most = other > most ? other : most;
    }
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = most;
    bad = __syncthreads_or(bad);
    if (threadIdx.x >= 32)
        return;
    most = threadIdx.x < blockDim.x / 32 ? room[threadIdx.x] : 0;
    for (int width = 16; width > 0; width /= 2) {
        const unsigned long long other = __shfl_xor_sync(0xffffffffu, most, width);
        most = other > most ? other : most;
    }
    if (threadIdx.x == 0) {
        const uint32_t ascending = (uint32_t)(most >> 32), id = ~(uint32_t)most;
        p.out[2 * blockIdx.x] = bad ? 0 : id;
        p.out[2 * blockIdx.x + 1] = bad ? mt_f32_bits(NAN) : ascending >> 31 ? ascending & 0x7fffffffu : ~ascending;
    }
}

/* Tokens that the host does not know yet. */
KERNEL(follow)(mt_cuda_follow p)
{
    follow_last();
    for (uint32_t i = threadIdx.x; i < p.m; i += blockDim.x)
        if (p.from[i] != 0xffffffffu)
            p.tokens[i] = p.chosen[2 * p.from[i]];
}
