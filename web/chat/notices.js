// Sentences for the person above the field: what happened, and buttons for what can be done about it. One that has
// buttons stays until one of them is pressed or it is closed; others go after a while.

import {announce, byId, h, iconButton} from "../base/dom.js";
import {on} from "./session.js";

const MS = 8000;

let timer = 0;

export function hideNotice() {
    clearTimeout(timer);
    byId("notice").hidden = true;
}

function show(what) {
    const {text, actions = []} = typeof what === "string" ? {text: what} : what;
    clearTimeout(timer);
    byId("notice").replaceChildren(
        h("p", {}, text),
        ...actions.map(([label, act]) =>
            h(
                "button",
                {
                    type: "button",
                    onclick: () => {
                        hideNotice();
                        act();
                    },
                },
                label,
            ),
        ),
        iconButton("close", "Close the message", hideNotice),
    );
    byId("notice").hidden = false;
    announce(text);
    if (actions.length === 0) timer = setTimeout(hideNotice, MS);
}

export function startNotices() {
    on("notice", show);
}
