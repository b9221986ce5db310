/* fp16 products of a warpgroup with fp32 sums, beside those in bf16 of device/cuda/wgmma.cuh, whose fences, waits and
   descriptors they share. Barriers and bulk copies: device/cuda/barrier.cuh. */
#ifndef MT_BENCH_CUDA_MMA_CUH
#define MT_BENCH_CUDA_MMA_CUH

#include <cuda_fp16.h>

#include "device/cuda/wgmma.cuh"

#define D4 "%0,%1,%2,%3"
#define D8 D4 ",%4,%5,%6,%7"
#define D16 D8 ",%8,%9,%10,%11,%12,%13,%14,%15"

/* d[64, n] = a[64, 16] b[n, 16]', or d += where `add`: a in registers, b swizzled in shared memory. */
#define PRODUCT_F16(n, floats, list, a0, a1, a2, a3, desc, pred, ...)                                               \
    static __device__ inline void product_f16(float(&d)[floats], const uint32_t(&a)[4], uint64_t b, int add)        \
    {                                                                                                               \
        asm volatile("{\n"                                                                                          \
                     ".reg .pred p;\n"                                                                              \
                     "setp.ne.b32 p, " pred ", 0;\n"                                                                \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.f16.f16 {" list "}, {" a0 "," a1 "," a2 "," a3 \
                     "}, " desc ", p, 1, 1, 0;\n"                                                                   \
                     "}"                                                                                            \
                     : __VA_ARGS__                                                                                  \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));                               \
    }
PRODUCT_F16(8, 4, D4, "%4", "%5", "%6", "%7", "%8", "%9", F4(d, 0))
PRODUCT_F16(16, 8, D8, "%8", "%9", "%10", "%11", "%12", "%13", F8(d, 0))
PRODUCT_F16(32, 16, D16, "%16", "%17", "%18", "%19", "%20", "%21", F16(d, 0))
PRODUCT_F16(64, 32, D32, "%32", "%33", "%34", "%35", "%36", "%37", F32(d, 0))

/* The same with a in shared memory, and n = 128. */
static __device__ inline void product_f16(float (&d)[64], uint64_t a, uint64_t b, int add)
{
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.ne.b32 p, %66, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" D64 "}, %64, %65, p, 1, 1, 0, 0;\n"
                 "}"
                 : F32(d, 0), F32(d, 32)
                 : "l"(a), "l"(b), "r"(add));
}

static __device__ inline uint32_t cluster_size(void)
{
    uint32_t blocks;
    asm("mov.u32 %0,%%cluster_nctaid.x;" : "=r"(blocks));
    return blocks;
}

/* *p in the shared memory of another block of the cluster. */
static __device__ inline float load_from_block(const float *p, uint32_t block)
{
    float v;
    asm volatile("{.reg .b32 at; mapa.shared::cluster.u32 at,%1,%2; ld.shared::cluster.f32 %0,[at];}"
                 : "=f"(v)
                 : "r"(shared_address(p)), "r"(block)
                 : "memory");
    return v;
}

/* Dynamic shared memory from a multiple of 1024 on, where swizzled tiles begin: at the same place in all blocks. */
static __device__ inline uint8_t *swizzled_memory(void)
{
    extern __shared__ uint8_t raw[];
    return raw + (1024 - shared_address(raw) % 1024) % 1024;
}

/* Byte of a chunk of 16 bytes in a swizzled tile whose rows have 128 bytes. */
static __device__ inline uint32_t swizzled(uint32_t row, uint32_t chunk)
{
    return row * 128 + (chunk ^ row % 8) * 16;
}

#endif
