/* Binds the experts of a layer from every known layout:

     experts.7.gate_proj                      one module an expert; LFM2 calls them w1, w3 and w2
     switch_mlp.gate_proj       [E, I, H]     stacked
     experts.gate_up_proj       [E, 2I, H]    stacked, gate above up
     experts.gate_up_proj       [E, H, 2I]    the same transposed: gate left of up; repacked, as kernels read rows
     input_linear               [E, 2I, H]    Granite's name of experts.gate_up_proj; output_linear is its down_proj
     switch_mlp.fc1, fc2        [E, I, H]     stacked, of experts without a gate

   Where rows are interleaved, gate and up are each every second row of one matrix.

   Whether gate_up_proj is transposed is decided by its shape, from hidden (H) and inner (I). A square tensor fits both
   ways; then its sibling decides: gate_up is square when 2I = H, down when I = H, and both cannot be. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "weights/bind_internal.h"

/* The experts that are wanted. */
typedef struct layer {
    mt_binder *b;
    char name[MT_BIND_NAME]; /* the module that contains the experts */
    size_t experts, hidden, inner;
    bool interleaved;
    mt_mat *gate, *up, *down; /* [experts]; gate NULL: they have none */
    const char *gate_up_name, *up_name, *down_name;
} layer;

typedef enum fit { FIT_NONE = 0, FIT_ROWS = 1, FIT_TRANSPOSED = 2, FIT_BOTH = 3 } fit;

static void member(const layer *l, const char *part, char *out)
{
    snprintf(out, MT_BIND_NAME, "%.*s.%s", (int)(MT_BIND_NAME - 64), l->name, part);
}

static const mt_tensor_info *find(const layer *l, const char *part)
{
    char name[MT_BIND_NAME];
    member(l, part, name);
    const mt_tensor_info *t = mt_binder_find(l->b, name, ".weight");
    return t ? t : mt_binder_find(l->b, name, "");
}

/* How tensor `part` fits experts x [n, k]. Only plain tensors can be transposed. */
static fit fit_of(const layer *l, const char *part, size_t n, size_t k)
{
    const mt_tensor_info *t = find(l, part);
    if (!t || t->dims != 3 || t->shape[0] != l->experts || mt_dtype_size(t->dtype) == 0)
        return FIT_NONE;
    unsigned rows = t->shape[1] == n && t->shape[2] == k ? FIT_ROWS : 0;
    unsigned transposed = t->shape[1] == k && t->shape[2] == n ? FIT_TRANSPOSED : 0;
    return (fit)(rows | transposed);
}

static bool is_transposed(fit own, fit sibling)
{
    return own == FIT_TRANSPOSED || (own == FIT_BOTH && sibling == FIT_TRANSPOSED);
}

/* dst[rows, cols] = transpose of the first `rows` columns of src[cols, ld], by tiles, so that cache lines are used
   whole. */
#define TILE 32
#define TRANSPOSE(name, type)                                                                    \
    static void name(uint8_t *dst, const uint8_t *src, size_t rows, size_t cols, size_t ld)      \
    {                                                                                            \
        type in[TILE][TILE], out[TILE];                                                          \
        for (size_t r0 = 0; r0 < rows; r0 += TILE) {                                             \
            const size_t nr = rows - r0 < TILE ? rows - r0 : TILE;                               \
            for (size_t c0 = 0; c0 < cols; c0 += TILE) {                                         \
                const size_t nc = cols - c0 < TILE ? cols - c0 : TILE;                           \
                for (size_t c = 0; c < nc; c++)                                                  \
                    memcpy(in[c], src + ((c0 + c) * ld + r0) * sizeof(type), nr * sizeof(type)); \
                for (size_t r = 0; r < nr; r++) {                                                \
                    for (size_t c = 0; c < nc; c++)                                              \
                        out[c] = in[c][r];                                                       \
                    memcpy(dst + ((r0 + r) * cols + c0) * sizeof(type), out, nc * sizeof(type)); \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }
TRANSPOSE(transpose16, uint16_t)
TRANSPOSE(transpose32, uint32_t)

static void transpose(uint8_t *dst, const uint8_t *src, size_t rows, size_t cols, size_t ld, size_t size)
{
    if (size == 2)
        transpose16(dst, src, rows, cols, ld);
    else
        transpose32(dst, src, rows, cols, ld);
}

/* out[e] = columns [first, first + n) of item e of `part` [experts, k, ld], as rows [n, k] in the arena. */
static bool repack(const layer *l, const char *part, size_t n, size_t k, size_t ld, size_t first, mt_mat *out)
{
    char name[MT_BIND_NAME];
    member(l, part, name);
    const mt_tensor_info *t = mt_binder_use(l->b, name, ".weight");
    if (!t)
        t = mt_binder_use(l->b, name, "");
    mt_binder_copied(l->b, t);
    size_t size = mt_dtype_size(t->dtype), bytes = n * k * size;
    if (l->b->headers_only) {
        l->b->cost.copied_bytes += l->experts * bytes;
        for (size_t e = 0; e < l->experts; e++)
            out[e] = mt_mat_plain(t->dtype, t->data, n, k);
        return true;
    }
    uint64_t start = mt_clock_ns();
    uint8_t *copy = mt_binder_copy(l->b, l->experts * bytes);
    for (size_t e = 0; e < l->experts && copy; e++) {
        transpose(copy + e * bytes, t->data + (e * k * ld + first) * size, n, k, ld, size);
        out[e] = mt_mat_plain(t->dtype, copy + e * bytes, n, k);
        mt_progress_add(&l->b->progress, 0);
    }
    l->b->cost.seconds += (double)(mt_clock_ns() - start) * 1e-9;
    return copy != NULL;
}

static bool stacked(const layer *l, const char *part, size_t n, size_t k, bool transposed, mt_mat *out)
{
    if (transposed)
        return repack(l, part, n, k, n, 0, out);
    char name[MT_BIND_NAME];
    mt_mat first;
    member(l, part, name);
    if (!mt_bind_module(l->b, name, l->experts, n, k, &first))
        return false;
    for (size_t e = 0; e < l->experts; e++)
        out[e] = mt_mat_item(&first, e);
    return true;
}

/* Every second row of a matrix, from row `first` (0 or 1) on. */
static mt_mat every_second(const mt_mat *both, size_t first)
{
    mt_mat out = mt_mat_rows(both, first, both->n / 2);
    out.stride *= 2;
    out.scale_stride *= 2;
    return out;
}

/* Sets gate and up of expert e from one matrix [2 inner, hidden]. */
static void divide(const layer *l, size_t e, const mt_mat *both)
{
    l->gate[e] = l->interleaved ? every_second(both, 0) : mt_mat_rows(both, 0, l->inner);
    l->up[e] = l->interleaved ? every_second(both, 1) : mt_mat_rows(both, l->inner, l->inner);
}

static bool fused(const layer *l, bool transposed)
{
    const char *whole = l->gate_up_name;
    size_t i = l->inner, h = l->hidden;
    char name[MT_BIND_NAME];
    mt_mat first;
    member(l, whole, name);
    if (transposed) { /* `down` serves as temporary space here, as it is bound later */
        if (!repack(l, whole, 2 * i, h, 2 * i, 0, l->down))
            return false;
        for (size_t e = 0; e < l->experts; e++)
            divide(l, e, &l->down[e]);
        return true;
    }
    if (!mt_bind_module(l->b, name, l->experts, 2 * i, h, &first))
        return false;
    if (mt_mat_cuts_scales(&first, i) || (first.scale_rows > 1 && l->interleaved))
        return mt_binder_miss(l->b, name, "gate and up apart", "found them sharing blocks of scales: %zu rows each", i);
    for (size_t e = 0; e < l->experts; e++) {
        const mt_mat both = mt_mat_item(&first, e);
        divide(l, e, &both);
    }
    return true;
}

static bool bind_fused(const layer *l)
{
    fit both = fit_of(l, l->gate_up_name, 2 * l->inner, l->hidden), down = fit_of(l, l->down_name, l->hidden, l->inner);
    bool ok = fused(l, is_transposed(both, down));
    return stacked(l, l->down_name, l->hidden, l->inner, is_transposed(down, both), l->down) && ok;
}

static bool bind_stacked(const layer *l)
{
    size_t i = l->inner, h = l->hidden;
    bool ok = !l->gate || stacked(l, "gate_proj", i, h, fit_of(l, "gate_proj", i, h) == FIT_TRANSPOSED, l->gate);
    ok = stacked(l, l->up_name, i, h, fit_of(l, l->up_name, i, h) == FIT_TRANSPOSED, l->up) && ok;
    return stacked(l, l->down_name, h, i, fit_of(l, l->down_name, h, i) == FIT_TRANSPOSED, l->down) && ok;
}

static bool bind_each(const layer *l)
{
    const bool plain = mt_binder_any(l->b, l->name, ".0.w1"); /* LFM2's names */
    bool ok = true;
    for (size_t e = 0; e < l->experts; e++) {
        const struct {
            const char *part;
            size_t n, k;
            mt_mat *out;
        } parts[] = {{plain ? "w1" : "gate_proj", l->inner, l->hidden, l->gate ? &l->gate[e] : NULL},
                     {plain ? "w3" : "up_proj", l->inner, l->hidden, &l->up[e]},
                     {plain ? "w2" : "down_proj", l->hidden, l->inner, &l->down[e]}};
        for (size_t p = l->gate ? 0 : 1; p < MT_COUNT(parts); p++) {
            char name[MT_BIND_NAME];
            snprintf(name, sizeof(name), "%.*s.%zu.%s", (int)(MT_BIND_NAME - 64), l->name, e, parts[p].part);
            ok = mt_bind_module(l->b, name, 0, parts[p].n, parts[p].k, parts[p].out) && ok;
        }
    }
    return ok;
}

/* Finds which layout the experts have, and binds them. */
static bool bind_layout(layer *l, const char *path)
{
    static const char *const stems[] = {"experts", "switch_mlp", "experts.switch_glu", "switch_glu"};
    char base[MT_BIND_NAME];
    mt_binder_name(l->b, path, base);
    for (size_t s = 0; s < MT_COUNT(stems); s++) {
        snprintf(l->name, sizeof(l->name), "%.*s.%s", (int)(MT_BIND_NAME - 64), base, stems[s]);
        if (mt_binder_any(l->b, l->name, ".0."))
            return bind_each(l);
        if (mt_binder_any(l->b, l->name, ".gate_up_proj"))
            return bind_fused(l);
        if (mt_binder_any(l->b, l->name, l->gate ? ".gate_proj" : ".up_proj"))
            return bind_stacked(l);
        if (!l->gate && mt_binder_any(l->b, l->name, ".fc1")) {
            l->up_name = "fc1";
            l->down_name = "fc2";
            return bind_stacked(l);
        }
    }
    if (mt_binder_any(l->b, base, ".input_linear")) {
        snprintf(l->name, sizeof(l->name), "%.*s", (int)(MT_BIND_NAME - 64), base);
        l->gate_up_name = "input_linear";
        l->down_name = "output_linear";
        return bind_fused(l);
    }
    char wanted[MT_SHAPE_TEXT];
    snprintf(wanted, sizeof(wanted), "%zu experts of [%zu, %zu]", l->experts, l->inner, l->hidden);
    snprintf(l->name, sizeof(l->name), "%.*s.experts", (int)(MT_BIND_NAME - 64), base);
    return mt_binder_miss(l->b, l->name, wanted, "absent");
}

bool mt_bind_experts(mt_binder *b, const char *path, size_t experts, size_t hidden, size_t inner, bool interleaved,
                     mt_mat *gate, mt_mat *up, mt_mat *down)
{
    layer l = {.b = b,
               .experts = experts,
               .hidden = hidden,
               .inner = inner,
               .interleaved = interleaved,
               .gate = gate,
               .up = up,
               .down = down,
               .gate_up_name = "gate_up_proj",
               .up_name = "up_proj",
               .down_name = "down_proj"};
    if (gate)
        memset(gate, 0, experts * sizeof(*gate));
    memset(up, 0, experts * sizeof(*up));
    memset(down, 0, experts * sizeof(*down));
    return bind_layout(&l, path);
}
