/* Keys, values and attention over pages. Units are sequences: number n is so long, ends with so many rows whose queries
   are asked, and holds the same keys wherever its pages lie. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "check.h"

#define SEQUENCES 7
#define KV_TYPES 4

/* What sequences are at most. */
typedef struct sizes {
    size_t sequences, length, queries;
} sizes;

static const sizes several = {.sequences = SEQUENCES, .length = 700, .queries = 20};
static const sizes large = {.sequences = 2, .length = 2900, .queries = 150}; /* tiles of rows, shares of segments */
static const sizes wide = {.sequences = 2, .length = 700, .queries = 6};     /* few rows, as wide as they come */
static const sizes quick = {.sequences = 2, .length = 1500, .queries = 70};  /* the same, fewer */

#define LENGTH 2900
#define QUERIES 150
#define PAGES 200 /* at least those of either */

typedef struct sequence {
    size_t length, queries, first; /* first: position of the first query */
    uint32_t pages[LENGTH / MT_PAGE_TOKENS + 1];
} sequence;

static const char *type_name(mt_kv_type type)
{
    static const char *const names[KV_TYPES] = {"bf16", "f32", "8 bits", "4 bits"};
    return names[type];
}

static void draw_sequences(run *r, sequence *s, const sizes *m)
{
    uint32_t free[PAGES], left = PAGES;
    for (uint32_t i = 0; i < PAGES; i++)
        free[i] = (i * 29 + 7 * (uint32_t)r->units) % PAGES;
    for (size_t i = 0; i < r->units; i++) {
        run own = *r; /* what a sequence is does not depend on the others */
        own.rng = r->seed + 1000 * (r->unit[i] + 1);
        s[i].length = 1 + below(&own, below(&own, 2) ? 40 : m->length - 1);
        s[i].queries = 1 + below(&own, s[i].length < m->queries ? s[i].length : m->queries);
        s[i].first = s[i].length - s[i].queries;
        if (below(&own, 3) == 0) /* what a slice of a picture asks: more follows it that it may see */
            s[i].first = below(&own, s[i].first + 1);
        for (size_t p = 0; p <= s[i].length / MT_PAGE_TOKENS; p++)
            s[i].pages[p] = free[--left];
    }
}

/* In chunks, as prompts come. */
static void write_keys(run *r, mt_kv *kv, size_t layer, const sequence *s, uint32_t unit, size_t cols, size_t head_dim)
{
    const bool latent = mt_kv_shape_of(r->dev, kv)->latent;
    mt_tensor *k = mt_tensor_new(r->set, 256, cols), *v = latent ? NULL : mt_tensor_new(r->set, 256, cols);
    for (size_t at = 0; at < s->length;) {
        const size_t left = s->length - at, most = 97 + at % 159, n = left < most ? left : most;
        const mt_span span = {.rows = (uint32_t)n, .position = (uint32_t)at, .pages = {s->pages, s->pages}};
        write_positions(r, k, 0, 1, unit, at, n, cols);
        if (v)
            write_positions(r, v, 0, 2, unit, at, n, cols);
        mt_step_begin(r->dev, &(mt_batch){.rows = n, .spans = 1, .span = &span});
        if (at % 2) /* which may be one with writing them */
            mt_op_heads(r->dev, k, k, n, head_dim, NULL, 0, 0, NULL, false);
        mt_op_kv_write(r->dev, kv, layer, k, v);
        at += n;
    }
}

typedef struct view {
    uint32_t seen_from[2 * QUERIES], seen[2 * QUERIES];
} view;

/* What rows see where a batch says so: from the middle of their sequence on, and as far as its end. */
static void draw_view(mt_batch *b, const sequence *s, size_t count, view *v, unsigned kind)
{
    size_t row = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t q = 0; q < s[i].queries; q++, row++) {
            const size_t at = s[i].first + q;
            v->seen_from[row] = (uint32_t)(at / 3);
            v->seen[row] = (uint32_t)s[i].length;
        }
    b->seen_from = kind & 1 ? v->seen_from : NULL;
    b->seen = kind & 2 ? v->seen : NULL;
}

static void ask(run *r, mt_kv *kv, size_t layer, const sequence *s, const sizes *m, size_t heads, size_t head_dim)
{
    const size_t cols = heads * head_dim, latent = mt_kv_shape_of(r->dev, kv)->latent;
    const size_t out = latent ? heads * latent : cols;
    mt_span spans[SEQUENCES];
    mt_batch batch = {.spans = r->units, .span = spans};
    view seen;
    for (size_t i = 0; i < r->units; i++) {
        spans[i] = (mt_span){.row = (uint32_t)batch.rows,
                             .rows = (uint32_t)s[i].queries,
                             .position = (uint32_t)s[i].first,
                             .pages = {s[i].pages, s[i].pages}};
        batch.rows += s[i].queries;
    }
    mt_tensor *q = mt_tensor_new(r->set, batch.rows, cols), *y = mt_tensor_new(r->set, batch.rows, out);
    for (size_t i = 0; i < r->units; i++)
        write_positions(r, q, spans[i].row, 3, r->unit[i], spans[i].position, spans[i].rows, cols);
    draw_view(&batch, s, r->units, &seen, (unsigned)below(r, 4));
    mt_attention how = {.window = below(r, 2) ? (uint32_t)(1 + below(r, 300)) : 0,
                        .chunk = below(r, 4) == 0 ? (uint32_t)(1 + below(r, 300)) : 0,
                        .causal = below(r, 4) == 0,
                        .scale = real(r, 0.05f, 0.4f),
                        .softcap = below(r, 3) == 0 ? real(r, 5, 50) : 0};
    if (below(r, 3) == 0)
        how.sinks = row_of(r, 4, heads);
    mt_step_begin(r->dev, &batch);
    mt_op_attention(r->dev, y, q, kv, layer, how);
    mt_reading *reading = mt_reading_new(r->set, out * sizeof(float));
    float *none = mt_alloc_array(out, sizeof(*none));
    for (size_t i = 0; i < r->units; i++)
        for (size_t row = 0; row < m->queries; row++) {
            mt_read_rows(r->dev, reading, y, row < spans[i].rows ? spans[i].row + row : 0, 1);
            give_floats(r, row < spans[i].rows ? mt_reading_row(r->dev, reading, 0) : none, out);
        }
    mt_free(none);
}

static void attend(run *r, const sizes *m)
{
    static const size_t dims[] = {8, 16, 64, 72, 80, 96, 128, 256}, groups[] = {1, 2, 3, 4, 8};
    mt_kv_shape shape = {.group = below(r, 2),
                         .layers = 1 + below(r, 2),
                         .heads = 1 + below(r, m == &several ? 3 : 2),
                         .head_dim = in_turn(r, dims, MT_COUNT(dims)),
                         .page_tokens = MT_PAGE_TOKENS,
                         .type = below(r, 3) ? MT_KV_BF16 : (mt_kv_type)below(r, KV_TYPES)};
    sequence s[SEQUENCES];
    mt_error err;
    const size_t layer = below(r, shape.layers);
    shape.query_heads = shape.heads * pick(r, groups, MT_COUNT(groups) - (m != &several));
    mt_kv *kv = mt_kv_new(r->set, &shape, &err);
    const bool held = kv && mt_kv_reserve(r->set, kv, PAGES, &err);
    (void)held;
    if (shape.type == MT_KV_BF16)
        r->rule = NEXT;
    say(r, "%zu of %zu heads of %zu, %s", shape.heads, shape.query_heads, shape.head_dim, type_name(shape.type));
    plan(r, 2 * QUERIES);
    draw_sequences(r, s, m);
    for (size_t i = 0; i < r->units; i++)
        write_keys(r, kv, layer, &s[i], r->unit[i], shape.heads * shape.head_dim, shape.head_dim);
    /* a layer may ask with fewer heads than others of its pages */
    const size_t share = 1 + below(r, shape.query_heads / shape.heads);
    ask(r, kv, layer, s, m, share * shape.heads, shape.head_dim);
}

/* Latents, which are the values of all heads, with what else keys have; or latents alone. */
static void attend_latents(run *r, const sizes *m)
{
    static const size_t heads[] = {1, 2, 3, 16, 20, 66, 1, 134}, usual[] = {2, 16, 20, 40, 66};
    static const size_t widths[] = {0, 512, 256, 512, 256}, halves[] = {0, 1, 1, 0, 0};
    mt_kv_shape shape = {.group = below(r, 2),
                         .layers = 1 + below(r, 2),
                         .heads = 1,
                         .query_heads = in_turn(r, heads, m == &several ? MT_COUNT(heads) : 3),
                         .latent = 1 + below(r, m == &several ? 48 : 520),
                         .page_tokens = MT_PAGE_TOKENS,
                         .type = (mt_kv_type)below(r, KV_TYPES)};
    sequence s[SEQUENCES];
    mt_error err;
    const size_t layer = below(r, shape.layers);
    shape.head_dim = shape.latent + below(r, 3) * (1 + below(r, 40));
    if (m == &wide && in_turn(r, widths, MT_COUNT(widths))) { /* as models have them */
        shape.latent = in_turn(r, widths, MT_COUNT(widths));
        shape.head_dim = shape.latent + 64;
        shape.query_heads = pick(r, usual, MT_COUNT(usual));
        shape.type = in_turn(r, halves, MT_COUNT(halves)) ? MT_KV_BF16 : shape.type;
        r->rule = shape.type == MT_KV_BF16 ? NEXT : BITS; /* on tensor cores */
    }
    mt_kv *kv = mt_kv_new(r->set, &shape, &err);
    const bool held = kv && mt_kv_reserve(r->set, kv, PAGES, &err);
    (void)held;
    say(r, "%zu heads of %zu, latents of %zu, %s", shape.query_heads, shape.head_dim, shape.latent,
        type_name(shape.type));
    plan(r, 2 * QUERIES);
    draw_sequences(r, s, m);
    for (size_t i = 0; i < r->units; i++)
        write_keys(r, kv, layer, &s[i], r->unit[i], shape.head_dim, shape.head_dim);
    ask(r, kv, layer, s, m, shape.query_heads, shape.head_dim);
}

static void latents(run *r)
{
    attend_latents(r, &several);
}

static void wide_latents(run *r)
{
    attend_latents(r, &wide);
}

/* Two pools of pages for the same positions: keys by which `top` of them are chosen, and latents, which rows then
   attend to. */
static void choices(run *r)
{
    const mt_kv_type type = (mt_kv_type)below(r, KV_TYPES);
    mt_kv_shape shape = {.layers = 1, .heads = 1, .query_heads = 1 + below(r, 70), .latent = 1 + below(r, 64)};
    mt_kv_shape index = {.group = 1, .layers = 1, .heads = 1, .query_heads = 1 + below(r, 20)};
    shape.head_dim = shape.latent + below(r, 3) * (1 + below(r, 20));
    index.head_dim = index.latent = 1 + below(r, 140);
    index.top = 1 + below(r, below(r, 2) ? 40 : 600);
    index.type = shape.type = type;
    index.page_tokens = shape.page_tokens = MT_PAGE_TOKENS;
    sequence s[SEQUENCES];
    mt_span spans[SEQUENCES];
    mt_batch batch = {.spans = r->units, .span = spans};
    mt_error err;
    mt_kv *kv = mt_kv_new(r->set, &shape, &err), *keys = mt_kv_new(r->set, &index, &err);
    const bool held = kv && keys && mt_kv_reserve(r->set, kv, PAGES, &err) && mt_kv_reserve(r->set, keys, PAGES, &err);
    (void)held;
    say(r, "%zu by %zu heads of %zu, %s", index.top, index.query_heads, index.head_dim, type_name(type));
    plan(r, 2 * QUERIES);
    draw_sequences(r, s, &several);
    for (size_t i = 0; i < r->units; i++) {
        write_keys(r, kv, 0, &s[i], r->unit[i], shape.head_dim, shape.head_dim);
        write_keys(r, keys, 0, &s[i], r->unit[i] + 1000, index.head_dim, index.head_dim);
        spans[i] = (mt_span){.row = (uint32_t)batch.rows,
                             .rows = (uint32_t)s[i].queries,
                             .position = (uint32_t)s[i].first,
                             .pages = {s[i].pages, s[i].pages}};
        batch.rows += s[i].queries;
    }
    const size_t cols = shape.query_heads * shape.head_dim, out = shape.query_heads * shape.latent;
    mt_tensor *q = mt_tensor_new(r->set, batch.rows, cols), *y = mt_tensor_new(r->set, batch.rows, out);
    mt_tensor *asks = mt_tensor_new(r->set, batch.rows, index.query_heads * index.head_dim);
    mt_tensor *w = mt_tensor_new(r->set, batch.rows, index.query_heads);
    mt_index *chosen = mt_index_new(r->set, batch.rows * index.top);
    for (size_t i = 0; i < r->units; i++) {
        const mt_span *at = &spans[i];
        write_positions(r, q, at->row, 3, r->unit[i], at->position, at->rows, cols);
        write_positions(r, asks, at->row, 5, r->unit[i], at->position, at->rows, index.query_heads * index.head_dim);
        write_positions(r, w, at->row, 6, r->unit[i], at->position, at->rows, index.query_heads);
    }
    mt_step_begin(r->dev, &batch);
    mt_op_top_keys(r->dev, chosen, asks, w, keys, 0);
    mt_op_attention(r->dev, y, q, kv, 0, (mt_attention){.scale = 0.1f, .chosen = chosen, .top = (uint32_t)index.top});
    mt_reading *reading = mt_reading_new(r->set, out * sizeof(float));
    for (size_t i = 0; i < r->units; i++) {
        mt_read_rows(r->dev, reading, y, spans[i].row + spans[i].rows - 1, 1);
        give_floats(r, mt_reading_row(r->dev, reading, 0), out);
    }
}

static void attention(run *r)
{
    attend(r, &several);
}

static void large_attention(run *r)
{
    attend(r, r->quick ? &quick : &large);
}

/* A tower's: every row of a picture sees all of it. Units are rows, of which any may be asked at once. */
static void tower(run *r)
{
    static const size_t dims[] = {64, 64, 72, 80, 128};
    const mt_kv_shape shape = {.layers = 1,
                               .heads = 2 + 2 * below(r, 2),
                               .query_heads = 4,
                               .head_dim = in_turn(r, dims, MT_COUNT(dims)),
                               .page_tokens = MT_PAGE_TOKENS,
                               .type = mt_kv_type_of(r->dev)};
    const size_t cols = 4 * shape.head_dim;
    sequence s = {.length = 1 + below(r, 600)};
    uint32_t seen[MOST_UNITS];
    mt_error err;
    mt_kv *kv = mt_kv_new(r->set, &shape, &err);
    const bool held = kv && mt_kv_reserve(r->set, kv, PAGES, &err);
    (void)held;
    if (shape.type == MT_KV_BF16)
        r->rule = NEXT;
    say(r, "%zu heads of %zu, %zu keys", shape.heads, shape.head_dim, s.length);
    plan(r, MOST_UNITS);
    for (uint32_t p = 0; p <= s.length / MT_PAGE_TOKENS; p++)
        s.pages[p] = (p * 29 + 7) % PAGES;
    write_keys(r, kv, 0, &s, 0, shape.heads * shape.head_dim, shape.head_dim);
    for (size_t i = 0; i < r->units; i++)
        seen[i] = (uint32_t)s.length;
    const mt_span span = {.rows = (uint32_t)r->units, .pages = {s.pages}};
    mt_tensor *q = unit_rows(r, 3, cols), *y = mt_tensor_new(r->set, r->units, cols);
    mt_step_begin(r->dev, &(mt_batch){.rows = r->units, .spans = 1, .span = &span, .seen = seen});
    mt_op_attention(r->dev, y, q, kv, 0, (mt_attention){.scale = 0.125f});
    give(r, y, 1, cols);
}

/* Pages that were copied, and read out and written back, are what they were. */
static void pages(run *r)
{
    const mt_kv_shape shape = {.layers = 1,
                               .heads = 2,
                               .query_heads = 4,
                               .head_dim = 24,
                               .page_tokens = MT_PAGE_TOKENS,
                               .type = (mt_kv_type)below(r, KV_TYPES)};
    const size_t bytes = mt_kv_page_bytes(r->dev, &shape);
    sequence s[SEQUENCES];
    mt_error err;
    mt_kv *kv = mt_kv_new(r->set, &shape, &err);
    const bool held = kv && mt_kv_reserve(r->set, kv, 2 * PAGES, &err);
    (void)held;
    mt_reading *reading = mt_reading_aside(r->set, bytes);
    mt_sending *sending = mt_sending_new(r->set, bytes);
    if (shape.type == MT_KV_BF16)
        r->rule = NEXT;
    say(r, "%s", type_name(shape.type));
    plan(r, 256);
    draw_sequences(r, s, &several);
    for (size_t i = 0; i < r->units; i++) {
        write_keys(r, kv, 0, &s[i], r->unit[i], 2 * 24, 24);
        for (size_t p = 0; p <= s[i].length / MT_PAGE_TOKENS; p++) {
            const uint32_t to = s[i].pages[p] + PAGES;
            if (p % 2) {
                mt_op_kv_copy(r->dev, kv, to, s[i].pages[p]);
            } else {
                mt_read_page(r->dev, reading, kv, s[i].pages[p]);
                memcpy(mt_sending_room(r->dev, sending), mt_reading_data(r->dev, reading), bytes);
                mt_kv_restore(r->dev, kv, to, sending, 0);
                while (!mt_sending_gone(r->dev, sending))
                    continue;
            }
            mt_kv_poison(r->dev, kv, s[i].pages[p]);
            if (mt_kv_poisoned(r->dev, kv, s[i].pages[p]) && !mt_kv_poisoned(r->dev, kv, to))
                s[i].pages[p] = to; /* else NaN shows */
        }
    }
    ask(r, kv, 0, s, &several, 4, 24);
}

const device_check attention_checks[] = {{.name = "op_kv_write op_attention", .fn = attention, .units = SEQUENCES},
                                         {.name = "op_attention", .fn = large_attention, .units = 2, .quick = 14},
                                         {.name = "latents", .fn = latents, .units = SEQUENCES, .latent = true},
                                         {.name = "latents", .fn = wide_latents, .units = 2, .latent = true},
                                         {.name = "op_top_keys", .fn = choices, .units = SEQUENCES, .choice = true},
                                         {.name = "attention of a tower", .fn = tower, .units = 270},
                                         {.name = "op_kv_copy", .fn = pages, .units = SEQUENCES},
                                         {0}};
