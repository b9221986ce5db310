// A Markdown text as nodes, and a view that follows one while it is being written.

import {h} from "../base/dom.js";
import {blocks} from "./blocks.js";
import {codeBlock} from "./code.js";
import {inline} from "./inline.js";
import {formula} from "./math.js";

/* Headings in a text are one below the page's own, and none is passed over, whatever levels the text has: who hears the
   page finds a way through them. How large they look is their own level. `outline.level` is the last that was used. */
function heading(block, outline) {
    outline.level = Math.min(block.level + 1, outline.level + 1, 6);
    return h(`h${outline.level}`, {dir: "auto", class: `level-${block.level}`}, inline(block.text));
}

function list(block, outline) {
    const items = block.items.map((item) =>
        h(
            "li",
            {class: item.task === null ? null : "task"},
            item.task === null
                ? null
                : h("input", {
                      type: "checkbox",
                      disabled: true,
                      checked: item.task,
                      "aria-label": item.task ? "done" : "to do",
                  }),
            item.blocks.map((inner) =>
                inner.kind === "paragraph" && !block.loose ? inline(inner.text) : render(inner, outline),
            ),
        ),
    );
    return h(block.ordered ? "ol" : "ul", block.ordered && block.start !== 1 ? {start: block.start} : {}, items);
}

function table(block) {
    const row = (tag, cells) =>
        h(
            "tr",
            {},
            block.head.map((_, i) => {
                const align = block.align[i];
                return h(
                    tag,
                    {class: align && `to-${align}`, scope: tag === "th" ? "col" : null},
                    inline(cells[i] ?? ""),
                );
            }),
        );
    // wide ones are scrolled, with the keyboard as well
    return h(
        "div",
        {class: "wide", tabindex: "0", role: "region", "aria-label": "table"},
        h(
            "table",
            {},
            h("thead", {}, row("th", block.head)),
            h(
                "tbody",
                {},
                block.rows.map((cells) => row("td", cells)),
            ),
        ),
    );
}

function math(block) {
    const node = block.closed ? formula(block.text, true, `$$${block.text}$$`) : h("code", {}, block.text);
    return h("div", {class: "formula"}, node, block.rest ? h("p", {}, inline(block.rest)) : null);
}

function render(block, outline) {
    switch (block.kind) {
        case "heading":
            return heading(block, outline);
        case "rule":
            return h("hr");
        case "code":
            return codeBlock(block.text, block.language);
        case "math":
            return math(block);
        case "quote":
            return h(
                "blockquote",
                {dir: "auto"},
                block.blocks.map((inner) => render(inner, outline)),
            );
        case "list":
            return list(block, outline);
        case "table":
            return table(block);
        default:
            return h("p", {dir: "auto"}, inline(block.text));
    }
}

/** Shows a text in an element. Blocks that have not changed keep their nodes, so that following an answer costs what is
    new, and what somebody has marked stays marked. */
export class MarkdownView {
    constructor(element) {
        this.element = element;
        this.shown = []; // {kind, source, closed, node, level}
    }

    show(text) {
        const wanted = blocks(text);
        let same = 0;
        while (
            same < wanted.length &&
            this.shown[same]?.source === wanted[same].source &&
            this.shown[same].kind === wanted[same].kind &&
            this.shown[same].closed === wanted[same].closed
        )
            same++;
        for (const old of this.shown.splice(same)) old.node.remove();
        const outline = {level: this.shown.at(-1)?.level ?? 1};
        for (const block of wanted.slice(same)) {
            const node = render(block, outline);
            this.shown.push({kind: block.kind, source: block.source, closed: block.closed, node, level: outline.level});
            this.element.append(node);
        }
    }
}

/** A text as an element, once. */
export function markdown(text) {
    const element = h("div", {class: "prose"});
    new MarkdownView(element).show(text);
    return element;
}
