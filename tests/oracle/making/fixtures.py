"""The committed checkpoints: every family, every layout, and between them every detail that is easily got wrong."""

from .layouts import Layout, Quantisation
from .packed import Packed
from .specs import ROUTER, SHARED, YARN, Spec, gemma2, gemma3, llama, mlx, qwen2, qwen3, qwen3_moe, rope
from .specs import gemma4, gemma4_experts, gemma4_unified, gpt_oss, lfm2, lfm2_moe, ministral3, ministral3_rope, mistral
from .specs import cohere, cohere2, ernie, ernie_moe, exaone4, exaone_moe, gemma, glm, glm4_moe, granite, hy_v3, llama4, longrope, minimax_m2
from .specs import EVEN, chooses, deepseek, falcon_h1, glm5, granite_hybrid, latent, mistral4, mixtral, nemotron_h, olmo2, olmo3
from .specs import olmoe, phi3, qwen2_moe, qwen3_5, qwen3_5_moe, qwen3_next, seed_oss, smollm3

EPS = {"rms_norm_eps": 1e-3}  # large enough to show where another is used
UNTIED = {"tie_word_embeddings": False}
YARN_ROPE = rope(10000.0, "yarn", **YARN)

HUGGING_FACE = [
    Spec("llama-bf16", "llama", llama(**EPS)),
    Spec(
        "llama-bias-f32",
        "llama",
        llama(
            inter=104,
            heads=2,
            kv=1,
            vocab=160,
            head_dim=24,
            attention_bias=True,
            mlp_bias=True,
            **UNTIED,
            **rope(10000.0)
        ),
        Layout(dtype="F32"),
        published=False,
    ),
    Spec("llama-yarn-f16", "llama", llama(kv=1, head_dim=32, **UNTIED, **YARN_ROPE), Layout(dtype="F16")),
    Spec("qwen2-bf16", "qwen2", qwen2(hidden=96, inter=104, heads=6, vocab=256)),
    Spec(
        "qwen2-window-bf16",
        "qwen2",
        qwen2(inter=104, layers=3, use_sliding_window=True, sliding_window=16, max_window_layers=1, **UNTIED),
    ),
    Spec(
        "qwen3-sharded-bf16",
        "qwen3",
        qwen3(inter=104, layers=3, head_dim=24, **EPS, **UNTIED),
        Layout(shards=3),
        published=False,
    ),
    Spec("qwen3-fp8", "qwen3", qwen3(hidden=128, inter=136, head_dim=40), Layout(fp8=True)),
    Spec("qwen3moe-bf16", "qwen3_moe", qwen3_moe(moe_inter=24, **EPS)),
    Spec(
        "qwen3moe-dense-layers-bf16",
        "qwen3_moe",
        qwen3_moe(
            inter=72, layers=4, experts=6, top=3, moe_inter=32, norm=False, decoder_sparse_step=2, mlp_only_layers=[1]
        ),
        published=False,
    ),
    Spec("qwen3moe-fused-bf16", "qwen3_moe", qwen3_moe(vocab=192, experts=4, norm=False), Layout(experts="fused")),
    Spec(
        "qwen3moe-transposed-bf16",
        "qwen3_moe",
        qwen3_moe(vocab=192, experts=4, moe_inter=48),
        Layout(experts="transposed"),
    ),
    Spec("gemma2-bf16", "gemma2", gemma2(inter=40)),
    Spec(
        "gemma3-bf16",
        "gemma3_text",
        gemma3(inter=40, layers=4, heads=2, head_dim=32, query_pre_attn_scalar=40, **EPS),
        published=False,
    ),
    Spec(
        "gemma3-softcap-bf16",
        "gemma3_text",
        gemma3(inter=40, pattern=2, factor=None, sliding_window=33, final_logit_softcapping=5.0),
    ),
]

MLX_FAMILIES = [
    Spec("llama-mlx-4bit", "llama", llama(hidden=128, head_dim=32, vocab=320), mlx(4, name_mode=False)),
    Spec("llama-mlx-6bit", "llama", llama(attention_bias=True, mlp_bias=True, **UNTIED, **YARN_ROPE), mlx(6)),
    Spec("llama-mlx-8bit-f16", "llama", llama(layers=3, kv=4), mlx(8, dtype="F16")),
    Spec("qwen2-mlx-4bit-g128", "qwen2", qwen2(hidden=128, inter=256), mlx(4, 128)),
    Spec("qwen2-mlx-6bit", "qwen2", qwen2(**UNTIED), mlx(6)),
    Spec(
        "qwen2-mlx-8bit", "qwen2", qwen2(inter=160), mlx(8), published=False
    ),  # down_proj does not divide: it stays bf16
    Spec("qwen3-mlx-4bit-g32", "qwen3", qwen3(inter=160, **UNTIED), mlx(4, 32)),
    Spec("qwen3-mlx-6bit", "qwen3", qwen3(kv=1), mlx(6), published=False),
    Spec("qwen3-mlx-8bit", "qwen3", qwen3(**UNTIED, **rope(1000000.0, "yarn", **YARN)), mlx(8)),
    Spec(
        "qwen3moe-mlx-4bit",
        "qwen3_moe",
        qwen3_moe(hidden=128, experts=6, top=3),
        mlx(4, overrides={ROUTER: Quantisation(8)}),
    ),
    Spec("qwen3moe-mlx-6bit", "qwen3_moe", qwen3_moe(norm=False), mlx(6, overrides={ROUTER: False}), published=False),
    Spec("qwen3moe-mlx-8bit", "qwen3_moe", qwen3_moe(layers=3, experts=6, mlp_only_layers=[1]), mlx(8)),
    Spec("gemma2-mlx-4bit", "gemma2", gemma2(), mlx(4), published=False),
    Spec("gemma3-mlx-4bit", "gemma3_text", gemma3(), mlx(4)),
    Spec("gemma3-mlx-6bit", "gemma3_text", gemma3(heads=2, kv=2, factor=None), mlx(6)),
    Spec("gemma3-mlx-8bit", "gemma3_text", gemma3(inter=128, pattern=2, sliding_window=20), mlx(8), published=False),
]

MIXED = {
    r".*\.(v_proj|down_proj)": Quantisation(6),
    r"lm_head": Quantisation(6, 32),
    r".*layers\.1\..*gate_proj": False,
}

MLX_FORMATS = [
    Spec("qwen3-mlx-2bit-g32", "qwen3", qwen3(), mlx(2, 32)),
    Spec("llama-mlx-3bit-g128", "llama", llama(hidden=128, heads=2, kv=1, **UNTIED), mlx(3, 128)),
    Spec("qwen3-mlx-5bit", "qwen3", qwen3(**UNTIED), mlx(5)),
    Spec("llama-mlx-mixed-3-6bit", "llama", llama(layers=3, **UNTIED), mlx(3, overrides=MIXED)),
    Spec("llama-mlx-mxfp4", "llama", llama(**UNTIED), mlx(4, 32, "mxfp4")),
    Spec("qwen3-mlx-nvfp4", "qwen3", qwen3(inter=176), mlx(4, 16, "nvfp4")),
    Spec("qwen3-mlx-mxfp8", "qwen3", qwen3(**UNTIED), mlx(8, 32, "mxfp8")),
    # the router's entry names no mode: it is affine, whatever the mode of the rest
    Spec("qwen3moe-mlx-mxfp4", "qwen3_moe", qwen3_moe(), mlx(4, 32, "mxfp4", overrides={ROUTER: Quantisation(8)})),
]

GATES = {ROUTER: Quantisation(8), SHARED: Quantisation(8)}

# sizes of heads that are no multiple of a register; one, two and three value heads to a key head
HYBRIDS = [
    Spec("qwen3next-bf16", "qwen3_next", qwen3_next(linear=(2, 4, 24, 40), moe_intermediate_size=24, **EPS)),
    Spec("qwen3next-mlx-4bit", "qwen3_next", qwen3_next(hidden=128), mlx(4, overrides=GATES), published=False),
    Spec("qwen35-bf16", "qwen3_5_text", qwen3_5(linear=(2, 6, 16, 32)), Layout(nested=True)),
    Spec(
        "qwen35-text-bf16",
        "qwen3_5_text",
        qwen3_5(layers=3, every=2, linear=(3, 3, 20, 12), part=0.5, rms_norm_eps=1e-3, **UNTIED),
        published=False,
    ),
    Spec("qwen35-mlx-4bit", "qwen3_5_text", qwen3_5(hidden=128, linear=(2, 4, 32, 32)), mlx(4, nested=True)),
    Spec(
        "qwen35moe-bf16", "qwen3_5_moe_text", qwen3_5_moe(linear=(2, 2, 16, 64)), Layout(experts="fused", nested=True)
    ),
    Spec(
        "qwen35moe-mlx-4bit",
        "qwen3_5_moe_text",
        qwen3_5_moe(hidden=128, layers=3, every=3, linear=(1, 2, 64, 64)),
        mlx(4, overrides=GATES, nested=True),
    ),
]

PUBLISHED_MXFP4 = Layout(mxfp4=True)
WIDE = {"hidden": 96, "inter": 64}  # where transposed experts are known by their shape

GPT_OSS = [
    Spec("gptoss-bf16", "gpt_oss", gpt_oss(layers=2, **EPS)),  # as in published ones, both widths are equal
    Spec(
        "gptoss-mxfp4",  # test_families.py has it talk, so its vocabulary has room for a tokenizer
        "gpt_oss",
        gpt_oss(layers=2, heads=6, experts=8, top=2, head_dim=16, sliding_window=33, vocab=320, **WIDE),
        PUBLISHED_MXFP4,
    ),
    Spec(
        "gptoss-mlx-mxfp4-q8",
        "gpt_oss",
        gpt_oss(layers=2, layer_types=["full_attention", "sliding_attention"], **WIDE),
        mlx(4, 32, "mxfp4", overrides={r".*(self_attn.*|router|embed_tokens|lm_head)": Quantisation(8, 32)}),
        published=False,
    ),
]

FP8_WHOLE = Layout(fp8=True, fp8_whole=True)
ODD = {"hidden": 144, "inter": 136, "head_dim": 40, "heads": 3, "kv": 1}  # blocks of 128 end within a row

# Ministral 3 is in MLX's layout in making/seen.py, with pictures
MISTRALS = [
    Spec("mistral-window-bf16", "mistral", mistral(inter=104, sliding_window=40, **EPS, **rope(10000.0))),
    Spec("mistral-mlx-4bit", "mistral", mistral(hidden=128, head_dim=32, kv=1), mlx(4)),
    Spec(
        "ministral3-fp8",
        "ministral3",
        ministral3(**ODD, **UNTIED, **ministral3_rope(original=40, beta=0.2)),
        FP8_WHOLE,
        published=False,
    ),
]

SAME = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}  # values are keys, of fewer heads
ASIDE = {"hidden_size_per_layer_input": 16, "num_kv_shared_layers": 3, "use_double_wide_mlp": True}
FUSED = Layout(experts="fused", nested=True)

# 31B, E2B, 26B-A4B and 12B in small
GEMMA4 = [
    Spec("gemma4-bf16", "gemma4_text", gemma4(**SAME, **EPS), Layout(nested=True)),
    Spec("gemma4-mlx-4bit", "gemma4_text", gemma4(hidden=128, inter=128, **SAME), mlx(4, nested=True)),
    Spec(
        "gemma4-aside-bf16",
        "gemma4_text",
        gemma4(layers=7, pattern=3, kv=1, sliding_window=20, **ASIDE),
        Layout(nested=True),
    ),
    Spec(
        "gemma4-aside-mlx-4bit",
        "gemma4_text",
        gemma4(hidden=128, inter=128, layers=5, kv=1, **{**ASIDE, "hidden_size_per_layer_input": 32}),
        mlx(4, 32, nested=True),
        published=False,
    ),
    Spec("gemma4-moe-bf16", "gemma4_text", gemma4_experts(layers=3, **SAME), FUSED, published=False),
    Spec(
        "gemma4-moe-mlx-4bit",
        "gemma4_text",
        gemma4_experts(hidden=128, inter=128, layers=2, moe_inter=64, top=3, **SAME),
        mlx(4, overrides={ROUTER: Quantisation(8, 64)}, nested=True),
    ),
    Spec("gemma4unified-bf16", "gemma4_unified_text", gemma4_unified(layers=3, pattern=3, **SAME), Layout(nested=True)),
    Spec(
        "gemma4unified-mlx-4bit",
        "gemma4_unified_text",
        gemma4_unified(hidden=128, inter=128, layers=3, pattern=3, **SAME),
        mlx(4, nested=True),
    ),
]

LFMS = [
    Spec("lfm2-bf16", "lfm2", lfm2(norm_eps=1e-3, block_ffn_dim_multiplier=1.1)),
    Spec(
        "lfm2-bias-bf16",
        "lfm2",
        lfm2(layers=3, attend=(0,), taps=4, inter=104, block_auto_adjust_ff_dim=False, conv_bias=True, **UNTIED),
        published=False,
    ),
    Spec(
        "lfm2moe-bf16",
        "lfm2_moe",
        lfm2_moe(layers=2, attend=(0,), moe_inter=16, inter=48, vocab=128, routed_scaling_factor=1.5),
    ),
    Spec(
        "lfm2moe-mlx-4bit",
        "lfm2_moe",
        lfm2_moe(hidden=128, inter=64, moe_inter=64, layers=2, attend=(0,), vocab=128),
        mlx(4, overrides={ROUTER: Quantisation(8, 64)}),
    ),
    Spec("lfm2-mlx-4bit", "lfm2", lfm2(hidden=128, inter=192, layers=3, attend=(2,), block_multiple_of=64), mlx(4)),
]


def packed(kind, plain=r"$^", dtype="BF16", nested=False, **how):
    return Layout(dtype=dtype, packed=Packed(kind, **how), plain=plain, nested=nested)


TINY = {"hidden": 64, "inter": 128, "vocab": 128}
FEW = {"hidden": 64, "vocab": 64, "experts": 4, "moe_inter": 32}
KEPT = r"layers\.1.*v_proj"

PACKED = [
    Spec("llama-gptq-4bit", "llama", llama(**TINY), packed("gptq", group=32, symmetric=True, dtype="F16")),
    Spec("llama-gptq-3bit-order", "llama", llama(**TINY, **UNTIED), packed("gptq", bits=3, group=32, order=True)),
    Spec("llama-gptq-2bit", "llama", llama(**TINY), packed("gptq", bits=2, group=32, scale="BF16")),
    Spec("qwen3-gptq-8bit-v2", "qwen3", qwen3(**{**TINY, "inter": 96}), packed("gptq", bits=8, version=2, plain=KEPT)),
    Spec("qwen3moe-gptq-4bit", "qwen3_moe", qwen3_moe(**FEW), packed("gptq", group=32), published=False),
    Spec("llama-awq", "llama", llama(**TINY, attention_bias=True), packed("awq", group=32)),
    Spec(
        "qwen35-awq",
        "qwen3_5_text",
        qwen3_5(hidden=64, layers=2, every=2, linear=(2, 2, 16, 32)),
        packed("awq", group=32, nested=True),
    ),
    Spec("llama-ct-int4", "llama", llama(**TINY), packed("int", group=32, symmetric=True, scale="BF16")),
    Spec("qwen3-ct-int4-order", "qwen3", qwen3(**TINY), packed("int", group=32, order=True, scale="BF16")),
    Spec("qwen3-ct-int8", "qwen3", qwen3(**{**TINY, "inter": 96}), packed("int8", symmetric=True, scale="BF16")),
    Spec("qwen3moe-ct-fp8", "qwen3_moe", qwen3_moe(**FEW), packed("fp8", scale="BF16")),
    Spec(
        "llama-ct-fp8-block",
        "llama",
        llama(hidden=144, inter=72, heads=2, kv=1, vocab=64, layers=1),
        packed("fp8", scale="F32", block=(128, 128)),
    ),
    Spec("llama-ct-nvfp4", "llama", llama(**TINY), packed("nvfp4")),
    Spec("qwen3-ct-mxfp4", "qwen3", qwen3(**TINY), packed("mxfp4")),
    Spec("qwen3moe-modelopt-nvfp4", "qwen3_moe", qwen3_moe(**FEW), packed("modelopt")),
    Spec("llama-bnb-nf4", "llama", llama(**TINY), packed("bnb4", double=True)),
    Spec("llama-bnb-int8", "llama", llama(**{**TINY, "inter": 96}), packed("bnb8")),
]

YARN3 = {"rope_type": "yarn", **YARN, "attention_factor": 1.2, "beta_fast": 32.0, "beta_slow": 1.0}
EXPERTS_8 = {ROUTER: Quantisation(8, 64), SHARED: Quantisation(8, 64)}
BIASES = {"attention_bias": True, "mlp_bias": True}

# Families that are a config and little else.
SMALL = [
    Spec("seedoss-bf16", "seed_oss", seed_oss(**EPS)),
    Spec("seedoss-mlx-4bit", "seed_oss", seed_oss(head_dim=32, attention_bias=False, **UNTIED), mlx(4), published=False),
    Spec("smollm3-bf16", "smollm3", smollm3(**EPS)),
    Spec(
        "smollm3-window-mlx-4bit",
        "smollm3",
        smollm3(layers=3, no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=20, **BIASES),
        mlx(4),
        published=False,
    ),
    Spec("granite-bf16", "granite", granite(**EPS)),
    Spec("granite-mlx-4bit", "granite", granite(**UNTIED, **BIASES), mlx(4), published=False),
    Spec("phi3-bf16", "phi3", phi3(sliding_window=40, **EPS)),
    Spec("phi3-long-bf16", "phi3", phi3(kv=4, **longrope(6, part=0.75)), published=False),
    Spec("phi3-mlx-4bit", "phi3", phi3(hidden=128, **UNTIED), mlx(4)),
    Spec("phi3-fp8", "phi3", phi3(hidden=128, heads=2, kv=2, inter=256), Layout(fp8=True)),
    Spec("gemma-bf16", "gemma", gemma(**EPS)),
    Spec("gemma-mlx-4bit", "gemma", gemma(kv=4), mlx(4)),
    Spec("olmo2-bf16", "olmo2", olmo2(**EPS)),
    Spec("olmo2-mlx-4bit", "olmo2", olmo2(kv=4, attention_bias=True, **UNTIED), mlx(4)),
    Spec("olmo3-bf16", "olmo3", olmo3(full=YARN3, **EPS)),
    Spec("olmo3-mlx-4bit", "olmo3", olmo3(layers=3, layer_types=["full_attention"] + 2 * ["sliding_attention"]), mlx(4), published=False),
    Spec("olmoe-bf16", "olmoe", olmoe(**EPS)),
    Spec("olmoe-mlx-4bit", "olmoe", olmoe(inter=64, norm_topk_prob=True, **UNTIED), mlx(4, overrides=EXPERTS_8)),
    Spec("exaone4-bf16", "exaone4", exaone4(**EPS)),
    Spec("exaone4-full-mlx-4bit", "exaone4", exaone4(layers=2, head_dim=32, sliding_window=None, layer_types=2 * ["full_attention"]), mlx(4), published=False),
    Spec("exaonemoe-bf16", "exaone_moe", exaone_moe(**EPS)),
    Spec("exaonemoe-mlx-4bit", "exaone_moe", exaone_moe(layers=3, head_dim=32, moe_inter=64, num_shared_experts=2, experts=8, n_group=2, topk_group=1, sliding_window=33, mlp_layer_types=["sparse", "dense", "sparse"]), mlx(4, overrides=EXPERTS_8)),
    Spec("llama4-bf16", "llama4_text", llama4(interleave_moe_layer_step=2, **EPS), Layout(experts="fused")),
    Spec("llama4-mlx-4bit", "llama4_text", llama4(inter=64, head_dim=32, intermediate_size_mlp=128, no_rope_layer_interval=2), mlx(4, overrides={r".*feed_forward\.router": Quantisation(8, 64)})),
    Spec("ernie45-bf16", "ernie4_5", ernie(**EPS)),
    Spec("ernie45-mlx-4bit", "ernie4_5", ernie(head_dim=32, use_bias=True, **UNTIED), mlx(4)),
    Spec("ernie45moe-bf16", "ernie4_5_moe", ernie_moe(**EPS)),
    Spec("ernie45moe-mlx-4bit", "ernie4_5_moe", ernie_moe(moe_inter=64, moe_layer_interval=2), mlx(4, overrides=EXPERTS_8)),
    Spec("mixtral-bf16", "mixtral", mixtral(**EPS)),
    Spec("mixtral-mlx-4bit", "mixtral", mixtral(inter=64, sliding_window=30), mlx(4, overrides={r".*block_sparse_moe\.gate": Quantisation(8, 64)})),
    Spec("minimaxm2-bf16", "minimax_m2", minimax_m2(**EPS), published=False),
    Spec("minimaxm2-fp8", "minimax_m2", minimax_m2(hidden=128, inter=128), Layout(fp8=True), published=False),
    Spec("glm-bf16", "glm", glm(rms_norm_eps=1e-3)),
    Spec("glm4-bf16", "glm4", glm(kv=1, rms_norm_eps=1e-3)),
    Spec("glm4-mlx-4bit", "glm4", glm(**UNTIED), mlx(4)),
    Spec("glm4moe-bf16", "glm4_moe", glm4_moe(rms_norm_eps=1e-3)),
    Spec("glm4moe-mlx-4bit", "glm4_moe", glm4_moe(moe_inter=64, use_qk_norm=False, attention_bias=True), mlx(4, overrides=EXPERTS_8)),
    Spec("cohere-bf16", "cohere", cohere(layer_norm_eps=1e-3)),
    Spec("cohere2-bf16", "cohere2", cohere2(layer_norm_eps=1e-3)),
    Spec("cohere2-mlx-4bit", "cohere2", cohere2(kv=4, attention_bias=True, sliding_window=33), mlx(4)),
    Spec("hyv3-bf16", "hy_v3", hy_v3(**EPS)),
    Spec("hyv3-mlx-4bit", "hy_v3", hy_v3(head_dim=32, moe_inter=64), mlx(4, overrides={r".*mlp\.router\.gate": Quantisation(8, 64)})),
    Spec("qwen2moe-bf16", "qwen2_moe", qwen2_moe(**EPS)),
    Spec("qwen2moe-mlx-4bit", "qwen2_moe", qwen2_moe(inter=64, moe_inter=64, norm_topk_prob=True, **UNTIED), mlx(4, overrides=EXPERTS_8)),
]

YARN_LATENT = rope(1e4, "yarn", **YARN, beta_fast=32.0, beta_slow=1.0, mscale=0.8, mscale_all_dim=1.2)
LATENT = {"hidden": 64, "inter": 128, "moe_inter": 64, **EVEN}

# DeepSeek V3, Moonlight, Kimi K2 and GLM-4.7-Flash in small
LATENTS = [
    Spec("deepseekv3-bf16", "deepseek_v3", deepseek(**YARN_LATENT, **EPS)),
    Spec("deepseekv3-direct-bf16", "deepseek_v3", deepseek(q_lora_rank=None, n_group=1, topk_group=1, attention_bias=True, rope_interleave=False)),
    Spec("deepseekv3-fp8", "deepseek_v3", deepseek(hidden=128, inter=128, experts=4, n_group=2, topk_group=1, top=2), Layout(fp8=True, fp8_scale="F32")),
    Spec("deepseekv3-mlx-4bit", "deepseek_v3", deepseek(**LATENT), mlx(4, 32, overrides=EXPERTS_8)),
    Spec("glm47flash-bf16", "glm4_moe_lite", latent(vocab=256, **EPS)),
    Spec("glm47flash-mlx-4bit", "glm4_moe_lite", latent(**LATENT), mlx(4, 32)),
    Spec("mistral4-bf16", "mistral4", mistral4(original=40, **EPS), Layout(experts="fused"), published=False),
    Spec("mistral4-dense-bf16", "mistral4", mistral4(first_k_dense_replace=1, routed_scaling_factor=1.5, n_group=4, topk_group=2, q_lora_rank=None), Layout(experts="fused"), published=False),
    Spec("mistral4-mlx-4bit", "mistral4", mistral4(**LATENT), mlx(4, 32), published=False),
    Spec("glm47flash-older-mlx-4bit", "glm4_moe_lite", latent(**LATENT), Layout(mlx=Quantisation(4, 32), lifts=False), published=False),
]

# DeepSeek V3.2 and GLM-5
CHOOSING = [
    Spec("deepseekv32-bf16", "deepseek_v32", chooses(**YARN_LATENT, **EPS)),
    Spec("deepseekv32-fp8", "deepseek_v32", chooses(hidden=128, inter=128, experts=4, n_group=2, topk_group=1, top=2, index_head_dim=32), Layout(fp8=True, fp8_scale="F32")),
    Spec("glm5-bf16", "glm_moe_dsa", glm5(layers=5, index_topk_freq=2, index_skip_topk_offset=2, **EPS)),
]

MAMBAS = [
    Spec("granite4-bf16", "granitemoehybrid", granite_hybrid(**EPS)),
    Spec("granite4moe-bf16", "granitemoehybrid", granite_hybrid(experts=6, mamba=(8, 2, 16), attend=(1, 3), position_embedding_type="rope", **UNTIED), published=False),
    Spec("granite4-mlx-4bit", "granitemoehybrid", granite_hybrid(mamba=(4, 2, 32)), mlx(4, 32)),
    Spec("granite4moe-mlx-4bit", "granitemoehybrid", granite_hybrid(experts=4, top=2), mlx(4, 32, overrides={r".*router\.layer": Quantisation(8, 64)})),
    Spec("nemotronh-mlx-4bit", "nemotron_h", nemotron_h(moe_inter=64, mamba=(4, 2, 32, 32)), mlx(4, 32)),
    Spec("nemotronh-bf16", "nemotron_h", nemotron_h(layer_norm_epsilon=1e-3)),
    Spec("nemotronh-latent-bf16", "nemotron_h", nemotron_h(pattern="ME*EM-", mamba=(4, 1, 32, 32), moe_latent_size=32, n_group=2, topk_group=1, use_bias=True, head_dim=24), published=False),
    Spec("falconh1-bf16", "falcon_h1", falcon_h1(**EPS)),
    Spec("falconh1-norm-bf16", "falcon_h1", falcon_h1(layers=3, mamba=(4, 2, 16, 32), mamba_rms_norm=True, mamba_norm_before_gate=False, projectors_bias=True), published=False),
]

ALL = HUGGING_FACE + MLX_FAMILIES + MLX_FORMATS + HYBRIDS + GPT_OSS + MISTRALS + GEMMA4 + LFMS + PACKED + SMALL + LATENTS + CHOOSING + MAMBAS
