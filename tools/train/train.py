#!/usr/bin/env python3
"""usage: train.py --out DIR --state FILE [--resume] [--seconds N] [--decay] [--drafter] [--chain N] [--quantised] ...

One leg of training. The state file holds weights and optimiser and is where the next leg goes on. --decay lets the rate
fall to nothing over this leg; --quantised trains with the rounding of the 4-bit export; --drafter trains the drafting
head beside the trunk, which does not feel it, with --chain for several guesses in a row. At the end: scores by skill,
and the exports."""

import argparse
import multiprocessing as mp
import os
import random
import sys
import textwrap
import threading
import time
from pathlib import Path
from queue import Empty, Queue

BEGAN = time.time()

import numpy as np
import torch
import torch.nn.functional as F

import draw
import export
import pack
import score
from data.scene import SIDES
from net import Box, Layer, Packing
from optim import Optimiser
from shape import TOY, Shape


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--state", type=Path, required=True)
    p.add_argument("--resume", action="store_true")
    p.add_argument("--weights", type=Path, help="begin with the tensors of this folder, bf16 or MLX's")
    p.add_argument("--toy", action="store_true")
    p.add_argument("--seconds", type=float, default=540)
    p.add_argument("--steps", type=int, default=10**9)
    p.add_argument("--decay", action="store_true")
    p.add_argument("--drafter", action="store_true")
    p.add_argument("--every", type=int, default=1, help="steps from one lesson of the drafting head to the next")
    p.add_argument("--save", type=float, default=0, help="seconds from one export on the way to the next; 0 for none")
    p.add_argument("--chain", type=int, default=1, help="guesses in a row that the drafting head is trained for")
    p.add_argument("--quantised", action="store_true")
    p.add_argument("--tokens", type=int, default=65536, help="in a step")
    p.add_argument("--length", type=int, default=1024, help="of a row")
    p.add_argument("--longest", type=int, default=0, help="characters of the longest conversations; 0 for no long ones")
    p.add_argument("--pictures", type=int, default=288, help="in a step")
    p.add_argument("--atlas", type=Path, help="letters of many fonts, by make_atlas.py; without it words are in dots")
    p.add_argument("--workers", type=int, default=13)
    p.add_argument("--reuse", type=int, default=4, help="how often a batch may be used when the makers are slow")
    p.add_argument("--matrix-rate", type=float, default=0.015)
    p.add_argument("--other-rate", type=float, default=2e-3)
    p.add_argument("--warmup", type=int, default=150)
    p.add_argument("--count", type=int, default=40, help="questions for each skill at the end; 0 for none")
    p.add_argument("--middle", type=float, default=0, help="score after this share of the time, too")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--eager", action="store_true")
    p.add_argument("--bf16", action="store_true", help="export the bf16 folder, too")
    return p.parse_args()


class Source:
    """Batches on the device, made by processes of their own. While they are slow, earlier ones come again."""

    def __init__(self, o, device, step):
        self.device, self.o, self.fresh = device, o, 0
        context = mp.get_context("spawn")
        self.stop, self.made, self.ready = context.Event(), context.Queue(2 * o.workers), Queue(4)
        size = (o.tokens // o.length, o.length, o.pictures)
        self.workers = [
            context.Process(
                target=pack.work,
                daemon=True,
                args=(self.made, self.stop, *size, f"{o.seed} {step} {i}", o.longest, o.atlas),
            )
            for i in range(o.workers)
        ]
        for w in self.workers:
            w.start()
        threading.Thread(target=self.move, daemon=True).start()

    def host(self, old):
        """A new batch if there is one, else one of the last ones, if it has not come too often."""
        while True:
            usable = [b for b in old if b[1] < self.o.reuse]
            try:
                made = self.made.get(timeout=0.002 if usable else 60)
                self.fresh += 1
                old.append([made, 1])
                del old[:-64]
                return made
            except Empty:
                if usable:
                    chosen = random.choice(usable)
                    chosen[1] += 1
                    return chosen[0]

    def move(self):
        old, stream = [], torch.cuda.Stream() if self.device == "cuda" else None
        while not self.stop.is_set():
            out = {}
            for key, value in self.host(old).items():
                if key in ("side", "used"):
                    out[key] = value
                    continue
                out[key] = torch.from_numpy(value)
                if stream:
                    with torch.cuda.stream(stream):
                        out[key] = out[key].pin_memory().to("cuda", non_blocking=True)
            if stream:
                stream.synchronize()
            self.ready.put(out)

    def get(self):
        return self.ready.get()

    def end(self):
        self.stop.set()
        for w in self.workers:
            w.terminate()


class Leg:
    def __init__(self, o):
        self.o, self.device = o, "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(o.seed)
        random.seed(o.seed)
        torch.backends.cuda.matmul.allow_tf32 = True
        self.box = Box(TOY if o.toy else Shape()).to(self.device)
        self.optimiser = Optimiser(list(self.box.named_parameters()), o.matrix_rate, o.other_rate)
        self.step, self.tokens, self.ids = 0, 0, score.Reader().encoder.added
        if o.resume:
            state = torch.load(o.state, map_location=self.device, weights_only=True)
            self.box.load_state_dict(state["box"])
            self.optimiser.load(state["optimiser"])
            self.step, self.tokens = state["step"], state["tokens"]
        elif o.weights:
            self.box.load_state_dict(export.read(self.box, o.weights))
        self.box.quantise(o.quantised)
        self.box.mtp.requires_grad_(o.drafter)
        self.cells = None
        if o.atlas:
            with np.load(o.atlas) as made:
                self.cells = torch.from_numpy(made["cells"].reshape(-1)).to(self.device)
        self.drawn = lambda *a: draw.drawn(*a, self.cells)
        if self.device == "cuda" and not o.eager:
            for module in self.box.modules():
                if isinstance(module, Layer):
                    module.compile(dynamic=False)
            steps = [torch.compile(f, dynamic=False) for f in draw.STEPS]
            most = max(h * w for h, w in SIDES)
            self.drawn = lambda *a: draw.drawn(*a, self.cells, most, steps)
        self.source = Source(o, self.device, self.step)

    def loss(self, b, drafter):
        box, device = self.box, self.device
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        used, cells = b["used"], b["side"][0] * b["side"][1] // 1024
        pictures = draw.worn(self.drawn(b["rows"], *b["side"])[:used], *b["wear"][:, :used])
        packing = Packing.of(b["positions"], b["document"], dtype)
        rope = box.rope(b["positions"])
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            shown = box.embed(b["ids"], pictures, b["slots"][: used * cells])
            hidden = box.hidden(shown, packing, rope)
            logits = box.logits(hidden.flatten(0, 1)[b["where"]])
            loss = F.cross_entropy(logits.float(), b["target"], ignore_index=-100)
            right = (logits.argmax(-1) == b["target"]).float().sum() / (b["target"] >= 0).sum()
            if not drafter:
                return loss, right, right[None], loss
            # Half of the time the head sees marks in place of pictures, so that it does not matter which it is given.
            marks = box.embed(b["ids"]) if random.random() < 0.5 else shown
            following = torch.roll(marks.detach(), -1, 1)
            given = following, hidden.detach(), packing, rope
            drafted = [box.mtp(*given)] if self.o.chain == 1 else box.mtp.chain(*given, self.o.chain)
            table = box.model.language_model.embed_tokens.table().detach()
            guesses = [F.linear(x.flatten(0, 1)[b["where"]], table) for x in drafted]
            extra = sum(F.cross_entropy(g.float(), b["after"], ignore_index=-100) for g in guesses) / len(guesses)
            with torch.no_grad():
                chosen, asked = torch.roll(logits.argmax(-1), -1), b["after"] >= 0
                taken = torch.stack([((g.argmax(-1) == chosen) & asked).float().sum() / asked.sum() for g in guesses])
        return loss, right, taken, extra

    def run(self):
        o, shown_at, saved_at = self.o, time.time(), time.time()
        began = BEGAN  # of the whole program: what comes before the first step takes its time, too
        since, middle, taken = 0, o.middle, torch.zeros(1)
        first = self.step
        while True:
            passed = (time.time() - began) / o.seconds
            if passed >= 1 or self.step - first >= o.steps:
                break
            batch = self.source.get()
            lesson = o.drafter and (self.step + 1) % o.every == 0
            loss, right, drafts, extra = self.loss(batch, lesson)
            taken = drafts if lesson else taken
            (loss + extra if lesson else loss).backward()
            # Apart: what the head has yet to learn is no reason for the trunk to take smaller steps.
            norm = torch.nn.utils.clip_grad_norm_(self.box.model.parameters(), 1.0)
            if lesson:
                torch.nn.utils.clip_grad_norm_(self.box.mtp.parameters(), 1.0)
            scale = min(1.0, (self.step + 1) / o.warmup) * (max(1 - passed, 0.0) if o.decay else 1.0)
            self.optimiser.step(scale)
            self.optimiser.zero_grad()
            self.step, self.tokens, since = self.step + 1, self.tokens + o.tokens, since + o.tokens
            if self.step % 100 == 0 or self.step - first in (1, 2, 5, 20):
                now = time.time()
                drafts = " ".join(f"{x:.4f}" for x in taken.tolist())
                print(
                    f"step {self.step:5} {now - began:6.1f} s  loss {loss.item():.4f}  right {right.item():.4f}  "
                    f"drafts {drafts}  norm {norm.item():.3f}  rate {scale:.4f}  "
                    f"{since / (now - shown_at):.0f} tokens/s, {self.source.fresh} batches",
                    flush=True,
                )
                shown_at, since = now, 0
            if o.save and time.time() - saved_at > o.save:
                export.export_mlx(self.box, o.out / "mlx", self.ids)
                saved_at = time.time()
            if middle and passed > middle:
                middle = 0
                self.scored(max(o.count // 2, 8))
        self.source.end()

    def scored(self, count):
        began = time.time()
        with torch.compiler.set_stance("force_eager"):  # rows of many lengths, few times each
            shares = score.table(self.box, count, 12345, self.device, show=2)
        for skill, share in shares.items():
            print(f"score {skill}: {share:.3f}")
        print(f"scored in {time.time() - began:.1f} s")
        print("mean", round(sum(shares.values()) / len(shares), 4), "lowest", min(shares, key=shares.get), flush=True)

    def finish(self):
        o = self.o
        torch.save(
            {
                "box": self.box.state_dict(),
                "optimiser": self.optimiser.state(),
                "step": self.step,
                "tokens": self.tokens,
            },
            o.state,
        )
        print("mlx bytes", export.export_mlx(self.box, o.out / "mlx", self.ids), flush=True)
        if o.bf16:
            export.export_bf16(self.box, o.out / "bf16", self.ids)
        self.box.round_off()
        if o.count:
            self.scored(o.count)


def main():
    leg = Leg(options())
    print(f"{sum(p.numel() for p in leg.box.parameters()):,} parameters", *textwrap.wrap(" ".join(sys.argv[1:]), 118),
          sep="\n", flush=True)
    leg.run()
    leg.finish()
    os._exit(0)  # the makers' queues may still be full


if __name__ == "__main__":
    main()
