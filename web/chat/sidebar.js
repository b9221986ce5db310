// The conversations that are kept: searched, named, exported, imported, forgotten.

import {announce, byId, h, icon, iconButton} from "../base/dom.js";
import {exported, imported} from "./exchange.js";
import {begin, on, openConversation, pin, remove, rename, session, tell} from "./session.js";
import * as store from "./store.js";
import {closeDrawers} from "./drawers.js";

const DAY = 24 * 3600 * 1000;

function dayOf(time) {
    const today = new Date().setHours(0, 0, 0, 0);
    return time >= today
        ? "Today"
        : time >= today - DAY
          ? "Yesterday"
          : time >= today - 7 * DAY
            ? "This week"
            : "Earlier";
}

function dialog(title, content, action, label) {
    const box = h(
        "dialog",
        {class: "card", "aria-labelledby": "ask-title"},
        h(
            "form",
            {method: "dialog", onsubmit: action},
            h("h2", {id: "ask-title"}, title),
            content,
            h(
                "div",
                {class: "row end"},
                h("button", {type: "button", onclick: () => box.close()}, "Cancel"),
                h("button", {class: "primary"}, label),
            ),
        ),
    );
    box.addEventListener("close", () => box.remove());
    document.body.append(box);
    box.showModal();
}

function askName(each) {
    const field = h("input", {id: "name", value: each.title, maxlength: 200, required: true});
    dialog(
        "Name of the conversation",
        [h("label", {for: "name"}, "Name"), field],
        () => rename(each.id, field.value.trim()),
        "Rename",
    );
    field.select();
}

function askRemove(each) {
    dialog(
        "Forget this conversation?",
        h("p", {}, `“${each.title || "Untitled"}” and all of its branches will be gone.`),
        () => remove(each.id),
        "Forget it",
    );
}

function row(each) {
    const current = each.id === session.conversation?.id;
    const title = each.title || "Untitled";
    return h(
        "li",
        {class: current ? "current" : null},
        h(
            "a",
            {
                href: `#${each.id}`,
                "aria-current": current ? "true" : null,
                dir: "auto",
                onclick: (event) => {
                    event.preventDefault();
                    openConversation(each.id, each.hit);
                    closeDrawers();
                },
            },
            title,
        ),
        iconButton("pin", `${each.pinned ? "Unpin" : "Pin"} ${title}`, () => pin(each.id, !each.pinned), {
            "aria-pressed": String(each.pinned === true),
        }),
        iconButton("edit", `Rename ${title}`, () => askName(each)),
        iconButton("save", `Export ${title}`, () => exportOne(each)),
        iconButton("bin", `Forget ${title}`, () => askRemove(each)),
    );
}

/* All that the list shows. It is made anew only where that has changed: buttons stay under the pointer. */
let shown = null;

async function showList() {
    const words = byId("search").value.trim();
    const found = await (words ? store.search(words) : store.conversations()).catch(() => []);
    if (words) announce(found.length === 1 ? "1 conversation found" : `${found.length} conversations found`);
    const state = JSON.stringify([
        words !== "",
        found.map((each) => [each.id, each.title, each.pinned, each.hit, dayOf(each.updated)]),
        session.conversation?.id,
    ]);
    if (state === shown) return;
    shown = state;
    const groups = new Map();
    const group = (each) => (each.pinned ? "Pinned" : dayOf(each.updated));
    for (const each of found.toSorted((a, b) => (b.pinned === true) - (a.pinned === true)))
        groups.set(group(each), [...(groups.get(group(each)) ?? []), each]);
    byId("conversations").replaceChildren(
        ...[...groups].map(([name, members]) => h("section", {}, h("h2", {}, name), h("ul", {}, members.map(row)))),
    );
    if (found.length === 0)
        byId("conversations").append(
            h("p", {class: "note"}, words ? "Nothing was found." : "Conversations are kept here, in this browser."),
        );
}

/** Has the browser save some conversations as a file. */
export async function save(ids, name) {
    const url = URL.createObjectURL(new Blob([await exported(ids)], {type: "application/json"}));
    h("a", {href: url, download: `motet-${name}.json`}).click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
}

async function exportAll() {
    const all = await store.conversations();
    save(
        all.map((each) => each.id),
        new Date().toISOString().slice(0, 10),
    );
}

function exportOne(each) {
    const words = each.title.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ["conversation"];
    save([each.id], words.join("-").slice(0, 60));
}

function counted(number) {
    return number === 1 ? "1 conversation was added." : `${number} conversations were added.`;
}

async function importFile(file) {
    try {
        tell("notice", counted(await imported(file)));
    } catch (error) {
        if (error instanceof store.Full) tell("full");
        else tell("notice", `${error.added ? `${counted(error.added)} Then it ended` : "Nothing was added"}: ${error.message}`);
    }
    tell("list");
}

export function beginNew() {
    begin();
    closeDrawers();
    byId("question").focus();
}

export function startSidebar() {
    let timer = 0;
    let drawn = Promise.resolve();
    const later = () => {
        clearTimeout(timer);
        timer = setTimeout(() => {
            drawn = drawn.then(showList);
        }, 60);
    };
    byId("new").replaceChildren(icon("plus"), "New conversation");
    byId("new").addEventListener("click", beginNew);
    byId("search").addEventListener("input", later);
    byId("export").addEventListener("click", exportAll);
    byId("import").addEventListener("click", () => byId("import-file").click());
    byId("import-file").addEventListener("change", () => {
        if (byId("import-file").files[0]) importFile(byId("import-file").files[0]);
        byId("import-file").value = "";
    });
    for (const name of ["list", "conversation", "title"]) on(name, later);
}
