/* Runs texts through an encoder (bert.h). A job is some texts, whose tokens are the rows of one tensor, one text behind
   the other. As in a vision tower (vision.c), a layer has two passes over all rows: keys and values into pages, then
   everything else, which reads them.

   Used by the device's thread. A row does not depend on the other texts: each text has pages of its own, from position
   0 on, and sees nothing else. */
#include "models/bert.h"

#include <assert.h>
#include <math.h>

#include "base/alloc.h"

/* A layer norm on the device. */
typedef struct norms {
    mt_tensor *w, *bias;
} norms;

/* A layer's weights on the device. */
typedef struct layer {
    mt_weight *q, *k, *v, *o, *up, *down;
    norms attn_norm, norm;
} layer;

enum { PASS_EMBED, PASS_KEYS, PASS_REST };

struct mt_bert {
    mt_cursor cursor;
    mt_device *dev;
    mt_set *set;
    const mt_bert_spec *spec;
    mt_weight *words, *places, *types, *dense, *out;
    norms norm;
    layer *layers;
    mt_kv *kv;
    mt_tensor *x, *view;               /* all rows of the job, and those of the slice */
    mt_tensor *h, *q, *k, *v, *y, *up; /* values of a slice */
    mt_tensor *middle, *classes;       /* of the classifier */
    mt_reading *reading;               /* reads a row */
    size_t max_rows, max_pages;
    /* the job */
    mt_bert_text text[MT_BERT_TEXTS];
    size_t first[MT_BERT_TEXTS + 1], page[MT_BERT_TEXTS]; /* first row and first page of each text */
    size_t texts;
    uint32_t *pages; /* 0, 1, 2, ... as page table */
    /* of the slice, [rows] */
    uint32_t *tokens, *place, *type, *seen;
    mt_index *place_index, *type_index;
    mt_span spans[MT_BERT_TEXTS];
};

static const mt_cursor_kind passes;

static norms load_norm(mt_bert *b, const mt_bert_norm *n)
{
    return (norms){mt_tensor_of(b->set, n->w, 1, b->spec->hidden), mt_tensor_of(b->set, n->bias, 1, b->spec->hidden)};
}

static mt_weight *load_dense(mt_bert *b, const mt_bert_dense *d)
{
    return mt_weight_new(b->set, &d->w, d->bias, false);
}

static void load(mt_bert *b, const mt_bert_weights *w)
{
    b->words = mt_weight_new(b->set, &w->words, NULL, true);
    b->places = mt_weight_new(b->set, &w->places, NULL, true);
    b->types = mt_weight_new(b->set, &w->types, NULL, true);
    b->norm = load_norm(b, &w->norm);
    for (size_t i = 0; i < b->spec->layers; i++) {
        const mt_bert_layer_weights *lw = &w->layer[i];
        b->layers[i] = (layer){.q = load_dense(b, &lw->q),
                               .k = load_dense(b, &lw->k),
                               .v = load_dense(b, &lw->v),
                               .o = load_dense(b, &lw->o),
                               .up = load_dense(b, &lw->up),
                               .down = load_dense(b, &lw->down),
                               .attn_norm = load_norm(b, &lw->attn_norm),
                               .norm = load_norm(b, &lw->norm)};
    }
    if (b->spec->labels) {
        b->dense = load_dense(b, &w->dense);
        b->out = load_dense(b, &w->out);
    }
}

static void new_tensors(mt_bert *b)
{
    const size_t hidden = b->spec->hidden, rows = b->cursor.most;
    b->x = mt_tensor_new(b->set, b->max_rows, hidden);
    b->view = mt_tensor_view(b->set);
    b->h = mt_tensor_new(b->set, rows, hidden);
    b->q = mt_tensor_new(b->set, rows, hidden);
    b->k = mt_tensor_new(b->set, rows, hidden);
    b->v = mt_tensor_new(b->set, rows, hidden);
    b->y = mt_tensor_new(b->set, rows, hidden);
    b->up = mt_tensor_new(b->set, rows, b->spec->ffn);
    b->middle = mt_tensor_new(b->set, 1, hidden);
    b->classes = mt_tensor_new(b->set, 1, MT_MAX(b->spec->labels, 1));
    b->place_index = mt_index_new(b->set, rows);
    b->type_index = mt_index_new(b->set, rows);
    b->reading = mt_reading_new(b->set, MT_MAX(hidden, b->spec->labels) * sizeof(float));
}

static void new_arrays(mt_bert *b)
{
    b->pages = mt_alloc_array(b->max_pages, sizeof(*b->pages));
    b->tokens = mt_alloc_array(b->cursor.most, sizeof(*b->tokens));
    b->place = mt_alloc_array(b->cursor.most, sizeof(*b->place));
    b->type = mt_alloc_array(b->cursor.most, sizeof(*b->type));
    b->seen = mt_alloc_array(b->cursor.most, sizeof(*b->seen));
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
                               .heads = spec->heads,
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
    void *const arrays[] = {b->pages, b->tokens, b->place, b->type, b->seen, b->layers};
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

static double slice_cost(const mt_cursor *c, size_t first, size_t rows)
{
    const mt_bert *b = (const mt_bert *)c;
    const double hidden = b->spec->hidden, n = (double)rows;
    double keys = 0;
    if (c->pass != PASS_REST)
        return c->pass == PASS_KEYS ? 2 * hidden * hidden * n : 3 * hidden * n;
    for (size_t t = 0; t < b->texts; t++) {
        size_t from, to;
        overlap(b, t, first, rows, &from, &to);
        keys += (double)(to - from) * (double)b->text[t].count;
    }
    return 2 * hidden * ((hidden + b->spec->ffn) * n + keys);
}

/* Describes the slice's n rows. */
static mt_batch describe(mt_bert *b, size_t n)
{
    mt_batch batch = {.rows = n, .tokens = b->tokens, .span = b->spans, .seen = b->seen};
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
            b->seen[i] = (uint32_t)b->text[t].count;
            if (b->cursor.pass == PASS_EMBED)
                b->place[i] = place_of(b, &b->text[t], at);
        }
    }
    return batch;
}

static void norm(mt_bert *b, const norms *n, size_t rows)
{
    mt_op_layer_norm(b->dev, b->view, b->view, rows, n->w, n->bias, b->spec->eps);
}

static void multiply(mt_bert *b, mt_tensor *y, const mt_weight *w, const mt_tensor *x, size_t rows)
{
    mt_op_matmul(b->dev, &y, &w, 1, x, rows);
}

static void embed(mt_bert *b, size_t n)
{
    mt_index_write(b->dev, b->type_index, b->type, n);
    mt_index_write(b->dev, b->place_index, b->place, n);
    mt_op_embed(b->dev, b->view, b->words, 1);
    mt_op_add_rows(b->dev, b->view, b->types, b->type_index, NULL, 1, n);
    mt_op_add_rows(b->dev, b->view, b->places, b->place_index, NULL, 1, n);
    norm(b, &b->norm, n);
}

static void keys(mt_bert *b, const layer *l, size_t n)
{
    mt_op_matmul(b->dev, (mt_tensor *[]){b->k, b->v}, (const mt_weight *[]){l->k, l->v}, 2, b->view, n);
    mt_op_kv_write(b->dev, b->kv, 0, b->k, b->v);
}

static void rest(mt_bert *b, const layer *l, size_t n)
{
    multiply(b, b->q, l->q, b->view, n);
    mt_op_attention(b->dev, b->h, b->q, b->kv, 0, (mt_attention){.scale = 1.0f / sqrtf((float)b->spec->head_dim)});
    multiply(b, b->y, l->o, b->h, n);
    mt_op_add(b->dev, b->view, b->y, n);
    norm(b, &l->attn_norm, n);
    multiply(b, b->up, l->up, b->view, n);
    mt_op_act(b->dev, b->up, n, b->spec->activation);
    multiply(b, b->y, l->down, b->up, n);
    mt_op_add(b->dev, b->view, b->y, n);
    norm(b, &l->norm, n);
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
const float *mt_bert_classes(mt_bert *b, size_t text)
{
    assert(!b->cursor.busy && b->spec->labels && text < b->texts);
    mt_tensor_aim(b->dev, b->view, b->x, b->first[text], 1);
    multiply(b, b->middle, b->dense, b->view, 1);
    mt_op_softcap(b->dev, b->middle, 1, 1);
    multiply(b, b->classes, b->out, b->middle, 1);
    mt_read_rows(b->dev, b->reading, b->classes, 0, 1);
    return mt_reading_row(b->dev, b->reading, 0);
}
