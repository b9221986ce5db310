#include "weights_files.h"

#include "base/alloc.h"
#include "weights/bind.h"

enum { EXPERTS = 3 };

static mt_checkpoint *checkpoint;
static mt_arena *arena;
static mt_mat gate[EXPERTS], up[EXPERTS], down[EXPERTS];
static mt_bind_cost cost;
static mt_error error;
static size_t hidden, inner;
static bool interleaved; /* gate and up in one matrix */

/* Element (r, c) of a matrix of expert e; which is 0 for gate, 1 for up, 2 for down. Every value occurs once. */
static uint16_t value(size_t which, size_t e, size_t r, size_t c)
{
    return (uint16_t)(which << 14 | e << 12 | r << 6 | c);
}

static bool bind(bool inspect)
{
    mt_binder *b;
    bool bound, ok;

    mt_error_clear(&error);
    checkpoint = inspect ? mt_checkpoint_inspect(folder, &error) : mt_checkpoint_open(folder, &error);
    assert_string_equal(error.text, "");
    arena = mt_arena_new(0);
    b = mt_binder_new(checkpoint, arena);
    bound = mt_bind_experts(b, "layers.0.mlp", EXPERTS, hidden, inner, interleaved, gate, up, down);
    ok = mt_binder_finish(b, &cost, &error);
    assert_true(bound == ok);
    return ok;
}

static void drop(void)
{
    mt_arena_free(arena);
    mt_checkpoint_close(checkpoint);
}

static void expect_plain(const mt_mat *m, size_t which, size_t e, size_t n, size_t k)
{
    assert_int_equal(m->format, MT_FORMAT_BF16);
    assert_int_equal(m->n, n);
    assert_int_equal(m->k, k);
    for (size_t r = 0; r < n; r++) {
        for (size_t c = 0; c < k; c++) {
            uint16_t x;

            memcpy(&x, m->w + r * m->stride + 2 * c, 2);
            assert_int_equal(x, value(which, e, r, c));
        }
    }
}

static void expect_all_plain(void)
{
    assert_true(bind(false));
    for (size_t e = 0; e < EXPERTS; e++) {
        expect_plain(&gate[e], 0, e, inner, hidden);
        expect_plain(&up[e], 1, e, inner, hidden);
        expect_plain(&down[e], 2, e, hidden, inner);
    }
    drop();
}

/* data[E, rows, cols] or its transpose [E, cols, rows]; rows from `split` on belong to the next matrix. */
static uint16_t *fill(size_t which, size_t rows, size_t cols, size_t split, bool transposed)
{
    uint16_t *data = mt_alloc(EXPERTS * rows * cols * 2);

    for (size_t e = 0; e < EXPERTS; e++) {
        for (size_t r = 0; r < rows; r++) {
            for (size_t c = 0; c < cols; c++) {
                size_t at = transposed ? c * rows + r : r * cols + c;

                data[e * rows * cols + at] = value(which + r / split, e, r % split, c);
            }
        }
    }
    return data;
}

static const char *shape(char *out, size_t rows, size_t cols, bool transposed)
{
    snprintf(out, 40, "%d, %zu, %zu", EXPERTS, transposed ? cols : rows, transposed ? rows : cols);
    return out;
}

static void put_fused(bool transposed)
{
    size_t bytes = EXPERTS * hidden * inner * 2;
    uint16_t *both = fill(0, 2 * inner, hidden, inner, transposed), *last = fill(2, hidden, inner, hidden, transposed);
    char a[40], b[40];

    PUT_TENSORS(
        "model.safetensors",
        {"model.layers.0.mlp.experts.gate_up_proj", "BF16", shape(a, 2 * inner, hidden, transposed), 2 * bytes, both},
        {"model.layers.0.mlp.experts.down_proj", "BF16", shape(b, hidden, inner, transposed), bytes, last});
    mt_free(both);
    mt_free(last);
}

static void put_stacked(bool transposed)
{
    size_t bytes = EXPERTS * hidden * inner * 2;
    uint16_t *data[3];
    char a[40], b[40];

    for (size_t i = 0; i < 2; i++)
        data[i] = fill(i, inner, hidden, inner, transposed);
    data[2] = fill(2, hidden, inner, hidden, transposed);
    PUT_TENSORS(
        "model.safetensors",
        {"model.layers.0.mlp.switch_mlp.gate_proj.weight", "BF16", shape(a, inner, hidden, transposed), bytes, data[0]},
        {"model.layers.0.mlp.switch_mlp.up_proj.weight", "BF16", a, bytes, data[1]},
        {"model.layers.0.mlp.switch_mlp.down_proj.weight", "BF16", shape(b, hidden, inner, transposed), bytes,
         data[2]});
    for (size_t i = 0; i < 3; i++)
        mt_free(data[i]);
}

/* Square ones too: hidden == 2 * inner and hidden == inner leave one tensor that fits both ways. */
static void fused_experts_bind_either_way(void **state)
{
    static const size_t sizes[][2] = {{40, 12}, {12, 40}, {32, 16}, {16, 16}, {33, 5}};

    (void)state;
    put_text("config.json", "{}");
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t bytes = EXPERTS * sizes[i][0] * sizes[i][1] * 2;

        hidden = sizes[i][0];
        inner = sizes[i][1];
        put_fused(false);
        expect_all_plain();
        assert_int_equal(cost.copied_bytes, 0);
        assert_int_equal(cost.mapped_bytes, 3 * bytes);
        put_fused(true);
        expect_all_plain();
        assert_int_equal(cost.copied_bytes, 3 * bytes);
        assert_int_equal(cost.mapped_bytes, 0);
        assert_true(cost.seconds > 0);
    }
}

/* Rows of gate and up, each as put_fused has them, by turns. */
static uint16_t *weave(const uint16_t *both, bool transposed)
{
    const size_t n = 2 * inner, each = n * hidden;
    uint16_t *out = mt_alloc_array(EXPERTS * each, sizeof(*out));
    for (size_t e = 0; e < EXPERTS; e++)
        for (size_t r = 0; r < n; r++)
            for (size_t c = 0; c < hidden; c++) {
                const size_t from = r % 2 * inner + r / 2;
                out[e * each + (transposed ? c * n + r : r * hidden + c)] =
                    both[e * each + (transposed ? c * n + from : from * hidden + c)];
            }
    return out;
}

static void put_interleaved(bool transposed)
{
    const size_t bytes = EXPERTS * hidden * inner * 2;
    uint16_t *apart = fill(0, 2 * inner, hidden, inner, transposed), *both = weave(apart, transposed);
    uint16_t *last = fill(2, hidden, inner, hidden, transposed);
    char a[40], b[40];
    PUT_TENSORS(
        "model.safetensors",
        {"model.layers.0.mlp.experts.gate_up_proj", "BF16", shape(a, 2 * inner, hidden, transposed), 2 * bytes, both},
        {"model.layers.0.mlp.experts.down_proj", "BF16", shape(b, hidden, inner, transposed), bytes, last});
    mt_free(apart);
    mt_free(both);
    mt_free(last);
}

/* As gpt-oss has them: every second row is gate's. */
static void interleaved_experts_bind_either_way(void **state)
{
    static const size_t sizes[][2] = {{40, 12}, {16, 16}, {33, 5}};
    (void)state;
    put_text("config.json", "{}");
    interleaved = true;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        hidden = sizes[i][0];
        inner = sizes[i][1];
        put_interleaved(false);
        expect_all_plain();
        assert_int_equal(cost.copied_bytes, 0);
        put_interleaved(true);
        expect_all_plain();
        assert_int_equal(cost.copied_bytes, 3 * EXPERTS * hidden * inner * 2);
    }
    interleaved = false;
}

/* Blocks of 32 columns, two to a byte, with an exponent each; gate and up by turns. */
static void blocks_of_mxfp4_bind_in_place(void **state)
{
    (void)state;
    put_text("config.json", "{\"quantization_config\":{\"quant_method\":\"mxfp4\"}}");
    hidden = 64;
    inner = 32;
    interleaved = true;
#define BLOCKS(name, n, g)                                                                               \
    {"model.layers.0.mlp.experts." name "_blocks", "U8", "3, " #n ", " #g ", 16", 3 * n * g * 16, NULL}, \
        {"model.layers.0.mlp.experts." name "_scales", "U8", "3, " #n ", " #g, 3 * n * g, NULL}
    PUT_TENSORS("model.safetensors", BLOCKS("gate_up_proj", 64, 2), BLOCKS("down_proj", 64, 1));
    assert_true(bind(false));
    const uint8_t *w = mt_checkpoint_find(checkpoint, "model.layers.0.mlp.experts.gate_up_proj_blocks")->data;
    const uint8_t *s = mt_checkpoint_find(checkpoint, "model.layers.0.mlp.experts.gate_up_proj_scales")->data;
    assert_int_equal(up[2].format, MT_FORMAT_MXFP4);
    assert_int_equal(up[2].scale_type, MT_SCALE_E8M0);
    assert_int_equal(up[2].n, 32);
    assert_int_equal(up[2].k, 64);
    assert_int_equal(up[2].stride, 2 * 32);
    assert_int_equal(up[2].scale_stride, 2 * 2);
    assert_ptr_equal(gate[2].w, w + 2 * 64 * 32);
    assert_ptr_equal(up[2].w, w + 2 * 64 * 32 + 32);
    assert_ptr_equal(up[2].scales, s + 2 * 64 * 2 + 2);
    assert_int_equal(down[1].stride, 16);
    assert_int_equal(cost.copied_bytes, 0);
    drop();
    PUT_TENSORS("model.safetensors", BLOCKS("gate_up_proj", 64, 1), BLOCKS("down_proj", 64, 1));
    assert_false(bind(false));
    assert_non_null(strstr(error.text,
                           "gate_up_proj_blocks\" wanted [3, 64, 64], found U8 [3, 64, 1, 16] with scales U8 "
                           "[3, 64, 1]"));
    drop();
    interleaved = false;
}

static void stacked_experts_bind_either_way(void **state)
{
    (void)state;
    put_text("config.json", "{}");
    hidden = 40;
    inner = 12;
    put_stacked(false);
    expect_all_plain();
    assert_int_equal(cost.copied_bytes, 0);
    put_stacked(true);
    expect_all_plain();
    hidden = inner = 16; /* fits both ways: as conversions write it */
    put_stacked(false);
    expect_all_plain();
    assert_int_equal(cost.copied_bytes, 0);
}

static void inspection_repacks_nothing(void **state)
{
    (void)state;
    put_text("config.json", "{}");
    hidden = 40;
    inner = 12;
    put_fused(true);
    assert_true(bind(true));
    assert_int_equal(cost.copied_bytes, 3 * EXPERTS * hidden * inner * 2);
    assert_int_equal(mt_arena_used(arena), 0);
    assert_ptr_equal(down[1].w, mt_checkpoint_find(checkpoint, "model.layers.0.mlp.experts.down_proj")->data);
    drop();
}

static void experts_one_by_one_bind(void **state)
{
    static const char *const parts[] = {"gate_proj", "up_proj", "down_proj"};
    tensor_row rows[EXPERTS * 3];
    char names[EXPERTS * 3][80];
    uint16_t *data[3];

    (void)state;
    put_text("config.json", "{}");
    hidden = 20;
    inner = 12;
    for (size_t p = 0; p < 3; p++) {
        bool last = p == 2;

        data[p] = fill(p, last ? hidden : inner, last ? inner : hidden, 64, false);
        for (size_t e = 0; e < EXPERTS; e++) {
            snprintf(names[e * 3 + p], sizeof(names[0]), "model.layers.0.mlp.experts.%zu.%s.weight", e, parts[p]);
            rows[e * 3 + p] = (tensor_row){.name = names[e * 3 + p],
                                           .dtype = "BF16",
                                           .shape = last ? "20, 12" : "12, 20",
                                           .bytes = 480,
                                           .data = data[p] + e * 240};
        }
    }
    put_tensors("model.safetensors", rows, EXPERTS * 3);
    expect_all_plain();
    put_tensors("model.safetensors", rows + 1, EXPERTS * 3 - 2);
    assert_false(bind(false));
    expect_sentence(
        &error, MT_E_INVALID,
        "\"%s\" does not hold the 2 tensors its config.json calls for: \"model.layers.0.mlp.experts.0.gate_proj\" "
        "wanted [12, 20], absent; \"model.layers.0.mlp.experts.2.down_proj\" wanted [20, 12], absent; download it "
        "again, or check that config.json belongs to these weights");
    drop();
    for (size_t p = 0; p < 3; p++)
        mt_free(data[p]);
}

static void expect_affine(const mt_mat *m, const char *name, size_t row, size_t n, size_t k, size_t group)
{
    char full[100];
    size_t words = k * 4 / 8, scales = k / group * 2;

    assert_int_equal(m->format, MT_FORMAT_AFFINE);
    assert_int_equal(m->bits, 4);
    assert_int_equal(m->group, group);
    assert_int_equal(m->n, n);
    assert_int_equal(m->k, k);
    snprintf(full, sizeof(full), "%s.weight", name);
    assert_ptr_equal(m->w, mt_checkpoint_find(checkpoint, full)->data + row * words);
    snprintf(full, sizeof(full), "%s.scales", name);
    assert_ptr_equal(m->scales, mt_checkpoint_find(checkpoint, full)->data + row * scales);
    snprintf(full, sizeof(full), "%s.biases", name);
    assert_ptr_equal(m->biases, mt_checkpoint_find(checkpoint, full)->data + row * scales);
}

static void quantised_stacks_bind(void **state)
{
    (void)state;
    put_text("config.json", "{\"quantization\":{\"group_size\":64,\"bits\":4}}");
    hidden = 128;
    inner = 64;
#define PACKED(path, n, w, g)                                           \
    {path ".weight", "U32", "3, " #n ", " #w, 3 * n * w * 4, NULL},     \
        {path ".scales", "F16", "3, " #n ", " #g, 3 * n * g * 2, NULL}, \
        {path ".biases", "F16", "3, " #n ", " #g, 3 * n * g * 2, NULL}
    PUT_TENSORS("model.safetensors", PACKED("model.layers.0.mlp.switch_mlp.gate_proj", 64, 16, 2),
                PACKED("model.layers.0.mlp.switch_mlp.up_proj", 64, 16, 2),
                PACKED("model.layers.0.mlp.switch_mlp.down_proj", 128, 8, 1));
    assert_true(bind(false));
    for (size_t e = 0; e < EXPERTS; e++) {
        expect_affine(&gate[e], "model.layers.0.mlp.switch_mlp.gate_proj", e * 64, 64, 128, 64);
        expect_affine(&up[e], "model.layers.0.mlp.switch_mlp.up_proj", e * 64, 64, 128, 64);
        expect_affine(&down[e], "model.layers.0.mlp.switch_mlp.down_proj", e * 128, 128, 64, 64);
    }
    drop();
    PUT_TENSORS("model.safetensors", PACKED("model.layers.0.mlp.experts.gate_up_proj", 128, 16, 2),
                PACKED("model.layers.0.mlp.experts.down_proj", 128, 8, 1));
    assert_true(bind(false));
    for (size_t e = 0; e < EXPERTS; e++) {
        expect_affine(&gate[e], "model.layers.0.mlp.experts.gate_up_proj", e * 128, 64, 128, 64);
        expect_affine(&up[e], "model.layers.0.mlp.experts.gate_up_proj", e * 128 + 64, 64, 128, 64);
    }
    drop();
}

static void fp8_stacks_bind(void **state)
{
    const uint8_t *w, *s;

    (void)state;
    put_text("config.json", "{\"quantization_config\":{\"quant_method\":\"fp8\"}}");
    hidden = 130;
    inner = 128;
    PUT_TENSORS("model.safetensors",
                {"model.layers.0.mlp.experts.gate_up_proj", "F8_E4M3", "3, 256, 130", 3 * 256 * 130, NULL},
                {"model.layers.0.mlp.experts.gate_up_proj_scale_inv", "F32", "3, 2, 2", 48, NULL},
                {"model.layers.0.mlp.experts.down_proj", "F8_E4M3", "3, 130, 128", 3 * 130 * 128, NULL},
                {"model.layers.0.mlp.experts.down_proj_scale_inv", "F32", "3, 2, 1", 24, NULL});
    assert_true(bind(false));
    w = mt_checkpoint_find(checkpoint, "model.layers.0.mlp.experts.gate_up_proj")->data;
    s = mt_checkpoint_find(checkpoint, "model.layers.0.mlp.experts.gate_up_proj_scale_inv")->data;
    assert_ptr_equal(up[2].w, w + (2 * 256 + 128) * 130);
    assert_ptr_equal(up[2].scales, s + (2 * 2 + 1) * 8);
    assert_int_equal(up[2].n, 128);
    s = mt_checkpoint_find(checkpoint, "model.layers.0.mlp.experts.down_proj_scale_inv")->data;
    assert_ptr_equal(down[1].scales, s + 2 * 4);
    drop();
    inner = 64;
    PUT_TENSORS("model.safetensors",
                {"model.layers.0.mlp.experts.gate_up_proj", "F8_E4M3", "3, 128, 130", 3 * 128 * 130, NULL},
                {"model.layers.0.mlp.experts.gate_up_proj_scale_inv", "F32", "3, 1, 2", 24, NULL},
                {"model.layers.0.mlp.experts.down_proj", "F8_E4M3", "3, 130, 64", 3 * 130 * 64, NULL},
                {"model.layers.0.mlp.experts.down_proj_scale_inv", "F32", "3, 2, 1", 24, NULL});
    assert_false(bind(false));
    assert_non_null(strstr(error.text,
                           "gate_up_proj\" wanted gate and up apart, found them sharing blocks of scales: 64 rows "
                           "each"));
    drop();
}

static void absent_and_misshapen_experts_are_told(void **state)
{
    (void)state;
    put_text("config.json", "{}");
    hidden = 40;
    inner = 12;
    PUT_TENSORS("model.safetensors", {"model.norm.weight", "F32", "2", 8, NULL});
    assert_false(bind(false));
    expect_sentence(
        &error, MT_E_INVALID,
        "\"%s\" does not hold the 1 tensor its config.json calls for: \"model.layers.0.mlp.experts\" wanted 3 "
        "experts of [12, 40], absent; download it again, or check that config.json belongs to these weights");
    drop();
    inner = 10;
    put_fused(false);
    inner = 12;
    assert_false(bind(false));
    expect_sentence(
        &error, MT_E_INVALID,
        "\"%s\" does not hold the 2 tensors its config.json calls for: "
        "\"model.layers.0.mlp.experts.gate_up_proj\" wanted [3, 24, 40], found BF16 [3, 20, 40]; "
        "\"model.layers.0.mlp.experts.down_proj\" wanted [3, 40, 12], found BF16 [3, 40, 10]; download it again, or "
        "check that config.json belongs to these weights");
    drop();
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(fused_experts_bind_either_way),
    IN_FOLDER(interleaved_experts_bind_either_way),
    IN_FOLDER(blocks_of_mxfp4_bind_in_place),
    IN_FOLDER(stacked_experts_bind_either_way),
    IN_FOLDER(inspection_repacks_nothing),
    IN_FOLDER(experts_one_by_one_bind),
    IN_FOLDER(quantised_stacks_bind),
    IN_FOLDER(fp8_stacks_bind),
    IN_FOLDER(absent_and_misshapen_experts_are_told),
};
UNIT_MAIN(tests)
