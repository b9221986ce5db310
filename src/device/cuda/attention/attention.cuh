/* Shared by the kernels of attention: tiles of rows, which positions rows see, partial results and how they are merged.

   A tile has `tile` tokens of one span with all query heads of one key head: row r of it is token r / group, head r %
   group of the group. */
#ifndef MT_DEVICE_CUDA_ATTENTION_ATTENTION_CUH
#define MT_DEVICE_CUDA_ATTENTION_ATTENTION_CUH

#include "device/cuda/common/common.cuh"

typedef struct range {
    uint32_t lo, hi;
} range;

/* The fields of a span that attention reads. */
typedef struct span_at {
    uint32_t row, rows, position, pages; /* pages: where its table begins */
} span_at;

typedef struct tile_at {
    uint32_t index, token, tokens; /* which span; first of its tokens, and how many */
    span_at span;
} tile_at;

/* Positions that a row sees, whose own is `position`. */
static __device__ inline range seen_by(const mt_cuda_attention &p, uint32_t row, uint32_t position)
{
    const uint32_t end = position + 1;
    const uint32_t window = p.window && end > p.window ? end - p.window : 0;
    const uint32_t chunk = p.chunk ? (end - 1) / p.chunk * p.chunk : 0, first = window > chunk ? window : chunk;
    const uint32_t from = p.step.seen_from ? p.step.seen_from[row] : 0;
    range r;
    r.lo = first > from ? first : from;
    r.hi = p.step.seen && !p.causal ? p.step.seen[row] : end;
    return r;
}

/* What a tile sees: the least and the most of both ends. For whole warps. */
typedef struct tile_range {
    range any, all; /* positions that some row sees; that every row sees */
} tile_range;

/* The same for a token of a tile's span. */
static __device__ inline range seen_by(const mt_cuda_attention &p, const tile_at &at, uint32_t token)
{
    return seen_by(p, at.span.row + token, at.span.position + token);
}

static __device__ inline tile_range tile_seen(const mt_cuda_attention &p, const tile_at &at)
{
    tile_range t = {{UINT32_MAX, 0}, {0, UINT32_MAX}};
    for (uint32_t i = threadIdx.x % 32; i < at.tokens; i += 32) {
        const range r = seen_by(p, at, at.token + i);
        t.any.lo = min(t.any.lo, r.lo);
        t.any.hi = max(t.any.hi, r.hi);
        t.all.lo = max(t.all.lo, r.lo);
        t.all.hi = min(t.all.hi, r.hi);
    }
    t.any.lo = __reduce_min_sync(0xffffffffu, t.any.lo);
    t.any.hi = __reduce_max_sync(0xffffffffu, t.any.hi);
    t.all.lo = __reduce_max_sync(0xffffffffu, t.all.lo);
    t.all.hi = __reduce_min_sync(0xffffffffu, t.all.hi);
    return t;
}

/* Tile number `index` of the step, for whole warps: spans one after the other. */
static __device__ inline tile_at find_tile(const mt_cuda_attention &p, uint32_t index)
{
    const uint32_t lane = threadIdx.x % 32;
    uint32_t before = 0;
    for (uint32_t base = 0; base < p.step.spans; base += 32) {
        /* all that is wanted of a span is read at once, whether it is the one or not */
        const mt_cuda_span &own = p.step.span[min(base + lane, p.step.spans - 1)];
        const uint32_t rows = base + lane < p.step.spans ? own.rows : 0, row = own.row, position = own.position;
        const uint32_t pages = own.pages[p.kv.group], n = (rows + p.tile - 1) / p.tile;
        uint32_t sum = n;
        for (uint32_t d = 1; d < 32; d *= 2) {
            const uint32_t other = __shfl_up_sync(0xffffffffu, sum, d);
            sum += lane >= d ? other : 0;
        }
        const unsigned there = __ballot_sync(0xffffffffu, before + sum > index);
        if (there) {
            const int who = __ffs((int)there) - 1;
            const uint32_t first = __shfl_sync(0xffffffffu, sum - n, who);
            tile_at at;
            at.span.rows = __shfl_sync(0xffffffffu, rows, who);
            at.span.row = __shfl_sync(0xffffffffu, row, who);
            at.span.position = __shfl_sync(0xffffffffu, position, who);
            at.span.pages = __shfl_sync(0xffffffffu, pages, who);
            at.index = base + (uint32_t)who;
            at.token = (index - before - first) * p.tile;
            at.tokens = min(p.tile, at.span.rows - at.token);
            return at;
        }
        before += __shfl_sync(0xffffffffu, sum, 31);
    }
    return (tile_at){0, 0, 0, {0, 0, 0, 0}};
}

static __device__ inline uint32_t segments_of(const tile_range &seen)
{
    const uint32_t from = seen.any.lo / MT_SEGMENT, to = (seen.any.hi + MT_SEGMENT - 1) / MT_SEGMENT;
    return to > from ? to - from : 0;
}

/* Into how many shares the segments of a tile are divided. The block with the only share merges its segments itself. */
static __device__ inline uint32_t shares_of(const mt_cuda_attention &p, const tile_at &at, const tile_range &seen)
{
    const uint32_t n = segments_of(seen), most = at.span.rows <= p.tile ? p.shares : 1;
    if (n > 1 && p.alone && (n - 1) * ((at.span.rows * (p.heads / p.kv.heads) + 7) / 8) <= p.alone)
        return 1;
    return n < most ? max(n, 1u) : most;
}

/* Where the part of a row lies, in floats: m, l, two of nothing, o. Spans that are one tile have parts, as many as
   segments; where those of a span begin follows from where its page table does. */
static __device__ inline float *part_at(const mt_cuda_attention &p, const tile_at &at, uint32_t kv_head, uint32_t seg,
                                        uint32_t row, uint32_t width)
{
    const uint64_t slot = at.span.pages / (MT_SEGMENT / p.kv.page_tokens) + at.index + seg;
    return p.parts + ((slot * p.kv.heads + kv_head) * p.part_rows + row) * (width + 4);
}

/* max that carries NaN */
static __device__ inline float max_nan(float a, float b)
{
    float m;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(b));
    return m;
}

/* Segments of one row, ascending. */
typedef struct whole {
    float m, l;
} whole;

/* Takes a part in; what is there counts `old`, what comes `now`. False: it is empty, and nothing changes. */
static __device__ inline bool take_part(whole &w, float m, float l, float &old, float &now)
{
    if (l == 0.0f && m == -INFINITY)
        return false;
    const float most = mt_max1(w.m, m);
    old = mt_exp1(w.m - most);
    now = mt_exp1(m - most);
    w.l = fmaf(w.l, old, l * now);
    w.m = most;
    return true;
}

/* A sink comes after the last segment, as one of one key whose value is 0: what is there counts so much. */
static __device__ inline float take_sink(whole &w, const float *sinks, uint32_t head)
{
    if (!sinks)
        return 1.0f;
    const float sink = sinks[head], most = mt_max1(w.m, sink), old = mt_exp1(w.m - most);
    w.l = fmaf(w.l, old, mt_exp1(sink - most));
    w.m = most;
    return old;
}

/* Four columns of n parts of a row, ascending, for whole warps. Each lane finds out for one of 32 parts what it counts,
   and what all before it count from there on; the sums then wait for nothing but memory. AHEAD parts, a divisor of 32,
   are read at once. */
template <int AHEAD>
static __device__ inline whole merge_columns(const mt_cuda_attention &p, const float *parts, uint32_t n,
                                             uint32_t column, uint32_t width, float4 &acc)
{
    const uint32_t lane = threadIdx.x % 32;
    const uint64_t step = (uint64_t)p.kv.heads * p.part_rows * (width + 4);
    whole w = {-INFINITY, 0};
    acc = make_float4(0, 0, 0, 0);
    for (uint32_t base = 0; base < n; base += 32) {
        const bool there = base + lane < n;
        const float2 part = there ? __ldcg((const float2 *)(parts + (base + lane) * step)) : make_float2(-INFINITY, 0);
        float4 o[AHEAD];
        const auto fetch_parts = [&](uint32_t first) {
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                o[i] = make_float4(0, 0, 0, 0); /* else registers are kept for them all the time */
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (base + first + i >= n)
                    break; /* code is fetched more slowly than it is executed */
                if (column < width)
                    o[i] = __ldcg((const float4 *)(parts + (base + first + i) * step + 4 + column));
            }
        };
        fetch_parts(0);
        const bool empty = part.y == 0.0f && part.x == -INFINITY;
        float most = empty ? -INFINITY : part.x; /* of all up to this one */
#pragma unroll
        for (uint32_t d = 1; d < 32; d *= 2) {
            const float other = __shfl_up_sync(0xffffffffu, most, d);
            most = lane >= d ? mt_max1(other, most) : most;
        }
        most = mt_max1(w.m, most);
        float before = __shfl_up_sync(0xffffffffu, most, 1);
        before = lane ? before : w.m;
        const float old = mt_exp1(before - most), now = mt_exp1(part.x - most), l = part.y * now;
        const unsigned counts = __ballot_sync(0xffffffffu, !empty);
        w.m = __shfl_sync(0xffffffffu, most, 31);
        for (uint32_t first = 0; first < 32 && base + first < n; first += AHEAD) {
            if (first)
                fetch_parts(first);
#pragma unroll
            for (int i = 0; i < AHEAD; i++) {
                if (base + first + i >= n)
                    break;
                const float o_old = __shfl_sync(0xffffffffu, old, first + i),
                            o_now = __shfl_sync(0xffffffffu, now, first + i);
                const float o_l = __shfl_sync(0xffffffffu, l, first + i);
                if (!(counts >> (first + i) & 1))
                    continue;
                w.l = fmaf(w.l, o_old, o_l);
                acc.x = fmaf(acc.x, o_old, o[i].x * o_now);
                acc.y = fmaf(acc.y, o_old, o[i].y * o_now);
                acc.z = fmaf(acc.z, o_old, o[i].z * o_now);
                acc.w = fmaf(acc.w, o_old, o[i].w * o_now);
            }
        }
    }
    return w;
}

#endif
