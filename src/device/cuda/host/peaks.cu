/* Loops of independent multiply-adds that measure how many per second a card does. A round of a warp has as many
   operations as params.h says, whatever instructions there are. */
#include "device/cuda/common/common.cuh"

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "device/cuda/common/mma.cuh"

/* 64 rows by 128 columns, 32 of k: signed bytes. */
static __device__ inline void product_bytes(int (&d)[64], uint64_t a, uint64_t b)
{
#define R4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define R16(i) R4(i), R4(i + 4), R4(i + 8), R4(i + 12)
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "setp.eq.b32 p, 0, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {" D64 "}, %64, %65, p;\n"
                 "}"
                 : R16(0), R16(16), R16(32), R16(48)
                 : "l"(a), "l"(b));
#undef R16
#undef R4
}

/* Operands are whatever numbers: the results are not used. */
static __device__ inline void fill_operands(unsigned (&room)[6144])
{
    for (unsigned i = threadIdx.x; i < 6144; i += blockDim.x)
        room[i] = (i * 2654435761u & 0x00ff00ffu) | 0x3c003c00u;
    products_see();
    __syncthreads();
}

KERNEL(peak_int8)(mt_cuda_peak p)
{
    __shared__ __align__(1024) unsigned room[6144];
    int d[64] = {0};
    fill_operands(room);
    const uint64_t a = along(shared_address(room)), b = along(shared_address(room) + 8192);
    for (uint32_t r = 0; r < p.rounds; r++) {
        products_begin();
        for (int i = 0; i < 4; i++)
            product_bytes(d, a, b);
        products_commit();
        products_wait();
    }
    if (d[0] == 1234567)
        *p.out = 1;
}

KERNEL(peak_bf16)(mt_cuda_peak p)
{
    __shared__ __align__(1024) unsigned room[6144];
    float d[64] = {0};
    fill_operands(room);
    const uint64_t a = along(shared_address(room)), b = along(shared_address(room) + 8192);
    for (uint32_t r = 0; r < p.rounds; r++) {
        products_begin();
        for (int i = 0; i < 4; i++)
            product_scores(d, a, b, 1);
        products_commit();
        products_wait();
    }
    if (d[0] == 1234567)
        *p.out = 1;
}

#else

KERNEL(peak_int8)(mt_cuda_peak p)
{
    int c[8][4] = {{0}};
    const unsigned x = threadIdx.x * 2654435761u;
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < 64; i++)
            asm volatile(
                "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};"
                : "+r"(c[i % 8][0]), "+r"(c[i % 8][1]), "+r"(c[i % 8][2]), "+r"(c[i % 8][3])
                : "r"(x));
    if (c[0][0] == 1234567)
        *p.out = 1;
}

KERNEL(peak_bf16)(mt_cuda_peak p)
{
    float c[8][4] = {{0}};
    const unsigned x = (threadIdx.x * 2654435761u & 0x00ff00ffu) | 0x3c003c00u;
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < 64; i++)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                         "{%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},{%0,%1,%2,%3};"
                         : "+f"(c[i % 8][0]), "+f"(c[i % 8][1]), "+f"(c[i % 8][2]), "+f"(c[i % 8][3])
                         : "r"(x));
    if (c[0][0] == 1234567)
        *p.out = 1;
}

#endif

KERNEL(peak_fp32)(mt_cuda_peak p)
{
    float c[16];
    const float x = 1.0f + (float)threadIdx.x * 1e-6f;
#pragma unroll
    for (int i = 0; i < 16; i++)
        c[i] = (float)i;
    for (uint32_t r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < 512; i++)
            c[i % 16] = fmaf(c[i % 16], x, 0.5f);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 16; i++)
        sum += c[i];
    if (sum == 1234567)
        *p.out = sum;
}
