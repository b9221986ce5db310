#!/usr/bin/env python3
"""usage: make_atlas.py OUT.npz [--faces-of-a-family N]

Letters and digits of Debian's fonts as one array of distances from their edges, from which draw.py prints words in any
size and weight. Needs python3-freetype, python3-numpy and the packages that data/faces.py names. Held-out families are
left out, so a machine that trains does not even have them. Their licences (SIL OFL, GPL with font exception, Bitstream
Vera, Apache and the like) allow pictures of text to be used for anything; the atlas is not part of the repository."""

import argparse
import collections
import glob

import freetype
import numpy as np

from data.faces import LETTERS, is_held, is_strange, wanted

CELL, CAP, BASE, LEFT = 36, 20, 26, 5  # pixels: side, height of a capital, the line it stands on, where it begins
FAR = 4  # pixels from an edge at which a distance is as far as any
_SDF = 5  # FT_RENDER_MODE_SDF


def files():
    """family -> [(rank of the style, path)], each style once."""
    found = collections.defaultdict(dict)
    for path in sorted(glob.glob("/usr/share/fonts/**/*.[to]tf", recursive=True)):
        try:
            face = freetype.Face(path)
        except freetype.FT_Exception:
            continue
        family, style = face.family_name.decode("latin1"), face.style_name.decode("latin1")
        if not is_strange(family) and "Inverted" not in style and all(face.get_char_index(c) for c in LETTERS):
            found[family].setdefault(style, path)
    return {f: sorted((wanted(s), s, p) for s, p in styles.items()) for f, styles in found.items()}


def glyphs(path):
    """Cells of all letters and their advances in pixels, or None where one does not fit its cell."""
    face = freetype.Face(path)
    face.set_char_size(100 * 64)
    face.load_char("H", freetype.FT_LOAD_NO_HINTING | freetype.FT_LOAD_NO_BITMAP)
    high = face.glyph.metrics.horiBearingY / 64
    if high <= 0:
        return None
    face.set_char_size(round(100 * 64 * CAP / high))
    cells, wide = np.zeros((len(LETTERS), CELL, CELL), np.uint8), np.zeros(len(LETTERS), np.float32)
    for i, letter in enumerate(LETTERS):
        face.load_char(letter, freetype.FT_LOAD_NO_HINTING | freetype.FT_LOAD_NO_BITMAP)
        slot = face.glyph
        wide[i] = slot.linearHoriAdvance / 65536
        slot.render(_SDF)
        b = slot.bitmap
        if not b.rows:
            return None
        field = np.array(b.buffer, np.uint8).reshape(b.rows, b.pitch)[:, : b.width].astype(np.float32)
        field = np.clip((field - 128) / 16, -FAR, FAR)  # FreeType's own reach is 8 pixels
        top, left = BASE - slot.bitmap_top, LEFT + slot.bitmap_left
        trim = [max(-top, 0), max(top + b.rows - CELL, 0), max(-left, 0), max(left + b.width - CELL, 0)]
        if max(trim) > 7:
            return None
        field = field[trim[0] : b.rows - trim[1], trim[2] : b.width - trim[3]]
        top, left = max(top, 0), max(left, 0)
        whole = np.full((CELL, CELL), -FAR, np.float32)
        whole[top : top + field.shape[0], left : left + field.shape[1]] = field
        cells[i] = np.round((whole + FAR) * (63 / (2 * FAR)))
    return cells, wide


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--faces-of-a-family", type=int, default=3)
    o = p.parse_args()
    cells, wide, names, small = [], [], [], []
    for family, styles in sorted(files().items()):
        if is_held(family):
            continue
        for _, style, path in styles[: o.faces_of_a_family]:
            made = glyphs(path)
            if made:
                cells.append(made[0])
                wide.append(made[1])
                names.append(f"{family} {style}")
                upper, lower = made[0][:26], made[0][26:52]
                # A face whose small letters look like capitals prints capitals only.
                small.append(abs(upper.astype(int) - lower).mean() > 2.0 and
                             np.mean(abs(upper.astype(int) - lower).mean((1, 2)) < 1.0) < 0.6)
    cells, wide = np.stack(cells), np.stack(wide)
    np.savez_compressed(o.out, cells=cells, wide=wide, names=np.array(names), small=np.array(small))
    print(f"{len(names)} faces, {cells.nbytes / 1e6:.1f} MB; capitals only: "
          f"{[n for n, s in zip(names, small) if not s]}")


if __name__ == "__main__":
    main()
