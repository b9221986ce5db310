"""What transformers answers about pictures: prompt tokens, greedy continuations, leading logprobs."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

from . import pictures, sight
from .layouts import Layout, Quantisation
from .sight import Sighted
from .specs import gemma4, gemma4_unified, lfm2, ministral3, ministral3_rope, mistral, mistral4, qwen2, qwen3, qwen3_5, qwen3_moe

STEPS = 6
CLEAR = 0.4  # a margin that decides the greedy token in fast precision


def _image(name, **wishes):
    return {"type": "image", "file": name, **({"wishes": wishes} if wishes else {})}


def _video(**wishes):
    return {"type": "video", "wishes": wishes}


def _frames(*names, fps):
    return {"type": "video", "frames": list(names), "wishes": {"fps": fps}}


def _text(text):
    return {"type": "text", "text": text}


def _user(*parts):
    return {"role": "user", "content": list(parts)}


def _model(text):
    return {"role": "assistant", "content": [_text(text)]}


VIDEO = {"type": "video"}
CASES = {
    "text": [_user(_text("Say something.\n\nAnything."))],
    "one": [_user(_image("plain"), _text("What is this?"))],
    "after": [_user(_text("Look at this:\n"), _image("other"))],
    "two": [_user(_text("Compare "), _image("plain"), _text(" with "), _image("other"), _text(", please."))],
    "turns": [
        _user(_image("wide"), _text("Describe it.")),
        _model("A wall."),
        _user(_text("And this one?"), _image("plain")),
    ],
    "follow": [_user(_image("tall"), _text("What?")), _model("A tower."), _user(_text("How tall is it?"))],
    "wide": [_user(_image("wide"))],
    "tall": [_user(_image("tall"))],
    "tiny": [_user(_image("tiny"), _text("What colour?"))],
    "large": [_user(_text("Once more: "), _image("large"), _image("tiny"))],
    "video": [_user(VIDEO, _text("What happens?"))],
    "both": [
        _user(_image("other"), VIDEO, _text("Is it there?")),
        _model("Yes."),
        _user(_image("plain"), _text("Here?")),
    ],
}
SMALL = {"min_pixels": 1024, "max_pixels": 3000}
CASES |= {
    "smaller": [_user(_image("large", **SMALL), _text("And now?"), _image("wide", **SMALL))],
    "larger": [_user(_image("tiny", min_pixels=6000, max_pixels=9000), _text("Closer!"))],
    "video-small": [_user(_video(**SMALL), _text("What happens?"))],
    "video-slow": [_user(_video(fps=1), _text("What happens?"))],
    "video-few": [_user(_video(num_frames=2), _text("What happens?"))],
    "frames": [_user(_frames("plain", "other", "plain", fps=1), _text("What happens?"))],
}
GEMMA_CASES = {
    "pieces": [_user(_text("All of it: "), _image("banner", do_pan_and_scan=True), _text("Well?"))],
    "too-small": [_user(_image("large", do_pan_and_scan=True), _text("Well?"))],
}


# its processor has a budget of tokens instead of limits, and a number of frames even where a pace is wished
NOT_GEMMA4 = ("smaller", "larger", "video-small", "video-slow")
NO_PIXELS = ("smaller", "larger", "video-small")  # where pixels cannot be wished for
TILE_CASES = {"banner": [_user(_text("All of it: "), _image("banner"), _text("Well?"))]}


def _glm_lacks(spec):
    """Its class takes images or videos, not both; pixels of an image and numbers of frames cannot be wished for, and in
    newer ones neither can a pace."""
    newer = ("video-slow",) if spec.family in ("glm46v", "glm_ocr") else ()
    return ("both", "smaller", "larger", "video-few", *newer)


def _cases(spec):
    """Gemma takes no videos, and pictures of one size. Nor does Mistral, which has no limits of pixels to wish for, and
    whose class does not run where all pictures together make one token; nor LFM2, which cuts large ones into tiles."""
    if spec.family in sight.GEMMA4:
        return {name: case for name, case in CASES.items() if name not in NOT_GEMMA4}
    if spec.family in sight.GLM:
        return {name: case for name, case in CASES.items() if name not in _glm_lacks(spec)}
    if spec.family == "internvl":
        lacks = (*NO_PIXELS, "video-slow") if "num_frames" in spec.video else NO_PIXELS  # a number goes before a pace
        return TILE_CASES | {name: case for name, case in CASES.items() if name not in lacks}
    if spec.family == "minicpmv4_6":
        lacks = (*NO_PIXELS, "video-slow", "video-few")
        return TILE_CASES | {name: case for name, case in CASES.items() if name not in lacks}
    if spec.family == "smolvlm":
        return TILE_CASES | {name: case for name, case in CASES.items() if name not in (*NO_PIXELS, "both")}
    if spec.video:
        return CASES
    plain = {name: case for name, case in CASES.items() if name not in ("smaller", "larger", "frames")}
    still = {name: case for name, case in plain.items() if not _parts(case, "video")}
    if spec.family == "gemma3":
        return still | GEMMA_CASES
    if spec.family in ("lfm2_vl", "idefics3"):
        return still | TILE_CASES
    if spec.family == "paddleocr_vl":
        return still | {name: CASES[name] for name in ("smaller", "larger")}
    return {name: case for name, case in still.items() if name != "tiny"}


def _rope(theta, section, interleaved):
    parameters = {"rope_type": "default", "rope_theta": theta, "mrope_section": section}
    return {"rope_parameters": {**parameters, "mrope_interleaved": True} if interleaved else parameters}


def _qwen_text(**more):
    return {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": sight.VOCAB,
        "max_position_embeddings": 4096,
        **more,
    }


def _qwen3_text(**more):
    return _qwen_text(**{"head_dim": 24, "rms_norm_eps": 1e-5, **_rope(1e6, [6, 3, 3], True), **more})


def _qwen3_vision(**more):
    return {
        "depth": 4,
        "hidden_size": 40,
        "intermediate_size": 56,
        "num_heads": 2,
        "patch_size": 8,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 64,
        "num_position_embeddings": 25,
        "deepstack_visual_indexes": [0, 2],
        **more,
    }


def _qwen25_vision(**more):
    return {
        "depth": 4,
        "hidden_size": 40,
        "intermediate_size": 56,
        "num_heads": 2,
        "patch_size": 8,
        "temporal_patch_size": 2,
        "spatial_merge_size": 2,
        "out_hidden_size": 64,
        "window_size": 32,
        "fullatt_block_indexes": [1, 3],
        "tokens_per_second": 2,
        **more,
    }


QWEN2_VISION = {
    "depth": 3,
    "embed_dim": 48,
    "hidden_size": 64,
    "num_heads": 2,
    "mlp_ratio": 2,
    "patch_size": 8,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
}
PATCHES = {"patch_size": 8, "temporal_patch_size": 2, "merge_size": 2}
HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
CLIP = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}


def _areas(least, most):
    return {"size": {"shortest_edge": least, "longest_edge": most}}


QWEN3_IMAGE = {**PATCHES, **HALF, **_areas(1024, 12288)}
QWEN3_VIDEO = {**PATCHES, **HALF, **_areas(2048, 16384), "fps": 2}
QWEN25_IMAGE = {**PATCHES, **CLIP, "min_pixels": 1024, "max_pixels": 12288}
QWEN25_VIDEO = {**PATCHES, **CLIP, "min_pixels": 1024, "max_pixels": 4096}

GEMMA_TEXT = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "query_pre_attn_scalar": 24,
    "vocab_size": sight.VOCAB,
    "sliding_window": 7,  # less than an image has tokens
    "max_position_embeddings": 4096,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"],
    "rope_parameters": {
        "full_attention": {"rope_theta": 1e6, "rope_type": "linear", "factor": 8.0},
        "sliding_attention": {"rope_theta": 1e4, "rope_type": "default"},
    },
    "tie_word_embeddings": True,
}
GEMMA_VISION = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 96,
    "patch_size": 8,
    "vision_use_head": False,
    "tokens": 9,
}
GEMMA4_SIZES = {"vocab": sight.VOCAB, "max_position_embeddings": 4096, "tie_word_embeddings": True, "sliding_window": 9}
GEMMA4_SIZES |= {"use_bidirectional_attention": "vision", "attention_k_eq_v": True, "num_global_key_value_heads": 1}
GEMMA4 = gemma4(layers=3, pattern=3, **GEMMA4_SIZES)
GEMMA4_ASIDE = gemma4(
    layers=5,
    **{**GEMMA4_SIZES, "use_bidirectional_attention": None, "attention_k_eq_v": False},
    hidden_size_per_layer_input=16,
    num_kv_shared_layers=2,
)
GEMMA4_UNIFIED = gemma4_unified(layers=3, pattern=3, **GEMMA4_SIZES)
GEMMA4_VISION = {
    "hidden_size": 40,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "patch_size": 4,
    "pooling_kernel_size": 3,
    "position_embedding_size": 256,
}
GEMMA4_RAW = {"patch_size": 4, "pooling_kernel_size": 3}
GEMMA4_RAW |= {"mm_embed_dim": 64, "output_proj_dims": 64, "mm_posemb_size": 80}
GEMMA4_IMAGE = {"patch_size": 4, "max_soft_tokens": 70, "pooling_kernel_size": 3, "do_normalize": False}
GEMMA4_VIDEO = {**GEMMA4_IMAGE, "num_frames": 3, "do_normalize": True}
GEMMA_IMAGE = {**HALF, "size": {"height": 96, "width": 96}, "resample": 2}
WIDE_VISION = {"hidden_size": 32, "intermediate_size": 64}
MOE = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
ODD_MOE = {**MOE, "moe_intermediate_size": 24}  # where transposed experts are known by their shape
PIXTRAL = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 96,
    "patch_size": 8,
    "hidden_act": "silu",
    "merge": 2,
}
PIXTRAL_ALONE = {**{key: value for key, value in PIXTRAL.items() if key != "merge"}, "model_type": "pixtral"}
PIXTRAL_ALONE |= {"layer": -1, "chosen": "full"}
PIXTRAL_IMAGE = {**CLIP, "size": {"longest_edge": 96}, "patch_size": {"height": 8, "width": 8}}
SMALL_MISTRAL = {"vocab": sight.VOCAB, "max_position_embeddings": 4096}
MISTRAL3 = {**mistral(**SMALL_MISTRAL), "model_type": "mistral", "rms_norm_eps": 1e-3}
MINISTRAL3 = {**ministral3(layers=3, **SMALL_MISTRAL, **ministral3_rope(original=20)), "model_type": "ministral3"}
MISTRAL4 = {**mistral4(original=20, **SMALL_MISTRAL), "model_type": "mistral4"}


def _glm_text(kind, part=0.5, section=(2, 1, 1), **more):
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": list(section), "partial_rotary_factor": part}
    return _qwen_text(**{"model_type": kind, "rms_norm_eps": 1e-4, "rope_parameters": rope, **more})


GLM_MOE = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 32,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 0.6,
    "head_dim": 24,
}
GLM_MOE_TEXT = _glm_text("glm4v_moe_text", section=(2, 2, 2), **GLM_MOE)
GLM_VISION = {
    "depth": 3,
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_heads": 2,
    "patch_size": 8,
    "image_size": 40,
    "temporal_patch_size": 2,
    "spatial_merge_size": 2,
    "out_hidden_size": 64,
}
GLM_IMAGE = {**PATCHES, **CLIP, **_areas(2048, 24576)}
GLM_VIDEO = {**PATCHES, **CLIP, **_areas(2048, 16384)}
PADDLE_TEXT = _qwen_text(head_dim=24, rms_norm_eps=1e-4, tie_word_embeddings=True, **_rope(5e5, [2, 5, 5], False))
PADDLE_VISION = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 44,
    "patch_size": 8,
    "layer_norm_eps": 1e-4,
    "spatial_merge_size": 2,
}
PADDLE_IMAGE = {**CLIP, "patch_size": 8, "temporal_patch_size": 1, "merge_size": 2, "min_pixels": 1024, "max_pixels": 12288}
SMOL_TEXT = {
    **_qwen_text(tie_word_embeddings=True, rms_norm_eps=1e-4, head_dim=16),
    "model_type": "llama",
    "rope_parameters": {"rope_theta": 130000.0, "rope_type": "default"},
}
SMOL_VISION = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 48,
    "patch_size": 8,
    "layer_norm_eps": 1e-4,
    "scale_factor": 2,
}
SMOL_IMAGE = {
    **HALF,
    "do_image_splitting": True,
    "size": {"longest_edge": 130},
    "max_image_size": {"longest_edge": 48},
    "resample": 1,
}
SMOL_SAMPLING = {"fps": 2, "max_frames": 4, "video_size": {"longest_edge": 48}}
SMOL_VIDEO = {**HALF, "size": {"longest_edge": 100}, "max_image_size": {"longest_edge": 48}, "resample": 1}
SMALL_TEXT = {"hidden": 32, "inter": 32, "vocab": sight.VOCAB, "max_position_embeddings": 4096}
INTERN_TEXT = {**qwen3(**SMALL_TEXT, head_dim=8), "model_type": "qwen3"}
INTERN_MOE = {**qwen3_moe(**SMALL_TEXT, head_dim=8, experts=4, moe_inter=16), "model_type": "qwen3_moe"}
INTERN_VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": [48, 48],
    "patch_size": [8, 8],
    "attention_bias": True,
    "layer_norm_eps": 1e-4,
    "downsample_ratio": 0.5,
}
INTERN_GIANT = {"use_qk_norm": True, "norm_type": "rms_norm", "attention_bias": False}  # as the tower of 6B has it
INTERN_IMAGE = {**CLIP, "size": {"height": 48, "width": 48}, "min_patches": 1, "max_patches": 6, "crop_to_patches": False}
INTERN_VIDEO = {**CLIP, "size": {"height": 48, "width": 48}}
MINICPM_ROPE = {"rope_theta": 1e6, "rope_type": "default", "partial_rotary_factor": 0.5, "mrope_section": [2, 1, 1]}
MINICPM_TEXT = {
    **qwen3_5(hidden=32, inter=64, linear=(2, 2, 16, 16), layers=3, every=3, vocab_size=sight.VOCAB),
    **{"max_position_embeddings": 4096, "head_dim": 16, "rope_parameters": {**MINICPM_ROPE, "mrope_interleaved": True}},
    "model_type": "qwen3_5_text",
}
MINICPM_VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "image_size": 40,
    "patch_size": 4,
    "layer_norm_eps": 1e-4,
    "insert_layer_id": 1,
}
MINICPM_IMAGE = {**HALF, "patch_size": 4, "scale_resolution": 48, "max_slice_nums": 6}
LFM_TEXT = {**lfm2(vocab=sight.VOCAB, max_position_embeddings=4096), "model_type": "lfm2"}
SIGLIP2 = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "num_patches": 25,
    "patch_size": 8,
    "vision_use_head": False,
    "layer_norm_eps": 1e-4,
    "downsample_factor": 2,
    "projector_hidden_size": 72,
}
LFM_IMAGE = {
    **HALF,
    "downsample_factor": 2,
    "encoder_patch_size": 8,
    "min_image_tokens": 4,
    "max_image_tokens": 12,
    "tile_size": 32,
    "min_tiles": 2,
    "max_tiles": 4,
    "max_pixels_tolerance": 2.0,
    "use_thumbnail": True,
    "do_image_splitting": True,
    "resample": 2,
}
MLX4 = Layout(mlx=Quantisation(4, 32))
MLX8 = Layout(mlx=Quantisation(8, 32))

QWEN35_ROPE = {
    "rope_theta": 1e6,
    "rope_type": "default",
    "partial_rotary_factor": 0.5,
    "mrope_section": [3, 3, 2],
    "mrope_interleaved": True,
}
QWEN35 = qwen3_5(vocab_size=sight.VOCAB, max_position_embeddings=4096, rope_parameters=QWEN35_ROPE)


def _qwen35_vision(**more):
    return {key: value for key, value in _qwen3_vision(**more).items() if "deepstack" not in key}


ALL = [
    Sighted("qwen35-bf16", "qwen3_5", QWEN35, _qwen35_vision(), QWEN3_IMAGE, QWEN3_VIDEO, published=False),
    Sighted(
        "qwen35-mlx-4bit", "qwen3_5", QWEN35, _qwen35_vision(**WIDE_VISION), QWEN3_IMAGE, QWEN3_VIDEO, MLX4, published=False
    ),
    Sighted(
        "qwen3vl-bf16", "qwen3_vl", _qwen3_text(tie_word_embeddings=True), _qwen3_vision(), QWEN3_IMAGE, QWEN3_VIDEO
    ),
    Sighted(
        "qwen3vl-resaved-bf16",
        "qwen3_vl",
        _qwen3_text(attention_bias=True),
        _qwen3_vision(hidden_size=48, num_heads=4, deepstack_visual_indexes=[1]),
        QWEN3_IMAGE,
        QWEN3_VIDEO,
        published=False,
    ),
    Sighted(
        "qwen3vl-mlx-4bit", "qwen3_vl", _qwen3_text(), _qwen3_vision(**WIDE_VISION), QWEN3_IMAGE, QWEN3_VIDEO, MLX4
    ),
    Sighted(
        "qwen3vl-mlx-8bit-tower",
        "qwen3_vl",
        _qwen3_text(),
        _qwen3_vision(**WIDE_VISION),
        QWEN3_IMAGE,
        QWEN3_VIDEO,
        MLX8,
        vision_quantised=True,
    ),
    Sighted(
        "qwen3vlmoe-bf16",
        "qwen3_vl_moe",
        _qwen3_text(head_dim=16, **_rope(1e6, [4, 2, 2], True), **ODD_MOE),
        _qwen3_vision(),
        QWEN3_IMAGE,
        QWEN3_VIDEO,
    ),
    Sighted(
        "qwen3vlmoe-mlx-4bit",
        "qwen3_vl_moe",
        _qwen3_text(head_dim=16, **_rope(1e6, [4, 2, 2], True), **MOE),
        _qwen3_vision(**WIDE_VISION),
        QWEN3_IMAGE,
        QWEN3_VIDEO,
        MLX4,
    ),
    Sighted(
        "qwen25vl-bf16",
        "qwen2_5_vl",
        _qwen_text(tie_word_embeddings=True, **_rope(1e6, [2, 3, 3], False)),
        _qwen25_vision(),
        QWEN25_IMAGE,
        QWEN25_VIDEO,
    ),
    Sighted(
        "qwen25vl-mlx-4bit",
        "qwen2_5_vl",
        _qwen_text(**_rope(1e6, [2, 3, 3], False)),
        _qwen25_vision(hidden_size=32, intermediate_size=64),
        QWEN25_IMAGE,
        {**QWEN25_VIDEO, "do_sample_frames": True, "fps": 1},
        MLX4,
        vision_quantised=True,
    ),
    Sighted(
        "qwen2vl-bf16",
        "qwen2_vl",
        _qwen_text(**_rope(1e6, [2, 3, 3], False)),
        QWEN2_VISION,
        QWEN25_IMAGE,
        QWEN25_VIDEO,
    ),
    Sighted(
        "qwen2vl-mlx-4bit",
        "qwen2_vl",
        _qwen_text(tie_word_embeddings=True, **_rope(1e6, [2, 3, 3], False)),
        {**QWEN2_VISION, "embed_dim": 32},
        QWEN25_IMAGE,
        QWEN25_VIDEO,
        MLX4,
    ),
    Sighted("mistral3-bf16", "mistral3", MISTRAL3, PIXTRAL, PIXTRAL_IMAGE),
    Sighted(
        "mistral3-ministral-bf16",
        "mistral3",
        MINISTRAL3,
        {**PIXTRAL, "hidden_act": "gelu", "hidden_size": 40, "bias": True, "merge": 3, "image_size": 72},
        {**PIXTRAL_IMAGE, "size": {"longest_edge": 70}},
        published=False,
    ),
    Sighted("mistral3-mlx-4bit", "mistral3", MINISTRAL3, {**PIXTRAL, **WIDE_VISION}, PIXTRAL_IMAGE, None, MLX4),
    Sighted("mistral3-4-bf16", "mistral3", MISTRAL4, PIXTRAL, PIXTRAL_IMAGE, None, Layout(experts="fused"), published=False),
    Sighted("pixtral-bf16", "llava", MISTRAL3, PIXTRAL_ALONE, PIXTRAL_IMAGE),
    Sighted("pixtral-mlx-4bit", "llava", MISTRAL3, {**PIXTRAL_ALONE, **WIDE_VISION}, PIXTRAL_IMAGE, None, MLX4),
    # what else newer conversions leave as it was
    Sighted(
        "mistral3-mistral-mlx-4bit",
        "mistral3",
        MISTRAL3,
        {**PIXTRAL, **WIDE_VISION},
        PIXTRAL_IMAGE,
        None,
        MLX4,
        kept=("multi_modal_projector", "language_model.lm_head"),
    ),
    Sighted("glm4v-bf16", "glm4v", _glm_text("glm4v_text"), GLM_VISION, GLM_IMAGE, GLM_VIDEO),
    Sighted(
        "glm4v-mlx-4bit",
        "glm4v",
        _glm_text("glm4v_text"),
        {**GLM_VISION, **WIDE_VISION},
        GLM_IMAGE,
        {**GLM_VIDEO, "fps": 1},
        MLX4,
        vision_quantised=True,
    ),
    Sighted(
        "glm46v-moe-bf16",
        "glm46v",
        {**GLM_MOE_TEXT, "n_group": 4, "topk_group": 2, "norm_topk_prob": False},
        {**GLM_VISION, "attention_bias": True, "model_type": "glm4v_moe_vision"},
        GLM_IMAGE,
        GLM_VIDEO,
        published=False,
    ),
    Sighted(
        "glm46v-mlx-4bit",
        "glm46v",
        _glm_text("glm4v_text"),
        {**GLM_VISION, **WIDE_VISION},
        GLM_IMAGE,
        {**GLM_VIDEO, "fps": 1},
        MLX4,
    ),
    Sighted("glm4vmoe-bf16", "glm4v_moe", GLM_MOE_TEXT, GLM_VISION, GLM_IMAGE, GLM_VIDEO),
    Sighted(
        "glm4vmoe-mlx-4bit", "glm4v_moe", GLM_MOE_TEXT, {**GLM_VISION, **WIDE_VISION}, GLM_IMAGE, GLM_VIDEO, MLX4
    ),
    Sighted("glmocr-bf16", "glm_ocr", _glm_text("glm_ocr_text", head_dim=16), GLM_VISION, GLM_IMAGE, GLM_VIDEO),
    Sighted(
        "glmocr-mlx-4bit",
        "glm_ocr",
        _glm_text("glm_ocr_text", head_dim=24, part=1.0, section=(2, 5, 5)),
        {**GLM_VISION, **WIDE_VISION},
        GLM_IMAGE,
        GLM_VIDEO,
        MLX4,
    ),
    Sighted("paddleocrvl-bf16", "paddleocr_vl", PADDLE_TEXT, PADDLE_VISION, PADDLE_IMAGE),
    Sighted(
        "paddleocrvl-mlx-4bit",
        "paddleocr_vl",
        {**PADDLE_TEXT, "use_bias": True, "tie_word_embeddings": False},
        {**PADDLE_VISION, **WIDE_VISION},
        PADDLE_IMAGE,
        None,
        MLX4,
        published=False,
    ),
    Sighted("smolvlm-bf16", "smolvlm", SMOL_TEXT, SMOL_VISION, {**SMOL_IMAGE, "video_sampling": SMOL_SAMPLING}),
    Sighted(
        "smolvlm-mlx-4bit",
        "smolvlm",
        {**SMOL_TEXT, "tie_word_embeddings": False},
        {**SMOL_VISION, **WIDE_VISION, "image_size": 56, "scale_factor": 3},
        {**SMOL_IMAGE, "do_image_splitting": False},
        {**SMOL_VIDEO, "num_frames": 1, "fps": 0.4},
        MLX4,
        published=False,
    ),
    Sighted("idefics3-bf16", "idefics3", SMOL_TEXT, SMOL_VISION, SMOL_IMAGE),
    Sighted(
        "idefics3-mlx-4bit",
        "idefics3",
        {**SMOL_TEXT, "tie_word_embeddings": False},
        {**SMOL_VISION, **WIDE_VISION, "image_size": 56, "scale_factor": 3},
        {**SMOL_IMAGE, "do_image_splitting": False},
        None,
        MLX4,
        published=False,
    ),
    Sighted("internvl-bf16", "internvl", INTERN_TEXT, INTERN_VISION, INTERN_IMAGE, INTERN_VIDEO),
    Sighted(
        "internvl-moe-bf16",
        "internvl",
        INTERN_MOE,
        {**INTERN_VISION, **INTERN_GIANT, "image_size": [40, 40], "use_mean_pooling": False},
        {**INTERN_IMAGE, "max_patches": 4},
        {**INTERN_VIDEO, "do_sample_frames": True, "num_frames": 3, "initial_shift": False},
        published=False,
    ),
    Sighted(
        "internvl-mlx-4bit",
        "internvl",
        {**qwen2(**SMALL_TEXT), "model_type": "qwen2", "tie_word_embeddings": False},
        {**INTERN_VISION, "intermediate_size": 64},
        INTERN_IMAGE,
        INTERN_VIDEO,
        MLX4,
        vision_quantised=True,
    ),
    Sighted("minicpmv46-bf16", "minicpmv4_6", MINICPM_TEXT, MINICPM_VISION, MINICPM_IMAGE, MINICPM_IMAGE),
    Sighted(
        "minicpmv46-mlx-4bit",
        "minicpmv4_6",
        MINICPM_TEXT,
        {**MINICPM_VISION, "downsample_mode": "4x"},
        {**MINICPM_IMAGE, "downsample_mode": "4x", "use_image_id": False},
        {**MINICPM_IMAGE, "downsample_mode": "4x", "max_slice_nums": 1},
        MLX4,
        published=False,
    ),
    Sighted("lfm2vl-bf16", "lfm2_vl", LFM_TEXT, SIGLIP2, LFM_IMAGE),
    Sighted(
        "lfm2vl-resaved-bf16",
        "lfm2_vl",
        {**LFM_TEXT, "tie_word_embeddings": False},
        {**SIGLIP2, "downsample_factor": 3, "num_patches": 16, "projector_use_layernorm": False, "projector_bias": False},
        {**LFM_IMAGE, "downsample_factor": 3, "tile_size": 24, "use_thumbnail": False, "max_pixels_tolerance": 1.2},
        published=False,
    ),
    Sighted(
        "lfm2vl-mlx-4bit",
        "lfm2_vl",
        LFM_TEXT,
        {**SIGLIP2, **WIDE_VISION, "projector_hidden_size": 64},
        LFM_IMAGE,
        None,
        MLX4,
        vision_quantised=True,
    ),
    Sighted("gemma4vl-bf16", "gemma4", GEMMA4, {**GEMMA4_VISION, "standardize": True}, GEMMA4_IMAGE, GEMMA4_VIDEO),
    Sighted(
        "gemma4vl-aside-bf16",
        "gemma4",
        GEMMA4_ASIDE,
        {**GEMMA4_VISION, "use_clipped_linears": True, "num_key_value_heads": 1},
        GEMMA4_IMAGE,
        GEMMA4_VIDEO,
        published=False,
    ),
    Sighted(
        "gemma4vl-mlx-8bit-tower",
        "gemma4",
        GEMMA4,
        {**GEMMA4_VISION, "hidden_size": 64, "intermediate_size": 96, "head_dim": 32, "patch_size": 8, "use_clipped_linears": True},
        {**GEMMA4_IMAGE, "patch_size": 8},
        {**GEMMA4_VIDEO, "patch_size": 8},
        MLX8,
        vision_quantised=True,
    ),
    Sighted(
        "gemma4unifiedvl-bf16",
        "gemma4_unified",
        GEMMA4_UNIFIED,
        GEMMA4_RAW,
        GEMMA4_IMAGE,
        GEMMA4_VIDEO,
    ),
    Sighted(
        "gemma4unifiedvl-mlx-4bit",
        "gemma4_unified",
        GEMMA4_UNIFIED,
        {**GEMMA4_RAW, "patch_size": 8},
        {**GEMMA4_IMAGE, "patch_size": 8},
        {**GEMMA4_VIDEO, "patch_size": 8},
        MLX4,
        vision_quantised=True,
    ),
    Sighted("gemma3vl-bf16", "gemma3", GEMMA_TEXT, GEMMA_VISION, GEMMA_IMAGE),
    Sighted("gemma3vl-resaved-bf16", "gemma3", GEMMA_TEXT, GEMMA_VISION, GEMMA_IMAGE, published=False),
    Sighted("gemma3vl-mlx-4bit", "gemma3", GEMMA_TEXT, {**GEMMA_VISION, **WIDE_VISION}, GEMMA_IMAGE, None, MLX4),
    Sighted(
        "gemma3vl-mlx-8bit-tower",
        "gemma3",
        GEMMA_TEXT,
        {**GEMMA_VISION, **WIDE_VISION},
        GEMMA_IMAGE,
        None,
        MLX8,
        vision_quantised=True,
    ),
]


# --- running transformers -------------------------------------------------------------------------------------------


def _build(config):
    import torch
    import transformers

    model_class = getattr(transformers, config.architectures[0])
    model = model_class._from_config(config, attn_implementation="eager", dtype=torch.float32)
    if hasattr(model, "set_experts_implementation") and hasattr(config.text_config, "num_experts"):
        model.set_experts_implementation("eager")
    if config.model_type == "minicpmv4_6":
        _look_one_by_one(model.model)
    return model.eval()


def _look_one_by_one(model):
    """The class squeezes what it is given as if all views had the first one's size, and fails where they have not."""
    together = model.get_image_features

    def each(pixel_values, target_sizes, downsample_mode=None):
        out, begin = [], 0
        for size in target_sizes:
            end = begin + int(size.prod()) * model.config.vision_config.patch_size
            one = together(pixel_values[..., begin:end], size[None], downsample_mode=downsample_mode)
            out += one.pooler_output
            begin = end
        one.pooler_output = out
        return one

    model.get_image_features = each


def _shapes(model):
    names = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        names.pop("lm_head.weight", None)
    return names


def _load(model, tensors):
    import torch

    state = {name: torch.from_numpy(tensor) for name, tensor in tensors.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()


def _tokenizer(folder, spec):
    """The folder's tokenizer, which has no merges, in Python: added tokens are cut out, the rest goes letter by letter.
    So the oracle needs no library of tokenizers, and none can share a mistake with motet."""
    import transformers

    stored = json.loads((folder / "tokenizer.json").read_text())
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    vocab = stored["model"]["vocab"]
    added = {entry["id"]: entry for entry in stored["added_tokens"]}
    words = {**{i: word for word, i in vocab.items()}, **{i: entry["content"] for i, entry in added.items()}}
    letters = sight.byte_letters()

    class Letters(transformers.PreTrainedTokenizer):
        model_input_names = ["input_ids", "attention_mask"]

        @property
        def vocab_size(self):
            return len(words)

        def get_vocab(self):
            return {word: i for i, word in words.items()}

        def _tokenize(self, text, **_):
            if spec.family != "gemma3":
                return [letters[byte] for byte in text.encode()]
            out = []
            for letter in text.replace(" ", "\u2581"):
                out += [letter] if letter in vocab else [f"<0x{byte:02X}>" for byte in letter.encode()]
            return out

        def _convert_token_to_id(self, token):
            return vocab[token]

        def add_special_tokens(self, *_, **__):
            return 0  # the file has them all

        def _convert_id_to_token(self, index):
            return words[index]

    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    decoder = {
        i: transformers.AddedToken(entry["content"], **{flag: entry[flag] for flag in flags})
        for i, entry in added.items()
    }
    named = {key: value for key, value in settings.items() if key.endswith("_token") and isinstance(value, str)}
    tokenizer = Letters(added_tokens_decoder=decoder, **named)
    tokenizer.init_kwargs["add_bos_token"] = False
    for key, value in settings.get("extra_special_tokens", {}).items():
        setattr(tokenizer, key, value)
        setattr(tokenizer, f"{key}_id", tokenizer.convert_tokens_to_ids(value))
    return tokenizer


def _processor(folder, spec):
    import transformers

    name, _, video = sight.PROCESSORS[spec.family]
    parts = {"image_processor": transformers.AutoImageProcessor.from_pretrained(folder)}
    if video:
        parts["video_processor"] = transformers.AutoVideoProcessor.from_pretrained(folder)
    if spec.family == "gemma3":
        parts["image_seq_length"] = spec.vision["tokens"]
    if spec.family in sight.GEMMA4:
        parts["feature_extractor"] = transformers.Gemma4AudioFeatureExtractor()
    if spec.family in ("smolvlm", "idefics3"):
        side = spec.image["max_image_size"]["longest_edge"] // spec.vision["patch_size"] // spec.vision["scale_factor"]
        parts["image_seq_len"] = side**2
    if spec.family == "idefics3":  # asked for types of tokens, which are left out
        transformers.BatchEncoding.char_to_token = lambda *_: 0
    if spec.family == "internvl":
        parts["image_seq_length"] = sight.internvl_tokens(spec)
    if spec.family in sight.MISTRALS:
        parts |= {"patch_size": spec.vision["patch_size"], "spatial_merge_size": spec.vision.get("merge", 1)}
    template = (folder / "chat_template.jinja").read_text()
    return getattr(transformers, name)(tokenizer=_tokenizer(folder, spec), chat_template=template, **parts)


def _parts(messages, kind):
    return [part for message in messages for part in message["content"] if part["type"] == kind]


def _frames_of(part):
    """A video's frames and how many a second there are."""
    if "frames" in part:
        return np.stack([pictures.image(name) for name in part["frames"]]), part["wishes"]["fps"]
    return np.stack([pictures.frame(i) for i in range(pictures.FRAMES)]), pictures.FPS


def _video_wishes(part):
    """What is wished of a video, as the processor takes it; all frames of a list are looked at."""
    wishes = dict(part.get("wishes", {}))
    if "frames" in part:
        return {"do_sample_frames": False}
    if "max_pixels" in wishes:
        least, most = wishes.pop("min_pixels"), wishes.pop("max_pixels")
        return {"size": {"shortest_edge": least, "longest_edge": most}}
    return {"do_sample_frames": True, "fps": None, "num_frames": None, **wishes} if wishes else {}


def inputs(processor, messages):
    """The rendered text and what the processor makes of it and of the pictures."""
    from PIL import Image
    from transformers.video_utils import VideoMetadata

    shown = [
        {**message, "content": [{k: v for k, v in part.items() if k in ("type", "text")} for part in message["content"]]}
        for message in messages
    ]
    text = processor.apply_chat_template(shown, tokenize=False, add_generation_prompt=True)
    more = {}
    images = [Image.fromarray(pictures.image(part["file"])) for part in _parts(messages, "image")]
    wishes = {key: value for part in _parts(messages, "image") for key, value in part.get("wishes", {}).items()}
    if images:
        more["images"] = [images] if "Gemma" in type(processor).__name__ else images
        more["images_kwargs"] = wishes
    if videos := _parts(messages, "video"):
        seen = [_frames_of(part) for part in videos]
        about = [
            VideoMetadata(
                total_num_frames=len(frames),
                fps=fps,
                height=frames.shape[1],
                width=frames.shape[2],
                duration=len(frames) / fps,
                frames_indices=list(range(len(frames))),
            )
            for frames, fps in seen
        ]
        more["videos"] = [frames for frames, _ in seen]
        more["videos_kwargs"] = {**_video_wishes(videos[0]), "video_metadata": about}
        if "Smol" in type(processor).__name__:  # as its templates have it
            more["videos"] = [more["videos"]]
            more["videos_kwargs"].setdefault("do_sample_frames", True)
    return text, processor(text=[text], return_tensors="pt", add_special_tokens=False, **more)


def _mask(model, ids, given):
    """What generate() has each token see. The unified class alone, when it is called by itself, has pictures see all of
    themselves in layers without a window, too, and beyond the window in others."""
    import torch

    ones = torch.ones_like(ids)
    if model.config.model_type != "gemma4_unified":
        return ones
    sizes = {"inputs_embeds": torch.zeros(*ids.shape, model.config.text_config.hidden_size), "past_key_values": None}
    kinds = given.get("mm_token_type_ids")
    return model.create_masks_for_generate(
        config=model.config, attention_mask=ones, position_ids=None, mm_token_type_ids=kinds, **sizes
    )


def _logprobs(model, given, ids, last):
    """Log-probabilities of what follows each of the last positions when ids follow the prompt."""
    import torch

    given = dict(given)
    prompt = given.pop("input_ids")
    more = torch.tensor([ids], dtype=prompt.dtype)
    given.pop("attention_mask", None)
    for key in ("mm_token_type_ids", "token_type_ids"):
        if key in given:
            given[key] = torch.cat([given[key], torch.zeros_like(more)], 1)
    every = torch.cat([prompt, more], 1)
    with torch.no_grad():
        logits = model(input_ids=every, attention_mask=_mask(model, every, given), use_cache=False, **given).logits
    return torch.log_softmax(logits[0, -last:].double(), -1).numpy()


def _leading(row):
    order = np.lexsort((np.arange(len(row)), -row))[:20]
    return [[int(i), round(float(row[i]), 6)] for i in order]


def case(model, processor, name, messages):
    text, given = inputs(processor, messages)
    ids, steps = [], []
    pads = {i for key, i in sight.token_ids(model.config.model_type).items() if key.startswith(("image_token", "video_token"))}
    for _ in range(STEPS):
        steps.append(_leading(_logprobs(model, given, ids, 1)[0]))
        ids.append(steps[-1][0][0])
        if ids[-1] in pads:
            return None  # transformers would look for its picture
    return {
        "name": name,
        "messages": messages,
        "text": text,
        "prompt_token_ids": given["input_ids"][0].tolist(),
        "token_ids": ids,
        "steps": steps,
    }


def _confirm(folder, model, processor, record):
    """transformers, reading the folder by itself, must agree with what was recorded."""
    import torch
    import transformers

    read = transformers.AutoModelForImageTextToText.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32
    ).eval()
    if read.config.model_type == "minicpmv4_6":
        _look_one_by_one(read.model)
    _, given = inputs(processor, record["messages"])
    ours = _logprobs(model, given, record["token_ids"], 1)
    error = np.abs(_logprobs(read, given, record["token_ids"], 1) - ours).max()
    assert error < 1e-4, f"{folder.name}: transformers reads it differently: {error}"


def _candidate(spec, seed, folder):
    import transformers

    config = sight.config_dict(spec)
    (folder / "config.json").write_text(json.dumps(config))
    model = _build(transformers.AutoConfig.from_pretrained(folder))
    drawn = sight.draw(config, _shapes(model), seed)
    shown = sight.published_config(config, spec.family) if spec.published else config
    _load(model, sight.store(folder, shown, drawn, spec))
    sight.write_processor(folder, spec)
    processor = _processor(folder, spec)
    records = [case(model, processor, name, messages) for name, messages in _cases(spec).items()]
    if None in records:
        return None
    if not spec.layout.mlx:
        _confirm(folder, model, processor, records[1])
    margins = np.array([step[0][1] - step[1][1] for record in records for step in record["steps"]])
    variety = np.mean([len(set(record["token_ids"])) / STEPS for record in records])
    return records, float((margins > CLEAR).mean()), float(variety)


def make(job):
    """The best of several seeds, into out/name."""
    spec, out, first_seed, tries = job
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    best = None
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(first_seed, first_seed + tries):
            folder = Path(scratch) / f"{spec.name}-{seed}"
            folder.mkdir()
            made = _candidate(spec, seed, folder)
            if made is None:
                continue
            records, clear, variety = made
            if best is None or clear + variety > best[0]:
                best = (clear + variety, seed, records, folder, clear, variety)
        _, seed, records, folder, clear, variety = best
        oracle = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "seed": seed,
            "family": spec.family,
            "moe": "moe" in spec.family or "n_routed_experts" in spec.text or "num_experts" in spec.text,
            "layout": spec.layout.describe(),
            "video": {"frames": pictures.FRAMES, "fps": pictures.FPS},
            "cases": records,
        }
        (folder / "oracle.json").write_text(json.dumps(oracle, separators=(",", ":")) + "\n")
        shutil.rmtree(out / spec.name, ignore_errors=True)
        shutil.copytree(folder, out / spec.name)
    size = sum(file.stat().st_size for file in (out / spec.name).iterdir())
    return f"{spec.name:28} {size / 1024:6.0f} KB  seed {seed}  clear {clear:.2f}  variety {variety:.2f}"
