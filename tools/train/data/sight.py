"""Questions about pictures."""

import re

from . import scene as sc
from .ask import Ask
from .dice import ways
from .words import COLOURS, a

NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def _n(count):
    return f"{count}|{NUMBERS[count]}"


def listed(parts):
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


DESCRIBE = ways(
    "[|Please |Can you |Could you ]describe [the|this] [picture|image|drawing|photo][|.|?]",
    "What [is|do you see|can you see|is shown|is drawn] [in|on] [the|this] [picture|image|drawing|photo]?",
    "What [does|do] [the|this] [picture|image|drawing|photo] show?",
    "[|Please |]tell me what [you see|is in the picture|is in this image|the picture shows|this shows|is shown here|"
    "this is].",
    "What [do you see|can you see|is|is shown|is drawn][| here| there]?",
    "[Say|Name|List|Tell me|Write down] [what you see|everything you see|what the picture shows|what is in the "
    "picture|what is in the image].",
    "Which [shapes|objects|things] [do you see|are in the picture|are there|can you see|does the picture show|are "
    "shown]?",
    "[List|Name|Describe] [the|all|all the] [shapes|objects|things][| in the picture| you see| in this image].",
    "What [shapes|objects|things] [do you see|are in the picture|are there|can you see|are shown]?",
    "[What's|What is] [this|that|in the picture|in this picture|in the image|here]?",
    "[Look|Have a look] at [this|the picture|this image]. What [is it|is there|do you see|does it show]?",
    "[Describe|Explain] what [you see|is there|is here|this shows].",
    "What am I [showing you|looking at]?",
)


def describe(dice):
    count = dice.any([1, 1, 2, 2, 2, 3, 3])
    s = sc.scene(dice, count)
    names = [t.called() for t in sorted(s.things, key=lambda t: t.x)]
    text = listed([a(n) for n in names])
    return Ask(
        dice.pick(DESCRIBE),
        f"I see {text}.",
        names,
        f"I look at the picture from left to right: {text}.",
        s.things[0].shape.capitalize() if len(names) == 1 else "Shapes",
        [s],
    )


COLOUR_OF = ways(
    "[What|Which] colour [is|has|does] the {s}[| have]?",
    "[What is|What's|Tell me|Name|Say|Give me|I want to know] the colour of the {s}[|, please].",
    "The {s}[: what| has which|, which| is of which] colour?",
    "[Can|Could] you [tell|name|say|see] the colour of the {s}?",
    "[Look at|See|There is] [the|a] {s}[.|?] [What|Which] colour [is it|does it have]?",
    "In [which|what] colour is the {s}[| drawn| painted]?",
    "[What|Which] colour [was|did they give] the {s}[| painted| drawn]?",
    "{s}: [what|which] colour?",
    "[Do you know|Tell me] [what|which] colour the {s} [is|has].",
)


def colour_of(dice):
    s = sc.scene(dice, dice.any([1, 2, 2, 3]))
    t = dice.any(s.things)
    return Ask(
        dice.pick(COLOUR_OF).format(s=t.shape),
        f"The {t.shape} is {t.colour}.",
        [t.colour],
        f"There is {a(t.called())}.",
        t.colour.capitalize(),
        [s],
    )


COLOUR_ONE = ways(
    "[What|Which] colour is [it|this|the shape|the object|shown here|the thing|this shape]?",
    "[What is|Name|Tell me|Say|What's] [its colour|the colour|the colour of the shape|the colour of this].",
    "[What|Which] colour do you see[| here]?",
    "[What|Which] colour does [it|this|the shape] have?",
)


def colour_one(dice):
    s = sc.scene(dice, 1)
    t = s.things[0]
    return Ask(
        dice.pick(COLOUR_ONE),
        f"The {t.shape} is {t.colour}.",
        [t.colour],
        f"There is {a(t.called())}.",
        t.colour.capitalize(),
        [s],
    )


SHAPE_OF = ways(
    "[What|Which] shape [is|has the colour] {c}?",
    "What [is|shape is|kind of shape is|form is|sort of shape is] the {c} [one|thing|object|shape]?",
    "[Name|Identify|Tell me|Say|What is|What's] the {c} [shape|object|thing|one].",
    "[What|Which thing|Which object|Which one] is {c}?",
    "[Something|One thing|One shape|One object] is {c}. [What|Which shape] is it?",
    "I see something {c}. [What|Which shape] is it?",
    "[Tell me|Say|Name] [what|the shape that|the object that] is {c}.",
    "[Look at|Find|See] the {c} [one|shape|thing]. [What|Which shape] is it?",
    "The {c} [one|object|thing|shape] is [what|which] shape?",
)


def shape_of(dice):
    s = sc.scene(dice, dice.any([1, 2, 2, 3]))
    t = dice.any(s.things)
    return Ask(
        dice.pick(SHAPE_OF).format(c=t.colour),
        f"The {t.colour} shape is a {t.shape}.",
        [t.shape],
        f"There is {a(t.called())}.",
        t.shape.capitalize(),
        [s],
    )


SHAPE_ONE = ways(
    "[What|Which] [shape|form|kind of shape|sort of shape] is [it|this|shown|in the picture|that|drawn here]?",
    "[What|Which] shape do you see[| here| there]?",
    "[Name|Tell me|Say|Identify] [the shape|which shape this is|what shape this is].",
    "What is [the shape|this shape|it] called?",
    "[What|Which] shape does [it|this|the object] have?",
)


def shape_one(dice):
    s = sc.scene(dice, 1)
    t = s.things[0]
    return Ask(
        dice.pick(SHAPE_ONE), f"It is a {t.shape}.", [t.shape], f"There is {a(t.called())}.", t.shape.capitalize(), [s]
    )


COUNT = ways(
    "How many {w} [are there|do you see|can you see|are in the picture|are in this image|are shown|are drawn here|"
    "does the picture show|do you find|are here]?",
    "[|Please |Can you |Could you ]count the {w}[| in the picture| for me].",
    "[What is|What's|Tell me|Give me|I need|Say] the [number|count|amount] of {w}.",
    "[Tell me|Say|Count|I want to know|Do you know] how many {w} [there are|you see|are there|are in the picture].",
    "[How many|Number of|The number of|Count of] {w}?",
    "[Count|Look at] the {w}. How many [are there|do you see]?",
)


def plural(shape):
    return shape + "es" if shape == "cross" else shape + "s"


def _count_answer(count, one, many):
    return f"There is 1 {one}." if count == 1 else f"There are {count} {many}."


def count(dice):
    """All alike, or several kinds of which some are asked for."""
    kind = dice.any(["all", "same", "same", "shape", "colour"])
    total = dice.number(1, 6) if dice.held and not dice.many else dice.number(5 if dice.held else 1, 9)
    s = sc.Scene(sc.backdrop(dice), [], [])
    colours, shapes = dice.random.sample(sc.fitting(dice, s.ground), 2), dice.random.sample(sc.SHAPES, 2)
    low, high = (0.12, 0.2) if total <= 3 else (0.09, 0.135) if total <= 6 else (0.06, 0.105)
    if not dice.held and dice.chance(0.3):
        low = high = dice.random.uniform(0.065, 0.11)  # all of one size, as a machine draws them
    grid = _grid(dice, total) if not dice.held and dice.chance(0.2) else None
    for i in range(total):
        other = dice.chance(0.4)
        shape = shapes[other] if kind == "shape" else shapes[0] if kind == "same" else dice.any(sc.SHAPES)
        colour = colours[other] if kind == "colour" else colours[0] if kind == "same" else None
        t = sc.thing(dice, s.ground, s.things if not grid else [], low, high, shape, colour)
        if t:
            if grid:
                t.x, t.y, t.r = grid[i]
            s.things.append(t)
    if kind == "shape" or kind == "same" and dice.chance(0.5):
        one, many = shapes[0], plural(shapes[0])
        found = [t for t in s.things if t.shape == shapes[0]]
    elif kind == "colour":
        one, many = f"{colours[0]} shape", f"{colours[0]} shapes"
        found = [t for t in s.things if t.colour == colours[0]]
    else:
        one, many = "shape", dice.any(["shapes", "shapes", "shapes", "objects", "things"])
        found = s.things
    n = len(found)
    seen = ", ".join(f"{i + 1} {t.called()}" for i, t in enumerate(sorted(found, key=lambda t: t.x))) or "none"
    return Ask(
        dice.pick(COUNT).format(w=many),
        _count_answer(n, one, many if many != "shape" else "shapes"),
        [_n(n)],
        f"I count from left to right: {seen}. That makes {n}.",
        str(n),
        [s],
        [_n(m) for m in range(10) if m != n],
    )


def _grid(dice, total):
    """Places in rows and columns, or in one row or column."""
    columns = dice.any([total, 1, 3, 3, 4, 2] if total <= 6 else [3, 3, 4, 5])
    rows = -(-total // columns)
    r = min(0.42 / columns, 0.42 / rows) * dice.random.uniform(0.55, 0.85)
    r = min(r, 0.2)
    return [((i % columns + 0.5) / columns, (i // columns + 0.5) / rows, r) for i in range(total)]


WHERE = ways(
    "Where [is|do you see|can I find|can you see|in the picture is|in the image is] the {s}?",
    "Where [is|does] the {s} [located|placed|lie|stand|drawn]?",
    "In which [part|area|corner|place|region] [of the picture|of the image] is the {s}?",
    "[What is|Tell me|Name|Say|Give me] the [position|place|location] of the {s}.",
    "[Tell me|Say|Show me|Find out|I want to know] where the {s} is.",
    "[Position|Place|Location] of the {s}?",
    "[Find|Look for|Can you find] the {s}. Where is it?",
    "Which [corner|side|part] is the {s} in?",
    "At which [place|position|spot] is the {s}?",
)
CELLS = {
    ("top", "left"): "top left",
    ("top", ""): "top",
    ("top", "right"): "top right",
    ("", "left"): "left",
    ("", ""): "centre",
    ("", "right"): "right",
    ("bottom", "left"): "bottom left",
    ("bottom", ""): "bottom",
    ("bottom", "right"): "bottom right",
}


def where(dice):
    """One thing well inside one of nine fields, perhaps another elsewhere."""
    s = sc.scene(dice, 0)
    row, col = dice.any(["top", "", "bottom"]), dice.any(["left", "", "right"])
    middle = {"top": 0.17, "left": 0.17, "": 0.5, "bottom": 0.83, "right": 0.83}
    shapes, colours = dice.random.sample(sc.SHAPES, 2), dice.random.sample(sc.fitting(dice, s.ground), 2)
    off = lambda: dice.random.uniform(-0.045, 0.045)
    t = sc.Thing(
        shapes[0],
        colours[0],
        middle[col] + off(),
        middle[row] + off(),
        dice.random.uniform(0.09, 0.125),
        dice.random.uniform(-10, 10),
    )
    s.things.append(t)
    if dice.chance(0.4):
        more = sc.thing(dice, s.ground, s.things, 0.09, 0.12, shapes[1], colours[1])
        s.things += [more] if more else []
    cell = CELLS[row, col]
    called = dice.any([t.shape, t.called()])
    avoid = [w for w in ("top", "bottom", "left", "right", "centre") if w not in cell.split()]
    place = {"left": "on the left", "right": "on the right", "top": "at the top", "bottom": "at the bottom"}
    return Ask(
        dice.pick(WHERE).format(s=called),
        f"The {called} is {place.get(cell, 'in the ' + cell)}.",
        cell.split(),
        f"The {called} is {place.get(cell, 'in the ' + cell)}.",
        "-".join(cell.split()).capitalize(),
        [s],
        avoid,
    )


SIDE = ways(
    "[What|Which shape|Which object|Which thing] [is|do you see|can you see|lies] on the {d}[| side]?",
    "[What's|What is] [the shape|the object|there] on the {d}?",
    "[Name|Tell me|Say] [the shape|what is|the object] on the {d}[| side].",
    "Look [at|to] the {d}[| side]. What [is there|do you see]?",
    "On the {d}[| side], [what|which shape] [is there|do you see]?",
)
LEVEL = ways(
    "[What|Which shape|Which object|Which thing] [is|do you see|can you see|lies] at the {d}?",
    "[What's|What is] [the shape|the object|there] at the {d}?",
    "[Name|Tell me|Say] [the shape|what is|the object] at the {d}.",
    "Look at the {d}. What [is there|do you see]?",
    "At the {d}, [what|which shape] [is there|do you see]?",
)
NEXT = {"left": "left of", "right": "right of", "top": "above", "bottom": "below"}
BESIDE = ways(
    "[What|Which shape|Which object|Which thing] [is|do you see|can you see|lies] {d} the {s}?",
    "[Name|Tell me|Say] what is {d} the {s}.",
    "[What's|What is|What is drawn|What stands] {d} the {s}?",
    "Look at the {s}. What is {d} it?",
    "Something is {d} the {s}. What[| is it]?",
)


def side(dice):
    """Two things, clearly beside or above each other."""
    s = sc.scene(dice, 0)
    shapes, colours = dice.random.sample(sc.SHAPES, 2), dice.random.sample(sc.fitting(dice, s.ground), 2)
    across = dice.chance(0.6)
    for i in (0, 1):
        along, off = (0.25, 0.75)[i] + dice.random.uniform(-0.07, 0.07), dice.random.uniform(0.3, 0.7)
        x, y = (along, off) if across else (off, along)
        s.things.append(
            sc.Thing(shapes[i], colours[i], x, y, dice.random.uniform(0.11, 0.17), dice.random.uniform(-10, 10))
        )
    i = dice.number(0, 1)
    way = (("left", "right") if across else ("top", "bottom"))[i]
    t, other = s.things[i], s.things[1 - i]
    if dice.chance(0.4):
        called = dice.any([other.shape, other.called()])
        text = dice.pick(BESIDE).format(d=NEXT[way], s=called)
        answer = f"The {t.called()} is {NEXT[way]} the {other.called()}."
        seen = f"I see {a(s.things[0].called())} and {a(s.things[1].called())}."
        return Ask(text, answer, [t.called()], seen, t.shape.capitalize(), [s])
    text = dice.pick(SIDE if across else LEVEL).format(d=way)
    return Ask(
        text,
        a(t.called()).capitalize() + f" is {'on' if across else 'at'} the {way}.",
        [t.called()],
        f"I see {a(s.things[0].called())} and {a(s.things[1].called())}.",
        t.shape.capitalize(),
        [s],
        [other.shape],
    )


IS_THERE = ways(
    "Is there {w}[| here| in the picture| in this image| to be seen]?",
    "[Do|Can] you [see|find|spot] {w}[| here| in the picture]?",
    "Does [the|this] [picture|image] [show|contain|have] {w}?",
    "Is {w} [in the picture|shown here|in this image|here]?",
    "[Tell me|Say|I want to know] [if|whether] there is {w}.",
    "[Look|Check]: is there {w}?",
    "I am looking for {w}. Is there one?",
)


def is_there(dice):
    s = sc.scene(dice, dice.any([1, 2, 3]))
    t = dice.any(s.things)
    yes = dice.chance(0.5)
    shapes = [x for x in sc.SHAPES if x not in [u.shape for u in s.things]]
    if yes:
        asked = dice.any([t.shape, t.called()])
    else:
        asked = dice.any([dice.any(shapes), f"{dice.any(COLOURS)} {dice.any(shapes)}"])
        others = [c for c in COLOURS if c != t.colour and c not in [u.colour for u in s.things if u.shape == t.shape]]
        if dice.chance(0.4):
            asked = f"{dice.any(others)} {t.shape}"
    answer = f"Yes, there is {a(t.called())}." if yes else f"No, there is no {asked}."
    seen = listed([a(u.called()) for u in sorted(s.things, key=lambda u: u.x)])
    return Ask(
        dice.pick(IS_THERE).format(w=a(asked)),
        answer,
        ["yes" if yes else "no"],
        f"I see {seen}.",
        "Yes" if yes else "No",
        [s],
    )


BIGGER = ways(
    "[Which|What] [shape|one|object|thing] is [|the ]{d}?",
    "Which of [them|the two|these|the shapes] is {d}?",
    "[Name|Tell me|Say] [the {d} one|the {d} shape|which one is {d}|which shape is {d}].",
    "What is {d}?",
    "[Which|What] is the {d} [one|shape|object]?",
)


def bigger(dice):
    s = sc.scene(dice, 0)
    shapes, colours = dice.random.sample(sc.SHAPES, 2), dice.random.sample(sc.fitting(dice, s.ground), 2)
    small = dice.random.uniform(0.08, 0.11)
    sizes = [small, small * dice.random.uniform(1.7, 2.2)]
    for i, x in zip((0, 1), dice.random.sample([0.25, 0.75], 2)):
        s.things.append(
            sc.Thing(shapes[i], colours[i], x, dice.random.uniform(0.3, 0.7), sizes[i], dice.random.uniform(-10, 10))
        )
    i = dice.number(0, 1)
    word = dice.any(["smaller", "bigger"][i::2] + (["larger"] if i else []))
    t = s.things[i]
    return Ask(
        dice.pick(BIGGER).format(d=word),
        f"The {t.called()} is {word}.",
        [t.shape],
        f"The {s.things[1].called()} is big and the {s.things[0].called()} is small.",
        t.shape.capitalize(),
        [s],
        [s.things[1 - i].shape],
    )


GROUND = ways(
    "[What|Which] colour [is|has|does] the background[| have]?",
    "[What is|What's|Tell me|Name|Say] the [background colour|colour of the background].",
    "Background colour?",
    "[What|Which] colour is behind the [shapes|shape|objects]?",
    "On [which|what] colour are the shapes drawn?",
    "What colour is [it behind the shapes|the rest of the picture]?",
)


def ground(dice):
    s = sc.scene(dice, dice.any([1, 2]))
    return Ask(
        dice.pick(GROUND),
        f"The background is {s.ground}.",
        [s.ground],
        f"Behind the {s.things[0].shape} everything is {s.ground}.",
        s.ground.capitalize(),
        [s],
    )


SAME = ways(
    "Are [the two|these two|the|these|both] pictures [the same|equal|alike|different]?",
    "Do [both|the two|these] pictures [show the same|match|differ]?",
    "[|Please |]compare [the two|these|these two|the] pictures.",
    "What is [the difference between|different in|the same in] the [two |]pictures?",
    "How [do|are] the [two |]pictures [differ|different]?",
    "[What|Which things] [differs|changed] [between these two|from the first to the second picture|between the "
    "pictures]?",
    "Tell me how the [two |]pictures differ.",
    "Is there a difference between the [two |]pictures?",
)


def compare(dice):
    """One thing in each: of another colour, another shape, both, or neither."""
    one, two = sc.scene(dice, 1), sc.scene(dice, 1)
    t, u = one.things[0], two.things[0]
    if dice.chance(0.5):
        u.shape = t.shape
    if dice.chance(0.5) and t.colour in sc.fitting(dice, two.ground):
        u.colour = t.colour
    seen = f"The first picture shows {a(t.called())}, the second {a(u.called())}."
    same = t.called() == u.called()
    answer = f"Both pictures show {a(t.called())}." if same else seen
    short = "Same" if same else "Different"
    return Ask(dice.pick(SAME), answer, [t.called(), u.called()], seen, short, [one, two])


MORE = ways(
    "Which [picture|one|of the pictures|of the two] [has|shows|contains] more [shapes|objects|things]?",
    "In which picture are [|there ]more [shapes|objects|things]?",
    "[Where are|Where do you see] more [shapes|objects], in the first or the second picture?",
    "Does the first or the second picture have more [shapes|objects|things]?",
    "[Tell me|Say] which picture has more [shapes|objects|things].",
    "More [shapes|objects]: first or second picture?",
)


def more(dice):
    counts = dice.random.sample([1, 2, 3, 4], 2)
    pictures = [sc.scene(dice, n) for n in counts]
    n, m = (len(p.things) for p in pictures)
    if n == m:
        return compare(dice)
    which = "first" if n > m else "second"
    return Ask(
        dice.pick(MORE),
        f"The {which} picture has more shapes: {max(n, m)} instead of {min(n, m)}.",
        [which],
        f"The first picture has {n}, the second {m}.",
        which.capitalize(),
        pictures,
    )


ONE_OF = ways(
    "What [is|do you see|can you see|is shown] in the {w} [picture|one]?",
    "What does the {w} [picture|one] show?",
    "[Describe|Tell me about|Say what is in] the {w} [picture|one].",
    "Look at the {w} picture. What [is it|do you see]?",
    "[And|Now] the {w} picture, what does it show?",
    "What's in the {w} [picture|one]?",
    "The {w} picture: what [is it|do you see]?",
)
ONE_COLOUR = ways(
    "[What|Which] colour [is|has] the shape in the {w} picture?",
    "[What|Which] colour do you see in the {w} picture?",
    "In the {w} picture, [what|which] colour is the shape?",
    "The {w} picture: [what|which] colour?",
    "[What is|Name|Tell me|Say] the colour [of the shape |]in the {w} picture.",
)


def one_of(dice):
    pictures = [sc.scene(dice, 1), sc.scene(dice, 1)]
    i = dice.number(0, 1)
    which, t = ("first", "second")[i], pictures[i].things[0]
    seen = f"The {which} picture shows {a(t.called())}."
    if dice.chance(0.4):
        return Ask(
            dice.pick(ONE_COLOUR).format(w=which),
            f"The {t.shape} in the {which} picture is {t.colour}.",
            [t.colour],
            seen,
            t.colour.capitalize(),
            pictures,
        )
    return Ask(dice.pick(ONE_OF).format(w=which), seen, [t.called()], seen, t.shape.capitalize(), pictures)


def nothing(dice):
    """Asked about a picture that was not sent."""
    text = dice.pick(DESCRIBE)
    if not re.search("picture|shape|see|draw|look", text.lower()):
        text = "What is in the picture?"
    seen = "There is no picture in this conversation."
    return Ask(text, "I see no picture. Please send me one.", ["no picture"], seen, "Nothing")


# (skill in the table of scores, maker, share)
KINDS = [
    ("shapes", describe, 5),
    ("colours", colour_of, 3),
    ("colours", colour_one, 1),
    ("shapes", shape_of, 3),
    ("shapes", shape_one, 2),
    ("counts", count, 10),
    ("positions", where, 4),
    ("positions", side, 3),
    ("shapes", is_there, 3),
    ("sizes", bigger, 3),
    ("colours", ground, 2),
    ("two pictures", compare, 4),
    ("two pictures", more, 3),
    ("two pictures", one_of, 3),
]
