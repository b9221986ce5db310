// Measures frames while a table of 50 KB streams at 200 tokens/s: how far apart they are, and the longest tasks of the
// page's main thread, in all and in time of the processor, which other work on the machine does not lengthen. Runs where
// it is named (tests/web/run.py --motet PROGRAM frames) and fails for no time: figures are for people, on an idle machine.

import assert from "node:assert/strict";
import {ask, main, settings, settled, streamed, test, until, visit} from "./common.mjs";

const BYTES = 50000;
const RATE = 200; // tokens/s
const TOKEN = 4; // bytes
const TASK = "RunTask";

/** The main thread's tasks: {at, all, own, parts}, when one began, its time in all and that of the processor, in
    milliseconds, and the names of what was done in it, the longest first. */
function tasks(trace) {
    const threads = new Set();
    for (const {name, pid, tid, args} of trace)
        if (name === "thread_name" && args.name === "CrRendererMain") threads.add(`${pid} ${tid}`);
    const events = trace
        .filter(({ph, pid, tid, tdur}) => ph === "X" && tdur !== undefined && threads.has(`${pid} ${tid}`))
        .sort((a, b) => a.ts - b.ts || b.dur - a.dur);
    const found = [];
    let task = null;
    for (const event of events) {
        if (event.name === TASK) {
            task = {at: event.ts / 1000, end: event.ts + event.dur, all: event.dur / 1000, own: event.tdur / 1000, parts: []};
            found.push(task);
        } else if (task && event.ts < task.end) {
            task.parts.push([event.tdur / 1000, event.name]);
        }
    }
    for (const each of found) each.parts.sort((a, b) => b[0] - a[0]);
    return found;
}

const described = (values) => {
    const sorted = [...values].sort((a, b) => a - b);
    const at = (share) => (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(1);
    return `${sorted.length}: median ${at(0.5)} ms, 99 of 100 up to ${at(0.99)} ms, longest ${at(1)} ms, ${sorted.filter((ms) => ms > 50).length} above 50 ms`;
};

test("a table of 50 KB streams at 200 tokens/s", () =>
    visit(settings.replay_url, async (tab) => {
        const browser = tab.context().browser();
        await tab.evaluate(streamed);
        await ask(tab, "a table");
        await until(tab, () => window.say);
        await browser.startTracing(tab, {
            categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata"],
        });
        const {gaps, seconds, rows} = await tab.evaluate(
            async ({bytes, rate}) => {
                let text = "| a | b | c |\n|---|---|---|\n";
                for (let i = 0; text.length < bytes; i++) text += `| *cell* ${i} | \`code\` ${i} | some words |\n`;
                window.say("response.created", {response: {id: "resp_table", model: "m"}});
                window.say("response.output_item.added", {item: {type: "message"}});
                const times = [];
                let going = true;
                const frame = (time) => {
                    times.push(time);
                    if (going) requestAnimationFrame(frame);
                };
                requestAnimationFrame(frame);
                const start = performance.now();
                for (let at = 0; at < text.length; ) {
                    await new Promise((resolve) => setTimeout(resolve, 5));
                    const due = Math.min(text.length, Math.floor(((performance.now() - start) / 1000) * rate));
                    for (; at < due; at += 4) window.say("response.output_text.delta", {delta: text.slice(at, at + 4)});
                }
                going = false;
                return {
                    gaps: times.slice(1).map((time, i) => time - times[i]),
                    seconds: (performance.now() - start) / 1000,
                    rows: document.querySelectorAll("tbody tr").length,
                };
            },
            {bytes: BYTES, rate: RATE * TOKEN},
        );
        const trace = JSON.parse(await browser.stopTracing()).traceEvents;
        const found = tasks(trace);
        assert.ok(rows > 1000 && found.length > 1000);
        console.log(`${rows} rows in ${seconds.toFixed(1)} s`);
        console.log(`frames apart: ${described(gaps)}`);
        console.log(`tasks: ${described(found.map(({all}) => all))}`);
        console.log(`tasks, time of the processor: ${described(found.map(({own}) => own))}`);
        for (const {at, own, parts} of [...found].sort((a, b) => b.own - a.own).slice(0, 5)) {
            const said = parts.slice(0, 6).map(([ms, name]) => `${name} ${ms.toFixed(1)}`);
            console.log(`  ${own.toFixed(1)} ms after ${((at - found[0].at) / 1000).toFixed(1)} s: ${said.join(", ")}`);
        }
        await tab.evaluate(() => {
            const response = {id: "resp_table", status: "completed", usage: {input_tokens: 1, output_tokens: 1}};
            window.say("response.completed", {response});
        });
        await settled(tab, 2);
    }));

await main("frames");
