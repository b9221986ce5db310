/* One layer of the decoder: its weights, its working tensors, and its computation for a step's rows. Every field of
   mt_layer_spec is used here, except those about what is kept, which spec.c uses. */
#include "base/alloc.h"
#include "models/decoder_inside.h"
#include "ranks/ranks.h"

static void make_work(mt_model *m, mt_decoder_layer *l, mt_role role, size_t cols)
{
    mt_decoder_work(m, l, role, cols, 0);
}

/* ---- loading ---- */

/* The weights of a norm that has none in the checkpoint, such that it multiplies by 1. */
static mt_tensor *plain_norm(mt_model *m, size_t n)
{
    float *w = mt_alloc_array(n, sizeof(*w));
    for (size_t i = 0; i < n; i++)
        w[i] = 1 - m->spec->norm_offset;
    mt_tensor *t = mt_tensor_of(m->set, w, 1, n);
    mt_free(w);
    return t;
}

/* Loads the weights of attention, and makes its working tensors. */
static void load_attention(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w, const mt_attn_spec *a)
{
    const size_t query = (size_t)a->heads * a->head_dim, key = (size_t)a->kv_heads * a->head_dim;
    mt_set *set = m->set;
    make_work(m, l, MT_ROLE_QUERIES, query);
    mt_decoder_work(m, l, MT_ROLE_ATTENDED, w->o.k, a->slices);
    make_work(m, l, MT_ROLE_KEYS, key);
    make_work(m, l, MT_ROLE_VALUES, key);
    if (a->gate) {
        make_work(m, l, MT_ROLE_GATED_QUERIES, 2 * query);
        make_work(m, l, MT_ROLE_QUERY_GATES, query);
    }
    l->q_norm = mt_tensor_of(set, w->q_norm, 1, a->qk_norm == MT_QK_NORM_WHOLE ? query : a->head_dim);
    l->k_norm = mt_tensor_of(set, w->k_norm, 1, a->qk_norm == MT_QK_NORM_WHOLE ? key : a->head_dim);
    if (a->qk_norm == MT_QK_NORM_PLAIN)
        l->q_norm = l->k_norm = plain_norm(m, a->head_dim);
    l->v_norm =
        a->v_norm == MT_V_NORM_PLAIN ? plain_norm(m, a->head_dim) : mt_tensor_of(set, w->v_norm, 1, a->head_dim);
    l->sinks = mt_tensor_of(set, w->sinks, 1, a->heads);
    l->q = mt_weight_new(set, &w->q, w->q_bias, false);
    l->o = mt_weight_new(set, &w->o, w->o_bias, false);
    if (a->keys != MT_KEYS_EARLIER)
        l->k = mt_weight_new(set, &w->k, w->k_bias, false);
    if (a->keys == MT_KEYS_OWN)
        l->v = mt_weight_new(set, &w->v, w->v_bias, false);
}

static void load_dense(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w, const mt_mlp_spec *mlp)
{
    mt_decoder_work(m, l, MT_ROLE_GATE, w->down.k, mlp->slices);
    make_work(m, l, MT_ROLE_UP, mlp->ffn);
    if (!mlp->single)
        l->gate = mt_weight_new(m->set, &w->gate, w->gate_bias, false);
    l->up = mt_weight_new(m->set, &w->up, w->up_bias, false);
    l->down = mt_weight_new(m->set, &w->down, w->down_bias, false);
}

static void load_shared(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w, const mt_layer_spec *s)
{
    const mt_moe_spec *moe = &s->moe;
    mt_decoder_work(m, l, MT_ROLE_SHARED_GATE, w->shared_down.k, moe->shared_slices);
    make_work(m, l, MT_ROLE_SHARED_UP, moe->shared_ffn);
    mt_decoder_work(m, l, MT_ROLE_SHARED, m->spec->hidden, m->spec->hidden_slices);
    make_work(m, l, MT_ROLE_SHARED_ROUTER, 1);
    if (moe->shared_gated)
        l->shared_router = mt_weight_new(m->set, &w->shared_router, NULL, true);
    if (!s->mlp.single)
        l->shared_gate = mt_weight_new(m->set, &w->shared_gate, NULL, false);
    l->shared_up = mt_weight_new(m->set, &w->shared_up, NULL, false);
    l->shared_down = mt_weight_new(m->set, &w->shared_down, NULL, false);
}

/* Whether the layer has a shared expert, even if this rank has no column of it. */
static bool has_shared(const mt_moe_spec *moe)
{
    return moe->shared_ffn > 0 || moe->shared_slices > 0;
}

static void load_experts(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w, const mt_layer_spec *s)
{
    const size_t hidden = m->spec->hidden;
    make_work(m, l, MT_ROLE_ROUTER, s->moe.experts);
    if (s->beside || s->moe.router_norm)
        mt_decoder_work(m, l, MT_ROLE_EXPERTS_OUT, hidden, m->spec->hidden_slices);
    if (s->moe.slices)
        mt_ranks_reserve(mt_device_ranks(m->dev), m->max_rows * s->moe.top_k * w->expert_down[0].k);
    if (s->moe.latent) {
        make_work(m, l, MT_ROLE_EXPERT_IN, s->moe.latent);
        make_work(m, l, MT_ROLE_EXPERT_OUT, s->moe.latent);
        l->expert_in = mt_weight_new(m->set, &w->expert_in, NULL, false);
        l->expert_out = mt_weight_new(m->set, &w->expert_out, NULL, false);
    }
    l->router = mt_weight_new(m->set, &w->router, w->router_bias, true); /* R9 of docs/numerics.md: routers are exact */
    l->router_norm = mt_tensor_of(m->set, w->router_norm, 1, hidden);
    l->dense_post_norm = mt_tensor_of(m->set, w->dense_post_norm, 1, hidden);
    l->expert_norm = mt_tensor_of(m->set, w->expert_norm, 1, hidden);
    l->expert_post_norm = mt_tensor_of(m->set, w->expert_post_norm, 1, hidden);
    l->experts = mt_experts_new(m->set, &(mt_experts_params){.count = s->moe.experts,
                                                             .top_k = s->moe.top_k,
                                                             .gate = w->expert_gate,
                                                             .up = w->expert_up,
                                                             .down = w->expert_down,
                                                             .gate_bias = w->expert_gate_bias,
                                                             .up_bias = w->expert_up_bias,
                                                             .down_bias = w->expert_down_bias,
                                                             .correction = w->correction,
                                                             .scale = w->expert_scale,
                                                             .slices = s->moe.slices,
                                                             .routing = s->moe.routing,
                                                             .glu = s->mlp.glu});
    if (has_shared(&s->moe))
        load_shared(m, l, w, s);
}

static void load_aside(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w)
{
    make_work(m, l, MT_ROLE_ASIDE, m->spec->aside);
    l->aside_gate = mt_weight_new(m->set, &w->aside_gate, NULL, false);
    l->aside_out = mt_weight_new(m->set, &w->aside_out, NULL, false);
    l->aside_norm = mt_tensor_of(m->set, w->aside_norm, 1, m->spec->hidden);
}

void mt_decoder_layer_load(mt_model *m, mt_decoder_layer *l, const mt_layer_weights *w, const mt_layer_spec *s)
{
    const size_t hidden = m->spec->hidden;
    l->attn_norm = mt_tensor_of(m->set, w->attn_norm, 1, hidden);
    l->attn_post_norm = mt_tensor_of(m->set, w->attn_post_norm, 1, hidden);
    l->mlp_norm = mt_tensor_of(m->set, w->mlp_norm, 1, hidden);
    l->mlp_post_norm = mt_tensor_of(m->set, w->mlp_post_norm, 1, hidden);
    l->scale = w->scale ? w->scale[0] : 1;
    if (s->kind == MT_LAYER_RECURRENT)
        mt_mixer_load(m->mixer, s->slot, w);
    else if (s->attn.latent.width)
        mt_latent_load(m, l, w, &s->attn);
    else if (s->kind == MT_LAYER_ATTENTION)
        load_attention(m, l, w, &s->attn);
    if (s->paired) {
        mt_decoder_work(m, l, MT_ROLE_PAIRED, hidden, m->spec->hidden_slices);
        mt_mixer_load(m->mixer, s->state_slot, w);
    }
    if (m->spec->aside)
        load_aside(m, l, w);
    if (s->no_mlp)
        return;
    if (!s->sparse || s->beside)
        load_dense(m, l, w, &s->mlp);
    if (s->sparse)
        load_experts(m, l, w, s);
}

/* ---- rotary embeddings ---- */

void mt_decoder_ropes_new(mt_model *m, size_t rows)
{
    const mt_model_spec *s = m->spec;
    for (size_t i = 0; i < s->rope_count; i++) {
        const mt_rope *r = &s->ropes[i];
        uint32_t *axis = r->axis ? mt_alloc_array(r->half, sizeof(*axis)) : NULL;
        for (size_t f = 0; axis && f < r->half; f++)
            axis[f] = r->axis[f];
        m->ropes[i] = (mt_rope_table){.inv_freq = mt_tensor_of(m->set, r->inv_freq, 1, r->half),
                                      .table = mt_tensor_new(m->set, rows, 2 * (size_t)r->half),
                                      .axis = axis ? mt_index_of(m->set, axis, r->half) : NULL,
                                      .scale = r->scale,
                                      .pairs = r->pairs};
        mt_free(axis);
    }
}

void mt_decoder_ropes_fill(mt_model *m)
{
    for (size_t i = 0; i < m->spec->rope_count; i++)
        mt_op_rope_table(m->dev, m->ropes[i].table, m->ropes[i].inv_freq, m->ropes[i].axis, m->ropes[i].scale);
}

/* ---- attention ---- */

/* Norms and turns the heads of x in place, as the layer has it. */
static void turn(mt_model *m, const mt_attn_spec *a, mt_tensor *x, const mt_tensor *w, size_t n)
{
    const mt_rope_table *rope = a->rope == MT_NO_ROPE ? NULL : &m->ropes[a->rope];
    if (a->qk_norm == MT_QK_NORM_WHOLE) {
        mt_model_norm(m, x, x, n, w);
        w = NULL;
    }
    if (w || rope)
        mt_op_heads(m->dev, x, x, n, a->head_dim, w, m->spec->eps, m->spec->norm_offset, rope ? rope->table : NULL,
                    rope && rope->pairs);
}

/* Writes the projected keys and values of n rows to the pages. Where values are keys, they are taken before the keys
   are normed and turned. */
static void keep(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    mt_tensor *k = l->in[MT_ROLE_KEYS], *v = l->in[MT_ROLE_VALUES];
    const bool same = s->attn.keys == MT_KEYS_VALUES;
    if (same || l->v_norm)
        mt_op_heads(m->dev, v, same ? k : v, n, s->attn.head_dim, l->v_norm, m->spec->eps, m->spec->norm_offset, NULL,
                    false);
    turn(m, &s->attn, k, l->k_norm, n);
    mt_op_kv_write(m->dev, m->kv[s->group], s->slot, k, v);
    mt_op_spend(m->dev, k);
}

void mt_decoder_layer_enter(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    if (s->attn.heads == 0) /* other ranks have all heads */
        return;
    const bool latent = s->attn.latent.width, both = s->attn.keys == MT_KEYS_OWN && !latent;
    mt_op_matmul(m->dev, &l->in[MT_ROLE_KEYS], (const mt_weight *[]){l->k, l->v}, both ? 2 : 1, m->h, n);
    (latent ? mt_latent_keep : keep)(m, l, s, n);
}

/* Attention with this rank's heads; the result is in l->in[MT_ROLE_ATTENDED]. */
static void attend(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    static const size_t products[] = {[MT_KEYS_OWN] = 3, [MT_KEYS_VALUES] = 2, [MT_KEYS_EARLIER] = 1};
    const mt_attn_spec *a = &s->attn;
    mt_tensor *const *in = l->in, *q = in[MT_ROLE_QUERIES], *y = in[MT_ROLE_ATTENDED];
    mt_op_matmul(m->dev, (mt_tensor *[]){a->gate ? in[MT_ROLE_GATED_QUERIES] : q, in[MT_ROLE_KEYS], in[MT_ROLE_VALUES]},
                 (const mt_weight *[]){l->q, l->k, l->v}, products[a->keys], m->h, n);
    mt_op_spend(m->dev, m->h);
    if (a->gate)
        mt_op_split_heads(m->dev, q, in[MT_ROLE_QUERY_GATES], in[MT_ROLE_GATED_QUERIES], a->head_dim, n);
    turn(m, a, q, l->q_norm, n);
    if (a->stretched)
        mt_op_stretch(m->dev, q, m->stretch, m->spec->stretch.every);
    if (a->keys != MT_KEYS_EARLIER)
        keep(m, l, s, n);
    mt_op_attention(m->dev, y, q, m->kv[s->group], s->slot,
                    (mt_attention){.window = a->window,
                                   .chunk = a->chunk,
                                   .causal = a->causal,
                                   .scale = a->scale,
                                   .softcap = a->softcap,
                                   .sinks = l->sinks});
    mt_op_spend(m->dev, q);
    if (a->gate)
        mt_op_gate(m->dev, y, in[MT_ROLE_QUERY_GATES], n);
}

/* Where a recurrent layer stands beside attention, it comes first, since attention may spend what both read. */
static void attention(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    const mt_shared *y = &l->all[MT_ROLE_ATTENDED], *paired = &l->all[MT_ROLE_PAIRED];
    if (s->paired)
        mt_mixer_run(m->mixer, s->state_slot, paired, m->h, n);
    if (s->attn.heads > 0)
        (s->attn.latent.width ? mt_latent_attend : attend)(m, l, s, n);
    mt_shared_unite(m->dev, y, n);
    mt_shared_product(m->dev, &m->own_y, l->o, y->all, n);
    mt_op_spend(m->dev, y->all);
    if (s->attn.result != 0)
        mt_op_scale(m->dev, m->y, n, s->attn.result);
    if (s->paired)
        mt_op_add(m->dev, m->y, paired->all, n);
}

/* ---- MLP and experts: both read m->h ---- */

/* y = down(act(gate(h)) * up(h)); h is not needed after that. Where there is no gate, up is its own. */
static void glu(mt_model *m, const mt_mlp_spec *how, const mt_weight *const in[3], const mt_shared *gate, mt_tensor *up,
                const mt_shared *y, size_t rows)
{
    if (how->single)
        mt_op_matmul(m->dev, &up, &in[1], 1, m->h, rows);
    else
        mt_op_matmul(m->dev, (mt_tensor *[]){gate->own, up}, in, 2, m->h, rows);
    mt_op_spend(m->dev, m->h);
    if (how->gate != 0)
        mt_op_scale(m->dev, gate->own, rows, how->gate);
    mt_op_glu(m->dev, gate->own, how->single ? up : gate->own, up, rows, how->glu);
    mt_op_spend(m->dev, up);
    mt_shared_unite(m->dev, gate, rows);
    mt_shared_product(m->dev, y, in[2], gate->all, rows);
    mt_op_spend(m->dev, gate->all);
}

static void dense(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t rows)
{
    glu(m, &s->mlp, (const mt_weight *[]){l->gate, l->up, l->down}, &l->all[MT_ROLE_GATE], l->in[MT_ROLE_UP], &m->own_y,
        rows);
    if (s->mlp.result != 0)
        mt_op_scale(m->dev, m->y, rows, s->mlp.result);
}

/* Adds the shared expert's result, weighed by its own gate where it has one; last, as R9 of docs/numerics.md says. */
static void add_shared(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, mt_tensor *y, size_t rows)
{
    mt_tensor *shared = l->all[MT_ROLE_SHARED].all, *gate = l->in[MT_ROLE_SHARED_ROUTER];
    if (s->moe.shared_gated)
        mt_op_matmul(m->dev, &gate, (const mt_weight *[]){l->shared_router}, 1, m->h, rows);
    glu(m, &s->mlp, (const mt_weight *[]){l->shared_gate, l->shared_up, l->shared_down}, &l->all[MT_ROLE_SHARED_GATE],
        l->in[MT_ROLE_SHARED_UP], &l->all[MT_ROLE_SHARED], rows);
    if (s->moe.shared_gated)
        mt_op_add_gated(m->dev, y, shared, gate, rows);
    else
        mt_op_add(m->dev, y, shared, rows);
}

static void sparse(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, const mt_shared *y, size_t rows)
{
    mt_tensor *router = l->in[MT_ROLE_ROUTER], *input = m->h;
    if (l->router_norm) { /* it norms the residual stream, and norm_offset does not apply to it */
        input = l->all[MT_ROLE_EXPERTS_OUT].all;
        mt_op_norm(m->dev, input, m->x, rows, l->router_norm, m->spec->eps, 0);
    }
    mt_op_matmul(m->dev, &router, (const mt_weight *[]){l->router}, 1, input, rows);
    if (s->moe.latent) {
        mt_tensor *in = l->in[MT_ROLE_EXPERT_IN], *out = l->in[MT_ROLE_EXPERT_OUT];
        mt_op_matmul(m->dev, &in, (const mt_weight *[]){l->expert_in}, 1, m->h, rows);
        mt_op_moe(m->dev, out, in, router, rows, l->experts);
        mt_shared_product(m->dev, y, l->expert_out, out, rows);
    } else {
        mt_op_moe(m->dev, y->own, m->h, router, rows, l->experts);
        mt_shared_unite(m->dev, y, rows);
    }
    if (has_shared(&s->moe))
        add_shared(m, l, s, y->all, rows);
}

/* m->y = the sum of a dense MLP and experts, each with its own norms of the residual stream. */
static void side_by_side(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    mt_tensor *y = l->all[MT_ROLE_EXPERTS_OUT].all;
    dense(m, l, s, n);
    mt_model_norm(m, m->y, m->y, n, l->dense_post_norm);
    mt_model_norm(m, m->h, m->x, n, l->expert_norm);
    sparse(m, l, s, &l->all[MT_ROLE_EXPERTS_OUT], n);
    mt_model_norm(m, y, y, n, l->expert_post_norm);
    mt_op_add(m->dev, m->y, y, n);
}

/* m->x += the layer's own embedding, gated by x. */
static void add_aside(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    mt_tensor *gate = l->in[MT_ROLE_ASIDE];
    mt_op_matmul(m->dev, &gate, (const mt_weight *[]){l->aside_gate}, 1, m->x, n);
    mt_op_glu(m->dev, gate, gate, l->aside, n, (mt_glu){.act = s->mlp.glu.act});
    mt_shared_product(m->dev, &m->own_y, l->aside_out, gate, n);
    mt_model_norm(m, m->y, m->y, n, l->aside_norm);
    mt_op_add(m->dev, m->x, m->y, n);
}

/* m->h = m->x as attention and the MLP read it: through the norm in front of them, where there is one. */
static void read_stream(mt_model *m, const mt_tensor *norm, size_t n)
{
    if (norm) {
        mt_model_norm(m, m->h, m->x, n, norm);
        return;
    }
    mt_op_clear(m->dev, m->h, 0, n);
    mt_op_add(m->dev, m->h, m->x, n);
}

/* m->x += m->y, through the norm behind, where there is one. */
static void add_result(mt_model *m, const mt_layer_spec *s, const mt_tensor *norm, size_t n)
{
    if (norm)
        mt_model_norm(m, m->y, m->y, n, norm);
    if (s->residual != 0)
        mt_op_scale(m->dev, m->y, n, s->residual);
    mt_op_add(m->dev, m->x, m->y, n);
}

/* m->x += the result of attention or of what stands in its place; m->h = what the MLP reads. */
static void mix(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    read_stream(m, l->attn_norm, n);
    if (s->kind == MT_LAYER_RECURRENT)
        mt_mixer_run(m->mixer, s->slot, &m->own_y, m->h, n);
    else
        attention(m, l, s, n);
    if (s->parallel) {
        read_stream(m, l->attn_norm, n); /* again, since attention may have spent it */
        add_result(m, s, l->attn_post_norm, n);
    } else {
        add_result(m, s, l->attn_post_norm, n);
        if (!s->no_mlp)
            read_stream(m, l->mlp_norm, n);
    }
}

void mt_decoder_layer_run(mt_model *m, const mt_decoder_layer *l, const mt_layer_spec *s, size_t n)
{
    if (s->kind == MT_LAYER_ALONE)
        read_stream(m, l->mlp_norm, n);
    else
        mix(m, l, s, n);
    if (s->no_mlp)
        return;
    if (s->beside)
        side_by_side(m, l, s, n);
    else if (s->sparse)
        sparse(m, l, s, &m->own_y, n);
    else
        dense(m, l, s, n);
    add_result(m, s, l->mlp_post_norm, n);
    if (l->aside)
        add_aside(m, l, s, n);
    if (l->scale != 1)
        mt_op_scale(m->dev, m->x, n, l->scale);
}

void mt_decoder_streams_new(mt_model *m, size_t rows)
{
    const mt_model_spec *s = m->spec;
    m->x = mt_tensor_new(m->set, rows, s->hidden);
    m->h = mt_tensor_new(m->set, rows, s->hidden);
    m->y = mt_tensor_new(m->set, rows, s->hidden);
    m->own_x = mt_shared_new(m->set, m->dev, m->x, rows, s->hidden, s->hidden_slices);
    m->own_y = mt_shared_new(m->set, m->dev, m->y, rows, s->hidden, s->hidden_slices);
}

void mt_decoder_logits(mt_model *m, const mt_shared *y, const mt_weight *head, const mt_tensor *x, size_t n,
                       float softcap)
{
    mt_op_matmul(m->dev, (mt_tensor *[]){y->own}, &head, 1, x, n);
    if (softcap > 0)
        mt_op_softcap(m->dev, y->own, n, softcap);
    if (y->slices)
        mt_op_share(m->dev, y->all, y->slices, n, false);
}
