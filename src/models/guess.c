/* Guesses ahead with a drafting head or a drafter (mt_model_guess in model.h). The model itself checks the guesses, so
   nothing computed here changes an answer. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "models/decoder_inside.h"

/* Clusters of tokens. Only the tokens of the best clusters are compared; the host chooses among them. */
typedef struct mt_shortlist {
    mt_weight *centroids;
    mt_tensor *scores; /* [rows, clusters] */
    mt_reading *read_scores, *read_logits;
    const uint32_t *kept; /* [clusters * each]: the tokens of each cluster */
    /* how many clusters there are; how many are searched; tokens of each */
    size_t clusters, top, each;
    uint32_t *best; /* [top]: the clusters that are searched */
} mt_shortlist;

/* ---- loading ---- */

/* Makes the clusters of a drafter's tokens. */
static mt_shortlist *new_shortlist(mt_model *m, const mt_guess_weights *w, size_t rows, size_t tokens)
{
    const mt_drafter_spec *d = m->spec->drafter;
    if (!d || d->clusters == 0)
        return NULL;
    mt_shortlist *s = mt_alloc(sizeof(*s));
    *s = (mt_shortlist){.centroids = mt_weight_new(m->set, &w->centroids, NULL, false),
                        .scores = mt_tensor_new(m->set, rows, d->clusters),
                        .read_scores = mt_reading_new(m->set, rows * d->clusters * sizeof(float)),
                        .read_logits = mt_reading_new(m->set, rows * tokens * sizeof(float)),
                        .kept = w->kept,
                        .clusters = d->clusters,
                        .top = d->top_clusters,
                        .each = d->model.vocab / d->clusters,
                        .best = mt_alloc_array(d->top_clusters, sizeof(*s->best))};
    return s;
}

/* Makes as much of a model as layers need (mt_guess.by): a drafter has the model's device and pages. */
static mt_model *new_drafter(mt_model *m, size_t rows)
{
    mt_model *d = mt_alloc(sizeof(*d));
    d->spec = &m->spec->drafter->model;
    d->dev = m->dev;
    d->set = m->set;
    d->max_rows = rows;
    memcpy(d->kv, m->kv, sizeof(d->kv));
    d->work = mt_alloc_array(d->spec->layers * MT_ROLES, sizeof(*d->work));
    d->ropes = mt_alloc_array(d->spec->rope_count, sizeof(*d->ropes));
    mt_decoder_streams_new(d, rows);
    mt_decoder_ropes_new(d, rows);
    return d;
}

/* Sets whose layers guess, and loads their weights. */
static void load_layers(mt_model *m, mt_guess *g, const mt_guess_weights *w, size_t rows)
{
    const mt_drafter_spec *drafter = m->spec->drafter;
    g->own = mt_model_guess_layer(m->spec);
    g->by = drafter ? new_drafter(m, rows) : m;
    g->spec = drafter ? drafter->model.layer : &g->own;
    g->layers = drafter ? drafter->model.layers : 1;
    g->layer = mt_alloc_array(g->layers, sizeof(*g->layer));
    for (size_t i = 0; i < g->layers; i++)
        mt_decoder_layer_load(g->by, &g->layer[i], &w->layer[i], &g->spec[i]);
}

/* Makes the tensors that hold final states of a step's rows, and those that guesses are computed in. */
static void new_tensors(mt_model *m, mt_guess *g, const mt_model_params *params)
{
    const size_t hidden = m->spec->hidden, width = g->by->spec->hidden, rows = params->rows;
    mt_set *set = m->set;
    g->places = params->places;
    g->hidden = mt_tensor_new(set, 1 + params->places + rows, hidden);
    g->rows = mt_tensor_part(set, g->hidden, 1 + params->places, rows, 0, hidden);
    g->out = mt_tensor_new(set, params->memos, width);
    g->next = g->back ? mt_shared_new(set, m->dev, NULL, params->memos, hidden, m->spec->hidden_slices)
                      : (mt_shared){.all = g->out};
    g->logits = mt_shared_new(set, m->dev, NULL, params->memos, g->count, m->spec->guess_slices);
    g->tokens = mt_index_new(set, params->memos);
    g->reading = mt_reading_new(set, params->memos * sizeof(uint32_t));
    g->before_index = mt_index_new(set, rows);
    g->both = mt_tensor_new(set, rows, 2 * hidden);
    g->left = mt_tensor_part(set, g->both, 0, rows, 0, hidden);
    g->right = mt_tensor_part(set, g->both, 0, rows, hidden, hidden);
    g->before = mt_alloc_array(rows, sizeof(*g->before));
    g->from = mt_alloc_array(params->memos, sizeof(*g->from));
    g->seen = mt_alloc_array(params->memos, sizeof(*g->seen));
}

mt_guess *mt_guess_new(mt_model *m, const mt_model_weights *weights, const mt_model_params *params)
{
    const mt_guess_weights *w = &weights->guess;
    mt_guess *g = mt_alloc(sizeof(*g));
    g->count = mt_model_guessed(m->spec);
    load_layers(m, g, w, params->memos);
    g->fc = mt_weight_new(m->set, &w->fc, NULL, false);
    g->head = mt_weight_new(m->set, &w->head, NULL, false);
    g->back = m->spec->drafter ? mt_weight_new(m->set, &w->back, NULL, false) : NULL;
    g->embed_norm = mt_tensor_of(m->set, w->embed_norm, 1, m->spec->hidden);
    g->hidden_norm = mt_tensor_of(m->set, w->hidden_norm, 1, m->spec->hidden);
    g->norm = mt_tensor_of(m->set, w->norm, 1, g->by->spec->hidden);
    new_tensors(m, g, params);
    g->shortlist = new_shortlist(m, w, params->memos, g->count);
    return g;
}

void mt_guess_free(mt_guess *g)
{
    if (!g)
        return;
    if (g->spec != &g->own) {
        mt_free(g->by->work);
        mt_free(g->by->ropes);
        mt_free(g->by);
    }
    if (g->shortlist)
        mt_free(g->shortlist->best);
    mt_free(g->shortlist);
    mt_free(g->layer);
    mt_free(g->before);
    mt_free(g->from);
    mt_free(g->seen);
    mt_free(g);
}

/* ---- running ---- */

/* x = fc(embedding of the row's token, hidden state before it), where that state is row before[i] of `hidden`. */
static void join(mt_model *m, const mt_batch *batch, const mt_tensor *hidden)
{
    const mt_guess *g = m->guess;
    const size_t n = batch->rows;
    mt_op_embed(m->dev, g->embed_norm ? m->x : g->left, m->embed, m->embed_scale);
    if (batch->features)
        mt_op_features(m->dev, m->x, m->features, 0, false);
    if (g->embed_norm)
        mt_model_norm(m, g->left, m->x, n, g->embed_norm);
    mt_index_write(m->dev, g->before_index, g->before, n);
    mt_op_gather(m->dev, g->hidden_norm ? m->y : g->right, hidden, g->before_index, n);
    if (g->hidden_norm)
        mt_model_norm(m, g->right, m->y, n, g->hidden_norm);
    mt_shared_product(m->dev, &g->by->own_x, g->fc, g->both, n);
}

/* Keeps the final states of all rows and, of a drafting head, their keys and values. This includes rows that are
   guesses themselves, as it is not known yet which are right. */
void mt_guess_enter(mt_model *m, const mt_batch *batch)
{
    mt_guess *g = m->guess;
    const mt_decoder_layer *l = g->layer;
    const size_t n = batch->rows;
    mt_model_norm(m, g->rows, m->x, n, m->norm);
    if (g->by != m)
        return;
    for (size_t i = 0; i < batch->spans; i++) {
        const mt_span *span = &batch->span[i];
        assert(span->memo < g->places);
        g->before[span->row] = 1 + span->memo;
        for (uint32_t r = 1; r < span->rows; r++)
            g->before[span->row + r] = (uint32_t)(1 + g->places) + span->row + r - 1;
    }
    join(m, batch, g->hidden);
    mt_model_norm(m, m->h, m->x, n, l->attn_norm);
    mt_decoder_layer_enter(m, l, g->spec, n);
}

void mt_model_carry(mt_model *m, size_t place, uint32_t row)
{
    mt_guess *g = m->guess;
    assert(place < g->places);
    mt_relay_carry(&m->relay, place, row);
    mt_op_copy_row(m->dev, g->hidden, 1 + place, g->hidden, row == MT_NO_PAGE ? 0 : 1 + g->places + row);
}

/* Writes the best clusters of a row to s->best, in any order. */
static void choose_clusters(mt_shortlist *s, const float *scores)
{
    size_t count = 0;
    for (uint32_t c = 0; c < s->clusters; c++) {
        if (count == s->top && !(scores[c] > scores[s->best[count - 1]]))
            continue;
        size_t at = count < s->top ? count++ : count - 1;
        for (; at > 0 && scores[c] > scores[s->best[at - 1]]; at--)
            s->best[at] = s->best[at - 1];
        s->best[at] = c;
    }
}

/* The likeliest token of these clusters; of equals, the first. */
static uint32_t choose_token(const mt_shortlist *s, const float *logits, size_t tokens)
{
    uint32_t best = UINT32_MAX;
    for (size_t i = 0; i < s->top; i++)
        for (size_t k = 0; k < s->each; k++) {
            const uint32_t token = s->kept[s->best[i] * s->each + k];
            if (token < tokens &&
                (best == UINT32_MAX || logits[token] > logits[best] || (logits[token] == logits[best] && token < best)))
                best = token;
        }
    return best == UINT32_MAX ? 0 : best;
}

static void choose_listed(mt_model *m, const mt_guess *g, uint32_t *tokens, size_t n)
{
    mt_shortlist *s = g->shortlist;
    mt_op_matmul(m->dev, &s->scores, (const mt_weight *[]){s->centroids}, 1, g->out, n);
    mt_read_rows(m->dev, s->read_scores, s->scores, 0, n);
    mt_read_rows(m->dev, s->read_logits, g->logits.all, 0, n);
    for (size_t i = 0; i < n; i++) {
        choose_clusters(s, mt_reading_row(m->dev, s->read_scores, i));
        tokens[i] = choose_token(s, mt_reading_row(m->dev, s->read_logits, i), g->count);
    }
}

static void choose(mt_model *m, const mt_guess *g, uint32_t *tokens, size_t n)
{
    mt_decoder_logits(m, &g->logits, g->head, g->out, n, 0);
    if (g->shortlist) {
        choose_listed(m, g, tokens, n);
        return;
    }
    mt_op_argmax(m->dev, g->tokens, g->logits.all, n);
    mt_read_index(m->dev, g->reading, g->tokens, n);
    memcpy(tokens, mt_reading_data(m->dev, g->reading), n * sizeof(*tokens));
}

/* A drafting head does not see position 0: no hidden state precedes it, and the head was not trained with it. A drafter
   sees what the model has computed, which ends before the row's own position. */
void mt_model_guess(mt_model *m, const mt_batch *rows, bool chained, uint32_t *tokens)
{
    mt_guess *g = m->guess;
    const size_t n = rows->rows;
    mt_batch all = *rows;
    const mt_batch *batch = &all;
    assert(n == batch->spans);
    mt_relay_guess(&m->relay, rows, chained);
    all.seen_from = g->from;
    all.seen = g->by == m ? NULL : g->seen;
    for (size_t i = 0; i < n; i++) {
        g->before[i] = chained ? (uint32_t)i : 1 + batch->span[i].memo;
        g->from[i] = g->by == m;
        g->seen[i] = batch->span[i].position;
    }
    mt_alloc_forbid();
    mt_step_begin(m->dev, batch);
    mt_decoder_ropes_fill(g->by);
    join(m, batch, chained ? g->next.all : g->hidden);
    for (size_t i = 0; i < g->layers; i++)
        mt_decoder_layer_run(g->by, &g->layer[i], &g->spec[i], n);
    mt_model_norm(g->by, g->out, g->by->x, n, g->norm);
    if (g->back)
        mt_shared_product(m->dev, &g->next, g->back, g->out, n);
    choose(m, g, tokens, n);
    mt_alloc_permit();
    mt_relay_done(&m->relay);
}
