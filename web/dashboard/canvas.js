// What all drawings need: a canvas that is as sharp as the screen, and colours of the theme.

import {colour} from "../base/theme.js";

const NAMES = {paper: "--paper", raised: "--raised", ink: "--ink", soft: "--soft", line: "--line", edge: "--edge",
               rubric: "--rubric", wash: "--wash", bad: "--bad", picture: "--voice-5", prompt: "--voice-2",
               cached: "--voice-4", taken: "--voice-3", quiet: "--voice-6"};

/** Pixels at the left of the score and of the strip above it, which have one scale where they show one time. */
export const MARGIN = 12;

export const ink = {};
export const type = {serif: "", sans: ""};

/** Looks the colours up, at the start and when the theme has changed. */
export function mixInks() {
    for (const [name, property] of Object.entries(NAMES))
        ink[name] = colour(property);
    const style = getComputedStyle(document.documentElement);
    type.serif = style.getPropertyValue("--serif");
    type.sans = style.getPropertyValue("--sans");
}

/** The context of a canvas that fills its box, cleared, in units of CSS pixels; null where it has no size. */
export function begin(canvas, height) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    if (width === 0)
        return null;
    const wanted = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wanted[0] || canvas.height !== wanted[1]) {
        [canvas.width, canvas.height] = wanted;
        canvas.style.height = `${height}px`;
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    return c;
}
