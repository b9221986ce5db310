// From a path of messages to the body of a request to /v1/responses.

import {toolsOf} from "./mcp.js";
import {dataUrl} from "./media.js";
import {saveMessage} from "./store.js";
import {urlFor} from "./uploads.js";
import {body as settingsBody} from "./settings.js";

/** A document, for the server to read. */
export async function documentOf({name, blob}) {
    return {type: "input_file", filename: name, file_data: await dataUrl(blob)};
}

async function part(attachment, how) {
    if (attachment.kind === "text") {
        const text = await attachment.blob.text();
        const marks = "`".repeat(Math.max(3, ...[...text.matchAll(/`+/g)].map((run) => run[0].length + 1)));
        return {type: "input_text", text: `${attachment.name}:\n${marks}\n${text}\n${marks}`};
    }
    if (attachment.kind === "file") return documentOf(attachment);
    const url = await urlFor(attachment, how);
    return attachment.kind === "video" ? {type: "input_video", video_url: url} : {type: "input_image", image_url: url};
}

async function asked(message, how) {
    const parts = [];
    const given = () => (message.attachments ?? []).map((each) => each.given).join(" ");
    const before = given();
    for (const each of message.attachments ?? []) parts.push(await part(each, how));
    // whoever opens the conversation again need not give them again; without room for that they do
    if (given() !== before && message.id) saveMessage(message).catch(() => {});
    if (message.text) parts.push({type: "input_text", text: message.text});
    return [{type: "message", role: "user", content: parts}];
}

function said(item) {
    switch (item.type) {
        case "reasoning":
            return {type: "reasoning", summary: [], content: [{type: "reasoning_text", text: item.text}]};
        case "call":
            return {type: "function_call", call_id: item.call, name: item.name, arguments: item.arguments || "{}"};
        default:
            return {type: "message", role: "assistant", content: [{type: "output_text", text: item.text}]};
    }
}

async function items(message, how) {
    if (message.role === "user") return asked(message, how);
    if (message.role === "tool")
        return message.results.map((result) => ({
            type: "function_call_output",
            call_id: result.call,
            output: result.output,
        }));
    return message.items.filter((item) => item.type === "call" || item.text).map(said);
}

/** The body that asks for what follows a path. goOn: the last message is an answer's beginning; how: pictures are
    given to the server, see urlFor(). */
export async function request(settings, path, goOn, how) {
    const body = settingsBody(settings);
    const tools = await toolsOf(settings);
    if (tools.length > 0) body.tools = [...(body.tools ?? []), ...tools];
    const input = (await Promise.all(path.map((message) => items(message, how)))).flat();
    return {
        ...body,
        input,
        stream: true,
        background: true,
        store: true,
        timings_per_token: true,
        ...(goOn ? {continue_final_message: true, add_generation_prompt: false} : {}),
    };
}
