/* Norms and rotates the heads of rows, and writes those that are keys to their pages together with the values, as one
   kernel for all heads of a layer. Half a warp has a head, in shared memory. */
#include "device/cuda/rows/activation.cuh"

/* Where a key or value of a row goes. The step's tables were copied before its first kernel, so they can be read at
   once. */
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

/* Which head a sixteen of threads has: of queries, keys or values. */
typedef struct own_head {
    uint32_t which, number; /* which: 2 for values, that are only kept */
    bool there, keeps;
    const float *w;
    uint32_t half; /* of what is turned */
} own_head;

static __device__ inline own_head find_head(const mt_cuda_heads &p)
{
    const uint32_t dim = p.head_dim, n = blockIdx.y * (blockDim.x / 16) + threadIdx.x / 16;
    const uint32_t first = p.y[0].cols / dim, second = first + (p.count > 1 ? p.x[1].cols / dim : 0);
    const uint32_t all = second + (p.v.data ? p.kv.heads : 0), at = n < all ? n : all - 1;
    own_head h;
    h.which = at < first ? 0 : at < second ? 1 : 2;
    h.number = at - (h.which == 0 ? 0 : h.which == 1 ? first : second);
    h.there = n < all;
    h.keeps = h.there && (h.which == 2 || (p.v.data && h.which == p.keys));
    h.w = h.which < 2 ? p.w[h.which].data : NULL;
    h.half = h.which < 2 && p.table.data ? p.table.cols / 2 : 0;
    return h;
}

/* Where a head of a row begins. */
static __device__ inline const float *head_of(const mt_cuda_heads &p, const own_head &h)
{
    const mt_cuda_mat &from = h.which == 2 ? p.v : p.x[h.which];
    return row_of(from, blockIdx.x) + h.number * (h.which == 0 ? p.apart : p.head_dim);
}

/* The gates of a head of queries, which stand behind it. */
static __device__ inline void copy_gates(const mt_cuda_heads &p, const own_head &h, const float *x)
{
    float *to = row_of(p.gates, blockIdx.x) + h.number * p.head_dim;
#pragma unroll 8
    for (uint32_t i = threadIdx.x % 16; i < p.head_dim; i += 16)
        to[i] = x[p.head_dim + i];
}

/* Whether anybody reads the head as it is. */
static __device__ inline bool writes_head(const mt_cuda_heads &p, const own_head &h)
{
    return h.which < 2 && !(p.kept_only && h.which == p.keys);
}

/* Norm where there is a w, then rotation where there is a table. Any heads. Shared memory: a head for each sixteen
   threads. Heads of up to 256 have all that is read in registers, so that nothing is waited for one by one. */
KERNEL(heads)(const __grid_constant__ mt_cuda_heads p)
{
    extern __shared__ float shared[];
    constexpr uint32_t MOST = 16; /* of a head's numbers, in registers */
    const own_head own = find_head(p);
    const uint32_t l = threadIdx.x % 16, dim = p.head_dim, which = own.which, half = own.half;
    const float *w = own.w, *c = half ? row_of(p.table, blockIdx.x) : NULL, *s = c + half;
    float *h = shared + threadIdx.x / 16 * dim, factor[MOST], cosine[MOST / 2], sine[MOST / 2];
    start_next();
    uint8_t *to = own.keeps ? find_place(p, own.number, which == 2) : NULL;
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
        if (w && l + i * 16 < dim)
            factor[i] = p.offset + w[l + i * 16];
    wait_for_last();
    const float *x = head_of(p, own);
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
    if (p.gates.data && which == 0 && own.there)
        copy_gates(p, own, x);
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
    if (!own.there)
        return;
    for (uint32_t i = l; writes_head(p, own) && i < dim; i += 16)
        row_of(p.y[which], blockIdx.x)[own.number * dim + i] = h[i];
    if (own.keeps)
        keep_head(p.kv, h, to);
}

/* The same for heads of DIM that turn as a whole. */
template <int DIM> static __device__ inline void whole_heads(const mt_cuda_heads &p)
{
    constexpr uint32_t N = DIM / 16;
    const own_head own = find_head(p);
    const uint32_t l = threadIdx.x % 16;
    float x[N], factor[N], cosine[N / 2], sine[N / 2];
    start_next();
    uint8_t *to = own.keeps ? find_place(p, own.number, own.which == 2) : NULL;
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
        factor[i] = own.w ? p.offset + own.w[l + i * 16] : 0;
    wait_for_last();
    const float *in = head_of(p, own) + l;
    const float *table = own.half ? row_of(p.table, blockIdx.x) + l : NULL;
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
        x[i] = in[i * 16];
#pragma unroll
    for (uint32_t i = 0; i < N / 2; i++) {
        cosine[i] = table ? table[i * 16] : 0;
        sine[i] = table ? table[i * 16 + DIM / 2] : 0;
    }
    turn_head<N>(x, own.w, factor, p.eps, table, cosine, sine);
    if (!own.there)
        return;
    if (p.gates.data && own.which == 0)
        copy_gates(p, own, in - l);
    if (writes_head(p, own)) {
        float *y = row_of(p.y[own.which], blockIdx.x) + own.number * DIM + l;
#pragma unroll
        for (uint32_t i = 0; i < N; i++)
            y[i * 16] = x[i];
    }
#pragma unroll
    for (uint32_t i = 0; i < N; i++)
        if (own.keeps && p.kv.f32)
            ((float *)to)[l + i * 16] = x[i];
        else if (own.keeps)
            ((uint16_t *)to)[l + i * 16] = mt_bf16_from_f32(x[i]);
}

KERNEL(heads_64)(const __grid_constant__ mt_cuda_heads p)
{
    whole_heads<64>(p);
}

KERNEL(heads_128)(const __grid_constant__ mt_cuda_heads p)
{
    whole_heads<128>(p);
}
