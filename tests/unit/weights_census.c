#include "weights_files.h"

#include "weights/census.h"

static mt_census census;
static char summary[512];

static void take(const char *config)
{
    mt_error err = {0};
    mt_checkpoint *c;
    mt_quant q;
    mt_buf text;

    put_text("config.json", config);
    c = mt_checkpoint_open(folder, &err);
    assert_string_equal(err.text, "");
    assert_true(mt_quant_read(&q, mt_checkpoint_config(c), &err));
    mt_census_make(&census, c, &q);
    mt_buf_init(&text, sizeof(summary) - 1);
    mt_census_summary(&census, &text);
    snprintf(summary, sizeof(summary), "%s", text.data ? text.data : "");
    mt_buf_free(&text);
    mt_checkpoint_close(c);
}

static void plain_weights_are_counted(void **state)
{
    (void)state;
    PUT_TENSORS("model.safetensors", {"model.embed_tokens.weight", "BF16", "8, 4", 64, NULL},
                {"model.layers.0.a.weight", "BF16", "4, 4", 32, NULL}, {"model.norm.weight", "F32", "4", 16, NULL});
    take("{}");
    assert_int_equal(census.parameters, 32 + 16 + 4);
    assert_string_equal(summary, "none (bf16)");
    PUT_TENSORS("model.safetensors", {"model.embed_tokens.weight", "BF16", "2, 4", 16, NULL},
                {"model.layers.0.a.weight", "F32", "4, 4", 64, NULL},
                {"model.layers.0.b.weight", "I8", "2, 2", 4, NULL});
    take("{}");
    assert_string_equal(summary, "none (f32; 1 tensor I8; embeddings bf16)");
    assert_int_equal(census.unread, 1);
    assert_string_equal(census.unread_dtype, "I8");
}

static void packed_weights_count_what_they_stand_for(void **state)
{
    (void)state;
    PUT_TENSORS(
        "model.safetensors", {"model.embed_tokens.weight", "BF16", "8, 64", 1024, NULL},
        {"model.layers.0.a.weight", "U32", "64, 8", 2048, NULL},
        {"model.layers.0.a.scales", "BF16", "64, 1", 128, NULL},
        {"model.layers.0.a.biases", "BF16", "64, 1", 128, NULL}, {"model.layers.0.b.weight", "U32", "2, 16", 128, NULL},
        {"model.layers.0.b.scales", "BF16", "2, 1", 4, NULL}, {"model.layers.0.b.biases", "BF16", "2, 1", 4, NULL},
        {"model.layers.0.c.weight", "U32", "3, 2, 8", 192, NULL},
        {"model.layers.0.c.scales", "U8", "3, 2, 2", 12, NULL}, {"model.layers.0.c.bias", "BF16", "2", 4, NULL});
    take("{\"quantization\":{\"group_size\":64,\"bits\":4,\"model.layers.0.c\":{\"mode\":\"mxfp4\"}}}");
    assert_int_equal(census.parameters, 8 * 64 + 64 * 64 + 2 * 64 + 3 * 2 * 64 + 2);
    assert_string_equal(summary,
                        "affine 4-bit group 64; 1 tensor mxfp4; 1 tensor affine 8-bit group 64; embeddings bf16");
    assert_int_equal(census.kind[0].parameters, 64 * 64);
}

static void other_layouts_are_named(void **state)
{
    (void)state;
    PUT_TENSORS("model.safetensors", {"m.a.qweight", "I32", "16, 64", 4096, NULL},
                {"m.a.scales", "F16", "2, 64", 256, NULL}, {"m.a.qzeros", "I32", "2, 8", 64, NULL},
                {"m.a.g_idx", "I32", "128", 512, NULL}, {"m.b.qweight", "I32", "32, 4", 512, NULL},
                {"m.b.scales", "F16", "1, 32", 64, NULL}, {"m.b.qzeros", "I32", "1, 4", 16, NULL});
    take("{\"quantization_config\":{\"quant_method\":\"gptq\",\"bits\":4}}");
    assert_string_equal(summary, "gptq 4-bit group 64; 1 tensor awq 4-bit, one scale a row");
    assert_int_equal(census.parameters, 64 * 128 + 32 * 32);
    PUT_TENSORS("model.safetensors", {"m.a.weight_packed", "I32", "4, 8", 128, NULL},
                {"m.a.weight_scale", "BF16", "4, 1", 8, NULL}, {"m.a.weight_shape", "I64", "2", 16, NULL},
                {"m.b.weight_packed", "U8", "4, 32", 128, NULL}, {"m.b.weight_scale", "F8_E4M3", "4, 4", 16, NULL},
                {"m.b.weight_global_scale", "F32", "1", 4, NULL}, {"m.c.weight", "I8", "4, 8", 32, NULL},
                {"m.c.weight_scale", "BF16", "4, 1", 8, NULL}, {"m.d.weight", "F8_E4M3", "4, 4", 16, NULL},
                {"m.d.weight_scale", "F32", "4, 1", 16, NULL});
    take("{\"quantization_config\":{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"group_0\":"
         "{\"weights\":{\"num_bits\":8}}}}}");
    assert_string_equal(summary, "nvfp4; 1 tensor int 8-bit, one scale a row; 1 tensor int8; 1 tensor fp8 with one "
                                 "scale a row");
    assert_int_equal(census.parameters, 4 * 32 + 4 * 64 + 32 + 16);
    assert_int_equal(census.unread, 0);
    PUT_TENSORS("model.safetensors", {"m.a.weight", "U8", "32, 1", 32, NULL},
                {"m.a.weight.absmax", "F32", "1", 4, NULL}, {"m.a.weight.quant_map", "F32", "16", 64, NULL},
                {"m.a.weight.quant_state.bitsandbytes__nf4", "U8", "2", 2, NULL},
                {"m.b.weight", "I8", "4, 8", 32, NULL}, {"m.b.SCB", "F32", "4", 16, NULL});
    take("{\"quantization_config\":{\"quant_method\":\"bitsandbytes\"}}");
    assert_string_equal(summary, "bitsandbytes nf4; 1 tensor bitsandbytes int8");
    assert_int_equal(census.parameters, 64 + 32);
}

static void fp8_weights_are_named(void **state)
{
    (void)state;
    PUT_TENSORS("model.safetensors", {"model.layers.0.a.weight", "F8_E4M3", "64, 8", 512, NULL},
                {"model.layers.0.a.weight_scale_inv", "F32", "1, 1", 4, NULL},
                {"model.layers.0.experts.up_proj", "F8_E4M3", "2, 8, 8", 128, NULL},
                {"model.layers.0.experts.up_proj_scale_inv", "F32", "2, 1, 1", 8, NULL},
                {"model.layers.0.b.weight", "F16", "2, 2", 8, NULL});
    take("{\"quantization_config\":{\"quant_method\":\"fp8\"}}");
    assert_string_equal(summary, "fp8 in 128 x 128 blocks; 1 tensor f16");
    assert_int_equal(census.parameters, 512 + 128 + 4);
    PUT_TENSORS("model.safetensors", {"model.layers.0.a.weight", "F8_E4M3", "64, 8", 512, NULL},
                {"model.layers.0.a.weight_scale_inv", "BF16", "", 2, NULL},
                {"model.layers.0.a.activation_scale", "BF16", "", 2, NULL});
    take("{\"quantization_config\":{\"quant_method\":\"fp8\",\"weight_block_size\":null}}");
    assert_string_equal(summary, "fp8 with one scale a matrix");
    assert_int_equal(census.parameters, 512);
}

static void blocks_of_mxfp4_count_what_they_stand_for(void **state)
{
    (void)state;
    PUT_TENSORS("model.safetensors", {"model.layers.0.mlp.experts.down_proj_blocks", "U8", "2, 4, 3, 16", 384, NULL},
                {"model.layers.0.mlp.experts.down_proj_scales", "U8", "2, 4, 3", 24, NULL},
                {"model.layers.0.b.weight", "BF16", "2, 2", 8, NULL});
    take("{\"quantization_config\":{\"quant_method\":\"mxfp4\"}}");
    assert_string_equal(summary, "mxfp4; 1 tensor bf16");
    assert_int_equal(census.parameters, 2 * 4 * 96 + 4);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(plain_weights_are_counted),
    IN_FOLDER(packed_weights_count_what_they_stand_for),
    IN_FOLDER(other_layouts_are_named),
    IN_FOLDER(fp8_weights_are_named),
    IN_FOLDER(blocks_of_mxfp4_count_what_they_stand_for),
};
UNIT_MAIN(tests)
