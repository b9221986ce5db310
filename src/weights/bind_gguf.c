/* Binds tensors of GGUF's block types (gguf_blocks.h): codes and scales, which lie together in a block, are laid out
   anew, all codes of a row and all its scales one behind the other, as the kernels read them (matrix.h). Codes of 5 and
   6 bits are split (unpack.h). Nothing is rounded: a weight decodes to the same fp32 bits as before. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "kernels/convert.h"
#include "kernels/unpack.h"
#include "weights/bind_internal.h"
#include "weights/gguf_blocks.h"

enum {
    PADDING = 64,    /* bytes behind scales, which kernels may read in larger pieces */
    BATCH = 16 << 20 /* bytes of the file between two steps of the progress bar */
};

typedef struct laying {
    const mt_gguf_layout *l;
    const uint8_t *from;
    size_t each, bytes, row_bytes; /* elements and bytes of a block; bytes of a row in the file */
    size_t n, first;               /* rows of an item of the stack; first row of the batch */
    const uint32_t *order;
    const uint32_t *places; /* where each piece of a row's columns goes, in pieces of `piece`; NULL: where it is */
    size_t piece;
    mt_mat m;
    uint8_t *w, *scales, *biases; /* of m, to be written */
} laying;

/* ---- codes ---- */

static void put_nibbles(uint8_t *to, const uint8_t *code, size_t n)
{
    for (size_t i = 0; i < n / 2; i++)
        to[i] = (uint8_t)((code[2 * i] & 15) | code[2 * i + 1] << 4);
}

/* The bits of n codes above the fourth, from element k of the row on. */
static void put_high(uint8_t *high, const uint8_t *code, size_t k, size_t n, unsigned bits)
{
    const size_t piece = mt_split_piece(bits);
    for (size_t i = 0; i < n; i += 32) {
        uint8_t *at = high + (k + i) / piece * 16;
        const unsigned shift = (unsigned)((k + i) % piece / 32 * (bits - 4));
        for (size_t j = 0; j < 16; j++)
            at[j] = (uint8_t)(at[j] | (code[i + 2 * j] >> 4) << shift | (code[i + 2 * j + 1] >> 4) << (shift + 4));
    }
}

/* n % 8 == 0 */
static void put_stream(uint8_t *to, const uint8_t *code, size_t n, unsigned bits)
{
    for (size_t i = 0; i < n; i += 8, to += bits) {
        uint64_t word = 0;
        for (unsigned j = 0; j < 8; j++)
            word |= (uint64_t)code[i + j] << j * bits;
        for (unsigned j = 0; j < bits; j++)
            to[j] = (uint8_t)(word >> 8 * j);
    }
}

static void put_codes(const laying *p, uint8_t *row, const uint8_t *code, size_t k, size_t n)
{
    const mt_mat *m = &p->m;
    if (m->bits == 8) {
        memcpy(row + k, code, n);
    } else if (m->bits == 4 || m->split) {
        put_nibbles(row + k / 2, code, n);
        if (m->split)
            put_high(row + m->k / 2, code, k, n, m->bits);
    } else {
        put_stream(row + k * m->bits / 8, code, n, m->bits);
    }
}

/* ---- scales ---- */

static void put_half(uint8_t *to, uint16_t half)
{
    memcpy(to, &half, sizeof(half));
}

/* Writes the scales of the block at element k of the row; biases are NULL where the type has none. */
static void put_scales(const laying *p, uint8_t *scales, uint8_t *biases, const mt_gguf_block *o, size_t k)
{
    const mt_scale_type type = p->m.scale_type;
    const size_t groups = p->each / p->l->group;
    const size_t at = mt_scale_bytes(type, k / p->l->group);
    const uint16_t bias = (uint16_t)(p->l->minimum ? o->dmin ^ 0x8000u : o->dmin);
    if (type == MT_SCALE_E8M0 || type == MT_SCALE_E4M3) {
        memcpy(scales + at, o->byte, groups);
        return;
    }
    put_half(scales + at, o->d);
    if (biases)
        put_half(biases + at, bias);
    if (!p->l->two_level)
        return;
    memcpy(scales + at + 2, o->scale, groups);
    if (biases)
        memcpy(biases + at + 2, o->least, groups);
}

/* The scales of n elements of a block, from `first` on, whose groups are apart from those of the rest: as floats, which
   hold the product of an f16 and a byte exactly. */
static void put_apart(const laying *p, uint8_t *scales, uint8_t *biases, const mt_gguf_block *o, size_t first, size_t k,
                      size_t n)
{
    const uint16_t bias = (uint16_t)(p->l->minimum ? o->dmin ^ 0x8000u : o->dmin);
    for (size_t i = 0; i < n; i += p->l->group) {
        const size_t g = (first + i) / p->l->group, at = (k + i) / p->l->group * sizeof(float);
        const float scale = mt_f32_from_f16(o->d) * (float)o->scale[g],
                    least = mt_f32_from_f16(bias) * (float)o->least[g];
        memcpy(scales + at, &scale, sizeof(scale));
        if (biases)
            memcpy(biases + at, &least, sizeof(least));
    }
}

/* A block whose pieces go to several places; source: its first column. */
static void put_pieces(const laying *p, uint8_t *row, uint8_t *scales, uint8_t *biases, const mt_gguf_block *o,
                       size_t source)
{
    const size_t n = p->piece < p->each ? p->piece : p->each;
    for (size_t i = 0; i < p->each; i += n) {
        const size_t from = source + i, k = p->places[from / p->piece] * p->piece + from % p->piece;
        put_codes(p, row, o->code + i, k, n);
        if (p->l->two_level)
            put_apart(p, scales, biases, o, i, k, n);
        else
            put_scales(p, scales, biases, o, k);
    }
}

/* ---- rows ---- */

static void lay_row(void *ctx, size_t item, size_t worker)
{
    const laying *p = ctx;
    const size_t r = p->first + item, from = p->order ? r / p->n * p->n + p->order[r % p->n] : r;
    const uint8_t *block = p->from + from * p->row_bytes;
    uint8_t *row = p->w + r * p->m.stride, *scales = p->scales + r * p->m.scale_stride;
    uint8_t *biases = p->biases ? p->biases + r * p->m.scale_stride : NULL;
    (void)worker;
    for (size_t k = 0; k < p->m.k; k += p->each, block += p->bytes) {
        mt_gguf_block o;
        p->l->open(&o, block);
        if (p->places) {
            put_pieces(p, row, scales, biases, &o, k);
            continue;
        }
        put_codes(p, row, o.code, k, p->each);
        put_scales(p, scales, biases, &o, k);
    }
}

static void lay_all(mt_binder *b, laying *p, size_t rows)
{
    const uint64_t start = mt_clock_ns();
    const size_t batch = BATCH / p->row_bytes + 1;
    for (p->first = 0; p->first < rows; p->first += batch) {
        mt_binder_run(b, lay_row, p, rows - p->first < batch ? rows - p->first : batch);
        mt_progress_add(&b->progress, 0);
    }
    b->cost.seconds += (double)(mt_clock_ns() - start) * 1e-9;
}

static mt_scale_type scale_type_of(const mt_gguf_layout *l)
{
    if (mt_formats[l->format].scale_type)
        return mt_formats[l->format].scale_type;
    return !l->two_level ? MT_SCALE_F16 : l->group == 16 ? MT_SCALE_16_OF_F16 : MT_SCALE_8_OF_F16;
}

/* Where the format has them: the factor of the tensor, or of each item of the stack, as f32 in ".scale" beside
   ".weight". */
static bool bind_factor(mt_binder *b, const mt_tensor_info *t, size_t items, mt_mat *m)
{
    static const char suffix[] = ".weight";
    char name[MT_BIND_NAME], wanted[MT_SHAPE_TEXT];
    size_t len = strlen(t->name);
    if (len >= sizeof(suffix) && strcmp(t->name + len - (sizeof(suffix) - 1), suffix) == 0)
        len -= sizeof(suffix) - 1;
    snprintf(name, sizeof(name), "%.*s", (int)len, t->name);
    const mt_tensor_info *scale = mt_formats[m->format].global ? mt_binder_use(b, name, ".scale") : NULL;
    if (!scale)
        return true;
    const size_t count = (size_t)(scale->bytes / sizeof(float));
    mt_shape_text(wanted, (const uint64_t[]){items}, 1);
    if (scale->dtype != MT_DTYPE_F32 || (count != 1 && count != items))
        return mt_binder_miss(b, scale->name, wanted, "found %s of %zu numbers", scale->dtype_name, count);
    mt_binder_copied(b, scale);
    float *factors = mt_binder_copy(b, items * sizeof(*factors));
    for (size_t i = 0; i < items && factors && !b->headers_only; i++)
        memcpy(&factors[i], scale->data + (count == 1 ? 0 : i) * sizeof(*factors), sizeof(*factors));
    if (factors && !b->headers_only) {
        m->global = factors[0];
        m->globals = factors;
    }
    return factors != NULL;
}

static mt_mat shape_of(const mt_gguf_layout *l, size_t n, size_t k)
{
    const bool split = l->bits == 5 || l->bits == 6;
    const mt_scale_type type = scale_type_of(l);
    return (mt_mat){.format = l->format,
                    .scale_type = type,
                    .bits = l->bits,
                    .group = l->group,
                    .split = split,
                    .n = n,
                    .k = k,
                    .stride = mt_code_row(k, l->bits, split),
                    .scale_stride = mt_scale_bytes(type, k / l->group),
                    .global = 1};
}

/* Finds memory for `rows` rows and lays them out there. */
static bool lay_out(mt_binder *b, const mt_tensor_info *t, laying *p, size_t rows)
{
    const bool biased = mt_formats[p->m.format].biased;
    const size_t scale_bytes = rows * p->m.scale_stride + PADDING;
    if (b->headers_only) {
        b->cost.copied_bytes += rows * p->m.stride + (biased ? 2 : 1) * scale_bytes;
        p->m.w = p->m.scales = t->data;
        p->m.biases = biased ? t->data : NULL;
        return true;
    }
    p->m.w = p->w = mt_binder_copy(b, rows * p->m.stride);
    p->m.scales = p->scales = mt_binder_copy(b, scale_bytes);
    p->m.biases = p->biases = biased ? mt_binder_copy(b, scale_bytes) : NULL;
    if (!p->w || !p->scales || (biased && !p->biases))
        return false;
    lay_all(b, p, rows);
    return true;
}

/* Prepares columns in another order. Pieces are whole blocks, or blocks whole pieces of whole groups. */
static bool move_columns(mt_binder *b, const mt_tensor_info *t, laying *p)
{
    const mt_tensor_fix *fix = t->fix;
    if (!fix || !fix->columns)
        return true;
    const size_t pieces = p->m.k / fix->piece;
    if ((fix->piece % p->each != 0 && (p->each % fix->piece != 0 || fix->piece % 32 != 0 || !p->l->two_level)))
        return mt_binder_miss(b, t->name, "heads of whole blocks", "found heads of %zu columns in %s", fix->piece,
                              t->dtype_name);
    uint32_t *places = mt_arena_alloc(b->arena, pieces * sizeof(*places));
    for (size_t i = 0; places && i < pieces; i++)
        places[fix->columns[i]] = (uint32_t)i;
    p->places = places;
    p->piece = fix->piece;
    if (p->l->two_level) {
        p->m.scale_type = MT_SCALE_F32;
        p->m.scale_stride = mt_scale_bytes(MT_SCALE_F32, p->m.k / p->l->group);
    }
    return places != NULL;
}

bool mt_gguf_blocks_bind(mt_binder *b, const mt_tensor_info *t, size_t stack, size_t n, size_t k,
                         const uint32_t *row_order, mt_mat *out)
{
    const mt_gguf_layout *l = mt_gguf_layout_of(t->ggml_type);
    const size_t each = mt_gguf_block_elements(t->ggml_type), bytes = mt_gguf_block_bytes(t->ggml_type);
    const size_t items = stack ? stack : 1;
    char wanted[MT_SHAPE_TEXT], found[MT_SHAPE_TEXT];
    memset(out, 0, sizeof(*out));
    mt_shape_text(wanted, stack ? (const uint64_t[]){stack, n, k} : (const uint64_t[]){n, k}, stack ? 3 : 2);
    mt_shape_text(found, t->shape, t->dims);
    if (!l)
        return mt_binder_miss(b, t->name, wanted, "found type %s, %s", t->dtype_name,
                              mt_gguf_type_refused(t->ggml_type));
    if (k == 0 || k % each != 0 || strcmp(wanted, found) != 0)
        return mt_binder_miss(b, t->name, wanted, "found %s %s", t->dtype_name, found);
    laying p = {.l = l,
                .from = t->data,
                .each = each,
                .bytes = bytes,
                .row_bytes = k / each * bytes,
                .n = n,
                .order = row_order,
                .m = shape_of(l, n, k)};
    mt_binder_copied(b, t);
    if (!bind_factor(b, t, items, &p.m) || !move_columns(b, t, &p) || !lay_out(b, t, &p, items * n))
        return false;
    *out = p.m;
    return true;
}
