// The whole hour in a strip: how much was going on, and which part of it is looked at.

import {begin, ink, MARGIN} from "./canvas.js";
import {HOUR} from "./store.js";
import {AHEAD} from "./view.js";

const HEIGHT = 30, LEAST = 600; // pixels; seconds that are shown however short the past is

export function makeStrip(canvas, store, view, changed) {
    const all = () => Math.max(Math.min(HOUR, (view.now - store.begin) / (1 - AHEAD)), LEAST, view.span);
    const from = () => view.now - (1 - AHEAD) * all(), scale = () => (canvas.clientWidth - MARGIN) / all();
    let held = false;

    const go = (event) => {
        const time = from() + (event.clientX - canvas.getBoundingClientRect().left - MARGIN) / scale();
        view.pause();
        view.move(time + view.span / 2 - view.end);
        changed();
    };
    canvas.addEventListener("pointerdown", (event) => {
        held = true;
        canvas.setPointerCapture(event.pointerId);
        go(event);
    });
    canvas.addEventListener("pointermove", (event) => held && go(event));
    for (const name of ["pointerup", "pointercancel"])
        canvas.addEventListener(name, () => {
            held = false;
        });

    return () => {
        const c = begin(canvas, HEIGHT);
        if (!c)
            return;
        const columns = new Float64Array(Math.ceil(canvas.clientWidth) + 1), start = from(), x = scale();
        let most = 4;
        for (const row of store.rows) {
            const at = Math.round(MARGIN + (row[0] / 1e6 - start) * x);
            const value = store.value(row, "running") + store.value(row, "waiting");
            if (at >= 0 && at < columns.length)
                columns[at] = Math.max(columns[at], value);
            most = Math.max(most, value);
        }
        c.fillStyle = ink.line;
        c.fillRect(0, HEIGHT - 1, canvas.clientWidth, 1);
        c.fillStyle = ink.edge;
        columns.forEach((value, i) => {
            const h = value > 0 ? Math.max((HEIGHT - 4) * value / most, 1.5) : 0;
            c.fillRect(i, HEIGHT - 1 - h, 1, h);
        });
        const a = MARGIN + (view.begin - start) * x, w = Math.max(view.span * x, 3);
        c.fillStyle = ink.rubric;
        c.globalAlpha = 0.16;
        c.fillRect(a, 0, w, HEIGHT);
        c.globalAlpha = 1;
        c.fillRect(a, 0, 1, HEIGHT);
        c.fillRect(a + w - 1, 0, 1, HEIGHT);
    };
}
