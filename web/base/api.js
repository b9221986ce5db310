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

async function refusal(response) {
    const said = await response.json().catch(() => null);
    return new Refusal(response.status, said?.error);
}

function send(path, options, key) {
    const headers = {...options.headers};
    if (key) headers.authorization = `Bearer ${key}`;
    if (options.body !== undefined) headers["content-type"] = "application/json";
    return fetch(path, {
        method: options.method ?? (options.body === undefined ? "GET" : "POST"),
        body: options.body === undefined ? undefined : JSON.stringify(options.body),
        headers,
        signal: options.signal,
        credentials: "omit",
        cache: "no-store",
    });
}

/** A response of status 2xx; else throws a Refusal. A server that wants a key gets one: the person is asked.
    options: method, body (becomes JSON), headers, signal. */
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
