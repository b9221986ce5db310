"""Charts as SVG: panels below one another over the same time, with labelled axes, readable on light and on dark."""

WIDTH, HEIGHT, LEFT, RIGHT, TOP, GAP = 860, 120, 64, 150, 34, 46
STYLE = """:root{--ink:#1d2430;--dim:#5c6675;--line:#d5dae1;--paper:#fff;--c0:#2b6cb0;--c1:#c05621;--c2:#2f855a}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--dim:#9aa5b5;--line:#39424f;--paper:#14181f;--c0:#63b3ed;
--c1:#f6ad55;--c2:#68d391}}
text{font:12px system-ui,sans-serif;fill:var(--dim)}.t{fill:var(--ink);font-weight:600}.g{stroke:var(--line)}
.m{stroke:var(--c1);opacity:.5}path{fill:none;stroke-width:1.4}rect{fill:var(--paper)}"""


def ceiling(value):
    """The next round number."""
    unit = 1.0
    while unit * 10 <= value:
        unit *= 10
    while unit > value > 0:
        unit /= 10
    return next(unit * k for k in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if unit * k >= value) if value > 0 else 1


def number(value):
    return "{:g}".format(round(value, 3))


class Chart:
    def __init__(self, title, seconds, marks=(), marked=""):
        """The marks are moments, drawn as thin lines over all panels."""
        self.title, self.seconds, self.marks, self.marked = title, max(seconds, 1), marks, marked
        self.panels, self.unit = [], (60, "minutes") if seconds >= 300 else (1, "seconds")

    def panel(self, name, lines, most=None):
        """lines: {legend: [(second, value or None), ...]}"""
        self.panels.append((name, lines, most))

    def x(self, second):
        return LEFT + (WIDTH - LEFT - RIGHT) * second / self.seconds

    def axis(self, top):
        step = ceiling(self.seconds / self.unit[0] / 8)
        out, at = [], 0.0
        while at * self.unit[0] <= self.seconds * 1.0001:
            x = self.x(at * self.unit[0])
            out.append('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>'.format(x, top + HEIGHT + 16, number(at)))
            at += step
        return out

    def draw_panel(self, index, name, lines, most):
        top = TOP + 22 + index * (HEIGHT + GAP)
        most = most or ceiling(max([v for line in lines.values() for _, v in line if v is not None] or [1]))
        out = ['<text class="t" x="{}" y="{}">{}</text>'.format(LEFT, top - 8, name)]
        for k in range(3):
            y = top + HEIGHT * (2 - k) / 2
            out.append('<line class="g" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'.format(LEFT, WIDTH - RIGHT, y, y))
            out.append('<text x="{}" y="{:.1f}" text-anchor="end">{}</text>'.format(LEFT - 6, y + 4, number(most * k / 2)))
        for mark in self.marks:
            out.append('<line class="m" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>'.format(
                self.x(mark), top + HEIGHT - 6, top + HEIGHT))
        for i, (legend, line) in enumerate(lines.items()):
            path, pen = "", "M"
            for second, value in line:
                if value is None:
                    pen = "M"
                    continue
                path += "{}{:.1f} {:.1f}".format(pen, self.x(second), top + HEIGHT - HEIGHT * min(value / most, 1))
                pen = "L"
            out.append('<path d="{}" style="stroke:var(--c{})"/>'.format(path, i))
            out.append('<text x="{}" y="{}" style="fill:var(--c{})">{}</text>'.format(
                WIDTH - RIGHT + 8, top + 12 + 16 * i, i, legend))
        return out + self.axis(top)

    def svg(self):
        height = TOP + 22 + len(self.panels) * (HEIGHT + GAP) + 8
        out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" role="img">'.format(WIDTH, height),
               "<title>{}</title><style>{}</style>".format(self.title, STYLE),
               '<rect width="{}" height="{}"/>'.format(WIDTH, height),
               '<text class="t" x="{}" y="20">{}</text>'.format(LEFT, self.title)]
        for index, (name, lines, most) in enumerate(self.panels):
            out += self.draw_panel(index, name, lines, most)
        out.append('<text x="{}" y="{}">{}{}</text></svg>'.format(
            LEFT, height - 6, self.unit[1], "; " + self.marked if self.marks else ""))
        return "\n".join(out) + "\n"
