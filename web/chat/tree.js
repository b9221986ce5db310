// A conversation is a tree of messages: who edits or asks again begins another branch. What is shown is the path from
// the root to one leaf. Messages are {id, parent, created, role, ...} in a Map by id.

/** The messages from the first to this one. */
export function pathTo(messages, leaf) {
    const path = [];
    for (let at = messages.get(leaf); at && path.length <= messages.size; at = messages.get(at.parent))
        path.push(at);
    return path.reverse();
}

function byAge(a, b) {
    return a.created - b.created || (a.id < b.id ? -1 : 1);
}

/** The messages that answer or follow the same one, the oldest first. */
export function siblings(messages, message) {
    return [...messages.values()].filter((other) => other.parent === message.parent).sort(byAge);
}

export function children(messages, id) {
    return [...messages.values()].filter((other) => other.parent === id).sort(byAge);
}

/** The end of the branch that was last gone along from here. */
export function newestLeaf(messages, id) {
    let left = messages.size; // of a circle there is no end
    for (let below = children(messages, id); below.length > 0 && left-- > 0; below = children(messages, id))
        id = below.at(-1).id;
    return id;
}

/** What was said in a message, as plain text. */
export function textOf(message) {
    if (message.role === "assistant")
        return message.items
            .filter((item) => item.type === "text")
            .map((item) => item.text)
            .join("\n");
    return message.text ?? "";
}
