/* Layers that differ in everything a spec can say, with random weights: the decoder against a forward pass written
   plainly in double, and against itself in chunks and in company, to the bit. */
#include "weights_files.h"

#include <math.h>

#include "base/alloc.h"
#include "cache/group.h"
#include "models/model.h"

enum { HIDDEN = 32, VOCAB = 40, LAYERS = 4, LENGTH = 330, OTHER = 150, FFN = 48, EXPERTS = 8, INNER = 24 };
enum { ASIDE = 12 }; /* of an embedding that a layer has besides */
enum { PAGES = LENGTH / MT_PAGE_TOKENS + 1, ROWS = LENGTH + OTHER, TENSORS = 400 };

typedef struct toy {
    mt_model_spec spec;
    mt_layer_spec layer[LAYERS];
    mt_rope rope[2];
    float inv_freq[2][32];
    uint32_t block[2]; /* positions that see each other, where causal layers do not; none where both are 0 */
    tensor_row tensors[TENSORS];
    size_t count;
    uint32_t random;
    mt_arena *arena;
    mt_checkpoint *checkpoint;
    mt_model_weights weights;
} toy;

static float draw(toy *t)
{
    t->random = t->random * 1664525u + 1013904223u;
    return (float)(t->random >> 8) / (float)(1 << 23) - 1.0f;
}

/* ---- a checkpoint ---- */

/* A tensor of n numbers around `middle`, of a layer or, where that is LAYERS, of the model. */
static void add(toy *t, const char *name, size_t layer, const char *shape, size_t n, float middle, float spread)
{
    char *full = mt_arena_alloc(t->arena, 128), *text = mt_arena_alloc(t->arena, 64);
    float *data = mt_arena_alloc(t->arena, n * sizeof(*data));
    if (layer == LAYERS)
        snprintf(full, 128, "model.%s", name);
    else
        snprintf(full, 128, "model.layers.%zu.%s", layer, name);
    snprintf(text, 64, "%s", shape);
    for (size_t i = 0; i < n; i++)
        data[i] = middle + spread * draw(t);
    assert_true(t->count < TENSORS);
    t->tensors[t->count++] =
        (tensor_row){.name = full, .dtype = "F32", .shape = text, .bytes = n * sizeof(*data), .data = data};
}

static void add_vector(toy *t, const char *name, size_t layer, size_t n, float middle)
{
    char shape[32];
    snprintf(shape, sizeof(shape), "%zu", n);
    add(t, name, layer, shape, n, middle, 0.5f);
}

static void add_matrix(toy *t, const char *name, size_t layer, size_t n, size_t k, bool bias)
{
    char shape[64], with[96];
    snprintf(shape, sizeof(shape), "%zu, %zu", n, k);
    snprintf(with, sizeof(with), "%s.weight", name);
    add(t, with, layer, shape, n * k, 0, 1.7f / sqrtf((float)k));
    snprintf(with, sizeof(with), "%s.bias", name);
    if (bias)
        add_vector(t, with, layer, n, 0);
}

static void add_stack(toy *t, const char *name, size_t layer, size_t n, size_t k, bool bias)
{
    char shape[64], with[96];
    snprintf(shape, sizeof(shape), "%d, %zu, %zu", EXPERTS, n, k);
    snprintf(with, sizeof(with), "%s.weight", name);
    add(t, with, layer, shape, EXPERTS * n * k, 0, 1.7f / sqrtf((float)k));
    snprintf(shape, sizeof(shape), "%d, %zu", EXPERTS, n);
    snprintf(with, sizeof(with), "%s.bias", name);
    if (bias)
        add(t, with, layer, shape, EXPERTS * n, 0, 0.5f);
}

static void add_latent(toy *t, size_t i, const mt_attn_spec *a)
{
    const mt_latent_spec *l = &a->latent;
    const size_t query = a->heads * (l->plain + l->turned), in = l->queries ? l->queries : HIDDEN;
    char shape[64];
    if (l->queries) {
        add_matrix(t, "self_attn.q_a_proj", i, l->queries, HIDDEN, a->qkv_bias);
        add_vector(t, "self_attn.q_a_layernorm.weight", i, l->queries, 1);
    }
    add_matrix(t, l->queries ? "self_attn.q_b_proj" : "self_attn.q_proj", i, query, in, false);
    add_matrix(t, "self_attn.kv_a_proj_with_mqa", i, a->head_dim, HIDDEN, a->qkv_bias);
    add_vector(t, "self_attn.kv_a_layernorm.weight", i, l->width, 1);
    if (i % 2) { /* as MLX has them */
        snprintf(shape, sizeof(shape), "%u, %u, %u", a->heads, l->width, l->plain);
        add(t, "self_attn.embed_q.weight", i, shape, (size_t)a->heads * l->width * l->plain, 0, 0.3f);
        snprintf(shape, sizeof(shape), "%u, %u, %u", a->heads, l->value, l->width);
        add(t, "self_attn.unembed_out.weight", i, shape, (size_t)a->heads * l->value * l->width, 0, 0.3f);
    } else {
        add_matrix(t, "self_attn.kv_b_proj", i, a->heads * (l->plain + l->value), l->width, false);
    }
    add_matrix(t, "self_attn.o_proj", i, HIDDEN, a->heads * l->value, a->o_bias);
    if (a->index.heads) {
        add_matrix(t, "self_attn.indexer.wq_b", i, a->index.heads * a->index.head_dim, l->queries, false);
        add_matrix(t, "self_attn.indexer.wk", i, a->index.head_dim, HIDDEN, false);
        add_matrix(t, "self_attn.indexer.weights_proj", i, a->index.heads, HIDDEN, false);
        add_vector(t, "self_attn.indexer.k_norm.weight", i, a->index.head_dim, 1);
        add_vector(t, "self_attn.indexer.k_norm.bias", i, a->index.head_dim, 0);
    }
}

static void add_attention(toy *t, size_t i, const mt_attn_spec *a, float one)
{
    if (a->latent.width) {
        add_latent(t, i, a);
        return;
    }
    const size_t query = a->heads * a->head_dim, key = a->kv_heads * a->head_dim;
    add_matrix(t, "self_attn.q_proj", i, a->gate ? 2 * query : query, HIDDEN, a->qkv_bias);
    add_matrix(t, "self_attn.o_proj", i, HIDDEN, query, a->o_bias);
    if (a->keys != MT_KEYS_EARLIER)
        add_matrix(t, "self_attn.k_proj", i, key, HIDDEN, a->qkv_bias);
    if (a->keys == MT_KEYS_OWN)
        add_matrix(t, "self_attn.v_proj", i, key, HIDDEN, a->qkv_bias);
    if (a->qk_norm)
        add_vector(t, "self_attn.q_norm.weight", i, a->qk_norm == MT_QK_NORM_WHOLE ? query : a->head_dim, one);
    if (a->qk_norm && a->keys != MT_KEYS_EARLIER)
        add_vector(t, "self_attn.k_norm.weight", i, a->qk_norm == MT_QK_NORM_WHOLE ? key : a->head_dim, one);
    if (a->v_norm == MT_V_NORM_WEIGHTS)
        add_vector(t, "self_attn.v_norm.weight", i, a->head_dim, one);
    if (a->sinks)
        add_vector(t, "self_attn.sinks", i, a->heads, 1);
}

static void add_dense(toy *t, const char *at, size_t i, size_t ffn, bool bias)
{
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    for (size_t p = 0; p < 3; p++) {
        char name[64];
        snprintf(name, sizeof(name), "%s.%s", at, parts[p]);
        add_matrix(t, name, i, p < 2 ? ffn : HIDDEN, p < 2 ? HIDDEN : ffn, bias);
    }
}

static void add_experts(toy *t, size_t i, const mt_layer_spec *l)
{
    const mt_moe_spec *m = &l->moe;
    const char *at = l->beside ? "experts" : "mlp.experts";
    char name[64];
    add_matrix(t, l->beside ? "router.proj" : "mlp.gate", i, EXPERTS, HIDDEN, m->router_bias);
    snprintf(name, sizeof(name), "%s.gate_proj", at);
    add_stack(t, name, i, INNER, HIDDEN, m->bias);
    snprintf(name, sizeof(name), "%s.up_proj", at);
    add_stack(t, name, i, INNER, HIDDEN, m->bias);
    snprintf(name, sizeof(name), "%s.down_proj", at);
    add_stack(t, name, i, HIDDEN, INNER, m->bias);
    if (m->router_norm)
        add_vector(t, "router.scale", i, HIDDEN, 4);
    if (m->correction)
        add_vector(t, "mlp.gate.e_score_correction_bias", i, EXPERTS, 0);
    if (m->scale)
        add_vector(t, "router.per_expert_scale", i, EXPERTS, 1);
    if (m->shared_ffn)
        add_dense(t, m->shared_gated ? "mlp.shared_expert" : "mlp.shared_experts", i, m->shared_ffn, false);
    if (m->shared_gated)
        add_matrix(t, "mlp.shared_expert_gate", i, 1, HIDDEN, false);
}

static void add_layer(toy *t, size_t i, const mt_layer_spec *l)
{
    const float one = 1 - t->spec.norm_offset;
    if (!l->bare)
        add_vector(t, "input_layernorm.weight", i, HIDDEN, one);
    if ((!l->bare && !l->parallel) || l->post_norms)
        add_vector(t, "post_attention_layernorm.weight", i, HIDDEN, one);
    if (l->post_norms && !l->bare)
        add_vector(t, "pre_feedforward_layernorm.weight", i, HIDDEN, one);
    if (l->post_norms)
        add_vector(t, "post_feedforward_layernorm.weight", i, HIDDEN, one);
    if (l->beside) {
        add_vector(t, "post_feedforward_layernorm_1.weight", i, HIDDEN, one);
        add_vector(t, "pre_feedforward_layernorm_2.weight", i, HIDDEN, one);
        add_vector(t, "post_feedforward_layernorm_2.weight", i, HIDDEN, one);
    }
    if (l->scaled)
        add_vector(t, "layer_scalar", i, 1, 0.8f);
    if (t->spec.aside) {
        add_matrix(t, "per_layer_input_gate", i, t->spec.aside, HIDDEN, false);
        add_matrix(t, "per_layer_projection", i, HIDDEN, t->spec.aside, false);
        add_vector(t, "post_per_layer_input_norm.weight", i, HIDDEN, one);
    }
    add_attention(t, i, &l->attn, one);
    if (!l->sparse || l->beside)
        add_dense(t, "mlp", i, l->mlp.ffn, l->mlp.bias);
    if (l->sparse)
        add_experts(t, i, l);
}

static void bind(toy *t)
{
    mt_error err = {0};
    for (size_t i = 0; i < LAYERS; i++)
        add_layer(t, i, &t->layer[i]);
    add_matrix(t, "embed_tokens", LAYERS, VOCAB, HIDDEN, false);
    if (t->spec.aside) {
        add_matrix(t, "embed_tokens_per_layer", LAYERS, t->spec.aside_vocab, LAYERS * t->spec.aside, false);
        add_matrix(t, "per_layer_model_projection", LAYERS, LAYERS * t->spec.aside, HIDDEN, false);
        add_vector(t, "per_layer_projection_norm.weight", LAYERS, t->spec.aside, 1);
    }
    add_vector(t, "norm.weight", LAYERS, HIDDEN, 1 - t->spec.norm_offset);
    put_tensors("model.safetensors", t->tensors, t->count);
    put_text("config.json", "{}");
    t->checkpoint = mt_checkpoint_open(folder, &err);
    assert_string_equal(err.text, "");
    assert_true(mt_model_spec_group(&t->spec, t->layer, &err));
    if (!mt_model_bind(&t->weights, &t->spec, t->checkpoint, t->arena, &err))
        fail_msg("%s", err.text);
    assert_int_equal(t->weights.cost.unused_tensors, 0);
}

/* ---- the forward pass, plainly ---- */

static float element(const void *data, size_t i)
{
    float x;
    memcpy(&x, (const char *)data + i * sizeof(x), sizeof(x));
    return x;
}

static void product(const mt_mat *m, const float *bias, const double *x, double *y)
{
    for (size_t r = 0; r < m->n; r++) {
        y[r] = bias ? bias[r] : 0;
        for (size_t c = 0; c < m->k; c++)
            y[r] += element(m->w + r * m->stride, c) * x[c];
    }
}

/* w NULL: the root mean square alone */
static void rms(const toy *t, double *y, const double *x, const float *w, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] / sqrt(sum / (double)n + t->spec.eps) * (w ? t->spec.norm_offset + w[i] : 1);
}

static void rotate(const mt_rope *r, double *x, size_t position)
{
    for (size_t i = 0; i < r->half; i++) {
        const double angle = (double)position * r->inv_freq[i], c = cos(angle) * r->scale, s = sin(angle) * r->scale;
        double *a = r->pairs ? &x[2 * i] : &x[i], *b = r->pairs ? a + 1 : a + r->half;
        const double before = *a;
        *a = before * c - *b * s;
        *b = *b * c + before * s;
    }
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double activate(const mt_glu *g, double gate, double up)
{
    if (g->limit > 0) {
        gate = fmin(gate, g->limit);
        up = fmax(fmin(up, g->limit), -g->limit);
    }
    up += g->offset;
    switch (g->act) {
    case MT_ACT_SILU: return gate * sigmoid(gate) * up;
    case MT_ACT_QUICK_GELU: return gate * sigmoid(1.702 * gate) * up;
    case MT_ACT_GELU: return gate * 0.5 * erfc(-gate / sqrt(2)) * up;
    case MT_ACT_NONE: return gate * up;
    case MT_ACT_RELU: return fmax(gate, 0) * up;
    case MT_ACT_GELU_TANH: break;
    }
    return 0.5 * gate * (1 + tanh(0.7978845608028654 * (gate + 0.044715 * gate * gate * gate))) * up;
}

/* y += factor * down(act(gate x) * up x) */
static void mlp(const mt_glu *g, const mt_mat *const mats[3], const float *const bias[3], const double *x,
                double factor, double *y)
{
    double gate[FFN], up[FFN], out[HIDDEN];
    product(mats[0], bias[0], x, gate);
    product(mats[1], bias[1], x, up);
    for (size_t i = 0; i < mats[0]->n; i++)
        gate[i] = activate(g, gate[i], up[i]);
    product(mats[2], bias[2], gate, out);
    for (size_t i = 0; i < HIDDEN; i++)
        y[i] += factor * out[i];
}

static size_t best_of(const double *x, const bool *open, size_t n)
{
    size_t best = n;
    for (size_t i = 0; i < n; i++)
        if (open[i] && (best == n || x[i] > x[best]))
            best = i;
    return best;
}

/* Experts of the best groups, where there are groups. */
static void open_experts(const mt_routing *r, const double *choice, bool *open)
{
    double score[EXPERTS];
    bool left[EXPERTS];
    const size_t size = r->groups ? EXPERTS / r->groups : EXPERTS;
    for (size_t e = 0; e < EXPERTS; e++)
        open[e] = !r->groups;
    for (size_t g = 0; g < r->groups; g++) {
        double first = -INFINITY, second = -INFINITY;
        for (size_t e = g * size; e < (g + 1) * size; e++) {
            second = fmax(second, fmin(first, choice[e]));
            first = fmax(first, choice[e]);
        }
        score[g] = first + second;
        left[g] = true;
    }
    for (size_t n = 0; n < r->top_groups; n++) {
        const size_t g = best_of(score, left, r->groups);
        left[g] = false;
        for (size_t e = g * size; e < (g + 1) * size; e++)
            open[e] = true;
    }
}

/* How much each expert counts. */
static void route(const mt_moe_spec *m, const mt_layer_weights *w, const double *logits, double *share)
{
    double p[EXPERTS], choice[EXPERTS], sum = 0, chosen = 0;
    bool open[EXPERTS];
    for (size_t e = 0; e < EXPERTS; e++)
        sum += exp(logits[e]);
    for (size_t e = 0; e < EXPERTS; e++) {
        p[e] = m->routing.kind == MT_ROUTE_SIGMOID ? sigmoid(logits[e]) : exp(logits[e]) / sum;
        choice[e] = p[e] + (w->correction ? w->correction[e] : 0);
        share[e] = 0;
    }
    open_experts(&m->routing, choice, open);
    for (size_t n = 0; n < m->top_k; n++) {
        const size_t e = best_of(choice, open, EXPERTS);
        open[e] = false;
        share[e] = p[e];
        chosen += p[e];
    }
    for (size_t e = 0; e < EXPERTS; e++) {
        share[e] /= m->routing.renormalise || m->routing.kind == MT_ROUTE_CHOSEN ? chosen : 1;
        share[e] *= m->routing.scaling != 0 ? m->routing.scaling : 1;
        share[e] *= w->expert_scale ? w->expert_scale[e] : 1;
    }
}

static void experts(const toy *t, const mt_layer_spec *l, const mt_layer_weights *w, const double *x, const double *h,
                    double *y)
{
    double input[HIDDEN], logits[EXPERTS], share[EXPERTS], gate = 0;
    memcpy(input, h, sizeof(input));
    if (l->moe.router_norm) {
        const tensor_row *scale = t->tensors;
        char name[64];
        snprintf(name, sizeof(name), "model.layers.%d.router.scale", (int)(l - t->layer));
        while (strcmp(scale->name, name) != 0)
            scale++;
        rms(t, input, x, NULL, HIDDEN);
        for (size_t i = 0; i < HIDDEN; i++)
            input[i] *= element(scale->data, i) / sqrt(HIDDEN);
    }
    product(&w->router, w->router_bias, input, logits);
    route(&l->moe, w, logits, share);
    for (size_t e = 0; e < EXPERTS; e++) {
        const float *bias[3] = {l->moe.bias ? w->expert_gate_bias + e * INNER : NULL,
                                l->moe.bias ? w->expert_up_bias + e * INNER : NULL,
                                l->moe.bias ? w->expert_down_bias + e * HIDDEN : NULL};
        if (share[e] != 0)
            mlp(&l->mlp.glu, (const mt_mat *[]){&w->expert_gate[e], &w->expert_up[e], &w->expert_down[e]}, bias, h,
                share[e], y);
    }
    if (l->moe.shared_gated)
        product(&w->shared_router, NULL, h, &gate);
    if (l->moe.shared_ffn)
        mlp(&l->mlp.glu, (const mt_mat *[]){&w->shared_gate, &w->shared_up, &w->shared_down},
            (const float *[]){NULL, NULL, NULL}, h, l->moe.shared_gated ? sigmoid(gate) : 1, y);
}

typedef struct memory {
    double k[LAYERS][LENGTH][96], v[LAYERS][LENGTH][96];
    double index[LENGTH][16];    /* keys by which the present layer chooses */
    bool passed[LENGTH][LENGTH]; /* positions that rows do not attend to, as the last layer that chooses has it */
} memory;

static void heads(const toy *t, const mt_attn_spec *a, double *x, size_t count, const float *w, size_t position)
{
    if (a->qk_norm == MT_QK_NORM_WHOLE) {
        rms(t, x, x, w, count * a->head_dim);
        w = NULL;
    }
    for (size_t h = 0; h < count; h++, x += a->head_dim) {
        if (w)
            rms(t, x, x, w, a->head_dim);
        if (a->rope != MT_NO_ROPE)
            rotate(&t->rope[a->rope], x, position);
    }
}

static void rms_eps(double *y, const float *w, size_t n, double eps)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += y[i] * y[i];
    for (size_t i = 0; i < n; i++)
        y[i] *= w[i] / sqrt(sum / (double)n + eps);
}

/* Keys and values of all heads, as nobody who caches latents makes them. */
static void remember_latent(const toy *t, const mt_attn_spec *a, const mt_layer_weights *w, const double *h,
                            size_t position, double *k, double *v)
{
    const mt_latent_spec *l = &a->latent;
    double latent[64];
    product(&w->k, w->k_bias, h, latent);
    rms_eps(latent, w->k_norm, l->width, (double)l->eps);
    if (a->rope != MT_NO_ROPE)
        rotate(&t->rope[a->rope], latent + l->width, position);
    for (size_t head = 0; head < a->heads; head++, k += l->plain + l->turned, v += l->value) {
        for (size_t i = 0; i < l->plain; i++) {
            k[i] = 0;
            for (size_t c = 0; c < l->width; c++)
                k[i] += latent[c] * (w->key_rows.across
                                         ? element(w->key_up.w + (head * w->key_rows.step + i) * w->key_up.stride, c)
                                         : element(w->key_up.w + (head * l->width + c) * w->key_up.stride, i));
        }
        memcpy(k + l->plain, latent + l->width, l->turned * sizeof(*k));
        for (size_t i = 0; i < l->value; i++) {
            const size_t row = w->value_rows.first + head * w->value_rows.step + i;
            v[i] = 0;
            for (size_t c = 0; c < l->width; c++)
                v[i] += latent[c] * element(w->value_up.w + row * w->value_up.stride, c);
        }
    }
}

static void remember(const toy *t, const mt_attn_spec *a, const mt_layer_weights *w, const double *h, size_t position,
                     double *k, double *v)
{
    if (a->latent.width) {
        remember_latent(t, a, w, h, position, k, v);
        return;
    }
    product(&w->k, w->k_bias, h, k);
    if (a->keys == MT_KEYS_VALUES)
        memcpy(v, k, a->kv_heads * a->head_dim * sizeof(*v));
    else
        product(&w->v, w->v_bias, h, v);
    for (size_t i = 0; a->v_norm != MT_V_NORM_NONE && i < a->kv_heads; i++)
        rms(t, v + i * a->head_dim, v + i * a->head_dim, w->v_norm, a->head_dim);
    heads(t, a, k, a->kv_heads, w->k_norm, position);
}

static void remember_index(const toy *t, const mt_attn_spec *a, const mt_layer_weights *w, const double *h, size_t p,
                           double *k)
{
    const size_t n = a->index.head_dim;
    mt_rope rope = t->rope[a->rope];
    double mean = 0, squares = 0;
    rope.pairs = a->index.pairs;
    product(&w->index_k, NULL, h, k);
    for (size_t i = 0; i < n; i++)
        mean += k[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (k[i] - mean) * (k[i] - mean) / (double)n;
    for (size_t i = 0; i < n; i++)
        k[i] = (k[i] - mean) / sqrt(squares + 1e-6) * w->index_norm[i] + w->index_norm_bias[i];
    rotate(&rope, k, p);
}

/* Passes over the positions with the least scores. */
static void choose(const toy *t, memory *past, const mt_attn_spec *a, const mt_layer_weights *w, const double *h,
                   size_t p)
{
    const mt_index_spec *s = &a->index;
    mt_rope rope = t->rope[a->rope];
    double narrow[HIDDEN], q[64], weight[8], score[LENGTH] = {0};
    rope.pairs = s->pairs;
    product(&w->q_narrow, w->q_narrow_bias, h, narrow);
    rms_eps(narrow, w->q_norm, a->latent.queries, (double)a->latent.eps);
    product(&w->index_q, NULL, narrow, q);
    product(&w->index_weights, NULL, h, weight);
    memset(past->passed[p], 0, sizeof(past->passed[p]));
    for (size_t head = 0; head < s->heads; head++) {
        rotate(&rope, q + head * s->head_dim, p);
        for (size_t j = 0; j <= p; j++) {
            double dot = 0;
            for (size_t i = 0; i < s->head_dim; i++)
                dot += q[head * s->head_dim + i] * past->index[j][i];
            score[j] += weight[head] * (dot > 0 ? dot : 0);
        }
    }
    for (size_t left = p + 1; left > s->top; left--) {
        size_t worst = LENGTH;
        for (size_t j = 0; j <= p; j++)
            if (!past->passed[p][j] && (worst == LENGTH || score[j] <= score[worst]))
                worst = j;
        past->passed[p][worst] = true;
    }
}

static void sees(const toy *t, const mt_attn_spec *a, size_t p, size_t *from, size_t *to)
{
    *from = 0;
    *to = !a->causal && p >= t->block[0] && p < t->block[1] ? t->block[1] : p + 1;
    if (a->window && p + 1 > a->window)
        *from = p + 1 - a->window;
    if (a->chunk && p / a->chunk * a->chunk > *from)
        *from = p / a->chunk * a->chunk;
}

static void attend(const toy *t, const memory *past, const mt_attn_spec *a, size_t layer, const float *sinks, double *q,
                   size_t p)
{
    const size_t source = a->keys == MT_KEYS_EARLIER ? a->source : layer, dim = a->head_dim;
    size_t from, to;
    sees(t, a, p, &from, &to);
    for (size_t h = 0; h < a->heads; h++, q += dim) {
        const size_t at = h / (a->heads / a->kv_heads) * dim;
        double out[64] = {0}, sum = sinks ? exp(sinks[h]) : 0;
        for (size_t j = from; j < to; j++) {
            double s = 0;
            for (size_t i = 0; i < dim; i++)
                s += q[i] * past->k[source][j][at + i];
            s *= a->scale;
            if (a->softcap > 0)
                s = a->softcap * tanh(s / a->softcap);
            sum += exp(s);
            for (size_t i = 0; i < dim; i++)
                out[i] += exp(s) * past->v[source][j][at + i];
        }
        for (size_t i = 0; i < dim; i++)
            q[i] = out[i] / sum;
    }
}

static void latent_attention(const toy *t, const memory *past, size_t layer, const double *h, size_t p, double *y)
{
    const mt_attn_spec *a = &t->layer[layer].attn;
    const mt_latent_spec *l = &a->latent;
    const mt_layer_weights *w = &t->weights.layer[layer];
    const size_t dim = l->plain + l->turned;
    double narrow[HIDDEN], q[256], out[128] = {0};
    size_t from, to;
    if (l->queries) {
        product(&w->q_narrow, w->q_narrow_bias, h, narrow);
        rms_eps(narrow, w->q_norm, l->queries, (double)l->eps);
    }
    product(&w->q, NULL, l->queries ? narrow : h, q);
    sees(t, a, p, &from, &to);
    for (size_t head = 0; head < a->heads; head++) {
        double sum = 0, *own = q + head * dim;
        if (a->rope != MT_NO_ROPE)
            rotate(&t->rope[a->rope], own + l->plain, p);
        for (size_t j = from; j < to; j++) {
            double s = 0;
            if (a->index.top && past->passed[p][j])
                continue;
            for (size_t i = 0; i < dim; i++)
                s += own[i] * past->k[layer][j][head * dim + i];
            s = exp(s * a->scale *
                    (a->stretched
                         ? t->spec.stretch.factor[p / t->spec.stretch.every < 3 ? p / t->spec.stretch.every : 3]
                         : 1));
            sum += s;
            for (size_t i = 0; i < l->value; i++)
                out[head * l->value + i] += s * past->v[layer][j][head * l->value + i];
        }
        for (size_t i = 0; i < l->value; i++)
            out[head * l->value + i] /= sum;
    }
    product(&w->o, w->o_bias, out, y);
}

static void attention(const toy *t, const memory *past, size_t layer, const double *h, size_t p, double *y)
{
    const mt_attn_spec *a = &t->layer[layer].attn;
    const mt_layer_weights *w = &t->weights.layer[layer];
    if (a->latent.width) {
        latent_attention(t, past, layer, h, p, y);
        return;
    }
    double q[256], gated[512];
    product(&w->q, w->q_bias, h, gated);
    for (size_t i = 0; i < a->heads * a->head_dim; i++)
        q[i] = gated[a->gate ? i / a->head_dim * 2 * a->head_dim + i % a->head_dim : i];
    heads(t, a, q, a->heads, w->q_norm, p);
    for (size_t i = 0; a->stretched && i < a->heads * a->head_dim; i++)
        q[i] *= t->spec.stretch.factor[p / t->spec.stretch.every < 3 ? p / t->spec.stretch.every : 3];
    attend(t, past, a, layer, w->sinks, q, p);
    for (size_t i = 0; a->gate && i < a->heads * a->head_dim; i++)
        q[i] *= sigmoid(gated[i / a->head_dim * 2 * a->head_dim + a->head_dim + i % a->head_dim]);
    product(&w->o, w->o_bias, q, y);
}

static void add_to(double *x, const double *y)
{
    for (size_t i = 0; i < HIDDEN; i++)
        x[i] += y[i];
}

/* Adds what attention or an MLP has made to the stream. norm: behind it. */
static void add_result(const toy *t, const mt_layer_spec *l, const float *norm, double *y, double *x)
{
    if (l->post_norms)
        rms(t, y, y, norm, HIDDEN);
    for (size_t i = 0; l->residual != 0 && i < HIDDEN; i++)
        y[i] *= l->residual;
    add_to(x, y);
}

static void norm_stream(const toy *t, const float *w, const double *x, double *h)
{
    double mean = 0;
    for (size_t i = 0; t->spec.centred && i < HIDDEN; i++)
        mean += x[i] / HIDDEN;
    for (size_t i = 0; i < HIDDEN; i++)
        h[i] = x[i] - mean;
    rms(t, h, h, w, HIDDEN);
}

/* What attention or an MLP reads of the stream. */
static void read_stream(const toy *t, const mt_layer_spec *l, const float *norm, const double *x, double *h)
{
    if (l->bare)
        memcpy(h, x, HIDDEN * sizeof(*h));
    else
        norm_stream(t, norm, x, h);
}

/* before: the stream as attention has read it. */
static void feed(const toy *t, const mt_layer_spec *l, const mt_layer_weights *w, const double *before, double *x)
{
    double h[HIDDEN], y[HIDDEN] = {0}, z[HIDDEN] = {0};
    if (l->parallel)
        read_stream(t, l, w->attn_norm, before, h);
    else
        read_stream(t, l, w->mlp_norm, x, h);
    if (!l->sparse || l->beside)
        mlp(&l->mlp.glu, (const mt_mat *[]){&w->gate, &w->up, &w->down},
            (const float *[]){w->gate_bias, w->up_bias, w->down_bias}, h, 1, y);
    if (l->beside) {
        rms(t, y, y, w->dense_post_norm, HIDDEN);
        rms(t, h, x, w->expert_norm, HIDDEN);
    }
    if (l->sparse)
        experts(t, l, w, x, h, z);
    if (l->beside)
        rms(t, z, z, w->expert_post_norm, HIDDEN);
    add_to(y, z);
    add_result(t, l, w->mlp_post_norm, y, x);
}

/* What all layers are given besides, of a token and its embedding. */
static void make_aside(const toy *t, uint32_t token, const double *x, double *out)
{
    const mt_mat *table = &t->weights.aside;
    const size_t width = t->spec.aside;
    product(&t->weights.aside_projection, NULL, x, out);
    for (size_t i = 0; i < LAYERS * width; i++)
        out[i] /= sqrt(HIDDEN);
    for (size_t l = 0; l < LAYERS; l++)
        rms(t, out + l * width, out + l * width, t->weights.aside_norm, width);
    for (size_t i = 0; i < LAYERS * width; i++)
        out[i] = (out[i] + element(table->w + token * table->stride, i) * sqrt((double)width)) / sqrt(2);
}

static void end_layer(const toy *t, size_t layer, const mt_layer_weights *w, const double *aside, double *x)
{
    const mt_layer_spec *l = &t->layer[layer];
    double gate[HIDDEN], y[HIDDEN];
    if (t->spec.aside) {
        product(&w->aside_gate, NULL, x, gate);
        for (size_t i = 0; i < t->spec.aside; i++)
            gate[i] = activate(&l->mlp.glu, gate[i], aside[layer * t->spec.aside + i]);
        product(&w->aside_out, NULL, gate, y);
        rms(t, y, y, w->aside_norm, HIDDEN);
        add_to(x, y);
    }
    for (size_t i = 0; l->scaled && i < HIDDEN; i++)
        x[i] *= w->scale[0];
}

/* The token whose embedding a token has. */
static uint32_t embedded(const toy *t, uint32_t token)
{
    const mt_blank *blank = &t->spec.blank;
    for (size_t i = 0; i < blank->count; i++)
        if (token == blank->token[i])
            return blank->as;
    return token;
}

static void forward(const toy *t, const uint32_t *tokens, double (*logits)[VOCAB])
{
    memory *past = mt_alloc(sizeof(*past));
    double(*x)[HIDDEN] = mt_alloc(LENGTH * sizeof(*x)), before[HIDDEN], h[HIDDEN], y[HIDDEN];
    double(*aside)[LAYERS * ASIDE] = mt_alloc(LENGTH * sizeof(*aside));
    for (size_t p = 0; p < LENGTH; p++) {
        const uint32_t token = embedded(t, tokens[p]);
        for (size_t i = 0; i < HIDDEN; i++)
            x[p][i] = element(t->weights.embed.w + token * t->weights.embed.stride, i);
        if (t->spec.aside)
            make_aside(t, token, x[p], aside[p]);
    }
    for (size_t l = 0; l < LAYERS; l++) {
        const mt_layer_spec *s = &t->layer[l];
        const mt_layer_weights *w = &t->weights.layer[l];
        for (size_t p = 0; p < LENGTH && s->attn.keys != MT_KEYS_EARLIER; p++) {
            read_stream(t, s, w->attn_norm, x[p], h);
            remember(t, &s->attn, w, h, p, past->k[l][p], past->v[l][p]);
            if (s->attn.index.heads)
                remember_index(t, &s->attn, w, h, p, past->index[p]);
        }
        for (size_t p = 0; p < LENGTH && s->attn.index.heads; p++) {
            read_stream(t, s, w->attn_norm, x[p], h);
            choose(t, past, &s->attn, w, h, p);
        }
        for (size_t p = 0; p < LENGTH; p++) {
            read_stream(t, s, w->attn_norm, x[p], h);
            attention(t, past, l, h, p, y);
            memcpy(before, x[p], sizeof(before));
            add_result(t, s, w->attn_post_norm, y, x[p]);
            feed(t, s, w, before, x[p]);
            end_layer(t, l, w, aside[p], x[p]);
        }
    }
    for (size_t p = 0; p < LENGTH; p++) {
        norm_stream(t, t->weights.norm, x[p], h);
        product(&t->weights.head, NULL, h, logits[p]);
        for (size_t i = 0; t->spec.logit_scale != 0 && i < VOCAB; i++)
            logits[p][i] *= t->spec.logit_scale;
    }
    mt_free(x);
    mt_free(aside);
    mt_free(past);
}

/* ---- the decoder ---- */

typedef struct sequence {
    uint32_t tokens[LENGTH], pages[MT_KV_GROUPS][PAGES];
    size_t length, done;
} sequence;

/* Every group's pool has a size and an order of its own. */
static size_t pool_size(size_t group)
{
    return 2 * PAGES + 3 + 5 * group;
}

static void make_sequence(sequence *s, size_t number, size_t length)
{
    *s = (sequence){.length = length};
    for (size_t i = 0; i < length; i++)
        s->tokens[i] = (uint32_t)((i * i * 7 + i * 3 + number * 11) % VOCAB);
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        for (size_t p = 0; p < PAGES; p++)
            s->pages[g][p] =
                (uint32_t)(g % 2 ? number * PAGES + p : pool_size(g) - 1 - (2 * p + number)); /* by turns there */
}

/* What a window has left behind lies in no page any more. */
static mt_span span_of(const toy *t, sequence *s, size_t row, size_t rows)
{
    mt_span span = {.row = (uint32_t)row, .rows = (uint32_t)rows, .position = (uint32_t)s->done};
    for (size_t g = 0; g < t->spec.group_count; g++) {
        const uint32_t window = t->spec.groups[g].window;
        for (size_t p = 0; window && p < mt_window_begin(s->done, window) / MT_PAGE_TOKENS; p++)
            s->pages[g][p] = MT_NO_PAGE;
        span.pages[g] = s->pages[g];
    }
    return span;
}

typedef struct driver {
    mt_device *dev;
    mt_model *model;
    mt_set *set;
    mt_reading *reading;
} driver;

static void start(driver *d, const toy *t, mt_precision precision)
{
    const mt_device_params device = {
        .name = unit_device(), .precision = precision, .host = {.threads = 2, .cpu_mask = ~0u}};
    const mt_model_params params = {.rows = ROWS, .logits = LENGTH, .places = 2, .memos = 1};
    size_t pages[MT_KV_GROUPS];
    mt_error err = {0};
    for (size_t g = 0; g < MT_KV_GROUPS; g++)
        pages[g] = pool_size(g);
    d->dev = mt_device_open(&device, &err);
    assert_non_null(d->dev);
    d->model = mt_model_new(d->dev, &t->spec, &t->weights, &params, &err);
    assert_non_null(d->model);
    assert_true(mt_model_reserve(d->model, pages, 0, &err));
    d->set = mt_set_new(d->dev);
    d->reading = mt_reading_new(d->set, LENGTH * VOCAB * sizeof(float));
}

static void stop(driver *d)
{
    mt_set_free(d->set);
    mt_model_free(d->model);
    mt_device_close(d->dev);
}

/* `rows` rows of the first sequence, whose logits are taken, and perhaps some of another before them. */
static void step(const driver *d, const toy *t, sequence *s, size_t rows, sequence *other, size_t others,
                 float (*logits)[VOCAB])
{
    static uint32_t tokens[ROWS], seen[ROWS], wanted[LENGTH];
    static mt_position positions[ROWS];
    mt_span spans[2];
    mt_batch batch = {.tokens = tokens, .positions = positions, .span = spans, .seen = t->block[1] ? seen : NULL};
    sequence *const both[] = {other, s};
    const size_t counts[] = {others, rows};
    for (size_t i = 0; i < 2; i++) {
        if (counts[i] == 0)
            continue;
        spans[batch.spans++] = span_of(t, both[i], batch.rows, counts[i]);
        for (size_t r = 0; r < counts[i]; r++, batch.rows++) {
            const uint32_t p = (uint32_t)both[i]->done++;
            tokens[batch.rows] = both[i]->tokens[p];
            positions[batch.rows] = (mt_position){{p, p, p}};
            seen[batch.rows] = i && p >= t->block[0] && p < t->block[1] ? t->block[1] : p + 1;
        }
    }
    for (size_t r = 0; r < rows; r++)
        wanted[r] = (uint32_t)(others + r);
    mt_read_rows(d->dev, d->reading, mt_model_step(d->model, &batch, wanted, rows), 0, rows);
    for (size_t r = 0; r < rows; r++)
        memcpy(logits[s->done - rows + r], mt_reading_row(d->dev, d->reading, r), sizeof(logits[0]));
}

typedef float rows_of_logits[LENGTH][VOCAB];

static void run_whole(const toy *t, mt_precision precision, rows_of_logits logits)
{
    driver d;
    sequence s;
    start(&d, t, precision);
    make_sequence(&s, 0, LENGTH);
    step(&d, t, &s, LENGTH, NULL, 0, logits);
    stop(&d);
}

/* In pieces, beside a sequence that has rows of its own until it ends. */
static void run_in_company(const toy *t, mt_precision precision, rows_of_logits logits)
{
    static const size_t pieces[] = {3, 61, 33, 1, 100, 7, 64, 1, 1, 59};
    driver d;
    sequence s, other;
    start(&d, t, precision);
    make_sequence(&s, 0, LENGTH);
    make_sequence(&other, 1, OTHER);
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        const size_t left = other.length - other.done, others = left < 17 ? left : 17;
        step(&d, t, &s, pieces[i], &other, others, logits);
    }
    assert_int_equal(s.done, LENGTH);
    stop(&d);
}

static void expect_near(const double (*wanted)[VOCAB], const float (*got)[VOCAB])
{
    double most = 0;
    for (size_t p = 0; p < LENGTH; p++)
        for (size_t i = 0; i < VOCAB; i++)
            most = fmax(most, fabs(wanted[p][i]));
    for (size_t p = 0; p < LENGTH; p++)
        for (size_t i = 0; i < VOCAB; i++)
            if (!(fabs(wanted[p][i] - (double)got[p][i]) <= 2e-4 * most))
                fail_msg("logit %zu of position %zu is %g instead of %g", i, p, (double)got[p][i], wanted[p][i]);
}

/* Binds and runs a toy that has been described. */
static void check(toy *t)
{
    static const mt_precision precisions[] = {MT_PRECISION_REFERENCE, MT_PRECISION_FAST};
    double(*wanted)[VOCAB] = mt_alloc(LENGTH * sizeof(*wanted));
    float(*whole)[VOCAB] = mt_alloc(sizeof(rows_of_logits)), (*pieces)[VOCAB] = mt_alloc(sizeof(rows_of_logits));
    sequence s;
    bind(t);
    make_sequence(&s, 0, LENGTH);
    forward(t, s.tokens, wanted);
    for (size_t i = 0; i < 2; i++) {
        run_whole(t, precisions[i], whole);
        if (i == 0)
            expect_near((const double(*)[VOCAB])wanted, (const float(*)[VOCAB])whole);
        run_in_company(t, precisions[i], pieces);
        assert_memory_equal(whole, pieces, sizeof(rows_of_logits));
    }
    mt_free(wanted);
    mt_free(whole);
    mt_free(pieces);
    mt_checkpoint_close(t->checkpoint);
    mt_arena_free(t->arena);
}

/* Four plain layers with two rotary embeddings to choose from: of 8 pairs, and of 4. */
static void begin(toy *t)
{
    *t = (toy){.random = 7, .arena = mt_arena_new(0)};
    for (size_t r = 0; r < 2; r++) {
        t->rope[r] = (mt_rope){.type = "default", .half = r ? 4 : 8, .inv_freq = t->inv_freq[r], .scale = 1};
        for (size_t i = 0; i < t->rope[r].half; i++)
            t->inv_freq[r][i] = powf(100, -(float)i / (float)t->rope[r].half);
    }
    t->spec = (mt_model_spec){.family = "toy",
                              .architecture = "Toy",
                              .vocab = VOCAB,
                              .hidden = HIDDEN,
                              .layers = LAYERS,
                              .context = LENGTH,
                              .eps = 1e-6f,
                              .embed_scale = 1,
                              .tied = true,
                              .rope_count = 2,
                              .ropes = t->rope,
                              .layer = t->layer};
    for (size_t i = 0; i < LAYERS; i++)
        t->layer[i] = (mt_layer_spec){.attn = {.heads = 4, .kv_heads = 2, .head_dim = 16, .scale = 0.25f},
                                      .mlp = {.ffn = FFN},
                                      .moe = {.experts = EXPERTS, .top_k = 3, .ffn = INNER}};
}

static void layers_differ_in_heads_and_sizes(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.layer[0].attn = (mt_attn_spec){.heads = 6, .kv_heads = 1, .head_dim = 8, .window = 40, .rope = 1, .scale = 0.5f};
    t.layer[1].attn.heads = 2;
    t.layer[2].attn = (mt_attn_spec){.heads = 2, .kv_heads = 2, .head_dim = 24, .scale = 0.1f, .qkv_bias = true};
    t.layer[3].attn.softcap = 3;
    t.layer[3].attn.o_bias = true;
    t.layer[1].mlp = (mt_mlp_spec){.ffn = 20, .glu.act = MT_ACT_GELU_TANH, .bias = true};
    check(&t);
    assert_int_equal(t.spec.group_count, 3);
    assert_int_equal(t.spec.groups[0].layers, 2); /* of 4 and of 2 heads */
    assert_int_equal(t.spec.groups[1].window, 40);
    assert_int_equal(t.spec.groups[2].window, 0); /* keeps all as the first does, in another shape */
}

static void chunks_and_no_rope(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.layer[0].attn.chunk = 50;
    t.layer[1].attn.rope = MT_NO_ROPE;
    t.layer[2].attn.chunk = 300;
    t.layer[2].attn.window = 70;
    t.layer[1].attn.keys = MT_KEYS_VALUES;
    t.layer[3].attn.rope = MT_NO_ROPE;
    t.layer[3].attn.qk_norm = MT_QK_NORM_HEADS;
    t.layer[3].attn.kv_heads = 4;
    check(&t);
    assert_int_equal(t.spec.group_count, 4);
    assert_int_equal(t.spec.groups[1].window, 50);
    assert_int_equal(t.spec.groups[2].window, 70);
}

/* As gpt-oss has them. */
static void sinks_limits_and_expert_biases(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    for (size_t i = 0; i < LAYERS; i++) {
        mt_layer_spec *l = &t.layer[i];
        l->attn.window = i % 2 ? 0 : 45;
        l->attn.sinks = l->attn.qkv_bias = l->attn.o_bias = true;
        l->mlp.glu = (mt_glu){.act = MT_ACT_QUICK_GELU, .limit = 0.7f, .offset = 1};
        l->sparse = l->moe.bias = l->moe.router_bias = true;
        l->moe.routing.kind = MT_ROUTE_CHOSEN;
    }
    check(&t);
}

/* As Gemma 4 has them. */
static void experts_beside_a_dense_mlp(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.block[0] = 66; /* not cut by any piece */
    t.block[1] = 90;
    for (size_t i = 0; i < LAYERS; i++) {
        mt_layer_spec *l = &t.layer[i];
        l->post_norms = l->scaled = l->sparse = l->beside = true;
        l->attn.qk_norm = MT_QK_NORM_HEADS;
        l->attn.v_norm = MT_V_NORM_PLAIN;
        l->attn.scale = 1;
        l->attn.rope = 1;
        l->mlp.glu.act = MT_ACT_GELU_TANH;
        l->moe.routing.renormalise = l->moe.router_norm = l->moe.scale = true;
        if (i % 2) {
            l->attn.kv_heads = 1;
            l->attn.head_dim = 24;
            l->attn.keys = MT_KEYS_VALUES;
            l->attn.rope = 0;
            l->attn.causal = true;
        } else {
            l->attn.window = 60;
        }
    }
    t.layer[2].attn.keys = MT_KEYS_EARLIER;
    t.layer[2].attn.source = 0;
    t.layer[2].attn.window = 30;
    t.layer[2].mlp.ffn = 40;
    t.layer[3].attn.keys = MT_KEYS_EARLIER;
    t.layer[3].attn.source = 1;
    t.layer[3].attn.heads = 2;
    check(&t);
    assert_int_equal(t.spec.groups[0].layers, 1);
    assert_int_equal(t.spec.groups[1].layers, 1);
}

/* As GLM-4.5V has them, and DeepSeek. */
static void sigmoid_routers_with_groups(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.rope[1].pairs = true;
    for (size_t i = 0; i < LAYERS; i++) {
        mt_layer_spec *l = &t.layer[i];
        l->attn.rope = i % 2;
        l->sparse = i > 0;
        l->moe.routing = (mt_routing){
            .kind = MT_ROUTE_SIGMOID, .renormalise = i > 1, .scaling = i > 2 ? 1.5f : 0, .groups = 4, .top_groups = 2};
        l->moe.correction = true;
        l->moe.shared_ffn = i == 1 ? 0 : 32;
    }
    check(&t);
}

/* As Qwen3-Next has them, and a norm of values with weights. */
static void gates_and_norms_with_an_offset(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.spec.norm_offset = 1;
    for (size_t i = 0; i < LAYERS; i++) {
        mt_layer_spec *l = &t.layer[i];
        l->attn.gate = true;
        l->attn.qk_norm = MT_QK_NORM_HEADS;
        l->attn.v_norm = i % 2 ? MT_V_NORM_WEIGHTS : MT_V_NORM_PLAIN;
        l->sparse = true;
        l->moe.routing.renormalise = i % 2;
        l->moe.shared_ffn = 16;
        l->moe.shared_gated = true;
    }
    check(&t);
}

/* As Ministral 3 has them, in some layers. */
static void queries_grow_with_their_position(void **state)
{
    static const float factor[] = {1, 1.5f, 0.7f, 2};
    toy t;
    (void)state;
    begin(&t);
    t.spec.stretch = (mt_stretch){.factor = factor, .count = MT_COUNT(factor), .every = 70};
    for (size_t i = 0; i < LAYERS; i++)
        t.layer[i].attn.stretched = i != 1;
    t.layer[2].attn.rope = MT_NO_ROPE;
    check(&t);
}

static const mt_tensor_names behind = {.norm = "norm",
                                       .attn_post_norm = "post_attention_layernorm",
                                       .mlp_post_norm = "post_feedforward_layernorm",
                                       .q_norm = "self_attn.q_norm",
                                       .k_norm = "self_attn.k_norm",
                                       .o = "self_attn.o_proj",
                                       .gate = "mlp.gate_proj",
                                       .up = "mlp.up_proj",
                                       .down = "mlp.down_proj"};

/* As OLMo 3 and EXAONE 4 have them. */
static void norms_behind_and_none_in_front(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.spec.names = &behind;
    for (size_t i = 0; i < LAYERS; i++) {
        t.layer[i].bare = t.layer[i].post_norms = true;
        t.layer[i].attn.qk_norm = i % 2 ? MT_QK_NORM_WHOLE : MT_QK_NORM_HEADS;
        t.layer[i].attn.rope = i == 3 ? MT_NO_ROPE : (uint8_t)(i % 2);
        t.layer[i].attn.window = i == 1 ? 50 : 0;
    }
    check(&t);
}

/* As Granite has them; norms of whole queries and keys in front of a rotation of part of a head, as MiniMax M2 has. */
static void factors_on_results_and_logits(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.spec.logit_scale = 0.3f;
    for (size_t i = 0; i < LAYERS; i++) {
        t.layer[i].residual = 0.4f + 0.3f * (float)i;
        t.layer[i].attn.rope = 1;
        t.layer[i].attn.qk_norm = i < 2 ? MT_QK_NORM_WHOLE : MT_QK_NORM_NONE;
        t.layer[i].attn.kv_heads = i < 1 ? 1 : 2;
        t.layer[i].sparse = i > 1;
    }
    check(&t);
}

/* As Cohere has them, in some layers. */
static void mlps_beside_attention(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.spec.centred = true;
    t.spec.logit_scale = 2;
    t.rope[0].pairs = true;
    for (size_t i = 0; i < LAYERS; i++) {
        t.layer[i].parallel = i != 2;
        t.layer[i].attn.window = i == 3 ? 0 : 40;
        t.layer[i].attn.rope = i == 3 ? MT_NO_ROPE : 0;
        t.layer[i].mlp.bias = i == 1;
    }
    check(&t);
}

/* As Gemma 4's small ones have them; two tokens are embedded as a third. */
static void layers_with_embeddings_of_their_own(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    t.spec.aside = ASIDE;
    t.spec.aside_vocab = VOCAB + 3;
    t.spec.eps = 1e-2f; /* so that it shows where it is scaled */
    t.spec.blank = (mt_blank){.count = 2, .token = {4, 30}, .as = 34};
    for (size_t i = 0; i < LAYERS; i++) {
        t.layer[i].post_norms = i % 2;
        t.layer[i].scaled = true;
        t.layer[i].mlp.glu.act = i < 3 ? MT_ACT_GELU_TANH : MT_ACT_SILU;
    }
    check(&t);
}

/* As DeepSeek V3 has it, in layers that differ, and one with usual keys among them. */
static void latents_are_the_keys_and_values_of_all_heads(void **state)
{
    static const float factor[] = {1, 1.5f, 0.7f, 2};
    toy t;
    (void)state;
    begin(&t);
    t.rope[1].pairs = true;
    t.spec.stretch = (mt_stretch){.factor = factor, .count = MT_COUNT(factor), .every = 70};
    for (size_t i = 0; i < LAYERS; i++) {
        mt_attn_spec *a = &t.layer[i].attn;
        a->latent = (mt_latent_spec){
            .width = 24, .queries = i == 2 ? 0 : 20, .plain = 12, .turned = 8, .value = 10, .eps = 1e-3f};
        a->kv_heads = 1;
        a->head_dim = a->latent.width + a->latent.turned;
        a->scale = 0.3f;
        a->rope = i == 3 ? MT_NO_ROPE : 1;
        a->qkv_bias = a->o_bias = i == 0;
        a->window = i == 1 ? 50 : 0;
        a->stretched = i == 2;
    }
    t.layer[3].attn.heads = 3;
    t.layer[2].attn.latent.width = 32;
    t.layer[2].attn.head_dim = 40;
    check(&t);
    assert_int_equal(t.spec.group_count, 3);
    assert_int_equal(t.spec.groups[0].latent, 24);
    assert_int_equal(t.spec.groups[1].window, 50);
    assert_int_equal(t.spec.groups[2].latent, 32);
}

/* As DeepSeek V3.2 and GLM-5 have it: layers that choose, one that takes the choice before it, and one that sees
   all. */
static void layers_attend_to_chosen_positions(void **state)
{
    toy t;
    mt_error err = {0};
    (void)state;
    begin(&t);
    t.rope[1].pairs = true;
    for (size_t i = 0; i < LAYERS; i++) {
        mt_attn_spec *a = &t.layer[i].attn;
        a->latent = (mt_latent_spec){.width = 24, .queries = 20, .plain = 12, .turned = 8, .value = 10, .eps = 1e-3f};
        a->kv_heads = 1;
        a->head_dim = 32;
        a->scale = 0.3f;
        a->rope = 1;
        if (i != 2)
            a->index = (mt_index_spec){.top = 270, .heads = i == 1 ? 0 : 6, .head_dim = 10, .pairs = i == 3};
    }
    check(&t);
    assert_int_equal(t.spec.group_count, 2);
    assert_true(t.spec.groups[1].top == 270 && t.spec.groups[1].layers == 2 && t.spec.groups[1].latent == 10);
    t.layer[0].attn.index.heads = 0;
    t.spec.group_count = 0;
    assert_false(mt_model_spec_group(&t.spec, t.layer, &err));
    assert_string_equal(err.text, "layer 0 attends to what an earlier layer chose, and none chooses");
}

static void latents_stand_beside_usual_keys(void **state)
{
    toy t;
    (void)state;
    begin(&t);
    for (size_t i = 1; i < LAYERS; i += 2) {
        mt_attn_spec *a = &t.layer[i].attn;
        a->latent = (mt_latent_spec){.width = 24, .plain = 12, .turned = 8, .value = 10, .eps = 1e-3f};
        a->kv_heads = 1;
        a->head_dim = 32;
        a->rope = 1;
    }
    check(&t);
    assert_int_equal(t.spec.group_count, 2);
}

static void keys_of_layers_that_have_others_are_refused(void **state)
{
    toy t;
    mt_error err = {0};
    (void)state;
    begin(&t);
    t.layer[0].attn.window = 20;
    t.layer[2].attn.keys = MT_KEYS_EARLIER; /* sees everything, but layer 0 keeps a window */
    assert_false(mt_model_spec_group(&t.spec, t.layer, &err));
    assert_string_equal(err.text, "layer 2 cannot read the keys of layer 0: their shapes or windows differ");
    mt_arena_free(t.arena);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(layers_differ_in_heads_and_sizes),
    IN_FOLDER(chunks_and_no_rope),
    IN_FOLDER(sinks_limits_and_expert_biases),
    IN_FOLDER(experts_beside_a_dense_mlp),
    IN_FOLDER(sigmoid_routers_with_groups),
    IN_FOLDER(gates_and_norms_with_an_offset),
    IN_FOLDER(queries_grow_with_their_position),
    IN_FOLDER(norms_behind_and_none_in_front),
    IN_FOLDER(factors_on_results_and_logits),
    IN_FOLDER(mlps_beside_attention),
    IN_FOLDER(layers_with_embeddings_of_their_own),
    IN_FOLDER(latents_are_the_keys_and_values_of_all_heads),
    IN_FOLDER(latents_stand_beside_usual_keys),
    IN_FOLDER(layers_attend_to_chosen_positions),
    cmocka_unit_test(keys_of_layers_that_have_others_are_refused),
};

UNIT_MAIN(tests)
