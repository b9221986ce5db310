/* Configs to specs: what each family reads, what it assumes, and what it says when a config is wrong. */
#include "unit.h"

#include <math.h>

#include "models/limits.h"
#include "models/vision.h"

#define SHAPE \
    "\"vocab_size\":100,\"hidden_size\":64,\"num_hidden_layers\":4,\"num_attention_heads\":4,\"intermediate_size\":96"

static mt_arena *arena;

/* Reads text into *spec; the error's sentence, or "" when it is fine. */
static const char *read_spec(const char *text, mt_model_spec *spec)
{
    static mt_error err;
    mt_error_clear(&err);
    mt_config *c = mt_config_parse(text, strlen(text), &err);
    assert_non_null(c);
    const bool ok = mt_model_spec_read(spec, c, NULL, arena, &err);
    assert_int_equal(ok, err.text[0] == '\0');
    mt_config_free(c);
    return err.text;
}

static void llama_fills_in_what_is_missing(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"llama\"," SHAPE "}", &s), "");
    assert_string_equal(s.family, "llama");
    assert_int_equal(s.layer[0].attn.kv_heads, 4);
    assert_int_equal(s.layer[0].attn.head_dim, 16);
    assert_int_equal(s.rope_count, 1);
    assert_false(s.layer[0].attn.qkv_bias || s.layer[0].attn.o_bias || s.layer[0].mlp.bias || s.layer[0].attn.qk_norm ||
                 s.tied);
    assert_true(s.ropes[0].inv_freq[0] == 1.0f && s.ropes[0].scale == 1.0f);
    assert_true(s.layer[0].attn.scale == 0.25f);
}

static void llama3_scaling_keeps_short_wavelengths(void **state)
{
    mt_model_spec plain, s;
    (void)state;
    read_spec("{\"model_type\":\"llama\",\"rope_theta\":500000,\"head_dim\":64," SHAPE "}", &plain);
    assert_string_equal(
        read_spec("{\"model_type\":\"llama\",\"rope_theta\":500000,\"head_dim\":64,\"rope_scaling\":{\"rope_type\":"
                  "\"llama3\",\"factor\":32,\"low_freq_factor\":1,\"high_freq_factor\":4,"
                  "\"original_max_position_embeddings\":8192}," SHAPE "}",
                  &s),
        "");
    assert_true(s.ropes[0].inv_freq[0] == plain.ropes[0].inv_freq[0]);
    assert_true(fabsf(s.ropes[0].inv_freq[31] * 32 / plain.ropes[0].inv_freq[31] - 1) < 1e-6f);
    /* between a quarter and the whole of 8192 positions a turn, as transformers blends them */
    assert_true(s.ropes[0].inv_freq[14] == plain.ropes[0].inv_freq[14]);
    assert_true(fabsf(s.ropes[0].inv_freq[15] / 0.00129054793f - 1) < 1e-6f);
    assert_true(fabsf(s.ropes[0].inv_freq[16] / 0.000429556797f - 1) < 1e-6f);
    assert_true(fabsf(s.ropes[0].inv_freq[17] / 9.7082878e-05f - 1) < 1e-6f);
    assert_true(fabsf(s.ropes[0].inv_freq[18] * 32 / plain.ropes[0].inv_freq[18] - 1) < 1e-6f);
}

static void factors_divide_each_frequency(void **state)
{
    mt_model_spec plain, s;
    (void)state;
    read_spec("{\"model_type\":\"llama\",\"head_dim\":4," SHAPE "}", &plain);
    assert_string_equal(
        read_spec("{\"model_type\":\"llama\",\"head_dim\":4,\"rope_scaling\":{\"rope_type\":\"factors\","
                  "\"factors\":[1,8]}," SHAPE "}",
                  &s),
        "");
    assert_true(s.ropes[0].inv_freq[0] == 1 && s.ropes[0].inv_freq[1] == plain.ropes[0].inv_freq[1] / 8);
    assert_string_equal(
        read_spec("{\"model_type\":\"llama\",\"head_dim\":4,\"rope_scaling\":{\"rope_type\":\"factors\","
                  "\"factors\":[1]}," SHAPE "}",
                  &s),
        "\"factors\" has 1 numbers for 2 frequencies");
}

/* Pairs up to 11 turn 32 times and more over 32768 positions, those from 20 on less than once; between them it goes
   down from the whole frequency to a quarter in equal steps. As transformers has it. */
static void yarn_ramps_from_whole_to_stretched(void **state)
{
    static const float wanted[32] = {[0] = 1,
                                     [10] = 0.0133352143f,
                                     [11] = 0.00865964323f,
                                     [12] = 0.00515479548f,
                                     [14] = 0.00177853028f,
                                     [17] = 0.000324690816f,
                                     [19] = 9.12806545e-05f,
                                     [20] = 4.44569853e-05f,
                                     [31] = 3.84981632e-07f};
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"qwen3\",\"head_dim\":64,\"rope_parameters\":{\"rope_type\":\"yarn\","
                  "\"rope_theta\":1000000,\"factor\":4,\"original_max_position_embeddings\":32768}," SHAPE "}",
                  &s),
        "");
    assert_int_equal(s.ropes[0].half, 32);
    for (size_t i = 0; i < MT_COUNT(wanted); i++)
        if (wanted[i] > 0)
            assert_true(fabsf(s.ropes[0].inv_freq[i] / wanted[i] - 1) < 1e-6f);
}

static void yarn_scales_cosines_too(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"qwen3\",\"rope_parameters\":{\"rope_type\":\"yarn\",\"rope_theta\":1000000,"
                  "\"factor\":4,\"original_max_position_embeddings\":32768}," SHAPE "}",
                  &s),
        "");
    assert_true(fabsf(s.ropes[0].scale - 1.1386294f) < 1e-6f); /* 0.1 ln 4 + 1 */
}

static void qwen_ignores_a_window_that_is_switched_off(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"qwen2\",\"sliding_window\":8,\"max_window_layers\":2," SHAPE "}", &s), "");
    assert_int_equal(s.layer[3].attn.window, 0);
    assert_true(s.layer[0].attn.qkv_bias && !s.layer[0].attn.o_bias);
    assert_string_equal(read_spec("{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"sliding_window\":8,"
                                  "\"max_window_layers\":2," SHAPE "}",
                                  &s),
                        "");
    assert_int_equal(s.layer[1].attn.window, 0);
    assert_int_equal(s.layer[2].attn.window, 8);
}

/* As transformers' classes have it: 4096 where the key is missing, no window where it is null. */
static void qwen_has_a_usual_window_where_none_is_given(void **state)
{
    static const struct {
        const char *config;
        uint32_t first, last;
    } cases[] = {{"\"model_type\":\"qwen2\",\"max_window_layers\":2", 0, 4096},
                 {"\"model_type\":\"qwen2\",\"max_window_layers\":2,\"sliding_window\":null", 0, 0},
                 {"\"model_type\":\"qwen3\",\"max_window_layers\":2", 0, 4096},
                 {"\"model_type\":\"qwen3\"", 0, 0}, /* from layer 28 on */
                 {"\"model_type\":\"qwen3_moe\"", 4096, 4096},
                 {"\"model_type\":\"qwen3_moe\",\"sliding_window\":null", 0, 0},
                 {"\"model_type\":\"qwen3_moe\",\"sliding_window\":8", 8, 8}};
    char config[512];
    mt_model_spec s;
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++) {
        snprintf(config, sizeof(config), "{%s,\"use_sliding_window\":true," SHAPE "}", cases[i].config);
        assert_string_equal(read_spec(config, &s), "");
        assert_int_equal(s.layer[0].attn.window, cases[i].first);
        assert_int_equal(s.layer[3].attn.window, cases[i].last);
    }
    assert_string_equal(read_spec("{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"num_hidden_layers\":60,"
                                  "\"hidden_size\":64,\"num_attention_heads\":4,\"intermediate_size\":128}",
                                  &s),
                        "");
    assert_int_equal(s.layer[27].attn.window, 0);
    assert_int_equal(s.layer[28].attn.window, 4096);
}

static void qwen3_moe_mixes_dense_and_sparse_layers(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"qwen3_moe\",\"num_experts\":8,\"num_experts_per_tok\":2,"
                  "\"moe_intermediate_size\":32,\"decoder_sparse_step\":1,\"mlp_only_layers\":[1]," SHAPE "}",
                  &s),
        "");
    assert_true(s.layer[0].sparse && !s.layer[1].sparse && s.layer[2].sparse);
    assert_false(s.layer[0].moe.routing.renormalise); /* the class's own default */
    assert_int_equal(s.layer[0].moe.ffn, 32);
}

static void gemma_alternates_windows_and_ropes(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"gemma3_text\",\"num_key_value_heads\":2,\"head_dim\":16,\"sliding_window\":"
                  "16,\"sliding_window_pattern\":2,\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":8},"
                  "\"query_pre_attn_scalar\":64," SHAPE "}",
                  &s),
        "");
    assert_true(s.tied && s.layer[0].post_norms && s.layer[0].attn.qk_norm && s.norm_offset == 1.0f &&
                s.embed_scale == 8.0f);
    assert_int_equal(s.layer[0].attn.window, 16);
    assert_int_equal(s.layer[1].attn.window, 0);
    assert_true(s.ropes[s.layer[0].attn.rope].inv_freq[0] == 1.0f);
    assert_true(s.ropes[s.layer[1].attn.rope].inv_freq[0] == 0.125f);
    assert_true(s.layer[0].attn.scale == 0.125f);
}

static void gemma_reads_its_text_config(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"gemma3\",\"text_config\":{\"hidden_size\":64,\"num_hidden_layers\":2,"
                  "\"intermediate_size\":96}}",
                  &s),
        "");
    assert_int_equal(s.vocab, 262208);
    assert_int_equal(s.layer[0].attn.heads, 8);
    assert_int_equal(s.layer[0].attn.head_dim, 256);
}

static void hybrids_have_three_recurrent_layers_to_one(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"qwen3_5\",\"text_config\":{\"num_hidden_layers\":8,"
                                  "\"rope_parameters\":{\"rope_theta\":1e7,\"partial_rotary_factor\":0.25}}}",
                                  &s),
                        "");
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(s.layer[i].kind == MT_LAYER_RECURRENT, i % 4 != 3);
    assert_int_equal(s.state.layers, 6);
    assert_int_equal(s.layer[4].slot, 3);
    assert_int_equal(s.layer[7].slot, 1);
    assert_int_equal(s.groups[0].layers, 2);
    assert_int_equal(s.ropes[0].half, 32);
    assert_true(s.layer[0].attn.gate && s.layer[0].attn.qk_norm && s.norm_offset == 1);
    assert_string_equal(read_spec("{\"model_type\":\"qwen3_next\",\"num_hidden_layers\":2,\"layer_types\":"
                                  "[\"full_attention\",\"linear_attention\"],\"linear_num_value_heads\":48}",
                                  &s),
                        "");
    assert_true(s.layer[0].kind == MT_LAYER_ATTENTION && s.layer[1].kind == MT_LAYER_RECURRENT);
    assert_int_equal(s.state.value_heads / s.state.key_heads, 3);
    assert_int_equal(s.layer[0].moe.shared_ffn, 512);
    assert_true(s.layer[0].moe.routing.renormalise);
}

static void mamba_stands_between_attention_alone_or_beside_it(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"granitemoehybrid\",\"hidden_size\":64,\"num_hidden_layers\":3,"
                                  "\"layer_types\":[\"mamba\",\"attention\",\"mamba\"],\"num_attention_heads\":4,"
                                  "\"mamba_n_heads\":8,\"mamba_d_head\":\"auto\",\"num_local_experts\":0,"
                                  "\"time_step_limit\":[0.001,Infinity],\"shared_intermediate_size\":96}",
                                  &s),
                        "");
    assert_int_equal(s.state.layers, 2);
    assert_true(s.state.plain && s.mamba.norm && s.mamba.groups == 1 && s.mamba.conv_bias);
    assert_int_equal(s.state.value_dim, 16);
    assert_true(s.mamba.low == 0.001f && isinf(s.mamba.high));
    assert_int_equal(s.layer[1].attn.rope, MT_NO_ROPE);
    assert_true(!s.layer[0].sparse && s.layer[0].mlp.ffn == 96);
    assert_string_equal(
        read_spec("{\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"ME*-M\","
                  "\"num_hidden_layers\":5,\"moe_latent_size\":64,\"n_routed_experts\":16,\"n_group\":4}",
                  &s),
        "");
    assert_int_equal(s.layers, 5);
    assert_int_equal(s.state.layers, 2);
    assert_true(s.layer[0].no_mlp && s.layer[2].no_mlp && s.layer[2].kind == MT_LAYER_ATTENTION);
    assert_true(s.layer[1].sparse && s.layer[1].kind == MT_LAYER_ALONE && s.layer[1].moe.latent == 64);
    assert_true(!s.layer[3].sparse && s.layer[3].mlp.single && s.layer[3].mlp.glu.act == MT_ACT_RELU);
    assert_int_equal(s.layer[1].moe.routing.groups, 4);
    assert_string_equal(read_spec("{\"model_type\":\"nemotron_h\",\"hybrid_override_pattern\":\"M*X\","
                                  "\"num_hidden_layers\":3}",
                                  &s),
                        "layer 2 is of no kind that is known: mamba, attention, moe and mlp, or M, *, E and -");
    assert_string_equal(read_spec("{\"model_type\":\"falcon_h1\",\"num_hidden_layers\":2,\"mamba_d_ssm\":1536,"
                                  "\"mamba_n_heads\":24,\"ssm_multipliers\":[1,2,3,4,5],\"ssm_in_multiplier\":0.5}",
                                  &s),
                        "");
    assert_true(s.layer[1].paired && s.layer[1].state_slot == 1 && s.layer[1].slot == 1);
    assert_int_equal(s.state.value_dim, 64);
    assert_true(s.mamba.factor[1] == 1 && s.mamba.factor[4] == 2.5f && !s.mamba.norm);
}

static void of_two_rope_keys_the_older_counts(void **state)
{
    mt_model_spec s;
    (void)state;
    read_spec("{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"linear\",\"factor\":4},"
              "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":8}," SHAPE "}",
              &s);
    assert_true(s.ropes[0].inv_freq[0] == 0.25f);
    read_spec("{\"model_type\":\"llama\",\"rope_scaling\":{},"
              "\"rope_parameters\":{\"rope_type\":\"linear\",\"factor\":8}," SHAPE "}",
              &s);
    assert_true(s.ropes[0].inv_freq[0] == 0.125f);
    read_spec("{\"model_type\":\"llama\",\"rope_parameters\":{\"rope_type\":\"linear\"}," SHAPE "}", &s);
    assert_true(s.ropes[0].inv_freq[0] == 1);
    read_spec("{\"model_type\":\"gemma3_text\",\"rope_scaling\":{\"rope_type\":\"linear\",\"factor\":4},"
              "\"rope_parameters\":{\"full_attention\":{\"rope_type\":\"default\",\"rope_theta\":100}}," SHAPE "}",
              &s);
    assert_true(s.ropes[0].inv_freq[0] == 0.25f && s.ropes[0].theta == 100);
}

/* It turns slower only beyond the model's own context. */
static void dynamic_scaling_is_none_within_the_context(void **state)
{
    mt_model_spec plain, s;
    (void)state;
    read_spec("{\"model_type\":\"llama\"," SHAPE "}", &plain);
    read_spec("{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"dynamic\",\"factor\":2}," SHAPE "}", &s);
    assert_memory_equal(s.ropes[0].inv_freq, plain.ropes[0].inv_freq, 8 * sizeof(float));
}

/* Transformers lets the number beside the parameters win. */
static void the_original_context_may_stand_beside_the_scaling(void **state)
{
    mt_model_spec inside, beside;
    (void)state;
    read_spec("{\"model_type\":\"llama\",\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4,"
              "\"original_max_position_embeddings\":128}," SHAPE "}",
              &inside);
    read_spec("{\"model_type\":\"llama\",\"original_max_position_embeddings\":128,\"rope_scaling\":{\"rope_type\":"
              "\"yarn\",\"factor\":4,\"original_max_position_embeddings\":1024}," SHAPE "}",
              &beside);
    assert_memory_equal(inside.ropes[0].inv_freq, beside.ropes[0].inv_freq, 8 * sizeof(float));
}

/* Transformers takes null for the ratio of the two contexts. */
static void yarn_without_a_factor_stretches_to_the_whole_context(void **state)
{
    mt_model_spec given, derived;
    (void)state;
    read_spec("{\"model_type\":\"llama\",\"max_position_embeddings\":1024,\"rope_scaling\":{\"rope_type\":\"yarn\","
              "\"factor\":8,\"original_max_position_embeddings\":128}," SHAPE "}",
              &given);
    read_spec("{\"model_type\":\"llama\",\"max_position_embeddings\":1024,\"rope_scaling\":{\"rope_type\":\"yarn\","
              "\"factor\":null,\"original_max_position_embeddings\":128}," SHAPE "}",
              &derived);
    assert_memory_equal(given.ropes[0].inv_freq, derived.ropes[0].inv_freq, 8 * sizeof(float));
    assert_true(given.ropes[0].scale == derived.ropes[0].scale && given.ropes[0].scale > 1);
}

/* Transformers goes by the number in the parameters, but where frequencies are scaled by the one beside them. */
static void the_part_of_a_head_that_turns_may_stand_twice(void **state)
{
    mt_model_spec s;
    (void)state;
    read_spec("{\"model_type\":\"qwen3_next\",\"head_dim\":32,\"partial_rotary_factor\":0.25,\"rope_parameters\":{"
              "\"rope_type\":\"default\",\"partial_rotary_factor\":0.5}," SHAPE "}",
              &s);
    assert_int_equal(s.ropes[0].half, 8);
    read_spec("{\"model_type\":\"qwen3_next\",\"head_dim\":32,\"partial_rotary_factor\":0.25,\"rope_parameters\":{"
              "\"rope_type\":\"yarn\",\"factor\":4,\"partial_rotary_factor\":0.5}," SHAPE "}",
              &s);
    assert_int_equal(s.ropes[0].half, 4);
    read_spec("{\"model_type\":\"qwen3_next\",\"head_dim\":32,\"rope_parameters\":{"
              "\"rope_type\":\"yarn\",\"factor\":4,\"partial_rotary_factor\":0.5}," SHAPE "}",
              &s);
    assert_int_equal(s.ropes[0].half, 8);
}

static void gemma2_caps_unless_a_cap_is_null(void **state)
{
    mt_model_spec s;
    (void)state;
    read_spec("{\"model_type\":\"gemma2\"," SHAPE "}", &s);
    assert_true(s.layer[0].attn.softcap == 50 && s.final_softcap == 30);
    read_spec("{\"model_type\":\"gemma2\",\"attn_logit_softcapping\":null,\"final_logit_softcapping\":null," SHAPE "}",
              &s);
    assert_true(s.layer[0].attn.softcap == 0 && s.final_softcap == 0);
}

/* Keys that look as if they mattered: transformers writes the one and never reads it, and knows the other only by
   kinds of layers. */
static void gemma3_goes_by_the_keys_that_count(void **state)
{
    mt_model_spec s;
    (void)state;
    read_spec(
        "{\"model_type\":\"gemma3_text\",\"_sliding_window_pattern\":2,\"rope_parameters\":{\"rope_theta\":100}," SHAPE
        "}",
        &s);
    assert_int_equal(s.layer[1].attn.window, 4096);
    assert_true(s.ropes[0].theta == 1e6);
}

static void experts_that_see_fill_in_what_is_missing(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"qwen3_vl_moe\",\"text_config\":{" SHAPE "}}", &s), "");
    assert_int_equal(s.layer[0].attn.head_dim, 16); /* not the 128 of the dense class */
    assert_int_equal(s.layer[0].moe.experts, 60);
    assert_int_equal(s.layer[0].moe.top_k, 4);
    assert_int_equal(s.layer[0].moe.ffn, 1408);
}

#define YARN "{\"rope_type\":\"yarn\",\"factor\":32,\"original_max_position_embeddings\":4096,\"truncate\":false}"

static void gpt_oss_has_windows_sinks_and_biases(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"gpt_oss\",\"rope_theta\":150000,\"rope_scaling\":" YARN
                  ",\"num_hidden_layers\":4,\"num_local_experts\":32,\"swiglu_limit\":7.0,\"hidden_act\":\"silu\"}",
                  &s),
        "");
    const mt_layer_spec *l = s.layer;
    assert_true(l->attn.sinks && l->attn.qkv_bias && l->attn.o_bias && l->sparse && !s.tied);
    assert_true(l->moe.bias && l->moe.interleaved && l->moe.router_bias && l->moe.routing.kind == MT_ROUTE_CHOSEN);
    assert_true(l->mlp.glu.act == MT_ACT_QUICK_GELU && l->mlp.glu.limit == 7 && l->mlp.glu.offset == 1);
    assert_int_equal(l->moe.experts, 32);
    assert_int_equal(l->moe.top_k, 4);
    assert_int_equal(l->moe.ffn, 2880);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(l[i].attn.window, i % 2 ? 0 : 128);
    assert_true(fabsf(s.ropes[0].scale - 1.3465736f) < 1e-6f); /* 0.1 ln 32 + 1 */
    assert_int_equal(s.ropes[0].half, 32);
}

/* As in transformers, whose class has the published numbers where a config has none. */
static void gpt_oss_without_scaling_has_the_published_one(void **state)
{
    static const char *const configs[] = {
        "{\"model_type\":\"gpt_oss\"}",
        "{\"model_type\":\"gpt_oss\",\"rope_theta\":150000.0,\"rope_scaling\":null,\"rope_parameters\":null}"};
    mt_model_spec s, said;
    (void)state;
    for (size_t i = 0; i < MT_COUNT(configs); i++) {
        assert_string_equal(read_spec("{\"model_type\":\"gpt_oss\",\"rope_scaling\":" YARN "}", &said), "");
        float inv_freq[32];
        memcpy(inv_freq, said.ropes[0].inv_freq, sizeof(inv_freq));
        const float scale = said.ropes[0].scale;
        assert_string_equal(read_spec(configs[i], &s), "");
        assert_memory_equal(s.ropes[0].inv_freq, inv_freq, sizeof(inv_freq));
        assert_true(s.ropes[0].scale == scale && s.ropes[0].theta == 150000);
        assert_string_equal(s.ropes[0].type, "yarn");
    }
}

/* Experts behind the first layers, whatever mixes the tokens there. */
static void lfm2_has_experts(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"lfm2_moe\",\"num_hidden_layers\":4,\"layer_types\":[\"conv\",\"conv\","
                  "\"full_attention\",\"conv\"],\"routed_scaling_factor\":1.5}",
                  &s),
        "");
    for (size_t i = 0; i < 4; i++)
        assert_true(s.layer[i].sparse == (i >= 2));
    const mt_moe_spec *moe = &s.layer[3].moe;
    assert_true(moe->experts == 32 && moe->top_k == 4 && moe->ffn == 1792 && moe->correction);
    assert_true(moe->routing.kind == MT_ROUTE_SIGMOID && moe->routing.renormalise && moe->routing.scaling == 1.5f);
    assert_int_equal(s.layer[0].mlp.ffn, 7168);
}

static void gemma4_layers_take_turns(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"gemma4\",\"image_token_id\":90,\"text_config\":{\"num_key_value_heads\""
                  ":2,\"attention_k_eq_v\":true,\"num_global_key_value_heads\":1,\"global_head_dim\":64,"
                  "\"hidden_size_per_layer_input\":0,\"sliding_window\":33,\"layer_types\":["
                  "\"sliding_attention\",\"full_attention\",\"sliding_attention\",\"sliding_attention\"],"
                  "\"final_logit_softcapping\":30,\"pad_token_id\":5,\"head_dim\":32," SHAPE "}}",
                  &s),
        "");
    for (size_t i = 0; i < 4; i++) {
        const mt_attn_spec *a = &s.layer[i].attn;
        const bool full = i % 2; /* the last one, too, whatever the list says */
        assert_int_equal(a->window, full ? 0 : 33);
        assert_int_equal(a->head_dim, full ? 64 : 32);
        assert_int_equal(a->kv_heads, full ? 1 : 2);
        assert_int_equal(a->keys, full ? MT_KEYS_VALUES : MT_KEYS_OWN);
        assert_true(a->causal == full && a->qk_norm && a->v_norm == MT_V_NORM_PLAIN && a->scale == 1);
        assert_true(s.layer[i].post_norms && s.layer[i].scaled && !s.layer[i].sparse);
    }
    assert_true(s.norm_offset == 0 && s.embed_scale == 8 && s.final_softcap == 30 && s.tied && s.aside == 0);
    assert_int_equal(s.ropes[0].half, 32);
    assert_true(s.ropes[0].inv_freq[7] > 0 && s.ropes[0].inv_freq[8] == 0); /* a quarter turns, as a whole head would */
    assert_true(fabsf(s.ropes[0].inv_freq[4] / 0.177827941f - 1) < 1e-6f);  /* 1e6 ^ (-8 / 64) */
    assert_int_equal(s.ropes[1].half, 16);
    assert_true(s.ropes[1].inv_freq[15] > 0);
    assert_int_equal(s.blank.count, 1); /* the others are no tokens of this model */
    assert_true(s.blank.token[0] == 90 && s.blank.as == 5);
}

static void gemma4_layers_share_keys_and_have_embeddings(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"gemma4_text\",\"num_key_value_heads\":1,\"num_kv_shared_layers\":2,"
                  "\"use_double_wide_mlp\":true,\"vocab_size_per_layer_input\":120,\"per_layer_config\":{\"1\":{"
                  "\"head_dim\":48},\"03\":{\"head_dim\":48}},\"layer_types\":[\"sliding_attention\","
                  "\"full_attention\",\"sliding_attention\",\"full_attention\"]," SHAPE "}",
                  &s),
        "");
    assert_int_equal(s.aside, 256);
    assert_int_equal(s.aside_vocab, 120);
    assert_int_equal(s.layer[0].attn.window, 512);
    for (size_t i = 2; i < 4; i++) {
        assert_int_equal(s.layer[i].attn.keys, MT_KEYS_EARLIER);
        assert_int_equal(s.layer[i].attn.source, i - 2);
        assert_int_equal(s.layer[i].mlp.ffn, 192);
        assert_int_equal(s.layer[i].attn.head_dim, i == 2 ? 256 : 48);
    }
    assert_int_equal(s.layer[1].mlp.ffn, 96);
    assert_int_equal(s.groups[0].layers, 1);
    assert_int_equal(s.groups[1].layers, 1);
}

static void gemma4_experts_stand_beside_the_mlp(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"gemma4\",\"text_config\":{\"num_key_value_heads\":1,\"enable_moe_block\":true,"
                  "\"num_experts\":8,\"top_k_experts\":3,\"moe_intermediate_size\":24," SHAPE "}}",
                  &s),
        "");
    const mt_layer_spec *l = s.layer;
    assert_true(l->sparse && l->beside && l->moe.router_norm && l->moe.scale && l->moe.routing.renormalise);
    assert_true(l->moe.routing.kind == MT_ROUTE_SOFTMAX && l->moe.experts == 8 && l->moe.top_k == 3 &&
                l->moe.ffn == 24);
}

#define MINISTRAL_ROPE                                                                                         \
    "{\"rope_type\":\"yarn\",\"rope_theta\":1000000,\"factor\":16,\"original_max_position_embeddings\":16384," \
    "\"mscale\":1.0,\"mscale_all_dim\":1.0,\"llama_4_scaling_beta\":0.1}"

#define HEADS "\"num_key_value_heads\":2,"

static void ministral_stretches_queries(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"mistral3\",\"text_config\":{\"model_type\":\"ministral3\","
                                  "\"max_position_embeddings\":262144,\"rope_parameters\":" MINISTRAL_ROPE
                                  "," HEADS SHAPE "}}",
                                  &s),
                        "");
    assert_true(s.layer[3].attn.stretched && s.ropes[0].scale == 1);
    assert_int_equal(s.stretch.every, 16384);
    assert_int_equal(s.stretch.count, 16);
    assert_true(s.stretch.factor[0] == 1 && fabsf(s.stretch.factor[15] - 1.2772589f) < 1e-6f); /* 1 + 0.1 ln 16 */
    assert_int_equal(s.layer[0].attn.window, 0);
    assert_string_equal(
        read_spec("{\"model_type\":\"ministral3\",\"rope_parameters\":{\"rope_type\":\"default\"}," HEADS SHAPE "}",
                  &s),
        "");
    assert_false(s.layer[0].attn.stretched);
    assert_int_equal(s.layer[0].attn.head_dim, 128);
}

static void mistral_has_a_window_unless_it_is_null(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"mistral\"," HEADS SHAPE "}", &s), "");
    assert_int_equal(s.layer[2].attn.window, 4096);
    assert_string_equal(read_spec("{\"model_type\":\"mistral\",\"sliding_window\":null," HEADS SHAPE "}", &s), "");
    assert_int_equal(s.layer[2].attn.window, 0);
}

/* Published configs name its layers by number and call the MLP's width that of one without a gate. */
static void lfm2_mixes_convolutions_and_attention(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"lfm2\",\"hidden_size\":2048,\"num_hidden_layers\":16,"
                                  "\"full_attn_idxs\":[2,5,8,10,12,14],\"block_ff_dim\":12288,\"norm_eps\":0.001,"
                                  "\"block_multiple_of\":256,\"block_ffn_dim_multiplier\":1.0}",
                                  &s),
                        "");
    assert_int_equal(s.state.layers, 10);
    assert_int_equal(s.state.key_dim, 0);
    assert_int_equal(s.state.value_dim, 2048);
    assert_int_equal(s.state.taps, 3);
    assert_int_equal(s.groups[0].layers, 6);
    assert_int_equal(s.layer[0].kind, MT_LAYER_RECURRENT);
    assert_int_equal(s.layer[5].kind, MT_LAYER_ATTENTION);
    assert_int_equal(s.layer[0].mlp.ffn, 8192);
    assert_true(s.eps == 0.001f && s.tied && s.layer[2].attn.qk_norm && !s.state_bias);
    assert_string_equal(read_spec("{\"model_type\":\"lfm2_vl\",\"text_config\":{\"layer_types\":[\"conv\","
                                  "\"full_attention\",\"conv\",\"conv\"],\"block_auto_adjust_ff_dim\":false,"
                                  "\"intermediate_size\":100,\"conv_bias\":true,\"conv_L_cache\":4,"
                                  "\"num_hidden_layers\":4}}",
                                  &s),
                        "");
    assert_int_equal(s.layer[3].mlp.ffn, 100);
    assert_int_equal(s.state.taps, 4);
    assert_int_equal(s.state.layers, 3);
    assert_true(s.state_bias);
    assert_string_equal(read_spec("{\"model_type\":\"lfm2\",\"num_hidden_layers\":2}", &s), "");
    assert_int_equal(s.state.layers, 0); /* where nothing is said, all have attention */
}

#define GLM_ROPE "\"rope_parameters\":{\"mrope_section\":[2,1,1],\"partial_rotary_factor\":0.5}"

static void glm_turns_neighbours_or_halves(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"glm4v\",\"text_config\":{\"num_key_value_heads\":2," GLM_ROPE "," SHAPE "}}", &s),
        "");
    assert_true(s.ropes[0].pairs && s.ropes[0].half == 4 && s.ropes[0].axis[2] == 1);
    assert_true(s.layer[3].post_norms && s.layer[3].attn.qkv_bias && !s.layer[3].attn.o_bias);
    assert_string_equal(read_spec("{\"model_type\":\"glm_ocr\",\"text_config\":{\"num_key_value_heads\":2," GLM_ROPE
                                  "," SHAPE "}}",
                                  &s),
                        "");
    assert_true(s.layer[0].post_norms && !s.layer[0].attn.qkv_bias);
    assert_string_equal(
        read_spec("{\"model_type\":\"glm46v\",\"text_config\":{\"model_type\":\"glm4v_moe_text\",\"n_group\":4,"
                  "\"topk_group\":2,\"n_routed_experts\":16,\"n_shared_experts\":2,\"moe_intermediate_size\":32,"
                  "\"num_key_value_heads\":2,\"routed_scaling_factor\":1.5," GLM_ROPE "," SHAPE "}}",
                  &s),
        "");
    const mt_layer_spec *l = &s.layer[1];
    assert_true(!s.layer[0].sparse && l->sparse && !l->post_norms && !s.ropes[0].pairs);
    assert_true(l->moe.routing.kind == MT_ROUTE_SIGMOID && l->moe.correction && !l->moe.shared_gated);
    assert_true(l->moe.routing.groups == 4 && l->moe.routing.top_groups == 2 && l->moe.routing.scaling == 1.5f);
    assert_int_equal(l->moe.shared_ffn, 64);
}

static void the_activation_of_gemma3s_tower_is_read(void **state)
{
    mt_model_spec s;
    (void)state;
    read_spec("{\"model_type\":\"gemma3\",\"mm_tokens_per_image\":49,\"text_config\":{\"num_key_value_heads\":2," SHAPE
              "},\"vision_config\":{}}",
              &s);
    assert_true(s.vision->activation == MT_ACT_GELU_TANH);
    read_spec("{\"model_type\":\"gemma3\",\"mm_tokens_per_image\":49,\"text_config\":{\"num_key_value_heads\":2," SHAPE
              "},\"vision_config\":{\"hidden_act\":\"gelu\"}}",
              &s);
    assert_true(s.vision->activation == MT_ACT_GELU);
}

/* Its published configs have the text model's settings at the top. */
static void paddleocr_is_flat_or_nested(void **state)
{
    static const char *const configs[] = {
        "{\"model_type\":\"paddleocr_vl\",\"num_hidden_layers\":2,\"use_bias\":true,\"vision_config\":{\"image_size\":"
        "384,\"patch_size\":14,\"spatial_merge_size\":3}}",
        "{\"model_type\":\"paddleocr_vl\",\"text_config\":{\"num_hidden_layers\":2,\"use_bias\":true},"
        "\"vision_config\":{\"spatial_merge_size\":3}}"};
    (void)state;
    for (size_t i = 0; i < MT_COUNT(configs); i++) {
        mt_model_spec s;
        assert_string_equal(read_spec(configs[i], &s), "");
        assert_true(s.layers == 2 && s.tied && s.ropes[0].theta == 5e5 && s.ropes[0].axis[16] == 1);
        assert_true(s.layer[1].attn.o_bias && s.layer[1].mlp.bias);
        assert_true(s.vision->table == 27 && s.vision->merge == 3 && s.vision->theta == 10000);
    }
}

/* What a config leaves out is what its text model's class has. */
static void internvl_has_one_of_several_text_models(void **state)
{
    static const char *const types[] = {"qwen2", "qwen3", "qwen3_moe", "llama"};
    static const uint32_t hidden[] = {4096, 4096, 2048, 4096};
    mt_model_spec s;
    char config[256];
    (void)state;
    for (size_t i = 0; i < MT_COUNT(types); i++) {
        snprintf(config, sizeof(config),
                 "{\"model_type\":\"internvl\",\"text_config\":{\"model_type\":\"%s\"},\"vision_config\":{}}",
                 types[i]);
        assert_string_equal(read_spec(config, &s), "");
        assert_true(s.hidden == hidden[i] && s.layer[0].sparse == (i == 2) && s.layer[0].attn.qkv_bias == (i == 0));
        assert_true(s.vision->summary && s.vision->scaled && s.vision->qkv_plain && s.vision->merge_bare);
        assert_true(s.vision->table == 32 && s.vision->merge == 2 && s.vision->row_eps == 0 && !s.vision->rms);
    }
    assert_string_equal(read_spec("{\"model_type\":\"internvl\",\"text_config\":{},\"downsample_ratio\":0.25,"
                                  "\"vision_config\":{\"image_size\":[28,28],\"patch_size\":[7,7],\"norm_type\":"
                                  "\"rms_norm\",\"use_qk_norm\":true,\"attention_bias\":true,"
                                  "\"layer_norm_eps\":0.25,\"use_mean_pooling\":false}}",
                                  &s),
                        "");
    assert_true(s.layer[0].attn.qkv_bias && s.vision->table == 4 && s.vision->merge == 4);
    /* the config's eps is that of the layers' norms alone */
    assert_true(s.vision->eps == 0.25f && s.vision->row_eps == 1e-6f && s.vision->merge_eps == 1e-5f);
    assert_true(s.vision->rms && !s.vision->qkv_plain && !s.vision->merge_bare);
}

static void minicpm_squeezes_patches_or_not(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"minicpmv4_6\",\"insert_layer_id\":3,\"text_config\":{\"model_type\":"
                  "\"qwen3_5_text\"},\"vision_config\":{\"image_size\":980,\"patch_size\":14,"
                  "\"insert_layer_id\":6}}",
                  &s),
        "");
    assert_true(s.state.layers == 24 && s.vision->squeezed && s.vision->squeeze == 3 && s.vision->merge == 4);
    assert_true(s.vision->table == 70 && s.vision->middle == 4 * 768);
    assert_string_equal(read_spec("{\"model_type\":\"minicpmv4_6\",\"downsample_mode\":\"4x\",\"text_config\":{},"
                                  "\"vision_config\":{\"num_hidden_layers\":2}}",
                                  &s),
                        "");
    assert_true(!s.vision->squeezed && s.vision->merge == 2);
}

static void latents_have_widths_and_yarn(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(
        read_spec("{\"model_type\":\"deepseek_v3\",\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":1,"
                  "\"mscale_all_dim\":1,\"original_max_position_embeddings\":4096}," SHAPE "}",
                  &s),
        "");
    const mt_attn_spec *a = &s.layer[0].attn;
    assert_true(a->latent.width == 512 && a->latent.queries == 1536 && a->latent.plain == 128 &&
                a->latent.turned == 64 && a->latent.value == 128 && a->latent.eps == 1e-6f);
    assert_true(a->kv_heads == 1 && a->head_dim == 576 && s.groups[0].latent == 512);
    assert_true(s.ropes[0].half == 32 && s.ropes[0].pairs && s.ropes[0].scale == 1);
    assert_true(fabsf(a->scale - 0.13523377f) < 1e-7f); /* (0.1 ln 40 + 1)^2 / sqrt(192) */
    assert_true(!s.layer[2].sparse && s.layer[3].sparse);
    const mt_moe_spec *moe = &s.layer[3].moe;
    assert_true(moe->experts == 256 && moe->top_k == 8 && moe->shared_ffn == 2048 && moe->correction);
    assert_true(moe->routing.kind == MT_ROUTE_SIGMOID && moe->routing.groups == 8 && moe->routing.top_groups == 4 &&
                moe->routing.scaling == 2.5f && moe->routing.renormalise);
    assert_string_equal(read_spec("{\"model_type\":\"glm4_moe_lite\",\"q_lora_rank\":null,\"rope_interleave\":false,"
                                  "\"mlp_layer_types\":[\"sparse\",\"dense\",\"dense\",\"sparse\"]," SHAPE "}",
                                  &s),
                        "");
    assert_true(s.layer[0].attn.latent.queries == 0 && s.layer[0].attn.latent.value == 256 && !s.ropes[0].pairs);
    assert_true(s.layer[0].sparse && !s.layer[1].sparse && !s.layer[2].sparse && s.layer[3].sparse);
    assert_int_equal(s.layer[0].moe.routing.groups, 0);
    assert_string_equal(
        read_spec("{\"model_type\":\"kimi_k25\",\"text_config\":{\"model_type\":\"kimi_k2\",\"n_group\":1,"
                  "\"topk_group\":1," SHAPE "}}",
                  &s),
        "");
    assert_string_equal(s.family, "kimi_k25");
    assert_int_equal(s.layer[0].attn.latent.width, 512);
}

static void layers_choose_what_they_attend_to(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_equal(read_spec("{\"model_type\":\"deepseek_v32\"," SHAPE "}", &s), "");
    assert_true(s.layer[0].attn.latent.width == 512 && s.ropes[0].pairs && s.eps == 1e-6f);
    for (size_t i = 0; i < s.layers; i++) {
        const mt_index_spec *index = &s.layer[i].attn.index;
        assert_true(index->top == 2048 && index->heads == 64 && index->head_dim == 128 && !index->pairs);
        assert_true(index->group == 1 && index->slot == i);
    }
    assert_true(s.group_count == 2 && s.groups[1].top == 2048 && s.groups[1].head_dim == 128);
    assert_string_equal(read_spec("{\"model_type\":\"glm_moe_dsa\",\"index_topk_freq\":2," SHAPE "}", &s), "");
    assert_true(s.layer[0].attn.latent.queries == 2048 && s.layer[0].attn.latent.plain == 192 && s.eps == 1e-5f);
    static const uint32_t heads[] = {32, 32, 0, 32}; /* the first of an offset of 2 and every second behind it */
    for (size_t i = 0; i < MT_COUNT(heads); i++)
        assert_true(s.layer[i].attn.index.heads == heads[i] && s.layer[i].attn.index.pairs);
    assert_int_equal(s.groups[1].layers, s.layers - s.layers / 2 + 1);
    assert_string_equal(read_spec("{\"model_type\":\"glm_moe_dsa\",\"index_topk_pattern\":\"FSSF\","
                                  "\"indexer_rope_interleave\":false," SHAPE "}",
                                  &s),
                        "");
    assert_true(s.layer[0].attn.index.heads && !s.layer[1].attn.index.heads && !s.layer[2].attn.index.heads &&
                s.layer[3].attn.index.heads && !s.layer[3].attn.index.pairs);
    assert_string_equal(
        read_spec("{\"model_type\":\"glm_moe_dsa\",\"indexer_types\":[\"full\",\"shared\"]," SHAPE "}", &s), "");
    assert_true(!s.layer[1].attn.index.heads && s.layer[2].attn.index.heads);
    assert_string_equal(read_spec("{\"model_type\":\"glm_moe_dsa\",\"indexer_types\":[\"shared\"]," SHAPE "}", &s),
                        "layer 0 attends to what an earlier layer chose, and none chooses");
    assert_string_equal(read_spec("{\"model_type\":\"deepseek_v32\",\"index_head_dim\":32," SHAPE "}", &s),
                        "\"index_head_dim\" is 32, \"qk_rope_head_dim\" 64 and \"q_lora_rank\" 1536; the first may not "
                        "be less than the second, and the third not be missing");
    char config[512], wanted[128];
    snprintf(config, sizeof(config), "{\"model_type\":\"deepseek_v32\",\"index_topk\":%d," SHAPE "}",
             MT_LIMIT_CHOSEN + 1);
    snprintf(wanted, sizeof(wanted), "the config's \"index_topk\" is %d; it must be an integer from 1 to %d",
             MT_LIMIT_CHOSEN + 1, MT_LIMIT_CHOSEN);
    assert_string_equal(read_spec(config, &s), wanted);
}

static void wrong_configs_say_what_is_wrong(void **state)
{
    static const struct {
        const char *config, *sentence;
    } cases[] = {
        {"{}", "\"model_type\" is missing in config.json: name the family with --family"},
        {"{\"model_type\":\"t5\"}",
         "model type \"t5\" is an encoder with a decoder, which motet does not run: take gemma3 or "
         "qwen3 instead"},
        {"{\"model_type\":\"qwen33\"}",
         "model type \"qwen33\" is none that motet runs: if it is like qwen3, --family qwen3 reads it so"},
        {"{\"model_type\":\"entirely_new\"}",
         "model type \"entirely_new\" is none that motet runs: motet list --known has some models that it does, "
         "docs/models.md all families"},
        {"{\"model_type\":\"llama\",\"num_key_value_heads\":3," SHAPE "}",
         "\"num_attention_heads\" is 4, which is no multiple of \"num_key_value_heads\" 3"},
        {"{\"model_type\":\"llama\",\"head_dim\":15," SHAPE "}",
         "\"head_dim\" is 15; rotary embeddings need an even number"},
        {"{\"model_type\":\"llama\",\"hidden_act\":\"relu\"," SHAPE "}",
         "\"hidden_act\" is \"relu\"; known are silu and gelu_pytorch_tanh"},
        {"{\"model_type\":\"llama\",\"rope_scaling\":{\"type\":\"ntk\",\"factor\":2}," SHAPE "}",
         "rope type \"ntk\" is not known; known are default, dynamic, linear, llama3, yarn, longrope, proportional and "
         "mrope"},
        {"{\"model_type\":\"llama\",\"rope_parameters\":{\"rope_theta\":0.5}," SHAPE "}",
         "the config's \"rope_parameters.rope_theta\" is 0.5; it must be a number from 1 to 1000000000000"},
        {"{\"model_type\":\"qwen3_moe\",\"num_experts\":2,\"num_experts_per_tok\":4," SHAPE "}",
         "\"num_experts_per_tok\" is 4 but there are only 2 experts"},
        {"{\"model_type\":\"qwen3_next\",\"linear_num_value_heads\":24}",
         "\"linear_num_value_heads\" is 24, which is no multiple of \"linear_num_key_heads\" 16"},
        {"{\"model_type\":\"qwen3_next\",\"partial_rotary_factor\":0.001}",
         "\"partial_rotary_factor\" is 0.001, which makes 0 of 256 dimensions"},
        {"{\"model_type\":\"qwen3_next\",\"layer_types\":[\"linear_attention\"]}",
         "\"layer_types\" has 1 entries for 48 layers"},
        {"{\"model_type\":\"gemma3_text\",\"use_bidirectional_attention\":true," SHAPE "}",
         "model type \"gemma3_text\" is an encoder and writes no text; serve it, alone or beside a model as "
         "--embedding-model"},
        {"{\"model_type\":\"gpt_oss\",\"rope_scaling\":" YARN ",\"swiglu_limit\":5}",
         "\"swiglu_limit\" is 5; gpt-oss cuts off at 7, and a model that does not is another one"},
        {"{\"model_type\":\"gemma4_text\",\"use_bidirectional_attention\":\"all\"," SHAPE "}",
         "\"use_bidirectional_attention\" is \"all\": such a model sees what comes later and writes no text, which is "
         "not supported"},
        {"{\"model_type\":\"gemma4_text\",\"num_key_value_heads\":1,\"vocab_size_per_layer_input\":64," SHAPE "}",
         "\"vocab_size_per_layer_input\" is 64 for 100 tokens; those beyond have no embedding"},
        {"{\"model_type\":\"gemma4_text\",\"num_key_value_heads\":1,\"num_kv_shared_layers\":3," SHAPE "}",
         "\"num_kv_shared_layers\" is 3, but no layer before sees as much as layer 3"},
        {"{\"model_type\":\"mistral3\",\"text_config\":{\"model_type\":\"mistral5\",\"max_position_embeddings\":"
         "100," SHAPE "}}",
         "the text model of mistral3 has the type \"mistral5\"; known are mistral, ministral3 and mistral4"},
        {"{\"model_type\":\"deepseek_v3\",\"scoring_func\":\"softmax\"," SHAPE "}",
         "\"scoring_func\" is \"softmax\"; sigmoid is known"},
        {"{\"model_type\":\"deepseek_v3\",\"topk_method\":\"greedy\"," SHAPE "}",
         "\"topk_method\" is \"greedy\"; noaux_tc is known"},
        {"{\"model_type\":\"glm4_moe_lite\",\"kv_lora_rank\":1000," SHAPE "}",
         "\"kv_lora_rank\" is 1000 and \"qk_rope_head_dim\" is 64; the second must be even, and both together at most "
         "1024"},
        {"{\"model_type\":\"kimi_k25\",\"text_config\":{\"model_type\":\"kimi_linear\"," SHAPE "}}",
         "the text model of kimi_k25 has the type \"kimi_linear\"; known are deepseek_v3 and kimi_k2"},
        {"{\"model_type\":\"mistral3\",\"text_config\":{\"num_key_value_heads\":2," SHAPE
         "},\"vision_config\":{\"model_type\":\"siglip\"}}",
         "the tower of mistral3 has the type \"siglip\"; pixtral is known"},
        {"{\"model_type\":\"internvl\",\"vision_config\":{\"model_type\":\"siglip_vision_model\"}}",
         "the tower of internvl has the type \"siglip_vision_model\"; internvl_vision is known"},
        {"{\"model_type\":\"lfm2_vl\",\"vision_config\":{\"model_type\":\"siglip_vision_model\"}}",
         "the tower of lfm2_vl has the type \"siglip_vision_model\"; siglip2_vision_model is known"},
        {"{\"model_type\":\"lfm2_vl\",\"text_config\":{\"model_type\":\"qwen3\"}}",
         "the text model of lfm2_vl has the type \"qwen3\"; known are lfm2 and lfm2_moe"},
        {"{\"model_type\":\"glm46v\",\"text_config\":{\"partial_rotary_factor\":0.5},"
         "\"vision_config\":{\"model_type\":\"glm_ocr_vision\"}}",
         "the tower of glm46v has the type \"glm_ocr_vision\"; glm4v_vision is known, and glm4v_moe_vision"},
        {"{\"model_type\":\"mistral3\",\"vision_feature_layer\":-2,\"text_config\":{\"num_key_value_heads\":"
         "2," SHAPE "},\"vision_config\":{}}",
         "\"vision_feature_layer\" is -2; only -1, the last one, is supported"},
        {"{\"model_type\":\"internvl_chat\"}",
         "model type \"internvl_chat\" is the layout of InternVL's own code, which motet does not run: take the "
         "checkpoint whose name ends in -HF instead"},
        {"{\"model_type\":\"internvl\",\"text_config\":{\"model_type\":\"internlm2\"}}",
         "the text model of internvl has the type \"internlm2\"; known are qwen2, qwen3, qwen3_moe, gpt_oss and llama"},
        {"{\"model_type\":\"internvl\",\"vision_feature_layer\":-2,\"vision_config\":{}}",
         "\"vision_feature_layer\" is -2; only -1, the last one, is supported"},
        {"{\"model_type\":\"internvl\",\"vision_feature_select_strategy\":\"full\",\"vision_config\":{}}",
         "\"vision_feature_select_strategy\" is \"full\"; only default, patches alone, is supported"},
        {"{\"model_type\":\"internvl\",\"downsample_ratio\":0.4,\"vision_config\":{}}",
         "\"downsample_ratio\" is 0.4; it must be 1 divided by a whole number"},
        {"{\"model_type\":\"internvl\",\"vision_config\":{\"image_size\":[448,224]}}",
         "\"image_size\" is 448 x 224; only squares of up to 16384 are supported"},
        {"{\"model_type\":\"internvl\",\"vision_config\":{\"norm_type\":\"batch_norm\"}}",
         "\"norm_type\" is \"batch_norm\"; known are layer_norm and rms_norm"},
        {"{\"model_type\":\"minicpmv\"}",
         "model type \"minicpmv\" is MiniCPM-V before 4.6, which motet does not run: take minicpm-v instead"},
        {"{\"model_type\":\"minicpmv4_6\",\"vision_config\":{\"num_hidden_layers\":6}}",
         "\"insert_layer_id\" is 6, and the tower has 6 layers"},
        {"{\"model_type\":\"minicpmv4_6\",\"downsample_mode\":\"8x\",\"vision_config\":{}}",
         "\"downsample_mode\" is \"8x\"; known are 4x and 16x"},
        {"{\"model_type\":\"minicpmv4_6\",\"merger_times\":2,\"vision_config\":{}}",
         "\"merger_times\" is 2; only 1 is supported"},
        {"{\"model_type\":\"minicpmv4_6\",\"vision_config\":{\"window_kernel_size\":[2,4]}}",
         "\"window_kernel_size\" is not 2 x 2, and nothing else is supported"},
        {"{\"model_type\":\"smolvlm\",\"text_config\":{\"model_type\":\"smollm4\"}}",
         "the text model of smolvlm has the type \"smollm4\"; llama is known"},
        {"{\"model_type\":\"glm46v\",\"text_config\":{\"model_type\":\"glm5_text\"}}",
         "the text model of glm46v has the type \"glm5_text\"; known are glm4v_text and glm4v_moe_text"},
        {"{\"model_type\":\"glm4v\",\"text_config\":{\"rope_parameters\":{\"partial_rotary_factor\":0.5}},"
         "\"vision_config\":{\"out_hidden_size\":64}}",
         "the tower gives 64 elements, the text model takes 4096"},
        {"{\"model_type\":\"glm4v_moe\",\"text_config\":{\"head_dim\":128,\"n_group\":3}}",
         "8 of 128 experts in 3 groups cannot be chosen"},
        {"{\"model_type\":\"lfm2\",\"num_hidden_layers\":2,\"layer_types\":[\"conv\",\"mamba\"]}",
         "layer 1 has the type \"mamba\"; known are full_attention and conv"},
        {"{\"model_type\":\"lfm2_vl\",\"text_config\":{\"num_hidden_layers\":1},\"vision_config\":{\"num_patches\":"
         "20}}",
         "\"vision_config.num_patches\" is 20, which is no square"},
        {"{\"model_type\":\"qwen3_5_text\",\"num_hidden_layers\":3}",
         "all layers are recurrent; at least one must have attention"},
    };
    mt_model_spec s;
    (void)state;
    for (size_t i = 0; i < MT_COUNT(cases); i++)
        assert_string_equal(read_spec(cases[i].config, &s), cases[i].sentence);
}

static void sizes_are_bounded(void **state)
{
    mt_model_spec s;
    (void)state;
    assert_string_not_equal(read_spec("{\"model_type\":\"llama\",\"vocab_size\":-1}", &s), "");
    assert_string_not_equal(read_spec("{\"model_type\":\"llama\",\"head_dim\":1000000," SHAPE "}", &s), "");
    assert_string_not_equal(read_spec("{\"model_type\":\"llama\",\"vocab_size\":\"many\"}", &s), "");
}

static int open_arena(void **state)
{
    (void)state;
    arena = mt_arena_new(0);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    mt_arena_free(arena);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_arena, close_arena)

static const struct CMUnitTest tests[] = {
    TEST(llama_fills_in_what_is_missing),
    TEST(llama3_scaling_keeps_short_wavelengths),
    TEST(factors_divide_each_frequency),
    TEST(yarn_ramps_from_whole_to_stretched),
    TEST(yarn_scales_cosines_too),
    TEST(qwen_ignores_a_window_that_is_switched_off),
    TEST(qwen_has_a_usual_window_where_none_is_given),
    TEST(qwen3_moe_mixes_dense_and_sparse_layers),
    TEST(gemma_alternates_windows_and_ropes),
    TEST(of_two_rope_keys_the_older_counts),
    TEST(the_original_context_may_stand_beside_the_scaling),
    TEST(yarn_without_a_factor_stretches_to_the_whole_context),
    TEST(the_part_of_a_head_that_turns_may_stand_twice),
    TEST(dynamic_scaling_is_none_within_the_context),
    TEST(gemma2_caps_unless_a_cap_is_null),
    TEST(gemma3_goes_by_the_keys_that_count),
    TEST(experts_that_see_fill_in_what_is_missing),
    TEST(gemma_reads_its_text_config),
    TEST(hybrids_have_three_recurrent_layers_to_one),
    TEST(mamba_stands_between_attention_alone_or_beside_it),
    TEST(gpt_oss_has_windows_sinks_and_biases),
    TEST(gpt_oss_without_scaling_has_the_published_one),
    TEST(lfm2_has_experts),
    TEST(gemma4_layers_take_turns),
    TEST(gemma4_layers_share_keys_and_have_embeddings),
    TEST(gemma4_experts_stand_beside_the_mlp),
    TEST(ministral_stretches_queries),
    TEST(mistral_has_a_window_unless_it_is_null),
    TEST(lfm2_mixes_convolutions_and_attention),
    TEST(glm_turns_neighbours_or_halves),
    TEST(the_activation_of_gemma3s_tower_is_read),
    TEST(paddleocr_is_flat_or_nested),
    TEST(internvl_has_one_of_several_text_models),
    TEST(minicpm_squeezes_patches_or_not),
    TEST(latents_have_widths_and_yarn),
    TEST(layers_choose_what_they_attend_to),
    TEST(wrong_configs_say_what_is_wrong),
    TEST(sizes_are_bounded),
};

UNIT_MAIN(tests)
