"""Conversations as arrays: encoded, their pictures' tokens spread out, and packed into rows of equal length."""

import os

import numpy as np

import draw
from bpe import Encoder
from data.dice import Dice
from data.mix import conversation, long
from data.scene import SIDES
from style import Faces
from template import TOKENS, load, render

FIELDS = ("ids", "document", "positions", "slots", "rows", "wear", "where", "target", "after", "side", "used")


class Reader:
    """Conversation -> ids, positions, and which ids are the assistant's own."""

    def __init__(self):
        self.encoder, self.template = Encoder(TOKENS / "tokenizer.json"), load()
        mark = self.encoder.added
        self.begin, self.end, self.pad = mark["<|im_start|>"], mark["<|im_end|>"], mark["<|image_pad|>"]
        self.assistant, self.gap = self.encoder.ids["assistant"], self.encoder.ids[chr(266) * 2]

    def spread(self, ids, side):
        """Repeats each picture's mark, and counts positions on three axes."""
        high, wide = side[0] // 32, side[1] // 32
        out, at, text, places = [], 0, 0, []
        rows, cols = np.divmod(np.arange(high * wide), wide)
        for i in [i for i, x in enumerate(ids) if x == self.pad] + [len(ids)]:
            out += ids[at:i]
            places.append(np.tile(np.arange(text, text + i - at), (3, 1)))
            text += i - at
            if i < len(ids):
                out += [self.pad] * (high * wide)
                places.append(np.stack([np.zeros_like(rows), rows, cols]) + text)
                text += max(high, wide)
            at = i + 1
        return np.array(out, np.int32), np.concatenate(places, 1).astype(np.int32)

    def learned(self, ids):
        """True where an id is one that the model has to write itself."""
        mine = np.zeros(len(ids), bool)
        for i in np.flatnonzero(ids == self.begin):
            if ids[i + 1] == self.assistant:
                start = i + (7 if ids[i + 4] == self.gap else 5)
                stop = start + int(np.argmax(ids[start:] == self.end))
                mine[start : stop + 1] = True
        return mine

    def read(self, made, side, prompt=False):
        return self.spread(self.encoder.encode(render(self.template, made, prompt)), side)


class Packer:
    def __init__(self, batch, length, pictures, seed, longest=0, atlas=None):
        self.batch, self.length, self.pictures, self.longest = batch, length, pictures, longest
        self.faces = Faces(atlas) if atlas else None
        self.reader, self.seed, self.count = Reader(), seed, 0

    def make(self):
        """One conversation, in this batch's size of pictures."""
        self.count += 1
        dice = Dice(f"{self.seed} {self.count}")
        if self.longest and dice.chance(0.03):
            made = long(dice, dice.number(1000, self.longest))
        else:
            made = conversation(dice)
        ids, positions = self.reader.read(made, self.side)
        rows = [draw.described(s, dice.random, self.faces) for s in made["pictures"]]
        return ids, positions, self.reader.learned(ids), rows

    def batch_of(self):
        """Fills the rows one after the other, trying a few conversations for each gap."""
        self.side = Dice(f"{self.seed} side {self.count}").any(SIDES)
        total = self.batch * self.length
        ids, document = np.zeros((self.batch, self.length), np.int32), np.full((self.batch, self.length), -1, np.int32)
        positions, mine = np.zeros((3, self.batch, self.length), np.int32), np.zeros((self.batch, self.length), bool)
        rows, waiting, number = [], [], 0
        for r in range(self.batch):
            at = 0
            while at < self.length - 40:
                while len(waiting) < 24:
                    waiting.append(self.make())
                fit = next(
                    (
                        i
                        for i, d in enumerate(waiting)
                        if len(d[0]) <= self.length - at and len(rows) + len(d[3]) <= self.pictures
                    ),
                    None,
                )
                if fit is None:
                    waiting = [
                        d for d in waiting if len(d[0]) <= self.length and len(rows) + len(d[3]) <= self.pictures
                    ]
                    break
                one, place, own, drawn = waiting.pop(fit)
                end = at + len(one)
                ids[r, at:end], document[r, at:end], positions[:, r, at:end], mine[r, at:end] = one, number, place, own
                rows += drawn
                number, at = number + 1, end
        return self.arrays(ids, document, positions, mine, rows, total)

    def arrays(self, ids, document, positions, mine, rows, total):
        flat = ids.ravel()
        cells = self.side[0] * self.side[1] // 1024
        slots = np.full(self.pictures * cells, total, np.int64)
        shown = np.flatnonzero(flat == self.reader.pad)
        slots[: len(shown)] = shown
        used = min(-(-max(len(rows), 1) // 16) * 16, self.pictures)
        blank = np.zeros((self.pictures, draw.WIDTH), np.float32)
        if rows:
            blank[: len(rows)] = rows
        dice = np.random.default_rng(self.count)
        wear = np.stack(
            [
                dice.random(self.pictures) * (dice.random(self.pictures) < 0.5),
                dice.random(self.pictures) * 0.03 * (dice.random(self.pictures) < 0.4),
            ]
        ).astype(np.float32)
        own = mine.ravel()
        limit = int(total * 0.28)
        where = np.flatnonzero(own[1:])[:limit]
        full = np.arange(
            limit, dtype=np.int64
        )  # padding points anywhere, but not all to one place: gradients would queue there
        target, after = np.full(limit, -100, np.int64), np.full(limit, -100, np.int64)
        full[: len(where)], target[: len(where)] = where, flat[where + 1]
        second = np.minimum(where + 2, total - 1)
        after[: len(where)] = np.where(own[second] & (flat[where + 1] != self.reader.end), flat[second], -100)
        return dict(zip(FIELDS, (ids, document, positions, slots, blank, wear, full, target, after, self.side, used)))


def work(queue, stop, *settings):
    """What a process of its own does until it is told to stop."""
    os.nice(10)
    packer = Packer(*settings)
    while not stop.is_set():
        queue.put(packer.batch_of())
