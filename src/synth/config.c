/* Writes config.json of a random checkpoint (synth.h). */
#include "synth/synth.h"

/* A JSON object that is being written. */
typedef struct object {
    mt_buf *out;
    unsigned depth;
    bool begun;
} object;

static object object_begin(mt_buf *out, unsigned depth)
{
    mt_buf_puts(out, "{");
    return (object){.out = out, .depth = depth + 1};
}

static void object_end(object *o)
{
    mt_buf_printf(o->out, "\n%*s}", (int)(2 * (o->depth - 1)), "");
}

static void key(object *o, const char *name)
{
    mt_buf_printf(o->out, "%s\n%*s\"%s\": ", o->begun ? "," : "", (int)(2 * o->depth), "", name);
    o->begun = true;
}

static void put_size(object *o, const char *name, size_t value)
{
    key(o, name);
    mt_buf_printf(o->out, "%zu", value);
}

static void put_real(object *o, const char *name, double value)
{
    key(o, name);
    mt_buf_printf(o->out, "%g", value);
}

static void put_bool(object *o, const char *name, bool value)
{
    key(o, name);
    mt_buf_puts(o->out, value ? "true" : "false");
}

static void put_string(object *o, const char *name, const char *value)
{
    key(o, name);
    mt_buf_printf(o->out, "\"%s\"", value);
}

/* value: JSON. */
static void put_raw(object *o, const char *name, const char *value)
{
    key(o, name);
    mt_buf_puts(o->out, value);
}

static const char *const architectures[] = {
    [MT_SYNTH_LLAMA] = "LlamaForCausalLM",
    [MT_SYNTH_QWEN3] = "Qwen3ForCausalLM",
    [MT_SYNTH_QWEN3_MOE] = "Qwen3MoeForCausalLM",
    [MT_SYNTH_QWEN3_VL] = "Qwen3VLForConditionalGeneration",
    [MT_SYNTH_QWEN3_5] = "Qwen3_5ForConditionalGeneration",
    [MT_SYNTH_GEMMA3] = "Gemma3ForCausalLM",
    [MT_SYNTH_GPT_OSS] = "GptOssForCausalLM",
    [MT_SYNTH_MINISTRAL3] = "Mistral3ForConditionalGeneration",
    [MT_SYNTH_GLM] = "Glm4vForConditionalGeneration",
    [MT_SYNTH_GLM_MOE] = "Glm4vMoeForConditionalGeneration",
    [MT_SYNTH_GLM_OCR] = "GlmOcrForConditionalGeneration",
    [MT_SYNTH_GEMMA4] = "Gemma4ForCausalLM",
    [MT_SYNTH_MISTRAL] = "MistralForCausalLM",
    [MT_SYNTH_PADDLEOCR] = "PaddleOCRVLForConditionalGeneration",
    [MT_SYNTH_LFM2] = "Lfm2ForCausalLM",
    [MT_SYNTH_LFM2_MOE] = "Lfm2MoeForCausalLM",
    [MT_SYNTH_GLM_LITE] = "Glm4MoeLiteForCausalLM",
};

static const char *const model_types[] = {
    [MT_SYNTH_LLAMA] = "llama",
    [MT_SYNTH_QWEN3] = "qwen3",
    [MT_SYNTH_QWEN3_MOE] = "qwen3_moe",
    [MT_SYNTH_QWEN3_VL] = "qwen3_vl",
    [MT_SYNTH_QWEN3_5] = "qwen3_5",
    [MT_SYNTH_GEMMA3] = "gemma3_text",
    [MT_SYNTH_GPT_OSS] = "gpt_oss",
    [MT_SYNTH_MINISTRAL3] = "mistral3",
    [MT_SYNTH_GLM] = "glm4v",
    [MT_SYNTH_GLM_MOE] = "glm4v_moe",
    [MT_SYNTH_GLM_OCR] = "glm_ocr",
    [MT_SYNTH_GEMMA4] = "gemma4_text",
    [MT_SYNTH_MISTRAL] = "mistral",
    [MT_SYNTH_PADDLEOCR] = "paddleocr_vl",
    [MT_SYNTH_LFM2] = "lfm2",
    [MT_SYNTH_LFM2_MOE] = "lfm2_moe",
    [MT_SYNTH_GLM_LITE] = "glm4_moe_lite",
};

static void put_llama(object *o, const mt_synth_model *m)
{
    put_bool(o, "mlp_bias", false);
    if (m->context <= 8192) /* Llama 3's context before its positions were scaled */
        return;
    put_raw(o, "rope_scaling",
            "{\"factor\": 32.0, \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0, "
            "\"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"}");
}

static void put_moe(object *o, const mt_synth_model *m)
{
    put_size(o, "num_experts", m->experts);
    put_size(o, "num_experts_per_tok", m->experts_per_token);
    put_size(o, "moe_intermediate_size", m->moe_inter);
    put_bool(o, "norm_topk_prob", true);
    put_size(o, "decoder_sparse_step", 1);
    put_raw(o, "mlp_only_layers", "[]");
}

static void put_gemma(object *o, const mt_synth_model *m)
{
    put_string(o, "hidden_activation", "gelu_pytorch_tanh");
    put_size(o, "query_pre_attn_scalar", m->head_dim);
    put_size(o, "sliding_window", 512);
    put_size(o, "sliding_window_pattern", 6);
    put_real(o, "rope_local_base_freq", 1e4);
    put_raw(o, "rope_scaling", "null");
    put_raw(o, "attn_logit_softcapping", "null");
    put_raw(o, "final_logit_softcapping", "null");
}

static void put_gemma4(object *o, const mt_synth_model *m)
{
    put_string(o, "hidden_activation", "gelu_pytorch_tanh");
    put_size(o, "global_head_dim", m->wide_dim);
    put_size(o, "sliding_window", m->window);
    put_bool(o, "attention_k_eq_v", m->wide_kv_heads != 0);
    if (m->wide_kv_heads)
        put_size(o, "num_global_key_value_heads", m->wide_kv_heads);
    put_bool(o, "enable_moe_block", m->experts != 0);
    if (m->experts) {
        put_size(o, "num_experts", m->experts);
        put_size(o, "top_k_experts", m->experts_per_token);
        put_size(o, "moe_intermediate_size", m->moe_inter);
    }
    put_size(o, "hidden_size_per_layer_input", m->aside);
    put_size(o, "vocab_size_per_layer_input", m->vocab);
    put_size(o, "num_kv_shared_layers", mt_synth_shared(m));
    put_bool(o, "use_double_wide_mlp", m->wide_mlp);
    put_real(o, "final_logit_softcapping", 30);
    put_raw(o, "rope_parameters",
            "{\"full_attention\": {\"partial_rotary_factor\": 0.25, \"rope_theta\": 1000000.0, \"rope_type\": "
            "\"proportional\"}, \"sliding_attention\": {\"rope_theta\": 10000.0, \"rope_type\": \"default\"}}");
    key(o, "layer_types");
    for (size_t i = 0; i < m->layers; i++)
        mt_buf_printf(o->out, "%s\"%s\"", i ? ", " : "[",
                      mt_synth_is_full(m, i) ? "full_attention" : "sliding_attention");
    mt_buf_puts(o->out, "]");
}

static void put_gpt_oss(object *o, const mt_synth_model *m)
{
    put_size(o, "num_local_experts", m->experts);
    put_size(o, "num_experts_per_tok", m->experts_per_token);
    put_size(o, "sliding_window", 128);
    put_real(o, "swiglu_limit", 7);
    put_raw(o, "rope_scaling",
            "{\"beta_fast\": 32.0, \"beta_slow\": 1.0, \"factor\": 32.0, "
            "\"original_max_position_embeddings\": 4096, \"rope_type\": \"yarn\", \"truncate\": false}");
}

static void put_ministral(object *o)
{
    put_raw(o, "sliding_window", "null");
    put_raw(o, "rope_parameters",
            "{\"beta_fast\": 32.0, \"beta_slow\": 1.0, \"factor\": 16.0, \"llama_4_scaling_beta\": 0.1, "
            "\"mscale\": 1.0, \"mscale_all_dim\": 1.0, \"original_max_position_embeddings\": 16384, "
            "\"rope_theta\": 1000000.0, \"rope_type\": \"yarn\"}");
}

/* Of a head's turned elements, a quarter turns with time and three eighths with each other axis. */
static void put_glm(object *o, const mt_synth_model *m)
{
    const bool all = m->family == MT_SYNTH_GLM_OCR;
    const size_t half = m->head_dim / (all ? 2 : 4);

    put_real(o, "partial_rotary_factor", all ? 1 : 0.5);
    key(o, "rope_scaling");
    mt_buf_printf(o->out, "{\"mrope_section\": [%zu, %zu, %zu], \"rope_type\": \"default\"}", half - half * 3 / 8 * 2,
                  half * 3 / 8, half * 3 / 8);
}

static void put_glm_experts(object *o, const mt_synth_model *m)
{
    put_size(o, "n_routed_experts", m->experts);
    put_size(o, "num_experts_per_tok", m->experts_per_token);
    put_size(o, "moe_intermediate_size", m->moe_inter);
    put_size(o, "n_shared_experts", 1);
    put_size(o, "first_k_dense_replace", 1);
    put_size(o, "n_group", 1);
    put_size(o, "topk_group", 1);
    put_bool(o, "norm_topk_prob", true);
    put_real(o, "routed_scaling_factor", 1);
}

static void put_glm_moe(object *o, const mt_synth_model *m)
{
    put_glm(o, m);
    put_glm_experts(o, m);
}

static void put_glm_lite(object *o, const mt_synth_model *m)
{
    put_size(o, "kv_lora_rank", m->latent.width);
    put_size(o, "q_lora_rank", m->latent.queries);
    put_size(o, "qk_nope_head_dim", m->latent.plain);
    put_size(o, "qk_rope_head_dim", m->latent.turned);
    put_size(o, "v_head_dim", m->latent.value);
    put_bool(o, "rope_interleave", true);
    put_raw(o, "rope_scaling", "null");
    put_glm_experts(o, m);
}

static void put_paddleocr(object *o, const mt_synth_model *m)
{
    const size_t half = m->head_dim / 2;

    put_bool(o, "use_bias", false);
    key(o, "rope_scaling");
    mt_buf_printf(o->out, "{\"mrope_section\": [%zu, %zu, %zu], \"rope_type\": \"default\"}", half - half * 3 / 8 * 2,
                  half * 3 / 8, half * 3 / 8);
}

static void put_lfm2(object *o, const mt_synth_model *m)
{
    put_real(o, "norm_eps", 1e-5);
    put_size(o, "conv_L_cache", MT_SYNTH_SHORT_TAPS);
    put_bool(o, "conv_bias", false);
    put_bool(o, "tie_embedding", m->tied);
    put_size(o, "block_ff_dim", m->inter);
    put_bool(o, "block_auto_adjust_ff_dim", false);
    key(o, "layer_types");
    for (size_t i = 0; i < m->layers; i++)
        mt_buf_printf(o->out, "%s\"%s\"", i ? ", " : "[", mt_synth_is_short(m, i) ? "conv" : "full_attention");
    mt_buf_puts(o->out, "]");
    if (!m->experts)
        return;
    put_size(o, "num_experts", m->experts);
    put_size(o, "num_experts_per_tok", m->experts_per_token);
    put_size(o, "moe_intermediate_size", m->moe_inter);
    put_size(o, "num_dense_layers", m->layers < MT_SYNTH_SHORT_DENSE ? m->layers : MT_SYNTH_SHORT_DENSE);
    put_bool(o, "use_expert_bias", true);
    put_bool(o, "norm_topk_prob", true);
    put_real(o, "routed_scaling_factor", 1);
}

static void put_layer_types(object *o, const mt_synth_model *m)
{
    key(o, "layer_types");
    for (size_t i = 0; i < m->layers; i++)
        mt_buf_printf(o->out, "%s\"%s\"", i ? ", " : "[",
                      mt_synth_is_recurrent(m, i) ? "linear_attention" : "full_attention");
    mt_buf_puts(o->out, "]");
}

static void put_hybrid(object *o, const mt_synth_model *m)
{
    put_layer_types(o, m);
    put_size(o, "full_attention_interval", MT_SYNTH_FULL_EVERY);
    put_size(o, "linear_conv_kernel_dim", MT_SYNTH_LINEAR_CONV);
    put_size(o, "linear_key_head_dim", MT_SYNTH_LINEAR_DIM);
    put_size(o, "linear_value_head_dim", MT_SYNTH_LINEAR_DIM);
    put_size(o, "linear_num_key_heads", MT_SYNTH_LINEAR_HEADS);
    put_size(o, "linear_num_value_heads", mt_synth_value_heads(m));
    put_bool(o, "attn_output_gate", true);
    put_string(o, "mamba_ssm_dtype", "float32");
    put_size(o, "mtp_num_hidden_layers", 1);
    put_raw(o, "rope_parameters",
            "{\"rope_theta\": 10000000, \"partial_rotary_factor\": 0.25, \"mrope_section\": [11, 11, 10], "
            "\"mrope_interleaved\": true, \"rope_type\": \"default\"}");
}

/* Writes the text model's keys; in multimodal families these have an object of their own. */
static void put_text(object *o, const mt_synth_model *m)
{
    put_size(o, "hidden_size", m->hidden);
    put_size(o, "intermediate_size", m->inter);
    put_size(o, "num_hidden_layers", m->layers);
    put_size(o, "num_attention_heads", m->heads);
    put_size(o, "num_key_value_heads", m->kv_heads);
    put_size(o, "head_dim", m->head_dim);
    put_size(o, "vocab_size", m->vocab);
    put_size(o, "max_position_embeddings", m->context);
    put_real(o, "rms_norm_eps", mt_synth_has_head_norms(m) ? 1e-6 : 1e-5);
    put_bool(o, "attention_bias", m->family == MT_SYNTH_GPT_OSS || m->family == MT_SYNTH_GLM_MOE);
    put_bool(o, "tie_word_embeddings", m->tied);
    if (m->family != MT_SYNTH_QWEN3_5 && m->family != MT_SYNTH_MINISTRAL3 && m->family != MT_SYNTH_GEMMA4)
        put_real(o, "rope_theta", m->theta);
    if (m->family != MT_SYNTH_GEMMA3 && m->family != MT_SYNTH_GEMMA4)
        put_string(o, "hidden_act", "silu");
    switch (m->family) {
    case MT_SYNTH_LLAMA: put_llama(o, m); break;
    case MT_SYNTH_QWEN3_MOE: put_moe(o, m); break;
    case MT_SYNTH_QWEN3_5: put_hybrid(o, m); break;
    case MT_SYNTH_GEMMA3: put_gemma(o, m); break;
    case MT_SYNTH_GEMMA4: put_gemma4(o, m); break;
    case MT_SYNTH_GPT_OSS: put_gpt_oss(o, m); break;
    case MT_SYNTH_MINISTRAL3: put_ministral(o); break;
    case MT_SYNTH_GLM:
    case MT_SYNTH_GLM_OCR: put_glm(o, m); break;
    case MT_SYNTH_PADDLEOCR: put_paddleocr(o, m); break;
    case MT_SYNTH_LFM2:
    case MT_SYNTH_LFM2_MOE: put_lfm2(o, m); break;
    case MT_SYNTH_GLM_MOE: put_glm_moe(o, m); break;
    case MT_SYNTH_GLM_LITE: put_glm_lite(o, m); break;
    case MT_SYNTH_QWEN3_VL:
        put_raw(o, "rope_scaling",
                "{\"mrope_interleaved\": true, \"mrope_section\": [24, 20, 20], \"rope_type\": \"default\"}");
        break;
    case MT_SYNTH_MISTRAL: put_raw(o, "sliding_window", "null"); break;
    case MT_SYNTH_QWEN3: break;
    }
}

static void put_vision(object *o, const mt_synth_model *m)
{
    const mt_synth_vision *v = &m->vision;

    put_string(o, "model_type", model_types[m->family]);
    put_size(o, "depth", v->depth);
    put_size(o, "hidden_size", v->hidden);
    put_size(o, "intermediate_size", v->inter);
    put_size(o, "num_heads", v->heads);
    put_size(o, "out_hidden_size", m->hidden);
    put_string(o, "hidden_act", "gelu_pytorch_tanh");
    put_size(o, "in_channels", 3);
    put_size(o, "patch_size", MT_SYNTH_PATCH);
    put_size(o, "spatial_merge_size", 2);
    put_size(o, "temporal_patch_size", 2);
    put_size(o, "num_position_embeddings", MT_SYNTH_POSITIONS);
    key(o, "deepstack_visual_indexes");
    if (v->deepstack[2])
        mt_buf_printf(o->out, "[%zu, %zu, %zu]", v->deepstack[0], v->deepstack[1], v->deepstack[2]);
    else
        mt_buf_puts(o->out, "[]");
}

static void put_pixtral(object *o, const mt_synth_model *m)
{
    const mt_synth_vision *v = &m->vision;

    put_string(o, "model_type", "pixtral");
    put_size(o, "hidden_size", v->hidden);
    put_size(o, "intermediate_size", v->inter);
    put_size(o, "num_hidden_layers", v->depth);
    put_size(o, "num_attention_heads", v->heads);
    put_string(o, "hidden_act", "silu");
    put_size(o, "num_channels", 3);
    put_size(o, "patch_size", MT_SYNTH_PIXTRAL_PATCH);
    put_size(o, "image_size", MT_SYNTH_PIXTRAL_SIDE);
    put_real(o, "rope_theta", 1e4);
}

static void put_media_tokens(object *o, const mt_synth_model *m)
{
    size_t image = m->family == MT_SYNTH_QWEN3_5 ? 248056 : 151655;

    if (m->family == MT_SYNTH_MINISTRAL3) {
        put_size(o, "image_token_index", 10);
        put_size(o, "spatial_merge_size", 2);
        put_bool(o, "tie_word_embeddings", m->tied);
        return;
    }
    put_size(o, "image_token_id", image);
    put_size(o, "video_token_id", image + 1);
    put_size(o, "vision_start_token_id", image - 3);
    put_size(o, "vision_end_token_id", image - 2);
    put_bool(o, "tie_word_embeddings", m->tied);
}

static void put_nested(object *o, const mt_synth_model *m)
{
    object inner;
    mt_buf type;

    mt_buf_init(&type, 64);
    if (m->family == MT_SYNTH_MINISTRAL3)
        mt_buf_puts(&type, "ministral3");
    else
        mt_buf_printf(&type, "%s_text", model_types[m->family]);
    key(o, "text_config");
    inner = object_begin(o->out, o->depth);
    put_string(&inner, "model_type", type.data);
    put_text(&inner, m);
    object_end(&inner);
    mt_buf_free(&type);

    key(o, "vision_config");
    inner = object_begin(o->out, o->depth);
    if (m->family == MT_SYNTH_MINISTRAL3)
        put_pixtral(&inner, m);
    else
        put_vision(&inner, m);
    object_end(&inner);
    put_media_tokens(o, m);
}

static const char *router_name(const mt_synth_model *m)
{
    switch (m->family) {
    case MT_SYNTH_GPT_OSS: return "mlp.router";
    case MT_SYNTH_GEMMA4: return "router.proj";
    case MT_SYNTH_LFM2_MOE: return "feed_forward.gate";
    default: return "mlp.gate";
    }
}

static void put_quantization(object *o, const char *name, const mt_synth_model *m, const mt_synth_layout *layout)
{
    object inner;

    key(o, name);
    inner = object_begin(o->out, o->depth);
    put_size(&inner, "group_size", layout->group);
    put_size(&inner, "bits", layout->bits);
    put_string(&inner, "mode", "affine");
    const bool glm = m->family == MT_SYNTH_GLM_MOE || m->family == MT_SYNTH_GLM_LITE;
    for (size_t i = 0; !glm && i < m->layers; i++)
        if (mt_synth_is_sparse(m, i))
            mt_buf_printf(o->out, ",\n%*s\"model.layers.%zu.%s\": {\"group_size\": %zu, \"bits\": %d}",
                          (int)(2 * inner.depth), "", i, router_name(m), layout->group, MT_SYNTH_ROUTER_BITS);
    object_end(&inner);
}

void mt_synth_config(mt_buf *out, const mt_synth_model *model, const mt_synth_layout *layout)
{
    object o = object_begin(out, 0);

    key(&o, "architectures");
    mt_buf_printf(out, "[\"%s\"]", architectures[model->family]);
    put_string(&o, "model_type", model_types[model->family]);
    put_string(&o, "torch_dtype", "bfloat16");
    if (model->vision.depth)
        put_nested(&o, model);
    else
        put_text(&o, model);
    if (layout->bits) {
        put_quantization(&o, "quantization", model, layout);
        put_quantization(&o, "quantization_config", model, layout);
    } else if (layout->fp8) {
        put_raw(&o, "quantization_config",
                "{\"quant_method\": \"fp8\", \"fmt\": \"e4m3\", \"activation_scheme\": \"dynamic\", "
                "\"weight_block_size\": [128, 128]}");
    } else if (model->family == MT_SYNTH_GPT_OSS) {
        put_raw(&o, "quantization_config", "{\"quant_method\": \"mxfp4\"}");
    }
    object_end(&o);
    mt_buf_puts(out, "\n");
}
