"""Random models: config.json in both dialects, and weights whose answers depend on every detail.

Weights are drawn so that logits are spread, no part of a layer is negligible, and no part is trivial: norm weights
differ from one another, biases are not zero, attention is neither flat nor one-hot.
"""

import json
import re

import numpy as np

CLASSES = {
    "llama": "LlamaConfig",
    "qwen2": "Qwen2Config",
    "qwen3": "Qwen3Config",
    "qwen3_moe": "Qwen3MoeConfig",
    "gemma2": "Gemma2Config",
    "gemma3_text": "Gemma3TextConfig",
    "qwen3_next": "Qwen3NextConfig",
    "qwen3_5_text": "Qwen3_5TextConfig",
    "qwen3_5_moe_text": "Qwen3_5MoeTextConfig",
    "gpt_oss": "GptOssConfig",
    "mistral": "MistralConfig",
    "ministral3": "Ministral3Config",
    "mistral4": "Mistral4Config",
    "gemma4_text": "Gemma4TextConfig",
    "gemma4_unified_text": "Gemma4UnifiedTextConfig",
    "lfm2": "Lfm2Config",
    "lfm2_moe": "Lfm2MoeConfig",
    "seed_oss": "SeedOssConfig",
    "smollm3": "SmolLM3Config",
    "granite": "GraniteConfig",
    "phi3": "Phi3Config",
    "gemma": "GemmaConfig",
    "olmo2": "Olmo2Config",
    "olmo3": "Olmo3Config",
    "olmoe": "OlmoeConfig",
    "exaone4": "Exaone4Config",
    "exaone_moe": "ExaoneMoeConfig",
    "llama4_text": "Llama4TextConfig",
    "ernie4_5": "Ernie4_5Config",
    "ernie4_5_moe": "Ernie4_5_MoeConfig",
    "mixtral": "MixtralConfig",
    "minimax_m2": "MiniMaxM2Config",
    "glm": "GlmConfig",
    "glm4": "Glm4Config",
    "glm4_moe": "Glm4MoeConfig",
    "qwen2_moe": "Qwen2MoeConfig",
    "cohere": "CohereConfig",
    "cohere2": "Cohere2Config",
    "hy_v3": "HYV3Config",
    "deepseek_v3": "DeepseekV3Config",
    "glm4_moe_lite": "Glm4MoeLiteConfig",
    "deepseek_v32": "DeepseekV32Config",
    "glm_moe_dsa": "GlmMoeDsaConfig",
    "granitemoehybrid": "GraniteMoeHybridConfig",
    "nemotron_h": "NemotronHConfig",
    "falcon_h1": "FalconH1Config",
}
GEMMAS = ("gemma2", "gemma3_text")  # norms follow sublayers too
GEMMA4 = ("gemma4_text", "gemma4_unified_text")  # there as well, but norms have no 1

HYBRIDS = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text")  # recurrent layers beside attention
GLM = ("glm4v_text", "glm_ocr_text", "glm4")  # norms of their own behind sublayers
BEHIND = ("olmo2", "olmo3", "exaone4")  # norms behind sublayers and none in front
CHOOSING = ("deepseek_v32", "glm_moe_dsa")  # layers choose the positions they attend to
LATENT = ("deepseek_v3", "glm4_moe_lite", *CHOOSING, "mistral4")  # attention over latents
SIGMOIDS = ("glm4v_moe_text", "glm4_moe", "minimax_m2", "hy_v3", "exaone_moe", "nemotron_h", *LATENT[:-1])  # of the router
MAMBAS = ("granitemoehybrid", "nemotron_h", "falcon_h1")  # recurrent layers beside attention, too
SHORT = ("lfm2", "lfm2_moe")  # convolutions beside attention
MIXTURES = ("qwen3_moe", "qwen3_next", "qwen3_5_moe_text", "gpt_oss", "lfm2_moe", "olmoe", "ernie4_5_moe", "mixtral")
MIXTURES += ("llama4_text", "minimax_m2", "hy_v3", "exaone_moe", "glm4_moe", "qwen2_moe", "nemotron_h", *LATENT)


def is_mixture(family, settings):
    return family in MIXTURES or settings.get("enable_moe_block", False) or family == "granitemoehybrid" and settings["num_local_experts"] > 0


OFFSET = ("gemma", *GEMMAS, *HYBRIDS)  # norms multiply by 1 + w

LOGIT_SPREAD = 1.6  # standard deviation of the logits, about
EMBEDDING = 0.5  # of an embedding's elements where the head is another matrix

# What a sublayer adds to the residual stream, relative to an embedding: enough that a mistake in it shows, little enough
# that rounding in it stays below what fast precision may differ by.
ATTENTION = 0.6
MLP = 0.35

# --- config.json ----------------------------------------------------------------------------------------------------


def config_dict(family, settings):
    """config.json as transformers writes it today. No token ends the text: this is about numbers, not stopping."""
    import transformers

    config_class = getattr(transformers, CLASSES[family])
    pad = 0 if family in GEMMA4 else None  # its class embeds what stands for pictures as this token
    config = config_class(bos_token_id=None, eos_token_id=None, pad_token_id=pad, dtype="bfloat16", **settings)
    config.architectures = [CLASSES[family].replace("TextConfig", "Config").replace("Config", "ForCausalLM")]
    return json.loads(config.to_json_string())


def _published_rope(rope):
    scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
    if scaling["rope_type"] == "default":
        scaling = None
    elif scaling["rope_type"] == "yarn" and "truncate" not in scaling:
        scaling["type"] = scaling.pop("rope_type")  # as the model cards of Qwen say it
    return {"rope_theta": rope["rope_theta"], "rope_scaling": scaling}


def nested(config):
    """The config of a text model as part of the multimodal one that it is published in."""
    kind = config["model_type"].removesuffix("_text")
    outer = {"architectures": [config["architectures"][0].replace("CausalLM", "ConditionalGeneration")]}
    inner = {key: value for key, value in config.items() if key not in ("architectures", "transformers_version")}
    return {**outer, "model_type": kind, "text_config": inner, "tie_word_embeddings": config["tie_word_embeddings"]}


def _published_hybrid(config):
    """Every n-th layer has attention; Qwen3-Next keeps what belongs to the rotary embedding at the top."""
    layer_types = config.pop("layer_types")
    config["full_attention_interval"] = layer_types.index("full_attention") + 1
    if config["model_type"] == "qwen3_next":
        rope = config.pop("rope_parameters")
        config.update({key: rope[key] for key in ("rope_theta", "partial_rotary_factor")}, rope_scaling=None)
    return dict(sorted(config.items()))


def _published_gemma4(config):
    """What layers that see everything have instead is said once for all of them."""
    config.pop("transformers_version", None)
    own = next(iter(config.pop("per_layer_config", {}).values()), {})
    config["global_head_dim"] = own.get("head_dim", config["head_dim"])
    config["num_global_key_value_heads"] = own.get("num_key_value_heads")
    return dict(sorted(config.items()))


def published_lfm2(config):
    """Names of its own for what all configs have; which layers have attention is a list of numbers."""
    config = {key: value for key, value in config.items() if key != "transformers_version"}
    types = config.pop("layer_types")
    config["full_attn_idxs"] = [i for i, kind in enumerate(types) if kind == "full_attention"]
    config["block_ff_dim"] = config.pop("intermediate_size")
    if "tie_word_embeddings" in config:
        config["tie_embedding"] = config.pop("tie_word_embeddings")
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    return dict(sorted(config.items()))


def _published_nemotron(config):
    """A letter for each layer."""
    letters = {"mamba": "M", "moe": "E", "attention": "*", "mlp": "-"}
    types = config.pop("layers_block_type", None) or config.pop("layer_types")
    config.pop("layer_types", None)
    pattern = "".join(letters[kind] for kind in types)
    return dict(sorted({**config, "hybrid_override_pattern": pattern, "num_hidden_layers": len(types)}.items()))


PARTIAL = ("phi3", "glm", "glm4", "glm4_moe")  # which part of a head turns stands beside the scaling


def published(config):
    """The same config in the dialect of published checkpoints: rope_theta and rope_scaling, no layer_types, ..."""
    config = dict(config)
    if config["model_type"] in GEMMA4:
        return _published_gemma4(config)
    if config["model_type"] == "lfm2":
        return published_lfm2(config)
    if config["model_type"] == "lfm2_moe":
        config.pop("transformers_version", None)
        config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
        config["tie_embedding"] = config.pop("tie_word_embeddings")
        return dict(sorted(config.items()))
    if config["model_type"] in HYBRIDS:
        return _published_hybrid(config)
    config.pop("transformers_version", None)
    config["torch_dtype"] = config.pop("dtype")
    if config["model_type"] == "nemotron_h":
        return _published_nemotron(config)
    if "index_topk_freq" in config:  # it says what the list does
        config.pop("indexer_types")
    rope = config.pop("rope_parameters")
    if config["model_type"] in PARTIAL:
        rope = dict(rope)
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    if config["model_type"] == "olmo3":
        rope = rope["full_attention"]
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = rope["full_attention"]
    config.update(_published_rope(rope))
    if config["model_type"] == "olmo3" and config["rope_scaling"]:
        config["rope_scaling"]["rope_type"] = config["rope_scaling"].pop("type")
    if config["model_type"] == "gpt_oss":
        return dict(sorted({**config, "experts_per_token": config["num_experts_per_tok"], "swiglu_limit": 7.0}.items()))
    if config["model_type"] in ("exaone4", "exaone_moe", "llama4_text", *MAMBAS):  # their published configs have both
        return dict(sorted(config.items()))
    layer_types = config.pop("layer_types", None)
    if config["model_type"] == "gemma3_text":
        config.pop("_sliding_window_pattern", None)
        config["sliding_window_pattern"] = (layer_types + ["full_attention"]).index("full_attention") + 1
    if config.get("use_sliding_window") is False and config["model_type"].startswith("qwen"):
        config["sliding_window"] = 20  # published ones have a number here too, to be ignored
    if config["model_type"] == "qwen3_moe" and "num_local_experts" in config:
        config["num_experts"] = config.pop("num_local_experts")
    return dict(sorted(config.items()))


def check_same(config, folder):
    """transformers must understand the folder's config.json as it did the config it was written from."""
    import transformers

    def essence(config):
        dropped = ("transformers_version", "torch_dtype", "dtype", "quantization", "quantization_config")
        dropped += ("architectures", "full_attention_interval", "partial_rotary_factor")
        dropped += ("experts_per_token", "swiglu_limit", "full_attn_idxs")
        config = {k: v for k, v in config.items() if k not in dropped and "sliding_window_pattern" not in k}
        if "rope_parameters" in config:
            config["rope_parameters"] = {k: v for k, v in config["rope_parameters"].items() if k != "type"}
        return config

    read = json.loads(transformers.AutoConfig.from_pretrained(folder).to_json_string())
    read = read.get("text_config", read)
    assert essence(read) == essence(config), (essence(read), essence(config))


# --- weights --------------------------------------------------------------------------------------------------------


GAIN = {  # standard deviation times sqrt(inputs); inputs have a root mean square of about 1
    "q_proj": 1.3,
    "k_proj": 1.3,
    "v_proj": 1.3,
    "q_a_proj": 1.3,
    "q_b_proj": 1.3,
    "kv_a_proj_with_mqa": 1.3,
    "kv_b_proj": 1.3,
    "wq_b": 1.3,
    "wk": 1.3,
    "weights_proj": 1.3,
    "gate_proj": 1.3,
    "up_proj": 1.3,
    "gate_up_proj": 1.3,
    "qkv_proj": 1.3,
    "in_proj_qkv": 1.3,
    "in_proj_qkvz": 1.3,
    "in_proj_z": 1.3,
    "in_proj_b": 1.0,
    "in_proj_a": 1.0,
    "in_proj_ba": 1.0,
    "in_proj": 1.0,
    "input_linear": 1.3,
    "fc1_latent_proj": 1.0,
    "layer": 4.5,  # Granite's router
    "w1": 1.3,
    "w3": 1.3,
    "shared_expert_gate": 1.5,
    "gate": 4.5,  # the router: the last expert chosen weighs little, so a near tie does little harm
    "router": 4.5,
}
CUT = 3.0  # the gain of gpt-oss's gate and up: some of what they give is cut off at 7


def tied(config):
    return config.get("tie_word_embeddings", config.get("tie_embedding"))


def _logits_divisor(config):
    return config.get("logits_scaling", 1) / config.get("logit_scale", 1) / config.get("lm_head_multiplier", 1)


def _embedding_spread(config):
    if not tied(config):
        return EMBEDDING
    return LOGIT_SPREAD * _logits_divisor(config) * config["hidden_size"] ** -0.5


def _stream_spread(config):
    """Of what sublayers add to, in units of what they compute."""
    if config["model_type"] == "gemma":
        return LOGIT_SPREAD
    return _embedding_spread(config) * config.get("embedding_multiplier", 1) / config.get("residual_multiplier", 1)


def _gain(name, part, config):
    """The last matrix of a sublayer sets how much it adds, unless a norm follows that does (Gemma)."""
    if part == "down_proj" and config.get("moe_latent_size") and "experts" in name and "shared" not in name:
        return 0.5  # what fc2_latent_proj reads
    if part == "q_b_proj" and config["model_type"] in CHOOSING:
        return 0.2  # flat attention: of positions with nearly equal scores, rounding may choose either
    if part not in ("o_proj", "out_proj", "down_proj", "w2", "output_linear", "fc2_latent_proj"):
        return 1.5 if part == "gate" and config["model_type"] in SIGMOIDS else GAIN[part]
    if config["model_type"] in (*GEMMAS, *GEMMA4, *GLM, *BEHIND):
        return 1.0
    return _stream_spread(config) * (MLP if part in ("down_proj", "w2", "output_linear", "fc2_latent_proj") else ATTENTION)


def _norm_centre(name, shape, config):
    if config["model_type"] in GEMMA4 and name.endswith(("q_norm.weight", "k_norm.weight")):
        return 1.3 * shape[0] ** -0.25  # scores are not scaled
    if name.endswith(("q_norm.weight", "k_norm.weight", "q_layernorm.weight", "k_layernorm.weight")):
        # Gemma's scale is not head_dim's: keep the spread of the scores
        size = config.get("head_dim", 1)
        return 1.3 * (config.get("query_pre_attn_scalar", size) / size) ** 0.25
    if config["model_type"] in BEHIND and "post_attention" in name:
        return ATTENTION * _embedding_spread(config)
    if config["model_type"] in BEHIND and "post_feedforward" in name:
        return MLP * _embedding_spread(config)
    if config["model_type"] in GLM and "post_self_attn" in name:
        return ATTENTION * _embedding_spread(config)
    if config["model_type"] in GLM and "post_mlp" in name:
        return MLP * _embedding_spread(config)
    if config["model_type"] in (*GEMMAS, *GEMMA4):
        if "post_attention" in name:
            return 0.8 * ATTENTION * LOGIT_SPREAD
        if name.endswith(("post_feedforward_layernorm.weight", "post_per_layer_input_norm.weight")):
            return 0.8 * MLP * LOGIT_SPREAD
    return 1.0


def _draw_norm(name, shape, config, rng):
    weight = _norm_centre(name, shape, config) * (1 + 0.2 * rng.standard_normal(shape))
    if name in ("model.norm.weight", "model.embedding_norm.weight", "model.norm_f.weight", "model.final_layernorm.weight") and tied(config):
        weight *= rng.choice([-1, 1], shape)  # else a tied head mostly repeats the token it just read
    return weight - 1 if config["model_type"] in OFFSET and "linear_attn" not in name else weight


def _draw_recurrent(part, shape, rng):
    """What has no counterpart elsewhere. Decays from a few tokens to hundreds, none of them alike."""
    if part.startswith("conv"):
        return rng.standard_normal(shape) * 0.6
    return rng.uniform(-3.5, 0.5, shape) if part == "A_log" else rng.uniform(-2.5, 1.0, shape)


def _draw_gpt_oss(part, shape, config, rng):
    """Experts as its class has them, [E, in, out]; sinks that take about as much as a window's keys do."""
    noise = rng.standard_normal(shape)
    if part == "sinks":
        return 2.0 + 1.5 * noise
    if part.endswith("_bias"):
        return noise * (0.1 if "down_proj" in part else 0.5)
    gain = CUT if part == "gate_up_proj" else _embedding_spread(config) * MLP / (2 * CUT)
    return noise * gain * shape[1] ** -0.5


GEMMA4_PARTS = {  # where a part is 1 on average: by how much it differs from that
    "layer_scalar": 0.1,
    "router.scale": 0.2,
    "router.per_expert_scale": 0.3,
}
GEMMA4_GAIN = {  # standard deviation times sqrt(inputs), where it is not as elsewhere
    "per_layer_model_projection": 1.0,
    "per_layer_input_gate": 1.0,
    "per_layer_projection": 1.0,
    "experts.gate_up_proj": 1.3,
    "experts.down_proj": 1.0,
}


def _draw_gemma4(name, shape, rng):
    """What no other family has; None for the rest."""
    for part, spread in GEMMA4_PARTS.items():
        if name.endswith(part):
            return 1 + spread * rng.standard_normal(shape)
    for part, gain in GEMMA4_GAIN.items():
        if name.removesuffix(".weight").endswith(part):
            return rng.standard_normal(shape) * gain * shape[-1] ** -0.5
    if name.endswith("router.proj.weight"):  # what it reads is small: 1 / sqrt(hidden)
        return rng.standard_normal(shape) * GAIN["router"]
    if name.endswith("embed_tokens_per_layer.weight"):
        return rng.standard_normal(shape) * 0.25
    return None


def _draw(name, shape, config, rng):
    drawn = _draw_gemma4(name, shape, rng) if config["model_type"] in GEMMA4 else None
    if drawn is not None:
        return drawn
    if ".mlp.experts." in name and config["model_type"] == "gpt_oss" or name.endswith("sinks"):
        return _draw_gpt_oss(name.rsplit(".", 1)[-1], shape, config, rng)
    if re.search(r"norm(_[12f])?\.weight$", name):
        return _draw_norm(name, shape, config, rng)
    if name.endswith(("conv1d.weight", "conv.conv.weight", "A_log", "dt_bias")):
        return _draw_recurrent(name.removesuffix(".weight").rsplit(".", 1)[-1], shape, rng)
    part = name.removesuffix(".weight").rsplit(".", 1)[-1]
    if part == "D":
        return 1 + 0.5 * rng.standard_normal(shape)
    if part in ("e_score_correction_bias", "expert_bias"):
        return rng.standard_normal(shape) * 0.1
    if name.endswith(".bias"):
        return rng.standard_normal(shape) * (0.1 if "o_proj" in name or "down_proj" in name else 0.3)
    if part in ("embed_tokens", "embeddings"):
        return rng.standard_normal(shape) * _embedding_spread(config)
    if part == "lm_head":
        return rng.standard_normal(shape) * LOGIT_SPREAD * _logits_divisor(config) * shape[1] ** -0.5
    return rng.standard_normal(shape) * _gain(name, part, config) * shape[-1] ** -0.5


def draw(config, shapes, seed):
    """float32 tensors of the given shapes; the same for a seed wherever it runs."""
    rng = np.random.Generator(np.random.Philox(seed))
    return {name: _draw(name, shape, config, rng).astype(np.float32) for name, shape in shapes.items()}
