// All that the server has told: voices with their notes, rows of figures, errors. Times become seconds of the server's
// recorder; docs/dashboard.md describes the events.

export const KIND = {prepared: 0, seated: 1, aside: 2, cached: 3, pictures: 4, prompt: 5, answer: 6};
export const HOUR = 3600;
const LINES = 10; // two staves, which voices go round on while there are few of them

function seconds(us) {
    return us / 1e6;
}

export function endOf(voice, now) {
    return voice.ended || now;
}

export class Store {
    constructor() {
        this.clear({});
    }

    clear(head) {
        this.head = head;
        this.now = 0;             // of the server, when it last said something
        this.voices = new Map();  // by number
        this.list = [];           // by arrival
        this.rows = [];           // by time
        this.errors = [];         // the newest first
        this.columns = new Map((head.columns ?? []).map((name, i) => [name, i]));
        this.free = [];           // for each line: when it became free; Infinity: it is not
        this.whole = false;       // all of the past is there
        this.disorder = false;    // voices have come that are older than others: lines are to be given anew
    }

    take(name, data) {
        if (name === "snapshot")
            this.clear(data);
        this.now = seconds(data.now);
        for (const voice of [...data.ended ?? [], ...data.live ?? []].sort((a, b) => a.number - b.number))
            this.voice(voice);
        for (const note of data.notes ?? [])
            this.note(note);
        if (name === "history") {
            this.rows = [...data.seconds ?? [], ...this.rows];
            this.whole = !data.more;
        } else {
            this.rows.push(...data.seconds ?? []);
        }
        if (this.disorder)
            this.arrange();
        for (const error of data.errors ?? [])
            this.errors.unshift({...error, at: seconds(error.at)});
        this.errors.length = Math.min(this.errors.length, 64);
        this.forget();
    }

    // What comes twice, as a voice of a snapshot that changes later, is the same voice.
    voice(told) {
        const known = this.voices.get(told.number);
        if (known?.ended)
            return;
        const voice = known ?? {notes: [], line: -1, sorted: true}, placed = known?.id !== undefined;
        Object.assign(voice, told);
        for (const name of ["received", "entered", "seated", "first", "ended", "waited"])
            voice[name] = seconds(told[name] ?? 0);
        voice.open = told.open ? this.readNote(told.open) : null;
        if (!placed) {
            this.voices.set(told.number, voice);
            this.place(voice);
        }
        if (voice.ended && voice.line >= 0)
            this.free[voice.line] = voice.ended;
    }

    readNote([, kind, begin, length, count, steps, guessed, taken]) {
        return {kind, begin: seconds(begin), end: seconds(begin + length), count, steps, guessed, taken};
    }

    // Of the past, notes may come before the voice they belong to.
    note(told) {
        let voice = this.voices.get(told[0]);
        if (!voice)
            this.voices.set(told[0], voice = {number: told[0], notes: [], line: -1, sorted: true});
        const note = this.readNote(told), last = voice.notes.at(-1);
        if (last && note.begin < last.begin)
            voice.sorted = false;
        voice.notes.push(note);
        if (voice.open && voice.open.begin <= note.begin)
            voice.open = null;
    }

    /** The notes of a voice by time, with the one that is not complete. */
    notes(voice) {
        if (!voice.sorted)
            voice.notes.sort((a, b) => a.begin - b.begin);
        voice.sorted = true;
        return voice.open ? [...voice.notes, voice.open] : voice.notes;
    }

    /** The same of one that has ended, with those of a kind that nearly touch made one: for a drawing of few pixels. */
    outline(voice) {
        if (!voice.ended || !voice.sorted || voice.outline?.count !== voice.notes.length) {
            const near = ((voice.ended || this.now) - voice.received) / 40, notes = [];
            for (const note of this.notes(voice)) {
                const last = notes.at(-1);
                if (last && last.kind === note.kind && note.begin - last.end < near)
                    Object.assign(last, {end: note.end, count: last.count + note.count,
                                         taken: last.taken + note.taken});
                else
                    notes.push({...note});
            }
            voice.outline = {count: voice.notes.length, notes};
        }
        return voice.outline.notes;
    }

    // A line for a voice: of the first lines the one that has been free for longest, else the first that is free.
    place(voice) {
        const at = this.list.length;
        this.disorder ||= at > 0 && this.list[at - 1].number > voice.number;
        this.list.push(voice);
        if (!this.disorder)
            this.seat(voice);
    }

    seat(voice) {
        let line = -1;
        for (let i = 0; i < LINES; i++)
            if ((this.free[i] ?? -1) < voice.received && (line < 0 || (this.free[i] ?? -1) < (this.free[line] ?? -1)))
                line = i;
        if (line < 0)
            for (line = LINES; line < this.free.length && this.free[line] >= voice.received;)
                line++;
        for (let i = this.free.length; i < line; i++)
            this.free[i] = -1;
        this.free[line] = voice.ended || Infinity;
        voice.line = line;
    }

    arrange() {
        this.list.sort((a, b) => a.number - b.number);
        this.free = [];
        this.disorder = false;
        for (const voice of this.list)
            this.seat(voice);
    }

    forget() {
        const oldest = this.now - HOUR;
        while (this.rows.length > 0 && seconds(this.rows[0][0]) < oldest)
            this.rows.shift();
        if (this.list.length === 0 || !(this.list[0].ended && this.list[0].ended < oldest))
            return;
        this.list = this.list.filter((voice) => !voice.ended || voice.ended >= oldest);
        for (const [number, voice] of this.voices)
            if (voice.ended ? voice.ended < oldest : voice.id === undefined && this.whole)
                this.voices.delete(number);
    }

    /** When the past begins. */
    get begin() {
        const row = this.rows.length > 0 ? seconds(this.rows[0][0]) - 1 : this.now;
        return Math.min(row, this.list.length > 0 ? this.list[0].received : this.now);
    }

    /** Where in rows the first is that ends after a time. */
    rowAfter(time) {
        let low = 0, high = this.rows.length;
        while (low < high) {
            const middle = low + high >> 1;
            if (seconds(this.rows[middle][0]) <= time)
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    value(row, name) {
        return row?.[this.columns.get(name)] ?? null;
    }

    /** Of the rows from one time to another: what a counter adds up to. */
    sum(name, from, to) {
        let total = 0;
        for (let i = this.rowAfter(from), end = this.rowAfter(to); i < end; i++)
            total += this.value(this.rows[i], name) ?? 0;
        return total;
    }

    /** The times of a kind that were counted from one time to another, as [[ms, how many], ...] by their lengths. */
    times(name, from, to) {
        const found = new Map();
        for (let i = this.rowAfter(from), end = this.rowAfter(to); i < end; i++) {
            const pairs = this.value(this.rows[i], name) ?? [];
            for (let k = 0; k < pairs.length; k += 2)
                found.set(pairs[k], (found.get(pairs[k]) ?? 0) + pairs[k + 1]);
        }
        return [...found].sort((a, b) => a[0] - b[0]);
    }

    wall(time) {
        return (this.head.origin ?? 0) + 1e3 * time;
    }
}
