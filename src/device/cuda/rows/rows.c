/* Operations on each row by itself on the host's side: which kernel runs, with which parameters, on how many blocks. */
#include <assert.h>

#include "device/cuda/cuda.h"

#define THREADS 256
#define PART 1024   /* columns of a row that a block has, where rows are few */
#define PACKERS 128 /* threads of a block that packs rows */

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

/* mt_cuda_kv_new refuses pages of keys that this compares. */
void mt_cuda_op_top_keys(mt_device *dev, mt_index *chosen, const mt_tensor *q, const mt_tensor *w, mt_kv *kv,
                         size_t layer)
{
    (void)dev, (void)chosen, (void)q, (void)w, (void)kv, (void)layer;
}

/* There is one rank only: see open_cuda. */
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
    assert(w->class == MT_CLASS_F);
    mt_cuda_lookup p = {.y = x->m, .w = w->d, .index = dev->step.tokens, .m = dev->step.rows, .scale = scale};
    mt_cuda_launch(dev, MT_K_embed, p.m, parts(p.m, x->m.cols, THREADS), 1, THREADS, 0, &p);
}

void mt_cuda_op_add_rows(mt_device *dev, mt_tensor *x, const mt_weight *w, const mt_index *index,
                         const mt_tensor *factor, size_t count, size_t m)
{
    assert(w->class == MT_CLASS_F);
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
    mt_cuda_launch(dev, MT_K_norm_many, m, 1, 1, 32 * MT_CUDA_NORM_PARTS, shared, &p);
}

void mt_cuda_op_layer_norm(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m, const mt_tensor *w,
                           const mt_tensor *bias, float eps)
{
    mt_cuda_made p = {.rows = {.y = y->m, .x = x->m, .w = w->m, .bias = bias->m, .m = (uint32_t)m, .eps = eps}};
    const size_t two = 2 * MT_CUDA_NORM_STRIDE(x->m.cols) * sizeof(float), fit = (size_t)dev->shared / two;
    /* rows of which no two fit do not launch, which is a fault of the device */
    const size_t warps = fit > MT_CUDA_NORM_WARPS ? MT_CUDA_NORM_WARPS : fit ? fit : 1;
    mt_cuda_launch(dev, MT_K_layer_norm, (m + 2 * warps - 1) / (2 * warps), 1, 1, warps * 32, warps * two, &p);
}

static void binary(mt_device *dev, mt_tensor *y, const mt_tensor *a, const mt_tensor *b, size_t m, uint32_t kind)
{
    each_part(dev, MT_K_binary, (mt_cuda_rows){.y = y->m, .x = a->m, .x2 = matrix(b), .m = (uint32_t)m, .kind = kind},
              y->m.cols);
}

void mt_cuda_op_add(mt_device *dev, mt_tensor *y, const mt_tensor *x, size_t m)
{
    binary(dev, y, x, NULL, m, MT_CUDA_ADD);
}

void mt_cuda_op_scale(mt_device *dev, mt_tensor *x, size_t m, float factor)
{
    each_part(dev, MT_K_binary, (mt_cuda_rows){.y = x->m, .m = (uint32_t)m, .kind = MT_CUDA_SCALE, .scale = factor},
              x->m.cols);
}

void mt_cuda_run_glu(mt_device *dev, mt_cuda_mat y, mt_cuda_mat gate, mt_cuda_mat up, size_t m, const mt_glu *glu)
{
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
    binary(dev, y, gate, NULL, m, MT_CUDA_GATE);
}

void mt_cuda_op_add_gated(mt_device *dev, mt_tensor *y, const mt_tensor *x, const mt_tensor *gate, size_t m)
{
    binary(dev, y, x, gate, m, MT_CUDA_ADD_GATED);
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

/* ---- packing ---- */

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
    if (w->class == MT_CLASS_F)
        return;
    const size_t steps = m * (p.to.padded / 128);
    if (p.halves) /* a warp packs two steps of 128, where there are two */
        mt_cuda_launch(dev, MT_K_pack_bf16, (steps + THREADS / 32 - 1) / (THREADS / 32), 1, 1, THREADS, 0, &p);
    else if (m > MT_CUDA_FEW_ROWS)
        mt_cuda_launch(dev, MT_K_pack_many, part_blocks(m, k), 1, 1, MT_CUDA_PART_THREADS, 0, &p);
    else /* four lanes a block of 32 */
        mt_cuda_launch(dev, MT_K_pack_codes, (steps * 16 + PACKERS - 1) / PACKERS, 1, 1, PACKERS, 0, &p);
}

void mt_cuda_op_spend(mt_device *dev, const mt_tensor *x)
{
    mt_cuda_spend(dev, x->m);
}
