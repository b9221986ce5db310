/* Runs texts through an encoder (bert.h). A job is some texts, whose tokens are the rows of one tensor, one text behind
   the other. As in a vision tower (vision.c), a layer has two passes over all rows: keys and values into pages, then
   everything else, which reads them.

   Used by the device's thread. A row does not depend on the other texts: each text has pages of its own, from position
   0 on, and sees nothing else. */
#include "models/bert.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"

/* A norm on the device; w NULL: there is none. */
typedef struct norms {
    mt_tensor *w, *bias;
} norms;

/* A layer's weights on the device. */
typedef struct layer {
    mt_weight *q, *k, *v, *o, *gate, *up, *down;
    norms attn_norm, norm, attn_after, after;
    mt_tensor *q_norm, *k_norm;
} layer;

enum { PASS_EMBED, PASS_KEYS, PASS_REST };

struct mt_bert {
    mt_cursor cursor;
    mt_device *dev;
    mt_set *set;
    const mt_bert_spec *spec;
    mt_weight *words, *places, *types, *dense, *out, *after[MT_BERT_AFTER];
    const mt_bert_weights *weights;
    norms norm, last, class_norm;
    layer *layers;
    mt_kv *kv;
    mt_tensor *no_bias;                        /* zeros, of norms that have no bias */
    mt_tensor *x, *view;                       /* all rows of the job, and those of the slice */
    mt_tensor *h, *heads, *q, *k, *v, *y;      /* values of a slice */
    mt_tensor *gate, *up;                      /* of the MLP */
    mt_tensor *turns[2], *table[2];            /* of each rotary embedding: its frequencies, the slice's angles */
    mt_tensor *middle, *classes;               /* of the classifier */
    mt_tensor *pooled, *densed[MT_BERT_AFTER]; /* of the dense layers behind pooling */
    mt_index *none;                            /* zeros, as many as a slice has rows */
    mt_reading *reading;                       /* reads a row */
    size_t max_rows, max_pages;
    /* the job */
    mt_bert_text text[MT_BERT_TEXTS];
    size_t first[MT_BERT_TEXTS + 1], page[MT_BERT_TEXTS]; /* first row and first page of each text */
    size_t texts;
    uint32_t *pages; /* 0, 1, 2, ... as page table */
    /* of the slice, [rows] */
    uint32_t *tokens, *place, *type, *seen_from, *seen;
    mt_position *positions;
    mt_index *place_index, *type_index;
    mt_span spans[MT_BERT_TEXTS];
};

static const mt_cursor_kind passes;

static norms load_norm(mt_bert *b, const mt_bert_norm *n)
{
    mt_tensor *bias = n->bias ? mt_tensor_of(b->set, n->bias, 1, b->spec->hidden) : b->no_bias;
    return (norms){mt_tensor_of(b->set, n->w, 1, b->spec->hidden), bias};
}

/* NULL where there is no such matrix. */
static mt_weight *load_dense(mt_bert *b, const mt_bert_dense *d)
{
    return d->w.n ? mt_weight_new(b->set, &d->w, d->bias, false) : NULL;
}

static mt_weight *load_table(mt_bert *b, const mt_mat *table)
{
    return table->n ? mt_weight_new(b->set, table, NULL, true) : NULL;
}

static void load_layer(mt_bert *b, layer *l, const mt_bert_layer_weights *w)
{
    *l = (layer){.q = load_dense(b, &w->q),
                 .k = load_dense(b, &w->k),
                 .v = load_dense(b, &w->v),
                 .o = load_dense(b, &w->o),
                 .gate = load_dense(b, &w->gate),
                 .up = load_dense(b, &w->up),
                 .down = load_dense(b, &w->down),
                 .attn_norm = load_norm(b, &w->attn_norm),
                 .norm = load_norm(b, &w->norm),
                 .attn_after = load_norm(b, &w->attn_after),
                 .after = load_norm(b, &w->after),
                 .q_norm = mt_tensor_of(b->set, w->q_norm, 1, b->spec->head_dim),
                 .k_norm = mt_tensor_of(b->set, w->k_norm, 1, b->spec->head_dim)};
}

static void load(mt_bert *b, const mt_bert_weights *w)
{
    b->weights = w;
    b->no_bias = mt_tensor_new(b->set, 1, b->spec->hidden); /* new tensors are zeros */
    b->words = load_table(b, &w->words);
    b->places = load_table(b, &w->places);
    b->types = load_table(b, &w->types);
    b->norm = load_norm(b, &w->norm);
    b->last = load_norm(b, &w->last);
    b->class_norm = load_norm(b, &w->class_norm);
    for (size_t i = 0; i < b->spec->layers; i++)
        load_layer(b, &b->layers[i], &w->layer[i]);
    b->dense = load_dense(b, &w->dense);
    b->out = load_dense(b, &w->out);
    for (size_t i = 0; i < w->after_count; i++)
        b->after[i] = load_dense(b, &w->after[i].dense);
}

static void new_ropes(mt_bert *b)
{
    for (size_t i = 0; i < MT_COUNT(b->table); i++) {
        const mt_rope *rope = &b->spec->rope[i];
        if (rope->half == 0)
            continue;
        b->turns[i] = mt_tensor_of(b->set, rope->inv_freq, 1, rope->half);
        b->table[i] = mt_tensor_new(b->set, b->cursor.most, 2 * (size_t)rope->half);
    }
}

static void new_tensors(mt_bert *b)
{
    const mt_bert_spec *s = b->spec;
    const size_t hidden = s->hidden, rows = b->cursor.most;
    const size_t query = (size_t)s->heads * s->head_dim, key = (size_t)s->kv_heads * s->head_dim;
    size_t widest = MT_MAX(hidden, s->labels);
    b->x = mt_tensor_new(b->set, b->max_rows, hidden);
    b->view = mt_tensor_view(b->set);
    b->h = mt_tensor_new(b->set, rows, hidden);
    b->heads = mt_tensor_new(b->set, rows, query);
    b->q = mt_tensor_new(b->set, rows, query);
    b->k = mt_tensor_new(b->set, rows, key);
    b->v = mt_tensor_new(b->set, rows, key);
    b->y = mt_tensor_new(b->set, rows, hidden);
    b->up = mt_tensor_new(b->set, rows, s->ffn);
    b->gate = s->gated ? mt_tensor_new(b->set, rows, s->ffn) : NULL;
    b->middle = mt_tensor_new(b->set, 1, hidden);
    b->pooled = mt_tensor_new(b->set, 1, hidden);
    b->classes = mt_tensor_new(b->set, 1, MT_MAX(s->labels, 1));
    for (size_t i = 0; i < b->weights->after_count; i++) {
        b->densed[i] = mt_tensor_new(b->set, 1, b->weights->after[i].width);
        widest = MT_MAX(widest, b->weights->after[i].width);
    }
    b->place_index = mt_index_new(b->set, rows);
    b->type_index = mt_index_new(b->set, rows);
    b->none = mt_index_of(b->set, b->tokens, rows); /* no tokens yet: zeros */
    b->reading = mt_reading_new(b->set, widest * sizeof(float));
    new_ropes(b);
}

static void new_arrays(mt_bert *b)
{
    b->pages = mt_alloc_array(b->max_pages, sizeof(*b->pages));
    b->tokens = mt_alloc_array(b->cursor.most, sizeof(*b->tokens));
    b->place = mt_alloc_array(b->cursor.most, sizeof(*b->place));
    b->type = mt_alloc_array(b->cursor.most, sizeof(*b->type));
    b->seen_from = mt_alloc_array(b->cursor.most, sizeof(*b->seen_from));
    b->seen = mt_alloc_array(b->cursor.most, sizeof(*b->seen));
    b->positions = mt_alloc_array(b->cursor.most, sizeof(*b->positions));
    for (size_t i = 0; i < b->max_pages; i++)
        b->pages[i] = (uint32_t)i;
}

mt_bert *mt_bert_new(mt_device *dev, const mt_bert_spec *spec, const mt_bert_weights *weights,
                     const mt_bert_params *params, mt_error *err)
{
    mt_bert *b = mt_alloc(sizeof(*b));
    b->dev = dev;
    b->set = mt_set_new(dev);
    b->spec = spec;
    b->max_rows = params->rows;
    b->cursor = (mt_cursor){.kind = &passes, .whole = 1, .most = params->slice};
    b->max_pages = params->rows / MT_PAGE_TOKENS + MT_BERT_TEXTS;
    b->layers = mt_alloc_array(spec->layers, sizeof(*b->layers));
    assert(params->rows >= spec->context && params->slice > 0);
    new_arrays(b);
    const mt_kv_shape shape = {.layers = 1,
                               .heads = spec->kv_heads,
                               .query_heads = spec->heads,
                               .head_dim = spec->head_dim,
                               .page_tokens = MT_PAGE_TOKENS,
                               .type = mt_kv_type_of(dev)};
    b->kv = mt_kv_new(b->set, &shape, err);
    if (!b->kv || !mt_kv_reserve(b->set, b->kv, b->max_pages, err)) {
        mt_bert_free(b);
        return NULL;
    }
    load(b, weights);
    new_tensors(b);
    return b;
}

void mt_bert_free(mt_bert *b)
{
    if (!b)
        return;
    void *const arrays[] = {b->pages, b->tokens, b->place, b->type, b->seen_from, b->seen, b->positions, b->layers};
    for (size_t i = 0; i < MT_COUNT(arrays); i++)
        mt_free(arrays[i]);
    mt_set_free(b->set);
    mt_free(b);
}

void mt_bert_begin(mt_bert *b, const mt_bert_text *texts, size_t count)
{
    size_t page = 0, rows = 0;
    assert(!b->cursor.busy && count > 0 && count <= MT_BERT_TEXTS);
    b->texts = count;
    for (size_t i = 0; i < count; i++) {
        assert(texts[i].count > 0 && texts[i].count <= b->spec->context);
        b->text[i] = texts[i];
        b->first[i] = rows;
        b->page[i] = page;
        rows += texts[i].count;
        page += (texts[i].count + MT_PAGE_TOKENS - 1) / MT_PAGE_TOKENS;
    }
    b->first[count] = rows;
    assert(rows <= b->max_rows && page <= b->max_pages);
    mt_cursor_begin(&b->cursor, rows);
}

mt_cursor *mt_bert_cursor(mt_bert *b)
{
    return &b->cursor;
}

/* RoBERTa counts positions from behind padding's; a padding token has padding's position and is not counted. */
static uint32_t place_of(const mt_bert *b, const mt_bert_text *text, size_t at)
{
    uint32_t place = b->spec->pad;
    if (!b->spec->roberta)
        return (uint32_t)at;
    if (text->tokens[at] == b->spec->pad)
        return place;
    for (size_t i = 0; i <= at; i++)
        place += text->tokens[i] != b->spec->pad;
    return place;
}

/* The part [*from, *to) of a text's tokens that is in rows [first, first + rows); equal: none is. */
static void overlap(const mt_bert *b, size_t text, size_t first, size_t rows, size_t *from, size_t *to)
{
    const size_t end = first + rows;
    *from = b->first[text] > first ? b->first[text] : first;
    *to = b->first[text + 1] < end ? b->first[text + 1] : end;
    *to = *to > *from ? *to : *from;
}

static bool is_local(const mt_bert *b, size_t number)
{
    return b->spec->local && b->spec->local[number];
}

/* Positions [from, to) that the row at `at` of a text sees in the cursor's layer. */
static void sight(const mt_bert *b, const mt_bert_text *text, size_t at, size_t *from, size_t *to)
{
    const size_t reach = b->spec->reach;
    const bool local = is_local(b, b->cursor.layer);
    *from = local && at > reach ? at - reach : 0;
    *to = local && text->count - at > reach ? at + reach + 1 : text->count;
}

static double slice_cost(const mt_cursor *c, size_t first, size_t rows)
{
    const mt_bert *b = (const mt_bert *)c;
    const mt_bert_spec *s = b->spec;
    const double hidden = s->hidden, n = (double)rows;
    const double query = (double)s->heads * s->head_dim, key = (double)s->kv_heads * s->head_dim;
    double keys = 0;
    if (c->pass != PASS_REST)
        return c->pass == PASS_KEYS ? 2 * hidden * key * n : 3 * hidden * n;
    for (size_t t = 0; t < b->texts; t++) {
        size_t from, to;
        overlap(b, t, first, rows, &from, &to);
        const size_t seen =
            is_local(b, c->layer) ? MT_MIN(b->text[t].count, 2 * (size_t)s->reach + 1) : b->text[t].count;
        keys += (double)(to - from) * (double)seen;
    }
    return 2 * query * (hidden * n + keys) + (s->gated ? 3 : 2) * hidden * s->ffn * n;
}

/* Describes the slice's n rows. */
static mt_batch describe(mt_bert *b, size_t n)
{
    mt_batch batch = {.rows = n,
                      .tokens = b->tokens,
                      .positions = b->positions,
                      .span = b->spans,
                      .seen_from = b->seen_from,
                      .seen = b->seen};
    const size_t first = b->cursor.row;
    for (size_t t = 0; t < b->texts; t++) {
        size_t from, to;
        overlap(b, t, first, n, &from, &to);
        if (from == to)
            continue;
        b->spans[batch.spans++] = (mt_span){.row = (uint32_t)(from - first),
                                            .rows = (uint32_t)(to - from),
                                            .position = (uint32_t)(from - b->first[t]),
                                            .pages = {b->pages + b->page[t]}};
        for (size_t row = from; row < to; row++) {
            const size_t i = row - first, at = row - b->first[t];
            b->tokens[i] = b->text[t].tokens[at];
            b->type[i] = b->text[t].second > 0 && at >= b->text[t].second && b->spec->two_types;
            size_t low, high;
            sight(b, &b->text[t], at, &low, &high);
            b->seen_from[i] = (uint32_t)low;
            b->seen[i] = (uint32_t)high;
            b->positions[i] = (mt_position){{(uint32_t)at, (uint32_t)at, (uint32_t)at}};
            if (b->cursor.pass == PASS_EMBED)
                b->place[i] = place_of(b, &b->text[t], at);
        }
    }
    return batch;
}

static void norm(mt_bert *b, mt_tensor *y, const mt_tensor *x, const norms *n, size_t rows)
{
    if (b->spec->rms)
        mt_op_norm(b->dev, y, x, rows, n->w, b->spec->eps, b->spec->norm_offset);
    else
        mt_op_layer_norm(b->dev, y, x, rows, n->w, n->bias, b->spec->eps);
}

static void multiply(mt_bert *b, mt_tensor *y, const mt_weight *w, const mt_tensor *x, size_t rows)
{
    mt_op_matmul(b->dev, &y, &w, 1, x, rows);
}

static void embed(mt_bert *b, size_t n)
{
    mt_op_embed(b->dev, b->view, b->words, b->spec->embed_scale);
    if (b->types) {
        mt_index_write(b->dev, b->type_index, b->type, n);
        mt_op_add_rows(b->dev, b->view, b->types, b->type_index, NULL, 1, n);
    }
    if (b->places) {
        mt_index_write(b->dev, b->place_index, b->place, n);
        mt_op_add_rows(b->dev, b->view, b->places, b->place_index, NULL, 1, n);
    }
    if (b->norm.w)
        norm(b, b->view, b->view, &b->norm, n);
}

/* The input of attention or of an MLP: the slice's rows, or what the norm in front of them makes of these. */
static const mt_tensor *input(mt_bert *b, const norms *n, size_t rows)
{
    if (!b->spec->before || !n->w)
        return b->view;
    norm(b, b->h, b->view, n, rows);
    return b->h;
}

/* Adds what attention or an MLP gives, which is in b->y. */
static void add(mt_bert *b, const norms *n, const norms *after, size_t rows)
{
    if (after->w)
        norm(b, b->y, b->y, after, rows);
    mt_op_add(b->dev, b->view, b->y, rows);
    if (!b->spec->before)
        norm(b, b->view, b->view, n, rows);
}

static void turn(mt_bert *b, mt_tensor *x, const mt_tensor *w, size_t n)
{
    const size_t which = is_local(b, b->cursor.layer);
    const mt_rope *rope = &b->spec->rope[which];
    if (rope->half == 0)
        return;
    mt_op_rope_table(b->dev, b->table[which], b->turns[which], NULL, rope->scale);
    mt_op_heads(b->dev, x, x, n, b->spec->head_dim, w, b->spec->eps, b->spec->norm_offset, b->table[which], false);
}

static void keys(mt_bert *b, const layer *l, size_t n)
{
    const mt_tensor *x = input(b, &l->attn_norm, n);
    mt_op_matmul(b->dev, (mt_tensor *[]){b->k, b->v}, (const mt_weight *[]){l->k, l->v}, 2, x, n);
    turn(b, b->k, l->k_norm, n);
    mt_op_kv_write(b->dev, b->kv, 0, b->k, b->v);
}

static void attend(mt_bert *b, const layer *l, size_t n)
{
    multiply(b, b->q, l->q, input(b, &l->attn_norm, n), n);
    turn(b, b->q, l->q_norm, n);
    mt_op_attention(b->dev, b->heads, b->q, b->kv, 0, (mt_attention){.scale = b->spec->scale});
    multiply(b, b->y, l->o, b->heads, n);
    add(b, &l->attn_norm, &l->attn_after, n);
}

static void rest(mt_bert *b, const layer *l, size_t n)
{
    attend(b, l, n);
    const mt_tensor *x = input(b, &l->norm, n);
    if (b->spec->gated) {
        mt_op_matmul(b->dev, (mt_tensor *[]){b->gate, b->up}, (const mt_weight *[]){l->gate, l->up}, 2, x, n);
        mt_op_glu(b->dev, b->up, b->gate, b->up, n, (mt_glu){.act = b->spec->activation});
    } else {
        multiply(b, b->up, l->up, x, n);
        mt_op_act(b->dev, b->up, n, b->spec->activation);
    }
    multiply(b, b->y, l->down, b->up, n);
    add(b, &l->norm, &l->after, n);
    if (b->last.w && l == &b->layers[b->spec->layers - 1])
        norm(b, b->view, b->view, &b->last, n);
}

static bool next_pass(mt_cursor *c)
{
    c->layer += c->pass == PASS_REST;
    c->pass = c->pass == PASS_KEYS ? PASS_REST : PASS_KEYS;
    return c->layer < ((const mt_bert *)c)->spec->layers;
}

static void run_slice(mt_cursor *c, size_t n)
{
    mt_bert *b = (mt_bert *)c;
    const mt_batch batch = describe(b, n);
    mt_step_begin(b->dev, &batch);
    mt_tensor_aim(b->dev, b->view, b->x, c->row, n);
    if (c->pass == PASS_EMBED)
        embed(b, n);
    else
        (c->pass == PASS_KEYS ? keys : rest)(b, &b->layers[c->layer], n);
}

static const mt_cursor_kind passes = {.slice = run_slice, .cost = slice_cost, .next = next_pass};

const float *mt_bert_hidden(mt_bert *b, size_t text, size_t row)
{
    assert(!b->cursor.busy && text < b->texts && row < b->text[text].count);
    mt_read_rows(b->dev, b->reading, b->x, b->first[text] + row, 1);
    return mt_reading_row(b->dev, b->reading, 0);
}

/* tanh is computed as a softcap of 1. */
static void activate(mt_bert *b, mt_tensor *x, size_t rows, bool tanh, mt_activation act)
{
    if (tanh)
        mt_op_softcap(b->dev, x, rows, 1);
    else
        mt_op_act(b->dev, x, rows, act);
}

static void class_dense(mt_bert *b, mt_tensor *y, const mt_tensor *x, size_t rows)
{
    multiply(b, y, b->dense, x, rows);
    activate(b, y, rows, b->spec->class_tanh, b->spec->class_activation);
}

/* y = the mean of a text's rows, or of what the classifier's dense layer makes of each. */
static void mean_rows(mt_bert *b, mt_tensor *y, size_t text, bool densed)
{
    const size_t count = b->text[text].count, most = b->cursor.most;
    mt_op_clear(b->dev, y, 0, 1);
    for (size_t row = 0; row < count; row += most) {
        const size_t n = MT_MIN(most, count - row);
        mt_tensor_aim(b->dev, b->view, b->x, b->first[text] + row, n);
        if (densed)
            class_dense(b, b->y, b->view, n);
        mt_op_sum_rows(b->dev, y, b->none, densed ? b->y : b->view, n);
    }
    mt_op_scale(b->dev, y, 1, 1 / (float)count);
}

const float *mt_bert_classes(mt_bert *b, size_t text)
{
    assert(!b->cursor.busy && b->spec->labels && text < b->texts);
    mt_tensor_aim(b->dev, b->view, b->x, b->first[text], 1);
    if (b->spec->view == MT_BERT_LATE) {
        mean_rows(b, b->middle, text, true);
    } else {
        if (b->spec->view == MT_BERT_MEAN)
            mean_rows(b, b->pooled, text, false);
        class_dense(b, b->middle, b->spec->view == MT_BERT_MEAN ? b->pooled : b->view, 1);
    }
    if (b->class_norm.w)
        norm(b, b->middle, b->middle, &b->class_norm, 1);
    multiply(b, b->classes, b->out, b->middle, 1);
    mt_read_rows(b->dev, b->reading, b->classes, 0, 1);
    return mt_reading_row(b->dev, b->reading, 0);
}

const float *mt_bert_densed(mt_bert *b, const float *vector)
{
    const mt_tensor *x = b->pooled;
    assert(!b->cursor.busy && b->weights->after_count > 0);
    mt_tensor_write(b->dev, b->pooled, 0, 1, vector);
    for (size_t i = 0; i < b->weights->after_count; i++) {
        const mt_bert_after *after = &b->weights->after[i];
        multiply(b, b->densed[i], b->after[i], x, 1);
        activate(b, b->densed[i], 1, after->tanh, after->activation);
        x = b->densed[i];
    }
    mt_read_rows(b->dev, b->reading, x, 0, 1);
    return mt_reading_row(b->dev, b->reading, 0);
}
