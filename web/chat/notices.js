// Sentences for the person above the field: what happened, and buttons for what can be done about it. One that has
// buttons stays until one of them is pressed or it is closed; others go with the first thing that is done when they
// have been there for a while: nobody has to read against a clock.

import {announce, byId, h, iconButton} from "../base/dom.js";
import {on} from "./session.js";

const MS = 8000;

let until = Infinity; // when it may go

export function hideNotice() {
    until = Infinity;
    byId("notice").hidden = true;
}

function show(what) {
    const {text, actions = []} = typeof what === "string" ? {text: what} : what;
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
    until = actions.length === 0 ? Date.now() + MS : Infinity;
}

export function startNotices() {
    on("notice", show);
    for (const name of ["pointerdown", "keydown"])
        document.addEventListener(name, () => Date.now() > until && hideNotice());
}
