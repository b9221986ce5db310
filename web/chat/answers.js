// Answers while they are given. The server gives each as a response in the background: it goes on whether somebody
// reads it or not, and whoever has its id can follow it from any of its events. So a page that is loaded again, or a
// second tab, reads the same answer, and a connection that breaks is picked up where it broke.
//
// An answer is a message {role: "assistant", items, status, response, times, stats}; status is "running", "done",
// "stopped" (halted: by somebody; alone: since nobody followed it), "cut" (no more tokens allowed) or "failed". Items
// are {type: "reasoning" | "text" | "call", ...}. `base` is how many of them, and how much of the last one, were there
// before the response that is being followed.

import {call, reconnected, Refusal} from "../base/api.js";
import {events} from "../base/sse.js";
import {loadMessage, saveMessage} from "./store.js";
import {faultOf} from "./words.js";

const SAVE_MS = 1500;
const FORGET_MS = 5000;
const TRIES = 6; // in a row, of picking up a stream that ended too soon
const BUSY_MS = 1000; // between tries where the server is there and not ready yet

const following = new Map(); // message id: {message, abort, sequence, changed, saved, left, forgotten}

/** The answer of that id while this page follows it, else undefined. */
export function live(id) {
    return following.get(id)?.message;
}

/* What the events of a response say, taken into the message. */

function itemOf(message, index) {
    const base = message.base ?? {count: 0};
    const at = index + base.count;
    return message.items[base.joined ? at - 1 : at];
}

function addItem(message, item, index, now) {
    const base = message.base ?? {count: 0};
    for (const before of message.items)
        if (before.type === "reasoning") before.seconds ??= (now - (before.started ?? now)) / 1000;
    if (base.joined && index === 0) return; // it goes on with the last one
    if (item.type === "reasoning") message.items.push({type: "reasoning", text: "", started: now});
    else if (item.type === "message") message.items.push({type: "text", text: ""});
    else message.items.push({type: "call", call: item.call_id, name: item.name, arguments: item.arguments ?? ""});
}

function addTokens(item, logprobs) {
    if (!logprobs?.length) return;
    item.tokens ??= [];
    for (const each of logprobs)
        item.tokens.push({
            text: each.token,
            logprob: each.logprob,
            others: each.top_logprobs.map((other) => [other.token, other.logprob]),
        });
}

function finish(message, response) {
    const ends = {completed: "done", incomplete: "cut", cancelled: "stopped", failed: "failed"};
    const now = Date.now();
    message.status = ends[response.status] ?? "failed";
    message.error = response.error?.message ?? null;
    message.fault = message.error ? {status: 500} : null;
    message.times.ended ??= now;
    for (const item of message.items)
        if (item.type === "reasoning") item.seconds ??= (now - (item.started ?? now)) / 1000;
    if (response.usage) message.stats = stats(message, response);
}

function stats(message, response) {
    const {usage, timings} = response;
    const seconds = (message.times.ended - (message.times.first ?? message.times.asked)) / 1000;
    return {
        prompt: usage.input_tokens,
        cached: usage.input_tokens_details?.cached_tokens ?? 0,
        tokens: usage.output_tokens,
        reasoning: usage.output_tokens_details?.reasoning_tokens ?? 0,
        first: timings
            ? timings.prompt_ms / 1000
            : message.times.first
              ? (message.times.first - message.times.asked) / 1000
              : null,
        rate: timings ? timings.predicted_per_second : seconds > 0 ? (usage.output_tokens - 1) / seconds : null,
        guessed: timings?.draft_n ?? 0,
        taken: timings?.draft_n_accepted ?? 0,
    };
}

/** Takes an event in; says whether it was the last. */
export function take(message, event) {
    const now = Date.now();
    switch (event.type) {
        case "response.created":
            message.response = event.response.id;
            message.model = event.response.model;
            break;
        case "response.output_item.added":
            message.times.first ??= now;
            addItem(message, event.item, event.output_index, now);
            break;
        case "response.reasoning_text.delta":
        case "response.reasoning_summary_text.delta":
            itemOf(message, event.output_index).text += event.delta;
            break;
        case "response.output_text.delta":
            itemOf(message, event.output_index).text += event.delta;
            addTokens(itemOf(message, event.output_index), event.logprobs);
            break;
        case "response.output_text.done": // has the tokens of blanks, too, which were held back
            if (event.logprobs?.length > 0) {
                const item = itemOf(message, event.output_index);
                item.tokens?.splice(message.base?.joined && event.output_index === 0 ? message.base.tokens : 0);
                addTokens(item, event.logprobs);
            }
            break;
        case "response.function_call_arguments.delta":
            itemOf(message, event.output_index).arguments += event.delta;
            break;
        case "response.function_call_arguments.done":
            itemOf(message, event.output_index).arguments = event.arguments;
            break;
        case "response.completed":
        case "response.incomplete":
        case "response.failed":
            finish(message, event.response);
            return true;
        case "error":
            message.status = "failed";
            message.error = event.message ?? event.error?.message ?? "the server ended the answer";
            return true;
    }
    return false;
}

/* A response is told from its first event on again: all that it has said is forgotten before. */
function rewind(message) {
    const base = message.base ?? {count: 0};
    const started = message.items.slice(base.count).map((item) => item.started);
    const seconds = message.items.slice(base.count).map((item) => item.seconds);
    message.items.length = base.count;
    if (base.joined) {
        const last = message.items.at(-1);
        last.text = last.text.slice(0, base.length);
        last.tokens?.splice(base.tokens);
    }
    return (index) => ({started: started[index], seconds: seconds[index]});
}

async function read(run, response) {
    for await (const event of events(response)) {
        const data = JSON.parse(event.data);
        const last = take(run.message, data);
        run.sequence = data.sequence_number ?? run.sequence;
        if (data.type === "response.created" || Date.now() - run.saved > SAVE_MS) {
            run.saved = Date.now();
            const saved = saveMessage(run.message).catch(() => {});
            // Nothing of an answer is shown before it is written down which one it is: a page that is loaded again
            // then goes on with it.
            if (data.type === "response.created") await saved;
        }
        run.changed();
        if (last) return true;
    }
    return false;
}

function aborted(signal) {
    return new Promise((resolve) => {
        signal.addEventListener("abort", resolve);
    });
}

function pause(ms, signal) {
    return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        signal.addEventListener("abort", () => {
            clearTimeout(timer);
            resolve();
        });
    });
}

/* Reads until the end has come, picking the stream up again where it breaks. */
async function readAll(run, first) {
    let response = first;
    for (let failed = 0; ;) {
        const before = run.sequence;
        let busy = false;
        try {
            response ??= await call(
                `v1/responses/${run.message.response}?stream=true` +
                    (run.sequence >= 0 ? `&starting_after=${run.sequence}` : ""),
                {signal: run.abort.signal},
            );
            if (await read(run, response)) return;
        } catch (error) {
            busy = [502, 503, 504].includes(error.status);
            if ((error instanceof Refusal && !busy) || run.abort.signal.aborted || !run.message.response) throw error;
            // nothing is lost: it goes on in the server, for as long as that allows
            if (!busy) await Promise.race([reconnected(), aborted(run.abort.signal)]);
        }
        response = null;
        failed = busy || run.sequence > before ? 1 : failed + 1;
        if (failed > TRIES || !run.message.response) throw new Error("the connection to the server is lost");
        await pause(busy ? BUSY_MS : 250 * 2 ** failed, run.abort.signal);
    }
}

/* Another tab may have read it to its end, and had it forgotten by the server. */
async function adopt(message) {
    const kept = await loadMessage(message.id).catch(() => null);
    if (!kept || kept.status === "running") return false;
    Object.assign(message, kept);
    return true;
}

/* What is kept here the server need not keep. Other tabs may still be reading the end. */
function forget(id) {
    setTimeout(() => call(`v1/responses/${id}`, {method: "DELETE"}).catch(() => {}), FORGET_MS);
}

async function wasHalted(message) {
    return (await loadMessage(message.id).catch(() => null))?.halted === true;
}

async function follow(run, begin) {
    const {message} = run;
    following.set(message.id, run);
    run.changed();
    try {
        await readAll(run, begin ? await begin() : null);
        // one that was not begun here, and that nobody has stopped
        if (!begin && message.status === "stopped") message.alone = !message.halted && !(await wasHalted(message));
    } catch (error) {
        if (run.left || run.forgotten) return; // what was forgotten is not written down again
        if (error.status !== 404 || !(await adopt(message))) {
            message.status = run.abort.signal.aborted ? "stopped" : "failed";
            message.error = run.abort.signal.aborted ? null : error.message;
            message.fault = run.abort.signal.aborted ? null : faultOf(error);
        }
    } finally {
        following.delete(message.id);
    }
    delete message.unkept;
    const kept = await saveMessage(message).catch((error) => {
        Object.defineProperty(message, "unkept", {value: error, configurable: true}); // for this page alone
        return false;
    });
    if (kept && message.response && message.status !== "failed") forget(message.response);
    run.changed();
}

function runOf(message, changed) {
    return {message, abort: new AbortController(), sequence: -1, changed, saved: 0, left: false, forgotten: false};
}

/* Where the server has lost a picture that it was given before, it is given again; where it loses one for another, they
   are sent along. */
async function ask(body, signal) {
    for (const how of ["known", "anew"]) {
        try {
            return await call("v1/responses", {body: await body(how), signal});
        } catch (error) {
            if (!/upload it again/.test(error.message)) throw error;
        }
    }
    return call("v1/responses", {body: await body("along"), signal});
}

/* Ends an answer of which nothing has been read yet. */
async function endUnseen(response) {
    for await (const event of events(response)) {
        const {id} = JSON.parse(event.data).response;
        return call(`v1/responses/${id}`, {method: "DELETE"});
    }
}

/* Asks. Who stops it before the server has said anything does not wait for that; the answer ends when it does. */
async function asked(run, body) {
    const given = new AbortController(); // of the request and its stream
    const {signal} = run.abort;
    let there = false;
    const response = ask(body, given.signal).finally(() => {
        there = true;
    });
    signal.addEventListener("abort", () => (there || run.left) && given.abort());
    await Promise.race([response, aborted(signal)]);
    if (!there) response.then(endUnseen).catch(() => {});
    signal.throwIfAborted();
    return response;
}

/** Asks for an answer and follows it. body(how): makes the body of the request; how: pictures are given, see urlFor()
    of uploads.js. Resolves at its end. */
export function start(message, body, changed) {
    const run = runOf(message, changed);
    message.status = "running";
    message.error = null;
    message.response = null;
    message.halted = message.alone = false;
    message.times = {asked: Date.now()};
    return follow(run, () => asked(run, body));
}

/** Follows an answer that was begun before this page was loaded, or in another tab. */
export async function resume(message, changed) {
    if (following.has(message.id)) return;
    if (!message.response) {
        // Not saved: another tab may be about to ask.
        message.status = "failed";
        message.error = "The page was closed before the server had the question.";
        message.fault = {};
        changed();
        return;
    }
    const known = rewind(message);
    const run = runOf(message, () => {
        for (const [index, item] of message.items.slice(message.base?.count ?? 0).entries())
            if (item.type === "reasoning") {
                item.started = known(index).started ?? item.started;
                item.seconds = known(index).seconds ?? item.seconds;
            }
        changed();
    });
    await follow(run, null);
}

/** Ends an answer; what it has said stays. */
export async function stop(message) {
    const run = following.get(message.id);
    if (!message.response) {
        run?.abort.abort();
        return;
    }
    message.halted = true;
    await saveMessage(message).catch(() => {}); // before it ends: other pages are to know that somebody wanted it
    await call(`v1/responses/${message.response}/cancel`, {method: "POST"}).catch(() => run?.abort.abort());
}

/** Ends an answer that is not to be kept, followed or not. */
export async function discard(message) {
    const run = following.get(message.id);
    if (run) run.forgotten = true;
    run?.abort.abort();
    if (message.response) await call(`v1/responses/${message.response}`, {method: "DELETE"}).catch(() => {});
}

/** Reads no more of what is running; the answers go on without this page. */
export function leave() {
    for (const run of following.values()) {
        run.left = true;
        run.abort.abort();
    }
    following.clear();
}
