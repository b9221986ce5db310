// The room that the browser has for conversations: how much is taken, by which of them, and what can be done about it.
// Several conversations are exported or deleted here at once.

import {byId, h} from "../base/dom.js";
import {sized} from "./media.js";
import {on, remove, tell} from "./session.js";
import {save} from "./sidebar.js";
import * as store from "./store.js";

const MUCH = 0.8; // of the room; from here on the page says so

function said(room, all) {
    const taken = sized(all.reduce((sum, each) => sum + (each.bytes ?? 0), 0));
    const count = all.length === 1 ? "1 conversation takes" : `${all.length} conversations take`;
    const given = room ? ` The browser has ${sized(room.all)} for this server, ${sized(room.used)} of it in use.` : "";
    return `${count} ${taken}.${given} Nothing is deleted unless you do it.`;
}

/** Opens the list of all conversations, the largest first. */
export async function openKeeping() {
    const all = (await store.conversations()).sort((a, b) => (b.bytes ?? 0) - (a.bytes ?? 0));
    const room = await store.room();
    const boxes = all.map((each) =>
        h("input", {type: "checkbox", id: `keep-${each.id}`, value: each.id, onchange: () => count()}),
    );
    const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);
    const everything = h("input", {
        type: "checkbox",
        onchange: () => {
            for (const box of boxes) box.checked = everything.checked;
            count();
        },
    });
    const exportButton = h("button", {type: "button", onclick: () => save(chosen(), "chosen")}, "Export");
    const copyButton = h("button", {type: "button", onclick: () => copyChosen()}, "Copy");
    const removeButton = h("button", {type: "button", onclick: () => askRemove()}, "Delete");
    const note = h("p", {class: "note", role: "status"});
    const foot = h("div", {class: "row end"});
    const buttons = [h("button", {type: "button", onclick: () => dialog.close()}, "Close"), copyButton, exportButton, removeButton];
    function count() {
        const n = chosen().length;
        exportButton.disabled = removeButton.disabled = copyButton.disabled = n === 0;
        everything.checked = n === boxes.length && n > 0;
        const bytes = all.reduce((sum, each, i) => sum + (boxes[i].checked ? (each.bytes ?? 0) : 0), 0);
        note.textContent = n > 0 ? `${n} chosen, ${sized(bytes)}` : "";
        foot.replaceChildren(...buttons);
    }
    function askRemove() {
        const n = chosen().length;
        note.textContent = `Delete ${n === 1 ? "this conversation" : `these ${n} conversations`} for ever?`;
        foot.replaceChildren(
            h("button", {type: "button", onclick: count}, "Keep"),
            h("button", {type: "button", class: "primary", onclick: removeChosen}, "Delete for ever"),
        );
        foot.lastChild.focus();
    }
    async function copyChosen() {
        dialog.close();
        try {
            for (const id of chosen()) await store.copyConversation(id);
        } catch (error) {
            if (!(error instanceof store.Full)) throw error;
            tell("full");
        }
        tell("list");
    }
    async function removeChosen() {
        for (const id of chosen()) await remove(id);
        dialog.close();
        tell("list");
    }
    const dialog = h(
        "dialog",
        {class: "card keeping", "aria-labelledby": "keeping-title"},
        h("h2", {id: "keeping-title"}, "What is kept here"),
        h("p", {}, said(room, all)),
        h("label", {class: "check"}, everything, "All of them"),
        h(
            "ul",
            {tabindex: "0", "aria-label": "Conversations, the largest first"},
            all.map((each, i) =>
                h(
                    "li",
                    {},
                    h("label", {class: "check"}, boxes[i], h("span", {dir: "auto"}, each.title || "Untitled")),
                    h("span", {class: "note"}, new Date(each.updated).toLocaleDateString()),
                    h("span", {class: "note"}, sized(each.bytes ?? 0)),
                ),
            ),
        ),
        note,
        foot,
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    count();
    dialog.showModal();
}

let told = false; // once for each time the page is loaded

async function look() {
    const room = await store.room();
    if (!room || room.used < MUCH * room.all || told) return;
    told = true;
    tell("notice", {
        text: `The browser's room for conversations is ${Math.floor((100 * room.used) / room.all)} % full. When it is \
full, nothing more can be asked until you delete something.`,
        actions: [
            ["See what takes it", openKeeping],
            ["Export all", exportAll],
        ],
    });
}

async function exportAll() {
    const all = await store.conversations();
    save(
        all.map((each) => each.id),
        new Date().toISOString().slice(0, 10),
    );
}

export function startKeeping() {
    byId("keeping").addEventListener("click", openKeeping);
    on("full", () => {
        told = true;
        tell("notice", {
            text: "There is no more room in this browser for conversations, so this was not kept. Export what you want \
to keep, delete what you do not need, and try again.",
            actions: [
                ["See what takes the room", openKeeping],
                ["Export all", exportAll],
            ],
        });
    });
    on("list", look);
}
