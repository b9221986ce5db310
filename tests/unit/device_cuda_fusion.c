/* Every fusion of the CUDA device is found where a model's operations stand side by side (src/device/cuda/fusion.c), on
   a driver of our own (tests/cuda/fake.h), which computes nothing: that fused kernels give the same bits is what
   checkdevice shows on a card. */
#include <string.h>

#include "device/cuda/cuda.h"
#include "kernels/matrix.h"
#include "unit.h"

#define WIDE 512 /* columns of all rows */
#define MOST 200 /* rows: more than kernels of few rows take, even in two parts */

/* Everything that a layer is made of, in zeros. */
typedef struct layer {
    mt_device *dev;
    mt_set *set;
    mt_tensor *x, *h, *y, *gate, *up, *table, *norm, *bias;
    const mt_weight *w[3]; /* of rows of WIDE columns: gate, up, down */
    mt_batch batch;
    mt_span span;
    uint32_t pages[4], tokens[MOST];
    mt_position positions[MOST];
    mt_piece piece;
} layer;

static const uint8_t zeros[WIDE * WIDE * 2];

static mt_mat matrix(mt_format format, size_t n, size_t k)
{
    const bool codes = format == MT_FORMAT_AFFINE;
    mt_mat mat = {.format = format,
                  .bits = codes ? 4 : 16,
                  .n = n,
                  .k = k,
                  .w = zeros,
                  .stride = codes ? k / 2 : 2 * k,
                  .global = 1};
    if (codes) {
        mat.scale_type = MT_SCALE_BF16;
        mat.group = 64;
        mat.scales = mat.biases = zeros;
        mat.scale_stride = k / 64 * 2;
    }
    return mat;
}

static const mt_weight *weight(layer *l, mt_format format, size_t n, bool exact)
{
    const mt_mat mat = matrix(format, n, WIDE);
    return mt_weight_new(l->set, &mat, NULL, exact);
}

static void begin(layer *l, mt_format format, mt_numerics numerics)
{
    const mt_device_params params = {.name = "cuda", .numerics = numerics, .host = {.threads = 1, .cpu_mask = ~0u}};
    mt_error err = {0};
    memset(l, 0, sizeof(*l));
    l->dev = mt_device_open(&params, &err);
    assert_non_null(l->dev);
    l->set = mt_set_new(l->dev);
    mt_tensor **rows[] = {&l->x, &l->h, &l->y, &l->gate, &l->up, &l->table};
    for (size_t i = 0; i < MT_COUNT(rows); i++)
        *rows[i] = mt_tensor_new(l->set, MOST, WIDE);
    l->norm = mt_tensor_new(l->set, 1, WIDE);
    l->bias = mt_tensor_new(l->set, 1, WIDE);
    for (size_t i = 0; i < MT_COUNT(l->w); i++)
        l->w[i] = weight(l, format, WIDE, false);
}

/* Starts a step of m rows of one sequence, or of m sequences that share their pages. */
static void step(layer *l, size_t m)
{
    mt_error err;
    assert_true(mt_device_plan(l->dev, MOST, &err));
    l->piece = (mt_piece){.rows = (uint32_t)m, .slot = 0};
    l->span = (mt_span){.rows = (uint32_t)m, .pages = {l->pages}, .state = MT_NO_PAGE, .pieces = 1, .piece = &l->piece};
    l->batch = (mt_batch){.rows = m, .tokens = l->tokens, .positions = l->positions, .spans = 1, .span = &l->span};
    mt_step_begin(l->dev, &l->batch);
}

static size_t number_of(const char *name)
{
    size_t i = 0;
    while (mt_cuda_fusions[i].name && strcmp(mt_cuda_fusions[i].name, name) != 0)
        i++;
    assert_non_null(mt_cuda_fusions[i].name);
    return i;
}

static bool found[MT_CUDA_FUSIONS];

/* Ends the layer; of the names, which end with NULL, each was found. */
static void end(layer *l, const char *const *names)
{
    for (; *names; names++) {
        const size_t i = number_of(*names);
        if (!mt_cuda_fused(l->dev, i))
            fail_msg("\"%s\" was not found", *names);
        found[i] = true;
    }
    mt_set_free(l->set);
    mt_device_close(l->dev);
}

#define END(l, ...) end(l, (const char *const[]){__VA_ARGS__, NULL})

/* A layer's MLP, its sum before it and its sum behind it. */
static void mlp(layer *l, size_t m)
{
    step(l, m);
    mt_op_add(l->dev, l->x, l->y, m);
    mt_op_norm(l->dev, l->h, l->x, m, l->norm, 1e-6f, 0);
    mt_op_matmul(l->dev, (mt_tensor *[]){l->gate, l->up}, l->w, 2, l->h, m);
    mt_op_spend(l->dev, l->h);
    mt_op_glu(l->dev, l->gate, l->gate, l->up, m, (mt_glu){.act = MT_ACT_SILU});
    mt_op_matmul(l->dev, &l->y, l->w + 2, 1, l->gate, m);
    mt_op_spend(l->dev, l->gate);
    mt_op_add(l->dev, l->x, l->y, m);
}

static void an_mlp_in_codes(void **state)
{
    layer l;
    (void)state;
    begin(&l, MT_FORMAT_AFFINE, MT_NUMERICS_PORTABLE);
    mlp(&l, 1);
    END(&l, "norm in codes", "gate in codes", "add to codes");
    begin(&l, MT_FORMAT_AFFINE, MT_NUMERICS_PORTABLE);
    mlp(&l, 20);
    END(&l, "pack norm", "pack glu", "add to codes");
    begin(&l, MT_FORMAT_AFFINE, MT_NUMERICS_PORTABLE);
    mlp(&l, MOST);
    END(&l, "add in norm", "pack many", "spend made");
}

static void an_mlp_in_bf16(void **state)
{
    layer l;
    (void)state;
    begin(&l, MT_FORMAT_BF16, MT_NUMERICS_PORTABLE);
    mlp(&l, 4);
    END(&l, "pack as bf16", "gate in bf16", "pack in bf16", "add to bf16");
    begin(&l, MT_FORMAT_BF16, MT_NUMERICS_PORTABLE);
    step(&l, MOST);
    mt_op_add(l.dev, l.x, l.y, MOST);
    mt_op_layer_norm(l.dev, l.h, l.x, MOST, l.norm, l.bias, 1e-6f);
    mt_op_matmul(l.dev, &l.y, l.w, 1, l.h, MOST);
    END(&l, "add in norm", "pack as bf16");
}

static void an_mlp_in_native(void **state)
{
    layer l;
    (void)state;
    begin(&l, MT_FORMAT_AFFINE, MT_NUMERICS_NATIVE);
    mlp(&l, 4);
    END(&l, "gate in native", "add to native", "spend native");
    begin(&l, MT_FORMAT_AFFINE, MT_NUMERICS_NATIVE);
    mlp(&l, 1);
    END(&l, "norm in native", "gate in native", "add to native");
}

/* Heads of queries and keys, keys and values to their pages, attention. gated: queries stand beside their gates. */
static void attend(layer *l, bool gated)
{
    const mt_kv_shape shape = {
        .layers = 1, .heads = WIDE / 64, .query_heads = WIDE / 64, .head_dim = 64, .page_tokens = MT_PAGE_TOKENS};
    const size_t m = 4;
    mt_error err;
    mt_kv *kv = mt_kv_new(l->set, &shape, &err);
    mt_tensor *both = mt_tensor_new(l->set, m, 2 * WIDE), *table = mt_tensor_new(l->set, m, 64);
    assert_true(kv && mt_kv_reserve(l->set, kv, MT_COUNT(l->pages), &err));
    step(l, m);
    if (gated)
        mt_op_split_heads(l->dev, l->h, l->gate, both, 64, m);
    mt_op_heads(l->dev, l->h, l->h, m, 64, NULL, 0, 0, table, false);
    mt_op_heads(l->dev, l->y, l->y, m, 64, NULL, 0, 0, table, false);
    mt_op_kv_write(l->dev, kv, 0, l->y, l->up);
    mt_op_spend(l->dev, l->y);
    mt_op_attention(l->dev, l->x, l->h, kv, 0, (mt_attention){.causal = true, .scale = 1});
    mt_op_spend(l->dev, l->h);
}

static void attention(void **state)
{
    layer l;
    (void)state;
    begin(&l, MT_FORMAT_BF16, MT_NUMERICS_PORTABLE);
    attend(&l, false);
    END(&l, "heads of both", "pages in heads", "spend heads", "spend queries");
    begin(&l, MT_FORMAT_BF16, MT_NUMERICS_PORTABLE);
    attend(&l, true);
    END(&l, "split in heads", "heads of both", "pages in heads");
}

/* A layer of four experts, of which a row has two. */
static void route(layer *l, size_t m)
{
    mt_mat mats[4];
    for (size_t i = 0; i < MT_COUNT(mats); i++)
        mats[i] = matrix(MT_FORMAT_AFFINE, WIDE, WIDE);
    const mt_experts_params params = {.count = 4, .top_k = 2, .gate = mats, .up = mats, .down = mats};
    const mt_experts *experts = mt_experts_new(l->set, &params);
    const mt_weight *router = weight(l, MT_FORMAT_AFFINE, 4, true);
    mt_tensor *scores = mt_tensor_new(l->set, m, 4);
    step(l, m);
    mt_op_norm(l->dev, l->h, l->x, m, l->norm, 1e-6f, 0);
    mt_op_matmul(l->dev, &scores, &router, 1, l->h, m);
    mt_op_moe(l->dev, l->y, l->h, scores, m, experts);
    mt_op_add(l->dev, l->x, l->y, m);
}

static void experts(void **state)
{
    layer l;
    (void)state;
    begin(&l, MT_FORMAT_BF16, MT_NUMERICS_PORTABLE);
    route(&l, 1);
    END(&l, "route with router", "add to row's experts");
    begin(&l, MT_FORMAT_BF16, MT_NUMERICS_PORTABLE);
    route(&l, 4);
    END(&l, "route with router", "add to experts");
    begin(&l, MT_FORMAT_BF16, MT_NUMERICS_NATIVE);
    route(&l, 1);
    END(&l, "route with router", "add to experts");
}

static void recurrent_layer(void **state)
{
    const mt_state_shape shape = {
        .layers = 1, .key_heads = 1, .value_heads = 2, .key_dim = 128, .value_dim = 128, .taps = 4};
    const mt_mat out = matrix(MT_FORMAT_AFFINE, WIDE, 256);
    const size_t m = 4;
    layer l;
    mt_error err;
    (void)state;
    begin(&l, MT_FORMAT_AFFINE, MT_NUMERICS_PORTABLE);
    mt_states *states = mt_state_new(l.set, &shape, 0);
    assert_true(mt_state_reserve(l.set, states, 1, &err));
    const mt_weight *small[2] = {weight(&l, MT_FORMAT_AFFINE, 2, true), weight(&l, MT_FORMAT_AFFINE, 2, true)};
    const mt_weight *back = mt_weight_new(l.set, &out, NULL, false);
    mt_tensor *a = mt_tensor_new(l.set, m, 2), *b = mt_tensor_new(l.set, m, 2), *gates = mt_tensor_new(l.set, m, 6);
    mt_tensor *y = mt_tensor_new(l.set, m, 256), *z = mt_tensor_new(l.set, m, 256);
    mt_tensor *rate = mt_tensor_new(l.set, 1, 2), *bias = mt_tensor_new(l.set, 1, 2);
    mt_tensor *norm = mt_tensor_new(l.set, 1, 128), *taps = mt_tensor_new(l.set, 4, WIDE);
    const mt_columns in[3] = {{l.x, 0, 128}, {l.x, 128, 128}, {l.x, 256, 256}};
    step(&l, m);
    mt_op_matmul(l.dev, (mt_tensor *[]){a, b}, small, 2, l.h, m);
    mt_op_conv(l.dev, l.y, states, 0, in, taps);
    mt_op_gates(l.dev, gates, (mt_columns){a, 0, 2}, (mt_columns){b, 0, 2}, 1, rate, bias, m);
    mt_op_delta(l.dev, y, states, 0, l.y, gates);
    mt_op_gated_norm(l.dev, y, (mt_columns){z, 0, 256}, 1, norm, 1e-6f, m);
    mt_op_matmul(l.dev, &l.x, &back, 1, y, m);
    END(&l, "gates with conv", "norm in delta", "pack in delta");
}

static void each_was_looked_for(void **state)
{
    (void)state;
    for (size_t i = 0; mt_cuda_fusions[i].name; i++)
        if (!found[i])
            fail_msg("no test finds \"%s\"", mt_cuda_fusions[i].name);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_mlp_in_codes),     cmocka_unit_test(an_mlp_in_bf16), cmocka_unit_test(an_mlp_in_native),
    cmocka_unit_test(attention),           cmocka_unit_test(experts),        cmocka_unit_test(recurrent_layer),
    cmocka_unit_test(each_was_looked_for),
};

UNIT_MAIN(tests)
