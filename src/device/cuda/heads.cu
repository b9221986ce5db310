/* Heads of rows: normed, turned, and those that are keys into their pages together with the values, as one kernel for
   all of a layer. Half a warp a head, which stands in shared memory meanwhile. */
#include "device/cuda/activation.cuh"

/* A key or value of a row, rounded once, zeros behind it. */
static __device__ inline void keep_head(const mt_cuda_heads &p, const float *h, uint32_t head, bool value)
{
    const mt_cuda_kv &kv = p.kv;
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const uint32_t position = span.position + blockIdx.x - span.row,
                   page = p.step.pages[span.pages[kv.group] + position / kv.page_tokens];
    uint8_t *to = kv.data + page * kv.page_bytes + ((p.layer * 2 + value) * (uint64_t)kv.heads + head) * kv.block;
    const uint64_t at = (uint64_t)(position % kv.page_tokens) * kv.head_stride;
    for (uint32_t d = threadIdx.x % 16; d < kv.head_stride; d += 16) {
        const float x = d < kv.head_dim ? h[d] : 0.0f;
        if (kv.f32)
            ((float *)to)[at + d] = x;
        else
            ((uint16_t *)to)[at + d] = mt_bf16_from_f32(x);
    }
}

/* Norm where there is a w, then rotation where there is a table. Shared memory: a head for each sixteen threads. */
KERNEL(heads)(const __grid_constant__ mt_cuda_heads p)
{
    extern __shared__ float shared[];
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
    float *h = shared + threadIdx.x / 16 * dim;
    follow_last();
    for (uint32_t i = l; i < dim; i += 16)
        h[i] = row_of(from, blockIdx.x)[head * dim + i];
    __syncwarp();
    const float r = rms(h, dim, p.eps), *w = which < 2 ? p.w[which].data : NULL;
    for (uint32_t i = l; w && i < dim; i += 16)
        h[i] = (h[i] * r) * (p.offset + w[i]);
    __syncwarp();
    const uint32_t half = which < 2 && p.table.data ? p.table.cols / 2 : 0;
    const float *c = half ? row_of(p.table, blockIdx.x) : NULL, *s = c + half;
    for (uint32_t i = l; i < half; i += 16) {
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
    if (which == 2 || (p.v.data && which == p.keys))
        keep_head(p, h, head, which == 2);
}
