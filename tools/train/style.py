"""How things look when they are drawn for training: people use other reds, thicker lines, stripes and fonts than the
next one. A style changes nothing of what a scene says, so questions and answers know nothing of it."""

import math

import numpy as np

from data import font
from data.faces import LETTERS
from data.scene import RGB

# What passes for a colour; the first is the one that picture.py draws.
SHADES = {
    "red": [(255, 0, 0), (215, 20, 60), (230, 60, 50)],
    "green": [(0, 128, 0), (0, 255, 0), (50, 205, 50), (34, 139, 34), (46, 204, 113)],
    "blue": [(0, 0, 255), (30, 60, 180), (65, 105, 225), (30, 144, 255), (0, 0, 160)],
    "yellow": [(255, 255, 0), (255, 215, 0), (250, 235, 80)],
    "orange": [(255, 165, 0), (255, 140, 0), (240, 120, 40)],
    "purple": [(128, 0, 128), (155, 89, 182), (148, 0, 211), (110, 60, 160)],
    "pink": [(255, 192, 203), (255, 105, 180), (255, 160, 200)],
    "brown": [(139, 69, 19), (165, 42, 42), (150, 75, 0), (100, 60, 35)],
    "black": [(0, 0, 0), (30, 30, 30)],
    "white": [(255, 255, 255), (240, 240, 240)],
    "grey": [(128, 128, 128), (160, 160, 160), (105, 105, 105), (185, 185, 185)],
    "cyan": [(0, 255, 255), (0, 200, 220), (64, 224, 208)],
}
SHADES = {name: [RGB[name], *shades] for name, shades in SHADES.items()}
# What makes a shape of its kind, and something else: a star's inner corners and points, a moon's hollow and its size.
FORMS = {"star": (0.42, 5.0), "diamond": (0.62, 0.0), "cross": (0.3, 0.0), "ring": (0.54, 0.0), "moon": (1.0, 0.8)}
CAP, CELL = 20, 36  # of the atlas, see make_atlas.py


class Faces:
    """What of an atlas a maker of pictures has to know: how wide letters are, and who has small ones."""

    def __init__(self, path):
        with np.load(path) as made:
            self.wide, self.small = made["wide"], made["small"]
        self.with_small = np.flatnonzero(self.small)


class Style:
    """Chances of one picture; without dice everything is plain."""

    def __init__(self, dice=None, faces=None):
        self.dice, self.faces = dice, faces
        self.plain = dice is None or dice.random() < 0.25

    def rgb(self, name):
        d = self.dice
        if d is None:
            return [v / 255 for v in RGB[name]]
        shade = RGB[name] if self.plain else d.choice(SHADES[name])
        if not self.plain and d.random() < 0.4:
            share, other = d.random(), d.choice(SHADES[name])
            shade = [a + (b - a) * share for a, b in zip(shade, other)]
        move = d.gauss(0, 6)
        return [min(max(v + move + d.gauss(0, 6), 0), 255) / 255 for v in shade]

    def tint(self, rgb, most):
        """A lighter or darker one of the same colour."""
        share, end = self.dice.uniform(0.3, 1) * most, self.dice.choice([0.0, 1.0])
        end = 1.0 if sum(rgb) < 0.6 else 0.0 if sum(rgb) > 2.6 else end
        return [v + (end - v) * share for v in rgb]

    def ground(self, name, quiet):
        """rgb, second rgb, kind of pattern (0 none, 1 stripes, 2 checks, 3 slope, 4 specks), across, down, phase."""
        rgb, d = self.rgb(name), self.dice
        if self.plain or d.random() < 0.45:
            return [*rgb, *rgb, 0.0, 1.0, 0.0, 0.0]
        angle, kind = d.uniform(0, 2 * math.pi), d.choice([1, 2, 3, 3, 4, 4])
        period = 1.0 if kind == 3 else d.uniform(0.04, 0.3)
        other = self.tint(rgb, 0.14 if quiet else 0.25)
        return [*rgb, *other, float(kind), math.cos(angle) / period, math.sin(angle) / period, d.uniform(0, 6.28)]

    def thing(self, t):
        """shape, rgb, x, y, r, tilt | stretch, shear, form, second form, line, border and its rgb | pattern and its
        rgb, across, down | wobble: how much, how often, where."""
        rgb, d = self.rgb(t.colour), self.dice
        form, second = FORMS.get(t.shape, (0.0, 0.0))
        if self.plain:
            rest = [1.0, 0.0, form, second, 0.0, 0.0, *rgb, 0.0, *rgb, 1.0, 0.0, 0.0, 1.0, 0.0]
            return [*rgb, t.x, t.y, t.r, t.tilt, *rest]
        tilt, stretch, shear, line, border, edge = t.tilt, d.uniform(0.85, 1.18), 0.0, 0.0, 0.0, rgb
        if t.shape == "star":
            form, second = d.uniform(0.3, 0.55), d.choice([5.0, 5.0, 5.0, 5.0, 5.0, 4.0, 6.0, 7.0, 8.0])
            tilt = d.uniform(-180, 180)
        elif t.shape == "ring":
            form, stretch = d.uniform(0.1, 0.88), d.uniform(0.94, 1.06)
        elif t.shape == "moon":
            form, second, tilt = d.uniform(0.7, 1.35), d.uniform(0.7, 0.9), d.uniform(-180, 180)
        elif t.shape == "cross":
            form, tilt = d.uniform(0.1, 0.38), tilt + d.choice([0, 0, 45])
        elif t.shape == "diamond":
            form = d.uniform(0.45, 0.95)
        elif t.shape == "square":
            second = d.choice([0, 0, d.uniform(0.05, 0.3)])
            stretch = d.uniform(0.9, 1.1)
        elif t.shape == "triangle":
            shear, tilt = d.choice([0, 0, d.uniform(-0.5, 0.5)]), d.choice([tilt, tilt, d.uniform(-180, 180)])
        else:
            stretch = d.uniform(0.9, 1.1)
        if t.shape in ("square", "triangle", "star", "diamond") and d.random() < 0.3:
            line = d.uniform(0.04, 0.13)
        elif t.shape == "cross" and form > 0.25 and d.random() < 0.2:
            line = d.uniform(0.03, 0.07)
        elif d.random() < 0.25:
            border = d.uniform(0.03, 0.12) * (0.5 if t.shape in ("ring", "moon", "cross") else 1)
            edge = d.choice([[0.05] * 3, [0.05] * 3, self.tint(rgb, 0.6), self.tint(rgb, 0.6), [0.95] * 3])
        pattern, other, across, down = 0.0, rgb, 1.0, 0.0
        if not line and d.random() < 0.3:
            pattern, angle, other = float(d.choice([1, 2, 3, 3])), d.uniform(0, 6.28), self.tint(rgb, 0.55)
            period = 2.0 if pattern == 3 else d.uniform(0.25, 0.7)
            across, down = math.cos(angle) / period, math.sin(angle) / period
        wobble = d.uniform(0.01, 0.06) if d.random() < 0.25 else 0.0
        return [*rgb, t.x, t.y, t.r, tilt, stretch, shear, form, second, line, border, *edge,
                pattern, *other, across, down, wobble, float(d.randint(2, 7)), d.uniform(0, 6.28)]

    def print(self, p, most):
        """rgb, x, y, size of a dot, tilt, face (-1: dots), bolder, line | letters | where each begins."""
        rgb, d = self.rgb(p.colour), self.dice
        dotted = all(c in font.LETTERS for c in p.text)
        if self.faces is None or dotted and (self.plain and d.random() < 0.6 or d.random() < 0.04):
            codes = [font.LETTERS.index(c) for c in p.text.upper() if c in font.LETTERS]  # there are no small ones
            rest = [-1.0] * (most - len(codes))
            return [*rgb, p.x, p.y, p.unit, p.tilt, -1.0, 0.0, 0.0, *codes, *rest, *[0.0] * most]
        rest = [-1.0] * (most - len(p.text))
        small = any(c.islower() for c in p.text)
        face = int(d.choice(self.faces.with_small)) if small else d.randrange(len(self.faces.small))
        apart = d.choice([0.0, 0.0, 0.0, d.uniform(-0.5, 4)])
        starts, x = [], 0.0
        for c in p.text:
            starts.append(x)
            x += apart + (self.faces.wide[face][LETTERS.index(c)] if c != " " else 8.0)
        wide = max(x - apart, 1.0)
        room = (len(p.text) * 6 - 1) * p.unit
        unit = min(room * d.uniform(0.6, 1.12) / wide, 9.5 * p.unit / CAP)
        unit = max(unit, min(0.075 / CAP, 0.95 / wide))
        codes = [LETTERS.index(c) if c != " " else -1.0 for c in p.text]
        tilt = p.tilt + (d.uniform(-9, 9) if d.random() < 0.3 else 0)
        line = d.uniform(0.8, 1.4) if unit * 160 > 1.3 and d.random() < 0.05 else 0.0
        bold = 0.0 if d.random() < 0.5 else d.uniform(-0.3, 0.7)
        starts = [s - wide / 2 for s in starts]
        return [*rgb, p.x, p.y, unit, tilt, float(face), bold, line, *codes, *rest, *starts, *[1e4] * len(rest)]
