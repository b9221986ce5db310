/* Keys and values into pages, and attention over pages of any kind by R8 with every sum by R6: a block a row and query
   head. It is what reference precision computes with, and heads that have no kernel of their own. */
#include "device/cuda/attention/attention.cuh"
#include "device/cuda/attention/kvq.cuh"

static __device__ inline uint8_t *block_at(const mt_cuda_attention &p, const uint32_t *pages, uint32_t position,
                                           uint32_t head, bool value)
{
    const mt_cuda_kv &kv = p.kv;
    const uint64_t block = (p.layer * 2 + value) * (uint64_t)kv.heads + head;
    return kv.data + pages[position / kv.page_tokens] * kv.page_bytes + block * kv.block;
}

KERNEL(kv_write)(mt_cuda_attention p) /* x: keys, v: values */
{
    const mt_cuda_kv &kv = p.kv;
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const uint32_t position = span.position + blockIdx.x - span.row;
    const uint32_t *pages = p.step.pages + span.pages[kv.group];
    for (uint32_t i = threadIdx.x; i < 2 * kv.heads * kv.head_stride; i += blockDim.x) {
        const bool value = i >= kv.heads * kv.head_stride;
        const uint32_t head = i / kv.head_stride % kv.heads, d = i % kv.head_stride;
        const uint64_t at = (uint64_t)(position % kv.page_tokens) * kv.head_stride + d;
        uint8_t *to = block_at(p, pages, position, head, value);
        const float x = d < kv.head_dim ? row_of(value ? p.v : p.x, blockIdx.x)[head * kv.head_dim + d] : 0.0f;
        if (kv.f32)
            ((float *)to)[at] = x;
        else
            ((uint16_t *)to)[at] = mt_bf16_from_f32(x);
    }
}

/* Integers: a warp a vector, [head_stride] of shared memory each. */
KERNEL(kv_write_q)(mt_cuda_attention p)
{
    extern __shared__ float shared[];
    const mt_cuda_kv &kv = p.kv;
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const uint32_t position = span.position + blockIdx.x - span.row;
    const uint32_t *pages = p.step.pages + span.pages[kv.group];
    float *y = shared + threadIdx.x / 32 * kv.head_stride;
    for (uint32_t i = threadIdx.x / 32; i < 2 * kv.heads; i += blockDim.x / 32) {
        const bool value = i >= kv.heads;
        const uint32_t head = i % kv.heads;
        const float *from = row_of(value ? p.v : p.x, blockIdx.x) + head * kv.head_dim;
        const float most = turned_from(y, from, kv.head_dim, kv.head_stride, 1.0f);
        put_integers(block_at(p, pages, position, head, value), kv.page_tokens, position % kv.page_tokens,
                     kv.head_stride, kv.bits, y, most, value);
        __syncwarp();
    }
}

/* 16 positions as fp32, [16][head_stride]; zeros where they are not seen. */
static __device__ inline void gather(float *y, const mt_cuda_attention &p, const uint32_t *pages, uint32_t first,
                                     range seen, uint32_t head, bool value)
{
    const mt_cuda_kv &kv = p.kv;
    const uint32_t stride = kv.head_stride;
    for (uint32_t i = threadIdx.x / 32; i < MT_LANES; i += blockDim.x / 32) {
        const uint32_t at = first + i, slot = at % kv.page_tokens;
        const bool there = at >= seen.lo && at < seen.hi;
        const uint8_t *block = there ? block_at(p, pages, at, head, value) : NULL;
        if (there && kv.bits) {
            get_integers(y + i * stride, block, kv.page_tokens, slot, stride, kv.bits, value);
            continue;
        }
        for (uint32_t d = threadIdx.x % 32; d < stride; d += 32)
            y[i * stride + d] = !there   ? 0.0f
                                : kv.f32 ? ((const float *)block)[slot * stride + d]
                                         : mt_f32_from_bf16(((const uint16_t *)block)[slot * stride + d]);
    }
}

/* Shared memory: q, acc [head_stride] each, keys or values [16][head_stride], p [MT_SEGMENT]. 256 threads. */
KERNEL(attention)(mt_cuda_attention p)
{
    extern __shared__ float shared[];
    __shared__ float room[THREADS / 32];
    const mt_cuda_kv &kv = p.kv;
    const uint32_t head = blockIdx.y, kv_head = head / (p.heads / kv.heads), stride = kv.head_stride;
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const uint32_t *pages = p.step.pages + span.pages[kv.group];
    const range seen = seen_by(p, blockIdx.x, span.position + blockIdx.x - span.row);
    const bool rounded = !kv.f32 && !kv.bits;
    float *q = shared, *acc = q + stride, *some = acc + stride, *s = some + MT_LANES * stride;
    whole w = {-INFINITY, 0};
    for (uint32_t d = threadIdx.x; d < stride; d += blockDim.x) {
        const float x = d < kv.head_dim ? row_of(p.x, blockIdx.x)[head * kv.head_dim + d] : 0.0f;
        q[d] = rounded ? mt_bf16_rounded(x) : x;
        acc[d] = 0;
    }
    for (uint32_t first = seen.lo / MT_SEGMENT * MT_SEGMENT; first < seen.hi; first += MT_SEGMENT) {
        const uint32_t begin = seen.lo > first ? seen.lo - first : 0, stop = min(seen.hi - first, MT_SEGMENT);
        float most = -INFINITY;
        for (uint32_t t0 = begin / MT_LANES * MT_LANES; t0 < stop; t0 += MT_LANES) {
            const uint32_t t = t0 + threadIdx.x / MT_LANES;
            gather(some, p, pages, first + t0, seen, kv_head, false);
            __syncthreads();
            const float x = dot16(q, some + threadIdx.x / MT_LANES * stride, stride) * p.scale;
            const float capped = p.softcap != 0.0f ? mt_softcap1(x, p.softcap) : x;
            if (t >= begin && t < stop) {
                most = mt_max1(most, capped);
                s[t] = capped;
            }
            __syncthreads();
        }
        most = max_of_block(most, room);
        for (uint32_t t = threadIdx.x; t < MT_SEGMENT; t += blockDim.x) {
            const float x = t >= begin && t < stop ? mt_exp1(s[t] - most) : 0.0f;
            s[t] = rounded ? mt_bf16_rounded(x) : x;
        }
        __syncthreads();
        float old = 1, now = 0;
        const bool there = take_part(w, most, sum16(s, MT_SEGMENT), old, now);
        for (uint32_t d0 = 0; d0 < stride; d0 += blockDim.x) { /* as good as always once */
            const uint32_t d = d0 + threadIdx.x;
            float lane[MT_LANES] = {0};
            for (uint32_t t0 = begin / MT_LANES * MT_LANES; t0 < stop; t0 += MT_LANES) {
                gather(some, p, pages, first + t0, seen, kv_head, true);
                __syncthreads();
                for (uint32_t i = 0; i < MT_LANES && d < stride; i++)
                    lane[i] = fmaf(s[t0 + i], some[i * stride + d], lane[i]);
                __syncthreads();
            }
            if (d < stride && there)
                acc[d] = fmaf(acc[d], old, (mt_fold(lane) + 0.0f) * now);
        }
        __syncthreads();
    }
    const float old = take_sink(w, p.sinks, head);
    for (uint32_t d = threadIdx.x; d < kv.head_dim; d += blockDim.x)
        row_of(p.y, blockIdx.x)[head * kv.head_dim + d] = 1.0f / w.l * (p.sinks ? fmaf(acc[d], old, 0.0f) : acc[d]);
}
