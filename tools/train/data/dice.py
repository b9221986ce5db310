"""Random choices that know which part of the data is held out.

Every list of wordings and of things to speak of is parted by a hash of its entries: one in eight is never seen in
training and the only thing asked in an evaluation. Lists of fewer than eight are not parted."""

import itertools
import random
import re
import zlib


def is_held(text):
    return zlib.crc32(repr(text).encode()) % 8 == 0


def ways(*patterns):
    """All the ways to say something: [a|b|] stands for a, b or nothing. A wording begins with a capital."""
    made = []
    for pattern in patterns:
        parts = [p.split("|") if i % 2 else [p] for i, p in enumerate(re.split(r"\[([^]]*)\]", pattern))]
        for chosen in itertools.product(*parts):
            text = "".join(chosen)
            made.append(text[0].upper() + text[1:])
    return list(dict.fromkeys(made))


def _bare(text):
    return " ".join(re.sub(r"[^\w{}]+", " ", text.lower()).split())


def besides(first, more):
    """Wordings added to a list after a training: none that holds what is held out of the list, or repeats it."""
    known, held = {_bare(t) for t in first}, [_bare(t) for t in first if is_held(t)]
    return [t for t in more if _bare(t) not in known and not any(f" {h} " in f" {_bare(t)} " for h in held)]


class Dice:
    """A salt tells for what something is chosen: it is held out for that, and may be seen elsewhere."""

    _parts = {}

    def __init__(self, seed, held=False):
        self.random, self.held = random.Random(seed), held
        self.exotic = 0.0 if held else 0.15  # share of names beyond plain English ones
        self.many = False  # counts of five and more only

    def chance(self, p):
        return self.random.random() < p

    def any(self, items):
        return self.random.choice(items)

    def number(self, low, high):
        return self.random.randint(low, high)

    def pick(self, items, salt=""):
        """One of this side's part of a list that lives as long as the program."""
        key = id(items), salt
        if key not in self._parts:
            held = {x for x in items if is_held(salt + str(x) if salt else x)} if len(items) >= 8 else set()
            self._parts[key] = (items, [x for x in items if x not in held], [x for x in items if x in held])
        _, seen, held = self._parts[key]
        return self.random.choice(held if self.held and held else seen or items)

    def pick_of(self, lists):
        """The same from several lists, each as likely as any other; of the held side, those that have such a part."""
        if self.held:
            lists = [each for each in lists if len(each) >= 8 and any(map(is_held, each))] or lists
        return self.pick(self.any(lists))

    def made(self, make, salt=""):
        """Something made by chance, of this side's part: tries until it is."""
        for _ in range(100):
            x = make()
            if is_held(salt + str(x) if salt else x) == self.held:
                return x
        return x


# Ways to say the same, put on a question as a visitor might.
_SAME = (("colour", "color"), ("grey", "gray"), ("picture", "image"), ("centre", "center"), ("favourite", "favorite"))
_BEFORE = ("Please: ", "Hey, ", "Ok. ", "Now: ", "Hi! ", "Hello! ", "So, ", "Tell me: ", "Question: ", "And now: ")
_AFTER = (" Please.", " Thanks!", " Thank you.", " please", " Answer me.")


def vary(dice, text, kept=()):
    """The text in another dress, or as it is where one of the words to be kept would change."""
    made = _varied(dice, text)
    return made if all(k in made for k in kept) else text


def _varied(dice, text):
    for british, other in _SAME:
        if dice.chance(0.4):
            text = text.replace(british, other)
    if dice.chance(0.12):
        text = dice.any(_BEFORE) + text
    elif dice.chance(0.08):
        text = text + dice.any(_AFTER)
    if dice.chance(0.2):
        # a name keeps its capital, or there would be no telling which it had
        plain = text[:1] + text[1:].replace(" I ", " i ").replace(" I'", " i'")
        text = text.lower() if plain[1:] == plain[1:].lower() else text[:1].lower() + text[1:]
    if dice.chance(0.15):
        text = text.rstrip("?.!")
    return text
