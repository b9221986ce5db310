"""Byte-level BPE: learning merges from words and their counts, and a cached encoder for text of our own making.

The encoder knows letters and digits as Python's re does; on what our generators write, which is plain English, it gives
what tokenizer.json gives anywhere else."""

import collections
import json
import re

WORD = re.compile(
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\w]?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def alphabet():
    """The printable stand-in of each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table, extra = {b: chr(b) for b in plain}, 256
    for b in range(256):
        if b not in table:
            table[b], extra = chr(extra), extra + 1
    return table


BYTES = alphabet()


def learn(counts, merges):
    """counts: word -> how often. Returns the pairs in the order they are merged; of equally frequent ones, the first in
    the order of letters."""
    words = [([BYTES[b] for b in w.encode()], n) for w, n in counts.items()]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (parts, n) in enumerate(words):
        for pair in zip(parts, parts[1:]):
            pairs[pair] += n
            where[pair].add(i)
    done = []
    while len(done) < merges and pairs:
        best = min(pairs, key=lambda p: (-pairs[p], p))
        if pairs[best] <= 0:
            break
        done.append(best)
        for i in list(where[best]):
            parts, n = words[i]
            for pair in zip(parts, parts[1:]):
                pairs[pair] -= n
                where[pair].discard(i)
            merge(parts, best)
            for pair in zip(parts, parts[1:]):
                pairs[pair] += n
                where[pair].add(i)
        del pairs[best]
    return done


def merge(parts, pair):
    i = 0
    while i < len(parts) - 1:
        if parts[i] == pair[0] and parts[i + 1] == pair[1]:
            parts[i : i + 2] = [pair[0] + pair[1]]
        i += 1


class Encoder:
    def __init__(self, path):
        made = json.loads(path.read_text())
        self.ids = dict(made["model"]["vocab"])
        self.ranks = {tuple(m): i for i, m in enumerate(made["model"]["merges"])}
        self.added = {t["content"]: t["id"] for t in made["added_tokens"]}
        self.marks = re.compile("(" + "|".join(re.escape(t) for t in self.added) + ")")
        self.cache = {}
        back = {c: b for b, c in BYTES.items()}
        self.bytes = {i: bytes(back[c] for c in t) for t, i in self.ids.items()}
        self.bytes.update({i: t.encode() for t, i in self.added.items()})

    def word(self, word):
        parts = [BYTES[b] for b in word.encode()]
        while len(parts) > 1:
            best = min(zip(parts, parts[1:]), key=lambda p: self.ranks.get(p, 1 << 30))
            if best not in self.ranks:
                break
            merge(parts, best)
        return [self.ids[p] for p in parts]

    def encode(self, text):
        out, cache = [], self.cache
        for i, piece in enumerate(self.marks.split(text)):
            if i % 2:
                out.append(self.added[piece])
                continue
            for word in WORD.findall(piece):
                found = cache.get(word)
                if found is None:
                    found = cache[word] = self.word(word)
                out += found
        return out

    def decode(self, ids):
        return b"".join(self.bytes.get(i, b"") for i in ids).decode(errors="replace")
