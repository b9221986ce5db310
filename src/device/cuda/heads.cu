/* Norms and rotates the heads of rows, and writes those that are keys to their pages together with the values, as one
   kernel for all heads of a layer. Half a warp handles a head, which is in shared memory meanwhile. */
#include "device/cuda/activation.cuh"

/* Where a key or value of a row goes. What the step says was there before its first kernel. */
static __device__ inline uint8_t *find_place(const mt_cuda_heads &p, uint32_t head, bool value)
{
    const mt_cuda_kv &kv = p.kv;
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const uint32_t position = span.position + blockIdx.x - span.row,
                   page = p.step.pages[span.pages[kv.group] + position / kv.page_tokens];
    return kv.data + page * kv.page_bytes + ((p.layer * 2 + value) * (uint64_t)kv.heads + head) * kv.block +
           (uint64_t)(position % kv.page_tokens) * kv.head_stride * (kv.f32 ? 4 : 2);
}

/* Rounded once, zeros behind it. */
static __device__ inline void keep_head(const mt_cuda_kv &kv, const float *h, uint8_t *to)
{
    for (uint32_t d = threadIdx.x % 16; d < kv.head_stride; d += 16) {
        const float x = d < kv.head_dim ? h[d] : 0.0f;
        if (kv.f32)
            ((float *)to)[d] = x;
        else
            ((uint16_t *)to)[d] = mt_bf16_from_f32(x);
    }
}

/* Norm where there is a w, then rotation where there is a table. Shared memory: a head for each sixteen threads. Heads
   of up to 256 have all that is read in registers, so that nothing is waited for one by one. */
KERNEL(heads)(const __grid_constant__ mt_cuda_heads p)
{
    extern __shared__ float shared[];
    constexpr uint32_t MOST = 16; /* of a head's numbers, in registers */
    const uint32_t l = threadIdx.x % 16, dim = p.head_dim, n = blockIdx.y * (blockDim.x / 16) + threadIdx.x / 16;
    const uint32_t first = p.x[0].cols / dim, second = first + (p.count > 1 ? p.x[1].cols / dim : 0);
    const uint32_t all = second + (p.v.data ? p.kv.heads : 0), at = n < all ? n : all - 1;
    const uint32_t which = at < first    ? 0
                           : at < second ? 1
                                         : 2,
                   head = at - (which == 0   ? 0
                                : which == 1 ? first
                                             : second);
    const mt_cuda_mat &from = which == 2 ? p.v : p.x[which];
    const float *w = which < 2 ? p.w[which].data : NULL;
    const uint32_t half = which < 2 && p.table.data ? p.table.cols / 2 : 0;
    const float *c = half ? row_of(p.table, blockIdx.x) : NULL, *s = c + half;
    const bool keeps = n < all && (which == 2 || (p.v.data && which == p.keys));
    float *h = shared + threadIdx.x / 16 * dim, factor[MOST], cosine[MOST / 2], sine[MOST / 2];
    start_next();
    uint8_t *to = keeps ? find_place(p, head, which == 2) : NULL;
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
        if (w && l + i * 16 < dim)
            factor[i] = p.offset + w[l + i * 16];
    wait_for_last();
    const float *x = row_of(from, blockIdx.x) + head * dim;
    float some[MOST];
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
        some[i] = l + i * 16 < dim ? x[l + i * 16] : 0;
#pragma unroll
    for (uint32_t i = 0; i < MOST / 2; i++)
        if (l + i * 16 < half) {
            cosine[i] = c[l + i * 16];
            sine[i] = s[l + i * 16];
        }
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
        if (l + i * 16 < dim)
            h[l + i * 16] = some[i];
    for (uint32_t i = l + MOST * 16; i < dim; i += 16)
        h[i] = x[i];
    __syncwarp();
    const float r = rms(h, dim, p.eps);
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
        if (w && l + i * 16 < dim)
            h[l + i * 16] = (h[l + i * 16] * r) * factor[i];
    for (uint32_t i = l + MOST * 16; w && i < dim; i += 16)
        h[i] = (h[i] * r) * (p.offset + w[i]);
    __syncwarp();
#pragma unroll
    for (uint32_t j = 0; j < MOST / 2; j++) {
        const uint32_t i = l + j * 16, low = p.pairs ? 2 * i : i, high = p.pairs ? 2 * i + 1 : i + half;
        if (i >= half)
            continue;
        const float a = h[low], b = h[high];
        h[low] = fmaf(a, cosine[j], -(b * sine[j]));
        h[high] = fmaf(b, cosine[j], a * sine[j]);
    }
    for (uint32_t i = l + MOST / 2 * 16; i < half; i += 16) {
        const uint32_t low = p.pairs ? 2 * i : i, high = p.pairs ? 2 * i + 1 : i + half;
        const float a = h[low], b = h[high];
        h[low] = fmaf(a, c[i], -(b * s[i]));
        h[high] = fmaf(b, c[i], a * s[i]);
    }
    __syncwarp();
    if (n >= all)
        return;
    for (uint32_t i = l; which < 2 && i < dim; i += 16)
        row_of(p.y[which], blockIdx.x)[head * dim + i] = h[i];
    if (keeps)
        keep_head(p.kv, h, to);
}
