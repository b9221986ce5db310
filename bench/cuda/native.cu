/* The kernels of the arithmetic `native` (docs/numerics.md) for sm_90, and a loop that measures what tensor cores do
   at most. native.c runs them. */
#include "matmul_f16_prompt.cuh"
#include "matmul_w4_rows1_64.cuh"

/* Products of 64 x 128 x 16 in fp16, operands in shared memory, nothing copied: `rounds` times 16 for a warpgroup. */
extern "C" __global__ void __launch_bounds__(NATIVE_PEAK_THREADS, 1) mtk_native_peak_f16(float *out, uint32_t rounds)
{
    __shared__ __align__(1024) uint16_t room[(64 + 128) * NATIVE_CHUNK];
    float d[64] = {0};
    for (uint32_t i = threadIdx.x; i < sizeof(room) / 2; i += NATIVE_PEAK_THREADS)
        room[i] = (uint16_t)(0x3800 | (i * 2654435761u >> 16 & 0x83ff)); /* 0.5 to 1, both signs */
    products_see();
    __syncthreads();
    const uint64_t a = along(shared_address(room)), b = along(shared_address(room) + 64 * NATIVE_CHUNK * 2);
    for (uint32_t r = 0; r < rounds; r++) {
        products_begin();
#pragma unroll
        for (int i = 0; i < NATIVE_PEAK_PRODUCTS; i++)
            product_f16(d, a + i % 4 * 2, b + i % 4 * 2, 1);
        products_commit();
        products_wait();
    }
    settle(d);
    if (d[0] == 1234567) /* never: the products are needed */
        *out = 1;
}
