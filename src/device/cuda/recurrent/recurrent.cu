/* GatedDeltaNet: the convolution, the gates, the recurrence for heads of any size, and what is stored of guesses
   (memos). Where heads have no keys, the convolution is all there is. */
#include "device/cuda/products/product.cuh"
#include "device/cuda/recurrent/recurrent.cuh"

#define LENGTH_EPS 1e-6f

/* A block a row. */
KERNEL(conv)(mt_cuda_recurrent p)
{
    follow_last();
    const mt_cuda_span &span = p.step.span[p.step.span_of[blockIdx.x]];
    const int row = (int)(blockIdx.x - span.row), taps = (int)p.st.taps;
    float *y = row_of(p.y, blockIdx.x);
    for (uint32_t c = threadIdx.x; c < p.st.columns; c += blockDim.x) {
        float a = p.w.data[c] * input(p, span, row - (taps - 1), c);
        for (int j = 1; j < taps; j++)
            a = fmaf(p.w.data[j * p.w.stride + c], input(p, span, row + j - (taps - 1), c), a);
        y[c] = p.st.key_dim ? mt_silu1(a) : a;
    }
    __syncthreads();
    const uint32_t n = p.st.key_dim, heads = n ? 2 * p.st.key_heads : 0;
    for (uint32_t base = 0; base < heads; base += blockDim.x / 16) {
        const uint32_t h = base + threadIdx.x / 16;
        float *x = y + (h < heads ? h : 0) * n;
        const float length = sqrtf(dot16(x, x, n) + LENGTH_EPS);
        const float scale = (h < p.st.key_heads ? 1 / sqrtf((float)n) : 1) / length;
        __syncthreads(); /* threads without a head of their own have read the first one */
        for (uint32_t i = threadIdx.x % 16; h < heads && i < n; i += 16)
            x[i] = scale * x[i];
        __syncthreads();
    }
}

/* The same for heads that 256 columns are whole ones of: a block has p.m rows of 256 columns: one of few, which are
   of spans of their own, or eight, so that an input is read from memory once for all taps. */
enum { CONV_ROWS = 8, CONV_TAPS = 4, CONV_COLUMNS = 256 };

/* Rows [row, row + CONV_ROWS) and those before them that their taps reach are rows of one span. */
static __device__ inline bool within_span(const mt_cuda_recurrent &p, uint32_t row)
{
    const uint32_t span = p.step.span_of[row];
    return p.st.taps == CONV_TAPS && row + CONV_ROWS <= p.step.rows && p.step.span_of[row + CONV_ROWS - 1] == span &&
           row - p.step.span[span].row >= CONV_TAPS - 1;
}

static __device__ inline float conv_row(const mt_cuda_recurrent &p, uint32_t row, uint32_t c)
{
    const mt_cuda_span &span = p.step.span[p.step.span_of[row]];
    const int local = (int)(row - span.row), taps = (int)p.st.taps;
    if (taps == CONV_TAPS) { /* all is read before anything waits for it */
        float x[CONV_TAPS], w[CONV_TAPS];
#pragma unroll
        for (int j = 0; j < CONV_TAPS; j++) {
            x[j] = input(p, span, local + j - (CONV_TAPS - 1), c);
            w[j] = p.w.data[j * p.w.stride + c];
        }
        float a = w[0] * x[0];
#pragma unroll
        for (int j = 1; j < CONV_TAPS; j++)
            a = fmaf(w[j], x[j], a);
        return a;
    }
    float a = p.w.data[c] * input(p, span, local - (taps - 1), c);
    for (int j = 1; j < taps; j++)
        a = fmaf(p.w.data[j * p.w.stride + c], input(p, span, local + j - (taps - 1), c), a);
    return a;
}

KERNEL(conv_heads)(mt_cuda_recurrent p)
{
    __shared__ float y[CONV_ROWS][CONV_COLUMNS];
    follow_last();
    const uint32_t keys = p.st.key_heads * p.st.key_dim, c = blockIdx.x * CONV_COLUMNS + threadIdx.x;
    const uint32_t first = blockIdx.y * p.m, rows = min(p.step.rows - first, p.m);
    float a[CONV_ROWS];
    if (p.m == CONV_ROWS && within_span(p, first)) {
        const uint32_t i = c < keys ? 0 : c < 2 * keys ? 1 : 2;
        const section s = section_of(p.st, i);
        const mt_cuda_cols &in = p.in[i];
        const float *x = columns_of(in, first, (c - s.first) / s.width) + (c - s.first) % s.width;
        float w[CONV_TAPS], before[CONV_ROWS + CONV_TAPS - 1];
#pragma unroll
        for (int j = 0; j < CONV_TAPS; j++)
            w[j] = p.w.data[j * p.w.stride + c];
#pragma unroll
        for (int j = 0; j < CONV_ROWS + CONV_TAPS - 1; j++)
            before[j] = x[(int64_t)(j - (CONV_TAPS - 1)) * (int64_t)in.x.stride];
#pragma unroll
        for (int r = 0; r < CONV_ROWS; r++) {
            a[r] = w[0] * before[r];
#pragma unroll
            for (int j = 1; j < CONV_TAPS; j++)
                a[r] = fmaf(w[j], before[r + j], a[r]);
        }
    } else {
#pragma unroll
        for (int r = 0; r < CONV_ROWS; r++)
            a[r] = (uint32_t)r < rows ? conv_row(p, first + r, c) : 0.0f;
    }
    if (blockIdx.x * CONV_COLUMNS >= 2 * keys) { /* values have no length */
#pragma unroll
        for (int r = 0; r < CONV_ROWS; r++)
            if ((uint32_t)r < rows)
                row_of(p.y, first + r)[c] = mt_silu1(a[r]);
        return;
    }
#pragma unroll
    for (int r = 0; r < CONV_ROWS; r++)
        if ((uint32_t)r < rows)
            y[r][threadIdx.x] = mt_silu1(a[r]);
    __syncthreads();
    const uint32_t n = p.st.key_dim, heads = CONV_COLUMNS / n, all = (rows * heads + 1) / 2 * 2; /* whole warps come */
    for (uint32_t i = threadIdx.x / 16; i < all; i += blockDim.x / 16) {
        const uint32_t r = i / heads, h = i % heads, head = blockIdx.x * heads + h;
        const float *x = &y[r][h * n];
        const float length = sqrtf(dot16(x, x, n) + LENGTH_EPS);
        const float scale = (head < p.st.key_heads ? 1 / sqrtf((float)n) : 1) / length;
        for (uint32_t d = threadIdx.x % 16; r < rows && d < n; d += 16)
            row_of(p.y, first + r)[head * n + d] = scale * x[d];
    }
}

/* The last inputs of each piece of a span, oldest first: in place they only move forward. A block a span and some
   columns. */
KERNEL(conv_keep)(mt_cuda_recurrent p)
{
    follow_last();
    const mt_cuda_span &span = p.step.span[blockIdx.x];
    const int kept = (int)p.st.taps - 1;
    for (uint32_t c = blockIdx.y * blockDim.x + threadIdx.x; c < p.st.columns; c += gridDim.y * blockDim.x) {
        int end = 0;
        for (uint32_t i = 0; i < span.pieces; i++) {
            const mt_cuda_piece piece = p.step.piece[span.piece + i];
            end += (int)piece.rows;
            for (int j = 0; j < kept; j++)
                slot_of(p, piece.slot)[(uint64_t)j * p.st.columns + c] = input(p, span, end + j - kept, c);
        }
    }
}

static __device__ inline float decay_of(float t, float rate)
{
    return mt_exp1(softplus1(t) * -rate);
}

KERNEL(gates)(mt_cuda_recurrent p) /* in: a, b; w: bias */
{
    follow_last();
    const uint32_t n = p.rate.cols, share = n / p.key_heads;
    float *decay = row_of(p.y, blockIdx.x), *beta = decay + n;
    for (uint32_t h = threadIdx.x; h < n; h += blockDim.x) {
        decay[h] = decay_of(columns_of(p.in[0], blockIdx.x, h / share)[h % share] + p.w.data[h], p.rate.data[h]);
        beta[h] = mt_sigmoid1(columns_of(p.in[1], blockIdx.x, h / share)[h % share]);
    }
}

/* ---- few rows: all of this as one kernel ---- */

/* 256 columns of a span, a column a thread: what its taps reach back to is read before the kernel before has ended, as
   no kernel of this step writes it, and stays in registers; so what is kept can be written in place. */
static __device__ inline void mix_span(const mt_cuda_recurrent &p, uint32_t item)
{
    __shared__ float y[CONV_COLUMNS];
    const uint32_t blocks = p.st.columns / CONV_COLUMNS, first = item % blocks * CONV_COLUMNS, c = first + threadIdx.x;
    const mt_cuda_span span = p.step.span[item / blocks];
    const uint32_t n = p.st.key_dim, heads = CONV_COLUMNS / n;
    const bool values = first >= 2 * p.st.key_heads * n; /* which have no length */
    float w[CONV_TAPS], x[CONV_TAPS];
#pragma unroll
    for (int j = 0; j < CONV_TAPS; j++)
        w[j] = p.w.data[j * p.w.stride + c];
#pragma unroll
    for (int j = 1; j < CONV_TAPS; j++)
        x[j] = input(p, span, j - CONV_TAPS, c);
    uint32_t piece = 0, left = span.pieces ? p.step.piece[span.piece].rows : UINT32_MAX;
    wait_for_last();
    for (uint32_t row = 0;; row++) {
        for (; left == 0; piece++, left = piece < span.pieces ? p.step.piece[span.piece + piece].rows : UINT32_MAX) {
            float *to = slot_of(p, p.step.piece[span.piece + piece].slot) + c;
#pragma unroll
            for (int j = 1; j < CONV_TAPS; j++)
                to[(uint64_t)(j - 1) * p.st.columns] = x[j];
        }
        if (row == span.rows)
            return;
        left--;
#pragma unroll
        for (int j = 1; j < CONV_TAPS; j++)
            x[j - 1] = x[j];
        x[CONV_TAPS - 1] = input(p, span, (int)row, c);
        float a = w[0] * x[0];
#pragma unroll
        for (int j = 1; j < CONV_TAPS; j++)
            a = fmaf(w[j], x[j], a);
        a = mt_silu1(a);
        if (values) {
            row_of(p.y, span.row + row)[c] = a;
            continue;
        }
        y[threadIdx.x] = a;
        __syncthreads();
        for (uint32_t h = threadIdx.x / 16; h < (heads + 1) / 2 * 2; h += blockDim.x / 16) {
            const uint32_t head = first / n + h;
            const float *own = y + h % heads * n;
            const float length = sqrtf(dot16(own, own, n) + LENGTH_EPS);
            const float scale = (head < p.st.key_heads ? 1 / sqrtf((float)n) : 1) / length;
            for (uint32_t d = threadIdx.x % 16; h < heads && d < n; d += 16)
                row_of(p.y, span.row + row)[head * n + d] = scale * own[d];
        }
        __syncthreads();
    }
}

/* Gates of some heads and rows: a warp has a head and a row, half of it a, the other b. */
static __device__ inline void mix_gates(const mt_cuda_mix &p, uint32_t item, uint32_t m)
{
    extern __shared__ __align__(16) uint8_t mix_memory[];
    const uint32_t heads = p.conv.rate.cols, share = heads / p.conv.key_heads, k = p.w[0].k;
    const uint32_t groups = (heads + MT_CUDA_MIX_HEADS - 1) / MT_CUDA_MIX_HEADS;
    const uint32_t first = item % groups * MT_CUDA_MIX_HEADS, first_row = item / groups * MT_CUDA_MIX_ROWS;
    const uint32_t pair = p.w[0].pairs == MT_SCALE_F32 ? 8 : 4, apart = k / 8 * p.bits + MT_CUDA_CODES_APART;
    uint8_t *codes = mix_memory + p.rows * k * 4, *pairs = codes + 2 * MT_CUDA_MIX_HEADS * apart;
#pragma unroll
    for (uint32_t j = 0; j < 2 * MT_CUDA_MIX_HEADS; j++) {
        const uint32_t h = min(first + j / 2, heads - 1),
                       n = p.in[j % 2].base + h / share * p.in[j % 2].step + h % share;
        fetch_codes(p.w[j % 2], n, p.bits, codes + j * apart, pairs + j * p.w[0].groups * pair);
    }
    wait_for_last();
    for (uint32_t i = threadIdx.x; i < p.rows * (k / 4); i += blockDim.x) {
        const uint32_t row = first_row + i / (k / 4);
        if (row < m)
            copy_16(shared_address(mix_memory + i * 16), row_of(p.conv.x, row) + i % (k / 4) * 4);
    }
    copy_commit();
    copy_wait<0>();
    __syncthreads();
    const uint32_t warp = threadIdx.x / 32, which = threadIdx.x % 32 / 16, h = first + warp % MT_CUDA_MIX_HEADS;
    const uint32_t r = warp / MT_CUDA_MIX_HEADS, j = warp % MT_CUDA_MIX_HEADS * 2 + which;
    if (h >= heads || first_row + r >= m)
        return;
    const mt_cuda_weight &w = p.w[which];
    float y = dot_codes<false>(w, (const float *)mix_memory + r * k, codes + j * apart, pairs + j * w.groups * pair);
    if (threadIdx.x % 16)
        return;
    const uint32_t n = p.in[which].base + h / share * p.in[which].step + h % share;
    y = w.bias ? y + w.bias[n] : y;
    row_of(p.in[which].x, first_row + r)[n] = y;
    row_of(p.conv.gates, first_row + r)[which * heads + h] =
        which ? mt_sigmoid1(y) : decay_of(y + p.bias.data[h], p.conv.rate.data[h]);
}

/* Blocks that make gates first, as they take longer; then those of the convolution. */
extern "C" __global__ void __launch_bounds__(CONV_COLUMNS) mtk_mix(const __grid_constant__ mt_cuda_mix p)
{
    const uint32_t heads = (p.conv.rate.cols + MT_CUDA_MIX_HEADS - 1) / MT_CUDA_MIX_HEADS;
    const uint32_t gates = heads * ((p.conv.m + MT_CUDA_MIX_ROWS - 1) / MT_CUDA_MIX_ROWS);
    start_next();
    if (blockIdx.x < gates)
        mix_gates(p, blockIdx.x, p.conv.m);
    else
        mix_span(p.conv, blockIdx.x - gates);
}

/* One token: every thread has a column of the state, [key_dim] of them in shared memory. */
static __device__ inline float advance(float *state, uint32_t dk, const float *q, const float *k, float v, float decay,
                                       float beta)
{
    float m = 0, o = 0;
    for (uint32_t i = 0; i < dk; i++)
        m = fmaf(state[i * MT_DELTA_COLUMNS], k[i], m);
    m = beta * fmaf(-decay, m, v);
    for (uint32_t i = 0; i < dk; i++) {
        const float s = fmaf(k[i], m, decay * state[i * MT_DELTA_COLUMNS]);
        state[i * MT_DELTA_COLUMNS] = s;
        o = fmaf(s, q[i], o);
    }
    return o;
}

/* A warp a span, head and 32 columns. */
KERNEL(delta)(mt_cuda_recurrent p)
{
    extern __shared__ float shared[];
    follow_last();
    const mt_cuda_states &st = p.st;
    const mt_cuda_span &span = p.step.span[blockIdx.z];
    const uint32_t head = blockIdx.y, block = blockIdx.x, lane = threadIdx.x, dk = st.key_dim;
    const uint32_t keys = st.key_heads * dk, key = head / (st.value_heads / st.key_heads) * dk;
    const uint32_t column = block * MT_DELTA_COLUMNS + lane, value = 2 * keys + head * st.value_dim + column;
    const uint64_t offset = st.conv + ((uint64_t)head * st.blocks + block) * dk * MT_DELTA_COLUMNS + lane;
    const bool there = column < st.value_dim;
    float *state = shared + lane;
    for (uint32_t i = 0; i < dk; i++)
        state[i * MT_DELTA_COLUMNS] =
            span.state == MT_CUDA_NONE ? 0.0f : slot_of(p, span.state)[offset + (uint64_t)i * MT_DELTA_COLUMNS];
    for (uint32_t t = 0; there && t < span.replay; t++) {
        const float *memo = memo_of(p, span, t) + st.columns, *gates = memo + st.columns;
        advance(state, dk, memo + key, memo + keys + key, memo[value], gates[head], gates[st.value_heads + head]);
    }
    uint32_t row = span.row;
    for (uint32_t i = 0; i < span.pieces + (span.guesses > 0); i++) {
        const bool guessed = i == span.pieces;
        const uint32_t rows = guessed ? span.guesses : p.step.piece[span.piece + i].rows;
        for (uint32_t t = 0; there && t < rows; t++, row++) {
            const float *x = row_of(p.x, row), *gates = row_of(p.gates, row);
            row_of(p.y, row)[head * st.value_dim + column] =
                advance(state, dk, x + key, x + keys + key, x[value], gates[head], gates[st.value_heads + head]);
        }
        for (uint32_t d = 0; !guessed && d < dk; d++)
            slot_of(p, p.step.piece[span.piece + i].slot)[offset + (uint64_t)d * MT_DELTA_COLUMNS] =
                there ? state[d * MT_DELTA_COLUMNS] : 0.0f;
    }
}

KERNEL(remember)(mt_cuda_recurrent p)
{
    follow_last();
    const mt_cuda_span &span = p.step.span[blockIdx.x];
    for (uint32_t r = 0; r < span.guesses; r++) {
        float *to = memo_of(p, span, r);
        const uint32_t local = span.rows - span.guesses + r, row = span.row + local;
        for (uint32_t c = threadIdx.x; c < p.st.columns; c += blockDim.x) {
            to[c] = input(p, span, (int)local, c);
            to[p.st.columns + c] = row_of(p.x, row)[c];
        }
        for (uint32_t h = threadIdx.x; h < 2 * p.st.value_heads; h += blockDim.x)
            to[2 * p.st.columns + h] = row_of(p.gates, row)[h];
    }
}

/* in: z; half a warp a head, 16 heads a block */
KERNEL(gated_norm)(mt_cuda_recurrent p)
{
    follow_last();
    const uint32_t n = p.w.cols, heads = p.y.cols / n, width = p.y.cols / p.key_heads;
    const uint32_t h = blockIdx.y * (blockDim.x / 16) + threadIdx.x / 16, count = h < heads ? n : 0;
    float *y = row_of(p.y, blockIdx.x) + h * n;
    const float r = 1.0f / sqrtf(dot16(y, y, count) / (float)n + p.eps);
    for (uint32_t i = threadIdx.x % 16; i < count; i += 16) {
        const uint32_t c = h * n + i;
        const float x = (y[i] * r) * (0.0f + p.w.data[i]);
        y[i] = mt_silu1(columns_of(p.in[0], blockIdx.x, c / width)[c % width]) * x;
    }
}
