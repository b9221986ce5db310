// Pictures and videos that go with a question: from files, the clipboard, or a drop.

import {h, icon} from "../base/dom.js";

const MOST_BYTES = 40 * 1024 * 1024; // of all in a question: a body has 64 MiB, and base64 takes a third more
const PICTURES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];

const urls = new WeakMap(); // of blobs that are shown

function urlOf(blob) {
    if (!urls.has(blob)) urls.set(blob, URL.createObjectURL(blob));
    return urls.get(blob);
}

/* What the server cannot read, but the browser can (SVG, AVIF, HEIC), is drawn as a PNG first. */
async function redrawn(file) {
    const bitmap = await createImageBitmap(file);
    const canvas = h("canvas", {width: bitmap.width, height: bitmap.height});
    const context = canvas.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(bitmap, 0, 0);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

export function dataUrl(blob) {
    return new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result);
        reader.onerror = () => reject(reader.error);
        reader.readAsDataURL(blob);
    });
}

/** An attachment {kind, name, blob} of a file; throws a sentence where it is none. */
export async function attachment(file, before = []) {
    const name = (file.name || "picture").slice(0, 100);
    const bytes = before.reduce((sum, each) => sum + each.blob.size, file.size);
    if (bytes > MOST_BYTES) throw new Error(`${name}: a question may bring 40 MB of pictures and videos`);
    if (file.type.startsWith("video/")) return {kind: "video", name, blob: file};
    if (PICTURES.includes(file.type)) return {kind: "image", name, blob: file};
    if (file.type.startsWith("image/")) {
        const blob = await redrawn(file).catch(() => null);
        if (blob) return {kind: "image", name, blob};
    }
    throw new Error(`${name}: this is neither a picture nor a video that can be read`);
}

/** The files in what was pasted or dropped. */
export function filesOf(transfer) {
    return [...(transfer?.files ?? [])].filter((file) => /^(?:image|video)\//.test(file.type));
}

function preview(each) {
    if (each.kind === "video")
        return h("video", {
            src: urlOf(each.blob),
            muted: true,
            controls: true,
            preload: "metadata",
            "aria-label": each.name,
        });
    return h("img", {src: urlOf(each.blob), alt: each.name, loading: "lazy"});
}

/** Attachments as small pictures; remove: called with one of them, where they may be taken away. */
export function gallery(attachments, remove) {
    return h(
        "ul",
        {class: "gallery", "aria-label": "Pictures and videos"},
        attachments.map((each) =>
            h(
                "li",
                {},
                preview(each),
                remove &&
                    h(
                        "button",
                        {
                            type: "button",
                            class: "icon-button",
                            "aria-label": `Remove ${each.name}`,
                            onclick: () => remove(each),
                        },
                        icon("close"),
                    ),
            ),
        ),
    );
}
