/* The choice of the positions that attention sees (mt_op_top_keys): those with the best scores, the lower of equal
   ones. An item is a row, or a part of its positions where there are few rows; it goes over its positions ascending, a
   page at a time, and keeps at most twice as many as are chosen. What is chosen follows from an order of all positions
   alone, so neither parts nor pages nor the moments when candidates are dropped change it. */
#include <assert.h>
#include <string.h>

#include "device/cpu/cpu.h"

typedef struct choice {
    mt_device *dev;
    mt_index *chosen;
    const mt_tensor *q, *w;
    const mt_kv *kv;
    const mt_batch *batch;
    size_t layer, heads;
    size_t parts; /* of a row's positions */
} choice;

/* A row of the step: the sequence it belongs to, and how many positions it sees. */
typedef struct place {
    const mt_span *span;
    size_t row, seen;
} place;

static place find_place(const mt_batch *batch, size_t row)
{
    const mt_span *span = batch->span;
    while (row >= span->row + span->rows)
        span++;
    return (place){span, row, span->position + (row - span->row) + 1};
}

/* ---- candidates ---- */

/* A number for a position and its score, such that the better of two has the larger one: the score's bits, then the
   position from behind. A NaN comes after all numbers. */
static uint64_t candidate(float score, size_t position)
{
    uint32_t bits;
    score += 0.0f; /* no -0 */
    memcpy(&bits, &score, sizeof(bits));
    bits = score != score ? 0 : bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (UINT32_MAX - (uint32_t)position);
}

static uint32_t position_of(uint64_t candidate)
{
    return UINT32_MAX - (uint32_t)candidate;
}

/* The k-th largest of n numbers, of which no two are equal, byte by byte from the highest. */
static uint64_t find_largest(const uint64_t *c, size_t n, size_t k)
{
    uint64_t found = 0, known = 0;
    for (unsigned shift = 64; shift > 0;) {
        size_t count[256] = {0}, byte = 255;
        shift -= 8;
        for (size_t i = 0; i < n; i++)
            if ((c[i] & known) == found)
                count[c[i] >> shift & 255]++;
        for (; count[byte] < k; byte--)
            k -= count[byte];
        found |= (uint64_t)byte << shift;
        known |= (uint64_t)255 << shift;
    }
    return found;
}

/* Keeps the best `top` candidates, in their order; returns how many are left. */
static size_t keep_best(uint64_t *c, size_t n, size_t top)
{
    if (n <= top)
        return n;
    const uint64_t least = find_largest(c, n, top);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i] >= least)
            c[kept++] = c[i];
    return kept;
}

/* ---- scores ---- */

/* Working memory of a thread: candidates, scores of a page, products of the heads, widened keys, the kernel's own. */
typedef struct room {
    uint64_t *candidates;
    float *scores, *products, *keys;
    uint8_t *kernel;
} room;

static size_t candidate_room(const mt_device *dev)
{
    return mt_cpu_up(2 * dev->needs.top + MT_SEGMENT, 8);
}

static room divide(const choice *op, uint8_t *scratch)
{
    const mt_cpu_needs *needs = &op->dev->needs;
    room r = {.candidates = (uint64_t *)(void *)scratch};
    r.scores = (float *)(void *)(r.candidates + candidate_room(op->dev));
    r.products = r.scores + MT_SEGMENT;
    r.keys = r.products + MT_SEGMENT * needs->compared;
    r.kernel = (uint8_t *)(void *)(r.keys + MT_SEGMENT * needs->head_stride);
    return r;
}

size_t mt_cpu_choice_scratch(const mt_device *dev)
{
    const mt_cpu_needs *needs = &dev->needs;
    if (!needs->top)
        return 0;
    const size_t floats = MT_SEGMENT * (1 + needs->compared + needs->head_stride);
    return candidate_room(dev) * sizeof(uint64_t) + floats * sizeof(float) + dev->k.f_scratch_bytes(needs->head_stride);
}

void mt_cpu_plan_choice(mt_device *dev)
{
    const size_t items = 2 * mt_host_threads(dev->head.host);
    if (!dev->needs.top)
        return;
    dev->choices = mt_cpu_alloc(dev->plan, items * dev->needs.top * sizeof(*dev->choices));
    dev->choice_counts = mt_cpu_alloc(dev->plan, items * sizeof(*dev->choice_counts));
}

/* The keys of a page as a matrix. */
static mt_mat page_keys(const choice *op, const place *p, size_t page, float *widened)
{
    const mt_kv *kv = op->kv;
    const size_t tokens = kv->shape.page_tokens, stride = kv->head_stride;
    const uint8_t *block = kv->data + p->span->pages[kv->shape.group][page] * kv->page_bytes + op->layer * kv->block;
    const bool bf16 = kv->shape.type == MT_KV_BF16;
    if (kv->bits) {
        for (size_t slot = 0; slot < tokens; slot++)
            op->dev->k.kv_get_q(widened + slot * stride, block, tokens, slot, kv->parts.stride[0], kv->bits, false);
        block = (const uint8_t *)(const void *)widened;
    }
    return (mt_mat){.format = bf16 ? MT_FORMAT_BF16 : MT_FORMAT_F32,
                    .bits = bf16 ? 16 : 32,
                    .n = tokens,
                    .k = kv->shape.head_dim,
                    .w = block,
                    .stride = stride * (bf16 ? sizeof(mt_bf16) : sizeof(float))};
}

/* Scores of a page's positions: heads ascending, s = fma(w, max(q . key, 0), s) from 0. */
static void score(const choice *op, const place *p, size_t page, const room *r)
{
    const mt_kernels *k = &op->dev->k;
    const size_t tokens = op->kv->shape.page_tokens;
    const mt_mat keys = page_keys(op, p, page, r->keys);
    const float *w = mt_cpu_row(op->w, p->row);
    k->f_matmul(r->products, tokens, &keys, 0, tokens, mt_cpu_row(op->q, p->row), keys.k, NULL, op->heads, r->kernel);
    mt_cpu_activate(k, MT_ACT_RELU, r->products, op->heads * tokens);
    memset(r->scores, 0, tokens * sizeof(*r->scores));
    for (size_t h = 0; h < op->heads; h++)
        k->axpy(r->scores, w[h], r->products + h * tokens, tokens);
}

/* Finds the best of a row's pages [from, to); returns their number. */
static size_t search(const choice *op, const place *p, size_t from, size_t to, const room *r)
{
    const size_t tokens = op->kv->shape.page_tokens, top = op->kv->shape.top;
    size_t n = 0;
    for (size_t page = from; page < to; page++) {
        const size_t first = page * tokens, left = p->seen - first;
        score(op, p, page, r);
        for (size_t i = 0; i < tokens && i < left; i++)
            r->candidates[n++] = candidate(r->scores[i], first + i);
        if (n >= 2 * top)
            n = keep_best(r->candidates, n, top);
    }
    return keep_best(r->candidates, n, top);
}

/* ---- items ---- */

static size_t pages_of(const choice *op, const place *p)
{
    return (p->seen + op->kv->shape.page_tokens - 1) / op->kv->shape.page_tokens;
}

static void whole_item(void *ctx, size_t row, size_t worker)
{
    const choice *op = ctx;
    const size_t top = op->kv->shape.top;
    const place p = find_place(op->batch, row);
    if (p.seen <= top)
        return;
    const room r = divide(op, mt_cpu_scratch(op->dev, worker));
    search(op, &p, 0, pages_of(op, &p), &r);
    for (size_t i = 0; i < top; i++)
        op->chosen->data[row * top + i] = position_of(r.candidates[i]);
}

static void part_item(void *ctx, size_t item, size_t worker)
{
    const choice *op = ctx;
    const size_t top = op->kv->shape.top, part = item % op->parts;
    const place p = find_place(op->batch, item / op->parts);
    if (p.seen <= top)
        return;
    const room r = divide(op, mt_cpu_scratch(op->dev, worker));
    const size_t pages = pages_of(op, &p);
    const size_t n = search(op, &p, pages * part / op->parts, pages * (part + 1) / op->parts, &r);
    memcpy(op->dev->choices + item * op->dev->needs.top, r.candidates, n * sizeof(*r.candidates));
    op->dev->choice_counts[item] = (uint32_t)n;
}

/* Chooses among what the parts of a row chose. */
static void merge_item(void *ctx, size_t row, size_t worker)
{
    const choice *op = ctx;
    const size_t top = op->kv->shape.top;
    const place p = find_place(op->batch, row);
    if (p.seen <= top)
        return;
    uint64_t *c = divide(op, mt_cpu_scratch(op->dev, worker)).candidates;
    size_t n = 0;
    for (size_t item = row * op->parts; item < (row + 1) * op->parts; item++) {
        const size_t more = op->dev->choice_counts[item];
        memcpy(c + n, op->dev->choices + item * op->dev->needs.top, more * sizeof(*c));
        n = keep_best(c, n + more, top);
    }
    assert(n == top);
    for (size_t i = 0; i < top; i++)
        op->chosen->data[row * top + i] = position_of(c[i]);
}

void mt_cpu_op_top_keys(mt_device *dev, mt_index *chosen, const mt_tensor *q, const mt_tensor *w, mt_kv *kv,
                        size_t layer)
{
    const mt_batch *batch = &dev->batch;
    const size_t threads = mt_host_threads(dev->head.host), top = kv->shape.top;
    choice op = {.dev = dev, .chosen = chosen, .q = q, .w = w, .kv = kv, .batch = batch, .layer = layer};
    op.heads = w->cols;
    assert(op.heads * kv->shape.head_dim == q->cols && op.heads <= kv->shape.query_heads && layer < kv->shape.layers);
    assert(top > 0 && chosen->count >= batch->rows * top && batch->rows <= dev->rows);
    size_t work = 0, rows = 0;
    for (size_t i = 0; i < batch->spans; i++) {
        const size_t end = batch->span[i].position + batch->span[i].rows, beyond = end > top ? end - top : 0;
        const size_t few = beyond < batch->span[i].rows ? beyond : batch->span[i].rows;
        rows += few;
        work += few * end * q->cols;
    }
    if (rows == 0)
        return;
    op.parts = batch->rows < threads ? 2 * threads / batch->rows : 1;
    if (op.parts > 1) {
        mt_cpu_run(dev, part_item, &op, batch->rows * op.parts, work);
        mt_cpu_run(dev, merge_item, &op, batch->rows, batch->rows * top * op.parts);
    } else {
        mt_cpu_run(dev, whole_item, &op, batch->rows, work);
    }
}
