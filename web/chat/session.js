// The one state of the page, and all that can be done to it. Views are told by name of what has changed:
// "list" (conversations), "conversation" (another one is shown, or another branch of it), "settings", "title",
// "message" (one message, given along), "models", "notice" (a sentence for the person).

import * as answers from "./answers.js";
import {request} from "./ask.js";
import {defaults, remember} from "./settings.js";
import * as store from "./store.js";
import {branch, children, newestLeaf, pathTo, textOf} from "./tree.js";

const listeners = new Map();

export const session = {
    models: [], // names that can be asked
    conversation: null, // what is shown: {id, title, created, updated, leaf, settings, bytes}
    kept: false, // it is in the store: it has a message at least
    messages: new Map(),
};

export function on(name, listener) {
    listeners.set(name, [...(listeners.get(name) ?? []), listener]);
}

export function tell(name, detail) {
    for (const listener of listeners.get(name) ?? []) listener(detail);
}

export function path() {
    return session.conversation ? pathTo(session.messages, session.conversation.leaf) : [];
}

/** The answer of what is shown that is being given, or undefined. */
export function running() {
    return path().find((message) => message.status === "running");
}

function fresh() {
    const now = Date.now();
    return {id: store.newId(), title: "", created: now, updated: now, leaf: null, settings: defaults(), bytes: 0};
}

/* The address has the conversation's id: so a tab that is loaded again shows the same, and the browser's way back leads
   to the one before. */
function show(conversation, messages, kept) {
    const before = session.conversation;
    const hash = kept ? `#${conversation.id}` : "";
    session.conversation = conversation;
    session.messages = messages;
    session.kept = kept;
    if (location.hash !== hash)
        history[before ? "pushState" : "replaceState"](null, "", location.pathname + location.search + hash);
    tell("conversation");
    for (const message of messages.values())
        if (message.status === "running") answers.resume(message, () => changed(message));
}

let opening = 0; // counts what is opened

export function begin() {
    opening++;
    show(fresh(), new Map(), false);
}

/** Shows a kept conversation; where it is gone, a new one. Of several at once the last is shown. */
export async function openConversation(id) {
    const turn = ++opening;
    const found = await store.load(id);
    if (turn !== opening) return;
    if (!found) {
        begin();
        return;
    }
    for (const key of found.messages.keys()) found.messages.set(key, answers.live(key) ?? found.messages.get(key));
    if (!found.messages.has(found.conversation.leaf)) found.conversation.leaf = newestLeaf(found.messages, null);
    found.conversation.settings = {...defaults(), ...found.conversation.settings};
    show(found.conversation, found.messages, true);
}

/* What one tab writes of a conversation, others hear of: `changed` is for this one's views. */
function changed(message) {
    if (session.messages.get(message.id) === message) tell("message", message);
}

async function keep() {
    const {conversation} = session;
    session.kept = true;
    conversation.updated = Date.now();
    conversation.bytes = [...session.messages.values()].reduce((sum, message) => sum + store.weight(message), 0);
    try {
        await store.saveConversation(conversation);
        await store.prune(conversation.id);
    } catch (error) {
        tell("notice", `The browser could not keep this conversation: ${error?.message ?? "no room"}`);
    }
    tell("list");
}

async function add(message) {
    Object.assign(message, {id: store.newId(), conversation: session.conversation.id, created: Date.now()});
    session.messages.set(message.id, message);
    session.conversation.leaf = message.id;
    if (!session.kept) history.replaceState(null, "", `#${session.conversation.id}`);
    session.kept = true;
    await store.saveMessage(message).catch(() => {});
    return message;
}

/* An answer to the path that ends with `parent`. */
async function answer(parent) {
    const {conversation} = session;
    const before = pathTo(session.messages, parent);
    const message = await add({
        parent,
        role: "assistant",
        items: [],
        status: "running",
        model: conversation.settings.model,
    });
    tell("conversation");
    const done = answers.start(message, request(conversation.settings, before, false), () => changed(message));
    await keep();
    await done;
    await finished(message);
}

async function finished(message) {
    const found = session.conversation?.id === message.conversation;
    if (found) tell("conversation");
    tell("finished", message);
    if (found && session.kept) await keep();
}

export async function send(text, attachments) {
    const parent = session.conversation.leaf;
    const message = await add({parent, role: "user", text, attachments});
    if (!session.conversation.title) {
        session.conversation.title = (text || attachments[0]?.name || "A picture").replaceAll(/\s+/g, " ").slice(0, 80);
        tell("title");
    }
    await answer(message.id);
}

/** The same question in other words, beside the first. */
export async function edit(message, text, attachments) {
    const changedMessage = await add({parent: message.parent, role: "user", text, attachments});
    await answer(changedMessage.id);
}

/** Another answer to the same, beside the first. */
export function again(message) {
    return answer(message.parent);
}

export function canGoOn(message) {
    return (
        ["cut", "stopped", "failed"].includes(message.status) &&
        message.items.at(-1)?.type === "text" &&
        message.items.at(-1).text.trim() !== "" &&
        children(session.messages, message.id).length === 0
    );
}

/** Goes on with an answer that ended too soon. */
export async function goOn(message) {
    const last = message.items.at(-1);
    const body = request(session.conversation.settings, pathTo(session.messages, message.id), true);
    await body;
    message.base = {
        count: message.items.length,
        joined: true,
        length: last.text.length,
        tokens: last.tokens?.length ?? 0,
    };
    const done = answers.start(message, body, () => changed(message));
    tell("conversation");
    await done;
    await finished(message);
}

/** Results of the calls in an answer, upon which the model goes on. */
export async function giveResults(message, results) {
    const given = await add({parent: message.id, role: "tool", results});
    await answer(given.id);
}

export function stop() {
    const message = running();
    return message ? answers.stop(message) : undefined;
}

/** Shows the branch that begins with this message, as far as it was gone along. */
export async function switchTo(message) {
    session.conversation.leaf = newestLeaf(session.messages, message.id);
    tell("conversation");
    await keep();
}

/** Removes a message and all that follows it. */
export async function removeBranch(message) {
    const ids = branch(session.messages, message.id);
    const beside = [...session.messages.values()].filter(
        (other) => other.parent === message.parent && other.id !== message.id,
    );
    for (const id of ids) session.messages.delete(id);
    session.conversation.leaf = beside.length > 0 ? newestLeaf(session.messages, beside.at(-1).id) : message.parent;
    tell("conversation");
    await store.removeMessages(session.conversation.id, ids);
    await keep();
}

export async function change(settings) {
    Object.assign(session.conversation.settings, settings);
    remember(session.conversation.settings);
    tell("settings");
    if (session.kept) await keep();
}

export async function rename(id, title) {
    if (session.conversation.id === id) {
        session.conversation.title = title;
        tell("title");
    }
    const found = await store.load(id);
    if (found) await store.saveConversation({...found.conversation, title});
    tell("list");
}

export async function remove(id) {
    if (session.conversation.id === id) {
        const message = running();
        if (message) answers.stop(message);
        begin();
    }
    await store.removeConversation(id);
    tell("list");
}

/* Another tab has written: the list is read anew, and so is what we show, unless we are the ones who know better. */
async function heard({conversation, message}) {
    tell("list");
    if (conversation !== session.conversation?.id || !session.kept) return;
    const found = await store.load(conversation);
    if (!found || conversation !== session.conversation.id) return found ? undefined : begin();
    let news = false;
    for (const [id, each] of found.messages) {
        const mine = session.messages.get(id);
        const late =
            mine?.response && mine.response === each.response && mine.status !== "running" && each.status === "running";
        if (answers.live(id) || late || (message !== null && id !== message && mine)) continue;
        session.messages.set(id, each);
        news = true;
        if (each.status === "running") answers.resume(each, () => changed(each));
    }
    if (news && session.messages.has(session.conversation.leaf)) tell("conversation");
}

export function start() {
    store.whenChanged(heard);
    window.addEventListener("pagehide", answers.leave);
    window.addEventListener("pageshow", (event) => {
        if (event.persisted && session.kept) openConversation(session.conversation.id);
    });
    window.addEventListener("hashchange", () => {
        const id = location.hash.slice(1);
        if (!id) begin();
        else if (id !== session.conversation?.id || !session.kept) openConversation(id);
    });
    return location.hash.length > 1 ? openConversation(location.hash.slice(1)) : begin();
}

export {textOf};
