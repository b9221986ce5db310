#!/usr/bin/env python3
"""usage: test_data.py [MOTET]

The data: what is learned is exactly what the template shows, every question's own answer is judged right, and what is
held out stays out. With MOTET, its tokenizer and its templates give the same."""

import json
import re
import subprocess
import sys
import tempfile
import unicodedata
import unittest
from pathlib import Path

import numpy as np
import torch

import draw
import picture
from data import faces, memory, reading, sight, sums, talk, tools, words
from data.ask import judge
from data.dice import Dice, is_held
from data.kinds import KINDS
from data.mix import SHOWN, SKILLS, conversation, questions, tooled
from pack import Packer, Reader
from score import parsed, plain
from style import CELL, Faces
from template import TOKENS, render

MOTET = None


def _grid(height, width):
    place = torch.arange(height * width)
    return torch.stack([place % width, place // width]) + 0.5, torch.tensor([width, height, min(height, width)]).float()


class Data(unittest.TestCase):
    def setUp(self):
        self.reader = Reader()

    def test_what_is_learned_is_each_answer_to_its_end(self):
        for seed in range(300):
            made = conversation(Dice(seed))
            ids, _ = self.reader.read(made, (64, 64))
            text = self.reader.encoder.decode(ids[self.reader.learned(ids)].tolist())
            said = [m for m in made["messages"] if m["role"] == "assistant"]
            self.assertEqual(text.count("<|im_end|>"), len(said))
            for part, message in zip(text.split("<|im_end|>"), said):
                self.assertTrue(part.startswith(message.get("reasoning_content") or message["content"]), part)
                self.assertIn(message["content"], part)

    def test_a_prompt_is_the_beginning_of_the_conversation(self):
        for skill in SKILLS:
            for made in questions(skill, 5, 3):
                whole, _ = self.reader.read(made, (64, 96))
                prompt, _ = self.reader.read({**made, "messages": made["messages"][:-1]}, (64, 96), True)
                self.assertEqual(whole[: len(prompt)].tolist(), prompt.tolist())
                self.assertTrue(self.reader.learned(whole)[len(prompt)])
                self.assertFalse(self.reader.learned(whole)[len(prompt) - 1])

    def test_every_question_has_a_right_answer(self):
        for skill in SKILLS:
            for made in questions(skill, 20, 5):
                whole, _ = self.reader.read(made, (64, 64))
                prompt, _ = self.reader.read({**made, "messages": made["messages"][:-1]}, (64, 64), True)
                content, reasoning, calls = parsed(
                    self.reader.encoder.decode(whole[len(prompt) :].tolist()), made["thinks"]
                )
                check = dict(made["messages"][-1]["check"])
                if "calls" in check:
                    check["calls"] = plain(check["calls"])
                self.assertTrue(judge(check, content, reasoning, calls), (skill, check, content, calls))
                self.assertFalse(
                    judge(check, "Something else.", reasoning, []) and (check.get("want") or "calls" in check), check
                )

    def test_held_out_wordings_are_not_trained_on(self):
        seen = {Dice(i).pick(reading.READ) for i in range(500)}
        asked = {Dice(i, True).pick(reading.READ) for i in range(500)}
        self.assertEqual(seen & asked, set())
        self.assertTrue(all(is_held(x) for x in asked))

    def test_wordings_added_later_do_not_hold_those_held_out_before(self):
        bare = lambda text: re.sub(r"[^a-z0-9{}]+", " ", text.lower()).strip()  # noqa: E731
        lists = [(k.first, k.more) for k in KINDS] + [(talk.STRANGE, talk.MORE_STRANGE)]
        lists += [(talk.WHO, [talk.MORE_WHO]), (talk.CAN, [talk.MORE_CAN])]
        lists += [(sums.PLUS, [sums.MORE_PLUS]), (sums.MINUS, [sums.MORE_MINUS])]
        lists += [(reading.NUMBER, [reading.MORE_NUMBER])]
        lists += [(memory.REPEAT, [memory.MORE_REPEAT])]
        lists += [(said, lists) for (said, _, _), (lists, _, _, _) in zip(talk.SMALL, talk.MORE_SMALL)]
        for first, more in lists:
            held = [bare(t) for t in first if is_held(t)]
            for text in (bare(t) for each in more for t in each):
                self.assertFalse(any(f" {h} " in f" {text} " for h in held), text)

    def test_joins_added_later_do_not_hold_those_held_out_before(self):
        for salt, first, more in (
            ("join", tools.JOINS, tools.MORE_JOINS),
            ("around", tools.AROUND, tools.MORE_AROUND),
        ):
            held = [t for t in first if is_held(salt + t)]
            self.assertTrue(held)
            for text in (t for each in more for t in each):
                self.assertFalse(any(h.strip().lower() in text.lower() for h in held), text)

    def test_requests_keep_the_values_that_calls_need(self):
        for i in range(400):
            made = tooled(Dice(f"kept {i}"), "two")
            for said, message in zip(made["messages"], made["messages"][1:]):
                for call in message.get("tool_calls", []):
                    for value in call["function"]["arguments"].values():
                        self.assertTrue(isinstance(value, bool) or str(value) in said["content"], said["content"])

    def test_each_tool_is_asked_for_in_ways_never_trained_on(self):
        for kind in KINDS:
            seen = {kind.wording(Dice(f"s {i}")) for i in range(300)}
            asked = {kind.wording(Dice(f"h {i}", True)) for i in range(100)} - set(kind.first)
            self.assertTrue(asked and all(is_held(x) for x in asked), kind.names[0])
            self.assertEqual(seen & asked, set())

    def test_packed_rows_hold_their_conversations(self):
        packer = Packer(4, 512, 16, "test")
        b = packer.batch_of()
        self.assertGreater((b["document"] >= 0).mean(), 0.7)
        shown = (b["ids"] == packer.reader.pad).sum()
        cells = b["side"][0] * b["side"][1] // 1024
        self.assertEqual((b["slots"] < 2048).sum(), shown)
        self.assertEqual((b["rows"] != 0).any(1).sum() * cells, shown)
        flat = b["ids"].ravel()
        known = b["target"] >= 0
        self.assertTrue((flat[b["where"][known] + 1] == b["target"][known]).all())
        both = b["after"] >= 0
        self.assertTrue((flat[b["where"][both] + 2] == b["after"][both]).all())

    def test_both_drawers_draw_the_same(self):
        dice = Dice("drawers", held=True)
        scenes = [make(dice).pictures[0] for _, make, _ in SHOWN]
        many = draw.drawn(torch.tensor(np.stack([draw.described(s) for s in scenes])), 96, 128)
        for one, scene in zip(many, scenes):
            alone = torch.tensor(picture.drawn(scene, 96, 128)).permute(2, 0, 1) / 255
            # two samples at a letter's edge may fall either way
            self.assertLess((one - alone).abs().max().item(), 0.55)
            self.assertLess((one - alone).abs().mean().item(), 1e-3)

    def test_pictures_in_any_style_show_their_letters(self):
        """An atlas whose only face has a full square for every letter: ink is where the word is, whatever the style."""
        cells = np.zeros((1, len(faces.LETTERS), CELL, CELL), np.uint8)
        cells[:, :, 8:24, 6:22] = 63
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "atlas.npz")
            np.savez(path, cells=cells, wide=np.full((1, len(faces.LETTERS)), 20.0), small=np.array([True]))
            known = Faces(path)
        flat = torch.from_numpy(cells.reshape(-1))
        for seed in range(60):
            dice = Dice(f"style {seed}")
            ask = reading.read(dice) if seed % 2 else dice.any(SHOWN)[1](dice)
            rows = np.stack([draw.described(s, dice.random, known) for s in ask.pictures])
            self.assertEqual(rows.shape[1], draw.WIDTH)
            made = draw.drawn(torch.tensor(rows), 96, 128, flat)
            self.assertTrue(((made >= 0) & (made <= 1)).all())
            if seed % 2 and not ask.pictures[0].things:
                ground = draw.grounded(torch.tensor(rows[:, : draw.GROUND + draw.WAVES * draw.WAVE]), *_grid(96, 128))
                changed = (made.flatten(2) - ground).abs().amax(1) > 0.02
                self.assertGreater(changed.float().mean().item(), 0.002, ask.answer)

    def test_fonts_of_the_evaluation_are_held_out(self):
        self.assertTrue(all(faces.is_held(f) for f in faces.EVALUATED))
        self.assertFalse(faces.is_held("DejaVu Sans") or faces.is_held("Liberation Serif"))

    def test_names_of_all_scripts_can_be_written(self):
        encoder = self.reader.encoder
        seen, asked = set(), set()
        for seed in range(2000):
            for names, held in ((seen, False), (asked, True)):
                name = words.exotic(Dice(f"far {seed}", held), "me", words.FAR_NAMES)
                self.assertEqual(encoder.decode(encoder.encode(name)), name)
                self.assertEqual(unicodedata.normalize("NFC", name), name)
                names.add(name)
        self.assertEqual(seen & asked, set())
        self.assertTrue({"Zoë", "O'Brien", "東京"} <= seen | asked)

    def test_long_sums_are_worked_out_rightly(self):
        for seed in range(500):
            ask = sums.big(Dice(f"big {seed}"))
            steps = re.findall(r"(\d+(?: [+-] \d+)+) = (\d+)", ask.answer)
            self.assertEqual(len(steps), 4)
            for step, result in steps:
                self.assertEqual(sum(int(n.replace(" ", "")) for n in re.findall(r"-? ?\d+", step)), int(result), step)

    def test_motet_reads_and_writes_the_same(self):
        if not MOTET:
            self.skipTest("no motet was named")
        for seed in range(40):
            made = conversation(Dice(seed))
            text = render(self.reader.template, made, True)
            with tempfile.TemporaryDirectory() as folder:
                context = Path(folder, "context.json")
                context.write_text(
                    json.dumps(
                        {
                            "messages": made["messages"],
                            "tools": made["tools"],
                            "add_generation_prompt": True,
                            "enable_thinking": made["thinks"],
                        }
                    )
                )
                theirs = subprocess.run(
                    [MOTET, "render", TOKENS / "chat_template.jinja", context], capture_output=True, check=True
                )
                self.assertEqual(theirs.stdout.decode().removesuffix("\n"), text.removesuffix("\n"))
            theirs = subprocess.run([MOTET, "tokenize", TOKENS], input=text.encode(), capture_output=True, check=True)
            ids = [int(line.split()[0]) for line in theirs.stdout.decode().splitlines()]
            self.assertEqual(ids, self.reader.encoder.encode(text))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("-") and Path(sys.argv[1]).exists():
        MOTET = Path(sys.argv.pop(1)).resolve()
    unittest.main()
