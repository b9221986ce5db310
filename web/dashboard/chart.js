// A small chart: lines over the time that is looked at, the largest value written at its height.

import {begin, ink, type} from "./canvas.js";
import {nice, short} from "./format.js";

const HEIGHT = 56, TOP = 12;

// For each pixel the largest of its seconds; null where there is none.
function points(store, view, read, width) {
    const columns = new Array(Math.ceil(width)).fill(null);
    const scale = width / view.span;
    const end = Math.min(store.rowAfter(view.end) + 1, store.rows.length);
    for (let i = Math.max(store.rowAfter(view.begin) - 1, 0); i < end; i++) {
        const value = read(store, store.rows[i]), x = Math.round((store.rows[i][0] / 1e6 - view.begin) * scale);
        if (value !== null && x >= 0 && x < columns.length)
            columns[x] = Math.max(columns[x] ?? 0, value);
    }
    return columns;
}

function line(c, columns, top, colour, gap) {
    let last = -Infinity;
    c.beginPath();
    columns.forEach((value, x) => {
        if (value === null)
            return;
        const y = HEIGHT - 1 - (HEIGHT - TOP - 2) * Math.min(value / top, 1);
        if (x - last > gap) { // one that stands alone is to be seen
            c.moveTo(x - 1.5, y);
            c.lineTo(x + 1, y);
        }
        c.lineTo(x, y);
        last = x;
    });
    c.strokeStyle = colour;
    c.stroke();
}

/** series: [{read(store, row), ink, dash}]; most: the value at the top, where that is fixed. write: says a value. */
export function chart(canvas, store, view, series, {most = 0, write = short} = {}) {
    const c = begin(canvas, HEIGHT);
    if (!c)
        return;
    const width = canvas.clientWidth, all = series.map(({read}) => points(store, view, read, width));
    const largest = Math.max(...all.flat().map((value) => value ?? 0), 0);
    const top = most || (largest > 0 ? nice(largest) : 1);
    c.strokeStyle = ink.line;
    c.lineWidth = 1;
    c.beginPath();
    c.moveTo(0, HEIGHT - 0.5);
    c.lineTo(width, HEIGHT - 0.5);
    c.moveTo(0, TOP + 0.5);
    c.lineTo(width, TOP + 0.5);
    c.stroke();
    c.fillStyle = ink.soft;
    c.font = `10px ${type.sans}`;
    c.textAlign = "right";
    c.fillText(write(top), width, TOP - 3);
    c.lineWidth = 1.5;
    c.lineJoin = "round";
    series.forEach(({ink: name, dash}, i) => {
        c.setLineDash(dash ?? []);
        line(c, all[i], top, ink[name], Math.max(2.5 * width / view.span, 2));
    });
    c.setLineDash([]);
}
