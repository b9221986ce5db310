"""The sizes of the model in the box, and the config.json that tells them."""

import dataclasses


@dataclasses.dataclass
class Shape:
    vocab: int = 3072
    hidden: int = 384
    layers: int = 8
    interval: int = 4  # every fourth layer is gated attention
    ffn: int = 768
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 64
    rotary: float = 0.5
    sections: tuple = (6, 5, 5)
    theta: float = 1e6
    positions: int = 131072
    delta_heads: int = 6
    delta_dim: int = 64
    kernel: int = 4
    eps: float = 1e-6
    tower: int = 192
    tower_layers: int = 6
    tower_heads: int = 3
    tower_ffn: int = 384
    grid: int = 16  # the tower's table of positions is grid x grid
    patch: int = 16
    merge: int = 2

    def is_attention(self, layer):
        return (layer + 1) % self.interval == 0


# Small enough for tests on one core.
TOY = Shape(
    hidden=64,
    layers=4,
    ffn=128,
    heads=2,
    kv_heads=1,
    head_dim=32,
    sections=(3, 3, 2),
    delta_heads=2,
    delta_dim=32,
    tower=64,
    tower_layers=2,
    tower_heads=2,
    tower_ffn=64,
)

# Areas in pixels between which every picture is resized.
MIN_PIXELS, MAX_PIXELS = 128 * 128, 224 * 224


def config(shape, ids):
    """config.json as published checkpoints of this family have it. ids: token -> id."""
    kinds = ["full_attention" if shape.is_attention(i) else "linear_attention" for i in range(shape.layers)]
    text = {
        "model_type": "qwen3_5_text",
        "vocab_size": shape.vocab,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.ffn,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": shape.positions,
        "rms_norm_eps": shape.eps,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attn_output_gate": True,
        "layer_types": kinds,
        "full_attention_interval": shape.interval,
        "linear_conv_kernel_dim": shape.kernel,
        "linear_key_head_dim": shape.delta_dim,
        "linear_value_head_dim": shape.delta_dim,
        "linear_num_key_heads": shape.delta_heads,
        "linear_num_value_heads": shape.delta_heads,
        "mamba_ssm_dtype": "float32",
        "mtp_num_hidden_layers": 1,
        "mtp_use_dedicated_embeddings": False,
        "initializer_range": 0.02,
        "use_cache": True,
        "dtype": "bfloat16",
        "eos_token_id": ids["<|im_end|>"],
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": shape.theta,
            "partial_rotary_factor": shape.rotary,
            "mrope_section": list(shape.sections),
            "mrope_interleaved": True,
        },
    }
    vision = {
        "model_type": "qwen3_5_vision",
        "depth": shape.tower_layers,
        "hidden_size": shape.tower,
        "hidden_act": "gelu_pytorch_tanh",
        "intermediate_size": shape.tower_ffn,
        "num_heads": shape.tower_heads,
        "in_channels": 3,
        "patch_size": shape.patch,
        "spatial_merge_size": shape.merge,
        "temporal_patch_size": 2,
        "out_hidden_size": shape.hidden,
        "num_position_embeddings": shape.grid**2,
        "deepstack_visual_indexes": [],
        "initializer_range": 0.02,
        "dtype": "bfloat16",
    }
    return {
        "architectures": ["Qwen3_5ForConditionalGeneration"],
        "model_type": "qwen3_5",
        "text_config": text,
        "vision_config": vision,
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
        "eos_token_id": ids["<|im_end|>"],
    }
