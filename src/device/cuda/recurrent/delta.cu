/* The gated delta rule (R9), token by token, with the state in registers: a thread has a column of a head's state, all
   key_dim elements of it, and adds ascending, so the bits are the CPU's.

   The sums over a column are chains: what a token takes is the latency of key_dim dependent additions. So each element
   is touched once a token: S_t is made, and at once added to this token's output and to the next one's memory,
   m_{t+1} = sum of S_t k_{t+1}. Queries, keys, values and gates of coming tokens are copied into shared memory
   meanwhile.

   Prompts have five warps for 32 columns: two make the chain of m and with it d, two, some tokens behind, that of o,
   and one copies. A lane has half of a column there; while one half of the lanes makes its part of a chain, what the
   others compute is of no use, but there are as many warps as a multiprocessor has schedulers, and each is half as long
   at the work beside the chain. Answers have one warp, which reads the state once. */
#include "device/cuda/common/copy.cuh"
#include "device/cuda/recurrent/recurrent.cuh"
#include "device/cuda/rows/pack.cuh"

#define KEYS 128 /* of a head; others have a kernel of their own */

enum { CHUNK = 8, RING = 5 * CHUNK, RING_FEW = 8 };

typedef struct token {
    float q[KEYS], k[KEYS], v[MT_DELTA_COLUMNS], decay, beta, nothing[2];
} token;

/* 32 columns of a head of a span. */
typedef struct strip {
    mt_cuda_span span;
    uint32_t head, key, keys, value, tokens;
    uint32_t columns; /* of the head, from the strip's first on */
    uint64_t offset;  /* of the state, for this lane */
    bool there;       /* whether this lane's column is one of the head's */
} strip;

static __device__ inline strip find_strip(const mt_cuda_recurrent &p, uint32_t block, uint32_t column)
{
    const mt_cuda_states &st = p.st;
    strip s;
    s.span = p.step.span[blockIdx.z];
    s.head = blockIdx.y;
    s.keys = st.key_heads * KEYS;
    s.key = s.head / (st.value_heads / st.key_heads) * KEYS;
    s.value = 2 * s.keys + s.head * st.value_dim + block * MT_DELTA_COLUMNS;
    s.tokens = s.span.replay + s.span.rows;
    s.offset = st.conv + ((uint64_t)s.head * st.blocks + block) * KEYS * MT_DELTA_COLUMNS + column;
    s.columns = st.value_dim - block * MT_DELTA_COLUMNS;
    s.there = column < s.columns;
    return s;
}

/* Begins to copy token t of a strip, if there is one; those of a memo come first. */
template <int N>
static __device__ inline void fetch_token(const mt_cuda_recurrent &p, const strip &s, token (&ring)[N], uint32_t t)
{
    if (t >= s.tokens)
        return;
    const bool old = t < s.span.replay;
    const uint32_t lane = threadIdx.x % 32, row = s.span.row + t - s.span.replay;
    const float *x = old ? memo_of(p, s.span, t) + p.st.columns : row_of(p.x, row);
    const float *gates = old ? x + p.st.columns : row_of(p.gates, row);
    token *to = &ring[t % N];
    copy_16(shared_address(to->q + lane * 4), x + s.key + lane * 4);
    copy_16(shared_address(to->k + lane * 4), x + s.keys + s.key + lane * 4);
    if (lane < s.columns)
        copy_small(shared_address(to->v + lane), x + s.value + lane, 4);
    if (lane < 2)
        copy_small(shared_address(lane ? &to->beta : &to->decay), gates + lane * p.st.value_heads + s.head, 4);
}

static __device__ inline void fetch_chunk(const mt_cuda_recurrent &p, const strip &s, token (&ring)[RING], uint32_t c)
{
    for (uint32_t t = c * CHUNK; t < (c + 1) * CHUNK; t++)
        fetch_token(p, s, ring, t);
    copy_commit();
}

template <int N> static __device__ inline void load_state(const mt_cuda_recurrent &p, const strip &s, float (&state)[N])
{
    const bool none = s.span.state == MT_CUDA_NONE;
    const float *from = none ? NULL : slot_of(p, s.span.state) + s.offset;
#pragma unroll
    for (int i = 0; i < N; i++)
        state[i] = none ? 0.0f : from[i * MT_DELTA_COLUMNS];
}

/* Where a span's state is kept: after the rows of each piece. */
typedef struct keeping {
    uint32_t piece, left; /* which is next; rows until it is to be kept */
} keeping;

static __device__ inline keeping first_piece(const mt_cuda_recurrent &p, const strip &s)
{
    keeping k;
    k.piece = 0;
    k.left = s.span.pieces ? p.step.piece[s.span.piece].rows : UINT32_MAX;
    return k;
}

/* After a row: keeps the state if it is one that is kept. */
static __device__ inline void keep_state(const mt_cuda_recurrent &p, const strip &s, keeping &k,
                                         const float (&state)[KEYS])
{
    while (k.left == 0) {
        float *to = slot_of(p, p.step.piece[s.span.piece + k.piece].slot) + s.offset;
#pragma unroll
        for (int i = 0; i < KEYS; i++)
            to[i * MT_DELTA_COLUMNS] = s.there ? state[i] : 0.0f;
        k.piece++;
        k.left = k.piece < s.span.pieces ? p.step.piece[s.span.piece + k.piece].rows : UINT32_MAX;
    }
}

/* What token t has given; a token of the memo only leads to the state. */
static __device__ inline void give_row(const mt_cuda_recurrent &p, const strip &s, keeping &k, uint32_t t,
                                       const float (&state)[KEYS], float o)
{
    if (t >= s.span.replay) {
        if (s.there)
            row_of(p.y, s.span.row + t - s.span.replay)[s.value - 2 * s.keys + threadIdx.x % 32] = o;
        k.left--;
    }
    if (t + 1 >= s.span.replay)
        keep_state(p, s, k, state);
}

static __device__ inline float recall(const float (&state)[KEYS], const float *key)
{
    float m = 0;
#pragma unroll
    for (int i = 0; i < KEYS; i += 4) {
        const float4 k = *(const float4 *)(key + i);
        m = fmaf(state[i], k.x, m);
        m = fmaf(state[i + 1], k.y, m);
        m = fmaf(state[i + 2], k.z, m);
        m = fmaf(state[i + 3], k.w, m);
    }
    return m;
}

/* Eight elements of what a token brings. */
typedef struct octet {
    float4 k[2], q[2], n[2];
    float decay;
} octet;

static __device__ inline void read_octet(octet &x, const token *now, const token *next, int at)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        x.k[i] = *(const float4 *)(now->k + at + i * 4);
        x.q[i] = *(const float4 *)(now->q + at + i * 4);
        x.n[i] = *(const float4 *)(next->k + at + i * 4);
    }
    x.decay = now->decay;
}

/* One token: the state takes d in; o and the next token's m.

   A warp issues in order, and the compiler would have all products first and then the chain of additions, which leaves
   three of four cycles empty. So the places that are read depend on how far the chain is: `zero` is 0, which the
   compiler does not know. */
static __device__ inline void advance_state(float (&state)[KEYS], const token *now, const token *next, float d,
                                            unsigned zero, float &o, float &m)
{
    enum { AHEAD = 3 };
    octet ahead[AHEAD];
#pragma unroll
    for (int g = 0; g < AHEAD; g++)
        read_octet(ahead[g], now, next, g * 8);
    o = m = 0;
#pragma unroll
    for (int g = 0; g < KEYS / 8; g++) {
        const octet &x = ahead[g % AHEAD];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float &s = state[g * 8 + j];
            s = fmaf((&x.k[j / 4].x)[j % 4], d, x.decay * s);
            o = fmaf(s, (&x.q[j / 4].x)[j % 4], o);
            m = fmaf(s, (&x.n[j / 4].x)[j % 4], m);
        }
        if (g + AHEAD < KEYS / 8) {
            const unsigned nothing = mt_f32_bits(m) & zero;
            read_octet(ahead[g % AHEAD], (const token *)((const char *)now + nothing),
                       (const token *)((const char *)next + nothing), (g + AHEAD) * 8);
        }
    }
}

static __device__ inline float change_of(const token &t, float m, uint32_t column)
{
    return t.beta * fmaf(-t.decay, m, t.v[column]);
}

/* Answers: a warp, and its ring. States are read before the kernel before has ended: no kernel of this step but this
   one writes them. */
static __device__ inline void answer(const mt_cuda_recurrent &p, const strip &s, token (&ring)[RING_FEW])
{
    enum { AHEAD = 4 };
    const uint32_t lane = threadIdx.x % 32;
    const unsigned zero = p.step.spans >> 31; /* there are not so many */
    float state[KEYS], m, o;
    load_state(p, s, state);
    wait_for_last();
    for (uint32_t t = 0; t < AHEAD; t++) {
        fetch_token(p, s, ring, t);
        copy_commit();
    }
    copy_wait<AHEAD - 1>();
    __syncwarp();
    keeping k = first_piece(p, s);
    if (s.span.replay == 0)
        keep_state(p, s, k, state);
    m = recall(state, ring[0].k);
    for (uint32_t t = 0; t < s.tokens; t++) {
        fetch_token(p, s, ring, t + AHEAD);
        copy_commit();
        copy_wait<AHEAD - 1>(); /* t + 1 is there */
        __syncwarp();
        const token &now = ring[t % RING_FEW];
        advance_state(state, &now, &ring[(t + 1) % RING_FEW], change_of(now, m, lane), zero, o, m);
        give_row(p, s, k, t, state, o);
    }
}

extern "C" __global__ void __launch_bounds__(32) mtk_delta_few(mt_cuda_recurrent p)
{
    __shared__ __align__(16) token ring[RING_FEW];
    start_next();
    answer(p, find_strip(p, blockIdx.x, threadIdx.x), ring);
}

enum { STRIPS = MT_CUDA_NORMED_COLUMNS / MT_DELTA_COLUMNS };

/* The same with gated_norm behind it: a block has a head of 128 values, and all rows of a span. What is normed is
   packed as a step of 128 where pack says so: half a warp has a row, and its first four lanes a block of 32 each. */
extern "C" __global__ void __launch_bounds__(32 * STRIPS, 3) mtk_delta_normed(const __grid_constant__ mt_cuda_normed p)
{
    __shared__ __align__(16) token ring[STRIPS][RING_FEW];
    __shared__ float4 made[2 * STRIPS][MT_CUDA_NORMED_COLUMNS / 32 * 9];
    constexpr uint32_t N = MT_CUDA_NORMED_COLUMNS, EACH = N / 16;
    const uint32_t lane = threadIdx.x % 16, half = threadIdx.x / 16, head = blockIdx.y;
    start_next();
    const strip s = find_strip(p.delta, threadIdx.x / 32, threadIdx.x % 32);
    answer(p.delta, s, ring[threadIdx.x / 32]);
    __syncthreads();
    float w[EACH];
#pragma unroll
    for (uint32_t i = 0; i < EACH; i++)
        w[i] = p.norm.w.data[lane + i * 16];
    const uint32_t width = p.norm.y.cols / p.norm.key_heads, at = head * N; /* N divides width */
    for (uint32_t first = 0; first < s.span.rows; first += 2 * STRIPS) {
        const bool there = first + half < s.span.rows;
        const uint32_t row = s.span.row + (there ? first + half : 0);
        float *y = row_of(p.norm.y, row) + at, *own = (float *)made[half], v[EACH], z[EACH];
        const float *gates = columns_of(p.norm.in[0], row, at / width) + at % width;
        float sum = 0;
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            v[i] = y[lane + i * 16];
            z[i] = gates[lane + i * 16];
        }
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++)
            sum = fmaf(v[i], v[i], sum);
        const float r = 1.0f / sqrtf(fold16(sum) / (float)N + p.norm.eps);
        __syncwarp(); /* threads without a row of their own have read the first one */
#pragma unroll
        for (uint32_t i = 0; i < EACH; i++) {
            v[i] = mt_silu1(z[i]) * ((v[i] * r) * (0.0f + w[i]));
            if (there)
                y[lane + i * 16] = v[i];
            own[apart(lane + i * 16)] = v[i];
        }
        if (!p.pack.to.q)
            continue;
        __syncwarp();
        float x[32];
        load_apart(x, own, lane % 4);
        pack_block(p.pack, row, head * (N / 32) + lane % 4, x, there && lane < 4);
        __syncwarp();
    }
}

/* ---- prompts ---- */

/* A lane's part of a column: half of it, lanes 0 to 15 of a warp the upper one, 16 to 31 the lower one of the same
   columns. Between tokens a state is already multiplied with the next token's decay. */
enum { HALF = KEYS / 2 };

/* The lower half goes on where the upper one has ended; only the lower lanes have the sum. Meanwhile the state is
   multiplied with the next token's decay. */
static __device__ inline float add_lower(float (&state)[HALF], const float (&x)[HALF], float upper, float decay)
{
    float sum = __shfl_sync(0xffffffffu, upper, threadIdx.x % 16);
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        sum = fmaf(state[i], x[i], sum);
        state[i] = decay * state[i];
    }
    return sum;
}

/* The state takes d in, as much of it as `key` says; the sum of what it is then times x, of the upper half. */
static __device__ inline float advance_half(float (&state)[HALF], const float (&key)[HALF], const float (&x)[HALF],
                                            float d)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < HALF; i++) {
        state[i] = fmaf(key[i], d, state[i]);
        sum = fmaf(state[i], x[i], sum);
    }
    return sum;
}

static __device__ inline void load_half(float (&to)[HALF], const float *from)
{
#pragma unroll
    for (int i = 0; i < HALF; i += 4)
        *(float4 *)&to[i] = *(const float4 *)(from + i);
}

static __device__ inline void scale_half(float (&state)[HALF], float decay)
{
#pragma unroll
    for (int i = 0; i < HALF; i++)
        state[i] = decay * state[i];
}

/* The chain of m, from one token to the next. */
static __device__ inline float next_memory(float (&state)[HALF], const float (&key)[HALF], const float (&next)[HALF],
                                           float d, float decay)
{
    const float m = advance_half(state, key, next, d);
    return __shfl_sync(0xffffffffu, add_lower(state, next, m, decay), threadIdx.x % 16 + 16);
}

/* Warps 0 and 1: what each token changes. Two tokens at a time, so that keys stay in the registers they come to; where
   there is but one left, what follows from the other goes nowhere. */
static __device__ inline void follow_memory(float (&state)[HALF], float (&key)[HALF], float &m, const token *ring,
                                            float (&change)[CHUNK][MT_DELTA_COLUMNS], uint32_t t, uint32_t end,
                                            uint32_t column, uint32_t base)
{
    const token *now = &ring[t % RING];
    float other[HALF];
#pragma unroll 1
    for (uint32_t i = 0; t + i < end; i += 2) {
        const token *next = now + 1, *after = now + 2 == ring + RING ? ring : now + 2;
        load_half(other, next->k + base);
        float d = change_of(*now, m, column);
        change[i][column] = d;
        m = next_memory(state, key, other, d, next->decay);
        load_half(key, after->k + base);
        d = change_of(*next, m, column);
        change[i + 1][column] = d;
        m = next_memory(state, other, key, d, after->decay);
        now = after;
    }
}

/* Warps 2 and 3: outputs, and states that are kept. */
typedef struct giving {
    float *y;       /* of this lane, for the next row; NULL: it has none */
    uint32_t begin; /* tokens before this one give nothing */
    uint32_t due;   /* after so many tokens a state is kept */
    uint32_t piece; /* which is next */
} giving;

static __device__ inline giving begin_giving(const mt_cuda_recurrent &p, const strip &s, bool lower, uint32_t column)
{
    giving g;
    g.y = lower && s.there ? row_of(p.y, s.span.row) + (s.value - 2 * s.keys) + column : NULL;
    g.begin = s.span.replay;
    g.piece = 0;
    g.due = s.span.pieces ? g.begin + p.step.piece[s.span.piece].rows : UINT32_MAX;
    return g;
}

/* After `done` tokens. */
static __device__ inline void keep_due(const mt_cuda_recurrent &p, const strip &s, giving &g, uint32_t done,
                                       const float (&state)[HALF])
{
    while (done == g.due) {
        float *to = slot_of(p, p.step.piece[s.span.piece + g.piece].slot) + s.offset;
#pragma unroll
        for (int i = 0; i < HALF; i++)
            to[i * MT_DELTA_COLUMNS] = s.there ? state[i] : 0.0f;
        g.piece++;
        g.due = g.piece < s.span.pieces ? g.due + p.step.piece[s.span.piece + g.piece].rows : UINT32_MAX;
    }
}

/* A state is kept before it is multiplied with the next decay; so it is multiplied with 1 until it is. */
static __device__ inline void give_outputs(const mt_cuda_recurrent &p, const strip &s, giving &g, float (&state)[HALF],
                                           const token *ring, const float (&change)[CHUNK][MT_DELTA_COLUMNS],
                                           uint32_t t, uint32_t end, uint32_t column, uint32_t base)
{
    const token *now = &ring[t % RING];
    const float *d = &change[0][column];
    while (t < end) {
        const uint32_t stop = min(end, g.due);
#pragma unroll 1
        for (; t < stop; t++, d += MT_DELTA_COLUMNS) {
            const token *next = now + 1 == ring + RING ? ring : now + 1;
            float k[HALF], q[HALF];
            load_half(k, now->k + base);
            load_half(q, now->q + base);
            const float o = add_lower(state, q, advance_half(state, k, q, *d), t + 1 == g.due ? 1.0f : next->decay);
            if (t >= g.begin && g.y) {
                *g.y = o;
                g.y += p.y.stride;
            }
            now = next;
        }
        if (t == g.due) {
            keep_due(p, s, g, t, state);
            scale_half(state, now->decay);
        }
    }
}

/* All warps of the block, each wherever it is in its own code. */
static __device__ inline void meet(void)
{
    named_barrier_apart<1, MT_CUDA_DELTA_THREADS>();
}

/* In round c warps 0 and 1 take chunk c, 2 and 3 the one before it, 16 columns each; the last one copies. */
extern "C" __global__ void __launch_bounds__(MT_CUDA_DELTA_THREADS) mtk_delta_many(mt_cuda_recurrent p)
{
    follow_last();
    __shared__ __align__(16) token ring[RING];
    __shared__ float change[2][CHUNK][MT_DELTA_COLUMNS];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, column = warp % 2 * 16 + lane % 16;
    const uint32_t base = lane / 16 * HALF;
    strip s = find_strip(p, blockIdx.x, column);
    s.offset += base * MT_DELTA_COLUMNS;
    const uint32_t rounds = (s.tokens + CHUNK - 1) / CHUNK + 1;
    if (warp == 4) {
        for (uint32_t c = 0; c < 3; c++)
            fetch_chunk(p, s, ring, c);
        for (uint32_t c = 0; c < rounds; c++) {
            copy_wait<1>(); /* of chunks up to c + 1: keys and decays are looked at a token ahead */
            meet();
            fetch_chunk(p, s, ring, c + 3);
        }
        return;
    }
    float state[HALF];
    load_state(p, s, state);
    if (warp < 2) {
        float key[HALF], m = 0;
        for (uint32_t c = 0; c < rounds; c++) {
            meet();
            if (c == 0) {
                load_half(key, ring[0].k + base);
#pragma unroll
                for (int i = 0; i < HALF; i++)
                    m = fmaf(state[i], key[i], m);
                m = __shfl_sync(0xffffffffu, add_lower(state, key, m, ring[0].decay), lane % 16 + 16);
            }
            follow_memory(state, key, m, ring, change[c % 2], c * CHUNK, min((c + 1) * CHUNK, s.tokens), column, base);
        }
        return;
    }
    giving g = begin_giving(p, s, lane >= 16, column);
    if (g.due == 0)
        keep_due(p, s, g, 0, state);
    meet();
    scale_half(state, ring[0].decay);
    for (uint32_t c = 1; c < rounds; c++) {
        meet();
        give_outputs(p, s, g, state, ring, change[(c - 1) % 2], (c - 1) * CHUNK, min(c * CHUNK, s.tokens), column,
                     base);
    }
}
