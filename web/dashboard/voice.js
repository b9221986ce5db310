// A voice in words: the figures of the one that was chosen, and all of them as a table.

import {h, iconButton} from "../base/dom.js";
import {clock, percent, short, span} from "./format.js";
import {KIND} from "./store.js";

const PAGE = 50; // rows that a table begins with

export function stateOf(voice) {
    const said = {stop: "ended by itself", length: "ended at its length", cancelled: "cancelled", error: "failed"};
    if (voice.ended)
        return said[voice.finish] ?? voice.finish;
    if (!voice.seated)
        return "waits";
    return voice.tokens > 0 ? "answers" : voice.open?.kind === KIND.pictures ? "looks at pictures" : "reads its prompt";
}

function count(number, thing) {
    return `${short(number)} ${thing}${number === 1 ? "" : "s"}`;
}

function tempo(voice, now) {
    const time = (voice.ended || now) - voice.first;
    return voice.tokens > 1 && time > 0 ? (voice.tokens - 1) / time : null;
}

// Without a seat, until now where it has none.
function waits(store, voice, now) {
    if (voice.seated || voice.ended)
        return voice.waited;
    const since = store.notes(voice).findLast((note) => note.kind === KIND.aside)?.begin ?? voice.entered;
    return voice.waited + Math.max(now - since, 0);
}

function rows(store, voice, now) {
    const notes = store.notes(voice), of = (kind) => notes.filter((note) => note.kind === kind);
    const sum = (kind) => of(kind).reduce((total, note) => total + note.end - note.begin, 0);
    const slices = of(KIND.prompt).reduce((total, note) => total + note.steps, 0);
    const {encoders, models, model: all} = store.head, speed = tempo(voice, now);
    const model = encoders?.[voice.encoder - 1] ?? models?.[voice.model] ?? all;
    return [
        ["Model", model],
        voice.key && ["Key", voice.key],
        ["Arrived", clock(store.wall(voice.received), 3)],
        ["Prepared in", span(voice.entered - voice.received)],
        ["Waited", span(waits(store, voice, now))],
        voice.pictures > 0 && ["Pictures", `${voice.pictures}, encoded in ${span(sum(KIND.pictures))}`],
        ["Prompt", `${count(voice.prompt, "token")}, ${short(voice.cached)} from the cache ` +
                   `(${percent(voice.cached, voice.prompt)})`],
        ["Prefill", `${count(slices, "slice")}, ${span(sum(KIND.prompt))}`],
        voice.first > 0 && ["First token after", span(voice.first - voice.received)],
        voice.tokens > 0 && ["Answer", count(voice.tokens, "token") + (speed ? `, ${short(speed)} a second` : "")],
        voice.guessed > 0 && ["Guessed ahead", `${short(voice.guessed)}, ${percent(voice.taken, voice.guessed)} right`],
        voice.constrained && ["Constrained", "yes"],
        voice.aside > 0 && ["Set aside", count(voice.aside, "time")],
        ["Took", span((voice.ended || now) - voice.received)],
        ["State", stateOf(voice)],
    ].filter(Boolean);
}

/** The card of the voice that is chosen. */
export function makeCard(element, store, close) {
    const title = h("h2", {tabindex: "-1"}), id = h("p", {class: "id"}), list = h("dl"), fault = h("p", {class: "bad"});
    element.append(h("div", {class: "row"}, title, iconButton("close", "Close", close)), id, list, fault);
    let shown = null;
    return {
        focus: () => title.focus({preventScroll: true}),
        draw(voice, now) {
            element.hidden = !voice;
            if (!voice)
                return;
            const error = store.errors.find((e) => e.id === voice.id), pairs = rows(store, voice, now);
            title.textContent = `№ ${voice.number}` + (voice.choice > 0 ? `, choice ${voice.choice + 1}` : "");
            id.textContent = voice.id;
            fault.textContent = error ? error.text : "";
            fault.hidden = !error;
            if (shown !== voice || list.childElementCount !== 2 * pairs.length) {
                list.replaceChildren(...pairs.flatMap(([name]) => [h("dt", {}, name), h("dd")]));
                shown = voice;
            }
            pairs.forEach(([name, value], i) => {
                list.children[2 * i].textContent = name;
                list.children[2 * i + 1].textContent = value;
            });
        },
    };
}

const COLUMNS = [
    ["№", (store, v) => String(v.number)],
    ["State", (store, v) => stateOf(v)],
    ["Arrived", (store, v) => clock(store.wall(v.received))],
    ["Waited", (store, v) => span(waits(store, v, store.now))],
    ["Prompt", (store, v) => short(v.prompt)],
    ["Cached", (store, v) => short(v.cached)],
    ["First token", (store, v) => v.first ? span(v.first - v.received) : "–"],
    ["Tokens", (store, v) => short(v.tokens)],
    ["Tokens/s", (store, v) => short(tempo(v, store.now))],
    ["Took", (store, v) => span((v.ended || store.now) - v.received)],
];

/** The same as the score, in words: the newest first. Rows that stay are changed and not made anew. */
export function makeTable(element, store, choose) {
    const body = h("tbody"), more = h("button", {type: "button", onclick: () => { most += PAGE; draw(); }});
    const kept = new Map();
    let most = PAGE;
    element.append(h("table", {},
                     h("caption", {class: "unseen"}, "Requests of the last hour, the newest first"),
                     h("thead", {}, h("tr", {}, COLUMNS.map(([name]) => h("th", {scope: "col"}, name)))), body), more);

    const make = (voice) => {
        const cells = COLUMNS.map((_, i) => i === 0 ? h("button", {type: "button", class: "quiet",
            onclick: () => choose(store.voices.get(voice.number))}) : h("td"));
        return {cells, row: h("tr", {}, h("th", {scope: "row"}, cells[0]), cells.slice(1))};
    };
    function draw() {
        const voices = store.list.slice(-most).reverse();
        for (const number of [...kept.keys()].filter((n) => !voices.some((voice) => voice.number === n))) {
            kept.get(number).row.remove();
            kept.delete(number);
        }
        voices.forEach((voice, i) => {
            const {cells, row} = kept.get(voice.number) ?? make(voice);
            kept.set(voice.number, {cells, row});
            COLUMNS.forEach(([, read], column) => {
                const text = read(store, voice);
                if (cells[column].textContent !== text)
                    cells[column].textContent = text;
            });
            if (body.children[i] !== row)
                body.insertBefore(row, body.children[i] ?? null);
        });
        more.hidden = store.list.length <= most;
        more.textContent = `Show ${Math.min(PAGE, store.list.length - most)} more of ${store.list.length - most}`;
    }
    return draw;
}
