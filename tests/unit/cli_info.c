#include "weights_files.h"

#include <fcntl.h>
#include <jansson.h>

#include "cli/cli.h"

static char out[8192], said[4096];

static void read_back(FILE *file, char *text, size_t size)
{
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    fclose(file);
}

/* Runs the command with both streams in files. */
static int run(const char *dir, bool json)
{
    mt_options opt = {.device = "cpu", .command = MT_COMMAND_INFO, .dir = dir, .json = json};
    FILE *files[2] = {tmpfile(), tmpfile()};
    int saved[2], status;

    for (int i = 0; i < 2; i++) {
        fflush(i ? stderr : stdout);
        saved[i] = dup(i + 1);
        dup2(fileno(files[i]), i + 1);
    }
    status = mt_cmd_info(&opt);
    for (int i = 0; i < 2; i++) {
        fflush(i ? stderr : stdout);
        dup2(saved[i], i + 1);
        close(saved[i]);
    }
    read_back(files[0], out, sizeof(out));
    read_back(files[1], said, sizeof(said));
    return status;
}

#define QWEN3                                                                                                          \
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"model_type\":\"qwen3\",\"hidden_size\":64,\"num_hidden_layers\":1,"   \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,\"head_dim\":32,\"intermediate_size\":128,\"vocab_size\":16," \
    "\"max_position_embeddings\":4096,\"rms_norm_eps\":1e-06,\"rope_theta\":1000000.0,\"tie_word_embeddings\":true"

/* A matrix [n, k] in four bits with groups of 64. */
#define PACKED(name, n, k)                                                                                     \
    {name ".weight", "U32", #n ", " #k " ", n * k * 4, NULL}, {name ".scales", "BF16", #n ", 1", n * 2, NULL}, \
    {                                                                                                          \
        name ".biases", "BF16", #n ", 1", n * 2, NULL                                                          \
    }

#define LAYER_NORMS {"model.embed_tokens.weight", "BF16", "16, 64", 2048, NULL}, NORMS
#define NORMS                                                                        \
    {"model.norm.weight", "BF16", "64", 128, NULL},                                  \
        {"model.layers.0.input_layernorm.weight", "BF16", "64", 128, NULL},          \
        {"model.layers.0.post_attention_layernorm.weight", "BF16", "64", 128, NULL}, \
        {"model.layers.0.self_attn.q_norm.weight", "BF16", "32", 64, NULL},          \
    {                                                                                \
        "model.layers.0.self_attn.k_norm.weight", "BF16", "32", 64, NULL             \
    }

#define LAYER_ATTENTION                                                           \
    {"model.layers.0.self_attn.q_proj.weight", "BF16", "64, 64", 8192, NULL},     \
        {"model.layers.0.self_attn.k_proj.weight", "BF16", "32, 64", 4096, NULL}, \
        {"model.layers.0.self_attn.v_proj.weight", "BF16", "32, 64", 4096, NULL}, \
    {                                                                             \
        "model.layers.0.self_attn.o_proj.weight", "BF16", "64, 64", 8192, NULL    \
    }

#define LAYER_MLP                                                              \
    {"model.layers.0.mlp.gate_proj.weight", "BF16", "128, 64", 16384, NULL},   \
        {"model.layers.0.mlp.up_proj.weight", "BF16", "128, 64", 16384, NULL}, \
    {                                                                          \
        "model.layers.0.mlp.down_proj.weight", "BF16", "64, 128", 16384, NULL  \
    }

static void a_checkpoint_is_described(void **state)
{
    (void)state;
    put_text("config.json", QWEN3 "}");
    PUT_TENSORS("model.safetensors", LAYER_NORMS, LAYER_ATTENTION, LAYER_MLP);
    assert_int_equal(run(folder, false), 0);
    assert_string_equal(said, "");
    char *device = strstr(out, "device        cpu, with everything in the machine's ");
    assert_non_null(device);
    *device = '\0';
    assert_string_equal(out, "family        qwen3 (Qwen3ForCausalLM)\n"
                             "layers        1 of width 64, vocabulary 16, tied head\n"
                             "attention     2 heads, 1 key/value head of 32, normalised queries and keys\n"
                             "mlp           128 wide\n"
                             "rope          default, theta 1000000, 32 of 32 dimensions\n"
                             "window        every layer sees all tokens\n"
                             "context       4096 tokens\n"
                             "parameters    38.14 K\n"
                             "quantisation  none (bf16)\n"
                             "weights       74.5 KiB in 1 file; 74.0 KiB used as they lie, 1.0 KiB converted at load\n"
                             "cache         128 KiB per 1k tokens in bf16\n");
}

static void what_is_unusual_is_told(void **state)
{
    (void)state;
    put_text("config.json", QWEN3 "}");
    PUT_TENSORS("model.safetensors", LAYER_NORMS, LAYER_ATTENTION, PACKED("model.layers.0.mlp.gate_proj", 128, 8),
                PACKED("model.layers.0.mlp.up_proj", 128, 8),
                {"model.layers.0.mlp.down_proj.weight", "BF16", "64, 128", 16384, NULL},
                {"lm_head.weight", "BF16", "16, 64", 2048, NULL},
                {"model.visual.patch_embed.weight", "F32", "4, 4", 64, NULL},
                {"mtp.fc.weight", "BF16", "2, 2", 8, NULL}, {"model.rotary.inv_freq", "F64", "2", 16, NULL});
    assert_int_equal(run(folder, false), 0);
    assert_string_equal(said, "");
    assert_non_null(
        strstr(out, "quantisation  affine 4-bit group 64; 7 tensors bf16; 1 tensor f32; embeddings bf16\n"));
    assert_non_null(
        strstr(out, "unusual       tensors of a dtype that motet does not compute with: 1, such as F64\n"
                    "              the weights are quantised, but the config does not say so\n"
                    "              an lm_head although the config ties it: it is used\n"
                    "              a vision tower: 1 tensor, 64 B, which the text model does not use\n"
                    "              a multi-token prediction head: 1 tensor, 8 B, which the text model does not "
                    "use\n"
                    "              tensors that the model does not use: 1 more (--log-level debug lists them)\n"));
}

/* Some tools keep one of two names for the same tensor, and take the first in the alphabet. */
static void a_tied_head_may_stand_for_the_embeddings(void **state)
{
    (void)state;
    put_text("config.json", QWEN3 "}");
    PUT_TENSORS("model.safetensors", NORMS, LAYER_ATTENTION, LAYER_MLP,
                {"lm_head.weight", "BF16", "16, 64", 2048, NULL});
    assert_int_equal(run(folder, false), 0);
    assert_string_equal(said, "");
    assert_non_null(strstr(out, "layers        1 of width 64, vocabulary 16, tied head\n"));
    assert_null(strstr(out, "unusual"));
}

static void json_says_the_same(void **state)
{
    json_t *root;

    (void)state;
    put_text("config.json", QWEN3 ",\"use_sliding_window\":true,\"sliding_window\":64,\"max_window_layers\":0}");
    PUT_TENSORS("model.safetensors", LAYER_NORMS, LAYER_ATTENTION, LAYER_MLP);
    assert_int_equal(run(folder, true), 0);
    root = json_loads(out, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "family")), "qwen3");
    assert_int_equal(json_integer_value(json_object_get(root, "parameters")), 38144);
    assert_true(json_is_null(json_object_get(root, "problem")));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "cache"), "bytes_per_1k_tokens")),
                     131072);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(root, "cache"), "bytes_per_1k_tokens_past_window")), 0);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "cache"), "window_bytes")), 8192);
    const json_t *device = json_object_get(root, "device");
    assert_string_equal(json_string_value(json_object_get(device, "name")), "cpu");
    assert_true(json_is_null(json_object_get(device, "memory_bytes")));
    assert_true(json_integer_value(json_object_get(device, "host_memory_bytes")) > 0);
    assert_true(json_is_null(json_object_get(device, "problem")));
    json_decref(root);
}

static void encoders_are_described_too(void **state)
{
    json_t *root;

    (void)state;
    assert_int_equal(run("tests/oracle/vectors/bert-mean-f32", false), 0);
    assert_non_null(strstr(out, "family        bert, an encoder for vectors (/v1/embeddings)\n"));
    assert_non_null(strstr(out, "context       310 tokens\n"));
    assert_null(strstr(out, "cache"));
    assert_string_equal(said, "");
    assert_int_equal(run("tests/oracle/vectors/xlmr-rerank-bf16", true), 0);
    root = json_loads(out, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(root, "encoder")), "scores");
    assert_string_equal(json_string_value(json_object_get(root, "family")), "xlm-roberta");
    assert_null(json_object_get(root, "name"));
    json_decref(root);
}

static void convolutions_are_described_too(void **state)
{
    (void)state;
    assert_int_equal(run("tests/oracle/checkpoints/lfm2-bf16", false), 0);
    assert_non_null(strstr(out, "recurrent     2 of 4 layers: a convolution over 3 tokens\n"));
    assert_non_null(strstr(out, "state         1.0 KiB per sequence"));
    assert_int_equal(run("tests/oracle/sighted/glm46v-moe-bf16", false), 0);
    assert_non_null(strstr(out, "experts are weighed by sigmoids, and chosen with a correction\n"));
    assert_non_null(strstr(out, "experts are chosen from the best 2 of 4 groups\n"));
    assert_null(strstr(out, "neighbouring"));
    assert_int_equal(run("tests/oracle/sighted/glm4v-bf16", false), 0);
    assert_non_null(strstr(out, "neighbouring elements of a head are turned, not its halves\n"));
    assert_int_equal(run("tests/oracle/sighted/internvl-moe-bf16", false), 0);
    assert_non_null(strstr(out, "the tower has a row for each view besides its patches, of which no token is made\n"));
    assert_non_null(strstr(out, "queries and keys of the tower are normed by row, all heads together\n"));
}

static void expect_refusal(const char *sentence)
{
    mt_error err = {.code = MT_E_INVALID};

    assert_int_equal(run(folder, false), 1);
    snprintf(err.text, sizeof(err.text), "%.*s", (int)sizeof(err.text) - 1, said);
    expect_sentence(&err, MT_E_INVALID, sentence);
}

static void what_cannot_be_described_is_refused(void **state)
{
    (void)state;
    expect_refusal(
        "motet: \"%s\" is not a checkpoint: it has no config.json; give the folder that holds config.json and "
        "*.safetensors\n");
    assert_string_equal(out, "");
    put_text("config.json", "{\"model_type\":\"martian\",\"architectures\":[\"Martian\"]}");
    PUT_TENSORS("model.safetensors", {"a", "F32", "1", 4, NULL});
    assert_int_equal(run(folder, false), 1);
    assert_non_null(strstr(said, "\"martian\""));
    put_text("config.json", QWEN3 "}");
    put_bytes("model.safetensors", "\377\0\0\0\0\0\0\0{}", 10);
    expect_refusal(
        "motet: \"%s/model.safetensors\": the file is truncated or no safetensors file: it claims a header of 255 "
        "bytes and has 2; download the file again\n");
}

static void a_model_that_cannot_run_is_described_and_refused(void **state)
{
    (void)state;
    put_text("config.json", QWEN3 "}");
    PUT_TENSORS("model.safetensors", LAYER_NORMS, LAYER_MLP,
                {"model.layers.0.self_attn.q_proj.weight", "F32", "64, 64", 16384, NULL},
                {"model.layers.0.self_attn.k_proj.weight", "F32", "64, 64", 16384, NULL},
                {"model.layers.0.self_attn.v_proj.weight", "F32", "32, 64", 8192, NULL});
    expect_refusal(
        "motet: \"%s\" does not hold the 2 tensors its config.json calls for: "
        "\"model.layers.0.self_attn.k_proj.weight\" wanted [32, 64], found F32 [64, 64]; "
        "\"model.layers.0.self_attn.o_proj\" wanted [64, 64], absent; download it again, or check that config.json "
        "belongs to these weights\n");
    assert_non_null(strstr(out, "family        qwen3 (Qwen3ForCausalLM)\n"));
    put_text("config.json", QWEN3 ",\"quantization_config\":{\"quant_method\":\"hqq\"}}");
    expect_refusal(
        "motet: the weights are quantised by \"hqq\", which motet does not read; use the original checkpoint, or one "
        "in FP8, GPTQ, AWQ, compressed-tensors or an MLX conversion\n");
    assert_int_equal(run(folder, true), 1);
    assert_non_null(strstr(out, "\"problem\": \"the weights are quantised by"));
}

static void recurrent_layers_have_a_state_instead_of_a_cache(void **state)
{
    (void)state;
    assert_int_equal(run("tests/oracle/checkpoints/qwen35-mlx-4bit", false), 0);
    assert_non_null(
        strstr(out, "recurrent     3 of 4 layers: 2 key heads of 32, 4 value heads of 32, convolution over 4"));
    assert_non_null(strstr(out, "cache         256 KiB per 1k tokens in bf16\n"));
    assert_non_null(strstr(out, "state         57.0 KiB per sequence"));
}

static void what_new_families_have_is_told(void **state)
{
    (void)state;
    assert_int_equal(run("tests/oracle/checkpoints/gemma4-aside-bf16", false), 0);
    assert_non_null(strstr(out, "3 of 7 layers have no keys and values, but read those of earlier ones"));
    assert_non_null(strstr(out, "heads have 32 elements where all is seen and 16 elsewhere"));
    assert_non_null(strstr(out, "each layer is given an embedding of its own, of 16 elements"));
    assert_non_null(strstr(out, "32 of 32 dimensions, in 3 layers"));
    assert_non_null(strstr(out, "4 of 7 layers see 20 tokens"));
    assert_non_null(strstr(out, "where 3 layers hold"));
    assert_int_equal(run("tests/oracle/checkpoints/gemma4-moe-bf16", false), 0);
    assert_non_null(strstr(out, "values are keys before their norm in 2 of 3 layers"));
    assert_non_null(strstr(out, "experts stand beside a dense MLP"));
    assert_int_equal(run("tests/oracle/checkpoints/gptoss-mxfp4", false), 0);
    assert_non_null(strstr(out, "each head has a sink, which takes a share of attention and gives nothing"));
    assert_non_null(strstr(out, "what an expert's gate and up give is cut off at 7"));
    assert_non_null(strstr(out, "mxfp4; "));
    assert_null(strstr(out, "not normalised"));
    assert_int_equal(run("tests/oracle/checkpoints/ministral3-fp8", false), 0);
    assert_non_null(strstr(out, "queries are multiplied by up to 1.79 as their position grows, from 40 on"));
    assert_non_null(strstr(out, "fp8 with one scale a matrix"));
    assert_int_equal(run("tests/oracle/checkpoints/phi3-long-bf16", false), 0);
    assert_non_null(strstr(out, "texts are limited to the original context of LongRoPE, 1024 tokens"));
    assert_int_equal(run("tests/oracle/checkpoints/olmo3-bf16", false), 0);
    assert_non_null(strstr(out, "queries and keys are normed over all heads together"));
    assert_non_null(strstr(out, "norms stand behind attention and MLP, and none in front"));
    assert_int_equal(run("tests/oracle/checkpoints/cohere2-bf16", false), 0);
    assert_non_null(strstr(out, "1 of 4 layers do not turn queries and keys"));
    assert_non_null(strstr(out, "MLPs stand beside attention, not behind it"));
    assert_non_null(strstr(out, "norms subtract the mean"));
    assert_non_null(strstr(out, "logits are multiplied by 0.25"));
    assert_int_equal(run("tests/oracle/checkpoints/granite-bf16", false), 0);
    assert_non_null(strstr(out, "what attention and MLPs give is multiplied by 0.6"));
}

static void what_towers_have_is_told(void **state)
{
    static const char views[] = "large images may be seen in several views, with tokens for each\n";
    (void)state;
    assert_int_equal(run("tests/oracle/sighted/smolvlm-bf16", false), 0);
    assert_non_null(strstr(out, views));
    assert_non_null(strstr(out, "learned positions of the tower are looked up by a patch's share of the side\n"));
    assert_int_equal(run("tests/oracle/sighted/lfm2vl-bf16", false), 0);
    assert_non_null(strstr(out, views));
    assert_non_null(strstr(out, "learned positions of the tower are resized as a picture is\n"));
    assert_int_equal(run("tests/oracle/sighted/paddleocrvl-bf16", false), 0);
    assert_null(strstr(out, views));
    assert_non_null(strstr(out, "the tower has learned positions, and turns queries and keys besides\n"));
    assert_int_equal(run("tests/oracle/sighted/mistral3-bf16", false), 0);
    assert_non_null(strstr(out, "patches of a token become as wide as one of them before the text model's width\n"));
    assert_int_equal(run("tests/oracle/sighted/qwen2vl-bf16", false), 0);
    assert_null(strstr(out, "unusual"));
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(a_checkpoint_is_described),
    IN_FOLDER(what_is_unusual_is_told),
    IN_FOLDER(a_tied_head_may_stand_for_the_embeddings),
    IN_FOLDER(json_says_the_same),
    IN_FOLDER(what_cannot_be_described_is_refused),
    IN_FOLDER(a_model_that_cannot_run_is_described_and_refused),
    cmocka_unit_test(recurrent_layers_have_a_state_instead_of_a_cache),
    cmocka_unit_test(encoders_are_described_too),
    cmocka_unit_test(convolutions_are_described_too),
    cmocka_unit_test(what_new_families_have_is_told),
    cmocka_unit_test(what_towers_have_is_told),
};
UNIT_MAIN(tests)
