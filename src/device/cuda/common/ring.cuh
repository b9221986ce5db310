/* A ring of stages in shared memory, which some threads fill and others read: a stage is full when its barrier `full`
   has completed a phase, and empty when `empty` has. Each thread that fills or reads stages goes round with a place of
   its own. A filling thread begins with parity 1, since all stages are empty at first. */
#ifndef MT_DEVICE_CUDA_COMMON_RING_CUH
#define MT_DEVICE_CUDA_COMMON_RING_CUH

#include "device/cuda/common/copy.cuh"

typedef struct ring {
    uint32_t stage, parity; /* of the phase to wait for */
} ring;

/* On to the next stage, where the number of stages is a constant. */
template <int STAGES> static __device__ inline void step_ring(ring &r)
{
    r.stage = r.stage + 1 == STAGES ? 0 : r.stage + 1;
    r.parity ^= r.stage == 0;
}

/* The same where it is not. */
static __device__ inline void step_ring(ring &r, uint32_t stages)
{
    if (++r.stage == stages) {
        r.stage = 0;
        r.parity ^= 1;
    }
}

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* By one thread, before all meet: fills, frees: how many arrive when a stage is full, and when it is empty. */
static __device__ inline void init_ring(uint64_t *full, uint64_t *empty, uint32_t stages, uint32_t fills,
                                        uint32_t frees)
{
    for (uint32_t i = 0; i < stages; i++) {
        barrier_init(&full[i], fills);
        barrier_init(&empty[i], frees);
    }
}

#endif
#endif
