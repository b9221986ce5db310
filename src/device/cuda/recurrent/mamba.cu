/* Mamba2: the convolution with its bias, the time steps, and the recurrence S = decay S + (step v) k', o = S q, token
   by token in the CPU's order: a sum ascends over the keys.

   The recurrence has a block for 32 columns of a head's state in a span. Each of its warps has some neighbouring keys
   of all 32 columns in registers, a column a lane, and takes the span's tokens in chunks. Unlike GatedDeltaNet's, the
   state does not depend on its own product with a key, so only the sums o are a chain: warp w adds its keys to the sums
   of a chunk one round after warp w - 1, which leaves them in shared memory. */
#include "device/cuda/common/copy.cuh"
#include "device/cuda/recurrent/mamba.h"
#include "device/cuda/recurrent/recurrent.cuh"

/* ---- the convolution: a column a thread, some rows a block ---- */

KERNEL(mamba_conv)(mt_cuda_recurrent p) /* w: [taps + 1][columns], the last row a bias */
{
    follow_last();
    const uint32_t keys = p.st.key_heads * p.st.key_dim, c = blockIdx.x * blockDim.x + threadIdx.x;
    const uint32_t first = blockIdx.y * p.m, end = min(first + p.m, p.step.rows);
    if (c >= p.st.columns)
        return;
    const uint32_t i = c < keys ? 0 : c < 2 * keys ? 1 : 2;
    const section s = section_of(p.st, i);
    const float *x = columns_of(p.in[i], 0, (c - s.first) / s.width) + (c - s.first) % s.width;
    const int taps = (int)p.st.taps;
    for (uint32_t row = first; row < end; row++) {
        const mt_cuda_span &span = p.step.span[p.step.span_of[row]];
        const int at = (int)(row - span.row) - (taps - 1);
        float a = 0;
        for (int j = 0; j < taps; j++) {
            const float v =
                at + j >= 0 ? x[(uint64_t)(span.row + at + j) * p.in[i].x.stride] : input(p, span, at + j, c);
            const float w = p.w.data[j * p.w.stride + c];
            a = j == 0 ? w * v : fmaf(w, v, a);
        }
        row_of(p.y, row)[c] = mt_silu1(fmaf(p.w.data[taps * p.w.stride + c], 1.0f, a));
    }
}

/* ---- time steps: a block a row ---- */

KERNEL(time_steps)(mt_cuda_time_steps p)
{
    follow_last();
    const uint32_t n = p.rate.cols;
    const float *x = row_of(p.x, blockIdx.x);
    float *decay = row_of(p.y, blockIdx.x), *step = decay + n;
    for (uint32_t h = threadIdx.x; h < n; h += blockDim.x) {
        const float soft = softplus1(x[h] + p.bias.data[h]), s = soft < p.low ? p.low : soft > p.high ? p.high : soft;
        step[h] = s;
        decay[h] = mt_exp1(s * -p.rate.data[h]);
    }
}

/* ---- the recurrence ---- */

enum { COLUMNS = MT_DELTA_COLUMNS };

/* What a warp reads of a token. */
template <int KEYS> struct mamba_token {
    float q[KEYS], k[KEYS], v[COLUMNS], decay, step, nothing[2];
};

/* A warp's part of a block: keys [first, first + keys) of 32 columns of a head of a span. */
typedef struct part {
    mt_cuda_span span;
    uint32_t head, warp, warps, lane;
    uint32_t key, keys, value; /* its first key's column in x, and that of the same query; its values' */
    uint32_t columns;          /* of the head, from the block's first on */
    uint32_t tokens, offset;   /* offset: of column 0 in a row of y */
    uint64_t at;               /* of the state, for this lane */
} part;

template <int KEYS> static __device__ inline part find_part(const mt_cuda_recurrent &p)
{
    const mt_cuda_states &st = p.st;
    const uint32_t all = st.key_heads * st.key_dim;
    part w;
    w.span = p.step.span[blockIdx.z];
    w.head = blockIdx.y;
    w.warp = threadIdx.x / 32;
    w.warps = blockDim.x / 32;
    w.lane = threadIdx.x % 32;
    const uint32_t first = w.warp * KEYS;
    w.key = w.head / (st.value_heads / st.key_heads) * st.key_dim + first;
    w.keys = min((uint32_t)KEYS, st.key_dim - first);
    w.offset = w.head * st.value_dim + blockIdx.x * COLUMNS;
    w.value = 2 * all + w.offset;
    w.columns = st.value_dim - blockIdx.x * COLUMNS;
    w.tokens = w.span.replay + w.span.rows;
    w.at = st.conv + ((uint64_t)w.head * st.blocks + blockIdx.x) * st.key_dim * COLUMNS + first * COLUMNS + w.lane;
    return w;
}

/* Begins to copy a chunk of tokens, as far as there are so many; those of a memo come first. */
template <int KEYS, int CHUNK>
static __device__ inline void fetch_tokens(const mt_cuda_recurrent &p, const part &w, mamba_token<KEYS> *to,
                                           uint32_t chunk)
{
    const uint32_t all = p.st.key_heads * p.st.key_dim, end = min((chunk + 1) * CHUNK, w.tokens);
    for (uint32_t t = chunk * CHUNK; t < end; t++, to++) {
        const bool old = t < w.span.replay;
        const uint32_t row = w.span.row + t - w.span.replay;
        const float *x = old ? memo_of(p, w.span, t) + p.st.columns : row_of(p.x, row);
        const float *gates = old ? x + p.st.columns : row_of(p.gates, row);
        for (uint32_t i = w.lane; i < w.keys; i += 32) {
            copy_small(shared_address(to->q + i), x + w.key + i, 4);
            copy_small(shared_address(to->k + i), x + all + w.key + i, 4);
        }
        if (w.lane < w.columns)
            copy_small(shared_address(to->v + w.lane), x + w.value + w.lane, 4);
        if (w.lane < 2)
            copy_small(shared_address(w.lane ? &to->step : &to->decay), gates + w.lane * p.st.value_heads + w.head, 4);
    }
    copy_commit();
}

/* The state takes a token in; returns the sum so far and, added to it, the products of these keys. */
template <int KEYS, bool WHOLE>
static __device__ inline float take_token(float (&state)[KEYS], const mamba_token<KEYS> &x, uint32_t keys, float v,
                                          float sum)
{
    const float d = x.step * v, decay = x.decay;
#pragma unroll
    for (int i = 0; i < KEYS; i += 4) {
        const float4 k = *(const float4 *)(x.k + i), q = *(const float4 *)(x.q + i);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (WHOLE || (uint32_t)(i + j) < keys) {
                state[i + j] = fmaf((&k.x)[j], d, decay * state[i + j]);
                sum = fmaf(state[i + j], (&q.x)[j], sum);
            }
    }
    return sum;
}

/* Which piece's state is kept next, and after how many tokens. */
typedef struct keeping {
    uint32_t piece, due;
} keeping;

static __device__ inline uint32_t piece_rows(const mt_cuda_recurrent &p, const part &w, uint32_t piece)
{
    return piece < w.span.pieces ? p.step.piece[w.span.piece + piece].rows : 0;
}

/* After `done` tokens. */
template <int KEYS>
static __device__ inline void keep_parts(const mt_cuda_recurrent &p, const part &w, keeping &k, uint32_t done,
                                         const float (&state)[KEYS])
{
    while (done == k.due) {
        float *to = slot_of(p, p.step.piece[w.span.piece + k.piece].slot) + w.at;
#pragma unroll
        for (int i = 0; i < KEYS; i++)
            if ((uint32_t)i < w.keys)
                to[i * COLUMNS] = w.lane < w.columns ? state[i] : 0.0f;
        k.piece++;
        k.due = k.piece < w.span.pieces ? done + piece_rows(p, w, k.piece) : UINT32_MAX;
    }
}

template <int KEYS, int CHUNK> static __device__ inline void recur(const mt_cuda_recurrent &p)
{
    typedef mamba_token<KEYS> token;
    extern __shared__ __align__(16) uint8_t raw[];
    const part w = find_part<KEYS>(p);
    token *ring = (token *)raw + w.warp * 2 * CHUNK;
    float(*sums)[2][CHUNK][COLUMNS] = (float(*)[2][CHUNK][COLUMNS])((token *)raw + w.warps * 2 * CHUNK);
    const bool whole = w.keys == KEYS, last = w.warp + 1 == w.warps;
    const uint32_t chunks = (w.tokens + CHUNK - 1) / CHUNK;
    float state[KEYS];
    start_next();
    { /* no kernel of this step but this one writes states, so they can be read before the kernel before has ended */
        const bool none = w.span.state == MT_CUDA_NONE;
        const float *from = none ? NULL : slot_of(p, w.span.state) + w.at;
#pragma unroll
        for (int i = 0; i < KEYS; i++)
            state[i] = none || (uint32_t)i >= w.keys ? 0.0f : from[i * COLUMNS];
    }
    keeping k = {0, w.span.pieces ? w.span.replay + piece_rows(p, w, 0) : UINT32_MAX};
    wait_for_last();
    fetch_tokens<KEYS, CHUNK>(p, w, ring, 0);
    fetch_tokens<KEYS, CHUNK>(p, w, ring + CHUNK, 1);
    if (k.due == 0)
        keep_parts(p, w, k, 0, state);
    for (uint32_t round = 0; round < chunks + w.warps - 1; round++) {
        const uint32_t chunk = round - w.warp;
        __syncthreads(); /* the warp before has left its sums of this chunk */
        if (round < w.warp || chunk >= chunks)
            continue;
        copy_wait<1>();
        __syncwarp();
        const uint32_t end = min((chunk + 1) * CHUNK, w.tokens);
        const token *x = ring + chunk % 2 * CHUNK;
        for (uint32_t t = chunk * CHUNK; t < end; t++, x++) {
            const uint32_t i = t % CHUNK;
            const float before = w.warp ? sums[w.warp - 1][chunk % 2][i][w.lane] : 0.0f,
                        v = w.lane < w.columns ? x->v[w.lane] : 0.0f;
            const float o = whole ? take_token<KEYS, true>(state, *x, w.keys, v, before)
                                  : take_token<KEYS, false>(state, *x, w.keys, v, before);
            if (!last)
                sums[w.warp][chunk % 2][i][w.lane] = o;
            else if (t >= w.span.replay && w.lane < w.columns)
                row_of(p.y, w.span.row + t - w.span.replay)[w.offset + w.lane] = o;
            if (t + 1 == k.due)
                keep_parts(p, w, k, t + 1, state);
        }
        __syncwarp();
        fetch_tokens<KEYS, CHUNK>(p, w, ring + chunk % 2 * CHUNK, chunk + 2);
    }
}

extern "C" __global__ void __launch_bounds__(32 * MT_CUDA_MAMBA_WARPS) mtk_mamba(mt_cuda_recurrent p)
{
    recur<MT_CUDA_MAMBA_KEYS(false), MT_CUDA_MAMBA_CHUNK(false)>(p);
}

extern "C" __global__ void __launch_bounds__(32 * MT_CUDA_MAMBA_WARPS) mtk_mamba_wide(mt_cuda_recurrent p)
{
    recur<MT_CUDA_MAMBA_KEYS(true), MT_CUDA_MAMBA_CHUNK(true)>(p);
}
