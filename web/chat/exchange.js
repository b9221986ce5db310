// Conversations as a file: {"format": "motet.chat", "version": 1, "conversations": [{..., "messages": [...]}]}.
// Pictures stand in it as data URLs. Exports of other programs are taken, too, as they are or in the archives that these
// programs pack them in.

import {entries, textOf} from "./archive.js";
import {foreign} from "./foreign.js";
import {dataUrl} from "./media.js";
import * as store from "./store.js";

const FORMAT = "motet.chat";
const MOST = 500 * 1024 * 1024;

/* fetch may not read data: URLs here, so that base64 is read by hand. */
function blobOf(url) {
    const found = /^data:([\w.+/-]+);base64,([A-Za-z0-9+/=]*)$/.exec(url);
    if (!found || !/^(?:image\/|video\/|text\/plain$|application\/pdf$)/.test(found[1]))
        throw new Error("an attachment is neither a picture nor a video nor text nor PDF");
    return new Blob([Uint8Array.from(atob(found[2]), (c) => c.charCodeAt(0))], {type: found[1]});
}

async function packed(message) {
    const attachments = await Promise.all(
        (message.attachments ?? []).map(async (each) => ({
            kind: each.kind,
            name: each.name,
            data: await dataUrl(each.blob),
        })),
    );
    return message.attachments ? {...message, attachments} : message;
}

/** Some conversations, by id, as the text of a file. */
export async function exported(ids) {
    const all = [];
    for (const id of ids) {
        const found = await store.load(id);
        if (found)
            all.push({...found.conversation, messages: await Promise.all([...found.messages.values()].map(packed))});
    }
    return JSON.stringify({format: FORMAT, version: 1, conversations: all}, null, 1);
}

/* What a file says is taken piece by piece: nothing is kept that we would not have written. */

const text = (value, most = 1e8) => (typeof value === "string" ? value.slice(0, most) : "");
const number = (value) => (Number.isFinite(value) ? value : 0);

function itemFrom(item) {
    if (item?.type === "call")
        return {type: "call", call: text(item.call, 200), name: text(item.name, 200), arguments: text(item.arguments)};
    if (item?.type === "reasoning") return {type: "reasoning", text: text(item.text), seconds: number(item.seconds)};
    const tokens = Array.isArray(item?.tokens)
        ? item.tokens.map((token) => ({
              text: text(token?.text, 1000),
              logprob: number(token?.logprob),
              others: (Array.isArray(token?.others) ? token.others : []).map((other) => [
                  text(other?.[0], 1000),
                  number(other?.[1]),
              ]),
          }))
        : undefined;
    return {type: "text", text: text(item?.text), ...(tokens ? {tokens} : {})};
}

function messageFrom(message, ids, conversation) {
    const base = {
        id: ids.get(message.id),
        conversation,
        parent: ids.get(message.parent) ?? null,
        created: number(message.created),
    };
    if (message.role === "user")
        return {
            ...base,
            role: "user",
            text: text(message.text),
            attachments: (message.attachments ?? []).map((each) => ({
                kind: ["video", "text", "file"].includes(each.kind) ? each.kind : "image",
                name: text(each.name, 100),
                blob: blobOf(text(each.data)),
            })),
        };
    if (message.role === "tool")
        return {
            ...base,
            role: "tool",
            results: (message.results ?? []).map((each) => ({
                call: text(each.call, 200),
                name: text(each.name, 200),
                output: text(each.output),
            })),
        };
    const stats =
        message.stats &&
        Object.fromEntries(
            ["prompt", "cached", "tokens", "reasoning", "first", "rate", "guessed", "taken"].map((key) => [
                key,
                number(message.stats[key]),
            ]),
        );
    return {
        ...base,
        role: "assistant",
        items: (message.items ?? []).map(itemFrom),
        model: text(message.model, 200),
        status: ["done", "stopped", "cut", "failed"].includes(message.status) ? message.status : "stopped",
        error: message.error ? text(message.error, 1000) : null,
        fault: message.fault ? {status: number(message.fault.status)} : null,
        ...(stats ? {stats} : {}),
        times: {},
    };
}

/* The file's author is not to say which servers of tools this page calls. */
function settingsFrom(settings) {
    return Object.fromEntries(
        Object.entries(settings ?? {})
            .filter(([key, value]) => key !== "servers" && ["string", "number", "boolean"].includes(typeof value))
            .slice(0, 50),
    );
}

/* Messages that follow one another in a circle have no beginning and no end: the circle is opened. */
function opened(messages) {
    const byId = new Map(messages.map((message) => [message.id, message]));
    const sound = new Set();
    for (const each of messages) {
        const path = new Set();
        let at = each;
        for (; at && !sound.has(at) && !path.has(at); at = byId.get(at.parent)) path.add(at);
        if (path.has(at)) at.parent = null;
        for (const message of path) sound.add(message);
    }
    return messages;
}

/* What JSON says, or a list of what its lines say. */
function parsed(said) {
    try {
        return JSON.parse(said);
    } catch {
        return said
            .split("\n")
            .filter((line) => line.trim())
            .map((line) => JSON.parse(line));
    }
}

/* The conversations that a text has; null where it is no export that is known. */
function conversationsIn(said, name) {
    let data = null;
    try {
        data = parsed(said);
    } catch {
        throw new Error(`${name} is not JSON`);
    }
    return data?.format === FORMAT && Array.isArray(data.conversations) ? data.conversations : foreign(data);
}

/* Of an archive: what its files have that are exports; others may lie beside them. {all, bytes} */
async function unpacked(file) {
    const found = (await entries(file)).filter((entry) => /\.jsonl?$/i.test(entry.name));
    let left = MOST;
    const all = [];
    for (const entry of found) {
        const said = await textOf(file, entry, left);
        left -= said.length;
        const known = conversationsIn(said, `${entry.name} in the archive`);
        if (known) all.push(known);
    }
    return {all: all.length > 0 && all.flat(), bytes: MOST - left};
}

async function read(file) {
    if ((await file.slice(0, 4).text()) === "PK\x03\x04") return unpacked(file);
    if (file.size > MOST) throw new Error("the file is larger than 500 MB");
    return {all: conversationsIn(await file.text(), "the file"), bytes: file.size};
}

/** Adds the conversations of a file to those that are kept, beside what is there; says how many. */
export async function imported(file) {
    const {all, bytes} = await read(file);
    if (!all) throw new Error("the file is no export of this page, ChatGPT, Open WebUI or llama.cpp");
    await store.makeSure(bytes);
    let added = 0;
    for (const each of all) {
        const messages = Array.isArray(each.messages) ? each.messages : [];
        const ids = new Map(messages.map((message) => [message.id, store.newId()]));
        const id = store.newId();
        const made = opened(messages.map((message) => messageFrom(message, ids, id)));
        const conversation = {
            id,
            title: text(each.title, 200),
            created: number(each.created),
            updated: number(each.updated) || number(each.created) || Date.now(),
            leaf: ids.get(each.leaf) ?? null,
            settings: settingsFrom(each.settings),
            pinned: each.pinned === true,
            bytes: made.reduce((sum, message) => sum + store.weight(message), 0),
        };
        await store.saveWhole(conversation, made).catch((error) => {
            error.added = added;
            throw error;
        });
        added++;
    }
    return added;
}
