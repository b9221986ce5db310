// The chat page in all its states, light and dark, wide and on a phone: none has a barrier for who uses a keyboard or
// hears the page, and a browser may install it.

import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import {
    accessible,
    accessibleInBoth,
    ask,
    launch,
    longer,
    main,
    set,
    settings,
    settled,
    stop,
    test,
    until,
    visit,
} from "./common.mjs";

const {replay_url: REPLAY} = settings;
const PHONE = {viewport: {width: 390, height: 780}, hasTouch: true, isMobile: true};
const TOOLS = '[{"name": "get_weather", "parameters": {"type": "object"}}]';
const MODELS = [
    {id: "one", state: "ready", memory: 3e9, max_model_len: 8192, capabilities: ["chat", "vision"]},
    {id: "two", state: "unloaded", memory: 0, memory_needed: 5e9, capabilities: ["chat"]},
    {id: "three", state: "unloaded", memory: 0, error: "there is no memory for it", capabilities: ["chat"]},
];

async function sidebar(tab, work) {
    const hidden = !(await tab.isVisible("#sidebar"));
    if (hidden) await tab.click("#show-sidebar");
    await work();
    if (await tab.isVisible("#hide-sidebar")) await tab.click("#hide-sidebar");
    if (!hidden) await tab.click("#show-sidebar");
}

/** Each state: what leads to it, with a page that had the ones before. One that does not last looks at the page itself. */
const STATES = {
    "an answer that is given": async (tab) => {
        await ask(tab, "replay:endless");
        await longer(tab, 100);
    },
    "an answer that was stopped": stop,
    "an answer of all kinds": async (tab) => {
        await ask(tab, "replay:rich");
        await settled(tab, 4);
    },
    "a question that is edited": async (tab) => {
        await tab.locator(".question").last().hover();
        await tab.locator("[aria-label='Edit the question']").last().click();
        await tab.locator(".editing textarea").waitFor();
    },
    "branches": async (tab) => {
        await tab.keyboard.press("Escape");
        await tab.click("[aria-label='Answer again'] >> nth=-1");
        await until(tab, () => document.querySelector(".switches"));
        await settled(tab, 4);
    },
    "calls and fields for their results": async (tab) => {
        await set(tab, {tools: TOOLS});
        await ask(tab, "replay:weather");
        await tab.locator("form.results").waitFor();
        await tab.locator(".reasoning summary").last().click();
    },
    "a call and its result": async (tab) => {
        await tab.fill("form.results textarea", "sunny");
        await tab.click("text=Give the result");
        await settled(tab, 8);
    },
    "a setting with a fault": async (tab) => {
        await set(tab, {temperature: "9"});
        await tab.fill("#question", "x");
        await tab.press("#question", "Enter");
        await tab.locator("#notice >> text=A number from 0 to 2").waitFor();
    },
    "the settings": async (tab) => {
        await tab.click("#notice >> text=Open the settings");
        await tab.locator("#set-temperature").waitFor();
    },
    "a search that finds nothing": async (tab, look) => {
        await tab.click("#hide-settings");
        await sidebar(tab, async () => {
            await tab.fill("#search", "nothing has this");
            await tab.locator("#conversations >> text=Nothing was found.").waitFor();
            await look();
            await tab.fill("#search", "");
            await tab.locator("#conversations a").waitFor();
        });
    },
    "the question before a conversation is forgotten": async (tab, look) => {
        await sidebar(tab, async () => {
            await tab.locator("[aria-label^='Forget']").first().evaluate((button) => button.click());
            await tab.locator("dialog >> text=Forget this conversation?").waitFor();
            await look();
            await tab.click("dialog >> text=Cancel");
        });
    },
    "what is kept, and the question before some of it is deleted": async (tab, look) => {
        await sidebar(tab, async () => {
            await tab.click("#keeping");
            await tab.locator(".keeping input").first().check();
            await tab.click(".keeping button >> text=Delete");
            await tab.locator(".keeping >> text=Delete for ever").last().waitFor();
            await look();
            await tab.click(".keeping button >> text=Keep");
            await tab.click(".keeping button >> text=Close");
        });
    },
    "models": async (tab) => {
        await tab.click("#models");
        await tab.locator("dialog .models li").nth(2).waitFor();
    },
};

async function walk(tab, visitor) {
    await visitor.context.route("**/v1/models", (route) => route.fulfill({json: {data: MODELS}}));
    await tab.reload();
    await until(tab, () => document.querySelector("#model").options.length === 3);
    await accessibleInBoth(tab, "the empty page");
    for (const [name, lead] of Object.entries(STATES)) {
        let seen = false;
        const look = () => {
            seen = true;
            return accessibleInBoth(tab, name);
        };
        await lead(tab, look);
        if (!seen) await look();
        const over = await tab.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(over <= 0, `${name}: ${over} pixels wider than the window`);
    }
}

test("no state of the page has a barrier, light or dark", () => visit(REPLAY, walk));
test("nor on a phone, without motion", () => visit(REPLAY, walk, {...PHONE, reducedMotion: "reduce"}));

async function installable(tab, visitor) {
    const browser = await visitor.context.newCDPSession(tab);
    const {errors, data} = await browser.send("Page.getAppManifest");
    assert.deepEqual(errors, []);
    assert.equal(JSON.parse(data).name, "motet");
    const {installabilityErrors} = await browser.send("Page.getInstallabilityErrors");
    assert.deepEqual(
        installabilityErrors.map(({errorId}) => errorId).filter((id) => id !== "in-incognito"),
        [],
    );
}

test("nor has the page that a benchmark writes, light, dark and on a phone", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "motet-bench-"));
    try {
        const file = path.join(folder, "page.html");
        const few = ["--prompt", "8", "--tokens", "2", "--depth", "8", "--picture", "56", "--threads", "1"];
        const box = path.join(settings.root, "models", "box");
        execFileSync(settings.program, ["bench", box, ...few, "--plot", file], {stdio: "ignore"});
        const body = fs.readFileSync(file, "utf8");
        const before = (context) =>
            context.route(`${REPLAY}bench`, (route) => route.fulfill({contentType: "text/html; charset=utf-8", body}));
        for (const options of [{}, {colorScheme: "dark"}, PHONE])
            await visit(
                `${REPLAY}bench`,
                async (tab) => {
                    assert.ok((await tab.locator("svg").count()) > 4);
                    for (const picture of await tab.locator("svg").all())
                        assert.match(await picture.getAttribute("aria-label"), /\w+ \w+/);
                    assert.equal(await tab.locator("main").count(), 1);
                    await accessible(tab, `a benchmark, ${JSON.stringify(options)}`);
                },
                {before, ...options},
            );
    } finally {
        fs.rmSync(folder, {recursive: true, force: true});
    }
});

test("a browser may install the page", async () => {
    const whole = await launch(settings.chromium); // one without windows knows of no applications
    try {
        await visit(REPLAY, installable, {within: whole});
    } finally {
        await whole.close();
    }
});

await main("states");
