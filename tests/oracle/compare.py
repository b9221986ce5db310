#!/usr/bin/env python3
"""Runs motet over tiny checkpoints and compares its answers with what transformers answered (oracle.json).

    compare.py                         the committed checkpoints, both precisions
    compare.py --dir DIR               any folder of checkpoints made by make.py
    compare.py --filter moe --precision fast
    compare.py --motet build/motet -- --threads 1     what follows -- is passed on to motet

Held to: reference precision within 0.002 in every logprob, fast precision within 0.12 (mixtures of experts: 99 % of
the logprobs, since a near tie may pick another expert; and of models with recurrent layers, whose states carry on what
was rounded); the greedy token is the oracle's wherever the oracle's margin exceeds twice the bound. Where it may differ
and does, the texts part and the rest of that prompt is not compared.
Needs nothing beyond Python's standard library.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
BOUND = {"reference": 0.002, "fast": 0.12}
RECURRENT = ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "granitemoehybrid", "nemotron_h", "falcon_h1")
TOP = 20
SECONDS = 120  # for one prompt


class Wrong(Exception):
    """An answer that fails whatever its numbers are."""


@dataclass
class Result:
    errors: list = field(default_factory=list)  # one per compared logprob
    compared: int = 0  # steps
    steps: int = 0
    failures: list = field(default_factory=list)  # sentences

    def quantile(self, q):
        ordered = sorted(self.errors)
        return ordered[min(len(ordered) - 1, math.ceil(q * len(ordered)) - 1)] if ordered else math.inf


def run_motet(motet, folder, prompt, precision, extra):
    """What `motet run --json` prints for one recorded prompt."""
    ids = ",".join(map(str, prompt["prompt_token_ids"]))
    command = [motet, "run", str(folder), "--token-ids", ids, "--max-tokens", str(len(prompt["token_ids"]))]
    command += ["--logprobs", str(TOP), "--json", "--precision", precision, *extra]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Wrong(f"motet did not run: {error}") from error
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise Wrong(f"motet ended with {done.returncode}: {last}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise Wrong(f"motet's output is not JSON: {error}") from error


def check_form(answer, prompt):
    """The answer must hold together by itself before its numbers mean anything."""
    steps, ids = answer["steps"], answer["token_ids"]
    if answer["prompt_token_ids"] != prompt["prompt_token_ids"]:
        raise Wrong("prompt_token_ids are not the ones given")
    if len(steps) != len(prompt["steps"]) or ids != [step["id"] for step in steps]:
        raise Wrong(f"{len(ids)} token_ids and {len(steps)} steps, wanted {len(prompt['steps'])} that agree")
    for step in steps:
        top = step["top"]
        if len({token for token, _ in top}) != TOP or any(a[1] < b[1] for a, b in zip(top, top[1:])):
            raise Wrong(f"top is not {TOP} different ids in falling order")
        if [step["id"], step["logprob"]] not in top:
            raise Wrong("the chosen id is not in top with its logprob")


def step_errors(wanted, found):
    """Differences in logprob. An id that only one side lists lies, on the other, below the last one listed there."""
    ours, theirs = dict(map(tuple, found)), dict(map(tuple, wanted))
    errors = []
    for token in theirs.keys() | ours.keys():
        if token in ours and token in theirs:
            error = abs(ours[token] - theirs[token])
        elif token in theirs:
            error = max(0.0, theirs[token] - min(ours.values()))
        else:
            error = max(0.0, ours[token] - min(theirs.values()))
        errors.append(error if math.isfinite(error) else math.inf)
    return errors


def compare_prompt(answer, prompt, bound, result):
    for position, (wanted, found) in enumerate(zip(prompt["steps"], answer["steps"])):
        result.errors += step_errors(wanted, found["top"])
        result.compared += 1
        if found["id"] != wanted[0][0]:
            margin = wanted[0][1] - wanted[1][1]
            if margin > 2 * bound:
                raise Wrong(
                    f"step {position} chose {found['id']}, not {wanted[0][0]}, against a margin of {margin:.3f}"
                )
            return


def compare_folder(options, folder, precision):
    oracle = json.loads((folder / "oracle.json").read_text())
    bound, result = BOUND[precision], Result()
    for prompt in oracle["prompts"]:
        result.steps += len(prompt["steps"])
        try:
            answer = run_motet(options.motet, folder, prompt, precision, options.extra)
            check_form(answer, prompt)
            compare_prompt(answer, prompt, bound, result)
        except Wrong as wrong:
            result.failures.append(f"prompt of {len(prompt['prompt_token_ids'])}: {wrong}")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            result.failures.append(f"prompt of {len(prompt['prompt_token_ids'])}: malformed answer: {error!r}")
    wanders = oracle.get("moe") or oracle.get("family") in RECURRENT
    share = 0.99 if wanders and precision == "fast" else 1.0
    worst = result.quantile(share)
    if worst > bound and (result.errors or not result.failures):
        result.failures.append(f"logprobs differ by {worst:.6f}, bound {bound} at {share:.0%}")
    return result


def report(folder, precision, result):
    state = "FAIL" if result.failures else "ok"
    print(
        f"{state:4} {folder.name:32} {precision:9} max {result.quantile(1.0):.6f}  p99 {result.quantile(0.99):.6f}  "
        f"steps {result.compared}/{result.steps}",
        flush=True,
    )
    for failure in result.failures:
        print(f"       {failure}", flush=True)


def options_of(description, folder):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", default=str(HERE.parents[1] / "build" / "motet"), help="the program")
    parser.add_argument("--dir", type=Path, default=HERE / folder, help="folder of checkpoint folders")
    parser.add_argument("--precision", choices=["reference", "fast", "both"], default="both")
    parser.add_argument("--turns", action="store_true", help="take every other folder, the rest in the other precision")
    parser.add_argument("--filter", default="", help="only folders whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="checkpoints compared at a time")
    parser.add_argument("extra", nargs="*", help="options for motet, after --")
    return parser


def compare_all(options, compare_one):
    """The exit status, after all folders that the options name."""
    folders = sorted(file.parent for file in options.dir.glob("*/oracle.json") if options.filter in file.parent.name)
    if any(word.startswith("cuda") for word in [*options.extra, os.environ.get("MOTET_DEVICE", "")]):  # refused there
        folders = [folder for folder in folders if "index_topk" not in (folder / "config.json").read_text()]
    return compare_folders(options, folders, compare_one)


def compare_folders(options, folders, compare_one):
    """The same for a list of them."""
    if not folders:
        print(f"oracle: no checkpoints in '{options.dir}' match '{options.filter}'")
        return 1
    precisions = ["reference", "fast"] if options.precision == "both" else [options.precision]
    jobs = [(folder, precision) for folder in folders for precision in precisions]
    if options.turns and "MOTET_TEST_FULL" not in os.environ:  # every checkpoint, and both precisions, not all of both
        turn = {folder: ("reference", "fast")[i % 2] for i, folder in enumerate(folders)}
        jobs = [(folder, precision) for folder, precision in jobs if turn[folder] == precision] or jobs
        if "MOTET_TEST_QUICK" in os.environ:  # sanitizers, which are slow
            jobs = jobs[::6]
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for job, result in zip(jobs, pool.map(lambda job: compare_one(options, *job), jobs)):
            report(*job, result)
            failed += bool(result.failures)
    print(f"oracle: {len(jobs) - failed} passed, {failed} failed")
    return 1 if failed else 0


def main(arguments):
    return compare_all(options_of(__doc__, "checkpoints").parse_args(arguments), compare_folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
