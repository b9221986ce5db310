#!/usr/bin/env python3
"""Makes tiny random checkpoints and records what transformers answers for them.

    make.py                       the committed ones, into checkpoints/ beside this file
    make.py --only moe            those whose name contains "moe"
    make.py --sight               those of models that see, into sighted/, and what they look at into pictures/
    make.py --vectors             encoders and what embeddings and scores are made of, into vectors/
    make.py --guesses             heads that guess ahead for some of the committed ones, into guesses/
    make.py --drafts              drafters for some of them, into drafts/
    make.py --confirm             makes the committed ones anew, elsewhere, from the weights' recorded seeds, and says
                                  whether the transformers that is here answers as was recorded (with --sight: those)
    make.py --other 20 --out DIR  twenty with random families, layouts, shapes and weights, to run motet against
                                  models it was not written with; --seed S for another twenty

Needs torch, transformers 5 and numpy; --sight also torchvision, Pillow and PyAV. Each folder gets config.json,
model*.safetensors and oracle.json; compare.py and compare_sight.py run motet over them and need none of these packages.
"""

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from making import families, fixtures, layouts, other, pictures, seen, vectors

HERE = Path(__file__).resolve().parent
LENGTHS = (1, 5, 37, 250, 300)  # 250: generation crosses position 256; 300: the prompt does
LONG, LONG_STEPS = 2000, 4  # of recurrent models too, whose errors could add up
CHOOSING_LENGTHS = (5, 100, 150)  # of models that choose positions: in each row two may be about as good
STEPS = 12
CLEAR = 0.3  # a margin that decides the greedy token in fast precision
SAME = 0.0005  # apart at most: what is recorded is rounded to a millionth, and processors add in other orders
ROUGH_LIMIT = 0.09  # largest error of the rough model; fast precision is held to 0.12


def make_candidate(spec, config, seed, folder):
    """One draw of the weights: written, read back, run. Returns the records and how well they suit."""
    from making import record

    (folder / "config.json").write_text(json.dumps(config))
    model = record.build(folder)
    shapes = record.shapes(model)
    tensors = families.draw(config.get("text_config", config), shapes, seed)
    layouts.store(folder, config, tensors, spec.layout)
    record.load(model, layouts.restore(folder, shapes))
    rng = np.random.Generator(np.random.Philox(seed + 1000))
    vocab = config.get("text_config", config)["vocab_size"]
    recurrent = (*families.HYBRIDS, *families.MAMBAS, *families.SHORT)
    lengths = (*LENGTHS, LONG) if spec.family in recurrent and spec.family != "nemotron_h" else LENGTHS
    if spec.family in families.CHOOSING:
        lengths = CHOOSING_LENGTHS
    prompts = [rng.integers(0, vocab, n).tolist() for n in lengths]
    records = [record.continuation(model, ids, LONG_STEPS if len(ids) == LONG else STEPS) for ids in prompts]
    group = 32 if spec.layout.mlx or spec.layout.packed else 0
    errors = record.rough_errors(model, records, group)
    clear = float((record.margins(records) > CLEAR).mean())
    variety = float(np.mean([len(set(r["token_ids"])) / len(r["token_ids"]) for r in records]))
    steady = spec.family not in families.CHOOSING or record.is_steady(model, records)
    return records, {"clear": clear, "rough": float(errors.max()), "variety": variety, "steady": steady}


def score(fit):
    return 100 * fit["steady"] + fit["clear"] + 0.8 * fit["variety"] - 20 * max(0, fit["rough"] - ROUGH_LIMIT)


def make(job):
    """The best of several seeds, into out/name."""
    spec, out, first_seed, tries = job
    import torch
    import transformers

    from making import record

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    original = families.config_dict(spec.family, spec.settings)
    config = families.published(original) if spec.published else original
    config = families.nested(config) if spec.layout.nested else config
    best = None
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(first_seed, first_seed + tries):
            folder = Path(scratch) / str(seed)
            folder.mkdir()
            records, fit = make_candidate(spec, config, seed, folder)
            if best is None or score(fit) > score(best[2]):
                best = (seed, records, fit, folder)
        seed, records, fit, folder = best
        families.check_same(original, folder)
        if spec.layout.for_transformers():
            record.confirm(folder, records)
        layouts.confirm(folder, spec.layout)
        oracle = {
            "transformers": transformers.__version__,
            "torch": torch.__version__,
            "seed": seed,
            "family": spec.family,
            "moe": families.is_mixture(spec.family, spec.settings),
            "layout": spec.layout.describe(),
            "prompts": records,
        }
        (folder / "oracle.json").write_text(json.dumps(oracle, separators=(",", ":")) + "\n")
        shutil.rmtree(out / spec.name, ignore_errors=True)
        shutil.copytree(folder, out / spec.name)
    size = sum(file.stat().st_size for file in (out / spec.name).iterdir())
    return (
        f"{spec.name:28} {spec.layout.describe():42} {size / 1024:6.0f} KB  seed {seed}  "
        f"clear {fit['clear']:.2f}  variety {fit['variety']:.2f}  rough {fit['rough']:.3f}"
    )


def options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "checkpoints", help="folder for the checkpoints")
    parser.add_argument("--only", default="", help="make only those whose name contains this")
    parser.add_argument(
        "--other", type=int, default=0, metavar="N", help="make N random ones instead of the committed ones"
    )
    parser.add_argument("--sight", action="store_true", help="make those that see instead")
    parser.add_argument("--vectors", action="store_true", help="make those of embeddings and scores instead")
    parser.add_argument("--guesses", action="store_true", help="make heads that guess ahead instead")
    parser.add_argument("--drafts", action="store_true", help="make drafters instead")
    parser.add_argument("--confirm", action="store_true", help="compare this transformers with what is recorded")
    parser.add_argument("--seed", type=int, default=1, help="of the random ones' shapes; of all weights")
    parser.add_argument("--tries", type=int, default=12, help="weights drawn per checkpoint; the clearest is kept")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    chosen = parser.parse_args(arguments)
    if chosen.other and chosen.out == HERE / "checkpoints":
        parser.error("--other needs --out: the committed checkpoints stay as they are")
    return chosen


def largest_difference(recorded, made):
    """Of numbers that stand at the same place in both; infinite where they differ in anything else. Of the leading
    tokens of a step only the logprobs count: two that are as likely may change places."""
    if isinstance(recorded, list) and len(recorded) == 2 and isinstance(recorded[1], float):
        return abs(recorded[1] - made[1])
    if isinstance(recorded, float) and isinstance(made, float):
        return abs(recorded - made)
    if isinstance(recorded, dict) and isinstance(made, dict) and recorded.keys() == made.keys():
        recorded, made = list(recorded.values()), list(made.values())
    if isinstance(recorded, list) and isinstance(made, list) and len(recorded) == len(made):
        return max(map(largest_difference, recorded, made), default=0)
    return 0 if recorded == made else float("inf")


def confirm(job):
    """One that is committed, made anew with its recorded seed: a line, and how far the answers are apart."""
    spec, out, committed, sight = job
    recorded = json.loads((committed / spec.name / "oracle.json").read_text())
    (seen.make if sight else make)((spec, out, recorded["seed"], 1))
    made = json.loads((out / spec.name / "oracle.json").read_text())
    key = "cases" if sight else "prompts"
    if sight:  # of some, a case that fast precision cannot be held to was left out of what is committed
        names = [case["name"] for case in recorded[key]]
        made[key] = [case for case in made[key] if case["name"] in names]
    for old, new in zip(recorded[key], made[key]):  # some were recorded when long prompts had more steps
        if not sight:
            old["steps"], old["token_ids"] = old["steps"][: len(new["steps"])], old["token_ids"][: len(new["steps"])]
    apart = largest_difference(recorded[key], made[key])
    return f"{spec.name:28} {recorded['transformers']:12} {made['transformers']:12} {apart:.6f} apart", apart


def confirm_all(chosen):
    """Whether all are within what another processor's arithmetic may change."""
    specs = [spec for spec in (seen.ALL if chosen.sight else fixtures.ALL) if chosen.only in spec.name]
    committed, worst = HERE / ("sighted" if chosen.sight else "checkpoints"), 0
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / committed.name
        out.mkdir()
        if chosen.sight:
            pictures.write(out.parent / "pictures")
        jobs = [(spec, out, committed, chosen.sight) for spec in specs]
        with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
            for line, apart in pool.imap(confirm, jobs):
                print(line, flush=True)
                worst = max(worst, apart)
    print(f"confirm: {len(specs)} made anew, at most {worst:.6f} apart")
    return worst < SAME


def main():
    chosen = options(sys.argv[1:])
    if chosen.confirm:
        sys.exit(not confirm_all(chosen))
    if chosen.vectors:
        out = HERE / "vectors" if chosen.out == HERE / "checkpoints" else chosen.out
        vectors.make(out, HERE / "checkpoints", chosen.only)
        return
    if chosen.guesses or chosen.drafts:
        from making import drafts, guesses

        kind = "drafts" if chosen.drafts else "guesses"
        out = HERE / kind if chosen.out == HERE / "checkpoints" else chosen.out
        (drafts if chosen.drafts else guesses).make(out, HERE / "checkpoints", chosen.only, chosen.seed, chosen.tries)
        return
    specs = other.specs(chosen.other, chosen.seed) if chosen.other else fixtures.ALL
    if chosen.sight:
        specs = seen.ALL
        chosen.out = HERE / "sighted" if chosen.out == HERE / "checkpoints" else chosen.out
        pictures.write(chosen.out.parent / "pictures")
    specs = [spec for spec in specs if chosen.only in spec.name]
    chosen.out.mkdir(parents=True, exist_ok=True)
    jobs = [(spec, chosen.out, chosen.seed, chosen.tries) for spec in specs]
    with multiprocessing.get_context("spawn").Pool(chosen.jobs) as pool:
        for line in pool.imap(seen.make if chosen.sight else make, jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
