/* Attention over keys and values in 8 and 4 bits (docs/numerics.md), on tensor cores for int8: the CPU's bits, for
   every sum is an exact integer.

   A block takes 16 rows of a tile and a segment after the other. Each of eight warps multiplies 32 keys; half a warp
   has a row's softmax, its sixteen threads being R6's lanes; then each warp has an eighth of the channels. A row's
   weights are 16 bits and are multiplied as two bytes. The order of integers within a block of kvq.h is that of the
   operands: a thread reads 8 neighbouring bytes of a key's channels or of a channel's positions. */
#include "device/cuda/attention/attention.cuh"
#include "device/cuda/attention/kvq.cuh"
#include "device/cuda/common/mma.cuh"

enum { Q_ROWS = 16, Q_WARPS = 8, S_STRIDE = MT_SEGMENT + 4, U_STRIDE = MT_SEGMENT + 16 };

/* c += a b': 16 rows, 8 columns, 32 of a sum; the weights of values have no sign. */
static __device__ inline void product_keys(int (&c)[4], uint2 low, uint2 high, uint32_t b0, uint32_t b1)
{
    const unsigned a[4] = {low.x, high.x, low.y, high.y};
    mma_s8_s8_ordered(c, a, b0, b1);
}

static __device__ inline void product_weights(int (&c)[4], uint2 low, uint2 high, uint32_t b0, uint32_t b1)
{
    const unsigned a[4] = {low.x, high.x, low.y, high.y};
    mma_u8_s8_ordered(c, a, b0, b1);
}

typedef struct q_room {
    int8_t *q;                    /* [16][stride + 16] */
    float *o, *acc;               /* [16][stride] */
    float *s;                     /* [16][S_STRIDE] */
    uint8_t *high, *low;          /* [16][U_STRIDE]: of a weight's two bytes */
    float *qd, *unit, *old, *now; /* [16] */
    range *seen;                  /* [16] */
    float *kd, *vd;               /* [MT_SEGMENT]: scales of keys and values */
    const uint8_t **page;         /* [MT_SEGMENT / 32]: where the head's keys are, every 32 positions */
} q_room;

static __device__ inline q_room carve_q(uint8_t *at, uint32_t stride)
{
    q_room r;
    r.q = (int8_t *)at;
    r.o = (float *)(at + Q_ROWS * (stride + 16));
    r.acc = r.o + Q_ROWS * stride;
    r.s = r.acc + Q_ROWS * stride;
    r.high = (uint8_t *)(r.s + Q_ROWS * S_STRIDE);
    r.low = r.high + Q_ROWS * U_STRIDE;
    r.qd = (float *)(r.low + Q_ROWS * U_STRIDE);
    r.unit = r.qd + Q_ROWS;
    r.old = r.unit + Q_ROWS;
    r.now = r.old + Q_ROWS;
    r.seen = (range *)(r.now + Q_ROWS);
    r.kd = (float *)(r.seen + Q_ROWS);
    r.vd = r.kd + MT_SEGMENT;
    r.page = (const uint8_t **)(r.vd + MT_SEGMENT);
    return r;
}

/* What a block works on: rows are `heads` of a key head's queries, from head0 on, for each token of a tile. */
typedef struct q_work {
    tile_at at;
    span_at span;
    tile_range seen;
    const uint32_t *pages;
    uint32_t kv_head, group, head0, heads, rows;
} q_work;

static __device__ inline uint32_t head_of(const q_work &w, uint32_t row)
{
    return w.head0 + row % w.heads; /* of its group */
}

/* Queries, turned and as int8, a warp a row; o is the room for it. */
static __device__ inline void load_integers(const mt_cuda_attention &p, const q_work &w, const q_room &room)
{
    const uint32_t stride = p.kv.head_stride, lane = threadIdx.x % 32, hd = p.kv.head_dim;
    for (uint32_t r = threadIdx.x / 32; r < Q_ROWS; r += Q_WARPS) {
        const bool there = r < w.rows;
        const uint32_t token = w.at.token + (there ? r / w.heads : 0);
        const float *x = row_of(p.x, w.span.row + token) + (w.kv_head * w.group + (there ? head_of(w, r) : 0)) * hd;
        float *y = room.o + r * stride;
        const float most = turned_from(y, x, hd, stride, 1.0f / (float)mt_kvq_turned(stride));
        const float factor = finite_or_zero(127.0f / most);
        for (uint32_t i = lane; i < stride; i += 32) {
            room.q[r * (stride + 16) + i] = there ? (int8_t)integer_of(y[i] * factor, 127.0f) : 0;
            room.acc[r * stride + i] = 0;
        }
        if (lane == 0) {
            range none;
            none.lo = none.hi = 0;
            room.qd[r] = most / 127.0f;
            room.seen[r] = there ? seen_by(p, w.at, token) : none;
        }
    }
}

/* Where the head's keys of 32 positions lie, thread i the i-th of a segment; of none that are not seen. */
static __device__ inline const uint8_t *find_page(const mt_cuda_attention &p, const q_work &w, uint32_t first)
{
    const uint32_t at = first + threadIdx.x * 32, tokens = p.kv.page_tokens;
    if (threadIdx.x >= MT_SEGMENT / 32 || at >= w.seen.any.hi || at + 32 <= w.seen.any.lo)
        return NULL;
    return p.kv.data + w.pages[at / tokens] * p.kv.page_bytes +
           ((uint64_t)p.layer * 2 * p.kv.heads + w.kv_head) * p.kv.block;
}

/* The scales of a segment's keys and values, a thread each. */
static __device__ inline void load_scales(const mt_cuda_attention &p, const q_work &w, const q_room &room,
                                          uint32_t first)
{
    const uint32_t at = first + threadIdx.x;
    const uint8_t *block = room.page[threadIdx.x / 32];
    if (block == NULL || at < w.seen.any.lo || at >= w.seen.any.hi)
        return;
    const uint32_t slot = at % p.kv.page_tokens;
    room.kd[threadIdx.x] = mt_f32_from_bf16(((const mt_bf16 *)block)[slot]);
    room.vd[threadIdx.x] = mt_f32_from_bf16(((const mt_bf16 *)(block + p.kv.heads * p.kv.block))[slot]);
}

/* s of all rows and this warp's 32 keys, eight at a time. */
template <int BITS>
static __device__ inline void score_integers(const mt_cuda_attention &p, const q_work &w, const q_room &room,
                                             uint32_t first)
{
    const uint32_t stride = p.kv.head_stride, lane = threadIdx.x % 32, warp = threadIdx.x / 32, c = lane % 4,
                   g = lane / 4;
    const uint32_t skip = BITS == 8 ? 8 : 4;
    const uint8_t *block = room.page[warp];
    if (block == NULL)
        return;
    const uint32_t slot = (first + warp * 32) % p.kv.page_tokens;
    const uint8_t *k = block + p.kv.page_tokens * 2 + slot / 8 * stride * BITS +
                       (BITS == 8 ? c * 64 + g * 8 : c / 2 * 64 + g * 8 + c % 2 * 4);
    const int8_t *low = room.q + g * (stride + 16) + c * skip, *high = low + 8 * (stride + 16);
    int dot[4][4] = {{0}};
#pragma unroll 4
    for (uint32_t d = 0; d < stride; d += 32) {
        uint2 b[4];
#pragma unroll
        for (uint32_t j = 0; j < 4; j++) { /* all are read, seen or not: the page is there */
            const uint8_t *from = k + (j * stride + d) * BITS;
            if (BITS == 8) {
                b[j] = *(const uint2 *)from;
            } else {
                const uint32_t both = *(const uint32_t *)from;
                b[j] = make_uint2(both << 4 & 0xf0f0f0f0u, both & 0xf0f0f0f0u);
            }
        }
        uint2 a0, a1;
        if (BITS == 8) {
            a0 = *(const uint2 *)(low + d);
            a1 = *(const uint2 *)(high + d);
        } else {
            a0 = make_uint2(*(const uint32_t *)(low + d), *(const uint32_t *)(low + d + 16));
            a1 = make_uint2(*(const uint32_t *)(high + d), *(const uint32_t *)(high + d + 16));
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; j++)
            product_keys(dot[j], a0, a1, b[j].x, b[j].y);
    }
    const float scale[2] = {room.qd[g] * p.scale, room.qd[g + 8] * p.scale};
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const uint32_t t = warp * 32 + j * 8 + c * 2 + e % 2;
            const float x = (float)dot[j][e] * room.kd[t] * scale[e / 2];
            room.s[(g + e / 2 * 8) * S_STRIDE + t] = p.softcap != 0.0f ? mt_softcap1(x, p.softcap) : x;
        }
}

/* p and its sum, and the weights of values; half a warp a row. Returns m; l. */
static __device__ inline whole weigh_integers(const q_room &room, uint32_t first)
{
    const uint32_t row = threadIdx.x / 16, lane = threadIdx.x % 16;
    const range seen = room.seen[row];
    const float *s = room.s + row * S_STRIDE;
    float x[MT_SEGMENT / MT_LANES], m = -INFINITY, l = 0, top = 0;
#pragma unroll
    for (uint32_t i = 0; i < MT_SEGMENT / MT_LANES; i++) {
        const uint32_t t = i * MT_LANES + lane;
        if (first + t >= seen.lo && first + t < seen.hi)
            m = mt_max1(m, s[t]);
    }
    for (int width = 8; width > 0; width /= 2)
        m = mt_max1(m, __shfl_xor_sync(0xffffffffu, m, width));
#pragma unroll
    for (uint32_t i = 0; i < MT_SEGMENT / MT_LANES; i++) {
        const uint32_t t = i * MT_LANES + lane, at = first + t;
        const bool there = at >= seen.lo && at < seen.hi;
        x[i] = there ? mt_exp1(mt_max1(s[t] - m, MT_KVQ_EXP_MIN)) : 0.0f;
        l += x[i];
        if (there) {
            x[i] *= room.vd[t];
            top = mt_max1(top, x[i]);
        }
    }
    l = fold16(l);
    for (int width = 8; width > 0; width /= 2)
        top = mt_max1(top, __shfl_xor_sync(0xffffffffu, top, width));
    const float factor = finite_or_zero(MT_KVQ_WEIGHT_MAX / top);
#pragma unroll
    for (uint32_t i = 0; i < MT_SEGMENT / MT_LANES; i++) {
        const unsigned u = (unsigned)integer_of(x[i] * factor, MT_KVQ_WEIGHT_MAX);
        room.high[row * U_STRIDE + i * MT_LANES + lane] = (uint8_t)(u >> 8);
        room.low[row * U_STRIDE + i * MT_LANES + lane] = (uint8_t)u;
    }
    if (lane == 0)
        room.unit[row] = top / MT_KVQ_WEIGHT_MAX;
    whole part;
    part.m = m;
    part.l = l;
    return part;
}

/* Eight channels of all rows: o, or acc where they are merged. */
static __device__ inline void keep_channels(const q_room &room, uint32_t stride, uint32_t channel, const int (&high)[4],
                                            const int (&low)[4], bool parts)
{
    const uint32_t lane = threadIdx.x % 32;
    for (int e = 0; e < 4; e++) {
        const uint32_t row = lane / 4 + e / 2 * 8, at = row * stride + channel + lane % 4 * 2 + e % 2;
        const float o = room.unit[row] * (float)((int)((unsigned)high[e] << 8) + low[e]);
        if (parts)
            room.o[at] = o;
        else if (room.now[row] >= 0) /* less than 0: nothing comes */
            room.acc[at] = fmaf(room.acc[at], room.old[row], o * room.now[row]);
    }
}

/* Sums of weights and values: this warp's channels, 16 at a time: of 8 bits neighbours, of 4 bits eight and the eight
   16 after them. */
template <int BITS>
static __device__ inline void sum_values(const mt_cuda_attention &p, const q_room &room, uint32_t first, bool parts)
{
    const uint32_t stride = p.kv.head_stride, lane = threadIdx.x % 32, warp = threadIdx.x / 32, c = lane % 4,
                   g = lane / 4;
    const uint32_t tokens = p.kv.page_tokens;
    for (uint32_t pair = warp; pair < stride / 16; pair += Q_WARPS) {
        int high[2][4] = {{0}}, low[2][4] = {{0}};
        uint2 b[MT_SEGMENT / 32][2];
#pragma unroll
        for (uint32_t i = 0; i < MT_SEGMENT / 32; i++) {
            const uint8_t *block = room.page[i];
            const uint32_t slot = (first + i * 32) % tokens;
            const uint8_t *v = block + p.kv.heads * p.kv.block + tokens * 2 + pair / 2 * 4 * BITS * tokens +
                               (slot / 8 + c) * 32 * BITS + pair % 2 * (BITS * 16) + g * 8;
            b[i][0] = b[i][1] = make_uint2(0, 0);
            if (block)
                b[i][0] = *(const uint2 *)v;
            if (block && BITS == 8)
                b[i][1] = *(const uint2 *)(v + 64);
        }
#pragma unroll
        for (uint32_t i = 0; i < MT_SEGMENT / 32; i++) {
            const uint32_t t = i * 32 + c * 8;
            uint2 b0 = b[i][0], b1 = b[i][1];
            if (BITS == 4) {
                b1 = make_uint2(b0.x & 0xf0f0f0f0u, b0.y & 0xf0f0f0f0u);
                b0 = make_uint2(b0.x << 4 & 0xf0f0f0f0u, b0.y << 4 & 0xf0f0f0f0u);
            }
            const uint2 h0 = *(const uint2 *)(room.high + g * U_STRIDE + t);
            const uint2 h1 = *(const uint2 *)(room.high + (g + 8) * U_STRIDE + t);
            const uint2 l0 = *(const uint2 *)(room.low + g * U_STRIDE + t);
            const uint2 l1 = *(const uint2 *)(room.low + (g + 8) * U_STRIDE + t);
            product_weights(high[0], h0, h1, b0.x, b0.y);
            product_weights(low[0], l0, l1, b0.x, b0.y);
            product_weights(high[1], h0, h1, b1.x, b1.y);
            product_weights(low[1], l0, l1, b1.x, b1.y);
        }
        const uint32_t channel = pair / 2 * 32 + pair % 2 * (BITS == 8 ? 16 : 8);
        keep_channels(room, stride, channel, high[0], low[0], parts);
        keep_channels(room, stride, channel + (BITS == 8 ? 8 : 16), high[1], low[1], parts);
    }
}

/* The whole of a row: the sink, turned back, divided; a warp. */
static __device__ inline void finish_integers(const mt_cuda_attention &p, float *acc, whole sum, uint32_t row,
                                              uint32_t head)
{
    const uint32_t stride = p.kv.head_stride, hd = p.kv.head_dim;
    const float old = take_sink(sum, p.sinks, head);
    for (uint32_t i = threadIdx.x % 32; p.sinks && i < stride; i += 32)
        acc[i] = fmaf(acc[i], old, 0.0f);
    __syncwarp();
    turn_vector(acc, stride, true);
    for (uint32_t i = threadIdx.x % 32; i < hd; i += 32)
        row_of(p.y, row)[head * hd + i] = 1.0f / sum.l * acc[i];
}

static __device__ inline q_work find_work(const mt_cuda_attention &p)
{
    q_work w;
    w.group = p.heads / p.kv.heads;
    const uint32_t pieces = (w.group + Q_ROWS - 1) / Q_ROWS;
    w.kv_head = blockIdx.y / pieces;
    w.head0 = blockIdx.y % pieces * Q_ROWS;
    w.heads = min(w.group - w.head0, (uint32_t)Q_ROWS);
    w.at = find_tile(p, blockIdx.x);
    w.span = w.at.span;
    w.seen = tile_seen(p, w.at);
    w.pages = p.step.pages + w.span.pages;
    w.rows = w.at.tokens * w.heads;
    return w;
}

/* grid: (tiles, key heads times pieces of their groups, shares) */
template <int BITS> static __device__ inline void attend_integers(const mt_cuda_attention &p)
{
    extern __shared__ __align__(16) uint8_t raw[];
    const uint32_t stride = p.kv.head_stride;
    const q_room room = carve_q(raw, stride);
    const q_work w = find_work(p);
    const uint32_t shares = shares_of(p, w.at, w.seen), n = segments_of(w.seen), from = w.seen.any.lo / MT_SEGMENT;
    const uint32_t row = threadIdx.x / 16, token = row / w.heads;
    const bool parts = shares > 1;
    if (blockIdx.z >= shares)
        return;
    load_integers(p, w, room);
    __syncthreads();
    whole sum = {-INFINITY, 0}; /* of row threadIdx.x / 16 */
    const uint32_t seg0 = from + n * blockIdx.z / shares, seg1 = from + n * (blockIdx.z + 1) / shares;
    const uint8_t *next = find_page(p, w, seg0 * MT_SEGMENT);
    for (uint32_t seg = seg0; seg < seg1; seg++) {
        const uint32_t first = seg * MT_SEGMENT;
        if (threadIdx.x < MT_SEGMENT / 32)
            room.page[threadIdx.x] = next;
        __syncthreads();
        next = seg + 1 < seg1 ? find_page(p, w, first + MT_SEGMENT) : NULL;
        load_scales(p, w, room, first);
        __syncthreads();
        score_integers<BITS>(p, w, room, first);
        __syncthreads();
        const whole part = weigh_integers(room, first);
        float old = 1, now = 0;
        const bool there = take_part(sum, part.m, part.l, old, now);
        if (threadIdx.x % 16 == 0) {
            room.old[row] = old;
            room.now[row] = there ? now : -1.0f;
            if (parts && row < w.rows) {
                float *to = part_at(p, w.at, w.kv_head, seg, token * w.group + head_of(w, row), stride);
                to[0] = part.m;
                to[1] = part.l;
            }
        }
        __syncthreads();
        sum_values<BITS>(p, room, first, parts);
        __syncthreads();
        for (uint32_t i = threadIdx.x; parts && i < w.rows * stride; i += blockDim.x) {
            const uint32_t r = i / stride;
            part_at(p, w.at, w.kv_head, seg, r / w.heads * w.group + head_of(w, r), stride)[4 + i % stride] = room.o[i];
        }
    }
    if (parts)
        return;
    if (threadIdx.x % 16 == 0) {
        room.old[row] = sum.m;
        room.now[row] = sum.l;
    }
    __syncthreads();
    for (uint32_t r = threadIdx.x / 32; r < w.rows; r += Q_WARPS) {
        whole all;
        all.m = room.old[r];
        all.l = room.now[r];
        finish_integers(p, room.acc + r * stride, all, w.span.row + w.at.token + r / w.heads,
                        w.kv_head * w.group + head_of(w, r));
    }
}

KERNEL(attention_q8)(mt_cuda_attention p)
{
    attend_integers<8>(p);
}

KERNEL(attention_q4)(mt_cuda_attention p)
{
    attend_integers<4>(p);
}

/* Parts of one row and head, ascending: a block each, a warp 128 channels. */
KERNEL(attention_merge_q)(mt_cuda_attention p)
{
    extern __shared__ float acc[];
    const uint32_t group = p.heads / p.kv.heads, kv_head = blockIdx.y / group, stride = p.kv.head_stride;
    const tile_at at = find_tile(p, blockIdx.x / p.tile);
    const uint32_t token = blockIdx.x % p.tile, row = token * group + blockIdx.y % group;
    const tile_range all = tile_seen(p, at);
    if (token >= at.tokens || shares_of(p, at, all) == 1)
        return;
    const float *parts = part_at(p, at, kv_head, all.any.lo / MT_SEGMENT, row, stride);
    float4 sum;
    const whole w = merge_columns<16>(p, parts, segments_of(all), threadIdx.x * 4, stride, sum);
    if (threadIdx.x * 4 < stride)
        *(float4 *)(acc + threadIdx.x * 4) = sum;
    __syncthreads();
    if (threadIdx.x < 32)
        finish_integers(p, acc, w, at.span.row + at.token + token, blockIdx.y);
}
