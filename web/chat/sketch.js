// A small sheet to draw a picture on, for a question about it.

import {h, iconButton} from "../base/dom.js";

const SIDE = 448;
const INKS = ["#1f1c19", "#d02c1c", "#1f5fc8", "#2c8a3a", "#e8b400", "#8a3fb0"];
const NAMES = ["black", "red", "blue", "green", "yellow", "purple"];

function clear(context) {
    context.fillStyle = "white";
    context.fillRect(0, 0, SIDE, SIDE);
}

/** Opens the sheet; done is called with a PNG file when something was drawn and is to be used. */
export function openSketch(done) {
    const canvas = h("canvas", {
        width: SIDE,
        height: SIDE,
        class: "sheet",
        role: "img",
        "aria-label": "Sheet to draw on with a pointer",
    });
    const context = canvas.getContext("2d");
    let ink = INKS[1],
        width = 14;
    clear(context);

    const at = (event) => {
        const box = canvas.getBoundingClientRect();
        return [((event.clientX - box.left) * SIDE) / box.width, ((event.clientY - box.top) * SIDE) / box.height];
    };
    canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        Object.assign(context, {strokeStyle: ink, lineWidth: width, lineCap: "round", lineJoin: "round"});
        context.beginPath();
        context.moveTo(...at(event));
        context.lineTo(...at(event));
        context.stroke();
    });
    canvas.addEventListener("pointermove", (event) => {
        if (event.buttons === 0) return;
        context.lineTo(...at(event));
        context.stroke();
    });

    const inks = INKS.map((colour, i) => {
        const button = h("input", {
            type: "radio",
            name: "ink",
            checked: colour === ink,
            "aria-label": NAMES[i],
            onchange: () => {
                ink = colour;
            },
        });
        button.style.accentColor = colour;
        return h("label", {class: "check ink"}, button, h("span", {}, NAMES[i]));
    });
    const pen = h("input", {
        type: "range",
        id: "pen",
        min: 2,
        max: 60,
        value: width,
        oninput: () => {
            width = Number(pen.value);
        },
    });
    const dialog = h(
        "dialog",
        {class: "card sketching", "aria-labelledby": "sketch-title"},
        h(
            "div",
            {class: "row"},
            h("h2", {id: "sketch-title"}, "Draw a picture"),
            iconButton("close", "Close", () => dialog.close()),
        ),
        canvas,
        h("fieldset", {class: "inks"}, h("legend", {class: "unseen"}, "Colour"), inks),
        h("label", {for: "pen"}, "Width of the pen"),
        pen,
        h(
            "div",
            {class: "row end"},
            h("button", {type: "button", onclick: () => clear(context)}, "Clear"),
            h(
                "button",
                {
                    type: "button",
                    class: "primary",
                    onclick: () =>
                        canvas.toBlob((blob) => {
                            done(new File([blob], "drawing.png", {type: "image/png"}));
                            dialog.close();
                        }),
                },
                "Use it",
            ),
        ),
    );
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
}
