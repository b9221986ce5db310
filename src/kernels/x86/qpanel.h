/* A panel of quantised weights: MT_Q_COLUMNS columns, MT_Q_CHUNK of k. Rows of W are transposed so that a register has
   four elements of each of VL columns: [k / 4][MT_Q_COLUMNS][4] unsigned bytes, in the "paired" order of the
   activations (codes.h). */
#ifndef MT_KERNELS_X86_QPANEL_H
#define MT_KERNELS_X86_QPANEL_H

#include "kernels/x86/codes.h"
#include "kernels/x86/qrows.h"
#include "kernels/x86/widen.h"

#if defined(MT_LEVEL)

enum {
    MT_Q_COLUMNS = 2 * VL,
    MT_Q_CHUNK = 512,
    MT_Q_STEP = 4 * MT_Q_COLUMNS, /* bytes: four elements of every column */
    MT_Q_PLANE = MT_Q_CHUNK * MT_Q_COLUMNS,
    MT_Q_LDB = MT_Q_CHUNK + 64
};

#if defined(__AVX512VNNI__)
enum { MT_Q_PLANES = 1 };
#else
enum { MT_Q_PLANES = 2 }; /* codes of 8 bits are processed as two nibbles, so that sums of pairs fit 16 bits */
#endif

typedef struct mt_qpanel {
    const mt_mat *w;
    const uint8_t *row[MT_Q_COLUMNS], *next[MT_Q_COLUMNS]; /* of the present chunk, and of the one that is prefetched */
    size_t k;                                              /* where the present chunk begins */
    uint8_t table[16];      /* of codes of 4 bits: mt_code_lift added to their integers */
    uint8_t *planes;        /* [MT_Q_PLANES][MT_Q_PLANE] */
    uint8_t *bytes;         /* [VL][MT_Q_LDB] */
    float *scales, *biases; /* [k / group][MT_Q_COLUMNS] */
} mt_qpanel;

static inline void mt_qpanel_chunk(mt_qpanel *p, size_t j, size_t n1, size_t k)
{
    const mt_mat *w = p->w;
    const size_t bits = w->split ? 4 : w->bits, at = k * bits / 8, step = MT_Q_CHUNK * bits / 8;
    p->k = k;
    for (size_t c = 0; c < MT_Q_COLUMNS; c++) {
        size_t column = j + c < n1 ? j + c : n1 - 1,
               after = column + MT_Q_COLUMNS < n1 ? column + MT_Q_COLUMNS : column;
        p->row[c] = w->w + column * w->stride + at;
        p->next[c] = k + MT_Q_CHUNK < w->k ? p->row[c] + step : w->w + after * w->stride;
    }
}

/* Whether integers have up to 8 bits. */
static inline bool mt_q_wide(const mt_mat *w)
{
    return w->bits == 8 || w->format == MT_FORMAT_IQ4;
}

static inline void mt_qpanel_table(mt_qpanel *p)
{
    for (unsigned i = 0; i < 16; i++)
        p->table[i] = (uint8_t)(p->w->bits == 4 ? mt_code_integer(p->w, i) + mt_code_lift(p->w) : 0);
}

/* 4-bit codes of columns h .. h+VL of the panel: m[i] has eight of each column from k + 8 i on, `words` times. */
MT_INLINE void mt_qpanel_load(vi m[VL], const mt_qpanel *p, size_t h, size_t k, size_t words)
{
    MT_UNROLL
    for (size_t r = 0; r < VL; r++) {
        const uint8_t *from = p->row[h + r] + k / 2;
        m[r] = words == VL ? vi_load(from) : vi_load_part(from, words);
        _mm_prefetch((const char *)(p->next[h + r] + k / 2), _MM_HINT_T0);
    }
    vi_transpose(m);
}

/* Four of these eight, the even or the odd ones, as unsigned bytes. */
MT_INLINE vi mt_qpanel_four(const mt_qpanel *p, vi eight, bool odd, bool lifted)
{
    const vi four = vi_and(odd ? vi_srl(eight, 4) : eight, vb_set1(15));
    return lifted ? vb_shuffle(vb_table(p->table), four) : four;
}

/* Columns h .. h+VL of the panel, 4-bit codes; n of k */
static inline void mt_qpanel_nibbles(const mt_qpanel *p, size_t h, size_t n, bool lifted)
{
    for (size_t k = 0; k < n; k += 8 * VL) {
        const size_t words = (n - k) / 8 < VL ? (n - k) / 8 : VL;
        vi m[VL];
        mt_qpanel_load(m, p, h, k, words);
        uint8_t *to = p->planes + k / 4 * MT_Q_STEP + 4 * h;
        MT_UNROLL
        for (size_t s = 0; s < VL; s++, to += 2 * MT_Q_STEP) {
            if (s >= words)
                break;
            vi_store(to, mt_qpanel_four(p, m[s], false, lifted));
            vi_store(to + MT_Q_STEP, mt_qpanel_four(p, m[s], true, lifted));
        }
    }
}

/* The same for codes unpacked to p->bytes. */
static inline void mt_qpanel_turn(const mt_qpanel *p, size_t h, size_t n, bool split)
{
    const vi mask = vb_set1(15);
    for (size_t k = 0; k < n; k += 4 * VL) {
        const size_t words = (n - k) / 4 < VL ? (n - k) / 4 : VL;
        vi m[VL];
        MT_UNROLL
        for (size_t r = 0; r < VL; r++)
            m[r] = vi_load(p->bytes + r * MT_Q_LDB + k);
        vi_transpose(m);
        uint8_t *to = p->planes + k / 4 * MT_Q_STEP + 4 * h;
        MT_UNROLL
        for (size_t s = 0; s < VL; s++, to += MT_Q_STEP) {
            if (s >= words)
                break;
            vi_store(to, split ? vi_and(m[s], mask) : m[s]);
            if (split)
                vi_store(to + MT_Q_PLANE, vi_and(vi_srl(m[s], 4), mask));
        }
    }
}

static inline void mt_qpanel_codes(const mt_qpanel *p, size_t h, size_t n, size_t left)
{
    const mt_mat *w = p->w;
    const size_t bits = w->bits;
    for (size_t r = 0; r < VL; r++) {
        uint8_t *to = p->bytes + r * MT_Q_LDB;
        const uint8_t *nibbles = p->row[h + r] - p->k / 2; /* of the whole row, where it is split */
        if (w->split)
            mt_codes_join(to, nibbles, nibbles + w->k / 2, p->k, n, bits, MT_ORDER_PAIRED);
        else
            mt_codes_unpack(to, p->row[h + r], n, left * bits / 8, bits, MT_ORDER_PAIRED);
        for (size_t i = 0; bits == 4 && i < n; i += MT_CODES)
            vi_store(to + i, vb_shuffle(vb_table(p->table), vi_load(to + i)));
        for (size_t i = 0; i < n * bits / 8; i += 64)
            _mm_prefetch((const char *)(p->next[h + r] + i), _MM_HINT_T0);
    }
    mt_qpanel_turn(p, h, n, MT_Q_PLANES == 2 && mt_q_wide(w));
}

/* Unpacks n of k from p->row on; `left`: how many the rows still have. */
static inline void mt_qpanel_unpack(const mt_qpanel *p, size_t n, size_t left)
{
    for (size_t h = 0; h < MT_Q_COLUMNS; h += VL) {
        if (p->w->bits == 4 && !(MT_Q_PLANES == 2 && mt_q_wide(p->w)))
            mt_qpanel_nibbles(p, h, n, mt_code_lift(p->w) > 0);
        else
            mt_qpanel_codes(p, h, n, left);
    }
}

MT_INLINE vf mt_qscales_load(const uint8_t *p, mt_scale_type type)
{
    switch (type) {
    case MT_SCALE_F32: return vf_load(p);
    case MT_SCALE_F16: return mt_halves(p, true);
    case MT_SCALE_BF16: return mt_halves(p, false);
    case MT_SCALE_E8M0: return vf_from_bits(vi_max(vi_sll(vi_load_u8(p), 23), vi_set1(0x00400000)));
    case MT_SCALE_E4M3: return mt_e4m3(p, false);
    case MT_SCALE_8_OF_F16:
    case MT_SCALE_16_OF_F16:
    case MT_SCALE_NONE: break;
    }
    return vf_set1(1.0f);
}

/* Groups g .. g+count of a row whose scales share f16 numbers; both are multiples of 8 */
MT_INLINE vf mt_qscales_shared(const uint8_t *row, mt_scale_type type, size_t g, size_t count)
{
    const size_t together = mt_scale_together(type);
    uint16_t half[VL] = {0};
    uint8_t bytes[VL] = {0};
    for (size_t i = 0; i < count; i += 8) {
        const uint8_t *record = row + (g + i) / together * mt_scale_size(type);
        for (size_t j = 0; j < 8; j++)
            memcpy(&half[i + j], record, sizeof(*half));
        memcpy(bytes + i, record + 2 + (g + i) % together, 8);
    }
    return vf_mul(vf_load_f16(half), vi_to_f32(vi_load_s8(bytes)));
}

/* Groups g .. g+count of one row */
MT_INLINE vf mt_qscales_row(const uint8_t *row, const mt_mat *w, size_t g, size_t count)
{
    if (mt_scale_together(w->scale_type) > 1)
        return mt_qscales_shared(row, w->scale_type, g, count);
    const size_t size = mt_scale_size(w->scale_type);
    uint8_t padded[VL * sizeof(float)] = {0};
    const uint8_t *p = row + g * size;
    if (count < VL)
        p = memcpy(padded, p, count * size);
    vf s = mt_qscales_load(p, w->scale_type);
    if (w->format != MT_FORMAT_MXFP4 && w->format != MT_FORMAT_NVFP4)
        return s;
    s = vf_mul(vf_set1(0.5f), s);
    return w->format == MT_FORMAT_NVFP4 ? vf_mul(s, vf_set1(w->global)) : s;
}

/* Fetches the scales and biases of columns j .. to the cache before their panel is begun. A panel begins by reading
   them all, and with few rows the memory would have nothing else to do meanwhile. */
static inline void mt_qpanel_fetch(const mt_mat *w, size_t j, size_t n1)
{
    const size_t end = j + MT_Q_COLUMNS < n1 ? j + MT_Q_COLUMNS : n1;
    const size_t bytes = mt_scale_bytes(w->scale_type, w->k / w->group);
    for (size_t column = j; column < end; column++) {
        for (size_t i = 0; i < bytes; i += 64) {
            _mm_prefetch((const char *)(w->scales + column * w->scale_stride + i), _MM_HINT_T0);
            if (w->biases)
                _mm_prefetch((const char *)(w->biases + column * w->scale_stride + i), _MM_HINT_T0);
        }
    }
}

/* count < 2 * VL halves, two in an element; then zeros. A load of bytes just stored would wait for them. */
MT_INLINE vi mt_qscales_part(const uint8_t *from, size_t count)
{
    uint8_t padded[VL * sizeof(float)] = {0};
    return count % 2 == 0 ? vi_load_part(from, count / 2) : vi_load(memcpy(padded, from, 2 * count));
}

/* mt_qpanel_scales for bf16: pairs of groups are transposed before they are widened. */
static inline void mt_qpanel_scales_bf16(float *y, const mt_mat *w, const uint8_t *base, size_t j, size_t n1)
{
    const size_t groups = w->k / w->group;
    const vi upper = vi_set1((int)0xffff0000u);
    for (size_t h = 0; h < MT_Q_COLUMNS; h += VL) {
        for (size_t g = 0; g < groups; g += 2 * VL) {
            const size_t count = groups - g < 2 * VL ? groups - g : 2 * VL;
            vi m[VL];
            for (size_t r = 0; r < VL; r++) {
                const size_t column = j + h + r < n1 ? j + h + r : n1 - 1;
                const uint8_t *from = base + column * w->scale_stride + 2 * g;
                m[r] = count == 2 * VL ? vi_load(from) : mt_qscales_part(from, count);
            }
            vi_transpose(m);
            for (size_t i = 0; i < count; i++)
                vi_store(y + (g + i) * MT_Q_COLUMNS + h, i % 2 ? vi_and(m[i / 2], upper) : vi_sll(m[i / 2], 16));
        }
    }
}

/* All groups of columns from j on, transposed: [k / group][MT_Q_COLUMNS]; base: w->scales or w->biases. */
static inline void mt_qpanel_scales(float *y, const mt_mat *w, const uint8_t *base, size_t j, size_t n1)
{
    const size_t groups = w->k / w->group;
    if (w->scale_type == MT_SCALE_BF16) {
        mt_qpanel_scales_bf16(y, w, base, j, n1);
        return;
    }
    for (size_t h = 0; h < MT_Q_COLUMNS; h += VL) {
        for (size_t g = 0; g < groups; g += VL) {
            const size_t count = groups - g < VL ? groups - g : VL;
            vi m[VL];
            for (size_t r = 0; r < VL; r++) {
                size_t column = j + h + r < n1 ? j + h + r : n1 - 1;
                m[r] = vf_bits(mt_qscales_row(base + column * w->scale_stride, w, g, count));
            }
            vi_transpose(m);
            for (size_t i = 0; i < count; i++)
                vi_store(y + (g + i) * MT_Q_COLUMNS + h, m[i]);
        }
    }
}

#endif

#endif
