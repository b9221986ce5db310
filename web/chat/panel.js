// The settings of the conversation that is shown.

import {byId, h} from "../base/dom.js";
import {change, on, session} from "./session.js";
import {fault, FIELDS} from "./settings.js";

const inputs = new Map(); // key: {input, note}

function control(field) {
    const id = `set-${field.key}`;
    const common = {id, "aria-describedby": `${id}-note`};
    if (field.kind === "choice")
        return h(
            "select",
            common,
            field.choices.map(([value, label]) => h("option", {value}, label)),
        );
    if (field.kind === "check") return h("input", {...common, type: "checkbox"});
    if (field.kind === "number")
        return h("input", {
            ...common,
            type: "number",
            min: field.least,
            max: field.most,
            step: field.step,
            placeholder: "default",
            inputmode: "decimal",
        });
    return h("textarea", {
        ...common,
        rows: field.rows,
        spellcheck: field.kind === "json" ? "false" : null,
        class: field.kind === "json" ? "mono" : null,
    });
}

function row(field) {
    const input = control(field);
    const note = h("p", {class: "note", id: `set-${field.key}-note`}, field.hint ?? "");
    inputs.set(field.key, {input, note});
    input.addEventListener("input", () => {
        check(field);
        change({[field.key]: field.kind === "check" ? input.checked : input.value});
    });
    return field.kind === "check"
        ? h("div", {}, h("label", {class: "check"}, input, field.label), note)
        : h("div", {}, h("label", {for: input.id}, field.label), input, note);
}

function check(field) {
    const {input, note} = inputs.get(field.key);
    const wrong = fault(field, input.value);
    note.textContent = wrong ?? field.hint ?? "";
    note.classList.toggle("bad", wrong !== null);
    input.setAttribute("aria-invalid", String(wrong !== null));
}

function show() {
    const {settings} = session.conversation;
    for (const field of FIELDS) {
        const {input} = inputs.get(field.key);
        if (field.kind === "check") input.checked = settings[field.key] === true;
        else if (input.value !== String(settings[field.key] ?? "")) input.value = settings[field.key] ?? "";
        check(field);
    }
}

function groups() {
    const plain = FIELDS.filter((field) => !field.group).map(row);
    const names = [...new Set(FIELDS.map((field) => field.group).filter(Boolean))];
    return [
        ...plain,
        ...names.map((name) =>
            h(
                "details",
                {},
                h("summary", {}, name),
                h(
                    "div",
                    {class: name === "Sampling" ? "grid" : null},
                    FIELDS.filter((field) => field.group === name).map(row),
                ),
            ),
        ),
    ];
}

/* Models by name; what a conversation asks for stays, whether the server still has it or not. */
function showModels() {
    const {settings} = session.conversation;
    const names =
        settings.model && !session.models.includes(settings.model)
            ? [settings.model, ...session.models]
            : session.models;
    byId("model").replaceChildren(...names.map((name) => h("option", {value: name}, name)));
    byId("model").value = settings.model || session.models[0] || "";
    byId("model").disabled = names.length === 0;
}

export function startPanel() {
    byId("settings-fields").append(...groups());
    byId("model").addEventListener("change", () => change({model: byId("model").value}));
    on("conversation", () => {
        show();
        showModels();
    });
    on("settings", show);
    on("models", showModels);
}
