// Pictures and videos that go with a question: from files, the clipboard, or a drop.

import {h, icon} from "../base/dom.js";

const LEAST_PIXELS = 2e6; // a picture is not made smaller than this, whatever the model sees of it
const USUAL_PIXELS = 4e6; // where the server does not say how many the model sees
const TEXTS = /\.(?:txt|md|markdown|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg|conf|xml|html?|css|js|mjs|ts|tsx|jsx|py|c|h|cc|cpp|hpp|rs|go|java|kt|swift|rb|php|pl|lua|sh|bash|sql|r|jl|hs|ml|tex|log|diff|patch|cmake|make|mk|srt|vtt|svgz?)$/i;
const MOST_TEXT = 4e6; // bytes of a file of text
const PROSE = /^(?:text\/|application\/(?:json|xml|javascript|x-sh|x-yaml|toml|sql))/;

const PICTURES = ["image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"];

const urls = new WeakMap(); // of blobs that are shown

function urlOf(blob) {
    if (!urls.has(blob)) urls.set(blob, URL.createObjectURL(blob));
    return urls.get(blob);
}

/** A number of bytes in words. */
export function sized(bytes) {
    if (bytes < 1e6) return `${Math.max(1, Math.round(bytes / 1e3))} kB`;
    return bytes < 1e9 ? `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/* The most bytes of a picture or a video that the server takes, which keeps it or else reads it within a request, where
   it is a third longer. */
function most(limits) {
    if (!limits) return Infinity;
    const {picture_bytes: picture, upload_bytes: kept, body_bytes: body} = limits;
    return Math.min(picture, Math.max(Math.min(kept, body), 0.74 * body - 4096));
}

/* A picture that the browser can draw: SVG only as an element. */
async function drawable(file) {
    if (!file.type.startsWith("image/svg")) return createImageBitmap(file);
    const image = new Image();
    image.src = urlOf(file);
    await image.decode();
    if (!image.naturalWidth) throw new Error("no size");
    return image;
}

/* Drawn with no more pixels than so many. Photographs stay JPEG, all else is PNG where that is not far larger. */
async function drawn(file, pixels) {
    const picture = await drawable(file);
    const [width, height] = [picture.naturalWidth ?? picture.width, picture.naturalHeight ?? picture.height];
    const scale = Math.min(1, Math.sqrt(pixels / (width * height)));
    const canvas = h("canvas", {width: Math.max(1, Math.round(width * scale)), height: Math.max(1, Math.round(height * scale))});
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const made = (type) => new Promise((resolve) => canvas.toBlob(resolve, type, 0.92));
    if (file.type === "image/jpeg") return made("image/jpeg");
    const blob = await made("image/png");
    return blob.size > 4e6 ? made("image/jpeg") : blob;
}

/* As the server can read it, and no larger than the model can see it. */
async function fitted(file, pixels) {
    if (!PICTURES.includes(file.type)) return drawn(file, pixels);
    const {width, height} = await createImageBitmap(file).then((found) => {
        const size = {width: found.width, height: found.height};
        found.close();
        return size;
    });
    return width * height > 1.1 * pixels ? drawn(file, pixels) : file;
}

export function dataUrl(blob) {
    return new Promise((resolve, reject) => {
        const reader = new FileReader();
        reader.onload = () => resolve(reader.result);
        reader.onerror = () => reject(reader.error);
        reader.readAsDataURL(blob);
    });
}

function isPdf(file) {
    return file.type === "application/pdf" || (file.type === "" && /\.pdf$/i.test(file.name ?? ""));
}

function isText(file) {
    return !file.type.startsWith("image/") && (PROSE.test(file.type) || TEXTS.test(file.name ?? ""));
}

/** An attachment {kind, name, blob} of a file; throws a sentence where it is none. limits: what the server takes, with
    `pixels` of a picture that the model sees; null where that is not known. */
export async function attachment(file, limits) {
    const name = (file.name || "picture").slice(0, 100);
    const fits = (what, {size}) => {
        if (size > most(limits)) throw new Error(`${name}: the server takes ${what} of up to ${sized(most(limits))}`);
    };
    if (file.type.startsWith("video/")) {
        fits("videos", file);
        return {kind: "video", name, blob: file};
    }
    if (file.type.startsWith("image/")) {
        const pixels = Math.max(limits?.pixels ?? USUAL_PIXELS, LEAST_PIXELS);
        const blob = await fitted(file, pixels).catch(() => null);
        if (!blob) throw new Error(`${name}: this picture cannot be read`);
        fits("pictures", blob);
        return {kind: "image", name, blob};
    }
    if (isPdf(file)) {
        // the server reads it, from within the request
        const room = 0.74 * (limits?.body_bytes ?? Infinity) - 4096;
        if (file.size > room) throw new Error(`${name}: the server takes documents of up to ${sized(room)}`);
        return {kind: "file", name, blob: new Blob([file], {type: "application/pdf"})};
    }
    if (isText(file)) {
        if (file.size > MOST_TEXT) throw new Error(`${name}: a file of text may have 4 MB`);
        const text = await file.text();
        if (text.includes("\0")) throw new Error(`${name}: this is no text`);
        return {kind: "text", name, blob: new Blob([text], {type: "text/plain"})};
    }
    throw new Error(`${name}: only pictures, videos, PDF and files of text can be read`);
}

/** The files in what was pasted or dropped. */
export function filesOf(transfer) {
    return [...(transfer?.files ?? [])];
}

function preview(each) {
    if (each.kind === "text" || each.kind === "file")
        return h(
            "span",
            {class: "file"},
            icon("page"),
            h("b", {dir: "auto"}, each.name),
            h("span", {class: "note"}, each.tokens ? `${each.tokens.toLocaleString()} tokens` : `${each.blob.size.toLocaleString()} bytes`),
        );
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
        {class: "gallery", "aria-label": "Attached files"},
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
