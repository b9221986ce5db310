// Where questions are written, with pictures, videos and files of text. What is written and not sent is a draft, which
// each conversation has of its own.

import {callJson} from "../base/api.js";
import {announce, byId} from "../base/dom.js";
import {documentOf} from "./ask.js";
import {attachment, filesOf, gallery} from "./media.js";
import {change, model, on, path, running, send, session, stop, tell} from "./session.js";
import {inForce} from "./settings.js";
import {openSketch} from "./sketch.js";
import * as store from "./store.js";
import {explained, faultOf} from "./words.js";

const NEW = "new"; // whose draft is that of a conversation that has no message yet
const SAVE_MS = 300;
const LATE = "motet.draft"; // what was typed just before the page was left: the database is too slow for that

let attachments = [];
let owner = null; // the conversation that the draft belongs to
let timer = 0;
let unsaved = null; // {owner, text}: what the database has not yet

function showAttachments() {
    byId("attachments").replaceChildren(
        ...(attachments.length > 0
            ? [
                  gallery(attachments, (gone) => {
                      attachments = attachments.filter((each) => each !== gone);
                      showAttachments();
                      keepDraft();
                      byId("question").focus();
                  }),
              ]
            : []),
    );
}

async function attach(files) {
    for (const file of files) {
        try {
            const made = await readable(file, session.limits && {...session.limits, pixels: model()?.max_picture_pixels});
            attachments.push(made);
            announce(`${file.name || "A picture"} is attached`);
            if (made.kind === "text") count(made);
        } catch (error) {
            tell("notice", error.message);
        }
    }
    showAttachments();
    keepDraft();
}

/* An attachment of a file. Whether the server can read a document it says itself, and how many tokens that is. */
async function readable(file, limits) {
    const made = await attachment(file, limits);
    if (made.kind !== "file") return made;
    try {
        const input = [{type: "message", role: "user", content: [await documentOf(made)]}];
        made.tokens = (await callJson("v1/responses/input_tokens", {body: {model: model()?.id, input}})).input_tokens;
    } catch (error) {
        const {details} = explained(faultOf(error), error.message);
        if (error.status === 400 || error.status === 413) throw new Error(`${made.name}: ${details}`, {cause: error});
        // else its bytes are shown
    }
    return made;
}

/* How many tokens a file has is known before it is sent. */
async function count(made) {
    try {
        const content = await made.blob.text();
        const body = {content, prompt: content, model: model()?.id};
        made.tokens = (await callJson("tokenize", {body})).tokens.length;
    } catch {
        return; // its bytes are shown
    }
    showAttachments();
}

/* As high as its text, up to a third of the window. */
function grow() {
    const field = byId("question");
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, window.innerHeight / 3)}px`;
}

/* What is not sent yet is kept, for each conversation. */
function keepDraft() {
    grow();
    clearTimeout(timer);
    timer = setTimeout(saveDraft, SAVE_MS);
}

function saveDraft() {
    clearTimeout(timer);
    timer = 0;
    const mine = (unsaved = {owner, text: byId("question").value});
    const saved = () => {
        if (unsaved === mine) unsaved = null;
    };
    store.saveDraft({conversation: owner, text: mine.text, attachments}).then(saved, saved);
}

function saveLate() {
    if (timer) saveDraft();
    if (!unsaved) return;
    try {
        localStorage.setItem(LATE, JSON.stringify(unsaved));
    } catch {
        // then the draft is the one before
    }
}

/* The text that was typed last for a conversation; null: the database has it. */
function takeLate() {
    try {
        const late = JSON.parse(localStorage.getItem(LATE));
        if (late?.owner !== owner) return null;
        localStorage.removeItem(LATE);
        return String(late.text);
    } catch {
        return null;
    }
}

function fill(text, files) {
    byId("question").value = text;
    attachments = files;
    showAttachments();
    grow();
}

/* Another conversation is shown: its draft is, too. One that has got its first message keeps what is written. */
async function changeDraft() {
    const next = session.kept ? session.conversation.id : NEW;
    if (next === owner) return;
    if (timer) saveDraft();
    const first = owner === null;
    owner = next;
    if (sending) return;
    if (!first) fill("", []);
    const found = await store.loadDraft(next).catch(() => null);
    if (owner !== next) return;
    const text = takeLate() ?? found?.text;
    // What was written or attached while the draft was loaded comes behind it.
    if (text || found) fill((text ?? "") + byId("question").value, [...(found?.attachments ?? []), ...attachments]);
}

let sending = false;

/* What could not be sent stays in the field. */
async function submit() {
    const field = byId("question");
    const text = field.value.trim();
    if (sending || (!text && attachments.length === 0) || running()) return;
    sending = true;
    const before = owner;
    try {
        if (!(await send(text, attachments))) return;
        fill("", []);
        saveDraft();
        if (before === NEW) store.saveDraft({conversation: NEW, text: "", attachments: []}).catch(() => {});
    } finally {
        sending = false;
    }
}

function showState() {
    const busy = running() !== undefined;
    byId("send").hidden = busy;
    byId("stop").hidden = !busy;
    const {settings} = session.conversation;
    byId("think").setAttribute("aria-pressed", String(settings.thinking === "on"));
    byId("probabilities").setAttribute("aria-pressed", String(settings.probabilities));
    const labels = inForce(settings);
    byId("in-force").hidden = labels.length === 0;
    byId("in-force").textContent = labels.join(" · ");
    byId("in-force").title = `In force in this conversation: ${labels.join(", ")}`;
}

function onKey(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        submit();
    } else if (event.key === "ArrowUp" && byId("question").value === "") {
        const last = path().findLast((message) => message.role === "user");
        document.querySelector(`[data-id="${last?.id}"] button[aria-label^="Edit"]`)?.click();
    }
}

function startDrop() {
    const page = document.body;
    let depth = 0;
    const set = (change) => {
        depth = Math.max(0, change);
        page.classList.toggle("dropping", depth > 0);
    };
    page.addEventListener("dragenter", () => set(depth + 1));
    page.addEventListener("dragleave", () => set(depth - 1));
    page.addEventListener("dragover", (event) => event.preventDefault());
    page.addEventListener("drop", (event) => {
        event.preventDefault();
        set(0);
        attach(filesOf(event.dataTransfer));
    });
}

export function startComposer() {
    const field = byId("question"),
        chooser = byId("file");
    byId("composer").addEventListener("submit", (event) => {
        event.preventDefault();
        submit();
    });
    field.addEventListener("keydown", onKey);
    byId("in-force").addEventListener("click", () => tell("show-setting", null));
    window.addEventListener("pagehide", saveLate);
    field.addEventListener("input", keepDraft);
    field.addEventListener("paste", (event) => {
        const files = filesOf(event.clipboardData);
        if (files.length > 0 && !event.clipboardData.types.includes("text/plain")) {
            event.preventDefault();
            attach(files);
        }
    });
    byId("attach").addEventListener("click", () => chooser.click());
    chooser.addEventListener("change", () => {
        attach([...chooser.files]);
        chooser.value = "";
        field.focus();
    });
    byId("sketch").addEventListener("click", () =>
        openSketch((file) => {
            attach([file]);
            field.focus();
        }),
    );
    byId("stop").addEventListener("click", stop);
    byId("think").addEventListener("click", () =>
        change({thinking: session.conversation.settings.thinking === "on" ? "off" : "on"}),
    );
    byId("probabilities").addEventListener("click", () =>
        change({probabilities: !session.conversation.settings.probabilities}),
    );
    document.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && running() && !document.querySelector("dialog[open]")) stop();
    });
    on("conversation", showState);
    on("conversation", changeDraft);
    on("settings", showState);
    on("message", showState);
    startDrop();
}
