/* Integer products (R4 of docs/numerics.md) with SMMLA. A block of the result is TILES tiles of rows times PANELS
   panels of columns. CHUNK elements of k are processed at a time: the weights of a panel are unpacked into the
   first-level cache and multiplied with all tiles, which stream from the second-level cache; sums so far are kept in
   memory (aside). A panel processes several chunks in a row, as many as the second-level cache has rows for, so that
   its sums stay in the first.

   Packed rows: pairs of rows in tiles of three pairs (one tile of up to four where there are no more; the last tile has
   what is left). For each chunk of k, one tile after the other, as [k / 8][pair][2 rows][8]; each 32 elements of k are
   in the order even 0-14, odd 1-15, even 16-30, odd 17-31. Then the turns (block.h) in the same order of chunks and
   tiles, as [unit][mul, add][pair][4], doubled to the shape of a result; then sx as [row][groups, rounded up to 4]. A
   single row is computed by the level below. */
#include "kernels/levels.h"
#include "kernels/neon/qmmla.h"
#include "kernels/neon/qone.h"
#include "kernels/neon/qquant.h"
#include "kernels/neon/qscale.h"

enum {
    CHUNK = 1024,
    PANELS = 8,
    TILES = 48,
    /* bytes of the rows that stream; twice as many would not come from the second-level cache */
    ROWS_BYTES = 256 << 10,
    NEAR = 1024, /* bytes that a tile may prefetch into the first-level cache; more would evict what it uses */
    COLUMNS = 2 * PANEL * PANELS,
    RESULT = SINGLE * PANEL * 4 /* floats of a tile times a panel */
};

typedef struct layout {
    size_t k, unit, groups, pairs, turns, sx, sx_stride, bytes; /* turns, sx: byte offsets */
} layout;

static layout layout_of(size_t m, size_t k, size_t group)
{
    layout l = {.k = k, .unit = mt_unit(group), .groups = k / group, .pairs = (m + 1) / 2};
    l.turns = (l.pairs * 2 * k + 63) / 64 * 64;
    l.sx = l.turns + l.pairs * (k / l.unit) * 8 * sizeof(float);
    l.sx_stride = (l.groups + 3) / 4 * 4;
    l.bytes = l.sx + 2 * l.pairs * l.sx_stride * sizeof(float);
    return l;
}

/* First pair and number of pairs of the tile that contains a pair. */
typedef struct span {
    size_t first, pairs;
} span;

static span span_of(const layout *l, size_t pair)
{
    if (l->pairs <= SINGLE)
        return (span){0, l->pairs};
    size_t first = pair / TILE * TILE, left = l->pairs - first;
    return (span){first, left < TILE ? left : TILE};
}

/* Offset of a tile's elements from k0 on, of a chunk of n elements; and of their turns, in floats. */
static size_t q_offset(const layout *l, span s, size_t k0, size_t n)
{
    return 2 * (k0 * l->pairs + s.first * n);
}

static size_t turns_offset(const layout *l, span s, size_t k0, size_t n)
{
    return 8 * (k0 * l->pairs + s.first * n) / l->unit;
}

size_t mt_q_rows_bytes_i8mm(size_t m, size_t k, size_t group)
{
    return m == 1 ? mt_q_rows_bytes_dotprod(m, k, group) : layout_of(m, k, group).bytes;
}

MT_INLINE void emit_row(int8_t *at, size_t stride, mt_paired p)
{
    vst1_s8(at, vget_low_s8(p.even));
    vst1_s8(at + stride, vget_low_s8(p.odd));
    vst1_s8(at + 2 * stride, vget_high_s8(p.even));
    vst1_s8(at + 3 * stride, vget_high_s8(p.odd));
}

/* k is an odd multiple of 16: there is no room for zeros behind the last 16 elements. */
static void pack_end(const float *x, size_t group, const mt_qsums *sums, int8_t *q, size_t stride)
{
    int8_t last[4 * 8];
    mt_quantise_row(x, 16, group, sums, last, 32, 8, emit_row);
    memcpy(q, last, 8);
    memcpy(q + stride, last + 8, 8);
}

static void pack_row(const mt_rows *rows, const layout *l, const float *x, size_t i)
{
    const span s = span_of(l, i / 2);
    const size_t pair = i / 2 - s.first, stride = s.pairs * 16, group = rows->group;
    for (size_t k0 = 0; k0 < l->k; k0 += CHUNK) {
        const size_t n = l->k - k0 < CHUNK ? l->k - k0 : CHUNK, whole = n / 32 * 32;
        int8_t *q = (int8_t *)rows->data + q_offset(l, s, k0, n) + pair * 16 + i % 2 * 8;
        float *turns = (float *)(void *)(rows->data + l->turns) + turns_offset(l, s, k0, n) + pair * 4 + i % 2;
        mt_qsums sums = {.mul = turns,
                         .add = turns + s.pairs * 4,
                         .sx = (float *)(void *)(rows->data + l->sx) + i * l->sx_stride + k0 / group,
                         .step = s.pairs * 8,
                         .twice = true,
                         .wide = rows->wide};
        mt_quantise_row(x + k0, whole, group, &sums, q, 4 * stride, stride, emit_row);
        if (whole < n) {
            sums.mul += whole / 16 * sums.step;
            sums.add += whole / 16 * sums.step;
            sums.sx += whole / 16;
            pack_end(x + k0 + whole, group, &sums, q + whole / 8 * stride, stride);
        }
    }
}

void mt_q_pack_i8mm(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    if (rows->m == 1) {
        mt_q_pack_dotprod(rows, x, ldx, index, i0, i1);
        return;
    }
    const layout l = layout_of(rows->m, rows->k, rows->group);
    for (size_t i = i0; i < i1; i++)
        pack_row(rows, &l, x + (index ? index[i] : i) * ldx, i);
    if (i1 % 2 != 0) /* the missing row of the last pair is computed too, from any numbers */
        pack_row(rows, &l, x + (index ? index[i1 - 1] : i1 - 1) * ldx, i1);
}

typedef struct space {
    int8_t *q;    /* [CHUNK / 8][PANEL][16] */
    float *ws;    /* [CHUNK / 16][PANEL][4] */
    float *aside; /* [PANELS][tiles of the block][RESULT] */
    float *wb;    /* [PANELS][groups][2 * PANEL] */
} space;

enum { Q_BYTES = 2 * PANEL * CHUNK, WS_FLOATS = PANEL * 4 * (CHUNK / 16), ASIDE_FLOATS = TILES * PANELS * RESULT };

size_t mt_q_scratch_bytes_i8mm(size_t k)
{
    size_t bytes = Q_BYTES + (WS_FLOATS + ASIDE_FLOATS + (k / 16 + 1) * COLUMNS) * sizeof(float);
    size_t one = mt_q_scratch_bytes_dotprod(k);
    return bytes > one ? bytes : one;
}

static space space_of(uint8_t *scratch)
{
    space s = {.q = (int8_t *)scratch, .ws = (float *)(void *)(scratch + Q_BYTES)};
    s.aside = s.ws + WS_FLOATS;
    s.wb = s.aside + ASIDE_FLOATS;
    return s;
}

static const uint8_t *row_of(const mt_mat *w, size_t j, size_t n1)
{
    return w->w + (j < n1 ? j : n1 - 1) * w->stride;
}

/* Unpacks a panel of rows from[] of W, elements [k0, k1). Pointers advance and whole cache lines are written in order:
   with offsets and scattered stores it takes a third longer. */
MT_INLINE void unpack(int8_t *out, const mt_mat *w, const uint8_t *const from[2 * PANEL], size_t k0, size_t k1,
                      mt_code code)
{
    const mt_coder coder = mt_coder_of(code, w);
    const size_t bytes = 4 * mt_code_bits(code);
    const uint8_t *p[2 * PANEL];
    MT_UNROLL
    for (int c = 0; c < 2 * PANEL; c++)
        p[c] = from[c] + k0 / 32 * bytes;
    for (size_t k = k0; k < k1; k += 32, out += 4 * PANEL * 16) {
        const bool half = code == MT_CODE_TABLE && k + 32 > k1;
        steps s[PANEL];
        MT_UNROLL
        for (int c = 0; c < PANEL; c++) {
            s[c] = half ? interleave(mt_paired_half(p[2 * c], &coder), mt_paired_half(p[2 * c + 1], &coder))
                        : load_steps(p[2 * c], p[2 * c + 1], from[2 * c] + w->k / 2, from[2 * c + 1] + w->k / 2, k / 32,
                                     code, &coder);
            p[2 * c] += bytes;
            p[2 * c + 1] += bytes;
        }
        MT_UNROLL
        for (int i = 0; i < 4; i++) {
            MT_UNROLL
            for (int c = 0; c < PANEL; c++)
                vst1q_s8(out + (i * PANEL + c) * 16, s[c].v[i]);
            MT_FENCE();
        }
    }
}

static void unpack_panel(int8_t *out, const mt_mat *w, size_t j, size_t n1, size_t k0, size_t k1)
{
    const uint8_t *p[2 * PANEL];
    for (size_t c = 0; c < 2 * PANEL; c++)
        p[c] = row_of(w, j + c, n1);
#define UNPACK(code) unpack(out, w, p, k0, k1, code)
    MT_SWITCH_CODE(mt_code_of(w), UNPACK)
#undef UNPACK
}

/* Widens scales or biases of a panel's columns, groups [g0, g1), to out as [group][2 * PANEL]; or where twice, as
   [group][PANEL][4]. */
MT_INLINE void widen(float *out, const mt_mat *w, const uint8_t *from, size_t j, size_t n1, size_t g0, size_t g1,
                     bool twice)
{
    for (size_t c = 0; c < 2 * PANEL; c += 4) {
        mt_scale_rows s = mt_scale_rows_of(w, from, j + c, n1 - 1);
        mt_scales_write(out + (twice ? 2 * c : c), (twice ? 4 : 2) * PANEL, &s, g0, g1, twice);
    }
}

/* Weights to be unpacked next, prefetched a few rows at a time. */
typedef struct ahead {
    const uint8_t *p;
    size_t stride, bytes; /* of rows, and of what is fetched of each */
    size_t rows;          /* left */
} ahead;

MT_INLINE void fetch(ahead *a, size_t rows, bool near)
{
    for (; rows > 0 && a->rows > 0; rows--, a->rows--, a->p += a->stride)
        for (size_t at = 0; at < a->bytes; at += 64) {
            if (near)
                __builtin_prefetch(a->p + at, 0, 3);
            else
                __builtin_prefetch(a->p + at, 0, 2);
        }
}

/* aside += full tiles * panel. */
MT_INLINE void run_tiles(float *aside, operands o, size_t tiles, ahead next, bool eight)
{
    const size_t each = (next.rows + tiles - 1) / tiles;
    for (; tiles > 0; tiles--, aside += RESULT) {
        if (each * next.bytes <= NEAR)
            fetch(&next, each, true);
        else
            fetch(&next, each, false);
        multiply_full(aside, &o, eight);
    }
}

static void tiles_3(float *aside, const operands *o, size_t tiles, const ahead *next)
{
    run_tiles(aside, *o, tiles, *next, false);
}

static void tiles_3_eight(float *aside, const operands *o, size_t tiles, const ahead *next)
{
    run_tiles(aside, *o, tiles, *next, true);
}

/* aside += a tile of another size * panel. */
MT_INLINE void run_tile(float *aside, const operands *o, int rows, int pairs, bool eight)
{
    float32x4_t a[TILE][PANEL];
    MT_UNROLL
    for (int i = 0; i < rows; i++)
        MT_UNROLL
    for (int j = 0; j < PANEL; j++)
        a[i][j] = vld1q_f32(aside + (i * PANEL + j) * 4);
    multiply(a, o, rows, pairs, eight);
    MT_UNROLL
    for (int i = 0; i < rows; i++)
        MT_UNROLL
    for (int j = 0; j < PANEL; j++)
        vst1q_f32(aside + (i * PANEL + j) * 4, a[i][j]);
}

#define TILE_FUNCTION(name, rows, pairs, eight)       \
    static void name(float *aside, const operands *o) \
    {                                                 \
        run_tile(aside, o, rows, pairs, eight);       \
    }
TILE_FUNCTION(tile_1, 1, 1, false)
TILE_FUNCTION(tile_2, 2, 2, false)
TILE_FUNCTION(tile_2_of_4, 2, 4, false)
TILE_FUNCTION(tile_1_eight, 1, 1, true)
TILE_FUNCTION(tile_2_eight, 2, 2, true)
TILE_FUNCTION(tile_2_of_4_eight, 2, 4, true)

static void tile(float *aside, operands o, size_t pairs, bool eight)
{
    static void (*const functions[2][3])(float *, const operands *) = {{tile_1, tile_2, tile_2_of_4},
                                                                       {tile_1_eight, tile_2_eight, tile_2_of_4_eight}};
    functions[eight][pairs < SINGLE ? pairs - 1 : 2](aside, &o);
    if (pairs < SINGLE)
        return;
    o.x += 2 * 16;
    o.turns += 2 * 4;
    functions[eight][2](aside + 2 * PANEL * 4, &o);
}

#define FINISH_FUNCTION(name, rows)                         \
    static void name(float *y, size_t ldy, const ending *e) \
    {                                                       \
        finish(y, ldy, e, rows);                            \
    }
FINISH_FUNCTION(finish_2, 2)
FINISH_FUNCTION(finish_4, 4)
FINISH_FUNCTION(finish_6, 6)

static void finish_tile(float *y, size_t ldy, ending e, size_t pairs)
{
    static void (*const functions[4])(float *, size_t, const ending *) = {finish_2, finish_4, finish_6, finish_4};
    functions[pairs - 1](y, ldy, &e);
    if (pairs < 4)
        return;
    e.sx += 4 * e.stride;
    e.aside += 2 * PANEL * 4;
    finish_4(y + 4 * ldy, ldy, &e);
}

typedef struct product {
    float *y;
    size_t ldy, n1; /* columns end here */
    const mt_mat *w;
    const mt_rows *rows;
    layout l;
    space s;
} product;

/* Pairs of rows [first, end) in tiles, and `panels` panels of columns from j on. */
typedef struct block {
    size_t first, end, tiles, j, panels;
    size_t part; /* elements of k that a panel processes before the next panel does */
} block;

/* A panel of a block, and where its chunk of k begins. */
typedef struct spot {
    size_t panel, k;
} spot;

static spot next_spot(const block *b, spot s, size_t k)
{
    const size_t begin = s.k / b->part * b->part, end = k - begin < b->part ? k : begin + b->part;
    s.k += CHUNK;
    if (s.k < end)
        return s;
    return s.panel + 1 < b->panels ? (spot){s.panel + 1, begin} : (spot){0, end};
}

/* The weights at a spot; at the end of the block, those of the next block. */
static ahead ahead_of(const product *p, const block *b, spot s)
{
    const mt_mat *w = p->w;
    const size_t j = s.k < w->k ? b->j + 2 * PANEL * s.panel : b->j + COLUMNS, k0 = s.k < w->k ? s.k : 0;
    if (j >= w->n)
        return (ahead){0};
    const size_t n = w->n - j < 2 * PANEL ? w->n - j : 2 * PANEL, k = w->k - k0 < CHUNK ? w->k - k0 : CHUNK;
    return (ahead){
        .p = w->w + j * w->stride + k0 * w->bits / 8, .stride = w->stride, .bytes = k * w->bits / 8, .rows = n};
}

static void place(operands *o, const product *p, span s, size_t k0, size_t k1)
{
    o->x = (const int8_t *)p->rows->data + q_offset(&p->l, s, k0, k1 - k0);
    o->turns = (const float *)(const void *)(p->rows->data + p->l.turns) + turns_offset(&p->l, s, k0, k1 - k0);
}

/* Multiplies one unpacked panel with all tiles of the block, over elements [k0, k1). */
static void multiply_panel(const product *p, const block *b, size_t panel, size_t k0, size_t k1, ahead next)
{
    const size_t group = p->rows->group, pairs = b->end - b->first;
    const size_t full = p->l.pairs == SINGLE ? 0 : pairs / TILE, rest = pairs - full * TILE;
    const bool eight = mt_code_of(p->w) == MT_CODE_8;
    float *aside = p->s.aside + panel * b->tiles * RESULT;
    operands o = {
        .w = p->s.q, .ws = p->s.ws, .groups = (k1 - k0) / group, .each = group / p->l.unit, .unit = p->l.unit};
    if (full > 0) {
        place(&o, p, span_of(&p->l, b->first), k0, k1);
        (eight ? tiles_3_eight : tiles_3)(aside, &o, full, &next);
    }
    if (rest > 0) {
        place(&o, p, span_of(&p->l, b->end - 1), k0, k1);
        tile(aside + full * RESULT, o, rest, eight);
    }
}

/* Adds the biases and writes the results of a block. */
static void finish_block(const product *p, const block *b)
{
    const layout *l = &p->l;
    const float *aside = p->s.aside;
    for (size_t i = b->first, pairs; i < b->end; i += pairs, aside += RESULT) {
        pairs = span_of(l, i).pairs;
        const size_t m = p->rows->m - 2 * i < 2 * pairs ? p->rows->m - 2 * i : 2 * pairs;
        ending e = {.groups = l->groups,
                    .stride = l->sx_stride,
                    .sx = (const float *)(const void *)(p->rows->data + l->sx) + 2 * i * l->sx_stride};
        for (size_t c = 0; c < b->panels; c++) {
            const size_t j = b->j + 2 * PANEL * c, n = p->n1 - j < 2 * PANEL ? p->n1 - j : 2 * PANEL;
            float *y = p->y + 2 * i * p->ldy + j, part[2 * SINGLE][2 * PANEL];
            e.aside = aside + c * b->tiles * RESULT;
            e.wb = p->w->biases ? p->s.wb + c * l->groups * 2 * PANEL : NULL;
            if (m == 2 * pairs && n == 2 * PANEL) {
                finish_tile(y, p->ldy, e, pairs);
                continue;
            }
            finish_tile(part[0], 2 * PANEL, e, pairs);
            for (size_t r = 0; r < m; r++)
                memcpy(y + r * p->ldy, part[r], n * sizeof(*y));
        }
    }
}

static void multiply_block(const product *p, const block *b)
{
    const size_t k = p->l.k, group = p->rows->group;
    memset(p->s.aside, 0, b->panels * b->tiles * RESULT * sizeof(float));
    for (spot s = {0, 0}, next; s.k < k; s = next) {
        const size_t j = b->j + 2 * PANEL * s.panel, k1 = k - s.k < CHUNK ? k : s.k + CHUNK;
        next = next_spot(b, s, k);
        unpack_panel(p->s.q, p->w, j, p->n1, s.k, k1);
        widen(p->s.ws, p->w, p->w->scales, j, p->n1, s.k / group, k1 / group, true);
        multiply_panel(p, b, s.panel, s.k, k1, ahead_of(p, b, next));
    }
    finish_block(p, b);
}

/* All rows times the panels of columns from j on. */
static void multiply_columns(const product *p, size_t j)
{
    const size_t left = p->n1 - j, panels = left < COLUMNS ? (left + 2 * PANEL - 1) / (2 * PANEL) : PANELS;
    if (p->w->biases)
        for (size_t c = 0; c < panels; c++)
            widen(p->s.wb + c * p->l.groups * 2 * PANEL, p->w, p->w->biases, j + 2 * PANEL * c, p->n1, 0, p->l.groups,
                  false);
    for (size_t i = 0; i < p->l.pairs; i += TILE * TILES) {
        const size_t left_pairs = p->l.pairs - i, pairs = left_pairs < TILE * TILES ? left_pairs : TILE * TILES;
        const size_t chunks = ROWS_BYTES / (2 * pairs * CHUNK);
        const block b = {.first = i,
                         .end = i + pairs,
                         .tiles = (pairs + TILE - 1) / TILE,
                         .j = j,
                         .panels = panels,
                         .part = chunks > 1 ? chunks * CHUNK : CHUNK};
        multiply_block(p, &b);
    }
}

/* A single row is packed as at the level below: q, mul, add, sx, sum. */
static void multiply_one(float *y, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows, uint8_t *scratch)
{
    if (mt_q_one_handles_i8mm(w)) {
        const size_t blocks = rows->k / MT_BLOCK, groups = rows->k / rows->group;
        const float *mul = (const float *)(const void *)(rows->data + rows->k), *add = mul + blocks;
        const mt_one one = {.y = y,
                            .n0 = n0,
                            .step = (n1 - n0) / 4,
                            .groups = groups,
                            .w = w,
                            .x = (const int8_t *)rows->data,
                            .mul = mul,
                            .add = add,
                            .sx = add + blocks,
                            .sum = (const int32_t *)(const void *)(add + blocks + groups)};
        mt_q_one_i8mm(&one, scratch);
        n0 += 4 * one.step;
    }
    if (n0 < n1)
        mt_q_matmul_dotprod(y, 0, w, n0, n1, rows, scratch);
}

void mt_q_matmul_i8mm(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows,
                      uint8_t *scratch)
{
    if (rows->m == 1) {
        multiply_one(y, w, n0, n1, rows, scratch);
        return;
    }
    const product p = {.y = y,
                       .ldy = ldy,
                       .n1 = n1,
                       .w = w,
                       .rows = rows,
                       .l = layout_of(rows->m, rows->k, rows->group),
                       .s = space_of(scratch)};
    if (mt_q_small_handles_i8mm(w, rows->m)) {
        const size_t step = (n1 - n0) / 4;
        const mt_small s = {.y = y,
                            .ldy = ldy,
                            .n0 = n0,
                            .step = step,
                            .m = rows->m,
                            .groups = p.l.groups,
                            .sx_stride = p.l.sx_stride,
                            .w = w,
                            .x = (const int8_t *)rows->data,
                            .turns = (const float *)(const void *)(rows->data + p.l.turns),
                            .sx = (const float *)(const void *)(rows->data + p.l.sx)};
        if (mt_q_few_handles_i8mm(w, rows->m))
            mt_q_few_i8mm(&s, p.s.wb);
        else
            mt_q_small_i8mm(&s);
        n0 += 4 * step;
    }
    if (n0 < n1) {
        ahead first = ahead_of(&p, &(block){.j = n0}, (spot){0, 0});
        fetch(&first, 2 * PANEL, false);
    }
    for (size_t j = n0; j < n1; j += COLUMNS)
        multiply_columns(&p, j);
}
