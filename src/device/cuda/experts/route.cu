/* Routes rows to experts, and sums up the experts' results. */
#include "device/limits.h"

#include "device/cuda/products/product.cuh"
#include "device/cuda/rows/pack.cuh"

static __device__ inline float choice(const mt_cuda_route &p, const float *x, uint32_t j)
{
    return p.correction ? x[j] + p.correction[j] : x[j];
}

/* The score of a group of experts: the sum of its two best. */
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
static __device__ uint64_t open_groups(const mt_cuda_route &p, const float *score)
{
    uint64_t open = 0;
    for (uint32_t n = 0; n < p.top_groups; n++) {
        uint32_t best = p.groups;
        for (uint32_t g = 0; g < p.groups; g++)
            if (!(open >> g & 1) && (best == p.groups || score[g] > score[best]))
                best = g;
        open |= 1ull << best;
    }
    return open;
}

/* R9: the best first, lower id first among equals. By one thread, where there are numbers that have no order. */
static __device__ void choose(const mt_cuda_route &p, const float *x, uint64_t open, uint32_t *expert, float *weight)
{
    const uint32_t size = p.groups ? p.count / p.groups : 0;
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

/* Numbers in the order of floats, of which none is 0. */
static __device__ inline uint32_t order_of(float x)
{
    const uint32_t bits = mt_f32_bits(x);
    return bits << 1 == 0 ? 0x80000000u : bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The best of the lane's, which stand 32 apart; 0: it has none left. */
static __device__ inline uint32_t best_of(const uint32_t *key, uint32_t count, uint32_t *id)
{
    uint32_t best = 0;
    *id = threadIdx.x % 32;
    for (uint32_t j = threadIdx.x % 32; j < count; j += 32)
        if (key[j] > best) {
            best = key[j];
            *id = j;
        }
    return best;
}

/* The same by a warp; room: for a key of each expert. */
static __device__ void choose_by_warp(const mt_cuda_route &p, const float *x, uint64_t open, uint32_t *expert,
                                      float *weight, uint32_t *key)
{
    const uint32_t size = p.groups ? p.count / p.groups : 0, lane = threadIdx.x % 32;
    bool odd = false;
    for (uint32_t j = lane; j < p.count; j += 32) {
        const float c = choice(p, x, j);
        odd = odd || c != c;
        key[j] = size && !(open >> j / size & 1) ? 0 : order_of(c);
    }
    if (__any_sync(0xffffffffu, odd)) {
        if (lane == 0)
            choose(p, x, open, expert, weight);
        __syncwarp();
        return;
    }
    uint32_t id, best = best_of(key, p.count, &id);
    for (uint32_t r = 0; r < p.top_k; r++) {
        const uint32_t top = __reduce_max_sync(0xffffffffu, best);
        const uint32_t first = __reduce_min_sync(0xffffffffu, best == top ? id : UINT32_MAX);
        if (lane == 0)
            expert[r] = first;
        if (first % 32 == lane) {
            key[first] = 0;
            best = best_of(key, p.count, &id);
        }
    }
    __syncwarp();
}

static __device__ inline float max_of_warp(float m)
{
    for (int width = 16; width > 0; width /= 2)
        m = mt_max1(m, __shfl_xor_sync(0xffffffffu, m, width));
    return m;
}

/* A warp: softmax of x, which lies in shared memory; each lane has written its own, 32 apart. */
static __device__ void softmax(float *x, uint32_t n)
{
    const uint32_t lane = threadIdx.x % 32;
    float most = -INFINITY;
    for (uint32_t i = lane; i < n; i += 32)
        most = mt_max1(most, x[i]);
    most = max_of_warp(most);
    for (uint32_t i = lane; i < n; i += 32)
        x[i] = mt_exp1(x[i] - most);
    __syncwarp();
    const float total = sum16(x, n);
    __syncwarp();
    for (uint32_t i = lane; i < n; i += 32)
        x[i] /= total;
}

/* A warp: from chosen experts to what each counts. */
static __device__ void weigh(const mt_cuda_route &p, const float *x, const uint32_t *expert, float *weight)
{
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t r = lane; r < p.top_k; r += 32)
        weight[r] = x[expert[r]];
    if (p.kind == MT_ROUTE_CHOSEN)
        softmax(weight, p.top_k);
    __syncwarp();
    const float share = p.renormalise ? 1.0f / sum16(weight, p.top_k) : 1;
    __syncwarp();
    for (uint32_t r = lane; r < p.top_k; r += 32) {
        float w = weight[r];
        w = p.renormalise ? share * w : w;
        w = p.scaling != 0 ? p.scaling * w : w;
        weight[r] = p.scale ? w * p.scale[expert[r]] : w;
    }
}

/* A warp has a row; room: MT_CUDA_ROUTE_ROOM words of shared memory. Its experts go to `chosen`, too. */
static __device__ void route_row(const mt_cuda_route &p, uint32_t row, uint32_t *room, uint32_t *chosen)
{
    const uint32_t lane = threadIdx.x % 32;
    const float *from = row_of(p.router, row);
    uint32_t *key = room, *expert = key + 2 * p.count;
    float *x = (float *)(key + p.count), *weight = (float *)(expert + MT_LIMIT_EXPERTS_PER_TOKEN);
    float *score = weight + MT_LIMIT_EXPERTS_PER_TOKEN;
    uint64_t open = 0;
    for (uint32_t c = lane; c < p.count; c += 32) {
        const float v = from[c];
        x[c] = p.kind == MT_ROUTE_SIGMOID ? mt_sigmoid1(v) : v;
    }
    if (p.kind == MT_ROUTE_SOFTMAX)
        softmax(x, p.count);
    __syncwarp();
    if (p.groups) {
        const uint32_t size = p.count / p.groups;
        for (uint32_t g = lane; g < p.groups; g += 32)
            score[g] = group_score(p, x, g * size, size);
        __syncwarp();
        open = open_groups(p, score);
    }
    choose_by_warp(p, x, open, expert, weight, key);
    weigh(p, x, expert, weight);
    for (uint32_t r = lane; r < p.top_k; r += 32) {
        p.expert[row * p.top_k + r] = chosen[r] = expert[r];
        p.weight[row * p.top_k + r] = weight[r];
    }
    __syncwarp();
}

/* Warps take rows by turns. */
KERNEL(route)(const __grid_constant__ mt_cuda_route p)
{
    extern __shared__ uint32_t room[];
    const uint32_t warps = blockDim.x / 32, warp = threadIdx.x / 32, each = MT_CUDA_ROUTE_ROOM(p.count);
    follow_last();
    for (uint32_t row = blockIdx.x * warps + warp; row < p.m; row += gridDim.x * warps)
        route_row(p, row, room + warp * each, room + warp * each + each - MT_LIMIT_EXPERTS_PER_TOKEN);
}

/* The sum over all threads before this one, and over all; every thread of the block must call it. */
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

/* One block; expert: of the pairs. Which place a pair has among those of its expert is left to chance: a row's numbers
   do not depend on it. */
static __device__ void sort_all(const mt_cuda_sort &p, const uint32_t *expert)
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
        atomicAdd(&next[expert[i]], 1);
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
        const uint32_t at = atomicAdd(&next[expert[i]], 1);
        p.place[i] = at;
        p.row[at] = i / p.top_k;
    }
}

KERNEL(sort_pairs)(const __grid_constant__ mt_cuda_sort p)
{
    follow_last();
    sort_all(p, p.expert);
}

/* Both for few rows, by one block. */
KERNEL(route_and_sort)(const __grid_constant__ mt_cuda_routed p)
{
    extern __shared__ uint32_t room[];
    const uint32_t warp = threadIdx.x / 32;
    uint32_t *expert = room + p.warps * MT_CUDA_ROUTE_ROOM(p.route.count);
    follow_last();
    if (warp < p.warps)
        for (uint32_t row = warp; row < p.route.m; row += p.warps)
            route_row(p.route, row, room + warp * MT_CUDA_ROUTE_ROOM(p.route.count), expert + row * p.route.top_k);
    __syncthreads();
    sort_all(p.sort, expert);
}

/* Loads a row into shared memory when the kernel before has ended, by the row's threads, and norms it where that is
   asked for (`keeps`: stores the normed row as well). The norm's weights are loaded before. All threads of the block
   must call it. */
static __device__ inline void take_row(const mt_cuda_router &p, uint32_t i, float *row, float *factor, bool keeps)
{
    constexpr uint32_t SOME = 4; /* groups of four floats that a thread loads at once */
    const uint32_t k = p.w.k, stride = MT_CUDA_ROUTER_THREADS * 4, own = threadIdx.x % MT_CUDA_ROUTER_THREADS * 4;
    float w[SOME][4];
#pragma unroll
    for (uint32_t f = 0; f < SOME; f++)
        if (p.norm)
            load_four(w[f], p.norm, own + f * stride, k);
    wait_for_last();
    for (uint32_t first = own; first < k; first += SOME * stride) {
        float x[SOME][4];
#pragma unroll
        for (uint32_t f = 0; f < SOME; f++)
            load_four(x[f], row_of(p.x, i), first + f * stride, k);
#pragma unroll
        for (uint32_t f = 0; f < SOME; f++)
            if (first + f * stride < k)
                *(float4 *)(row + apart(first + f * stride)) = make_float4(x[f][0], x[f][1], x[f][2], x[f][3]);
    }
    __syncthreads();
    if (!p.norm)
        return;
    if (own < 32 * 4) {
        const float r = rms_apart(row, k, k, p.eps);
        if (own == 0)
            *factor = r;
    }
    __syncthreads();
    const float r = *factor;
    for (uint32_t first = own; first < k; first += SOME * stride)
#pragma unroll
        for (uint32_t f = 0; f < SOME; f++) {
            const uint32_t c = first + f * stride;
            if (c >= k)
                break;
            if (first >= SOME * stride)
                load_four(w[f], p.norm, c, k);
            const float4 x = *(const float4 *)(row + apart(c));
            const float v[4] = {(x.x * r) * (p.offset + w[f][0]), (x.y * r) * (p.offset + w[f][1]),
                                (x.z * r) * (p.offset + w[f][2]), (x.w * r) * (p.offset + w[f][3])};
            *(float4 *)(row + apart(c)) = make_float4(v[0], v[1], v[2], v[3]);
            if (keeps)
                store_four(row_of(p.y, i), c, k, v);
        }
    __syncthreads();
}

/* Whether the block is the last of so many to come here; what those before have written can be read then. */
static __device__ inline bool comes_last(uint32_t *arrived, uint32_t all)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(arrived, 1) == all - 1;
        if (last)
            *arrived = 0;
    }
    __syncthreads();
    const bool is = last;
    __threadfence();
    __syncthreads();
    return is;
}

/* Blocks side by side have the same rows and other columns of the product; the last of them has the rows in codes, and
   keeps them as they are. */
extern "C" __global__ void __launch_bounds__(MT_CUDA_ROUTER_ROWS *MT_CUDA_ROUTER_THREADS)
    mtk_router(const __grid_constant__ mt_cuda_router p)
{
    extern __shared__ __align__(16) float rows[];
    __shared__ float factor[MT_CUDA_ROUTER_ROWS];
    const uint32_t k = p.w.k, pair = p.w.pairs == MT_SCALE_F32 ? 8 : 4, apart_by = k / 8 * p.bits + MT_CUDA_CODES_APART;
    const uint32_t all = blockDim.x / MT_CUDA_ROUTER_THREADS, own = threadIdx.x / MT_CUDA_ROUTER_THREADS;
    const uint32_t first_row = blockIdx.y * all, i = min(first_row + own, p.route.m - 1);
    const bool packs = blockIdx.x == gridDim.x - 1, there = first_row + own < p.route.m;
    uint8_t *codes = (uint8_t *)(rows + all * apart(k)), *pairs = codes + MT_CUDA_ROUTER_COLUMNS * apart_by;
    float *row = rows + own * apart(k);
    start_next();
    for (uint32_t j = 0; !packs && j < MT_CUDA_ROUTER_COLUMNS; j++)
        fetch_codes(p.w, min(blockIdx.x * MT_CUDA_ROUTER_COLUMNS + j, p.w.n - 1), p.bits, codes + j * apart_by,
                    pairs + j * p.w.groups * pair);
    copy_commit();
    take_row(p, i, row, &factor[own], packs && there);
    if (packs) {
        const uint32_t warp = threadIdx.x % MT_CUDA_ROUTER_THREADS / 32;
        for (uint32_t first = warp * 32; p.pack.to.q && first < k / 32; first += MT_CUDA_ROUTER_THREADS) {
            const uint32_t block = min(first + threadIdx.x % 32, k / 32 - 1);
            float x[32];
            load_apart(x, row, block);
            pack_block(p.pack, i, block, x, there && first + threadIdx.x % 32 < k / 32);
        }
    } else {
        copy_wait<0>();
        __syncthreads();
        const uint32_t j = threadIdx.x % MT_CUDA_ROUTER_THREADS / 16, n = blockIdx.x * MT_CUDA_ROUTER_COLUMNS + j;
        const float y = dot_codes<true>(p.w, row, codes + j * apart_by, pairs + j * p.w.groups * pair);
        if (threadIdx.x % 16 == 0 && there && n < p.w.n)
            row_of(p.route.router, i)[n] = p.w.bias ? y + p.w.bias[n] : y;
    }
    if (!comes_last(p.arrived + 1 + blockIdx.y, gridDim.x))
        return;
    uint32_t *room = (uint32_t *)rows + threadIdx.x / 32 * MT_CUDA_ROUTE_ROOM(p.route.count);
    if (threadIdx.x / 32 < all && first_row + threadIdx.x / 32 < p.route.m)
        route_row(p.route, first_row + threadIdx.x / 32, room,
                  room + MT_CUDA_ROUTE_ROOM(p.route.count) - MT_LIMIT_EXPERTS_PER_TOKEN);
    if (p.sort.pairs && comes_last(p.arrived, gridDim.y))
        sort_all(p.sort, p.sort.expert);
}

/* y = the sum over a row's experts, by rank; added to `add`, too, where there is one. A thread has four columns. */
KERNEL(combine)(const __grid_constant__ mt_cuda_route p)
{
    constexpr uint32_t SOME = 8; /* loads in flight at the same time */
    const uint32_t c = (blockIdx.x * blockDim.x + threadIdx.x) * 4, row = blockIdx.y, n = p.y.cols;
    follow_last();
    if (c >= n)
        return;
    float sum[4] = {0}, more[4] = {0};
    if (p.add.data)
        load_four(more, row_of(p.add, row), c, n);
    for (uint32_t r = 0; r < p.top_k; r += SOME) {
        uint32_t place[SOME];
        float weight[SOME], x[SOME][4];
#pragma unroll
        for (uint32_t i = 0; i < SOME; i++) {
            const uint32_t at = row * p.top_k + (r + i < p.top_k ? r + i : r);
            place[i] = p.place[at];
            weight[i] = p.weight[at];
        }
#pragma unroll
        for (uint32_t i = 0; i < SOME; i++)
            load_four(x[i], row_of(p.x, place[i]), c, n);
#pragma unroll
        for (uint32_t i = 0; i < SOME; i++)
#pragma unroll
            for (uint32_t e = 0; e < 4; e++)
                sum[e] = r + i < p.top_k ? fmaf(weight[i], x[i][e], sum[e]) : sum[e];
    }
    store_four(row_of(p.y, row), c, n, sum);
    if (!p.add.data)
        return;
#pragma unroll
    for (uint32_t e = 0; e < 4; e++)
        more[e] += sum[e];
    store_four(row_of(p.add, row), c, n, more);
}
