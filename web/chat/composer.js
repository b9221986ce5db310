// Where questions are written, with pictures and videos.

import {announce, byId} from "../base/dom.js";
import {attachment, filesOf, gallery} from "./media.js";
import {change, on, path, running, send, session, stop, tell} from "./session.js";
import {openSketch} from "./sketch.js";

const DRAFT = "motet.draft";

let attachments = [];

function showAttachments() {
    byId("attachments").replaceChildren(
        ...(attachments.length > 0
            ? [
                  gallery(attachments, (gone) => {
                      attachments = attachments.filter((each) => each !== gone);
                      showAttachments();
                      byId("question").focus();
                  }),
              ]
            : []),
    );
}

async function attach(files) {
    for (const file of files) {
        try {
            attachments.push(await attachment(file, attachments));
            announce(`${file.name || "A picture"} is attached`);
        } catch (error) {
            tell("notice", error.message);
        }
    }
    showAttachments();
}

/* As high as its text, up to a third of the window. */
function grow() {
    const field = byId("question");
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight + 2, window.innerHeight / 3)}px`;
}

/* What is not sent yet outlives a reload of this tab. */
function keepDraft() {
    sessionStorage.setItem(DRAFT, byId("question").value);
    grow();
}

function submit() {
    const field = byId("question");
    const text = field.value.trim();
    if ((!text && attachments.length === 0) || running()) return;
    const sent = attachments;
    field.value = "";
    attachments = [];
    showAttachments();
    keepDraft();
    send(text, sent);
}

function showState() {
    const busy = running() !== undefined;
    byId("send").hidden = busy;
    byId("stop").hidden = !busy;
    const {settings} = session.conversation;
    byId("think").setAttribute("aria-pressed", String(settings.thinking === "on"));
    byId("probabilities").setAttribute("aria-pressed", String(settings.probabilities));
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
    field.value = sessionStorage.getItem(DRAFT) ?? "";
    grow();
    field.addEventListener("input", keepDraft);
    field.addEventListener("paste", (event) => {
        const files = filesOf(event.clipboardData);
        if (files.length > 0) {
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
    on("settings", showState);
    on("message", showState);
    startDrop();
}
