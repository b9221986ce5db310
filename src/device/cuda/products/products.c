/* Products y = x W' on the host's side: which kernel multiplies which weights. The choice is one table, from the first
   row that fits: a row names a format, rows, the least card, and the kernel. */
#include <assert.h>

#include "base/compiler.h"
#include "device/cuda/cuda.h"

#define PARTS 128 /* most rows that are multiplied in parts: two of up to MT_CUDA_FEW_ROWS */
#define ROWS 8    /* rows of a block of the kernels for any rows */
#define WARPS 4   /* warps of such a block: 16 columns each */
#define MANY UINT32_MAX
#define USUAL 1u /* groups of 32, 64 or 128 */

/* Formats, a bit each: codes of 4 bits and of 8, signed codes of 8 bits, bf16, FP8; what has no tiles; fp32, whatever
   the format; `native`. */
enum { C4 = 1, C8 = 2, S8 = 4, BF16 = 8, FP8 = 16, PLAIN = 32, F32 = 64, NATIVE = 128 };

/* What a kernel needs of a weight with codes: scales and biases in bf16; k a multiple of 128 as well. */
enum { ANY, PAIRS, WHOLE };

/* Where the rows come from: the kernel reads x, or packed rows. */
enum { READS, PACKED };

typedef struct product {
    unsigned formats;
    uint32_t group; /* of codes; 0: any */
    unsigned scales;
    uint32_t from, to; /* rows */
    int card;
    mt_cuda_kernel kernel;                                                          /* MT_K_COUNT: `list` chooses */
    bool (*list)(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p); /* false: it does not fit */
    unsigned rows;
} product;

static bool mt_cuda_list_native(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p)
{
    (void)kernel;
    mt_cuda_native_launch(dev, p->y, p->w, p->count, p->m);
    return true;
}

static bool mt_cuda_list_native_row(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p)
{
    (void)kernel;
    return mt_cuda_native_row(dev, p);
}

static bool mt_cuda_list_any(mt_device *dev, mt_cuda_kernel kernel, const mt_cuda_products *p)
{
    (void)kernel;
    for (size_t i = 0; i < p->count; i++)
        mt_cuda_any_launch(dev, p->w[i], (mt_cuda_product){.y = p->y[i]->m, .x = p->x, .m = (uint32_t)p->m}, 0);
    return true;
}

#define ROW(formats_, group_, scales_, from_, to_, card_, kernel_, list_, rows_) \
    {.formats = (formats_),                                                      \
     .group = (group_),                                                          \
     .scales = (scales_),                                                        \
     .from = (from_),                                                            \
     .to = (to_),                                                                \
     .card = (card_),                                                            \
     .kernel = MT_K_##kernel_,                                                   \
     .list = mt_cuda_list_##list_,                                               \
     .rows = (rows_)},

/* clang-format off */
static const product products[] = {
    /*  formats              group   scales rows       card kernel                        listed  rows are */
    ROW(NATIVE,              0,     ANY,    1, 1,    90, COUNT,                    native_row, READS)
    ROW(NATIVE,              0,     ANY,    1, MANY, 90, COUNT,                        native, PACKED)
    ROW(F32,                 0,     ANY,    1, MANY,  0, COUNT,                        f32,    READS)
    ROW(F32,                 0,     ANY,    1, MANY,  0, matmul_f32_any,               any,    PACKED)

    ROW(C4,                  64,    WHOLE,  1, 1,    90, matvec_w4_g64,                row,    READS)
    ROW(C8 | S8,             64,    WHOLE,  1, 1,    90, matvec_w8_g64,                row,    READS)
    ROW(C4,                  64,    WHOLE,  1, 1,    90, matvec_w4_g64,                rows,   PACKED)
    ROW(C8 | S8,             64,    WHOLE,  1, 1,    90, matvec_w8_g64,                rows,   PACKED)
    ROW(C4,                  64,    WHOLE,  2, 8,    90, matmul_w4_g64_rows2_8,        rows,   PACKED)
    ROW(C8 | S8,             64,    WHOLE,  2, 8,    90, matmul_w8_g64_rows2_8,        rows,   PACKED)
    ROW(C4,                  64,    WHOLE,  1, 8,    90, matmul_w4_g64_ring_rows1_8,   few,    PACKED)
    ROW(C8 | S8,             64,    WHOLE,  1, 8,    90, matmul_w8_g64_ring_rows1_8,   few,    PACKED)
    ROW(C8 | S8,             64,    WHOLE,  9, 16,   90, matmul_w8_g64_ring_rows9_16,  few,    PACKED)
    ROW(C8 | S8,             64,    WHOLE, 17, 32,   90, matmul_w8_g64_ring_rows17_32, few,    PACKED)
    ROW(C8 | S8,             64,    WHOLE, 33, 64,   90, matmul_w8_g64_ring_rows33_64, few,    PACKED)
    ROW(C4,                  USUAL, ANY,    1, 8,    90, matmul_w4_ring_rows1_8,       few,    PACKED)
    /* half of its 128 rows are idle, yet an 8B has 4,177 tokens/s with 64 answers, and 2,853 with the ring */
    ROW(C4,                  64,    PAIRS, 33, 64,   90, matmul_w4_g64_hopper_rows65,  many,   PACKED)
    ROW(C4,                  USUAL, ANY,    9, 16,   90, matmul_w4_ring_rows9_16,      few,    PACKED)
    ROW(C4,                  USUAL, ANY,   17, 32,   90, matmul_w4_ring_rows17_32,     few,    PACKED)
    ROW(C4,                  USUAL, ANY,   33, 64,   90, matmul_w4_ring_rows33_64,     few,    PACKED)
    ROW(C8 | S8,             USUAL, ANY,    1, 8,    90, matmul_w8_ring_rows1_8,       few,    PACKED)
    ROW(C8 | S8,             USUAL, ANY,    9, 16,   90, matmul_w8_ring_rows9_16,      few,    PACKED)
    ROW(C8 | S8,             USUAL, ANY,   17, 32,   90, matmul_w8_ring_rows17_32,     few,    PACKED)
    ROW(C8 | S8,             USUAL, ANY,   33, 64,   90, matmul_w8_ring_rows33_64,     few,    PACKED)

    ROW(C4,                  64,    PAIRS, 65, MANY, 90, matmul_w4_g64_hopper_rows65,  many,   PACKED)
    ROW(C4,                  128,   PAIRS, 65, MANY, 90, matmul_w4_g128_hopper_rows65, many,   PACKED)
    ROW(C4,                  32,    PAIRS, 65, MANY,  0, matmul_w4_g32_bf16_rows65,    many,   PACKED)
    ROW(C4,                  64,    PAIRS, 65, MANY,  0, matmul_w4_g64_bf16_rows65,    many,   PACKED)
    ROW(C4,                  128,   PAIRS, 65, MANY,  0, matmul_w4_g128_bf16_rows65,   many,   PACKED)
    ROW(C8,                  32,    PAIRS, 65, MANY,  0, matmul_w8_g32_bf16_rows65,    many,   PACKED)
    ROW(C8,                  64,    PAIRS, 65, MANY,  0, matmul_w8_g64_bf16_rows65,    many,   PACKED)
    ROW(C8,                  128,   PAIRS, 65, MANY,  0, matmul_w8_g128_bf16_rows65,   many,   PACKED)
    ROW(C4,                  32,    ANY,   65, MANY,  0, matmul_w4_g32_rows65,         many,   PACKED)
    ROW(C4,                  64,    ANY,   65, MANY,  0, matmul_w4_g64_rows65,         many,   PACKED)
    ROW(C4,                  128,   ANY,   65, MANY,  0, matmul_w4_g128_rows65,        many,   PACKED)
    ROW(C8,                  32,    ANY,   65, MANY,  0, matmul_w8_g32_rows65,         many,   PACKED)
    ROW(C8,                  64,    ANY,   65, MANY,  0, matmul_w8_g64_rows65,         many,   PACKED)
    ROW(C8,                  128,   ANY,   65, MANY,  0, matmul_w8_g128_rows65,        many,   PACKED)
    ROW(S8,                  USUAL, ANY,   65, MANY,  0, matmul_s8_rows65,             many,   PACKED)

    ROW(BF16 | FP8,          0,     ANY,    1, 64,   90, COUNT,                        bf16,   PACKED)
    ROW(BF16,                0,     ANY,   65, MANY, 90, matmul_bf16_hopper_rows65,    many,   PACKED)
    ROW(BF16,                0,     ANY,   65, MANY,  0, matmul_bf16_rows65,           many,   PACKED)
    ROW(FP8,                 0,     ANY,   65, MANY,  0, matmul_fp8_rows65,            many,   PACKED)

    /* what is left, for instance codes in groups of 16 */
    ROW(C4,                  0,     ANY,    1, MANY,  0, matmul_w4_any,                any,    PACKED)
    ROW(C8 | S8,             0,     ANY,    1, MANY,  0, matmul_w8_any,                any,    PACKED)
    ROW(BF16 | FP8 | PLAIN,  0,     ANY,    1, MANY,  0, matmul_bf16_any,              any,    PACKED)
};
/* clang-format on */

static unsigned format_of(const mt_weight *w)
{
    if (w->class == MT_CLASS_N || w->class == MT_CLASS_F)
        return w->class == MT_CLASS_N ? NATIVE : F32;
    switch (w->d.kind) {
    case MT_CUDA_CODES4: return C4;
    case MT_CUDA_CODES8: return w->d.format == MT_FORMAT_AFFINE ? C8 : S8;
    case MT_CUDA_HALVES: return BF16;
    case MT_CUDA_BYTES: return FP8;
    default: return PLAIN;
    }
}

static bool fits(const mt_device *dev, const product *p, const mt_weight *w, size_t m)
{
    const uint32_t group = w->d.group;
    const bool usual = group == 32 || group == 64 || group == 128;
    return p->formats & format_of(w) && m >= p->from && m <= p->to && dev->code >= p->card &&
           (p->group == 0 || p->group == group || (p->group == USUAL && usual)) &&
           (p->scales == ANY || w->d.pairs == MT_SCALE_BF16) && (p->scales != WHOLE || w->d.k % MT_CUDA_STEP == 0);
}

static const product *find(const mt_device *dev, const mt_weight *w, size_t m)
{
    const product *p = products;
    while (!fits(dev, p, w, m))
        p++;
    return p;
}

mt_cuda_kernel mt_cuda_product_kernel(const mt_device *dev, const mt_weight *w, size_t m)
{
    return find(dev, w, m)->kernel;
}

void mt_cuda_any_launch(mt_device *dev, const mt_weight *w, mt_cuda_product p, size_t shares)
{
    const size_t columns = w->class == MT_CLASS_F ? 8 : 16 * WARPS; /* of a block */
    const size_t rows = p.shares.experts ? shares : (p.m + ROWS - 1) / ROWS;
    const product *any = products + MT_COUNT(products) - 1;
    while (any->list != mt_cuda_list_any || !(any->formats & format_of(w)))
        any--;
    p.w = w->d;
    p.from = dev->packed;
    mt_cuda_launch(dev, any->kernel, (w->d.n + columns - 1) / columns, rows, 1, 128, 0, &p);
}

/* ---- an operation ---- */

static bool alike(const mt_weight *a, const mt_weight *b)
{
    const mt_cuda_weight *p = &a->d, *q = &b->d;
    if (a->class == MT_CLASS_N || b->class == MT_CLASS_N)
        return mt_cuda_native_alike(a, b);
    return a->class == b->class && p->kind == q->kind && p->format == q->format && p->group == q->group &&
           p->pairs == q->pairs && p->biased == q->biased && p->k == q->k && (a->mat.bits == 8) == (b->mat.bits == 8);
}

/* Whether rows that are packed for one weight are those that the other needs. */
bool mt_cuda_same_rows(const mt_weight *a, const mt_weight *b)
{
    return a->class == b->class &&
           (a->class != MT_CLASS_Q || (a->d.group == b->d.group && (a->mat.bits == 8) == (b->mat.bits == 8)));
}

static void pack(mt_device *dev, const mt_cuda_products *p)
{
    if (p->w[0]->class == MT_CLASS_N)
        mt_cuda_native_pack(dev, p->w, p->count, p->x, p->m);
    else
        mt_cuda_pack_rows(dev, p->w[0], p->x, 0, p->m);
}

/* Multiplies the first weights, as many as one kernel takes, and returns how many these are. packed: the last weight
   that rows were packed for. */
static size_t multiply_some(mt_device *dev, mt_cuda_products p, const mt_weight **packed)
{
    const mt_weight *w = p.w[0];
    size_t together = 1;
    while (together < p.count && together < MT_CUDA_TOGETHER && alike(w, p.w[together]))
        together++;
    p.count = together;
    for (const product *row = products;; row++) {
        if (!fits(dev, row, w, p.m))
            continue;
        if (row->rows == PACKED && (!*packed || !mt_cuda_same_rows(w, *packed))) {
            pack(dev, &p);
            *packed = w;
        }
        if (row->list(dev, row->kernel, &p))
            return together;
    }
}

static mt_tensor rows_from(const mt_tensor *t, size_t row)
{
    mt_tensor part = *t;
    part.m.data += row * t->m.stride * sizeof(float);
    return part;
}

/* Somewhat more rows than kernels of few rows take: they are faster part by part, since kernels of many rows leave most
   of the card idle. */
static bool multiply_parts(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count,
                           const mt_tensor *x, size_t m)
{
    if (m <= MT_CUDA_FEW_ROWS || m > PARTS || count > MT_CUDA_TOGETHER)
        return false;
    for (size_t i = 0; i < count; i++)
        if (w[i]->class != MT_CLASS_N && find(dev, w[i], MT_CUDA_FEW_ROWS)->to != MT_CUDA_FEW_ROWS)
            return false;
    for (size_t row = 0, rows; row < m; row += rows) {
        const size_t parts = (m - row + MT_CUDA_FEW_ROWS - 1) / MT_CUDA_FEW_ROWS;
        mt_tensor to[MT_CUDA_TOGETHER], from = rows_from(x, row), *tos[MT_CUDA_TOGETHER];
        rows = (m - row + parts - 1) / parts; /* parts of about the same size */
        for (size_t i = 0; i < count; i++) {
            to[i] = rows_from(y[i], row);
            tos[i] = &to[i];
        }
        mt_cuda_op_matmul(dev, tos, w, count, &from, rows);
    }
    return true;
}

void mt_cuda_op_matmul(mt_device *dev, mt_tensor *const *y, const mt_weight *const *w, size_t count, const mt_tensor *x,
                       size_t m)
{
    const mt_weight *packed = NULL;
    assert(m <= dev->rows);
    if (multiply_parts(dev, y, w, count, x, m))
        return;
    for (size_t i = 0; i < count;)
        i += multiply_some(dev, (mt_cuda_products){.y = y + i, .w = w + i, .count = count - i, .x = x->m, .m = m},
                           &packed);
}
