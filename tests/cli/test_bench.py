#!/usr/bin/env python3
"""motet bench: a model by its steps, operations and first tokens; a shape that lies in memory alone."""
import html.parser
import json
import os
import signal
import subprocess
import tempfile
import time

import helpers

TESTS = []
SIGHTED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle", "sighted")
STEPS = ["--prompt", "40", "--tokens", "5", "--threads", "2"]


def test(function):
    TESTS.append(function)
    return function


def bench(motet, *arguments, **settings):
    return helpers.run(motet, "bench", *arguments, **settings)


def measured(motet, *arguments, **settings):
    code, out, err = bench(motet, *arguments, "--json", **settings)
    assert (code, err) == (0, ""), (code, out, err)
    return json.loads(out)


class Page(html.parser.HTMLParser):
    """What of a page has to be closed is, and it asks nobody for anything."""

    def __init__(self, text):
        super().__init__()
        self.open, self.count = [], {}
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        assert not {"src", "href"} & set(dict(attrs)), (tag, attrs)
        assert tag != "svg" or dict(attrs).get("aria-label"), "a picture without a name"
        if tag not in ("meta", "line", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.open)


@test
def every_part_is_measured_and_told_as_json(motet, tiny):
    all_of = measured(motet, tiny, *STEPS, "--batch", "1,3", "--depth", "40,80")
    assert all_of["bandwidth"] > 0 and all_of["fp32"] >= 0
    assert [(r["prompt"], r["batch"]) for r in all_of["steps"]] == [(40, 1), (40, 3)], all_of["steps"]
    assert all(r["prompt_rate"] > 0 and r["answer_rate"] > 0 for r in all_of["steps"])
    assert [(r["batch"], r["depth"]) for r in all_of["depths"]] == [(1, 40), (1, 80), (3, 40), (3, 80)], all_of["depths"]
    names = {r["operation"].split()[0] for r in all_of["operations"]}
    assert {"matmul", "attention", "norm"} <= names or "attention" in names, names
    for step in "prompt", "answer":
        parts = [r["ms"] for r in all_of["losses"] if r["step"] == step]
        assert abs(sum(parts[:-1]) - parts[-1]) < 1e-3 * parts[-1] + 1e-3, parts  # what is lost adds up to the step
        shares = [r["share"] for r in all_of["operations"] if r["step"] == step]
        assert 0 < sum(shares) < 100.1, shares
    assert all_of["first"][0]["cached"] == 39, all_of["first"]
    assert "tower" not in all_of and "company" not in all_of


@test
def a_model_whose_head_guesses_ahead_is_measured(motet, tiny):
    box = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "box")
    steps = measured(motet, box, *STEPS, "--batch", "1,3", "--only", "steps")["steps"]
    assert [r["batch"] for r in steps] == [1, 3] and all(r["answer_rate"] > 0 for r in steps), steps


@test
def the_hash_is_of_the_logits_alone(motet, tiny):
    def hashes(*more):
        rows = measured(motet, tiny, "--only", "steps", *STEPS, *more)["steps"]
        return [r["hash"] for r in rows]

    one = hashes()
    assert len(one) == 1 and len(one[0]) == len("hash ") + 16, one
    assert hashes("--threads", "1") == one
    assert hashes("--precision", "reference", "--cpu-mask", "portable") == hashes("--precision", "reference")
    more = hashes("--batch", "1,2", "--prompt", "40,41")
    assert more[0] == one[0] and len(set(more)) == 4, more


@test
def the_weights_of_a_step_are_those_that_it_reads(motet, _):
    """Of experts those that are chosen, and of embeddings nothing."""
    folder = os.path.join(os.path.dirname(SIGHTED), "checkpoints", "gptoss-bf16")
    if not os.path.exists(folder):
        return
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    every, experts = 0, 0
    with open(os.path.join(folder, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    for name, tensor in header.items():
        size = tensor["data_offsets"][1] - tensor["data_offsets"][0] if "shape" in tensor else 0
        if "experts" in name:
            experts += size if len(tensor["shape"]) == 3 else 0
        elif size and len(tensor["shape"]) == 2 and "embed" not in name:
            every += size
    chance = config["num_experts_per_tok"] / config["num_local_experts"]
    rows = measured(motet, folder, "--only", "steps", *STEPS, "--batch", "1,3")["steps"]
    for row in rows:
        wanted = every + experts * (1 - (1 - chance) ** row["batch"])
        assert abs(row["weights_bytes"] - wanted) < 1, (row, every, experts)
        assert abs(row["weights_rate"] - 1e-6 * wanted / row["step_ms"]) < 1e-3 * row["weights_rate"], row


@test
def people_get_tables_and_a_page(motet, tiny):
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.html")
        code, out, err = bench(motet, tiny, *STEPS, "--depth", "40", "--plot", page)
        assert (code, err) == (0, ""), err
        for what in "peaks ", "Prompts, then answers", "Operations of a step", "What is lost", "first token", page:
            assert what in out, (what, out)
        with open(page, encoding="utf-8") as f:
            count = Page(f.read()).count
        assert count["svg"] >= 5 and count["table"] == 5 and count["rect"] > 20 and count["main"] == 1, count
        code, out, err = bench(motet, tiny, "--only", "steps", *STEPS, "--plot", os.path.join(folder, "no", "page"))
        assert code == 1 and "cannot be written" in err, err


@test
def pictures_are_measured_by_size(motet, _):
    for name in "gemma3vl-bf16", "qwen3vl-mlx-4bit":
        folder = os.path.join(SIGHTED, name)
        if not os.path.exists(folder):
            continue
        report = measured(motet, folder, "--only", "tower,first", "--picture", "56,112", "--prompt", "20")
        assert [r["side"] for r in report["tower"]] == [56, 112], report["tower"]
        assert report["tower"][0]["patches"] < report["tower"][1]["patches"], report["tower"]
        rows = report["first"]
        assert [r["what"] for r in rows] == ["20 tokens", "picture of 56 x 56", "picture of 112 x 112"], rows
        assert all(r["cached"] > 20 and r["moved_ms"] > 0 for r in rows[1:]), rows


@test
def prompts_beyond_the_context_are_left_out_of_first_tokens(motet, tiny):
    with open(os.path.join(tiny, "config.json"), encoding="utf-8") as f:
        context = json.load(f)["max_position_embeddings"]
    report = measured(motet, tiny, "--only", "first", "--prompt", "20,{}".format(context))
    assert [r["what"] for r in report["first"]] == ["20 tokens"], report["first"]


@test
def company_is_measured_where_it_is_asked_for(motet, _):
    folder = os.path.join(SIGHTED, "qwen3vl-mlx-4bit")
    if os.path.exists(folder):
        rows = measured(motet, folder, "--only", "company", "--picture", "56")["company"]
        assert [r["what"].split(" of ")[0] for r in rows] == [
            "short requests alone", "beside a prompt", "4 streams alone", "4 streams beside pictures"], rows
        assert all(r["tokens"] > 0 and r["between_p50"] <= r["between_p99"] <= r["between_max"] for r in rows), rows


@test
def a_shape_is_what_synth_writes_and_leaves_nothing_behind(motet, _):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "tmp"))
        drawn = {"TMPDIR": os.path.join(folder, "tmp")}
        shape = ["--shape", "wide", "--only", "steps", *STEPS]
        four = measured(motet, *shape, **drawn)["steps"][0]["hash"]
        eight = measured(motet, *shape, "--bits", "8", **drawn)["steps"][0]["hash"]
        fp8 = measured(motet, *shape, "--bits", "fp8", **drawn)["steps"][0]["hash"]
        assert len({four, eight, fp8}) == 3
        assert measured(motet, *shape, "--seed", "2", **drawn)["steps"][0]["hash"] != four
        assert measured(motet, *shape, "--layers", "1", **drawn)["steps"][0]["hash"] != four
        if os.environ.get("MOTET_SYNTH"):
            written = os.path.join(folder, "written")
            subprocess.run([os.environ["MOTET_SYNTH"], "wide", written, "--layout", "mlx-4bit"], check=True)
            assert measured(motet, written, "--only", "steps", *STEPS)["steps"][0]["hash"] == four
        # the folder is there for a moment only; a signal at any time must find none or wait
        for delay in 0, 0.005, 0.01, 0.02, 0.04, 0.08:
            child = subprocess.Popen([motet, "bench", "--shape", "wide"], env=dict(os.environ, **drawn),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(delay)
            child.send_signal(signal.SIGTERM)
            assert child.wait(helpers.PATIENCE) == -signal.SIGTERM, child.returncode
        assert os.listdir(drawn["TMPDIR"]) == [], os.listdir(drawn["TMPDIR"])


@test
def what_cannot_be_measured_is_said(motet, tiny):
    for arguments, status, what in (
            ([], 2, "give one thing to measure"),
            ([tiny, "--shape", "wide"], 2, "give one thing to measure"),
            ([tiny, "--compare"], 2, "needs two servers"),
            ([tiny, tiny], 2, "one argument too many"),
            (["--shape", "none"], 1, "there are qwen3-0.6b, "),
            (["--shape", "wide", "--bits", "5"], 2, "4|8|16|fp8"),
            ([tiny, "--only", "steps,stairs"], 1, '"stairs"'),
            ([tiny, "--prompt", "0"], 1, '"--prompt"'),
            ([tiny, "--prompt", "many"], 1, '"--prompt"'),
            ([tiny, "--tokens", "-1"], 2, "--tokens"),
            (["/nowhere"], 1, "/nowhere")):
        code, out, err = bench(motet, *arguments)
        assert code == status and what in err and not out, (arguments, code, out, err)


if __name__ == "__main__":
    helpers.main("cli_bench_model", TESTS)
