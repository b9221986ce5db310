#!/usr/bin/env python3
"""Projectors of GGUF models that are broken, lie, or belong to another model: motet must refuse each with a sentence.

usage: projectors.py MOTET [--show]

Each case writes a tiny checkpoint as a GGUF file with a projector, and spoils the projector. `motet info` must then end
with status 1 and say what is wrong in one line that holds the words given here, and `motet info` of the model alone must
go on working. `--show` prints every sentence.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

ORACLE = Path(__file__).resolve().parents[1] / "oracle"
sys.path.append(str(ORACLE))
sys.path.append(str(ORACLE.parent / "api"))

import compare_gguf_sight  # noqa: E402
import gguf  # noqa: E402
import gguf_projector  # noqa: E402

SECONDS = 60
CASES = []


def case(words, start="qwen3vl-bf16", model=None):
    """Registers a function that spoils the keys and tensors of a projector. model: the text model is another's."""

    def register(spoil):
        CASES.append((spoil.__name__, start, model or start, words, spoil))
        return spoil

    return register


@case("none that motet knows; known are qwen2vl_merger")
def unknown_kind(keys, tensors):
    keys["clip.projector_type"] = "telescope"


@case('no "clip.projector_type"')
def no_kind(keys, tensors):
    del keys["clip.projector_type"]


@case('whose "general.architecture" is "clip"')
def no_projector(keys, tensors):
    keys["general.architecture"] = "qwen3vl"


@case('no number "clip.vision.embedding_length"')
def no_width(keys, tensors):
    del keys["clip.vision.embedding_length"]


@case('no number "clip.vision.block_count"')
def no_layers(keys, tensors):
    del keys["clip.vision.block_count"]


@case('"clip.vision.block_count" is 4000000000')
def too_many_layers(keys, tensors):
    keys["clip.vision.block_count"] = 4000000000


@case('no number "clip.vision.patch_size"')
def no_patch(keys, tensors):
    keys["clip.vision.patch_size"] = "16"


@case("makes a token of 0 x 0 patches")
def no_merge(keys, tensors):
    keys["clip.vision.spatial_merge_size"] = 0


@case("the projector gives 96 elements for a token, the text model takes 64")
def other_width(keys, tensors):
    keys["clip.vision.projection_dim"] = 96


@case('"gemma3" does not belong to a text model of type "qwen3_vl"', "gemma3vl-bf16", "qwen3vl-bf16")
def other_model(keys, tensors):
    pass


@case('no token "<|IMAGE_PLACEHOLDER|>"', "paddleocrvl-bf16")
def no_token(keys, tensors):
    return {"tokenizer.ggml.tokens": ["a", "b"]}


@case('"vision_tower.patch_embed.proj.weight.1" wanted [40, 3, 8, 8], absent')
def half_a_convolution(keys, tensors):
    del tensors["v.patch_embd.weight.1"]


@case('"vision_tower.blocks.1.attn.qkv.weight" wanted [120, 40], found BF16 [40, 40]')
def narrow_attention(keys, tensors):
    tensors["v.blk.1.attn_qkv.weight"] = tensors["v.blk.1.attn_out.weight"]


@case('"vision_tower.blocks.2.norm1" wanted [40], absent')
def no_norm(keys, tensors):
    del tensors["v.blk.2.ln1.weight"]


@case('"v.blk.0.attn_k.weight" of the projector has not the shape', "mistral3-bf16")
def odd_heads(keys, tensors):
    keys["clip.vision.attention.head_count"] = 16


@case('"v.patch_embd.weight" of the projector has not the shape', "gemma4vl-bf16")
def two_colours(keys, tensors):
    t = tensors["v.patch_embd.weight"]
    tensors["v.patch_embd.weight"] = gguf.Tensor(t.type, [40, 2, 4, 4], t.data[: 40 * 2 * 4 * 4 * 4])


@case("is in both")
def twice(keys, tensors):
    tensors["v.blk.00.ln1.weight"] = tensors["v.blk.0.ln1.weight"]


@case("holds no tensors")
def empty(keys, tensors):
    tensors.clear()


def info(motet, *arguments):
    return subprocess.run([motet, "info", *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS)


def run_case(motet, folder, start, model, words, spoil):
    """What is wrong with the answer; None: nothing. And the sentence."""
    place = folder / "model"
    path = compare_gguf_sight.prepare(ORACLE / "sighted" / model, place, False)
    keys, tensors = gguf_projector.kind_of(ORACLE / "sighted" / start)(ORACLE / "sighted" / start).convert()
    more = spoil(keys, tensors)
    if more:
        gguf.convert(ORACLE / "sighted" / model, path, more)
    gguf.write(place / "mmproj-model.gguf", keys, tensors)
    done = info(motet, path)
    sentence = done.stderr.strip()
    if done.returncode != 1 or words not in sentence or "\n" in sentence:
        return f"status {done.returncode}, wanted words: {words}", sentence
    (place / "mmproj-model.gguf").unlink()
    if info(motet, path).returncode != 0:
        return "the text model alone is refused, too", sentence
    return None, sentence


def main(motet, show):
    failed = 0
    for name, start, model, words, spoil in CASES:
        with tempfile.TemporaryDirectory() as folder:
            wrong, sentence = run_case(motet, Path(folder), start, model, words, spoil)
        failed += wrong is not None
        if wrong or show:
            print(f"{'FAIL' if wrong else 'ok  '} {name}: {wrong or ''} {sentence}")
    print(f"projectors: {len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--show" in sys.argv))
