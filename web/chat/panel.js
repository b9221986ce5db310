// The settings of the conversation that is shown.

import {byId, h} from "../base/dom.js";
import {toggleDrawer} from "./drawers.js";
import {change, on, session, tell} from "./session.js";
import {forgetConsent} from "./mcp.js";
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
            type: "text", // one of numbers tells nothing of what it cannot read: it would pass for empty
            placeholder: "default",
            autocomplete: "off",
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

/* Settings under a name, for other conversations. */
const PRESETS = "motet.presets";

function presets() {
    try {
        return JSON.parse(localStorage.getItem(PRESETS) ?? "{}");
    } catch {
        return {};
    }
}

function keepPresets(all) {
    try {
        localStorage.setItem(PRESETS, JSON.stringify(all));
    } catch {
        tell("notice", "The browser keeps no presets here.");
    }
    showPresets();
}

function showPresets() {
    byId("preset").replaceChildren(
        h("option", {value: ""}, "Choose"),
        ...Object.keys(presets()).map((name) => h("option", {value: name}, name)),
    );
}

function presetRow() {
    const name = h("input", {id: "preset-name", maxlength: 60, placeholder: "Name"});
    const use = h("select", {id: "preset", onchange: () => presets()[use.value] && change({...presets()[use.value]})});
    const save = () => {
        const {model: _, ...settings} = session.conversation.settings;
        if (name.value.trim()) keepPresets({...presets(), [name.value.trim()]: settings});
        name.value = "";
    };
    const remove = () => keepPresets(Object.fromEntries(Object.entries(presets()).filter(([key]) => key !== use.value)));
    return h(
        "details",
        {},
        h("summary", {}, "Presets"),
        h("label", {for: "preset"}, "Use these settings"),
        h("div", {class: "row"}, use, h("button", {type: "button", onclick: remove}, "Delete")),
        h("label", {for: "preset-name"}, "Save the settings of this conversation as"),
        h("div", {class: "row"}, name, h("button", {type: "button", onclick: save}, "Save")),
    );
}

/* What was said of tools can be taken back. */
function consentRow() {
    const forget = () => {
        forgetConsent();
        tell("notice", "You will be asked again before each tool is called.");
    };
    return h("button", {type: "button", class: "small", onclick: forget}, "Ask again before each tool");
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
                    name === "Sampling" ? null : consentRow(),
                ),
            ),
        ),
        presetRow(),
    ];
}

/* Models by name; what a conversation asks for stays, whether the server still has it or not. */
function showModels() {
    const {settings} = session.conversation;
    const names =
        settings.model && !session.models.includes(settings.model)
            ? [settings.model, ...session.models]
            : session.models;
    const shown = [...byId("model").options].map((option) => option.value);
    if (names.join("\n") !== shown.join("\n"))
        byId("model").replaceChildren(...names.map((name) => h("option", {value: name}, name)));
    byId("model").value = settings.model || session.models[0] || "";
    byId("model").disabled = names.length === 0;
}

export function startPanel() {
    byId("settings-fields").append(...groups());
    showPresets();
    byId("model").addEventListener("change", () => change({model: byId("model").value}));
    on("conversation", () => {
        show();
        showModels();
    });
    on("settings", show);
    on("show-setting", (key) => {
        if (byId("settings").hidden) toggleDrawer("settings");
        const input = inputs.get(key ?? FIELDS[0].key).input;
        for (const group of byId("settings-fields").querySelectorAll("details"))
            if (group.contains(input) || key === null) group.open = true;
        input.focus();
    });
    on("models", showModels);
}
