// Calls of this server. Paths are relative ("v1/models"), so that the pages also work below a path of a proxy.

import {askForKey, currentKey} from "./key.js";

/** What a server has refused, in its own words. */
export class Refusal extends Error {
    constructor(status, error) {
        super(error?.message ?? `the server answered ${status}`);
        this.status = status;
        this.code = error?.code ?? null;
        this.parameter = error?.param ?? null;
    }
}

/** The server cannot be reached. */
export class Lost extends Error {
    constructor() {
        super("The server does not answer.");
    }
}

const PAUSES = [300, 600, 1200, 2500, 5000]; // milliseconds between tries
const listeners = [];
let lost = null; // while there is no connection: a promise of one
let hurry = () => {};

/** Calls back with whether there is a connection, whenever that changes. */
export function whenConnected(listener) {
    listeners.push(listener);
}

/** Tries the lost server at once. */
export function tryNow() {
    hurry();
}

async function answers() {
    for (let tries = 0; ; tries++) {
        await new Promise((resolve) => {
            hurry = resolve;
            setTimeout(resolve, PAUSES[Math.min(tries, PAUSES.length - 1)]);
        });
        try {
            await fetch("health", {cache: "no-store", credentials: "omit"});
            return;
        } catch {
            // not yet
        }
    }
}

/** To be called when a connection broke: resolves once the server answers again. */
export function reconnected() {
    if (!lost) {
        lost = answers().then(() => {
            lost = null;
            for (const listener of listeners) listener(true);
        });
        for (const listener of listeners) listener(false);
    }
    return lost;
}

async function refusal(response) {
    const said = await response.json().catch(() => null);
    return new Refusal(response.status, said?.error);
}

async function send(path, options, key) {
    const headers = {...options.headers};
    if (key) headers.authorization = `Bearer ${key}`;
    const raw = options.body instanceof Blob;
    if (options.body !== undefined && !raw) headers["content-type"] = "application/json";
    const body = options.body === undefined || raw ? options.body : JSON.stringify(options.body);
    try {
        return await fetch(path, {
            method: options.method ?? (body === undefined ? "GET" : "POST"),
            body,
            headers,
            signal: options.signal,
            credentials: "omit",
            cache: "no-store",
        });
    } catch (error) {
        if (options.signal?.aborted) throw error;
        reconnected();
        throw new Lost();
    }
}

/** A response of status 2xx; else throws a Refusal. A server that wants a key gets one: the person is asked.
    options: method, body (a Blob as it is, all else as JSON), headers, signal. A Lost is thrown where the server cannot
    be reached. */
export async function call(path, options = {}) {
    for (;;) {
        const key = currentKey();
        const response = await send(path, options, key);
        if (response.ok) return response;
        const why = await refusal(response);
        if (response.status !== 401) throw why;
        // somebody else may have been given one in the meantime
        if (
            currentKey() === key &&
            !(await askForKey(key ? "The key that was given is not one of its keys." : "Ask whoever runs it for one."))
        )
            throw why;
    }
}

/** The same, read as JSON. */
export async function callJson(path, options) {
    return (await call(path, options)).json();
}
