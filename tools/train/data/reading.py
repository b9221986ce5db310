"""Words, letters and numbers in pictures."""

from . import scene as sc
from .ask import Ask
from .dice import besides, ways
from .sight import DESCRIBE
from .words import ANIMALS, CITIES, COLOURS, FOODS, NAMES, THINGS, WIDE, invented

READ = ways(
    "What does [it|the picture|the text|the sign|the image|this] say?",
    "[|Please |Can you |Could you ]read [the text|the word|this|the writing|what is written here|it|the sign].",
    "What is [written|printed] [here|there|in the picture|in the image|on it]?",
    "[Which|What] [word|text|writing] [do you see|is shown|is this|is in the picture|is written|can you read]?",
    "[What's|What is] [the word|the text|written there|the writing]?",
    "[Tell me|Say|Write down] [what is written|what it says|the word|the text|what you read].",
    "[Which|What] letters [do you see|are shown|are there]?",
    "What [can|do] you read[| here]?",
    "[Spell|Read|Copy] the [word|text][| in the picture].",
)
NUMBER = ways(
    "[What|Which] number [is this|do you see|is in the picture|is shown|is written here|can you see|does it show|is "
    "it]?",
    "[|Please |Can you |Could you ]read the [number|digits].",
    "[What is|What's|Tell me|Say|Write down] the number[| in the picture].",
    "[Which|What] digits [do you see|are in the picture|are shown|are there|can you read]?",
    "What does the number say?",
    "[Read|Tell me] the digits[| in the picture].",
)
MORE_NUMBER = besides(
    NUMBER,
    ways(
        "[What|Which] number [stands there|is printed here|is there|appears|can be read|is on it|do we have here]?",
        "[|Please |Can you |Could you |Now ][name|repeat|type|spell|copy|write] the [number|digits][| you see| shown| "
        "in the image][|.|?]",
        "[Tell me|Say|I want to know|Please say] [which number it is|what number you see|what the number is|which "
        "digits you see|what the digits say|what the number reads][|.]",
        "[What|Which] [figure|figures|numerals] [do you see|are shown|is this|are there]?",
        "[The number|The digits|Number|Digits][, please|?| in the picture?| here?]",
        "[How does|What does] [the figure|this number|that number|the digit row] [read|say]?",
    ),
)
_PRINT = (
    [w.upper() for w in ANIMALS + FOODS + THINGS + COLOURS if 2 <= len(w) <= 7]
    + (
        "HELLO WORLD OPEN CLOSED STOP GO YES NO EXIT SALE HELP START END NORTH SOUTH EAST WEST "
        "HOME TAXI CAFE BUS ON OFF NEW"
    ).split()
)
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


_PLAIN = "ABCDEFGHJKLMNPQRSTUVWXYZ"


def _written(dice):
    """A word or two as people write them on pictures, small letters and all."""
    kind = dice.random.random()
    if kind < 0.3:
        word = dice.any(WIDE) + dice.any(["", "", "", "s", "ing", "ed", "er", "ly", "able"])
    elif kind < 0.4:
        word = dice.any(NAMES)
    elif kind < 0.5:
        word = dice.any(CITIES)
    elif kind < 0.65:
        word = invented(dice)
    elif kind < 0.75:
        word = f"{dice.any(WIDE)} {dice.any(WIDE)}"
    else:
        word = "".join(dice.any(_LETTERS) for _ in range(dice.number(2, 8)))
    word = "".join(c for c in word if c.isalpha() or c == " ")[:10].strip()
    return dice.any([str.upper, str.lower, str.capitalize, str.title])(word) or "Go"


def text_of(dice):
    if not dice.held and dice.chance(0.6):
        return dice.made(lambda: _written(dice), "font")
    if dice.chance(0.35):
        return dice.pick(_PRINT)
    if dice.chance(0.1):
        return dice.made(lambda: str(dice.number(1, 99999)))
    letters = _LETTERS if dice.held or dice.chance(0.85) else _PLAIN + "23456789" * 2
    if dice.held and not dice.chance(0.85):
        letters = _LETTERS + "0123456789" * 2
    return dice.made(lambda: "".join(dice.any(letters) for _ in range(dice.number(2, 6))))


def read(dice):
    word = text_of(dice)
    s = sc.printed(dice, word, dice.chance(0.25))
    if not s.things and dice.chance(0.15):
        return Ask(dice.pick(DESCRIBE), f"It says {word}.", [word], f"The letters are {' '.join(word)}.", word, [s])
    short = "" if " " in word else word
    return Ask(dice.pick(READ), f"It says {word}.", [word], f"The letters are {' '.join(word)}.", short, [s])


LETTER = ways(
    "[What|Which] [letter|character] [is this|is it|do you see|is shown|is in the picture|is drawn here|can you see|"
    "is that|is printed here]?",
    "[|Please |Can you |Could you ][name|read|identify|tell me] the [letter|character][| in the picture][|.]",
    "[Tell me|Say] which [letter|character] [this is|you see][|.]",
    "[What is|What's] [the|this] [letter|character][| in the picture| called]?",
    "The letter[, please.|?| here?]",
)


def letter(dice):
    one = dice.any(_LETTERS)
    if not dice.held and dice.chance(0.4) and one not in "CIKLOPSUVWXZ":  # whose small ones look like them
        one = one.lower()
    s = sc.printed(dice, one)
    return Ask(dice.pick(LETTER), f"The letter is {one}.", [one], f"I see the letter {one}.", one, [s])


def no_text(dice):
    """Asked to read where there are only shapes."""
    s = sc.scene(dice, dice.any([1, 2]))
    return Ask(dice.pick(READ), "There is no text in the picture.", ["no text"], "I see only shapes.", "Nothing", [s])


def number(dice):
    digits = dice.made(lambda: str(dice.number(1, 10 ** dice.number(1, 5) - 1)))
    s = sc.printed(dice, digits, dice.chance(0.2))
    text = dice.pick(NUMBER if dice.chance(0.5) else MORE_NUMBER)
    return Ask(text, f"The number is {digits}.", [digits], f"The digits are {' '.join(digits)}.", digits, [s])


# (skill in the table of scores, maker, share)
KINDS = [
    ("words", read, 17),
    ("words", no_text, 2),
    ("letters", letter, 4),
    ("digits", number, 8),
]
