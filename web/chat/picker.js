// The models of the server: which are loaded, what they can do, and loading and unloading them.

import {callJson} from "../base/api.js";
import {byId, h} from "../base/dom.js";
import {sized} from "./media.js";
import {readModels} from "./models.js";
import {change, model, session} from "./session.js";
import {explained, faultOf} from "./words.js";

const OFTEN = 1000; // milliseconds between two looks at the models while they are shown
const STATES = {unloaded: "on disk", loading: "being loaded", ready: "loaded", leaving: "being unloaded"};
const ABILITIES = {vision: "sees", thinking: "thinks", tools: "calls tools"};

function about(each) {
    const can = (each.capabilities ?? []).map((name) => ABILITIES[name]).filter(Boolean);
    return [
        each.too_large ? "too large for this server" : each.error ? "cannot be loaded" : (STATES[each.state] ?? "here"),
        each.parent && `adapter of ${each.parent}`,
        each.memory > 0 ? sized(each.memory) : each.memory_needed > 0 && `needs ${sized(each.memory_needed)}`,
        each.max_model_len && `${each.max_model_len.toLocaleString()} tokens`,
        ...can,
    ]
        .filter(Boolean)
        .join(" · ");
}

/* All that a row shows. */
function stateOf(each) {
    const used = each.id === model()?.id;
    return JSON.stringify([each.id, about(each), each.error, each.state, used, session.all.length > 1]);
}

export async function openPicker() {
    const list = h("ul", {class: "models"});
    const note = h("p", {class: "note", role: "status"});
    const act = async (label, path, body) => {
        note.textContent = `${label} …`;
        try {
            await callJson(path, {body});
            note.textContent = "";
        } catch (error) {
            const {text, details} = explained(faultOf(error), error.message);
            note.textContent = [text, details].filter(Boolean).join(" ");
        }
        await show();
    };
    const row = (each) =>
        h(
            "li",
            {dataset: {state: stateOf(each)}},
            h("b", {dir: "auto"}, each.id),
            h("p", {class: "note"}, about(each)),
            each.error && h("p", {class: "bad"}, each.error),
            h(
                "div",
                {class: "row"},
                h(
                    "button",
                    {
                        type: "button",
                        "aria-pressed": String(each.id === model()?.id),
                        onclick: () => {
                            change({model: each.id});
                            byId("model").value = each.id;
                            dialog.close();
                        },
                    },
                    each.id === model()?.id ? "In use" : "Use",
                ),
                each.state === "unloaded" &&
                    !each.too_large &&
                    h(
                        "button",
                        // a model is loaded when it is asked for something
                        {type: "button", onclick: () => act(`Loading ${each.id}`, "tokenize", {model: each.id, prompt: "a"})},
                        "Load",
                    ),
                each.state === "ready" &&
                    session.all.length > 1 &&
                    h(
                        "button",
                        {type: "button", onclick: () => act(`Unloading ${each.id}`, "v1/models/unload", {model: each.id})},
                        "Unload",
                    ),
            ),
        );
    async function show() {
        await readModels().catch(() => {});
        // rows of models that are as they were stay, and so do their buttons, under a pointer or with the focus
        const before = new Map([...list.children].map((node) => [node.dataset.state, node]));
        const rows = session.all.map((each) => before.get(stateOf(each)) ?? row(each));
        for (const node of list.children) if (!rows.includes(node)) node.remove();
        rows.forEach((node, i) => list.children[i] !== node && list.insertBefore(node, list.children[i] ?? null));
    }
    const dialog = h(
        "dialog",
        {class: "card", "aria-labelledby": "picker-title"},
        h("h2", {id: "picker-title"}, "Models of this server"),
        list,
        note,
        h("div", {class: "row end"}, h("button", {type: "button", onclick: () => dialog.close()}, "Close")),
    );
    const timer = setInterval(() => document.hidden || show(), OFTEN);
    dialog.addEventListener("close", () => {
        clearInterval(timer);
        dialog.remove();
    });
    document.body.append(dialog);
    await show();
    dialog.showModal();
}
