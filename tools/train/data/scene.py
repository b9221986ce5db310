"""Pictures as descriptions: shapes and printed words, before anything is drawn. Places are fractions of width and
height, sizes fractions of the shorter side."""

import dataclasses

from . import words

SHAPES = ["circle", "square", "triangle", "star", "diamond", "cross", "ring", "moon"]
RGB = {
    "red": (215, 30, 35),
    "green": (30, 150, 55),
    "blue": (35, 75, 205),
    "yellow": (245, 220, 35),
    "orange": (245, 135, 25),
    "purple": (125, 40, 150),
    "pink": (245, 145, 190),
    "brown": (120, 70, 30),
    "black": (15, 15, 15),
    "white": (250, 250, 250),
    "grey": (130, 130, 130),
    "cyan": (40, 205, 215),
}
# Colours that are hard to tell from each other do not lie on each other.
CLOSE = {
    "white": ("yellow", "cyan", "pink"),
    "black": ("brown", "purple", "blue"),
    "grey": ("brown", "purple", "pink", "cyan"),
    "blue": ("black", "purple"),
    "yellow": ("white", "orange"),
    "cyan": ("white", "grey", "blue"),
    "pink": ("white", "grey"),
}
GROUNDS = ["white"] * 6 + ["black"] * 2 + ["grey", "yellow", "blue", "cyan", "pink"]
SIDES = [(160, 160), (192, 192), (224, 224), (160, 224), (224, 160), (192, 256), (256, 192), (128, 128), (128, 256)]
SIDES += [(160, 288), (288, 160)]


@dataclasses.dataclass
class Thing:
    shape: str
    colour: str
    x: float
    y: float
    r: float
    tilt: float

    def called(self):
        return f"{self.colour} {self.shape}"


@dataclasses.dataclass
class Print:
    text: str
    colour: str
    x: float
    y: float
    unit: float  # size of a dot of a letter, as a fraction of the shorter side
    tilt: float


@dataclasses.dataclass
class Scene:
    ground: str
    things: list
    prints: list
    waves: list = dataclasses.field(default_factory=list)  # over the ground: across, down, phase, hardness, r, g, b


def backdrop(dice):
    """The ground's colour; people choose any, but evaluations ask for those of the first legs."""
    return dice.any(words.COLOURS if not dice.held and dice.chance(0.15) else GROUNDS)


def fitting(dice, ground):
    close = () if not dice.held and dice.chance(0.3) else CLOSE.get(ground, ())
    return [c for c in words.COLOURS if c != ground and c not in close]


def _apart(x, y, r, things):
    return all((x - t.x) ** 2 + (y - t.y) ** 2 > (1.25 * (r + t.r)) ** 2 for t in things)


def place(dice, things, r):
    """A free place, or None."""
    for _ in range(40):
        x, y = dice.random.uniform(r + 0.02, 0.98 - r), dice.random.uniform(r + 0.02, 0.98 - r)
        if _apart(x, y, r, things):
            return x, y
    return None


def thing(dice, ground, things, low, high, shape=None, colour=None):
    r = dice.random.uniform(low, high)
    at = place(dice, things, r)
    if at is None:
        r = low
        at = place(dice, things, r)
    if at is None:
        return None
    shape = shape or dice.any(SHAPES)
    return Thing(shape, colour or dice.any(fitting(dice, ground)), *at, r, dice.random.uniform(-10, 10))


def scene(dice, count, distinct=True):
    """`count` things; distinct ones differ in both shape and colour, so that each is named by either."""
    ground = backdrop(dice)
    low, high = (0.16, 0.34) if count == 1 else (0.12, 0.21) if count <= 3 else (0.09, 0.14)
    if not dice.held and dice.chance(0.2):
        low, high = (0.08, 0.45) if count == 1 else (0.08, 0.21) if count <= 3 else (0.07, 0.12)
    shapes, colours = list(SHAPES), fitting(dice, ground)
    dice.random.shuffle(shapes)
    dice.random.shuffle(colours)
    things = []
    for i in range(count):
        made = thing(dice, ground, things, low, high, *((shapes[i], colours[i]) if distinct else ()))
        if made:
            things.append(made)
    return Scene(ground, things, [])


def printed(dice, text, count=0):
    """A word across the picture, perhaps with a thing above or below it."""
    ground = backdrop(dice)
    width = len(text) * 6 - 1
    unit = min(0.84 / width, 0.07) * dice.random.uniform(0.7, 1.0)
    half_w, half_h = width * unit / 2, 3.5 * unit
    low, high = half_h + 0.05, 0.95 - half_h
    if count:
        low, high = (0.62, 0.95 - half_h) if dice.chance(0.5) else (half_h + 0.05, 0.38)
    y = dice.random.uniform(low, high)
    x = dice.random.uniform(half_w + 0.03, 0.97 - half_w) if half_w < 0.46 else 0.5
    made = Scene(ground, [], [Print(text, dice.any(fitting(dice, ground)), x, y, unit, dice.random.uniform(-5, 5))])
    if count:
        r = dice.random.uniform(0.12, 0.17)
        made.things.append(
            Thing(
                dice.any(SHAPES),
                dice.any(fitting(dice, ground)),
                dice.random.uniform(0.2, 0.8),
                0.25 if y > 0.5 else 0.75,
                r,
                dice.random.uniform(-10, 10),
            )
        )
    return made


def photograph(dice):
    """Something that no shape is: waves of colour, soft or with hard edges."""
    made = Scene(backdrop(dice), [], [])
    most = dice.random.choice([8, 20, 40])
    for _ in range(dice.number(3, 6)):
        across, down = (dice.random.uniform(-most, most) for _ in range(2))
        hard = dice.random.choice([1.0, 1.0, 2.0, 12.0])
        rgb = [dice.random.uniform(-0.45, 0.45) for _ in range(3)]
        made.waves.append((across, down, dice.random.uniform(0, 6.28), hard, *rgb))
    for _ in range(dice.any([0, 0, 4, 7, 9])):  # or a heap of things that hide each other
        x, y, r = (dice.random.uniform(*range_) for range_ in ((-0.1, 1.1), (-0.1, 1.1), (0.1, 0.6)))
        made.things.append(Thing(dice.any(SHAPES), dice.any(words.COLOURS), x, y, r, dice.random.uniform(-180, 180)))
    return made
