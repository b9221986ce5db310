"""Draws pictures in batches, on the GPU where there is one: every pixel asks every thing how far away its edge is."""

import math

import numpy as np
import torch

from data import font
from data.scene import RGB, SHAPES

THINGS, LETTERS = 6, 8
_ATLAS = torch.tensor([[row for row in font.dots(c)] for c in font.LETTERS], dtype=torch.float32)
# What a picture is to the drawer: ground 3 | things of shape, rgb, x, y, r, tilt | print of rgb, x, y, unit, tilt |
# letters
WIDTH = 3 + THINGS * 8 + 7 + LETTERS


def described(scene, shake=None):
    """A scene as numbers. shake: a random.Random that makes colours a little different each time."""

    def rgb(colour):
        move = shake.gauss(0, 7) if shake else 0
        return [min(max(v + move + (shake.gauss(0, 7) if shake else 0), 0), 255) / 255 for v in RGB[colour]]

    row = rgb(scene.ground)
    for i in range(THINGS):
        t = scene.things[i] if i < len(scene.things) else None
        row += [SHAPES.index(t.shape), *rgb(t.colour), t.x, t.y, t.r, t.tilt] if t else [-1.0] + [0.0] * 7
    p = scene.prints[0] if scene.prints else None
    row += [*rgb(p.colour), p.x, p.y, p.unit, p.tilt] if p else [0.0] * 7
    letters = [font.LETTERS.index(c) for c in p.text] if p else []
    return np.array(row + letters + [-1] * (LETTERS - len(letters)), dtype=np.float32)


def _edges(x, y):
    """Distances from the edges of all shapes of radius one, below zero inside; y points up. In the order of SHAPES."""
    ax, ay = x.abs(), y.abs()
    far = (x * x + y * y + 1e-12).sqrt()
    # a fifth of the star: turned so that one point lies straight up
    turn = torch.atan2(x, y)
    fifth = 2 * math.pi / 5
    turn = (turn - fifth * torch.round(turn / fifth)).abs()
    px, py = far * torch.sin(turn), far * torch.cos(turn)
    qx, qy = 0.42 * math.sin(fifth / 2), 0.42 * math.cos(fifth / 2)
    length = math.hypot(qx, qy - 1)
    return (
        far - 0.95,
        torch.maximum(ax, ay) - 0.82,
        torch.maximum(0.866 * ax + 0.5 * y - 0.5, -y - 0.5),
        (px * (1 - qy) - (1 - py) * qx) / length,
        (ax / 0.62 + ay - 1) * 0.53,
        torch.minimum(torch.maximum(ax - 0.3, ay - 0.95), torch.maximum(ax - 0.95, ay - 0.3)),
        (far - 0.74).abs() - 0.2,
        torch.maximum(far - 0.95, 0.8 - ((x - 0.5) ** 2 + (y - 0.2) ** 2 + 1e-12).sqrt()),
    )


def _local(grid, x, y, size, tilt):
    """Coordinates of the pixels from a thing's own point of view."""
    dx, dy = (grid[0] - x) / size, (grid[1] - y) / size
    c, s = torch.cos(tilt), torch.sin(tilt)
    return dx * c + dy * s, dy * c - dx * s


def blended(picture, row, grid, sides):
    """One thing of each picture laid over what is there. picture [n, 3, pixels], row [n, 8], grid [2, pixels]: x and
    y of each pixel, sides: width, height and the shorter of them, as a tensor, so that one compilation serves
    all sizes."""
    at = lambda i: row[:, i, None]
    size = at(6) * sides[2] + 1e-3
    x, y = _local(grid, at(4) * sides[0], at(5) * sides[1], size, at(7) * (math.pi / 180))
    edge = torch.ones_like(x)
    for kind, distance in enumerate(_edges(x, -y)):
        edge = torch.where(at(0) == kind, distance, edge)
    ink = (0.5 - edge * size).clamp(0, 1) * (at(0) >= 0)
    return torch.lerp(picture, row[:, 1:4, None].expand_as(picture), ink[:, None])


def printed(picture, row, grid, sides):
    """A word over each picture; row [n, 7 + LETTERS]."""
    at = lambda i: row[:, i, None]
    letters = row[:, 7:].long()
    count = (letters >= 0).sum(1)[:, None]
    unit = at(5) * sides[2] + 1e-3
    atlas = _ATLAS.to(row.device).flatten()
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


def drawn(rows, height, width, pixels=0, steps=(blended, printed)):
    """rows [n, WIDTH] -> pictures [n, 3, height, width] of 0..1. The two steps may be given compiled, and so many
    pixels that all sizes of pictures have the same."""
    n, pixels = rows.shape[0], max(pixels, height * width)
    place = torch.arange(pixels, device=rows.device)
    grid = torch.stack([place % width, place // width]) + 0.5
    sides = torch.tensor([width, height, min(height, width)], dtype=torch.float32, device=rows.device)
    picture = rows[:, :3, None].expand(n, 3, pixels).contiguous()
    for k in range(THINGS):
        picture = steps[0](picture, rows[:, 3 + 8 * k : 11 + 8 * k].contiguous(), grid, sides)
    picture = steps[1](picture, rows[:, 3 + 8 * THINGS :].contiguous(), grid, sides)
    return picture[:, :, : height * width].reshape(n, 3, height, width)


def worn(picture, blur, noise):
    """As a photograph or a resized file is: softer, noisier; then eight bits a colour, and -1..1.
    blur [n], noise [n]."""
    soft = torch.nn.functional.avg_pool2d(torch.nn.functional.pad(picture, (1, 1, 1, 1), mode="replicate"), 3, 1)
    picture = picture + (soft - picture) * blur[:, None, None, None]
    picture = picture + torch.randn_like(picture) * noise[:, None, None, None]
    return (picture.clamp(0, 1) * 255).round() / 127.5 - 1
