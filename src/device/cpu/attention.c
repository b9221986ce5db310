/* Attention over pages. The rows of a key/value head are processed in tiles of tokens x query heads of the group; each
   tile walks the segments that its rows see, in ascending order. Where that gives too few work items for the threads
   (few sequences or heads, long contexts), segments become work items and are merged afterwards in the same order: the
   bits are the same.

   Where positions were chosen for a row, its keys are gathered, and stand in segments as if they were all there are. So
   a row for which every position is chosen has the bits of a row that sees them all. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "device/limits.h"
#include "kernels/attn.h"
#include "kernels/kvq.h"

#define PART_ROWS 8192 /* most (row, segment) pairs whose partial results are kept when segments are split */

typedef struct attention {
    mt_device *dev;
    mt_kv *kv;
    mt_tensor *y;
    const mt_tensor *q;
    const mt_batch *batch;
    size_t layer;
    size_t heads, kv_heads, head_dim;
    size_t value_dim; /* of a head's result */
    size_t group;     /* query heads of a key/value head. Of latents, which all share, a tile has some of them */
    size_t tile;      /* tokens of a tile */
    size_t tiles;     /* of all spans, for one key/value head */
    size_t most;      /* segments of the longest sequence */
    mt_attention how;
    mt_cpu_sm90_form form; /* where tensor cores of sm_90 are computed */
} attention;

/* One tile of a span and a key/value head. */
typedef struct tile {
    mt_attn a;
    size_t kv_head, row, tokens; /* row: its first row in the batch */
    /* [seg0, seg1): segments it sees; [lo, hi) of each row: positions */
    size_t seg0, seg1;
    const uint32_t *chosen; /* the positions that its one token attends to; NULL: all in [lo, hi) */
    uint32_t lo[MT_CPU_ATTN_ROWS], hi[MT_CPU_ATTN_ROWS];
} tile;

static size_t most_segments(const mt_batch *batch)
{
    size_t most = 1;
    for (size_t i = 0; i < batch->spans; i++) {
        const mt_span *s = &batch->span[i];
        size_t seen = s->position + s->rows;
        for (size_t r = s->row; batch->seen && r < s->row + s->rows; r++)
            seen = batch->seen[r] > seen ? batch->seen[r] : seen;
        const size_t segments = (seen + MT_SEGMENT - 1) / MT_SEGMENT;
        most = segments > most ? segments : most;
    }
    return most;
}

static size_t span_tiles(const attention *op, const mt_span *span)
{
    return (span->rows + op->tile - 1) / op->tile;
}

static size_t key_block(const attention *op, size_t kv_head, bool value)
{
    if (op->kv->shape.latent)
        return op->layer * op->kv->block;
    return ((op->layer * 2 + value) * op->kv_heads + kv_head) * op->kv->block;
}

static void query_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const attention *op = ctx;
    const mt_kv *kv = op->kv;
    const float *q = op->q->data + i * op->q->stride;
    for (size_t h = 0; h < op->heads; h++, q += op->head_dim) {
        /* [kv head][row][head of the group][head_stride]: a tile's queries are contiguous */
        const size_t at = (h / op->group * op->batch->rows + i) * op->group + h % op->group;
        uint8_t *to = op->dev->queries + at * kv->query;
        if (kv->bits && !kv->widened) {
            op->dev->k.kv_query(to, q, op->head_dim, kv->head_stride);
            continue;
        }
        memset(to, 0, kv->query);
        if (kv->shape.type == MT_KV_BF16)
            op->dev->k.to_bf16((mt_bf16 *)(void *)to, q, op->head_dim);
        else
            memcpy(to, q, op->head_dim * sizeof(*q));
    }
}

/* The first position that a row sees; end: the position behind the row's own. */
static uint32_t first_seen(const mt_attention *s, uint32_t end)
{
    const uint32_t window = s->window && end > s->window ? end - s->window : 0;
    const uint32_t chunk = s->chunk ? (end - 1) / s->chunk * s->chunk : 0;
    return window > chunk ? window : chunk;
}

/* Describes tile number `index` of a span for the kernels: its queries, its pages, and which positions each row
   sees. */
static void make_tile(const attention *op, const mt_span *span, size_t index, size_t kv_head, tile *t)
{
    const mt_kv *kv = op->kv;
    const size_t first = index * op->tile, left = span->rows - first;
    t->kv_head = kv_head;
    t->chosen = NULL;
    t->row = span->row + first;
    t->tokens = left < op->tile ? left : op->tile;
    t->a = (mt_attn){.base = kv->data,
                     .page_stride = kv->page_bytes,
                     .k_offset = key_block(op, kv_head, false),
                     .v_offset = key_block(op, kv_head, true),
                     .pages = span->pages[op->kv->shape.group],
                     .page_tokens = kv->shape.page_tokens,
                     .head_stride = kv->head_stride,
                     .bits = kv->bits,
                     .scale = op->how.scale,
                     .softcap = op->how.softcap,
                     .rows = t->tokens * op->group,
                     .q = op->dev->queries + (kv_head * op->batch->rows + t->row) * op->group * kv->query,
                     .lo = t->lo,
                     .hi = t->hi};
    uint32_t seen_from = UINT32_MAX, seen = 0;
    for (size_t i = 0; i < t->a.rows; i++) {
        const size_t token = first + i / op->group, row = span->row + token;
        const uint32_t end = span->position + (uint32_t)token + 1;
        const uint32_t lo = first_seen(&op->how, end);
        const uint32_t from = op->batch->seen_from ? op->batch->seen_from[row] : 0;
        t->hi[i] = op->batch->seen && !op->how.causal ? op->batch->seen[row] : end;
        t->lo[i] = lo > from ? lo : from;
        if (op->how.chosen && end > op->how.top) {
            t->chosen = op->how.chosen->data + row * op->how.top;
            t->lo[i] = 0;
            t->hi[i] = op->how.top;
        }
        seen_from = t->lo[i] < seen_from ? t->lo[i] : seen_from;
        seen = t->hi[i] > seen ? t->hi[i] : seen;
    }
    t->seg0 = seen_from / MT_SEGMENT;
    t->seg1 = (seen + MT_SEGMENT - 1) / MT_SEGMENT;
}

/* The tile of a work item. Those of a key/value head follow each other, so that tiles of a prompt, and sequences that
   share pages, find keys and values of the tile before in the caches. */
static void find_tile(const attention *op, size_t item, tile *t)
{
    size_t index = item % op->tiles;
    const mt_span *span = op->batch->span;
    while (index >= span_tiles(op, span))
        index -= span_tiles(op, span++);
    make_tile(op, span, index, item / op->tiles, t);
}

/* Reads a position of integers with latents: two vectors, the second right behind the first. */
static void get_latent(const attention *op, float *to, const uint8_t *block, size_t slot)
{
    const mt_kv *kv = op->kv;
    const mt_kv_parts *parts = &kv->parts;
    const size_t tokens = kv->shape.page_tokens, latent = kv->shape.latent, rest = kv->shape.head_dim - latent;
    float x[MT_KVQ_STRIDE];
    op->dev->k.kv_get_q(x, block, tokens, slot, parts->stride[0], kv->bits, false);
    memset(to, 0, kv->head_stride * sizeof(*to));
    memcpy(to, x, latent * sizeof(*to));
    if (rest == 0)
        return;
    op->dev->k.kv_get_q(x, block + parts->second, tokens, slot, parts->stride[1], kv->bits, false);
    memcpy(to + latent, x, rest * sizeof(*to));
}

/* A segment of integers: converts it to fp32 first, as far as the rows see it. */
static void widened_segment(const attention *op, float *o, mt_attn_part *part, const tile *t, size_t seg,
                            uint8_t *scratch)
{
    static const uint32_t only[1] = {0};
    const mt_kernels *k = &op->dev->k;
    const mt_attn *from = &t->a;
    const size_t first = seg * MT_SEGMENT, tokens = from->page_tokens, stride = from->head_stride;
    const size_t half = MT_SEGMENT * stride * sizeof(float);
    const mt_attn_range all = mt_attn_seen_by(from, seg, 0, from->rows);
    uint32_t lo[MT_CPU_ATTN_ROWS], hi[MT_CPU_ATTN_ROWS];
    for (size_t i = 0; i < from->rows; i++) {
        const mt_attn_range seen = mt_attn_seen(from, seg, i);
        lo[i] = (uint32_t)seen.begin;
        hi[i] = (uint32_t)seen.end;
    }
    for (size_t p = all.begin / MT_LANES * MT_LANES; p < all.end; p++) {
        const uint8_t *page = from->base + from->pages[(first + p) / tokens] * from->page_stride;
        float *at = (float *)(void *)scratch + p * stride;
        if (op->kv->shape.latent) {
            get_latent(op, at, page + from->k_offset, p % tokens);
            continue;
        }
        k->kv_get_q(at, page + from->k_offset, tokens, p % tokens, stride, from->bits, false);
        k->kv_get_q(at + half / sizeof(*at), page + from->v_offset, tokens, p % tokens, stride, from->bits, true);
    }
    mt_attn a = *from;
    a.base = scratch;
    a.k_offset = 0;
    a.v_offset = op->kv->shape.latent ? 0 : half;
    a.pages = only;
    a.page_tokens = MT_SEGMENT;
    a.lo = lo;
    a.hi = hi;
    k->attn_f32(o, part, &a, 0, scratch + 2 * half);
}

/* A segment of chosen positions: gathers their keys, which are values, too, as kernels read them. */
static void chosen_segment(const attention *op, float *o, mt_attn_part *part, const tile *t, size_t seg,
                           uint8_t *scratch)
{
    static const uint32_t only[1] = {0};
    const mt_kernels *k = &op->dev->k;
    const mt_attn *from = &t->a;
    const bool f32 = op->kv->bits || op->kv->shape.type == MT_KV_F32;
    const size_t tokens = from->page_tokens, bytes = from->head_stride * (f32 ? sizeof(float) : sizeof(mt_bf16));
    const size_t first = seg * MT_SEGMENT, left = op->how.top - first, count = left < MT_SEGMENT ? left : MT_SEGMENT;
    uint32_t lo[MT_CPU_ATTN_ROWS] = {0}, hi[MT_CPU_ATTN_ROWS];
    for (size_t i = 0; i < from->rows; i++)
        hi[i] = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        const size_t at = t->chosen[first + i], slot = at % tokens;
        const uint8_t *block = from->base + from->pages[at / tokens] * from->page_stride + from->k_offset;
        if (op->kv->bits)
            get_latent(op, (float *)(void *)(scratch + i * bytes), block, slot);
        else
            memcpy(scratch + i * bytes, block + slot * bytes, bytes);
    }
    mt_attn a = *from;
    a.base = scratch;
    a.k_offset = a.v_offset = 0;
    a.pages = only;
    a.page_tokens = MT_SEGMENT;
    a.lo = lo;
    a.hi = hi;
    (f32 ? k->attn_f32 : k->attn_plain)(o, part, &a, 0, scratch + MT_SEGMENT * from->head_stride * sizeof(float));
}

static void segment(const attention *op, float *o, mt_attn_part *part, const tile *t, size_t seg, uint8_t *scratch)
{
    const mt_kernels *k = &op->dev->k;
    if (t->chosen)
        chosen_segment(op, o, part, t, seg, scratch);
    else if (op->kv->widened)
        widened_segment(op, o, part, t, seg, scratch);
    else if (op->kv->bits)
        k->attn_q(o, part, &t->a, seg, scratch);
    else if (op->kv->shape.type == MT_KV_F32)
        k->attn_f32(o, part, &t->a, seg, scratch);
    else if (op->form != MT_CPU_SM90_NONE)
        mt_cpu_sm90_attend(op->form, o, part, &t->a, seg, scratch);
    else
        (op->kv->shape.latent ? k->attn_plain : k->attn_bf16)(o, part, &t->a, seg, scratch);
}

/* A sink is merged behind the last segment, as a segment whose values are 0. */
static void finish_row(const attention *op, const tile *t, size_t i, float *o, mt_attn_part *acc)
{
    static const float nothing[MT_LIMIT_HEAD_DIM];
    const size_t head = t->kv_head * op->group + i % op->group;
    if (op->how.sinks)
        op->dev->k.attn_merge(o, acc, nothing, &(mt_attn_part){.m = op->how.sinks->data[head], .l = 1},
                              op->kv->head_stride);
    if (op->kv->bits && !op->kv->widened)
        op->dev->k.kv_turn(o, op->kv->head_stride, true);
    float *y = op->y->data + (t->row + i / op->group) * op->y->stride + head * op->value_dim;
    op->dev->k.scale(y, 1.0f / acc->l, o, op->value_dim);
}

/* Scratch memory of a thread: accumulators, one segment's results, the kernel's own. */
static void whole_item(void *ctx, size_t item, size_t worker)
{
    const attention *op = ctx;
    const size_t stride = op->kv->head_stride;
    tile t;
    find_tile(op, item, &t);
    mt_attn_part acc[MT_CPU_ATTN_ROWS], part[MT_CPU_ATTN_ROWS];
    float *acc_o = (float *)(void *)mt_cpu_scratch(op->dev, worker), *o = acc_o + MT_CPU_ATTN_ROWS * stride;
    uint8_t *scratch = (uint8_t *)(o + MT_CPU_ATTN_ROWS * stride);
    memset(acc_o, 0, t.a.rows * stride * sizeof(*acc_o));
    for (size_t i = 0; i < t.a.rows; i++)
        acc[i] = (mt_attn_part){.m = -INFINITY};
    for (size_t seg = t.seg0; seg < t.seg1; seg++) {
        segment(op, o, part, &t, seg, scratch);
        for (size_t i = 0; i < t.a.rows; i++)
            op->dev->k.attn_merge(acc_o + i * stride, &acc[i], o + i * stride, &part[i], stride);
    }
    for (size_t i = 0; i < t.a.rows; i++)
        finish_row(op, &t, i, acc_o + i * stride, &acc[i]);
}

/* ---- split: items are (tile, segment); then one merge for each tile ---- */

/* Index of the first row of partial results for a segment of tile `item`. */
static size_t part_row(const attention *op, size_t item, size_t seg)
{
    return (item * op->most + seg) * op->tile * op->group;
}

static mt_attn_part *part_heads(const attention *op)
{
    return (mt_attn_part *)(void *)op->dev->parts;
}

static float *part_values(const attention *op)
{
    return (float *)(void *)(op->dev->parts + PART_ROWS * sizeof(mt_attn_part));
}

static void split_item(void *ctx, size_t item, size_t worker)
{
    const attention *op = ctx;
    const size_t seg = item % op->most;
    tile t;
    find_tile(op, item / op->most, &t);
    if (seg < t.seg0 || seg >= t.seg1)
        return;
    const size_t at = part_row(op, item / op->most, seg);
    segment(op, part_values(op) + at * op->kv->head_stride, part_heads(op) + at, &t, seg,
            mt_cpu_scratch(op->dev, worker));
}

/* Merges the partial results of a tile's segments, in ascending order. */
static void merge_item(void *ctx, size_t item, size_t worker)
{
    const attention *op = ctx;
    const size_t stride = op->kv->head_stride;
    float *acc_o = (float *)(void *)mt_cpu_scratch(op->dev, worker);
    tile t;
    find_tile(op, item, &t);
    for (size_t i = 0; i < t.a.rows; i++) {
        mt_attn_part acc = {.m = -INFINITY};
        memset(acc_o, 0, stride * sizeof(*acc_o));
        for (size_t seg = t.seg0; seg < t.seg1; seg++) {
            const size_t at = part_row(op, item, seg) + i;
            op->dev->k.attn_merge(acc_o, &acc, part_values(op) + at * stride, part_heads(op) + at, stride);
        }
        finish_row(op, &t, i, acc_o, &acc);
    }
}

/* Into how many equal parts query heads that share keys are divided, so that a tile has room for one. */
static size_t shares(size_t heads)
{
    size_t n = (heads + MT_CPU_ATTN_ROWS - 1) / MT_CPU_ATTN_ROWS;
    while (heads % n)
        n++;
    return n;
}

static attention prepare(mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer,
                         const mt_batch *batch)
{
    attention op = {.dev = dev, .kv = kv, .y = y, .q = q, .batch = batch, .layer = layer};
    op.heads = q->cols / kv->shape.head_dim;
    op.kv_heads = kv->shape.latent ? shares(op.heads) : kv->shape.heads;
    op.head_dim = kv->shape.head_dim;
    op.value_dim = kv->shape.latent ? kv->shape.latent : op.head_dim;
    op.group = op.heads / op.kv_heads;
    op.tile = (op.group <= MT_CPU_ATTN_SOME ? MT_CPU_ATTN_FULL : MT_CPU_ATTN_ROWS) / op.group;
    if (op.tile > batch->rows)
        op.tile = batch->rows;
    op.most = most_segments(batch);
    return op;
}

void mt_cpu_op_attention(mt_device *dev, mt_tensor *y, const mt_tensor *q, mt_kv *kv, size_t layer, mt_attention how)
{
    const mt_batch *batch = &dev->batch;
    attention op = prepare(dev, y, q, kv, layer, batch);
    assert(q->cols == op.heads * op.head_dim && y->cols == op.heads * op.value_dim && layer < kv->shape.layers &&
           op.heads <= kv->shape.query_heads && batch->rows <= dev->rows);
    assert(!how.chosen || (kv->shape.latent && how.top > 0 && batch->rows * how.top <= how.chosen->count));
    op.how = how;
    if (how.chosen) { /* each token has keys of its own */
        const size_t most = (how.top + MT_SEGMENT - 1) / MT_SEGMENT;
        op.tile = 1;
        op.most = op.most < most ? op.most : most;
    }
    op.form = dev->sm90 ? mt_cpu_sm90_form_of(kv, op.group, &how) : MT_CPU_SM90_NONE;
    size_t work = 0;
    for (size_t i = 0; i < batch->spans; i++) {
        const mt_span *s = &batch->span[i];
        op.tiles += span_tiles(&op, s);
        work += s->rows * (s->position + s->rows) * q->cols;
    }
    const size_t tiles = op.tiles * op.kv_heads;
    mt_cpu_run(dev, query_row, &op, batch->rows, batch->rows * q->cols);
    const bool idle = tiles < 2 * mt_host_threads(dev->head.host) && op.most > 1;
    if (idle && tiles * op.most * op.tile * op.group <= PART_ROWS) {
        mt_cpu_run(dev, split_item, &op, tiles * op.most, work);
        mt_cpu_run(dev, merge_item, &op, tiles, work);
    } else {
        mt_cpu_run(dev, whole_item, &op, tiles, work);
    }
}

typedef struct kv_write {
    const mt_device *dev;
    mt_kv *kv;
    size_t layer;
    const mt_tensor *k, *v;
    const mt_span *span;
} kv_write;

/* Writes the key of one row, whose latent is its value, to slot `slot` of a block. */
static void write_latent(const kv_write *op, const float *from, uint8_t *block, size_t slot)
{
    const mt_kv *kv = op->kv;
    const mt_kernels *k = &op->dev->k;
    const mt_kv_parts *parts = &kv->parts;
    const size_t tokens = kv->shape.page_tokens, dim = kv->shape.head_dim, latent = kv->shape.latent;
    const size_t element = kv->shape.type == MT_KV_F32 ? sizeof(float) : sizeof(mt_bf16);
    uint8_t *to = block + slot * kv->head_stride * element;
    if (kv->bits) {
        k->kv_put_q(block, tokens, slot, parts->stride[0], kv->bits, from, latent, false);
        if (dim > latent)
            k->kv_put_q(block + parts->second, tokens, slot, parts->stride[1], kv->bits, from + latent, dim - latent,
                        false);
        return;
    }
    if (kv->shape.type == MT_KV_F32)
        memcpy(to, from, dim * element);
    else
        k->to_bf16((mt_bf16 *)(void *)to, from, dim);
    memset(to + dim * element, 0, (kv->head_stride - dim) * element);
}

/* Writes the keys, or values, of all heads of one row to slot `slot` of a page. */
static void write_vectors(const kv_write *op, const float *from, uint8_t *page, size_t block, size_t slot, bool value)
{
    const mt_kv *kv = op->kv;
    const size_t head_dim = kv->shape.head_dim;
    for (size_t h = 0; h < kv->shape.heads; h++, from += head_dim) {
        uint8_t *to = page + (block + h) * kv->block;
        if (kv->bits) {
            op->dev->k.kv_put_q(to, kv->shape.page_tokens, slot, kv->head_stride, kv->bits, from, head_dim, value);
            continue;
        }
        if (kv->shape.type == MT_KV_BF16) {
            op->dev->k.kv_put_bf16(to, slot, kv->head_stride, from, head_dim, value);
            continue;
        }
        to += slot * kv->head_stride * sizeof(*from);
        memcpy(to, from, head_dim * sizeof(*from));
        memset(to + head_dim * sizeof(*from), 0, (kv->head_stride - head_dim) * sizeof(*from));
    }
}

static void kv_write_row(void *ctx, size_t i, size_t worker)
{
    (void)worker;
    const kv_write *op = ctx;
    const mt_kv *kv = op->kv;
    const size_t position = op->span->position + i, row = op->span->row + i;
    uint8_t *page = kv->data + op->span->pages[kv->shape.group][position / kv->shape.page_tokens] * kv->page_bytes;
    const size_t slot = position % kv->shape.page_tokens, block = op->layer * 2 * kv->shape.heads;
    if (kv->shape.latent) {
        write_latent(op, op->k->data + row * op->k->stride, page + op->layer * kv->block, slot);
        return;
    }
    write_vectors(op, op->k->data + row * op->k->stride, page, block, slot, false);
    write_vectors(op, op->v->data + row * op->v->stride, page, block + kv->shape.heads, slot, true);
}

void mt_cpu_op_kv_write(mt_device *dev, mt_kv *kv, size_t layer, const mt_tensor *k, const mt_tensor *v)
{
    const mt_batch *batch = &dev->batch;
    assert(k->cols == kv->shape.heads * kv->shape.head_dim && layer < kv->shape.layers);
    assert(kv->shape.latent ? !v : v->cols == k->cols);
    for (size_t i = 0; i < batch->spans; i++) {
        kv_write op = {.dev = dev, .kv = kv, .layer = layer, .k = k, .v = v, .span = &batch->span[i]};
        mt_cpu_run(dev, kv_write_row, &op, op.span->rows, op.span->rows * k->cols * 2);
    }
}

size_t mt_cpu_attention_scratch(const mt_device *dev)
{
    const size_t stride = dev->needs.head_stride, accumulators = 2 * MT_CPU_ATTN_ROWS * stride * sizeof(float);
    const size_t widened = dev->needs.widened ? 2 * MT_SEGMENT * stride * sizeof(float) : 0;
    const size_t sm90 = dev->sm90 && stride <= MT_CPU_SM90_STRIDE ? mt_cpu_sm90_attend_scratch(stride) : 0;
    const size_t kernels = mt_cpu_max(widened + dev->k.attn_scratch_bytes(MT_CPU_ATTN_ROWS, stride),
                                      dev->k.attn_q_scratch_bytes(MT_CPU_ATTN_ROWS, stride));
    return accumulators + mt_cpu_max(kernels, sm90);
}

void mt_cpu_plan_attention(mt_device *dev)
{
    dev->queries = mt_cpu_alloc(dev->plan, dev->rows * dev->needs.query * sizeof(float));
    dev->parts = mt_cpu_alloc(dev->plan, PART_ROWS * (sizeof(mt_attn_part) + dev->needs.head_stride * sizeof(float)));
}
