// The conversation that is shown. Messages keep their elements while they stay on the path; an answer that is being
// given is drawn once a frame, and the page follows it down unless somebody has scrolled away.

import {announce, byId, h, svg} from "../base/dom.js";
import {messageView} from "./message.js";
import {on, path, send, session} from "./session.js";
import {textOf} from "./tree.js";

const views = new Map(); // message id: its view
const waiting = new Set(); // messages to be drawn with the next frame
let follows = true;

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
        h("p", {}, "Ask something. Pictures and videos may be pasted, dropped or chosen."),
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
    for (const message of wanted) {
        if (views.has(message.id)) views.get(message.id).update(message);
        else views.set(message.id, messageView(message));
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
            ? `The answer failed: ${message.error}`
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
    on("message", schedule);
    on("finished", tellEnd);
}
