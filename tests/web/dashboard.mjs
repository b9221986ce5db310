// The dashboard as people use it.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {accessible, main, settings, shot, test, until, visit} from "./common.mjs";

const {box_url: BOX, replay_url: REPLAY, keyed_url: KEYED} = settings;
const PATIENCE = 240000;
const PHONE = {viewport: {width: 390, height: 780}, hasTouch: true, isMobile: true};
const SHAPES = `data:image/png;base64,${fs.readFileSync(path.join(settings.root, "examples", "shapes.png"), "base64")}`;

async function ask(url, body, key) {
    const headers = {"content-type": "application/json", ...key && {authorization: `Bearer ${key}`}};
    const response = await fetch(`${url}v1/chat/completions`, {method: "POST", headers, body: JSON.stringify(body)});
    return response.json();
}

/** A question whose answer has so many tokens, of a picture or not. */
function question(text, picture, tokens = 40) {
    const content = [{type: "text", text}, picture && {type: "image_url", image_url: {url: picture}}].filter(Boolean);
    return {messages: [{role: "user", content}], max_tokens: tokens, ignore_eos: true};
}

/** Rows of the table: [{name: text}]. */
function rows(tab) {
    return tab.evaluate(() => {
        const names = [...document.querySelectorAll("#table thead th")].map((cell) => cell.textContent);
        return [...document.querySelectorAll("#table tbody tr")].map((row) =>
            Object.fromEntries([...row.children].map((cell, i) => [names[i], cell.textContent])));
    });
}

function live(tab) {
    return until(tab, () => document.querySelector("#state").dataset.state === "live");
}

/** For the page: the pixels of the score. The canvas itself is not read, which would make it a slow one. */
function copyOfScore() {
    const canvas = document.querySelector("#score-canvas");
    const copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const c = copy.getContext("2d", {willReadFrequently: true});
    c.drawImage(canvas, 0, 0);
    return c.getImageData(0, 0, copy.width, copy.height);
}

/** Looks at a dashboard that is live. */
function look(url, work, options) {
    return visit(`${url}dashboard`, async (tab, visitor) => {
        await tab.evaluate(`window.copyOfScore = ${copyOfScore}`);
        await work(tab, visitor);
    }, options);
}

/** How many pixels of the score are of a colour of the theme. */
function pixels(tab, property) {
    return tab.evaluate((name) => {
        const probe = document.createElement("span");
        probe.style.color = `var(${name})`;
        document.body.append(probe);
        const wanted = getComputedStyle(probe).color.match(/\d+/g).map(Number);
        probe.remove();
        const {data} = window.copyOfScore();
        let count = 0;
        for (let i = 0; i < data.length; i += 4)
            count += data[i + 3] > 200 && wanted.every((value, k) => Math.abs(value - data[i + k]) < 10);
        return count;
    }, property);
}

/** Until the score has something of a colour. */
async function drawn(tab, property) {
    for (const end = Date.now() + PATIENCE; await pixels(tab, property) < 4;) {
        assert.ok(Date.now() < end, `nothing is drawn in ${property}`);
        await tab.waitForTimeout(50);
    }
}

test("a picture and a text are drawn in their inks, and told in words", async () => {
    await look(BOX, async (tab) => {
        await live(tab);
        await tab.click("[data-span='10']");
        // each is looked for while it is computed: on a slow machine it is out of the window when the answer is there
        const asked = ask(BOX, question("What do you see?", SHAPES));
        await drawn(tab, "--ink"); // of the picture itself a fast machine leaves less than a pixel: the card tells it
        const picture = await asked;
        const askedAgain = ask(BOX, question("What do you see?", SHAPES));
        await drawn(tab, "--voice-4");
        await askedAgain;
        await ask(BOX, question("Who are you?", null, 60));
        await shot(tab, "dashboard");
        await tab.click("#as-table");
        await until(tab, () => document.querySelectorAll("#table tbody tr").length >= 3);
        const [, again, first] = (await rows(tab)).slice(-3);
        assert.equal(first["Tokens"], "40");
        assert.equal(first["State"], "ended at its length");
        assert.ok(Number(again["Cached"]) > 0 && Number(again["Cached"]) < Number(again["Prompt"]), JSON.stringify(again));
        await accessible(tab, "the table");
        await tab.locator("#table tbody button").last().click();
        assert.equal(await tab.locator("#card .id").textContent(), picture.id);
        const card = await tab.locator("#card dl").innerText();
        assert.match(card, /Pictures\s+1, encoded in/);
        assert.match(card, /Answer\s+40 tokens, .* a second/);
        await accessible(tab, "a card");
    });
});

test("it stands still, goes nearer, back and on", () => look(BOX, async (tab) => {
    const span = () => tab.locator("#span").textContent();
    await live(tab);
    await ask(BOX, question("Who are you?"));
    await drawn(tab, "--ink");
    await tab.click("[data-span='10']");
    await until(tab, () => document.querySelector("#span").textContent === "10 s");
    await tab.click("#nearer");
    await until(tab, () => document.querySelector("#span").textContent === "6.67 s");
    await tab.click("#farther");
    await tab.click("#pause");
    await until(tab, () => document.querySelector("#pause").textContent === "Follow");
    const picture = () => tab.evaluate(() => window.copyOfScore().data.reduce((hash, v) => (31 * hash + v) % 1e9, 7));
    await tab.mouse.move(5, 5);
    await until(tab, () => document.querySelector("#span").textContent === "10 s");
    let before = await picture();
    for (let last = null; last !== before; before = await picture()) { // what was on its way when it was told to stand
        last = before;
        await tab.waitForTimeout(600);
    }
    await ask(BOX, question("Who are you?"));
    await tab.waitForTimeout(600); // drawings that must not come
    assert.equal(await picture(), before);
    await tab.focus("#score");
    await tab.keyboard.press("ArrowLeft");
    while (await picture() === before)
        await tab.waitForTimeout(20);
    await tab.keyboard.press("End");
    await until(tab, () => document.querySelector("#pause").textContent === "Pause");
    await tab.keyboard.press(" ");
    await until(tab, () => document.querySelector("#pause").textContent === "Follow");
    await tab.keyboard.press("-");
    await until(tab, () => document.querySelector("#span").textContent === "15 s");
    const box = await tab.locator("#score-canvas").boundingBox();
    await tab.mouse.move(box.x + 200, box.y + 100);
    await tab.keyboard.down("Control");
    await tab.mouse.wheel(0, -50);
    await tab.keyboard.up("Control");
    await until(tab, () => document.querySelector("#span").textContent !== "15 s");
    assert.ok(parseFloat(await span()) < 15);
}));

test("a click and keys choose a voice", () => look(BOX, async (tab) => {
    await live(tab);
    await ask(BOX, question("Who are you?", null, 200));
    await drawn(tab, "--ink");
    await tab.focus("#score");
    await tab.keyboard.press("ArrowDown");
    await until(tab, () => document.querySelector("#announcer").textContent.startsWith("Number "));
    await tab.keyboard.press("Enter");
    assert.ok(await tab.evaluate(() => document.activeElement.closest("#card") !== null));
    const id = await tab.locator("#card .id").textContent();
    await tab.click("#card [aria-label='Close']");
    assert.ok(await tab.locator("#card").isHidden());
    await tab.focus("#score");
    await tab.keyboard.press("Escape");
    await tab.click("#pause");
    // Where its ink is. The page is laid out anew as the card goes, and drawn some frames later: a click may come between.
    const inked = () => tab.evaluate(() => {
        const {data, width} = window.copyOfScore();
        const dark = getComputedStyle(document.body).color.match(/\d+/g).map(Number);
        let best = [1, 0];
        for (let i = data.length - 4; i >= 40 * width * 4; i -= 4)
            if (data[i + 3] === 255 && dark.every((v, k) => Math.abs(v - data[i + k]) < 3) && i / 4 % width > best[0])
                best = [i / 4 % width, Math.floor(i / 4 / width)];
        return best.map((v) => v / window.devicePixelRatio);
    });
    for (const end = Date.now() + PATIENCE; await tab.locator("#card").isHidden(); await tab.waitForTimeout(100)) {
        const [x, y] = await inked();
        assert.ok(Date.now() < end, `a click at ${x}, ${y} chooses nothing`);
        await tab.locator("#score-canvas").click({position: {x: x - 1, y}});
    }
    assert.equal(await tab.locator("#card .id").textContent(), id);
}));

test("figures are of the time that is shown", () => look(BOX, async (tab) => {
    const told = await tab.evaluate(async () => {
        const folder = document.querySelector("script[type=module]").src.replace(/main\.js$/, "");
        const [{Store}, {makeFigures}] = await Promise.all([import(`${folder}store.js`), import(`${folder}figures.js`)]);
        const columns = ["at", "first_token_times", "between_tokens_times", "generated_tokens", "http_5xx"];
        const now = 3600, store = new Store();
        // one answer half an hour ago, three within the last ten minutes, and nothing in the last minute
        const counted = new Map([[now - 1800, [[50, 1], [5, 40]]], [now - 300, [[200, 2], [20, 60]]], [now - 200, [[400, 1], [40, 4]]]]);
        const seconds = Array.from({length: now}, (_, i) =>
            [1e6 * (i + 1), ...counted.get(i + 1) ?? [[], []], counted.has(i + 1) ? 10 : 0, i + 1 === now - 1800 ? 1 : 0]);
        store.take("snapshot", {columns, seconds, now: 1e6 * now, seats: 4, origin: Date.now() - 1e3 * now});
        const element = document.createElement("div");
        document.body.append(element);
        const of = (span) => {
            element.replaceChildren();
            makeFigures(element, store, {end: now, begin: now - span, span})();
            const figure = (title) => [...element.children].find((each) => each.querySelector("h3").textContent === title);
            const read = (title) => `${figure(title).querySelector(".value").textContent} | ${figure(title).querySelector(".note").textContent}`;
            return [read("First token"), read("Between tokens"), figure("Errors").querySelector(".value").textContent];
        };
        return [60, 600, 3600].map(of);
    });
    assert.deepEqual(told, [
        ["– | 90 %: – · 99 %: –", "– | 90 %: – · 99 %: –", "0"],
        ["200 ms | 90 %: 400 ms · 99 %: 400 ms", "20 ms | 90 %: 20 ms · 99 %: 40 ms", "0"],
        ["200 ms | 90 %: 400 ms · 99 %: 400 ms", "20 ms | 90 %: 20 ms · 99 %: 40 ms", "1"],
    ]);
}));

test("numbers do not collide, and no time is written where nothing is known", () => look(BOX, async (tab) => {
    await live(tab);
    for (let i = 0; i < 12; i++)
        await ask(BOX, question("Who are you?", null, 1));
    await tab.evaluate(() => {
        const {fillText} = CanvasRenderingContext2D.prototype;
        window.written = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
            if (this.canvas.id === "score-canvas")
                window.written.push({text, from: x, to: x + this.measureText(text).width, y, align: this.textAlign});
            fillText.call(this, text, x, y);
        };
        const {clearRect} = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.clearRect = function (...all) { // a drawing begins
            if (this.canvas.id === "score-canvas" && window.written.length > 0)
                [window.drawing, window.written] = [window.written, []];
            clearRect.apply(this, all);
        };
    });
    for (const span of ["10", "60", "600", "3600"]) {
        await tab.click(`[data-span='${span}']`);
        await tab.evaluate(() => { window.drawing = null; });
        await until(tab, () => window.drawing !== null);
        await tab.evaluate(() => { window.drawing = null; });
        await until(tab, () => window.drawing !== null);
        const drawing = await tab.evaluate(() => window.drawing);
        for (const a of drawing)
            for (const b of drawing)
                assert.ok(a === b || a.y !== b.y || a.align !== b.align || a.to <= b.from || b.to <= a.from,
                          `at ${span} s ${a.text} lies on ${b.text}`);
        const begun = Date.now() - 3600e3;
        for (const {text} of drawing.filter(({text}) => /^\d\d:\d\d:\d\d$/.test(text))) {
            const time = new Date(`${new Date().toDateString()} ${text}`).getTime();
            assert.ok(Number.isNaN(time) || time > begun, `${text} is long before the server began`);
        }
    }
    const legend = await tab.locator("#legend").innerText();
    for (const part of ["is prepared", "is cancelled", "fails", "waits", "at its length"])
        assert.ok(legend.includes(part), part);
}));

test("what models and clients are called is text", () => look(REPLAY, async (tab) => {
    await live(tab);
    await ask(REPLAY, {messages: [{role: "user", content: "x"}], ["<img src=x onerror=alert(1)>"]: 1, temperature: "<script>"});
    await ask(REPLAY, {messages: [{role: "<svg onload=alert(1)>", content: "<b>"}]});
    await until(tab, () => document.querySelectorAll("#ledger li").length >= 2);
    assert.equal(await tab.locator("#model").textContent(), "replay <b>model</b>");
    assert.match(await tab.locator("#ledger").innerText(), /<svg onload=alert\(1\)>/);
    assert.equal(await tab.locator("#main img, #main script, #main b:not(li > b), #model b").count(), 0);
    await accessible(tab, "errors");
}));

test("a server with keys is asked with one", () => look(KEYED, async (tab, visitor) => {
    visitor.allowed = [/401/];
    await tab.fill("#key", "wrong");
    await tab.press("#key", "Enter");
    await tab.locator("#key-reason", {hasText: "not one of its keys"}).waitFor();
    await tab.click("text=Not now");
    await until(tab, () => document.querySelector("#state").dataset.state === "locked");
    await accessible(tab, "without a key");
    await tab.click("#again");
    await tab.fill("#key", "secret");
    await tab.press("#key", "Enter");
    await live(tab);
    await ask(KEYED, question("hello", null, 5), "secret");
    await drawn(tab, "--ink");
    assert.ok(await tab.locator("#whose").isVisible());
    assert.equal(await tab.evaluate(() => document.cookie + JSON.stringify(localStorage)), "{}");
}));

test("dark, small, and without motion", async () => {
    await look(BOX, async (tab) => {
        await live(tab);
        await ask(BOX, question("What do you see?", SHAPES));
        await drawn(tab, "--ink");
        await accessible(tab, "dark");
        await shot(tab, "dashboard-dark");
        await tab.click("#theme"); // light, whatever the system says
        await drawn(tab, "--ink");
    }, {colorScheme: "dark", reducedMotion: "reduce"});
    await look(BOX, async (tab) => {
        await live(tab);
        await drawn(tab, "--edge");
        assert.equal(await tab.evaluate(() => document.documentElement.scrollWidth), 390);
        await accessible(tab, "a phone");
        await shot(tab, "dashboard-phone");
    }, PHONE);
});

main("dashboard");
