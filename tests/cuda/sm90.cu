/* One step of the tensor cores of sm_90, by both instructions, for sm90.c.

   A block has a unit: 64 rows a, 8 rows b of 16 operands, and c of 64 x 8. Its four warps multiply their 16 rows with
   mma.sync m16n8k16, and all 64 together with wgmma m64n8k16, whose b lies in shared memory, swizzled by 128 bytes
   (device/cuda/common/mma.cuh); what is not among its 16 columns there is zero and not read. Nothing here is for speed.
   */
#include <cstdint>

struct unit {
    uint16_t a[64][16], b[8][16];
    float c[64][8];
};

struct sums {
    float warp[64][8], group[64][8];
};

template <bool BF16>
static __device__ void multiply_warp(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    if (BF16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <bool BF16> static __device__ void multiply_group(float (&d)[4], const uint32_t (&a)[4], uint64_t b)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    if (BF16)
        asm volatile(
            "{.reg .pred add;\n"
            "setp.eq.u32 add, 0, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, add, 1, 1, 0;}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    else
        asm volatile(
            "{.reg .pred add;\n"
            "setp.eq.u32 add, 0, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, add, 1, 1, 0;}"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

template <bool BF16> static __device__ void step(const unit &u, sums &s)
{
    __shared__ __align__(1024) uint8_t rows[8 * 128];
    const int thread = threadIdx.x, lane = thread % 32, row = thread / 32 * 16 + lane / 4, pair = lane % 4 * 2;
    if (thread < 64) { /* chunks of 16 bytes */
        const int r = thread / 8, chunk = thread % 8;
        *(uint4 *)(rows + r * 128 + (chunk ^ r) * 16) =
            chunk < 2 ? ((const uint4 *)u.b[r])[chunk] : make_uint4(0, 0, 0, 0);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    uint32_t a[4];
    float warp[4], group[4];
    for (int i = 0; i < 4; i++) {
        a[i] = *(const uint32_t *)&u.a[row + i % 2 * 8][pair + i / 2 * 8];
        warp[i] = group[i] = u.c[row + i / 2 * 8][pair + i % 2];
    }
    const uint32_t *b = (const uint32_t *)&u.b[lane / 4][pair];
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(rows);
    multiply_warp<BF16>(warp, a, b[0], b[4]);
    multiply_group<BF16>(group, a, (uint64_t)(at >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62);
    for (int i = 0; i < 4; i++) {
        s.warp[row + i / 2 * 8][pair + i % 2] = warp[i];
        s.group[row + i / 2 * 8][pair + i % 2] = group[i];
    }
}

extern "C" __global__ void __launch_bounds__(128) step_f16(const unit *units, sums *out)
{
    step<false>(units[blockIdx.x], out[blockIdx.x]);
}

extern "C" __global__ void __launch_bounds__(128) step_bf16(const unit *units, sums *out)
{
    step<true>(units[blockIdx.x], out[blockIdx.x]);
}
