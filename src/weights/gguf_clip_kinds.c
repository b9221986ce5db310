/* The kinds of projectors that motet knows (gguf_clip.h). Numbers that no key holds are those of the family's published
   checkpoints. */
#include <stdio.h>

#include "weights/gguf_clip.h"

static void put_int(json_t *to, const char *key, int64_t value)
{
    json_object_set_new(to, key, json_integer(value));
}

static void put_bool(json_t *to, const char *key, bool value)
{
    json_object_set_new(to, key, json_boolean(value));
}

static bool has(const mt_gguf *p, const char *name)
{
    return mt_gguf_find(p, name) != NULL;
}

/* An object with one or two members. */
static json_t *pair(const char *one, int64_t first, const char *other, int64_t second)
{
    json_t *object = json_object();
    put_int(object, one, first);
    if (other)
        put_int(object, other, second);
    return object;
}

/* Fewest and most pixels, where keys do not say them. */
static void put_pixels(json_t *to, const mt_gguf *p, int64_t least, int64_t most)
{
    json_object_set_new(to, "size",
                        pair("shortest_edge", mt_clip_int(p, "image_min_pixels", least), "longest_edge",
                             mt_clip_int(p, "image_max_pixels", most)));
}

/* Pixels along the table of positions. */
static int64_t side_of(const mt_clip_sizes *s)
{
    int64_t side = 0;
    while ((side + 1) * (side + 1) <= s->places)
        side++;
    return side * s->patch;
}

/* ---- Qwen ---- */

static const mt_gguf_rename qwen2_layers[] = {
    {"ln1", "norm1"},      {"ln2", "norm2"},        {"attn_q", "attn.q"},
    {"attn_k", "attn.k"},  {"attn_v", "attn.v"},    {"attn_out", "attn.proj"},
    {"ffn_up", "mlp.fc1"}, {"ffn_down", "mlp.fc2"}, {NULL, NULL},
};

static const mt_gguf_rename qwen2_5_layers[] = {
    {"ln1", "norm1"},
    {"ln2", "norm2"},
    {"attn_q", "attn.q"},
    {"attn_k", "attn.k"},
    {"attn_v", "attn.v"},
    {"attn_out", "attn.proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_down", "mlp.down_proj"},
    {NULL, NULL},
};

static const mt_gguf_rename qwen2_others[] = {
    {"v.patch_embd", "vision_tower.patch_embed.proj"},
    {"v.post_ln", "vision_tower.merger.ln_q"},
    {"mm.0", "vision_tower.merger.mlp.0"},
    {"mm.2", "vision_tower.merger.mlp.2"},
    {NULL, NULL},
};

static const mt_gguf_rename qwen3_layers[] = {
    {"ln1", "norm1"},
    {"ln2", "norm2"},
    {"attn_qkv", "attn.qkv"},
    {"attn_out", "attn.proj"},
    {"ffn_up", "mlp.linear_fc1"},
    {"ffn_down", "mlp.linear_fc2"},
    {NULL, NULL},
};

static const mt_gguf_rename qwen3_others[] = {
    {"v.patch_embd", "vision_tower.patch_embed.proj"}, {"v.position_embd", "vision_tower.pos_embed"},
    {"v.post_ln", "vision_tower.merger.norm"},         {"mm.0", "vision_tower.merger.linear_fc1"},
    {"mm.2", "vision_tower.merger.linear_fc2"},        {NULL, NULL},
};

/* The MLP's width is a ratio, of which half an element more is never rounded below. */
static void qwen2_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    (void)p, (void)root;
    json_object_set_new(vision, "mlp_ratio", json_real(((double)s->ffn + 0.5) / (double)s->hidden));
}

/* Of so many layers the last sees everything. */
static void qwen2_5_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    const int64_t period = mt_clip_int(p, "n_wa_pattern", 0);
    (void)root;
    put_int(vision, "window_size", mt_clip_int(p, "window_size", 112));
    put_int(vision, "tokens_per_second", 2);
    if (period <= 0)
        return;
    json_t *full = json_array();
    for (int64_t i = period - 1; i < s->layers; i += period)
        json_array_append_new(full, json_integer(i));
    json_object_set_new(vision, "fullatt_block_indexes", full);
}

static void qwen3_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    json_t *taps = json_array();
    char name[64];
    (void)root;
    for (int64_t i = 0; i < s->layers; i++) {
        snprintf(name, sizeof(name), "v.deepstack.%lld.fc1.weight", (long long)i);
        if (has(p, name))
            json_array_append_new(taps, json_integer(i));
    }
    json_object_set_new(vision, "deepstack_visual_indexes", taps);
}

static void qwen2_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)s;
    put_pixels(settings, p, 56 * 56, 28 * 28 * 16384);
}

static void qwen3_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)s;
    put_pixels(settings, p, 256 * 256, 4096 * 4096);
}

static void qwen3_videos(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)p, (void)s;
    json_object_set_new(settings, "size", pair("shortest_edge", 64 * 64, "longest_edge", 4096 * 4096 / 2 * 3));
}

/* ---- Gemma ---- */

#define SIGLIP_LAYERS                                                                                               \
    {"ln1", "layer_norm1"}, {"ln2", "layer_norm2"}, {"attn_q", "self_attn.q_proj"}, {"attn_k", "self_attn.k_proj"}, \
        {"attn_v", "self_attn.v_proj"}, {"attn_out", "self_attn.out_proj"}, {"ffn_up", "mlp.fc1"},                  \
        {"ffn_down", "mlp.fc2"},                                                                                    \
    {                                                                                                               \
        NULL, NULL                                                                                                  \
    }
#define SIGLIP_OTHERS                                                      \
    {"v.patch_embd", "vision_tower.embeddings.patch_embedding"},           \
        {"v.position_embd", "vision_tower.embeddings.position_embedding"}, \
    {                                                                      \
        "v.post_ln", "vision_tower.post_layernorm"                         \
    }

static const mt_gguf_rename siglip_layers[] = {SIGLIP_LAYERS};

static const mt_gguf_rename gemma3_others[] = {
    SIGLIP_OTHERS,
    {"mm.input_projection.weight", "multi_modal_projector.mm_input_projection_weight"},
    {"mm.soft_emb_norm", "multi_modal_projector.mm_soft_emb_norm"},
    {NULL, NULL},
};

static void gemma3_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    const int64_t side = side_of(s) / s->patch / s->merge;
    (void)p, (void)vision;
    put_int(root, "mm_tokens_per_image", side * side);
}

static void gemma3_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)p;
    put_int(settings, "resample", 2);
    json_object_set_new(settings, "size", pair("height", side_of(s), "width", side_of(s)));
}

static const mt_gguf_rename gemma4_layers[] = {
    {"ln1", "input_layernorm"},
    {"ln2", "pre_feedforward_layernorm"},
    {"attn_post_norm", "post_attention_layernorm"},
    {"ffn_post_norm", "post_feedforward_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_out", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {NULL, NULL},
};

static const mt_gguf_rename gemma4_others[] = {
    {"v.patch_embd", "vision_tower.patch_embedder.input_proj"},
    {"v.position_embd.weight", "vision_tower.patch_embedder.position_embedding_table"},
    {"v.std_bias", "vision_tower.std_bias"},
    {"v.std_scale", "vision_tower.std_scale"},
    {"mm.input_projection", "multi_modal_projector.embedding_projection"},
    {NULL, NULL},
};

static const mt_gguf_rename gemma4_unified_others[] = {
    {"v.patch_embd", "vision_tower.patch_dense"},
    {"v.patch_norm.1", "vision_tower.patch_ln1"},
    {"v.patch_norm.2", "vision_tower.patch_ln2"},
    {"v.patch_norm.3", "vision_tower.pos_norm"},
    {"v.position_embd.weight", "vision_tower.pos_embedding"},
    {"mm.input_projection", "multi_modal_projector.embedding_projection"},
    {NULL, NULL},
};

/* In models with embeddings of each layer, the tokens of a picture do not see those behind them. */
static void gemma4_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    json_t *text = json_object_get(root, "text_config");
    const bool aside = json_integer_value(json_object_get(text, "hidden_size_per_layer_input")) > 0;
    put_bool(vision, "use_clipped_linears", has(p, "v.blk.0.attn_q.input_max"));
    put_bool(vision, "standardize", has(p, "v.std_scale"));
    put_int(vision, "mm_embed_dim", s->hidden);
    put_int(vision, "mm_posemb_size", s->places);
    if (!aside)
        json_object_set_new(text, "use_bidirectional_attention", json_string("vision"));
}

/* A limit of pixels counts as a limit of tokens. */
static void gemma4_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    const int64_t token = s->patch * s->merge * s->patch * s->merge;
    put_bool(settings, "do_normalize", false);
    put_int(settings, "max_soft_tokens", mt_clip_int(p, "image_max_pixels", 280 * token) / token);
}

static void gemma4_videos(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)p, (void)s;
    put_int(settings, "max_soft_tokens", 70);
    put_int(settings, "num_frames", 32);
}

/* ---- Pixtral ---- */

static const mt_gguf_rename pixtral_layers[] = {
    {"ln1", "attention_norm"},
    {"ln2", "ffn_norm"},
    {"attn_q", "attention.q_proj"},
    {"attn_k", "attention.k_proj"},
    {"attn_v", "attention.v_proj"},
    {"attn_out", "attention.o_proj"},
    {"ffn_gate", "feed_forward.gate_proj"},
    {"ffn_up", "feed_forward.up_proj"},
    {"ffn_down", "feed_forward.down_proj"},
    {NULL, NULL},
};

static const mt_gguf_rename pixtral_others[] = {
    {"v.patch_embd", "vision_tower.patch_conv"},
    {"v.pre_ln", "vision_tower.ln_pre"},
    {"mm.input_norm", "multi_modal_projector.norm"},
    {"mm.patch_merger", "multi_modal_projector.patch_merger.merging_layer"},
    {"mm.1", "multi_modal_projector.linear_1"},
    {"mm.2", "multi_modal_projector.linear_2"},
    {NULL, NULL},
};

static void pixtral_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    double theta;
    (void)s;
    put_bool(root, "multimodal_projector_bias", has(p, "mm.1.bias"));
    if (mt_gguf_float(p, "clip.rope.freq_base", &theta))
        json_object_set_new(vision, "rope_theta", json_real(theta));
}

static void pixtral_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    json_object_set_new(settings, "size",
                        pair("longest_edge", mt_clip_int(p, "preproc_image_size", s->image), NULL, 0));
}

/* ---- SmolVLM and Idefics 3 ---- */

static const mt_gguf_rename idefics3_others[] = {
    SIGLIP_OTHERS,
    {"mm.model.fc", "multi_modal_projector.modality_projection.proj"},
    {NULL, NULL},
};

static void idefics3_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    const int64_t longest = mt_clip_int(p, "preproc_image_size", 4 * s->image);
    put_int(settings, "resample", 1);
    json_object_set_new(settings, "size", pair("longest_edge", longest, NULL, 0));
    json_object_set_new(settings, "max_image_size", pair("longest_edge", s->image, NULL, 0));
}

static void idefics3_videos(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    json_t *sampling = pair("fps", 1, "max_frames", 64);
    (void)p;
    put_int(settings, "resample", 1);
    json_object_set_new(settings, "max_image_size", pair("longest_edge", s->image, NULL, 0));
    json_object_set_new(sampling, "video_size", pair("longest_edge", s->image, NULL, 0));
    json_object_set_new(settings, "video_sampling", sampling);
}

/* ---- InternVL ---- */

static const mt_gguf_rename internvl_layers[] = {
    {"ln1", "layernorm_before"},
    {"ln2", "layernorm_after"},
    {"attn_q", "attention.q_proj"},
    {"attn_k", "attention.k_proj"},
    {"attn_v", "attention.v_proj"},
    {"attn_out", "attention.projection_layer"},
    {"attn_q_norm", "attention.q_norm"},
    {"attn_k_norm", "attention.k_norm"},
    {"ls1.weight", "lambda_1"},
    {"ls2.weight", "lambda_2"},
    {"ffn_up", "mlp.fc1"},
    {"ffn_down", "mlp.fc2"},
    {NULL, NULL},
};

static const mt_gguf_rename internvl_others[] = {
    {"v.patch_embd", "vision_tower.embeddings.patch_embeddings.projection"},
    {"v.class_embd", "vision_tower.embeddings.cls_token"},
    {"v.position_embd.weight", "vision_tower.embeddings.position_embeddings"},
    {"v.post_ln", "vision_tower.layernorm"},
    {"mm.model.mlp.0", "multi_modal_projector.layer_norm"},
    {"mm.model.mlp.1", "multi_modal_projector.linear_1"},
    {"mm.model.mlp.3", "multi_modal_projector.linear_2"},
    {NULL, NULL},
};

static void internvl_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    const bool rms = !has(p, "v.blk.0.ln1.bias");
    json_object_set_new(root, "downsample_ratio", json_real(1.0 / (double)s->merge));
    json_object_set_new(vision, "norm_type", json_string(rms ? "rms_norm" : "layer_norm"));
    put_bool(vision, "use_qk_norm", has(p, "v.blk.0.attn_q_norm.weight"));
    put_bool(vision, "use_mean_pooling", !has(p, "v.post_ln.weight"));
}

static void internvl_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    json_object_set_new(settings, "size", pair("height", s->image, "width", s->image));
    put_int(settings, "min_patches", mt_clip_int(p, "preproc_min_tiles", 1));
    put_int(settings, "max_patches", mt_clip_int(p, "preproc_max_tiles", 12));
}

/* ---- LFM2 ---- */

static const mt_gguf_rename lfm2_others[] = {
    SIGLIP_OTHERS,
    {"mm.input_norm", "multi_modal_projector.layer_norm"},
    {"mm.1", "multi_modal_projector.linear_1"},
    {"mm.2", "multi_modal_projector.linear_2"},
    {NULL, NULL},
};

static void lfm2_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    (void)s, (void)vision;
    put_bool(root, "projector_use_layernorm", has(p, "mm.input_norm.weight"));
    put_bool(root, "projector_bias", has(p, "mm.1.bias"));
    put_int(root, "projector_hidden_size", mt_clip_rows(p, "mm.1.weight"));
}

static void lfm2_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    const int64_t token = s->patch * s->merge * s->patch * s->merge;
    put_int(settings, "resample", 2);
    put_int(settings, "min_image_tokens", mt_clip_int(p, "image_min_pixels", 64 * token) / token);
    put_int(settings, "max_image_tokens", mt_clip_int(p, "image_max_pixels", 256 * token) / token);
    put_int(settings, "tile_size", mt_clip_int(p, "preproc_image_size", 512));
    put_int(settings, "min_tiles", mt_clip_int(p, "preproc_min_tiles", 2));
    put_int(settings, "max_tiles", mt_clip_int(p, "preproc_max_tiles", 10));
}

/* ---- GLM ---- */

static const mt_gguf_rename glm_layers[] = {
    {"ln1", "norm1"},
    {"ln2", "norm2"},
    {"attn_qkv", "attn.qkv"},
    {"attn_out", "attn.proj"},
    {"attn_q_norm", "attn.q_norm"},
    {"attn_k_norm", "attn.k_norm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {NULL, NULL},
};

static const mt_gguf_rename glm_others[] = {
    {"v.patch_embd", "vision_tower.patch_embed.proj"},
    {"v.norm_embd", "vision_tower.post_conv_layernorm"},
    {"v.position_embd", "vision_tower.embeddings.position_embedding"},
    {"v.post_ln", "vision_tower.post_layernorm"},
    {"mm.patch_merger", "vision_tower.downsample"},
    {"mm.model.fc", "vision_tower.merger.proj"},
    {"mm.post_norm", "vision_tower.merger.post_projection_norm"},
    {"mm.gate", "vision_tower.merger.gate_proj"},
    {"mm.up", "vision_tower.merger.up_proj"},
    {"mm.down", "vision_tower.merger.down_proj"},
    {NULL, NULL},
};

/* The width in GLM-4V's config is that of the merger, in GLM-OCR's that of the layers. */
static void glm_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    (void)s, (void)root;
    put_int(vision, "out_hidden_size", mt_clip_int(p, "projection_dim", 0));
    if (has(p, "v.norm_embd.weight"))
        put_int(vision, "intermediate_size", mt_clip_rows(p, "mm.up.weight"));
    if (!json_object_get(vision, "image_size"))
        put_int(vision, "image_size", 336);
}

static void glm_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)s;
    put_pixels(settings, p, 112 * 112, 112 * 112 * 768);
}

static void glm_videos(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)p, (void)s;
    json_object_set_new(settings, "size", pair("shortest_edge", 112 * 112, "longest_edge", 28 * 28 * 60000));
}

/* ---- PaddleOCR, MiniCPM-V ---- */

static const mt_gguf_rename paddleocr_others[] = {
    SIGLIP_OTHERS,
    {"mm.input_norm", "multi_modal_projector.pre_norm"},
    {"mm.1", "multi_modal_projector.linear_1"},
    {"mm.2", "multi_modal_projector.linear_2"},
    {NULL, NULL},
};

static void paddleocr_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    (void)s;
    put_pixels(settings, p, 147384, 2822400);
}

static const mt_gguf_rename minicpm_others[] = {
    SIGLIP_OTHERS,
    {"v.vit_merger.ln1", "vision_tower.vit_merger.layer_norm1"},
    {"v.vit_merger.attn_q", "vision_tower.vit_merger.self_attn.q_proj"},
    {"v.vit_merger.attn_k", "vision_tower.vit_merger.self_attn.k_proj"},
    {"v.vit_merger.attn_v", "vision_tower.vit_merger.self_attn.v_proj"},
    {"v.vit_merger.attn_out", "vision_tower.vit_merger.self_attn.out_proj"},
    {"v.vit_merger.ds_ln", "vision_tower.vit_merger.pre_norm"},
    {"v.vit_merger.ds_ffn_up", "vision_tower.vit_merger.linear_1"},
    {"v.vit_merger.ds_ffn_down", "vision_tower.vit_merger.linear_2"},
    {"mm.input_norm", "merger.mlp.0.pre_norm"},
    {"mm.up", "merger.mlp.0.linear_1"},
    {"mm.down", "merger.mlp.0.linear_2"},
    {NULL, NULL},
};

static const char *minicpm_mode(const mt_clip_sizes *s)
{
    return s->merge == 2 ? "4x" : "16x";
}

static void minicpm_config(const mt_gguf *p, const mt_clip_sizes *s, json_t *root, json_t *vision)
{
    const mt_gguf_array *at = mt_gguf_array_of(p, "clip.vision.wa_layer_indexes");
    int64_t layer = 6;
    (void)vision;
    if (at && mt_gguf_count(at) > 0)
        mt_gguf_array_int(at, 0, &layer);
    put_int(root, "insert_layer_id", layer);
    json_object_set_new(root, "downsample_mode", json_string(minicpm_mode(s)));
}

static void minicpm_images(const mt_gguf *p, const mt_clip_sizes *s, json_t *settings)
{
    put_int(settings, "scale_resolution", s->image ? s->image : 448);
    put_int(settings, "max_slice_nums", mt_clip_int(p, "preproc_max_tiles", 9));
    json_object_set_new(settings, "downsample_mode", json_string(minicpm_mode(s)));
}

/* ---- the table ---- */

#define SIGLIP_LAYER "vision_tower.encoder.layers."
#define QWEN_PADS .image_token = "<|image_pad|>", .video_token = "<|video_pad|>"

const mt_clip_kind mt_clip_kinds[] = {
    {.name = "qwen2vl_merger",
     .texts = {{"qwen2_vl", "qwen2_vl", NULL}},
     QWEN_PADS,
     .activation = "quick_gelu",
     .merge = 2,
     .config = qwen2_config,
     .images = qwen2_images,
     .layer = "vision_tower.blocks.",
     .layers = qwen2_layers,
     .others = qwen2_others,
     .flags = MT_CLIP_PAIRS},
    {.name = "qwen2.5vl_merger",
     .texts = {{"qwen2_vl", "qwen2_5_vl", NULL}},
     QWEN_PADS,
     .activation = "silu",
     .merge = 2,
     .config = qwen2_5_config,
     .images = qwen2_images,
     .layer = "vision_tower.blocks.",
     .layers = qwen2_5_layers,
     .others = qwen2_others,
     .flags = MT_CLIP_PAIRS},
    {.name = "qwen3vl_merger",
     .texts = {{"qwen3_vl", "qwen3_vl", NULL},
               {"qwen3_vl_moe", "qwen3_vl_moe", NULL},
               {"qwen3_5_text", "qwen3_5", NULL},
               {"qwen3_5_moe_text", "qwen3_5_moe", NULL}},
     QWEN_PADS,
     .activation = "gelu_pytorch_tanh",
     .merge = 2,
     .config = qwen3_config,
     .images = qwen3_images,
     .videos = qwen3_videos,
     .layer = "vision_tower.blocks.",
     .layers = qwen3_layers,
     .others = qwen3_others,
     .flags = MT_CLIP_PAIRS},
    {.name = "gemma3",
     .texts = {{"gemma3_text", "gemma3", NULL}},
     .image_token = "<image_soft_token>",
     .spare = "<unused0>",
     .activation = "gelu_pytorch_tanh",
     .merge = 4,
     .config = gemma3_config,
     .images = gemma3_images,
     .layer = SIGLIP_LAYER,
     .layers = siglip_layers,
     .others = gemma3_others,
     .flags = MT_CLIP_ONES},
    {.name = "gemma4v",
     .texts = {{"gemma4_text", "gemma4", NULL}},
     .image_token = "<|image|>",
     .video_token = "<|video|>",
     .activation = "gelu_pytorch_tanh",
     .merge = 3,
     .config = gemma4_config,
     .images = gemma4_images,
     .videos = gemma4_videos,
     .layer = SIGLIP_LAYER,
     .layers = gemma4_layers,
     .others = gemma4_others,
     .flags = MT_CLIP_PLANES | MT_CLIP_INNER},
    {.name = "gemma4uv",
     .texts = {{"gemma4_text", "gemma4_unified", "gemma4_unified_text"}},
     .image_token = "<|image|>",
     .video_token = "<|video|>",
     .activation = "gelu_pytorch_tanh",
     .merge = 3,
     .config = gemma4_config,
     .images = gemma4_images,
     .videos = gemma4_videos,
     .layer = SIGLIP_LAYER,
     .layers = gemma4_layers,
     .others = gemma4_unified_others,
     .flags = MT_CLIP_PLANES},
    {.name = "pixtral",
     .texts = {{"mistral", "mistral3", NULL}, {"ministral3", "mistral3", NULL}, {"llama", "mistral3", "mistral"}},
     .image_token = "[IMG]",
     .activation = "gelu",
     .merge = 1,
     .config = pixtral_config,
     .images = pixtral_images,
     .layer = "vision_tower.transformer.layers.",
     .layers = pixtral_layers,
     .others = pixtral_others,
     .flags = MT_CLIP_TURNED},
    {.name = "idefics3",
     .texts = {{"llama", "smolvlm", NULL}},
     .image_token = "<image>",
     .activation = "gelu_pytorch_tanh",
     .merge = 2,
     .images = idefics3_images,
     .videos = idefics3_videos,
     .layer = SIGLIP_LAYER,
     .layers = siglip_layers,
     .others = idefics3_others},
    {.name = "internvl",
     .texts = {{"qwen2", "internvl", NULL},
               {"qwen3", "internvl", NULL},
               {"qwen3_moe", "internvl", NULL},
               {"gpt_oss", "internvl", NULL},
               {"llama", "internvl", NULL}},
     .image_token = "<IMG_CONTEXT>",
     .activation = "gelu",
     .merge = 2,
     .summary = 1,
     .config = internvl_config,
     .images = internvl_images,
     .layer = "vision_tower.encoder.layer.",
     .layers = internvl_layers,
     .others = internvl_others},
    {.name = "lfm2",
     .texts = {{"lfm2", "lfm2_vl", NULL}, {"lfm2_moe", "lfm2_vl", NULL}},
     .image_token = "<image>",
     .activation = "gelu_pytorch_tanh",
     .merge = 2,
     .config = lfm2_config,
     .images = lfm2_images,
     .layer = SIGLIP_LAYER,
     .layers = siglip_layers,
     .others = lfm2_others},
    {.name = "glm4v",
     .texts = {{"glm4v", "glm4v", NULL}, {"glm4v_moe", "glm4v_moe", NULL}, {"glm_ocr", "glm_ocr", NULL}},
     .image_token = "<|image|>",
     .activation = "silu",
     .merge = 2,
     .config = glm_config,
     .images = glm_images,
     .videos = glm_videos,
     .layer = "vision_tower.blocks.",
     .layers = glm_layers,
     .others = glm_others,
     .flags = MT_CLIP_PAIRS},
    {.name = "paddleocr",
     .texts = {{"paddleocr_vl", "paddleocr_vl", NULL}},
     .image_token = "<|IMAGE_PLACEHOLDER|>",
     .activation = "gelu_pytorch_tanh",
     .merge = 2,
     .images = paddleocr_images,
     .layer = SIGLIP_LAYER,
     .layers = siglip_layers,
     .others = paddleocr_others},
    {.name = "minicpmv4_6",
     .texts = {{"qwen3_5_text", "minicpmv4_6", NULL},
               {"qwen3_5_moe_text", "minicpmv4_6", NULL},
               {"qwen3", "minicpmv4_6", NULL},
               {"llama", "minicpmv4_6", NULL}},
     QWEN_PADS,
     .activation = "gelu_pytorch_tanh",
     .merge = 4,
     .config = minicpm_config,
     .images = minicpm_images,
     .layer = SIGLIP_LAYER,
     .layers = siglip_layers,
     .others = minicpm_others},
    {.name = NULL},
};
