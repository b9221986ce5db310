/* The gated delta rule (R9), token by token, with the state in registers: a thread has a column of a head's state, all
   key_dim elements of it, and adds ascending, so the bits are the CPU's.

   The sums over a column are chains: what a token takes is the latency of key_dim dependent additions. So each element
   is touched once a token: S_t is made, and at once added to this token's output and to the next one's memory,
   m_{t+1} = sum of S_t k_{t+1}. Queries, keys, values and gates of coming tokens are copied into shared memory
   meanwhile.

   Prompts have two warps for 32 columns, both of which have the state: one makes the chain of m and with it d, the
   other, some tokens behind, that of o. Answers have one, which reads the state once. */
#include "device/cuda/recurrent.cuh"

#define KEYS 128 /* of a head; others have a kernel of their own */

enum { CHUNK = 4, RING = 5 * CHUNK, RING_FEW = 8 };

typedef struct token {
    float q[KEYS], k[KEYS], v[MT_DELTA_COLUMNS], decay, beta, nothing[2];
} token;

/* 32 columns of a head of a span. */
typedef struct strip {
    mt_cuda_span span;
    uint32_t head, key, keys, value, tokens;
    uint64_t offset; /* of the state, for this lane */
    bool there;      /* whether this lane's column is one of the head's */
} strip;

static __device__ inline strip find_strip(const mt_cuda_recurrent &p)
{
    const mt_cuda_states &st = p.st;
    const uint32_t lane = threadIdx.x % 32, block = blockIdx.x, column = block * MT_DELTA_COLUMNS + lane;
    strip s;
    s.span = p.step.span[blockIdx.z];
    s.head = blockIdx.y;
    s.keys = st.key_heads * KEYS;
    s.key = s.head / (st.value_heads / st.key_heads) * KEYS;
    s.value = 2 * s.keys + s.head * st.value_dim + block * MT_DELTA_COLUMNS;
    s.tokens = s.span.replay + s.span.rows;
    s.offset = st.conv + ((uint64_t)s.head * st.blocks + block) * KEYS * MT_DELTA_COLUMNS + lane;
    s.there = column < st.value_dim;
    return s;
}

static __device__ inline void copy_floats(void *to, const float *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}

static __device__ inline void copy_float(void *to, const float *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}

static __device__ inline void copies_end(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int N> static __device__ inline void copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Begins to copy token t of a strip, if there is one; those of a memo come first. */
template <int N>
static __device__ inline void fetch_token(const mt_cuda_recurrent &p, const strip &s, token (&ring)[N], uint32_t t,
                                          bool q, bool kv)
{
    if (t >= s.tokens)
        return;
    const bool old = t < s.span.replay;
    const uint32_t lane = threadIdx.x % 32, row = s.span.row + t - s.span.replay;
    const float *x = old ? memo_of(p, s.span, t) + p.st.columns : row_of(p.x, row);
    const float *gates = old ? x + p.st.columns : row_of(p.gates, row);
    token *to = &ring[t % N];
    if (q)
        copy_floats(to->q + lane * 4, x + s.key + lane * 4);
    if (!kv)
        return;
    copy_floats(to->k + lane * 4, x + s.keys + s.key + lane * 4);
    if (s.there)
        copy_float(to->v + lane, x + s.value + lane);
    if (lane < 2)
        copy_float(lane ? &to->beta : &to->decay, gates + lane * p.st.value_heads + s.head);
}

static __device__ inline void load_state(const mt_cuda_recurrent &p, const strip &s, float (&state)[KEYS])
{
    const bool none = s.span.state == MT_CUDA_NONE;
    const float *from = none ? NULL : slot_of(p, s.span.state) + s.offset;
#pragma unroll
    for (int i = 0; i < KEYS; i++)
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

template <bool OUT, bool NEXT>
static __device__ inline void read_octet(octet &x, const token *now, const token *next, int at)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        x.k[i] = *(const float4 *)(now->k + at + i * 4);
        if (OUT)
            x.q[i] = *(const float4 *)(now->q + at + i * 4);
        if (NEXT)
            x.n[i] = *(const float4 *)(next->k + at + i * 4);
    }
    x.decay = now->decay;
}

/* One token: the state takes d in; o and the next token's m, where they are wanted.

   A warp issues in order, and the compiler would have all products first and then the chain of additions, which leaves
   three of four cycles empty. So the places that are read depend on how far the chain is: `zero` is 0, which the
   compiler does not know. */
template <bool OUT, bool NEXT>
static __device__ inline void advance_state(float (&state)[KEYS], const token *now, const token *next, float d,
                                            unsigned zero, float &o, float &m)
{
    enum { AHEAD = 3 };
    octet ahead[AHEAD];
#pragma unroll
    for (int g = 0; g < AHEAD; g++)
        read_octet<OUT, NEXT>(ahead[g], now, next, g * 8);
    o = m = 0;
#pragma unroll
    for (int g = 0; g < KEYS / 8; g++) {
        const octet &x = ahead[g % AHEAD];
#pragma unroll
        for (int j = 0; j < 8; j++) {
            float &s = state[g * 8 + j];
            s = fmaf((&x.k[j / 4].x)[j % 4], d, x.decay * s);
            if (OUT)
                o = fmaf(s, (&x.q[j / 4].x)[j % 4], o);
            if (NEXT)
                m = fmaf(s, (&x.n[j / 4].x)[j % 4], m);
        }
        if (g + AHEAD < KEYS / 8) {
            const unsigned nothing = mt_f32_bits(NEXT ? m : o) & zero;
            read_octet<OUT, NEXT>(ahead[g % AHEAD], (const token *)((const char *)now + nothing),
                                  (const token *)((const char *)next + nothing), (g + AHEAD) * 8);
        }
    }
}

static __device__ inline float change_of(const token &t, float m)
{
    return t.beta * fmaf(-t.decay, m, t.v[threadIdx.x % 32]);
}

/* Answers: a warp. */
extern "C" __global__ void __launch_bounds__(32) mtk_delta_few(mt_cuda_recurrent p)
{
    enum { AHEAD = 4 };
    __shared__ __align__(16) token ring[RING_FEW];
    const strip s = find_strip(p);
    const unsigned zero = p.step.spans >> 31; /* there are not so many */
    float state[KEYS], m, o;
    for (uint32_t t = 0; t < AHEAD; t++) {
        fetch_token(p, s, ring, t, true, true);
        copies_end();
    }
    load_state(p, s, state);
    copies_wait<AHEAD - 1>();
    __syncwarp();
    keeping k = first_piece(p, s);
    if (s.span.replay == 0)
        keep_state(p, s, k, state);
    m = recall(state, ring[0].k);
    for (uint32_t t = 0; t < s.tokens; t++) {
        fetch_token(p, s, ring, t + AHEAD, true, true);
        copies_end();
        copies_wait<AHEAD - 1>(); /* t + 1 is there */
        __syncwarp();
        const token &now = ring[t % RING_FEW];
        advance_state<true, true>(state, &now, &ring[(t + 1) % RING_FEW], change_of(now, m), zero, o, m);
        give_row(p, s, k, t, state, o);
    }
}

/* Prompts: two warps. In round c the first takes chunk c, the second the one before it. */
extern "C" __global__ void __launch_bounds__(64) mtk_delta_many(mt_cuda_recurrent p)
{
    __shared__ __align__(16) token ring[RING];
    __shared__ float change[2][CHUNK][MT_DELTA_COLUMNS];
    const strip s = find_strip(p);
    const uint32_t lane = threadIdx.x % 32, rounds = (s.tokens + CHUNK - 1) / CHUNK + 1;
    const bool first = threadIdx.x < 32;
    const unsigned zero = p.step.spans >> 31;
    float state[KEYS], m = 0, o;
    for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t t = c * CHUNK; t < (c + 1) * CHUNK; t++)
            fetch_token(p, s, ring, t, !first, first);
        copies_end();
    }
    load_state(p, s, state);
    keeping k = first_piece(p, s);
    if (!first && s.span.replay == 0)
        keep_state(p, s, k, state);
    for (uint32_t c = 0; c < rounds; c++) {
        copies_wait<1>(); /* of chunks up to c + 1: the first warp looks a token ahead */
        __syncthreads();
        for (uint32_t t = (c + 3) * CHUNK; t < (c + 4) * CHUNK; t++)
            fetch_token(p, s, ring, t, !first, first);
        copies_end();
        if (first) {
            if (c == 0)
                m = recall(state, ring[0].k);
            for (uint32_t t = c * CHUNK; t < (c + 1) * CHUNK && t < s.tokens; t++) {
                const token &now = ring[t % RING];
                const float d = change_of(now, m);
                change[c % 2][t % CHUNK][lane] = d;
                advance_state<false, true>(state, &now, &ring[(t + 1) % RING], d, zero, o, m);
            }
        } else if (c > 0) {
            for (uint32_t t = (c - 1) * CHUNK; t < c * CHUNK && t < s.tokens; t++) {
                advance_state<true, false>(state, &ring[t % RING], NULL, change[(c - 1) % 2][t % CHUNK][lane], zero, o,
                                           m);
                give_row(p, s, k, t, state, o);
            }
        }
    }
}
