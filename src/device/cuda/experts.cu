/* Routes rows to experts, and sums up the experts' results. */
#include "device/cuda/common.cuh"

static __device__ inline float choice(const mt_cuda_route &p, const float *x, uint32_t j)
{
    return p.correction ? x[j] + p.correction[j] : x[j];
}

/* What a group of experts counts: its two best together. */
static __device__ float group_score(const mt_cuda_route &p, const float *x, uint32_t first, uint32_t size)
{
    float best = choice(p, x, first), second = -INFINITY;
    for (uint32_t j = first + 1; j < first + size; j++) {
        const float c = choice(p, x, j);
        second = c > best ? best : c > second ? c : second;
        best = c > best ? c : best;
    }
    return size > 1 ? best + second : best;
}

/* The groups whose experts may be chosen, a bit each: the best, the lower of equal ones first. */
static __device__ uint64_t open_groups(const mt_cuda_route &p, const float *x)
{
    const uint32_t size = p.count / p.groups;
    float score[MT_LIMIT_EXPERT_GROUPS];
    uint64_t open = 0;
    for (uint32_t g = 0; g < p.groups; g++)
        score[g] = group_score(p, x, g * size, size);
    for (uint32_t n = 0; n < p.top_groups; n++) {
        uint32_t best = p.groups;
        for (uint32_t g = 0; g < p.groups; g++)
            if (!(open >> g & 1) && (best == p.groups || score[g] > score[best]))
                best = g;
        open |= 1ull << best;
    }
    return open;
}

/* R9: the best first, lower id first among equals. */
static __device__ void choose(const mt_cuda_route &p, const float *x, uint32_t *expert, float *weight)
{
    const uint32_t size = p.groups ? p.count / p.groups : 0;
    const uint64_t open = size ? open_groups(p, x) : 0;
    uint32_t filled = 0;
    for (uint32_t j = 0; j < p.count; j++) {
        if (size && !(open >> j / size & 1))
            continue;
        const float c = choice(p, x, j);
        uint32_t at = filled < p.top_k ? filled++ : p.top_k;
        for (; at > 0 && c > weight[at - 1]; at--)
            if (at < p.top_k) {
                weight[at] = weight[at - 1];
                expert[at] = expert[at - 1];
            }
        if (at < p.top_k) {
            weight[at] = c;
            expert[at] = j;
        }
    }
}

static __device__ float sum(const float *x, uint32_t n)
{
    float lane[MT_LANES] = {0};
    for (uint32_t i = 0; i < mt_round_up(n, MT_LANES); i++)
        lane[i % MT_LANES] += i < n ? x[i] : 0.0f;
    return mt_fold(lane);
}

static __device__ void softmax(float *x, uint32_t n)
{
    float most = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        most = mt_max1(most, x[i]);
    for (uint32_t i = 0; i < n; i++)
        x[i] = mt_exp1(x[i] - most);
    const float total = sum(x, n);
    for (uint32_t i = 0; i < n; i++)
        x[i] /= total;
}

/* One thread: from chosen experts to what each counts. */
static __device__ void weigh(const mt_cuda_route &p, const float *x, const uint32_t *expert, float *weight)
{
    for (uint32_t r = 0; r < p.top_k; r++)
        weight[r] = x[expert[r]];
    if (p.kind == MT_ROUTE_CHOSEN)
        softmax(weight, p.top_k);
    const float share = p.renormalise ? 1.0f / sum(weight, p.top_k) : 1;
    for (uint32_t r = 0; r < p.top_k; r++) {
        weight[r] = p.renormalise ? share * weight[r] : weight[r];
        weight[r] = p.scaling != 0 ? p.scaling * weight[r] : weight[r];
        weight[r] = p.scale ? weight[r] * p.scale[expert[r]] : weight[r];
    }
}

/* A block a row. */
KERNEL(route)(mt_cuda_route p)
{
    __shared__ float room[THREADS / 32];
    float *x = row_of(p.router, blockIdx.x), most = -INFINITY;
    uint32_t *expert = p.expert + (uint64_t)blockIdx.x * p.top_k;
    float *weight = p.weight + (uint64_t)blockIdx.x * p.top_k;
    for (uint32_t c = threadIdx.x; c < p.count; c += blockDim.x)
        most = mt_max1(most, x[c]);
    most = max_of_block(most, room);
    for (uint32_t c = threadIdx.x; c < p.count; c += blockDim.x)
        x[c] = p.kind == MT_ROUTE_SOFTMAX   ? mt_exp1(x[c] - most)
               : p.kind == MT_ROUTE_SIGMOID ? mt_sigmoid1(x[c])
                                            : x[c];
    __syncthreads();
    const float total = sum16(x, p.count);
    __syncthreads();
    for (uint32_t c = threadIdx.x; p.kind == MT_ROUTE_SOFTMAX && c < p.count; c += blockDim.x)
        x[c] /= total;
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    choose(p, x, expert, weight);
    weigh(p, x, expert, weight);
}

/* The sum over all threads before this one, and over all; every thread of the block must come along. */
static __device__ uint32_t sum_before(uint32_t x, uint32_t *room, uint32_t *all)
{
    const uint32_t lane = threadIdx.x % 32, warps = blockDim.x / 32;
    uint32_t sum = x, before = 0;
    for (uint32_t width = 1; width < 32; width *= 2) {
        const uint32_t other = __shfl_up_sync(0xffffffffu, sum, width);
        sum += lane >= width ? other : 0;
    }
    if (lane == 31)
        room[threadIdx.x / 32] = sum;
    __syncthreads();
    *all = 0;
    for (uint32_t w = 0; w < warps; w++) {
        before += w < threadIdx.x / 32 ? room[w] : 0;
        *all += room[w];
    }
    __syncthreads();
    return before + sum - x;
}

/* One block. Which place a pair has among those of its expert is left to chance: a row's numbers do not depend on it.
   */
KERNEL(sort_pairs)(mt_cuda_sort p)
{
    __shared__ uint32_t next[MT_LIMIT_EXPERTS], room[32];
    const uint32_t t = threadIdx.x, each = (p.experts + blockDim.x - 1) / blockDim.x;
    const uint32_t first = t * each < p.experts ? t * each : p.experts;
    const uint32_t end = first + each < p.experts ? first + each : p.experts;
    uint32_t places = 0, shares = 0, all;
    for (uint32_t e = t; e < p.experts; e += blockDim.x)
        next[e] = 0;
    for (uint32_t i = t; i < p.places; i += blockDim.x)
        p.row[i] = MT_CUDA_NONE;
    __syncthreads();
    for (uint32_t i = t; i < p.pairs; i += blockDim.x)
        atomicAdd(&next[p.expert[i]], 1);
    __syncthreads();
    for (uint32_t e = first; e < end; e++) {
        places += (next[e] + MT_CUDA_ALIGN - 1) / MT_CUDA_ALIGN * MT_CUDA_ALIGN;
        shares += (next[e] + p.most - 1) / p.most;
    }
    uint32_t place = sum_before(places, room, &all), share = sum_before(shares, room, &all);
    if (t == 0)
        *p.count = all;
    for (uint32_t e = first; e < end; e++) {
        const uint32_t rows = next[e];
        for (uint32_t r = 0; r < rows; r += p.most, share++)
            p.share[share] = {e, place + r, rows - r < p.most ? rows - r : p.most};
        next[e] = place;
        place += (rows + MT_CUDA_ALIGN - 1) / MT_CUDA_ALIGN * MT_CUDA_ALIGN;
    }
    __syncthreads();
    for (uint32_t i = t; i < p.pairs; i += blockDim.x) {
        const uint32_t at = atomicAdd(&next[p.expert[i]], 1);
        p.place[i] = at;
        p.row[at] = i / p.top_k;
    }
}

/* y = the sum over a row's experts, by rank */
KERNEL(combine)(mt_cuda_route p)
{
    for (uint32_t c = threadIdx.x; c < p.y.cols; c += blockDim.x) {
        float sum = 0;
        for (uint32_t r = blockIdx.x * p.top_k; r < (blockIdx.x + 1) * p.top_k; r++)
            sum = fmaf(p.weight[r], row_of(p.x, p.place[r])[c], sum);
        row_of(p.y, blockIdx.x)[c] = sum;
    }
}
