// How much of what the model can read the conversation takes, and what happens when that is full.

import {byId, h} from "../base/dom.js";
import {model, on, path} from "./session.js";

const NEARLY = 0.9;

function show() {
    const most = model()?.max_model_len;
    const stats = path().findLast((message) => message.stats)?.stats;
    const used = Number(stats?.prompt) + Number(stats?.tokens);
    byId("gauge").hidden = !(most > 0 && used >= 0);
    if (byId("gauge").hidden) return;
    const full = used > NEARLY * most;
    const [cached, left] = [Number(stats.cached) || 0, Math.max(0, most - used)].map((n) => n.toLocaleString());
    byId("gauge").replaceChildren(
        h("meter", {min: 0, max: most, high: NEARLY * most, "aria-label": "Room in the model's context", value: used}),
        h("span", {}, `${used.toLocaleString()} of ${most.toLocaleString()} tokens in use (${cached} cached), ${left} left`),
        full
            ? h(
                  "span",
                  {class: "bad"},
                  "When it is full the server refuses what is longer: begin a new conversation, or edit an earlier question.",
              )
            : "",
    );
}

export function startGauge() {
    for (const name of ["conversation", "models", "settings"]) on(name, show);
}
