// The stream of events, again and again: a server that restarts, or a laptop that slept, is no reason to reload.

import {call, Refusal} from "../base/api.js";
import {events} from "../base/sse.js";

const MOST = 10000; // milliseconds between tries

function wait(ms) {
    return new Promise((resolve) => {
        setTimeout(resolve, ms);
    });
}

/** Calls take(name, data) for every event, and said(state, sentence) when something changes: "live", "lost", "locked".
    Returns when the person has no key; call it again for another try. */
export async function follow(take, said) {
    for (let pause = 500;; pause = Math.min(2 * pause, MOST)) {
        try {
            for await (const event of events(await call("dashboard/events"))) {
                take(event.name, JSON.parse(event.data));
                said("live", "");
                pause = 500;
            }
            said("lost", "The server has ended the stream.");
        } catch (error) {
            if (error instanceof Refusal && error.status === 401) {
                said("locked", error.message);
                return;
            }
            said("lost", error instanceof Refusal ? error.message : "The server does not answer.");
        }
        await wait(pause);
    }
}
