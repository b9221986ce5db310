// The conversation that is shown. Messages keep their elements while they stay on the path; an answer that is being
// given is drawn once a frame, and the page follows it down unless somebody has scrolled away.
//
// Of a long conversation the last SOON messages are made at once. The others are empty elements of about their height
// until they come near, or until the browser has nothing else to do.

import {announce, byId, h, svg} from "../base/dom.js";
import {messageView} from "./message.js";
import {on, path, send, session} from "./session.js";
import {textOf} from "./tree.js";
import {explained} from "./words.js";

const views = new Map(); // message id: its view
const waiting = new Set(); // messages to be drawn with the next frame
let follows = true;

const SOON = 16;
const NEAR = "1500px";
const SLICE_MS = 8; // of idle time, in which messages are made

/* A message that is not made yet. */
class LaterView {
    constructor(message) {
        const lines = textOf(message)
            .split("\n")
            .reduce((sum, line) => sum + 1 + Math.floor(line.length / 90), 0);
        this.element = h("article", {
            class: "message later",
            "aria-label": message.role === "assistant" ? "Answer" : "Question",
            dataset: {id: message.id},
        });
        this.element.style.height = `${60 + 26 * lines}px`;
    }

    update() {}
}

const near = new IntersectionObserver(
    (entries) => {
        for (const entry of entries) if (entry.isIntersecting) reveal(entry.target.dataset.id);
    },
    {root: byId("transcript"), rootMargin: NEAR},
);

/** The element of a message of the path, with all that is in it. */
export function reveal(id) {
    const view = views.get(id);
    if (!(view instanceof LaterView)) return view?.element;
    const made = messageView(session.messages.get(id));
    near.unobserve(view.element);
    views.set(id, made);
    view.element.replaceWith(made.element);
    return made.element;
}

const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
let making = false;

/* Makes those that are left, the last first. */
function makeRest() {
    const end = performance.now() + SLICE_MS;
    const left = [...views].filter(([, view]) => view instanceof LaterView).map(([id]) => id);
    while (left.length > 0 && performance.now() < end) reveal(left.pop());
    making = left.length > 0;
    if (making) idle(makeRest);
}

const STARTS = ["Who are you?", "Tell me a short story.", "What is 17 + 25?"];

/* Two voices on a staff, in the notes of their time: heights above the lowest line, in half steps of the lines. */
const VOICES = [
    [7, 8, 6, 7, 5, 6, 4, 5, 3, 4, 5, 4],
    [0, -1, 1, 2, 0, 1, -1, 0, 2, 1, -1, 0],
];

function staff() {
    const lines = [0, 1, 2, 3, 4].map((i) => `M0 ${20.5 + 12 * i}H480`).join("");
    const notes = VOICES.flatMap((voice, second) =>
        voice.map((height, i) => {
            const x = 40 + 36 * i + 18 * second,
                y = 68.5 - 6 * height;
            return svg("path", {d: `M${x - 5} ${y}l5-6 5 6-5 6z`, stroke: "none", class: second ? "second" : null});
        }),
    );
    return svg("svg", {viewBox: "0 0 480 100", class: "staff", "aria-hidden": "true"}, svg("path", {d: lines}), notes);
}

function welcome() {
    return h(
        "div",
        {class: "welcome"},
        staff(),
        h("p", {class: "title", "aria-hidden": "true"}, "motet"),
        h("p", {}, "Ask something. Pictures, videos and files of text may be pasted, dropped or chosen."),
        h(
            "div",
            {class: "starts"},
            STARTS.map((text) => h("button", {type: "button", onclick: () => send(text, [])}, text)),
        ),
    );
}

function isAtEnd() {
    const view = byId("transcript");
    return view.scrollHeight - view.scrollTop - view.clientHeight < 60;
}

function toEnd() {
    const view = byId("transcript");
    view.scrollTop = view.scrollHeight;
}

function showAll() {
    const wanted = path();
    const stays = new Set(wanted.map((message) => message.id));
    const fresh = wanted.some((message) => !views.has(message.id));
    for (const id of views.keys()) if (!stays.has(id)) views.delete(id);
    for (const [i, message] of wanted.entries()) {
        const view = views.get(message.id);
        if (view) view.update(message);
        else if (i >= wanted.length - SOON || message.status === "running") views.set(message.id, messageView(message));
        else views.set(message.id, new LaterView(message));
    }
    for (const view of views.values()) if (view instanceof LaterView) near.observe(view.element);
    if (!making && wanted.length > SOON) {
        making = true;
        idle(makeRest);
    }
    const elements = wanted.map((message) => views.get(message.id).element);
    const list = byId("messages");
    const now = [...list.children];
    // elements that stay are not touched: what is focused in them stays so
    if (elements.length === 0) list.replaceChildren(welcome());
    else if (now.length !== elements.length || now.some((node, i) => node !== elements[i]))
        list.replaceChildren(...elements);
    if (fresh) {
        follows = true;
        toEnd();
    }
}

function draw() {
    for (const id of waiting) {
        const message = session.messages.get(id);
        if (message) views.get(id)?.update(message);
    }
    waiting.clear();
    if (follows) toEnd();
}

function schedule(message) {
    if (waiting.size === 0) requestAnimationFrame(draw);
    waiting.add(message.id);
}

function tellEnd(message) {
    if (message.conversation !== session.conversation.id) return;
    const text = textOf(message);
    announce(
        message.status === "failed"
            ? explained(message.fault, message.error).text
            : `${message.status === "stopped" ? "Stopped" : "Answer"}: ${text.slice(0, 600)}`,
    );
}

export function startTranscript() {
    const view = byId("transcript");
    view.addEventListener("scroll", () => {
        follows = isAtEnd();
        byId("to-end").hidden = follows || view.scrollHeight <= view.clientHeight;
    });
    byId("to-end").addEventListener("click", () => {
        follows = true;
        toEnd();
    });
    on("conversation", () => {
        showAll();
        byId("to-end").hidden = isAtEnd();
    });
    on("models", showAll);
    on("message", schedule);
    on("finished", tellEnd);
    // who asked for another answer, or another branch, is there, and not at the top of the page
    on("hit", (message) => {
        follows = false;
        const element = reveal(message.id);
        element?.scrollIntoView({block: "center"});
        element?.focus({preventScroll: true});
        element?.classList.add("hit");
    });
    on("shown", (message) => reveal(message.id)?.focus({preventScroll: true}));
}
