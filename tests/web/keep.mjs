// What a person has asked stays with them, whatever happens to the page, the browser and its room.

import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import {
    ARGUMENTS,
    accessible,
    ask,
    chromium,
    eventually,
    lastText,
    longer,
    main,
    patiently,
    settings,
    settled,
    shot,
    stop,
    test,
    textOf,
    until,
    visit,
    withServers,
} from "./common.mjs";

const {replay_url: REPLAY} = settings;
const titles = (tab) => tab.locator("#conversations a").allInnerTexts();

/** A file with so many conversations of last year. */
function exported(count) {
    const created = Date.now() - 365 * 24 * 3600 * 1000;
    const conversations = Array.from({length: count}, (_, i) => ({
        id: `c${i}`,
        title: `Imported ${i}`,
        created: created + i,
        updated: created + i,
        leaf: "b",
        settings: {},
        messages: [
            {id: "a", parent: null, role: "user", created, text: `question ${i}`},
            {id: "b", parent: "a", role: "assistant", created, status: "done", items: [{type: "text", text: "answer"}]},
        ],
    }));
    return {
        name: "all.json",
        mimeType: "application/json",
        buffer: Buffer.from(JSON.stringify({format: "motet.chat", version: 1, conversations})),
    };
}

/** For the page: the room that the browser tells of. */
const roomOf = (used, all) => (context) =>
    context.addInitScript(
        ([usage, quota]) => {
            window.told = {usage, quota};
            if (navigator.storage) navigator.storage.estimate = async () => window.told;
        },
        [used, all],
    );

test("importing 600 conversations removes none, and keeps their dates", () =>
    visit(REPLAY, async (tab) => {
        for (const name of ["one", "two"]) {
            await tab.click("#new");
            await ask(tab, `replay:plain ${name}`);
            await settled(tab, 2);
        }
        await tab.setInputFiles("#import-file", exported(600));
        await tab.locator("#notice >> text=600 conversations were added.").waitFor();
        await until(tab, () => document.querySelectorAll("#conversations a").length === 602);
        const all = await titles(tab);
        assert.deepEqual(all.slice(0, 3), ["replay:plain two", "replay:plain one", "Imported 599"]);
        assert.ok(await tab.locator("#conversations h2 >> text=Earlier").isVisible());
        await tab.setInputFiles("#import-file", exported(1));
        await tab.locator("#notice >> text=1 conversation was added.").waitFor();
    }));

test("a question that is shown as sent is on the disk with its conversation", () =>
    visit(
        REPLAY,
        async (tab) => {
            // what the page writes of a conversation after it has shown the question is lost
            await tab.evaluate(() => {
                const real = IDBObjectStore.prototype.put;
                IDBObjectStore.prototype.put = function (value) {
                    const alone = this.name === "conversations" && document.querySelector(".question");
                    return alone ? this.get("nothing") : real.call(this, value);
                };
            });
            await tab.fill("#question", "replay:endless");
            await tab.press("#question", "Enter");
            await tab.locator(".question").waitFor();
            await tab.reload();
            await until(tab, () => document.querySelectorAll("#conversations a").length === 1);
            assert.equal(await textOf(tab.locator(".asked")), "replay:endless");
        },
    ));

test("where the room is nearly full the page says so, and what takes it", () =>
    visit(
        REPLAY,
        async (tab) => {
            await tab.locator("#notice >> text=85 % full").waitFor();
            await accessible(tab, "nearly full");
            await tab.click("#notice >> text=See what takes it");
            await tab.locator(".keeping").waitFor();
        },
        {before: roomOf(850e6, 1000e6)},
    ));

test("where it is full nothing is asked, nothing is lost, and the page says why", () =>
    visit(
        REPLAY,
        async (tab) => {
            await ask(tab, "replay:plain kept");
            await settled(tab, 2);
            await tab.evaluate(() => {
                window.told.usage = 999e6;
            });
            await ask(tab, "replay:plain refused");
            await tab.locator("#notice >> text=There is no more room").waitFor();
            assert.equal(await tab.locator(".message").count(), 2);
            assert.equal(await tab.inputValue("#question"), "replay:plain refused");
            await tab.setInputFiles("#import-file", exported(3));
            await tab.locator("#notice >> text=There is no more room").waitFor();
            assert.deepEqual(await titles(tab), ["replay:plain kept"]);
            await tab.evaluate(() => {
                window.told.usage = 0;
            });
            await tab.press("#question", "Enter");
            await settled(tab, 4);
        },
        {before: roomOf(0, 1000e6)},
    ));

/** For the page: a conversation as the first version of the page kept it. */
async function keptOfOld() {
    const canvas = Object.assign(document.createElement("canvas"), {width: 8, height: 8});
    const blob = await new Promise((resolve) => canvas.toBlob(resolve));
    const request = indexedDB.open("motet.chat", 1);
    request.onupgradeneeded = () => {
        request.result.createObjectStore("conversations", {keyPath: "id"});
        request.result.createObjectStore("messages", {keyPath: "id"}).createIndex("conversation", "conversation");
    };
    const database = await new Promise((resolve) => {
        request.onsuccess = () => resolve(request.result);
    });
    const transaction = database.transaction(["conversations", "messages"], "readwrite");
    const messages = transaction.objectStore("messages");
    const conversation = {id: "old", title: "From before", created: 1, updated: 2, leaf: "b", settings: {}, bytes: 9};
    const both = {conversation: "old", created: 1};
    const attachments = [{kind: "image", name: "a.png", blob}];
    const items = [{type: "text", text: "an old answer"}];
    transaction.objectStore("conversations").put(conversation);
    messages.put({...both, id: "a", parent: null, role: "user", text: "an old question", attachments});
    messages.put({...both, id: "b", parent: "a", role: "assistant", status: "done", items, times: {}});
    await new Promise((resolve) => {
        transaction.oncomplete = resolve;
    });
    database.close();
}

/** For the page: its store. */
const STORE = "import(document.querySelector('script[type=module]').src.replace(/main\\.js$/, 'store.js'))";

/** A browser with its profile in a folder, which can be killed at once with all that it has started. */
async function launched(folder) {
    const options = ["--headless", "--remote-debugging-port=0", "--no-first-run", `--user-data-dir=${folder}`];
    const child = spawn(settings.browser, [...ARGUMENTS, ...options, "about:blank"], {
        stdio: ["ignore", "ignore", "pipe"],
        detached: true, // in a group of its own
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const address = await new Promise((resolve, reject) => {
        let said = "";
        child.stderr.on("data", (piece) => {
            said += piece;
            const found = /DevTools listening on (ws:\S+)/.exec(said);
            if (found) resolve(found[1]);
        });
        ended.then(() => reject(new Error(`the browser has ended: ${said}`)));
    });
    const browser = await chromium.connectOverCDP(address, {timeout: 1000 * settings.patience});
    const [context] = browser.contexts();
    const tab = context.pages()[0] ?? (await context.newPage());
    tab.setDefaultTimeout(1000 * settings.patience);
    await tab.setViewportSize({width: 1280, height: 800});
    return {
        tab,
        async kill() {
            process.kill(-child.pid, "SIGKILL");
            await ended;
            fs.rmSync(path.join(folder, "SingletonLock"), {force: true});
        },
    };
}

test("an upgrade, an import of 600, 300 MB of pictures and a browser that is killed take nothing", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "motet-profile-"));
    let browser = null;
    try {
        browser = await launched(folder);
        let {tab} = browser;
        await tab.route("**/favicon.ico", (route) => route.fulfill({status: 204}));
        await tab.goto(`${REPLAY}health`);
        await tab.evaluate(keptOfOld);
        await tab.goto(REPLAY);
        await tab.setInputFiles("#import-file", exported(600));
        await tab.locator("#notice >> text=600 conversations were added.").waitFor();
        await tab.evaluate(`${STORE}.then(async (store) => {
            for (let i = 0; i < 10; i++) {
                const attachments = [{kind: "image", name: "a", blob: new Blob([new Uint8Array(30e6)])}];
                const about = {id: \`m\${i}\`, conversation: \`p\${i}\`, parent: null, created: i};
                const conversation = {id: \`p\${i}\`, title: \`Picture \${i}\`, created: i, updated: i, leaf: about.id};
                const message = {...about, role: "user", text: \`picture \${i}\`, attachments};
                await store.saveWhole({...conversation, settings: {}, bytes: 30e6}, [message]);
            }
        })`);
        await tab.click("#conversations a >> text=From before");
        await settled(tab, 2);
        await ask(tab, "replay:plain");
        await settled(tab, 4);
        await ask(tab, "replay:endless");
        await longer(tab, 100);
        await browser.kill();

        browser = await launched(folder);
        ({tab} = browser);
        await tab.goto(REPLAY);
        await until(tab, () => document.querySelectorAll("#conversations a").length === 611);
        await tab.click("#conversations a >> text=From before");
        await until(tab, () => document.querySelectorAll(".message").length === 6);
        const asked = await tab.locator(".asked").allTextContents();
        assert.deepEqual(asked, ["an old question", "replay:plain", "replay:endless"]);
        const said = await tab.locator(".answer .said").allTextContents();
        assert.deepEqual(said.slice(0, 2).map((text) => text.trim()), ["an old answer", "This is a plain answer."]);
        assert.ok(await tab.locator(".question img").evaluate((image) => image.decode().then(() => true)));
        await longer(tab, 200); // it goes on
        await stop(tab);
        const sizes = await tab.evaluate(`${STORE}.then(async (store) => {
            const found = await Promise.all(Array.from({length: 10}, (_, i) => store.load(\`p\${i}\`)));
            return found.map(({messages}) => [...messages.values()][0].attachments[0].blob.size);
        })`);
        assert.deepEqual(sizes, Array(10).fill(30e6));
        await tab.click("#keeping");
        assert.match(await tab.locator(".keeping p").first().innerText(), /^611 conversations take 30\d MB\./);
        assert.match(await tab.locator(".keeping li label").first().innerText(), /^Picture \d$/, "the largest first");
        await accessible(tab, "what is kept");
        await shot(tab, "keeping");
        await tab.check("#keep-p3");
        await tab.check("#keep-p4");
        await tab.click(".keeping button >> text=Delete");
        await tab.click("button >> text=Delete for ever");
        await until(tab, () => document.querySelectorAll("#conversations a").length === 609);
    } finally {
        await browser?.kill().catch(() => {});
        fs.rmSync(folder, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
    }
});

test("a server that is killed takes nothing that was said with it", () =>
    withServers(async (serve) => {
        const first = await serve();
        await visit(first.url, async (tab, visitor) => {
            visitor.allowed.push(/ERR_|status of (?:404|503)/);
            await ask(tab, "replay:plain");
            await settled(tab, 2);
            await ask(tab, "replay:endless");
            await longer(tab, 200);
            // a server that has begun to listen, and still reads its model, says 503
            let refused = 0;
            await visitor.context.route("**/v1/responses/*", (route) =>
                refused++ < 2 ? route.fulfill({status: 503, json: {error: {message: "not ready"}}}) : route.continue(),
            );
            first.kill();
            await tab.locator("#connection:not([hidden])").waitFor();
            await tab.fill("#question", "in between");
            await serve([], first.port);
            await tab.locator(".fault >> text=it may have been started anew").waitFor();
            await tab.locator("#connection").waitFor({state: "hidden"});
            assert.ok((await lastText(tab)).length > 200, "what was said stays");
            assert.equal(await tab.inputValue("#question"), "in between");
            await tab.click(".fault >> text=Ask again");
            await longer(tab, 20);
            await stop(tab);
            assert.equal(await textOf(tab.locator(".answer .switches").last()), "2/2");
            await tab.reload();
            await settled(tab, 4);
            assert.equal(await textOf(tab.locator(".answer .said").first()), "This is a plain answer.");
            await tab.click(".answer [aria-label='The branch before']");
            await until(tab, () => [...document.querySelectorAll(".said")].at(-1).textContent.length > 200);
        });
    }));

test("an answer that nobody follows ends, and the page says why", () =>
    withServers(async (serve) => {
        const {url} = await serve(["--background-alone", "1s"]);
        await visit(url, async (tab, {context}) => {
            await ask(tab, "replay:endless");
            await longer(tab, 0);
            const other = await context.newPage();
            await tab.close();
            await patiently(async () => (await (await fetch(`${url}v1/status`)).json()).running === 0, "it ends");
            await other.goto(url);
            await other.click("#conversations a");
            await settled(other, 2);
            await other.locator(".answer >> text=It ended because nobody followed it for 1.0 s.").waitFor();
            assert.ok((await lastText(other)).length > 0, "what it said is there");
            await other.locator("[aria-label='Go on with it']").waitFor();
        });
    }));

/** A picture of noise, so many pixels a side: {name, mimeType, buffer}. */
function noise(tab, name, side) {
    return tab.evaluate(async ([size]) => {
        const canvas = Object.assign(document.createElement("canvas"), {width: size, height: size});
        const c = canvas.getContext("2d"), all = c.createImageData(size, size);
        for (let i = 0, seed = 7; i < all.data.length; i++) {
            seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
            all.data[i] = i % 4 === 3 ? 255 : seed >>> 24;
        }
        c.putImageData(all, 0, 0);
        return canvas.toDataURL().split(",")[1];
    }, [side]).then((bytes) => ({name, mimeType: "image/png", buffer: Buffer.from(bytes, "base64")}));
}

test("what the page promises of pictures the server takes, however little it keeps", () =>
    withServers(async (serve) => {
        const {url} = await serve(["--upload-bytes", "200K", "--max-body", "600K"]);
        await visit(url, async (tab, visitor) => {
            visitor.allowed.push(/status of 4(?:00|13)/);
            await eventually(tab, async () => (await fetch("web/limits")).ok);
            await until(tab, () => document.querySelector("#model").options.length === 1);
            const attached = (count) =>
                until(tab, (wanted) => document.querySelectorAll("#attachments li").length === wanted, count);
            const sides = [200, 210, 320]; // two that it keeps one after the other, one that comes with its question
            for (const [i, side] of sides.entries()) {
                if (side > 300) await tab.click("#new");
                await tab.setInputFiles("#file", await noise(tab, `${side}.png`, side));
                await attached(1);
                await ask(tab, "replay:picture");
                await settled(tab, side > 300 ? 2 : 2 + 2 * i);
                assert.equal(await lastText(tab), "I see a picture of one colour.");
            }
            await tab.setInputFiles("#file", await noise(tab, "large.png", 450));
            await tab.locator("#notice >> text=/large.png: the server takes pictures of up to 4\\d\\d kB/").waitFor();
            assert.equal(await tab.locator("#attachments li").count(), 0);
        });
    }));

await main("keep");
