// The dashboard: what comes from the stream goes into the store, and what is looked at is drawn when something changes.

import {announce, byId, icon} from "../base/dom.js";
import {startTheme} from "../base/theme.js";
import {mixInks} from "./canvas.js";
import {follow} from "./feed.js";
import {makeFigures} from "./figures.js";
import {span} from "./format.js";
import {attach} from "./hands.js";
import {makeLedger} from "./ledger.js";
import {Score} from "./score.js";
import {Store} from "./store.js";
import {makeStrip} from "./strip.js";
import {View} from "./view.js";
import {makeCard, makeTable, stateOf} from "./voice.js";

const FRAME = 40; // milliseconds between drawings while time moves on by itself

const store = new Store(), view = new View(store);
const score = new Score(byId("score-canvas"), store, view);
const still = window.matchMedia("(prefers-reduced-motion: reduce)");
const drawFigures = makeFigures(byId("figures"), store, view);
const drawStrip = makeStrip(byId("strip"), store, view, change);
const drawLedger = makeLedger(byId("ledger"), store, view);
const drawTable = makeTable(byId("table"), store, (voice) => choose(voice, true));
const card = makeCard(byId("card"), store, () => {
    choose(null, false);
    byId("score").focus();
});

let dirty = true, told = true, drawn = 0, tabled = false;

function change() {
    dirty = true;
}

function choose(voice, open) {
    score.selected = voice;
    card.draw(voice, view.now);
    if (voice && open)
        card.focus();
    else if (voice)
        announce(`Number ${voice.number}, ${stateOf(voice)}, ${voice.prompt} prompt tokens, ${voice.tokens} tokens`);
    change();
}

function toggle() {
    if (view.following)
        view.freeze();
    else
        view.follow();
    announce(view.following ? "The score follows the present." : "The score stands still.");
    change();
}

function showState(state, sentence) {
    const said = {live: "live", lost: "no connection", locked: "a key is needed"};
    byId("state").dataset.state = state;
    byId("state").textContent = said[state];
    byId("trouble").hidden = state === "live";
    byId("trouble-text").textContent = sentence;
    byId("again").hidden = state !== "locked";
}

function drawHead() {
    const button = byId("pause"), following = view.following;
    if (button.dataset.following !== String(following)) {
        button.dataset.following = String(following);
        button.replaceChildren(icon(following ? "pause" : "play"), following ? "Pause" : "Follow");
    }
    byId("model").textContent = store.head.model ?? "";
    byId("span").textContent = span(view.span);
    byId("whose").hidden = store.head.everybody !== false;
    byId("silent").hidden = store.list.length > 0 || !store.whole;
}

// Everything, when something was told or touched; while time moves on, the score alone.
function draw(time) {
    requestAnimationFrame(draw);
    const moves = view.following && !still.matches && view.span <= 300 && time - drawn > FRAME;
    if (document.hidden || !(dirty || told || moves))
        return;
    drawn = time;
    if (!tabled)
        score.draw();
    else
        view.update();
    if (dirty || told) {
        drawHead();
        drawFigures();
        drawStrip();
        drawLedger();
        card.draw(score.selected, view.now);
        if (tabled)
            drawTable();
    }
    dirty = told = false;
}

function listen() {
    follow((name, data) => {
        const selected = score.selected?.number;
        store.take(name, data);
        view.told();
        if (name === "snapshot") {
            score.selected = store.voices.get(selected) ?? null;
            score.pointed = null;
        }
        told = true;
    }, showState).catch((error) => showState("lost", String(error)));
}

function zoomTo(seconds) {
    view.zoom(seconds, view.following ? 1 : 0.5);
    change();
}

function measure() {
    score.room = Math.max(Math.min(window.innerHeight * 0.62, 620), 260);
    change();
}

byId("pause").addEventListener("click", toggle);
byId("nearer").addEventListener("click", () => zoomTo(view.span / 1.5));
byId("farther").addEventListener("click", () => zoomTo(view.span * 1.5));
for (const button of document.querySelectorAll("[data-span]"))
    button.addEventListener("click", () => zoomTo(Number(button.dataset.span)));
byId("as-table").addEventListener("click", (event) => {
    tabled = !tabled;
    event.currentTarget.setAttribute("aria-pressed", String(tabled));
    byId("score").hidden = tabled;
    byId("legend").hidden = tabled;
    byId("score-keys").hidden = tabled;
    byId("table").hidden = !tabled;
    change();
});
byId("again").addEventListener("click", listen);
attach(byId("score"), byId("score-canvas"), score, {changed: change, choose, toggle});
startTheme(() => {
    mixInks();
    change();
});
window.addEventListener("resize", measure);
mixInks();
measure();
listen();
requestAnimationFrame(draw);
