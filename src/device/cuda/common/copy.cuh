/* Copies from global to shared memory: cp.async, of 4 to 16 bytes a thread, and of many by the copying engine
   (barrier.cuh), whose completion mbarriers report. And barriers of some warps of a block. */
#ifndef MT_DEVICE_CUDA_COMMON_COPY_CUH
#define MT_DEVICE_CUDA_COMMON_COPY_CUH

#include "device/cuda/common/barrier.cuh"

/* ---- cp.async: a thread begins copies, marks them (copy_commit), and waits for all but the last so many marks ---- */

static __device__ inline void copy_16(unsigned to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(to), "l"(from) : "memory");
}

/* 4 or 8 bytes. */
static __device__ inline void copy_small(unsigned to, const void *from, uint32_t bytes)
{
    if (bytes == 8)
        asm volatile("cp.async.ca.shared.global [%0],[%1],8;" ::"r"(to), "l"(from) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(to), "l"(from) : "memory");
}

/* The first so many of 16 bytes, or of 4, then zeros. */
static __device__ inline void copy_some_16(unsigned to, const void *from, uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

static __device__ inline void copy_some_4(unsigned to, const void *from, uint32_t bytes)
{
    asm volatile("cp.async.ca.shared.global [%0],[%1],4,%2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

/* 16 bytes, or zeros where there is nothing. */
static __device__ inline void copy_or_clear(unsigned to, const void *from, bool there)
{
    copy_some_16(to, from, there ? 16 : 0);
}

static __device__ inline void copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int BUT> static __device__ inline void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(BUT) : "memory");
}

/* For all copies, marked or not. */
static __device__ inline void copy_wait_all(void)
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- barriers ---- */

#if __CUDA_ARCH__ >= 900 || !defined(__CUDA_ARCH__)

/* What one thread has initialised of mbarriers is there for copies; __syncthreads follows. */
static __device__ inline void barriers_are_made(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives when the copies this thread has begun are there. */
static __device__ inline void barrier_copied(uint64_t *b)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(b)) : "memory");
}

#endif

/* Threads of a warpgroup (or of several) alone. */
static __device__ inline void named_barrier(uint32_t id, uint32_t threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* The same where the numbers are constants. */
template <int ID, int COUNT> static __device__ inline void named_barrier(void)
{
    asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(COUNT) : "memory");
}

/* The same where lanes of a warp may come one after the other. */
template <int ID, int COUNT> static __device__ inline void named_barrier_apart(void)
{
    asm volatile("barrier.cta.sync %0,%1;" ::"n"(ID), "n"(COUNT) : "memory");
}

/* As named_barrier, and whether any of the threads has said so. */
static __device__ inline uint32_t any_at_barrier(uint32_t id, uint32_t threads, uint32_t mine)
{
    uint32_t any;
    asm volatile("{.reg .pred p, q;\n"
                 "setp.ne.u32 p, %3, 0;\n"
                 "bar.red.or.pred q, %1, %2, p;\n"
                 "selp.u32 %0, 1, 0, q;}"
                 : "=r"(any)
                 : "r"(id), "r"(threads), "r"(mine)
                 : "memory");
    return any;
}

#endif
