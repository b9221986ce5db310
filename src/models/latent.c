/* Latent attention (mt_latent_spec), always in its absorbed form: a query is multiplied by its head's matrix from
   latents to keys, and then meets latents themselves; what it gathers of them becomes values behind attention. So
   prompts and answers are computed in one way (R1 of docs/numerics.md), and keys and values of heads are never made.

   A layer with an index (mt_index_spec) first chooses the positions that its rows attend to. Positive factors of scores
   are left out, as they change no choice. */
#include "models/decoder_inside.h"

/* What chooses is computed in fp32, as routers are (R9). */
static void load_index(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w, const mt_index_spec *s)
{
    mt_set *set = m->set;
    if (!m->chosen && s->top)
        m->chosen = mt_index_new(set, m->max_rows * s->top);
    if (s->heads == 0)
        return;
    mt_decoder_work(m, l, MT_ROLE_INDEX_QUERIES, (size_t)s->heads * s->head_dim, 0);
    mt_decoder_work(m, l, MT_ROLE_INDEX_KEYS, s->head_dim, 0);
    mt_decoder_work(m, l, MT_ROLE_INDEX_WEIGHTS, s->heads, 0);
    l->index_q = mt_weight_new(set, &w->index_q, NULL, true);
    l->index_k = mt_weight_new(set, &w->index_k, NULL, true);
    l->index_weights = mt_weight_new(set, &w->index_weights, NULL, true);
    l->index_norm = mt_tensor_of(set, w->index_norm, 1, s->head_dim);
    l->index_norm_bias = mt_tensor_of(set, w->index_norm_bias, 1, s->head_dim);
}

void mt_latent_load(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w, const mt_attn_spec *a)
{
    const mt_latent_spec *s = &a->latent;
    mt_set *set = m->set;
    mt_decoder_work(m, l, MT_ROLE_QUERIES, (size_t)a->heads * a->head_dim, 0);
    mt_decoder_work(m, l, MT_ROLE_PLAIN_QUERIES, (size_t)a->heads * (s->plain + s->turned), 0);
    mt_decoder_work(m, l, MT_ROLE_KEYS, a->head_dim, 0);
    mt_decoder_work(m, l, MT_ROLE_ATTENDED_LATENTS, (size_t)a->heads * s->width, 0);
    mt_decoder_work(m, l, MT_ROLE_ATTENDED, w->o.k, a->slices);
    l->latent = mt_tensor_part(set, l->in[MT_ROLE_KEYS], 0, m->max_rows, 0, s->width);
    l->turned = mt_tensor_part(set, l->in[MT_ROLE_KEYS], 0, m->max_rows, s->width, s->turned);
    if (s->queries) {
        mt_decoder_work(m, l, MT_ROLE_NARROW_QUERIES, s->queries, 0);
        l->q_narrow = mt_weight_new(set, &w->q_narrow, w->q_narrow_bias, false);
        l->q_norm = mt_tensor_of(set, w->q_norm, 1, s->queries);
    }
    l->q = mt_weight_new(set, &w->q, NULL, false);
    l->k = mt_weight_new(set, &w->k, w->k_bias, false);
    l->k_norm = mt_tensor_of(set, w->k_norm, 1, s->width);
    l->key_up = mt_weight_new(set, &w->key_up, NULL, false);
    l->value_up = mt_weight_new(set, &w->value_up, NULL, false);
    l->key_rows = w->key_rows;
    l->value_rows = w->value_rows;
    l->o = mt_weight_new(set, &w->o, w->o_bias, false);
    load_index(m, l, w, &a->index);
}

static const mt_rope_table *rope_of(const mt_model *m, const mt_attn_spec *a)
{
    return a->rope == MT_NO_ROPE ? NULL : &m->ropes[a->rope];
}

void mt_latent_keep(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    const mt_rope_table *rope = rope_of(m, &s->attn);
    mt_op_norm(m->dev, l->latent, l->latent, n, l->k_norm, s->attn.latent.eps, 0);
    if (rope)
        mt_op_heads(m->dev, l->turned, l->turned, n, s->attn.latent.turned, NULL, 0, 0, rope->table, rope->pairs);
    mt_op_kv_write(m->dev, m->kv[s->group], s->slot, l->in[MT_ROLE_KEYS], NULL);
    mt_op_spend(m->dev, l->in[MT_ROLE_KEYS]);
}

/* Writes the index's keys to their pages, and m->chosen for the rows that see more than is chosen. narrow: what queries
   are products of. */
static void choose(mt_model *m, const mt_decoder_layer *l, const mt_attn_spec *a, const mt_tensor *narrow, size_t n)
{
    static const float eps = 1e-6f;
    const mt_index_spec *s = &a->index;
    const mt_rope_table *rope = rope_of(m, a);
    mt_tensor *q = l->in[MT_ROLE_INDEX_QUERIES], *k = l->in[MT_ROLE_INDEX_KEYS], *w = l->in[MT_ROLE_INDEX_WEIGHTS];
    mt_op_matmul(m->dev, (mt_tensor *[]){k, w}, (const mt_weight *[]){l->index_k, l->index_weights}, 2, m->h, n);
    mt_op_matmul(m->dev, &q, (const mt_weight *[]){l->index_q}, 1, narrow, n);
    mt_op_layer_norm(m->dev, k, k, n, l->index_norm, l->index_norm_bias, eps);
    if (rope) {
        mt_op_heads(m->dev, k, k, n, s->head_dim, NULL, 0, 0, rope->table, s->pairs);
        mt_op_heads(m->dev, q, q, n, s->head_dim, NULL, 0, 0, rope->table, s->pairs);
    }
    mt_op_kv_write(m->dev, m->kv[s->group], s->slot, k, NULL);
    mt_op_top_keys(m->dev, m->chosen, q, w, m->kv[s->group], s->slot);
}

/* Writes the queries, as the checkpoint has them, to in[MT_ROLE_PLAIN_QUERIES], and keys to in[MT_ROLE_KEYS]. */
static void project(mt_model *m, const mt_decoder_layer *l, const mt_attn_spec *a, size_t n)
{
    const mt_latent_spec *s = &a->latent;
    mt_tensor *const *in = l->in, *narrow = in[MT_ROLE_NARROW_QUERIES], *q = in[MT_ROLE_PLAIN_QUERIES];
    const mt_weight *first = s->queries ? l->q_narrow : l->q;
    mt_op_matmul(m->dev, (mt_tensor *[]){s->queries ? narrow : q, in[MT_ROLE_KEYS]}, (const mt_weight *[]){first, l->k},
                 2, m->h, n);
    if (s->queries)
        mt_op_norm(m->dev, narrow, narrow, n, l->q_norm, s->eps, 0);
    if (a->index.heads)
        choose(m, l, a, narrow, n);
    mt_op_spend(m->dev, m->h);
    if (!s->queries)
        return;
    mt_op_matmul(m->dev, &q, (const mt_weight *[]){l->q}, 1, narrow, n);
    mt_op_spend(m->dev, narrow);
}

void mt_latent_attend(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    const mt_attn_spec *a = &s->attn;
    const mt_latent_spec *how = &a->latent;
    const mt_rope_table *rope = rope_of(m, a);
    const size_t dim = how->plain + how->turned;
    mt_tensor *const *in = l->in, *given = in[MT_ROLE_PLAIN_QUERIES], *q = in[MT_ROLE_QUERIES];
    project(m, l, a, n);
    mt_latent_keep(m, l, s, n);
    mt_op_matmul_heads(m->dev, q, a->head_dim, l->key_up, l->key_rows, given, dim, n);
    mt_op_turn_ends(m->dev, q, a->head_dim, given, dim, how->turned, n, rope ? rope->table : NULL, rope && rope->pairs);
    mt_op_spend(m->dev, given);
    if (a->stretched)
        mt_op_stretch(m->dev, q, m->stretch, m->spec->stretch.every);
    mt_op_attention(m->dev, in[MT_ROLE_ATTENDED_LATENTS], q, m->kv[s->group], s->slot,
                    (mt_attention){.window = a->window,
                                   .chunk = a->chunk,
                                   .causal = a->causal,
                                   .scale = a->scale,
                                   .chosen = a->index.top ? m->chosen : NULL,
                                   .top = a->index.top});
    mt_op_spend(m->dev, q);
    mt_op_matmul_heads(m->dev, in[MT_ROLE_ATTENDED], how->value, l->value_up, l->value_rows,
                       in[MT_ROLE_ATTENDED_LATENTS], how->width, n);
    mt_op_spend(m->dev, in[MT_ROLE_ATTENDED_LATENTS]);
}
