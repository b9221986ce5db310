#include "weights_files.h"

#include "weights/quant.h"

static mt_config *config;

static bool read_text(const char *text, mt_quant *q, mt_error *err)
{
    mt_error none = {0};

    *err = none;
    mt_config_free(config);
    config = mt_config_parse(text, strlen(text), &none);
    assert_string_equal(none.text, "");
    return mt_quant_read(q, config, err);
}

static int drop_config(void **state)
{
    (void)state;
    mt_config_free(config);
    config = NULL;
    return 0;
}

static void expect_params(mt_quant_params p, mt_format format, unsigned bits, unsigned group)
{
    assert_int_equal(p.format, format);
    assert_int_equal(p.bits, bits);
    assert_int_equal(p.group, group);
}

static void expect_refusal(const char *text, mt_code code, const char *sentence)
{
    mt_quant q;
    mt_error err;

    assert_false(read_text(text, &q, &err));
    expect_sentence(&err, code, sentence);
}

static void modes_have_defaults(void **state)
{
    mt_quant q;
    mt_error err;

    (void)state;
    assert_true(read_text("{}", &q, &err));
    assert_int_equal(q.method, MT_QUANT_NONE);
    assert_true(read_text("{\"quantization\":{\"group_size\":32,\"bits\":6}}", &q, &err));
    assert_int_equal(q.method, MT_QUANT_MLX);
    expect_params(q.params, MT_FORMAT_AFFINE, 6, 32);
    assert_true(read_text("{\"quantization_config\":{\"mode\":\"affine\"}}", &q, &err));
    expect_params(q.params, MT_FORMAT_AFFINE, 4, 64);
    assert_true(read_text("{\"quantization\":{\"mode\":\"mxfp4\"}}", &q, &err));
    expect_params(q.params, MT_FORMAT_MXFP4, 4, 32);
    assert_true(read_text("{\"quantization\":{\"mode\":\"nvfp4\"}}", &q, &err));
    expect_params(q.params, MT_FORMAT_NVFP4, 4, 16);
    assert_true(read_text("{\"text_config\":{\"quantization\":{\"mode\":\"mxfp8\"}}}", &q, &err));
    expect_params(q.params, MT_FORMAT_MXFP8, 8, 32);
    assert_true(
        read_text("{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[128,128]}}", &q, &err));
    assert_int_equal(q.method, MT_QUANT_FP8);
    assert_true(read_text("{\"quantization_config\":{\"quant_method\":\"fp8\"}}", &q, &err));
    /* a conversion whose source was quantised otherwise */
    assert_true(
        read_text("{\"quantization\":{\"bits\":8},\"quantization_config\":{\"quant_method\":\"gptq\"}}", &q, &err));
    expect_params(q.params, MT_FORMAT_AFFINE, 8, 64);
}

static void what_cannot_be_read_is_named(void **state)
{
    (void)state;
    expect_refusal(
        "{\"quantization_config\":{\"quant_method\":\"exl3\",\"bits\":4}}", MT_E_UNSUPPORTED,
        "the weights are quantised by \"exl3\", which motet does not read; use the original checkpoint, or one in FP8, "
        "GPTQ, AWQ, compressed-tensors or an MLX conversion");
    expect_refusal("{\"text_config\":{\"quantization_config\":{\"quant_method\":\"awq\",\"version\":\"gemv\"}}}",
                   MT_E_UNSUPPORTED,
                   "the weights are quantised by AWQ with version \"gemv\", which motet does not read; use a "
                   "checkpoint of version \"gemm\"");
    expect_refusal(
        "{\"quantization_config\":{\"quant_method\":\"gptq\",\"checkpoint_format\":\"marlin\"}}", MT_E_UNSUPPORTED,
        "the weights are quantised by GPTQ with checkpoint_format \"marlin\", which motet does not read; use "
        "a checkpoint in the formats \"gptq\" or \"gptq_v2\"");
    expect_refusal("{\"quantization_config\":{\"quant_method\":\"auto-round\",\"packing_format\":\"auto_round\"}}",
                   MT_E_UNSUPPORTED,
                   "the weights are quantised by AutoRound with packing_format \"auto_round\", which motet does not "
                   "read; use an export in GPTQ's or AWQ's format");
    expect_refusal("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":\"marlin-24\"}}",
                   MT_E_UNSUPPORTED,
                   "the weights are quantised by compressed-tensors with format \"marlin-24\", which motet does not "
                   "read; use a checkpoint without sparsity");
    expect_refusal("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"sparsity_config\":"
                   "{\"format\":\"sparse-24-bitmask\"}}}",
                   MT_E_UNSUPPORTED,
                   "the weights are quantised by compressed-tensors with sparsity_config \"sparse-24-bitmask\", which "
                   "motet does not read; use a checkpoint without sparsity");
    expect_refusal(
        "{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"transform_config\":"
        "{\"config_groups\":{\"R1\":{}}}}}",
        MT_E_UNSUPPORTED,
        "the weights are quantised by compressed-tensors with transform_config \"config_groups\", which motet "
        "does not read; use a checkpoint without transforms");
    expect_refusal(
        "{\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"W4A16_AWQ\"}}", MT_E_UNSUPPORTED,
        "the weights are quantised by ModelOpt with quant_algo \"W4A16_AWQ\", which motet does not read; use "
        "a checkpoint in NVFP4 or FP8");
    expect_refusal("{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":[0,256]}}", MT_E_INVALID,
                   "\"weight_block_size\" says FP8 in blocks of 0 x 256; it has to be two sizes from 1 on");
    expect_refusal("{\"quantization_config\":{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\"}}", MT_E_UNSUPPORTED,
                   "the weights are FP8 in format \"e5m2\", which motet does not read; it reads e4m3");
    expect_refusal(
        "{\"quantization\":{\"mode\":\"mxfp6\"}}", MT_E_UNSUPPORTED,
        "the weights are quantised in mode \"mxfp6\", which motet does not read; it reads affine, mxfp4, nvfp4 and "
        "mxfp8");
    expect_refusal("{\"quantization\":{\"bits\":\"four\"}}", MT_E_INVALID,
                   "the config's \"quantization.bits\" is \"four\"; it must be an integer from 2 to 8");
    expect_refusal("{\"quantization\":{\"group_size\":1024}}", MT_E_INVALID,
                   "the config's \"quantization.group_size\" is 1024; it must be an integer from 16 to 128");
}

/* Methods whose tensors say all but this. */
static void methods_are_read(void **state)
{
    mt_quant q;
    mt_error err;

    (void)state;
    assert_true(read_text("{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":3,\"group_size\":-1,"
                          "\"desc_act\":true,\"sym\":true,\"meta\":{\"quantizer\":[\"gptqmodel:4.0\"]}}}",
                          &q, &err));
    assert_int_equal(q.method, MT_QUANT_GPTQ);
    assert_int_equal(q.group, -1);
    assert_int_equal(q.bits, 3);
    assert_true(q.symmetric && q.activation_order && q.gptqmodel && !q.zeros_whole);
    assert_true(read_text("{\"quantization_config\":{\"quant_method\":\"intel/auto-round\","
                          "\"packing_format\":\"auto_round:auto_gptq\",\"group_size\":64}}",
                          &q, &err));
    assert_int_equal(q.method, MT_QUANT_GPTQ);
    assert_int_equal(q.group, 64);
    assert_true(
        read_text("{\"quantization_config\":{\"quant_method\":\"gptq\",\"checkpoint_format\":\"gptq_v2\"}}", &q, &err));
    assert_true(q.zeros_whole && !q.symmetric && !q.gptqmodel);
    assert_true(read_text("{\"quantization_config\":{\"quant_method\":\"awq\",\"group_size\":128}}", &q, &err));
    assert_int_equal(q.method, MT_QUANT_AWQ);
    assert_int_equal(q.group, 128);
    assert_true(read_text("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"format\":"
                          "\"float-quantized\",\"config_groups\":{\"group_0\":{\"weights\":{\"num_bits\":8,"
                          "\"block_structure\":[64,256],\"actorder\":\"group\"}}}}}",
                          &q, &err));
    assert_int_equal(q.method, MT_QUANT_COMPRESSED);
    assert_int_equal(q.bits, 8);
    assert_int_equal(q.block_rows, 64);
    assert_int_equal(q.block_cols, 256);
    assert_true(q.activation_order);
    assert_true(
        read_text("{\"quantization_config\":{\"quant_method\":\"modelopt\",\"quant_algo\":\"FP8\"}}", &q, &err));
    assert_int_equal(q.method, MT_QUANT_MODELOPT);
    assert_true(read_text("{\"quantization_config\":{\"quant_method\":\"bitsandbytes\"}}", &q, &err));
    assert_int_equal(q.method, MT_QUANT_BNB);
}

static void overrides_are_found(void **state)
{
    mt_quant q;
    mt_error err;

    (void)state;
    assert_true(read_text("{\"quantization\":{\"group_size\":32,\"bits\":4,"
                          "\"model.layers.0.mlp.gate\":{\"group_size\":64,\"bits\":8},"
                          "\"language_model.model.layers.1.mlp.gate\":{\"bits\":8},"
                          "\"model.layers.2.mlp.gate\":{\"mode\":\"mxfp8\"},"
                          "\"model.layers.3.mlp.gate\":false,"
                          "\"model.layers.4.mlp.gate\":{\"bits\":99},"
                          "\"lm_head\":{\"group_size\":128}}}",
                          &q, &err));
    expect_params(mt_quant_lookup(&q, "model.layers.9.mlp.gate"), MT_FORMAT_AFFINE, 4, 32);
    expect_params(mt_quant_lookup(&q, "model.layers.0.mlp.gate"), MT_FORMAT_AFFINE, 8, 64);
    expect_params(mt_quant_lookup(&q, "language_model.model.layers.0.mlp.gate"), MT_FORMAT_AFFINE, 8, 64);
    expect_params(mt_quant_lookup(&q, "model.layers.1.mlp.gate"), MT_FORMAT_AFFINE, 8, 32);
    expect_params(mt_quant_lookup(&q, "model.layers.2.mlp.gate"), MT_FORMAT_MXFP8, 8, 32);
    expect_params(mt_quant_lookup(&q, "model.layers.3.mlp.gate"), MT_FORMAT_AFFINE, 4, 32);
    expect_params(mt_quant_lookup(&q, "model.layers.4.mlp.gate"), MT_FORMAT_AFFINE, 4, 32);
    expect_params(mt_quant_lookup(&q, "language_model.lm_head"), MT_FORMAT_AFFINE, 4, 128);
    drop_config(NULL);
    assert_true(read_text("{\"quantization\":{\"mode\":\"mxfp4\",\"group_size\":32,\"bits\":4,"
                          "\"a\":{\"group_size\":64,\"bits\":8}}}",
                          &q, &err));
    expect_params(mt_quant_lookup(&q, "a"), MT_FORMAT_AFFINE, 8, 64); /* who names no mode is affine */
}

static bool resolve(const mt_quant *q, uint64_t words, uint64_t scales, mt_dtype dtype, uint64_t k,
                    mt_quant_params *out)
{
    mt_tensor_info w = {.name = "w", .dtype = MT_DTYPE_U32, .dims = 2, .shape = {4, words}};
    mt_tensor_info s = {.name = "s", .dtype = dtype, .dims = 2, .shape = {4, scales}};

    return mt_quant_resolve(q, "path", &w, &s, k, out);
}

static void shapes_decide(void **state)
{
    static const unsigned widths[] = {2, 3, 4, 5, 6, 8}, groups[] = {32, 64, 128};
    mt_quant q;
    mt_error err;
    mt_quant_params p;

    (void)state;
    assert_true(read_text("{\"quantization\":{\"group_size\":64,\"bits\":4}}", &q, &err));
    for (size_t b = 0; b < 6; b++) {
        for (size_t g = 0; g < 3; g++) {
            assert_true(resolve(&q, 256 * widths[b] / 32, 256 / groups[g], MT_DTYPE_BF16, 256, &p));
            expect_params(p, MT_FORMAT_AFFINE, widths[b], groups[g]);
        }
        assert_true(resolve(&q, 256 * widths[b] / 32, 4, MT_DTYPE_F16, 0, &p));
        expect_params(p, MT_FORMAT_AFFINE, widths[b], 64);
    }
    assert_true(resolve(&q, 32, 8, MT_DTYPE_U8, 256, &p));
    expect_params(p, MT_FORMAT_MXFP4, 4, 32);
    assert_true(resolve(&q, 32, 16, MT_DTYPE_U8, 256, &p));
    expect_params(p, MT_FORMAT_NVFP4, 4, 16);
    assert_true(resolve(&q, 64, 8, MT_DTYPE_U8, 256, &p));
    expect_params(p, MT_FORMAT_MXFP8, 8, 32);
    assert_false(resolve(&q, 64, 16, MT_DTYPE_U8, 256, &p));
    assert_false(resolve(&q, 56, 4, MT_DTYPE_BF16, 256, &p));  /* 7 bits */
    assert_false(resolve(&q, 33, 4, MT_DTYPE_BF16, 256, &p));  /* no whole number of bits */
    assert_false(resolve(&q, 32, 16, MT_DTYPE_BF16, 256, &p)); /* affine in groups of 16 */
    assert_false(resolve(&q, 32, 0, MT_DTYPE_BF16, 256, &p));
    assert_false(resolve(&q, 32, 4, MT_DTYPE_OTHER, 256, &p));
    assert_false(resolve(&q, 32, UINT64_MAX / 2, MT_DTYPE_BF16, 0, &p));
    assert_false(resolve(&q, UINT64_MAX / 2, 4, MT_DTYPE_BF16, 256, &p));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_teardown(modes_have_defaults, drop_config),
    cmocka_unit_test_teardown(what_cannot_be_read_is_named, drop_config),
    cmocka_unit_test_teardown(methods_are_read, drop_config),
    cmocka_unit_test_teardown(overrides_are_found, drop_config),
    cmocka_unit_test_teardown(shapes_decide, drop_config),
};
UNIT_MAIN(tests)
