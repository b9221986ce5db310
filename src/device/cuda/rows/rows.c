/* The operations of device.h on the host's side: which kernel runs, with which parameters, on how many blocks. */
#include <assert.h>

#include "device/cuda/cuda.h"

#define THREADS 256
#define PART 1024   /* columns of a row that a block has, where rows are few */
#define PACKERS 128 /* threads of a block that packs rows */
#define ROWS 8      /* rows of a block of a product */
#define WARPS 4     /* warps of a block of a product: 16 columns each */
#define PARTS 128   /* most rows that are multiplied in parts: two of up to MT_CUDA_FEW_ROWS */

/* One block a row. */
static void each_row(mt_device *dev, mt_cuda_kernel kernel, mt_cuda_rows p)
{
    mt_cuda_launch(dev, kernel, p.m, 1, 1, THREADS, 0, &p);
}

/* A warp a part of a row. */
static size_t part_blocks(size_t m, size_t cols)
{
    const size_t warps = MT_CUDA_PART_THREADS / 32;
    return (m * ((mt_cuda_up(cols, MT_CUDA_STEP) + MT_CUDA_PART - 1) / MT_CUDA_PART) + warps - 1) / warps;
}

/* Blocks of a row that have `each` columns: several where rows are few, so that all of a row is read at once. */
static size_t parts(size_t m, size_t cols, size_t each)
{
    return m <= MT_CUDA_FEW_ROWS ? (cols + each - 1) / each : 1;
}

/* So many blocks a row, for kernels with four columns a thread. */
static void each_part(mt_device *dev, mt_cuda_kernel kernel, mt_cuda_rows p, size_t cols)
{
    mt_cuda_launch(dev, kernel, p.m, parts(p.m, cols, PART), 1, THREADS, 0, &p);
}

static mt_cuda_mat matrix(const mt_tensor *t)
{
    return t ? t->m : (mt_cuda_mat){0};
}

void mt_cuda_op_copy_row(mt_device *dev, mt_tensor *y, size_t to, const mt_tensor *x, size_t from)
{
    mt_cuda_do(dev, "copy a row", copy, y->m.data + to * y->m.stride * sizeof(float),
               x->m.data + from * x->m.stride * sizeof(float), x->m.cols * sizeof(float), mt_cuda_stream(dev));
}

/* There is one rank only: see open_cuda. */
/* mt_cuda_kv_new refuses latents, for which these two are. */
void mt_cuda_op_turn_ends(mt_device *dev, mt_tensor *y, size_t y_dim, const mt_tensor *x, size_t x_dim, size_t count,
                          size_t m, const mt_tensor *table, bool pairs)
{
    (void)y, (void)y_dim, (void)x, (void)x_dim, (void)count, (void)m, (void)table, (void)pairs;
    mt_cuda_refuse(dev, "latent attention");
}

void mt_cuda_op_matmul_heads(mt_device *dev, mt_tensor *y, size_t y_dim, const mt_weight *w, mt_head_rows how,
                             const mt_tensor *x, size_t x_dim, size_t m)
{
    (void)y, (void)y_dim, (void)w, (void)how, (void)x, (void)x_dim, (void)m;
    mt_cuda_refuse(dev, "latent attention");
}

void mt_cuda_op_share(mt_device *dev, mt_tensor *x, size_t slices, size_t m, bool all)
{
    (void)dev, (void)x, (void)slices, (void)m, (void)all;
}

void mt_cuda_op_clear(mt_device *dev, mt_tensor *y, size_t row, size_t m)
{
    for (size_t i = row; i < row + m; i++)
        mt_cuda_do(dev, "clear a row", set_bytes, y->m.data + i * y->m.stride * sizeof(float), 0,
                   y->m.cols * sizeof(float), mt_cuda_stream(dev));
}

void mt_cuda_op_gather(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_index *index, size_t m)
{
    each_part(dev, MT_K_copy_rows, (mt_cuda_rows){.y = y->m, .x = x->m, .index = index->data, .m = (uint32_t)m},
              x->m.cols);
}

void mt_cuda_op_scatter(mt_device *dev, mt_tensor *y, const mt_index *to, size_t column, const mt_tensor *x, size_t m)
{
    each_row(dev, MT_K_scatter_rows,
             (mt_cuda_rows){.y = y->m, .x = x->m, .index = to->data, .m = (uint32_t)m, .first = (uint32_t)column});
}

void mt_cuda_op_sum_rows(mt_device *dev, mt_tensor *y, const mt_index *to, const mt_tensor *x, size_t m)
{
    mt_cuda_rows p = {.y = y->m, .x = x->m, .index = to->data, .m = (uint32_t)m};
    mt_cuda_launch(dev, MT_K_sum_rows, (x->m.cols + THREADS - 1) / THREADS, 1, 1, THREADS, 0, &p);
}

void mt_cuda_op_embed(mt_device *dev, mt_tensor *x, const mt_weight *w, float scale)
{
    assert(w->class != MT_CLASS_N); /* what is looked up is exact */
    mt_cuda_lookup p = {.y = x->m, .w = w->d, .index = dev->step.tokens, .m = dev->step.rows, .scale = scale};
    mt_cuda_launch(dev, MT_K_embed, p.m, parts(p.m, x->m.cols, THREADS), 1, THREADS, 0, &p);
}

void mt_cuda_op_add_rows(mt_device *dev, mt_tensor *x, const mt_weight *w, const mt_index *index,
                         const mt_tensor *factor, size_t count, size_t m)
{
    mt_cuda_lookup p = {.y = x->m,
                        .w = w->d,
                        .factor = matrix(factor),
                        .index = index->data,
                        .m = (uint32_t)m,
                        .count = (uint32_t)count};
    mt_cuda_launch(dev, MT_K_add_rows, m, 1, 1, THREADS, 0, &p);
}

void mt_cuda_op_features(mt_device *dev, mt_tensor *x, const mt_tensor *features, size_t column, bool add)
{
    each_row(dev, MT_K_features,
             (mt_cuda_rows){.y = x->m,
                            .x = features->m,
                            .step = dev->step,
                            .m = dev->step.rows,
                            .first = (uint32_t)column,
                            .kind = add});
}

enum { ADD, GATE, ADD_GATED, SCALE }; /* as in rows.cu */

/* What the last kernel adds to rows that are normed now is added by the norm: these are read and written once. */
static mt_cuda_mat take_sum(mt_device *dev, mt_cuda_mat x, size_t m)
{
    const mt_cuda_rows *last = mt_cuda_last(dev, MT_K_binary, MT_K_binary);
    if (!last || last->kind != ADD || last->y.data != x.data || last->y.cols != x.cols || last->m != m)
        return (mt_cuda_mat){0};
    const mt_cuda_mat added = last->x;
    mt_cuda_drop(dev);
    return added;
}

/* Few rows have a kernel that products of few rows know how to take in. */
void mt_cuda_op_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w, float eps,
                     float offset)
{
    mt_cuda_made p = {.rows = {.y = y->m, .x = x->m, .w = w->m, .m = (uint32_t)m, .eps = eps, .offset = offset}};
    const size_t shared = mt_cuda_up(x->m.cols, MT_CUDA_STEP) / 8 * 9 * sizeof(float);
    if (m <= MT_CUDA_FEW_ROWS) {
        mt_cuda_launch(dev, MT_K_norm, m, 1, 1, THREADS, shared, &p);
        return;
    }
    p.rows.x2 = take_sum(dev, x->m, m);
    mt_cuda_launch(dev, MT_K_norm_many, m, 1, 1, 32 * MT_CUDA_NORM_PARTS, shared, &p);
}

void mt_cuda_op_layer_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w,
                           const mt_tensor *bias, float eps)
{
    mt_cuda_made p = {.rows = {.y = y->m, .x = x->m, .w = w->m, .bias = bias->m, .m = (uint32_t)m, .eps = eps}};
    p.rows.x2 = take_sum(dev, x->m, m);
    const size_t two = 2 * MT_CUDA_NORM_STRIDE(x->m.cols) * sizeof(float), fit = (size_t)dev->shared / two;
    const size_t warps = fit < MT_CUDA_NORM_WARPS ? fit : MT_CUDA_NORM_WARPS;
    mt_cuda_launch(dev, MT_K_layer_norm, (m + 2 * warps - 1) / (2 * warps), 1, 1, warps * 32, warps * two, &p);
}

static void binary(mt_device *dev, mt_tensor *y, const mt_tensor *a, const mt_tensor *b, size_t m, uint32_t kind)
{
    each_part(dev, MT_K_binary, (mt_cuda_rows){.y = y->m, .x = a->m, .x2 = matrix(b), .m = (uint32_t)m, .kind = kind},
              y->m.cols);
}

/* Whether a kernel that makes `made`, and adds it to nothing yet, may as well add it to y, to which x shall be added:
   where x is what it makes. */
static bool may_add(mt_cuda_mat made, mt_cuda_mat add, mt_cuda_mat y, mt_cuda_mat x)
{
    return !add.data && made.data == x.data && made.cols == x.cols && y.data != x.data && made.cols == y.cols;
}

/* Has the last sum of experts' results in the list, if it makes x, also add it to y; else false. */
static bool moe_add(mt_device *dev, mt_cuda_mat y, mt_cuda_mat x, size_t m)
{
    mt_cuda_route *few = mt_cuda_last(dev, MT_K_combine, MT_K_combine);
    mt_cuda_chosen *one = mt_cuda_last(dev, MT_K_chosen_down_4, MT_K_chosen_down_8);
    if (few && few->m == m && may_add(few->y, few->add, y, x))
        few->add = y;
    else if (one && m == 1 && may_add(one->y, one->add, y, x))
        one->add = y;
    else
        return false;
    return true;
}

void mt_cuda_op_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m)
{
    if (!mt_cuda_few_add(dev, y->m, x->m, m) && !mt_cuda_halves_add(dev, y->m, x->m, m) &&
        !mt_cuda_native_add(dev, y->m, x->m, m) && !moe_add(dev, y->m, x->m, m))
        binary(dev, y, x, NULL, m, ADD);
}

void mt_cuda_op_scale(mt_device *dev, mt_tensor *x, size_t m, float factor)
{
    each_part(dev, MT_K_binary, (mt_cuda_rows){.y = x->m, .m = (uint32_t)m, .kind = SCALE, .scale = factor}, x->m.cols);
}

void mt_cuda_run_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu)
{
    if (mt_cuda_row_glu(dev, y, gate, up, m, glu) || mt_cuda_halves_glu(dev, y, gate, up, m, glu) ||
        mt_cuda_native_glu(dev, y, gate, up, m, glu))
        return;
    const mt_cuda_made p = {.rows = {.y = y,
                                     .x = gate,
                                     .x2 = up,
                                     .m = (uint32_t)m,
                                     .kind = glu->act,
                                     .limit = glu->limit,
                                     .offset = glu->offset}};
    if (m <= MT_CUDA_FEW_ROWS)
        each_part(dev, MT_K_glu, p.rows, y.cols);
    else
        mt_cuda_launch(dev, MT_K_glu_many, part_blocks(m, y.cols), 1, 1, MT_CUDA_PART_THREADS, 0, &p);
}

void mt_cuda_op_glu(mt_device *dev, mt_tensor *y, const mt_tensor *gate, const mt_tensor *up, size_t m, mt_glu glu)
{
    mt_cuda_run_glu(dev, y->m, gate->m, up->m, m, &glu);
}

void mt_cuda_op_gate(mt_device *dev, mt_tensor *y, const mt_tensor *gate, size_t m)
{
    binary(dev, y, gate, NULL, m, GATE);
}

void mt_cuda_op_add_gated(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *gate, size_t m)
{
    binary(dev, y, x, gate, m, ADD_GATED);
}

void mt_cuda_op_softcap(mt_device *dev, mt_tensor *x, size_t m, float cap)
{
    each_part(dev, MT_K_softcap, (mt_cuda_rows){.y = x->m, .m = (uint32_t)m, .scale = cap}, x->m.cols);
}

void mt_cuda_op_adjust(mt_device *dev, mt_tensor *x, size_t m, const mt_tensor *bias, const mt_tensor *w, float low,
                       float high)
{
    each_row(dev, MT_K_adjust,
             (mt_cuda_rows){
                 .y = x->m, .w = matrix(w), .bias = matrix(bias), .m = (uint32_t)m, .offset = low, .limit = high});
}

void mt_cuda_op_split_heads(mt_device *dev, mt_tensor *q, mt_tensor *gate, const mt_tensor *x, size_t head_dim,
                            size_t m)
{
    const mt_cuda_rows p = {.y = q->m, .y2 = gate->m, .x = x->m, .m = (uint32_t)m, .head_dim = (uint32_t)head_dim};
    mt_cuda_launch(dev, MT_K_split_heads, m, parts(m, q->m.cols, THREADS), 1, THREADS, 0, &p);
}

void mt_cuda_op_finite(mt_device *dev, mt_tensor *ok, const mt_tensor *x, size_t m)
{
    each_row(dev, MT_K_finite, (mt_cuda_rows){.y = ok->m, .x = x->m, .m = (uint32_t)m});
}

void mt_cuda_op_argmax(mt_device *dev, mt_index *y, const mt_tensor *x, size_t m)
{
    each_row(dev, MT_K_argmax, (mt_cuda_rows){.x = x->m, .out = y->data, .m = (uint32_t)m});
}

void mt_cuda_op_rope_table(mt_device *dev, mt_tensor *table, const mt_tensor *inv_freq, const mt_index *axis,
                           float scale)
{
    each_row(dev, MT_K_rope_table,
             (mt_cuda_rows){.y = table->m,
                            .x = inv_freq->m,
                            .index = axis ? axis->data : 0,
                            .step = dev->step,
                            .m = dev->step.rows,
                            .scale = scale});
}

void mt_cuda_op_act(mt_device *dev, mt_tensor *x, size_t m, mt_activation act)
{
    const mt_cuda_made p = {.rows = {.y = x->m, .m = (uint32_t)m, .kind = act}};
    mt_cuda_launch(dev, MT_K_act, m, parts(m, x->m.cols, 2 * PART), 1, THREADS, 0, &p);
}

void mt_cuda_op_join(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m, bool interleaved)
{
    each_row(dev, MT_K_join,
             (mt_cuda_rows){.y = y->m, .x = x->m, .m = (uint32_t)m, .count = (uint32_t)count, .kind = interleaved});
}

void mt_cuda_op_stretch(mt_device *dev, mt_tensor *x, const mt_tensor *factor, size_t every)
{
    each_row(
        dev, MT_K_stretch,
        (mt_cuda_rows){.y = x->m, .w = factor->m, .step = dev->step, .m = dev->step.rows, .first = (uint32_t)every});
}

void mt_cuda_op_mean(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t count, size_t m)
{
    each_row(dev, MT_K_mean, (mt_cuda_rows){.y = y->m, .x = x->m, .m = (uint32_t)m, .count = (uint32_t)count});
}

void mt_cuda_op_pixels(mt_device *dev, mt_tensor *x, const mt_patches *patches, size_t m)
{
    mt_cuda_pixels p = {.y = x->m,
                        .bytes = patches->bytes,
                        .at = patches->at,
                        .level = patches->level,
                        .levels = patches->levels,
                        .m = (uint32_t)m,
                        .frames = (uint32_t)patches->frames,
                        .area = (uint32_t)patches->area};
    mt_cuda_launch(dev, MT_K_pixels, m, 1, 1, THREADS, 0, &p);
}

/* ---- products ---- */

static bool made(const mt_cuda_rows *rows, const mt_cuda_pack *p)
{
    return !p->index && rows->y.data == p->x.data && rows->y.cols == p->k && rows->m == p->m;
}

/* Has the last kernel in the list, if it makes these rows, also pack them; else false. */
static bool pack_made(mt_device *dev, const mt_cuda_pack *p)
{
    mt_cuda_made *few = mt_cuda_last(dev, MT_K_norm, MT_K_norm);
    mt_cuda_made *last = few ? few : mt_cuda_last(dev, MT_K_norm_many, MT_K_glu_many);
    const bool halves_alone = few || mt_cuda_last(dev, MT_K_layer_norm, MT_K_act);
    if (!last || !made(&last->rows, p) || last->pack.to.q || (halves_alone && !p->halves))
        return false;
    last->pack = *p;
    return true;
}

/* The same for few normed or gated rows, packed as codes. */
static bool pack_few(mt_device *dev, const mt_cuda_pack *p)
{
    const mt_cuda_made *norm = mt_cuda_last(dev, MT_K_norm, MT_K_norm);
    const mt_cuda_rows *glu = mt_cuda_last(dev, MT_K_glu, MT_K_glu), *last = norm ? &norm->rows : glu;
    if (!last || !made(last, p))
        return false;
    mt_cuda_made both = {.rows = *last, .pack = *p};
    mt_cuda_drop(dev);
    if (norm)
        mt_cuda_launch(dev, MT_K_norm_pack, p->m, 1, 1, 2 * THREADS, p->to.padded / 8 * 9 * sizeof(float), &both);
    else
        mt_cuda_launch(dev, MT_K_glu_pack, (p->m * ((p->to.padded + 255) / 256) + THREADS / 32 - 1) / (THREADS / 32), 1,
                       1, THREADS, 0, &both);
    return true;
}

void mt_cuda_pack_rows(mt_device *dev, const mt_weight *w, mt_cuda_mat x, CUdeviceptr index, size_t m)
{
    const uint32_t k = w->d.k;
    dev->packed = dev->packed_any;
    /* with many rows, sums are copied in pieces of 16 bytes */
    dev->packed.rows = (uint32_t)(m > MT_CUDA_FEW_ROWS ? mt_cuda_up(m, 8) : m);
    dev->packed.padded = (uint32_t)mt_cuda_up(k, MT_CUDA_STEP);
    mt_cuda_pack p = {.x = x,
                      .index = index,
                      .to = dev->packed,
                      .m = (uint32_t)m,
                      .k = k,
                      .group = w->d.group,
                      .wide = w->mat.bits == 8,
                      .halves = w->class == MT_CLASS_B};
    if (w->class == MT_CLASS_F || pack_made(dev, &p) || mt_cuda_normed_pack(dev, &p) ||
        (p.halves && mt_cuda_halves_pack(dev, &p)))
        return;
    const size_t steps = m * (p.to.padded / 128);
    if (p.halves) /* a warp packs two steps of 128, where there are two */
        mt_cuda_launch(dev, MT_K_pack_bf16, (steps + THREADS / 32 - 1) / (THREADS / 32), 1, 1, THREADS, 0, &p);
    else if (m > MT_CUDA_FEW_ROWS)
        mt_cuda_launch(dev, MT_K_pack_many, part_blocks(m, k), 1, 1, MT_CUDA_PART_THREADS, 0, &p);
    else if (!pack_few(dev, &p)) /* four lanes a block of 32 */
        mt_cuda_launch(dev, MT_K_pack_codes, (steps * 16 + PACKERS - 1) / PACKERS, 1, 1, PACKERS, 0, &p);
}

/* Products that read rows as they are packed and no other way. */
static bool takes_packed(mt_cuda_kernel kernel)
{
    return (kernel >= MT_K_many_4_32 && kernel <= MT_K_broad_128) ||
           (kernel >= MT_K_many_halves && kernel <= MT_K_pair_halves) ||
           (kernel >= MT_K_native_few_4_1_8_1 && kernel <= MT_K_native_prompt);
}

/* What only products have read, or pages have taken, is not written for nobody. */
void mt_cuda_op_spend(mt_device *dev, const mt_tensor *x)
{
    mt_cuda_kernel kernel;
    void *p;
    size_t back = 0;
    mt_cuda_attention_spend(dev, x->m);
    mt_cuda_native_spend(dev, x->m);
    while ((p = mt_cuda_listed(dev, back, &kernel)) && takes_packed(kernel))
        back++;
    if (!p)
        return;
    if ((kernel >= MT_K_norm_many && kernel <= MT_K_glu_many) || kernel == MT_K_native_norm ||
        kernel == MT_K_native_glu) {
        mt_cuda_made *made_by = p;
        made_by->packed_only = made_by->pack.to.q && made_by->rows.y.data == x->m.data;
    } else if (kernel >= MT_K_heads && kernel <= MT_K_heads_128 && back == 0) {
        mt_cuda_heads *heads = p;
        heads->kept_only = heads->v.data && heads->y[heads->keys].data == x->m.data;
    }
}

void mt_cuda_multiply(mt_device *dev, const mt_weight *w, mt_cuda_product p, size_t shares)
{
    const size_t tiles = (w->d.n + 15) / 16, rows = p.shares.experts ? shares : (p.m + ROWS - 1) / ROWS;
    p.w = w->d;
    p.from = dev->packed;
    if (w->class == MT_CLASS_F) {
        mt_cuda_launch(dev, MT_K_product_f32, (w->d.n + 7) / 8, rows, 1, 128, 0, &p);
        return;
    }
    const mt_cuda_kernel kernel = w->class == MT_CLASS_B        ? MT_K_product_bf16
                                  : w->d.kind == MT_CUDA_CODES4 ? MT_K_product_codes4
                                                                : MT_K_product_codes8;
    mt_cuda_launch(dev, kernel, (tiles + WARPS - 1) / WARPS, rows, 1, WARPS * 32, 0, &p);
}

bool mt_cuda_same_rows(const mt_weight *a, const mt_weight *b)
{
    return a->class == b->class &&
           (a->class != MT_CLASS_Q || (a->d.group == b->d.group && (a->mat.bits == 8) == (b->mat.bits == 8)));
}

/* How many weights from w on one kernel can multiply together. */
static size_t count_together(const mt_device *dev, const mt_weight *const *w, size_t count, size_t m)
{
    size_t n = 0;
    while (n < count && n < MT_CUDA_TOGETHER && mt_cuda_few_can(dev, w[0], w[n], m))
        n++;
    return n;
}

/* The same for `native`, whatever the number of rows. */
static size_t count_native(const mt_weight *const *w, size_t count)
{
    size_t n = 0;
    while (n < count && n < MT_CUDA_TOGETHER && mt_cuda_native_alike(w[n], w[0]))
        n++;
    return n;
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
    if (m <= MT_CUDA_FEW_ROWS || m > PARTS)
        return false;
    for (size_t i = 0; i < count; i++)
        if (w[i]->class != MT_CLASS_N && !mt_cuda_few_can(dev, w[i], w[i], MT_CUDA_FEW_ROWS) &&
            !mt_cuda_halves_can(dev, w[i], w[i], MT_CUDA_FEW_ROWS))
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
    assert(m <= dev->rows);
    if (count <= MT_CUDA_TOGETHER && multiply_parts(dev, y, w, count, x, m))
        return;
    const mt_weight *packed = NULL; /* the last weight that rows were packed for */
    for (size_t i = 0; i < count;) {
        const size_t native = count_native(w + i, count - i);
        if (native) {
            if (!packed || packed->class != MT_CLASS_N)
                mt_cuda_native_pack(dev, w[i], x->m, m);
            packed = w[i];
            mt_cuda_native_launch(dev, y + i, w + i, native, m);
            i += native;
            continue;
        }
        size_t together = mt_cuda_f32_launch(dev, y + i, w + i, count - i, x->m, m);
        if (together) {
            i += together;
            continue;
        }
        together = count_together(dev, w + i, count - i, m);
        if (together && m == 1 && mt_cuda_row_make(dev, y + i, w + i, together, x->m)) {
            i += together;
            continue;
        }
        if (!packed || !mt_cuda_same_rows(w[i], packed))
            mt_cuda_pack_rows(dev, w[i], x->m, 0, m);
        packed = w[i];
        if (together && mt_cuda_few_launch(dev, y + i, w + i, together, m)) {
            i += together;
            continue;
        }
        for (together = 0; i + together < count && together < MT_CUDA_TOGETHER; together++)
            if (!mt_cuda_many_can(w[i], w[i + together], m) && !mt_cuda_halves_can(dev, w[i], w[i + together], m))
                break;
        if (together) {
            (m > MT_CUDA_FEW_ROWS ? mt_cuda_many_launch : mt_cuda_halves_launch)(dev, y + i, w + i, together, m);
            i += together;
            continue;
        }
        mt_cuda_multiply(dev, w[i], (mt_cuda_product){.y = y[i]->m, .x = x->m, .m = (uint32_t)m}, 0);
        i++;
    }
}
