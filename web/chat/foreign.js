// Exports of other programs (ChatGPT, Open WebUI, llama.cpp's page), as conversations of our own export. Their texts and
// branches come along; exchange.js takes what is made here as it takes any file: nothing in it is trusted.

const list = (value) => (Array.isArray(value) ? value : []);
const LAST = 8.64e15; // no date is later; to much larger numbers one cannot be added
const ms = (seconds) => Math.min((seconds > 1e11 ? Number(seconds) : Math.round(1000 * Number(seconds))) || 0, LAST);
const plain = (content) =>
    typeof content === "string"
        ? content
        : list(content)
              .map((part) => (typeof part === "string" ? part : (part?.text ?? "")))
              .join("\n")
              .trim();

function message(id, parent, role, created, text, reasoning) {
    const base = {id, parent, created};
    if (role !== "assistant") return {...base, role: "user", text};
    const thought = reasoning ? [{type: "reasoning", text: reasoning, seconds: 0}] : [];
    return {...base, role: "assistant", status: "done", items: [...thought, {type: "text", text}]};
}

/* Of a tree with nodes that say nothing (a system's, a tool's): messages whose parents are messages. */
function tree(nodes, parentOf, read) {
    const made = new Map();
    for (const [id, node] of nodes) {
        const found = read(id, node);
        if (found) made.set(id, found);
    }
    const above = (id) => {
        for (let at = parentOf(nodes.get(id)), steps = 0; at != null && steps < nodes.size; steps++) {
            if (made.has(at)) return at;
            at = parentOf(nodes.get(at));
        }
        return null;
    };
    // Branches stand in the order of their times; what has none, or the same as another, keeps the order of the file.
    const times = new Set();
    let last = 0;
    for (const [id, each] of made) {
        each.parent = above(id);
        for (each.created ||= last + 1; times.has(each.created); each.created++);
        times.add((last = each.created));
    }
    return {messages: [...made.values()], nearest: (id) => (made.has(id) ? id : above(id))};
}

const SAID = new Set(["user", "assistant"]);

function fromChatGpt(each) {
    const {messages, nearest} = tree(
        new Map(Object.entries(each.mapping ?? {})),
        (node) => node?.parent,
        (id, {message: told}) => {
            const text = plain(told?.content?.parts ?? told?.content?.text);
            const role = told?.author?.role;
            return SAID.has(role) && text ? message(id, null, role, ms(told.create_time), text) : null;
        },
    );
    const [created, updated] = [ms(each.create_time), ms(each.update_time)];
    return {title: each.title, created, updated, leaf: nearest(each.current_node), messages};
}

function fromOpenWebUi(each) {
    const {chat} = each;
    const history = chat.history ?? {};
    const {messages, nearest} = tree(
        new Map(Object.entries(history.messages ?? {})),
        (node) => node?.parentId,
        (id, told) => {
            if (!SAID.has(told.role)) return null;
            const thought = /<details type="reasoning"[^>]*>([^]*?)<\/details>/.exec(told.content ?? "");
            const text = plain(told.content).replace(thought?.[0] ?? "", "").trim();
            const reasoning = thought?.[1].replace(/<summary>[^]*?<\/summary>/, "").trim();
            return message(id, null, told.role, ms(told.timestamp), text, reasoning);
        },
    );
    const [created, updated] = [ms(each.created_at ?? chat.timestamp), ms(each.updated_at ?? chat.timestamp)];
    return {title: each.title ?? chat.title, created, updated, leaf: nearest(history.currentId), messages};
}

function fromLlama({conv, messages: told}) {
    const {messages, nearest} = tree(
        new Map(list(told).map((node) => [String(node.id), node])),
        (node) => (node?.parent == null ? null : String(node.parent)),
        (id, node) =>
            SAID.has(node.role) && node.type !== "root"
                ? message(id, null, node.role, ms(node.timestamp), plain(node.content), node.thinking || node.reasoningContent)
                : null,
    );
    const updated = ms(conv.lastModified);
    return {title: conv.name, created: messages[0]?.created ?? updated, updated, leaf: nearest(String(conv.currNode)), messages};
}

/* llama.cpp's files of lines: one of a conversation, then one of each of its messages. */
function sessions(lines) {
    const all = [];
    for (const {type, message: told, ...conv} of lines) {
        if (type === "session") all.push({conv, messages: []});
        else if (type === "message" && told) all.at(-1)?.messages.push(told);
    }
    return all;
}

/** The conversations of a file that another program has exported; null where it is of none that is known. */
export function foreign(data) {
    const told = Array.isArray(data) ? data : [data];
    const all = told[0]?.type === "session" ? sessions(told.filter(Boolean)) : told;
    if (all.length === 0) return null;
    if (all.every((each) => each?.mapping)) return all.map(fromChatGpt);
    if (all.every((each) => each?.chat?.history)) return all.map(fromOpenWebUi);
    if (all.every((each) => each?.conv && each?.messages)) return all.map(fromLlama);
    return null;
}
