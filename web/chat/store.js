// Conversations, kept in the browser's own database (IndexedDB). Messages are records of their own, so that two tabs
// with the same conversation add to it side by side. Tabs tell each other what has changed.
//
// At most MOST conversations and BYTES bytes are kept; those that were not touched for longest go first.

const MOST = 500;
const BYTES = 256 * 1024 * 1024;

const channel = "BroadcastChannel" in window ? new BroadcastChannel("motet.chat") : null;
let database = null;

function finished(request) {
    return new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
}

function open() {
    const request = indexedDB.open("motet.chat", 1);
    request.onupgradeneeded = () => {
        request.result.createObjectStore("conversations", {keyPath: "id"});
        request.result.createObjectStore("messages", {keyPath: "id"}).createIndex("conversation", "conversation");
    };
    return finished(request);
}

async function transact(mode, work) {
    database ??= open();
    const transaction = (await database).transaction(["conversations", "messages"], mode);
    const done = new Promise((resolve, reject) => {
        transaction.oncomplete = resolve;
        transaction.onabort = transaction.onerror = () => reject(transaction.error);
    });
    const result = await work(transaction.objectStore("conversations"), transaction.objectStore("messages"));
    await done;
    return result;
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

export async function removeMessages(conversation, ids) {
    await transact("readwrite", (_, messages) => Promise.all(ids.map((id) => finished(messages.delete(id)))));
    tell({conversation, message: null});
}

export async function removeConversation(id) {
    await transact("readwrite", async (store, messages) => {
        const keys = await finished(messages.index("conversation").getAllKeys(id));
        await Promise.all([finished(store.delete(id)), ...keys.map((key) => finished(messages.delete(key)))]);
    });
    tell({conversation: id, message: null});
}

/** Those whose titles or texts have all of the words; a text is looked at as it was written. */
export async function search(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return transact("readonly", async (store, messages) => {
        const texts = new Map((await finished(store.getAll())).map((each) => [each.id, {each, text: each.title}]));
        for (const message of await finished(messages.getAll())) {
            const entry = texts.get(message.conversation);
            if (entry) entry.text += ["", message.text, ...(message.items ?? []).map((item) => item.text)].join("\n");
        }
        return [...texts.values()]
            .filter(({text}) => wanted.every((word) => text.toLowerCase().includes(word)))
            .map(({each}) => each)
            .sort((a, b) => b.updated - a.updated);
    });
}

/** Forgets the oldest, until what is left is no more than may be kept. `keep` stays in any case. */
export async function prune(keep) {
    const all = await conversations();
    let bytes = 0;
    for (const [index, each] of all.entries()) {
        bytes += each.bytes ?? 0;
        if (each.id !== keep && (index >= MOST || bytes > BYTES)) await removeConversation(each.id);
    }
}
