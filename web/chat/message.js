// One message as it is shown: a question, an answer with its parts, or results of tools.

import {byId, h, icon, iconButton} from "../base/dom.js";
import {copyText} from "../text/code.js";
import {MarkdownView} from "../text/markdown.js";
import {gallery} from "./media.js";
import {again, canGoOn, edit, giveResults, goOn, session, switchTo, tell} from "./session.js";
import {children, siblings, textOf} from "./tree.js";
import {tokenView} from "./tokens.js";
import {explained} from "./words.js";

function seconds(value) {
    return value < 10
        ? `${value.toFixed(1)} s`
        : value < 60
          ? `${Math.round(value)} s`
          : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}

function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text; // not whole yet, or not JSON at all
    }
}

/* Parts of an answer. Each has its element and shows what its item has come to. */

class ReasoningPart {
    constructor() {
        this.summary = h("summary", {});
        this.body = h("div", {class: "prose"});
        this.element = h("details", {class: "reasoning"}, this.summary, this.body);
        this.markdown = new MarkdownView(this.body);
    }

    show(item) {
        const long = item.seconds ?? (Date.now() - item.started) / 1000;
        this.summary.textContent =
            item.seconds === undefined
                ? "Thinking …"
                : long < 0.1
                  ? "Thought for a moment"
                  : `Thought for ${seconds(long)}`;
        this.markdown.show(item.text);
    }
}

class TextPart {
    constructor() {
        this.body = h("div", {class: "prose"});
        this.element = h("div", {class: "said"}, this.body);
        this.markdown = new MarkdownView(this.body);
        this.coloured = false;
    }

    show(item) {
        if (!this.coloured) this.markdown.show(item.text);
    }

    /** Between the text and its tokens. */
    colour(item, on) {
        this.coloured = on;
        this.element.replaceChildren(on ? tokenView(item.tokens) : this.body);
        this.show(item);
    }
}

class CallPart {
    constructor() {
        this.name = h("code", {});
        this.body = h("pre", {tabindex: "0", role: "region", "aria-label": "arguments"});
        this.element = h(
            "section",
            {class: "call", "aria-label": "Call of a tool"},
            h("h2", {}, icon("play"), this.name),
            this.body,
        );
    }

    show(item) {
        this.name.textContent = item.name;
        this.body.textContent = pretty(item.arguments);
    }
}

const PARTS = {reasoning: ReasoningPart, text: TextPart, call: CallPart};

function statistics({stats, model}) {
    if (!stats) return null;
    const said = [
        ...(session.models.length > 1 && model ? [model] : []),
        `${stats.tokens} token${stats.tokens === 1 ? "" : "s"}`,
    ];
    if (stats.rate > 0 && Number.isFinite(stats.rate))
        said.push(`${stats.rate >= 10 ? Math.round(stats.rate) : stats.rate.toFixed(1)} tokens/s`);
    if (stats.first !== null)
        said.push(`first after ${stats.first < 1 ? `${Math.round(1000 * stats.first)} ms` : seconds(stats.first)}`);
    said.push(`${stats.cached} of ${stats.prompt} prompt tokens cached`);
    if (stats.guessed > 0) said.push(`${stats.taken} of ${stats.guessed} guesses taken`);
    return h(
        "p",
        {class: "stats"},
        said.flatMap((text, i) => [i > 0 ? h("span", {"aria-hidden": "true"}, " · ") : null, h("span", {}, text)]),
    );
}

function switches(message) {
    const all = siblings(session.messages, message);
    if (all.length < 2) return null;
    const at = all.findIndex((other) => other.id === message.id);
    const step = (name, label, by) => iconButton(name, label, () => switchTo(all[at + by]), {disabled: !all[at + by]});
    return h(
        "div",
        {class: "switches", role: "group", "aria-label": "Branches"},
        step("left", "The branch before", -1),
        h("span", {}, `${at + 1}/${all.length}`),
        step("right", "The next branch", 1),
    );
}

const ENDS = {cut: "It ended here because no more tokens were allowed.", stopped: "Stopped."};

/* Why an answer is no longer than it is; null where it has come to its end. */
function ending(message) {
    if (!message.alone) return ENDS[message.status] ?? null;
    const long = session.limits?.background_alone;
    return `It ended because nobody followed it${long ? ` for ${seconds(long).replace(" 0 s", "")}` : ""}.`;
}

const ACTS = {
    again: ["Ask again", (message) => again(message)],
    new: ["New conversation", () => byId("new").click()],
    key: ["Give a key", (message) => tell("key", () => again(message))],
    model: ["Choose another model", () => byId("model").focus()],
    settings: ["Open the settings", () => tell("show-setting", null)],
    edit: [
        "Edit the question",
        (message) => document.querySelector(`[data-id="${message.parent}"] button[aria-label^="Edit"]`)?.click(),
    ],
};

/* What went wrong, and buttons for what can be done about it. */
function fault(message) {
    if (!message.error) return null;
    const {text, details, acts} = explained(message.fault, message.error);
    return h(
        "div",
        {class: "fault"},
        h("p", {class: "bad", role: "alert"}, text),
        details && h("details", {}, h("summary", {}, "What the server says"), h("p", {class: "note"}, details)),
        h(
            "div",
            {class: "row"},
            acts.map((name) => h("button", {type: "button", onclick: () => ACTS[name][1](message)}, ACTS[name][0])),
        ),
    );
}

/** The fields for results, where an answer ended with calls that nobody has answered. */
function resultForm(message) {
    const calls = message.items.filter((item) => item.type === "call");
    if (calls.length === 0 || message.status !== "done" || children(session.messages, message.id).length > 0)
        return null;
    const fields = calls.map((item, i) =>
        h("textarea", {id: `result-${message.id}-${i}`, rows: 2, spellcheck: "false"}),
    );
    return h(
        "form",
        {
            class: "results",
            onsubmit: (event) => {
                event.preventDefault();
                giveResults(
                    message,
                    calls.map((item, i) => ({call: item.call, name: item.name, output: fields[i].value})),
                );
            },
        },
        calls.map((item, i) => [h("label", {for: fields[i].id}, `Result of ${item.name}`), fields[i]]),
        h(
            "div",
            {class: "row end"},
            h("button", {class: "primary"}, calls.length > 1 ? "Give the results" : "Give the result"),
        ),
    );
}

class AnswerView {
    constructor(message) {
        this.message = message;
        this.parts = [];
        this.colours = false;
        this.body = h("div", {class: "parts"});
        this.foot = h("footer", {});
        this.element = h(
            "article",
            {class: "message answer", "aria-label": "Answer", tabindex: "-1", dataset: {id: message.id}},
            this.body,
            this.foot,
        );
        this.update(message);
    }

    update(message) {
        this.message = message;
        this.element.setAttribute("aria-busy", String(message.status === "running"));
        this.element.classList.toggle("running", message.status === "running");
        for (const [i, item] of message.items.entries()) {
            if (!(this.parts[i] instanceof PARTS[item.type])) {
                for (const old of this.parts.splice(i)) old.element.remove();
                this.parts.push(new PARTS[item.type]());
                this.body.append(this.parts[i].element);
            }
            this.parts[i].show(item);
        }
        for (const old of this.parts.splice(message.items.length)) old.element.remove();
        this.showFoot();
    }

    /* All that the foot shows: it is made anew only where that has changed, so that a button stays under the pointer, keeps
       the focus, and what is being written stays. */
    footState() {
        const {message} = this;
        if (message.status === "running") return message.items.length > 0 ? "speaks" : "reads";
        const beside = siblings(session.messages, message).map((other) => other.id);
        const followed = children(session.messages, message.id).length > 0;
        return JSON.stringify([
            message.status,
            message.error,
            ending(message),
            message.stats,
            beside,
            followed,
            this.colours,
            session.models,
        ]);
    }

    showFoot() {
        const {message} = this;
        const state = this.footState();
        if (state === this.shown) return;
        this.shown = state;
        if (message.status === "running") {
            this.foot.replaceChildren(
                h("span", {class: "pulse", "aria-hidden": "true"}),
                message.items.length === 0 ? h("span", {class: "note"}, "reading …") : "",
            );
            return;
        }
        const coloured = message.items.some((item) => item.tokens?.length > 0);
        const copy = iconButton("copy", "Copy the answer", () => copyText(textOf(message), copy));
        this.foot.replaceChildren(
            ...[
                fault(message),
                ending(message) && h("p", {class: "note"}, ending(message)),
                resultForm(message),
                h(
                    "div",
                    {class: "row actions"},
                    switches(message),
                    copy,
                    iconButton("again", "Answer again", () => again(message)),
                    canGoOn(message) && iconButton("onward", "Go on with it", () => goOn(message)),
                    coloured &&
                        iconButton("tokens", "Colour tokens by probability", () => this.toggleColours(), {
                            "aria-pressed": String(this.colours),
                        }),
                ),
                statistics(message),
            ].filter(Boolean),
        );
    }

    toggleColours() {
        this.colours = !this.colours;
        for (const [i, item] of this.message.items.entries())
            if (item.type === "text" && item.tokens?.length > 0) this.parts[i].colour(item, this.colours);
        this.showFoot();
        this.foot.querySelector("[aria-pressed]")?.focus();
    }
}

class QuestionView {
    constructor(message) {
        this.element = h("article", {
            class: "message question",
            "aria-label": "Question",
            tabindex: "-1",
            dataset: {id: message.id},
        });
        this.update(message);
    }

    update(message) {
        const state = JSON.stringify(siblings(session.messages, message).map((other) => other.id));
        this.message = message;
        if (this.editing || state === this.shown) return;
        this.shown = state;
        this.element.replaceChildren(
            h(
                "div",
                {class: "bubble"},
                message.attachments?.length > 0 && gallery(message.attachments),
                message.text && h("p", {class: "asked", dir: "auto"}, message.text),
            ),
            h(
                "div",
                {class: "row actions"},
                switches(message) ?? [],
                iconButton("edit", "Edit the question", () => this.edit()),
            ),
        );
    }

    endEdit() {
        this.editing = false;
        this.shown = null;
        this.update(this.message);
    }

    edit() {
        const {message} = this;
        this.editing = true;
        const field = h("textarea", {
            id: `edit-${message.id}`,
            rows: Math.min(12, message.text.split("\n").length + 1),
            value: message.text,
        });
        const form = h(
            "form",
            {
                class: "editing",
                onsubmit: async (event) => {
                    event.preventDefault();
                    if (await edit(message, field.value.trim(), message.attachments)) this.endEdit();
                },
            },
            message.attachments?.length > 0 && gallery(message.attachments),
            h("label", {for: field.id, class: "unseen"}, "The question in other words"),
            field,
            h(
                "div",
                {class: "row end"},
                h("button", {type: "button", onclick: () => this.endEdit()}, "Cancel"),
                h("button", {class: "primary"}, "Ask"),
            ),
        );
        form.addEventListener("keydown", (event) => {
            if (event.key === "Escape") {
                event.stopPropagation();
                this.endEdit();
            } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
                event.preventDefault();
                form.requestSubmit();
            }
        });
        this.element.replaceChildren(form);
        field.focus();
    }
}

class ResultsView {
    constructor(message) {
        this.element = h(
            "article",
            {class: "message results", "aria-label": "Results of tools", dataset: {id: message.id}},
            message.results.map((result) =>
                h(
                    "section",
                    {class: "call"},
                    h("h2", {}, icon("check"), h("code", {}, result.name ?? "result")),
                    h("pre", {tabindex: "0", role: "region", "aria-label": "result"}, result.output),
                ),
            ),
        );
    }

    update() {}
}

const VIEWS = {assistant: AnswerView, user: QuestionView, tool: ResultsView};

/** The view of a message: {element, message, update(message)}. */
export function messageView(message) {
    return new VIEWS[message.role](message);
}
