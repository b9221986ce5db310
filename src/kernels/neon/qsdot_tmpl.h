/* Integer matmul over a dot product of four bytes. Included once per level, which defines
   MT_QNAME(name)      the level's name of a kernel
   MT_QDOT(acc, a, b)  acc[l] += a[4l] b[4l] + ... + a[4l+3] b[4l+3], signed
   MT_QNIBBLES         where qnibble_dotprod.c and qmx_dotprod.c can be called

   Packed rows, each a record: q[k to 32]; of each unit the turn of its sum (block.h), all mul before all add; sx of
   each group; the sum of q of each unit; and for a single row the turns once more, as qnibble.h wants them. A single
   row lies in paired order, 16 even and 16 odd; of several rows each 16 elements lie together, 8 even and 8 odd.
   8-bit weights w are taken as w - 128, and 128 times the sum of q is added to the dot product. */
#include "kernels/levels.h"
#include "kernels/neon/qblock.h"
#include "kernels/neon/qload.h"
#include "kernels/neon/qmx.h"
#include "kernels/neon/qnibble.h"
#include "kernels/neon/qquant.h"
#include "kernels/neon/qscale.h"

enum { PANEL = 8, TILE = 4 };

typedef struct layout {
    size_t units, groups, link, each;         /* each: units of a group */
    size_t mul, add, sx, sum, stream, stride; /* byte offsets in a record */
} layout;

typedef struct qrow {
    const int8_t *q;
    const float *mul, *add, *sx, *stream;
    const int32_t *sum;
} qrow;

static layout layout_of(size_t m, size_t k, size_t group)
{
    layout l = {.units = k / mt_unit(group), .groups = k / group, .link = mt_link(group), .mul = (k + 31) / 32 * 32};
    l.each = group / mt_unit(group);
    l.add = l.mul + l.units * sizeof(float);
    l.sx = l.add + l.units * sizeof(float);
    l.sum = l.sx + l.groups * sizeof(float);
    l.stream = l.sum + l.units * sizeof(int32_t);
    l.stride = l.stream + (m == 1 ? mt_nibble_floats(l.units) * sizeof(float) : 0);
    l.stride = (l.stride + 63) / 64 * 64;
    return l;
}

static qrow row_at(const mt_rows *rows, const layout *l, size_t i)
{
    const uint8_t *p = rows->data + i * l->stride;
    return (qrow){.q = (const int8_t *)p,
                  .mul = (const float *)(const void *)(p + l->mul),
                  .add = (const float *)(const void *)(p + l->add),
                  .sx = (const float *)(const void *)(p + l->sx),
                  .stream = (const float *)(const void *)(p + l->stream),
                  .sum = (const int32_t *)(const void *)(p + l->sum)};
}

size_t MT_QNAME(q_rows_bytes)(size_t m, size_t k, size_t group)
{
    return m * layout_of(m, k, group).stride;
}

MT_INLINE void emit_paired(int8_t *at, size_t stride, mt_paired p)
{
    (void)stride;
    vst1q_s8(at, p.even);
    vst1q_s8(at + 16, p.odd);
}

MT_INLINE int8x16_t low_halves(int8x16_t a, int8x16_t b)
{
    return vcombine_s8(vget_low_s8(a), vget_low_s8(b));
}

MT_INLINE int8x16_t high_halves(int8x16_t a, int8x16_t b)
{
    return vcombine_s8(vget_high_s8(a), vget_high_s8(b));
}

MT_INLINE void emit_halves(int8_t *at, size_t stride, mt_paired p)
{
    (void)stride;
    vst1q_s8(at, low_halves(p.even, p.odd));
    vst1q_s8(at + 16, high_halves(p.even, p.odd));
}

void MT_QNAME(q_pack)(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    const layout l = layout_of(rows->m, rows->k, rows->group);
    for (size_t i = i0; i < i1; i++) {
        uint8_t *p = rows->data + i * l.stride;
        const float *from = x + (index ? index[i] : i) * ldx;
        const mt_qsums sums = {.mul = (float *)(void *)(p + l.mul),
                               .add = (float *)(void *)(p + l.add),
                               .sx = (float *)(void *)(p + l.sx),
                               .sum = (int32_t *)(void *)(p + l.sum),
                               .step = 1,
                               .wide = rows->wide};
        if (rows->m > 1) {
            mt_quantise_row(from, rows->k, rows->group, &sums, (int8_t *)p, 32, 0, emit_halves);
            continue;
        }
        mt_quantise_row(from, rows->k, rows->group, &sums, (int8_t *)p, 32, 0, emit_paired);
        mt_nibble_stream((float *)(void *)(p + l.stream), sums.mul, sums.add, l.units);
    }
}

/* Scales and biases of PANEL columns as [group][column], then the panel itself. */
size_t MT_QNAME(q_scratch_bytes)(size_t k)
{
    return (k / 16 + 1) * PANEL * 2 * sizeof(float) + (k + 31) / 32 * 32 * PANEL;
}

MT_INLINE mt_paired load_signed(const uint8_t *p, const uint8_t *high, size_t b, mt_code code, const mt_coder *coder)
{
    mt_paired v = mt_paired_block(p, high, b, code, coder);
    if (code == MT_CODE_8) {
        v.even = veorq_s8(v.even, vreinterpretq_s8_u8(coder->mask));
        v.odd = veorq_s8(v.odd, vreinterpretq_s8_u8(coder->mask));
    }
    return v;
}

/* What becomes of the sums of unit u on four columns */
MT_INLINE float32x4_t turned(int32x4_t sum, const qrow *x, size_t u)
{
    return vfmaq_n_f32(vdupq_n_f32(x->add[u]), vreinterpretq_f32_s32(sum), x->mul[u]);
}

static float32x4_t bias_dot(const float *wb, size_t stride, const float *sx, size_t groups)
{
    float32x4_t b = vdupq_n_f32(0.0f);
    for (size_t g = 0; g < groups; g++)
        b = vfmaq_n_f32(b, vld1q_f32(wb + g * stride), sx[g]);
    return b;
}

/* One row of x against four rows of W. */
typedef struct cursor {
    const uint8_t *p[4], *high[4]; /* high: where the bits beside the stream begin, of split rows */
    const int8_t *q;
} cursor;

/* The sums of the next block, turned; they go on from `sum` */
MT_INLINE float32x4_t next_block(float32x4_t sum, cursor *at, const qrow *x, size_t u, mt_code code,
                                 const mt_coder *coder)
{
    const size_t bytes = 4 * mt_code_bits(code);
    const int8x16_t even = vld1q_s8(at->q), odd = vld1q_s8(at->q + 16);
    int32x4_t acc[4];
    MT_UNROLL
    for (int c = 0; c < 4; c++) {
        const mt_paired w = load_signed(at->p[c], at->high[c], u, code, coder);
        acc[c] = MT_QDOT(MT_QDOT(mt_zero(), w.even, even), w.odd, odd);
        at->p[c] += bytes;
    }
    at->q += 32;
    int32x4_t dot = vpaddq_s32(vpaddq_s32(acc[0], acc[1]), vpaddq_s32(acc[2], acc[3]));
    if (code == MT_CODE_8)
        dot = vaddq_s32(dot, vdupq_n_s32(x->sum[u] * 128));
    return turned(vaddq_s32(vreinterpretq_s32_f32(sum), dot), x, u);
}

/* a = fma(ws, sum, a) for the links of a group whose first unit is u */
MT_INLINE float32x4_t next_group(float32x4_t a, cursor *at, float32x4_t ws, const qrow *x, size_t u, size_t each,
                                 mt_code code, const mt_coder *coder)
{
    const size_t link = each > 1 ? 2 : 1;
    MT_UNROLL
    for (size_t i = u; i < u + each; i += link) {
        float32x4_t sum = next_block(vdupq_n_f32(MT_DOT_START), at, x, i, code, coder);
        if (link > 1)
            sum = next_block(sum, at, x, i + 1, code, coder);
        a = vfmaq_f32(a, ws, sum);
    }
    return a;
}

/* AFFINE with bf16 scales, which are widened on the way */
MT_INLINE float32x4_t one_row_bf16(cursor at, const mt_scale_rows *s, const mt_scale_rows *t, const qrow *x,
                                   size_t groups, size_t each, const mt_mat *w, mt_code code)
{
    const mt_coder coder = mt_coder_of(code, w);
    float32x4_t a = vdupq_n_f32(0.0f), b = vdupq_n_f32(0.0f);
    size_t g = 0;
    for (; g + 4 <= groups; g += 4) {
        mt_f32x4x4 ws = mt_scale_block_bf16(s->row, g), wb = mt_scale_block_bf16(t->row, g);
        MT_UNROLL
        for (size_t i = 0; i < 4; i++) {
            a = next_group(a, &at, ws.v[i], x, (g + i) * each, each, code, &coder);
            b = vfmaq_n_f32(b, wb.v[i], x->sx[g + i]);
        }
    }
    for (; g < groups; g++) {
        a = next_group(a, &at, mt_scale_one(s, g), x, g * each, each, code, &coder);
        b = vfmaq_n_f32(b, mt_scale_one(t, g), x->sx[g]);
    }
    return vaddq_f32(a, b);
}

/* Columns j, j + step, j + 2 step, j + 3 step for n0 <= j < n0 + step */
MT_INLINE void columns_bf16(float *y, const mt_mat *w, size_t n0, size_t step, const qrow *x, size_t groups,
                            size_t each, mt_code code)
{
    for (size_t j = n0; j < n0 + step; j++) {
        cursor at = {.q = x->q};
        mt_scale_rows s = {.type = MT_SCALE_BF16}, t = {.type = MT_SCALE_BF16};
        MT_UNROLL
        for (size_t c = 0; c < 4; c++) {
            at.p[c] = w->w + (j + c * step) * w->stride;
            s.row[c] = w->scales + (j + c * step) * w->scale_stride;
            t.row[c] = w->biases + (j + c * step) * w->scale_stride;
        }
        float32x4_t v = one_row_bf16(at, &s, &t, x, groups, each, w, code);
        vst1q_lane_f32(y + j, v, 0);
        vst1q_lane_f32(y + j + step, v, 1);
        vst1q_lane_f32(y + j + 2 * step, v, 2);
        vst1q_lane_f32(y + j + 3 * step, v, 3);
    }
}

/* Any code and group, scales as [group][4] */
MT_INLINE float32x4_t one_row(cursor at, const float *ws, const qrow *x, size_t groups, const mt_mat *w, mt_code code)
{
    const mt_coder coder = mt_coder_of(code, w);
    const size_t each = w->group / MT_BLOCK;
    float32x4_t a = vdupq_n_f32(0.0f);
    for (size_t g = 0; g < groups; g++)
        a = next_group(a, &at, vld1q_f32(ws + 4 * g), x, g * each, each, code, &coder);
    return a;
}

/* Groups of 16: the lower lanes of an accumulator belong to one group, the upper lanes to the next. */
MT_INLINE float32x4_t one_row_16(cursor at, const float *ws, const qrow *x, size_t groups, const mt_mat *w,
                                 mt_code code)
{
    static const int32_t start[4] = {MT_DOT_BITS, 0, MT_DOT_BITS, 0};
    const mt_coder coder = mt_coder_of(code, w);
    const size_t bytes = 4 * mt_code_bits(code);
    float32x4_t a = vdupq_n_f32(0.0f);
    for (size_t g = 0; g < groups; g += 2) {
        const bool half = code == MT_CODE_TABLE && g + 1 == groups;
        int8x16_t even = vld1q_s8(at.q + 16 * g), odd = vld1q_s8(at.q + 16 * g + 16);
        int32x4_t acc[4];
        MT_UNROLL
        for (int c = 0; c < 4; c++) {
            const uint8_t *p = at.p[c] + g / 2 * bytes;
            const mt_paired v = half ? mt_paired_half(p, &coder) : mt_paired_block(p, at.high[c], g / 2, code, &coder);
            acc[c] = MT_QDOT(MT_QDOT(vld1q_s32(start), v.even, even), v.odd, odd);
        }
        int32x4_t low = vpaddq_s32(acc[0], acc[1]), high = vpaddq_s32(acc[2], acc[3]);
        a = vfmaq_f32(a, vld1q_f32(ws + 4 * g), turned(vuzp1q_s32(low, high), x, g));
        if (g + 1 < groups)
            a = vfmaq_f32(a, vld1q_f32(ws + 4 * g + 4), turned(vuzp2q_s32(low, high), x, g + 1));
    }
    return a;
}

static void store(float *y, float32x4_t v, size_t n)
{
    if (n >= 4) {
        vst1q_f32(y, v);
        return;
    }
    float part[4];
    vst1q_f32(part, v);
    memcpy(y, part, n * sizeof(*y));
}

static float32x4_t four_columns(const mt_mat *w, size_t j, size_t last, const qrow *x, size_t groups, float *scratch)
{
    cursor at = {.q = x->q};
    for (size_t c = 0; c < 4; c++) {
        at.p[c] = w->w + (j + c < last ? j + c : last) * w->stride;
        at.high[c] = at.p[c] + w->k / 2;
    }
    const mt_code code = mt_code_of(w);
    mt_scale_rows s = mt_scale_rows_of(w, w->scales, j, last);
    float *ws = scratch, *wb = scratch + 4 * groups;
    mt_scales_write(ws, 4, &s, 0, groups, false);
    float32x4_t a = vdupq_n_f32(0.0f);
#define ONE_ROW(code) a = w->group == 16 ? one_row_16(at, ws, x, groups, w, code) : one_row(at, ws, x, groups, w, code)
    MT_SWITCH_CODE(code, ONE_ROW)
#undef ONE_ROW
    if (!w->biases)
        return a;
    s = mt_scale_rows_of(w, w->biases, j, last);
    mt_scales_write(wb, 4, &s, 0, groups, false);
    return vaddq_f32(a, bias_dot(wb, 4, x->sx, groups));
}

/* The four columns are a quarter of the range apart, so that each is read as one stream. */
static void matmul_one(float *y, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows, uint8_t *scratch)
{
    const layout l = layout_of(1, rows->k, rows->group);
    const qrow x = row_at(rows, &l, 0);
#if defined(MT_QNIBBLES)
    const mt_nibble_row row = {
        .w = w, .x = x.q, .mul = x.mul, .add = x.add, .stream = x.stream, .sx = x.sx, .groups = l.groups};
    if (mt_q_nibbles_handles_dotprod(w)) {
        mt_q_nibbles_dotprod(y, n0, n1, &row);
        n0 += (n1 - n0) / 4 * 4;
    } else if (w->format == MT_FORMAT_MXFP4) {
        mt_q_mx_dotprod(y, n0, (n1 - n0) / 4, &row, scratch);
        n0 += (n1 - n0) / 4 * 4;
    } else if (mt_q_super_handles_dotprod(w)) {
        mt_q_super_dotprod(y, n0, n1, &row, x.sum, scratch);
        n0 += (n1 - n0) / 4 * 4;
    } else if (mt_q_block_handles_dotprod(w)) {
        mt_q_block_dotprod(y, n0, (n1 - n0) / 4, &row, x.sum, scratch);
        n0 += (n1 - n0) / 4 * 4;
    }
#endif
    const size_t step = (n1 - n0) / 4, rest = n0 + 4 * step;
    const mt_code code = mt_code_of(w);
    const bool bf16 = w->scale_type == MT_SCALE_BF16 && w->biases;
    float *space = (float *)(void *)scratch;
    if (bf16 && code == MT_CODE_4 && w->group == 64)
        columns_bf16(y, w, n0, step, &x, l.groups, 2, MT_CODE_4);
    else if (bf16 && code == MT_CODE_4 && w->group == 128)
        columns_bf16(y, w, n0, step, &x, l.groups, 4, MT_CODE_4);
    else if (bf16 && code == MT_CODE_8 && w->group == 64)
        columns_bf16(y, w, n0, step, &x, l.groups, 2, MT_CODE_8);
    else
        for (size_t j = n0; j < rest; j += 4)
            vst1q_f32(y + j, four_columns(w, j, n1 - 1, &x, l.groups, space));
    if (rest < n1)
        store(y + rest, four_columns(w, rest, n1 - 1, &x, l.groups, space), n1 - rest);
}

/* Four rows of W into the panel: 32-bit units of k, four columns each; out is [half][unit][PANEL / 4][16] */
MT_INLINE void put_half(int8_t *out, int8x16_t c0, int8x16_t c1, int8x16_t c2, int8x16_t c3)
{
    mt_f32x4x4 m = {
        {vreinterpretq_f32_s8(c0), vreinterpretq_f32_s8(c1), vreinterpretq_f32_s8(c2), vreinterpretq_f32_s8(c3)}};
    m = mt_transpose4(m);
    MT_UNROLL
    for (int u = 0; u < 4; u++)
        vst1q_s8(out + u * PANEL * 4, vreinterpretq_s8_f32(m.v[u]));
}

MT_INLINE void unpack4(int8_t *out, const mt_mat *w, const uint8_t *const from[4], mt_code code)
{
    const mt_coder coder = mt_coder_of(code, w);
    const size_t k = w->k;
    const size_t bytes = 4 * mt_code_bits(code);
    for (size_t i = 0; i < k; i += 32) {
        mt_paired v[4];
        MT_UNROLL
        for (int c = 0; c < 4; c++) {
            const uint8_t *p = from[c] + i / 32 * bytes;
            v[c] = code == MT_CODE_TABLE && i + 32 > k ? mt_paired_half(p, &coder)
                                                       : load_signed(p, from[c] + k / 2, i / 32, code, &coder);
        }
        int8_t *at = out + i * PANEL;
        put_half(at, low_halves(v[0].even, v[0].odd), low_halves(v[1].even, v[1].odd), low_halves(v[2].even, v[2].odd),
                 low_halves(v[3].even, v[3].odd));
        put_half(at + 16 * PANEL, high_halves(v[0].even, v[0].odd), high_halves(v[1].even, v[1].odd),
                 high_halves(v[2].even, v[2].odd), high_halves(v[3].even, v[3].odd));
    }
}

static void unpack_panel(int8_t *out, const mt_mat *w, size_t j, size_t n1)
{
    for (size_t h = 0; h < PANEL; h += 4) {
        const uint8_t *p[4];
        for (size_t c = 0; c < 4; c++)
            p[c] = w->w + (j + h + c < n1 ? j + h + c : n1 - 1) * w->stride;
#define UNPACK4(code) unpack4(out + h * 4, w, p, code)
        MT_SWITCH_CODE(mt_code_of(w), UNPACK4)
#undef UNPACK4
    }
}

typedef struct panel {
    const int8_t *q;
    const float *ws, *wb;            /* [group][PANEL]; wb is NULL without biases */
    size_t groups, each, link, unit; /* each: units of a group */
    bool eight;                      /* 8-bit weights */
} panel;

/* One unit of k of TILE rows against PANEL columns; `lane` is a constant */
#define UNIT(lane)                                                                                    \
    {                                                                                                 \
        int8x16_t left = vld1q_s8(q + lane * PANEL * 4), right = vld1q_s8(q + lane * PANEL * 4 + 16); \
        MT_UNROLL                                                                                     \
        for (int r = 0; r < m; r++) {                                                                 \
            int8x16_t one = vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(v[r]), lane));  \
            acc[r][0] = MT_QDOT(acc[r][0], left, one);                                                \
            acc[r][1] = MT_QDOT(acc[r][1], right, one);                                               \
        }                                                                                             \
    }

/* m <= TILE rows, a compile-time constant */
MT_INLINE void tile(float32x4_t out[TILE][2], const panel *p, const qrow x[TILE], int m)
{
    const int8_t *q = p->q;
    float32x4_t a[TILE][2];
    MT_UNROLL
    for (int r = 0; r < m; r++)
        a[r][0] = a[r][1] = vdupq_n_f32(0.0f);
    int32x4_t acc[TILE][2];
    MT_UNROLL
    for (int r = 0; r < m; r++)
        acc[r][0] = acc[r][1] = vdupq_n_s32(MT_DOT_BITS);
    size_t k = 0;
    for (size_t u = 0; u < p->groups * p->each; u++) {
        for (int r = 0; p->eight && r < m; r++) {
            const int32x4_t more = vdupq_n_s32(x[r].sum[u] * 128);
            acc[r][0] = vaddq_s32(acc[r][0], more);
            acc[r][1] = vaddq_s32(acc[r][1], more);
        }
        for (size_t end = k + p->unit; k < end; k += 16, q += 16 * PANEL) {
            int8x16_t v[TILE];
            MT_UNROLL
            for (int r = 0; r < m; r++)
                v[r] = vld1q_s8(x[r].q + k);
            UNIT(0)
            UNIT(1)
            UNIT(2)
            UNIT(3)
        }
        const bool ends = (u + 1) % p->link == 0;
        const float *ws = p->ws + u / p->each * PANEL;
        const float32x4_t left = vld1q_f32(ws), right = vld1q_f32(ws + 4);
        MT_UNROLL
        for (int r = 0; r < m; r++) {
            const float32x4_t t[2] = {turned(acc[r][0], &x[r], u), turned(acc[r][1], &x[r], u)};
            acc[r][0] = vreinterpretq_s32_f32(t[0]);
            acc[r][1] = vreinterpretq_s32_f32(t[1]);
            if (ends) {
                a[r][0] = vfmaq_f32(a[r][0], left, t[0]);
                a[r][1] = vfmaq_f32(a[r][1], right, t[1]);
                acc[r][0] = acc[r][1] = vdupq_n_s32(MT_DOT_BITS);
            }
        }
    }
    MT_UNROLL
    for (int r = 0; r < m; r++) {
        out[r][0] = a[r][0];
        out[r][1] = a[r][1];
    }
}

static void tile_rows(float *y, size_t ldy, size_t n, const panel *p, const qrow x[TILE], size_t m)
{
    float32x4_t out[TILE][2];
    switch (m) {
    case 1: tile(out, p, x, 1); break;
    case 2: tile(out, p, x, 2); break;
    case 3: tile(out, p, x, 3); break;
    default: tile(out, p, x, 4); break;
    }
    for (size_t r = 0; r < m; r++) {
        for (size_t h = 0; h < 2 && 4 * h < n; h++) {
            float32x4_t v = out[r][h];
            if (p->wb)
                v = vaddq_f32(v, bias_dot(p->wb + 4 * h, PANEL, x[r].sx, p->groups));
            store(y + r * ldy + 4 * h, v, n - 4 * h);
        }
    }
}

static void matmul_many(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                        uint8_t *scratch)
{
    const layout l = layout_of(rows->m, rows->k, rows->group);
    float *ws = (float *)(void *)scratch, *wb = ws + l.groups * PANEL;
    int8_t *q = (int8_t *)(void *)(wb + l.groups * PANEL);
    const panel p = {.q = q,
                     .ws = ws,
                     .wb = w->biases ? wb : NULL,
                     .groups = l.groups,
                     .each = l.each,
                     .link = l.link,
                     .unit = mt_unit(rows->group),
                     .eight = mt_code_of(w) == MT_CODE_8};
    for (size_t j = n0; j < n1; j += PANEL) {
        unpack_panel(q, w, j, n1);
        for (size_t h = 0; h < PANEL; h += 4) {
            mt_scale_rows s = mt_scale_rows_of(w, w->scales, j + h, n1 - 1);
            mt_scales_write(ws + h, PANEL, &s, 0, l.groups, false);
            if (!w->biases)
                continue;
            mt_scale_rows b = mt_scale_rows_of(w, w->biases, j + h, n1 - 1);
            mt_scales_write(wb + h, PANEL, &b, 0, l.groups, false);
        }
        for (size_t i = 0; i < rows->m; i += TILE) {
            qrow x[TILE];
            size_t m = rows->m - i < TILE ? rows->m - i : TILE;
            for (size_t r = 0; r < m; r++)
                x[r] = row_at(rows, &l, i + r);
            tile_rows(y + i * ldy + j, ldy, n1 - j < PANEL ? n1 - j : PANEL, &p, x, m);
        }
    }
}

void MT_QNAME(q_matmul)(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                        uint8_t *scratch)
{
    if (rows->m == 1)
        matmul_one(y, w, n0, n1, rows, scratch);
    else
        matmul_many(y, ldy, w, n0, n1, rows, scratch);
}
