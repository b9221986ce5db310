// From a path of messages to the body of a request to /v1/responses.

import {dataUrl} from "./media.js";
import {body as settingsBody} from "./settings.js";

async function part(attachment) {
    const url = await dataUrl(attachment.blob);
    return attachment.kind === "video" ? {type: "input_video", video_url: url} : {type: "input_image", image_url: url};
}

async function asked(message) {
    const parts = await Promise.all((message.attachments ?? []).map(part));
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

async function items(message) {
    if (message.role === "user") return asked(message);
    if (message.role === "tool")
        return message.results.map((result) => ({
            type: "function_call_output",
            call_id: result.call,
            output: result.output,
        }));
    return message.items.filter((item) => item.type === "call" || item.text).map(said);
}

/** The body that asks for what follows a path. goOn: the last message is an answer's beginning. */
export async function request(settings, path, goOn) {
    const input = (await Promise.all(path.map(items))).flat();
    return {
        ...settingsBody(settings),
        input,
        stream: true,
        background: true,
        store: true,
        timings_per_token: true,
        ...(goOn ? {continue_final_message: true, add_generation_prompt: false} : {}),
    };
}
