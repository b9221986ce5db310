// The conversations at the left and the settings at the right: beside the conversation where there is room, over it
// where there is not. What is closed is out of reach of the keyboard, too.

import {byId, icon} from "../base/dom.js";

const NARROW = window.matchMedia("(max-width: 60rem)");
const DRAWERS = [
    ["sidebar", "show-sidebar"],
    ["settings", "show-settings"],
];

function set(drawer, button, open) {
    byId(drawer).hidden = !open;
    byId(button).setAttribute("aria-expanded", String(open));
    byId("veil").hidden = !(NARROW.matches && DRAWERS.some(([name]) => !byId(name).hidden));
}

/** Closes what lies over the conversation. */
export function closeDrawers() {
    if (NARROW.matches) for (const [drawer, button] of DRAWERS) set(drawer, button, false);
}

export function toggleDrawer(name) {
    const [drawer, button] = DRAWERS.find((each) => each[0] === name);
    const open = byId(drawer).hidden;
    if (open) closeDrawers();
    set(drawer, button, open);
    if (open) byId(drawer).querySelector("#new, input, select, textarea")?.focus();
}

export function startDrawers() {
    byId("show-sidebar").append(icon("menu"));
    byId("show-settings").append(icon("sliders"));
    for (const [drawer, button] of DRAWERS) {
        byId(button).addEventListener("click", () => toggleDrawer(drawer));
        byId(`hide-${drawer}`).append(icon("close"));
        byId(`hide-${drawer}`).addEventListener("click", () => {
            set(drawer, button, false);
            byId(button).focus();
        });
        byId(drawer).addEventListener("keydown", (event) => {
            if (event.key === "Escape" && NARROW.matches) {
                event.stopPropagation();
                closeDrawers();
                byId(button).focus();
            }
        });
    }
    byId("veil").addEventListener("click", closeDrawers);
    const arrange = () => {
        set("sidebar", "show-sidebar", !NARROW.matches);
        set("settings", "show-settings", false);
    };
    document.body.classList.add("ready");
    NARROW.addEventListener("change", arrange);
    arrange();
}
