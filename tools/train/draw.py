"""Draws pictures in batches, on the GPU where there is one: every pixel asks every thing how far away its edge is."""

import math

import numpy as np
import torch

from data import font
from data.faces import LETTERS as GLYPHS
from data.scene import SHAPES
from style import CAP, CELL, Style

THINGS, LETTERS, WAVES = 9, 12, 6
_DOTS = torch.tensor([[row for row in font.dots(c)] for c in font.LETTERS], dtype=torch.float32)
_BASE, _LEFT, _FAR = 26, 5, 4  # as in make_atlas.py
# What a picture is to the drawer, see style.py: ground, waves of across, down, phase, hardness and rgb, things, print.
GROUND, WAVE, THING, PRINT = 10, 7, 26, 10 + 2 * LETTERS
WIDTH = GROUND + WAVES * WAVE + THINGS * THING + PRINT
_NONE = [-1.0] + [0.0] * (THING - 1)


def described(scene, shake=None, faces=None):
    """A scene as numbers. shake: a random.Random that makes it look different each time."""
    style = Style(shake, faces)
    row = style.ground(scene.ground, bool(scene.prints))
    waves = [v for w in scene.waves[:WAVES] for v in w]
    row += waves + [0.0] * (WAVES * WAVE - len(waves))
    for i in range(THINGS):
        t = scene.things[i] if i < len(scene.things) else None
        row += [SHAPES.index(t.shape), *style.thing(t)] if t else _NONE
    p = scene.prints[0] if scene.prints else None
    row += style.print(p, LETTERS) if p else [0.0] * 7 + [-1.0, 0.0, 0.0] + [-1.0] * LETTERS + [1e4] * LETTERS
    return np.array(row, dtype=np.float32)


def _edges(x, y, form, second):
    """Distances from the edges of all shapes of radius one, below zero inside; y points up. In the order of SHAPES."""
    ax, ay = x.abs(), y.abs()
    far = (x * x + y * y + 1e-12).sqrt()
    # a part of the star: turned so that one point lies straight up
    turn = torch.atan2(x, y)
    part = 2 * math.pi / second.clamp(min=3)
    turn = (turn - part * torch.round(turn / part)).abs()
    px, py = far * torch.sin(turn), far * torch.cos(turn)
    qx, qy = form * torch.sin(part / 2), form * torch.cos(part / 2)
    length = (qx * qx + (qy - 1) ** 2).sqrt()
    bx, by = ax - 0.82 + second, ay - 0.82 + second
    corner = (bx.clamp(min=0) ** 2 + by.clamp(min=0) ** 2 + 1e-12).sqrt()
    return (
        far - 0.95,
        corner + torch.maximum(bx, by).clamp(max=0) - second,
        torch.maximum(0.866 * ax + 0.5 * y - 0.5, -y - 0.5),
        (px * (1 - qy) - (1 - py) * qx) / length,
        (ax / form.clamp(min=0.1) + ay - 1) * (form / (1 + form * form).sqrt()),
        torch.minimum(torch.maximum(ax - form, ay - 0.95), torch.maximum(ax - 0.95, ay - form)),
        (far - (0.94 + form) / 2).abs() - (0.94 - form) / 2,
        torch.maximum(far - 0.95, second - ((x - 0.5 * form) ** 2 + (y - 0.2 * form) ** 2 + 1e-12).sqrt()),
    )


def _local(grid, x, y, size, tilt):
    """Coordinates of the pixels from a thing's own point of view."""
    dx, dy = (grid[0] - x) / size, (grid[1] - y) / size
    c, s = torch.cos(tilt), torch.sin(tilt)
    return dx * c + dy * s, dy * c - dx * s


def _pattern(kind, x, y, across, down, phase):
    """How much of the second colour there is, of 0..1: stripes, checks, a slope, specks."""
    u, v = x * across + y * down, y * across - x * down
    one, two = torch.sin(2 * math.pi * u + phase), torch.sin(2 * math.pi * v + phase)
    specks = torch.frac((torch.sin(torch.floor(u * 3) * 12.99 + torch.floor(v * 3) * 78.23 + phase) * 437.58).abs())
    mix = torch.where(kind == 1, (one * 4 + 0.5).clamp(0, 1), torch.zeros_like(one))
    mix = torch.where(kind == 2, (one * two * 8 + 0.5).clamp(0, 1), mix)
    mix = torch.where(kind == 3, (u + 0.5).clamp(0, 1), mix)
    return torch.where(kind == 4, specks, mix)


def grounded(rows, grid, sides):
    """What lies behind everything; rows [n, GROUND + WAVES * WAVE], grid [2, pixels]: x and y of each pixel, sides:
    width, height and the shorter of them, as a tensor, so that one compilation serves all sizes."""
    at = lambda i: rows[:, i, None]
    x, y = grid[0] / sides[2] - 0.5, grid[1] / sides[2] - 0.5
    mix = _pattern(at(6), x[None], y[None], at(7), at(8), at(9))
    picture = torch.lerp(rows[:, :3, None], rows[:, 3:6, None], mix[:, None])
    x, y = grid[0] / sides[0], grid[1] / sides[1]
    for k in range(WAVES):
        w = rows[:, GROUND + k * WAVE : GROUND + (k + 1) * WAVE]
        s = torch.sin(x * w[:, 0, None] + y * w[:, 1, None] + w[:, 2, None])
        s = (s * w[:, 3, None]).clamp(-1, 1)
        picture = picture + s[:, None] * w[:, 4:7, None]
    return picture.clamp(0, 1)


def blended(picture, row, grid, sides):
    """One thing of each picture laid over what is there. picture [n, 3, pixels], row [n, THING]."""
    at = lambda i: row[:, i, None]
    size = at(6) * sides[2] + 1e-3
    x, y = _local(grid, at(4) * sides[0], at(5) * sides[1], size, at(7) * (math.pi / 180))
    x = (x + at(9) * y) * at(8)
    turn = torch.atan2(x, -y)
    grow = 1 + at(23) * torch.sin(turn * at(24) + at(25))
    edge = torch.ones_like(x)
    for kind, distance in enumerate(_edges(x * grow, -y * grow, at(10), at(11))):
        edge = torch.where(at(0) == kind, distance, edge)
    edge = torch.where(at(12) > 0, (edge + at(12)).abs() - at(12), edge)
    ink = (0.5 - edge * size).clamp(0, 1) * (at(0) >= 0)
    mix = _pattern(at(17), x, y, at(21), at(22), at(25))
    colour = torch.lerp(row[:, 1:4, None], row[:, 18:21, None], mix[:, None])
    rim = (0.5 + (edge + at(13)) * size).clamp(0, 1) * (at(13) > 0)
    colour = torch.lerp(colour, row[:, 14:17, None].expand_as(colour), rim[:, None])
    return torch.lerp(picture, colour, ink[:, None])


def printed(picture, row, grid, sides):
    """A word in dots over each picture; row [n, PRINT]."""
    at = lambda i: row[:, i, None]
    letters = torch.where(at(7) < 0, row[:, 10 : 10 + LETTERS], -torch.ones_like(row[:, :1])).long()
    count = (letters >= 0).sum(1)[:, None]
    unit = at(5) * sides[2] + 1e-3
    atlas = _DOTS.to(row.device).flatten()
    ink = 0
    for ox, oy in ((-0.25, -0.25), (0.25, -0.25), (-0.25, 0.25), (0.25, 0.25)):
        moved = (grid[0] + ox, grid[1] + oy)
        x, y = _local(moved, at(3) * sides[0], at(4) * sides[1], unit, at(6) * (math.pi / 180))
        x, y = x + (count * 6 - 1) / 2, y + font.HIGH / 2
        which, col, line = (x / 6).floor().long(), (x % 6).floor().long(), y.floor().long()
        inside = (x >= 0) & (which < count) & (col < font.WIDE) & (line >= 0) & (line < font.HIGH)
        letter = letters.gather(1, which.clamp(0, LETTERS - 1)).clamp(min=0)
        place = (
            letter * (font.WIDE * font.HIGH) + line.clamp(0, font.HIGH - 1) * font.WIDE + col.clamp(max=font.WIDE - 1)
        )
        ink = ink + atlas[place] * inside * 0.25
    return torch.lerp(picture, row[:, :3, None].expand_as(picture), ink[:, None])


def lettered(picture, row, grid, sides, cells):
    """A word in a font over each picture; cells: the atlas, flat, of 0..63. A letter may reach into its neighbours."""
    at = lambda i: row[:, i, None]
    codes, starts = row[:, 10 : 10 + LETTERS].long(), row[:, 10 + LETTERS :]
    unit = at(5) * sides[2] + 1e-3
    x, y = _local(grid, at(3) * sides[0], at(4) * sides[1], unit, at(6) * (math.pi / 180))
    v = y + (_BASE - CAP / 2) - 0.5
    which = torch.zeros_like(x, dtype=torch.long)
    for i in range(1, LETTERS):
        which = which + (x >= starts[:, i, None]).long()
    face = at(7).long().clamp(min=0) * len(GLYPHS)
    best = torch.full_like(x, -float(_FAR))
    for step in (-1, 0, 1):
        w = (which + step).clamp(0, LETTERS - 1)
        code = codes.gather(1, w)
        u = x - starts.gather(1, w) + _LEFT - 0.5
        left, top = u.floor(), v.floor()
        fu, fv = u - left, v - top
        inside = (code >= 0) & (left >= 0) & (left < CELL - 1) & (top >= 0) & (top < CELL - 1)
        place = (face + code.clamp(min=0)) * (CELL * CELL)
        place = place + top.clamp(0, CELL - 2).long() * CELL + left.clamp(0, CELL - 2).long()
        a, b = cells[place].float(), cells[place + 1].float()
        c, d = cells[place + CELL].float(), cells[place + CELL + 1].float()
        found = torch.lerp(torch.lerp(a, b, fu), torch.lerp(c, d, fu), fv) * (2 * _FAR / 63) - _FAR
        best = torch.where(inside, torch.maximum(best, found), best)
    best = best + at(8)
    best = torch.where(at(9) > 0, at(9) - best.abs(), best)
    # Farther than the atlas knows is outside, however small the letters.
    ink = (0.5 + best * unit).clamp(0, 1) * (best > -_FAR + 0.8) * (at(7) >= 0)
    return torch.lerp(picture, row[:, :3, None].expand_as(picture), ink[:, None])


STEPS = (grounded, blended, printed, lettered)


def drawn(rows, height, width, cells=None, pixels=0, steps=STEPS):
    """rows [n, WIDTH] -> pictures [n, 3, height, width] of 0..1. The steps may be given compiled, and so many pixels
    that all sizes of pictures have the same. cells: the atlas, where words are printed in fonts."""
    pixels = max(pixels, height * width)
    place = torch.arange(pixels, device=rows.device)
    grid = torch.stack([place % width, place // width]) + 0.5
    sides = torch.tensor([width, height, min(height, width)], dtype=torch.float32, device=rows.device)
    first = GROUND + WAVES * WAVE
    picture = steps[0](rows[:, :first].contiguous(), grid, sides)
    for k in range(THINGS):
        picture = steps[1](picture, rows[:, first + THING * k : first + THING * (k + 1)].contiguous(), grid, sides)
    word = rows[:, first + THING * THINGS :].contiguous()
    picture = steps[2](picture, word, grid, sides)
    if cells is not None:
        picture = steps[3](picture, word, grid, sides, cells)
    return picture[:, :, : height * width].reshape(len(rows), 3, height, width)


def worn(picture, blur, noise):
    """As a photograph or a resized file is: softer, noisier; then eight bits a colour, and -1..1.
    blur [n], noise [n]."""
    soft = torch.nn.functional.avg_pool2d(torch.nn.functional.pad(picture, (1, 1, 1, 1), mode="replicate"), 3, 1)
    picture = picture + (soft - picture) * blur[:, None, None, None]
    picture = picture + torch.randn_like(picture) * noise[:, None, None, None]
    return (picture.clamp(0, 1) * 255).round() / 127.5 - 1
