"""Random checkpoints: family, layout, dimensions, windows and rope settings drawn from a seed."""

import random

from .layouts import Layout, Quantisation
from .packed import Packed
from .families import CHOOSING, GEMMA4, HYBRIDS, LATENT, MIXTURES
from .specs import ROUTER, SHARED, Spec, gemma2, gemma3, llama, mlx, qwen2, qwen3, qwen3_moe, rope
from .specs import gemma4, gemma4_experts, gemma4_unified, gpt_oss, lfm2, lfm2_moe, ministral3, ministral3_rope, mistral
from .specs import cohere, cohere2, ernie, ernie_moe, exaone4, exaone_moe, gemma, glm, glm4_moe, granite, hy_v3, longrope, minimax_m2
from .specs import chooses, deepseek, glm5, latent, mistral4, mixtral, olmo2, olmo3
from .specs import olmoe, phi3, qwen2_moe, qwen3_5, qwen3_5_moe, qwen3_next, seed_oss, smollm3

FAMILIES = ["llama", "qwen2", "qwen3", "qwen3_moe", "gemma3_text", "gemma2", *HYBRIDS, "gpt_oss", "mistral", "ministral3"]
FAMILIES += ["gemma4_text", "gemma4_unified_text", "lfm2", "lfm2_moe"]
SMALL = ["seed_oss", "smollm3", "granite", "phi3", "gemma", "olmo2", "olmo3", "olmoe", "exaone4", "ernie4_5", "ernie4_5_moe"]
SMALL += ["mixtral", "minimax_m2", "glm", "glm4", "glm4_moe", "qwen2_moe", "cohere", "cohere2", "hy_v3", "exaone_moe"]
FAMILIES += [*SMALL, *LATENT]
NEVER_PUBLISHED = ("minimax_m2",)  # its published config says how much of a head turns by a key that transformers ignores


def _rope(draw):
    theta = draw.choice([1e4, 1e5, 5e5, 1e6, 5e6])
    kind = draw.choice(["default", "default", "linear", "llama3", "yarn"])
    if kind == "linear":
        return rope(theta, kind, factor=draw.choice([2.0, 4.0, 8.0]))
    if kind == "llama3":
        original = draw.choice([64, 128, 256, 512])
        factors = {"low_freq_factor": 1.0, "high_freq_factor": draw.choice([2.0, 4.0])}
        return rope(
            theta, kind, factor=draw.choice([4.0, 8.0, 32.0]), original_max_position_embeddings=original, **factors
        )
    if kind == "yarn":
        more = draw.choice(
            [
                {},
                {},
                {"attention_factor": 1.25},
                {"beta_fast": 16.0, "beta_slow": 2.0},
                {"mscale": 1.2, "mscale_all_dim": 0.8},
                {"truncate": False},
            ]
        )
        original = draw.choice([128, 512, 1024])
        return rope(theta, kind, factor=draw.choice([2.0, 4.0]), original_max_position_embeddings=original, **more)
    return rope(theta)


def _affine(draw, routed, nested):
    bits, group = draw.choice([2, 3, 4, 4, 4, 5, 6, 8]), draw.choice([32, 64, 64, 128])
    overrides = {}
    if draw.random() < 0.4:
        overrides[draw.choice([r".*\.v_proj", r".*\.down_proj", r".*layers\.0\..*"])] = Quantisation(
            draw.choice([6, 8]), 32
        )
    if draw.random() < 0.2:
        overrides[r".*\.up_proj"] = False
    if routed and draw.random() < 0.6:
        overrides[ROUTER] = overrides[SHARED] = draw.choice([False, Quantisation(8, 32)])
    dtype = draw.choice(["BF16", "BF16", "F16"])
    return mlx(bits, group, dtype=dtype, overrides=overrides, name_mode=draw.random() < 0.5, nested=nested)


def _packed(draw, nested):
    """Another quantiser's layout."""
    kind = draw.choice(["gptq", "gptq", "awq", "int", "int", "int8", "fp8", "nvfp4", "mxfp4", "modelopt", "bnb4", "bnb8"])
    how = {"scale": draw.choice(["F16", "BF16", "F32"]), "symmetric": draw.random() < 0.5}
    if kind in ("gptq", "int"):
        how["bits"] = draw.choice([2, 3, 4, 8] if kind == "gptq" else [3, 4, 5, 6, 8])
        how["order"], how["version"] = draw.random() < 0.3, draw.choice([1, 2])
    if kind in ("gptq", "int", "awq", "int8"):
        how["group"] = draw.choice([16, 32, 64] if how.get("order") else [0, 16, 32, 64])
    if kind == "awq":
        how["symmetric"] = False
    if kind == "fp8":
        how["block"] = draw.choice([(), (), (128, 128), (1, 128), (64, 64)])
        how["whole"] = not how["block"] and draw.random() < 0.3
    how["double"], how["table"] = draw.random() < 0.5, draw.choice(["nf4", "fp4"])
    return Layout(dtype=draw.choice(["BF16", "F16"]), packed=Packed(kind, **how), nested=nested)


def _layout(draw, family):
    kind = draw.choice(["float", "fp8", "affine", "affine", "affine", "micro", "packed", "packed"])
    mixture = family in (*MIXTURES, "gemma4_text")
    if family == "gpt_oss" and kind in ("fp8", "float"):
        return Layout(mxfp4=kind == "fp8", shards=draw.choice([1, 2]))
    if family == "mistral4" and kind in ("fp8", "packed"):  # experts that its class does not read
        kind = "affine"
    if kind == "packed" and family not in (*GEMMA4, "gpt_oss", "lfm2", "lfm2_moe"):
        return _packed(draw, family in ("qwen3_5_text", "qwen3_5_moe_text") and draw.random() < 0.7)
    kind = "affine" if kind == "packed" else kind
    nested = family in ("qwen3_5_text", "qwen3_5_moe_text", *GEMMA4) and draw.random() < 0.7
    if kind == "affine":
        return _affine(draw, mixture, nested)
    if kind == "micro":
        mode, bits, group = draw.choice([("mxfp4", 4, 32), ("nvfp4", 4, 16), ("mxfp8", 8, 32)])
        gates = {ROUTER: Quantisation(8, 64), SHARED: Quantisation(8, 64)} if mixture else {}
        return mlx(bits, group, mode, overrides=gates, nested=nested)
    if kind == "fp8":
        whole = family == "ministral3"
        return Layout(fp8=True, fp8_whole=whole, fp8_scale=draw.choice(["BF16", "F32"]), nested=nested)
    experts = draw.choice(["split", "fused", "transposed"]) if family == "qwen3_moe" else "split"
    stacked = family in (*GEMMA4, "mistral4")
    if mixture and family in HYBRIDS or stacked:
        experts = "fused" if stacked else draw.choice(["split", "fused"])
    return Layout(
        dtype=draw.choice(["BF16", "BF16", "F16", "F32"]),
        shards=draw.choice([1, 1, 2, 4]),
        experts=experts,
        store_tied=draw.random() < 0.3,
        nested=nested,
    )


def _widths(draw, layout):
    """hidden, intermediate and expert widths that the layout can hold, most of them odd in some way."""
    if layout.mlx:
        step = max(layout.mlx.group, 64)  # overrides of group 32 and 64 divide it
        hidden = step * draw.randint(1, max(1, 192 // step))
        return hidden, 32 * draw.randint(2, 8), 64 * draw.randint(1, 2)
    if layout.packed:
        return 32 * draw.randint(2, 5), 32 * draw.randint(2, 6), 32 * draw.randint(1, 2)
    hidden = 16 * draw.randint(3, 12)
    return hidden, 8 * draw.randint(5, 40), 8 * draw.randint(3, 9)


def _heads(draw, hidden):
    """Heads that divide hidden (transformers asks for it) into an even head size, and a number of kv heads."""
    heads = draw.choice([n for n in range(2, 9) if hidden % n == 0 and hidden // n % 2 == 0 and hidden // n >= 8])
    return heads, draw.choice([n for n in range(1, heads + 1) if heads % n == 0])


def _window(draw, layers):
    if draw.random() < 0.6:
        return {}
    return {
        "use_sliding_window": True,
        "sliding_window": draw.randint(3, 70),
        "max_window_layers": draw.randint(0, layers),
    }


def _moe(draw, shape, moe_inter, more):
    experts = draw.randint(3, 12)
    sparse = draw.choice([{}, {}, {"mlp_only_layers": [0]}, {"decoder_sparse_step": 2}])
    window = draw.choice([{}, {}, {"use_sliding_window": True, "sliding_window": draw.randint(3, 70)}])
    top, norm = draw.randint(2, min(4, experts)), draw.random() < 0.5  # of one alone, every near tie would show
    layers = max(2, shape["layers"])  # so that one of them is sparse
    return qwen3_moe(
        **{**shape, "layers": layers}, experts=experts, top=top, moe_inter=moe_inter, norm=norm, **sparse, **window, **more
    )


def _gemma(draw, shape, head_dim):
    return gemma3(
        **shape,
        pattern=draw.randint(2, 4),
        factor=draw.choice([None, 4.0, 8.0]),
        theta=draw.choice([1e5, 1e6]),
        local=draw.choice([1e3, 1e4]),
        head_dim=head_dim,
        query_pre_attn_scalar=draw.choice([head_dim, head_dim + 8, 24]),
        sliding_window=draw.randint(3, 70),
        final_logit_softcapping=draw.choice([None, None, 8.0]),
    )


def _gemma2(draw, shape, head_dim):
    return gemma2(
        **shape,
        head_dim=head_dim,
        query_pre_attn_scalar=draw.choice([head_dim, head_dim + 8, 24]),
        sliding_window=draw.randint(3, 70),
        attn_logit_softcapping=draw.choice([None, 2.0, 30.0]),
        final_logit_softcapping=draw.choice([None, 6.0, 30.0]),
        **rope(draw.choice([1e4, 1e5])),
    )


def _hybrid(draw, family, hidden, inter, moe_inter, tied, eps):
    """Heads of values that a group of the quantisation divides, where there is one."""
    key_heads, share = draw.randint(1, 3), draw.randint(1, 3)
    value_dim = draw.choice([64, 128]) if hidden % 64 == 0 else draw.choice([8, 20, 32, 40, 64])
    layers, every = draw.randint(2, 5), draw.randint(2, 4)
    shape = {
        "hidden": hidden,
        "layers": max(layers, every),
        "every": every,
        "linear": (key_heads, key_heads * share, draw.choice([8, 16, 24, 64]), value_dim),
        "part": draw.choice([0.25, 0.5, 1.0]),
        "theta": draw.choice([1e4, 1e6, 1e7]),
        "linear_conv_kernel_dim": draw.choice([4, 4, 2, 3]),
        **tied,
        **eps,
    }
    if family == "qwen3_5_text":
        return qwen3_5(inter=inter, **shape)
    experts = draw.randint(3, 12)
    shape["num_experts"], shape["num_experts_per_tok"] = experts, draw.randint(2, min(4, experts))
    shape["moe_intermediate_size"], shape["shared_expert_intermediate_size"] = moe_inter, moe_inter
    if family == "qwen3_5_moe_text":
        return qwen3_5_moe(**shape)
    more = draw.choice([{}, {"mlp_only_layers": [0]}, {"norm_topk_prob": False}])
    return qwen3_next(inter=inter, **shape, **more)


def _gpt_oss(draw, shape, head_dim):
    """Widths that blocks of 32 divide."""
    experts, layers = draw.randint(3, 12), shape["layers"]
    hidden, inter = 32 * draw.randint(2, 5), 32 * draw.randint(1, 4)
    types = ["sliding_attention", "full_attention"]
    more = draw.choice([{}, {"layer_types": [draw.choice(types) for _ in range(layers)]}, {"attention_bias": False}])
    scaling = _rope(draw)
    if scaling["rope_parameters"]["rope_type"] == "default":
        scaling = {}  # what its class takes no rope_scaling for is yarn
    sizes = {"hidden": hidden, "inter": inter, "heads": 4, "kv": draw.choice([1, 2, 4]), "head_dim": head_dim}
    top, window = draw.randint(2, min(4, experts)), draw.randint(3, 70)
    return gpt_oss(**{**shape, **sizes}, experts=experts, top=top, sliding_window=window, **more, **scaling)


def _gemma4(draw, family, shape, moe_inter, layout):
    """Layers that share keys, read them as values, have experts or small embeddings, in any company."""
    step = layout.mlx.group if layout.mlx else 8
    full = {"rope_type": draw.choice(["proportional", "proportional", "default"]), "rope_theta": draw.choice([1e4, 1e6])}
    if full["rope_type"] == "proportional":
        full["partial_rotary_factor"] = draw.choice([0.25, 0.5, 1.0])
    more = {
        "layers": draw.randint(3, 8),
        "pattern": draw.randint(2, 4),
        "full": full,
        "local": draw.choice([1e3, 1e4]),
        "head_dim": draw.choice([16, 24, 32, 64]),
        "global_head_dim": draw.choice([16, 32, 48, 64, 128]),
        "sliding_window": draw.randint(3, 70),
        "final_logit_softcapping": draw.choice([None, 8.0, 30.0]),
        "attention_bias": draw.random() < 0.2,
        "tie_word_embeddings": draw.random() < 0.7,
        "attention_k_eq_v": draw.random() < 0.5,
        "num_global_key_value_heads": draw.choice([None, shape["heads"], 1]),
    }
    more["layers"] = max(more["layers"], 2 * more["pattern"])
    if draw.random() < 0.4:
        more["num_kv_shared_layers"] = draw.randint(1, more["layers"] - more["pattern"])
        more["use_double_wide_mlp"] = draw.random() < 0.5
    if family == "gemma4_unified_text":
        return gemma4_unified(**{**shape, **more})
    if draw.random() < 0.5:
        more["hidden_size_per_layer_input"] = step * draw.randint(1, 3)
    if draw.random() < 0.5:
        experts = draw.randint(3, 12)
        return gemma4_experts(experts, draw.randint(2, min(4, experts)), moe_inter, **{**shape, **more})
    return gemma4(**{**shape, **more})


def _lfm2(draw, family, shape, moe_inter, tied):
    layers = shape["layers"]
    attend = [draw.randrange(layers), *(i for i in range(layers) if draw.random() < 0.4)]
    adjusted = {"block_ffn_dim_multiplier": draw.choice([1.0, 1.3, 0.7]), "block_multiple_of": 32}
    more = {**draw.choice([adjusted, {"block_auto_adjust_ff_dim": False}]), "conv_bias": draw.random() < 0.3}
    same = {"norm_eps": draw.choice([1e-5, 1e-3]), **rope(draw.choice([1e4, 1e6]))}
    same |= {**shape, **tied, "attend": attend, "taps": draw.choice([2, 3, 3, 4, 5])}
    if family == "lfm2":
        return lfm2(**same, **more)
    experts = draw.randint(3, 12)
    routing = {"norm_topk_prob": draw.random() < 0.7, "use_expert_bias": draw.random() < 0.7}
    top, dense = draw.randint(2, min(4, experts)), draw.randint(0, layers)
    return lfm2_moe(experts=experts, top=top, moe_inter=moe_inter, dense=dense, **routing, **same)


def _mixture(draw, moe_inter):
    experts = draw.randint(3, 12)
    return {"experts": experts, "top": draw.randint(2, min(4, experts)), "moe_inter": moe_inter}


def _small_mixture(draw, family, shape, moe_inter, more):
    """Families that are a config and little else, with experts."""
    mixture = _mixture(draw, moe_inter)
    part = {"partial_rotary_factor": draw.choice([0.5, 1.0])}
    if family == "ernie4_5_moe":
        routing = {"moe_layer_start_index": draw.randint(0, 1), "moe_layer_interval": draw.randint(1, 2)}
        return ernie_moe(**shape, **mixture, **more, **routing, moe_num_shared_experts=draw.randint(0, 2))
    if family == "qwen2_moe":
        return qwen2_moe(**shape, **mixture, **more, shared_expert_intermediate_size=moe_inter, **_rope(draw))
    if family == "hy_v3":
        return hy_v3(**shape, **mixture, **more, head_dim=draw.choice([16, 32, 48]), **_rope(draw))
    if family == "exaone_moe":
        routing = {"norm_topk_prob": draw.random() < 0.7, "num_shared_experts": draw.randint(1, 2)}
        routing |= {"sliding_window": draw.randint(3, 70), "first_k_dense_replace": draw.randint(0, 1)}
        return exaone_moe(**shape, **mixture, **more, **routing, head_dim=draw.choice([16, 32, 48]))
    if family == "glm4_moe":
        routing = {"n_shared_experts": draw.randint(1, 2), "use_qk_norm": draw.random() < 0.5}
        routing |= {"norm_topk_prob": draw.random() < 0.7, "attention_bias": draw.random() < 0.5}
        return glm4_moe(**shape, **mixture, **more, **routing, head_dim=draw.choice([16, 32, 48]))
    mixture.pop("moe_inter")
    shape = {**shape, "inter": moe_inter}
    if family == "olmoe":
        return olmoe(**shape, **mixture, **more, norm_topk_prob=draw.random() < 0.5, **_rope(draw))
    if family == "mixtral":
        return mixtral(**shape, **mixture, **more, sliding_window=draw.choice([None, draw.randint(3, 70)]), **_rope(draw))
    return minimax_m2(**shape, **mixture, **more, head_dim=draw.choice([16, 32, 48]), **rope(draw.choice([1e4, 5e6]), **part))


def _latent(draw, family, shape, moe_inter, more):
    """Any widths, of which some are no multiple of what is quantised together."""
    widths = {
        "kv_lora_rank": draw.choice([16, 40, 64, 128]),
        "q_lora_rank": draw.choice([None, 24, 64]),
        "qk_nope_head_dim": draw.choice([8, 24, 32, 64]),
        "qk_rope_head_dim": draw.choice([8, 16, 32]),
        "v_head_dim": draw.choice([12, 32, 64]),
    }
    experts = 4 * draw.randint(1, 3)
    mixture = {"experts": experts, "top": draw.randint(2, 4), "moe_inter": moe_inter}
    routing = {"n_shared_experts": draw.randint(1, 2), "norm_topk_prob": draw.random() < 0.7}
    same = {**shape, "kv": shape["heads"], "layers": max(2, shape["layers"]), **widths, **mixture, **routing, **more}
    same |= {"attention_bias": draw.random() < 0.3, "rope_interleave": draw.random() < 0.7}
    scaling = _rope(draw)
    if family == "mistral4":
        return mistral4(draw.choice([16, 40, 64]), draw.choice([0.0, 0.1, 0.3]), **same)
    if family == "glm4_moe_lite":
        return latent(**same, **scaling)
    if family in CHOOSING:
        index = {"index_topk": draw.randint(2, 300), "index_n_heads": draw.randint(6, 12)}
        index["index_head_dim"] = widths["qk_rope_head_dim"] + draw.choice([0, 8, 32])
        same |= {"q_lora_rank": widths["q_lora_rank"] or 40, **index}
        same.pop("rope_interleave")
        if family == "deepseek_v32":
            return chooses(**same, **scaling)
        return glm5(**same, **scaling, index_topk_freq=draw.randint(1, 3))
    groups = draw.choice([{}, {"n_group": 1, "topk_group": 1}, {"n_group": 2, "topk_group": 1, "top": 2}])
    return deepseek(**{**same, **scaling, **groups, "first_k_dense_replace": draw.randint(0, 1)})


def _small(draw, family, shape, head_dim, more):
    """The same without experts."""
    window, layers = draw.randint(3, 70), shape["layers"]
    if family == "seed_oss":
        return seed_oss(**shape, **more, head_dim=head_dim, attention_out_bias=draw.random() < 0.5, **_rope(draw))
    if family in ("cohere", "cohere2"):
        same = {"tie_word_embeddings": more["tie_word_embeddings"], "layer_norm_eps": more["rms_norm_eps"]}
        same |= {"logit_scale": draw.choice([0.0625, 1.0]), "attention_bias": draw.random() < 0.3}
        return cohere(**shape, **same) if family == "cohere" else cohere2(**shape, **same, sliding_window=window)
    if family == "smollm3":
        return smollm3(**shape, **more, no_rope_layers=[draw.randint(0, 1) for _ in range(layers)], **_rope(draw))
    if family == "granite":
        factors = {"residual_multiplier": draw.choice([0.2, 1.0]), "logits_scaling": draw.choice([1.0, 8.0])}
        return granite(**shape, **more, **factors, embedding_multiplier=draw.choice([1.0, 12.0]), **_rope(draw))
    if family == "phi3":
        pairs = shape["hidden"] // shape["heads"] // 2
        return phi3(**shape, **more, **draw.choice([{}, {"sliding_window": window}, longrope(pairs)]))
    if family == "gemma":
        return gemma(**shape, head_dim=head_dim, **rope(draw.choice([1e4, 1e5])))
    if family == "olmo2":
        return olmo2(**shape, **more, attention_bias=draw.random() < 0.3, **_rope(draw))
    if family == "olmo3":
        return olmo3(**shape, **more, sliding_window=window, full=_rope(draw)["rope_parameters"])
    if family == "exaone4":
        full = {"sliding_window": None, "layer_types": layers * ["full_attention"]}
        return exaone4(**shape, **more, head_dim=head_dim, **draw.choice([full, {"sliding_window": window}]))
    if family == "ernie4_5":
        return ernie(**shape, **more, head_dim=head_dim, use_bias=draw.random() < 0.3)
    return glm(**shape, **more, head_dim=draw.choice([16, 32, 48]), attention_bias=draw.random() < 0.5)


def _settings(draw, family, layout):
    hidden, inter, moe_inter = _widths(draw, layout)
    heads, kv = _heads(draw, hidden)
    layers = draw.randint(1, 4)
    shape = {
        "hidden": hidden,
        "inter": inter,
        "layers": layers,
        "heads": heads,
        "kv": kv,
        "vocab": draw.randint(150, 500),
    }
    head_dim = draw.choice([16, 24, 32, 40, 64, 80])
    eps = {"rms_norm_eps": draw.choice([1e-5, 1e-6])}
    tied = {"tie_word_embeddings": draw.random() < 0.5}
    if family in HYBRIDS:
        return _hybrid(draw, family, hidden, inter, moe_inter, tied, eps)
    if family == "gemma3_text":
        return _gemma(draw, {**shape, "layers": layers + 2}, head_dim)
    if family in GEMMA4:
        return _gemma4(draw, family, shape, moe_inter, layout)
    if family == "gemma2":
        return _gemma2(draw, shape, head_dim)
    if family == "llama":
        biases = {"attention_bias": draw.random() < 0.3, "mlp_bias": draw.random() < 0.3}
        size = draw.choice([{}, {"head_dim": head_dim}])
        return llama(**shape, **tied, **eps, **size, **biases, **_rope(draw))
    if family == "gpt_oss":
        return _gpt_oss(draw, shape, head_dim)
    if family in ("lfm2", "lfm2_moe"):
        return _lfm2(draw, family, shape, moe_inter, tied)
    if family in ("mistral", "ministral3"):
        more = {**tied, **eps, "head_dim": head_dim, "sliding_window": draw.choice([None, None, draw.randint(3, 70)])}
        if family == "mistral":
            return mistral(**shape, **more, **_rope(draw))
        original, beta = draw.choice([64, 128, 512]), draw.choice([0.1, 0.3])  # else attention is too sharp to round
        scaling = ministral3_rope(draw.choice([1e4, 1e6]), original, beta, mscale_all_dim=draw.choice([0.0, 1.0]))
        return ministral3(**shape, **more, **scaling)
    if family in LATENT:
        return _latent(draw, family, shape, moe_inter, {**tied, **eps})
    if family in SMALL and family in MIXTURES:
        return _small_mixture(draw, family, shape, moe_inter, {**tied, **eps})
    if family in SMALL:
        return _small(draw, family, shape, head_dim, {**tied, **eps})
    if family == "qwen2":
        return qwen2(**shape, **tied, **eps, **_window(draw, layers), **_rope(draw))
    more = {**tied, **eps, **_rope(draw), "head_dim": head_dim, "attention_bias": draw.random() < 0.2}
    if family == "qwen3":
        return qwen3(**shape, **more, **_window(draw, layers))
    return _moe(draw, shape, moe_inter, more)


def specs(count, seed):
    """Families take turns, so that a few checkpoints cover them all."""
    made = []
    for i in range(count):
        draw = random.Random(f"{seed}/{i}")
        family = FAMILIES[i % len(FAMILIES)]
        layout = _layout(draw, family)
        name = f"other-{seed}-{i:03d}-{family.replace('_', '')}"
        made.append(Spec(name, family, _settings(draw, family, layout), layout, published=draw.random() < 0.5 and family not in NEVER_PUBLISHED))
    return made
