// The server's list of models, and keeping up with it: it is read again when somebody comes back to the page, goes to
// where models are chosen, or has had an answer, and when a server that was lost is there again.

import {callJson, whenConnected} from "../base/api.js";
import {byId} from "../base/dom.js";
import {on, session, tell} from "./session.js";

/* Encoders cannot be talked to. */
function talks({capabilities = []}) {
    return !["embedding", "rerank", "classify"].some((what) => capabilities.includes(what));
}

/** Reads the list; who shows it is told where it has changed. */
export async function readModels() {
    const {data} = await callJson("v1/models");
    const all = data.filter(talks);
    if (JSON.stringify(all) === JSON.stringify(session.all)) return;
    session.all = all;
    session.models = all.map((model) => model.id);
    tell("models");
}

/** From now on. What cannot be read now leaves the list as it was. */
export function followModels() {
    const read = () => {
        if (!document.hidden && !document.body.classList.contains("lost")) readModels().catch(() => {});
    };
    document.addEventListener("visibilitychange", read);
    byId("model").addEventListener("focus", read);
    byId("model").addEventListener("pointerenter", read);
    whenConnected((there) => there && read());
    on("finished", read);
}
