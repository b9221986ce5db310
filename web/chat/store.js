// Conversations, kept in the browser's own database (IndexedDB). Messages are records of their own, so that two tabs
// with the same conversation add to it side by side. Tabs tell each other what has changed.
//
// Nothing is removed that the person did not remove. Where the browser gives no more room, a write fails with a Full
// error, and who asked for it says so.

const STORES = ["conversations", "messages", "drafts"];

const channel = "BroadcastChannel" in window ? new BroadcastChannel("motet.chat") : null;
let database = null;

function finished(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

/** The browser gives no more room. */
export class Full extends Error {
    constructor() {
        super("There is no more room in this browser for conversations.");
    }
}

/* What each version of the database added to the one before. */
const VERSIONS = [
    (database) => {
        database.createObjectStore("conversations", {keyPath: "id"});
        database.createObjectStore("messages", {keyPath: "id"}).createIndex("conversation", "conversation");
    },
    (database) => database.createObjectStore("drafts", {keyPath: "conversation"}),
];

async function open() {
    const request = indexedDB.open("motet.chat", VERSIONS.length);
    request.onupgradeneeded = ({oldVersion}) => {
        for (const add of VERSIONS.slice(oldVersion)) add(request.result);
    };
    const opened = await finished(request);
    // a page of a later program wants to change it: it is not to wait for this one
    opened.onversionchange = () => {
        opened.close();
        database = null;
    };
    return opened;
}

/* work gets the stores; its writes are on the disk when this resolves. */
async function transact(mode, work) {
    database ??= open();
    const transaction = (await database).transaction(STORES, mode, {durability: "strict"});
    const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
    done.catch(() => {}); // work fails with it, or it is awaited below
    try {
        const result = await work(...STORES.map((name) => transaction.objectStore(name)));
        await done;
        return result;
    } catch (error) {
        throw error?.name === "QuotaExceededError" ? new Full() : error;
    }
}

/** {used, all}: bytes of what the browser gives the pages of this server; null where it does not tell. */
export async function room() {
    const found = await navigator.storage?.estimate?.().catch(() => null);
    return found?.quota > 0 ? {used: found.usage ?? 0, all: found.quota} : null;
}

/** Throws Full where so many bytes more do not fit. */
export async function makeSure(bytes) {
    const found = await room();
    if (found && found.used + bytes > 0.98 * found.all) throw new Full();
}

function tell(change) {
    channel?.postMessage(change);
}

/** Calls back with what another tab has changed: {conversation, message or null}. */
export function whenChanged(callback) {
    channel?.addEventListener("message", (event) => callback(event.data));
}

/** An id that nobody else has. */
export function newId() {
    return [...crypto.getRandomValues(new Uint8Array(9))].map((byte) => byte.toString(36).padStart(2, "0")).join("");
}

/** About how much room a message takes. */
export function weight(message) {
    const attached = (message.attachments ?? []).reduce((sum, each) => sum + each.blob.size, 0);
    return attached + JSON.stringify({...message, attachments: undefined}).length;
}

/** Keeps a conversation with all of its messages, or nothing of it. */
export async function saveWhole(conversation, all) {
    await transact("readwrite", (store, messages) =>
        Promise.all([finished(store.put(conversation)), ...all.map((message) => finished(messages.put(message)))]),
    );
    tell({conversation: conversation.id, message: null});
}

/** All conversations without their messages, the last touched first. */
export async function conversations() {
    const all = await transact("readonly", (store) => finished(store.getAll()));
    return all.sort((a, b) => b.updated - a.updated);
}

/** A conversation and its messages; null where there is none of that id. */
export function load(id) {
    return transact("readonly", async (store, messages) => {
        const conversation = await finished(store.get(id));
        const found = await finished(messages.index("conversation").getAll(id));
        return conversation ? {conversation, messages: new Map(found.map((message) => [message.id, message]))} : null;
    });
}

export async function saveConversation(conversation) {
    await transact("readwrite", (store) => finished(store.put(conversation)));
    tell({conversation: conversation.id, message: null});
}

/** Where tabs follow the same answer, one may see its end before the other: an end stays one. False: it had ended. */
export async function saveMessage(message) {
    const first = await transact("readwrite", async (_, messages) => {
        const kept = await finished(messages.get(message.id));
        const ended = kept?.response && kept.response === message.response && kept.status !== "running";
        if (!ended) await finished(messages.put(message));
        return !ended;
    });
    if (first) tell({conversation: message.conversation, message: message.id});
    return first;
}

export function loadMessage(id) {
    return transact("readonly", (_, messages) => finished(messages.get(id)));
}

/** What is written in a conversation and not sent: {conversation, text, attachments}; undefined: nothing. */
export function loadDraft(conversation) {
    return transact("readonly", (store, messages, drafts) => finished(drafts.get(conversation)));
}

export function saveDraft(draft) {
    return transact("readwrite", (store, messages, drafts) =>
        finished(draft.text || draft.attachments.length > 0 ? drafts.put(draft) : drafts.delete(draft.conversation)),
    );
}

/** Another conversation with the same messages. */
export async function copyConversation(id) {
    const {conversation, messages} = await load(id);
    const ids = new Map([...messages.keys()].map((each) => [each, newId()]));
    const made = {...conversation, id: newId(), title: `${conversation.title} (copy)`, updated: Date.now(), pinned: false};
    made.leaf = ids.get(conversation.leaf) ?? null;
    await makeSure(conversation.bytes ?? 0);
    await saveWhole(
        made,
        [...messages.values()].map((message) => ({
            ...message,
            id: ids.get(message.id),
            parent: ids.get(message.parent) ?? null,
            conversation: made.id,
            ...(message.status === "running" ? {status: "stopped", response: null} : {}),
        })),
    );
}

export async function removeConversation(id) {
    await transact("readwrite", async (store, messages, drafts) => {
        const keys = await finished(messages.index("conversation").getAllKeys(id));
        await Promise.all([
            finished(store.delete(id)),
            finished(drafts.delete(id)),
            ...keys.map((key) => finished(messages.delete(key))),
        ]);
    });
    tell({conversation: id, message: null});
}

/** Those whose titles or texts have all of the words, with the message that has most of them as `hit`. A text is looked
    at as it was written. */
export async function search(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return transact("readonly", async (store, messages) => {
        const texts = new Map((await finished(store.getAll())).map((each) => [each.id, {each, text: each.title}]));
        for (const message of await finished(messages.getAll())) {
            const entry = texts.get(message.conversation);
            if (!entry) continue;
            const text = ["", message.text, ...(message.items ?? []).map((item) => item.text)].join("\n");
            const has = wanted.filter((word) => text.toLowerCase().includes(word)).length;
            if (has > (entry.most ?? 0)) Object.assign(entry, {most: has, hit: message.id});
            entry.text += text;
        }
        return [...texts.values()]
            .filter(({text}) => wanted.every((word) => text.toLowerCase().includes(word)))
            .map(({each, hit}) => ({...each, hit}))
            .sort((a, b) => b.updated - a.updated);
    });
}
