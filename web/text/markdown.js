// A Markdown text as nodes, and a view that follows one while it is being written.

import {h} from "../base/dom.js";
import {blocks, cells} from "./blocks.js";
import {CodeView} from "./code.js";
import {inline, pieces} from "./inline.js";
import {formula} from "./math.js";

/* Headings in a text are one below the page's own, and none is passed over, whatever levels the text has: who hears the
   page finds a way through them. How large they look is their own level. `outline.level` is the last that was used. */
function heading(block, outline) {
    outline.level = Math.min(block.level + 1, outline.level + 1, 6);
    return h(`h${outline.level}`, {dir: "auto", class: `level-${block.level}`}, inline(block.text));
}

/* Views of the blocks that may become long. Each shows what its block has come to, and leaves alone what it has shown of
   it already: a frame makes anew what has changed, and that is at the end. */

/* The direction of a text by its first letter. The browser's own "auto" would look anew at each row that is added. */
function direction(text) {
    const letter = /\p{L}/u.exec(text.slice(0, 400))?.[0] ?? "";
    return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(letter) ? "rtl" : null;
}

function setDirection(element, text) {
    const found = direction(text) ?? (/\p{L}/u.test(text.slice(0, 400)) ? "ltr" : "");
    if (element.dir !== found) element.dir = found;
}

class ListView {
    constructor(block, outline) {
        this.outline = {...outline};
        this.element = h(block.ordered ? "ol" : "ul", {
            start: block.ordered && block.start !== 1 ? block.start : null,
        });
        this.items = []; // {source, loose, blocks, node}
    }

    show(block) {
        setDirection(this.element, block.items[0].source);
        const same = unchanged(this.items, block.items, (a, b) => a.source === b.source && a.loose === block.loose);
        const growing = this.items[same];
        if (growing && block.items[same] && growing.loose === block.loose && growing.task === block.items[same].task) {
            for (const old of this.items.splice(same + 1)) old.node.remove();
            growing.source = block.items[same].source;
            setDirection(growing.node, growing.source);
            growing.blocks.show(block.items[same].read());
        } else {
            for (const old of this.items.splice(same)) old.node.remove();
        }
        for (const item of block.items.slice(this.items.length)) this.add(item, block.loose);
    }

    add({source, task, read}, loose) {
        const box =
            task !== null &&
            h("input", {type: "checkbox", disabled: true, checked: task, "aria-label": task ? "done" : "to do"});
        const node = h("li", {class: task === null ? null : "task"}, box);
        setDirection(node, source);
        const view = new BlocksView(node, this.outline, !loose);
        view.show(read());
        this.items.push({source, loose, task, blocks: view, node});
        this.element.append(node);
    }
}

function row(tag, block, texts) {
    const made = block.head.map((_, i) => {
        const properties = {class: block.align[i] && `to-${block.align[i]}`, scope: tag === "th" ? "col" : null};
        return h(tag, {...properties, dir: "auto"}, inline(texts[i] ?? ""));
    });
    return h("tr", {}, made);
}

const CHUNK = 100; // rows
const NARROW = 4; // characters of the narrowest column of a long table
const BROAD = 48; // and of the broadest

/* Of more than CHUNK rows, a browser would measure all for each that is added. So a long table has columns as wide as its
   first rows need, and bodies of CHUNK rows, of which those in sight alone are laid out (message.css). */
function columns(block) {
    const rows = block.rows.slice(0, CHUNK).map((line) => cells(line));
    return block.head
        .map((text, i) => Math.max(text.length, ...rows.map((each) => each[i]?.length ?? 0)))
        .map((length) => `${Math.min(Math.max(length, NARROW), BROAD) + 3}ch`)
        .join(" ");
}

const ROLES = {TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TH: "columnheader", TD: "cell"};

/* What it is stays said where a style sheet makes blocks and grids of it. */
function named(node) {
    for (const each of [node, ...node.querySelectorAll("thead, tbody, tr, th, td")])
        each.setAttribute("role", ROLES[each.tagName]);
    return node;
}

class TableView {
    constructor(block) {
        // wide ones are scrolled, with the keyboard as well
        this.element = h("div", {class: "wide", tabindex: "0", role: "region", "aria-label": "table"});
        this.begin(block);
    }

    begin(block) {
        this.rows = []; // as they are written
        this.long = false;
        this.table = h(
            "table",
            {dir: direction(block.head.join(" "))},
            h("thead", {}, row("th", block, block.head)),
            h("tbody", {}),
        );
        this.element.replaceChildren(this.table);
    }

    lengthen(block) {
        this.long = true;
        this.table.className = "long";
        this.table.style.setProperty("--columns", columns(block));
        named(this.table);
    }

    show(block) {
        if (this.long && block.rows.length <= CHUNK) this.begin(block);
        const same = unchanged(this.rows, block.rows, (a, b) => a === b);
        for (let count = this.rows.length; count > same; count--) {
            const body = this.table.lastChild;
            body.lastChild.remove();
            if (!body.firstChild && count > CHUNK) body.remove();
        }
        for (let at = same; at < block.rows.length; at++) {
            if (at === CHUNK && !this.long) this.lengthen(block);
            const made = row("td", block, cells(block.rows[at]));
            if (at > 0 && at % CHUNK === 0) this.table.append(named(h("tbody", {}, made)));
            else this.table.lastChild.append(this.long ? named(made) : made);
        }
        this.rows = block.rows;
    }
}

class QuoteView {
    constructor(block, outline) {
        this.element = h("blockquote", {});
        this.blocks = new BlocksView(this.element, outline, false);
    }

    show(block) {
        setDirection(this.element, block.source);
        this.blocks.show(block.blocks);
    }
}

/* While a direction is to be found in the text, a browser reads the text from its beginning for each node that is put
   there: of many nodes, once all are there. */
function appendTo(element, nodes) {
    const found = element.dir === "auto" && nodes.childNodes.length > 50;
    if (found) element.removeAttribute("dir");
    element.append(nodes);
    if (found) element.dir = "auto";
}

/* Words, in a <p> or, where they are the text of a short list's item, in the element of that item. Pieces that have ended
   stay; nothing stands behind words that still grow. */
class WordsView {
    constructor(element) {
        this.element = element;
        this.text = ""; // of the pieces that have ended
        this.done = []; // their nodes
        this.rest = []; // the nodes of the last piece
    }

    get nodes() {
        return [...this.done, ...this.rest];
    }

    show({text}) {
        if (!text.startsWith(this.text)) {
            for (const node of this.done.splice(0)) node.remove();
            this.text = "";
        }
        for (const node of this.rest.splice(0)) node.remove();
        const fresh = document.createDocumentFragment();
        for (const piece of pieces(text.slice(this.text.length))) {
            this.done.push(...this.rest);
            this.rest = inline(piece).map((node) => (typeof node === "string" ? document.createTextNode(node) : node));
            fresh.append(...this.rest);
            this.last = piece.length;
        }
        appendTo(this.element, fresh);
        this.text = text.slice(0, text.length - this.last);
    }
}

/* How many at the beginning of two lists are the same. */
function unchanged(before, now, same) {
    let count = 0;
    while (count < before.length && count < now.length && same(before[count], now[count])) count++;
    return count;
}

function math(block) {
    const node = block.closed ? formula(block.text, true, block.text) : h("code", {}, block.text);
    return h("div", {class: "formula"}, node, block.rest ? h("p", {}, inline(block.rest)) : null);
}

/* Blocks of no more than a few lines are made anew when they have changed. */
function render(block, outline) {
    switch (block.kind) {
        case "heading":
            return heading(block, outline);
        case "rule":
            return h("hr");
        case "math":
            return math(block);
        default:
            return h("p", {dir: "auto", class: "footnote"}, h("sup", {}, block.name), " ", inline(block.text));
    }
}

/* parent: the element that words stand in, where that is not one of their own. */
function viewOf(block, outline, parent) {
    switch (block.kind) {
        case "code": {
            const view = new CodeView(block.language);
            return {element: view.element, show: ({text}) => view.show(text)};
        }
        case "list":
            return new ListView(block, outline);
        case "table":
            return new TableView(block);
        case "quote":
            return new QuoteView(block, outline);
        case "paragraph":
            return new WordsView(parent ?? h("p", {dir: "auto"}));
        default:
            return null;
    }
}

/* What must be the same for a block's view to stay while the block grows. */
function head(block) {
    return JSON.stringify([block.language, block.ordered, block.start, block.head, block.align]);
}

/* Blocks one after another in an element. tight: paragraphs stand without a <p>, as in the items of a short list. */
class BlocksView {
    constructor(element, outline, tight) {
        Object.assign(this, {element, outline, tight});
        this.shown = []; // {kind, source, head, node (null: bare words), view, level: of the last heading up to here}
    }

    show(wanted) {
        let same = unchanged(this.shown, wanted, (a, b) => a.kind === b.kind && a.source === b.source);
        const growing = this.shown[same];
        const grows = growing?.view && growing.kind === wanted[same]?.kind && growing.head === head(wanted[same]);
        this.keep(grows ? same + 1 : same);
        if (grows) {
            growing.view.show(wanted[same]);
            growing.source = wanted[same++].source;
        }
        for (const block of wanted.slice(same)) this.add(block);
    }

    keep(count) {
        for (const old of this.shown.splice(count)) for (const node of old.node ? [old.node] : old.view.nodes) node.remove();
    }

    add(block) {
        const outline = {level: this.shown.at(-1)?.level ?? this.outline.level};
        const bare = this.tight && block.kind === "paragraph";
        const view = viewOf(block, outline, bare ? this.element : null);
        view?.show(block);
        const node = bare ? null : (view?.element ?? render(block, outline));
        if (node) this.element.append(node);
        this.shown.push({kind: block.kind, source: block.source, head: head(block), node, view, level: outline.level});
    }
}

/** Shows a text in an element. While it grows, blocks before the last one are neither read nor made again, and of the
    last one what has changed is: following an answer costs what is new, and what somebody has marked stays marked. */
export class MarkdownView {
    constructor(element) {
        this.blocks = new BlocksView(element, {level: 1}, false);
        this.text = "";
        this.last = 0; // where in it the last block begins
        this.before = 0; // how many blocks there are before that one
    }

    show(given) {
        const text = given.includes("\r") ? given.replaceAll("\r\n", "\n") : given;
        if (text === this.text) return;
        if (!text.startsWith(this.text)) this.last = this.before = 0;
        const {found, last} = blocks(text.slice(this.last));
        this.text = text;
        this.blocks.show([...this.blocks.shown.slice(0, this.before), ...found]);
        this.last += last;
        this.before += Math.max(found.length - 1, 0);
    }
}

/** A text as an element, once. */
export function markdown(text) {
    const element = h("div", {class: "prose"});
    new MarkdownView(element).show(text);
    return element;
}
