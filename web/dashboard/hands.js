// How the score is moved: by pointer, wheel, fingers and keys.

const NUDGE = 0.15, ZOOM = 1.5;
const CLICK = 4; // pixels that a pointer may move and still have clicked

/** score: what is moved; act: {changed(), choose(voice, open), toggle()}. */
export function attach(element, canvas, score, act) {
    const pointers = new Map();
    let moved = 0, apart = 0;
    const {view, store} = score;

    const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    const scale = () => view.span / Math.max(score.width, 1);

    canvas.addEventListener("pointerdown", (event) => {
        pointers.set(event.pointerId, place(event));
        canvas.setPointerCapture(event.pointerId);
        moved = 0;
        apart = distance();
    });

    function distance() {
        const [a, b] = [...pointers.values()];
        return b ? Math.max(Math.abs(a[0] - b[0]), 10) : 0;
    }

    canvas.addEventListener("pointermove", (event) => {
        const before = pointers.get(event.pointerId), now = place(event);
        score.at = now[0];
        score.pointed = before ? score.pointed : score.find(...now);
        canvas.classList.toggle("over", score.pointed !== null);
        if (before) {
            pointers.set(event.pointerId, now);
            moved += Math.abs(now[0] - before[0]) + Math.abs(now[1] - before[1]);
            if (pointers.size === 2) {
                const wide = distance();
                view.zoom(view.span * apart / wide, now[0] / score.width);
                apart = wide;
            } else if (moved > CLICK) {
                view.pause();
                view.move((before[0] - now[0]) * scale());
            }
        }
        act.changed();
    });

    const release = (event) => {
        const [x, y] = place(event), alone = pointers.size === 1;
        pointers.delete(event.pointerId);
        if (event.type === "pointerup" && alone && moved <= CLICK)
            act.choose(score.find(x, y), true);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => {
        score.at = score.pointed = null;
        act.changed();
    });

    // Up and down is the page's; with ctrl, which is what a pinch on a touchpad comes as, it zooms.
    canvas.addEventListener("wheel", (event) => {
        const sideways = event.shiftKey ? event.deltaY : event.deltaX;
        if (event.ctrlKey || event.metaKey) {
            const by = Math.max(Math.min(event.deltaY, 60), -60) / 120;
            view.zoom(view.span * Math.exp(by), place(event)[0] / score.width);
        } else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
            view.pause();
            view.move(sideways * scale());
        } else {
            return;
        }
        event.preventDefault();
        act.changed();
    }, {passive: false});

    // The next or the one before, by arrival; the first time, the last that is to be seen.
    const step = (by) => {
        const list = store.list, at = score.selected ? list.indexOf(score.selected) : -1;
        const next = at < 0 ? score.seen.at(-1) ?? list.at(-1) : list[at + by];
        if (!next)
            return;
        if (next.received < view.begin || next.received > view.end) {
            view.pause();
            view.move(next.received + 0.2 * view.span - view.begin - 0.3 * view.span);
        }
        act.choose(next, false);
    };
    const keys = {
        "ArrowLeft": () => { view.pause(); view.move(-NUDGE * view.span); },
        "ArrowRight": () => { view.pause(); view.move(NUDGE * view.span); },
        "ArrowUp": () => step(-1),
        "ArrowDown": () => step(1),
        "+": () => view.zoom(view.span / ZOOM, 0.5),
        "=": () => view.zoom(view.span / ZOOM, 0.5),
        "-": () => view.zoom(view.span * ZOOM, 0.5),
        "Home": () => { view.pause(); view.move(-Infinity); },
        "End": () => view.follow(),
        " ": () => act.toggle(),
        "Enter": () => act.choose(score.selected, true),
        "Escape": () => act.choose(null, false),
    };
    element.addEventListener("keydown", (event) => {
        const key = keys[event.key];
        if (!key || event.ctrlKey || event.metaKey || event.altKey || event.target !== element)
            return;
        key();
        event.preventDefault();
        act.changed();
    });
}
