// What the tests of the pages share: a browser, tabs that watch what happens in them, and a list of tests.

import {createRequire} from "node:module";
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

export const settings = JSON.parse(process.argv[2]);
const require = createRequire(path.join(settings.packages, "x.js"));
export const {chromium} = require("playwright-core");
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf-8");
export const ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"];
const PATIENCE = 1000 * settings.patience; // milliseconds for what must happen; only a test that fails waits so long

const tests = [];
let browser = null;

export function test(name, run) {
    tests.push({name, run});
}

/** A picture for people: only where the runner is told to make some. */
export async function shot(tab, name) {
    if (settings.shots) await tab.screenshot({path: path.join(settings.shots, `${name}.png`)});
}

/** A browser of its own, as far as cookies and all that is kept are concerned. Faults that its tabs see fail the
    test. */
class Visitor {
    constructor(context, origin) {
        this.context = context;
        this.faults = [];
        this.allowed = []; // patterns of console lines that a test expects
        context.on("page", (page) => this.watch(page, origin));
    }

    watch(page, origin) {
        page.setDefaultTimeout(PATIENCE);
        page.on("console", (message) => {
            if (["error", "warning"].includes(message.type())) this.faults.push(`console: ${message.text()}`);
        });
        page.on("pageerror", (error) => this.faults.push(`error: ${error.stack}`));
        page.on("dialog", (dialog) => {
            this.faults.push(`dialog: ${dialog.message()}`);
            dialog.dismiss();
        });
        page.on("request", (request) => {
            const url = request.url();
            if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:"))
                this.faults.push(`request: ${url}`);
        });
    }

    check() {
        const left = this.faults.filter((fault) => !this.allowed.some((pattern) => pattern.test(fault)));
        assert.deepEqual(left, []);
    }
}

export function launch(executablePath) {
    return chromium.launch({executablePath, args: ARGUMENTS});
}

/** Runs work(tab, visitor) with a page of a server. options: of the context; within: another browser; before(context):
    before anything is loaded; first: runs in another page of the same origin before this one is loaded. */
export async function visit(url, work, options = {}) {
    const {before, first, within, ...rest} = options;
    const context = await (within ?? browser).newContext({viewport: {width: 1280, height: 800}, colorScheme: "light", ...rest});
    const visitor = new Visitor(context, new URL(url).origin);
    try {
        if (before) await before(context);
        const tab = await context.newPage();
        if (first) {
            await tab.route("**/favicon.ico", (route) => route.fulfill({status: 204}));
            await tab.goto(`${url}health`);
            await tab.evaluate(first);
        }
        await tab.goto(url);
        await work(tab, visitor);
        visitor.check();
    } finally {
        await context.close();
    }
}

/** What axe-core finds, as lines; an empty list is what is wanted. rules: those that are tried, where not all are. */
export async function barriers(tab, rules) {
    if (!(await tab.evaluate(() => "axe" in window))) await tab.evaluate(AXE);
    const {violations} = await tab.evaluate(
        // every file of the page is its own: nothing has to be loaded to be looked at
        (runOnly) => window.axe.run(document, {resultTypes: ["violations"], preload: false, ...(runOnly && {runOnly})}),
        rules,
    );
    return violations.flatMap((each) => each.nodes.map((node) => `${each.id}: ${node.target} ${node.failureSummary}`));
}

export async function accessible(tab, where, rules) {
    // of colours: those of what is not on the screen may stand still for ever
    await tab.evaluate(() => document.getAnimations().forEach((each) => each instanceof CSSTransition && each.finish()));
    assert.deepEqual(await barriers(tab, rules), [], where);
}

const COLOURS = ["color-contrast", "link-in-text-block"]; // what axe-core looks at that a colour can change

/** In light and in dark colours; the page is left in light ones. */
export async function accessibleInBoth(tab, where) {
    await accessible(tab, where);
    await tab.emulateMedia({colorScheme: "dark"});
    await accessible(tab, `${where}, dark`, COLOURS);
    await tab.emulateMedia({colorScheme: "light"});
}

/** Until the check, in the page, gives something true. */
export function until(tab, check, argument) {
    return tab.waitForFunction(check, argument, {timeout: PATIENCE});
}

/** Until a check here gives something true, or a promise of it. */
export async function patiently(check, what = String(check)) {
    const end = Date.now() + PATIENCE;
    for (; !(await check()); await new Promise((on) => setTimeout(on, 20)))
        assert.ok(Date.now() < end, `never true: ${what}`);
}

/** The same of one in the page that gives a promise. */
export function eventually(tab, check, argument) {
    return patiently(() => tab.evaluate(check, argument), String(check));
}

/* A server of a test's own, at a port or at any: {port, url, kill}. It answers when this resolves. */
async function serving(home, options = [], port = 0, models = [settings.model]) {
    const words = ["serve", ...models, "--port", String(port), "--speculate", "off", "--threads", "1", ...options];
    const child = spawn(settings.program, words, {
        stdio: ["ignore", "ignore", "pipe"],
        env: {...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home},
    });
    let said = "";
    child.stderr.on("data", (piece) => {
        said += piece;
    });
    const address = () => /server\.listening[^\n]*?http:\/\/[^ "\n]*:(\d+)/.exec(said)?.[1];
    const ready = () => fetch(`http://127.0.0.1:${address()}/ready`).then((response) => response.ok, () => false);
    await patiently(async () => {
        assert.ok(child.exitCode === null && child.signalCode === null, `the server does not start: ${said}`);
        return address() && ready();
    }, "the server is ready");
    return {port: Number(address()), url: `http://127.0.0.1:${address()}/`, kill: () => child.kill("SIGKILL")};
}

/** Runs work(serve) with serve(options, port, models), which starts servers that end with it. */
export async function withServers(work) {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "motet-home-"));
    const all = [];
    try {
        await work(async (...how) => {
            all.push(await serving(home, ...how));
            return all.at(-1);
        });
    } finally {
        for (const each of all) each.kill();
        fs.rmSync(home, {recursive: true, force: true, maxRetries: 5});
    }
}

// What people do on the chat page.

export async function ask(tab, text) {
    await tab.fill("#question", text);
    await tab.press("#question", "Enter");
}

/** The number of messages, none of them being given any more. */
export function settled(tab, count) {
    return until(
        tab,
        (wanted) =>
            document.querySelectorAll(".message").length === wanted &&
            !document.querySelector(".running") &&
            !document.querySelector("#send").hidden,
        count,
    );
}

/** What an element of a message shows. Of a message that was not laid out yet, innerText alone is empty. */
export function textOf(locator) {
    return locator.evaluate((element) => {
        const {style} = element.closest(".message") ?? element;
        style.contentVisibility = "visible";
        const text = element.innerText;
        style.contentVisibility = "";
        return text;
    });
}

export function lastText(tab) {
    return textOf(tab.locator(".answer .said").last());
}

/** Until the last answer, which is still being given, has more characters than so many. */
export async function longer(tab, than) {
    await until(tab, (least) => document.querySelector(".running .said")?.textContent.length > least, than);
    return (await lastText(tab)).length;
}

export async function stop(tab) {
    await tab.click("#stop");
    await until(tab, () => !document.querySelector(".running") && !document.querySelector("#send").hidden);
    await tab.locator("text=Stopped.").last().waitFor();
}

/** Presses a button of a conversation in the list, even where the list is made anew in this moment. */
export async function press(tab, label) {
    await tab.locator(`#conversations [aria-label=${JSON.stringify(label)}]`).evaluate((button) => button.click());
}

export async function set(tab, values) {
    await tab.click("#show-settings");
    await tab.evaluate(() =>
        document.querySelectorAll("#settings details").forEach((node) => {
            node.open = true;
        }),
    );
    for (const [key, value] of Object.entries(values)) await tab.fill(`#set-${key}`, value);
    await tab.click("#hide-settings");
}

/** For the page: the next answer is a stream that the test writes. */
export function streamed() {
    const real = window.fetch;
    const coder = new TextEncoder();
    let number = 0;
    window.fetch = (address, options) => {
        if (address !== "v1/responses") return real(address, options);
        const body = new ReadableStream({
            start(controller) {
                window.say = (type, more) => {
                    const event = JSON.stringify({type, sequence_number: number++, output_index: 0, ...more});
                    controller.enqueue(coder.encode(`event: ${type}\ndata: ${event}\n\n`));
                    if (type === "response.completed") controller.close();
                };
            },
        });
        return Promise.resolve(new Response(body, {headers: {"content-type": "text/event-stream"}}));
    };
}

/** Runs the tests of a program and ends it. */
export async function main(name) {
    browser = await launch(settings.browser);
    let passed = 0,
        failed = 0;
    for (const each of tests) {
        if (settings.tests.length > 0 && !settings.tests.some((name) => each.name.startsWith(name))) continue;
        const start = Date.now();
        try {
            await each.run();
            passed++;
            console.log(`ok ${each.name} ${((Date.now() - start) / 1000).toFixed(1)} s`);
        } catch (error) {
            failed++;
            console.log(`FAILED ${each.name}: ${error.stack}`);
        }
    }
    console.log(`web_${name}: ${passed} passed, ${failed} failed, 0 skipped`);
    await browser.close();
    process.exit(failed > 0 ? 1 : 0); // whatever a browser that was killed has left open
}
