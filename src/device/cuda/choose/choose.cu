/* Chooses a token of each row of logits, as src/sample defines it, bit by bit; and hands chosen tokens to the next
   step.

   Candidates are ordered by keys, as in sample/ranking.c: the order of the logit in the high half, the id in the low
   one; smaller is better. Weights are whole numbers (sample/candidates.h), so that they add up to the same in any
   order. To find the candidate at which weights, from the best on, add up to a number, all keys are divided into four
   parts, and the part that it is in into four again, until so few are left that they can be sorted. */
#include "device/cuda/common/common.cuh"

enum {
    PARTS = 4,
    MOST = 1024, /* keys that are sorted, and threads of a block */
    SUM_BLOCKS = MT_CUDA_CHOOSE_VOCAB / MT_LSE_BLOCK
};

#define NO_CANDIDATES ((uint64_t)0xff800000u << 32) /* keys of -inf, and so the first that no candidate has */
#define MASS_ONE 0x1p40f
#define WEIGHTLESS (-28.0f) /* exp of it is below 2^-40 */

/* A row as it is chosen from: masked tokens are none, those seen before have other logits. */
typedef struct view {
    const float *x;
    const uint32_t *mask;     /* of tokens whose logit is that of x; NULL: all */
    const mt_cuda_seen *seen; /* the others */
    const float *penalised;   /* their logits; -inf where they are masked */
    uint32_t vocab, seen_count;
    float highest, inverse, least;
} view;

typedef struct parts {
    uint64_t key[PARTS + 1]; /* where each begins, and where the last ends */
    uint64_t mass[PARTS];
    uint32_t count[PARTS];
} parts;

/* The keys of a part, sorted. */
typedef struct list {
    uint64_t key[MOST], sum[MOST]; /* sum: of the masses up to this one */
    uint64_t first, end;           /* of the part */
    uint32_t count;
} list;

typedef struct room {
    mt_cuda_order order;
    parts all, part;
    list list;
    uint64_t keys[32], masses[32][PARTS];
    uint32_t counts[32][PARTS], at;
    float sums[SUM_BLOCKS];
} room;

/* A candidate, and the mass of all up to it. */
typedef struct found {
    uint64_t key, mass;
} found;

static __device__ inline uint64_t key_of(float x, uint32_t id)
{
    const uint32_t bits = mt_f32_bits(x + 0.0f), ascending = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)~ascending << 32 | id;
}

static __device__ inline float logit_of(uint64_t key)
{
    const uint32_t ascending = ~(uint32_t)(key >> 32);
    return mt_f32_from_bits(ascending >> 31 ? ascending & 0x7fffffffu : ~ascending);
}

static __device__ inline uint64_t mass_of(const view &v, float logit)
{
    const float y = (logit - v.highest) * v.inverse;
    return y >= v.least && y >= WEIGHTLESS ? (uint64_t)(mt_exp1(y) * MASS_ONE) : 0;
}

static __device__ inline view as_it_is(const float *x, uint32_t vocab)
{
    view v = {};
    v.x = x;
    v.vocab = vocab;
    v.inverse = 1;
    v.least = -INFINITY;
    return v;
}

/* Calls f(logit, id) for all tokens but those that are masked; each thread has some of them, AT_ONCE on their way. */
template <uint32_t AT_ONCE, typename F> static __device__ inline void each(const view &v, F f)
{
    for (uint32_t first = threadIdx.x; first < v.vocab; first += AT_ONCE * blockDim.x) {
        float x[AT_ONCE];
#pragma unroll
        for (uint32_t j = 0; j < AT_ONCE; j++)
            x[j] = first + j * blockDim.x < v.vocab ? v.x[first + j * blockDim.x] : 0;
#pragma unroll
        for (uint32_t j = 0; j < AT_ONCE; j++) {
            const uint32_t i = first + j * blockDim.x;
            if (i < v.vocab && (!v.mask || v.mask[i / 32] >> i % 32 & 1))
                f(x[j], i);
        }
    }
    for (uint32_t i = threadIdx.x; i < v.seen_count; i += blockDim.x)
        f(v.penalised[i], v.seen[i].id);
}

/* The logit of the best key; -inf where there is none. */
static __device__ inline float highest_of(uint64_t key)
{
    return key < NO_CANDIDATES ? logit_of(key) : -INFINITY;
}

static __device__ inline bool is_finite(float x)
{
    return x > -INFINITY && x < INFINITY;
}

/* The key of the best; that of a NaN where a logit is NaN. */
static __device__ uint64_t best_of(const view &v, uint64_t (&keys)[32])
{
    uint64_t best = ~(uint64_t)0;
    each<8>(v, [&](float x, uint32_t id) {
        const uint64_t key = x == x ? key_of(x, id) : 0;
        best = key < best ? key : best;
    });
    for (int width = 16; width > 0; width /= 2) {
        const uint64_t other = __shfl_xor_sync(0xffffffffu, best, width);
        best = other < best ? other : best;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        keys[threadIdx.x / 32] = best;
    __syncthreads();
    for (uint32_t i = 0; i < blockDim.x / 32; i++)
        best = keys[i] < best ? keys[i] : best;
    return best;
}

/* Counts the keys of each part, and adds their masses where these are wanted. */
template <bool MASSES> static __device__ void measure(const view &v, parts *p, room *r)
{
    const uint64_t first = p->key[0], second = p->key[1], third = p->key[2], last = p->key[3], end = p->key[4];
    uint64_t mass[PARTS] = {0};
    uint32_t count[PARTS] = {0};
    each<4>(v, [&](float x, uint32_t id) {
        const uint64_t key = key_of(x, id);
        const bool in = key >= first && key < end;
        const uint64_t m = MASSES && in ? mass_of(v, x) : 0;
        const uint32_t part = (key >= second) + (key >= third) + (key >= last);
#pragma unroll
        for (uint32_t i = 0; i < PARTS; i++) {
            mass[i] += part == i ? m : 0;
            count[i] += in && part == i;
        }
    });
#pragma unroll
    for (uint32_t i = 0; i < PARTS; i++)
        for (int width = 16; width > 0; width /= 2) {
            mass[i] += __shfl_xor_sync(0xffffffffu, mass[i], width);
            count[i] += __shfl_xor_sync(0xffffffffu, count[i], width);
        }
#pragma unroll
    for (uint32_t i = 0; i < PARTS; i++)
        if (threadIdx.x % 32 == 0) {
            r->masses[threadIdx.x / 32][i] = mass[i];
            r->counts[threadIdx.x / 32][i] = count[i];
        }
    __syncthreads();
    if (threadIdx.x < PARTS) {
        p->mass[threadIdx.x] = p->count[threadIdx.x] = 0;
        for (uint32_t i = 0; i < blockDim.x / 32; i++) {
            p->mass[threadIdx.x] += r->masses[i][threadIdx.x];
            p->count[threadIdx.x] += r->counts[i][threadIdx.x];
        }
    }
    __syncthreads();
}

/* Parts of the candidates, better ones apart from the many that weigh little. */
template <bool MASSES> static __device__ void measure_all(const view &v, uint64_t end, room *r)
{
    if (threadIdx.x == 0) {
        const float step = 1.0f / v.inverse;
        r->all.key[0] = 0;
        r->all.key[1] = key_of(v.highest - 4 * step, 0);
        r->all.key[2] = key_of(v.highest - 9 * step, 0);
        r->all.key[3] = key_of(v.highest - 16 * step, 0);
        r->all.key[4] = end;
        for (uint32_t i = 1; i < PARTS; i++)
            r->all.key[i] = r->all.key[i] < end ? r->all.key[i] : end;
        r->list.end = 0;
    }
    __syncthreads();
    measure<MASSES>(v, &r->all, r);
}

/* Of MOST places as many as are needed, a power of two, are sorted. */
static __device__ void sort(uint64_t *key, uint32_t count)
{
    uint32_t places = 1;
    while (places < count)
        places *= 2;
    if (threadIdx.x >= count && threadIdx.x < places)
        key[threadIdx.x] = ~(uint64_t)0;
    for (uint32_t run = 2; run <= places; run *= 2)
        for (uint32_t apart = run / 2; apart > 0; apart /= 2) {
            const uint32_t a = threadIdx.x, b = a ^ apart;
            __syncthreads();
            if (a < b && b < places) {
                const uint64_t x = key[a], y = key[b];
                if ((x > y) == ((a & run) == 0)) {
                    key[a] = y;
                    key[b] = x;
                }
            }
        }
    __syncthreads();
}

static __device__ void add_up(uint64_t *sum, uint32_t count)
{
    for (uint32_t apart = 1; apart < count; apart *= 2) {
        const uint32_t i = threadIdx.x;
        const uint64_t before = i >= apart && i < count ? sum[i - apart] : 0;
        __syncthreads();
        if (i < count)
            sum[i] += before;
        __syncthreads();
    }
}

/* Lists the keys of [first, end), at most MOST. */
static __device__ void gather(const view &v, uint64_t first, uint64_t end, room *r)
{
    list *l = &r->list;
    __syncthreads();
    if (l->first == first && l->end == end)
        return;
    __syncthreads();
    if (threadIdx.x == 0) {
        l->first = first;
        l->end = end;
        l->count = 0;
    }
    __syncthreads();
    each<8>(v, [&](float x, uint32_t id) {
        const uint64_t key = key_of(x, id);
        if (key >= first && key < end)
            l->key[atomicAdd(&l->count, 1)] = key;
    });
    __syncthreads();
    sort(l->key, l->count);
    if (threadIdx.x < l->count)
        l->sum[threadIdx.x] = mass_of(v, logit_of(l->key[threadIdx.x]));
    __syncthreads();
    add_up(l->sum, l->count);
}

/* The first candidate, from the best on, with which there are `wanted` of them, or with whose mass there is as much
   mass. There must be as many, or as much. */
template <bool MASSES> static __device__ found reach(const view &v, uint64_t wanted, room *r)
{
    const parts *p = &r->all;
    uint64_t mass = 0, count = 0, first, end;
    for (;;) {
        uint32_t i = 0;
        for (; i < PARTS - 1 && (MASSES ? mass + p->mass[i] : count + p->count[i]) < wanted; i++) {
            mass += p->mass[i];
            count += p->count[i];
        }
        first = p->key[i];
        end = p->key[i + 1];
        if (p->count[i] <= MOST)
            break;
        __syncthreads();
        if (threadIdx.x == 0)
            for (uint32_t j = 0; j <= PARTS; j++)
                r->part.key[j] = j < PARTS ? first + (end - first) / PARTS * j : end;
        __syncthreads();
        p = &r->part;
        measure<true>(v, &r->part, r);
    }
    gather(v, first, end, r);
    const list *l = &r->list;
    const uint32_t i = threadIdx.x;
    if (i < l->count &&
        (MASSES ? mass + l->sum[i] >= wanted && (i == 0 || mass + l->sum[i - 1] < wanted) : count + i + 1 == wanted))
        r->at = i;
    __syncthreads();
    return {l->key[r->at], mass + l->sum[r->at]};
}

static __device__ inline uint64_t mass_share(float share, uint64_t total)
{
    const uint64_t part = (uint64_t)((double)share * (double)total);
    return part == 0 ? 1 : part < total ? part : total;
}

static __device__ uint32_t draw(const view &v, room *r)
{
    const mt_cuda_order *o = &r->order;
    uint64_t total = 0, count = 0;
    measure_all<true>(v, NO_CANDIDATES, r);
    for (uint32_t i = 0; i < PARTS; i++) {
        total += r->all.mass[i];
        count += r->all.count[i];
    }
    if (o->top_k && o->top_k < count)
        total = reach<false>(v, o->top_k, r).mass;
    if (o->top_p < 1)
        total = reach<true>(v, mass_share(o->top_p, total), r).mass;
    return (uint32_t)reach<true>(v, __umul64hi(o->random, total) + 1, r).key;
}

/* Makes the view that of the order's mask and penalties. mask: words in shared memory. */
static __device__ void steer(const mt_cuda_choose &p, const mt_cuda_order *o, view *v, uint32_t *mask)
{
    const uint32_t words = (p.vocab + 31) / 32;
    float *penalised = p.penalised + o->seen_first;
    const mt_cuda_seen *seen = p.seen + o->seen_first;
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
        mask[i] = o->mask ? p.masks[(uint64_t)(o->mask - 1) * words + i] : 0xffffffffu;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < o->seen_count; i += blockDim.x) {
        const mt_cuda_seen s = seen[i];
        float x = v->x[s.id];
        x = x > 0 ? x / o->repetition : x * o->repetition;
        x -= o->frequency * (float)s.count;
        x -= s.count > 0 ? o->presence : 0.0f;
        const uint32_t before = atomicAnd(&mask[s.id / 32], ~(1u << s.id % 32));
        penalised[i] = before >> s.id % 32 & 1 ? x : -INFINITY;
    }
    __syncthreads();
    v->mask = mask;
    v->seen = seen;
    v->penalised = penalised;
    v->seen_count = o->seen_count;
}

/* log(sum of exp(logits)) by R9, of the row as it is. */
static __device__ float log_sum(const view &v, room *r)
{
    const uint32_t blocks = (v.vocab + MT_LSE_BLOCK - 1) / MT_LSE_BLOCK, lane = threadIdx.x % 16;
    for (uint32_t first = 0; first < blocks; first += blockDim.x / 16) {
        const uint32_t b = first + threadIdx.x / 16;
        float sum = 0;
        for (uint32_t i = b * MT_LSE_BLOCK + lane; i < v.vocab && i < (b + 1) * MT_LSE_BLOCK; i += 16)
            sum += mt_exp1(v.x[i] - v.highest);
        sum = fold16(sum);
        if (b < blocks && lane == 0)
            r->sums[b] = sum;
    }
    __syncthreads();
    float sum = 0;
    for (uint32_t b = 0; b < blocks; b++)
        sum += r->sums[b];
    return v.highest + mt_log1(sum);
}

/* The logprob of the token, and of the likeliest. */
static __device__ void report(const view &v, uint32_t token, uint32_t *out, room *r)
{
    const uint32_t count = min((uint32_t)r->order.logprobs, v.vocab);
    const float sum = log_sum(v, r);
    if (threadIdx.x == 0) {
        out[0] = mt_f32_bits(v.x[token] - sum);
        out[1] = count;
    }
    if (count == 0)
        return;
    measure_all<false>(v, ~(uint64_t)0, r);
    gather(v, 0, reach<false>(v, count, r).key + 1, r);
    if (threadIdx.x < count) {
        const uint32_t id = (uint32_t)r->list.key[threadIdx.x];
        out[2 + 2 * threadIdx.x] = id;
        out[3 + 2 * threadIdx.x] = mt_f32_bits(v.x[id] - sum);
    }
}

/* A block of MOST threads for each row. Its order is in the host's memory. Shared memory: the mask. */
extern "C" __global__ void __launch_bounds__(MOST) mtk_choose(mt_cuda_choose p)
{
    extern __shared__ uint32_t mask[];
    __shared__ room r;
    start_next();
    if (threadIdx.x < sizeof(r.order) / 4)
        ((uint32_t *)&r.order)[threadIdx.x] = ((const uint32_t *)&p.orders[blockIdx.x])[threadIdx.x];
    __syncthreads();
    wait_for_last();
    if (!r.order.wanted)
        return;
    uint32_t *out = p.out + 2 * blockIdx.x;
    view raw = as_it_is(row_of(p.x, blockIdx.x), p.vocab), steered;
    uint64_t best = best_of(raw, r.keys);
    raw.highest = highest_of(best);
    steered = raw;
    if (is_finite(raw.highest) && (r.order.mask || r.order.seen_count)) {
        steer(p, &r.order, &steered, mask);
        best = best_of(steered, r.keys);
        steered.highest = highest_of(best);
    }
    uint32_t token = is_finite(steered.highest) ? (uint32_t)best : 0;
    if (is_finite(steered.highest) && r.order.inverse > 0) {
        steered.inverse = r.order.inverse;
        steered.least = r.order.least;
        token = draw(steered, &r);
    }
    if (threadIdx.x == 0) {
        out[0] = token;
        out[1] = mt_f32_bits(steered.highest);
    }
    if (is_finite(steered.highest) && r.order.logprobs >= 0)
        report(raw, token, p.tops + (uint64_t)blockIdx.x * MT_CUDA_TOP_WORDS, &r);
}

/* The same where the best logit of each row is chosen, of equals the first. */
extern "C" __global__ void __launch_bounds__(MOST) mtk_best(mt_cuda_choice p)
{
    __shared__ uint64_t keys[32];
    follow_last();
    const uint64_t best = best_of(as_it_is(row_of(p.x, blockIdx.x), p.vocab), keys);
    if (threadIdx.x == 0) {
        p.out[2 * blockIdx.x] = (uint32_t)best;
        p.out[2 * blockIdx.x + 1] = mt_f32_bits(highest_of(best));
    }
}

/* Tokens that the host does not know yet. */
KERNEL(follow)(mt_cuda_follow p)
{
    follow_last();
    for (uint32_t i = threadIdx.x; i < p.m; i += blockDim.x)
        if (p.from[i] != 0xffffffffu)
            p.tokens[i] = p.chosen[2 * p.from[i]];
}
