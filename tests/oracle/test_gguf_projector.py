#!/usr/bin/env python3
"""Projectors of GGUF models, beyond what compare_gguf_sight.py asks: limits that no key holds, files of older
converters, other types of weights, and the options --mmproj and --text-only.

usage: test_gguf_projector.py --motet MOTET [NAME...]

Each test writes checkpoints of sighted/ as GGUF files and asks a server about a picture; the answer must be bit for bit
that of another server, or the oracle's.
"""

import argparse
import json
import shutil
import struct
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import compare
import compare_gguf_sight
import compare_sight
import gguf
import gguf_projector
from compare_gguf_sight import prepare
from served import Server

HERE = Path(__file__).resolve().parent
SIGHTED = HERE / "sighted"
PICTURES = HERE / "pictures"
TESTS = []

# What the published checkpoints of a family say, and projectors do not: settings of images, and of videos.
CLIP = {"image_mean": gguf_projector.CLIP_MEAN, "image_std": gguf_projector.CLIP_STD}
HALF = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
QWEN2 = CLIP | {"min_pixels": 3136, "max_pixels": 12845056}
QWEN3 = [
    HALF | {"size": {"shortest_edge": 65536, "longest_edge": 16777216}},
    HALF | {"size": {"shortest_edge": 4096, "longest_edge": 25165824}},
]
GLM = [
    CLIP | {"size": {"shortest_edge": 12544, "longest_edge": 9633792}},
    CLIP | {"size": {"shortest_edge": 12544, "longest_edge": 47040000}},
]
PUBLISHED = {
    "qwen2vl-bf16": [QWEN2, QWEN2],
    "qwen25vl-bf16": [QWEN2, QWEN2],
    "qwen3vl-bf16": QWEN3,
    "qwen35-bf16": QWEN3,
    "gemma4vl-bf16": [
        {"max_soft_tokens": 280, "do_normalize": False},
        {"max_soft_tokens": 70, "num_frames": 32, "do_normalize": True},
    ],
    "glm4v-bf16": GLM,
    "smolvlm-bf16": [
        HALF | {"size": {"longest_edge": 130}, "max_image_size": {"longest_edge": 48}, "resample": 1},
        HALF
        | {
            "max_image_size": {"longest_edge": 48},
            "resample": 1,
            "video_sampling": {"fps": 1, "max_frames": 64, "video_size": {"longest_edge": 48}},
        },
    ],
}
LIMITS = ("image_min_pixels", "image_max_pixels", "preproc_min_tiles", "preproc_max_tiles")


def test(function):
    TESTS.append(function)
    return function


def case_of(folder, name):
    cases = json.loads((folder / "oracle.json").read_text())["cases"]
    return next(case for case in cases if case["name"] == name)


def answer(motet, path, case, *options):
    with Server(motet, str(path), *options) as server:
        return compare_sight.ask(server, case, PICTURES)


def check_oracle(motet, path, case, *options):
    """The server must answer as transformers did."""
    result = compare.Result()
    with Server(motet, str(path), *options) as server:
        compare_sight.compare_case(server, case, SimpleNamespace(pictures=PICTURES), "reference", result)
    assert not result.errors or max(result.errors) < compare_sight.BOUND["reference"], max(result.errors)


def rewrite(folder, path, change):
    """Writes the folder's projector with changed keys and tensors."""
    keys, tensors = gguf_projector.kind_of(folder)(folder).convert()
    change(keys, tensors)
    gguf.write(path, keys, tensors)


def strip_limits(keys, tensors):
    for key in LIMITS:
        keys.pop(f"clip.vision.{key}", None)


@test
def limits_are_the_published(motet, place):
    for name, (images, videos) in PUBLISHED.items():
        folder = SIGHTED / name
        path = prepare(folder, place / name / "gguf", False)
        rewrite(folder, path.parent / "mmproj-model.gguf", strip_limits)
        twin = place / name / "folder"
        shutil.copytree(folder, twin, ignore=shutil.ignore_patterns("*processor_config.json"))
        (twin / "preprocessor_config.json").write_text(json.dumps(images))
        (twin / "video_preprocessor_config.json").write_text(json.dumps(videos))
        for case in (case_of(folder, "one"), case_of(folder, "frames")):
            ours, theirs = answer(motet, path, case), answer(motet, twin, case)
            assert ours == theirs, (name, case["name"], len(ours["prompt_token_ids"]), len(theirs["prompt_token_ids"]))


@test
def names_of_older_converters(motet, place):
    """Their "ffn_up" and "ffn_down" have each other's names."""

    def swap(keys, tensors):
        for name in [name for name in tensors if ".ffn_up." in name]:
            other = name.replace(".ffn_up.", ".ffn_down.")
            tensors[name], tensors[other] = tensors[other], tensors[name]

    for name in ("gemma3vl-bf16", "qwen2vl-bf16"):
        folder = SIGHTED / name
        path = prepare(folder, place / name, False)
        rewrite(folder, path.parent / "mmproj-model.gguf", swap)
        check_oracle(motet, path, case_of(folder, "one"))


@test
def vocabulary_without_the_token_for_pictures(motet, place):
    """Some files of Gemma 3 have none of that name: an unused one stands for pictures."""
    folder, name, other = SIGHTED / "gemma3vl-bf16", "<image_soft_token>", "<unused0>"
    path = prepare(folder, place, False)
    tokens = [other if token == name else token for token in compare_gguf_sight.tokens_of(folder)]
    gguf.convert(folder, path, {"tokenizer.ggml.tokens": tokens})
    for file in (path.parent / "tokenizer.json", path.parent / "tokenizer_config.json"):
        file.write_text(file.read_text().replace(name, other))
    check_oracle(motet, path, case_of(folder, "one"))


def half(tensor):
    return gguf_projector.f16(tensor)


def blocks(tensor):
    """As Q8_0, of which a block has a scale and 32 numbers."""
    values, out = tensor.floats(), []
    for i in range(0, len(values), 32):
        block = values[i : i + 32]
        scale = struct.unpack("<e", struct.pack("<e", max(map(abs, block)) / 127))[0]
        out.append(struct.pack("<e32b", scale, *(round(x / scale) if scale else 0 for x in block)))
    return gguf.Tensor(8, tensor.shape, b"".join(out))


@test
def other_types_of_weights(motet, place):
    """F16 as the oracle; Q8_0, where rows are whole blocks, nearly so. The folders are named like quantisations, so that
    the folder above is searched for a projector, too, which a server in its sandbox must be able to list."""
    folder = SIGHTED / "internvl-bf16"
    case = case_of(folder, "one")
    for name, bound, change in (("f16", 0.01, half), ("q8_0", 0.2, blocks)):
        path = prepare(folder, place / name, False)

        def convert(keys, tensors):
            for key, tensor in tensors.items():
                if tensor.type == gguf.BF16 and (change is half or tensor.shape[-1] % 32 == 0):
                    tensors[key] = change(tensor)

        rewrite(folder, path.parent / "mmproj-model.gguf", convert)
        found = answer(motet, path, case)
        assert found["prompt_token_ids"] == case["prompt_token_ids"]
        worst = max(compare.step_errors(case["steps"][0], found["steps"][0]["top"]))
        assert worst < bound, (name, worst)


@test
def option_names_a_projector(motet, place):
    """--mmproj wins over what lies beside the model, which here is nothing, or another model's."""
    folder = SIGHTED / "qwen3vl-bf16"
    path = prepare(folder, place / "model", False)
    beside, elsewhere = path.parent / "mmproj-model.gguf", place / "elsewhere.gguf"
    beside.rename(elsewhere)
    check_oracle(motet, path, case_of(folder, "one"), "--mmproj", str(elsewhere))
    gguf_projector.convert(SIGHTED / "gemma3vl-bf16", beside)
    check_oracle(motet, path, case_of(folder, "one"), "--mmproj", str(elsewhere))
    check_oracle(motet, path.parent, case_of(folder, "one"), "--mmproj", str(elsewhere))


@test
def text_only_leaves_the_projector_out(motet, place):
    """A projector that motet does not know, or that is broken, does no harm then."""
    folder = SIGHTED / "qwen3vl-bf16"
    path = prepare(folder, place, False)
    unknown = {"clip.projector_type": "telescope"}
    rewrite(folder, path.parent / "mmproj-model.gguf", lambda keys, _: keys.update(unknown))
    with Server(motet, str(path), "--text-only") as server:
        assert any("model.projector" in line for line in server.log), server.log
        assert server.chat(max_tokens=1).status == 200
        part = compare_sight.part_of({"type": "image", "file": "plain"}, PICTURES)
        refused = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [part]}]})
        assert refused.status == 400, refused.body


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", default="build/motet")
    parser.add_argument("names", nargs="*", help="tests to run; else all")
    options = parser.parse_args(arguments)
    passed = 0
    for function in TESTS:
        if options.names and function.__name__ not in options.names:
            continue
        with tempfile.TemporaryDirectory() as place:
            function(options.motet, Path(place))
        print(f"ok   {function.__name__}")
        passed += 1
    print(f"gguf_projector: {passed} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
