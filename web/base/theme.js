// Light, dark, or what the system says. Colours are custom properties of base.css.

import {byId, icon} from "./dom.js";

const NAME = "motet.theme";
const NEXT = {auto: "light", light: "dark", dark: "auto"};
const SAID = {
    auto: ["auto", "Colours: as the system has them"],
    light: ["sun", "Colours: light"],
    dark: ["moon", "Colours: dark"],
};

function current() {
    return document.documentElement.dataset.theme ?? "auto";
}

function show(theme) {
    const button = byId("theme");
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    if (button) {
        const [name, label] = SAID[theme];
        button.replaceChildren(icon(name));
        button.setAttribute("aria-label", label);
        button.title = label;
    }
}

function keep(theme) {
    try {
        localStorage.setItem(NAME, theme);
    } catch {
        // it holds for this page then
    }
}

/** Makes the button with the id "theme" the switch. changed is called after each change, the system's included. */
export function startTheme(changed = () => {}) {
    show(current());
    byId("theme")?.addEventListener("click", () => {
        const theme = NEXT[current()];
        show(theme);
        keep(theme);
        changed();
    });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
    window.addEventListener("storage", (event) => {
        if (event.key === NAME) {
            show(event.newValue in NEXT ? event.newValue : "auto");
            changed();
        }
    });
}

/** What a custom property is as a colour now, for a canvas: colour("--ink") is "rgb(29, 27, 24)". */
export function colour(name) {
    const probe = document.createElement("span");
    probe.hidden = true;
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
}
