// The blocks of a Markdown text, as data: {kind, source, ...}. A text that is still being written is one, too: a fence
// that is not closed yet is code to the end. Whoever wrote it, time is linear and nesting ends somewhere.

const DEPTH = 10; // lists and quotes within each other
const LONG = 4096; // a line of more characters begins nothing but a paragraph

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const BULLET = /^( {0,3})(?:([-*+])|(\d{1,9})[.)])(?: {1,4}|\t|$)/;
const QUOTE = /^ {0,3}> ?/;
const INDENTED = /^(?: {4}| {0,3}\t)/;
const NOTE = /^ {0,3}\[\^([\w-]{1,32})\]:[ \t]*/;
const BARE = /^\s*\\begin\{((?:equation|align|gather|multline|eqnarray|alignat|flalign)\*?)\}/;

function isBlank(line) {
    return line.trim() === "";
}

function isRule(line) {
    const text = line.replaceAll(/[ \t]/g, "");
    return text.length > 2 && /^(?:-+|\*+|_+)$/.test(text) && /^ {0,3}\S/.test(line);
}

function heading(line) {
    const marks = /^ {0,3}(#{1,6})(?:[ \t]|$)/.exec(line);
    return (
        marks && {
            kind: "heading",
            level: marks[1].length,
            text: line
                .slice(marks[0].length)
                .trim()
                .replace(/(?:^|\s)#{1,20}$/, ""),
        }
    );
}

function mathOpening(line) {
    const text = line.trim();
    return text.startsWith("$$") ? "$$" : text.startsWith("\\[") ? "\\]" : null;
}

/** What stands in a row of a table. */
export function cells(line) {
    const row = line
        .trim()
        .replace(/^\|/, "")
        .replace(/(?<!\\)\|$/, "");
    return row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function alignments(line) {
    if (!line?.includes("-") || line.length > LONG) return null;
    const found = cells(line).map((cell) => /^(:?)-+(:?)$/.exec(cell));
    return found.every(Boolean) ? found.map((f) => (f[1] ? (f[2] ? "center" : "left") : f[2] ? "right" : null)) : null;
}

/* Whether a line ends the paragraph before it. A number does only if it is a list's first: "in\n1986. Then" is text. */
function begins(line) {
    const bullet = line.length <= LONG && BULLET.exec(line);
    return (
        line.length <= LONG &&
        (FENCE.test(line) ||
            QUOTE.test(line) ||
            heading(line) ||
            isRule(line) ||
            mathOpening(line) ||
            NOTE.test(line) ||
            BARE.test(line) ||
            (bullet && (bullet[2] || bullet[3] === "1")))
    );
}

class Reader {
    constructor(lines, depth) {
        this.lines = lines;
        this.depth = depth;
        this.at = 0;
    }

    run() {
        const found = [];
        while (this.at < this.lines.length) {
            const line = this.lines[this.at];
            if (isBlank(line)) {
                this.at++;
                continue;
            }
            const from = this.at;
            const block = (line.length <= LONG && this.special(line)) || this.paragraph();
            block.source = this.lines.slice(from, this.at).join("\n");
            block.line = from;
            found.push(block);
        }
        return found;
    }

    special(line) {
        const simple = heading(line) ?? (isRule(line) ? {kind: "rule"} : null);
        if (simple) {
            this.at++;
            return simple;
        }
        if (FENCE.test(line)) return this.fence(FENCE.exec(line));
        if (BARE.test(line)) return this.environment(BARE.exec(line)[1]);
        if (mathOpening(line)) return this.math(mathOpening(line));
        if (NOTE.test(line)) return this.note(NOTE.exec(line));
        if (INDENTED.test(line)) return this.indented();
        if (this.depth < DEPTH && QUOTE.test(line)) return this.quote();
        if (this.depth < DEPTH && BULLET.test(line)) return this.list();
        if (line.includes("|") && alignments(this.lines[this.at + 1])?.length === cells(line).length)
            return this.table();
        return null;
    }

    fence([, marks, word]) {
        const indent = /^ */.exec(this.lines[this.at])[0].length;
        const end = new RegExp(`^ {0,3}${marks[0]}{${marks.length},}\\s*$`);
        const text = [];
        for (this.at++; this.at < this.lines.length && !end.test(this.lines[this.at]); this.at++)
            text.push(this.lines[this.at].replace(new RegExp(`^ {0,${indent}}`), ""));
        const closed = this.at < this.lines.length;
        this.at += closed ? 1 : 0;
        // of a text that is still being written: what may become the fence's end, and the end of the last line
        if (!closed && text.length > 0 && new RegExp(`^ {0,3}${marks[0]}*$`).test(text.at(-1))) text.pop();
        return {kind: "code", language: word.trim().split(/\s/)[0].slice(0, 40), text: text.join("\n"), closed};
    }

    math(end) {
        const text = [];
        let line = this.lines[this.at++].trim().slice(2);
        while (!line.includes(end) && this.at < this.lines.length) {
            text.push(line);
            line = this.lines[this.at++];
        }
        const stop = line.indexOf(end);
        text.push(stop < 0 ? line : line.slice(0, stop));
        return {
            kind: "math",
            text: text.join("\n").trim(),
            closed: stop >= 0,
            rest: stop < 0 ? "" : line.slice(stop + 2).trim(),
        };
    }

    /* A formula that stands in no marks but those of its environment. */
    environment(name) {
        const end = `\\end{${name}}`;
        const text = [];
        let closed = false;
        while (!closed && this.at < this.lines.length) {
            text.push(this.lines[this.at++]);
            closed = text.at(-1).includes(end);
        }
        const stop = text.at(-1).indexOf(end) + end.length;
        const rest = closed ? text.at(-1).slice(stop).trim() : "";
        if (closed) text.push(text.pop().slice(0, stop));
        return {kind: "math", text: text.join("\n").trim(), closed, rest};
    }

    note([marker, name]) {
        this.lines[this.at] = this.lines[this.at].slice(marker.length);
        return {...this.paragraph(), kind: "note", name};
    }

    /* Code by its indentation; blank lines within belong to it. */
    indented() {
        const text = [];
        let end = this.at;
        for (; this.at < this.lines.length; this.at++) {
            const line = this.lines[this.at];
            if (INDENTED.test(line)) end = this.at + 1;
            else if (!isBlank(line)) break;
            text.push(line.replace(INDENTED, ""));
        }
        text.length -= this.at - end;
        this.at = end;
        return {kind: "code", language: "", text: text.join("\n"), closed: true};
    }

    quote() {
        const inside = [];
        while (
            this.at < this.lines.length &&
            !isBlank(this.lines[this.at]) &&
            (QUOTE.test(this.lines[this.at]) || !begins(this.lines[this.at]))
        )
            inside.push(this.lines[this.at++].replace(QUOTE, ""));
        return {kind: "quote", blocks: new Reader(inside, this.depth + 1).run()};
    }

    list() {
        const first = BULLET.exec(this.lines[this.at]);
        const ordered = first[3] !== undefined;
        const items = [];
        let loose = false;
        while (this.at < this.lines.length) {
            const found = BULLET.exec(this.lines[this.at]);
            if (!found || (found[3] !== undefined) !== ordered || isRule(this.lines[this.at])) break;
            const from = this.at;
            const item = this.item(found[0]);
            item.source = this.lines.slice(from, this.at).join("\n");
            loose ||= item.loose;
            items.push(item);
        }
        return {kind: "list", ordered, start: Number(first[3] ?? 1), loose, items};
    }

    /* Lines of an item are indented, or go on with its paragraph. */
    item(marker) {
        const indent = marker.replace(/\t/, "  ").length;
        const lines = [this.lines[this.at++].slice(marker.length)];
        let loose = false,
            blank = false;
        for (; this.at < this.lines.length; this.at++) {
            const line = this.lines[this.at];
            if (isBlank(line)) {
                blank = true;
                lines.push("");
                continue;
            }
            const own = /^[ \t]*/.exec(line)[0].replaceAll("\t", "    ").length;
            if (own >= Math.min(indent, 2)) {
                loose ||= blank && own < 4 && !BULLET.test(line.trimStart());
                lines.push(line.replaceAll("\t", "    ").slice(Math.min(own, indent)));
            } else if (blank || begins(line) || BULLET.test(line)) {
                break;
            } else {
                lines.push(line);
            }
            blank = false;
        }
        const task = /^\[([ xX])\]\s+/.exec(lines[0]);
        if (task) lines[0] = lines[0].slice(task[0].length);
        const depth = this.depth + 1;
        // read when it is asked for: of a list that grows, only the last item is
        return {task: task ? task[1] !== " " : null, loose, read: () => new Reader(lines, depth).run()};
    }

    table() {
        const head = cells(this.lines[this.at]);
        const align = alignments(this.lines[this.at + 1]);
        const rows = [];
        for (this.at += 2; this.at < this.lines.length && this.lines[this.at].includes("|"); this.at++)
            rows.push(this.lines[this.at]);
        return {kind: "table", head, align, rows}; // rows as they are written: `cells` reads one
    }

    paragraph() {
        const lines = [this.lines[this.at++]];
        while (
            this.at < this.lines.length &&
            !isBlank(this.lines[this.at]) &&
            !begins(this.lines[this.at]) &&
            !(this.lines[this.at].includes("|") && alignments(this.lines[this.at + 1]))
        )
            lines.push(this.lines[this.at++]);
        return {kind: "paragraph", text: lines.map((line) => line.trim()).join("\n")};
    }
}

/** The blocks of a text whose lines end with "\n", in their order. All but the last stay what they are whatever follows;
    `last` is where that one begins. */
export function blocks(text) {
    const lines = text.split("\n");
    const found = new Reader(lines, 0).run();
    let last = 0;
    for (let i = 0; i < (found.at(-1)?.line ?? 0); i++) last += lines[i].length + 1;
    return {found, last};
}
