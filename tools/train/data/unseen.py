"""Pictures with nothing in them, and what a picture does not show or tell."""

from . import scene as sc
from .ask import Ask
from .dice import ways
from .reading import READ, text_of
from .sight import COLOUR_OF, COUNT, DESCRIBE, GROUND, IS_THERE, WHERE, listed
from .talk import STRANGE_ANSWER, strange
from .words import a

EMPTY_ANSWER = "There is nothing in this picture."


def empty(dice):
    """A picture with nothing in it."""
    s = sc.scene(dice, 0)
    kind = dice.random.random()
    if kind < 0.6:
        return Ask(dice.pick(DESCRIBE), EMPTY_ANSWER, ["nothing"], f"Everything is {s.ground}.", "Nothing", [s])
    if kind < 0.7:
        many = dice.any(["shapes", "objects", "things"])
        asked = dice.pick(COUNT).format(w=many)
        return Ask(asked, f"There are 0 {many}.", ["0|zero"], f"Everything is {s.ground}.", "0", [s])
    if kind < 0.8:
        asked = dice.pick(READ)
        return Ask(asked, "There is no text in the picture.", ["no text"], f"Everything is {s.ground}.", "Nothing", [s])
    if kind < 0.9:
        shape = dice.any(sc.SHAPES)
        asked = dice.pick(IS_THERE).format(w=a(shape))
        return Ask(asked, f"No, there is no {shape}.", ["no"], f"Everything is {s.ground}.", "No", [s])
    asked = dice.pick(GROUND)
    return Ask(asked, f"The background is {s.ground}.", [s.ground], f"Everything is {s.ground}.", s.ground.capitalize(),
               [s])


def absent(dice):
    """Asked for the colour or the place of something that is not there."""
    s = sc.scene(dice, dice.any([0, 1, 1, 2, 2, 3]))
    shapes = [x for x in sc.SHAPES if x not in [t.shape for t in s.things]]
    shape = dice.any(shapes)
    asked = dice.pick(COLOUR_OF if dice.chance(0.5) else WHERE).format(s=shape)
    seen = listed([a(t.called()) for t in sorted(s.things, key=lambda t: t.x)] or ["nothing"])
    return Ask(asked, f"There is no {shape} in the picture.", [f"no {shape}"], f"I see {seen}.", "Nowhere", [s])


BEYOND = ways(
    "[Who|Which artist|Which person] [painted|drew|made|took|created|designed] [this|it|the picture|this picture|this "
    "image|that photo]?",
    "[When|Where|Why|How|In which year|With which camera] was [this|it|the picture|this picture|this image|this photo] "
    "[taken|made|painted|drawn|shot]?",
    "[Who|What person|Which man|Which woman|Which actor] is [this|that|in the picture|on the photo|the person|the man|"
    "the woman|she|he]?",
    "What [breed|kind|species|race] [is this|of dog is this|of bird is this|of flower is this|of cat is that|is the "
    "dog|is the animal]?",
    "[Which|What] [city|country|place|building|museum|beach|mountain] [is this|is that|is it|can be seen here]?",
    "[Is|Are] [this|these] [a good photo|my dog|your friends|beautiful|art|expensive|edible|healthy|poisonous|"
    "dangerous|legal|for sale|real|famous]?",
    "What is the [person|man|woman|dog|child|animal|artist] [doing|thinking|wearing|eating|saying|feeling]?",
    "How [much|old|heavy|far away|expensive|deep|fast|tall|famous] is [this|it|the thing in the picture|the "
    "person|that "
    "building|this animal]?",
    "[What does|What could] [this|it|the picture] [mean|stand for|cost|weigh|taste like|smell like|sound like]?",
    "[Do you like|Would you buy|Can you edit|Can you improve|Can you animate|Rate|Sell] [this|it|this picture|the "
    "picture][|?|.]",
    "[What brand|Which model|What type] [is|of] [this|the|that] [car|phone|watch|camera|bottle|shoe][| is it]?",
    "[Which|What] [song|film|book|game|recipe|joke] is [this|it] from?",
    "[Write|Make up|Compose] a [poem|song|caption|title|tweet|headline] [for|about] [this|this picture|the "
    "picture][|.]",
    "[Translate|Solve|Explain|Continue|Fix|Debug] [this|it|what you see|the picture][|.| for me.]",
    "[What happens next|What happened before|What is behind it|What is outside the picture|Who else is there][|?]",
    "[What time|What day|Which season|Which month|What temperature] is it [here|there|in the picture|in this image]?",
)


def beyond(dice):
    """What no look at the picture tells, or nothing that the model knows."""
    s = sc.scene(dice, dice.any([0, 1, 1, 2, 3]))
    if dice.chance(0.3):
        s = sc.photograph(dice)
    elif dice.chance(0.15):
        s = sc.printed(dice, text_of(dice), 0)
    ask = strange(dice) if dice.chance(0.3) else None
    text = ask.text if ask else dice.pick(BEYOND)
    return Ask(text, STRANGE_ANSWER, ["not know"], "The picture does not tell that.", "Unknown", [s])


def photograph(dice):
    """A picture of nothing that the model knows."""
    s = sc.photograph(dice)
    answer = "I do not know what this is. I am only a tiny demonstration model."
    return Ask(dice.pick(DESCRIBE), answer, ["not know"], "I see no shape and no text.", "Unknown", [s])


# (skill in the table of scores, maker, share)
KINDS = [
    ("empty", empty, 5),
    ("not there", absent, 4),
    ("unknown", beyond, 5),
    ("unknown", photograph, 4),
]
