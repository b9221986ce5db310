// What a person has asked stays with them, whatever happens to the page, the browser and its room.

import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import {accessible, ARGUMENTS, ask, chromium, lastText, longer, main, settings, settled, shot, stop, test, until, visit} from "./common.mjs";

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
            assert.equal(await tab.locator(".asked").innerText(), "replay:endless");
        },
    ));

test("300 MB of pictures stay", () =>
    visit(REPLAY, async (tab) => {
        await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const store = await import(`${folder}chat/store.js`);
            for (let i = 0; i < 10; i++) {
                const message = {
                    id: `m${i}`,
                    conversation: `c${i}`,
                    parent: null,
                    created: i,
                    role: "user",
                    text: `picture ${i}`,
                    attachments: [{kind: "image", name: "a", blob: new Blob([new Uint8Array(30e6)])}],
                };
                const conversation = {id: `c${i}`, title: `Picture ${i}`, created: i, updated: i, leaf: message.id};
                await store.saveWhole({...conversation, settings: {}, bytes: 30e6}, [message]);
            }
        });
        await ask(tab, "replay:plain");
        await settled(tab, 2);
        await tab.reload();
        await until(tab, () => document.querySelectorAll("#conversations a").length === 11);
        const bytes = await tab.evaluate(async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const store = await import(`${folder}chat/store.js`);
            const all = await Promise.all(Array.from({length: 10}, (_, i) => store.load(`c${i}`)));
            return all.reduce((sum, {messages}) => sum + [...messages.values()][0].attachments[0].blob.size, 0);
        });
        assert.equal(bytes, 300e6);
        await tab.click("#keeping");
        assert.match(await tab.locator(".keeping p").first().innerText(), /^11 conversations take 300 MB\./);
        await accessible(tab, "what is kept");
        await shot(tab, "keeping");
        await tab.check("#keep-c3");
        await tab.check("#keep-c4");
        await tab.click(".keeping button >> text=Delete");
        await tab.click("button >> text=Delete for ever");
        await until(tab, () => document.querySelectorAll("#conversations a").length === 9);
    }));

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

test("what the first version of the page kept is there", () =>
    visit(
        REPLAY,
        async (tab) => {
            await tab.click("#conversations a >> text=From before");
            await settled(tab, 2);
            assert.equal(await lastText(tab), "an old answer");
            assert.ok(await tab.locator(".question img").evaluate((image) => image.decode().then(() => true)));
            await ask(tab, "replay:plain");
            await settled(tab, 4);
        },
        {
            first: async () => {
                const canvas = Object.assign(document.createElement("canvas"), {width: 8, height: 8});
                const blob = await new Promise((resolve) => canvas.toBlob(resolve));
                const request = indexedDB.open("motet.chat", 1);
                request.onupgradeneeded = () => {
                    request.result.createObjectStore("conversations", {keyPath: "id"});
                    request.result
                        .createObjectStore("messages", {keyPath: "id"})
                        .createIndex("conversation", "conversation");
                };
                const database = await new Promise((resolve) => {
                    request.onsuccess = () => resolve(request.result);
                });
                const transaction = database.transaction(["conversations", "messages"], "readwrite");
                const message = {conversation: "old", created: 1};
                transaction
                    .objectStore("conversations")
                    .put({id: "old", title: "From before", created: 1, updated: 2, leaf: "b", settings: {}, bytes: 9});
                transaction.objectStore("messages").put({
                    ...message,
                    id: "a",
                    parent: null,
                    role: "user",
                    text: "an old question",
                    attachments: [{kind: "image", name: "a.png", blob}],
                });
                transaction.objectStore("messages").put({
                    ...message,
                    id: "b",
                    parent: "a",
                    role: "assistant",
                    status: "done",
                    items: [{type: "text", text: "an old answer"}],
                    times: {},
                });
                await new Promise((resolve) => {
                    transaction.oncomplete = resolve;
                });
                database.close();
            },
        },
    ));

/** The processes of the browser that has its profile in a folder. */
function processes(folder) {
    return fs
        .readdirSync("/proc")
        .filter((name) => /^\d+$/.test(name))
        .filter((pid) => {
            try {
                return fs.readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder);
            } catch {
                return false;
            }
        })
        .map(Number)
        .filter((pid) => pid !== process.pid);
}

async function killed(context, folder) {
    for (const pid of processes(folder)) {
        try {
            process.kill(pid, "SIGKILL");
        } catch {
            // it has ended by itself
        }
    }
    // Closing what is dead may take minutes, and nothing depends on it.
    await Promise.race([context.close().catch(() => {}), new Promise((end) => setTimeout(end, 2000))]);
}

test("a browser that is killed keeps what was asked and answered", async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "motet-profile-"));
    const open = () => chromium.launchPersistentContext(folder, {executablePath: settings.browser, args: ARGUMENTS});
    try {
        const first = await open();
        const tab = first.pages()[0] ?? (await first.newPage());
        await tab.goto(REPLAY);
        await ask(tab, "replay:plain");
        await settled(tab, 2);
        await ask(tab, "replay:endless");
        await until(tab, () => document.querySelector(".running .said")?.textContent.length > 100);
        await killed(first, folder);
        fs.rmSync(path.join(folder, "SingletonLock"), {force: true});
        const second = await open();
        const again = second.pages()[0] ?? (await second.newPage());
        await again.goto(REPLAY);
        await again.click("#conversations a >> text=replay:plain");
        await until(again, () => document.querySelectorAll(".message").length === 4);
        assert.equal(await again.locator(".asked").last().textContent(), "replay:endless");
        assert.equal((await again.locator(".answer .said").first().textContent()).trim(), "This is a plain answer.");
        await until(again, () => document.querySelector(".running .said")?.textContent.length > 200);
        await again.click("#stop");
        await settled(again, 4);
        await killed(second, folder);
    } finally {
        fs.rmSync(folder, {recursive: true, force: true, maxRetries: 20, retryDelay: 100});
    }
});

/** A server of this test's own at a port; resolves once it answers. */
async function serving(port, home) {
    const child = spawn(settings.program, ["serve", settings.model, "--port", String(port), "--speculate", "off", "--threads", "1"], {
        stdio: "ignore",
        env: {...process.env, HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home},
    });
    const ready = () => fetch(`http://127.0.0.1:${port}/ready`).then((response) => response.ok, () => false);
    for (const end = Date.now() + 1000 * settings.patience; !(await ready()); await new Promise((on) => setTimeout(on, 50)))
        assert.ok(child.exitCode === null && Date.now() < end, "the server does not start");
    return child;
}

test("a server that is killed takes nothing that was said with it", async () => {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), "motet-home-"));
    const port = await new Promise((resolve) => {
        const free = net.createServer().listen(0, "127.0.0.1", () => {
            const found = free.address().port;
            free.close(() => resolve(found));
        });
    });
    let server = await serving(port, home);
    try {
        await visit(`http://127.0.0.1:${port}/`, async (tab, visitor) => {
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
            server.kill("SIGKILL");
            await tab.locator("#connection:not([hidden])").waitFor();
            await tab.fill("#question", "in between");
            server = await serving(port, home);
            await tab.locator(".fault >> text=it may have been started anew").waitFor();
            await tab.locator("#connection").waitFor({state: "hidden"});
            assert.ok((await lastText(tab)).length > 200, "what was said stays");
            assert.equal(await tab.inputValue("#question"), "in between");
            await tab.click(".fault >> text=Ask again");
            await longer(tab, 20);
            await stop(tab);
            assert.equal(await tab.locator(".answer .switches").last().innerText(), "2/2");
            await tab.reload();
            await settled(tab, 4);
            assert.equal(await tab.locator(".answer .said").first().innerText(), "This is a plain answer.");
            await tab.click(".answer [aria-label='The branch before']");
            await until(tab, () => [...document.querySelectorAll(".said")].at(-1).textContent.length > 200);
        });
    } finally {
        server.kill("SIGKILL");
        fs.rmSync(home, {recursive: true, force: true, maxRetries: 5});
    }
});

await main("keep");
