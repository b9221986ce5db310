// What a person meets who works for an hour: pictures that travel once, a server that goes away, settings with a fault,
// two tabs, drafts, the keyboard.

import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import http from "node:http";
import {
    accessible,
    ask,
    eventually,
    lastText,
    longer,
    main,
    patiently,
    press,
    set,
    settings,
    settled,
    shot,
    stop,
    test,
    textOf,
    until,
    visit,
} from "./common.mjs";

const {box_url: BOX, replay_url: REPLAY, root} = settings;

/** Puts files on the page as a drop does: [{name, type, text or base64}], or pictures of so many pixels a side. */
function drop(tab, files) {
    return tab.evaluate(async (all) => {
        const transfer = new DataTransfer();
        for (const each of all) {
            if (each.side) {
                const canvas = Object.assign(document.createElement("canvas"), {width: each.side, height: each.side});
                const c = canvas.getContext("2d");
                const noise = c.createImageData(each.side, each.side);
                for (let i = 0; i < noise.data.length; i++) noise.data[i] = i % 4 === 3 ? 255 : (i * 7919 * ((i >> 8) + 3)) % 251;
                c.putImageData(noise, 0, 0);
                const blob = await new Promise((resolve) => canvas.toBlob(resolve, each.type));
                transfer.items.add(new File([blob], each.name, {type: each.type}));
            } else if (each.base64) {
                const bytes = Uint8Array.from(atob(each.base64), (c) => c.charCodeAt(0));
                transfer.items.add(new File([bytes], each.name, {type: each.type}));
            } else {
                transfer.items.add(new File([each.text], each.name, {type: each.type}));
            }
        }
        document
            .querySelector("#question")
            .dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}));
    }, files);
}

/** The bodies of requests to the server, as they are sent. */
function listen(tab) {
    const sent = {asked: [], uploads: 0};
    tab.on("request", (request) => {
        if (request.method() !== "POST") return;
        if (request.url().endsWith("/v1/responses")) sent.asked.push(request.postData() ?? "");
        if (request.url().endsWith("/v1/uploads/pictures")) sent.uploads++;
    });
    return sent;
}

const attached = (tab, count) =>
    until(tab, (n) => document.querySelectorAll("#attachments li").length === n, count);

test("the server reads a PDF, and the model sees its page", () =>
    visit(BOX, async (tab) => {
        const make = "import sys, pdfs; sys.stdout.buffer.write(pdfs.pages([pdfs.triangles(3)], box=(0, 0, 400, 400)))";
        const pdf = execFileSync("python3", ["-c", make], {env: {...process.env, PYTHONPATH: `${root}/tests/media`}});
        await set(tab, {temperature: "0"});
        await drop(tab, [{name: "shapes.pdf", type: "application/pdf", base64: pdf.toString("base64")}]);
        await attached(tab, 1);
        await tab.locator("#attachments >> text=/[1-9]\\d* tokens/").waitFor();
        await ask(tab, "How many triangles are there?");
        await settled(tab, 2);
        assert.match(await lastText(tab), /There are 3 triangles\./);
        await tab.locator("#messages >> text=shapes.pdf").waitFor();
    }));

test("the server reads a document: its size is said, or why it cannot be read", () =>
    visit(REPLAY, async (tab, visitor) => {
        visitor.allowed.push(/status of 400/);
        await drop(tab, [{name: "broken.pdf", type: "application/pdf", text: "%PDF-1.4\n%%EOF\n"}]);
        await tab.locator("#notice >> text=/broken\\.pdf: .*PDF/").waitFor();
        assert.doesNotMatch(await tab.locator("#notice").innerText(), /input\[/);
        await attached(tab, 0);
        await tab.locator("#notice button").first().click();
        const read = {object: "response.input_tokens", input_tokens: 1234};
        await visitor.context.route("**/v1/responses/input_tokens", (route) => route.fulfill({json: read}));
        await drop(tab, [{name: "paper.pdf", type: "application/pdf", text: "%PDF-1.4\n%%EOF\n"}]);
        await attached(tab, 1);
        await tab.locator("#attachments >> text=1,234 tokens").waitFor();
        await accessible(tab, "a document");
        const sent = listen(tab);
        await ask(tab, "replay:plain");
        await patiently(() => sent.asked.length > 0, "the question is sent");
        const [part] = JSON.parse(sent.asked[0]).input.at(-1).content;
        const base64 = Buffer.from("%PDF-1.4\n%%EOF\n").toString("base64");
        assert.deepEqual(part, {type: "input_file", filename: "paper.pdf", file_data: `data:application/pdf;base64,${base64}`});
        await tab.locator("#messages >> text=paper.pdf").waitFor();
    }));

test("a picture travels once, and again where the server has lost it", () =>
    visit(REPLAY, async (tab, visitor) => {
        const sent = listen(tab);
        await drop(tab, [{name: "noise.png", type: "image/png", side: 400}]);
        await attached(tab, 1);
        await ask(tab, "replay:picture");
        await settled(tab, 2);
        assert.equal(await lastText(tab), "I see a picture of one colour.");
        await ask(tab, "replay:picture again");
        await settled(tab, 4);
        assert.equal(sent.uploads, 1);
        assert.ok(sent.asked.every((body) => body.length < 5000), "the picture is not in the requests");
        const id = /upload:(\w+)/.exec(sent.asked[0])[1];
        await tab.evaluate((name) => fetch(`v1/uploads/pictures/${name}`, {method: "DELETE"}), id);
        visitor.allowed.push(/status of 400/);
        await ask(tab, "replay:picture once more");
        await settled(tab, 6);
        assert.equal(await lastText(tab), "I see a picture of one colour.");
        assert.equal(sent.uploads, 2);
        await eventually(tab, async () => {
            const folder = document.querySelector("script[type=module]").src.replace(/chat\/main\.js$/, "");
            const store = await import(`${folder}chat/store.js`);
            const {messages} = await store.load(location.hash.slice(1));
            return [...messages.values()].some((each) => each.attachments?.[0]?.given);
        });
        await tab.reload();
        await ask(tab, "replay:picture after all");
        await settled(tab, 8);
        assert.equal(await lastText(tab), "I see a picture of one colour.");
        assert.equal(sent.uploads, 2, "who loads the page again need not send it again");
    }));

test("a picture is no larger than the model sees it", () =>
    visit(REPLAY, async (tab, visitor) => {
        await visitor.context.route("**/v1/models", async (route) => {
            const response = await route.fetch();
            const told = await response.json();
            for (const each of told.data) each.max_picture_pixels = 3e6;
            await route.fulfill({response, json: told});
        });
        await tab.reload();
        const size = () =>
            tab.evaluate(async () => {
                const image = document.querySelector("#attachments img");
                await image.decode();
                return [image.naturalWidth, image.naturalHeight];
            });
        await until(tab, () => document.querySelector("#model").options.length > 0);
        await drop(tab, [{name: "large.jpg", type: "image/jpeg", side: 2500}]);
        await attached(tab, 1);
        const [width, height] = await size();
        assert.ok(width === height && width * height <= 3.01e6 && width * height > 2.9e6, `${width} x ${height}`);
        await tab.click("#attachments button");
        const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="40" height="30" fill="red"/></svg>';
        await drop(tab, [{name: "red.svg", type: "image/svg+xml", text: svg}]);
        await attached(tab, 1);
        assert.deepEqual(await size(), [40, 30]);
    }));

test("files of text go along, with their tokens; others are refused in words", () =>
    visit(REPLAY, async (tab) => {
        const sent = listen(tab);
        await until(tab, () => document.querySelector("#model").options.length > 0);
        await drop(tab, [{name: "data.csv", type: "text/csv", text: "a,b\n1,2\n"}]);
        await tab.locator("#attachments >> text=/\\d+ tokens/").waitFor();
        await accessible(tab, "a file of text");
        await drop(tab, [{name: "a.zip", type: "application/zip", text: "PK\0"}]);
        await tab.locator("#notice >> text=a.zip: only pictures, videos, PDF and files of text").waitFor();
        await ask(tab, "replay:plain");
        await settled(tab, 2);
        assert.match(JSON.parse(sent.asked[0]).input[0].content[0].text, /^data\.csv:\n```\na,b\n1,2\n\n```$/);
        assert.equal(await textOf(tab.locator(".question .file b")), "data.csv");
        await tab.reload();
        await settled(tab, 2);
        assert.equal(await textOf(tab.locator(".question .file b")), "data.csv");
    }));

test("a conversation that is forgotten stops its answer, shown or not", () =>
    visit(REPLAY, async (tab) => {
        const running = () => tab.evaluate(async () => (await (await fetch("v1/status")).json()).running);
        await ask(tab, "replay:endless");
        await longer(tab, 100);
        await tab.click("#new");
        await ask(tab, "replay:plain");
        await settled(tab, 2);
        await patiently(async () => (await running()) === 1, "one answer goes on");
        await press(tab, "Forget replay:endless");
        await tab.click("dialog >> text=Forget it");
        await patiently(async () => (await running()) === 0, "the answer ends");
        // the one that is shown
        await ask(tab, "replay:endless once more");
        await longer(tab, 100);
        await press(tab, "Forget replay:plain");
        await tab.click("dialog >> text=Forget it");
        await patiently(async () => (await running()) === 0, "the answer that is shown ends");
        const kept = await tab.evaluate(async () => {
            const request = indexedDB.open("motet.chat");
            const database = await new Promise((resolve) => {
                request.onsuccess = () => resolve(request.result);
            });
            const count = database.transaction("messages").objectStore("messages").count();
            await new Promise((resolve) => {
                count.onsuccess = resolve;
            });
            database.close();
            return count.result;
        });
        assert.equal(kept, 0, "nothing is left of what was forgotten");
    }));

/** A server in between, which holds answers to questions back. work(url, gate): gate.asked counts them, gate.open() lets
    them go. */
async function between(work) {
    const gate = {asked: 0, held: []};
    gate.open = () => gate.held.splice(0).forEach((go) => go());
    const server = http.createServer((request, response) => {
        const {method, headers, url} = request;
        const onward = http.request(new URL(url, REPLAY), {method, headers}, async (given) => {
            if (method === "POST" && url === "/v1/responses") {
                gate.asked++;
                await new Promise((resolve) => gate.held.push(resolve));
            }
            response.writeHead(given.statusCode, given.headers);
            given.pipe(response);
        });
        onward.on("error", () => response.destroy());
        response.on("close", () => onward.destroy());
        request.pipe(onward);
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
        await work(`http://127.0.0.1:${server.address().port}/`, gate);
    } finally {
        server.close();
        server.closeAllConnections();
    }
}

test("who stops or forgets an answer need not wait until the server has said something", () =>
    between((url, gate) =>
        visit(url, async (tab) => {
            const running = async () => (await (await fetch(`${REPLAY}v1/status`)).json()).running;
            await until(tab, () => document.querySelector("#model").options.length > 0);
            await ask(tab, "replay:endless");
            await patiently(async () => gate.asked === 1 && (await running()) === 1, "it is answered");
            await stop(tab);
            gate.open();
            await patiently(async () => (await running()) === 0, "it ends");
            await ask(tab, "replay:endless again");
            await patiently(async () => gate.asked === 2 && (await running()) === 1, "it is answered again");
            await press(tab, "Forget replay:endless");
            await tab.click("dialog >> text=Forget it");
            await until(tab, () => document.querySelector(".welcome"));
            gate.open();
            await patiently(async () => (await running()) === 0, "that ends, too");
        }),
    ));

/** Keeps the page from trying a lost server by itself: timers of a tenth of a second and more never end. */
const holdTimers = (tab) =>
    tab.evaluate(() => {
        const real = window.setTimeout;
        window.setTimeout = (work, delay, ...rest) => (delay < 100 ? real(work, delay, ...rest) : 0);
    });

/** Presses "Try now" until the server is found: while one try is under way, pressing does nothing. */
async function pressedUntilFound(tab) {
    await eventually(tab, () => {
        document.querySelector("#connection button").click();
        return document.querySelector("#connection").hidden;
    });
}

test("a server that is lost is said so once, and found again", () =>
    visit(REPLAY, async (tab, visitor) => {
        visitor.allowed.push(/ERR_FAILED|ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED|ERR_CONNECTION/);
        await ask(tab, "replay:plain");
        await settled(tab, 2);
        await visitor.context.route("**/*", (route) => route.abort());
        await holdTimers(tab);
        await ask(tab, "replay:plain again");
        await tab.locator("#connection >> text=Lost the server, trying again").waitFor();
        await tab.locator(".fault >> text=The server could not be reached.").waitFor();
        assert.doesNotMatch(await tab.locator("body").innerText(), /Failed to fetch/);
        await accessible(tab, "lost");
        await shot(tab, "lost");
        await visitor.context.unroute("**/*");
        await pressedUntilFound(tab);
        await tab.click("text=Ask again");
        await until(tab, () => document.querySelectorAll(".fault").length === 0);
        await settled(tab, 4);
        assert.equal(await lastText(tab), "This is a plain answer.");
    }));

test("nothing pulses while the connection is lost", () =>
    visit(REPLAY, async (tab, visitor) => {
        visitor.allowed.push(/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED|ERR_CONNECTION/);
        await ask(tab, "replay:endless");
        const before = await longer(tab, 100);
        const pulse = () => tab.evaluate(() => getComputedStyle(document.querySelector(".pulse")).animationName);
        assert.equal(await pulse(), "pulse");
        await visitor.context.setOffline(true);
        await tab.locator("#connection >> text=Lost the server").waitFor();
        assert.equal(await pulse(), "none");
        await visitor.context.setOffline(false);
        await longer(tab, before + 200);
        await tab.locator("#connection").waitFor({state: "hidden"});
        await stop(tab);
    }));

test("errors are sentences with something to do", () =>
    visit(REPLAY, async (tab, visitor) => {
        visitor.allowed.push(/status of \d+/);
        const refuse = (status, error) =>
            visitor.context.route("**/v1/responses", (route) => route.fulfill({status, json: {error}}));
        const cases = [
            [400, {message: "input[0].content[0]: is no picture", param: "input"}, /cannot use what was sent/, "Edit the question"],
            [400, {message: "tools[0]: has no name", param: "tools[0].name"}, /one of the settings/, "Open the settings"],
            [400, {message: "x", code: "context_length_exceeded"}, /longer than the model can read/, "New conversation"],
            [404, {message: "x", code: "model_not_found"}, /does not have this model/, "Choose another model"],
            [413, {message: "x"}, /larger than the server takes/, "Edit the question"],
            [429, {message: "x"}, /Too much is asked/, "Ask again"],
            [500, {message: "x"}, /went wrong in the server/, "Ask again"],
            [503, {message: "x"}, /busy, or the model is being loaded/, "Ask again"],
        ];
        for (const [status, error, text, button] of cases) {
            await refuse(status, error);
            await tab.click("#new");
            await ask(tab, "hello");
            await tab.locator(".fault").waitFor();
            assert.match(await textOf(tab.locator(".fault .bad")), text);
            await tab.locator(`.fault button >> text=${button}`).waitFor();
            assert.doesNotMatch(await tab.locator(".fault .note").textContent(), /\[0\]/);
        }
        await accessible(tab, "an error");
        await shot(tab, "error");
    }));

test("a setting with a fault is mended before anything is sent, and what is in force is shown", () =>
    visit(REPLAY, async (tab) => {
        const sent = listen(tab);
        await set(tab, {schema: '{"type": ', system: "Be brief."});
        await ask(tab, "replay:plain");
        await tab.locator("#notice >> text=Nothing is sent while a setting has a fault").waitFor();
        assert.equal(sent.asked.length, 0);
        assert.equal(await tab.inputValue("#question"), "replay:plain");
        assert.equal(await tab.locator("#in-force").innerText(), "System prompt · JSON schema");
        await accessible(tab, "a setting with a fault");
        await tab.click("#notice >> text=Clear");
        await tab.press("#question", "Enter");
        await settled(tab, 2);
        assert.equal(await tab.locator("#in-force").innerText(), "System prompt");
        await set(tab, {temperature: "9"});
        await tab.click("[aria-label='Answer again']");
        await tab.locator("#notice >> text=A number from 0 to 2").waitFor();
        await tab.click("#in-force");
        assert.equal(await tab.evaluate(() => document.activeElement.id), "set-system");
    }));

test("a value that is none is a fault, not an empty setting", () =>
    visit(REPLAY, async (tab) => {
        const sent = listen(tab);
        const cases = [
            ["temperature", "0,7", /A number from 0 to 2/],
            ["seed", "1e", /A number from 0/],
            ["topK", "1.5", /A whole number/],
            ["schema", "null", /An object is wanted/],
            ["schema", '"text"', /An object is wanted/],
            ["tools", "{}", /A list is wanted/],
            ["servers", "tools.example/mcp", /is no address of a server/],
        ];
        await tab.fill("#question", "replay:plain");
        for (const [key, value, sentence] of cases) {
            await set(tab, {[key]: value});
            await tab.press("#question", "Enter");
            await tab.locator("#notice:not([hidden])").waitFor();
            assert.match(await tab.locator("#notice p").innerText(), sentence);
            await tab.click("#notice >> text=Clear");
        }
        assert.equal(sent.asked.length, 0);
        await tab.press("#question", "Enter");
        await settled(tab, 2);
        assert.equal(sent.asked.length, 1);
    }));

test("the focus goes where the answer is", () =>
    visit(REPLAY, async (tab) => {
        await ask(tab, "replay:endless");
        await longer(tab, 50);
        await stop(tab);
        const focused = () => tab.evaluate(() => document.activeElement.dataset.id);
        const last = () => tab.locator(".answer").last().getAttribute("data-id");
        for (const name of ["Answer again", "Go on with it"]) {
            await tab.locator(`[aria-label='${name}']`).focus();
            await tab.keyboard.press("Enter");
            await until(tab, () => document.activeElement.classList.contains("answer"));
            assert.equal(await focused(), await last(), name);
            // one that is stopped before it has said anything cannot be gone on with; what goes on may end by itself
            if (name === "Answer again") await longer(tab, 0);
            await patiently(async () => {
                if (await tab.locator("#stop").isVisible()) await tab.keyboard.press("Escape");
                return (await tab.locator(".running").count()) === 0;
            }, "it is stopped");
            await settled(tab, 2);
        }
        await tab.locator("[aria-label='The branch before']").focus();
        await tab.keyboard.press("Enter");
        await until(tab, () => document.querySelector(".switches").textContent === "1/2");
        assert.equal(await focused(), await last());
    }));

test("drafts and their files are each conversation's own, and kept", () =>
    visit(REPLAY, async (tab) => {
        await ask(tab, "replay:plain one");
        await settled(tab, 2);
        await tab.fill("#question", "half a thought");
        await drop(tab, [{name: "notes.md", type: "text/markdown", text: "# a"}]);
        await attached(tab, 1);
        await tab.click("#new");
        await until(tab, () => document.querySelector("#question").value === "");
        await attached(tab, 0);
        await tab.fill("#question", "another");
        await tab.reload();
        await until(tab, () => document.querySelector("#question").value === "another");
        await tab.click("#conversations a >> text=replay:plain one");
        await until(tab, () => document.querySelector("#question").value === "half a thought");
        await attached(tab, 1);
        await tab.reload();
        await until(tab, () => document.querySelector("#question").value === "half a thought");
        await attached(tab, 1);
    }));

test("a second tab follows the first to its newest message", () =>
    visit(REPLAY, async (tab, visitor) => {
        await ask(tab, "replay:plain one");
        await settled(tab, 2);
        const other = await visitor.context.newPage();
        await other.goto(tab.url());
        await settled(other, 2);
        await ask(tab, "replay:plain two");
        await settled(tab, 4);
        await settled(other, 4);
        assert.equal(await textOf(other.locator(".asked").last()), "replay:plain two");
        await other.close();
    }));

await main("mend");
