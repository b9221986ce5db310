// The chat page as people use it.

import assert from "node:assert/strict";
import {readFile} from "node:fs/promises";
import path from "node:path";
import {
    accessible,
    ask,
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

const {box_url: BOX, replay_url: REPLAY, keyed_url: KEYED} = settings;
const SHAPES = path.join(settings.root, "examples", "shapes.png");
const ENDLESS = "word after word after word, and no end of it; ";
const PHONE = {viewport: {width: 390, height: 780}, hasTouch: true, isMobile: true};

test("a question about a picture is answered, with its figures", () =>
    visit(BOX, async (tab) => {
        await tab.setInputFiles("#file", SHAPES);
        await tab.locator("#attachments img").waitFor();
        await ask(tab, "What do you see?");
        await settled(tab, 2);
        assert.match(await lastText(tab), /red circle and a blue square/);
        assert.match(
            await textOf(tab.locator(".stats")),
            /^\d+ tokens · \d.* tokens\/s · first after .*s · \d+ of \d+ prompt tokens cached/,
        );
        assert.ok(await tab.locator(".question img").evaluate((image) => image.complete && image.naturalWidth > 0));
        await ask(tab, "Who are you?");
        await settled(tab, 4);
        assert.match(await tab.title(), /What do you see\? – motet/);
        assert.match(await textOf(tab.locator(".stats").last()), /· [1-9]\d* of \d+ prompt tokens cached/);
        await accessible(tab, "a conversation");
        await shot(tab, "chat");
        await tab.emulateMedia({colorScheme: "dark"});
        await accessible(tab, "a conversation in the dark");
        await shot(tab, "chat-dark");
    }));

test("pictures are pasted, dropped, drawn and taken away", () =>
    visit(REPLAY, async (tab) => {
        const give = (kind) =>
            tab.evaluate(async (type) => {
                const canvas = Object.assign(document.createElement("canvas"), {width: 64, height: 64});
                const blob = await new Promise((resolve) => canvas.toBlob(resolve));
                const transfer = new DataTransfer();
                transfer.items.add(new File([blob], "a.png", {type: "image/png"}));
                const target = document.querySelector("#question");
                target.dispatchEvent(
                    type === "paste"
                        ? new ClipboardEvent("paste", {clipboardData: transfer, bubbles: true, cancelable: true})
                        : new DragEvent("drop", {dataTransfer: transfer, bubbles: true, cancelable: true}),
                );
            }, kind);
        const count = (wanted) => until(tab, (n) => document.querySelectorAll("#attachments img").length === n, wanted);
        await give("paste");
        await count(1);
        await give("drop");
        await count(2);
        await tab.click("#sketch");
        await accessible(tab, "the sheet");
        const sheet = await tab.locator(".sheet").boundingBox();
        await tab.mouse.move(sheet.x + 50, sheet.y + 50);
        await tab.mouse.down();
        await tab.mouse.move(sheet.x + 150, sheet.y + 150, {steps: 4});
        await tab.mouse.up();
        await tab.click("text=Use it");
        await count(3);
        await tab.click("[aria-label='Remove a.png'] >> nth=0");
        await count(2);
        await ask(tab, "replay:picture");
        await settled(tab, 2);
        assert.equal(await lastText(tab), "I see a picture of one colour.");
    }));

test("a video goes along", () =>
    visit(BOX, async (tab) => {
        await tab.setInputFiles("#file", path.join(settings.root, "tests", "media", "videos", "vp8.webm"));
        await tab.locator("#attachments video").waitFor();
        await ask(tab, "What do you see?");
        await settled(tab, 2);
        assert.equal(await tab.locator("[role=alert]").count(), 0);
        assert.ok((await lastText(tab)).length > 0);
    }));

test("the browser's way back leads to the conversation before", () =>
    visit(REPLAY, async (tab) => {
        await ask(tab, "replay:plain one");
        await settled(tab, 2);
        await tab.click("#new");
        await ask(tab, "replay:plain two");
        await settled(tab, 2);
        await tab.fill("#question", "not sent yet");
        await tab.goBack();
        await until(tab, () => document.querySelector("#title").textContent === "replay:plain one");
        await tab.reload();
        await settled(tab, 2);
        assert.equal(await tab.locator("#title").innerText(), "replay:plain one");
        await tab.goForward();
        await until(tab, () => document.querySelector("#question").value === "not sent yet");
    }));

test("reasoning is folded away and opens", () =>
    visit(BOX, async (tab) => {
        await tab.click("#think");
        await ask(tab, "What is 17 + 25?");
        await settled(tab, 2);
        assert.match(await lastText(tab), /42/);
        const folded = tab.locator(".reasoning");
        assert.match(await textOf(folded.locator("summary")), /^Thought for /);
        assert.equal(await folded.evaluate((node) => node.open), false);
        await folded.locator("summary").click();
        assert.match(await textOf(folded.locator(".prose")), /42/);
    }));

test("tools are called, and their results go on", () =>
    visit(REPLAY, async (tab) => {
        await set(tab, {
            tools: JSON.stringify([
                {name: "get_weather", parameters: {type: "object", properties: {city: {type: "string"}}}},
            ]),
        });
        await ask(tab, "replay:weather");
        await settled(tab, 2);
        assert.equal(await textOf(tab.locator(".call h2")), "get_weather");
        assert.match(await textOf(tab.locator(".call pre")), /"city": "Paris"/);
        await accessible(tab, "a call");
        await tab.fill("form.results textarea", "sunny");
        await tab.click("text=Give the result");
        await settled(tab, 4);
        assert.equal(await lastText(tab), "It will be sunny in Paris.");
    }));

test("an answer is stopped, and goes on", () =>
    visit(REPLAY, async (tab) => {
        await ask(tab, "replay:endless");
        await longer(tab, 200);
        await tab.keyboard.press("Escape");
        await tab.locator("text=Stopped.").waitFor();
        const first = await lastText(tab);
        assert.ok(ENDLESS.repeat(10000).startsWith(first.trim()), first);
        await tab.click("[aria-label='Answer again']");
        await longer(tab, 20);
        await stop(tab);
        assert.equal(await textOf(tab.locator(".switches")), "2/2");
    }));

test("what was cut goes on where it ended", () =>
    visit(BOX, async (tab) => {
        await set(tab, {maxTokens: "3"});
        await ask(tab, "Who are you?");
        await settled(tab, 2);
        await tab.locator("text=no more tokens were allowed").waitFor();
        const cut = await lastText(tab);
        await set(tab, {maxTokens: ""});
        await tab.click("[aria-label='Go on with it']");
        await until(tab, (length) => document.querySelector(".said").textContent.length > length, cut.length);
        await settled(tab, 2);
        assert.ok((await lastText(tab)).startsWith(cut), "it is the same answer");
        assert.equal(await tab.locator("[aria-label='Go on with it']").count(), 0);
    }));

test("questions are edited, answers asked for again, and branches kept", () =>
    visit(BOX, async (tab) => {
        await ask(tab, "Who are you?");
        await settled(tab, 2);
        await ask(tab, "What is 17 + 25?");
        await settled(tab, 4);
        await tab.hover(".question >> nth=0");
        await tab.click(".question >> nth=0 >> [aria-label='Edit the question']");
        await tab.fill(".editing textarea", "Tell me a short story.");
        await tab.press(".editing textarea", "Enter");
        await settled(tab, 2);
        assert.equal(await textOf(tab.locator(".question .switches")), "2/2");
        await tab.click(".question [aria-label='The branch before']");
        await settled(tab, 4);
        assert.match(await lastText(tab), /42/);
        await tab.click("[aria-label='Answer again'] >> nth=-1");
        await until(tab, () =>
            [...document.querySelectorAll(".answer .switches")].some((node) => node.textContent === "2/2"),
        );
        await settled(tab, 4);
        await tab.reload();
        await settled(tab, 4);
        assert.equal(await textOf(tab.locator(".question .switches").first()), "1/2");
        await accessible(tab, "branches");
        await tab.keyboard.press("ArrowUp"); // edits the last question
        await tab.locator(".editing textarea").waitFor();
        await tab.keyboard.press("Escape");
        await settled(tab, 4);
    }));

test("an answer goes on when the page is loaded again", () =>
    visit(REPLAY, async (tab) => {
        await ask(tab, "replay:endless");
        const before = await longer(tab, 300);
        await tab.reload();
        await longer(tab, before + 100);
        await stop(tab);
        const text = (await lastText(tab)).trim();
        assert.ok(ENDLESS.repeat(10000).startsWith(text), "nothing is missing and nothing is there twice");
        await tab.reload();
        await settled(tab, 2);
        assert.equal((await lastText(tab)).trim(), text);
        assert.match(await textOf(tab.locator(".stats")), /tokens\/s/);
    }));

test("a connection that breaks is picked up", () =>
    visit(REPLAY, async (tab, visitor) => {
        visitor.allowed.push(/ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/);
        await ask(tab, "replay:endless");
        const before = await longer(tab, 100);
        await visitor.context.setOffline(true);
        await tab.evaluate(() => fetch("v1/models").catch(() => {}));
        await visitor.context.setOffline(false);
        await longer(tab, before + 200);
        await stop(tab);
        assert.ok(ENDLESS.repeat(10000).startsWith((await lastText(tab)).trim()));
    }));

test("two tabs do not disturb each other", () =>
    visit(REPLAY, async (tab, visitor) => {
        await ask(tab, "replay:endless");
        await longer(tab, 100);
        const other = await visitor.context.newPage();
        await other.goto(REPLAY);
        await ask(other, "replay:rich");
        await settled(other, 2);
        await until(other, () => document.querySelectorAll("#conversations li").length === 2);
        // the same conversation in both: both follow it, and either ends it
        await other.click("#conversations a >> text=replay:endless");
        const there = await longer(other, 100);
        await longer(other, there + 100);
        await stop(other);
        await settled(tab, 2);
        await settled(other, 2);
        assert.equal(await lastText(tab), await lastText(other));
        // what one adds, the other sees, and what is half written there stays
        await tab.hover(".question");
        await tab.click("[aria-label='Edit the question']");
        await tab.fill(".editing textarea", "half written");
        await ask(other, "replay:plain, something else");
        await settled(other, 4);
        await until(tab, () => document.querySelectorAll(".message").length === 4);
        assert.equal(await tab.inputValue(".editing textarea"), "half written");
        await tab.focus(".editing textarea");
        await tab.keyboard.press("Escape");
        await ask(tab, "replay:plain, something different");
        await settled(tab, 6);
        await tab.reload();
        await settled(tab, 6);
        await other.close();
    }));

test("tokens are coloured by probability and show what else there was", () =>
    visit(BOX, async (tab) => {
        await tab.click("#probabilities");
        await ask(tab, "What is 17 + 25?");
        await settled(tab, 2);
        const said = await lastText(tab);
        await tab.click("[aria-label='Colour tokens by probability']");
        assert.equal(await tab.locator(".tokens").textContent(), said);
        await tab.locator(".token").first().focus();
        await tab.keyboard.press("ArrowRight");
        assert.equal(await tab.locator(".token.chosen").getAttribute("tabindex"), "0");
        assert.equal(await tab.locator(".alternatives tr").count(), 5);
        assert.match(await textOf(tab.locator(".alternatives .taken td").last()), /%$/);
        await accessible(tab, "tokens");
        await tab.click("[aria-label='Colour tokens by probability']");
        assert.equal(await lastText(tab), said);
    }));

test("settings reach the model, and faults in them are named", () =>
    visit(BOX, async (tab) => {
        await set(tab, {system: "Answer in upper case.", temperature: "0", seed: "1"});
        await ask(tab, "Who are you?");
        await settled(tab, 2);
        assert.equal(await lastText(tab), (await lastText(tab)).toUpperCase());
        await set(tab, {
            system: "",
            schema: '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}',
        });
        await ask(tab, "How many?");
        await settled(tab, 4);
        assert.equal(typeof JSON.parse(await lastText(tab)).n, "number");
        await set(tab, {schema: "{", topP: "7"});
        await tab.click("#show-settings");
        assert.match(await tab.locator("#set-schema-note").innerText(), /^Not JSON/);
        assert.match(await tab.locator("#set-topP-note").innerText(), /from 0 to 1/);
        await accessible(tab, "settings");
        await tab.reload();
        await tab.click("#show-settings");
        assert.equal(await tab.inputValue("#set-seed"), "1");
    }));

test("conversations are searched, named, exported, imported and forgotten", () =>
    visit(
        BOX,
        async (tab) => {
            await tab.setInputFiles("#file", SHAPES);
            await ask(tab, "What do you see?");
            await settled(tab, 2);
            await tab.click("#new");
            await ask(tab, "Who are you?");
            await settled(tab, 2);
            const titles = async () => (await tab.locator("#conversations a").allInnerTexts()).join("|");
            const list = (wanted) =>
                until(
                    tab,
                    (text) =>
                        [...document.querySelectorAll("#conversations a")].map((a) => a.textContent).join("|") === text,
                    wanted,
                );
            await list("Who are you?|What do you see?");
            await tab.keyboard.press("Control+k");
            await tab.keyboard.type("blue square");
            await list("What do you see?");
            await tab.fill("#search", "");
            await list("Who are you?|What do you see?");
            await tab.hover("#conversations li >> nth=0");
            await tab.click("[aria-label='Rename Who are you?']");
            await accessible(tab, "a dialog");
            await tab.fill("#name", "About <b>you</b>");
            await tab.keyboard.press("Enter");
            await list("About <b>you</b>|What do you see?");
            const [download] = await Promise.all([tab.waitForEvent("download"), tab.click("#export")]);
            const file = await download.path();
            const [one] = await Promise.all([tab.waitForEvent("download"), press(tab, "Export What do you see?")]);
            assert.equal(one.suggestedFilename(), "motet-what-do-you-see.json");
            const {conversations} = JSON.parse(await readFile(await one.path(), "utf8"));
            assert.deepEqual(conversations.map((each) => each.title), ["What do you see?"]);
            for (const left of ["About <b>you</b>", "What do you see?"]) {
                await press(tab, `Forget ${left}`);
                await tab.click("dialog >> text=Forget it");
                await until(
                    tab,
                    (text) => ![...document.querySelectorAll("#conversations a")].some((a) => a.textContent === text),
                    left,
                );
            }
            assert.equal(await tab.locator(".welcome").count(), 1);
            await tab.setInputFiles("#import-file", file);
            await until(tab, () => document.querySelectorAll("#conversations a").length === 2);
            await tab.click("#conversations a >> text=What do you see?");
            await settled(tab, 2);
            assert.match(await lastText(tab), /red circle/);
            assert.ok(await tab.locator(".question img").evaluate((image) => image.decode().then(() => true)));
            await tab.setInputFiles("#import-file", SHAPES);
            await tab.locator("#notice >> text=not JSON").waitFor();
            assert.match(await titles(), /What do you see\?/);
        },
        {acceptDownloads: true},
    ));

test("a server with keys asks for one and the tab alone keeps it", () =>
    visit(KEYED, async (tab, visitor) => {
        visitor.allowed.push(/status of 401/);
        await tab.locator("#key").waitFor();
        await accessible(tab, "the question for a key");
        await tab.fill("#key", "wrong");
        await tab.keyboard.press("Enter");
        await tab.locator("text=not one of its keys").waitFor();
        await tab.fill("#key", "secret");
        await tab.keyboard.press("Enter");
        await until(tab, () => document.querySelector("#model").options.length === 1);
        await ask(tab, "replay:plain");
        await settled(tab, 2);
        assert.equal(await lastText(tab), "This is a plain answer.");
        const kept = await tab.evaluate(() => [
            JSON.stringify(localStorage),
            document.cookie,
            sessionStorage.getItem("motet.key"),
        ]);
        assert.ok(!kept[0].includes("secret") && kept[1] === "" && kept[2] === "secret", String(kept));
        await tab.reload();
        await settled(tab, 2);
        const other = await visitor.context.newPage();
        await other.goto(KEYED);
        await other.locator("#key").waitFor();
        await other.keyboard.press("Escape");
        await other.close();
    }));

test("dark, light, and as the system has it", () =>
    visit(REPLAY, async (tab) => {
        const paper = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
        const light = await paper();
        await tab.emulateMedia({colorScheme: "dark"});
        const dark = await paper();
        assert.notEqual(light, dark);
        await accessible(tab, "dark, empty");
        await tab.click("#theme");
        assert.equal(await paper(), light);
        await tab.reload();
        assert.equal(await paper(), light);
        await tab.click("#theme");
        await tab.emulateMedia({colorScheme: "light"});
        assert.equal(await paper(), dark);
        await ask(tab, "replay:rich");
        await settled(tab, 2);
        await accessible(tab, "dark, with text");
        await shot(tab, "rich-dark");
    }));

test("a phone has it all", () =>
    visit(
        REPLAY,
        async (tab) => {
            const fits = () => tab.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
            assert.ok(await fits(), "the empty page");
            assert.ok(!(await tab.isVisible("#sidebar")));
            await ask(tab, "replay:rich");
            await settled(tab, 2);
            assert.ok(await fits(), "nothing is wider than the phone");
            await accessible(tab, "phone");
            await shot(tab, "phone");
            await tab.click("#show-sidebar");
            await accessible(tab, "phone, conversations");
            await tab.locator("#conversations a").waitFor();
            await tab.click("#hide-sidebar");
        await tab.click("#show-sidebar");
        await tab.click("#veil", {position: {x: 380, y: 300}});
            assert.ok(!(await tab.isVisible("#sidebar")));
            await tab.click("#show-settings");
            assert.ok(await fits(), "the settings");
            await accessible(tab, "phone, settings");
            await tab.keyboard.press("Escape");
            assert.ok(!(await tab.isVisible("#settings")));
        },
        PHONE,
    ));

test("everything is reached by keyboard", () =>
    visit(BOX, async (tab) => {
        const focused = () =>
            tab.evaluate(
                () =>
                    document.activeElement.id ||
                    document.activeElement.getAttribute("aria-label") ||
                    document.activeElement.textContent,
            );
        assert.equal(await focused(), "question");
        await tab.keyboard.type("Who are you?");
        await tab.keyboard.press("Shift+Enter");
        await tab.keyboard.type("Say it.");
        await tab.keyboard.press("Enter");
        await settled(tab, 2);
        assert.equal(await textOf(tab.locator(".asked")), "Who are you?\nSay it.");
        const seen = new Set();
        for (let i = 0; i < 40; i++) {
            await tab.keyboard.press("Tab");
            seen.add(await focused());
        }
        for (const wanted of [
            "new",
            "search",
            "show-sidebar",
            "model",
            "theme",
            "show-settings",
            "Copy the answer",
            "Answer again",
            "Edit the question",
            "question",
            "attach",
            "think",
            "send",
        ])
            assert.ok(seen.has(wanted), `${wanted} is not among ${[...seen].join(", ")}`);
        assert.match(await tab.locator("#announcer").innerText(), /^Answer: /);
        await tab.keyboard.press("Alt+n");
        assert.equal(await focused(), "question");
        assert.equal(await tab.locator(".message").count(), 0);
    }));

test("the first paint waits for no module and for no answer", () =>
    visit(REPLAY, async (tab, visitor) => {
        const held = [];
        let open = false;
        await visitor.context.route(/\/(?!early)\w+\.js$|\/v1\/|\/web\/limits/, (route) =>
            open ? route.continue() : void held.push(route),
        );
        const before = await tab.evaluate(() => performance.timeOrigin);
        const loaded = tab.reload();
        loaded.catch(() => {}); // a test that fails closes the page
        const painted = (origin) =>
            performance.timeOrigin > origin && performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
        const time = await (await until(tab, painted, before)).jsonValue();
        await patiently(() => held.length > 20, "files are held");
        const blocking = await tab.evaluate(() =>
            performance
                .getEntriesByType("resource")
                .filter((each) => each.renderBlockingStatus === "blocking")
                .map((each) => [each.name.split("/").at(-1), each.encodedBodySize]),
        );
        console.log(`first paint after ${Math.round(time)} ms`);
        assert.deepEqual(blocking.map(([name]) => name).sort(), ["base.css", "chat.css", "early.js", "message.css"]);
        assert.ok(blocking.reduce((sum, [, bytes]) => sum + bytes, 0) < 12000, JSON.stringify(blocking));
        open = true;
        for (const route of held) await route.continue();
        await loaded;
        await until(tab, () => document.querySelector("#model").options.length === 1);
    }));

await main("chat");
