// The dashboard as people use it.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import {accessible, main, patiently, settings, shot, test, until, visit} from "./common.mjs";

const {box_url: BOX, replay_url: REPLAY, keyed_url: KEYED} = settings;
const PHONE = {viewport: {width: 390, height: 780}, hasTouch: true, isMobile: true};
const SHAPES = `data:image/png;base64,${fs.readFileSync(path.join(settings.root, "examples", "shapes.png"), "base64")}`;

const answered = new Map(); // address of a server: how many answers it has given

async function ask(url, body, key) {
    const headers = {"content-type": "application/json", ...key && {authorization: `Bearer ${key}`}};
    const response = await fetch(`${url}v1/chat/completions`, {method: "POST", headers, body: JSON.stringify(body)});
    if (response.ok) answered.set(url, (answered.get(url) ?? 0) + 1);
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
function drawn(tab, property) {
    return patiently(async () => await pixels(tab, property) >= 4, `something is drawn in ${property}`);
}

/** Until the page knows that all that was asked has ended. */
async function ended(tab) {
    const count = answered.get(new URL("./", tab.url()).href);
    await tab.click("#as-table");
    await patiently(async () => {
        const all = await rows(tab);
        return all.length === count && all.every((row) => /^ended|^cancelled|^failed/.test(row.State));
    }, "all answers have ended");
    await tab.click("#as-table");
}

/** The score stands still at its last voice, however long ago that was. */
async function atLast(tab) {
    await tab.click("#pause");
    await tab.focus("#score");
    await tab.keyboard.press("ArrowDown");
    await tab.locator("#card").waitFor();
}

test("a picture and a text are drawn in their inks, and told in words", async () => {
    await look(BOX, async (tab) => {
        await live(tab);
        await tab.click("[data-span='10']");
        const picture = await ask(BOX, question("What do you see?", SHAPES));
        await ask(BOX, question("What do you see?", SHAPES));
        await ended(tab);
        await atLast(tab);
        await drawn(tab, "--ink"); // of the picture itself a fast machine leaves less than a pixel: the card tells it
        await drawn(tab, "--voice-4");
        await tab.focus("#score");
        await tab.keyboard.press("End");
        await tab.keyboard.press("Escape");
        await ask(BOX, question("Who are you?", null, 60));
        await ended(tab);
        await shot(tab, "dashboard");
        await tab.click("#as-table");
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
    await ended(tab);
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
    const frames = () => tab.evaluate(() =>
        new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await frames();
    const before = await picture();
    await ask(BOX, question("Who are you?"));
    await ended(tab); // the page has heard of it
    await frames();
    assert.equal(await picture(), before);
    await tab.focus("#score");
    await tab.keyboard.press("ArrowLeft");
    await patiently(async () => await picture() !== before, "it goes back");
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
    await ended(tab);
    await tab.click("#pause");
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
    await patiently(async () => {
        const [x, y] = await inked();
        await tab.locator("#score-canvas").click({position: {x: x - 1, y}});
        return tab.locator("#card").isVisible();
    }, "a click chooses the voice");
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

/** For the page: the modules of the dashboard, a store with what is given, a view of it, and canvases whose drawings
    are written down: [{what, with, colour, width}]. */
async function studio() {
    const folder = document.querySelector("script[type=module]").src.replace(/main\.js$/, "");
    const [{Store}, {View}, {Score}, {makeStrip}] = await Promise.all(
        ["store", "view", "score", "strip"].map((name) => import(`${folder}${name}.js`)));
    return {
        Score, makeStrip,
        open(told, width) {
            const store = new Store();
            store.take("snapshot", {columns: ["at", "running", "waiting"], ...told});
            const canvas = document.createElement("canvas"), log = [];
            canvas.style.cssText = `display: block; width: ${width}px; height: 100px`;
            document.body.append(canvas);
            const c = canvas.getContext("2d");
            for (const what of ["fillText", "fillRect", "fill", "stroke"]) {
                const real = c[what].bind(c);
                c[what] = (...given) => {
                    const colour = what === "stroke" ? c.strokeStyle : c.fillStyle;
                    const width = what === "fillText" ? c.measureText(given[0]).width : 0;
                    log.push({what, with: given, colour, width});
                    real(...given);
                };
            }
            return {store, view: new View(store), canvas, log};
        },
        /** A voice as the server tells of it; times are seconds. */
        voice: (number, received, ended, more = {}) => ({
            number, id: `id-${number}`, received: 1e6 * received, entered: 1e6 * received, seated: 1e6 * received,
            first: 1e6 * received, ended: 1e6 * ended, waited: 0, finish: "stop", prompt: 9, cached: 0, tokens: 9,
            ...more,
        }),
    };
}

/** Looks at a dashboard whose modules are in window.studio. */
function draws(work) {
    return look(BOX, async (tab, visitor) => {
        await tab.evaluate(`(${studio})().then((made) => { window.studio = made; })`);
        await work(tab, visitor);
    });
}

test("numbers of voices and times do not collide", () => draws(async (tab) => {
    const {names, times, left, over} = await tab.evaluate(() => {
        const {Score, open, voice} = window.studio;
        const first = 123456789, told = {now: 200e6, origin: Date.now() - 200e3, seconds: [[1e6, 0, 0]]};
        // ten lines without a pause: a voice begins where the one before it on its line has ended
        told.ended = Array.from({length: 180}, (_, i) => voice(first + i, i + 10, i + 19.99));
        const found = {names: 0, times: 0, left: 0, over: []};
        for (const [width, spans] of [[1000, [90, 110, 125]], [1600, [170]], [300, [0.5, 3, 60, 600, 3780]]]) {
            const {store, view, canvas, log} = open(told, width), score = new Score(canvas, store, view);
            view.pause();
            for (const span of spans)
                for (let end = 150; end < 161; end += 0.5) {
                    [view.span, view.end] = [span, end];
                    log.length = 0;
                    score.draw();
                    const written = log.filter(({what}) => what === "fillText").map((each) => {
                        const [text, x, y] = each.with;
                        return {text, from: x, to: x + each.width, y};
                    });
                    const numbers = written.filter(({text}) => text.startsWith("№"));
                    found.names += numbers.length;
                    found.times += written.length - numbers.length;
                    found.left += score.seen.filter((each) => score.x(each.ended) > 70).length - numbers.length;
                    for (const [i, a] of written.entries())
                        for (const b of written.slice(i + 1))
                            if (Math.abs(a.y - b.y) < 9 && a.to > b.from && b.to > a.from)
                                found.over.push(`${a.text} lies on ${b.text} where ${span} s are ${width} pixels`);
                }
            canvas.remove();
        }
        return found;
    });
    assert.deepEqual(over, []);
    assert.ok(names > 1000 && times > 200 && left > 100, `${names} numbers, ${times} times, ${left} left out`);
}));

test("no time is written where nothing is known", () => draws(async (tab) => {
    const written = await tab.evaluate(() => {
        const {Score, open} = window.studio;
        // of a server that began ten minutes ago, five seconds after midnight
        const told = {now: 600e6, origin: new Date(2026, 0, 2, 0, 0, 5).getTime(), seconds: [[1e6, 0, 0]]};
        const {store, view, canvas, log} = open(told, 1200);
        const score = new Score(canvas, store, view);
        return [60, 600, 3600].map((span) => {
            view.span = span;
            log.length = 0;
            score.draw();
            return log.filter(({what}) => what === "fillText").map(({with: [text]}) => text);
        });
    });
    assert.deepEqual(written[2], ["00:00:00", "00:05:00"]);
    for (const [i, least] of [[0, 6], [1, 6]]) {
        assert.ok(written[i].length >= least, written[i].join(" "));
        assert.ok(written[i].every((text) => /^00:\d\d:\d\d$/.test(text)), written[i].join(" "));
    }
}));

test("the score and the strip above it have one scale where they show one hour", () => draws(async (tab) => {
    const found = await tab.evaluate(() => {
        const {Score, makeStrip, open} = window.studio;
        return [300, 3600].map((known) => { // seconds that there are
            const begin = 5000 - known, told = {now: 5000e6, origin: 0};
            told.seconds = Array.from({length: known}, (_, i) => [1e6 * (begin + i + 1), 0, i === known / 2 ? 9 : 0]);
            const {store, view, canvas, log} = open(told, 1000), score = new Score(canvas, store, view);
            view.span = 3600;
            score.draw();
            log.length = 0;
            makeStrip(canvas, store, view, () => {})();
            const boxes = log.filter(({what}) => what === "fillRect").map((each) => each.with.map(Math.round));
            const bars = boxes.filter(([, , w, h]) => w === 1 && h > 1 && h < 30);
            const shown = boxes.filter(([, y, w, h]) => w > 1 && y === 0 && h === 30);
            canvas.remove();
            return [bars.map(([x]) => x === Math.round(score.x(begin + known / 2 + 1))),
                    shown.map(([x, , w]) => [x, Math.round(score.x(score.begin)), x + w])];
        });
    });
    assert.deepEqual(found, Array(2).fill([[true], [[12, 12, 1000]]]));
}));

test("the legend has all that is drawn, and nothing else", () => draws(async (tab) => {
    const {drawn: used, explained, kinds} = await tab.evaluate(() => {
        const {Score, open, voice} = window.studio, told = {now: 100e6, origin: Date.now(), seconds: [[1e6, 0, 0]]};
        told.ended = ["stop", "length", "cancelled", "error"].map((finish, i) => voice(i + 1, 10 + i, 80, {finish}));
        told.live = [voice(9, 60, 0, {seated: 0})]; // waits
        const note = (kind, begin, length, taken = 0) => [1, kind, 1e6 * begin, 1e6 * length, 4, 1, taken, taken];
        told.notes = [note(0, 10, 5), note(1, 16, 0), note(2, 22, 0), note(1, 28, 0), note(3, 30, 0), note(4, 32, 10),
                      note(5, 44, 10), note(6, 56, 8), note(6, 66, 8, 2)];
        const {store, view, canvas, log} = open(told, 1000), score = new Score(canvas, store, view);
        view.span = 100;
        const used = new Set(), real = score.drawVoice.bind(score);
        score.drawName = () => {};
        score.drawVoice = (each) => {
            log.length = 0;
            real(each);
            for (const {colour} of log)
                used.add(colour);
        };
        score.draw();
        const c = canvas.getContext("2d"), written = (colour) => (c.fillStyle = colour, c.fillStyle);
        const raised = written(getComputedStyle(document.querySelector("#score")).backgroundColor);
        used.delete(raised); // what is hollow lets the paper through
        const explained = [...document.querySelectorAll("#legend path")].flatMap((path) => {
            const {fill, stroke} = getComputedStyle(path);
            return [fill, stroke].filter((colour) => colour !== "none").map(written);
        });
        return {drawn: [...used].sort(), explained: [...new Set(explained)].sort(),
                kinds: new Set(told.notes.map(([, kind]) => kind)).size};
    });
    assert.equal(kinds, 7);
    assert.deepEqual(explained, used);
    const legend = await tab.locator("#legend").innerText();
    assert.deepEqual(legend.trim().split(/\s*\n\s*/), [
        "waits", "is prepared", "takes its seat", "makes way", "found in the cache", "looks at pictures",
        "reads its prompt", "answers", "guessed right", "ends", "at its length", "is cancelled", "fails",
    ]);
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
    await ask(KEYED, question("hello", null, 200), "secret");
    await ended(tab);
    await atLast(tab);
    await drawn(tab, "--ink");
    assert.ok(await tab.locator("#whose").isVisible());
    assert.equal(await tab.evaluate(() => document.cookie + JSON.stringify(localStorage)), "{}");
}));

test("dark, small, and without motion", async () => {
    await look(BOX, async (tab) => {
        await live(tab);
        await ask(BOX, question("What do you see?", SHAPES));
        await ended(tab);
        await shot(tab, "dashboard-dark");
        await atLast(tab);
        await drawn(tab, "--ink");
        await accessible(tab, "dark");
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
