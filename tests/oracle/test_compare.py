#!/usr/bin/env python3
"""Does compare.py notice? It is run against a pretended motet that answers rightly, or wrongly in one known way."""

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
import unittest
from pathlib import Path

import compare
import compare_sight
import compare_vectors
from served import Answer

FAKE = """#!{python}
import json, sys
args = dict(zip(sys.argv[3::1], sys.argv[4::1]))
folder, ids = sys.argv[2], [int(i) for i in args["--token-ids"].split(",")]
oracle = json.load(open(folder + "/oracle.json"))
prompt = next(p for p in oracle["prompts"] if p["prompt_token_ids"] == ids)
steps = [[list(pair) for pair in step] for step in prompt["steps"]]
{change}
tops = [sorted(step, key=lambda pair: -pair[1]) for step in steps]
answer = {{"prompt_token_ids": ids, "token_ids": [top[0][0] for top in tops], "finish_reason": "length",
          "steps": [{{"id": top[0][0], "logprob": top[0][1], "top": top}} for top in tops]}}
{after}
print(json.dumps(answer))
"""


def oracle(moe=False):
    """Two prompts of three steps; the second step of each has a margin of 0.001, the others of 1."""

    def step(first, margin):
        return [[first, -0.5]] + [[100 + i, -0.5 - margin - 0.1 * i] for i in range(19)]

    steps = [step(1, 1.0), step(2, 0.001), step(3, 1.0)]
    prompts = [{"prompt_token_ids": ids, "token_ids": [1, 2, 3], "steps": steps} for ids in ([7], [7, 8, 9])]
    return {"moe": moe, "prompts": prompts}


class Compare(unittest.TestCase):
    def compare(self, precision, change="", after="", moe=False):
        """(exit code, last line) of compare.py over one checkpoint."""
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = Path(folder) / "checkpoints" / "one"
            checkpoint.mkdir(parents=True)
            (checkpoint / "oracle.json").write_text(json.dumps(oracle(moe)))
            motet = Path(folder) / "motet"
            motet.write_text(FAKE.format(python=sys.executable, change=change, after=after))
            os.chmod(motet, stat.S_IRWXU)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = compare.main(["--motet", str(motet), "--dir", str(checkpoint.parent), "--precision", precision])
        return code, out.getvalue()

    def assert_passes(self, *arguments, **more):
        code, text = self.compare(*arguments, **more)
        self.assertEqual(code, 0, text)
        self.assertIn("oracle: 1 passed, 0 failed", text)
        return text

    def assert_fails(self, expected, *arguments, **more):
        code, text = self.compare(*arguments, **more)
        self.assertEqual(code, 1, text)
        self.assertIn("oracle: 0 passed, 1 failed", text)
        self.assertIn(expected, text)

    def test_right_answers_pass(self):
        self.assertIn("steps 6/6", self.assert_passes("reference"))

    def test_small_errors_pass_and_larger_fail(self):
        self.assert_passes("reference", "steps[2][4][1] += 0.0019")
        self.assert_fails("logprobs differ by 0.0021", "reference", "steps[2][4][1] += 0.0021")
        self.assert_passes("fast", "steps[2][4][1] += 0.0021")
        self.assert_fails("logprobs differ", "fast", "steps[2][0][1] += 0.16")

    def test_a_mixture_may_miss_in_one_percent(self):
        self.assert_passes("fast", "if len(ids) == 1: steps[0][0][1] += 0.4", moe=True)
        self.assert_fails("at 99%", "fast", "for pair in steps[0]: pair[1] += 0.4", moe=True)
        self.assert_fails("logprobs differ", "reference", "if len(ids) == 1: steps[0][0][1] += 0.4", moe=True)

    def test_texts_may_part_only_at_a_near_tie(self):
        self.assertIn("steps 4/6", self.assert_passes("reference", "steps[1][1][1] += 0.0015"))
        self.assert_fails("step 0 chose 100, not 1", "fast", "steps[0][1][1] += 1.1")

    def test_an_id_missing_from_top_counts(self):
        self.assert_passes("reference", "steps[0][19] = [999, steps[0][19][1] + 0.001]")
        self.assert_fails("logprobs differ", "reference", "steps[0][4] = [999, -9.0]")

    def test_malformed_answers_fail(self):
        self.assert_fails(
            "motet ended with 3: no such model", "fast", "sys.exit(sys.stderr.write('no such model') and 3)"
        )
        self.assert_fails("not JSON", "fast", after="print('{')")
        self.assert_fails("malformed answer", "fast", after="del answer['steps'][0]['top']")
        self.assert_fails("wanted 3", "fast", after="answer['steps'].pop()")
        self.assert_fails("logprobs differ by inf", "fast", "steps[0][3][1] = float('nan')")

    def test_a_refusal_is_shown(self):
        class Refusing:
            def post(self, *_):
                return Answer(400, [], b"no such picture")

        with self.assertRaisesRegex(compare.Wrong, "status 400: no such picture"):
            compare_sight.ask(Refusing(), {"messages": [], "token_ids": []}, Path())
        with self.assertRaisesRegex(compare_vectors.Wrong, "status 400: no such picture"):
            compare_vectors.ask(Refusing(), "/v1/embeddings", {})

    def test_nothing_to_compare_fails(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(compare.main(["--dir", folder]), 1)
        self.assertIn("no checkpoints", out.getvalue())


if __name__ == "__main__":
    outcome = unittest.main(exit=False).result
    failed = len(outcome.failures) + len(outcome.errors)
    print(f"oracle-compare: {outcome.testsRun - failed} passed, {failed} failed")
    sys.exit(bool(failed))
