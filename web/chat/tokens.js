// The tokens of an answer, coloured by how sure the model was, with what it might have said instead.

import {h} from "../base/dom.js";

const LABELS = [
    ["\n", "⏎"],
    ["\t", "⇥"],
    [" ", "␣"],
];

function visible(text) {
    return LABELS.reduce((all, [from, to]) => all.replaceAll(from, to), text) || "∅";
}

export function percent(logprob) {
    const p = 100 * Math.exp(logprob);
    return p >= 99.95 ? "100 %" : p >= 10 ? `${p.toFixed(1)} %` : p >= 0.01 ? `${p.toFixed(2)} %` : "< 0.01 %";
}

/* How unlikely, in five steps: a look tells them apart, and a name says it without colour. */
function doubt(logprob) {
    const p = Math.exp(logprob);
    return p > 0.95 ? 0 : p > 0.7 ? 1 : p > 0.4 ? 2 : p > 0.1 ? 3 : 4;
}

function alternatives(token) {
    const rows = token.others.map(([text, logprob]) => {
        const bar = h("span", {class: "bar", "aria-hidden": "true"});
        bar.style.setProperty("--part", String(Math.exp(logprob)));
        return h(
            "tr",
            {class: text === token.text ? "taken" : null},
            h("th", {scope: "row"}, h("code", {dir: "auto"}, visible(text).slice(0, 40))),
            h("td", {}, bar),
            h("td", {class: "to-right"}, percent(logprob)),
        );
    });
    return h(
        "table",
        {},
        h(
            "caption",
            {},
            "Instead of ",
            h("code", {dir: "auto"}, visible(token.text).slice(0, 40)),
            ` (${percent(token.logprob)})`,
        ),
        h("tbody", {}, rows),
    );
}

/** An element that shows tokens; arrow keys go from one to the next. */
export function tokenView(tokens) {
    const panel = h(
        "div",
        {class: "alternatives", "aria-live": "polite"},
        h(
            "p",
            {class: "note"},
            "Point at a token, or go along with the arrow keys, to see what else it could have been.",
        ),
    );
    const buttons = tokens.map((token, index) =>
        h(
            "span",
            {
                role: "button",
                class: "token",
                tabindex: index === 0 ? "0" : "-1",
                dataset: {doubt: doubt(token.logprob)},
                "aria-label": `${visible(token.text)}, ${percent(token.logprob)}`,
            },
            token.text,
        ),
    );
    let chosen = 0;
    const choose = (index) => {
        buttons[chosen].tabIndex = -1;
        buttons[chosen].classList.remove("chosen");
        chosen = index;
        buttons[chosen].tabIndex = 0;
        buttons[chosen].classList.add("chosen");
        panel.replaceChildren(alternatives(tokens[index]));
    };
    const text = h(
        "div",
        {class: "tokens", role: "group", "aria-label": "Tokens by probability", dir: "auto"},
        buttons,
    );
    const place = (event) => buttons.indexOf(event.target.closest(".token"));
    text.addEventListener("mouseover", (event) => place(event) >= 0 && choose(place(event)));
    text.addEventListener("focusin", (event) => place(event) >= 0 && choose(place(event)));
    text.addEventListener("keydown", (event) => {
        const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
        if (!step) return;
        event.preventDefault();
        buttons[Math.min(Math.max(chosen + step, 0), buttons.length - 1)].focus();
    });
    return h("div", {class: "probabilities"}, text, panel);
}
