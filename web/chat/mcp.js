// Tools of servers that speak MCP over HTTP. Their addresses stand in the settings; the server of this page says which
// of them it may call (--web-connect). Nothing is called before the person has agreed to it.

import {h} from "../base/dom.js";
import {events} from "../base/sse.js";

const VERSION = "2025-06-18";
const MS = 60000; // for an answer
const MOST = 200000; // characters of a result
const RULES = "motet.tools"; // {"address name": "always" or "never"}

const connections = new Map(); // address: a promise of {session, version, tools}
let number = 0;

export class ToolTrouble extends Error {}

/** The addresses in a setting, one a line. */
export function addresses(text) {
    return (text ?? "")
        .split(/\s+/)
        .filter(Boolean)
        .map((each) => {
            try {
                return new URL(each).href;
            } catch {
                throw new ToolTrouble(`“${each}” is no address of a server: write https://host/mcp.`);
            }
        });
}

async function post(address, message, connection) {
    const headers = {"content-type": "application/json", accept: "application/json, text/event-stream"};
    if (connection?.session) headers["mcp-session-id"] = connection.session;
    if (connection) headers["mcp-protocol-version"] = connection.version;
    try {
        return await fetch(address, {
            method: "POST",
            headers,
            body: JSON.stringify({jsonrpc: "2.0", ...message}),
            credentials: "omit",
            signal: AbortSignal.timeout(MS),
        });
    } catch {
        throw new ToolTrouble(
            `The tools at ${new URL(address).host} cannot be reached. That server must run and allow this page (CORS), \
and the server of this page must be started with --web-connect ${new URL(address).origin}.`,
        );
    }
}

/* The result of a request: of an answer in JSON, or of a stream's event with its number. */
async function ask(address, method, params, connection) {
    const id = ++number;
    const response = await post(address, {id, method, params}, connection);
    if (!response.ok) throw new ToolTrouble(`The tools at ${new URL(address).host} answered ${response.status}.`);
    let told = null;
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
        for await (const event of events(response)) {
            told = JSON.parse(event.data);
            if (told.id === id) break;
        }
    } else {
        told = await response.json();
    }
    if (told?.error) throw new ToolTrouble(`The tools at ${new URL(address).host} say: ${String(told.error.message).slice(0, 300)}`);
    return {result: told?.result ?? {}, session: response.headers.get("mcp-session-id")};
}

async function connect(address) {
    const params = {protocolVersion: VERSION, capabilities: {}, clientInfo: {name: "motet", version: "1"}};
    const {result, session} = await ask(address, "initialize", params, null);
    const connection = {session, version: result.protocolVersion ?? VERSION, tools: []};
    await post(address, {method: "notifications/initialized"}, connection);
    for (let cursor, pages = 0; pages < 20; pages++) {
        const page = (await ask(address, "tools/list", cursor ? {cursor} : {}, connection)).result;
        connection.tools.push(...(page.tools ?? []));
        cursor = page.nextCursor;
        if (!cursor) break;
    }
    return connection;
}

function connected(address) {
    if (!connections.has(address))
        connections.set(
            address,
            connect(address).catch((error) => {
                connections.delete(address);
                throw error;
            }),
        );
    return connections.get(address);
}

/** The tools of the servers in the settings: [{address, tool}]; of a name that two have, the first. */
export async function offered(settings) {
    const found = new Map();
    for (const address of addresses(settings.servers))
        for (const tool of (await connected(address)).tools)
            if (!found.has(tool.name)) found.set(tool.name, {address, tool});
    return [...found.values()];
}

/** The same as a request has them. */
export async function toolsOf(settings) {
    return (await offered(settings)).map(({tool}) => ({
        type: "function",
        name: tool.name,
        description: tool.description,
        parameters: tool.inputSchema,
    }));
}

function rules() {
    try {
        return JSON.parse(localStorage.getItem(RULES) ?? "{}");
    } catch {
        return {};
    }
}

/* "once", "always" or "never", by what was said before or is said now. */
function consent(address, item) {
    const key = `${address} ${item.name}`;
    const known = rules()[key];
    if (known) return Promise.resolve(known);
    return new Promise((resolve) => {
        const choice = (value, label, primary) => h("button", {value, class: primary ? "primary" : null}, label);
        const dialog = h(
            "dialog",
            {class: "card", "aria-labelledby": "consent-title"},
            h(
                "form",
                {method: "dialog"},
                h("h2", {id: "consent-title"}, "May this tool be called?"),
                h("p", {}, "The model wants to call ", h("code", {}, item.name), ` of ${new URL(address).host} with`),
                h("pre", {class: "arguments", tabindex: "0", role: "region", "aria-label": "arguments"}, item.arguments),
                h(
                    "div",
                    {class: "row end"},
                    choice("never", "Never"),
                    choice("no", "Not now"),
                    choice("always", "Always this tool"),
                    choice("once", "Once", true),
                ),
            ),
        );
        dialog.addEventListener("close", () => {
            dialog.remove();
            const said = dialog.returnValue || "no";
            if (said === "always" || said === "never") {
                try {
                    localStorage.setItem(RULES, JSON.stringify({...rules(), [key]: said}));
                } catch {
                    // then it holds for this time
                }
            }
            resolve(said);
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}

/** Forgets what was said of tools. */
export function forgetConsent() {
    localStorage.removeItem(RULES);
}

async function callOne({address}, item) {
    const said = await consent(address, item);
    if (said === "no") return null;
    if (said === "never") return "The person does not allow this tool.";
    const connection = await connected(address);
    const params = {name: item.name, arguments: JSON.parse(item.arguments || "{}")};
    const {result} = await ask(address, "tools/call", params, connection);
    const parts = (result.content ?? []).map((part) => part.text ?? JSON.stringify(part.resource ?? part));
    const text = parts.join("\n") || JSON.stringify(result.structuredContent ?? {});
    return `${result.isError ? "Error: " : ""}${text.slice(0, MOST)}`;
}

/** Results of an answer's calls, where all of them are of such servers and the person agrees; else null. */
export async function results(settings, calls) {
    if (!settings.servers || calls.length === 0) return null;
    const known = new Map((await offered(settings)).map((each) => [each.tool.name, each]));
    if (!calls.every((item) => known.has(item.name))) return null;
    const all = [];
    for (const item of calls) {
        const output = await callOne(known.get(item.name), item).catch((error) => {
            connections.delete(known.get(item.name).address); // its session may have ended
            if (error instanceof ToolTrouble || error instanceof SyntaxError) return `Error: ${error.message}`;
            throw error;
        });
        if (output === null) return null;
        all.push({call: item.call, name: item.name, output});
    }
    return all;
}
