// The score: each voice on a line of a staff, time from left to right. Drawing only; hands are in hands.js.

import {begin, ink, MARGIN, type} from "./canvas.js";
import {clock} from "./format.js";
import {KIND, endOf} from "./store.js";

const SLIGHT = 3, FEW = 40;       // pixels of a voice, below which it is drawn as one, or in outline
const TOP = 26;                   // for times
const WIDEST = 20, NARROWEST = 6; // pixels between lines
const STAFF = 5, BETWEEN = 2.2;   // lines of a staff; and between staves, in distances of lines
const SOLID = [], DOTTED = [1.5, 2.5];
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900]; // seconds between bar lines

export class Score {
    constructor(canvas, store, view) {
        Object.assign(this, {canvas, store, view, selected: null, pointed: null, at: null});
        Object.assign(this, {seen: [], staves: new Map(), width: 0, height: 0, pitch: WIDEST, begin: 0, scale: 1});
    }

    x(time) {
        return MARGIN + (time - this.begin) * this.scale;
    }

    time(x) {
        return this.begin + (x - MARGIN) / this.scale;
    }

    y(line) {
        const staff = this.staves.get(Math.floor(line / STAFF));
        return TOP + this.pitch * (1.5 + staff * (STAFF - 1 + BETWEEN) + line % STAFF);
    }

    /** The voices that are to be seen, and the staves that they are on: the first two always. */
    look() {
        const {begin: from, end: to, now, span} = this.view, staves = new Set([0, 1]);
        this.width = this.canvas.clientWidth; // asked once: it makes the browser lay out the page
        this.begin = from;
        this.scale = (this.width - MARGIN) / span;
        this.seen = [];
        for (const voice of this.store.list)
            if (voice.received < to && endOf(voice, now) > from) {
                this.seen.push(voice);
                staves.add(Math.floor(voice.line / STAFF));
            }
        this.staves = new Map([...staves].sort((a, b) => a - b).map((staff, i) => [staff, i]));
        const room = (this.room ?? 400) - TOP, lines = staves.size * (STAFF - 1 + BETWEEN) + 1;
        this.pitch = Math.max(Math.min(room / lines, WIDEST), NARROWEST);
        this.height = Math.ceil(TOP + this.pitch * lines);
    }

    draw() {
        this.view.update();
        this.look();
        const c = this.c = begin(this.canvas, this.height);
        if (!c)
            return;
        this.named = new Map(); // line: where its last number ends
        this.drawTimes();
        this.drawStaves();
        this.drawChosen();
        for (const voice of this.seen)
            this.drawVoice(voice);
        this.drawNow();
        this.drawPointer();
    }

    // Bar lines at round times, with what the clock says.
    drawTimes() {
        const {c, view, store} = this, across = Math.max(90 * view.span / this.width, 0);
        const step = STEPS.find((s) => s >= across) ?? STEPS.at(-1), offset = store.wall(0) / 1e3;
        c.font = `11px ${type.sans}`;
        c.textAlign = "left";
        for (let wall = Math.ceil((view.begin + offset) / step) * step; wall < view.end + offset; wall += step) {
            const x = Math.round(this.x(wall - offset)) + 0.5;
            if (wall - offset < store.begin - step) // nothing is known of that time
                continue;
            c.strokeStyle = ink.line;
            c.beginPath();
            c.moveTo(x, TOP - 8);
            c.lineTo(x, this.height);
            c.stroke();
            if (x < this.width - 50) {
                c.fillStyle = ink.soft;
                c.fillText(clock(wall * 1e3 + 0.5, step < 1 ? 1 : 0), x + 4, TOP - 12);
            }
        }
    }

    drawStaves() {
        const {c, pitch} = this;
        c.lineWidth = 1;
        c.strokeStyle = ink.line;
        c.beginPath();
        for (const staff of this.staves.keys())
            for (let i = 0; i < STAFF; i++) {
                const y = Math.round(this.y(staff * STAFF + i)) + 0.5;
                c.moveTo(MARGIN - 6, y);
                c.lineTo(this.width, y);
            }
        c.stroke();
        // a bracket for each staff, and the line that joins all
        c.strokeStyle = ink.edge;
        c.beginPath();
        const first = this.y(0), last = first + pitch * ((this.staves.size - 1) * (STAFF - 1 + BETWEEN) + STAFF - 1);
        c.moveTo(MARGIN - 5.5, first);
        c.lineTo(MARGIN - 5.5, last);
        c.stroke();
        c.fillStyle = ink.edge;
        for (const staff of this.staves.keys())
            c.fillRect(MARGIN - 11, this.y(staff * STAFF) - 1, 3, pitch * (STAFF - 1) + 2);
    }

    drawChosen() {
        for (const [voice, colour] of [[this.pointed, ink.wash], [this.selected, ink.wash]]) {
            if (!voice || !this.seen.includes(voice))
                continue;
            const x = Math.max(this.x(voice.received), 0);
            const end = Math.min(this.x(endOf(voice, this.view.now)), this.width);
            this.c.fillStyle = colour;
            this.c.beginPath();
            this.c.roundRect(x - 6, this.y(voice.line) - this.pitch * 0.6, end - x + 12, this.pitch * 1.2, 6);
            this.c.fill();
            if (voice === this.selected) {
                this.c.strokeStyle = ink.rubric;
                this.c.lineWidth = 1;
                this.c.stroke();
            }
        }
    }

    // Silence: dotted while it waits for a seat, thin while it has one.
    drawRests(voice, notes, y) {
        const {c} = this, end = endOf(voice, this.view.now);
        let from = voice.received, seated = false;
        const rest = (to) => {
            const a = Math.max(this.x(from), 0), b = Math.min(this.x(to), this.width);
            if (b - a > 0.5) {
                c.strokeStyle = seated ? ink.edge : ink.quiet;
                c.setLineDash(seated || b - a < 3 ? SOLID : DOTTED);
                c.beginPath();
                c.moveTo(a, y);
                c.lineTo(b, y);
                c.stroke();
            }
            from = to;
        };
        c.lineWidth = 1.25;
        for (const note of notes)
            if (note.kind === KIND.seated || note.kind === KIND.aside) {
                rest(note.begin);
                seated = note.kind === KIND.seated;
            }
        rest(end);
        c.setLineDash(SOLID);
    }

    // What is shorter than a pixel is drawn once for its pixel; steps of an answer that touch each other are one bar.
    drawVoice(voice) {
        const {c, pitch, view, width} = this, y = Math.round(this.y(voice.line)) + 0.5;
        const wide = this.x(endOf(voice, view.now)) - this.x(voice.received);
        let lastX = -1, lastKind = -1, held = null;
        const play = (note) => {
            const x = Math.max(this.x(note.begin), -20);
            this.drawNote(note, x, Math.min(this.x(note.end), width + 20) - x, y, wide);
        };
        if (wide < SLIGHT) {
            this.drawSlight(voice, wide, y);
            return;
        }
        const notes = voice.ended && wide < FEW ? this.store.outline(voice) : this.store.notes(voice);
        this.drawRests(voice, notes, y);
        for (const note of notes) {
            if (note.end < view.begin || note.begin > view.end)
                continue;
            const end = this.x(note.end);
            if (held && note.kind === KIND.answer && this.x(note.begin) - this.x(held.end) < 1.5) {
                held = {...held, end: note.end, count: held.count + note.count, taken: held.taken + note.taken};
                continue;
            }
            if (held)
                play(held);
            held = note.kind === KIND.answer ? note : null;
            if (held || (end - lastX < 0.5 && note.kind === lastKind))
                continue;
            lastX = end;
            lastKind = note.kind;
            play(note);
        }
        if (held)
            play(held);
        if (pitch >= 12)
            this.drawName(voice, y);
        this.drawEnd(voice, y);
        c.globalAlpha = 1;
    }

    // All of a voice that is but a speck: what it did for longest.
    drawSlight(voice, wide, y) {
        const {c, pitch} = this, did = voice.tokens > 0 ? ink.ink : voice.seated ? ink.prompt : ink.quiet;
        c.fillStyle = voice.finish === "error" ? ink.bad : did;
        c.fillRect(this.x(voice.received), y - pitch * 0.2, Math.max(wide, 1), pitch * 0.4);
    }

    // wide: pixels of the whole voice. What has no length is no wider than a part of it.
    drawNote(note, x, w, y, wide) {
        const {c, pitch} = this, slight = Math.max(Math.min(1, wide / (2 * pitch)), 0.35);
        switch (note.kind) {
        case KIND.prepared:
            c.fillStyle = ink.quiet;
            c.fillRect(x, y - 1.5, Math.max(w, 1), 3);
            break;
        case KIND.seated: // a stem up: it joins
            c.fillStyle = ink.ink;
            c.fillRect(x - 0.5, y - pitch * 0.62, 1.25, pitch * 0.62);
            break;
        case KIND.aside: // a stem down: it makes way
            c.fillStyle = ink.rubric;
            c.fillRect(x - 0.5, y, 1.25, pitch * 0.62);
            break;
        case KIND.cached:
            this.diamond(x, y, pitch * slight * Math.min(0.22 + 0.03 * Math.log2(note.count + 1), 0.5));
            c.fillStyle = ink.cached;
            c.fill();
            break;
        case KIND.pictures:
            this.drawPicture(x, w, y, slight);
            break;
        case KIND.prompt:
            c.fillStyle = ink.prompt;
            this.bar(x, w > 3 ? w - 1 : w, y, 0.66);
            break;
        case KIND.answer:
            c.fillStyle = ink.ink;
            this.bar(x, w, y, 0.4);
            if (note.taken > 0) {
                c.fillStyle = ink.taken;
                c.fillRect(x, y - pitch * 0.2, Math.max(w * note.taken / note.count, 1), Math.max(pitch * 0.12, 1));
            }
            break;
        }
    }

    bar(x, w, y, part) {
        const h = Math.max(this.pitch * part, 2);
        this.c.beginPath();
        this.c.roundRect(x, y - h / 2, Math.max(w, 1), h, w > 6 ? Math.min(h / 2, 2.5) : 0);
        this.c.fill();
    }

    diamond(x, y, r) {
        const {c} = this;
        c.beginPath();
        c.moveTo(x - r, y);
        c.lineTo(x, y - r);
        c.lineTo(x + r, y);
        c.lineTo(x, y + r);
        c.closePath();
    }

    // Hollow, as the long notes of old: a diamond where it is short.
    drawPicture(x, w, y, slight) {
        const {c, pitch} = this, h = pitch * 0.66 * slight;
        c.strokeStyle = ink.picture;
        c.fillStyle = ink.raised;
        c.lineWidth = 1.5 * slight;
        if (w < h) {
            this.diamond(x + w / 2, y, h * 0.62);
        } else {
            c.beginPath();
            c.roundRect(x + 0.75, y - h / 2, w - 1.5, h, 1);
        }
        c.fill();
        c.stroke();
    }

    drawEnd(voice, y) {
        const {c, pitch} = this, x = this.x(voice.ended), h = pitch * 0.4;
        if (!voice.ended || x < 0 || x > this.width)
            return;
        const wide = x - this.x(voice.received) > 14;
        c.lineWidth = wide ? 1.5 : 1;
        c.strokeStyle = voice.finish === "error" ? ink.bad : ink.ink;
        c.beginPath();
        if (voice.finish === "error") {
            c.moveTo(x, y - h);
            c.lineTo(x + 2 * h, y + h);
            c.moveTo(x + 2 * h, y - h);
            c.lineTo(x, y + h);
        } else if (voice.finish === "cancelled") {
            c.strokeStyle = ink.soft;
            c.moveTo(x, y + h);
            c.lineTo(x + 1.2 * h, y - h);
        } else {
            c.moveTo(x, y - h);
            c.lineTo(x, y + h);
            if (voice.finish === "length" && wide) {
                c.moveTo(x + 3, y - h);
                c.lineTo(x + 3, y + h);
            }
        }
        c.stroke();
    }

    // Where there is room between it and what follows on its line: it stands above its beginning.
    drawName(voice, y) {
        const {c} = this, x = this.x(voice.received);
        if (this.x(endOf(voice, this.view.now)) - x < 70 || x < -40)
            return;
        const text = `№ ${voice.number}`, at = Math.max(x, 2) + 5;
        c.font = `italic 10px ${type.serif}`;
        if (at < (this.named.get(voice.line) ?? 0)) // another's number is there
            return;
        this.named.set(voice.line, at + c.measureText(text).width + 4);
        c.fillStyle = ink.soft;
        c.textAlign = "left";
        c.fillText(text, at, y - this.pitch * 0.42);
    }

    drawNow() {
        const x = Math.round(this.x(this.view.now)) + 0.5, {c} = this;
        if (x > this.width)
            return;
        c.strokeStyle = ink.rubric;
        c.lineWidth = 1;
        c.beginPath();
        c.moveTo(x, TOP - 8);
        c.lineTo(x, this.height);
        c.stroke();
    }

    drawPointer() {
        if (this.at === null)
            return;
        const {c} = this, time = this.time(this.at), playing = this.playing(time).length;
        const text = `${clock(this.store.wall(time), 2)}  ${playing} in the batch`;
        c.strokeStyle = ink.soft;
        c.lineWidth = 1;
        c.setLineDash([3, 3]);
        c.beginPath();
        c.moveTo(this.at, TOP - 8);
        c.lineTo(this.at, this.height);
        c.stroke();
        c.setLineDash([]);
        c.font = `11px ${type.sans}`;
        const w = c.measureText(text).width + 10, x = Math.min(Math.max(this.at - w / 2, 0), this.width - w);
        c.fillStyle = ink.ink;
        c.beginPath();
        c.roundRect(x, 1, w, 18, 4);
        c.fill();
        c.fillStyle = ink.paper;
        c.textAlign = "left";
        c.fillText(text, x + 5, 14);
    }

    /** The voices that took part in what was computed at a time. */
    playing(time) {
        return this.seen.filter((voice) => this.store.notes(voice).some(
            (note) => note.kind >= KIND.pictures && note.begin <= time && time <= note.end));
    }

    /** The voice that is nearest to a place, or null. */
    find(x, y) {
        let best = null, least = Math.max(this.pitch * 0.8, 9);
        for (const voice of this.seen) {
            const from = this.x(voice.received) - 8, to = this.x(endOf(voice, this.view.now)) + 8;
            const away = Math.max(Math.abs(this.y(voice.line) - y), from - x, x - to);
            if (away < least) {
                least = away;
                best = voice;
            }
        }
        return best;
    }
}
