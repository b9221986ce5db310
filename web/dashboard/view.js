// Which part of the last hour is looked at: all drawings share it. It follows the present until somebody moves it.

import {HOUR} from "./store.js";

const SHORTEST = 0.5, LAG = 0.3; // seconds; what is newer than LAG may not have been told yet

export const AHEAD = 0.03; // of the time that is shown is behind the present

export class View {
    constructor(store) {
        this.store = store;
        this.span = 30;
        this.end = 0;
        this.following = true;
        this.ahead = null; // of the server's clock, to this page's
    }

    /** Something was told: corrects the clock a little, or at once where it is far off. */
    told() {
        const ahead = this.store.now - performance.now() / 1e3;
        const off = this.ahead === null ? Infinity : ahead - this.ahead;
        this.ahead = Math.abs(off) > 1 ? ahead : this.ahead + off / 8;
    }

    get now() {
        const now = this.ahead === null ? this.store.now : performance.now() / 1e3 + this.ahead - LAG;
        return Math.min(now, this.store.now + 1);
    }

    /** To be called before anything is drawn. */
    update() {
        if (this.following)
            this.end = this.now + AHEAD * this.span;
    }

    get begin() {
        return this.end - this.span;
    }

    pause() {
        this.update();
        this.following = false;
    }

    /** The same, and nothing that happens from now on comes into sight. */
    freeze() {
        this.pause();
        this.end = this.now;
    }

    follow() {
        this.following = true;
        this.update();
    }

    /** So many seconds, with what is at a part (0 to 1) of the width staying where it is. */
    zoom(span, part = 1) {
        const kept = this.begin + part * this.span;
        this.span = Math.min(Math.max(span, SHORTEST), HOUR * 1.05);
        if (!this.following)
            this.move(kept - part * this.span - this.begin);
    }

    /** Moves by so many seconds, as far as there is something to see. */
    move(by) {
        const first = Math.max(this.store.begin, this.now - HOUR);
        const last = this.now + AHEAD * this.span;
        this.following = false;
        this.end = Math.max(Math.min(this.end + by, last), Math.min(first + 0.9 * this.span, last));
    }
}
