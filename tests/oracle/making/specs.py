"""What a checkpoint is made from: a family, its settings, a layout. Short ways to write the settings."""

from dataclasses import dataclass, field

from .layouts import Layout, Quantisation


@dataclass(frozen=True)
class Spec:
    name: str
    family: str
    settings: dict
    layout: Layout = field(default_factory=Layout)
    published: bool = True  # config.json in the dialect of published checkpoints, else as transformers saves it today


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 256}
YARN = {"factor": 4.0, "original_max_position_embeddings": 512}


def rope(theta, kind="default", **more):
    return {"rope_parameters": {"rope_theta": theta, "rope_type": kind, **more}}


def _shape(hidden, inter, layers, heads, kv, vocab, **more):
    return {
        "hidden_size": hidden,
        "intermediate_size": inter,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
        "max_position_embeddings": 2048,
        **more,
    }


def llama(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=256, **more):
    defaults = {"tie_word_embeddings": True, "rms_norm_eps": 1e-5, **rope(500000.0, "llama3", **LLAMA3)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def qwen2(hidden=64, inter=192, layers=2, heads=4, kv=2, vocab=320, **more):
    defaults = {"tie_word_embeddings": True, **rope(1000000.0)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def qwen3(hidden=64, inter=192, layers=2, heads=4, kv=2, vocab=256, **more):
    defaults = {"tie_word_embeddings": True, "head_dim": 32, **rope(1000000.0)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def qwen3_moe(
    hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=256, experts=8, top=2, moe_inter=64, norm=True, **more
):
    defaults = {
        "tie_word_embeddings": False,
        "head_dim": 16,
        "num_experts": experts,
        "num_experts_per_tok": top,
        "moe_intermediate_size": moe_inter,
        "norm_topk_prob": norm,
        **rope(1000000.0),
    }
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def gemma2(hidden=128, inter=192, layers=3, heads=4, kv=2, vocab=256, **more):
    defaults = {
        "head_dim": 16,
        "query_pre_attn_scalar": 12,
        "sliding_window": 16,
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 6.0,
        **rope(10000.0),
    }
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def gemma3(
    hidden=128, inter=192, layers=3, heads=4, kv=1, vocab=256, pattern=3, factor=8.0, theta=1e6, local=1e4, **more
):
    scaling = {"rope_type": "linear", "factor": factor} if factor else {"rope_type": "default"}
    defaults = {
        "head_dim": 16,
        "query_pre_attn_scalar": 24,
        "sliding_window": 16,
        "layer_types": ["sliding_attention" if (i + 1) % pattern else "full_attention" for i in range(layers)],
        "rope_parameters": {
            "full_attention": {"rope_theta": theta, **scaling},
            "sliding_attention": {"rope_theta": local, "rope_type": "default"},
        },
    }
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def _hybrid(hidden, inter, layers, linear, every, part, theta, more):
    """linear: key heads, value heads, their sizes. every: which layers have attention."""
    key_heads, value_heads, key_dim, value_dim = linear
    types = ["linear_attention" if (i + 1) % every else "full_attention" for i in range(layers)]
    defaults = {
        "head_dim": 32,
        "layer_types": types,
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": value_heads,
        "linear_key_head_dim": key_dim,
        "linear_value_head_dim": value_dim,
        **rope(theta, partial_rotary_factor=part),
    }
    return _shape(hidden, inter, layers, 4, 2, 256, **{**defaults, **more})


def qwen3_next(hidden=64, inter=96, layers=4, linear=(2, 4, 32, 32), every=4, part=0.25, theta=1e7, **more):
    experts = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 64, "norm_topk_prob": True}
    defaults = {"tie_word_embeddings": False, "shared_expert_intermediate_size": 64, **experts}
    return _hybrid(hidden, inter, layers, linear, every, part, theta, {**defaults, **more})


def qwen3_5(hidden=64, inter=128, layers=4, linear=(2, 2, 32, 32), every=4, part=0.25, theta=1e7, **more):
    return _hybrid(hidden, inter, layers, linear, every, part, theta, {"tie_word_embeddings": True, **more})


def qwen3_5_moe(**more):
    settings = qwen3_next(**more)
    for key in ("norm_topk_prob", "intermediate_size"):
        settings.pop(key)
    return settings


def gpt_oss(hidden=64, inter=64, layers=3, heads=4, kv=2, vocab=256, experts=6, top=3, **more):
    yarn = {"factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
    defaults = {
        "head_dim": 32,
        "num_local_experts": experts,
        "num_experts_per_tok": top,
        "sliding_window": 20,
        "tie_word_embeddings": False,
        **rope(150000.0, "yarn", **yarn, original_max_position_embeddings=64),
    }
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def mistral(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=256, **more):
    defaults = {"tie_word_embeddings": False, "head_dim": 24, "sliding_window": None, **rope(1000000.0)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def ministral3_rope(theta=1000000.0, original=64, beta=0.3, **more):
    """Queries grow from position `original` on; a larger beta than the published 0.1, so that it shows."""
    yarn = {"factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}
    yarn |= {"original_max_position_embeddings": original, "llama_4_scaling_beta": beta, **more}
    return rope(theta, "yarn", **yarn)


def ministral3(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=256, **more):
    defaults = {"tie_word_embeddings": True, "head_dim": 32, **ministral3_rope()}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def seed_oss(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=128, **more):
    return _shape(hidden, inter, layers, heads, kv, vocab, **{"head_dim": 24, **rope(1e6), **more})


def smollm3(hidden=64, inter=128, layers=4, heads=4, kv=2, vocab=128, **more):
    return _shape(hidden, inter, layers, heads, kv, vocab, **{"tie_word_embeddings": True, **rope(2e6), **more})


def granite(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=128, **more):
    factors = {"embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.6, "logits_scaling": 4.0}
    defaults = {"tie_word_embeddings": True, **factors, **rope(1e4)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def granite_hybrid(hidden=64, inter=32, layers=4, attend=(2,), heads=4, kv=2, vocab=256, mamba=(4, 1, 24), experts=0, top=3, **more):
    """mamba: heads, groups and the width of a state."""
    factors = {"embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.6, "logits_scaling": 4.0}
    defaults = {
        "tie_word_embeddings": True,
        "mamba_n_heads": mamba[0],
        "mamba_n_groups": mamba[1],
        "mamba_d_state": mamba[2],
        "mamba_chunk_size": 64,
        "num_local_experts": experts,
        "num_experts_per_tok": top if experts else 0,
        "shared_intermediate_size": 96,
        "layer_types": ["attention" if i in attend else "mamba" for i in range(layers)],
        "position_embedding_type": "nope",
        **factors,
        **rope(1e4),
    }
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def nemotron_h(hidden=64, inter=128, pattern="M-M*EM", heads=4, kv=2, vocab=256, mamba=(6, 2, 24, 16), experts=6, top=2, moe_inter=48, **more):
    """mamba: heads, groups, the width of a state, that of a head."""
    kinds = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
    settings = _shape(hidden, inter, len(pattern), heads, kv, vocab, head_dim=16)
    settings.pop("num_hidden_layers")
    return {
        **settings,
        "layers_block_type": [kinds[letter] for letter in pattern],
        "mamba_num_heads": mamba[0],
        "n_groups": mamba[1],
        "ssm_state_size": mamba[2],
        "mamba_head_dim": mamba[3],
        "n_routed_experts": experts,
        "num_experts_per_tok": top,
        "moe_intermediate_size": moe_inter,
        "moe_shared_expert_intermediate_size": 96,
        "routed_scaling_factor": 1.5,
        "chunk_size": 320,  # transformers joins chunks of this family wrongly (5.12.1): all prompts fit into one
        **more,
    }


def falcon_h1(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=256, mamba=(6, 2, 24, 16), **more):
    """mamba: heads, groups, the width of a state, that of a head."""
    defaults = {
        "tie_word_embeddings": False,
        "mamba_n_heads": mamba[0],
        "mamba_n_groups": mamba[1],
        "mamba_d_state": mamba[2],
        "mamba_d_head": mamba[3],
        "mamba_d_ssm": mamba[0] * mamba[3],
        "mamba_chunk_size": 64,
        "head_dim": 16,
        "embedding_multiplier": 2.5,
        "lm_head_multiplier": 0.25,
        "attention_in_multiplier": 1.2,
        "attention_out_multiplier": 0.8,
        "key_multiplier": 0.7,
        "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.6,
        "ssm_multipliers": [0.7, 0.9, 1.3, 0.8, 1.2],
        "mlp_multipliers": [0.8, 1.4],
        **rope(1e5),
    }
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def phi3(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=128, **more):
    defaults = {"original_max_position_embeddings": 2048, **rope(1e4, partial_rotary_factor=1.0)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def longrope(pairs, part=1.0, context=2048, original=1024):
    """Published factors grow with the frequency's number; ours do, too."""
    short = [1 + 0.05 * i for i in range(pairs)]
    factors = {"short_factor": short, "long_factor": [4 * f for f in short], "original_max_position_embeddings": original}
    more = {"max_position_embeddings": context, "original_max_position_embeddings": original}
    return {**more, **rope(1e4, "longrope", partial_rotary_factor=part, **factors)}


def gemma(hidden=64, inter=128, layers=2, heads=4, kv=1, vocab=128, **more):
    return _shape(hidden, inter, layers, heads, kv, vocab, **{"head_dim": 32, **rope(1e4), **more})


def olmo2(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=128, **more):
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**rope(5e5), **more})


def olmo3(hidden=64, inter=128, layers=4, heads=4, kv=2, vocab=128, full=None, **more):
    """full: the scaling, which counts in layers without a window alone; so transformers 5.17 has it, 5.12 has not."""
    ropes = {
        "full_attention": {"rope_theta": 5e5, "rope_type": "default", **(full or {})},
        "sliding_attention": {"rope_theta": 5e5, "rope_type": "default"},
    }
    defaults = {"sliding_window": 20, "rope_parameters": ropes}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def olmoe(hidden=64, inter=32, layers=2, heads=4, kv=2, vocab=128, experts=6, top=3, **more):
    mixture = {"num_experts": experts, "num_experts_per_tok": top}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**mixture, **rope(1e4), **more})


def exaone4(hidden=64, inter=128, layers=4, heads=4, kv=2, vocab=128, **more):
    defaults = {"head_dim": 24, "sliding_window": 20, "sliding_window_pattern": 4, **rope(1e6)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def exaone_moe(experts=6, top=3, moe_inter=32, **more):
    mixture = {"num_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": moe_inter}
    return exaone4(**{**mixture, "num_shared_experts": 1, "routed_scaling_factor": 1.5, **more})


def llama4(hidden=64, inter=32, layers=4, heads=4, kv=2, vocab=128, experts=4, top=1, **more):
    """Chunks and the factors on queries begin anew several times within a prompt."""
    mixture = {"num_local_experts": experts, "num_experts_per_tok": top, "intermediate_size_mlp": 96}
    places = {"head_dim": 24, "attention_chunk_size": 40, "floor_scale": 16, "attn_scale": 0.2}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**mixture, **places, **rope(5e5), **more})


def ernie(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=128, **more):
    defaults = {"tie_word_embeddings": True, "head_dim": 24, **rope(5e5)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def ernie_moe(experts=6, top=3, moe_inter=32, **more):
    mixture = {"moe_num_experts": experts, "moe_k": top, "moe_intermediate_size": moe_inter, "moe_num_shared_experts": 2}
    settings = ernie(**{"layers": 3, **mixture, **more})
    settings.pop("head_dim")  # its class has none
    return settings


def mixtral(hidden=64, inter=32, layers=2, heads=4, kv=2, vocab=128, experts=6, top=2, **more):
    mixture = {"num_local_experts": experts, "num_experts_per_tok": top}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**mixture, **rope(1e6), **more})


def minimax_m2(**more):
    """Half of a head turns."""
    return mixtral(**{"head_dim": 32, "top": 3, **rope(5e6, partial_rotary_factor=0.5), **more})


def glm(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=128, **more):
    defaults = {"head_dim": 32, "rms_norm_eps": 1e-5, **rope(1e4, partial_rotary_factor=0.5)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def glm4_moe(experts=6, top=3, moe_inter=32, **more):
    mixture = {"n_routed_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": moe_inter}
    routing = {"n_shared_experts": 1, "first_k_dense_replace": 1, "routed_scaling_factor": 1.5, "use_qk_norm": True}
    return glm(**{**mixture, **routing, **more})


def qwen2_moe(hidden=64, inter=96, layers=2, heads=4, kv=2, vocab=128, experts=6, top=3, moe_inter=32, **more):
    mixture = {"num_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": moe_inter}
    defaults = {"shared_expert_intermediate_size": 64, **mixture, **rope(1e6)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def cohere(hidden=64, inter=128, layers=2, heads=4, kv=2, vocab=128, **more):
    defaults = {"tie_word_embeddings": True, "logit_scale": 0.25, **rope(1e4)}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def cohere2(layers=4, **more):
    return cohere(**{"layers": layers, "sliding_window": 20, **more})


def hy_v3(experts=6, top=3, moe_inter=32, **more):
    mixture = {"num_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": moe_inter}
    return seed_oss(**{**mixture, "num_shared_experts": 1, "router_scaling_factor": 1.5, **more})


def latent(hidden=64, inter=96, layers=2, heads=4, kv=4, vocab=128, experts=8, top=3, moe_inter=32, **more):
    """Attention over latents, whose heads have other sizes for keys and for values, and experts."""
    widths = {"kv_lora_rank": 48, "q_lora_rank": 40, "qk_nope_head_dim": 24, "qk_rope_head_dim": 16, "v_head_dim": 20}
    mixture = {"n_routed_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": moe_inter}
    routing = {"n_shared_experts": 1, "routed_scaling_factor": 1.5, "n_group": 1, "topk_group": 1}
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**widths, **mixture, **routing, **rope(1e4), **more})


def deepseek(**more):
    return latent(**{"first_k_dense_replace": 1, "n_group": 4, "topk_group": 2, **more})


def chooses(**more):
    """DeepSeek with layers that attend to 64 positions of those they see; enough heads that no score is 0."""
    index = {"index_topk": 64, "index_n_heads": 8, "index_head_dim": 24}
    settings = deepseek(**{"layers": 3, **index, **more})
    return {**settings, "num_experts": settings["n_routed_experts"]}


def glm5(**more):
    """GLM-5, where some layers attend to what an earlier one chose."""
    settings = chooses(**{"n_group": 1, "topk_group": 1, **more})
    settings.pop("num_experts")
    return settings


def mistral4(original=64, beta=0.3, **more):
    return latent(**{"routed_scaling_factor": 1.0, **ministral3_rope(1e4, original, beta), **more})


EVEN = {"kv_lora_rank": 64, "q_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 32, "v_head_dim": 32}

FULL_ROPE = {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6}


def gemma4(hidden=64, inter=96, layers=4, heads=4, kv=2, vocab=256, pattern=2, full=FULL_ROPE, local=1e4, **more):
    """pattern: which layers see everything. A small embedding for each layer only where it is asked for."""
    defaults = {
        "head_dim": 16,
        "global_head_dim": 32,
        "sliding_window": 16,
        "final_logit_softcapping": 8.0,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": vocab,
        "layer_types": ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(layers)],
        "rope_parameters": {"full_attention": full, "sliding_attention": {"rope_type": "default", "rope_theta": local}},
    }
    settings = _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})
    settings["layer_types"][-1] = "full_attention"
    return settings


def gemma4_unified(**more):
    settings = gemma4(**more)
    return {key: value for key, value in settings.items() if not key.endswith("per_layer_input")}


def gemma4_experts(experts=6, top=2, moe_inter=32, **more):
    mixture = {"num_experts": experts, "top_k_experts": top, "moe_intermediate_size": moe_inter}
    return gemma4(enable_moe_block=True, **mixture, **more)


def lfm2(hidden=64, inter=144, layers=4, heads=4, kv=2, vocab=256, attend=(1, 3), taps=3, **more):
    defaults = {
        "tie_word_embeddings": True,
        "layer_types": ["full_attention" if i in attend else "conv" for i in range(layers)],
        "conv_L_cache": taps,
        "block_multiple_of": 16,
        "norm_eps": 1e-5,
        **rope(1000000.0),
    }
    return _shape(hidden, inter, layers, heads, kv, vocab, **{**defaults, **more})


def lfm2_moe(experts=4, top=2, moe_inter=32, dense=1, **more):
    settings = lfm2(**more)
    settings.pop("block_multiple_of")
    settings |= {"num_experts": experts, "num_experts_per_tok": top, "moe_intermediate_size": moe_inter}
    return {**settings, "num_dense_layers": dense}


def mlx(bits, group=64, mode="affine", dtype="BF16", overrides=None, name_mode=True, nested=False):
    quantisation = Quantisation(bits, group, mode)
    return Layout(dtype=dtype, mlx=quantisation, overrides=overrides or {}, name_mode=name_mode, nested=nested)


ROUTER = r".*\.((mlp|feed_forward)\.(gate|router)|router\.proj)"
SHARED = r".*\.mlp\.shared_expert_gate"
