#!/usr/bin/env python3
"""Asks a motet server for embeddings and scores and compares them with what transformers made (vectors/*/oracle.json).

    compare_vectors.py --motet build/motet --precision reference

Held to: the tokens are as many; vectors have a cosine of at least 0.99999 in reference precision and 0.999 in fast,
and no number is further away than 0.001 of the longest (0.02 in fast); scores likewise. All texts of a
folder are sent at once, then one by one, and the bits of both answers must be equal. Encoders are served alone,
beside another model and from GGUF files, and a decoder's GGUF file pools as its key says. Needs nothing beyond Python's standard library.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gguf
import gguf_encoder

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "api"))

from served import Server  # noqa: E402

COSINE = {"reference": 0.99999, "fast": 0.999}
APART = {"reference": 1e-3, "fast": 2e-2}
DECODER = HERE / "checkpoints" / "qwen3-sharded-bf16"


class Wrong(Exception):
    """An answer that is not the oracle's."""


def ask(server, path, body):
    answer = server.post(path, body)
    if answer.status != 200:
        raise Wrong(f"status {answer.status}: {answer.body[:300].decode(errors='replace')}")
    return answer.json()


def check_vector(found, wanted, precision):
    """How far apart they are."""
    if len(found) != len(wanted):
        raise Wrong(f"{len(found)} numbers, wanted {len(wanted)}")
    product = sum(a * b for a, b in zip(found, wanted))
    cosine = product / math.sqrt(sum(a * a for a in found) * sum(b * b for b in wanted))
    largest = max(map(abs, wanted))
    apart = max(abs(a - b) for a, b in zip(found, wanted)) / max(largest, 1)
    if cosine < COSINE[precision] or apart > APART[precision]:
        raise Wrong(f"cosine {cosine:.7f}, {apart:.2g} apart")
    return apart


def check_embeddings(server, model, cases, precision):
    alone = [ask(server, "/v1/embeddings", {"model": model, "input": case["input"]}) for case in cases]
    worst = 0
    for case, answer in zip(cases, alone):
        if answer["usage"]["prompt_tokens"] != case["tokens"]:
            raise Wrong(f"{answer['usage']['prompt_tokens']} tokens, wanted {case['tokens']}")
        worst = max(worst, check_vector(answer["data"][0]["embedding"], case["vector"], precision))
    for kind in (str, list):
        these = [i for i, case in enumerate(cases) if isinstance(case["input"], kind)]
        if not these:
            continue
        body = {"model": model, "input": [cases[i]["input"] for i in these]}
        together = ask(server, "/v1/embeddings", body)["data"]
        if [entry["embedding"] for entry in together] != [alone[i]["data"][0]["embedding"] for i in these]:
            raise Wrong("company changes an embedding")
    return worst


def check_scores(server, model, oracle, precision):
    body = {"model": model, "query": oracle["query"], "documents": oracle["documents"], "return_documents": True}
    answer = ask(server, "/v1/rerank", body)
    results = answer["results"]
    worst = 0
    if answer["usage"]["prompt_tokens"] != oracle["tokens"]:
        raise Wrong(f"{answer['usage']['prompt_tokens']} tokens, wanted {oracle['tokens']}")
    if sorted(r["index"] for r in results) != list(range(len(oracle["documents"]))):
        raise Wrong("not every document has a score")
    if any(a["relevance_score"] < b["relevance_score"] for a, b in zip(results, results[1:])):
        raise Wrong("the best do not come first")
    for r in results:
        if r["document"]["text"] != oracle["documents"][r["index"]]:
            raise Wrong("a document is not its own")
        worst = max(worst, abs(r["relevance_score"] - oracle["scores"][r["index"]]))
        single = dict(body, documents=[oracle["documents"][r["index"]]])
        if ask(server, "/v1/rerank", single)["results"][0]["relevance_score"] != r["relevance_score"]:
            raise Wrong("company changes a score")
    if worst > APART[precision]:
        raise Wrong(f"scores are {worst:.2g} apart")
    return worst


def check(server, model, oracle, precision):
    if "rerank" in oracle:
        return check_scores(server, model, oracle["rerank"], precision)
    return check_embeddings(server, model, oracle["embeddings"], precision)


def scaled(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def check_file(motet, folder, oracle, precision):
    """The encoder as a GGUF file, whose vectors always have the length 1."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"{folder.name}.gguf"
        gguf_encoder.write(folder, path)
        listed = subprocess.run([motet, "list", "--models-dir", scratch], capture_output=True, text=True, check=True)
        if "embeddings" not in listed.stdout:
            raise Wrong(f"listed as {listed.stdout}")
        if "rerank" in oracle and folder.name.startswith("bert"):
            return check_refused(motet, path)
        if "embeddings" in oracle:
            oracle = {"embeddings": [case | {"vector": scaled(case["vector"])} for case in oracle["embeddings"]]}
        with Server(motet, path, "--precision", precision) as server:
            return check(server, folder.name, oracle, precision)


def check_refused(motet, path):
    """The converter leaves out what BERT's classifier reads."""
    made = subprocess.run([motet, "serve", path, "--check"], capture_output=True, text=True, check=False)
    if made.returncode == 0 or "its classifier reads a pooler" not in made.stdout:
        raise Wrong(f"ends with {made.returncode}: {made.stdout}{made.stderr}")
    return 0


def pooled_file(mode, path):
    """The decoder as a GGUF file with a way to pool."""
    gguf.convert(DECODER, path, {"qwen3.pooling_type": {"mean": 1, "cls": 2, "last": 3}[mode]})


def pooled_copy(mode, normalise, folder):
    """The decoder's checkpoint with a way to pool."""
    for file in DECODER.iterdir():
        os.symlink(file, folder / file.name)
    kinds = ["Transformer", "Pooling", "Normalize"][: 3 if normalise else 2]
    modules = [{"path": f"{i}_{kind}", "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    flag = {"last": "lasttoken", "mean": "mean_tokens", "cls": "cls_token"}[mode]
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{flag}": True}))


def runs(options):
    """Each as a name and a function that gives the largest difference."""
    encoders = sorted(f.parent for f in (HERE / "vectors").glob("*/oracle.json") if f.parent.name != "qwen3-decoder")
    oracles = {folder: json.loads((folder / "oracle.json").read_text()) for folder in encoders}

    def alone(folder):
        with Server(options.motet, folder, "--precision", options.precision) as server:
            return check(server, folder.name, oracles[folder], options.precision)

    def file(folder):
        return check_file(options.motet, folder, oracles[folder], options.precision)

    def decoder_file(mode, settings):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "decoder.gguf"
            pooled_file(mode, path)
            cases = [case | {"vector": scaled(case["vector"])} for case in settings["embeddings"]]
            with Server(options.motet, path, "--precision", options.precision) as server:
                return check_embeddings(server, "default", cases, options.precision)

    def beside():
        extra = [word for folder in encoders for word in ("--embedding-model", str(folder))]
        with Server(options.motet, DECODER, "--precision", options.precision, *extra) as server:
            return max(check(server, f.name, oracles[f], options.precision) for f in encoders)

    def decoder(mode, settings, chunk):
        with tempfile.TemporaryDirectory() as scratch:
            pooled_copy(mode, settings["normalise"], Path(scratch))
            extra = ["--precision", options.precision, *chunk]
            with Server(options.motet, scratch, *extra) as server:
                return check_embeddings(server, "default", settings["embeddings"], options.precision)

    for folder in encoders:
        yield folder.name, lambda folder=folder: alone(folder)
        if folder.name.startswith(("bert", "xlmr")):  # no others are converted here
            yield f"{folder.name}.gguf", lambda folder=folder: file(folder)
    yield "all beside a decoder", beside
    pooling = json.loads((HERE / "vectors" / "qwen3-decoder" / "oracle.json").read_text())["pooling"]
    for mode, settings in pooling.items():
        yield f"decoder {mode} .gguf", lambda m=mode, s=settings: decoder_file(m, s)
        for chunk in ([], ["--chunk", "7"]):
            yield f"decoder {mode} {' '.join(chunk)}", lambda m=mode, s=settings, c=chunk: decoder(m, s, c)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motet", default="build/motet")
    parser.add_argument("--precision", choices=list(COSINE), default="reference")
    parser.add_argument("--filter", default="", help="only those whose name contains this")
    options = parser.parse_args()
    passed = failed = 0
    for name, run in runs(options):
        if options.filter not in name:
            continue
        try:
            print(f"{name:40} {run():.2g} apart")
            passed += 1
        except Wrong as wrong:
            print(f"{name:40} {wrong}")
            failed += 1
    print(f"oracle-vectors-{options.precision}: {passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
