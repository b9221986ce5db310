// What else a page of this kind is expected to have: a gauge of the context, models and their states, presets, pins, copies,
// a search that leads to its hit, exports of other programs, tools of MCP servers, an application that is installed.

import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import http from "node:http";
import {
    accessible,
    ask,
    lastText,
    main,
    patiently,
    press,
    set,
    settings,
    settled,
    shot,
    test,
    textOf,
    until,
    visit,
    withServers,
} from "./common.mjs";

const {replay_url: REPLAY, tools_port: PORT} = settings;
const titles = async (tab) => (await tab.locator("#conversations a").allInnerTexts()).join("|");
const listed = (tab, wanted) =>
    until(
        tab,
        (text) => [...document.querySelectorAll("#conversations a")].map((a) => a.textContent).join("|") === text,
        wanted,
    );

test("the gauge says how much of the context is in use", () =>
    visit(REPLAY, async (tab, visitor) => {
        await ask(tab, "replay:plain");
        await settled(tab, 2);
        await until(tab, () => document.querySelector("#gauge").innerText.includes("131,072"));
        const [, used, , left] = /^\s*([\d,]+) of 131,072 tokens in use \(([\d,]+) cached\), ([\d,]+) left\s*$/
            .exec(await tab.locator("#gauge").innerText())
            .map((text) => Number(text.replaceAll(",", "")));
        assert.equal(used + left, 131072);
        const [, said, read] = /^(\d+) tokens .* of (\d+) prompt tokens cached$/.exec(await textOf(tab.locator(".stats")));
        assert.equal(used, Number(said) + Number(read));
        await accessible(tab, "the gauge");
        await visitor.context.route("**/v1/models", async (route) => {
            const response = await route.fetch();
            const told = await response.json();
            for (const each of told.data) each.max_model_len = 20;
            await route.fulfill({response, json: told});
        });
        await tab.reload();
        await tab.locator("#gauge >> text=When it is full the server refuses").waitFor();
    }));

test("models are shown with their state and what they can do", () =>
    visit(REPLAY, async (tab, visitor) => {
        const asked = [];
        const models = [
            {id: "one", state: "ready", memory: 3e9, max_model_len: 8192, capabilities: ["chat", "vision", "tools"]},
            {id: "two", state: "unloaded", memory: 0, memory_needed: 5e9, capabilities: ["chat", "thinking"]},
            {id: "three", state: "unloaded", memory: 0, memory_needed: 9e12, too_large: true, capabilities: ["chat"]},
            {id: "four", parent: "one", state: "ready", memory: 1e6, capabilities: ["chat"]},
        ];
        await visitor.context.route("**/v1/models", (route) => route.fulfill({json: {data: models}}));
        await visitor.context.route(/tokenize|unload/, (route) => {
            asked.push([new URL(route.request().url()).pathname, route.request().postDataJSON().model]);
            models[1].state = "ready";
            return route.fulfill({json: {}});
        });
        await tab.reload();
        await until(tab, () => document.querySelector("#model").options.length === 4);
        await tab.click("#models");
        const rows = tab.locator(".models li");
        assert.match(await rows.nth(0).innerText(), /loaded · 3\.0 GB · 8,192 tokens · sees · calls tools/);
        assert.match(await rows.nth(1).innerText(), /on disk · needs 5\.0 GB · thinks/);
        assert.match(await rows.nth(2).innerText(), /too large for this server · needs 9000\.0 GB/);
        assert.equal(await rows.nth(2).locator('button >> text="Load"').count(), 0);
        assert.match(await rows.nth(3).innerText(), /loaded · adapter of one/);
        await accessible(tab, "models");
        await shot(tab, "models");
        await rows.nth(1).locator("text=Load").click();
        await rows.nth(1).locator("button >> text=Unload").waitFor();
        await rows.nth(0).locator("button >> text=Unload").click();
        await rows.nth(1).locator("button >> text=Use").click();
        assert.equal(await tab.inputValue("#model"), "two");
        assert.deepEqual(asked, [["/tokenize", "two"], ["/v1/models/unload", "one"]]);
    }));

test("a server's models are loaded, unloaded and followed", () =>
    withServers(async (serve) => {
        const models = ["--model", `one=${settings.model}`, "--model", `two=${settings.model}`];
        const server = await serve(["--allow-pull", ...models], 0, []);
        const states = async () => {
            const {data} = await (await fetch(`${server.url}v1/models`)).json();
            return data.map((each) => `${each.id} ${each.state}`).join(", ");
        };
        await visit(server.url, async (tab) => {
            const options = () => tab.locator("#model option").allInnerTexts();
            await until(tab, () => document.querySelector("#model").options.length === 2);
            await tab.selectOption("#model", "one");
            await ask(tab, "replay:plain");
            await settled(tab, 2);
            assert.equal(await lastText(tab), "This is a plain answer.");
            assert.equal(await states(), "one ready, two unloaded");
            await tab.click("#models");
            const row = (name) => tab.locator(`.models li:has(b:text-is("${name}"))`);
            await row("two").locator('button >> text="Load"').click();
            await row("two").locator("button >> text=Unload").waitFor();
            assert.equal(await states(), "one ready, two ready");
            assert.match(await row("two").innerText(), /loaded · /);
            await row("one").locator("button >> text=Unload").click();
            await row("one").locator('button >> text="Load"').waitFor();
            assert.equal(await states(), "one unloaded, two ready");
            assert.match(await row("one").innerText(), /on disk · needs /);
            // what others do is seen while the models are shown
            await fetch(`${server.url}v1/models/unload`, {method: "POST", body: JSON.stringify({model: "two"})});
            await row("two").locator('button >> text="Load"').waitFor();
            const copied = await fetch(`${server.url}api/copy`, {
                method: "POST",
                body: JSON.stringify({source: "one", destination: "three"}),
            });
            assert.equal(copied.status, 200, await copied.text());
            await tab.locator(".models li >> text=three").waitFor();
            await tab.click("dialog button >> text=Close");
            assert.ok((await options()).some((name) => name.startsWith("three")));
            // and when somebody goes to where models are chosen
            const name = (await options()).find((each) => each.startsWith("three"));
            const gone = await fetch(`${server.url}api/delete`, {method: "DELETE", body: JSON.stringify({model: name})});
            assert.equal(gone.status, 200, await gone.text());
            await tab.focus("#model");
            await patiently(async () => (await options()).join() === "one,two", "the third model is gone");
            assert.equal(await tab.inputValue("#model"), "one");
        });
    }));

test("settings are kept under a name", () =>
    visit(REPLAY, async (tab) => {
        await set(tab, {system: "Speak as a pirate.", temperature: "0.3"});
        await tab.click("#show-settings");
        await tab.fill("#preset-name", "Pirate");
        await tab.click("#settings details >> nth=-1 >> button >> text=Save");
        await tab.fill("#set-system", "");
        await tab.fill("#set-temperature", "");
        await tab.selectOption("#preset", "Pirate");
        assert.equal(await tab.inputValue("#set-system"), "Speak as a pirate.");
        assert.equal(await tab.inputValue("#set-temperature"), "0.3");
        await accessible(tab, "presets");
        await tab.reload();
        await tab.click("#show-settings");
        await tab.click("#settings summary >> nth=-1");
        await tab.selectOption("#preset", "Pirate");
        await tab.click("#settings >> button >> text=Delete");
        assert.equal(await tab.locator("#preset option").count(), 1);
    }));

test("conversations are pinned and copied, and a search leads to its hit", () =>
    visit(REPLAY, async (tab) => {
        for (const name of ["alpha", "beta"]) {
            await tab.click("#new");
            await ask(tab, `replay:plain ${name}`);
            await settled(tab, 2);
        }
        for (let i = 0; i < 9; i++) {
            await ask(tab, `replay:rich ${i === 1 ? "needle" : i}`);
            await settled(tab, 4 + 2 * i);
        }
        await listed(tab, "replay:plain beta|replay:plain alpha");
        await press(tab, "Pin replay:plain alpha");
        await listed(tab, "replay:plain alpha|replay:plain beta");
        assert.equal(await tab.locator("#conversations h2").first().innerText(), "Pinned");
        await tab.reload();
        await listed(tab, "replay:plain alpha|replay:plain beta");
        await tab.click("#keeping");
        await tab.check(".keeping li:has-text('alpha') input");
        await tab.click(".keeping button >> text=Copy");
        await listed(tab, "replay:plain alpha|replay:plain alpha (copy)|replay:plain beta");
        await tab.click("#conversations a >> text=(copy)");
        await settled(tab, 2);
        assert.equal(await lastText(tab), "This is a plain answer.");
        await tab.fill("#search", "needle");
        await listed(tab, "replay:plain beta");
        await tab.click("#conversations a");
        await tab.locator(".message.hit >> text=needle").waitFor();
        const seen = await tab.locator(".message.hit").evaluate((node) => {
            const box = node.getBoundingClientRect();
            return box.top > 0 && box.bottom < window.innerHeight && document.activeElement === node;
        });
        assert.ok(seen, "the hit is in sight and has the focus");
    }));

const CHATGPT = [
    {
        title: "From ChatGPT",
        create_time: 1700000000.5,
        update_time: 1700000100,
        current_node: "d",
        mapping: {
            a: {id: "a", parent: null, message: null},
            s: {id: "s", parent: "a", message: {author: {role: "system"}, content: {content_type: "text", parts: [""]}}},
            b: {id: "b", parent: "s", message: {author: {role: "user"}, create_time: 1700000001, content: {parts: ["Hello <b>"]}}},
            c: {id: "c", parent: "b", message: {author: {role: "assistant"}, content: {parts: ["One way"]}}},
            d: {id: "d", parent: "b", message: {author: {role: "assistant"}, content: {parts: ["Another way"]}}},
        },
    },
];
const OPENWEBUI = [
    {
        title: "From Open WebUI",
        created_at: 1700000000,
        updated_at: 1700000200,
        chat: {
            history: {
                currentId: "b",
                messages: {
                    a: {id: "a", parentId: null, role: "user", content: "Hi", timestamp: 1700000000},
                    b: {
                        id: "b",
                        parentId: "a",
                        role: "assistant",
                        content: '<details type="reasoning" done="true"><summary>Thought</summary>hm</details>\nHello there',
                        timestamp: 1700000001,
                    },
                },
            },
        },
    },
];
const LLAMA = {
    conv: {id: "c", name: "From llama.cpp", lastModified: 1700000300000, currNode: "3"},
    messages: [
        {id: "1", convId: "c", type: "root", role: "system", content: "", parent: null, children: ["2"], timestamp: 1},
        {id: "2", convId: "c", type: "text", role: "user", content: "Ahoy", parent: "1", timestamp: 1700000000001},
        {id: "3", convId: "c", type: "text", role: "assistant", content: "Ahoy!", parent: "2", timestamp: 1700000000002},
    ],
};

test("exports of ChatGPT, Open WebUI and llama.cpp are imported", () =>
    visit(REPLAY, async (tab) => {
        for (const [i, data] of [CHATGPT, OPENWEBUI, LLAMA].entries()) {
            await tab.setInputFiles("#import-file", {
                name: "a.json",
                mimeType: "application/json",
                buffer: Buffer.from(JSON.stringify(data)),
            });
            await until(tab, (n) => document.querySelectorAll("#conversations a").length === n, i + 1);
        }
        assert.equal(await titles(tab), "From llama.cpp|From Open WebUI|From ChatGPT");
        await tab.click("#conversations a >> text=From ChatGPT");
        await settled(tab, 2);
        assert.equal(await lastText(tab), "Another way");
        assert.equal(await textOf(tab.locator(".asked")), "Hello <b>");
        assert.equal(await textOf(tab.locator(".answer .switches")), "2/2");
        await tab.click("#conversations a >> text=From Open WebUI");
        await until(tab, () => document.querySelector(".said")?.textContent === "Hello there");
        assert.equal(await tab.locator(".reasoning .prose").textContent(), "hm");
        await tab.click("#conversations a >> text=From llama.cpp");
        await until(tab, () => document.querySelector(".said")?.textContent === "Ahoy!");
        await ask(tab, "replay:plain");
        await settled(tab, 4);
    }));

/** An archive as others make it: [name, text] of each file, stored where it is told so, with sizes of 64 bits or without. */
function zipped(files, {stored = false, large = false} = {}) {
    const program = `
import io, json, sys, zipfile
files, stored, large = json.load(sys.stdin)
out = io.BytesIO()
with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
    archive.comment = b"exported"
    for name, text in files:
        with archive.open(name, "w", force_zip64=large) as f:
            f.write(text.encode())
sys.stdout.buffer.write(out.getvalue())`;
    return execFileSync("python3", ["-c", program], {input: JSON.stringify([files, stored, large])});
}

test("exports come in archives and in lines, too", () =>
    visit(REPLAY, async (tab) => {
        const give = (name, buffer) => tab.setInputFiles("#import-file", {name, mimeType: "application/octet-stream", buffer});
        const chat = (title) => [{...structuredClone(CHATGPT[0]), title}];
        const lines = (name) =>
            [
                {harness: "llama.app", type: "session", ...LLAMA.conv, name},
                ...LLAMA.messages.map((message) => ({message, type: "message"})),
            ]
                .map((each) => JSON.stringify(each))
                .join("\n");
        const archives = [
            [
                zipped([
                    ["chat.html", "<html>"],
                    ["conversations-000.json", JSON.stringify(chat("Zero"))],
                    ["conversations-001.json", JSON.stringify(chat("One"))],
                    ["message_feedback.json", "[]"],
                    ["shared_conversations.json", JSON.stringify([{id: "x", title: "y"}])],
                    ["user.json", JSON.stringify({id: "user-x"})],
                ]),
                ["Zero", "One"],
            ],
            [zipped([["export/chat.json", JSON.stringify(OPENWEBUI)]], {large: true}), ["From Open WebUI"]],
            [zipped([["a.jsonl", lines("Two")], ["b.jsonl", lines("Three")]], {stored: true}), ["Two", "Three"]],
            [Buffer.from(`${lines("Four")}\n${lines("Five")}\n`), ["Four", "Five"]],
        ];
        const all = [];
        for (const [buffer, wanted] of archives) {
            await give("export", buffer);
            all.push(...wanted);
            await until(tab, (n) => document.querySelectorAll("#conversations a").length === n, all.length);
        }
        assert.deepEqual((await titles(tab)).split("|").sort(), all.sort());
        await tab.click("#conversations a >> text=Five");
        await until(tab, () => document.querySelector(".said")?.textContent === "Ahoy!");
        await tab.click("#conversations a >> text=One");
        await until(tab, () => document.querySelector(".said")?.textContent === "Another way");
        const whole = zipped([["conversations.json", JSON.stringify(chat("Broken"))]]);
        const flipped = Buffer.from(whole);
        for (let i = 60; i < 80; i++) flipped[i] ^= 0x55;
        const locked = Buffer.from(whole);
        locked[whole.indexOf("PK\x01\x02") + 8] |= 1;
        const faults = [
            [whole.subarray(0, whole.length - 40), /archive is cut or damaged/],
            [flipped, /conversations\.json in the archive is (?:cut or damaged|not JSON)/],
            [locked, /conversations\.json in the archive has a password/],
            [zipped([["user.json", "{}"]]), /no export of this page, ChatGPT, Open WebUI or llama\.cpp/],
            [zipped([["conversations.json", "{"]]), /conversations\.json in the archive is not JSON/],
        ];
        for (const [buffer, sentence] of faults) {
            await give("export.zip", buffer);
            await patiently(
                async () => sentence.test(await tab.locator("#notice").innerText()),
                String(sentence),
            );
        }
        assert.equal((await titles(tab)).split("|").length, all.length);
    }));

test("a file whose messages go in a circle, or are of the end of time, does not stop the page", () =>
    visit(REPLAY, async (tab) => {
        const said = (id, parent) => ({id, parent, role: "user", text: `round ${id}`, created: 1});
        const circle = {
            format: "motet.chat",
            version: 1,
            conversations: [
                {
                    title: "Circle",
                    leaf: "a",
                    settings: {servers: "https://elsewhere.example/mcp", system: "Be brief."},
                    messages: [said("a", "b"), said("b", "c"), said("c", "b"), said("d", "d")],
                },
            ],
        };
        const late = structuredClone(LLAMA);
        late.conv.name = "Late";
        for (const message of late.messages) message.timestamp = 1e308;
        for (const [i, data] of [circle, late].entries()) {
            await tab.setInputFiles("#import-file", {
                name: "a.json",
                mimeType: "application/json",
                buffer: Buffer.from(JSON.stringify(data)),
            });
            await until(tab, (n) => document.querySelectorAll("#conversations a").length === n, i + 1);
        }
        await tab.fill("#search", "round d");
        await listed(tab, "Circle");
        await tab.click("#conversations a");
        await tab.locator(".message.hit").waitFor();
        await tab.fill("#search", "");
        await until(tab, () => document.querySelectorAll("#conversations a").length === 2);
        await tab.fill("#search", "round c");
        await listed(tab, "Circle");
        await tab.click("#conversations a");
        await tab.locator(".message.hit >> text=round c").waitFor();
        await tab.fill("#search", "");
        const kept = await tab.evaluate(async () => {
            const {src} = document.querySelector("script[type=module]");
            const {conversations} = await import(src.replace("main.js", "store.js"));
            return (await conversations()).find((each) => each.title === "Circle").settings;
        });
        assert.deepEqual(kept, {system: "Be brief."});
    }));

/** A server of one tool. */
function tools(calls) {
    return new Promise((resolve) => {
        const server = http.createServer((request, response) => {
            const headers = {
                "access-control-allow-origin": request.headers.origin ?? "*",
                "access-control-allow-headers": "content-type, mcp-session-id, mcp-protocol-version",
                "access-control-expose-headers": "mcp-session-id",
            };
            let text = "";
            request.on("data", (piece) => {
                text += piece;
            });
            request.on("end", () => {
                if (request.method !== "POST") {
                    response.writeHead(204, headers).end();
                    return;
                }
                const {id, method, params} = JSON.parse(text);
                calls.push([method, params, request.headers["mcp-session-id"]]);
                const tool = {name: "get_weather", description: "Weather", inputSchema: {type: "object"}};
                const result = {
                    initialize: {protocolVersion: "2025-06-18", capabilities: {tools: {}}, serverInfo: {name: "x"}},
                    "tools/list": {tools: [tool]},
                    "tools/call": {content: [{type: "text", text: "sunny <b>and</b> warm"}]},
                }[method];
                if (id === undefined) response.writeHead(202, headers).end();
                else if (method === "tools/call")
                    response
                        .writeHead(200, {...headers, "content-type": "text/event-stream"})
                        .end(`event: message\ndata: ${JSON.stringify({jsonrpc: "2.0", id, result})}\n\n`);
                else
                    response
                        .writeHead(200, {...headers, "content-type": "application/json", "mcp-session-id": "s1"})
                        .end(JSON.stringify({jsonrpc: "2.0", id, result}));
            });
        });
        server.listen(PORT, "127.0.0.1", () => resolve(server));
    });
}

test("tools of an MCP server are called when the person agrees", async () => {
    const calls = [];
    const server = await tools(calls);
    try {
        await visit(REPLAY, async (tab, visitor) => {
            visitor.allowed.push(new RegExp(`request: http://127.0.0.1:${PORT}/`));
            await set(tab, {servers: `http://127.0.0.1:${PORT}/mcp`});
            await ask(tab, "replay:weather");
            await tab.locator("text=May this tool be called?").waitFor();
            assert.match(await tab.locator("dialog .arguments").innerText(), /Paris/);
            await accessible(tab, "consent");
            await shot(tab, "consent");
            await tab.click("dialog button >> text=Not now");
            await tab.locator("form.results").waitFor();
            assert.ok(!calls.some(([method]) => method === "tools/call"));
            await tab.click("#new");
            await ask(tab, "replay:weather");
            await tab.click("dialog button >> text=Always this tool");
            await settled(tab, 4);
            assert.equal(await textOf(tab.locator(".results pre")), "sunny <b>and</b> warm");
            assert.equal(await lastText(tab), "It will be sunny in Paris.");
            const [, params, session] = calls.find(([method]) => method === "tools/call");
            assert.deepEqual(params, {name: "get_weather", arguments: {city: "Paris", days: 3}});
            assert.equal(session, "s1");
            await tab.click("#new");
            await ask(tab, "replay:weather");
            await settled(tab, 4); // without being asked again
            const made = () => calls.filter(([method]) => method === "tools/call").length;
            assert.equal(made(), 2);
            await tab.click("#in-force");
            await tab.click("text=Ask again before each tool");
            const cases = [["Once", /sunny/, 1], ["Never", /does not allow this tool/, 0], [null, /does not/, 0]];
            for (const [said, result, more] of cases) {
                const before = made();
                await tab.click("#new");
                await ask(tab, "replay:weather");
                if (said) await tab.click(`dialog button >> text=${said}`);
                await settled(tab, 4);
                assert.match(await textOf(tab.locator(".results pre")), result);
                assert.equal(made() - before, more, `${said ?? "never, as was said before"}`);
            }
        });
        await visit(REPLAY, async (tab, visitor) => {
            visitor.allowed.push(/Content Security Policy|violates|request: https:\/\/elsewhere/);
            await set(tab, {servers: "https://elsewhere.example/mcp"});
            await ask(tab, "replay:weather");
            await tab.locator(".fault >> text=must be started with --web-connect https://elsewhere.example").waitFor();
        });
    } finally {
        server.close();
        server.closeAllConnections();
    }
});

test("the page can be installed", () =>
    visit(REPLAY, async (tab) => {
        const {manifest, type, start, icon} = await tab.evaluate(async () => {
            const href = document.querySelector("link[rel=manifest]").href;
            const response = await fetch(href);
            const told = await response.json();
            const iconResponse = await fetch(new URL(told.icons[0].src, href));
            return {
                manifest: told,
                type: response.headers.get("content-type"),
                start: new URL(told.start_url, href).pathname,
                icon: iconResponse.status,
            };
        });
        assert.equal(type, "application/manifest+json");
        assert.deepEqual([manifest.name, manifest.display, start, icon], ["motet", "standalone", "/", 200]);
    }));

await main("more");
