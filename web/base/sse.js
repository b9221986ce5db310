// Server-sent events of a fetch, which unlike EventSource can send a key and a body.

/** The events of a response, {name, data, id}, as they come. Ends where the stream ends. */
export async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
        for (;;) {
            const {value, done} = await reader.read();
            if (done) return;
            rest += value;
            const blocks = rest.split(/\r?\n\r?\n/);
            rest = blocks.pop();
            for (const block of blocks) {
                const event = parse(block);
                if (event) yield event;
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

function parse(block) {
    const event = {name: "message", data: "", id: null};
    const data = [];
    for (const line of block.split(/\r?\n/)) {
        const colon = line.indexOf(":");
        if (colon <= 0) continue; // a comment says that the stream lives
        const value = line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
        const field = line.slice(0, colon);
        if (field === "data") data.push(value);
        else if (field === "event") event.name = value;
        else if (field === "id") event.id = value;
    }
    event.data = data.join("\n");
    return data.length > 0 ? event : null;
}
