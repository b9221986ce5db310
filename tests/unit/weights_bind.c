#include "weights_files.h"

#include "weights/bind.h"

static mt_checkpoint *checkpoint;
static mt_arena *arena;
static mt_binder *binder;

static void start(const char *config)
{
    mt_error err = {0};

    put_text("config.json", config);
    checkpoint = mt_checkpoint_open(folder, &err);
    assert_string_equal(err.text, "");
    arena = mt_arena_new(0);
    binder = mt_binder_new(checkpoint, arena);
}

static bool finish(mt_bind_cost *cost, mt_error *err)
{
    bool ok = mt_binder_finish(binder, cost, err);

    mt_arena_free(arena);
    mt_checkpoint_close(checkpoint);
    return ok;
}

static void expect_done(void)
{
    mt_error err = {0};
    bool ok = finish(NULL, &err);

    assert_string_equal(err.text, "");
    assert_true(ok);
}

static void expect_report(const char *sentence)
{
    mt_error err = {0};

    assert_false(finish(NULL, &err));
    expect_sentence(&err, MT_E_INVALID, sentence);
}

static void every_prefix_is_found(void **state)
{
    static const struct {
        const char *prefix, *head;
    } rows[] = {
        {"model.", "lm_head"},
        {"model.language_model.", "lm_head"},
        {"language_model.model.", "language_model.lm_head"},
        {"language_model.", "language_model.lm_head"},
        {"", "lm_head"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char embed[80], norm[80], head[80];
        mt_mat mat;

        snprintf(embed, sizeof(embed), "%sembed_tokens.weight", rows[i].prefix);
        snprintf(norm, sizeof(norm), "%snorm.weight", rows[i].prefix);
        snprintf(head, sizeof(head), "%s.weight", rows[i].head);
        PUT_TENSORS("model.safetensors", {embed, "BF16", "4, 2", 16, NULL}, {norm, "F32", "2", 8, NULL},
                    {head, "F16", "4, 2", 16, NULL}, {"model.visual.blocks.0.norm1.weight", "F32", "2", 8, NULL});
        start("{}");
        assert_true(mt_bind_has(binder, "embed_tokens"));
        assert_true(mt_bind_has(binder, "lm_head"));
        assert_false(mt_bind_has(binder, "layers.0.mlp"));
        assert_true(mt_bind_matrix(binder, "embed_tokens", 4, 2, &mat));
        assert_int_equal(mat.format, MT_FORMAT_BF16);
        assert_true(mt_bind_matrix(binder, "lm_head", 4, 2, &mat));
        assert_int_equal(mat.format, MT_FORMAT_F16);
        assert_non_null(mt_bind_vector(binder, "norm", 2));
        expect_done();
    }
}

static void vectors_become_floats(void **state)
{
    static const float f32[] = {1, -2.5f, 3e-20f};
    static const uint16_t f16[] = {0x3c00, 0xc100, 0x0001}, bf16[] = {0x3f80, 0xc020, 0x7f80};
    mt_bind_cost cost;
    mt_error err = {0};
    const float *v;

    (void)state;
    PUT_TENSORS("model.safetensors", {"model.layers.0.odd", "U8", "1", 1, NULL},
                {"model.layers.0.a.weight", "F32", "3", 12, f32}, {"model.layers.0.b.weight", "F16", "3", 6, f16},
                {"model.layers.0.c.bias", "BF16", "3", 6, bf16});
    start("{}");
    v = mt_bind_vector(binder, "layers.0.a", 3);
    assert_memory_equal(v, f32, sizeof(f32));
    v = mt_bind_vector(binder, "layers.0.b", 3);
    assert_true(v[0] == 1 && v[1] == -2.5f && v[2] == 0x1p-24f);
    assert_true(mt_bind_has(binder, "layers.0.c.bias"));
    v = mt_bind_vector(binder, "layers.0.c.bias", 3);
    assert_true(v[0] == 1 && v[1] == -2.5f && v[2] > 3e38f);
    assert_true(finish(&cost, &err));
    assert_int_equal(cost.copied_bytes, 36);
    assert_int_equal(cost.mapped_bytes, 0);
    assert_int_equal(cost.unused_tensors, 1);
    assert_int_equal(cost.unused_bytes, 1);
}

static void plain_matrices_stay_where_they_are(void **state)
{
    mt_bind_cost cost;
    mt_error err = {0};
    mt_mat mat;

    (void)state;
    PUT_TENSORS("model.safetensors", {"model.layers.0.a.weight", "F32", "2, 3", 24, NULL},
                {"model.layers.0.b.weight", "BF16", "3, 2", 12, NULL});
    start("{}");
    assert_true(mt_bind_matrix(binder, "layers.0.a", 2, 3, &mat));
    assert_int_equal(mat.format, MT_FORMAT_F32);
    assert_int_equal(mat.n, 2);
    assert_int_equal(mat.k, 3);
    assert_int_equal(mat.bits, 32);
    assert_int_equal(mat.group, 0);
    assert_int_equal(mat.stride, 12);
    assert_null(mat.scales);
    assert_ptr_equal(mat.w, mt_checkpoint_find(checkpoint, "model.layers.0.a.weight")->data);
    assert_true(mt_bind_matrix(binder, "layers.0.b", 3, 2, &mat));
    assert_int_equal(mat.stride, 4);
    assert_int_equal(mat.scale_type, MT_SCALE_NONE);
    assert_true(mat.global == 1);
    assert_true(finish(&cost, &err));
    assert_int_equal(cost.copied_bytes, 0);
    assert_int_equal(cost.mapped_bytes, 36);
}

static void every_affine_width_binds(void **state)
{
    static const unsigned widths[] = {2, 3, 4, 5, 6, 8}, groups[] = {32, 64, 128};
    static const struct {
        const char *name;
        size_t size;
        mt_scale_type type;
    } floats[] = {{"BF16", 2, MT_SCALE_BF16}, {"F16", 2, MT_SCALE_F16}, {"F32", 4, MT_SCALE_F32}};

    (void)state;
    for (size_t i = 0; i < 6 * 3 * 3; i++) {
        unsigned bits = widths[i % 6], group = groups[i / 6 % 3];
        size_t f = i / 18, words = 128 * bits / 32, scales = 128 / group;
        char shape[32], of_scales[32];
        mt_mat mat;

        snprintf(shape, sizeof(shape), "3, %zu", words);
        snprintf(of_scales, sizeof(of_scales), "3, %zu", scales);
        PUT_TENSORS("model.safetensors", {"model.layers.0.p.weight", "U32", shape, 3 * words * 4, NULL},
                    {"model.layers.0.p.scales", floats[f].name, of_scales, 3 * scales * floats[f].size, NULL},
                    {"model.layers.0.p.biases", floats[f].name, of_scales, 3 * scales * floats[f].size, NULL});
        start("{\"quantization\":{\"group_size\":64,\"bits\":4}}"); /* wrong for most; the shapes tell */
        assert_true(mt_bind_has(binder, "layers.0.p"));
        assert_true(mt_bind_matrix(binder, "layers.0.p", 3, 128, &mat));
        assert_int_equal(mat.format, MT_FORMAT_AFFINE);
        assert_int_equal(mat.bits, bits);
        assert_int_equal(mat.group, group);
        assert_int_equal(mat.stride, 16 * bits);
        assert_int_equal(mat.scale_type, floats[f].type);
        assert_int_equal(mat.scale_stride, scales * floats[f].size);
        assert_ptr_equal(mat.scales, mt_checkpoint_find(checkpoint, "model.layers.0.p.scales")->data);
        assert_ptr_equal(mat.biases, mt_checkpoint_find(checkpoint, "model.layers.0.p.biases")->data);
        expect_done();
    }
}

static void microscaled_formats_bind(void **state)
{
    static const struct {
        mt_format format;
        unsigned bits, group;
        mt_scale_type type;
    } rows[] = {{MT_FORMAT_MXFP4, 4, 32, MT_SCALE_E8M0},
                {MT_FORMAT_NVFP4, 4, 16, MT_SCALE_E4M3},
                {MT_FORMAT_MXFP8, 8, 32, MT_SCALE_E8M0}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        size_t words = 64 * rows[i].bits / 32, scales = 64 / rows[i].group;
        char shape[32], of_scales[32];
        mt_mat mat;

        snprintf(shape, sizeof(shape), "3, %zu", words);
        snprintf(of_scales, sizeof(of_scales), "3, %zu", scales);
        PUT_TENSORS("model.safetensors", {"model.layers.0.p.weight", "U32", shape, 3 * words * 4, NULL},
                    {"model.layers.0.p.scales", "U8", of_scales, 3 * scales, NULL});
        start("{}");
        assert_true(mt_bind_matrix(binder, "layers.0.p", 3, 64, &mat));
        assert_int_equal(mat.format, rows[i].format);
        assert_int_equal(mat.bits, rows[i].bits);
        assert_int_equal(mat.group, rows[i].group);
        assert_int_equal(mat.scale_type, rows[i].type);
        assert_int_equal(mat.scale_stride, scales);
        assert_null(mat.biases);
        assert_true(mat.global == 1);
        expect_done();
    }
}

/* One scale stands for every block. */
static void fp8_with_one_scale_binds(void **state)
{
    static const uint8_t scale[4] = {0, 0, 0x80, 0x3f};
    mt_bind_cost cost;
    mt_error err;
    mt_mat mat;

    (void)state;
    PUT_TENSORS("model.safetensors", {"model.layers.0.p.weight", "F8_E4M3", "130, 257", 130 * 257, NULL},
                {"model.layers.0.p.weight_scale_inv", "F32", "", 4, scale},
                {"model.layers.0.p.activation_scale", "BF16", "", 2, NULL});
    start("{\"quantization_config\":{\"quant_method\":\"fp8\",\"activation_scheme\":\"static\","
          "\"weight_block_size\":null}}");
    assert_true(mt_bind_matrix(binder, "layers.0.p", 130, 257, &mat));
    assert_int_equal(mat.format, MT_FORMAT_FP8);
    assert_int_equal(mat.scale_type, MT_SCALE_F32);
    assert_int_equal(mat.scale_stride, 0);
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(mat.scales + 4 * i, scale, sizeof(scale));
    assert_true(finish(&cost, &err));
    assert_int_equal(cost.unused_tensors, 0);
}

static void block_fp8_binds(void **state)
{
    mt_mat mat;

    (void)state;
    PUT_TENSORS("model.safetensors", {"model.layers.0.p.weight", "F8_E4M3", "130, 257", 130 * 257, NULL},
                {"model.layers.0.p.weight_scale_inv", "BF16", "2, 3", 12, NULL},
                {"model.layers.0.q.weight", "F8_E4M3", "2, 2", 4, NULL},
                {"model.layers.0.q.weight_scale_inv", "F32", "1, 1", 4, NULL},
                {"model.layers.0.r.weight", "F8_E4M3", "2, 2", 4, NULL},
                {"model.layers.0.s.weight", "F8_E4M3", "2, 2", 4, NULL},
                {"model.layers.0.s.weight_scale_inv", "F32", "3", 12, NULL});
    start("{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}}");
    assert_true(mt_bind_matrix(binder, "layers.0.p", 130, 257, &mat));
    assert_int_equal(mat.format, MT_FORMAT_FP8);
    assert_int_equal(mat.scale_type, MT_SCALE_BF16);
    assert_int_equal(mat.group, 128);
    assert_int_equal(mat.stride, 257);
    assert_int_equal(mat.scale_stride, 6);
    assert_true(mt_bind_matrix(binder, "layers.0.q", 2, 2, &mat));
    assert_int_equal(mat.scale_type, MT_SCALE_F32);
    assert_false(mt_bind_matrix(binder, "layers.0.r", 2, 2, &mat));
    assert_false(mt_bind_matrix(binder, "layers.0.s", 2, 2, &mat));
    assert_int_equal(mat.n, 0);
    expect_report(
        "\"%s\" does not hold the 2 tensors its config.json calls for: \"model.layers.0.r.weight\" wanted [2, 2], "
        "found F8_E4M3 [2, 2] without weight_scale_inv or weight_scale; "
        "\"model.layers.0.s.weight\" wanted [2, 2], "
        "found F8_E4M3 [2, 2] with scales F32 [3]; download it again, or check that config.json belongs to these "
        "weights");
}

static void what_is_wrong_is_told_at_once(void **state)
{
    mt_mat mat;

    (void)state;
    PUT_TENSORS(
        "model.safetensors", {"model.layers.0.a.weight", "BF16", "4, 2", 16, NULL},
        {"model.layers.0.b.weight", "I8", "4, 2", 8, NULL}, {"model.layers.0.c.weight", "U32", "4, 8", 128, NULL},
        {"model.layers.0.d.weight", "U32", "4, 8", 128, NULL}, {"model.layers.0.d.scales", "BF16", "4, 1", 8, NULL},
        {"model.layers.0.v.weight", "BF16", "4, 1", 8, NULL});
    start("{}");
    assert_false(mt_bind_matrix(binder, "layers.0.a", 2, 4, &mat));
    assert_false(mt_bind_matrix(binder, "layers.0.b", 4, 2, &mat));
    assert_false(mt_bind_matrix(binder, "layers.0.c", 4, 64, &mat));
    assert_false(mt_bind_matrix(binder, "layers.0.d", 4, 64, &mat));
    assert_false(mt_bind_matrix(binder, "layers.0.e", 4, 64, &mat));
    assert_null(mt_bind_vector(binder, "layers.0.v", 4));
    assert_null(mt_bind_vector(binder, "layers.0.w", 4));
    expect_report(
        "\"%s\" does not hold the 7 tensors its config.json calls for: \"model.layers.0.a.weight\" wanted [2, 4], "
        "found BF16 [4, 2]; \"model.layers.0.b.weight\" wanted [4, 2], found I8 [4, 2] without weight_scale; "
        "\"model.layers.0.c.weight\" "
        "wanted [4, 64], found U32 [4, 8] without scales; \"model.layers.0.d.weight\" wanted [4, 64], found U32 [4, "
        "8] without biases; \"model.layers.0.e\" wanted [4, 64], absent; \"model.layers.0.v.weight\" wanted [4], found "
        "BF16 [4, 1]; \"model.layers.0.w\" wanted [4], absent; download it again, or check that config.json belongs "
        "to these weights");
}

static void scales_must_fit(void **state)
{
    mt_mat mat;

    (void)state;
    PUT_TENSORS(
        "model.safetensors", {"model.layers.0.a.weight", "U32", "4, 8", 128, NULL},
        {"model.layers.0.a.scales", "BF16", "3, 1", 6, NULL}, {"model.layers.0.a.biases", "BF16", "3, 1", 6, NULL},
        {"model.layers.0.b.weight", "U32", "4, 8", 128, NULL}, {"model.layers.0.b.scales", "BF16", "4, 1", 8, NULL},
        {"model.layers.0.b.biases", "F16", "4, 1", 8, NULL});
    start("{}");
    assert_false(mt_bind_matrix(binder, "layers.0.a", 4, 64, &mat));
    assert_false(mt_bind_matrix(binder, "layers.0.b", 4, 64, &mat));
    expect_report(
        "\"%s\" does not hold the 2 tensors its config.json calls for: \"model.layers.0.a.weight\" wanted [4, 64], "
        "found U32 [4, 8] with scales BF16 [3, 1]; \"model.layers.0.b.weight\" wanted [4, 64], found U32 [4, 8] with "
        "biases F16 [4, 1]; download it again, or check that config.json belongs to these weights");
}

static void a_long_list_is_cut(void **state)
{
    mt_error err = {0};
    mt_mat mat;

    (void)state;
    PUT_TENSORS("model.safetensors", {"model.norm.weight", "BF16", "4", 8, NULL});
    start("{}");
    for (unsigned i = 0; i < 1000; i++) {
        char path[64];

        snprintf(path, sizeof(path), "layers.%u.self_attn.q_proj", i);
        assert_false(mt_bind_matrix(binder, path, 4096, 4096, &mat));
    }
    assert_false(finish(NULL, &err));
    assert_non_null(strstr(err.text, "does not hold the 1000 tensors its config.json calls for: "
                                     "\"model.layers.0.self_attn.q_proj\" wanted [4096, 4096], absent; "));
    assert_non_null(
        strstr(err.text, "; and 990 more; download it again, or check that config.json belongs to these weights"));
}

static void an_unreadable_method_comes_first(void **state)
{
    mt_error err = {0};
    mt_mat mat;

    (void)state;
    PUT_TENSORS("model.safetensors", {"model.layers.0.a.qweight", "I32", "4, 8", 128, NULL});
    start("{\"quantization_config\":{\"quant_method\":\"exl3\"}}");
    assert_false(mt_bind_matrix(binder, "layers.0.a", 4, 64, &mat));
    assert_false(finish(NULL, &err));
    expect_sentence(
        &err, MT_E_UNSUPPORTED,
        "the weights are quantised by \"exl3\", which motet does not read; use the original checkpoint, or one in FP8, "
        "GPTQ, AWQ, compressed-tensors or an MLX conversion");
}

static void inspection_reads_nothing(void **state)
{
    static const float ones[] = {1, 1};
    mt_error err = {0};
    const float *v;

    (void)state;
    put_text("config.json", "{}");
    PUT_TENSORS("model.safetensors", {"model.norm.weight", "F32", "2", 8, ones});
    checkpoint = mt_checkpoint_inspect(folder, &err);
    assert_true(mt_checkpoint_inspecting(checkpoint));
    arena = mt_arena_new(0);
    binder = mt_binder_new(checkpoint, arena);
    v = mt_bind_vector(binder, "norm", 2);
    assert_true(v[0] == 0 && v[1] == 0);
    assert_null(mt_bind_vector(binder, "norm", 3));
    assert_false(finish(NULL, &err));
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(every_prefix_is_found),
    IN_FOLDER(vectors_become_floats),
    IN_FOLDER(plain_matrices_stay_where_they_are),
    IN_FOLDER(every_affine_width_binds),
    IN_FOLDER(microscaled_formats_bind),
    IN_FOLDER(fp8_with_one_scale_binds),
    IN_FOLDER(block_fp8_binds),
    IN_FOLDER(what_is_wrong_is_told_at_once),
    IN_FOLDER(scales_must_fit),
    IN_FOLDER(a_long_list_is_cut),
    IN_FOLDER(an_unreadable_method_comes_first),
    IN_FOLDER(inspection_reads_nothing),
};
UNIT_MAIN(tests)
