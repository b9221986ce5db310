// What an answer is asked for with: the fields, their names and bounds, once. A conversation has its own settings; a
// new one begins with those that were chosen last.

const NAME = "motet.settings";

/** {key, label, kind, hint, ...}; of numbers: least, most, step, and the field of a request. Empty: the server
    decides. */
export const FIELDS = [
    {key: "system", label: "System prompt", kind: "text", rows: 4, hint: "What the model is told about its task"},
    {
        key: "thinking",
        label: "Thinking",
        kind: "choice",
        choices: [
            ["auto", "As the model does"],
            ["on", "On"],
            ["off", "Off"],
        ],
    },
    {
        key: "temperature",
        label: "Temperature",
        kind: "number",
        field: "temperature",
        least: 0,
        most: 2,
        step: 0.1,
        group: "Sampling",
    },
    {key: "topP", label: "Top p", kind: "number", field: "top_p", least: 0, most: 1, step: 0.05, group: "Sampling"},
    {key: "topK", label: "Top k", kind: "number", field: "top_k", least: 0, most: 100000, step: 1, group: "Sampling"},
    {key: "minP", label: "Min p", kind: "number", field: "min_p", least: 0, most: 1, step: 0.01, group: "Sampling"},
    {
        key: "repetition",
        label: "Repetition penalty",
        kind: "number",
        field: "repetition_penalty",
        least: 0.01,
        most: 100,
        step: 0.05,
        group: "Sampling",
    },
    {
        key: "presence",
        label: "Presence penalty",
        kind: "number",
        field: "presence_penalty",
        least: -2,
        most: 2,
        step: 0.1,
        group: "Sampling",
    },
    {
        key: "frequency",
        label: "Frequency penalty",
        kind: "number",
        field: "frequency_penalty",
        least: -2,
        most: 2,
        step: 0.1,
        group: "Sampling",
    },
    {
        key: "seed",
        label: "Seed",
        kind: "number",
        field: "seed",
        least: 0,
        most: Number.MAX_SAFE_INTEGER,
        step: 1,
        group: "Sampling",
    },
    {
        key: "maxTokens",
        label: "Most tokens",
        kind: "number",
        field: "max_output_tokens",
        least: 1,
        most: 10000000,
        step: 1,
        group: "Sampling",
    },
    {
        key: "stop",
        label: "Stop at",
        kind: "text",
        rows: 2,
        hint: "Texts before which an answer ends, one a line",
        group: "Sampling",
    },
    {
        key: "schema",
        label: "JSON schema",
        kind: "json",
        rows: 5,
        hint: "The answer is JSON that follows it",
        group: "Shape and tools",
    },
    {
        key: "tools",
        label: "Tools",
        kind: "json",
        rows: 5,
        group: "Shape and tools",
        hint: 'A list of functions: [{"name", "description", "parameters"}]. You give their results.',
    },
    {
        key: "servers",
        label: "MCP servers",
        kind: "text",
        rows: 2,
        group: "Shape and tools",
        hint: "Addresses of tools over HTTP, one a line. You are asked before one is called.",
    },
    {key: "probabilities", label: "Ask for the probabilities of tokens", kind: "check", group: "Shape and tools"},
];

export function defaults() {
    const empty = Object.fromEntries(
        FIELDS.map((field) => [
            field.key,
            field.kind === "check" ? false : field.kind === "choice" ? field.choices[0][0] : "",
        ]),
    );
    try {
        return {...empty, model: "", ...JSON.parse(localStorage.getItem(NAME) ?? "{}")};
    } catch {
        return {...empty, model: ""};
    }
}

/** The next conversation begins with these. */
export function remember(settings) {
    try {
        localStorage.setItem(NAME, JSON.stringify(settings));
    } catch {
        // then it begins with none
    }
}

/** What is wrong with a field's text, as a sentence; null where nothing is. */
export function fault(field, text) {
    if (text === "" || text === undefined) return null;
    if (field.kind === "number") {
        const number = Number(text);
        if (!Number.isFinite(number) || number < field.least || number > field.most)
            return `A number from ${field.least} to ${field.most}`;
        return field.step === 1 && !Number.isInteger(number) ? "A whole number" : null;
    }
    if (field.key === "servers") {
        const wrong = text.split(/\s+/).find((each) => each && !(/^https?:/i.test(each) && URL.canParse(each)));
        return wrong ? `“${wrong}” is no address of a server: write https://host/mcp` : null;
    }
    if (field.kind === "json") {
        try {
            const value = JSON.parse(text);
            if (field.key === "tools") return Array.isArray(value) ? null : "A list is wanted: [ ... ]";
            return value !== null && typeof value === "object" && !Array.isArray(value)
                ? null
                : "An object is wanted: { ... }";
        } catch (error) {
            return `Not JSON: ${error.message}`;
        }
    }
    return null;
}

/** The settings that have a fault: [{field, wrong}]. */
export function faults(settings) {
    return FIELDS.map((field) => ({field, wrong: fault(field, settings[field.key])})).filter(({wrong}) => wrong !== null);
}

/** What is in force that makes answers other than usual: labels. */
export function inForce(settings) {
    return FIELDS.filter(({key}) => ["system", "schema", "tools", "servers", "seed"].includes(key) && settings[key]).map(
        ({label}) => label,
    );
}

function tool(each) {
    const inner = each.function ?? each; // as chat completions have it, too
    return {
        type: "function",
        name: inner.name,
        description: inner.description,
        parameters: inner.parameters ?? inner.input_schema,
    };
}

/** The part of a request's body that the settings make, none of which has a fault. */
export function body(settings) {
    const out = {};
    for (const field of FIELDS)
        if (
            field.field &&
            settings[field.key] !== "" &&
            settings[field.key] !== undefined
        )
            out[field.field] = Number(settings[field.key]);
    const parsed = (key) => (settings[key] ? JSON.parse(settings[key]) : null);
    const schema = parsed("schema"),
        tools = parsed("tools");
    const stop = (settings.stop ?? "").split("\n").filter(Boolean);
    if (settings.model) out.model = settings.model;
    if (settings.system) out.instructions = settings.system;
    if (settings.thinking === "on" || settings.thinking === "off") out.enable_thinking = settings.thinking === "on";
    if (stop.length > 0) out.stop = stop;
    if (schema) out.text = {format: {type: "json_schema", name: "answer", schema, strict: true}};
    if (tools?.length > 0) out.tools = tools.map(tool);
    if (settings.probabilities) {
        out.include = ["message.output_text.logprobs"];
        out.top_logprobs = 5;
    }
    return out;
}
