/* Names of a GGUF file's tensors as a checkpoint has them, and what the converter did to some of them (gguf_arch.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/limits.h"
#include "weights/gguf_arch.h"
#include "weights/limits.h"

/* Names of tensors that are in no layer. */
static const mt_gguf_rename whole[] = {
    {"token_embd", "model.embed_tokens"},
    {"output", "lm_head"},
    {"output_norm", "model.norm"},
    {"token_embd_norm", "model.embedding_norm"},
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
    {NULL, NULL},
};

/* Names within a layer, unless the architecture has others. A name with a suffix (".bias") comes before one without. */
static const mt_gguf_rename usual[] = {
    {"ssm_dt.bias", "linear_attn.dt_bias"},
    {"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    {"attn_sinks.weight", "self_attn.sinks"},
    {"ssm_a", "linear_attn.A_log"},
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"ffn_gate_inp", "mlp.gate"},
    {"ffn_gate_exps", "mlp.experts.gate_proj"},
    {"ffn_up_exps", "mlp.experts.up_proj"},
    {"ffn_down_exps", "mlp.experts.down_proj"},
    {"ffn_gate_up_exps", "mlp.experts.gate_up_proj"},
    {"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"attn_qkv", "linear_attn.in_proj_qkv"},
    {"attn_gate", "linear_attn.in_proj_z"},
    {"ssm_beta", "linear_attn.in_proj_b"},
    {"ssm_alpha", "linear_attn.in_proj_a"},
    {"ssm_ba", "linear_attn.in_proj_ba"},
    {"ssm_conv1d", "linear_attn.conv1d"},
    {"ssm_norm", "linear_attn.norm"},
    {"ssm_out", "linear_attn.out_proj"},
    {"shortconv.conv", "conv.conv"},
    {"shortconv.in_proj", "conv.in_proj"},
    {"shortconv.out_proj", "conv.out_proj"},
    {NULL, NULL},
};

/* Names of a drafting head beside those of its layer. */
static const mt_gguf_rename drafting[] = {
    {"nextn.eh_proj", "mtp.fc"},
    {"nextn.enorm", "mtp.pre_fc_norm_embedding"},
    {"nextn.hnorm", "mtp.pre_fc_norm_hidden"},
    {"nextn.shared_head_norm", "mtp.norm"},
    {NULL, NULL},
};

typedef struct namer {
    const mt_gguf *g;
    const mt_gguf_arch *arch;
    mt_arena *arena;
    mt_tensor_info *out;
    size_t count;
    int64_t layers, heads, kv_heads;
    int64_t key_heads, value_heads, key_dim, value_dim; /* of recurrent layers */
    mt_error *err;
} namer;

static bool fail_shape(const namer *n, const mt_tensor_info *t)
{
    return mt_fail(
        n->err, MT_E_INVALID,
        "tensor \"%s\" has not the shape that the header's numbers of heads ask for; download the file again", t->name);
}

static uint32_t *new_order(const namer *n, uint64_t count)
{
    return mt_arena_alloc(n->arena, (size_t)count * sizeof(uint32_t));
}

/* Where each row of queries or keys is: two halves of a head's elements stand in turns (MT_GGUF_TURNED). */
static bool untangle(const namer *n, const mt_tensor_info *t, int64_t heads, mt_tensor_fix *fix)
{
    const uint64_t rows = t->shape[0];
    if (heads <= 0 || rows % (uint64_t)heads || rows / (uint64_t)heads % 2 || rows > MT_LIMIT_WIDTH)
        return fail_shape(n, t);
    const size_t dim = (size_t)(rows / (uint64_t)heads), half = dim / 2;
    uint32_t *order = new_order(n, rows);
    for (size_t r = 0; r < rows; r++)
        order[r] = (uint32_t)(r - r % dim + r % half * 2 + r % dim / half);
    fix->rows = order;
    return true;
}

/* The reverse for the first `turned` elements of a head (MT_GGUF_HALVED). */
static bool tangle(const namer *n, const mt_tensor_info *t, int64_t heads, mt_tensor_fix *fix)
{
    const uint64_t rows = t->shape[0];
    if (heads <= 0 || rows % (uint64_t)heads || rows > MT_LIMIT_WIDTH)
        return fail_shape(n, t);
    const size_t dim = (size_t)(rows / (uint64_t)heads);
    const int64_t turned = mt_gguf_own_int(n->g, n->arch, "rope.dimension_count", (int64_t)dim);
    if (turned <= 0 || turned > (int64_t)dim || turned % 2)
        return fail_shape(n, t);
    uint32_t *order = new_order(n, rows);
    for (size_t r = 0; r < rows; r++) {
        const size_t e = r % dim, half = (size_t)turned / 2;
        order[r] = (uint32_t)(r - e + (e < (size_t)turned ? e % 2 * half + e / 2 : e));
    }
    fix->rows = order;
    return true;
}

/* Where each value head is whose place is ordered by its number within a key head; `first` things are before the
   heads, and a head has `dim` of them. */
static const uint32_t *untile(const namer *n, size_t first, size_t dim)
{
    const size_t keys = (size_t)n->key_heads, each = (size_t)(n->value_heads / n->key_heads);
    const size_t count = first + keys * each * dim;
    uint32_t *order = new_order(n, count);
    for (size_t i = 0; i < count; i++) {
        const size_t head = (i - first) / dim;
        order[i] = (uint32_t)(i < first ? i : first + (head % each * keys + head / each) * dim + (i - first) % dim);
    }
    return order;
}

/* Corrections of a recurrent layer's tensors whose value heads are tiled. */
static bool reorder(const namer *n, const char *name, const mt_tensor_info *t, mt_tensor_fix *fix)
{
    static const struct {
        const char *name;
        bool keys, wide, columns; /* keys are before the values; a head has value_dim; columns, not rows */
    } rows[] = {{"attn_qkv.weight", true, true, false},   {"attn_gate.weight", false, true, false},
                {"ssm_beta.weight", false, false, false}, {"ssm_alpha.weight", false, false, false},
                {"ssm_a", false, false, false},           {"ssm_dt.bias", false, false, false},
                {"ssm_conv1d.weight", true, true, false}, {"ssm_out.weight", false, true, true}};
    for (size_t i = 0; i < MT_COUNT(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        const size_t first = rows[i].keys ? (size_t)(2 * n->key_heads * n->key_dim) : 0;
        const size_t dim = rows[i].wide ? (size_t)n->value_dim : 1, axis = rows[i].columns;
        if (t->dims <= axis || t->shape[axis] != first + (size_t)n->value_heads * dim)
            return fail_shape(n, t);
        if (!rows[i].columns) {
            fix->rows = untile(n, first, dim);
        } else {
            fix->columns = untile(n, 0, 1);
            fix->piece = dim;
        }
    }
    return true;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool is_norm(const char *name)
{
    return strstr(name, "norm") != NULL && !begins(name, "ssm_norm");
}

/* Puts rows of zeros before a table of positions. */
static bool lengthen(const namer *n, mt_tensor_info *t, uint64_t zeros)
{
    if (t->dims != 2 || t->shape[0] + zeros > MT_LIMIT_WIDTH || t->dtype == MT_DTYPE_BLOCKS)
        return mt_fail(n->err, MT_E_INVALID,
                       "tensor \"%s\" is %s of %llu rows; known are F32, F16 and BF16 of at most %u", t->name,
                       t->dtype_name, (unsigned long long)t->shape[0], MT_LIMIT_WIDTH);
    const size_t rows = (size_t)(t->shape[0] + zeros);
    uint32_t *order = new_order(n, rows);
    for (size_t r = 0; r < rows; r++)
        order[r] = r < zeros ? MT_TENSOR_NO_ROW : (uint32_t)(r - zeros);
    t->shape[0] = rows;
    t->fix = mt_arena_copy(n->arena, &(mt_tensor_fix){.rows = order}, sizeof(*t->fix));
    return true;
}

/* Gives a tensor what has to be put right. name: within its layer, or the whole one. */
static bool mend(const namer *n, const char *name, mt_tensor_info *t)
{
    const unsigned flags = n->arch->flags;
    mt_tensor_fix fix = {0};
    const bool query = begins(name, "attn_q."), key = begins(name, "attn_k.");
    const bool sections = mt_gguf_own_array(n->g, n->arch, "rope.dimension_sections") != NULL;
    const uint64_t zeros = (flags & MT_GGUF_ENCODER) ? mt_gguf_encoder_rows(n->g) : 0;
    if (zeros && strcmp(name, "position_embd.weight") == 0)
        return lengthen(n, t, zeros);
    if ((query || key) && t->dims > 0) {
        const int64_t heads = query ? n->heads : n->kv_heads;
        if ((flags & MT_GGUF_TURNED) && !untangle(n, t, heads, &fix))
            return false;
        if ((flags & MT_GGUF_HALVED) && sections && !tangle(n, t, heads, &fix))
            return false;
    }
    if ((flags & MT_GGUF_TILED) && n->key_heads != n->value_heads && !reorder(n, name, t, &fix))
        return false;
    if ((flags & MT_GGUF_PLUS_ONE) && is_norm(name))
        fix.less = 1;
    fix.logarithm = (flags & MT_GGUF_RECURRENT) && strcmp(name, "ssm_a") == 0;
    if (fix.rows || fix.columns || fix.less != 0 || fix.logarithm)
        t->fix = mt_arena_copy(n->arena, &fix, sizeof(fix));
    return true;
}

/* Gives a tensor the dimension of 1 that the converter left out. */
static void widen(const char *name, mt_tensor_info *t)
{
    if (t->dims == 2 && (begins(name, "ssm_conv1d.") || begins(name, "shortconv.conv.weight"))) {
        t->shape[2] = t->shape[1];
        t->shape[1] = 1;
        t->dims = 3;
    } else if (t->dims == 1 && (begins(name, "ffn_gate_inp_shexp.") || strcmp(name, "token_types.weight") == 0 ||
                                strcmp(name, "cls.output.weight") == 0)) {
        t->shape[1] = t->shape[0];
        t->shape[0] = 1;
        t->dims = 2;
    }
}

/* The new name of a tensor; *suffix: what follows it. NULL: the table has none. */
static const char *renamed(const mt_gguf_rename *table, const char *name, const char **suffix)
{
    for (; table && table->from; table++) {
        const size_t len = strlen(table->from);
        *suffix = name + len;
        if (strncmp(table->from, name, len) == 0 &&
            (**suffix == '\0' || (**suffix == '.' && !strchr(*suffix + 1, '.'))))
            return table->to;
    }
    return NULL;
}

/* A matrix whose rows are those of two, for each key head in turn: makes two tensors of it. */
static bool divide(namer *n, const mt_tensor_info *t, const char *prefix)
{
    const size_t each = (size_t)(n->value_heads / n->key_heads), count = (size_t)n->value_heads;
    if (t->dims != 2 || t->shape[0] != 2 * count)
        return fail_shape(n, t);
    for (size_t part = 0; part < 2; part++) {
        mt_tensor_info *half = &n->out[n->count++];
        uint32_t *order = new_order(n, count);
        for (size_t i = 0; i < count; i++)
            order[i] = (uint32_t)(i / each * 2 * each + part * each + i % each);
        *half = *t;
        half->shape[0] = count;
        half->bytes /= 2;
        half->name = mt_arena_printf(n->arena, "%slinear_attn.in_proj_%c.weight", prefix, part ? 'a' : 'b');
        half->fix = mt_arena_copy(n->arena, &(mt_tensor_fix){.rows = order}, sizeof(*half->fix));
    }
    return true;
}

static bool add(namer *n, const mt_tensor_info *t, const char *prefix, const char *to, const char *name,
                const char *suffix)
{
    mt_tensor_info *own = &n->out[n->count++];
    *own = *t;
    own->name = to ? mt_arena_printf(n->arena, "%s%s%s", prefix, to, suffix)
                   : mt_arena_printf(n->arena, "gguf.%s", t->name); /* nothing asks for it */
    widen(name, own);
    return !to || mend(n, name, own);
}

/* A tensor of a layer, "blk.3.attn_q.weight". */
static bool add_of_layer(namer *n, const mt_tensor_info *t, int64_t layer, const char *name)
{
    const bool drafts = (n->arch->flags & MT_GGUF_DRAFTS) && layer >= n->layers;
    const char *suffix = "", *to = drafts ? renamed(drafting, name, &suffix) : NULL;
    char prefix[64];
    if (to)
        return add(n, t, "", to, name, suffix);
    to = renamed(n->arch->renames, name, &suffix);
    if (!to)
        to = renamed(usual, name, &suffix);
    snprintf(prefix, sizeof(prefix), "%s.%lld.",
             (n->arch->flags & MT_GGUF_ENCODER) ? "encoder.layer"
             : drafts                           ? "mtp.layers"
                                                : "model.layers",
             (long long)(drafts ? layer - n->layers : layer));
    if (begins(name, "ssm_ba.weight") && n->key_heads > 0)
        return divide(n, t, prefix);
    return add(n, t, prefix, to, name, suffix);
}

static bool add_any(namer *n, const mt_tensor_info *t)
{
    const char *suffix = "", *to;
    char *end;
    if (begins(t->name, "blk.")) {
        const long long layer = strtoll(t->name + 4, &end, 10);
        if (end > t->name + 4 && *end == '.' && layer >= 0 && layer < MT_LIMIT_LAYERS)
            return add_of_layer(n, t, layer, end + 1);
    }
    to = renamed((n->arch->flags & MT_GGUF_ENCODER) ? n->arch->renames : whole, t->name, &suffix);
    return add(n, t, "", to, t->name, suffix);
}

/* Numbers that orders of rows depend on. */
static bool read_heads(namer *n)
{
    const mt_gguf *g = n->g;
    const mt_gguf_arch *a = n->arch;
    n->layers = mt_gguf_layers(g, a);
    n->heads = mt_gguf_own_int(g, a, "attention.head_count", 0);
    n->kv_heads = mt_gguf_own_int(g, a, "attention.head_count_kv", n->heads);
    if (!(a->flags & MT_GGUF_RECURRENT))
        return true;
    n->key_heads = mt_gguf_own_int(g, a, "ssm.group_count", 0);
    n->value_heads = mt_gguf_own_int(g, a, "ssm.time_step_rank", 0);
    n->key_dim = mt_gguf_own_int(g, a, "ssm.state_size", 0);
    const int64_t inner = mt_gguf_own_int(g, a, "ssm.inner_size", 0);
    if (n->key_heads < 1 || n->value_heads < n->key_heads || n->value_heads > MT_LIMIT_STATE_HEADS ||
        n->value_heads % n->key_heads || n->key_dim < 1 || n->key_dim > MT_LIMIT_HEAD_DIM || inner < n->value_heads ||
        inner > MT_LIMIT_WIDTH || inner % n->value_heads)
        return mt_fail(n->err, MT_E_INVALID,
                       "the header's \"%s.ssm\" keys give no heads of recurrent layers; download the file again",
                       a->name);
    n->value_dim = inner / n->value_heads;
    return true;
}

bool mt_gguf_names(const mt_gguf *g, mt_arena *arena, mt_tensor_info **out, size_t *count, mt_error *err)
{
    namer n = {.g = g, .arch = mt_gguf_arch_of(g, err), .arena = arena, .err = err};
    if (!n.arch || !read_heads(&n))
        return false;
    n.out = mt_arena_alloc(arena, (2 * mt_gguf_tensors(g) + 1) * sizeof(*n.out)); /* some become two */
    for (size_t i = 0; i < mt_gguf_tensors(g); i++)
        if (!add_any(&n, mt_gguf_tensor(g, i)))
            return false;
    *out = n.out;
    *count = n.count;
    return true;
}
