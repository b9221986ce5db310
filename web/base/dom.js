// Elements are made here and nowhere else. Text is set as text: there is no way to hand markup in.

const SVG = "http://www.w3.org/2000/svg";

function set(node, name, value) {
    if (value === undefined || value === null || value === false) return;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(node.dataset, value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden" || name === "open")
        node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
}

function fill(node, properties, children) {
    // children first: a select takes a value that it has, and dir="auto" is found out once
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
    for (const [name, value] of Object.entries(properties ?? {})) set(node, name, value);
    return node;
}

/** An element: h("button", {class: "quiet", onclick: f, "aria-label": "Stop"}, "text", otherNode). */
export function h(tag, properties, ...children) {
    return fill(document.createElement(tag), properties, children);
}

/** The same of a drawing. */
export function svg(tag, properties, ...children) {
    return fill(document.createElementNS(SVG, tag), properties, children);
}

/** The element of the page with that id. */
export function byId(id) {
    return document.getElementById(id);
}

// Lines of 1.5 on a field of 20, as if drawn with one pen.
const ICONS = {
    plus: "M10 4v12M4 10h12",
    menu: "M3 5h14M3 10h14M3 15h9",
    close: "M5 5l10 10M15 5L5 15",
    send: "M10 16V4M5 9l5-5 5 5",
    stop: "M6 6h8v8H6z",
    copy: "M7 7h9v9H7zM4 13V4h9",
    edit: "M4 16l1-4 8-8 3 3-8 8zM12 5l3 3",
    again: "M16 10a6 6 0 1 1-2-4.5M16 3v4h-4",
    onward: "M4 5l6 5-6 5zM11 5l6 5-6 5z",
    left: "M12 5l-5 5 5 5",
    right: "M8 5l5 5-5 5",
    down: "M5 8l5 5 5-5",
    clip: "M14 9l-5 5a3 3 0 0 1-4-4l6-6a2 2 0 0 1 3 3l-6 6",
    sun: "M10 7a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM10 2v2M10 16v2M2 10h2M16 10h2M4.5 4.5l1.4 1.4M14.1 14.1l1.4 1.4M4.5 15.5l1.4-1.4M14.1 5.9l1.4-1.4",
    moon: "M15 12.5A6 6 0 0 1 7.5 5a6 6 0 1 0 7.5 7.5z",
    auto: "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14",
    sliders: "M3 6h7M14 6h3M12 4v4M3 14h3M10 14h7M8 12v4",
    bin: "M4 6h12M8 6V4h4v2M6 6l1 10h6l1-10",
    save: "M10 3v9M6 8l4 4 4-4M4 16h12",
    more: "M4.5 10h.01M10 10h.01M15.5 10h.01",
    search: "M9 4a5 5 0 1 0 0 10A5 5 0 0 0 9 4zM13 13l4 4",
    chart: "M3 6h5M5 10h9M9 14h8",
    tokens: "M3 6h3M8 6h5M15 6h2M3 10h6M11 10h6M3 14h2M7 14h6",
    pause: "M7 5v10M13 5v10",
    play: "M6 4l10 6-10 6z",
    page: "M6 3h6l3 3v11H6zM12 3v3h3",
    pin: "M7 3h6l-1 5 3 3H5l3-3zM10 11v6",
    cpu: "M6 6h8v8H6zM8 3v3M12 3v3M8 14v3M12 14v3M3 8h3M3 12h3M14 8h3M14 12h3",
    check: "M4 11l4 4 8-10",
};

/** A drawing of that name, which screen readers pass over. */
export function icon(name) {
    return svg("svg", {viewBox: "0 0 20 20", class: "icon", "aria-hidden": "true"}, svg("path", {d: ICONS[name]}));
}

/** A button that shows an icon and says what it does. */
export function iconButton(name, label, onclick, properties) {
    return h(
        "button",
        {type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...properties},
        icon(name),
    );
}

/** Says something to who cannot see it. */
export function announce(text) {
    const region = byId("announcer");
    if (region) region.textContent = text;
}
