// The one state of the page, and all that can be done to it. Views are told by name of what has changed:
// "list" (conversations), "conversation" (another one is shown, or another branch of it), "settings", "title",
// "message" (one message, given along), "models", "notice" (a sentence for the person, or {text, actions}), "full" (the
// browser could not keep something: there is no room), "shown" (a message that the person has asked to see).

import * as answers from "./answers.js";
import {request} from "./ask.js";
import {results} from "./mcp.js";
import {defaults, faults, remember} from "./settings.js";
import * as store from "./store.js";
import {children, newestLeaf, pathTo, textOf} from "./tree.js";

const listeners = new Map();

export const session = {
    models: [], // names that can be asked
    all: [], // the models as /v1/models has them
    limits: null, // what the server takes, see /web/limits
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

/** Shows a kept conversation; where it is gone, a new one. Of several at once the last is shown. hit: a message of it
    that is to be seen. */
export async function openConversation(id, hit = null) {
    const turn = ++opening;
    const found = await store.load(id);
    if (turn !== opening) return;
    if (!found) {
        begin();
        return;
    }
    for (const key of found.messages.keys()) found.messages.set(key, answers.live(key) ?? found.messages.get(key));
    const {leaf} = found.conversation; // a page that was killed may have written an answer, and not that it is the last
    found.conversation.leaf = newestLeaf(found.messages, found.messages.has(leaf) ? leaf : null);
    found.conversation.settings = {...defaults(), ...found.conversation.settings};
    const hits = hit && found.messages.has(hit);
    if (hits && !pathTo(found.messages, found.conversation.leaf).includes(found.messages.get(hit)))
        found.conversation.leaf = newestLeaf(found.messages, hit);
    show(found.conversation, found.messages, true);
    if (hits) tell("hit", found.messages.get(hit));
}

/* What one tab writes of a conversation, others hear of: `changed` is for this one's views. */
function changed(message) {
    if (session.messages.get(message.id) === message) tell("message", message);
}

async function keep() {
    const {conversation} = session;
    session.kept = true;
    conversation.updated = Date.now();
    conversation.bytes = [...session.messages.values()].reduce((sum, message) => sum + weightOf(message), 0);
    try {
        await store.saveConversation(conversation);
    } catch (error) {
        failedToKeep(error);
    }
    tell("list");
}

const weights = new WeakMap(); // of messages that do not change any more

function weightOf(message) {
    if (message.status === "running") return 0;
    if (!weights.has(message)) weights.set(message, store.weight(message));
    return weights.get(message);
}

function failedToKeep(error) {
    if (error instanceof store.Full) tell("full");
    else tell("notice", `The browser could not keep this: ${error?.message ?? error}`);
}

/* Adds a message to what is shown. `must`: only if it can be kept, else an error is thrown. */
async function add(message, must) {
    const {conversation} = session;
    Object.assign(message, {id: store.newId(), conversation: conversation.id, created: Date.now()});
    if (must) {
        await store.makeSure(store.weight(message));
        // together: a message is found by its conversation alone
        await store.saveWhole({...conversation, leaf: message.id, updated: message.created}, [message]);
    } else {
        await store.saveMessage(message).catch(failedToKeep);
    }
    if (conversation !== session.conversation) return message;
    session.messages.set(message.id, message);
    conversation.leaf = message.id;
    if (!session.kept) history.replaceState(null, "", `#${conversation.id}`);
    session.kept = true;
    return message;
}

/** What the server has said of the model that is asked; undefined: nothing. */
export function model() {
    const name = session.conversation?.settings.model || session.models[0];
    return session.all.find((each) => each.id === name);
}

/* A setting with a fault would be left out, and the answer be another one than was asked for. */
function faulty() {
    const found = faults(session.conversation.settings);
    if (found.length === 0) return false;
    const [{field, wrong}] = found;
    tell("notice", {
        text: `Nothing is sent while a setting has a fault. ${field.label}: ${wrong}`,
        actions: [
            ["Open the settings", () => tell("show-setting", field.key)],
            [`Clear “${field.label}”`, () => change({[field.key]: ""})],
        ],
    });
    return true;
}

/* Adds what the person says, and asks for an answer. False: it could not be kept or sent, and the person was told why. */
async function say(message) {
    if (faulty()) return false;
    const {conversation} = session;
    const titled = conversation.title;
    const name = message.text || message.attachments?.[0]?.name || "A picture";
    conversation.title ||= name.replaceAll(/\s+/g, " ").slice(0, 80);
    try {
        await add(message, true);
    } catch (error) {
        conversation.title = titled;
        failedToKeep(error);
        return false;
    }
    if (conversation !== session.conversation) return true;
    if (!titled) tell("title");
    answer(message.id);
    return true;
}

/* An answer to the path that ends with `parent`. asked: it is what the person looks at, who has typed nothing. */
async function answer(parent, asked = false) {
    const {conversation} = session;
    const before = pathTo(session.messages, parent);
    const message = await add({
        parent,
        role: "assistant",
        items: [],
        status: "running",
        model: conversation.settings.model,
    });
    if (conversation !== session.conversation) return;
    tell("conversation");
    const settings = {...conversation.settings};
    const done = answers.start(message, (how) => request(settings, before, false, how), () => changed(message));
    if (asked) tell("shown", message);
    await keep();
    await done;
    await finished(message);
}

async function finished(message) {
    const found = session.conversation?.id === message.conversation;
    if (found) tell("conversation");
    if (message.unkept) failedToKeep(message.unkept);
    tell("finished", message);
    if (found && session.kept) await keep();
    if (found && message.status === "done") await callTools(message);
}

/* Calls of tools that the page can make itself; the person is asked first, and gives the results where they say no. */
async function callTools(message) {
    const {conversation} = session;
    const calls = message.items.filter((item) => item.type === "call");
    try {
        const given = await results(conversation.settings, calls);
        const stays = conversation === session.conversation && conversation.leaf === message.id;
        if (given && stays) await giveResults(message, given);
    } catch (error) {
        tell("notice", error.message);
    }
}

/** Asks something. False: it could not be kept, nothing is asked, and the person was told why. */
export function send(text, attachments) {
    return say({parent: session.conversation.leaf, role: "user", text, attachments});
}

/** The same question in other words, beside the first. */
export function edit(message, text, attachments) {
    return say({parent: message.parent, role: "user", text, attachments});
}

/** Another answer to the same, beside the first. */
export async function again(message) {
    if (!faulty()) await answer(message.parent, true);
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
    if (faulty()) return;
    const last = message.items.at(-1);
    const settings = {...session.conversation.settings};
    const before = pathTo(session.messages, message.id);
    // what is sent is what is there now: the answer grows while a picture may have to be given again
    const sent = await request(settings, before, true, "known");
    const body = (how) => (how === "known" ? sent : request(settings, before, true, how));
    message.base = {
        count: message.items.length,
        joined: true,
        length: last.text.length,
        tokens: last.tokens?.length ?? 0,
    };
    const done = answers.start(message, body, () => changed(message));
    tell("conversation");
    tell("shown", message);
    await done;
    await finished(message);
}

/** Results of the calls in an answer, upon which the model goes on. */
export function giveResults(message, results) {
    return say({parent: message.id, role: "tool", results});
}

export function stop() {
    const message = running();
    return message ? answers.stop(message) : undefined;
}

/** Shows the branch that begins with this message, as far as it was gone along. */
export async function switchTo(message) {
    session.conversation.leaf = newestLeaf(session.messages, message.id);
    tell("conversation");
    tell("shown", message);
    await keep();
}

export async function change(settings) {
    Object.assign(session.conversation.settings, settings);
    remember(session.conversation.settings);
    tell("settings");
    if (session.kept) await keep();
}

/** Pinned conversations stand before the others. */
export async function pin(id, pinned) {
    if (session.conversation.id === id) session.conversation.pinned = pinned;
    const found = await store.load(id);
    if (found) await store.saveConversation({...found.conversation, pinned});
    tell("list");
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

/** Forgets a conversation, and stops the answers of it that are being given, shown or not. */
export async function remove(id) {
    const found = await store.load(id);
    for (const message of found?.messages.values() ?? [])
        if (message.status === "running") answers.discard(answers.live(message.id) ?? message);
    if (session.conversation.id === id) begin();
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
    const byAge = [...found.messages].sort((a, b) => a[1].created - b[1].created);
    for (const [id, each] of byAge) {
        const mine = session.messages.get(id);
        const late =
            mine?.response && mine.response === each.response && mine.status !== "running" && each.status === "running";
        if (answers.live(id) || late || (message !== null && id !== message && mine)) continue;
        session.messages.set(id, each);
        // what goes on from the last message that is shown is shown, too
        if (!mine && each.parent === session.conversation.leaf) session.conversation.leaf = each.id;
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
