// The figures above the score: each a number as of the end of the time that is looked at, and a small chart of it.

import {h} from "../base/dom.js";
import {chart} from "./chart.js";
import {bytes, percent, short, span} from "./format.js";

const RECENT = 5; // seconds that a rate is the mean of

const column = (name) => (store, row) => store.value(row, name);
const share = (part, ...whole) => (store, row) => {
    const all = whole.reduce((sum, name) => sum + (store.value(row, name) ?? 0), 0);
    return all > 0 ? 100 * store.value(row, part) / all : null;
};
const each = (part, whole) => whole > 0 ? part / whole : null;
const rate = (name) => (store, time) => store.sum(name, time - RECENT, time) / RECENT;

/* The time that a part of all that were counted does not exceed, in milliseconds. */
function quantile(times, part) {
    const all = times.reduce((sum, [, count]) => sum + count, 0);
    let below = 0;
    for (const [ms, count] of times)
        if ((below += count) >= part * all)
            return ms;
    return null;
}

const now = (name) => (store, time) => store.value(store.rows[store.rowAfter(time) - 1], name);
const milliseconds = (value) => value === null ? "–" : span(value / 1e3);
const ended = ["ended_stop", "ended_length"];
const errors = ["http_4xx", "http_5xx", "ended_error"];

function timed(title, name, help) {
    return {
        title, help, unit: "", write: milliseconds,
        value: (store, time, begin) => milliseconds(quantile(store.times(`${name}_times`, begin, time), 0.5)),
        note: (store, time, begin) => {
            const times = store.times(`${name}_times`, begin, time);
            return `90 %: ${milliseconds(quantile(times, 0.9))} · 99 %: ${milliseconds(quantile(times, 0.99))}`;
        },
        series: [{read: column(`${name}_p99_ms`), ink: "quiet", dash: [2, 2]},
                 {read: column(`${name}_p90_ms`), ink: "quiet"}, {read: column(`${name}_p50_ms`), ink: "ink"}],
    };
}

const FIGURES = [
    {
        title: "Running", help: "answers that take part in steps, and those that wait for a seat",
        value: (store, time) => short(now("running")(store, time)),
        unit: (store) => `of ${short(store.head.seats)}`,
        note: (store, time) => `${short(now("waiting")(store, time))} waiting`,
        series: [{read: column("waiting"), ink: "cached"}, {read: column("running"), ink: "ink"}],
    },
    {
        title: "Tokens out", help: "tokens of answers", unit: "/s",
        value: (store, time) => short(rate("generated_tokens")(store, time)),
        note: (store, time) => `${short(ended.reduce((sum, name) => sum + rate(name)(store, time), 0))} answers/s`,
        series: [{read: column("generated_tokens"), ink: "ink"}],
    },
    {
        title: "Tokens in", help: "tokens of prompts: computed, and found in the cache", unit: "/s",
        value: (store, time) => short(rate("prefilled_tokens")(store, time)),
        note: (store, time) => `and ${short(rate("cached_tokens")(store, time))}/s from the cache`,
        series: [{read: column("cached_tokens"), ink: "cached"}, {read: column("prefilled_tokens"), ink: "prompt"}],
    },
    {
        title: "Batch", help: "rows that are computed together in a step", unit: "rows a step",
        value: (store, time) => short(each(rate("rows")(store, time), rate("steps")(store, time))),
        note: (store, time) => `${short(rate("steps")(store, time))} steps/s`,
        series: [{read: (store, row) => each(store.value(row, "rows"), store.value(row, "steps")), ink: "ink"}],
    },
    timed("First token", "first_token", "from arrival to the first token: half of the answers in the time shown need no more"),
    timed("Between tokens", "between_tokens", "between one token and the next: half of those in the time shown need no more"),
    {
        title: "Found", help: "tokens of prompts that were in the cache", unit: "% of prompts",
        value: (store, time) => {
            const all = store.sum("prompt_tokens", time - 60, time);
            return all > 0 ? short(Math.round(100 * store.sum("cached_tokens", time - 60, time) / all)) : "–";
        },
        note: (store, time) => `cache ${percent(now("pages_held")(store, time), store.head.pages)} in use`,
        most: 100, write: (v) => `${v} %`,
        series: [{read: share("cached_tokens", "prompt_tokens"), ink: "cached"}],
    },
    {
        title: "Memory", help: "of the process, against --memory", unit: "",
        value: (store, time) => bytes(now("resident_bytes")(store, time)),
        note: (store) => `of ${bytes(store.head.memory?.budget)}`,
        most: (store) => store.head.memory?.budget, write: bytes,
        series: [{read: column("resident_bytes"), ink: "ink"}],
    },
    {
        title: "Guessed right", help: "tokens guessed ahead that were the model's own", unit: "%",
        value: (store, time) => {
            const all = store.sum("guessed_tokens", time - 60, time);
            return all > 0 ? short(Math.round(100 * store.sum("guesses_taken", time - 60, time) / all)) : "–";
        },
        note: (store, time) => `${short(rate("guesses_taken")(store, time))} tokens/s gained`,
        most: 100, write: (v) => `${v} %`,
        series: [{read: share("guesses_taken", "guessed_tokens"), ink: "taken"}],
    },
    {
        title: "Errors", help: "calls refused or failed, in the time that is shown", unit: "",
        value: (store, time, begin) => short(errors.reduce((sum, name) => sum + store.sum(name, begin, time), 0)),
        note: (store, time, begin) => `${short(store.sum("http_5xx", begin, time))} the server's own`,
        series: [{read: (store, row) => errors.reduce((sum, name) => sum + store.value(row, name), 0), ink: "bad"}],
    },
];

const of = (what, ...rest) => typeof what === "function" ? what(...rest) : what;

/** Makes them within an element; returns what draws them anew. */
export function makeFigures(element, store, view) {
    const parts = FIGURES.map((figure) => {
        const value = h("span", {class: "value"}), unit = h("span", {class: "unit"}), note = h("p", {class: "note"});
        const canvas = h("canvas", {"aria-hidden": "true"});
        element.append(h("section", {class: "figure", title: figure.help},
                         h("h3", {}, figure.title), h("p", {class: "number"}, value, " ", unit), canvas, note));
        return {figure, value, unit, note, canvas};
    });
    return () => {
        const time = Math.min(view.end, store.now), begin = view.begin;
        for (const {figure, value, unit, note, canvas} of parts) {
            value.textContent = figure.value(store, time, begin);
            unit.textContent = of(figure.unit, store) ?? "";
            note.textContent = figure.note(store, time, begin);
            chart(canvas, store, view, figure.series, {most: of(figure.most, store), write: figure.write});
        }
    };
}
