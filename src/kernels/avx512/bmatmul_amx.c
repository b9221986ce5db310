/* Products with bf16 rows on AMX (R5 of docs/numerics.md): 32 of k at a time, ascending, padded with zeros, for any
   number of rows. One step takes the even elements of k in one chain of fused multiply-adds from 0, the odd ones in
   another, and adds the sum of both to what there is.

   Packed rows: tiles of 16 rows, the last with as many as are left, [k / 2][rows][2] bf16, k padded with zeros to whole
   steps. A tile of fewer rows is loaded as one of 16: what comes next in memory has results that are not used. */
#include "kernels/levels.h"
#include "kernels/portable/scalar.h"
#include "kernels/x86/amx.h"
#include "kernels/x86/widen.h"

enum {
    STEP = 32, /* of k */
    COLUMNS = 2 * MT_TILE,
    ROWS = 2 * MT_TILE,
    FP8_BLOCK = 128,
    CHUNK = 128 /* elements that are widened at once */
};

/* Columns of W as tiles want them: column c at w + c * stride, bf16, k padded with zeros. */
typedef struct panel {
    const uint8_t *w;
    size_t stride; /* bytes */
} panel;

static size_t padded(size_t k)
{
    return mt_round_up(k, STEP);
}

/* Bytes of a column in scratch memory; an odd number of cache lines, so that columns lie in different sets */
static size_t panel_stride(size_t k)
{
    const size_t lines = (padded(k) * sizeof(mt_bf16) + 63) / 64;
    return (lines | 1) * 64;
}

size_t mt_b_rows_bytes_amx(size_t m, size_t k)
{
    return m * padded(k) * sizeof(mt_bf16) + MT_TILE_BYTES;
}

size_t mt_b_scratch_bytes_amx(size_t k)
{
    return COLUMNS * panel_stride(k) + 2 * COLUMNS * ROWS * sizeof(float);
}

/* Rows of x */
typedef struct tile {
    uint8_t *x;
    size_t nr;
} tile;

/* The tile of rows i .., i % MT_TILE == 0 */
static tile tile_at(const mt_rows *rows, size_t i)
{
    return (tile){rows->data + i * padded(rows->k) * sizeof(mt_bf16), rows->m - i < MT_TILE ? rows->m - i : MT_TILE};
}

void mt_b_pack_amx(mt_rows *rows, const float *x, size_t ldx, const uint32_t *index, size_t i0, size_t i1)
{
    const size_t k = rows->k, all = padded(k);
    for (size_t i = i0; i < i1; i++) {
        const size_t first = i / MT_TILE * MT_TILE;
        const tile t = tile_at(rows, first);
        const float *row = x + (index ? index[i] : i) * ldx;
        uint8_t *out = t.x + (i - first) * 4;
        for (size_t c = 0; c < all; c += VL) {
            mt_bf16 rounded[VL];
            vi_store_u16(rounded, vi_srl(vf_round_bf16(c < k ? vf_get(row, c, k) : vf_set1(0.0f)), 16));
            for (size_t e = 0; e < VL; e += 2)
                memcpy(out + (c + e) / 2 * t.nr * 4, rounded + e, 4);
        }
    }
}

/* ---- weights ---- */

/* Elements [k, k + n) of a row as bf16, FP8 without its scale. */
static void column_part(mt_bf16 *y, const mt_mat *w, size_t r, size_t k, size_t n)
{
    float wide[CHUNK];
    if (w->format == MT_FORMAT_FP8)
        mt_widen_bytes(wide, w->w + r * w->stride + k, n, 1.0f, true);
    else
        mt_widen(wide, w, r, k, k + n);
    for (size_t i = 0; i < n; i += VL) {
        vi v = vi_srl(vf_bits(vf_get(wide, i, n)), 16);
        if (i + VL <= n) {
            vi_store_u16(y + i, v);
        } else {
            mt_bf16 part[VL];
            vi_store_u16(part, v);
            memcpy(y + i, part, (n - i) * sizeof(*y));
        }
    }
}

/* Columns j .. j + count in scratch memory; the last is repeated. */
static panel panel_copy(const mt_mat *w, size_t j, size_t count, uint8_t *scratch)
{
    const size_t stride = panel_stride(w->k);
    for (size_t c = 0; c < COLUMNS; c++) {
        mt_bf16 *to = (mt_bf16 *)(void *)(scratch + c * stride);
        if (c >= count) {
            memcpy(to, scratch + (count - 1) * stride, stride);
            continue;
        }
        memset(to + w->k / STEP * STEP, 0, stride - w->k / STEP * STEP * sizeof(*to));
        if (w->format == MT_FORMAT_BF16)
            memcpy(to, w->w + (j + c) * w->stride, w->k * sizeof(*to));
        else
            for (size_t k = 0; k < w->k; k += CHUNK)
                column_part(to + k, w, j + c, k, w->k - k < CHUNK ? w->k - k : CHUNK);
    }
    return (panel){scratch, stride};
}

/* ---- products ---- */

/* C[0..3] += columns 0-15 with the rows of tile a, with those of b; columns 16-31 with a, with b. Elements [k, end). */
MT_INLINE void steps(const panel *p, const tile *a, const tile *b, size_t k, size_t end, bool wide)
{
    const uint8_t *w0 = p->w + k * sizeof(mt_bf16), *w1 = w0 + MT_TILE * p->stride;
    for (; k < end; k += STEP, w0 += 2 * STEP, w1 += 2 * STEP) {
        _tile_loadd(4, w0, (long)p->stride);
        _tile_loadd(6, a->x + k * 2 * a->nr, (long)(4 * a->nr));
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, w1, (long)p->stride);
        _tile_dpbf16ps(2, 5, 6);
        if (wide) {
            _tile_loadd(7, b->x + k * 2 * b->nr, (long)(4 * b->nr));
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(3, 5, 7);
        }
    }
}

/* out: [COLUMNS][ROWS]; where not wide, the left half of that */
static void products(float *out, const panel *p, const tile *a, const tile *b, size_t k, size_t end, bool wide)
{
    __asm__ volatile("" ::: "memory"); /* compilers do not know that tiles read what was written before */
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (wide)
        steps(p, a, b, k, end, true);
    else
        steps(p, a, b, k, end, false);
    _tile_stored(0, out, ROWS * sizeof(float));
    _tile_stored(2, out + MT_TILE * ROWS, ROWS * sizeof(float));
    if (wide) {
        _tile_stored(1, out + MT_TILE, ROWS * sizeof(float));
        _tile_stored(3, out + MT_TILE * ROWS + MT_TILE, ROWS * sizeof(float));
    }
}

static float fp8_scale(const mt_mat *w, size_t column, size_t block)
{
    column = column < w->n ? column : w->n - 1;
    return mt_scale_f32(w->scales + column / w->scale_rows * w->scale_stride, w->scale_type, block);
}

/* acc = fma(scale, block, acc) */
static void fp8_products(float *acc, float *out, const mt_mat *w, size_t j, const panel *p, const tile *a,
                         const tile *b, bool wide)
{
    memset(acc, 0, COLUMNS * ROWS * sizeof(*acc));
    for (size_t k = 0; k < w->k; k += FP8_BLOCK) {
        products(out, p, a, b, k, k + FP8_BLOCK < w->k ? k + FP8_BLOCK : padded(w->k), wide);
        for (size_t c = 0; c < COLUMNS; c++) {
            const vf scale = vf_set1(fp8_scale(w, j + c, k / FP8_BLOCK));
            for (size_t i = c * ROWS; i < (c + 1) * ROWS; i += VL)
                vf_store(acc + i, vf_fma(scale, vf_load(out + i), vf_load(acc + i)));
        }
    }
}

/* y[i][0..count) = transposed sums of rows [0, nr) */
static void place(float *y, size_t ldy, const float *sums, size_t count, size_t nr)
{
    for (size_t c = 0; c < count; c += VL) {
        for (size_t r = 0; r < nr; r += VL) {
            vi m[VL];
            MT_UNROLL
            for (size_t i = 0; i < VL; i++)
                m[i] = vi_load(sums + (c + i) * ROWS + r);
            vi_transpose(m);
            for (size_t i = 0; i < VL && r + i < nr; i++)
                vf_put(y + (r + i) * ldy, c, count, vf_from_bits(m[i]));
        }
    }
}

/* Columns j .. j + count of all rows. */
static void columns(float *y, size_t ldy, const mt_mat *w, size_t j, size_t count, const mt_rows *rows, const panel *p,
                    float *room)
{
    const size_t m = rows->m;
    const bool fp8 = w->format == MT_FORMAT_FP8;
    float *out = room, *acc = room + COLUMNS * ROWS;
    for (size_t i = 0; i < m; i += ROWS) {
        const bool wide = i + MT_TILE < m;
        const tile a = tile_at(rows, i), b = wide ? tile_at(rows, i + MT_TILE) : a;
        if (fp8)
            fp8_products(acc, out, w, j, p, &a, &b, wide);
        else
            products(out, p, &a, &b, 0, padded(w->k), wide);
        place(y + i * ldy + j, ldy, fp8 ? acc : out, count, a.nr + (wide ? b.nr : 0));
    }
}

/* Up to MT_TILE rows, for which memory sets the pace: a tile has a column of each sixteenth of the range, so that
   memory is read in as many streams. BF16 only, k a multiple of STEP, 2 * MT_TILE * parts columns from n0 on. */
static void apart(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t parts, const mt_rows *rows, float *out)
{
    const size_t far = 2 * parts, nr = rows->m; /* columns from one of a tile to its next */
    __asm__ volatile("" ::: "memory");
    for (size_t j = 0; j < far; j += 2) {
        const uint8_t *w0 = w->w + (n0 + j) * w->stride;
        const long stride = (long)(far * w->stride);
        _tile_zero(0);
        _tile_zero(2);
        for (size_t k = 0; k < w->k; k += STEP) {
            const uint8_t *x = rows->data + k * 2 * nr, *at = w0 + k * sizeof(mt_bf16);
            _tile_loadd(6, x, (long)(4 * nr));
            _tile_loadd(4, at, stride);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(5, at + w->stride, stride);
            _tile_dpbf16ps(2, 5, 6);
            MT_UNROLL
            for (size_t c = 0; c < MT_TILE; c++) { /* of the next two columns */
                _mm_prefetch((const char *)(at + (c * far + 2) * w->stride), _MM_HINT_T1);
                _mm_prefetch((const char *)(at + (c * far + 3) * w->stride), _MM_HINT_T1);
            }
        }
        _tile_stored(0, out, MT_TILE_BYTES);
        _tile_stored(2, out + MT_TILE * MT_TILE, MT_TILE_BYTES);
        for (size_t c = 0; c < MT_TILE; c++) {
            for (size_t i = 0; i < nr; i++) {
                float *to = y + i * ldy + n0 + c * far + j;
                to[0] = out[c * MT_TILE + i];
                to[1] = out[(MT_TILE + c) * MT_TILE + i];
            }
        }
    }
}

void mt_b_matmul_amx(float *y, size_t ldy, const mt_mat *w, size_t n0, size_t n1, const mt_rows *rows, uint8_t *scratch)
{
    const bool in_place = w->format == MT_FORMAT_BF16 && w->k % STEP == 0;
    float *room = (float *)(void *)(scratch + COLUMNS * panel_stride(w->k));
    mt_tiles_begin(MT_TILE_BYTES);
    if (in_place && rows->m <= MT_TILE) {
        const size_t parts = (n1 - n0) / COLUMNS;
        apart(y, ldy, w, n0, parts, rows, room);
        n0 += parts * COLUMNS;
    }
    for (size_t j = n0; j < n1; j += COLUMNS) {
        const size_t count = n1 - j < COLUMNS ? n1 - j : COLUMNS;
        const panel there = {w->w + j * w->stride, w->stride};
        const panel p = in_place && count == COLUMNS ? there : panel_copy(w, j, count, scratch);
        columns(y, ldy, w, j, count, rows, &p, room);
    }
    mt_tiles_end();
}
