/* Hopper's barriers in shared memory, and the copies whose completion they report. */
#ifndef MT_DEVICE_CUDA_BARRIER_CUH
#define MT_DEVICE_CUDA_BARRIER_CUH

#include "device/cuda/common/common.cuh"

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

static __device__ inline void barrier_init(uint64_t *b, unsigned count)
{
    asm volatile("mbarrier.init.shared.b64 [%0],%1;" ::"r"(shared_address(b)), "r"(count));
}

/* Every lane says for itself that it is done with what it read or has handed on what it wrote. One lane that tells it
   for its warp after __syncwarp would do, but tools that look for races see no order between the others and who
   waits. */
static __device__ inline void barrier_arrive(uint64_t *b)
{
    asm volatile("mbarrier.arrive.shared.b64 _,[%0];" ::"r"(shared_address(b)) : "memory");
}

static __device__ inline void barrier_expect(uint64_t *b, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _,[%0],%1;" ::"r"(shared_address(b)), "r"(bytes) : "memory");
}

/* A barrier tells only odd phases from even ones: who comes so late that the next phase has ended as well waits for the
   one after it, or for ever. So a thread may wait only for phases that do not go on without it: it arrives at what the
   next one needs, or somebody does whom it meets in between. */
static __device__ inline void barrier_wait(uint64_t *b, unsigned phase)
{
    unsigned done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p,[%1],%2; selp.u32 %0,1,0,p;}"
                     : "=r"(done)
                     : "r"(shared_address(b)), "r"(phase)
                     : "memory");
}

static __device__ inline void fetch(void *to, const void *from, unsigned bytes, uint64_t *b)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0],[%1],%2,[%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(b))
                 : "memory");
}

/* ---- blocks of a cluster ---- */

/* The same to all blocks of a mask, at the same place of each; each has its own barrier told. */
static __device__ inline void fetch_for(uint16_t blocks, void *to, const void *from, unsigned bytes, uint64_t *b)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0],[%1],%2,[%3],%4;" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(b)), "h"(blocks)
                 : "memory");
}

/* At the barrier of one of them. */
static __device__ inline void barrier_arrive_at(uint64_t *b, unsigned block)
{
    asm volatile("{.reg .b32 at; mapa.shared::cluster.u32 at,%0,%1; mbarrier.arrive.shared::cluster.b64 _,[at];}" ::"r"(
                     shared_address(b)),
                 "r"(block)
                 : "memory");
}

/* All threads of all of them: a thread that arrives tells that it has come, and waits later until all have. */
static __device__ inline void cluster_arrive(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

static __device__ inline void cluster_wait(void)
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

static __device__ inline void cluster_meet(void)
{
    cluster_arrive();
    cluster_wait();
}

static __device__ inline unsigned cluster_size(void)
{
    unsigned blocks;
    asm("mov.u32 %0,%%cluster_nctaid.x;" : "=r"(blocks));
    return blocks;
}

static __device__ inline unsigned block_of_cluster(void)
{
    unsigned rank;
    asm("mov.u32 %0,%%cluster_ctarank;" : "=r"(rank));
    return rank;
}

#endif
#endif
