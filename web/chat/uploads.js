// Pictures and videos are given to the server once, and referred to by its name for them after that. It keeps them for a
// while: one that it has lost is given again. A server that keeps none, or has no room for all of a question, gets them
// with each question.

import {call} from "../base/api.js";
import {dataUrl} from "./media.js";

const SMALL = 32 * 1024; // bytes; what is no larger is sent along

let takes = true;

async function upload(blob) {
    const response = await call("v1/uploads/pictures", {body: blob});
    return (await response.json()).url;
}

/** The address of an attachment for a request, which is kept in it as `given`. how: "known", by the name that it has;
    "anew", since the server has lost what it was given; "along", since it loses one when it is given another. */
export async function urlFor(attachment, how) {
    const {blob} = attachment;
    if (blob.size <= SMALL || !takes || how === "along") return dataUrl(blob);
    try {
        if (how === "anew" || !attachment.given) attachment.given = await upload(blob);
        return attachment.given;
    } catch (error) {
        if (![404, 405, 413].includes(error.status)) throw error;
        takes = error.status === 413; // this one is too large; or it keeps none at all
        return dataUrl(blob);
    }
}
