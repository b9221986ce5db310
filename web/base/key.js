// The key of a server that wants one. It stays in this tab: not in a cookie, not on the disk, gone with the tab.

import {h} from "./dom.js";

const NAME = "motet.key";
let asking = null; // the prompt that is open, for all who wait for it

export function currentKey() {
    return sessionStorage.getItem(NAME);
}

export function forgetKey() {
    sessionStorage.removeItem(NAME);
}

function prompt(reason) {
    return new Promise((resolve) => {
        const field = h("input", {
            type: "password",
            id: "key",
            autocomplete: "off",
            spellcheck: "false",
            required: true,
        });
        const form = h(
            "form",
            {method: "dialog"},
            h("h2", {id: "key-title"}, "This server asks for a key"),
            h("p", {id: "key-reason"}, reason),
            h("label", {for: "key"}, "Key"),
            field,
            h("p", {class: "note"}, "It is kept in this tab until you close it, and sent to this server only."),
            h(
                "div",
                {class: "row end"},
                h("button", {type: "button", onclick: () => dialog.close("")}, "Not now"),
                h("button", {class: "primary", value: "use"}, "Use it"),
            ),
        );
        const dialog = h(
            "dialog",
            {class: "card", "aria-labelledby": "key-title", "aria-describedby": "key-reason"},
            form,
        );
        dialog.addEventListener("close", () => {
            const key = dialog.returnValue === "use" ? field.value.trim() : "";
            if (key) sessionStorage.setItem(NAME, key);
            dialog.remove();
            resolve(key !== "");
        });
        document.body.append(dialog);
        dialog.showModal();
        field.focus();
    });
}

/** Asks for a key, once for all who want it at the same time; says whether there is one now. */
export function askForKey(reason) {
    asking ??= prompt(reason).finally(() => {
        asking = null;
    });
    return asking;
}
