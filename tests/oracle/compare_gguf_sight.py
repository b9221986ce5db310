#!/usr/bin/env python3
"""Writes checkpoints that see as GGUF files with a projector (gguf.py, gguf_projector.py), asks motet about pictures,
and compares its answers with what transformers answered about the folders (oracle.json).

    compare_gguf_sight.py                   every checkpoint that sees and whose weights are BF16
    compare_gguf_sight.py --filter gemma --precision fast --case video
    compare_gguf_sight.py --keep DIR        the GGUF files stay there

Settings of pictures are made of the projector's keys; for cases with videos, whose limits no projector holds, the
folder's own settings lie beside the model. Held to what compare_sight.py holds the folders to.
Needs nothing beyond Python's standard library.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import compare
import compare_sight
import gguf
import gguf_projector
from served import Server, features

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
SETTINGS = ("preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json")


def tokens_of(folder):
    """Spellings of the tokens in their order."""
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    ids = {id: token for token, id in tokenizer["model"]["vocab"].items()}
    ids |= {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    return [ids.get(i, f"[PAD{i}]") for i in range(max(ids) + 1)]


def prepare(folder, place, settings):
    """Writes the model and its projector to a new folder, with the folder's settings of pictures where these are asked
    for, or where keys do not tell them."""
    place.mkdir(parents=True, exist_ok=True)
    extra = {"tokenizer.ggml.tokens": tokens_of(folder)}
    pad = json.loads((folder / "config.json").read_text()).get("text_config", {}).get("pad_token_id")
    if pad is not None:
        extra["tokenizer.ggml.padding_token_id"] = pad
    gguf.convert(folder, place / "model.gguf", extra)
    told = gguf_projector.convert(folder, place / "mmproj-model.gguf")
    for name in TOKENIZER + (SETTINGS if settings or not told else ()):
        if (folder / name).exists():
            shutil.copy(folder / name, place / name)
    return place / "model.gguf"


def shows_video(case):
    return any(part["type"] == "video" for message in case["messages"] for part in message["content"])


def compare_cases(options, path, cases, precision, result):
    if not cases:
        return
    with Server(options.motet, str(path), "--precision", precision, *options.extra) as server:
        for case in cases:
            result.steps += len(case["steps"])
            try:
                compare_sight.compare_case(server, case, options, precision, result)
            except compare.Wrong as wrong:
                result.failures.append(f"{case['name']}: {wrong}")
            except (KeyError, TypeError, ValueError, IndexError) as error:
                result.failures.append(f"{case['name']}: malformed answer: {error!r}")


def compare_folder(options, folder, precision):
    oracle = json.loads((folder / "oracle.json").read_text())
    result = compare.Result()
    cases = [
        case
        for case in oracle["cases"]
        if options.case in case["name"] and (options.videos or not compare_sight.shows_file(case))
    ]
    with tempfile.TemporaryDirectory() as passing:
        for settings in (False, True):
            place = (options.keep or Path(passing)) / folder.name / ("settings" if settings else "keys")
            chosen = [case for case in cases if shows_video(case) == settings]
            compare_cases(options, prepare(folder, place, settings), chosen, precision, result)
    bound, share = compare_sight.BOUND[precision], 0.99 if oracle["moe"] and precision == "fast" else 1.0
    worst = result.quantile(share)
    if worst > bound and (result.errors or not result.failures):
        result.failures.append(f"logprobs differ by {worst:.6f}, bound {bound} at {share:.0%}")
    return result


def convertible(folder):
    """Whether GGUF files can hold the checkpoint."""
    try:
        kind = gguf_projector.kind_of(folder)
        if kind:
            gguf.Converter(folder).convert()
            kind(folder).convert()
        return kind is not None
    except gguf.Unfit:
        return False


def main(arguments):
    parser = compare.options_of(__doc__, "sighted")
    parser.add_argument("--pictures", type=Path, default=compare.HERE / "pictures", help="folder of what is shown")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--keep", type=Path, help="folder for the GGUF files")
    options = parser.parse_args(arguments)
    options.videos = "video" in features(options.motet)
    folders = sorted(f.parent for f in options.dir.glob("*/oracle.json"))
    folders = [f for f in folders if options.filter in f.name and convertible(f)]
    return compare.compare_folders(options, folders, compare_folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
