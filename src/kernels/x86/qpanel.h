/* A panel of quantised weights: MT_Q_COLUMNS columns, MT_Q_CHUNK of k. Rows of W are transposed so that a register has
   four elements of each of VL columns: [k / 4][MT_Q_COLUMNS][4] unsigned bytes, in the "paired" order of the
   activations (codes.h). */
#ifndef MT_KERNELS_X86_QPANEL_H
#define MT_KERNELS_X86_QPANEL_H

#include "kernels/x86/codes.h"
#include "kernels/x86/qrows.h"
#include "kernels/x86/qscales.h"

#if defined(MT_LEVEL)

enum {
    MT_Q_COLUMNS = 2 * VL,
    MT_Q_CHUNK = 512,
    MT_Q_GROUPS = MT_Q_CHUNK / 16, /* at most */
    MT_Q_STEP = 4 * MT_Q_COLUMNS,  /* bytes: four elements of every column */
    MT_Q_PLANE = MT_Q_CHUNK * MT_Q_COLUMNS,
    MT_Q_LDB = MT_Q_CHUNK + 64
};

#if defined(MT_VNNI)
enum { MT_Q_PLANES = 1 };
#else
enum { MT_Q_PLANES = 2 }; /* codes of 8 bits are processed as two nibbles, so that sums of pairs fit 16 bits */
#endif

typedef struct mt_qpanel {
    const mt_mat *w;
    size_t column[MT_Q_COLUMNS], after[MT_Q_COLUMNS];      /* of the matrix; of the next panel */
    const uint8_t *row[MT_Q_COLUMNS], *next[MT_Q_COLUMNS]; /* of the present chunk, and of the one that is prefetched */
    size_t high, next_high;                /* bytes from there to the bits above the fourth, where rows are split */
    size_t k;                              /* where the present chunk begins */
    uint8_t table[16];                     /* of codes of 4 bits: mt_code_lift added to their integers */
    uint8_t *planes;                       /* [MT_Q_PLANES][MT_Q_PLANE] */
    uint8_t *bytes;                        /* [VL][MT_Q_LDB] */
    mt_qscales scales_at[2], biases_at[2]; /* of the first VL columns, and of the others */
    float *scales, *biases;                /* of the chunk: [MT_Q_GROUPS][MT_Q_COLUMNS] */
} mt_qpanel;

/* A chunk of a panel: groups [g0, g1) of the scales */
typedef struct mt_qchunk {
    const uint8_t *w;
    const float *scales, *biases;    /* from g0 on; biases: NULL where there are none */
    size_t g0, g1, each, link, unit; /* each: units of a group */
    size_t planes, flush;            /* steps whose sums of pairs fit 16 bits */
    int lift;                        /* what was added to every weight to make it unsigned */
} mt_qchunk;

/* Bytes from element k of a split row to those of its bits above the fourth. */
static inline size_t mt_qpanel_high(const mt_mat *w, size_t k)
{
    return w->split ? (w->k - k) / 2 + k / mt_split_piece(w->bits) * 16 : 0;
}

/* Begins the panel of columns j .., up to n1; the last one stands for those beyond it, too. */
static inline void mt_qpanel_begin(mt_qpanel *p, size_t j, size_t n1)
{
    const mt_mat *w = p->w;
    for (size_t c = 0; c < MT_Q_COLUMNS; c++) {
        p->column[c] = j + c < n1 ? j + c : n1 - 1;
        p->after[c] = p->column[c] + MT_Q_COLUMNS < n1 ? p->column[c] + MT_Q_COLUMNS : p->column[c];
    }
    for (size_t h = 0; h < MT_Q_COLUMNS; h += VL) {
        mt_qscales_at(&p->scales_at[h / VL], w, w->scales, p->column + h);
        if (w->biases)
            mt_qscales_at(&p->biases_at[h / VL], w, w->biases, p->column + h);
    }
}

static inline void mt_qpanel_chunk(mt_qpanel *p, size_t k)
{
    const mt_mat *w = p->w;
    const size_t bits = w->split ? 4 : w->bits, at = k * bits / 8, step = MT_Q_CHUNK * bits / 8;
    p->k = k;
    p->high = mt_qpanel_high(w, k);
    p->next_high = mt_qpanel_high(w, k + MT_Q_CHUNK < w->k ? k + MT_Q_CHUNK : 0);
    for (size_t c = 0; c < MT_Q_COLUMNS; c++) {
        p->row[c] = w->w + p->column[c] * w->stride + at;
        p->next[c] = k + MT_Q_CHUNK < w->k ? p->row[c] + step : w->w + p->after[c] * w->stride;
    }
}

/* Whether unsigned integers have 7 or 8 bits. */
static inline bool mt_q_wide(const mt_mat *w)
{
    return mt_code_top(w) > 63;
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

/* Fetches the scales and biases of the next panel to the cache: with few rows the memory would have nothing else to do
   while they are widened. */
static inline void mt_qpanel_fetch(const mt_qpanel *p)
{
    const mt_mat *w = p->w;
    const size_t bytes = mt_scale_bytes(w->scale_type, w->k / w->group);
    for (size_t c = 0; c < MT_Q_COLUMNS; c++) {
        for (size_t i = 0; i < bytes; i += 64) {
            _mm_prefetch((const char *)(w->scales + p->after[c] * w->scale_stride + i), _MM_HINT_T0);
            if (w->biases)
                _mm_prefetch((const char *)(w->biases + p->after[c] * w->scale_stride + i), _MM_HINT_T0);
        }
    }
}

/* The scales and biases of groups [g0, g1) for columns h .. h+VL of the panel, each from its first row on */
static inline void mt_qpanel_scales(const mt_qpanel *p, size_t h, size_t g0, size_t g1)
{
    mt_qscales_widen(p->scales + h, MT_Q_COLUMNS, &p->scales_at[h / VL], p->w, g0, g1);
    if (p->w->biases)
        mt_qscales_widen(p->biases + h, MT_Q_COLUMNS, &p->biases_at[h / VL], p->w, g0, g1);
}

#endif

#endif
