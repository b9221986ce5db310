#!/usr/bin/env python3
"""Writes checkpoints as GGUF files (gguf.py) and compares what motet answers with both.

    compare_gguf.py                    every checkpoint whose weights are 16 or 32 bits, those that see as well
    compare_gguf.py --filter qwen35 --precision fast
    compare_gguf.py --keep DIR         the GGUF files stay there

In reference precision every logprob must be the same, since the weights are; where numbers that are not weights have
been rounded on the way to the GGUF file, they may differ by BOUND (NEAR says which and why). In fast precision the
bound is compare.py's. Where the checkpoint has recorded answers of tokens, the GGUF file's are also held to these.
Of the checkpoints in BLOCKS, a file with blocks of Q8_0 is also compared with one that has the numbers they stand for.
Needs nothing beyond Python's standard library.
"""

import json
import sys
import tempfile
from pathlib import Path

import compare
import gguf

HERE = compare.HERE
BOUND = 0.0005
NEAR = {
    "A_log": "recurrent layers have exp(A_log) in the file, which is rounded, and its logarithm is rounded again",
    "llama3": "frequencies are divided by factors that are rounded to 32 bits",
    "scale": "what queries are scaled by is rounded to 32 bits",
    "factors": "Granite's factors and LongRoPE's are rounded to 32 bits",
}
BLOCKS = ("llama-bf16", "qwen35-bf16", "qwen3next-bf16", "qwen35moe-bf16", "gptoss-bf16", "gemma4-moe-bf16")
LENGTH, STEPS = 40, 8  # of the prompt and answer for checkpoints without recorded tokens


def nearly(folder):
    """The keys of NEAR that apply."""
    config = json.loads((folder / "config.json").read_text())
    config |= config.get("text_config", {})
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    near = ["A_log"] if "linear_num_key_heads" in config else []
    near += ["llama3"] if rope.get("rope_type") == "llama3" else []
    near += ["factors"] if config["model_type"] in ("granite", "phi3") else []
    near += ["scale"] if config.get("query_pre_attn_scalar", 0) != config.get("head_dim", 0) else []
    return near if config["model_type"].startswith("gemma") or "scale" not in near else near[:-1]


def prompts_of(folder):
    """Recorded prompts, or one that is as good as any other."""
    recorded = json.loads((folder / "oracle.json").read_text())
    if "prompts" in recorded and "prompt_token_ids" in recorded["prompts"][0]:
        return recorded["prompts"], True
    ids = [(7 * i * i + 3 * i) % 120 + 3 for i in range(LENGTH)]
    return [{"prompt_token_ids": ids, "token_ids": [0] * STEPS, "steps": [None] * STEPS}], False


def compare_answers(ours, theirs, bound, result):
    """Differences between the answers of the GGUF file and the folder."""
    for found, wanted in zip(ours["steps"], theirs["steps"]):
        result.errors += compare.step_errors(wanted["top"], found["top"])
        result.compared += 1
        if found["id"] != wanted["id"]:
            if wanted["top"][0][1] - wanted["top"][1][1] > 2 * bound:
                raise compare.Wrong(f"chose {found['id']}, the folder {wanted['id']}")
            return


def compare_file(options, folder, path, precision, bound, result):
    prompts, recorded = prompts_of(folder)
    for prompt in prompts:
        result.steps += len(prompt["steps"])
        try:
            ours = compare.run_motet(options.motet, path, prompt, precision, options.extra)
            compare.check_form(ours, prompt)
            theirs = compare.run_motet(options.motet, folder, prompt, precision, options.extra)
            compare_answers(ours, theirs, bound, result)
            if recorded:
                compare.compare_prompt(ours, prompt, compare.BOUND[precision], compare.Result())
        except compare.Wrong as wrong:
            result.failures.append(f"prompt of {len(prompt['prompt_token_ids'])}: {wrong}")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            result.failures.append(f"prompt of {len(prompt['prompt_token_ids'])}: malformed answer: {error!r}")


def compare_blocks(options, folder, place, result):
    keys, tensors = gguf.Converter(folder).convert()
    wide = [name for name, t in tensors.items() if len(t.shape) > 1 and t.shape[-1] % gguf.BLOCK == 0]
    wide = [name for name in wide if name.endswith(".weight") and "norm" not in name and "conv" not in name]
    both = {name: gguf.q8_0(tensors[name]) for name in wide}
    for i, name in enumerate(("blocks", "numbers")):
        gguf.write(place / f"{name}.gguf", keys, tensors | {name: pair[i] for name, pair in both.items()})
    prompt = prompts_of(folder)[0][-1]
    answers = [
        compare.run_motet(options.motet, place / f"{name}.gguf", prompt, "reference", options.extra)
        for name in ("blocks", "numbers")
    ]
    if answers[0] != answers[1]:
        result.failures.append("blocks of Q8_0 say something else than the numbers they stand for")


def compare_folder(options, folder, precision):
    result = compare.Result()
    near = nearly(folder)
    bound = compare.BOUND["fast"] if precision == "fast" else BOUND if near else 0.0
    with tempfile.TemporaryDirectory() as passing:
        path = (options.keep or Path(passing)) / f"{folder.parent.name}-{folder.name}.gguf"
        gguf.convert(folder, path)
        compare_file(options, folder, path, precision, bound, result)
        if precision == "reference" and folder.name in BLOCKS and folder.parent == options.dir:
            compare_blocks(options, folder, Path(passing), result)
    share = 0.99 if precision == "fast" else 1.0
    worst = result.quantile(share)
    if worst > bound and (result.errors or not result.failures):
        result.failures.append(f"logprobs differ by {worst:.6g} from the folder's, bound {bound}")
    return result


def convertible(folder):
    """Whether a GGUF file can hold the checkpoint."""
    try:
        gguf.Converter(folder).convert()
        return True
    except gguf.Unfit:
        return False


def main(arguments):
    parser = compare.options_of(__doc__, "checkpoints")
    parser.add_argument("--keep", type=Path, help="folder for the GGUF files")
    options = parser.parse_args(arguments)
    folders = sorted(f.parent for f in [*options.dir.glob("*/oracle.json"), *(HERE / "sighted").glob("*/oracle.json")])
    folders = [f for f in folders if options.filter in f.name and convertible(f)]
    return compare.compare_folders(options, folders, compare_folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
